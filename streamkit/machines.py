"""Machines: the synchronous core of each stage, without I/O.

A machine takes one item by ``push`` and passes each result to ``emit``, which is the ``push`` of the next machine. Deltas need
no event object: they go to a method of ``next``, the next machine. So an item passes all machines before the next item begins,
and a fault stops only the items after it. A machine can also run alone, on batches: ``feed``, ``finish``, ``abandon``. A
plug-in's machine needs only these three.

Source: design.md §2.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from traceback import walk_tb
from typing import Any, Literal, Protocol, TypeVar

from streamkit.events import ReasoningDelta, TextDelta, ToolCallArguments, ToolCallDelta

A_contra = TypeVar("A_contra", contravariant=True)
B_co = TypeVar("B_co", covariant=True)


class Machine(Protocol[A_contra, B_co]):
    """The synchronous object inside a stage. Outputs are batches: a falsy output means that nothing became available."""

    @property
    def fault(self) -> Exception | None:
        """The error that stopped the machine. Set once ``feed`` or ``finish`` has returned the results before the error."""

    def feed(self, item: A_contra, /) -> B_co:
        """Take one item."""

    def finish(self) -> B_co:
        """End the input and return the last results."""

    def abandon(self) -> B_co:
        """Return the items held when the input failed, without a terminator."""


class Link:
    """A machine that emits each result at once. It raises the error that stops it."""

    emit: Callable[[Any], object]  #: receives each result: the ``push`` of the next machine
    #: The next machine. Text, reasoning, fragments of calls and arguments go to its methods without an event object.
    next: Link
    fault: Exception | None = None
    #: ``push_payload`` and ``push_run`` of the next machine, or None. ``push_payload`` takes the payload of a whole event,
    #: without a ``Frame`` object; ``push_run`` takes the payloads of many events (``FrameRun``).
    emit_payload: Callable[[bytes, int, str, str], object] | None = None
    emit_run: Callable[[Any], object] | None = None
    push_payload: Callable[..., Any] | None = None
    push_run: Callable[..., Any] | None = None
    waits = False  #: True if this machine may hold items until the end of a read (``end_read``)
    holds = False  #: True if this machine holds items now
    #: True if this machine joins the deltas of one block within a read. The ``several`` of the machine before is then this
    #: machine's ``hold``: the machine before calls it when a read may have several items, and may also join texts itself.
    joins = False
    #: True if this machine may fail at a text. Frames are then read one by one, so no frame after the failing frame counts.
    reads_texts = False
    several: Callable[[], object] | None = None  #: the ``hold`` of a later machine that joins deltas, or None
    _batched: list[Any] | None = None  # the results of the current batch, if this machine runs alone

    def lead_to(self, emit: Callable[[Any], object]) -> None:
        """Send each result to the function ``emit``."""
        self.emit, self.next = emit, Outlet(emit)

    def push(self, item: Any, /) -> None:
        raise NotImplementedError

    def push_text(self, text: str, choice: int, block: int, /) -> None:
        """Same as ``push`` of a ``TextDelta``. Machines that need no event object override this method and the next three."""
        self.push(TextDelta(text, choice, block))

    def push_reasoning(self, text: str, choice: int, block: int, kind: Literal["raw", "summary"], /) -> None:
        """Same as ``push`` of a ``ReasoningDelta``."""
        self.push(ReasoningDelta(text, choice, block, kind))

    def push_fragment(self, index: int, text: str, choice: int, /) -> None:
        """Same as ``push`` of a ``ToolCallDelta`` that has only an index and text."""
        self.push(ToolCallDelta(index, None, None, text, choice))

    def push_arguments(self, call: int, text: str, choice: int, /) -> None:
        """Same as ``push`` of ``ToolCallArguments``."""
        self.push(ToolCallArguments(call, text, choice))

    def push_batch(self, batch: Any, /) -> None:
        """Take the items of one read. A parser takes the bytes of the read.

        Deltas go to their own methods, which is a quarter of what a user's stage before this machine costs.
        """
        push = self.push
        for item in batch:
            kind = type(item)
            if kind is TextDelta:
                self.push_text(item.text, item.choice, item.block)
            elif kind is ToolCallArguments:
                self.push_arguments(item.call, item.fragment, item.choice)
            else:
                push(item)

    def push_end(self) -> None:
        """End the input and emit the last results."""

    def push_rest(self) -> None:
        """Emit the items held when the input failed, without a terminator."""

    def hold(self) -> None:
        """Prepare for several items in the current read."""

    def end_read(self) -> None:
        """End the current read: emit the items that were held to be joined with later items of the read."""

    def stopped_by(self, error: Exception) -> Exception:
        """Emit the results that precede the ``error`` of this machine. Return the error to raise for the whole stream."""
        return error

    # For a machine that runs alone, on batches.

    def feed(self, batch: Any, /) -> list[Any]:
        return self._batch(self.push_batch, batch)

    def finish(self) -> list[Any]:
        return self._batch(self.push_end)

    def abandon(self) -> list[Any]:
        return self._batch(self.push_rest)

    def _batch(self, work: Callable[..., None], *given: Any) -> list[Any]:
        held = self._batched
        if held is None:
            held = self._batched = []
            self.lead_to(held.append)
        try:
            try:
                work(*given)
            finally:
                self.end_read()
        except Exception as error:  # noqa: BLE001 - the driver raises the error after yielding earlier results
            self.fault = self.fault or self.stopped_by(error)
        out = held[:]
        held.clear()
        return out


class Outlet(Link):
    """The end of a chain. It sends events to a function."""

    def __init__(self, emit: Callable[[Any], object]) -> None:
        self.push = emit  # type: ignore[method-assign,assignment] # saves a call


class Foreign(Link):
    """Adapts a machine that works on batches, such as a plug-in's. Bytes, which encoders return, count as one item."""

    def __init__(self, machine: Machine[Any, Any]) -> None:
        self._machine = machine

    def push(self, item: Any, /) -> None:
        self.push_batch([item])

    def push_batch(self, batch: Any, /) -> None:
        self._gives(self._machine.feed(batch))

    def push_end(self) -> None:
        self._gives(self._machine.finish())

    def push_rest(self) -> None:
        self._gives(self._machine.abandon())

    def _gives(self, output: Any) -> None:
        for item in [output] if isinstance(output, bytes) and output else output:
            self.emit(item)
        if self._machine.fault is not None:
            raise self._machine.fault


class Chain(Link):
    """Several machines as one; each emits to the next.

    An error raised by one machine stops the whole chain and becomes the chain's ``fault``. The failing machine and those after
    it emit the items they hold.
    """

    def __init__(self, *machines: Machine[Any, Any]) -> None:
        self.links = links = [each if isinstance(each, Link) else Foreign(each) for each in machines]
        self.waiting = [link for link in links if link.waits]  #: the links that may hold items until a read is over
        self.fault = None  # set on the instance, where it is found faster: each read looks it up
        for before, link in pairwise(links):
            before.emit, before.next = link.push, link
            if link.push_run is not None:
                before.emit_payload, before.emit_run = link.push_payload, link.push_run
        for link in links:
            if link.joins or link.reads_texts:
                for before in links[: links.index(link)]:
                    if link.joins:
                        before.several = link.hold
                    else:
                        before.emit_run = None

    @property
    def emit(self) -> Callable[[Any], object]:  # the function that the last link emits to
        return self.links[-1].emit

    @emit.setter
    def emit(self, emit: Callable[[Any], object]) -> None:
        self.links[-1].lead_to(emit)

    def push(self, item: Any, /) -> None:
        self._do(self.links[0].push, item)

    def push_batch(self, batch: Any, /) -> None:
        try:  # same as ``_do``, inlined to save a call for each read
            self.links[0].push_batch(batch)
            for link in self.waiting:
                if link.holds:
                    link.end_read()
        except Exception as error:  # noqa: BLE001 - the driver raises the error after yielding the held items
            self.failed(error)

    def push_end(self) -> None:
        try:
            for link in self.links:
                link.push_end()
        except Exception as error:  # noqa: BLE001 - same as in ``push_batch``
            self.failed(error)

    def push_rest(self) -> None:
        if self.fault is None:  # otherwise ``failed`` has emitted the rest
            self._rest(0)

    def end_read(self) -> None:
        for link in self.waiting if self.fault is None else ():
            self._do(link.end_read)

    def _do(self, work: Callable[..., None], *given: Any) -> None:
        try:
            work(*given)
        except Exception as error:  # noqa: BLE001 - same as in ``push_batch``
            self.failed(error)

    def failed(self, error: Exception) -> None:
        """Set the fault. The last machine that was running at the ``error``, and those after it, emit the items they hold."""
        running = {id(frame.f_locals.get("self")) for frame, _ in walk_tb(error.__traceback__)}
        number = max((number for number, link in enumerate(self.links) if id(link) in running), default=0)
        link, later = self.links[number], self.links[number + 1 :]
        try:
            fault = link.stopped_by(error)
            for other in self.waiting:
                if other in later:
                    other.end_read()
        except Exception as first:  # noqa: BLE001 - a later machine failed at an earlier item, so its error comes first
            self.failed(first)
        else:
            self.fault = link.fault = fault
            self._rest(number)

    def _rest(self, first: int) -> None:
        self._end_read(first)
        for link in self.links[first:]:
            with suppress(Exception):  # only the first error counts, which stopped the stream
                link.push_rest()
        self._end_read(first)

    def _end_read(self, first: int) -> None:
        for link in self.waiting:
            if link in self.links[first:]:
                with suppress(Exception):
                    link.end_read()


def link_of(machine: Machine[Any, Any]) -> Link:
    """Return a machine as a link."""
    return machine if isinstance(machine, Link) else Foreign(machine)
