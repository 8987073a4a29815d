"""Proxies and certificates of an upstream: what is sent where, and what each fault is told as."""

from __future__ import annotations

import asyncio
import pickle
import traceback
from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve

from streamkit import collect
from streamkit.errors import ConnectTimeout, SourceFailed, UsageError
from streamkit.web.source import TimedSource, Timeouts
from streamkit.web.upstream import Secret, Upstream, client_session, redactor, send
from streamkit.web.upstream.sending import send_over_socket
from tests.web.faults import TEXT
from tests.web.socket_upstream import events, saying, socket_upstream
from tests.web.upstream.certificates import Certificates
from tests.web.upstream.proxy import demanding, proxy
from tests.web.upstream.recorder import Recorder, Sent, answer, reply, serving

CANARY = "canary-0123456789"
BASIC = "Basic bWU6Y2FuYXJ5LTAxMjM0NTY3ODk="  # me:canary-0123456789
HELLO = answer(reply(200, b"{}"))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


def upstream(url: str, **values: Any) -> Upstream:
    return Upstream(**{"name": "up", "dialect": "openai-responses", "base_url": f"{url}/v1", "auth": "none", **values})


async def asked(to: Upstream, times: int = 1) -> int:
    async with client_session() as session:
        for _ in range(times):
            response = await send(session, to, b"{}", model="m", stream=True)
            await response.read()
    return response.status


# -- values ------------------------------------------------------------------------------------------------------------


FILES: dict[str, dict[str, str]] = {
    "ca_file: … can't be used: Is a directory": {"ca_file": ""},
    "ca_file: … can't be used: No such file or directory": {"ca_file": "nowhere.pem"},
    "ca_file: … has no certificate in PEM form (-----BEGIN …)": {"ca_file": "empty.pem"},
    "ca_file: … can't be used: its PEM form is damaged": {"ca_file": "broken.pem"},
    "client_cert: … has no certificate": {"client_cert": "client.key"},
    "client_cert: … has no private key": {"client_cert": "client.pem"},
    "client_key: … has no private key": {"client_cert": "client.pem", "client_key": "client.pem"},
    "client_key: … can't be used: No such file": {"client_cert": "client.pem", "client_key": "nowhere"},
    "client_key: the key in … is encrypted; decrypt it by `openssl pkey": {
        "client_cert": "client.pem",
        "client_key": "encrypted.key",
    },
    "client_key: the key in … is not the key of client_cert": {"client_cert": "client.pem", "client_key": "other.key"},
    "client_key: needs client_cert": {"client_key": "client.key"},
}


@pytest.mark.parametrize("error", FILES)
def test_a_file_that_cannot_be_used_is_named_with_its_reason(made: Certificates, error: str):
    values = {name: made.path(file) for name, file in FILES[error].items()}
    with pytest.raises(UsageError) as raised:
        upstream("https://h", **values)
    paths = [repr(path) for path in values.values()]
    told = str(raised.value)
    for path in paths:
        told = told.replace(path, "…")
    assert told.startswith(error)


PROXIES: list[tuple[Any, str]] = [
    ("", "proxy: write the URL of an HTTP proxy"),
    ("proxy:3128", "proxy: write the URL of an HTTP proxy"),
    ("http://", "proxy: write the URL of an HTTP proxy"),
    ("http://proxy:0", "proxy: write the URL of an HTTP proxy"),
    ("http://proxy:x", "proxy: write the URL of an HTTP proxy"),
    (
        "https://proxy",
        "proxy: write the URL of an HTTP proxy, such as http://proxy:3128; proxies that are reached by TLS",
    ),
    ("socks5://proxy", "proxy: write the URL of an HTTP proxy"),
    ("http://proxy/path", "proxy: leave out everything after the port"),
    ("http://proxy?canary", "proxy: leave out everything after the port"),
    (f"http://me:{CANARY}@proxy", "proxy: a URL with user and password must be a Secret"),
    (Secret(f"https://me:{CANARY}@proxy"), "proxy: write the URL of an HTTP proxy"),
    (Secret(f"http://me%3A:{CANARY}@proxy"), "proxy: the user must not contain a colon"),
    (3128, "proxy: write a str or a Secret, not int"),
]


@pytest.mark.parametrize(("written", "error"), PROXIES)
def test_a_proxy_that_cannot_be_asked_is_refused(written: Any, error: str):
    with pytest.raises(UsageError) as raised:
        upstream("https://h", proxy=written)
    assert str(raised.value).startswith(error)
    assert "canary" not in f"{raised.value!r} {raised.value.__cause__!r}"


@pytest.mark.parametrize("name", ["ca_file", "client_cert", "client_key"])
def test_http_has_no_certificates_and_no_file_is_written_out(name: str):
    with pytest.raises(UsageError, match=f"{name}: leave it out, or let base_url begin with https://"):
        upstream("http://h", **{name: "x"})
    with pytest.raises(UsageError, match=f"{name}: (write the path of a PEM file|needs)") as raised:
        upstream("https://h", **{name: f"-----BEGIN PRIVATE KEY-----\n{CANARY}"})
    assert CANARY not in str(raised.value)


def test_what_is_made_of_the_files_is_made_once_and_again_in_another_process(made: Certificates):
    one = upstream("https://h", ca_file=made.path("ca.pem"), proxy=Secret(f"http://me:{CANARY}@proxy:3128"))
    assert one.connection is one.connection
    assert CANARY not in f"{one!r} {one.connection!r}"
    sent = pickle.loads(pickle.dumps(one))
    assert sent == one
    assert sent.connection.arguments.keys() == one.connection.arguments.keys() == {"ssl", "proxy", "proxy_headers"}
    assert evolve(one, proxy=None).connection.arguments.keys() == {"ssl"}
    assert upstream("https://h").connection.arguments == upstream("https://h").connection.headers == {}


# -- proxies -----------------------------------------------------------------------------------------------------------


async def test_http_goes_through_the_proxy_with_its_credentials():
    async with serving(HELLO) as there, proxy(demanding(BASIC)) as between:
        to = upstream(there.url, proxy=Secret(between.url.replace("//", f"//me:{CANARY}@")))
        assert await asked(to, 2) == 200
    assert between.asked == [("POST", f"{there.url}/v1/responses")] * 2
    assert [sent.path for sent in there.sent] == ["/v1/responses"] * 2
    assert "proxy-authorization" not in there.last.headers


async def test_https_goes_through_a_tunnel_that_is_used_again(made: Certificates):
    async with serving(HELLO, tls=made.server()) as there, proxy(demanding(BASIC)) as between:
        between.names["upstream.test"] = int(there.url.rpartition(":")[2])  # only the proxy knows the name
        to = upstream(
            "https://upstream.test",
            proxy=Secret(between.url.replace("//", f"//me:{CANARY}@")),
            ca_file=made.path("ca.pem"),
            auth="bearer",
            key=Secret("a-key-of-ours"),
        )
        assert await asked(to, 3) == 200
        with pytest.raises(SourceFailed, match="the upstream's certificate was not accepted") as raised:
            await asked(evolve(to, ca_file=None))
        assert CANARY not in repr(raised.value.__cause__)  # which shows how the connection was opened
    assert between.asked == [("CONNECT", "upstream.test:443")] * 2
    assert "a-key-of-ours" not in str(between.recorder.sent)
    assert [sent.headers.get("proxy-authorization") for sent in there.sent] == [None] * 3
    assert there.last.headers["authorization"] == "Bearer a-key-of-ours"


async def test_a_websocket_goes_through_a_tunnel_with_the_certificates(made: Certificates):
    async with socket_upstream(saying(events()), tls=made.server(asks_client=True)) as there, proxy() as between:
        files = {"ca_file": made.path("ca.pem"), "client_cert": made.path("both.pem")}
        to = upstream(there.url, proxy=between.url, transport="websocket", **files)
        async with client_session() as session:
            started = asyncio.get_running_loop().time()
            opened = await send_over_socket(session, to, b'{"model":"m"}', model="m", started=started)
            assert isinstance(opened.answer, TimedSource)
            assert (await collect(opened.answer, "openai-responses")).text == TEXT
    assert between.asked == [("CONNECT", there.url.removeprefix("https://"))]


def refusing(status: int) -> Callable[[Sent], bytes]:
    return lambda _sent: reply(status, b"canary", connection="close")


@pytest.mark.parametrize("transport", ["http", "websocket"])
@pytest.mark.parametrize(
    ("scheme", "status", "error"),
    [
        ("https", 407, "the upstream's proxy refused the request (status 407)"),
        ("https", 403, "the upstream's proxy refused the request (status 403)"),
        ("http", 407, "the upstream's proxy refused the request (status 407)"),
    ],
)
async def test_a_proxy_that_refuses_is_a_failed_source(transport: str, scheme: str, status: int, error: str):
    async with proxy(refusing(status)) as between, client_session() as session:
        written = Secret(between.url.replace("//", f"//me:{CANARY}@"))
        to = upstream(f"{scheme}://upstream.test", proxy=written, transport=transport)
        with pytest.raises(SourceFailed) as raised:
            if transport == "http":
                await send(session, to, b"{}", model="m", stream=True)
            else:
                await send_over_socket(session, to, b"{}", model="m", started=asyncio.get_running_loop().time())
    assert str(raised.value) == error
    assert between.credentials == [BASIC]
    told = "".join(traceback.format_exception(raised.value)) + repr(raised.value.__cause__)
    assert not [secret for secret in (CANARY, BASIC[6:], "canary") if secret in told]


async def test_a_status_407_without_a_proxy_is_the_upstreams_answer():
    async with serving(answer(reply(407))) as there:
        assert await asked(upstream(there.url)) == 407


async def test_a_proxy_that_is_not_there_and_one_that_says_nothing(unused_tcp_port: int):
    with pytest.raises(SourceFailed, match="the connection to the proxy could not be opened: Connection refused"):
        await asked(upstream("https://h", proxy=f"http://127.0.0.1:{unused_tcp_port}"))

    async def silent(_recorder: Recorder, reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with serving(silent) as between:
        with pytest.raises(ConnectTimeout):
            await asked(upstream("https://h", proxy=between.url, timeouts=Timeouts(connect_s=0.1)))


def test_the_password_of_a_proxy_is_cut_out_of_what_a_server_says():
    to = upstream("http://h", proxy=Secret("http://me:can%40ary-0123456789@proxy"))
    said = f"can@ary-0123456789 {to.connection.headers['proxy-authorization']}"
    assert redactor([to])(said) == "[removed] Basic [removed]"


@pytest.mark.parametrize("name", ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"])
async def test_the_environments_proxy_is_not_asked(monkeypatch: pytest.MonkeyPatch, name: str):
    async with serving(HELLO) as there, proxy() as between:
        for variable in (name, name.lower()):
            monkeypatch.setenv(variable, between.url)
        assert await asked(upstream(there.url)) == 200
    assert between.asked == []


# -- certificates ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "files", [{"client_cert": "client.pem", "client_key": "client.key"}, {"client_cert": "both.pem"}]
)
async def test_an_upstream_gets_the_certificate_that_it_asks_for(made: Certificates, files: dict[str, str]):
    values = {name: made.path(file) for name, file in {"ca_file": "ca.pem", **files}.items()}
    async with serving(HELLO, tls=made.server(asks_client=True)) as there:
        assert await asked(upstream(there.url, **values)) == 200
        with pytest.raises(SourceFailed):
            await asked(upstream(there.url, ca_file=made.path("ca.pem")))


async def test_two_upstreams_of_one_address_share_no_connection(made: Certificates):
    """One trusts the server and the other does not: the other must not use the connection of the one."""
    async with serving(HELLO, tls=made.server()) as there, client_session() as session:
        trusting, other = upstream(there.url, ca_file=made.path("ca.pem")), upstream(there.url)
        await (await send(session, trusting, b"{}", model="m", stream=True)).read()
        with pytest.raises(SourceFailed, match="the upstream's certificate was not accepted"):
            await send(session, other, b"{}", model="m", stream=True)
    assert len(there.sent) == 1
