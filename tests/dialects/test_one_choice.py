"""Dialects with one choice: the first that comes is written, whatever events the others bring, one by one or as runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import orjson
import pytest

from streamkit.conversation.messages import Choice, Response, Text
from streamkit.dialects import DIALECTS
from streamkit.dialects.profiles import Encoding
from streamkit.dialects.streams.event_encoder import BEGINNING, METHODS, OneChoiceEncoder, only_choice
from streamkit.events import (
    Aside,
    ChoiceStarted,
    OutputChecked,
    OutputDoomed,
    ProviderFailed,
    ReasoningDelta,
    ReasoningOpaque,
    ReasoningSignature,
    RefusalDelta,
    ResponseFinished,
    ResponseStarted,
    StreamEnded,
    TextDelta,
    ToolCallArguments,
    ToolCallDoomed,
    ToolCallFinished,
    ToolCallStarted,
    UsageReported,
    Verdict,
)
from streamkit.report import StreamReport
from tests.laws.running import CLOCK, maker

ONE_CHOICE = ("anthropic", "bedrock", "cohere", "ollama", "openai-responses")
FIRST = [ResponseStarted("r", "m"), ChoiceStarted(), TextDelta("ours")]
LAST = [
    UsageReported(1, None, None, 2, None, 3),
    ResponseFinished("stop"),
    ResponseFinished("length", choice=1),
    StreamEnded(clean=True),
]
#: Everything that can belong to a choice, of the second one.
THEIRS: Sequence[Any] = [
    ChoiceStarted(1),
    TextDelta("theirs", 1),
    RefusalDelta("theirs", 1),
    ReasoningDelta("theirs", 1),
    ReasoningSignature("theirs", "openai", 1),
    ReasoningOpaque("theirs", "openai", 1),
    ToolCallStarted(0, "c", "theirs", 1),
    ToolCallArguments(0, '{"theirs"', 1),
    ToolCallDoomed(0, 1, ("theirs",), "no"),
    OutputDoomed(1, (), "no"),
    OutputChecked(Verdict("malformed"), 1),
    ToolCallFinished(0, "c", "theirs", '{"theirs":1}', 1, verdict=Verdict("complete")),
    Aside("openai", "logprobs", "theirs", {"theirs": 1}, 1),
]


def written(dialect: str, events: Sequence[Any], *, together: bool) -> tuple[bytes, StreamReport]:
    report = StreamReport()
    encoder = DIALECTS[dialect].encoder(Encoding(make_id=maker(), clock=CLOCK), report)
    batches = [list(events)] if together else [[event] for event in events]
    return b"".join([*map(encoder.feed, batches), encoder.finish()]), report


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("dialect", ONE_CHOICE)
def test_nothing_of_a_second_choice_is_written(dialect, together):
    alone, without = written(dialect, [*FIRST, *LAST], together=together)
    for event in THEIRS:
        if type(event) is Aside:
            continue  # of a choice that did not begin it may speak of the whole response
        output, report = written(dialect, [*FIRST, event, *LAST], together=together)
        assert output == alone, event
        assert report.losses == without.losses, event
    output, report = written(dialect, [*FIRST, *THEIRS, TextDelta("!", 2), *LAST], together=together)
    assert output == alone
    assert report.losses == without.losses + Counter(extra_choice=1)


class Plain(OneChoiceEncoder):
    """An encoder of somebody else's, which looks at no choice."""

    def __init__(self, encoding: Encoding, report: StreamReport) -> None:
        super().__init__(encoding, report)
        self.seen: list[Any] = []

    def response_started(self, event: Any) -> None:
        self.seen.append(event)

    text = refusal = reasoning = signature = opaque = aside = finished = response_started
    call_started = call_arguments = call_finished = usage_reported = run = ignore = response_started

    def terminate(self) -> None:
        self.write(b"end")

    def error(self, event: ProviderFailed) -> None:
        self.write(event.message.encode())


def test_an_encoder_that_looks_at_no_choice_is_handed_one():
    report = StreamReport()
    encoder = Plain(Encoding(), report)
    assert encoder.feed([*FIRST, *THEIRS, *LAST]) == b"end"
    assert encoder.seen == [FIRST[0], FIRST[2], *LAST[:2]]
    assert report.losses == Counter(extra_choice=1)


def test_the_first_choice_that_comes_is_the_one_whatever_its_number():
    report = StreamReport()
    encoder = Plain(Encoding(), report)
    encoder.feed([Aside("openai", "metadata", "early", 1), TextDelta("a", 1), TextDelta("b"), TextDelta("c", 1)])
    assert [event.text for event in encoder.seen[1:]] == ["a", "c"]
    assert report.losses == Counter(extra_choice=1)


def test_every_class_of_event_with_a_choice_is_filtered():
    with_choice = {kind for kind in METHODS if "choice" in getattr(kind, "__slots__", ()) or hasattr(kind, "choice")}
    assert with_choice == BEGINNING | {Aside}


@pytest.mark.parametrize("dialect", ONE_CHOICE)
def test_a_whole_answer_has_the_first_choice_and_counts_the_others(dialect):
    choices = [Choice(parts=[Text(text)], stop_reason="stop") for text in ("ours", "theirs", "third")]
    response = Response("openai-chat", id="r", model="m", choices=choices, clean=True)
    assert only_choice(response, StreamReport()) is choices[0]
    report = StreamReport()
    bodies = DIALECTS[dialect].bodies
    assert bodies is not None
    body = orjson.dumps(bodies.encode_response(response, Encoding(make_id=maker(), clock=CLOCK), report))
    assert (b"ours" in body, b"theirs" in body, b"third" in body) == (True, False, False)
    assert report.losses["extra_choice"] == 2
