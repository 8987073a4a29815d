from __future__ import annotations

import pickle
import sys
from typing import Any

import pytest
from attrs import evolve

from streamkit.errors import UsageError
from streamkit.web.upstream import Secret, Upstream

KEY = Secret("canary-0123456789")
CHAT: dict[str, Any] = {"name": "a", "dialect": "openai-chat", "base_url": "https://h/v1", "key": KEY}
CLAUDE = {**CHAT, "dialect": "anthropic", "base_url": "https://h"}
AWS = {**CHAT, "dialect": "bedrock", "base_url": "https://h", "key": None, "auth": "sigv4", "region": "eu-west-1"}
VERTEX = {**CHAT, "dialect": "vertex-anthropic", "base_url": "https://h/v1", "key": None, "auth": "google"}
AZURE = {**CHAT, "auth": "azure", "api_version": "2024-10-21"}


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({**CHAT, "name": ""}, "name: write letters"),
        ({**CHAT, "name": "a\nb"}, "name: write letters"),
        ({**CHAT, "dialect": "opena"}, "dialect: no dialect or provider is called 'opena'"),
        ({**CHAT, "base_url": ""}, "base_url: write a full URL"),
        ({**CHAT, "base_url": "api.openai.com/v1"}, "base_url: write a full URL"),
        ({**CHAT, "base_url": "ftp://h/v1"}, "base_url: write a full URL"),
        ({**CHAT, "base_url": "https://h /v1"}, "base_url: write a full URL"),
        ({**CHAT, "base_url": "https://h/v1\r\nx: y"}, "base_url: write a full URL"),
        ({**CHAT, "base_url": "https://h\\v1"}, "base_url: write a full URL"),
        ({**CHAT, "base_url": "https://me:canary@h/v1"}, "base_url: leave out user and password"),
        ({**CHAT, "base_url": "https://canary@h"}, "base_url: leave out user and password"),
        ({**CHAT, "base_url": "https://h/v1?key=canary"}, "base_url: leave out everything from `?`"),
        ({**CHAT, "base_url": "https://h/v1?"}, "base_url: leave out everything from `?`"),
        ({**CHAT, "base_url": "https://h/v1#canary"}, "base_url: leave out everything from `?`"),
        ({**CHAT, "base_url": "https:///v1"}, "base_url: the host is missing"),
        ({**CHAT, "base_url": "http://:80/v1"}, "base_url: the host or port is invalid"),
        ({**CHAT, "base_url": "http://h:99999/v1"}, "base_url: the host or port is invalid"),
        ({**CHAT, "base_url": "http://h:0/v1"}, "base_url: the host is missing"),
        ({**CHAT, "base_url": "http://[::1/v1"}, "base_url: the host or port is invalid"),
        ({**CHAT, "base_url": "https://h/v1/chat/completions/"}, "base_url: leave `/chat/completions` out"),
        ({**CLAUDE, "base_url": "https://h/v1/messages"}, "base_url: leave `/messages` out"),
        ({**CHAT, "auth": "basic"}, "auth: write one of none, bearer, x-api-key"),
        ({**CHAT, "key": None}, 'key: auth = "bearer" needs a key'),
        ({**CHAT, "key": Secret("")}, "key: it is empty"),
        ({**CHAT, "key": "sk-text"}, "key: must be a Secret"),
        ({**CHAT, "key": Secret("canary\n")}, "key: it is empty, or has a blank, a line break"),
        ({**CHAT, "key": Secret("canary\r\nx: y")}, "key: it is empty, or has a blank, a line break"),
        ({**CHAT, "key": Secret("schlüssel")}, "key: it is empty, or has a blank, a line break"),
        ({**CHAT, "auth": "none"}, 'key: auth = "none" sends no key'),
        ({**AWS, "key": KEY}, 'key: auth = "sigv4" sends no key'),
        ({**AWS, "region": None}, 'region: auth = "sigv4" needs a region'),
        ({**AWS, "region": "eu west"}, 'region: auth = "sigv4" needs a region'),
        ({**CHAT, "region": "eu-west-1"}, "region: leave it out"),
        ({**CHAT, "service": "execute-api"}, "service: leave it out"),
        ({**AWS, "service": ""}, "service: write the service's name in signatures"),
        ({**AWS, "service": "s3/x"}, "service: write the service's name in signatures"),
        ({**AWS, "service": 3}, "service: write a str, not int"),
        ({**VERTEX, "key": KEY}, 'key: auth = "google" sends no key'),
        ({**VERTEX, "headers": {"Authorization": "Bearer canary"}}, "headers: leave authorization out, since auth"),
        ({**AZURE, "api_version": None}, "api_version: Azure needs a version"),
        ({**CHAT, "api_version": ""}, "api_version: Azure needs a version"),
        ({**CLAUDE, "api_version": "2023-06-01"}, "api_version: leave it out"),
        ({**CHAT, "max_tokens": 0}, "max_tokens: write a number above 0"),
        (
            {**CHAT, "model_like": "my-deployment"},
            "model_like: no known model is called 'my-deployment'; write the name of one",
        ),
        ({**CHAT, "model_like": 5}, "model_like must be str, not int: write the name of a known model"),
        ({**CHAT, "headers": {"a b": "c"}}, "headers: 'a b' is not a valid header name"),
        ({**CHAT, "headers": {"": "c"}}, "headers: '' is not a valid header name"),
        ({**CHAT, "headers": {"X-A": "canary\r\nx: y"}}, "headers: the value of x-a"),
        ({**CHAT, "headers": {"X-A": ""}}, "headers: the value of x-a"),
        ({**CHAT, "headers": {"Host": "canary"}}, "headers: leave host out"),
        ({**CHAT, "headers": {"Content-Length": "1"}}, "headers: leave content-length out"),
        ({**CHAT, "headers": {"Transfer-Encoding": "chunked"}}, "headers: leave transfer-encoding out"),
        ({**CHAT, "headers": {"Accept-Encoding": "gzip"}}, "headers: leave accept-encoding out"),
        ({**CHAT, "headers": {"Authorization": "Bearer canary"}}, "headers: leave authorization out, since auth"),
        ({**AWS, "headers": {"Authorization": "Bearer canary"}}, "headers: leave authorization out, since auth"),
        ({**AWS, "headers": {"X-Amz-Date": "canary"}}, "headers: leave x-amz-date out"),
    ],
)
def test_what_cannot_work_is_refused_by_the_name_of_its_field(values: dict[str, Any], error: str):
    with pytest.raises(UsageError) as raised:
        Upstream(**values)
    assert str(raised.value).startswith(error)
    assert "canary" not in f"{raised.value!r} {raised.value.__cause__!r}"


@pytest.mark.parametrize(
    "values",
    [
        CHAT,
        CLAUDE,
        AWS,
        {**AWS, "dialect": "anthropic", "service": "bedrock-mantle"},
        AZURE,
        VERTEX,
        {**AZURE, "auth": "bearer"},
        {**AZURE, "api_version": None, "base_url": "https://h/openai/v1/"},
        {**CLAUDE, "auth": "azure"},
        {**CHAT, "dialect": "deepseek", "headers": {"X-Portkey-Api-Key": "canary"}},
        {**CHAT, "auth": "x-api-key", "headers": {"Authorization": "Basic Y2FuYXJ5"}},
        {**CHAT, "base_url": "http://[::1]:8000"},
        {**CHAT, "base_url": "https://münchen.example/v1"},
    ],
)
def test_what_works_is_taken_and_shows_no_key(values: dict[str, Any]):
    upstream = Upstream(**values)
    assert "canary" not in repr(upstream)
    assert "Y2Fu" not in repr(upstream)
    assert pickle.loads(pickle.dumps(upstream)) == upstream


def test_names_of_headers_are_shown_and_their_values_are_not():
    upstream = Upstream(**CHAT, headers={"X-One": "canary", "X-Two": "canary"})
    assert "headers=<x-one, x-two>" in repr(upstream)


def test_a_copy_is_checked_again():
    with pytest.raises(UsageError, match="base_url: the host is missing"):
        evolve(Upstream(**CHAT), base_url="https://")


def test_sigv4_without_its_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "botocore", None)
    with pytest.raises(UsageError, match=r"pip install 'streamkit-llm\[aws\]'"):
        Upstream(**AWS)


@pytest.mark.parametrize("missing", ["google", "google.auth", "requests"])
def test_google_without_its_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch, missing: str):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(UsageError, match=r"pip install 'streamkit-llm\[google\]'"):
        Upstream(**VERTEX)


def test_a_provider_is_known_by_its_name():
    upstream = Upstream(**{**CHAT, "dialect": "deepseek"})
    assert upstream.wire.name == "openai-chat"
    assert upstream.provider is not None
    assert upstream.provider.name == "deepseek"
