"""A server on loopback that answers as it is told and keeps what it was sent, byte for byte where that counts."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

from attrs import define, field

Answer: TypeAlias = Callable[["Recorder", asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@define
class Sent:
    """One request as it stood on the wire."""

    method: str
    path: str
    headers: dict[str, str]  #: names in lower case
    body: bytes
    names: list[str]  #: in lower case, repeated ones too


@define
class Recorder:
    url: str = ""
    sent: list[Sent] = field(factory=list)
    connections: int = 0
    asked: asyncio.Event = field(factory=asyncio.Event)  #: a request came
    left: asyncio.Event = field(factory=asyncio.Event)  #: a client closed its connection

    @property
    def last(self) -> Sent:
        return self.sent[-1]

    def keep(self, sent: Sent) -> None:
        self.sent.append(sent)
        self.asked.set()


async def read_request(reader: asyncio.StreamReader) -> Sent | None:
    """The next request of a connection; None at its end."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
    except asyncio.IncompleteReadError:
        return None
    line, *fields = head.rstrip().split("\r\n")
    pairs = [(name.lower(), value.strip()) for name, _, value in (each.partition(":") for each in fields)]
    headers = dict(pairs)
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    method, path, _ = line.split(" ")
    return Sent(method, path, headers, body, [name for name, _ in pairs])


def answer(raw: bytes, *, close: bool = False) -> Answer:
    """Answers each request with these bytes."""

    async def answered(recorder: Recorder, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (sent := await read_request(reader)) is not None:
            recorder.keep(sent)
            writer.write(raw)
            await writer.drain()
            if close:
                return
        recorder.left.set()

    return answered


def reply(status: int, body: bytes = b"", **headers: str) -> bytes:
    """A whole HTTP answer. Names of headers have ``_`` for ``-``."""
    fields = {"content-length": str(len(body)), **{name.replace("_", "-"): value for name, value in headers.items()}}
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items() if value)
    return f"HTTP/1.1 {status} Any\r\n{lines}\r\n".encode() + body


async def silence(recorder: Recorder, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Reads the request and says nothing until the client leaves."""
    sent = await read_request(reader)
    if sent is not None:
        recorder.keep(sent)
        await reader.read()
    recorder.left.set()


@asynccontextmanager
async def serving(answered: Answer, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[Recorder]:
    recorder = Recorder()
    tasks: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        recorder.connections += 1
        try:
            await answered(recorder, reader, writer)
        except ConnectionError:
            recorder.left.set()
        finally:
            writer.close()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(connected(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls)
    try:
        recorder.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield recorder
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
