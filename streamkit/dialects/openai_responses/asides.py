"""Asides for citations of web pages (with positions in characters of a text part), and for web searches.

A search is an item, which contains the query when it is done. The id of a search that another provider ran contains a mark,
so that the reader of requests recognises it.

Source: dialects.md §2.1, §2.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from streamkit.conversation.messages import Citation, WebSearched
from streamkit.dialects.base import CitationForm, SearchForm
from streamkit.dialects.members.values import details_of
from streamkit.dialects.openai_responses.wire import VENDOR
from streamkit.dialects.vocabulary.openai import WEB, read_url_citation, write_annotations
from streamkit.dialects.vocabulary.sealed_reasoning import MADE
from streamkit.dialects.vocabulary.web_search import read_pages
from streamkit.events import Aside
from streamkit.limits import Limits
from streamkit.report import StreamReport
from streamkit.text.identifiers import hashed

ITEM: Final = "web_search_call"
PREFIX: Final = f"ws_{MADE}"
IMAGE_PREFIX: Final = f"ig_{MADE}"
MADE_IDS: Final = (PREFIX, IMAGE_PREFIX)
ADDED, DONE = "response.output_item.added", "response.output_item.done"


def read_citation(aside: Aside) -> tuple[list[Citation], Sequence[str]]:
    """Return the web page that an aside cites; empty for any other aside."""
    is_web = isinstance(aside.raw, dict) and aside.raw.get("type") == WEB
    return read_url_citation(aside.raw) if is_web else [], ()


CITATIONS: Final = CitationForm(
    vendor=VENDOR, unit="block", read=read_citation, write=partial(write_annotations, VENDOR, nested=False)
)


class SearchReader:
    """Reads web searches from their output items, one event at a time."""

    def __init__(self, _limits: Limits, report: StreamReport) -> None:
        self._report = report
        self._open = 0

    def take(self, aside: Aside) -> tuple[list[WebSearched], Aside | None]:
        """Return the searches that an aside completes, and the aside without them; None if nothing else is in it."""
        raw = aside.raw if isinstance(aside.raw, dict) else {}
        if aside.type.startswith(f"response.{ITEM}."):
            return [], None  # the progress of the search
        item = raw.get("item") if aside.type in {ADDED, DONE} else None
        if not isinstance(item, dict) or item.get("type") != ITEM:
            return [], aside
        if aside.type == ADDED:
            self._open += 1
            return [], None
        self._open = max(self._open - 1, 0)
        action = details_of(item, "action")
        if action.get("type", "search") != "search":  # the item is no search: it opened a page, or searched in one
            self._report.lose("server_tool", what=f"{ITEM}.{action.get('type')}")
            return [], None
        return [WebSearched(_query(action), read_pages(action.get("sources")), item.get("status") == "failed")], None

    def finish(self) -> None:
        """Count as lost the searches that began and never ended."""
        for _ in range(self._open):
            self._report.lose("server_tool", what=ITEM)


def _query(action: Mapping[str, Any]) -> str:
    query, queries = action.get("query"), action.get("queries")
    if isinstance(query, str) and query:
        return query
    return ", ".join(text for text in (queries if isinstance(queries, list) else ()) if isinstance(text, str))


def write_search(searched: WebSearched, number: int, choice: int) -> list[Aside]:
    """Return the asides for another provider's search: an item that begins and ends."""
    item_id = f"{PREFIX}_{hashed(f'{number} {searched.query}', 17)}"
    asides = []
    for name, status, pages in (
        (ADDED, "in_progress", ()),
        (DONE, "failed" if searched.failed else "completed", searched.pages),
    ):
        sources = [{"type": "url", "url": url} for url, _ in pages]
        action = {"type": "search", "query": searched.query, "sources": sources}
        item = {"id": item_id, "type": ITEM, "status": status, "action": action}
        asides.append(Aside(VENDOR, "server_tool", name, {"type": name, "item": item}, choice, number))
    return asides


def is_made(item: Mapping[str, Any]) -> bool:
    """Return whether streamkit made this item, for a search of another provider or an image of another vendor."""
    return str(item.get("id")).startswith(MADE_IDS)


SEARCHES: Final = SearchForm(vendor=VENDOR, reader=SearchReader, write=write_search)
