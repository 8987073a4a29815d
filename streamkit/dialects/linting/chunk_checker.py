"""What the checkers of Chat and Mistral share. The chunks of both dialects contain choices in the same form.

Source: dialects.md §0.3, §1.1, §6.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, Protocol, TypeVar

from streamkit.dialects.linting.explain import COMMON_HINTS, CUT, READS, TORN, UNFINISHED, Hint, Hints, like
from streamkit.dialects.linting.grammar import GrammarChecker, Severity, is_filled, is_index, shown
from streamkit.framing.frame import Frame

DONE = b"[DONE]"
#: Rules of both dialects. Each dialect's table has its own rules first, and then these.
CHUNK_RULES: Mapping[str, str] = {
    "after_finish": "A choice has no content after its finish reason (§1.1).",
    "after_error": "Nothing but `[DONE]` follows an error frame (§1.1).",
    "done": "A stream ends with `[DONE]`, unless an error frame ended it (§1.1).",
    "after_done": "Nothing follows `[DONE]` (§1.1).",
}
CHUNK_HINTS: Hints = {
    **COMMON_HINTS,
    "truncated": (
        like("finish_derived"),
        Hint(UNFINISHED, 61),
        Hint(CUT, 114, "the stream has no choice"),
        Hint(CUT, 65),
    ),
    "unterminated": (like("last_event_unterminated"), Hint(TORN, 106), Hint(CUT, 106)),
    "empty_data": (Hint(READS, 100),),
    "identity": (like("field_invalid"),),
    "delta": (like("delta_missing"), like("field_invalid")),
    "finish_reason": (
        like("field_invalid"),
        Hint(READS, 57, "finish_reason is"),
        Hint(READS, 58, "a second finish reason"),
    ),
    "after_finish": (Hint(READS, 59), like("after_error")),
    "error": (like("error_shape"),),
    "after_error": (like("after_error"),),
    "done": (),
    "after_done": (like("after_end"), like("after_error")),
}


class Finishing(Protocol):
    """A choice of a stream; ``finished`` is its finish reason, if it has one."""

    finished: object


C = TypeVar("C", bound=Finishing)


class ChunkChecker(GrammarChecker, Generic[C]):
    """Checks the chunks of one stream. Subclasses check the content of a chunk."""

    new_choice: Callable[[], C]  #: makes the record of a choice before its first chunk

    def __init__(self) -> None:
        super().__init__()
        self.failed = False  # whether an error frame was received
        self.choices: dict[int, C] = {}  #: choices of the stream so far, by index
        self._done = False

    def unterminated(self, frame: Frame) -> Severity:  # noqa: ARG002 - for those that override it
        """Return how serious a missing blank line after the last event is. Most clients read the event anyway."""
        return "note"

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
        open_ones = [number for number, choice in self.choices.items() if not choice.finished]
        if open_ones:
            self.broken("truncated", f"choice {open_ones[0]} has no finish reason")
        elif not self.choices:
            self.broken("truncated", "the stream has no choice")
        elif not self._done:
            self.broken("done", "the stream ends without [DONE]", "note")

    def same(self, document: dict[str, Any]) -> list[Any]:
        """Check the members that must be equal in all chunks. Return the choices."""
        self.identity(document, "id")
        self.identity(document, "model")
        choices = document.get("choices")
        if isinstance(choices, list):
            return choices
        self.broken("choices", f"choices is {shown(choices)}")
        return []

    def entry(self, entry: object) -> tuple[C, dict[str, Any], dict[str, Any]] | None:
        """Return the record, the entry and its delta for an entry of ``choices``; None if its index is invalid."""
        if not isinstance(entry, dict) or not is_index(entry.get("index")):
            self.broken("choices", f"a choice without an index: {shown(entry)}")
            return None
        choice = self.choices.get(entry["index"])
        if choice is None:
            choice = self.choices[entry["index"]] = self.new_choice()
        delta = entry.get("delta")
        if isinstance(delta, dict):
            return choice, entry, delta
        self.broken("delta", f"delta is {shown(delta)}")
        return choice, entry, {}

    def tool_calls(self, entries: object, *, bare: bool) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Yield each entry of ``tool_calls`` and its function. ``bare``: an entry may lack a function."""
        if not isinstance(entries, list | None):
            self.broken("tool_calls", f"tool_calls is {shown(entries)}")
            return
        for entry in entries or ():
            function = entry.get("function", {} if bare else None) if isinstance(entry, dict) else None
            if isinstance(function, dict):
                yield entry, function
            else:
                self.broken("tool_calls", f"an entry of tool_calls is {shown(entry)}")

    def finish_reason(self, choice: C, reason: object) -> None:
        """Check the finish reason of a choice, and keep it. A choice must have only one."""
        if reason is None:
            return
        if not is_filled(reason):
            self.broken("finish_reason", f"finish_reason is {shown(reason)}")
            return
        if choice.finished is not None:
            same = reason == choice.finished  # OpenRouter repeats the finish reason next to the usage
            self.broken("finish_reason", f"a second finish reason: {shown(reason)}", "note" if same else "error")
        choice.finished = reason
