"""Fixtures of aimock, in the form that @copilotkit/aimock 1.43 documents: what is meant, written in the dialect that is asked."""

from __future__ import annotations

import json

import pytest

from streamkit.dialects import DIALECTS
from streamkit.errors import UsageError
from streamkit.http_errors import decode_error
from streamkit.lab.recording import BadRecording
from streamkit.lab.recording.loading import parse_any
from streamkit.recipes import collect

TEXT = "Gravity is a fundamental force that attracts objects."
FIRST = next(iter(DIALECTS.built_in))


def loaded(response, dialect=FIRST, **more):
    fixtures = {"fixtures": [{"match": {"userMessage": "hello"}, "response": response, **more}]}
    (found,) = parse_any(json.dumps(fixtures).encode(), name="dir/weather.json", dialect=dialect)
    return found


async def said(recording):
    async def source():
        for read in recording.reads:
            yield read.data

    return await collect(source(), recording.dialect)


@pytest.mark.parametrize("dialect", DIALECTS.built_in)
async def test_text_reasoning_and_calls_are_what_the_dialect_says_of_them(dialect):
    calls = [{"name": "get_weather", "arguments": {"city": "Zürich", "n": 1.0}}, {"name": "now", "arguments": "{}"}]
    found = loaded({"content": TEXT, "toolCalls": calls, "reasoning": "Hm, so.", "id": "a1", "model": "m1"}, dialect)
    response = await said(found)
    assert (found.id, found.dialect, found.exact, found.request) == ("weather-0", dialect, False, None)
    assert (response.text, response.clean, dict(response.report.repairs)) == (TEXT, True, {})
    assert [(call.name, json.loads(call.arguments), call.verdict.kind) for call in response.tool_calls] == [
        ("get_weather", {"city": "Zürich", "n": 1.0}, "complete"),
        ("now", {}, "complete"),
    ]
    assert found == loaded(
        {"content": TEXT, "toolCalls": calls, "reasoning": "Hm, so.", "id": "a1", "model": "m1"}, dialect
    )


async def test_the_end_and_the_counts_are_those_of_the_fixture():
    usage = {"prompt_tokens": 7, "completion_tokens": 3}
    response = await said(loaded({"content": {"a": [1]}, "finishReason": "length", "usage": usage, "created": 5}))
    (choice,) = response.choices
    assert (choice.text, choice.stop_reason, response.created) == ('{"a":[1]}', "length", 5)
    assert (response.usage.input_total, response.usage.output_total, response.usage.total) == (7, 3, 10)


async def test_blocks_come_in_their_order():
    call = {"type": "toolCall", "name": "f", "arguments": "{}", "id": "c9"}
    found = loaded({"blocks": [call, {"type": "text", "text": "Let me see."}]}, "anthropic")
    response = await said(found)
    assert [type(part).__name__ for part in response.choices[0].parts] == ["ToolCall", "Text"]
    assert response.tool_calls[0].id == "c9"


async def test_arguments_that_are_no_json_stay_so():
    response = await said(loaded({"toolCalls": [{"name": "f", "arguments": '{"a": }'}]}, "ollama"))  # which has objects
    assert response.tool_calls[0].arguments == '{"_raw_arguments":"{\\"a\\": }"}'
    response = await said(loaded({"toolCalls": [{"name": "f", "arguments": '{"a": }'}]}))
    assert (response.tool_calls[0].arguments, response.tool_calls[0].verdict.kind) == ('{"a": }', "malformed")


def test_a_call_that_is_not_whole_is_written_as_one():
    found = loaded({"toolCalls": [{"name": "f", "arguments": '{"a": '}]}, "openai-responses")
    assert b'"type":"function_call","status":"incomplete"' in found.body


@pytest.mark.parametrize(
    ("timing", "times"),
    [
        ({}, [0, 0, 0]),
        ({"latency": 50}, [0.05, 0.10, 0.15]),
        ({"streamingProfile": {"ttft": 200, "tps": 40, "jitter": 0.1}}, [0.2, 0.225, 0.25]),
        ({"streamingProfile": {"tps": 10}}, [0.1, 0.2, 0.3]),
        ({"recordedTimings": {"ttftMs": 400, "interChunkDelaysMs": [10, 30], "totalDurationMs": 440}}, [0.4, 0.41, 0.44]),
        ({"recordedTimings": {"ttftMs": 400, "interChunkDelaysMs": [100], "totalDurationMs": 0}}, [0.4, 0.5, 0.6]),
        ({"recordedTimings": {"ttftMs": -1, "interChunkDelaysMs": []}}, [0, 0, 0]),
    ],
)  # fmt: skip
def test_each_piece_has_its_delay(timing, times):
    found = loaded({"content": TEXT}, chunkSize=10, **timing)
    assert [read.t for read in found.reads][:3] == pytest.approx(times)
    assert found.end.t == found.reads[-1].t


@pytest.mark.parametrize(
    ("fault", "reads", "t"),
    [
        ({"truncateAfterChunks": 2}, 2, 0.2),
        ({"truncateAfterChunks": 99}, None, None),
        ({"disconnectAfterMs": 350}, 3, 0.35),
        ({"disconnectAfterMs": 50}, 0, 0.05),
    ],
)
async def test_a_fixture_that_breaks_off_is_a_recording_that_was_cut(fault, reads, t):
    whole = loaded({"content": TEXT}, latency=100)
    found = loaded({"content": TEXT}, latency=100, **fault)
    if reads is None:
        assert found == whole
        return
    assert found.reads == whole.reads[:reads]
    assert (found.ending, found.end.t, found.end.reads) == ("cut", pytest.approx(t), reads)
    assert not (await said(found)).clean


@pytest.mark.parametrize("dialect", [name for name, each in DIALECTS.built_in.items() if each.errors is not None])
def test_an_error_is_the_dialects_own(dialect):
    error = {"message": "Slow down.", "type": "rate_limit_error", "code": "rate_limit_exceeded"}
    found = loaded({"error": error, "status": 429, "retryAfter": 30}, dialect)
    failed = decode_error(found.response.status, found.body, dialect, found.response.headers)
    assert (failed.type, failed.message, failed.retry_after_s) == ("rate_limit", "Slow down.", 30)
    assert loaded({"error": error, "status": 429}, dialect).response.headers["retry-after"] == "1"
    assert loaded({"error": {"message": "Oh."}}, dialect).response.status == 500


@pytest.mark.parametrize(
    ("response", "message"),
    [
        ({"embedding": [0.1]}, "fixtures[0]: it is not a chat response: it has 'embedding'"),
        ({}, "fixtures[0]: it is not a chat response: it has no members"),
        ({"toolCalls": [{"name": "f"}]}, "fixtures[0]: 'arguments' is missing"),
        ({"blocks": [{"type": "text"}]}, "fixtures[0]: 'text' is missing"),
        ({"blocks": ["text"]}, "fixtures[0]: a value has an unexpected type"),
        ("Hi", "fixtures[0]: a value has an unexpected type"),
    ],
)
def test_what_is_no_answer_is_refused_with_its_place(response, message):
    with pytest.raises(BadRecording) as caught:
        loaded(response)
    assert str(caught.value) == f"dir/weather.json: {message}"


def test_a_dialect_has_to_be_named():
    with pytest.raises(UsageError, match="fixtures of aimock have no dialect"):
        loaded({"content": "Hi"}, dialect="")
