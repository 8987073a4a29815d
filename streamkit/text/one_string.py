"""Blocks of reasoning in one string: a blank line between two of them, unless their own text has one.

Chat, Ollama and others have a single text for all that a model thought. Headings of two summaries that touch
(``**Look****Think**``) are no headings any more. Line ends that a block ends or begins with count, however its text is cut.

Source: dialects.md §1.8.
"""

from __future__ import annotations

from collections.abc import Iterable

#: Line ends of a blank line.
BLANK = 2


class OneString:
    """The string so far. Call ``begin`` for each block and ``before`` for each of its pieces, in order."""

    ends = BLANK  #: line ends at its end; a string without text needs none
    _due = 0  # line ends that are missing before the block, whose text has not begun

    @property
    def is_due(self) -> bool:
        """Return whether the next piece may need a line end before it."""
        return self._due > 0

    def begin(self) -> None:
        """Begin another block."""
        self._due = BLANK - self.ends

    def before(self, text: str) -> str:
        """Take the next piece of the block; return the line ends to write before it."""
        if not self._due and text[-1:] != "\n":  # nearly always
            self.ends = 0 if text else self.ends
            return ""
        rest = text.lstrip("\n")
        leading = len(text) - len(rest)
        self._due = max(0, self._due - leading)
        if not rest:
            self.ends = min(BLANK, self.ends + leading)
            return ""
        missing, self._due = "\n" * self._due, 0
        self.ends = min(BLANK, len(rest) - len(rest.rstrip("\n")))
        return missing


def one_string(texts: Iterable[str]) -> str:
    """Return the texts of blocks as one string."""
    joined, pieces = OneString(), []
    for text in texts:
        if text:
            joined.begin()
            pieces += [joined.before(text), text]
    return "".join(pieces)
