"""Requests of Cohere's v2 chat: read, written, and written for what other dialects said.

Source: dialects.md §6.2, §7.3, §7.4; the documentation in the client of cohere 7.3.1.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

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
from streamkit.dialects import DIALECTS
from streamkit.errors import BadRequest
from streamkit.events import Aside, Opaque
from streamkit.report import StreamReport
from streamkit.translation.bodies import decode_request, decode_response, encode_request
from tests.corpora import requests
from tests.requests.sdk_types import faults

PNG = "iVBORw0KGgo="
SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}


def body(messages: list[dict[str, Any]] | None = None, **members: Any) -> dict[str, Any]:
    return {"model": "m", "messages": messages or [{"role": "user", "content": "hi"}], **members}


def read(messages: list[dict[str, Any]] | None = None, **members: Any) -> Request:
    report = StreamReport()
    request = decode_request(json.dumps(body(messages, **members)).encode(), "cohere", report=report)
    assert not report.repairs
    return request


def write(request: Request, **options: Any) -> tuple[dict[str, Any], StreamReport]:
    report = StreamReport()
    written = encode_request(request, "cohere", report=report, **options)
    return json.loads(written), report


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
    "text": ([{"role": "user", "content": "hi"}], [Turn("user", [Text("hi")])]),
    "several texts": (said(text("a"), text("b")), [Turn("user", [Text("a"), Text("b")])]),
    "the system": (
        [{"role": "system", "content": "be"}, {"role": "user", "content": "a"}, {"role": "system", "content": [text("b"), text("c")]}],
        [Turn("system", [Text("be")]), Turn("user", [Text("a")]), Turn("system", [Text("b"), Text("c")])],
    ),
    "images": (
        said(image("https://x.test/a.png", detail="low"), image(f"data:image/png;base64,{PNG}")),
        [Turn("user", [Media("image", url="https://x.test/a.png", detail="low"), Media("image", "image/png", PNG)])],
    ),
    "an unknown part": (
        said({"type": "video", "video": "v"}),
        [Turn("user", [Aside("cohere", "unknown_event", "content.video", {"type": "video", "video": "v"})])],
    ),
    "members nobody knows": (
        [{"role": "user", "content": [{**text("a"), "x": 1}, {**image("https://x.test", y=2), "z": 3}], "w": 4}],
        [
            Turn(
                "user",
                [Text("a", extras={"x": 1}), Media("image", url="https://x.test", extras={"image_url": {"y": 2}, "z": 3})],
                extras={"w": 4},
            )
        ],
    ),
    "assistant": ([{"role": "assistant", "content": "yes"}], [Turn("assistant", [Text("yes")])]),
    "thoughts, text and citations": (
        [{"role": "assistant", "content": [thinking("hm"), text("a"), thinking("so", x=1)], "citations": [CITATION]}],
        [
            Turn(
                "assistant",
                [Reasoning("hm"), Text("a"), Reasoning("so", extras={"x": 1}), Aside("cohere", "citation", "citation-start", CITATION)],
            )
        ],
    ),
    "a plan, calls and results": (
        [
            {"role": "assistant", "tool_plan": "first", "tool_calls": [function(), function("c2", arguments="{}", x=1)]},
            answer(content="one"),
            answer("c2", [text("a"), text("b")], y=2),
            {"role": "user", "content": "go on"},
        ],
        [
            Turn("assistant", [Reasoning("first", "summary"), CALL, ToolCall(1, "c2", "look", "{}", extras={"x": 1})]),
            Turn("user", [ToolResult("c1", [Text("one")]), ToolResult("c2", [Text("a"), Text("b")], extras={"y": 2})]),
            Turn("user", [Text("go on")]),
        ],
    ),
    "documents in a result": (
        resulting(text("see"), document({"a": 1.5}, id="d1"), document('{"a": 1}'), {**document("b"), "x": 1}),
        [
            Turn("assistant", [CALL]),
            Turn(
                "user",
                [
                    ToolResult(
                        "c1",
                        [
                            Text("see"),
                            Text('{"a":1.5}', extras={"document": {"data": {}, "id": "d1"}}),
                            Text('{"a": 1}', extras={"document": {"data": ""}}),
                            Text("b", extras={"document": {"data": ""}, "x": 1}),
                        ],
                    )
                ],
            ),
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MESSAGES)
def test_messages_are_turns_and_come_back(name):
    messages, turns = MESSAGES[name]
    request = read(messages)
    assert request.turns == turns
    written, report = write(request)
    assert written == body(messages)
    assert not report.losses
    assert not report.repairs


#: What a message becomes on the way through: the documented normalisation.
NORMAL: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {
    "one text in a list": (said(text("a")), [{"role": "user", "content": "a"}]),
    "nothing": ([{"role": "assistant"}], [{"role": "assistant", "content": ""}]),
    "no arguments, no text": (
        calling(content="", tool_plan="", citations=[], tool_calls=[function(arguments="")]),
        calling(tool_calls=[function(arguments="{}")]),
    ),
    "a call without a type": (
        calling(tool_calls=[{"id": "c1", "function": {"name": "look", "arguments": "{}"}}]),
        calling(tool_calls=[function(arguments="{}")]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NORMAL)
def test_messages_that_say_the_same_are_written_alike(name):
    messages, normal = NORMAL[name]
    written, report = write(read(messages))
    assert written["messages"] == normal
    assert not report.losses


def test_a_document_keeps_the_text_of_its_numbers():
    whole = json.dumps(body(resulting(document({"a": "?"})))).replace('"?"', "18446744073709551616").encode()
    request = decode_request(whole, "cohere")
    assert request.turns[1].parts[0].text == '{"a": 18446744073709551616}'
    assert b'{"data":{"a": 18446744073709551616}}' in encode_request(request, "cohere")


def test_a_document_is_text_elsewhere():
    request = read(resulting(document({"a": 1}, id="d")))
    report = StreamReport()
    written = json.loads(encode_request(request, "openai-chat", report=report))
    assert written["messages"][1] == {"role": "tool", "tool_call_id": "c1", "content": '{"a":1}'}
    assert report.lost == [("metadata", "document")]


TOOLS = [
    {"type": "function", "function": {"name": "look", "description": "d", "parameters": SCHEMA}},
    {"type": "function", "function": {"name": "now", "parameters": {}}},
]
NEUTRAL_TOOLS = [Tool("look", "d", SCHEMA), Tool("now", None, {})]

#: What other members say, both ways.
MEMBERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "options": (
        {
            "max_tokens": 5,
            "temperature": 0.5,
            "p": 1,
            "k": 900,
            "stop_sequences": ["a", "b"],
            "seed": 7,
            "presence_penalty": 0.1,
            "frequency_penalty": -2,
            "logprobs": True,
        },
        {
            "options": Options(
                max_tokens=5,
                temperature=0.5,
                top_p=1,
                top_k=900,
                stop=("a", "b"),
                seed=7,
                presence_penalty=0.1,
                frequency_penalty=-2,
                logprobs=True,
            )
        },
    ),
    "thinking": (
        {"thinking": {"type": "enabled", "token_budget": 9}},
        {"options": Options(thinking=Thinking(enabled=True, budget_tokens=9))},
    ),
    "no thinking": ({"thinking": {"type": "disabled"}}, {"options": Options(thinking=Thinking(enabled=False))}),
    "another thinking": ({"thinking": {"type": "x"}}, {"extras": {"thinking": {"type": "x"}}}),
    "text": ({"response_format": {"type": "text"}}, {"options": Options(output=OutputFormat("text"))}),
    "json": ({"response_format": {"type": "json_object"}}, {"options": Options(output=OutputFormat("json"))}),
    "schema": (
        {"response_format": {"type": "json_object", "json_schema": SCHEMA}},
        {"options": Options(output=OutputFormat("schema", SCHEMA))},
    ),
    "streaming": ({"stream": True}, {"stream": True, "stream_usage": True}),
    "not streaming": ({"stream": False}, {"stream": False}),
    "tools": ({"tools": TOOLS}, {"tools": NEUTRAL_TOOLS}),
    "strict tools": (
        {"tools": TOOLS, "strict_tools": True},
        {"tools": [Tool("look", "d", SCHEMA, True), Tool("now", None, {}, True)]},
    ),
    "tools that are not strict": (
        {"tools": TOOLS[1:], "strict_tools": False},
        {"tools": [Tool("now", None, {}, False)]},
    ),
    "strict without tools": ({"strict_tools": True}, {"extras": {"strict_tools": True}}),
    "a tool with more": (
        {"tools": [{"type": "function", "function": {"name": "a", "parameters": SCHEMA, "x": 1}, "y": 2}]},
        {"tools": [Tool("a", None, SCHEMA, extras={"function": {"x": 1}, "y": 2})]},
    ),
    "another tool": (
        {"tools": [{"type": "search", "x": 1}]},
        {"tools": [Tool("search", kind="server", raw={"type": "search", "x": 1})]},
    ),
    "choice none": ({"tools": TOOLS, "tool_choice": "NONE"}, {"tools": NEUTRAL_TOOLS, "tool_choice": ToolChoice("none")}),
    "choice required": (
        {"tools": TOOLS, "tool_choice": "REQUIRED"},
        {"tools": NEUTRAL_TOOLS, "tool_choice": ToolChoice("required")},
    ),
    "members that only Cohere has": (
        {"documents": ["a", {"data": {"b": 1}, "id": "d"}], "citation_options": {"mode": "FAST"}, "safety_mode": "OFF", "priority": 3},
        {"extras": {"documents": ["a", {"data": {"b": 1}, "id": "d"}], "citation_options": {"mode": "FAST"}, "safety_mode": "OFF", "priority": 3}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MEMBERS)
def test_members_are_read_and_come_back(name):
    members, neutral = MEMBERS[name]
    request = read(**members)
    plain = {"stream": None, "stream_usage": None, "tools": [], "tool_choice": None, "options": Options(), "extras": {}}
    assert {attribute: getattr(request, attribute) for attribute in plain} == {**plain, **neutral}
    written, report = write(request)
    assert written == body(**members)
    assert not report.losses


def test_a_tool_without_parameters_has_empty_ones():
    assert write(read(tools=[{"type": "function", "function": {"name": "now"}}]))[0]["tools"] == TOOLS[1:]


BAD: list[tuple[dict[str, Any], str, str]] = [
    ({"model": "m"}, "messages", "a list is needed"),
    ({"messages": [{"role": "developer", "content": "a"}]}, "messages[0].role", "no role 'developer'"),
    ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content", "not a whole number"),
    ({"messages": said({})}, "messages[0].content[0].type", "text is needed"),
    ({"messages": said({"type": "text"})}, "messages[0].content[0].text", "text is needed"),
    ({"messages": said({"type": "image_url"})}, "messages[0].content[0].image_url", "an object is needed"),
    ({"messages": said(image("data:x"))}, "messages[0].content[0].image_url.url", "base64"),
    ({"messages": [{"role": "assistant", "content": [{"type": "thinking"}]}]}, "messages[0].content[0].thinking", "text is needed"),
    ({"messages": [{"role": "assistant", "tool_plan": 5}]}, "messages[0].tool_plan", "text is needed"),
    ({"messages": [{"role": "assistant", "tool_calls": [{"id": "c"}]}]}, "messages[0].tool_calls[0].function", "an object is needed"),
    ({"messages": [{"role": "assistant", "tool_calls": [{"type": "x"}]}]}, "messages[0].tool_calls[0].type", "'x'"),
    ({"messages": [answer(content=[{"type": "document"}])]}, "messages[0].content[0].document", "an object is needed"),
    ({"messages": [answer(content=[document(5)])]}, "messages[0].content[0].document.data", "an object or text is needed"),
    ({"messages": [], "tool_choice": "ANY"}, "tool_choice", "'ANY'"),
    ({"messages": [], "stop_sequences": "x"}, "stop_sequences", "a list is needed"),
    ({"messages": [], "stop_sequences": [5]}, "stop_sequences[0]", "text is needed"),
    ({"messages": [], "k": 1.5}, "k", "a whole number is needed"),
    ({"messages": [], "thinking": {}}, "thinking.type", "text is needed"),
    ({"messages": [], "response_format": {"type": "json_object", "json_schema": 5}}, "response_format.json_schema", "an object is needed"),
    ({"messages": [], "tools": [{"type": "function"}]}, "tools[0].function", "an object is needed"),
]  # fmt: skip


@pytest.mark.parametrize(("bad", "path", "reason"), BAD, ids=lambda value: value if isinstance(value, str) else "")
def test_a_request_that_cannot_be_names_the_place(bad, path, reason):
    with pytest.raises(BadRequest) as caught:
        decode_request(json.dumps(bad).encode(), "cohere")
    assert caught.value.path == path
    assert reason in caught.value.reason


# -- from other dialects -----------------------------------------------------------------------------------------------


def foreign(*turns: Turn, **members: Any) -> Request:
    return Request("anthropic", "m", list(turns) or [Turn("user", [Text("hi")])], **members)


#: Turns of another dialect: the messages, the losses, the repairs.
FOREIGN: dict[str, tuple[list[Turn], list[dict[str, Any]], dict[str, int], dict[str, int]]] = {
    "results, then text": (
        [Turn("assistant", [Text("wait"), CALL]), Turn("user", [ToolResult("c1", [Text("done")]), Text("go on")])],
        [*calling(tool_calls=[function()], content="wait"), {"role": "user", "content": "go on"}],
        {},
        {},
    ),
    "text before the results": (
        [Turn("assistant", [CALL]), Turn("user", [Text("so"), ToolResult("c1", [Text("done")])])],
        [*calling(tool_calls=[function()]), {"role": "user", "content": "so"}],
        {},
        {"result_moved": 1},
    ),
    "a turn before the results": (
        [Turn("assistant", [CALL]), Turn("user", [Text("so")]), Turn("user", [ToolResult("c1", [Text("done")])])],
        [*calling(tool_calls=[function()]), {"role": "user", "content": "so"}],
        {},
        {"result_moved": 1},
    ),
    "an error, with an image": (
        [
            Turn("assistant", [CALL]),
            Turn("user", [ToolResult("c1", [Text("no"), Media("image", "image/png", PNG)], is_error=True, cache="short")]),
        ],
        [{"role": "assistant", "tool_calls": [function()]}, answer(content="Error: no")],
        {"result_error": 1, "media": 1, "cache_mark": 1},
        {},
    ),
    "reasoning": (
        [
            Turn(
                "assistant",
                [
                    Reasoning("hm", "summary", Opaque("anthropic", "S")),
                    Reasoning("", signature=Opaque("anthropic", "S")),
                    RedactedReasoning(Opaque("anthropic", "D")),
                    Text("a"),
                ],
            )
        ],
        [{"role": "assistant", "content": [thinking("hm"), text("a")]}],
        {"reasoning_signature": 2, "reasoning_opaque": 1},
        {},
    ),
    "nothing is left of a turn": (
        [Turn("user", [Text("a")]), Turn("assistant", [RedactedReasoning(Opaque("anthropic", "D"))]), Turn("user", [Text("b")])],
        [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}],
        {"reasoning_opaque": 1},
        {"turn_empty": 1},
    ),
    "what stands behind a call, and what signs it": (
        answered(ToolCall(0, "c1", "look", "", signature=Opaque("google", "S"), cache="short"), Text("so", Opaque("google", "T"))),
        calling(tool_calls=[function(arguments="{}")], content="so"),
        {"block_order": 1, "reasoning_signature": 2, "cache_mark": 1},
        {},
    ),
    "a custom call and a refusal": (
        answered(Refusal("no"), ToolCall(0, "c1", "run", "1 + 1", "custom")),
        calling(tool_calls=[function(name="run", arguments='{"input":"1 + 1"}')], content="no"),
        {"refusal_as_text": 1, "custom_tool_wrapped": 1},
        {},
    ),
    "media": (
        [
            Turn("system", [Text("be"), Media("image", "image/png", PNG)], native_role="developer"),
            Turn(
                "user",
                [
                    Media("image", data=PNG, detail="original", cache="short"),
                    Media("image", url="gs://a"),
                    Media("file", "application/pdf", "JVBERi0="),
                    Media("audio", "audio/mpeg", "AAAA"),
                ],
                name="ann",
            ),
        ],
        [{"role": "system", "content": "be"}, *said(image(f"data:image/png;base64,{PNG}"))],
        {"media": 4, "metadata": 1, "cache_mark": 1, "turn_name": 1},
        {},
    ),
    "what only another dialect knows": (
        [
            Turn("user", [Text("a", extras={"x": 1, "document": {"data": {}}}), Text("", cache="long"), Aside("anthropic", "server_tool", "s", {})], extras={"y": 1}),
            Turn("assistant", [Aside("anthropic", "citation", "citation-start", {}), Aside("anthropic", "server_tool", "content.s", {}), Text("b")]),
        ],
        [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}],
        {"metadata": 3, "server_tool": 2, "citation": 1, "cache_mark": 1},
        {"turn_empty": 1},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FOREIGN)
def test_turns_of_another_dialect(name):
    turns, messages, losses, repairs = FOREIGN[name]
    written, report = write(foreign(*turns), linked_media="drop")
    assert written["messages"] == messages
    assert dict(report.losses) == losses
    assert dict(report.repairs) == repairs
    assert faults("cohere", written) == []


def test_members_of_another_dialect():
    request = foreign(
        tools=[
            Tool("look", "d", SCHEMA, True, cache="short"),
            Tool("now", strict=False),
            Tool("run", kind="custom", format={"type": "text"}),
            Tool("web", kind="server", raw={"type": "web_search"}),
        ],
        tool_choice=ToolChoice("auto", parallel=False),
        options=Options(
            max_tokens=5,
            top_p=1,
            top_k=600,
            presence_penalty=-1.5,
            frequency_penalty=2,
            seed=3,
            stop=("x",),
            top_logprobs=2,
            thinking=Thinking("high", 9, summary="auto"),
            output=OutputFormat("schema", SCHEMA, "n", "d"),
            service_tier="flex",
            user="u",
        ),
        stream=True,
        stream_usage=True,
        extras={"container": "c"},
    )
    written, report = write(request)
    wrapped = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
    assert written == body(
        tools=[*TOOLS, {"type": "function", "function": {"name": "run", "parameters": wrapped}}],
        max_tokens=5,
        p=0.99,
        k=500,
        presence_penalty=0,
        frequency_penalty=1,
        seed=3,
        stop_sequences=["x"],
        thinking={"type": "enabled", "token_budget": 9},
        stream=True,
    )
    assert report.lost == [
        ("parameter", "output"),  # which the server refuses next to tools
        ("tool_strict", "look"),
        ("cache_mark", "look"),
        ("custom_tool_wrapped", "run"),
        ("tool_definition", "web"),
        ("parameter", "top_logprobs"),
        ("parameter", "service_tier"),
        ("parameter", "user"),
        ("parameter", "container"),
        ("tool_choice", "parallel"),
        ("parameter", "p"),
        ("parameter", "k"),
        ("parameter", "presence_penalty"),
        ("parameter", "frequency_penalty"),
        ("parameter", "thinking.summary"),
        ("parameter", "thinking.effort"),
    ]
    assert faults("cohere", written) == []


@pytest.mark.parametrize(
    ("choice", "tools", "written", "lost"),
    [
        (ToolChoice("auto"), ["look", "now"], None, []),
        (ToolChoice("auto", ("look",)), ["look"], None, []),
        (ToolChoice("required"), ["look", "now"], "REQUIRED", []),
        (ToolChoice("required", ("look", "now")), ["look", "now"], "REQUIRED", []),
        (ToolChoice("required", ("now",)), ["now"], "REQUIRED", [("tool_choice", "now")]),
        (ToolChoice("none", ("now",)), ["look", "now"], "NONE", []),
    ],
)
def test_a_choice_of_tools(choice, tools, written, lost):
    found, report = write(foreign(tools=[Tool("look"), Tool("now")], tool_choice=choice))
    assert [tool["function"]["name"] for tool in found["tools"]] == tools
    assert found.get("tool_choice") == written
    assert report.lost == lost


def test_a_choice_among_no_tools():
    assert "tool_choice" not in write(foreign(tool_choice=ToolChoice("none")))[0]


@pytest.mark.parametrize(("strict", "written"), [((True, True), True), ((False, False), None), ((None, True), None)])
def test_strictness_is_said_of_all_tools(strict, written):
    found, report = write(foreign(tools=[Tool("a", strict=strict[0]), Tool("b", strict=strict[1])]))
    assert found.get("strict_tools") is written
    assert report.lost == ([("tool_strict", "b")] if strict[0] is None else [])


@pytest.mark.parametrize(
    ("thinking", "written"),
    [
        (Thinking(), None),
        (Thinking("none"), {"type": "disabled"}),
        (Thinking("low"), {"type": "enabled", "token_budget": 1024}),
        (Thinking(enabled=False, budget_tokens=5), {"type": "disabled"}),
        (Thinking(budget_tokens=5), {"type": "enabled", "token_budget": 5}),
        (Thinking(budget_tokens=0), {"type": "disabled"}),
        (Thinking(budget_tokens=-1), {"type": "enabled"}),
    ],
)
def test_how_much_to_think(thinking, written):
    assert write(foreign(options=Options(thinking=thinking)))[0].get("thinking") == written


def test_one_choice_can_be_asked_for():
    assert write(foreign(options=Options(choices=1)))[0] == body()
    with pytest.raises(BadRequest, match="2 are asked for") as caught:
        write(foreign(options=Options(choices=2)))
    assert caught.value.path == "n"


def test_plans_are_one_text_in_front():
    parts = [Reasoning("a", "summary"), Text("b"), Reasoning("c", "summary"), CALL]
    request = read()
    request.turns = answered(*parts)
    written, report = write(request)
    assert written["messages"] == calling(tool_plan="a\n\nc", tool_calls=[function()], content="b")
    assert report.losses == {"block_boundary": 1, "block_order": 1}


def test_what_a_tool_gave_is_no_reasoning():
    with pytest.raises(TypeError, match="content has no Reasoning"):
        write(foreign(Turn("user", [Reasoning("hm")])))


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
    request = read()
    request.turns += [
        Turn("assistant", said_before.choices[0].parts),
        Turn("user", [ToolResult(each.id, [Text("done")]) for each in said_before.tool_calls]),
    ]
    written, report = write(request)
    assert written["messages"][1:] == [message, answer()]
    assert report.lost == [("logprobs", "logprobs")]


@pytest.mark.parametrize("name", [*MESSAGES, *MEMBERS])
def test_what_cohere_has_passes_the_types_of_its_client(name):
    members = {"messages": MESSAGES[name][0]} if name in MESSAGES else MEMBERS[name][0]
    written, _ = write(read(**members))
    beyond = {"members nobody knows", "an unknown part", "thoughts, text and citations", "a plan, calls and results", "documents in a result", "another tool", "another thinking", "a tool with more"}  # fmt: skip
    assert bool(faults("cohere", written)) == (name in beyond)


@pytest.mark.parametrize("source", [name for name in DIALECTS.built_in if name != "cohere"])
def test_recorded_requests_of_other_dialects_pass_the_types_of_the_client(source):
    if DIALECTS[source].bodies is None:
        pytest.skip(f"{source} has no bodies")
    for recorded in requests(source):
        request = decode_request(json.dumps(recorded.body).encode(), source)
        request.model = request.model or "m"
        written, _ = write(request, repair=True)
        assert faults("cohere", written) == [], recorded.name
        again, report = write(decode_request(json.dumps(written).encode(), "cohere"))
        assert again == written, recorded.name
        assert not report.losses


def test_the_official_client_sends_it(client, replay):
    reply = {"id": "i", "finish_reason": "COMPLETE", "message": {"role": "assistant", "content": [text("a")]}}
    turns = answered(Reasoning("hm"), Text("wait"), CALL)
    written, _ = write(
        foreign(*turns, tools=[Tool("look", None, SCHEMA, True)], options=Options(max_tokens=5, top_k=3))
    )
    written["model"] = replay.register(json.dumps(reply).encode(), "application/json")
    client("cohere").chat(**written)
    assert json.loads(replay.asked[written["model"]]) == {**written, "stream": False}
