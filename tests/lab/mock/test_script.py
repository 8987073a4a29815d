"""Which turn answers a request, and which steps can be a turn."""

from __future__ import annotations

import pytest

from streamkit.conversation.messages import Text, ToolCall, ToolResult, Turn
from streamkit.errors import UsageError
from streamkit.lab.mock.script import (
    Call,
    Comment,
    Cut,
    Error,
    ErrorStatus,
    Match,
    MockTurn,
    Raw,
    Reset,
    Say,
    Script,
    Stall,
    Stop,
    Wait,
    answers_in,
    first_said,
    last_said,
)
from tests.lab.mock.asking import WEATHER, request

AFTER_A_CALL = [
    Turn("user", [Text("Weather?")]),
    Turn("assistant", [Text("Let me look.")]),
    Turn("assistant", [ToolCall(0, "call_1", "weather", "{}")]),
    Turn("user", [ToolResult("call_1", [Text("rain")])]),
]


def asked(*turns: Turn, **members):
    found = request(**members)
    found.turns = [*turns] or found.turns
    return found


def served(script: Script, *requests):
    """The numbers of the turns that answer these requests of one conversation."""
    had: set[int] = set()
    numbers = []
    for each in requests:
        number = script.next(each, had)
        numbers.append(number)
        had.update(() if number is None else {number})
    return numbers


def test_steps_alone_are_the_only_turn():
    assert Script([Say("a"), Wait(1)]) == Script([MockTurn([Say("a"), Wait(1)])])


def test_turns_are_had_in_order_and_once():
    script = Script([MockTurn([Say("a")]), MockTurn([Say("b")])])
    assert served(script, *[request()] * 3) == [0, 1, None]


def test_a_script_may_begin_again():
    script = Script([MockTurn([Say("a")]), MockTurn([Say("b")])], repeat=True)
    assert served(script, *[request()] * 5) == [0, 1, 0, 1, 0]


def test_the_first_turn_that_fits_answers():
    script = Script(
        [
            MockTurn([Say("a")], Match(text="tea")),
            MockTurn([Say("b")], Match(tool="weather")),
            MockTurn([Say("c")], Match(turn=2)),
        ]
    )
    assert served(script, request("coffee")) == [None]
    assert served(script, request("green tea", tools=[WEATHER])) == [0]
    assert served(script, request("coffee", tools=[WEATHER])) == [1]
    assert served(script, asked(*AFTER_A_CALL)) == [2]


def test_all_of_a_match_must_hold():
    match = Match(text="tea", turn=2)
    assert not match.fits(request("tea"))
    assert not Match(text="Weather", turn=1).fits(asked(*AFTER_A_CALL))


def test_an_answer_in_several_messages_is_one():
    assert [len(answer) for answer in answers_in(asked(*AFTER_A_CALL))] == [2]


def test_results_of_tools_are_nothing_that_the_user_said():
    assert (first_said(asked(*AFTER_A_CALL)), last_said(asked(*AFTER_A_CALL))) == ("Weather?", "Weather?")


OPEN = Call("f", "{}", finished=False)


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ([], "must not be empty"),
        ([Cut(), Say("x")], "nothing can follow cut, and step 2 does"),
        ([Say("x"), Error(), Stop()], "nothing can follow error, and step 3 does"),
        ([ErrorStatus(429), Say("x")], "only wait can be in a turn with status"),
        ([ErrorStatus(429), ErrorStatus(500)], "only wait can be in a turn with status"),
        ([OPEN], "and nothing does"),
        ([OPEN, Say("x")], "not step 2"),
        ([Stop(), Say("x")], "say cannot follow stop"),
        ([Stop(), Stop()], "stop cannot follow stop"),
    ],
    ids=str,
)
def test_steps_that_are_no_answer_are_refused(steps, reason):
    with pytest.raises(UsageError, match=reason):
        MockTurn(steps)


@pytest.mark.parametrize(
    "steps",
    [
        [Wait(1), ErrorStatus(503)],
        [OPEN, Wait(1), Cut()],
        [OPEN, Reset()],
        [OPEN, Error()],
        [Say("x"), Stop(), Raw("x"), Comment(), Wait(1), Stall()],
        [Raw("x")],
        [Stall()],
    ],
    ids=str,
)
def test_other_steps_are_an_answer(steps):
    assert MockTurn(steps).steps == tuple(steps)


@pytest.mark.parametrize(
    ("turns", "reason"), [([], "must not be empty"), ([Say("x"), MockTurn([Say("y")])], "not both")]
)
def test_a_script_that_cannot_be_is_refused(turns, reason):
    with pytest.raises(UsageError, match=reason):
        Script(turns)
