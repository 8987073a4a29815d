"""Citations of Gemini Interactions: annotations of a text, each with the bytes of the response that it supports.

Source: dialects.md §5.5; the types of google-genai.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from streamkit.conversation.messages import Citation
from streamkit.dialects.base import CitationForm
from streamkit.dialects.bodies.json_members import without_none
from streamkit.dialects.gemini_interactions.wire import DELTA, VENDOR
from streamkit.dialects.members.values import has_value
from streamkit.events import Aside

ANNOTATIONS: Final = "text_annotation_delta"
WEB: Final = "url_citation"
READ: Final = frozenset({"type", "url", "title", "start_index", "end_index"})


def citation_of(annotations: Any, choice: int, block: int) -> Aside:
    """Return the aside for a list of annotations."""
    return Aside(VENDOR, "citation", DELTA, {"type": ANNOTATIONS, "annotations": annotations}, choice, block)


def read_citation(aside: Aside) -> tuple[list[Citation], Sequence[str]]:
    """Return the pages that the annotations of an aside name, and the names of lost members."""
    annotations = aside.raw.get("annotations") if isinstance(aside.raw, dict) else None
    found: list[Citation] = []
    lost: list[str] = []
    for annotation in annotations if isinstance(annotations, list) else ():
        citation = _citation(annotation, aside.block)
        if citation is None:
            lost.append("annotations")
        else:
            found.append(citation)
            lost += [name for name, value in annotation.items() if name not in READ and has_value(value)]
    return found, lost


def _citation(annotation: Any, block: int) -> Citation | None:
    """Return the page of an annotation; None for an annotation of another type."""
    if not isinstance(annotation, dict) or annotation.get("type") != WEB or not isinstance(annotation.get("url"), str):
        return None
    title, start, end = annotation.get("title"), annotation.get("start_index") or 0, annotation.get("end_index")
    citation = Citation(annotation["url"], title if isinstance(title, str) else None, block=block)
    if type(start) is int and type(end) is int and 0 <= start <= end:
        citation.start, citation.end = start, end
    return citation


def write_citations(citations: Sequence[Citation], choice: int) -> list[Aside]:
    """Return the citations of a choice as annotations of their texts."""
    return [
        citation_of(
            [
                without_none(
                    type=WEB, url=citation.url, title=citation.title, start_index=citation.start, end_index=citation.end
                )
            ],
            choice,
            citation.block,
        )
        for citation in citations
    ]


CITATIONS: Final = CitationForm(vendor=VENDOR, unit="bytes", read=read_citation, write=write_citations)
