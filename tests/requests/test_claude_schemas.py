"""Schemas for Claude's structured output and strict tools: as Anthropic's own client writes them, each change counted."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkit import StreamReport
from streamkit.dialects.bodies.claude import FORMATS, ClaudeSchemas
from streamkit.errors import BadRequest
from tests.requests.rows import translate
from tests.requests.sdk_types import faults

#: A schema, what is written of it, the keywords that are lost, and how many objects are closed.
ROWS: dict[str, tuple[Any, Any, list[str], int]] = {
    "an object is closed": (
        {"type": "object", "properties": {"a": {"type": "null"}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"type": "null"}}, "additionalProperties": False, "required": ["a"]}, [], 1,
    ),
    "one that is closed stays": ({"type": "object", "properties": {}, "additionalProperties": False},) * 2 + ([], 0),
    "one of any members is closed, which is a loss": (
        {"type": "object", "additionalProperties": {"type": "string"}}, {"type": "object", "properties": {}, "additionalProperties": False},
        ["s.additionalProperties"], 0,
    ),
    "bounds go into the description": (
        {"type": "integer", "description": "n", "minimum": 1, "default": None, "x": {"y": True}},
        {"type": "integer", "description": 'n\n\n{minimum: 1, default: null, x: {"y":true}}'}, ["s.minimum", "s.default", "s.x"], 0,
    ),
    "least numbers of items that are taken": ({"type": "array", "minItems": 1, "items": {"type": "string"}},) * 2 + ([], 0),
    "others that are not": ({"type": "array", "minItems": 2}, {"type": "array", "description": "{minItems: 2}"}, ["s.minItems"], 0),
    "a known format": ({"type": "string", "format": "date"},) * 2 + ([], 0),
    "an unknown one": ({"type": "string", "format": "hex"}, {"type": "string", "description": "{format: hex}"}, ["s.format"], 0),
    "one of": (
        {"oneOf": [{"type": "string", "pattern": "x"}, {"type": "null"}]},
        {"anyOf": [{"type": "string", "description": "{pattern: x}"}, {"type": "null"}]}, ["s.oneOf[0].pattern", "s.oneOf"], 0,
    ),
    "several types": (
        {"type": ["string", "null"], "maxLength": 5, "description": "d"},
        {"anyOf": [{"type": "string", "description": "{maxLength: 5}"}, {"type": "null"}], "description": "d"}, ["s.string.maxLength"], 0,
    ),
    "a type that is none": ({"type": ["string", []]}, {"type": "string", "description": "{type: [[]]}"}, ["s.type"], 0),
    "a list of one type": ({"type": ["string"]}, {"type": "string"}, [], 0),
    "a reference alone": (
        {"$ref": "#/$defs/A", "description": "d", "$defs": {"A": {"type": "object"}}},
        {"$defs": {"A": {"type": "object", "properties": {}, "additionalProperties": False}}, "$ref": "#/$defs/A"}, ["s.description"], 1,
    ),
    "the older name of definitions": (
        {"type": "array", "items": {"$ref": "#/definitions/A"}, "definitions": {"A": {"type": "string", "minLength": 1}}},
        {"definitions": {"A": {"type": "string", "description": "{minLength: 1}"}}, "type": "array", "items": {"$ref": "#/definitions/A"}},
        ["s.definitions.A.minLength"], 0,
    ),
    "values that are allowed": ({"type": "string", "enum": ["a", None]}, {"enum": ["a", None]}, [], 0),
    "values that are not taken": (
        {"type": "object", "enum": [{}]},
        {"type": "object", "properties": {}, "additionalProperties": False, "description": "{enum: [{}]}"}, ["s.enum"], 1,
    ),
    "no type said": (
        {"properties": {"a": {"items": True}}},
        {"type": "object", "properties": {"a": {"type": "array", "items": True}}, "additionalProperties": False}, [], 1,
    ),
    "a list whose places have schemas": (
        {"type": "array", "prefixItems": [{"type": "string"}], "items": False},
        {"type": "array", "description": '{prefixItems: [{"type":"string"}], items: false}'}, ["s.prefixItems", "s.items"], 0,
    ),
    "such a list in the older form": (
        {"type": "array", "items": [{"type": "object"}], "minItems": 1, "maxItems": 1},
        {"type": "array", "minItems": 1, "description": '{items: [{"type":"object"}], maxItems: 1}'}, ["s.items", "s.maxItems"], 0,
    ),
    "where it comes from": ({"$schema": "http://json-schema.org", "$id": "x", "type": "null"}, {"type": "null"}, [], 0),
    "no schema at all": (
        {"type": "object", "properties": [1], "oneOf": 3, "required": 3},
        {"type": "object", "properties": {}, "additionalProperties": False, "required": 3, "description": "{oneOf: 3}"}, ["s.oneOf"], 1,
    ),
}  # fmt: skip


def write(schema: Any) -> tuple[Any, list[str], int]:
    lost: list[str] = []
    closed: list[None] = []
    written = ClaudeSchemas(lost.append, lambda: closed.append(None)).write(schema, "s")
    return written, lost, len(closed)


@pytest.mark.parametrize("name", ROWS)
def test_each_keyword_stays_or_is_said_and_counted(name):
    schema, expected, lost, closed = ROWS[name]
    before = json.dumps(schema)
    assert write(schema) == (expected, lost, closed)
    assert json.dumps(schema) == before


def test_a_schema_that_contains_itself_is_refused():
    schema: dict[str, Any] = {"type": "array"}
    schema["items"] = schema
    with pytest.raises(BadRequest, match="nested deeper than 50"):
        write(schema)


def test_the_deepest_schema_can_be_written():
    schema: dict[str, Any] = {"type": ["string", "null"]}
    for _ in range(24):
        schema = {"type": ["object", "null"], "properties": {"a": schema}}
    orjson.dumps(write(schema)[0])


words = st.sampled_from(["a", "b", "$x"])
values = st.none() | st.booleans() | st.integers(0, 3) | words
leaves = st.one_of(
    st.fixed_dictionaries({"type": st.just("string")}, optional={
        "format": st.sampled_from([*sorted(FORMATS)[:2], "hex"]), "maxLength": st.integers(0, 3), "title": words,
    }),
    st.fixed_dictionaries({"type": st.sampled_from(["integer", "number", "null"])}, optional={"minimum": st.integers(-9, 9)}),
    st.fixed_dictionaries({"enum": st.lists(values, min_size=1)}, optional={"type": st.just("string")}),
    st.fixed_dictionaries({"const": values}, optional={"default": values}),
    st.fixed_dictionaries({"$ref": st.just("#/$defs/a")}, optional={"description": words}),
)  # fmt: skip
schemas = st.recursive(
    leaves,
    lambda inner: st.one_of(st.fixed_dictionaries({"type": st.just("object"), "properties": st.dictionaries(words, inner, max_size=3)}, optional={"required": st.lists(words, max_size=2), "additionalProperties": st.booleans(), "minProperties": st.integers(0, 2), "description": words, "$defs": st.dictionaries(words, inner, max_size=2)}), st.fixed_dictionaries({"type": st.just("array"), "items": inner}, optional={"minItems": st.integers(0, 3), "uniqueItems": st.booleans()}), st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=2)}, optional={"default": values}), st.fixed_dictionaries({"oneOf": st.lists(inner, min_size=1, max_size=2)}), st.fixed_dictionaries({"allOf": st.lists(inner, min_size=1, max_size=2)})),
    max_leaves=8,
)  # fmt: skip


def without_descriptions(schema: Any) -> Any:
    if isinstance(schema, list):
        return [without_descriptions(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: bool(value) if name == "description" and isinstance(value, str) else without_descriptions(value)
        for name, value in schema.items()
    }


@given(schemas)
def test_anthropics_own_client_writes_the_same(schema):
    transform = pytest.importorskip("anthropic", reason="extra `clients`").transform_schema
    assert without_descriptions(write(schema)[0]) == without_descriptions(transform(schema))


# -- in requests -------------------------------------------------------------------------------------------------------

OPEN = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]}
CLOSED = {
    "type": "object",
    "properties": {"n": {"type": "integer", "description": "{minimum: 1}"}},
    "additionalProperties": False,
    "required": ["n"],
}  # fmt: skip


def chat(**members: Any) -> bytes:
    return json.dumps({"model": "claude-opus-4-7", "messages": [{"role": "user", "content": "Go"}], **members}).encode()


def carried(body: bytes, to: str, source: str = "openai-chat") -> tuple[Any, StreamReport]:
    written, report = translate(body, source, to)
    assert faults({"vertex-anthropic": "anthropic"}.get(to, to), written) == []
    return written, report


def test_the_form_of_an_answer():
    body = chat(response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": OPEN}})
    written, report = carried(body, "anthropic")
    assert written["output_config"]["format"]["schema"] == CLOSED
    assert ("schema_keyword", "output.schema.properties.n.minimum") in report.lost
    assert report.repairs["schema_closed"] == 1
    written, report = carried(body, "bedrock")
    definition = written["outputConfig"]["textFormat"]["structure"]["jsonSchema"]
    assert json.loads(definition["schema"]) == CLOSED


@pytest.mark.parametrize("strict", [True, False])
def test_a_tool_whose_arguments_must_match_and_one_whose_need_not(strict):
    body = chat(tools=[{"type": "function", "function": {"name": "f", "parameters": OPEN, "strict": strict}}])
    written, report = carried(body, "anthropic")
    assert written["tools"][0]["input_schema"] == (CLOSED if strict else OPEN)
    assert report.repairs["schema_closed"] == strict
    assert report.lost == ([("schema_keyword", "f.parameters.properties.n.minimum")] if strict else [])
    written, _ = carried(body, "bedrock")
    assert written["toolConfig"]["tools"][0]["toolSpec"]["inputSchema"]["json"] == (CLOSED if strict else OPEN)


def test_a_request_of_anthropics_own_stays_as_it_came():
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Go"}]}
    body["output_config"] = {"format": {"type": "json_schema", "schema": OPEN}}
    body["tools"] = [{"name": "f", "input_schema": OPEN, "strict": True}]
    assert carried(json.dumps(body).encode(), "anthropic", "anthropic")[0] == body
