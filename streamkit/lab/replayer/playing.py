"""One recorded answer, written to a client as it came.

Everything has a deadline from when the request was there, ``start + t / speed``: sleeping the gaps instead drifts, 90 ms in
400 reads. Reads that are due together are written 0.1 ms apart, since the client's kernel would join them otherwise. Each
write waits until the kernel has it.

The end is what it was. A body that was cut ends with the connection: inside its chunks, or short of its length. Where a
time-out was recorded there is silence, until the client leaves. An end of the recorder's own (it left, it was shut down, the
file was full) is played as a cut.

Source: observe.md O27, F45, F50; RFC 9110 §7.6.1 (hop by hop); RFC 9112 §6.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Sequence
from typing import Final

from aiohttp import hdrs, web

from streamkit.lab.recording import Read, RecordedResponse, Recording

#: Between two reads: written closer together, 72 of 300 boundaries were lost over loopback.
APART_S: Final = 0.000_1
#: What belongs to a connection, and what aiohttp writes in an answer where nobody did.
HOP_BY_HOP: Final = frozenset({
    "connection", "keep-alive", "proxy-authenticate", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
})  # fmt: skip
ADDED: Final = (hdrs.CONTENT_TYPE, hdrs.DATE, hdrs.SERVER)
#: The headers of a recorded answer, names in lower case.
RECORDED: Final = web.ResponseKey("streamkit-recorded-headers", dict[str, str])
_RESET: Final = struct.pack("ii", 1, 0)


async def keep_recorded_headers(app: web.Application) -> None:
    """Let replayed answers have the headers that were recorded and no others: a handler of ``on_startup``.

    By then whoever serves the application has added its own handlers, which this one comes behind.
    """
    app.on_response_prepare.append(_as_recorded)


async def _as_recorded(_request: web.Request, response: web.StreamResponse) -> None:
    if RECORDED in response:
        for name in ADDED:
            response.headers.pop(name, None)
            if name.lower() in response[RECORDED]:
                response.headers[name] = response[RECORDED][name.lower()]


class Schedule:
    """When what is due. ``start`` is on the event loop's clock, in seconds; a speed of 0 waits for nothing."""

    def __init__(self, start: float, speed: float) -> None:
        self._start, self._speed = start, speed
        self._time = asyncio.get_running_loop().time
        self._wrote = 0.0

    async def until(self, t: float) -> None:
        """Wait until what came ``t`` seconds after the request is due, and apart from what was written last."""
        wait = self._start + t / self._speed - self._time() if self._speed else 0.0
        if wait > 0:
            await asyncio.sleep(wait)
        while self._time() < self._wrote + APART_S:  # noqa: ASYNC110 - a timer of asyncio's takes a whole millisecond
            await asyncio.sleep(0)

    def wrote(self) -> None:
        self._wrote = self._time()


async def play(
    request: web.Request, recording: Recording, reads: Sequence[Read], schedule: Schedule, silence_s: float
) -> web.StreamResponse:
    """Answer a request with a recording, in these reads of it. A silence lasts ``silence_s`` seconds at most."""
    transport = request.transport
    response: web.StreamResponse = web.Response()
    if transport is None:  # the client left
        return response
    transport.set_write_buffer_limits(0)
    try:
        if recording.response is not None:
            response = await _begin(request, recording, recording.response, schedule)
            for read in reads:
                await schedule.until(read.t)
                await response.write(read.data)
                await request.writer.drain()
                schedule.wrote()
        if recording.end is not None:
            await schedule.until(recording.end.t)
    except ConnectionError:  # it left meanwhile
        return response
    kind, _, _ = recording.ending.partition(":")
    if kind == "whole":
        return response  # aiohttp writes its end
    if kind == "timeout":
        await asyncio.sleep(silence_s)
    if kind == "reset":
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        transport.abort()
    transport.close()
    return response


async def _begin(
    request: web.Request, recording: Recording, recorded: RecordedResponse, schedule: Schedule
) -> web.StreamResponse:
    headers = {name: value for name, value in recorded.headers.items() if name not in HOP_BY_HOP}
    if not _length_is_true(recording, headers.get("content-length")):
        headers.pop("content-length", None)
    response = web.StreamResponse(status=recorded.status, headers=headers)
    response[RECORDED] = headers
    await schedule.until(recorded.t)
    await response.prepare(request)
    schedule.wrote()
    return response


def _length_is_true(recording: Recording, length: str | None) -> bool:
    """Whether the body ends as a recorded length says: at it, or short of it where the recorded one was cut."""
    if length is None or not length.isdecimal():
        return False
    size = sum(len(read.data) for read in recording.reads)
    return size == int(length) if recording.ending == "whole" else size < int(length)
