"""Cited web pages, and web searches, as chunks of a UI message stream.

A citation is a ``source-url`` next to the text, without a position. A page that is cited again is written once, by its
``sourceId``. A search is a call that the provider ran: the client shows it, and does not run it.

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
#: The beginning of ids of sources that streamkit makes from URLs.
MADE_SOURCE: Final = "source_"
#: The name of the search tool of the AI SDK's own providers.
SEARCH: Final = "web_search"


def write_citations(citations: Sequence[Citation], choice: int) -> list[Aside]:
    """Return a source for each page, without a position in the text."""
    return [Aside(VENDOR, "citation", SOURCE_URL, _source(citation), choice) for citation in citations]


def _source(citation: Citation) -> dict[str, str]:
    source = {"type": SOURCE_URL, "sourceId": MADE_SOURCE + hashed(citation.url, 22), "url": citation.url}
    return {**source, "title": citation.title} if citation.title else source


def write_search(searched: WebSearched, number: int, choice: int) -> list[Aside]:
    """Return the chunks for a finished search: the call and its output."""
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
