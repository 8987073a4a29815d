"""Requests and whole responses by name: which way a name is read, what is refused, what is reported. Source: design.md §8."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from attrs import evolve

from streamkit.conversation.messages import Request, Response, Text, ToolCall, ToolResult, Turn
from streamkit.dialects import openai_chat
from streamkit.errors import BadRequest, TooManyToolCalls, UsageError
from streamkit.limits import Limits
from streamkit.read_options import ReadOptions
from streamkit.report import StreamReport
from streamkit.translation import bodies
from streamkit.translation.bodies import decode_request, decode_response, encode_request, encode_response

REQUEST = b'{"model": "m", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 5}'
CALLS = [{"id": f"c{n}", "type": "function", "function": {"name": "f", "arguments": "{}"}} for n in range(2)]
ANSWER = json.dumps(
    {
        "id": "i",
        "created": 1,
        "model": "m",
        "choices": [{"message": {"role": "assistant", "tool_calls": CALLS}, "finish_reason": "tool_calls"}],
    }
).encode()


def test_a_request_comes_from_a_client_and_goes_to_a_provider():
    request = decode_request(REQUEST, "openai-python")
    assert request.dialect == "openai-chat"
    assert json.loads(encode_request(request, "openai"))["max_completion_tokens"] == 5
    with pytest.raises(UsageError, match="deepseek"):
        decode_request(REQUEST, "deepseek")
    with pytest.raises(UsageError, match="openai-python"):
        encode_request(request, "openai-python")


def test_a_response_comes_from_a_provider_and_goes_to_a_client():
    response = decode_response(ANSWER, "deepseek")
    assert response.report.habits
    assert json.loads(encode_response(response, "openai-python"))["object"] == "chat.completion"
    with pytest.raises(UsageError, match="openai-python"):
        decode_response(ANSWER, "openai-python")
    with pytest.raises(UsageError, match="deepseek"):
        encode_response(response, "deepseek")


@pytest.mark.parametrize(
    "use",
    [
        lambda name: decode_request(REQUEST, name),
        lambda name: encode_request(Request("openai-chat"), name),
        lambda name: decode_response(ANSWER, name),
        lambda name: encode_response(Response("openai-chat"), name),
    ],
)
def test_a_dialect_that_only_streams_is_refused(use: Callable[[str], object], monkeypatch):
    silent = evolve(openai_chat.DIALECT, name="silent", bodies=None)
    monkeypatch.setattr(bodies, "source_named", lambda _name: (silent, None))
    monkeypatch.setattr(bodies, "client_named", lambda _name: (silent, None))
    with pytest.raises(UsageError, match="silent has no requests or whole responses"):
        use("silent")


def unpaired() -> Request:
    return Request(
        "openai-chat",
        "m",
        [Turn("user", [Text("hi")]), Turn("assistant", [ToolCall(0, "c1", "f", "{}")]), Turn("user", [Text("so?")])],
    )


def test_a_call_without_its_result_is_refused_or_repaired():
    with pytest.raises(BadRequest, match="'c1' has no result") as caught:
        encode_request(unpaired(), "openai-chat")
    assert caught.value.path == "turns[1].parts[0]"
    report = StreamReport()
    written = json.loads(encode_request(unpaired(), "openai-chat", repair=True, report=report))
    assert [message["role"] for message in written["messages"]] == ["user", "assistant", "tool", "user"]
    assert report.repairs == {"result_missing": 1}
    assert report.losses == {"result_error": 1}


def test_a_result_without_its_call_is_refused():
    request = Request("openai-chat", "m", [Turn("user", [ToolResult("c9", [Text("done")])])])
    with pytest.raises(BadRequest, match="'c9' has no tool call"):
        encode_request(request, "openai-chat")


def test_what_is_lost_of_a_response_is_in_its_own_report():
    response = decode_response(ANSWER, "openai-chat")
    response.choices[0].stop_sequence = "x"
    encode_response(response, "openai-chat")
    assert response.report.losses == {"stop_sequence": 1}
    other = StreamReport()
    encode_response(response, "openai-chat", report=other)
    assert other.losses == {"stop_sequence": 1}


def test_limits_hold_for_whole_bodies():
    report = StreamReport()
    with pytest.raises(TooManyToolCalls):
        decode_response(ANSWER, "openai-chat", ReadOptions(limits=Limits(tool_calls=1)), report=report)
    assert isinstance(report.error, TooManyToolCalls)
    assert len(decode_response(ANSWER, "openai-chat", ReadOptions(limits=Limits(tool_calls=2))).tool_calls) == 2


def test_the_report_counts_bytes():
    report = decode_response(ANSWER, "openai-chat").report
    assert (report.bytes_in, report.frames, report.clean) == (len(ANSWER), 1, True)


@pytest.mark.parametrize("target", ["openai-chat", "openai-responses"])
@pytest.mark.parametrize(
    ("schema", "written", "repairs"),
    [
        ({"type": "object"}, {"type": "object", "properties": {}}, {"properties_added": 1}),
        ({"type": "object", "properties": {}}, {"type": "object", "properties": {}}, {}),
    ],
)
def test_a_tool_without_parameters_is_written_as_openai_takes_it(target, schema, written, repairs):
    """As MCP servers declare it; OpenAI refuses an object schema without properties."""
    asked = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}
    asked["tools"] = [{"name": "now", "input_schema": schema}]
    report = StreamReport()
    body = json.loads(encode_request(decode_request(json.dumps(asked).encode(), "anthropic"), target, report=report))
    tool = body["tools"][0]
    assert (tool.get("function") or tool)["parameters"] == written
    assert dict(report.repairs) == repairs


@pytest.mark.parametrize(
    ("dialect", "member", "path"),
    [
        ("openai-chat", {"max_tokens": 2**64}, "max_tokens"),
        ("openai-chat", {"seed": -(2**65)}, "seed"),
        ("anthropic", {"thinking": {"type": "enabled", "budget_tokens": 10**30}}, "thinking.budget_tokens"),
        ("gemini", {"generationConfig": {"maxOutputTokens": 2**64}}, "generationConfig.maxOutputTokens"),
        ("gemini", {"generationConfig": {"responseMimeType": []}}, "generationConfig.responseMimeType"),
    ],
)
def test_what_no_number_or_word_can_be_is_a_bad_request_with_its_path(dialect, member, path):
    said = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
    said = said if dialect == "gemini" else {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    with pytest.raises(BadRequest) as caught:
        decode_request(json.dumps({**said, **member}).encode(), dialect)
    assert caught.value.path == path


#: Two blocks of reasoning as a whole response or a request has them, and where they are one string.
SUMMARIES = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": text} for text in "AB"]}
RESPONSES = {
    "openai-responses": {"id": "r", "object": "response", "model": "m", "status": "completed", "output": [SUMMARIES]},
    "mistral": {
        "id": "r", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": [{"type": "thinking", "thinking": [{"type": "text", "text": text}]} for text in "AB"]}, "finish_reason": "stop"}],
    },
    "gemini-interactions": {
        "id": "r", "object": "interaction", "model": "m", "status": "completed",
        "steps": [{"type": "thought", "summary": [{"type": "text", "text": text} for text in "AB"]}, {"type": "model_output", "content": [{"type": "text", "text": "Hi"}]}],
    },
}  # fmt: skip


@pytest.mark.parametrize("source", RESPONSES)
def test_blocks_of_reasoning_are_parted_by_a_blank_line_in_one_string(source):
    found = decode_response(json.dumps(RESPONSES[source]).encode(), source)
    assert found.choices[0].reasoning == "A\n\nB"
    chat = json.loads(encode_response(found, "openai-chat"))["choices"][0]["message"]
    assert chat["reasoning_content"] == "A\n\nB"
    assert json.loads(encode_response(found, "ollama"))["message"]["thinking"] == "A\n\nB"


@pytest.mark.parametrize(("to", "name"), [("deepseek", "reasoning_content"), ("ollama", "thinking")])
def test_so_they_are_in_a_history(to, name):
    turns = [{"role": "user", "content": "Hi"}, SUMMARIES, {"role": "assistant", "content": "Hi"}]
    request = decode_request(json.dumps({"model": "m", "input": turns}).encode(), "openai-responses")
    assert json.loads(encode_request(request, to))["messages"][1][name] == "A\n\nB"
