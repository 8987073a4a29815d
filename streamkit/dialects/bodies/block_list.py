"""The content blocks of one message while a request or a whole response is written.

A block that only its vendor understands is stored as asides: either the events that a stream would have sent, or the whole
block in one aside whose type begins with ``CONTENT``. This module builds one block from such events. A citation belongs to
the text block with its label, and may come before that block.

Source: dialects.md §3.1, §3.3, §6.1 (blocks of Anthropic and Bedrock).
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import orjson

from streamkit.dialects.bodies.request_reader import CONTENT
from streamkit.dialects.streams.event_encoder import wrapped_arguments
from streamkit.events import Aside
from streamkit.report import StreamReport
from streamkit.tool_calls.check import check_arguments

Block = dict[str, Any]


class GrowingBlock(Protocol):
    """A block that is built from its events. Each dialect with blocks has a class of this kind, in its ``asides.py``."""

    @property
    def block(self) -> Block:
        """The block in the form in which a whole message contains it."""

    def take(self, delta: Any) -> bool:
        """Add a delta; return False if the delta does not belong in this block."""

    def finish(self, report: StreamReport) -> None:
        """End the block: put the collected deltas into it."""


def joined_input(fragments: list[str], name: object, report: StreamReport) -> orjson.Fragment | None:
    """Return the input of a call from its fragments; None if it is blank. Text that is no object is wrapped, a loss."""
    text = "".join(fragments)
    verdict = check_arguments(text).kind
    if verdict not in {"empty", "complete"}:
        report.lose("arguments_wrapped", what=str(name))
        return orjson.Fragment(wrapped_arguments(text))
    return None if verdict == "empty" else orjson.Fragment(text)


class BlockList:
    """The blocks of one message, in the order in which they began."""

    #: The types of the asides that start, extend and end a block, and of a citation.
    start: ClassVar[str]
    delta: ClassVar[str]
    stop: ClassVar[str]
    citation: ClassVar[str]

    def __init__(self, report: StreamReport) -> None:
        self.report = report
        self.blocks: list[Block] = []
        self._texts: dict[int, Block] = {}
        self._growing: dict[int, GrowingBlock] = {}
        self._citations: dict[int, list[Any]] = {}  # citations that precede their text

    def growing(self, start: Any) -> GrowingBlock | None:
        """Return the block that a start event begins; None for an unknown kind of block."""
        raise NotImplementedError

    def cite(self, block: Block, citation: Any) -> None:
        raise NotImplementedError

    def add(self, block: Block) -> None:
        self.blocks.append(block)

    def add_text(self, block: Block, label: int) -> None:
        """Add a text block. Citations with the same label belong to it."""
        self.blocks.append(block)
        self._texts[label] = block
        for citation in self._citations.pop(label, ()):
            self.cite(block, citation)

    def aside(self, part: Aside) -> None:
        """Add the block, delta or citation that an aside contains, or count it as lost if there is no place for it."""
        if part.type == self.citation:
            text = self._texts.get(part.block)
            if text is not None:
                self.cite(text, part.raw)
            else:
                self._citations.setdefault(part.block, []).append(part.raw)
        elif part.type.startswith(CONTENT):
            self.blocks.append(part.raw)
        elif part.type == self.start and (growing := self.growing(part.raw)) is not None:
            self._growing[part.block] = growing
            self.blocks.append(growing.block)
        elif not self._belongs(part):
            self.report.lose(part.kind, what=part.type)

    def _belongs(self, part: Aside) -> bool:
        """Add an event to the block with the event's label. Return False if there is no such block or it refuses the event."""
        growing = self._growing.get(part.block)
        if growing is None:
            return False
        return part.type == self.stop or (part.type == self.delta and growing.take(part.raw.get("delta")))

    def finish(self) -> list[Block]:
        for growing in self._growing.values():
            growing.finish(self.report)
        for citations in self._citations.values():
            self.report.lose("citation", len(citations))
        return self.blocks
