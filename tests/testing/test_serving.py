"""An application in a thread answers while the block runs, and not behind it."""

from __future__ import annotations

import threading
from urllib.error import URLError
from urllib.request import urlopen

import aiohttp
import pytest
from aiohttp import web

from streamkit.testing.serving import served


def hello() -> web.Application:
    async def answer(_request: web.Request) -> web.Response:
        return web.Response(text="hello")

    app = web.Application()
    app.router.add_get("/", answer)
    return app


def test_it_answers_while_the_block_runs():
    before = threading.active_count()
    with served(hello) as url:
        assert urlopen(url).read() == b"hello"
    assert threading.active_count() == before
    with pytest.raises(URLError):
        urlopen(url)


def test_what_the_application_raises_is_raised():
    def broken() -> web.Application:
        raise LookupError("no such recording")

    with pytest.raises(LookupError, match="no such recording"), served(broken):
        pass


async def test_it_answers_a_test_that_has_an_event_loop():
    with served(hello) as url:
        async with aiohttp.ClientSession() as session, session.get(url) as response:
            assert await response.text() == "hello"
