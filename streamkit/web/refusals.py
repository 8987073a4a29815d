"""What a client is answered instead of an answer: a status and a body of its own dialect, before any upstream is asked.

A refusal is an exception with the failure in it, ``Refused``. Which words it gets is for the dialect to say. The few statuses
that no kind of error has (405, 408, 415) are said as the dialect's own vendor would, since only its own statuses are kept.

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

#: What an answer of ``error_response`` tells, for a log.
FAILURE: Final = web.ResponseKey("streamkit-failure", ProviderFailed)


class Refused(StreamkitError):
    """A request that is not passed on. ``failed`` says why, ``headers`` go with the answer."""

    def __init__(self, failed: ProviderFailed, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(failed.message)
        self.failed = failed
        self.headers = dict(headers or {})

    def response(self, dialect: str) -> web.Response:
        """The answer to a client of ``dialect``. Raises UsageError for an unknown name."""
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
    """The answer that tells a client of ``dialect`` of an error: status, body, ``Retry-After``; ``headers`` beside them.

    Raises UsageError for an unknown name, or a dialect that has no errors over HTTP.
    """
    status, own, body = error_answer(failed, dialect)
    response = web.Response(status=status, body=body, headers={**(headers or {}), **own})
    response[FAILURE] = failed
    return response


def bad_request(error: BadRequest) -> ProviderFailed:
    """A request that can't be, as its client is told it: the message begins with the path to the fault."""
    return ProviderFailed("invalid_request", str(error))


def no_such_model(model: str) -> ProviderFailed:
    """The refusal (``not_found``, 404) of a model that is not in the inventory."""
    return ProviderFailed(
        "not_found", f"no model is called {shown(model)} here; the list of models says which there are"
    )


def no_count(model: str) -> ProviderFailed:
    """Nobody can count the tokens of this request, and a guess would be taken for a count."""
    return ProviderFailed("not_found", f"no upstream of the model {shown(model)} counts tokens; leave the count out")


def with_status(kind: ErrorType, message: str, status: int, dialect: str) -> ProviderFailed:
    """A failure with an HTTP status of its own, from 400 to 599, for clients of ``dialect``. Raises UsageError."""
    errors = client_named(dialect)[0].errors
    if errors is None:
        raise UsageError(f"{dialect} has no errors over HTTP here: it only streams")
    return ProviderFailed(kind, message, http_status=status, vendor=min(errors.vendors))


def shown(text: str) -> str:
    """A name that a client gave, in quotes, no longer than a line, and without what looks like a key."""
    return quoted(text, SHOWN_CHARS)
