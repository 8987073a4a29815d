"""Cases 350 and 351: answers that wait for the client in a form that only one dialect has."""

from __future__ import annotations

from typing import Any

from tests.vectors import gemini_interactions as gi
from tests.vectors import openai_responses as rs
from tests.vectors.field.case import Block, Case, Form, Output, Text, Use
from tests.vectors.field.responses_items import item, run
from tests.vectors.field.shapes import failed, form, messages, responses_turn, written
from tests.vectors.vector import Call

CAL = {"query": "cal"}
SEARCH: dict[str, Any] = {"call_id": "c1", "execution": "client", "arguments": CAL}
#: A search that the server ran, and its output.
RAN = {"server_tool": 4}
WAITS = "the model called {}, which this dialect cannot express: remove that tool from the request"


def waiting(name: str, *steps: Any, to: dict[str, Output], **expected: Any) -> Form:
    """An interaction that ends for an action."""
    body = gi.named(gi.START, *steps, gi.finish("requires_action"))
    return form("gemini-interactions", body, name, to, {"stop": "tool_calls", **expected})


def step(index: int, kind: str, **members: Any) -> tuple[Any, Any]:
    return gi.begin(index, kind, **members), gi.end(index)


def refused(kind: str, *said: Text, asides: int = 2) -> dict[str, Output]:
    lost = {"server_tool": asides}
    return {
        "openai-chat": failed(*said, error=WAITS.format(kind), losses=lost),
        "anthropic": failed(*said, error=WAITS.format(kind), losses={**lost, "error_detail": 1}),
        "openai-responses": failed(*said, error=WAITS.format(kind), losses=lost),
    }


CASES: tuple[Case, ...] = (
    Case(
        number=350, refs="Wei-Shaw/sub2api#3989; looplj/axonhub#2105; experientiallabs/experiential#1037",
        cause="the client of Responses must run a tool search itself (`tool_search_call` with `execution: client`). The search is dropped, and the turn ends naturally",
        does="streamkit writes the search as a call, and the stop reason is `tool_calls`. In requests, streamkit offers the search as a function. In the history, the search is a call with its result. Clients of Responses get the item again.",
        forms=(
            run("a search of tools", "tool_search_call", Use("streamkit_tool_search_c1", "tool_search", '{"query":"cal"}'), **SEARCH),
            run("with arguments as text", "tool_search_call", Use("streamkit_tool_search_c1", "tool_search", '{"query": "cal"}'), **{**SEARCH, "arguments": '{"query": "cal"}'}),
            responses_turn(
                *item("tool_search_call", 0, call_id=None, execution="server", arguments=CAL),
                *item("tool_search_output", 1, call_id=None, execution="server", tools=[]), *rs.message(2, "Hi"), name="one that the server ran", text="Hi",
                to={"openai-chat": written(Text("Hi"), losses=RAN), "anthropic": messages(Text("Hi"), usage=None, losses=RAN)},
            ),
        ),
        beside="tests/requests/test_tool_search.py::test_a_call_of_it_is_the_item_for_its_client",
    ),
    Case(
        number=351, refs="google-genai, `Interaction.status`; streamkit itself",
        cause="in Gemini's Interactions, the response waits for an action that is not a function call (`requires_action`). Clients of other dialects get an empty response with a natural stop",
        does="The response ends with an error that names the action. If the action is a function call, clients get a call. For clients of Interactions, nothing changes.",
        forms=(
            waiting(
                "a search of tools", *step(0, "tool_search_call", id="t1", arguments=CAL),
                to={**refused("tool_search_call"), "gemini-interactions": written(Block("tool_search_call"), stop="requires_action")},
            ),
            waiting(
                "a tool of another server, behind one that ran", *gi.text(0, "Hi"), *step(1, "google_search_call", id="g1", arguments={"queries": ["x"]}),
                *step(2, "google_search_result", call_id="g1", result=[]), *step(3, "mcp_server_tool_call", id="m1", name="n", server_name="s", arguments={}),
                text="Hi", to=refused("mcp_server_tool_call", Text("Hi"), asides=6),
            ),
            waiting(
                "a function beside it", *step(0, "tool_search_call", id="t1", arguments=CAL), *gi.tool(1, "c1", "f", "{}"),
                calls=(Call("f", "{}", id="c1"),), to={"openai-chat": written(Use("c1", "f", "{}"), stop="tool_calls", losses={"server_tool": 2, "usage_detail": 1})},
            ),
            waiting("nothing to do", *gi.text(0, "Hi"), stop="stop", text="Hi", repairs={"calls_without_call": 1}, to={"openai-chat": written(Text("Hi"), losses={"usage_detail": 1})}),
        ),
    ),
)  # fmt: skip
