"""Content blocks for dialects whose readers want one open at a time: what waits, what may be closed, in which order.

Blocks stand in a queue in the order they were first mentioned. The first is open and written as it grows; what belongs to
the others is held back. When another block waits, the open one is closed as soon as it may be: text and thinking at once, a
call when it has ended or when its text is one complete object other than ``{}`` (which may be a prefix).

How a start, a delta and a stop look is the dialect's; so is the index that a block gets when it opens.

Source: design.md §5, quirks.md R9 and §8.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import ClassVar, TypeAlias

from attrs import define, field

from streamkit.errors import HeldTooLong
from streamkit.limits import Limits
from streamkit.tool_calls.text_buffer import LazyScanner

#: Kind, and what tells blocks of a kind apart: the label of the source's block, or the number of the call.
Key: TypeAlias = tuple[str, int]


@define(eq=False)
class Block:
    key: Key
    start: bytes  #: what the start event says of it, as JSON
    index: int = -1  #: on the wire, once opened
    needs_end: bool = False  #: a call, or a block of the server's: it is not over because another waits
    ended: bool = False  #: nothing more will come
    closed: bool = False
    held: list[bytes] = field(factory=list)  #: deltas, as JSON, that wait for the block to open
    #: Written whole, right before the stop, where the dialect has signatures.
    signature: list[str] = field(factory=list)
    signer: str = ""  #: the vendor of the signature, if it is another's
    scanner: LazyScanner | None = None  #: of a call's arguments
    beginning: str = ""  #: of a call's arguments, to tell ``{}`` from a larger object

    @property
    def may_close(self) -> bool:
        if self.ended or not self.needs_end:
            return True
        return self.scanner is not None and "".join(self.beginning.split()) != "{}" and self.scanner.complete_object


class BlockQueue:
    """The order of blocks; ``write_start``, ``write_delta`` and ``write_stop`` are the dialect's."""

    #: By kind, what the start says of a block that opens with its first text.
    starts: ClassVar[Mapping[str, bytes]]

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._open: Block | None = None
        self._queue: deque[Block] = deque()
        self._held_chars = 0

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
        raise NotImplementedError

    # What they share.

    @property
    def last(self) -> Block | None:
        """The block that was mentioned last, and is not closed."""
        return self._queue[-1] if self._queue else self._open

    def find(self, key: Key) -> Block | None:
        """A block that is open or waits."""
        if self._open is not None and self._open.key == key:
            return self._open
        return next((block for block in self._queue if block.key == key), None)

    def add(self, key: Key, start: bytes, *, needs_end: bool = False) -> Block:
        """Mention a new block; it opens as soon as those before it may close."""
        block = Block(key, start, needs_end=needs_end)
        self._queue.append(block)
        self._advance()
        return block

    def text(self, key: Key, delta: bytes) -> None:
        """A delta of text or thinking: of the last block if the label agrees, else of a new one."""
        block = self.last
        if block is None or block.key != key or block.ended:
            block = self.add(key, self.starts[key[0]])
        self.delta(block, delta)

    def arguments(self, block: Block, fragment: str) -> None:
        """A fragment of a call's arguments."""
        if block.scanner is None:
            block.scanner = LazyScanner(self.limits.json_depth)
        block.scanner.append(fragment)
        if len(block.beginning) < 16:
            block.beginning += fragment[:16]
        self.delta(block, self.arguments_delta(fragment))
        if block is self._open and self._queue:
            self._advance()

    def delta(self, block: Block, delta: bytes) -> None:
        """A delta of a block that is not closed: written, or held until the block opens."""
        if block is self._open:
            self.write_delta(block, delta)
            return
        self.hold(len(delta))
        block.held.append(delta)

    def hold(self, size: int) -> None:
        """Count what is held back. Raises HeldTooLong."""
        self._held_chars += size
        if self._held_chars > self.limits.held_chars:
            raise HeldTooLong(self.limits.held_chars)

    def end(self, block: Block) -> None:
        """Nothing more comes for the block."""
        block.ended = True
        if block is self._open:
            self._close()
            self._advance()

    def finish(self) -> None:
        """The response is whole: write and close everything."""
        for block in (self._open, *self._queue):
            if block is not None:
                block.ended = True
        self._advance()
        if self._open is not None:
            self._close()

    def flush(self, *, drop: set[Key]) -> None:
        """The stream failed: write what is held, but for the blocks in ``drop``.

        The open block is closed only if another must be written behind it: a reader may act on a call that was closed.
        """
        waiting = [block for block in self._queue if block.key not in drop]
        self._queue.clear()
        for block in waiting:
            if self._open is not None:
                self._close()
            self._open_block(block)

    def _advance(self) -> None:
        while self._queue:
            if self._open is not None:
                if not self._open.may_close:
                    return
                self._close()
            self._open_block(self._queue.popleft())
            if self._open is not None and self._open.ended and not self._queue:
                self._close()

    def _open_block(self, block: Block) -> None:
        self._open = block
        self.write_start(block)
        for delta in block.held:
            self._held_chars -= len(delta)
            self.write_delta(block, delta)
        block.held.clear()

    def _close(self) -> None:
        block, self._open = self._open, None
        if block is not None:
            self.write_stop(block)
            block.closed = True
