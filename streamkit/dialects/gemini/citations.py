"""Citations of web pages as Gemini has them: pages, and the bytes of the text that each supports, at the end.

Source: dialects.md §5.2; the types of google-genai.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from streamkit.conversation.messages import Citation
from streamkit.dialects.base import CitationForm
from streamkit.dialects.bodies.request_writer import given
from streamkit.dialects.gemini.wire import VENDOR
from streamkit.dialects.members.values import said
from streamkit.events import Aside

TYPE: Final = "candidates.groundingMetadata"
READ: Final = frozenset({"groundingChunks", "groundingSupports"})


def read_citation(aside: Aside) -> tuple[list[Citation], Sequence[str]]:
    raw = aside.raw
    if aside.type != TYPE or not isinstance(raw, dict):
        return [], ()
    pages = pages_of(raw)
    found = list(_supported(pages, _listed(raw.get("groundingSupports"))))
    if not found:  # of the whole text
        found = [Citation(*page) for page in pages if page is not None]
    return found, [f"groundingMetadata.{name}" for name, value in raw.items() if name not in READ and said(value)]


def _supported(pages: Sequence[tuple[str, str | None] | None], supports: Sequence[Any]) -> Iterator[Citation]:
    for support in supports:
        segment = support.get("segment") if isinstance(support, dict) else None
        if not isinstance(segment, dict):
            continue
        start, end, text = segment.get("startIndex") or 0, segment.get("endIndex"), segment.get("text")
        for number in _listed(support.get("groundingChunkIndices")):
            page = pages[number] if type(number) is int and 0 <= number < len(pages) else None
            if page is not None and type(start) is int and type(end) is int and 0 <= start <= end:
                yield Citation(*page, text if isinstance(text, str) else None, start, end)


def pages_of(raw: Mapping[str, Any]) -> list[tuple[str, str | None] | None]:
    """URL and title of each page, in their order; None for what is no page of the web."""
    return [_page(chunk) for chunk in _listed(raw.get("groundingChunks"))]


def _page(chunk: Any) -> tuple[str, str | None] | None:
    web = chunk.get("web") if isinstance(chunk, dict) else None
    if not isinstance(web, dict) or not isinstance(web.get("uri"), str):
        return None
    return web["uri"], web["title"] if isinstance(web.get("title"), str) else None


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def write_citations(citations: Sequence[Citation], choice: int) -> list[Aside]:
    """One aside of all citations of a choice, each page once."""
    pages: dict[tuple[str, str | None], int] = {}
    supports = []
    for citation in citations:
        number = pages.setdefault((citation.url, citation.title), len(pages))
        if citation.start is not None:
            segment = given(startIndex=citation.start or None, endIndex=citation.end, text=citation.quote or None)
            supports.append({"segment": segment, "groundingChunkIndices": [number]})
    chunks = [{"web": given(uri=url, title=title)} for url, title in pages]
    raw = given(groundingChunks=chunks, groundingSupports=supports or None)
    return [Aside(VENDOR, "citation", TYPE, raw, choice, citations[-1].block)]


CITATIONS: Final = CitationForm(vendor=VENDOR, unit="bytes", read=read_citation, write=write_citations)
