"""A count as each client reads it; that the official ones do is in ``test_inventory.py``."""

from __future__ import annotations

import pytest

from streamkit.errors import UsageError
from streamkit.web.surfaces import surfaces
from streamkit.web.token_counts import count_response


@pytest.mark.parametrize(
    ("dialect", "body"),
    [
        ("anthropic", b'{"input_tokens":7}'),
        ("claude-code", b'{"input_tokens":7}'),
        ("gemini", b'{"totalTokens":7}'),
        ("openai-responses", b'{"object":"response.input_tokens","input_tokens":7}'),
    ],
)
def test_a_count_in_the_clients_words(dialect, body):
    assert count_response(dialect, 7).body == body


@pytest.mark.parametrize("dialect", surfaces())
def test_each_dialect_with_a_path_for_counts_has_an_answer_and_no_other(dialect):
    if surfaces()[dialect].count:
        assert count_response(dialect, 0)
    else:
        with pytest.raises(UsageError, match="these dialects have one: openai-responses, anthropic, gemini"):
            count_response(dialect, 0)
