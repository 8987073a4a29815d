"""Searches of the web as Gemini tells them: the words that it looked for, and the pages, at the end.

Source: dialects.md §5.2.
"""

from __future__ import annotations

from typing import Final

from attrs import evolve

from streamkit.conversation.messages import WebSearched
from streamkit.dialects.base import SearchForm
from streamkit.dialects.gemini.citations import TYPE, pages_of
from streamkit.dialects.gemini.wire import VENDOR
from streamkit.events import Aside
from streamkit.limits import Limits
from streamkit.report import StreamReport

QUERIES: Final = "webSearchQueries"
#: What a text takes beside its characters where it is remembered, counted as characters.
ENTRY_CHARS: Final = 100


class SearchReader:
    """The words that were looked for; the pages stay, since they are cited.

    A later chunk may say again all that was said so far: of that only what is new is one more search.
    """

    def __init__(self, limits: Limits, _report: StreamReport) -> None:
        self._told: set[tuple[int, str]] = set()  # words and URLs, by their choice
        self._room = limits.held_chars

    def take(self, aside: Aside) -> tuple[list[WebSearched], Aside | None]:
        raw = aside.raw if aside.type == TYPE and isinstance(aside.raw, dict) else {}
        queries = raw.get(QUERIES)
        words = [query for query in queries if isinstance(query, str)] if isinstance(queries, list) else []
        if not words:
            return [], aside
        pages = [(page[0], page[1] or "") for page in pages_of(raw) if page is not None]
        left = evolve(aside, raw={name: value for name, value in raw.items() if name != QUERIES})
        new_words = [text for text in words if self._is_new(aside.choice, text)]
        new_pages = [page for page in pages if self._is_new(aside.choice, page[0])]
        if not (new_words or new_pages):
            return [], left
        return [WebSearched(", ".join(new_words or words), new_pages)], left

    def finish(self) -> None:
        """Nothing is open."""

    def _is_new(self, choice: int, text: str) -> bool:
        if (choice, text) in self._told:
            return False
        if len(text) + ENTRY_CHARS <= self._room:
            self._room -= len(text) + ENTRY_CHARS
            self._told.add((choice, text))
        return True


SEARCHES: Final = SearchForm(vendor=VENDOR, reader=SearchReader)
