"""Track whether growing text is inside code: Markdown's fences, spans and indented lines.

The rules are CommonMark's; doubtful text counts as code. A fence opens with three or more backticks or tildes at the start of
a line, after white space, list marks and quote marks, and closes with a line of at least as many. A span opens with a run of
backticks and closes with a run of the same length, or at a blank line. A line that begins with four spaces or a tab is code.

Source: CommonMark 0.31 §4.4, §4.5, §6.1.
"""

from __future__ import annotations

import re
from typing import Final

_PIECES: Final = re.compile(r"\n|`+|~+|[^\n`~]+")
_MARKS: Final = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t>]*)*")  #: marks before a fence
_MARKS_SO_FAR: Final = re.compile(_MARKS.pattern + r"\d{0,9}")  #: perhaps with an incomplete number
LINE_CHARS: Final = 80  #: maximum length of a line's start that is searched for a fence
FENCE: Final = 3  #: minimum number of backticks or tildes in a fence


class CodeTracker:
    """Takes text as it arrives, and reports whether the next text is code and whether it begins a line."""

    __slots__ = ("_blank", "_closing", "_fence", "_fence_line", "_indented", "_run", "_span", "_start")

    def __init__(self) -> None:
        self._start: str | None = ""  # the line so far; None: no fence can open in it
        self._blank = True  # the line so far is white space
        self._indented = False  # the line begins with four spaces or a tab
        self._run = ""  # backticks or tildes at the end, which may continue
        self._fence = ""  # the run that opened the current fence
        self._fence_line = False  # still in the line that opened the fence
        self._closing = False  # the line so far closes the fence
        self._span = 0  # number of backticks that opened a span

    @property
    def in_code(self) -> bool:
        self._settle()
        return bool(self._fence or self._span or self._indented)

    @property
    def begins_line(self) -> bool:
        """True if the line has at most a few spaces so far."""
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
        """Interpret the last run of backticks or tildes, now that it is complete."""
        run, self._run = self._run, ""
        if not run:
            return
        opens = len(run) >= FENCE and self._start is not None and _MARKS.fullmatch(self._start) is not None
        # a backtick fence has no backtick after it in its line, so this was a span
        if self._fence_line and run[0] == "`" == self._fence[0]:
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
