"""The driver of the last stage: what broke the reading is told to the client in the words of its dialect.

``EncodeStage`` is what ``encode`` returns. In a pipe it drives the built-in stages right before it as well.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Callable, Sequence
from typing import Any, Protocol, TypeVar

from streamkit.errors import StreamError
from streamkit.machines import Chain, Foreign, Link, Machine
from streamkit.pipeline import Flow, Stage
from streamkit.profiler import Profiler
from streamkit.report import StreamReport

A_contra = TypeVar("A_contra", contravariant=True)


class ErrorWriter(Machine[A_contra, bytes], Protocol[A_contra]):
    """A machine whose output can say that the reading failed: an encoder."""

    @property
    def ended(self) -> bool:
        """Whether the terminator, or an error frame, was written."""

    def fail(self, error: Exception) -> bytes:
        """What is held, then the dialect's own error frame and no success terminator."""


class EncoderLink(Link):
    """An encoder that shares its driver with the machines in front of it."""

    ended: bool  #: as of ``ErrorWriter``
    parts: list[bytes]  #: what was written since ``written`` was asked last

    def written(self) -> bytes:
        """Return the bytes written since the last call."""
        raise NotImplementedError

    def fail(self, error: Exception) -> bytes:
        """As of ``ErrorWriter``."""
        raise NotImplementedError


class ForeignEncoder(Foreign, EncoderLink):
    """An encoder that takes batches, as a plug-in's, or reads, as the pass-through."""

    def __init__(self, machine: ErrorWriter[Any]) -> None:
        super().__init__(machine)
        self._encoder = machine
        self.parts: list[bytes] = []
        self.emit = self.parts.append

    @property
    def ended(self) -> bool:  # type: ignore[override] # it has its own
        return self._encoder.ended

    def push_rest(self) -> None:
        """Nothing: ``fail`` writes what is held."""

    def written(self) -> bytes:
        output = b"".join(self.parts)
        self.parts.clear()
        return output

    def fail(self, error: Exception) -> bytes:
        return self._encoder.fail(error)


class EncodeStage(Stage[A_contra, bytes]):
    """``encode``'s driver: unlike the others it turns what broke the reading into the dialect's error frame."""

    def __init__(
        self, name: str, make: Callable[[StreamReport], ErrorWriter[A_contra]], *, takes: Flow | None = None
    ) -> None:
        super().__init__(name, make, takes=takes, gives="bytes")
        self.make_encoder = make

    def over(
        self,
        source: AsyncIterable[Any],
        report: StreamReport,
        before: Sequence[Stage[Any, Any]] = (),
        profiler: Profiler | None = None,
    ) -> AsyncGenerator[bytes, None]:
        machine: Any = self.make_encoder(report)
        encoder = machine if isinstance(machine, EncoderLink) else ForeignEncoder(machine)
        links: list[Any] = [stage.make(report) for stage in before]
        links.append(encoder)
        if profiler is not None:
            links = profiler.machines([*before, self], links)
            encoder = links[-1]
        return _drive(Chain(*links), encoder, source, report)


async def _drive(
    chain: Chain, encoder: EncoderLink, source: AsyncIterable[Any], report: StreamReport
) -> AsyncGenerator[bytes, None]:
    """Run machines, of which the last one is the encoder, over ``source``."""
    push, waiting, parts = chain.links[0].push_batch, chain.waiting, encoder.parts
    try:
        async for item in source:
            try:  # as ``Chain.push_batch``, a call less for each read
                push(item)
                for link in waiting:
                    if link.holds:
                        link.end_read()
            except Exception as error:  # noqa: BLE001 - raised below, after what the machines held
                chain.failed(error)
            if parts and (output := encoder.written()):
                yield output
                output = b""  # a pipe that waits holds nothing of its last read: a kilobyte
            if chain.fault is not None:
                raise chain.fault
        chain.push_end()
        if output := encoder.written():
            yield output
        if chain.fault is not None:
            raise chain.fault
    except StreamError as error:  # the input's fault: told to the client in its own words, and to the report
        output = _failed(chain, encoder, error)
        if encoder.ended:
            report.interrupted(error)
        else:
            report.failed(error)
        if output:
            yield output
    except Exception as error:  # somebody's bug, a transport nobody adapted: the client learns that much, no more
        report.failed(error)
        output = _failed(chain, encoder, error)
        report.clean = False  # though the events may have been whole by then
        if output:
            yield output
        raise


def _failed(chain: Chain, encoder: EncoderLink, error: Exception) -> bytes:
    """What the machines hold, unless one of them failed, which handed that on; then the dialect's error frame."""
    chain.push_rest()
    return encoder.written() + encoder.fail(error)
