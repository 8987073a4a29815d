"""What a check costs is counted before it is made: growth is seen without paying for it, and ordinary schemas are not refused."""

from __future__ import annotations

import json
import sys

import pytest

from streamkit.events import ToolCallFinished, Verdict
from streamkit.tool_calls.check import error_text, is_bad
from streamkit.tool_calls.schema import MAX_UNITS, UNCHECKED, ToolSchemas
from streamkit.tool_calls.schema_cost import PatternCost, SchemaCost, SchemaGraph
from tests.tool_calls.test_schema import EXPRESSION, expression

ENOUGH = 10**12


def units(schema, value, *, remembered=False):
    return SchemaCost(SchemaGraph(schema), remembered=remembered).units(value, ENOUGH)


def nested(levels, leaf=None):
    value = {} if leaf is None else leaf
    for _ in range(levels):
        value = {"a": value}
    return value


def doubled(levels, keyword="allOf", reference="$ref"):
    """Definitions that each apply the next one twice to the value inside."""
    definitions = {
        f"d{n}": {"properties": {"a": {keyword: [{"$ref": f"#/$defs/d{n + 1}"}] * 2}}} for n in range(levels)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**definitions, f"d{levels}": {"type": "object"}}}


def inside(levels, wrap):
    schema = {"properties": {"a": True}}
    for _ in range(levels):
        schema = wrap(schema)
    return schema


#: Schemas of n levels with arguments of n levels, of which checking takes twice as long, or more, for each level.
EXPONENTIAL = {
    "allOf": lambda n: (doubled(n), nested(n)),
    "anyOf": lambda n: (doubled(n, "anyOf"), nested(n)),
    "oneOf": lambda n: (doubled(n, "oneOf"), nested(n)),
    "items": lambda n: (
        inside(n, lambda schema: {"properties": {"a": {"allOf": [{"items": schema}] * 2}}}),
        json.loads('{"a":[' * n + "1" + "]}" * n),
    ),
    "additionalProperties": lambda n: (
        inside(n, lambda schema: {"allOf": [{"additionalProperties": schema}] * 2}), nested(n),
    ),
    "patternProperties": lambda n: (
        inside(n, lambda schema: {"allOf": [{"patternProperties": {"": schema}}] * 2}), nested(n),
    ),
    "dependentSchemas": lambda n: (
        inside(n, lambda schema: {"dependentSchemas": {"a": {"properties": {"a": schema}}}, "properties": {"a": schema}}),
        nested(n),
    ),
    "if": lambda n: (inside(n, lambda schema: {"properties": {"a": {"if": schema, "then": schema}}}), nested(n)),
    "not": lambda n: (inside(n, lambda schema: {"properties": {"a": {"not": schema, "anyOf": [schema]}}}), nested(n)),
    "unevaluated": lambda n: (
        inside(n, lambda schema: {"anyOf": [schema], "unevaluatedProperties": False}), {"a": 1},
    ),
    "contains": lambda n: (
        inside(n, lambda schema: {"properties": {"a": {"contains": schema, "items": schema}}}),
        json.loads('{"a":[' * n + "1" + "]}" * n),
    ),
}  # fmt: skip


def unshared(schema):
    """The schema as text makes it: no object in two places."""
    return json.loads(json.dumps(schema))


@pytest.mark.parametrize("shape", EXPONENTIAL)
def test_what_doubles_with_each_level_is_counted_so(shape):
    few, more = (units(*map(unshared, EXPONENTIAL[shape](levels))) for levels in (5, 7))
    assert more > 3.5 * few


@pytest.mark.parametrize("shape", ["allOf", "anyOf", "oneOf"])
def test_a_schema_that_doubles_along_a_path_is_not_checked(shape):
    schema, value = EXPONENTIAL[shape](40)
    assert len(json.dumps(schema)) < 4000
    verdict = ToolSchemas({"f": schema}).check("f", json.dumps(value))
    assert verdict == Verdict("unchecked", UNCHECKED)
    assert UNCHECKED.startswith("not checked further: budget")


def test_a_schema_of_dynamic_references_is_counted():
    schema = {
        "$dynamicAnchor": "n",
        "properties": {"a": {"$ref": "#/$defs/x"}},
        "$defs": {"x": {"allOf": [{"$dynamicRef": "#n"}] * 2}},
    }
    few, more = (units(unshared(schema), nested(levels)) for levels in (5, 7))
    assert more > 3.5 * few
    few, more = (units(unshared(schema), nested(levels), remembered=True) for levels in (10, 20))
    assert more < 2.3 * few


def test_what_leads_back_is_remembered_so_recursive_schemas_are_checked_however_deep():
    value = json.loads(expression(60, 1))
    assert units(EXPRESSION, value) >= ENOUGH
    few, more = (units(EXPRESSION, json.loads(expression(levels, 1)), remembered=True) for levels in (30, 60))
    assert more < 2.3 * few
    assert more < MAX_UNITS


def test_a_cycle_remembers_nothing_of_what_lies_between():
    """Of the definitions of a cycle the library remembers the one it meets again, not those on the way."""
    cycle = {f"d{n}": {"properties": {"a": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2}}} for n in range(20)}
    schema = {"$ref": "#/$defs/d0", "$defs": {**cycle, "d20": {"properties": {"a": {"$ref": "#/$defs/d0"}}}}}
    assert units(schema, nested(20), remembered=True) > MAX_UNITS


@pytest.mark.parametrize(
    "schema",
    [
        {"enum": [*range(500), {}]},
        {"const": list(range(500))},
        {"anyOf": [{"const": n} for n in range(500)]},
        {"pattern": "(?=.*b)x"},
        {"pattern": "(a*)*\\1b"},
        {"pattern": "[ab]*a[ab]{800}c"},
    ],
    ids=json.dumps,
)
def test_what_grows_with_the_square_is_refused_before_it_takes_long(schema):
    tools = ToolSchemas({"f": {"additionalProperties": {"items": schema}}})
    few = json.dumps({"a": ["a" * 10] * 10})
    assert tools.check("f", few).kind != "unchecked"
    many = json.dumps({"a": ["a" * 20_000, *range(20_000)]})
    assert tools.check("f", many).kind == "unchecked"


@pytest.mark.parametrize("size", [10, 1000, 10_000])
def test_ordinary_schemas_and_long_arguments_are_checked(size):
    row = {
        "type": "object",
        "properties": {
            "id": {"type": "string", "pattern": "^[a-zA-Z0-9_-]{1,64}$"},
            "mail": {
                "type": "string",
                "pattern": r"^[a-zA-Z0-9._%+-]+@[a-zA-Z0-9.-]+\.[a-zA-Z]{2,}$",
                "maxLength": 200,
            },
            "word": {"type": "string", "pattern": r"^(?=.*[A-Z])(?=.*\d).{8,}$"},
            "kind": {"enum": [f"kind {n}" for n in range(20)]},
            "note": {"anyOf": [{"type": "string", "pattern": r"^(?!\s*$).+"}, {"type": "null"}]},
        },
        "required": ["id"],
        "additionalProperties": False,
    }
    schema = {"type": "object", "properties": {"rows": {"type": "array", "items": row, "uniqueItems": True}}}
    one = {"mail": "someone@example.com", "word": "Passw0rd!", "kind": "kind 19", "note": "A sentence of some length."}
    text = json.dumps({"rows": [{"id": f"id-{n}", **one} for n in range(size)]})
    assert ToolSchemas({"f": schema}).check("f", text) == Verdict("complete")


def test_a_long_text_with_a_look_ahead_at_its_beginning_is_checked():
    tools = ToolSchemas({"f": {"properties": {"text": {"pattern": r"^(?!\s*$)[\s\S]+"}}}})
    assert tools.check("f", json.dumps({"text": "word " * 20_000})).kind == "complete"


def test_numbers_of_thousands_of_digits_are_counted_by_their_square():
    schema = {"additionalProperties": {"multipleOf": 3}}
    few, more = (units(schema, {"a": 10**digits}) for digits in (2000, 4000))
    assert 3.5 * few < more < ENOUGH


@pytest.mark.parametrize(
    ("pattern", "chars", "most"),
    [("^a+$", 10_000, 20_000), (r"^(?=.*[A-Z])(?!.*\s).{8,}$", 10_000, 50_000), (r"^(?!a|b)c$", 10_000, 50_000)],
)
def test_patterns_that_are_linear_are_counted_so(pattern, chars, most):
    cost = PatternCost.of(pattern)
    assert cost.units(chars) <= most
    assert cost.units(2 * chars) <= 2.01 * cost.units(chars)


@pytest.mark.parametrize("pattern", ["(?=.*b)x", "(?<=a)b", r"^(a)\1$", "^(?=a)b|c(?!d)", "a(?=b)", "(?>a*)b", "^(?=(a|b)*c)d", "a*+b"])  # fmt: skip
def test_patterns_that_look_around_anywhere_are_counted_by_the_square(pattern):
    cost = PatternCost.of(pattern)
    assert cost.units(200_000) > 3 * cost.units(100_000)


def calls_of(run):
    """How many Python and C functions ``run`` calls."""
    count = 0

    def counted(_frame, event, _argument):
        nonlocal count
        count += event in {"call", "c_call"}

    sys.setprofile(counted)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("shape", ["allOf", "anyOf", "oneOf", "unevaluated", "rows", "keys"])
def test_counting_itself_grows_with_schema_and_value_and_is_bounded(shape):
    def counted(size):
        if shape == "rows":
            schema, value = (
                {"properties": {"a": {"items": {"properties": {"b": {"type": "null"}}}}}},
                {"a": [{"b": 1}] * size},
            )
        elif shape == "keys":
            schema = {"additionalProperties": {"allOf": [{"type": "null"}] * 50}}
            value = {f"k{n}": {} for n in range(size)}
        else:
            schema, value = EXPONENTIAL[shape](size)
        cost = SchemaCost(SchemaGraph(unshared(schema)), remembered=True)
        return calls_of(lambda: cost.units(value, MAX_UNITS))

    few = 400 if shape in {"rows", "keys"} else 15
    assert counted(2 * few) <= 2.3 * counted(few) + 200


def test_a_long_key_is_not_written_once_for_each_value_inside():
    schema = {"properties": {"k" * 400_000: {"enum": list(range(20_000))}}}
    assert ToolSchemas({"f": schema}).check("f", "{}").kind == "complete"
    text = json.dumps({"k" * 400_000: list(range(20_000))})
    assert ToolSchemas({"f": schema}).check("f", text).kind == "schema_invalid"


def test_a_call_that_was_not_checked_is_not_run():
    verdict = Verdict("unchecked", UNCHECKED)
    assert is_bad(verdict)
    call = ToolCallFinished(0, "i", "f", "{}", verdict=verdict)
    assert "f was not run: its arguments could not be checked against the tool's schema" in error_text(call)
