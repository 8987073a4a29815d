"""The value so far: against a table, against brute force at every prefix of published documents, and on generated text."""

from __future__ import annotations

import json
import re
import tracemalloc
from decimal import Decimal
from functools import cache
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamkit.tool_calls import partial_arguments
from streamkit.tool_calls.json_scanner import JSONScanner
from streamkit.tool_calls.partial_arguments import MISSING, GrowingText, PartialJSON
from tests.corpora import CORPORA, require_corpora
from tests.tool_calls.test_json_scanner import COMPLETE, EVERY_TEXT, TRANSFORM, cuttings, mutations, strict_text, texts

BOTH = ["ended", "growing"]


def fed(*fragments: str, **options: Any) -> PartialJSON:
    partial = PartialJSON(**options)
    for fragment in fragments:
        partial.feed(fragment)
    return partial


def facts(partial: PartialJSON) -> tuple[Any, ...]:
    """``repr`` tells 1, 1.0 and True apart, and the order of keys."""
    return repr(partial.snapshot()), partial.path, partial.state, partial.position, partial.reason


# -- the table --

#: Text, value when numbers show once ended, value when they show growing, path being written.
SO_FAR = [
    ("", MISSING, MISSING, ()),
    (" \n", MISSING, MISSING, ()),
    ("{", {}, {}, ()),
    ('{"', {}, {}, ()),
    ('{"a', {}, {}, ()),
    ('{"a"', {}, {}, ()),
    ('{"a" :', {}, {}, ()),
    ('{"a": "', {"a": ""}, {"a": ""}, ("a",)),
    ('{"a": "b', {"a": "b"}, {"a": "b"}, ("a",)),
    ('{"a": "b"', {"a": "b"}, {"a": "b"}, ()),
    ('{"a": "b",', {"a": "b"}, {"a": "b"}, ()),
    ('{"a": "b", "c"', {"a": "b"}, {"a": "b"}, ()),
    ('{"a": 1', {}, {"a": 1}, ("a",)),
    ('{"a": 12', {}, {"a": 12}, ("a",)),
    ('{"a": 12.', {}, {"a": 12}, ("a",)),
    ('{"a": 12.5e', {}, {"a": 12.5}, ("a",)),
    ('{"a": 12.5e+', {}, {"a": 12.5}, ("a",)),
    ('{"a": 12.5e+1', {}, {"a": 125.0}, ("a",)),
    ('{"a": 12 ', {"a": 12}, {"a": 12}, ()),
    ('{"a": 12}', {"a": 12}, {"a": 12}, ()),
    ('{"a": -', {}, {}, ("a",)),
    ('{"a": tru', {}, {}, ("a",)),
    ('{"a": true', {"a": True}, {"a": True}, ()),
    ("[nul", [], [], (0,)),
    ("[null", [None], [None], ()),
    ("[false,", [False], [False], ()),
    ("[1,2", [1], [1, 2], (1,)),
    ('[1,{"a":[{}, "x', [1, {"a": [{}, "x"]}], [1, {"a": [{}, "x"]}], (1, "a", 1)),
    ('[1,{"a":[{}, "x"]', [1, {"a": [{}, "x"]}], [1, {"a": [{}, "x"]}], (1,)),
    ('[1,{"a":[', [1, {"a": []}], [1, {"a": []}], (1, "a")),
    ("12", MISSING, 12, ()),
    ("-", MISSING, MISSING, ()),
    ("12 ", 12, 12, ()),
    ("t", MISSING, MISSING, ()),
    ("true", True, True, ()),
    ('"ab', "ab", "ab", ()),
    ('"a\\', "a", "a", ()),
    ('"a\\n', "a\n", "a\n", ()),
    ('"a\\u00e', "a", "a", ()),
    ('"a\\u00e9', "aé", "aé", ()),
    ('"a\\\\u00e', "a\\u00e", "a\\u00e", ()),
    ('"\\ud83d', "", "", ()),  # waits for its low half
    ('"\\ud83d\\', "", "", ()),
    ('"\\ud83d\\ude0', "", "", ()),
    ('"\\ud83d\\ude00', "\U0001f600", "\U0001f600", ()),
    ('"\\ud83dx', "\ud83dx", "\ud83dx", ()),
    ('"\\ud83d\\n', "\ud83d\n", "\ud83d\n", ()),
    ('"\\ud83d"', "\ud83d", "\ud83d", ()),
    ('"\\ud83d\\ud83d', "\ud83d", "\ud83d", ()),
    ('"\\ud83d\\ud83d\\ude00', "\ud83d\U0001f600", "\ud83d\U0001f600", ()),
    ('"\\ude00', "\ude00", "\ude00", ()),
    ('"\\\\ud83d', "\\ud83d", "\\ud83d", ()),
    ('"\ud83d\\ude00', "\ud83d\ude00", "\ud83d\ude00", ()),  # a surrogate that is no escape pairs with nothing
    ('{"\\ud83d\\ude00":"\\', {"\U0001f600": ""}, {"\U0001f600": ""}, ("\U0001f600",)),
    ('{"":[""', {"": [""]}, {"": [""]}, ("",)),
    ('{"a":1,"a":"x', {"a": "x"}, {"a": "x"}, ("a",)),
    ('{"a":1,"a":2', {"a": 1}, {"a": 2}, ("a",)),
    ('{"a":1,"b":0,"a":2,', {"a": 2, "b": 0}, {"a": 2, "b": 0}, ()),
]


@pytest.mark.parametrize(("text", "ended", "growing", "path"), SO_FAR)
def test_a_text_has_its_value_so_far_and_its_path(text, ended, growing, path):
    for numbers, expected in (("ended", ended), ("growing", growing)):
        for partial in (fed(text, numbers=numbers), fed(*text, numbers=numbers)):
            assert repr(partial.snapshot()) == repr(expected)
            assert partial.value == expected
            assert partial.path == path


#: Malformed text and what stays of it.
AFTER_A_FAULT = [
    ('{"a": "b", "c": "d\n', {"a": "b", "c": "d"}),
    ('{"a": "b\\x', {"a": "b"}),
    ('{"a": "b\\ud83d\\x', {"a": "b"}),
    ("[1,]", [1]),
    ("[1 2]", [1]),
    ("[0x1]", []),  # what follows the 0 is no delimiter
    ("[01]", []),
    ("[1, 2.]", [1]),
    ("[tru]", []),
    ('{"a":1}}', {"a": 1}),
    ("{0", {}),
    ("NaN", MISSING),
]


@pytest.mark.parametrize(("text", "stays"), AFTER_A_FAULT)
def test_after_a_fault_the_value_stays_and_text_is_ignored(text, stays):
    scanner = JSONScanner()
    scanner.feed(text)
    for partial in (fed(text), fed(*text)):
        assert partial.snapshot() == stays
        assert (partial.state, partial.position, partial.reason) == ("malformed", scanner.position, scanner.reason)
        path = partial.path
        assert partial.feed('"more":[1,2]}') == "malformed"
        assert partial.changes == []
        assert partial.finish() == "malformed"
        assert (partial.snapshot(), partial.path, partial.position) == (stays, path, scanner.position)


def test_what_is_open_at_a_fault_never_becomes_final():
    partial = fed('{"a":[1],"b":["x\n')
    assert partial.is_final(("a",))
    assert not partial.is_final(("b",))
    assert not partial.is_final(("b", 0))


@pytest.mark.parametrize("depth", [1, 3, 128])
def test_depth_is_limited_as_the_scanner_limits_it(depth):
    assert fed("[" * depth, depth=depth).state == "incomplete"
    partial = fed("[" * depth + "[", depth=depth)
    assert (partial.state, partial.reason) == ("malformed", f"nested deeper than {depth}")
    assert repr(partial.value) == "[" * depth + "]" * depth


# -- numbers --


def test_finish_ends_a_number_at_the_top_level_and_no_other():
    for text, value in (("12", 12), ("-0.5e1", -5.0), ("0", 0)):
        partial = fed(text)
        assert partial.value is MISSING
        assert partial.finish() == "complete"
        assert repr(partial.value) == repr(value)
        assert partial.is_final(())
    partial = fed('{"a":12')
    assert partial.finish() == "incomplete"
    assert partial.value == {}
    assert not partial.is_final(("a",))


@pytest.mark.parametrize("digits", [1, 19, 20, 100, 4300])
@pytest.mark.parametrize("sign", ["", "-"])
def test_whole_numbers_keep_all_their_digits(digits, sign):
    text = sign + "7" * digits
    for partial in (fed(f"[{text}]"), fed(*f"[{text}]")):
        assert partial.value == [int(text)]
        assert type(partial.value[0]) is int


def test_more_digits_than_the_interpreter_converts_are_an_exact_decimal():
    text = "7" * 4301
    for partial in (fed(f"[{text}]"), fed(*f"[-{text},1]")):
        (number, *_) = partial.value
        assert type(number) is Decimal
        assert number.copy_abs() == Decimal(text)


def test_numbers_with_a_point_or_an_exponent_are_floats_and_may_be_infinite():
    text = "[1.0,1e2,-0.0,1E400,-1e400,1e-400,-0]"
    assert repr(fed(text).value) == repr(json.loads(text))


def test_a_growing_number_shows_no_more_than_its_first_digits_whatever_the_cutting():
    text = "1" * (partial_arguments.GROWING_CHARS + 100)
    shown = int("1" * partial_arguments.GROWING_CHARS)
    for size in (1, 14, 4301, 10_000):
        partial = fed(*(text[i : i + size] for i in range(0, len(text), size)), numbers="growing")
        assert partial.value == shown
        assert partial.feed(" ") == "complete"
        assert partial.value == Decimal(text)


# -- the string being written --


def test_the_string_being_written_is_a_growing_text_and_then_a_str():
    partial = fed('{"a":"b')
    text = partial.value["a"]
    assert type(text) is GrowingText
    assert (text, str(text), len(text), f"{text}", text.upper()) == ("b", "b", 1, "b", "B")
    assert json.dumps(partial.value, default=str) == '{"a": "b"}'
    partial.feed("c")
    assert (partial.value["a"], len(text)) == ("bc", 2)
    assert partial.value["a"] is text
    partial.feed('d"')
    assert type(partial.value["a"]) is str
    assert partial.value["a"] == text == "bcd"


def test_a_string_that_comes_whole_is_a_str_at_once():
    partial = fed('["whole","')
    assert [type(item) for item in partial.value] == [str, GrowingText]


def test_a_growing_text_cannot_be_hashed():
    with pytest.raises(TypeError):
        hash(fed('"a').value)


def test_a_text_that_was_read_does_not_change():
    partial = fed('"a')
    before = str(partial.value)
    partial.feed("b")
    assert (before, str(partial.value)) == ("a", "ab")


# -- live and copied --


def test_the_value_is_live_and_a_snapshot_is_not():
    partial = fed('{"a":[1,{"b":"x')
    value, copy = partial.value, partial.snapshot()
    assert type(copy["a"][1]["b"]) is str
    partial.feed('y"}],"c":2}')
    assert partial.value is value
    assert value == {"a": [1, {"b": "xy"}], "c": 2}
    assert copy == {"a": [1, {"b": "x"}]}
    copy["a"][1].clear()
    assert value["a"][1] == {"b": "xy"}


def test_a_snapshot_needs_no_recursion():
    deep = fed("[" * 2_000, depth=2_000).snapshot()
    for _ in range(1_999):
        (deep,) = deep
    assert deep == []


def test_missing_is_not_null():
    assert fed("null").value is None
    assert repr(fed("nul").value) == "MISSING"
    assert fed("nul").snapshot() is MISSING


# -- what is final --

#: Text, final paths, paths that are not.
FINAL = [
    ("", [], [(), ("a",), (0,)]),
    ('{"a"', [], [(), ("a",)]),
    ('{"a":"x', [], [(), ("a",)]),
    ('{"a":"x"', [("a",)], [(), ("b",), ("a", 0), ("a", "x")]),
    ('{"a":12', [], [("a",)]),
    ('{"a":12,', [("a",)], [()]),
    ('{"a":[1,{"b":2},[', [("a", 0), ("a", 1), ("a", 1, "b")], [(), ("a",), ("a", 2), ("a", 3), ("a", -1), ("a", "0")]),
    ('{"a":{"b":1},"c":{"b":', [("a",), ("a", "b")], [("c",), ("c", "b")]),
    ('{"a":{"b":1}}', [(), ("a",), ("a", "b")], [("c",), ("a", "b", "c"), (0,)]),
    ('{"a":1,"a":2', [], [("a",)]),  # the key came again
    ('"x', [], [()]),
    ('"x"', [()], [(0,)]),
    ("[1 2", [(0,)], [(), (1,)]),
]


@pytest.mark.parametrize(("text", "final", "open_or_absent"), FINAL)
def test_a_path_is_final_when_its_value_has_ended(text, final, open_or_absent):
    partial = fed(*text)
    assert [path for path in final if not partial.is_final(path)] == []
    assert [path for path in open_or_absent if partial.is_final(path)] == []


def paths(value: Any, path: tuple[Any, ...] = ()):
    """Every path that leads somewhere."""
    yield path
    if isinstance(value, dict | list):
        for step, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from paths(item, (*path, step))


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


@settings(deadline=None)
@given(texts)
def test_final_values_stay_and_the_others_are_those_that_lead_to_what_is_written(text):
    whole = json.loads(text)
    partial = PartialJSON()
    for c in text:
        partial.feed(c)
        for path in paths(partial.snapshot()) if partial.value is not MISSING else ():
            if partial.is_final(path):
                assert repr(at(partial.value, path)) == repr(at(whole, path))
            else:
                assert partial.path[: len(path)] == path


# -- what changed --


def test_changes_are_what_the_last_fragment_did():
    partial = PartialJSON()
    seen = []
    for fragment in ('{"a": "x', "", "y", '\\n", "b": [tr', "ue, 1", "2]", "}"):
        partial.feed(fragment)
        seen.append([(change.kind, change.path, repr(change.value)) for change in partial.changes])
    assert seen == [
        [("begun", (), "{'a': 'x'}"), ("begun", ("a",), "'x'"), ("grown", ("a",), "'x'")],
        [],
        [("grown", ("a",), "'y'")],
        [("grown", ("a",), r"'\n'"), ("ended", ("a",), r"'xy\n'"), ("begun", ("b",), "[]")],
        [("ended", ("b", 0), "True")],
        [("ended", ("b", 1), "12"), ("ended", ("b",), "[True, 12]")],
        [("ended", (), r"{'a': 'xy\n', 'b': [True, 12]}")],
    ]


def replay(top: list[Any], partial: PartialJSON) -> None:
    """Build the value from the changes alone."""
    for change in partial.changes:
        container, step = at([top], (0, 0, *change.path)[: len(change.path) + 1]), (0, *change.path)[-1]
        if isinstance(container, list) and step == len(container):
            container.append("")
        if change.kind == "begun":
            container[step] = {} if type(change.value) is dict else [] if type(change.value) is list else ""
        elif change.kind == "grown" and type(change.value) is str:
            container[step] += change.value
        elif not isinstance(change.value, dict | list):
            container[step] = change.value


@pytest.mark.parametrize("numbers", BOTH)
@settings(deadline=None)
@given(fragments=cuttings(texts | mutations()))
@example(fragments=['{"a":"', '"}'])
@example(fragments=["1", "2", ".", "5"])
def test_the_changes_alone_build_the_value(numbers, fragments):
    partial = PartialJSON(numbers=numbers)
    top: list[Any] = []
    for fragment in [*fragments, None]:
        partial.finish() if fragment is None else partial.feed(fragment)
        replay(top, partial)
        assert repr(top) == repr([] if partial.value is MISSING else [partial.snapshot()])


# -- against brute force, at every prefix --

#: An escape of a high surrogate with nothing after it, or the beginning of an escape.
WAITING = re.compile(r"(?<!\\)(?:\\\\)*(\\u[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u[0-9a-fA-F]{0,3})?)?)\Z")
NUMBER_AT_END = re.compile(r"(?:-|-?[0-9][0-9.eE+-]*)\Z")


def structure(text: str) -> tuple[str, bool]:
    """The brackets that close ``text``, and whether it ends inside a string."""
    closers, quoted, escaped = "", False, False
    for c in text:
        if quoted:
            quoted = escaped or c != '"'
            escaped = c == "\\" and not escaped
        elif c == '"':
            quoted = True
        elif c in "{[":
            closers = ("}" if c == "{" else "]") + closers
        elif c in "}]":
            closers = closers[1:]
    return closers, quoted


def brute_force(text: str, numbers: str) -> Any:
    """The value of the longest prefix that a quote and the missing brackets make JSON."""
    if structure(text)[1]:
        text = WAITING.sub(lambda match: match[0][: -len(match[1])], text)
    elif numbers == "ended":
        text = NUMBER_AT_END.sub("", text)
    for end in range(len(text), -1, -1):
        closers, quoted = structure(text[:end])
        try:
            return json.loads(text[:end] + '"' * quoted + closers)
        except ValueError:
            continue
    return MISSING


@cache
def documents() -> dict[str, str]:
    """JSON texts and beginnings of JSON texts: our own, the facts', jiter's and JSONTestSuite's."""
    found = {text: text for text, _ in COMPLETE if len(text) < 1000} | {text: text for text, *_ in SO_FAR}
    found |= {name: text for name, document in TRANSFORM.items() if (text := strict_text(document)) is not None}
    found |= {row["name"]: row["input"] for row in FACTS if row.get("strict_state", "invalid") != "invalid"}
    if CORPORA:
        for file in sorted((CORPORA / "pydantic+jiter" / "crates" / "jiter" / "benches").glob("*.json")):
            found[file.name] = file.read_text("utf-8")
    return found


FACTS: list[dict[str, Any]] = [
    row
    for library in (("jiter", "promplate", "vercel_fixjson") if CORPORA else ())
    for row in json.loads((CORPORA / "facts" / f"json_partial_{library}.json").read_bytes())
]


@pytest.mark.parametrize("numbers", BOTH)
@pytest.mark.parametrize("name", documents())
def test_every_prefix_has_the_value_that_brute_force_finds(name, numbers):
    text = documents()[name]
    partial = PartialJSON(numbers=numbers)
    for end, c in enumerate(text, 1):
        partial.feed(c)
        if len(text) < 3000 or end % 5 == 0:  # brute force is quadratic
            assert repr(partial.snapshot()) == repr(brute_force(text[:end], numbers)), text[:end]
    if partial.finish() == "complete":
        assert repr(partial.value) == repr(json.loads(text))


def test_all_documents_are_read():
    require_corpora()
    assert len(documents().keys() & {row["name"] for row in FACTS}) == 13 + 39 + 59
    assert len(documents().keys() & TRANSFORM.keys()) == 19
    assert len([name for name in documents() if name.endswith(".json")]) == 7


def grows_into(part: Any, whole: Any) -> bool:
    """Prefix order on trees: a text begins the other, members and items come in order, and only the last may be partial."""
    if type(part) is GrowingText:
        return type(whole) is str and whole.startswith(str(part))
    if type(part) is type(whole) and isinstance(part, dict | list):
        mine, theirs = (list(x.items() if type(x) is dict else enumerate(x)) for x in (part, whole))
        if not mine:
            return True
        *before, (step, last) = mine
        if len(mine) > len(theirs) or repr(before) != repr(theirs[: len(before)]):
            return False
        return step == theirs[len(before)][0] and grows_into(last, theirs[len(before)][1])
    return part is MISSING or repr(part) == repr(whole)


@settings(deadline=None)
@given(texts)
def test_every_prefix_grows_into_every_later_one_and_into_the_whole(text):
    whole = json.loads(text)
    partial = PartialJSON()
    earlier = MISSING
    for c in text:
        partial.feed(c)
        now = partial.snapshot()
        assert grows_into(partial.value, whole)
        assert len(repr(now)) >= len(repr(earlier)) or earlier is MISSING
        earlier = now
    partial.finish()
    assert repr(partial.value) == repr(whole)


def test_prefix_order_is_strict_where_it_should_be():
    text = GrowingText("ab")
    assert grows_into([1, text], [1, "abc", 2])
    assert not grows_into([text, 1], ["abc", 1])
    assert not grows_into(["ab"], ["abc"])
    assert not grows_into({"b": 1}, {"a": 0, "b": 1})
    assert not grows_into([1], [1.0])
    assert not grows_into([1, 2], [1])


@settings(deadline=None)
@given(texts, st.sampled_from(BOTH))
@example('["\\ud83d\\ud83d\\ude00\\u0041"]', "ended")
def test_a_prefix_of_generated_text_has_the_value_that_brute_force_finds(text, numbers):
    for end in range(0, len(text) + 1, 1 + len(text) // 40):
        assert repr(fed(text[:end], numbers=numbers).snapshot()) == repr(brute_force(text[:end], numbers))


# -- cuttings --


@settings(deadline=None)
@given(cuttings(texts | mutations()), st.sampled_from(BOTH))
@example(['["\\ud8', "3d\\u", "de00", '"]'], "ended")
@example(['{"a', "b\\", 'n":1', "2", "}"], "growing")
def test_any_cutting_gives_the_same_at_the_same_position(fragments, numbers):
    text = "".join(fragments)
    by_character = PartialJSON(numbers=numbers)
    expected = {0: facts(by_character)}
    for end, c in enumerate(text, 1):
        by_character.feed(c)
        expected[end] = facts(by_character)
    partial = PartialJSON(numbers=numbers)
    end = 0
    for fragment in fragments:
        partial.feed(fragment)
        end += len(fragment)
        assert facts(partial) == expected[end]
    by_character.finish()
    partial.finish()
    assert facts(partial) == facts(by_character)


@settings(deadline=None)
@given(cuttings(texts))
def test_generated_json_ends_as_the_json_module_reads_it(fragments):
    partial = fed(*fragments)
    assert partial.finish() == "complete"
    assert repr(partial.value) == repr(json.loads("".join(fragments)))
    assert partial.path == ()


@settings(deadline=None)
@given(mutations())
def test_state_position_and_reason_are_the_scanners(text):
    scanner = JSONScanner()
    partial = PartialJSON()
    for c in text:
        assert partial.feed(c) == scanner.feed(c)
    assert partial.finish() == scanner.finish()
    assert (partial.state, partial.position, partial.reason) == (scanner.state, scanner.position, scanner.reason)


@pytest.mark.parametrize("text", EVERY_TEXT)
def test_a_text_is_judged_as_the_scanner_judges_it_and_its_value_is_kept(text):
    scanner, partial = JSONScanner(depth=2000), PartialJSON(depth=2000)
    assert scanner.feed(text) == partial.feed(text)
    assert scanner.finish() == partial.finish()
    if partial.state == "complete" and len(text) < 1000:
        assert repr(partial.value) == repr(json.loads(text))


# -- facts about others --

ERROR = object()


def theirs(row: dict[str, Any]) -> Any:
    expected = row["expected"]
    if "kept_prefix" in expected:
        return json.loads(expected["kept_prefix"] + expected["completion"])
    if "error" in expected:
        return ERROR
    return expected.get("value", expected.get("partial_trailing_strings", expected.get("partial_on")))


NO_SWITCH = "their switch forbids this kind to be partial; here containers and strings always show"
NO_GUESS = "they complete a word from its first letters; here a word shows when whole"
NO_VALUE = "they give null, or nothing, where there is no value yet; here null is only what the text says"
KEPT = "they refuse the text; here it is malformed and what came before stays"
#: What ours shows instead, numbers growing, and why.
DIFFERENT = {
    "promplate-01": ([""], NO_SWITCH),
    "promplate-03": ({"": ""}, NO_SWITCH),
    "promplate-05": (MISSING, NO_GUESS),
    "promplate-06": (MISSING, NO_GUESS),
    "promplate-07": (MISSING, NO_GUESS),
    "promplate-12": ("", NO_SWITCH),
    "promplate-13": ([], NO_SWITCH),
    "promplate-14": ([""], NO_SWITCH),
    "promplate-15": ([""], NO_SWITCH),
    "promplate-16": ([""], NO_SWITCH),
    "promplate-17": ({}, NO_SWITCH),
    "promplate-18": ({}, NO_SWITCH),
    "promplate-19": ({}, NO_SWITCH),
    "promplate-20": ({}, NO_SWITCH),
    "promplate-21": ({"": ""}, NO_SWITCH),
    "promplate-22": ({"": ""}, NO_SWITCH),
    "promplate-23": (MISSING, NO_VALUE),
    "promplate-24": (MISSING, NO_VALUE),
    "promplate-25": (MISSING, NO_VALUE),
    "promplate-26": (MISSING, NO_VALUE),
    "promplate-27": (MISSING, KEPT),
    "promplate-28": ({}, KEPT),
    "promplate-29": (MISSING, KEPT),
    "promplate-fix-33": (MISSING, NO_GUESS),
    "promplate-fix-34": ([1], "their switch forbids numbers to be partial, as numbers='ended' does"),
    "promplate-fix-36": (["a", "b"], NO_SWITCH),
    "promplate-fix-37": (["a", "b"], NO_SWITCH),
    "promplate-fix-38": (["a", "b"], NO_SWITCH),
    "fixjson-00": (MISSING, NO_VALUE),
    "fixjson-01": (MISSING, NO_GUESS),
    "fixjson-02": (MISSING, NO_GUESS),
    "fixjson-03": (MISSING, NO_GUESS),
    "fixjson-07": (MISSING, NO_VALUE),
    "fixjson-30": ([[False], []], NO_GUESS),
}
#: Facts of one text without a partial value of theirs: an offset error, prefixes of files, three texts in one.
NO_PARTIAL_VALUE = {"jiter-17", "jiter-prefix-pass1", "jiter-prefix-medium", "promplate-infinity"}
COMPARED = [row for row in FACTS if row.get("input") is not None and row["name"] not in NO_PARTIAL_VALUE]


@pytest.mark.parametrize("row", COMPARED, ids=[row["name"] for row in COMPARED])
def test_what_others_show_is_shown_but_for_the_differences_listed(row):
    partial = fed(row["input"], numbers="growing")
    partial.finish()
    if row["name"] in DIFFERENT:
        ours, reason = DIFFERENT[row["name"]]
        assert repr(partial.snapshot()) == repr(ours)
        assert repr(ours) != repr(theirs(row)), reason
        assert (partial.state == "malformed") is (reason is KEPT)
    else:
        assert repr(partial.snapshot()) == repr(theirs(row))


def test_a_number_that_may_not_be_partial_there_is_not_shown_here_before_it_ended():
    (row,) = (row for row in FACTS if row["name"] == "promplate-fix-34") if FACTS else pytest.skip("no corpora")
    assert fed(row["input"]).value == theirs(row)


def test_all_facts_are_compared():
    require_corpora()
    assert len(FACTS) == 20 + 44 + 60
    assert len(COMPARED) == len(FACTS) - len(NO_PARTIAL_VALUE) - 5  # five are bytes
    assert set(DIFFERENT) <= {row["name"] for row in COMPARED}


@pytest.mark.parametrize(("name", "kind"), [("pass1.json", list), ("medium_response.json", dict)])
def test_every_prefix_of_a_long_document_has_the_kind_of_the_whole(name, kind):
    text = (require_corpora() / "pydantic+jiter" / "crates" / "jiter" / "benches" / name).read_text("utf-8")
    partial = PartialJSON()
    assert {type(partial.value) for c in text if partial.feed(c)} == {kind}


# -- linear work and bounded space --

MIXED = json.dumps(
    {"files": [{"path": "src/Zürich.py", "text": 'a "line"\n\U0001f600' * 9, "n": [-12.5e-7, 10**30, True, None]}] * 60}
)
LONG = json.dumps({"content": "one line of \t code\n" * 800})
DIGITS = '{"n":[' + "7" * 4000 + "." + "1" * 8000 + "]}"


def watched(monkeypatch, work: dict[str, int], name: str) -> None:
    inner = getattr(partial_arguments, name)

    def counting(text: str, i: int = 0) -> Any:
        found = inner(text, i)
        work[name] = work.get(name, 0) + (len(text) if name == "_decode" else found.end() - i)
        return found

    monkeypatch.setattr(partial_arguments, name, counting)


@pytest.mark.parametrize("size", [1, 7, 14, 100_000])
@pytest.mark.parametrize("text", [MIXED, LONG, DIGITS], ids=["mixed", "long", "digits"])
def test_each_character_is_walked_once_and_decoded_once_but_for_cut_escapes(monkeypatch, text, size):
    work: dict[str, int] = {}
    for name in ("_between", "_scalar", "_characters", "_decode"):
        watched(monkeypatch, work, name)
    partial = PartialJSON()
    for i in range(0, len(text), size):
        partial.feed(text[i : i + size])
        assert len(partial._cut) <= 11
        assert partial.value is partial.value
    assert partial.value == json.loads(text)
    decoded = work.pop("_decode", 0)
    assert sum(work.values()) <= len(text)
    assert decoded <= 3 * sum(work.values())  # two quotes around a fragment of one character


@pytest.mark.parametrize("text", [MIXED, LONG], ids=["mixed", "long"])
def test_looking_reads_no_text_and_copies_no_container(monkeypatch, text):
    reads: list[int] = []
    inner = GrowingText.data

    def counting(growing):
        reads.append(len(growing))
        return inner.fget(growing)

    monkeypatch.setattr(GrowingText, "data", property(counting, inner.fset))
    partial = PartialJSON()
    looks, ended = set(), 0
    for i in range(0, len(text), 14):
        partial.feed(text[i : i + 14])
        looks.add(id(partial.value))
        assert partial.path is not None
        assert partial.is_final(()) is (partial.state == "complete")
        ended += sum(type(change.value) is str and change.kind == "ended" for change in partial.changes)
        ended += text[i : i + 14].count('"')  # keys are read when they end, and make no change
        assert len(reads) <= ended
    assert len(looks) == 1
    assert sum(reads) <= len(text)  # each once, when it ended


def test_a_long_number_is_converted_when_it_has_ended_and_not_at_every_look(monkeypatch):
    converted: list[int] = []
    inner = partial_arguments._converted

    def counting(raw):
        converted.append(len(raw))
        return inner(raw)

    monkeypatch.setattr(partial_arguments, "_converted", counting)
    assert fed(*("[" + "7" * 20_000 + "]")).state == "complete"
    assert converted == [20_000]
    converted.clear()
    assert fed(*("[" + "7" * 20_000 + "]"), numbers="growing").state == "complete"
    assert converted == [*range(1, partial_arguments.GROWING_CHARS + 1), 20_000]


def test_memory_is_the_value_and_not_the_fragments():
    text = '{"a":"' + "x" * 400_000
    tracemalloc.start()
    try:
        partial = PartialJSON()
        for i in range(0, len(text), 14):
            partial.feed(text[i : i + 14])
        kept, peak = tracemalloc.get_traced_memory()
        partial.feed('"}')
        assert kept < 1.2 * len(text)
        assert peak < 1.3 * len(text)
        assert tracemalloc.get_traced_memory()[1] < 2.3 * len(text)  # parts and the whole, while they are joined
    finally:
        tracemalloc.stop()
