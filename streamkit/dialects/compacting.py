"""Summaries of what was said before, blocks of kind ``compaction`` in Anthropic's answers: text in every other dialect.

A delta of such a block assigns the whole summary, so it is told once, when the block ends. What only Anthropic can read
beside it is left out, and that there was such a block is one counted loss.

Source: dialects.md §3.1; anthropic 2.12, ``BetaCompactionBlock`` and ``BetaCompactionContentBlockDelta``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import evolve

from streamkit.dialects.opaque import ANTHROPIC
from streamkit.events import Aside, TextDelta
from streamkit.messages import Part, Response, Text
from streamkit.report import StreamReport

COMPACTION: Final = "compaction"
#: Members of each frame, and of the block or the delta in it, that are read or that the loss of the form stands for.
FRAME: Final = frozenset({"type", "index", "content_block", "delta"})
SAID: Final = frozenset({"type", "content", "encrypted_content", "signature", "tool_changes"})


class SummaryReader:
    """The frames of one answer's compactions: to their summaries. Every other aside passes."""

    def __init__(self, report: StreamReport) -> None:
        self._report = report
        self._summaries: dict[int, str] = {}  # of blocks that are open, by their label

    def take(self, aside: Aside) -> Sequence[Aside | TextDelta]:
        """What an aside of Anthropic's is for another dialect."""
        raw = aside.raw if isinstance(aside.raw, Mapping) else {}
        if aside.type == "content_block_start":
            block = raw.get("content_block")
            if not isinstance(block, Mapping) or block.get("type") != COMPACTION:
                return [aside]
            self._report.lose(COMPACTION)
            self._lose_unread(raw, block)
            self._summaries[aside.block] = _summary(block) or ""
        elif aside.block not in self._summaries:
            return [aside]
        elif aside.type == "content_block_delta":
            self._lose_unread(raw, raw.get("delta"))
            summary = _summary(raw.get("delta"))
            self._summaries[aside.block] = self._summaries[aside.block] if summary is None else summary
        elif aside.type == "content_block_stop":
            self._lose_unread(raw, None)
            summary = self._summaries.pop(aside.block)
            return [TextDelta(summary, aside.choice, aside.block)] if summary else []
        else:
            return [aside]
        return []

    def _lose_unread(self, frame: Mapping[str, Any], inner: Any) -> None:
        """Count the members of a frame, and of the block or delta in it, that nobody knows."""
        unread = (frame.keys() - FRAME) | (inner.keys() - SAID if isinstance(inner, Mapping) else set())
        for name in sorted(unread):
            self._report.lose("unknown_event", what=f"{COMPACTION}.{name}")


def _summary(said: Any) -> str | None:
    summary = said.get("content") if isinstance(said, Mapping) else None
    return summary if isinstance(summary, str) else None


def with_summaries_as_text(response: Response, report: StreamReport) -> Response:
    """A whole response for another dialect than Anthropic's: summaries are parts of text."""
    if not any(part.vendor == ANTHROPIC for choice in response.choices for part in choice.asides):
        return response
    choices = []
    for choice in response.choices:
        reader, parts = SummaryReader(report), list[Part]()
        for part in choice.parts:
            if isinstance(part, Aside) and part.vendor == ANTHROPIC:
                parts += [
                    Text(found.text, block=found.block) if isinstance(found, TextDelta) else found
                    for found in reader.take(part)
                ]
            else:
                parts.append(part)
        choices.append(evolve(choice, parts=parts))
    return evolve(response, choices=choices)
