"""Where the text of an answer is code: Markdown's fences, spans and indented lines, while the text grows.

Theory: text is read once, by line ends, runs of backticks or tildes, and what is between. What is kept is the beginning of the
line, as long as it may still open a fence, and which fence or span is open.

Rules (CommonMark, doubts decided for code): a fence opens with three or more backticks or tildes that begin a line, white
space, list and quote marks aside, and closes with a line of at least as many. A span opens with a run of backticks and closes
with one as long, or at a blank line. A line that begins with four spaces or a tab is code to its end.

Source: CommonMark 0.31 §4.4, §4.5, §6.1.
"""

from __future__ import annotations

import re
from typing import Final

_PIECES: Final = re.compile(r"\n|`+|~+|[^\n`~]+")
#: What may stand in front of a fence.
_MARKS: Final = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t>]*)*")
#: The same, which may go on.
_MARKS_SO_FAR: Final = re.compile(_MARKS.pattern + r"\d{0,9}")
#: The longest beginning of a line that is looked at for a fence.
LINE_CHARS: Final = 80
FENCE: Final = 3


class CodeTracker:
    """Fed the text as it comes; says whether what comes next is code, and whether it begins a line."""

    __slots__ = ("_blank", "_closing", "_fence", "_fence_line", "_indented", "_run", "_span", "_start")

    def __init__(self) -> None:
        self._start: str | None = ""  # the line so far; None: no fence can open in it
        self._blank = True  # the line so far is white space
        self._indented = False  # the line begins with four spaces or a tab
        self._run = ""  # backticks or tildes at the end, which may go on
        self._fence = ""  # what opened the block of code
        self._fence_line = False  # the line that did is not over
        self._closing = False  # the line so far closes the fence
        self._span = 0  # backticks that opened a span

    @property
    def in_code(self) -> bool:
        self._settle()
        return bool(self._fence or self._span or self._indented)

    @property
    def begins_line(self) -> bool:
        """Whether nothing but a few spaces stands in the line yet."""
        self._settle()
        return self._blank and self._start is not None and self._start.isascii() and not self._start.strip(" ")

    def feed(self, text: str) -> None:
        for piece in _PIECES.findall(text):
            if piece[0] in "`~":
                if self._run and self._run[0] != piece[0]:
                    self._settle()
                self._run += piece
                continue
            self._settle()
            if piece == "\n":
                self._line_end()
            else:
                self._words(piece)

    def _words(self, text: str) -> None:
        is_blank = text.isspace()
        if self._blank and self._start is not None:
            line = self._start + text[:LINE_CHARS]
            indent = line[: len(line) - len(line.lstrip())]
            self._indented = "\t" in indent or indent.startswith("    ")
        self._blank = self._blank and is_blank
        self._closing = self._closing and is_blank
        if self._start is not None:
            self._start = self._start + text[: LINE_CHARS + 1]
            if len(self._start) > LINE_CHARS or not _MARKS_SO_FAR.fullmatch(self._start):
                self._start = None if not self._blank else self._start[:LINE_CHARS]

    def _line_end(self) -> None:
        if self._fence:
            if self._closing:
                self._fence = ""
        elif self._blank:
            self._span = 0
        self._fence_line = self._closing = False
        self._start, self._blank, self._indented = "", True, False

    def _settle(self) -> None:
        """What a run means, now that it is over."""
        run, self._run = self._run, ""
        if not run:
            return
        opens = len(run) >= FENCE and self._start is not None and _MARKS.fullmatch(self._start) is not None
        if self._fence_line and run[0] == "`" == self._fence[0]:  # no fence has a backtick behind it: it was a span
            self._fence, self._fence_line, self._span = "", False, len(self._fence)
        if self._fence:
            self._closing = opens and run.startswith(self._fence)
        elif opens and not self._span:
            self._fence, self._fence_line = run, True
        elif run[0] == "`":
            if not self._span:
                self._span = len(run)
            elif self._span == len(run):
                self._span = 0
        self._start, self._blank = None, False
