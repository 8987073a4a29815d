"""Refusals in each dialect: the status, the envelope that its clients read, and nothing that a client should not see."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from streamkit.errors import BadRequest, UsageError
from streamkit.events import ErrorType, ProviderFailed
from streamkit.http_errors import decode_error, encode_error
from streamkit.web.refusals import Refused, bad_request, error_response, no_count, no_such_model, shown, with_status
from tests.web.asking import DIALECTS, error_in, message_of

KINDS: tuple[ErrorType, ...] = get_args(ErrorType)


def told(response: Any) -> dict[str, Any]:
    return error_in(response.body)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_response_is_what_the_dialect_says(dialect, kind):
    failed = ProviderFailed(kind, "no", retry_after_s=1.5)
    status, headers, body = encode_error(failed, dialect)
    if dialect == "ai-sdk":  # whose clients show a body as it is
        headers, body = {"content-type": "text/plain; charset=utf-8"}, b"no"
    response = error_response(failed, dialect, headers={"x-request-id": "r"})
    assert (response.status, response.body) == (status, body)
    assert response.headers["retry-after"] == "2"
    assert response.headers["retry-after-ms"] == "1500"
    assert response.headers["x-request-id"] == "r"
    assert response.headers.getall("content-type") == [headers["content-type"]]


def test_a_header_of_the_caller_does_not_outdo_the_dialects():
    response = error_response(ProviderFailed("auth", "no"), "ollama", headers={"content-type": "text/html"})
    assert response.headers.getall("content-type") == ["application/json"]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("status", [405, 408, 415])
def test_a_status_of_its_own_stands_in_the_envelope_too(dialect, status):
    response = error_response(with_status("invalid_request", "no", status, dialect), dialect)
    assert response.status == status
    assert message_of(told(response)) == "no"
    if dialect == "gemini":
        assert told(response)["error"] == {"code": status, "message": "no", "status": "INVALID_ARGUMENT"}
    if dialect == "openai-chat":
        assert told(response)["error"] == {
            "message": "no",
            "type": "invalid_request_error",
            "param": None,
            "code": None,
        }
    again = decode_error(response.status, response.body, dialect)
    assert again.type == ("timeout" if status == 408 else "invalid_request")


def test_a_dialect_without_errors_is_a_mistake_of_the_caller():
    with pytest.raises(UsageError, match="no dialect or client is called"):
        with_status("auth", "no", 405, "nobody")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_refusal_is_an_exception_with_its_answer(dialect):
    refused = Refused(ProviderFailed("auth", "no key"), {"WWW-Authenticate": "Bearer"})
    assert str(refused) == "no key"
    response = refused.response(dialect)
    assert (response.status, response.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert message_of(told(response)) == "no key"


def test_a_bad_request_keeps_its_path():
    failed = bad_request(BadRequest("messages[3].content", "must be a string, not a list"))
    assert (failed.type, failed.message) == ("invalid_request", "messages[3].content: must be a string, not a list")


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("failed", [no_such_model("m"), no_count("m")], ids=["model", "count"])
def test_what_is_not_there_is_not_found(dialect, failed):
    response = error_response(failed, dialect)
    assert response.status == 404
    assert "'m'" in message_of(told(response))


def test_a_long_name_is_cut_and_stays_on_its_line():
    assert shown("a\nb") == r"'a\nb'"
    assert len(shown("x" * 10**6)) == 202
