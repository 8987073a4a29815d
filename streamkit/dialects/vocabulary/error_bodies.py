"""Errors as the field says them, in any envelope: an object, a nested one, plain text.

Source: dialects.md §1.4, §7.5.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from streamkit.dialects.members.values import text_of
from streamkit.dialects.vocabulary.context_overflow import is_overflow
from streamkit.events import ErrorType, ProviderFailed

ERROR_BY_STATUS: Mapping[int, ErrorType] = {
    400: "invalid_request",
    401: "auth",
    402: "billing",
    403: "permission",
    404: "not_found",
    408: "timeout",
    413: "too_large",
    422: "invalid_request",
    424: "server",  # Bedrock: the model's failure
    425: "unavailable",
    429: "rate_limit",
    500: "server",
    503: "unavailable",
    504: "timeout",
    522: "timeout",  # Cloudflare, of the server behind it, as the next
    524: "timeout",
    529: "unavailable",
}
#: Codes of failures on the way to a provider: what answers for it says so by a status of its own (RFC 9110 §15.6.3, §15.6.5).
BROKEN: Final = "stream_broken"
REDIRECTED: Final = "upstream_redirected"
REFUSED_KEY: Final = "upstream_credentials"
_OF_THE_WAY: Final[Mapping[ErrorType, int]] = {"server": 502, "timeout": 504}
#: Members in which errors say what is wrong, the most telling first.
TELLING = ("message", "Message", "detail", "error", "errors", "msg", "title")


def gateway_status(failed: ProviderFailed) -> int | None:
    """The status of a failure that is no provider's: it could not be reached, or gave no response. None: it is another."""
    if failed.vendor or failed.code not in {BROKEN, REDIRECTED, REFUSED_KEY}:
        return None
    return _OF_THE_WAY.get(failed.type)


def is_bare_error(document: dict[str, Any]) -> bool:
    """Whether an object is an error without an envelope: a message, and a type or a code of one (Cerebras, Google)."""
    if text_of(document.get("message")) is None:
        return False
    code, kind = document.get("code", document.get("status_code")), document.get("type")
    return (type(code) is int and 400 <= code <= 599) or (isinstance(kind, str) and kind.lower().endswith("error"))


def provider_failed(error: Any, vendor: str, types: Mapping[str, ErrorType]) -> ProviderFailed:
    """Read an error in any of the envelopes of the field: an object, a nested one, plain text (dialects.md §1.4)."""
    raw = error
    if isinstance(error, dict) and isinstance(error.get("error"), dict | str):
        error = error["error"]
    if not isinstance(error, dict):
        error = {"message": error if isinstance(error, str) else orjson.dumps(error).decode()}
    message = error_message(error)
    if message is None:
        message = "an error without a message: " + orjson.dumps(error).decode()
    code, native = error.get("code"), text_of(error.get("type")) or text_of(error.get("status"))
    status = code if type(code) is int and 400 <= code <= 599 else None
    # the code first: OpenAI's type of a wrong key or an unknown model is `invalid_request_error`
    kind = types.get(str(code)) or types.get(native or "") or (ERROR_BY_STATUS.get(status) if status else None)
    failed = ProviderFailed(
        kind or "server", message, native, None if code is None else str(code), status, raw=raw, vendor=vendor
    )
    if is_overflow(failed):
        failed.type = "too_large"
    return failed


def has_detail(error: ProviderFailed, vendor: str) -> bool:
    """Whether another vendor's error says more than a message, which is all that ``vendor``'s dialect has."""
    return error.vendor != vendor and bool(error.native_type or error.http_status)


def error_message(error: Any, depth: int = 4) -> str | None:
    """What an error says, in any shape of the field: text, an object that has it, a list of these (FastAPI's ``detail``)."""
    if isinstance(error, str):
        return text_of(error)
    if not depth:
        return None
    if isinstance(error, list):
        return "; ".join([text for item in error[:10] if (text := error_message(item, depth - 1))]) or None
    if isinstance(error, dict):
        for name in TELLING:
            if text := error_message(error.get(name), depth - 1):
                path = error.get("loc")
                return f"{'.'.join(map(str, path))}: {text}" if isinstance(path, list) and path else text
    return None
