"""The input of a command: raw bytes, or a recording, recognised by its first bytes.

A recording has its dialect, its reads with their times, and its end. Raw bytes have only the times at which the command reads
them, which are useful if the stream is live.

Source: observe.md O29.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from typing import Any, TypeAlias

import orjson
from attrs import define, field

from streamkit.cli.options import AUTO
from streamkit.cli.progress import advance
from streamkit.cli.streams import name_of, read, say_failure, size_of, write_json
from streamkit.detection import RereadSource, detect, dialect_of
from streamkit.dialects import DIALECTS, source_named
from streamkit.errors import NotThisDialect, SourceFailed, StreamError, UsageError
from streamkit.events import ProviderFailed, WireEvent
from streamkit.framing.frame import BEGINNING_BYTES, BOM, describe_beginning
from streamkit.lab.recording import BadRecording, Recording, is_recording, may_be_recording, parse_recording
from streamkit.lab.recording.source import RecordedSource, failure, refusal
from streamkit.report import Status, StreamReport


class LiveSource:
    """An async iterator over bytes that records when each read arrived, even if it is taken later. Closes the reads."""

    def __init__(self, reads: RereadSource, times: deque[float], began: float) -> None:
        self.now = 0.0  #: arrival of the last read that was taken, in seconds since the input was opened
        self.ended_at: float | None = None  #: time of the end, in the same seconds; None until the end is reached
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
        advance(len(chunk))
        return chunk

    async def aclose(self) -> None:
        await self._reads.aclose()


class _CountedSource(RecordedSource):
    """A recording's reads. Each counts as its share of the recording's ``size`` in bytes."""

    def __init__(self, recording: Recording, report: StreamReport, size: int) -> None:
        super().__init__(recording, report)
        self._share = size / (len(recording.body) or 1)

    async def __anext__(self) -> bytes:
        chunk = await super().__anext__()
        advance(round(len(chunk) * self._share))
        return chunk


@define
class RawInput:
    """The bytes of a file or of standard input."""

    name: str  #: the input's name in messages
    _reads: RereadSource = field(repr=False)
    _times: deque[float] = field(repr=False)  # arrival times of the reads that are not taken yet
    _began: float  # opening time on the monotonic clock
    has_times: bool  #: the reads arrive as the response did, which those of a file do not
    recording: None = field(default=None, init=False)

    async def find_dialect(self, named: str) -> str:
        """Return the named dialect; for ``auto``, detect it. Raises NotThisDialect."""
        if named == AUTO:
            named, self._reads = await detect(self._reads)
        return named

    def source(self, _report: StreamReport) -> LiveSource:
        """Return the reads. Call this once only."""
        return LiveSource(self._reads, self._times, self._began)

    def refusal(self, _dialect: str) -> None:
        """Return None: raw bytes have no HTTP status."""

    async def aclose(self) -> None:
        """Close the input if ``source`` was not called."""
        await self._reads.aclose()


@define
class RecordedInput:
    """A recording as a command's input."""

    name: str  #: the input's name in messages
    recording: Recording = field(repr=False)
    _size: int = 0  # bytes of the recording as a file
    has_times: bool = field(default=True, init=False)

    async def find_dialect(self, named: str) -> str:
        """Return the named dialect; for ``auto``, the recording's provider if known, else its dialect, else detect it.

        Raises BadRecording if the recording's dialect is unknown, NotThisDialect if none can be detected, and SourceFailed if
        there are no bytes to detect it from.
        """
        recording = self.recording
        if named != AUTO:
            return named
        if recording.dialect:
            return _own(recording, self.name)
        if self.refusal(first := next(iter(DIALECTS))) is not None:
            return first  # any dialect will do: errors are decoded the same way for all dialects
        if not recording.body and (failed := failure(recording)) is not None:
            raise SourceFailed(f"{self.name}: {failed}")
        return dialect_of(recording.body)

    def source(self, report: StreamReport) -> RecordedSource:
        """Return the reads. ``report`` must be the report of the pipe that reads them."""
        return _CountedSource(self.recording, report, self._size)

    def refusal(self, dialect: str) -> ProviderFailed | None:
        return refusal(self.recording, dialect)

    async def aclose(self) -> None:
        """Do nothing: there is nothing to close."""


Input: TypeAlias = RawInput | RecordedInput


async def open_input(path: str, named: str = AUTO) -> tuple[Input, str]:
    """Open a file, or standard input for ``-``. Return it with the ``named`` dialect, or for ``auto`` with its dialect.

    Raises SourceFailed if the input cannot be read, BadRecording, and NotThisDialect.
    """
    opened = await _opened(path)
    try:
        return opened, await opened.find_dialect(named)
    except BaseException:
        await opened.aclose()
        raise


async def open_or_say(path: str, named: str, *, unread: Mapping[str, Any] | None = None) -> tuple[Input, str] | Status:
    """Open an input as ``open_input`` does. On failure print the reason, and return the status.

    ``unread`` is the JSON object of a file that could not be read. On failure it is printed, too, with its ``error``.
    """
    try:
        return await open_input(path, named)
    except StreamError as error:
        if unread is not None:
            write_json({**unread, "error": error_object(error)})
        return say_failure(error, path if isinstance(error, NotThisDialect) else None)


def error_object(error: ProviderFailed | Exception) -> dict[str, str]:
    """Return the JSON form of an error."""
    if isinstance(error, Exception):
        return {"type": type(error).__name__, "message": str(error)}
    return {"type": error.type, "message": error.message}


def json_body(body: bytes, dialect: str) -> bytes:
    """Return a body without its byte order mark. Raises NotThisDialect if it does not begin as JSON does."""
    body = body.removeprefix(BOM)
    if body.lstrip()[:1] in (b"{", b"["):
        return body
    try:
        found = f"a stream of {dialect_of(body)}"
    except NotThisDialect:
        found = describe_beginning(body[:BEGINNING_BYTES])
    raise NotThisDialect(f"a JSON body of {dialect}", found)


def json_fault(text: bytes) -> str:
    """Return where a text stops being JSON, as the end of a message; empty if it is JSON."""
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return f": {error}"
    return ""


async def open_named(path: str, named: str | None) -> tuple[Input, str]:
    """Open an input as ``open_input`` does, but detect no dialect: ``named`` is required unless a recording has a dialect.

    Raises SourceFailed, BadRecording, and UsageError.
    """
    opened = await _opened(path)
    try:
        if named is None and opened.recording is None:
            raise UsageError(f"{opened.name}: add --from DIALECT; only a recording names its dialect")
        return opened, await opened.find_dialect(AUTO if named is None else named)
    except NotThisDialect as error:
        raise UsageError(f"{opened.name}: its dialect was not recognized; add --from DIALECT") from error
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
                content = b"".join(chunks)
                return RecordedInput(name, parse_recording(content, name=name), len(content))
            if not may_be_recording(beginning):
                break
    except BaseException:
        await reads.aclose()
        raise
    return RawInput(name, RereadSource(chunks, reads, reads), times, began, has_times=size_of(path) is None)


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
    """Yield one batch with the error, in place of the decoded events of a response."""
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
