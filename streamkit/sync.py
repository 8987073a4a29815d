"""Pipes in programs without an event loop.

A pipe never waits, unless its source or a stage of the user does. With a source that blocks instead of waiting for an event
loop, a pipe runs to its next output in one step, so a plain ``for`` can drive it. It is the same pipe, with the same stages,
report and errors.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final, Generic, TypeVar

from streamkit.conversation.messages import Response
from streamkit.dialects.profiles import Profile
from streamkit.errors import UsageError
from streamkit.pipeline import Pipe
from streamkit.read_options import DEFAULT_OPTIONS, ReadOptions
from streamkit.recipes import collect, transcode
from streamkit.report import StreamReport
from streamkit.rewrite.given import EventStage

T = TypeVar("T")


def transcode_sync(
    source: Iterable[bytes],
    from_dialect: str,
    to_dialect: str,
    options: ReadOptions = DEFAULT_OPTIONS,
    *,
    stages: Sequence[EventStage] = (),
    report: StreamReport | None = None,
    profile: Profile | None = None,
    reencode: bool = False,
    join: bool = True,
    clock: Callable[[], float] = time.time,
    timings: bool = False,
) -> SyncPipe[bytes]:
    """Convert a stream as ``transcode`` does, without an event loop: an iterable of bytes in, an iterator of bytes out.

    The arguments are those of ``transcode``. ``source`` yields bytes as they are read, and raises SourceFailed if its
    transport fails: ``[data]``, an open file, ``iter_httpx(response)`` or a generator. A stage must not wait for an event
    loop. The returned iterator has the ``report``. Read it to its end, or use it in a ``with`` block: both close the source.
    Raise UsageError for an unknown name, a bad schema, or bytes instead of an iterable of bytes. Every other failure is
    reported in the output and in the report.
    """
    return SyncPipe(
        transcode(
            BlockingSource(source),
            from_dialect,
            to_dialect,
            options,
            stages=stages,
            report=report,
            profile=profile,
            reencode=reencode,
            join=join,
            clock=clock,
            timings=timings,
        )
    )


def collect_sync(
    source: Iterable[bytes],
    dialect: str,
    options: ReadOptions = DEFAULT_OPTIONS,
    *,
    stages: Sequence[EventStage] = (),
    report: StreamReport | None = None,
    timings: bool = False,
) -> Response:
    """Read a stream to its end as ``collect`` does, without an event loop. Return one whole response.

    ``source`` is as in ``transcode_sync``; the other arguments and the errors are those of ``collect``.
    """
    return _at_once(collect(BlockingSource(source), dialect, options, stages=stages, report=report, timings=timings))


class SyncPipe(Generic[T]):
    """A pipe without an event loop: an iterator, and a context manager that closes the stages and the source.

    The end of the stream and an error close them too. ``report`` is filled in as the stream is read. Reading raises
    UsageError if a stage or the source waits for an event loop.
    """

    def __init__(self, pipe: Pipe[T]) -> None:
        self.report = pipe.report
        self._pipe = pipe
        self._items: AsyncIterator[T] | None = None  # set when the pipe is entered
        self._left = False

    def __enter__(self) -> SyncPipe[T]:
        self._entered()
        return self

    def _entered(self) -> AsyncIterator[T]:
        if self._items is None:
            self._items = aiter(_at_once(self._pipe.__aenter__()))
        return self._items

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        if self._left:
            raise StopIteration
        try:
            return _at_once(anext(self._entered()))
        except StopAsyncIteration:
            self.close()
            raise StopIteration from None
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the stages, then the source. Later reads end at once."""
        if not self._left:
            self._left = True
            _at_once(self._pipe.__aexit__())


class BlockingSource:
    """A source that reads an iterable of bytes, and blocks meanwhile. Closing it calls ``close`` of the iterable."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        if isinstance(chunks, bytes | bytearray | memoryview | str):
            raise UsageError(f"a source must be an iterable of bytes, not {type(chunks).__name__}; write [data]")
        self._chunks = chunks
        self._iterator = iter(chunks)

    def __aiter__(self) -> BlockingSource:
        return self

    async def __anext__(self) -> bytes:
        try:
            return next(self._iterator)
        except StopIteration:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        for thing in {id(thing): thing for thing in (self._iterator, self._chunks)}.values():
            close = getattr(thing, "close", None)
            if close is not None:
                close()


#: How often a stage may catch the error that it must not wait, and wait again.
TRIES: Final = 100


class _WaitsForEver(BaseException):
    pass


def _at_once(awaitable: Awaitable[T]) -> T:
    """Return the result of ``awaitable``. If it waits, raise UsageError at the place where it waits."""
    steps = awaitable.__await__()
    waits = UsageError(
        "a stage or the source waits for an event loop; in an event loop, use transcode, collect or pipe"
    )
    try:
        next(steps)
        for _ in range(TRIES):  # a stage may catch the error, and wait again
            steps.throw(waits)
        with suppress(_WaitsForEver):
            steps.throw(_WaitsForEver())
    except StopIteration as done:
        result: T = done.value
        return result
    raise waits
