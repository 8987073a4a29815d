"""A TCP proxy in front of a server, or of several, which a test tells what to lose."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from attrs import define, field


@define(eq=False)
class Proxy:
    """Passes bytes on between clients and the first of ``targets``, ports of this machine, that accepts."""

    targets: list[int]
    #: Whether an answer of the server is lost, and its connection with it.
    swallows: Callable[[bytes], bool] = lambda _answer: False
    is_cut: bool = False  #: nobody gets through
    swallowed: int = 0
    port: int = 0
    _open: set[asyncio.StreamWriter] = field(factory=set)

    def cut(self) -> None:
        self.is_cut = True
        for writer in self._open:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_cut:
            writer.transport.abort()
            return
        with suppress(OSError):
            there, back = await self._connect()
            self._open |= {writer, back}
            await asyncio.gather(self._pass(reader, back, writer), self._pass(there, writer, back, lossy=True))
            self._open -= {writer, back}
        writer.transport.abort()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        *others, last = self.targets
        for port in others:
            with suppress(OSError):
                return await asyncio.open_connection("127.0.0.1", port)
        return await asyncio.open_connection("127.0.0.1", last)

    async def _pass(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        other: asyncio.StreamWriter,
        *,
        lossy: bool = False,
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(1 << 16):
                if lossy and self.swallows(data):
                    self.swallowed += 1
                    break
                writer.write(data)
                await writer.drain()
        for each in (writer, other):
            each.transport.abort()


@asynccontextmanager
async def proxy(*targets: int) -> AsyncIterator[Proxy]:
    made = Proxy(list(targets))
    server = await asyncio.start_server(made._serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        made.cut()
        await asyncio.sleep(0.01)
