"""What is said of a call while it streams: when, why, once, and never against the verdict at the end."""

from __future__ import annotations

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkit.events import (
    StreamEnded,
    TextDelta,
    ToolCallArguments,
    ToolCallDelta,
    ToolCallDoomed,
    ToolCallFinished,
    ToolCallStarted,
)
from streamkit.limits import Limits
from streamkit.machines import Chain
from streamkit.pipeline import pipe
from streamkit.tool_calls import early
from streamkit.tool_calls.accumulate import ToolCallAccumulator, accumulate_tool_calls
from streamkit.tool_calls.check import JSONChecker, check_json
from streamkit.tool_calls.early import EarlySchemaChecker, check_schema_early
from streamkit.tool_calls.schema import BadToolSchema, ToolSchemas

STARTED = ToolCallStarted(0, "i", "f")


def checker(schema, **rest):
    return EarlySchemaChecker(ToolSchemas({"f": schema}), {}, **rest)


def doom(schema, text, step=1):
    """After how many characters a call is doomed, where and why; None if it is not."""
    machine = checker(schema)
    machine.feed([STARTED])
    for i in range(0, len(text), step):
        out = machine.feed([ToolCallArguments(0, text[i : i + step])])
        found = [event for event in out if isinstance(event, ToolCallDoomed)]
        if found:
            return min(i + step, len(text)), found[0].path, found[0].reason
    return None


def properties(**schemas):
    return {"type": "object", "properties": schemas}


CLOSED = {**properties(a={"type": "integer"}), "additionalProperties": False}
UNION = {"anyOf": [{"type": "string"}, {"type": "null"}]}
LINKED = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            **properties(next={"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}, n={"type": "integer"}),
            "additionalProperties": False,
        }
    },
}
#: A schema, a text that its last character spoils, and where.
DOOMED = [
    (properties(a={"type": "integer"}), '{"a":"', ("a",)),
    (properties(a={"type": "integer"}), '{"a":[', ("a",)),
    (properties(a={"type": "integer"}), '{"a":1.5,', ("a",)),
    (properties(a={"type": "integer"}), '{"a":true', ("a",)),
    (properties(a={"type": ["string", "null"]}), '{"a":1}', ("a",)),
    (properties(a={"enum": ["north", "south"]}), '{"a":"nog', ("a",)),
    (properties(a={"enum": ["north", "south"]}), '{"a":"nor"', ("a",)),
    (properties(a={"enum": ["north", "south"]}), '{"a":"northe', ("a",)),
    (properties(a={"enum": ["a\\"]}), '{"a":"a\\n', ("a",)),
    (properties(a={"const": "é"}), '{"a":"\\u00e8', ("a",)),
    (properties(a={"const": 1}), '{"a":2,', ("a",)),
    (properties(a={"const": 1}), '{"a":true', ("a",)),
    (properties(a={"enum": [True, None]}), '{"a":false', ("a",)),
    (properties(a={"enum": ["x", 1]}), '{"a":{', ("a",)),
    (properties(a={"const": "x", "enum": ["y"]}), '{"a":"x', ("a",)),
    (properties(a=False), '{"a":[', ("a",)),
    (properties(a=UNION), '{"a":1,', ("a",)),
    (properties(a={"oneOf": [{"enum": ["x"]}, {"type": "null"}]}), '{"a":"y', ("a",)),
    (properties(a={"allOf": [{"type": "number"}, {"type": "integer"}]}), '{"a":0.5}', ("a",)),
    (CLOSED, '{"a":1,"b":[', ("b",)),
    (CLOSED, '{"b":null', ("b",)),
    ({"type": "object", "additionalProperties": {"type": "null"}}, '{"b":"', ("b",)),
    (properties(a={"items": {"type": "null"}}), '{"a":[null,1,', ("a", 1)),
    (properties(a={"prefixItems": [True, {"type": "null"}], "items": False}), '{"a":[1,2,', ("a", 1)),
    (properties(a={"prefixItems": [True], "items": False}), '{"a":[1,{', ("a", 1)),
    (LINKED, '{"next":{"next":{"n":"', ("next", "next", "n")),
    (LINKED, '{"next":{"next":{"m":1}', ("next", "next", "m")),
    ({"$schema": "http://json-schema.org/draft-07/schema#", **CLOSED}, '{"b":"', ("b",)),
    (True, "[", ()),
    (True, '"', ()),
    (False, "{", ()),
    (True, '{"a":1,}', ()),
    (True, '{"a" "', ()),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "text", "path"), DOOMED, ids=lambda value: json.dumps(value)[:60])
def test_a_call_is_doomed_at_the_first_impossible_character(schema, text, path):
    for step in (1, 2, 3, len(text)):
        at, where, reason = doom(schema, text + " " * 20, step)
        assert at <= len(text) + step
        assert where == path
        assert reason
    assert doom(schema, text)[0] == len(text)
    assert doom(schema, text[:-1]) is None


#: Schemas of which something is ignored, and texts that they refuse at the end or allow after all.
SILENT = [
    (properties(a={"type": "integer"}), '{"a":1.0,"b":2}'),
    (properties(a={"type": "integer"}), '{"a":1e400}'),
    (properties(a={"const": 1}), '{"a":1.0}'),
    (properties(a={"const": 2**53}), '{"a":9007199254740993}'),
    (properties(a={"enum": [[1]]}), '{"a":[2]}'),
    (properties(a={"type": "string", "maxLength": 1}), '{"a":"xx"}'),
    (properties(a={"pattern": "^x"}), '{"a":"yy"}'),
    (properties(a={"not": {"type": "string"}}), '{"a":"yy"}'),
    ({**CLOSED, "patternProperties": {"^b": True}}, '{"b":1,"c":2}'),
    ({"unevaluatedProperties": False}, '{"b":1}'),
    (properties(a={"anyOf": [CLOSED, properties(b={"type": "null"})]}), '{"a":{"b":1}}'),
    ({"if": {"required": ["a"]}, "then": CLOSED}, '{"a":"x"}'),
    ({"$schema": "http://json-schema.org/draft-04/schema#", **properties(a={"const": 1})}, '{"a":2}'),
    ({"$schema": "http://json-schema.org/draft-07/schema#", **properties(a={"prefixItems": [False]})}, '{"a":[2]}'),
    (
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            **properties(a={"$ref": "#/definitions/n", "type": "string"}),
            "definitions": {"n": {"type": "integer"}},
        },
        '{"a":2}',
    ),
    (
        {  # inside another base URI "#" is another place
            "$defs": {"x": {"type": "null"}},
            "allOf": [{"$id": "urn:i", "$defs": {"x": {}}, **properties(a={"$ref": "#/$defs/x"})}],
        },
        '{"a":2}',
    ),
]


@pytest.mark.parametrize(("schema", "text"), SILENT, ids=lambda value: json.dumps(value)[:60])
def test_nothing_is_said_where_it_is_not_certain(schema, text):
    for step in (1, 3, len(text)):
        assert doom(schema, text, step) is None


def test_a_key_that_comes_again_can_not_mend_what_was_said():
    text = '{"a":"x","a":1}'
    assert doom(CLOSED, text) is not None
    assert ToolSchemas({"f": CLOSED}).check("f", text).kind == "schema_invalid"


def test_a_call_of_an_unknown_tool_is_doomed_at_its_start():
    start = ToolCallStarted(2, "i", "g", 1)
    assert checker({}).feed([start, ToolCallArguments(2, "{", 1)]) == [
        start,
        ToolCallDoomed(2, 1, (), "unknown_tool"),
        ToolCallArguments(2, "{", 1),
    ]


def test_it_is_said_once_behind_the_event_that_decided_it():
    machine = checker(CLOSED)
    events = [STARTED, ToolCallArguments(0, '{"b":"'), ToolCallArguments(0, '","c":[]}'), TextDelta("x")]
    out = machine.feed(events)
    assert out == [*events[:2], ToolCallDoomed(0, 0, ("b",), "the key is not allowed"), *events[2:]]
    ends = [ToolCallFinished(0, "i", "f", '{"b":"","c":[]}'), StreamEnded(clean=True)]
    assert machine.feed(ends) == ends
    assert machine.finish() == machine.abandon() == []
    assert machine._open == {}


def test_custom_and_nameless_calls_are_left_alone():
    events = [
        ToolCallStarted(0, "i", "shell", kind="custom"),
        ToolCallArguments(0, "["),
        ToolCallStarted(1, "i", ""),
        ToolCallArguments(1, "["),
    ]
    assert checker({}).feed(events) == events


def test_depth_is_the_verdicts():
    out = checker({}, limits=Limits(json_depth=2)).feed([STARTED, ToolCallArguments(0, '{"a":{"b":{')])
    assert out[-1].reason == "not valid JSON: nested deeper than 2"


def test_a_bad_schema_is_refused_when_the_stage_is_made():
    with pytest.raises(BadToolSchema):
        check_schema_early([{"name": "f", "input_schema": {"type": "x"}}])


async def test_the_stage_stands_between_accumulation_and_check():
    async def source():
        yield [ToolCallDelta(index=0, id="i", name="f", arguments='{"b":"')]
        yield [ToolCallDelta(index=0, arguments='x"}')]

    tools = ToolSchemas({"f": CLOSED})
    async with pipe(source(), accumulate_tool_calls(), check_schema_early(tools), check_json(tools=tools)) as batches:
        types = [[type(event) for event in batch] async for batch in batches]
    assert types[0] == [ToolCallStarted, ToolCallArguments, ToolCallDoomed]


def test_the_time_is_linear_in_text_and_alternatives():
    many = ["common/prefix/" * 20 + str(i) for i in range(500)]
    schema = properties(a={"items": {"enum": many}})
    text = json.dumps({"a": many[:1] * 400})
    assert doom(schema, text, 7) is None  # or the time limit of a test ends it


# -- never against the end ---------------------------------------------------------------------------------------------

KEYS = st.sampled_from(["a", "b", "ab", "c"])
SCALARS = st.sampled_from(
    [None, True, False, 0, 1, 1.0, 0.5, -1, 2**53, 2**53 + 1, 2**64, "", "a", "ab", "abc", "b", "é"]
)
TYPES = st.sampled_from(["object", "array", "string", "integer", "number", "boolean", "null"])
REFERENCES = st.sampled_from(["#", "#/$defs/a", "#/$defs/b"])


def keywords(inner):
    """A schema with up to four keywords, and what they need."""
    values = {
        "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
        "enum": st.lists(SCALARS | st.just([]) | st.just({}), min_size=1, max_size=4),
        "const": SCALARS,
        "properties": st.dictionaries(KEYS, inner, min_size=1, max_size=3),
        "additionalProperties": st.just(False) | inner,
        "patternProperties": st.dictionaries(st.sampled_from(["^a", "c"]), inner, max_size=1),
        "items": inner,
        "prefixItems": st.lists(inner, min_size=1, max_size=2),
        "allOf": st.lists(inner, min_size=1, max_size=2),
        "anyOf": st.lists(inner, min_size=1, max_size=3),
        "oneOf": st.lists(inner, min_size=1, max_size=3),
        "not": inner,
        "if": inner,
        "then": inner,
        "required": st.lists(KEYS, max_size=2, unique=True),
        "$ref": REFERENCES,
    }
    pairs = st.sampled_from(list(values)).flatmap(lambda keyword: st.tuples(st.just(keyword), values[keyword]))
    return st.lists(pairs, max_size=4).map(dict)


SCHEMAS = st.recursive(
    st.booleans() | st.builds(dict, type=TYPES) | st.builds(dict, const=SCALARS), keywords, max_leaves=5
)
DRAFT_NAMES = st.sampled_from(
    [
        None,
        "https://json-schema.org/draft/2020-12/schema",
        "https://json-schema.org/draft/2019-09/schema",
        "http://json-schema.org/draft-07/schema#",
        "http://json-schema.org/draft-06/schema#",
        "http://json-schema.org/draft-04/schema#",
    ]
)


@st.composite
def tool_schemas(draw):
    schema = draw(keywords(SCHEMAS))
    schema["$defs"] = draw(st.fixed_dictionaries({"a": SCHEMAS, "b": SCHEMAS}))
    if (draft := draw(DRAFT_NAMES)) is not None:
        schema["$schema"] = draft
    return schema


VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=8
)


@st.composite
def documents(draw):
    """Texts of objects, some with a key twice, some with what is no JSON."""
    text = json.dumps(draw(st.dictionaries(KEYS, VALUES, max_size=3)), ensure_ascii=draw(st.booleans()))
    spoil = draw(st.sampled_from(["", "", "", "", "twice", "cut", "stray", "large", "surrogate"]))
    at = draw(st.integers(0, len(text)))
    if spoil == "twice":
        return text.replace('"b"', '"a"')
    if spoil == "cut":
        return text[:at]
    if spoil == "stray":
        return text[:at] + draw(st.sampled_from(',]}"x')) + text[at:]
    if spoil == "large":
        return text.replace("1", draw(st.sampled_from(["1e400", "1" + "0" * 400, "1" + "0" * 4400])))
    return text.replace("é", "\\ud800") if spoil == "surrogate" else text


@given(tool_schemas(), st.lists(documents(), min_size=1, max_size=4), st.integers(1, 7), st.booleans())
def test_what_is_said_early_is_never_contradicted(schema, texts, step, ended):
    try:
        tools = ToolSchemas({"f": schema})
        tools.compile()
    except BadToolSchema:
        return
    views: dict = {}
    for text in texts:
        machine = EarlySchemaChecker(tools, views)
        out = machine.feed([STARTED])
        for i in range(0, len(text), step):
            out += machine.feed([ToolCallArguments(0, text[i : i + step])])
        found = [event for event in out if isinstance(event, ToolCallDoomed)]
        assert len(found) <= 1
        (end,) = JSONChecker(tools=tools).feed([ToolCallFinished(0, "i", "f", text, ended=ended)])
        if found:
            assert end.verdict.kind not in {"complete", "empty"}, found
            assert end.verdict.kind in {"schema_invalid", "malformed", "truncated", "not_an_object", "unchecked"}


@given(st.lists(documents(), min_size=1, max_size=3), st.integers(1, 9))
def test_behind_the_accumulator_doom_and_verdict_agree_for_each_call(texts, step):
    tools = ToolSchemas({"f": {**CLOSED, "properties": {"a": {"enum": ["ab", 1]}, "b": UNION}}})
    deltas = [ToolCallDelta(index=k, id=f"call_{k}", name="f") for k in range(len(texts))]
    for start in range(0, max(map(len, texts)), step):
        deltas += [ToolCallDelta(index=k, arguments=text[start : start + step]) for k, text in enumerate(texts)]
    chain = Chain(ToolCallAccumulator(), EarlySchemaChecker(tools, {}), JSONChecker(tools=tools))
    out = [event for delta in deltas for event in chain.feed([delta])] + chain.finish()
    doomed = [event.call for event in out if isinstance(event, ToolCallDoomed)]
    assert len(doomed) == len(set(doomed))
    verdicts = {event.call: event.verdict.kind for event in out if isinstance(event, ToolCallFinished)}
    assert {verdicts[call] for call in doomed} <= {"schema_invalid", "malformed", "truncated", "not_an_object"}


@given(tool_schemas(), documents())
def test_a_doomed_call_is_doomed_wherever_its_text_was_cut(schema, text):
    try:
        tools = ToolSchemas({"f": schema})
    except BadToolSchema:
        return
    said = set()
    for step in (1, 2, 5, 10_000):
        machine = EarlySchemaChecker(tools, {})
        out = machine.feed([STARTED, *(ToolCallArguments(0, text[i : i + step]) for i in range(0, len(text), step))])
        said.add(any(isinstance(event, ToolCallDoomed) for event in out))
    assert len(said) == 1


# -- growth ------------------------------------------------------------------------------------------------------------


def doubled(levels, wrap):
    definitions = {f"d{n}": wrap({"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2}) for n in range(levels)}
    return {**definitions, f"d{levels}": {"enum": [f"v{n}" for n in range(100)]}}


def enum_of(size):
    return {"properties": {"a": {"enum": [f"v{n}" for n in range(size)]}}}, '{"a":"v1"}'


def union_of(size):
    return {"properties": {"a": {"anyOf": [{"const": f"v{n}"} for n in range(size)]}}}, '{"a":"v1"}'


def numbers_of(size):
    return {"properties": {"a": {"enum": list(range(size))}}}, '{"a":1}'


def doubling_at_one_value(size):
    definitions = doubled(size // 1000, lambda schema: schema)
    return {"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": definitions}, '{"a":"v1"}'


def doubling_along_a_path(size):
    levels = size // 250
    definitions = doubled(levels, lambda schema: {"properties": {"a": schema}})
    return {"$ref": "#/$defs/d0", "$defs": definitions}, '{"a":' * levels + "{}" + "}" * levels


def references_to_one_enum(size):
    keys = {f"k{n}": {"allOf": [{"$ref": "#/$defs/e"}] * 2} for n in range(size // 20)}
    schema = {"properties": keys, "$defs": {"e": {"enum": [f"v{n}" for n in range(size // 20)]}}}
    return schema, json.dumps(dict.fromkeys(keys, "v1"))


def a_union_at_each_item(size):
    branches = [{"properties": {"a": {"enum": [n]}}, "required": ["a"]} for n in range(size // 10)]
    return {"properties": {"a": {"items": {"allOf": branches}}}}, json.dumps({"a": [{"a": 0}] * (size // 10)})


SHAPES = [
    enum_of, union_of, numbers_of, doubling_at_one_value, doubling_along_a_path, references_to_one_enum, a_union_at_each_item,
]  # fmt: skip


#: As many schemas as values in each, or as many schemas at one value as there are values: only the budget stops them.
BUDGETED = {references_to_one_enum, a_union_at_each_item}


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
@pytest.mark.parametrize("step", [3, 1 << 20])
def test_looking_early_grows_with_schema_and_text_or_stops(shape, step, monkeypatch):
    """Calls of functions, and the values that unions and intersections of sets read."""
    read = 0
    union, narrower = early._union, early._narrower

    def counted_union(found):
        nonlocal read
        read += sum(len(values or ()) for values in found)
        return union(found)

    def counted_narrower(a, b):
        nonlocal read
        read += len(a or ()) + len(b or ())
        return narrower(a, b)

    if shape in BUDGETED:
        monkeypatch.setattr(early, "MAX_WORK", 5_000)
        monkeypatch.setattr(early, "MAX_LOOKS", 5_000)
    monkeypatch.setattr(early, "_union", counted_union)
    monkeypatch.setattr(early, "_narrower", counted_narrower)

    def work(size):
        nonlocal read
        schema, text = shape(size)
        machine = EarlySchemaChecker(ToolSchemas({"f": schema}), {})
        read = calls = 0

        def counted(_frame, event, _argument):
            nonlocal calls
            calls += event in {"call", "c_call"}

        sys.setprofile(counted)
        try:
            machine.feed([STARTED])
            for at in range(0, len(text), step):
                machine.feed([ToolCallArguments(0, text[at : at + step])])
        finally:
            sys.setprofile(None)
        return calls + read

    once, twice = work(4000), work(8000)
    assert twice <= 2.3 * once + 500


def test_past_the_looks_a_call_is_followed_no_further(monkeypatch):
    monkeypatch.setattr(early, "MAX_LOOKS", 20)
    tools = ToolSchemas({"f": {"properties": {"a": {"items": {"type": "integer"}}}}})
    text = json.dumps({"a": [1] * 50 + ["x"]})
    for step in (1, 7, 1000):
        machine = EarlySchemaChecker(tools, {})
        out = machine.feed([STARTED, *(ToolCallArguments(0, text[i : i + step]) for i in range(0, len(text), step))])
        assert not [event for event in out if isinstance(event, ToolCallDoomed)]
        assert not machine._open
    machine = EarlySchemaChecker(tools, {})
    assert isinstance(machine.feed([STARTED, ToolCallArguments(0, '{"a":["x"')])[-1], ToolCallDoomed)
