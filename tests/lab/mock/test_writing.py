"""Steps become bytes that our own readers read as they were meant, in every dialect, streamed and whole."""

from __future__ import annotations

import random

import orjson
import pytest

from streamkit.conversation.messages import Response
from streamkit.dialects import DIALECTS
from streamkit.errors import UsageError
from streamkit.events import ProviderFailed
from streamkit.http_errors import decode_error
from streamkit.lab.mock.script import (
    Call,
    Comment,
    Cut,
    Error,
    ErrorStatus,
    Raw,
    Reset,
    Say,
    Stall,
    Step,
    Stop,
    Think,
    Usage,
    Wait,
)
from streamkit.lab.mock.writing import CREATED, Answer, Timing, Writer, Written
from streamkit.recipes import collect
from streamkit.testing import source_of
from streamkit.translation.bodies import decode_response
from tests.clients.recipes import violations
from tests.lab.mock.asking import ASKED, request

STREAMED = list(DIALECTS.built_in)
LOOK = Call("weather", {"city": "Berlin", "days": 3})
TIME = Call("time", "{}")
#: Streamed and whole.
HOW = [True, False]


def write(
    *steps: Step, dialect: str = "openai-chat", stream: bool = True, timing: Timing | None = None, seed: int = 1
) -> Written:
    writer = Writer(
        request(dialect=dialect, stream=stream), streamed=stream, timing=timing or Timing(), source=random.Random(seed)
    )
    return writer.steps(steps)


async def read(answer: Answer) -> Response:
    """The answer, by our own reader of providers."""
    if answer.streamed:
        return await collect(source_of(answer.frames), answer.dialect)
    return decode_response(answer.body, answer.dialect)


# -- what is said ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", STREAMED)
async def test_text_and_parallel_calls_are_read_as_they_were_meant(dialect):
    answer = write(Think("I look."), Say("Let me  look. "), LOOK, TIME, dialect=dialect).answer
    response = await read(answer)
    assert response.clean
    assert response.report.repairs.keys() <= {"id_missing"}
    assert response.text == "Let me  look. "
    calls = [(call.name, orjson.loads(call.arguments), call.ended) for call in response.tool_calls]
    assert calls == [("weather", {"city": "Berlin", "days": 3}, True), ("time", {}, True)]
    assert not violations(answer.body, dialect)
    assert len(answer.frames) > 5


@pytest.mark.parametrize("dialect", ASKED)
async def test_a_whole_answer_says_the_same(dialect):
    answer = write(Say("Let me look."), LOOK, TIME, dialect=dialect, stream=False).answer
    response = await read(answer)
    assert (response.clean, response.text) == (True, "Let me look.")
    assert [call.name for call in response.tool_calls] == ["weather", "time"]
    assert (answer.content_type, len(answer.frames), answer.streamed) == ("application/json", 1, False)


@pytest.mark.parametrize("dialect", STREAMED)
def test_each_frame_is_one_of_the_dialects(dialect):
    """A frame by itself is whole: whoever changes frames need not look for their ends."""
    for frame in write(Say("Hello you"), LOOK, dialect=dialect).answer.frames:
        found = violations(frame, dialect)
        assert not [line for line in found if "unterminated" in str(line)]
        end = DIALECTS[dialect].frame_end
        if end is not None:
            line_end = end.replace(b"\r\n", b"\n")
            assert frame.replace(b"\r\n", b"\n").endswith(line_end)
            assert frame.replace(b"\r\n", b"\n").count(line_end) == 1


@pytest.mark.parametrize("dialect", ASKED)
@pytest.mark.parametrize("stream", HOW)
async def test_a_stop_reason_and_the_usage_are_the_scripts(dialect, stream):
    usage = Usage(input=11, output=7)
    response = await read(write(Say("a b"), usage, Stop("length"), dialect=dialect, stream=stream).answer)
    assert response.choices[0].stop_reason == "length"
    assert (response.usage.input_total, response.usage.output_total) == (11, 7)


async def test_without_counts_words_are_counted():
    response = await read(write(Say("three words here")).answer)
    assert (response.usage.input_total, response.usage.output_total) == (2, 3)


def test_what_was_read_is_told_at_the_start():
    assert b'"input_tokens":2,' in write(Say("x"), dialect="anthropic").answer.frames[0]
    assert b'"input_tokens":9,' in write(Say("x"), Usage(input=9), dialect="anthropic").answer.frames[0]


def test_usage_is_for_those_that_ask_for_it():
    asked = request()
    asked.stream_usage = None
    writer = Writer(asked, streamed=True, source=random.Random(1))
    assert b'"usage"' not in writer.steps([Say("x"), Usage(input=9)]).answer.body
    assert b'"usage"' in write(Say("x")).answer.body


def test_an_array_that_breaks_off_is_not_closed():
    def array(*steps: Step) -> bytes:
        asked = request(dialect="gemini")
        return Writer(asked, streamed=True, as_array=True, source=random.Random(1)).steps(steps).answer.body

    assert orjson.loads(array(Say("a b")))
    assert orjson.loads(array(Say("a b"), Cut()) + b"]")


@pytest.mark.parametrize("stream", HOW)
async def test_reasoning_between_texts_is_a_block_of_its_own(stream):
    response = await read(write(Say("a"), Think("b"), Say("c"), dialect="anthropic", stream=stream).answer)
    assert [type(part).__name__ for part in response.choices[0].parts] == ["Text", "Reasoning", "Text"]


# -- errors and broken answers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", STREAMED)
async def test_an_error_inside_the_stream_is_the_dialects(dialect):
    response = await read(write(Say("So far"), Error("rate_limit", "slow down"), dialect=dialect).answer)
    assert not response.clean
    assert response.error.message == "slow down"
    assert response.text == "So far"


@pytest.mark.parametrize("dialect", ASKED)
def test_a_status_is_an_error_over_http(dialect):
    written = write(Wait(2), ErrorStatus(429, message="slow down", retry_after=1.5), dialect=dialect)
    answer = written.answer
    assert (answer.status, answer.streamed, answer.waits_s) == (429, False, {0: 2.0})
    failed = decode_error(answer.status, answer.body, dialect, answer.headers)
    assert (failed.type, failed.message, failed.retry_after_s) == ("rate_limit", "slow down", 1.5)
    assert written.failed.type == "rate_limit"


def test_a_status_is_the_scripts_whatever_its_kind():
    written = write(ErrorStatus(418, kind="permission", message="no"))
    assert (written.answer.status, written.failed.type, written.failed.http_status) == (418, "permission", 418)


def test_an_error_of_a_whole_answer_is_one_over_http():
    written = write(Say("x"), Error("unavailable", "later"), stream=False)
    assert (written.answer.status, written.failed) == (503, ProviderFailed("unavailable", "later", http_status=503))


@pytest.mark.parametrize(
    ("step", "end"), [(Cut(), "cut"), (Cut("body"), "whole"), (Reset(), "reset"), (Stall(), "stalled")], ids=str
)
async def test_what_breaks_off_has_no_end(step, end):
    written = write(Say("Hello you"), step)
    response = await read(written.answer)
    assert (written.answer.end, response.clean, response.text) == (end, False, "Hello you")
    assert written.stall == (step if isinstance(step, Stall) else None)
    half = write(Say("Hello you"), step, stream=False).answer
    whole = write(Say("Hello you"), stream=False).answer
    assert (half.end, half.body) == (end, whole.body[: len(whole.body) // 2])


@pytest.mark.parametrize("dialect", STREAMED)
async def test_an_unfinished_call_stays_open(dialect):
    response = await read(write(Call("weather", '{"city": "Berlin"}', finished=False), Cut(), dialect=dialect).answer)
    assert not response.clean
    assert [call for call in response.tool_calls if call.ended] == []


async def test_behind_the_end_a_stream_may_stall():
    written = write(Say("x"), Stop(), Stall())
    assert (await read(written.answer)).clean
    assert written.answer.end == "stalled"


# -- bytes as they are -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", HOW)
def test_raw_bytes_alone_are_sent_as_they_are(stream):
    answer = write(Raw("data: \n\n"), Raw(b"\xff"), stream=stream).answer
    assert answer.body == b"data: \n\n\xff"


def test_raw_bytes_and_comments_stand_between_frames():
    frames = write(Say("one"), Raw(b"data: null\n\n"), Comment("ping"), Say("two")).answer.frames
    place = frames.index(b"data: null\n\n")
    assert frames[place + 1] == b": ping\n\n"
    assert b'"one"' in frames[place - 1]
    assert b'"two"' in frames[place + 2]


def test_raw_bytes_stand_around_a_whole_body():
    answer = write(Raw(" "), Say("x"), Comment("no place"), Raw("\n"), stream=False).answer
    assert answer.body[:2] == b" {"
    assert answer.body[-2:] == b"}\n"


def test_other_framings_have_their_own_keep_alive():
    frames = write(Say("one"), Comment("ping"), Say("two"), dialect="ollama").answer.frames
    assert all(orjson.loads(frame) for frame in frames)
    assert len(frames) == len(write(Say("one"), Say("two"), dialect="ollama").answer.frames) + 1


def test_a_comment_is_one_line():
    with pytest.raises(UsageError, match="one line"):
        Comment("a\nb")


# -- time, and the seed ------------------------------------------------------------------------------------------------


def test_tokens_have_a_pace():
    timing = Timing(first_token_s=0.5, tokens_per_s=10)
    waits = write(Say("a b c"), Wait(2), Say("d"), timing=timing).answer.waits_s
    gaps = list(waits.values())
    assert gaps[0] == 0.5
    assert all(0.05 <= gap <= 0.15 for gap in gaps[1:3])
    assert 2.05 <= gaps[3] <= 2.15


def test_speed_is_a_factor_and_0_never_waits():
    assert write(Wait(2), Say("a"), timing=Timing(speed=4)).answer.waits_s == {0: 0.5}
    assert write(Wait(2), Say("a b"), timing=Timing(speed=0, tokens_per_s=1)).answer.waits_s == {}


def test_a_whole_answer_waits_for_all_of_it():
    assert write(Wait(2), Say("a"), Wait(1), stream=False).answer.waits_s == {0: 3.0}


@pytest.mark.parametrize("name", ["first_token_s", "tokens_per_s", "speed"])
@pytest.mark.parametrize("value", [-1, float("nan")])
def test_a_pace_below_0_is_refused(name, value):
    with pytest.raises(UsageError, match=name):
        Timing(**{name: value})


@pytest.mark.parametrize("dialect", STREAMED)
def test_the_same_seed_gives_the_same_bytes_and_another_other_ids(dialect):
    steps = (Think("a b"), Say("c d"), LOOK)
    first, same, other = (
        write(*steps, dialect=dialect, seed=seed, timing=Timing(tokens_per_s=9)).answer for seed in (1, 1, 2)
    )
    assert first == same
    assert first.waits_s != other.waits_s
    assert (first.frames != other.frames) == (dialect != "ollama")  # which has no ids


async def test_the_clock_stands_still():
    assert (await read(write(Say("x")).answer)).created == CREATED
