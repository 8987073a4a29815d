"""Gemini's citations, web searches and generated media.

Citations and searches are both in ``groundingMetadata`` at the end of a response. A citation is a page, and the bytes of the
text that it supports. A search is the search words, and the pages. Media are parts of a candidate, with content or a URI.

Source: dialects.md §5.2, §7.4; the types of google-genai.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from attrs import evolve

from streamkit.conversation.media import kind_of_type, media_type_of
from streamkit.conversation.messages import Citation, WebSearched
from streamkit.dialects.base import CitationForm, SearchForm
from streamkit.dialects.bodies.google import OWN_URIS, VENDOR, standard_base64
from streamkit.dialects.members.fields import without_none
from streamkit.dialects.members.values import details_of, has_value, objects_in
from streamkit.events import Aside, MediaGenerated
from streamkit.limits import Limits
from streamkit.report import StreamReport

TYPE: Final = "candidates.groundingMetadata"
READ: Final = frozenset({"groundingChunks", "groundingSupports"})


def read_citation(aside: Aside) -> tuple[list[Citation], Sequence[str]]:
    """Return the citations in an aside, and the names of the aside's members that a citation can't hold."""
    raw = aside.raw
    if aside.type != TYPE or not isinstance(raw, dict):
        return [], ()
    pages = pages_of(raw)
    found = list(_supported(pages, raw.get("groundingSupports")))
    if not found:  # no page has a position: each is a citation for the whole text
        found = [Citation(*page) for page in pages if page is not None]
    return found, [f"groundingMetadata.{name}" for name, value in raw.items() if name not in READ and has_value(value)]


def _supported(pages: Sequence[tuple[str, str | None] | None], supports: object) -> Iterator[Citation]:
    for support in objects_in(supports):
        segment = details_of(support, "segment")
        start, end, text = segment.get("startIndex") or 0, segment.get("endIndex"), segment.get("text")
        for number in _listed(support.get("groundingChunkIndices")):
            page = pages[number] if type(number) is int and 0 <= number < len(pages) else None
            if page is not None and type(start) is int and type(end) is int and 0 <= start <= end:
                yield Citation(*page, start=start, end=end, text=text if isinstance(text, str) else None)


def pages_of(raw: Mapping[str, Any]) -> list[tuple[str, str | None] | None]:
    """Return URL and title of each page, in order; None for a page that is not on the web."""
    pages: list[tuple[str, str | None] | None] = []
    for chunk in _listed(raw.get("groundingChunks")):
        web = details_of(chunk, "web") if isinstance(chunk, dict) else {}
        url, title = web.get("uri"), web.get("title")
        pages.append((url, title if isinstance(title, str) else None) if isinstance(url, str) else None)
    return pages


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def write_citations(citations: Sequence[Citation], choice: int) -> list[Aside]:
    """Return one aside with all citations of a choice. A page that is cited several times is listed once."""
    pages: dict[tuple[str, str | None], int] = {}
    supports = []
    for citation in citations:
        number = pages.setdefault((citation.url, citation.title), len(pages))
        if citation.start is not None:
            segment = without_none(startIndex=citation.start or None, endIndex=citation.end, text=citation.text or None)
            supports.append({"segment": segment, "groundingChunkIndices": [number]})
    chunks = [{"web": without_none(uri=url, title=title)} for url, title in pages]
    raw = without_none(groundingChunks=chunks, groundingSupports=supports or None)
    return [Aside(VENDOR, "citation", TYPE, raw, choice, citations[-1].block)]


CITATIONS: Final = CitationForm(vendor=VENDOR, unit="bytes", read=read_citation, write=write_citations, at_end=True)


# -- searches of the web -----------------------------------------------------------------------------------------------

QUERIES: Final = "webSearchQueries"
ENTRY_CHARS: Final = 100  # memory for remembering a text, in addition to its characters (``limits.held_chars``)


class SearchReader:
    """Reads web searches. It removes only the search words from an aside: the pages stay there, because citations need them.

    A later chunk may repeat the words and pages of earlier searches. Only words and pages that are new make another search.
    """

    def __init__(self, limits: Limits, _report: StreamReport) -> None:
        self._seen: set[tuple[int, str]] = set()  # search words and URLs, with the index of their choice
        self._room = limits.held_chars

    def take(self, aside: Aside) -> tuple[list[WebSearched], Aside | None]:
        """Return the search in an aside, and the rest of the aside."""
        raw = aside.raw if aside.type == TYPE and isinstance(aside.raw, dict) else {}
        words = [query for query in _listed(raw.get(QUERIES)) if isinstance(query, str)]
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
        """Do nothing: each search is complete in one aside, so none is open at the end."""

    def _is_new(self, choice: int, text: str) -> bool:
        if (choice, text) in self._seen:
            return False
        if len(text) + ENTRY_CHARS <= self._room:
            self._room -= len(text) + ENTRY_CHARS
            self._seen.add((choice, text))
        return True


SEARCHES: Final = SearchForm(vendor=VENDOR, reader=SearchReader)


# -- media -------------------------------------------------------------------------------------------------------------

#: For each kind of media part: the members of its object that ``read_media`` reads.
MEDIA: Final[Mapping[str, frozenset[str]]] = {
    "inlineData": frozenset({"mimeType", "data", "displayName"}),
    "fileData": frozenset({"mimeType", "fileUri", "displayName"}),
}


def read_media(name: str, data: Mapping[str, Any], part: Aside) -> MediaGenerated | None:
    """Return the media in a ``part`` whose member is ``data``; None if the part has neither content nor a URI."""
    content = data.get("data" if name == "inlineData" else "fileUri")
    kind, title = data.get("mimeType"), data.get("displayName")
    if not (isinstance(content, str) and content and isinstance(kind, str | None) and isinstance(title, str | None)):
        return None
    media = MediaGenerated(kind_of_type(kind), kind, name=title, choice=part.choice, block=part.block, native=part)
    if name == "inlineData":
        media.data = standard_base64(content)
    elif content.startswith(OWN_URIS):
        media.file_id = content
    else:
        media.url = content
    extras = {member: value for member, value in part.raw.items() if member != name and has_value(value)}
    if inner := {member: value for member, value in data.items() if member not in MEDIA[name] and has_value(value)}:
        extras[name] = inner
    media.extras = extras or None
    return media


def write_media(media: MediaGenerated) -> list[Aside]:
    """Return a part, as an aside, for media from another vendor's model; empty if Gemini can't name or fetch these media."""
    if media.data is not None:
        raw = {"inlineData": {"mimeType": media_type_of(media), "data": media.data}}
    elif media.url is not None and media.url.startswith(("http:", "https:")):
        raw = {"fileData": without_none(mimeType=media.media_type, fileUri=media.url)}
    else:
        return []
    return [Aside(VENDOR, "metadata", "part", raw, media.choice, media.block)]
