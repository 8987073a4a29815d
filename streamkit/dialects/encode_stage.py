"""The driver of the last stage: what broke the reading is told to the client in the words of its dialect.

``EncodeStage`` is what ``encode`` returns. In a pipe it drives the built-in stages right before it as well: ``EncodedChain``
makes one machine of theirs and the encoder.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Callable, Sequence
from typing import Any

from streamkit.dialects.base import A_contra, ErrorWriter
from streamkit.errors import StreamError
from streamkit.pipeline import Chain, Machine, Stage, allow_runs, machines_of
from streamkit.report import StreamReport


class EncodeStage(Stage[A_contra, bytes]):
    """``encode``'s driver: unlike the others it turns what broke the reading into the dialect's error frame."""

    def __init__(self, name: str, make: Callable[[StreamReport], ErrorWriter[A_contra]]) -> None:
        super().__init__(name, make)
        self.make_encoder = make

    def over(
        self, source: AsyncIterable[Any], report: StreamReport, before: Sequence[Stage[Any, Any]] = ()
    ) -> AsyncGenerator[bytes, None]:
        encoder: ErrorWriter[Any] = self.make_encoder(report)
        if before:
            machines = machines_of(before, report)
            allow_runs([*machines, encoder])
            encoder = EncodedChain(machines[0] if len(machines) == 1 else Chain(*machines), encoder)
        return _drive(encoder, source, report)


async def _drive(
    encoder: ErrorWriter[A_contra], source: AsyncIterable[A_contra], report: StreamReport
) -> AsyncGenerator[bytes, None]:
    try:
        async for item in source:
            if output := encoder.feed(item):
                yield output
            if encoder.fault is not None:
                raise encoder.fault
        if output := encoder.finish():
            yield output
        if encoder.fault is not None:
            raise encoder.fault
    except StreamError as error:  # the input's fault: told to the client in its own words, and to the report
        output = encoder.fail(error)
        if report.clean and encoder.ended:  # the stream was whole before this
            report.repair("fault_after_end")
        else:
            report.failed(error)
        if output:
            yield output
    except Exception as error:  # somebody's bug, a transport nobody adapted: the client learns that much, no more
        report.failed(error)
        output = encoder.fail(error)
        report.clean = False  # though the events may have been whole by then
        if output:
            yield output
        raise


class EncodedChain:
    """The machines before an encoder and the encoder as one machine."""

    def __init__(self, before: Machine[Any, Any], encoder: ErrorWriter[Any]) -> None:
        self.fault: Exception | None = None
        self._before = before
        self._encoder = encoder
        self._encoding = False

    @property
    def ended(self) -> bool:
        return self._encoder.ended

    def feed(self, item: Any, /) -> bytes:
        batch = self._before.feed(item)
        output = self._encoded(batch) if batch else b""
        self.fault = self._encoder.fault or self._before.fault
        return output

    def finish(self) -> bytes:
        output = self._encoded(self._before.finish())
        self.fault = self._encoder.fault or self._before.fault
        if self.fault is None:
            output += self._encoder.finish()
            self.fault = self._encoder.fault
        return output

    def abandon(self) -> bytes:
        return self._encoded(self._before.abandon()) + self._encoder.abandon()

    def fail(self, error: Exception) -> bytes:
        """What the machines before hold, unless it is the encoder that failed; then the dialect's error frame."""
        output = b""
        if self._encoder.fault is None and not self._encoding:
            output = self._encoded(self._before.abandon())
        return output + self._encoder.fail(error)

    def _encoded(self, batch: Any) -> bytes:
        if not batch:
            return b""
        self._encoding = True  # for as long as the encoder has not raised
        output = self._encoder.feed(batch)
        self._encoding = False
        return output
