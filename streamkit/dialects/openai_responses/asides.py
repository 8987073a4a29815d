"""Asides for citations of web pages (with positions in characters of a text part), for web searches, and for images.

A search and an image are items, which contain the query or the image when they are done. The id of an item for another
provider's search or image contains a mark, so that the reader of requests recognises it.

Source: dialects.md §2.1, §2.2, §2.4, §7.4; the types of openai.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from streamkit.conversation.media import media_type_of
from streamkit.conversation.messages import Citation, WebSearched
from streamkit.dialects.base import CitationForm, SearchForm
from streamkit.dialects.bodies.openai import WEB, read_url_citation, write_annotations
from streamkit.dialects.members.values import details_of, others_of
from streamkit.dialects.openai_responses.wire import VENDOR
from streamkit.dialects.vocabulary.client_tools import ADDED, DONE
from streamkit.dialects.vocabulary.sealed_reasoning import MADE
from streamkit.dialects.vocabulary.web_search import read_pages
from streamkit.events import Aside, MediaGenerated, WireEvent
from streamkit.limits import Limits
from streamkit.report import StreamReport
from streamkit.text.identifiers import hashed

SEARCH_ITEM: Final = "web_search_call"
IMAGE_ITEM: Final = "image_generation_call"
SEARCH_PREFIX: Final = f"ws_{MADE}"  #: the beginning of the id of a search that streamkit makes
IMAGE_PREFIX: Final = f"ig_{MADE}"  #: the same for an image
IMAGE_FIELDS: Final = frozenset({"id", "type", "status", "result", "output_format"})


def read_citation(aside: Aside) -> tuple[list[Citation], Sequence[str]]:
    """Return the web page that an aside cites, and the names of other members; empty for any other aside."""
    is_web = isinstance(aside.raw, dict) and aside.raw.get("type") == WEB
    return read_url_citation(aside.raw) if is_web else ([], ())


CITATIONS: Final = CitationForm(
    vendor=VENDOR, unit="block", read=read_citation, write=partial(write_annotations, VENDOR, nested=False)
)


class SearchReader:
    """Reads web searches from their output items, one event at a time."""

    def __init__(self, _limits: Limits, report: StreamReport) -> None:
        self._report = report
        self._open = 0

    def take(self, aside: Aside) -> tuple[list[WebSearched], Aside | None]:
        """Return the searches that an aside completes, and the aside without them; None if nothing else is in it."""
        raw = aside.raw if isinstance(aside.raw, dict) else {}
        if aside.type.startswith(f"response.{SEARCH_ITEM}."):
            return [], None  # the progress of the search
        item = raw.get("item") if aside.type in {ADDED, DONE} else None
        if not isinstance(item, dict) or item.get("type") != SEARCH_ITEM:
            return [], aside
        if aside.type == ADDED:
            self._open += 1
            return [], None
        self._open = max(self._open - 1, 0)
        action = details_of(item, "action")
        if action.get("type", "search") != "search":  # the item is no search: it opened a page, or searched in one
            self._report.lose("server_tool", what=f"{SEARCH_ITEM}.{action.get('type')}")
            return [], None
        return [
            WebSearched(_query(action), read_pages(action.get("sources"), self._report), item.get("status") == "failed")
        ], None

    def finish(self) -> None:
        """Count as lost the searches that began and never ended."""
        for _ in range(self._open):
            self._report.lose("server_tool", what=SEARCH_ITEM)


def _query(action: Mapping[str, Any]) -> str:
    query, queries = action.get("query"), action.get("queries")
    if isinstance(query, str) and query:
        return query
    return ", ".join(text for text in (queries if isinstance(queries, list) else ()) if isinstance(text, str))


def write_search(searched: WebSearched, number: int, choice: int) -> list[Aside]:
    """Return the asides for another provider's search: an item that begins and ends."""
    item_id = f"{SEARCH_PREFIX}_{hashed(f'{number} {searched.query}', 17)}"
    asides = []
    ended = "failed" if searched.failed else "completed"
    for name, status, pages in ((ADDED, "in_progress", ()), (DONE, ended, searched.pages)):
        sources = [{"type": "url", "url": url} for url, _ in pages]
        action = {"type": "search", "query": searched.query, "sources": sources}
        item = {"id": item_id, "type": SEARCH_ITEM, "status": status, "action": action}
        asides.append(Aside(VENDOR, "server_tool", name, {"type": name, "item": item}, choice, number))
    return asides


def is_made(item: Mapping[str, Any]) -> bool:
    """Return whether streamkit made this item, for a search of another provider or an image of another vendor."""
    return str(item.get("id")).startswith((SEARCH_PREFIX, IMAGE_PREFIX))


SEARCHES: Final = SearchForm(vendor=VENDOR, reader=SearchReader, write=write_search)


def read_image(item: Any, native: Aside) -> MediaGenerated | None:
    """Return the image of an item; None if the item is no image or not done. ``native`` is the aside for the item."""
    if not isinstance(item, dict) or item.get("type") != IMAGE_ITEM:
        return None
    data, form = item.get("result"), item.get("output_format") or "png"  # the default of the API
    if not isinstance(data, str) or not data or not isinstance(form, str):
        return None
    media = MediaGenerated("image", f"image/{form}", data, choice=native.choice, block=native.block, native=native)
    media.extras = others_of(item, IMAGE_FIELDS) or None
    return media


def as_it_came(event: WireEvent) -> WireEvent:
    """Return the event itself, or the aside of this dialect from which media were read."""
    native = event.native if isinstance(event, MediaGenerated) else None
    return event if native is None else native


def write_image(media: MediaGenerated, number: int) -> list[Aside]:
    """Return the asides that start and finish an item for another vendor's image; empty if the item cannot contain it.

    ``number`` counts the images of a response: openai's stream helper fails at a second item with the same id.
    """
    if media.kind != "image" or media.data is None:
        return []
    kind = media_type_of(media)
    item = {"id": f"{IMAGE_PREFIX}_{hashed(f'{number} {media.data}', 17)}", "type": IMAGE_ITEM}
    done = {"status": "completed", "result": media.data, "output_format": kind.removeprefix("image/")}
    return [
        Aside(VENDOR, "server_tool", name, {"type": name, "item": {**item, **members}}, media.choice, media.block)
        for name, members in ((ADDED, {"status": "in_progress", "result": None}), (DONE, done))
    ]
