"""What one read brought of one block or call leaves as one delta: the same law as the normal form of L1."""

from __future__ import annotations

import json
from copy import deepcopy
from itertools import groupby

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from streamkit.dialects import DIALECTS
from streamkit.events import (
    ReasoningDelta,
    RefusalDelta,
    StreamEnded,
    TextDelta,
    ToolCallArguments,
    ToolCallStarted,
    UsageReported,
)
from streamkit.read_options import ReadOptions
from streamkit.recipes import events_of, transcode
from streamkit.report import StreamReport
from streamkit.testing import cut_at, cuts, joined, source_of
from streamkit.tool_calls.joining import join_deltas
from tests.laws.running import CLOCK, Stream, every_stream, machines, maker, says
from tests.sampling import few, name_of
from tests.vectors import VECTORS

LABELS = st.integers(0, 2)
TEXTS = st.text(max_size=3)
EVENTS = st.lists(
    st.one_of(
        st.builds(TextDelta, TEXTS, LABELS, LABELS),
        st.builds(RefusalDelta, TEXTS, LABELS, LABELS),
        st.builds(ReasoningDelta, TEXTS, LABELS, LABELS, st.sampled_from(["raw", "summary"])),
        st.builds(ToolCallArguments, LABELS, TEXTS | st.sampled_from("{}"), LABELS),
        st.builds(ToolCallStarted, LABELS, TEXTS, TEXTS),
        st.builds(UsageReported, LABELS),
        st.just(StreamEnded(clean=True)),
    ),
    max_size=20,
)


def of_run(event):
    """What neighbours of one run have in common; an event that is no delta has nothing in common with any."""
    match event:
        case ToolCallArguments():
            return "fragments"
        case TextDelta() | RefusalDelta():
            return type(event), event.choice, event.block
        case ReasoningDelta():
            return type(event), event.choice, event.block, event.kind
    return object()


def normal_form(events):
    """The law, told run by run: text of one block is one delta, and of fragments those of each call are one."""
    for run, neighbours in groupby(events, key=of_run):
        deltas = list(neighbours)
        if run == "fragments":
            texts = {}
            for each in deltas:
                texts.setdefault((each.choice, each.call), []).append(each.fragment)
            for (choice, call), some in texts.items():
                parts = some if "".join(some).strip() == "{}" else ["".join(some)]
                yield from (ToolCallArguments(call, part, choice) for part in parts)
        elif isinstance(run, tuple):
            yield evolve(deltas[0], text="".join(each.text for each in deltas))
        else:
            yield deltas[0]


@given(EVENTS)
def test_joining_is_the_normal_form_and_changes_nothing_it_was_given(events):
    before = deepcopy(events)
    assert join_deltas(events) == joined(events) == list(normal_form(events))
    assert events == before


@given(EVENTS)
def test_joining_what_is_joined_changes_nothing(events):
    once = join_deltas(events)
    assert join_deltas(once) == once


async def test_an_empty_object_in_two_fragments_is_no_prefix_of_what_follows():
    first = {"index": 0, "id": "c", "function": {"name": "f", "arguments": "{"}}
    more = [{"index": 0, "function": {"arguments": text}} for text in ("{", "}")]
    chunks = [json.dumps({"id": "r", "choices": [{"index": 0, "delta": delta}]}).encode() for delta in [
        {"tool_calls": [first]}, {"tool_calls": [more[1]]}, {"content": "a"}, {"tool_calls": [more[0]]}, {"tool_calls": [more[1]]},
    ]]  # fmt: skip
    body = b"".join(b"data: %b\n\n" % chunk for chunk in chunks)
    async with transcode(source_of([body]), "openai-chat", "openai-chat", reencode=True) as stream:
        written = b"".join([piece async for piece in stream])
    for reads in ([body], [written]):
        async with events_of(source_of(reads), "openai-chat") as stream:
            events = [event async for batch in stream for event in batch]
        assert "".join(event.fragment for event in events if type(event) is ToolCallArguments) == "{}{}"


async def batches_of(stream, reads, *, join):
    async with events_of(source_of(reads), stream.dialect, ReadOptions(make_id=maker()), join=join) as pipe:
        return [batch async for batch in pipe], pipe.report


@pytest.mark.parametrize("vector", few([v for v in VECTORS if v.fault is None], 12, "joined reads", name=name_of))
async def test_each_read_is_joined_by_itself_and_nothing_waits(vector):
    """As many batches as without joining, and each of them is the other's in normal form."""
    for reads in cuts(vector.body, sample=4):
        plain, told = await batches_of(vector, reads, join=False)
        found, told_joined = await batches_of(vector, reads, join=True)
        assert found == [joined(batch) for batch in plain]
        assert told_joined == told


async def converted(stream, to, reads, **options):
    report = StreamReport()
    async with transcode(
        source_of(reads),
        stream.dialect,
        to,
        ReadOptions(make_id=maker()),
        report=report,
        reencode=True,
        clock=CLOCK,
        **options,
    ) as pipe:
        return b"".join([piece async for piece in pipe]), report


@pytest.mark.parametrize("to", ["anthropic", "openai-chat", "openai-responses"])
@pytest.mark.parametrize("stream", every_stream("joined or not", ours=12, recorded_=1))
async def test_joined_or_not_every_recording_says_the_same(stream, to):
    size = len(stream.body)
    reads = cut_at(stream.body, [size // 3, size // 2])
    found, report = await converted(stream, to, reads)
    plain, plain_report = await converted(stream, to, reads, join=False)
    assert says(to)(found, plain)
    assert len(found) <= len(plain)
    assert (report.repairs, report.losses.keys(), report.clean) == (
        plain_report.repairs,
        plain_report.losses.keys(),
        plain_report.clean,
    )


CHUNK = (
    b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":%b,'
    b'"finish_reason":%b}]}\n\n'
)


def spoken(*texts):
    """A Chat stream with these deltas of text."""
    deltas = [CHUNK % (b'{"content":"%b"}' % text.encode(), b"null") for text in texts]
    return b"".join([*deltas, CHUNK % (b"{}", b'"stop"'), b"data: [DONE]\n\n"])


@pytest.mark.parametrize("to", DIALECTS)
async def test_the_providers_own_deltas_are_kept_where_that_is_asked_for(to):
    texts = ("a", "b", ",", "c")
    for join, expected in ((True, ["ab,c"]), (False, list(texts))):
        output, _ = await converted(Stream("own", "openai-chat", spoken(*texts)), to, [spoken(*texts)], join=join)
        parser, decoder, *_ = machines(to, StreamReport())
        events = decoder.feed(parser.feed(output))
        assert [event.text for event in events if type(event) is TextDelta] == expected
