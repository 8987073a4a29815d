"""Interactions over HTTP: one path, at which the body has the model and whether to stream; and the error bodies.

Only the response to a request is served. Requests to continue, read or cancel a response that a server keeps are refused.

An error body is ``{"error": {code, message}}``, both texts.

Source: dialects.md §5.5, §7.5; clients.md §10.1; google-genai 3.4, which uses ``/v1`` and sends ``x-goog-api-key``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from streamkit.conversation.messages import Request
from streamkit.dialects.base import STATUSES, Errors
from streamkit.dialects.gemini_interactions.wire import ERROR_TYPES, VENDOR, encode_error, is_error
from streamkit.dialects.http import HTTP, STATELESS, Address, Endpoint, RequestLine, Surface, model_in_body
from streamkit.dialects.vocabulary.error_bodies import provider_failed
from streamkit.errors import BadRequest
from streamkit.events import ProviderFailed

PATHS: Final = ("/v1/interactions", "/v1beta/interactions")  # of google-genai 3.4, and of the documentation
_VERSIONED: Final = re.compile(r"/v\d\w*$")


def _place(base: str, _model: str, _stream: bool) -> str:
    root = base if _VERSIONED.search(base) else f"{base}/v1beta"
    return f"{root}/interactions"


def _address(line: RequestLine, request: Request) -> Address:
    """Return the model of the body. Raises BadRequest for an agent, which is not a model."""
    if not request.model and "agent" in request.extras:
        raise BadRequest("agent", "this gateway sends requests to models and runs no agents; set `model` instead")
    return model_in_body(line, request)


def _refuse_state(request: Request) -> None:
    """Raise BadRequest if the request refers to kept responses: none are kept here."""
    for each in request.unreadable:
        if each.of_conversation:  # other references, such as files, may exist on a server of this dialect
            raise BadRequest(each.path, f"{STATELESS}; {each.instead}")
    if request.extras.get("background"):
        raise BadRequest("background", f"{STATELESS}; omit `background`, and set `stream` to true for a long response")


def _decode_error(document: dict[str, Any], _headers: Mapping[str, str]) -> ProviderFailed | None:
    error = document.get("error")
    if not isinstance(error, dict) or not is_error(error) or not isinstance(error.get("code"), str):
        return None
    if "type" in error or "status" in error:  # other dialects have these members
        return None
    return provider_failed(error, VENDOR, ERROR_TYPES)


#: An interrupted response is an unavailable service, as in Google's other API.
ERRORS = Errors(
    vendors=frozenset({VENDOR}),
    words=ERROR_TYPES,
    decode=_decode_error,
    encode=lambda failed, report: ({"error": encode_error(failed, report)}, {}),
    statuses={**STATUSES, "truncated": 503},
)


HTTP_HALF = HTTP(
    endpoint=Endpoint(url=_place, pasted="/interactions", auth="x-goog-api-key"),
    surface=Surface(
        generate=PATHS,
        path=re.compile(r"(?:^/?|/v1|/v1beta)/interactions(?:/.*+)?\Z", re.DOTALL),
        kept=re.compile(r"(?:^/?|/v1|/v1beta)/interactions/"),
        address=_address,
        check=_refuse_state,
    ),
)
