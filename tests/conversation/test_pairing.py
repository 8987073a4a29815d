"""Calls and results: what can't be paired is named, and mended where that is asked for; what is paired stays as it is."""

from __future__ import annotations

from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkit.conversation.checks import NO_RESULT, check_pairing, repair_pairing
from streamkit.conversation.messages import Request, Text, ToolCall, ToolResult, Turn
from streamkit.errors import BadRequest, NeedsRepair
from streamkit.report import StreamReport
from tests.reports import refusing


def call(id, name="f", **rest):
    return ToolCall(0, id, name, "{}", **rest)


def result(id, text="ok", **rest):
    return ToolResult(id, [Text(text)], **rest)


def no_result(id, name="f", **rest):
    return ToolResult(id, [Text(NO_RESULT)], name, is_error=True, **rest)


def asked(*parts):
    return Turn("assistant", list(parts))


def told(*parts, **rest):
    return Turn("user", list(parts), **rest)


def request(*turns):
    return Request("openai-chat", turns=list(turns))


HELLO = told(Text("hello"))
RULES = Turn("system", [Text("be brief")])
DONE = asked(Text("done"))


def repaired(*turns):
    report = StreamReport()
    before = request(*turns)
    kept = deepcopy(before)
    after = repair_pairing(before, report)
    assert before == kept, "the request that is passed in stays as it was"
    return after.turns, dict(report.repairs)


WELL_PAIRED = {
    "no calls": [HELLO, DONE],
    "nothing": [],
    "one call": [HELLO, asked(call("a")), told(result("a")), DONE],
    "text beside the call and behind the result": [asked(Text("so"), call("a")), told(result("a"), Text("go on"))],
    "two calls": [asked(call("a"), call("b")), told(result("a"), result("b"))],
    "results in another order": [asked(call("a"), call("b")), told(result("b"), result("a"))],
    "two legs": [asked(call("a")), told(result("a")), asked(call("b")), told(result("b"))],
    "not answered yet": [HELLO, asked(call("a"), call("b"))],
    "a custom tool": [asked(call("a", kind="custom")), told(result("a", kind="custom"))],
}


@pytest.mark.parametrize("turns", WELL_PAIRED.values(), ids=WELL_PAIRED)
def test_what_is_paired_stays_as_it_is(turns):
    check_pairing(request(*turns))
    after, repairs = repaired(*turns)
    assert repairs == {}
    assert after == turns


REFUSED = {
    "no result": ([HELLO, asked(call("a")), HELLO], "turns[1].parts[0]", "the tool call 'a' has no result"),
    "one of two": (
        [asked(Text("so"), call("a"), call("b")), told(result("a"))],
        "turns[0].parts[2]", "the tool call 'b' has no result",
    ),
    "no result before the next call": (
        [asked(call("a")), asked(call("b"))],
        "turns[0].parts[0]", "the tool call 'a' has no result",
    ),
    "no call": ([HELLO, told(Text("x"), result("z"))], "turns[1].parts[1]", "the tool result 'z' has no tool call"),
    "before its call": (
        [told(result("a")), asked(call("a")), HELLO],
        "turns[0].parts[0]", "the tool result 'a' comes before its tool call, turns[1].parts[0]",
    ),
    "behind another turn": (
        [asked(call("a")), HELLO, DONE, told(result("a"))],
        "turns[3].parts[0]", "the tool result 'a' comes after turns[2], which is a later assistant turn than its call's",
    ),
    "two results": (
        [asked(call("a")), told(result("a"), result("a"))],
        "turns[1].parts[1]", "the tool call 'a' has two results",
    ),
    "one id twice": (
        [asked(call("a")), told(result("a")), asked(call("a")), told(result("a"))],
        "turns[2].parts[0]", "the id 'a' is also the id of another tool call, turns[0].parts[0]",
    ),
    "a call without an id": ([asked(call(""))], "turns[0].parts[0]", "a tool call of 'f' without an id"),
    "a result without an id": (
        [asked(call("a")), told(result(""))],
        "turns[1].parts[0]", "a tool result without a call id",
    ),
}  # fmt: skip
WRONG_ROLES = {
    "the user calls": ([told(call("a"))], "turns[0].parts[0]", "the tool call 'a' is in a turn of the user; it must be in an assistant turn"),
    "the assistant answers": ([asked(result("a"))], "turns[0].parts[0]", "the tool result 'a' is in a turn of the assistant; it must be in a user turn"),
    "the system answers": (
        [Turn("system", [Text("x"), result("a")])],
        "turns[0].parts[1]", "the tool result 'a' is in a turn of the system; it must be in a user turn",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("turns", "path", "reason"), [*REFUSED.values(), *WRONG_ROLES.values()], ids=[*REFUSED, *WRONG_ROLES]
)
def test_what_is_not_paired_is_named(turns, path, reason):
    with pytest.raises(BadRequest) as refused:
        check_pairing(request(*turns))
    assert (refused.value.path, refused.value.reason) == (path, reason)


@pytest.mark.parametrize("turns", [case[0] for case in REFUSED.values()], ids=REFUSED)
def test_what_is_refused_can_be_repaired(turns):
    after, repairs = repaired(*turns)
    check_pairing(request(*after))
    assert repairs


@pytest.mark.parametrize(("turns", "path", "reason"), WRONG_ROLES.values(), ids=WRONG_ROLES)
def test_a_part_in_a_wrong_turn_is_not_repaired(turns, path, reason):
    with pytest.raises(BadRequest) as refused:
        repair_pairing(request(*turns), StreamReport())
    assert (refused.value.path, refused.value.reason) == (path, reason)


REPAIRED = {
    "a missing result is made": (
        [asked(call("a", kind="custom")), HELLO],
        [asked(call("a", kind="custom")), told(no_result("a", kind="custom")), HELLO],
        {"result_missing": 1},
    ),
    "beside those there are, in the order of the calls": (
        [asked(call("a"), call("b"), call("c")), told(result("c"), result("a"), Text("go on"))],
        [asked(call("a"), call("b"), call("c")), told(result("a"), no_result("b"), result("c"), Text("go on"))],
        {"result_missing": 1},
    ),
    "an orphan is dropped": (
        [told(Text("x"), result("z"))], [told(Text("x"))], {"result_orphaned": 1},
    ),
    "a turn goes with its last part": (
        [HELLO, told(result("z")), DONE], [HELLO, DONE], {"result_orphaned": 1},
    ),
    "calls in front of a turn of orphans are not the last": (
        [asked(call("a")), told(result("z"))], [asked(call("a")), told(no_result("a"))],
        {"result_orphaned": 1, "result_missing": 1},
    ),
    "results behind text come first": (
        [asked(call("a"), call("b")), told(Text("x"), result("b"), result("a"))],
        [asked(call("a"), call("b")), told(result("a"), result("b"), Text("x"))],
        {"result_moved": 2},
    ),
    "results of two turns become one turn's": (
        [asked(call("a"), call("b")), told(result("a")), told(result("b"), Text("x"))],
        [asked(call("a"), call("b")), told(result("a"), result("b")), told(Text("x"))],
        {"result_moved": 1},
    ),
    "a result behind another user's turn": (
        [asked(call("a")), HELLO, told(result("a"))],
        [asked(call("a")), told(result("a")), HELLO],
        {"result_moved": 1},
    ),
    "a result behind a system turn": (
        [asked(call("a")), RULES, told(result("a"))],
        [asked(call("a")), told(result("a")), RULES],
        {"result_moved": 1},
    ),
    "a result behind another assistant's turn": (
        [asked(call("a")), DONE, told(result("a"))],
        [asked(call("a")), told(result("a")), DONE],
        {"result_moved": 1},
    ),
    "results of calls that were split over turns": (
        [asked(call("a")), asked(call("b")), told(result("a"), result("b"))],
        [asked(call("a")), told(result("a")), asked(call("b")), told(result("b"))],
        {"result_moved": 1},
    ),
    "a result before its call": (
        [told(result("a")), asked(call("a"))],
        [asked(call("a")), told(result("a"))],
        {"result_moved": 1},
    ),
    "of two results the first stays": (
        [asked(call("a")), told(result("a", "1"), result("a", "2")), told(result("a", "3"))],
        [asked(call("a")), told(result("a", "1"))],
        {"result_orphaned": 2},
    ),
    "a stray result is no second one": (
        [told(result("a", "0")), asked(call("a")), told(result("a", "1"))],
        [asked(call("a")), told(result("a", "1"))],
        {"result_orphaned": 1},
    ),
    "an empty turn is dropped": ([HELLO, told(), asked(call("a"))], [HELLO, asked(call("a"))], {"turn_empty": 1}),
    "calls in front of an empty turn are the last": (
        [asked(call("a")), told()], [asked(call("a"))], {"turn_empty": 1},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("turns", "expected", "repairs"), REPAIRED.values(), ids=REPAIRED)
def test_each_repair_is_made_and_counted(turns, expected, repairs):
    assert repaired(*turns) == (expected, repairs)


def ids_of(turns):
    return [(part.id if isinstance(part, ToolCall) else part.call_id) for turn in turns for part in turn.parts]


def test_an_id_used_again_becomes_another_alike_in_call_and_result():
    turns = [asked(call("a")), told(result("a", "1")), asked(call("a")), told(result("a", "2"))]
    after, repairs = repaired(*turns)
    first, first_result, second, second_result = ids_of(after)
    assert first == first_result == "a" != second == second_result
    assert [part.text for turn in after for part in turn.parts if isinstance(part, ToolResult)] == ["1", "2"]
    assert repairs == {"id_duplicate": 1}


def test_an_id_used_twice_in_one_turn_is_answered_in_order():
    after, repairs = repaired(asked(call("a"), call("a")), told(result("a", "1"), result("a", "2")))
    first, second, *results = ids_of(after)
    assert results == [first, second]
    assert len({first, second}) == 2
    assert [part.text for part in after[1].parts] == ["1", "2"]
    assert repairs == {"id_duplicate": 1}


def test_a_stray_result_for_an_id_of_several_calls_is_dropped_not_guessed():
    turns = [asked(call("a")), told(Text("x")), asked(call("a")), told(result("a"), result("a", "?"))]
    after, repairs = repaired(*turns)
    assert "?" not in str(after)
    assert repairs == {"result_orphaned": 1, "id_duplicate": 1, "result_missing": 1}


def test_ids_that_are_made_stay_when_the_history_grows():
    turns = [asked(call("a")), told(result("a")), asked(call("a"), call("")), told(result("a"), result(""))]
    before, _ = repaired(*turns)
    after, _ = repaired(*turns, asked(call("a"), call("")), told(result("a"), result("")))
    assert after[:4] == before
    assert len(set(ids_of(after))) * 2 == len(ids_of(after))


def test_an_id_that_would_be_made_and_is_used_is_not_made():
    after, _ = repaired(asked(call("a"), call("a")), told(result("a"), result("a")))
    made = ids_of(after)[1]
    again, repairs = repaired(asked(call("a"), call("a"), call(made)), told(result("a"), result("a"), result(made)))
    assert len(set(ids_of(again))) == 3
    assert repairs == {"id_duplicate": 1}


def test_calls_without_ids_are_answered_by_name_else_in_order():
    turns = [asked(call("", "f"), call("", "g")), told(result("", "of g", name="g"), result("", "of f"))]
    after, repairs = repaired(*turns)
    f, g = after[0].parts
    assert {part.call_id: part.text for part in after[1].parts} == {f.id: "of f", g.id: "of g"}
    assert repairs == {"id_missing": 2}
    check_pairing(request(*after))


def test_a_result_without_an_id_takes_no_call_that_another_names():
    turns = [asked(call("a", "f"), call("b", "g"), call("c", "f"))]
    after, repairs = repaired(*turns, told(result("", "last"), result("", "of g", name="g")), told(result("a", "of a")))
    assert {part.call_id: part.text for part in after[1].parts} == {"a": "of a", "b": "of g", "c": "last"}
    assert repairs["id_missing"] == 2
    assert not repairs.keys() & {"result_orphaned", "result_missing"}


def test_a_result_without_an_id_takes_that_of_its_call():
    after, repairs = repaired(asked(call("a")), told(result("", name="f")))
    assert ids_of(after) == ["a", "a"]
    assert repairs == {"id_missing": 1}


def test_the_turn_that_keeps_its_text_keeps_its_fields():
    turns = [asked(call("a")), told(Text("x"), result("a"), name="Ann", extras={"k": 1})]
    assert repaired(*turns)[0][1] == told(result("a"), Text("x"), name="Ann", extras={"k": 1})


def test_a_report_that_refuses_repairs_raises():
    with pytest.raises(NeedsRepair):
        repair_pairing(request(asked(call("a")), HELLO), refusing())


# -- random conversations ----------------------------------------------------------------------------------------------

ids = st.sampled_from(["", "a", "b", "c", "d"])
names = st.sampled_from(["f", "g"])
texts = st.builds(Text, st.sampled_from(["x", "y"]))
calls = st.builds(call, ids, names)
results = st.builds(lambda id, text, name: result(id, text, name=name), ids, st.sampled_from("123"), st.none() | names)
turns = st.one_of(
    st.builds(Turn, st.just("system"), st.lists(texts, max_size=1)),
    st.builds(Turn, st.just("user"), st.lists(texts | results, max_size=4)),
    st.builds(Turn, st.just("assistant"), st.lists(texts | calls, max_size=3)),
)


@given(st.lists(turns, max_size=8))
def test_what_was_repaired_is_paired_and_needs_no_more(turns):
    after, _ = repaired(*turns)
    check_pairing(request(*after))
    assert repaired(*after) == (after, {})


@given(st.lists(turns, max_size=8))
def test_nothing_but_results_is_added_moved_or_dropped(turns):
    def others(turns):
        return [(turn.role, part.text if isinstance(part, Text) else part.name)
                for turn in turns for part in turn.parts if not isinstance(part, ToolResult)]  # fmt: skip

    def said(turns):
        return sorted(part.text for turn in turns for part in turn.parts if isinstance(part, ToolResult))

    after, repairs = repaired(*turns)
    assert others(after) == others(turns)
    assert len(said(after)) == len(said(turns)) - repairs.get("result_orphaned", 0) + repairs.get("result_missing", 0)
    assert said(after).count(NO_RESULT) == repairs.get("result_missing", 0)


@given(st.lists(turns, max_size=8))
def test_what_check_passes_needs_no_repair_but_of_places(turns):
    try:
        check_pairing(request(*turns))
    except BadRequest:
        return
    assert set(repaired(*turns)[1]) <= {"result_moved", "turn_empty"}


@st.composite
def paired(draw):
    """A well-paired conversation: every leg answered at once, in any order."""
    turns, number = [], 0
    for size in draw(st.lists(st.integers(0, 3), max_size=5)):
        leg = [call(f"{number + n}", draw(names)) for n in range(size)]
        number += size
        turns.append(asked(*draw(st.lists(texts, min_size=0 if leg else 1, max_size=2)), *leg))
        answers = [result(part.id) for part in draw(st.permutations(leg))]
        turns.append(told(*answers, *draw(st.lists(texts, min_size=0 if leg else 1, max_size=2))))
    return turns[:-1] if turns and draw(st.booleans()) else turns


@given(paired())
def test_a_well_paired_conversation_is_not_changed(turns):
    check_pairing(request(*turns))
    after, repairs = repaired(*turns)
    assert (after, repairs) == (turns, {})
    assert all(a is b for a, b in zip(after, repair_pairing(request(*after), StreamReport()).turns, strict=True))
