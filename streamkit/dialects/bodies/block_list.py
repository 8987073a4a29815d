"""The content blocks of one message as they are put together, of a request or of a whole response.

A block that only its vendor understands comes as asides: the events that a stream would have sent, or all of it at once, as an
aside whose type begins with ``CONTENT``. Here the events become one block again. A citation belongs to the text block with its
label, and may come before that.

Source: dialects.md §3.1, §3.3, §6.1.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from streamkit.dialects.bodies.request_reader import CONTENT
from streamkit.events import Aside
from streamkit.report import StreamReport

Block = dict[str, Any]


class GrowingBlock(Protocol):
    """A block that grows by its events. Each dialect with blocks has one, in its ``asides.py``."""

    @property
    def block(self) -> Block:
        """The block as it stands in the message."""

    def take(self, delta: Any) -> bool:
        """Add a delta; False for one that does not belong there."""

    def finish(self, report: StreamReport) -> None:
        """Nothing more comes: put what was gathered into the block."""


class BlockList:
    """The blocks of one message, in the order in which they began."""

    #: The types of the asides that are a start, a delta and a stop of a block, and of one that is a citation.
    start: ClassVar[str]
    delta: ClassVar[str]
    stop: ClassVar[str]
    citation: ClassVar[str]

    def __init__(self, report: StreamReport) -> None:
        self.report = report
        self.blocks: list[Block] = []
        self._texts: dict[int, Block] = {}
        self._growing: dict[int, GrowingBlock] = {}
        self._citations: dict[int, list[Any]] = {}  # that came before their text

    def growing(self, start: Any) -> GrowingBlock | None:
        """The block that a start begins; None for one of an unknown kind."""
        raise NotImplementedError

    def cite(self, block: Block, citation: Any) -> None:
        raise NotImplementedError

    def add(self, block: Block) -> None:
        """Add a block that is whole."""
        self.blocks.append(block)

    def add_text(self, block: Block, label: int) -> None:
        """Add a text block, which citations with its label belong to."""
        self.blocks.append(block)
        self._texts[label] = block
        for citation in self._citations.pop(label, ()):
            self.cite(block, citation)

    def aside(self, part: Aside) -> None:
        """Add what an aside of this vendor says of a block, or count that there is no place for it."""
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
        """Whether a further event is one of a block that is here; it is added to it."""
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
