"""Tools of clients that an upstream's dialect knows otherwise, or not at all: what is sent, who is asked, what comes back."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest

from streamkit.bodies import encode_response
from streamkit.dialects import DIALECTS
from streamkit.dialects.base import Encoding
from streamkit.messages import Choice, Response, ToolCall
from streamkit.replay import replay
from streamkit.report import StreamReport
from tests.gateway.running import config_of, gateway, upstream_at
from tests.web.evil import EvilUpstream
from tests.web.faults import Script, asks_for_stream, good, whole
from tests.web.raw_client import ask

SCHEMA = {"type": "object", "properties": {}}


def calling(dialect: str, name: str) -> Any:
    """An upstream whose model calls that tool."""
    parts = [ToolCall(0, "call_00001", name, "{}")]
    said = Response(dialect, id="r", model="m", choices=[Choice(parts=parts, stop_reason="tool_calls")], clean=True)

    def play(request: Any) -> Script:
        if not asks_for_stream(request, dialect):
            return whole(dialect, encode_response(said, dialect))
        encoder = DIALECTS[dialect].encoder(Encoding(), StreamReport())
        return good(dialect, [encoder.feed([*replay(said)]) + encoder.finish()])

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
    async with EvilUpstream(calling(dialect, "mcp__w__get_weather")) as upstream:
        async with gateway(config_of([upstream_at(upstream, dialect)])) as running:
            answer = await ask(running.url, "/v1/responses", body=orjson.dumps(body))
        sent = upstream.requests[0].body
    assert answer.status == 200
    assert sent.count(b'"mcp__w__get_weather"') >= 2  # where it is defined, and in the history
    response = last_events(answer.body)[-1]["response"] if stream else json.loads(answer.body)
    assert [(item["name"], item["namespace"], item["arguments"]) for item in response["output"]] == [
        ("get_weather", "mcp__w", "{}")
    ]
