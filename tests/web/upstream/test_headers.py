from __future__ import annotations

from typing import Any

import pytest
from multidict import CIMultiDict

from streamkit.dialects import DIALECTS
from streamkit.errors import BadRequest, UsageError
from streamkit.web.upstream import Secret, Upstream, response_headers
from streamkit.web.upstream.requests import PASSED_HEADERS, VALUE_CHARS, request_headers

CANARY = "canary-0123456789"
#: What a client, or what stands in front of the gateway, may send and no upstream may get.
PRIVATE = {
    "Authorization": f"Bearer {CANARY}",
    "Proxy-Authorization": f"Basic {CANARY}",
    "X-Api-Key": CANARY,
    "Api-Key": CANARY,
    "X-Goog-Api-Key": CANARY,
    "X-Goog-User-Project": CANARY,
    "Cookie": CANARY,
    "Host": "canary",
    "Content-Length": "7",
    "Transfer-Encoding": "chunked, canary",
    "Connection": "close, anthropic-beta, canary",
    "Upgrade": "canary",
    "TE": "trailers, canary",
    "Trailer": "canary",
    "Keep-Alive": "canary",
    "Expect": "100-continue, canary",
    "Content-Type": "text/canary",
    "Content-Encoding": "canary",
    "Accept": "text/canary",
    "Accept-Encoding": "gzip, canary",
    "User-Agent": "canary",
    "X-Forwarded-For": "canary",
    "Forwarded": "for=canary",
    "X-Real-IP": "canary",
    "Via": "canary",
    "Origin": "https://canary",
    "Referer": "https://canary",
    "X-Request-Id": "canary",
    "OpenAI-Organization": "canary",
    "OpenAI-Project": "canary",
    "Anthropic-Workspace-Id": "canary",
    "Anthropic-Dangerous-Direct-Browser-Access": "canary",
    "X-Stainless-Lang": "canary",
    "X-Amz-Security-Token": "canary",
}


def upstream(dialect: str, **values: Any) -> Upstream:
    return Upstream(name="up", dialect=dialect, base_url="https://h", key=Secret(CANARY), **values)


@pytest.mark.parametrize("client", [*DIALECTS.built_in, "claude-code", ""])
@pytest.mark.parametrize("dialect", [*DIALECTS.built_in, "deepseek"])
def test_no_key_no_cookie_and_nothing_of_the_connection_passes(dialect: str, client: str):
    plain = request_headers(upstream(dialect), client)
    assert request_headers(upstream(dialect), client, PRIVATE) == plain
    assert "canary" not in str(plain)
    assert plain["accept-encoding"] == "identity"
    assert plain["content-type"] == "application/json"
    assert plain["user-agent"].startswith("streamkit/")


@pytest.mark.parametrize(
    ("dialect", "accept"),
    [
        ("openai-chat", "text/event-stream, application/json"),
        ("ollama", "application/x-ndjson, application/json"),
        ("bedrock", "application/vnd.amazon.eventstream, application/json"),
    ],
)
def test_a_stream_is_asked_for_in_the_dialects_own_type_and_an_error_may_be_json(dialect: str, accept: str):
    assert request_headers(upstream(dialect), stream=True)["accept"] == accept
    assert request_headers(upstream(dialect), stream=False)["accept"] == "application/json"


FEATURES = {"Anthropic-Version": "2023-06-01", "anthropic-beta": "a-1,b-2", "OpenAI-Beta": "responses=v1"}


@pytest.mark.parametrize(
    ("dialect", "client", "passed"),
    [
        ("anthropic", "anthropic", {"anthropic-version": "2023-06-01", "anthropic-beta": "a-1,b-2"}),
        ("anthropic", "claude-code", {"anthropic-version": "2023-06-01", "anthropic-beta": "a-1,b-2"}),
        ("anthropic", "openai-chat", {"anthropic-version": "2026-10-21"}),
        ("anthropic", "", {"anthropic-version": "2026-10-21"}),
        ("openai-chat", "openai-chat", {"openai-beta": "responses=v1"}),
        ("deepseek", "openai-chat", {"openai-beta": "responses=v1"}),
        ("openai-responses", "openai-responses", {"openai-beta": "responses=v1"}),
        ("openai-chat", "openai-responses", {}),
        ("openai-chat", "anthropic", {}),
        ("gemini", "gemini", {}),
    ],
)
def test_feature_headers_pass_within_their_dialect(dialect: str, client: str, passed: dict[str, str]):
    sent = request_headers(upstream(dialect), client, FEATURES)
    assert {name: sent[name] for name in sent if name.startswith(("anthropic", "openai"))} == passed


def test_features_that_a_request_needs_are_sent_for_clients_of_other_dialects():
    own, needed = upstream("anthropic", headers={"anthropic-beta": "own"}), {"anthropic-beta": "needed"}
    assert request_headers(own, "openai-responses", FEATURES, features=needed)["anthropic-beta"] == "needed,own"
    assert request_headers(own, "anthropic", FEATURES, features=needed)["anthropic-beta"] == "a-1,b-2,own"


def test_lines_of_one_feature_are_one_list():
    headers = CIMultiDict([("Anthropic-Beta", "a"), ("anthropic-beta", "b, c")])
    assert request_headers(upstream("anthropic"), "anthropic", headers)["anthropic-beta"] == "a,b, c"


def test_an_operators_headers_are_sent_and_its_features_are_added():
    own = upstream("anthropic", headers={"Anthropic-Beta": "own", "Anthropic-Version": "2023-01-01", "X-Title": "t"})
    sent = request_headers(own, "anthropic", FEATURES)
    assert sent["anthropic-beta"] == "a-1,b-2,own"
    assert sent["anthropic-version"] == "2023-01-01"
    assert sent["x-title"] == "t"
    assert request_headers(own)["anthropic-beta"] == "own"
    assert request_headers(upstream("openai-chat", headers={"User-Agent": "mine"}))["user-agent"] == "mine"


@pytest.mark.parametrize("value", ["", "a\r\nx: y", "a\nb", "\udcff", "ü", " a", "a\x7f", "a" * (VALUE_CHARS + 1)])
def test_a_feature_that_cannot_be_sent_is_told_to_the_client(value: str):
    with pytest.raises(BadRequest, match=r"^headers\.anthropic-beta: must be 1 to 4,096 characters"):
        request_headers(upstream("anthropic"), "anthropic", {"Anthropic-Beta": value})
    assert request_headers(upstream("anthropic"), "anthropic", {"Anthropic-Beta": "a" * VALUE_CHARS})


def test_an_unknown_client_is_an_error():
    with pytest.raises(UsageError, match="no dialect or client is called 'nobody'"):
        request_headers(upstream("anthropic"), "nobody")


def test_times_to_wait_limits_and_ids_go_back():
    came = CIMultiDict(
        {
            "Retry-After": "7",
            "retry-after-ms": "6500",
            "X-Should-Retry": "false",
            "X-RateLimit-Remaining-Tokens": "12",
            "x-ratelimitbysize-remaining-minute": "3",
            "RateLimit-Policy": '"burst";q=100;w=60',
            "anthropic-ratelimit-unified-reset": "1",
            "X-Request-Id": "theirs",
            "openai-processing-ms": "55",
        }
    )
    assert response_headers(came) == {
        "retry-after": "7",
        "retry-after-ms": "6500",
        "x-should-retry": "false",
        "x-ratelimit-remaining-tokens": "12",
        "x-ratelimitbysize-remaining-minute": "3",
        "ratelimit-policy": '"burst";q=100;w=60',
        "anthropic-ratelimit-unified-reset": "1",
        "x-upstream-request-id": "theirs",
        "openai-processing-ms": "55",
    }


@pytest.mark.parametrize("name", ["x-request-id", "request-id", "X-Amzn-RequestId", "apim-request-id"])
def test_the_upstreams_own_id_has_another_name_than_the_gateways(name: str):
    assert response_headers({name: "theirs"}) == {"x-upstream-request-id": "theirs"}


@pytest.mark.parametrize(
    "name",
    [
        *sorted(PRIVATE.keys() - {"X-Request-Id"}),
        "Set-Cookie",
        "Location",
        "Server",
        "Date",
        "WWW-Authenticate",
        "Anthropic-Organization-Id",
        "CF-Ray",
        "Access-Control-Allow-Origin",
        "Strict-Transport-Security",
        "X-Accel-Buffering",
        "X-Accel-Redirect",
        "Cache-Control",
    ],
)
def test_nothing_else_goes_back(name: str):
    assert response_headers({name: "canary"}) == {}


@pytest.mark.parametrize("value", ["a\r\nset-cookie: b", "a\0", "\udcff", "", " ", "a" * (VALUE_CHARS + 1)])
def test_a_value_that_could_break_the_answer_is_left_out(value: str):
    assert response_headers({"retry-after": value, "x-request-id": value, "x-should-retry": "b"}) == {
        "x-should-retry": "b"
    }


def test_an_upstream_cannot_fill_the_answer_with_headers():
    assert len(response_headers({f"x-ratelimit-{number}": "1" for number in range(1000)})) == PASSED_HEADERS
