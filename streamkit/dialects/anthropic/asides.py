"""Content that only Anthropic understands: blocks of server tools, citations and web searches.

An aside is an event with content that only one vendor understands. Each frame of such a block becomes an aside, whether the
frame was read in a stream, a whole response or the history of a request. So content that was read in one place can be
written in the others. A citation is an aside with the label of its text block, and a whole text block may contain several. A
web search is two blocks: a call of the server's tool, and its result.

Anthropic encrypts the index of a citation and the content of a page. For citations and searches of another provider,
streamkit writes marked data there instead, and ids that begin with ``PREFIX``. So the reader of requests recognises them.

Source: dialects.md §3.1, §3.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, Generic, TypeVar

import orjson
from attrs import define, field

from streamkit.conversation.messages import Citation, Tool, ToolsFound, WebSearched
from streamkit.dialects.anthropic.wire import VENDOR
from streamkit.dialects.base import CitationForm, SearchForm, ToolSearchForm
from streamkit.dialects.bodies.responses import Block, BlockList, joined_input
from streamkit.dialects.members.fields import without_none
from streamkit.dialects.members.values import details_of, json_value, objects_in, others_of
from streamkit.dialects.vocabulary.document_places import Document, DocumentForm, read_place, write_place
from streamkit.dialects.vocabulary.sealed_reasoning import MADE, seal, unseal
from streamkit.dialects.vocabulary.web_search import read_pages
from streamkit.events import Aside, AsideKind
from streamkit.limits import Limits
from streamkit.report import StreamReport
from streamkit.text.identifiers import hashed

Searched = TypeVar("Searched")


def is_server_tool(kind: str) -> bool:
    """Return whether a block of that type is a call that the server ran, its result, or a file that the call made."""
    return kind in {"server_tool_use", "container_upload"} or kind.endswith("_tool_result") or kind.startswith("mcp_")


def kind_of(kind: str) -> AsideKind:
    """Return the kind of aside for a block of that type. A ``fallback`` block says which model wrote what follows it."""
    return "metadata" if kind == "fallback" else "server_tool" if is_server_tool(kind) else "unknown_event"


def aside_of(frame: dict[str, Any], kind: str, number: int) -> Aside:
    """Return a frame of a block of that kind as an aside."""
    return Aside(VENDOR, kind_of(kind), str(frame.get("type")), frame, block=number)


def frames_of(block: Mapping[str, Any], index: int, input_text: str | None) -> Iterator[dict[str, Any]]:
    """Yield the frames that a stream would send for a whole block. ``input_text`` becomes a delta after the start."""
    if input_text is not None:
        block = {**block, "input": {}}
    yield {"type": "content_block_start", "index": index, "content_block": dict(block)}
    if input_text is not None:
        delta = {"type": "input_json_delta", "partial_json": input_text}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


@define
class _GrowingBlock:
    """A block of which some frames were read so far."""

    block: dict[str, Any]
    input: list[str] = field(factory=list)

    def take(self, delta: Any) -> bool:
        if not isinstance(delta, dict):
            return False
        match delta.get("type"), delta.get("partial_json"):
            case "input_json_delta", str(fragment):
                self.input.append(fragment)
                return True
            case "compaction_delta", _:
                self.block |= {name: value for name, value in delta.items() if name != "type"}
                return True
        return False

    def finish(self, report: StreamReport) -> None:
        if (whole := joined_input(self.input, self.block.get("name"), report)) is not None:
            self.block["input"] = whole


class AnthropicBlocks(BlockList):
    """Joins the blocks of one message."""

    start = "content_block_start"
    delta = "content_block_delta"
    stop = "content_block_stop"
    citation = "citations_delta"

    def growing(self, start: Any) -> _GrowingBlock:
        return _GrowingBlock(dict(start["content_block"]))

    def cite(self, block: Block, citation: Any) -> None:
        block.setdefault("citations", []).append(citation)


# -- citations ---------------------------------------------------------------------------------------------------------

WEB: Final = "web_search_result_location"
WEB_MEMBERS: Final = frozenset({"type", "url", "title", "cited_text", "encrypted_index"})
DOCUMENT_MEMBERS: Final = frozenset({"type", "title", "document_title", "cited_text", "source"})
#: For each type of document citation: the unit of its positions, and the members with document number, start and end.
DOCUMENTS: Final[Mapping[str, DocumentForm]] = {
    "char_location": ("char", "document_index", "start_char_index", "end_char_index"),
    "page_location": ("page", "document_index", "start_page_number", "end_page_number"),
    "content_block_location": ("block", "document_index", "start_block_index", "end_block_index"),
    "search_result_location": ("search", "search_result_index", "start_block_index", "end_block_index"),
}


def read_citation(aside: Aside) -> tuple[list[Citation], Sequence[str]]:
    """Return the page or document that a citation names, and the names of other members.

    ``encrypted_index`` does not count as lost: no client can show it, and only Anthropic's server reads it.
    """
    raw = aside.raw if isinstance(aside.raw, dict) else {}
    form = DOCUMENTS.get(str(raw.get("type")))
    document = None if form is None else read_place(form, raw, raw.get("source"))
    if document is None and (raw.get("type") != WEB or not isinstance(raw.get("url"), str)):
        return [], ()
    title, quote = raw.get("title") or raw.get("document_title"), raw.get("cited_text")
    url = "" if document is not None else raw["url"]
    title, quote = (text if isinstance(text, str) else None for text in (title, quote))
    known = WEB_MEMBERS if form is None else DOCUMENT_MEMBERS.union(form)
    return [Citation(url, title, quote, document=document)], [*others_of(raw, known)]


def write_citations(citations: Sequence[Citation], choice: int) -> list[Aside]:
    """Return the citations of a choice as asides of their text blocks."""
    asides = []
    for citation in citations:
        raw: dict[str, Any] = {"type": WEB, "cited_text": citation.quote or citation.text or ""}
        if citation.document is None:
            raw |= {
                "encrypted_index": seal("opaque", "web", citation.url),
                "title": citation.title,
                "url": citation.url,
            }
        else:
            raw["type"], members = write_place(DOCUMENTS, citation.document)
            of_search = citation.document.kind == "search"
            raw |= {"title" if of_search else "document_title": citation.title, **members}
            raw |= {"source": citation.document.source or ""} if of_search else {"file_id": None}
        asides.append(Aside(VENDOR, "citation", "citations_delta", raw, choice, citation.block))
    return asides


def is_foreign(citation: Any) -> bool:
    """Return whether streamkit wrote this citation for another provider's: its index is streamkit's, not Anthropic's."""
    index = citation.get("encrypted_index") if isinstance(citation, dict) else None
    return isinstance(index, str) and unseal(index) is not None


def _document_block(document: Document) -> dict[str, Any]:
    """Return the block of a document, or of a search result."""
    content = [{"type": "text", "text": text} for text in document.texts]
    members = document.members()
    if document.kind == "search":
        return {"type": "search_result", **members, "content": content}
    block = {"type": "document", **without_none(title=document.title), **members}
    return {**block, "source": {"type": "content", "content": content}}


CITATIONS: Final = CitationForm(
    vendor=VENDOR,
    unit="block",
    read=read_citation,
    write=write_citations,
    documents=True,
    document_block=_document_block,
    has_quote=True,
)


# -- searches of the web -----------------------------------------------------------------------------------------------

CALL, RESULT = "server_tool_use", "web_search_tool_result"
PREFIX: Final = f"srvtoolu_{MADE}"
FAILED: Final[Mapping[str, str]] = {"type": "web_search_tool_result_error", "error_code": "unavailable"}


class BlockSearchReader(Generic[Searched]):
    """Reads the searches of one kind that the server ran, from the frames of their two blocks."""

    names: ClassVar[tuple[str, ...]]  #: the names of the server's tool
    result: ClassVar[str]  #: the type of the block with the result

    def __init__(self, limits: Limits, report: StreamReport) -> None:
        self._left = limits.held_chars
        self._report = report
        self._inputs: dict[int, tuple[str, list[str]]] = {}  # by block: call id and input fragments
        self._queries: dict[str, str] = {}  # queries of calls without a result so far, by call id
        self._results: set[int] = set()

    def found(self, query: str, content: Any) -> Searched:
        """Return the search for ``query`` whose result block has ``content``."""
        raise NotImplementedError

    def take(self, aside: Aside) -> tuple[list[Searched], Aside | None]:
        """Return the search that this aside completes, if any; and the aside itself if it does not belong to a search."""
        raw = aside.raw if isinstance(aside.raw, dict) else {}
        if aside.type == "content_block_start":
            return self._start(aside, details_of(raw, "content_block"))
        if aside.block in self._inputs and aside.type in {"content_block_delta", "content_block_stop"}:
            self._more(aside, details_of(raw, "delta").get("partial_json"))
            return [], None
        if aside.block in self._results and aside.type == "content_block_stop":
            self._results.discard(aside.block)
            return [], None
        return [], aside

    def finish(self) -> None:
        """Count each search whose result did not arrive as lost."""
        for _ in (*self._inputs, *self._queries):
            self._report.lose("server_tool", what=CALL)

    def _start(self, aside: Aside, block: Mapping[str, Any]) -> tuple[list[Searched], Aside | None]:
        if block.get("type") == CALL and block.get("name") in self.names:
            start = block.get("input")
            self._inputs[aside.block] = str(block.get("id")), [orjson.dumps(start).decode()] if start else []
            return [], None
        if block.get("type") != self.result:
            return [], aside
        self._results.add(aside.block)
        query = self._queries.pop(str(block.get("tool_use_id")), "")
        return [self.found(query, block.get("content"))], None

    def _more(self, aside: Aside, fragment: Any) -> None:
        call_id, texts = self._inputs[aside.block]
        if aside.type == "content_block_stop":
            del self._inputs[aside.block]
            value = json_value("".join(texts))
            members = value if isinstance(value, dict) else {}
            query = members.get("query", members.get("pattern"))
            self._queries[call_id] = query if isinstance(query, str) else ""
        elif isinstance(fragment, str) and len(fragment) <= self._left:
            self._left -= len(fragment)
            texts.append(fragment)


class SearchReader(BlockSearchReader[WebSearched]):
    """Reads web searches."""

    names = ("web_search",)
    result = RESULT

    def found(self, query: str, content: Any) -> WebSearched:
        return WebSearched(query, read_pages(content, self._report), failed=not isinstance(content, list))


def write_search(searched: WebSearched, number: int, choice: int) -> list[Aside]:
    """Return the asides of search ``number`` of a choice: the frames of a call of the server's tool, and of its result."""
    call_id = f"{PREFIX}_{hashed(f'{number} {searched.query}', 17)}"
    pages = [
        {
            "type": "web_search_result",
            "title": title or url,
            "url": url,
            "encrypted_content": seal("opaque", "web", url),
            "page_age": None,
        }
        for url, title in searched.pages
    ]
    result = {"type": RESULT, "tool_use_id": call_id, "content": dict(FAILED) if searched.failed else pages}
    return _written("web_search", searched.query, result, 2 * number, choice)


def _written(name: str, query: str, result: dict[str, Any], label: int, choice: int) -> list[Aside]:
    """Return the frames of a call of the server's tool ``name``, and of its result, as blocks ``label`` and the next one."""
    call = {"type": CALL, "id": result["tool_use_id"], "name": name, "input": {}}
    text = orjson.dumps({"query": query}).decode()
    asides = [aside_of(frame, CALL, label) for frame in frames_of(call, 0, text)]
    asides += [aside_of(frame, result["type"], label + 1) for frame in frames_of(result, 0, None)]
    for aside in asides:
        aside.choice = choice
    return asides


def is_made(block: Mapping[str, Any]) -> bool:
    """Return whether streamkit wrote this block of the history for a search that another provider ran."""
    return any(str(block.get(name)).startswith(PREFIX) for name in ("id", "tool_use_id"))


SEARCHES: Final = SearchForm(vendor=VENDOR, reader=SearchReader, write=write_search)


# -- searches of tools -------------------------------------------------------------------------------------------------

FINDER_NAMES: Final = ("tool_search_tool_bm25", "tool_search_tool_regex")
FOUND, FOUND_CONTENT = "tool_search_tool_result", "tool_search_tool_search_result"
#: The label of the first block of a search of tools, so that no label is one of a web search.
FIRST_LABEL: Final = 1_000_000


class ToolSearchReader(BlockSearchReader[ToolsFound]):
    """Reads searches of tools."""

    names = FINDER_NAMES
    result = FOUND

    def found(self, query: str, content: Any) -> ToolsFound:
        listed = content.get("tool_references") if isinstance(content, dict) else None
        names = [each["tool_name"] for each in objects_in(listed) if isinstance(each.get("tool_name"), str)]
        return ToolsFound(query, names, failed=not isinstance(listed, list))


def write_tools_found(found: ToolsFound, number: int, choice: int, offered: Sequence[Tool]) -> list[Aside]:
    """Return the asides of search of tools ``number`` of a choice, under the name of the search that the client offered."""
    types = [str((tool.raw or {}).get("type")) for tool in offered if tool.finds_tools]
    name = next((name for name in FINDER_NAMES for kind in types if kind.startswith(name)), FINDER_NAMES[0])
    content: dict[str, Any] = {"type": "tool_search_tool_result_error", "error_code": "unavailable"}
    if not found.failed:
        listed = [{"type": "tool_reference", "tool_name": tool} for tool in found.names]
        content = {"type": FOUND_CONTENT, "tool_references": listed}
    call_id = f"srvtoolu_{hashed(f'{number} {found.query} {found.names}', 22)}"
    result = {"type": FOUND, "tool_use_id": call_id, "content": content}
    return _written(name, found.query, result, FIRST_LABEL + 2 * number, choice)


TOOL_SEARCHES: Final = ToolSearchForm(vendor=VENDOR, reader=ToolSearchReader, write=write_tools_found)
