"""Models in the shape of whoever asks for them: OpenAI's, Anthropic's, Gemini's, Ollama's; lists, pages and single ones.

A card says what is known of a model: what it is called here, and what may be asked of it. What nobody told us, sizes, dates,
windows, is left out, or is the value that the dialect has for *unknown* where its readers demand one. Lists keep the order of
the cards.

What readers demand: Zed of Ollama's list a ``name``, ``modified_at``, ``size``, ``digest`` and ``details`` that are text, and
it shows tools only where the capability says so; ollama-python a ``model_info``, if empty; anthropic-python a ``lifecycle``.

Source: clients.md §10.2. Seen: openai 3.54, anthropic 2.12, google-genai 3.4, ollama 0.6.3; Zed (crates/ollama).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from attrs import frozen

from streamkit.dialects.streams.event_encoder import encode_time
from streamkit.errors import BadRequest, UsageError
from streamkit.text.quoting import quoted
from streamkit.web.refusals import shown

#: Models on a page that names no size, and the most on any.
ANTHROPIC_PAGE: Final = 20
GEMINI_PAGE: Final = 50
MOST: Final = 1000
_NO_QUERY: Final[Mapping[str, str]] = MappingProxyType({})

#: What stands behind the path; a name may come several times.
Query: TypeAlias = Mapping[str, str]


@frozen(kw_only=True)
class ModelCard:
    """One model, as clients may call it."""

    id: str
    tools: bool = True  #: whether an upstream of it takes tools
    counts: bool = False  #: whether an upstream of it counts tokens
    created: int = 0  #: seconds since the epoch; 0 is unknown
    owner: str = "streamkit"


def models_list(dialect: str, models: Sequence[ModelCard], query: Query = _NO_QUERY) -> dict[str, Any]:
    """The list of models as clients of ``dialect`` read it, or the page of it that ``query`` asks for.

    Raises BadRequest for a page that can't be, and UsageError for a dialect that is not served.
    """
    return _served(dialect)[0](models, query)


def model_detail(dialect: str, card: ModelCard) -> dict[str, Any]:
    """One model as clients of ``dialect`` read it. Raises UsageError for a dialect that is not served."""
    return _served(dialect)[1](card)


# -- OpenAI's ----------------------------------------------------------------------------------------------------------


def _openai_list(models: Sequence[ModelCard], _query: Query) -> dict[str, Any]:
    return {"object": "list", "data": [_openai_model(card) for card in models]}


def _openai_model(card: ModelCard) -> dict[str, Any]:
    return {"id": card.id, "object": "model", "created": card.created, "owned_by": card.owner}


# -- Anthropic's -------------------------------------------------------------------------------------------------------


def _anthropic_list(models: Sequence[ModelCard], query: Query) -> dict[str, Any]:
    stages = [value for name, value in query.items() if name.removesuffix("[]") == "lifecycle"]
    if stages and "active" not in stages:
        models = ()
    size = _size(query, "limit", ANTHROPIC_PAGE)
    if query.get("before_id") and query.get("after_id"):
        raise BadRequest("before_id", "this stands beside after_id, and one of them is read")
    if query.get("before_id"):
        end = _place(models, query, "before_id")
        page, has_more = models[max(0, end - size) : end], end > size
    else:
        start = _place(models, query, "after_id") + 1
        page, has_more = models[start : start + size], start + size < len(models)
    ids = [card.id for card in page]
    return {
        "data": [_anthropic_model(card) for card in page],
        "has_more": has_more,
        "first_id": ids[0] if ids else None,
        "last_id": ids[-1] if ids else None,
    }


def _anthropic_model(card: ModelCard) -> dict[str, Any]:
    return {
        "type": "model",
        "id": card.id,
        "display_name": card.id,
        "created_at": encode_time(card.created),
        "lifecycle": "active",
    }


# -- Gemini's ----------------------------------------------------------------------------------------------------------


def _gemini_list(models: Sequence[ModelCard], query: Query) -> dict[str, Any]:
    """A page token is the last model of the page before, so that it survives a change of the list."""
    start = _place(models, query, "pageToken") + 1
    size = _size(query, "pageSize", GEMINI_PAGE)
    page = models[start : start + size]
    following = {"nextPageToken": page[-1].id} if start + size < len(models) else {}
    return {"models": [_gemini_model(card) for card in page], **following}


def _gemini_model(card: ModelCard) -> dict[str, Any]:
    methods = ["generateContent", "streamGenerateContent", *(["countTokens"] if card.counts else [])]
    return {"name": f"models/{card.id}", "displayName": card.id, "supportedGenerationMethods": methods}


# -- Ollama's ----------------------------------------------------------------------------------------------------------


def _ollama_list(models: Sequence[ModelCard], _query: Query) -> dict[str, Any]:
    return {"models": [_ollama_model(card) for card in models]}


def _ollama_model(card: ModelCard) -> dict[str, Any]:
    return {
        "name": card.id,
        "model": card.id,
        "modified_at": encode_time(card.created),
        "size": 0,
        "digest": hashlib.sha256(card.id.encode()).hexdigest(),  # of the name: stable, and another for each
        "details": _ollama_details(card),
    }


def _ollama_detail(card: ModelCard) -> dict[str, Any]:
    return {
        "license": "",
        "modelfile": "",
        "parameters": "",
        "template": "",
        "details": _ollama_details(card),
        "model_info": {"general.architecture": card.owner, "general.basename": card.id},
        "capabilities": ["completion", *(["tools"] if card.tools else [])],
        "modified_at": encode_time(card.created),
    }


def _ollama_details(card: ModelCard) -> dict[str, Any]:
    return {
        "parent_model": "",
        "format": "",
        "family": card.owner,
        "families": [card.owner],
        "parameter_size": "",
        "quantization_level": "",
    }


# -- what they share ---------------------------------------------------------------------------------------------------

_SHAPES: Final = {
    "openai-chat": (_openai_list, _openai_model),
    "openai-responses": (_openai_list, _openai_model),
    "anthropic": (_anthropic_list, _anthropic_model),
    "gemini": (_gemini_list, _gemini_model),
    "ollama": (_ollama_list, _ollama_detail),
}


def _served(
    dialect: str,
) -> tuple[Callable[[Sequence[ModelCard], Query], dict[str, Any]], Callable[[ModelCard], dict[str, Any]]]:
    try:
        return _SHAPES[dialect]
    except KeyError:
        raise UsageError(f"no models are listed in {quoted(dialect)}; there are {', '.join(_SHAPES)}") from None


def _place(models: Iterable[ModelCard], query: Query, name: str) -> int:
    """Where the model stands that ``query`` names; -1 if it names none."""
    cursor = query.get(name)
    if not cursor:
        return -1
    for place, card in enumerate(models):
        if card.id == cursor:
            return place
    raise BadRequest(name, f"no model is called {shown(cursor)} here")


def _size(query: Query, name: str, default: int) -> int:
    text = query.get(name) or str(default)
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:5]) <= MOST):
        raise BadRequest(name, f"a whole number from 1 to {MOST:,} is needed, not {shown(text)}")
    return int(text)
