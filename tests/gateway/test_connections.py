"""Connections to upstreams: used again after a whole stream, and never after one that broke off."""

import orjson

from tests.gateway.running import asking, config_of, gateway, upstream_at
from tests.web.evil import EvilUpstream
from tests.web.faults import good, truncated_chunked
from tests.web.raw_client import ask


async def test_a_connection_is_used_again_after_a_stream():
    path, body = asking("anthropic")
    async with (
        EvilUpstream(good("openai-chat")) as upstream,
        gateway(config_of([upstream_at(upstream, "openai-chat")])) as running,
    ):
        for _ in range(3):
            answer = await ask(running.url, path, body=orjson.dumps(body))
            assert b"message_stop" in answer.body
            await running.outcomes()
    assert [request.connection for request in upstream.requests] == [0, 0, 0]


async def test_a_connection_that_broke_off_is_not():
    path, body = asking("anthropic")
    async with (
        EvilUpstream(truncated_chunked("openai-chat"), good("openai-chat")) as upstream,
        gateway(config_of([upstream_at(upstream, "openai-chat")])) as running,
    ):
        for ending in b"event: error", b"message_stop":
            answer = await ask(running.url, path, body=orjson.dumps(body))
            assert ending in answer.body
            await running.outcomes()
    assert [request.connection for request in upstream.requests] == [0, 1]
