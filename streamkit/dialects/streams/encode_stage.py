"""The driver of the last stage: what broke the reading is told to the client in the words of its dialect.

``EncodeStage`` is what ``encode`` returns. In a pipe it drives the built-in stages right before it as well.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Callable, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

from streamkit.errors import StreamError
from streamkit.pipeline import Chain, Flow, Machine, Stage, allow_runs
from streamkit.profiler import Profiler
from streamkit.report import StreamReport

#: From a read to what is written of it; None where it has to go through the machines.
Step: TypeAlias = Callable[[Any], bytes | None]
#: Gives such a function for the next read, if there is one (``fast_path/one_step.py``).
NextStep: TypeAlias = Callable[[], Step | None]
A_contra = TypeVar("A_contra", contravariant=True)


class ErrorWriter(Machine[A_contra, bytes], Protocol[A_contra]):
    """A machine whose output can say that the reading failed: an encoder."""

    @property
    def ended(self) -> bool:
        """Whether the terminator, or an error frame, was written."""

    def fail(self, error: Exception) -> bytes:
        """What is held, then the dialect's own error frame and no success terminator."""


class EncodeStage(Stage[A_contra, bytes]):
    """``encode``'s driver: unlike the others it turns what broke the reading into the dialect's error frame."""

    def __init__(
        self,
        name: str,
        make: Callable[[StreamReport], ErrorWriter[A_contra]],
        *,
        takes: Flow | None = None,
        one_step: Callable[[Sequence[Machine[Any, Any]], ErrorWriter[A_contra]], NextStep | None] | None = None,
    ) -> None:
        super().__init__(name, make, takes=takes, gives="bytes")
        self.make_encoder = make
        self._one_step = one_step

    def over(
        self,
        source: AsyncIterable[Any],
        report: StreamReport,
        before: Sequence[Stage[Any, Any]] = (),
        profiler: Profiler | None = None,
    ) -> AsyncGenerator[bytes, None]:
        encoder = self.make_encoder(report)
        machines = [stage.make(report) for stage in before]
        allow_runs([*machines, encoder])
        next_step = None if self._one_step is None else self._one_step(machines, encoder)
        if profiler is not None:
            *machines, encoder = profiler.machines([*before, self], [*machines, encoder])
            next_step = None if next_step is None else profiler.steps(next_step)
        return _drive(Chain(*machines), encoder, source, report, next_step)


async def _drive(
    before: Chain,
    encoder: ErrorWriter[Any],
    source: AsyncIterable[Any],
    report: StreamReport,
    next_step: NextStep | None,
) -> AsyncGenerator[bytes, None]:
    """Run the machines ``before`` the encoder, of which there may be none, and the encoder over ``source``."""
    encoding = False  # also behind an exception of the encoder's
    step: Step | None = None
    try:
        async for item in source:
            if step is not None and (output := step(item)) is not None:
                if output:
                    yield output
                if encoder.fault is None:
                    continue
                raise encoder.fault
            if batch := before.feed(item):
                encoding = True
                output = encoder.feed(batch)
                encoding = False
                if output:
                    yield output
            if (fault := encoder.fault or before.fault) is not None:
                raise fault
            if next_step is not None:
                step = next_step()
            batch = output = None  # a pipe that waits holds nothing of its last read: a kilobyte
        batch = before.finish()
        encoding = True
        output, fault = _last(before, encoder, batch)
        encoding = False
        if output:
            yield output
        if fault is not None:
            raise fault
    except StreamError as error:  # the input's fault: told to the client in its own words, and to the report
        output = _failed(before, encoder, error, encoding=encoding)
        if report.clean and encoder.ended:  # the stream was whole before this
            report.repair("fault_after_end")
        else:
            report.failed(error)
        if output:
            yield output
    except Exception as error:  # somebody's bug, a transport nobody adapted: the client learns that much, no more
        report.failed(error)
        output = _failed(before, encoder, error, encoding=encoding)
        report.clean = False  # though the events may have been whole by then
        if output:
            yield output
        raise


def _last(before: Chain, encoder: ErrorWriter[Any], batch: list[Any]) -> tuple[bytes, Exception | None]:
    """What is written of the last ``batch`` and of the end, and what failed meanwhile."""
    output = encoder.feed(batch) if batch else b""
    fault = encoder.fault or before.fault
    if fault is None:
        output += encoder.finish()
        fault = encoder.fault
    return output, fault


def _failed(before: Chain, encoder: ErrorWriter[Any], error: Exception, *, encoding: bool) -> bytes:
    """What the machines before hold, unless it is the encoder that failed; then the dialect's error frame."""
    output = b""
    if encoder.fault is None and not encoding and (held := before.abandon()):
        output = encoder.feed(held)
    return output + encoder.fail(error)
