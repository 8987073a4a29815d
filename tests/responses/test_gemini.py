"""Whole responses of Gemini: read, written, and written for what other dialects said.

Source: dialects.md §5.1-§5.4, §7.1, §7.2, §7.5.
"""

from __future__ import annotations

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
from streamkit.errors import BrokenFrame, EventTooLong, NeedsRepair, NotThisDialect, TooManyToolCalls
from streamkit.events import Aside, Opaque, ProviderFailed, UsageReported, Verdict
from streamkit.limits import Limits
from streamkit.policy import STRICT
from streamkit.read_options import ReadOptions
from streamkit.translation.bodies import decode_response
from tests.responses.rows import Dialect, Row, rows

USAGE = {"promptTokenCount": 8, "candidatesTokenCount": 5, "thoughtsTokenCount": 9, "totalTokenCount": 22}
COMPLETE = Verdict("complete")
GOOGLE, CLAUDE = Opaque("google", "QUJD"), Opaque("anthropic", "S")
CODE = {"executableCode": {"language": "PYTHON", "code": "1 + 1"}}
IMAGE = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}, "thoughtSignature": "QUJD"}


def whole(*parts: dict[str, Any], finish: str | None = "STOP", index: int = 0, **beside: Any) -> dict[str, Any]:
    candidate = {"content": {"parts": list(parts), "role": "model"}, "finishReason": finish, "index": index}
    return {"candidates": [candidate], "usageMetadata": USAGE, "modelVersion": "m", "responseId": "i", **beside}


GEMINI = Dialect("gemini", Response("openai-chat", id="i", model="m", vendor="openai", clean=True), labels=False)


def call(call_id: str = "f1", args: Any = None, **more: Any) -> dict[str, Any]:
    return {"functionCall": {"name": "look", "args": {"q": 1} if args is None else args, "id": call_id, **more}}


#: The parts of a candidate, and what they say, both ways.
PARTS: dict[str, tuple[list[dict[str, Any]], list[Any]]] = {
    "text": ([{"text": "hi"}], [Text("hi")]),
    "thoughts": ([{"text": "hm", "thought": True}, {"text": "hi"}], [Reasoning("hm", "summary"), Text("hi")]),
    "what is signed": (
        [
            {"text": "hm", "thought": True, "thoughtSignature": "QUJD"}, {"text": "a", "thoughtSignature": "QUJD"}, {"text": "b"},
            {"text": "", "thoughtSignature": "QUJD"},
        ],
        [Reasoning("hm", "summary", GOOGLE), Text("a", GOOGLE), Text("b"), Text("", GOOGLE)],
    ),
    "calls": (
        [{"text": "wait"}, {**call(), "thoughtSignature": "QUJD"}, call("f2", {}), {"text": "so"}],
        [
            Text("wait"), ToolCall(0, "f1", "look", '{"q": 1}', verdict=COMPLETE, signature=GOOGLE),
            ToolCall(1, "f2", "look", "{}", verdict=COMPLETE), Text("so"),
        ],
    ),
    "a call with more": ([{**call(x=1), "partMetadata": {"y": 2}}], [
        ToolCall(0, "f1", "look", '{"q": 1}', verdict=COMPLETE, extras={"x": 1}), Aside("google", "metadata", "part.partMetadata", {"y": 2}),
    ]),
    "what Google ran itself": (
        [CODE, {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2"}}, {"text": "2"}],
        [
            Aside("google", "server_tool", "part", CODE),
            Aside("google", "server_tool", "part", {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2"}}), Text("2"),
        ],
    ),
    "an image": ([{"text": "see"}, IMAGE], [Text("see"), Media("image", "image/png", "AAAA", extras={"thoughtSignature": "QUJD"})]),
    "an unknown part": ([{"text": "", "hologram": {"x": 1}}], [Aside("google", "metadata", "part.hologram", {"x": 1})]),
    "what another vendor signed": (
        [
            {"text": "hm", "thought": True}, {"text": "", "thought": True, "thoughtSignature": seal("reasoning", "anthropic", "S")},
            {"text": "a"}, {"text": "", "thoughtSignature": seal("text", "anthropic", "S")},
            {"text": "", "thought": True, "thoughtSignature": seal("opaque", "anthropic", "S")},
            {**call(), "thoughtSignature": seal("call", "anthropic", "S")},
        ],
        [
            Reasoning("hm", "summary", CLAUDE), Text("a", CLAUDE), RedactedReasoning(CLAUDE),
            ToolCall(0, "f1", "look", '{"q": 1}', verdict=COMPLETE, signature=CLAUDE),
        ],
    ),
}  # fmt: skip

SILENT = [
    ({"content": {"role": "model"}, "finishReason": "MAX_TOKENS"}, ""),
    ({"finishReason": "MAX_TOKENS"}, ""),
    ({"content": {"parts": [{"text": "a"}, {"text": "b"}]}, "finishReason": "MAX_TOKENS", "safetyRatings": []}, "ab"),
]  # fmt: skip


def test_a_prompt_that_was_blocked():
    feedback = {"blockReason": "SAFETY", "safetyRatings": [{"category": "C"}]}
    body = {"promptFeedback": feedback, "usageMetadata": USAGE, "modelVersion": "m"}
    found = GEMINI.read(body)
    assert found.clean
    assert (found.choices[0].stop_reason, found.choices[0].native_stop_reason) == ("content_filter", "SAFETY")
    written, report = GEMINI.write(found)
    assert written == body
    assert not report.losses
    found.choices[0].parts.insert(0, Text("a"))  # in a stream, what was said before
    written, _ = GEMINI.write(found)
    assert written["candidates"] == [{"content": {"parts": [{"text": "a"}], "role": "model"}, "index": 0}]


MENDED = [
    ([{"functionCall": {"name": "f", "args": '{"q": 1}'}}], {"arguments_not_object": 1}),
    ([{"text": 5}], {"field_invalid": 1}),
    ([call(), call("f1", {"q": 2})], {"id_duplicate": 1}),
    ([{"functionCall": {}}], {"call_ghost": 1}),
]  # fmt: skip


# -- errors ------------------------------------------------------------------------------------------------------------

BUSY = {"code": 503, "message": "all busy", "status": "UNAVAILABLE", "details": [{"x": 1}]}

ERRORS = [
    (BUSY, "unavailable", "all busy", {}),
    ({"code": 400, "message": "bad", "status": "INVALID_ARGUMENT"}, "invalid_request", "bad", {}),
    ({"code": 429, "message": "slow", "status": "RESOURCE_EXHAUSTED"}, "rate_limit", "slow", {}),
    ("busy", "server", "busy", {"error_shape": 1}),
]  # fmt: skip

UNCLEAN = [whole({"text": "a"}, finish=None), {"candidates": []}, {"usageMetadata": USAGE}, []]

OTHERS = [
    (b"<html>", NotThisDialect),
    (b"", NotThisDialect),
    (b'{"id": "c", "choices": []}', NotThisDialect),
    (b'[{"id": "c", "choices": []}]', NotThisDialect),
    (b'["a"]', NotThisDialect),
    (b'{"candidates": [', NotThisDialect),
    (b'[{"candidates": [{"finishReason": "STOP"}]} 5]', BrokenFrame),
]  # fmt: skip


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
    written, report = GEMINI.write(found)
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
        GEMINI.read(body, limits=Limits(tool_calls=1))
    with pytest.raises(EventTooLong):
        GEMINI.read(body, limits=Limits(event_bytes=10))


# -- what other dialects said ------------------------------------------------------------------------------------------

#: Parts of a response, the parts they become, and what is lost.
WRITTEN: dict[str, tuple[list[Any], list[dict[str, Any]], dict[str, int]]] = {
    "blocks of one kind": (
        [Text("a"), Text("b"), Reasoning("h"), Reasoning("m"), Text("c", CLAUDE), Text("d")],
        [
            {"text": "a"}, {"text": "b"}, {"text": "h", "thought": True}, {"text": "\n\nm", "thought": True}, {"text": "c"},
            {"text": "", "thoughtSignature": seal("text", "anthropic", "S")}, {"text": "d"},
        ],
        {"block_boundary": 2},
    ),
    "a refusal": ([Refusal("no")], [{"text": "no"}], {"refusal_as_text": 1}),
    "nothing": ([], [{"text": ""}], {}),
    "empty text": ([Text("")], [{"text": ""}], {}),
    "a signature that is no base64": (
        [Text("a", Opaque("google", "?"))], [{"text": "a"}, {"text": "", "thoughtSignature": seal("text", "google", "?")}], {},
    ),
    "a call's signature that is no base64": (
        [ToolCall(0, "f1", "look", "{}", signature=Opaque("google", "?"))],
        [{**call(args={}), "thoughtSignature": seal("call", "google", "?")}], {},
    ),
    "arguments": (
        [ToolCall(0, "a", "look", ""), ToolCall(1, "b", "look", "[1]"), ToolCall(2, "c", "look", "1 + 1", "custom")],
        [call("a", {}), call("b", {"_raw_arguments": "[1]"}), call("c", {"input": "1 + 1"})],
        {"arguments_wrapped": 1, "custom_tool_wrapped": 1},
    ),
    "calls that no client may run": (
        [Text("a"), ToolCall(0, "a", "look", '{"q"'), ToolCall(1, "b", "", "{}"), ToolCall(2, "c", "look", "{}", ended=False)],
        [{"text": "a"}], {"call_withheld": 3},
    ),
    "fields of another dialect": (
        [ToolCall(0, "f1", "look", "{}", extras={"x": 1}), Aside("openai", "logprobs", "logprobs", {})], [call(args={})],
        {"metadata": 1, "logprobs": 1},
    ),
}  # fmt: skip

STOPS = [
    ("length", "max_tokens", "anthropic", "MAX_TOKENS", {}),
    ("context_full", None, "anthropic", "MAX_TOKENS", {"stop_reason": 1}),
    ("refusal", "refusal", "anthropic", "SAFETY", {"stop_reason": 1}),
    ("content_filter", "RECITATION", "google", "RECITATION", {}),
    ("content_filter", "RECITATION", "openai", "SAFETY", {}),
    ("other", "BORED", "google", "BORED", {}),
    ("other", "bored", "openai", "STOP", {"stop_reason": 1}),
    ("tool_calls", None, "openai", "MAX_TOKENS", {"stop_reason": 1}),
]  # fmt: skip


def test_a_result_is_no_part_of_a_response():
    with pytest.raises(TypeError, match="a response can't contain a ToolResult"):
        GEMINI.write(GEMINI.response(ToolResult("c")))


# -- the official client -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*PARTS, *WRITTEN])
def test_the_official_client_reads_it(client, replay, name):
    said = PARTS[name][1] if name in PARTS else WRITTEN[name][0]
    vendor = "google" if name in PARTS else "openai"
    written, _ = GEMINI.write(GEMINI.response(*said, vendor=vendor, usage=UsageReported(8, None, None, 14, 9, 22)))
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
    model = replay.register(orjson.dumps(GEMINI.write(GEMINI.read({"error": BUSY}))[0]), "application/json")
    found = client("google.genai").models.generate_content(model=model, contents="Hi")
    assert found.candidates is None


# -- all rows ----------------------------------------------------------------------------------------------------------

CANDIDATES = whole({"text": "a"}, promptFeedback={"safetyRatings": []}, candidates=[
    {
        **whole({"text": "a"})["candidates"][0], "safetyRatings": [{"category": "C", "probability": "LOW"}],
        "citationMetadata": {"citationSources": [{"uri": "u"}]}, "avgLogprobs": -0.5, "finishMessage": "done",
        "groundingMetadata": {"webSearchQueries": ["q"], "searchEntryPoint": {"renderedContent": "x"}},
        "logprobsResult": {"chosenCandidates": [{"token": "a"}]},
    },
    {**whole({"text": "b"}, finish="MAX_TOKENS", index=1)["candidates"][0], "tokenCount": 3},
])  # fmt: skip


def part_row(parts: list[Any], said: list[Any]) -> Row:
    calls = any(isinstance(part, ToolCall) for part in said)
    body = whole(*parts, createTime="2026-01-01T00:00:00.000000Z", modelStatus={"x": 1})
    return GEMINI.kept(body, said, said={
        "clean": True, "id": "i", "model": "m", "created": 1767225600, "usage.input_total": 8, "usage.output_total": 14,
        "extras": {"modelStatus": {"x": 1}}, "choices[0].stop_reason": "tool_calls" if calls else "stop", "choices[0].native_stop_reason": "STOP",
    })  # fmt: skip


def stop_row(stop: Any, native: str | None, vendor: str, written: str, losses: dict[str, int]) -> Row:
    said = evolve(
        GEMINI.foreign, vendor=vendor, choices=[Choice(parts=[Text("a")], stop_reason=stop, native_stop_reason=native)]
    )
    return GEMINI.of_another(said, None, losses, at={"candidates[0].finishReason": written})


def error_row(error: Any, kind: str, message: str, repairs: dict[str, int]) -> Row:
    return GEMINI.failed({"error": error}, kind, message, repairs, written=None if repairs else {"error": error})


def candidates(*parts: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"at": {"candidates": whole(*parts, **members)["candidates"]}}


ROWS = {
    **rows("parts", PARTS, part_row),
    "candidates with all that is beside their content": GEMINI.kept(CANDIDATES, None, said={
        "choices[0].text": "a", "choices[1].text": "b", "choices[1].stop_reason": "length", "choices[0].asides[6].choice": 0, "choices[0].asides[7]": ...,
    }),
    "a call without an id": Row(whole({"functionCall": {"name": "f", "args": {}}}), None, {"choices[0].parts[0].id_made": True}),
    **rows("silent", SILENT, lambda candidate, text: Row(
        {"candidates": [candidate]}, None, {"clean": True, "text": text}, **candidates({"text": text}, finish="MAX_TOKENS")
    )),
    **rows("mended", MENDED, lambda parts, repairs: GEMINI.mended(whole(*parts), repairs)),
    **rows("strict", MENDED, lambda parts, _: Row(whole(*parts), refused=(NeedsRepair, ""), options={"policy": STRICT})),
    **rows("errors", ERRORS, error_row),
    **rows("errors in a list", ERRORS, lambda *line: evolve(error_row(*line), given=[{"error": line[0]}])),
    "an error of another dialect": GEMINI.of_another(
        GEMINI.response(clean=False, error=ProviderFailed("rate_limit", "slow down", "rate_limit_error", vendor="anthropic")),
        {"error": {"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED"}}, {"error_detail": 1},
    ),
    "a response that was cut": GEMINI.of_another(
        GEMINI.response(Text("a"), ToolCall(0, "c1", "look", '{"q"'), clean=False), None, {"answer_withheld": 1}, withheld=1,
        at={"error.status": "UNAVAILABLE", "candidates": ...},
    ),
    **rows("no reason", UNCLEAN, lambda body: Row(body, None, {"clean": False, "error": None}, None)),
    **rows("of another kind", OTHERS, GEMINI.refused),
    **rows("another dialect", WRITTEN, lambda parts, written, losses: GEMINI.of_another(GEMINI.response(*parts), None, losses, **candidates(*written))),
    **rows("stops", STOPS, stop_row),
    "what is beside the parts": GEMINI.of_another(
        evolve(
            GEMINI.foreign, usage=UsageReported(11, 2, 3, 7, 9, None, {}, "anthropic"), extras={"system_fingerprint": "f"}, created=0,
            choices=[Choice(parts=[Text("a")], stop_reason="stop", stop_sequence="x")],
        ),
        None, {"usage_detail": 1, "response_fields": 1, "stop_sequence": 1}, at={
            "usageMetadata": {
                "promptTokenCount": 11, "cachedContentTokenCount": 2, "candidatesTokenCount": 7, "thoughtsTokenCount": 9, "totalTokenCount": 18,
            },
            "createTime": "1970-01-01T00:00:00.000000Z",
        },
    ),
    "no choices": GEMINI.of_another(
        evolve(GEMINI.foreign, id=None, model=None), {"candidates": whole({"text": ""})["candidates"]}, None
    ),
    "asides without a part": GEMINI.of_another(
        GEMINI.response(Aside("google", "metadata", "part.x", 1), Aside("google", "unknown_event", "field", 5), vendor="google"),
        None, {"unknown_event": 1}, **candidates({"text": "", "x": 1}),
    ),
    "images elsewhere": GEMINI.of_another(
        GEMINI.response(Media("image", url="https://x/y"), Media("image", file_id="f"), Media("image")), None, {"media_output": 2},
        **candidates({"fileData": {"fileUri": "https://x/y"}}),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_a_response(name):
    GEMINI.check(ROWS[name])
