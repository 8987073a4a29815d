"""Which dialect a stream speaks, told from its first frame that one of them recognises."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from typing import Any

import orjson

from streamkit.dialects import DIALECTS
from streamkit.dialects.base import Dialect
from streamkit.errors import NotThisDialect
from streamkit.framing.frame import Frame, describe_beginning
from streamkit.limits import DEFAULT_LIMITS
from streamkit.report import StreamReport

#: How much of a stream ``detect`` looks at before it gives up.
DETECT_BYTES = 256 * 1024


class Detector:
    """Which dialect a stream speaks, from its first frame that one of them recognises."""

    def __init__(self) -> None:
        self._seen: list[bytes] = []
        self._size = 0
        self._readers = [(dialect, dialect.parser(DEFAULT_LIMITS, StreamReport())) for dialect in DIALECTS.values()]

    def feed(self, chunk: bytes) -> str | None:
        """The dialect's name once it is known. Raises NotThisDialect when too much was read without a sign."""
        self._seen.append(chunk)
        self._size += len(chunk)
        for dialect, parser in self._readers:
            if parser.fault is None and any(self._recognised(dialect, frame) for frame in parser.feed(chunk)):
                return dialect.name
        if self._size > DETECT_BYTES:
            raise self._unknown()
        return None

    def finish(self) -> str:
        """The dialect's name after all. Raises NotThisDialect."""
        for dialect, parser in self._readers:
            if parser.fault is None and any(self._recognised(dialect, frame) for frame in parser.finish()):
                return dialect.name
        raise self._unknown()

    def _recognised(self, dialect: Dialect, frame: Frame) -> bool:
        if frame.data.strip() == b"[DONE]":
            return dialect.name == "openai-chat"
        try:
            return dialect.recognises(frame.event, orjson.loads(frame.data))
        except orjson.JSONDecodeError:
            return False

    def _unknown(self) -> NotThisDialect:
        return NotThisDialect("a stream of a known dialect", describe_beginning(b"".join(self._seen)[:256]))


async def detect(source: AsyncIterable[bytes]) -> tuple[str, Again]:
    """The dialect of a stream, and a source that still has all of it. Raises NotThisDialect.

    The returned source owns ``source``: closing it closes that.
    """
    detector, chunks = Detector(), []
    reader = aiter(source)
    name: str | None = None
    try:
        async for chunk in reader:
            chunks.append(chunk)
            name = detector.feed(chunk)
            if name is not None:
                break
        name = name or detector.finish()
    except BaseException:
        await _close(reader)
        raise
    return name, Again(chunks, reader)


class Again:
    """A source that gives what was read of it once more, then the rest. Closing it closes the source, read or not."""

    def __init__(self, chunks: list[bytes], rest: AsyncIterator[bytes]) -> None:
        self._chunks = iter(chunks)
        self._rest = rest

    def __aiter__(self) -> Again:
        return self

    async def __anext__(self) -> bytes:
        for chunk in self._chunks:
            return chunk
        return await anext(self._rest)

    async def aclose(self) -> None:
        await _close(self._rest)


async def _close(source: Any) -> None:
    close = getattr(source, "aclose", None)
    if close is not None:
        await close()
