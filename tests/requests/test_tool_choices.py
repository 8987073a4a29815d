"""A tool that a dialect can't define leaves no traces: it is demanded, and the request refused, or nothing of it is written.

Source: dialects.md §7.3, §7.4; what Claude Code 2.1 and Codex 0.169 send.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from streamkit.conversation.messages import Request, Text, Tool, ToolChoice, Turn, WebSearch
from streamkit.dialects import DIALECTS
from streamkit.errors import BadRequest
from streamkit.translation.bodies import decode_request, encode_request
from tests.laws.judging import Case, grows
from tests.requests.rows import write
from tests.working import FACTOR

DIALECT_NAMES = [*DIALECTS.built_in]
SCHEMA = {"type": "object", "properties": {}}
HOLOGRAM = Tool("hologram", kind="server", raw={"type": "hologram"})
LOOK = Tool("look", "d", SCHEMA)
#: Where the members stand that say something of a choice.
TRACES = ("tools", "tool_choice", "parallel_tool_calls", "toolConfig", "strict_tools")


def asking(tools: list[Tool], choice: ToolChoice) -> Request:
    return Request("neutral", "claude-x", [Turn("user", [Text("hi")])], tools, choice)


@pytest.mark.parametrize("to", DIALECT_NAMES)
@pytest.mark.parametrize(
    "choice",
    [ToolChoice(), ToolChoice(parallel=False), ToolChoice("none"), ToolChoice("auto", ("hologram",), parallel=True)],
    ids=["auto", "one at a time", "none", "some"],
)
def test_a_choice_is_not_written_where_no_tool_is(choice, to):
    written, report = write(asking([HOLOGRAM], choice), to, emulate=True)
    assert not [name for name in TRACES if written.get(name)]
    assert "additionalModelRequestFields" not in written
    assert report.losses == {"tool_definition": 1}


@pytest.mark.parametrize("to", DIALECT_NAMES)
@pytest.mark.parametrize(
    ("tools", "choice"),
    [
        ([HOLOGRAM, LOOK], ToolChoice("required", ("hologram",))),
        ([HOLOGRAM], ToolChoice("required", ("hologram",))),
        ([HOLOGRAM], ToolChoice("required")),
        ([LOOK], ToolChoice("required", ("hologram",), native={"type": "hologram"})),
    ],
    ids=["by name", "by name alone", "whichever", "by a type"],
)
def test_a_tool_that_is_demanded_and_cannot_be_defined_is_a_bad_request_that_names_both(tools, choice, to):
    with pytest.raises(BadRequest) as caught:
        write(asking(tools, choice), to, emulate=True)
    assert caught.value.path == "tool_choice"
    assert "'hologram'" in caught.value.reason
    assert to in caught.value.reason


@pytest.mark.parametrize("to", DIALECT_NAMES)
def test_a_demanded_call_without_any_tool_is_one_too(to):
    with pytest.raises(BadRequest, match="the request defines no tools"):
        write(asking([], ToolChoice("required")), to)


@pytest.mark.parametrize("to", DIALECT_NAMES)
@pytest.mark.parametrize("choice", [ToolChoice("required"), ToolChoice("required", ("hologram", "look"))])
def test_another_tool_may_be_the_one_that_is_called(choice, to):
    written, report = write(asking([HOLOGRAM, LOOK], choice), to, emulate=True)
    assert "look" in json.dumps(written)
    assert "hologram" not in json.dumps(written)
    assert report.losses["tool_definition"] + report.losses["tool_choice"] > 0


@pytest.mark.parametrize("to", DIALECT_NAMES)
def test_where_only_such_a_tool_may_be_called_none_may(to):
    there = decode_request(
        encode_request(asking([HOLOGRAM, LOOK], ToolChoice("auto", ("hologram",))), to, emulate=True), to
    )
    may = (
        []
        if there.tool_choice is not None and there.tool_choice.mode == "none"
        else [tool.name for tool in there.tools]
    )
    assert may == []


#: Claude Code's WebSearch, and Codex' first request, towards dialects that have no search of the web.
WEB_SEARCH = {
    "model": "m",
    "max_tokens": 100,
    "messages": [{"role": "user", "content": "Perform a web search for the query: streamkit"}],
    "tools": [{"type": "web_search_20250305", "name": "web_search", "max_uses": 8}],
    "tool_choice": {"type": "tool", "name": "web_search"},
}


@pytest.mark.parametrize("to", ["openai-chat", "ollama", "cohere", "bedrock", "mistral"])
def test_claude_codes_search_is_not_asked_of_a_model_that_would_make_it_up(to):
    request = decode_request(json.dumps(WEB_SEARCH).encode(), "anthropic")
    with pytest.raises(BadRequest, match="cannot define the required tool 'web_search'"):
        write(request, to, emulate=True)


@pytest.mark.parametrize("dialect", ["openai-responses", "openai-chat", "mistral"])
def test_a_choice_of_a_tool_that_the_provider_runs_is_a_choice(dialect):
    message = {"input" if dialect == "openai-responses" else "messages": [{"role": "user", "content": "hi"}]}
    body = {"model": "m", **message, "tools": [{"type": "hologram"}], "tool_choice": {"type": "hologram"}}
    request = decode_request(json.dumps(body).encode(), dialect)
    assert request.tool_choice == ToolChoice("required", ("hologram",))
    assert json.loads(encode_request(request, dialect))["tool_choice"] == body["tool_choice"]
    with pytest.raises(BadRequest, match="anthropic cannot define the required tool 'hologram'"):
        write(request, "anthropic", emulate=True)


@pytest.mark.parametrize("to", DIALECT_NAMES)
def test_a_choice_among_many_tools_takes_linear_time(to):
    def asked(many: int) -> Callable[[], object]:
        tools = [Tool(f"t{number}", "d", SCHEMA) for number in range(many)]
        gone = [Tool(f"s{number}", kind="server", raw={}, search=WebSearch()) for number in range(many)]
        request = asking(
            [*gone, *tools, Tool("web_search", "d", SCHEMA)], ToolChoice("auto", tuple(tool.name for tool in tools))
        )
        return lambda: encode_request(request, to, emulate=True)

    assert grows(Case("tools", asked), 150) <= FACTOR
