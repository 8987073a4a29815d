"""Pipes in programs without an event loop.

A pipe never waits, unless its source or a stage of the user does. With a source that blocks instead of waiting for an event
loop, a pipe runs to its next output in one step, so a plain ``for`` can drive it. It is the same pipe, with the same stages,
report and errors.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final, Generic, NoReturn, TypeVar

from streamkit.conversation.messages import Response
from streamkit.dialects.profiles import Profile
from streamkit.errors import UsageError
from streamkit.events import Event
from streamkit.pipeline import Pipe, StageFunction
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
    """Convert a stream as ``transcode`` does, but without an event loop.

    The arguments mean the same as in ``transcode``. ``source`` is an iterable of bytes: ``[data]``, an open file,
    ``iter_httpx(response)``, or your own generator. Your generator should raise SourceFailed if its transport fails.
    Your stages must not wait for an event loop. The function returns an iterator of bytes, with the report in its
    attribute ``report``. To close the source, read the iterator to its end, or use the iterator in a ``with`` block.
    Raises UsageError for an unknown name, a bad schema, or bytes instead of an iterable of bytes. All other failures
    are reported in the output and in the report.
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
    """Read a stream to its end as ``collect`` does, but without an event loop. Return a whole response.

    ``source`` means the same as in ``transcode_sync``. All other arguments and the errors are the same as in
    ``collect``.
    """
    return _at_once(collect(BlockingSource(source), dialect, options, stages=stages, report=report, timings=timings))


class SyncPipe(Generic[T]):
    """A pipe that needs no event loop. The pipe is an iterator and a context manager.

    The pipe closes the stages and the source at the end of the ``with`` block, at the end of the stream, and after an
    error. ``report`` is filled in while the stream is read. Reading raises UsageError if a stage or the source waits
    for an event loop.
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
        except BaseException as error:
            self.close(error)
            raise

    def step(self) -> Generator[object, Any, T]:
        """Return the next step of the pipe, to be driven by hand: it ends with ``StopIteration``, which has the item."""
        return anext(self._entered()).__await__()

    def close(self, error: BaseException | None = None) -> None:
        """Close the stages, then the source. Later reads end at once. ``error`` is what ended the reading, if anything."""
        if not self._left:
            self._left = True
            _at_once(self._pipe.__aexit__(None if error is None else type(error), error, None))


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


class PushedStages:
    """Stages that get batches of events one at a time, in a program without an event loop. They must not wait.

    ``push`` and ``end`` return the events that the stages yield for what they got so far, and raise what a stage raises.
    """

    def __init__(self, stages: Sequence[StageFunction[Any, Any]], report: StreamReport) -> None:
        self._given: deque[list[Event]] = deque()
        self._is_over = False
        self._stages = SyncPipe(Pipe[list[Event]](self._source(), tuple(stages), report))
        self._step: Generator[object, Any, Any] | None = None  # the step of the stages that needs more events

    async def _source(self) -> AsyncIterator[list[Event]]:
        while True:
            if self._given:
                yield self._given.popleft()
            elif self._is_over:
                return
            else:
                await _MORE

    def push(self, batch: list[Event]) -> list[Event]:
        self._given.append(batch)
        return self._events()

    def end(self) -> list[Event]:
        self._is_over = True
        return self._events()

    def close(self) -> None:
        """Close the stages where they are. Without ``end``, what they hold is dropped."""
        if self._step is not None:
            with suppress(_Ended):
                self._step.throw(_Ended())
        self._stages.close()

    def _events(self) -> list[Event]:
        events: list[Event] = []
        step, self._step = self._step, None
        try:
            while self._step is None:
                step = step or self._stages.step()
                try:
                    if next(step) is not _MORE:
                        _refuse(step)
                    self._step = step
                except StopIteration as done:
                    events += done.value
                    step = None
        except StopAsyncIteration:
            self._stages.close()
        except BaseException as error:
            self._stages.close(error)
            raise
        return events


class _More:
    """Awaited by the source of ``PushedStages`` if there are no events."""

    def __await__(self) -> Generator[_More]:
        yield self


_MORE: Final = _More()


#: How often a stage may catch the error that it must not wait, and wait again.
TRIES: Final = 100


class _Ended(BaseException):
    """Ends a stage that waits."""


def _at_once(awaitable: Awaitable[T]) -> T:
    """Return the result of ``awaitable``. If it waits, raise UsageError at the place where it waits."""
    steps = awaitable.__await__()
    try:
        next(steps)
        _refuse(steps)
    except StopIteration as done:
        result: T = done.value
        return result


def _refuse(steps: Generator[object, Any, Any]) -> NoReturn:
    """Raise UsageError at the place where ``steps`` waits."""
    waits = UsageError(
        "a stage or the source waits for an event loop; in an event loop, use transcode, collect or pipe"
    )
    for _ in range(TRIES):  # a stage may catch the error, and wait again
        steps.throw(waits)
    with suppress(_Ended):
        steps.throw(_Ended())
    raise waits
