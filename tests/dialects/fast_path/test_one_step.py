"""Reads that are taken from bytes to bytes in one step: the same output, report and fault as through the machines."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from streamkit.dialects import DIALECTS
from streamkit.dialects.fast_path import one_step
from streamkit.dialects.profiles import Encoding
from streamkit.framing.sse import SSEParser
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.read_options import ReadOptions
from streamkit.recipes import transcode
from streamkit.report import StreamReport
from tests.laws.running import CLOCK, every_stream, facts_of, maker

CHUNK = (
    b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,'
    b'"delta":{"content":%b},"finish_reason":null}]}\n\n'
)
LAST = (
    b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},'
    b'"finish_reason":"stop"}]}\n\n'
)
#: Those that write a delta around its text.
TARGETS = ["anthropic", "openai-chat", "openai-responses"]
TEXTS = [b'"a%d"' % number for number in range(8)]


def written(reads, source, target, limits=DEFAULT_LIMITS):
    """What is written for each read, and the report."""

    async def run():
        async def body():
            for read in reads:
                yield read

        report = StreamReport()
        options = ReadOptions(limits=limits, make_id=maker())
        pipe = transcode(body(), source, target, options, report=report, reencode=True, clock=CLOCK)
        async with pipe as stream:
            return [piece async for piece in stream], facts_of(report), report.bytes_in, report.frames

    return asyncio.run(run())


@pytest.fixture
def steps(monkeypatch):
    """How many reads took one step, and how many such a function gave back; ``steps["off"] = 1`` turns them off."""
    found = Counter()
    make = one_step._Steps._step

    def counted(self, *args):
        step = make(self, *args)

        def counts(read):
            output = step(read)
            found["taken" if output is not None else "back"] += 1
            return output

        return None if found["off"] else counts

    monkeypatch.setattr(one_step._Steps, "_step", counted)
    return found


def events_of(stream):
    """The reads of a stream at one event a read."""
    return [event + b"\n\n" for event in stream.body.replace(b"\r\n", b"\n").split(b"\n\n") if event]


@pytest.mark.parametrize("stream", every_stream("one step"))
def test_every_stream_is_written_as_through_the_machines(stream, steps):
    reads = events_of(stream)
    for target in TARGETS:
        steps["off"] = 0
        found = written(reads, stream.dialect, target)
        steps["off"] = 1
        assert found == written(reads, stream.dialect, target)


@pytest.mark.parametrize("target", TARGETS)
def test_text_takes_one_step_until_anything_else_comes(target, steps):
    reads = [*(CHUNK % text for text in TEXTS), LAST, b"data: [DONE]\n\n"]
    found = written(reads, "openai-chat", target)
    assert steps["taken"] == len(TEXTS) - 3  # the first says the role, two more are the template
    steps["off"] = 1
    assert found == written(reads, "openai-chat", target)


@pytest.mark.parametrize(
    "odd",
    [
        b'"a\nb"', b'"a\\qb"', b'""', b"7", b'"\xff"', b'"\\ud800"', b'"x","role":"user"', b'"x"},"delta":{"content":"y"',
    ],
)  # fmt: skip
def test_what_does_not_fit_goes_through_the_machines(odd, steps):
    reads = [*(CHUNK % text for text in TEXTS[:5]), CHUNK % odd, *(CHUNK % text for text in TEXTS), LAST]
    found = written(reads, "openai-chat", "anthropic")
    assert steps["taken"]
    steps["off"] = 1
    assert found == written(reads, "openai-chat", "anthropic")


@pytest.mark.parametrize("cut", range(1, len(CHUNK), 7))
def test_a_read_that_is_no_whole_event_goes_through_the_machines(cut, steps):
    whole = CHUNK % b'"over"'
    reads = [*(CHUNK % text for text in TEXTS[:5]), whole[:cut], whole[cut:], whole + whole, whole, LAST]
    found = written(reads, "openai-chat", "anthropic")
    steps["off"] = 1
    assert found == written(reads, "openai-chat", "anthropic")


def test_a_whole_message_behind_the_texts_is_known_to_be_one(steps):
    whole = b"".join(TEXTS).replace(b'"', b"")
    message = LAST.replace(b'"delta":{}', b'"delta":{},"message":{"role":"assistant","content":"%b"}' % whole)
    reads = [*(CHUNK % text for text in TEXTS), message, b"data: [DONE]\n\n"]
    found = written(reads, "openai-chat", "anthropic")
    assert steps["taken"]
    assert b"".join(found[0]).count(b"a7") == 1


def test_what_clients_take_for_a_line_end_is_escaped(steps):
    reads = [*(CHUNK % text for text in TEXTS), CHUNK % '"\u2028"'.encode(), LAST]
    output = b"".join(written(reads, "openai-chat", "anthropic")[0])
    assert steps["taken"] == len(TEXTS) - 2
    assert b"\\u2028" in output
    assert "\u2028".encode() not in output


def test_text_behind_an_error_takes_no_step(steps):
    error = b'data: {"error":{"message":"over","type":"server_error"}}\n\n'
    reads = [*(CHUNK % text for text in TEXTS[:5]), error, *(CHUNK % text for text in TEXTS), LAST]
    found = written(reads, "openai-chat", "anthropic")
    assert steps["taken"] == 2
    steps["off"] = 1
    assert found == written(reads, "openai-chat", "anthropic")


def test_the_framing_of_the_next_event_is_known_where_the_last_read_began_so():
    parser = SSEParser()
    parser.feed(b"event: a\ndata: 1\n\n")
    parser.feed(b"event: a\ndata: 2\n\n")
    assert parser.framing_of("a") == (b"event: a\ndata: ", b"\n\n")
    parser.feed(b"data: 3\n\nevent: b\ndata: 4\n\n")
    assert parser.framing_of("b") is None
    parser.feed(b"event: a\n")
    assert parser.framing_of("a") is None


def test_an_event_over_its_limit_is_refused_as_through_the_machines(steps):
    limits = Limits(event_bytes=len(CHUNK) + 20)
    reads = [*(CHUNK % text for text in TEXTS[:5]), CHUNK % (b'"%b"' % (b"x" * 40)), LAST]
    found = written(reads, "openai-chat", "anthropic", limits)
    assert steps["taken"]
    steps["off"] = 1
    assert found == written(reads, "openai-chat", "anthropic", limits)


def test_what_is_held_has_its_limit(steps):
    limits = Limits(held_chars=30)
    reads = [*(CHUNK % text for text in TEXTS), *(CHUNK % text for text in TEXTS), LAST]
    found = written(reads, "openai-chat", "openai-responses", limits)
    steps["off"] = 1
    assert found == written(reads, "openai-chat", "openai-responses", limits)


@pytest.mark.parametrize("name", DIALECTS)
def test_other_stages_are_not_known(name):
    encoder = DIALECTS[name].encoder(Encoding(), StreamReport())
    assert one_step.one_step([], encoder) is None
