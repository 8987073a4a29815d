"""What is repaired of a request as it is read is counted and logged, for whoever's client it is (L5)."""

from __future__ import annotations

import json
import logging

import orjson
import pytest

from streamkit.gateway.log import JSONLines
from tests.gateway.running import asking, behind
from tests.web.faults import as_asked
from tests.web.serving import eventually

HALF = rb"half of a pair \ud800"


@pytest.mark.parametrize("upstream", ["openai-chat", "anthropic"])
@pytest.mark.parametrize("client", ["openai-chat", "openai-responses", "anthropic", "ollama", "gemini"])
async def test_a_repair_of_a_request_is_counted_and_logged(client, upstream, caplog):
    caplog.set_level(logging.INFO, "streamkit.gateway")
    path, body = asking(client, stream=False)
    async with behind(as_asked(upstream), dialect=upstream) as running:
        answer = await running.ask(path, body=orjson.dumps(body).replace(b'"hi"', b'"' + HALF + b'"'))
        assert answer.status == 200
        await eventually(lambda: running.counted("streams_active") == 0)
        assert running.counted("request_repairs_total", client=client, kind="lone_surrogate") == 1
        answer = await running.ask(path, body=orjson.dumps(body))
        await eventually(lambda: running.counted("streams_active") == 0)
        assert running.counted("request_repairs_total") == 1
    lines = [json.loads(JSONLines().format(record)) for record in caplog.records]
    assert [line.get("request_repairs") for line in lines if "client" in line] == [{"lone_surrogate": 1}, None]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/messages/count_tokens", asking("anthropic")[1]),
        ("/v1/responses/input_tokens", asking("openai-responses")[1]),
        ("/v1beta/models/m:countTokens", asking("gemini")[1]),
        ("/v1beta/models/m:countTokens", {"generateContentRequest": {"model": "models/m", **asking("gemini")[1]}}),
    ],
)
async def test_so_is_one_of_a_request_for_a_count(path, body):
    async with behind(as_asked("openai-chat")) as running:
        answer = await running.ask(path, body=orjson.dumps(body).replace(b'"hi"', b'"' + HALF + b'"'))
        assert answer.status == 200
        await eventually(lambda: running.counted("streams_active") == 0)
        assert running.counted("request_repairs_total", kind="lone_surrogate") == 1
