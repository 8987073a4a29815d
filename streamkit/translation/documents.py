"""Translate the documents that a model may cite, and the citations in the history, between Anthropic, Bedrock and Cohere.

Anthropic and Bedrock have documents and search results as blocks of messages, in the same forms under other names. Cohere has
them next to the messages (``documents``), and in the results of tools.

Towards Cohere, each piece of a document that could be cited alone becomes a document: a block of its content, or a paragraph
of a plain text, because places there are characters. Its id is the place (``place_id``). Documents for which no citations are
requested stay texts, and a PDF can't be sent at all. From Cohere, documents become search results, whose source is the id. If
the target can't cite, they become texts, or the model would answer without them.

Citations of documents in the history are translated as in a response, if the request still has the document.

Source: dialects.md §3.2, §6.1, §6.2, §7.4; Anthropic, "Citations", "Search results"; Cohere, "RAG Citations".
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

import orjson
from attrs import evolve

from streamkit.conversation.media import decoded_text
from streamkit.conversation.messages import Citation, DocumentPlace, Media, Part, Request, Text, ToolResult, Turn
from streamkit.dialects import DIALECTS
from streamkit.dialects.base import CitationForm
from streamkit.dialects.lowering import Lowering
from streamkit.dialects.members.fields import CONTENT, without_none
from streamkit.dialects.members.values import details_of, objects_in, text_of
from streamkit.dialects.vocabulary.document_places import Document, place_id
from streamkit.events import Aside
from streamkit.translation.citations import carried_parts

#: The most characters in one document for Cohere, which recommends less than 300 words.
PIECE_CHARS: Final = 1500
#: Where a text is divided: the first of these marks in the second half of a piece.
MARKS: Final = ("\n\n", "\n", ". ", " ")
#: The text of a turn that had only documents, which are now next to the messages.
ATTACHED: Final = "(A document is attached.)"
OFF: Final = frozenset({"OFF", "DISABLED"})
BlockOf: TypeAlias = Callable[[Document], dict[str, Any]]
Read: TypeAlias = Callable[[Aside], tuple[Sequence[Citation], Sequence[str]]]


# -- documents in blocks -----------------------------------------------------------------------------------------------


def _read(part: Part) -> Document | None:
    """Return the document in a part of Anthropic or Bedrock; None for other parts, and for content other than text."""
    if isinstance(part, Media):
        is_text = part.kind == "file" and (part.media_type or "").startswith("text/") and part.data is not None
        text = decoded_text(part.data or "") if is_text else None
        if text is None:
            return None
        document = Document("char", [text], part.name, cache=part.cache)
        raw: Mapping[str, Any] = part.extras or {}
    elif isinstance(part, Aside) and part.type.startswith(CONTENT):
        raw = part.raw
        name = part.type.removeprefix(CONTENT)
        if name in {"searchResult", "document"} and isinstance(raw.get(name), dict):
            raw = raw[name]
        elif name not in {"search_result", "document"}:
            return None
        is_document = name == "document"
        texts = _texts((details_of(raw, "source") if is_document else raw).get("content"))
        if texts is None:
            return None
        title = text_of(raw.get("title")) or text_of(raw.get("name"))
        document = Document("block" if is_document else "search", texts, title, text_of(raw.get("source")))
        if mark := details_of(raw, "cache_control"):
            document.cache = "long" if mark.get("ttl") == "1h" else "short"
    else:
        return None
    document.context = text_of(raw.get("context"))
    enabled = details_of(raw, "citations").get("enabled")
    document.cited = enabled if isinstance(enabled, bool) else None
    return document


def _texts(content: Any) -> list[str] | None:
    """Return the texts of blocks; None if there are none, or other blocks, too."""
    if isinstance(content, str):
        return [content] if content.strip() else None
    blocks = objects_in(content)
    texts = [
        block["text"] for block in blocks if block.get("type", "text") == "text" and isinstance(block.get("text"), str)
    ]
    return texts if texts and len(texts) == len(content) else None


def _block(document: Document, block_of: BlockOf) -> Text:
    """Return a document as a part that is written as a block of the dialect. Other code sees its text."""
    return Text("\n\n".join(document.texts), cache=document.cache, item=block_of(document))


# -- documents next to the messages -----------------------------------------------------------------------------------


def _of_listed(raw: Any, number: int, *, cited: bool) -> Document | None:
    """Return one of a request's ``documents``, which Cohere numbers if it has no id; None if it has no text."""
    if isinstance(raw, str):
        return Document("search", [raw], source=f"doc:{number}", cited=cited) if raw.strip() else None
    data = details_of(raw, "data") if isinstance(raw, dict) else {}
    title = text_of(data.get("title"))
    others = {name: value for name, value in data.items() if name != "title" or title is None}
    if len(others) == 1 and isinstance(only := next(iter(others.values())), str):
        text = only
    else:
        words = {
            name: value if isinstance(value, str) else orjson.dumps(value).decode() for name, value in others.items()
        }
        text = "\n".join(f"{name}: {word}" for name, word in words.items())
    source = (text_of(raw.get("id")) if isinstance(raw, dict) else None) or f"doc:{number}"
    text = text or title or ""
    return Document("search", [text], title, source, cited=cited) if text else None


def _pieces(document: Document, index: int) -> Iterator[tuple[DocumentPlace, dict[str, Any]]]:
    """Yield what can be cited of a document: its place, and a document of Cohere."""
    spans: list[tuple[int, int, str]] = []
    if document.kind == "char":
        (text,) = document.texts
        start = 0
        while start < len(text):
            end = min(len(text), start + PIECE_CHARS)
            if end < len(text):
                found = (
                    text.rfind(mark, start + PIECE_CHARS // 2, end) + len(mark)
                    for mark in MARKS
                    if mark in text[start + PIECE_CHARS // 2 : end]
                )
                end = next(found, end)
            spans.append((start, end, text[start:end]))
            start = end
    else:
        spans += [(number, number + 1, text) for number, text in enumerate(document.texts)]
    for start, end, text in spans:
        if text.strip():
            place = DocumentPlace(document.kind, index, start, end)
            data = without_none(title=document.title, source=document.source, context=document.context, text=text)
            yield place, {"id": place_id(place), "data": data}


# -- requests ----------------------------------------------------------------------------------------------------------


def _form_of(dialect: str) -> CitationForm | None:
    """Return how a dialect cites; None for a name of no dialect, which a request that a program made may have."""
    known = DIALECTS.get(dialect)
    return None if known is None else known.citations


def has_documents(request: Request) -> bool:
    """Return whether a request has documents of Anthropic or Bedrock that the model may cite."""
    form = _form_of(request.dialect)
    return (form is not None and form.document_block is not None) and any(
        document.cited
        for turn in request.turns
        if turn.role != "assistant"
        for part in turn.parts
        for each in (part.parts if isinstance(part, ToolResult) else (part,))
        if (isinstance(each, Aside) or (isinstance(each, Media) and each.extras))
        and (document := _read(each)) is not None
    )


def documents_cited(request: Request, to: Lowering) -> None:
    """Write documents, and citations in the history, in the form of a dialect that can cite them."""
    source, target = _form_of(to.source), _form_of(to.takes.dialect)
    if source is None or not source.documents:
        return
    if source.document_block is None:
        if isinstance(request.extras.get("documents"), list):
            known = _from_listed(request, to, None if target is None else target.document_block)
            if to.takes.cites and source.read is not None:
                _history(request, to, partial(source.read, place_of=known.get))
    elif to.takes.cites and target is not None:
        if target.document_block is None:
            known_places = _to_listed(request, to)
            _history(request, to, None, known_places)
        else:
            request.turns = [
                _with_blocks(turn, target.document_block) if turn.role != "assistant" else turn
                for turn in request.turns
            ]
            _history(request, to)


def _with_blocks(turn: Turn, block_of: BlockOf) -> Turn:
    def written(part: Any) -> Any:
        if isinstance(part, ToolResult):
            return evolve(part, parts=[written(each) for each in part.parts])
        document = _read(part) if isinstance(part, Aside) else None
        return part if document is None else _block(document, block_of)

    return evolve(turn, parts=[written(part) for part in turn.parts])


def _from_listed(request: Request, to: Lowering, block_of: BlockOf | None) -> dict[str, DocumentPlace]:
    """Put Cohere's documents before the last question. Return the place of each by its id."""
    extras = dict(request.extras)
    listed, options = extras.pop("documents"), extras.pop("citation_options", None)
    mode = options.get("mode") if isinstance(options, dict) else None
    request.extras = extras
    if mode in {"FAST", "ACCURATE"}:
        to.lose("parameter", "citation_options.mode")
    cited = mode not in OFF
    if cited and to.takes.cites and request.options.output is not None and request.options.output.kind == "schema":
        to.lose("parameter", "citation_options")  # Claude's servers refuse citations next to a schema for the output
        cited = False
    documents: list[Document] = []
    for number, raw in enumerate(listed):
        if (document := _of_listed(raw, number, cited=cited)) is not None:
            documents.append(document)
        else:
            to.lose("parameter", "documents")
    if not documents:
        return {}
    if to.takes.cites and block_of is not None:
        parts: list[Part] = [_block(document, block_of) for document in documents]
    else:
        to.lose("metadata", "documents")
        parts = [Text("\n\n".join(filter(None, (document.title, *document.texts)))) for document in documents]
    turns = [*request.turns]
    asked = [
        number
        for number, turn in enumerate(turns)
        if turn.role == "user" and not all(isinstance(part, ToolResult) for part in turn.parts)
    ]
    if asked:
        turns[asked[-1]] = evolve(turns[asked[-1]], parts=[*parts, *turns[asked[-1]].parts])
    else:
        turns.append(Turn("user", parts))
    request.turns = turns
    names = [document.source or "" for document in documents]
    return {name: DocumentPlace("search", number, 0, 1, name) for number, name in enumerate(names)}


def _to_listed(request: Request, to: Lowering) -> Callable[[DocumentPlace], str | None]:
    """Move documents next to the messages, those of tools into their results. Return what finds the id at a place."""
    places: list[DocumentPlace] = []
    numbers = {"document": 0, "search": 0}

    def written(part: Any, *, in_result: bool) -> list[Any]:
        if isinstance(part, ToolResult):
            return [evolve(part, parts=[new for each in part.parts for new in written(each, in_result=True)])]
        document = _read(part) if isinstance(part, Aside | Media) else None
        is_search = document is not None and document.kind == "search"
        is_file = isinstance(part, Media) and part.kind == "file"
        is_block = isinstance(part, Aside) and part.type == f"{CONTENT}document"
        index = numbers["search" if is_search else "document"]
        if is_search or is_file or is_block:  # also those that can't be sent, which the client counts, too
            numbers["search" if is_search else "document"] += 1
        if document is None or not document.cited:
            return [part]
        if document.cache is not None:
            to.lose("cache_mark", document.cache)
        pieces = list(_pieces(document, index))
        places.extend(place for place, _ in pieces)
        if not in_result:
            to.lose("block_order", "documents")
            to.documents += [raw for _, raw in pieces]
            return []
        return [Text(raw["data"]["text"], item={"type": "document", "document": raw}) for _, raw in pieces]

    turns = []
    for turn in request.turns:
        if turn.role != "assistant" and not {Aside, Media, ToolResult}.isdisjoint(map(type, turn.parts)):
            parts = [new for part in turn.parts for new in written(part, in_result=False)]
            if turn.parts and not parts:
                to.report.repair("text_added")
                parts = [Text(ATTACHED)]
            turn = evolve(turn, parts=parts)  # noqa: PLW2901 - the same turn, without its documents
        turns.append(turn)
    request.turns = turns

    of_document: dict[tuple[str, int], list[DocumentPlace]] = {}
    for place in places:  # in the order of their starts
        of_document.setdefault((place.kind, place.index), []).append(place)

    def id_at(place: DocumentPlace) -> str | None:
        start, known = place.start or 0, of_document.get((place.kind, place.index), [])
        number = bisect_right(known, start, key=lambda each: each.start or 0) - 1
        return place_id(known[number]) if number >= 0 and start < (known[number].end or 0) else None

    return id_at


# -- the history -------------------------------------------------------------------------------------------------------


def _history(
    request: Request, to: Lowering, read: Read | None = None, id_of: Callable[[DocumentPlace], str | None] | None = None
) -> None:
    """Translate the citations of documents in the assistant's turns, with their texts.

    ``read`` reads a citation of the source. ``id_of`` returns the id of a document of Cohere; None if the request has none.
    """
    source, target = DIALECTS[to.source].citations, DIALECTS[to.takes.dialect].citations
    if source is None or source.read is None or target is None:
        return
    known = partial(_known, read or source.read, id_of, to)
    source = evolve(source, read=known)
    if id_of is not None:
        target = evolve(target, write=partial(target.write, id_of=id_of))
    request.turns = [_cited(turn, source, target, to) for turn in request.turns]


def _known(
    read: Read, id_of: Callable[[DocumentPlace], str | None] | None, to: Lowering, aside: Aside
) -> tuple[Sequence[Citation], Sequence[str]]:
    """Return the citations of documents that the request has, and count the others if there are any."""
    found, beyond = read(aside)
    kept = [each for each in found if each.document is not None and (id_of is None or id_of(each.document) is not None)]
    if kept and len(kept) < len(found):
        to.report.lose("citation", len(found) - len(kept))
    return kept, beyond if kept else ()


def _cited(turn: Turn, source: CitationForm, target: CitationForm, to: Lowering) -> Turn:
    if turn.role != "assistant" or not any(isinstance(part, Aside) and part.kind == "citation" for part in turn.parts):
        return turn
    parts = carried_parts(turn.parts, source, target, to.report)
    if target.unit == "choice":  # its citations count the whole text, which is one part there
        joined: list[Part] = []
        for part in parts:
            if isinstance(part, Text) and joined and isinstance(last := joined[-1], Text):
                joined[-1] = evolve(part, text=last.text + part.text)
            elif not isinstance(part, Aside):
                joined.append(part)
        parts = [*joined, *(part for part in parts if isinstance(part, Aside))]
    return evolve(turn, parts=parts)
