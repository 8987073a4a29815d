"""Tools that a vendor defines and the client runs: functions for every other model, and in calls what the client expects."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from streamkit.conversation.messages import Choice, Response, ToolCall, ToolResult
from streamkit.conversation.response_events import response_events
from streamkit.conversation.restore import restore_response_calls
from streamkit.dialects import encode
from streamkit.dialects.vocabulary.client_tools import ANTHROPIC, RESPONSES, unknown_version
from streamkit.errors import BadRequest
from streamkit.events import Verdict
from streamkit.pipeline import pipe
from streamkit.read_options import ReadOptions
from streamkit.recipes import collect, transcode
from streamkit.testing import FaultySource
from streamkit.tool_calls.schema import ToolSchemas
from streamkit.translation.bodies import decode_request, decode_response, encode_response
from tests.requests.rows import translate
from tests.requests.sdk_types import faults
from tests.whole_answers import ANSWERING_WHOLE

DIALECTS = [
    "openai-chat", "openai-responses", "anthropic", "bedrock", "cohere", "gemini", "gemini-interactions", "mistral", "ollama",
]  # fmt: skip
SCREEN = {"display_width_px": 800, "display_height_px": 600}
DEFINED: dict[str, dict[str, Any]] = {
    "shell": {"environment": {"type": "local"}},
    "computer_use_preview": {"display_width": 8, "display_height": 6, "environment": "linux"},
}
CLICK = {"type": "click", "button": "left", "x": 1, "y": 2}
#: For each type of definition: what a model calls, and in Responses the item that this is.
CALLED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    **{kind: ({"command": "ls"}, {}) for kind in ANTHROPIC if kind.startswith("bash")},
    **{kind: ({"command": "view", "path": "/a"}, {}) for kind in ANTHROPIC if kind.startswith("text")},
    **{kind: ({"command": "delete", "path": "/memories/a"}, {}) for kind in ANTHROPIC if kind.startswith("memory")},
    **{kind: ({"action": "left_click", "coordinate": [1, 2]}, {}) for kind in ANTHROPIC if kind.startswith("computer")},
    "apply_patch": (
        {"type": "update_file", "path": "a.py", "diff": "@@\n-a\n+b\n"},
        {"type": "apply_patch_call", "operation": {"type": "update_file", "path": "a.py", "diff": "@@\n-a\n+b\n"}},
    ),
    **{
        kind: ({"actions": [CLICK]}, {"type": "computer_call", "actions": [CLICK], "pending_safety_checks": []})
        for kind in ("computer", "computer_use_preview")
    },
    "local_shell": (
        {"command": ["ls"]},
        {"type": "local_shell_call", "action": {"type": "exec", "env": {}, "command": ["ls"]}},
    ),
    "shell": ({"commands": ["ls", "pwd"]}, {"type": "shell_call", "action": {"commands": ["ls", "pwd"]}}),
}  # fmt: skip
TABLES = {"anthropic": ANTHROPIC, "openai-responses": RESPONSES}
ROWS = [(dialect, kind) for dialect, table in TABLES.items() for kind in table]
CROSSINGS = [(dialect, kind, to) for dialect, kind in ROWS for to in DIALECTS if to != dialect]


def definition(dialect: str, kind: str) -> dict[str, Any]:
    if dialect == "openai-responses":
        return {"type": kind, **DEFINED.get(kind, {})}
    return {"type": kind, "name": ANTHROPIC[kind].name, **(SCREEN if kind.startswith("computer") else {})}


def body(dialect: str, *tools: dict[str, Any], history: list[Any] = []) -> dict[str, Any]:  # noqa: B006 - not changed
    if dialect == "openai-responses":
        return {"model": "m", "tools": [*tools], "input": [{"role": "user", "content": "Go"}, *history]}
    messages = [{"role": "user", "content": "Go"}, *history]
    return {"model": "m", "max_tokens": 99, "tools": [*tools], "messages": messages}


def asked(dialect: str, kind: str) -> dict[str, Any]:
    return body(dialect, definition(dialect, kind))


@pytest.mark.parametrize(("dialect", "kind"), ROWS)
def test_within_the_vendors_dialect_the_definition_stays_as_it_came(dialect, kind):
    whole = asked(dialect, kind)
    written, report = translate(whole, dialect, dialect)
    assert (written, report.losses) == (whole, {})


@pytest.mark.parametrize(("dialect", "kind", "to"), CROSSINGS)
def test_elsewhere_the_definition_is_a_function_that_the_vendors_types_take(dialect, kind, to):
    written, report = translate(asked(dialect, kind), dialect, to)
    assert faults(to, written) == []
    (tool,) = decode_request(orjson.dumps(written), to).tools
    row = TABLES[dialect][kind]
    assert (tool.name, tool.kind, tool.raw) == (row.name, "function", None)
    assert tool.description.startswith(row.description)
    assert report.losses["client_tool"] == 1
    assert not report.losses.keys() & {"tool_definition", "parameter"}
    if "display_width_px" in definition(dialect, kind):
        assert "800 pixels wide" in tool.description


@pytest.mark.parametrize(("dialect", "kind"), ROWS)
def test_the_schema_of_a_row_takes_what_its_clients_run_and_refuses_other_calls(dialect, kind):
    row = TABLES[dialect][kind]
    schemas = ToolSchemas([decode_request(orjson.dumps(asked(dialect, kind)), dialect).tools[0]])
    assert schemas.check(row.name, orjson.dumps(CALLED[kind][0]).decode()).ok
    assert not schemas.check(row.name, '{"command": 7, "commands": 7, "actions": 7, "action": 7, "type": 7}').ok


def answer(name: str, arguments: str) -> Response:
    call = ToolCall(0, "call_1", name, arguments, verdict=Verdict("complete"))
    choice = Choice(0, stop_reason="tool_calls", parts=[call])
    return Response("openai-chat", id="r", model="m", created=1, choices=[choice], clean=True)


async def streamed(response: Response, dialect: str) -> bytes:
    async def source():
        yield response_events(response)

    async with pipe(source(), encode(dialect)) as written:
        return b"".join([each async for each in written])


async def told(
    dialect: str, upstream: str, response: Response, asked: dict[str, Any], *, stream: bool
) -> dict[str, Any]:
    """The whole response that a client of ``dialect`` gets for what a model of ``upstream`` answered."""
    tools = decode_request(orjson.dumps(asked), dialect).tools
    if not stream:
        got = decode_response(encode_response(response, upstream), upstream)
        restore_response_calls(got, tools)
        return orjson.loads(encode_response(got, dialect))
    out = b""
    came = FaultySource([await streamed(response, upstream)])
    async with transcode(came, upstream, dialect, ReadOptions(offered=tools)) as written:
        async for each in written:
            out += each
    return await collected(out, dialect)


async def collected(out: bytes, dialect: str) -> dict[str, Any]:
    if dialect == "openai-responses":
        events = [orjson.loads(line[6:]) for line in out.split(b"\n") if line.startswith(b"data: {")]
        return events[-1]["response"]
    return orjson.loads(encode_response(await collect(FaultySource([out]), dialect), dialect))


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(("dialect", "kind", "to"), CROSSINGS)
async def test_a_call_is_what_the_vendors_client_runs(dialect, kind, to, stream):
    if not stream and to not in ANSWERING_WHOLE:
        pytest.skip(f"{to} has no whole responses")
    arguments, item = CALLED[kind]
    response = answer(TABLES[dialect][kind].name, orjson.dumps(arguments).decode())
    got = await told(dialect, to, response, asked(dialect, kind), stream=stream)
    if dialect == "anthropic":
        (block,) = [block for block in got["content"] if block["type"] == "tool_use"]
        assert (block["name"], block["input"], got["stop_reason"]) == (ANTHROPIC[kind].name, arguments, "tool_use")
        return
    (called,) = got["output"]
    assert called["call_id"]
    assert {name: called[name] for name in item} == item
    assert (called["status"], got["status"]) == ("completed", "completed")
    _check_history(kind, called, to)


def _check_history(kind: str, called: dict[str, Any], to: str) -> None:
    """The item and its output, as the client sends them back, are a call and its result again, with the same arguments."""
    outputs: dict[str, Any] = {
        "apply_patch_call": {"type": "apply_patch_call_output", "status": "completed", "output": "done"},
        "computer_call": {
            "type": "computer_call_output",
            "output": {"type": "computer_screenshot", "image_url": PIXEL},
        },
        "local_shell_call": {"type": "local_shell_call_output", "id": called["call_id"], "output": "done"},
        "shell_call": {"type": "shell_call_output", "output": [{"stdout": "done", "stderr": "", "outcome": EXITED}]},
    }
    output = {"call_id": called["call_id"], **outputs[called["type"]]}
    whole = body("openai-responses", definition("openai-responses", kind), history=[called, output])
    written, _ = translate(whole, "openai-responses", to, emulate=True)
    assert faults(to, written) == []
    request = decode_request(orjson.dumps(written), to)
    parts = [part for turn in request.turns for part in turn.parts]
    (call,) = [part for part in parts if isinstance(part, ToolCall)]
    assert (call.name, orjson.loads(call.arguments)) == (RESPONSES[kind].name, _arguments(called))
    assert [part for part in parts if isinstance(part, ToolResult)]


EXITED = {"type": "exit", "exit_code": 0}
PIXEL = "data:image/png;base64,iVBORw0KGgo="


def _arguments(called: dict[str, Any]) -> Any:
    members = {"apply_patch_call": "operation", "local_shell_call": "action", "shell_call": "action"}
    return called[members[called["type"]]] if called["type"] in members else {"actions": called["actions"]}


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("kind", RESPONSES)
async def test_a_function_of_the_same_name_stays_the_clients_function(kind, stream):
    """Such a tool has no name in Responses, so one of the client's functions may have that of its function."""
    name = RESPONSES[kind].name
    own = {"type": "function", "name": name, "parameters": {"type": "object"}, "strict": False}
    whole = body("openai-responses", definition("openai-responses", kind), own)
    written, _ = translate(whole, "openai-responses", "openai-chat")
    assert [tool["function"]["name"] for tool in written["tools"]] == [f"{name}_", name]
    arguments = orjson.dumps(CALLED[kind][0]).decode()
    for called, expected in ((name, "function_call"), (f"{name}_", CALLED[kind][1]["type"])):
        got = await told("openai-responses", "openai-chat", answer(called, arguments), whole, stream=stream)
        assert [item["type"] for item in got["output"]] == [expected]


BAD = {"a member is missing": "{}", "of another type": '{"commands": "ls"}'}


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("arguments", BAD.values(), ids=BAD)
async def test_arguments_that_the_item_cannot_have_are_a_function_call(arguments, stream):
    """The client could not read the item, and would wait for nothing."""
    response = answer("shell", arguments)
    got = await told("openai-responses", "openai-chat", response, asked("openai-responses", "shell"), stream=stream)
    (called,) = got["output"]
    assert (called["type"], called["name"], called["arguments"]) == ("function_call", "shell", arguments)


@pytest.mark.parametrize(
    ("kind", "choice"),
    [
        ("shell", "shell"),
        ("apply_patch", "apply_patch"),
        ("computer_use_preview", "computer_use_preview"),
        ("computer", "computer"),
        ("computer", "computer_use"),
    ],
)
def test_the_choice_of_a_tool_names_its_function(kind, choice):
    whole = {**asked("openai-responses", kind), "tool_choice": {"type": choice}}
    written, _ = translate(whole, "openai-responses", "openai-chat", emulate=True)
    assert written["tool_choice"] == {"type": "function", "function": {"name": RESPONSES[kind].name}}


@pytest.mark.parametrize("to", [name for name in DIALECTS if name != "openai-responses"])
def test_a_shell_in_a_container_is_the_providers(to):
    shell = {"type": "shell", "environment": {"type": "container_auto"}}
    _, report = translate(body("openai-responses", shell), "openai-responses", to)
    assert (report.losses["tool_definition"], report.losses["client_tool"]) == (1, 0)


@pytest.mark.parametrize("to", [name for name in DIALECTS if name != "anthropic"])
@pytest.mark.parametrize(
    "kind",
    ["bash_20270101", "text_editor_20270101", "memory_20270101", "computer_20270101", "computer_toolset_20270801"],
)
def test_an_unknown_version_is_refused_by_its_name(kind, to):
    whole = body("anthropic", {"type": kind, "name": "x"})
    written, report = translate(whole, "anthropic", "anthropic")
    assert (written, report.losses) == (whole, {})
    with pytest.raises(BadRequest, match=kind):
        translate(whole, "anthropic", to)


def test_members_of_a_definition_that_no_function_has_are_counted():
    tool = {**definition("anthropic", "bash_20250124"), "defer_loading": True, "cache_control": {"type": "ephemeral"}}
    _, report = translate(body("anthropic", tool), "anthropic", "openai-chat")
    assert ("parameter", "bash_20250124.defer_loading") in report.lost
    assert unknown_version("code_execution_20250825") == ""


TOOLSET = {"type": "computer_toolset_20260801", "configs": {"zoom": {"enabled": False}}}
CLICKED = {
    "type": "tool_use", "id": "t1", "name": "left_click", "toolset_name": "computer", "input": {"coordinate": [1, 2]},
}  # fmt: skip
SEEN = {"type": "tool_result", "tool_use_id": "t1", "content": "done"}
USED = [{"role": "assistant", "content": [CLICKED]}, {"role": "user", "content": [SEEN]}]


def test_a_toolset_with_configs_that_are_no_object_is_refused():
    with pytest.raises(BadRequest, match=r"tools\[0\]\.configs: must be an object, not a list"):
        translate(body("anthropic", {**TOOLSET, "configs": []}), "anthropic", "openai-chat")


def test_within_anthropic_a_toolset_stays_as_it_came():
    whole = body("anthropic", TOOLSET, {"type": "bash_20250124", "name": "bash"}, history=USED)
    written, report = translate(whole, "anthropic", "anthropic")
    assert (written, report.losses) == (whole, {})


@pytest.mark.parametrize("to", [name for name in DIALECTS if name != "anthropic"])
async def test_a_toolset_is_a_function_for_each_of_its_tools_that_is_on(to):
    whole = body("anthropic", TOOLSET, history=USED)
    written, report = translate(whole, "anthropic", to, emulate=True)
    assert faults(to, written) == []
    request = decode_request(orjson.dumps(written), to)
    names = {tool.name for tool in request.tools}
    assert len(names) == 16
    assert "computer__left_click" in names
    assert "computer__zoom" not in names
    (call,) = [part for turn in request.turns for part in turn.parts if isinstance(part, ToolCall)]
    assert call.name == "computer__left_click"
    assert report.losses["client_tool"] == 1
    for stream in [True] + [False] * (to in ANSWERING_WHOLE):
        response = answer("computer__left_click", '{"coordinate":[1,2]}')
        got = await told("anthropic", to, response, whole, stream=stream)
        (block,) = [block for block in got["content"] if block["type"] == "tool_use"]
        assert {**block, "id": "t1"} == {**CLICKED, "caller": {"type": "direct"}}, stream
