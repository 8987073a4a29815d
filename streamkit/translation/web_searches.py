"""Translate the web searches that a provider ran itself: the query and the pages found, in another dialect's form.

A client that asked for a search counts searches and lists their pages: Claude Code takes its links only from them. So each
search that has ended is written once, as a whole; its progress is not written. Clients run none of these searches. Where the
source's dialect sends a search in several frames, they are collected; a search without an end is a counted loss.

Source: dialects.md §2.1, §2.2, §3.1, §5.2 (searches of Responses, Anthropic and Gemini).
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
    """The machine of ``carry_searches``: from events to events with translated searches."""

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
        if left is not None:  # emitted before the search, since its citations belong to the open text block
            self.emit(left)
        for searched in found:
            for aside in self._to.write(searched, self._number, event.choice) if self._to.write is not None else ():
                self.emit(aside)
            self._number += 1

    def push_end(self) -> None:
        self._reader.finish()


def _forms(source: Dialect, to: Dialect, offered: Sequence[Tool]) -> tuple[SearchForm, SearchForm] | None:
    """Return how both dialects write searches, or None where none are translated: the request must offer a search.

    A dialect whose clients read searches in any case (``unasked``) needs no offer.
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
    """Return the stage before ``encode`` that translates searches from ``source`` to ``to``; None if none is needed."""
    forms = _forms(source, to, offered)
    if forms is None:
        return None
    return stage_within("events", "carry_searches", lambda report: SearchCarrier(*forms, limits=limits, report=report))


def carry_searches_of(response: Response, to: str, offered: Sequence[Tool]) -> None:
    """Translate the searches of a whole response to the dialect ``to``, in place."""
    forms = _forms(DIALECTS[response.dialect], DIALECTS[to], offered)
    if forms is None:
        return
    for choice in response.choices:
        carrier = SearchCarrier(*forms, report=response.report)
        parts: list[Any] = list(choice.parts)
        choice.parts = [made for part in parts for made in carrier.feed([part])]
        carrier.finish()
