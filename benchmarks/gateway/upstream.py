"""The model behind everything that is measured: ``python -m benchmarks.gateway.upstream``; prints its port.

It speaks as little HTTP as aiohttp and Node need, over asyncio's transports, so that it costs less than what it feeds. Each
event is a write of its own, at its time by the schedule, never by the one before.
"""

from __future__ import annotations

import asyncio
import gc
import random
import socket
from collections.abc import Iterator
from typing import Any, Final

import orjson

from benchmarks.gateway.script import Script

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


def _whole(script: Script, now: float) -> bytes:
    """An answer in one body, with its length."""
    text = "".join(f"@{number}:{int(now * 1e9)}@{script.prose(number)}" for number in range(script.events))
    message = f'{{"role":"assistant","content":"{text}","refusal":null}}'
    choice = f'{{"index":0,"message":{message},"logprobs":null,"finish_reason":"stop"}}'
    body = (_CHUNK % (choice, "," + _USAGE % (script.events, script.events + 11))).replace(".chunk", "", 1).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


class Connection(asyncio.Protocol):
    """One client; one request at a time."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._unread = bytearray()
        self._timer: asyncio.Handle | None = None
        self._last = False  # the client wants no other answer by this connection

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._unread += data
        for request in self._requests():
            self._script = Script.named(request["model"])
            self._number, self._began = 0, self._loop.time()
            if request.get("stream"):
                self._transport.write(_HEAD + _ROLE)
                self._say()
            else:
                self._transport.write(_whole(self._script, self._began))
                self._end()

    def _requests(self) -> Iterator[dict[str, Any]]:
        while (end := self._unread.find(b"\r\n\r\n")) >= 0:
            head = self._unread[:end].decode("latin-1").lower().split("\r\n")
            lengths = [line[15:] for line in head if line.startswith("content-length:")]
            if not lengths:
                raise ValueError("this upstream reads requests with a length only")
            after = end + 4 + int(lengths[0])
            if len(self._unread) < after:
                return
            body = bytes(self._unread[end + 4 : after])
            del self._unread[:after]
            self._last = "connection: close" in head
            yield orjson.loads(body)

    def _say(self) -> None:
        """Say what is due, and set the timer for what is next."""
        while self._number < self._script.events:
            due = self._began + self._number * self._script.gap_us / 1e6
            if due > self._loop.time():
                self._timer = self._loop.call_at(due, self._say)
                return
            text = f"@{self._number}:{int(due * 1e9)}@{self._script.prose(self._number)}"
            self._transport.write(_delta(f'{{"content":"{text}"}}', self._number))
            self._number += 1
        self._transport.write(_ending(self._script.events))
        self._end()

    def _end(self) -> None:
        if self._last:
            self._transport.close()

    def connection_lost(self, _error: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()


async def main() -> None:
    # asyncio sets TCP_NODELAY only where the socket names its protocol; without it an event waits until the last one is
    # acknowledged, for up to 40 ms
    listening = socket.socket(proto=socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    server = await asyncio.get_running_loop().create_server(Connection, sock=listening, backlog=1024)
    gc.disable()  # no pause of its own is to look like one of what it feeds
    print(listening.getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
