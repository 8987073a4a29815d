"""Detect the dialect of a stream from the first frame that a dialect recognises."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable
from typing import Any

import orjson

from streamkit.dialects import DIALECTS
from streamkit.dialects.base import Dialect, FramingParser
from streamkit.dialects.vocabulary.error_bodies import is_bare_error
from streamkit.dialects.vocabulary.other_apis import other_api
from streamkit.errors import NotThisDialect
from streamkit.framing.frame import BEGINNING_BYTES, Frame, describe_beginning
from streamkit.framing.sse import has_comments_only
from streamkit.limits import DEFAULT_LIMITS, MIB
from streamkit.pipeline import check_item, check_source, close_each
from streamkit.report import StreamReport
from streamkit.text.quoting import quoted

#: After this many bytes without a recognised frame, ``detect`` gives up. The first event may repeat the whole prompt.
DETECT_BYTES = MIB
FED_BYTES = 16 * 1024  #: bytes of a stream in memory that ``dialect_of`` feeds at once; nearly always enough


class Detector:
    """Finds the dialect of a stream from the first frame that a dialect recognises."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []  #: the chunks fed so far
        self._size = 0
        self._other: str | None = None  # the name of an API that streamkit does not read, if a frame is of it
        self._has_frames = False
        self._passed: set[str] = set()  # names of the dialects whose parser has met a payload of another dialect
        self._readers = [(dialect, dialect.parser(DEFAULT_LIMITS, StreamReport())) for dialect in DIALECTS.values()]

    def feed(self, chunk: bytes) -> str | None:
        """Return the dialect's name, or None if it is not known yet. Raise NotThisDialect once ``DETECT_BYTES`` are read."""
        self.seen.append(chunk)
        within = chunk[: DETECT_BYTES - self._size]  # not more, so that the size of the reads does not matter
        self._size += len(chunk)
        name = self._first(lambda parser: parser.feed(within))
        if name is None and self._size > DETECT_BYTES:
            raise self._unknown(
                "" if self._has_frames else f" without an event that ends within {DETECT_BYTES:,} bytes"
            )
        return name

    def finish(self) -> str:
        """Return the dialect's name at the end of the stream. Raise NotThisDialect if no dialect fits."""
        if name := self._first(lambda parser: parser.finish()):
            return name
        if has_comments_only(b"".join(self.seen)[:BEGINNING_BYTES]):
            # the event stream was interrupted before its first event, so any dialect fits: return the first
            return next(iter(DIALECTS))
        raise self._unknown()

    def _first(self, frames_of: Callable[[FramingParser], list[Frame]]) -> str | None:
        """Return the dialect that recognises the earliest frame. Later frames may look like another dialect's."""
        # for each framing, the first recognised frame's dialect and byte offset
        found: dict[type, tuple[Dialect, int]] = {}
        for dialect, parser in self._readers:
            if parser.fault is not None:
                continue
            framing = type(parser)
            for frame in frames_of(parser):
                self._has_frames = True
                if framing in found and frame.offset >= found[framing][1]:
                    break
                if self._recognised(dialect, frame, self._passed):
                    found[framing] = dialect, frame.offset
                    break
        dialects = [dialect for dialect, _ in found.values()]
        return min(dialects, key=self._ended).name if len(dialects) > 1 else dialects[0].name if dialects else None

    def _ended(self, dialect: Dialect) -> int:
        """Return the offset of the byte that ends the first frame which ``dialect`` recognises, feeding one byte at a time."""
        parser = dialect.parser(DEFAULT_LIMITS, StreamReport())
        seen = b"".join(self.seen)
        passed: set[str] = set()
        for at in range(len(seen)):
            if any(self._recognised(dialect, frame, passed) for frame in parser.feed(seen[at : at + 1])):
                return at
        return len(seen)

    def _recognised(self, dialect: Dialect, frame: Frame, passed: set[str]) -> bool:
        """Return whether a frame belongs to the dialect. ``[DONE]`` counts only if no other dialect's payload preceded it."""
        if frame.data.strip() == b"[DONE]":
            # several dialects end with ``[DONE]``; the first one in ``DIALECTS`` wins
            return dialect.done_mark and dialect.name not in passed
        try:
            # an error in an Amazon event stream may be in the headers, with an empty payload
            document = orjson.loads(frame.data or b"{}")
        except orjson.JSONDecodeError:
            return False
        is_known = dialect.recognises(frame.event, document)
        if not is_known and document and not _tells_nothing(document):
            passed.add(dialect.name)
            self._other = self._other or other_api(document)
        return is_known

    def _unknown(self, fault: str = "") -> NotThisDialect:
        beginning = b"".join(self.seen)[:256]
        found = f"{self._other} ({quoted(beginning)})" if self._other else describe_beginning(beginning)
        return NotThisDialect("a stream of a known dialect", found + fault)


def _tells_nothing(document: Any) -> bool:
    """Return whether an unknown payload is compatible with every dialect: a common form of error, or a list of payloads."""
    if isinstance(document, dict):
        return bool(document.get("error")) or is_bare_error(document)
    return isinstance(document, list)


def dialect_of(stream: bytes) -> str:
    """Return the dialect of a whole stream in memory, found as ``detect`` finds it. Raise NotThisDialect."""
    detector = Detector()
    for at in range(0, len(stream), FED_BYTES):
        if (name := detector.feed(stream[at : at + FED_BYTES])) is not None:
            return name
    return detector.finish()


async def detect(source: AsyncIterable[bytes]) -> tuple[str, RereadSource]:
    """Return the dialect of a stream, and a new source that yields the whole stream from its beginning. Raises
    NotThisDialect if no dialect fits.

    The first chunk of a Mistral stream looks like the first chunk of an OpenAI stream, so a Mistral stream is reported
    as ``openai-chat``. If you already know the dialect, don't use ``detect``. The returned source owns ``source``:
    closing the returned source closes ``source``.
    """
    detector = Detector()
    check_source(source)
    reader = aiter(source)
    name: str | None = None
    try:
        async for chunk in reader:
            check_item(chunk, "detect", "bytes", source)
            name = detector.feed(chunk)
            if name is not None:
                break
        name = name or detector.finish()
    except BaseException:
        await close_each(reader, source)
        raise
    return name, RereadSource(detector.seen, reader, source)


class RereadSource:
    """A source that yields the chunks already read, then the rest. Closing it closes the underlying source."""

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
