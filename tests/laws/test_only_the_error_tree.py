"""Whatever bytes come in, only the error tree comes out: ``StreamkitError``, never an error of Python or of a library.

Every place that reads what others wrote (``tests/fuzz/targets.py``) is given our vectors and what is made of them with odd
values in every place: numbers past what Python, ``Decimal``, a double and 64 bits hold, half surrogate pairs, bytes that are
no UTF-8, deep nesting, values of other types. ``make fuzz`` looks for longer.
"""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamkit import PartialJSON, ToolSchemas, parse_arguments
from streamkit.tool_calls.check import check_arguments
from streamkit.tool_calls.schema import BadToolSchema
from tests.fuzz import targets
from tests.fuzz.mutate import ODD, mutated
from tests.fuzz.seeds import seeds
from tests.sampling import parts

NUMBERS = [odd.decode() for odd in ODD if odd[:1].isdigit() or odd[:1] == b"-"]
KEYWORDS = [
    "type", "enum", "const", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength",
    "pattern", "format", "minItems", "maxItems", "uniqueItems", "minContains", "maxContains", "contains", "items", "prefixItems",
    "properties", "required", "minProperties", "propertyNames", "patternProperties", "additionalProperties", "dependentRequired",
    "dependentSchemas", "dependencies", "unevaluatedProperties", "allOf", "anyOf", "oneOf", "not", "if", "$ref", "$dynamicRef",
    "$recursiveRef", "$id", "id", "$anchor", "$dynamicAnchor", "$schema", "$defs", "$vocabulary",
]  # fmt: skip


@pytest.mark.parametrize("target", targets.TARGETS)
@settings(max_examples=60)
@given(data=st.data())
def test_any_input_is_read_or_refused_by_an_error_of_the_tree(target, data):
    seed = data.draw(st.sampled_from(seeds(target)))
    number = data.draw(st.integers(0, (1 << 32) - 1))
    targets.run(target, mutated(random.Random(number), seed))


@pytest.mark.parametrize("keyword", KEYWORDS)
def test_any_value_of_any_keyword_is_a_schema_or_no_schema(keyword):
    values = [
        *ODD,
        b'"#/allOf/' + b"9" * 5000 + b'"',
        b'"#' + b"/a" * 500 + b'"',
        b'"http://[x/"',
        b'"#%ff"',
        b'"(?<a>"',
    ]
    for odd in values:
        for shape in (b'{"properties":{"a":{"%b":%b}}}', b'{"allOf":[{"%b":[%b]}]}', b'{"%b":{"a":%b}}'):
            document = shape % (keyword.encode(), odd)
            targets.run("schema", b"any any 3\n" + document.replace(b"\n", b"") + b'\n{"a":1.5}')


@pytest.mark.parametrize(
    "keyword", ["multipleOf", "minimum", "exclusiveMaximum", "const", "enum", "minLength", "minItems", "maxContains"]
)
@pytest.mark.parametrize("number", NUMBERS, ids=lambda text: text[:24])
def test_numbers_of_any_size_are_compared_with_numbers_of_any_size(keyword, number):
    for other in NUMBERS:
        try:
            value = json.loads(f"[{other}]" if keyword == "enum" else other)
        except ValueError:
            continue
        try:
            tools = ToolSchemas({"f": {"properties": {"a": {keyword: value}}}})
            tools.compile()
        except BadToolSchema:
            continue
        text = f'{{"a":{number}}}'
        if check_arguments(text).kind == "complete":
            assert tools.check("f", text).kind in {"complete", "schema_invalid", "unchecked"}


@pytest.mark.parametrize("number", NUMBERS, ids=lambda text: text[:24])
def test_numbers_of_any_size_are_read_as_arguments(number):
    text = f'{{"a":[{number}]}}'
    for step in (1, 7, len(text)):
        partial = PartialJSON(numbers="growing")
        for at in range(0, len(text), step):
            partial.feed(text[at : at + step])
        partial.finish()
        repr(partial.snapshot())
    if check_arguments(text).kind == "complete":
        assert "a" in parse_arguments(text)


def places(value, path=()):
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in inner:
        yield from places(member, (*path, key))


MARK = "@@ the value @@"


@pytest.mark.parametrize("part", parts(2))
@pytest.mark.parametrize("name", targets.WITH_BODIES)
@pytest.mark.parametrize("kind", ["requests", "responses"])
def test_any_value_in_any_place_of_a_body_is_read_or_refused(name, kind, part):
    """Every place of our own bodies, every odd value: one in thirteen of the pairs, of which `make test` takes half."""
    bodies = [data.partition(b"\n")[2] for data in seeds(kind) if data.startswith(name.encode() + b" ")][:3]
    pair = 0
    for body in bodies:
        document = json.loads(body)
        for path in places(document):
            for odd in ODD:
                pair += 1
                if pair % 26 != 13 * part.number or not path:
                    continue
                changed = json.loads(body)
                at = changed
                for step in path[:-1]:
                    at = at[step]
                at[path[-1]] = MARK
                text = json.dumps(changed).encode().replace(json.dumps(MARK).encode(), odd)
                targets.run(
                    kind, f"{name} {targets.WITH_BODIES[pair % 8 % len(targets.WITH_BODIES)]} {pair}\n".encode() + text
                )
