"""Requests of Anthropic: read, written, and read from and written for others.

Source: dialects.md §3.0, §3.2, §7.3, §7.4; seeds.md S2.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from typing import Any

import pytest

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
from streamkit.translation.bodies import decode_request, encode_request
from streamkit.translation.lowering import lower
from tests.corpora import requests
from tests.requests.sdk_types import faults
from tests.requests.spoilt import spoilt

PNG, PDF = "iVBORw0KGgo=", "JVBERi0="
SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
CLOSED = {**SCHEMA, "additionalProperties": False}
MARK, LONG_MARK = {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}
CALLER = {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}
Blocks = list[dict[str, Any]]


def body(messages: Blocks | None = None, **members: Any) -> dict[str, Any]:
    said = messages if messages is not None else [{"role": "user", "content": "hi"}]
    return {"model": "m", "max_tokens": 9, "messages": said, **members}


def read(messages: Blocks | None = None, **members: Any) -> Request:
    report = StreamReport()
    request = decode_request(json.dumps(body(messages, **members)).encode(), "anthropic", report=report)
    assert not report.repairs
    return request


def write(request: Request, to: str = "anthropic", **options: Any) -> tuple[dict[str, Any], StreamReport]:
    report = StreamReport()
    return json.loads(encode_request(request, to, report=report, **options)), report


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


HI = Turn("user", [Text("hi")])
SEARCH = {"type": "search_result", "source": "s", "title": "t", "content": [text("a")]}
SEARCHED = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
CITATION = {
    "type": "char_location", "cited_text": "a", "document_index": 0, "document_title": None, "start_char_index": 0,
    "end_char_index": 1,
}  # fmt: skip


def frames(number: int, block: dict[str, Any], *deltas: dict[str, Any]) -> list[Aside]:
    """The asides of a block as a stream would give them."""
    start = {"type": "content_block_start", "index": number, "content_block": block}
    more = [{"type": "content_block_delta", "index": number, "delta": delta} for delta in deltas]
    stop = {"type": "content_block_stop", "index": number}
    kind = "unknown_event" if block["type"] == "container_upload" else "server_tool"
    return [Aside("anthropic", kind, frame["type"], frame, block=number) for frame in (start, *more, stop)]


#: What messages say, both ways.
MESSAGES: dict[str, tuple[Blocks, list[Turn]]] = {
    "text": ([{"role": "user", "content": "hi"}], [HI]),
    "several texts": (user(text("a"), text("b")), [Turn("user", [Text("a"), Text("b")])]),
    "a prefill": (
        [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "I"}],
        [HI, Turn("assistant", [Text("I")])],
    ),
    "a short mark": (user(text("a", cache_control=MARK)), [Turn("user", [Text("a", cache="short")])]),
    "a long mark": (user(text("a", cache_control=LONG_MARK)), [Turn("user", [Text("a", cache="long")])]),
    "a mark with more": (
        user(text("a", cache_control={**MARK, "scope": "global"})),
        [Turn("user", [Text("a", cache="short", extras={"cache_control": {"scope": "global"}})])],
    ),
    "neighbours of one role": (
        [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}],
        [Turn("user", [Text("a")]), Turn("user", [Text("b")])],
    ),
    "system in the middle": (
        [{"role": "user", "content": "a"}, {"role": "system", "content": "b"}, {"role": "assistant", "content": "c"}],
        [Turn("user", [Text("a")]), Turn("system", [Text("b")]), Turn("assistant", [Text("c")])],
    ),
    "image as data": (
        user({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}),
        [Turn("user", [Media("image", "image/png", PNG)])],
    ),
    "image at a URL": (
        user({"type": "image", "source": {"type": "url", "url": "https://x.test/a.png"}, "cache_control": MARK}),
        [Turn("user", [Media("image", url="https://x.test/a.png", cache="short")])],
    ),
    "image by its id": (
        user({"type": "image", "source": {"type": "file", "file_id": "f"}}),
        [Turn("user", [Media("image", file_id="f")])],
    ),
    "document as data": (
        user({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PDF}, "title": "a"}),
        [Turn("user", [Media("file", "application/pdf", PDF, name="a")])],
    ),
    "document as text": (
        user({
            "type": "document",
            "source": {"type": "text", "media_type": "text/plain", "data": "é"},
            "context": "c",
            "citations": {"enabled": True},
        }),
        [
            Turn("user", [
                Media("file", "text/plain", "w6k=", extras={"context": "c", "citations": {"enabled": True}}),
            ])
        ],
    ),
    "document at a URL": (
        user({"type": "document", "source": {"type": "url", "url": "https://x.test/a.pdf"}}),
        [Turn("user", [Media("file", url="https://x.test/a.pdf")])],
    ),
    "document by its id": (
        user({"type": "document", "source": {"type": "file", "file_id": "f"}}),
        [Turn("user", [Media("file", file_id="f")])],
    ),
    "document of blocks": (
        user({"type": "document", "source": {"type": "content", "content": [text("a")]}}),
        [Turn("user", [aside({"type": "document", "source": {"type": "content", "content": [text("a")]}})])],
    ),
    "search result": (user(text("a"), SEARCH), [Turn("user", [Text("a"), aside(SEARCH, 1)])]),
    "upload": (
        user({"type": "container_upload", "file_id": "f"}),
        [Turn("user", [aside({"type": "container_upload", "file_id": "f"})])],
    ),
    "a call and its result": (answered(), turns(ToolResult("toolu_1", [Text("done")]))),
    "a result with text behind": (
        answered(text("and?")),
        turns(ToolResult("toolu_1", [Text("done")]), Text("and?")),
    ),
    "a result that is an error": (
        answered(is_error=True),
        turns(ToolResult("toolu_1", [Text("done")], is_error=True)),
    ),
    "a result of several blocks": (
        answered(content=[text("a"), {"type": "image", "source": {"type": "url", "url": "u"}}, SEARCH]),
        turns(ToolResult("toolu_1", [Text("a"), Media("image", url="u"), aside(SEARCH, 2)])),
    ),
    "a result with more": (
        answered(toolset_name="browser", cache_control=LONG_MARK),
        turns(ToolResult("toolu_1", [Text("done")], cache="long", extras={"toolset_name": "browser"})),
    ),
    "a call with more": (
        assistant(text("a"), call(arguments={"q": "x"}, caller=CALLER, cache_control=MARK)),
        [
            HI,
            Turn("assistant", [
                Text("a"),
                ToolCall(0, "toolu_1", "look", '{"q":"x"}', cache="short", extras={"caller": CALLER}),
            ]),
        ],
    ),
    "signed thinking": (
        assistant({"type": "thinking", "thinking": "h", "signature": "S"}, text("a")),
        [HI, Turn("assistant", [Reasoning("h", "summary", Opaque("anthropic", "S")), Text("a")])],
    ),
    "omitted thinking": (
        assistant({"type": "thinking", "thinking": "", "signature": "S"}, text("a")),
        [HI, Turn("assistant", [Reasoning("", "summary", Opaque("anthropic", "S")), Text("a")])],
    ),
    "redacted thinking": (
        assistant({"type": "redacted_thinking", "data": "D"}, text("a")),
        [HI, Turn("assistant", [RedactedReasoning(Opaque("anthropic", "D")), Text("a")])],
    ),
    "citations": (
        assistant(text("a", citations=[CITATION, CITATION]), text("b")),
        [
            HI,
            Turn("assistant", [
                Text("a"), *[Aside("anthropic", "citation", "citations_delta", CITATION)] * 2, Text("b"),
            ]),
        ],
    ),
    "a server's tool": (
        assistant(
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
            SEARCHED,
            text("a"),
        ),
        [
            HI,
            Turn("assistant", [
                *frames(
                    0,
                    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
                    {"type": "input_json_delta", "partial_json": '{"query":"x"}'},
                ),
                *frames(1, SEARCHED),
                Text("a"),
            ]),
        ],
    ),
    "a server's tool without input": (
        assistant({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}, SEARCHED),
        [
            HI,
            Turn("assistant", [
                *frames(0, {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}),
                *frames(1, SEARCHED),
            ]),
        ],
    ),
    "a block nobody knows, of the assistant": (
        assistant({"type": "container_upload", "file_id": "f"}),
        [HI, Turn("assistant", frames(0, {"type": "container_upload", "file_id": "f"}))],
    ),
    "members nobody knows": (
        [{"role": "user", "content": [text("a", x=1)], "y": {"z": 2}}],
        [Turn("user", [Text("a", extras={"x": 1})], extras={"y": {"z": 2}})],
    ),
}  # fmt: skip


def test_a_call_that_the_model_made_itself_has_no_more_to_say():
    direct = read(assistant(call(arguments={"q": "x"}, caller={"type": "direct"})))
    assert direct.turns == read(assistant(call(arguments={"q": "x"}))).turns


@pytest.mark.parametrize("name", MESSAGES)
def test_messages_are_turns_and_come_back(name):
    messages, expected = MESSAGES[name]
    request = read(messages)
    assert request.turns == expected
    written, report = write(request)
    assert written == body(messages)
    assert report.losses == report.repairs == Counter()


#: Messages that say what another form says, and that form.
ALIKE: dict[str, tuple[Blocks, Blocks]] = {
    "one text in a list": (user(text("hi")), [{"role": "user", "content": "hi"}]),
    "a mark with its default": (
        user(text("a", cache_control={**MARK, "ttl": "5m"})),
        user(text("a", cache_control=MARK)),
    ),
    "a result in a list": (answered(content=[text("done")]), answered()),
    "a result of no text": (
        answered(content=""),
        [*answered()[:1], *user({"type": "tool_result", "tool_use_id": "toolu_1"})],
    ),
    "a result that is none": (answered(is_error=False), answered()),
    "no citations": (assistant(text("a", citations=[]), text("b", citations=None)), assistant(text("a"), text("b"))),
    "null members": (user(text("a", cache_control=None), text("b")), user(text("a"), text("b"))),
}


@pytest.mark.parametrize("name", ALIKE)
def test_messages_that_say_the_same_are_written_alike(name):
    messages, normal = ALIKE[name]
    written, report = write(read(messages))
    assert written["messages"] == normal
    assert report.losses == report.repairs == Counter()


def test_arguments_are_the_text_of_the_body():
    text = '{"z": 1.0, "a": 1e21, "n": 18446744073709551616}'
    raw = json.dumps(body(answered())).replace('"input": {}', f'"input": {text}').encode()
    request = decode_request(raw, "anthropic")
    [read_call] = [part for part in request.turns[0].parts if isinstance(part, ToolCall)]
    assert read_call.arguments == text
    assert f'"input":{text}'.encode() in encode_request(request, "anthropic")


#: Members of a request beside its messages, and what they are.
MEMBERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "options": (
        {
            "temperature": 0.5, "top_p": 0.9, "top_k": 3, "stop_sequences": ["a", "b"], "service_tier": "auto",
            "metadata": {"user_id": "u"},
        },
        {"options": Options(9, 0.5, 0.9, 3, ("a", "b"), service_tier="auto", user="u")},
    ),
    "a tier of its own": (
        {"service_tier": "standard_only"}, {"options": Options(9), "extras": {"service_tier": "standard_only"}},
    ),
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
    "no thinking": (
        {"thinking": {"type": "disabled"}},
        {"options": Options(9, thinking=Thinking(enabled=False))},
    ),
    "effort alone": ({"output_config": {"effort": "low"}}, {"options": Options(9, thinking=Thinking("low"))}),
    "thinking between tools": (
        {"thinking": {"type": "between_tools"}, "output_config": {"effort": "low"}},
        {"options": Options(9, thinking=Thinking("low")), "extras": {"thinking": {"type": "between_tools"}}},
    ),
    "a schema": (
        {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
        {"options": Options(9, output=OutputFormat("schema", SCHEMA))},
    ),
    "a format nobody knows": (
        {"output_config": {"format": {"type": "regex", "x": "a+"}}},
        {"options": Options(9), "extras": {"output_config": {"format": {"type": "regex", "x": "a+"}}}},
    ),
    "tools": (
        {
            "tools": [
                {"name": "look", "description": "d", "input_schema": SCHEMA, "strict": True, "cache_control": LONG_MARK},
                {"name": "no", "input_schema": {"type": "object"}, "eager_input_streaming": True, "defer_loading": True},
            ]
        },
        {
            "tools": [
                Tool("look", "d", SCHEMA, strict=True, cache="long"),
                Tool("no", None, {"type": "object"}, extras={"eager_input_streaming": True, "defer_loading": True}),
            ],
            "options": Options(9),
        },
    ),
    "the server's tools": (
        {"tools": [{"type": "web_search_20260318", "name": "web_search", "max_uses": 3, "cache_control": MARK}]},
        {
            "tools": [
                Tool("web_search", kind="server", raw={
                    "type": "web_search_20260318", "name": "web_search", "max_uses": 3, "cache_control": MARK,
                })
            ],
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
    "choice: one": (
        {"tool_choice": {"type": "tool", "name": "look"}},
        {"tool_choice": ToolChoice("required", ("look",)), "options": Options(9)},
    ),
    "choice: none": ({"tool_choice": {"type": "none"}}, {"tool_choice": ToolChoice("none"), "options": Options(9)}),
    "members nobody knows": (
        {
            "container": "c", "cache_control": MARK, "speed": "fast", "metadata": {"x": 1},
            "output_config": {"x": 2}, "tool_choice": {"type": "auto", "x": 3}, "mcp_servers": [{"name": "n"}],
        },
        {
            "options": Options(9),
            "tool_choice": ToolChoice("auto"),
            "extras": {
                "container": "c", "cache_control": MARK, "speed": "fast", "metadata": {"x": 1},
                "output_config": {"x": 2}, "tool_choice": {"x": 3}, "mcp_servers": [{"name": "n"}],
            },
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MEMBERS)
def test_members_are_read_and_come_back(name):
    members, expected = MEMBERS[name]
    request = read(**members)
    assert request == Request("anthropic", "m", [HI], **expected)
    written, report = write(request)
    assert written == body(**members)
    assert report.losses == report.repairs == Counter()


@pytest.mark.parametrize(
    ("system", "turns", "written"),
    [
        ("be", [Turn("system", [Text("be")])], "be"),
        ([text("be")], [Turn("system", [Text("be")])], "be"),
        ([text("a"), text("b")], [Turn("system", [Text("a"), Text("b")])], [text("a"), text("b")]),
        (
            [text("a", cache_control=MARK)],
            [Turn("system", [Text("a", cache="short")])],
            [text("a", cache_control=MARK)],
        ),
        ("", [], None),
        ([], [], None),
    ],
)
def test_the_system_is_a_turn_in_front(system, turns, written):
    request = read(system=system)
    assert request.turns == [*turns, HI]
    assert write(request)[0].get("system") == written


@pytest.mark.parametrize(
    "tool",
    [
        {"name": "look", "input_schema": SCHEMA, "type": "custom"},
        {"name": "look", "input_schema": SCHEMA, "type": None, "description": None},
    ],
)
def test_tools_that_say_the_same_are_written_alike(tool):
    assert write(read(tools=[tool]))[0]["tools"] == [{"name": "look", "input_schema": SCHEMA}]


# -- what was carried here for another vendor --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("blocks", "parts"),
    [
        (
            [{"type": "thinking", "thinking": "h", "signature": seal("reasoning", "google", "S")}],
            [Reasoning("h", "summary", Opaque("google", "S"))],
        ),
        (
            [{"type": "redacted_thinking", "data": seal("opaque", "openai", "E")}],
            [RedactedReasoning(Opaque("openai", "E"))],
        ),
        (
            [{"type": "redacted_thinking", "data": seal("call", "google", "S")}, call()],
            [ToolCall(0, "toolu_1", "look", "{}", signature=Opaque("google", "S"))],
        ),
        (
            [text("a"), {"type": "redacted_thinking", "data": seal("text", "google", "S")}],
            [Text("a", Opaque("google", "S"))],
        ),
        (
            [text("a"), {"type": "redacted_thinking", "data": seal("part", "google", "S")}],
            [Text("a"), Text("", Opaque("google", "S"))],
        ),
        (
            [{"type": "redacted_thinking", "data": seal("reasoning", "google", "S")}],
            [Reasoning("", signature=Opaque("google", "S"))],
        ),
        (
            [{"type": "redacted_thinking", "data": seal("call", "google", "S")}, text("a")],
            [Text("a"), RedactedReasoning(Opaque("google", "S"))],
        ),
    ],
)
def test_what_was_sealed_is_its_vendors_again(blocks, parts):
    assert read(assistant(*blocks)).turns[1].parts == parts


# -- requests that can't be --------------------------------------------------------------------------------------------

BAD: dict[str, tuple[dict[str, Any], str, str]] = {
    "no messages": ({"messages": None}, "messages", "a list is needed"),
    "a message that is none": ({"messages": ["hi"]}, "messages[0]", "an object is needed"),
    "a role": ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role", "no role 'tool'"),
    "no content": ({"messages": [{"role": "user"}]}, "messages[0].content", "text or a list"),
    "content": ({"messages": [{"role": "user", "content": 3}]}, "messages[0].content", "text is needed, not a whole"),
    "a block": ({"messages": user("x")}, "messages[0].content[0]", "an object is needed"),
    "no type": ({"messages": user({"text": "x"})}, "messages[0].content[0].type", "text is needed"),
    "a text": ({"messages": user({"type": "text"})}, "messages[0].content[0].text", "text is needed"),
    "a source": ({"messages": user({"type": "image"})}, "messages[0].content[0].source", "an object is needed"),
    "a type of source": (
        {"messages": user({"type": "image", "source": {"type": 1}})}, "messages[0].content[0].source.type", "text is needed",
    ),
    "no data": (
        {"messages": user({"type": "image", "source": {"type": "base64", "media_type": "image/png"}})},
        "messages[0].content[0].source.data", "text is needed",
    ),
    "a mark": (
        {"messages": user(text("a", cache_control={"type": "forever"}))},
        "messages[0].content[0].cache_control.type", "'ephemeral' is needed",
    ),
    "a span": (
        {"messages": user(text("a", cache_control={**MARK, "ttl": "1d"}))},
        "messages[0].content[0].cache_control.ttl", "'5m' or '1h' is needed, not '1d'",
    ),
    "a call of the user": ({"messages": user(call())}, "messages[0].content[0].type", "only stand in a message of the assistant"),
    "a result of the assistant": (
        {"messages": assistant(result())}, "messages[1].content[0].type", "only stand in a message of the user",
    ),
    "an image of the system": (
        {"system": [{"type": "image", "source": {"type": "url", "url": "u"}}]}, "system[0].type", "text is needed",
    ),
    "an input that is text": (
        {"messages": assistant({**call(), "input": "{}"})}, "messages[1].content[0].input", "an object is needed, not text",
    ),
    "no input": ({"messages": assistant({**call(), "input": None})}, "messages[1].content[0].input", "not null"),
    "no id of a call": ({"messages": assistant({**call(), "id": None})}, "messages[1].content[0].id", "text is needed"),
    "a thinking result": (
        {"messages": answered(content=[{"type": "thinking", "thinking": "h"}])},
        "messages[1].content[0].content[0].type", "only stand in a message of the assistant",
    ),
    "whether it is an error": (
        {"messages": answered(is_error="no")}, "messages[1].content[0].is_error", "true or false is needed",
    ),
    "no budget": ({"thinking": {"type": "enabled"}}, "thinking.budget_tokens", "a whole number is needed"),
    "no type of thinking": ({"thinking": {}}, "thinking.type", "text is needed"),
    "no schema": ({"output_config": {"format": {"type": "json_schema"}}}, "output_config.format.schema", "a schema is needed"),
    "stops": ({"stop_sequences": ["a", 1]}, "stop_sequences[1]", "text is needed, not a whole number"),
    "half a token": ({"max_tokens": 1.5}, "max_tokens", "a whole number is needed, not 1.5"),
    "a tool without a name": ({"tools": [{"input_schema": {}}]}, "tools[0].name", "text is needed"),
    "a schema that is none": ({"tools": [{"name": "n", "input_schema": []}]}, "tools[0].input_schema", "an object is needed"),
    "a choice": ({"tool_choice": {"type": "some"}}, "tool_choice.type", "is needed, not 'some'"),
    "a choice of nothing": ({"tool_choice": {"type": "tool"}}, "tool_choice.name", "text is needed"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_request_that_cannot_be_names_the_place(name):
    members, path, reason = BAD[name]
    with pytest.raises(BadRequest) as bad:
        decode_request(json.dumps({**body(), **members}).encode(), "anthropic")
    assert bad.value.path == path
    assert reason in bad.value.reason


@pytest.mark.parametrize("name", [*MESSAGES, *MEMBERS])
def test_whatever_stands_in_a_request_it_is_written_or_refused(name):
    whole = body(MESSAGES[name][0]) if name in MESSAGES else body(**MEMBERS[name][0])
    for odd in spoilt(whole):
        try:
            write(decode_request(json.dumps(odd).encode(), "anthropic"), repair=True)
        except BadRequest:
            continue


# -- within the dialect: what is mended --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("messages", "written", "repairs", "losses"),
    [
        # empty texts, which the server refuses for ever after (quirks.md 81); blank ones it takes
        (assistant(text(""), text("a"), text(" ")), assistant(text("a"), text(" ")), {"turn_empty": 1}, {}),
        ([{"role": "user", "content": ""}, {"role": "user", "content": "hi"}], [{"role": "user", "content": "hi"}],
         {"turn_empty": 1}, {}),
        # results that do not stand in front of the one message behind their calls
        (
            [{"role": "assistant", "content": [call("a"), call("b")]}, *user(result("a")), *user(text("x"), result("b"))],
            [{"role": "assistant", "content": [call("a"), call("b")]}, *user(result("a"), result("b")),
             {"role": "user", "content": "x"}],
            {"result_moved": 1}, {},
        ),
        (
            [{"role": "assistant", "content": [call("a"), call("b")]}, *user(result("a"), text("x"), result("b"))],
            [{"role": "assistant", "content": [call("a"), call("b")]}, *user(result("a"), result("b"), text("x"))],
            {"result_moved": 1}, {},
        ),
        (
            [{"role": "assistant", "content": [call("a")]}, *user(text("x")), *user(result("a"))],
            [{"role": "assistant", "content": [call("a")]}, *user(result("a"), text("x"))],
            {"result_moved": 1}, {},
        ),
        # thinking that is not Anthropic's, or that nobody signed
        (assistant({"type": "thinking", "thinking": "h", "signature": ""}, text("a")),
         [*assistant()[:1], {"role": "assistant", "content": "a"}], {}, {"reasoning_history": 1}),
        (assistant({"type": "thinking", "thinking": "h", "signature": seal("reasoning", "google", "S")}, text("a")),
         [*assistant()[:1], {"role": "assistant", "content": "a"}], {}, {"reasoning_history": 1, "reasoning_signature": 1}),
        (assistant({"type": "redacted_thinking", "data": seal("opaque", "openai", "E")}, text("a")),
         [*assistant()[:1], {"role": "assistant", "content": "a"}], {}, {"reasoning_opaque": 1}),
        (assistant({"type": "redacted_thinking", "data": seal("call", "google", "S")}, call()), assistant(call()),
         {}, {"reasoning_signature": 1}),
    ],
)  # fmt: skip
def test_what_the_server_refuses_is_mended_and_counted(messages, written, repairs, losses):
    found, report = write(read(messages))
    assert found["messages"] == written
    assert (dict(report.repairs), dict(report.losses)) == (repairs, losses)


# -- for Anthropic, from another dialect -------------------------------------------------------------------------------


def foreign(*turns: Turn, dialect: str = "openai-chat", **members: Any) -> Request:
    members.setdefault("options", Options(max_tokens=9))
    return Request(dialect, "m", list(turns) or [HI], **members)


def lost(report: StreamReport) -> dict[str, int]:
    return dict(report.losses)


CALL = ToolCall(0, "c1", "look", '{"q":1.0}')
CALLED = {"type": "tool_use", "id": "c1", "name": "look", "input": {"q": 1.0}}
ANSWER = Turn("user", [ToolResult("c1", [Text("done")])])
LOOK = Tool("look", None, SCHEMA)
SAID = {"role": "user", "content": "hi"}
A, B = Turn("assistant", [Text("a")]), {"role": "assistant", "content": "a"}

#: Turns, the messages written, repairs and losses.
FOREIGN: dict[str, tuple[list[Turn], Blocks, dict[str, int], dict[str, int]]] = {
    "results and what follows are one message": (
        [Turn("assistant", [CALL]), ANSWER, HI],
        [{"role": "assistant", "content": [CALLED]}, *user(result("c1"), text("hi"))],
        {}, {},
    ),
    "results in front": (
        [Turn("assistant", [CALL]), HI, ANSWER],
        [{"role": "assistant", "content": [CALLED]}, *user(result("c1"), text("hi"))],
        {"result_moved": 1}, {},
    ),
    "neighbours": (
        [HI, HI, A, A],
        [*user(text("hi"), text("hi")), {"role": "assistant", "content": [text("a"), text("a")]}],
        {"turns_joined": 2}, {},
    ),
    "neighbours around nothing": (
        [HI, Turn("assistant", []), HI],
        user(text("hi"), text("hi")),
        {"turn_empty": 1, "turns_joined": 1}, {},
    ),
    "system behind the user": (
        [HI, Turn("system", [Text("be")]), A],
        [SAID, {"role": "system", "content": "be"}, B],
        {}, {},
    ),
    "system at the end": ([HI, Turn("system", [Text("be")])], [SAID, {"role": "system", "content": "be"}], {}, {}),
    "systems behind the user are one": (
        [HI, Turn("system", [Text("a")]), Turn("system", [Text("b")])],
        [SAID, {"role": "system", "content": [text("a"), text("b")]}],
        {"turns_joined": 1}, {},
    ),
    "system behind results": (
        [Turn("assistant", [CALL]), ANSWER, Turn("system", [Text("be")])],
        [{"role": "assistant", "content": [CALLED]}, *user(result("c1")), {"role": "system", "content": "be"}],
        {}, {},
    ),
    "a name": ([Turn("user", [Text("hi")], name="ann")], [SAID], {}, {"turn_name": 1}),
    "members of another dialect": (
        [Turn("user", [Text("hi", extras={"x": 1})], extras={"y": 2})], [SAID], {}, {"metadata": 2},
    ),
    "a refusal": (
        [HI, Turn("assistant", [Refusal("no")])], [SAID, {"role": "assistant", "content": "no"}], {}, {"refusal_as_text": 1},
    ),
    "thinking": (
        [HI, Turn("assistant", [Reasoning("h"), Text("a")])], [SAID, B], {}, {"reasoning_history": 1},
    ),
    "Anthropic's own thinking": (
        [HI, Turn("assistant", [Reasoning("h", "raw", Opaque("anthropic", "S")), Text("a")])],
        [SAID, {"role": "assistant", "content": [{"type": "thinking", "thinking": "h", "signature": "S"}, text("a")]}],
        {}, {},
    ),
    "signatures of others": (
        [
            Turn("assistant", [
                Reasoning("", "raw", Opaque("openai", "S")), Text("a", Opaque("google", "S")), RedactedReasoning(Opaque("x", "E")),
                ToolCall(0, "c1", "look", '{"q":1.0}', signature=Opaque("google", "S")),
            ]),
            ANSWER,
        ],
        [{"role": "assistant", "content": [text("a"), CALLED]}, *user(result("c1"))],
        {}, {"reasoning_signature": 3, "reasoning_opaque": 1},
    ),
    "a mark": (
        [Turn("user", [Text("hi", cache="long")])], user(text("hi", cache_control=LONG_MARK)), {}, {"cache_mark": 1},
    ),
    "an aside": (
        [Turn("user", [Text("hi"), Aside("openai", "unknown_event", "content.x", {"type": "x"})])],
        [SAID], {}, {"unknown_event": 1},
    ),
    "image": (
        [Turn("user", [Media("image", None, PNG, detail="auto")])],
        user({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}), {}, {},
    ),
    "detail and name": (
        [Turn("user", [Media("image", url="https://u", detail="low", name="n")])],
        user({"type": "image", "source": {"type": "url", "url": "https://u"}}), {}, {"metadata": 2},
    ),
    "image of another kind": (
        [Turn("user", [Text("hi"), Media("image", "image/tiff", "SUkqAA==")])], [SAID], {}, {"media": 1},
    ),
    "sound and film": (
        [Turn("user", [Text("hi"), Media("audio", "audio/wav", "AA=="), Media("video", url="u")])], [SAID], {}, {"media": 2},
    ),
    "file": (
        [Turn("user", [Media("file", "application/pdf", PDF, name="a.pdf")])],
        user({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PDF}, "title": "a.pdf"}),
        {}, {},
    ),
    "file of another text": (
        [Turn("user", [Media("file", "text/csv", base64.b64encode(b"a,b").decode())])],
        user({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a,b"}}),
        {}, {"metadata": 1},
    ),
    "file that is no text": (
        [Turn("user", [Text("hi"), Media("file", "text/plain", "/w=="), Media("file", "application/zip", "AA==")])],
        [SAID], {}, {"media": 2},
    ),
    "another's file": ([Turn("user", [Text("hi"), Media("file", file_id="f")])], [SAID], {}, {"media": 1}),
    "an image of the assistant": (
        [HI, Turn("assistant", [Text("a"), Media("image", "image/png", PNG)])], [SAID, B], {}, {"media": 1},
    ),
    "an image that a tool gave": (
        [Turn("assistant", [CALL]), Turn("user", [ToolResult("c1", [Text("see"), Media("image", "image/png", PNG)])])],
        [
            {"role": "assistant", "content": [CALLED]},
            *user(result("c1", [text("see"), {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}])),
        ],
        {}, {},
    ),
    "a tool that said nothing, an error": (
        [Turn("assistant", [CALL]), Turn("user", [ToolResult("c1", is_error=True, name="look")])],
        [{"role": "assistant", "content": [CALLED]}, *user({"type": "tool_result", "tool_use_id": "c1", "is_error": True})],
        {}, {},
    ),
    "arguments": (
        [
            Turn("assistant", [
                ToolCall(0, "c1", "look", ""), ToolCall(1, "c2", "look", "{oops"), ToolCall(2, "c3", "look", "[1]"),
                ToolCall(3, "c4", "look", "free", kind="custom"),
            ]),
            Turn("user", [ToolResult(f"c{n}", [Text("done")]) for n in (1, 2, 3, 4)]),
        ],
        [
            {"role": "assistant", "content": [
                call("c1"), call("c2", {"_raw_arguments": "{oops"}), call("c3", {"_raw_arguments": "[1]"}),
                call("c4", {"input": "free"}),
            ]},
            *user(*[result(f"c{n}") for n in (1, 2, 3, 4)]),
        ],
        {}, {"arguments_wrapped": 2, "custom_tool_wrapped": 1},
    ),
    "ids and names": (
        [Turn("assistant", [ToolCall(0, "call:1", "a.b", "{}")]), Turn("user", [ToolResult("call:1", [Text("done")])])],
        [
            {"role": "assistant", "content": [call(portable_id("call:1"), name=portable_name("a.b"))]},
            *user(result(portable_id("call:1"))),
        ],
        {"id_rewritten": 1, "name_rewritten": 1}, {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FOREIGN)
def test_turns_of_another_dialect(name):
    turns, messages, repairs, losses = FOREIGN[name]
    written, report = write(foreign(*turns, tools=[LOOK]), linked_media="drop")
    assert written["messages"] == messages
    assert (dict(report.repairs), lost(report)) == (repairs, losses)
    assert faults("anthropic", written) == []


@pytest.mark.parametrize(
    ("turns", "system", "messages"),
    [
        ([HI, Turn("system", [Text("be")]), HI, A], "be", [*user(text("hi"), text("hi")), B]),
        ([HI, A, Turn("system", [Text("be")])], "be", [SAID, B]),
        ([HI, A, Turn("system", [Text("be")]), HI], "be", [SAID, B, SAID]),
        (
            [Turn("assistant", [CALL]), Turn("system", [Text("be")]), ANSWER],
            "be",
            [{"role": "assistant", "content": [CALLED]}, *user(result("c1"))],
        ),
        (
            [Turn("system", [Text("first")]), HI, Turn("system", [Text("be")]), HI],
            [text("first"), text("be")],
            user(text("hi"), text("hi")),
        ),
    ],
)
def test_a_system_message_that_has_no_place_goes_to_the_top(turns, system, messages):
    written, report = write(foreign(*turns, tools=[LOOK]))
    assert (written["system"], written["messages"]) == (system, messages)
    assert lost(report) == {"system_place": 1}


def test_the_systems_in_front_are_one_member():
    request = foreign(Turn("system", [Text("a")]), Turn("system", [Text("b")], native_role="developer"), HI)
    written, report = write(request)
    assert (written["system"], written["messages"]) == ([text("a"), text("b")], [SAID])
    assert report.repairs == report.losses == Counter()


def test_a_request_of_the_system_alone_is_refused_or_said_by_the_user():
    with pytest.raises(BadRequest, match="a message of the user") as bad:
        write(foreign(Turn("system", [Text("be")])))
    assert bad.value.path == "messages"
    written, report = write(foreign(Turn("system", [Text("be")])), emulate=True)
    assert (written.get("system"), written["messages"]) == (None, [{"role": "user", "content": "be"}])
    assert lost(report) == {"system_place": 1}


#: Options of another dialect, the members written beside the least, and the losses with their names.
OPTIONS: dict[str, tuple[Options, dict[str, Any], list[str]]] = {
    "none": (Options(), {"max_tokens": 4096}, []),
    "what has a field": (
        Options(5, stop=("a",), user="u", service_tier="auto", choices=1),
        {"max_tokens": 5, "stop_sequences": ["a"], "metadata": {"user_id": "u"}, "service_tier": "auto"}, [],
    ),
    "what has none": (
        Options(5, seed=1, presence_penalty=0.5, frequency_penalty=0.5, logprobs=True, top_logprobs=2, service_tier="flex"),
        {"max_tokens": 5},
        ["service_tier", "seed", "presence_penalty", "frequency_penalty", "logprobs", "top_logprobs"],
    ),
    "sampling": (Options(5, 0.5, 0.9, 3), {"max_tokens": 5}, ["temperature", "top_p", "top_k"]),
    "effort": (
        Options(5, thinking=Thinking("high")),
        {"max_tokens": 5, "thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}, [],
    ),
    "the least effort": (
        Options(5, thinking=Thinking("minimal")),
        {"max_tokens": 5, "thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}, ["thinking.effort"],
    ),
    "no effort": (Options(5, thinking=Thinking("none")), {"max_tokens": 5, "thinking": {"type": "disabled"}}, []),
    "an effort nobody knows": (
        Options(5, thinking=Thinking("heroic", enabled=False)),
        {"max_tokens": 5, "thinking": {"type": "disabled"}}, ["thinking.effort"],
    ),
    "a budget": (
        Options(thinking=Thinking(budget_tokens=2000, summary="detailed")),
        {"max_tokens": 6096, "thinking": {"type": "enabled", "budget_tokens": 2000, "display": "summarized"}},
        ["thinking.summary"],
    ),
    "a small budget": (
        Options(5000, thinking=Thinking(budget_tokens=1)),
        {"max_tokens": 5000, "thinking": {"type": "enabled", "budget_tokens": 1024}}, ["thinking.budget_tokens"],
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


@pytest.mark.parametrize("name", OPTIONS)
def test_options_of_another_dialect(name):
    options, members, names = OPTIONS[name]
    written, report = write(foreign(options=options))
    assert written == {"model": "m", "messages": [SAID], **members}
    assert sorted(report.lost) == sorted(("parameter", what) for what in names)
    assert faults("anthropic", written) == []


def test_members_of_another_dialect_are_losses_with_their_names():
    written, report = write(foreign(extras={"logit_bias": {"1": 2}, "thinking": {"type": "enabled"}, "store": None}))
    assert written == {"model": "m", "max_tokens": 9, "messages": [SAID]}
    assert report.lost == [("parameter", "logit_bias"), ("parameter", "thinking")]


def test_several_choices_are_refused():
    with pytest.raises(BadRequest, match="2 are asked for") as bad:
        write(foreign(options=Options(choices=2)))
    assert bad.value.path == "n"


@pytest.mark.parametrize(
    ("temperature", "written", "names"),
    [(0.5, {"temperature": 0.5, "top_p": 0.9, "top_k": 3}, []), (1.5, {"top_p": 0.9, "top_k": 3}, ["temperature"])],
)
def test_an_older_version_takes_sampling_parameters(temperature, written, names):
    report = StreamReport()
    target = Target(provider=AnthropicProvider(name="old", title="", api_version="2023-06-01"))
    bodies = DIALECTS["anthropic"].bodies
    assert bodies is not None
    request = foreign(options=Options(5, temperature, 0.9, 3))
    assert bodies.capabilities is not None
    lowered = lower(request, bodies.capabilities, target, report)
    found = bodies.encode_request(lowered, target, report)
    assert {name: found[name] for name in ("temperature", "top_p", "top_k") if name in found} == written
    assert report.lost == [("parameter", name) for name in names]


#: Tools of another dialect, what is written, and what is lost.
TOOLS: dict[str, tuple[Tool, dict[str, Any] | None, dict[str, int]]] = {
    "a function": (Tool("look", "d", SCHEMA, strict=True), {"name": "look", "description": "d", "input_schema": CLOSED, "strict": True}, {}),
    "not strict": (Tool("look", None, SCHEMA, strict=False), {"name": "look", "input_schema": SCHEMA}, {}),
    "without parameters": (Tool("look"), {"name": "look", "input_schema": {"type": "object"}}, {}),
    "with an empty schema": (Tool("look", None, {}), {"name": "look", "input_schema": {"type": "object"}}, {}),
    "with a mark and more": (
        Tool("look", None, SCHEMA, cache="short", extras={"x": 1}),
        {"name": "look", "input_schema": SCHEMA, "cache_control": MARK}, {"cache_mark": 1, "metadata": 1},
    ),
    "custom": (
        Tool("look", "d", kind="custom", format={"type": "text"}),
        {"name": "look", "description": "d", "input_schema": {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}},
        {"custom_tool_wrapped": 1},
    ),
    "of the server": (Tool("web_search", kind="server", raw={"type": "web_search"}), None, {"tool_definition": 1}),
}  # fmt: skip


@pytest.mark.parametrize("name", TOOLS)
def test_tools_of_another_dialect(name):
    tool, expected, losses = TOOLS[name]
    written, report = write(foreign(tools=[tool]))
    assert written.get("tools") == (None if expected is None else [expected])
    assert lost(report) == losses
    assert faults("anthropic", written) == []


@pytest.mark.parametrize(
    ("choice", "written"),
    [
        (ToolChoice("auto"), {"type": "auto"}),
        (ToolChoice("auto", parallel=True), {"type": "auto"}),
        (ToolChoice("auto", parallel=False), {"type": "auto", "disable_parallel_tool_use": True}),
        (ToolChoice("none", parallel=False), {"type": "none"}),
        (ToolChoice("required"), {"type": "any"}),
        (
            ToolChoice("required", ("look",), parallel=False),
            {"type": "tool", "name": "look", "disable_parallel_tool_use": True},
        ),
        (ToolChoice("required", ("a.b",)), {"type": "tool", "name": portable_name("a.b")}),
    ],
)
def test_the_choice_among_tools(choice, written):
    found, report = write(foreign(tools=[LOOK, Tool("a.b", None, SCHEMA)], tool_choice=choice))
    assert found["tool_choice"] == written
    assert not report.losses
    assert faults("anthropic", found) == []


@pytest.mark.parametrize("mode", ["auto", "required"])
def test_a_choice_of_some_tools_is_refused_or_imitated(mode):
    tools = [Tool(name, None, SCHEMA) for name in ("a", "b", "c")]
    request = foreign(tools=tools, tool_choice=ToolChoice(mode, ("a", "c")))
    with pytest.raises(BadRequest, match="some of the tools") as bad:
        write(request)
    assert bad.value.path == "tool_choice"
    written, report = write(request, emulate=True)
    assert [tool["name"] for tool in written["tools"]] == ["a", "c"]
    assert written["tool_choice"] == {"type": "any" if mode == "required" else "auto"}
    assert lost(report) == {"tool_choice": 1}


@pytest.mark.parametrize("thinking", [Thinking(enabled=True), Thinking(budget_tokens=2000)])
@pytest.mark.parametrize("names", [(), ("look",)])
def test_a_tool_that_must_be_called_while_thinking_is_refused_or_imitated(thinking, names):
    options = Options(5000, thinking=thinking)
    request = foreign(tools=[LOOK], tool_choice=ToolChoice("required", names), options=options)
    with pytest.raises(BadRequest, match="while thinking is enabled") as bad:
        write(request)
    assert bad.value.path == "tool_choice"
    written, report = write(request, emulate=True)
    assert written["tool_choice"] == {"type": "auto"}
    assert lost(report) == {"tool_choice": 1}


def test_an_effort_gives_way_to_a_tool_that_must_be_called():
    options = Options(5, thinking=Thinking("high"))
    written, report = write(foreign(tools=[LOOK], tool_choice=ToolChoice("required"), options=options))
    assert written["tool_choice"] == {"type": "any"}
    assert written["output_config"] == {"effort": "high"}
    assert "thinking" not in written
    assert report.lost == [("parameter", "thinking")]


@pytest.mark.parametrize("choice", ["auto", "none"])
def test_a_choice_without_tools_says_nothing(choice):
    assert "tool_choice" not in write(foreign(tool_choice=ToolChoice(choice)))[0]


def test_a_budget_needs_no_thoughts_where_no_call_was_answered():
    options = Options(5000, thinking=Thinking(budget_tokens=2000))
    for turns in [HI], [A], [HI, A], [HI, A, HI]:
        assert "thinking" in write(foreign(*turns, options=options))[0]


@pytest.mark.parametrize(
    ("thought", "expected"),
    [
        ([Reasoning("h")], False),
        ([], False),
        ([Reasoning("h", "raw", Opaque("anthropic", "S"))], True),
        ([RedactedReasoning(Opaque("anthropic", "D"))], True),
    ],
)
def test_a_budget_needs_what_was_thought_before_the_calls(thought, expected):
    options = Options(5000, thinking=Thinking(budget_tokens=2000))
    written, report = write(foreign(HI, Turn("assistant", [*thought, CALL]), ANSWER, tools=[LOOK], options=options))
    assert ("thinking" in written) == expected
    assert (("parameter", "thinking") in report.lost) != expected


def test_tools_that_the_history_calls_are_defined():
    answers = Turn("user", [ToolResult("c1", [Text("done")]), ToolResult("c2", [Text("done")])])
    request = foreign(HI, Turn("assistant", [CALL, ToolCall(1, "c2", "a.b", "{}")]), answers, HI)
    written, report = write(request)
    assert written["tools"] == [
        {"name": "look", "input_schema": {"type": "object"}},
        {"name": portable_name("a.b"), "input_schema": {"type": "object"}},
    ]
    assert written["tool_choice"] == {"type": "none"}
    assert report.repairs == Counter(name_rewritten=1, tool_declared=2)


def test_nothing_that_is_given_is_changed():
    request = foreign(Turn("assistant", [CALL]), HI, ANSWER, HI, tools=[LOOK])
    before = repr(request)
    write(request)
    assert repr(request) == before
    own = read(MESSAGES["a server's tool"][0])
    before = repr(own)
    write(own)
    assert repr(own) == before


def test_asides_without_their_block_are_losses():
    stray = [frame for frame in frames(7, SEARCHED) if frame.type != "content_block_start"]
    unknown = Aside("anthropic", "unknown_event", "content_block_delta", {"delta": {"type": "new_delta"}}, block=1)
    start = frames(1, {"type": "server_tool_use", "id": "s", "name": "n", "input": {}})[0]
    broken = Aside(
        "anthropic",
        "server_tool",
        "content_block_delta",
        {"delta": {"type": "input_json_delta", "partial_json": "{oops"}},
        block=1,
    )
    cited = Aside("anthropic", "citation", "citations_delta", CITATION, block=5)
    turn = Turn("assistant", [*stray, start, unknown, broken, cited])
    written, report = write(Request("anthropic", "m", [HI, turn], options=Options(9)))
    [block] = written["messages"][1]["content"]
    assert block["input"] == {"_raw_arguments": "{oops"}
    assert lost(report) == {"server_tool": 1, "unknown_event": 1, "arguments_wrapped": 1, "citation": 1}


def test_a_citation_may_come_before_its_text():
    cited = Aside("anthropic", "citation", "citations_delta", CITATION, block=2)
    turn = Turn("assistant", [Text("x", block=1), cited, Text("a", block=2)])
    written, _ = write(Request("anthropic", "m", [HI, turn], options=Options(9)))
    assert written["messages"][1]["content"] == [text("x"), text("a", citations=[CITATION])]


# -- the recordings, and the official client ---------------------------------------------------------------------------


def normal(request: dict[str, Any]) -> dict[str, Any]:
    """A request with content of one plain text as a string; what says the default, a mark's span and a tool's type, is left out."""
    if isinstance(request, list):
        return [normal(value) for value in request]
    if not isinstance(request, dict):
        return request
    said = {name: normal(value) for name, value in request.items() if value is not None}
    for name in {"content", "system"} & said.keys():
        if isinstance(said[name], list) and len(said[name]) == 1 and said[name][0].keys() == {"type", "text"}:
            said[name] = said[name][0]["text"]
    default = {"ephemeral": ("ttl", "5m"), "tool_result": ("is_error", False)}.get(str(said.get("type")))
    if default is not None and said.get(default[0]) == default[1]:
        del said[default[0]]
    return said


#: What the newest version of the API, whose types these are, has no more: sampling, and tools of old versions.
GONE = ("temperature", "tools[")


def test_every_recorded_request_comes_back():
    for recorded in requests("anthropic"):
        written, report = write(decode_request(json.dumps(recorded.body).encode(), "anthropic"))
        assert normal(written) == normal(recorded.body), recorded.name
        assert report.losses == report.repairs == Counter(), recorded.name
        assert [fault for fault in faults("anthropic", written) if not fault.startswith(GONE)] == [], recorded.name


#: Rows of the tables with something that the client does not let its user write.
BEYOND_TYPES = {"a mark with more", "members nobody knows", "options", "a format nobody knows"}


@pytest.mark.parametrize("name", [*MESSAGES, *MEMBERS])
def test_what_is_written_passes_the_types_of_the_client(name):
    members = {"messages": MESSAGES[name][0]} if name in MESSAGES else MEMBERS[name][0]
    written, _ = write(read(**members))
    assert bool(faults("anthropic", written)) == (name in BEYOND_TYPES)


@pytest.mark.parametrize("source", [name for name in DIALECTS.built_in if name != "anthropic"])
def test_recorded_requests_of_other_dialects_pass_the_types_of_the_client(source):
    if DIALECTS[source].bodies is None:
        pytest.skip(f"{source} has no bodies")
    for recorded in requests(source):
        request = decode_request(json.dumps(recorded.body).encode(), source)
        request.model = request.model or "m"
        written, _ = write(request, repair=True, emulate=True)
        assert faults("anthropic", written) == [], recorded.name


def test_the_official_client_sends_it(client, replay):
    answer = {
        "id": "i", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": "end_turn",
        "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
    }  # fmt: skip
    request = foreign(Turn("system", [Text("be")]), Turn("assistant", [Text("wait"), CALL]), ANSWER, tools=[LOOK])
    written, _ = write(request)
    written["model"] = replay.register(json.dumps(answer).encode(), "application/json")
    client("anthropic").messages.create(**written)
    assert json.loads(replay.asked[written["model"]]) == written
