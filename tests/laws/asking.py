"""Answers in which a model asks its client for something: of every dialect, and of every kind that tables and vendors' types have."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, get_args

import google.genai
import orjson
from attrs import frozen
from openai.types.responses import ResponseOutputItem

from streamkit.dialects import DIALECTS
from streamkit.dialects.openai_responses.wire import OWN_ITEMS
from streamkit.dialects.streams.client_calls import EXECUTION, NAMES, SAYING, SEARCH
from tests.laws.quirky import conforming, conforming_body
from tests.laws.running import read, translate
from tests.vectors.vector import sse
from tests.whole_answers import ANSWERING_WHOLE

RESPONSES, INTERACTIONS, AI_SDK, AG_UI = "openai-responses", "gemini-interactions", "ai-sdk", "ag-ui"


@frozen
class Asking:
    """An answer that waits for its client. ``item`` is the word that an error must name."""

    dialect: str
    item: str
    stream: bytes
    body: bytes | None = None  #: the same as a whole answer

    def __str__(self) -> str:
        return f"{self.dialect}-{self.item}".replace(" ", "-")


# -- every dialect: calls, and turns that the client is to continue ----------------------------------------------------


def _anthropic(reason: str) -> bytes:
    return sse(
        {"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": {"input_tokens": 1, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "I am searching."}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    )  # fmt: skip


def _continued() -> Iterator[Asking]:
    """Turns that their provider paused, in the dialects that have a word for it."""
    for dialect in DIALECTS.built_in:
        for reason, word in (("pause", "pause_turn"), ("compaction", "compaction")):
            stream, _ = translate("anthropic", dialect, [_anthropic(word)], passing=False)
            if read(dialect, [stream]).stops == {0: reason}:
                yield Asking(dialect, reason, stream)


def _called() -> Iterator[Asking]:
    for dialect in DIALECTS.built_in:
        body = conforming_body(dialect, "calls").body if dialect in ANSWERING_WHOLE else None
        yield Asking(dialect, "get_weather", conforming(dialect, "calls").body, body)


def _truncated() -> Iterator[Asking]:
    """A call whose arguments are truncated, although its provider says that the turn ended with it."""
    call = {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Ro'}}
    answer = {"id": "r", "created": 1, "model": "m"}
    delta = {"role": "assistant", "content": None, "tool_calls": [{"index": 0, **call}]}
    stream = sse(
        *({**answer, "object": "chat.completion.chunk", "choices": [{"index": 0, **choice}]} for choice in (
            {"delta": delta, "finish_reason": None}, {"delta": {}, "finish_reason": "tool_calls"},
        )),
        b"[DONE]",
    )  # fmt: skip
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    body = orjson.dumps({**answer, "object": "chat.completion", "choices": [choice]})
    yield Asking("openai-chat", "truncated", stream, body)


# -- Responses: items --------------------------------------------------------------------------------------------------


#: A type of item that no table and no version of the client has.
UNKNOWN: Final = "lamp_call"
_VALUES: Final[dict[str, Any]] = {
    "operation": {"type": "delete_file", "path": "a"},
    "action": {"type": "exec", "command": ["ls"], "env": {}},
    "actions": [{"type": "wait"}],
    "pending_safety_checks": [],
    "server_label": "dice",
    "name": "roll",
}


def item_of(kind: str) -> dict[str, Any]:
    """An item of a type, with an id to answer it by."""
    item = {"type": kind, "id": "i1", "call_id": "c1", "status": "completed"}
    if kind == "mcp_approval_request":
        return {"type": kind, "id": "i1", "server_label": "dice", "name": "roll", "arguments": '{"sides": 6.0}'}
    if kind == SEARCH:
        return {**item, EXECUTION: "client", "arguments": {"query": "sum"}}
    if kind in {"shell_call", "local_shell_call"}:
        return {**item, "action": {"commands": ["ls"]} if kind == "shell_call" else _VALUES["action"]}
    return {**item, **{name: _VALUES[name] for name in SAYING.get(kind, ()) if name != "action"}, "brightness": 3}


def responses(*output: dict[str, Any]) -> tuple[bytes, bytes]:
    """A stream with these items, and the same as a whole answer."""
    response = {"id": "r", "object": "response", "model": "m", "output": []}
    events: list[dict[str, Any]] = [{"type": "response.created", "response": {**response, "status": "in_progress"}}]
    for place, item in enumerate(output):
        events += [
            {"type": f"response.output_item.{word}", "output_index": place, "item": item} for word in ("added", "done")
        ]
    whole = {**response, "status": "completed", "output": [*output]}
    events.append({"type": "response.completed", "response": whole})
    return sse(*({**event, "sequence_number": number} for number, event in enumerate(events))), orjson.dumps(whole)


def kinds_in_sdk() -> dict[str, Any]:
    """The items of openai's types that a client answers: each ``…_call`` with the id of a call, and each request."""
    types = get_args(get_args(ResponseOutputItem)[0])
    found = {get_args(each.model_fields["type"].annotation)[0]: each for each in types}
    return {
        kind: each
        for kind, each in found.items()
        if kind not in OWN_ITEMS
        and ((kind.endswith("_call") and "call_id" in each.model_fields) or kind.endswith("_request"))
    }


def _items() -> Iterator[Asking]:
    for kind in sorted({*NAMES, *kinds_in_sdk(), UNKNOWN}):
        yield Asking(RESPONSES, kind, *responses(item_of(kind)))
    nobodys = {name: value for name, value in item_of(SEARCH).items() if name != EXECUTION}
    yield Asking(RESPONSES, SEARCH, *responses(nobodys))
    text = {"type": "message", "id": "t", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "Wait.", "annotations": []}]}  # fmt: skip
    stream, body = responses(text, item_of(UNKNOWN))
    yield Asking(RESPONSES, UNKNOWN, stream, body)


# -- Interactions: steps -----------------------------------------------------------------------------------------------


def steps_in_sdk() -> list[str]:
    """The types of steps that google-genai knows as calls."""
    folder = Path(google.genai.__file__).parent
    texts = (path.read_text("utf-8") for path in sorted(folder.glob("_gaos/**/*.py")))
    found = {kind for text in texts for kind in re.findall(r'Literal\["([a-z_]+_call)"\]', text)}
    return sorted(found - {"function_call"})


def _steps() -> Iterator[Asking]:
    for kind in (*steps_in_sdk(), UNKNOWN, "lamp_request"):
        step = {"type": kind, "id": "s1", "arguments": {"query": "sum"}}
        last = {"id": "i", "status": "requires_action", "object": "interaction", "model": "m"}
        events = [
            {"event_type": "interaction.created", "interaction": {**last, "status": "in_progress"}},
            {"event_type": "step.start", "index": 0, "step": step},
            {"event_type": "step.stop", "index": 0},
            {"event_type": "interaction.completed", "interaction": last},
        ]
        yield Asking(INTERACTIONS, kind, sse(*events), orjson.dumps({**last, "steps": [step]}))


# -- user interfaces: approvals ----------------------------------------------------------------------------------------


def requested(*, executed: bool, reason: str) -> bytes:
    """A stream of the AI SDK in which a call waits for the user's approval."""
    call = {"toolCallId": "c1", "toolName": "roll", **({"providerExecuted": True, "dynamic": True} if executed else {})}
    chunks = [
        {"type": "start"}, {"type": "start-step"}, {"type": "tool-input-start", **call},
        {"type": "tool-input-available", **call, "input": {"sides": 6}},
        {"type": "tool-approval-request", "approvalId": "a1", "toolCallId": "c1"},
        {"type": "finish-step"}, {"type": "finish", "finishReason": reason},
    ]  # fmt: skip
    return sse(*chunks, b"[DONE]")


def _requests() -> Iterator[Asking]:
    for executed in (False, True):
        for reason in ("tool-calls", "stop", "other"):
            yield Asking(AI_SDK, "roll", requested(executed=executed, reason=reason))


ROLL: Final = (
    {"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "roll"},
    {"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": '{"sides":6}'},
    {"type": "TOOL_CALL_END", "toolCallId": "c1"},
)


def interrupted(*events: dict[str, Any], **interrupt: Any) -> bytes:
    """A run of AG-UI that ends with an interrupt."""
    run = {"threadId": "t", "runId": "r"}
    outcome = {"type": "interrupt", "interrupts": [{"id": "i1", **interrupt}]}
    return sse({"type": "RUN_STARTED", **run}, *events, {"type": "RUN_FINISHED", **run, "outcome": outcome})


def _interrupts() -> Iterator[Asking]:
    yield Asking(AG_UI, "roll", interrupted(*ROLL, reason="tool_call", toolCallId="c1"))
    yield Asking(AG_UI, "interrupt", interrupted(reason="input_required", message="Which?"))
    yield Asking(AG_UI, "interrupt", interrupted(*ROLL, reason="tool_call", toolCallId="c2"))
    yield Asking(AG_UI, "interrupt", interrupted(message="Which?"))


ASKING: Final = [*_called(), *_truncated(), *_continued(), *_items(), *_steps(), *_requests(), *_interrupts()]
