"""Requests of Anthropic: read, written, and read from and written for others.

Source: dialects.md §3.0, §3.2, §7.3, §7.4; seeds.md S2.
"""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from attrs import evolve

from streamkit.conversation.messages import (
    Media,
    Options,
    OutputFormat,
    Part,
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
from streamkit.dialects.anthropic.wire import AnthropicProvider
from streamkit.dialects.profiles import Target
from streamkit.dialects.vocabulary.sealed_reasoning import seal
from streamkit.errors import BadRequest
from streamkit.events import Aside, Opaque
from streamkit.report import StreamReport
from streamkit.text.identifiers import portable_id, portable_name
from streamkit.translation.bodies import decode_request
from streamkit.translation.lowering import lower
from tests.requests.rows import HI, Dialect, Members, Row, by_model, by_system, by_user, parameters, rows
from tests.requests.spoilt import spoilt

PNG, PDF = "iVBORw0KGgo=", "JVBERi0="
SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
CLOSED = {**SCHEMA, "additionalProperties": False}
MARK, LONG_MARK = {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}
CALLER = {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}
Blocks = list[dict[str, Any]]


def user(*blocks: dict[str, Any]) -> Blocks:
    return [{"role": "user", "content": list(blocks)}]


def assistant(*blocks: dict[str, Any]) -> Blocks:
    return [{"role": "user", "content": "hi"}, {"role": "assistant", "content": list(blocks)}]


def text(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": text, **more}


def call(call_id: str = "toolu_1", arguments: Any = None, name: str = "look", **more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments or {}, **more}


def result(call_id: str = "toolu_1", content: Any = "done", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


def aside(block: dict[str, Any], number: int = 0) -> Aside:
    return Aside("anthropic", "unknown_event", f"content.{block['type']}", block, block=number)


def answered(*blocks: dict[str, Any], **more: Any) -> Blocks:
    return [{"role": "assistant", "content": [call()]}, {"role": "user", "content": [result(**more), *blocks]}]


def turns(said: ToolResult, *parts: Part) -> list[Turn]:
    return [Turn("assistant", [ToolCall(0, "toolu_1", "look", "{}")]), Turn("user", [said, *parts])]


SAID = {"role": "user", "content": "hi"}
ANTHROPIC = Dialect(
    "anthropic",
    {"model": "m", "max_tokens": 9, "messages": [SAID]},
    Request("anthropic", "m", [HI], options=Options(9)),
    Request("openai-chat", "m", [HI], options=Options(9)),
    {"linked_media": "drop"},
)
SEARCH = {"type": "search_result", "source": "s", "title": "t", "content": [text("a")]}
SEARCHED = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
CITATION = {
    "type": "char_location", "cited_text": "a", "document_index": 0, "document_title": None, "start_char_index": 0, "end_char_index": 1,
}  # fmt: skip


def frames(number: int, block: dict[str, Any], *deltas: dict[str, Any]) -> list[Aside]:
    """The asides of a block as a stream would give them."""
    start = {"type": "content_block_start", "index": number, "content_block": block}
    more = [{"type": "content_block_delta", "index": number, "delta": delta} for delta in deltas]
    stop = {"type": "content_block_stop", "index": number}
    kind = "unknown_event" if block["type"] == "hologram" else "server_tool"
    return [Aside("anthropic", kind, frame["type"], frame, block=number) for frame in (start, *more, stop)]


#: What messages say, both ways.
MESSAGES: dict[str, tuple[Blocks, list[Turn]]] = {
    "text": ([{"role": "user", "content": "hi"}], [HI]),
    "several texts": (user(text("a"), text("b")), [by_user(Text("a"), Text("b"))]),
    "a prefill": ([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "I"}], [HI, by_model(Text("I"))]),
    "a short mark": (user(text("a", cache_control=MARK)), [by_user(Text("a", cache="short"))]),
    "a long mark": (user(text("a", cache_control=LONG_MARK)), [by_user(Text("a", cache="long"))]),
    "a mark with more": (
        user(text("a", cache_control={**MARK, "scope": "global"})),
        [by_user(Text("a", cache="short", extras={"cache_control": {"scope": "global"}}))],
    ),
    "neighbours of one role": (
        [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}], [by_user(Text("a")), by_user(Text("b"))],
    ),
    "system in the middle": (
        [{"role": "user", "content": "a"}, {"role": "system", "content": "b"}, {"role": "assistant", "content": "c"}],
        [by_user(Text("a")), by_system(Text("b")), by_model(Text("c"))],
    ),
    "image as data": (
        user({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}),
        [by_user(Media("image", "image/png", PNG))],
    ),
    "image at a URL": (
        user({"type": "image", "source": {"type": "url", "url": "https://x.test/a.png"}, "cache_control": MARK}),
        [by_user(Media("image", url="https://x.test/a.png", cache="short"))],
    ),
    "image by its id": (user({"type": "image", "source": {"type": "file", "file_id": "f"}}), [by_user(Media("image", file_id="f"))]),
    "document as data": (
        user({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PDF}, "title": "a"}),
        [by_user(Media("file", "application/pdf", PDF, name="a"))],
    ),
    "document as text": (
        user({
            "type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "é"}, "context": "c",
            "citations": {"enabled": True},
        }),
        [by_user(Media("file", "text/plain", "w6k=", extras={"context": "c", "citations": {"enabled": True}}))],
    ),
    "document at a URL": (
        user({"type": "document", "source": {"type": "url", "url": "https://x.test/a.pdf"}}),
        [by_user(Media("file", url="https://x.test/a.pdf"))],
    ),
    "document by its id": (user({"type": "document", "source": {"type": "file", "file_id": "f"}}), [by_user(Media("file", file_id="f"))]),
    "document of blocks": (
        user({"type": "document", "source": {"type": "content", "content": [text("a")]}}),
        [by_user(aside({"type": "document", "source": {"type": "content", "content": [text("a")]}}))],
    ),
    "search result": (user(text("a"), SEARCH), [by_user(Text("a"), aside(SEARCH, 1))]),
    "upload": (user({"type": "container_upload", "file_id": "f"}), [by_user(Media("file", file_id="f"))]),
    "a call and its result": (answered(), turns(ToolResult("toolu_1", [Text("done")]))),
    "a result with text behind": (answered(text("and?")), turns(ToolResult("toolu_1", [Text("done")]), Text("and?"))),
    "a result that is an error": (answered(is_error=True), turns(ToolResult("toolu_1", [Text("done")], is_error=True))),
    "a result of several blocks": (
        answered(content=[text("a"), {"type": "image", "source": {"type": "url", "url": "u"}}, SEARCH]),
        turns(ToolResult("toolu_1", [Text("a"), Media("image", url="u"), aside(SEARCH, 2)])),
    ),
    "a result with more": (answered(toolset_name="browser", cache_control=LONG_MARK), turns(ToolResult(
        "toolu_1", [Text("done")], cache="long", extras={"toolset_name": "browser"},
    ))),
    "a call with more": (
        assistant(text("a"), call(arguments={"q": "x"}, caller=CALLER, cache_control=MARK)),
        [HI, by_model(Text("a"), ToolCall(0, "toolu_1", "look", '{"q":"x"}', cache="short", extras={"caller": CALLER}))],
    ),
    "signed thinking": (
        assistant({"type": "thinking", "thinking": "h", "signature": "S"}, text("a")),
        [HI, by_model(Reasoning("h", "summary", Opaque("anthropic", "S")), Text("a"))],
    ),
    "omitted thinking": (
        assistant({"type": "thinking", "thinking": "", "signature": "S"}, text("a")),
        [HI, by_model(Reasoning("", "summary", Opaque("anthropic", "S")), Text("a"))],
    ),
    "redacted thinking": (assistant({"type": "redacted_thinking", "data": "D"}, text("a")), [HI, by_model(
        RedactedReasoning(Opaque("anthropic", "D")), Text("a"),
    )]),
    "citations": (assistant(text("a", citations=[CITATION, CITATION]), text("b")), [HI, by_model(
        Text("a"), *[Aside("anthropic", "citation", "citations_delta", CITATION)] * 2, Text("b"),
    )]),
    "a server's tool": (
        assistant({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}, SEARCHED, text("a")),
        [HI, by_model(
            *frames(
                0, {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
                {"type": "input_json_delta", "partial_json": '{"query":"x"}'},
            ),
            *frames(1, SEARCHED), Text("a"),
        )],
    ),
    "a server's tool without input": (
        assistant({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}, SEARCHED),
        [HI, by_model(
            *frames(0, {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}), *frames(1, SEARCHED),
        )],
    ),
    "a block nobody knows, of the assistant": (assistant({"type": "hologram", "x": 1}), [HI, by_model(*frames(0, {
        "type": "hologram", "x": 1,
    }))]),
    "a file of a container": (assistant({"type": "container_upload", "file_id": "f"}), [HI, by_model(*frames(0, {
        "type": "container_upload", "file_id": "f",
    }))]),
    "members nobody knows": ([{"role": "user", "content": [text("a", x=1)], "y": {"z": 2}}], [by_user(
        Text("a", extras={"x": 1}), extras={"y": {"z": 2}},
    )]),
}  # fmt: skip

#: Messages that say what another form says, and that form.
ALIKE: dict[str, tuple[Blocks, Blocks]] = {
    "one text in a list": (user(text("hi")), [{"role": "user", "content": "hi"}]),
    "a mark with its default": (user(text("a", cache_control={**MARK, "ttl": "5m"})), user(text("a", cache_control=MARK))),
    "a result in a list": (answered(content=[text("done")]), answered()),
    "a result of no text": (answered(content=""), [*answered()[:1], *user({"type": "tool_result", "tool_use_id": "toolu_1"})]),
    "a result that is none": (answered(is_error=False), answered()),
    "no citations": (assistant(text("a", citations=[]), text("b", citations=None)), assistant(text("a"), text("b"))),
    "null members": (user(text("a", cache_control=None), text("b")), user(text("a"), text("b"))),
}  # fmt: skip


#: Members of a request beside its messages, and what they are.
MEMBERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "options": (
        {"temperature": 0.5, "top_p": 0.9, "top_k": 3, "stop_sequences": ["a", "b"], "service_tier": "auto", "metadata": {"user_id": "u"}},
        {"options": Options(9, 0.5, 0.9, 3, ("a", "b"), service_tier="auto", user="u")},
    ),
    "a tier of its own": ({"service_tier": "standard_only"}, {"options": Options(9), "extras": {"service_tier": "standard_only"}}),
    "the least": ({}, {"options": Options(9)}),
    "a stream": ({"stream": True}, {"stream": True, "stream_usage": True, "options": Options(9)}),
    "no stream": ({"stream": False}, {"stream": False, "options": Options(9)}),
    "thinking with a budget": (
        {"thinking": {"type": "enabled", "budget_tokens": 2000, "display": "summarized"}},
        {"options": Options(9, thinking=Thinking(None, 2000, enabled=True, summary="auto"))},
    ),
    "adaptive thinking with effort": (
        {"thinking": {"type": "adaptive", "display": "omitted"}, "output_config": {"effort": "xhigh"}},
        {"options": Options(9, thinking=Thinking("xhigh", enabled=True, summary="none"))},
    ),
    "no thinking": ({"thinking": {"type": "disabled"}}, {"options": Options(9, thinking=Thinking(enabled=False))}),
    "effort alone": ({"output_config": {"effort": "low"}}, {"options": Options(9, thinking=Thinking("low"))}),
    "thinking between tools": (
        {"thinking": {"type": "between_tools"}, "output_config": {"effort": "low"}},
        {"options": Options(9, thinking=Thinking("low")), "extras": {"thinking": {"type": "between_tools"}}},
    ),
    "a schema": (
        {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
        {"options": Options(9, output=OutputFormat("schema", SCHEMA))},
    ),
    "a format nobody knows": ({"output_config": {"format": {"type": "regex", "x": "a+"}}}, {"options": Options(9), "extras": {"output_config": {"format": {
        "type": "regex", "x": "a+",
    }}}}),
    "tools": (
        {"tools": [
            {"name": "look", "description": "d", "input_schema": SCHEMA, "strict": True, "cache_control": LONG_MARK},
            {"name": "no", "input_schema": {"type": "object"}, "eager_input_streaming": True, "defer_loading": True},
        ]},
        {
            "tools": [Tool("look", "d", SCHEMA, strict=True, cache="long"), Tool("no", None, {"type": "object"}, deferred=True, extras={
                "eager_input_streaming": True,
            })],
            "options": Options(9),
        },
    ),
    "the server's tools": (
        {"tools": [{"type": "web_search_20260318", "name": "web_search", "max_uses": 3, "cache_control": MARK}]},
        {
            "tools": [Tool("web_search", kind="server", raw={
                "type": "web_search_20260318", "name": "web_search", "max_uses": 3, "cache_control": MARK,
            })],
            "options": Options(9),
        },
    ),
    "choice: auto": (
        {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
        {"tool_choice": ToolChoice("auto", parallel=False), "options": Options(9)},
    ),
    "choice: any": (
        {"tool_choice": {"type": "any", "disable_parallel_tool_use": False}},
        {"tool_choice": ToolChoice("required", parallel=True), "options": Options(9)},
    ),
    "choice: one": ({"tool_choice": {"type": "tool", "name": "look"}}, {
        "tool_choice": ToolChoice("required", ("look",)), "options": Options(9),
    }),
    "choice: none": ({"tool_choice": {"type": "none"}}, {"tool_choice": ToolChoice("none"), "options": Options(9)}),
    "members nobody knows": (
        {
            "container": "c", "cache_control": MARK, "speed": "fast", "metadata": {"x": 1}, "output_config": {"x": 2},
            "tool_choice": {"type": "auto", "x": 3}, "mcp_servers": [{"name": "n"}],
        },
        {"options": Options(9), "tool_choice": ToolChoice("auto"), "extras": {
            "container": "c", "cache_control": MARK, "speed": "fast", "metadata": {"x": 1}, "output_config": {"x": 2},
            "tool_choice": {"x": 3}, "mcp_servers": [{"name": "n"}],
        }},
    ),
}  # fmt: skip

SYSTEM = [
    ("be", [by_system(Text("be"))], "be"),
    ([text("be")], [by_system(Text("be"))], "be"),
    ([text("a"), text("b")], [by_system(Text("a"), Text("b"))], [text("a"), text("b")]),
    ([text("a", cache_control=MARK)], [by_system(Text("a", cache="short"))], [text("a", cache_control=MARK)]),
    ("", [], None),
    ([], [], None),
]  # fmt: skip


# -- what was carried here for another vendor --------------------------------------------------------------------------


SEALED = [
    (
        [{"type": "thinking", "thinking": "h", "signature": seal("reasoning", "google", "S")}],
        [Reasoning("h", "summary", Opaque("google", "S"))],
    ),
    ([{"type": "redacted_thinking", "data": seal("opaque", "openai", "E")}], [RedactedReasoning(Opaque("openai", "E"))]),
    (
        [{"type": "redacted_thinking", "data": seal("call", "google", "S")}, call()],
        [ToolCall(0, "toolu_1", "look", "{}", signature=Opaque("google", "S"))],
    ),
    ([text("a"), {"type": "redacted_thinking", "data": seal("text", "google", "S")}], [Text("a", Opaque("google", "S"))]),
    ([text("a"), {"type": "redacted_thinking", "data": seal("part", "google", "S")}], [Text("a"), Text("", Opaque("google", "S"))]),
    ([{"type": "redacted_thinking", "data": seal("reasoning", "google", "S")}], [Reasoning("", signature=Opaque("google", "S"))]),
    (
        [{"type": "redacted_thinking", "data": seal("call", "google", "S")}, text("a")],
        [Text("a"), RedactedReasoning(Opaque("google", "S"))],
    ),
]  # fmt: skip


# -- requests that can't be --------------------------------------------------------------------------------------------

BAD: dict[str, tuple[dict[str, Any], str, str]] = {
    "no messages": ({"messages": None}, "messages", "must be a list"),
    "a message that is none": ({"messages": ["hi"]}, "messages[0]", "must be an object"),
    "a role": ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role", "unknown role 'tool'; must be 'system', 'user' or 'assistant'"),
    "no content": ({"messages": [{"role": "user"}]}, "messages[0].content", "must be a string or a list of blocks"),
    "content": ({"messages": [{"role": "user", "content": 3}]}, "messages[0].content", "must be a string or a list of objects, not an integer"),
    "a block": ({"messages": user("x")}, "messages[0].content[0]", "must be an object"),
    "no type": ({"messages": user({"text": "x"})}, "messages[0].content[0].type", "must be a string"),
    "a text": ({"messages": user({"type": "text"})}, "messages[0].content[0].text", "must be a string"),
    "a source": ({"messages": user({"type": "image"})}, "messages[0].content[0].source", "must be an object"),
    "a type of source": (
        {"messages": user({"type": "image", "source": {"type": 1}})}, "messages[0].content[0].source.type", "must be a string",
    ),
    "no data": (
        {"messages": user({"type": "image", "source": {"type": "base64", "media_type": "image/png"}})},
        "messages[0].content[0].source.data", "must be a string",
    ),
    "a mark": (
        {"messages": user(text("a", cache_control={"type": "forever"}))}, "messages[0].content[0].cache_control.type",
        "must be 'ephemeral', not 'forever'",
    ),
    "a span": (
        {"messages": user(text("a", cache_control={**MARK, "ttl": "1d"}))}, "messages[0].content[0].cache_control.ttl",
        "must be '5m' or '1h', not '1d'",
    ),
    "a call of the user": ({"messages": user(call())}, "messages[0].content[0].type", "only allowed in assistant messages"),
    "a result of the assistant": ({"messages": assistant(result())}, "messages[1].content[0].type", "only allowed in user messages"),
    "an image of the system": ({"system": [{"type": "image", "source": {"type": "url", "url": "u"}}]}, "system[0].type", "must be 'text'"),
    "an input that is text": (
        {"messages": assistant({**call(), "input": "{}"})}, "messages[1].content[0].input", "must be an object, not a string",
    ),
    "no input": ({"messages": assistant({**call(), "input": None})}, "messages[1].content[0].input", "not null"),
    "no id of a call": ({"messages": assistant({**call(), "id": None})}, "messages[1].content[0].id", "must be a string"),
    "a thinking result": (
        {"messages": answered(content=[{"type": "thinking", "thinking": "h"}])}, "messages[1].content[0].content[0].type",
        "only allowed in assistant messages",
    ),
    "whether it is an error": ({"messages": answered(is_error="no")}, "messages[1].content[0].is_error", "must be a boolean"),
    "no budget": ({"thinking": {"type": "enabled"}}, "thinking.budget_tokens", "must be an integer"),
    "no type of thinking": ({"thinking": {}}, "thinking.type", "must be a string"),
    "no schema": ({"output_config": {"format": {"type": "json_schema"}}}, "output_config.format.schema", "is missing; must be a JSON schema"),
    "stops": ({"stop_sequences": ["a", 1]}, "stop_sequences[1]", "must be a string, not an integer"),
    "half a token": ({"max_tokens": 1.5}, "max_tokens", "must be an integer, not 1.5"),
    "a tool without a name": ({"tools": [{"input_schema": {}}]}, "tools[0].name", "must be a string"),
    "a schema that is none": ({"tools": [{"name": "n", "input_schema": []}]}, "tools[0].input_schema", "must be an object"),
    "a choice": ({"tool_choice": {"type": "some"}}, "tool_choice.type", "must be 'auto', 'any', 'tool' or 'none', not 'some'"),
    "a choice of nothing": ({"tool_choice": {"type": "tool"}}, "tool_choice.name", "must be a string"),
}  # fmt: skip


@pytest.mark.parametrize("name", [*MESSAGES, *MEMBERS])
def test_whatever_stands_in_a_request_it_is_written_or_refused(name):
    whole = ANTHROPIC.body({"messages": MESSAGES[name][0]} if name in MESSAGES else MEMBERS[name][0])
    for odd in spoilt(whole):
        try:
            ANTHROPIC.write(decode_request(json.dumps(odd).encode(), "anthropic"), repair=True)
        except BadRequest:
            continue


# -- within the dialect: what is mended --------------------------------------------------------------------------------


#: Empty texts, which the server refuses for ever after (quirks.md 81; it takes blank ones), results that are not at the front of the
#: one message after their calls, and thinking that is another vendor's or that nobody signed.
MENDED = [
    (assistant(text(""), text("a"), text(" ")), assistant(text("a"), text(" ")), {"turn_empty": 1}, {}),
    ([{"role": "user", "content": ""}, {"role": "user", "content": "hi"}], [{"role": "user", "content": "hi"}], {"turn_empty": 1}, {}),
    (
        [{"role": "assistant", "content": [call("a"), call("b")]}, *user(result("a")), *user(text("x"), result("b"))],
        [{"role": "assistant", "content": [call("a"), call("b")]}, *user(result("a"), result("b")), {"role": "user", "content": "x"}],
        {"result_moved": 1}, {},
    ),
    (
        [{"role": "assistant", "content": [call("a"), call("b")]}, *user(result("a"), text("x"), result("b"))],
        [{"role": "assistant", "content": [call("a"), call("b")]}, *user(result("a"), result("b"), text("x"))], {"result_moved": 1}, {},
    ),
    (
        [{"role": "assistant", "content": [call("a")]}, *user(text("x")), *user(result("a"))],
        [{"role": "assistant", "content": [call("a")]}, *user(result("a"), text("x"))], {"result_moved": 1}, {},
    ),
    (
        assistant({"type": "thinking", "thinking": "h", "signature": ""}, text("a")),
        [*assistant()[:1], {"role": "assistant", "content": "a"}], {}, {"reasoning_history": 1},
    ),
    (
        assistant({"type": "thinking", "thinking": "h", "signature": seal("reasoning", "google", "S")}, text("a")),
        [*assistant()[:1], {"role": "assistant", "content": "a"}], {}, {"reasoning_history": 1, "reasoning_signature": 1},
    ),
    (
        assistant({"type": "redacted_thinking", "data": seal("opaque", "openai", "E")}, text("a")),
        [*assistant()[:1], {"role": "assistant", "content": "a"}], {}, {"reasoning_opaque": 1},
    ),
    (
        assistant({"type": "redacted_thinking", "data": seal("call", "google", "S")}, call()), assistant(call()), {},
        {"reasoning_signature": 1},
    ),
]  # fmt: skip


# -- for Anthropic, from another dialect -------------------------------------------------------------------------------


CALL = ToolCall(0, "c1", "look", '{"q":1.0}')
CALLED = {"type": "tool_use", "id": "c1", "name": "look", "input": {"q": 1.0}}
ANSWER = Turn("user", [ToolResult("c1", [Text("done")])])
LOOK = Tool("look", None, SCHEMA)
A, B = Turn("assistant", [Text("a")]), {"role": "assistant", "content": "a"}

#: Turns, the messages written, repairs and losses.
FOREIGN: dict[str, tuple[list[Turn], Blocks, dict[str, int], dict[str, int]]] = {
    "results and what follows are one message": (
        [by_model(CALL), ANSWER, HI], [{"role": "assistant", "content": [CALLED]}, *user(result("c1"), text("hi"))], {}, {},
    ),
    "results in front": (
        [by_model(CALL), HI, ANSWER], [{"role": "assistant", "content": [CALLED]}, *user(result("c1"), text("hi"))], {"result_moved": 1},
        {},
    ),
    "neighbours": (
        [HI, HI, A, A], [*user(text("hi"), text("hi")), {"role": "assistant", "content": [text("a"), text("a")]}], {"turns_joined": 2}, {},
    ),
    "neighbours around nothing": ([HI, by_model(), HI], user(text("hi"), text("hi")), {"turn_empty": 1, "turns_joined": 1}, {}),
    "system behind the user": ([HI, by_system(Text("be")), A], [SAID, {"role": "system", "content": "be"}, B], {}, {}),
    "system at the end": ([HI, by_system(Text("be"))], [SAID, {"role": "system", "content": "be"}], {}, {}),
    "systems behind the user are one": (
        [HI, by_system(Text("a")), by_system(Text("b"))], [SAID, {"role": "system", "content": [text("a"), text("b")]}],
        {"turns_joined": 1}, {},
    ),
    "system behind results": (
        [by_model(CALL), ANSWER, by_system(Text("be"))],
        [{"role": "assistant", "content": [CALLED]}, *user(result("c1")), {"role": "system", "content": "be"}], {}, {},
    ),
    "a name": ([by_user(Text("hi"), name="ann")], [SAID], {}, {"turn_name": 1}),
    "members of another dialect": ([by_user(Text("hi", extras={"x": 1}), extras={"y": 2})], [SAID], {}, {"metadata": 2}),
    "a refusal": ([HI, by_model(Refusal("no"))], [SAID, {"role": "assistant", "content": "no"}], {}, {"refusal_as_text": 1}),
    "thinking": ([HI, by_model(Reasoning("h"), Text("a"))], [SAID, B], {}, {"reasoning_history": 1}),
    "Anthropic's own thinking": (
        [HI, by_model(Reasoning("h", "raw", Opaque("anthropic", "S")), Text("a"))],
        [SAID, {"role": "assistant", "content": [{"type": "thinking", "thinking": "h", "signature": "S"}, text("a")]}], {}, {},
    ),
    "signatures of others": (
        [
            by_model(
                Reasoning("", "raw", Opaque("openai", "S")), Text("a", Opaque("google", "S")), RedactedReasoning(Opaque("x", "E")),
                ToolCall(0, "c1", "look", '{"q":1.0}', signature=Opaque("google", "S")),
            ),
            ANSWER,
        ],
        [{"role": "assistant", "content": [text("a"), CALLED]}, *user(result("c1"))], {}, {"reasoning_signature": 3, "reasoning_opaque": 1},
    ),
    "a mark": ([by_user(Text("hi", cache="long"))], user(text("hi", cache_control=LONG_MARK)), {}, {"cache_mark": 1}),
    "an aside": ([by_user(Text("hi"), Aside("openai", "unknown_event", "content.x", {"type": "x"}))], [SAID], {}, {"unknown_event": 1}),
    "image": (
        [by_user(Media("image", None, PNG, detail="auto"))],
        user({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}), {}, {},
    ),
    "detail and name": (
        [by_user(Media("image", url="https://u", detail="low", name="n"))],
        user({"type": "image", "source": {"type": "url", "url": "https://u"}}), {}, {"metadata": 2},
    ),
    "image of another kind": ([by_user(Text("hi"), Media("image", "image/tiff", "SUkqAA=="))], [SAID], {}, {"media": 1}),
    "sound and film": ([by_user(Text("hi"), Media("audio", "audio/wav", "AA=="), Media("video", url="u"))], [SAID], {}, {"media": 2}),
    "file": (
        [by_user(Media("file", "application/pdf", PDF, name="a.pdf"))],
        user({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PDF}, "title": "a.pdf"}), {}, {},
    ),
    "file of another text": (
        [by_user(Media("file", "text/csv", base64.b64encode(b"a,b").decode()))],
        user({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a,b"}}), {}, {"metadata": 1},
    ),
    "file that is no text": (
        [by_user(Text("hi"), Media("file", "text/plain", "/w=="), Media("file", "application/zip", "AA=="))], [SAID], {}, {"media": 2},
    ),
    "another's file": ([by_user(Text("hi"), Media("file", file_id="f"))], [SAID], {}, {"media": 1}),
    "an image of the assistant": ([HI, by_model(Text("a"), Media("image", "image/png", PNG))], [SAID, B], {}, {"media": 1}),
    "an image that a tool gave": (
        [by_model(CALL), by_user(ToolResult("c1", [Text("see"), Media("image", "image/png", PNG)]))],
        [{"role": "assistant", "content": [CALLED]}, *user(result("c1", [
            text("see"), {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
        ]))],
        {}, {},
    ),
    "a tool that said nothing, an error": (
        [by_model(CALL), by_user(ToolResult("c1", is_error=True, name="look"))],
        [{"role": "assistant", "content": [CALLED]}, *user({"type": "tool_result", "tool_use_id": "c1", "is_error": True})], {}, {},
    ),
    "arguments": (
        [
            by_model(
                ToolCall(0, "c1", "look", ""), ToolCall(1, "c2", "look", "{oops"), ToolCall(2, "c3", "look", "[1]"),
                ToolCall(3, "c4", "look", "free", kind="custom"),
            ),
            by_user(*[ToolResult(f"c{n}", [Text("done")]) for n in (1, 2, 3, 4)]),
        ],
        [
            {"role": "assistant", "content": [
                call("c1"), call("c2", {"_raw_arguments": "{oops"}), call("c3", {"_raw_arguments": "[1]"}), call("c4", {"input": "free"}),
            ]},
            *user(*[result(f"c{n}") for n in (1, 2, 3, 4)]),
        ],
        {}, {"arguments_wrapped": 2, "custom_tool_wrapped": 1},
    ),
    "ids and names": (
        [by_model(ToolCall(0, "call:1", "a.b", "{}")), by_user(ToolResult("call:1", [Text("done")]))],
        [{"role": "assistant", "content": [call(portable_id("call:1"), name=portable_name("a.b"))]}, *user(result(portable_id("call:1")))],
        {"id_rewritten": 1, "name_rewritten": 1}, {},
    ),
}  # fmt: skip

MISPLACED = [
    ([HI, by_system(Text("be")), HI, A], "be", [*user(text("hi"), text("hi")), B]),
    ([HI, A, by_system(Text("be"))], "be", [SAID, B]),
    ([HI, A, by_system(Text("be")), HI], "be", [SAID, B, SAID]),
    ([by_model(CALL), by_system(Text("be")), ANSWER], "be", [{"role": "assistant", "content": [CALLED]}, *user(result("c1"))]),
    ([by_system(Text("first")), HI, by_system(Text("be")), HI], [text("first"), text("be")], user(text("hi"), text("hi"))),
]  # fmt: skip

#: Options of another dialect, the members written beside the least, and the losses with their names.
OPTIONS: dict[str, tuple[Options, dict[str, Any], list[str]]] = {
    "none": (Options(), {"max_tokens": 4096}, []),
    "what has a field": (
        Options(5, stop=("a",), user="u", service_tier="auto", choices=1),
        {"max_tokens": 5, "stop_sequences": ["a"], "metadata": {"user_id": "u"}, "service_tier": "auto"}, [],
    ),
    "what has none": (
        Options(5, seed=1, presence_penalty=0.5, frequency_penalty=0.5, logprobs=True, top_logprobs=2, service_tier="flex"),
        {"max_tokens": 5}, ["service_tier", "seed", "presence_penalty", "frequency_penalty", "logprobs", "top_logprobs"],
    ),
    "sampling": (Options(5, 0.5, 0.9, 3), {"max_tokens": 5}, ["temperature", "top_p", "top_k"]),
    "effort": (
        Options(5, thinking=Thinking("high")), {"max_tokens": 5, "thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}, [],
    ),
    "the least effort": (
        Options(5, thinking=Thinking("minimal")), {"max_tokens": 5, "thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}},
        ["thinking.effort"],
    ),
    "no effort": (Options(5, thinking=Thinking("none")), {"max_tokens": 5, "thinking": {"type": "disabled"}}, []),
    "an effort nobody knows": (
        Options(5, thinking=Thinking("heroic", enabled=False)), {"max_tokens": 5, "thinking": {"type": "disabled"}}, ["thinking.effort"],
    ),
    "a budget": (
        Options(thinking=Thinking(budget_tokens=2000, summary="detailed")),
        {"max_tokens": 6096, "thinking": {"type": "enabled", "budget_tokens": 2000, "display": "summarized"}}, ["thinking.summary"],
    ),
    "a small budget": (
        Options(5000, thinking=Thinking(budget_tokens=1)), {"max_tokens": 5000, "thinking": {"type": "enabled", "budget_tokens": 1024}},
        ["thinking.budget_tokens"],
    ),
    "whether it is shown": (Options(5, thinking=Thinking(summary="auto")), {"max_tokens": 5}, ["thinking.summary"]),
    "thinking that is not shown": (
        Options(5, thinking=Thinking(enabled=True, summary="none")),
        {"max_tokens": 5, "thinking": {"type": "adaptive", "display": "omitted"}}, [],
    ),
    "a schema": (
        Options(5, output=OutputFormat("schema", SCHEMA, "n", "d", strict=False)),
        {"max_tokens": 5, "output_config": {"format": {"type": "json_schema", "schema": CLOSED}}},
        ["output.name", "output.description", "output.strict"],
    ),
    "text": (Options(5, output=OutputFormat("text")), {"max_tokens": 5}, []),
    "JSON": (Options(5, output=OutputFormat("json")), {"max_tokens": 5}, ["output"]),
}  # fmt: skip


@pytest.mark.parametrize(
    ("temperature", "written", "names"),
    [(0.5, {"temperature": 0.5, "top_p": 0.9, "top_k": 3}, []), (1.5, {"top_p": 0.9, "top_k": 3}, ["temperature"])],
)
def test_an_older_version_takes_sampling_parameters(temperature, written, names):
    report = StreamReport()
    target = Target(provider=AnthropicProvider(name="old", title="", api_version="2023-06-01"))
    bodies = DIALECTS["anthropic"].bodies
    assert bodies is not None
    request = evolve(ANTHROPIC.foreign, options=Options(5, temperature, 0.9, 3))
    assert bodies.capabilities is not None
    lowered = lower(request, bodies.capabilities, target, report)
    found = bodies.encode_request(lowered, target, report)
    assert {name: found[name] for name in ("temperature", "top_p", "top_k") if name in found} == written
    assert report.lost == [("parameter", name) for name in names]


#: Tools of another dialect, what is written, and what is lost.
TOOLS: dict[str, tuple[Tool, dict[str, Any] | None, dict[str, int]]] = {
    "a function": (
        Tool("look", "d", SCHEMA, strict=True), {"name": "look", "description": "d", "input_schema": CLOSED, "strict": True}, {},
    ),
    "not strict": (Tool("look", None, SCHEMA, strict=False), {"name": "look", "input_schema": SCHEMA}, {}),
    "without parameters": (Tool("look"), {"name": "look", "input_schema": {"type": "object"}}, {}),
    "with an empty schema": (Tool("look", None, {}), {"name": "look", "input_schema": {"type": "object"}}, {}),
    "with a mark and more": (
        Tool("look", None, SCHEMA, cache="short", extras={"x": 1}), {"name": "look", "input_schema": SCHEMA, "cache_control": MARK},
        {"cache_mark": 1, "metadata": 1},
    ),
    "custom": (
        Tool("look", "d", kind="custom", format={"type": "text"}),
        {"name": "look", "description": "d", "input_schema": {
            "type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"],
        }},
        {"custom_tool_wrapped": 1},
    ),
    "of the server": (Tool("web_search", kind="server", raw={"type": "web_search"}), None, {"tool_definition": 1}),
}  # fmt: skip

CHOICES = [
    (ToolChoice("auto"), {"type": "auto"}),
    (ToolChoice("auto", parallel=True), {"type": "auto"}),
    (ToolChoice("auto", parallel=False), {"type": "auto", "disable_parallel_tool_use": True}),
    (ToolChoice("none", parallel=False), {"type": "none"}),
    (ToolChoice("required"), {"type": "any"}),
    (ToolChoice("required", ("look",), parallel=False), {"type": "tool", "name": "look", "disable_parallel_tool_use": True}),
    (ToolChoice("required", ("a.b",)), {"type": "tool", "name": portable_name("a.b")}),
]  # fmt: skip


# -- the recordings, and the official client ---------------------------------------------------------------------------


def test_the_official_client_sends_it(client, replay):
    answer = {
        "id": "i", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": "end_turn",
        "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
    }  # fmt: skip
    turns = [by_system(Text("be")), by_model(Text("wait"), CALL), ANSWER]
    written, _ = ANTHROPIC.write(evolve(ANTHROPIC.foreign, turns=turns, tools=[LOOK]))
    written["model"] = replay.register(json.dumps(answer).encode(), "application/json")
    client("anthropic").messages.create(**written)
    assert json.loads(replay.asked[written["model"]]) == written


# -- all rows ----------------------------------------------------------------------------------------------------------

LOOKING = {"tools": [{"name": "look", "input_schema": SCHEMA}]}
BUDGET = Options(5000, thinking=Thinking(budget_tokens=2000))
BUDGETED = {"max_tokens": 5000, "thinking": {"type": "enabled", "budget_tokens": 2000}}
DEMANDED = {"tools": [LOOK], "tool_choice": ToolChoice("required")}
CLOSING = {"schema_closed": 1}
CALLS = assistant({"type": "server_tool_use", "id": "s", "name": "n", "input": {"_raw_arguments": "{oops"}})


def of_this(*parts: Any) -> dict[str, Any]:
    """A turn of the model in this very dialect."""
    return {"dialect": "anthropic", "turns": [HI, by_model(*parts)]}


def some_tools(mode: Any) -> dict[str, Any]:
    return {"tools": [Tool(name, None, SCHEMA) for name in "abc"], "tool_choice": ToolChoice(mode, ("a", "c"))}


def thought_before(parts: list[Any], blocks: list[Any], losses: Any, **members: Any) -> Row:
    """A budget needs what was thought before the calls."""
    return ANTHROPIC.of_another(
        {"turns": [HI, by_model(*parts, CALL), ANSWER], "tools": [LOOK], "options": BUDGET},
        {"max_tokens": 5000, **LOOKING, "messages": [*assistant(*blocks, CALLED), *user(result("c1"))], **members}, losses,
    )  # fmt: skip


def tool_row(tool: Tool, expected: Members | None, losses: Members) -> Row:
    return ANTHROPIC.of_another(
        {"tools": [tool]}, {} if expected is None else {"tools": [expected]}, losses, CLOSING if tool.strict else {}
    )


ROWS = {
    **rows("messages", MESSAGES, lambda messages, turns: ANTHROPIC.kept({"messages": messages}, turns=turns)),
    **rows("alike", ALIKE, lambda messages, written: ANTHROPIC.alike({"messages": messages}, {"messages": written})),
    **rows("members", MEMBERS, lambda members, read: ANTHROPIC.kept(members, **read)),
    **rows("system", SYSTEM, lambda system, turns, written: Row(
        {"system": system}, {"turns": [*turns, HI]}, {} if written is None else {"system": written}
    )),
    **rows("tools alike", [{"type": "custom"}, {"type": None, "description": None}], lambda more: ANTHROPIC.alike(
        {"tools": [{**LOOKING["tools"][0], **more}]}, LOOKING
    )),
    "a call that the model made itself": ANTHROPIC.alike(
        {"messages": assistant(call(caller={"type": "direct"}))}, {"messages": assistant(call())}
    ),
    **rows("sealed", SEALED, lambda blocks, parts: ANTHROPIC.means({"messages": assistant(*blocks)}, turns=[HI, by_model(*parts)])),
    **rows("bad", BAD, ANTHROPIC.refused),
    **rows("mended", MENDED, lambda messages, written, repairs, losses: ANTHROPIC.alike(
        {"messages": messages}, {"messages": written}, repairs=repairs, losses=losses
    )),
    **rows("turns", FOREIGN, lambda turns, messages, repairs, losses: ANTHROPIC.of_another(
        {"turns": turns, "tools": [LOOK]}, {**LOOKING, "messages": messages}, losses, repairs
    )),
    **rows("a system without a place", MISPLACED, lambda turns, system, messages: ANTHROPIC.of_another(
        {"turns": turns, "tools": [LOOK]}, {**LOOKING, "system": system, "messages": messages}, {"system_place": 1}, None
    )),
    "systems in front": ANTHROPIC.of_another(
        {"turns": [by_system(Text("a")), by_system(Text("b"), native_role="developer"), HI]}, {"system": [text("a"), text("b")]}
    ),
    "the system alone": ANTHROPIC.unwritable({"turns": [by_system(Text("be"))]}, "messages", "Anthropic requires a user message in addition to the system's"),
    "the system alone, as the user": ANTHROPIC.of_another(
        {"turns": [by_system(Text("be"))]}, {"messages": [{"role": "user", "content": "be"}]}, {"system_place": 1}, target={"emulate": True}
    ),
    **rows("options", OPTIONS, lambda options, members, names: ANTHROPIC.of_another(
        {"options": options}, members, parameters(*names), CLOSING if options.output and options.output.schema else {}
    )),
    "members of another dialect": ANTHROPIC.of_another(
        {"extras": {"logit_bias": {"1": 2}, "thinking": {"type": "enabled"}, "store": None}}, {}, parameters("logit_bias", "thinking")
    ),
    "several choices": ANTHROPIC.unwritable({"options": Options(choices=2)}, "n", "Anthropic returns one choice, not 2"),
    **rows("tools", TOOLS, tool_row),
    **rows("choices", CHOICES, lambda choice, written: ANTHROPIC.of_another(
        {"tools": [LOOK, Tool("a.b", None, SCHEMA)], "tool_choice": choice},
        {"tools": [*LOOKING["tools"], {"name": portable_name("a.b"), "input_schema": SCHEMA}], "tool_choice": written},
        {}, {"name_rewritten": 1},
    )),
    **rows("some tools", ["auto", "required"], lambda mode: ANTHROPIC.unwritable(some_tools(mode), "tool_choice", "some of the tools")),
    **rows("some tools, imitated", [("auto", "auto"), ("required", "any")], lambda mode, chosen: ANTHROPIC.of_another(
        some_tools(mode), {"tools": [{"name": name, "input_schema": SCHEMA} for name in "ac"], "tool_choice": {"type": chosen}},
        {"tool_choice": 1}, target={"emulate": True},
    )),
    **rows("a call demanded of one who thinks", [{"enabled": True}, {"budget_tokens": 2000}], lambda thinking: ANTHROPIC.unwritable(
        {**DEMANDED, "options": Options(5000, thinking=Thinking(**thinking))}, "tool_choice", "while thinking is enabled"
    )),
    "one call demanded of one who thinks": ANTHROPIC.unwritable(
        {**DEMANDED, "tool_choice": ToolChoice("required", ("look",)), "options": BUDGET}, "tool_choice", "while thinking is enabled"
    ),
    **rows("they are imitated", [(), ("look",)], lambda *names: ANTHROPIC.of_another(
        {**DEMANDED, "tool_choice": ToolChoice("required", names), "options": BUDGET},
        {**LOOKING, **BUDGETED, "tool_choice": {"type": "auto"}}, {"tool_choice": 1}, target={"emulate": True},
    )),
    "an effort gives way to a call": ANTHROPIC.of_another(
        {**DEMANDED, "options": Options(5, thinking=Thinking("high"))},
        {**LOOKING, "max_tokens": 5, "tool_choice": {"type": "any"}, "output_config": {"effort": "high"}}, parameters("thinking"),
    ),
    **rows("a choice without tools", ["auto", "none"], lambda mode: ANTHROPIC.of_another({"tool_choice": ToolChoice(mode)}, {})),
    **rows("a budget and no calls", [([HI], [SAID]), ([HI, A, HI], [SAID, B, SAID])], lambda turns, messages: ANTHROPIC.of_another(
        {"turns": turns, "options": BUDGET}, {**BUDGETED, "messages": messages}
    )),
    "a budget and no thoughts": thought_before([], [], parameters("thinking")),
    "a budget and thoughts that nobody signed": thought_before([Reasoning("h")], [], [*parameters("thinking"), ("reasoning_history", "")]),
    "a budget and signed thoughts": thought_before(
        [Reasoning("h", "raw", Opaque("anthropic", "S"))], [{"type": "thinking", "thinking": "h", "signature": "S"}], {}, **BUDGETED
    ),
    "a budget and redacted thoughts": thought_before(
        [RedactedReasoning(Opaque("anthropic", "D"))], [{"type": "redacted_thinking", "data": "D"}], {}, **BUDGETED
    ),
    "called tools": ANTHROPIC.of_another(
        {"turns": [HI, by_model(CALL, ToolCall(1, "c2", "a.b", "{}")), by_user(*[ToolResult(i, [Text("done")]) for i in ("c1", "c2")]), HI]},
        None, {}, {"name_rewritten": 1, "tool_declared": 2}, at={
            "tools": [{"name": name, "input_schema": {"type": "object"}} for name in ("look", portable_name("a.b"))],
            "tool_choice": {"type": "none"},
        },
    ),
    "asides without their block": ANTHROPIC.of_another(
        of_this(
            *[frame for frame in frames(7, SEARCHED) if frame.type != "content_block_start"],
            frames(1, {"type": "server_tool_use", "id": "s", "name": "n", "input": {}})[0],
            Aside("anthropic", "unknown_event", "content_block_delta", {"delta": {"type": "new_delta"}}, block=1),
            Aside("anthropic", "server_tool", "content_block_delta", {"delta": {"type": "input_json_delta", "partial_json": "{oops"}}, block=1),
            Aside("anthropic", "citation", "citations_delta", CITATION, block=5),
        ),
        {"messages": CALLS}, {"server_tool": 1, "unknown_event": 1, "arguments_wrapped": 1, "citation": 1}, typed=False,
    ),
    "a citation before its text": ANTHROPIC.of_another(
        of_this(Text("x", block=1), Aside("anthropic", "citation", "citations_delta", CITATION, block=2), Text("a", block=2)),
        {"messages": assistant(text("x"), text("a", citations=[CITATION]))},
    ),
}  # fmt: skip

#: Rows with something that the client does not let its user write.
BEYOND = {
    "members: a format nobody knows", "members: members nobody knows", "members: options", "messages: a block nobody knows, of the assistant",
    "messages: a mark with more",
    "messages: members nobody knows",
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_a_request(name):
    ANTHROPIC.check(ROWS[name], beyond=name in BEYOND)
