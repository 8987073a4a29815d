"""Cited web pages, web searches and generated media, as chunks of a UI message stream.

A citation is a ``source-url`` next to the text, without a position. A page that is cited again is written once, by its
``sourceId``. A search is a call that the provider ran: the client shows it, and does not run it. Media are chunks ``file``.

Source: ui-protocols.md §1.2, §1.5, §1.8.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from streamkit.conversation.media import data_uri, kind_of_type, media_type_of
from streamkit.conversation.messages import Citation, WebSearched
from streamkit.dialects.ai_sdk.wire import FILE, VENDOR
from streamkit.dialects.base import CitationForm, SearchForm
from streamkit.dialects.members.fields import is_data_uri, media_of
from streamkit.dialects.members.values import has_value
from streamkit.errors import BadRequest
from streamkit.events import Aside, MediaGenerated
from streamkit.text.identifiers import hashed

SOURCE_URL: Final = "source-url"
MADE_SOURCE: Final = "source_"  # how ids begin that streamkit makes from URLs
SEARCH: Final = "web_search"  # the name of the search tool of the AI SDK's own providers


def write_citations(citations: Sequence[Citation], choice: int) -> list[Aside]:
    """Return a source for each page, without a position in the text."""
    asides = []
    for citation in citations:
        source = {"type": SOURCE_URL, "sourceId": MADE_SOURCE + hashed(citation.url, 22), "url": citation.url}
        if citation.title:
            source["title"] = citation.title
        asides.append(Aside(VENDOR, "citation", SOURCE_URL, source, choice))
    return asides


def write_search(searched: WebSearched, number: int, choice: int) -> list[Aside]:
    """Return the chunks for a finished search: the call and its output."""
    call = {"toolCallId": f"search_{number}", "providerExecuted": True}
    named = {**call, "toolName": SEARCH}
    if searched.failed:
        end = {"type": "tool-output-error", **call, "errorText": "the search failed"}
    else:
        pages = [{"url": url, "title": title} for url, title in searched.pages]
        end = {"type": "tool-output-available", **call, "output": pages}
    begin = {"type": "tool-input-start", **named}
    available = {"type": "tool-input-available", **named, "input": {"query": searched.query}}
    return [Aside(VENDOR, "server_tool", str(chunk["type"]), chunk, choice) for chunk in (begin, available, end)]


CITATIONS: Final = CitationForm(vendor=VENDOR, unit="none", write=write_citations)
SEARCHES: Final = SearchForm(vendor=VENDOR, write=write_search, unasked=True)


# -- media -------------------------------------------------------------------------------------------------------------


def read_file(chunk: Mapping[str, Any]) -> MediaGenerated | None:
    """Return the media in a chunk ``file``; None if its URL is malformed."""
    url, media_type = chunk.get("url"), chunk.get("mediaType")
    if not (isinstance(url, str) and url and isinstance(media_type, str | None)):
        return None
    media = MediaGenerated(kind_of_type(media_type), media_type, native=Aside(VENDOR, "metadata", FILE, chunk))
    if is_data_uri(url):
        try:
            declared, media.data = media_of(url, "url")
        except BadRequest:
            return None
        if media_type is None:
            media.kind, media.media_type = kind_of_type(declared), declared
    else:
        media.url = url
    extras = {name: value for name, value in chunk.items() if name not in {"type", "url", "mediaType"}}
    media.extras = {name: value for name, value in extras.items() if has_value(value)} or None
    return media


def write_file(media: MediaGenerated) -> Sequence[Aside]:
    """Return the chunk for media from another vendor's model; empty if only that vendor can read the media."""
    if media.data is not None:
        url = data_uri(media)
    elif media.url is not None and media.url.startswith(("http:", "https:")):
        url = media.url
    else:
        return ()
    raw = {"type": FILE, "url": url, "mediaType": media_type_of(media)}
    return [Aside(VENDOR, "metadata", FILE, raw, media.choice, media.block)]
