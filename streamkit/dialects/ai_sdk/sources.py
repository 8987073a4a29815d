"""Pages that a text cites, and searches of the web, as chunks of a UI message stream.

A citation is a ``source-url`` beside the text, without a place in it; a page that is cited again is written once, by its
``sourceId``. A search is a call that the provider ran: its client shows it and runs nothing.

Source: ui-protocols.md §1.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from streamkit.conversation.messages import Citation, WebSearched
from streamkit.dialects.ai_sdk.wire import VENDOR
from streamkit.dialects.base import CitationForm, SearchForm
from streamkit.events import Aside
from streamkit.text.identifiers import hashed

SOURCE_URL: Final = "source-url"
#: How ids of sources begin that are made here, of what they cite.
MADE_SOURCE: Final = "source_"
#: The tool that searches, as the AI SDK's own providers call it.
SEARCH: Final = "web_search"


def write_citations(citations: Sequence[Citation], choice: int) -> list[Aside]:
    """A source for each page, which names it and no place in the text."""
    return [Aside(VENDOR, "citation", SOURCE_URL, _source(citation), choice) for citation in citations]


def _source(citation: Citation) -> dict[str, str]:
    source = {"type": SOURCE_URL, "sourceId": MADE_SOURCE + hashed(citation.url, 22), "url": citation.url}
    return {**source, "title": citation.title} if citation.title else source


def write_search(searched: WebSearched, number: int, choice: int) -> list[Aside]:
    """A search that is over, as the call that it was and its output."""
    call = {"toolCallId": f"search_{number}", "providerExecuted": True}
    asked = {**call, "toolName": SEARCH}
    if searched.failed:
        end = {"type": "tool-output-error", **call, "errorText": "the search failed"}
    else:
        pages = [{"url": url, "title": title} for url, title in searched.pages]
        end = {"type": "tool-output-available", **call, "output": pages}
    chunks = (
        {"type": "tool-input-start", **asked},
        {"type": "tool-input-available", **asked, "input": {"query": searched.query}},
        end,
    )
    return [Aside(VENDOR, "server_tool", str(chunk["type"]), chunk, choice) for chunk in chunks]


CITATIONS: Final = CitationForm(vendor=VENDOR, unit="none", write=write_citations)
SEARCHES: Final = SearchForm(vendor=VENDOR, write=write_search, unasked=True)
