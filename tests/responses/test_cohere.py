"""Whole responses of Cohere's v2 chat: read, written, and written for what other dialects said.

Source: dialects.md §6.2, §7.1, §7.2; the response types of cohere 7.3.1.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import orjson
import pytest
from attrs import evolve

from streamkit.conversation.messages import Choice, Reasoning, RedactedReasoning, Refusal, Response, Text, ToolCall
from streamkit.errors import BrokenFrame, NotThisDialect
from streamkit.events import Aside, Opaque, ProviderFailed, UsageReported, Verdict
from streamkit.policy import STRICT
from streamkit.read_options import ReadOptions
from streamkit.recipes import collect
from streamkit.report import StreamReport
from streamkit.testing import source_of
from streamkit.translation.bodies import decode_response, encode_response
from tests.responses.rows import Dialect, Row, rows
from tests.vectors import VECTORS

USAGE = {"billed_units": {"input_tokens": 9}, "tokens": {"input_tokens": 11, "output_tokens": 7}, "cached_tokens": 4}
COMPLETE = Verdict("complete")


def text(content: str) -> dict[str, Any]:
    return {"type": "text", "text": content}


def thinking(content: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": content}


def call(call_id: str = "c1", arguments: Any = "{}", **more: Any) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": "look", "arguments": arguments}, **more}


def whole(message: dict[str, Any], finish: str | None = "COMPLETE", **beside: Any) -> dict[str, Any]:
    body = {"id": "i", "finish_reason": finish, "message": {"role": "assistant", **message}, "usage": USAGE}
    return {**body, **beside}


COHERE = Dialect(
    "cohere",
    Response(
        "cohere", id="i", vendor="cohere", clean=True, usage=UsageReported(11, 4, None, 7, None, 18, USAGE, "cohere")
    ),
)
CITATION = {"start": 0, "end": 1, "text": "a", "sources": [{"type": "document", "id": "d"}], "type": "TEXT_CONTENT"}
LOGPROBS = [{"text": "a", "token_ids": [1], "logprobs": [-1.5]}, {"token_ids": [2]}]
VIDEO = {"type": "video", "video": "v"}

#: A message, its stop reason, and the parts that it says, both ways.
MESSAGES: dict[str, tuple[dict[str, Any], str, list[Any]]] = {
    "text": ({"content": [text("hi")]}, "COMPLETE", [Text("hi")]),
    "no text": ({"content": [text("")]}, "MAX_TOKENS", []),
    "several texts": ({"content": [text("a"), text("b")]}, "STOP_SEQUENCE", [Text("a"), Text("b")]),
    "thoughts": ({"content": [thinking("hm"), text("a"), thinking("so")]}, "COMPLETE", [Reasoning("hm"), Text("a"), Reasoning("so")]),
    "a plan and calls": (
        {"tool_plan": "first", "tool_calls": [call(), call("c2", '{"q": oops', x=1)]}, "TOOL_CALL",
        [
            Reasoning("first", "summary"), ToolCall(0, "c1", "look", "{}", verdict=COMPLETE),
            ToolCall(1, "c2", "look", '{"q": oops', verdict=Verdict("malformed", "a character that begins no value", 6), extras={"x": 1}),
        ],
    ),
    "text and a call": ({"tool_calls": [call()], "content": [text("wait")]}, "TOOL_CALL", [Text("wait"), ToolCall(
        0, "c1", "look", "{}", verdict=COMPLETE,
    )]),
    "citations": (
        {"content": [text("a")], "citations": [CITATION, CITATION]}, "COMPLETE",
        [Text("a"), *[Aside("cohere", "citation", "citation-start", CITATION)] * 2],
    ),
}  # fmt: skip


MENDED = [
    ({"content": [5, text("a")]}, {"field_invalid": 1}),
    ({"content": [{"text": "a"}]}, {}),
    ({"content": 5}, {"field_invalid": 1}),
    ({"content": [text("a")], "tool_calls": 5}, {"field_invalid": 1}),
]  # fmt: skip


# -- errors ------------------------------------------------------------------------------------------------------------

ERRORS: list[tuple[Any, str, str, dict[str, int]]] = [
    ({"message": "invalid api token"}, "server", "invalid api token", {}),
    ({"id": "e", "message": "too many"}, "server", "too many", {}),
    (whole({}, "ERROR", error="gone"), "server", "gone", {}),
    (whole({}, "TIMEOUT"), "timeout", "the provider gave the finish reason 'TIMEOUT'", {}),
    ({"error": {"message": "m"}}, "server", "m", {"error_shape": 1}),
]  # fmt: skip

OTHERS = [
    (b"", NotThisDialect),
    (b'{"type": "message-start", "id": "i", "delta": {"message": {}}}', NotThisDialect),
    (b'{"type": "message", "content": []}', NotThisDialect),
    (b'{"model": "m", "message": {"role": "assistant", "content": "a"}, "done": true}', NotThisDialect),
    (b'{"id": "i", "choices": [{"message": {"content": "a"}}]}', NotThisDialect),
    (b'{"message": {', BrokenFrame),
]  # fmt: skip


# -- writing what others said ------------------------------------------------------------------------------------------

FOREIGN: dict[str, tuple[Response, dict[str, Any], str, dict[str, int]]] = {
    "text behind a call": (
        COHERE.response(ToolCall(0, "c1", "look", ""), Text("a"), stop="tool_calls"), {"tool_calls": [call()], "content": [text("a")]},
        "TOOL_CALL", {"block_order": 1},
    ),
    "calls that nobody may run": (
        COHERE.response(ToolCall(0, "c1", "", "{}"), ToolCall(1, "c2", "look", "{}", ended=False), stop="tool_calls"), {"content": [text("")]},
        "MAX_TOKENS", {"call_withheld": 2, "stop_reason": 1},
    ),
    "a custom call": (
        COHERE.response(ToolCall(0, "c1", "look", "1 + 1", "custom"), stop="tool_calls"), {"tool_calls": [call(arguments='{"input":"1 + 1"}')]},
        "TOOL_CALL", {"custom_tool_wrapped": 1},
    ),
    "a refusal": (COHERE.response(Refusal("no"), stop="refusal"), {"content": [text("no")]}, "COMPLETE", {"refusal_as_text": 1, "stop_reason": 1}),
    "plans": (
        COHERE.response(Reasoning("a", "summary"), Text("b"), Reasoning("c", "summary")), {"tool_plan": "a\n\nc", "content": [text("b")]},
        "COMPLETE", {"block_order": 1, "block_boundary": 1},
    ),
    "what is signed": (
        COHERE.response(
            Reasoning("hm", "summary", Opaque("anthropic", "S")), RedactedReasoning(Opaque("openai", "D")), Text("", Opaque("google", "P")),
            ToolCall(0, "c1", "look", "{}", signature=Opaque("google", "S")), vendor="anthropic", stop="tool_calls",
        ),
        {"content": [thinking("hm")], "tool_calls": [call()]}, "TOOL_CALL", {"reasoning_signature": 3, "reasoning_opaque": 1},
    ),
    "members of another vendor": (
        COHERE.response(
            ToolCall(0, "c1", "look", "{}", extras={"caller": {}}), Aside("anthropic", "citation", "c", {}), vendor="anthropic",
            extras={"container": {}}, stop="tool_calls",
        ),
        {"tool_calls": [call()]}, "TOOL_CALL", {"metadata": 1, "citation": 1, "response_fields": 1},
    ),
    "asides that have no place": (
        COHERE.response(Text("a"), Aside("cohere", "metadata", "debug", {}), Aside("cohere", "unknown_event", "field", 5)),
        {"content": [text("a")]}, "COMPLETE", {"metadata": 1, "unknown_event": 1},
    ),
}  # fmt: skip


# -- streams and bodies say the same -----------------------------------------------------------------------------------


def told(said: Response) -> Any:
    """What the first choice says, for comparing it with what became of it."""
    choice = said.choices[0]
    calls = [(each.id, each.name, each.arguments.strip() or "{}", each.extras or {}) for each in choice.tool_calls]
    return choice.text, choice.reasoning, calls, [(aside.type, aside.raw) for aside in choice.asides]


def without(asides: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """The asides that a body has a place for."""
    return [(name, raw) for name, raw in asides if name in {"citation-start", "logprobs"}]


def assert_same(streamed: Response) -> None:
    report = StreamReport()
    found = decode_response(encode_response(streamed, "cohere", report=report), "cohere")
    if not streamed.clean:
        assert found.error is not None
        return
    assert found.report.repairs == Counter()
    spoken, reasoning, calls, _ = told(streamed)
    assert told(found)[:3] == (spoken, reasoning, [] if report.losses["call_withheld"] else calls)
    assert sorted(map(repr, without(told(found)[3]))) == sorted(map(repr, without(told(streamed)[3])))
    assert [part for part in found.choices[0].parts if isinstance(part, Reasoning)] == [
        part for part in streamed.choices[0].parts if isinstance(part, Reasoning)
    ]
    assert (found.usage, found.id) == (streamed.usage, streamed.id or found.id)
    assert (found.choices[0].stop_reason == streamed.choices[0].stop_reason) is not bool(report.losses["stop_reason"])


@pytest.mark.parametrize(
    "vector", [each for each in VECTORS if each.dialect == "cohere" and each.fault is None], ids=lambda vector: vector.name,
)  # fmt: skip
async def test_a_stream_as_a_whole_body_says_the_same(vector):
    assert_same(await collect(source_of([vector.body]), "cohere", ReadOptions(make_id=lambda _prefix: "made")))


# -- the official client -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MESSAGES)
def test_the_official_client_reads_it(client, replay, name):
    message, finish, parts = MESSAGES[name]
    stop = {"MAX_TOKENS": "length", "STOP_SEQUENCE": "stop_sequence", "TOOL_CALL": "tool_calls"}.get(finish, "stop")
    written, _ = COHERE.write(COHERE.response(*parts, stop=stop))
    model = replay.register(orjson.dumps(written), "application/json")
    seen = client("cohere").chat(model=model, messages=[{"role": "user", "content": "hi"}])
    assert seen.finish_reason == finish
    assert seen.message.tool_plan == message.get("tool_plan")
    assert [part.type for part in seen.message.content or ()] == [part["type"] for part in message.get("content", ())]
    assert [each.id for each in seen.message.tool_calls or ()] == [each["id"] for each in message.get("tool_calls", ())]
    assert len(seen.message.citations or ()) == len(message.get("citations", ()))
    assert seen.usage.tokens.output_tokens == 7
    type(seen).model_validate(seen.model_dump(exclude_none=True))


SHAPES = [
    ("Hi", {"object_missing": 1}),
    (["Hi"], {"object_missing": 1}),
    ({"type": "text", "text": "Hi"}, {"list_missing": 1}),
]


# -- all rows ----------------------------------------------------------------------------------------------------------

NOTHING = {"content": None, "tool_plan": None, "tool_calls": None, "citations": None}
BESIDE = whole({"content": [text("a"), VIDEO], "mood": 1}, logprobs=LOGPROBS)


def message_row(message: dict[str, Any], finish: str, parts: list[Any]) -> Row:
    return COHERE.kept(whole(message, finish, generation="g"), parts, said={
        "clean": True, "choices[0].native_stop_reason": finish, "id": "i", "extras": {"generation": "g"},
        "usage": UsageReported(11, 4, None, 7, None, 18, USAGE, "cohere"),
    })  # fmt: skip


def error_row(body: Any, kind: str, message: str, repairs: dict[str, int]) -> Row:
    written = body if isinstance(body.get("message"), str) else {"message": message}
    return COHERE.failed(body, kind, message, repairs, written=written, losses={})


ROWS = {
    **rows("messages", MESSAGES, message_row),
    "what is beside the text": COHERE.kept(BESIDE, None, said={"extras": {"delta": {"mood": 1}}}),
    "what is null": Row(whole({**NOTHING, "content": [text("a")]}, logprobs=None, usage=None), [Text("a")], {"usage": None}, options={"policy": STRICT}),
    "what is null next to a call": Row(
        whole({**NOTHING, "tool_calls": [call()]}, "TOOL_CALL"), None, {"choices[0].parts[0].name": "look"}, options={"policy": STRICT}
    ),
    **rows("mended", MENDED, lambda message, repairs: COHERE.mended(whole(message), repairs)),
    **rows("shapes", SHAPES, lambda content, repairs: COHERE.mended(whole({"content": content}), repairs, text="Hi")),
    "a call that is no list": COHERE.mended(
        whole({"tool_calls": {"id": "a", "function": {"name": "f", "arguments": {"x": 1.5}}}}, "TOOL_CALL"), {"list_missing": 1, "arguments_not_text": 1},
        **{"choices[0].parts[0].arguments": '{"x": 1.5}'},
    ),
    "no reason": Row(whole({"content": [text("a")]}, None), None, {"clean": False}),
    **rows("errors", ERRORS, error_row),
    "an error of another dialect": COHERE.of_another(
        COHERE.response(clean=False, error=ProviderFailed("rate_limit", "slow down", "rate_limit_error", vendor="anthropic")),
        {"message": "slow down"}, {"error_detail": 1},
    ),
    "a response that was cut": COHERE.of_another(
        COHERE.response(Text("a"), clean=False), {"message": "the response was truncated"}, {"answer_withheld": 1}
    ),
    **rows("of another kind", OTHERS, COHERE.refused),
    **rows("another dialect", FOREIGN, lambda said, message, finish, losses: COHERE.of_another(said, whole(message, finish), losses)),
    "one choice": COHERE.of_another(
        evolve(COHERE.foreign, choices=[Choice(parts=[Text("a")], stop_reason="stop", stop_sequence="x"), Choice(1), Choice(2)]),
        whole({"content": [text("a")]}), {"extra_choice": 2, "stop_sequence": 1},
    ),
    "counts of another dialect": COHERE.of_another(
        COHERE.response(Text("a"), usage=UsageReported(10, 4, None, 5, 2, 15)),
        whole({"content": [text("a")]}, usage={"tokens": {"input_tokens": 10, "output_tokens": 5}, "cached_tokens": 4}), {"usage_detail": 1},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_a_response(name):
    COHERE.check(ROWS[name])
