"""The parts of a test's inputs are all of them, and only the first is drawn."""

from __future__ import annotations

import pytest

from tests.sampling import dialects_in, part_of, parts, too_long

CASES = list("abcdefg")


@pytest.mark.parametrize("count", [1, 2, 3, 9])
@pytest.mark.parametrize("turn", [0, 1, 8])
def test_the_parts_are_all_there_is(count, turn):
    found = [part_of(CASES, param.values[0], turn=turn) for param in parts(count)]
    assert sorted(case for part in found for case in part) == CASES
    assert max(map(len, found)) - min(map(len, found)) <= 1


def test_the_first_is_drawn_and_differs_by_turns():
    first, *others = parts(3)
    assert not first.marks
    assert all([mark.name for mark in other.marks] == ["exhaustive"] for other in others)
    assert sorted(case for turn in range(3) for case in part_of(CASES, first.values[0], turn=turn)) == CASES


def test_a_test_is_asked_as_many_cases_as_its_time_allows_and_every_dialect():
    cases = [f"{source}-{n}" for source in ("openai-chat", "gemini", "ai-sdk") for n in range(9)]
    for seconds, kept in ((0.5, 5), (0.1, 3), (9, 27)):
        drawn = set(cases) - too_long("a", cases, seconds, {"a": 0.1, "b": 9.0})
        assert len(drawn) == kept
        assert {case.rpartition("-")[0] for case in drawn} == {"openai-chat", "gemini", "ai-sdk"}
    assert too_long("b", ["one"], 0.5, {"b": 9.0}) == too_long("c", cases, 0.5, {"b": 9.0}) == set()
    assert too_long("a", cases, 0.5, {"a": 0.1}) == too_long("a", cases, 0.5, {"a": 0.1})


def test_where_a_case_of_each_dialect_takes_long_some_are_asked():
    cases = ["openai-chat", "gemini", "ai-sdk", "ollama", "anthropic"]
    assert len(too_long("a", cases, 0.1, {"a": 0.05})) == 0
    assert len(too_long("a", cases, 0.1, {"a": 0.1})) == 2
    assert len(too_long("a", cases, 0.1, {"a": 9.0})) == 4


def test_a_dialect_is_known_by_its_whole_name():
    assert dialects_in("gemini-interactions-a-text") == {"gemini-interactions"}
    assert dialects_in("a-text-gemini-openai-chat") == {"gemini", "openai-chat"}
    assert dialects_in("mistralish") == set()
