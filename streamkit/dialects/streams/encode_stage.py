"""Drive the encoder as the last stage, and write an error of an earlier stage as an error frame of the client's dialect.

``EncodeStage`` is the return value of ``encode``. In a pipe it also drives the built-in stages directly before it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Callable, Sequence
from typing import Any, Protocol, TypeVar

from streamkit.errors import StreamError
from streamkit.machines import Chain, Foreign, Link, Machine
from streamkit.pipeline import Flow, Stage, check_item
from streamkit.profiler import Profiler
from streamkit.report import StreamReport

A_contra = TypeVar("A_contra", contravariant=True)


class ErrorWriter(Machine[A_contra, bytes], Protocol[A_contra]):
    """A machine, such as an encoder, that can also write an error frame."""

    @property
    def ended(self) -> bool:
        """Whether the success terminator or an error frame was written."""

    def fail(self, error: Exception) -> bytes:
        """Return the bytes that are held, and then the dialect's error frame without a success terminator."""


class EncoderLink(Link):
    """An encoder in the same chain as the machines before it, so that one loop drives them all."""

    ended: bool  #: see ``ErrorWriter``
    parts: list[bytes]  #: the bytes written since the last call of ``written``

    def written(self) -> bytes:
        """Return the bytes written since the last call."""
        raise NotImplementedError

    def fail(self, error: Exception) -> bytes:
        raise NotImplementedError


class ForeignEncoder(Foreign, EncoderLink):
    """Adapts an encoder that takes whole lists of events (a plug-in's) or bytes (the pass-through) to the chain."""

    def __init__(self, machine: ErrorWriter[Any]) -> None:
        super().__init__(machine)
        self._encoder = machine
        self.parts: list[bytes] = []
        self.emit = self.parts.append

    @property
    def ended(self) -> bool:  # type: ignore[override] # it has its own
        return self._encoder.ended

    def push_rest(self) -> None:
        """Do nothing, because ``fail`` writes the held bytes."""

    def written(self) -> bytes:
        output = b"".join(self.parts)
        self.parts.clear()
        return output

    def fail(self, error: Exception) -> bytes:
        return self._encoder.fail(error)


class EncodeStage(Stage[A_contra, bytes]):
    """The stage of ``encode``. Unlike other stages, it turns a reading error into the dialect's error frame."""

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
        return _drive(Chain(*links), encoder, source, report, before[0] if before else self)


async def _drive(
    chain: Chain, encoder: EncoderLink, source: AsyncIterable[Any], report: StreamReport, first: Stage[Any, Any]
) -> AsyncGenerator[bytes, None]:
    """Run machines over ``source``. The last machine is the encoder; the first one is that of the stage ``first``."""
    push, waiting, parts = chain.links[0].push_batch, chain.waiting, encoder.parts
    unchecked = first.takes is not None
    try:
        async for item in source:
            if unchecked:  # as in ``drive``
                if type(item) is not bytes or first.takes != "bytes":
                    check_item(item, first.name, first.takes, source)
                unchecked = not item
            try:  # ``Chain.push_batch``, inlined to save a function call for each network read
                push(item)
                for link in waiting:
                    if link.holds:
                        link.end_read()
            except Exception as error:  # noqa: BLE001 - raised below, after what the machines held
                chain.failed(error)
            if chain.fault is not None:
                check_item(item, first.name, first.takes, source, every=True)
                raise chain.fault  # the output before it is written together with the error frame
            if parts and (output := encoder.written()):
                yield output
                output = b""  # free the last output while the pipe waits
        chain.push_end()
        if chain.fault is not None:
            raise chain.fault
        if output := encoder.written():
            yield output
    except StreamError as error:  # the input is wrong: tell the client in its dialect, and note it in the report
        output = _failed(chain, encoder, error)
        if encoder.ended:
            report.interrupted(error)
        else:
            report.failed(error)
        if output:
            yield output
    except Exception as error:  # a bug, or an unknown transport error: the client only learns that something failed
        report.failed(error)
        output = _failed(chain, encoder, error)
        report.clean = False  # the output failed, even if the events were complete
        if output:
            yield output
        raise


def _failed(chain: Chain, encoder: EncoderLink, error: Exception) -> bytes:
    """Return the held output (unless a machine failed and lost it), and then the dialect's error frame."""
    chain.push_rest()
    return encoder.written() + encoder.fail(error)
