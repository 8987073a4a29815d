"""Attacks over WebSockets: by clients of the gateway, and by an upstream that is asked over one.

``python -m benchmarks.gateway.socket_attacks`` is that upstream; it prints its port. It opens each socket and then sends one
frame again and again, and nothing else: a ping, a pong, or a message without text, by the name of the model that is asked.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final

from benchmarks.gateway.upstream import SEND_BYTES

MIB: Final = 1024 * 1024
SOCKETS: Final = 40
#: How long an attack goes on: the fifty streams have sixteen seconds left when it begins.
FLOOD_S: Final = 8.0
#: The first byte of a frame that is whole, by what it is; a part of a text is 0x01 and then 0x00.
FLOODS: Final[Mapping[str, int]] = {"pings": 0x89, "pongs": 0x8A, "empty messages": 0x81}
_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_UPGRADE: Final = (
    b"GET /v1/responses HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n"
)


def frame(first: int, payload: bytes = b"", *, masked: bool = True) -> bytes:
    """A frame; its mask is four zeros, which changes nothing."""
    mask, size = (0x80, b"\0\0\0\0") if masked else (0, b"")
    if len(payload) < 126:
        return bytes([first, mask | len(payload)]) + size + payload
    return bytes([first, mask | 127]) + len(payload).to_bytes(8, "big") + size + payload


async def _socket(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(_UPGRADE)
    await reader.readuntil(b"\r\n\r\n")
    return reader, writer


async def _answered(port: int, sent: bytes) -> str:
    """Send ``sent``, stay for a while, and say how the gateway answered."""
    try:
        reader, writer = await _socket(port)
    except (OSError, asyncio.IncompleteReadError) as error:
        return type(error).__name__
    got = b""
    try:
        async with asyncio.timeout(FLOOD_S):
            writer.write(sent)
            while more := await reader.read(MIB):
                got += more
    except TimeoutError:
        return f"{_status(got)} and held"
    except OSError as error:
        return type(error).__name__
    finally:
        writer.transport.abort()
    return f"{_status(got)} and closed"


def _status(got: bytes) -> str:
    found = re.search(rb'"status":(\d+)', got)
    return "nothing" if found is None else found[1].decode()


async def _flood(port: int, first: int) -> list[str]:
    """One socket that sends one frame over and over, and reads what it is answered."""
    reader, writer = await _socket(port)
    reading = asyncio.create_task(_read_all(reader))
    frames = frame(first) * 10_000
    sent = 0
    with suppress(TimeoutError, OSError):
        async with asyncio.timeout(FLOOD_S):
            while True:
                writer.write(frames)
                await writer.drain()
                sent += 1
                await asyncio.sleep(0)
    reading.cancel()
    writer.transport.abort()
    return [f"{sent * 10}k frames"]


async def _read_all(reader: asyncio.StreamReader) -> None:
    while await reader.read(MIB):
        pass


#: A part of a message of 31 MiB, of which the rest never comes.
_UNFINISHED: Final = frame(0x01, b" " * (8 * MIB))
#: A whole message that is refused for its last member, when all of it was read.
_REFUSED: Final = frame(0x81, b'{"type":"response.create","model":"m","input":"%b","tools":5}' % (b"a" * (12 * MIB)))


async def _together(port: int, sent: bytes) -> list[str]:
    return await asyncio.gather(*(_answered(port, sent) for _ in range(SOCKETS)))


async def flooded(port: int, name: str) -> list[str]:
    """Ask the upstream that sends frames of this kind alone."""
    model = f"flood-{FLOODS[name]}"
    asked = frame(0x81, b'{"type":"response.create","model":"%b","input":"a"}' % model.encode())
    return [await _answered(port, asked)]


SOCKET_ATTACKS: Final[Mapping[str, Callable[[int], Awaitable[list[str]]]]] = {
    "unfinished messages": lambda port: _together(port, _UNFINISHED),
    "refused messages": lambda port: _together(port, _REFUSED),
    **{f"socket of {name}": lambda port, first=first: _flood(port, first) for name, first in FLOODS.items()},
}


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError, asyncio.IncompleteReadError):
        head = await reader.readuntil(b"\r\n\r\n")
        found = re.search(rb"(?i)sec-websocket-key: *(\S+)", head)
        key = b"" if found is None else found[1]
        accept = base64.b64encode(hashlib.sha1(key + _GUID, usedforsecurity=False).digest())
        writer.write(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: %b\r\n\r\n" % accept
        )
        first, size = await reader.readexactly(2)
        size = int.from_bytes(await reader.readexactly(2), "big") if size & 0x7F == 126 else size & 0x7F
        mask, asked = await reader.readexactly(4), await reader.readexactly(size)
        told = bytes(byte ^ mask[number % 4] for number, byte in enumerate(asked))
        model = re.search(rb"flood-(\d+)", told)
        first = 0x89 if model is None else int(model[1])
        frames = frame(first, masked=False) * 10_000
        async with asyncio.timeout(FLOOD_S):
            while True:
                writer.write(frames)
                await writer.drain()
                await asyncio.sleep(0)
    writer.transport.abort()


async def _main() -> None:
    server = await asyncio.start_server(_serve, "127.0.0.1", 0, limit=SEND_BYTES)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_main())
