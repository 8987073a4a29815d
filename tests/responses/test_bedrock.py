"""Whole responses of Bedrock's Converse: read, written, and written for what other dialects said.

Source: dialects.md §6.1, §7.1, §7.2, §7.5, §7.6; quirks.md R14; botocore's model of ``ConverseResponse``.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
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
)
from streamkit.dialects.bedrock.wire import EXCEPTIONS, STOP_REASONS
from streamkit.dialects.vocabulary.sealed_reasoning import seal
from streamkit.errors import BrokenFrame, NotThisDialect, TooManyBlocks
from streamkit.events import Aside, Opaque, ProviderFailed, UsageReported, Verdict
from streamkit.limits import Limits
from streamkit.recipes import collect
from streamkit.testing import source_of
from streamkit.translation.bodies import decode_response
from tests.corpora import recordings
from tests.framing.binary import exception
from tests.responses.rows import Dialect, Row, rows
from tests.vectors import VECTORS, bedrock

USAGE = {"inputTokens": 5, "outputTokens": 7, "totalTokens": 16, "cacheReadInputTokens": 3, "cacheWriteInputTokens": 1}
METRICS = {"latencyMs": 321}
COMPLETE = Verdict("complete")
CITATION = {"title": "t", "location": {"web": {"url": "https://x.test"}}}
TRACE = {"promptRouter": {"invokedModelId": "arn:aws:bedrock:us-east-1::foundation-model/a.b"}}


def message(*content: dict[str, Any], stop: str | None = "end_turn", **beside: Any) -> dict[str, Any]:
    said = {"output": {"message": {"role": "assistant", "content": list(content)}}}
    return {**said, "stopReason": stop, "usage": USAGE, "metrics": METRICS, **beside}


BEDROCK = Dialect(
    "bedrock",
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


def text(text: str = "a") -> dict[str, Any]:
    return {"text": text}


def call(given: Any = None, call_id: str = "tooluse_1", **more: Any) -> dict[str, Any]:
    return {"toolUse": {"toolUseId": call_id, "name": "look", "input": given or {}, **more}}


def thought(text: str = "h", **more: Any) -> dict[str, Any]:
    return {"reasoningContent": {"reasoningText": {"text": text, **more}}}


def redacted(data: str) -> dict[str, Any]:
    return {"reasoningContent": {"redactedContent": data}}


PNG = {"format": "png"}


def frames(number: int, kind: str, start: Any, delta: Any = None) -> list[Aside]:
    """The asides of a block as a stream would give them."""
    said: list[tuple[str, dict[str, Any]]] = [("contentBlockStart", {"contentBlockIndex": number, "start": start})]
    if delta is not None:
        said.append(("contentBlockDelta", {"contentBlockIndex": number, "delta": delta}))
    said.append(("contentBlockStop", {"contentBlockIndex": number}))
    return [Aside("bedrock", kind, event, payload, block=number) for event, payload in said]


def beside(**members: Any) -> list[Aside]:
    """The asides of what stands beside the content: the latency always does."""
    return [
        Aside("bedrock", "metadata", f"metadata.{name}", raw) for name, raw in {"metrics": METRICS, **members}.items()
    ]


SERVER = {"toolUseId": "s", "name": "web", "type": "server_tool_use"}
SEARCHED = {"toolUseId": "s", "type": "web_search_tool_result"}

#: A message, and the parts that it says, both ways.
MESSAGES: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "text": (message(text()), [Text("a"), *beside()]),
    "several texts": (message(text(), text("b")), [Text("a"), Text("b"), *beside()]),
    "nothing": (message(stop="max_tokens"), beside()),
    "calls": (
        message(text("wait"), call({"q": "x"}), call(call_id="tooluse_2"), stop="tool_use"),
        [
            Text("wait"), ToolCall(0, "tooluse_1", "look", '{"q": "x"}', verdict=COMPLETE),
            ToolCall(1, "tooluse_2", "look", "{}", verdict=COMPLETE), *beside(),
        ],
    ),
    "a call with more": (message(call({"q": 1}, new=1), stop="tool_use"), [
        ToolCall(0, "tooluse_1", "look", '{"q": 1}', verdict=COMPLETE, extras={"new": 1}), *beside(),
    ]),
    "reasoning": (message(thought(signature="c2ln"), redacted("eHg="), text()), [
        Reasoning("h", signature=Opaque("anthropic", "c2ln")), RedactedReasoning(Opaque("anthropic", "eHg=")), Text("a"), *beside(),
    ]),
    "reasoning that nobody signed": (message(thought(), text()), [Reasoning("h"), Text("a"), *beside()]),
    "reasoning that is not shown": (message(thought("", signature="c2ln"), text()), [
        Reasoning("", signature=Opaque("anthropic", "c2ln")), Text("a"), *beside(),
    ]),
    "what was sealed": (
        message(
            thought(signature=seal("reasoning", "google", "R")), text(), redacted(seal("text", "google", "T")),
            redacted(seal("opaque", "openai", "O")), redacted(seal("call", "google", "C")), call({"q": 1}),
            redacted(seal("part", "google", "P")), stop="tool_use",
        ),
        [
            Reasoning("h", signature=Opaque("google", "R")), Text("a", Opaque("google", "T")), RedactedReasoning(Opaque("openai", "O")),
            ToolCall(0, "tooluse_1", "look", '{"q": 1}', verdict=COMPLETE, signature=Opaque("google", "C")),
            Text("", Opaque("google", "P")), *beside(),
        ],
    ),
    "citations": (
        message(
            {"citationsContent": {"content": [text()], "citations": [CITATION, CITATION]}},
            {"citationsContent": {"content": [text("b")], "citations": [CITATION]}},
        ),
        [
            Text("a"), *[Aside("bedrock", "citation", "citation", CITATION)] * 2, Text("b"),
            Aside("bedrock", "citation", "citation", CITATION, block=1), *beside(),
        ],
    ),
    "tools of the provider": (
        message(
            {"toolUse": {**SERVER, "input": {"n": 1}}}, {"toolResult": {**SEARCHED, "status": "success", "content": [text("x")]}},
            {"toolUse": {**SERVER, "input": {}}}, {"toolResult": {**SEARCHED, "content": []}}, text(),
        ),
        [
            *frames(0, "server_tool", {"toolUse": SERVER}, {"toolUse": {"input": '{"n": 1}'}}),
            *frames(1, "server_tool", {"toolResult": {**SEARCHED, "status": "success"}}, {"toolResult": [text("x")]}),
            *frames(2, "server_tool", {"toolUse": SERVER}, {"toolUse": {"input": "{}"}}),
            *frames(3, "server_tool", {"toolResult": SEARCHED}), Text("a"), *beside(),
        ],
    ),
    "an image": (message({"image": {**PNG, "source": {"bytes": "eA=="}}}), [
        Aside("bedrock", "unknown_event", "contentBlockStart", {"contentBlockIndex": 0, "start": {"image": PNG}}),
        Media("image", "image/png", "eA=="), Aside("bedrock", "unknown_event", "contentBlockStop", {"contentBlockIndex": 0}), *beside(),
    ]),
    "blocks that no stream has": (
        message({"audio": {"format": "wav", "source": {"bytes": "eA=="}}}, {"reasoningContent": {}}, text()),
        [
            Aside("bedrock", "unknown_event", "content.audio", {"audio": {"format": "wav", "source": {"bytes": "eA=="}}}),
            Aside("bedrock", "unknown_event", "content.reasoningContent", {"reasoningContent": {}}, block=1), Text("a"), *beside(),
        ],
    ),
    "fields of the model": (message(text(), additionalModelResponseFields={"x": 1}), [
        Text("a"), Aside("bedrock", "metadata", "messageStop.additionalModelResponseFields", {"x": 1}), *beside(),
    ]),
    "what stands beside": (
        message(text(), trace=TRACE, serviceTier={"type": "flex"}, performanceConfig={"latency": "optimized"}, new=1),
        [Text("a"), *beside(trace=TRACE, serviceTier={"type": "flex"}, performanceConfig={"latency": "optimized"}, new=1)],
    ),
}  # fmt: skip


def test_an_answer_of_invoke_model_is_read():
    said = {"id": "i", "type": "message", "role": "assistant", "model": "m", "content": [{"type": "text", "text": "a"}]}
    body = {**said, "stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 5, "output_tokens": 7}}
    found, native = BEDROCK.read(body), decode_response(orjson.dumps(body), "anthropic")
    assert (found.choices, found.usage, found.vendor, found.clean) == (native.choices, native.usage, "anthropic", True)
    assert found.report.repairs == Counter()
    with pytest.raises(TooManyBlocks):
        BEDROCK.read({**body, "content": body["content"] * 3}, limits=Limits(content_blocks=2))


ERRORS = [
    ({"message": "no"}, "server", None, "no"),
    ({"Message": "no"}, "server", None, "no"),
    ({"__type": "com.amazon.coral#ThrottlingException:http://x"}, "rate_limit", "throttlingException", "ThrottlingException"),
    ({"__type": "NovelException", "message": "no"}, "server", "novelException", "no"),
]  # fmt: skip

OTHERS = [
    (b"<html>", NotThisDialect, "<html>"),
    (b"[]", NotThisDialect, "[]"),
    (b"{", BrokenFrame, "no JSON"),
    (b'{"choices": []}', NotThisDialect, "choices"),
    (b'{"output": []}', NotThisDialect, "output"),
]  # fmt: skip

MENDED = [
    (message("odd", text()), {"object_missing": 1}, "odda"),
    (message({"text": 1}, text()), {"field_invalid": 1}, "a"),
    (message(text(), stop="tool_use"), {"calls_without_call": 1}, "a"),
    (message(call(), text()), {"stop_with_calls": 1}, "a"),
    ({**message(), "output": {"message": {"role": "assistant", "content": "a"}}}, {"object_missing": 1}, "a"),
    (message(call(toolUseId=None), stop="tool_use"), {"id_missing": 1}, ""),
    (message({"toolUse": {"toolUseId": "i", "name": "f", "input": "{}"}}, stop="tool_use"), {"arguments_not_object": 1}, ""),
    (message(redacted("?"), text()), {"field_invalid": 1}, "a"),
]  # fmt: skip

BESIDE = [
    ({"text": "a", "image": None}, [Text("a")]),
    ({"toolUse": {"toolUseId": "i", "name": "f"}}, [ToolCall(0, "i", "f", "", verdict=Verdict("empty"))]),
    ({"citationsContent": {"content": [{"text": "a"}], "new": 1}}, [Text("a"), Aside("bedrock", "metadata", "citationsContent.new", 1)]),
    ({"reasoningContent": {"reasoningText": {"text": "h", "new": 1}}}, [Reasoning("h"), Aside(
        "bedrock", "metadata", "reasoningContent.new", 1,
    )]),
]  # fmt: skip


# -- what other dialects said ------------------------------------------------------------------------------------------

CALL = ToolCall(0, "c1", "look", '{"q":1.0}', verdict=COMPLETE)
CALLED = {"toolUse": {"toolUseId": "c1", "name": "look", "input": {"q": 1.0}}}

#: Parts, their stop reason, the content, the stop reason written, and the losses.
FOREIGN: dict[str, tuple[list[Any], str, list[dict[str, Any]], str, dict[str, int]]] = {
    "text": ([Text("a")], "stop", [text()], "end_turn", {}),
    "a refusal": ([Refusal("no")], "refusal", [text("no")], "content_filtered", {"refusal_as_text": 1, "stop_reason": 1}),
    "a filter": ([Text("a")], "content_filter", [text()], "content_filtered", {}),
    "an unknown reason": ([Text("a")], "other", [text()], "end_turn", {"stop_reason": 1}),
    "reasoning": ([Reasoning("h"), Text("a")], "stop", [thought(), text()], "end_turn", {}),
    "signatures of others": (
        [
            Reasoning("h", "raw", Opaque("openai", "R")), Text("a", Opaque("google", "T")), Text("", Opaque("google", "P")),
            RedactedReasoning(Opaque("openai", "O")),
            ToolCall(0, "c1", "look", '{"q":1.0}', verdict=COMPLETE, signature=Opaque("google", "C")),
        ],
        "tool_calls",
        [
            thought(signature=seal("reasoning", "openai", "R")), text(), redacted(seal("text", "google", "T")),
            redacted(seal("part", "google", "P")), redacted(seal("opaque", "openai", "O")), redacted(seal("call", "google", "C")), CALLED,
        ],
        "tool_use", {},
    ),
    "arguments": (
        [
            ToolCall(0, "c1", "look", ""), ToolCall(1, "c2", "look", "{oops"), ToolCall(2, "c3", "look", "[1]"),
            ToolCall(3, "c4", "look", "free", "custom"),
        ],
        "tool_calls",
        [call(call_id="c1"), call({"_raw_arguments": "{oops"}, "c2"), call({"_raw_arguments": "[1]"}, "c3"), call({"input": "free"}, "c4")],
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
#: Nobody measured the time of these.
UNTIMED = {"latencyMs": 0}


OTHER_ERRORS = [
    ("invalid_request", "ValidationException", {}),
    ("auth", "UnrecognizedClientException", {}),
    ("permission", "AccessDeniedException", {}),
    ("not_found", "ResourceNotFoundException", {}),
    ("rate_limit", "ThrottlingException", {}),
    ("timeout", "ModelTimeoutException", {}),
    ("unavailable", "ServiceUnavailableException", {}),
    ("server", "InternalServerException", {}),
    ("billing", "ValidationException", {"error_detail": 1}),
]  # fmt: skip


async def test_an_exception_in_a_stream_is_an_error_body():
    stream = exception("throttlingException", {"message": "slow", "p": "abc", "new": 1})
    written, report = BEDROCK.write(await collect(source_of([stream]), "bedrock"))
    assert written == {"__type": "ThrottlingException", "message": "slow", "new": 1}
    assert not report.losses


# -- streams and whole responses say the same --------------------------------------------------------------------------

CONVERSE = [vector for vector in bedrock.HEALTHY if vector.clean and not vector.name.startswith("native")]


@pytest.mark.parametrize("vector", CONVERSE, ids=lambda vector: vector.name)
async def test_a_stream_and_its_body_say_the_same(vector):
    streamed = await collect(source_of([vector.body]), "bedrock")
    body, report = BEDROCK.write(streamed)
    found = BEDROCK.read(body)
    assert found.report.repairs == Counter()
    assert meaning(found) == meaning(streamed)
    assert BEDROCK.write(found)[0] == body
    assert report.losses.keys() <= {"unknown_event", "stop_reason", "usage_unknown"}


async def test_a_recorded_stream_becomes_a_body_that_says_the_same():
    for recorded in recordings("bedrock"):
        streamed = await collect(source_of([recorded.body]), "bedrock")
        body, _ = BEDROCK.write(streamed)
        found = BEDROCK.read(body)
        if streamed.clean:
            assert meaning(found) == meaning(streamed), recorded.name
            assert found.report.repairs == Counter(), recorded.name
        else:
            assert found.error is not None, recorded.name


def meaning(found: Response) -> Any:
    """What a response says, without what only a stream or only a body does.

    An empty text, how an empty input is spelled, the numbers of blocks, the latency and counts of nobody, and events that no
    body has.
    """
    choice = found.choices[0]
    said: list[Any] = []
    for part in choice.parts:
        match part:
            case ToolCall():
                arguments = json.loads(part.arguments or "{}")
                said.append((part.index, part.id, part.name, arguments, part.extras, part.signature))
            case Aside(type="metadata.metrics"):
                pass
            case Aside():
                if not part.type.startswith("event."):
                    said.append((part.kind, part.type, unframed(part.raw)))
            case Text(text="", signature=None):
                pass
            case _:
                said.append(part)
    usage = found.usage if found.usage and found.usage.total else None
    return said, usage, choice.stop_sequence, found.extras


def unframed(raw: Any) -> Any:
    """The payload of a message without the number of its block and the padding."""
    return (
        {name: value for name, value in raw.items() if name not in {"contentBlockIndex", "p"}}
        if isinstance(raw, dict)
        else raw
    )


# -- the official client -----------------------------------------------------------------------------------------------

#: Rows with something that the service model has no name for, which botocore leaves out.
BEYOND_MODEL = {"a call with more", "what stands beside", "blocks that no stream has"}


@pytest.mark.parametrize("name", [name for name in (*MESSAGES, *FOREIGN) if name not in BEYOND_MODEL])
def test_the_official_client_reads_it(client, replay, name):
    boto3 = client("boto3")
    if name in MESSAGES:
        body, _ = MESSAGES[name]
    else:
        parts, stop, *_ = FOREIGN[name]
        body, _ = BEDROCK.write(BEDROCK.response(*parts, stop=stop))
    asked = replay.register(orjson.dumps(body), "application/json")
    found = boto3.converse(modelId=asked, messages=[{"role": "user", "content": [{"text": "hi"}]}])
    del found["ResponseMetadata"]
    assert as_base64(found) == body
    assert model_faults(found) == []


def as_base64(value: Any) -> Any:
    """What boto3 made of a body as it stood there."""
    match value:
        case dict():
            return {name: as_base64(each) for name, each in value.items()}
        case list():
            return [as_base64(each) for each in value]
        case bytes():
            return base64.b64encode(value).decode()
    return value


def model_faults(found: dict[str, Any]) -> list[str]:
    """What the service model demands of a response and this one lacks, as for a request."""
    validate, session = pytest.importorskip("botocore.validate"), pytest.importorskip("botocore.session")
    shape = session.get_session().get_service_model("bedrock-runtime").operation_model("Converse").output_shape
    report = validate.ParamValidator().validate(found, shape)
    return report.generate_report().splitlines()


@pytest.mark.parametrize("kind", ["invalid_request", "rate_limit", "not_found", "unavailable", "truncated"])
def test_an_error_is_what_the_client_raises_by_its_name(kind):
    parsers, session = pytest.importorskip("botocore.parsers"), pytest.importorskip("botocore.session")
    said = BEDROCK.response()
    said.error = ProviderFailed(kind, "no", vendor="openai")
    written = BEDROCK.write(said)[0]
    operation = session.get_session().get_service_model("bedrock-runtime").operation_model("Converse")
    answered = {"status_code": 400, "headers": {}, "body": orjson.dumps(written)}
    error = parsers.create_parser("rest-json").parse(answered, operation.output_shape)["Error"]
    assert error == {"Code": written["__type"], "Message": "no"}
    assert error["Code"] in {shape.name for shape in operation.error_shapes}


def test_every_vector_of_this_dialect_is_looked_at():
    assert {vector.name for vector in CONVERSE} <= {vector.name for vector in VECTORS if vector.dialect == "bedrock"}


# -- all rows ----------------------------------------------------------------------------------------------------------

MET = message(text(), stop="stop_sequence", additionalModelResponseFields={"delta": {"stop_sequence": "END"}})
COUNTED = message(text(), usage={**USAGE, "cacheDetails": [{"ttl": "5m", "inputTokens": 1}]})
COUNTED["output"]["message"]["new"] = 1
RESULT = frames(0, "server_tool", {"toolResult": SEARCHED}, {"toolResult": [text("x")]})
WELL = {"clean": True, "error": None}
FAILED = {
    "malformed_model_output": "the provider gave the finish reason 'malformed_model_output': the model wrote a response that can't be read",
    "malformed_tool_use": "the provider gave the finish reason 'malformed_tool_use': the model wrote a call that can't be read",
}


def stop_row(native: str, reason: str) -> Row:
    body = message(call({"q": 1}) if native == "tool_use" else text(), stop=native)
    if reason == "malformed_tool":  # a turn that failed
        return Row(body, None, {"choices[0].stop_reason": None, "clean": False}, at={"message": FAILED[native]})
    known = native != "novel"
    return Row(
        body,
        None,
        {"choices[0].stop_reason": reason, "choices[0].native_stop_reason": native},
        at={"stopReason": native if known else "end_turn"},
        losses={} if known else {"stop_reason": 1},
    )


def error_row(native: str) -> Row:
    body = {"__type": native[0].upper() + native[1:], "message": "no", "originalStatusCode": 500}
    kind, status = EXCEPTIONS[native]
    error = ProviderFailed(kind, "no", native, None, status, body, "bedrock")
    return Row(body, None, {"error": error, "clean": False}, written=body, losses={})


ROWS = {
    **rows("messages", MESSAGES, lambda body, parts: BEDROCK.kept(body, parts, said=WELL)),
    **rows("stops", [*STOP_REASONS.items(), ("novel", "other")], stop_row),
    "a stop sequence that was met": BEDROCK.kept(MET, None, said={"choices[0].stop_sequence": "END"}),
    "counts and members beside the content": BEDROCK.kept(
        COUNTED, None, said={"usage": UsageReported(9, 3, 1, 7, None, 16, COUNTED["usage"], "bedrock"), "extras": {"new": 1}}
    ),
    **rows("errors", list(EXCEPTIONS), error_row),
    **rows("errors named elsewhere", ERRORS, lambda body, kind, native, words: Row(
        body, None, {"error.type": kind, "error.native_type": native, "error.message": body.get("message", body.get("Message", f"an error without a message: {words}"))}
    )),
    **rows("of another kind", OTHERS, BEDROCK.refused),
    **rows("mended", MENDED, lambda body, repairs, text: BEDROCK.mended(body, repairs, text=text)),
    **rows("beside a block", BESIDE, lambda block, parts: Row(
        message(block, stop="tool_use" if "toolUse" in block else "end_turn"), [*parts, *beside()]
    )),
    "an input that is no object": Row(
        message({"toolUse": {"toolUseId": "i", "name": "f", "input": [1]}}, stop="tool_use"), None,
        {"choices[0].parts[0].arguments": "[1]", "choices[0].parts[0].verdict.kind": "not_an_object"},
    ),
    "too many blocks": Row(message(text(), text(), text()), refused=(TooManyBlocks, ""), options={"limits": Limits(content_blocks=2)}),
    "no stop reason": Row(message(text(), stop=None), None, {"clean": False, "text": "a", "choices[0].stop_reason": None}),
    **rows("another dialect", FOREIGN, lambda parts, stop, content, reason, losses: BEDROCK.of_another(
        BEDROCK.response(*parts, stop=stop), message(*content, stop=reason, metrics=UNTIMED), losses, withheld=losses.get("call_withheld", 0)
    )),
    "what is beside the content": BEDROCK.of_another(
        evolve(
            BEDROCK.foreign, extras={"system_fingerprint": "f"}, usage=UsageReported(None, None, None, 7, 3, None),
            choices=[Choice(parts=[Text("a")], stop_reason="stop"), Choice(1, parts=[Text("b")], stop_reason="stop"), Choice(2)],
        ),
        message(text(), usage={"inputTokens": 0, "outputTokens": 7, "totalTokens": 7}, metrics=UNTIMED),
        {"response_fields": 1, "extra_choice": 2, "usage_unknown": 1, "usage_detail": 1},
    ),
    "counts that nobody gave": BEDROCK.of_another(
        BEDROCK.response(Text("a"), usage=None), message(text(), usage={"inputTokens": 0, "outputTokens": 0, "totalTokens": 0}, metrics=UNTIMED),
        {"usage_unknown": 1},
    ),
    "events that no body has": BEDROCK.of_another(
        BEDROCK.response(
            Text("a"), Aside("bedrock", "unknown_event", "event.novelty", {"x": 1}), Aside("bedrock", "metadata", "delta.x", 1), vendor="bedrock"
        ),
        message(text(), metrics=UNTIMED), [("unknown_event", "event.novelty"), ("metadata", "delta.x")],
    ),
    "a result of the provider in pieces": BEDROCK.of_another(
        BEDROCK.response(
            *RESULT[:2], RESULT[1], Aside("bedrock", "server_tool", "contentBlockDelta", {"contentBlockIndex": 0, "delta": {"image": {}}}),
            RESULT[2], vendor="bedrock",
        ),
        message({"toolResult": {**SEARCHED, "content": [text("x"), text("x")]}}, metrics=UNTIMED), [("server_tool", "contentBlockDelta")],
    ),
    "a response that was cut": BEDROCK.of_another(
        BEDROCK.response(Text("a"), CALL, clean=False), {"__type": "ModelErrorException", "message": "the response was truncated"},
        {"answer_withheld": 1}, withheld=1,
    ),
    **rows("errors of another dialect", OTHER_ERRORS, lambda kind, name, losses: BEDROCK.of_another(
        BEDROCK.response(error=ProviderFailed(kind, "no", "their_word", vendor="openai", raw={"message": "no"})), {"__type": name, "message": "no"}, losses
    )),
    **rows("they are read again", OTHER_ERRORS, lambda kind, name, losses: Row(
        {"__type": name, "message": "no"}, None, {"error.type": "invalid_request" if losses else kind}
    )),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_a_response(name):
    BEDROCK.check(ROWS[name])
