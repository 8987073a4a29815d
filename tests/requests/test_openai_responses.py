"""Requests of OpenAI Responses: read, written, and read from and written for others.

Source: dialects.md §2.2, §2.3, §7.3, §7.4; seeds.md S2, S3; quirks.md R14.
"""

from __future__ import annotations

import json
from typing import Any

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
from streamkit.events import Aside, Opaque, QualifiedName
from streamkit.report import StreamReport
from streamkit.text.identifiers import portable_id, portable_name
from streamkit.translation.bodies import decode_request, decode_response
from streamkit.translation.tool_loop import error_result, request_with_results
from tests.requests.rows import HI, Dialect, Row, by_model, by_system, by_user, parameters, rows

PNG = "iVBORw0KGgo="
PIXEL = f"data:image/png;base64,{PNG}"
SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
VENDOR = "openai-responses"
SAID = {"role": "user", "content": "hi"}
#: What the messages of an assistant of another dialect get.
COMMENTARY, FINAL = {"phase": "commentary"}, {"phase": "final_answer"}

RESPONSES = Dialect(
    VENDOR,
    {"model": "m", "input": [SAID]},
    Request(VENDOR, "m", [HI]),
    Request("anthropic", "m", [HI]),
    {"linked_media": "drop"},
)


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
    "text": ([{"role": "user", "content": "hi"}], [by_user(Text("hi"))]),
    "no text": ([{"role": "user", "content": ""}], [by_user()]),
    "system": ([{"role": "system", "content": "be"}], [by_system(Text("be"), native_role="system")]),
    "developer": ([{"role": "developer", "content": "be"}], [by_system(Text("be"), native_role="developer")]),
    "system in the middle": (
        [{"role": "user", "content": "a"}, {"role": "system", "content": "b"}, {"role": "user", "content": "c"}],
        [by_user(Text("a")), by_system(Text("b"), native_role="system"), by_user(Text("c"))],
    ),
    "several texts": ([said({"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"})], [by_user(Text("a"), Text("b"))]),
    "a mark": (
        [said({"type": "input_text", "text": "a", "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "12h"}})],
        [by_user(Text("a", cache="long"))],
    ),
    "image at a URL": (
        [said({"type": "input_image", "image_url": "https://x.test/a.png", "detail": "low"})],
        [by_user(Media("image", url="https://x.test/a.png", detail="low"))],
    ),
    "image as data": (
        [said({"type": "input_text", "text": "see"}, {"type": "input_image", "image_url": PIXEL, "detail": "auto"})],
        [by_user(Text("see"), Media("image", "image/png", PNG, detail="auto"))],
    ),
    "image by its id": (
        [said({"type": "input_image", "file_id": "file_1", "detail": "high"})], [by_user(Media("image", file_id="file_1", detail="high"))],
    ),
    "file as data": (
        [said({"type": "input_file", "file_data": "data:application/pdf;base64,JVBERi0=", "filename": "a.pdf"})],
        [by_user(Media("file", "application/pdf", "JVBERi0=", name="a.pdf"))],
    ),
    "file as bare base64": (
        [said({"type": "input_file", "file_data": "JVBERi0=", "filename": "a.pdf", "detail": "low"})],
        [by_user(Media("file", None, "JVBERi0=", name="a.pdf", detail="low"))],
    ),
    "file at a URL, and by its id": (
        [said({"type": "input_file", "file_url": "https://x.test/a.pdf"}, {"type": "input_file", "file_id": "f"})],
        [by_user(Media("file", url="https://x.test/a.pdf"), Media("file", file_id="f"))],
    ),
    "audio": (
        [said(
            {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}},
            {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "flac"}},
        )],
        [by_user(Media("audio", "audio/mpeg", "AAAA"), Media("audio", "audio/flac", "AAAA"))],
    ),
    "an unknown part": ([said({"type": "input_video", "video_url": "u"})], [by_user(Aside(VENDOR, "unknown_event", "content.input_video", {
        "type": "input_video", "video_url": "u",
    }))]),
    "members nobody knows": (
        [said({"type": "input_text", "text": "a", "x": 1}, id="msg_0", status="incomplete")],
        [by_user(Text("a", extras={"x": 1}), extras={"id": "msg_0", "status": "incomplete"})],
    ),
    "assistant": ([{"role": "assistant", "content": "yes"}], [by_model(Text("yes"))]),
    "assistant, twice": ([{"role": "assistant", "content": "a"}, {"role": "assistant", "content": ""}], [by_model(Text("a"), Text(""))]),
    "a phase": (
        [{"role": "assistant", "content": "a", "phase": "commentary"}], [by_model(Text("a", extras={"item": {"phase": "commentary"}}))],
    ),
    "messages of the server": (
        [
            spoken(output_text("a"), output_text("b", x=1), phase="final_answer"),
            spoken({"type": "refusal", "refusal": "no"}, item_id="msg_2", status="incomplete"),
        ],
        [by_model(
            Text("a", extras={"item": {"id": "msg_1", "phase": "final_answer"}}), Text("b", extras={"x": 1, "item": {"id": "msg_1"}}),
            Refusal("no", {"item": {"id": "msg_2", "status": "incomplete"}}),
        )],
    ),
    "what stands beside a text": (
        [spoken(output_text("a", [CITATION, CITATION], logprobs=[LOGPROB]), output_text("b", [CITATION]))],
        [by_model(
            Text("a", extras={"item": {"id": "msg_1"}}), Aside(VENDOR, "citation", "annotation", CITATION, block=1),
            Aside(VENDOR, "citation", "annotation", CITATION, block=1), Aside(VENDOR, "logprobs", "logprobs", [LOGPROB], block=1),
            Text("b", extras={"item": {"id": "msg_1"}}), Aside(VENDOR, "citation", "annotation", CITATION, block=2),
        )],
    ),
    "an unknown part behind a text": ([spoken(output_text("a"), {"type": "output_video", "x": 1})], [by_model(
        Text("a", extras={"item": {"id": "msg_1"}}),
        Aside(VENDOR, "unknown_event", "content.output_video", {"type": "output_video", "x": 1}),
    )]),
    "a message of unknown parts": ([spoken({"type": "output_video", "x": 1})], [by_model(aside(
        spoken({"type": "output_video", "x": 1}), "unknown_event",
    ))]),
    "reasoning, text and calls are one turn": (
        [
            thought("h", "m", id="rs_1", encrypted_content="E"), {"role": "assistant", "content": "wait"}, called(id="fc_1"),
            called("call_2", "{}", caller={"type": "direct"}, status="incomplete"), answer("call_2", "b"), answer(),
            {"role": "user", "content": "go on"},
        ],
        [
            by_model(
                Reasoning("h", "summary", extras={"item": {"id": "rs_1"}}),
                Reasoning("m", "summary", Opaque("openai", "E"), {"item": {"id": "rs_1"}}), Text("wait"),
                ToolCall(0, "call_1", "look", '{"q":1.0}', extras={"id": "fc_1"}),
                ToolCall(1, "call_2", "look", "{}", extras={"caller": {"type": "direct"}, "status": "incomplete"}),
            ),
            by_user(ToolResult("call_2", [Text("b")]), ToolResult("call_1", [Text("done")])), by_user(Text("go on")),
        ],
    ),
    "two rounds of calls": ([called(), answer(), called("call_2"), answer("call_2")], [
        by_model(CALL), ANSWERED, by_model(ToolCall(0, "call_2", "look", '{"q":1.0}')), by_user(ToolResult("call_2", [Text("done")])),
    ]),
    "a call of a tool in a namespace": ([called(namespace="mcp__w"), answer()], [
        by_model(ToolCall(0, "call_1", "mcp__w__look", '{"q":1.0}', qualified=QualifiedName("mcp__w", "look"))), ANSWERED,
    ]),
    "a custom call": (
        [
            {"type": "custom_tool_call", "call_id": "call_1", "name": "run", "input": "1 + 1"},
            {"type": "custom_tool_call_output", "call_id": "call_1", "output": "2"},
        ],
        [by_model(ToolCall(0, "call_1", "run", "1 + 1", "custom")), by_user(ToolResult("call_1", [Text("2")], kind="custom"))],
    ),
    "arguments that are no object": ([called(arguments='{"q": oops'), answer()], [
        by_model(ToolCall(0, "call_1", "look", '{"q": oops')), ANSWERED,
    ]),
    "what a tool gave": (
        [called(), answer(
            output=[
                {"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": PIXEL, "detail": "auto"},
                {"type": "input_file", "file_id": "f"},
            ],
            name="look", id="fco_1",
        )],
        [by_model(CALL), by_user(ToolResult(
            "call_1", [Text("a"), Media("image", "image/png", PNG, detail="auto"), Media("file", file_id="f")], "look",
            extras={"id": "fco_1"},
        ))],
    ),
    "reasoning that the server knows": (
        [thought(id="rs_1"), thought("a", id="rs_2"), thought("b", id="rs_3", format="f")],
        [by_model(
            Reasoning("", "summary", extras={"item": {"id": "rs_1"}}), Reasoning("a", "summary", extras={"item": {"id": "rs_2"}}),
            Reasoning("b", "summary", extras={"item": {"id": "rs_3", "format": "f"}}),
        )],
    ),
    "reasoning in the open": ([thought(raw=("hm",))], [by_model(Reasoning("hm"))]),
    "reasoning both ways": ([thought("h", raw=("hm",), encrypted_content="E")], [by_model(Reasoning("h", "summary"), Reasoning(
        "hm", "raw", Opaque("openai", "E"),
    ))]),
    "encrypted reasoning": (
        [thought(id="rs_1", encrypted_content="E"), thought(encrypted_content="F")],
        [by_model(RedactedReasoning(Opaque("openai", "E"), {"item": {"id": "rs_1"}}), RedactedReasoning(Opaque("openai", "F")))],
    ),
    "reasoning of an unknown kind": (
        [{"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_image", "x": 1}]}],
        [by_model(aside({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_image", "x": 1}]}, "unknown_event"))],
    ),
    "what the provider runs": ([SEARCH, spoken(output_text("a")), COMPACTED], [by_model(
        aside(SEARCH), Text("a", extras={"item": {"id": "msg_1"}}), aside(COMPACTED, "unknown_event"),
    )]),
    "what the program answers to that": (
        [called(), COMPUTER, answer(), SCREEN, {"role": "user", "content": "go on"}],
        [
            by_model(CALL, ToolCall(1, "c", "computer", '{"type":"wait"}')),
            by_user(*ANSWERED.parts, ToolResult("c", [Media("image", url="u")])), by_user(Text("go on")),
        ],
    ),
    "references, and an output of a call that the server knows": ([REFERENCE, answer("call_9"), called(), answer()], [
        by_model(aside(REFERENCE, "unknown_event")), by_user(aside(answer("call_9"))), by_model(CALL), ANSWERED,
    ]),
}  # fmt: skip

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
    "input of the assistant's": ([said({"type": "input_text", "text": "a"}, role="assistant")], [{"role": "assistant", "content": "a"}]),
    "output of the user's": ([said(output_text("a"))], [{"role": "user", "content": "a"}]),
    "no detail": ([said({"type": "input_image", "image_url": PIXEL})], [said({
        "type": "input_image", "image_url": PIXEL, "detail": "auto",
    })]),
    "the span of a mark": (
        [said({"type": "input_text", "text": "a", "prompt_cache_breakpoint": {"mode": "explicit"}})],
        [said({"type": "input_text", "text": "a", "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "30m"}})],
    ),
    "no arguments": ([called(arguments=""), answer()], [called(arguments="{}"), answer()]),
    "null members": ([thought("a", id="rs_1", content=None, encrypted_content=None, status=None)], [thought("a", id="rs_1")]),
    "a reference without its type": ([{"id": "msg_9"}], [REFERENCE]),
}  # fmt: skip

INSTRUCTIONS = [([], [by_system(Text("be"))]), ([{"role": "developer", "content": "b"}], [by_system(Text("be")), by_system(
    Text("b"), native_role="developer",
)])]  # fmt: skip


# -- other members -----------------------------------------------------------------------------------------------------

TOOLS = [
    {"type": "function", "name": "look", "description": "d", "parameters": SCHEMA, "strict": True},
    {"type": "function", "name": "now", "parameters": None, "strict": False},
    {"type": "custom", "name": "run", "description": "d", "format": {"type": "text"}},
    {"type": "custom", "name": "calc", "format": {"type": "grammar", "syntax": "lark", "definition": "start: NUMBER"}},
]  # fmt: skip
NEUTRAL_TOOLS = [
    Tool("look", "d", SCHEMA, True),
    Tool("now", strict=False),
    Tool("run", "d", kind="custom", format={"type": "text"}),
    Tool("calc", kind="custom", format={"type": "grammar", "syntax": "lark", "definition": "start: NUMBER"}),
]  # fmt: skip
ALLOWED = [{"type": "function", "name": "look"}, {"type": "custom", "name": "run"}]
HOSTED = [
    {"type": "web_search", "search_context_size": "low"},
    {"type": "mcp", "server_label": "s", "server_url": "https://x.test"},
    {"type": "namespace", "name": "crm", "description": "d", "tools": []},
]  # fmt: skip

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
            "temperature": 0.5, "top_p": 1, "top_logprobs": 3, "include": ["reasoning.encrypted_content", "message.output_text.logprobs"],
            "service_tier": "flex", "user": "u", "max_output_tokens": 5,
        },
        {
            "options": Options(max_tokens=5, temperature=0.5, top_p=1, logprobs=True, top_logprobs=3, service_tier="flex", user="u"),
            "extras": {"include": ["reasoning.encrypted_content"]},
        },
    ),
    "reasoning": (
        {"reasoning": {"effort": "low", "summary": "detailed", "context": "all_turns"}},
        {"options": Options(thinking=Thinking("low", summary="detailed")), "extras": {"reasoning": {"context": "all_turns"}}},
    ),
    "reasoning of another kind": ({"reasoning": {"mode": "pro"}}, {"extras": {"reasoning": {"mode": "pro"}}}),
    "text": ({"text": {"format": {"type": "text"}}}, {"options": Options(output=OutputFormat("text"))}),
    "json": ({"text": {"format": {"type": "json_object"}}}, {"options": Options(output=OutputFormat("json"))}),
    "schema": (
        {"text": {
            "format": {"type": "json_schema", "name": "n", "description": "d", "schema": SCHEMA, "strict": True}, "verbosity": "low",
        }},
        {"options": Options(output=OutputFormat("schema", SCHEMA, "n", "d", True)), "extras": {"text": {"verbosity": "low"}}},
    ),
    "a format of another server": ({"text": {"format": {"type": "grammar", "value": "g"}}}, {"extras": {"text": {"format": {
        "type": "grammar", "value": "g",
    }}}}),
    "streaming": ({"stream": True, "stream_options": {"include_obfuscation": False}}, {
        "stream": True, "stream_usage": True, "extras": {"stream_options": {"include_obfuscation": False}},
    }),
    "not streaming": ({"stream": False}, {"stream": False}),
    "tools": ({"tools": TOOLS}, {"tools": NEUTRAL_TOOLS}),
    "a tool with more": ({"tools": [{**TOOLS[0], "defer_loading": True, "async": True}]}, {"tools": [Tool(
        "look", "d", SCHEMA, True, deferred=True, extras={"async": True},
    )]}),
    "tools that the provider runs": (
        {"tools": HOSTED},
        {"tools": [Tool(name, kind="server", raw=raw) for (name, raw) in zip(["web_search", "mcp", "crm"], HOSTED, strict=True)]},
    ),
    "namespaces": (
        {"tools": [
            TOOLS[0], {"type": "namespace", "name": "mcp__w", "description": "d", "tools": [TOOLS[0], TOOLS[2]]},
            {"type": "namespace", "name": "agents_v1", "description": "e", "tools": [TOOLS[1]]}, TOOLS[3],
        ]},
        {"tools": [
            NEUTRAL_TOOLS[0], in_namespace(NEUTRAL_TOOLS[0], W), in_namespace(NEUTRAL_TOOLS[2], W),
            in_namespace(NEUTRAL_TOOLS[1], Namespace("agents_v1", "e")), NEUTRAL_TOOLS[3],
        ]},
    ),
    "choice of one in a namespace": ({"tools": [GROUP], "tool_choice": ALLOWED[0]}, {
        "tools": [in_namespace(NEUTRAL_TOOLS[0], G)], "tool_choice": ToolChoice("required", ("mcp__w__look",)),
    }),
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
    "choice of one": ({"tools": TOOLS, "tool_choice": ALLOWED[0]}, {"tools": NEUTRAL_TOOLS, "tool_choice": ToolChoice(
        "required", ("look",),
    )}),
    "choice of a custom one": ({"tools": TOOLS, "tool_choice": ALLOWED[1]}, {"tools": NEUTRAL_TOOLS, "tool_choice": ToolChoice(
        "required", ("run",),
    )}),
    "choice of some": (
        {"tools": TOOLS, "tool_choice": {"type": "allowed_tools", "mode": "required", "tools": ALLOWED}},
        {"tools": NEUTRAL_TOOLS, "tool_choice": ToolChoice("required", ("look", "run"))},
    ),
    "some or none": (
        {"tools": TOOLS, "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": ALLOWED[:1]}},
        {"tools": NEUTRAL_TOOLS, "tool_choice": ToolChoice("auto", ("look",))},
    ),
    "choice of what the provider runs": ({"tool_choice": {"type": "mcp", "server_label": "s", "name": "f"}}, {"tool_choice": ToolChoice(
        "required", ("mcp",),
    )}),
    "choice of some, not all of them the program's": (
        {"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [ALLOWED[0], {"type": "image_generation"}]}},
        {"tool_choice": ToolChoice("auto", ("look", "image_generation"))},
    ),
    "one call at a time": ({"parallel_tool_calls": False}, {"tool_choice": ToolChoice(parallel=False)}),
    "a choice, one call at a time": ({"tool_choice": "required", "parallel_tool_calls": False}, {"tool_choice": ToolChoice(
        "required", parallel=False,
    )}),
    "members that only this dialect knows": (
        {"store": False, "truncation": "auto", "background": True, "metadata": {"a": "b"}, "max_tool_calls": 3},
        {"extras": {"store": False, "truncation": "auto", "background": True, "metadata": {"a": "b"}, "max_tool_calls": 3}},
    ),
}  # fmt: skip

ALIKE_MEMBERS = [
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
]  # fmt: skip


# -- requests that can't be --------------------------------------------------------------------------------------------

BAD: list[tuple[dict[str, Any], str, str]] = [
    ({"input": 5}, "input", "must be a list, not an integer"),
    ({"input": ["hi"]}, "input[0]", "must be an object, not a string"),
    ({"input": [{}]}, "input[0].type", "is missing; must be the type of the item"),
    ({"input": [{"type": "message"}]}, "input[0].role", "must be a string"),
    ({"input": [{"role": "tool", "content": "a"}]}, "input[0].role", "'system' or 'developer', not 'tool'"),
    ({"input": [{"role": "user", "content": 5}]}, "input[0].content", "not an integer"),
    ({"input": [said({})]}, "input[0].content[0].type", "must be a string"),
    ({"input": [said({"type": "input_text"})]}, "input[0].content[0].text", "must be a string"),
    ({"input": [said({"type": "input_image"})]}, "input[0].content[0]", "must have image_url or file_id"),
    ({"input": [said({"type": "input_file"})]}, "input[0].content[0]", "must have file_data, file_url or file_id"),
    ({"input": [said({"type": "input_audio"})]}, "input[0].content[0].input_audio", "must be an object"),
    ({"input": [said({"type": "input_image", "image_url": "data:image/png,abc"})]}, "input[0].content[0].image_url", "base64"),
    ({"input": [said({"type": "input_file", "file_data": "data:x"})]}, "input[0].content[0].file_data", "base64"),
    (
        {"input": [said({"type": "input_text", "text": "a", "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "1h"}})]},
        "input[0].content[0].prompt_cache_breakpoint.ttl", "'1h'",
    ),
    (
        {"input": [said({"type": "input_text", "text": "a", "prompt_cache_breakpoint": {}})]},
        "input[0].content[0].prompt_cache_breakpoint.mode", "'explicit'",
    ),
    ({"input": [{"type": "function_call", "call_id": "c"}]}, "input[0].name", "must be a string"),
    ({"input": [called(arguments={})]}, "input[0].arguments", "must be a string, not an object"),
    ({"input": [answer(output={})]}, "input[0].output", "must be a string or a list of objects, not an object"),
    ({"input": [answer(output=[{"type": "refusal", "refusal": "no"}])]}, "input[0].output[0]", "must not contain a refusal"),
    ({"input": [thought("a", encrypted_content=5)]}, "input[0].encrypted_content", "must be a string"),
    ({"input": [{"type": "reasoning", "summary": "a"}]}, "input[0].summary", "must be a list"),
    ({"input": [{"type": "reasoning", "summary": [{}]}]}, "input[0].summary[0].text", "must be a string"),
    ({"instructions": ["a"]}, "instructions", "must be a string, not a list"),
    ({"temperature": "hot"}, "temperature", "must be a number, not a string"),
    ({"max_output_tokens": 1.5}, "max_output_tokens", "must be an integer"),
    ({"stream": "yes"}, "stream", "must be a boolean"),
    ({"include": "all"}, "include", "must be a list"),
    ({"include": [5]}, "include[0]", "must be a string"),
    ({"tools": [{"name": "f"}]}, "tools[0].type", "must be a string"),
    ({"tools": [{"type": "function"}]}, "tools[0].name", "must be a string"),
    ({"tools": [{"type": "function", "name": "f", "parameters": "p"}]}, "tools[0].parameters", "must be an object"),
    ({"tool_choice": "any"}, "tool_choice", "'any'"),
    ({"tool_choice": 5}, "tool_choice", "must be an object"),
    ({"tool_choice": {}}, "tool_choice.type", "must be a string"),
    ({"tool_choice": {"type": "function"}}, "tool_choice.name", "must be a string"),
    ({"tool_choice": {"type": "allowed_tools", "mode": "auto"}}, "tool_choice.tools", "must be a list"),
    ({"tool_choice": {"type": "allowed_tools", "mode": "any", "tools": []}}, "tool_choice.mode", "'any'"),
    ({"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{}]}}, "tool_choice.tools[0].name", "must be a string"),
    ({"text": {"format": {"type": "json_schema", "name": "n"}}}, "text.format.schema", "is missing; must be a JSON schema"),
    ({"text": {"format": {"type": "json_schema", "schema": {}}}}, "text.format.name", "must be a string"),
    ({"text": "json"}, "text", "must be an object"),
    ({"reasoning": {"effort": 5}}, "reasoning.effort", "must be a string"),
]  # fmt: skip


# -- what was sealed ---------------------------------------------------------------------------------------------------

#: An item that carried what another vendor made, between what was said, and what it is again.
SEALED: dict[str, tuple[list[dict[str, Any]], list[Any]]] = {
    "a signature": (
        [thought("hm", id="rs_1", encrypted_content=seal("reasoning", "anthropic", "S"))],
        [Reasoning("hm", "summary", Opaque("anthropic", "S"))],
    ),
    "a signature alone": ([thought(encrypted_content=seal("reasoning", "anthropic", "S"))], [Reasoning("", "summary", Opaque(
        "anthropic", "S",
    ))]),
    "redacted": ([thought(id="rs_1", encrypted_content=seal("opaque", "anthropic", "D"))], [RedactedReasoning(Opaque("anthropic", "D"))]),
    "of a text": (
        [{"role": "assistant", "content": "a"}, thought(encrypted_content=seal("text", "google", "T"))], [Text("a", Opaque("google", "T"))],
    ),
    "of no text": ([thought(encrypted_content=seal("text", "google", "T"))], [Text("", Opaque("google", "T"))]),
    "of a part": ([thought(encrypted_content=seal("part", "google", "T"))], [Text("", Opaque("google", "T"))]),
    "of a call": (
        [thought(encrypted_content=seal("call", "google", "C")), called(), answer()],
        [ToolCall(0, "call_1", "look", '{"q":1.0}', signature=Opaque("google", "C"))],
    ),
    "of a call that is gone": ([thought(encrypted_content=seal("call", "google", "C"))], [RedactedReasoning(Opaque("google", "C"))]),
}  # fmt: skip


# -- from other dialects -----------------------------------------------------------------------------------------------


#: Turns of another dialect: the items, the losses, the repairs.
FOREIGN: dict[str, tuple[list[Turn], list[dict[str, Any]], dict[str, int], dict[str, int]]] = {
    "results, then text": (
        [by_model(Text("wait"), CALL, ToolCall(1, "call_2", "look", "")), by_user(
            *ANSWERED.parts, ToolResult("call_2", [Text("a"), Text("b")]), Text("go on"),
        )],
        [
            {"role": "assistant", "content": "wait", **COMMENTARY}, called(), called("call_2", "{}"), answer(),
            answer("call_2", [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]),
            {"role": "user", "content": "go on"},
        ],
        {}, {},
    ),
    "several texts": (
        [by_model(Text("a"), Text("b"), Text(""))],
        [{"role": "assistant", "content": "a", **FINAL}, {"role": "assistant", "content": "b", **FINAL}], {},
        {"turn_empty": 1},
    ),
    "nothing said": ([by_user(Text("hi")), by_model(), by_user()], [{"role": "user", "content": "hi"}], {}, {"turn_empty": 2}),
    "a refusal": (
        [by_model(Refusal("no")), by_user(Refusal("no"))],
        [said({"type": "refusal", "refusal": "no"}, role="assistant", type="message", **FINAL), {"role": "user", "content": "no"}],
        {"refusal_as_text": 1}, {},
    ),
    "an error": (
        [by_model(CALL), by_user(ToolResult("call_1", [Text("none")], is_error=True, cache="short"))],
        [called(), answer(output="Error: none")], {"result_error": 1, "cache_mark": 1}, {},
    ),
    "an error without words": (
        [by_model(CALL), by_user(ToolResult("call_1", [], is_error=True))], [called(), answer(output="Error: ")], {"result_error": 1}, {},
    ),
    "media": (
        [by_user(
            Text("see", cache="short"), Media("image", data=PNG, cache="long"), Media("file", "application/pdf", "JVBERi0=", name="a.pdf"),
            Media("file", url="https://x.test/a.pdf"),
        )],
        [said(
            {"type": "input_text", "text": "see", "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "30m"}},
            {"type": "input_image", "image_url": PIXEL, "detail": "auto", "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "12h"}},
            {"type": "input_file", "file_data": "data:application/pdf;base64,JVBERi0=", "filename": "a.pdf"},
            {"type": "input_file", "file_url": "https://x.test/a.pdf"},
        )],
        {"cache_mark": 2}, {},
    ),
    "media that Responses does not have": (
        [
            by_user(Text("see"), Media("video", "video/mp4", "AAAA"), Media("image", url="gs://b/a.png")),
            by_user(Media("audio", "audio/wav", "AAAA"), Media("file", file_id="file_1")),
            by_model(Text("so", cache="short"), Media("image", data=PNG)),
        ],
        [{"role": "user", "content": "see"}, {"role": "user", "content": ""}, {"role": "assistant", "content": "so", **FINAL}],
        {"media": 5, "cache_mark": 1}, {},
    ),
    "reasoning": (
        [
            by_model(
                Reasoning("hm", signature=Opaque("anthropic", "S")), RedactedReasoning(Opaque("anthropic", "D")), Reasoning("so"), CALL,
            ),
            ANSWERED,
        ],
        [called(), answer()], {"reasoning_history": 2, "reasoning_signature": 1, "reasoning_opaque": 1}, {},
    ),
    "reasoning that OpenAI encrypted": (
        [by_model(
            Reasoning("h", "summary"), Reasoning("m", "summary", Opaque("openai", "E"), {"x": 1}), RedactedReasoning(Opaque("openai", "F")),
            Text("a"),
        )],
        [thought("h", "m", encrypted_content="E"), thought(encrypted_content="F"), {"role": "assistant", "content": "a", **FINAL}], {"metadata": 1},
        {},
    ),
    "signatures of texts and calls": (
        [
            by_model(
                Text("a", Opaque("google", "T")), Text("", Opaque("google", "U")),
                ToolCall(0, "call_1", "look", '{"q":1.0}', signature=Opaque("google", "S"), cache="long"),
            ),
            ANSWERED, by_user(Text("b", Opaque("google", "V"))),
        ],
        [{"role": "assistant", "content": "a", **COMMENTARY}, called(), answer(), {"role": "user", "content": "b"}],
        {"reasoning_signature": 4, "cache_mark": 1}, {},
    ),
    "what only the other dialect knows": (
        [
            by_user(
                Text("a", extras={"citations": {"enabled": True}, "x": None}), Aside("anthropic", "server_tool", "s", {}), name="ann",
                extras={"y": 1},
            ),
            by_model(Aside("anthropic", "server_tool", "s", {}), Text("b")),
        ],
        [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b", **FINAL}], {"metadata": 2, "server_tool": 2, "turn_name": 1}, {},
    ),
    "an id and a name that do not fit": (
        [by_model(ToolCall(0, "i" * 65, "a.b", "{}")), by_user(ToolResult("i" * 65, [Text("done")], "a.b"))],
        [called(portable_id("i" * 65), "{}") | {"name": portable_name("a.b")}, answer(portable_id("i" * 65))], {},
        {"id_rewritten": 1, "name_rewritten": 1},
    ),
}  # fmt: skip

#: What the system says in front, its instructions, and its items.
SYSTEM: dict[str, tuple[list[Turn], str | None, list[dict[str, Any]]]] = {
    "one text": ([by_system(Text("be"))], "be", []),
    "a developer's": ([by_system(Text("be"), native_role="developer")], "be", []),
    "two turns": (
        [by_system(Text("a")), by_system(Text("b"), native_role="developer")], None,
        [{"role": "system", "content": "a"}, {"role": "developer", "content": "b"}],
    ),
    "two texts": ([by_system(Text("a"), Text("b"))], None, [said(
        {"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}, role="system",
    )]),
    "a mark": ([by_system(Text("a", cache="short"))], None, [said(
        {"type": "input_text", "text": "a", "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "30m"}}, role="system",
    )]),
}  # fmt: skip

CHOICES = [
    (ToolChoice("auto"), {"tool_choice": "auto"}),
    (ToolChoice("none", ("look",)), {"tool_choice": "none"}),
    (ToolChoice("auto", ("look",), extras={"x": 1}), {"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": ALLOWED[:1]}}),
]  # fmt: skip


def test_an_assistants_turn_has_no_results():
    with pytest.raises(TypeError, match="an assistant's turn can't contain a ToolResult"):
        DIALECTS[VENDOR].bodies.encode_request(Request("x", "m", [by_model(ToolResult("c"))]), Target(), StreamReport())
    with pytest.raises(TypeError, match="content can't contain a Reasoning"):
        RESPONSES.write(Request("x", "m", [by_user(Reasoning("hm"))]))


# -- the second leg ----------------------------------------------------------------------------------------------------

OUTPUT = [
    thought("h", id="rs_1", encrypted_content="E"),
    SEARCH,
    spoken(output_text("see", [CITATION], logprobs=[LOGPROB]), phase="commentary"),
    {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "s", "tools": []},
    called(id="fc_1", status="completed", namespace="n"),
]  # fmt: skip


def response_of(*output: dict[str, Any]) -> bytes:
    return json.dumps({"id": "r", "object": "response", "status": "completed", "output": list(output)}).encode()


def test_what_was_said_goes_back_as_the_second_leg():
    """seeds.md S3: the parts of a response are the turn of the next request. Ids of items stay with the response."""
    request = request_with_results(RESPONSES.read(), decode_response(response_of(*OUTPUT), VENDOR), {"call_1": "done"})
    written, report = RESPONSES.write(request)
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
    written, report = RESPONSES.write(request_with_results(RESPONSES.read(), response, {"call_1": "done"}))
    assert written["input"][1] == {"role": "assistant", "content": "a", "phase": "commentary"}
    assert not report.losses


def test_the_result_that_tells_what_to_mend_is_an_item():
    bad = decode_response(response_of(called(arguments='{"q": oops')), VENDOR).tool_calls[0]
    item = error_result(bad, VENDOR)
    assert (item["type"], item["call_id"]) == ("function_call_output", "call_1")
    assert item["output"].startswith("Error: ")


# -- the recordings, and the official client ---------------------------------------------------------------------------


def test_the_official_client_sends_it(client, replay):
    said_before = [Turn("system", [Text("be")]), Turn("user", [Text("hi"), Media("image", "image/png", PNG)])]
    calling = [Turn("assistant", [Text("wait"), CALL]), ANSWERED]
    turns, tools = [*said_before, *calling], [Tool("look", None, SCHEMA)]
    written, _ = RESPONSES.write(evolve(RESPONSES.foreign, turns=turns, tools=tools, options=Options(max_tokens=50)))
    written["model"] = replay.register(response_of(), "application/json")
    client("openai").responses.create(**written)
    assert json.loads(replay.asked[written["model"]]) == written


STORED = {
    "an earlier response": ({"previous_response_id": "resp_1"}, "previous_response_id", "store: false"),
    "a conversation": ({"conversation": {"id": "conv_1"}}, "conversation", "without a conversation"),
    "an item": ({"input": [SAID, {"type": "item_reference", "id": "msg_1"}]}, "input[1]", "providerOptions.openai.store"),
    "an item without a type": ({"input": [{"id": "msg_1"}]}, "input[0]", "ModelSettings(store=False)"),
    "a prompt": ({"prompt": {"id": "pmpt_1"}}, "prompt", "send the text of the prompt"),
}  # fmt: skip


# -- all rows ----------------------------------------------------------------------------------------------------------


def turns_of(parts: list[Any]) -> list[Turn]:
    """The turn of the model, and the result if it calls."""
    return [by_model(*parts), ANSWERED] if isinstance(parts[0], ToolCall) else [by_model(*parts)]


def stored_row(members: dict[str, Any], path: str, instead: str, to: str) -> Row:
    return RESPONSES.refused(members, path, instead, to=to, target={"max_tokens": 9})


STATE = [answer("call_9"), {"type": "custom_tool_call_output", "call_id": "c", "output": "b"}]
DETAIL = {"type": "reasoning.encrypted", "data": "E", "format": "openai-responses-v1", "id": "rs_1", "index": 0}
STARTED = {"type": "response.output_item.added", "item": {**SEARCH, "status": "in_progress"}}
GOING = {"type": "response.web_search_call.searching", "item_id": "ws_1"}
NO_PARAMETERS = {"type": "object", "properties": {}}
SAID_A = {"role": "assistant", "content": "a"}


def of_this(*parts: Any, **more: Any) -> dict[str, Any]:
    """A turn of the model in this very dialect."""
    return {"dialect": VENDOR, "turns": [by_model(*parts, **more)]}


ROWS = {
    **rows("items", ITEMS, lambda items, turns: RESPONSES.kept({"input": items}, turns=turns)),
    **rows("alike", NORMAL, lambda items, written: RESPONSES.alike({"input": items}, {"input": written})),
    **rows("instructions", INSTRUCTIONS, lambda items, turns: RESPONSES.kept(
        {"instructions": "be", "input": [*items, SAID]}, turns=[*turns, HI]
    )),
    **rows("members", MEMBERS, lambda members, read: RESPONSES.kept(members, **read)),
    **rows("members alike", ALIKE_MEMBERS, RESPONSES.alike),
    **rows("bad", BAD, RESPONSES.refused),
    **rows("sealed", SEALED, lambda items, parts: RESPONSES.means({"input": items}, turns=turns_of(parts))),
    **rows("turns", FOREIGN, lambda turns, items, *counts: RESPONSES.of_another(
        {"turns": turns, "model": "gpt-5.6-sol"}, {"input": items, "model": "gpt-5.6-sol"}, *counts
    )),
    **rows("system", SYSTEM, lambda turns, instructions, items: RESPONSES.of_another(
        {"turns": [*turns, HI, by_system(Text("now"))], "model": "gpt-5.6-sol"},
        {"model": "gpt-5.6-sol", "instructions": instructions or ..., "input": [*items, SAID, {"role": "system", "content": "now"}]},
        None,
    )),
    **rows("choices", CHOICES, lambda choice, members: RESPONSES.of_another(
        {"tools": [Tool("look", "d", SCHEMA)], "tool_choice": choice}, {"tools": [{**TOOLS[0], "strict": False}], **members},
        {"tool_choice": 1} if choice.extras else {},
    )),
    **rows("no parameters", [None, {}, {"type": "object"}], lambda schema: RESPONSES.of_another(
        {"tools": [Tool("now", parameters=schema)]},
        {"tools": [{"type": "function", "name": "now", "parameters": NO_PARAMETERS, "strict": False}]}, {}, {"properties_added": 1} if schema else {},
    )),
    **rows("a bound", [(0, 0), (1, 16), (16, 16), (17, 17)], lambda bound, written: RESPONSES.of_another(
        {"options": Options(max_tokens=bound)}, {"max_output_tokens": written}, {"parameter": 1} if bound != written else {}
    )),
    **rows("its own bound", [0, 1, 16], lambda bound: RESPONSES.kept({"max_output_tokens": bound}, options=Options(bound))),
    **rows("stored", STORED, lambda members, *why: stored_row(members, *why, "openai-chat")),
    **rows("stored, for Anthropic", STORED, lambda members, *why: stored_row(members, *why, "anthropic")),
    **rows("stored, for Gemini", STORED, lambda members, *why: stored_row(members, *why, "gemini")),
    **rows("stored, for Ollama", STORED, lambda members, *why: stored_row(members, *why, "ollama")),
    **rows("where it is stored", STORED, lambda members, *_: RESPONSES.alike(
        members, {**members, "input": [{**item, "type": "item_reference"} if "id" in item else item for item in members.get("input", [SAID])]}
    )),
    "no input": RESPONSES.means({"input": ..., "prompt": {"id": "p"}}, turns=[], extras={"prompt": {"id": "p"}}),
    **rows("outputs alone", [{"previous_response_id": "resp_1"}, {"conversation": {"id": "c"}}], lambda state: Row(
        {"input": STATE, **state}, None, {"input": STATE, **state}
    )),
    "outputs without a state": RESPONSES.refused({"input": STATE}, "input[0]", "has no tool call", to=VENDOR),
    "sealed: for its vendor": RESPONSES.translated(
        "anthropic", {"input": SEALED["a signature"][0]},
        {"messages[0].content": [{"type": "thinking", "thinking": "hm", "signature": "S"}]},
    ),
    "members of another dialect": RESPONSES.of_another(
        {
            "tools": [
                Tool("look", "d", SCHEMA, cache="short"), Tool("a.b"), Tool("web", kind="server", raw={"type": "web_search"}),
                Tool("run", kind="custom", format={"type": "grammar", "syntax": "regex", "definition": ".*"}),
            ],
            "tool_choice": ToolChoice("required", ("a.b",), parallel=False),
            "options": Options(
                5, 0.5, top_k=4, stop=("x",), seed=7, presence_penalty=0.1, frequency_penalty=0.1, choices=1, logprobs=True, top_logprobs=2,
                thinking=Thinking("high", 9, True, "none"), output=OutputFormat("schema", SCHEMA), service_tier="standard_only", user="u",
            ),
            "stream": True, "stream_usage": True, "extras": {"metadata": {"a": 1}, "container": "c"},
        },
        {
            "tools": [
                {**TOOLS[0], "strict": False},
                {"type": "function", "name": portable_name("a.b"), "parameters": NO_PARAMETERS, "strict": False},
                {"type": "custom", "name": "run", "format": {"type": "grammar", "syntax": "regex", "definition": ".*"}},
            ],
            "tool_choice": {"type": "function", "name": portable_name("a.b")}, "parallel_tool_calls": False, "max_output_tokens": 16,
            "temperature": 0.5, "top_logprobs": 2, "include": ["message.output_text.logprobs"], "user": "u", "reasoning": {"effort": "high"},
            "text": {"format": {"type": "json_schema", "name": "response", "schema": SCHEMA}}, "stream": True,
        },
        [
            ("cache_mark", "look"), ("tool_definition", "web"),
            *parameters("max_tokens", "thinking.budget_tokens", "service_tier", "top_k", "stop", "seed", "presence_penalty"),
            *parameters("frequency_penalty", "metadata", "container"),
        ],
        {"name_rewritten": 1},
    ),
    "several choices": RESPONSES.unwritable({"options": Options(choices=2)}, "n", "Responses returns one choice, not 2"),
    "marks and ids of OpenAI's other dialect": RESPONSES.of_another(
        {"dialect": "openai-chat", "model": "gpt-5.6-sol", "turns": [by_user(Text("a", cache="short"), Media("file", file_id="f"))]},
        {"model": "gpt-5.6-sol", "input": [said(
            {"type": "input_text", "text": "a", "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "30m"}}, {"type": "input_file", "file_id": "f"}
        )]},
    ),
    "what a turn says of itself": RESPONSES.of_another(of_this(Text("a"), extras={"x": 1}), {"input": [SAID_A]}, [("metadata", "x")]),
    "what is about the response": RESPONSES.of_another(
        of_this(
            Aside(VENDOR, "metadata", "response.completed_at", 1), Aside(VENDOR, "metadata", "delta.x", 1),
            Aside(VENDOR, "metadata", "message.x", 1, block=7), Aside(VENDOR, "citation", "annotation", CITATION, block=7),
            Aside(VENDOR, "audio", "response.audio.delta", {"type": "response.audio.delta", "delta": "AA"}),
            Aside(VENDOR, "unknown_event", "response.output_item.done", 5), Aside("anthropic", "server_tool", "content_block_start", {}),
            Text("a"),
        ),
        {"input": [SAID_A]}, {"metadata": 3, "citation": 1, "audio": 1, "unknown_event": 1, "server_tool": 1},
    ),
    "an item whose end never came": RESPONSES.of_another(
        of_this(*[Aside(VENDOR, "server_tool", frame["type"], frame, block=3) for frame in (STARTED, GOING)], Text("a")),
        {"input": [{**SEARCH, "status": "incomplete"}, SAID_A]}, typed=False,
    ),
    # a summary alone tells its server nothing; open models, whose servers speak this dialect, want their own words
    "reasoning in the open": RESPONSES.of_another(
        of_this(Reasoning("h", "summary"), Reasoning("hm", block=1), Text("a")), {"input": [thought("h", raw=("hm",)), SAID_A]}, typed=False
    ),
    "a summary alone": RESPONSES.of_another(of_this(Reasoning("h", "summary"), Text("a")), {"input": [SAID_A]}, {"reasoning_history": 1}),
}  # fmt: skip

#: Rows with something that the client does not let its user write; only the server gives ids, and its types demand one.
BEYOND = {
    "items: a message of unknown parts", "items: an unknown part", "items: an unknown part behind a text", "items: audio",
    "items: encrypted reasoning", "items: members nobody knows", "items: messages of the server", "items: reasoning both ways",
    "items: reasoning in the open", "items: reasoning of an unknown kind", "items: reasoning that the server knows",
    "items: what the program answers to that", "members: a format of another server", "members: choice of one that says its namespace", "turns: a refusal",
    "turns: reasoning that OpenAI encrypted",
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_a_request(name):
    RESPONSES.check(ROWS[name], beyond=name in BEYOND)


@pytest.mark.parametrize("name", SEALED)
def test_what_was_sealed_goes_to_no_other(name):
    written, report = RESPONSES.write(RESPONSES.read(input=SEALED[name][0]))
    assert "encrypted_content" not in json.dumps(written)
    assert sum(report.losses[kind] for kind in ("reasoning_signature", "reasoning_opaque")) == 1


def test_the_id_of_an_encrypted_detail_is_its_items():
    messages = [{"role": "assistant", "content": "a", "reasoning_details": [DETAIL]}]
    request = decode_request(json.dumps({"model": "m", "messages": messages}).encode(), "openai-chat")
    written, report = RESPONSES.write(request)
    assert written["input"][0] == thought(id="rs_1", encrypted_content="E")
    assert not report.losses


def test_a_call_that_xai_itself_has_run_needs_no_result():
    """Its search of X is a call of a custom tool that the request does not define."""
    searched = {"type": "custom_tool_call", "call_id": "xs_1", "name": "x_keyword_search", "input": "{}", "id": "ctc_1"}
    called = {"type": "custom_tool_call", "call_id": "c1", "name": "sh", "input": "ls"}
    done = {"type": "custom_tool_call_output", "call_id": "c1", "output": "a"}
    tools = [{"type": "x_search"}, {"type": "custom", "name": "sh"}]
    for items, ids in (
        ([SAID, searched, called, done], ["c1"]),
        ([SAID, searched, {**done, "call_id": "xs_1"}], ["xs_1"]),
    ):
        request = RESPONSES.read(input=items, tools=tools)
        assert RESPONSES.write(request)[0]["input"] == items
        written, report = RESPONSES.write(request, "openai-chat")
        assert [call["id"] for message in written["messages"] for call in message.get("tool_calls", ())] == ids
        assert report.losses["server_tool"] == int(ids == ["c1"])
