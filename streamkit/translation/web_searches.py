"""Searches of the web that a provider ran itself, as another dialect tells them: what was looked for, and what was found.

A client that asked for a search counts them and lists the pages: Claude Code takes its links from nothing else. So each search
that is over is told once, in whole; its progress is not. No client runs any of it. The frames of a search that the source's
dialect tells in pieces are taken together, and one without an end is a counted loss.

Source: dialects.md §2.1, §2.2, §3.1, §5.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streamkit.conversation.messages import Response, Tool
from streamkit.dialects import DIALECTS
from streamkit.dialects.base import Dialect, SearchForm
from streamkit.events import Aside, Event
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.machines import Link
from streamkit.pipeline import Stage, stage_within
from streamkit.report import StreamReport


class SearchCarrier(Link):
    """Machine of ``carry_searches``: events to events."""

    def __init__(
        self, source: SearchForm, to: SearchForm, *, limits: Limits = DEFAULT_LIMITS, report: StreamReport | None = None
    ) -> None:
        self._report = report if report is not None else StreamReport()
        if source.reader is None:
            raise ValueError(f"no searches of {source.vendor} are read")
        self._reader = source.reader(limits, self._report)
        self._vendor = source.vendor
        self._to = to
        self._number = 0

    def push(self, event: Event, /) -> None:
        if not isinstance(event, Aside) or event.vendor != self._vendor:
            self.emit(event)
            return
        found, left = self._reader.take(event)
        if left is not None:  # in front: what it cites belongs to the text that is open
            self.emit(left)
        for searched in found:
            for aside in self._to.write(searched, self._number, event.choice) if self._to.write is not None else ():
                self.emit(aside)
            self._number += 1

    def push_end(self) -> None:
        self._reader.finish()


def _forms(source: Dialect, to: Dialect, offered: Sequence[Tool]) -> tuple[SearchForm, SearchForm] | None:
    """How both dialects tell searches, where those of one are to be told in the other: the request offers one.

    Where clients read them in any case, none need be offered.
    """
    read, write = source.searches, to.searches
    if read is None or read.reader is None or write is None or write.write is None or source is to:
        return None
    if not (write.unasked or any(tool.search is not None for tool in offered)):
        return None
    return read, write


def carry_searches(
    source: Dialect, to: Dialect, offered: Sequence[Tool], *, limits: Limits = DEFAULT_LIMITS
) -> Stage[list[Event], list[Event]] | None:
    """The stage in front of ``encode`` that tells the searches of one dialect in the words of another, if it has to."""
    forms = _forms(source, to, offered)
    if forms is None:
        return None
    return stage_within("events", "carry_searches", lambda report: SearchCarrier(*forms, limits=limits, report=report))


def carry_searches_of(response: Response, to: str, offered: Sequence[Tool]) -> None:
    """The same for a whole response, in place."""
    forms = _forms(DIALECTS[response.dialect], DIALECTS[to], offered)
    if forms is None:
        return
    for choice in response.choices:
        carrier = SearchCarrier(*forms, report=response.report)
        parts: list[Any] = list(choice.parts)
        choice.parts = [made for part in parts for made in carrier.feed([part])]
        carrier.finish()
