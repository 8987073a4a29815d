"""Write one recorded response to a client, with the recorded reads and times.

Each write has a deadline that counts from the request, ``start + t / speed``. Sleeping between reads would drift: by 90 ms in
400 reads. Reads that are due together are written 0.1 ms apart, since the client's kernel would join them otherwise. Each
write waits until the kernel has taken the bytes.

The end is as recorded. If a body was cut, the connection closes inside a chunked body, or before the stated length. For a
recorded timeout nothing is sent until the client leaves. An end that the recorder caused is played like a cut: the recording
client left, the recorder was shut down, or the file was full.

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

#: Seconds to wait between two writes, so that the client receives them as two reads. With a shorter time, 72 of 300 boundaries
#: between reads were lost over loopback.
APART_S: Final = 0.000_1
#: Headers of one connection, and headers that aiohttp adds to a response that lacks them.
HOP_BY_HOP: Final = frozenset({
    "connection", "keep-alive", "proxy-authenticate", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
})  # fmt: skip
ADDED: Final = (hdrs.CONTENT_TYPE, hdrs.DATE, hdrs.SERVER)
#: The headers of the recorded response, with names in lower case.
RECORDED: Final = web.ResponseKey("streamkit-recorded-headers", dict[str, str])
_RESET: Final = struct.pack("ii", 1, 0)


async def keep_recorded_headers(app: web.Application) -> None:
    """Give replayed responses the recorded headers and no others. A handler for ``on_startup``.

    It must run at startup: only then is its response handler after those that the application's server added.
    """
    app.on_response_prepare.append(_as_recorded)


async def _as_recorded(_request: web.Request, response: web.StreamResponse) -> None:
    if RECORDED in response:
        for name in ADDED:
            response.headers.pop(name, None)
            if name.lower() in response[RECORDED]:
                response.headers[name] = response[RECORDED][name.lower()]


class Schedule:
    """Deadlines of one response. ``start`` is in seconds on the event loop's clock. At speed 0 nothing waits."""

    def __init__(self, start: float, speed: float) -> None:
        self._start, self._speed = start, speed
        self._time = asyncio.get_running_loop().time
        self._wrote = 0.0

    async def until(self, t: float) -> None:
        """Wait until a read recorded ``t`` seconds after the request is due, and ``APART_S`` after the last write."""
        wait = self._start + t / self._speed - self._time() if self._speed else 0.0
        if wait > 0:
            await asyncio.sleep(wait)
        while self._time() < self._wrote + APART_S:  # noqa: ASYNC110 - an asyncio timer would wait a whole millisecond
            await asyncio.sleep(0)

    def wrote(self) -> None:
        self._wrote = self._time()


async def play(
    request: web.Request, recording: Recording, reads: Sequence[Read], schedule: Schedule, silence_s: float
) -> web.StreamResponse:
    """Answer a request with a recording, split into ``reads``. A recorded timeout is silent for ``silence_s`` at most."""
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
    except ConnectionError:  # the client left during the response
        return response
    kind, _, _ = recording.ending.partition(":")
    if kind == "whole":
        return response  # a complete body: aiohttp writes its end
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
    """Return whether a recorded ``Content-Length`` fits: equal to the body's size, or larger if the body was cut."""
    if length is None or not length.isdecimal():
        return False
    size = sum(len(read.data) for read in recording.reads)
    return size == int(length) if recording.ending == "whole" else size < int(length)
