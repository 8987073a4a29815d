"""What a command reads: bytes as they come, or a recording, whose beginning says that it is one.

A recording names its dialect, and brings its reads as they were cut, each at its time, then what ended them. Bytes have
none of that: their times are those at which they are read, which mean something where they come live.

Source: observe.md O29.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import AsyncGenerator
from typing import TypeAlias

from attrs import define, field

from streamkit.cli.options import AUTO
from streamkit.cli.streams import name_of, read
from streamkit.detect import RereadSource, detect, dialect_of
from streamkit.dialects import DIALECTS, source_named
from streamkit.errors import NotThisDialect, SourceFailed, UsageError
from streamkit.events import ProviderFailed, WireEvent
from streamkit.lab.recording import BadRecording, Recording, is_recording, may_be_recording, parse_recording
from streamkit.lab.recording.source import RecordedSource, failure, refusal
from streamkit.report import StreamReport


class LiveSource:
    """An async iterator over bytes that says when each read came, however late it is taken. Closing it closes the reads."""

    def __init__(self, reads: RereadSource, times: deque[float], began: float) -> None:
        self.now = 0.0  #: when the last read that was taken had come, in seconds since the input was opened
        self.ended_at: float | None = None  #: the same of the end, once it was reached
        self._reads, self._times, self._began = reads, times, began

    def __aiter__(self) -> LiveSource:
        return self

    async def __anext__(self) -> bytes:
        try:
            chunk = await anext(self._reads)
        except (StopAsyncIteration, SourceFailed):
            self.ended_at = time.monotonic() - self._began
            raise
        self.now = self._times.popleft()
        return chunk

    async def aclose(self) -> None:
        await self._reads.aclose()


@define
class RawInput:
    """Bytes of a file or of standard input."""

    name: str  #: for messages
    _reads: RereadSource = field(repr=False)
    _times: deque[float] = field(repr=False)  # of the reads that were not taken yet
    _began: float  # on the monotonic clock
    recording: None = field(default=None, init=False)

    async def find_dialect(self, named: str) -> str:
        """The dialect that is named, or found out for ``auto``. Raises NotThisDialect."""
        if named == AUTO:
            named, self._reads = await detect(self._reads)
        return named

    def source(self, _report: StreamReport) -> LiveSource:
        """What is read, once."""
        return LiveSource(self._reads, self._times, self._began)

    def refusal(self, _dialect: str) -> None:
        """Bytes have no status."""

    async def aclose(self) -> None:
        """Close what no source was made of."""
        await self._reads.aclose()


@define
class RecordedInput:
    """A recording."""

    name: str  #: for messages
    recording: Recording = field(repr=False)

    async def find_dialect(self, named: str) -> str:
        """The dialect that is named; for ``auto`` the recording's own, and its provider's name where that is known.

        Raises BadRecording for one that is not known here, NotThisDialect where the recording names none and its bytes say
        none either, and SourceFailed where it has no bytes.
        """
        recording = self.recording
        if named != AUTO:
            return named
        if recording.dialect:
            return _own(recording, self.name)
        if self.refusal(first := next(iter(DIALECTS))) is not None:
            return first  # any will do: an error's words are read as those of all dialects
        if not recording.body and (failed := failure(recording)) is not None:
            raise SourceFailed(f"{self.name}: {failed}")
        return dialect_of(recording.body)

    def source(self, report: StreamReport) -> RecordedSource:
        """Its reads, for a pipe with that report."""
        return RecordedSource(self.recording, report)

    def refusal(self, dialect: str) -> ProviderFailed | None:
        """The error that stands instead of an answer of ``dialect``."""
        return refusal(self.recording, dialect)

    async def aclose(self) -> None:
        """There is nothing to close."""


Input: TypeAlias = RawInput | RecordedInput


async def open_input(path: str, named: str = AUTO) -> tuple[Input, str]:
    """A file, or standard input for ``-``, and its dialect: the one that is ``named``, or for ``auto`` its own.

    Raises SourceFailed where it can't be read, BadRecording, and NotThisDialect.
    """
    opened = await _opened(path)
    try:
        return opened, await opened.find_dialect(named)
    except BaseException:
        await opened.aclose()
        raise


async def open_named(path: str, named: str | None) -> tuple[Input, str]:
    """The same for a command that finds out no dialect: a name is needed unless a recording has one.

    Raises SourceFailed, BadRecording, and UsageError.
    """
    opened = await _opened(path)
    try:
        if named is None and opened.recording is None:
            raise UsageError(f"{opened.name} is no recording, which would say its dialect: name it with --from")
        return opened, await opened.find_dialect(AUTO if named is None else named)
    except NotThisDialect as error:
        raise UsageError(f"{opened.name} does not say its dialect: name it with --from") from error
    except BaseException:
        await opened.aclose()
        raise


async def _opened(path: str) -> Input:
    name, began = name_of(path), time.monotonic()
    times: deque[float] = deque()
    reads = _stamped(read(path), times, began)
    chunks: list[bytes] = []
    try:
        async for chunk in reads:
            chunks.append(chunk)
            beginning = b"".join(chunks)
            if is_recording(beginning):
                chunks += [chunk async for chunk in reads]
                return RecordedInput(name, parse_recording(b"".join(chunks), name=name))
            if not may_be_recording(beginning):
                break
    except BaseException:
        await reads.aclose()
        raise
    return RawInput(name, RereadSource(chunks, reads, reads), times, began)


async def _stamped(
    reads: AsyncGenerator[bytes, None], times: deque[float], began: float
) -> AsyncGenerator[bytes, None]:
    try:
        async for chunk in reads:
            times.append(time.monotonic() - began)
            yield chunk
    finally:
        await reads.aclose()


async def refused(failed: ProviderFailed) -> AsyncGenerator[list[WireEvent], None]:
    """An error that stands instead of an answer, as what would have been decoded of one."""
    yield [failed]


def _own(recording: Recording, name: str) -> str:
    try:
        dialect = source_named(recording.dialect)[0]
    except UsageError as error:
        raise BadRecording(name, 1, str(error)) from error
    try:
        is_known = source_named(recording.provider)[0] is dialect
    except UsageError:
        is_known = False
    return recording.provider if is_known else recording.dialect
