"""Refuse a request before any upstream is asked, with a status and a body in the client's dialect.

``Refused`` is an exception that contains the failure. The dialect chooses the status and the body. Some statuses belong to no
type of error (405, 408, 415); they are set as if the dialect's provider had sent them, since only its own statuses are kept.

Source: dialects.md §7.5; clients.md §10.2; limits.md T6 (a message never repeats a header or a query).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from aiohttp import web

from streamkit.dialects import client_named
from streamkit.dialects.http import SHOWN_CHARS
from streamkit.errors import BadRequest, StreamkitError, UsageError
from streamkit.events import ErrorType, ProviderFailed
from streamkit.http_errors import ErrorAnswer, encode_error
from streamkit.text.quoting import quoted

#: The key under which a response of ``error_response`` has its failure, so that it can be logged.
FAILURE: Final = web.ResponseKey("streamkit-failure", ProviderFailed)


class Refused(StreamkitError):
    """A request that is refused. ``failed`` says why; ``headers`` are sent with the response."""

    def __init__(self, failed: ProviderFailed, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(failed.message)
        self.failed = failed
        self.headers = dict(headers or {})

    def response(self, dialect: str) -> web.Response:
        """Return the response for a client of ``dialect``. Raises UsageError for an unknown name."""
        return error_response(self.failed, dialect, headers=self.headers)


def error_answer(failed: ProviderFailed, dialect: str) -> ErrorAnswer:
    """Return the HTTP response of an error: the dialect's body, or its message as text (``Errors.in_words``).

    Raises UsageError as ``encode_error`` does.
    """
    answer = encode_error(failed, dialect)
    errors = client_named(dialect)[0].errors
    if errors is None or not errors.in_words:
        return answer
    headers = {**answer.headers, "content-type": "text/plain; charset=utf-8"}
    return ErrorAnswer(answer.status, headers, failed.message.encode("utf-8", "replace"))


def error_response(failed: ProviderFailed, dialect: str, *, headers: Mapping[str, str] | None = None) -> web.Response:
    """Return the response that reports an error to a client of ``dialect``: status, body, ``Retry-After`` and ``headers``.

    Raises UsageError for an unknown name, or a dialect that has no errors over HTTP.
    """
    status, own, body = error_answer(failed, dialect)
    response = web.Response(status=status, body=body, headers={**(headers or {}), **own})
    response[FAILURE] = failed
    return response


def bad_request(error: BadRequest) -> ProviderFailed:
    """Return the failure for an invalid request. Its message begins with the path to the invalid value."""
    return ProviderFailed("invalid_request", str(error))


def no_such_model(model: str) -> ProviderFailed:
    """Return the failure (``not_found``, 404) for a model that is not in the inventory."""
    return ProviderFailed(
        "not_found", f"the model {shown(model)} does not exist; the list of models shows the available ones"
    )


def no_count(model: str) -> ProviderFailed:
    """Return the failure for a token count that no upstream can give if the settings allow no estimate."""
    return ProviderFailed("not_found", f"no upstream of the model {shown(model)} can count tokens; omit the count")


def with_status(kind: ErrorType, message: str, status: int, dialect: str) -> ProviderFailed:
    """Return a failure with the HTTP status ``status``, 400 to 599, for clients of ``dialect``. Raises UsageError."""
    errors = client_named(dialect)[0].errors
    if errors is None:
        raise UsageError(f"{dialect} has no errors over HTTP here: it only streams")
    return ProviderFailed(kind, message, http_status=status, vendor=min(errors.vendors))


def shown(text: str) -> str:
    """Return a name that a client sent, in quotes, at most one line long, and without texts that look like keys."""
    return quoted(text, SHOWN_CHARS)
