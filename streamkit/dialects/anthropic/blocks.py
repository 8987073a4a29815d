"""Content blocks as Anthropic's readers need them: one open at a time, dense indices, no block without content.

Blocks stand in a queue in the order they were first mentioned. The first is open and written as it grows; what belongs to
the others is held back. When another block waits, the open one is closed as soon as it may be: text and thinking at once, a
call when it has ended or when its text is one complete object other than ``{}`` (which may be a prefix).

Source: design.md §5, dialects.md §3.1, quirks.md R9 and §8.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TypeAlias

import orjson
from attrs import define, field

from streamkit.dialects.opaque import seal
from streamkit.errors import HeldTooLong
from streamkit.limits import Limits
from streamkit.tool_calls.text_buffer import LazyScanner

#: Kind, and what tells blocks of a kind apart: the label of the source's block, or the number of the call.
Key: TypeAlias = tuple[str, int]
#: An unsigned thinking block still needs the member; a client replays it as it is.
STARTS = {
    "text": b'{"type":"text","text":""}',
    "refusal": b'{"type":"text","text":""}',
    "thinking": b'{"type":"thinking","thinking":"","signature":""}',
}


@define(eq=False)
class Block:
    key: Key
    start: bytes  #: the ``content_block`` of its start event, as JSON
    index: int = -1  #: on the wire, once opened
    needs_end: bool = False  #: a call, or a block of the server's: it is not over because another waits
    ended: bool = False  #: nothing more will come
    closed: bool = False
    held: list[bytes] = field(factory=list)  #: deltas, as JSON, that wait for the block to open
    #: Written whole, right before the stop: clients assign it (dialects.md §0.4).
    signature: list[str] = field(factory=list)
    signer: str = ""  #: the vendor of the signature, if it is another's
    scanner: LazyScanner | None = None  #: of a call's arguments
    beginning: str = ""  #: of a call's arguments, to tell ``{}`` from a larger object

    @property
    def may_close(self) -> bool:
        if self.ended or not self.needs_end:
            return True
        return self.scanner is not None and "".join(self.beginning.split()) != "{}" and self.scanner.complete_object


class BlockWriter:
    """Writes block events through ``write(name, payload)``, in an order the grammar allows."""

    def __init__(self, write: Callable[[bytes, bytes], None], limits: Limits) -> None:
        self.write = write
        self.limits = limits
        self._open: Block | None = None
        self._queue: deque[Block] = deque()
        self._next_index = 0
        self._held_chars = 0

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
            block = self.add(key, STARTS[key[0]])
        self.delta(block, delta)

    def arguments(self, block: Block, fragment: str) -> None:
        if block.scanner is None:
            block.scanner = LazyScanner(self.limits.json_depth)
        block.scanner.append(fragment)
        if len(block.beginning) < 16:
            block.beginning += fragment[:16]
        self.delta(block, b'{"type":"input_json_delta","partial_json":%b}' % orjson.dumps(fragment))
        if block is self._open and self._queue:
            self._advance()

    def delta(self, block: Block, delta: bytes) -> None:
        if block is self._open:
            self._write_delta(block, delta)
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
        block.index = self._next_index
        self._next_index += 1
        self.write(
            b"content_block_start",
            b'{"type":"content_block_start","index":%d,"content_block":%b}' % (block.index, block.start),
        )
        for delta in block.held:
            self._held_chars -= len(delta)
            self._write_delta(block, delta)
        block.held.clear()

    def _write_delta(self, block: Block, delta: bytes) -> None:
        self.write(
            b"content_block_delta", b'{"type":"content_block_delta","index":%d,"delta":%b}' % (block.index, delta)
        )

    def _close(self) -> None:
        block, self._open = self._open, None
        if block is None:
            return
        if block.signature:
            signature = "".join(block.signature)
            if block.signer:
                signature = seal("reasoning", block.signer, signature)
            self._write_delta(block, b'{"type":"signature_delta","signature":%b}' % orjson.dumps(signature))
        self.write(b"content_block_stop", b'{"type":"content_block_stop","index":%d}' % block.index)
        block.closed = True
