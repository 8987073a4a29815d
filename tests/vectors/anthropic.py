"""Anthropic streams, healthy and broken. Facts: dialects.md §3, quirks.md §8."""

from __future__ import annotations

from typing import Any

from tests.vectors.vector import Call, Vector, named

START = {
    "type": "message_start",
    "message": {
        "id": "msg_7", "type": "message", "role": "assistant", "model": "m-1", "content": [], "stop_reason": None,
        "stop_sequence": None, "usage": {"input_tokens": 9, "output_tokens": 1},
    },
}  # fmt: skip
STOP = {"type": "message_stop"}
PING = {"type": "ping"}


def begin(index: int, kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": {"type": kind, **fields}}


def delta(index: int, kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def stop(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def finish(reason: str | None, sequence: str | None = None) -> dict[str, Any]:
    return {
        "type": "message_delta",
        "delta": {"stop_reason": reason, "stop_sequence": sequence},
        "usage": {"output_tokens": 4},
    }


def block(index: int, text: str) -> tuple[Any, ...]:
    return begin(index, "text", text=""), delta(index, "text_delta", text=text), stop(index)


def tool(index: int, id: str, name: str, *fragments: str) -> tuple[Any, ...]:
    return (
        begin(index, "tool_use", id=id, name=name, input={}),
        *(delta(index, "input_json_delta", partial_json=fragment) for fragment in fragments),
        stop(index),
    )


def vector(name: str, *payloads: Any, **expected: Any) -> Vector:
    body = payloads[0] if len(payloads) == 1 and isinstance(payloads[0], bytes) else named(*payloads)
    return Vector(name=name, dialect="anthropic", body=body, **expected)


def message(name: str, *payloads: Any, reason: str = "end_turn", **expected: Any) -> Vector:
    return vector(name, START, *payloads, finish(reason), STOP, **expected)


TWO_TEXTS = {"openai-chat": {"block_boundary": 1}, "ollama": {"block_boundary": 1}}

HEALTHY = [
    message("text", begin(0, "text", text=""), PING, delta(0, "text_delta", text="Hel"), delta(0, "text_delta", text="lo"), stop(0), text="Hello"),
    vector("text with CRLF", named(START, *block(0, "Hi"), finish("end_turn"), STOP).replace(b"\n", b"\r\n"), text="Hi"),
    message("two text blocks", *block(0, "one"), *block(1, "two"), text="onetwo", losses=TWO_TEXTS),
    message(
        "text between calls", *tool(0, "toolu_a", "f", "", '{"x"', ":1.0}"), *block(1, "then"), *tool(2, "toolu_b", "g"), reason="tool_use",
        text="then", calls=(Call("f", '{"x":1.0}', id="toolu_a"), Call("g", "", "empty", id="toolu_b")), stop="tool_calls",
        losses={"openai-chat": {"block_order": 1}},
    ),
    message(
        "a call of the model itself, and one of the code that the server runs",
        begin(0, "tool_use", id="t", name="f", input={}, caller={"type": "direct"}), stop(0),
        begin(1, "tool_use", id="u", name="g", input={}, caller={"type": "code_execution_20250825", "tool_id": "s"}), stop(1),
        reason="tool_use", calls=(Call("f", "", "empty", id="t"), Call("g", "", "empty", id="u")), stop="tool_calls",
        losses={"openai-chat": {"metadata": 1}, "ollama": {"metadata": 1, "call_id": 2}},
    ),
    message("input that came whole with the start", begin(0, "tool_use", id="t", name="f", input={"x": 1}), stop(0), reason="tool_use", calls=(Call("f", '{"x":1}'),), stop="tool_calls"),
    message(
        "thinking", begin(0, "thinking", thinking="", signature=""), delta(0, "thinking_delta", thinking="hm"), delta(0, "signature_delta", signature="c2ln"), stop(0),
        begin(1, "redacted_thinking", data="xx"), stop(1), *block(2, "Hi"), text="Hi", reasoning="hm",
        losses={"ollama": {"reasoning_signature": 1, "reasoning_opaque": 1}},
    ),
    vector("stop sequence", START, *block(0, "Hi"), finish("stop_sequence", "END"), STOP, text="Hi", stop="stop_sequence", losses={"openai-chat": {"stop_reason": 1, "stop_sequence": 1}}),
    vector("no message_stop", START, *block(0, "Hi"), finish("end_turn"), text="Hi"),
    message("pause", *block(0, "Hi"), reason="pause_turn", text="Hi", stop="pause", losses={"openai-chat": {"stop_reason": 1}, "ollama": {"stop_reason": 1}}),
    message("a reason of the future", *block(0, "Hi"), reason="bored", text="Hi", stop="other", losses={"openai-chat": {"stop_reason": 1}}),
    message(
        "a tool of the server's and a citation",
        begin(0, "server_tool_use", id="s", name="web_search", input={}), delta(0, "input_json_delta", partial_json='{"q":1}'), stop(0),
        begin(1, "text", text=""), delta(1, "citations_delta", citation={"type": "page"}), delta(1, "text_delta", text="Hi"), stop(1),
        {"type": "novelty", "x": 1}, text="Hi",
        losses={d: {"server_tool": 3, "citation": 1, "unknown_event": 1} for d in ("openai-chat", "ollama")},
    ),
    message("a compaction that failed", begin(0, "compaction", content=None), delta(0, "compaction_delta", content=None), stop(0), *block(1, "Hi"), text="Hi", losses={d: {"compaction": 1} for d in ("openai-chat", "ollama")}),
]  # fmt: skip

REPAIRED = [
    message("a delta without a name in a block of the server's", begin(0, "server_tool_use", id="s", name="web_search", input={}), delta(0, "\u2028"), stop(0), *block(1, "Hi"), text="Hi"),
    message("a block whose type is a list", begin(0, ["novelty"]), stop(0), *block(1, "Hi"), text="Hi", repairs={"text_as_object": 1}, losses={d: {"unknown_event": 2} for d in ("anthropic", "openai-chat", "ollama")}),
    vector("no event lines", b"".join(line + b"\n" for line in named(START, *block(0, "Hi"), finish("end_turn"), STOP).split(b"\n")[:-1] if not line.startswith(b"event")), text="Hi", repairs={"event_name_missing": 6}),
    message("a delta without its block", delta(0, "text_delta", text="Hi"), stop(0), text="Hi", repairs={"block_unopened": 1}),
    message("an index that is false", begin(0, "text", text=""), delta(False, "text_delta", text="Hi"), stop(0), text="Hi", repairs={"index_invalid": 1, "index_missing": 1}),
    message("thinking inside a text block", begin(0, "text", text=""), delta(0, "text_delta", text="Hi"), delta(0, "thinking_delta", thinking="hm"), stop(0), text="Hi", reasoning="hm", repairs={"block_mismatch": 1}),
    vector("another dialect's terminator", named(START, *block(0, "Hi"), finish("end_turn"), STOP) + b"data: [DONE]\n\n", text="Hi", repairs={"foreign_terminator": 1}),
    vector("an error body raw in the stream", named(START, *block(0, "Hi")) + b'{"error":{"message":"gone"}}\n', text="Hi", stop=None, repairs={"sse_bare_json": 1, "error_shape": 1}, provider_error="gone"),
    message("a stop without its block", *block(0, "Hi"), stop(5), text="Hi", repairs={"block_unopened": 1}),
    message("a block that is never closed", begin(0, "text", text=""), delta(0, "text_delta", text="Hi"), text="Hi", repairs={"block_unclosed": 1}),
    message("a block that is opened twice", begin(0, "text", text=""), delta(0, "text_delta", text="a"), *block(0, "b"), text="ab", repairs={"block_reopened": 1}),
    message("a second start", START, *block(0, "Hi"), text="Hi", repairs={"response_restarted": 1}),
    message(
        "text for a call that had ended", *tool(0, "t", "f", "{}"), delta(0, "input_json_delta", partial_json='{"x":1}'), stop(0), reason="tool_use",
        calls=(Call("f", "{}"),), stop="tool_calls", repairs={"block_unopened": 1, "arguments_late": 1}, withheld=('{"x":1}',),
    ),
    message("input that came with the start as text", begin(0, "tool_use", id="t", name="f", input='{"x":1}'), stop(0), reason="tool_use", calls=(Call("f", '{"x":1}'),), stop="tool_calls", repairs={"arguments_not_object": 1}),
    vector("more after message_stop", START, *block(0, "Hi"), finish("end_turn"), STOP, *block(1, "!"), text="Hi", repairs={"after_end": 3}),
    vector("a block behind message_stop that starts with its text", START, *block(0, "Hi"), finish("end_turn"), STOP, begin(1, "text", text="!"), text="Hi", repairs={"after_end": 1}),
    vector("a call behind message_stop that starts with its input", START, *block(0, "Hi"), finish("end_turn"), STOP, begin(1, "tool_use", id="t", name="f", input={"x": 1}), text="Hi", repairs={"after_end": 1}),
    vector("a bare error", START, *block(0, "Hi"), {"type": "", "error": {"message": "gone"}}, text="Hi", stop=None, repairs={"error_shape": 1}, provider_error="gone"),
    message("stop with calls", *tool(0, "t", "f", "{}"), calls=(Call("f", "{}"),), stop="tool_calls", repairs={"stop_with_calls": 1}),
    message("one index for two calls", *tool(0, "t", "f", "{}"), *tool(0, "u", "g", "{}"), reason="tool_use", calls=(Call("f", "{}"), Call("g", "{}")), stop="tool_calls", repairs={"index_reused": 1}),
]  # fmt: skip

BROKEN = [
    vector("text that is cut", named(START, *block(0, "Hi"))[:-9], text="Hi", stop=None),
    vector("a call that is cut", START, *tool(0, "t", "f", "{}")[:-1], calls=(Call("f", "{}", "truncated"),), stop=None, losses={"ollama": {"call_withheld": 1}}),
    vector("a call that ended before the cut", START, *tool(0, "t", "f", '{"x":1}'), calls=(Call("f", '{"x":1}', "complete"),), stop=None),
    vector("a clean-looking end without a stop reason", START, *block(0, "Hi"), STOP, text="Hi", stop=None),
    vector("an error behind a start with all of a call's input", START, begin(0, "tool_use", id="t", name="f", input={"x": 1}), {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}, calls=(Call("f", '{"x":1}', "truncated"),), stop=None, provider_error="busy"),
    vector("an error", START, *block(0, "Hi"), {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}, text="Hi", stop=None, provider_error="busy"),
    vector("a frame that is no JSON", named(START, *block(0, "Hi")) + b"event: message_stop\ndata: {oops}\n\n", text="Hi", stop=None, fault="BrokenFrame"),
    vector("frames of another dialect", b'data: {"x":1}\n\n', stop=None, fault="NotThisDialect"),
    vector("an index of 2^63", START, {**begin(0, "text", text=""), "index": 2**63}, stop=None, fault="IndexTooLarge"),
]  # fmt: skip

VECTORS = [*HEALTHY, *REPAIRED, *BROKEN]
