"""What is kept of streams stays within its bounds, and costs nobody who does not look more than a list entry."""

import asyncio
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkit.lab.inspector.captures import ALL_BYTES, CAPTURE_BYTES, CAPTURES, STEP_BYTES, Captures
from streamkit.read_options import DEFAULT_OPTIONS

CHUNK = b"x" * 1000


def kept(captures):
    return [capture.id for capture in captures]


def test_the_defaults_are_those_that_the_page_promises():
    assert (CAPTURES, CAPTURE_BYTES, ALL_BYTES) == (100, 1 << 20, 32 << 20)


def test_what_happened_is_kept_with_its_time_and_the_bytes_themselves():
    now = [10.0]
    captures = Captures(clock=lambda: now[0])
    capture = captures.open("one", about={"model": "m"}, client="ollama")
    capture.attempt("up", "openai-chat", DEFAULT_OPTIONS)
    now[0] = 10.5
    chunk = b"data: x\n\n"
    capture.read(chunk)
    now[0] = 11.0
    capture.wrote(b"{}\n")
    capture.wrote(b": \n\n", keep_alive=True)
    assert [(step.kind, step.at, step.data) for step in capture.steps] == [
        ("attempt", 0.0, b""),
        ("read", 0.5, b"data: x\n\n"),
        ("write", 1.0, b"{}\n"),
        ("keep-alive", 1.0, b": \n\n"),
    ]
    assert capture.steps[1].data is chunk  # no copy


def test_a_stream_may_have_a_clock_of_its_own():
    now = [0.0]
    capture = Captures(clock=lambda: 99.0).open("one", clock=lambda: now[0])
    capture.attempt("up", "openai-chat", DEFAULT_OPTIONS)
    now[0] = 0.5
    capture.read(CHUNK)
    now[0] = 60.0
    capture.end({})
    assert ([step.at for step in capture.steps], capture.seconds) == ([0.0, 0.5], 60.0)
    assert [attempt.upstream for attempt in capture.attempts] == ["up"]


def test_the_stream_that_ended_first_goes_first():
    captures = Captures(captures=3)
    for name in "abc":
        captures.open(name)
    captures.get("b").end({})
    captures.open("d")
    assert kept(captures) == ["a", "c", "d"]
    captures.open("e")  # all of them live: the oldest
    assert kept(captures) == ["c", "d", "e"]


def test_of_a_long_stream_the_beginning_is_kept_and_the_rest_counted():
    captures = Captures(capture_bytes=3 * (1000 + STEP_BYTES))
    capture = captures.open("long")
    for _ in range(5):
        capture.read(CHUNK)
    capture.read(b"short")  # what follows a hole would be read wrongly
    assert (len(capture.steps), capture.read_bytes, capture.left_out) == (3, 3000, 2005)


def test_where_all_are_too_many_bytes_the_oldest_go_and_are_never_back():
    captures = Captures(all_bytes=4000)
    first, second = captures.open("first"), captures.open("second")
    first.read(CHUNK)
    for _ in range(3):
        second.read(CHUNK)
    assert kept(captures) == ["second"]
    first.read(CHUNK)
    assert first.steps == []
    assert (captures.size, second.read_bytes) == (second.size, 3000)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3000), st.booleans()), max_size=60))
def test_no_order_of_events_breaks_a_bound(happenings):
    captures = Captures(captures=3, capture_bytes=5000, all_bytes=8000)
    opened = {}
    for name, size, ends in happenings:
        if name not in opened or opened[name].ended is not None:
            opened[name] = captures.open(str(len(opened)) + str(name) + str(size))
        opened[name].end({}) if ends else opened[name].read(b"x" * size)
        assert len(kept(captures)) <= 3
        assert captures.size == sum(capture.size for capture in captures)
        assert captures.size <= 8000
        assert all(capture.size <= 5000 for capture in captures)


def test_many_tiny_reads_are_bounded_by_what_their_objects_take():
    captures = Captures()
    capture = captures.open("tiny")
    for _ in range(10_000):
        capture.read(b"x")
    assert len(capture.steps) == CAPTURE_BYTES // (1 + STEP_BYTES)


def filled(captures, streams, chunk):
    """The most bytes and the most streams that were kept at once, of streams a hundred small ones and a hundred large ones by turns.

    Every third of them never ends.
    """
    most_bytes = most_streams = 0
    for number in range(streams):
        capture = captures.open(str(number))
        for _ in range(8 if number % 200 >= 100 else 1):
            capture.read(chunk())
        if number % 3:
            capture.end({})
        most_bytes = max(most_bytes, captures.size)
        if not number % 25:
            most_streams = max(most_streams, len(kept(captures)))
    return most_bytes, most_streams


@pytest.mark.parametrize("streams", [2_000, pytest.param(10_000, marks=pytest.mark.exhaustive)])
def test_however_many_streams_there_were_their_bounds_hold(streams):
    data, captures = bytes(CAPTURE_BYTES // 16), Captures()
    most_bytes, most_streams = filled(captures, streams, lambda: data)
    assert most_streams == CAPTURES
    assert ALL_BYTES - CAPTURE_BYTES // 2 < most_bytes <= ALL_BYTES
    assert captures.size == sum(capture.size for capture in captures)


@pytest.mark.exhaustive
def test_ten_thousand_streams_take_no_more_memory_than_the_bounds_say():
    tracemalloc.start()
    try:
        filled(Captures(), 10_000, lambda: bytes(CAPTURE_BYTES // 16))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < ALL_BYTES + CAPTURE_BYTES


@pytest.mark.parametrize("cuts", [[100], [30, 70], [30, 30, 40], [99, 1]])
def test_what_was_put_back_and_read_again_is_kept_once(cuts):
    capture = Captures().open("one")
    body = bytes(range(100))
    capture.read(body[:40])
    capture.read(body[40:])
    capture.unread(body)
    for size in cuts:
        capture.read(body[:size])
    capture.read(b"new")
    assert b"".join(step.data for step in capture.steps) == body + b"new"


async def test_who_watches_is_told_and_nobody_else_is_asked():
    captures = Captures()
    capture = captures.open("one")
    watcher = asyncio.Event()
    capture.read(b"unseen")
    captures.watchers.add(watcher)
    assert not watcher.is_set()
    capture.read(b"seen")
    assert watcher.is_set()
