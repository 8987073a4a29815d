"""Write a log at the end of a pipe, and read one as the source of another, for applications that keep responses themselves.

Source: resume.md §12.2; design.md §2.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Sequence
from typing import Any

from streamkit.errors import SourceFailed
from streamkit.pipeline import Stage
from streamkit.profiler import Profiler
from streamkit.report import StreamReport
from streamkit.resume.log import Log, LogError, StoredLog


def keep(log: Log) -> Stage[bytes, bytes]:
    """Return a stage that passes bytes on and appends them to ``log``.

    It must be the last stage of the pipe, after ``encode``. The log ends when the pipe ends. Its end is ``done`` if the
    report says that the stream is clean, ``failed`` if not, and ``aborted`` if the pipe was not read to its end. The success
    terminator is appended together with the end.
    """
    return _Keep(log)


class _Keep(Stage[bytes, bytes]):
    """The stage of ``keep``. Its driver tells the log how the pipe was left, which a machine can't know."""

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
    """The machine of ``keep``: it passes bytes on and appends them to the log."""

    def __init__(self, log: Log, report: StreamReport) -> None:
        self.fault: Exception | None = None
        self._log = log
        self._report = report
        self._last: list[bytes] = []  # the last bytes; they are appended together with the end of the log

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
        log.end("aborted")  # no effect if the log has ended


async def read(log: Log | StoredLog, *, after: int = 0) -> AsyncGenerator[bytes, None]:
    """Yield the bytes of a log from byte ``after`` on, as they are written. Use it as the source of a pipe, or for a client.

    It ends when the log ends; the log of a failed response ends with an error. Raises SourceFailed if the log can't be read
    to its end; the cause is the LogError.
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
