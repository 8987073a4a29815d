"""The arguments so far beside the events of their calls: which batch shows what, in which order, and at what cost."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamkit.events import (
    ResponseFinished,
    StreamEnded,
    TextDelta,
    ToolCallArguments,
    ToolCallDelta,
    ToolCallFinished,
    ToolCallStarted,
    UsageReported,
)
from streamkit.limits import Limits
from streamkit.machines import Chain
from streamkit.pipeline import pipe
from streamkit.tool_calls.accumulate import ToolCallAccumulator
from streamkit.tool_calls.partial_arguments import (
    MISSING,
    ArgumentsWatcher,
    GrowingText,
    PartialArguments,
    PartialJSON,
    partial_arguments,
)

STARTED = ToolCallStarted(0, "call_a", "write")
SECOND = ToolCallStarted(1, "call_b", "read")


def shown(batch):
    """What a batch says of arguments: call, choice, value as it was then, path."""
    return [
        (event.call, event.choice, event.partial.snapshot(), event.path)
        for event in batch
        if isinstance(event, PartialArguments)
    ]


def finished(call=0, choice=0, arguments="{}", *, ended=True):
    return ToolCallFinished(call, "call_a", "write", arguments, choice, ended=ended)


def test_a_batch_with_argument_text_ends_with_what_it_says_so_far():
    watcher = ArgumentsWatcher()
    batch = [STARTED, ToolCallArguments(0, '{"path": "a.t')]
    out = watcher.feed(batch)
    assert out[:-1] == batch
    assert shown(out) == [(0, 0, {"path": "a.t"}, ("path",))]
    assert shown(watcher.feed([ToolCallArguments(0, 'xt", "n": 1')])) == [(0, 0, {"path": "a.txt"}, ("n",))]
    assert shown(watcher.feed([ToolCallArguments(0, "2}")])) == [(0, 0, {"path": "a.txt", "n": 12}, ())]


def test_fragments_of_one_batch_are_shown_once():
    out = ArgumentsWatcher().feed([STARTED, *(ToolCallArguments(0, c) for c in '{"a":[1,2')])
    assert shown(out) == [(0, 0, {"a": [1]}, ("a", 1))]
    assert [change.kind for change in out[-1].partial.changes] == ["begun", "begun", "ended"]


def test_a_batch_without_argument_text_passes_as_it_is():
    watcher = ArgumentsWatcher()
    for batch in ([STARTED], [TextDelta("hello"), UsageReported(1)], [StreamEnded(clean=True)]):
        assert watcher.feed(batch) == batch
    assert watcher.finish() == watcher.abandon() == []


def test_calls_of_all_choices_are_kept_apart():
    batch = [
        STARTED,
        SECOND,
        ToolCallStarted(0, "call_c", "write", choice=1),
        ToolCallArguments(1, '{"b":'),
        ToolCallArguments(0, '{"a":"'),
        ToolCallArguments(0, '{"c":[', choice=1),
        ToolCallArguments(1, "true"),
    ]
    assert shown(ArgumentsWatcher().feed(batch)) == [
        (1, 0, {"b": True}, ()),
        (0, 0, {"a": ""}, ("a",)),
        (0, 1, {"c": []}, ("c",)),
    ]


def test_what_a_call_says_comes_before_its_end_so_that_the_end_of_the_stream_is_last():
    ends = [finished(), ResponseFinished("tool_calls"), StreamEnded(clean=True)]
    out = ArgumentsWatcher().feed([STARTED, ToolCallArguments(0, "{}"), *ends])
    assert [type(event) for event in out[2:]] == [PartialArguments, *map(type, ends)]


def test_a_call_that_finished_is_forgotten():
    watcher = ArgumentsWatcher()
    watcher.feed([STARTED, SECOND, ToolCallArguments(0, "{"), ToolCallArguments(1, "{")])
    assert watcher.feed([finished(ended=False)]) == [finished(ended=False)]
    assert list(watcher._open) == [(0, 1)]
    late = [ToolCallArguments(0, "}")]
    assert watcher.feed(late) == late


def test_calls_of_custom_tools_are_free_text():
    batch = [ToolCallStarted(0, "call_a", "shell", kind="custom"), ToolCallArguments(0, '{"a":1}')]
    assert ArgumentsWatcher().feed(batch) == batch


def test_the_value_is_live_and_the_path_is_of_its_moment():
    watcher = ArgumentsWatcher()
    first = watcher.feed([STARTED, ToolCallArguments(0, '{"a":"x')])[-1]
    assert type(first.value["a"]) is GrowingText
    second = watcher.feed([ToolCallArguments(0, 'y","b":[')])[-1]
    assert first.value is second.value
    assert (first.value, first.path, second.path) == ({"a": "xy", "b": []}, ("a",), ("b",))
    assert second.partial.is_final(("a",))
    assert not second.partial.is_final(("b",))


def test_nothing_yet_is_missing_and_a_fault_keeps_what_came_before():
    watcher = ArgumentsWatcher()
    assert shown(watcher.feed([STARTED, ToolCallArguments(0, " ")])) == [(0, 0, MISSING, ())]
    out = watcher.feed([ToolCallArguments(0, '{"a":1,}')])
    assert shown(out) == [(0, 0, {"a": 1}, ())]
    assert out[-1].partial.state == "malformed"
    assert shown(watcher.feed([ToolCallArguments(0, '"b":2}')])) == [(0, 0, {"a": 1}, ())]


def test_depth_and_the_policy_of_numbers_are_handed_on():
    watcher = ArgumentsWatcher(limits=Limits(json_depth=1), numbers="growing")
    assert shown(watcher.feed([STARTED, ToolCallArguments(0, '{"a":12')])) == [(0, 0, {"a": 12}, ("a",))]
    assert watcher.feed([ToolCallArguments(0, ',"b":[')])[-1].partial.reason == "nested deeper than 1"


async def test_the_stage_yields_the_batches_of_the_machine():
    async def source():
        yield [STARTED, ToolCallArguments(0, '{"a":"b')]
        yield [ToolCallArguments(0, '"}'), finished(arguments='{"a":"b"}')]

    async with pipe(source(), partial_arguments()) as batches:
        seen = [shown(batch) async for batch in batches]
    assert seen == [[(0, 0, {"a": "b"}, ("a",))], [(0, 0, {"a": "b"}, ())]]


async def test_a_stage_may_be_used_in_two_pipes():
    stage = partial_arguments()

    async def source():
        yield [STARTED, ToolCallArguments(0, '{"a":')]

    for _ in range(2):
        async with pipe(source(), stage) as batches:
            assert [shown(batch) async for batch in batches] == [[(0, 0, {}, ())]]


arguments = st.dictionaries(
    st.text(max_size=4), st.text(max_size=20) | st.integers() | st.lists(st.booleans() | st.text(), max_size=3)
).map(json.dumps)


@settings(deadline=None)
@given(st.lists(arguments, min_size=1, max_size=3), st.integers(1, 9), st.integers(1, 4))
def test_behind_the_accumulator_the_last_value_of_each_call_is_its_arguments(texts, fragment_chars, batch_events):
    deltas = [ToolCallDelta(index=k, id=f"call_{k}", name="write") for k in range(len(texts))]
    longest = max(map(len, texts))
    for start in range(0, longest, fragment_chars):  # the calls grow in turn
        deltas += [
            ToolCallDelta(index=k, arguments=text[start : start + fragment_chars]) for k, text in enumerate(texts)
        ]
    chain = Chain(ToolCallAccumulator(), ArgumentsWatcher())
    out = [event for i in range(0, len(deltas), batch_events) for event in chain.feed(deltas[i : i + batch_events])]
    out += chain.finish()
    last = {event.call: event.partial for event in out if isinstance(event, PartialArguments)}
    assert {call: repr(partial.snapshot()) for call, partial in last.items()} == {
        call: repr(json.loads(text)) for call, text in enumerate(texts)
    }
    assert {partial.state for partial in last.values()} == {"complete"}


@pytest.mark.parametrize("fragments", [1, 10, 1000])
def test_each_character_is_fed_once_however_the_fragments_are_batched(monkeypatch, fragments):
    fed: list[int] = []
    feed = PartialJSON.feed

    def counting(partial, fragment):
        fed.append(len(fragment))
        return feed(partial, fragment)

    monkeypatch.setattr(PartialJSON, "feed", counting)
    text = json.dumps({"content": "word " * 1000})
    pieces = [ToolCallArguments(0, text[i : i + 5]) for i in range(0, len(text), 5)]
    watcher = ArgumentsWatcher()
    watcher.feed([STARTED])
    for i in range(0, len(pieces), fragments):
        watcher.feed(pieces[i : i + fragments])
    assert sum(fed) == len(text)
    assert len(fed) == -(-len(pieces) // fragments)
