"""Searches of the web as Gemini tells them: the words that it looked for, and the pages, at the end.

Source: dialects.md §5.2.
"""

from __future__ import annotations

from typing import Final

from attrs import evolve

from streamkit.dialects.base import SearchForm
from streamkit.dialects.gemini.citations import TYPE, pages_of
from streamkit.dialects.gemini.wire import VENDOR
from streamkit.events import Aside
from streamkit.limits import Limits
from streamkit.messages import WebSearched
from streamkit.report import StreamReport

QUERIES: Final = "webSearchQueries"


class SearchReader:
    """The words that were looked for; the pages stay, since they are cited."""

    def __init__(self, _limits: Limits, _report: StreamReport) -> None:
        """Nothing is kept."""

    def take(self, aside: Aside) -> tuple[list[WebSearched], Aside | None]:
        raw = aside.raw if aside.type == TYPE and isinstance(aside.raw, dict) else {}
        queries = raw.get(QUERIES)
        words = [query for query in queries if isinstance(query, str)] if isinstance(queries, list) else []
        if not words:
            return [], aside
        pages = [(page[0], page[1] or "") for page in pages_of(raw) if page is not None]
        left = {name: value for name, value in raw.items() if name != QUERIES}
        return [WebSearched(", ".join(words), pages)], evolve(aside, raw=left)

    def finish(self) -> None:
        """Nothing is open."""


SEARCHES: Final = SearchForm(vendor=VENDOR, reader=SearchReader)
