"""A search of the web that the provider runs itself: from Anthropic, Responses, Gemini and Chat to each other.

Source: dialects.md §1.3, §2.3, §3.2, §5.3; the request types of anthropic, openai 3.54 and google-genai.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamkit.conversation.messages import Request, WebSearch
from streamkit.dialects import DIALECTS
from streamkit.errors import BadRequest
from streamkit.report import StreamReport
from streamkit.translation.bodies import decode_request, encode_request
from tests.requests.sdk_types import faults

PLACE = {"city": "Akureyri", "region": "Norðurland eystra", "country": "IS", "timezone": "Atlantic/Reykjavik"}
NEAR = {"type": "approximate", **PLACE}
HI = {"role": "user", "content": "hi"}
FUNCTION = {"type": "object", "properties": {}}
SEARCHING = ["anthropic", "openai-responses", "gemini"]
#: A request that offers a search, by the dialect that it is written in; and one that has a function beside it.
ALONE: dict[str, dict[str, Any]] = {
    "anthropic": {
        "max_tokens": 100,
        "messages": [HI],
        "tools": [{"type": "web_search_20250305", "name": "web_search"}],
    },
    "openai-responses": {"input": [HI], "tools": [{"type": "web_search"}]},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "hi"}]}], "tools": [{"googleSearch": {}}]},
    "openai-chat": {"messages": [HI], "web_search_options": {}},
}
FUNCTIONS: dict[str, Any] = {
    "anthropic": [{"name": "look", "input_schema": FUNCTION}],
    "openai-responses": [{"type": "function", "name": "look", "parameters": FUNCTION, "strict": False}],
    "gemini": [{"functionDeclarations": [{"name": "look", "parametersJsonSchema": FUNCTION}]}],
    "openai-chat": [{"type": "function", "function": {"name": "look", "parameters": FUNCTION}}],
}
MODELS = {"openai-chat": "gpt-5-search-api"}


def read(dialect: str, *, functions: bool = False, **members: Any) -> Request:
    tools = [*(FUNCTIONS[dialect] if functions else ()), *ALONE[dialect].get("tools", ())]
    body = {**ALONE[dialect], **({"tools": tools} if tools else {}), **members}
    request = decode_request(json.dumps(body).encode(), dialect)
    request.model = "m"
    return request


def write(request: Request, to: str, model: str | None = None) -> tuple[dict[str, Any], StreamReport]:
    report = StreamReport()
    request.model = model or MODELS.get(to, "m")
    return json.loads(encode_request(request, to, report=report)), report


def searches(written: dict[str, Any]) -> list[Any]:
    """The definitions of searches in a body."""
    tools = [tool for tool in written.get("tools", ()) if "search" in json.dumps(tool).lower()]
    return [*tools, *([written["web_search_options"]] if "web_search_options" in written else [])]


@pytest.mark.parametrize("to", [*SEARCHING, "openai-chat"])
@pytest.mark.parametrize("dialect", ALONE)
def test_a_search_is_one_in_each_dialect_that_has_it(dialect, to):
    request = read(dialect)
    assert request.tools[0].search == WebSearch()
    written, report = write(request, to)
    assert searches(written) == searches({**ALONE[to]})
    assert not report.losses
    assert faults(to, {"max_tokens": 100, **written} if to == "anthropic" else written) == []


@pytest.mark.parametrize("dialect", ALONE)
def test_within_the_dialect_it_is_what_it_was(dialect):
    written, report = write(read(dialect, functions=True), dialect)
    assert searches(written) == searches(ALONE[dialect])
    assert not report.losses


@pytest.mark.parametrize("to", [*SEARCHING, "openai-chat"])
@pytest.mark.parametrize("dialect", ALONE)
def test_beside_functions_too_but_for_gemini_which_refuses_that(dialect, to):
    if to == dialect:
        return
    written, report = write(read(dialect, functions=True), to)
    assert "look" in json.dumps(written["tools"])
    assert len(searches(written)) == (to != "gemini")
    assert report.losses == ({"tool_definition": 1} if to == "gemini" else {})


OPTIONS: dict[str, tuple[str, dict[str, Any], WebSearch]] = {
    "anthropic": (
        "anthropic",
        {"type": "web_search_20260318", "name": "web_search", "max_uses": 3, "allowed_domains": ["a.is"], "user_location": NEAR, "strict": True},
        WebSearch(max_uses=3, allowed_domains=("a.is",), location=PLACE, extras={"strict": True}),
    ),
    "anthropic, some blocked": (
        "anthropic",
        {"type": "web_search_20250305", "name": "web_search", "blocked_domains": ["b.is"]},
        WebSearch(blocked_domains=("b.is",)),
    ),
    "responses": (
        "openai-responses",
        {"type": "web_search", "filters": {"allowed_domains": ["a.is"]}, "user_location": NEAR, "search_context_size": "high", "external_web_access": True},
        WebSearch(allowed_domains=("a.is",), location=PLACE, context="high"),
    ),
    "responses, the older type": ("openai-responses", {"type": "web_search_preview", "user_location": None}, WebSearch()),
    "gemini": (
        "gemini",
        {"googleSearch": {"excludeDomains": ["b.is"], "timeRangeFilter": {"startTime": "t"}}},
        WebSearch(blocked_domains=("b.is",), extras={"timeRangeFilter": {"startTime": "t"}}),
    ),
    "gemini, the older name": ("gemini", {"google_search_retrieval": {}}, WebSearch()),
    "options of the wrong kind": (
        "openai-responses",
        {"type": "web_search", "filters": 5, "user_location": "x", "search_context_size": "huge"},
        WebSearch(extras={"filters": 5, "user_location": "x", "search_context_size": "huge"}),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIONS)
def test_options_are_written_or_counted(name):
    dialect, tool, search = OPTIONS[name]
    request = read(dialect, tools=[tool])
    assert request.tools[0].search == search
    for to, words in WORDS.items():
        if to == dialect:
            continue
        written, report = write(request, to)
        (found,) = searches(written)
        said = {option for option, word in words.items() if word in json.dumps(found)}
        asked = {
            option
            for option in ("max_uses", "allowed_domains", "blocked_domains", "location", "context")
            if getattr(search, option)
        }
        lost = {what.removeprefix("web_search.") for _, what in report.lost if what.startswith("web_search.")}
        assert said | lost == asked | {*(search.extras or ())}
        assert not said & lost


#: Where the options stand.
WORDS: dict[str, dict[str, str]] = {
    "anthropic": {"max_uses": '"max_uses": 3', "allowed_domains": '"allowed_domains": ["a.is"]', "blocked_domains": '"blocked_domains": ["b.is"]', "location": json.dumps(NEAR)},
    "openai-responses": {"allowed_domains": '"filters": {"allowed_domains": ["a.is"]}', "location": json.dumps(NEAR), "context": '"search_context_size": "high"'},
    "gemini": {},
    "openai-chat": {"location": json.dumps({"type": "approximate", "approximate": PLACE}), "context": '"search_context_size": "high"'},
}  # fmt: skip


def test_anthropic_takes_one_list_of_domains():
    request = read(
        "openai-responses", tools=[{"type": "web_search", "allowed_domains": ["a"], "blocked_domains": ["b"]}]
    )
    written, report = write(request, "anthropic")
    assert (written["tools"][0]["allowed_domains"], "blocked_domains" in written["tools"][0]) == (["a"], False)
    assert report.lost == [("parameter", "web_search.blocked_domains")]


@pytest.mark.parametrize("to", ["anthropic", "gemini", "openai-chat"])
def test_a_search_of_what_is_stored_only_is_no_search_of_the_web(to):
    """As Codex asks in its sandbox: elsewhere the model would look at pages that the user did not allow."""
    written, report = write(read("openai-responses", tools=[{"type": "web_search", "external_web_access": False}]), to)
    assert not searches(written)
    assert report.losses == {"tool_definition": 1}


def test_chat_has_it_for_the_models_that_always_search():
    written, report = write(read("anthropic"), "openai-chat", "gpt-5.2")
    assert "web_search_options" not in written
    assert report.losses == {"tool_definition": 1}


def test_a_function_of_that_name_stands_before_a_search_at_anthropic():
    function = {"type": "function", "name": "web_search", "parameters": FUNCTION, "strict": False}
    written, report = write(read("openai-responses", tools=[function, {"type": "web_search"}]), "anthropic")
    assert [tool.get("type") for tool in written["tools"]] == [None]
    assert report.losses == {"tool_definition": 1}


# -- the choice of it --------------------------------------------------------------------------------------------------

CHOSEN = {"anthropic": {"type": "tool", "name": "web_search"}, "openai-responses": {"type": "web_search"}}


@pytest.mark.parametrize("functions", [True, False], ids=["beside a function", "alone"])
@pytest.mark.parametrize("dialect", CHOSEN)
def test_a_search_that_is_demanded_is_demanded_there(dialect, functions):
    """As Claude Code's WebSearch demands it."""
    request = read(dialect, functions=functions, tool_choice=CHOSEN[dialect])
    if dialect != "anthropic":
        written, report = write(request, "anthropic")
        assert (written["tool_choice"], dict(report.losses)) == (CHOSEN["anthropic"], {})
    if dialect != "openai-responses":
        written, report = write(request, "openai-responses")
        some = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "web_search"}]}
        assert (written["tool_choice"], dict(report.losses)) == (some if functions else "required", {})
    written, report = write(request, "gemini")
    assert (written["tools"], "toolConfig" in written) == (
        [{"googleSearch": {}}],
        False,
    )  # alone, so that nothing else is called
    assert report.losses == {"tool_choice": 1} | ({"tool_definition": 1} if functions else {})
    written, report = write(request, "openai-chat")
    assert ("web_search_options" in written, "tool_choice" in written) == (True, functions)
    with pytest.raises(BadRequest, match="cannot define the required tool"):
        write(request, "openai-chat", "gpt-5.2")


@pytest.mark.parametrize("to", [*SEARCHING, "openai-chat"])
@pytest.mark.parametrize("dialect", ["anthropic", "openai-responses"])
def test_any_call_that_is_demanded_may_be_a_search(dialect, to):
    choice = {"type": "any"} if dialect == "anthropic" else "required"
    written, _ = write(read(dialect, tool_choice=choice), to)
    assert len(searches(written)) == 1
    if to in {"gemini", "openai-chat"}:
        assert not written.keys() & {"tool_choice", "toolConfig"}


@pytest.mark.parametrize("to", ["gemini", "openai-chat"])
def test_where_nothing_may_be_called_nothing_is_searched(to):
    written, _ = write(read("anthropic", tool_choice={"type": "none"}), to)
    assert not searches(written)
    assert not written.keys() & {"tool_choice", "toolConfig"}


@pytest.mark.parametrize("to", [name for name in DIALECTS.built_in if name not in ALONE])
@pytest.mark.parametrize("dialect", ALONE)
def test_elsewhere_it_is_a_counted_loss(dialect, to):
    written, report = write(read(dialect), to)
    assert not written.get("tools")
    assert report.losses["tool_definition"] == 1


@pytest.mark.parametrize(
    "to",
    [name for name in DIALECTS.built_in if name not in {"openai-responses", "ollama", "cohere", "ag-ui", "ai-sdk"}],
)
def test_a_function_with_the_name_of_a_search_is_the_one_that_is_chosen(to):
    function = {"type": "function", "name": "web_search", "parameters": FUNCTION}
    body = {
        "model": "m",
        "input": [HI],
        "tools": [{"type": "web_search"}, function],
        "tool_choice": {"type": "function", "name": "web_search"},
    }
    request = decode_request(json.dumps(body).encode(), "openai-responses")
    written, report = write(request, to)
    assert json.dumps(written).count('"web_search"') == 2  # its definition and its choice
    assert not {"googleSearch", "web_search_options"} & {name for tool in written.get("tools", ()) for name in tool}
    assert report.losses == ({"tool_definition": 1} if to != "openai-chat" else {})  # which has both


def test_functions_that_gemini_refuses_beside_a_demanded_search_are_counted():
    choice = {"type": "tool", "name": "web_search"}
    written, report = write(read("anthropic", functions=True, tool_choice=choice), "gemini")
    assert written["tools"] == [{"googleSearch": {}}]
    assert report.lost == [("tool_definition", "look"), ("tool_choice", "required")]
