"""A client that reads at the pace a test wants and leaves when and how the test wants.

One request over a socket of its own, without a transport that reads ahead: what the test did not ask for stays in the kernel,
so the server sees a slow reader. ``receive_buffer_bytes`` makes that room small, since Linux keeps megabytes otherwise.

    async with RawClient(url) as client:
        await client.send("POST", "/v1/messages", body=…)
        await client.read_headers()
        client.leave("rst")

    answer = await ask(url, "/v1/messages", body=…)  # the whole of it at once

Source: limits.md C8, C11; the words of HTTP are h11's.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Mapping
from typing import Any, Literal, Self, TypeAlias
from urllib.parse import urlsplit

import h11
from attrs import define, field

#: How long a read may wait for the server before the test has failed.
PATIENCE_S = 10.0
READ_BYTES = 1 << 16
#: Reads at a pace are made so often.
TICK_S = 0.05

#: How the answer ended: its own end came; FIN where only FIN tells the end (HTTP/1.0), or before the end; RST; or we left.
End: TypeAlias = Literal["complete", "closed", "cut", "reset", "left"]


@define
class Answer:
    """What came back. Times are the loop's, in seconds."""

    status: int = 0
    headers: dict[str, str] = field(factory=dict)  #: names in lower case; of several with one name, joined by commas
    body: bytearray = field(factory=bytearray)  #: without the transfer coding
    reads: list[tuple[float, bytes]] = field(factory=list)  #: when which bytes of the body came, a read in a piece
    end: End | None = None
    sent_at: float = 0.0
    headers_at: float | None = None
    ended_at: float | None = None

    def json(self) -> Any:
        return json.loads(self.body)


class RawClient:
    """One connection, one request and what comes of it: in ``answer``."""

    def __init__(self, url: str, *, receive_buffer_bytes: int | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme != "http" or not parts.hostname:
            raise ValueError(f"a raw client speaks http://host:port, not {url!r}")
        self._address = (parts.hostname, parts.port or 80)
        self._prefix = parts.path.rstrip("/")
        self._socket = socket.socket()
        self._socket.setblocking(False)
        if receive_buffer_bytes is not None:  # before connecting: it bounds the window that is offered
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        self._http = h11.Connection(h11.CLIENT)
        self.answer = Answer()

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._loop.sock_connect(self._socket, self._address)
        except BaseException:
            self._socket.close()
            raise
        return self

    async def __aexit__(self, *_exc: object) -> None:
        self._socket.close()

    async def send(
        self, method: str, path: str, *, headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> None:
        """Send a request; Host and Content-Length are added."""
        named = {"host": "{}:{}".format(*self._address), "content-length": str(len(body))}
        named |= {name.lower(): value for name, value in (headers or {}).items()}
        request = h11.Request(method=method, target=self._prefix + path, headers=list(named.items()))
        parts = [self._http.send(request), self._http.send(h11.Data(body)), self._http.send(h11.EndOfMessage())]
        await self._loop.sock_sendall(self._socket, b"".join(part or b"" for part in parts))
        self.answer.sent_at = self._loop.time()

    async def send_bytes(self, data: bytes) -> None:
        """Send bytes as they are, as a request of another maker. What comes back is read as the answer to a POST."""
        if self._http.our_state is h11.IDLE:
            self._http.send(h11.Request(method="POST", target="/", headers=[("host", "x"), ("content-length", "0")]))
            self._http.send(h11.EndOfMessage())
        await self._loop.sock_sendall(self._socket, data)
        self.answer.sent_at = self._loop.time()

    async def read_headers(self) -> Answer:
        """Read until the status and the headers are there, or the connection ended before."""
        while self.answer.headers_at is None and self.answer.end is None:
            await self._read(READ_BYTES)
        return self.answer

    async def read_until(self, wanted: bytes) -> Answer:
        """Read until the body has these bytes. Raises AssertionError if the answer ends without them."""
        while wanted not in self.answer.body:
            assert self.answer.end is None, f"{self.answer.end} without {wanted!r} in {self.answer.body[-200:]!r}"
            await self._read(READ_BYTES)
        return self.answer

    async def read_to_end(self, *, pace_bytes_s: float | None = None) -> Answer:
        """Read all there is, as fast as it comes or at a pace, counted with headers and transfer coding."""
        began, read = self._loop.time(), 0
        while self.answer.end is None:
            if pace_bytes_s is None:
                await self._read(READ_BYTES)
                continue
            await asyncio.sleep(TICK_S)  # a read of what is there already lets nobody else run
            allowed = int((self._loop.time() - began) * pace_bytes_s) - read
            if allowed > 0:
                read += await self._read(min(allowed, READ_BYTES))
        return self.answer

    def leave(self, by: Literal["fin", "rst"]) -> None:
        """Close our side: politely, still able to read, or at once for both sides."""
        if by == "fin":
            self._socket.shutdown(socket.SHUT_WR)
            return
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()
        self._ended("left")

    async def _read(self, at_most: int) -> int:
        """One read of the socket; how many bytes it gave."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                data = await self._loop.sock_recv(self._socket, at_most)
        except TimeoutError:
            raise AssertionError(f"nothing came for {PATIENCE_S:g} s after {self.answer.body[-200:]!r}") from None
        except ConnectionError:
            self._ended("reset")
            return 0
        self._http.receive_data(data)
        try:
            self._take_events()
        except h11.RemoteProtocolError:
            if data:
                raise
            self._ended("cut")  # FIN before the end that the headers told
        if not data:
            self._ended("closed" if self.answer.headers_at is not None else "cut")
        return len(data)

    def _take_events(self) -> None:
        while (event := self._http.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
            if isinstance(event, h11.Response):
                self._note_headers(event)
            elif isinstance(event, h11.Data):
                self.answer.reads.append((self._loop.time(), bytes(event.data)))
                self.answer.body += event.data
            elif isinstance(event, h11.EndOfMessage):
                by_length = {"content-length", "transfer-encoding"} & self.answer.headers.keys()
                self._ended("complete" if by_length or self.answer.status in {204, 304} else "closed")
                return
            elif isinstance(event, h11.ConnectionClosed):
                return

    def _note_headers(self, event: h11.Response) -> None:
        self.answer.status, self.answer.headers_at = event.status_code, self._loop.time()
        for name, value in event.headers:
            key, text = name.decode("ascii"), value.decode("latin-1")
            self.answer.headers[key] = f"{self.answer.headers[key]}, {text}" if key in self.answer.headers else text

    def _ended(self, end: End) -> None:
        if self.answer.end is None:
            self.answer.end, self.answer.ended_at = end, self._loop.time()


async def ask(
    url: str,
    path: str,
    *,
    method: str = "POST",
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
    pace_bytes_s: float | None = None,
    receive_buffer_bytes: int | None = None,
) -> Answer:
    """One request and its answer, read to the end."""
    async with RawClient(url, receive_buffer_bytes=receive_buffer_bytes) as client:
        await client.send(method, path, headers=headers, body=body)
        return await client.read_to_end(pace_bytes_s=pace_bytes_s)
