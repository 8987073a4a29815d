"""Requests of OpenAI Responses: read, written, and read from and written for others.

Source: dialects.md §2.2, §2.3, §7.3, §7.4; seeds.md S2, S3; quirks.md R14.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import orjson
import pytest
from attrs import evolve

from streamkit.conversation.messages import (
    Media,
    Namespace,
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
from streamkit.dialects.profiles import Target
from streamkit.dialects.vocabulary.sealed_reasoning import seal
from streamkit.errors import BadRequest
from streamkit.events import Aside, Opaque, QualifiedName
from streamkit.report import StreamReport
from streamkit.text.identifiers import portable_id, portable_name
from streamkit.translation.bodies import decode_request, decode_response, encode_request
from streamkit.translation.tool_loop import error_result, request_with_results
from tests.corpora import requests
from tests.requests.sdk_types import faults

PNG = "iVBORw0KGgo="
PIXEL = f"data:image/png;base64,{PNG}"
SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
VENDOR = "openai-responses"


def body(items: list[dict[str, Any]] | None = None, **members: Any) -> dict[str, Any]:
    return {"model": "m", "input": items or [{"role": "user", "content": "hi"}], **members}


def read(items: list[dict[str, Any]] | None = None, **members: Any) -> Request:
    return decode_request(json.dumps(body(items, **members)).encode(), VENDOR)


def write(request: Request, to: str = VENDOR, **options: Any) -> tuple[dict[str, Any], StreamReport]:
    report = StreamReport()
    written = encode_request(request, to, report=report, **options)
    return json.loads(written), report


def said(*parts: dict[str, Any], role: str = "user", **members: Any) -> dict[str, Any]:
    return {"role": role, "content": list(parts), **members}


def spoken(*parts: dict[str, Any], item_id: str = "msg_1", **members: Any) -> dict[str, Any]:
    """A message as the server gave it."""
    message = {"type": "message", "role": "assistant", "content": list(parts), "status": "completed"}
    return {**message, "id": item_id, **members}


def output_text(text: str, annotations: Any = (), **more: Any) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": list(annotations), **more}


def called(call_id: str = "call_1", arguments: str = '{"q":1.0}', **more: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": "look", "arguments": arguments, **more}


def answer(call_id: str = "call_1", output: Any = "done", **more: Any) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": output, **more}


def thought(*texts: str, raw: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    item: dict[str, Any] = {"type": "reasoning", "summary": [{"type": "summary_text", "text": text} for text in texts]}
    if raw:
        item["content"] = [{"type": "reasoning_text", "text": text} for text in raw]
    return {**item, **more}


def aside(item: dict[str, Any], kind: str = "server_tool") -> Aside:
    return Aside(VENDOR, kind, f"item.{item['type']}", item)


CALL = ToolCall(0, "call_1", "look", '{"q":1.0}')
ANSWERED = Turn("user", [ToolResult("call_1", [Text("done")])])
CITATION = {"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 1}
LOGPROB = {"token": "a", "logprob": -1.0, "bytes": [97], "top_logprobs": []}
SEARCH = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "x"}}
COMPUTER = {"type": "computer_call", "id": "cu_1", "call_id": "c", "status": "completed", "action": {"type": "wait"}}
SCREEN = {"type": "computer_call_output", "call_id": "c", "output": {"type": "computer_screenshot", "image_url": "u"}}
COMPACTED = {"type": "compaction", "id": "cmp_1", "encrypted_content": "E"}
REFERENCE = {"type": "item_reference", "id": "msg_9"}

#: What items say, both ways.
ITEMS: dict[str, tuple[list[dict[str, Any]], list[Turn]]] = {
    "text": ([{"role": "user", "content": "hi"}], [Turn("user", [Text("hi")])]),
    "no text": ([{"role": "user", "content": ""}], [Turn("user", [])]),
    "system": ([{"role": "system", "content": "be"}], [Turn("system", [Text("be")], native_role="system")]),
    "developer": ([{"role": "developer", "content": "be"}], [Turn("system", [Text("be")], native_role="developer")]),
    "system in the middle": (
        [{"role": "user", "content": "a"}, {"role": "system", "content": "b"}, {"role": "user", "content": "c"}],
        [Turn("user", [Text("a")]), Turn("system", [Text("b")], native_role="system"), Turn("user", [Text("c")])],
    ),
    "several texts": (
        [said({"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"})],
        [Turn("user", [Text("a"), Text("b")])],
    ),
    "a mark": (
        [said({"type": "input_text", "text": "a", "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "12h"}})],
        [Turn("user", [Text("a", cache="long")])],
    ),
    "image at a URL": (
        [said({"type": "input_image", "image_url": "https://x.test/a.png", "detail": "low"})],
        [Turn("user", [Media("image", url="https://x.test/a.png", detail="low")])],
    ),
    "image as data": (
        [said({"type": "input_text", "text": "see"}, {"type": "input_image", "image_url": PIXEL, "detail": "auto"})],
        [Turn("user", [Text("see"), Media("image", "image/png", PNG, detail="auto")])],
    ),
    "image by its id": (
        [said({"type": "input_image", "file_id": "file_1", "detail": "high"})],
        [Turn("user", [Media("image", file_id="file_1", detail="high")])],
    ),
    "file as data": (
        [said({"type": "input_file", "file_data": "data:application/pdf;base64,JVBERi0=", "filename": "a.pdf"})],
        [Turn("user", [Media("file", "application/pdf", "JVBERi0=", name="a.pdf")])],
    ),
    "file as bare base64": (
        [said({"type": "input_file", "file_data": "JVBERi0=", "filename": "a.pdf", "detail": "low"})],
        [Turn("user", [Media("file", None, "JVBERi0=", name="a.pdf", detail="low")])],
    ),
    "file at a URL, and by its id": (
        [said({"type": "input_file", "file_url": "https://x.test/a.pdf"}, {"type": "input_file", "file_id": "f"})],
        [Turn("user", [Media("file", url="https://x.test/a.pdf"), Media("file", file_id="f")])],
    ),
    "audio": (
        [
            said(
                {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}},
                {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "flac"}},
            )
        ],
        [Turn("user", [Media("audio", "audio/mpeg", "AAAA"), Media("audio", "audio/flac", "AAAA")])],
    ),
    "an unknown part": (
        [said({"type": "input_video", "video_url": "u"})],
        [Turn("user", [Aside(VENDOR, "unknown_event", "content.input_video", {"type": "input_video", "video_url": "u"})])],
    ),
    "members nobody knows": (
        [said({"type": "input_text", "text": "a", "x": 1}, id="msg_0", status="incomplete")],
        [Turn("user", [Text("a", extras={"x": 1})], extras={"id": "msg_0", "status": "incomplete"})],
    ),
    "assistant": ([{"role": "assistant", "content": "yes"}], [Turn("assistant", [Text("yes")])]),
    "assistant, twice": (
        [{"role": "assistant", "content": "a"}, {"role": "assistant", "content": ""}],
        [Turn("assistant", [Text("a"), Text("")])],
    ),
    "a phase": (
        [{"role": "assistant", "content": "a", "phase": "commentary"}],
        [Turn("assistant", [Text("a", extras={"item": {"phase": "commentary"}})])],
    ),
    "messages of the server": (
        [
            spoken(output_text("a"), output_text("b", x=1), phase="final_answer"),
            spoken({"type": "refusal", "refusal": "no"}, item_id="msg_2", status="incomplete"),
        ],
        [
            Turn(
                "assistant",
                [
                    Text("a", extras={"item": {"id": "msg_1", "phase": "final_answer"}}),
                    Text("b", extras={"x": 1, "item": {"id": "msg_1"}}),
                    Refusal("no", {"item": {"id": "msg_2", "status": "incomplete"}}),
                ],
            )
        ],
    ),
    "what stands beside a text": (
        [spoken(output_text("a", [CITATION, CITATION], logprobs=[LOGPROB]), output_text("b", [CITATION]))],
        [
            Turn(
                "assistant",
                [
                    Text("a", extras={"item": {"id": "msg_1"}}),
                    Aside(VENDOR, "citation", "annotation", CITATION, block=1),
                    Aside(VENDOR, "citation", "annotation", CITATION, block=1),
                    Aside(VENDOR, "logprobs", "logprobs", [LOGPROB], block=1),
                    Text("b", extras={"item": {"id": "msg_1"}}),
                    Aside(VENDOR, "citation", "annotation", CITATION, block=2),
                ],
            )
        ],
    ),
    "an unknown part behind a text": (
        [spoken(output_text("a"), {"type": "output_video", "x": 1})],
        [
            Turn(
                "assistant",
                [
                    Text("a", extras={"item": {"id": "msg_1"}}),
                    Aside(VENDOR, "unknown_event", "content.output_video", {"type": "output_video", "x": 1}),
                ],
            )
        ],
    ),
    "a message of unknown parts": (
        [spoken({"type": "output_video", "x": 1})],
        [Turn("assistant", [aside(spoken({"type": "output_video", "x": 1}), "unknown_event")])],
    ),
    "reasoning, text and calls are one turn": (
        [
            thought("h", "m", id="rs_1", encrypted_content="E"),
            {"role": "assistant", "content": "wait"},
            called(id="fc_1"),
            called("call_2", "{}", caller={"type": "direct"}, status="incomplete"),
            answer("call_2", "b"),
            answer(),
            {"role": "user", "content": "go on"},
        ],
        [
            Turn(
                "assistant",
                [
                    Reasoning("h", "summary", extras={"item": {"id": "rs_1"}}),
                    Reasoning("m", "summary", Opaque("openai", "E"), {"item": {"id": "rs_1"}}),
                    Text("wait"),
                    ToolCall(0, "call_1", "look", '{"q":1.0}', extras={"id": "fc_1"}),
                    ToolCall(1, "call_2", "look", "{}", extras={"caller": {"type": "direct"}, "status": "incomplete"}),
                ],
            ),
            Turn("user", [ToolResult("call_2", [Text("b")]), ToolResult("call_1", [Text("done")])]),
            Turn("user", [Text("go on")]),
        ],
    ),
    "two rounds of calls": (
        [called(), answer(), called("call_2"), answer("call_2")],
        [
            Turn("assistant", [CALL]),
            ANSWERED,
            Turn("assistant", [ToolCall(0, "call_2", "look", '{"q":1.0}')]),
            Turn("user", [ToolResult("call_2", [Text("done")])]),
        ],
    ),
    "a call of a tool in a namespace": (
        [called(namespace="mcp__w"), answer()],
        [
            Turn(
                "assistant",
                [ToolCall(0, "call_1", "mcp__w__look", '{"q":1.0}', qualified=QualifiedName("mcp__w", "look"))],
            ),
            ANSWERED,
        ],
    ),
    "a custom call": (
        [
            {"type": "custom_tool_call", "call_id": "call_1", "name": "run", "input": "1 + 1"},
            {"type": "custom_tool_call_output", "call_id": "call_1", "output": "2"},
        ],
        [
            Turn("assistant", [ToolCall(0, "call_1", "run", "1 + 1", "custom")]),
            Turn("user", [ToolResult("call_1", [Text("2")], kind="custom")]),
        ],
    ),
    "arguments that are no object": (
        [called(arguments='{"q": oops'), answer()],
        [Turn("assistant", [ToolCall(0, "call_1", "look", '{"q": oops')]), ANSWERED],
    ),
    "what a tool gave": (
        [
            called(),
            answer(
                output=[
                    {"type": "input_text", "text": "a"},
                    {"type": "input_image", "image_url": PIXEL, "detail": "auto"},
                    {"type": "input_file", "file_id": "f"},
                ],
                name="look",
                id="fco_1",
            ),
        ],
        [
            Turn("assistant", [CALL]),
            Turn(
                "user",
                [
                    ToolResult(
                        "call_1",
                        [Text("a"), Media("image", "image/png", PNG, detail="auto"), Media("file", file_id="f")],
                        "look",
                        extras={"id": "fco_1"},
                    )
                ],
            ),
        ],
    ),
    "reasoning that the server knows": (
        [thought(id="rs_1"), thought("a", id="rs_2"), thought("b", id="rs_3", format="f")],
        [
            Turn(
                "assistant",
                [
                    Reasoning("", "summary", extras={"item": {"id": "rs_1"}}),
                    Reasoning("a", "summary", extras={"item": {"id": "rs_2"}}),
                    Reasoning("b", "summary", extras={"item": {"id": "rs_3", "format": "f"}}),
                ],
            )
        ],
    ),
    "reasoning in the open": ([thought(raw=("hm",))], [Turn("assistant", [Reasoning("hm")])]),
    "reasoning both ways": (
        [thought("h", raw=("hm",), encrypted_content="E")],
        [Turn("assistant", [Reasoning("h", "summary"), Reasoning("hm", "raw", Opaque("openai", "E"))])],
    ),
    "encrypted reasoning": (
        [thought(id="rs_1", encrypted_content="E"), thought(encrypted_content="F")],
        [
            Turn(
                "assistant",
                [
                    RedactedReasoning(Opaque("openai", "E"), {"item": {"id": "rs_1"}}),
                    RedactedReasoning(Opaque("openai", "F")),
                ],
            )
        ],
    ),
    "reasoning of an unknown kind": (
        [{"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_image", "x": 1}]}],
        [
            Turn(
                "assistant",
                [
                    aside(
                        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_image", "x": 1}]},
                        "unknown_event",
                    )
                ],
            )
        ],
    ),
    "what the provider runs": (
        [SEARCH, spoken(output_text("a")), COMPACTED],
        [
            Turn(
                "assistant",
                [aside(SEARCH), Text("a", extras={"item": {"id": "msg_1"}}), aside(COMPACTED, "unknown_event")],
            )
        ],
    ),
    "what the program answers to that": (
        [called(), COMPUTER, answer(), SCREEN, {"role": "user", "content": "go on"}, {"type": "compaction_trigger"}],
        [
            Turn("assistant", [CALL, ToolCall(1, "c", "computer", '{"type":"wait"}')]),
            Turn("user", [*ANSWERED.parts, ToolResult("c", [Media("image", url="u")])]),
            Turn("user", [Text("go on")]),
        ],
    ),
    "references, and an output of a call that the server knows": (
        [REFERENCE, answer("call_9"), called(), answer()],
        [
            Turn("assistant", [aside(REFERENCE, "unknown_event")]),
            Turn("user", [aside(answer("call_9"))]),
            Turn("assistant", [CALL]),
            ANSWERED,
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ITEMS)
def test_items_are_turns_and_come_back(name):
    items, turns = ITEMS[name]
    request = read(items)
    assert request.turns == turns
    written, report = write(request)
    assert written == body(items)
    assert not report.losses
    assert not report.repairs


#: What items become on the way through: the documented normalisation.
NORMAL: dict[str, tuple[Any, list[dict[str, Any]]]] = {
    "the user's text": ("hi", [{"role": "user", "content": "hi"}]),
    "one text in a list": ([said({"type": "input_text", "text": "a"})], [{"role": "user", "content": "a"}]),
    "an empty list": ([said()], [{"role": "user", "content": ""}]),
    "that it is a message": ([{"type": "message", "role": "user", "content": "a"}], [{"role": "user", "content": "a"}]),
    "that it is completed": (
        [{"role": "user", "content": "a", "status": "completed"}, called(status="completed"), answer(status="completed")],
        [{"role": "user", "content": "a"}, called(), answer()],
    ),
    "a message without an id": (
        [{"type": "message", "role": "assistant", "content": [output_text("a"), output_text("b")]}],
        [{"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"}],
    ),
    "input of the assistant's": (
        [said({"type": "input_text", "text": "a"}, role="assistant")],
        [{"role": "assistant", "content": "a"}],
    ),
    "output of the user's": ([said(output_text("a"))], [{"role": "user", "content": "a"}]),
    "no detail": (
        [said({"type": "input_image", "image_url": PIXEL})],
        [said({"type": "input_image", "image_url": PIXEL, "detail": "auto"})],
    ),
    "the span of a mark": (
        [said({"type": "input_text", "text": "a", "prompt_cache_breakpoint": {"mode": "explicit"}})],
        [said({"type": "input_text", "text": "a", "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "30m"}})],
    ),
    "no arguments": ([called(arguments=""), answer()], [called(arguments="{}"), answer()]),
    "null members": (
        [thought("a", id="rs_1", content=None, encrypted_content=None, status=None)],
        [thought("a", id="rs_1")],
    ),
    "a reference without its type": ([{"id": "msg_9"}], [REFERENCE]),
}  # fmt: skip


@pytest.mark.parametrize("name", NORMAL)
def test_items_that_say_the_same_are_written_alike(name):
    items, normal = NORMAL[name]
    written, report = write(read(items))
    assert written["input"] == normal
    assert not report.losses


@pytest.mark.parametrize(
    ("items", "turns"),
    [
        ([], [Turn("system", [Text("be")])]),
        (
            [{"role": "developer", "content": "b"}],
            [Turn("system", [Text("be")]), Turn("system", [Text("b")], native_role="developer")],
        ),
    ],
)
def test_instructions_are_the_systems_and_not_an_item(items, turns):
    request = read([*items, {"role": "user", "content": "hi"}], instructions="be")
    assert request.turns == [*turns, Turn("user", [Text("hi")])]
    assert write(request)[0] == body([*items, {"role": "user", "content": "hi"}], instructions="be")


def test_a_request_may_be_without_input():
    request = decode_request(b'{"prompt": {"id": "p"}}', VENDOR)
    assert (request.turns, request.extras) == ([], {"prompt": {"id": "p"}})
    assert write(request)[0] == {"prompt": {"id": "p"}}


@pytest.mark.parametrize("state", [{"previous_response_id": "resp_1"}, {"conversation": {"id": "c"}}])
def test_an_output_goes_back_alone_where_the_server_keeps_the_conversation(state):
    items = [answer("call_9"), {"type": "custom_tool_call_output", "call_id": "c", "output": "b"}]
    request = read(items, **state)
    assert request.turns == [Turn("user", [aside(items[0]), aside(items[1])])]
    assert write(request)[0] == body(items, **state)
    with pytest.raises(BadRequest, match="has no call"):
        write(read(items))
    with pytest.raises(BadRequest, match=next(iter(state))):
        write(request, "openai-chat")


# -- other members -----------------------------------------------------------------------------------------------------

TOOLS = [
    {"type": "function", "name": "look", "description": "d", "parameters": SCHEMA, "strict": True},
    {"type": "function", "name": "now", "parameters": None, "strict": False},
    {"type": "custom", "name": "run", "description": "d", "format": {"type": "text"}},
    {"type": "custom", "name": "calc", "format": {"type": "grammar", "syntax": "lark", "definition": "start: NUMBER"}},
]
NEUTRAL_TOOLS = [
    Tool("look", "d", SCHEMA, True),
    Tool("now", strict=False),
    Tool("run", "d", kind="custom", format={"type": "text"}),
    Tool("calc", kind="custom", format={"type": "grammar", "syntax": "lark", "definition": "start: NUMBER"}),
]
ALLOWED = [{"type": "function", "name": "look"}, {"type": "custom", "name": "run"}]
HOSTED = [
    {"type": "web_search", "search_context_size": "low"},
    {"type": "mcp", "server_label": "s", "server_url": "https://x.test"},
    {"type": "namespace", "name": "crm", "description": "d", "tools": []},
]

GROUP = {"type": "namespace", "name": "mcp__w", "description": "g", "tools": [TOOLS[0]]}
G = Namespace("mcp__w", "g")
W = Namespace("mcp__w", "d")


def in_namespace(tool: Tool, namespace: Namespace) -> Tool:
    qualified = QualifiedName(namespace.name, tool.name)
    return evolve(tool, name=f"{namespace.name}__{tool.name}", namespace=namespace, qualified=qualified)


#: What other members say, both ways.
MEMBERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "options": (
        {
            "temperature": 0.5,
            "top_p": 1,
            "top_logprobs": 3,
            "include": ["reasoning.encrypted_content", "message.output_text.logprobs"],
            "service_tier": "flex",
            "user": "u",
            "max_output_tokens": 5,
        },
        {
            "options": Options(
                max_tokens=5,
                temperature=0.5,
                top_p=1,
                logprobs=True,
                top_logprobs=3,
                service_tier="flex",
                user="u",
            ),
            "extras": {"include": ["reasoning.encrypted_content"]},
        },
    ),
    "reasoning": (
        {"reasoning": {"effort": "low", "summary": "detailed", "context": "all_turns"}},
        {
            "options": Options(thinking=Thinking("low", summary="detailed")),
            "extras": {"reasoning": {"context": "all_turns"}},
        },
    ),
    "reasoning of another kind": (
        {"reasoning": {"mode": "pro"}},
        {"extras": {"reasoning": {"mode": "pro"}}},
    ),
    "text": ({"text": {"format": {"type": "text"}}}, {"options": Options(output=OutputFormat("text"))}),
    "json": ({"text": {"format": {"type": "json_object"}}}, {"options": Options(output=OutputFormat("json"))}),
    "schema": (
        {
            "text": {
                "format": {"type": "json_schema", "name": "n", "description": "d", "schema": SCHEMA, "strict": True},
                "verbosity": "low",
            }
        },
        {
            "options": Options(output=OutputFormat("schema", SCHEMA, "n", "d", True)),
            "extras": {"text": {"verbosity": "low"}},
        },
    ),
    "a format of another server": (
        {"text": {"format": {"type": "grammar", "value": "g"}}},
        {"extras": {"text": {"format": {"type": "grammar", "value": "g"}}}},
    ),
    "streaming": (
        {"stream": True, "stream_options": {"include_obfuscation": False}},
        {"stream": True, "stream_usage": True, "extras": {"stream_options": {"include_obfuscation": False}}},
    ),
    "not streaming": ({"stream": False}, {"stream": False}),
    "tools": ({"tools": TOOLS}, {"tools": NEUTRAL_TOOLS}),
    "a tool with more": (
        {"tools": [{**TOOLS[0], "defer_loading": True, "async": True}]},
        {"tools": [Tool("look", "d", SCHEMA, True, extras={"defer_loading": True, "async": True})]},
    ),
    "tools that the provider runs": (
        {"tools": HOSTED},
        {"tools": [Tool(name, kind="server", raw=raw) for name, raw in zip(["web_search", "mcp", "crm"], HOSTED, strict=True)]},
    ),
    "namespaces": (
        {
            "tools": [
                TOOLS[0],
                {"type": "namespace", "name": "mcp__w", "description": "d", "tools": [TOOLS[0], TOOLS[2]]},
                {"type": "namespace", "name": "agents_v1", "description": "e", "tools": [TOOLS[1]]},
                TOOLS[3],
            ]
        },
        {
            "tools": [
                NEUTRAL_TOOLS[0],
                in_namespace(NEUTRAL_TOOLS[0], W),
                in_namespace(NEUTRAL_TOOLS[2], W),
                in_namespace(NEUTRAL_TOOLS[1], Namespace("agents_v1", "e")),
                NEUTRAL_TOOLS[3],
            ]
        },
    ),
    "choice of one in a namespace": (
        {"tools": [GROUP], "tool_choice": ALLOWED[0]},
        {"tools": [in_namespace(NEUTRAL_TOOLS[0], G)], "tool_choice": ToolChoice("required", ("mcp__w__look",))},
    ),
    "choice of one that says its namespace": (
        {"tools": [GROUP], "tool_choice": {**ALLOWED[0], "namespace": "mcp__w"}},
        {"tools": [in_namespace(NEUTRAL_TOOLS[0], G)], "tool_choice": ToolChoice("required", ("mcp__w__look",))},
    ),
    "choice of a whole namespace": (
        {"tools": [GROUP], "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "namespace", "name": "mcp__w"}]}},
        {"tools": [in_namespace(NEUTRAL_TOOLS[0], G)], "tool_choice": ToolChoice("auto", ("mcp__w__look",))},
    ),
    "choice auto": ({"tool_choice": "auto"}, {"tool_choice": ToolChoice("auto")}),
    "choice none": ({"tool_choice": "none"}, {"tool_choice": ToolChoice("none")}),
    "choice required": ({"tool_choice": "required"}, {"tool_choice": ToolChoice("required")}),
    "choice of one": (
        {"tools": TOOLS, "tool_choice": ALLOWED[0]},
        {"tools": NEUTRAL_TOOLS, "tool_choice": ToolChoice("required", ("look",))},
    ),
    "choice of a custom one": (
        {"tools": TOOLS, "tool_choice": ALLOWED[1]},
        {"tools": NEUTRAL_TOOLS, "tool_choice": ToolChoice("required", ("run",))},
    ),
    "choice of some": (
        {"tools": TOOLS, "tool_choice": {"type": "allowed_tools", "mode": "required", "tools": ALLOWED}},
        {"tools": NEUTRAL_TOOLS, "tool_choice": ToolChoice("required", ("look", "run"))},
    ),
    "some or none": (
        {"tools": TOOLS, "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": ALLOWED[:1]}},
        {"tools": NEUTRAL_TOOLS, "tool_choice": ToolChoice("auto", ("look",))},
    ),
    "choice of what the provider runs": (
        {"tool_choice": {"type": "mcp", "server_label": "s", "name": "f"}},
        {"tool_choice": ToolChoice("required", ("mcp",))},
    ),
    "choice of some, not all of them the program's": (
        {"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [ALLOWED[0], {"type": "image_generation"}]}},
        {"tool_choice": ToolChoice("auto", ("look", "image_generation"))},
    ),
    "one call at a time": ({"parallel_tool_calls": False}, {"tool_choice": ToolChoice(parallel=False)}),
    "a choice, one call at a time": (
        {"tool_choice": "required", "parallel_tool_calls": False},
        {"tool_choice": ToolChoice("required", parallel=False)},
    ),
    "members that only this dialect knows": (
        {"store": False, "truncation": "auto", "background": True, "metadata": {"a": "b"}, "max_tool_calls": 3},
        {"extras": {"store": False, "truncation": "auto", "background": True, "metadata": {"a": "b"}, "max_tool_calls": 3}},
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


@pytest.mark.parametrize(
    ("members", "normal"),
    [
        ({"tool_choice": "auto", "parallel_tool_calls": True}, {"parallel_tool_calls": True}),
        (
            {"tools": TOOLS, "tool_choice": {"type": "allowed_tools", "mode": "required", "tools": ALLOWED[:1]}},
            {"tools": TOOLS, "tool_choice": ALLOWED[0]},
        ),
        (
            {"include": ["message.output_text.logprobs", "file_search_call.results"]},
            {"include": ["file_search_call.results", "message.output_text.logprobs"]},
        ),
        (
            {"tools": [{"type": "function", "name": "look", "parameters": SCHEMA}]},
            {"tools": [{"type": "function", "name": "look", "parameters": SCHEMA, "strict": None}]},
        ),
        ({"temperature": None, "tools": [], "include": [], "reasoning": {}, "text": {}, "instructions": ""}, {}),
    ],
)
def test_members_that_say_the_same_are_written_alike(members, normal):
    assert write(read(**members))[0] == body(**normal)


# -- requests that can't be --------------------------------------------------------------------------------------------

BAD: list[tuple[dict[str, Any], str, str]] = [
    ({"input": 5}, "input", "a list is needed, not a whole number"),
    ({"input": ["hi"]}, "input[0]", "an object is needed, not text"),
    ({"input": [{}]}, "input[0].type", "text is needed"),
    ({"input": [{"type": "message"}]}, "input[0].role", "text is needed"),
    ({"input": [{"role": "tool", "content": "a"}]}, "input[0].role", "no role 'tool'"),
    ({"input": [{"role": "user", "content": 5}]}, "input[0].content", "not a whole number"),
    ({"input": [said({})]}, "input[0].content[0].type", "text is needed"),
    ({"input": [said({"type": "input_text"})]}, "input[0].content[0].text", "text is needed"),
    ({"input": [said({"type": "input_image"})]}, "input[0].content[0]", "needs image_url or file_id"),
    ({"input": [said({"type": "input_file"})]}, "input[0].content[0]", "needs file_data, file_url or file_id"),
    ({"input": [said({"type": "input_audio"})]}, "input[0].content[0].input_audio", "an object is needed"),
    (
        {"input": [said({"type": "input_image", "image_url": "data:image/png,abc"})]},
        "input[0].content[0].image_url",
        "base64",
    ),
    (
        {"input": [said({"type": "input_file", "file_data": "data:x"})]},
        "input[0].content[0].file_data",
        "base64",
    ),
    (
        {"input": [said({"type": "input_text", "text": "a", "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "1h"}})]},
        "input[0].content[0].prompt_cache_breakpoint.ttl",
        "'1h'",
    ),
    (
        {"input": [said({"type": "input_text", "text": "a", "prompt_cache_breakpoint": {}})]},
        "input[0].content[0].prompt_cache_breakpoint.mode",
        "'explicit'",
    ),
    ({"input": [{"type": "function_call", "call_id": "c"}]}, "input[0].name", "text is needed"),
    ({"input": [called(arguments={})]}, "input[0].arguments", "text is needed, not an object"),
    ({"input": [answer(output={})]}, "input[0].output", "text is needed, not an object"),
    ({"input": [answer(output=[{"type": "refusal", "refusal": "no"}])]}, "input[0].output[0]", "can't refuse"),
    ({"input": [thought("a", encrypted_content=5)]}, "input[0].encrypted_content", "text is needed"),
    ({"input": [{"type": "reasoning", "summary": "a"}]}, "input[0].summary", "a list is needed"),
    ({"input": [{"type": "reasoning", "summary": [{}]}]}, "input[0].summary[0].text", "text is needed"),
    ({"instructions": ["a"]}, "instructions", "text is needed, not a list"),
    ({"temperature": "hot"}, "temperature", "a number is needed, not text"),
    ({"max_output_tokens": 1.5}, "max_output_tokens", "a whole number is needed"),
    ({"stream": "yes"}, "stream", "true or false"),
    ({"include": "all"}, "include", "a list is needed"),
    ({"include": [5]}, "include[0]", "text is needed"),
    ({"tools": [{"name": "f"}]}, "tools[0].type", "text is needed"),
    ({"tools": [{"type": "function"}]}, "tools[0].name", "text is needed"),
    ({"tools": [{"type": "function", "name": "f", "parameters": "p"}]}, "tools[0].parameters", "an object is needed"),
    ({"tool_choice": "any"}, "tool_choice", "'any'"),
    ({"tool_choice": 5}, "tool_choice", "an object is needed"),
    ({"tool_choice": {}}, "tool_choice.type", "text is needed"),
    ({"tool_choice": {"type": "function"}}, "tool_choice.name", "text is needed"),
    ({"tool_choice": {"type": "allowed_tools", "mode": "auto"}}, "tool_choice.tools", "a list is needed"),
    ({"tool_choice": {"type": "allowed_tools", "mode": "any", "tools": []}}, "tool_choice.mode", "'any'"),
    ({"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{}]}}, "tool_choice.tools[0].name", "text is needed"),
    ({"text": {"format": {"type": "json_schema", "name": "n"}}}, "text.format.schema", "a schema is needed"),
    ({"text": {"format": {"type": "json_schema", "schema": {}}}}, "text.format.name", "text is needed"),
    ({"text": "json"}, "text", "an object is needed"),
    ({"reasoning": {"effort": 5}}, "reasoning.effort", "text is needed"),
]  # fmt: skip


@pytest.mark.parametrize(("bad", "path", "reason"), BAD, ids=lambda value: value if isinstance(value, str) else "")
def test_a_request_that_cannot_be_names_the_place(bad, path, reason):
    with pytest.raises(BadRequest) as caught:
        decode_request(json.dumps(bad).encode(), VENDOR)
    assert caught.value.path == path
    assert reason in caught.value.reason


# -- what was sealed ---------------------------------------------------------------------------------------------------

#: An item that carried what another vendor made, between what was said, and what it is again.
SEALED: dict[str, tuple[list[dict[str, Any]], list[Any]]] = {
    "a signature": ([thought("hm", id="rs_1", encrypted_content=seal("reasoning", "anthropic", "S"))], [Reasoning("hm", "summary", Opaque("anthropic", "S"))]),
    "a signature alone": ([thought(encrypted_content=seal("reasoning", "anthropic", "S"))], [Reasoning("", "summary", Opaque("anthropic", "S"))]),
    "redacted": ([thought(id="rs_1", encrypted_content=seal("opaque", "anthropic", "D"))], [RedactedReasoning(Opaque("anthropic", "D"))]),
    "of a text": (
        [{"role": "assistant", "content": "a"}, thought(encrypted_content=seal("text", "google", "T"))],
        [Text("a", Opaque("google", "T"))],
    ),
    "of no text": ([thought(encrypted_content=seal("text", "google", "T"))], [Text("", Opaque("google", "T"))]),
    "of a part": ([thought(encrypted_content=seal("part", "google", "T"))], [Text("", Opaque("google", "T"))]),
    "of a call": (
        [thought(encrypted_content=seal("call", "google", "C")), called(), answer()],
        [ToolCall(0, "call_1", "look", '{"q":1.0}', signature=Opaque("google", "C"))],
    ),
    "of a call that is gone": (
        [thought(encrypted_content=seal("call", "google", "C"))],
        [RedactedReasoning(Opaque("google", "C"))],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SEALED)
def test_what_was_sealed_is_its_vendors_again_and_goes_to_no_other(name):
    items, parts = SEALED[name]
    request = read(items)
    assert request.turns[0].parts == parts
    written, report = write(request)
    assert "encrypted_content" not in json.dumps(written)
    assert sum(report.losses[kind] for kind in ("reasoning_signature", "reasoning_opaque")) == 1


def test_it_goes_back_to_its_vendor():
    items, _ = SEALED["a signature"]
    written, report = write(read(items), "anthropic")
    assert written["messages"][0]["content"] == [{"type": "thinking", "thinking": "hm", "signature": "S"}]
    assert not report.losses


# -- from other dialects -----------------------------------------------------------------------------------------------


def foreign(*turns: Turn, dialect: str = "anthropic", model: str = "m", **members: Any) -> Request:
    return Request(dialect, model, list(turns) or [Turn("user", [Text("hi")])], **members)


#: Turns of another dialect: the items, the losses, the repairs.
FOREIGN: dict[str, tuple[list[Turn], list[dict[str, Any]], dict[str, int], dict[str, int]]] = {
    "results, then text": (
        [
            Turn("assistant", [Text("wait"), CALL, ToolCall(1, "call_2", "look", "")]),
            Turn("user", [*ANSWERED.parts, ToolResult("call_2", [Text("a"), Text("b")]), Text("go on")]),
        ],
        [
            {"role": "assistant", "content": "wait"},
            called(),
            called("call_2", "{}"),
            answer(),
            answer("call_2", [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]),
            {"role": "user", "content": "go on"},
        ],
        {},
        {},
    ),
    "several texts": (
        [Turn("assistant", [Text("a"), Text("b"), Text("")])],
        [{"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"}],
        {},
        {"turn_empty": 1},
    ),
    "nothing said": (
        [Turn("user", [Text("hi")]), Turn("assistant", []), Turn("user", [])],
        [{"role": "user", "content": "hi"}],
        {},
        {"turn_empty": 2},
    ),
    "a refusal": (
        [Turn("assistant", [Refusal("no")]), Turn("user", [Refusal("no")])],
        [said({"type": "refusal", "refusal": "no"}, role="assistant", type="message"), {"role": "user", "content": "no"}],
        {"refusal_as_text": 1},
        {},
    ),
    "an error": (
        [Turn("assistant", [CALL]), Turn("user", [ToolResult("call_1", [Text("none")], is_error=True, cache="short")])],
        [called(), answer(output="Error: none")],
        {"result_error": 1, "cache_mark": 1},
        {},
    ),
    "an error without words": (
        [Turn("assistant", [CALL]), Turn("user", [ToolResult("call_1", [], is_error=True)])],
        [called(), answer(output="Error: ")],
        {"result_error": 1},
        {},
    ),
    "media": (
        [
            Turn(
                "user",
                [
                    Text("see", cache="short"),
                    Media("image", data=PNG, cache="long"),
                    Media("file", "application/pdf", "JVBERi0=", name="a.pdf"),
                    Media("file", url="https://x.test/a.pdf"),
                ],
            )
        ],
        [
            said(
                {"type": "input_text", "text": "see", "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "30m"}},
                {
                    "type": "input_image",
                    "image_url": PIXEL,
                    "detail": "auto",
                    "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "12h"},
                },
                {"type": "input_file", "file_data": "data:application/pdf;base64,JVBERi0=", "filename": "a.pdf"},
                {"type": "input_file", "file_url": "https://x.test/a.pdf"},
            )
        ],
        {"cache_mark": 2},
        {},
    ),
    "media that Responses does not have": (
        [
            Turn("user", [Text("see"), Media("video", "video/mp4", "AAAA"), Media("image", url="gs://b/a.png")]),
            Turn("user", [Media("audio", "audio/wav", "AAAA"), Media("file", file_id="file_1")]),
            Turn("assistant", [Text("so", cache="short"), Media("image", data=PNG)]),
        ],
        [
            {"role": "user", "content": "see"},
            {"role": "user", "content": ""},
            {"role": "assistant", "content": "so"},
        ],
        {"media": 5, "cache_mark": 1},
        {},
    ),
    "reasoning": (
        [
            Turn(
                "assistant",
                [Reasoning("hm", signature=Opaque("anthropic", "S")), RedactedReasoning(Opaque("anthropic", "D")), Reasoning("so"), CALL],
            ),
            ANSWERED,
        ],
        [called(), answer()],
        {"reasoning_history": 2, "reasoning_signature": 1, "reasoning_opaque": 1},
        {},
    ),
    "reasoning that OpenAI encrypted": (
        [
            Turn(
                "assistant",
                [
                    Reasoning("h", "summary"),
                    Reasoning("m", "summary", Opaque("openai", "E"), {"x": 1}),
                    RedactedReasoning(Opaque("openai", "F")),
                    Text("a"),
                ],
            )
        ],
        [thought("h", "m", encrypted_content="E"), thought(encrypted_content="F"), {"role": "assistant", "content": "a"}],
        {"metadata": 1},
        {},
    ),
    "signatures of texts and calls": (
        [
            Turn("assistant", [Text("a", Opaque("google", "T")), Text("", Opaque("google", "U")), ToolCall(0, "call_1", "look", '{"q":1.0}', signature=Opaque("google", "S"), cache="long")]),
            ANSWERED,
            Turn("user", [Text("b", Opaque("google", "V"))]),
        ],
        [{"role": "assistant", "content": "a"}, called(), answer(), {"role": "user", "content": "b"}],
        {"reasoning_signature": 4, "cache_mark": 1},
        {},
    ),
    "what only the other dialect knows": (
        [
            Turn(
                "user",
                [Text("a", extras={"citations": {"enabled": True}, "x": None}), Aside("anthropic", "server_tool", "s", {})],
                name="ann",
                extras={"y": 1},
            ),
            Turn("assistant", [Aside("anthropic", "server_tool", "s", {}), Text("b")]),
        ],
        [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}],
        {"metadata": 2, "server_tool": 2, "turn_name": 1},
        {},
    ),
    "an id and a name that do not fit": (
        [
            Turn("assistant", [ToolCall(0, "i" * 65, "a.b", "{}")]),
            Turn("user", [ToolResult("i" * 65, [Text("done")], "a.b")]),
        ],
        [called(portable_id("i" * 65), "{}") | {"name": portable_name("a.b")}, answer(portable_id("i" * 65))],
        {},
        {"id_rewritten": 1, "name_rewritten": 1},
    ),
}  # fmt: skip
#: Only the server gives ids, and the client's types demand one.
WITHOUT_IDS = {
    "a refusal": ["input[0].id: is missing", "input[0].status: is missing"],
    "reasoning that OpenAI encrypted": ["input[0].id: is missing", "input[1].id: is missing"],
}


@pytest.mark.parametrize("name", FOREIGN)
def test_turns_of_another_dialect(name):
    turns, items, losses, repairs = FOREIGN[name]
    written, report = write(foreign(*turns, model="gpt-5.6-sol"), linked_media="drop")
    assert written["input"] == items
    assert dict(report.losses) == losses
    assert dict(report.repairs) == repairs
    assert faults(VENDOR, written) == WITHOUT_IDS.get(name, [])


#: What the system says in front, its instructions, and its items.
SYSTEM: dict[str, tuple[list[Turn], str | None, list[dict[str, Any]]]] = {
    "one text": ([Turn("system", [Text("be")])], "be", []),
    "a developer's": ([Turn("system", [Text("be")], native_role="developer")], "be", []),
    "two turns": (
        [Turn("system", [Text("a")]), Turn("system", [Text("b")], native_role="developer")],
        None,
        [{"role": "system", "content": "a"}, {"role": "developer", "content": "b"}],
    ),
    "two texts": (
        [Turn("system", [Text("a"), Text("b")])],
        None,
        [said({"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}, role="system")],
    ),
    "a mark": (
        [Turn("system", [Text("a", cache="short")])],
        None,
        [said({"type": "input_text", "text": "a", "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "30m"}}, role="system")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SYSTEM)
def test_the_only_text_of_the_system_is_the_instructions(name):
    turns, instructions, items = SYSTEM[name]
    later = [Turn("user", [Text("hi")]), Turn("system", [Text("now")])]
    written, _ = write(foreign(*turns, *later, model="gpt-5.6-sol"))
    assert written.get("instructions") == instructions
    assert written["input"] == [*items, {"role": "user", "content": "hi"}, {"role": "system", "content": "now"}]
    assert faults(VENDOR, written) == []


def test_members_of_another_dialect():
    request = foreign(
        tools=[
            Tool("look", "d", SCHEMA, cache="short"),
            Tool("a.b"),
            Tool("run", kind="custom", format={"type": "grammar", "syntax": "regex", "definition": ".*"}),
            Tool("web", kind="server", raw={"type": "web_search"}),
        ],
        tool_choice=ToolChoice("required", ("a.b",), parallel=False),
        options=Options(
            max_tokens=5,
            temperature=0.5,
            top_k=4,
            stop=("x",),
            seed=7,
            presence_penalty=0.1,
            frequency_penalty=0.1,
            choices=1,
            logprobs=True,
            top_logprobs=2,
            thinking=Thinking("high", 9, True, "none"),
            output=OutputFormat("schema", SCHEMA),
            service_tier="standard_only",
            user="u",
        ),
        stream=True,
        stream_usage=True,
        extras={"metadata": {"a": 1}, "container": "c"},
    )
    written, report = write(request)
    assert written == body(
        tools=[
            {"type": "function", "name": "look", "description": "d", "parameters": SCHEMA, "strict": False},
            {
                "type": "function",
                "name": portable_name("a.b"),
                "parameters": {"type": "object", "properties": {}},
                "strict": False,
            },
            {"type": "custom", "name": "run", "format": {"type": "grammar", "syntax": "regex", "definition": ".*"}},
        ],
        tool_choice={"type": "function", "name": portable_name("a.b")},
        parallel_tool_calls=False,
        max_output_tokens=16,
        temperature=0.5,
        top_logprobs=2,
        include=["message.output_text.logprobs"],
        user="u",
        reasoning={"effort": "high"},
        text={"format": {"type": "json_schema", "name": "response", "schema": SCHEMA}},
        stream=True,
    )
    assert dict(report.losses) == {"cache_mark": 1, "tool_definition": 1, "parameter": 10}
    assert {what for kind, what in report.lost if kind == "parameter"} == {
        "max_tokens",
        "thinking.budget_tokens",
        "service_tier",
        "top_k",
        "stop",
        "seed",
        "presence_penalty",
        "frequency_penalty",
        "metadata",
        "container",
    }
    assert faults(VENDOR, written) == []


@pytest.mark.parametrize("schema", [None, {}, {"type": "object"}])
def test_a_tool_without_parameters_says_so_as_the_server_demands(schema):
    written, _ = write(foreign(tools=[Tool("now", parameters=schema)]))
    assert written["tools"][0]["parameters"] == {"type": "object", "properties": {}}
    assert write(read(tools=[TOOLS[1] | {"parameters": schema}]))[0]["tools"][0]["parameters"] == schema


@pytest.mark.parametrize(
    ("choice", "members"),
    [
        (ToolChoice("auto"), {"tool_choice": "auto"}),
        (ToolChoice("none", ("look",)), {"tool_choice": "none"}),
        (
            ToolChoice("auto", ("look",), extras={"x": 1}),
            {"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": ALLOWED[:1]}},
        ),
    ],
)
def test_choices_of_another_dialect(choice, members):
    written, report = write(foreign(tools=[Tool("look", "d", SCHEMA)], tool_choice=choice))
    assert written == body(tools=[{**TOOLS[0], "strict": False}], **members)
    assert dict(report.losses) == ({"tool_choice": 1} if choice.extras else {})


@pytest.mark.parametrize(("bound", "written"), [(0, 0), (1, 16), (16, 16), (17, 17)])
def test_a_bound_is_at_least_what_the_server_takes(bound, written):
    assert write(foreign(options=Options(max_tokens=bound)))[0]["max_output_tokens"] == written
    assert write(read(max_output_tokens=bound))[0]["max_output_tokens"] == bound


def test_more_than_one_choice_is_refused():
    with pytest.raises(BadRequest) as caught:
        write(foreign(options=Options(choices=2)))
    assert caught.value.path == "n"


def test_marks_and_ids_of_openais_other_dialect_mean_the_same():
    marked = Text("a", cache="short")
    written, report = write(foreign(Turn("user", [marked, Media("file", file_id="f")]), dialect="openai-chat"))
    assert written["input"][0]["content"][1] == {"type": "input_file", "file_id": "f"}
    assert not report.losses


def test_the_id_of_an_encrypted_detail_is_its_items():
    details = [{"type": "reasoning.encrypted", "data": "E", "format": "openai-responses-v1", "id": "rs_1", "index": 0}]
    messages = [{"role": "assistant", "content": "a", "reasoning_details": details}]
    request = decode_request(json.dumps({"model": "m", "messages": messages}).encode(), "openai-chat")
    written, report = write(request)
    assert written["input"][0] == thought(id="rs_1", encrypted_content="E")
    assert not report.losses
    assert faults(VENDOR, written) == []


def test_an_assistants_turn_has_no_results():
    with pytest.raises(TypeError, match="an assistant's turn has no ToolResult"):
        DIALECTS[VENDOR].bodies.encode_request(foreign(Turn("assistant", [ToolResult("c")])), Target(), StreamReport())
    with pytest.raises(TypeError, match="content has no Reasoning"):
        write(foreign(Turn("user", [Reasoning("hm")])))


def test_what_a_turn_says_of_itself_needs_a_message():
    turn = Turn("assistant", [Text("a")], extras={"x": 1})
    written, report = write(Request(VENDOR, "m", [turn]))
    assert written["input"] == [{"role": "assistant", "content": "a"}]
    assert report.lost == [("metadata", "x")]


# -- the second leg ----------------------------------------------------------------------------------------------------

OUTPUT = [
    thought("h", id="rs_1", encrypted_content="E"),
    SEARCH,
    spoken(output_text("see", [CITATION], logprobs=[LOGPROB]), phase="commentary"),
    {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "s", "tools": []},
    called(id="fc_1", status="completed", namespace="n"),
]


def response_of(*output: dict[str, Any]) -> bytes:
    return json.dumps({"id": "r", "object": "response", "status": "completed", "output": list(output)}).encode()


def test_what_was_said_goes_back_as_the_second_leg():
    """seeds.md S3: the parts of a response are the turn of the next request. Ids of items stay with the response."""
    request = request_with_results(read(), decode_response(response_of(*OUTPUT), VENDOR), {"call_1": "done"})
    written, report = write(request)
    assert written["input"][1:] == [
        thought("h", encrypted_content="E"),
        SEARCH,
        said(output_text("see", [CITATION]), role="assistant", type="message", phase="commentary"),
        OUTPUT[3],
        called(namespace="n"),
        answer(name="look"),
    ]
    assert not report.losses
    assert not report.repairs


def test_a_phase_goes_back_with_its_message_in_the_short_form():
    response = decode_response(response_of(spoken(output_text("a"), phase="commentary"), called()), VENDOR)
    written, report = write(request_with_results(read(), response, {"call_1": "done"}))
    assert written["input"][1] == {"role": "assistant", "content": "a", "phase": "commentary"}
    assert faults(VENDOR, written) == []
    assert not report.losses


def test_what_is_about_the_response_has_no_place_in_a_request():
    parts = [
        Aside(VENDOR, "metadata", "response.completed_at", 1),
        Aside(VENDOR, "metadata", "delta.x", 1),
        Aside(VENDOR, "metadata", "message.x", 1, block=7),
        Aside(VENDOR, "citation", "annotation", CITATION, block=7),
        Aside(VENDOR, "audio", "response.audio.delta", {"type": "response.audio.delta", "delta": "AA"}),
        Aside(VENDOR, "unknown_event", "response.output_item.done", 5),
        Aside("anthropic", "server_tool", "content_block_start", {}),
        Text("a"),
    ]
    written, report = write(Request(VENDOR, "m", [Turn("assistant", parts)]))
    assert written["input"] == [{"role": "assistant", "content": "a"}]
    assert dict(report.losses) == {"metadata": 3, "citation": 1, "audio": 1, "unknown_event": 1, "server_tool": 1}


def test_an_item_whose_end_never_came_is_incomplete():
    start = {"type": "response.output_item.added", "item": {**SEARCH, "status": "in_progress"}}
    going = {"type": "response.web_search_call.searching", "item_id": "ws_1"}
    parts = [Aside(VENDOR, "server_tool", frame["type"], frame, block=3) for frame in (start, going)]
    written, report = write(Request(VENDOR, "m", [Turn("assistant", [*parts, Text("a")])]))
    assert written["input"] == [{**SEARCH, "status": "incomplete"}, {"role": "assistant", "content": "a"}]
    assert not report.losses


def test_visible_reasoning_of_this_dialect_goes_back_only_in_the_open():
    """A summary alone tells its server nothing; open models, whose servers speak this dialect, want their own words."""
    turn = Turn("assistant", [Reasoning("h", "summary"), Reasoning("hm", block=1), Text("a")])
    written, report = write(Request(VENDOR, "m", [turn]))
    assert written["input"][0] == thought("h", raw=("hm",))
    turn.parts.pop(1)
    written, report = write(Request(VENDOR, "m", [turn]))
    assert written["input"] == [{"role": "assistant", "content": "a"}]
    assert dict(report.losses) == {"reasoning_history": 1}


def test_the_result_that_tells_what_to_mend_is_an_item():
    bad = decode_response(response_of(called(arguments='{"q": oops')), VENDOR).tool_calls[0]
    item = error_result(bad, VENDOR)
    assert (item["type"], item["call_id"]) == ("function_call_output", "call_1")
    assert item["output"].startswith("Error: ")


# -- the recordings, and the official client ---------------------------------------------------------------------------


def normal(request: dict[str, Any]) -> dict[str, Any]:
    """A request as it is written again.

    An input of one text is an item, content of one plain text a string, and that an item is a message or completed is not
    said; an image says its detail, a function ``strict``; empty lists are left out.
    """
    items = request["input"]
    if isinstance(items, str):
        items = [{"role": "user", "content": items}]
    told = {**request, "input": [normal_item(item) for item in items]}
    if "tools" in request:
        told["tools"] = [{"strict": None, **tool} if tool["type"] == "function" else tool for tool in request["tools"]]
    return {name: value for name, value in told.items() if value not in (None, [])}


def normal_item(item: dict[str, Any]) -> dict[str, Any]:
    item = {name: value for name, value in item.items() if (name, value) != ("status", "completed")}
    if "role" in item:
        item.pop("type", None)
    content = item.get("content")
    if isinstance(content, list):
        item["content"] = [{"detail": "auto", **part} if part["type"] == "input_image" else part for part in content]
        if len(content) == 1 and content[0].keys() == {"type", "text"}:
            item["content"] = content[0]["text"]
    return item


def test_every_recorded_request_comes_back():
    for recorded in requests(VENDOR):
        written, report = write(decode_request(json.dumps(recorded.body).encode(), VENDOR))
        assert written == normal(recorded.body), recorded.name
        assert report.losses == report.repairs == Counter(), recorded.name
        assert faults(VENDOR, written) == [], recorded.name


#: Rows of the tables with something that the client does not let its user write.
BEYOND_CLIENT = {
    "choice of one that says its namespace",
    "audio",
    "an unknown part",
    "members nobody knows",
    "messages of the server",
    "an unknown part behind a text",
    "a message of unknown parts",
    "reasoning that the server knows",
    "reasoning in the open",
    "reasoning both ways",
    "encrypted reasoning",
    "reasoning of an unknown kind",
    "what the program answers to that",
    "a format of another server",
}


@pytest.mark.parametrize("name", [*ITEMS, *MEMBERS])
def test_what_is_written_passes_the_types_of_the_client(name):
    members = {"input": ITEMS[name][0]} if name in ITEMS else MEMBERS[name][0]
    written, _ = write(decode_request(json.dumps(body() | members).encode(), VENDOR))
    assert bool(faults(VENDOR, written)) == (name in BEYOND_CLIENT)


@pytest.mark.parametrize("source", [name for name in DIALECTS.built_in if name != VENDOR])
def test_recorded_requests_of_other_dialects_pass_the_types_of_the_client(source):
    if DIALECTS[source].bodies is None:
        pytest.skip(f"{source} has no bodies")
    for recorded in requests(source):
        request = decode_request(json.dumps(recorded.body).encode(), source)
        request.model = request.model or "m"
        written, _ = write(request, repair=True)
        assert faults(VENDOR, written) == [], recorded.name


def test_the_official_client_sends_it(client, replay):
    said_before = [Turn("system", [Text("be")]), Turn("user", [Text("hi"), Media("image", "image/png", PNG)])]
    calling = [Turn("assistant", [Text("wait"), CALL]), ANSWERED]
    written, _ = write(
        foreign(*said_before, *calling, tools=[Tool("look", None, SCHEMA)], options=Options(max_tokens=50))
    )
    written["model"] = replay.register(response_of(), "application/json")
    client("openai").responses.create(**written)
    assert json.loads(replay.asked[written["model"]]) == written


# -- what only the server's store has ----------------------------------------------------------------------------------

SAID = {"role": "user", "content": "Hi"}
STORED = {
    "an earlier response": ({"previous_response_id": "resp_1"}, "previous_response_id", "store: false"),
    "a conversation": ({"conversation": {"id": "conv_1"}}, "conversation", "without a conversation"),
    "an item": (
        {"input": [SAID, {"type": "item_reference", "id": "msg_1"}]},
        "input[1]",
        "providerOptions.openai.store",
    ),
    "an item without a type": ({"input": [{"id": "msg_1"}]}, "input[0]", "ModelSettings(store=False)"),
    "a prompt": ({"prompt": {"id": "pmpt_1"}}, "prompt", "send the text of the prompt"),
}


@pytest.mark.parametrize("name", STORED)
@pytest.mark.parametrize("target", ["openai-chat", "anthropic", "gemini", "ollama"])
def test_a_reference_to_a_store_is_refused_elsewhere_with_what_to_send_instead(name, target):
    members, path, instead = STORED[name]
    asked = decode_request(orjson.dumps({"model": "m", "input": [SAID], **members}), "openai-responses")
    with pytest.raises(BadRequest) as refused:
        encode_request(asked, target, max_tokens=9)
    assert refused.value.path == path
    assert instead in refused.value.reason
    again = orjson.loads(encode_request(asked, "openai-responses"))  # the server may have it
    assert all(name in again for name in members)
