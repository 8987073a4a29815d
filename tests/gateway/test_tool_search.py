"""``tool_search = "emulate"``: deferred tools stay out of the request, and the gateway searches them for the model."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from itertools import cycle, pairwise
from typing import Any, Final

import orjson
import pytest
from attrs import evolve

from streamkit.conversation.messages import Reasoning, Request, Response, Text, ToolCall
from streamkit.events import Aside, Opaque
from streamkit.translation.bodies import decode_response, encode_response
from streamkit.web.searching import MOST_ROUNDS
from tests.clients.recipes import violations
from tests.gateway.deferred import Model, OfficeTool, office, questions
from tests.gateway.running import Running, behind, in_turn, leg, read
from tests.sampling import Part, part_of, parts
from tests.web.evil import Hang
from tests.web.evil import Script as Steps
from tests.web.faults import status
from tests.web.raw_client import Answer
from tests.web.serving import eventually

TOOLS: Final = office()
QUESTIONS: Final = questions()
EMULATE: Final = {"tool_search": "emulate"}
CLIENTS: Final = ("anthropic", "openai-responses", "gemini-interactions")
UPSTREAMS: Final = ("openai-chat", "anthropic", "openai-responses", "gemini", "mistral", "ollama")


def definition(client: str, tool: OfficeTool, *, deferred: bool = True) -> dict[str, Any]:
    late = {"defer_loading": True} if deferred else {}
    if client == "anthropic":
        return {"name": tool.name, "description": tool.description, "input_schema": tool.schema, **late}
    function: dict[str, Any] = {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.schema,
    }
    return {**function, **({"strict": False} if client == "openai-responses" else {}), **late}


FINDERS: Final = {
    "anthropic": {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"},
    "openai-responses": {"type": "tool_search"},
    "gemini-interactions": {"type": "tool_search"},
}


def body_of(client: str, question: str, *, deferred: bool = True, tools: int = 300) -> dict[str, Any]:
    """Members of a request with deferred tools."""
    defined = [definition(client, tool, deferred=deferred) for tool in TOOLS[:tools]]
    members: dict[str, Any] = {"tools": [*([FINDERS[client]] if deferred else []), *defined]}
    asked: dict[str, Any] = {"role": "user", "content": question}
    if client == "gemini-interactions":
        asked = {"type": "user_input", "content": [{"type": "text", "text": question}]}
    members["messages" if client == "anthropic" else "input"] = [asked]
    return members


def said(response: Response) -> tuple[str, list[tuple[str, str]]]:
    """What of a response a client acts on."""
    return response.text, [(call.name, call.arguments) for call in response.tool_calls]


async def understood(answer: Answer, client: str, *, stream: bool) -> Response:
    if stream:
        return await read(answer, client)
    assert answer.status == 200, answer.body
    return decode_response(bytes(answer.body), client)


def items(client: str, response: Response) -> list[dict[str, Any]]:
    """The items or blocks of the response, as its client has them in a body."""
    body = orjson.loads(encode_response(response, client))
    found: list[dict[str, Any]] = body[{"anthropic": "content", "openai-responses": "output"}.get(client, "steps")]
    return found


def searched(client: str, found: list[dict[str, Any]]) -> Iterator[tuple[str, list[str]]]:
    """Each search in the items of a client: its query, and the names found."""
    for call, result in pairwise(found):
        if client == "anthropic" and result["type"] == "tool_search_tool_result":
            assert (call["type"], call["id"]) == ("server_tool_use", result["tool_use_id"])
            assert call["name"] == "tool_search_tool_regex"
            references = result["content"]["tool_references"]
            yield call["input"]["query"], [each["tool_name"] for each in references]
        if client == "openai-responses" and result["type"] == "tool_search_output":
            assert (call["type"], call["execution"], result["execution"]) == ("tool_search_call", "server", "server")
            assert all(tool in body_of(client, "")["tools"] for tool in result["tools"])
            yield call["arguments"]["query"], [each["name"] for each in result["tools"]]
        if client == "gemini-interactions" and result["type"] == "tool_search_result":
            assert (call["type"], call["id"]) == ("tool_search_call", result["call_id"])
            assert all(tool in body_of(client, "")["tools"] for tool in result["result"])
            names = [each["name"] for each in result["result"]]
            assert call["arguments"] == {"function_names": names}
            yield "", names  # this dialect has no place for the words


async def ask(running: Running, client: str, body: Mapping[str, Any], *, stream: bool) -> Response:
    answer = await running.asked(client, body, stream=stream)
    if stream:
        assert not violations(bytes(answer.body), client)
    response = await understood(answer, client, stream=stream)
    assert response.clean
    return response


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("client", CLIENTS)
async def test_a_model_without_a_search_finds_a_tool_calls_it_and_gets_its_result(client, upstream, stream):
    question = QUESTIONS[0]
    model = Model(upstream, question.name)
    async with behind(model, model, model, dialect=upstream, upstream=EMULATE) as running:
        body = body_of(client, question.text)
        response = await ask(running, client, body, stream=stream)
        found = items(client, response)
        assert said(response) == ("I look for a tool. I can do that.", [(question.name, '{"id":"17"}')])
        ((query, names),) = searched(client, found)
        assert query in {question.text, ""}
        assert names[0] == question.name
        assert (response.usage.input_total, response.usage.output_total) == (200, 20)
        assert [tool.name for tool in model.requests[0].tools] == ["tool_search"]
        assert [tool.name for tool in model.requests[1].tools] == ["tool_search", *names]
        # the client sends the items back with the result of its tool, and the tools found are defined
        calls = response.tool_calls
        history = body["messages" if client == "anthropic" else "input"]
        if client == "anthropic":
            result = {"type": "tool_result", "tool_use_id": calls[0].id, "content": "seventeen"}
            history += [{"role": "assistant", "content": found}, {"role": "user", "content": [result]}]
        elif client == "gemini-interactions":
            result = {"type": "function_result", "call_id": calls[0].id, "name": question.name, "result": "seventeen"}
            history += [*found, result]
        else:
            history += [*found, {"type": "function_call_output", "call_id": calls[0].id, "output": "seventeen"}]
        response = await ask(running, client, body, stream=stream)
        assert said(response) == ("It says: seventeen", [])
        assert [tool.name for tool in model.requests[2].tools] == ["tool_search", *names]
        roles = [turn.role for turn in model.requests[2].turns]
        assert roles == ["user", "assistant", "user", "assistant", "user"]
        assert running.counted("tool_searches_total") == 1
        assert running.counted("tool_search_tokens_saved_total") > 20_000


@pytest.mark.parametrize("part", parts(5))
async def test_fifty_questions_find_their_tools_and_give_what_all_tools_give(part: Part):
    """Figures for docs/how-to/search-tools.md: the sizes of the requests with all tools, and with a search."""
    ranks, sizes, bytes_of_all = [], [], []
    for question, client in part_of(list(zip(QUESTIONS, cycle(CLIENTS), strict=False)), part):
        model, rival = Model("openai-chat", question.name), Model("openai-chat", question.name)
        async with behind(model, model, upstream=EMULATE) as running:
            response = await ask(running, client, body_of(client, question.text), stream=True)
            ((_, names),) = searched(client, items(client, response))
            ranks.append(names.index(question.name))
            sizes.append(sum(model.sizes))
        async with behind(rival) as running:
            other = await ask(running, client, body_of(client, question.text), stream=True)
            assert said(other)[1] == said(response)[1]
            bytes_of_all.append(sum(rival.sizes))
    assert max(ranks) < 5
    assert ranks.count(0) >= 8
    # both requests of a search together are a small part of the one with all tools
    assert max(sizes) * 10 < min(bytes_of_all), (max(sizes), min(bytes_of_all))


@pytest.mark.parametrize("client", CLIENTS)
async def test_without_the_setting_all_tools_are_defined(client):
    model = Model("openai-chat", QUESTIONS[0].name)
    async with behind(model) as running:
        response = await ask(running, client, body_of(client, QUESTIONS[0].text), stream=True)
        assert said(response) == ("I can do that.", [(QUESTIONS[0].name, '{"id":"17"}')])
    assert len(model.requests[0].tools) == 300


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("client", CLIENTS)
async def test_a_model_that_only_searches_ends_with_a_named_error(client, stream):
    model = Model("openai-chat", "no_such_tool", gives_up=False)
    async with behind(*[model] * 20, upstream=EMULATE) as running:
        answer = await running.asked(client, body_of(client, "Where is it?"), stream=stream)
        assert len(model.requests) == MOST_ROUNDS + 1
        assert b"the model searched for tools in 9 turns" in answer.body
        if stream:
            response = await read(answer, client)
            assert not response.clean
            assert response.text == "I look for a tool. " * 9
        else:
            assert answer.status == 500


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_failure_of_a_later_request_is_an_error_after_the_text(client):
    model = Model("openai-chat", QUESTIONS[0].name)
    async with behind(model, status(503, "openai-chat"), upstream=EMULATE) as running:
        response = await read(await running.asked(client, body_of(client, QUESTIONS[0].text)), client)
    assert not response.clean
    assert response.text == "I look for a tool. "


async def test_a_whole_response_whose_second_request_fails_is_asked_of_the_next_upstream():
    model, other = Model("openai-chat", QUESTIONS[0].name), Model("openai-chat", QUESTIONS[0].name)
    first = leg(model, status(503, "openai-chat"), **EMULATE)
    async with in_turn(first, leg(other, other, **EMULATE)) as running:
        response = await ask(running, "anthropic", body_of("anthropic", QUESTIONS[0].text), stream=False)
        assert running.seen == [2, 2]
    assert said(response)[1] == [(QUESTIONS[0].name, '{"id":"17"}')]


async def test_tools_that_the_clients_own_search_found_are_defined_and_no_search_is_offered():
    """Claude Code searches itself: its tool returns references to deferred tools."""
    question = QUESTIONS[0]
    reference = {"type": "tool_reference", "tool_name": question.name}
    own = OfficeTool("ToolSearch", "Searches.", {"type": "object", "properties": {"query": {"type": "string"}}})
    body = body_of("anthropic", question.text)
    body["tools"][0] = definition("anthropic", own, deferred=False)
    body["messages"] += [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": own.name, "input": {"query": "x"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [reference]}]},
    ]
    model = Model("openai-chat", question.name)
    async with behind(model, upstream=EMULATE) as running:
        response = await ask(running, "anthropic", body, stream=True)
    assert said(response)[1] == [(question.name, '{"id":"17"}')]
    assert [tool.name for tool in model.requests[0].tools] == [own.name, question.name]


# -- other turns of a model ------------------------------------------------------------------------------------------------


class Scripted(Model):
    """A model that gives these responses, one after the other."""

    def __init__(self, dialect: str, *responses: tuple[Any, ...]) -> None:
        super().__init__(dialect, "")
        self.responses = responses

    def answer(self, _request: Request) -> Response:
        *parts, reason = self.responses[len(self.requests) - 1]
        return self._says(*parts, reason=reason)

    def search(self, number: int, query: str) -> ToolCall:
        return evolve(self._call(f"s{number}", "tool_search", {"query": query}), index=number)


FOUND: Final = QUESTIONS[0]
SEARCH: Final = ToolCall(0, "s0", "tool_search", '{"query":"order"}')


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("client", CLIENTS)
async def test_a_turn_with_a_search_and_a_call_of_the_client_ends(client, stream):
    script = Scripted("openai-chat")
    call = evolve(script._call("c1", "plain", {"id": "1"}), index=1)
    script.responses = ((Text("Both."), script.search(0, FOUND.text), call, "tool_calls"),)
    body = body_of(client, FOUND.text)
    body["tools"].append(definition(client, OfficeTool("plain", "Plain.", {"type": "object"}), deferred=False))
    async with behind(script, upstream=EMULATE) as running:
        response = await ask(running, client, body, stream=stream)
    assert said(response) == ("Both.", [("plain", '{"id":"1"}')])
    assert response.choices[0].stop_reason == "tool_calls"
    ((_, names),) = searched(client, items(client, response))
    assert names[0] == FOUND.name
    assert len(script.requests) == 1


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
async def test_reasoning_before_a_search_goes_back_to_its_vendor_with_its_signature(stream):
    script = Scripted("anthropic")
    thought = Reasoning("Hm.", "summary", Opaque("anthropic", "c2ln"))
    script.responses = (
        (thought, script.search(0, "rain"), script.search(1, "snow"), "tool_calls"), (Text("Done."), "stop"),
    )  # fmt: skip
    async with behind(script, script, dialect="anthropic", upstream=EMULATE) as running:
        response = await ask(running, "anthropic", body_of("anthropic", "Rain?"), stream=stream)
    assert said(response) == ("Done.", [])
    assert [query for query, _ in searched("anthropic", items("anthropic", response))] == ["rain", "snow"]
    asked, answered = script.requests[1].turns[1:]
    assert asked.parts[0] == thought
    assert [call.id for call in asked.parts[1:]] == [result.call_id for result in answered.parts] == ["s0", "s1"]


#: An item of Responses that the client has to answer, as the decoder emits it.
APPROVAL: Final = tuple(
    Aside("openai-responses", "client_tool", event, {"type": event, "item": {
        "type": "mcp_approval_request", "id": "mcpr_1", "server_label": "dice", "name": "roll", "arguments": "{}",
    }}, 0, 50) for event in ("response.output_item.added", "response.output_item.done")
)  # fmt: skip
TRUNCATED: Final = evolve(ToolCall(0, "s9", "tool_search", '{"query": "ra'), index=1)


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize(("parts", "reason", "upstream", "client", "ends", "searches"), [
    ((evolve(TRUNCATED, ended=False),), "length", "openai-chat", "anthropic", "length", 0),
    *(((TRUNCATED,), "tool_calls", upstream, client, "length", 0) for upstream in UPSTREAMS for client in CLIENTS),
    ((SEARCH, TRUNCATED), "tool_calls", "openai-chat", "anthropic", "length", 1),
    *(((SEARCH,), "length", "anthropic", client, "length", 1) for client in CLIENTS),
    *(((SEARCH,), reason, "anthropic", "anthropic", reason, 1) for reason in ("refusal", "pause")),
    *(((SEARCH, *APPROVAL), "tool_calls", "openai-responses", client, "tool_calls", 1) for client in CLIENTS),
])  # fmt: skip
async def test_a_turn_that_a_search_does_not_continue_ends_as_what_it_is(
    parts, reason, upstream, client, ends, searches, stream
):
    script = Scripted(upstream, (Text("Well."), *parts, reason))
    async with behind(script, dialect=upstream, upstream=EMULATE) as running:
        response = await ask(running, client, body_of(client, "Rain?"), stream=stream)
    assert (response.text, response.choices[0].stop_reason) == ("Well.", ends)
    assert len(script.requests) == 1
    assert running.counted("tool_searches_total") == searches


@pytest.mark.parametrize("upstream", ["openai-chat", "anthropic", "mistral"])
@pytest.mark.parametrize("client", CLIENTS)
async def test_the_same_search_may_occur_again_in_a_response_and_in_a_conversation(client, upstream):
    """Upstreams may use an id again, and a later turn may search for the same."""
    script = Scripted(upstream, *((SEARCH, "tool_calls"), (SEARCH, "tool_calls"), (Text("Done."), "stop")) * 3)
    body = body_of(client, "Rain?")
    history = body["messages" if client == "anthropic" else "input"]
    asked = history[0]
    async with behind(*[script] * 9, dialect=upstream, upstream=EMULATE) as running:
        for _ in range(3):
            found = items(client, await ask(running, client, body, stream=False))
            history += [*([{"role": "assistant", "content": found}] if client == "anthropic" else found), asked]
    written = [item for each in history for item in (each["content"] if client == "anthropic" else [each])]
    ids = [item["id"] for item in written if isinstance(item, dict) and "id" in item]
    assert len(ids) == len({*ids}) >= 6


async def test_a_gateway_that_stops_between_two_requests_ends_the_response_with_an_error():
    model = Model("openai-chat", FOUND.name)
    async with behind(model, Steps((Hang(),)), upstream=EMULATE, server={"grace_s": 1.2}) as running:
        answering = asyncio.create_task(running.asked("anthropic", body_of("anthropic", FOUND.text)))
        await eventually(lambda: running.seen == [2] or len(running.evil.requests) == 2)
    response = await read(await answering, "anthropic")
    assert not response.clean
    assert response.text == "I look for a tool. "
