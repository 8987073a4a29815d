"""Machines, stages, and the pipe that owns their lifetimes.

A **machine** is synchronous: ``feed`` one item, get what became available; ``finish`` at the end of the input; ``abandon``
to hand over what is held when the input failed. It does no I/O. A fault does not lose what came before it: ``feed``
returns that and sets ``fault``, which the driver raises after yielding.

A **stage** is an async generator function over an async iterable. Built-in stages are one short driver around a machine;
a user's own is any function of that shape. In a pipe, built-in stages that follow one another share one driver: their machines
are a ``Chain``. Stages never close their input: **the pipe alone** closes, outermost stage first, then the source, in the task
that left it. (Closing only the outer generator runs the source's ``finally`` later and in another task; ``aclosing`` in each
stage costs a quarter more per hop.)

Source: design.md §2.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Sequence
from itertools import pairwise
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeAlias, TypeVar, cast, overload

from streamkit.errors import UsageError
from streamkit.profiler import Profiler
from streamkit.report import StreamReport
from streamkit.text.quoting import quoted

A_contra = TypeVar("A_contra", contravariant=True)
B_co = TypeVar("B_co", covariant=True)
A = TypeVar("A")
B = TypeVar("B")
T = TypeVar("T")
T1 = TypeVar("T1")
T2 = TypeVar("T2")
T3 = TypeVar("T3")
T4 = TypeVar("T4")
T5 = TypeVar("T5")
T6 = TypeVar("T6")
T7 = TypeVar("T7")


class Machine(Protocol[A_contra, B_co]):
    """The synchronous object inside a stage. Outputs are batches: a falsy one means that nothing became available."""

    @property
    def fault(self) -> Exception | None:
        """What stopped the machine, once ``feed`` or ``finish`` has returned what precedes it."""

    def feed(self, item: A_contra, /) -> B_co:
        """Take one item."""

    def finish(self) -> B_co:
        """The input ended; decide what that means."""

    def abandon(self) -> B_co:
        """The input failed; hand over what is held, without a terminator."""


class Chain:
    """Several machines as one, each feeding the next: the same batches as the stages would yield, without a loop.

    Gain: by itself none but 0.4 KiB of an idle pipe, since a hop costs what this loop does; but machines that share a driver
    hand on runs.

    A fault in the middle keeps its place: what precedes it goes through the rest, then the rest is abandoned. An exception
    that a machine raises is its fault.
    """

    def __init__(self, *machines: Machine[Any, Any]) -> None:
        self.fault: Exception | None = None
        self._machines = machines

    def feed(self, item: Any, /) -> Any:
        for machine in self._machines:  # as ``_through``, a call less for each read
            try:
                item = machine.feed(item)
            except Exception as error:  # noqa: BLE001 - raised by the driver, after what the others held
                return self._failed(machine, [], error)
            if machine.fault is not None:
                return self._failed(machine, item, machine.fault)
            if not item:
                return []
        return item

    def finish(self) -> list[Any]:
        output: list[Any] = []
        for number, machine in enumerate(self._machines):
            try:
                batch = machine.finish()
            except Exception as error:  # noqa: BLE001 - raised by the driver
                return output + self._failed(machine, [], error)
            if machine.fault is not None:
                return output + self._failed(machine, batch, machine.fault)
            if batch:
                output += self._through(self._machines[number + 1 :], batch)
                if self.fault is not None:
                    break
        return output

    def abandon(self) -> list[Any]:
        """What the machines hold, unless a fault of their own has abandoned them already."""
        return self._abandoned(0) if self.fault is None else []

    def _through(self, machines: tuple[Machine[Any, Any], ...], batch: Any) -> Any:
        for machine in machines:
            try:
                batch = machine.feed(batch)
            except Exception as error:  # noqa: BLE001 - raised by the driver, after what the others held
                return self._failed(machine, [], error)
            if machine.fault is not None:
                return self._failed(machine, batch, machine.fault)
            if not batch:
                return []
        return batch

    def _failed(self, machine: Machine[Any, Any], batch: Any, fault: Exception) -> list[Any]:
        """A machine failed, having given ``batch``."""
        number = next(number for number, one in enumerate(self._machines) if one is machine)
        output = list(self._through(self._machines[number + 1 :], batch)) if batch else []
        if self.fault is None:  # not that of a machine behind it, which came first
            self.fault = fault
            self._take_back(number)
            output += self._abandoned(number)
        return output

    def _take_back(self, number: int) -> None:
        """What stands behind the fault of that machine is not counted by those before it, which had read on.

        A machine that fails says how many events of its batch are ``behind`` the one at fault; one before it that has
        ``take_back`` does so, and gives how many of its own batch stand behind what that event came of.
        """
        behind = getattr(self._machines[number], "behind", 0)
        for machine in reversed(self._machines[:number]):
            take_back = getattr(machine, "take_back", None)
            if take_back is None:
                return
            behind = take_back(behind)

    def _abandoned(self, first: int) -> list[Any]:
        output: list[Any] = []
        for number, machine in enumerate(self._machines[first:], first + 1):
            if batch := machine.abandon():
                output += self._through(self._machines[number:], batch)
        return output


#: What flows between stages: bytes, or lists of frames, of what ``decode`` yields, of what ``accumulate_tool_calls`` yields.
Flow: TypeAlias = Literal["bytes", "frames", "wire events", "events"]
StageFunction: TypeAlias = Callable[[AsyncIterable[A]], AsyncIterator[B]]
"""What ``pipe`` takes: a ``Stage``, or an async generator function of a user's own."""


class Stage(Generic[A_contra, B_co]):
    """A configured built-in stage. It may be used in any number of pipes: each gets a machine of its own.

    ``pipe`` hands it the pipe's report; called as a plain function it reports into one that nobody reads. A pipe compares what
    it ``takes`` and ``gives``, where that is said, with its neighbours.
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

    #: Whether another stage may drive this one's machine together with its own.
    plain: ClassVar[bool] = True

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
        """The stage over ``source``, with the stages right ``before`` it in the same generator."""
        machines = machines_of([*before, self], report)
        if profiler is not None:
            machines = profiler.machines([*before, self], machines)
        return drive(machines[0] if len(machines) == 1 else Chain(*machines), source)

    def __repr__(self) -> str:
        return f"<stage {self.name}>"


def machines_of(stages: Sequence[Stage[Any, Any]], report: StreamReport) -> list[Machine[Any, Any]]:
    """The machines of stages that follow one another.

    Between them may flow what no stage yields, *runs* (``FrameRun``, ``DeltaRun``), from a machine that has ``gives_runs`` to
    one that ``takes_runs``; what a machine passes on unseen it takes if the next one does.
    """
    machines = [stage.make(report) for stage in stages]
    allow_runs(machines)
    return machines


def allow_runs(machines: Sequence[Machine[Any, Any]]) -> None:
    """Tell each machine whether the next one takes runs."""
    taken = False
    for machine in reversed(machines):
        if hasattr(machine, "gives_runs"):
            machine.gives_runs = taken
        taken = getattr(machine, "takes_runs", False)


async def drive(machine: Machine[A, B], source: AsyncIterable[A]) -> AsyncGenerator[B, None]:
    """Run a machine over ``source``: the body of every built-in stage but ``encode``.

    Any exception of the input (or of the machine) passes through after what the machine held; cancellation and closing
    pass at once.
    """
    try:
        async for item in source:
            if output := machine.feed(item):
                yield output
            if machine.fault is not None:
                raise machine.fault
        if output := machine.finish():
            yield output
        if machine.fault is not None:
            raise machine.fault
    except Exception:  # not BaseException: nothing is yielded after CancelledError or GeneratorExit
        if output := machine.abandon():
            yield output
        raise


class Pipe(Generic[T]):
    """An entered chain of stages: an async context manager and an async iterator. Made by ``pipe``.

    It is entered, iterated and left by one task. ``report`` is filled in as the stream is read.
    """

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
        self._links: list[AsyncIterator[Any]] = []
        self._left = False

    async def __aenter__(self) -> Pipe[T]:
        if self._links:
            raise UsageError("a pipe can be entered once; make another with pipe(…)")
        link, profiler = aiter(self._source), self._profiler
        self._links.append(link)
        if profiler is not None:
            link = profiler.source(link)
        before: list[Stage[Any, Any]] = []  # stages that the next one drives as well
        try:
            for stage, following in zip(self._stages, (*self._stages[1:], None), strict=False):
                if isinstance(stage, Stage) and stage.plain and isinstance(following, Stage):
                    before.append(stage)
                    continue
                link = stage.over(link, self.report, before, profiler) if isinstance(stage, Stage) else stage(link)
                before = []
                if not hasattr(link, "__anext__"):
                    raise UsageError(
                        f"a stage is an async generator function; {quoted(stage)} gave {type(link).__name__}"
                    )
                self._links.append(link)
                if profiler is not None:
                    link = profiler.driver(link) if isinstance(stage, Stage) else profiler.stage(link, stage)
        except BaseException:
            await self.__aexit__()
            raise
        if profiler is not None:
            self._links.append(link)
        self._stages = ()  # an idle pipe is 2 KiB smaller without how it was made
        return self

    def __aiter__(self) -> AsyncIterator[T]:
        return self._links[-1] if self._links else self  # without a hop: 0.3 µs a read

    async def __anext__(self) -> T:
        if not self._links:
            raise UsageError("enter the pipe first: async with pipe(…) as stream: async for batch in stream: …")
        return cast("T", await anext(self._links[-1]))

    async def __aexit__(self, *_exc: object) -> None:
        if not self._left:
            self._left = True
            if self._profiler is not None:
                self.report.timings += self._profiler.timings()
            await close_each(*reversed(self._links), self._source)


def _check_order(stages: Sequence[StageFunction[Any, Any]]) -> None:
    """Refuse built-in stages that can't follow one another. Raises UsageError."""
    for one, other in pairwise(stages):
        if (
            isinstance(one, Stage)
            and isinstance(other, Stage)
            and one.gives != other.takes
            and one.gives
            and other.takes
        ):
            raise UsageError(
                f"{other.name} takes {other.takes}, and {one.name} in front of it gives {one.gives}: the order is "
                f"parse_sse (or another framing), decode, accumulate_tool_calls, check_json, encode"
            )


async def close_each(*owned: object) -> None:
    """Close what has ``aclose``, in this order and each thing once: a source is often its own iterator.

    Whatever fails to close, the rest is closed. Raises what failed then, several failures as one group.
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


@overload
def pipe(source: AsyncIterable[T], /, *, report: StreamReport | None = None, timings: bool = False) -> Pipe[T]: ...
@overload
def pipe(
    source: AsyncIterable[T], s1: StageFunction[T, T1], /, *, report: StreamReport | None = None, timings: bool = False
) -> Pipe[T1]: ...
@overload
def pipe(
    source: AsyncIterable[T],
    s1: StageFunction[T, T1],
    s2: StageFunction[T1, T2],
    /,
    *,
    report: StreamReport | None = None,
    timings: bool = False,
) -> Pipe[T2]: ...
@overload
def pipe(
    source: AsyncIterable[T],
    s1: StageFunction[T, T1],
    s2: StageFunction[T1, T2],
    s3: StageFunction[T2, T3],
    /,
    *,
    report: StreamReport | None = None,
    timings: bool = False,
) -> Pipe[T3]: ...
@overload
def pipe(
    source: AsyncIterable[T],
    s1: StageFunction[T, T1],
    s2: StageFunction[T1, T2],
    s3: StageFunction[T2, T3],
    s4: StageFunction[T3, T4],
    /,
    *,
    report: StreamReport | None = None,
    timings: bool = False,
) -> Pipe[T4]: ...
@overload
def pipe(
    source: AsyncIterable[T],
    s1: StageFunction[T, T1],
    s2: StageFunction[T1, T2],
    s3: StageFunction[T2, T3],
    s4: StageFunction[T3, T4],
    s5: StageFunction[T4, T5],
    /,
    *,
    report: StreamReport | None = None,
    timings: bool = False,
) -> Pipe[T5]: ...
@overload
def pipe(
    source: AsyncIterable[T],
    s1: StageFunction[T, T1],
    s2: StageFunction[T1, T2],
    s3: StageFunction[T2, T3],
    s4: StageFunction[T3, T4],
    s5: StageFunction[T4, T5],
    s6: StageFunction[T5, T6],
    /,
    *,
    report: StreamReport | None = None,
    timings: bool = False,
) -> Pipe[T6]: ...
@overload
def pipe(
    source: AsyncIterable[T],
    s1: StageFunction[T, T1],
    s2: StageFunction[T1, T2],
    s3: StageFunction[T2, T3],
    s4: StageFunction[T3, T4],
    s5: StageFunction[T4, T5],
    s6: StageFunction[T5, T6],
    s7: StageFunction[T6, T7],
    /,
    *,
    report: StreamReport | None = None,
    timings: bool = False,
) -> Pipe[T7]: ...
def pipe(
    source: AsyncIterable[Any],
    /,
    *stages: StageFunction[Any, Any],
    report: StreamReport | None = None,
    timings: bool = False,
) -> Pipe[Any]:
    """Chain ``stages`` behind ``source``; enter the result with ``async with`` and iterate it.

    The pipe owns every stage and the source: leaving the block closes them at once, in the caller's task, however it was
    left. Up to seven stages are typed, and a wrong order does not type-check. With ``timings=True`` the report says what each
    stage took (``report.timings``). Raises UsageError for built-in stages in a wrong order.
    """
    _check_order(stages)
    return Pipe(source, stages, report, timings=timings)
