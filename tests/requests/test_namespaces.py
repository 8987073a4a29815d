"""Tools in namespaces, as Codex 0.169 sends those of its MCP servers and sub-agents: by flat names elsewhere, and back.

Source: dialects.md §2.2, §2.3; what Codex 0.169 was seen to send.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from streamkit.conversation.messages import Choice, Request, Response, Text, ToolCall, ToolChoice, ToolResult
from streamkit.conversation.restore import restore_response_calls
from streamkit.dialects import DIALECTS
from streamkit.errors import BadRequest
from streamkit.events import QualifiedName
from streamkit.report import StreamReport
from streamkit.text.identifiers import flat_name
from streamkit.translation.bodies import decode_request, decode_response, encode_request, encode_response
from streamkit.translation.tool_loop import request_with_results
from tests.laws.judging import Case, grows
from tests.working import FACTOR

RESPONSES = "openai-responses"
OTHERS = [name for name in DIALECTS.built_in if name != RESPONSES]
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def function(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "function", "name": name, "description": "d", "strict": False, "parameters": SCHEMA, **more}


def namespace(name: str, *tools: dict[str, Any]) -> dict[str, Any]:
    return {"type": "namespace", "name": name, "description": f"Tools in the {name} namespace.", "tools": [*tools]}


#: A request of Codex after its first call: two MCP servers with tools of the same names, and sub-agents.
CODEX: dict[str, Any] = {
    "model": "m",
    "tools": [
        function("exec_command"),
        namespace("multi_agent_v1", function("spawn_agent")),
        namespace("mcp__my_server", function("files_read"), function("get_weather")),
        namespace("mcp__w", function("files_read"), function("get_weather")),
    ],
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "what weather"}]},
        {"type": "function_call", "name": "get_weather", "namespace": "mcp__w", "arguments": "{}", "call_id": "call_1abc"},
        {"type": "function_call_output", "call_id": "call_1abc", "output": "sunny"},
    ],
}  # fmt: skip
FLAT = [
    "exec_command",
    "multi_agent_v1__spawn_agent",
    "mcp__my_server__files_read",
    "mcp__my_server__get_weather",
    "mcp__w__files_read",
    "mcp__w__get_weather",
]


def read(body: dict[str, Any], dialect: str = RESPONSES) -> Request:
    return decode_request(json.dumps({"model": "m", "input": "hi", **body}).encode(), dialect)


def sent(request: Request, to: str) -> tuple[Request, StreamReport]:
    """The request as an upstream of that dialect reads it."""
    report = StreamReport()
    return decode_request(encode_request(request, to, report=report), to), report


def calls(request: Request) -> list[ToolCall]:
    return [part for turn in request.turns for part in turn.parts if isinstance(part, ToolCall)]


@pytest.mark.parametrize("to", OTHERS)
def test_every_dialect_gets_the_tools_by_names_that_tell_them_apart(to):
    there, report = sent(read(CODEX), to)
    assert [tool.name for tool in there.tools] == FLAT
    assert [call.name for call in calls(there)] == ["mcp__w__get_weather"]
    assert report.losses["tool_namespace"] == 3
    assert "tool_definition" not in report.losses
    named = [what for kind, what in report.lost if kind == "tool_namespace"]
    assert named == ["multi_agent_v1", "mcp__my_server", "mcp__w"]


def test_within_the_dialect_nothing_changes():
    report = StreamReport()
    written = json.loads(encode_request(read(CODEX), RESPONSES, report=report))
    assert written["input"][1:] == CODEX["input"][1:]
    assert written["tools"] == CODEX["tools"]
    assert not report.losses


@pytest.mark.parametrize("to", ["openai-chat", "anthropic", "gemini", "mistral", "bedrock"])
@pytest.mark.parametrize(
    "choice",
    [
        {"type": "function", "name": "get_weather", "namespace": "mcp__w"},
        {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "get_weather", "namespace": "mcp__w"}]},
        {"type": "function", "name": "spawn_agent"},
    ],
    ids=["one", "allowed", "without its namespace"],
)  # fmt: skip
def test_a_choice_names_the_tool_that_was_meant(to, choice):
    request = read({**CODEX, "tool_choice": choice})
    meant = "multi_agent_v1__spawn_agent" if choice.get("name") == "spawn_agent" else "mcp__w__get_weather"
    assert request.tool_choice == ToolChoice("required", (meant,), parallel=True)
    there, _ = sent(request, to)
    assert (there.tool_choice.mode, there.tool_choice.names) == ("required", (meant,))


def test_all_of_a_namespace_may_be_allowed():
    choice = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "namespace", "name": "mcp__w"}]}
    assert read({**CODEX, "tool_choice": choice}).tool_choice.names == ("mcp__w__files_read", "mcp__w__get_weather")


@pytest.mark.parametrize(
    ("group", "name", "flat"),
    [
        ("mcp__w", "look", "mcp__w__look"),
        ("mcp__w__", "look", "mcp__w__look"),  # as Codex before 0.150 wrote it
        ("mcp__w", "mcp__w__look", "mcp__w__look"),
        ("crm", "look", "crm__look"),
        ("", "look", "look"),
    ],
)
def test_nothing_is_doubled(group, name, flat):
    assert flat_name(group, name) == flat


def test_names_that_collide_stay_two_and_are_the_same_in_every_request():
    tools = [function("a__b__c"), namespace("a", function("b__c")), namespace("a__b", function("c"))]
    names = [tool.name for tool in read({"tools": tools}).tools]
    assert (names[0], len({*names})) == ("a__b__c", 3)
    assert [tool.name for tool in read({"tools": [*tools[1:], tools[0]]}).tools] == [*names[1:], names[0]]
    history = [{"type": "function_call", "name": "c", "namespace": "a__b", "arguments": "{}", "call_id": "c"}]
    assert calls(read({"tools": tools, "input": history}))[0].name == names[2]


@pytest.mark.parametrize("to", OTHERS)
def test_a_long_name_is_shortened_alike_everywhere_and_found_again(to):
    tools = [namespace("mcp__" + "s" * 50, function("t" * 40), function("t" * 41))]
    history = [
        {"type": "function_call", "name": "t" * 41, "namespace": "mcp__" + "s" * 50, "arguments": "{}", "call_id": "call_1abc"},
        {"type": "function_call_output", "call_id": "call_1abc", "output": "x"},
    ]  # fmt: skip
    request = read({"tools": tools, "input": history})
    there, _ = sent(request, to)
    assert len({tool.name for tool in there.tools}) == 2
    assert calls(there)[0].name == there.tools[1].name
    assert all(DIALECTS[to].tools.names.fullmatch(tool.name) for tool in there.tools)
    assert restored(request, [tool.name for tool in there.tools]) == [
        ("t" * 40, "mcp__" + "s" * 50),
        ("t" * 41, "mcp__" + "s" * 50),
    ]


def restored(request: Request, names: list[str]) -> list[tuple[str, str | None]]:
    """Names and namespaces of calls in the whole answer that the client gets, where the model called those names."""
    made = [ToolCall(number, f"c{number}", name, "{}") for number, name in enumerate(names)]
    answer = Response("anthropic", choices=[Choice(parts=[*made], stop_reason="tool_calls")], clean=True)
    restore_response_calls(answer, request.tools)
    output = json.loads(encode_response(answer, RESPONSES))["output"]
    return [(item["name"], item.get("namespace")) for item in output]


def test_a_call_comes_back_under_its_namespace_in_a_whole_answer():
    assert restored(read(CODEX), [*FLAT, "unknown"]) == [
        ("exec_command", None),
        ("spawn_agent", "multi_agent_v1"),
        ("files_read", "mcp__my_server"),
        ("get_weather", "mcp__my_server"),
        ("files_read", "mcp__w"),
        ("get_weather", "mcp__w"),
        ("unknown", None),
    ]


def test_a_custom_tool_of_a_namespace_is_custom_again():
    patch = {"type": "custom", "name": "apply", "description": "d", "format": {"type": "text"}}
    request = read({"tools": [namespace("edit", patch)]})
    there, report = sent(request, "anthropic")
    assert [tool.name for tool in there.tools] == ["edit__apply"]
    assert report.losses == {"tool_namespace": 1, "custom_tool_wrapped": 1}
    call = ToolCall(0, "c1", "edit__apply", '{"input":"*** Begin"}')
    answer = Response("anthropic", choices=[Choice(parts=[call], stop_reason="tool_calls")], clean=True)
    restore_response_calls(answer, request.tools)
    (item,) = json.loads(encode_response(answer, RESPONSES))["output"]
    assert {name: item[name] for name in ("type", "name", "namespace", "input")} == {
        "type": "custom_tool_call", "name": "apply", "namespace": "edit", "input": "*** Begin",
    }  # fmt: skip


def test_the_second_leg_of_a_tool_loop_says_the_namespace_again():
    request = read(CODEX)
    call = ToolCall(0, "call_2abc", "mcp__w__files_read", "{}", qualified=QualifiedName("mcp__w", "files_read"))
    answer = Response(RESPONSES, vendor=RESPONSES, choices=[Choice(parts=[call])], clean=True)
    item = json.loads(
        encode_request(request_with_results(request, answer, [ToolResult("call_2abc", [Text("x")])]), RESPONSES)
    )["input"][-2]
    assert (item["name"], item["namespace"]) == ("files_read", "mcp__w")


# -- tools that come while the conversation goes on --------------------------------------------------------------------


LOADING = [
    {"type": "additional_tools", "tools": [function("late"), namespace("mcp__w", function("get_weather"))]},
    {"type": "tool_search_output", "call_id": "s1", "status": "completed", "execution": "client", "tools": [function("late")]},
]  # fmt: skip


def test_tools_that_an_item_brings_are_offered_once_elsewhere_and_stay_in_it_here():
    items = [{"role": "user", "content": "hi"}, LOADING[0], LOADING[1], {"role": "user", "content": "go on"}]
    request = read({"input": items, "tools": [function("first")]})
    assert [(tool.name, tool.loaded) for tool in request.tools] == [
        ("first", False), ("late", True), ("mcp__w__get_weather", True),
    ]  # fmt: skip
    written = json.loads(encode_request(request, RESPONSES))
    assert ([tool["name"] for tool in written["tools"]], written["input"][1:3]) == (["first"], LOADING)
    for to in OTHERS:
        there, _ = sent(request, to)
        assert [tool.name for tool in there.tools] == ["first", "late", "mcp__w__get_weather"]
    assert restored(request, ["mcp__w__get_weather", "late"]) == [("get_weather", "mcp__w"), ("late", None)]


@pytest.mark.parametrize("to", OTHERS)
def test_a_tool_that_comes_late_does_not_take_the_name_of_one_in_a_namespace(to):
    late = {"type": "additional_tools", "tools": [function("mcp__w__get_weather")]}
    request = read(
        {"tools": [namespace("mcp__w", function("get_weather"))], "input": [{"role": "user", "content": "hi"}, late]}
    )
    flat, own = [tool.name for tool in request.tools]
    assert flat != own == "mcp__w__get_weather"
    there, _ = sent(request, to)
    assert [tool.name for tool in there.tools] == [flat, own]
    assert restored(request, [flat, own]) == [("get_weather", "mcp__w"), (own, None)]


@pytest.mark.parametrize("to", OTHERS)
@pytest.mark.parametrize("group", [namespace("empty"), namespace("another", function("f"))])
def test_a_choice_of_a_namespace_that_holds_nothing_is_no_choice_among_the_others(to, group):
    empty = {"type": "namespace", "name": "empty"}
    request = read({"tools": [function("exec_command"), group], "tool_choice": empty})
    with pytest.raises(BadRequest, match="cannot define the required tool 'empty'"):
        sent(request, to)
    allowed = {"type": "allowed_tools", "mode": "auto", "tools": [empty]}
    request = read({"tools": [function("exec_command"), group], "tool_choice": allowed})
    assert request.tool_choice is not None
    assert request.tool_choice.names == ("empty",)
    there, _ = sent(request, to)
    assert there.tools == [] or there.tool_choice == ToolChoice("none")


def _many(many: int) -> Callable[[], object]:
    """Reads a request with so many namespaces, late tools and choices."""
    names = [f"t{number}" for number in range(many)]
    calls = {
        "tools": [namespace(f"n{name}", {"type": "function", "name": name}) for name in names]
        + [namespace("all", *({"type": "function", "name": f"a{name}"} for name in names))],
        "input": [
            {"type": "tool_search_output", "tools": [{"type": "function", "name": f"l{name}"}]} for name in names
        ],
        "tool_choice": {
            "type": "allowed_tools",
            "mode": "auto",
            "tools": [{"type": "function", "name": name} for name in names]
            + [{"type": "namespace", "name": "all"}] * many,
        },
    }
    body = json.dumps({**CODEX, **calls}).encode()
    return lambda: decode_request(body, RESPONSES)


def test_many_namespaces_and_late_tools_take_linear_time():
    assert grows(Case("namespaces", _many), 150) <= FACTOR


#: What else Codex and its kind define: the rule is a counted loss, and tools beside it stay.
TOOLS = [
    {"type": "web_search", "external_web_access": False},
    {"type": "tool_search", "execution": "server"},
    {"type": "image_generation", "output_format": "png"},
    {"type": "namespace", "name": "empty", "description": "d", "tools": []},
    {"type": "namespace", "name": "odd", "tools": [{"type": "hologram", "name": "h"}]},
]


@pytest.mark.parametrize("to", OTHERS)
@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool["type"] + tool.get("name", ""))
def test_what_no_other_dialect_has_is_a_counted_loss(tool, to):
    request = read({"tools": [tool, function("f", defer_loading=True)]})
    there, report = sent(request, to)
    assert [tool.name for tool in there.tools] == ["f"]
    assert (report.losses["tool_definition"], report.losses["metadata"]) == (1, 1)
    assert json.loads(encode_request(request, RESPONSES))["tools"][0] == tool


def test_a_call_of_a_responses_upstream_keeps_its_namespace_for_its_own_client():
    item = {"type": "function_call", "call_id": "c", "name": "look", "namespace": "mcp__w", "arguments": "{}"}
    upstream = {"object": "response", "id": "r", "model": "m", "status": "completed", "output": [item]}
    answer = decode_response(json.dumps(upstream).encode(), RESPONSES)
    (written,) = json.loads(encode_response(answer, RESPONSES))["output"]
    assert (written["name"], written["namespace"]) == ("look", "mcp__w")
