"""Requests of Bedrock's Converse: read, written, and read from and written for others.

Source: dialects.md §6.1, §7.3, §7.4; seeds.md S2; botocore's model of ``ConverseRequest``.
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
from streamkit.dialects.vocabulary.sealed_reasoning import seal
from streamkit.events import Aside, Opaque
from streamkit.report import StreamReport
from streamkit.text.identifiers import portable_id, portable_name
from streamkit.translation.bodies import decode_request
from streamkit.translation.content_passes import OPENING
from tests.requests.rows import HI, NONE, Dialect, Members, Row, by_model, by_system, by_user, parameters, rows

PNG, PDF = "iVBORw0KGgo=", "JVBERi0="
CLAUDE = "us.anthropic.claude-opus-4-8-v1:0"
#: One that takes a budget of thinking and nothing else.
OLDER = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
CLOSED = {**SCHEMA, "additionalProperties": False}
POINT = {"cachePoint": {"type": "default"}}
HOUR = {"cachePoint": {"type": "default", "ttl": "1h"}}


def user(*content: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(content), **more}


def assistant(*content: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(content)}


def use(call_id: str = "tooluse_1", given: Any = None, **more: Any) -> dict[str, Any]:
    return {"toolUse": {"toolUseId": call_id, "name": "look", "input": given or {"q": "x"}, **more}}


def answer(*content: dict[str, Any], call_id: str = "tooluse_1", **more: Any) -> dict[str, Any]:
    return {"toolResult": {"toolUseId": call_id, "content": list(content or ({"text": "done"},)), **more}}


def image(**more: Any) -> dict[str, Any]:
    return {"image": {"format": "png", "source": {"bytes": PNG}, **more}}


def thought(text: str = "h", **more: Any) -> dict[str, Any]:
    return {"reasoningContent": {"reasoningText": {"text": text, **more}}}


def redacted(data: str) -> dict[str, Any]:
    return {"reasoningContent": {"redactedContent": data}}


def spec(name: str = "look", schema: Any = SCHEMA, **more: Any) -> dict[str, Any]:
    return {"toolSpec": {"name": name, "inputSchema": {"json": schema}, **more}}


BEDROCK = Dialect(
    "bedrock",
    {"messages": [user({"text": "hi"})]},
    Request("bedrock", None, [HI]),
    Request("openai-chat", CLAUDE, [HI]),
    {"linked_media": "drop"},
)
CALL = ToolCall(0, "tooluse_1", "look", '{"q":"x"}')
ANSWER = Turn("user", [ToolResult("tooluse_1", [Text("done")])])
LOOK = Tool("look", "looks", SCHEMA)
CITATION = {"title": "t", "location": {"web": {"url": "https://x.test"}}}
SERVER = {"toolUse": {"toolUseId": "s", "name": "web", "type": "server_tool_use", "input": {"n": 1}}}
SEARCHED = {"toolResult": {"toolUseId": "s", "type": "web_search_tool_result", "content": [{"text": "x"}]}}


def frames(number: int, kind: str, start: Any, delta: Any) -> list[Aside]:
    """The asides of a block as a stream would give them."""
    said = [
        ("contentBlockStart", {"contentBlockIndex": number, "start": start}),
        ("contentBlockDelta", {"contentBlockIndex": number, "delta": delta}),
        ("contentBlockStop", {"contentBlockIndex": number}),
    ]
    return [Aside("bedrock", kind, event, payload, block=number) for event, payload in said]


#: What messages say, both ways.
MESSAGES: dict[str, tuple[list[dict[str, Any]], list[Turn]]] = {
    "text": ([user({"text": "hi"})], [by_user(Text("hi"))]),
    "several texts": ([user({"text": "a"}, {"text": "b"})], [by_user(Text("a"), Text("b"))]),
    "marks": ([user({"text": "a"}, POINT, image(), HOUR)], [by_user(Text("a", cache="short"), Media(
        "image", "image/png", PNG, cache="long",
    ))]),
    "marks of nothing": ([user(POINT, {"text": "a"}, POINT, POINT)], [by_user(
        Aside("bedrock", "unknown_event", "content.cachePoint", POINT), Text("a", cache="short"),
        Aside("bedrock", "unknown_event", "content.cachePoint", POINT, block=3),
    )]),
    "a mark of another kind": (
        [user({"text": "a"}, {"cachePoint": {"type": "novel", "ttl": "1h"}})],
        [by_user(Text("a"), Aside(
            "bedrock", "unknown_event", "content.cachePoint", {"cachePoint": {"type": "novel", "ttl": "1h"}}, block=1,
        ))],
    ),
    "an image": ([user(image())], [by_user(Media("image", "image/png", PNG))]),
    "an image in S3": (
        [user({"image": {"format": "jpeg", "source": {"s3Location": {"uri": "s3://bucket/a.jpg", "bucketOwner": "123456789012"}}}})],
        [by_user(Media(
            "image", "image/jpeg", url="s3://bucket/a.jpg", extras={"source": {"s3Location": {"bucketOwner": "123456789012"}}},
        ))],
    ),
    "a document": (
        [user({"text": "read"}, {"document": {
            "format": "pdf", "name": "a", "source": {"bytes": PDF}, "context": "c", "citations": {"enabled": True},
        }})],
        [by_user(Text("read"), Media("file", "application/pdf", PDF, name="a", extras={"context": "c", "citations": {"enabled": True}}))],
    ),
    "a document of no format": (
        [user({"document": {"name": "a", "source": {"s3Location": {"uri": "s3://bucket/a"}}}})],
        [by_user(Media("file", url="s3://bucket/a", name="a"))],
    ),
    "a document in pieces": (
        [user({"document": {"name": "a", "source": {"content": [{"text": "x"}]}}})],
        [by_user(Aside("bedrock", "unknown_event", "content.document", {"document": {
            "name": "a", "source": {"content": [{"text": "x"}]},
        }}))],
    ),
    "a film": ([user({"video": {"format": "three_gp", "source": {"bytes": "eA=="}}})], [by_user(Media("video", "video/3gpp", "eA=="))]),
    "a sound": ([user({"audio": {"format": "mp3", "source": {"bytes": "eA=="}}})], [by_user(Media("audio", "audio/mpeg", "eA=="))]),
    "formats that are spelled in two ways": (
        [user({"audio": {"format": "mpga", "source": {"bytes": "eA=="}}}, {"video": {"format": "mpg", "source": {"bytes": "eA=="}}})],
        [by_user(Media("audio", "audio/mpga", "eA=="), Media("video", "video/mpg", "eA=="))],
    ),
    "a guarded text": ([user({"guardContent": {"text": {"text": "x"}}})], [by_user(Aside(
        "bedrock", "unknown_event", "content.guardContent", {"guardContent": {"text": {"text": "x"}}},
    ))]),
    "the system in the middle": (
        [user({"text": "a"}), {"role": "system", "content": [{"text": "be"}]}, assistant({"text": "b"})],
        [by_user(Text("a")), by_system(Text("be")), by_model(Text("b"))],
    ),
    "calls and results": (
        [
            user({"text": "a"}), assistant({"text": "wait"}, use(), use("tooluse_2")),
            user(answer(), answer({"json": {"n": [1]}}, image(), call_id="tooluse_2", status="error"), {"text": "go"}),
        ],
        [
            by_user(Text("a")), by_model(Text("wait"), CALL, ToolCall(1, "tooluse_2", "look", '{"q":"x"}')),
            by_user(
                ToolResult("tooluse_1", [Text("done")]),
                ToolResult("tooluse_2", [Text('{"n":[1]}', extras={"json": True}), Media("image", "image/png", PNG)], is_error=True),
                Text("go"),
            ),
        ],
    ),
    "marked calls and results": ([assistant(use(), POINT), user(answer(), HOUR)], [
        by_model(ToolCall(0, "tooluse_1", "look", '{"q":"x"}', cache="short")),
        by_user(ToolResult("tooluse_1", [Text("done")], cache="long")),
    ]),
    "a search in a result": (
        [assistant(use()), user(answer({"searchResult": {"source": "s", "title": "t", "content": [{"text": "x"}]}}))],
        [by_model(CALL), by_user(ToolResult("tooluse_1", [Aside("bedrock", "unknown_event", "content.searchResult", {"searchResult": {
            "source": "s", "title": "t", "content": [{"text": "x"}],
        }})]))],
    ),
    "reasoning": (
        [assistant(thought(signature="c2ln"), redacted("eHg="), {"text": "a"})],
        [by_model(Reasoning("h", signature=Opaque("anthropic", "c2ln")), RedactedReasoning(Opaque("anthropic", "eHg=")), Text("a"))],
    ),
    "reasoning that nobody signed": ([assistant(thought(), {"text": "a"})], [by_model(Reasoning("h"), Text("a"))]),
    "citations": (
        [assistant({"citationsContent": {"content": [{"text": "a"}], "citations": [CITATION]}}, {"text": "b"})],
        [by_model(Text("a"), Aside("bedrock", "citation", "citation", CITATION), Text("b"))],
    ),
    "tools of the provider": (
        [assistant(SERVER, SEARCHED, {"image": {"format": "novel", "source": {"x": 1}}}, {"text": "a"})],
        [by_model(
            *frames(
                0, "server_tool", {"toolUse": {"toolUseId": "s", "name": "web", "type": "server_tool_use"}},
                {"toolUse": {"input": '{"n":1}'}},
            ),
            *frames(
                1, "server_tool", {"toolResult": {"toolUseId": "s", "type": "web_search_tool_result"}}, {"toolResult": [{"text": "x"}]},
            ),
            *frames(2, "unknown_event", {"image": {"format": "novel"}}, {"image": {"source": {"x": 1}}}), Text("a"),
        )],
    ),
    "members nobody knows": (
        [
            user({"text": "a"}, {"image": {"format": "png", "source": {"bytes": PNG}, "new": 1}}, new=2),
            assistant(thought(new=3), use(new=4), {"novelty": {"x": 1}}, {"citationsContent": {"content": [{"text": "a"}], "new": 5}}),
            user(answer(new=6)),
        ],
        [
            by_user(Text("a"), Media("image", "image/png", PNG, extras={"new": 1}), extras={"new": 2}),
            by_model(
                Reasoning("h", extras={"new": 3}), ToolCall(0, "tooluse_1", "look", '{"q":"x"}', extras={"new": 4}),
                Aside("bedrock", "unknown_event", "content.novelty", {"novelty": {"x": 1}}, block=2), Text("a", extras={"new": 5}),
            ),
            by_user(ToolResult("tooluse_1", [Text("done")], extras={"new": 6})),
        ],
    ),
}  # fmt: skip

#: What is said in two ways, and the one in which it is written.
ALIKE: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {
    "the shorter span": ([user({"text": "a"}, {"cachePoint": {"type": "default", "ttl": "5m"}})], [user({"text": "a"}, POINT)]),
    "that it went well": ([assistant(use()), user(answer(status="success"))], [assistant(use()), user(answer())]),
    "cited text in pieces": (
        [assistant({"citationsContent": {"content": [{"text": "a"}, {"text": "b"}], "citations": [CITATION]}})],
        [assistant({"citationsContent": {"content": [{"text": "ab"}], "citations": [CITATION]}})],
    ),
    "cited text without citations": ([assistant({"citationsContent": {"content": [{"text": "a"}]}})], [assistant({"text": "a"})]),
    "a document as text": (
        [user({"document": {"name": "a", "format": "md", "source": {"text": "xé"}}})],
        [user({"document": {"format": "md", "name": "a", "source": {"bytes": base64.b64encode("xé".encode()).decode()}}})],
    ),
    "a document as text of no format": ([user({"document": {"name": "a", "source": {"text": "x"}}})], [user({"document": {
        "format": "txt", "name": "a", "source": {"bytes": "eA=="},
    }})]),
    "null members": ([user({"text": "a", "image": None})], [user({"text": "a"})]),
}  # fmt: skip


#: Members beside the messages, and the fields of the request that they become, both ways.
MEMBERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "the system": ({"system": [{"text": "be"}, POINT, {"text": "brief"}]}, {"turns": [
        by_system(Text("be", cache="short"), Text("brief")), by_user(Text("hi")),
    ]}),
    "a guarded system": ({"system": [{"guardContent": {"text": {"text": "x"}}}]}, {"turns": [
        by_system(Aside("bedrock", "unknown_event", "content.guardContent", {"guardContent": {"text": {"text": "x"}}})),
        by_user(Text("hi")),
    ]}),
    "options": (
        {
            "inferenceConfig": {"maxTokens": 9, "temperature": 0.5, "topP": 0.9, "stopSequences": ["a", "b"]},
            "additionalModelRequestFields": {"top_k": 5}, "outputConfig": {"effort": "high"}, "serviceTier": {"type": "flex"},
        },
        {"options": Options(9, 0.5, 0.9, 5, ("a", "b"), thinking=Thinking("high"), service_tier="flex")},
    ),
    "thinking with a budget": (
        {"additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 2000}}},
        {"options": Options(thinking=Thinking(budget_tokens=2000, enabled=True))},
    ),
    "thinking that adapts": (
        {"additionalModelRequestFields": {"thinking": {"type": "adaptive", "display": "omitted"}}, "outputConfig": {"effort": "max"}},
        {"options": Options(thinking=Thinking("max", enabled=True, summary="none"))},
    ),
    "no thinking": (
        {"additionalModelRequestFields": {"thinking": {"type": "disabled"}}}, {"options": Options(thinking=Thinking(enabled=False))},
    ),
    "thinking of another model": (
        {"additionalModelRequestFields": {"thinking": {"type": "novel"}, "reasoningConfig": {"type": "enabled"}}},
        {"extras": {"additionalModelRequestFields": {"thinking": {"type": "novel"}, "reasoningConfig": {"type": "enabled"}}}},
    ),
    "a schema of the answer": (
        {"outputConfig": {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": {
            "schema": '{"type":"object"}', "name": "n", "description": "d",
        }}}}},
        {"options": Options(output=OutputFormat("schema", {"type": "object"}, "n", "d"))},
    ),
    "tools": (
        {"toolConfig": {"tools": [
            spec(description="looks", strict=True), POINT, spec("go", {"type": "object"}), {"systemTool": {"name": "web"}},
        ]}},
        {"tools": [
            Tool("look", "looks", SCHEMA, strict=True, cache="short"), Tool("go", None, {"type": "object"}),
            Tool("web", kind="server", raw={"systemTool": {"name": "web"}}),
        ]},
    ),
    "marks of no tool": ({"toolConfig": {"tools": [POINT, spec()]}}, {"tools": [Tool("cachePoint", kind="server", raw=POINT), Tool(
        "look", None, SCHEMA,
    )]}),
    "a marked tool of the provider": ({"toolConfig": {"tools": [{"systemTool": {"name": "web"}}, HOUR]}}, {"tools": [Tool(
        "web", kind="server", raw={"systemTool": {"name": "web"}}, cache="long",
    )]}),
    "any tool may be called": ({"toolConfig": {"tools": [spec()], "toolChoice": {"auto": {}}}}, {"tool_choice": ToolChoice("auto")}),
    "any tool must be called": ({"toolConfig": {"tools": [spec()], "toolChoice": {"any": {}}}}, {"tool_choice": ToolChoice("required")}),
    "one tool must be called": (
        {"toolConfig": {"tools": [spec()], "toolChoice": {"tool": {"name": "look"}}}}, {"tool_choice": ToolChoice("required", ("look",))},
    ),
    "one call at a time": (
        {"toolConfig": {"tools": [spec()]}, "additionalModelRequestFields": {"tool_choice": {
            "type": "auto", "disable_parallel_tool_use": True,
        }}},
        {"tool_choice": ToolChoice("auto", parallel=False)},
    ),
    "one call at a time that must be": (
        {
            "toolConfig": {"tools": [spec()], "toolChoice": {"any": {}}},
            "additionalModelRequestFields": {"tool_choice": {"disable_parallel_tool_use": True}},
        },
        {"tool_choice": ToolChoice("required", parallel=False)},
    ),
    "a choice in the model's own words": (
        {"toolConfig": {"tools": [spec()]}, "additionalModelRequestFields": {"tool_choice": {"type": "none"}}},
        {"tool_choice": None, "extras": {"additionalModelRequestFields": {"tool_choice": {"type": "none"}}}},
    ),
    "a choice of both kinds": (
        {"toolConfig": {"tools": [spec()], "toolChoice": {"auto": {}}}, "additionalModelRequestFields": {"tool_choice": {
            "type": "any", "disable_parallel_tool_use": True,
        }}},
        {"tool_choice": ToolChoice("auto"), "extras": {"additionalModelRequestFields": {"tool_choice": {
            "type": "any", "disable_parallel_tool_use": True,
        }}}},
    ),
    "members that only this dialect has": (
        {
            "guardrailConfig": {"guardrailIdentifier": "g", "guardrailVersion": "1"}, "requestMetadata": {"a": "b"},
            "additionalModelResponseFieldPaths": ["/stop_sequence"], "performanceConfig": {"latency": "optimized"},
            "additionalModelRequestFields": {"top_k": 5, "x": {"y": 1}}, "toolConfig": {"tools": [spec(new=1)], "new": 2},
        },
        {
            "extras": {
                "guardrailConfig": {"guardrailIdentifier": "g", "guardrailVersion": "1"}, "requestMetadata": {"a": "b"},
                "additionalModelResponseFieldPaths": ["/stop_sequence"], "performanceConfig": {"latency": "optimized"},
                "additionalModelRequestFields": {"x": {"y": 1}}, "toolConfig": {"new": 2},
            },
            "tools": [Tool("look", None, SCHEMA, extras={"new": 1})], "options": Options(top_k=5),
        },
    ),
}  # fmt: skip


def test_a_body_of_invoke_model_is_anthropics_request():
    said = {"max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}
    report = StreamReport()
    native = {**said, "anthropic_version": "bedrock-2023-05-31", "anthropic_beta": ["x"]}
    request = decode_request(json.dumps(native).encode(), "bedrock", report=report)
    assert request == decode_request(json.dumps(said).encode(), "anthropic")
    assert report.lost == [("parameter", "anthropic_beta")]
    assert BEDROCK.write(request)[0] == BEDROCK.body({"inferenceConfig": {"maxTokens": 5}})


SEALED = [
    ([thought(signature=seal("reasoning", "google", "R"))], [Reasoning("h", signature=Opaque("google", "R"))]),
    ([{"text": "a"}, redacted(seal("text", "google", "T"))], [Text("a", Opaque("google", "T"))]),
    ([redacted(seal("text", "google", "T"))], [Text("", Opaque("google", "T"))]),
    ([redacted(seal("part", "google", "P"))], [Text("", Opaque("google", "P"))]),
    ([redacted(seal("opaque", "openai", "O"))], [RedactedReasoning(Opaque("openai", "O"))]),
    ([redacted(seal("reasoning", "openai", "R"))], [Reasoning("", signature=Opaque("openai", "R"))]),
    ([redacted(seal("call", "google", "C")), use()], [ToolCall(0, "tooluse_1", "look", '{"q":"x"}', signature=Opaque("google", "C"))]),
    ([redacted(seal("call", "google", "C"))], [RedactedReasoning(Opaque("google", "C"))]),
]  # fmt: skip

BAD: dict[str, tuple[dict[str, Any], str, str]] = {
    "no messages": ({"messages": None}, "messages", "must be a list"),
    "a message that is none": ({"messages": ["hi"]}, "messages[0]", "must be an object"),
    "a role": ({"messages": [{"role": "tool", "content": []}]}, "messages[0].role", "unknown role 'tool'; must be 'system', 'user' or 'assistant'"),
    "content as text": ({"messages": [{"role": "user", "content": "hi"}]}, "messages[0].content", "must be a list, not a string"),
    "no content": ({"messages": [{"role": "user"}]}, "messages[0].content", "must be a list"),
    "a block of two kinds": (
        {"messages": [user({"text": "a", "image": {}})]}, "messages[0].content[0]", "must have exactly one member, not 'text', 'image'",
    ),
    "a block of no kind": ({"messages": [user({})]}, "messages[0].content[0]", "not none"),
    "a text": ({"messages": [user({"text": 1})]}, "messages[0].content[0].text", "must be a string"),
    "no source": ({"messages": [user({"image": {"format": "png"}})]}, "messages[0].content[0].image.source", "must be an object"),
    "a source of two kinds": (
        {"messages": [user({"image": {"source": {"bytes": "", "s3Location": {}}}})]}, "messages[0].content[0].image.source", "exactly one member",
    ),
    "bytes": ({"messages": [user({"image": {"source": {"bytes": "?"}}})]}, "messages[0].content[0].image.source.bytes", "base64"),
    "a place in S3": (
        {"messages": [user({"image": {"source": {"s3Location": {}}}})]}, "messages[0].content[0].image.source.s3Location.uri",
        "must be a string",
    ),
    "a document without a name": (
        {"messages": [user({"document": {"source": {"bytes": ""}}})]}, "messages[0].content[0].document.name", "must be a string",
    ),
    "a call of the user": ({"messages": [user(use())]}, "messages[0].content[0].toolUse", "only allowed in assistant messages"),
    "thoughts of the user": ({"messages": [user(thought())]}, "messages[0].content[0].reasoningContent", "only allowed in assistant messages"),
    "a result of the assistant": ({"messages": [assistant(answer())]}, "messages[0].content[0].toolResult", "only allowed in user messages"),
    "a call without an id": (
        {"messages": [assistant({"toolUse": {"name": "f", "input": {}}})]}, "messages[0].content[0].toolUse.toolUseId", "must be a string",
    ),
    "an input": ({"messages": [assistant(use(given="x"))]}, "messages[0].content[0].toolUse.input", "must be an object, not a string"),
    "a thought": ({"messages": [assistant({"reasoningContent": {}})]}, "messages[0].content[0].reasoningContent", "exactly one member"),
    "redacted content": ({"messages": [assistant(redacted("?"))]}, "messages[0].content[0].reasoningContent.redactedContent", "base64"),
    "a status": ({"messages": [user(answer(status="late"))]}, "messages[0].content[0].toolResult.status", "not 'late'"),
    "what a tool said": (
        {"messages": [user({"toolResult": {"toolUseId": "i", "content": "x"}})]}, "messages[0].content[0].toolResult.content",
        "must be a list",
    ),
    "cited": (
        {"messages": [assistant({"citationsContent": {"content": [{"x": 1}]}})]}, "messages[0].content[0].citationsContent.content[0]",
        "must have the member 'text'",
    ),
    "a mark": ({"messages": [user({"cachePoint": 1})]}, "messages[0].content[0].cachePoint", "must be an object"),
    "the system": ({"system": "be"}, "system", "must be a list, not a string"),
    "a bound": ({"inferenceConfig": {"maxTokens": "9"}}, "inferenceConfig.maxTokens", "must be a number"),
    "a stop": ({"inferenceConfig": {"stopSequences": [1]}}, "inferenceConfig.stopSequences[0]", "must be a string"),
    "no budget": (
        {"additionalModelRequestFields": {"thinking": {"type": "enabled"}}}, "additionalModelRequestFields.thinking.budget_tokens",
        "is missing; must be an integer",
    ),
    "a schema that is no JSON": (
        {"outputConfig": {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": {"schema": "{"}}}}},
        "outputConfig.textFormat.structure.jsonSchema.schema", "must be JSON: ",
    ),
    "no tools": ({"toolConfig": {}}, "toolConfig.tools", "must be a list"),
    "a tool without a schema": (
        {"toolConfig": {"tools": [{"toolSpec": {"name": "f"}}]}}, "toolConfig.tools[0].toolSpec.inputSchema", "must be an object",
    ),
    "a schema": (
        {"toolConfig": {"tools": [{"toolSpec": {"name": "f", "inputSchema": {}}}]}}, "toolConfig.tools[0].toolSpec.inputSchema.json",
        "is missing; must be a JSON schema",
    ),
    "a tool choice": ({"toolConfig": {"tools": [spec()], "toolChoice": {"none": {}}}}, "toolConfig.toolChoice", "not 'none'"),
    "a tool choice of two": (
        {"toolConfig": {"tools": [spec()], "toolChoice": {"auto": {}, "any": {}}}}, "toolConfig.toolChoice", "exactly one member",
    ),
    "no name of a tool": (
        {"toolConfig": {"tools": [spec()], "toolChoice": {"tool": {}}}}, "toolConfig.toolChoice.tool.name", "must be a string",
    ),
}  # fmt: skip


# -- within the dialect: what is mended --------------------------------------------------------------------------------


MENDED = [
    ([user({"text": " "}, {"text": "a"}, {"text": ""}, POINT)], [user({"text": "a"})], {"turn_empty": 2}, {"cache_mark": 1}),
    ([user({"text": ""}), user({"text": "a"})], [user({"text": "a"})], {"turn_empty": 1}, {}),
    ([user({"text": "a"}), user({"text": "b"})], [user({"text": "a"}, {"text": "b"})], {"turns_joined": 1}, {}),
    (
        [assistant(use(), use("tooluse_2")), user(answer(), HOUR), user({"text": "b"}, answer(call_id="tooluse_2"))],
        [assistant(use(), use("tooluse_2")), user(answer(), HOUR, answer(call_id="tooluse_2"), {"text": "b"})], {"result_moved": 1}, {},
    ),
    ([assistant(use()), user({"text": "b"}), user(answer())], [assistant(use()), user(answer(), {"text": "b"})], {"result_moved": 1}, {}),
    (
        [assistant(use()), user(answer({"text": ""}))], [assistant(use()), user({"toolResult": {"toolUseId": "tooluse_1", "content": []}})],
        {"turn_empty": 1}, {},
    ),
]  # fmt: skip


# -- other dialects to this one ----------------------------------------------------------------------------------------

URL, DOC = "https://x.test/a.png", Media("file", "application/pdf", PDF, name="a.pdf")


def document(name: str, form: str = "pdf", data: str = PDF) -> dict[str, Any]:
    return {"document": {"format": form, "name": name, "source": {"bytes": data}}}


#: Turns of another dialect, the messages that are written, and repairs and losses.
FOREIGN: dict[str, tuple[list[Turn], list[dict[str, Any]], dict[str, int], dict[str, int]]] = {
    "text": ([by_user(Text("hi"))], [user({"text": "hi"})], {}, {}),
    "neighbours": (
        [by_user(Text("a")), by_user(Text("b")), by_model(Text("c")), by_model(Text("d"))],
        [user({"text": "a"}, {"text": "b"}), assistant({"text": "c"}, {"text": "d"})], {"turns_joined": 2}, {},
    ),
    "results, and what follows": (
        [by_model(CALL), ANSWER, by_user(Text("go"))], [assistant(use()), user(answer(), {"text": "go"})], {}, {},
    ),
    "an empty turn": ([by_user(Text("a")), by_model()], [user({"text": "a"})], {"turn_empty": 1}, {}),
    "a name": ([by_user(Text("a"), name="ann")], [user({"text": "a"})], {}, {"turn_name": 1}),
    "members of its own": ([by_user(Text("a", extras={"x": 1}), extras={"y": 2})], [user({"text": "a"})], {}, {"metadata": 2}),
    "a mark": ([by_user(Text("a", cache="long"))], [user({"text": "a"}, HOUR)], {}, {"cache_mark": 1}),
    "a mark in a result": (
        [by_model(CALL), by_user(ToolResult("tooluse_1", [Text("done", cache="short")]))], [assistant(use()), user(answer())], {},
        {"cache_mark": 1},
    ),
    "a refusal": ([by_model(Refusal("no"))], [assistant({"text": "no"})], {}, {"refusal_as_text": 1}),
    "an image": ([by_user(Media("image", None, PNG, name="a.png", detail="low"))], [user(image())], {}, {"metadata": 2}),
    "an image of another name": (
        [by_user(Media("image", "image/jpg", "eA=="))], [user({"image": {"format": "jpeg", "source": {"bytes": "eA=="}}})],
        {"media_type_mended": 1}, {},
    ),
    "an image in S3": (
        [by_user(Media("image", "image/png", url="s3://bucket/a.png"))],
        [user({"image": {"format": "png", "source": {"s3Location": {"uri": "s3://bucket/a.png"}}}})], {}, {},
    ),
    "media that it can't carry": (
        [by_user(
            Text("a"), Media("image", url=URL), Media("image", "image/bmp", "eA=="), Media("file", file_id="f"),
            Media("file", "x/y", "eA=="), Media("image", "image/png", url="s3://b/a"),
        )],
        [user({"text": "a"})], {}, {"media": 5},
    ),
    "media of the assistant": ([by_model(Text("a"), Media("image", "image/png", PNG))], [assistant({"text": "a"})], {}, {"media": 1}),
    "media in a result": (
        [by_model(CALL), by_user(ToolResult("tooluse_1", [Media("image", "image/png", PNG), Media("audio", "audio/wav", "eA==")]))],
        [assistant(use()), user(answer(image()))], {}, {"media": 1},
    ),
    "a sound and a film": (
        [by_user(Media("audio", "audio/x-wav", "eA=="), Media("video", "video/quicktime", "eA=="))],
        [user({"audio": {"format": "wav", "source": {"bytes": "eA=="}}}, {"video": {"format": "mov", "source": {"bytes": "eA=="}}})], {},
        {},
    ),
    "documents": (
        [by_user(DOC, DOC, Media("file", "text/plain; charset=utf-8", "eA=="), Media("file", None, PDF))],
        [user(
            document("a"), document("a (2)"), document("document", "txt", "eA=="), document("document (2)"),
            {"text": "(A document is attached.)"},
        )],
        {"text_added": 1}, {},
    ),
    "names of documents": (
        [by_user(Media("file", "text/csv", "eA==", name="John's  résumé_v1.2.csv"), Media("file", "text/csv", "eA==", name="报告.csv"))],
        [user(document("John s r sum v1 2", "csv", "eA=="), document("document", "csv", "eA=="), {"text": "(A document is attached.)"})],
        {"text_added": 1}, {"metadata": 2},
    ),
    "ids and names": (
        [
            by_model(ToolCall(0, "call/1", "files.read", "{}"), ToolCall(1, "a.b:c-d_e", "look", "{}")),
            by_user(ToolResult("call/1", [Text("x")]), ToolResult("a.b:c-d_e", [Text("x")])),
        ],
        [
            assistant(
                {"toolUse": {"toolUseId": portable_id("call/1"), "name": portable_name("files.read"), "input": {}}},
                {"toolUse": {"toolUseId": "a.b:c-d_e", "name": "look", "input": {}}},
            ),
            user(answer({"text": "x"}, call_id=portable_id("call/1")), answer({"text": "x"}, call_id="a.b:c-d_e")),
        ],
        {"id_rewritten": 1, "name_rewritten": 1}, {},
    ),
    "arguments": (
        [
            by_model(ToolCall(0, "a", "f", ""), ToolCall(1, "b", "f", "[1]"), ToolCall(2, "c", "f", "x", "custom")),
            by_user(*[ToolResult(i, [Text("x")]) for i in "abc"]),
        ],
        [
            assistant(*({"toolUse": {"toolUseId": i, "name": "f", "input": given}} for (i, given) in [("a", {}), ("b", {"_raw_arguments": "[1]"}), ("c", {"input": "x"})])),
            user(*(answer({"text": "x"}, call_id=i) for i in "abc")),
        ],
        {}, {"arguments_wrapped": 1, "custom_tool_wrapped": 1},
    ),
    "an error": (
        [by_model(CALL), by_user(ToolResult("tooluse_1", [Text("no")], name="look", is_error=True))],
        [assistant(use()), user(answer({"text": "no"}, status="error"))], {}, {},
    ),
    "reasoning": (
        [
            by_model(
                Reasoning("h"), Reasoning("i", signature=Opaque("google", "S")), Reasoning("j", signature=Opaque("anthropic", "c2ln")),
                RedactedReasoning(Opaque("openai", "O")), RedactedReasoning(Opaque("anthropic", "eHg=")), Text("a", Opaque("google", "T")),
                ToolCall(0, "tooluse_1", "look", '{"q":"x"}', signature=Opaque("google", "C")),
            ),
            ANSWER,
        ],
        [assistant(thought("j", signature="c2ln"), redacted("eHg="), {"text": "a"}, use()), user(answer())], {},
        {"reasoning_history": 2, "reasoning_signature": 3, "reasoning_opaque": 1},
    ),
    "parts of other vendors": (
        [by_user(Text("a"), Aside("openai", "unknown_event", "content.x", {}))], [user({"text": "a"})], {}, {"unknown_event": 1},
    ),
}  # fmt: skip

THINK = {"additionalModelRequestFields": {"thinking": {"type": "adaptive"}}}
#: A model and options of another dialect, the members that are written, and the losses with their names.
OPTIONS: dict[str, tuple[str, Options, dict[str, Any], list[str]]] = {
    "none": (CLAUDE, Options(), {}, []),
    "what has a field": (
        "m", Options(5, 1.0, 0.9, stop=("a",), choices=1, service_tier="priority"),
        {"inferenceConfig": {"maxTokens": 5, "temperature": 1.0, "topP": 0.9, "stopSequences": ["a"]}, "serviceTier": {"type": "priority"}},
        [],
    ),
    "what has none": (
        "m",
        Options(
            temperature=1.5, top_k=3, seed=1, presence_penalty=0.5, frequency_penalty=0.5, logprobs=True, top_logprobs=2,
            service_tier="scale", user="u",
        ),
        {}, ["temperature", "top_k", "seed", "presence_penalty", "frequency_penalty", "logprobs", "top_logprobs", "service_tier", "user"],
    ),
    "top_k of Claude": (OLDER, Options(top_k=3), {"additionalModelRequestFields": {"top_k": 3}}, []),
    "top_k of a Claude that takes none": (CLAUDE, Options(top_k=3), {}, ["top_k"]),
    "an effort": (CLAUDE, Options(thinking=Thinking("xhigh")), {**THINK, "outputConfig": {"effort": "xhigh"}}, []),
    "an effort of another model": ("amazon.nova", Options(thinking=Thinking("low")), {"outputConfig": {"effort": "low"}}, []),
    "an effort that it lacks": (
        CLAUDE, Options(thinking=Thinking("minimal")), {**THINK, "outputConfig": {"effort": "low"}}, ["thinking.effort"],
    ),
    "no effort": (CLAUDE, Options(thinking=Thinking("none")), {"additionalModelRequestFields": {"thinking": {"type": "disabled"}}}, []),
    "no effort of another model": ("m", Options(thinking=Thinking("none")), {}, ["thinking.effort"]),
    "a budget": (
        OLDER, Options(thinking=Thinking(budget_tokens=2000, summary="auto")),
        {"additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 2000, "display": "summarized"}}}, [],
    ),
    "a budget that is too small": (
        OLDER, Options(thinking=Thinking(budget_tokens=5)),
        {"additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 1024}}}, ["thinking.budget_tokens"],
    ),
    "a budget of another model": (
        "m", Options(thinking=Thinking(budget_tokens=5, enabled=True, summary="none")), {"outputConfig": {"effort": "low"}},
        ["thinking.budget_tokens", "thinking.summary"],
    ),
    "a summary alone": (CLAUDE, Options(thinking=Thinking(summary="auto")), {}, ["thinking.summary"]),
    "a longer summary": (
        CLAUDE, Options(thinking=Thinking(enabled=True, summary="detailed")),
        {"additionalModelRequestFields": {"thinking": {"type": "adaptive", "display": "summarized"}}}, ["thinking.summary"],
    ),
    "an answer of JSON": ("m", Options(output=OutputFormat("json")), {}, ["output"]),
    "an answer of text": ("m", Options(output=OutputFormat("text")), {}, []),
    "a schema of the answer": (
        "m", Options(output=OutputFormat("schema", {"type": "object"}, strict=False)),
        {"outputConfig": {"textFormat": {
            "type": "json_schema",
            "structure": {"jsonSchema": {"schema": '{"type":"object","properties":{},"additionalProperties":false}'}},
        }}},
        ["output.strict"],
    ),
}  # fmt: skip

#: Tools of another dialect, the definitions that are written, and the losses.
TOOLS: dict[str, tuple[Tool, list[dict[str, Any]], dict[str, int]]] = {
    "a function": (LOOK, [spec(description="looks")], {}),
    "no parameters": (Tool("f", ""), [spec("f", {"type": "object"})], {}),
    "empty parameters": (Tool("f", None, {}), [spec("f", {"type": "object"})], {}),
    "strict": (Tool("f", None, SCHEMA, strict=True), [spec("f", CLOSED, strict=True)], {}),
    "not strict": (Tool("f", None, SCHEMA, strict=False), [spec("f")], {}),
    "marked": (Tool("f", None, SCHEMA, cache="long"), [spec("f"), HOUR], {"cache_mark": 1}),
    "of its own": (Tool("f", None, SCHEMA, extras={"x": 1}), [spec("f")], {"metadata": 1}),
    "custom": (
        Tool("f", "d", kind="custom"),
        [spec("f", {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}, description="d")],
        {"custom_tool_wrapped": 1},
    ),
}  # fmt: skip

SERIAL = {"disable_parallel_tool_use": True}

CHOICES = [
    (CLAUDE, ToolChoice("auto"), {"auto": {}}, None, {}),
    (CLAUDE, ToolChoice("required"), {"any": {}}, None, {}),
    (CLAUDE, ToolChoice("required", ("look",)), {"tool": {"name": "look"}}, None, {}),
    (CLAUDE, ToolChoice("auto", parallel=True), {"auto": {}}, None, {}),
    (CLAUDE, ToolChoice("auto", parallel=False), None, {"type": "auto", **SERIAL}, {}),
    (CLAUDE, ToolChoice("required", parallel=False), {"any": {}}, SERIAL, {}),
    ("amazon.nova", ToolChoice("auto", parallel=False), {"auto": {}}, None, {"tool_choice": 1}),
    (CLAUDE, ToolChoice("auto", extras={"x": 1}), {"auto": {}}, None, {"tool_choice": 1}),
]  # fmt: skip

STRAY = [
    (frames(0, "server_tool", {"toolUse": {}}, {"toolUse": {"input": "{}"}})[1:], {"server_tool": 2}),
    ([Aside("bedrock", "citation", "citation", CITATION, block=9)], {"citation": 1}),
    ([Aside("bedrock", "metadata", "metadata.trace", {})], {"metadata": 1}),
]  # fmt: skip


def test_a_part_that_no_message_has_is_the_programs_mistake():
    with pytest.raises(TypeError, match="a message can't contain a Thinking"):
        BEDROCK.write(evolve(BEDROCK.foreign, turns=[by_user(Thinking())]))


# -- the recordings of other dialects, and the official client ---------------------------------------------------------


def test_the_official_client_sends_it(client, replay):
    boto3 = client("boto3")
    answered = {"output": {"message": {"role": "assistant", "content": []}}, "stopReason": "end_turn"}
    counted = {"usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}, "metrics": {"latencyMs": 1}}
    asked = Turn("user", [Text("see"), Media("image", "image/png", PNG), DOC])
    thinking = [Reasoning("h", signature=Opaque("anthropic", "c2ln")), RedactedReasoning(Opaque("anthropic", "eHg="))]
    turns = [by_system(Text("be")), asked, by_model(*thinking, Text("wait"), CALL), ANSWER]
    options = Options(5, thinking=Thinking(budget_tokens=2000))
    written, _ = BEDROCK.write(evolve(BEDROCK.foreign, turns=turns, tools=[LOOK], options=options))
    name = replay.register(json.dumps({**answered, **counted}).encode(), "application/json")
    boto3.converse(modelId=name, **as_bytes(written))
    assert json.loads(replay.asked[name]) == written


def as_bytes(value: Any) -> Any:
    """A body as boto3 takes it: what stands in base64 as bytes."""
    if isinstance(value, list):
        return [as_bytes(each) for each in value]
    if not isinstance(value, dict):
        return value
    blobs = {"bytes", "redactedContent"}
    return {name: base64.b64decode(each) if name in blobs else as_bytes(each) for name, each in value.items()}


# -- all rows ----------------------------------------------------------------------------------------------------------

CLOSING = {"schema_closed": 1}
TOOLED = {"toolConfig": {"tools": [spec()]}}
LOOKING = {"toolConfig": {"tools": [spec(description="looks")]}}
BUDGET = Options(thinking=Thinking(budget_tokens=2000))
DEMANDED = {"tools": [LOOK], "tool_choice": ToolChoice("required")}


def turns_row(turns: list[Turn], messages: list[Any], repairs: Members, losses: Members) -> Row:
    if messages[0]["role"] == "assistant":
        messages, repairs = [user({"text": OPENING}), *messages], {**repairs, "turn_added": 1}
    return BEDROCK.of_another(
        {"turns": turns, "tools": [LOOK], "model": OLDER}, {**LOOKING, "messages": messages}, losses, repairs
    )


def members_row(members: Members, read: Members) -> Row:
    tools = {"tools": [Tool("look", None, SCHEMA)]} if members.get("toolConfig", {}).get("tools") == [spec()] else {}
    return BEDROCK.kept(members, **{**tools, **read})


def of_this(*parts: Part, **more: Any) -> dict[str, Any]:
    """A turn of the model in this very dialect."""
    return {"dialect": "bedrock", "model": None, "turns": [by_model(*parts)], **more}


def said_here(parts: list[Part], messages: list[Any], losses: Members = NONE) -> Row:
    return BEDROCK.of_another(of_this(*parts), {"messages": messages}, losses, typed=False)


def choice_row(model: str, choice: ToolChoice, chosen: Any, native: Any, losses: Members) -> Row:
    config = {**LOOKING["toolConfig"], **({"toolChoice": chosen} if chosen else {})}
    fields = {"tool_choice": native} if native else {}
    return BEDROCK.of_another(
        {"model": model, "tools": [LOOK], "tool_choice": choice},
        {"toolConfig": config, "additionalModelRequestFields": fields or ...},
        losses,
    )


def some_tools(mode: Any) -> dict[str, Any]:
    return {"tools": [LOOK, Tool("go"), Tool("stop")], "tool_choice": ToolChoice(mode, ("look", "go"))}


def thought_before(signature: Opaque | None, losses: Any, **members: Any) -> Row:
    """A budget needs what Claude thought before the calls."""
    thoughts = [thought(signature="c2ln")] if members else []
    return BEDROCK.of_another(
        {
            "turns": [HI, by_model(Reasoning("h", signature=signature), CALL), ANSWER],
            "model": OLDER,
            "tools": [LOOK],
            "options": BUDGET,
        },
        {**LOOKING, "messages": [user({"text": "hi"}), assistant(*thoughts, use()), user(answer())], **members},
        losses,
    )


WEB = {"toolUse": {"toolUseId": "s", "name": "web", "type": "server_tool_use"}}
PICTURE = frames(0, "unknown_event", {"image": {"format": "png"}}, {"image": {"source": {"bytes": PNG}}})

ROWS = {
    **rows("messages", MESSAGES, lambda messages, turns: BEDROCK.kept(
        {"messages": messages, **TOOLED}, turns=turns, tools=[Tool("look", None, SCHEMA)]
    )),
    **rows("alike", ALIKE, lambda messages, written: BEDROCK.alike({"messages": messages, **TOOLED}, {"messages": written, **TOOLED})),
    **rows("members", MEMBERS, members_row),
    **rows("sealed", SEALED, lambda blocks, parts: BEDROCK.means({"messages": [assistant(*blocks)]}, turns=[by_model(*parts)])),
    **rows("bad", BAD, BEDROCK.refused),
    **rows("mended", MENDED, lambda messages, written, repairs, losses: BEDROCK.alike(
        {"messages": messages, **TOOLED}, {"messages": written, **TOOLED}, repairs=repairs, losses=losses
    )),
    **rows("turns", FOREIGN, turns_row),
    **rows("options", OPTIONS, lambda model, options, members, names: BEDROCK.of_another(
        {"model": model, "options": options}, members, parameters(*names), CLOSING if options.output and options.output.schema else {}
    )),
    **rows("tools", TOOLS, lambda tool, definitions, losses: BEDROCK.of_another(
        {"tools": [tool]}, {"toolConfig": {"tools": definitions}}, losses, CLOSING if tool.strict else {}
    )),
    **rows("choices", CHOICES, choice_row),
    **rows("stray", STRAY, lambda asides, losses: said_here([Text("a"), *asides], [assistant({"text": "a"})], losses)),
    "the model, which the URL names": BEDROCK.means({"modelId": CLAUDE}, model=CLAUDE),
    "a stream, which the URL names": BEDROCK.of_another({"stream": True, "stream_usage": True}, {}),
    "the system is at the top": BEDROCK.of_another(
        {"turns": [
            by_system(Text("be")), by_system(Text("brief"), native_role="developer"), by_user(Text("a")), by_system(Text("now")), by_user(Text("b")),
        ]},
        {"system": [{"text": "be"}, {"text": "brief"}, {"text": "now"}], "messages": [user({"text": "a"}, {"text": "b"})]},
        {"system_place": 1}, {"turns_joined": 1},
    ),
    "the system alone": BEDROCK.unwritable({"turns": [by_system(Text("be"))]}, "messages", "Bedrock requires a user message in addition to the system's"),
    "the system alone, as the user": BEDROCK.of_another(
        {"turns": [by_system(Text("be"))]}, {"messages": [user({"text": "be"})]}, {"system_place": 1}, target={"emulate": True}
    ),
    "marks of Anthropic": BEDROCK.of_another(
        {"dialect": "anthropic", "turns": [by_user(Text("a", cache="long"))], "tools": [Tool("f", cache="short")]},
        {"messages": [user({"text": "a"}, HOUR)], "toolConfig": {"tools": [spec("f", {"type": "object"}), POINT]}},
    ),
    "members of another dialect": BEDROCK.of_another({"extras": {"logit_bias": {"1": 2}, "store": True}}, {}, parameters("logit_bias", "store")),
    "several choices": BEDROCK.unwritable({"options": Options(choices=2)}, "n", "Bedrock returns one choice, not 2"),
    "a tool of another provider": BEDROCK.of_another(
        {"tools": [Tool("web", kind="server", raw={"type": "web"})]}, {}, [("tool_definition", "web")]
    ),
    "a name that does not fit": BEDROCK.of_another(
        {"tools": [Tool("files.read", None, SCHEMA)], "tool_choice": ToolChoice("required", ("files.read",))},
        {"toolConfig": {"tools": [spec(portable_name("files.read"))], "toolChoice": {"tool": {"name": portable_name("files.read")}}}},
        {}, {"name_rewritten": 1},
    ),
    **rows("some tools", ["auto", "required"], lambda mode: BEDROCK.unwritable(some_tools(mode), "tool_choice", "some of the tools")),
    **rows("some tools, imitated", [("auto", "auto"), ("required", "any")], lambda mode, chosen: BEDROCK.of_another(
        some_tools(mode), {"toolConfig": {
            "tools": [spec(description="looks"), spec("go", {"type": "object"})], "toolChoice": {chosen: {}},
        }}, {"tool_choice": 1}, target={"emulate": True},
    )),
    "no tool": BEDROCK.of_another({"tools": [LOOK], "tool_choice": ToolChoice("none")}, {}, [("tool_choice", "none")]),
    **rows("called tools", [([], None, {}), ([LOOK], ToolChoice("none", parallel=False), {"tool_choice": 1})], lambda tools, choice, losses: BEDROCK.of_another(
        {
            "turns": [by_model(CALL, ToolCall(1, "b", "files.read", "{}")), by_user(ToolResult("tooluse_1"), ToolResult("b"))],
            "tools": tools, "tool_choice": choice,
        },
        None, losses, {"tool_declared": 2, "name_rewritten": 1, "turn_added": 1},
        at={"toolConfig": {"tools": [spec("look", {"type": "object"}), spec(portable_name("files.read"), {"type": "object"})]}},
    )),
    "a tool that must be called is not there": BEDROCK.unwritable({"tool_choice": ToolChoice("required")}, "tool_choice", "the request defines no tools"),
    "no tool that may be called": BEDROCK.of_another({"tool_choice": ToolChoice("auto", parallel=False)}, {}),
    "a call that is demanded of one who thinks": BEDROCK.unwritable({**DEMANDED, "model": OLDER, "options": BUDGET}, "tool_choice", "while thinking"),
    "it is imitated": BEDROCK.of_another(
        {**DEMANDED, "model": OLDER, "options": BUDGET}, None, {"tool_choice": 1}, at={"toolConfig.toolChoice": {"auto": {}}}, target={"emulate": True}
    ),
    "an effort stays beside a required call": BEDROCK.of_another(
        {**DEMANDED, "options": Options(thinking=Thinking("high"))},
        {
            "toolConfig": {**LOOKING["toolConfig"], "toolChoice": {"any": {}}}, "outputConfig": {"effort": "high"},
            "additionalModelRequestFields": {"thinking": {"type": "adaptive"}},
        },
    ),
    "a budget without thoughts": thought_before(None, [*parameters("thinking"), ("reasoning_history", "")]),
    "a budget and thoughts of another": thought_before(
        Opaque("google", "S"), [*parameters("thinking"), ("reasoning_signature", "google"), ("reasoning_history", "")]
    ),
    "a budget and thoughts": thought_before(
        Opaque("anthropic", "c2ln"), {}, additionalModelRequestFields={"thinking": {"type": "enabled", "budget_tokens": 2000}}
    ),
    "JSON that became text": BEDROCK.of_another(
        of_this(tools=[LOOK], turns=[
            by_user(Text("1", extras={"json": True})), by_model(CALL), by_user(ToolResult("tooluse_1", [Text("{", extras={"json": True})]))
        ]),
        {**LOOKING, "messages": [user({"text": "1"}), assistant(use()), user(answer({"text": "{"}))]},
    ),
    "JSON is text elsewhere": BEDROCK.translated(
        "anthropic", {"messages": [assistant(use()), user(answer({"json": [1]}))]}, {}, [("metadata", "json")], repairs=None
    ),
    "an image of two sources": said_here([*PICTURE[:2], *PICTURE[1:]], [assistant(image())], {"unknown_event": 1}),
    "a signature of no text": BEDROCK.of_another(
        {"turns": [by_model(Text("", Opaque("google", "P")), Text("a"))], "model": OLDER},
        {"messages": [user({"text": OPENING}), assistant({"text": "a"})]}, {"reasoning_signature": 1}, {"turn_added": 1},
    ),
    "a citation before its text": said_here(
        [Aside("bedrock", "citation", "citation", CITATION, block=1), Text("a", block=1)],
        [assistant({"citationsContent": {"content": [{"text": "a"}], "citations": [CITATION]}})],
    ),
    "an input of the provider that is no object": said_here(
        frames(0, "server_tool", WEB, {"toolUse": {"input": "[1]"}}),
        [assistant({"toolUse": {**WEB["toolUse"], "input": {"_raw_arguments": "[1]"}}})], {"arguments_wrapped": 1},
    ),
    "an input of the provider that never came": said_here(
        frames(0, "server_tool", WEB, {})[::2], [assistant({"toolUse": {**WEB["toolUse"], "input": {}}})]
    ),
}  # fmt: skip

#: Rows with something that the client does not let its user write.
BEYOND = {
    "messages: a mark of another kind", "messages: members nobody knows", "messages: tools of the provider",
    "members: members that only this dialect has",
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_a_request(name):
    BEDROCK.check(ROWS[name], beyond=name in BEYOND)
