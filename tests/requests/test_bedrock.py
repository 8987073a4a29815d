"""Requests of Bedrock's Converse: read, written, and read from and written for others.

Source: dialects.md §6.1, §7.3, §7.4; seeds.md S2; botocore's model of ``ConverseRequest``.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from itertools import pairwise
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
from streamkit.dialects.vocabulary.sealed_reasoning import seal
from streamkit.errors import BadRequest
from streamkit.events import Aside, Opaque
from streamkit.report import StreamReport
from streamkit.text.identifiers import portable_id, portable_name
from streamkit.translation.bodies import decode_request, encode_request
from streamkit.translation.lowering.turns import OPENING
from tests.corpora import requests
from tests.requests.sdk_types import faults

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


def body(*messages: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"messages": list(messages or (user({"text": "hi"}),)), **members}


def read(*messages: dict[str, Any], **members: Any) -> Request:
    report = StreamReport()
    request = decode_request(json.dumps(body(*messages, **members)).encode(), "bedrock", report=report)
    assert not report.repairs
    return request


def write(request: Request, to: str = "bedrock", **options: Any) -> tuple[dict[str, Any], StreamReport]:
    report = StreamReport()
    options = {"linked_media": "drop", **options}
    return json.loads(encode_request(request, to, report=report, **options)), report


def foreign(*turns: Turn, **members: Any) -> Request:
    """A request of another dialect."""
    return Request("openai-chat", **{"model": CLAUDE, "turns": list(turns) or [Turn("user", [Text("hi")])], **members})


def lost(report: StreamReport) -> dict[str, int]:
    return dict(report.losses)


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
    "text": ([user({"text": "hi"})], [Turn("user", [Text("hi")])]),
    "several texts": ([user({"text": "a"}, {"text": "b"})], [Turn("user", [Text("a"), Text("b")])]),
    "marks": (
        [user({"text": "a"}, POINT, image(), HOUR)],
        [Turn("user", [Text("a", cache="short"), Media("image", "image/png", PNG, cache="long")])],
    ),
    "marks of nothing": (
        [user(POINT, {"text": "a"}, POINT, POINT)],
        [
            Turn(
                "user",
                [
                    Aside("bedrock", "unknown_event", "content.cachePoint", POINT),
                    Text("a", cache="short"),
                    Aside("bedrock", "unknown_event", "content.cachePoint", POINT, block=3),
                ],
            )
        ],
    ),
    "a mark of another kind": (
        [user({"text": "a"}, {"cachePoint": {"type": "novel", "ttl": "1h"}})],
        [Turn("user", [Text("a"), Aside("bedrock", "unknown_event", "content.cachePoint", {"cachePoint": {"type": "novel", "ttl": "1h"}}, block=1)])],
    ),
    "an image": ([user(image())], [Turn("user", [Media("image", "image/png", PNG)])]),
    "an image in S3": (
        [user({"image": {"format": "jpeg", "source": {"s3Location": {"uri": "s3://bucket/a.jpg", "bucketOwner": "123456789012"}}}})],
        [Turn("user", [Media("image", "image/jpeg", url="s3://bucket/a.jpg", extras={"source": {"s3Location": {"bucketOwner": "123456789012"}}})])],
    ),
    "a document": (
        [user({"text": "read"}, {"document": {"format": "pdf", "name": "a", "source": {"bytes": PDF}, "context": "c", "citations": {"enabled": True}}})],
        [Turn("user", [Text("read"), Media("file", "application/pdf", PDF, name="a", extras={"context": "c", "citations": {"enabled": True}})])],
    ),
    "a document of no format": (
        [user({"document": {"name": "a", "source": {"s3Location": {"uri": "s3://bucket/a"}}}})],
        [Turn("user", [Media("file", url="s3://bucket/a", name="a")])],
    ),
    "a document in pieces": (
        [user({"document": {"name": "a", "source": {"content": [{"text": "x"}]}}})],
        [Turn("user", [Aside("bedrock", "unknown_event", "content.document", {"document": {"name": "a", "source": {"content": [{"text": "x"}]}}})])],
    ),
    "a film": ([user({"video": {"format": "three_gp", "source": {"bytes": "eA=="}}})], [Turn("user", [Media("video", "video/3gpp", "eA==")])]),
    "a sound": ([user({"audio": {"format": "mp3", "source": {"bytes": "eA=="}}})], [Turn("user", [Media("audio", "audio/mpeg", "eA==")])]),
    "formats that are spelled in two ways": (
        [user({"audio": {"format": "mpga", "source": {"bytes": "eA=="}}}, {"video": {"format": "mpg", "source": {"bytes": "eA=="}}})],
        [Turn("user", [Media("audio", "audio/mpga", "eA=="), Media("video", "video/mpg", "eA==")])],
    ),
    "a guarded text": (
        [user({"guardContent": {"text": {"text": "x"}}})],
        [Turn("user", [Aside("bedrock", "unknown_event", "content.guardContent", {"guardContent": {"text": {"text": "x"}}})])],
    ),
    "the system in the middle": (
        [user({"text": "a"}), {"role": "system", "content": [{"text": "be"}]}, assistant({"text": "b"})],
        [Turn("user", [Text("a")]), Turn("system", [Text("be")]), Turn("assistant", [Text("b")])],
    ),
    "calls and results": (
        [
            user({"text": "a"}),
            assistant({"text": "wait"}, use(), use("tooluse_2")),
            user(answer(), answer({"json": {"n": [1]}}, image(), call_id="tooluse_2", status="error"), {"text": "go"}),
        ],
        [
            Turn("user", [Text("a")]),
            Turn("assistant", [Text("wait"), CALL, ToolCall(1, "tooluse_2", "look", '{"q":"x"}')]),
            Turn(
                "user",
                [
                    ToolResult("tooluse_1", [Text("done")]),
                    ToolResult("tooluse_2", [Text('{"n":[1]}', extras={"json": True}), Media("image", "image/png", PNG)], is_error=True),
                    Text("go"),
                ],
            ),
        ],
    ),
    "marked calls and results": (
        [assistant(use(), POINT), user(answer(), HOUR)],
        [
            Turn("assistant", [ToolCall(0, "tooluse_1", "look", '{"q":"x"}', cache="short")]),
            Turn("user", [ToolResult("tooluse_1", [Text("done")], cache="long")]),
        ],
    ),
    "a search in a result": (
        [assistant(use()), user(answer({"searchResult": {"source": "s", "title": "t", "content": [{"text": "x"}]}}))],
        [
            Turn("assistant", [CALL]),
            Turn(
                "user",
                [
                    ToolResult(
                        "tooluse_1",
                        [
                            Aside(
                                "bedrock",
                                "unknown_event",
                                "content.searchResult",
                                {"searchResult": {"source": "s", "title": "t", "content": [{"text": "x"}]}},
                            )
                        ],
                    )
                ],
            ),
        ],
    ),
    "reasoning": (
        [assistant(thought(signature="c2ln"), redacted("eHg="), {"text": "a"})],
        [Turn("assistant", [Reasoning("h", signature=Opaque("anthropic", "c2ln")), RedactedReasoning(Opaque("anthropic", "eHg=")), Text("a")])],
    ),
    "reasoning that nobody signed": ([assistant(thought(), {"text": "a"})], [Turn("assistant", [Reasoning("h"), Text("a")])]),
    "citations": (
        [assistant({"citationsContent": {"content": [{"text": "a"}], "citations": [CITATION]}}, {"text": "b"})],
        [Turn("assistant", [Text("a"), Aside("bedrock", "citation", "citation", CITATION), Text("b")])],
    ),
    "tools of the provider": (
        [assistant(SERVER, SEARCHED, {"image": {"format": "novel", "source": {"x": 1}}}, {"text": "a"})],
        [
            Turn(
                "assistant",
                [
                    *frames(
                        0,
                        "server_tool",
                        {"toolUse": {"toolUseId": "s", "name": "web", "type": "server_tool_use"}},
                        {"toolUse": {"input": '{"n":1}'}},
                    ),
                    *frames(
                        1,
                        "server_tool",
                        {"toolResult": {"toolUseId": "s", "type": "web_search_tool_result"}},
                        {"toolResult": [{"text": "x"}]},
                    ),
                    *frames(2, "unknown_event", {"image": {"format": "novel"}}, {"image": {"source": {"x": 1}}}),
                    Text("a"),
                ],
            )
        ],
    ),
    "members nobody knows": (
        [
            user({"text": "a"}, {"image": {"format": "png", "source": {"bytes": PNG}, "new": 1}}, new=2),
            assistant(thought(new=3), use(new=4), {"novelty": {"x": 1}}, {"citationsContent": {"content": [{"text": "a"}], "new": 5}}),
            user(answer(new=6)),
        ],
        [
            Turn("user", [Text("a"), Media("image", "image/png", PNG, extras={"new": 1})], extras={"new": 2}),
            Turn(
                "assistant",
                [
                    Reasoning("h", extras={"new": 3}),
                    ToolCall(0, "tooluse_1", "look", '{"q":"x"}', extras={"new": 4}),
                    Aside("bedrock", "unknown_event", "content.novelty", {"novelty": {"x": 1}}, block=2),
                    Text("a", extras={"new": 5}),
                ],
            ),
            Turn("user", [ToolResult("tooluse_1", [Text("done")], extras={"new": 6})]),
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MESSAGES)
def test_messages_are_turns_and_come_back(name):
    messages, turns = MESSAGES[name]
    request = read(*messages, toolConfig={"tools": [spec()]})
    assert request.turns == turns
    written, report = write(request)
    assert written == body(*messages, toolConfig={"tools": [spec()]})
    assert (report.repairs, report.losses) == (Counter(), Counter())


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
        [user({"document": {"name": "a", "format": "md", "source": {"text": "x\u00e9"}}})],
        [user({"document": {"format": "md", "name": "a", "source": {"bytes": base64.b64encode("x\u00e9".encode()).decode()}}})],
    ),
    "a document as text of no format": (
        [user({"document": {"name": "a", "source": {"text": "x"}}})],
        [user({"document": {"format": "txt", "name": "a", "source": {"bytes": "eA=="}}})],
    ),
    "null members": ([user({"text": "a", "image": None})], [user({"text": "a"})]),
}  # fmt: skip


@pytest.mark.parametrize("name", ALIKE)
def test_messages_that_say_the_same_are_written_alike(name):
    messages, alike = ALIKE[name]
    members = {"toolConfig": {"tools": [spec()]}}
    written, report = write(read(*messages, **members))
    assert written["messages"] == alike
    assert (report.repairs, report.losses) == (Counter(), Counter())


def test_arguments_and_answers_are_the_text_of_the_body():
    given = b'{"z": 1.0, "a": 18446744073709551616, "e": 1E400}'
    whole = (
        b'{"messages": [{"role": "assistant", "content": [{"toolUse": {"toolUseId": "i", "name": "f", "input": %b}}]}'
    )
    whole += b', {"role": "user", "content": [{"toolResult": {"toolUseId": "i", "content": [{"json": %b}]}}]}]}'
    given = given.replace(b', "e": 1E400', b"")
    request = decode_request(whole % (given, given), "bedrock")
    call, result = request.turns[0].parts[0], request.turns[1].parts[0]
    assert isinstance(call, ToolCall)
    assert isinstance(result, ToolResult)
    assert call.arguments == result.text == given.decode()
    assert encode_request(request, "bedrock").count(given) == 2


#: Members beside the messages, and the fields of the request that they become, both ways.
MEMBERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "the system": (
        {"system": [{"text": "be"}, POINT, {"text": "brief"}]},
        {"turns": [Turn("system", [Text("be", cache="short"), Text("brief")]), Turn("user", [Text("hi")])]},
    ),
    "a guarded system": (
        {"system": [{"guardContent": {"text": {"text": "x"}}}]},
        {
            "turns": [
                Turn("system", [Aside("bedrock", "unknown_event", "content.guardContent", {"guardContent": {"text": {"text": "x"}}})]),
                Turn("user", [Text("hi")]),
            ]
        },
    ),
    "options": (
        {
            "inferenceConfig": {"maxTokens": 9, "temperature": 0.5, "topP": 0.9, "stopSequences": ["a", "b"]},
            "additionalModelRequestFields": {"top_k": 5},
            "outputConfig": {"effort": "high"},
            "serviceTier": {"type": "flex"},
        },
        {
            "options": Options(
                9, 0.5, 0.9, 5, ("a", "b"), thinking=Thinking("high"), service_tier="flex"
            )
        },
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
        {"additionalModelRequestFields": {"thinking": {"type": "disabled"}}},
        {"options": Options(thinking=Thinking(enabled=False))},
    ),
    "thinking of another model": (
        {"additionalModelRequestFields": {"thinking": {"type": "novel"}, "reasoningConfig": {"type": "enabled"}}},
        {"extras": {"additionalModelRequestFields": {"thinking": {"type": "novel"}, "reasoningConfig": {"type": "enabled"}}}},
    ),
    "a schema of the answer": (
        {
            "outputConfig": {
                "textFormat": {
                    "type": "json_schema",
                    "structure": {"jsonSchema": {"schema": '{"type":"object"}', "name": "n", "description": "d"}},
                }
            }
        },
        {"options": Options(output=OutputFormat("schema", {"type": "object"}, "n", "d"))},
    ),
    "tools": (
        {"toolConfig": {"tools": [spec(description="looks", strict=True), POINT, spec("go", {"type": "object"}), {"systemTool": {"name": "web"}}]}},
        {
            "tools": [
                Tool("look", "looks", SCHEMA, strict=True, cache="short"),
                Tool("go", None, {"type": "object"}),
                Tool("web", kind="server", raw={"systemTool": {"name": "web"}}),
            ]
        },
    ),
    "marks of no tool": (
        {"toolConfig": {"tools": [POINT, spec()]}},
        {"tools": [Tool("cachePoint", kind="server", raw=POINT), Tool("look", None, SCHEMA)]},
    ),
    "a marked tool of the provider": (
        {"toolConfig": {"tools": [{"systemTool": {"name": "web"}}, HOUR]}},
        {"tools": [Tool("web", kind="server", raw={"systemTool": {"name": "web"}}, cache="long")]},
    ),
    "any tool may be called": ({"toolConfig": {"tools": [spec()], "toolChoice": {"auto": {}}}}, {"tool_choice": ToolChoice("auto")}),
    "any tool must be called": ({"toolConfig": {"tools": [spec()], "toolChoice": {"any": {}}}}, {"tool_choice": ToolChoice("required")}),
    "one tool must be called": (
        {"toolConfig": {"tools": [spec()], "toolChoice": {"tool": {"name": "look"}}}},
        {"tool_choice": ToolChoice("required", ("look",))},
    ),
    "one call at a time": (
        {"toolConfig": {"tools": [spec()]}, "additionalModelRequestFields": {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}},
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
        {
            "toolConfig": {"tools": [spec()], "toolChoice": {"auto": {}}},
            "additionalModelRequestFields": {"tool_choice": {"type": "any", "disable_parallel_tool_use": True}},
        },
        {
            "tool_choice": ToolChoice("auto"),
            "extras": {
                "additionalModelRequestFields": {"tool_choice": {"type": "any", "disable_parallel_tool_use": True}}
            },
        },
    ),
    "members that only this dialect has": (
        {
            "guardrailConfig": {"guardrailIdentifier": "g", "guardrailVersion": "1"},
            "requestMetadata": {"a": "b"},
            "additionalModelResponseFieldPaths": ["/stop_sequence"],
            "performanceConfig": {"latency": "optimized"},
            "additionalModelRequestFields": {"top_k": 5, "x": {"y": 1}},
            "toolConfig": {"tools": [spec(new=1)], "new": 2},
        },
        {
            "extras": {
                "guardrailConfig": {"guardrailIdentifier": "g", "guardrailVersion": "1"},
                "requestMetadata": {"a": "b"},
                "additionalModelResponseFieldPaths": ["/stop_sequence"],
                "performanceConfig": {"latency": "optimized"},
                "additionalModelRequestFields": {"x": {"y": 1}},
                "toolConfig": {"new": 2},
            },
            "tools": [Tool("look", None, SCHEMA, extras={"new": 1})],
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MEMBERS)
def test_members_are_read_and_come_back(name):
    members, fields = MEMBERS[name]
    request = read(**members)
    assert {field: getattr(request, field) for field in fields} == fields
    written, report = write(request)
    assert written == body(**members)
    assert (report.repairs, report.losses) == (Counter(), Counter())


def test_the_model_stands_in_the_url():
    request = read(modelId=CLAUDE)
    assert (request.model, request.stream) == (CLAUDE, None)
    assert write(request)[0] == body()
    assert write(foreign(stream=True, stream_usage=True))[0] == body()


def test_a_body_of_invoke_model_is_anthropics_request():
    said = {"max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}
    report = StreamReport()
    native = {**said, "anthropic_version": "bedrock-2023-05-31", "anthropic_beta": ["x"]}
    request = decode_request(json.dumps(native).encode(), "bedrock", report=report)
    assert request == decode_request(json.dumps(said).encode(), "anthropic")
    assert report.lost == [("parameter", "anthropic_beta")]
    assert write(request)[0] == body(inferenceConfig={"maxTokens": 5})


@pytest.mark.parametrize(
    ("blocks", "parts"),
    [
        ([thought(signature=seal("reasoning", "google", "R"))], [Reasoning("h", signature=Opaque("google", "R"))]),
        ([{"text": "a"}, redacted(seal("text", "google", "T"))], [Text("a", Opaque("google", "T"))]),
        ([redacted(seal("text", "google", "T"))], [Text("", Opaque("google", "T"))]),
        ([redacted(seal("part", "google", "P"))], [Text("", Opaque("google", "P"))]),
        ([redacted(seal("opaque", "openai", "O"))], [RedactedReasoning(Opaque("openai", "O"))]),
        ([redacted(seal("reasoning", "openai", "R"))], [Reasoning("", signature=Opaque("openai", "R"))]),
        ([redacted(seal("call", "google", "C")), use()], [ToolCall(0, "tooluse_1", "look", '{"q":"x"}', signature=Opaque("google", "C"))]),
        ([redacted(seal("call", "google", "C"))], [RedactedReasoning(Opaque("google", "C"))]),
    ],
)  # fmt: skip
def test_what_was_sealed_is_its_vendors_again(blocks, parts):
    assert read(assistant(*blocks)).turns == [Turn("assistant", parts)]


BAD: dict[str, tuple[dict[str, Any], str, str]] = {
    "no messages": ({"messages": None}, "messages", "a list is needed"),
    "a message that is none": ({"messages": ["hi"]}, "messages[0]", "an object is needed"),
    "a role": ({"messages": [{"role": "tool", "content": []}]}, "messages[0].role", "no role 'tool'"),
    "content as text": ({"messages": [{"role": "user", "content": "hi"}]}, "messages[0].content", "a list is needed, not text"),
    "no content": ({"messages": [{"role": "user"}]}, "messages[0].content", "a list is needed"),
    "a block of two kinds": ({"messages": [user({"text": "a", "image": {}})]}, "messages[0].content[0]", "one member is needed, not 'text', 'image'"),
    "a block of no kind": ({"messages": [user({})]}, "messages[0].content[0]", "not none"),
    "a text": ({"messages": [user({"text": 1})]}, "messages[0].content[0].text", "text is needed"),
    "no source": ({"messages": [user({"image": {"format": "png"}})]}, "messages[0].content[0].image.source", "an object is needed"),
    "a source of two kinds": (
        {"messages": [user({"image": {"source": {"bytes": "", "s3Location": {}}}})]}, "messages[0].content[0].image.source", "one member",
    ),
    "bytes": ({"messages": [user({"image": {"source": {"bytes": "?"}}})]}, "messages[0].content[0].image.source.bytes", "base64"),
    "a place in S3": (
        {"messages": [user({"image": {"source": {"s3Location": {}}}})]}, "messages[0].content[0].image.source.s3Location.uri", "text is needed",
    ),
    "a document without a name": ({"messages": [user({"document": {"source": {"bytes": ""}}})]}, "messages[0].content[0].document.name", "text is needed"),
    "a call of the user": ({"messages": [user(use())]}, "messages[0].content[0].toolUse", "a message of the assistant"),
    "thoughts of the user": ({"messages": [user(thought())]}, "messages[0].content[0].reasoningContent", "a message of the assistant"),
    "a result of the assistant": ({"messages": [assistant(answer())]}, "messages[0].content[0].toolResult", "a message of the user"),
    "a call without an id": ({"messages": [assistant({"toolUse": {"name": "f", "input": {}}})]}, "messages[0].content[0].toolUse.toolUseId", "text is needed"),
    "an input": ({"messages": [assistant(use(given="x"))]}, "messages[0].content[0].toolUse.input", "an object is needed, not text"),
    "a thought": ({"messages": [assistant({"reasoningContent": {}})]}, "messages[0].content[0].reasoningContent", "one member"),
    "redacted content": ({"messages": [assistant(redacted("?"))]}, "messages[0].content[0].reasoningContent.redactedContent", "base64"),
    "a status": ({"messages": [user(answer(status="late"))]}, "messages[0].content[0].toolResult.status", "not 'late'"),
    "what a tool said": (
        {"messages": [user({"toolResult": {"toolUseId": "i", "content": "x"}})]}, "messages[0].content[0].toolResult.content", "a list is needed",
    ),
    "cited": (
        {"messages": [assistant({"citationsContent": {"content": [{"x": 1}]}})]}, "messages[0].content[0].citationsContent.content[0]", "text is needed",
    ),
    "a mark": ({"messages": [user({"cachePoint": 1})]}, "messages[0].content[0].cachePoint", "an object is needed"),
    "the system": ({"system": "be"}, "system", "a list is needed, not text"),
    "a bound": ({"inferenceConfig": {"maxTokens": "9"}}, "inferenceConfig.maxTokens", "a number is needed"),
    "a stop": ({"inferenceConfig": {"stopSequences": [1]}}, "inferenceConfig.stopSequences[0]", "text is needed"),
    "no budget": ({"additionalModelRequestFields": {"thinking": {"type": "enabled"}}}, "additionalModelRequestFields.thinking.budget_tokens", "a whole number"),
    "a schema that is no JSON": (
        {"outputConfig": {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": {"schema": "{"}}}}},
        "outputConfig.textFormat.structure.jsonSchema.schema", "no JSON",
    ),
    "no tools": ({"toolConfig": {}}, "toolConfig.tools", "a list is needed"),
    "a tool without a schema": ({"toolConfig": {"tools": [{"toolSpec": {"name": "f"}}]}}, "toolConfig.tools[0].toolSpec.inputSchema", "an object is needed"),
    "a schema": (
        {"toolConfig": {"tools": [{"toolSpec": {"name": "f", "inputSchema": {}}}]}}, "toolConfig.tools[0].toolSpec.inputSchema.json", "a schema is needed",
    ),
    "a tool choice": ({"toolConfig": {"tools": [spec()], "toolChoice": {"none": {}}}}, "toolConfig.toolChoice", "not 'none'"),
    "a tool choice of two": ({"toolConfig": {"tools": [spec()], "toolChoice": {"auto": {}, "any": {}}}}, "toolConfig.toolChoice", "one member"),
    "no name of a tool": ({"toolConfig": {"tools": [spec()], "toolChoice": {"tool": {}}}}, "toolConfig.toolChoice.tool.name", "text is needed"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_request_that_cannot_be_names_the_place(name):
    members, path, reason = BAD[name]
    with pytest.raises(BadRequest) as bad:
        decode_request(json.dumps({**body(), **members}).encode(), "bedrock")
    assert bad.value.path == path
    assert reason in bad.value.reason


# -- within the dialect: what is mended --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("messages", "written", "repairs", "losses"),
    [
        ([user({"text": " "}, {"text": "a"}, {"text": ""}, POINT)], [user({"text": "a"})], {"turn_empty": 2}, {"cache_mark": 1}),
        ([user({"text": ""}), user({"text": "a"})], [user({"text": "a"})], {"turn_empty": 1}, {}),
        ([user({"text": "a"}), user({"text": "b"})], [user({"text": "a"}, {"text": "b"})], {"turns_joined": 1}, {}),
        (
            [assistant(use(), use("tooluse_2")), user(answer(), HOUR), user({"text": "b"}, answer(call_id="tooluse_2"))],
            [assistant(use(), use("tooluse_2")), user(answer(), HOUR, answer(call_id="tooluse_2"), {"text": "b"})],
            {"result_moved": 1},
            {},
        ),
        (
            [assistant(use()), user({"text": "b"}), user(answer())],
            [assistant(use()), user(answer(), {"text": "b"})],
            {"result_moved": 1},
            {},
        ),
        ([assistant(use()), user(answer({"text": ""}))], [assistant(use()), user({"toolResult": {"toolUseId": "tooluse_1", "content": []}})], {"turn_empty": 1}, {}),
    ],
)  # fmt: skip
def test_what_the_server_refuses_is_mended_and_counted(messages, written, repairs, losses):
    found, report = write(read(*messages, toolConfig={"tools": [spec()]}))
    assert found["messages"] == written
    assert (dict(report.repairs), lost(report)) == (repairs, losses)


# -- other dialects to this one ----------------------------------------------------------------------------------------

URL, DOC = "https://x.test/a.png", Media("file", "application/pdf", PDF, name="a.pdf")


def document(name: str, form: str = "pdf", data: str = PDF) -> dict[str, Any]:
    return {"document": {"format": form, "name": name, "source": {"bytes": data}}}


#: Turns of another dialect, the messages that are written, and repairs and losses.
FOREIGN: dict[str, tuple[list[Turn], list[dict[str, Any]], dict[str, int], dict[str, int]]] = {
    "text": ([Turn("user", [Text("hi")])], [user({"text": "hi"})], {}, {}),
    "neighbours": (
        [Turn("user", [Text("a")]), Turn("user", [Text("b")]), Turn("assistant", [Text("c")]), Turn("assistant", [Text("d")])],
        [user({"text": "a"}, {"text": "b"}), assistant({"text": "c"}, {"text": "d"})], {"turns_joined": 2}, {},
    ),
    "results, and what follows": (
        [Turn("assistant", [CALL]), ANSWER, Turn("user", [Text("go")])],
        [assistant(use()), user(answer(), {"text": "go"})], {}, {},
    ),
    "an empty turn": ([Turn("user", [Text("a")]), Turn("assistant", [])], [user({"text": "a"})], {"turn_empty": 1}, {}),
    "a name": ([Turn("user", [Text("a")], name="ann")], [user({"text": "a"})], {}, {"turn_name": 1}),
    "members of its own": ([Turn("user", [Text("a", extras={"x": 1})], extras={"y": 2})], [user({"text": "a"})], {}, {"metadata": 2}),
    "a mark": ([Turn("user", [Text("a", cache="long")])], [user({"text": "a"}, HOUR)], {}, {"cache_mark": 1}),
    "a mark in a result": (
        [Turn("assistant", [CALL]), Turn("user", [ToolResult("tooluse_1", [Text("done", cache="short")])])],
        [assistant(use()), user(answer())], {}, {"cache_mark": 1},
    ),
    "a refusal": ([Turn("assistant", [Refusal("no")])], [assistant({"text": "no"})], {}, {"refusal_as_text": 1}),
    "an image": ([Turn("user", [Media("image", None, PNG, name="a.png", detail="low")])], [user(image())], {}, {"metadata": 2}),
    "an image of another name": ([Turn("user", [Media("image", "image/jpg", "eA==")])], [user({"image": {"format": "jpeg", "source": {"bytes": "eA=="}}})], {"media_type_mended": 1}, {}),
    "an image in S3": (
        [Turn("user", [Media("image", "image/png", url="s3://bucket/a.png")])],
        [user({"image": {"format": "png", "source": {"s3Location": {"uri": "s3://bucket/a.png"}}}})], {}, {},
    ),
    "media that it can't carry": (
        [Turn("user", [Text("a"), Media("image", url=URL), Media("image", "image/bmp", "eA=="), Media("file", file_id="f"), Media("file", "x/y", "eA=="), Media("image", "image/png", url="s3://b/a")])],
        [user({"text": "a"})], {}, {"media": 5},
    ),
    "media of the assistant": ([Turn("assistant", [Text("a"), Media("image", "image/png", PNG)])], [assistant({"text": "a"})], {}, {"media": 1}),
    "media in a result": (
        [Turn("assistant", [CALL]), Turn("user", [ToolResult("tooluse_1", [Media("image", "image/png", PNG), Media("audio", "audio/wav", "eA==")])])],
        [assistant(use()), user(answer(image()))], {}, {"media": 1},
    ),
    "a sound and a film": (
        [Turn("user", [Media("audio", "audio/x-wav", "eA=="), Media("video", "video/quicktime", "eA==")])],
        [user({"audio": {"format": "wav", "source": {"bytes": "eA=="}}}, {"video": {"format": "mov", "source": {"bytes": "eA=="}}})], {}, {},
    ),
    "documents": (
        [Turn("user", [DOC, DOC, Media("file", "text/plain; charset=utf-8", "eA=="), Media("file", None, PDF)])],
        [user(document("a"), document("a (2)"), document("document", "txt", "eA=="), document("document (2)"), {"text": "(A document is attached.)"})], {"text_added": 1}, {},
    ),
    "names of documents": (
        [Turn("user", [Media("file", "text/csv", "eA==", name="John's  r\u00e9sum\u00e9_v1.2.csv"), Media("file", "text/csv", "eA==", name="\u62a5\u544a.csv")])],
        [user(document("John s r sum v1 2", "csv", "eA=="), document("document", "csv", "eA=="), {"text": "(A document is attached.)"})], {"text_added": 1}, {"metadata": 2},
    ),
    "ids and names": (
        [
            Turn("assistant", [ToolCall(0, "call/1", "files.read", "{}"), ToolCall(1, "a.b:c-d_e", "look", "{}")]),
            Turn("user", [ToolResult("call/1", [Text("x")]), ToolResult("a.b:c-d_e", [Text("x")])]),
        ],
        [
            assistant(
                {"toolUse": {"toolUseId": portable_id("call/1"), "name": portable_name("files.read"), "input": {}}},
                {"toolUse": {"toolUseId": "a.b:c-d_e", "name": "look", "input": {}}},
            ),
            user(answer({"text": "x"}, call_id=portable_id("call/1")), answer({"text": "x"}, call_id="a.b:c-d_e")),
        ], {"id_rewritten": 1, "name_rewritten": 1}, {},
    ),
    "arguments": (
        [
            Turn("assistant", [ToolCall(0, "a", "f", ""), ToolCall(1, "b", "f", "[1]"), ToolCall(2, "c", "f", "x", "custom")]),
            Turn("user", [ToolResult(i, [Text("x")]) for i in "abc"]),
        ],
        [
            assistant(*({"toolUse": {"toolUseId": i, "name": "f", "input": given}} for i, given in [("a", {}), ("b", {"_raw_arguments": "[1]"}), ("c", {"input": "x"})])),
            user(*(answer({"text": "x"}, call_id=i) for i in "abc")),
        ], {}, {"arguments_wrapped": 1, "custom_tool_wrapped": 1},
    ),
    "an error": (
        [Turn("assistant", [CALL]), Turn("user", [ToolResult("tooluse_1", [Text("no")], name="look", is_error=True)])],
        [assistant(use()), user(answer({"text": "no"}, status="error"))], {}, {},
    ),
    "reasoning": (
        [
            Turn(
                "assistant",
                [
                    Reasoning("h"),
                    Reasoning("i", signature=Opaque("google", "S")),
                    Reasoning("j", signature=Opaque("anthropic", "c2ln")),
                    RedactedReasoning(Opaque("openai", "O")),
                    RedactedReasoning(Opaque("anthropic", "eHg=")),
                    Text("a", Opaque("google", "T")),
                    ToolCall(0, "tooluse_1", "look", '{"q":"x"}', signature=Opaque("google", "C")),
                ],
            ),
            ANSWER,
        ],
        [assistant(thought("j", signature="c2ln"), redacted("eHg="), {"text": "a"}, use()), user(answer())],
        {}, {"reasoning_history": 2, "reasoning_signature": 3, "reasoning_opaque": 1},
    ),
    "parts of other vendors": ([Turn("user", [Text("a"), Aside("openai", "unknown_event", "content.x", {})])], [user({"text": "a"})], {}, {"unknown_event": 1}),
}  # fmt: skip


@pytest.mark.parametrize("name", FOREIGN)
def test_turns_of_another_dialect(name):
    turns, messages, repairs, losses = FOREIGN[name]
    written, report = write(foreign(*turns, tools=[LOOK], model=OLDER))
    if messages[0]["role"] == "assistant":
        messages, repairs = [user({"text": OPENING}), *messages], {**repairs, "turn_added": 1}
    assert written["messages"] == messages
    assert (dict(report.repairs), lost(report)) == (repairs, losses)
    assert faults("bedrock", written) == []


def test_the_system_goes_to_the_top():
    system = [Turn("system", [Text("be")]), Turn("system", [Text("brief")], native_role="developer")]
    written, report = write(
        foreign(*system, Turn("user", [Text("a")]), Turn("system", [Text("now")]), Turn("user", [Text("b")]))
    )
    assert written == {
        "system": [{"text": "be"}, {"text": "brief"}, {"text": "now"}],
        "messages": [user({"text": "a"}, {"text": "b"})],
    }
    assert (report.repairs, lost(report)) == ({"turns_joined": 1}, {"system_place": 1})


def test_a_request_of_the_system_alone_is_refused_or_said_by_the_user():
    with pytest.raises(BadRequest, match="a message of the user") as bad:
        write(foreign(Turn("system", [Text("be")])))
    assert bad.value.path == "messages"
    written, report = write(foreign(Turn("system", [Text("be")])), emulate=True)
    assert written == body(user({"text": "be"}))
    assert lost(report) == {"system_place": 1}


def test_marks_of_anthropic_are_for_the_same_spans():
    request = Request("anthropic", turns=[Turn("user", [Text("a", cache="long")])], tools=[Tool("f", cache="short")])
    written, report = write(request)
    assert written["messages"] == [user({"text": "a"}, HOUR)]
    assert written["toolConfig"]["tools"][1] == POINT
    assert not report.losses


THINK = {"additionalModelRequestFields": {"thinking": {"type": "adaptive"}}}
#: A model and options of another dialect, the members that are written, and the losses with their names.
OPTIONS: dict[str, tuple[str, Options, dict[str, Any], list[str]]] = {
    "none": (CLAUDE, Options(), {}, []),
    "what has a field": (
        "m", Options(5, 1.0, 0.9, stop=("a",), choices=1, service_tier="priority"),
        {"inferenceConfig": {"maxTokens": 5, "temperature": 1.0, "topP": 0.9, "stopSequences": ["a"]}, "serviceTier": {"type": "priority"}}, [],
    ),
    "what has none": (
        "m",
        Options(temperature=1.5, top_k=3, seed=1, presence_penalty=0.5, frequency_penalty=0.5, logprobs=True, top_logprobs=2, service_tier="scale", user="u"),
        {}, ["temperature", "top_k", "seed", "presence_penalty", "frequency_penalty", "logprobs", "top_logprobs", "service_tier", "user"],
    ),
    "top_k of Claude": (OLDER, Options(top_k=3), {"additionalModelRequestFields": {"top_k": 3}}, []),
    "top_k of a Claude that takes none": (CLAUDE, Options(top_k=3), {}, ["top_k"]),
    "an effort": (CLAUDE, Options(thinking=Thinking("xhigh")), {**THINK, "outputConfig": {"effort": "xhigh"}}, []),
    "an effort of another model": ("amazon.nova", Options(thinking=Thinking("low")), {"outputConfig": {"effort": "low"}}, []),
    "an effort that it lacks": (CLAUDE, Options(thinking=Thinking("minimal")), {**THINK, "outputConfig": {"effort": "low"}}, ["thinking.effort"]),
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
        {"outputConfig": {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": {"schema": '{"type":"object","properties":{},"additionalProperties":false}'}}}}}, ["output.strict"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIONS)
def test_options_of_another_dialect(name):
    model, options, members, names = OPTIONS[name]
    written, report = write(foreign(model=model, options=options))
    assert written == body(**members)
    assert sorted(report.lost) == sorted(("parameter", each) for each in names)
    assert faults("bedrock", written) == []


def test_members_of_another_dialect_are_losses_with_their_names():
    _, report = write(foreign(extras={"logit_bias": {"1": 2}, "store": True}))
    assert report.lost == [("parameter", "logit_bias"), ("parameter", "store")]


def test_several_choices_are_refused():
    with pytest.raises(BadRequest, match="2 are asked for") as bad:
        write(foreign(options=Options(choices=2)))
    assert bad.value.path == "n"


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


@pytest.mark.parametrize("name", TOOLS)
def test_tools_of_another_dialect(name):
    tool, definitions, losses = TOOLS[name]
    written, report = write(foreign(tools=[tool]))
    assert written == body(toolConfig={"tools": definitions})
    assert lost(report) == losses
    assert faults("bedrock", written) == []


def test_a_tool_of_another_provider_is_lost():
    written, report = write(foreign(tools=[Tool("web", kind="server", raw={"type": "web"})]))
    assert written == body()
    assert report.lost == [("tool_definition", "web")]


def test_a_name_that_does_not_fit_is_rewritten_everywhere():
    tool = Tool("files.read", None, SCHEMA)
    written, report = write(foreign(tools=[tool], tool_choice=ToolChoice("required", ("files.read",))))
    name = portable_name("files.read")
    assert written == body(toolConfig={"tools": [spec(name)], "toolChoice": {"tool": {"name": name}}})
    assert report.repairs == {"name_rewritten": 1}


SERIAL = {"disable_parallel_tool_use": True}


@pytest.mark.parametrize(
    ("model", "choice", "chosen", "native", "losses"),
    [
        (CLAUDE, ToolChoice("auto"), {"auto": {}}, None, {}),
        (CLAUDE, ToolChoice("required"), {"any": {}}, None, {}),
        (CLAUDE, ToolChoice("required", ("look",)), {"tool": {"name": "look"}}, None, {}),
        (CLAUDE, ToolChoice("auto", parallel=True), {"auto": {}}, None, {}),
        (CLAUDE, ToolChoice("auto", parallel=False), None, {"type": "auto", **SERIAL}, {}),
        (CLAUDE, ToolChoice("required", parallel=False), {"any": {}}, SERIAL, {}),
        ("amazon.nova", ToolChoice("auto", parallel=False), {"auto": {}}, None, {"tool_choice": 1}),
        (CLAUDE, ToolChoice("auto", extras={"x": 1}), {"auto": {}}, None, {"tool_choice": 1}),
    ],
)
def test_the_choice_among_tools(model, choice, chosen, native, losses):
    written, report = write(foreign(model=model, tools=[LOOK], tool_choice=choice))
    assert written["toolConfig"].get("toolChoice") == chosen
    assert written.get("additionalModelRequestFields") == (native and {"tool_choice": native})
    assert lost(report) == losses
    assert faults("bedrock", written) == []


@pytest.mark.parametrize("mode", ["auto", "required"])
def test_a_choice_of_some_tools_is_refused_or_imitated(mode):
    tools = [LOOK, Tool("go"), Tool("stop")]
    request = foreign(tools=tools, tool_choice=ToolChoice(mode, ("look", "go")))
    with pytest.raises(BadRequest) as bad:
        write(request)
    assert bad.value.path == "tool_choice"
    written, report = write(request, emulate=True)
    assert [tool["toolSpec"]["name"] for tool in written["toolConfig"]["tools"]] == ["look", "go"]
    assert written["toolConfig"]["toolChoice"] == ({"auto": {}} if mode == "auto" else {"any": {}})
    assert lost(report) == {"tool_choice": 1}


def test_no_tool_is_offered_where_none_may_be_called():
    written, report = write(foreign(tools=[LOOK], tool_choice=ToolChoice("none")))
    assert written == body()
    assert report.lost == [("tool_choice", "none")]


@pytest.mark.parametrize(
    ("tools", "choice", "losses"), [([], None, {}), ([LOOK], ToolChoice("none", parallel=False), {"tool_choice": 1})]
)
def test_tools_that_the_history_calls_are_defined(tools, choice, losses):
    turns = [
        Turn("assistant", [CALL, ToolCall(1, "b", "files.read", "{}")]),
        Turn("user", [ToolResult("tooluse_1"), ToolResult("b")]),
    ]
    written, report = write(foreign(*turns, tools=tools, tool_choice=choice))
    assert written["toolConfig"] == {
        "tools": [spec("look", {"type": "object"}), spec(portable_name("files.read"), {"type": "object"})]
    }
    assert report.repairs == {"tool_declared": 2, "name_rewritten": 1, "turn_added": 1}
    assert lost(report) == losses
    assert faults("bedrock", written) == []


def test_a_tool_that_must_be_called_must_be_there():
    with pytest.raises(BadRequest, match="the request defines none") as bad:
        write(foreign(tool_choice=ToolChoice("required")))
    assert bad.value.path == "tool_choice"
    assert write(foreign(tool_choice=ToolChoice("auto", parallel=False)))[0] == body()


def test_a_tool_that_must_be_called_while_claude_thinks_is_refused_or_imitated():
    options = Options(thinking=Thinking(budget_tokens=2000))
    request = foreign(model=OLDER, tools=[LOOK], tool_choice=ToolChoice("required"), options=options)
    with pytest.raises(BadRequest, match="while thinking") as bad:
        write(request)
    assert bad.value.path == "tool_choice"
    written, report = write(request, emulate=True)
    assert written["toolConfig"]["toolChoice"] == {"auto": {}}
    assert lost(report) == {"tool_choice": 1}


def test_an_effort_gives_way_to_a_tool_that_must_be_called():
    request = foreign(tools=[LOOK], tool_choice=ToolChoice("required"), options=Options(thinking=Thinking("high")))
    written, report = write(request)
    assert written["toolConfig"]["toolChoice"] == {"any": {}}
    assert (written["outputConfig"], written.get("additionalModelRequestFields")) == ({"effort": "high"}, None)
    assert report.lost == [("parameter", "thinking")]


@pytest.mark.parametrize(
    ("signature", "thinks"), [(None, False), (Opaque("google", "S"), False), (Opaque("anthropic", "c2ln"), True)]
)
def test_a_budget_needs_what_claude_thought_before_the_calls(signature, thinks):
    turns = [Turn("user", [Text("a")]), Turn("assistant", [Reasoning("h", signature=signature), CALL]), ANSWER]
    written, report = write(
        foreign(*turns, model=OLDER, tools=[LOOK], options=Options(thinking=Thinking(budget_tokens=2000)))
    )
    assert ("additionalModelRequestFields" in written) == thinks
    assert (("parameter", "thinking") in report.lost) == (not thinks)


def test_nothing_that_is_given_is_changed():
    messages = [message for each in MESSAGES.values() for message in each[0] if message["role"] != "system"]
    request = read(*messages, **MEMBERS["options"][0])
    before = repr(request)
    write(request, repair=True)
    assert repr(request) == before


@pytest.mark.parametrize(
    ("asides", "losses"),
    [
        (frames(0, "server_tool", {"toolUse": {}}, {"toolUse": {"input": "{}"}})[1:], {"server_tool": 2}),
        ([Aside("bedrock", "citation", "citation", CITATION, block=9)], {"citation": 1}),
        ([Aside("bedrock", "metadata", "metadata.trace", {})], {"metadata": 1}),
    ],
)
def test_asides_without_their_block_are_losses(asides, losses):
    written, report = write(Request("bedrock", turns=[Turn("assistant", [Text("a"), *asides])]))
    assert written["messages"] == [assistant({"text": "a"})]
    assert lost(report) == losses


def test_what_was_json_is_text_elsewhere():
    turns = [
        Turn("user", [Text("1", extras={"json": True})]),
        Turn("assistant", [CALL]),
        Turn("user", [ToolResult("tooluse_1", [Text("{", extras={"json": True})])]),
    ]
    written, report = write(Request("bedrock", turns=turns, tools=[LOOK]))
    assert written["messages"] == [user({"text": "1"}), assistant(use()), user(answer({"text": "{"}))]
    assert not report.losses
    _, report = write(read(assistant(use()), user(answer({"json": [1]}))), "anthropic")
    assert report.lost == [("metadata", "json")]


def test_an_image_of_two_sources_keeps_the_first():
    start, piece, stop = frames(0, "unknown_event", {"image": {"format": "png"}}, {"image": {"source": {"bytes": PNG}}})
    written, report = write(Request("bedrock", turns=[Turn("assistant", [start, piece, piece, stop])]))
    assert written["messages"] == [assistant(image())]
    assert report.lost == [("unknown_event", "contentBlockDelta")]


def test_a_signature_of_no_text_is_a_loss():
    written, report = write(foreign(Turn("assistant", [Text("", Opaque("google", "P")), Text("a")]), model=OLDER))
    assert written["messages"][1:] == [assistant({"text": "a"})]
    assert (report.repairs, lost(report)) == ({"turn_added": 1}, {"reasoning_signature": 1})


def test_a_part_that_no_message_has_is_the_programs_mistake():
    with pytest.raises(TypeError, match="a message has no Thinking"):
        write(foreign(Turn("user", [Thinking()])))


def test_a_citation_may_come_before_its_text():
    turn = Turn("assistant", [Aside("bedrock", "citation", "citation", CITATION, block=1), Text("a", block=1)])
    written, _ = write(Request("bedrock", turns=[turn]))
    assert written["messages"] == [
        assistant({"citationsContent": {"content": [{"text": "a"}], "citations": [CITATION]}})
    ]


def test_an_input_of_the_provider_that_is_no_object_is_wrapped():
    start = {"toolUse": {"toolUseId": "s", "name": "web", "type": "server_tool_use"}}
    asides = frames(0, "server_tool", start, {"toolUse": {"input": "[1]"}})
    written, report = write(Request("bedrock", turns=[Turn("assistant", asides)]))
    assert written["messages"][0]["content"][0]["toolUse"]["input"] == {"_raw_arguments": "[1]"}
    assert lost(report) == {"arguments_wrapped": 1}


def test_an_input_of_the_provider_that_never_came_is_empty():
    start, _, stop = frames(0, "server_tool", {"toolUse": {"toolUseId": "s", "name": "web"}}, {})
    written, report = write(Request("bedrock", turns=[Turn("assistant", [start, stop])]))
    assert written["messages"] == [assistant({"toolUse": {"toolUseId": "s", "name": "web", "input": {}}})]
    assert not report.losses


# -- the recordings of other dialects, and the official client ---------------------------------------------------------

#: Rows of the tables with something that the client does not let its user write.
BEYOND_TYPES = {
    "a mark of another kind",
    "members nobody knows",
    "members that only this dialect has",
    "tools of the provider",
}


@pytest.mark.parametrize("name", [*MESSAGES, *MEMBERS])
def test_what_is_written_passes_the_types_of_the_client(name):
    written, _ = write(read(*MESSAGES[name][0]) if name in MESSAGES else read(**MEMBERS[name][0]))
    assert bool(faults("bedrock", written)) == (name in BEYOND_TYPES)


@pytest.mark.parametrize("source", [name for name in DIALECTS.built_in if name != "bedrock"])
@pytest.mark.parametrize("model", [CLAUDE, "amazon.nova-lite-v1:0"])
def test_recorded_requests_of_other_dialects_pass_the_types_of_the_client(source, model):
    if DIALECTS[source].bodies is None:
        pytest.skip(f"{source} has no bodies")
    for recorded in requests(source):
        request = decode_request(json.dumps(recorded.body).encode(), source)
        request.model = model
        if request.tool_choice is not None and not request.tools:
            request.tool_choice = None
        written, _ = write(request, repair=True, emulate=True)
        assert faults("bedrock", written) == [], recorded.name
        roles = [message["role"] for message in written["messages"]]
        assert all(one != other for one, other in pairwise(roles)), recorded.name
        again, report = write(decode_request(json.dumps(written).encode(), "bedrock"))
        assert again == written, recorded.name
        assert (report.repairs, report.losses) == (Counter(), Counter()), recorded.name


def test_the_official_client_sends_it(client, replay):
    boto3 = client("boto3")
    answered = {"output": {"message": {"role": "assistant", "content": []}}, "stopReason": "end_turn"}
    counted = {"usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}, "metrics": {"latencyMs": 1}}
    asked = Turn("user", [Text("see"), Media("image", "image/png", PNG), DOC])
    thinking = [Reasoning("h", signature=Opaque("anthropic", "c2ln")), RedactedReasoning(Opaque("anthropic", "eHg="))]
    request = foreign(
        Turn("system", [Text("be")]), asked, Turn("assistant", [*thinking, Text("wait"), CALL]), ANSWER,
        tools=[LOOK], options=Options(5, thinking=Thinking(budget_tokens=2000)),
    )  # fmt: skip
    written, _ = write(request)
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
