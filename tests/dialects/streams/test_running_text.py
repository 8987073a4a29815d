"""What is remembered of a text to compare a later whole with it: in runs, in pieces, and never the text itself."""

from __future__ import annotations

import pickle
import sys
from typing import Any

import pytest

from streamkit.dialects import DIALECTS
from streamkit.dialects.streams import running_text
from streamkit.dialects.streams.running_text import (
    FOLD_EVERY,
    HEAD_CHARS,
    KEPT_CHARS,
    KEPT_TEXTS,
    LONG_CHARS,
    RunningText,
    StartText,
    Texts,
)
from streamkit.events import TextDelta
from streamkit.limits import DEFAULT_LIMITS
from streamkit.machines import Chain
from streamkit.report import StreamReport
from streamkit.tool_calls.repeats import LOOKED_AT, paired
from tests.laws.running import chain_of
from tests.vectors import ollama as ol
from tests.vectors import openai_responses as rs
from tests.vectors.openai_chat import DONE, ROLE, chunk, said
from tests.vectors.vector import lines, sse

FRAGMENTS = [f" word{number}" if number % 7 else "\N{GRINNING FACE}é" for number in range(1000)]
WHOLE = "".join(FRAGMENTS)


def running(*fragments: str) -> RunningText:
    text = RunningText()
    for fragment in fragments:
        text.append(fragment)
    return text


@pytest.mark.parametrize("count", [1, FOLD_EVERY - 1, FOLD_EVERY, FOLD_EVERY + 1, 1000])
def test_the_rest_of_a_whole_text_is_what_did_not_come(count):
    text = running(*FRAGMENTS[:count])
    came = "".join(FRAGMENTS[:count])
    assert (text.chars, text.head) == (len(came), came[:HEAD_CHARS])
    assert text.rest_of(came) == ""
    assert text.rest_of(came + "more") == "more"
    assert text.rest_of(came[:-1]) is None
    assert text.rest_of(came[:-1] + "?" + "more") is None
    assert text.rest_of("?" + came) is None


def test_fragments_of_any_size_are_the_same_text():
    assert running(WHOLE).rest_of(WHOLE) == running(*WHOLE).rest_of(WHOLE) == ""
    assert running("\ud83d", "x").rest_of("\ud83dxy") == "y"  # half a character, as some decoders hand it on


def test_an_endless_text_is_not_kept():
    text = running()
    for _ in range(10_000):
        text.append("x" * LONG_CHARS)
        assert sum(map(len, text.recent)) <= FOLD_EVERY * LONG_CHARS
    assert text.chars == 10_000 * LONG_CHARS
    assert len(pickle.dumps(text)) < 1024
    assert sys.getsizeof(text.recent) < 2048


def test_a_text_of_usual_length_is_compared_as_it_is_and_without_checksums(monkeypatch):
    sums: list[int] = []
    monkeypatch.setattr(running_text, "crc32", lambda raw, start=0: sums.append(len(raw)) or start)
    monkeypatch.setattr(running_text, "adler32", lambda _raw, start=1: start)
    text = running(*FRAGMENTS)
    for _ in range(4):
        assert text.rest_of(WHOLE) == ""
    assert text.rest_of(WHOLE[:-1] + "?") is None
    assert not sums


@pytest.mark.parametrize("size", [1, 100, LONG_CHARS, KEPT_CHARS])
def test_a_longer_text_is_not_kept(size):
    said = ("abcdefg" * KEPT_CHARS)[: 2 * KEPT_CHARS]
    pieces = [said[begin : begin + size] for begin in range(0, len(said), size)]
    for count in range(0, len(pieces) + 1, max(len(pieces) // 8, 1)):
        text, came = running(*pieces[:count]), "".join(pieces[:count])
        assert text.rest_of(came + "more") == "more"
        assert not came or text.rest_of(came[:-1] + "?") is None
    text = running(*pieces)
    assert text.chars == len(said)  # nothing is recent any more
    assert len(pickle.dumps(text)) < 1024


def test_only_the_first_texts_of_a_stream_are_kept():
    texts = Texts()
    for label in range(256):
        texts.of(label).append("x" * KEPT_CHARS)
        assert texts.of(label).rest_of("x" * KEPT_CHARS + "y") == "y"
    assert len(pickle.dumps(texts)) < (KEPT_TEXTS + 2) * KEPT_CHARS


def test_empty_fragments_take_no_room():
    text = running()
    for _ in range(10_000):
        text.append("")
        assert text.chars == 0
    assert len(pickle.dumps(text)) < 1024


def test_long_events_of_one_read_each_are_joined_soon():
    named, report = DIALECTS["openai-chat"], StreamReport()
    decoder: Any = named.decoder(DEFAULT_LIMITS, report)
    machine = Chain(named.parser(DEFAULT_LIMITS, report), decoder)
    words = [letter * size for size in (10, 1024, 4096, 16384) for letter in "abcdefgh" * 20]
    padding = {"system_fingerprint": "f" * 2048}
    for word in words:
        machine.feed(sse({**said(word), **padding}))
        assert sum(map(len, decoder.texts.of((TextDelta, 0)).recent)) <= FOLD_EVERY * LONG_CHARS
    assert decoder.texts.of((TextDelta, 0)).rest_of("".join(words)) == ""


def test_a_text_is_begun_by_its_first_character():
    texts = Texts()
    assert texts.begun("a") is None
    texts.of("a").append("")
    assert texts.begun("a") is None
    texts.of("a").append("x")
    assert texts.begun("a") is texts.of("a")


@pytest.mark.parametrize(
    ("deltas", "told"),
    [
        (["Hel", "lo"], [("Hel", True)]),
        (["Hello"], [("Hello", True)]),
        (["H", "e", "l"], [None, None, ("Hel", True)]),
        (["lo"], [("Hello", False)]),
        (["He", "y"], [None, ("HelHey", False)]),
    ],
)
def test_a_start_is_said_once(deltas, told):
    start = StartText("Hel")
    assert [start.follow(delta) for delta, _ in zip(deltas, told, strict=False)] == told


def test_a_start_that_nothing_follows_is_said():
    assert StartText("Hel").settle() == ("Hel", False)
    start = StartText("Hel")
    assert start.follow("H") is None
    assert start.settle() == ("Hel", True)


def test_each_is_paired_once_and_by_the_first_test_that_any_passes():
    assert paired(["b", "a", "c"], ["a", "b"], lambda entry, came: entry == came) == ["b", "a", None]
    assert paired([1, 2], ["x", "2"], lambda entry, came: str(entry) == came, lambda _entry, _came: True) == ["x", "2"]
    many = list(range(3 * LOOKED_AT))
    assert paired(many, many, lambda entry, came: entry == came) == many


WORDS = [f" word{number}" for number in range(3000)]
ALL = "".join(WORDS)
CHAT = sse(
    ROLE,
    *map(said, WORDS),
    {**chunk(finish="stop"), "choices": [{"index": 0, "message": {"content": ALL}, "finish_reason": "stop"}]},
    DONE,
)
RESPONSES = rs.numbered(rs.START, *rs.message(0, *WORDS), rs.last("completed", rs.message(0, *WORDS)[-1]))
OLLAMA = lines(*map(ol.line, WORDS), ol.end(message={"role": "assistant", "content": ALL}))


def text_read(dialect: str, reads: list[bytes]) -> tuple[str, StreamReport]:
    """The text of a stream whose deltas may be joined, and its report."""
    report = StreamReport()
    machine = chain_of(dialect, report, join=True)
    found = [event for chunk in reads for event in machine.feed(chunk)] + machine.finish()
    assert machine.fault is None
    return "".join(event.text for event in found if isinstance(event, TextDelta)), report


@pytest.mark.parametrize(
    ("dialect", "body", "repairs"),
    [("openai-chat", CHAT, {}), ("openai-responses", RESPONSES, {}), ("ollama", OLLAMA, {"text_repeated": 1})],
)
@pytest.mark.parametrize("size", [1 << 20, 1 << 16, 4096, 300, 0])
def test_what_a_template_read_is_remembered(dialect, body, repairs, size):
    end = b"\n" if dialect == "ollama" else b"\n\n"
    events = [event + end for event in body.split(end)[:-1]]
    reads = [body[begin : begin + size] for begin in range(0, len(body), size)] if size else events
    text, report = text_read(dialect, reads)
    assert text == ALL
    assert dict(report.repairs) == repairs
