"""What letters between tags stand for, and which tools there are."""

from __future__ import annotations

import pytest

from streamkit import ToolSchemas
from streamkit.conversation.messages import Tool
from streamkit.errors import UsageError
from streamkit.in_text.parameters import STRING, OfferedTools, json_of, json_or_text
from streamkit.text.identifiers import portable_name

SCHEMA = {
    "properties": {
        "text": {"type": "string"},
        "number": {"type": "integer"},
        "maybe": {"type": ["boolean", "null"]},
        "either": {"anyOf": [{"type": "number"}, {"oneOf": [{"type": "null"}]}]},
        "anything": {},
        "odd": True,
    }
}


@pytest.mark.parametrize(
    ("text", "types", "written"),
    [
        ("5", {"string"}, '"5"'),
        (" 5\n", {"integer"}, "5"),
        ("1.0", {"number"}, "1.0"),
        ("12345678901234567890123", {"integer"}, "12345678901234567890123"),
        ("1e400", {"number"}, "1e400"),
        ("five", {"integer"}, '"five"'),
        ("05", {"integer"}, '"05"'),
        ("True", {"boolean"}, "true"),
        ("yes", {"boolean"}, '"yes"'),
        ("None", {"string", "null"}, "null"),
        ("5", {"string", "integer"}, '"5"'),
        ('{"a": 1.0}', {"object"}, '{"a": 1.0}'),
        ("[1, 2]", {"array", "null"}, "[1, 2]"),
        ("[1, 2", {"array"}, '"[1, 2"'),
        ('{"a": 1}', {"array"}, '"{\\"a\\": 1}"'),
        ("", {"integer"}, '""'),
        ("x\u2028\n", {"thing"}, '"x\u2028\\n"'),
    ],
)
def test_a_parameter_is_written_as_its_schema_wants_where_it_can_be(text, types, written):
    assert json_of(text, frozenset(types), 8) == written


def test_what_is_nested_too_deep_is_a_string():
    assert json_of("[" * 9 + "]" * 9, frozenset({"array"}), 8).startswith('"')


def test_what_the_model_calls_json_is_json_if_it_is():
    assert json_or_text(" [1.0] ", 8) == "[1.0]"
    assert json_or_text("a", 8) == '"a"'
    assert json_or_text("", 8) == '""'


@pytest.mark.parametrize(
    "tools",
    [
        [Tool("f", parameters=SCHEMA)],
        [{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}],
        ToolSchemas({"f": SCHEMA}),
    ],
)
def test_types_are_those_of_the_schema(tools):
    offered = OfferedTools(tools)
    assert (offered.has("f"), offered.has("g")) == (True, False)
    assert offered.types("f", "text") == STRING
    assert offered.types("f", "number") == {"integer"}
    assert offered.types("f", "maybe") == {"boolean", "null"}
    assert offered.types("f", "either") == {"number", "null"}
    for unknown in "anything", "odd", "absent":
        assert offered.types("f", unknown) == STRING


def test_a_name_counts_as_the_client_and_as_the_upstream_knows_it_and_what_the_provider_runs_does_not():
    offered = OfferedTools([Tool("files.read"), Tool("shell", kind="custom"), Tool("search", kind="server")])
    assert [offered.has(name) for name in ("files.read", portable_name("files.read"), "shell", "search")] == [
        True,
        True,
        True,
        False,
    ]
    assert offered.types("shell", "input") == STRING


def test_without_tools_any_name_is_one():
    offered = OfferedTools(None)
    assert [offered.has(name) for name in ("f", "a.b-c:d/e", "", "1", "a b", "x" * 200)] == [
        True,
        True,
        False,
        False,
        False,
        False,
    ]
    assert offered.types("f", "x") == STRING


def test_what_is_no_definition_is_refused():
    with pytest.raises(UsageError):
        OfferedTools([{"name": 1}])
