"""L1: however the bytes are cut, the events are the same in the normal form of ``streamkit.testing.joined``."""

from __future__ import annotations

import json
import random
from itertools import pairwise
from typing import get_args

import pytest

from streamkit.conversation.messages import Tool
from streamkit.conversation.restore import restore_calls
from streamkit.dialects import DIALECTS
from streamkit.errors import HeldTooLong, StreamError
from streamkit.events import ToolCallArguments, ToolCallStarted, UsageReported
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.machines import Chain
from streamkit.policy import POLICIES, STRICT, Policy, TextCalls
from streamkit.read_options import ReadOptions
from streamkit.recipes import events_of
from streamkit.report import StreamReport
from streamkit.testing import FaultySource, cut_at, cuts, joined, open_sources
from tests.corpora import recordings, require_corpora
from tests.laws.deviating import some_deviating
from tests.laws.running import Stream, chain_of, every_stream, facts_of, maker, read, translate
from tests.sampling import few_pairs, marks
from tests.vectors import VECTORS


def seeds(drawn, count):
    """So many seeds of streams that are made by one; the first of them are drawn, the rest are exhaustive."""
    return [pytest.param(seed, id=str(seed), marks=marks(seed < drawn)) for seed in range(count)]


def check_cuts(stream, ways, **how):
    whole = read(stream.dialect, [stream.body], **how).facts()
    for reads in ways:
        found = read(stream.dialect, reads, **how).facts()
        assert found == whole, f"cut into {[len(one) for one in reads][:20]}"


@pytest.mark.parametrize("stream", every_stream("l1 cuts"))
def test_the_events_are_the_same_however_the_bytes_are_cut(stream):
    sample = 4 if len(stream.body) < 4096 else 2
    check_cuts(stream, cuts(stream.body, sample=sample, seed=len(stream.body)))


@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("stream", every_stream("l1 every cut"))
def test_the_events_are_the_same_at_every_cut(stream):
    check_cuts(stream, cuts(stream.body, exhaustive=True))


@pytest.mark.parametrize("sample", [2, pytest.param(8, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize(("vector", "target"), few_pairs(VECTORS, "l1 written"))
def test_what_is_written_says_the_same_however_the_input_was_cut(vector, target, sample):
    """The bytes may differ: an Anthropic start holds the usage that the first read brought."""

    check_written(vector, target, sample=sample)


def said(stream, target, reads, **how):
    """What a translation says, and its report; of a stream that failed, not the places where deltas of calls were cut."""
    output, report = translate(stream.dialect, target, reads, passing=False, **how)
    again = read(target, [output])
    return [event for event in again.events if type(event) is not UsageReported], facts_of(report)


def check_written(stream, target, *, sample, **how):
    whole = said(stream, target, [stream.body], **how)
    for reads in cuts(stream.body, sample=sample, seed=len(stream.body)):
        assert said(stream, target, reads, **how) == whole, [len(one) for one in reads][:20]


#: What may come of a call behind its object, in one fragment with the closing bracket or in fragments of its own.
TAILS = ["", "}", "}}}", " ", "\n", " }", "{}", '{"z":1}', "]", ",", "x", "null"]


#: What a model may say between two fragments of calls, mostly nothing.
BETWEEN = [[], [], [], [], [{"content": "a"}], [{"content": "a"}, {"content": "b"}], [{"reasoning_content": "c"}] * 2]


def interleaved(chance):
    """A stream of Chat with calls whose fragments alternate, text between them, and text behind some of their objects."""
    calls = chance.randint(2, 4)
    fragments = []
    for call in range(calls):
        value = chance.choice(['{"x":1}', '{"x":{"y":[1,{}]}}', '{"}":"}{"}', "{}", '{"x":', " {} "])
        text = value + "".join(chance.choice(TAILS) for _ in range(chance.randint(0, 3)))
        places = sorted(chance.choices(range(1, len(text) + 1), k=chance.randint(0, 4)))
        fragments.append([(call, text[a:b]) for a, b in pairwise([0, *places, len(text)]) if b > a])
    deltas = [
        {"index": call, "id": f"c{call}", "type": "function", "function": {"name": "f", "arguments": ""}}
        for call in range(calls)
    ]
    late = deltas.pop() if chance.random() < 0.5 else None
    while any(fragments):
        call, text = chance.choice(
            [own for own in fragments if own and (late is None or own[0][0] < calls - 1)] or [fragments[-1]]
        ).pop(0)
        if late is not None and (call == calls - 1 or chance.random() < 0.3):
            deltas.append(late)
            late = None
        deltas.append({"index": call, "function": {"arguments": text}})
    said = [[{"tool_calls": [delta]}, *chance.choice(BETWEEN)] for delta in deltas]
    frames = [{"choices": [{"index": 0, "delta": delta}]} for group in said for delta in group]
    frames.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    body = b"".join(b"data: %b\n\n" % json.dumps({"id": "r", **frame}).encode() for frame in frames)
    return Stream("interleaved", "openai-chat", body + b"data: [DONE]\n\n")


def written_calls(stream, target, reads, *, join):
    """The calls that a translation writes, and what it tells of those that it can't."""
    output, report = translate(stream.dialect, target, reads, passing=False, join=join)
    calls = [(call.call, call.name, call.arguments, call.verdict) for call in read(target, [output]).calls]
    return calls, facts_of(report)


@pytest.mark.parametrize("target", DIALECTS)
@pytest.mark.parametrize("seed", seeds(2, 12))
def test_what_may_be_written_of_interleaved_calls_does_not_depend_on_the_cuts(target, seed):
    chance = random.Random(seed)
    for _ in range(5):
        stream = interleaved(chance)
        events = [event + b"\n\n" for event in stream.body.split(b"\n\n")[:-1]]
        whole = written_calls(stream, target, [stream.body], join=True)
        ways = [events, *(cut_at(stream.body, sorted(chance.sample(range(len(stream.body)), 5))) for _ in range(4))]
        for reads in [[stream.body], *ways]:
            for join in (True, False):
                assert written_calls(stream, target, reads, join=join) == whole, stream.body


#: Seeds of deviating streams, and how many of each.
SEEDS, STREAMS = 7, 12
ALL_SEEDS = 30
MANY_SEEDS, MANY_STREAMS = 60, 200


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", seeds(SEEDS, ALL_SEEDS))
def test_report_and_fault_of_a_deviating_stream_are_the_same_however_it_was_cut(seed, policy):
    for number, stream in enumerate(some_deviating(seed, STREAMS)):
        check_cuts(stream, cuts(stream.body, sample=3, seed=seed), policy=POLICIES[policy], join=bool(number % 2))


@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", range(1000, 1000 + MANY_SEEDS))
def test_report_and_fault_of_a_deviating_stream_are_the_same_at_length(seed, policy):
    for number, stream in enumerate(some_deviating(seed, MANY_STREAMS)):
        check_cuts(stream, cuts(stream.body, sample=8, seed=seed), policy=POLICIES[policy], join=bool(number % 2))


#: Policies that read what stands in the text: machines between the decoder and the accumulator.
IN_TEXT = [
    Policy(think_tags="on", text_calls=get_args(TextCalls)),
    Policy(think_tags="opened", text_calls=get_args(TextCalls)),
    Policy(think_tags="on", text_calls=get_args(TextCalls), refuse_repairs=True),
]
#: Limits at which a machine further on fails, or one of those in between.
LOW = [DEFAULT_LIMITS, Limits(arguments_chars=6), Limits(stream_arguments_chars=9), Limits(tool_calls=1)]


@pytest.mark.parametrize("policy", IN_TEXT, ids=["tags", "opened", "strict"])
@pytest.mark.parametrize("seed", seeds(SEEDS, ALL_SEEDS))
def test_report_and_fault_are_the_same_where_the_text_is_read(seed, policy):
    chance = random.Random(seed)
    for number, stream in enumerate(some_deviating(300 + seed, STREAMS)):
        how = {"policy": policy, "limits": chance.choice(LOW), "join": bool(number % 2)}
        check_cuts(stream, cuts(stream.body, sample=3, seed=seed), **how)


@pytest.mark.parametrize("policy", IN_TEXT, ids=["tags", "opened", "strict"])
@pytest.mark.parametrize("limits", LOW[1:], ids=["a call", "all calls", "number"])
def test_what_is_read_behind_a_limit_of_calls_in_the_text_does_not_count(policy, limits):
    """A fault of the accumulator, or of what reads the text, takes back the frames behind it, and what is repaired there."""
    texts = [*'<tool_call>\n{"name":"f","arguments":{"x":1}}</tool_call>\n' * 3, "end"]
    frames = [{"id": "r", "choices": [{"index": 0, "delta": {"content": text}}]} for text in texts]
    frames.insert(3, {"id": "r", "choices": [{"index": 0, "delta": {"content": 1}}]})
    frames.append({"id": "r", "choices": [{"index": 0, "delta": {"content": 1}}]})
    body = b"".join(b"data: %b\n\n" % json.dumps(frame).encode() for frame in frames)
    stream = Stream("calls in the text", "openai-chat", body)
    for join in (True, False):
        check_cuts(stream, cuts(body, sample=20, seed=1), policy=policy, limits=limits, join=join)


def test_strict_tells_no_repair_behind_what_could_not_be_written():
    """Two calls at once, of which a dialect of blocks must hold one, in a read with something to repair behind them."""
    calls = [
        {"index": n, "id": f"c{n}", "type": "function", "function": {"name": "f", "arguments": ""}} for n in (0, 1)
    ]
    deltas = [
        {"tool_calls": calls},
        {"tool_calls": [{"index": 1, "function": {"arguments": '{"x":1'}}]},
        {"content": 1},
    ]
    frames = [{"id": "r", "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    events = [b"data: %b\n\n" % json.dumps(frame).encode() for frame in frames]
    for reads in (events, [b"".join(events)]):
        _, report = translate("openai-chat", "anthropic", reads, Limits(held_chars=3), policy=STRICT)
        assert isinstance(report.error, HeldTooLong)
        assert not report.repairs


def test_strict_hands_on_what_came_before_a_bare_input_of_a_custom_tool():
    """However much of it came in one read."""
    start, stop = {"type": "content_block_start"}, {"type": "content_block_stop"}
    delta = {"type": "content_block_delta"}
    frames = [
        {"type": "message_start", "message": {"id": "m", "role": "assistant", "content": []}},
        {**start, "index": 0, "content_block": {"type": "text", "text": ""}},
        {**delta, "index": 0, "delta": {"type": "text_delta", "text": "before"}},
        {**stop, "index": 0},
        {**start, "index": 1, "content_block": {"type": "tool_use", "id": "c", "name": "f", "input": {}}},
        {**delta, "index": 1, "delta": {"type": "input_json_delta", "partial_json": "bare"}},
        {**stop, "index": 1},
    ]
    events = [b"event: %b\ndata: %b\n\n" % (f["type"].encode(), json.dumps(f).encode()) for f in frames]
    found = []
    for reads in (events, [b"".join(events)]):
        report = StreamReport()
        chain = Chain(
            chain_of("anthropic", report, policy=STRICT), restore_calls([Tool(name="f", kind="custom")]).make(report)
        )
        said = [event for chunk in reads for event in chain.feed(chunk)]
        assert report.repairs == {"custom_input_bare": 1}
        found.append((joined(said), str(chain.fault)))
    assert found[0] == found[1]
    assert any(getattr(event, "text", "") == "before" for event in found[0][0])


@pytest.mark.parametrize("policy", ["strict", "lenient"])
@pytest.mark.parametrize("stream", every_stream("l1 policies", ours=12, recorded_=1))
def test_report_and_fault_are_the_same_under_the_other_policies(stream, policy):
    sample = 3 if len(stream.body) < 4096 else 1
    check_cuts(stream, cuts(stream.body, sample=sample, seed=len(stream.body)), policy=POLICIES[policy], join=True)


@pytest.mark.parametrize("join", [True, False])
@pytest.mark.parametrize("seed", seeds(SEEDS, ALL_SEEDS))
def test_what_is_written_of_a_deviating_stream_says_the_same_however_it_was_cut(seed, join):
    chance = random.Random(seed)
    for stream in some_deviating(100 + seed, STREAMS):
        policy, target = POLICIES[chance.choice(list(POLICIES))], chance.choice(list(DIALECTS))
        check_written(stream, target, sample=3, policy=policy, join=join)


@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("join", [True, False])
@pytest.mark.parametrize("seed", range(2000, 2000 + MANY_SEEDS))
def test_what_is_written_of_a_deviating_stream_says_the_same_at_length(seed, join):
    chance = random.Random(seed)
    for stream in some_deviating(seed, MANY_STREAMS):
        policy, target = POLICIES[chance.choice(list(POLICIES))], chance.choice(list(DIALECTS))
        check_written(stream, target, sample=6, policy=policy, join=join)


@pytest.mark.parametrize("seed", seeds(2 * SEEDS, ALL_SEEDS))
def test_strict_hands_on_nothing_that_was_repaired(seed):
    """All before the frame that would be repaired is as a tolerant reader has it, and of that frame nothing is mended."""
    for stream in some_deviating(200 + seed, STREAMS):
        outcome = read(stream.dialect, [stream.body], policy=STRICT)
        if not outcome.fault.startswith("NeedsRepair"):
            assert not outcome.report.repairs
            continue
        (kind,) = outcome.report.repairs
        assert outcome.report.repairs[kind] == 1
        assert f"({kind})" in outcome.fault
        assert not outcome.clean
        if stream.dialect not in {"gemini", "ollama"}:  # whose calls need no ids
            assert not any(type(event) is ToolCallStarted and event.id_made for event in outcome.events)
        before = before_a_repair(stream)
        assert outcome.events[: len(before)] == before or begins(outcome.events, before)


def before_a_repair(stream):
    """The events of the reads of a byte that precede the first at which a tolerant reader repairs anything."""
    report = StreamReport()
    chain, events = chain_of(stream.dialect, report), []
    for place in range(len(stream.body)):
        found = chain.feed(stream.body[place : place + 1])
        if report.repairs or chain.fault is not None:
            break
        events += found
    return joined(events)


def begins(events, before):
    """Whether events begin with others, of which the last delta may go on."""
    *whole, last = before
    *same, longer = events[: len(before)]
    attribute = "fragment" if type(last) is ToolCallArguments else "text"
    grown = getattr(longer, attribute, "")
    return same == whole and type(longer) is type(last) and grown.startswith(getattr(last, attribute))


@pytest.mark.parametrize("stream", every_stream("l1 pipe", ours=24))
async def test_the_staged_pipe_and_the_chain_of_machines_yield_the_same(stream):
    rng = random.Random(len(stream.body))
    reads = cut_at(stream.body, sorted(rng.choices(range(len(stream.body) + 1), k=7)))
    expected = read(stream.dialect, reads)
    found, fault = [], ""
    async with events_of(FaultySource(reads), stream.dialect, ReadOptions(make_id=maker())) as events:
        try:
            async for batch in events:
                found += batch
        except StreamError as error:
            fault = f"{type(error).__name__}: {error}"
    assert open_sources() == 0
    assert (joined(found), fault) == (expected.events, expected.fault)


def test_the_normal_form_joins_fragments_of_interleaved_calls_and_nothing_across_a_start():
    one, two = ToolCallArguments(0, "a"), ToolCallArguments(1, "b")
    start = ToolCallStarted(1, "id", "name")
    assert joined([one, two, one]) == joined([one, one, two]) == [ToolCallArguments(0, "aa"), two]
    assert joined([one, start, two, one]) == [one, start, two, one]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_events_are_the_same_as_the_network_cut_them(dialect):
    """Some recordings kept the reads of their network."""
    for stream in recordings(dialect):
        if len(stream.chunks) > 1:
            assert read(dialect, list(stream.chunks)).facts() == read(dialect, [stream.body]).facts(), stream.name


def test_some_recordings_kept_the_reads():
    require_corpora()
    assert sum(len(stream.chunks) > 1 for dialect in DIALECTS for stream in recordings(dialect)) > 20
