"""What looks like a secret is cut out of a body before it is logged. Source: seeds.md S1."""

from __future__ import annotations

import pytest

from streamkit.text.quoting import CUT, DEPTH, redacted, without_secrets


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ('{"api_key": "hush"}', '{"api_key": "[removed]"}'),
        ('{"x-api-key":"hush","a":"b"}', '{"x-api-key":"[removed]","a":"b"}'),
        (r'{"client_secret": "a\"b"}', '{"client_secret": "[removed]"}'),
        ('{"Authorization": "Bearer abcdef"}', '{"Authorization": "[removed]"}'),
        ('{"message": "got Bearer abc.def-123=="}', '{"message": "got Bearer [removed]"}'),
        ('{"message": "Incorrect API key provided: sk-abcd****wxyz."}', '{"message": "Incorrect API key provided: [removed]."}'),
        ('"AIzaSyA-0123456789_0123456789"', '"[removed]"'),
        ('"gsk_0123456789"', '"[removed]"'),
        (r'{"message": "not yours:\nsk-abcdefgh\tBearer abcdefgh"}', r'{"message": "not yours:\n[removed]\tBearer [removed]"}'),
        ('"AKIAIOSFODNN7EXAMPLE"', '"[removed]"'),
        ('"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2ln"', '"[removed]"'),
        (r'{"a":"\u0073k-abcd\u0065fgh"}', '{"a":"[removed]"}'),
        (r'{"api\u005Fkey":"hush"}', '{"api_key":"[removed]"}'),
        ('{"access_token":"a","refresh-token":"b"}', '{"access_token":"[removed]","refresh-token":"[removed]"}'),
    ],
)  # fmt: skip
def test_secrets_are_cut_out(body, shown):
    assert redacted(body.encode()) == shown


@pytest.mark.parametrize(
    "body",
    [
        '{"max_tokens": 5, "prompt_tokens": 7}',
        '{"logprobs": {"content": [{"token": "hi", "logprob": -1}]}}',
        '{"text": "the token is the secret of a good cookie; ask-me, risk-free"}',
        '{"id": "call_0123456789", "signature": "Eq0ECkgIDRAB"}',
    ],
)
def test_what_is_none_stays(body):
    assert redacted(body.encode()) == body


def test_bytes_that_are_no_text_are_shown():
    assert redacted(b"\xff\xfe") == "��"


def test_a_value_keeps_its_shape_without_its_secrets():
    value = {
        "error": {"message": "no:\nsk-abcdefgh", "code": 7, "api_key": "hush"},
        "list": [None, "Bearer abcdefgh", 1.5],
    }
    assert without_secrets(value) == {
        "error": {"message": "no:\n[removed]", "code": 7, "api_key": CUT},
        "list": [None, "Bearer [removed]", 1.5],
    }


def test_names_are_cleaned_as_values_are_and_own_keys_are_hidden():
    value = {"sk-abcdefgh": {"hush": ["hush"]}}
    assert without_secrets(value, hide=lambda text: text.replace("hush", CUT)) == {CUT: {CUT: [CUT]}}


def test_what_lies_too_deep_is_cut_out():
    value: list = []
    for _ in range(DEPTH):
        value = [value]
    shown = without_secrets(value)
    for _ in range(DEPTH):
        shown = shown[0]
    assert shown == CUT
