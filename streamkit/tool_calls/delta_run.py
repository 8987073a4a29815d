"""Many deltas that differ in little, as one: what a template reads (``dialects/fast_path/template.py``) and what
encoders write at once.

It flows between machines that share a driver and know of it, and nowhere else: no stage yields it.
"""

from __future__ import annotations

from typing import Any, TypeAlias, cast

from attrs import evolve

from streamkit.events import ReasoningDelta, RefusalDelta, TextDelta, ToolCallArguments, ToolCallDelta

Delta: TypeAlias = TextDelta | RefusalDelta | ReasoningDelta | ToolCallDelta | ToolCallArguments


def delta_like(like: Delta, text: str, index: int | None) -> Any:
    """One delta: ``like`` with this text, and this label if one is given."""
    if type(like) is TextDelta:  # nearly all, and ``evolve`` takes six times as long
        return TextDelta(text, like.choice, like.block)
    if type(like) is ToolCallDelta:
        return ToolCallDelta(like.index if index is None else index, None, None, text, like.choice, like.kind)
    if type(like) is ReasoningDelta:
        return ReasoningDelta(text, like.choice, like.block, like.kind)
    return evolve(cast("Any", like), text=text)


class DeltaRun:
    """Deltas like ``model``, one for each of ``texts``. Of calls ``indices`` may say whose each is: the label on the wire
    of a ``ToolCallDelta``, the ordinal of ``ToolCallArguments``.
    """

    __slots__ = ("_by_call", "_text", "indices", "model", "texts")

    def __init__(
        self,
        model: Delta,
        texts: list[str],
        indices: list[int] | None = None,
        by_call: dict[int, list[str]] | None = None,
    ) -> None:
        self.model = model
        self.texts = texts
        self.indices = indices
        self._by_call = by_call
        self._text: str | None = None

    @property
    def run_length(self) -> int:
        return len(self.texts)

    @property
    def text(self) -> str:
        """All ``texts`` as one, which are not to change any more."""
        if self._text is None:
            self._text = "".join(self.texts)
        return self._text

    @property
    def choice(self) -> int:
        return self.model.choice

    def by_call(self) -> dict[int, list[str]]:
        """The texts of each call, by what ``indices`` say, in the order of first mention. Only for fragments of calls."""
        if self._by_call is None:
            if self.indices is None:
                like = cast("ToolCallDelta | ToolCallArguments", self.model)
                label = like.call if isinstance(like, ToolCallArguments) else cast("int", like.index)
                self._by_call = {label: self.texts}
            else:
                self._by_call = {index: [] for index in dict.fromkeys(self.indices)}
                append = {index: texts.append for index, texts in self._by_call.items()}
                for index, text in zip(self.indices, self.texts, strict=True):
                    append[index](text)
        return self._by_call

    def deltas(self) -> list[Any]:
        like, texts = self.model, self.texts
        if isinstance(like, ToolCallDelta | ToolCallArguments):
            return self._fragments(like)
        if isinstance(like, ReasoningDelta):
            return [ReasoningDelta(text, like.choice, like.block, like.kind) for text in texts]
        kind, choice, block = type(like), like.choice, like.block
        return [kind(text, choice, block) for text in texts]

    def _fragments(self, like: ToolCallDelta | ToolCallArguments) -> list[Any]:
        if isinstance(like, ToolCallArguments):
            calls = self.indices or [like.call] * len(self.texts)
            return [ToolCallArguments(call, text, like.choice) for call, text in zip(calls, self.texts, strict=True)]
        labels: list[Any] = self.indices or [like.index] * len(self.texts)
        return [
            ToolCallDelta(index, arguments=text, choice=like.choice, kind=like.kind)
            for index, text in zip(labels, self.texts, strict=True)
        ]

    def joined(self) -> Any:
        """They as one, where all are of one block."""
        return delta_like(self.model, self.text, None)
