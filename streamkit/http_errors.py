"""Convert HTTP error responses of any dialect to ``ProviderFailed``, and ``ProviderFailed`` to error responses.

Reading: the error type and code in the body decide the kind of error. The status decides if the body has neither, or only says
whose fault the error is: OpenAI calls a missing key an ``invalid_request_error`` with status 401. Status 413 always decides,
since Groq calls a request that is too large a rate limit. Any body, even a web page, gives a message without text that looks
like a secret.

Writing: a client gets the error body, words and status of its own dialect. A provider's body is passed on, without secrets,
only to clients of the same dialect. The time to wait is kept. This module never retries.

Source: dialects.md §1.4, §7.5; RFC 9110 §10.2.3 (Retry-After); limits.md T6; quirks.md 108 to 112.
"""

from __future__ import annotations

import html
import math
import re
import time
from collections.abc import Callable, Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from itertools import islice
from typing import Any, Final, NamedTuple

import orjson
from attrs import evolve

from streamkit.dialects import DIALECTS, client_named, source_named
from streamkit.dialects.base import Dialect, Errors
from streamkit.dialects.vocabulary.context_overflow import is_overflow
from streamkit.dialects.vocabulary.error_bodies import (
    ERROR_BY_STATUS,
    error_in,
    error_message,
    gateway_status,
    provider_failed,
)
from streamkit.errors import UsageError
from streamkit.events import TOLD_CHARS, WORD_CHARS, ErrorType, ProviderFailed
from streamkit.report import StreamReport
from streamkit.text.quoting import excerpt, redacted, shortened, without_secrets, writable

#: A body up to this length is parsed; a longer one is quoted as text. Providers' error bodies are a few hundred bytes.
BODY_BYTES: Final = 64 * 1024
#: Of a web page or plain text, at most ``PAGE_BYTES`` bytes are read, and ``EXCERPT_CHARS`` characters are quoted.
PAGE_BYTES, EXCERPT_CHARS = 4096, 160
NAMED = 8  #: if a JSON object has no error, the message lists at most this many of its member names
RETRY_AFTER_MAX_S: Final = 366 * 86_400.0  #: longest wait: a year; a longer one comes from a wrong date

_GENERAL: Final = frozenset({"invalid_request", "server"})  #: kinds that add nothing to the class of the status
#: A request that failed with one of these kinds may succeed later.
_RETRYABLE: Final = frozenset({"rate_limit", "server", "unavailable", "timeout", "truncated"})
_RETRYABLE_STATUSES: Final = frozenset({408, 409, 425})  #: a request may succeed later, whatever the kind of error is
_FINAL_STATUSES: Final = frozenset({501, 505})  #: the server has not implemented the request, which never succeeds
_NUMBER: Final = re.compile(r"\s*[0-9]+(?:\.[0-9]+)?\s*")  #: a number of seconds or milliseconds in a header
_UNSEEN: Final = re.compile(
    r"<(script|style|head)\b.*?(?:</\1\s*>|\Z)|<!--.*?(?:-->|\Z)|<[^>]*>?", re.DOTALL | re.IGNORECASE
)
#: The tags of a page's title. Only the first title is searched for: a page may have hundreds of unclosed titles.
_TITLE, _TITLE_END = re.compile("<title", re.IGNORECASE), re.compile("</title", re.IGNORECASE)


class ErrorAnswer(NamedTuple):
    """An HTTP error response for a client."""

    status: int
    headers: dict[str, str]
    body: bytes


def decode_error(
    status: int,
    body: bytes,
    dialect: str,
    headers: Mapping[str, str] | None = None,
    *,
    clock: Callable[[], float] = time.time,
) -> ProviderFailed:
    """Convert the error response of a provider that speaks ``dialect``. Any body works; of a long body the beginning is read.

    ``retry_after_s`` comes from ``Retry-After`` (seconds, or a date relative to the response's ``Date``), from
    ``retry-after-ms``, or from the body, and is limited to 0 … 1 year. The result holds no secrets and has a bounded length.
    Raise UsageError for an unknown dialect.
    """
    named, _ = source_named(dialect)
    # HTTP allows header bytes that are not UTF-8; Python decodes them to lone surrogates
    by_name = {name.lower(): writable(value) for name, value in (headers or {}).items()}
    document = _document(body)
    words = _words(named)
    failed = None
    if isinstance(document, dict):
        document = without_secrets(document)
        if named.errors is not None:
            failed = named.errors.decode(document, by_name)
        if failed is None:
            error = document if error_message(document) is not None else error_in(document)
            failed = None if error is None else evolve(provider_failed(error, "", words), raw=None)
    if failed is None:
        failed = ProviderFailed("server", f"the provider responded with status {status} and {_shown(body, document)}")
    wait = _wait(by_name, clock)
    kind = _kind(failed, status, words)
    return evolve(
        failed,
        type="too_large" if is_overflow(evolve(failed, type=kind)) else kind,
        message=excerpt(failed.message, TOLD_CHARS),
        native_type=failed.native_type and excerpt(failed.native_type, WORD_CHARS),
        code=failed.code and excerpt(failed.code, WORD_CHARS),
        http_status=status if status >= 300 else failed.http_status,
        retry_after_s=_bounded(failed.retry_after_s if wait is None else wait),
    )


def encode_error(failed: ProviderFailed, dialect: str, *, report: StreamReport | None = None) -> ErrorAnswer:
    """Write an error response for clients of ``dialect``. Count what the dialect can't express as lost.

    The status is the dialect's status for this kind of error, or the provider's status if the provider speaks the same
    dialect. ``Retry-After`` is in whole seconds, rounded up; ``retry-after-ms`` is added if it is more exact. Raise UsageError
    for a dialect without HTTP errors or an unknown name.
    """
    named, _ = client_named(dialect)
    if named.errors is None:
        raise UsageError(f"{named.name} has no HTTP errors: it only streams")
    body, own = named.errors.encode(failed, report if report is not None else StreamReport())
    headers = {"content-type": "application/json", **own}
    wait = _bounded(failed.retry_after_s)
    if wait is not None:
        headers["retry-after"] = str(math.ceil(wait))
        if not wait.is_integer():
            headers["retry-after-ms"] = str(math.ceil(wait * 1000))
    return ErrorAnswer(_status(failed, named.errors), headers, orjson.dumps(body))


def is_retryable(failed: ProviderFailed) -> bool:
    """Return whether the same request may succeed later, or at another provider of the same model, unchanged.

    True: rate limits, overload, server faults, time-outs, interrupted responses, and the statuses 408, 409 and 425. False: a
    request that is wrong, too large or not allowed; an exhausted quota or credit (``billing``, even with status 429);
    redirects; what a server has not implemented. The result ignores whether bytes were already sent to a client.
    """
    status = failed.http_status
    if status in _FINAL_STATUSES or (status is not None and 300 <= status < 400):
        return False
    return failed.type in _RETRYABLE or status in _RETRYABLE_STATUSES


# -- the kind of error -------------------------------------------------------------------------------------------------


def _kind(failed: ProviderFailed, status: int, words: Mapping[str, ErrorType]) -> ErrorType:
    by_status = ERROR_BY_STATUS.get(status) or ("invalid_request" if 400 <= status < 500 else "server")
    kind = failed.type
    if kind == "server":  # dialects also use this kind for types and codes that they don't know
        named = words.get(failed.code or "") or words.get(failed.native_type or "")
        kind = named or (by_status if failed.http_status is None else kind)
    if status == 413 or (kind in _GENERAL and by_status not in _GENERAL):
        return by_status
    return kind


def _words(named: Dialect) -> dict[str, ErrorType]:
    """Return the error words of all dialects, since servers mix them. The words of ``named`` take precedence."""
    every = [dialect.errors.words for dialect in (*DIALECTS.values(), named) if dialect.errors is not None]
    return {word: kind for words in every for word, kind in words.items()}


def _status(failed: ProviderFailed, errors: Errors) -> int:
    own = failed.http_status if failed.vendor in errors.vendors else gateway_status(failed)
    overflow = is_overflow(failed)
    # a request that is too long must not get a status of 500 or above, which the official clients would retry
    if own is not None and 400 <= own <= (499 if overflow else 599):
        return own
    return errors.statuses["invalid_request" if overflow else failed.type]


# -- how long to wait --------------------------------------------------------------------------------------------------


def _wait(headers: Mapping[str, str], clock: Callable[[], float]) -> float | None:
    """Return the seconds to wait from the headers; the most exact header wins, as in the official clients."""
    exact, value = _number(headers.get("retry-after-ms")), headers.get("retry-after")
    if exact is not None:
        return exact / 1000
    if (seconds := _number(value)) is not None:
        return seconds
    until, now = _date(value), _date(headers.get("date"))  # the server's own clock, which may differ from ours
    return None if until is None else until - (clock() if now is None else now)


def _number(text: str | None) -> float | None:
    """Parse a number of seconds or milliseconds. RFC 9110 allows whole numbers only; servers also send fractions."""
    return float(text) if _NUMBER.fullmatch(text or "") and text else None


def _date(text: str | None) -> float | None:
    try:
        date = parsedate_to_datetime(text or "")
    except (ValueError, OverflowError):
        return None
    # the oldest of the three date formats has no time zone
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()


def _bounded(seconds: float | None) -> float | None:
    return None if seconds is None else min(max(seconds, 0.0), RETRY_AFTER_MAX_S)


# -- bodies without an error -------------------------------------------------------------------------------------------


def _document(body: bytes) -> Any:
    """Parse the JSON value of a body; None for text. Unwrap an array around one object, and the payload of an SSE frame."""
    if len(body) > BODY_BYTES:
        return None
    text = body.decode("utf-8", "replace").lstrip("\ufeff").strip()
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError:
        for line in text.splitlines():
            name, _, value = line.partition(":")
            if name in {"data", "error"} and value.strip().startswith(("{", "[")):
                return _document(value.encode())
        return None
    if isinstance(document, list):  # from a stream that is one array: prefer the object with an error
        objects = [item for item in document if isinstance(item, dict)]
        return next((item for item in objects if error_in(item) is not None), objects[0] if objects else document)
    return document


def _shown(body: bytes, document: Any) -> str:
    if not body.strip():
        return "an empty body"
    if isinstance(document, dict):
        return f"an object without an error, with the members {_excerpt(', '.join(islice(document, NAMED)))}"
    page = body[:PAGE_BYTES].decode("utf-8", "replace")
    if page.count("\ufffd") > len(page) // 10 or "\0" in page:
        return f"{len(body):,} bytes that are not text"
    if document is not None:
        return f"JSON without an error: {_excerpt(page)}"
    if page.lstrip("\ufeff \t\r\n")[:1] != "<":
        return f"text: {_excerpt(page)}"
    seen = _title(page) or _UNSEEN.sub(" ", page)
    return f"{'a web page' if '<html' in page.lower() else 'markup'}: {_excerpt(html.unescape(seen))}"


def _title(page: str) -> str:
    begun = _TITLE.search(page)
    at = page.find(">", begun.end()) + 1 if begun is not None else 0
    ended = _TITLE_END.search(page, at) if at else None
    return page[at : ended.start()].strip() if ended is not None else ""


def _excerpt(text: str) -> str:
    return repr(shortened(" ".join(redacted(text[:PAGE_BYTES].encode()).split()), EXCERPT_CHARS))
