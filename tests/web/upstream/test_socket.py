"""An upstream over a WebSocket: what it is sent, what its messages become, and what each way to fail is told as."""

from __future__ import annotations

import asyncio
import json
import traceback

import pytest
from aiohttp import ClientSession, TCPConnector, WSMsgType, web

from streamkit import collect
from streamkit.errors import (
    BadRequest,
    ConnectTimeout,
    EventTooLong,
    FirstByteTimeout,
    IdleTimeout,
    SourceFailed,
    TotalTimeout,
    UsageError,
)
from streamkit.events import ProviderFailed
from streamkit.limits import DEFAULT_LIMITS
from streamkit.web.source import TimedSource, Timeouts
from streamkit.web.upstream import Secret, Upstream, client_session
from streamkit.web.upstream import sending as sockets
from tests.web.faults import TEXT
from tests.web.serving import eventually
from tests.web.socket_upstream import events, saying, socket_upstream
from tests.web.upstream.recorder import answer, reply, serving, silence

CANARY = "canary-0123456789"
BODY = b'{"model":"m","input":"hi"}'
DELTA = json.dumps({"type": "response.output_text.delta", "delta": "x"})


def upstream(url: str, **values) -> Upstream:
    values = {"name": "up", "dialect": "openai-responses", "key": Secret(CANARY), "transport": "websocket", **values}
    return Upstream(base_url=f"{url}/v1", **values)


@pytest.fixture
async def session():
    async with client_session() as session:
        yield session


async def send_over_socket(session, to, body=BODY, **values):
    started = asyncio.get_running_loop().time()
    return await sockets.send_over_socket(session, to, body, **{"model": "m", "started": started, **values})


async def source_of(session, to) -> TimedSource:
    asked = await send_over_socket(session, to)
    assert isinstance(asked.answer, TimedSource), asked.answer
    return asked.answer


async def refusal_of(session, to) -> ProviderFailed:
    asked = await send_over_socket(session, to)
    assert isinstance(asked.answer, ProviderFailed)
    return asked.answer


async def read(source) -> bytes:
    try:
        return b"".join([chunk async for chunk in source])
    finally:
        await source.aclose()


# -- asking ------------------------------------------------------------------------------------------------------------


async def test_a_request_is_one_message_on_a_connection_of_its_own(session):
    async with socket_upstream(saying(events())) as server:
        for _ in range(2):
            answer = await collect(await source_of(session, upstream(server.url)), "openai-responses")
            assert (answer.clean, answer.text) == (True, TEXT)
        await eventually(lambda: server.open == 0)
    assert server.raw == ['{"type":"response.create","model":"m","input":"hi"}'] * 2
    assert server.codes == [1000, 1000]
    assert not session.connector._conns


async def test_the_handshake_has_the_key_and_what_the_operator_adds_and_no_header_of_a_body(session):
    async with socket_upstream(saying(events())) as server:
        to = upstream(server.url, headers={"OpenAI-Beta": "responses_websockets=2026-02-06", "X-Title": "t"})
        await read(await source_of(session, to))
    sent = {name.lower(): value for name, value in server.headers[0].items()}
    assert sent["authorization"] == f"Bearer {CANARY}"
    assert (sent["openai-beta"], sent["x-title"]) == ("responses_websockets=2026-02-06", "t")
    assert not {"content-type", "cookie", "sec-websocket-extensions"} & set(sent)


async def test_numbers_of_a_request_keep_their_text(session):
    body = b' {"model":"m","metadata":{"n":18446744073709551617,"f":1.0}}'
    async with socket_upstream(saying(events())) as server:
        asked = await send_over_socket(session, upstream(server.url), body)
        await read(asked.answer)
    assert server.raw == ['{"type":"response.create","model":"m","metadata":{"n":18446744073709551617,"f":1.0}}']


async def test_a_request_of_the_largest_size_is_sent_whole(session):
    body = b'{"model":"m","input":"%b"}' % (b"x" * (32 << 20))
    async with socket_upstream(saying(events())) as server:
        asked = await send_over_socket(session, upstream(server.url), body)
        await read(asked.answer)
    assert len(server.asked[0]["input"]) == 32 << 20


async def test_a_proxy_of_the_session_is_asked():
    async with serving(answer(reply(407, b"no"))) as proxy, ClientSession(proxy=proxy.url) as session:
        asked = await send_over_socket(session, upstream("http://nowhere.invalid"))
    assert proxy.last.path == "http://nowhere.invalid/v1/responses"
    assert asked.status == 407


# -- answers -----------------------------------------------------------------------------------------------------------


async def test_messages_become_events_up_to_the_last_and_nothing_behind_it_is_waited_for(session):
    async with socket_upstream(saying([DELTA, '{"type":"response.completed"}', DELTA])) as server:
        loop = asyncio.get_running_loop()
        started = loop.time()
        got = await read(await source_of(session, upstream(server.url)))
        assert loop.time() - started < 0.5
    assert got == (
        b"event: response.output_text.delta\ndata: %b\n\n"
        b'event: response.completed\ndata: {"type":"response.completed"}\n\n' % DELTA.encode()
    )


async def test_a_ping_is_answered_and_counts_as_life(session):
    async def slow(socket, _asked):
        await socket.send_str(DELTA)
        await asyncio.sleep(1.5)
        await socket.send_str('{"type":"response.completed"}')

    async with socket_upstream(slow, ping_s=0.25) as server:
        to = upstream(server.url, timeouts=Timeouts(idle_s=0.7))
        got = await read(await source_of(session, to))
    assert got.count(b": keep-alive\n\n") >= 3
    assert got.endswith(b'data: {"type":"response.completed"}\n\n')


async def test_a_message_may_be_as_long_as_an_event_and_no_longer(session):
    def of_size(size):
        return "x" * size

    limit = DEFAULT_LIMITS.event_bytes
    async with socket_upstream(saying([DELTA, of_size(limit), '{"type":"response.done"}'])) as server:
        assert len(await read(await source_of(session, upstream(server.url)))) > limit
    async with socket_upstream(saying([DELTA, of_size(limit + 1)])) as server:
        with pytest.raises(EventTooLong):
            await read(await source_of(session, upstream(server.url)))
        await server.gone()


# -- failures ----------------------------------------------------------------------------------------------------------


def error(**members):
    inner = {"type": "tokens", "code": "rate_limit_exceeded", "message": f"slow down, {CANARY}"}
    return json.dumps({"type": "error", "error": inner | members.pop("error", {}), **members})


@pytest.mark.parametrize(
    "members",
    [
        {"status": 429, "headers": {"Retry-After": "7", "Set-Cookie": "a=b"}},
        {"status": 429, "error": {"headers": {"retry-after": 7}}},
        {"status_code": 429, "headers": {"retry-after-ms": "7000"}},
    ],
)
async def test_an_error_instead_of_an_answer_is_that_of_http(session, members):
    async with socket_upstream(saying([error(**members)])) as server:
        asked = await send_over_socket(session, upstream(server.url))
        await server.gone()
    failed = asked.answer
    assert isinstance(failed, ProviderFailed)
    assert (asked.status, failed.http_status, failed.type, failed.retry_after_s) == (429, 429, "rate_limit", 7.0)
    assert failed.message.startswith("slow down")
    assert CANARY not in repr(failed)
    assert "headers" not in failed.raw


async def test_an_error_without_a_status_is_an_event(session):
    async with socket_upstream(saying([error(headers={"set-cookie": "a=b"})])) as server:
        got = await read(await source_of(session, upstream(server.url)))
    assert got.startswith(b"event: error\ndata: ")
    assert b"set-cookie" not in got


@pytest.mark.parametrize(
    ("status", "kind"), [(401, "auth"), (404, "not_found"), (429, "rate_limit"), (503, "unavailable")]
)
async def test_a_handshake_that_is_refused_is_an_error_with_its_status_and_words(session, status, kind):
    def refuse(_request):
        body = {"error": {"message": f"no: {CANARY}", "type": None}}
        return web.json_response(body, status=status, headers={"Retry-After": "3"})

    async with socket_upstream(saying([]), handshake=refuse) as server:
        failed = await refusal_of(session, upstream(server.url))
    assert (failed.type, failed.http_status, failed.retry_after_s) == (kind, status, 3.0)
    assert failed.message.startswith("no: ")
    assert CANARY not in failed.message


@pytest.mark.parametrize("status", [200, 405, 426, 501])
async def test_where_no_socket_is_opened_the_operator_is_told_what_to_write(session, status):
    async with socket_upstream(saying([]), handshake=lambda _: web.Response(status=status, text="hello")) as server:
        failed = await refusal_of(session, upstream(server.url))
    assert failed.type == "not_found"
    assert failed.message.endswith(f"(status {status}); set the upstream's transport to http")


async def test_a_redirect_is_not_followed(session):
    async with serving(answer(reply(200))) as elsewhere:
        handshake = web.Response(status=307, headers={"Location": f"{elsewhere.url}/v1/responses"})
        async with socket_upstream(saying([]), handshake=lambda _: handshake) as server:
            failed = await refusal_of(session, upstream(server.url))
    assert "which is not followed" in failed.message
    assert not elsewhere.sent


async def test_a_handshake_of_another_protocol_fails(session):
    switched = b"HTTP/1.1 101 Switching\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: x\r\n\r\n"
    async with serving(answer(switched)) as server:
        with pytest.raises(SourceFailed, match="WebSocket handshake") as raised:
            await send_over_socket(session, upstream(server.url))
    assert CANARY not in "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize("code", [1000, 1001, 1011, 1013, 4000])
async def test_a_socket_that_is_closed_inside_an_answer_is_a_cut(session, code):
    async def cut(socket, _asked):
        for message in events()[:5]:
            await socket.send_str(message)
        await socket.close(code=code)

    async with socket_upstream(cut) as server:
        answer = await collect(await source_of(session, upstream(server.url)), "openai-responses")
    assert not answer.clean
    if code != 1000:
        assert str(answer.report.error).endswith(f"with the code {code}")
        assert isinstance(answer.report.error, SourceFailed)
        assert answer.report.error.upstream == "up"


async def test_a_server_that_says_that_it_closes_is_not_waited_for_until_it_does(session):
    async def close(socket, _asked):
        await socket.send_str(DELTA)
        socket._req.transport.pause_reading()
        await socket.send_frame(b"", WSMsgType.CLOSE)

    async with socket_upstream(close) as server, asyncio.timeout(2):
        await read(await source_of(session, upstream(server.url)))


@pytest.mark.parametrize("before", [[], events()[:5]])
async def test_a_connection_that_breaks_is_told_and_no_success(session, before):
    async def broken(socket, _asked):
        for message in before:
            await socket.send_str(message)
        await asyncio.sleep(0.05)
        socket._req.transport.abort()

    async with socket_upstream(broken) as server:
        if not before:
            with pytest.raises(SourceFailed):
                await send_over_socket(session, upstream(server.url))
            return
        answer = await collect(await source_of(session, upstream(server.url)), "openai-responses")
    assert not answer.clean
    assert isinstance(answer.report.error, SourceFailed)


async def test_a_socket_that_is_closed_before_any_message_did_not_answer(session):
    async def close(socket, _asked):
        await socket.close()

    async with socket_upstream(close) as server:
        with pytest.raises(SourceFailed, match="before it responded"):
            await send_over_socket(session, upstream(server.url))


@pytest.mark.parametrize(
    ("times", "kind"),
    [({"first_byte_s": 0.3}, FirstByteTimeout), ({"total_s": 0.3, "first_byte_s": 5.0}, TotalTimeout)],
)
async def test_an_upstream_that_says_nothing_runs_out_of_time_and_is_left(session, times, kind):
    async with socket_upstream(saying([])) as server:
        with pytest.raises(kind):
            await send_over_socket(session, upstream(server.url, timeouts=Timeouts(**times)))
        await server.gone()
    async with serving(silence) as server:
        with pytest.raises(kind):
            await send_over_socket(session, upstream(server.url, timeouts=Timeouts(**times)))


async def test_an_upstream_that_falls_silent_runs_out_of_time(session):
    async with socket_upstream(saying([DELTA])) as server:
        source = await source_of(session, upstream(server.url, timeouts=Timeouts(idle_s=0.2)))
        with pytest.raises(IdleTimeout):
            await read(source)
        await server.gone()


async def test_connecting_has_a_time_of_its_own():
    class Slow(TCPConnector):
        async def _create_connection(self, *_arguments):
            await asyncio.sleep(60)

    async with client_session(connector=Slow()) as session:
        with pytest.raises(ConnectTimeout):
            await send_over_socket(session, upstream("http://127.0.0.1:9", timeouts=Timeouts(connect_s=0.1)))


async def test_cancelling_closes_the_connection(session):
    async with socket_upstream(saying([])) as server:
        task = asyncio.create_task(send_over_socket(session, upstream(server.url)))
        async with asyncio.timeout(5):
            await server.came.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.gone()
        assert server.codes == [1000]


async def test_a_model_or_a_header_that_can_not_be_sent_is_a_bad_request(session):
    with pytest.raises(BadRequest):
        headers = {"OpenAI-Beta": "a\nb"}
        await send_over_socket(
            session, upstream("http://127.0.0.1:9"), client_dialect="openai-responses", client_headers=headers
        )


# -- configuration -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"transport": "ws"}, "transport: write one of http, websocket"),
        ({"dialect": "anthropic"}, 'transport: leave it out, or write "http"; anthropic has no WebSocket'),
        ({"auth": "sigv4", "key": None, "region": "us-east-1"}, "signs requests with a body"),
    ],
)
def test_what_can_not_work_is_told_when_the_value_is_made(values, words):
    with pytest.raises(UsageError) as raised:
        upstream("http://127.0.0.1:9", **values)
    assert words in str(raised.value)
