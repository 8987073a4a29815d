"""Anthropic's Messages API over HTTP, and its error bodies: ``{"type": "error", "error": {type, message}, "request_id"}``.

The SDK ``anthropic`` sends ``anthropic-version`` with every request, and the key as ``Authorization`` or ``x-api-key``. Its
types require the member ``lifecycle`` of a model.
Source: dialects.md §3.1, §7.5; clients.md §10.1, §10.2; anthropic 2.12: ``message_count_tokens_params``, ``ModelInfo``, and
``AnthropicVertex`` for Google's addresses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from streamkit.dialects import http
from streamkit.dialects.anthropic.wire import ERROR_TYPES, VENDOR, VERTEX, encode_error, version_of
from streamkit.dialects.base import STATUSES, Errors
from streamkit.dialects.members.fields import without_none
from streamkit.dialects.streams.event_encoder import encode_time
from streamkit.dialects.vocabulary.error_bodies import provider_failed
from streamkit.errors import BadRequest
from streamkit.events import ProviderFailed

PAGE: Final = 20  # how many models a page of the model list has if the request does not say
#: The members of a request that a token count accepts.
_COUNTED = frozenset({
    "messages", "model", "cache_control", "output_config", "speed", "system", "thinking", "tool_choice", "tools",
})  # fmt: skip


def _list(models: Sequence[http.ModelCard], query: http.Query) -> dict[str, Any]:
    stages = [value for name, value in query.items() if name.removesuffix("[]") == "lifecycle"]
    if stages and "active" not in stages:
        models = ()
    size = http.page_size(query, "limit", PAGE)
    if query.get("before_id") and query.get("after_id"):
        raise BadRequest("before_id", "must not be combined with after_id")
    if query.get("before_id"):
        end = http.place_of(models, query, "before_id")
        page, has_more = models[max(0, end - size) : end], end > size
    else:
        start = http.place_of(models, query, "after_id") + 1
        page, has_more = models[start : start + size], start + size < len(models)
    ids = [card.id for card in page]
    return {
        "data": [_model(card) for card in page],
        "has_more": has_more,
        "first_id": ids[0] if ids else None,
        "last_id": ids[-1] if ids else None,
    }


def _model(card: http.ModelCard) -> dict[str, Any]:
    return {
        "type": "model",
        "id": card.id,
        "display_name": card.id,
        "created_at": encode_time(card.created),
        "lifecycle": "active",
        **without_none(max_input_tokens=card.context, max_tokens=card.output),
    }


def _at_google(base: str, model: str, stream: bool) -> str:
    """Return the URL of a model under ``…/projects/P/locations/L``, with or without ``/publishers/anthropic``."""
    name = http.segment(model, safe="!$&'()*+,=:@")  # `;` is escaped: some servers drop the rest of a URL after it
    return f"{_models_at_google(base)}/{name}:{'streamRawPredict' if stream else 'rawPredict'}"


def _models_at_google(base: str) -> str:
    return http.with_root(base, "/publishers/anthropic") + "/models"


#: Claude Code adds ``[1m]`` to a model's name to request a context of a million tokens. The API wants this header instead.
_MARKS: Final = {"[1m]": {"anthropic-beta": "context-1m-2025-08-07"}}
HTTP_HALF = http.HTTP(
    endpoint=http.Endpoint(
        url=lambda base, _model, _stream: http.with_root(base, "/v1") + "/messages",
        pasted="/messages",
        auth="x-api-key",
        headers=lambda provider: {"anthropic-version": version_of(provider)},  # the server requires this header
        features={"anthropic-version": False, "anthropic-beta": True},
        marks=_MARKS,
        passed=("anthropic-ratelimit-",),
        count=http.TokenCount(
            url=lambda base, _model: http.with_root(base, "/v1") + "/messages/count_tokens",
            takes=_COUNTED,
            member="input_tokens",
        ),
    ),
    endpoints={
        VERTEX.name: http.Endpoint(
            url=_at_google,
            features={"anthropic-beta": True},
            marks=_MARKS,
            count=http.TokenCount(
                url=lambda base, _model: f"{_models_at_google(base)}/count-tokens:rawPredict",
                takes=_COUNTED | {"anthropic_version"},
                body=lambda members, model: {**members, "model": model},
                member="input_tokens",
            ),
        )
    },
    surface=http.Surface(
        generate=("/v1/messages",),
        count=("/v1/messages/count_tokens",),
        path=re.compile(r"(?:^/?|/v1)/messages(?:/.*+)?\Z", re.DOTALL),
        header="anthropic-version",
        request_id="request-id",
        models=http.Models(path="/v1/models", list=_list, detail=_model),
    ),
)


def decode(document: dict[str, Any], _headers: Mapping[str, str]) -> ProviderFailed | None:
    """Return the failure in a body; None if it is not an error body of this dialect."""
    if document.get("type") != "error" or not isinstance(document.get("error"), dict):
        return None
    return provider_failed(document, VENDOR, ERROR_TYPES)


#: An overloaded server has a status of its own, 529. An interrupted response is an ``api_error``, which has 500.
ERRORS = Errors(
    vendors=frozenset({VENDOR}),
    words=ERROR_TYPES,
    decode=decode,
    encode=lambda failed, report: (encode_error(failed, report), {}),
    statuses={**STATUSES, "unavailable": 529, "truncated": 500},
)
