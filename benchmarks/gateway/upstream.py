"""The model behind everything that is measured: ``python -m benchmarks.gateway.upstream``; prints its port.

It speaks as little HTTP as aiohttp and Node need, over asyncio's transports, so that it costs less than what it feeds. Each
event is a write of its own, at its time by the schedule, never by the one before. ``GET /came?id`` and ``GET /left?id`` answer
once the request with that id is here, and once its client has gone, with the moment in nanoseconds of CLOCK_MONOTONIC.
"""

from __future__ import annotations

import asyncio
import gc
import random
import socket
import time
from collections.abc import Iterator
from typing import Any, Final

import orjson

from benchmarks.gateway.script import KEY_LIKE, Script

#: Of a stream that nobody takes the system holds so much, so that hundreds of them fit.
SEND_BYTES: Final = 256 * 1024
#: Events in a row from one connection that sends as fast as it can, before others have their turn.
TURN: Final = 16

_CHUNK: Final = (
    '{"id":"chatcmpl-Bench0123456789","object":"chat.completion.chunk","created":1790000000,"model":"bench-1",'
    '"service_tier":"default","system_fingerprint":"fp_0123456789","choices":[%s]%s}'
)
_HEAD: Final = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nCache-Control: no-cache\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)
_LETTERS: Final = random.Random(6)  # noqa: S311 - no secret
_PADS: Final = ["".join(_LETTERS.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=4 + n)) for n in range(16)]


def _framed(data: str) -> bytes:
    """An event, as a chunk of the transfer coding."""
    event = f"data: {data}\n\n".encode()
    return b"%x\r\n%b\r\n" % (len(event), event)


def _delta(delta: str, number: int, finish: str = "null") -> bytes:
    """A chunk as OpenAI writes it, with the random member that is to hide its length."""
    choice = f'{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":{finish}}}'
    return _framed(_CHUNK % (choice, f',"usage":null,"obfuscation":"{_PADS[number % len(_PADS)]}"'))


_ROLE: Final = _delta('{"role":"assistant","content":"","refusal":null}', 0)
_USAGE: Final = '"usage":{"prompt_tokens":11,"completion_tokens":%d,"total_tokens":%d}'


def _ending(events: int) -> bytes:
    usage = _framed(_CHUNK % ("", "," + _USAGE % (events, events + 11)))
    return _delta("{}", 1, '"stop"') + usage + _framed("[DONE]") + b"0\r\n\r\n"


def _whole(script: Script) -> bytes:
    message = f'{{"role":"assistant","content":"{script.text}","refusal":null}}'
    choice = f'{{"index":0,"message":{message},"logprobs":null,"finish_reason":"stop"}}'
    body = _CHUNK.replace(".chunk", "") % (choice, "," + _USAGE % (script.events, script.events + 11))
    return _answer(body.encode())


def _answer(body: bytes, status: bytes = b"200 OK") -> bytes:
    head = b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    return head % (status, len(body)) + body


def _refusal(words: int) -> bytes:
    error = {"message": f"no such thing: {KEY_LIKE * words}", "type": "invalid_request_error"}
    return _answer(orjson.dumps({"error": error}), b"400 Bad Request")


class Seen:
    """When requests came, and when their clients went: futures of nanoseconds, by id."""

    def __init__(self) -> None:
        self._moments: dict[tuple[str, str], asyncio.Future[int]] = {}

    def moment(self, what: str, request: str) -> asyncio.Future[int]:
        if (what, request) not in self._moments:
            self._moments[what, request] = asyncio.get_running_loop().create_future()
        return self._moments[what, request]

    def note(self, what: str, request: str) -> None:
        moment = self.moment(what, request)
        if not moment.done():
            moment.set_result(time.monotonic_ns())


class Connection(asyncio.Protocol):
    """One client; one request at a time."""

    def __init__(self, seen: Seen) -> None:
        self._seen = seen
        self._loop = asyncio.get_running_loop()
        self._unread = bytearray()
        self._script: Script | None = None  # what is being said
        self._timer: asyncio.Handle | None = None
        self._paused = False
        self._last = False  # the client wants no other answer by this connection

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._unread += data
        for path, body in self._requests():
            if path.startswith(("/came?", "/left?")):
                moment = self._seen.moment(path[1:5], path[6:])
                moment.add_done_callback(lambda when: self._transport.write(_answer(b"%d" % when.result())))
            else:
                self._begin(orjson.loads(body))

    def _requests(self) -> Iterator[tuple[str, bytes]]:
        while (end := self._unread.find(b"\r\n\r\n")) >= 0:
            head = self._unread[:end].decode("latin-1").lower().split("\r\n")
            lengths = [line[15:] for line in head if line.startswith("content-length:")]
            if not lengths and "transfer-encoding: chunked" in head:
                raise ValueError("this upstream reads requests with a length only")
            behind = end + 4 + int(lengths[0] if lengths else 0)
            if len(self._unread) < behind:
                return
            body = bytes(self._unread[end + 4 : behind])
            del self._unread[:behind]
            self._last = "connection: close" in head
            yield head[0].split(" ")[1], body

    def _begin(self, request: dict[str, Any]) -> None:
        script = self._script = Script.named(request["model"])
        self._seen.note("came", script.id)
        if script.hang == "headers":
            return
        if script.refusal:
            self._transport.write(_refusal(script.refusal))
            self._script = None
            self._end()
        elif not request.get("stream"):
            body = _whole(script)
            self._transport.write(body[: len(body) // 2] if script.hang == "body" else body)
            self._script = script if script.hang else None
            self._end()
        elif script.hang == "event":
            self._transport.write(_HEAD)
        else:
            self._number, self._began = 0, self._loop.time()
            self._transport.write(_HEAD + _ROLE)
            self._say()

    def _say(self) -> None:
        """Say what is due, and set the timer for what is next."""
        script = self._script
        if script is None:
            return
        gap_s, last = script.gap_us / 1e6, script.events
        if not gap_s:
            last = min(last, self._number + TURN)
        while self._number < last and not (self._paused and not gap_s):
            due = self._began + self._number * gap_s if gap_s else self._loop.time()
            if due > self._loop.time():
                self._timer = self._loop.call_at(due, self._say)
                return
            text = f"@{self._number}:{int(due * 1e9)}@{script.prose(self._number)}"
            self._transport.write(_delta(f'{{"content":"{text}"}}', self._number))
            self._number += 1
        if self._number == script.events:
            self._script = self._timer = None
            self._transport.write(_ending(script.events))
            self._end()
        elif not self._paused:
            self._timer = self._loop.call_soon(self._say)

    def _end(self) -> None:
        if self._last and self._script is None:
            self._transport.close()

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        if self._script is not None and not self._script.gap_us and not self._script.hang:
            self._say()

    def eof_received(self) -> None:
        self._gone()

    def connection_lost(self, _error: Exception | None) -> None:
        self._gone()

    def _gone(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._script is not None:
            self._seen.note("left", self._script.id)
        self._script = None


async def main() -> None:
    seen = Seen()
    listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)  # what is accepted inherits it
    server = await asyncio.get_running_loop().create_server(lambda: Connection(seen), sock=listening)
    gc.disable()  # no pause of its own is to look like one of what it feeds
    print(listening.getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
