"""Images at URLs: fetched over https from public addresses alone, whatever a name, a redirect or a server says."""

from __future__ import annotations

import base64
import ipaddress
import shutil
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import ClientSession, web
from aiohttp.abc import AbstractResolver, ResolveResult
from attrs import evolve

from streamkit.dialects import DIALECTS
from streamkit.errors import BadRequest
from streamkit.translation.bodies import decode_request, encode_request
from streamkit.web import opening
from streamkit.web.budget import UNCOUNTED_BYTES, Budget, Hold
from streamkit.web.fetching import HELD_TIMES, Fetcher, FetchLimits, is_public, with_fetched_media
from streamkit.web.refusals import Refused
from tests.gateway.running import config_of, gateway, upstream_at
from tests.web.evil import EvilUpstream
from tests.web.faults import as_asked

PNG = base64.b64decode("iVBORw0KGgo=")
LOOPBACK = ipaddress.ip_address("127.0.0.1")


class Names(AbstractResolver):
    """Names of these tests, and what they resolve to."""

    def __init__(self, port: int) -> None:
        self.addresses = {
            "pictures.test": "127.0.0.1",
            "private.test": "10.0.0.1",
            "link-local.test": "169.254.169.254",
            "six.test": "::1",
            "mapped.test": "::ffff:127.0.0.2",
        }
        self.port = port

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        if host not in self.addresses:
            raise OSError(None, "no such name")
        found = self.addresses[host]
        kind = socket.AF_INET6 if ":" in found else socket.AF_INET
        return [ResolveResult(hostname=host, host=found, port=self.port, family=kind, proto=0, flags=0)]

    async def close(self) -> None:
        pass


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl, which makes the certificate of the server, is not here")
    folder = tmp_path_factory.mktemp("certificate")
    key, cert = folder / "key.pem", folder / "cert.pem"
    names = "subjectAltName=DNS:pictures.test,DNS:private.test,DNS:link-local.test,DNS:six.test,DNS:mapped.test"
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=pictures.test"]
    subprocess.run([*command, "-addext", names, "-keyout", key, "-out", cert], check=True, capture_output=True)
    return key, cert


class Pictures:
    """A server of pictures, and of what else may come under the name of one."""

    def __init__(self) -> None:
        self.asked: list[web.Request] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request)
        match request.path:
            case "/big":
                return web.Response(body=bytes(2000), content_type="image/png")
            case "/endless":
                response = web.StreamResponse(headers={"Content-Type": "image/png"})
                await response.prepare(request)
                for _ in range(100):
                    await response.write(bytes(100))
                return response
            case "/page":
                return web.Response(text="<html>", content_type="text/html")
            case "/zipped":
                return web.Response(body=PNG, headers={"Content-Type": "image/png", "Content-Encoding": "gzip"})
            case "/gone":
                return web.Response(status=404)
            case "/moved":
                return web.Response(status=302, headers={"Location": "/picture"})
            case "/around":
                return web.Response(status=302, headers={"Location": "/around"})
            case path if path.startswith("/to/"):
                return web.Response(status=302, headers={"Location": request.query["url"]})
            case _:
                return web.Response(body=PNG, content_type="image/png")


@asynccontextmanager
async def pictures(certificate: tuple[Path, Path]) -> AsyncIterator[tuple[Pictures, Fetcher]]:
    key, cert = certificate
    there = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    there.load_cert_chain(cert, key)
    server = Pictures()
    app = web.Application()
    app.router.add_get("/{path:.*}", server.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=there)
    await site.start()
    try:
        port = runner.addresses[0][1]
        yield (
            server,
            Fetcher(
                limits=FetchLimits(file_bytes=1000, files=3, total_s=5.0),
                allows=lambda address: address == LOOPBACK or is_public(address),
                resolver=lambda: Names(port),
                ssl=ssl.create_default_context(cafile=str(cert)),
            ),
        )
    finally:
        await runner.cleanup()


def asked(*urls: str) -> Any:
    content = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    messages = [{"role": "user", "content": [{"type": "text", "text": "What is it?"}, *content]}]
    return decode_request(orjson.dumps({"model": "m", "messages": messages}), "openai-chat")


async def told(fetcher: Fetcher, *urls: str) -> BadRequest:
    with pytest.raises(BadRequest) as refused:
        await with_fetched_media(asked(*urls), DIALECTS["ollama"], fetcher)
    return refused.value


async def test_an_image_is_fetched_and_stands_in_the_request(certificate):
    async with pictures(certificate) as (server, fetcher):
        request = asked("https://pictures.test/a", "https://pictures.test/a", "https://pictures.test/moved")
        fetched = await with_fetched_media(request, DIALECTS["ollama"], fetcher)
        written = orjson.loads(encode_request(fetched, "ollama"))
        assert written["messages"][0]["images"] == ["iVBORw0KGgo="] * 3
        assert sorted(each.path for each in server.asked) == ["/a", "/moved", "/picture"]
        sent = {name.lower() for each in server.asked for name in each.headers}
        assert sent == {"connection", "host", "accept", "accept-encoding", "user-agent"}
        assert [part.url for part in request.turns[0].parts[1:]] == [  # nothing that is passed in is changed
            "https://pictures.test/a",
            "https://pictures.test/a",
            "https://pictures.test/moved",
        ]


async def test_what_a_tool_gave_is_fetched_for_gemini_and_what_the_user_sent_stays_a_link(certificate):
    async with pictures(certificate) as (server, fetcher):
        image = {"type": "image", "source": {"type": "url", "url": "https://pictures.test/a"}}
        body = {
            "model": "gemini-3-flash",
            "max_tokens": 9,
            "messages": [
                {"role": "user", "content": [image]},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": [image]}]},
            ],
        }
        request = decode_request(orjson.dumps(body), "anthropic")
        written = orjson.loads(encode_request(await with_fetched_media(request, DIALECTS["gemini"], fetcher), "gemini"))
        assert written["contents"][0]["parts"] == [{"fileData": {"fileUri": "https://pictures.test/a"}}]
        response = written["contents"][2]["parts"][0]["functionResponse"]
        assert response["parts"] == [{"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}]
        assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://pictures.test/a", "must use https"),
        ("https://user:word@pictures.test/a", "must not contain a user or a password"),
        ("https://private.test/a", "no public address"),
        ("https://link-local.test/latest/meta-data", "no public address"),
        ("https://six.test/a", "no public address"),
        ("https://mapped.test/a", "no public address"),
        ("https://10.0.0.1/a", "no public address"),
        ("https://[::1]/a", "no public address"),
        ("https://[::ffff:10.0.0.1]/a", "no public address"),
        ("https://2130706434/a", "is invalid"),
        ("https://nobody.test/a", "could not be reached"),
        ("https://pictures.test/big", "exceeds 1000 bytes"),
        ("https://pictures.test/endless", "exceeds 1000 bytes"),
        ("https://pictures.test/page", "its content type must be one of"),
        ("https://pictures.test/zipped", "compressed"),
        ("https://pictures.test/gone", "status 404"),
        ("https://pictures.test/around", "redirects more than 3 times"),
        ("https://pictures.test/to/?url=http://pictures.test/a", "must use https"),
        ("https://pictures.test/to/?url=https://private.test/a", "no public address"),
        ("https://pictures.test/to/?url=https://169.254.169.254/latest", "no public address"),
        ("https://pictures.test/to/?url=file:///etc/passwd", "must use https"),
    ],
)
async def test_what_may_not_be_fetched_is_refused_with_its_place(certificate, url, reason):
    async with pictures(certificate) as (_, fetcher):
        refused = await told(fetcher, url)
        assert refused.path == "messages[0].content[1]"
        assert reason in refused.reason
        assert "10.0.0.1" not in refused.reason


async def test_the_address_that_is_connected_to_is_looked_at_whatever_the_resolver_said(certificate):
    async with pictures(certificate) as (_, fetcher):
        first = iter([True])
        blind = evolve(fetcher, allows=lambda _address: next(first, False))
        assert "no public address" in (await told(blind, "https://pictures.test/a")).reason


async def test_the_number_of_files_and_the_time_for_them_are_bounded(certificate):
    async with pictures(certificate) as (server, fetcher):
        refused = await told(fetcher, *(f"https://pictures.test/{number}" for number in range(4)))
        assert "the request names 4 files by URL; at most 3 are fetched" in refused.reason
        assert not server.asked
        hasty = evolve(fetcher, limits=evolve(fetcher.limits, total_s=0.000001))
        assert "seconds" in (await told(hasty, "https://pictures.test/a")).reason or "in time" in refused.reason


async def test_all_files_together_are_bounded(certificate):
    async with pictures(certificate) as (_, fetcher):
        small = evolve(fetcher, limits=evolve(fetcher.limits, total_bytes=len(PNG) * 2))
        two, three = (asked(*(f"https://pictures.test/{at}" for at in range(count))) for count in (2, 3))
        assert await with_fetched_media(two, DIALECTS["ollama"], small)
        with pytest.raises(BadRequest, match=f"the files together exceed {len(PNG) * 2} bytes"):
            await with_fetched_media(three, DIALECTS["ollama"], small)


async def test_a_file_counts_as_often_as_it_is_named(certificate):
    async with pictures(certificate) as (server, fetcher):
        small = evolve(fetcher, limits=evolve(fetcher.limits, total_bytes=len(PNG) * 5))
        hold = Hold(Budget())
        hold.add(UNCOUNTED_BYTES)
        five, six = (asked(*["https://pictures.test/a"] * times) for times in (5, 6))
        assert await with_fetched_media(five, DIALECTS["ollama"], small, hold=hold)
        assert hold.budget.held_bytes == 5 * HELD_TIMES * len(PNG)
        assert len(server.asked) == 1
        with pytest.raises(BadRequest, match=f"the files together exceed {len(PNG) * 5} bytes"):
            await with_fetched_media(six, DIALECTS["ollama"], small)


async def test_files_are_held_of_the_budget_of_all_requests(certificate):
    async with pictures(certificate) as (_, fetcher):
        budget = Budget(limit_bytes=100_000)
        large = evolve(fetcher, limits=evolve(fetcher.limits, file_bytes=10**6))
        hold = Hold(budget)
        hold.add(UNCOUNTED_BYTES)
        assert await with_fetched_media(asked("https://pictures.test/endless"), DIALECTS["ollama"], large, hold=hold)
        assert budget.held_bytes == HELD_TIMES * 10_000
        other = Hold(Budget(limit_bytes=budget.held_bytes - 1))
        other.add(UNCOUNTED_BYTES)
        with pytest.raises(Refused) as refused:
            await with_fetched_media(asked("https://pictures.test/endless"), DIALECTS["ollama"], large, hold=other)
        assert refused.value.failed.type == "unavailable"


@pytest.mark.parametrize("linked", ["https://pictures.test/endless", "https://pictures.test/gone"])
async def test_a_request_gives_back_what_its_files_took_and_is_told_where_there_is_no_room(
    certificate, monkeypatch, linked
):
    content = [{"type": "image_url", "image_url": {"url": linked}}]
    body = {"model": "m", "messages": [{"role": "user", "content": content}]}
    async with pictures(certificate) as (_, fetcher), EvilUpstream(as_asked("ollama")) as evil:
        large, holds, most = evolve(fetcher, limits=evolve(fetcher.limits, file_bytes=10**6)), [], []
        fetch = opening.with_fetched_media

        async def fetched(*given, hold):
            holds.append(hold)
            try:
                return await fetch(*given, large, hold=hold)
            finally:
                most.append(hold.budget.held_bytes)

        monkeypatch.setattr(opening, "with_fetched_media", fetched)
        monkeypatch.setattr("streamkit.web.budget.UNCOUNTED_BYTES", 0)
        config = config_of([upstream_at(evil, "ollama", linked_media="fetch")])
        for bound, status in ((10**6, 200), (39_000, 503)):
            sized = evolve(config, server=evolve(config.server, body_bytes=30_000, bodies_bytes=bound))
            async with (
                gateway(sized) as running,
                ClientSession(running.url) as client,
                client.post("/v1/chat/completions", json=body) as answer,
            ):
                assert answer.status == (400 if linked.endswith("gone") else status)
                assert ("Retry-After" in answer.headers) == (answer.status == 503)
        assert (max(most) > 30_000) == linked.endswith("endless")
        assert [hold.budget.held_bytes for hold in holds] == [0, 0]


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True),
        ("2606:4700::1111", True),
        ("127.0.0.1", False),
        ("10.1.2.3", False),
        ("100.64.0.1", False),
        ("169.254.169.254", False),
        ("192.0.2.1", False),
        ("224.0.0.1", False),
        ("0.0.0.0", False),
        ("255.255.255.255", False),
        ("::1", False),
        ("::", False),
        ("fe80::1", False),
        ("fc00::1", False),
        ("ff02::1", False),
        ("::ffff:10.0.0.1", False),
        ("::ffff:93.184.216.34", True),
        ("::7f00:1", False),
        ("64:ff9b::a00:1", False),
        ("2002:a00:1::1", False),
        ("2001:0:4136:e378:8000:63bf:3fff:fdd2", False),
        ("64:ff9b::5db8:d822", True),
        ("64:ff9b:1::a00:1", False),
        ("::ffff:0:a00:1", False),
        ("fec0::1", False),
        ("5f00::1", False),
        ("100:0:0:1::1", False),
        ("3fff::1", False),
        ("4000::1", False),
        ("192.88.99.1", False),
        ("192.0.0.8", False),
        ("168.63.129.16", False),
    ],
)
def test_which_addresses_are_public(address, public):
    assert is_public(ipaddress.ip_address(address)) is public
