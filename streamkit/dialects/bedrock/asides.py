"""Content that only Bedrock understands: split such blocks into messages of a stream, and join them again.

An aside is an event with content that only one vendor understands. The payload of each message of such a block becomes an
aside, whether it was read in a stream, a whole response or the history of a request. So content that was read in one place
can be written in the others. A block of a kind that streams never contain is one aside. A citation is an aside with the
label of its text block. An image that a model made is a block that starts with its format and has the image in a delta.

Source: dialects.md §6.1, §7.4; botocore's model of ``ContentBlock``, ``ContentBlockDelta`` and ``ImageBlock``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import orjson
from attrs import define, field

from streamkit.conversation.media import media_type_of
from streamkit.conversation.messages import Citation
from streamkit.dialects.base import CitationForm
from streamkit.dialects.bedrock.wire import FORMATS, MEDIA_TYPES, PADDING, VENDOR
from streamkit.dialects.bodies.responses import Block, BlockList, joined_input
from streamkit.dialects.members.fields import CONTENT, without_none
from streamkit.dialects.members.values import Growing, details_of, has_value, objects_in, others_of
from streamkit.dialects.vocabulary.document_places import Document, DocumentForm, read_place, write_place
from streamkit.events import Aside, AsideKind, MediaGenerated
from streamkit.report import StreamReport

#: Members of a start or a delta that may belong to a tool of the provider.
SERVER = frozenset({"toolUse", "toolResult"})
IMAGE: Final = "image"
#: Members of blocks that have a start in a stream, and the parts of them that follow the start.
STREAMED: Final[Mapping[str, tuple[str, ...]]] = {
    "toolUse": ("input",),
    "toolResult": ("content",),
    "image": ("source", "error"),
}


def is_server(member: str, value: Any) -> bool:
    """Return whether a block is a call or result of a tool that the provider runs. Only these have a ``type``."""
    return member in SERVER and isinstance(value, dict) and has_value(value.get("type"))


def asides_of(member: str, value: Any, number: int, input_text: str = "") -> Iterator[Aside]:
    """Yield the asides of a whole block. ``input_text`` is the text of a call's input."""
    if member not in STREAMED or not isinstance(value, dict):
        yield Aside(VENDOR, "unknown_event", CONTENT + member, {member: value}, block=number)
        return
    kind: AsideKind = "server_tool" if member in SERVER else "unknown_event"
    for event, payload in messages_of(member, value, number, input_text):
        yield Aside(VENDOR, kind, event, payload, block=number)


def messages_of(
    member: str, value: Mapping[str, Any], index: int, input_text: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the type and payload of each message that a stream would send for a whole block."""
    late = STREAMED[member]
    start = {name: inner for name, inner in value.items() if name not in late}
    yield "contentBlockStart", {"contentBlockIndex": index, "start": {member: start}}
    delta: Any = {name: value[name] for name in late if value.get(name) is not None}
    if member == "toolUse":
        delta = {"input": input_text} if input_text else {}
    elif member == "toolResult":
        delta = delta.get("content")
    if delta:
        yield "contentBlockDelta", {"contentBlockIndex": index, "delta": {member: delta}}
    yield "contentBlockStop", {"contentBlockIndex": index}


# -- citations ---------------------------------------------------------------------------------------------------------

CITATION_MEMBERS: Final = frozenset({"title", "sourceContent", "location"})
#: For each kind of location: the unit of its positions, and the members with document number, start and end.
DOCUMENTS: Final[Mapping[str, DocumentForm]] = {
    "documentChar": ("char", "documentIndex", "start", "end"),
    "documentPage": ("page", "documentIndex", "start", "end"),
    "documentChunk": ("block", "documentIndex", "start", "end"),
    "searchResultLocation": ("search", "searchResultIndex", "start", "end"),
}


def read_citation(aside: Aside) -> tuple[list[Citation], Sequence[str]]:
    """Return the page or document that a citation names, and the names of other members."""
    raw = aside.raw if isinstance(aside.raw, dict) else {}
    location = details_of(raw, "location")
    url, title = details_of(location, "web").get("url"), raw.get("title")
    places = [read_place(form, details_of(location, name), raw.get("source")) for name, form in DOCUMENTS.items()]
    document = next((place for place in places if place is not None), None)
    if document is None and not isinstance(url, str):
        return [], ()
    texts = [piece.get("text") for piece in objects_in(raw.get("sourceContent"))]
    quote = "".join(text for text in texts if isinstance(text, str))
    url, title = url if isinstance(url, str) else "", title if isinstance(title, str) else None
    known = CITATION_MEMBERS if document is None else CITATION_MEMBERS | {"source"}
    return [Citation(url, title, quote or None, document=document)], [*others_of(raw, known)]


def write_citations(citations: Sequence[Citation], choice: int) -> list[Aside]:
    """Return the citations of a choice as asides of their text blocks."""
    asides = []
    for citation in citations:
        location: dict[str, Any] = {"web": {"url": citation.url}}
        source = None
        if citation.document is not None:
            name, members = write_place(DOCUMENTS, citation.document)
            location, source = {name: members}, citation.document.source
        text = citation.quote or citation.text
        content = [{"text": text}] if text else None
        raw = without_none(title=citation.title, source=source, sourceContent=content, location=location)
        asides.append(Aside(VENDOR, "citation", "citation", raw, choice, citation.block))
    return asides


def _document_block(document: Document) -> dict[str, Any]:
    """Return the block of a document, or of a search result."""
    content = [{"text": text} for text in document.texts]
    members = document.members()
    if document.kind == "search":
        return {"searchResult": {**members, "content": content}}
    return {"document": {**members, "name": document.title or "", "source": {"content": content}}}


CITATIONS: Final = CitationForm(
    vendor=VENDOR,
    unit="block",
    read=read_citation,
    write=write_citations,
    documents=True,
    document_block=_document_block,
    has_quote=True,
)


@define
class _GrowingBlock:
    """A block of which some messages were read so far."""

    member: str
    value: dict[str, Any]
    input: list[str] = field(factory=list)
    growing: Growing = field(factory=Growing)

    @property
    def block(self) -> Block:
        return {self.member: self.value}

    def take(self, delta: Any) -> bool:
        more = delta.get(self.member) if isinstance(delta, dict) else None
        match self.member, more:
            case "toolUse", {"input": str(fragment)}:
                self.input.append(fragment)
            case "toolResult", list():
                self.growing.extend(self.value, "content", more)
            case "image", dict() if not more.keys() & self.value.keys():
                self.value |= more
            case _:
                return False
        return True

    def finish(self, report: StreamReport) -> None:
        if self.member == "toolUse":
            self.value["input"] = joined_input(self.input, self.value.get("name"), report) or orjson.Fragment("{}")
        elif self.member == "toolResult":
            self.value.setdefault("content", [])


class BedrockBlocks(BlockList):
    """Joins the blocks of one message."""

    start = "contentBlockStart"
    delta = "contentBlockDelta"
    stop = "contentBlockStop"
    citation = "citation"

    def growing(self, start: Any) -> _GrowingBlock | None:
        union = start.get("start")
        if not isinstance(union, dict) or not union.keys() & STREAMED.keys():
            return None
        ((member, value), *_) = union.items()
        return _GrowingBlock(member, dict(value))

    def cite(self, block: Block, citation: Any) -> None:
        """Add a citation to a text block, which becomes a block of text with citations."""
        if "text" in block:
            block["citationsContent"] = {"content": [{"text": block.pop("text")}]}
        block["citationsContent"].setdefault("citations", []).append(citation)


def text_block(text: str, extras: Mapping[str, Any] | None = None) -> Block:
    """Return a block of text. ``extras`` are members that only a ``citationsContent`` block can have."""
    return {"citationsContent": {"content": [{"text": text}], **extras}} if extras else {"text": text}


# -- images -------------------------------------------------------------------------------------------------------------


def read_image(document: dict[str, Any], form: str | None, native: Aside) -> MediaGenerated | None:
    """Return the image in a delta, or None. ``form`` is the format in the block's start, ``native`` the delta's aside."""
    delta = details_of(document, "delta")
    image = details_of(delta, IMAGE)
    source = details_of(image, "source")
    data = source.get("bytes")
    if not isinstance(data, str) or not data:
        return None
    kind = None if form is None else MEDIA_TYPES[IMAGE].get(form, f"image/{form}")
    media = MediaGenerated(IMAGE, kind, data, block=native.block, native=native)
    extras = {
        **others_of(document, {"contentBlockIndex", "delta", PADDING}),
        **others_of(delta, {IMAGE}),
        **others_of(image, {"source"}),
        **others_of(source, {"bytes"}),
    }
    media.extras = extras or None
    return media


def write_image(media: MediaGenerated) -> list[Aside]:
    """Return the messages of a block with another vendor's image, as asides; empty if Bedrock can't express the image."""
    form = FORMATS[IMAGE].get(media_type_of(media)) if media.kind == "image" else None
    if form is None or media.data is None:
        return []
    return [
        Aside(VENDOR, "unknown_event", event, {"contentBlockIndex": media.block, **members}, block=media.block)
        for event, members in (
            ("contentBlockStart", {"start": {IMAGE: {"format": form}}}),
            ("contentBlockDelta", {"delta": {IMAGE: {"source": {"bytes": media.data}}}}),
            ("contentBlockStop", {}),
        )
    ]
