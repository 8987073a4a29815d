"""Where a JSON value ends in a text."""

from __future__ import annotations

import pytest

from streamkit.in_text.parameters import JSONValue


@pytest.mark.parametrize(
    ("text", "size", "kind", "done", "faulty"),
    [
        ('{"a":"}"} x', 9, "object", True, False),
        ('{"a": [1, {}], "b": null},', 25, "object", True, False),
        ('{"a\\"}": "\\\\"}z', 14, "object", True, False),
        ('[1, "]"]]', 8, "array", True, False),
        ('"a\\"b" ', 6, "string", True, False),
        ("-12.5e+3,", 8, "scalar", True, False),
        ("null}", 4, "scalar", True, False),
        ('{"a":1', 6, "object", False, False),
        ('{"a":"1}', 8, "object", False, False),
        ('{"a":1<', 6, "object", False, True),
        ("<", 0, "scalar", False, True),
        ("12", 2, "scalar", False, False),
        ("", 0, "", False, False),
    ],
)
def test_the_end_is_found_wherever_the_text_was_cut(text, size, kind, done, faulty):
    for pieces in ((text,), tuple(text), *((text[:at], text[at:]) for at in range(1, len(text)))):
        value, found = JSONValue(), 0
        for piece in pieces:
            found += value.feed(piece)
            if value.done or value.faulty:
                break
        assert (found, value.kind, value.done, value.faulty) == (size, kind, done, faulty), pieces
