"""Clients that leave: ``python -m benchmarks.gateway.leaving``, a plan in JSON on standard input, times on standard output.

Each asks, waits until the request is at the upstream (and, in a stream that has begun, until three events came), and leaves
with FIN or RST. The time is from there to the moment at which the upstream sees its own client go.
"""

from __future__ import annotations

import asyncio
import random
import socket
import struct
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, Literal

import orjson
from attrs import frozen

from benchmarks.gateway.load import Group, request_bytes
from benchmarks.gateway.script import Hang, Script

#: Of those who leave at once; the others have come and gone, or are still to come.
AT_ONCE: Final = 8
PATIENCE_S: Final = 10.0
#: How long they stay once the upstream has their request.
STAY_S: Final = (0.02, 0.12)


@frozen(kw_only=True)
class Case:
    """A window in which a client leaves, and how."""

    name: str
    stream: bool
    hang: Hang  #: what the upstream says before; empty: a stream without an end
    by: Literal["FIN", "RST"]


_WINDOWS: Final[tuple[tuple[str, bool, Hang], ...]] = (
    ("a stream, before headers", True, "headers"),
    ("a stream, before the first event", True, "event"),
    ("a stream, mid-stream", True, ""),
    ("a whole answer, before headers", False, "headers"),
    ("a whole answer, mid-body", False, "body"),
)
CASES: Final = tuple(
    Case(name=name, stream=stream, hang=hang, by=by) for name, stream, hang in _WINDOWS for by in ("FIN", "RST")
)


async def trial(case: Case, group: Group, upstream: int, request_id: str, stay_s: float) -> float | None:
    """Milliseconds from the client's leaving to the upstream's seeing it; None if it never did."""
    script = Script(id=request_id, events=100_000, gap_us=20_000 if not case.hang else 0, hang=case.hang)
    if case.hang:
        script = Script(id=request_id, hang=case.hang)
    loop = asyncio.get_running_loop()
    sock = socket.socket()
    sock.setblocking(False)
    try:
        await loop.sock_connect(sock, ("127.0.0.1", group.port))
        await loop.sock_sendall(sock, request_bytes(group, script, stream=case.stream))
        if await _moment(upstream, "came", request_id) is None:
            return None
        seen = b""
        while not case.hang and b"@2:" not in seen:
            seen += await loop.sock_recv(sock, 65536)
        await asyncio.sleep(stay_s)
        if case.by == "RST":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            left_ns = time.monotonic_ns()
            sock.close()
        else:
            left_ns = time.monotonic_ns()
            sock.shutdown(socket.SHUT_WR)
        saw_ns = await _moment(upstream, "left", request_id)
        return None if saw_ns is None else (saw_ns - left_ns) / 1e6
    finally:
        sock.close()


async def _moment(upstream: int, what: str, request_id: str) -> int | None:
    """When the upstream saw a request come, or its client leave."""
    reader, writer = await asyncio.open_connection("127.0.0.1", upstream)
    try:
        writer.write(f"GET /{what}?{request_id} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        async with asyncio.timeout(PATIENCE_S):
            await reader.readuntil(b"\r\n\r\n")
            return int(await reader.read(100))
    except TimeoutError:
        return None
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def run(plan: Mapping[str, Any]) -> dict[str, list[float | None]]:
    """The times of each case, its trials among those of the others."""
    letters = random.Random(plan.get("seed", 1))  # noqa: S311 - no secret
    group = Group(name="leaving", port=plan["port"], dialect="anthropic", script={}, streams=0)
    turns = asyncio.Semaphore(AT_ONCE)
    jobs = [(case, number) for case in CASES for number in range(plan["trials"])]
    letters.shuffle(jobs)

    async def one(case: Case, number: int) -> tuple[str, float | None]:
        async with turns:
            name = f"{case.name}, {case.by}"
            request_id = f"{CASES.index(case)}-{number}"
            return name, await trial(case, group, plan["upstream"], request_id, letters.uniform(*STAY_S))

    times: dict[str, list[float | None]] = {f"{case.name}, {case.by}": [] for case in CASES}
    for name, time_ms in await asyncio.gather(*(one(*job) for job in jobs)):
        times[name].append(time_ms)
    return times


if __name__ == "__main__":
    sys.stdout.buffer.write(orjson.dumps(asyncio.run(run(orjson.loads(sys.stdin.buffer.read())))))
