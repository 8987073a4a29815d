"""Content blocks for dialects whose readers want one open at a time: what waits, what may be closed, in which order.

Blocks stand in a queue in the order they were first mentioned. The first is open and written as it grows; what belongs to
the others is held back, and of a call leaves as one delta when its block opens, since all of it leaves then. When another
block waits, the open one is closed as soon as it may be: text and thinking at once, a call when it has ended or when its text
is one complete object other than ``{}`` (which may be a prefix). What comes of a call behind that object is late, whether it
comes with the closing bracket or later: it is kept for the report.

How a start, a delta and a stop look is the dialect's; so is the index that a block gets when it opens. The encoder's ``begin``
is called before the first of them; the queue does not keep the encoder alive, or both would wait for the collector.

Source: design.md §5, quirks.md R9 and §8.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, TypeAlias
from weakref import proxy

import orjson

from streamkit.dialects.streams.event_encoder import EventEncoder
from streamkit.dialects.vocabulary.sealed_reasoning import seal
from streamkit.errors import HeldTooLong
from streamkit.tool_calls.text_buffer import LazyScanner, TextBuffer

#: Characters of a call's arguments that tell ``{}`` from a larger object.
BEGINNING = 16
#: What the last fragment of a complete object ends with.
OBJECT_ENDS = frozenset("} \t\n\r")
#: Kind, and what tells blocks of a kind apart: the label of the source's block, or the number of the call.
Key: TypeAlias = tuple[str, int]


class Block:
    """A block that is to be written, and what of it waits.

    ``start``: what the start event says of it, as JSON. ``needs_end``: a call, or a block of the server's: it is not over
    because another waits.
    """

    # Of the class until they change: a block is made in a third of the time.
    index = -1  #: on the wire, once opened
    is_custom = False  #: a call of a custom tool, which is written as one of a function, once it is whole
    ended = False  #: nothing more will come
    closed = False
    held: list[bytes] | tuple[()] = ()  #: deltas, as JSON, that wait for the block to open
    waiting: TextBuffer | None = None  #: a call's arguments that do
    #: Written whole, right before the stop, where the dialect has signatures.
    signature: list[str] | tuple[()] = ()
    signer = ""  #: the vendor of the signature, if it is another's
    scanner: LazyScanner | None = None  #: of a call's arguments
    beginning = ""  #: of a call's arguments, to tell ``{}`` from a larger object
    late: TextBuffer | None = None  #: arguments that can't be written, since the block had to be closed

    def __init__(self, key: Key, start: bytes, *, needs_end: bool = False) -> None:
        self.key = key
        self.start = start
        self.needs_end = needs_end

    def add_signature(self, part: str) -> None:
        """Add a part of the signature."""
        self.signature = self.signature or []
        self.signature.append(part)

    def whole_signature(self) -> str:
        """The signature, sealed where another vendor made it."""
        signature = "".join(self.signature)
        return seal("reasoning", self.signer, signature) if self.signer else signature

    @property
    def may_close(self) -> bool:
        """Whether the block may be closed because another waits."""
        if self.ended or not self.needs_end:
            return True
        if self.scanner is None or not self.scanner.complete_object:
            return False
        return "".join(self.beginning.split()) != "{}"


class BlockQueue:
    """The order of blocks; ``write_start``, ``write_delta`` and ``write_stop`` are the dialect's: they ``write``."""

    #: By kind, what the start says of a block that opens with its first text.
    starts: ClassVar[Mapping[str, bytes]]
    #: A fragment of a call's arguments as ``write_delta`` takes it, with ``%b`` for the text as JSON.
    arguments_template: ClassVar[bytes] = b""

    current: Block | None = None  #: the block that is open
    #: The choice and the label of the text of the open block, and of reasoning its kind, where more of it is written at once.
    goes_on: tuple[Any, ...] | None = None
    _held_chars = 0
    _next_index = 0

    def __init__(self, encoder: EventEncoder) -> None:
        self._encoder = proxy(encoder)
        self.write = encoder.parts.append
        self.limits = encoder.encoding.limits
        self.queue: list[Block] = []  #: blocks that wait; short: an empty deque takes 760 bytes

    # What a dialect defines.

    def write_start(self, block: Block) -> None:
        """Write the start of a block; give it its index."""
        raise NotImplementedError

    def write_delta(self, block: Block, delta: bytes) -> None:
        """Write a delta of the open block."""
        raise NotImplementedError

    def write_stop(self, block: Block) -> None:
        """Write the stop of a block."""
        raise NotImplementedError

    def arguments_delta(self, fragment: str) -> bytes:
        """A fragment of a call's arguments as ``write_delta`` takes it."""
        return self.arguments_template % orjson.dumps(fragment)

    def write_fragment(self, block: Block, fragment: str) -> None:
        """Write a fragment of the open call's arguments."""
        self.write_delta(block, self.arguments_delta(fragment))

    # What they share.

    def give_index(self, block: Block) -> None:
        """Give a block that starts its index, from 0."""
        block.index = self._next_index
        self._next_index += 1

    @property
    def last(self) -> Block | None:
        """The block that was mentioned last, and is not closed."""
        return self.queue[-1] if self.queue else self.current

    def find(self, key: Key) -> Block | None:
        """A block that is open or waits."""
        if self.current is not None and self.current.key == key:
            return self.current
        return next((block for block in self.queue if block.key == key), None)

    def add(self, key: Key, start: bytes, *, needs_end: bool = False) -> Block:
        """Mention a new block; it opens as soon as those before it may close."""
        block = Block(key, start, needs_end=needs_end)
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
        """A delta of text or thinking: of the last block if the label agrees, else of a new one."""
        block = self.queue[-1] if self.queue else self.current  # as ``last`` and ``delta``, two calls less
        if block is None or block.key != key or block.ended:
            block = self.add(key, self.starts[key[0]])
        if block is self.current:
            self.write_delta(block, delta)
        else:
            self.delta(block, delta)

    def arguments(self, block: Block, fragment: str) -> None:
        """A fragment of a call's arguments."""
        if block is not self.current:  # of four interleaved calls three wait; as ``hold``, a call less
            waiting = block.waiting
            if waiting is None:
                waiting = block.waiting = TextBuffer()
            self._held_chars += len(fragment)
            if self._held_chars > self.limits.held_chars:
                raise HeldTooLong(self.limits.held_chars)
            waiting.append(fragment)
            return
        if not self.queue and len(block.beginning) >= BEGINNING and block.scanner is not None:  # nearly all
            block.scanner.append(fragment)
            self.write_fragment(block, fragment)
            return
        self._write_arguments(block, fragment)
        if self.queue and (fragment[-1:] in OBJECT_ENDS or block.late is not None):
            self._advance()

    def _write_arguments(self, block: Block, text: str) -> None:
        """Arguments of the open block."""
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

    def keep_late(self, block: Block, text: str) -> None:
        """Keep arguments of a call whose block is closed, or is to be."""
        self.hold(len(text))
        if block.late is None:
            block.late = TextBuffer()
        block.late.append(text)

    def take_late(self, block: Block) -> str:
        """The arguments that came too late; empty if none did."""
        late, block.late = block.late, None
        if late is None:
            return ""
        self._held_chars -= late.chars
        return late.whole()

    def delta(self, block: Block, delta: bytes) -> None:
        """A delta of a block that is not closed: written, or held until the block opens."""
        if block is self.current:
            self.write_delta(block, delta)
            return
        self.hold(len(delta))
        block.held = block.held or []
        block.held.append(delta)

    def hold(self, size: int) -> None:
        """Count what is held back. Raises HeldTooLong."""
        self._held_chars += size
        if self._held_chars > self.limits.held_chars:
            raise HeldTooLong(self.limits.held_chars)

    def end(self, block: Block) -> None:
        """Nothing more comes for the block."""
        block.ended = True
        if block is self.current:
            self._close()
            if self.queue:
                self._advance()

    def finish(self) -> None:
        """The response is whole: write and close everything."""
        if self.current is not None:
            self.current.ended = True
        if self.queue:
            for block in self.queue:
                block.ended = True
            self._advance()
        if self.current is not None:
            self._close()

    def flush(self, *, drop: set[Key]) -> None:
        """The stream failed: write what is held, but for the blocks in ``drop``.

        The open block is closed only if another must be written behind it: a reader may act on a call that was closed.
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

    def _open_block(self, block: Block) -> None:
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
