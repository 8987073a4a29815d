"""What looks like a secret is cut out of a body before it is logged. Source: seeds.md S1."""

from __future__ import annotations

import pytest

from streamkit.redact import redacted


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
        ('"AKIAIOSFODNN7EXAMPLE"', '"[removed]"'),
        ('"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2ln"', '"[removed]"'),
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
