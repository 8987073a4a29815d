"""Join blocks of reasoning into one string, separated by a blank line unless their text already has one.

Chat, Ollama and others have one text field for all reasoning. Without a separator the headings of two summaries would run
together (``**Look****Think**``).

Source: dialects.md §1.8.
"""

from __future__ import annotations

from collections.abc import Iterable

BLANK = 2  #: number of line ends that make a blank line


class OneString:
    """The string so far. Call ``begin`` for each block and ``before`` for each of its pieces, in order."""

    ends = BLANK  #: number of line ends at the end of the string; an empty string needs none
    _due = 0  # number of line ends to write before the block's first text

    @property
    def is_due(self) -> bool:
        """True if the next piece may need a line end before it."""
        return self._due > 0

    def begin(self) -> None:
        self._due = BLANK - self.ends

    def before(self, text: str) -> str:
        """Take the next piece of the block; return the line ends to write before it."""
        if not self._due and text[-1:] != "\n":  # nearly always true
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
