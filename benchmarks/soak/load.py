"""Clients of every dialect, well-behaved and not, and an upstream that answers and fails as the model's name says.

A model is named ``UPSTREAM.SCENARIO``: the gateway sends it to the upstream of that dialect, and that plays the scenario.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import h11
import orjson
from attrs import define, field, frozen

from streamkit import collect, decode_response
from streamkit.conversation.messages import Text
from streamkit.dialects import DIALECTS
from streamkit.http_errors import decode_error
from streamkit.testing import source_of
from tests.gateway.running import BASES, asking
from tests.web.evil import EvilUpstream, Play, Received, Script
from tests.web.faults import FAULTS, TEXT, asks_for_stream, good, speech, whole
from tests.web.raw_client import RawClient

CLIENTS: Final = ("openai-chat", "openai-responses", "anthropic", "ollama", "gemini")
#: A request of AG-UI or of the AI SDK names no model, and so no scenario.
UPSTREAMS: Final = tuple(sorted(DIALECTS.keys() - {"ag-ui", "ai-sdk"}))
#: Those that have their own door are other servers: a port that nobody listens at, say.
DOORS: Final = ("refused", "never connects", "untrusted certificate", "no TLS")
#: Scenarios that take the gateway's timeouts to end: seldom, so that they do not fill the run.
SILENT: Final = ("silence before headers", "silence mid-stream")
LARGE_REPEATS: Final = 400
PACE_BYTES_S: Final = 100_000
#: Between two requests of a client, at most: the machine is to be busy, not full.
THINK_S: Final = 1.5
NAMED: Final = re.compile(r"([a-z-]+)\.([a-z0-9-]+)")

Outcome: TypeAlias = str


def slug(scenario: str) -> str:
    """A scenario's name as a part of a model's."""
    return scenario.lower().replace(" ", "-")


class Upstream(EvilUpstream):
    """Plays what the model's name says, and remembers nothing, since it serves for hours."""

    def __init__(self) -> None:
        super().__init__(Script())

    def take(self, request: Received) -> Script:
        name = NAMED.search(request.path.rpartition("/models/")[2] if "/models/" in request.path else request.path)
        if name is None or name[1] not in DIALECTS:
            name = NAMED.search(request.json()["model"])
        if name is None:
            raise ValueError(f"no scenario is named by {request.target}")
        play = SCENARIOS[name[2]](name[1])
        self.requests.clear()
        self.garbage.clear()
        return play if isinstance(play, Script) else play(request)


def _sound(dialect: str, **how: Any) -> Callable[[Received], Script]:
    return lambda request: good(dialect, **how) if asks_for_stream(request, dialect) else whole(dialect)


def _large(dialect: str) -> Callable[[Received], Script]:
    """The same words many times over: more than the buffers on the way to a slow reader hold."""
    chunks = speech(dialect)
    index = next(number for number, data in enumerate(chunks) if b"cold" in data and b"Oslo" not in data)
    return _sound(dialect, chunks=[*chunks[:index], *[chunks[index]] * LARGE_REPEATS, *chunks[index + 1 :]])


def _faulty(fault: str) -> Callable[[str], Play]:
    return lambda dialect: lambda request: FAULTS[fault](dialect, whole=not asks_for_stream(request, dialect))


SCENARIOS: Final[Mapping[str, Callable[[str], Play]]] = {
    "sound": _sound,
    "paced": lambda dialect: _sound(dialect, delay_s=0.02),
    "large": _large,
    **{slug(fault): _faulty(fault) for fault in FAULTS if fault not in DOORS},
}


class Wrong(Exception):
    """An answer was not what it had to be."""


def _must(held: bool, otherwise: str) -> None:
    if not held:
        raise Wrong(otherwise)


@frozen
class Kind:
    """A way in which clients behave. ``weight``: how often, among the others."""

    name: str
    weight: int
    run: Callable[[Load, random.Random], Any]


@define
class Load:
    """Clients that ask again and again, until they are told to pause. ``outcomes`` counts how each request went."""

    url: str
    seed: int
    outcomes: Counter[tuple[str, Outcome]] = field(factory=Counter)
    requests: int = 0
    _go: asyncio.Event = field(factory=asyncio.Event)
    _busy: int = 0
    _idle: asyncio.Event = field(factory=asyncio.Event)

    async def client(self, number: int) -> None:
        """One client, for ever."""
        letters = random.Random(f"{self.seed}-{number}")  # noqa: S311 - no secret
        while True:
            await self._go.wait()
            kind = letters.choices(KINDS, [one.weight for one in KINDS])[0]
            self._busy += 1
            self._idle.clear()
            try:
                outcome = await kind.run(self, letters)
            except (Wrong, AssertionError, OSError, h11.RemoteProtocolError) as error:
                outcome = f"WRONG: {type(error).__name__}: {str(error)[:120]}"
            finally:
                self._busy -= 1
                if not self._busy:
                    self._idle.set()
            self.requests += 1
            self.outcomes[kind.name, outcome] += 1
            await asyncio.sleep(letters.uniform(0, THINK_S))

    def go(self) -> None:
        self._go.set()

    async def pause(self) -> None:
        """No new requests; returns when the last answer is through."""
        self._go.clear()
        if self._busy:
            await self._idle.wait()

    @property
    def wrong(self) -> dict[str, int]:
        """Answers that were not what they had to be."""
        return {f"{kind}: {outcome}": n for (kind, outcome), n in self.outcomes.items() if outcome.startswith("WRONG")}


def _asked(letters: random.Random, scenario: str, *, stream: bool) -> tuple[str, str, bytes]:
    client, upstream = letters.choice(CLIENTS), letters.choice(UPSTREAMS)
    path, body = asking(client, stream=stream, tools=True, model=f"{upstream}.{slug(scenario)}")
    return client, path, orjson.dumps(body)


async def _read_whole(load: Load, letters: random.Random, scenario: str, **how: Any) -> Outcome:
    """A sound answer: all of it has to come, as the client's dialect reads it."""
    stream = scenario != "sound" or letters.random() < 0.7
    client, path, body = _asked(letters, scenario, stream=stream)
    async with RawClient(load.url, receive_buffer_bytes=how.get("room_bytes")) as raw:
        await raw.send("POST", path, body=body)
        answer = await raw.read_to_end(pace_bytes_s=how.get("pace_bytes_s"))
    _must(answer.end == "complete", f"{client}: {answer.end}")
    _must(answer.status == 200, f"{client}: {answer.status} {bytes(answer.body[:200])!r}")
    clean, text = await _read(bytes(answer.body), client, stream=stream)
    said = text if scenario != "large" else re.sub(r"(cold )+", "cold ", text)
    _must(clean, f"{client}: not clean: {bytes(answer.body[-200:])!r}")
    _must(said == TEXT, f"{client}: another text: {said[:100]!r}")
    return "the whole response arrived"


async def _read(body: bytes, client: str, *, stream: bool) -> tuple[bool, str]:
    """Whether an answer is whole, and its text, as a client of this dialect reads it."""
    if stream:
        read = await collect(source_of([body]), client)
        return read.clean, read.text
    response = decode_response(body, client)
    parts = response.choices[0].parts if response.choices else []
    return response.clean, "".join(part.text for part in parts if isinstance(part, Text))


async def _normal(load: Load, letters: random.Random) -> Outcome:
    return await _read_whole(load, letters, "sound")


async def _paced(load: Load, letters: random.Random) -> Outcome:
    return await _read_whole(load, letters, "paced")


async def _slow(load: Load, letters: random.Random) -> Outcome:
    return await _read_whole(load, letters, "large", pace_bytes_s=PACE_BYTES_S, room_bytes=4096)


async def _failing(load: Load, letters: random.Random, faults: tuple[str, ...] = ()) -> Outcome:
    """An upstream that fails: an error has to come, in the status or in the stream, and nothing that looks whole."""
    fault = letters.choice(faults or tuple(name for name in FAULTS if name not in (*DOORS, *SILENT)))
    stream = fault == "error mid-stream" or letters.random() < 0.7
    client, path, body = _asked(letters, fault, stream=stream)
    async with RawClient(load.url) as raw:
        await raw.send("POST", path, body=body)
        answer = await raw.read_to_end()
    # the body of a stream that failed has no end in some dialects, so that the connection is closed without it
    ends = {"complete", "cut"} if stream and answer.status == 200 else {"complete"}
    _must(answer.end in ends, f"{fault}: {answer.end}")
    if answer.status != 200:
        decode_error(answer.status, bytes(answer.body), client, answer.headers)
        return "an error status"
    clean, _ = await _read(bytes(answer.body), client, stream=stream)
    _must(not clean, f"{fault}: looks whole")
    return "an error in the stream"


async def _silent(load: Load, letters: random.Random) -> Outcome:
    return await _failing(load, letters, SILENT)


async def _leaving(load: Load, letters: random.Random) -> Outcome:
    """A client that leaves: before the headers, behind them, or in the middle; with FIN or RST."""
    _, path, body = _asked(letters, "paced", stream=True)
    when = letters.choice(("before the headers", "after the headers", "in the middle"))
    async with RawClient(load.url) as raw:
        await raw.send("POST", path, body=body)
        if when != "before the headers":
            await raw.read_headers()
        if when == "in the middle":
            await raw.read_until(b"cold")
        raw.leave(letters.choice(("fin", "rst")))
        if raw.answer.end is None:
            await asyncio.sleep(letters.random() * 0.05)
    return f"the client left {when} of the response"


async def _stalling(load: Load, letters: random.Random) -> Outcome:
    """A client that reads nothing for a while, and goes."""
    _, path, body = _asked(letters, "large", stream=True)
    async with RawClient(load.url, receive_buffer_bytes=4096) as raw:
        await raw.send("POST", path, body=body)
        await asyncio.sleep(letters.uniform(0.2, 1.5))
        raw.leave("rst")
    return "the client left without reading"


_BAD: Final = (
    b"{", b"[]", b"{}", b'{"model":"no-such.model","messages":[]}', b'{"model":1}', b"\xff\xfe", b"[" * 500,
    b'{"model":"openai-chat.sound","messages":5,"input":5,"contents":5}',
)  # fmt: skip


async def _bad(load: Load, letters: random.Random) -> Outcome:
    """Requests that nobody can answer: a status from 400 on, and never 500."""
    path = asking(letters.choice(CLIENTS))[0] if letters.random() < 0.8 else "/no/such/path"
    async with RawClient(load.url) as raw:
        await raw.send("POST", path, body=letters.choice(_BAD))
        answer = await raw.read_to_end()
    _must(400 <= answer.status < 500, f"{path}: {answer.status}")
    return f"refused with status {answer.status}"


async def _half(load: Load, letters: random.Random) -> Outcome:
    """A request that stops in its headers or in its body."""
    head = b"POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n{"
    async with RawClient(load.url) as raw:
        await raw.send_bytes(head[: letters.randrange(1, len(head))])
        await asyncio.sleep(letters.random() * 0.5)
        raw.leave("rst")
    return "the client left before the end of the request"


KINDS: Final = (
    Kind("normal responses", 40, _normal),
    Kind("responses with pauses", 15, _paced),
    Kind("slow readers", 4, _slow),
    Kind("upstreams that fail", 20, _failing),
    Kind("upstreams that fall silent", 1, _silent),
    Kind("clients that leave", 10, _leaving),
    Kind("clients that stall", 4, _stalling),
    Kind("invalid requests", 10, _bad),
    Kind("incomplete requests", 4, _half),
)


def configuration(upstream: str, doors: Mapping[str, str]) -> str:
    """The gateway's: an upstream for each dialect, all at one address, and one for each door that is shut."""
    lines = ["[server]", "port = 0", "workers = 2", "grace_s = 1.0", "keep_alive_s = 1.0"]
    timeouts = "timeouts = { connect_s = 1.0, first_byte_s = 2.0, idle_s = 2.0 }"
    for name in UPSTREAMS:
        base = upstream + BASES.get(name, "")
        lines += [f"[upstreams.{name}]", f'dialect = "{name}"', f'base_url = "{base}"', 'auth = "none"', timeouts]
    for name, url in doors.items():
        lines += [f"[upstreams.{name}]", 'dialect = "openai-chat"', f'base_url = "{url}/v1"', 'auth = "none"', timeouts]
    for name in UPSTREAMS:
        # a fallback that is shut, so that the attempts' own connections are part of what is watched
        first = [f'"{door}"' for door in doors] if name == "mistral" else []
        to = ", ".join([*first, f'"{name}"'])
        lines += ["[[routes]]", f'models = ["{name}.*"]', f"to = [{to}]", "retries = 0"]
    return "\n".join(lines) + "\n"
