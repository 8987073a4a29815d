"""Descriptors: the soft limit is raised, no more is taken than fits, and exhaustion is said once a second."""

from __future__ import annotations

import asyncio
import errno
import resource
import socket

import pytest
from aiohttp import ClientSession, web

from streamkit.gateway import serve
from streamkit.web.listening import listening


@pytest.fixture
def limits(monkeypatch):
    held = {"now": (1024, 4096)}
    monkeypatch.setattr(resource, "getrlimit", lambda _which: held["now"])
    monkeypatch.setattr(resource, "setrlimit", lambda _which, pair: held.update(now=pair))
    return held


@pytest.mark.parametrize(
    ("soft_hard", "max_streams", "max_sockets", "after"),
    [
        ((1024, 20_000), 1000, 0, 4128),
        ((1024, 20_000), 1000, 1000, 5128),
        ((1024, 2048), 1000, 1000, 2048),
        ((1024, resource.RLIM_INFINITY), 1000, 0, 4128),
        ((65_536, 65_536), 1000, 1000, 65_536),
        ((1024, 1024), 10, 100, 1024),
    ],
)
def test_the_soft_limit_is_raised_to_what_is_needed_or_allowed(limits, soft_hard, max_streams, max_sockets, after):
    limits["now"] = soft_hard
    assert serve.raise_descriptor_limit(max_streams, max_sockets) == after
    assert limits["now"][0] == after


@pytest.mark.parametrize("allowed", [256, 1024, 2128, 4128])
def test_what_is_taken_fits(allowed):
    streams = serve.streams_that_fit(1000, allowed)
    connections = serve.connections_that_fit(1000, allowed)
    assert streams <= 1000
    assert streams + connections + serve.RESERVED <= allowed
    assert connections >= streams


def test_exhaustion_is_said_once_a_second_and_how_often_it_was(caplog):
    now = [0.0]
    handler = serve.OncePerSecond(lambda: now[0])
    context = {"message": "socket.accept() out of system resource", "exception": OSError(errno.EMFILE, "Too many")}
    with caplog.at_level("ERROR"):
        for _ in range(1000):
            handler(None, context)
        assert len(caplog.records) == 1
        now[0] = 1.5
        handler(None, context)
    assert [record.fields["times"] for record in caplog.records] == [1, 1000]


async def test_connections_beyond_the_bound_get_503_and_a_probe_200():
    app = web.Application()

    async def said(_request):
        return web.Response(text="served")

    app.router.add_get("/x", said)
    async with listening(app, ("127.0.0.1", 0), idle_s=5.0, connections=lambda: 2) as (_, port):
        held = [socket.create_connection(("127.0.0.1", port)) for _ in range(2)]
        await asyncio.sleep(0.1)
        async with ClientSession(f"http://127.0.0.1:{port}") as client:
            async with client.get("/x") as answer:
                assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
                assert (await answer.json())["error"]["message"]
            async with client.get("/healthz") as answer:
                assert (answer.status, await answer.text()) == (200, "ok\n")
            for each in held:
                each.close()
            await asyncio.sleep(0.1)
            async with client.get("/x") as answer:
                assert await answer.text() == "served"
