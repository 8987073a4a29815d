"""Which call a result answers where ids are missing. Source: dialects.md §7.3; quirks.md 35."""

from __future__ import annotations

import pytest

from streamkit.conversation.messages import ToolCall
from streamkit.dialects.members.fields import Waiting


def waiting(*calls: str) -> Waiting:
    """Calls by their names; one with an id of its own is written ``name:id``."""
    made = []
    for number, call in enumerate(calls):
        name, _, call_id = call.partition(":")
        made.append(ToolCall(number, call_id or f"made_{number}", name, "{}", id_made=not call_id))
    return Waiting(made)


@pytest.mark.parametrize(
    ("calls", "answers"),
    [
        (["f:a", "f:b"], [("b", "f", "b"), ("a", None, "a")]),
        (["f", "g", "f"], [("", "f", "made_0"), ("", "f", "made_2"), ("", "g", "made_1")]),
        (["f", "g"], [("", None, "made_0"), ("", "", "made_1")]),
        (["f:a", "f"], [("a", "f", "a"), ("", "f", "made_1")]),
        (["f:a"], [("", "f", "a")]),
        (["f:a"], [("x", "f", "x")]),  # another id than the call has
        (["f"], [("", "g", "")]),
        (["f"], [("", "f", "made_0"), ("", "f", "")]),
        ([], [("", None, "")]),
    ],
)
def test_a_result_answers(calls, answers):
    found = waiting(*calls)
    assert [found.answer(call_id, name) for call_id, name, _ in answers] == [answer for _, _, answer in answers]


def test_an_id_that_only_the_result_has_becomes_the_calls():
    call = ToolCall(0, "made", "f", "{}", id_made=True)
    assert Waiting([call]).answer("a", "f") == "a"
    assert (call.id, call.id_made) == ("a", False)
