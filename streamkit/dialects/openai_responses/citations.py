"""Citations of web pages as Responses has them: at characters of a part of the text. Source: dialects.md §2.2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from streamkit.conversation.messages import Citation
from streamkit.dialects.base import CitationForm
from streamkit.dialects.openai_responses.wire import VENDOR
from streamkit.events import Aside

WEB: Final = "url_citation"


def read_citation(aside: Aside) -> tuple[list[Citation], Sequence[str]]:
    raw = aside.raw
    if not isinstance(raw, dict) or raw.get("type") != WEB or not isinstance(raw.get("url"), str):
        return [], ()
    title, start, end = raw.get("title"), raw.get("start_index"), raw.get("end_index")
    citation = Citation(raw["url"], title if isinstance(title, str) else None)
    if type(start) is int and type(end) is int and 0 <= start <= end:
        citation.start, citation.end = start, end
    return [citation], ()


def write_citations(citations: Sequence[Citation], choice: int) -> list[Aside]:
    return [
        Aside(
            VENDOR,
            "citation",
            "annotation",
            {
                "type": WEB,
                "start_index": citation.start,
                "end_index": citation.end,
                "title": citation.title or "",
                "url": citation.url,
            },
            choice,
            citation.block,
        )
        for citation in citations
    ]


CITATIONS: Final = CitationForm(vendor=VENDOR, unit="block", read=read_citation, write=write_citations)
