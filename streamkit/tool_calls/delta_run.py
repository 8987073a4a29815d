"""Many deltas that differ in little, as one: what a skeleton reads (``dialects/skeleton.py``) and the accumulator takes.

It flows between machines that run as one and nowhere else: no stage yields it.
"""

from __future__ import annotations

from typing import TypeAlias

from streamkit.events import ReasoningDelta, RefusalDelta, TextDelta, ToolCallDelta

Delta: TypeAlias = TextDelta | RefusalDelta | ReasoningDelta | ToolCallDelta


class DeltaRun:
    """Deltas like ``model``, one for each of ``texts``; of calls each has its own index where ``indices`` are given."""

    __slots__ = ("indices", "model", "texts")

    def __init__(self, model: Delta, texts: list[str], indices: list[int] | None = None) -> None:
        self.model = model
        self.texts = texts
        self.indices = indices

    def deltas(self) -> list[Delta]:
        """They, one by one."""
        like, texts = self.model, self.texts
        if isinstance(like, ToolCallDelta):
            indices = [like.index] * len(texts) if self.indices is None else self.indices
            return [
                ToolCallDelta(index, arguments=text, choice=like.choice, kind=like.kind, anonymous=like.anonymous)
                for index, text in zip(indices, texts, strict=True)
            ]
        if isinstance(like, ReasoningDelta):
            return [ReasoningDelta(text, like.choice, like.block, like.kind) for text in texts]
        kind, choice, block = type(like), like.choice, like.block
        return [kind(text, choice, block) for text in texts]
