"""The demo's arguments: whatever schema a client brings, a value that it takes, or a reason why there is none."""

from __future__ import annotations

import pytest

from streamkit.lab.minimal_value import MAX_SUBSCHEMAS, NoValue, minimal_object


def of(schema, **beside):
    """The value made for one required member with that schema."""
    return minimal_object({"properties": {"x": schema}, "required": ["x"], **beside})["x"]


NODE = {
    "type": "object",
    "required": ["next"],
    "properties": {"next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}},
}

#: A schema for one member, and the value that it gets.
VALUES = {
    "const": ({"const": 7, "default": 8}, 7),
    "null as a const": ({"const": None}, None),
    "default before examples": ({"type": "string", "default": "a", "examples": ["b"]}, "a"),
    "the first example": ({"type": "string", "examples": ["b", "c"], "enum": ["c", "b"]}, "b"),
    "no examples": ({"type": "string", "examples": []}, "demo"),
    "the first of an enum": ({"enum": ["celsius", "fahrenheit"]}, "celsius"),
    "anything": (True, "demo"),
    "no keyword": ({}, "demo"),
    "several types": ({"type": ["boolean", "null"]}, True),
    "null": ({"type": "null"}, None),
    "a short string": ({"type": "string", "maxLength": 2}, "de"),
    "a long string": ({"type": "string", "minLength": 6}, "demo.."),
    "a date": ({"type": "string", "format": "date"}, "2026-01-01"),
    "an unknown format": ({"type": "string", "format": "colour"}, "demo"),
    "an integer": ({"type": "integer"}, 1),
    "at least": ({"type": "integer", "minimum": 5}, 5),
    "at most": ({"type": "integer", "maximum": -3}, -3),
    "above": ({"type": "integer", "exclusiveMinimum": 5}, 6),
    "below": ({"type": "integer", "exclusiveMaximum": 0}, -1),
    "above a fraction": ({"type": "integer", "minimum": 2.5}, 3),
    "between": ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, 0.5),
    "a multiple": ({"type": "integer", "minimum": 11, "multipleOf": 5}, 15),
    "a multiple that is a fraction": ({"type": "number", "minimum": 2, "multipleOf": 1.5}, 3.0),
    "an array": ({"type": "array", "items": {"type": "integer"}}, []),
    "some items": ({"items": {"type": "integer"}, "minItems": 2}, [1, 1]),
    "a tuple": ({"type": "array", "minItems": 3, "prefixItems": [{"const": 1}, {"const": 2}], "items": {"const": 3}}, [1, 2, 3]),
    "an old tuple": ({"$schema": "http://json-schema.org/draft-07/schema#", "type": "array", "minItems": 2, "items": [{"const": 1}], "additionalItems": {"const": 9}}, [1, 9]),
    "an object's required members only": (
        {"properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["b"]}, {"b": 1},
    ),
    "a member that only additionalProperties knows": (
        {"type": "object", "required": ["a"], "additionalProperties": {"type": "integer"}}, {"a": 1},
    ),
    "the first branch": ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, 1),
    "a branch that has a value": ({"oneOf": [False, {"type": "integer", "minimum": 2, "maximum": 1}, {"const": "c"}]}, "c"),
    "a branch with what stands beside it": (
        {"type": "object", "required": ["a"], "properties": {"a": {"const": 1}}, "anyOf": [{"required": ["b"]}]},
        {"b": "demo", "a": 1},
    ),
    "both unions": ({"anyOf": [{"type": "integer"}], "oneOf": [{"minimum": 4}]}, 4),
    "all of them": (
        {"allOf": [{"required": ["a"], "properties": {"a": {"const": 1}}}, {"required": ["b"], "properties": {"b": {"const": 2}}}]},
        {"a": 1, "b": 2},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("schema", "value"), VALUES.values(), ids=VALUES)
def test_a_schema_gets_its_smallest_value_and_a_validator_takes_it(schema, value):
    made = of(schema)
    assert made == value
    assert type(made) is type(value)
    validator = pytest.importorskip("jsonschema_rs", reason="install streamkit-llm[schema]")
    assert validator.is_valid(schema, made)


def test_references_are_followed():
    assert of({"$ref": "#/$defs/a"}, **{"$defs": {"a": {"$ref": "#/$defs/b~1c"}, "b/c": {"const": 3}}}) == 3


def test_what_stands_beside_a_reference_counts():
    assert of({"$ref": "#/$defs/a", "default": 4}, **{"$defs": {"a": {"type": "integer", "default": 3}}}) == 4


def test_two_references_are_combined():
    schema = {
        "allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}],
        "properties": {"c": {"const": 3}},
        "required": ["c"],
    }
    definitions = {
        "a": {"properties": {"a": {"const": 1}}, "required": ["a"]},
        "b": {"properties": {"b": {"const": 2}}, "required": ["b"]},
    }
    assert of(schema, **{"$defs": definitions}) == {"a": 1, "b": 2, "c": 3}


def test_a_list_that_may_end_does():
    assert minimal_object({"$ref": "#/$defs/node", "$defs": {"node": NODE}}) == {"next": None}


def test_the_same_definition_may_be_used_twice():
    schema = {
        "required": ["a", "b"],
        "properties": {name: {"$ref": "#/$defs/x"} for name in "ab"},
        "$defs": {"x": {"const": 1}},
    }
    assert minimal_object(schema) == {"a": 1, "b": 1}


@pytest.mark.parametrize("schema", [{}, {"type": "object"}, {"properties": {"a": {}}}, {"required": []}])
def test_a_tool_without_required_parameters_gets_none(schema):
    assert minimal_object(schema) == {}


#: A root schema, and what the error says.
NOTHING = {
    "false": (False, "nothing matches"),
    "no schema": ("object", "nothing matches"),
    "no object": ({"type": "string"}, "allows no object"),
    "an unknown type": ({"type": "STRING"}, "unknown type 'STRING'"),
    "a list that can't end": ({"required": ["next"], "properties": {"next": {"$ref": "#"}}}, "'#' is circular"),
    "another document": ({"$ref": "https://example.org/s.json"}, "is not in the schema"),
    "a reference to nothing": ({"$ref": "#/$defs/none"}, "is not in the schema"),
    "a reference that is no text": ({"$ref": 5}, "is not in the schema"),
    "no number": (
        {"required": ["a"], "properties": {"a": {"type": "integer", "minimum": 2, "maximum": 1}}},
        "no number",
    ),
    "an endless string": (
        {"required": ["a"], "properties": {"a": {"type": "string", "minLength": 10**9}}},
        "1,000,000,000",
    ),
    "an endless list": ({"required": ["a"], "properties": {"a": {"type": "array", "minItems": 10**9}}}, "subschemas"),
    "properties that are a list": ({"required": ["a"], "properties": ["a"]}, "invalid value"),
    "required that is a number": ({"required": 3}, "invalid value"),
    "an object among the required": ({"required": [{}]}, "invalid value"),
    "a bound that is text": (
        {"required": ["a"], "properties": {"a": {"type": "integer", "minimum": "2"}}},
        "invalid value",
    ),
}


@pytest.mark.parametrize(("schema", "why"), NOTHING.values(), ids=NOTHING)
def test_what_has_no_value_is_an_error_that_says_why(schema, why):
    with pytest.raises(NoValue, match=why):
        minimal_object(schema)


def test_a_value_that_doubles_with_each_definition_is_given_up():
    names = [f"d{number}" for number in range(40)]
    definitions = {
        name: {"required": ["a", "b"], "properties": {key: {"$ref": f"#/$defs/{after}"} for key in "ab"}}
        for name, after in zip(names, [*names[1:], "end"], strict=True)
    }
    with pytest.raises(NoValue, match=f"{MAX_SUBSCHEMAS:,} subschemas"):
        minimal_object({"$ref": "#/$defs/d0", "$defs": {**definitions, "end": {"const": 1}}})


def test_branches_that_all_fail_are_not_tried_for_ever():
    schema = False
    for _ in range(60):
        schema = {"anyOf": [schema, schema]}
    with pytest.raises(NoValue, match="subschemas"):
        of(schema)


def test_a_chain_of_references_is_bounded():
    definitions = {f"d{number}": {"$ref": f"#/$defs/d{number + 1}"} for number in range(100)}
    with pytest.raises(NoValue, match="too deep"):
        minimal_object({"$ref": "#/$defs/d0", "$defs": definitions})


def test_a_schema_nested_deeper_than_python_goes_is_an_error():
    schema = {"const": 1}
    for _ in range(1500):
        schema = {"required": ["a"], "properties": {"a": schema}}
    with pytest.raises(NoValue, match="nested too deep"):
        minimal_object(schema)
