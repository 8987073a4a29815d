"""What is kept of a request's body."""

from __future__ import annotations

import json

import pytest

from streamkit.lab.recording.headers import DEPTH, kept_body, shape_of

BODY = b'{ "model": "m", "n": 1, "x": 1.5, "stream": true, "stop": null, "messages": [{"content": "secret"}, 2] }'


def test_all_is_kept_as_it_is():
    assert kept_body(BODY, "full") == BODY


def test_nothing_is_kept():
    assert kept_body(BODY, "none") is None


def test_a_shape_has_the_members_and_no_value():
    assert json.loads(kept_body(BODY, "shape")) == {
        "model": "string",
        "n": "number",
        "x": "number",
        "stream": "boolean",
        "stop": None,
        "messages": [{"content": "string"}, "number"],
    }


@pytest.mark.parametrize("body", [b"", b"no JSON", b"\xff", b"[" * (DEPTH + 2) + b"]" * (DEPTH + 2)])
def test_nothing_is_kept_of_what_has_no_shape(body):
    assert kept_body(body, "shape") is None


def test_a_shape_has_all_levels_up_to_the_deepest():
    value = "x"
    for _ in range(DEPTH):
        value = [value]
    assert "string" in json.dumps(shape_of(value))
    with pytest.raises(RecursionError):
        shape_of([value])
