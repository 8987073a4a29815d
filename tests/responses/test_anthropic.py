"""Whole responses of Anthropic: read, written, and written for what other dialects said.

Source: dialects.md §3.1, §3.3, §7.1, §7.2, §7.5, §7.6; quirks.md R14.
"""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from attrs import evolve

from streamkit.conversation.messages import (
    Choice,
    Media,
    Reasoning,
    RedactedReasoning,
    Refusal,
    Response,
    Text,
    ToolCall,
    ToolResult,
)
from streamkit.dialects.vocabulary.sealed_reasoning import seal
from streamkit.errors import BrokenFrame, NotThisDialect, StreamError, TooManyBlocks
from streamkit.events import Aside, Opaque, ProviderFailed, UsageReported, Verdict
from streamkit.framing.sse import serialize_sse
from streamkit.limits import Limits
from streamkit.recipes import collect, transcode
from streamkit.testing import source_of
from streamkit.translation.bodies import decode_response, encode_response
from tests.corpora import require_corpora
from tests.requests.spoilt import spoilt
from tests.responses.rows import Dialect, Row, rows

USAGE = {"input_tokens": 5, "output_tokens": 7, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 1}
COMPLETE = Verdict("complete")
CITATION = {
    "type": "page_location",
    "cited_text": "c",
    "document_index": 0,
    "start_page_number": 1,
    "end_page_number": 2,
}
SERVER = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search"}
SEARCHED = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
SEARCH_INPUT = '{"query": "x", "n": 1.0}'


def message(*content: dict[str, Any], stop: str | None = "end_turn", **beside: Any) -> dict[str, Any]:
    said = {"id": "i", "type": "message", "role": "assistant", "model": "m", "content": list(content)}
    return {**said, "stop_reason": stop, "stop_sequence": None, "usage": USAGE, **beside}


#: What the schema demands beside the counts, of a message, and of its blocks, where nothing is known of it.
NO_COUNTS = dict.fromkeys([
    "cache_read_input_tokens", "cache_creation_input_tokens", "cache_creation", "inference_geo", "output_tokens_details", "server_tool_use",
    "service_tier",
])  # fmt: skip
IN_BLOCKS: dict[str, Any] = {"text": {"citations": []}, "tool_use": {"caller": {"type": "direct"}}}


def whole(body: dict[str, Any]) -> dict[str, Any]:
    """A message as it is written: with every member that the schema demands."""
    content = [{**IN_BLOCKS.get(block["type"], {}), **block} for block in body["content"]]
    usage = {**NO_COUNTS, **body["usage"]}
    return {"stop_details": None, "container": None, **body, "content": content, "usage": usage}


ANTHROPIC = Dialect(
    "anthropic",
    Response(
        "openai-chat",
        id="i",
        model="m",
        created=1,
        vendor="openai",
        clean=True,
        usage=UsageReported(9, 3, 1, 7, None, 16),
    ),
)


def text(text: str = "a", **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": text, **more}


def call(arguments: Any = None, call_id: str = "toolu_1", **more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "look", "input": arguments or {}, **more}


def frames(number: int, block: dict[str, Any], delta: dict[str, Any] | None = None) -> list[Aside]:
    """The asides of a block as a stream would give them."""
    start = {"type": "content_block_start", "index": number, "content_block": block}
    more = [] if delta is None else [{"type": "content_block_delta", "index": number, "delta": delta}]
    stop = {"type": "content_block_stop", "index": number}
    kind = "unknown_event" if block["type"] == "compaction" else "server_tool"
    return [Aside("anthropic", kind, frame["type"], frame, block=number) for frame in (start, *more, stop)]


COMPACTION = {"type": "compaction", "content": "c", "encrypted_content": "E"}
REDACTED = {"type": "redacted_thinking", "data": "D"}
DETAILS = {"type": "refusal", "category": "cyber", "explanation": "e"}
CONTAINER = {"id": "c", "expires_at": "2026-11-22T00:00:00Z"}

#: A message, and the parts that it says, both ways.
MESSAGES: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "text": (message(text()), [Text("a")]),
    "several texts": (message(text(), text("b")), [Text("a"), Text("b")]),
    "nothing": (message(stop="max_tokens"), []),
    "calls": (
        message(text("wait"), call({"q": "x"}), call(call_id="toolu_2"), stop="tool_use"),
        [
            Text("wait"), ToolCall(0, "toolu_1", "look", '{"q": "x"}', verdict=COMPLETE),
            ToolCall(1, "toolu_2", "look", "", verdict=Verdict("empty")),
        ],
    ),
    "a call with more": (message(call({"q": 1}, toolset_name="browser"), stop="tool_use"), [ToolCall(
        0, "toolu_1", "look", '{"q": 1}', verdict=COMPLETE, extras={"toolset_name": "browser"},
    )]),
    "thinking": (
        message({"type": "thinking", "thinking": "h", "signature": "S"}, REDACTED, text()),
        [Reasoning("h", "summary", Opaque("anthropic", "S")), RedactedReasoning(Opaque("anthropic", "D")), Text("a")],
    ),
    "thinking that is not shown": (
        message({"type": "thinking", "thinking": "", "signature": "S"}, text()),
        [Reasoning("", "raw", Opaque("anthropic", "S")), Text("a")],
    ),
    "what was sealed": (
        message(
            {"type": "thinking", "thinking": "h", "signature": seal("reasoning", "google", "R")}, text(),
            {"type": "redacted_thinking", "data": seal("text", "google", "T")},
            {"type": "redacted_thinking", "data": seal("opaque", "openai", "O")},
            {"type": "redacted_thinking", "data": seal("call", "google", "C")}, call({"q": 1}),
            {"type": "redacted_thinking", "data": seal("part", "google", "P")}, stop="tool_use",
        ),
        [
            Reasoning("h", "summary", Opaque("google", "R")), Text("a", Opaque("google", "T")), RedactedReasoning(Opaque("openai", "O")),
            ToolCall(0, "toolu_1", "look", '{"q": 1}', verdict=COMPLETE, signature=Opaque("google", "C")), Text("", Opaque("google", "P")),
        ],
    ),
    "citations": (
        message(text("a", citations=[CITATION, CITATION]), text("b", citations=[CITATION])),
        [
            Text("a"), *[Aside("anthropic", "citation", "citations_delta", CITATION)] * 2, Text("b"),
            Aside("anthropic", "citation", "citations_delta", CITATION, block=1),
        ],
    ),
    "a server's tool": (
        message({**SERVER, "input": json.loads(SEARCH_INPUT)}, SEARCHED, text(), stop="pause_turn"),
        [*frames(0, {**SERVER, "input": {}}, {"type": "input_json_delta", "partial_json": SEARCH_INPUT}), *frames(1, SEARCHED), Text("a")],
    ),
    "a server's tool without input": (message({**SERVER, "input": {}}), frames(0, {**SERVER, "input": {}})),
    "a compaction": (message(COMPACTION, stop="compaction"), frames(0, COMPACTION)),
    "a refusal with its details": (message(text(), stop="refusal", stop_details=DETAILS), [Text("a"), Aside(
        "anthropic", "metadata", "message_delta.stop_details", DETAILS,
    )]),
    "a container": (message(text(), container=CONTAINER), [Text("a"), Aside(
        "anthropic", "metadata", "message_delta.container", CONTAINER,
    )]),
}  # fmt: skip

STOPS = [
    ("end_turn", "stop", None),
    ("stop_sequence", "stop_sequence", "END"),
    ("max_tokens", "length", None),
    ("model_context_window_exceeded", "context_full", None),
    ("pause_turn", "pause", None),
    ("refusal", "refusal", None),
]  # fmt: skip


def test_arguments_keep_their_text_with_characters_for_escapes():
    arguments = '{"z": 1.0, "a": 1e21, "n": 18446744073709551616, "e": "\\u00e9"}'
    raw = json.dumps(message(call(), {**SERVER, "input": {}}, call(call_id="toolu_2"), stop="tool_use")).encode()
    raw = raw.replace(b'"input": {}', b'"input": ' + arguments.encode())
    found = decode_response(raw, "anthropic")
    text = arguments.replace("\\u00e9", "é")
    assert [each.arguments for each in found.tool_calls] == [text, text]
    assert encode_response(found, "anthropic").count(b'"input":' + text.encode()) == 3


def test_a_call_that_is_said_again_is_one():
    once, again = call({"q": 1}), call({"q": 1})
    found = ANTHROPIC.read(message(once, again, stop="tool_use"))
    assert [each.id for each in found.tool_calls] == ["toolu_1"]
    assert found.report.repairs == {"arguments_repeated": 1}
    for other in call({"q": 2}), {**once, "name": "see"}, call({"q": 1}, "toolu_2"):
        assert len(ANTHROPIC.read(message(once, other, stop="tool_use")).tool_calls) == 2


def test_members_that_the_schema_demands_are_written_and_say_nothing():
    body = message(text("a", citations=None), call(), stop="tool_use", usage=dict.fromkeys(NO_COUNTS) | USAGE)
    found, written = ANTHROPIC.read(body), ANTHROPIC.write(ANTHROPIC.read(body))[0]
    assert written == whole(message(text(), call(), stop="tool_use"))
    assert (
        ANTHROPIC.read(written).choices
        == found.choices
        == ANTHROPIC.read(message(text(), call(), stop="tool_use")).choices
    )
    assert ANTHROPIC.read(written).usage == found.usage == UsageReported(9, 3, 1, 7, None, 16, USAGE, "anthropic")
    assert (found.extras, found.choices[0].asides, found.tool_calls[0].extras) == ({}, [], None)


# -- bodies that are no answer -----------------------------------------------------------------------------------------


ERRORS = [
    ("invalid_request_error", "invalid_request"),
    ("authentication_error", "auth"),
    ("billing_error", "billing"),
    ("permission_error", "permission"),
    ("not_found_error", "not_found"),
    ("request_too_large", "too_large"),
    ("rate_limit_error", "rate_limit"),
    ("api_error", "server"),
    ("timeout_error", "timeout"),
    ("overloaded_error", "unavailable"),
    ("something_new", "server"),
]  # fmt: skip

OTHERS = [
    (b"", NotThisDialect, "no JSON object"),
    (b"<html>", NotThisDialect, "<html>"),
    (b"event: message_start\ndata: {}\n\n", NotThisDialect, "event: message_start"),
    (b'{"object":"chat.completion","choices":[]}', NotThisDialect, "chat.completion"),
    (b'{"type":"ping"}', NotThisDialect, "ping"),
    (b'{"type":"message","content":[', BrokenFrame, "no JSON"),
]  # fmt: skip

MENDED = [
    (message("odd", text()), {"object_missing": 1}, "odda"),
    (message({"text": "x"}, text()), {"field_invalid": 1}, "a"),
    (message(text(), stop="tool_use"), {"calls_without_call": 1}, "a"),
    (message(call(), text()), {"stop_with_calls": 1}, "a"),
    (message(content="a"), {"object_missing": 1}, "a"),
    (message(call(id=None), stop="tool_use"), {"id_missing": 1}, ""),
]  # fmt: skip


@pytest.mark.parametrize("name", MESSAGES)
def test_whatever_stands_in_a_body_it_is_read_or_refused(name):
    for odd in spoilt(MESSAGES[name][0]):
        try:
            ANTHROPIC.write(decode_response(json.dumps(odd).encode(), "anthropic"))
        except StreamError:
            continue


# -- what other dialects said ------------------------------------------------------------------------------------------

CALL = ToolCall(0, "c1", "look", '{"q":1.0}', verdict=COMPLETE)
CALLED = {"type": "tool_use", "id": "c1", "name": "look", "input": {"q": 1.0}}

#: Parts, their stop reason, the content, the stop reason written, and the losses.
FOREIGN: dict[str, tuple[list[Any], str, list[dict[str, Any]], str, dict[str, int]]] = {
    "text": ([Text("a")], "stop", [text()], "end_turn", {}),
    "a refusal": ([Refusal("no")], "refusal", [text("no")], "refusal", {"refusal_as_text": 1}),
    "a filter": ([Text("a")], "content_filter", [text()], "refusal", {"stop_reason": 1}),
    "an unknown reason": ([Text("a")], "other", [text()], "end_turn", {"stop_reason": 1}),
    "reasoning": ([Reasoning("h"), Text("a")], "stop", [{"type": "thinking", "thinking": "h", "signature": ""}, text()], "end_turn", {}),
    "signatures of others": (
        [
            Reasoning("h", "raw", Opaque("openai", "R")), Text("a", Opaque("google", "T")), Text("", Opaque("google", "P")),
            RedactedReasoning(Opaque("openai", "O")),
            ToolCall(0, "c1", "look", '{"q":1.0}', verdict=COMPLETE, signature=Opaque("google", "C")),
        ],
        "tool_calls",
        [
            {"type": "thinking", "thinking": "h", "signature": seal("reasoning", "openai", "R")}, text(),
            {"type": "redacted_thinking", "data": seal("text", "google", "T")},
            {"type": "redacted_thinking", "data": seal("part", "google", "P")},
            {"type": "redacted_thinking", "data": seal("opaque", "openai", "O")},
            {"type": "redacted_thinking", "data": seal("call", "google", "C")}, CALLED,
        ],
        "tool_use", {},
    ),
    "arguments": (
        [
            ToolCall(0, "c1", "look", ""), ToolCall(1, "c2", "look", "{oops"), ToolCall(2, "c3", "look", "[1]"),
            ToolCall(3, "c4", "run", "free", "custom"),
        ],
        "tool_calls",
        [
            call(call_id="c1"), call({"_raw_arguments": "{oops"}, "c2"), call({"_raw_arguments": "[1]"}, "c3"),
            {**call({"input": "free"}, "c4"), "name": "run"},
        ],
        "tool_use", {"arguments_wrapped": 2, "custom_tool_wrapped": 1},
    ),
    "a call that was cut off, one without a name, and a good one": (
        [ToolCall(0, "c0", "look", '{"q":'), ToolCall(1, "c2", "", "{}"), CALL], "length", [CALLED], "max_tokens", {"call_withheld": 2},
    ),
    "only a call that was cut off": ([ToolCall(0, "c0", "look", '{"q":')], "tool_calls", [], "max_tokens", {
        "call_withheld": 1, "stop_reason": 1,
    }),
    "members of a call": ([ToolCall(0, "c1", "look", '{"q":1.0}', extras={"x": 1})], "tool_calls", [CALLED], "tool_use", {"metadata": 1}),
    "asides": (
        [Text("a"), Aside("openai", "citation", "annotation", {}), Aside("openai", "logprobs", "logprobs", {})], "stop", [text()],
        "end_turn", {"citation": 1, "logprobs": 1},
    ),
}  # fmt: skip


def test_a_part_that_no_response_has_is_the_programs_mistake():
    with pytest.raises(TypeError, match="a response can't contain a ToolResult"):
        ANTHROPIC.write(ANTHROPIC.response(ToolResult("c")))


# -- the recordings ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["stop", "tool", "think"])
async def test_another_translators_stream_and_whole_response_are_one(name):
    folder = require_corpora() / "looplj+axonhub/internal/llm/transformer/anthropic/testdata"
    lines = (folder / f"anthropic-{name}.stream.jsonl").read_text("utf-8").splitlines()
    sent = [json.loads(line) for line in lines]
    stream = b"".join(serialize_sse(frame["Data"].encode(), event=frame["Type"]) for frame in sent)
    body = json.loads((folder / f"anthropic-{name}.response.json").read_text("utf-8"))
    for block in body["content"]:
        if block["type"] == "thinking":
            block["signature"] = ""  # of which the type makes a must, signed or not
    expected = whole({**body, "stop_sequence": None})
    assert ANTHROPIC.write(await collect(source_of([stream]), "anthropic"))[0] == expected
    assert ANTHROPIC.write(ANTHROPIC.read(body))[0] == expected


async def test_a_stream_has_every_member_that_the_schema_demands_as_well():
    chunks = [
        {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "a"}}]},
        {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "t", "function": {"name": "f"}}]}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    ]
    chat = b"".join(b"data: %b\n\n" % orjson.dumps(each) for each in chunks) + b"data: [DONE]\n\n"
    async with transcode(source_of([chat]), "openai-chat", "anthropic") as stream:
        written = b"".join([chunk async for chunk in stream])
    events = {
        each["type"]: each for each in (orjson.loads(line[6:]) for line in written.splitlines() if b"data: " in line)
    }
    zero = {"input_tokens": 0, "output_tokens": 0}
    assert whole(events["message_start"]["message"]) == events["message_start"]["message"]
    assert events["message_start"]["message"]["usage"] == NO_COUNTS | zero
    assert events["content_block_start"]["content_block"]["caller"] == {"type": "direct"}
    assert events["message_delta"]["delta"].items() >= {"stop_details": None, "container": None}.items()
    beside = ["cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens_details", "server_tool_use"]
    assert events["message_delta"]["usage"] == dict.fromkeys(beside) | zero


# -- the official client -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in (*MESSAGES, *FOREIGN) if name != "a compaction"])  # of the beta
def test_the_official_client_reads_it(client, replay, name):
    if name in MESSAGES:
        body, _ = MESSAGES[name]
    else:
        parts, stop, *_ = FOREIGN[name]
        body, _ = ANTHROPIC.write(ANTHROPIC.response(*parts, stop=stop))
    model = replay.register(orjson.dumps(body), "application/json")
    sent = {"model": model, "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    found = client("anthropic").messages.create(**sent)
    assert json.loads(found.to_json(exclude_unset=True)) == body
    type(found).model_validate(found.model_dump())  # what came is what its types promise


def test_an_error_is_what_the_clients_types_promise():
    shared = pytest.importorskip("anthropic.types.shared", reason="extra `clients`")
    said = ANTHROPIC.response()
    said.error = ProviderFailed("unavailable", "later", vendor="openai")
    found = shared.ErrorResponse.model_validate(ANTHROPIC.write(said)[0])
    assert (found.error.type, found.error.message) == ("overloaded_error", "later")


# -- all rows ----------------------------------------------------------------------------------------------------------

DETAILED = {**USAGE, "cache_creation": {"ephemeral_5m_input_tokens": 1}, "service_tier": "standard", "speed": None}
COUNTED = message(text(), usage=DETAILED, diagnostics={"cache_miss_reason": None}, context_management={"x": 1})
OWN_CODE = {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}
PIECES = [{"type": "compaction_delta", "content": "c", "encrypted_content": "E"}, "odd"]
WELL = {"clean": True, "id": "i", "model": "m", "vendor": "anthropic"}


def kept(body: dict[str, Any], parts: list[Any] | None, **said: Any) -> Row:
    return Row(body, parts, said={**WELL, **said}, written=whole(body), losses={})


def error(told: Any) -> dict[str, Any]:
    return {"type": "error", "error": told}


ROWS = {
    **rows("messages", MESSAGES, kept),
    **rows("stops", STOPS, lambda native, reason, sequence: Row(
        message(text(), stop=native, stop_sequence=sequence), None,
        {"choices[0].stop_reason": reason, "choices[0].native_stop_reason": native, "choices[0].stop_sequence": sequence},
        written=whole(message(text(), stop=native, stop_sequence=sequence)),
    )),
    "counts and members beside the content": kept(
        COUNTED, [Text("a"), Aside("anthropic", "metadata", "beside_delta.context_management", {"x": 1})],
        usage=UsageReported(9, 3, 1, 7, None, 16, DETAILED, "anthropic"), extras={"diagnostics": {"cache_miss_reason": None}},
    ),
    "a call of the server's own code": kept(
        message(call({"q": 1}, caller=OWN_CODE), stop="tool_use"),
        [ToolCall(0, "toolu_1", "look", '{"q": 1}', verdict=COMPLETE, extras={"caller": OWN_CODE})],
    ),
    "an unsigned thought": Row(
        message({"type": "thinking", "thinking": "h"}), at={"content": [{"type": "thinking", "thinking": "h", "signature": ""}]}
    ),
    **rows("errors", ERRORS, lambda native, kind: Row(
        {**error({"type": native, "message": "no", "details": {"x": 1}}), "request_id": "req_1"}, None,
        {"error.type": kind, "error.native_type": native, "error.message": "no", "clean": False},
        written={**error({"type": native, "message": "no", "details": {"x": 1}}), "request_id": "req_1"}, losses={},
    )),
    **rows("errors of another form", [{"message": "no"}, "no", {"type": "api_error", "message": "no"}], lambda told: Row(
        {"error": told}, None, {"error.message": "no"}, {"error_shape": 1}, error({"type": "api_error", "message": "no"})
    )),
    **rows("of another kind", OTHERS, ANTHROPIC.refused),
    **rows("mended", MENDED, lambda body, repairs, text: ANTHROPIC.mended(body, repairs, text=text)),
    "too many blocks": Row(message(text(), text(), text()), refused=(TooManyBlocks, ""), options={"limits": Limits(content_blocks=2)}),
    "no stop reason": Row(message(text(), stop=None), None, {"clean": False, "text": "a", "choices[0].stop_reason": None}),
    **rows("another dialect", FOREIGN, lambda parts, stop, content, reason, losses: ANTHROPIC.of_another(
        ANTHROPIC.response(*parts, stop=stop), whole(message(*content, stop=reason)), losses, withheld=losses.get("call_withheld", 0)
    )),
    "what is beside the content": ANTHROPIC.of_another(
        evolve(
            ANTHROPIC.foreign, extras={"system_fingerprint": "f"}, usage=None, id=None,
            choices=[Choice(parts=[Text("a")], stop_reason="stop"), Choice(1, parts=[Text("b")], stop_reason="stop"), Choice(2)],
        ),
        whole({**message(text()), "id": "msg_1", "usage": {"input_tokens": 0, "output_tokens": 0}}),
        {"response_fields": 1, "extra_choice": 2, "usage_unknown": 1},
    ),
    "a stop sequence that was met": ANTHROPIC.of_another(
        evolve(ANTHROPIC.foreign, choices=[Choice(parts=[Text("a")], stop_reason="stop_sequence", stop_sequence="END")]),
        whole(message(text(), stop="stop_sequence", stop_sequence="END")),
    ),
    "frames that no body has": ANTHROPIC.of_another(
        ANTHROPIC.response(
            Text("a"), Aside("anthropic", "unknown_event", "new_event", {"type": "new_event"}), Aside("anthropic", "metadata", "delta.x", 1),
            vendor="anthropic",
        ),
        whole(message(text())), [("unknown_event", "new_event"), ("metadata", "delta.x")],
    ),
    "a compaction in pieces": ANTHROPIC.of_another(
        ANTHROPIC.response(
            frames(0, {"type": "compaction", "content": None})[0],
            *[
                Aside("anthropic", "unknown_event", "content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta})
                for delta in PIECES
            ],
            frames(0, {"type": "compaction"})[1], vendor="anthropic",
        ),
        None, [("unknown_event", "content_block_delta")], at={"content": [COMPACTION]},
    ),
    "an image that a model made": ANTHROPIC.of_another(
        ANTHROPIC.response(Text("a"), Media("image", data="AA==")), whole(message(text())), {"media_output": 1}
    ),
    "a response that was cut": ANTHROPIC.of_another(
        ANTHROPIC.response(Text("a"), CALL, clean=False), None, {"answer_withheld": 1}, withheld=1, at={"type": "error", "error.type": "api_error"}
    ),
    "an error of another dialect": ANTHROPIC.of_another(
        ANTHROPIC.response(error=ProviderFailed("rate_limit", "slow down", "requests", "rate_limited", vendor="openai")),
        error({"type": "rate_limit_error", "message": "slow down"}), {"error_detail": 1},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_a_response(name):
    ANTHROPIC.check(ROWS[name])
