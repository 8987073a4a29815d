"""What the checkers of all dialects share."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from streamkit.dialects.linting.grammar import COMMON_RULES, GrammarChecker, is_object
from streamkit.framing.frame import Frame


class Checker(GrammarChecker):
    rules: ClassVar = {**COMMON_RULES, "usage": "", "event": ""}

    def check(self, document: dict[str, Any]) -> None:
        self.counts(document.get("usage"))
        self.event_type(document, "note")


def broken(payload: bytes, event: str = "message") -> list[tuple[str, str]]:
    return [(found.rule, found.severity) for found in Checker().feed([Frame(payload, event=event)])]


@pytest.mark.parametrize(
    ("payload", "event", "found"),
    [
        (b'{"type":"start","usage":{"tokens":1}}', "start", []),
        (b'{"type":"start","usage":null}', "start", []),
        (b'{"type":"start","usage":3}', "start", [("usage", "error")]),
        (b'{"type":"start"}', "end", [("event", "note")]),
        (b'{"type":" "}', "end", [("event", "error")]),
        (b"{}", "end", [("event", "error")]),
        (b"[]", "end", [("not_object", "error")]),
    ],
)
def test_counts_are_an_object_and_events_have_their_type_twice(payload, event, found):
    assert broken(payload, event) == found


@pytest.mark.parametrize(
    ("text", "expected"), [("", True), ("{}", True), ('{"a":1}', True), ("[]", False), ("{", False), ("{}{}", False)]
)
def test_a_text_of_arguments_is_nothing_or_one_object(text, expected):
    assert is_object(text) is expected
