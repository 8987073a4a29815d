"""The verdict on each call, with its reason and its place; and the value of arguments that may be used."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from streamkit.events import TextDelta, ToolCallFinished, ToolCallStarted, Verdict
from streamkit.limits import Limits
from streamkit.report import StreamReport
from streamkit.tool_calls.check import LONG, NOT_ENDED, JSONChecker, check_arguments, check_json, parse_arguments
from streamkit.tool_calls.json_scanner import JSONScanner

#: Argument text, kind, a word of the reason (None: no reason), position.
VECTORS = [
    ("{}", "complete", None, None),
    ('{"itinerary_id": "abc123"}', "complete", None, None),
    (' \n{"a":[1,{"b":null}]}\t ', "complete", None, None),
    ('{"a":1e400}', "complete", None, None),  # orjson refuses it, RFC 8259 does not
    ('{"a":-1E-400}', "complete", None, None),
    (r'{"a":"\ud800"}', "complete", None, None),  # half of a surrogate pair, as an escape
    (r'{"a":"\ud83d\ude00"}', "complete", None, None),
    ('{"a":18446744073709551616}', "complete", None, None),
    ('{"a":1,"a":2}', "complete", None, None),
    ('{"a":"' + "[" * 200 + '"}', "complete", None, None),  # brackets in a text are no depth
    ("", "empty", None, None),
    (" \t\r\n", "empty", None, None),
    ("{", "truncated", "ends inside", 1),
    ('{"a"', "truncated", "ends inside", 4),
    ('{"a":', "truncated", "ends inside", 5),
    ('{"a":tru', "truncated", "ends inside", 8),
    ('{"a":"\\u12', "truncated", "ends inside", 10),
    ('{"a":[1,{"b":2}', "truncated", "ends inside", 15),
    ("[1", "truncated", "ends inside", 2),
    ('{"a":1,}', "malformed", None, 7),
    ("{'a':1}", "malformed", None, 1),
    ('{"a":01}', "malformed", None, 6),
    ('{"a":NaN}', "malformed", None, 5),
    ('{"a" 1}', "malformed", None, 5),
    ('{"a":"line\nend"}', "malformed", None, 10),
    ('{"a":1}}', "malformed", None, 7),
    ('{"a":1}{"b":2}', "malformed", None, 7),  # two calls glued together
    ("{}{}", "malformed", None, 2),
    ("city: Boston", "malformed", None, 0),
    ("\ufeff{}", "malformed", None, 0),
    ("[]", "not_an_object", "an array", 0),
    ('"{}"', "not_an_object", "a string", 0),
    ("12", "not_an_object", "a number", 0),
    ("null", "not_an_object", "a literal", 0),
    ("true", "not_an_object", "a literal", 0),
]


@pytest.mark.parametrize(("text", "kind", "reason", "position"), VECTORS)
def test_a_text_has_its_verdict(text, kind, reason, position):
    verdict = check_arguments(text)
    assert (verdict.kind, verdict.position) == (kind, position)
    assert (verdict.reason is None) is (kind in {"complete", "empty"})
    assert reason is None or reason in verdict.reason


def nested(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


@pytest.mark.parametrize("depth", [1, 2, 8, 128])
def test_depth_has_a_limit(depth):
    assert check_arguments(nested(depth), depth=depth) == Verdict("complete")
    verdict = check_arguments(nested(depth + 1), depth=depth)
    assert verdict.kind == "malformed"
    assert "deep" in verdict.reason
    assert verdict.position == len('{"a":') * depth


@pytest.mark.parametrize("depth", [2, 8, 128])
def test_arrays_are_levels_of_it(depth):
    assert check_arguments('{"a":' + "[" * (depth - 1) + "]" * (depth - 1) + "}", depth=depth) == Verdict("complete")
    assert check_arguments('{"a":' + "[" * depth + "]" * depth + "}", depth=depth).kind == "malformed"


def test_many_brackets_side_by_side_are_not_deep():
    assert check_arguments('{"a":[' + "[]," * 500 + "[]]}", depth=3) == Verdict("complete")


def call(arguments: str, **rest: object) -> ToolCallFinished:
    return ToolCallFinished(0, "id", "f", arguments, **rest)


def verdict_of(event: ToolCallFinished, limits: Limits | None = None) -> Verdict:
    machine = JSONChecker(limits=limits) if limits else JSONChecker()
    (checked,) = machine.feed([event])
    assert machine.fault is None
    assert evolve(checked, verdict=None) == event  # nothing else changed
    return checked.verdict


@pytest.mark.parametrize("text", ["", "{}", '{"a":1}', "[", "nonsense"])
def test_a_call_that_was_not_ended_is_truncated_whatever_its_text(text):
    assert verdict_of(call(text, ended=False)) == Verdict("truncated", NOT_ENDED, len(text))
    assert verdict_of(call(text, ended=False, kind="custom")) == Verdict("truncated", NOT_ENDED, len(text))


@pytest.mark.parametrize("text", ["", "print('hi')", "{", "[]"])
def test_the_free_text_of_a_custom_tool_is_complete(text):
    assert verdict_of(call(text, kind="custom")) == Verdict("complete")


def test_the_machine_uses_its_limits():
    assert verdict_of(call(nested(3)), Limits(json_depth=3)).kind == "complete"
    assert verdict_of(call(nested(4)), Limits(json_depth=3)).kind == "malformed"


def test_other_events_pass_and_the_event_that_came_is_not_changed():
    events = [TextDelta("hi"), ToolCallStarted(0, "id", "f"), call("{}")]
    machine = JSONChecker()
    out = machine.feed(events)
    assert out[:2] == events[:2]
    assert out[2] is not events[2]
    assert events[2].verdict is None
    assert machine.finish() == machine.abandon() == []


def test_each_call_has_a_verdict_of_its_own():
    out = JSONChecker().feed([call('{"a":1}'), call('{"a":'), call("")])
    assert [event.verdict.kind for event in out] == ["complete", "truncated", "empty"]


# -- values ------------------------------------------------------------------------------------------------------------


def test_whole_numbers_keep_their_digits():
    assert parse_arguments('{"id":18446744073709551616}') == {"id": 2**64}
    assert parse_arguments('{"id":1' + "0" * 100 + "}") == {"id": 10**100}
    assert type(parse_arguments('{"id":9007199254740993}')["id"]) is int


def test_a_fraction_stays_a_float():
    value = parse_arguments('{"x":1.0}')["x"]
    assert type(value) is float
    assert value == 1.0


@pytest.mark.parametrize("text", ["", "  \n"])
def test_empty_arguments_are_an_empty_object(text):
    assert parse_arguments(text) == {}


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[1]",
        "null",
        '"{}"',
        '{"a":1}{"b":2}',
        "nonsense",
        '{"a":NaN}',
        pytest.param(nested(100_000), id="too-deep"),
        pytest.param(nested(129), id="deeper-than-the-verdict-bears"),
    ],
)
def test_text_that_may_not_be_used_is_refused(text):
    with pytest.raises(ValueError):
        parse_arguments(text)


@pytest.mark.parametrize("text", [text for text, kind, *_ in VECTORS if kind in {"complete", "empty"}])
def test_what_is_complete_can_be_parsed(text):
    assert isinstance(parse_arguments(text), dict)


@pytest.mark.parametrize("depth", [127, 128, 129, 130, 300])
def test_the_value_agrees_with_the_verdict_however_deep(depth):
    text = nested(depth)
    if check_arguments(text).kind == "complete":
        assert isinstance(parse_arguments(text), dict)
    else:
        with pytest.raises(ValueError, match="malformed"):
            parse_arguments(text)
        assert isinstance(parse_arguments(text, depth=1000), dict)


@pytest.mark.parametrize("digits", [4300, 4301, 5000, 100_000])
def test_the_value_agrees_with_the_verdict_however_many_digits(digits):
    text = '{"n":-' + "9" * digits + "}"
    assert check_arguments(text).kind == "complete"
    assert Decimal(parse_arguments(text)["n"]) == Decimal("-" + "9" * digits)


OBJECTS = st.dictionaries(
    st.text(max_size=4),
    st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=6), st.lists, max_leaves=6),
    max_size=4,
)


@settings(deadline=None)
@given(OBJECTS, st.booleans())
def test_every_object_is_complete_and_every_beginning_of_it_is_not(value, ascii_only):
    text = json.dumps(value, ensure_ascii=ascii_only)
    assert check_arguments(text) == Verdict("complete")
    assert parse_arguments(text) == value
    for end in range(1, len(text)):
        assert check_arguments(text[:end]) == Verdict("truncated", "the text ends inside the value", end)


@settings(deadline=None)
@given(st.text(alphabet='{}[]":,.-+eE01tfnrulase\\ \n', max_size=30))
def test_the_verdict_agrees_with_the_standard_library_and_with_the_scanner(text):
    verdict = check_arguments(text)
    try:
        value = json.loads(text, parse_constant=lambda _: None)
        expected = "complete" if isinstance(value, dict) else "not_an_object"
    except ValueError:
        expected = "refused"
    found = "refused" if verdict.kind in {"truncated", "malformed"} else verdict.kind
    assert found == ("empty" if not text.strip() else expected)
    scanner = JSONScanner()
    scanner.feed(text)
    if verdict.kind == "malformed":
        scanner.finish()
        assert (scanner.reason, scanner.position) == (verdict.reason, verdict.position)


@pytest.mark.parametrize("text", [text for text, kind, *_ in VECTORS if kind != "truncated"])
def test_white_space_that_makes_a_text_long_changes_no_verdict(text):
    short, long = check_arguments(text), check_arguments(text + " " * LONG)
    assert (long.kind, long.reason, long.position) == (short.kind, short.reason, short.position)


@pytest.mark.parametrize(
    ("text", "what"), [("[1]", "not a JSON object: the value is an array"), ("{", "truncated: the text ends")]
)
def test_what_is_refused_is_named(text, what):
    with pytest.raises(ValueError, match=what):
        parse_arguments(text)


def test_the_stage_has_its_own_name_and_the_limits_it_was_given():
    stage, report = check_json(limits=Limits(json_depth=3)), StreamReport()
    events = stage.make(report).feed([call(nested(3)), call(nested(4)), call(nested(5))])
    assert stage.name == "check_json"
    assert [event.verdict.kind for event in events] == ["complete", "malformed", "malformed"]
    assert report.verdicts == {"complete": 1, "malformed": 2}
