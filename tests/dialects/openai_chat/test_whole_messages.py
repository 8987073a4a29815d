"""Messages within a stream: a fragment, or the whole answer once more."""

from __future__ import annotations

import pickle

import pytest

from streamkit.dialects.openai_chat.whole_messages import REPEATED_CHARS, ChoiceSoFar
from streamkit.dialects.streams.running_text import Texts
from streamkit.events import Aside, TextDelta
from streamkit.report import StreamReport


class Choice:
    """One choice of a stream, and what its messages add."""

    def __init__(self):
        self.messages, self.report = ChoiceSoFar(0, Texts()), StreamReport()

    def message(self, text, *, ends=False, beside=(), from_delta=()):
        found = [TextDelta(text), *beside]
        new = self.messages.news(found, list(from_delta), self.report, ends=ends, was_signed=False)
        return [event.text if isinstance(event, TextDelta) else event for event in new]

    def delta(self, text):
        self.messages.remember([TextDelta(text)], by_delta=True)


def test_the_first_message_is_new():
    assert Choice().message("Hi") == ["Hi"]


def test_behind_deltas_only_what_is_missing_is_new():
    choice = Choice()
    choice.delta("Hel")
    assert choice.message("Hello") == ["lo"]
    assert choice.report.repairs == {"fragments_missing": 1}


def test_a_message_that_repeats_the_delta_beside_it_adds_nothing():
    choice = Choice()
    choice.delta("Hel")
    choice.delta("lo")
    assert choice.message("lo", from_delta=[TextDelta("lo")]) == []
    assert not choice.report.repairs


def test_a_whole_that_contradicts_its_deltas_is_counted_once():
    choice = Choice()
    choice.delta("Hello")
    assert choice.message("Bye") == choice.message("Bye") == []
    assert choice.report.repairs == {"whole_differs": 1}


@pytest.mark.parametrize(("chars", "new"), [(REPEATED_CHARS - 1, "a" * REPEATED_CHARS), (REPEATED_CHARS, "a")])
def test_a_short_beginning_may_be_chance(chars, new):
    choice = Choice()
    choice.message("a" * chars)
    assert choice.message("a" * chars + ("a" if new == "a" else "")) == [new if new == "a" else "a" * chars]


def test_a_message_that_ends_its_choice_is_whole_however_short_its_beginning():
    choice = Choice()
    choice.message("a")
    assert choice.message("ab", ends=True) == ["b"]


def test_citations_that_came_before_are_not_repeated():
    first, second = (Aside("openai", "citation", "annotation", {"n": number}) for number in (1, 2))
    choice = Choice()
    choice.messages.remember([first], by_delta=True)
    assert choice.message("x", beside=[first, second]) == ["x", second]


def test_it_can_be_put_back_from_bytes():
    choice = Choice()
    choice.delta("Hel")
    choice.messages = pickle.loads(pickle.dumps(choice.messages))
    assert choice.message("Hello") == ["lo"]
