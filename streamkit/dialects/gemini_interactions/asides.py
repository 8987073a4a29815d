"""Citations and media of Gemini Interactions.

A citation is an annotation of a text, with the bytes of the response that it supports. A content with media has its type, and
either base64 (``data``) or a URI. Only Google can read its own URIs.

Source: dialects.md §5.5, §7.4; the types of google-genai.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from streamkit.conversation.media import KINDS, TYPES, media_type_of
from streamkit.conversation.messages import Citation
from streamkit.dialects.base import CitationForm
from streamkit.dialects.bodies.google import OWN_URIS, standard_base64
from streamkit.dialects.gemini_interactions.wire import DELTA, VENDOR
from streamkit.dialects.members.fields import without_none
from streamkit.dialects.members.values import has_value, others_of
from streamkit.events import Aside, MediaGenerated

ANNOTATIONS: Final = "text_annotation_delta"
WEB: Final = "url_citation"
CITATION_MEMBERS: Final = frozenset({"type", "url", "title", "start_index", "end_index"})
MEDIA_MEMBERS: Final = frozenset({"type", "mime_type", "data", "uri"})  # those that ``read_media`` understands


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
            lost += [name for name, value in annotation.items() if name not in CITATION_MEMBERS and has_value(value)]
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
    found = []
    for each in citations:
        page = without_none(type=WEB, url=each.url, title=each.title, start_index=each.start, end_index=each.end)
        found.append(citation_of([page], choice, each.block))
    return found


CITATIONS: Final = CitationForm(vendor=VENDOR, unit="bytes", read=read_citation, write=write_citations)


# -- media -------------------------------------------------------------------------------------------------------------


def read_media(content: Mapping[str, Any], choice: int, block: int) -> MediaGenerated | None:
    """Return the media in a content; None if it is not media, or has neither data nor a URI."""
    kind, data, uri, mime_type = (content.get(name) for name in ("type", "data", "uri", "mime_type"))
    if not isinstance(kind, str) or kind not in KINDS or not isinstance(mime_type, str | None):
        return None
    native = Aside(VENDOR, "metadata", DELTA, dict(content), choice, block)
    media = MediaGenerated(KINDS[kind], mime_type, choice=choice, block=block, native=native)
    if isinstance(data, str) and data:
        media.data = standard_base64(data)
    elif not isinstance(uri, str) or not uri:
        return None
    elif uri.startswith(OWN_URIS):
        media.file_id = uri
    else:
        media.url = uri
    media.extras = others_of(content, MEDIA_MEMBERS - {"uri"} if media.data is not None else MEDIA_MEMBERS) or None
    return media


def write_media(media: MediaGenerated) -> list[Aside]:
    """Return the content for media from another vendor's model; empty if this dialect cannot name or fetch them."""
    content: dict[str, Any]
    if media.data is not None:
        content = {"mime_type": media_type_of(media), "data": media.data}
    elif media.url is not None and media.url.startswith(("http:", "https:")):
        content = without_none(mime_type=media.media_type, uri=media.url)
    else:
        return []
    kind = TYPES[media.kind]
    return [Aside(VENDOR, "metadata", DELTA, {"type": kind, **content}, media.choice, media.block)]
