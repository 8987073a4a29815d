"""What the checkers of Chat and of Mistral, which is shaped alike, have in common: the run of a stream of chunks.

Source: dialects.md §0.3, §1.1, §6.3.
"""

from __future__ import annotations

from typing import Any, Protocol

from streamkit.dialects.linting.grammar import GrammarChecker, Severity, is_filled, shown
from streamkit.framing.frame import Frame

DONE = b"[DONE]"


class Finishing(Protocol):
    """A choice, as far as its end goes."""

    finished: object


class ChunkChecker(GrammarChecker):
    def __init__(self) -> None:
        super().__init__()
        self.failed = False  # an error frame came
        self._identity: dict[str, str] = {}
        self._done = False

    def choices(self) -> dict[int, Any]:
        """The choices so far, each with its ``finished``."""
        raise NotImplementedError

    def unterminated(self, frame: Frame) -> Severity:
        """How bad it is that the last event lacks its blank line."""
        raise NotImplementedError

    def take(self, frame: Frame) -> None:
        if not frame.terminated:
            self.broken("unterminated", "no blank line after the last event", self.unterminated(frame))
        if self._done:
            self.broken("after_done", f"after [DONE]: {shown(frame.text)}")
        elif frame.data == DONE:
            self._done = True
        elif self.failed:
            self.broken("after_error", f"after an error frame: {shown(frame.text)}")
        elif not frame.data or frame.data.isspace():
            self.broken("empty_data", "the payload is blank")
        else:
            super().take(frame)

    def close(self) -> None:
        if self.failed:
            return
        choices = self.choices()
        open_ones = [number for number, choice in choices.items() if not choice.finished]
        if open_ones:
            self.broken("truncated", f"choice {open_ones[0]} has no finish reason")
        elif not choices:
            self.broken("truncated", "the stream has no choice")
        elif not self._done:
            self.broken("done", "the stream ends without [DONE]", "note")

    def same(self, document: dict[str, Any]) -> list[Any]:
        """What is alike in all chunks; returns their choices."""
        for name in ("id", "model"):
            value = document.get(name)
            if not isinstance(value, str):
                self.broken("identity", f"{name} is {shown(value)}")
            elif self._identity.setdefault(name, value) != value:
                self.broken("identity", f"{name} changes from {shown(self._identity[name])} to {shown(value)}", "note")
                self._identity[name] = value
        choices = document.get("choices")
        if isinstance(choices, list):
            return choices
        self.broken("choices", f"choices is {shown(choices)}")
        return []

    def finish_reason(self, choice: Finishing, reason: object) -> None:
        if reason is None:
            return
        if not is_filled(reason):
            self.broken("finish_reason", f"finish_reason is {shown(reason)}")
            return
        if choice.finished is not None:
            same = reason == choice.finished  # OpenRouter repeats it beside the usage
            self.broken("finish_reason", f"a second finish reason: {shown(reason)}", "note" if same else "error")
        choice.finished = reason
