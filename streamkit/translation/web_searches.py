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
from streamkit.dialects.base import SearchForm
from streamkit.events import Aside, Event
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.pipeline import Stage
from streamkit.report import StreamReport
from streamkit.tool_calls.event_machine import EventMachine, stage_within


class SearchCarrier(EventMachine):
    """Machine of ``carry_searches``: ``list[Event]`` to ``list[Event]``."""

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

    def feed(self, events: list[Event], /) -> list[Event]:
        out: list[Any] = []
        for event in events:
            if not isinstance(event, Aside) or event.vendor != self._vendor:
                out.append(event)
                continue
            found, left = self._reader.take(event)
            if left is not None:  # in front: what it cites belongs to the text that is open
                out.append(left)
            for searched in found:
                out += self._to.write(searched, self._number, event.choice) if self._to.write is not None else ()
                self._number += 1
        return out

    def finish(self) -> list[Event]:
        self._reader.finish()
        return []


def _forms(source: str, to: str) -> tuple[SearchForm, SearchForm] | None:
    read, write = DIALECTS[source].searches, DIALECTS[to].searches
    if read is None or read.reader is None or write is None or write.write is None or source == to:
        return None
    return read, write


def carries_searches(source: str, to: str, offered: Sequence[Tool]) -> bool:
    """Whether searches of one dialect are to be told in another: both tell them, and the request offers one.

    Where clients read them in any case, none need be offered.
    """
    forms = _forms(source, to)
    return forms is not None and (forms[1].unasked or any(tool.search is not None for tool in offered))


def carry_searches(source: str, to: str, *, limits: Limits = DEFAULT_LIMITS) -> Stage[list[Event], list[Event]]:
    """The stage in front of ``encode`` that tells the searches of one dialect in the words of another."""
    forms = _forms(source, to)
    if forms is None:
        raise ValueError(f"no searches are carried from {source} to {to}")
    return stage_within("events", "carry_searches", lambda report: SearchCarrier(*forms, limits=limits, report=report))


def carry_searches_of(response: Response, to: str) -> None:
    """The same for a whole response, in place."""
    forms = _forms(response.dialect, to)
    for choice in response.choices if forms is not None else ():
        carrier = SearchCarrier(*forms, report=response.report)  # type: ignore[misc]  # asked above
        parts: list[Any] = list(choice.parts)
        choice.parts = [made for part in parts for made in carrier.feed([part])]  # type: ignore[misc]  # parts are no events
        carrier.finish()
