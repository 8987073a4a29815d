"""Deferred tools and the provider's search of them: carried between the two vendors that have both, lost elsewhere."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import orjson
import pytest

from streamkit.conversation.response_events import response_events
from streamkit.dialects import encode
from streamkit.pipeline import pipe
from streamkit.read_options import ReadOptions
from streamkit.recipes import collect, transcode
from streamkit.report import StreamReport
from streamkit.testing import FaultySource
from streamkit.translation.bodies import decode_request, decode_response, encode_request, encode_response
from streamkit.translation.tool_searches import carry_tool_searches_of
from tests.requests.rows import translate
from tests.requests.sdk_types import faults

CLAUDE, GPT = "claude-opus-5", "gpt-5.5"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
FINDER = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
WEATHER = {"name": "weather", "description": "The weather.", "input_schema": SCHEMA, "defer_loading": True}
PLAIN = {"name": "plain", "description": "Plain.", "input_schema": SCHEMA}
REFERENCES = {
    "type": "tool_search_tool_search_result", "tool_references": [{"type": "tool_reference", "tool_name": "weather"}],
}  # fmt: skip
SEARCHED = [
    {"type": "server_tool_use", "id": "srvtoolu_1", "name": FINDER["name"], "input": {"query": "rain"}},
    {"type": "tool_search_tool_result", "tool_use_id": "srvtoolu_1", "content": REFERENCES},
]
CALLED = {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Rome"}}
MESSAGES = [
    {"role": "user", "content": "Rain?"},
    {"role": "assistant", "content": [{"type": "text", "text": "I look."}, *SEARCHED, CALLED]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "dry"}]},
]
BODY = {"model": CLAUDE, "max_tokens": 99, "tools": [FINDER, WEATHER, PLAIN], "messages": MESSAGES}
FUNCTION = {"type": "function", "name": "weather", "description": "The weather.", "parameters": SCHEMA, "strict": False}
DEFERRED = {**FUNCTION, "defer_loading": True}
ITEMS = [
    {
        "id": "tsc_1", "type": "tool_search_call", "call_id": None, "execution": "server", "status": "completed",
        "arguments": {"query": "rain"},
    },
    {
        "id": "tso_1", "type": "tool_search_output", "call_id": None, "execution": "server", "status": "completed",
        "tools": [DEFERRED],
    },
]  # fmt: skip


def without_ids(value: Any) -> Any:
    """A JSON value without the ids of searches, which are made."""
    if isinstance(value, list):
        return [without_ids(each) for each in value]
    if not isinstance(value, dict):
        return value
    made = value.get("type") in {"server_tool_use", "tool_search_tool_result", "tool_search_call", "tool_search_output"}
    made = made or value.get("type") == "tool_search_result"
    ids = {"id", "tool_use_id"} | ({"call_id"} if value.get("type") == "tool_search_result" else set())
    return {name: without_ids(each) for name, each in value.items() if not made or name not in ids}


def test_definitions_the_search_and_its_history_are_carried_and_back():
    there, report = translate({**BODY, "model": GPT}, "anthropic", "openai-responses")
    assert faults("openai-responses", there) == []
    assert not report.losses
    assert there["tools"] == [{"type": "tool_search"}, DEFERRED, {**FUNCTION, "name": "plain", "description": "Plain."}]
    kinds = [item.get("type", "message") for item in there["input"]]
    assert kinds[2:5] == ["tool_search_call", "tool_search_output", "function_call"]
    assert without_ids(there["input"][2:4]) == without_ids(ITEMS)
    back, report = translate({**there, "model": CLAUDE}, "openai-responses", "anthropic")
    assert faults("anthropic", back) == []
    assert report.lost == [("metadata", "item")]  # the phase of the text, which only OpenAI's model was to see
    assert without_ids(back) == without_ids(BODY)


def test_tools_that_only_a_search_defines_are_defined_for_the_other_vendor():
    called = {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c1", "output": "dry"}
    items = [{"role": "user", "content": "Rain?"}, *ITEMS, called, output]
    body = {"model": CLAUDE, "tools": [{"type": "tool_search"}], "input": items}
    there, _ = translate(body, "openai-responses", "anthropic")
    assert there["tools"] == [FINDER, WEATHER]
    assert without_ids(there["messages"][1]["content"][:2]) == without_ids(SEARCHED)


def without_null(item: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if value is not None}


@pytest.mark.parametrize(("dialect", "body"), [
    ("anthropic", BODY),
    ("openai-responses", {"model": GPT, "tools": [{"type": "tool_search"}, DEFERRED], "input": [without_null(item) for item in ITEMS]}),
    ("gemini-interactions", {"model": "m", "input": "Rain?", "tools": [{"type": "tool_search"}, {
        "type": "function", "name": "weather", "parameters": SCHEMA, "defer_loading": True}]}),
])  # fmt: skip
def test_within_a_dialect_all_stays_as_it_came(dialect, body):
    request = decode_request(orjson.dumps(body), dialect)
    assert [(tool.deferred, tool.finds_tools) for tool in request.tools[:2]] == [(False, True), (True, False)]
    written, report = translate(body, dialect, dialect)
    assert written == body
    assert not report.losses


def test_the_steps_of_interactions_are_carried_to_a_provider_that_searches():
    steps = [
        {"type": "user_input", "content": [{"type": "text", "text": "Rain?"}]},
        {"type": "tool_search_call", "id": "s1", "arguments": {"function_names": ["weather"]}},
        {"type": "tool_search_result", "call_id": "s1", "result": [{"type": "function", "name": "weather"}]},
        {"type": "function_call", "id": "c1", "name": "weather", "arguments": {"city": "Rome"}},
        {"type": "function_result", "call_id": "c1", "name": "weather", "result": "dry"},
    ]
    function = {"type": "function", "name": "weather", "description": "The weather.", "parameters": SCHEMA}
    tools = [{"type": "tool_search"}, {**function, "defer_loading": True}]
    written, report = translate({"model": CLAUDE, "input": steps, "tools": tools}, "gemini-interactions", "anthropic")
    assert faults("anthropic", written) == []
    assert written["tools"] == [FINDER, WEATHER]
    call, result, _ = written["messages"][1]["content"]
    assert (call["input"], result["content"]) == ({"query": "weather"}, REFERENCES)
    assert "server_tool" not in report.losses


@pytest.mark.parametrize(("target", "model"), [
    ("openai-chat", GPT), ("bedrock", CLAUDE), ("gemini", "gemini-3.5-flash"), ("openai-responses", "gpt-4.1"),
])  # fmt: skip
def test_for_all_others_each_tool_is_defined_and_the_search_is_a_loss(target, model):
    written, report = translate({**BODY, "model": model}, "anthropic", target, emulate=True)
    assert faults(target, written) == []
    assert [tool.name for tool in decode_request(orjson.dumps(written), target).tools] == ["weather", "plain"]
    assert ("metadata", "defer_loading") in report.lost
    assert report.losses["tool_definition"] == 1
    assert report.losses["server_tool"]


def test_a_search_where_nothing_is_deferred_is_a_loss():
    written, report = translate({**BODY, "model": GPT, "tools": [FINDER, PLAIN]}, "anthropic", "openai-responses")
    assert [tool["name"] for tool in written["tools"]] == ["plain"]
    assert report.losses["tool_definition"] == 1


# -- what the model sends ------------------------------------------------------------------------------------------------


def bodies() -> dict[str, dict[str, Any]]:
    """A response with a search, as each of the two vendors writes it."""
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [*SEARCHED, CALLED],
        "stop_reason": "tool_use", "stop_sequence": None, "usage": usage,
    }  # fmt: skip
    called = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "weather", "arguments": '{"city":"Rome"}'}
    response = {
        "id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "completed",
        "output": [*ITEMS, {**called, "status": "completed"}], "usage": {**usage, "total_tokens": 2},
    }  # fmt: skip
    steps = [
        {"type": "tool_search_call", "id": "s1", "arguments": {"function_names": ["weather"]}},
        {"type": "tool_search_result", "call_id": "s1", "result": [{
            "type": "function", "name": "weather", "description": "The weather.", "parameters": SCHEMA, "defer_loading": True,
        }]},
        {"type": "function_call", "id": "c1", "name": "weather", "arguments": {"city": "Rome"}},
    ]  # fmt: skip
    interaction = {"id": "i1", "object": "interaction", "model": "m", "status": "requires_action", "steps": steps}
    return {"anthropic": message, "openai-responses": response, "gemini-interactions": interaction}


def content_of(dialect: str, body: dict[str, Any]) -> list[Any]:
    found: list[Any] = body[{"anthropic": "content", "openai-responses": "output"}.get(dialect, "steps")]
    return without_ids(found[:2])


OFFERED = decode_request(orjson.dumps(BODY), "anthropic").tools


@pytest.mark.parametrize(("source", "to"), [*permutations(["anthropic", "openai-responses", "gemini-interactions"], 2)])
async def test_a_search_is_written_in_the_clients_form_streamed_and_whole(source, to):
    wanted = (
        orjson.loads(orjson.dumps(content_of(to, bodies()[to])).replace(b'"rain"', b'"weather"'))
        if source == "gemini-interactions"
        else content_of(to, bodies()[to])
    )
    answer = decode_response(orjson.dumps(bodies()[source]), source)
    carry_tool_searches_of(answer, to, OFFERED)
    assert content_of(to, orjson.loads(encode_response(answer, to))) == wanted
    own = decode_response(orjson.dumps(bodies()[source]), source)

    async def events():
        yield response_events(own)

    stream = b"".join([chunk async for chunk in _entered(pipe(events(), encode(source)))])
    report = StreamReport()
    written = transcode(FaultySource([stream]), source, to, ReadOptions(offered=OFFERED), report=report)
    got = b"".join([chunk async for chunk in _entered(written)])
    assert report.clean
    assert "server_tool" not in report.losses
    again = await collect(FaultySource([got]), to)
    assert content_of(to, orjson.loads(encode_response(again, to))) == wanted


async def _entered(made):
    async with made:
        async for chunk in made:
            yield chunk


def test_a_search_without_a_result_is_a_loss():
    request = decode_request(orjson.dumps({**BODY, "model": GPT, "messages": [
        MESSAGES[0], {"role": "assistant", "content": [SEARCHED[0], {"type": "text", "text": "Hm."}]}, MESSAGES[0]]}), "anthropic")  # fmt: skip
    report = StreamReport()
    assert b"tool_search_call" not in encode_request(request, "openai-responses", report=report)
    assert report.losses["server_tool"] == 1
