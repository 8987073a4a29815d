"""Names of tools in namespaces."""

from __future__ import annotations

from streamkit.dialects.members.fields import Body, Fields
from streamkit.dialects.openai_responses.tools import ToolNames, ToolReader
from streamkit.events import QualifiedName

READ = QualifiedName("mcp__files", "read")


def test_a_tool_is_called_by_its_namespace_and_its_name():
    names = ToolNames()
    assert names.flat(READ) == names.flat(READ) == "mcp__files__read"
    assert names.within("mcp__files") == ["mcp__files__read"]
    assert names.chosen(None, "read") == names.chosen("mcp__files", "read") == "mcp__files__read"


def test_a_name_that_another_tool_has_gets_a_hash_that_stays_the_same():
    names, again = ToolNames(), ToolNames()
    for each in names, again:
        each.take("mcp__files__read")
    assert names.flat(READ) == again.flat(READ) != "mcp__files__read"


def test_a_choice_without_a_namespace_means_the_tool_outside():
    names = ToolNames()
    names.take("read")
    names.flat(READ)
    assert names.chosen(None, "read") == "read"


def test_tools_that_an_item_brings_are_added_once():
    tool = {"type": "function", "name": "read"}
    reader = ToolReader(ToolNames())
    assert [each.name for each in reader.tools(Fields({"tools": [tool]}, (), Body(b"{}")))] == ["read"]
    for name in "read", "write", "write":
        reader.load(Fields({"tools": [{**tool, "name": name}]}, (), Body(b"{}")))
    assert [each.name for each in reader.loaded] == ["write"]
