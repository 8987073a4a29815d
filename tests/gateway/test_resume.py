"""Answers of the gateway that clients come back to: one answer for each, whoever asks for it again."""

from __future__ import annotations

import asyncio

import orjson
import pytest

from tests.gateway.running import asking, config_of, gateway, upstream_at
from tests.resume.reading import cursors, without_ids
from tests.web.evil import EvilUpstream
from tests.web.faults import FAULTS, good
from tests.web.raw_client import RawClient

ASKED = {"x-streamkit-resumable": "1", "content-type": "application/json"}
DIALECT = "openai-chat"
EVENTS = ["openai-chat", "openai-responses", "anthropic", "gemini-interactions"]
pytestmark = pytest.mark.usefixtures("no_leaks")


@pytest.mark.parametrize("client", [*EVENTS, "ollama", "gemini"])
async def test_a_post_with_the_id_of_an_event_attaches_and_asks_no_model(client):
    path, body = asking(client)
    data = orjson.dumps(body)
    upstream = EvilUpstream(good(DIALECT))
    async with upstream, gateway(config_of([upstream_at(upstream, DIALECT)])) as running:
        whole = await running.ask(path, headers=ASKED, body=data)
        location = whole.headers["location"]
        ids = cursors(bytes(whole.body))
        assert bool(ids) is (client in EVENTS)
        name = location.rpartition("/")[2]
        end, offset = ids[1] if ids else (7, 7)
        again = await running.ask(path, headers={**ASKED, "last-event-id": f"{name}.{offset}"}, body=data)
        assert (again.status, again.body) == (200, whole.body[end:])
        size = len(without_ids(bytes(whole.body)))
        over = await running.ask(path, headers={**ASKED, "last-event-id": f"{name}.{size}"}, body=data)
        assert (over.status, over.body) == (204, b"")
        gone = await running.ask(path, headers={**ASKED, "last-event-id": f"st_{'x' * 22}.0"}, body=data)
        assert gone.status == 404
        assert len(upstream.requests) == 1


async def test_an_event_id_of_somebody_else_asks_as_ever():
    upstream = EvilUpstream(good(DIALECT))
    async with upstream, gateway(config_of([upstream_at(upstream, DIALECT)])) as running:
        answer = await running.asked(DIALECT, headers={**ASKED, "last-event-id": "17"})
        assert answer.status == 200
        assert len(upstream.requests) == 1


@pytest.mark.parametrize("client", [*EVENTS, "ollama", "gemini"])
async def test_an_answer_goes_on_without_its_client_until_it_is_stopped(client):
    path, body = asking(client)
    upstream = EvilUpstream(FAULTS["silence mid-stream"](DIALECT))
    async with upstream, gateway(config_of([upstream_at(upstream, DIALECT)])) as running:
        async with RawClient(running.url) as leaver:
            await leaver.send("POST", path, headers=ASKED, body=orjson.dumps(body))
            location = (await leaver.read_headers()).headers["location"]
            leaver.leave("fin")
        request = await upstream.request(0)
        await asyncio.sleep(0.3)  # three times what is needed to see that a client left
        assert request.left_at is None
        begun = asyncio.get_running_loop().time()
        assert (await running.ask(location, method="DELETE")).status == 204
        assert await request.left() - begun <= 0.25
        told = bytes((await running.get(location)).body)
        assert b"the client stopped the response" in told
