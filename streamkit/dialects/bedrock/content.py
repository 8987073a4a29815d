"""What the content blocks of ConverseStream say: text, reasoning, tool calls, and blocks that only this vendor understands.

Blocks of text and of reasoning have no start: the first delta of an index opens one and tells its kind. Blocks and calls are
labelled by their order, since an index may be used twice. Another vendor's opaque reasoning comes sealed, as a signature or
as redacted content (``vocabulary/sealed_reasoning.py``).

Source: dialects.md §6.1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from attrs import define

from streamkit.dialects.bedrock.wire import SIGNER, VENDOR, is_base64
from streamkit.dialects.members.values import said
from streamkit.dialects.streams.frame_decoder import FrameDecoder
from streamkit.dialects.vocabulary.sealed_reasoning import unseal
from streamkit.errors import TooManyBlocks
from streamkit.events import (
    Aside,
    AsideKind,
    Opaque,
    ReasoningDelta,
    ReasoningOpaque,
    ReasoningSignature,
    TextDelta,
    ToolCallDelta,
    ToolCallEnded,
)
from streamkit.limits import Limits
from streamkit.report import StreamReport

#: The member of each delta that streamkit reads, and the kind of block that it belongs into.
MEMBERS: Final[Mapping[str, str]] = {
    "text": "text",
    "citation": "text",
    "reasoningContent": "reasoning",
    "toolUse": "toolUse",
}
SPOKEN = frozenset({"text", "reasoning"})
#: The kind of a block that only this vendor understands.
RAW = "raw"
REASONING = ("text", "signature", "redactedContent")
#: Members of a start, or of a delta, of the tools that the provider runs itself.
SERVER = frozenset({"toolUse", "toolResult"})
CALL_FIELDS = frozenset({"toolUseId", "name"})


@define
class Block:
    kind: str  #: empty as long as only a start without content came
    number: int  #: its place among all blocks of the response: the label of its events
    call: int = 0  #: its place among the calls
    server: bool = False  #: a tool's of the provider, where only this vendor understands it


#: Where deltas differ (``fast_path/template.py``); ``p`` is padding.
HOLES: Final = re.compile(rb'"(?:text|input)"\s*:\s*(?P<text>"(?:[^"\\]|\\.)++")|"p"\s*:\s*(?P<pad>"(?:[^"\\]|\\.)*+")')


class ContentReader(FrameDecoder):
    """The part of the decoder that reads content blocks."""

    dialect = "bedrock"
    vendor = VENDOR
    holes = HOLES

    def __init__(self, limits: Limits, report: StreamReport) -> None:
        super().__init__(limits, report)
        self.blocks: dict[int, Block] = {}
        self._closed: dict[int, Block] = {}  # what was last at an index
        self._next = 0  # behind the largest index
        self._seen = 0
        self._calls = 0
        self._text = 0  # number of the last text block
        self._signature: Opaque | None = None  # of the next call

    def ensure_started(self) -> None:
        """Say that the response started if it did not."""
        raise NotImplementedError

    def block_start(self, document: dict[str, Any]) -> None:
        start = {name: value for name, value in self.fields(document.get("start")).items() if value is not None}
        index = self.index(document.get("contentBlockIndex"))
        if index is None:
            self.report.repair("index_missing")
            index = self._next
        use = self.alone(start.get("toolUse"))
        if type(use) is dict and not said(use.get("type")):
            self._call(use, self._open(index, "toolUse"))
        elif not start or (use is not None and type(use) is not dict):
            self._open(index, "")
            if start:
                self.odd(document)
        else:
            self._aside(document, self._open_raw(index, start))

    def block_delta(self, document: dict[str, Any]) -> None:
        delta = self.alone(document.get("delta"))
        if type(delta) is not dict or not delta:
            self.odd(document)
            return
        index = self._index_of(document)
        block = self.blocks.get(index)
        if block is not None and block.kind == RAW:
            self._aside(document, block)
            return
        for member, value in delta.items():
            if value is None:
                continue
            belongs = MEMBERS.get(member)
            if belongs is None and block is None:
                self._aside(document, self._open_raw(index, delta))
                return
            if belongs is None:
                self.out.append(Aside(VENDOR, "metadata", f"delta.{member}", value))
                continue
            if block is None or block.kind != belongs:
                block = self._place(index, block, belongs)
                if block is None:
                    self.odd(document)
                    return
            if belongs == "text":
                self._text_delta(member, value, block)
            elif belongs == "toolUse":
                fragment = self.fields(value).get("input")
                if type(fragment) is dict:
                    self.report.repair("arguments_not_text")
                    whole = self.text_at("delta", "toolUse", "input")
                    self.out.append(ToolCallDelta(block.call, arguments=whole, snapshot=True))
                elif fragment := self.string(fragment):
                    self.out.append(ToolCallDelta(block.call, arguments=fragment))
            else:
                self._reasoning(self.fields(value), block)

    def _index_of(self, document: dict[str, Any]) -> int:
        """The index of a delta or a stop; of one without it that of the block that was opened last, or of the last call."""
        index = self.index(document.get("contentBlockIndex"))
        if index is None:
            self.report.repair("index_missing")
            closed = next(reversed(self._closed.items()), None)
            of_call = closed is not None and closed[1].kind == "toolUse"
            index = next(reversed(self.blocks), closed[0] if closed and of_call else self._next)
        return index

    def block_stop(self, document: dict[str, Any]) -> None:
        index = self._index_of(document)
        block = self.blocks.get(index)
        if block is None and index in self._closed:
            self.report.repair("block_unopened")
            return
        if block is None:  # a text without a single delta
            block = self._open(index, "")
        if block.kind == RAW:
            self._aside(document, block)
        self.close_block(index)

    def close_block(self, index: int) -> None:
        block = self._closed[index] = self.blocks.pop(index)
        if block.kind == "toolUse":
            self.out.append(ToolCallEnded(block.call))

    def _place(self, index: int, block: Block | None, kind: str) -> Block | None:
        """The block for a delta of ``kind`` where none of that kind is open; None where it can't be."""
        if block is None:
            closed = self._closed.get(index)
            if closed is not None and closed.kind == kind == "toolUse":
                return closed  # text for a call that had ended: the accumulator sets it aside
            if kind == "toolUse":
                self.report.repair("block_unopened")
            return self._open(index, kind)
        if not block.kind and kind in SPOKEN:
            block.kind = kind
            self._note_text(block)
            return block
        if block.kind in SPOKEN and kind in SPOKEN:
            self.report.repair("block_mismatch")
            return block
        return None

    def _open(self, index: int, kind: str) -> Block:
        self.ensure_started()
        self._next = max(self._next, index + 1)
        if index in self.blocks:
            self.report.repair("block_reopened")
            self.close_block(index)
        elif index in self._closed:
            self.report.repair("index_reused")
        if self._seen >= self.limits.content_blocks:
            raise TooManyBlocks(self.limits.content_blocks, offset=self.frame.offset)
        block = self.blocks[index] = Block(kind, self._seen, self._calls)
        self._seen += 1
        self._calls += kind == "toolUse"
        self._note_text(block)
        return block

    def _open_raw(self, index: int, says: dict[str, Any]) -> Block:
        block = self._open(index, RAW)
        block.server = not SERVER.isdisjoint(says)
        return block

    def _note_text(self, block: Block) -> None:
        if block.kind == "text":
            self._text = block.number

    def _call(self, use: dict[str, Any], block: Block) -> None:
        delta = ToolCallDelta(
            block.call, self.string(use.get("toolUseId")) or None, self.string(use.get("name")) or None
        )
        delta.extras = {name: value for name, value in use.items() if name not in CALL_FIELDS and said(value)} or None
        delta.signature, self._signature = self._signature, None
        self.out.append(delta)

    def _text_delta(self, member: str, value: Any, block: Block) -> None:
        if member == "text":
            if text := self.string(value):
                self.out.append(TextDelta(text, 0, block.number))
        elif citation := self.fields(value):
            self.out.append(Aside(VENDOR, "citation", "citation", citation, block=block.number))

    def _reasoning(self, delta: dict[str, Any], block: Block) -> None:
        if text := self.string(delta.get("text")):
            self.out.append(ReasoningDelta(text, 0, block.number))
        if len(delta) == 1 and "text" in delta:  # nearly always
            return
        if signature := self.string(delta.get("signature")):
            self._opaque(signature, block, redacted=False)
        if data := self.string(delta.get("redactedContent")):
            if is_base64(data):
                self._opaque(data, block, redacted=True)
            else:
                self.odd(data)
        for name, value in delta.items():
            if name not in REASONING and said(value):
                self.out.append(Aside(VENDOR, "metadata", f"reasoningContent.{name}", value))

    def _opaque(self, blob: str, block: Block, *, redacted: bool) -> None:
        """A signature or redacted content: Claude's, or another vendor's that was sealed."""
        sealed = unseal(blob)
        if sealed is None:
            kind = ReasoningOpaque if redacted else ReasoningSignature
            self.out.append(kind(blob, SIGNER, 0, block.number))
        elif sealed.kind == "call":
            self._signature = Opaque(sealed.vendor, sealed.blob)
        elif sealed.kind == "opaque":
            self.out.append(ReasoningOpaque(sealed.blob, sealed.vendor, 0, block.number))
        elif sealed.kind == "reasoning":
            self.out.append(ReasoningSignature(sealed.blob, sealed.vendor, 0, block.number))
        else:  # of the text it follows, or of a part of a text without any
            number = self._text if sealed.kind == "text" else block.number
            self.out.append(ReasoningSignature(sealed.blob, sealed.vendor, 0, number, "text"))

    def _aside(self, document: dict[str, Any], block: Block) -> None:
        """A frame of a block that only this vendor understands; the frames together are the block."""
        kind: AsideKind = "server_tool" if block.server else "unknown_event"
        self.out.append(Aside(VENDOR, kind, self.frame.event, document, block=block.number))
