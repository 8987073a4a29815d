"""Runs of deltas are written as the deltas one by one are, by every encoder."""

from __future__ import annotations

import random

import pytest
from attrs import asdict, evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from streamkit.dialects import DIALECTS
from streamkit.dialects.profiles import Encoding
from streamkit.dialects.streams.block_queue import deltas_of
from streamkit.events import (
    ChoiceStarted,
    ReasoningDelta,
    RefusalDelta,
    ResponseFinished,
    ResponseStarted,
    StreamEnded,
    TextDelta,
    ToolCallArguments,
    ToolCallFinished,
    ToolCallStarted,
    Verdict,
)
from streamkit.limits import DEFAULT_LIMITS
from streamkit.report import StreamReport
from streamkit.tool_calls.delta_run import DeltaRun, delta_like
from tests.laws.running import CLOCK, maker

TEXTS = st.lists(
    st.one_of(
        st.sampled_from([",", ",\n  ", '","', "\n", "\u2028", "é", "]", "{}", "}", '"', "\\", " ", "%b"]),
        st.text(min_size=1),
    ),
    min_size=1,
    max_size=6,
).map(lambda texts: [text.encode("utf-8", "replace").decode() for text in texts])
FRAGMENTS = st.lists(
    st.sampled_from(["{", "}", "{}", '{"a":', "1", '"x', '"', " ", ",", "[", "]", '"}', "\\", '{"k":"' + "y" * 16]),
    min_size=1,
    max_size=9,
)
MODELS = [
    TextDelta("", 0, 0),
    TextDelta("", 0, 1),
    TextDelta("", 1, 0),
    ReasoningDelta("", 0, 0),
    ReasoningDelta("", 0, 2, "summary"),
    RefusalDelta(""),
]
RUNS = st.one_of(
    st.builds(DeltaRun, st.sampled_from(MODELS), TEXTS),
    st.builds(lambda texts, call: DeltaRun(ToolCallArguments(call, ""), texts), FRAGMENTS, st.integers(0, 2)),
    st.builds(
        lambda texts, calls: DeltaRun(ToolCallArguments(calls[0], ""), texts, [calls[n % len(calls)] for n in range(len(texts))]),
        FRAGMENTS, st.lists(st.integers(0, 2), min_size=2, max_size=5),
    ),
)  # fmt: skip
STARTS = [ToolCallStarted(number, f"i{number}", f"f{number}") for number in range(3)]


def written(dialect, batches, limits=DEFAULT_LIMITS):
    report = StreamReport()
    encoder = DIALECTS[dialect].encoder(Encoding(limits=limits, make_id=maker(), clock=CLOCK), report)
    out = []
    for batch in batches:
        out.append(encoder.feed(batch))
        if encoder.fault is not None:
            break
    else:
        out.append(encoder.finish())
    return b"".join(out), str(encoder.fault), asdict(report)


def finished(batches):
    """Calls end with what they were given."""
    texts = {0: "", 1: "", 2: ""}
    for batch in batches:
        for event in batch:
            if type(event) is ToolCallArguments:
                texts[event.call] += event.fragment
    ends = [ToolCallFinished(n, f"i{n}", f"f{n}", text, verdict=Verdict("malformed")) for n, text in texts.items()]
    return [*ends, ResponseFinished("tool_calls"), StreamEnded(clean=True)]


def both(dialect, parts, limits=DEFAULT_LIMITS, starts=STARTS, joint=True):
    """What is written of ``parts``, batches of events and runs, and of the same one by one."""
    head = [ResponseStarted("r", "m", 1, "x"), ChoiceStarted(), *starts]
    singly = [[d for part in batch for d in (part.deltas() if type(part) is DeltaRun else [part])] for batch in parts]
    end = finished(singly)
    assert written(dialect, [head, *parts, end], limits) == written(dialect, [head, *singly, end], limits), dialect


@given(st.lists(st.lists(RUNS, max_size=4), max_size=4))
@settings(deadline=None)
def test_runs_are_written_as_their_deltas_are(parts):
    for dialect in DIALECTS:
        both(dialect, parts)


@given(st.lists(RUNS, max_size=5))
@settings(deadline=None)
def test_so_they_are_where_calls_start_in_between(runs):
    parts = [[run, start] for run, start in zip(runs, STARTS, strict=False) if type(run.model) is not ToolCallArguments]
    for dialect in DIALECTS:
        both(dialect, parts, starts=[])


@pytest.mark.parametrize("dialect", ["anthropic", "cohere", "bedrock", "openai-responses"])
@pytest.mark.parametrize("held", [1, 60, 90, 120, 150, 400, 700])
def test_what_is_held_meets_its_limit_at_the_same_fragment(dialect, held):
    limits = evolve(DEFAULT_LIMITS, held_chars=held)
    rng = random.Random(held)
    opened = [ToolCallArguments(number, '{"a":"0123456789') for number in range(3)]
    runs = [DeltaRun(ToolCallArguments(0, ""), ["ab"] * 5, [rng.randrange(3) for _ in range(5)]) for _ in range(4)]
    both(dialect, [opened, runs], limits)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_call_that_becomes_complete_inside_a_run_is_closed_where_it_does(dialect):
    opened = [ToolCallArguments(number, '{"key":"012345678') for number in range(2)]
    for tail in (["9", '"}', " ", "late"], ['"', "}"], ['"}'], ['"', "}", "\n"], ["1", "2"]):
        texts = [text for one in tail for text in (one, "x")]
        both(dialect, [opened, [DeltaRun(ToolCallArguments(0, ""), texts, [n % 2 for n in range(len(texts))])]])


def test_a_delta_that_is_a_comma_or_looks_like_the_space_between_two_is_one():
    texts = ["a", ",", ",\n  ", '",\n  "', "\n"]
    assert b"".join(deltas_of(b"%b;", texts)) == b'"a";",";",\\n  ";"\\",\\n  \\"";"\\n";'


@pytest.mark.parametrize("like", [*MODELS, ToolCallArguments(1, "")])
def test_a_delta_like_another_differs_in_its_text_alone(like):
    if type(like) is not ToolCallArguments:
        assert delta_like(like, "t", None) == evolve(like, text="t")
        assert DeltaRun(like, ["a", "b"]).joined() == evolve(like, text="ab")
    assert [getattr(d, "text", getattr(d, "fragment", None)) for d in DeltaRun(like, ["a", "b"]).deltas()] == ["a", "b"]
