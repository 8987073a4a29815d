"""Arguments in parts: the text grows in the order of the parts, and any order means the same value."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkit.dialects.gemini.partial_args import PartialArgs, steps_of
from streamkit.errors import ArgumentsTooLong, TooManyToolCalls
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.report import StreamReport
from tests.laws.running import read
from tests.vectors.gemini import call, chunk, events

NAMES = {str: "stringValue", bool: "boolValue", int: "numberValue", float: "numberValue", type(None): "nullValue"}
keys = st.text(max_size=4)
scalars = st.one_of(
    st.text(max_size=6),
    st.booleans(),
    st.integers(-(2**53), 2**53),
    st.floats(allow_nan=False, allow_infinity=False),
    st.none(),
)
#: Nothing is empty: an empty container has no part that could name it.
values = st.recursive(
    scalars,
    lambda inner: st.dictionaries(keys, inner, min_size=1, max_size=3) | st.lists(inner, min_size=1, max_size=3),
    max_leaves=5,
)


def written(step: str | int, *, quoted: bool) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    if step.isalnum() and not quoted:
        return f".{step}"
    return "['" + json.dumps(step)[1:-1].replace('\\"', '"').replace("'", "\\'") + "']"


def parts_of(value: Any, path: str, *, quoted: bool) -> list[dict[str, Any]]:
    """The entries of ``partialArgs`` for a value, in the order of its text; strings character by character."""
    if isinstance(value, dict):
        return [
            p
            for key, inner in value.items()
            for p in parts_of(inner, path + written(key, quoted=quoted), quoted=quoted)
        ]
    if isinstance(value, list):
        return [p for at, inner in enumerate(value) for p in parts_of(inner, f"{path}[{at}]", quoted=quoted)]
    if isinstance(value, str) and value:
        return [{"jsonPath": path, "stringValue": char, "willContinue": True} for char in value]
    return [{"jsonPath": path, NAMES[type(value)]: "NULL_VALUE" if value is None else value}]


def joined(parts: list[Any], limits: Limits = DEFAULT_LIMITS) -> tuple[str, StreamReport]:
    report = StreamReport()
    arguments = PartialArgs(limits)
    texts = [arguments.add(part, report) for part in parts]
    assert None not in texts
    return "".join(text or "" for text in texts) + arguments.close(), report


@given(st.dictionaries(keys, values, max_size=4), st.booleans())
def test_parts_in_order_are_the_text_of_the_object(value, quoted):
    built, report = joined(parts_of(value, "$", quoted=quoted))
    assert (
        built == json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str) or json.loads(built) == value
    )
    assert list(json.loads(built)) == list(value)
    assert report.repairs == {}


@given(
    st.dictionaries(
        keys, st.text(max_size=3) | st.dictionaries(keys, st.text(max_size=3), min_size=1, max_size=2), max_size=3
    ),
    st.randoms(),
)
def test_parts_in_any_order_are_the_same_value(value, chance):
    parts = parts_of(value, "$", quoted=True)
    places = [part["jsonPath"] for part in parts]
    chance.shuffle(places)
    queues = {path: [part for part in parts if part["jsonPath"] == path] for path in places}
    built, report = joined([queues[path].pop(0) for path in places])
    assert json.loads(built) == value
    assert report.repairs.keys() <= {"arguments_out_of_order"}
    assert report.repairs["arguments_out_of_order"] <= 1


def test_text_is_given_as_it_grows():
    arguments = PartialArgs(DEFAULT_LIMITS)
    assert arguments.add({"jsonPath": "$.a", "stringValue": "x", "willContinue": True}, StreamReport()) == '{"a":"x'
    assert arguments.add({"jsonPath": "$.a", "stringValue": '"\n'}, StreamReport()) == '\\"\\n'
    assert arguments.add({"jsonPath": "$.a", "willContinue": False}, StreamReport()) == ""
    assert arguments.add({"jsonPath": "$.b[0].c", "numberValue": 1.0}, StreamReport()) == '","b":[{"c":1.0'
    assert arguments.add({"jsonPath": "$.b[0].d", "nullValue": None}, StreamReport()) == ',"d":null'
    assert arguments.cut() == ""
    assert arguments.close() == "}]}"


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("$.a.b[0]['x y']", ("a", "b", 0, "x y")),
        ('$["a"]["\\u00e9\\""]', ("a", 'é"')),
        ("$['it\\'s \"so\"']", ('it\'s "so"',)),
        ("$['a\\\\']", ("a\\",)),
        ("$['']", ("",)),
        ("$.é-1", ("é-1",)),
        ("$", None), ("", None), ("a", None), ("$a", None), ("$.", None), ("$.a.", None), ("$.a[", None), ("$.a[-1]", None), ("$.a[1", None),
        ("$.a['b]", None), ("$.a[12345678901]", None), ("$[0]", None), ("$['\\x']", None), ("$['\\ud800']", None), ("$.a[*]", None), ("$..a", None),
        (None, None), (7, None), ("$" + ".a" * 9, None),
    ],
)  # fmt: skip
def test_a_path_leads_through_keys_and_places(path, steps):
    assert steps_of(path, 8) == steps


@pytest.mark.parametrize(
    "part",
    [
        None, "x", {}, {"jsonPath": "$.z"}, {"jsonPath": "$.z", "stringValue": 1}, {"jsonPath": "$.z", "numberValue": "1"}, {"jsonPath": "$.z", "numberValue": True},
        {"jsonPath": "$.z", "numberValue": float("inf")}, {"jsonPath": "$.z", "boolValue": 1}, {"jsonPath": "$.z", "nullValue": 0}, {"jsonPath": "$.z", "stringValue": "a", "boolValue": True},
        {"jsonPath": "$.a.b", "stringValue": "in a string"}, {"jsonPath": "$.a[0]", "stringValue": "in a string"}, {"jsonPath": "$.c", "stringValue": "over an object"},
        {"jsonPath": "$.c[0]", "stringValue": "a place of an object"}, {"jsonPath": "$.l.x", "stringValue": "a key of a list"}, {"jsonPath": f"$.l[{DEFAULT_LIMITS.index + 1}]", "stringValue": "far"},
    ],
)  # fmt: skip
def test_what_is_no_part_adds_nothing_and_leaves_the_arguments_open(part):
    arguments = PartialArgs(DEFAULT_LIMITS)
    given_before = [
        {"jsonPath": "$.c.d", "boolValue": True},
        {"jsonPath": "$.l[0]", "boolValue": False},
        {"jsonPath": "$.a", "stringValue": "x"},
    ]
    built = "".join(arguments.add(one, StreamReport()) or "" for one in given_before)
    assert arguments.add(part, StreamReport()) is None
    assert built + arguments.close() == '{"c":{"d":true},"l":[false],"a":"x"' + "}" * (not part)


def test_gaps_and_texts_are_bounded_together():
    limits = Limits(arguments_chars=1000)
    assert len(joined([{"jsonPath": "$.a[190]", "numberValue": 1}], limits)[0]) <= 1000
    for parts in (
        [{"jsonPath": "$.a[200]", "numberValue": 1}],
        [{"jsonPath": f"$.a{at}[50]", "numberValue": 1} for at in range(4)],
        [{"jsonPath": "$.a", "stringValue": "x" * 990}, {"jsonPath": "$.b", "stringValue": "y" * 20}],
    ):
        with pytest.raises(ArgumentsTooLong):
            joined(parts, limits)


@pytest.mark.parametrize("paths", [["$.a"], ["$.a", "$.b"], ["$.a.b.c", "$.a.b.d"]])
def test_many_parts_take_linear_time(paths):
    """Or the time limit of a test ends it."""
    built, _ = joined(
        [{"jsonPath": path, "stringValue": "fourteen chars"} for _ in range(100_000 // len(paths)) for path in paths]
    )
    assert len(built) < 3_000_000


def test_a_long_list_of_calls_is_refused_before_it_is_searched():
    """Or the time limit of a test ends it."""
    body = events(chunk(*[call("f", {"x": 1})] * 20_000))
    found = read("gemini", [body])
    assert found.fault.startswith(TooManyToolCalls.__name__)
