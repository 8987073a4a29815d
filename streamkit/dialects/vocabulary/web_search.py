"""The definition of a provider's own web search in requests, as neutral options.

Anthropic, OpenAI and Google run such a tool themselves, with different options. An option that a dialect lacks is counted as
lost. A search that may only use stored pages counts as a different tool, which other dialects do not have.

Source: dialects.md §1.3, §2.3, §3.2, §5.3; the request types of anthropic, openai 3.54 and google-genai.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from streamkit.conversation.messages import WebSearch
from streamkit.dialects.members.values import has_value, objects_in, others_of
from streamkit.report import StreamReport

LOCATION: Final = ("city", "region", "country", "timezone")
PAGE: Final = frozenset({"type", "url", "title", "encrypted_content"})
CONTEXTS: Final = frozenset({"low", "medium", "high"})


def read_search(options: Mapping[str, Any]) -> WebSearch:
    """Read search options by the names that Anthropic and Responses use. Other options are kept as extras."""
    left = {name: value for name, value in options.items() if has_value(value)}
    search = WebSearch()
    if type(left.get("max_uses")) is int:
        search.max_uses = left.pop("max_uses")
    for name in ("allowed_domains", "blocked_domains"):
        domains = left.get(name)
        if isinstance(domains, list) and all(isinstance(domain, str) for domain in domains):
            setattr(search, name, tuple(left.pop(name)))
    if (location := _location(left.get("user_location"))) is not None:
        search.location = location
        left.pop("user_location")
    if isinstance(context := left.get("search_context_size"), str) and context in CONTEXTS:
        search.context = left.pop("search_context_size")
    if isinstance(live := left.get("external_web_access"), bool):
        search.stored_only = not live
        left.pop("external_web_access")
    search.extras = left or None
    return search


def read_pages(found: Any, report: StreamReport) -> list[tuple[str, str]]:
    """Return the URL and the title of each page in a list of search results; empty if there is no list.

    Each other member counts as lost, except for ``encrypted_content``, which only Anthropic's server reads.
    """
    pages = objects_in(found)
    for name in sorted({name for page in pages for name in others_of(page, PAGE)}):
        report.lose("metadata", what=name)
    return [(page["url"], str(page.get("title") or "")) for page in pages if isinstance(page.get("url"), str)]


def location_out(search: WebSearch) -> dict[str, str] | None:
    """Return ``user_location`` in the form of Anthropic and Responses."""
    return None if search.location is None else {"type": "approximate", **search.location}


def _location(value: Any) -> Mapping[str, str] | None:
    """Return the location of the user. Chat wraps it in another object."""
    if not isinstance(value, Mapping) or value.get("type") != "approximate":
        return None
    inner = value.get("approximate", value)
    if not isinstance(inner, Mapping):
        return None
    return {name: inner[name] for name in LOCATION if isinstance(inner.get(name), str)}
