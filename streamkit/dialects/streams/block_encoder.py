"""What encoders of dialects with content blocks share, if one block is open at a time.

``BlockEncoder`` decides to which block each event belongs, ``BlockQueue`` the order of blocks. Blocks keep the order in which
they were first mentioned. The first block is open, and is written as it grows. Content of later blocks is held until they
open; the held arguments of a call are then written as one delta. If another block waits, the open block is closed as soon as
possible: text and reasoning at once, a call when it has ended or when its arguments are one complete object other than ``{}``
(which may be a prefix). Arguments after that object are late, even if they arrive with the closing bracket: they are kept for
the report. Opaque reasoning of another vendor is written sealed, as a signature or as a separate block
(``vocabulary/sealed_reasoning.py``).

The dialect defines the form of starts, deltas and stops, and the index of a block when it opens. The encoder's ``begin`` is
called before the first block. The queue refers to the encoder weakly: a reference cycle would delay the release of memory.

Source: design.md §5; quirks.md R9, R14 and §8.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, TypeAlias
from weakref import proxy

import orjson
from attrs import evolve

from streamkit.dialects.profiles import Encoding
from streamkit.dialects.streams.event_encoder import EventEncoder, OneChoiceEncoder, wrapped_input
from streamkit.dialects.vocabulary.sealed_reasoning import Kind, seal
from streamkit.errors import HeldTooLong
from streamkit.events import (
    Opaque,
    ReasoningDelta,
    ReasoningOpaque,
    ReasoningSignature,
    RefusalDelta,
    ResponseFinished,
    ResponseStarted,
    TextDelta,
    ToolCallArguments,
    ToolCallFinished,
    ToolCallStarted,
)
from streamkit.report import StreamReport
from streamkit.tool_calls.object_scanner import LazyScanner, TextBuffer

BEGINNING = 16  #: This many characters of a call's arguments are enough to distinguish ``{}`` from a larger object.
OBJECT_ENDS = frozenset("} \t\n\r")  #: characters that may end the last fragment of a complete object
#: The kind of a block, and its number among blocks of that kind: the source's label of the block, or the call's number.
Key: TypeAlias = tuple[str, int]


class QueuedBlock:
    """A block to write, and the content of it that waits until the block opens.

    ``start`` is the block's part of the start event, as JSON. ``needs_end`` is set for a call or a server's block: such a
    block stays open until it ends, even if another block waits.
    """

    # These are class attributes until an instance sets them, so that a block is made in a third of the time.
    index = -1  #: index on the wire, after the block opened
    is_custom = False  #: a call of a custom tool, which is written as a function call when it is complete
    ended = False  #: whether the source ended the block, so that no more content arrives
    closed = False
    held: list[bytes] | tuple[()] = ()  #: deltas, as JSON, that wait until the block opens
    waiting: TextBuffer | None = None  #: call arguments that wait until the block opens
    #: Parts of the block's signature. They are joined and written directly before the stop, in dialects with signatures.
    signature: list[str] | tuple[()] = ()
    signer = ""  #: the vendor of the signature, if not the dialect's own
    scanner: LazyScanner | None = None  #: scans the arguments of a call
    beginning = ""  #: the beginning of a call's arguments, to distinguish ``{}`` from a larger object
    late: TextBuffer | None = None  #: arguments that cannot be written because the block had to be closed

    def __init__(self, key: Key, start: bytes, *, needs_end: bool = False) -> None:
        self.key = key
        self.start = start
        self.needs_end = needs_end

    def add_signature(self, part: str) -> None:
        self.signature = self.signature or []
        self.signature.append(part)

    def whole_signature(self) -> str:
        """Return the whole signature; sealed (base64 with the vendor's name) if it is another vendor's."""
        signature = "".join(self.signature)
        return seal("reasoning", self.signer, signature) if self.signer else signature

    @property
    def may_close(self) -> bool:
        """Return whether the block may be closed now, because another block waits."""
        if self.ended or not self.needs_end:
            return True
        if self.scanner is None or not self.scanner.complete_object:
            return False
        return "".join(self.beginning.split()) != "{}"


class BlockQueue:
    """The queue of blocks. Dialects define ``write_start``, ``write_delta`` and ``write_stop``, which call ``write``."""

    #: For each kind of block that has no start event in the source: its part of the start event to write, as JSON.
    starts: ClassVar[Mapping[str, bytes]]
    #: A fragment of call arguments for ``write_delta``, with ``%b`` in place of the text as JSON.
    arguments_template: ClassVar[bytes] = b""

    current: QueuedBlock | None = None  #: the open block
    #: Set if more text of the open block may be written without the queue: choice, label and, for reasoning, kind of the
    #: block.
    goes_on: tuple[Any, ...] | None = None
    _held_chars = 0
    _next_index = 0

    def __init__(self, encoder: EventEncoder) -> None:
        self._encoder = proxy(encoder)
        self.write = encoder.parts.append
        self.limits = encoder.encoding.limits
        self.queue: list[QueuedBlock] = []  #: waiting blocks; a list, because an empty deque takes 760 bytes

    # Subclasses define the following methods.

    def write_start(self, block: QueuedBlock) -> None:
        """Write the start of a block, and give it an index."""
        raise NotImplementedError

    def write_delta(self, block: QueuedBlock, delta: bytes) -> None:
        raise NotImplementedError

    def write_stop(self, block: QueuedBlock) -> None:
        raise NotImplementedError

    def arguments_delta(self, fragment: str) -> bytes:
        """Return a fragment of call arguments in the form that ``write_delta`` takes."""
        return self.arguments_template % orjson.dumps(fragment)

    def write_fragment(self, block: QueuedBlock, fragment: str) -> None:
        self.write_delta(block, self.arguments_delta(fragment))

    # The following methods are the same in all dialects.

    def give_index(self, block: QueuedBlock) -> None:
        """Give the next index to a block that starts. Indexes begin at 0."""
        block.index = self._next_index
        self._next_index += 1

    @property
    def last(self) -> QueuedBlock | None:
        """The block that was mentioned last; None if it is already closed."""
        return self.queue[-1] if self.queue else self.current

    def find(self, key: Key) -> QueuedBlock | None:
        """Return the open or waiting block with this key, or None."""
        if self.current is not None and self.current.key == key:
            return self.current
        return next((block for block in self.queue if block.key == key), None)

    def add(self, key: Key, start: bytes, *, needs_end: bool = False) -> QueuedBlock:
        """Add a new block. It opens as soon as the blocks before it may close."""
        block = QueuedBlock(key, start, needs_end=needs_end)
        self.goes_on = None
        before = self.current
        if self.queue or (before is not None and before.needs_end):
            self.queue.append(block)
            self._advance()
            return block
        if before is None:
            self._encoder.begin()
        else:
            self._close()
        self.current = block
        self.write_start(block)
        return block

    def text(self, key: Key, delta: bytes) -> None:
        """Write or hold a delta of text or reasoning: of the last block if the key agrees, else of a new block."""
        block = self.queue[-1] if self.queue else self.current  # ``last`` and ``delta``, inlined to save two calls
        if block is None or block.key != key or block.ended:
            block = self.add(key, self.starts[key[0]])
        if block is self.current:
            self.write_delta(block, delta)
        else:
            self.delta(block, delta)

    def arguments(self, block: QueuedBlock, fragment: str) -> None:
        """Write or hold a fragment of a call's arguments."""
        if block is not self.current:  # ``hold``, inlined: with interleaved calls, most fragments wait
            waiting = block.waiting
            if waiting is None:
                waiting = block.waiting = TextBuffer()
            self._held_chars += len(fragment)
            if self._held_chars > self.limits.held_chars:
                raise HeldTooLong(self.limits.held_chars)
            waiting.append(fragment)
            return
        if not self.queue and len(block.beginning) >= BEGINNING and block.scanner is not None:  # the usual case
            block.scanner.append(fragment)
            self.write_fragment(block, fragment)
            return
        self._write_arguments(block, fragment)
        if self.queue and (fragment[-1:] in OBJECT_ENDS or block.late is not None):
            self._advance()

    def _write_arguments(self, block: QueuedBlock, text: str) -> None:
        if block.scanner is None:
            block.scanner = LazyScanner(self.limits.json_depth)
        late = ""
        if not self.queue or not 0 <= text.find("}") < len(text) - 1:
            block.scanner.append(text)
        elif (end := block.scanner.append_to_end(text)) is not None and end < len(text):
            if "".join((block.beginning + text[:end][:BEGINNING]).split()) == "{}":
                block.scanner.append(text[end:])
            else:
                text, late = text[:end], text[end:]
        if len(block.beginning) < BEGINNING:
            block.beginning += text[:BEGINNING]
        self.write_fragment(block, text)
        if late:
            self.keep_late(block, late)

    def keep_late(self, block: QueuedBlock, text: str) -> None:
        """Keep arguments for the report, which belong to a call whose block is closed or must be closed."""
        self.hold(len(text))
        if block.late is None:
            block.late = TextBuffer()
        block.late.append(text)

    def take_late(self, block: QueuedBlock) -> str:
        """Return the arguments that arrived too late; empty if there are none."""
        late, block.late = block.late, None
        if late is None:
            return ""
        self._held_chars -= late.chars
        return late.whole()

    def delta(self, block: QueuedBlock, delta: bytes) -> None:
        """Write a delta of a block that is not closed, or hold it until the block opens."""
        if block is self.current:
            self.write_delta(block, delta)
            return
        self.hold(len(delta))
        block.held = block.held or []
        block.held.append(delta)

    def hold(self, size: int) -> None:
        """Count characters that are held back. Raises HeldTooLong."""
        self._held_chars += size
        if self._held_chars > self.limits.held_chars:
            raise HeldTooLong(self.limits.held_chars)

    def end(self, block: QueuedBlock) -> None:
        """Mark a block as ended, because no more content arrives for it."""
        block.ended = True
        if block is self.current:
            self._close()
            if self.queue:
                self._advance()

    def finish(self) -> None:
        """Write and close all blocks, because the response is complete."""
        if self.current is not None:
            self.current.ended = True
        if self.queue:
            for block in self.queue:
                block.ended = True
            self._advance()
        if self.current is not None:
            self._close()

    def flush(self, *, drop: set[Key]) -> None:
        """Write all held content after a failed stream, except the blocks in ``drop``.

        The open block is closed only if another block is written after it: a reader may run a call whose block was closed.
        """
        self.goes_on = None
        waiting = [block for block in self.queue if block.key not in drop]
        self.queue.clear()
        for block in waiting:
            self._close()
            self._open_block(block)

    def _advance(self) -> None:
        while self.queue:
            if self.current is not None and not self.current.may_close:
                return
            self._close()
            self._open_block(self.queue.pop(0))
            if self.current is not None and self.current.ended and not self.queue:
                self._close()

    def _open_block(self, block: QueuedBlock) -> None:
        self.current = block
        self.write_start(block)
        for delta in block.held:
            self._held_chars -= len(delta)
            self.write_delta(block, delta)
        block.held = ()
        if block.waiting is not None:
            text, block.waiting = block.waiting.take(), None
            self._held_chars -= len(text)
            self._write_arguments(block, text)

    def _close(self) -> None:
        block, self.current = self.current, None
        self.goes_on = None
        if block is not None:
            self.write_stop(block)
            block.closed = True


dumps = orjson.dumps
#: The most extra members that the end of a message may have. An object with more members is not the end of a message.
FEW = 64


class BlockEncoder(OneChoiceEncoder):
    """An encoder of a dialect with content blocks, of which one is open at a time."""

    writer: ClassVar[type[BlockQueue]]  #: the dialect's class of queue
    #: The dialect's own vendor. Its signatures are written unchanged, and other vendors' are sealed.
    signer: ClassVar[str]
    inexact_stops: ClassVar[frozenset[str]] = frozenset()  #: stop reasons for which the dialect has no exact word
    #: Deltas for ``BlockQueue.delta``, with ``%b`` in place of the text.
    text_delta: ClassVar[bytes]
    thinking_delta: ClassVar[bytes]

    _started = False
    _refused = False
    _stop: ResponseFinished | None = None
    _cut: Mapping[Key, ToolCallFinished] = {}

    def __init__(self, encoding: Encoding, report: StreamReport) -> None:
        super().__init__(encoding, report)
        self._blocks = self.writer(self)
        self._calls: dict[int, QueuedBlock] = {}
        self._thought: set[int] = set()  # numbers of the reasoning blocks that were begun

    # Subclasses define the following methods.

    def call_start(self, event: ToolCallStarted) -> bytes:
        """Return the call's part of the start event, as JSON."""
        raise NotImplementedError

    def redacted(self, data: str, number: int) -> None:
        """Write a block of redacted reasoning."""
        raise NotImplementedError

    # -- text and reasoning ----------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Write the start of the response if no event has started it."""
        if not self._started:
            self.response_started(ResponseStarted())

    def push_text(self, text: str, choice: int, block: int, /) -> None:
        self.push(TextDelta(text, choice, block))
        if self._spoke and self._is_open("text", choice, block):
            self._blocks.goes_on = choice, block

    def push_reasoning(self, text: str, choice: int, block: int, kind: Literal["raw", "summary"], /) -> None:
        self.push(ReasoningDelta(text, choice, block, kind))
        if self._is_open("thinking", choice, block):
            self._blocks.goes_on = choice, block, kind

    def push_arguments(self, call: int, text: str, choice: int, /) -> None:
        block = self._calls.get(call)
        if block is None or block.is_custom or block.closed or choice != self._choice or self.ended:
            self.push(ToolCallArguments(call, text, choice))
        else:
            self._blocks.arguments(block, text)

    def _is_open(self, kind: str, choice: int, block: int) -> bool:
        current = self._blocks.current
        is_own = current is not None and current.key == (kind, block) and choice == self._choice
        return is_own and not (self._blocks.queue or self.ended)

    def text(self, event: TextDelta) -> None:
        self._blocks.text(("text", event.block), self.text_delta % dumps(event.text))

    def refusal(self, event: RefusalDelta) -> None:
        if not self._refused:
            self.lose("refusal_as_text")
        self._refused = True
        self._blocks.text(("refusal", event.block), self.text_delta % dumps(event.text))

    def reasoning(self, event: ReasoningDelta) -> None:
        self._thought.add(event.block)
        self._blocks.text(("thinking", event.block), self.thinking_delta % dumps(event.text))

    def signature(self, event: ReasoningSignature, /) -> None:
        if event.on == "text":
            last = self._blocks.last
            kind: Kind = "text" if last is not None and last.key == ("text", event.block) else "part"
            self.redacted(seal(kind, event.vendor, event.blob), event.block)
            return
        key = ("thinking", event.block)
        block = self._blocks.find(key)
        signer = "" if event.vendor == self.signer else event.vendor
        if block is None and event.block not in self._thought:  # the reasoning has no text, only this signature
            block = self._blocks.add(key, self._blocks.starts["thinking"])
            self._thought.add(event.block)
        if block is None or (block.signature and block.signer != signer):
            self.lose("reasoning_signature")  # the block was closed, or has another vendor's signature
            return
        self._blocks.hold(len(event.blob))
        block.add_signature(event.blob)
        block.signer = signer

    def opaque(self, event: ReasoningOpaque, /) -> None:
        own = event.vendor == self.signer and self.takes(event.blob)
        self.redacted(event.blob if own else seal("opaque", event.vendor, event.blob), event.block)

    def takes(self, _redacted: str) -> bool:
        """Return whether the dialect's own redacted reasoning may be written as it is. Subclasses may override this."""
        return True

    def carries(self, _signature: Opaque) -> bool:
        """Whether a call's start contains its signature. Most of these dialects do not sign calls."""
        return False

    # -- tool calls ------------------------------------------------------------------------------------------------

    def call_started(self, event: ToolCallStarted) -> None:
        if event.name and not event.cut:  # readers would take a cut call without arguments for {} (law L3)
            start = self.call_start(event)
            if event.signature is not None and not self.carries(event.signature):  # seal it before the call
                self.redacted(seal("call", event.signature.vendor, event.signature.blob), event.call)
            block = self._calls[event.call] = self._blocks.add(("call", event.call), start, needs_end=True)
            block.is_custom = event.kind == "custom"

    def call_arguments(self, event: ToolCallArguments) -> None:
        block = self._calls.get(event.call)
        if block is None or block.is_custom:
            return  # a nameless call is withheld when it ends
        if block.closed:
            self._blocks.keep_late(block, event.fragment)
        else:
            self._blocks.arguments(block, event.fragment)

    def call_finished(self, event: ToolCallFinished) -> None:
        block = self._calls.get(event.call)
        if block is not None and block.late is not None:
            self._tell_late(block, event)
        if block is None or (block.is_custom and not event.ended):
            self.withhold(event)
        elif not event.ended:
            self._cut = {**self._cut, block.key: event}
        elif not block.closed:
            if block.is_custom:
                self.lose("custom_tool_wrapped")
                self._blocks.arguments(block, wrapped_input(event.arguments))
            self._blocks.end(block)

    def _tell_late(self, block: QueuedBlock, call: ToolCallFinished | None) -> None:
        """Report arguments that arrived after the block of their call was closed. White space is ignored."""
        late = self._blocks.take_late(block)
        if late.strip():
            call_id, name = (None, None) if call is None else (call.id, call.name)
            self.report.withhold("late_arguments", call_id, name, late)

    # -- the end ---------------------------------------------------------------------------------------------------

    def finished(self, event: ResponseFinished) -> None:
        self._stop = event

    def stop(self) -> ResponseFinished:
        """Return the stop reason to write: ``length`` if every call was withheld, as the turn of a truncated call ends."""
        stop = self._stop or ResponseFinished("stop")
        if stop.reason == "tool_calls" and not self._calls:
            self.lose("stop_reason")
            return evolve(stop, reason="length")
        if stop.reason in self.inexact_stops:
            self.lose("stop_reason")
        return stop

    def flush(self) -> None:
        for begun in self._calls.values():
            self._tell_late(begun, None)
        waiting = [key for key in self._cut if (block := self._blocks.find(key)) is not None and block.index < 0]
        for key in waiting:
            self.withhold(self._cut[key], "cut_call")
        self._blocks.flush(drop=set(waiting))
