"""Citations of web pages, at characters of a part of the text, and searches of the web.

A search is an item, which says what was looked for when it is done. The id of one that another provider ran says that it was
made here, so that the reader of requests tells it apart.

Source: dialects.md §2.1, §2.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from streamkit.conversation.messages import Citation, WebSearched
from streamkit.dialects.base import CitationForm, SearchForm
from streamkit.dialects.openai_responses.wire import VENDOR
from streamkit.dialects.vocabulary.openai import WEB, read_url_citation, write_url_citation
from streamkit.dialects.vocabulary.sealed_reasoning import MADE
from streamkit.events import Aside
from streamkit.limits import Limits
from streamkit.report import StreamReport
from streamkit.text.identifiers import hashed

ITEM: Final = "web_search_call"
PREFIX: Final = f"ws_{MADE}"
ADDED, DONE = "response.output_item.added", "response.output_item.done"


def read_citation(aside: Aside) -> tuple[list[Citation], Sequence[str]]:
    """The citation of a web page that an aside says."""
    is_web = isinstance(aside.raw, dict) and aside.raw.get("type") == WEB
    return read_url_citation(aside.raw) if is_web else [], ()


def write_citations(citations: Sequence[Citation], choice: int) -> list[Aside]:
    """Asides that say citations of web pages."""
    return [
        Aside(VENDOR, "citation", "annotation", {"type": WEB, **write_url_citation(citation)}, choice, citation.block)
        for citation in citations
    ]


CITATIONS: Final = CitationForm(vendor=VENDOR, unit="block", read=read_citation, write=write_citations)


class SearchReader:
    """The items of searches, event by event."""

    def __init__(self, _limits: Limits, report: StreamReport) -> None:
        self._report = report
        self._open = 0

    def take(self, aside: Aside) -> tuple[list[WebSearched], Aside | None]:
        """The searches that an aside ends, and what is left of it for clients of this dialect."""
        raw = aside.raw if isinstance(aside.raw, dict) else {}
        if aside.type.startswith(f"response.{ITEM}."):
            return [], None  # its progress
        item = raw.get("item") if aside.type in {ADDED, DONE} else None
        if not isinstance(item, dict) or item.get("type") != ITEM:
            return [], aside
        if aside.type == ADDED:
            self._open += 1
            return [], None
        self._open = max(self._open - 1, 0)
        raw_action = item.get("action")
        action: dict[str, Any] = raw_action if isinstance(raw_action, dict) else {}
        if action.get("type", "search") != "search":  # it opened a page, or looked for something in it
            self._report.lose("server_tool", what=f"{ITEM}.{action.get('type')}")
            return [], None
        return [WebSearched(_query(action), _pages(action), item.get("status") == "failed")], None

    def finish(self) -> None:
        """Nothing more comes: count what was not done."""
        for _ in range(self._open):
            self._report.lose("server_tool", what=ITEM)


def _query(action: Mapping[str, Any]) -> str:
    query = action.get("query")
    if isinstance(query, str) and query:
        return query
    return ", ".join(text for text in _listed(action.get("queries")) if isinstance(text, str))


def _pages(action: Mapping[str, Any]) -> list[tuple[str, str]]:
    pages = [
        page for page in _listed(action.get("sources")) if isinstance(page, dict) and isinstance(page.get("url"), str)
    ]
    return [(page["url"], str(page.get("title") or "")) for page in pages]


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def write_search(searched: WebSearched, number: int, choice: int) -> list[Aside]:
    """A search that another provider ran, as the asides of an item that begins and ends."""
    item = {
        "id": f"{PREFIX}_{hashed(f'{number} {searched.query}', 17)}",
        "type": ITEM,
        "status": "failed" if searched.failed else "completed",
        "action": {
            "type": "search",
            "query": searched.query,
            "sources": [{"type": "url", "url": url} for url, _ in searched.pages],
        },
    }
    begun = {**item, "status": "in_progress", "action": {**item["action"], "sources": []}}  # type: ignore[dict-item]
    return [
        Aside(VENDOR, "server_tool", ADDED, {"type": ADDED, "item": begun}, choice, number),
        Aside(VENDOR, "server_tool", DONE, {"type": DONE, "item": item}, choice, number),
    ]


def is_made(item: Mapping[str, Any]) -> bool:
    """Whether an item of the history is a search that another provider ran."""
    return item.get("type") == ITEM and str(item.get("id")).startswith(PREFIX)


SEARCHES: Final = SearchForm(vendor=VENDOR, reader=SearchReader, write=write_search)
