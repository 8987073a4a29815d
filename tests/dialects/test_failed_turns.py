"""No client of any dialect takes a turn that failed for an answer: streams and whole answers, every reason, every pair."""

from __future__ import annotations

import orjson
import pytest

from streamkit.conversation.messages import Choice, Response, Text
from streamkit.dialects import DIALECTS
from streamkit.events import StopReasonSeen
from streamkit.report import Status, StreamReport
from streamkit.tool_calls.ending import FAILED_TURNS, failure_in
from streamkit.translation.bodies import decode_response, encode_response
from tests.laws.running import read, translate
from tests.vectors import bedrock as br
from tests.vectors import gemini as gm
from tests.vectors.field.outputs import SEE
from tests.vectors.openai_chat import CALLED, DONE, ROLE, call, calls, chunk, said
from tests.vectors.vector import sse
from tests.whole_answers import ANSWERING_WHOLE

GOOGLE = (
    "MALFORMED_FUNCTION_CALL",
    "UNEXPECTED_TOOL_CALL",
    "TOO_MANY_TOOL_CALLS",
    "MISSING_THOUGHT_SIGNATURE",
    "MALFORMED_RESPONSE",
    "LANGUAGE",
    "NO_IMAGE",
    "IMAGE_OTHER",
    "PUP_LIMITED_DISABLED",
    "OTHER",
)
AMAZON = ("malformed_tool_use", "malformed_model_output")
CLONES = ("abort", "error", "network_error", "insufficient_system_resource")
KINDS = {
    "MISSING_THOUGHT_SIGNATURE": "invalid_request",
    "LANGUAGE": "invalid_request",
    "PUP_LIMITED_DISABLED": "permission",
}
KINDS |= {"network_error": "unavailable", "insufficient_system_resource": "unavailable"}


def streams(word: str) -> list[tuple[str, bytes]]:
    """A stream that ends with the reason, with content and without."""
    if word in GOOGLE:
        return [
            ("gemini", gm.events(gm.chunk(gm.text("Hi")), gm.chunk(finish=word))),
            ("gemini", gm.events(gm.chunk(finish=word))),
            ("gemini", gm.events(gm.chunk(gm.call("f", {"x": 1}), finish=word))),
        ]
    if word in AMAZON:
        ends = br.finish(word), br.counts()
        return [("bedrock", br.vector("", br.START, *said, *ends).body) for said in ((), br.block(0, "Hi"))]
    return [("openai-chat", sse(ROLE, *said_, chunk(finish=word), DONE)) for said_ in ((), (said("Hi"),))]


CASES = [
    pytest.param(word, dialect, body, id=f"{word}-{number}")
    for word in (*GOOGLE, *AMAZON, *CLONES)
    for number, (dialect, body) in enumerate(streams(word))
]


@pytest.mark.parametrize(("word", "dialect", "body"), CASES)
def test_no_client_takes_a_failed_turn_for_an_answer(word, dialect, body):
    found = read(dialect, [body])
    assert not found.clean
    assert not found.stops
    assert found.report.status is Status.PROVIDER_ERROR
    assert found.report.failure.type == KINDS.get(word, "server")
    for target in DIALECTS:
        output, _ = translate(dialect, target, [body], passing=False)
        seen = SEE[target](output)
        assert (seen.stop, word in (seen.error or "")) == (None, True), target


@pytest.mark.parametrize(("word", "dialect", "body"), CASES)
def test_within_its_dialect_the_reason_passes_as_it_came(word, dialect, body):
    output, report = translate(dialect, dialect, [body], passing=True)
    assert report.status is Status.PROVIDER_ERROR
    assert word.encode() in output
    if dialect == "openai-chat":  # its reason is not the end, and `[DONE]` would say success
        assert body.startswith(output[: output.index(b'data: {"error"')])
        assert b"[DONE]" not in output
    else:
        assert output == body


def whole(word: str) -> tuple[str, bytes]:
    """A whole body with the reason, and text."""
    if word in GOOGLE:
        return "gemini", orjson.dumps(gm.chunk(gm.text("Hi"), finish=word))
    if word in AMAZON:
        message = {"role": "assistant", "content": [{"text": "Hi"}]}
        body = {"output": {"message": message}, "stopReason": word, "usage": br.COUNTS, "metrics": {"latencyMs": 1}}
        return "bedrock", orjson.dumps(body)
    choice = {"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": word}
    return "openai-chat", orjson.dumps({"id": "c", "object": "chat.completion", "model": "m", "choices": [choice]})


@pytest.mark.parametrize("target", ANSWERING_WHOLE)
@pytest.mark.parametrize("word", [*GOOGLE, *AMAZON, *CLONES])
def test_so_it_is_with_whole_answers(word, target):
    dialect, body = whole(word)
    response = decode_response(body, dialect)
    assert (response.clean, response.text) == (False, "Hi")
    report = StreamReport()
    written = encode_response(response, target, report=report)
    again = decode_response(written, target)
    assert again.error is not None
    assert word in again.error.message
    assert report.losses["answer_withheld"] == 1


def test_an_answer_put_together_with_such_a_reason_is_no_answer():
    response = Response("openai-chat", clean=True, choices=[Choice(stop_reason="malformed_tool", parts=[Text("Hi")])])
    for target in ANSWERING_WHOLE:
        assert b"malformed_tool" in encode_response(response, target, report=StreamReport())


def test_what_the_provider_said_of_it_is_told():
    explained = {"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": "print(x)", "index": 0}]}
    output, report = translate("gemini", "anthropic", [gm.events(explained)], passing=False)
    assert SEE["anthropic"](output).error == "the provider gave the finish reason 'MALFORMED_FUNCTION_CALL': print(x)"
    assert report.losses == {"error_detail": 1}
    of_a_stop = {"candidates": [{"finishReason": "STOP", "finishMessage": "fine", "index": 0}]}
    assert translate("gemini", "openai-chat", [gm.events(of_a_stop)], passing=False)[1].losses == {"metadata": 1}


def test_every_word_of_the_table_is_a_failure_of_some_dialect():
    assert {word.lower() for word in (*GOOGLE, *AMAZON, *CLONES)} | {"timeout"} == set(FAILED_TURNS) | {"error"}
    assert failure_in(StopReasonSeen("error", "novel")).message == "the provider gave the finish reason 'novel'"


NAMELESS = "the model called a tool without a name"


@pytest.mark.parametrize("target", DIALECTS)
def test_a_call_whose_name_never_came_is_an_error_for_every_client(target):
    body = sse(ROLE, said("Hi"), calls(call(0, "a", None, '{"x":1}')), CALLED, DONE)
    output, report = translate("openai-chat", target, [body], passing=False)
    seen = SEE[target](output)
    assert (seen.stop, seen.error) == (None, NAMELESS)
    assert [held.arguments for held in report.withheld] == ['{"x":1}']


@pytest.mark.parametrize("target", ANSWERING_WHOLE)
def test_so_it_is_in_a_whole_answer(target):
    message = {"role": "assistant", "content": "Hi", "tool_calls": [call(0, "a", None, '{"x":1}')]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    whole_body = orjson.dumps({"id": "c", "object": "chat.completion", "model": "m", "choices": [choice]})
    answer = decode_response(whole_body, "openai-chat")
    again = decode_response(encode_response(answer, target, report=StreamReport()), target)
    assert (answer.clean, again.error is not None and NAMELESS in again.error.message) == (False, True)


def test_within_its_dialect_such_a_call_gets_no_success():
    body = sse(ROLE, calls(call(0, "a", None, '{"x":1}')), CALLED, DONE)
    output, report = translate("openai-chat", "openai-chat", [body], passing=True)
    assert report.status is Status.PROVIDER_ERROR
    assert output.endswith(b"}\n\n")
    assert NAMELESS.encode() in output
    assert b"[DONE]" not in output


def test_a_stray_empty_object_beside_a_call_takes_nothing_from_it():
    body = sse(ROLE, calls(call(0, "a", "f", "{}")), calls(call(7, None, None, "{}")), CALLED, DONE)
    assert read("openai-chat", [body]).clean
