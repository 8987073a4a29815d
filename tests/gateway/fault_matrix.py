"""What a client of each dialect gets for each thing that an upstream can do to the gateway: run, not written down."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeAlias

import orjson
from aiohttp import ClientSession, WSMsgType, web
from attrs import frozen

from streamkit import collect
from streamkit.dialects.openai_responses.socket import event, is_last, refusal
from streamkit.http_errors import decode_error
from streamkit.limits import DEFAULT_LIMITS
from streamkit.testing import source_of
from streamkit.web.source import Timeouts
from tests.gateway.running import Running, behind, config_of, gateway, upstream_at
from tests.gateway.test_cancel import WINDOWS, script
from tests.web.evil import Script
from tests.web.faults import FAULTS, WHY, good, speech
from tests.web.socket_upstream import SocketScript, events, saying, socket_upstream

CLIENTS = ("openai-chat", "openai-responses", "anthropic", "ollama", "gemini")
#: Responses' clients that ask over a WebSocket: what is told there by a status over HTTP has the status in its message.
SOCKET = "openai-responses, WebSocket"
PATIENT = Timeouts(connect_s=60.0, first_byte_s=60.0, idle_s=60.0)
#: Faults that are a time-out, each with the clock that is to run out. Every other clock is longer than any machine is busy.
CLOCKS = {
    "never connects": {"connect_s": 1.0},
    "silence before headers": {"first_byte_s": 2.0},
    "silence mid-stream": {"idle_s": 2.0},
}
#: Faults that only a stream can have: a whole answer is one or is not.
STREAMED = {"error mid-stream"}


@frozen
class Result:
    """What a client got."""

    status: int
    kind: str  #: the neutral kind of error, read from the client's dialect
    message: str
    begun: bool  #: part of the answer came first
    clean: bool  #: it looks whole
    open: bool = False  #: the body of the answer has no end


#: A client's dialect, and whether it asks for a stream.
Case: TypeAlias = tuple[str, bool]
#: Of the cases of a fault, those to run.
Choice: TypeAlias = Callable[[str, list[Case]], list[Case]]


def every(_fault: str, cases: list[Case]) -> list[Case]:
    return cases


async def suffered(fault: str, client: str, upstream: str = "openai-chat", *, stream: bool) -> Result:
    """Ask a gateway whose only upstream has this fault."""
    script = FAULTS[fault](upstream, whole=not stream)
    timeouts = Timeouts(**{"connect_s": 60.0, "first_byte_s": 60.0, "idle_s": 60.0, **CLOCKS.get(fault, {})})
    async with behind(script, dialect=upstream, upstream={"timeouts": timeouts}) as running:
        return await answer_of(running, client, stream=stream)


async def answer_of(running: Running, client: str, *, stream: bool) -> Result:
    """Ask, and say what came."""
    if client == SOCKET:
        return await _over_socket(running)
    answer = await running.asked(client, stream=stream)
    assert answer.end in {"complete", "cut"}, answer.end  # no reset, which takes from clients what they have not read
    if answer.status != 200:
        assert answer.end == "complete"
        failed = decode_error(answer.status, bytes(answer.body), client, answer.headers)
        return Result(answer.status, failed.type, failed.message, begun=False, clean=False)
    read = await collect(source_of([bytes(answer.body)]), client)
    kind, message = read.report.provider_error or ("", "")
    return Result(200, kind, message, begun=bool(read.text), clean=read.clean, open=answer.end == "cut")


async def _over_socket(running: Running) -> Result:
    """The messages up to the last one, which must be the last, on a socket that stays open."""
    async with ClientSession() as session, session.ws_connect(f"{running.url}/v1/responses", max_msg_size=0) as socket:
        await socket.send_json({"type": "response.create", "model": "m", "input": "hi"})
        messages = [(await socket.receive_str()).encode()]
        while not is_last(messages[-1]):
            messages.append((await socket.receive_str()).encode())
        await socket.send_json({"type": "response.steer"})
        assert orjson.loads(await socket.receive_str())["status"] == 400, "something came behind the last message"
    told = refusal(messages[0])
    if told is not None:
        failed = decode_error(told.status, told.body, "openai-responses", told.headers)
        return Result(told.status, failed.type, failed.message, begun=False, clean=False)
    read = await collect(source_of([b"".join(map(event, messages))]), "openai-responses")
    kind, message = read.report.provider_error or ("", "")
    return Result(200, kind, message, begun=bool(read.text), clean=read.clean)


async def matrix(chosen: Choice = every) -> dict[str, dict[tuple[str, bool], Result]]:
    """Every fault for every client, streaming and whole; or those cases of each fault that are ``chosen``."""
    found: dict[str, dict[tuple[str, bool], Result]] = {}
    for fault in FAULTS:
        cases = [(client, stream) for client in CLIENTS for stream in (True, False) if stream or fault not in STREAMED]
        cases = chosen(fault, [*cases, (SOCKET, True)])
        results = await asyncio.gather(*(suffered(fault, client, stream=stream) for client, stream in cases))
        found[fault] = dict(zip(cases, results, strict=True))
    return found


# -- upstreams over a WebSocket ----------------------------------------------------------------------------------------


def _closing(code: int, said: int) -> SocketScript:
    async def play(socket: web.WebSocketResponse, _asked: object) -> None:
        for message in events()[:said]:
            await socket.send_str(message)
        await socket.close(code=code)

    return play


async def _breaking(socket: web.WebSocketResponse, _asked: object) -> None:
    for message in events()[:8]:
        await socket.send_str(message)
    await asyncio.sleep(0.05)
    socket._req.transport.abort()  # type: ignore[union-attr]  # it is open


def _error(**members: object) -> str:
    told = {"type": "error", "error": {"type": "tokens", "code": "rate_limit_exceeded", "message": f"{WHY}: slow down"}}
    return orjson.dumps({**told, **members}).decode()


#: What an upstream does that is asked over a WebSocket: to the handshake, and to the message that asks.
SOCKET_FAULTS: dict[str, tuple[int, SocketScript]] = {
    "opens no WebSocket (426)": (426, saying([])),
    "refuses the handshake (401)": (401, saying([])),
    "an error with status 429 instead of an answer": (0, saying([_error(status=429)])),
    "an error without a status instead of an answer": (0, saying([_error()])),
    "closes at once": (0, _closing(1000, 0)),
    "an error mid-stream": (0, saying([*events()[:8], _error(status=429)])),
    "closes mid-stream (1000)": (0, _closing(1000, 8)),
    "closes mid-stream (1011)": (0, _closing(1011, 8)),
    "its connection breaks mid-stream": (0, _breaking),
    "a message that is too long mid-stream": (0, saying([*events()[:8], "x" * (DEFAULT_LIMITS.event_bytes + 1)])),
    "silence after the handshake": (0, saying([])),
    "silence mid-stream": (0, saying(events()[:8])),
}
SOCKET_CLOCKS = {"silence after the handshake": {"first_byte_s": 2.0}, "silence mid-stream": {"idle_s": 2.0}}


async def socket_suffered(fault: str, client: str, *, stream: bool) -> Result:
    """Ask a gateway whose only upstream is asked over a WebSocket and has this fault."""
    status, play = SOCKET_FAULTS[fault]

    def handshake(_request: web.Request) -> web.Response | None:
        return web.json_response({"error": {"message": f"{WHY}: no"}}, status=status) if status else None

    times = Timeouts(**{"connect_s": 60.0, "first_byte_s": 60.0, "idle_s": 60.0, **SOCKET_CLOCKS.get(fault, {})})
    async with (
        socket_upstream(play, handshake=handshake) as sockets,
        gateway(
            config_of([upstream_at(sockets, "openai-responses", transport="websocket", timeouts=times)])
        ) as running,
    ):
        found = await answer_of(running, client, stream=stream)
        if not status:
            await sockets.gone()
    return found


async def socket_matrix(chosen: Choice = every) -> dict[str, dict[tuple[str, bool], Result]]:
    """Every such fault for every client, streaming and whole; or those cases of each fault that are ``chosen``."""
    found: dict[str, dict[tuple[str, bool], Result]] = {}
    each = [*((client, stream) for client in CLIENTS for stream in (True, False)), (SOCKET, True)]
    for fault in SOCKET_FAULTS:
        cases = chosen(fault, each)
        results = await asyncio.gather(*(socket_suffered(fault, client, stream=stream) for client, stream in cases))
        found[fault] = dict(zip(cases, results, strict=True))
    return found


# -- clients over a WebSocket ------------------------------------------------------------------------------------------


async def departed(window: str, how: str) -> str:
    """How an attempt ends whose client closes its socket, or loses its connection, while the upstream is in ``window``.

    Raises AssertionError where the upstream is not left.
    """
    async with (
        behind(script(window, stream=True), upstream={"timeouts": PATIENT}) as running,
        ClientSession() as session,
        session.ws_connect(f"{running.url}/v1/responses") as socket,
    ):
        await socket.send_json({"type": "response.create", "model": "m", "input": "hi"})
        request = await running.evil.request()
        if window == "within the answer":
            assert (await socket.receive()).type is WSMsgType.TEXT
        else:
            await asyncio.sleep(0.02)  # until the gateway has read what the upstream wrote
        if how == "closes":
            await socket.close()
        else:
            socket._response.close()
        await request.left()
        ((_, outcome),) = await running.outcomes()
    return outcome


def _long() -> Script:
    """A stream of 24 MB, more than fits anywhere on the way."""
    chunks = speech("openai-chat")
    first = next(index for index, data in enumerate(chunks) if b'"It "' in data)
    filler = chunks[first].replace(b"It ", b"x" * 40_000)
    return good("openai-chat", [*chunks[:first], *[filler] * 600, *chunks[first:]])


async def stalled() -> str:
    """The same of a client that takes nothing of a long answer."""
    server = {"stall_s": 1.5, "unsent_bytes": 100_000}
    async with (
        behind(_long(), upstream={"timeouts": PATIENT}, server=server) as running,
        ClientSession() as session,
        session.ws_connect(f"{running.url}/v1/responses", max_msg_size=0) as socket,
    ):
        await socket.send_json({"type": "response.create", "model": "m", "input": "hi"})
        socket._response.connection.transport.pause_reading()  # type: ignore[union-attr]  # it is open
        request = await running.evil.request()
        async with asyncio.timeout(20):
            await request.left()
        assert sum(size for _, size in request.sent) < 20_000_000, "the upstream was read on"
        ((_, outcome),) = await running.outcomes()
    return outcome


async def departures() -> dict[str, str]:
    """Each way to leave in each window, and not to read."""
    ways = [(window, how) for window in WINDOWS for how in ("closes", "loses its connection")]
    found = await asyncio.gather(*(departed(window, how) for window, how in ways), stalled())
    return dict(
        zip(
            [*(f"{how} while the upstream is {window}" for window, how in ways), "takes nothing of a long answer"],
            found,
            strict=True,
        )
    )
