"""What a client of each dialect gets for each thing that an upstream can do to the gateway: run, not written down."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import orjson
from aiohttp import ClientSession, WSMsgType, web
from attrs import frozen

from streamkit import collect
from streamkit.conversation.messages import Text
from streamkit.dialects.openai_responses.socket import event, is_last, refusal
from streamkit.http_errors import decode_error
from streamkit.limits import DEFAULT_LIMITS
from streamkit.testing import source_of
from streamkit.web.source import Timeouts
from streamkit.web.upstream import Secret
from streamkit.web.upstream.value import Rest
from tests.gateway.running import NAMES, Leg, Running, behind, config_of, gateway, in_turn, leg, upstream_at
from tests.gateway.test_cancel import WINDOWS, script
from tests.gateway.test_next_on import REFUSAL, blocked, coded, ends, heard
from tests.web.evil import Fin, Hang, Play, Script
from tests.web.faults import FAULTS, WHY, good, speech, status
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


# -- an upstream with a next one ---------------------------------------------------------------------------------------


@frozen
class Seen:
    """What became of one request to a route of two upstreams."""

    asked: str  #: how often the first upstream was asked, and the second; a repeated request without an attempt counts, too
    got: str = "two"  #: the upstream whose text the client got; or the status and the kind of the error
    lost: str = ""  #: the setting whose time passed before the response; empty: none, as with a healthy first upstream


@frozen
class WithNext:
    """What the first of two upstreams does, the second one being healthy, and what becomes of each request."""

    first: Leg
    seen: Sequence[Seen]
    setting: str = ""  #: of the route or the upstream, as the page shows it
    route: Mapping[str, Any] = {}
    #: Before the request of that number: so many seconds of pause.
    pauses: Mapping[int, float] = {}


LOST_S = 0.5  #: the seconds of a setting that costs a client time
ONE, TWO = ends("stop", Text("one")), ends("stop", Text("two"), dialect="anthropic")
#: Failures further apart than this do not count as one burst.
APART = dict.fromkeys(range(1, 7), 0.21)
MOVES, RESTS, SERVES = Seen("1+1"), Seen("0+1"), Seen("1+0", "one")
SLOW, HEDGED = Seen("1+1", lost="first_byte_s"), Seen("1+1", lost="hedge_after_s")
FULL = coded(400, "context_length_exceeded", "This model's maximum context length is 128000 tokens.")
TOO_LONG, LIMITED = Seen("1+0", "400 too_large"), status(429, headers={"Retry-After": "60"})
KEYS = {"auth": "bearer", "keys": (Secret("first-key-8f31"), Secret("second-key-77b0"))}
SPENT = "input token count (1200000) exceeds the maximum number of tokens allowed (1048576)"


def faulty(*plays: Play, **values: Any) -> Leg:
    return leg(*plays, **{"timeouts": PATIENT, **values})


def listed(reason: str, first: Leg) -> WithNext:
    """A first upstream that fails for this reason, on a route that lists it."""
    setting = f'`next_on = ["default", "{reason}"]`'
    return WithNext(first, [MOVES] * 2, setting, {"next_on": ("default", reason)})


WITH_NEXT: Mapping[str, WithNext] = {
    "is healthy": WithNext(faulty(ONE), [SERVES] * 2),
    "sends no headers": WithNext(
        faulty(Script((Hang(),)), timeouts=Timeouts(connect_s=60.0, first_byte_s=LOST_S, idle_s=60.0)),
        [SLOW, SLOW, RESTS],
    ),
    "refuses connections": WithNext(faulty(FAULTS["refused"]("")), [*[MOVES] * 5, *[RESTS] * 2], pauses=APART),
    "responds with status 503": WithNext(faulty(status(503)), [*[MOVES] * 5, *[RESTS] * 2], pauses=APART),
    "closes each connection without a response": WithNext(faulty(Script((Fin(),))), [MOVES] * 2),
    "closes a connection that was kept open": WithNext(
        faulty(ONE, Script((Fin(),)), ONE), [SERVES, Seen("2+0", "one"), SERVES]
    ),
    "responds with status 429 and `Retry-After`": WithNext(faulty(LIMITED, ONE), [MOVES, RESTS]),
    "responds with status 429 to the first of two keys": WithNext(
        faulty(LIMITED, ONE, **KEYS), [Seen("2+0", "one"), SERVES], "`keys = [{ … }, { … }]`"
    ),
    "reports with OpenAI's code that the context is full": listed("context_length", faulty(FULL)),
    "reports in Anthropic's words that the context is full": listed(
        "context_length", faulty(status(400, "anthropic", message="prompt is too long"), dialect="anthropic")
    ),
    "reports in Gemini's words that the context is full": listed(
        "context_length", faulty(status(400, "gemini", message=SPENT), dialect="gemini")
    ),
    "reports that the context is full, and `next_on` does not list this reason": WithNext(faulty(FULL), [TOO_LONG] * 2),
    "sends a refusal before any output": listed("refusal", faulty(ends("refusal", REFUSAL))),
    "sends a refusal before any output, and `next_on` does not list this reason": WithNext(
        faulty(ends("refusal", REFUSAL)), [Seen("1+0", "its refusal")] * 2
    ),
    "reports a content filter with Azure's error": listed("content_filter", faulty(coded(400, "content_filter"))),
    "reports a content filter with Gemini's stop reason": listed("content_filter", faulty(blocked, dialect="gemini")),
    "sends no output": listed("no_output", faulty(ends("stop"))),
    "sends no output, and `next_on` does not list this reason": WithNext(
        faulty(ends("stop")), [Seen("1+0", "nothing")] * 2
    ),
    "sends its first byte late": WithNext(
        faulty(Script((Hang(),))), [HEDGED] * 3, "`hedge_after_s`", {"hedge_after_s": LOST_S}
    ),
    "fails, rests and recovers": WithNext(
        faulty(status(503), ONE, rest=Rest(failures=1, first_s=2.0)),
        [MOVES, RESTS, SERVES, SERVES],
        "`rest = { failures = 1, first_s = 2 }`",
        pauses={2: 2.1},
    ),
}


async def seen_with_next(fault: str, client: str, *, stream: bool) -> list[Seen]:
    """Ask a gateway with two upstreams, the first of which has this fault, one request after another."""
    row = WITH_NEXT[fault]
    clocks = {"first_byte_s": row.first.values["timeouts"].first_byte_s, **row.route}
    costs = [name for name, value in clocks.items() if value == LOST_S]  # another may pass because the machine is busy
    found, before = [], (0, 0)
    async with in_turn(row.first, leg(TWO, dialect="anthropic", timeouts=PATIENT), **row.route) as running:
        for number in range(len(row.seen)):
            await asyncio.sleep(row.pauses.get(number, 0.0))
            answer = await running.asked(client, stream=stream)
            read = await heard(answer, client, stream=stream)
            outcomes = await running.outcomes()  # the connection is kept from here on
            tried = [sum(times for (name, _), times in outcomes.items() if name == each) for each in NAMES[:2]]
            one, two = map(max, tried, running.seen)
            said = "its refusal" if REFUSAL.text in read.text + read.refusal else read.text or "nothing"
            took = (answer.ended_at or 0.0) - answer.sent_at
            found.append(
                Seen(
                    f"{one - before[0]}+{two - before[1]}",
                    said if read.status == 200 else f"{read.status} {read.kind}",
                    next((name for name in costs if one > before[0] and took >= LOST_S), ""),
                )
            )
            before = one, two
    return found


async def with_next(chosen: Choice = every) -> dict[str, dict[Case, list[Seen]]]:
    """What becomes of the requests of every client, streaming and whole; or of those cases of each row that are ``chosen``."""
    each = [(client, stream) for client in CLIENTS for stream in (True, False)]
    cases = [(fault, case) for fault in WITH_NEXT for case in chosen(fault, each)]
    at_once = asyncio.Semaphore(8)  # more would take each other's time

    async def seen(fault: str, case: Case) -> list[Seen]:
        async with at_once:
            return await seen_with_next(fault, case[0], stream=case[1])

    found: dict[str, dict[Case, list[Seen]]] = {fault: {} for fault in WITH_NEXT}
    for (fault, case), result in zip(cases, await asyncio.gather(*(seen(*each) for each in cases)), strict=True):
        found[fault][case] = result
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
    "opens no WebSocket (status 426)": (426, saying([])),
    "refuses the handshake (status 401)": (401, saying([])),
    "sends an error with status 429 instead of a response": (0, saying([_error(status=429)])),
    "sends an error without a status instead of a response": (0, saying([_error()])),
    "closes the connection before it responds": (0, _closing(1000, 0)),
    "sends an error during the response": (0, saying([*events()[:8], _error(status=429)])),
    "closes the connection during the response (code 1000)": (0, _closing(1000, 8)),
    "closes the connection during the response (code 1011)": (0, _closing(1011, 8)),
    "loses its connection during the response": (0, _breaking),
    "sends too long a message during the response": (
        0,
        saying([*events()[:8], "x" * (DEFAULT_LIMITS.event_bytes + 1)]),
    ),
    "sends nothing after the handshake": (0, saying([])),
    "stops sending during the response": (0, saying(events()[:8])),
}
SOCKET_CLOCKS = {
    "sends nothing after the handshake": {"first_byte_s": 2.0},
    "stops sending during the response": {"idle_s": 2.0},
}


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
        if window == "within the response":
            assert (await socket.receive()).type is WSMsgType.TEXT
        else:
            await asyncio.sleep(0.02)  # until the gateway has read what the upstream wrote
        if how == "closes the socket":
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
    """The same of a client that reads nothing of a long response."""
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
    ways = [(window, how) for window in WINDOWS for how in ("closes the socket", "loses its connection")]
    found = await asyncio.gather(*(departed(window, how) for window, how in ways), stalled())
    return dict(
        zip(
            [*(f"{how} while the upstream is {window}" for window, how in ways), "does not read a long response"],
            found,
            strict=True,
        )
    )
