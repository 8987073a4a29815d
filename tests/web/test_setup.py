"""``setup``: ready routes in an application that is somebody's own."""

import orjson
import pytest
from aiohttp import web

from streamkit.errors import UsageError
from streamkit.web import setup
from tests.gateway.running import asking, upstream_at
from tests.web.evil import EvilUpstream
from tests.web.faults import TEXT, as_asked, status
from tests.web.raw_client import ask
from tests.web.serving import serving

CLIENTS = ["openai-chat", "openai-responses", "anthropic", "ollama", "gemini"]


async def asked(port, client, *, prefix="", **how):
    path, body = asking(client, **how)
    return await ask(f"http://127.0.0.1:{port}", prefix + path, body=orjson.dumps(body))


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("client", CLIENTS)
async def test_each_client_is_served_at_the_paths_that_it_asks(client, stream):
    async with EvilUpstream(as_asked("openai-chat")) as evil:
        app = web.Application()
        setup(app, upstream_at(evil, "openai-chat"), model="there")
        async with serving(app) as port:
            answer = await asked(port, client, stream=stream)
        assert (answer.status, answer.end) == (200, "complete")
        assert TEXT.split()[0].encode() in answer.body
        assert evil.requests[0].json()["model"] == "there"


async def test_only_the_named_clients_are_served_and_under_a_prefix():
    async with EvilUpstream(as_asked("openai-chat")) as evil, EvilUpstream(as_asked("ollama")) as other:
        app = web.Application()
        setup(app, upstream_at(evil, "openai-chat"), clients=["anthropic"], prefix="/one")
        setup(app, upstream_at(other, "ollama"), clients=["anthropic"], prefix="/two")
        async with serving(app) as port:
            assert (await asked(port, "anthropic", prefix="/one")).status == 200
            assert (await asked(port, "anthropic", prefix="/two")).status == 200
            assert (await asked(port, "openai-chat", prefix="/one")).status == 404
        assert (len(evil.requests), len(other.requests)) == (1, 1)


async def test_it_works_in_a_sub_application():
    async with EvilUpstream(as_asked("openai-chat")) as evil:
        app, inner = web.Application(), web.Application()
        setup(inner, upstream_at(evil, "openai-chat"))
        app.add_subapp("/llm/", inner)
        async with serving(app) as port:
            assert (await asked(port, "anthropic", prefix="/llm")).status == 200


async def test_bad_requests_and_refusals_are_in_the_clients_dialect():
    async with EvilUpstream(status(429)) as evil:
        app = web.Application()
        setup(app, upstream_at(evil, "openai-chat"))
        async with serving(app) as port:
            answer = await ask(f"http://127.0.0.1:{port}", "/v1/messages", body=b'{"model": "m"}')
            assert (answer.status, orjson.loads(answer.body)["error"]["type"]) == (400, "invalid_request_error")
            for stream in True, False:
                answer = await asked(port, "anthropic", stream=stream)
                assert (answer.status, orjson.loads(answer.body)["error"]["type"]) == (429, "rate_limit_error")


def test_a_dialect_without_a_surface_is_refused():
    with pytest.raises(UsageError, match="no clients of 'bedrock' are served; there are openai-chat"):
        setup(web.Application(), None, clients=["bedrock"])
