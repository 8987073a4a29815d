"""One answer of several upstreams, event by event."""

from __future__ import annotations

import asyncio

import pytest

from streamkit.errors import Interrupted, SourceFailed
from streamkit.events import (
    Aside,
    ChoiceStarted,
    MediaGenerated,
    ReasoningDelta,
    RefusalDelta,
    ResponseFinished,
    ResponseStarted,
    StreamEnded,
    TextDelta,
    ToolCallStarted,
    UsageReported,
)
from streamkit.pipeline import pipe
from streamkit.report import StreamReport
from streamkit.web import continuing
from streamkit.web.continuing import Continuing, Joint, Opened, TextSoFar, added


def said(*events):
    found = TextSoFar()
    found.take(list(events))
    return found


def joined(before, *batches, usage=None):
    joint = Joint(said(*before), usage)
    return [event for batch in batches for event in joint.feed(batch)]


@pytest.mark.parametrize(
    "event",
    [
        TextDelta("b", choice=1),
        ChoiceStarted(1),
        ReasoningDelta("b"),
        RefusalDelta("b"),
        ToolCallStarted(0, "c", "look"),
        MediaGenerated("image"),
        Aside("v", "citation", "t", {}),
        Aside("v", "server_tool", "t", {}),
    ],
)
def test_what_a_text_does_not_say_can_not_be_gone_on_with(event):
    assert said(TextDelta("a"), event, TextDelta("c")).text == ""


def test_what_says_nothing_is_passed_over():
    quiet = [
        ResponseStarted(),
        ChoiceStarted(),
        UsageReported(),
        Aside("v", "logprobs", "t", {}),
        Aside("v", "metadata", "t", {}),
    ]
    assert said(*quiet, TextDelta("a"), *quiet, TextDelta("b", block=3)).text == "ab"


def test_a_text_that_is_too_long_is_kept_no_longer(monkeypatch):
    monkeypatch.setattr(continuing, "SAID_CHARS", 4)
    assert said(TextDelta("ab"), TextDelta("cd")).text == "abcd"
    assert said(TextDelta("ab"), TextDelta("cde")).text == ""


def test_a_continuation_has_no_start_of_its_own_and_goes_on_in_the_block():
    rest = [ResponseStarted("r2", "other"), ChoiceStarted(), TextDelta("b"), TextDelta("c", block=1)]
    end = [ResponseFinished("stop"), StreamEnded(clean=True)]
    before = [ResponseStarted("r1"), ChoiceStarted(), TextDelta("x", block=0), TextDelta("a", block=4)]
    assert joined(before, rest, end) == [TextDelta("b", block=4), TextDelta("c", block=6), *end]


@pytest.mark.parametrize(
    ("before", "rest", "text"),
    [
        ("a", ["b"], "b"),
        ("a ", ["b"], "b"),
        ("a ", [" b"], "b"),
        ("a ", [" ", " b"], " b"),
        ("a\n", ["\n\nb"], "\nb"),
        ("a \n", [" ", "\n", "b \n"], "b \n"),
        ("a ", ["\nb"], "\nb"),
        ("a", [" b"], " b"),
        ("a \n", [" b \n"], "b \n"),
    ],
)
def test_white_space_that_the_client_has_is_not_said_again(before, rest, text):
    found = joined([TextDelta(before)], *([TextDelta(piece)] for piece in rest))
    assert "".join(event.text for event in found) == text
    assert all(event.text for event in found)


def test_usages_are_added_as_far_as_they_are_known():
    one, other = (
        UsageReported(input_total=1, output_total=2),
        UsageReported(input_total=3, input_cached=4, raw={"n": 1}),
    )
    both = UsageReported(input_total=4, input_cached=4, output_total=2)
    assert added(one, other) == both
    assert joined([TextDelta("a")], [other], usage=one) == [both]
    assert joined([TextDelta("a")], [other]) == [other]


class Part:
    """A part whose events are given; an exception among them breaks the reading."""

    def __init__(self, *steps):
        self.report = StreamReport()
        self.interrupted = None
        self._steps = steps

    def opened(self):
        return Opened(self, pipe(self._play(), report=self.report))

    async def _play(self):
        for step in self._steps:
            if isinstance(step, Exception):
                raise step
            self.report.clean = any(isinstance(event, StreamEnded) and event.clean for event in step) or None
            yield step

    def interrupt(self, error):
        self.interrupted = error

    def hide(self, text):
        return text.replace("key", "…")


async def test_a_server_that_stops_waits_for_nobody_who_would_go_on():
    opening = asyncio.Event()

    async def onward(_failed, _text):
        opening.set()
        await asyncio.Event().wait()

    first = Part([TextDelta("a")], SourceFailed("gone"))
    answer = Continuing(first.opened(), onward, StreamReport())

    async def read():
        return [batch async for batch in answer.batches()]

    reading = asyncio.create_task(read())
    await opening.wait()
    answer.fail(Interrupted("stop"))
    with pytest.raises(SourceFailed, match="gone"):
        await asyncio.wait_for(reading, 1)


async def test_what_interrupts_reaches_the_part_that_is_read_and_keys_of_all_parts_are_hidden():
    second = Part([TextDelta("b"), StreamEnded(clean=True)])

    async def onward(_failed, _text):
        return second.opened()

    first, error = Part([TextDelta("a")], SourceFailed("gone")), Interrupted("stop")
    answer = Continuing(first.opened(), onward, StreamReport())
    batches = [batch async for batch in answer.batches()]
    assert batches == [[TextDelta("a")], [TextDelta("b"), StreamEnded(clean=True)]]
    answer.fail(error)
    assert (first.interrupted, second.interrupted) == (None, error)
    assert answer.hide("a key") == "a …"
    assert (answer.part, answer.seams) == (second, 1)
