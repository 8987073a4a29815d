"""What decoders of dialects with content blocks share: they find the block of an index, and decode opaque texts.

An index may be used twice, so blocks and calls are numbered in the order in which they start. Opaque reasoning of another
vendor is sealed: base64 with the vendor's name and the part it belongs to (``vocabulary/sealed_reasoning.py``).

Source: dialects.md §3.1, §6.1; quirks.md §8, R14.
"""

from __future__ import annotations

from typing import Any, ClassVar, Generic, Literal, TypeVar

from attrs import define

from streamkit.dialects.members.values import text_in
from streamkit.dialects.streams.frame_decoder import FrameDecoder
from streamkit.dialects.vocabulary.sealed_reasoning import unseal
from streamkit.errors import TooManyBlocks
from streamkit.events import Opaque, ReasoningOpaque, ReasoningSignature, ToolCallDelta, ToolCallEnded
from streamkit.limits import Limits
from streamkit.report import StreamReport


@define
class DecodedBlock:
    """A content block that is open, or the last block that was open at its index."""

    kind: str
    number: int  #: number of the block in the response, which its events have as their label
    call: int = 0  #: number of the call, if the block is a call


def is_whole(value: object) -> bool:
    """Return whether the arguments in a delta are a JSON value, and not text, of which a delta has a fragment."""
    if type(value) is str:
        return False
    return type(value) in {dict, int, float, bool} or (type(value) is list and bool(value) and not text_in(value))


B = TypeVar("B", bound=DecodedBlock)


class BlockDecoder(FrameDecoder, Generic[B]):
    """A decoder of a dialect whose content blocks are found by an index."""

    signer: ClassVar[str]  #: The dialect's own vendor. Its signatures are not sealed.
    call_kind: ClassVar[str]  #: the kind of a block that is a call
    block_type: type[B]  #: the class of a remembered block

    _stopped = False
    _next = 0  # one above the largest index
    _seen = 0
    _calls = 0
    _text = 0  # number of the last text block
    _signature: Opaque | None = None  # signature of the next call, from a sealed block before the call

    def __init__(self, limits: Limits, report: StreamReport) -> None:
        super().__init__(limits, report)
        self.blocks: dict[int, B] = {}  #: the open blocks, by index
        self._closed: dict[int, B] = {}  # the last closed block of each index

    def start_index(self, value: object) -> int:
        """Return the index of a block's start, or the next free index if it has none. Raises IndexTooLarge."""
        if type(value) is int and 0 <= value <= self.limits.index:
            return value
        index = self.index(value)
        if index is None:
            self.report.repair("index_missing")
            index = self._next
        return index

    def block_index(self, value: object) -> int:
        """Return the index of a delta or stop. Without one: the block opened last, or else the last closed call."""
        if type(value) is int and 0 <= value <= self.limits.index:
            return value
        index = self.index(value)
        if index is None:
            self.report.repair("index_missing")
            closed = next(reversed(self._closed.items()), None)
            of_call = closed is not None and closed[1].kind == self.call_kind
            index = next(reversed(self.blocks), closed[0] if closed and of_call else self._next)
        return index

    def open_block(self, index: int, kind: str) -> B:
        """Open a new block, after closing one that is open at the same index. Raises TooManyBlocks."""
        self.ensure_started()
        if index >= self._next:
            self._next = index + 1
        elif index in self.blocks:
            self.report.repair("block_reopened")
            self.close_block(index)
        elif index in self._closed:
            self.report.repair("index_reused")
        if self._seen >= self.limits.content_blocks:
            raise TooManyBlocks(self.limits.content_blocks, offset=self.frame.offset)
        block = self.blocks[index] = self.block_type(kind, self._seen, self._calls)
        self._seen += 1
        self._calls += kind == self.call_kind
        return block

    def close_block(self, index: int) -> None:
        block = self._closed[index] = self.blocks.pop(index)
        if block.kind == self.call_kind:
            self.out.append(ToolCallEnded(block.call))

    def stop_message(self) -> None:
        """End the message: close the open blocks that are not calls, because no stop event closed them.

        Calls stay open. A second end of the message changes nothing.
        """
        first, self._stopped = not self._stopped, True
        for index in list(self.blocks) if first else ():
            self.report.repair("block_unclosed")
            if self.blocks[index].kind != self.call_kind:
                self.close_block(index)

    def _error(self, document: dict[str, Any]) -> None:
        self.fail(document.get("error") or document, document)  # the request's id is next to the error

    def start_call(self, block: B, call_id: object, name: object, extras: dict[str, Any]) -> None:
        """Emit the start of a call. Its signature is in a sealed block directly before the call."""
        delta = ToolCallDelta(block.call, self.string(call_id) or None, self.string(name) or None)
        delta.extras, delta.is_ended_by_wire = extras or None, True
        if self._signature is not None:
            delta.signature, self._signature = self._signature, None
        self.out.append(delta)

    def opaque(self, blob: str, block: B, *, redacted: bool) -> None:
        """Emit a signature or redacted reasoning. ``blob`` is the dialect's vendor's text, or another vendor's sealed text."""
        sealed = unseal(blob)
        if sealed is None:
            kind = ReasoningOpaque if redacted else ReasoningSignature
            self.out.append(kind(blob, self.signer, 0, block.number))
        elif sealed.kind == "call":
            self._signature = sealed.opaque
        elif sealed.kind == "opaque":
            self.out.append(ReasoningOpaque(sealed.blob, sealed.vendor, 0, block.number))
        else:  # a signature of reasoning, of the last text block, or of an empty text
            number = self._text if sealed.kind == "text" else block.number
            on: Literal["reasoning", "text"] = "reasoning" if sealed.kind == "reasoning" else "text"
            self.out.append(ReasoningSignature(sealed.blob, sealed.vendor, 0, number, on))
