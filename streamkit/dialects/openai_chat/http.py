"""Chat Completions over HTTP, and its error bodies: ``{"error": {message, type, param, code}}``.

Source: dialects.md §1.4, §7.5; clients.md §10.1, §10.2; openai 3.54 for paths and headers; Azure OpenAI's REST reference for
deployments.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from streamkit.dialects.base import STATUSES, Errors
from streamkit.dialects.bodies.openai import ANSWER_HEADERS, FEATURES, MODELS, NO_RETRY, azure_root, decode_error
from streamkit.dialects.http import HTTP, Endpoint, Surface, segment
from streamkit.dialects.openai_chat.wire import ERROR_NAMES, ERROR_TYPES, VENDOR, encode_error
from streamkit.dialects.vocabulary.context_overflow import CODE, is_overflow
from streamkit.events import ErrorType, ProviderFailed
from streamkit.report import StreamReport

#: Values of ``code``, which clients use if the type is not exact enough.
CODES: Final[Mapping[ErrorType, str]] = {
    "auth": "invalid_api_key",
    "billing": "insufficient_quota",
    "not_found": "model_not_found",
    "rate_limit": "rate_limit_exceeded",
    "truncated": "stream_truncated",
}


def encode(failed: ProviderFailed, report: StreamReport) -> tuple[dict[str, Any], Mapping[str, str]]:
    """Return an error body, and the headers for it."""
    headers = NO_RETRY if failed.type == "billing" else {}
    if failed.vendor == VENDOR:
        return {"error": encode_error(failed)}, headers
    code = CODE if is_overflow(failed) else CODES.get(failed.type)
    if failed.code not in {None, code}:
        report.lose("error_detail")
    error = {"message": failed.message, "type": ERROR_NAMES[failed.type], "param": None, "code": code}
    return {"error": error}, headers


ERRORS = Errors(
    vendors=frozenset({VENDOR}),
    words=ERROR_TYPES,
    decode=lambda document, _headers: decode_error(document, VENDOR, ERROR_TYPES),
    encode=encode,
    statuses={**STATUSES, "billing": 429},
)


def _deployment(base: str, model: str) -> str:
    """Return the URL of an Azure deployment: the one in the base URL, or else the model."""
    named = base.partition("/deployments/")[2]
    return f"{azure_root(base)}/deployments/{named or segment(model)}/chat/completions"


HTTP_HALF = HTTP(
    endpoint=Endpoint(
        url=lambda base, _model, _stream: f"{base}/chat/completions",
        pasted="/chat/completions",
        deployment=_deployment,
        features=FEATURES,
        passed=ANSWER_HEADERS,
    ),
    surface=Surface(
        generate=("/v1/chat/completions",), path=re.compile(r"(?:^/?|/v1)/chat/completions\Z"), models=MODELS
    ),
)
