"""A guard ends a response before what is not allowed, in the client's dialect, and reads no further."""

from __future__ import annotations

import pytest

from streamkit import StreamReport, accumulate_tool_calls, decode, encode, guard, parse_sse, pipe
from streamkit.dialects import DIALECTS
from streamkit.events import (
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


def test_what_is_allowed_passes():
    events = [TextDelta("a sec"), TextDelta("tion"), ResponseFinished("stop"), StreamEnded(clean=True)]
    assert run(*events) == joined(events)


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
