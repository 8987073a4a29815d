"""An HTTP proxy on loopback that keeps what it was asked, and opens tunnels to where it is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from attrs import define, field

from tests.web.upstream.recorder import Recorder, Sent, read_request, reply, serving


@define
class Proxy:
    recorder: Recorder
    #: Answers a request instead of the place that it asks for.
    refuse: Callable[[Sent], bytes | None]
    names: dict[str, int] = field(factory=dict)  #: hosts that only the proxy can find, each with its port on loopback

    @property
    def url(self) -> str:
        return self.recorder.url

    @property
    def asked(self) -> list[tuple[str, str]]:
        return [(sent.method, sent.path) for sent in self.recorder.sent]

    @property
    def credentials(self) -> list[str | None]:
        return [sent.headers.get("proxy-authorization") for sent in self.recorder.sent]

    async def serve(self, recorder: Recorder, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (sent := await read_request(reader)) is not None:
            recorder.keep(sent)
            if (refusal := self.refuse(sent)) is not None:
                writer.write(refusal)
            elif sent.method == "CONNECT":
                writer.write(b"HTTP/1.1 200 Opened\r\n\r\n")
                await self._tunnel(sent.path, reader, writer)
                return
            else:
                await self._pass(sent, writer)

    async def _pass(self, sent: Sent, writer: asyncio.StreamWriter) -> None:
        """Send a request on, with its path instead of its URL, and its response back."""
        place, _, path = sent.path.removeprefix("http://").partition("/")
        far_reader, far = await self._connected(place)
        fields = "".join(f"{name}: {value}\r\n" for name, value in sent.headers.items() if name[:6] != "proxy-")
        far.write(f"{sent.method} /{path} HTTP/1.1\r\nconnection: close\r\n{fields}\r\n".encode() + sent.body)
        far.write_eof()
        writer.write(await far_reader.read())
        far.close()

    async def _tunnel(self, place: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far = await self._connected(place)
        try:
            await asyncio.gather(_copied(reader, far), _copied(far_reader, writer))
        finally:
            far.close()

    async def _connected(self, place: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, _, port = place.rpartition(":")
        return await asyncio.open_connection("127.0.0.1", self.names.get(host, int(port)))


async def _copied(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await source.read(65536):
            target.write(data)
            await target.drain()
    target.close()


def nothing(_sent: Sent) -> None:
    """Refuse no request."""


def demanding(credentials: str) -> Callable[[Sent], bytes | None]:
    """Refuse requests without these credentials."""
    refusal = reply(407, b"<html>who are you?", proxy_authenticate="Basic", connection="close")
    return lambda sent: None if sent.headers.get("proxy-authorization") == credentials else refusal


@asynccontextmanager
async def proxy(refuse: Callable[[Sent], bytes | None] = nothing) -> AsyncIterator[Proxy]:
    made = Proxy(Recorder(), refuse)
    async with serving(made.serve) as made.recorder:
        yield made
