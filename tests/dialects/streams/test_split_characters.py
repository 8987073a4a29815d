"""Halves of characters: how long a frame waits for the second one, and what is not put together."""

from __future__ import annotations

import pytest

from streamkit.dialects.openai_chat.decode import ChatDecoder
from streamkit.dialects.streams import split_characters
from streamkit.dialects.streams.split_characters import HELD_BYTES, HELD_FRAMES, Held, held_by
from streamkit.errors import NeedsRepair
from streamkit.events import TextDelta
from streamkit.framing.frame import Frame
from streamkit.limits import DEFAULT_LIMITS
from streamkit.report import StreamReport
from tests.reports import refusing
from tests.vectors.openai_chat import DONE, STOP, call, calls, said
from tests.vectors.vector import sse


def frames(*payloads: object) -> list[Frame]:
    """A frame for each payload, with a half of U+1F600 for each ``<`` and ``>``."""
    datas = [sse(payload)[6:-2].replace(b"<", rb"\ud83d").replace(b">", rb"\ude00") for payload in payloads]
    return [Frame(data, offset=number) for number, data in enumerate(datas)]


def held(payload: object) -> Held:
    found = held_by(frames(payload)[0])
    assert found is not None
    return found


def read(*payloads: object) -> tuple[str, StreamReport]:
    report = StreamReport()
    decoder = ChatDecoder(DEFAULT_LIMITS, report)
    events = decoder.feed(frames(*payloads)) + decoder.finish()
    assert decoder.fault is None
    return "".join(event.text for event in events if isinstance(event, TextDelta)), report


def test_the_frame_waits_for_few_others():
    waiting = held(said("<"))
    beside = frames({**said("x"), "choices": []})[0]
    taken = [waiting.take(beside) for _ in range(HELD_FRAMES)]
    assert taken[:-1] == [None] * (HELD_FRAMES - 1)
    assert len(taken[-1] or []) == HELD_FRAMES + 1
    assert (waiting.joined, len(waiting.waiting)) == (0, 1)


def test_and_for_few_bytes():
    other = calls(call(1, None, None, "x" * HELD_BYTES))
    assert len(held(calls(call(0, None, None, "<"))).take(frames(other)[0]) or []) == 2


def test_a_name_that_comes_twice_leaves_no_telling():
    (frame,) = frames(said("<"))
    assert held_by(Frame(frame.data[:-1] + b',"id":"x"}')) is None


def test_a_backslash_before_letters_is_no_half():
    assert held_by(Frame(rb'{"a":"\\ud83d"}')) is None


@pytest.mark.parametrize(
    ("payloads", "text", "repairs"),
    [
        ([said("a<")], "a\ufffd", {"lone_surrogate": 1}),
        ([said("<"), said("<>"), said(">")], "\ufffd\N{GRINNING FACE}\ufffd", {"lone_surrogate": 2}),
        ([said("<<"), said(">")], "\ufffd\N{GRINNING FACE}", {"character_cut": 1, "lone_surrogate": 1}),
        ([said("<"), said("><"), said("><"), said(">")], "\N{GRINNING FACE}" * 3, {"character_cut": 3}),
        ([said(">"), said("<")], "\ufffd\ufffd", {"lone_surrogate": 2}),
    ],
)
def test_halves_in_any_order(payloads, text, repairs):
    found, report = read(*payloads)
    assert (found, report.repairs) == (text, repairs)


def test_two_reads_are_as_one():
    report = StreamReport()
    decoder = ChatDecoder(DEFAULT_LIMITS, report)
    first, second = frames(said("a<"), said(">b"))
    assert decoder.feed([first]) == []
    events = decoder.feed([second])
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["a\N{GRINNING FACE}", "b"]
    assert report.repairs == {"character_cut": 1}


def test_who_wants_no_repair_is_told_where():
    decoder = ChatDecoder(DEFAULT_LIMITS, refusing())
    decoder.feed(frames(said("a"), said("<"), said(">")))
    assert isinstance(decoder.fault, NeedsRepair)
    assert (decoder.fault.kind, decoder.fault.offset) == ("character_cut", 1)


def test_each_frame_is_read_a_few_times_however_many_wait(monkeypatch):
    """In one feed: frames that were read again for each that waits would be read hundreds of times."""
    reads = []
    read_frame = split_characters._read
    monkeypatch.setattr(split_characters, "_read", lambda frame: reads.append(frame) or read_frame(frame))
    text, report = read(said("<"), *[said("><")] * 500, said(">"))
    assert (len(text), report.repairs) == (501, {"character_cut": 501})
    assert len(reads) < 4 * 502


def test_a_frame_behind_the_end_that_waits_is_counted_once():
    _, report = read(said("x"), STOP, DONE, said("<"), said("y"))
    assert report.repairs == {"after_end": 2, "lone_surrogate": 1}


def test_a_list_behind_the_end_is_counted_once():
    _, report = read(said("x"), STOP, DONE, [said("y"), said("z")])
    assert report.repairs == {"after_end": 1, "payload_in_list": 1}
