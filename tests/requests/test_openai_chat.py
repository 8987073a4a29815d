"""Requests of OpenAI Chat: read, written, and read from and written for others.

Source: dialects.md §1.3, §1.6, §7.3, §7.4; seeds.md S2, S3.
"""

from __future__ import annotations

import json
from functools import reduce
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
from streamkit.dialects.vocabulary.sealed_reasoning import seal
from streamkit.errors import BadRequest
from streamkit.events import Aside, Opaque
from streamkit.text.identifiers import portable_id, portable_name
from streamkit.translation.bodies import decode_request, decode_response, encode_request
from tests.requests.rows import HI, Counts, Dialect, Members, Row, by_model, by_system, by_user, parameters, rows

PNG = "iVBORw0KGgo="
SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
SAID = {"role": "user", "content": "hi"}

CHAT = Dialect(
    "openai-chat",
    {"model": "m", "messages": [SAID]},
    Request("openai-chat", "m", [HI]),
    Request("anthropic", "m", [HI]),
    {"linked_media": "drop"},
)


def function(call_id: str = "call_1", name: str = "look", arguments: str = '{"q":1.0}', **more: Any) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}, **more}


def said(*parts: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": list(parts)}]


def calling(message: dict[str, Any], *ids: str) -> list[dict[str, Any]]:
    """A message that calls, and the results that its calls need."""
    results = [{"role": "tool", "tool_call_id": call_id, "content": "done"} for call_id in ids or ("call_1",)]
    return [{"role": "assistant", "content": None, **message}, *results]


def answered(*parts: Any, ids: tuple[str, ...] = ("call_1",), **more: Any) -> list[Turn]:
    return [Turn("assistant", list(parts), **more), Turn("user", [ToolResult(i, [Text("done")]) for i in ids])]


CALL = ToolCall(0, "call_1", "look", '{"q":1.0}')

#: What messages say, both ways.
MESSAGES: dict[str, tuple[list[dict[str, Any]], list[Turn]]] = {
    "text": ([{"role": "user", "content": "hi"}], [by_user(Text("hi"))]),
    "no text": ([{"role": "user", "content": ""}], [by_user()]),
    "names": ([{"role": "user", "content": "hi", "name": "ann"}], [by_user(Text("hi"), name="ann")]),
    "system": ([{"role": "system", "content": "be"}], [by_system(Text("be"))]),
    "developer": ([{"role": "developer", "content": "be"}], [by_system(Text("be"), native_role="developer")]),
    "several texts": (
        [{"role": "system", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}], [by_system(Text("a"), Text("b"))],
    ),
    "system in the middle": (
        [{"role": "user", "content": "a"}, {"role": "system", "content": "b"}, {"role": "user", "content": "c"}],
        [by_user(Text("a")), by_system(Text("b")), by_user(Text("c"))],
    ),
    "a mark": (
        said({"type": "text", "text": "a", "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "12h"}}),
        [by_user(Text("a", cache="long"))],
    ),
    "image at a URL": (
        said({"type": "image_url", "image_url": {"url": "https://x.test/a.png", "detail": "low"}}),
        [by_user(Media("image", url="https://x.test/a.png", detail="low"))],
    ),
    "image as data": (
        said({"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}),
        [by_user(Text("see"), Media("image", "image/png", PNG))],
    ),
    "audio": (
        said({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}}), [by_user(Media("audio", "audio/mpeg", "AAAA"))],
    ),
    "audio of another kind": (
        said({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "flac"}}), [by_user(Media("audio", "audio/flac", "AAAA"))],
    ),
    "file as data": (
        said({"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBERi0=", "filename": "a.pdf"}}),
        [by_user(Media("file", "application/pdf", "JVBERi0=", name="a.pdf"))],
    ),
    "file as bare base64": (
        said({"type": "file", "file": {"file_data": "JVBERi0=", "filename": "a.pdf"}}),
        [by_user(Media("file", None, "JVBERi0=", name="a.pdf"))],
    ),
    "file by its id": (said({"type": "file", "file": {"file_id": "f"}}), [by_user(Media("file", file_id="f"))]),
    "an unknown part": (said({"type": "hologram", "hologram": {"url": "u"}}), [by_user(Aside(
        "openai", "unknown_event", "content.hologram", {"type": "hologram", "hologram": {"url": "u"}},
    ))]),
    "members nobody knows, at every depth": (
        [{
            "role": "user",
            "content": [
                {"type": "text", "text": "a", "x": 1}, {"type": "image_url", "image_url": {"url": "https://x.test", "y": 2}, "z": 3},
            ],
            "cache_control": {"type": "ephemeral"},
        }],
        [by_user(
            Text("a", extras={"x": 1}), Media("image", url="https://x.test", extras={"image_url": {"y": 2}, "z": 3}),
            extras={"cache_control": {"type": "ephemeral"}},
        )],
    ),
    "assistant": ([{"role": "assistant", "content": "yes"}], [by_model(Text("yes"))]),
    "a refusal": ([{"role": "assistant", "content": None, "refusal": "no"}], [by_model(Refusal("no"))]),
    "audio of an answer": ([{"role": "assistant", "content": None, "audio": {"id": "a"}}], [by_model(Aside(
        "openai", "audio", "audio", {"id": "a"},
    ))]),
    "parts that only an assistant has": (
        [{"role": "assistant", "content": [{"type": "refusal", "refusal": "no", "x": 1}, {"type": "thinking", "thinking": "hm"}]}],
        [by_model(Refusal("no", {"x": 1}), Aside("openai", "unknown_event", "content.thinking", {"type": "thinking", "thinking": "hm"}))],
    ),
    "annotations": (
        [{"role": "assistant", "content": "see", "annotations": [{"type": "url_citation"}]}],
        [by_model(Text("see"), Aside("openai", "citation", "annotation", {"type": "url_citation"}))],
    ),
    "calls and results": (
        [
            {"role": "assistant", "content": "wait", "tool_calls": [function(), function("call_2", "look", "{}")]},
            {"role": "tool", "tool_call_id": "call_1", "content": "one"},
            {"role": "tool", "tool_call_id": "call_2", "content": [{"type": "text", "text": "t"}] * 2, "name": "look"},
            {"role": "user", "content": "go on"},
        ],
        [
            by_model(Text("wait"), CALL, ToolCall(1, "call_2", "look", "{}")),
            by_user(ToolResult("call_1", [Text("one")]), ToolResult("call_2", [Text("t"), Text("t")], "look")), by_user(Text("go on")),
        ],
    ),
    "an image in a result": (
        [
            {"role": "assistant", "content": None, "tool_calls": [function()]},
            {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "image_url", "image_url": {"url": "https://x.test/a.png"}}]},
        ],
        [by_model(CALL), by_user(ToolResult("call_1", [Media("image", url="https://x.test/a.png")]))],
    ),
    "two rounds of calls": (
        [*calling({"tool_calls": [function()]}), *calling({"tool_calls": [function("call_2")]}, "call_2")],
        [*answered(CALL), *answered(ToolCall(0, "call_2", "look", '{"q":1.0}'), ids=("call_2",))],
    ),
    "a custom call": (
        calling({"tool_calls": [{"id": "call_1", "type": "custom", "custom": {"name": "run", "input": "1 + 1"}}]}),
        [by_model(ToolCall(0, "call_1", "run", "1 + 1", "custom")), by_user(ToolResult("call_1", [Text("done")], kind="custom"))],
    ),
    "arguments that are no object": (calling({"tool_calls": [function(arguments='{"q": oops')]}), answered(ToolCall(
        0, "call_1", "look", '{"q": oops',
    ))),
    "a call with more": (
        calling({"tool_calls": [function(index=0, extra_content={"google": {"thought_signature": "S"}})]}),
        answered(ToolCall(0, "call_1", "look", '{"q":1.0}', signature=Opaque("google", "S"), extras={"index": 0})),
    ),
    "a signature of the text": (
        [{"role": "assistant", "content": "a", "extra_content": {"google": {"thought_signature": "S"}}}],
        [by_model(Text("a", Opaque("google", "S")))],
    ),
    "reasoning_content": (calling({"reasoning_content": "hm", "tool_calls": [function()]}), answered(Reasoning("hm"), CALL)),
    "empty reasoning_content": (calling({"reasoning_content": "", "tool_calls": [function()]}), answered(
        CALL, extras={"reasoning_content": ""},
    )),
    "reasoning": ([{"role": "assistant", "content": "a", "reasoning": "hm"}], [by_model(Reasoning("hm"), Text("a"))]),
    "reasoning_details": (
        [{"role": "assistant", "content": "a", "reasoning_details": [
            {"type": "reasoning.text", "text": "h", "signature": "S", "format": "anthropic-claude-v1", "index": 0},
            {"type": "reasoning.summary", "summary": "m", "format": "openai-responses-v1", "index": 1},
            {"type": "reasoning.encrypted", "data": "D", "format": "openai-responses-v1", "id": "rs_1", "index": 1},
            {"type": "reasoning.server", "index": 3}, {"type": "reasoning.text", "text": "?", "format": "unknown", "index": 4},
        ]}],
        [by_model(
            Reasoning("h", signature=Opaque("anthropic", "S")), Reasoning("m", "summary", extras={"format": "openai-responses-v1"}),
            RedactedReasoning(Opaque("openai", "D"), extras={"index": 1, "id": "rs_1"}),
            Aside("openai", "unknown_event", "reasoning_details.reasoning.server", {"type": "reasoning.server", "index": 3}),
            Reasoning("?", extras={"format": "unknown"}), Text("a"),
        )],
    ),
    "a detail that signs a call": (
        calling({
            "reasoning_details": [{"type": "reasoning.encrypted", "data": "D", "format": "google-gemini-v1", "id": "call_1", "index": 0}],
            "tool_calls": [function()],
        }),
        answered(ToolCall(0, "call_1", "look", '{"q":1.0}', signature=Opaque("google", "D"))),
    ),
}  # fmt: skip

SIGNATURE_ALONE = {"type": "reasoning.text", "signature": "S", "format": "anthropic-claude-v1", "index": 0}

#: Of the second, the signature is a block of its own; of the third, nobody knows which part of the text each of the two proves.
SIGNED_ALONE = [
    ([SIGNATURE_ALONE], [Reasoning("hm", signature=Opaque("anthropic", "S"))]),
    ([SIGNATURE_ALONE | {"index": 1}], [Reasoning("hm"), Reasoning("", signature=Opaque("anthropic", "S"), extras={"index": 1})]),
    ([SIGNATURE_ALONE, SIGNATURE_ALONE | {"index": 1}], [Reasoning("hm"), *[Reasoning("", signature=Opaque("anthropic", "S"))] * 2]),
]  # fmt: skip

#: What a message becomes on the way through: the documented normalisation.
NORMAL: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {
    "one text in a list": (said({"type": "text", "text": "a"}), [{"role": "user", "content": "a"}]),
    "an empty list": (said(), [{"role": "user", "content": ""}]),
    "content is not said": (
        [{"role": "assistant", "tool_calls": [function()]}, {"role": "tool", "tool_call_id": "call_1", "content": "d"}],
        calling({"tool_calls": [function()]})[:1] + [{"role": "tool", "tool_call_id": "call_1", "content": "d"}],
    ),
    "no text beside a call": (calling({"content": "", "tool_calls": [function()]}), calling({"tool_calls": [function()]})),
    "no arguments": (calling({"tool_calls": [function(arguments="")]}), calling({"tool_calls": [function(arguments="{}")]})),
    "null members": (
        [{"role": "assistant", "content": "a", "refusal": None, "audio": None, "function_call": None}],
        [{"role": "assistant", "content": "a"}],
    ),
    "a refusal as a part": (
        [{"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}],
        [{"role": "assistant", "content": None, "refusal": "no"}],
    ),
    "the span of a mark": (
        said({"type": "text", "text": "a", "prompt_cache_breakpoint": {"mode": "explicit"}}),
        said({"type": "text", "text": "a", "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "30m"}}),
    ),
    "reasoning beside details that say the same": (
        [{"role": "assistant", "content": "a", "reasoning": "hm", "reasoning_details": [{
            "type": "reasoning.text", "text": "hm", "index": 0,
        }]}],
        [{"role": "assistant", "content": "a", "reasoning_details": [{"type": "reasoning.text", "text": "hm", "index": 0}]}],
    ),
    "the older function_call": (
        [
            {"role": "user", "content": "?"}, {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": "{}"}},
            {"role": "function", "name": "look", "content": "found"},
        ],
        [
            {"role": "user", "content": "?"},
            {"role": "assistant", "content": None, "tool_calls": [function("function_call_1", "look", "{}")]},
            {"role": "tool", "tool_call_id": "function_call_1", "name": "look", "content": "found"},
        ],
    ),
}  # fmt: skip

LOOKED = function("a", "look", "{}")
TWIN = {
    "role": "assistant",
    "content": None,
    "function_call": {"name": "look", "arguments": "{}"},
    "tool_calls": [LOOKED],
}
FOUND = {"role": "tool", "tool_call_id": "a", "name": "look", "content": "found"}
OLDER = {"role": "function", "name": "look", "content": "found"}

TOOLS = [
    {"type": "function", "function": {"name": "look", "description": "d", "parameters": SCHEMA, "strict": True}},
    {"type": "function", "function": {"name": "now"}},
    {"type": "custom", "custom": {"name": "run", "description": "d", "format": {"type": "text"}}},
    {"type": "custom", "custom": {"name": "calc", "format": {"type": "grammar", "grammar": {
        "syntax": "lark", "definition": "start: NUMBER",
    }}}},
]  # fmt: skip
NEUTRAL_TOOLS = [
    Tool("look", "d", SCHEMA, True),
    Tool("now"),
    Tool("run", "d", kind="custom", format={"type": "text"}),
    Tool("calc", kind="custom", format={"type": "grammar", "syntax": "lark", "definition": "start: NUMBER"}),
]  # fmt: skip
ALLOWED = [{"type": "function", "function": {"name": "look"}}, {"type": "custom", "custom": {"name": "run"}}]

#: What other members say, both ways.
MEMBERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "options": (
        {
            "temperature": 0.5, "top_p": 1, "top_k": 4, "stop": ["a", "b"], "seed": 7, "presence_penalty": 0.1, "frequency_penalty": -0.1,
            "n": 2, "logprobs": True, "top_logprobs": 3, "service_tier": "flex", "user": "u",
        },
        {"options": Options(
            temperature=0.5, top_p=1, top_k=4, stop=("a", "b"), seed=7, presence_penalty=0.1, frequency_penalty=-0.1, choices=2,
            logprobs=True, top_logprobs=3, service_tier="flex", user="u",
        )},
    ),
    "max_tokens": ({"max_tokens": 5}, {"options": Options(max_tokens=5)}),
    "max_completion_tokens": ({"max_completion_tokens": 5}, {"options": Options(max_tokens=5)}),
    "effort": ({"reasoning_effort": "low"}, {"options": Options(thinking=Thinking("low"))}),
    "reasoning": (
        {"reasoning": {"effort": "low", "max_tokens": 9, "enabled": True, "exclude": True}},
        {"options": Options(thinking=Thinking("low", 9, True, "none"))},
    ),
    "text": ({"response_format": {"type": "text"}}, {"options": Options(output=OutputFormat("text"))}),
    "json": ({"response_format": {"type": "json_object"}}, {"options": Options(output=OutputFormat("json"))}),
    "schema": (
        {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "description": "d", "schema": SCHEMA, "strict": True}}},
        {"options": Options(output=OutputFormat("schema", SCHEMA, "n", "d", True))},
    ),
    "a format of another provider": ({"response_format": {"type": "grammar", "value": "g"}}, {"extras": {"response_format": {
        "type": "grammar", "value": "g",
    }}}),
    "streaming": (
        {"stream": True, "stream_options": {"include_usage": True, "include_obfuscation": False}},
        {"stream": True, "stream_usage": True, "extras": {"stream_options": {"include_obfuscation": False}}},
    ),
    "tools": ({"tools": TOOLS}, {"tools": NEUTRAL_TOOLS}),
    "a tool with more": (
        {"tools": [{"type": "function", "function": {"name": "a", "x": 1}, "cache_control": {"type": "ephemeral"}}]},
        {"tools": [Tool("a", extras={"cache_control": {"type": "ephemeral"}, "function": {"x": 1}})]},
    ),
    "a tool that the provider runs": ({"tools": [{"type": "web_search", "depth": 2}]}, {"tools": [Tool("web_search", kind="server", raw={
        "type": "web_search", "depth": 2,
    })]}),
    "choice auto": ({"tool_choice": "auto"}, {"tool_choice": ToolChoice("auto")}),
    "choice none": ({"tool_choice": "none"}, {"tool_choice": ToolChoice("none")}),
    "choice required": ({"tool_choice": "required"}, {"tool_choice": ToolChoice("required")}),
    "choice of one": (
        {"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "look"}}},
        {"tools": NEUTRAL_TOOLS, "tool_choice": ToolChoice("required", ("look",))},
    ),
    "choice of a custom one": (
        {"tools": TOOLS, "tool_choice": {"type": "custom", "custom": {"name": "run"}}},
        {"tools": NEUTRAL_TOOLS, "tool_choice": ToolChoice("required", ("run",))},
    ),
    "choice of some": (
        {"tools": TOOLS, "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": ALLOWED}}},
        {"tools": NEUTRAL_TOOLS, "tool_choice": ToolChoice("required", ("look", "run"))},
    ),
    "some or none": (
        {"tools": TOOLS, "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": ALLOWED[:1]}}},
        {"tools": NEUTRAL_TOOLS, "tool_choice": ToolChoice("auto", ("look",))},
    ),
    "a choice of another provider": ({"tool_choice": {"type": "openrouter:web_search"}}, {"tool_choice": ToolChoice(
        "required", ("openrouter:web_search",),
    )}),
    "one call at a time": ({"parallel_tool_calls": False}, {"tool_choice": ToolChoice(parallel=False)}),
    "a choice, one call at a time": ({"tool_choice": "required", "parallel_tool_calls": False}, {"tool_choice": ToolChoice(
        "required", parallel=False,
    )}),
    "members nobody knows": (
        {"logit_bias": {"5": -100}, "verbosity": "low", "usage": {"include": True}},
        {"extras": {"logit_bias": {"5": -100}, "verbosity": "low", "usage": {"include": True}}},
    ),
}  # fmt: skip

ALIKE_MEMBERS = [
    ({"stop": "a"}, {"stop": ["a"]}),
    ({"tool_choice": "auto", "parallel_tool_calls": True}, {"parallel_tool_calls": True}),
    (
        {"tools": TOOLS, "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": ALLOWED[:1]}}},
        {"tools": TOOLS, "tool_choice": ALLOWED[0]},
    ),
    (
        {"functions": [{"name": "look", "parameters": SCHEMA}], "function_call": {"name": "look"}},
        {"tools": [{"type": "function", "function": {"name": "look", "parameters": SCHEMA}}], "tool_choice": ALLOWED[0]},
    ),
    ({"functions": [], "function_call": "none"}, {"tool_choice": "none"}),
    ({"temperature": None, "tools": None, "tool_choice": None, "stop": None}, {}),
]  # fmt: skip


# -- requests that can't be --------------------------------------------------------------------------------------------

BAD: list[tuple[dict[str, Any], str, str]] = [
    ({"messages": ...}, "messages", "must be a list"),
    ({"messages": "hi"}, "messages", "must be a list, not a string"),
    ({"messages": ["hi"]}, "messages[0]", "must be an object, not a string"),
    ({"messages": [{}]}, "messages[0].role", "must be a string"),
    ({"messages": [{"role": "bot"}]}, "messages[0].role", "unknown role 'bot'"),
    ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content", "must be a string or a list of objects, not an integer"),
    ({"messages": said({})}, "messages[0].content[0].type", "must be a string"),
    ({"messages": said({"type": "text"})}, "messages[0].content[0].text", "must be a string"),
    ({"messages": said({"type": "image_url"})}, "messages[0].content[0].image_url", "must be an object"),
    (
        {"messages": said({"type": "image_url", "image_url": {"url": "data:image/png,abc"}})}, "messages[0].content[0].image_url.url",
        "base64",
    ),
    (
        {"messages": said({"type": "image_url", "image_url": {"url": "data:image/png;base64,a?c"}})},
        "messages[0].content[0].image_url.url", "must be base64: ",
    ),
    ({"messages": said({"type": "file", "file": {"file_data": "data:x"}})}, "messages[0].content[0].file.file_data", "base64"),
    (
        {"messages": said({"type": "text", "text": "a", "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "1h"}})},
        "messages[0].content[0].prompt_cache_breakpoint.ttl", "'1h'",
    ),
    (
        {"messages": said({"type": "text", "text": "a", "prompt_cache_breakpoint": {}})},
        "messages[0].content[0].prompt_cache_breakpoint.mode", "'explicit'",
    ),
    (
        {"messages": [{"role": "assistant", "tool_calls": [{"id": "c", "function": {}}]}]}, "messages[0].tool_calls[0].function.name",
        "must be a string",
    ),
    ({"messages": [{"role": "assistant", "tool_calls": [{"id": "c", "type": "magic"}]}]}, "messages[0].tool_calls[0].type", "'magic'"),
    (
        {"messages": [{"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": {}}}]}]},
        "messages[0].tool_calls[0].function.arguments", "must be a string, not an object",
    ),
    (
        {"messages": [{"role": "tool", "tool_call_id": "c", "content": [{"type": "refusal", "refusal": "no"}]}]}, "messages[0].content[0]",
        "must not contain a refusal",
    ),
    ({"messages": [{"role": "function", "content": "a"}]}, "messages[0].name", "must be a string"),
    ({"temperature": "hot"}, "temperature", "must be a number, not a string"),
    ({"n": 1.5}, "n", "must be an integer"),
    ({"stop": ["a", 5]}, "stop[1]", "must be a string"),
    ({"stream": "yes"}, "stream", "must be a boolean"),
    ({"tools": [{"function": {"name": "f"}}]}, "tools[0].type", "must be a string"),
    ({"tools": [{"type": "function"}]}, "tools[0].function", "must be an object"),
    (
        {"tools": [{"type": "function", "function": {"name": "f", "parameters": "p"}}]}, "tools[0].function.parameters",
        "must be an object",
    ),
    ({"tool_choice": "any"}, "tool_choice", "'any'"),
    ({"tool_choice": {"type": "function"}}, "tool_choice.function", "must be an object"),
    (
        {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto"}}}, "tool_choice.allowed_tools.tools",
        "must be a list",
    ),
    ({"response_format": "json"}, "response_format", "must be an object"),
    ({"response_format": {"type": "json_schema"}}, "response_format.json_schema", "must be an object"),
]  # fmt: skip


@pytest.mark.parametrize("text", [b"", b"<html>", b"[]", b'"a"', b"null"])
def test_a_body_that_is_no_object_is_refused(text):
    with pytest.raises(BadRequest):
        decode_request(text, "openai-chat")


# -- from other dialects -----------------------------------------------------------------------------------------------


#: Turns of another dialect: the messages, the losses, the repairs.
FOREIGN: dict[str, tuple[list[Turn], list[dict[str, Any]], dict[str, int], dict[str, int]]] = {
    "results, then text": (
        [by_model(Text("wait"), CALL, ToolCall(1, "call_2", "look", "")), by_user(
            ToolResult("call_1", [Text("a")]), ToolResult("call_2", [Text("b")]), Text("go on"),
        )],
        [
            {"role": "assistant", "content": "wait", "tool_calls": [function(), function("call_2", "look", "{}")]},
            {"role": "tool", "tool_call_id": "call_1", "content": "a"}, {"role": "tool", "tool_call_id": "call_2", "content": "b"},
            {"role": "user", "content": "go on"},
        ],
        {}, {},
    ),
    "text before the results": (
        [by_model(CALL), by_user(Text("so"), ToolResult("call_1", [Text("done")]))],
        [*calling({"tool_calls": [function()]}), {"role": "user", "content": "so"}], {}, {"result_moved": 1},
    ),
    "an error": (
        [by_model(CALL), by_user(ToolResult("call_1", [Text("no file")], is_error=True))],
        [*calling({"tool_calls": [function()]})[:1], {"role": "tool", "tool_call_id": "call_1", "content": "Error: no file"}],
        {"result_error": 1}, {},
    ),
    "an error without words": (
        [by_model(CALL), by_user(ToolResult("call_1", [], is_error=True))],
        [*calling({"tool_calls": [function()]})[:1], {"role": "tool", "tool_call_id": "call_1", "content": "Error: "}], {"result_error": 1},
        {},
    ),
    "images in results": (
        [by_model(CALL, ToolCall(1, "call_2", "look", "{}")), by_user(
            ToolResult("call_1", [Text("see"), Media("image", "image/png", PNG)]),
            ToolResult("call_2", [Media("image", url="https://x.test/b.png")]), Text("which?"),
        )],
        [
            {"role": "assistant", "content": None, "tool_calls": [function(), function("call_2", "look", "{}")]},
            {"role": "tool", "tool_call_id": "call_1", "content": "see"}, {"role": "tool", "tool_call_id": "call_2", "content": ""},
            said({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}, {"type": "image_url", "image_url": {"url": "https://x.test/b.png"}}, {"type": "text", "text": "which?"})[0],
        ],
        {"media": 2}, {},
    ),
    "media that Chat does not have": (
        [by_user(
            Text("see"), Media("video", "video/mp4", "AAAA"), Media("image", url="gs://bucket/a.png"), Media("image", file_id="file_1"),
            Media("file", url="https://x.test/a.pdf"), Media("file", file_id="file_1"), Media("audio", "audio/flac", "AAAA"),
        )],
        [{"role": "user", "content": "see"}], {"media": 6}, {},
    ),
    "an image of which nobody said the type": (
        [by_user(Media("image", data=PNG))], said({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}), {}, {},
    ),
    "marks": (
        [by_user(Text("a", cache="short"))],
        said({"type": "text", "text": "a", "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "30m"}}), {"cache_mark": 1}, {},
    ),
    "reasoning": (
        answered(Reasoning("hm", signature=Opaque("anthropic", "S")), RedactedReasoning(Opaque("anthropic", "D")), CALL),
        calling({"tool_calls": [function()]}), {"reasoning_history": 1, "reasoning_signature": 1, "reasoning_opaque": 1}, {},
    ),
    "a signed call": (
        answered(ToolCall(0, "call_1", "look", '{"q":1.0}', signature=Opaque("google", "S"))), calling({"tool_calls": [function()]}),
        {"reasoning_signature": 1}, {},
    ),
    "text behind a call": (answered(CALL, Text("so")), calling({"content": "so", "tool_calls": [function()]}), {"block_order": 1}, {}),
    "what only the other dialect knows": (
        [by_user(
            Text("a", extras={"citations": {"enabled": True}, "x": None}), Aside("anthropic", "server_tool", "s", {}), extras={"y": 1},
        )],
        [{"role": "user", "content": "a"}], {"metadata": 2, "server_tool": 1}, {},
    ),
    "an id and a name that are too long": (
        [by_model(ToolCall(0, "i" * 65, "a.b", "{}")), by_user(ToolResult("i" * 65, [Text("done")]))],
        [
            {"role": "assistant", "content": None, "tool_calls": [function(portable_id("i" * 65), portable_name("a.b"), "{}")]},
            {"role": "tool", "tool_call_id": portable_id("i" * 65), "content": "done"},
        ],
        {}, {"id_rewritten": 1, "name_rewritten": 1},
    ),
}  # fmt: skip


# -- providers ---------------------------------------------------------------------------------------------------------


BOUNDS = [
    ("openai-chat", "max_tokens"),
    ("openai", "max_completion_tokens"),
    ("azure", "max_completion_tokens"),
    ("deepseek", "max_tokens"),
    ("groq", "max_tokens"),
]  # fmt: skip

THOUGHT = [Reasoning("hm", signature=Opaque("anthropic", "S")), RedactedReasoning(Opaque("bedrock", "D"))]
DETAIL = {"type": "reasoning.text", "text": "hm", "signature": "S", "format": "anthropic-claude-v1", "index": 0}

REASONING = [
    ("openai", {}, {"reasoning_history": 1, "reasoning_signature": 1, "reasoning_opaque": 1}),
    ("deepseek", {"reasoning_content": "hm"}, {"reasoning_signature": 1, "reasoning_opaque": 1}),
    ("moonshot", {"reasoning_content": "hm"}, {"reasoning_signature": 1, "reasoning_opaque": 1}),
    ("ollama-v1", {"reasoning": "hm"}, {"reasoning_signature": 1, "reasoning_opaque": 1}),
    ("openrouter", {"reasoning_details": [DETAIL]}, {"reasoning_opaque": 1}),
]  # fmt: skip


# -- the second leg ----------------------------------------------------------------------------------------------------


def test_what_was_said_goes_back_as_the_second_leg():
    """seeds.md S3: the parts of a response are the turn of the next request."""
    call = {**function(), "extra_content": {"google": {"thought_signature": "S"}}}
    beside = {"audio": {"id": "a", "data": "AA"}, "annotations": [{"type": "url_citation"}], "executed_tools": [1]}
    message = {"role": "assistant", "content": None, "reasoning_content": "hm", "tool_calls": [call], **beside}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls", "logprobs": {"content": [1]}}
    answer = decode_response(json.dumps({"id": "i", "choices": [choice]}).encode(), "openai-chat")
    request = CHAT.read()
    request.turns += [
        Turn("assistant", answer.choices[0].parts),
        Turn("user", [ToolResult(each.id, [Text("done")]) for each in answer.tool_calls]),
    ]
    written, report = CHAT.write(request)
    assert written["messages"][1:] == [
        {**message, "audio": {"id": "a"}},
        {"role": "tool", "tool_call_id": "call_1", "content": "done"},
    ]
    assert report.losses == {"logprobs": 1}


def test_a_call_is_no_content():
    with pytest.raises(TypeError, match="content can't contain a Reasoning"):
        CHAT.write(evolve(CHAT.foreign, turns=[by_user(Reasoning("hm"))]))


# -- the recordings, and the official client ---------------------------------------------------------------------------


def test_the_official_client_sends_it(client, replay):
    answer = {"id": "i", "object": "chat.completion", "created": 1, "model": "m", "choices": []}
    turns, tools = answered(Text("wait"), CALL), [Tool("look", None, SCHEMA)]
    written, _ = CHAT.write(evolve(CHAT.foreign, turns=turns, tools=tools, options=Options(max_tokens=5)))
    written["model"] = replay.register(json.dumps(answer).encode(), "application/json")
    client("openai").chat.completions.create(**written)
    assert json.loads(replay.asked[written["model"]]) == written


BLOCK = {"type": "thinking", "thinking": "Look", "signature": "c2ln"}
SUMMARY = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Look", "signature": "c2ln"}]}
#: Members of a message that say the same reasoning, the vendor that signed it, and what is written of them.
NAMES = {
    "copilot": ({"content": "Hi", "reasoning_text": "Look", "reasoning_opaque": "c2ln"}, "copilot", {}),
    "its other models": ({"content": "Hi", "cot_summary": "Look", "cot_id": "c2ln"}, "copilot", {}),
    "anthropic's names": ({"content": "Hi", "thinking": "Look", "signature": "c2ln"}, "anthropic", {}),
    "litellm": ({"content": "Hi", "reasoning_content": "Look", "thinking_blocks": [BLOCK]}, "anthropic", {"reasoning_content": None}),
    "litellm, held": (
        {"content": "Hi", "provider_specific_fields": {"citations": None, "thinking_blocks": [BLOCK]}}, "anthropic",
        {"provider_specific_fields": None, "thinking_blocks": [BLOCK]},
    ),
    "databricks": ({"content": [SUMMARY, {"type": "text", "text": "Hi"}]}, "anthropic", {}),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_reasoning_under_every_name_goes_back_as_it_came(name):
    said, vendor, changed = NAMES[name]
    body = {
        "model": "m",
        "messages": [
            {"role": "user", "content": "Go"},
            {"role": "assistant", **said},
            {"role": "user", "content": "On"},
        ],
    }
    request = decode_request(json.dumps(body).encode(), "openai-chat")
    assert request.turns[1].parts == [Reasoning("Look", signature=Opaque(vendor, "c2ln")), Text("Hi")]
    back = json.loads(encode_request(request, "openai-chat"))["messages"][1]
    assert back == {
        name: value for name, value in {"role": "assistant", **said, **changed}.items() if value is not None
    }
    claude = json.loads(encode_request(request, "anthropic"))["messages"][1]["content"]
    assert claude == ([BLOCK, {"type": "text", "text": "Hi"}] if vendor == "anthropic" else "Hi")


def test_what_only_copilot_reads_goes_back_to_it_from_a_client_of_another_dialect():
    sealed = seal("reasoning", "copilot", "c2ln")
    said = [{"type": "thinking", "thinking": "Look", "signature": sealed}, {"type": "text", "text": "Hi"}]
    body = {
        "model": "m",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "Go"}, {"role": "assistant", "content": said}],
    }
    request = decode_request(json.dumps(body).encode(), "anthropic")
    message = json.loads(encode_request(request, "github-copilot"))["messages"][1]
    assert message == {"role": "assistant", "content": "Hi", "reasoning_text": "Look", "reasoning_opaque": "c2ln"}


# -- all rows ----------------------------------------------------------------------------------------------------------


def for_provider(to: str, turns: list[Turn], message: Members, losses: Counts = (), **more: Any) -> Row:
    """What the first message of the model is for a provider."""
    message = {"role": "assistant", "content": None, "tool_calls": [function()], **message}
    return CHAT.of_another(
        {"turns": turns}, None, losses or {}, at={"messages[0]": message}, to=to, typed=False, **more
    )


SIGNED = ToolCall(0, "call_1", "look", '{"q":1.0}', signature=Opaque("google", "S"))
MARKED = said({"type": "text", "text": "a", "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "12h"}})
CALLED = {"role": "assistant", "content": None, "tool_calls": [LOOKED]}

ROWS = {
    **rows("messages", MESSAGES, lambda messages, turns: CHAT.kept({"messages": messages}, turns=turns)),
    **rows("alike", NORMAL, lambda messages, written: CHAT.alike({"messages": messages}, {"messages": written})),
    **rows("members", MEMBERS, lambda members, read: CHAT.kept(members, **read)),
    **rows("members alike", ALIKE_MEMBERS, CHAT.alike),
    **rows("bad", BAD, CHAT.refused),
    # openai-python joins `reasoning_content` over the deltas, and lists the details that came (dialects.md §1.6, §7.4)
    **rows("a signature alone", SIGNED_ALONE, lambda details, reasoning: CHAT.means(
        {"messages": [{"role": "assistant", "content": "a", "reasoning_content": "hm", "reasoning_details": details}]},
        turns=[by_model(*reasoning, Text("a"))],
    )),
    # as a client keeps what llama-cpp-python answered: the call and its result would stand twice
    **rows("said twice", [([FOUND], 1), ([OLDER], 1), ([FOUND, OLDER], 2)], lambda answers, times: CHAT.alike(
        {"messages": [SAID, TWIN, *answers]}, {"messages": [SAID, CALLED, FOUND]}, repairs={"said_twice": times}
    )),
    "two calls in two members": CHAT.means(
        {"messages": [{**TWIN, "function_call": {"name": "open", "arguments": "{}"}}]},
        turns=[by_model(ToolCall(0, "a", "look", "{}"), ToolCall(1, "function_call_0", "open", "{}"))],
    ),
    **rows("turns", FOREIGN, lambda turns, messages, *counts: CHAT.of_another(
        {"turns": turns, "model": "gpt-5.6-sol"}, {"messages": messages, "model": "gpt-5.6-sol"}, *counts
    )),
    "members of another dialect": CHAT.of_another(
        {
            "tools": [
                Tool("look", "d", SCHEMA, cache="short"), Tool("web", kind="server", raw={"type": "web_search"}),
                Tool("run", kind="custom", format={"type": "grammar", "syntax": "regex", "definition": ".*"}),
            ],
            "tool_choice": ToolChoice("required", ("look",), parallel=False),
            "options": Options(
                5, 0.5, top_k=4, stop=("x",), thinking=Thinking("high", 9, True, "auto"), output=OutputFormat("schema", SCHEMA)
            ),
            "stream": True, "stream_usage": True, "extras": {"metadata": {"a": 1}, "container": "c"},
        },
        {
            "tools": [
                {"type": "function", "function": {"name": "look", "description": "d", "parameters": SCHEMA}},
                {"type": "custom", "custom": {
                    "name": "run", "format": {"type": "grammar", "grammar": {"syntax": "regex", "definition": ".*"}}
                }},
            ],
            "tool_choice": {"type": "function", "function": {"name": "look"}}, "parallel_tool_calls": False, "max_completion_tokens": 5,
            "temperature": 0.5, "stop": ["x"], "reasoning_effort": "high", "stream": True, "stream_options": {"include_usage": True},
            "response_format": {"type": "json_schema", "json_schema": {"name": "response", "schema": SCHEMA}},
        },
        [
            ("cache_mark", "look"), ("tool_definition", "web"),
            *parameters("thinking.budget_tokens", "thinking.summary", "top_k", "metadata", "container"),
        ],
    ),
    **rows("bound", BOUNDS, lambda to, member: CHAT.alike({"max_tokens": 5}, {member: 5}, to=to)),
    **rows("reasoning", REASONING, lambda to, message, losses: for_provider(to, answered(*THOUGHT, CALL), message, losses)),
    # a provider that needs reasoning next to calls gets it empty
    **rows("no reasoning", [("deepseek", {"reasoning_content": ""}), ("zhipu", {}), ("openai", {})], lambda to, message: for_provider(
        to, [*answered(CALL), by_model(Text("so"))], message
    )),
    "blocks of reasoning are one text": for_provider(
        "deepseek", answered(Reasoning("a"), Text("t"), Reasoning("b"), CALL), {"content": "t", "reasoning_content": "a\n\nb"},
        {"block_boundary": 1, "block_order": 1},
    ),
    "Google's signature": for_provider(
        "gemini-openai", answered(SIGNED), {"tool_calls": [function(extra_content={"google": {"thought_signature": "S"}})]}
    ),
    "Google's signature for another": for_provider("groq", answered(SIGNED), {}, {"reasoning_signature": 1}),
    "the signature of a call among the details": for_provider("openrouter", answered(Reasoning("hm"), SIGNED), {"reasoning_details": [
        {"type": "reasoning.text", "text": "hm", "index": 0},
        {"type": "reasoning.encrypted", "data": "S", "format": "google-gemini-v1", "id": "call_1", "index": 1},
    ]}),
    "a budget of thinking": CHAT.of_another(
        {"options": Options(thinking=Thinking("low", 9, True, "concise"))}, {"reasoning": {"max_tokens": 9, "enabled": True, "exclude": False}},
        parameters("thinking.summary", "thinking.effort"), to="openrouter", typed=False,
    ),
    "a detail that only its server knows, for OpenAI": CHAT.alike(
        {"messages": [{"role": "assistant", "content": "a", "reasoning_details": [{"type": "reasoning.server", "index": 3}]}]},
        {"messages": [{"role": "assistant", "content": "a"}]}, losses={"unknown_event": 1}, to="openai",
    ),
    "too deep": CHAT.refused({"x": reduce(lambda inner, _: [inner], range(201), {})}, "x", "nested deeper than 200 levels"),
    "a mark for OpenAI": CHAT.alike({"messages": MARKED}, {"messages": MARKED}, to="openai"),
    "a mark for another": CHAT.alike(
        {"messages": MARKED}, {"messages": [{"role": "user", "content": "a"}]}, losses={"cache_mark": 1}, to="groq"
    ),
    "parts of another vendor": CHAT.of_another(
        {
            "dialect": "openai-chat",
            "turns": [by_model(Aside("anthropic", "server_tool", "search", {}), Aside("openai", "unknown_event", "field", 5), Text("a"))],
        },
        {"messages": [{"role": "assistant", "content": "a"}]}, {"server_tool": 1, "unknown_event": 1},
    ),
    "one signature of the text": CHAT.of_another(
        {"turns": [by_model(Text("a", Opaque("google", "S")), Text("b", Opaque("google", "T")))]}, None, {"reasoning_signature": 1},
        at={"messages[0].extra_content": {"google": {"thought_signature": "T"}}}, to="gemini-openai", typed=False,
    ),
    "media of the model": CHAT.of_another(
        {"turns": [by_model(Media("image", "image/png", PNG))]}, {"messages": []}, {"media": 1}, {"turn_empty": 1}
    ),
}  # fmt: skip

#: Rows with something that OpenAI's own client does not let its user write.
BEYOND = {
    "members: a choice of another provider", "members: a format of another provider", "members: a tool that the provider runs",
    "members: a tool with more", "members: members nobody knows", "members: options", "members: reasoning", "messages: a call with more",
    "messages: a detail that signs a call", "messages: a signature of the text", "messages: an image in a result",
    "messages: an unknown part", "messages: annotations", "messages: audio of another kind", "messages: calls and results",
    "messages: empty reasoning_content", "messages: members nobody knows, at every depth", "messages: parts that only an assistant has",
    "messages: reasoning", "messages: reasoning_content", "messages: reasoning_details",
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_a_request(name):
    CHAT.check(ROWS[name], beyond=name in BEYOND)
