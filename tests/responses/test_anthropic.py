"""Whole responses of Anthropic: read, written, and written for what other dialects said.

Source: dialects.md §3.1, §3.3, §7.1, §7.2, §7.5, §7.6; quirks.md R14.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import orjson
import pytest

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
from streamkit.dialects import DIALECTS
from streamkit.dialects.vocabulary.sealed_reasoning import seal
from streamkit.errors import BrokenFrame, NotThisDialect, StreamError, TooManyBlocks
from streamkit.events import Aside, Opaque, ProviderFailed, UsageReported, Verdict
from streamkit.framing.sse import serialize_sse
from streamkit.limits import Limits
from streamkit.read_options import ReadOptions
from streamkit.recipes import collect, transcode
from streamkit.report import StreamReport
from streamkit.testing import source_of
from streamkit.translation.bodies import decode_response, encode_response
from tests.corpora import recordings, require_corpora
from tests.requests.spoilt import spoilt

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
NO_COUNTS = dict.fromkeys(
    [
        "cache_read_input_tokens", "cache_creation_input_tokens", "cache_creation", "inference_geo", "output_tokens_details",
        "server_tool_use", "service_tier",
    ]
)  # fmt: skip
IN_BLOCKS: dict[str, Any] = {"text": {"citations": []}, "tool_use": {"caller": {"type": "direct"}}}


def whole(body: dict[str, Any]) -> dict[str, Any]:
    """A message as it is written: with every member that the schema demands."""
    content = [{**IN_BLOCKS.get(block["type"], {}), **block} for block in body["content"]]
    usage = {**NO_COUNTS, **body["usage"]}
    return {"stop_details": None, "container": None, **body, "content": content, "usage": usage}


def read(body: dict[str, Any], dialect: str = "anthropic", **options: Any) -> Response:
    report = options.pop("report", None)
    return decode_response(json.dumps(body).encode(), dialect, ReadOptions(**options), report=report)


def write(response: Response, to: str = "anthropic", **options: Any) -> tuple[dict[str, Any], StreamReport]:
    report = StreamReport()
    fixed = {"make_id": lambda prefix: f"{prefix}1", "clock": lambda: 1.0}
    return json.loads(encode_response(response, to, report=report, **fixed, **options)), report


def response(*parts: Any, stop: Any = "stop", vendor: str = "openai", **members: Any) -> Response:
    choice = Choice(parts=list(parts), stop_reason=stop)
    members.setdefault("usage", UsageReported(9, 3, 1, 7, None, 16))
    return Response("openai-chat", id="i", model="m", created=1, vendor=vendor, choices=[choice], clean=True, **members)


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
            Text("wait"),
            ToolCall(0, "toolu_1", "look", '{"q": "x"}', verdict=COMPLETE),
            ToolCall(1, "toolu_2", "look", "", verdict=Verdict("empty")),
        ],
    ),
    "a call with more": (
        message(call({"q": 1}, toolset_name="browser"), stop="tool_use"),
        [
            ToolCall(
                0,
                "toolu_1",
                "look",
                '{"q": 1}',
                verdict=COMPLETE,
                extras={"toolset_name": "browser"},
            )
        ],
    ),
    "thinking": (
        message({"type": "thinking", "thinking": "h", "signature": "S"}, REDACTED, text()),
        [
            Reasoning("h", "summary", Opaque("anthropic", "S")),
            RedactedReasoning(Opaque("anthropic", "D")),
            Text("a"),
        ],
    ),
    "thinking that is not shown": (
        message({"type": "thinking", "thinking": "", "signature": "S"}, text()),
        [Reasoning("", "raw", Opaque("anthropic", "S")), Text("a")],
    ),
    "what was sealed": (
        message(
            {"type": "thinking", "thinking": "h", "signature": seal("reasoning", "google", "R")},
            text(),
            {"type": "redacted_thinking", "data": seal("text", "google", "T")},
            {"type": "redacted_thinking", "data": seal("opaque", "openai", "O")},
            {"type": "redacted_thinking", "data": seal("call", "google", "C")},
            call({"q": 1}),
            {"type": "redacted_thinking", "data": seal("part", "google", "P")},
            stop="tool_use",
        ),
        [
            Reasoning("h", "summary", Opaque("google", "R")),
            Text("a", Opaque("google", "T")),
            RedactedReasoning(Opaque("openai", "O")),
            ToolCall(0, "toolu_1", "look", '{"q": 1}', verdict=COMPLETE, signature=Opaque("google", "C")),
            Text("", Opaque("google", "P")),
        ],
    ),
    "citations": (
        message(text("a", citations=[CITATION, CITATION]), text("b", citations=[CITATION])),
        [
            Text("a"),
            *[Aside("anthropic", "citation", "citations_delta", CITATION)] * 2,
            Text("b"),
            Aside("anthropic", "citation", "citations_delta", CITATION, block=1),
        ],
    ),
    "a server's tool": (
        message({**SERVER, "input": json.loads(SEARCH_INPUT)}, SEARCHED, text(), stop="pause_turn"),
        [
            *frames(0, {**SERVER, "input": {}}, {"type": "input_json_delta", "partial_json": SEARCH_INPUT}),
            *frames(1, SEARCHED),
            Text("a"),
        ],
    ),
    "a server's tool without input": (message({**SERVER, "input": {}}), frames(0, {**SERVER, "input": {}})),
    "a compaction": (message(COMPACTION, stop="compaction"), frames(0, COMPACTION)),
    "a refusal with its details": (
        message(text(), stop="refusal", stop_details=DETAILS),
        [Text("a"), Aside("anthropic", "metadata", "message_delta.stop_details", DETAILS)],
    ),
    "a container": (
        message(text(), container=CONTAINER),
        [Text("a"), Aside("anthropic", "metadata", "message_delta.container", CONTAINER)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MESSAGES)
def test_messages_are_parts_and_come_back(name):
    body, parts = MESSAGES[name]
    found = read(body)
    [choice] = found.choices
    assert choice.parts == parts
    assert (found.id, found.model, found.vendor, found.clean) == ("i", "m", "anthropic", True)
    assert found.report.repairs == Counter()
    written, report = write(found)
    assert written == whole(body)
    assert report.losses == Counter()
    assert read(written).choices == found.choices


@pytest.mark.parametrize(
    ("native", "reason", "sequence"),
    [
        ("end_turn", "stop", None),
        ("stop_sequence", "stop_sequence", "END"),
        ("max_tokens", "length", None),
        ("model_context_window_exceeded", "context_full", None),
        ("pause_turn", "pause", None),
        ("refusal", "refusal", None),
    ],
)
def test_stop_reasons(native, reason, sequence):
    body = message(text(), stop=native, stop_sequence=sequence)
    [choice] = read(body).choices
    assert (choice.stop_reason, choice.native_stop_reason, choice.stop_sequence) == (reason, native, sequence)
    assert write(read(body))[0] == whole(body)


def test_counts_and_fields_beside_the_content():
    usage = {**USAGE, "cache_creation": {"ephemeral_5m_input_tokens": 1}, "service_tier": "standard", "speed": None}
    body = message(text(), usage=usage, diagnostics={"cache_miss_reason": None}, context_management={"x": 1})
    found = read(body)
    assert found.usage == UsageReported(9, 3, 1, 7, None, 16, usage, "anthropic")
    assert found.extras == {"diagnostics": {"cache_miss_reason": None}}
    assert found.choices[0].asides == [Aside("anthropic", "metadata", "beside_delta.context_management", {"x": 1})]
    assert write(found)[0] == whole(body)


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
    found = read(message(once, again, stop="tool_use"))
    assert [each.id for each in found.tool_calls] == ["toolu_1"]
    assert found.report.repairs == {"arguments_repeated": 1}
    for other in call({"q": 2}), {**once, "name": "see"}, call({"q": 1}, "toolu_2"):
        assert len(read(message(once, other, stop="tool_use")).tool_calls) == 2


def test_members_that_the_schema_demands_are_written_and_say_nothing():
    body = message(text("a", citations=None), call(), stop="tool_use", usage=dict.fromkeys(NO_COUNTS) | USAGE)
    found, written = read(body), write(read(body))[0]
    assert written == whole(message(text(), call(), stop="tool_use"))
    assert read(written).choices == found.choices == read(message(text(), call(), stop="tool_use")).choices
    assert read(written).usage == found.usage == UsageReported(9, 3, 1, 7, None, 16, USAGE, "anthropic")
    assert (found.extras, found.choices[0].asides, found.tool_calls[0].extras) == ({}, [], None)


def test_a_call_of_the_servers_own_code_says_so():
    caller = {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}
    body = message(call(caller=caller), stop="tool_use")
    found = read(body)
    assert found.tool_calls[0].extras == {"caller": caller}
    assert write(found)[0] == whole(body)


def test_an_unsigned_thought_has_an_empty_signature():
    assert write(read(message({"type": "thinking", "thinking": "h"})))[0]["content"] == [
        {"type": "thinking", "thinking": "h", "signature": ""}
    ]


# -- bodies that are no answer -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("invalid_request_error", "invalid_request"), ("authentication_error", "auth"), ("billing_error", "billing"),
        ("permission_error", "permission"), ("not_found_error", "not_found"), ("request_too_large", "too_large"),
        ("rate_limit_error", "rate_limit"), ("api_error", "server"), ("timeout_error", "timeout"),
        ("overloaded_error", "unavailable"), ("something_new", "server"),
    ],
)  # fmt: skip
def test_an_error_body_is_no_exception_and_comes_back_as_it_was(error, kind):
    body = {"type": "error", "error": {"type": error, "message": "no", "details": {"x": 1}}, "request_id": "req_1"}
    found = read(body)
    assert found.error is not None
    assert (found.error.type, found.error.native_type, found.error.message) == (kind, error, "no")
    assert (found.clean, found.report.repairs) == (False, Counter())
    written, report = write(found)
    assert written == body
    assert report.losses == Counter()


@pytest.mark.parametrize("error", [{"message": "no"}, "no", {"type": "api_error", "message": "no"}])
def test_an_error_of_another_form_is_read_and_counted(error):
    found = read({"error": error})
    assert found.error is not None
    assert found.error.message == "no"
    assert found.report.repairs == Counter(error_shape=1)
    assert write(found)[0] == {"type": "error", "error": {"type": "api_error", "message": "no"}}


@pytest.mark.parametrize(
    ("body", "error", "words"),
    [
        (b"", NotThisDialect, "no JSON object"),
        (b"<html>", NotThisDialect, "<html>"),
        (b"event: message_start\ndata: {}\n\n", NotThisDialect, "event: message_start"),
        (b'{"object":"chat.completion","choices":[]}', NotThisDialect, "chat.completion"),
        (b'{"type":"ping"}', NotThisDialect, "ping"),
        (b'{"type":"message","content":[', BrokenFrame, "no JSON"),
    ],
)
def test_a_body_of_another_kind_is_refused_with_what_was_found(body, error, words):
    with pytest.raises(error, match=words):
        decode_response(body, "anthropic")


@pytest.mark.parametrize(
    ("body", "repairs", "said"),
    [
        (message("odd", text()), {"object_missing": 1}, "odda"),
        (message({"text": "x"}, text()), {"field_invalid": 1}, "a"),
        (message(text(), stop="tool_use"), {"calls_without_call": 1}, "a"),
        (message(call(), text()), {"stop_with_calls": 1}, "a"),
        (message(content="a"), {"object_missing": 1}, "a"),
        (message(call(id=None), stop="tool_use"), {"id_missing": 1}, ""),
    ],
)
def test_what_servers_get_wrong_is_a_counted_repair(body, repairs, said):
    found = read(body)
    assert (found.text, found.clean) == (said, True)
    assert dict(found.report.repairs) == repairs


@pytest.mark.parametrize("name", MESSAGES)
def test_whatever_stands_in_a_body_it_is_read_or_refused(name):
    for odd in spoilt(MESSAGES[name][0]):
        try:
            write(decode_response(json.dumps(odd).encode(), "anthropic"))
        except StreamError:
            continue


def test_a_message_without_a_stop_reason_is_no_success():
    found = read(message(text(), stop=None))
    assert (found.clean, found.text, found.choices[0].stop_reason) == (False, "a", None)


def test_blocks_are_bounded():
    with pytest.raises(TooManyBlocks):
        read(message(text(), text(), text()), limits=Limits(content_blocks=2))


# -- what other dialects said ------------------------------------------------------------------------------------------

CALL = ToolCall(0, "c1", "look", '{"q":1.0}', verdict=COMPLETE)
CALLED = {"type": "tool_use", "id": "c1", "name": "look", "input": {"q": 1.0}}

#: Parts, their stop reason, the content, the stop reason written, and the losses.
FOREIGN: dict[str, tuple[list[Any], str, list[dict[str, Any]], str, dict[str, int]]] = {
    "text": ([Text("a")], "stop", [text()], "end_turn", {}),
    "a refusal": ([Refusal("no")], "refusal", [text("no")], "refusal", {"refusal_as_text": 1}),
    "a filter": ([Text("a")], "content_filter", [text()], "refusal", {"stop_reason": 1}),
    "an unknown reason": ([Text("a")], "other", [text()], "end_turn", {"stop_reason": 1}),
    "reasoning": (
        [Reasoning("h"), Text("a")], "stop", [{"type": "thinking", "thinking": "h", "signature": ""}, text()], "end_turn", {},
    ),
    "signatures of others": (
        [
            Reasoning("h", "raw", Opaque("openai", "R")), Text("a", Opaque("google", "T")), Text("", Opaque("google", "P")),
            RedactedReasoning(Opaque("openai", "O")),
            ToolCall(0, "c1", "look", '{"q":1.0}', verdict=COMPLETE, signature=Opaque("google", "C")),
        ],
        "tool_calls",
        [
            {"type": "thinking", "thinking": "h", "signature": seal("reasoning", "openai", "R")},
            text(),
            {"type": "redacted_thinking", "data": seal("text", "google", "T")},
            {"type": "redacted_thinking", "data": seal("part", "google", "P")},
            {"type": "redacted_thinking", "data": seal("opaque", "openai", "O")},
            {"type": "redacted_thinking", "data": seal("call", "google", "C")},
            CALLED,
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
        [ToolCall(0, "c0", "look", '{"q":'), ToolCall(1, "c2", "", "{}"), CALL],
        "length", [CALLED], "max_tokens", {"call_withheld": 2},
    ),
    "only a call that was cut off": (
        [ToolCall(0, "c0", "look", '{"q":')], "tool_calls", [], "end_turn", {"call_withheld": 1, "stop_reason": 1},
    ),
    "members of a call": (
        [ToolCall(0, "c1", "look", '{"q":1.0}', extras={"x": 1})], "tool_calls", [CALLED], "tool_use", {"metadata": 1},
    ),
    "asides": (
        [Text("a"), Aside("openai", "citation", "annotation", {}), Aside("openai", "logprobs", "logprobs", {})],
        "stop", [text()], "end_turn", {"citation": 1, "logprobs": 1},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FOREIGN)
def test_what_another_dialect_said(name):
    parts, stop, content, reason, losses = FOREIGN[name]
    written, report = write(response(*parts, stop=stop))
    assert written == whole(message(*content, stop=reason))
    assert dict(report.losses) == losses
    assert len(report.withheld) == losses.get("call_withheld", 0)


def test_what_stands_beside_the_content_of_another_dialect():
    said = response(Text("a"), extras={"system_fingerprint": "f"}, usage=None)
    said.choices += [Choice(1, parts=[Text("b")], stop_reason="stop"), Choice(2)]
    said.id = None
    written, report = write(said)
    zero = {"input_tokens": 0, "output_tokens": 0}
    assert written == whole({**message(text()), "id": "msg_1", "usage": zero})
    assert report.losses == Counter(response_fields=1, extra_choice=2, usage_unknown=1)


def test_a_stop_sequence_that_was_met_is_written():
    said = response(Text("a"), stop="stop_sequence")
    said.choices[0].stop_sequence = "END"
    assert write(said)[0] == whole(message(text(), stop="stop_sequence", stop_sequence="END"))


def test_frames_of_this_vendor_that_no_body_has_are_losses():
    new = Aside("anthropic", "unknown_event", "new_event", {"type": "new_event"})
    said = response(Text("a"), new, Aside("anthropic", "metadata", "delta.x", 1), vendor="anthropic")
    written, report = write(said)
    assert written == whole(message(text()))
    assert report.lost == [("unknown_event", "new_event"), ("metadata", "delta.x")]


def test_a_compaction_that_came_in_pieces_is_one_block():
    start, stop = frames(0, {"type": "compaction", "content": None})
    delta = {"type": "compaction_delta", "content": "c", "encrypted_content": "E"}
    piece = {"type": "content_block_delta", "index": 0, "delta": delta}
    odd = {"type": "content_block_delta", "index": 0, "delta": "odd"}
    asides = [Aside("anthropic", "unknown_event", "content_block_delta", raw) for raw in (piece, odd)]
    written, report = write(response(start, *asides, stop, vendor="anthropic"))
    assert written["content"] == [COMPACTION]
    assert report.lost == [("unknown_event", "content_block_delta")]


def test_a_part_that_no_response_has_is_the_programs_mistake():
    with pytest.raises(TypeError, match="a response has no ToolResult"):
        write(response(ToolResult("c")))


def test_an_image_that_a_model_made_has_no_place():
    written, report = write(response(Text("a"), Media("image", data="AA==")))
    assert [block["type"] for block in written["content"]] == ["text"]
    assert report.losses == {"media_output": 1}


def test_a_response_that_was_cut_is_an_error_and_never_an_answer():
    said = response(Text("a"), CALL)
    said.clean = False
    written, report = write(said)
    assert written["type"] == "error"
    assert written["error"]["type"] == "api_error"
    assert report.losses == Counter(answer_withheld=1)
    assert [each.arguments for each in report.withheld] == [CALL.arguments]


def test_an_error_of_another_dialect():
    said = response()
    said.error = ProviderFailed("rate_limit", "slow down", "requests", "rate_limited", vendor="openai")
    written, report = write(said)
    assert written == {"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}}
    assert report.losses["error_detail"] == 1


# -- the recordings ----------------------------------------------------------------------------------------------------


async def test_a_recorded_stream_as_a_whole_body_says_the_same():
    for recorded in recordings("anthropic"):
        streamed = await collect(source_of([recorded.body]), "anthropic")
        if not streamed.clean:
            continue
        body, report = write(streamed)
        found = read(body)
        assert write(found)[0] == body, recorded.name
        assert found.report.repairs == Counter(), recorded.name
        assert (found.clean, found.usage, found.extras) == (True, streamed.usage, streamed.extras), recorded.name
        ours, theirs = found.choices[0], streamed.choices[0]
        assert [meaning(part) for part in ours.parts if not isinstance(part, Aside)] == [
            meaning(part) for part in theirs.parts if not isinstance(part, Aside)
        ], recorded.name
        assert ours.native_stop_reason == theirs.native_stop_reason
        assert not report.losses, recorded.name


def meaning(part: Any) -> Any:
    """A part without what only a stream or only a body says: how an empty input is spelled, white space in arguments."""
    if isinstance(part, ToolCall):
        return part.index, part.id, part.name, json.loads(part.arguments or "{}"), part.extras, part.signature
    return part


@pytest.mark.parametrize("source", [name for name in DIALECTS.built_in if name != "anthropic"])
async def test_a_recorded_stream_of_another_dialect_becomes_a_body(source):
    for recorded in recordings(source):
        streamed = await collect(source_of([recorded.body]), source)
        body, _ = write(streamed)
        found = read(body)
        if not streamed.clean:
            assert found.error is not None
            continue
        assert found.clean, recorded.name
        assert found.report.repairs == Counter(), recorded.name
        assert found.text == streamed.text + (streamed.choices[0].refusal if streamed.choices else ""), recorded.name
        assert found.choices[0].reasoning == (streamed.choices[0].reasoning if streamed.choices else "")
        said = [each for each in streamed.tool_calls if each.verdict and each.verdict.kind in {"complete", "empty"}]
        assert [each.name for each in found.tool_calls if "_raw_arguments" not in each.arguments] == [
            each.name for each in said
        ]


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
    assert write(await collect(source_of([stream]), "anthropic"))[0] == expected
    assert write(read(body))[0] == expected


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
        body, _ = write(response(*parts, stop=stop))
    model = replay.register(orjson.dumps(body), "application/json")
    sent = {"model": model, "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    found = client("anthropic").messages.create(**sent)
    assert json.loads(found.to_json(exclude_unset=True)) == body
    type(found).model_validate(found.model_dump())  # what came is what its types promise


def test_an_error_is_what_the_clients_types_promise():
    shared = pytest.importorskip("anthropic.types.shared", reason="extra `clients`")
    said = response()
    said.error = ProviderFailed("unavailable", "later", vendor="openai")
    found = shared.ErrorResponse.model_validate(write(said)[0])
    assert (found.error.type, found.error.message) == ("overloaded_error", "later")
