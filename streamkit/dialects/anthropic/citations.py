"""Citations of web pages as Anthropic has them: with a whole block of text.

What its server found is told by an index that only it can read. One of another provider's is sealed, so that the reader of
requests knows it, and the server does not get it.

Source: dialects.md §3.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from streamkit.conversation.messages import Citation
from streamkit.dialects.anthropic.wire import VENDOR
from streamkit.dialects.base import CitationForm
from streamkit.dialects.vocabulary.sealed_reasoning import seal, unseal
from streamkit.events import Aside

WEB: Final = "web_search_result_location"


def read_citation(aside: Aside) -> tuple[list[Citation], Sequence[str]]:
    raw = aside.raw
    if not isinstance(raw, dict) or raw.get("type") != WEB or not isinstance(raw.get("url"), str):
        return [], ()
    title, quote = raw.get("title"), raw.get("cited_text")
    return [
        Citation(raw["url"], title if isinstance(title, str) else None, quote if isinstance(quote, str) else None)
    ], ()


def write_citations(citations: Sequence[Citation], choice: int) -> list[Aside]:
    return [
        Aside(
            VENDOR,
            "citation",
            "citations_delta",
            {
                "type": WEB,
                "cited_text": citation.quote or "",
                "encrypted_index": seal("opaque", "web", citation.url),
                "title": citation.title,
                "url": citation.url,
            },
            choice,
            citation.block,
        )
        for citation in citations
    ]


def is_foreign(citation: Any) -> bool:
    """Whether a citation of the history is none of the server's."""
    index = citation.get("encrypted_index") if isinstance(citation, dict) else None
    return isinstance(index, str) and unseal(index) is not None


CITATIONS: Final = CitationForm(vendor=VENDOR, unit="block", read=read_citation, write=write_citations)
