"""What content blocks say: text, thinking, tool calls, and blocks that only this vendor understands.

Each block's kind is remembered from its start, because a delta of a block that the server's own tool fills is an aside while
the same delta of a ``tool_use`` block is a call's. A start's ``input: {}`` is never a fragment; a start ``input`` with members
is the whole value where no delta follows. Blocks and calls are labelled by their order, since an index may be used twice.

Source: dialects.md §3.1, §3.3, quirks.md §8.
"""

from __future__ import annotations

import re
from typing import Any, Literal

from attrs import define

from streamkit.dialects.anthropic.asides import aside_of
from streamkit.dialects.anthropic.wire import VENDOR, without_defaults
from streamkit.dialects.members.values import said
from streamkit.dialects.streams.frame_decoder import FrameDecoder
from streamkit.dialects.streams.running_text import StartText
from streamkit.dialects.vocabulary.sealed_reasoning import unseal
from streamkit.errors import TooManyBlocks
from streamkit.events import (
    Aside,
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
from streamkit.tool_calls.value_text import lenient_text

#: The block that each delta belongs into, and the delta's own field.
DELTAS = {
    "text_delta": ("text", "text"),
    "citations_delta": ("text", "citation"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("thinking", "signature"),
    "input_json_delta": ("tool_use", "partial_json"),
}
SPOKEN = frozenset({"text", "thinking"})
OWN_BLOCKS = frozenset({"text", "thinking", "tool_use", "redacted_thinking"})
CALL_FIELDS = frozenset({"type", "id", "name", "input"})


@define
class Block:
    kind: str
    number: int  #: its place among all blocks of the response: the label of its events
    call: int = 0  #: its place among the calls
    #: The whole ``input`` that came with the start, until a delta or the stop settles whether it counts.
    whole_input: str | None = None
    #: The text that came with the start, until a delta or the stop settles whether it is said again.
    start: StartText | None = None


#: Where deltas differ (``fast_path/template.py``).
HOLES = re.compile(rb'"(?:text|thinking|partial_json)"\s*:\s*(?P<text>"(?:[^"\\]|\\.)++")')


class ContentReader(FrameDecoder):
    """The part of the decoder that reads content blocks."""

    dialect = "anthropic"
    vendor = VENDOR
    holes = HOLES

    def __init__(self, limits: Limits, report: StreamReport) -> None:
        super().__init__(limits, report)
        self.blocks: dict[int, Block] = {}
        self.in_start: dict[int, bytes] = {}  #: by index, the JSON of blocks in the message's start, until they come
        self.block_text = b""  #: the JSON of the whole block that is being read
        self._next = 0  # behind the largest index
        self._closed: dict[int, Block] = {}  # what was last at an index
        self._seen = 0
        self._calls = 0
        self._text = 0  # number of the last text block
        self._signature: Opaque | None = None  # of the next call

    def ensure_started(self) -> None:
        """Say that the response started if it did not."""
        raise NotImplementedError

    def close(self) -> None:
        for block in self.blocks.values():  # the input ended inside a block whose start brought a whole input
            if block.whole_input is not None:
                self.out.append(ToolCallDelta(block.call, arguments=block.whole_input, snapshot=True))
        self.settle_starts()

    def settle_starts(self) -> None:
        """Say what blocks started with: nothing more comes."""
        for block in self.blocks.values():
            self._settle(block)

    def block_start(self, document: dict[str, Any]) -> None:
        index = self.index(document.get("index"))
        if index is None:
            self.report.repair("index_missing")
            index = self._next
        start = self.fields(document.get("content_block"))
        block = self._open(index, self.string(start.get("type")))
        if block.kind == "text":
            self._text = block.number
            if text := self.string(start.get("text")):
                block.start = StartText(text)
            for citation in self.items(start.get("citations")):
                self._settle(block)
                self._citation(self.fields(citation), block)
        elif block.kind == "thinking":
            if text := self.string(start.get("thinking")):
                block.start = StartText(text)
            if signature := self.string(start.get("signature")):
                self._settle(block)
                self._opaque(signature, block)
        elif block.kind == "redacted_thinking":
            self._opaque(self.string(start.get("data")), block)
        elif block.kind == "tool_use":
            self._call(start, block)
        elif block.kind:
            self._aside(document, block)
        else:
            self.odd(document)

    def block_delta(self, document: dict[str, Any]) -> None:
        delta = self.fields(document.get("delta"))
        kind = self.string(delta.get("type"))
        belongs, name = DELTAS.get(kind, ("unknown", ""))
        index = self._index_of(document)
        block = self.blocks.get(index)
        if block is None and (closed := self._closed.get(index)) is not None and closed.kind == belongs == "tool_use":
            block = closed  # text for a call that had ended: the accumulator sets it aside
        elif block is None:
            self.report.repair("block_unopened")
            block = self._open(index, belongs)
        if name and (belongs == block.kind or (belongs in SPOKEN and block.kind in SPOKEN)):
            if belongs != block.kind:
                self.report.repair("block_mismatch")
            self._delta(kind, delta, block)
            if len(delta) > 2:
                self._unknown(delta, ("type", name))
        elif not kind or (name and not _is_input(delta)):
            self.odd(document)
        else:
            self._aside(document, block)

    def _index_of(self, document: dict[str, Any]) -> int:
        """The index of a delta or a stop; of one without it that of the block that was opened last, or of the last call."""
        index = self.index(document.get("index"))
        if index is None:
            self.report.repair("index_missing")
            closed = next(reversed(self._closed.items()), None)
            of_call = closed is not None and closed[1].kind == "tool_use"
            index = next(reversed(self.blocks), closed[0] if closed and of_call else self._next)
        return index

    def block_stop(self, document: dict[str, Any]) -> None:
        index = self._index_of(document)
        block = self.blocks.get(index)
        if block is None:
            self.report.repair("block_unopened")
        elif block.kind in OWN_BLOCKS:
            self.close_block(index)
        else:
            self._aside(document, block)
            self._closed[index] = self.blocks.pop(index)

    def close_block(self, index: int) -> None:
        block = self._closed[index] = self.blocks.pop(index)
        self._settle(block)
        if block.kind == "tool_use":
            if block.whole_input is not None:
                self.out.append(ToolCallDelta(block.call, arguments=block.whole_input, snapshot=True))
            self.out.append(ToolCallEnded(block.call))

    def _open(self, index: int, kind: str) -> Block:
        self.ensure_started()
        if self.in_start and self.in_start.pop(index, None) is not None:
            self.report.repair("text_repeated")
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
        self._calls += kind == "tool_use"
        return block

    def _call(self, start: dict[str, Any], block: Block) -> None:
        delta = ToolCallDelta(block.call, self.string(start.get("id")) or None, self.string(start.get("name")) or None)
        extras = {name: value for name, value in start.items() if name not in CALL_FIELDS and said(value)}
        delta.extras = without_defaults(extras) or None
        delta.signature, self._signature = self._signature, None
        self.out.append(delta)
        if given := start.get("input"):
            if isinstance(given, str):
                self.report.repair("arguments_not_object")
            block.whole_input = given if isinstance(given, str) else self.input_text()

    def input_text(self) -> str:
        """The text of the ``input`` that came with a block's start."""
        if self.block_text:
            return lenient_text(self.block_text, "input")
        return self.text_at("content_block", "input")

    def _delta(self, kind: str, delta: dict[str, Any], block: Block) -> None:
        """A delta in a block of its own kind; empty ones say nothing."""
        if kind == "citations_delta":
            self._settle(block)
            self._citation(self.fields(delta.get("citation")), block)
            return
        said_of = delta.get(DELTAS[kind][1])
        if kind == "input_json_delta" and type(said_of) is dict:
            self.report.repair("arguments_not_text")
            block.whole_input = None
            whole = self.text_at("delta", "partial_json")
            self.out.append(ToolCallDelta(block.call, arguments=whole, snapshot=True))
            return
        text = self.string(said_of)
        if not text:
            return
        if block.start is not None and kind != "input_json_delta":
            if kind == "signature_delta":
                self._settle(block)
            elif (told := block.start.follow(text)) is None:
                return
            else:
                block.start = None
                text = self._told(*told)
        if kind == "text_delta":
            self.out.append(TextDelta(text, 0, block.number))
        elif kind == "input_json_delta":
            if block.whole_input is not None:  # a start that had all of it, and fragments as well
                self.report.repair("arguments_replaced")
                block.whole_input = None
            self.out.append(ToolCallDelta(block.call, arguments=text))
        elif kind == "thinking_delta":
            self.out.append(ReasoningDelta(text, 0, block.number, "summary"))
        else:
            self._opaque(text, block)

    def _settle(self, block: Block) -> None:
        """Say what a block started with: no delta tells any more whether it is said again."""
        if block.start is not None:
            start, block.start = block.start, None
            text = self._told(*start.settle())
            spoken = TextDelta(text, 0, block.number)
            self.out.append(spoken if block.kind == "text" else ReasoningDelta(text, 0, block.number, "summary"))

    def _told(self, text: str, repeated: bool) -> str:
        if repeated:
            self.report.repair("text_repeated")
        return text

    def _opaque(self, blob: str, block: Block) -> None:
        """A signature or redacted thinking: this vendor's, or another's that was sealed."""
        sealed = unseal(blob)
        if sealed is None:
            kind = ReasoningSignature if block.kind == "thinking" else ReasoningOpaque
            self.out.append(kind(blob, VENDOR, 0, block.number))
        elif sealed.kind == "call":
            self._signature = Opaque(sealed.vendor, sealed.blob)
        elif sealed.kind == "opaque":
            self.out.append(ReasoningOpaque(sealed.blob, sealed.vendor, 0, block.number))
        else:
            number = self._text if sealed.kind == "text" else block.number
            on: Literal["reasoning", "text"] = "reasoning" if sealed.kind == "reasoning" else "text"
            self.out.append(ReasoningSignature(sealed.blob, sealed.vendor, 0, number, on))

    def _unknown(self, fields: dict[str, Any], known: tuple[str, ...]) -> None:
        for name, value in fields.items():
            if name not in known and said(value):
                self.out.append(Aside(VENDOR, "metadata", f"delta.{name}", value))

    def _citation(self, citation: dict[str, Any], block: Block) -> None:
        if citation:
            self.out.append(Aside(VENDOR, "citation", "citations_delta", citation, block=block.number))

    def _aside(self, document: dict[str, Any], block: Block) -> None:
        """A frame of a block that only this vendor understands; the frames together are the block."""
        self.out.append(aside_of(document, block.kind, block.number))


def _is_input(delta: dict[str, Any]) -> bool:
    """Whether a delta may stand in a block of the server's own tools."""
    return delta.get("type") == "input_json_delta" and isinstance(delta.get("partial_json"), str)
