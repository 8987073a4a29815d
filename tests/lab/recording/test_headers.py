"""What may be written of headers and paths, and what may be a key in them."""

from __future__ import annotations

import pytest

from streamkit.dialects import endpoints, key_headers
from streamkit.lab.recording.headers import (
    REQUEST_HEADERS,
    RESPONSE_HEADERS,
    VALUE_CHARS,
    kept_request_headers,
    kept_response_headers,
    kept_target,
    keys_in,
)

KEY = "planted-0123456789"


def test_no_header_that_keys_are_sent_in_is_kept():
    names = {name for name, _ in key_headers().values()}
    names |= {"cookie", "proxy-authorization", "x-amz-security-token", "openai-organization", "x-my-own"}
    for name in names:
        assert kept_request_headers([(name.title(), KEY)]) == ({}, True), name
        assert kept_response_headers([(name, KEY)]) == ({}, True), name


def test_what_dialects_ask_features_with_is_kept():
    for name in {name for endpoint in endpoints() for name in endpoint.features}:
        assert kept_request_headers([(name, "a"), (name.upper(), "b")]) == ({name: "a, b"}, False)
    for name in ("anthropic-ratelimit-tokens-limit", "x-ratelimit-remaining-tokens", "retry-after", "request-id"):
        assert kept_response_headers([(name, "1")]) == ({name: "1"}, False)


def test_a_value_that_is_too_long_is_left_out():
    assert kept_request_headers([("user-agent", "x" * VALUE_CHARS)])[1] is False
    assert kept_request_headers([("user-agent", "x" * (VALUE_CHARS + 1))]) == ({}, True)


def test_the_lists_have_no_name_that_keys_go_by():
    assert list(keys_in((name, KEY) for name in REQUEST_HEADERS | RESPONSE_HEADERS)) == []


@pytest.mark.parametrize(
    ("target", "kept"),
    [
        ("/v1/x", "/v1/x"),
        ("/v1/x?alt=sse", "/v1/x?alt=sse"),
        (f"/v1/x?alt=sse&key={KEY}", "/v1/x?alt=sse"),
        (f"/v1/x?api_key={KEY}", "/v1/x"),
        (f"/v1/x?X-Amz-Signature={KEY}&api-version=1&X-Amz-Credential=a&Sig={KEY}", "/v1/x?api-version=1"),
        (f"/v1/x?subscription-key={KEY}&&a", "/v1/x?&a"),
        ("/v1/x?key=a%2Fb", "/v1/x"),
        (f"/v1/x?%6bey={KEY}&a=b", "/v1/x?a=b"),
        (f"/v1/x?api%5Fk%65y={KEY}", "/v1/x"),
        (f"/v1/x?key%3D{KEY}", "/v1/x"),
        (f"/v1/x?a=b;%6Bey={KEY}", "/v1/x"),
    ],
)
def test_keys_are_taken_out_of_a_query(target, kept):
    assert kept_target(target) == (kept, target != kept)


@pytest.mark.parametrize(
    ("name", "value", "keys"),
    [
        ("Authorization", f"Bearer {KEY}", [KEY]),
        ("x-api-key", KEY, [KEY]),
        ("Cookie", f"sessionid={KEY}; b=2", [KEY, "2"]),
        ("X-Own-Token", f"{KEY}==", [f"{KEY}=="]),
        ("Authorization", "AWS4-HMAC-SHA256 Credential=AKIA/x, SignedHeaders=host;x-amz-date, Signature=ab", None),
        ("User-Agent", KEY, []),
    ],
)
def test_what_may_be_a_key_of_a_request(name, value, keys):
    expected = ["AKIA/x", "host;x-amz-date", "ab"] if keys is None else keys
    assert list(keys_in([(name, value)])) == expected
    assert list(keys_in([], f"/x?a=1&key={KEY}")) == [KEY]
    assert list(keys_in([], f"/x?a=1;%6bey={KEY}")) == [KEY]
    assert set(keys_in([], "/x?key=a%2Fb%2B")) == {"a%2Fb%2B", "a/b+"}
