"""Tools of clients that an upstream's dialect knows otherwise, or not at all: what is sent, who is asked, what comes back."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest

from streamkit import collect
from streamkit.conversation.messages import Choice, Response, ToolCall
from streamkit.conversation.response_events import response_events
from streamkit.dialects import DIALECTS
from streamkit.dialects.profiles import Encoding
from streamkit.report import StreamReport
from streamkit.testing import source_of
from streamkit.translation.bodies import decode_response, encode_response
from tests.gateway.running import behind, in_turn, leg
from tests.web.faults import Script, as_asked, asks_for_stream, good, status, whole

SCHEMA = {"type": "object", "properties": {}}


def calling(dialect: str, name: str) -> Any:
    """An upstream whose model calls that tool."""
    parts = [ToolCall(0, "call_00001", name, "{}")]
    said = Response(dialect, id="r", model="m", choices=[Choice(parts=parts, stop_reason="tool_calls")], clean=True)

    def play(request: Any) -> Script:
        if not asks_for_stream(request, dialect):
            return whole(dialect, encode_response(said, dialect))
        encoder = DIALECTS[dialect].encoder(Encoding(), StreamReport())
        return good(dialect, [encoder.feed([*response_events(said)]) + encoder.finish()])

    return play


def last_events(body: bytes) -> list[dict[str, Any]]:
    return [orjson.loads(line[6:]) for line in body.split(b"\n") if line.startswith(b"data: {")]


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("dialect", ["openai-chat", "anthropic", "ollama"])
async def test_a_tool_of_an_mcp_server_is_called_by_way_of_any_upstream(dialect, stream):
    tool = {"type": "function", "name": "get_weather", "parameters": SCHEMA, "strict": False}
    group = {"type": "namespace", "name": "mcp__w", "description": "d", "tools": [tool]}
    earlier = [
        {"type": "function_call", "name": "get_weather", "namespace": "mcp__w", "arguments": "{}", "call_id": "call_00000"},
        {"type": "function_call_output", "call_id": "call_00000", "output": "sunny"},
    ]  # fmt: skip
    body = {"model": "m", "input": [{"role": "user", "content": "?"}, *earlier], "tools": [group], "stream": stream}
    async with behind(calling(dialect, "mcp__w__get_weather"), dialect=dialect) as running:
        answer = await running.ask("/v1/responses", body=orjson.dumps(body))
    sent = running.evil.requests[0].body
    assert answer.status == 200
    assert sent.count(b'"mcp__w__get_weather"') >= 2  # where it is defined, and in the history
    response = last_events(answer.body)[-1]["response"] if stream else json.loads(answer.body)
    assert [(item["name"], item["namespace"], item["arguments"]) for item in response["output"]] == [
        ("get_weather", "mcp__w", "{}")
    ]


SEARCH = {
    "model": "m",
    "max_tokens": 100,
    "messages": [{"role": "user", "content": "Perform a web search for the query: streamkit"}],
    "tools": [{"type": "web_search_20250305", "name": "web_search", "max_uses": 8}],
    "tool_choice": {"type": "tool", "name": "web_search"},
}


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_a_search_that_an_upstream_has_no_word_for_is_asked_of_the_next(stream):
    async with in_turn(as_asked("openai-chat"), leg(as_asked("anthropic"), dialect="anthropic")) as running:
        answer = await running.ask("/v1/messages", body=orjson.dumps(SEARCH | {"stream": stream}))
        assert (answer.status, len(running.evils[0].requests), len(running.evils[1].requests)) == (200, 0, 1)
        assert await running.outcomes() == {("one", "request_unfit"): 1, ("two", "success"): 1}


async def test_where_nobody_has_a_word_for_it_the_client_is_told_which_tool_and_where():
    async with in_turn(status(500), leg(status(500), dialect="ollama"), retries=3) as running:
        answer = await running.ask("/v1/messages", body=orjson.dumps(SEARCH))
        assert await running.outcomes() == {("one", "request_unfit"): 1, ("two", "request_unfit"): 1}
    error = json.loads(answer.body)["error"]
    assert (answer.status, error["type"]) == (400, "invalid_request_error")
    assert error["message"] == "tool_choice: openai-chat cannot define the required tool 'web_search'"
    assert not running.evils[0].requests + running.evils[1].requests


PAGE = {"url": "https://a.example/1", "title": "One"}
SAID = "streamkit is on the web."


def searching(dialect: str) -> Any:
    """An upstream that has searched the web, as its dialect says so."""
    if dialect == "gemini":
        grounding = {
            "webSearchQueries": ["streamkit"],
            "groundingChunks": [{"web": {"uri": PAGE["url"], "title": PAGE["title"]}}],
            "groundingSupports": [{"segment": {"endIndex": len(SAID), "text": SAID}, "groundingChunkIndices": [0]}],
        }
        content = {"parts": [{"text": SAID}], "role": "model"}
        body = {"candidates": [{"content": content, "finishReason": "STOP", "groundingMetadata": grounding}]}
    else:
        search = {"type": "search", "query": "streamkit", "sources": [{"type": "url", "url": PAGE["url"]}]}
        cited = {"type": "url_citation", "start_index": 0, "end_index": len(SAID), **PAGE}
        body = {
            "object": "response", "id": "r", "model": "m", "status": "completed",
            "output": [
                {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": search},
                {"type": "message", "id": "m_1", "role": "assistant", "status": "completed", "content": [
                    {"type": "output_text", "text": SAID, "annotations": [cited]},
                ]},
            ],
        }  # fmt: skip
    said = decode_response(orjson.dumps(body), dialect)

    def play(request: Any) -> Script:
        if not asks_for_stream(request, dialect):
            return whole(dialect, orjson.dumps(body))
        encoder = DIALECTS[dialect].encoder(Encoding(), StreamReport())
        return good(dialect, [encoder.feed([*response_events(said)]) + encoder.finish()])

    return play


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("dialect", ["openai-responses", "gemini"])
async def test_claude_code_gets_its_search_from_another_provider(dialect, stream):
    async with behind(searching(dialect), dialect=dialect) as running:
        answer = await running.ask("/v1/messages", body=orjson.dumps(SEARCH | {"stream": stream}))
    sent = running.evil.requests[0].json()
    assert answer.status == 200
    assert "earch" in json.dumps(sent["tools"])
    said = await collect(source_of([answer.body]), "anthropic") if stream else decode_response(answer.body, "anthropic")
    assert (said.clean, said.text, said.tool_calls, said.choices[0].stop_reason) == (True, SAID, [], "stop")
    starts = [aside.raw["content_block"] for aside in said.choices[0].asides if aside.type == "content_block_start"]
    assert [block["type"] for block in starts] == ["server_tool_use", "web_search_tool_result"]
    assert [page["url"] for page in starts[1]["content"]] == [PAGE["url"]]
    cited = [aside.raw for aside in said.choices[0].asides if aside.kind == "citation"]
    assert [(citation["url"], citation["title"]) for citation in cited] == [(PAGE["url"], PAGE["title"])]
