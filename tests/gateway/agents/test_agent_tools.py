"""Coding agents with the tools that they run themselves, on models of other vendors: they search for a tool, load it, call it,
edit a file with what it said, and end. The file is right.

The model is scripted: each of its answers is the next step, whatever dialect its upstream speaks.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from attrs import define, field, frozen

from streamkit.conversation.messages import Part, Request, Text, Tool, ToolCall, ToolResult
from streamkit.events import Verdict
from streamkit.translation.bodies import decode_request
from tests.gateway import processes
from tests.gateway.agents.programs import CODEX, FOLDER, INSTALL_S, KEY, MCP, RUN_S, Place, claude_code, codex, run
from tests.gateway.agents.scripted import ASIDE, COUNTED, WORD
from tests.gateway.agents.test_agents import CONFIG, placed
from tests.gateway.clients.in_thread import PromptUpstream
from tests.gateway.clients.test_tool_loops import script
from tests.gateway.running import BASES
from tests.web.evil import Received, Script
from tests.web.faults import asks_for_stream, status, whole

ANSWER: Final = "answer.txt"
DONE: Final = "It is done."


@frozen
class Step:
    """One call of the model: of the tool with this name, with arguments made of the word that an earlier tool told."""

    tool: str
    arguments: Callable[[str], dict[str, Any] | str]


@define
class SteppedModel:
    """The plays of an upstream whose model takes one step in each answer."""

    dialect: str
    steps: list[Step]
    asked: list[Request] = field(factory=list)  #: the requests that it answered with a step, or with its end
    missing: list[str] = field(factory=list)  #: tools that it was to call, and was not offered

    def play(self, received: Received) -> Script:
        if received.method == "GET":
            return status(404, self.dialect, message="no such page")
        if "count" in received.path.lower():
            return whole(self.dialect, json.dumps(COUNTED).encode())
        request = decode_request(received.body, self.dialect)
        parts, stop = self._answer(request)
        return script(self.dialect, stream=asks_for_stream(received, self.dialect), parts=parts, stop=stop)

    def _answer(self, request: Request) -> tuple[list[Part], str]:
        results = [part for turn in request.turns for part in turn.parts if isinstance(part, ToolResult)]
        if not request.tools:
            return [Text(ASIDE)], "stop"
        self.asked.append(request)
        if len(results) == len(self.steps):
            return [Text(DONE)], "stop"
        step = self.steps[len(results)]
        tool = next((tool for tool in request.tools if tool.name == step.tool), None)
        if tool is None:
            self.missing.append(step.tool)
            return [Text(ASIDE)], "stop"
        words = [match[0] for result in results if (match := WORD.search(result.text))]
        return [_call(len(results), tool, step.arguments(words[-1] if words else ""))], "tool_calls"


def _call(number: int, tool: Tool, arguments: dict[str, Any] | str) -> ToolCall:
    if isinstance(arguments, str):  # free text: as it is, or as the function that stands for it takes it
        text = arguments if tool.kind == "custom" else json.dumps({"input": arguments})
    else:
        text = json.dumps(arguments)
    kind = "custom" if tool.kind == "custom" else "function"
    return ToolCall(0, f"call_{number}", tool.name, text, kind, verdict=Verdict("complete"), qualified=tool.qualified)


def codex_that_searches(place: Place) -> list[str]:
    """With a model that is known to search for the tools of MCP servers, and to patch files by free text."""
    command, _ = codex(place)
    server = MCP % (json.dumps(sys.executable), json.dumps([str(FOLDER / "mcp_server.py"), place.word]))
    place.configure(".codex/config.toml", (CODEX % place.url).replace("some-model", "gpt-5.5") + server)
    return command


ALLOWED: Final = "Bash,Edit,Read,ToolSearch,mcp__words__look_up"


def claude_that_searches(place: Place) -> list[str]:
    command, _ = claude_code(place)
    server = {"command": sys.executable, "args": [str(FOLDER / "mcp_server.py"), place.word]}
    mcp = place.configure("mcp.json", json.dumps({"mcpServers": {"words": server}}))
    place.environment["ENABLE_TOOL_SEARCH"] = "true"
    return [*command[:3], "--mcp-config", str(mcp), "--strict-mcp-config", "--allowedTools", ALLOWED]


def _patch(word: str) -> str:
    return f"*** Begin Patch\n*** Add File: {ANSWER}\n+{word}\n*** End Patch\n"


CODEX_STEPS: Final = [
    Step("tool_search", lambda _: {"query": "word that a name stands for"}),
    Step("mcp__words__look_up", lambda _: {"name": "it"}),
    Step("apply_patch", _patch),
    Step("exec_command", lambda _: {"cmd": f"cat {ANSWER}"}),
]
CLAUDE_STEPS: Final = [
    Step("ToolSearch", lambda _: {"query": "select:mcp__words__look_up"}),
    Step("mcp__words__look_up", lambda _: {"name": "it"}),
    Step("Bash", lambda _: {"command": f"echo wrong > {ANSWER}; cat {ANSWER}", "description": "Begin the file"}),
    Step("Read", lambda _: {"file_path": ANSWER}),
    Step("Edit", lambda word: {"file_path": ANSWER, "old_string": "wrong", "new_string": word}),
]
AGENTS: Final = {
    "codex": (codex_that_searches, CODEX_STEPS, "openai-responses"),
    "claude-code": (claude_that_searches, CLAUDE_STEPS, "anthropic"),
}
#: Within an agent's own dialect the upstream gets its tools as they are, so there is nothing to translate.
PAIRS: Final = [
    *(("codex", upstream) for upstream in ("openai-chat", "anthropic", "gemini", "bedrock")),
    *(("claude-code", upstream) for upstream in ("openai-chat", "openai-responses", "gemini", "bedrock")),
]


@pytest.mark.agents
@pytest.mark.timeout(RUN_S + INSTALL_S + 60)
@pytest.mark.parametrize(("agent", "upstream"), PAIRS)
async def test_it_searches_loads_calls_edits_and_ends(
    agent: str, upstream: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("AGENTS_KEY", KEY)
    prepare, steps, dialect = AGENTS[agent]
    place = placed(tmp_path)
    model = SteppedModel(upstream, steps)
    async with PromptUpstream(model.play) as scripted:
        config = tmp_path / "gateway.toml"
        config.write_text(CONFIG % (upstream, scripted.url + BASES.get(upstream, "")), "utf-8")
        async with processes.serving(tmp_path, "--config", str(config)) as gateway:
            place.url = gateway.url
            ran = await run(place, prepare(place))
    offered = sorted({tool.name for request in model.asked for tool in request.tools})
    assert model.missing == [], (offered, ran)
    assert ran.status == 0, ran
    assert DONE in ran.output, ran
    assert (place.note.parent / ANSWER).read_text("utf-8").strip() == place.word, ran
    for line in gateway.events("request"):
        if "attempts" in line:
            assert (line["client"], line["status"], line["ending"]) == (dialect, 200, "whole"), line
