"""The text of a value must be the bytes that stood there, and its value what ``json`` finds at the same path."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkit.tool_calls import value_text as module
from streamkit.tool_calls.value_text import ValueTexts, item_texts, member_texts, value_text, with_members

OLLAMA = b'{"message":{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{"a":1.0}}}]},"done":false}'

#: Document, path, text.
VECTORS = [
    (b'{"message":{"tool_calls":[{"function":{"arguments":{"a":1.0}}}]}}', ("message", "tool_calls", 0, "function", "arguments"), '{"a":1.0}'),
    (OLLAMA, ("message", "tool_calls", 0, "function", "arguments"), '{"a":1.0}'),
    (OLLAMA, ("message", "role"), '"assistant"'),
    (OLLAMA, ("done",), "false"),
    (b' \n{"a": 1} \n', (), '{"a": 1}'),
    (b"1e21", (), "1e21"),
    (b'"a b" ', (), '"a b"'),
    (b'{"a":1.0,"b":1e21,"c":18446744073709551616}', ("a",), "1.0"),
    (b'{"a":1.0,"b":1e21,"c":18446744073709551616}', ("b",), "1e21"),
    (b'{"a":1.0,"b":1e21,"c":18446744073709551616}', ("c",), "18446744073709551616"),
    (b'{"a":{"z":1,"y":2,"x":[ 3 , 4]}}', ("a",), '{"z":1,"y":2,"x":[ 3 , 4]}'),
    (b'{ "a" : { "b" : [ 1 , "x,]}" , 2.50 ] } }', ("a", "b", 2), "2.50"),
    (b'{ "a" : { "b" : [ 1 , "x,]}" , 2.50 ] } }', ("a", "b", 1), '"x,]}"'),
    (b'[{"a":"]"},{"a":"\\"}"},{"a":"\\\\"}]', (2, "a"), '"\\\\"'),
    (b'[{"a":"]"},{"a":"\\"}"},{"a":"\\\\"}]', (1, "a"), '"\\"}"'),
    (b"[[],[[]],[[],[1]]]", (2, 1), "[1]"),
    (b'{"a":[],"b":{},"c":null}', ("a",), "[]"),
    (b'{"a":[],"b":{},"c":null}', ("b",), "{}"),
    (b'{"a":[],"b":{},"c":null}', ("c",), "null"),
    (b'{"\\u0061":1}', ("a",), "1"),
    (b'{"\\"\\\\":1}', ('"\\',), "1"),
    (b'{"\\ud83d\\ude00":1}', ("😀",), "1"),
    (b'{"\\ud800":1}', ("\ud800",), "1"),
    ('{"é":"ü"}'.encode(), ("é",), '"ü"'),
    (b'{"":{"":1}}', ("", ""), "1"),
    (b'{"0":"key","a":["item"]}', ("0",), '"key"'),
    (b'{"a":"\xff"}', ("a",), '"\ufffd"'),
    # of duplicate keys the last one counts, on every level
    (b'{"a":1,"a":2}', ("a",), "2"),
    (b'{"a":1,"\\u0061":2}', ("a",), "2"),
    (b'{"a":{"b":1,"b":2},"a":{"b":3,"b":4},"c":5}', ("a", "b"), "4"),
    (b'{"a":[1,2],"a":[3]}', ("a", 0), "3"),
    (b'{"a":1,"a":{"b":2}}', ("a", "b"), "2"),
]  # fmt: skip
#: Document, path, error, the step that it names and the path before that.
MISSING = [
    (b"{}", ("a",), KeyError, "no 'a' at []"),
    (b'{"a":{"b":1}}', ("a", "c"), KeyError, "no 'c' at ['a']"),
    (b'{"a":{"b":1}}', ("c", "b"), KeyError, "no 'c' at []"),
    (b'{"a":1}', ("a", "b"), KeyError, "no 'b' at ['a']"),
    (b'{"a":"b"}', ("a", "b"), KeyError, "no 'b' at ['a']"),
    (b"[1,2]", (2,), IndexError, "no 2 at []"),
    (b"[]", (0,), IndexError, "no 0 at []"),
    (b"[1,2]", (-1,), IndexError, "no -1 at []"),
    (b"[[1]]", (0, 1), IndexError, "no 1 at [0]"),
    (b"[[1]]", (0, "a"), KeyError, "no 'a' at [0]"),
    (b'{"0":1}', (0,), IndexError, "no 0 at []"),
    (b'{"0":1}', (-1,), IndexError, "no -1 at []"),
    (b'["0"]', ("0",), KeyError, "no '0' at []"),
    (b'{"x":{"a":1}}', ("a",), KeyError, "no 'a' at []"),
    # what an earlier duplicate led to is void
    (b'{"a":{"b":1},"a":{"c":2}}', ("a", "b"), KeyError, "no 'b' at ['a']"),
    (b'{"a":{"b":1},"a":2}', ("a", "b"), KeyError, "no 'b' at ['a']"),
    (b'{"a":[1,2],"a":[1]}', ("a", 1), IndexError, "no 1 at ['a']"),
]


@pytest.mark.parametrize(("document", "path", "text"), VECTORS)
def test_the_text_at_a_path_keeps_its_bytes(document, path, text):
    assert value_text(document, *path) == text


@pytest.mark.parametrize(("document", "path", "error", "message"), MISSING)
def test_a_step_that_leads_nowhere_is_named(document, path, error, message):
    with pytest.raises(error) as caught:
        value_text(document, *path)
    assert caught.value.args == (message,)


def test_numbers_keep_what_a_parsed_value_loses():
    document = b'{"arguments":{"a":1.0,"b":1e21,"c":18446744073709551616,"d":1E400,"e":0.%s}}' % (b"1" * 100)
    text = value_text(document, "arguments")
    assert text.encode() == document[len(b'{"arguments":') : -1]
    parsed = orjson.loads(document.replace(b"1E400", b"1"))["arguments"]
    assert orjson.dumps(parsed).decode() != text.replace("1E400", "1")


# -- against json --

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=15,
)


def paths(value: Any, before: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [before, *(path for step, inner in items for path in paths(inner, (*before, step)))]


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


@given(values, st.booleans(), st.sampled_from([(",", ":"), (", ", ": "), (" ,\r\n", "\t: ")]))
def test_every_path_of_a_generated_document_leads_to_its_text(value, ensure_ascii, separators):
    def dumped(part):
        return json.dumps(part, ensure_ascii=ensure_ascii, separators=separators)

    document = dumped(value).encode("utf-8", "replace")
    for path in paths(value):
        assert value_text(document, *path) == dumped(at(value, path)).encode("utf-8", "replace").decode()


keys = st.sampled_from(['"a"', '"b"', '"\\u0061"', '"\\\\"'])
documents = st.recursive(
    st.sampled_from(["1", "2.0", "null", '"a"', '"]}\\""', "{}", "[]"]),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{' , '.join(items)}]")
        | st.lists(st.tuples(keys, inner), max_size=4).map(lambda pairs: f"{{{', '.join(map(': '.join, pairs))}}}")
    ),
    max_leaves=20,
)


@given(documents, st.lists(st.sampled_from(["a", "b", "\\", 0, 1]), max_size=4))
def test_duplicate_keys_are_read_as_json_reads_them(document, path):
    found: Any = json.loads(document)
    for number, step in enumerate(path):
        fits = isinstance(found, dict) if isinstance(step, str) else isinstance(found, list)
        try:
            found = found[step] if fits else {}[step]
        except LookupError:
            with pytest.raises(KeyError if isinstance(step, str) else IndexError) as caught:
                value_text(document.encode(), *path)
            assert caught.value.args == (f"no {step!r} at {path[:number]}",)
            return
    assert json.loads(value_text(document.encode(), *path)) == found


# -- linear work --


def test_no_byte_is_walked_twice_however_long_the_path(monkeypatch):
    spans: list[tuple[int, int]] = []

    def watch(name, end_of):
        walk = getattr(module, name)

        def watched(document, start):
            result = walk(document, start)
            spans.append((start, end_of(result)))
            return result

        monkeypatch.setattr(module, name, watched)

    watch("_between", lambda match: match.end())
    watch("_key", lambda match: match.end())
    watch("_skip", lambda end: end)
    item = '{"x":[1,{"y":"]"}],"a":"no"},'
    document = ('{"b":' + item + '"a":[' + item) * 30 + "1" + "]}" * 30
    assert value_text(document.encode(), *["a", 1] * 30) == "1"
    assert all(start >= end for (_, end), (start, _) in pairwise(spans))
    assert len(document) - 4 * 30 <= sum(end - start for start, end in spans) <= len(document)


def test_depth_beyond_the_interpreters_stack_is_walked():
    deep = b"[" * 50_000 + b"7" + b"]" * 50_000
    assert value_text(b'{"a":' + deep + b',"b":1.50}', "b") == "1.50"
    assert value_text(deep, *[0] * 50_000) == "7"


def test_a_long_string_of_escapes_is_skipped():
    document = b'{"a":"%s","b":1}' % (b'\\"x' * 300_000)
    assert value_text(document, "b") == "1"


@pytest.mark.parametrize(
    ("array", "items"),
    [
        ("[]", []),
        (" [ ] ".strip(), []),
        ('[1, "a,]" ,{"b":[1,{}]},[ [] ],null]', ["1", '"a,]"', '{"b":[1,{}]}', "[ [] ]", "null"]),
        ('["\\"","é"]', ['"\\""', '"é"']),
    ],
)
def test_the_items_of_an_array_are_cut_apart(array, items):
    assert [text.decode() for text in item_texts(array)] == items


@pytest.mark.parametrize(("document", "path", "text"), VECTORS)
def test_one_of_many_is_the_same_text(document, path, text):
    texts = ValueTexts(document)
    assert texts.text(*path) == text
    assert texts.text(*path) == text


def test_one_of_many_that_is_not_there_is_named():
    texts = ValueTexts(b'{"a":[1]}')
    for path in ("b",), ("a", 1), ("a", 0, "c"):
        with pytest.raises(KeyError):
            texts.text(*path)


def test_many_texts_take_one_walk_of_each_container(monkeypatch):
    document = orjson.dumps({"calls": [{"name": "f", "arguments": {"a": number}} for number in range(500)]})
    skipped = []
    skip = module._skip
    monkeypatch.setattr(module, "_skip", lambda document, at: skipped.append(at) or skip(document, at))
    texts = ValueTexts(document)
    assert [texts.text("calls", n, "arguments") for n in range(500)] == [f'{{"a":{n}}}' for n in range(500)]
    assert len(skipped) == 1 + 500 + 2 * 500


@pytest.mark.parametrize(
    ("document", "texts"),
    [
        (b'{"args":{"a":1.0}}', ['{"a":1.0}']),
        (b'[{"args" : {"a": "]}"} } , {"args":\n[1 , 2] , "b":"\\"args\\""}]', ['{"a": "]}"}', "[1 , 2]"]),
        (b'{"b":{"args":"\xff"},"c":{"args":-1e21}}', ['"\ufffd"', "-1e21"]),
        (b"{}", []),
    ],
)
def test_members_of_one_name_are_found_without_a_walk(document, texts):
    assert member_texts(document, "args", len(texts)) == texts


@pytest.mark.parametrize(
    "document",
    [
        b'{"args":1,"args":2}',
        b'{"args":{"args":2}}',
        b'{"args":1,"b":"args"}',
        b'{"args":1,"b":"\\"args"}',
        b'{"\\u0061rgs":1,"b":"args"}',
    ],
)
def test_a_name_that_may_stand_elsewhere_needs_a_walk(document):
    assert member_texts(document, "args", 1) is None


@pytest.mark.parametrize(
    ("document", "path", "written"),
    [
        (b' {"a": 1.0, "b" : [1]} ', (), b' {"c":3,"a": 2, "b" : [1]} '),
        (b"{}", (), b'{"a":2,"c":3}'),
        (b'{"c":{},"x":{"a":"}"}}', ("x",), b'{"c":{},"x":{"c":3,"a":2}}'),
        (b'{"a":0,"a":{"c":1.50}}', ("a",), b'{"a":0,"a":{"a":2,"c":3}}'),
    ],
)
def test_members_take_their_places_and_all_else_stays(document, path, written):
    assert with_members(document, {"a": b"2", "c": b"3"}, *path) == written
