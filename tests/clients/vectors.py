"""Small streams of our own, for the clients: they need no recordings, and say by hand what is to be seen."""

from __future__ import annotations

import json
from typing import Any

from attrs import field, frozen

from tests.clients.readers import Call, Choice
from tests.framing.binary import events, exception
from tests.vectors import ag_ui, ai_sdk
from tests.vectors import gemini_interactions as gi
from tests.vectors.vector import sse

HEAD = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
DONE = b"data: [DONE]\n\n"


def chat(*deltas: dict[str, Any], stop: str | None = None, usage: dict[str, Any] | None = None) -> bytes:
    """Chat chunks without the ``[DONE]``; the finish reason and the usage in chunks of their own."""
    choices: list[list[dict[str, Any]]] = [[{"index": 0, "delta": delta, "finish_reason": None}] for delta in deltas]
    if stop is not None:
        choices.append([{"index": 0, "delta": {}, "finish_reason": stop}])
    chunks: list[dict[str, Any]] = [{**HEAD, "choices": part} for part in choices]
    if usage is not None:
        chunks.append({**HEAD, "choices": [], "usage": usage})
    return b"".join(b"data: %b\n\n" % json.dumps(chunk).encode() for chunk in chunks)


def call(index: int, *, id: str | None = None, name: str | None = None, arguments: str = "") -> dict[str, Any]:
    """A delta with one fragment of one call."""
    entry: dict[str, Any] = {"index": index, "function": {"arguments": arguments}}
    if id is not None:
        entry |= {"id": id, "type": "function"}
        entry["function"]["name"] = name
    return {"tool_calls": [entry]}


def messages(*events: dict[str, Any]) -> bytes:
    return b"".join(b"event: %b\ndata: %b\n\n" % (e["type"].encode(), json.dumps(e).encode()) for e in events)


def lines(*parts: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(part).encode() + b"\n" for part in parts)


def chunks(*parts: dict[str, Any]) -> bytes:
    return b"".join(b"data: %b\r\n\r\n" % json.dumps(part).encode() for part in parts)


@frozen
class Vector:
    name: str
    body: bytes
    choice: Choice  #: as a Chat client sees it
    stop: str = field(kw_only=True)  #: neutral


WHOLE = [
    Vector(
        "text",
        chat(
            {"role": "assistant", "content": ""},
            {"content": "Grüße\u2028"},
            {"content": ", 世界 \U0001f600\n"},
            stop="stop",
            usage={"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
        )
        + DONE,
        Choice("Grüße\u2028, 世界 \U0001f600\n"),
        stop="stop",
    ),
    Vector(
        "two interleaved parallel calls",
        chat(
            {"role": "assistant", "content": None},
            call(0, id="call_a", name="add"),
            call(0, arguments='{"x":1.0,'),
            call(1, id="call_b", name="find", arguments='{"q":'),
            call(0, arguments='"y":18446744073709551616}'),
            call(1, arguments='"\\u2028"}'),
            stop="tool_calls",
        )
        + DONE,
        Choice(
            calls=[
                Call("add", {"x": 1.0, "y": 2**64}, "call_a", '{"x":1.0,"y":18446744073709551616}'),
                Call("find", {"q": "\u2028"}, "call_b", '{"q":"\\u2028"}'),
            ]
        ),
        stop="tool_calls",
    ),
    Vector(
        "two calls that share index 0",
        chat(
            {"role": "assistant", "content": None},
            call(0, id="call_a", name="now", arguments="{}"),
            call(0, id="call_b", name="add", arguments='{"x":'),
            call(0, arguments="2}"),
            stop="tool_calls",
        )
        + DONE,
        Choice(calls=[Call("now", {}, "call_a", "{}"), Call("add", {"x": 2}, "call_b", '{"x":2}')]),
        stop="tool_calls",
    ),
    Vector(
        "a call without arguments after text",
        chat({"role": "assistant", "content": "Now."}, call(0, id="call_a", name="now"), stop="tool_calls") + DONE,
        Choice("Now.", calls=[Call("now", {}, "call_a", "")]),
        stop="tool_calls",
    ),
    Vector(
        "reasoning, then text",
        chat(
            {"role": "assistant", "reasoning_content": "Let me "},
            {"reasoning_content": "see."},
            {"content": "4"},
            stop="length",
        )
        + DONE,
        Choice("4", reasoning="Let me see."),
        stop="length",
    ),
]

#: Streams whose losses the tables of ``expected`` explain, named by them.
LOSSY = {
    "arguments_wrapped": chat(
        {"role": "assistant"},
        call(0, id="call_a", name="add", arguments='{"x" 1}'),
        call(1, id="call_b", name="add", arguments="[1]"),
        stop="tool_calls",
    )
    + DONE,
    "custom_tool_wrapped": chat(
        {"role": "assistant"},
        {"tool_calls": [{"index": 0, "id": "call_a", "type": "custom", "custom": {"name": "sh", "input": "ls "}}]},
        {"tool_calls": [{"index": 0, "custom": {"input": '"a"'}}]},
        stop="tool_calls",
    )
    + DONE,
    "refusal_as_text": chat({"role": "assistant", "refusal": "I'm "}, {"refusal": "sorry."}, stop="stop") + DONE,
    "stop_reason": chat({"role": "assistant", "content": "I"}, stop="content_filter") + DONE,
    "usage_detail": chat(
        {"role": "assistant", "content": "I"},
        stop="stop",
        usage={
            "prompt_tokens": 9,
            "completion_tokens": 8,
            "total_tokens": 17,
            "prompt_tokens_details": {"cached_tokens": 5},
            "completion_tokens_details": {"reasoning_tokens": 7},
        },
    )
    + DONE,
}

RESPONSE = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "in_progress", "output": []}
OF_TEXT = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
#: The beginning of a stream in each dialect: text, then a call that is not finished.
BEGUN = {
    "ag-ui": sse(ag_ui.START, *ag_ui.text("m-1", "Wait"), ag_ui.call("call_a", "add"), ag_ui.piece("call_a", '{"x":')),
    "ai-sdk": sse(
        ai_sdk.START,
        ai_sdk.STEP,
        *ai_sdk.text("Wait"),
        ai_sdk.call_start("call_a", "add"),
        ai_sdk.piece("call_a", '{"x":'),
    ),
    "openai-chat": chat({"role": "assistant", "content": "Wait"}, call(0, id="call_a", name="add", arguments='{"x":')),
    "anthropic": messages(
        {
            "type": "message_start",
            "message": {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": "m",
                "content": [],
                "stop_reason": None,
                "stop_sequence": None,
                "usage": {"input_tokens": 1, "output_tokens": 1},
            },
        },
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Wait"}},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "content_block_start",
            "index": 1,
            "content_block": {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {}},
        },
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"x":'}},
    ),
    "ollama": lines(
        {
            "model": "m",
            "created_at": "2026-01-01T00:00:00Z",
            "message": {"role": "assistant", "content": "Wait"},
            "done": False,
        }
    ),
    "openai-responses": messages(
        {"type": "response.created", "sequence_number": 0, "response": RESPONSE},
        {
            "type": "response.output_item.added",
            "sequence_number": 1,
            "output_index": 0,
            "item": {"id": "msg_1", "type": "message", "status": "in_progress", "role": "assistant", "content": []},
        },
        {
            "type": "response.content_part.added",
            "sequence_number": 2,
            **OF_TEXT,
            "part": {"type": "output_text", "text": "", "annotations": []},
        },
        {"type": "response.output_text.delta", "sequence_number": 3, **OF_TEXT, "delta": "Wait", "logprobs": []},
        {
            "type": "response.output_item.added",
            "sequence_number": 4,
            "output_index": 1,
            "item": {"id": "fc_1", "type": "function_call", "call_id": "call_a", "name": "add", "arguments": ""},
        },
        {
            "type": "response.function_call_arguments.delta",
            "sequence_number": 5,
            "item_id": "fc_1",
            "output_index": 1,
            "delta": '{"x":',
        },
    ),
    "cohere": messages(
        {"type": "message-start", "id": "m", "delta": {"message": {"role": "assistant"}}},
        {"type": "content-start", "index": 0, "delta": {"message": {"content": {"type": "text", "text": "Wait"}}}},
        {"type": "content-end", "index": 0},
        {
            "type": "tool-call-start",
            "index": 0,
            "delta": {
                "message": {
                    "tool_calls": {"id": "add_1", "type": "function", "function": {"name": "add", "arguments": '{"x":'}}
                }
            },
        },
    ),
    "gemini": chunks(
        {"candidates": [{"content": {"parts": [{"text": "Wait"}], "role": "model"}, "index": 0}]},
        {"candidates": [{"content": {"parts": [{"functionCall": {"name": "add", "willContinue": True}}]}, "index": 0}]},
    ),
    "gemini-interactions": gi.named(
        gi.START,
        gi.begin(0, "model_output"),
        *gi.said(0, "Wait"),
        gi.end(0),
        gi.call(1, "a", "add"),
        gi.piece(1, '{"x":'),
    ),
    "bedrock": events(
        ("messageStart", {"role": "assistant"}),
        ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "Wait"}}),
        ("contentBlockStop", {"contentBlockIndex": 0}),
        (
            "contentBlockStart",
            {"contentBlockIndex": 1, "start": {"toolUse": {"toolUseId": "tooluse_1", "name": "add"}}},
        ),
        ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"toolUse": {"input": '{"x":'}}}),
    ),
    "mistral": chat({"role": "assistant", "content": "Wait"}),
}
#: What the provider says when it fails then.
FAILURES = {
    "ag-ui": sse(ag_ui.failed("all busy")),
    "ai-sdk": sse({"type": "error", "errorText": "all busy"}),
    "openai-chat": b'data: {"error":{"message":"all busy","type":"server_error","param":null,"code":null}}\n\n',
    "anthropic": messages({"type": "error", "error": {"type": "overloaded_error", "message": "all busy"}}),
    "ollama": lines({"error": "all busy"}),
    "openai-responses": messages(
        {
            "type": "error",
            "sequence_number": 6,
            "error": {"type": "server_error", "code": None, "message": "all busy", "param": None},
        }
    ),
    "cohere": messages({"type": "message-end", "delta": {"finish_reason": "ERROR", "error": "all busy"}}),
    "gemini": chunks({"error": {"code": 503, "message": "all busy", "status": "UNAVAILABLE"}}),
    "gemini-interactions": gi.named(gi.failed("all busy")),
    "bedrock": exception("throttlingException", {"message": "all busy"}),
    "mistral": b'data: {"object":"error","message":"all busy","type":"x","param":null,"code":null}\n\n',
}
