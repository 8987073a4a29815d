"""Definitions of tools before they are sent: every fault with its place, and nothing said of what is right."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkit.conversation.checks import MAX_FINDINGS, MAX_SUBSCHEMAS, PORTABLE_TOOLS, check_tools, refuse_tools
from streamkit.conversation.messages import Tool
from streamkit.dialects import DIALECTS, dialect_named
from streamkit.errors import BadRequest
from streamkit.limits import Limits

CITY = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "enum": ["Oslo", "Rome"], "description": "where"},
        "days": {"type": ["integer", "null"]},
        "stops": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["city"],
}


def tool(parameters=None, name="get_weather", **rest):
    return Tool(name, "the weather", CITY if parameters is None else parameters, **rest)


def found(tools, dialect=None, **limits):
    rules = dialect_named(dialect).tools if isinstance(dialect, str) else dialect or PORTABLE_TOOLS
    findings = check_tools(tools, rules, limits=Limits(**limits))
    return [(finding.rule, finding.path, finding.severity) for finding in findings]


def object_of(**properties):
    return {"type": "object", "properties": properties, "required": []}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_nothing_is_said_of_a_tool_that_every_dialect_takes(dialect):
    assert check_tools([tool(), tool(name="other")], dialect_named(dialect).tools) == []


# -- S3: what an incomplete definition lacks is named ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({}, [("parameters_missing", "", "note")]),
        ({"properties": {"a": {}}, "required": ["a"]}, [("type_missing", "", "error")]),
        ({"type": "object"}, [("properties_missing", "", "error")]),
        ({"type": "object", "properties": {"a": {}}}, [("required_missing", "", "note")]),
        ({"type": "object", "properties": {}}, []),
    ],
)  # fmt: skip
def test_type_properties_and_required_are_missed(parameters, expected):
    at = "tools[0].parameters"
    assert found([tool(parameters)], "openai-chat") == [
        (rule, at + path, severity) for rule, path, severity in expected
    ]


def test_a_tool_without_a_schema_takes_no_arguments():
    assert found([Tool("f")]) == [("parameters_missing", "tools[0].parameters", "note")]


def test_where_a_dialect_does_not_need_properties_their_absence_is_a_note():
    assert found([tool({"type": "object"})], "anthropic") == [("properties_missing", "tools[0].parameters", "note")]


# -- names -------------------------------------------------------------------------------------------------------------

NAMES = {  # dialects.md §1.3, §3.2, §5.3, §6.1, §7.3: the longest, one too long, and what else is and is not taken
    "openai-chat": ("x" * 64, "x" * 65, "2-fast", "files.read"),
    "openai-responses": ("x" * 64, "x" * 65, "2-fast", "files.read"),
    "anthropic": ("x" * 128, "x" * 129, "2-fast", "files.read"),
    "gemini": ("x" * 128, "x" * 129, "files.read:now-", "2fast"),
    "bedrock": ("x" * 64, "x" * 65, "2-fast", "files.read"),
    "mistral": ("x" * 64, "x" * 65, "2-fast", "files.read"),
    "ollama": ("x" * 999, None, "größe nr. 2", None),
    "cohere": ("x" * 999, None, "größe nr. 2", None),
    "gemini-interactions": ("x" * 128, "x" * 129, "files.read:now-", "2fast"),
    "ag-ui": ("x" * 999, None, "größe nr. 2", None),
    "ai-sdk": ("x" * 999, None, "größe nr. 2", None),
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_names_are_held_to_the_dialect_s_pattern(dialect):
    longest, too_long, fits, unfit = NAMES[dialect]
    assert found([tool(name=longest), tool(name=fits)], dialect) == []
    for name in (too_long, unfit):
        if name is not None:
            assert found([tool(name=name)], dialect) == [("name_unfit", "tools[0].name", "error")]


def test_a_name_that_is_missing_or_used_twice():
    assert found([tool(name=""), tool(), tool(), tool(kind="custom")]) == [
        ("name_missing", "tools[0].name", "error"),
        ("name_used_twice", "tools[2].name", "error"),
        ("name_used_twice", "tools[3].name", "error"),
    ]


# -- schemas -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "rule", "path"),
    [
        ([], "schema_invalid", ""),
        ("object", "schema_invalid", ""),
        ({**CITY, "type": "array"}, "type_not_object", ".type"),
        ({**CITY, "type": ["object", "null"]}, "type_not_object", ".type"),
        ({**CITY, "type": "OBJECT"}, "type_not_object", ".type"),
        ({"type": "object", "properties": [], "required": []}, "schema_invalid", ".properties"),
        (object_of(a="string"), "schema_invalid", ".properties.a"),
        (object_of(a={"type": "str"}), "type_unknown", ".properties.a.type"),
        (object_of(a={"type": ["string", "none"]}), "type_unknown", ".properties.a.type"),
        (object_of(a={"type": {}}), "type_unknown", ".properties.a.type"),
        (object_of(a={"anyOf": {"type": "string"}}), "schema_invalid", ".properties.a.anyOf"),
        (object_of(a={"anyOf": [{}, {"type": "x"}]}), "type_unknown", ".properties.a.anyOf[1].type"),
        (object_of(a={"items": [{}, 1]}), "schema_invalid", ".properties.a.items[1]"),
        ({**CITY, "$defs": {"x": {"not": 1}}}, "schema_invalid", ".$defs.x.not"),
        ({**CITY, "required": "city"}, "required_invalid", ".required"),
        ({**CITY, "required": ["city", 1]}, "required_invalid", ".required"),
        ({**CITY, "required": ["city", "town"]}, "required_unknown", ".required"),
    ],
)
def test_a_schema_of_the_wrong_shape(parameters, rule, path):
    assert found([tool(), tool(parameters, "f")]) == [(rule, f"tools[1].parameters{path}", "error")]


def test_a_required_name_further_down_is_a_note_and_may_be_defined_elsewhere():
    unknown = {"type": "object", "properties": {"x": {}}, "required": ["y"]}
    assert found([tool(object_of(a=unknown))]) == [
        ("required_unknown", "tools[0].parameters.properties.a.required", "note")
    ]
    for elsewhere in ({"patternProperties": {"^y": {}}}, {"allOf": [{}]}, {"$ref": "#/$defs/x"}):
        assert found([tool(object_of(a={**unknown, **elsewhere}))]) == []
    assert found([tool({**CITY, "anyOf": [{"required": ["city"]}, {"required": ["days"]}]})]) == []


def test_all_faults_of_all_tools_are_found():
    bad = {
        "type": "object",
        "properties": {"a": {"type": "str"}, "b": 1, "c": {"items": {"type": "x"}}},
        "required": ["z"],
    }
    assert [path.removeprefix("tools[1].") for _, path, _ in found([Tool(""), tool(bad, "ü")], "bedrock")] == [
        "tools[0].name",
        "tools[0].parameters",
        "name",
        "parameters.required",
        "parameters.properties.a.type",
        "parameters.properties.b",
        "parameters.properties.c.items.type",
    ]


def test_custom_tools_have_no_schema_and_the_provider_s_own_are_passed_over():
    assert found([Tool("x", kind="custom"), Tool("", raw={"type": "web_search"})], "openai-chat") == []


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses", "anthropic"])
@pytest.mark.parametrize("keyword", ["oneOf", "anyOf", "allOf"])
def test_combinations_at_the_root_are_refused(dialect, keyword):
    expected = [("keyword_at_root", f"tools[0].parameters.{keyword}", "error")]
    assert found([tool({**CITY, keyword: [{}]})], dialect) == expected
    assert found([tool({**CITY, keyword: [{}]})], "bedrock") == []
    assert found([tool(object_of(a={keyword: [{}]}))], dialect) == []


# -- keywords that a dialect does not take -----------------------------------------------------------------------------


def test_gemini_takes_a_part_of_json_schema():
    parameters = object_of(pattern={"type": "string", "pattern": "^a", "minLength": 1, "const": "a"})
    at = "tools[0].parameters.properties.pattern"
    assert found([tool(parameters)], "gemini") == [
        ("keyword_unsupported", f"{at}.{keyword}", "note") for keyword in ("pattern", "minLength", "const")
    ]


def test_ollama_drops_keywords_but_not_in_items():
    parameters = {
        **object_of(
            a={"type": "string", "minLength": 1},
            b={"type": "array", "items": {"type": "string", "minLength": 1}},
            c={"anyOf": [{"type": "string", "format": "date"}]},
        ),
        "additionalProperties": False,
        "$defs": {"x": {"pattern": "^a"}},
    }
    at = "tools[0].parameters"
    assert found([tool(parameters)], "ollama") == [
        ("keyword_unsupported", f"{at}.additionalProperties", "note"),
        ("keyword_unsupported", f"{at}.properties.a.minLength", "note"),
        ("keyword_unsupported", f"{at}.properties.c.anyOf[0].format", "note"),
    ]


# -- bounds ------------------------------------------------------------------------------------------------------------


def test_depth_is_bounded():
    def nested(depth):
        schema = {"type": "string"}
        for _ in range(depth - 2):
            schema = {"type": "array", "items": schema}
        return object_of(a=schema)

    assert found([tool(nested(9))], json_depth=9) == []
    ((rule, path, severity),) = found([tool(nested(10))], json_depth=9)
    assert (rule, severity) == ("schema_too_deep", "error")
    assert path == "tools[0].parameters.properties.a" + ".items" * 8


def test_a_schema_that_contains_itself_ends():
    schema = object_of()
    schema["properties"]["again"] = schema
    assert found([tool(schema)])[-1][0] == "schema_too_deep"
    schema["properties"]["twice"] = schema
    assert {rule for rule, _, _ in found([tool(schema)])} == {"schema_too_deep"}


def test_the_number_of_findings_is_bounded():
    wide = object_of(**{f"p{number}": 5 for number in range(2 * MAX_FINDINGS)})
    assert len(found([tool(wide, "f")])) == MAX_FINDINGS
    assert len(found([tool(wide, "f"), tool(wide, "f")])) == MAX_FINDINGS + 1  # one more: the name


def test_the_number_of_subschemas_is_bounded_over_all_tools():
    half = MAX_SUBSCHEMAS // 2
    first = tool(object_of(**{f"p{number}": {} for number in range(half - 1)}), "f")
    fits = tool(object_of(**{f"p{number}": {} for number in range(half - 1)}), "g")
    one_more = tool(object_of(**{f"p{number}": {} for number in range(half)}), "g")
    assert found([first, fits]) == []
    assert [rule for rule, _, _ in found([first, one_more])] == ["schema_too_large"]


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
                        st.sampled_from(["type", "properties", "items", "required", "anyOf", "not", "$defs", "x"]), inner, max_size=4)))  # fmt: skip
def test_whatever_a_schema_is_the_answer_is_a_list(parameters):
    for rules in (PORTABLE_TOOLS, dialect_named("gemini").tools, dialect_named("ollama").tools):
        for finding in check_tools([tool(parameters)], rules):
            assert finding.path.startswith("tools[0].parameters")
            assert finding.message
            assert finding.severity in {"error", "note"}


# -- refusing ----------------------------------------------------------------------------------------------------------


def test_errors_refuse_the_request_and_notes_do_not():
    refuse_tools(check_tools([Tool("f")]))
    with pytest.raises(BadRequest) as refused:
        refuse_tools(
            check_tools([Tool("f"), tool({**CITY, "type": "array"}, ""), tool({**CITY, "required": ["x"]}, "g")])
        )
    assert refused.value.path == "tools[1].name"
    assert refused.value.reason == (
        "the tool has no name; tools[1].parameters.type: the type must be \"object\", not 'array'; "
        "tools[2].parameters.required: 'x' is required but not in properties"
    )


def test_only_the_first_few_errors_are_said():
    with pytest.raises(BadRequest, match=r"tools\[4\].name: the tool has no name; and 15 more$"):
        refuse_tools(check_tools([tool(name="")] * 20))
