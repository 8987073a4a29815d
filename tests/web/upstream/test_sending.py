from __future__ import annotations

import asyncio
import datetime as dt
import gzip
import ipaddress
import ssl
import traceback
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, TCPConnector
from aiohttp.abc import AbstractResolver, ResolveResult

from streamkit.errors import BadRequest, ConnectTimeout, FirstByteTimeout, SourceFailed, TotalTimeout, UsageError
from streamkit.http_errors import BODY_BYTES, is_retryable
from streamkit.web.source import Timeouts
from streamkit.web.upstream import Secret, Upstream, client_session, error_of, send
from tests.web.upstream.recorder import Answer, Recorder, answer, read_request, reply, serving, silence

CANARY = "canary-0123456789"
CHUNKED = b"HTTP/1.1 %d Any\r\ntransfer-encoding: chunked\r\n\r\n"


def upstream(url: str, **values: Any) -> Upstream:
    return Upstream(
        **{"name": "up", "dialect": "openai-chat", "base_url": f"{url}/v1", "key": Secret(CANARY), **values}
    )


@pytest.fixture
async def session():
    async with client_session() as session:
        yield session


async def post(session: ClientSession, to: Upstream, body: bytes = b"{}", **values: Any):
    return await send(session, to, body, **{"model": "m", "stream": True, **values})


# -- what is sent ------------------------------------------------------------------------------------------------------


async def test_a_request_is_one_post_with_its_body_its_key_and_no_header_twice(session: ClientSession):
    async with serving(answer(reply(200, b"{}"))) as recorder:
        (await post(session, upstream(recorder.url, headers={"X-Title": "t"}), b'{"a":1}')).close()
    sent = recorder.last
    assert (sent.method, sent.path, sent.body) == ("POST", "/v1/chat/completions", b'{"a":1}')
    assert sorted(sent.names) == sorted(set(sent.names))
    assert {name: sent.headers[name] for name in sent.headers if name not in {"host", "user-agent"}} == {
        "accept": "text/event-stream, application/json",
        "accept-encoding": "identity",
        "authorization": f"Bearer {CANARY}",
        "content-length": "7",
        "content-type": "application/json",
        "x-title": "t",
    }


async def test_a_body_with_images_is_sent_whole_with_its_length(session: ClientSession):
    """aiohttp warns of bytes above 1 MiB, and warnings are errors here."""
    body = b"x" * (3 * 1024 * 1024)
    async with serving(answer(reply(200))) as recorder:
        (await post(session, upstream(recorder.url), body)).close()
    assert recorder.last.body == body
    assert "transfer-encoding" not in recorder.last.headers


async def test_a_path_arrives_as_it_was_encoded(session: ClientSession):
    async with serving(answer(reply(200))) as recorder:
        to = upstream(recorder.url, dialect="bedrock", base_url=recorder.url)
        (await post(session, to, model="arn:aws:x/y z%", stream=False)).close()
    assert recorder.last.path == "/model/arn%3Aaws%3Ax%2Fy%20z%25/converse"


async def test_a_count_goes_to_its_own_address(session: ClientSession):
    async with serving(answer(reply(200))) as recorder:
        to = upstream(recorder.url, dialect="anthropic", base_url=recorder.url)
        (await post(session, to, operation="count")).close()
        assert recorder.last.path == "/v1/messages/count_tokens"
        assert recorder.last.headers["accept"] == "application/json"
        with pytest.raises(UsageError, match="can't count"):
            await post(session, upstream(recorder.url), operation="count")
    assert len(recorder.sent) == 1


async def test_the_clients_feature_headers_are_sent_and_its_keys_are_not(session: ClientSession):
    async with serving(answer(reply(200))) as recorder:
        to = upstream(recorder.url, dialect="anthropic", base_url=recorder.url, auth="x-api-key")
        came = {"Anthropic-Beta": "b", "X-Api-Key": "client's", "Authorization": "client's", "Cookie": "client's"}
        (await post(session, to, client_dialect="anthropic", client_headers=came)).close()
        with pytest.raises(BadRequest, match="anthropic-beta"):
            await post(session, to, client_dialect="anthropic", client_headers={"Anthropic-Beta": "b\r\nx: y"})
    assert recorder.last.headers["anthropic-beta"] == "b"
    assert recorder.last.headers["x-api-key"] == CANARY
    assert "client's" not in str(recorder.sent)


async def test_the_environments_proxies_and_netrc_are_not_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password canary\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with serving(answer(reply(200))) as recorder, client_session() as session:
        (await post(session, upstream(recorder.url, auth="none", key=None))).close()
    assert "authorization" not in recorder.last.headers


async def test_cookies_are_not_kept(session: ClientSession):
    async with serving(answer(reply(200, set_cookie="a=canary; Path=/"))) as recorder:
        for _ in range(2):  # by name: no jar keeps cookies of an address
            (await post(session, upstream(recorder.url.replace("127.0.0.1", "localhost")))).close()
    assert ["cookie" in sent.headers for sent in recorder.sent] == [False, False]


async def test_a_stream_in_each_of_two_hundred_connections_is_no_bound():
    async with serving(answer(CHUNKED % 200)) as recorder, client_session() as session:
        async with asyncio.timeout(30):
            opened = await asyncio.gather(*(post(session, upstream(recorder.url)) for _ in range(200)))
        assert [response.status for response in opened] == [200] * 200
        for response in opened:
            response.close()


# -- what comes back ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [200, 201, 204, 301, 302, 303, 307, 308, 400, 401, 429, 500, 503])
async def test_an_answer_is_returned_whatever_its_status_and_a_redirect_is_not_followed(
    session: ClientSession, status: int
):
    async with serving(answer(reply(status, location="/elsewhere"))) as recorder:
        response = await post(session, upstream(recorder.url))
        assert response.status == status
        response.close()
    assert len(recorder.sent) == 1


@pytest.mark.parametrize(
    ("encoding", "packed"), [("gzip", gzip.compress), ("deflate", zlib.compress), ("GZIP", gzip.compress)]
)
async def test_what_is_packed_unasked_is_unpacked(
    session: ClientSession, encoding: str, packed: Callable[[bytes], bytes]
):
    packed_reply = reply(200, packed(b"data: x\n\n"), content_encoding=encoding)
    async with serving(answer(packed_reply)) as recorder, await post(session, upstream(recorder.url)) as response:
        assert await response.read() == b"data: x\n\n"


async def test_a_bomb_is_unpacked_in_bounded_steps(session: ClientSession):
    bomb = gzip.compress(bytes(256 * 1024 * 1024), 1)  # about 1.1 MiB
    bomb_reply = reply(200, bomb, content_encoding="gzip")
    async with serving(answer(bomb_reply)) as recorder, await post(session, upstream(recorder.url)) as response:
        reads = [len(await response.content.readany()) for _ in range(8)]
    assert min(reads) > 0
    assert max(reads) < 4 * 1024 * 1024


@pytest.mark.parametrize("encoding", ["gzip, gzip", "x-gzip", "compress", "snappy"])
async def test_an_encoding_that_nobody_undoes_is_refused(session: ClientSession, encoding: str):
    began = (CHUNKED % 200).replace(b"\r\n\r\n", f"\r\ncontent-encoding: {encoding}\r\n\r\n".encode())
    async with serving(answer(began)) as recorder:
        with pytest.raises(SourceFailed, match="compressed its response"):
            await post(session, upstream(recorder.url))
        await asyncio.wait_for(recorder.left.wait(), 10)


# -- what breaks -------------------------------------------------------------------------------------------------------


class Names(AbstractResolver):
    """A resolver that does as it is told."""

    def __init__(self, wait_s: float) -> None:
        self.wait_s = wait_s

    async def resolve(self, host: str, port: int = 0, family: Any = 0) -> list[ResolveResult]:
        await asyncio.sleep(self.wait_s)
        raise OSError(None, "no such name")

    async def close(self) -> None: ...


def told(error: BaseException) -> str:
    """All that a log could say of an error: its words, its repr, its traceback, and those of what caused it."""
    said = [str(error), repr(error), "".join(traceback.format_exception(error))]
    return "\n".join([*said, *(told(link) for link in (error.__cause__, error.__context__) if link is not None)])


async def failing(answered: Answer, **values: Any) -> SourceFailed:
    async with serving(answered) as recorder, client_session() as session:
        with pytest.raises(SourceFailed) as raised:
            await post(session, upstream(recorder.url, **values))
        assert recorder.url.removeprefix("http://") not in str(raised.value)
        assert "127.0.0.1" not in str(raised.value)
    assert CANARY not in told(raised.value)
    return raised.value


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "the upstream closed the connection before it responded"),
        (b"HTTP/1.1 200 O", "the upstream closed the connection before it responded"),
        (b"SSH-2.0-OpenSSH_9\r\n\r\n", "the upstream's response is not valid HTTP"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"a" * 70_000 + b"\r\n\r\n", "the upstream's response is not valid HTTP"),
        (b"HTTP/1.1 200 OK\r\n" + b"x: a\r\n" * 300 + b"\r\n", "the upstream's response is not valid HTTP"),
        (
            b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
            "the upstream's response is not valid HTTP",
        ),
    ],
)
async def test_what_is_no_answer_is_a_failed_source_that_shows_no_host_and_no_key(raw: bytes, message: str):
    error = await failing(answer(raw, close=True))
    assert str(error) == message
    assert error.__cause__ is not None


async def test_a_reset_is_a_failed_source():
    async def reset(recorder: Recorder, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.transport.abort()

    assert str(await failing(reset)) in {
        "the upstream closed the connection before it responded",
        "the upstream closed the connection before it responded: Connection reset by peer",
        "the connection to the upstream broke: Connection reset by peer",
    }


async def test_a_refused_connection_is_a_failed_source(session: ClientSession, unused_tcp_port: int):
    with pytest.raises(
        SourceFailed, match=r"^the connection to the upstream could not be opened: Connection refused$"
    ) as raised:
        await post(session, upstream(f"http://127.0.0.1:{unused_tcp_port}"))
    assert raised.value.__cause__ is not None
    assert CANARY not in told(raised.value)


async def test_a_name_that_no_one_knows_is_a_failed_source():
    async with client_session(connector=TCPConnector(resolver=Names(0))) as session:
        with pytest.raises(
            SourceFailed, match=r"^the host name of the upstream, or of its proxy, could not be resolved$"
        ):
            await post(session, upstream("http://nobody.example"))


async def test_no_tls_is_a_failed_source(session: ClientSession):
    async def plain(_recorder: Recorder, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad\r\n\r\n")
        await writer.drain()

    async with serving(plain) as recorder:
        with pytest.raises(SourceFailed, match=r"^the TLS connection to the upstream failed: [A-Z_]+$"):
            await post(session, upstream(recorder.url.replace("http:", "https:")))


def self_signed(folder: Path) -> ssl.SSLContext:
    x509 = pytest.importorskip("cryptography.x509", reason="a certificate is made by cryptography")
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415 - it comes with google-auth
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 - it comes with google-auth

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "nobody")])
    now = dt.datetime.now(dt.UTC)
    built = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    built = built.serial_number(1).not_valid_before(now).not_valid_after(now + dt.timedelta(days=1))
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    written = built.add_extension(address, critical=False).sign(key, hashes.SHA256())
    pem = serialization.Encoding.PEM
    plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    file = folder / "upstream.pem"
    file.write_bytes(written.public_bytes(pem) + key.private_bytes(pem, *plain))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


async def test_a_certificate_that_nobody_vouches_for_is_a_failed_source(session: ClientSession, tmp_path: Path):
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=self_signed(tmp_path))
    async with server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(
            SourceFailed, match=r"^the upstream's certificate was not accepted: CERTIFICATE_VERIFY_FAILED$"
        ):
            await post(session, upstream(f"https://127.0.0.1:{port}"))


# -- time --------------------------------------------------------------------------------------------------------------


async def test_a_connection_that_takes_too_long_is_its_own_error():
    async with client_session(connector=TCPConnector(resolver=Names(60))) as session:
        with pytest.raises(ConnectTimeout, match=r"could not be reached within 0\.05 s"):
            await post(session, upstream("http://slow.example", timeouts=Timeouts(connect_s=0.05)))


@pytest.mark.parametrize(
    ("timeouts", "error", "message"),
    [
        (Timeouts(first_byte_s=0.05), FirstByteTimeout, r"sent no first byte within 0\.05 s"),
        (Timeouts(first_byte_s=0.05, total_s=0.1), FirstByteTimeout, r"sent no first byte within 0\.05 s"),
        (Timeouts(first_byte_s=60, total_s=0.05), TotalTimeout, r"did not end within 0\.05 s"),
    ],
)
async def test_silence_before_the_answer_is_its_own_error_and_closes_the_connection(
    session: ClientSession, timeouts: Timeouts, error: type[Exception], message: str
):
    async with serving(silence) as recorder:
        with pytest.raises(error, match=message):
            await post(session, upstream(recorder.url, timeouts=timeouts))
        await asyncio.wait_for(recorder.left.wait(), 10)


async def test_an_answer_that_has_begun_is_not_timed_here(session: ClientSession):
    async with serving(answer(CHUNKED % 200 + b"1\r\na\r\n")) as recorder:
        response = await post(session, upstream(recorder.url, timeouts=Timeouts(first_byte_s=0.05, total_s=0.05)))
        await asyncio.sleep(0.1)
        assert await response.content.readany() == b"a"
        response.close()


async def test_who_cancels_closes_the_connection(session: ClientSession):
    async with serving(silence) as recorder:
        task = asyncio.create_task(post(session, upstream(recorder.url)))
        await asyncio.wait_for(recorder.asked.wait(), 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(recorder.left.wait(), 10)


# -- errors ------------------------------------------------------------------------------------------------------------


async def failed_with(raw: bytes, **values: Any):
    async with serving(answer(raw)) as recorder, client_session() as session:
        to = upstream(recorder.url, **values)
        response = await post(session, to)
        failed = await error_of(response, to)
        assert response.closed
    return failed


async def test_an_error_is_read_as_its_dialect_says_it_with_the_time_to_wait():
    body = b'{"error":{"message":"slow down","type":"requests","code":"rate_limit_exceeded"}}'
    failed = await failed_with(reply(429, body, retry_after="7"))
    assert (failed.type, failed.message, failed.http_status, failed.retry_after_s) == (
        "rate_limit",
        "slow down",
        429,
        7.0,
    )


async def test_an_upstream_that_repeats_its_key_does_not_get_it_told():
    body = f'{{"error":{{"message":"no such key: {CANARY}","param":"own-0123456789"}}}}'.encode()
    failed = await failed_with(reply(401, body), headers={"X-Own": "own-0123456789"})
    assert failed.message == "no such key: [removed]"
    assert CANARY not in repr(failed)
    assert "own-" not in repr(failed)


async def test_a_key_in_an_html_page_is_not_told():
    failed = await failed_with(reply(502, f"<html><title>bad {CANARY}</title>\xff</html>".encode("latin-1")))
    assert failed.message == "the provider responded with status 502 and a web page: 'bad [removed]'"


@pytest.mark.parametrize("location", [f"http://elsewhere.example/?key={CANARY}", "/v2", ""])
async def test_a_redirect_says_that_it_is_not_followed_and_not_where_to(location: str):
    failed = await failed_with(reply(307, b'{"error":{"message":"go to http://elsewhere.example"}}', location=location))
    assert failed.message.startswith("the upstream responded with a redirect (status 307), which is not followed")
    assert "base_url" in failed.message
    assert "elsewhere" not in repr(failed)
    assert not is_retryable(failed)


async def test_of_a_long_error_the_beginning_is_read_and_the_connection_closed():
    body = b'{"error":{"message":"' + b"x" * (8 * 1024 * 1024) + b'"}}'
    async with serving(answer(reply(500, body))) as recorder, client_session() as session:
        failed = await error_of(await post(session, upstream(recorder.url)), "openai-chat")
        await asyncio.wait_for(recorder.left.wait(), 10)
    assert failed.message.startswith("the provider responded with status 500 and text: ")
    assert len(failed.message) < 300


async def test_an_error_of_just_64_kib_is_read_whole():
    fill = b"x" * (BODY_BYTES - len(b'{"error":{"message":"m","x":""}}'))
    body = b'{"error":{"message":"m","x":"%b"}}' % fill
    assert len(body) == BODY_BYTES
    assert (await failed_with(reply(400, body))).message == "m"
    assert "text: " in (await failed_with(reply(400, body + b" "))).message


async def test_an_error_whose_body_does_not_come_says_so(session: ClientSession, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("streamkit.web.upstream.sending.ERROR_BODY_S", 0.05)
    async with serving(answer(CHUNKED % 503 + b"4\r\nbusy\r\n")) as recorder:
        failed = await error_of(await post(session, upstream(recorder.url)), "openai-chat")
        await asyncio.wait_for(recorder.left.wait(), 10)
    assert failed.message == (
        "the provider responded with status 503 and text: 'busy' (the rest of its body did not arrive)"
    )
    assert failed.type == "unavailable"


@pytest.mark.parametrize(
    "raw",
    [
        reply(500, b"abc").replace(b"content-length: 3", b"content-length: 9"),
        CHUNKED % 500 + b"9\r\nabc",
        reply(500, b"this is no gzip", content_encoding="gzip"),
    ],
)
async def test_an_error_whose_body_breaks_keeps_its_status(session: ClientSession, raw: bytes):
    async with serving(answer(raw, close=True)) as recorder:
        response = await post(session, upstream(recorder.url))
        failed = await error_of(response, "openai-chat")
    assert failed.http_status == 500
    assert failed.message.endswith("(the rest of its body did not arrive)")


async def test_a_connection_serves_again_after_an_error_that_was_read_to_its_end(session: ClientSession):
    async with serving(answer(reply(429, b"{}"))) as recorder:
        for _ in range(3):
            await error_of(await post(session, upstream(recorder.url)), "openai-chat")
    assert recorder.connections == 1
