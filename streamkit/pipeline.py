"""Stages, and the pipe that owns and closes them.

A **stage** is an async generator function over an async iterable. A built-in stage is a short driver around a machine
(``machines.py``); a user-written stage is any such function. In a pipe, neighbouring built-in stages share one driver: their
machines form a ``Chain``. Events flow in batches only where users see them: before and after a user-written stage. Stages
never close their input. **The pipe alone** closes the outermost stage first, the source last, in the task that left the pipe.
(Closing only the outer generator runs the source's ``finally`` later and in another task; ``aclosing`` in each stage costs a
quarter more time per stage.)

Source: design.md §2.
"""

from __future__ import annotations

from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from itertools import pairwise
from traceback import walk_tb
from types import CoroutineType
from typing import Any, ClassVar, Final, Generic, Literal, TypeAlias, TypedDict, TypeVar, Unpack, cast, overload

from streamkit.errors import UsageError, blame
from streamkit.events import is_event
from streamkit.machines import Chain, Machine
from streamkit.profiler import Profiler
from streamkit.report import StreamReport
from streamkit.text.quoting import name_of, quoted

A_contra = TypeVar("A_contra", contravariant=True)
B_co = TypeVar("B_co", covariant=True)
A = TypeVar("A")
B = TypeVar("B")
T = TypeVar("T")
# mypy's message has these names. If it can't infer Out2, the output of the second stage does not fit the third stage.
Out1 = TypeVar("Out1")
Out2 = TypeVar("Out2")
Out3 = TypeVar("Out3")
Out4 = TypeVar("Out4")
Out5 = TypeVar("Out5")
Out6 = TypeVar("Out6")
Out7 = TypeVar("Out7")
Out8 = TypeVar("Out8")
Out9 = TypeVar("Out9")
Out10 = TypeVar("Out10")
Out11 = TypeVar("Out11")
Out12 = TypeVar("Out12")


#: The kind of items between two stages: bytes, or lists of frames, of wire events (from ``decode``) or of events (from
#: ``accumulate_tool_calls``).
Flow: TypeAlias = Literal["bytes", "frames", "wire events", "events"]
StageFunction: TypeAlias = Callable[[AsyncIterable[A]], AsyncIterator[B]]
"""A stage for ``pipe``: a ``Stage``, or a user-written async generator function."""


class Stage(Generic[A_contra, B_co]):
    """A configured built-in stage. A stage may be used in any number of pipes: each pipe keeps its own state for the
    stage.

    ``pipe`` passes its report to the stage. If you call the stage as a function without a report, the stage makes its
    own report. ``takes`` and ``gives`` say what the stage takes and yields: ``bytes``, ``frames``, ``wire events`` or
    ``events``. A pipe uses ``takes`` and ``gives`` to detect built-in stages that are in the wrong order.
    """

    def __init__(
        self,
        name: str,
        make: Callable[[StreamReport], Machine[A_contra, B_co]],
        *,
        takes: Flow | None = None,
        gives: Flow | None = None,
    ) -> None:
        self.name = name
        self.make = make
        self.takes = takes
        self.gives = gives

    plain: ClassVar[bool] = True  #: True if another stage may drive this stage's machine together with its own machine

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.plain = cls.__call__ is Stage.__call__ and cls.over is Stage.over

    def __call__(
        self, source: AsyncIterable[A_contra], report: StreamReport | None = None
    ) -> AsyncGenerator[B_co, None]:
        return self.over(source, report if report is not None else StreamReport())

    def over(
        self,
        source: AsyncIterable[Any],
        report: StreamReport,
        before: Sequence[Stage[Any, Any]] = (),
        profiler: Profiler | None = None,
    ) -> AsyncGenerator[B_co, None]:
        """Return a generator over ``source`` that drives this stage and the stages right ``before`` it."""
        stages = [*before, self]
        links: Sequence[Any] = [stage.make(report) for stage in stages]
        if profiler is not None:
            links = profiler.machines(stages, links)
        return drive(Chain(*links), source, stages[0])

    def __repr__(self) -> str:
        return f"<stage {self.name}>"


class Joined(Stage[A_contra, B_co]):
    """Several built-in stages as one. Entering a pipe takes half as long with one ``Joined`` stage."""

    def __init__(self, *stages: Stage[Any, Any]) -> None:
        *self._before, self._last = stages
        super().__init__(self._last.name, self._last.make, takes=stages[0].takes, gives=self._last.gives)

    def over(
        self,
        source: AsyncIterable[Any],
        report: StreamReport,
        before: Sequence[Stage[Any, Any]] = (),
        profiler: Profiler | None = None,
    ) -> AsyncGenerator[B_co, None]:
        return self._last.over(source, report, [*before, *self._before], profiler)


def stage_within(
    flow: Flow, name: str, make: Callable[[StreamReport], Machine[list[T], list[T]]]
) -> Stage[list[T], list[T]]:
    """Return a stage whose machines take and give the same ``flow``."""
    return Stage(name, make, takes=flow, gives=flow)


async def drive(chain: Chain, source: AsyncIterable[Any], first: Stage[Any, Any]) -> AsyncGenerator[Any, None]:
    """Run machines over ``source``. This is the body of every built-in stage except ``encode``.

    An error of the input or of a machine is raised after the held items were yielded; cancellation and closing pass at once.
    Raise UsageError if ``first``, the stage of the first machine, can't take an item.
    """
    out: list[Any] = []
    chain.emit = out.append
    unchecked = first.takes is not None
    try:
        async for item in source:
            if unchecked:  # only the first item, and one that made a machine fail: a check of each would cost time
                check_item(item, first.name, first.takes, source)
                unchecked = not item
            chain.push_batch(item)
            if out:
                # ``_flow``, inlined: its call took a tenth of what a user's stage after this one costs
                yield b"".join(out) if type(out[0]) is bytes else out[:]
                out.clear()
            if chain.fault is not None:
                check_item(item, first.name, first.takes, source, every=True)
                raise chain.fault
        chain.push_end()
        if chain.fault is not None:
            raise chain.fault
    except Exception:  # not BaseException: nothing may be yielded after CancelledError or GeneratorExit
        chain.push_rest()
        if out:
            yield _flow(out)
        raise
    if out:
        yield _flow(out)


def _flow(out: list[Any]) -> Any:
    """Return what to yield for the results of one read: bytes joined, anything else as a batch."""
    return b"".join(out) if isinstance(out[0], bytes) else out[:]


#: Modules whose objects are never in the lists of a flow: objects of another flow, and built-in types.
_WRONG: Final[Mapping[str, Collection[str]]] = {
    "frames": {"builtins", "streamkit.events"},
    "wire events": {"builtins", "streamkit.framing.frame"},
}
_ORDER: Final = "the order is parse_sse (or another framing), decode, accumulate_tool_calls, check_json, encode"


def check_item(item: Any, name: str, flow: Flow | None, source: object, *, every: bool = False) -> None:
    """Raise UsageError if ``source`` yielded an item that is not ``flow``, which the stage ``name`` takes.

    Of a list, only the first member is checked, unless ``every`` is True. The error names ``source`` as the stage that raised.
    """
    is_bytes = isinstance(item, bytes | bytearray)
    if flow is None or (is_bytes and flow == "bytes"):
        return
    takes, found, hint = str(flow), type(item).__qualname__, ""
    if flow == "bytes":
        hint = "encode the text, as in text.encode()" if isinstance(item, str) else "yield bytes"
    elif is_bytes:
        hint = _ORDER
    elif isinstance(item, str | Mapping) or not isinstance(item, Iterable):
        takes, hint = f"lists of {flow}", "yield a list, as in yield [event]"
    elif isinstance(item, Sequence):
        for each in item if every else item[:1]:
            module = type(each).__module__
            if not is_event(each) if flow == "events" else module in _WRONG[flow]:
                found = f"lists of {type(each).__qualname__}"
                hint = _ORDER if module.startswith("streamkit.") else f"yield lists of {flow}, as in yield [event]"
                break
    if hint:
        error = UsageError(f"{name} takes {takes}, but {name_of(source)} before it yields {found}: {hint}")
        if flow == "events":
            blame(error, name_of(source))
        raise error


def discard(value: object) -> None:
    """Close a coroutine that will not be awaited; otherwise Python warns about it. Do nothing with another value."""
    if isinstance(value, CoroutineType):
        value.close()


def check_source(source: Any) -> None:
    """Raise UsageError for an object that is not an async iterable."""
    if hasattr(source, "__aiter__"):
        return
    hint = "write an async generator, or streamkit.source_of([…]) for bytes in memory"
    if isinstance(source, Stage):
        hint = "write a source before the stages"
    elif isinstance(source, CoroutineType):
        hint = "await it first"
        discard(source)
    elif callable(source):
        hint = f"write {name_of(source)}(…)"
    raise UsageError(f"a source must be an async iterable, not {type(source).__qualname__}: {hint}")


def _begun(stage: Any, source: AsyncIterator[Any]) -> AsyncIterator[Any]:
    """Return the iterator of a user-written stage. Raise UsageError for an object that is not a stage."""
    try:
        iterator = stage(source)
    except (TypeError, AttributeError, UsageError) as error:  # what a function raises that expects something else
        _check_stage(stage)
        name = name_of(stage)
        raise UsageError(
            f"{name} is not a stage: write an async generator function of one argument, async def with yield; "
            f"if {name} makes one, write {name}(…)"
        ) from error
    if not hasattr(iterator, "__anext__"):
        discard(iterator)
        _check_stage(stage)
        name, kind = name_of(stage), type(iterator).__qualname__
        made = f": write {name}(…)" if callable(iterator) and name != "<lambda>" else ""
        raise UsageError(
            f"a stage must be an async generator function, async def with yield; {name} returned {kind}{made}"
        )
    return cast("AsyncIterator[Any]", iterator)


def _check_stage(stage: Any) -> None:
    """Raise UsageError for an object that can't be called, or that makes a stage instead of being one."""
    if not callable(stage):
        hint = "; write *stages" if isinstance(stage, list | tuple) else ""
        raise UsageError(f"a stage must be an async generator function, not {quoted(stage)}{hint}") from None
    if "Stage[" in str(getattr(stage, "__annotations__", {}).get("return")):
        name = name_of(stage)
        raise UsageError(f"{name} is not a stage, but makes one: write {name}(…)") from None


class Pipe(Generic[T]):
    """The chain of stages that ``pipe`` returns. A pipe is an async context manager and an async iterator.

    Enter the pipe, iterate over the pipe, and leave it in the same task. ``report`` is filled in while the stream is
    read. If a user-written stage raises an exception, the exception gets a note with the stage's name.
    """

    _own: tuple[AsyncIterator[Any], ...] = ()  # the iterators of user-written stages

    def __init__(
        self,
        source: AsyncIterable[Any],
        stages: tuple[StageFunction[Any, Any], ...],
        report: StreamReport | None,
        *,
        timings: bool = False,
    ) -> None:
        self.report = report if report is not None else StreamReport()
        self._profiler = Profiler() if timings else None
        self._source = source
        self._stages = stages
        self._iterators: list[AsyncIterator[Any]] = []
        self._left = False

    async def __aenter__(self) -> Pipe[T]:
        if self._iterators:
            raise UsageError("a pipe can be entered only once; create another with pipe(…)")
        try:
            iterator, profiler = aiter(self._source), self._profiler
        except TypeError:
            check_source(self._source)
            raise
        self._iterators.append(iterator)
        if profiler is not None:
            iterator = profiler.source(iterator)
        before: list[Stage[Any, Any]] = []  # stages that the next stage drives together with itself
        try:
            for stage, following in zip(self._stages, (*self._stages[1:], None), strict=False):
                if isinstance(stage, Stage) and stage.plain and isinstance(following, Stage):
                    before.append(stage)
                    continue
                iterator = (
                    stage.over(iterator, self.report, before, profiler)
                    if isinstance(stage, Stage)
                    else _begun(stage, iterator)
                )
                before = []
                self._iterators.append(iterator)
                if not isinstance(stage, Stage):
                    self._own += (iterator,)
                if profiler is not None:
                    iterator = (
                        profiler.driver(iterator) if isinstance(stage, Stage) else profiler.stage(iterator, stage)
                    )
        except BaseException:
            await self.__aexit__()
            raise
        if profiler is not None:
            self._iterators.append(iterator)
        self._stages = ()  # dropping the stages makes an idle pipe 2 KiB smaller
        return self

    def __aiter__(self) -> AsyncIterator[T]:
        return self._iterators[-1] if self._iterators else self  # the last iterator itself: saves 0.3 µs for each read

    async def __anext__(self) -> T:
        if not self._iterators:
            raise UsageError("enter the pipe first: async with pipe(…) as stream: async for batch in stream: …")
        return cast("T", await anext(self._iterators[-1]))

    async def __aexit__(
        self, _type: object = None, error: BaseException | None = None, _traceback: object = None
    ) -> None:
        if not self._left:
            self._left = True
            if isinstance(error, Exception) and self._own:
                self._blame(error)
            if self._profiler is not None:
                self.report.timings += self._profiler.timings()
            await close_each(*reversed(self._iterators), self._source)

    def _blame(self, error: Exception) -> None:
        """Add a note to the error if a user-written stage raised it: if the innermost iterator that it passed is a stage's."""
        iterators = {_code_of(iterator): iterator for iterator in self._iterators}
        passed = [iterators[frame.f_code] for frame, _ in walk_tb(error.__traceback__) if frame.f_code in iterators]
        if passed and passed[-1] in self._own:
            blame(error, getattr(passed[-1], "__qualname__", type(passed[-1]).__qualname__))


def _code_of(iterator: AsyncIterator[Any]) -> object:
    """Return the code that runs at each step of an iterator: a generator's own, or that of ``__anext__``."""
    code: object = getattr(iterator, "ag_code", None)
    return code or getattr(type(iterator).__anext__, "__code__", None)


def _check_order(stages: Sequence[StageFunction[Any, Any]]) -> None:
    """Raise UsageError if a built-in stage can't follow the one before it."""
    for one, other in pairwise(stages):
        if (
            isinstance(one, Stage)
            and isinstance(other, Stage)
            and one.gives != other.takes
            and one.gives
            and other.takes
        ):
            raise UsageError(f"{other.name} takes {other.takes}, but {one.name} before it yields {one.gives}: {_ORDER}")


async def source_of(items: Iterable[T]) -> AsyncIterator[T]:
    """Turn ``items`` into an async iterator that never waits. Each item is the bytes of one read, or a batch of events."""
    for item in items:
        yield item


async def close_each(*owned: object) -> None:
    """Close each object that has ``aclose``, in this order and once each: a source is often its own iterator.

    Close the rest even if one fails to close. Then raise that error, or several errors as one group.
    """
    errors: list[BaseException] = []
    for thing in {id(thing): thing for thing in owned}.values():
        close = getattr(thing, "aclose", None)
        if close is not None:
            try:
                await close()
            except BaseException as error:  # noqa: BLE001 - everything else must be closed before it is raised
                errors.append(error)
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise BaseExceptionGroup("several stages failed to close", errors)


class _Options(TypedDict, total=False):
    report: StreamReport | None
    timings: bool


S: TypeAlias = StageFunction[A, B]  # a short name for the overloads


# fmt: off
@overload
def pipe(source: AsyncIterable[T], /, **options: Unpack[_Options]) -> Pipe[T]: ...
@overload
def pipe(source: AsyncIterable[T], s1: S[T, Out1], /, **options: Unpack[_Options]) -> Pipe[Out1]: ...
@overload
def pipe(source: AsyncIterable[T], s1: S[T, Out1], s2: S[Out1, Out2], /, **options: Unpack[_Options]) -> Pipe[Out2]: ...
@overload
def pipe(
    source: AsyncIterable[T], s1: S[T, Out1], s2: S[Out1, Out2], s3: S[Out2, Out3], /, **options: Unpack[_Options]
) -> Pipe[Out3]: ...
@overload
def pipe(
    source: AsyncIterable[T], s1: S[T, Out1], s2: S[Out1, Out2], s3: S[Out2, Out3], s4: S[Out3, Out4], /,
    **options: Unpack[_Options]
) -> Pipe[Out4]: ...
@overload
def pipe(
    source: AsyncIterable[T], s1: S[T, Out1], s2: S[Out1, Out2], s3: S[Out2, Out3], s4: S[Out3, Out4], s5: S[Out4, Out5], /,
    **options: Unpack[_Options]
) -> Pipe[Out5]: ...
@overload
def pipe(
    source: AsyncIterable[T], s1: S[T, Out1], s2: S[Out1, Out2], s3: S[Out2, Out3], s4: S[Out3, Out4], s5: S[Out4, Out5],
    s6: S[Out5, Out6], /, **options: Unpack[_Options]
) -> Pipe[Out6]: ...
@overload
def pipe(
    source: AsyncIterable[T], s1: S[T, Out1], s2: S[Out1, Out2], s3: S[Out2, Out3], s4: S[Out3, Out4], s5: S[Out4, Out5],
    s6: S[Out5, Out6], s7: S[Out6, Out7], /, **options: Unpack[_Options]
) -> Pipe[Out7]: ...
@overload
def pipe(
    source: AsyncIterable[T], s1: S[T, Out1], s2: S[Out1, Out2], s3: S[Out2, Out3], s4: S[Out3, Out4], s5: S[Out4, Out5],
    s6: S[Out5, Out6], s7: S[Out6, Out7], s8: S[Out7, Out8], /, **options: Unpack[_Options]
) -> Pipe[Out8]: ...
@overload
def pipe(
    source: AsyncIterable[T], s1: S[T, Out1], s2: S[Out1, Out2], s3: S[Out2, Out3], s4: S[Out3, Out4], s5: S[Out4, Out5],
    s6: S[Out5, Out6], s7: S[Out6, Out7], s8: S[Out7, Out8], s9: S[Out8, Out9], /, **options: Unpack[_Options]
) -> Pipe[Out9]: ...
@overload
def pipe(
    source: AsyncIterable[T], s1: S[T, Out1], s2: S[Out1, Out2], s3: S[Out2, Out3], s4: S[Out3, Out4], s5: S[Out4, Out5],
    s6: S[Out5, Out6], s7: S[Out6, Out7], s8: S[Out7, Out8], s9: S[Out8, Out9], s10: S[Out9, Out10], /,
    **options: Unpack[_Options]
) -> Pipe[Out10]: ...
@overload
def pipe(
    source: AsyncIterable[T], s1: S[T, Out1], s2: S[Out1, Out2], s3: S[Out2, Out3], s4: S[Out3, Out4], s5: S[Out4, Out5],
    s6: S[Out5, Out6], s7: S[Out6, Out7], s8: S[Out7, Out8], s9: S[Out8, Out9], s10: S[Out9, Out10], s11: S[Out10, Out11], /,
    **options: Unpack[_Options]
) -> Pipe[Out11]: ...
@overload
def pipe(
    source: AsyncIterable[T], s1: S[T, Out1], s2: S[Out1, Out2], s3: S[Out2, Out3], s4: S[Out3, Out4], s5: S[Out4, Out5],
    s6: S[Out5, Out6], s7: S[Out6, Out7], s8: S[Out7, Out8], s9: S[Out8, Out9], s10: S[Out9, Out10], s11: S[Out10, Out11],
    s12: S[Out11, Out12], /, **options: Unpack[_Options]
) -> Pipe[Out12]: ...
# fmt: on
def pipe(
    source: AsyncIterable[Any],
    /,
    *stages: StageFunction[Any, Any],
    report: StreamReport | None = None,
    timings: bool = False,
) -> Pipe[Any]:
    """Chain ``stages`` after ``source``. Enter the returned pipe with ``async with`` and iterate over it.

    The pipe owns every stage and the source. When the ``async with`` block ends, normally or with an error, the pipe
    closes the stages and the source immediately, in the caller's task. A type checker detects stages in the wrong order
    if the pipe has at most twelve stages. For example, if mypy reports that it can't infer ``Out2``, then the third
    stage does not accept the output of the second stage. With ``timings=True``, ``report.timings`` contains the time
    spent in each stage. Raises UsageError if built-in stages are in the wrong order.
    """
    _check_order(stages)
    return Pipe(source, stages, report, timings=timings)
