"""Citations of Cohere: a span of the response's text, and the documents that it is taken from.

A source names a document by its id and repeats the document. Anthropic and Bedrock name a place: the number of a document, and
a range in it. So where streamkit sends their documents to Cohere, the id of each is the place (``place_id``), from which the
citation is read again. A web page that another provider cited is written as a document that has a ``url``.

Source: dialects.md §6.2, §7.4; ``Citation``, ``DocumentSource`` and ``ToolSource`` of cohere 7.3.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from attrs import evolve

from streamkit.conversation.messages import Citation, DocumentPlace
from streamkit.dialects.base import CitationForm
from streamkit.dialects.cohere.wire import CITATION, VENDOR
from streamkit.dialects.members.fields import without_none
from streamkit.dialects.members.values import details_of, objects_in, text_of
from streamkit.dialects.vocabulary.document_places import place_id, place_of_id
from streamkit.events import Aside

IN_TEXT: Final = "TEXT_CONTENT"  #: the type of a citation in the text, rather than in thinking or in the tool plan
#: Members of a document that may have its text, the most usual first.
TEXTS: Final = ("text", "snippet", "content")


def read_citation(
    aside: Aside, place_of: Callable[[str], DocumentPlace | None] = place_of_id
) -> tuple[list[Citation], Sequence[str]]:
    """Return a citation for each source that has a place or a URL, and ``sources`` if there are other sources, too."""
    raw = aside.raw if aside.vendor == VENDOR and isinstance(aside.raw, dict) else {}
    start, end = raw.get("start"), raw.get("end")
    if type(start) is not int or type(end) is not int or raw.get("type") not in {None, IN_TEXT}:
        return [], ()
    read, others = list[Citation](), 0
    for source in objects_in(raw.get("sources")):
        document = details_of(source, "tool_output" if source.get("type") == "tool" else "document")
        place, url = place_of(text_of(source.get("id")) or ""), text_of(document.get("url")) or ""
        if place is None and not url:
            others += 1
            continue
        if place is not None:
            url, place = "", evolve(place, source=text_of(document.get("source")) or place.source)
        quote = next((text for name in TEXTS if (text := text_of(document.get(name)))), None)
        read.append(Citation(url, text_of(document.get("title")), quote, start, end, document=place))
    return read, ("sources",) if read and others else ()


def id_of(place: DocumentPlace) -> str:
    """Return the id of a cited document: the source of a search result, which was a document's id; else its place."""
    return place.source or place_id(place)


def write_citations(
    citations: Sequence[Citation], choice: int, id_of: Callable[[DocumentPlace], str | None] = id_of
) -> list[Aside]:
    """Return the citations of a choice as asides; citations of the same span are sources of one citation."""
    asides = []
    for (start, end), same in groupby(citations, lambda citation: (citation.start, citation.end)):
        cited = list(same)
        sources = [_source(citation, id_of) for citation in cited]
        raw = without_none(start=start, end=end, text=cited[0].text, sources=sources, type=IN_TEXT)
        asides.append(Aside(VENDOR, "citation", CITATION, raw, choice))
    return asides


def _source(citation: Citation, id_of: Callable[[DocumentPlace], str | None]) -> Mapping[str, Any]:
    place = citation.document
    name = citation.url if place is None else id_of(place) or place_id(place)
    document = without_none(
        id=name,
        url=citation.url or None,
        title=citation.title,
        source=None if place is None or place.source == name else place.source,
        text=citation.quote or None,
    )
    return {"type": "document", "id": name, "document": document}


CITATIONS: Final = CitationForm(
    vendor=VENDOR,
    unit="choice",
    read=read_citation,
    write=write_citations,
    documents=True,
    has_text=True,
    has_quote=True,
)
