"""Whole responses of Ollama: read, written, and written for what other dialects said.

Source: dialects.md §4.1, §4.2, §4.4, §7.1, §7.2; seeds.md S4.
"""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from attrs import evolve

from streamkit.conversation.collector import Collector
from streamkit.conversation.messages import Choice, Reasoning, RedactedReasoning, Refusal, Response, Text, ToolCall
from streamkit.dialects import DIALECTS
from streamkit.dialects.ollama.wire import OllamaClient
from streamkit.errors import NeedsRepair, NotThisDialect
from streamkit.events import Aside, Opaque, ProviderFailed, UsageReported, Verdict
from streamkit.policy import STRICT
from streamkit.report import StreamReport
from streamkit.translation.bodies import encode_response
from tests.clients.shapes import ASK
from tests.laws.running import OURS, maker, recorded, translate
from tests.laws.running import read as read_stream
from tests.responses.rows import Dialect, Row, rows
from tests.vectors.ollama import COUNTS, call

TIME = "2025-01-01T00:00:00.000000Z"
COMPLETE = Verdict("complete")
IDS = OllamaClient(call_ids=True)


def whole(
    content: str = "", *, reason: str | None = "stop", beside: dict[str, Any] | None = None, **message: Any
) -> dict[str, Any]:
    said = {"model": "m", "created_at": TIME, "message": {"role": "assistant", "content": content, **message}}
    return {**said, "done": True, **({} if reason is None else {"done_reason": reason}), **(beside or {})}


OLLAMA = Dialect(
    "ollama",
    Response("openai-chat", model="m", created=1_735_689_600, vendor="openai", clean=True),
    reading=lambda: {"make_id": maker()},
)
said = OLLAMA.response


# -- reading, and back -------------------------------------------------------------------------------------------------


MESSAGES: dict[str, tuple[dict[str, Any], list[Any], str]] = {
    "text": (whole("Hi"), [Text("Hi")], "stop"),
    "no text": (whole(reason="load"), [], "stop"),
    "length": (whole("Hi", reason="length"), [Text("Hi")], "length"),
    "thinking": (whole("Hi", thinking="hm"), [Reasoning("hm"), Text("Hi")], "stop"),
    "calls": (
        whole("so", tool_calls=[call("f", {"x": 1}), call("f", {})]),
        [Text("so"), ToolCall(0, "call_1", "f", '{"x": 1}', verdict=COMPLETE), ToolCall(1, "call_2", "f", "{}", verdict=COMPLETE)],
        "tool_calls",
    ),
    "what only Ollama knows": (
        whole("Hi", mood="calm", beside={"logprobs": [{"token": "Hi", "logprob": -0.5}], "remote_model": "r"}),
        [
            Text("Hi"), Aside("ollama", "metadata", "message.mood", "calm"),
            Aside("ollama", "logprobs", "logprobs", [{"token": "Hi", "logprob": -0.5}]), Aside("ollama", "metadata", "remote_model", "r"),
        ],
        "stop",
    ),
}  # fmt: skip


def test_ids_are_written_for_those_who_read_them():
    body = whole(tool_calls=[call("f", {}, id="a"), call("g", {}, id="b")])
    response = OLLAMA.read(body)
    assert [call.id for call in response.tool_calls] == ["a", "b"]
    assert OLLAMA.write(response, profile=IDS)[0] == body
    without, report = OLLAMA.write(response)
    assert [call.keys() for call in without["message"]["tool_calls"]] == [{"function"}, {"function"}]
    assert report.losses == {"call_id": 2}


def test_a_body_over_many_lines_is_one_body():
    body = b"\n".join(
        orjson.dumps(whole("Hi", tool_calls=[call("f", {"x": 1})]), option=orjson.OPT_INDENT_2).splitlines()
    )
    assert OLLAMA.read(body).text == "Hi"


MENDED = [
    (whole(tool_calls=[call("f", '{"x": 1}')]), {"arguments_not_object": 1}),
    (whole(content=3), {"field_invalid": 1}),
]

ERRORS = [("no such model", "no such model", {}), ({"message": "out", "code": 503}, "out", {"error_shape": 1})]

CUT = [whole("Hi", reason=None), {**whole("Hi"), "done": False}]

OTHERS = [
    b"",
    b"<html>",
    b"[]",
    b'{"choices": []}',
    b'{"type": "message", "content": []}',
    b'{"model": "m", "done',
    orjson.dumps(whole("Hi")) + b"\n" + orjson.dumps(whole("Hi")),
    b'{"model":"m","message":{"content":' + b"[" * 300 + b"]" * 300 + b'},"done":true}',
]  # fmt: skip


# -- written for what other dialects said ------------------------------------------------------------------------------


LOSSES: dict[str, tuple[Response, dict[str, Any], dict[str, int]]] = {
    "text and a refusal": (said(Text("a"), Refusal("no")), whole("ano"), {"refusal_as_text": 1}),
    "several blocks": (
        said(Reasoning("h"), Reasoning("m"), Text("a"), Text(""), Text("b")), whole("ab", thinking="h\n\nm"), {"block_boundary": 2},
    ),
    "another order": (said(Text("a"), Reasoning("h"), Text("b")), whole("ab", thinking="h"), {"block_order": 1, "block_boundary": 1}),
    "signed and encrypted": (
        said(Reasoning("h", signature=Opaque("anthropic", "s")), RedactedReasoning(Opaque("anthropic", "s")), Text("a")),
        whole("a", thinking="h"), {"reasoning_signature": 1, "reasoning_opaque": 1},
    ),
    "a call with all that it may have": (
        said(ToolCall(0, "a", "f", "", signature=Opaque("google", "s"), extras={"x": 1}), stop="tool_calls"),
        whole(tool_calls=[call("f", {})]), {"call_id": 1, "reasoning_signature": 1, "metadata": 1},
    ),
    "a call whose id was made": (
        said(ToolCall(0, "a", "f", " { } ", id_made=True), stop="tool_calls"), whole(tool_calls=[call("f", {})]), {},
    ),
    "a custom call": (
        said(ToolCall(0, "a", "f", "1 + 1", "custom", id_made=True)), whole(tool_calls=[call("f", {"input": "1 + 1"})]),
        {"custom_tool_wrapped": 1},
    ),
    "no JSON": (
        said(ToolCall(0, "a", "f", "oops", id_made=True)), whole(tool_calls=[call("f", {"_raw_arguments": "oops"})]),
        {"arguments_wrapped": 1},
    ),
    "no object": (
        said(ToolCall(0, "a", "f", "[1]", id_made=True)), whole(tool_calls=[call("f", {"_raw_arguments": "[1]"})]),
        {"arguments_wrapped": 1},
    ),
    "a call that broke off": (said(ToolCall(0, "a", "f", '{"x":'), stop="length"), whole(reason="length"), {"call_withheld": 1}),
    "a call without a name": (said(ToolCall(0, "a", "", "{}")), whole(), {"call_withheld": 1}),
    "a stop reason that has no word": (said(Text("a"), stop="other"), whole("a"), {"stop_reason": 1}),
    "a filter": (said(Text("a"), stop="content_filter"), whole("a", reason="length"), {"stop_reason": 1}),
    "a full context": (said(Text("a"), stop="context_full"), whole("a", reason="length"), {"stop_reason": 1}),
    "fields of the response": (said(Text("a"), extras={"system_fingerprint": "f"}), whole("a"), {"response_fields": 1}),
    "what only another knows": (said(Text("a"), Aside("openai", "citation", "annotation", {})), whole("a"), {"citation": 1}),
    "counts of another": (
        said(Text("a"), usage=UsageReported(9, 3, None, 4, None, 13)), whole("a", beside={"prompt_eval_count": 9, "eval_count": 4}),
        {"usage_detail": 1},
    ),
    "no time": (said(Text("a"), created=None), whole("a", beside={"created_at": "1970-01-01T00:00:01.000000Z"}), {}),
    "nothing": (said(), whole(), {}),
}  # fmt: skip


# -- streams as whole bodies -------------------------------------------------------------------------------------------


def streams(source: str) -> list[Any]:
    return [stream for stream in (*OURS, *recorded()) if stream.dialect == source]


def collected(dialect: str, body: bytes) -> Response:
    collector = Collector(dialect, StreamReport())
    collector.feed(read_stream(dialect, [body]).events)
    return collector.finish()


def facts(response: Response) -> list[Any]:
    """What a response said. Streams write what their clients would split lines at otherwise."""
    calls = [(call.name, call.arguments.replace("\\u2028", "\u2028")) for call in response.tool_calls]
    first = response.choices[0]
    counts = response.usage and (response.usage.input_total, response.usage.output_total)
    return [response.text, first.reasoning, calls, first.stop_reason, counts]


@pytest.mark.parametrize("source", DIALECTS)
def test_a_stream_as_a_whole_body_says_the_same_and_loses_the_same(source):
    order = {"block_order"}  # a stream may say text behind a call, and a body no longer tells what came in between
    for stream in streams(source):
        response = collected(source, stream.body)
        if not response.clean or response.error is not None:
            continue
        report = StreamReport()
        body = encode_response(response, "ollama", report=report)
        lines, lost = translate(source, "ollama", [stream.body], passing=False)
        assert facts(OLLAMA.read(body)) == facts(collected("ollama", lines)), stream
        unlike = {kind for kind in report.losses | lost.losses if report.losses[kind] != lost.losses[kind]}
        assert unlike <= order | ({"metadata"} if lost.losses["extra_choice"] else set()), stream


def test_a_stream_of_ollama_keeps_what_only_ollama_knows():
    for stream in streams("ollama"):
        response = collected("ollama", stream.body)
        if response.clean and response.error is None:
            again = OLLAMA.read(encode_response(response, "ollama", profile=IDS))
            assert {aside.type for aside in again.choices[0].asides} == {
                aside.type for aside in response.choices[0].asides
            }
            assert facts(again) == facts(response)


@pytest.mark.parametrize("name", [*MESSAGES, *LOSSES])
def test_the_official_client_reads_it(client, replay, name):
    ollama = client("ollama")
    body = MESSAGES[name][0] if name in MESSAGES else OLLAMA.write(LOSSES[name][0], profile=IDS)[0]
    answer = ollama.chat(model=replay.register(orjson.dumps(body)), messages=ASK)
    message = body["message"]
    assert answer.message.content == message["content"]
    assert answer.message.thinking == message.get("thinking")
    seen = [(call.function.name, dict(call.function.arguments)) for call in answer.message.tool_calls or []]
    assert seen == [(call["function"]["name"], call["function"]["arguments"]) for call in message.get("tool_calls", [])]
    assert answer.done_reason == body["done_reason"]


def test_the_official_client_raises_an_error_body(client, replay):
    ollama = client("ollama")
    body, _ = OLLAMA.write(said(clean=False, error=ProviderFailed("server", "out of memory", vendor="ollama")))
    name = replay.register(orjson.dumps(body))
    with pytest.raises(Exception, match="message") as caught:
        ollama.chat(model=name, messages=ASK)  # at HTTP 200 an error body is no response
    assert "ValidationError" in type(caught.value).__name__


# -- all rows ----------------------------------------------------------------------------------------------------------

GENERATED = {"model": "m", "created_at": TIME, "response": "Hi", "thinking": "hm", "done": True, "done_reason": "stop"}


def message_row(body: dict[str, Any], parts: list[Any], stop: str) -> Row:
    return OLLAMA.kept({**body, **COUNTS}, parts, said={
        "clean": True, "model": "m", "created": 1_735_689_600, "choices[0].stop_reason": stop, "usage.input_total": 9, "usage.output_total": 4,
        "usage.total": 13,
    })  # fmt: skip


ROWS = {
    **rows("messages", MESSAGES, message_row),
    "a body of generate": Row(GENERATED, [Reasoning("hm"), Text("Hi")], {"clean": True}),
    **rows("mended", MENDED, OLLAMA.mended),
    **rows("strict", MENDED, lambda body, _: Row(body, refused=(NeedsRepair, ""), options={"policy": STRICT})),
    **rows("errors", ERRORS, lambda error, message, repairs: Row(
        {"error": error}, None, {"clean": False, "error.message": message, "report.status": 4}, repairs, {"error": message}
    )),
    **rows("not done", CUT, lambda body: Row(
        body, None, {"clean": False}, written={"error": "the response was truncated"}, losses={"answer_withheld": 1}
    )),
    **rows("of another kind", OTHERS, lambda body: OLLAMA.refused(body, NotThisDialect)),
    **rows("another dialect", LOSSES, lambda response, body, losses: OLLAMA.of_another(response, body, losses, withheld=losses.get("call_withheld", 0))),
    "a stop sequence and another choice": OLLAMA.of_another(
        evolve(OLLAMA.foreign, choices=[
            Choice(parts=[Text("a")], stop_reason="stop_sequence", stop_sequence="X"), Choice(1, parts=[Text("b")]),
        ]),
        whole("a"), {"stop_sequence": 1, "stop_reason": 1, "extra_choice": 1},
    ),
    "logprobs in pieces": OLLAMA.of_another(
        said(Text("ab"), *[Aside("ollama", "logprobs", "logprobs", [{"token": token}]) for token in "ab"], vendor="ollama"),
        whole("ab", beside={"logprobs": [{"token": "a"}, {"token": "b"}]}), None,
    ),
    "an error of another dialect": OLLAMA.of_another(
        said(clean=False, error=ProviderFailed("rate_limit", "slow down", "rate_limit_error", vendor="openai")), {"error": "slow down"}, {"error_detail": 1}
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_a_response(name):
    OLLAMA.check(ROWS[name])
