"""Who may read an answer on, from where, and what it is told if not; and stopping."""

from __future__ import annotations

import asyncio
from functools import partial

import orjson
import pytest
from aiohttp import web

from streamkit.resume import LogLimits, MemoryStore
from streamkit.web import setup
from streamkit.web.resume import Resuming, add_resuming
from tests.gateway.running import asking, upstream_at
from tests.resume.reading import cursors, without_ids
from tests.web.evil import EvilUpstream
from tests.web.faults import good
from tests.web.raw_client import ask
from tests.web.resume.keeping import ASKED, FRAMES, WHOLE, keeping
from tests.web.serving import eventually, serving

pytestmark = pytest.mark.usefixtures("no_leaks")
OTHER = "st_" + "o" * 22
#: What is sent as a cursor into a whole answer, ``{id}`` and ``{size}`` being its own, and the status.
CURSORS = [
    ("?after=0", "", 200),
    ("?after={size}", "", 204),
    ("?after={beyond}", "", 400),
    ("?after=-1", "", 400),
    ("?after=9223372036854775808", "", 400),
    ("?after=9007199254740991", "", 400),
    ("?after=1_0", "", 400),
    ("?after=%EF%BC%91", "", 400),
    ("?after=01", "", 400),
    ("?after=", "", 400),
    ("", "{id}.0", 200),
    ("", "{id}.{size}", 204),
    ("", "{id}.{beyond}", 400),
    ("", "{id}.-1", 400),
    ("", "{id}.9223372036854775808", 400),
    ("", "{id}", 400),
    ("", "{id}.", 400),
    ("", f"{OTHER}.0", 400),
    ("", "17", 400),
    ("", "garbage \t{{}}", 400),
    ("?after=garbage", "{id}.0", 200),  # the header is what a client repeats by itself
    ("", "", 200),
]


@pytest.mark.parametrize(("query", "header", "status"), CURSORS)
async def test_cursors(query, header, status):
    async with keeping() as site:
        location = await site.finished()
        words = {"id": location.rpartition("/")[2], "size": len(WHOLE), "beyond": len(WHOLE) + 1}
        headers = {"last_event_id": header.format(**words)} if header else {}
        answer = await site.get(location + query.format(**words), **headers)
        assert answer.status == status
        if status == 200:
            assert without_ids(bytes(answer.body)) == WHOLE
        elif status == 204:
            assert not answer.body
        else:
            assert b"cursor" in answer.body or b"Last-Event-ID" in answer.body
        assert len(site.upstreams) == 1  # reading on asks nobody


async def test_anothers_unknown_and_expired_answers_are_one():
    async with keeping() as site:
        mine = await site.finished(headers={"key": "me"})
        assert (await site.get(mine, key="me")).status == 200
        foreign = [await site.get(mine), await site.get(mine, key="you"), await site.stop(mine, key="you")]
        unknown = [await site.get(f"/v1/streams/{name}", key="me") for name in (OTHER, "x", f"{OTHER}.{'b' * 12}")]
    async with keeping(limits=LogLimits(ttl_s=0.05)) as site:
        old = await site.finished(headers={"key": "me"})
        await asyncio.sleep(0.1)
        expired = await site.get(old, key="me")
    answers = [*foreign, *unknown, expired]
    assert {(answer.status, bytes(answer.body)) for answer in answers} == {(404, bytes(expired.body))}


@pytest.mark.parametrize("is_there", [True, False])
async def test_stopping_closes_the_upstream_and_tells_the_client(is_there):
    async with keeping() as site, site.asked() as (client, upstream):
        upstream.say(FRAMES[0], FRAMES[1])
        location = (await client.read_headers()).headers["location"]
        if not is_there:
            client.leave("rst")
        begun = asyncio.get_running_loop().time()
        assert (await site.stop(location)).status == 204
        assert await upstream.closed() - begun <= 0.25
        told = bytes((await site.get(location)).body)
        assert b"the client stopped the response" in told
        assert b"[DONE]" not in told
        assert (await site.stop(location)).status == 204
        assert not is_there or bytes((await client.read_to_end()).body) == told


async def test_stopping_behind_the_end_changes_nothing():
    async with keeping() as site:
        location = await site.finished()
        before = (await site.get(location)).body
        assert (await site.stop(location)).status == 204
        assert (await site.get(location)).body == before
        await eventually(lambda: site.resuming.counts.resumes == {"resumed": 2, "stopped": 1})


async def test_too_many_readers_are_told_when_to_come_again():
    async with keeping(limits=LogLimits(readers=1)) as site, site.asked() as (client, upstream):
        upstream.say(FRAMES[0], FRAMES[1])
        location = (await client.read_headers()).headers["location"]
        first = asyncio.create_task(site.get(location))
        await asyncio.sleep(0.05)
        refused = await site.get(location)
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        upstream.say(*FRAMES[2:])
        upstream.end()
        assert without_ids(bytes((await first).body)) == WHOLE


async def test_the_path_takes_no_other_method():
    async with keeping() as site:
        location = await site.finished()
        assert (await ask(site.url, location, method="HEAD", headers=ASKED)).status == 405


async def test_a_post_to_a_ready_route_attaches():
    async with EvilUpstream(good("openai-chat")) as upstream:
        app = web.Application()
        setup(app, upstream_at(upstream, "openai-chat"), clients=["anthropic"])
        add_resuming(app, Resuming(store=MemoryStore()))
        path, body = asking("anthropic")
        async with serving(app) as port:
            post = partial(ask, f"http://127.0.0.1:{port}", path, body=orjson.dumps(body))
            whole = await post(headers=ASKED)
            end, offset = cursors(bytes(whole.body))[0]
            name = f"{whole.headers['location'].rpartition('/')[2]}.{offset}"
            assert (await post(headers={**ASKED, "last-event-id": name})).body == whole.body[end:]
        assert len(upstream.requests) == 1
