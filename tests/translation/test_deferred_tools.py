"""Which deferred tools stay out of a request, what a search finds, and how the history of searches is told to a model."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from attrs import evolve

from streamkit.conversation.messages import Options, Request, Tool, ToolCall, ToolChoice, ToolResult
from streamkit.errors import UsageError
from streamkit.report import StreamReport
from streamkit.translation import tool_ranking
from streamkit.translation.bodies import decode_request
from streamkit.translation.deferred_tools import MOST_FOUND, NAME, NOTHING, DeferredTools, deferred_tools
from streamkit.translation.tool_ranking import Ranking, check_library
from tests.requests.test_deferred_tools import BODY, MESSAGES, PLAIN, SEARCHED

WEATHER = {"type": "tool_reference", "name": "weather"}


def names(tools: DeferredTools | None) -> list[str]:
    assert tools is not None
    return [tool.name for tool in tools.visible().tools]


def read(**changes: Any) -> Request:
    """A request with a search, a deferred tool and another tool, and members in place of its own."""
    return decode_request(orjson.dumps({**BODY, "messages": MESSAGES[:1], **changes}), "anthropic")


def emulated(request: Request) -> DeferredTools | None:
    return deferred_tools(request, StreamReport())


def test_a_deferred_tool_stays_out_until_it_is_found():
    tools = emulated(read())
    assert names(tools) == [NAME, "plain"]
    assert tools is not None
    assert [tool.name for tool in tools.hidden] == ["weather"]
    assert tools.find('{"query": "the weather in Rome"}').names == ["weather"]
    assert (names(tools), tools.hidden) == ([NAME, "plain", "weather"], [])
    assert not any(tool.deferred for tool in tools.visible().tools)


@pytest.mark.parametrize("changes", [
    {"messages": MESSAGES},
    {"messages": [MESSAGES[0], {"role": "assistant", "content": [*SEARCHED, {"type": "text", "text": "Hm."}]}, MESSAGES[0]]},
    {"messages": [MESSAGES[0], {"role": "assistant", "content": MESSAGES[1]["content"][-1:]}, MESSAGES[2]]},
    {"tool_choice": {"type": "tool", "name": "weather"}},
    {"messages": [MESSAGES[0], {"role": "system", "content": [{"type": "tool_addition", "tool": WEATHER}]}]},
], ids=["found and called", "found", "called", "chosen", "added"])  # fmt: skip
def test_what_the_history_or_the_choice_names_is_defined(changes):
    assert names(emulated(read(**changes))) == [NAME, "plain", "weather"]


def test_searches_of_the_history_are_calls_with_their_results():
    tools = emulated(read(messages=MESSAGES))
    assert tools is not None
    _, asked, answered, called, _ = tools.visible().turns
    call, (result,) = asked.parts[-1], answered.parts
    assert isinstance(call, ToolCall)
    assert isinstance(result, ToolResult)
    assert (call.name, call.arguments, call.id) == (NAME, '{"query":"rain"}', result.call_id)
    assert result.text == '[{"name":"weather","description":"The weather."}]'
    assert [part.name for part in called.parts if isinstance(part, ToolCall)] == ["weather"]
    again = emulated(read(messages=MESSAGES))
    assert again is not None
    assert again.visible() == tools.visible(), "the ids are the same in each request, so that prompts are cached"


def test_a_search_of_each_turn_has_an_id_of_its_own():
    tools = emulated(read(messages=MESSAGES * 2))
    assert tools is not None
    ids = [
        part.id
        for turn in tools.visible().turns
        for part in turn.parts
        if isinstance(part, ToolCall)
        if part.name == NAME
    ]
    assert len({*ids}) == tools.searches == 2
    tools.go_on([ToolCall(0, ids[0], NAME, "{}")], {ids[0]: tools.find("rain")})
    *_, asked, answered = tools.visible().turns
    call, result = asked.parts[0], answered.parts[0]
    assert isinstance(call, ToolCall)
    assert isinstance(result, ToolResult)
    assert call.id == result.call_id
    assert call.id not in ids, "some upstreams use an id again in their next response"


def test_a_tool_that_the_history_withdrew_is_not_found():
    removal = {"role": "system", "content": [{"type": "tool_removal", "tool": WEATHER}]}
    request = read(messages=[MESSAGES[0], removal])
    rain = Tool("rain", "The weather.", deferred=True)
    tools = emulated(evolve(request, tools=[*request.tools, rain]))
    assert tools is not None
    assert tools.find("weather").names == ["rain"]
    assert names(tools) == [NAME, "weather", "plain", "rain"], "Anthropic must know the tool that the block names"
    assert not any(tool.deferred for tool in tools.visible().tools)


FINDER = BODY["tools"][0]["name"]


@pytest.mark.parametrize(("names", "first", "then"), [
    ((FINDER,), ("required", (NAME,)), ("auto", ())),
    ((FINDER, "plain"), ("required", (NAME, "plain")), ("required", (NAME, "plain"))),
    (("plain",), ("required", ("plain",)), ("required", ("plain",))),
    ((), ("required", ()), ("required", ())),
])  # fmt: skip
def test_a_choice_of_the_vendors_search_is_one_of_the_function_until_it_has_searched(names, first, then):
    tools = emulated(evolve(read(), tool_choice=ToolChoice("required", names, parallel=False)))
    assert tools is not None
    for mode, expected in (first, then):
        choice = tools.visible().tool_choice
        assert choice is not None
        assert (choice.mode, choice.names, choice.parallel) == (mode, expected, False)
        tools.go_on([ToolCall(0, "s1", NAME, "{}")], {"s1": tools.find("rain")})


def test_a_cache_mark_of_the_search_is_on_the_function():
    finder = {**BODY["tools"][0], "cache_control": {"type": "ephemeral"}}
    tools = emulated(read(tools=[finder, *BODY["tools"][1:]]))
    assert tools is not None
    assert tools.search is not None
    assert tools.search.cache is not None


def test_nothing_is_emulated_where_nothing_is_deferred_or_several_choices_are_asked_for():
    assert emulated(read(tools=[PLAIN])) is None
    assert emulated(evolve(read(), options=Options(choices=2))) is None


def test_a_client_that_searches_itself_gets_no_function_and_a_taken_name_is_not_taken_again():
    request = read()
    own = evolve(request, tools=request.tools[1:])
    assert names(emulated(own)) == ["plain"]
    taken = evolve(request, tools=[*request.tools, Tool(NAME)], tool_choice=ToolChoice("auto", ("plain",)))
    assert names(emulated(taken)) == [f"{NAME}_", "plain", NAME]


# -- ranking ---------------------------------------------------------------------------------------------------------------

TOOLS = [
    Tool("sendEmail", "Writes to somebody."),
    Tool("get_forecast", "Tells the weather of the next days.", {"properties": {"city": {"description": "A town."}}}),
    Tool("files.copy", "Duplicates.", {"properties": {"to": {"items": {"properties": {"folder": {}}}}}}),
    Tool("größe", None),
]


@pytest.mark.parametrize(("query", "found"), [
    ("send", "sendEmail"), ("Emails", "sendEmail"), ("forecasting", "get_forecast"), ("which towns", "get_forecast"),
    ("folder", "files.copy"), ("Files.Copy", "files.copy"), ("Größe", "größe"),
])  # fmt: skip
def test_a_tool_is_found_by_words_of_its_name_its_description_and_its_arguments(query, found):
    assert Ranking(TOOLS).best(query, MOST_FOUND)[:1] == [found]


@pytest.mark.parametrize("query", ["", "the", "spaceship", "!"])
def test_words_of_no_tool_find_nothing(query):
    assert Ranking(TOOLS).best(query, MOST_FOUND) == []
    assert Ranking([Tool("!")]).best(query, MOST_FOUND) == (["!"] if query == "!" else [])


def test_a_search_finds_five_tools_at_most_and_says_if_it_found_none():
    request = evolve(read(), tools=[*read().tools, *(Tool(f"rain_{n}", deferred=True) for n in range(9))])
    tools = emulated(request)
    assert tools is not None
    assert len(tools.find("rain").names) == MOST_FOUND
    found = tools.find('{"query": "spaceship"}')
    assert found.names == []
    tools.go_on([ToolCall(0, "s1", NAME, "{}")], {"s1": found})
    result = tools.visible().turns[-1].parts[0]
    assert isinstance(result, ToolResult)
    assert (result.call_id, result.text) == ("s1", NOTHING)


def test_without_the_extra_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr(tool_ranking, "LIBRARIES", ("no_such_library",))
    with pytest.raises(UsageError, match=r"pip install 'streamkit-llm\[tools\]'; or leave tool_search out"):
        check_library("or leave tool_search out")
