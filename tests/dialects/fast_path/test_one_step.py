"""Reads that are taken from bytes to bytes in one step: the same output, report and fault as through the machines."""

from __future__ import annotations

import asyncio
import itertools
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


def written(reads, source, target, limits=DEFAULT_LIMITS, **more):
    """What is written for each read, and the report."""

    async def run():
        async def body():
            for read in reads:
                yield read

        report = StreamReport()
        options = ReadOptions(limits=limits, make_id=maker())
        pipe = transcode(body(), source, target, options, report=report, reencode=True, clock=CLOCK, **more)
        async with pipe as stream:
            return [piece async for piece in stream], facts_of(report), report.bytes_in, report.frames

    return asyncio.run(run())


@pytest.fixture
def steps(monkeypatch):
    """How many reads took one step, and how many such a function gave back; ``steps["off"] = 1`` turns them off."""
    found = Counter()
    make = one_step._Steps.next

    def counted(self):
        step = None if found["off"] else make(self)

        def counts(read):
            output = step(read)
            found["taken" if output is not None else "back"] += 1
            return output

        return None if step is None else counts

    monkeypatch.setattr(one_step._Steps, "next", counted)
    return found


def events_of(stream):
    """The reads of a stream at one event a read."""
    return [event + b"\n\n" for event in stream.body.replace(b"\r\n", b"\n").split(b"\n\n") if event]


def by_turns(events):
    """One event, then one, then two, then three, and again."""
    at = 0
    for count in itertools.cycle((1, 1, 2, 3)):
        if at >= len(events):
            return
        yield b"".join(events[at : at + count])
        at += count


@pytest.mark.parametrize("stream", every_stream("one step", ours=24))
def test_every_stream_is_written_as_through_the_machines(stream, steps):
    events = events_of(stream)
    for reads in (events, [*by_turns(events)]):
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


DELTA = b'"delta":{"content":%b}'


@pytest.mark.parametrize(
    ("name", "chunk"),
    [
        ("a constant member that nobody reads", CHUNK.replace(b'"finish_reason"', b'"content_filter_results":{"hate":{}},"finish_reason"')),
        ("the delta repeated as a message", CHUNK.replace(DELTA, b'"message":{"content":%b},"delta":{"content":%b}')),
    ],
)  # fmt: skip
@pytest.mark.parametrize("target", TARGETS)
def test_text_takes_one_step_beside_what_says_nothing_to_the_client(name, chunk, target, steps):
    reads = [chunk.replace(b"%b", text) for text in TEXTS] + [LAST, b"data: [DONE]\n\n"]
    found = written(reads, "openai-chat", target)
    if (name, target) == ("a constant member that nobody reads", "openai-chat"):
        assert not steps["taken"]  # it is written
    else:
        assert steps["taken"] >= len(TEXTS) - 5
    if target == "anthropic":
        assert found[1]["losses"]["metadata"] == (len(TEXTS) if "nobody" in name else 0)
    steps["off"] = 1
    assert found == written(reads, "openai-chat", target)


@pytest.mark.parametrize(
    "other",
    [
        b'"message":{"content":"a0a1a2a3a4a5a6a7"},"delta":{"content":%b}', b'"message":{"content":%b},"delta":{"content":"z"}',
        b'"message":{"content":%b}', b'"message":{"content":%b,"delta":{"content":%b}}', b'"delta":{"content":%b},"message":{"content":%b}',
    ],
)  # fmt: skip
def test_a_message_that_is_no_copy_of_its_delta_goes_through_the_machines(other, steps):
    reads = [CHUNK.replace(DELTA, other).replace(b"%b", text) for text in TEXTS] + [LAST, b"data: [DONE]\n\n"]
    found = written(reads, "openai-chat", "anthropic")
    assert not steps["taken"]
    steps["off"] = 1
    assert found == written(reads, "openai-chat", "anthropic")


def fragments(*, several=False):
    """The reads of one call, or of two that take turns."""

    def chunk(calls):
        return CHUNK.replace(b'"content":%b', b'"tool_calls":[%b]' % calls)

    for index in range(1 + several):
        yield chunk(
            b'{"index":%d,"id":"c%d","type":"function","function":{"name":"f","arguments":""}}' % (index, index)
        )
    for number, text in enumerate([b'{\\"a\\":[0', *[b",%d" % number for number in range(20)], b"]}"]):
        for index in range(1 + several):
            if number or not several or index == 0:
                yield chunk(b'{"index":%d,"function":{"arguments":"%b"}}' % (index, text))


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("target", TARGETS)
def test_fragments_of_calls_take_one_step(target, several, steps):
    reads = [*fragments(several=several), LAST.replace(b"stop", b"tool_calls"), b"data: [DONE]\n\n"]
    found = written(reads, "openai-chat", target)
    assert steps["taken"] > len(reads) / 2
    steps["off"] = 1
    assert found == written(reads, "openai-chat", target)


@pytest.mark.parametrize(
    "limit", [{"arguments_chars": 30}, {"stream_arguments_chars": 40}, {"event_bytes": 190}, {"held_chars": 30}]
)
@pytest.mark.parametrize("target", TARGETS)
def test_a_fragment_over_a_limit_is_refused_as_through_the_machines(limit, target, steps):
    reads = [*fragments(several=True), LAST]
    found = written(reads, "openai-chat", target, Limits(**limit))
    steps["off"] = 1
    assert found == written(reads, "openai-chat", target, Limits(**limit))


@pytest.mark.parametrize("odd", [b'"a', b'"\xff"', b"{}", b'""', b"null", b'"\\ud800"', b'"x\ny"'])
def test_an_odd_fragment_goes_through_the_machines(odd, steps):
    reads = [*fragments()]
    reads[12] = reads[12].replace(b'"arguments":"', b'"arguments":%b,"x":"' % odd)
    reads[15] = b"".join(reads[15:17])
    found = written(reads, "openai-chat", "anthropic")
    assert steps["taken"]
    steps["off"] = 1
    assert found == written(reads, "openai-chat", "anthropic")


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


def several(counts):
    """Reads with so many events each."""
    numbers = iter(range(100))
    return [b"".join(CHUNK % b'"b%d"' % next(numbers) for _ in range(count)) for count in counts]


@pytest.mark.parametrize("target", TARGETS)
def test_a_read_of_several_events_takes_one_step_and_leaves_as_one_delta(target, steps):
    reads = [*(CHUNK % text for text in TEXTS[:4]), *several([2, 1, 16, 3]), LAST, b"data: [DONE]\n\n"]
    found = written(reads, "openai-chat", target)
    assert steps["taken"] == 5
    assert b"b0b1" in b"".join(found[0])
    steps["off"] = 1
    assert found == written(reads, "openai-chat", target)


def test_where_the_providers_own_deltas_are_kept_several_go_through_the_machines(steps):
    reads = [*(CHUNK % text for text in TEXTS[:4]), *several([2, 2]), LAST]
    found = written(reads, "openai-chat", "anthropic", join=False)
    assert steps["taken"] == 1
    assert b"b0b1" not in b"".join(found[0])
    steps["off"] = 1
    assert found == written(reads, "openai-chat", "anthropic", join=False)


@pytest.mark.parametrize("limit", [40, 50, 60])
def test_the_limit_of_what_is_held_is_met_in_a_read_of_several_as_well(limit, steps):
    limits = Limits(held_chars=limit)
    reads = [*(CHUNK % text for text in TEXTS), *several([3] * 9), LAST]
    found = written(reads, "openai-chat", "openai-responses", limits)
    assert steps["taken"] > len(TEXTS) - 3  # so many are single events
    steps["off"] = 1
    assert found == written(reads, "openai-chat", "openai-responses", limits)


@pytest.mark.parametrize("odd", ['"a","b"', '"a', 'b"', "7", "", '"a\nb"', '"\\ud800"'])
@pytest.mark.parametrize("place", range(3))
def test_one_odd_event_of_several_sends_all_through_the_machines(odd, place, steps):
    texts = [b'"x"', b'"y"', b'"z"']
    texts[place] = odd.encode()
    reads = [*(CHUNK % text for text in TEXTS[:4]), b"".join(CHUNK % text for text in texts), *several([2]), LAST]
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
