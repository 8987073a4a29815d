"""The clients: ``python -m benchmarks.gateway.load``, a plan in JSON on standard input, what they saw on standard output.

They write and read over asyncio's transports and note when which bytes came; what is in them is looked at when all is over.
CPU and memory of the processes that are measured are read here, where it is known how far the load is.

A plan has ``groups`` of clients (see ``Group``), ``pids`` by name, and the ``window_s`` in which events and CPU are counted,
in seconds from the start.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import random
import sys
import time
from collections.abc import Mapping
from typing import Any, Final, Literal

import orjson
from attrs import define, field, frozen

from benchmarks.gateway.process import cpu_ns, rss_bytes
from benchmarks.gateway.reading import Answer, Reads, clumped, quantiles_ms
from benchmarks.gateway.script import Script

LOOK_S: Final = 0.05
PATHS: Final = {"anthropic": "/v1/messages", "openai-chat": "/v1/chat/completions"}
FAULTS_TOLD: Final = 3


@frozen(kw_only=True)
class Group:
    """Clients of one kind. The script's times are exact; the clients' beginnings are spread by a seed."""

    name: str
    port: int
    dialect: Literal["anthropic", "openai-chat"]
    script: Mapping[str, Any]
    streams: int
    spread_s: float = 0.0  #: in which all of them begin
    at_once: int = 0  #: so many at a time, each after another has ended; 0: each begins at its time
    stream: bool = True
    model: str = "{}"  #: the script's name, as this server wants it
    headers: Mapping[str, str] = field(factory=dict)


def request_bytes(group: Group, script: Script) -> bytes:
    """What a client sends."""
    body: dict[str, Any] = {
        "model": group.model.format(script),
        "stream": group.stream,
        "max_tokens": 4096,
        "messages": [{"role": "user", "content": "Say what the script says."}],
    }
    data = orjson.dumps(body)
    headers = {"Host": "127.0.0.1", "Content-Type": "application/json", "Content-Length": str(len(data))}
    if group.dialect == "anthropic":
        headers["anthropic-version"] = "2023-06-01"
    headers |= {"Connection": "close", **group.headers}
    lines = [f"POST {PATHS[group.dialect]} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode() + data


class Client(asyncio.Protocol):
    """One that reads as fast as it comes."""

    def __init__(self, request: bytes) -> None:
        self.seen = Reads()
        self.sent_ns = 0
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._request = request
        self._reads = self.seen.reads

    def connection_made(self, transport: Any) -> None:
        self.sent_ns = time.monotonic_ns()
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._reads.append((time.monotonic_ns(), data))

    def connection_lost(self, _error: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_result(None)


@define
class Done:
    """What became of one client."""

    group: Group
    script: Script
    sent_ns: int
    answer: Answer


async def ask(
    group: Group, script: Script, wait_s: float, patience_s: float, turns: contextlib.AbstractAsyncContextManager[Any]
) -> Done:
    """One client that reads to the end, when it has its turn."""
    await asyncio.sleep(wait_s)
    async with turns:
        return await _ask(group, script, patience_s)


async def _ask(group: Group, script: Script, patience_s: float) -> Done:
    client = Client(request_bytes(group, script))
    transport, _ = await asyncio.get_running_loop().create_connection(lambda: client, "127.0.0.1", group.port)
    try:
        async with asyncio.timeout(patience_s):
            await client.ended
    except TimeoutError:
        transport.abort()
    return Done(group, script, client.sent_ns, client.seen.answer(group.dialect, script))


@define
class Meters:
    """CPU and memory of other processes, while the load runs."""

    pids: Mapping[str, int]
    window_s: tuple[float, float]
    cpu: dict[str, dict[str, float]] = field(factory=dict)
    rss: dict[str, dict[str, int]] = field(factory=dict)

    async def run(self, began: float) -> None:
        """Until cancelled."""
        loop = asyncio.get_running_loop()
        start = self._cpu()
        self.rss = {name: {"before": size, "peak": size} for name, size in self._rss().items()}
        marks: list[dict[str, int]] = []
        try:
            while True:
                await asyncio.sleep(LOOK_S)
                for name, size in self._rss().items():
                    self.rss[name]["peak"] = max(size, self.rss[name]["peak"])
                if len(marks) < 2 and loop.time() - began >= self.window_s[len(marks)]:
                    self.window_s = _replaced(self.window_s, len(marks), loop.time() - began)
                    marks.append(self._cpu())
        finally:
            end = self._cpu()
            for name in self.pids:
                whole = {"whole_s": (end[name] - start[name]) / 1e9}
                self.cpu[name] = {**whole, "window_s": (marks[1][name] - marks[0][name]) / 1e9} if marks[1:] else whole

    def _cpu(self) -> dict[str, int]:
        return {name: cpu_ns(pid) for name, pid in self.pids.items()}

    def _rss(self) -> dict[str, int]:
        return {name: rss_bytes(pid) for name, pid in self.pids.items()}


def _replaced(pair: tuple[float, float], index: int, value: float) -> tuple[float, float]:
    return (value, pair[1]) if not index else (pair[0], value)


async def run(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Carry out a plan."""
    groups = [Group(**group) for group in plan["groups"]]
    letters = random.Random(plan.get("seed", 1))  # noqa: S311 - no secret
    loop = asyncio.get_running_loop()
    began = loop.time()
    meters = Meters(plan.get("pids", {}), tuple(plan.get("window_s", (0.0, 0.0))))
    metering = asyncio.create_task(meters.run(began))
    asking = []
    for group in groups:
        turns = asyncio.Semaphore(group.at_once) if group.at_once else contextlib.nullcontext()
        script = Script(**group.script, id=group.name)  # all ask for one model, as the clients of a service do
        for number in range(group.streams):
            wait_s = group.spread_s * (number + letters.random()) / group.streams
            asking.append(ask(group, script, wait_s, plan.get("patience_s", 60.0), turns))
    done = await asyncio.gather(*asking)
    elapsed = loop.time() - began
    metering.cancel()
    await asyncio.gather(metering, return_exceptions=True)
    window_ns = [int((began + at) * 1e9) for at in meters.window_s]
    return {
        "elapsed_s": elapsed,
        "cpu": meters.cpu,
        "rss": meters.rss,
        "groups": {
            group.name: told([one for one in done if one.group.name == group.name], window_ns) for group in groups
        },
    }


def told(done: list[Done], window_ns: list[int]) -> dict[str, Any]:
    """What a group of clients saw."""
    answers = [one.answer for one in done]
    faults = [answer.fault for answer in answers if answer.fault]
    times = [arrival.at_ns for answer in answers for arrival in answer.arrivals]
    first = [one.answer.first_ns - one.sent_ns for one in done if one.answer.first_ns is not None]
    return {
        "streams": len(done),
        "complete": len(done) - len(faults),
        "faults": faults[:FAULTS_TOLD],
        "events": len(times),
        "window_events": sum(window_ns[0] <= time_ns < window_ns[1] for time_ns in times),
        "seconds": (max(times) - min(one.sent_ns for one in done)) / 1e9 if times else 0.0,
        "lateness_ms": quantiles_ms(late for answer in answers for late in answer.lateness_ns),
        "gap_ms": quantiles_ms(gap for answer in answers for gap in answer.gaps_ns),
        "first_byte_ms": quantiles_ms(first),
        "clumped": clumped(answers),
    }


if __name__ == "__main__":
    gc.disable()  # no pause of its own is to look like one of what it reads from
    sys.stdout.buffer.write(orjson.dumps(asyncio.run(run(orjson.loads(sys.stdin.buffer.read())))))
