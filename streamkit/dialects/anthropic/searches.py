"""Searches of the web as Anthropic tells them: a call of the server's own tool, and its result, each a block.

What was found is told in a form that only its server can read, so that of another provider is sealed, and the id of the call
says that it was made here: the reader of requests tells both apart from the server's own.

Source: dialects.md §3.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from streamkit.conversation.messages import WebSearched
from streamkit.dialects.anthropic.asides import aside_of, frames_of
from streamkit.dialects.anthropic.wire import VENDOR
from streamkit.dialects.base import SearchForm
from streamkit.dialects.vocabulary.sealed_reasoning import MADE, seal
from streamkit.events import Aside
from streamkit.limits import Limits
from streamkit.report import StreamReport
from streamkit.text.identifiers import hashed

CALL, RESULT = "server_tool_use", "web_search_tool_result"
PREFIX: Final = f"srvtoolu_{MADE}"
FAILED: Final[Mapping[str, str]] = {"type": "web_search_tool_result_error", "error_code": "unavailable"}


class SearchReader:
    """The blocks of searches, frame by frame."""

    def __init__(self, limits: Limits, report: StreamReport) -> None:
        self._left = limits.held_chars
        self._report = report
        self._inputs: dict[int, tuple[str, list[str]]] = {}  # of calls that are open, by their block
        self._queries: dict[str, str] = {}  # of calls without a result so far, by their id
        self._results: set[int] = set()

    def take(self, aside: Aside) -> tuple[list[WebSearched], Aside | None]:
        raw = aside.raw if isinstance(aside.raw, dict) else {}
        if aside.type == "content_block_start":
            block = raw.get("content_block")
            return self._start(aside, block if isinstance(block, dict) else {})
        if aside.block in self._inputs and aside.type in {"content_block_delta", "content_block_stop"}:
            self._more(aside, raw.get("delta"))
            return [], None
        if aside.block in self._results and aside.type == "content_block_stop":
            self._results.discard(aside.block)
            return [], None
        return [], aside

    def finish(self) -> None:
        """Nothing more comes: count what has no result."""
        for _ in (*self._inputs, *self._queries):
            self._report.lose("server_tool", what=CALL)

    def _start(self, aside: Aside, block: dict[str, Any]) -> tuple[list[WebSearched], Aside | None]:
        if block.get("type") == CALL and block.get("name") == "web_search":
            given = block.get("input")
            self._inputs[aside.block] = str(block.get("id")), [orjson.dumps(given).decode()] if given else []
            return [], None
        if block.get("type") != RESULT:
            return [], aside
        self._results.add(aside.block)
        query, content = self._queries.pop(str(block.get("tool_use_id")), ""), block.get("content")
        if not isinstance(content, list):
            return [WebSearched(query, failed=True)], None
        pages = [page for page in content if isinstance(page, dict) and isinstance(page.get("url"), str)]
        return [WebSearched(query, [(page["url"], str(page.get("title") or "")) for page in pages])], None

    def _more(self, aside: Aside, delta: Any) -> None:
        call_id, texts = self._inputs[aside.block]
        if aside.type == "content_block_stop":
            del self._inputs[aside.block]
            self._queries[call_id] = _query("".join(texts))
            return
        fragment = delta.get("partial_json") if isinstance(delta, dict) else None
        if isinstance(fragment, str) and len(fragment) <= self._left:
            self._left -= len(fragment)
            texts.append(fragment)


def _query(text: str) -> str:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return ""
    query = value.get("query") if isinstance(value, dict) else None
    return query if isinstance(query, str) else ""


def write_search(searched: WebSearched, number: int, choice: int) -> list[Aside]:
    call_id = f"{PREFIX}_{hashed(f'{number} {searched.query}', 17)}"
    call = {"type": CALL, "id": call_id, "name": "web_search", "input": {}}
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
    query = orjson.dumps({"query": searched.query}).decode()
    asides = [aside_of(frame, CALL, 2 * number) for frame in frames_of(call, 0, query)]
    asides += [aside_of(frame, RESULT, 2 * number + 1) for frame in frames_of(result, 0, None)]
    for aside in asides:
        aside.choice = choice
    return asides


def is_made(block: Mapping[str, Any]) -> bool:
    """Whether a block of the history is one of a search that another provider ran."""
    return any(str(block.get(name)).startswith(PREFIX) for name in ("id", "tool_use_id"))


SEARCHES: Final = SearchForm(vendor=VENDOR, reader=SearchReader, write=write_search)
