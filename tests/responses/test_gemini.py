"""Whole responses of Gemini: read, written, and written for what other dialects said.

Source: dialects.md §5.1-§5.4, §7.1, §7.2, §7.5.
"""

from __future__ import annotations

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
from streamkit.errors import BrokenFrame, EventTooLong, NeedsRepair, NotThisDialect, TooManyToolCalls
from streamkit.events import Aside, Opaque, ProviderFailed, UsageReported, Verdict
from streamkit.limits import Limits
from streamkit.policy import STRICT
from streamkit.read_options import ReadOptions
from streamkit.recipes import collect
from streamkit.report import StreamReport
from streamkit.testing import source_of
from streamkit.translation.bodies import decode_response, encode_response
from tests.corpora import recordings

USAGE = {"promptTokenCount": 8, "candidatesTokenCount": 5, "thoughtsTokenCount": 9, "totalTokenCount": 22}
COMPLETE = Verdict("complete")
GOOGLE, CLAUDE = Opaque("google", "QUJD"), Opaque("anthropic", "S")
CODE = {"executableCode": {"language": "PYTHON", "code": "1 + 1"}}
IMAGE = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}, "thoughtSignature": "QUJD"}


def whole(*parts: dict[str, Any], finish: str | None = "STOP", index: int = 0, **beside: Any) -> dict[str, Any]:
    candidate = {"content": {"parts": list(parts), "role": "model"}, "finishReason": finish, "index": index}
    return {"candidates": [candidate], "usageMetadata": USAGE, "modelVersion": "m", "responseId": "i", **beside}


def read(body: Any, dialect: str = "gemini", **options: Any) -> Response:
    report = options.pop("report", None)
    return decode_response(orjson.dumps(body), dialect, ReadOptions(**options), report=report)


def write(response: Response, to: str = "gemini", **options: Any) -> tuple[dict[str, Any], StreamReport]:
    report = StreamReport()
    fixed = {"make_id": lambda prefix: f"{prefix}1", "clock": lambda: 1.0}
    return orjson.loads(encode_response(response, to, report=report, **fixed, **options)), report


def response(*parts: Any, stop: Any = "stop", vendor: str = "openai", **members: Any) -> Response:
    choice = Choice(parts=list(parts), stop_reason=stop)
    return Response("openai-chat", id="i", model="m", vendor=vendor, choices=[choice], clean=True, **members)


def call(call_id: str = "f1", args: Any = None, **more: Any) -> dict[str, Any]:
    return {"functionCall": {"name": "look", "args": {"q": 1} if args is None else args, "id": call_id, **more}}


#: The parts of a candidate, and what they say, both ways.
PARTS: dict[str, tuple[list[dict[str, Any]], list[Any]]] = {
    "text": ([{"text": "hi"}], [Text("hi")]),
    "thoughts": ([{"text": "hm", "thought": True}, {"text": "hi"}], [Reasoning("hm", "summary"), Text("hi")]),
    "what is signed": (
        [
            {"text": "hm", "thought": True, "thoughtSignature": "QUJD"},
            {"text": "a", "thoughtSignature": "QUJD"},
            {"text": "b"},
            {"text": "", "thoughtSignature": "QUJD"},
        ],
        [Reasoning("hm", "summary", GOOGLE), Text("a", GOOGLE), Text("b"), Text("", GOOGLE)],
    ),
    "calls": (
        [{"text": "wait"}, {**call(), "thoughtSignature": "QUJD"}, call("f2", {}), {"text": "so"}],
        [
            Text("wait"),
            ToolCall(0, "f1", "look", '{"q":1}', verdict=COMPLETE, signature=GOOGLE),
            ToolCall(1, "f2", "look", "{}", verdict=COMPLETE),
            Text("so"),
        ],
    ),
    "a call with more": (
        [{**call(x=1), "partMetadata": {"y": 2}}],
        [
            ToolCall(0, "f1", "look", '{"q":1}', verdict=COMPLETE, extras={"x": 1}),
            Aside("google", "metadata", "part.partMetadata", {"y": 2}),
        ],
    ),
    "what Google ran itself": (
        [CODE, {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2"}}, {"text": "2"}],
        [
            Aside("google", "server_tool", "part", CODE),
            Aside("google", "server_tool", "part", {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2"}}),
            Text("2"),
        ],
    ),
    "an image": (
        [{"text": "see"}, IMAGE],
        [Text("see"), Media("image", "image/png", "AAAA", extras={"thoughtSignature": "QUJD"})],
    ),
    "an unknown part": ([{"text": "", "hologram": {"x": 1}}], [Aside("google", "metadata", "part.hologram", {"x": 1})]),
    "what another vendor signed": (
        [
            {"text": "hm", "thought": True},
            {"text": "", "thought": True, "thoughtSignature": seal("reasoning", "anthropic", "S")},
            {"text": "a"},
            {"text": "", "thoughtSignature": seal("text", "anthropic", "S")},
            {"text": "", "thought": True, "thoughtSignature": seal("opaque", "anthropic", "S")},
            {**call(), "thoughtSignature": seal("call", "anthropic", "S")},
        ],
        [
            Reasoning("hm", "summary", CLAUDE),
            Text("a", CLAUDE),
            RedactedReasoning(CLAUDE),
            ToolCall(0, "f1", "look", '{"q":1}', verdict=COMPLETE, signature=CLAUDE),
        ],
    ),
}


@pytest.mark.parametrize("name", PARTS)
def test_parts_come_back(name):
    parts, said = PARTS[name]
    body = whole(*parts, createTime="2026-01-01T00:00:00.000000Z", modelStatus={"x": 1})
    found = read(body)
    assert found.clean
    assert [part for part in found.choices[0].parts if not isinstance(part, Aside)] == [
        part for part in said if not isinstance(part, Aside)
    ]
    assert [(each.kind, each.type, each.raw) for each in found.choices[0].asides] == [
        (each.kind, each.type, each.raw) for each in said if isinstance(each, Aside)
    ]
    assert (found.id, found.model, found.created) == ("i", "m", 1767225600)
    assert (found.usage.input_total, found.usage.output_total, found.extras) == (8, 14, {"modelStatus": {"x": 1}})
    reason = "tool_calls" if found.tool_calls else "stop"
    assert (found.choices[0].stop_reason, found.choices[0].native_stop_reason) == (reason, "STOP")
    written, report = write(found)
    assert written == body
    assert report.losses == found.report.repairs == Counter()


def test_candidates_with_all_that_stands_beside_their_content():
    beside = {
        "safetyRatings": [{"category": "C", "probability": "LOW"}],
        "citationMetadata": {"citationSources": [{"uri": "u"}]},
        "groundingMetadata": {"webSearchQueries": ["q"], "searchEntryPoint": {"renderedContent": "x"}},
        "avgLogprobs": -0.5,
        "logprobsResult": {"chosenCandidates": [{"token": "a"}]},
        "finishMessage": "done",
    }
    body = whole({"text": "a"}, promptFeedback={"safetyRatings": []})
    body["candidates"][0] |= beside
    body["candidates"].append({**whole({"text": "b"}, finish="MAX_TOKENS", index=1)["candidates"][0], "tokenCount": 3})
    found = read(body)
    assert [(choice.text, choice.stop_reason) for choice in found.choices] == [("a", "stop"), ("b", "length")]
    assert Counter(each.kind for each in found.choices[0].asides) == {"metadata": 3, "citation": 2, "logprobs": 2}
    written, report = write(found)
    assert written == body
    assert not report.losses


@pytest.mark.parametrize(
    ("candidate", "text"),
    [
        ({"content": {"role": "model"}, "finishReason": "MAX_TOKENS"}, ""),
        ({"finishReason": "MAX_TOKENS"}, ""),
        (
            {"content": {"parts": [{"text": "a"}, {"text": "b"}]}, "finishReason": "MAX_TOKENS", "safetyRatings": []},
            "ab",
        ),
    ],
)
def test_what_says_nothing_is_no_part(candidate, text):
    found = read({"candidates": [candidate]})
    assert (found.clean, found.text, found.report.repairs) == (True, text, {})
    written, _ = write(found)
    assert written["candidates"] == whole({"text": text}, finish="MAX_TOKENS")["candidates"]


def test_arguments_keep_their_text():
    args = b'{"x": 18446744073709551616, "y": 1.0}'
    part = b'{"functionCall": {"name": "f", "args": %b}}' % args
    body = b'{"candidates": [{"content": {"parts": [%b, %b]}, "finishReason": "STOP"}]}' % (part, part)
    found = decode_response(body, "gemini")
    assert [each.arguments.encode() for each in found.tool_calls] == [args, args]
    assert all(each.id_made for each in found.tool_calls)
    assert encode_response(found, "gemini").count(args) == 2


def test_a_prompt_that_was_blocked():
    feedback = {"blockReason": "SAFETY", "safetyRatings": [{"category": "C"}]}
    body = {"promptFeedback": feedback, "usageMetadata": USAGE, "modelVersion": "m"}
    found = read(body)
    assert found.clean
    assert (found.choices[0].stop_reason, found.choices[0].native_stop_reason) == ("content_filter", "SAFETY")
    written, report = write(found)
    assert written == body
    assert not report.losses
    found.choices[0].parts.insert(0, Text("a"))  # in a stream, what was said before
    written, _ = write(found)
    assert written["candidates"] == [{"content": {"parts": [{"text": "a"}], "role": "model"}, "index": 0}]


@pytest.mark.parametrize(
    ("parts", "repairs"),
    [
        ([{"functionCall": {"name": "f", "args": '{"q": 1}'}}], {"arguments_not_object": 1}),
        ([{"text": 5}], {"field_invalid": 1}),
        ([call(), call("f1", {"q": 2})], {"id_duplicate": 1}),
        ([{"functionCall": {}}], {"call_ghost": 1}),
    ],
)
def test_what_providers_get_wrong_is_a_counted_repair(parts, repairs):
    found = read(whole(*parts))
    assert found.clean
    assert found.report.repairs == repairs
    with pytest.raises(NeedsRepair):
        read(whole(*parts), policy=STRICT)


# -- errors ------------------------------------------------------------------------------------------------------------

BUSY = {"code": 503, "message": "all busy", "status": "UNAVAILABLE", "details": [{"x": 1}]}


@pytest.mark.parametrize("form", [lambda body: body, lambda body: [body]])
@pytest.mark.parametrize(
    ("error", "kind", "message", "repairs"),
    [
        (BUSY, "unavailable", "all busy", {}),
        ({"code": 400, "message": "bad", "status": "INVALID_ARGUMENT"}, "invalid_request", "bad", {}),
        ({"code": 429, "message": "slow", "status": "RESOURCE_EXHAUSTED"}, "rate_limit", "slow", {}),
        ("busy", "server", "busy", {"error_shape": 1}),
    ],
)
def test_an_error_body_is_no_exception(form, error, kind, message, repairs):
    found = read(form({"error": error}))
    assert (found.clean, found.error.type, found.error.message) == (False, kind, message)
    assert found.report.repairs == repairs
    written, _ = write(found)
    assert written == {"error": error} or repairs


def test_an_error_of_another_dialect():
    said = response()
    said.clean, said.error = False, ProviderFailed("rate_limit", "slow down", "rate_limit_error", vendor="anthropic")
    written, report = write(said)
    assert written == {"error": {"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED"}}
    assert report.losses == {"error_detail": 1}


def test_a_response_that_was_cut_is_an_error_and_never_an_answer():
    said = response(Text("a"), ToolCall(0, "c1", "look", '{"q"'))
    said.clean = False
    written, report = write(said)
    assert (written.keys(), written["error"]["status"]) == ({"error"}, "UNAVAILABLE")
    assert report.losses == {"answer_withheld": 1}
    assert [withheld.arguments for withheld in report.withheld] == ['{"q"']


@pytest.mark.parametrize("body", [whole({"text": "a"}, finish=None), {"candidates": []}, {"usageMetadata": USAGE}, []])
def test_a_body_without_a_reason_is_not_clean(body):
    found = read(body)
    assert (found.clean, found.error) == (False, None)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"<html>", NotThisDialect),
        (b"", NotThisDialect),
        (b'{"id": "c", "choices": []}', NotThisDialect),
        (b'[{"id": "c", "choices": []}]', NotThisDialect),
        (b'["a"]', NotThisDialect),
        (b'{"candidates": [', NotThisDialect),
        (b'[{"candidates": [{"finishReason": "STOP"}]} 5]', BrokenFrame),
    ],
)
def test_a_body_of_another_kind_is_refused_with_what_was_found(body, error):
    report = StreamReport()
    with pytest.raises(error):
        decode_response(body, "gemini", report=report)
    assert isinstance(report.error, error)


# -- a streamed array as a body ----------------------------------------------------------------------------------------


def test_an_array_of_chunks_is_one_response():
    first = {"candidates": [{"content": {"parts": [{"text": "Hel"}]}, "safetyRatings": [1]}], "responseId": "i"}
    logprobs = [{"logprobsResult": {"chosenCandidates": [{"token": each}]}} for each in "ab"]
    second = {"candidates": [{"content": {"parts": [{"text": "lo"}, call()]}, "safetyRatings": [2], **logprobs[0]}]}
    last = {"candidates": [{"finishReason": "STOP", **logprobs[1]}], "usageMetadata": USAGE, "x": 1}
    body = orjson.dumps([first, second, last], option=orjson.OPT_INDENT_2)
    found = decode_response(body, "gemini")
    assert (found.clean, found.text) == (True, "Hello")
    assert found.tool_calls[0].arguments.encode() in body
    assert (found.report.bytes_in, found.report.frames, found.report.repairs) == (len(body), 1, {})
    written, report = write(found)
    joined = {"chosenCandidates": [{"token": "a"}, {"token": "b"}]}
    expected = whole({"text": "Hello"}, call(), x=1)
    expected["candidates"][0] |= {"safetyRatings": [2], "logprobsResult": joined}
    del expected["modelVersion"]
    assert written == expected
    assert report.lost == [("metadata", "candidates.safetyRatings")]


def test_an_array_whose_bracket_is_missing_is_mended():
    body = orjson.dumps([whole({"text": "a"})])[:-1]
    found = decode_response(body, "gemini")
    assert (found.clean, found.report.repairs) == (True, {"array_unclosed": 1})
    with pytest.raises(NeedsRepair):
        decode_response(body, "gemini", ReadOptions(policy=STRICT))
    cut = decode_response(body[:-20], "gemini")
    assert not cut.clean


def test_limits_hold_for_arrays_and_their_elements():
    body = [whole(call("a")), whole(call("b"))]
    with pytest.raises(TooManyToolCalls):
        read(body, limits=Limits(tool_calls=1))
    with pytest.raises(EventTooLong):
        read(body, limits=Limits(event_bytes=10))


# -- what other dialects said ------------------------------------------------------------------------------------------

#: Parts of a response, the parts they become, and what is lost.
WRITTEN: dict[str, tuple[list[Any], list[dict[str, Any]], dict[str, int]]] = {
    "blocks of one kind": (
        [Text("a"), Text("b"), Reasoning("h"), Reasoning("m"), Text("c", CLAUDE), Text("d")],
        [
            {"text": "a"},
            {"text": "b"},
            {"text": "h", "thought": True},
            {"text": "\n\nm", "thought": True},
            {"text": "c"},
            {"text": "", "thoughtSignature": seal("text", "anthropic", "S")},
            {"text": "d"},
        ],
        {"block_boundary": 2},
    ),
    "a refusal": ([Refusal("no")], [{"text": "no"}], {"refusal_as_text": 1}),
    "nothing": ([], [{"text": ""}], {}),
    "empty text": ([Text("")], [{"text": ""}], {}),
    "a signature that is no base64": (
        [Text("a", Opaque("google", "?"))],
        [{"text": "a"}, {"text": "", "thoughtSignature": seal("text", "google", "?")}],
        {},
    ),
    "a call's signature that is no base64": (
        [ToolCall(0, "f1", "look", "{}", signature=Opaque("google", "?"))],
        [{**call(args={}), "thoughtSignature": seal("call", "google", "?")}],
        {},
    ),
    "arguments": (
        [ToolCall(0, "a", "look", ""), ToolCall(1, "b", "look", "[1]"), ToolCall(2, "c", "look", "1 + 1", "custom")],
        [call("a", {}), call("b", {"_raw_arguments": "[1]"}), call("c", {"input": "1 + 1"})],
        {"arguments_wrapped": 1, "custom_tool_wrapped": 1},
    ),
    "calls that no client may run": (
        [Text("a"), ToolCall(0, "a", "look", '{"q"'), ToolCall(1, "b", "", "{}"), ToolCall(2, "c", "look", "{}", ended=False)],
        [{"text": "a"}],
        {"call_withheld": 3},
    ),
    "fields of another dialect": (
        [ToolCall(0, "f1", "look", "{}", extras={"x": 1}), Aside("openai", "logprobs", "logprobs", {})],
        [call(args={})],
        {"metadata": 1, "logprobs": 1},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITTEN)
def test_what_other_dialects_said(name):
    parts, expected, losses = WRITTEN[name]
    written, report = write(response(*parts))
    assert written["candidates"] == whole(*expected)["candidates"]
    assert report.losses == losses


@pytest.mark.parametrize(
    ("stop", "native", "vendor", "written", "losses"),
    [
        ("length", "max_tokens", "anthropic", "MAX_TOKENS", {}),
        ("context_full", None, "anthropic", "MAX_TOKENS", {"stop_reason": 1}),
        ("refusal", "refusal", "anthropic", "SAFETY", {"stop_reason": 1}),
        ("content_filter", "RECITATION", "google", "RECITATION", {}),
        ("content_filter", "RECITATION", "openai", "SAFETY", {}),
        ("other", "BORED", "google", "BORED", {}),
        ("other", "bored", "openai", "STOP", {"stop_reason": 1}),
        ("tool_calls", None, "openai", "MAX_TOKENS", {"stop_reason": 1}),  # and no call was written
    ],
)
def test_the_stop_reason(stop, native, vendor, written, losses):
    said = response(Text("a"), stop=stop, vendor=vendor)
    said.choices[0].native_stop_reason = native
    body, report = write(said)
    assert body["candidates"][0]["finishReason"] == written
    assert report.losses == losses


def test_what_stands_beside_the_parts_of_another_dialect():
    usage = UsageReported(11, 2, 3, 7, 9, None, {}, "anthropic")
    said = response(Text("a"), usage=usage, extras={"system_fingerprint": "f"}, created=0)
    said.choices[0].stop_sequence = "x"
    body, report = write(said)
    assert body["usageMetadata"] == {
        "promptTokenCount": 11, "cachedContentTokenCount": 2, "candidatesTokenCount": 7, "thoughtsTokenCount": 9, "totalTokenCount": 18,
    }  # fmt: skip
    assert body["createTime"] == "1970-01-01T00:00:00.000000Z"
    assert report.losses == {"usage_detail": 1, "response_fields": 1, "stop_sequence": 1}


def test_a_response_without_choices_is_an_empty_one():
    said = response()
    said.choices, said.id, said.model = [], None, None
    assert write(said)[0] == {"candidates": whole({"text": ""})["candidates"]}


def test_asides_without_a_part_or_of_an_unknown_kind():
    asides = [Aside("google", "metadata", "part.x", 1), Aside("google", "unknown_event", "field", 5)]
    body, report = write(response(*asides, vendor="google"))
    assert body["candidates"] == whole({"text": "", "x": 1})["candidates"]
    assert report.losses == {"unknown_event": 1}


def test_a_result_is_no_part_of_a_response():
    with pytest.raises(TypeError, match="a response has no ToolResult"):
        write(response(ToolResult("c")))


def test_an_image_at_a_url_is_a_file_and_one_of_another_providers_store_is_lost():
    body, report = write(response(Media("image", url="https://x/y"), Media("image", file_id="f"), Media("image")))
    assert body["candidates"] == whole({"fileData": {"fileUri": "https://x/y"}})["candidates"]
    assert report.losses == {"media_output": 2}


# -- streams and bodies say the same -----------------------------------------------------------------------------------


def told(said: Response) -> list[Any]:
    """What a response says, for comparing it with what became of it."""
    return [
        (
            choice.index,
            choice.text,
            choice.refusal,
            choice.reasoning,
            [(each.id, each.name, " ".join(each.arguments.splitlines()), each.ended) for each in choice.tool_calls],
        )
        for choice in said.choices
    ]


async def test_a_recorded_stream_as_a_whole_body_says_the_same():
    for recorded in recordings("gemini"):
        streamed = await collect(source_of([recorded.body]), "gemini")
        if not streamed.clean:
            continue
        report = StreamReport()
        found = decode_response(encode_response(streamed, "gemini", report=report), "gemini")
        assert told(found) == told(streamed), recorded.name
        assert signatures(found) == signatures(streamed), recorded.name
        assert (found.usage, found.id, found.model) == (streamed.usage, streamed.id, streamed.model), recorded.name
        assert [choice.stop_reason for choice in found.choices] == [choice.stop_reason for choice in streamed.choices]
        assert found.report.repairs == Counter(), recorded.name
        assert report.losses.keys() <= {"metadata", "citation"}, recorded.name  # what came again, with other values
        assert found.clean


def signatures(said: Response) -> list[Any]:
    parts = [part for choice in said.choices for part in choice.parts]
    return [part.signature for part in parts if isinstance(part, Text | Reasoning | ToolCall) and part.signature]


@pytest.mark.parametrize("source", [name for name in DIALECTS.built_in if name != "gemini"])
async def test_a_recorded_stream_of_another_dialect_becomes_a_body(source):
    for recorded in recordings(source):
        streamed = await collect(source_of([recorded.body]), source)
        found = decode_response(encode_response(streamed, "gemini"), "gemini")
        if not streamed.clean:
            assert found.error is not None
            continue
        assert [(choice.text, choice.reasoning) for choice in found.choices] == [
            (said_by(choice), choice.reasoning) for choice in streamed.choices
        ], recorded.name
        assert [each.name for each in found.tool_calls] == [each.name for each in streamed.tool_calls], recorded.name


def said_by(choice: Choice) -> str:
    return "".join(part.text for part in choice.parts if isinstance(part, Text | Refusal))


# -- the official client -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*PARTS, *WRITTEN])
def test_the_official_client_reads_it(client, replay, name):
    said = PARTS[name][1] if name in PARTS else WRITTEN[name][0]
    vendor = "google" if name in PARTS else "openai"
    written, _ = write(response(*said, vendor=vendor, usage=UsageReported(8, None, None, 14, 9, 22)))
    model = replay.register(orjson.dumps(written), "application/json")
    found = client("google.genai").models.generate_content(model=model, contents="Hi")
    candidate = found.candidates[0]
    assert candidate.finish_reason == "STOP"
    assert [part.text for part in candidate.content.parts] == [
        part.get("text") for part in written["candidates"][0]["content"]["parts"]
    ]
    calls = [part["functionCall"] for part in written["candidates"][0]["content"]["parts"] if "functionCall" in part]
    assert [(each.id, each.args) for each in found.function_calls or ()] == [
        (each["id"], each["args"]) for each in calls
    ]
    assert found.usage_metadata.total_token_count == 22
    assert (found.response_id, found.model_version) == ("i", "m")


def test_the_official_client_takes_an_error_for_an_answer_without_candidates(client, replay):
    """With the status 200; a whole error body is for a status of its own."""
    model = replay.register(orjson.dumps(write(read({"error": BUSY}))[0]), "application/json")
    found = client("google.genai").models.generate_content(model=model, contents="Hi")
    assert found.candidates is None
