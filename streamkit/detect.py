"""Which dialect a stream speaks, told from its first frame that one of them recognises."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable
from typing import Any

import orjson

from streamkit.dialects import DIALECTS
from streamkit.dialects.base import Dialect, FramingParser
from streamkit.dialects.vocabulary.error_bodies import is_bare_error
from streamkit.errors import NotThisDialect
from streamkit.framing.frame import BEGINNING_BYTES, Frame, describe_beginning
from streamkit.framing.sse import has_comments_only
from streamkit.limits import DEFAULT_LIMITS
from streamkit.pipeline import close_each
from streamkit.report import StreamReport

#: How much of a stream ``detect`` looks at before it gives up.
DETECT_BYTES = 256 * 1024
#: Of a stream that is at hand it looks at so much at once: one frame nearly always says whose it is.
FED_BYTES = 16 * 1024


class Detector:
    """Which dialect a stream speaks, from its first frame that one of them recognises."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []  #: what was fed
        self._size = 0
        self._passed: set[str] = set()  # the dialects whose reader passed over a foreign payload
        self._readers = [(dialect, dialect.parser(DEFAULT_LIMITS, StreamReport())) for dialect in DIALECTS.values()]

    def feed(self, chunk: bytes) -> str | None:
        """The dialect's name once it is known. Raises NotThisDialect when too much was read without a sign."""
        self.seen.append(chunk)
        self._size += len(chunk)
        name = self._first(lambda parser: parser.feed(chunk))
        if name is None and self._size > DETECT_BYTES:
            raise self._unknown()
        return name

    def finish(self) -> str:
        """The dialect's name after all. Raises NotThisDialect."""
        if name := self._first(lambda parser: parser.finish()):
            return name
        if has_comments_only(b"".join(self.seen)[:BEGINNING_BYTES]):
            return next(iter(DIALECTS))  # an event stream that was cut before it said whose it is
        raise self._unknown()

    def _first(self, frames_of: Callable[[FramingParser], list[Frame]]) -> str | None:
        """The dialect of the first frame that one recognises: what follows it may look like another's."""
        found: dict[type, tuple[Dialect, int]] = {}  # of each framing the first frame, by its offset
        for dialect, parser in self._readers:
            if parser.fault is not None:
                continue
            framing = type(parser)
            for frame in frames_of(parser):
                if framing in found and frame.offset >= found[framing][1]:
                    break
                if self._recognised(dialect, frame, self._passed):
                    found[framing] = dialect, frame.offset
                    break
        dialects = [dialect for dialect, _ in found.values()]
        return min(dialects, key=self._ended).name if len(dialects) > 1 else dialects[0].name if dialects else None

    def _ended(self, dialect: Dialect) -> int:
        """With which byte the first frame ends that a dialect recognises, as if the bytes had come one by one."""
        parser = dialect.parser(DEFAULT_LIMITS, StreamReport())
        seen = b"".join(self.seen)
        passed: set[str] = set()
        for at in range(len(seen)):
            if any(self._recognised(dialect, frame, passed) for frame in parser.feed(seen[at : at + 1])):
                return at
        return len(seen)

    def _recognised(self, dialect: Dialect, frame: Frame, passed: set[str]) -> bool:
        """Whether a frame is the dialect's. Others end with its end mark, too: behind a foreign payload that says nothing."""
        if frame.data.strip() == b"[DONE]":
            return dialect.done_mark and dialect.name not in passed  # of several the first in the table, as ever
        try:
            # an error of a binary stream stands in its headers, and has no payload
            document = orjson.loads(frame.data or b"{}")
        except orjson.JSONDecodeError:
            return False
        is_known = dialect.recognises(frame.event, document)
        if not is_known and document and not _tells_nothing(document):
            passed.add(dialect.name)
        return is_known

    def _unknown(self) -> NotThisDialect:
        return NotThisDialect("a stream of a known dialect", describe_beginning(b"".join(self.seen)[:256]))


def _tells_nothing(document: Any) -> bool:
    """Whether a payload that a dialect does not know may be its own: an error in a form of several, or a list of payloads."""
    if isinstance(document, dict):
        return bool(document.get("error")) or is_bare_error(document)
    return isinstance(document, list)


def dialect_of(stream: bytes) -> str:
    """The dialect of a stream that is at hand, as ``detect`` finds it. Raises NotThisDialect."""
    detector = Detector()
    for at in range(0, len(stream), FED_BYTES):
        if (name := detector.feed(stream[at : at + FED_BYTES])) is not None:
            return name
    return detector.finish()


async def detect(source: AsyncIterable[bytes]) -> tuple[str, RereadSource]:
    """The dialect of a stream, and a source that still has all of it. Raises NotThisDialect.

    Mistral's chunks are OpenAI's as far as a first one shows, so a stream of Mistral's is told as ``openai-chat``: name the
    dialect where it is known. The returned source owns ``source``: closing it closes that.
    """
    detector = Detector()
    reader = aiter(source)
    name: str | None = None
    try:
        async for chunk in reader:
            name = detector.feed(chunk)
            if name is not None:
                break
        name = name or detector.finish()
    except BaseException:
        await close_each(reader, source)
        raise
    return name, RereadSource(detector.seen, reader, source)


class RereadSource:
    """A source that gives what was read of it once more, then the rest. Closing it closes the source, read or not."""

    def __init__(self, chunks: list[bytes], rest: AsyncIterator[bytes], source: AsyncIterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._rest = rest
        self._owned: tuple[object, ...] = (rest, source)

    def __aiter__(self) -> RereadSource:
        return self

    async def __anext__(self) -> bytes:
        for chunk in self._chunks:
            return chunk
        return await anext(self._rest)

    async def aclose(self) -> None:
        owned, self._owned = self._owned, ()
        await close_each(*owned)
