"""A log at the end of a pipe, and at the beginning of another: for people who keep answers in an application of their own.

Source: resume.md §12.2; design.md §2.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Sequence
from typing import Any, Protocol

from streamkit.errors import SourceFailed
from streamkit.pipeline import Stage
from streamkit.profiler import Profiler
from streamkit.report import StreamReport
from streamkit.resume.log import Log, LogError, Reading


class Readable(Protocol):
    """A ``Log``, or a ``StoredLog``."""

    async def open(self, after: int = 0, /) -> Reading: ...


def keep(log: Log) -> Stage[bytes, bytes]:
    """A stage that passes bytes on and appends them to ``log``: the last of a pipe, behind ``encode``.

    The log ends with the pipe: ``done`` where the report calls the answer clean, ``failed`` where it does not, ``aborted``
    where nobody read it to its end. What says that the answer is whole is appended together with the end.
    """
    return _Keep(log)


class _Keep(Stage[bytes, bytes]):
    """Its driver tells the log how the pipe was left, which no machine hears of."""

    def __init__(self, log: Log) -> None:
        super().__init__("keep", lambda report: _Keeper(log, report), takes="bytes", gives="bytes")
        self._log = log

    def over(
        self,
        source: AsyncIterable[Any],
        report: StreamReport,
        before: Sequence[Stage[Any, Any]] = (),
        profiler: Profiler | None = None,
    ) -> AsyncGenerator[bytes, None]:
        return _kept(super().over(source, report, before, profiler), self._log)


class _Keeper:
    """The machine: it appends what passes."""

    def __init__(self, log: Log, report: StreamReport) -> None:
        self.fault: Exception | None = None
        self._log = log
        self._report = report
        self._last: list[bytes] = []  # what is appended with the end

    def feed(self, chunk: bytes, /) -> bytes:
        if self._last or self._report.completed or self._report.failure is not None:
            self._last.append(chunk)
        else:
            self._log.append(chunk)
        return chunk

    def finish(self) -> bytes:
        self._log.end("done" if self._report.clean else "failed", b"".join(self._last))
        return b""

    def abandon(self) -> bytes:
        self._log.end("failed", b"".join(self._last))
        return b""


async def _kept(chunks: AsyncGenerator[bytes, None], log: Log) -> AsyncGenerator[bytes, None]:
    try:
        async for chunk in chunks:
            yield chunk
    finally:
        await chunks.aclose()
        log.end("aborted")  # unless it has ended


async def read(log: Readable, *, after: int = 0) -> AsyncGenerator[bytes, None]:
    """The bytes of a log from byte ``after`` on, as they come: the source of a pipe, or what a handler writes.

    It ends with the log, however that ended: an answer that failed has its error among its bytes. Raises SourceFailed where
    the log can't be read, or read on, with the LogError as its cause.
    """
    try:
        reading = await log.open(after)
    except LogError as error:
        raise SourceFailed(str(error)) from error
    try:
        async for chunk in reading:
            yield chunk
    except LogError as error:
        raise SourceFailed(str(error)) from error
    finally:
        await reading.aclose()
