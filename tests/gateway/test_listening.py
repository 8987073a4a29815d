"""A port is had, or it is told why not; connections on which nothing comes do not stay."""

import asyncio
import socket

import pytest
from aiohttp import ClientSession, web

from streamkit.errors import UsageError
from streamkit.gateway.listening import listening, reserved, url_of
from tests.web.raw_client import RawClient

HOST = "127.0.0.1"
IDLE_S = 75.0


async def hello(_request):
    return web.Response(text="hello")


def application():
    app = web.Application()
    app.router.add_get("/", hello)
    return app


async def says_hello(port):
    async with ClientSession() as session, session.get(f"http://{HOST}:{port}/") as response:
        return await response.text() == "hello"


def reason(port, what):
    return f"^cannot listen on http://{HOST}:{port} for {what}: address already in use$"


async def test_a_port_that_somebody_has_is_told_with_what_it_was_for():
    async with listening(application(), (HOST, 0), idle_s=IDLE_S) as (_, port):
        with pytest.raises(UsageError, match=reason(port, "metrics")):
            async with listening(application(), (HOST, port), idle_s=IDLE_S, what="metrics"):
                pass
        with pytest.raises(UsageError, match=reason(port, "clients")):
            reserved((HOST, port))


async def test_a_port_is_shared_with_those_whom_it_was_reserved_for_and_with_no_other():
    with reserved((HOST, 0)) as held:
        port = held.getsockname()[1]
        async with (
            listening(application(), (HOST, port), idle_s=IDLE_S, shared=True),
            listening(application(), (HOST, port), idle_s=IDLE_S, shared=True),
        ):
            assert await says_hello(port)
            with pytest.raises(UsageError, match=reason(port, "clients")):
                reserved((HOST, port))  # another gateway with workers: the system alone would let it in


@pytest.mark.parametrize("shared", [True, False])
async def test_connections_that_linger_in_the_system_do_not_keep_the_next_one_from_the_port(shared):
    with reserved((HOST, 0)) as held:
        port = held.getsockname()[1]
    async with listening(application(), (HOST, port), idle_s=IDLE_S, shared=shared):
        _, writer = await asyncio.open_connection(HOST, port)
    writer.close()  # behind the server, which so has the connection that lingers
    await writer.wait_closed()
    reserved((HOST, port)).close()
    async with listening(application(), (HOST, port), idle_s=IDLE_S):
        assert await says_hello(port)


@pytest.mark.parametrize(
    ("host", "words"), [("nosuch.invalid", "cannot listen on http://nosuch.invalid:1"), ("192.0.2.1", "cannot assign")]
)
async def test_an_interface_that_is_not_there_is_told(host, words):
    with pytest.raises(UsageError, match=words):
        async with listening(application(), (host, 1), idle_s=IDLE_S):
            pass
    with pytest.raises(UsageError, match=words):
        reserved((host, 1))


@pytest.mark.parametrize(
    "sent", [b"", b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nX-Slow: "], ids=["nothing", "half"]
)
async def test_a_connection_on_which_no_request_comes_is_closed(sent):
    async with listening(application(), (HOST, 0), idle_s=0.2) as bound, RawClient(url_of(bound)) as client:
        await client.send_bytes(sent)
        assert (await client.read_to_end()).end in {"cut", "reset"}


async def test_header_lines_that_trickle_in_do_not_keep_it():
    async with listening(application(), (HOST, 0), idle_s=0.3) as bound, RawClient(url_of(bound)) as client:
        await client.send_bytes(b"POST / HTTP/1.1\r\n")
        reading = asyncio.create_task(client.read_to_end())
        while not reading.done():
            try:
                await client.send_bytes(b"X-More: 1\r\n")
            except ConnectionError:
                break
            await asyncio.sleep(0.05)
        assert (await reading).end in {"cut", "reset"}


def test_an_address_is_a_url():
    assert url_of(("127.0.0.1", 80)) == "http://127.0.0.1:80"
    assert url_of(("::1", 80)) == "http://[::1]:80"


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 here")
async def test_version_6_too():
    with reserved(("::1", 0)) as held:
        port = held.getsockname()[1]
        async with (
            listening(application(), ("::1", port), idle_s=IDLE_S, shared=True) as bound,
            ClientSession() as session,
            session.get(url_of(bound)) as response,
        ):
            assert await response.text() == "hello"
