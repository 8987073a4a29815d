"""L2: work is counted, not timed: no character is handed to a scanner twice, and text is joined a bounded number of times."""

from __future__ import annotations

import pytest

from streamkit.dialects import DIALECTS
from streamkit.dialects.openai_responses.items import ItemReader
from streamkit.dialects.openai_responses.texts import OPEN_LOOKED_AT
from streamkit.tool_calls import json_scanner, object_scanner
from tests.framing.binary import events
from tests.laws.running import read, translate
from tests.vectors import anthropic, bedrock, openai_responses
from tests.vectors.openai_chat import CALLED, DONE, ROLE, call, calls
from tests.vectors.vector import named, sse


@pytest.fixture
def work(monkeypatch):
    """Counts characters handed to scanners, and characters that buffers joined."""
    counts = {"scanned": 0, "joined": 0, "scanners": 0}
    feed, whole, init = (
        json_scanner.JSONScanner.feed,
        object_scanner.TextBuffer.whole,
        json_scanner.JSONScanner.__init__,
    )

    def counting_init(self, **kwargs):
        counts["scanners"] += 1
        init(self, **kwargs)

    def counting_feed(self, text):
        before = self.scanned
        state = feed(self, text)
        counts["scanned"] += self.scanned - before
        assert self.scanned - before == len(text)
        return state

    def counting_whole(self):
        text = whole(self)
        counts["joined"] += len(text)
        return text

    monkeypatch.setattr(json_scanner.JSONScanner, "__init__", counting_init)
    monkeypatch.setattr(json_scanner.JSONScanner, "feed", counting_feed)
    monkeypatch.setattr(object_scanner.TextBuffer, "whole", counting_whole)
    return counts


def fragments(size: int) -> list[str]:
    text = '{"text":"' + "x" * (size - 11) + '"}'
    return [text[at : at + 14] for at in range(0, size, 14)]


def healthy(size: int) -> bytes:
    return sse(
        ROLE, calls(call(0, "a", "f", "")), *(calls(call(0, arguments=one)) for one in fragments(size)), CALLED, DONE
    )


def doubtful(size: int) -> bytes:
    """Each fragment repeats the name: whether a new call begins is asked each time."""
    return sse(ROLE, *(calls(call(0, None, "f", one)) for one in fragments(size)), CALLED, DONE)


def interleaved(size: int) -> bytes:
    """Two calls by turns: an encoder with one open block asks whether the first is complete."""
    first, second = [calls(call(n, f"i{n}", "f", "")) for n in range(2)]
    turns = [calls(call(n, arguments=one)) for one in fragments(size) for n in range(2)]
    return sse(ROLE, first, second, *turns, CALLED, DONE)


def blocks(size: int) -> bytes:
    return named(
        anthropic.START, *anthropic.tool(0, "t", "f", *fragments(size)), anthropic.finish("tool_use"), anthropic.STOP
    )


def messages(size: int) -> bytes:
    return events(
        bedrock.START, *bedrock.tool(0, "t", "f", *fragments(size)), bedrock.finish("tool_use"), bedrock.counts()
    )


STREAMS = {
    "healthy": ("openai-chat", healthy),
    "doubtful": ("openai-chat", doubtful),
    "interleaved": ("openai-chat", interleaved),
    "blocks": ("anthropic", blocks),
    "messages": ("bedrock", messages),
}


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("target", DIALECTS)
def test_no_character_is_scanned_or_joined_more_than_a_few_times(work, name, target):
    dialect, make = STREAMS[name]
    size = 14_000
    streams = 2 if name == "interleaved" else 1
    found = read(dialect, [make(size)])
    assert [len(call.arguments) for call in found.calls] == [size] * streams
    for key in work:
        work[key] = 0
    translate(dialect, target, [make(size)], passing=False)
    # a scanner for identity, one in the encoder and one for the verdict, each walking the text at most once
    assert work["scanned"] <= 3 * size * streams
    assert work["joined"] <= 4 * size * streams


@pytest.mark.parametrize("name", STREAMS)
def test_twice_the_text_is_twice_the_work(work, name):
    dialect, make = STREAMS[name]

    def effort(size):
        for key in work:
            work[key] = 0
        translate(dialect, "anthropic", [make(size)], passing=False)
        return work["scanned"], work["joined"]

    once, twice = effort(7_000), effort(14_000)
    for little, much in zip(once, twice, strict=True):
        assert much <= 2 * little + 100


def whole_items(count: int) -> bytes:
    """Messages that are all open at once, of each of which only the whole text comes."""
    opened = [openai_responses.added(n, "message", role="assistant", content=[]) for n in range(count)]
    told = [openai_responses.event("output_text.done", n, f"i{n}", content_index=0, text=f"{n}.") for n in range(count)]
    parts = [openai_responses.part(f"{n}.") for n in range(count)]
    ended = [openai_responses.done(n, "message", role="assistant", content=[part]) for n, part in enumerate(parts)]
    return openai_responses.numbered(
        openai_responses.START, *opened, *told, *ended, openai_responses.last("completed", *ended)
    )


def test_a_whole_text_is_compared_with_a_few_open_items(monkeypatch):
    looked_at = 0
    open_items = ItemReader.open_items

    def counting(self, kind, first):
        nonlocal looked_at
        for item in open_items(self, kind, first):
            looked_at += 1
            yield item

    monkeypatch.setattr(ItemReader, "open_items", counting)
    count = 2000
    found = read("openai-responses", [whole_items(count)])
    assert found.text() == "".join(f"{n}." for n in range(count))
    assert looked_at <= 2 * OPEN_LOOKED_AT * count
