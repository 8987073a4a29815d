"""Errors over HTTP: the answers that are no stream and no response, of any dialect to ``ProviderFailed`` and back.

Reading. The body's own words say the kind of error, and the status where they say nothing or only whose fault it was: OpenAI
calls a missing key an ``invalid_request_error`` with status 401. No words outdo 413, since Groq calls a request that is too
large a rate limit. Whatever the body is, a web page say, there is a message, and what looks like a secret is cut out of it.

Writing. A client gets its own dialect's envelope, words and status. A provider's body goes on as it came, secrets aside, to
clients of its own dialect alone. How long to wait is kept. ``is_retryable`` says whether asking again could help; nothing
here does.

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
from streamkit.text.printable import writable
from streamkit.text.quoting import shortened
from streamkit.text.redact import excerpt, redacted, without_secrets

#: Of a body, this much is read; a longer one is shown as text. Providers' error bodies are a few hundred bytes.
BODY_BYTES: Final = 64 * 1024
#: Of a page or a text, this much is looked at, and this much shown.
PAGE_BYTES, EXCERPT_CHARS = 4096, 160
#: Members of an object without an error that are named.
NAMED = 8
#: Limits of a week and of a month are in use. What says more than a year is a date gone wrong.
RETRY_AFTER_MAX_S: Final = 366 * 86_400.0

#: Kinds that say no more than the class of a status does.
_GENERAL: Final = frozenset({"invalid_request", "server"})
_RETRYABLE: Final = frozenset({"rate_limit", "server", "unavailable", "timeout", "truncated"})
#: Statuses that decide, whatever the kind: a lock, a time-out; and what is not implemented.
_RETRYABLE_STATUSES: Final = frozenset({408, 409, 425})
_FINAL_STATUSES: Final = frozenset({501, 505})
_NUMBER: Final = re.compile(r"\s*[0-9]+(?:\.[0-9]+)?\s*")
_UNSEEN: Final = re.compile(
    r"<(script|style|head)\b.*?(?:</\1\s*>|\Z)|<!--.*?(?:-->|\Z)|<[^>]*>?", re.DOTALL | re.IGNORECASE
)
#: One search each, and none is begun again behind a page's other titles: a page may have hundreds that do not end.
_TITLE, _TITLE_END = re.compile("<title", re.IGNORECASE), re.compile("</title", re.IGNORECASE)


class ErrorAnswer(NamedTuple):
    """What a client is answered instead of a response."""

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
    """Read the error that a provider of ``dialect`` answered with. Any body will do; of a long one, its beginning.

    ``retry_after_s`` is what a ``Retry-After`` says (seconds, or a date by the answer's own ``Date``), ``retry-after-ms``, or
    the body itself, from 0 to a year. Without secrets, and of bounded length. Raises UsageError for an unknown name.
    """
    named, _ = source_named(dialect)
    # bytes that are no UTF-8, which HTTP allows, stand there as halves of surrogate pairs
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
        failed = ProviderFailed("server", f"the provider answered with status {status} and {_shown(body, document)}")
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
    """Write an error for clients of ``dialect``, or for one that reads it. What the dialect can't say is a counted loss.

    The status is the dialect's for this kind of error, or the provider's own where it speaks the dialect itself.
    ``Retry-After`` is in whole seconds, rounded up; ``retry-after-ms`` stands beside it where it is more exact. Raises
    UsageError.
    """
    named, _ = client_named(dialect)
    if named.errors is None:
        raise UsageError(f"{named.name} has no errors over HTTP here: it only streams")
    body, own = named.errors.encode(failed, report if report is not None else StreamReport())
    headers = {"content-type": "application/json", **own}
    wait = _bounded(failed.retry_after_s)
    if wait is not None:
        headers["retry-after"] = str(math.ceil(wait))
        if not wait.is_integer():
            headers["retry-after-ms"] = str(math.ceil(wait * 1000))
    return ErrorAnswer(_status(failed, named.errors), headers, orjson.dumps(body))


def is_retryable(failed: ProviderFailed) -> bool:
    """Whether the same request may succeed later, or with another provider of the same model, without anyone's doing.

    Yes: rate limits, overload, a server's fault, time-outs, answers that broke off, and the statuses 408, 409 and 425. No: a
    request that is wrong, too large or not allowed, a quota or a credit that is used up (``billing``, though its status may be
    429), redirects, and what a server has not implemented. It says nothing of whether bytes were already sent to a client.
    """
    status = failed.http_status
    if status in _FINAL_STATUSES or (status is not None and 300 <= status < 400):
        return False
    return failed.type in _RETRYABLE or status in _RETRYABLE_STATUSES


# -- what kind it is ---------------------------------------------------------------------------------------------------


def _kind(failed: ProviderFailed, status: int, words: Mapping[str, ErrorType]) -> ErrorType:
    by_status = ERROR_BY_STATUS.get(status) or ("invalid_request" if 400 <= status < 500 else "server")
    kind = failed.type
    if kind == "server":  # which the dialect also says of words that it does not know
        named = words.get(failed.code or "") or words.get(failed.native_type or "")
        kind = named or (by_status if failed.http_status is None else kind)
    if status == 413 or (kind in _GENERAL and by_status not in _GENERAL):
        return by_status
    return kind


def _words(named: Dialect) -> dict[str, ErrorType]:
    """Every dialect's words, this one's before all: servers say an error in one and speak another."""
    every = [dialect.errors.words for dialect in (*DIALECTS.values(), named) if dialect.errors is not None]
    return {word: kind for words in every for word, kind in words.items()}


def _status(failed: ProviderFailed, errors: Errors) -> int:
    own = failed.http_status if failed.vendor in errors.vendors else gateway_status(failed)
    overflow = is_overflow(failed)
    if own is not None and 400 <= own <= (499 if overflow else 599):  # the official clients repeat what has a 500
        return own
    return errors.statuses["invalid_request" if overflow else failed.type]


# -- how long to wait --------------------------------------------------------------------------------------------------


def _wait(headers: Mapping[str, str], clock: Callable[[], float]) -> float | None:
    """Seconds, as the headers say them: the most exact first, as the official clients read them."""
    exact, value = _number(headers.get("retry-after-ms")), headers.get("retry-after")
    if exact is not None:
        return exact / 1000
    if (seconds := _number(value)) is not None:
        return seconds
    until, now = _date(value), _date(headers.get("date"))  # the server's own clock, with which ours need not agree
    return None if until is None else until - (clock() if now is None else now)


def _number(text: str | None) -> float | None:
    """A number of seconds or milliseconds; RFC 9110 has whole ones, the field has others."""
    return float(text) if _NUMBER.fullmatch(text or "") and text else None


def _date(text: str | None) -> float | None:
    try:
        date = parsedate_to_datetime(text or "")
    except (ValueError, OverflowError):
        return None
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()  # the oldest of the three forms has no zone


def _bounded(seconds: float | None) -> float | None:
    return None if seconds is None else min(max(seconds, 0.0), RETRY_AFTER_MAX_S)


# -- bodies that say no error ------------------------------------------------------------------------------------------


def _document(body: bytes) -> Any:
    """The JSON value of a body; None for text. An array with one object is that object, a frame of a stream its payload."""
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
    if isinstance(document, list):  # of a stream that is one array
        objects = [item for item in document if isinstance(item, dict)]
        return next((item for item in objects if error_in(item) is not None), objects[0] if objects else document)
    return document


def _shown(body: bytes, document: Any) -> str:
    """A few words on a body in which nothing says what was wrong."""
    if not body.strip():
        return "an empty body"
    if isinstance(document, dict):
        return f"an object without an error, with the members {_excerpt(', '.join(islice(document, NAMED)))}"
    page = body[:PAGE_BYTES].decode("utf-8", "replace")
    if page.count("\ufffd") > len(page) // 10 or "\0" in page:
        return f"{len(body):,} bytes that are no text"
    if document is not None:
        return f"JSON that is no error: {_excerpt(page)}"
    if page.lstrip("\ufeff \t\r\n")[:1] != "<":
        return f"text: {_excerpt(page)}"
    seen = _title(page) or _UNSEEN.sub(" ", page)
    return f"{'a web page' if '<html' in page.lower() else 'markup'}: {_excerpt(html.unescape(seen))}"


def _title(page: str) -> str:
    """The first title of a page; "" where there is none."""
    begun = _TITLE.search(page)
    at = page.find(">", begun.end()) + 1 if begun is not None else 0
    ended = _TITLE_END.search(page, at) if at else None
    return page[at : ended.start()].strip() if ended is not None else ""


def _excerpt(text: str) -> str:
    """The beginning on one line, in quotes, without what looks like a secret."""
    return repr(shortened(" ".join(redacted(text[:PAGE_BYTES].encode()).split()), EXCERPT_CHARS))
