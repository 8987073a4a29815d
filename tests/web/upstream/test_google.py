"""Tokens of Google's, by google-auth's own service accounts and a server of tokens on loopback."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme
from aiohttp import web
from attrs import evolve

from streamkit.errors import SourceFailed
from streamkit.web.upstream import Secret, Upstream
from streamkit.web.upstream.requests import authorised
from tests.web.serving import serving
from tests.web.upstream.proxy import proxy

HEADERS = {"content-type": "application/json"}
VERTEX = Upstream(name="up", dialect="vertex-anthropic", base_url="https://h/v1", auth="google")


class Tokens:
    """A server that gives each token a number, and says how long it is good for."""

    def __init__(self) -> None:
        self.given = 0
        self.good_for_s = 3600
        self.fails = False

    async def give(self, request: web.Request) -> web.Response:
        form = await request.post()
        assert form["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
        if self.fails:
            return web.json_response({"error": "invalid_grant", "error_description": "canary"}, status=400)
        self.given += 1
        await asyncio.sleep(0.02)  # so that requests meet
        return web.json_response(
            {"access_token": f"token-{self.given}", "expires_in": self.good_for_s, "token_type": "Bearer"}
        )


@asynccontextmanager
async def giving(google: pytest.MonkeyPatch, folder: Path, tls: ssl.SSLContext | None = None) -> AsyncIterator[Tokens]:
    """The server, and a service account that asks it."""
    serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization")
    rsa = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.rsa")
    given = Tokens()
    app = web.Application()
    app.router.add_post("/token", given.give)
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    async with serving(app, tls=tls) as port:
        account: dict[str, Any] = {
            "type": "service_account",
            "project_id": "p",
            "private_key_id": "1",
            "private_key": pem,
            "client_email": "gateway@p.iam.gserviceaccount.com",
            "token_uri": f"{'https' if tls else 'http'}://127.0.0.1:{port}/token",
        }
        path = folder / "account.json"
        path.write_text(json.dumps(account), "utf-8")
        google.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
        yield given


@pytest.fixture
async def tokens(google: pytest.MonkeyPatch, tmp_path: Path) -> AsyncIterator[Tokens]:
    async with giving(google, tmp_path) as given:
        yield given


async def shown(upstream: Upstream = VERTEX) -> str:
    headers = await authorised(upstream, "POST", "https://h/v1", HEADERS, b"{}")
    assert headers.items() >= HEADERS.items()
    return headers["authorization"]


async def test_a_token_serves_many_requests(tokens: Tokens):
    assert {await shown() for _ in range(3)} == {"Bearer token-1"}
    assert tokens.given == 1


async def test_requests_that_come_together_ask_once(tokens: Tokens):
    assert set(await asyncio.gather(*(shown() for _ in range(8)))) == {"Bearer token-1"}
    assert tokens.given == 1


async def test_a_token_that_is_about_to_expire_is_renewed(tokens: Tokens):
    tokens.good_for_s = 60  # google-auth renews in the last minutes
    assert await shown() == "Bearer token-1"
    tokens.good_for_s = 3600
    assert [await shown() for _ in range(2)] == ["Bearer token-2"] * 2


async def test_an_account_that_is_refused_is_the_gateways_fault_and_is_tried_again(tokens: Tokens):
    tokens.fails = True
    with pytest.raises(SourceFailed, match="could not get a token for its Google credentials") as raised:
        await shown()
    assert "canary" not in str(raised.value)
    tokens.fails = False
    assert await shown() == "Bearer token-1"


async def test_token_servers_are_reached_as_the_upstream_is(google: pytest.MonkeyPatch, tmp_path: Path):
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    google.setenv("HTTPS_PROXY", "http://127.0.0.1:9")  # is not asked: the upstream's proxy is
    async with giving(google, tmp_path, tls), proxy() as between:
        written = Secret(between.url.replace("//", "//me:canary@"))
        upstream = evolve(VERTEX, base_url="https://h/v1", proxy=written, ca_file=str(tmp_path / "ca.pem"))
        assert await shown(upstream) == "Bearer token-1"
    assert [method for method, _ in between.asked] == ["CONNECT"]
    assert between.credentials == ["Basic bWU6Y2FuYXJ5"]


@pytest.mark.usefixtures("google")
async def test_credentials_that_are_nowhere_are_an_error_that_says_what_to_set():
    with pytest.raises(SourceFailed, match="found no Google credentials; set GOOGLE_APPLICATION_CREDENTIALS"):
        await shown()
