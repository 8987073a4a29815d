"""A guard ends a response before what is not allowed, in the client's dialect, and reads no further."""

from __future__ import annotations

import pytest

from streamkit import StreamReport, accumulate_tool_calls, decode, encode, guard, parse_sse, pipe
from streamkit.dialects import DIALECTS
from streamkit.events import (
    Aside,
    ChoiceStarted,
    ProviderFailed,
    RefusalDelta,
    ResponseFinished,
    StreamEnded,
    TextDelta,
    ToolCallArguments,
    ToolCallFinished,
    ToolCallStarted,
)
from streamkit.rewrite.guard import BLOCK, MESSAGE
from streamkit.testing import FaultySource, joined
from tests.laws.running import read

HOLD = 6


def bad(text):
    return "secret" in text


def run(*events, check=bad, report=None, **options):
    machine = guard(check, hold=HOLD, **options).make(report or StreamReport())
    return joined(machine.feed(events) + machine.finish())


REFUSED = [RefusalDelta(MESSAGE, block=BLOCK), ResponseFinished("refusal"), StreamEnded(clean=True)]


@pytest.mark.parametrize("size", [1, 2, 5, 50])
def test_what_is_sent_does_not_depend_on_the_pieces(size):
    text = "You may know the secret, and more."
    pieces = [TextDelta(text[place : place + size]) for place in range(0, len(text), size)]
    assert run(*pieces, StreamEnded(clean=True)) == [TextDelta("You may know the"[:16]), *REFUSED]


def test_a_long_piece_is_checked_a_few_times():
    seen = []
    out = run(TextDelta("You may know. " * 1000 + "a secret"), check=lambda text: seen.append(text) or bad(text))
    assert (out[0].text, len(seen) < 20) == (("You may know. " * 1000 + "a secret")[: -HOLD - 1], True)


def test_what_is_allowed_passes():
    events = [TextDelta("a sec"), TextDelta("tion"), ResponseFinished("stop"), StreamEnded(clean=True)]
    assert run(*events) == joined(events)


def test_a_text_in_asides_is_checked_whole():
    pieces = [Aside("v", "server_tool", "d", {"delta": text}) for text in ("a sec", "ret", "ly")]
    *sent, refusal, _, _ = run(*pieces, StreamEnded(clean=True), parts="asides")
    assert ("".join(each.raw["delta"] for each in sent), refusal) == ("a", REFUSED[0])


def test_a_call_is_not_ended_before_it_has_begun():
    started = ToolCallStarted(0, "c", "f", extras={"caller": "a secret"})
    assert run(started, StreamEnded(clean=True), parts="asides") == REFUSED


def test_the_message_may_be_the_checks_own():
    assert run(TextDelta("secret"), check=lambda text: bad(text) and "Not that.")[0].text == "Not that."


def test_an_error_ends_the_response_as_failed():
    report = StreamReport()
    out = run(TextDelta("a secret"), reply="error", report=report)
    assert out == [
        TextDelta("a"),
        ProviderFailed("invalid_request", MESSAGE, code="content_filter"),
        StreamEnded(clean=False),
    ]
    assert (report.clean, report.provider_error, report.losses) == (False, ("invalid_request", MESSAGE), {"blocked": 1})


def test_a_call_in_progress_is_truncated():
    out = run(ToolCallStarted(0, "c", "f"), ToolCallArguments(0, '{"a": "the secret'))
    finished = out[2]
    assert out[1] == ToolCallArguments(0, finished.arguments)
    assert isinstance(finished, ToolCallFinished)
    assert (finished.ended, finished.verdict.kind) == (False, "truncated")
    assert out[3:] == REFUSED


def test_other_choices_go_on():
    out = run(
        TextDelta("fine", choice=1), TextDelta("secret"), TextDelta("dropped"), TextDelta(" too", choice=1),
        ResponseFinished("stop", choice=1), StreamEnded(clean=True),
    )  # fmt: skip
    assert [event for event in out if getattr(event, "choice", 0) == 0] == REFUSED
    assert "".join(event.text for event in out if isinstance(event, TextDelta)) == "fine too"


def chat(*texts):
    lines = [
        f'data: {{"id":"c","object":"chat.completion.chunk","choices":[{{"index":0,"delta":{{"content":"{text}"}}}}]}}'
        for text in texts
    ]
    return [f"{line}\n\n".encode() for line in lines]


@pytest.mark.parametrize("reply", ["refusal", "error"])
@pytest.mark.parametrize("target", DIALECTS)
async def test_the_client_gets_it_in_its_dialect_and_the_rest_is_not_read(target, reply):
    source = FaultySource([*chat("Know the sec", "ret"), *chat("and more") * 100])
    report = StreamReport()
    stages = (
        parse_sse(),
        decode("openai-chat"),
        accumulate_tool_calls(),
        guard(bad, hold=HOLD, reply=reply),
        encode(target),
    )
    async with pipe(source, *stages, report=report) as stream:
        output = b"".join([piece async for piece in stream])
    outcome = read(target, [output])
    assert b"secret" not in output
    assert source.given < 10
    assert not source.open
    if reply == "error":
        assert outcome.error == MESSAGE
    else:
        assert outcome.clean
        assert MESSAGE in outcome.text() + outcome.refusal
        assert report.status == 0


@pytest.mark.parametrize("delta", ["push_text", "push_reasoning", "push_arguments"])
def test_nothing_follows_the_end_even_of_a_choice_that_had_not_begun(delta):
    machine, out = guard(lambda text: "bad" in text, hold=3).make(StreamReport()), []
    machine.lead_to(out.append)
    machine.push(ChoiceStarted())
    machine.push_text("bad", 0, 0)
    machine.push(ChoiceStarted(1))
    given = {
        "push_text": ("more text", 1, 0),
        "push_reasoning": ("more text", 1, 0, "raw"),
        "push_arguments": (0, "{}", 1),
    }
    getattr(machine, delta)(*given[delta])
    assert out[-1] == StreamEnded(clean=True)


def test_a_choice_that_begins_after_another_was_refused_passes_where_it_is_expected():
    events = (
        TextDelta("secret"),
        TextDelta("fine", choice=1),
        ResponseFinished("stop", choice=1),
        StreamEnded(clean=True),
    )
    report = StreamReport()
    out = run(*events, choices=2, report=report)
    assert out == [*REFUSED[:2], *events[1:]]
    assert report.stops == (ResponseFinished("refusal"),)
    assert run(*events) == REFUSED  # one choice is expected: the rest is not read
    failed = run(*events, choices=2, reply="error")
    assert [type(event) for event in failed] == [ProviderFailed, StreamEnded]


def test_a_whole_call_that_is_not_allowed_ends_the_response():
    machine = guard(lambda text: "bad" in text, hold=3).make(StreamReport())
    call = ToolCallFinished(0, "i", "n", '{"a":"a very bad thing"}')
    out = machine.feed([ChoiceStarted(), ToolCallStarted(0, "i", "n"), call, TextDelta("x")])
    assert machine.fault is None
    [finished] = [event for event in out if isinstance(event, ToolCallFinished)]
    assert (finished.ended, finished.arguments) == (False, '{"a":"a very')
    assert out[-2:] == [ResponseFinished("refusal"), StreamEnded(clean=True)]


def test_an_aside_ends_its_own_choice_once_and_is_not_sent():
    machine = guard(lambda text: "bad" in text, hold=3, parts="asides").make(StreamReport())
    aside = Aside("v", "citation", "c", {"a": "bad", "b": ["bad", "fine"]}, choice=1)
    out = machine.feed([ChoiceStarted(), ChoiceStarted(1), aside, TextDelta("x", 1), TextDelta("y")])
    assert [type(event).__name__ for event in out[2:]] == ["RefusalDelta", "ResponseFinished", "TextDelta"]
    assert [event.choice for event in out[2:]] == [1, 1, 0]


def test_a_call_whose_arguments_are_not_checked_ends_with_what_was_sent_of_it():
    out = run(ToolCallStarted(0, "c", "f"), ToolCallArguments(0, '{"a": 1'), TextDelta("a secret"), parts="text")
    [finished] = [event for event in out if isinstance(event, ToolCallFinished)]
    assert (finished.ended, finished.arguments) == (False, '{"a": 1')


def test_the_report_keeps_the_refusal_of_a_choice_while_others_go_on():
    report = StreamReport()
    machine = guard(bad, hold=HOLD).make(report)
    machine.feed([ChoiceStarted(), ChoiceStarted(1), TextDelta("a secret"), TextDelta("fine", 1)])
    report.stops = (
        ResponseFinished("stop"),
        ResponseFinished("stop", choice=1),
    )  # as ``accumulate_tool_calls`` sets it
    machine.feed([*report.stops, StreamEnded(clean=True)])
    assert report.stops == (ResponseFinished("refusal"), ResponseFinished("stop", choice=1))


def test_a_refusal_takes_the_place_of_an_end_that_is_reported_already():
    """A whole response has ended before its events pass the guard."""
    report = StreamReport()
    report.stops = (ResponseFinished("stop"),)
    run(TextDelta("a secret"), report=report)
    assert report.stops == (ResponseFinished("refusal"),)
