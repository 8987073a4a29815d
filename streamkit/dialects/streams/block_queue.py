"""Content blocks for dialects whose readers want one open at a time: what waits, what may be closed, in which order.

Blocks stand in a queue in the order they were first mentioned. The first is open and written as it grows; what belongs to
the others is held back, and of a call leaves as one delta when its block opens, since all of it leaves then. When another
block waits, the open one is closed as soon as it may be: text and thinking at once, a call when it has ended or when its text
is one complete object other than ``{}`` (which may be a prefix). What comes of a call behind that object is late, whether it
comes with the closing bracket or later: it is kept for the report.

How a start, a delta and a stop look is the dialect's; so is the index that a block gets when it opens.

Source: design.md §5, quirks.md R9 and §8.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, TypeAlias

import orjson
from attrs import define, field

from streamkit.dialects.vocabulary.sealed_reasoning import seal
from streamkit.errors import HeldTooLong
from streamkit.limits import Limits
from streamkit.tool_calls.text_buffer import LazyScanner, TextBuffer

#: Characters of a call's arguments that tell ``{}`` from a larger object.
BEGINNING = 16
#: What the last fragment of a complete object ends with.
OBJECT_ENDS = frozenset("} \t\n\r")
#: Kind, and what tells blocks of a kind apart: the label of the source's block, or the number of the call.
Key: TypeAlias = tuple[str, int]


def deltas_of(template: bytes, texts: list[str]) -> list[bytes]:
    """``template`` with each of the texts as JSON in the place of its ``%b``, in half of the time of one by one.

    Indented, orjson writes each item on a line of its own, and there is no raw line end inside of a JSON string.
    """
    before, behind = template.split(b"%b")
    items = orjson.dumps(texts, option=orjson.OPT_INDENT_2)[4:-2].split(b",\n  ")
    return [before + item + behind for item in items]


@define(eq=False)
class Block:
    """A block that is to be written, and what of it waits."""

    key: Key
    start: bytes  #: what the start event says of it, as JSON
    index: int = -1  #: on the wire, once opened
    needs_end: bool = False  #: a call, or a block of the server's: it is not over because another waits
    ended: bool = False  #: nothing more will come
    closed: bool = False
    held: list[bytes] = field(factory=list)  #: deltas, as JSON, that wait for the block to open
    waiting: TextBuffer | None = None  #: a call's arguments that do
    #: Written whole, right before the stop, where the dialect has signatures.
    signature: list[str] = field(factory=list)
    signer: str = ""  #: the vendor of the signature, if it is another's
    scanner: LazyScanner | None = None  #: of a call's arguments
    beginning: str = ""  #: of a call's arguments, to tell ``{}`` from a larger object
    late: TextBuffer | None = None  #: arguments that can't be written, since the block had to be closed

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
    """The order of blocks; ``write_start``, ``write_delta`` and ``write_stop`` are the dialect's."""

    #: By kind, what the start says of a block that opens with its first text.
    starts: ClassVar[Mapping[str, bytes]]
    #: A fragment of a call's arguments as ``write_delta`` takes it, with ``%b`` for the text as JSON.
    arguments_template: ClassVar[bytes] = b""

    _open: Block | None = None
    _held_chars = 0

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._queue: list[Block] = []  # short; an empty deque takes 760 bytes

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

    def around(self, block: Block) -> tuple[bytes, bytes] | None:  # noqa: ARG002 - for those that override it
        """What is written before and behind a delta of the open block; None where more than that depends on the delta."""
        return None

    def write_deltas(self, block: Block, deltas: list[bytes]) -> None:
        """Write several deltas of the open block."""
        for delta in deltas:
            self.write_delta(block, delta)

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
        block = Block(key, start, -1, needs_end)
        before = self._open
        if self._queue or (before is not None and before.needs_end):
            self._queue.append(block)
            self._advance()
            return block
        self._close()
        self._open = block
        self.write_start(block)
        return block

    def text(self, key: Key, delta: bytes) -> None:
        """A delta of text or thinking: of the last block if the label agrees, else of a new one."""
        block = self._queue[-1] if self._queue else self._open  # as ``last`` and ``delta``, two calls less
        if block is None or block.key != key or block.ended:
            block = self.add(key, self.starts[key[0]])
        if block is self._open:
            self.write_delta(block, delta)
        else:
            self.delta(block, delta)

    def arguments(self, block: Block, fragment: str) -> None:
        """A fragment of a call's arguments."""
        if block is not self._open:  # of four interleaved calls three wait; as ``hold``, a call less
            waiting = block.waiting
            if waiting is None:
                waiting = block.waiting = TextBuffer()
            self._held_chars += len(fragment)
            if self._held_chars > self.limits.held_chars:
                raise HeldTooLong(self.limits.held_chars)
            waiting.append(fragment)
            return
        if not self._queue and len(block.beginning) >= BEGINNING and block.scanner is not None:  # nearly all
            block.scanner.append(fragment)
            self.write_fragment(block, fragment)
            return
        self._write_arguments(block, fragment)
        if self._queue and (fragment[-1:] in OBJECT_ENDS or block.late is not None):
            self._advance()

    def _write_arguments(self, block: Block, text: str) -> None:
        """Arguments of the open block."""
        if block.scanner is None:
            block.scanner = LazyScanner(self.limits.json_depth)
        late = ""
        if not self._queue or not 0 <= text.find("}") < len(text) - 1:
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

    def is_alone(self, block: Block | None) -> bool:
        """Whether a block is open and none waits."""
        return block is not None and block is self._open and not self._queue

    def arguments_run(self, of_blocks: Sequence[tuple[Block, list[str]]]) -> bool:
        """Fragments of several calls, by call; False, and nothing is done, if what is written could depend on their order.

        It does if the open block may close in between, or if too much is held. The rest goes a whole call at a time, in a
        third of the time.
        """
        if not self.arguments_template or any(block.closed for block, _ in of_blocks):
            return False
        waiting = [(block, "".join(texts)) for block, texts in of_blocks if block is not self._open]
        held = sum(len(text) for _, text in waiting)
        if held + self._held_chars > self.limits.held_chars:
            return False
        for block, texts in of_blocks:
            if block is self._open and not self._write_run(block, texts):
                return False
        self._held_chars += held
        for block, text in waiting:
            block.waiting = block.waiting or TextBuffer()
            block.waiting.append(text)
        return True

    def _write_run(self, block: Block, texts: list[str]) -> bool:
        """Fragments of the open call; False, and nothing is done, if it may close in between."""
        if block.scanner is None or len(block.beginning) < BEGINNING:
            return False
        text = "".join(texts)
        if not self._queue:
            block.scanner.append(text)
        elif not block.scanner.grows_open(text):
            return False
        self.write_deltas(block, deltas_of(self.arguments_template, texts))
        return True

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
        if self._open is not None:
            self._open.ended = True
        for block in self._queue:
            block.ended = True
        self._advance()
        self._close()

    def flush(self, *, drop: set[Key]) -> None:
        """The stream failed: write what is held, but for the blocks in ``drop``.

        The open block is closed only if another must be written behind it: a reader may act on a call that was closed.
        """
        waiting = [block for block in self._queue if block.key not in drop]
        self._queue.clear()
        for block in waiting:
            self._close()
            self._open_block(block)

    def _advance(self) -> None:
        while self._queue:
            if self._open is not None and not self._open.may_close:
                return
            self._close()
            self._open_block(self._queue.pop(0))
            if self._open is not None and self._open.ended and not self._queue:
                self._close()

    def _open_block(self, block: Block) -> None:
        self._open = block
        self.write_start(block)
        for delta in block.held:
            self._held_chars -= len(delta)
            self.write_delta(block, delta)
        block.held.clear()
        if block.waiting is not None:
            text, block.waiting = block.waiting.take(), None
            self._held_chars -= len(text)
            self._write_arguments(block, text)

    def _close(self) -> None:
        block, self._open = self._open, None
        if block is not None:
            self.write_stop(block)
            block.closed = True


class NumberedBlocks(BlockQueue):
    """Blocks with indices from 0, which ``write`` takes as bytes; ``begin`` is called before the first of them."""

    _next_index = 0

    def __init__(self, begin: Callable[[], None], write: Callable[[bytes], None], limits: Limits) -> None:
        super().__init__(limits)
        self.begin = begin
        self.write = write

    def number(self, block: Block) -> None:
        """Give a block that starts its index."""
        block.index = self._next_index
        self._next_index += 1
        if not block.index:
            self.begin()
