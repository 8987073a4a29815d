"""Requests to Ollama's ``/api/chat``, both directions: each row of dialects.md §4.1, §7.3 and §7.4 that concerns them."""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from typing import Any

import orjson
import pytest
from attrs import evolve

from streamkit.conversation.checks import check_pairing
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
from streamkit.errors import BadRequest
from streamkit.events import Aside, Opaque
from streamkit.translation.bodies import decode_request, encode_request
from tests.clients.shapes import ASK
from tests.corpora import requests
from tests.requests.rows import Dialect, Row, by_model, by_system, by_user, parameters, rows
from tests.requests.sdk_types import faults
from tests.vectors.ollama import end

SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
LOOK = {"type": "function", "function": {"name": "look", "description": "looks", "parameters": SCHEMA}}
USER = by_user(Text("Hi"))
CALL = ToolCall(0, "a", "look", '{"q": 1.0}')
ANSWERED = [by_model(CALL), by_user(ToolResult("a", [Text("yes")]))]
OLLAMA = Dialect(
    "ollama",
    {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "stream": False},
    Request("ollama", "m", [USER], stream=False),
    Request("openai-chat", "m", [USER]),
    {"linked_media": "drop"},
)
WHOLE: dict[str, Any] = {
    "model": "m",
    "messages": [
        {"role": "system", "content": "rules"},
        {"role": "user", "content": "what is it?", "images": ["AA==", "AAA="]},
        {
            "role": "assistant", "content": "so", "thinking": "hm", "tool_calls": [
                {"id": "call_1", "function": {"name": "look", "arguments": {"q": 1.5}}},
                {"id": "call_2", "function": {"name": "look", "arguments": {}}},
            ],
        },
        {"role": "tool", "content": "a cat", "images": ["AA=="], "tool_name": "look", "tool_call_id": "call_1"},
        {"role": "tool", "content": "", "tool_name": "look", "tool_call_id": "call_2"},
        {"role": "system", "content": "more rules"},
        {"role": "user", "content": "go on"},
    ],
    "tools": [LOOK, {"type": "function", "function": {"name": "stop"}}],
    "options": {
        "num_predict": 9, "temperature": 0.5, "top_p": 1, "top_k": 3, "stop": ["x"], "seed": 7,
        "presence_penalty": 0.1, "frequency_penalty": 0.2, "num_ctx": 4096, "mirostat": 0,
    },
    "format": SCHEMA, "think": "high", "logprobs": True, "top_logprobs": 2, "stream": True, "keep_alive": "5m", "truncate": False,
    "shift": False,
}  # fmt: skip


def normal(body: dict[str, Any]) -> dict[str, Any]:
    """What a body is once it was read and written again.

    ``content``, ``stream`` and the type of a tool are always said, null, ``""`` for ``format`` and empty lists and ids never; an
    ``index`` that counts the calls goes, and so does a call's ``type``; of a call and its result both have an id if one has,
    and a result names the tool.
    """
    said = {name: value for name, value in deepcopy(body).items() if value not in (None, "", [], {})}
    said["stream"] = body.get("stream") is not False
    for tool in said.get("tools", []):
        tool.setdefault("type", "function")
    said["messages"] = [normal_message(message) for message in body["messages"]]
    name_results(said["messages"])
    return said


def name_results(messages: list[dict[str, Any]]) -> None:
    names: list[str] = []
    for message in messages:
        if message["role"] == "assistant":
            names = [call["function"]["name"] for call in message.get("tool_calls", [])]
        elif message["role"] == "tool" and names:
            names.remove(message.setdefault("tool_name", names[0]))


def normal_message(message: dict[str, Any]) -> dict[str, Any]:
    said = {name: value for name, value in deepcopy(message).items() if value not in (None, "", [])}
    for number, call in enumerate(said.get("tool_calls", [])):
        call.pop("type", None)
        call["function"].setdefault("arguments", {})
        if call["function"].get("index") == number:
            del call["function"]["index"]
    return {"content": "", **said, "role": message["role"].lower()}


# -- reading -----------------------------------------------------------------------------------------------------------


THINK = [(True, Thinking(enabled=True)), (False, Thinking("none")), ("max", Thinking("max")), (None, None)]


def history(calls: list[str | None], *results: dict[str, Any]) -> dict[str, Any]:
    made = [{"function": {"name": name, "arguments": {}}} | ({"id": i} if i else {}) for i, name in map(divided, calls)]
    told = [{"role": "tool", "content": "", **result} for result in results]
    return {"model": "m", "messages": [{"role": "assistant", "content": "", "tool_calls": made}, *told]}


def divided(call: str) -> tuple[str, str]:
    """``id:name``, or a name."""
    before, _, name = call.rpartition(":")
    return before, name


PAIRED = [
    (["f", "g"], [{"tool_name": "g"}, {"tool_name": "f"}], ["call_0_1", "call_0_0"]),
    (["f", "f"], [{"tool_name": "f"}, {"tool_name": "f"}], ["call_0_0", "call_0_1"]),
    (["f", "g"], [{}, {}], ["call_0_0", "call_0_1"]),
    (["f", "g"], [{"tool_name": "f"}, {}], ["call_0_0", "call_0_1"]),
    (["a:f", "b:f"], [{"tool_name": "f"}, {"tool_name": "f"}], ["a", "b"]),
    (["a:f", "b:f"], [{"tool_call_id": "b"}, {"tool_name": "f"}], ["b", "a"]),
    (["f", "g"], [{"tool_name": "g", "tool_call_id": "x"}, {"tool_call_id": "y"}], ["x", "y"]),
    (["a:f"], [{"tool_name": "f", "tool_call_id": "x"}], ["x"]),
    (["f"], [{"tool_name": "g"}], [""]),
    (["f"], [{}, {}], ["call_0_0", ""]),
]  # fmt: skip


def test_a_call_gets_the_id_that_its_result_has_kept():
    request = OLLAMA.read(**history(["f", "g"], {"tool_name": "g", "tool_call_id": "x"}, {"tool_name": "f"}))
    check_pairing(request)
    said, *told = OLLAMA.write(request)[0]["messages"]
    assert [call.get("id") for call in said["tool_calls"]] == [None, "x"]
    assert [message.get("tool_call_id") for message in told] == ["x", None]


def test_ids_that_were_made_are_for_other_dialects_only():
    body = history(["f", "a:f"], {"tool_name": "f"}, {"tool_name": "f"})
    request = OLLAMA.read(**body)
    assert [call.get("id") for call in OLLAMA.write(request)[0]["messages"][0]["tool_calls"]] == [None, "a"]
    assert [message.get("tool_call_id") for message in OLLAMA.write(request)[0]["messages"][1:]] == [None, "a"]
    elsewhere = orjson.loads(encode_request(request, "openai-chat"))["messages"]
    assert [call["id"] for call in elsewhere[0]["tool_calls"]] == ["call_0_0", "a"]
    assert [message["tool_call_id"] for message in elsewhere[1:]] == ["call_0_0", "a"]


def test_a_result_of_an_earlier_turn_is_not_taken_for_one_of_this():
    body = history(["f"], {"tool_name": "f"})
    body["messages"] += history(["f"], {"tool_name": "f"})["messages"]
    ids = [part.call_id for turn in OLLAMA.read(**body).turns for part in turn.parts if isinstance(part, ToolResult)]
    assert ids == ["call_0_0", "call_2_0"]


def wrong(**fields: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": "Hi", **fields}]}


BAD = [
    ({"messages": ..., "prompt": "Hi"}, "prompt", "/api/generate"),
    ({"messages": ...}, "messages", "must be a list"),
    ({"model": ...}, "model", "must be a string"),
    ({"model": "m", "messages": [1]}, "messages[0]", "must be an object"),
    (wrong(role="developer"), "messages[0].role", "unknown role 'developer'"),
    (wrong(role=None), "messages[0].role", "must be a string"),
    (wrong(content=[{"type": "text", "text": "Hi"}]), "messages[0].content", "not a list"),
    (wrong(images="AA=="), "messages[0].images", "must be a list"),
    (wrong(images=["AA==", 1]), "messages[0].images[1]", "must be a string"),
    (wrong(images=["AA==", "%"]), "messages[0].images[1]", "must be base64: "),
    (wrong(images=["data:image/png;base64,AA=="]), "messages[0].images[0]", "must be base64 without a data: prefix"),
    (wrong(role="assistant", tool_calls=[{}]), "messages[0].tool_calls[0].function", "must be an object"),
    (wrong(role="assistant", tool_calls=[{"function": {}}]), "messages[0].tool_calls[0].function.name", "must be a string"),
    (
        wrong(role="assistant", tool_calls=[{"function": {"name": "f", "arguments": "{}"}}]),
        "messages[0].tool_calls[0].function.arguments", "must be an object, not a string",
    ),
    (wrong() | {"think": "much"}, "think", "must be true, false or one of low, medium, high, max, not 'much'"),
    (wrong() | {"think": 1}, "think", "not an integer"),
    (wrong() | {"format": "xml"}, "format", "'xml'"),
    (wrong() | {"format": 1}, "format", "must be 'json' or a JSON schema"),
    (wrong() | {"stream": "yes"}, "stream", "must be a boolean"),
    (wrong() | {"options": {"stop": "x"}}, "options.stop", "must be a list"),
    (wrong() | {"options": {"stop": ["x", 1]}}, "options.stop[1]", "must be a string"),
    (wrong() | {"options": {"temperature": "hot"}}, "options.temperature", "must be a number"),
    (wrong() | {"options": []}, "options", "must be an object"),
    (wrong() | {"tools": [{"type": "function"}]}, "tools[0].function", "must be an object"),
    (wrong() | {"tools": [{"function": {"name": "f", "parameters": []}}]}, "tools[0].function.parameters", "an object"),
]  # fmt: skip


# -- writing -----------------------------------------------------------------------------------------------------------


CALLED = {"id": "a", "function": {"name": "look", "arguments": {"q": 1.0}}}

FOREIGN = {
    "plain text": ([USER], [{"role": "user", "content": "Hi"}], []),
    "texts of the user": ([by_user(Text("a"), Text("b"))], [{"role": "user", "content": "a\n\nb"}], ["block_boundary"]),
    "texts of the assistant": ([by_model(Text("a"), Text("b"))], [{"role": "assistant", "content": "ab"}], ["block_boundary"]),
    "an image in front": (
        [by_user(Media("image", "image/png", "AA=="), Text("a"))], [{"role": "user", "content": "a", "images": ["AA=="]}], [],
    ),
    "an image behind the text": (
        [by_user(Text("a"), Media("image", "image/png", "AA==", detail="low", cache="short"))],
        [{"role": "user", "content": "a", "images": ["AA=="]}], ["block_order", "metadata detail", "cache_mark short"],
    ),
    "a sound": ([by_user(Media("audio", "audio/wav", "AA=="), Text("a"))], [{"role": "user", "content": "a", "images": ["AA=="]}], []),
    "an image by its URL": (
        [by_user(Media("image", url="https://a.example/b.png"), Text("a"))], [{"role": "user", "content": "a"}], ["media image"],
    ),
    "a file": (
        [by_user(Media("file", "application/pdf", "AA==", name="b.pdf"), Text("a", cache="long"))], [{"role": "user", "content": "a"}],
        ["media file", "cache_mark long"],
    ),
    "what nobody else knows": (
        [by_user(Text("a", extras={"x": 1}), name="Ada", extras={"y": 2})], [{"role": "user", "content": "a"}],
        ["turn_name Ada", "metadata x", "metadata y"],
    ),
    "an unknown part": (
        [by_user(Text("a"), Aside("openai", "unknown_event", "content.odd", {}))], [{"role": "user", "content": "a"}],
        ["unknown_event content.odd"],
    ),
    "a refusal": ([by_model(Refusal("no"))], [{"role": "assistant", "content": "no"}], ["refusal_as_text"]),
    "reasoning": (
        [by_model(Reasoning("hm"), Reasoning("so", "summary"), Text("a"))], [{"role": "assistant", "content": "a", "thinking": "hm\n\nso"}],
        ["block_boundary"],
    ),
    "signed reasoning": (
        [by_model(
            Reasoning("hm", signature=Opaque("anthropic", "s")), RedactedReasoning(Opaque("anthropic", "s")),
            Text("a", signature=Opaque("google", "s")),
        )],
        [{"role": "assistant", "content": "a", "thinking": "hm"}],
        ["reasoning_signature anthropic", "reasoning_opaque anthropic", "reasoning_signature google"],
    ),
    "a call and its result": (
        ANSWERED,
        [
            {"role": "assistant", "content": "", "tool_calls": [CALLED]},
            {"role": "tool", "content": "yes", "tool_name": "look", "tool_call_id": "a"},
        ],
        [],
    ),
    "text behind a call": (
        [by_model(CALL, Text("a"), Reasoning("late")), ANSWERED[1]],
        [
            {"role": "assistant", "content": "a", "thinking": "late", "tool_calls": [CALLED]},
            {"role": "tool", "content": "yes", "tool_name": "look", "tool_call_id": "a"},
        ],
        ["block_order"],
    ),
    "a result that is an error, with an image, and text behind it": (
        [ANSWERED[0], by_user(ToolResult("a", [Text("x"), Media("image", "image/png", "AA==")], is_error=True), Text("go"))],
        [
            {"role": "assistant", "content": "", "tool_calls": [CALLED]},
            {"role": "tool", "content": "Error: x", "images": ["AA=="], "tool_name": "look", "tool_call_id": "a"},
            {"role": "user", "content": "go"},
        ],
        ["block_order", "result_error a"],
    ),
    "arguments that are no JSON": (
        [by_model(ToolCall(0, "a", "look", "{oops", extras={"x": 1}, signature=Opaque("google", "s"), cache="short")), ANSWERED[1]],
        [
            {"role": "assistant", "content": "", "tool_calls": [{"id": "a", "function": {
                "name": "look", "arguments": {"_raw_arguments": "{oops"},
            }}]},
            {"role": "tool", "content": "yes", "tool_name": "look", "tool_call_id": "a"},
        ],
        ["reasoning_signature google", "cache_mark short", "arguments_wrapped look", "metadata x"],
    ),
    "a custom call": (
        [by_model(ToolCall(0, "a", "look", "x = 1", "custom")), by_user(ToolResult("a", [], kind="custom", cache="long"))],
        [
            {"role": "assistant", "content": "", "tool_calls": [{"id": "a", "function": {
                "name": "look", "arguments": {"input": "x = 1"},
            }}]},
            {"role": "tool", "content": "", "tool_name": "look", "tool_call_id": "a"},
        ],
        ["custom_tool_wrapped look", "cache_mark long"],
    ),
    "a system message": ([by_system(Text("a")), USER], [{"role": "system", "content": "a"}, {"role": "user", "content": "Hi"}], []),
    "a system message further down": (
        [by_system(Text("a"), native_role="developer"), USER, by_system(Text("b"))],
        [{"role": "system", "content": "a\n\nb"}, {"role": "user", "content": "Hi"}], ["system_place"],
    ),
    "one that was not in front": (
        [USER, by_system(Text("b"), name="Bob", extras={"x": 1})], [{"role": "system", "content": "b"}, {"role": "user", "content": "Hi"}],
        ["system_place", "turn_name Bob", "metadata x"],
    ),
}  # fmt: skip


OPTIONS = [
    (Options(max_tokens=9, top_k=3, stop=("a", "b")), {"options": {"num_predict": 9, "top_k": 3, "stop": ["a", "b"]}}, []),
    (Options(choices=1), {}, []),
    (Options(logprobs=True, top_logprobs=3), {"logprobs": True, "top_logprobs": 3}, []),
    (Options(service_tier="flex", user="u"), {}, ["service_tier", "user"]),
    (Options(thinking=Thinking("none")), {"think": False}, []),
    (Options(thinking=Thinking("low")), {"think": "low"}, []),
    (Options(thinking=Thinking("minimal")), {"think": "low"}, ["thinking.effort"]),
    (Options(thinking=Thinking("xhigh")), {"think": "high"}, ["thinking.effort"]),
    (Options(thinking=Thinking("much")), {"think": True}, ["thinking.effort"]),
    (Options(thinking=Thinking(enabled=False)), {"think": False}, []),
    (Options(thinking=Thinking(budget_tokens=9, summary="auto")), {"think": True}, ["thinking.budget_tokens", "thinking.summary"]),
    (Options(thinking=Thinking(summary="auto")), {}, ["thinking.summary"]),
    (Options(output=OutputFormat("text")), {}, []),
    (Options(output=OutputFormat("json")), {"format": "json"}, []),
    (Options(output=OutputFormat("schema", SCHEMA, strict=True)), {"format": SCHEMA}, []),
    (Options(output=OutputFormat("schema", SCHEMA, "n", "d")), {"format": SCHEMA}, ["output.name", "output.description"]),
]  # fmt: skip

NARROW = {"type": "object", "properties": {}}
DEEP = {
    "type": "object",
    "title": "T",
    "additionalProperties": False,
    "required": ["a"],
    "$defs": {"d": {"title": "kept"}},
    "properties": {
        "a": {"type": "string", "minLength": 1, "enum": ["x"], "description": "d"},
        "title": {"type": ["array", "null"], "items": {"minLength": 1}, "maxItems": 3},
        "b": {"anyOf": [{"type": "object", "properties": {"c": {"const": 1}}, "required": ["c"]}, True]}, "e": True,
    },
}  # fmt: skip

KEYWORDS = [
    (None, NARROW, []),
    ({}, NARROW, []),
    (SCHEMA, SCHEMA, []),
    (
        DEEP,
        {
            "type": "object", "required": ["a"], "$defs": {"d": {"title": "kept"}},
            "properties": {
                "a": {"type": "string", "enum": ["x"], "description": "d"}, "title": {"type": ["array", "null"], "items": {"minLength": 1}},
                "b": {"anyOf": [{"type": "object", "properties": {"c": {}}, "required": ["c"]}, {}]}, "e": {},
            },
        },
        [
            ".title", ".additionalProperties", ".properties.a.minLength", ".properties.title.maxItems",
            ".properties.b.anyOf[0].properties.c.const", ".properties.b.anyOf[1]", ".properties.e",
        ],
    ),
]  # fmt: skip


def test_a_schema_that_never_ends_is_refused():
    schema: dict[str, Any] = {"type": "object"}
    schema["properties"] = {"a": schema}
    with pytest.raises(BadRequest, match="nested deeper"):
        OLLAMA.write(evolve(OLLAMA.foreign, tools=[Tool("f", parameters=schema)]))


TOOL_ROWS = [
    (
        Tool("a b", "d", SCHEMA, strict=True, cache="short"), {"name": "a b", "description": "d", "parameters": SCHEMA},
        ["tool_strict", "cache_mark"],
    ),
    (Tool("f", parameters=SCHEMA, strict=False, extras={"x": 1}), {"name": "f", "parameters": SCHEMA}, ["metadata"]),
    (
        Tool("f", kind="custom", format={"type": "text"}),
        {"name": "f", "parameters": {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}},
        ["custom_tool_wrapped"],
    ),
    (Tool("web_search", kind="server", raw={"type": "web_search"}), None, ["tool_definition"]),
]  # fmt: skip

TOOLS = [Tool("f", parameters=SCHEMA), Tool("g", parameters=SCHEMA)]

CHOICES = [
    (None, ["f", "g"], []),
    (ToolChoice("auto"), ["f", "g"], []),
    (ToolChoice("none"), [], []),
    (ToolChoice("auto", ("g",)), ["g"], []),
    (ToolChoice("auto", parallel=True), ["f", "g"], []),
    (ToolChoice("auto", parallel=False), ["f", "g"], ["parallel"]),
    (ToolChoice("auto", extras={"x": 1}), ["f", "g"], ["x"]),
]  # fmt: skip


# -- there and back ----------------------------------------------------------------------------------------------------


ODD = {
    "model": "m",
    "messages": [
        {"role": "User", "content": None, "images": []},
        {"role": "assistant", "tool_calls": [
            {"type": "function", "function": {"index": 0, "name": "f"}},
            {"function": {"index": 7, "name": "f", "arguments": {"a": []}, "mood": 1}, "x": 2},
        ]},
        {"role": "tool", "tool_name": "f", "content": "1", "x": 3}, {"role": "tool", "content": "2"},
    ],
    "tools": [{"function": {"name": "f", "parameters": {"type": "object", "additionalProperties": False}}}],
    "format": "",
    "keep_alive": None,
    "options": {},
    "tool_choice": "auto",
}  # fmt: skip


@pytest.mark.parametrize("body", [WHOLE, ODD], ids=["whole", "odd"])
def test_a_request_comes_back_as_it_was(body):
    written, report = OLLAMA.write(decode_request(orjson.dumps(body), "ollama"))
    assert written == normal(body)
    assert not report.losses
    assert not report.repairs
    assert normal(written) == written


def test_recorded_requests_come_back_as_they_were():
    for recorded in requests("ollama"):
        written, report = OLLAMA.write(decode_request(orjson.dumps(recorded.body), "ollama"))
        assert written == normal(recorded.body), recorded.name
        assert faults("ollama", written) == [], recorded.name
        assert not report.losses, recorded.name


def test_the_official_client_sends_what_is_written(client, replay):
    ollama = client("ollama")
    name = replay.register(orjson.dumps({**end(), "message": {"role": "assistant", "content": "Hi"}}))
    turns = [
        Turn("system", [Text("rules")]),
        *ANSWERED,
        Turn("user", [Media("image", "image/png", "AA=="), Text(ASK[0]["content"])]),
    ]
    options = Options(max_tokens=3, thinking=Thinking("low"))
    body, _ = OLLAMA.write(evolve(OLLAMA.foreign, turns=turns, tools=TOOLS, options=options))
    assert ollama.chat(**{**body, "model": name}).message.content == "Hi"


# -- all rows ----------------------------------------------------------------------------------------------------------

DECLARED = [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in "fg"]
OTHER_TOOLS = [
    {"type": "browser", "name": "b", "depth": 2},
    {"type": "function", "function": {"name": "f", "strict": True}},
]


def lost(words: list[str]) -> list[tuple[str, str]]:
    """Losses of a kind, or of a kind and words."""
    return [(kind, what) for kind, _, what in (word.partition(" ") for word in words)]


def declared(names: Any) -> Any:
    return [tool for tool in DECLARED if tool["function"]["name"] in names] or ...


def tool_row(tool: Tool, function: Any, kinds: list[str]) -> Row:
    tools = ... if function is None else [{"type": "function", "function": function}]
    return OLLAMA.of_another({"tools": [tool]}, {"tools": tools}, Counter(kinds))


ROWS = {
    "all of a request": OLLAMA.means(
        WHOLE,
        turns=[
            by_system(Text("rules")), by_user(Media("image", data="AA=="), Media("image", data="AAA="), Text("what is it?")),
            by_model(Reasoning("hm"), Text("so"), ToolCall(0, "call_1", "look", '{"q":1.5}'), ToolCall(1, "call_2", "look", "{}")),
            by_user(ToolResult("call_1", [Media("image", data="AA=="), Text("a cat")], "look"), ToolResult("call_2", [], "look")),
            by_system(Text("more rules")), by_user(Text("go on")),
        ],
        tools=[Tool("look", "looks", SCHEMA), Tool("stop")],
        options=Options(
            9, 0.5, 1, 3, ("x",), 7, 0.1, 0.2, logprobs=True, top_logprobs=2, thinking=Thinking("high"), output=OutputFormat("schema", SCHEMA)
        ),
        extras={"options": {"num_ctx": 4096, "mirostat": 0}, "keep_alive": "5m", "truncate": False, "shift": False},
        stream=True, stream_usage=True,
    ),
    "a stream": OLLAMA.kept({"stream": True}, stream=True, stream_usage=True),
    "a stream unless it is told not to": Row({"stream": ...}, {"stream": True, "stream_usage": True}, {"stream": True}),
    "no stream": OLLAMA.kept({"stream": False}),
    **rows("think", THINK, lambda think, thinking: Row({"think": think}, {"options": Options(thinking=thinking)}, {"think": ... if think is None else think})),
    "no bound is Ollama's own": OLLAMA.kept({"options": {"num_predict": -1}}, extras={"options": {"num_predict": -1}}),
    **rows("bad", BAD, OLLAMA.refused),
    **rows("turns", FOREIGN, lambda turns, messages, words: OLLAMA.of_another({"turns": turns}, {"messages": messages}, lost(words))),
    "systems in front": OLLAMA.of_another(
        {"turns": [by_system(Text("a")), by_system(Text("b"), Media("image", data="AA==")), USER]},
        {"messages": [{"role": "system", "content": "a\n\nb", "images": ["AA=="]}, {"role": "user", "content": "Hi"}]},
        {"block_order": 1}, {"turns_joined": 1},
    ),
    "results in front of what the user says": OLLAMA.of_another(
        {"turns": [ANSWERED[0], by_user(Text("go"), ToolResult("a", [Text("yes")]))]},
        {"messages": [
            {"role": "assistant", "content": "", "tool_calls": [CALLED]},
            {"role": "tool", "content": "yes", "tool_name": "look", "tool_call_id": "a"}, {"role": "user", "content": "go"},
        ]},
        {}, {"result_moved": 1},
    ),
    "systems within Ollama": OLLAMA.of_another(
        {"dialect": "ollama", "turns": [USER, by_system(Text("b")), by_model(Aside("ollama", "metadata", "message.mood", "calm"))]},
        {"messages": [
            {"role": "user", "content": "Hi"}, {"role": "system", "content": "b"}, {"role": "assistant", "content": "", "mood": "calm"},
        ]},
        typed=False,
    ),
    **rows("options", OPTIONS, lambda options, members, names: OLLAMA.of_another(
        {"options": options}, members, [("metadata" if name.startswith("output.") else "parameter", name) for name in names]
    )),
    "members of another dialect": OLLAMA.of_another(
        {"extras": {"logit_bias": {"1": 2}, "store": True, "metadata": {}}}, {}, parameters("logit_bias", "store")
    ),
    "several choices": OLLAMA.unwritable({"options": Options(choices=2)}, "n", "one choice"),
    **rows("keywords", KEYWORDS, lambda schema, written, paths: OLLAMA.of_another(
        {"tools": [Tool("f", parameters=SCHEMA), Tool("g", parameters=schema)]},
        {"tools": [DECLARED[0], {"type": "function", "function": {"name": "g", "parameters": written}}]},
        [("schema_keyword", f"tools[1].parameters{path}") for path in paths],
    )),
    **rows("tools", TOOL_ROWS, tool_row),
    "tools of another type": Row({"tools": OTHER_TOOLS}, None, {"tools": OTHER_TOOLS}),
    **rows("choices", CHOICES, lambda choice, left, names: OLLAMA.of_another(
        {"tools": TOOLS, "tool_choice": choice}, {"tools": declared(left)}, [("metadata" if name == "x" else "tool_choice", name) for name in names]
    )),
    **rows("a call that is demanded", [(), ("g",), ("f", "g")], lambda *names: OLLAMA.unwritable(
        {"tools": TOOLS, "tool_choice": ToolChoice("required", names)}, "tool_choice", "cannot be required to call a tool"
    )),
    **rows("it is imitated", [(), ("g",), ("f", "g")], lambda *names: OLLAMA.of_another(
        {"tools": TOOLS, "tool_choice": ToolChoice("required", names)}, {"tools": declared(names or "fg")}, {"tool_choice": 1},
        target={"emulate": True},
    )),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_a_request(name):
    OLLAMA.check(ROWS[name])


@pytest.mark.parametrize(("calls", "results", "ids"), PAIRED)
def test_results_without_an_id_are_paired_by_name_and_order(calls, results, ids):
    request = OLLAMA.read(**history(calls, *results))
    assert [part.call_id for part in request.turns[1].parts if isinstance(part, ToolResult)] == ids
