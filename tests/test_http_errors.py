"""Errors over HTTP, read in every dialect's form and in others', and written in every dialect. Source: dialects.md §7.5."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from attrs import evolve

from streamkit import http_errors
from streamkit.dialects import DIALECTS, openai_chat
from streamkit.errors import UsageError
from streamkit.events import TOLD_CHARS, ErrorType, ProviderFailed
from streamkit.http_errors import BODY_BYTES, RETRY_AFTER_MAX_S, decode_error, encode_error, is_retryable
from streamkit.report import StreamReport

NAMES = [name for name, dialect in DIALECTS.items() if dialect.errors is not None]
KINDS: tuple[ErrorType, ...] = get_args(ErrorType)
SECRET = "sk-canary0123456789"


def body(**members: Any) -> bytes:
    return json.dumps(members).encode()


def nested(**members: Any) -> bytes:
    return body(error={"message": "no", **members})


def google(code: int, status: str, *details: Any) -> bytes:
    return body(error={"code": code, "message": "no", "status": status, **({"details": details} if details else {})})


RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "37.826s"}
WRONG_KEY = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}


def test_every_dialect_says_errors_over_http():
    assert set(NAMES) == {
        "openai-chat",
        "openai-responses",
        "anthropic",
        "ollama",
        "cohere",
        "mistral",
        "bedrock",
        "gemini",
        "gemini-interactions",
        "ag-ui",
        "ai-sdk",
    }


# -- which kind it is --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "said", "dialect", "kind"),
    [
        # the body's own words
        (401, nested(type="invalid_request_error", code="invalid_api_key"), "openai", "auth"),
        (404, nested(type="invalid_request_error", code="model_not_found"), "openai", "not_found"),
        (429, nested(type="insufficient_quota", code="insufficient_quota"), "openai", "billing"),
        (429, nested(type="requests", code="rate_limit_exceeded"), "openai", "rate_limit"),
        (429, nested(type="tokens", code=None), "openai-responses", "rate_limit"),
        (400, nested(type="invalid_request_error", code="context_length_exceeded"), "openai-responses", "too_large"),
        (500, nested(type="overloaded_error"), "openai-chat", "unavailable"),
        (529, body(type="error", error={"type": "overloaded_error", "message": "no"}), "anthropic", "unavailable"),
        (400, body(type="error", error={"type": "billing_error", "message": "no"}), "anthropic", "billing"),
        (400, body(type="error", error={"type": "api_error", "message": "no"}), "anthropic", "server"),
        (400, google(400, "FAILED_PRECONDITION"), "gemini", "invalid_request"),
        (400, google(400, "INVALID_ARGUMENT", WRONG_KEY), "gemini", "auth"),
        (429, google(429, "RESOURCE_EXHAUSTED"), "gemini", "rate_limit"),
        (400, body(message="no", __type="com.amazon#ThrottlingException"), "bedrock", "rate_limit"),
        (400, body(__type="ServiceQuotaExceededException", Message="no"), "bedrock", "rate_limit"),
        (422, body(object="error", message="no", type="rate_limited", code=1300), "mistral", "rate_limit"),
        # words that say no more than whose fault it was: the status
        (401, nested(type="invalid_request_error", code=None), "openai", "auth"),
        (402, nested(type="unknown_error", code="invalid_request_error"), "deepseek", "billing"),
        (403, nested(type="request_forbidden", code="unsupported_country"), "openai", "permission"),
        (503, nested(type="server_error"), "openai", "unavailable"),
        (413, nested(type="tokens", code="rate_limit_exceeded"), "groq", "too_large"),
        (504, body(type="error", error={"type": "api_error", "message": "no"}), "anthropic", "timeout"),
        # no words: the status
        (404, body(error="model 'x' not found"), "ollama", "not_found"),
        (429, body(message="no"), "cohere", "rate_limit"),
        (409, body(message="no"), "cohere", "invalid_request"),
        (422, body(detail="no"), "mistral", "invalid_request"),
        (418, nested(), "openai", "invalid_request"),
        (599, nested(), "openai", "server"),
        (524, b"", "openai", "timeout"),
        # a code of HTTP in the body, where the status says nothing
        (200, nested(code=402), "openrouter", "billing"),
        (500, nested(code=429), "openrouter", "rate_limit"),
    ],
)
def test_kind(status: int, said: bytes, dialect: str, kind: str):
    failed = decode_error(status, said, dialect)
    assert failed.type == kind
    assert failed.http_status == (status if status >= 300 else 402)
    if said:
        assert failed.message in {"no", "model 'x' not found"}


def test_the_name_of_an_exception_stands_in_a_header_too():
    head = {"x-amzn-ErrorType": "AccessDeniedException:http://internal.amazon.com/coral/com.amazon.bedrock/"}
    failed = decode_error(403, body(message="no"), "bedrock", head)
    assert (failed.type, failed.native_type, failed.message) == ("permission", "accessDeniedException", "no")


def test_what_the_provider_called_it_is_kept():
    said = nested(type="requests", code="rate_limit_exceeded", param=None)
    failed = decode_error(429, said, "openai")
    assert (failed.native_type, failed.code, failed.vendor) == ("requests", "rate_limit_exceeded", "openai")
    assert failed.raw == json.loads(said)["error"]


# -- other bodies ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", NAMES)
@pytest.mark.parametrize(
    ("said", "message"),
    [
        (b"", "an empty body"),
        (b" \r\n", "an empty body"),
        (b"upstream connect\nerror", "text: 'upstream connect error'"),
        (b"<html><head><title>502 Bad Gateway</title></head><body>x", "a web page: '502 Bad Gateway'"),
        (b"<!doctype html><html><style>p{}</style><p>No &amp; <b>no</b>", "a web page: 'No & no'"),
        (b"<?xml version='1.0'?><Error><Code>Gone</Code></Error>", "markup: 'Gone'"),
        (b"\x1f\x8b\x08\x00\x00\x00", "6 bytes that are not text"),
        (b"[1, 2]", "JSON without an error: '[1, 2]'"),
        (b"[]", "JSON without an error: '[]'"),
        (b"null", "text: 'null'"),
        (b'"Unauthorized"', "JSON without an error: '\"Unauthorized\"'"),
        (b"{}", "an object without an error, with the members ''"),
        (b'{"error": null}', "an object without an error, with the members 'error'"),
        (body(id="x", choices=[]), "an object without an error, with the members 'id, choices'"),
        (body(model="m", message={"role": "assistant", "content": "secret"}, done=True), "an object without an error, with the members 'model, message, done'"),
        (b'{"error": {"message": "cut of', "text: '{\"error\": {\"message\": \"cut of'"),
    ],
)  # fmt: skip
def test_a_body_that_says_no_error(dialect: str, said: bytes, message: str):
    failed = decode_error(502, said, dialect)
    assert failed.message == f"the provider responded with status 502 and {message}"
    assert (failed.type, failed.http_status, failed.vendor, failed.raw) == ("server", 502, "", None)


@pytest.mark.parametrize("dialect", NAMES)
@pytest.mark.parametrize(
    ("said", "kind"),
    [
        (nested(type="server_error"), "server"),
        (body(error="no"), "invalid_request"),
        (body(message="no"), "invalid_request"),
        (body(Message="no"), "invalid_request"),
        (body(detail="no"), "invalid_request"),
        (body(success=False, errors=[{"code": 7003, "message": "no"}]), "invalid_request"),
        (body(type="error", error={"type": "overloaded_error", "message": "no"}), "unavailable"),
        (google(503, "UNAVAILABLE"), "unavailable"),
        (b"[" + google(503, "UNAVAILABLE") + b"]", "unavailable"),
        (body(object="error", message="no", type="BadRequestError", code=400), "invalid_request"),
        (b"event: error\ndata: " + nested(type="timeout_error") + b"\n\n", "timeout"),
        (b"error: " + nested(code=503), "unavailable"),
        (b"\xef\xbb\xbf" + body(error={"message": "no"}), "invalid_request"),
    ],
)
def test_any_envelope_is_read_in_any_dialect(dialect: str, said: bytes, kind: str):
    failed = decode_error(400, said, dialect)
    assert (failed.type, failed.message) == (kind, "no")


def test_fastapis_details_are_one_message():
    items = [{"loc": ["body", "messages", 0], "msg": "Field required", "type": "missing"}, {"msg": "and more"}]
    assert decode_error(422, body(detail=items), "mistral").message == "body.messages.0: Field required; and more"
    inside = body(object="error", message={"detail": items[:1]}, type="invalid_request_error")
    assert decode_error(422, inside, "mistral").message == "body.messages.0: Field required"


def test_an_error_without_a_message_says_so():
    failed = decode_error(403, body(__type="AccessDeniedException"), "bedrock")
    assert failed.message == "an error without a message: AccessDeniedException"
    failed = decode_error(403, body(error={"type": "x"}), "openai")
    assert failed.message == 'an error without a message: {"type":"x"}'


def test_bodies_are_bounded():
    long = decode_error(400, nested(message="x" * 5000, type="y" * 500, code="z" * 500), "openai")
    assert (len(long.message), long.message[-1]) == (TOLD_CHARS, "…")
    assert (len(long.native_type or ""), len(long.code or "")) == (100, 100)
    just = json.dumps({"error": "x" * (BODY_BYTES - 13)}).encode()
    assert (len(just), decode_error(400, just, "ollama").message[:3]) == (BODY_BYTES, "xxx")
    more = decode_error(400, just + b" ", "ollama")
    assert more.message.startswith('the provider responded with status 400 and text: \'{"error": "xxx')
    assert len(more.message) < 250


@pytest.mark.parametrize("dialect", NAMES)
@pytest.mark.parametrize(
    "said",
    [
        b"[" * 70_000,
        b"[" * 60_000,
        b'{"error":' * 900 + b"1" + b"}" * 900,
        b'{"error":{"message":' * 400 + b"1" + b"}}" * 400,
        b'{"error": {"message": "\\ud800"}}',
        b'{"error": {"message": 1e999, "code": [{}], "type": 7}}',
        b'{"detail": [[[[[["deep"]]]]]]}',
        b"<" * 60_000,
        b"<head" * 12_000,
        b"\xff" * 100,
        body(error={"message": {"message": {"message": {"message": {"message": "deep"}}}}}),
        body(error={"message": "no", "code": {"a": 1}}, message=["x"], type={}),
    ],
)
def test_hostile_bodies_give_a_failure_that_can_be_written(dialect: str, said: bytes):
    failed = decode_error(500, said, dialect)
    assert failed.message
    for target in NAMES:
        assert json.loads(encode_error(failed, target).body)


@pytest.mark.parametrize("source", NAMES)
@pytest.mark.parametrize("target", NAMES)
def test_no_secret_comes_through(source: str, target: str):
    said = [
        nested(message=f"wrong key:\n{SECRET}", type="x", code=SECRET, api_key="canary"),
        body(type="error", error={"type": "authentication_error", "message": f"Bearer {SECRET}"}, authorization="canary"),
        body(error=f"no: {SECRET}"),
        body(message=f"no: {SECRET}", request_id="r"),
        body(detail=[{"msg": f"no: {SECRET}", "input": {"headers": {"x-api-key": "canary"}}}]),
        body(object="error", message=SECRET, secret="canary"),
        body(__type="X", message=SECRET),
        google(400, "INVALID_ARGUMENT", {"metadata": {"key": SECRET}}),
        body(**{SECRET: 1}),
        f"<html><title>{SECRET}".encode(),
        f"no: {SECRET}".encode(),
        json.dumps([SECRET]).encode(),
    ]  # fmt: skip
    for each in said:
        failed = decode_error(401, each, source)
        assert "canary" not in repr(failed)
        assert b"canary" not in encode_error(failed, target).body


# -- how long to wait --------------------------------------------------------------------------------------------------

DATE = "Sun, 06 Nov 1994 08:49:37 GMT"
NOW = 784111757.0  # twenty seconds before


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"Retry-After": "12"}, 12.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"RETRY-AFTER": "0"}, 0.0),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "1_0"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "604800"}, 604_800.0),
        ({"retry-after": "9" * 5000}, RETRY_AFTER_MAX_S),
        ({"retry-after": DATE}, 20.0),
        ({"retry-after": "Sunday, 06-Nov-94 08:49:37 GMT"}, 20.0),
        ({"retry-after": "Sun Nov  6 08:49:37 1994"}, 20.0),
        ({"retry-after": DATE, "Date": "Sun, 06 Nov 1994 08:49:30 GMT"}, 7.0),
        ({"retry-after": DATE, "Date": "yesterday"}, 20.0),
        ({"retry-after": "Sun, 06 Nov 1994 08:00:00 GMT"}, 0.0),
        ({"retry-after": "Sun, 06 Nov 9994 08:00:00 GMT"}, RETRY_AFTER_MAX_S),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after-ms": "x", "retry-after": "1"}, 1.0),
        ({"x-other": "1"}, None),
    ],
)
@pytest.mark.parametrize("dialect", NAMES)
def test_how_long_to_wait(dialect: str, headers: dict[str, str], wait: float | None):
    assert decode_error(429, b"", dialect, headers, clock=lambda: NOW).retry_after_s == wait


def test_google_says_it_in_the_body():
    said = google(429, "RESOURCE_EXHAUSTED", "odd", RETRY)
    assert decode_error(429, said, "gemini").retry_after_s == 37.826
    assert decode_error(429, said, "gemini", {"retry-after": "3"}).retry_after_s == 3.0
    for odd in ("soon", "-3s", "1e9s", None, "999999999999999s"):
        assert decode_error(429, google(429, "X", {**RETRY, "retryDelay": odd}), "gemini").retry_after_s is None
    assert decode_error(429, google(429, "X", {**RETRY, "retryDelay": "999999s"}), "gemini").retry_after_s == 999_999.0


@pytest.mark.parametrize("name", NAMES)
def test_it_is_told_to_the_client(name: str):
    whole = encode_error(ProviderFailed("rate_limit", "no", retry_after_s=12.0), name).headers
    assert whole["retry-after"] == "12"
    assert "retry-after-ms" not in whole
    part = encode_error(ProviderFailed("rate_limit", "no", retry_after_s=1.2501), name).headers
    assert (part["retry-after"], part["retry-after-ms"]) == ("2", "1251")
    assert "retry-after" not in encode_error(ProviderFailed("rate_limit", "no"), name).headers
    assert (
        encode_error(ProviderFailed("rate_limit", "no", retry_after_s=1e300), name).headers["retry-after"] == "31622400"
    )


# -- what is written ---------------------------------------------------------------------------------------------------

#: Status, the word for the kind.
WRITTEN: dict[str, dict[ErrorType, tuple[int, str]]] = {
    "openai-chat": {
        "invalid_request": (400, "invalid_request_error"), "auth": (401, "authentication_error"), "billing": (429, "insufficient_quota"),
        "permission": (403, "permission_error"), "not_found": (404, "not_found_error"), "too_large": (413, "invalid_request_error"),
        "rate_limit": (429, "rate_limit_exceeded"), "server": (500, "server_error"), "unavailable": (503, "service_unavailable"),
        "timeout": (504, "timeout"), "truncated": (502, "server_error"),
    },
    "anthropic": {
        "invalid_request": (400, "invalid_request_error"), "auth": (401, "authentication_error"), "billing": (402, "billing_error"),
        "permission": (403, "permission_error"), "not_found": (404, "not_found_error"), "too_large": (413, "request_too_large"),
        "rate_limit": (429, "rate_limit_error"), "server": (500, "api_error"), "unavailable": (529, "overloaded_error"),
        "timeout": (504, "timeout_error"), "truncated": (500, "api_error"),
    },
    "gemini": {
        "invalid_request": (400, "INVALID_ARGUMENT"), "auth": (401, "UNAUTHENTICATED"), "billing": (429, "RESOURCE_EXHAUSTED"),
        "permission": (403, "PERMISSION_DENIED"), "not_found": (404, "NOT_FOUND"), "too_large": (400, "INVALID_ARGUMENT"),
        "rate_limit": (429, "RESOURCE_EXHAUSTED"), "server": (500, "INTERNAL"), "unavailable": (503, "UNAVAILABLE"),
        "timeout": (504, "DEADLINE_EXCEEDED"), "truncated": (503, "UNAVAILABLE"),
    },
    "gemini-interactions": {
        "invalid_request": (400, "invalid_request"), "auth": (401, "authentication"), "billing": (402, "payment_required"),
        "permission": (403, "permission_denied"), "not_found": (404, "not_found"), "too_large": (413, "invalid_request"),
        "rate_limit": (429, "rate_limit_exceeded"), "server": (500, "api_error"), "unavailable": (503, "service_unavailable"),
        "timeout": (504, "deadline_exceeded"), "truncated": (503, "service_unavailable"),
    },
    "bedrock": {
        "invalid_request": (400, "ValidationException"), "auth": (403, "UnrecognizedClientException"), "billing": (400, "ValidationException"),
        "permission": (403, "AccessDeniedException"), "not_found": (404, "ResourceNotFoundException"), "too_large": (400, "ValidationException"),
        "rate_limit": (429, "ThrottlingException"), "server": (500, "InternalServerException"), "unavailable": (503, "ServiceUnavailableException"),
        "timeout": (408, "ModelTimeoutException"), "truncated": (424, "ModelErrorException"),
    },
}  # fmt: skip
STATUSES: dict[ErrorType, int] = {
    "invalid_request": 400, "auth": 401, "billing": 402, "permission": 403, "not_found": 404, "too_large": 413, "rate_limit": 429,
    "server": 500, "unavailable": 503, "timeout": 504, "truncated": 502,
}  # fmt: skip


def word_in(name: str, document: Any, headers: dict[str, str]) -> str:
    if name == "bedrock":
        assert document["__type"] == headers["x-amzn-ErrorType"]
        return str(document["__type"])
    error = document["error"]
    return str(error[{"gemini": "status", "gemini-interactions": "code"}.get(name, "type")])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_status_and_envelope(name: str, kind: ErrorType):
    foreign = ProviderFailed(kind, "no", "their_word", http_status=418, raw={"message": "theirs"}, vendor="someone")
    status, headers, written = encode_error(foreign, name)
    document = json.loads(written)
    assert headers["content-type"] == "application/json"
    if name in WRITTEN:
        assert (status, word_in(name, document, headers)) == WRITTEN[name][kind]
    else:
        assert status == (429 if (name, kind) == ("openai-responses", "billing") else STATUSES[kind])
    assert b"their" not in written
    match name:
        case "openai-chat" | "openai-responses":
            assert document["error"].keys() == {"message", "type", "param", "code"}
            assert document["error"]["message"] == "no"
            assert headers.get("x-should-retry") == ("false" if kind == "billing" else None)
        case "anthropic":
            assert (document["type"], document["error"]["message"]) == ("error", "no")
        case "ollama":
            assert document == {"error": "no"}
        case "cohere":
            assert document == {"message": "no"}
        case "mistral":
            assert document.keys() == {"object", "message", "type", "param", "code"}
        case "gemini":
            assert (document["error"]["code"], document["error"]["message"]) == (status, "no")
        case "gemini-interactions":
            assert document["error"].keys() == {"code", "message"}
            assert document["error"]["message"] == "no"
        case "bedrock":
            assert document["message"] == "no"


OWN = {
    "openai-chat": [nested(type="requests", param=None, code="rate_limit_exceeded", new=1)],
    "openai-responses": [nested(type="invalid_request_error", param="input", code=None)],
    "anthropic": [
        body(type="error", error={"type": "brand_new_error", "message": "no", "details": {}}, request_id="r")
    ],
    "ollama": [body(error="no", signin_url="u")],
    "cohere": [body(id="1", message="no")],
    "mistral": [
        body(object="error", message="no", type="t", param=None, code="3505"),
        body(detail=[{"loc": ["body"], "msg": "no", "type": "missing"}]),
        body(message="no", request_id="r"),
    ],
    "gemini": [google(429, "RESOURCE_EXHAUSTED", RETRY)],
    "gemini-interactions": [nested(code="quota_exceeded", more=1)],
    "bedrock": [body(__type="ThrottlingException", message="no", more=1)],
}


@pytest.mark.parametrize(("name", "said"), [(name, each) for name, bodies in OWN.items() for each in bodies])
def test_within_a_dialect_status_and_body_go_on_as_they_came(name: str, said: bytes):
    report = StreamReport()
    for status in (409, 422, 429, 500, 599):
        again = encode_error(decode_error(status, said, name), name, report=report)
        assert again.status == status
        assert json.loads(again.body) == json.loads(said)
    assert not report.losses


@pytest.mark.parametrize("name", NAMES)
def test_a_body_goes_to_no_other_dialect(name: str):
    for source, bodies in OWN.items():
        for said in bodies:
            written = encode_error(decode_error(429, said, source), name).body
            same = source == name or {source, name} == {"openai-chat", "openai-responses"}
            assert any(word in written for word in (b'"new"', b'"param":"input"')) <= same
            if not same:
                assert not any(
                    word in written for word in (b"request_id", b"signin", b"3505", b"loc", b"more", b'"id"', b"brand")
                )


@pytest.mark.parametrize("name", NAMES)
def test_nobodys_words_go_nowhere(name: str):
    failed = decode_error(400, nested(type="their_word", code="their_code"), "ollama")
    assert (failed.vendor, failed.native_type, failed.code) == ("", "their_word", "their_code")
    assert b"their" not in encode_error(failed, name).body


def test_what_a_status_below_400_says_is_not_a_status_to_answer_with():
    failed = decode_error(302, b"", "openai")
    assert (failed.http_status, encode_error(evolve(failed, vendor="openai"), "openai-chat").status) == (302, 500)


def test_what_is_lost_is_counted():
    report = StreamReport()
    failed = decode_error(400, nested(type="t", code="c"), "openai")
    for name in NAMES:
        encode_error(failed, name, report=report)
    assert dict(report.losses) == {"error_detail": len(NAMES) - 2}  # Responses carries Chat's


# -- there and back ----------------------------------------------------------------------------------------------------

#: What comes back as another kind, since the dialect can't tell the two apart.
INEXACT: dict[str, dict[ErrorType, ErrorType]] = {
    "openai-chat": {},
    "openai-responses": {},
    "anthropic": {"truncated": "server"},
    "ollama": {"truncated": "server"},
    "cohere": {"truncated": "server"},
    "mistral": {},
    "ag-ui": {},
    "gemini-interactions": {"truncated": "unavailable"},
    "ai-sdk": {"truncated": "server"},
    "gemini": {"billing": "rate_limit", "too_large": "invalid_request", "truncated": "unavailable"},
    "bedrock": {"billing": "invalid_request", "too_large": "invalid_request", "truncated": "server"},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_there_and_back(name: str, kind: ErrorType):
    said = ProviderFailed(kind, "Nein.\nGrund: „x“", retry_after_s=2.5)
    status, headers, written = encode_error(said, name)
    again = decode_error(status, written, name, headers)
    assert (again.type, again.message, again.retry_after_s) == (INEXACT[name].get(kind, kind), said.message, 2.5)
    assert again.http_status == status
    # and what came is written again the same
    assert encode_error(again, name)[::2] == (status, written)


@pytest.mark.parametrize("target", NAMES)
@pytest.mark.parametrize("source", NAMES)
def test_every_pair_keeps_kind_message_and_wait(source: str, target: str):
    for kind in (
        "invalid_request",
        "auth",
        "permission",
        "not_found",
        "rate_limit",
        "server",
        "unavailable",
        "timeout",
    ):
        first = encode_error(ProviderFailed(kind, "no", retry_after_s=30.0), source)
        read = decode_error(first.status, first.body, source, first.headers)
        second = encode_error(read, target)
        again = decode_error(second.status, second.body, target, second.headers)
        assert (again.type, again.message, again.retry_after_s) == (kind, "no", 30.0)


# -- whether to try again ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failed", "retryable"),
    [
        *((ProviderFailed(kind, ""), kind in {"rate_limit", "server", "unavailable", "timeout", "truncated"}) for kind in KINDS),
        (ProviderFailed("invalid_request", "", http_status=409), True),
        (ProviderFailed("invalid_request", "", http_status=400), False),
        (ProviderFailed("invalid_request", "", http_status=408), True),
        (ProviderFailed("unavailable", "", http_status=425), True),
        (ProviderFailed("billing", "", http_status=429), False),
        (ProviderFailed("server", "", http_status=424), True),
        (ProviderFailed("server", "", http_status=501), False),
        (ProviderFailed("server", "", http_status=505), False),
        (ProviderFailed("server", "", http_status=302), False),
        (ProviderFailed("too_large", "", http_status=413), False),
    ],
)  # fmt: skip
def test_retryable(failed: ProviderFailed, retryable: bool):
    assert is_retryable(failed) is retryable


# -- names -------------------------------------------------------------------------------------------------------------


def test_providers_are_read_and_clients_written_to():
    assert decode_error(500, b"", "deepseek").type == "server"
    assert encode_error(ProviderFailed("server", "no"), "zed").body == b'{"error":"no"}'
    with pytest.raises(UsageError, match="zed"):
        decode_error(500, b"", "zed")
    with pytest.raises(UsageError, match="deepseek"):
        encode_error(ProviderFailed("server", "no"), "deepseek")


def test_a_dialect_that_only_streams_is_read_but_not_written(monkeypatch):
    silent = evolve(openai_chat.DIALECT, name="silent", errors=None)
    monkeypatch.setattr(http_errors, "source_named", lambda _name: (silent, None))
    monkeypatch.setattr(http_errors, "client_named", lambda _name: (silent, None))
    failed = decode_error(429, nested(type="insufficient_quota"), "silent")
    assert (failed.type, failed.message, failed.vendor, failed.raw) == ("billing", "no", "", None)
    with pytest.raises(UsageError, match="silent has no HTTP errors"):
        encode_error(failed, "silent")
