"""Requests of Cohere's v2 chat: read, written, and written for what other dialects said.

Source: dialects.md §6.2, §7.3, §7.4; the documentation in the client of cohere 7.3.1.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from attrs import evolve

from streamkit.conversation.messages import (
    Media,
    Options,
    OutputFormat,
    Reasoning,
    RedactedReasoning,
    Refusal,
    Request,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    Turn,
)
from streamkit.events import Aside, Opaque
from streamkit.translation.bodies import decode_response
from tests.requests.rows import HI, Dialect, by_model, by_system, by_user, parameters, rows

PNG = "iVBORw0KGgo="
SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
COHERE = Dialect(
    "cohere",
    {"model": "m", "messages": [{"role": "user", "content": "hi"}]},
    Request("cohere", "m", [HI]),
    Request("anthropic", "m", [HI]),
    {"linked_media": "drop"},
)


def said(*parts: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": list(parts)}]


def text(content: str) -> dict[str, Any]:
    return {"type": "text", "text": content}


def thinking(content: str, **members: Any) -> dict[str, Any]:
    return {"type": "thinking", "thinking": content, **members}


def image(url: str, **members: Any) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url, **members}}


def document(data: Any, **members: Any) -> dict[str, Any]:
    return {"type": "document", "document": {"data": data, **members}}


def function(call_id: str = "c1", name: str = "look", arguments: str = '{"q":1.0}', **more: Any) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}, **more}


def answer(call_id: str = "c1", content: Any = "done", **more: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content, **more}


def calling(**message: Any) -> list[dict[str, Any]]:
    return [{"role": "assistant", **message}, answer()]


def answered(*parts: Any, **more: Any) -> list[Turn]:
    return [Turn("assistant", list(parts), **more), Turn("user", [ToolResult("c1", [Text("done")])])]


def resulting(*content: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"role": "assistant", "tool_calls": [function()]}, answer(content=list(content))]


CALL = ToolCall(0, "c1", "look", '{"q":1.0}')
CITATION = {"start": 0, "end": 1, "text": "a", "sources": [{"type": "document", "id": "d"}], "type": "TEXT_CONTENT"}

#: What messages say, both ways.
MESSAGES: dict[str, tuple[list[dict[str, Any]], list[Turn]]] = {
    "text": ([{"role": "user", "content": "hi"}], [by_user(Text("hi"))]),
    "several texts": (said(text("a"), text("b")), [by_user(Text("a"), Text("b"))]),
    "the system": (
        [{"role": "system", "content": "be"}, {"role": "user", "content": "a"}, {"role": "system", "content": [text("b"), text("c")]}],
        [by_system(Text("be")), by_user(Text("a")), by_system(Text("b"), Text("c"))],
    ),
    "images": (
        said(image("https://x.test/a.png", detail="low"), image(f"data:image/png;base64,{PNG}")),
        [by_user(Media("image", url="https://x.test/a.png", detail="low"), Media("image", "image/png", PNG))],
    ),
    "an unknown part": (said({"type": "video", "video": "v"}), [by_user(Aside("cohere", "unknown_event", "content.video", {
        "type": "video", "video": "v",
    }))]),
    "members nobody knows": (
        [{"role": "user", "content": [{**text("a"), "x": 1}, {**image("https://x.test", y=2), "z": 3}], "w": 4}],
        [by_user(
            Text("a", extras={"x": 1}), Media("image", url="https://x.test", extras={"image_url": {"y": 2}, "z": 3}), extras={"w": 4},
        )],
    ),
    "assistant": ([{"role": "assistant", "content": "yes"}], [by_model(Text("yes"))]),
    "thoughts, text and citations": (
        [{"role": "assistant", "content": [thinking("hm"), text("a"), thinking("so", x=1)], "citations": [CITATION]}],
        [by_model(Reasoning("hm"), Text("a"), Reasoning("so", extras={"x": 1}), Aside("cohere", "citation", "citation-start", CITATION))],
    ),
    "a plan, calls and results": (
        [
            {"role": "assistant", "tool_plan": "first", "tool_calls": [function(), function("c2", arguments="{}", x=1)]},
            answer(content="one"), answer("c2", [text("a"), text("b")], y=2), {"role": "user", "content": "go on"},
        ],
        [
            by_model(Reasoning("first", "summary"), CALL, ToolCall(1, "c2", "look", "{}", extras={"x": 1})),
            by_user(ToolResult("c1", [Text("one")]), ToolResult("c2", [Text("a"), Text("b")], extras={"y": 2})), by_user(Text("go on")),
        ],
    ),
    "documents in a result": (
        resulting(text("see"), document({"a": 1.5}, id="d1"), document('{"a": 1}'), {**document("b"), "x": 1}),
        [by_model(CALL), by_user(ToolResult("c1", [
            Text("see"), Text('{"a":1.5}', extras={"document": {"data": {}, "id": "d1"}}),
            Text('{"a": 1}', extras={"document": {"data": ""}}), Text("b", extras={"document": {"data": ""}, "x": 1}),
        ]))],
    ),
}  # fmt: skip

#: What a message becomes on the way through: the documented normalisation.
NORMAL: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {
    "one text in a list": (said(text("a")), [{"role": "user", "content": "a"}]),
    "nothing": ([{"role": "assistant"}], [{"role": "assistant", "content": ""}]),
    "no arguments, no text": (
        calling(content="", tool_plan="", citations=[], tool_calls=[function(arguments="")]),
        calling(tool_calls=[function(arguments="{}")]),
    ),
    "a call without a type": (
        calling(tool_calls=[{"id": "c1", "function": {"name": "look", "arguments": "{}"}}]), calling(tool_calls=[function(arguments="{}")]),
    ),
}  # fmt: skip


TOOLS = [
    {"type": "function", "function": {"name": "look", "description": "d", "parameters": SCHEMA}},
    {"type": "function", "function": {"name": "now", "parameters": {}}},
]  # fmt: skip
NEUTRAL_TOOLS = [Tool("look", "d", SCHEMA), Tool("now", None, {})]

#: What other members say, both ways.
MEMBERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "options": (
        {
            "max_tokens": 5, "temperature": 0.5, "p": 1, "k": 900, "stop_sequences": ["a", "b"], "seed": 7, "presence_penalty": 0.1,
            "frequency_penalty": -2, "logprobs": True,
        },
        {"options": Options(
            max_tokens=5, temperature=0.5, top_p=1, top_k=900, stop=("a", "b"), seed=7, presence_penalty=0.1, frequency_penalty=-2,
            logprobs=True,
        )},
    ),
    "thinking": ({"thinking": {"type": "enabled", "token_budget": 9}}, {"options": Options(thinking=Thinking(
        enabled=True, budget_tokens=9,
    ))}),
    "no thinking": ({"thinking": {"type": "disabled"}}, {"options": Options(thinking=Thinking(enabled=False))}),
    "another thinking": ({"thinking": {"type": "x"}}, {"extras": {"thinking": {"type": "x"}}}),
    "text": ({"response_format": {"type": "text"}}, {"options": Options(output=OutputFormat("text"))}),
    "json": ({"response_format": {"type": "json_object"}}, {"options": Options(output=OutputFormat("json"))}),
    "schema": (
        {"response_format": {"type": "json_object", "json_schema": SCHEMA}}, {"options": Options(output=OutputFormat("schema", SCHEMA))},
    ),
    "streaming": ({"stream": True}, {"stream": True, "stream_usage": True}),
    "not streaming": ({"stream": False}, {"stream": False}),
    "tools": ({"tools": TOOLS}, {"tools": NEUTRAL_TOOLS}),
    "strict tools": ({"tools": TOOLS, "strict_tools": True}, {"tools": [Tool("look", "d", SCHEMA, True), Tool("now", None, {}, True)]}),
    "tools that are not strict": ({"tools": TOOLS[1:], "strict_tools": False}, {"tools": [Tool("now", None, {}, False)]}),
    "strict without tools": ({"strict_tools": True}, {"extras": {"strict_tools": True}}),
    "a tool with more": (
        {"tools": [{"type": "function", "function": {"name": "a", "parameters": SCHEMA, "x": 1}, "y": 2}]},
        {"tools": [Tool("a", None, SCHEMA, extras={"function": {"x": 1}, "y": 2})]},
    ),
    "another tool": ({"tools": [{"type": "search", "x": 1}]}, {"tools": [Tool("search", kind="server", raw={"type": "search", "x": 1})]}),
    "choice none": ({"tools": TOOLS, "tool_choice": "NONE"}, {"tools": NEUTRAL_TOOLS, "tool_choice": ToolChoice("none")}),
    "choice required": ({"tools": TOOLS, "tool_choice": "REQUIRED"}, {"tools": NEUTRAL_TOOLS, "tool_choice": ToolChoice("required")}),
    "members that only Cohere has": (
        {"documents": ["a", {"data": {"b": 1}, "id": "d"}], "citation_options": {"mode": "FAST"}, "safety_mode": "OFF", "priority": 3},
        {"extras": {
            "documents": ["a", {"data": {"b": 1}, "id": "d"}], "citation_options": {"mode": "FAST"}, "safety_mode": "OFF", "priority": 3,
        }},
    ),
}  # fmt: skip

BAD: list[tuple[dict[str, Any], str, str]] = [
    ({"messages": ...}, "messages", "must be a list"),
    ({"messages": [{"role": "developer", "content": "a"}]}, "messages[0].role", "unknown role 'developer'"),
    ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content", "not an integer"),
    ({"messages": said({})}, "messages[0].content[0].type", "must be a string"),
    ({"messages": said({"type": "text"})}, "messages[0].content[0].text", "must be a string"),
    ({"messages": said({"type": "image_url"})}, "messages[0].content[0].image_url", "must be an object"),
    ({"messages": said(image("data:x"))}, "messages[0].content[0].image_url.url", "base64"),
    ({"messages": [{"role": "assistant", "content": [{"type": "thinking"}]}]}, "messages[0].content[0].thinking", "must be a string"),
    ({"messages": [{"role": "assistant", "tool_plan": 5}]}, "messages[0].tool_plan", "must be a string"),
    ({"messages": [{"role": "assistant", "tool_calls": [{"id": "c"}]}]}, "messages[0].tool_calls[0].function", "must be an object"),
    ({"messages": [{"role": "assistant", "tool_calls": [{"type": "x"}]}]}, "messages[0].tool_calls[0].type", "'x'"),
    ({"messages": [answer(content=[{"type": "document"}])]}, "messages[0].content[0].document", "must be an object"),
    ({"messages": [answer(content=[document(5)])]}, "messages[0].content[0].document.data", "must be an object or a string"),
    ({"tool_choice": "ANY"}, "tool_choice", "must be 'REQUIRED' or 'NONE', not 'ANY'"),
    ({"stop_sequences": "x"}, "stop_sequences", "must be a list"),
    ({"stop_sequences": [5]}, "stop_sequences[0]", "must be a string"),
    ({"k": 1.5}, "k", "must be an integer"),
    ({"thinking": {}}, "thinking.type", "must be a string"),
    ({"response_format": {"type": "json_object", "json_schema": 5}}, "response_format.json_schema", "must be an object"),
    ({"tools": [{"type": "function"}]}, "tools[0].function", "must be an object"),
]  # fmt: skip


# -- from other dialects -----------------------------------------------------------------------------------------------


#: Turns of another dialect: the messages, the losses, the repairs.
FOREIGN: dict[str, tuple[list[Turn], list[dict[str, Any]], dict[str, int], dict[str, int]]] = {
    "results, then text": (
        [by_model(Text("wait"), CALL), by_user(ToolResult("c1", [Text("done")]), Text("go on"))],
        [*calling(tool_calls=[function()], content="wait"), {"role": "user", "content": "go on"}], {}, {},
    ),
    "text before the results": (
        [by_model(CALL), by_user(Text("so"), ToolResult("c1", [Text("done")]))],
        [*calling(tool_calls=[function()]), {"role": "user", "content": "so"}], {}, {"result_moved": 1},
    ),
    "a turn before the results": (
        [by_model(CALL), by_user(Text("so")), by_user(ToolResult("c1", [Text("done")]))],
        [*calling(tool_calls=[function()]), {"role": "user", "content": "so"}], {}, {"result_moved": 1},
    ),
    "an error, with an image": (
        [by_model(CALL), by_user(ToolResult("c1", [Text("no"), Media("image", "image/png", PNG)], is_error=True, cache="short"))],
        [{"role": "assistant", "tool_calls": [function()]}, answer(content="Error: no")], {"result_error": 1, "media": 1, "cache_mark": 1},
        {},
    ),
    "reasoning": (
        [by_model(
            Reasoning("hm", "summary", Opaque("anthropic", "S")), Reasoning("", signature=Opaque("anthropic", "S")),
            RedactedReasoning(Opaque("anthropic", "D")), Text("a"),
        )],
        [{"role": "assistant", "content": [thinking("hm"), text("a")]}], {"reasoning_signature": 2, "reasoning_opaque": 1}, {},
    ),
    "nothing is left of a turn": (
        [by_user(Text("a")), by_model(RedactedReasoning(Opaque("anthropic", "D"))), by_user(Text("b"))],
        [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}], {"reasoning_opaque": 1}, {"turn_empty": 1},
    ),
    "what stands behind a call, and what signs it": (
        answered(ToolCall(0, "c1", "look", "", signature=Opaque("google", "S"), cache="short"), Text("so", Opaque("google", "T"))),
        calling(tool_calls=[function(arguments="{}")], content="so"), {"block_order": 1, "reasoning_signature": 2, "cache_mark": 1}, {},
    ),
    "a custom call and a refusal": (
        answered(Refusal("no"), ToolCall(0, "c1", "run", "1 + 1", "custom")),
        calling(tool_calls=[function(name="run", arguments='{"input":"1 + 1"}')], content="no"),
        {"refusal_as_text": 1, "custom_tool_wrapped": 1}, {},
    ),
    "media": (
        [
            by_system(Text("be"), Media("image", "image/png", PNG), native_role="developer"),
            by_user(
                Media("image", data=PNG, detail="original", cache="short"), Media("image", url="gs://a"),
                Media("file", "application/pdf", "JVBERi0="), Media("audio", "audio/mpeg", "AAAA"), name="ann",
            ),
        ],
        [{"role": "system", "content": "be"}, *said(image(f"data:image/png;base64,{PNG}"))],
        {"media": 4, "metadata": 1, "cache_mark": 1, "turn_name": 1}, {},
    ),
    "what only another dialect knows": (
        [
            by_user(
                Text("a", extras={"x": 1, "document": {"data": {}}}), Text("", cache="long"), Aside("anthropic", "server_tool", "s", {}),
                extras={"y": 1},
            ),
            by_model(Aside("anthropic", "citation", "citation-start", {}), Aside("anthropic", "server_tool", "content.s", {}), Text("b")),
        ],
        [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}],
        {"metadata": 3, "server_tool": 2, "citation": 1, "cache_mark": 1}, {"turn_empty": 1},
    ),
}  # fmt: skip

CHOICES = [
    (ToolChoice("auto"), ["look", "now"], None, []),
    (ToolChoice("auto", ("look",)), ["look"], None, []),
    (ToolChoice("required"), ["look", "now"], "REQUIRED", []),
    (ToolChoice("required", ("look", "now")), ["look", "now"], "REQUIRED", []),
    (ToolChoice("required", ("now",)), ["now"], "REQUIRED", [("tool_choice", "now")]),
    (ToolChoice("none", ("now",)), ["look", "now"], "NONE", []),
]  # fmt: skip

STRICT = [((True, True), True), ((False, False), None), ((None, True), None)]

EFFORTS = [
    (Thinking(), None),
    (Thinking("none"), {"type": "disabled"}),
    (Thinking("low"), {"type": "enabled", "token_budget": 1024}),
    (Thinking(enabled=False, budget_tokens=5), {"type": "disabled"}),
    (Thinking(budget_tokens=5), {"type": "enabled", "token_budget": 5}),
    (Thinking(budget_tokens=0), {"type": "disabled"}),
    (Thinking(budget_tokens=-1), {"type": "enabled"}),
]  # fmt: skip


def test_what_a_tool_gave_is_no_reasoning():
    with pytest.raises(TypeError, match="content can't contain a Reasoning"):
        COHERE.write(evolve(COHERE.foreign, turns=[by_user(Reasoning("hm"))]))


# -- the second leg, the recordings, and the official client -----------------------------------------------------------


def test_what_was_said_goes_back_as_the_second_leg():
    message = {
        "role": "assistant",
        "tool_plan": "first",
        "tool_calls": [function()],
        "content": [thinking("hm"), text("a")],
        "citations": [CITATION],
    }
    whole = {"id": "i", "finish_reason": "TOOL_CALL", "message": message, "logprobs": [{"token_ids": [1]}]}
    said_before = decode_response(json.dumps(whole).encode(), "cohere")
    request = COHERE.read()
    request.turns += [
        Turn("assistant", said_before.choices[0].parts),
        Turn("user", [ToolResult(each.id, [Text("done")]) for each in said_before.tool_calls]),
    ]
    written, report = COHERE.write(request)
    assert written["messages"][1:] == [message, answer()]
    assert report.lost == [("logprobs", "logprobs")]


def test_the_official_client_sends_it(client, replay):
    reply = {"id": "i", "finish_reason": "COMPLETE", "message": {"role": "assistant", "content": [text("a")]}}
    turns = answered(Reasoning("hm"), Text("wait"), CALL)
    members = {"turns": turns, "tools": [Tool("look", None, SCHEMA, True)], "options": Options(max_tokens=5, top_k=3)}
    written, _ = COHERE.write(evolve(COHERE.foreign, **members))
    written["model"] = replay.register(json.dumps(reply).encode(), "application/json")
    client("cohere").chat(**written)
    assert json.loads(replay.asked[written["model"]]) == {**written, "stream": False}


# -- all rows ----------------------------------------------------------------------------------------------------------

WRAPPED = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}


def empty(*names: str) -> list[dict[str, Any]]:
    return [{"type": "function", "function": {"name": name, "parameters": {}}} for name in names]


ROWS = {
    **rows("messages", MESSAGES, lambda messages, turns: COHERE.kept({"messages": messages}, turns=turns)),
    **rows("alike", NORMAL, lambda messages, written: COHERE.alike({"messages": messages}, {"messages": written})),
    **rows("members", MEMBERS, lambda members, read: COHERE.kept(members, **read)),
    **rows("bad", BAD, COHERE.refused),
    "a document is text elsewhere": COHERE.translated(
        "openai-chat", {"messages": resulting(document({"a": 1}, id="d"))},
        {"messages[1]": {"role": "tool", "tool_call_id": "c1", "content": '{"a":1}'}}, [("metadata", "document")],
    ),
    "a tool without parameters": COHERE.alike({"tools": [{"type": "function", "function": {"name": "now"}}]}, {"tools": TOOLS[1:]}),
    **rows("turns", FOREIGN, lambda turns, messages, *counts: COHERE.of_another({"turns": turns}, {"messages": messages}, *counts)),
    "members of another dialect": COHERE.of_another(
        {
            "tools": [
                Tool("look", "d", SCHEMA, True, cache="short"), Tool("now", strict=False), Tool("run", kind="custom", format={"type": "text"}),
                Tool("web", kind="server", raw={"type": "web_search"}),
            ],
            "tool_choice": ToolChoice("auto", parallel=False),
            "options": Options(
                5, top_p=1, top_k=600, stop=("x",), seed=3, presence_penalty=-1.5, frequency_penalty=2, top_logprobs=2,
                thinking=Thinking("high", 9, summary="auto"), output=OutputFormat("schema", SCHEMA, "n", "d"), service_tier="flex", user="u",
            ),
            "stream": True, "stream_usage": True, "extras": {"container": "c"},
        },
        {
            "tools": [*TOOLS, {"type": "function", "function": {"name": "run", "parameters": WRAPPED}}], "max_tokens": 5, "p": 0.99, "k": 500,
            "presence_penalty": 0, "frequency_penalty": 1, "seed": 3, "stop_sequences": ["x"],
            "thinking": {"type": "enabled", "token_budget": 9}, "stream": True,
        },
        [  # the server refuses an output next to tools
            ("tool_strict", "look"), ("cache_mark", "look"), ("custom_tool_wrapped", "run"), ("tool_definition", "web"), ("tool_choice", "parallel"),
            *parameters("output", "top_logprobs", "service_tier", "user", "container", "p", "k", "presence_penalty", "frequency_penalty"),
            *parameters("thinking.summary", "thinking.effort"),
        ],
    ),
    **rows("choices", CHOICES, lambda choice, tools, written, lost: COHERE.of_another(
        {"tools": [Tool("look"), Tool("now")], "tool_choice": choice}, {"tools": empty(*tools), "tool_choice": written or ...}, lost
    )),
    "a choice among no tools": COHERE.of_another({"tool_choice": ToolChoice("none")}, {}),
    **rows("strict", STRICT, lambda strict, written: COHERE.of_another(
        {"tools": [Tool("a", strict=strict[0]), Tool("b", strict=strict[1])]}, {"tools": empty("a", "b"), "strict_tools": written or ...},
        {"tool_strict": 1} if None in strict else {},
    )),
    **rows("efforts", EFFORTS, lambda thinking, written: COHERE.of_another(
        {"options": Options(thinking=thinking)}, {"thinking": written or ...}, None
    )),
    "one choice": COHERE.of_another({"options": Options(choices=1)}, {}),
    "several choices": COHERE.unwritable({"options": Options(choices=2)}, "n", "Cohere returns one choice, not 2"),
    "plans are one text in front": COHERE.of_another(
        {"dialect": "cohere", "turns": answered(Reasoning("a", "summary"), Text("b"), Reasoning("c", "summary"), CALL)},
        {"messages": calling(tool_plan="a\n\nc", tool_calls=[function()], content="b")}, {"block_boundary": 1, "block_order": 1},
    ),
}  # fmt: skip

#: Rows with something that the client does not let its user write.
BEYOND = {
    "members: a tool with more", "members: another thinking", "members: another tool", "messages: a plan, calls and results",
    "messages: an unknown part", "messages: documents in a result", "messages: members nobody knows",
    "messages: thoughts, text and citations",
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_a_request(name):
    COHERE.check(ROWS[name], beyond=name in BEYOND)
