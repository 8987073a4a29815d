"""Bedrock streams, healthy and broken: ConverseStream and InvokeModelWithResponseStream. Facts: dialects.md §6.1.

There are no recordings in binary form, so these also stand for what the framing must bear.
"""

from __future__ import annotations

from typing import Any

from tests.framing.binary import chunks, error, event, events, exception, message, string
from tests.vectors import anthropic as am
from tests.vectors.vector import Call, Vector

Pair = tuple[str, Any]

START: Pair = ("messageStart", {"role": "assistant", "p": "abcdefghijk"})
COUNTS = {"inputTokens": 9, "outputTokens": 4, "totalTokens": 13}


def begin(index: int, **start: Any) -> Pair:
    return "contentBlockStart", {"contentBlockIndex": index, "start": start, "p": "ab"}


def delta(index: int, **fields: Any) -> Pair:
    return "contentBlockDelta", {"contentBlockIndex": index, "delta": fields, "p": "abcdef"}


def stop(index: int) -> Pair:
    return "contentBlockStop", {"contentBlockIndex": index}


def finish(reason: str = "end_turn", **fields: Any) -> Pair:
    return "messageStop", {"stopReason": reason, **fields}


def counts(**fields: Any) -> Pair:
    return "metadata", {"usage": COUNTS, "metrics": {"latencyMs": 321}, **fields}


def block(index: int, *texts: str) -> tuple[Pair, ...]:
    return *(delta(index, text=text) for text in texts), stop(index)


def thought(**fields: Any) -> dict[str, Any]:
    return {"reasoningContent": fields}


def tool(index: int, id: str, name: str, *fragments: str) -> tuple[Pair, ...]:
    return (
        begin(index, toolUse={"toolUseId": id, "name": name}),
        *(delta(index, toolUse={"input": fragment}) for fragment in fragments),
        stop(index),
    )


def vector(name: str, *parts: Pair | bytes, **expected: Any) -> Vector:
    body = b"".join(part if isinstance(part, bytes) else event(*part) for part in parts)
    return Vector(name=name, dialect="bedrock", body=body, **expected)


def turn(name: str, *parts: Pair, reason: str = "end_turn", **expected: Any) -> Vector:
    return vector(name, START, *parts, finish(reason), counts(), **expected)


def native(name: str, *payloads: Any, **expected: Any) -> Vector:
    """Anthropic's events in chunks."""
    return vector(name, chunks(*payloads), **expected)


INVOKED = {"inputTokenCount": 9, "outputTokenCount": 4, "invocationLatency": 321, "firstByteLatency": 12}
NATIVE_STOP = {**am.STOP, "amazon-bedrock-invocationMetrics": INVOKED}
SIGNED = {"openai-chat": {"metadata": 1}, "ollama": {"reasoning_signature": 1, "reasoning_opaque": 1}}
HI = block(0, "Hi")
NO_OTHER = string(":event-type", "contentBlockStop") + string(":content-type", "application/json")

HEALTHY = [
    turn("text", *block(0, "Hel", "lo \N{GRINNING FACE}\u2028"), text="Hello \N{GRINNING FACE}\u2028", losses={"openai-chat": {"metadata": 1}}),
    vector("no metadata", START, *HI, finish(), text="Hi", losses={"anthropic": {"usage_unknown": 1}, "bedrock": {}}),
    turn("two text blocks", *block(0, "one"), *block(1, "two"), text="onetwo", losses={"openai-chat": {"block_boundary": 1}, "anthropic": {"metadata": 1}}),
    turn("a text without a delta", stop(0), *block(1, "Hi"), text="Hi"),
    turn(
        "calls between texts", *block(0, "Now"), *tool(1, "tooluse_a", "f", "", '{"x"', ":1.0}"), *block(2, "then"), *tool(3, "tooluse_b", "g"),
        reason="tool_use", text="Nowthen", calls=(Call("f", '{"x":1.0}', id="tooluse_a"), Call("g", "", "empty", id="tooluse_b")), stop="tool_calls",
        losses={"openai-chat": {"block_order": 1, "block_boundary": 1}},
    ),
    turn(
        "reasoning", delta(0, **thought(text="hm")), delta(0, **thought(signature="c2ln")), stop(0), delta(1, **thought(redactedContent="eHg=")), stop(1), *block(2, "Hi"),
        text="Hi", reasoning="hm", losses=SIGNED,
    ),
    turn("a signature alone", delta(0, **thought(signature="c2ln")), stop(0), *block(1, "Hi"), text="Hi"),
    vector(
        "a stop sequence", START, *HI, finish("stop_sequence", additionalModelResponseFields={"delta": {"stop_sequence": "END"}}), text="Hi", stop="stop_sequence",
        losses={"openai-chat": {"stop_reason": 1, "stop_sequence": 1}, "bedrock": {}},
    ),
    vector("fields of the model", START, *HI, finish(additionalModelResponseFields={"x": 1}), text="Hi", losses={"openai-chat": {"metadata": 1}, "bedrock": {}}),
    turn("a guardrail", *HI, reason="guardrail_intervened", text="Hi", stop="content_filter", losses={"anthropic": {"stop_reason": 1, "metadata": 1}}),
    turn("a call that the model got wrong", *HI, reason="malformed_tool_use", text="Hi", stop=None, provider_error="the provider gave the finish reason 'malformed_tool_use': the model wrote a call that can't be read"),
    turn("a reason of the future", *HI, reason="bored", text="Hi", stop="other", losses={"bedrock": {"stop_reason": 1}}),
    vector(
        "counts of every kind", START, *HI, finish(),
        ("metadata", {"usage": {**COUNTS, "cacheReadInputTokens": 5, "cacheWriteInputTokens": 2, "totalTokens": 20}, "metrics": {"latencyMs": 1}, "trace": {"x": 1}}),
        text="Hi", losses={"openai-chat": {"metadata": 2}, "bedrock": {}},
    ),
    turn(
        "a tool of the provider's, and a citation",
        begin(0, toolUse={"toolUseId": "s", "name": "web", "type": "server_tool_use"}), delta(0, toolUse={"input": "{}"}), stop(0),
        begin(1, toolResult={"toolUseId": "s", "status": "success"}), delta(1, toolResult=[{"text": "x"}]), stop(1),
        begin(2, image={"format": "png"}), delta(2, image={"source": {"bytes": "eA=="}}), stop(2),
        delta(3, text="Hi"), delta(3, citation={"title": "t"}), stop(3), ("novelty", {"x": 1}), text="Hi",
        losses={"openai-chat": {"server_tool": 6, "citation": 1, "unknown_event": 3, "metadata": 1, "media_output": 0}, "anthropic": {"media_output": 1}, "bedrock": {}},
    ),
    turn("a keep-alive", *HI, ("keepAlive", {}), text="Hi"),
    turn("a start that says nothing", begin(0), *block(0, "Hi"), text="Hi"),
    native(
        "native text", am.START, *am.block(0, "Hi"), am.finish("end_turn"), NATIVE_STOP, text="Hi", losses={"anthropic": {"metadata": 1}, "bedrock": {"metadata": 1}}
    ),
    native(
        "native call", am.START, am.PING, *am.tool(0, "toolu_a", "f", '{"x":', "1.0}"), am.finish("tool_use"), am.STOP,
        calls=(Call("f", '{"x":1.0}', id="toolu_a"),), stop="tool_calls",
    ),
    native(
        "native thinking", am.START, am.begin(0, "thinking", thinking="", signature=""), am.delta(0, "thinking_delta", thinking="hm"),
        am.delta(0, "signature_delta", signature="c2ln"), am.stop(0), *am.block(1, "Hi"), am.finish("end_turn"), am.STOP, text="Hi", reasoning="hm",
    ),
    native("native input that came whole", am.START, am.begin(0, "tool_use", id="t", name="f", input={"x": 1}), am.stop(0), am.finish("tool_use"), am.STOP, calls=(Call("f", '{"x":1}'),), stop="tool_calls"),
]  # fmt: skip

REPAIRED = [
    turn("a block of the provider's with a number", begin(0, image={"format": "png"}), delta(0, image=5), stop(0), *block(1, "Hi"), text="Hi"),
    turn("a block that is never closed", delta(0, text="Hi"), text="Hi", repairs={"block_unclosed": 1}),
    turn("a block that is opened twice", begin(0), delta(0, text="a"), begin(0), *block(0, "b"), text="ab", repairs={"block_reopened": 1}),
    vector("an end inside the counts", START, *HI, finish("end_turn"), event(*counts())[:-20], text="Hi", repairs={"fault_after_end": 1}),
    turn("a second stop", *HI, stop(0), text="Hi", repairs={"block_unopened": 1}),
    turn("one index for two blocks", *HI, *block(0, "!"), text="Hi!", repairs={"index_reused": 1}),
    turn("one index for two calls", *tool(0, "t", "f", "{}"), *tool(0, "u", "g", "{}"), reason="tool_use", calls=(Call("f", "{}"), Call("g", "{}")), stop="tool_calls", repairs={"index_reused": 1}),
    turn("input without a start", delta(0, toolUse={"input": "{}"}), stop(0), reason="tool_use", calls=(Call("", "{}"),), stop=None, provider_error="the model called a tool without a name", repairs={"block_unopened": 1, "call_nameless": 1, "id_missing": 1}),
    turn("input for a call that had ended", *tool(0, "t", "f", "{}"), delta(0, toolUse={"input": '{"x":1}'}), reason="tool_use", calls=(Call("f", "{}"),), stop="tool_calls", repairs={"arguments_late": 1}, withheld=('{"x":1}',)),
    turn("reasoning inside a text block", delta(0, text="Hi"), delta(0, **thought(text="hm")), stop(0), text="Hi", reasoning="hm", repairs={"block_mismatch": 1}),
    turn("text inside a call", begin(0, toolUse={"toolUseId": "t", "name": "f"}), delta(0, text="Hi"), stop(0), reason="tool_use", calls=(Call("f", "", "empty"),), stop="tool_calls", repairs={"field_invalid": 1}),
    turn("redacted content that is no base64", delta(0, **thought(redactedContent="%")), stop(0), *block(1, "Hi"), text="Hi", repairs={"field_invalid": 1}),
    turn("a second start", START, *HI, text="Hi", repairs={"response_restarted": 1}),
    vector("more after messageStop", START, *HI, finish(), *block(1, "!"), counts(), text="Hi", repairs={"after_end": 2}),
    turn("stop with calls", *tool(0, "t", "f", "{}"), calls=(Call("f", "{}"),), stop="tool_calls", repairs={"stop_with_calls": 1}),
    vector("an exception that is no JSON", START, *HI, exception("internalServerException", b"<html>gone</html>"), text="Hi", stop=None, repairs={"error_shape": 1}, provider_error="<html>gone</html>"),
    native("native: a block that is never closed", am.START, am.begin(0, "text", text=""), am.delta(0, "text_delta", text="Hi"), am.finish("end_turn"), am.STOP, text="Hi", repairs={"block_unclosed": 1}),
]  # fmt: skip

BROKEN = [
    vector("a message that is cut", events(START, *HI)[:-9], text="Hi", stop=None),
    vector("a call that is cut", START, *tool(0, "t", "f", '{"x":1}')[:-1], calls=(Call("f", '{"x":1}', "truncated"),), stop=None, losses={"ollama": {"call_withheld": 1}}),
    vector("a call that ended before the cut", START, *tool(0, "t", "f", '{"x":1}'), counts(), calls=(Call("f", '{"x":1}'),), stop=None),
    vector("no messageStop", START, *HI, counts(), text="Hi", stop=None),
    vector("messageStop without a reason", START, *HI, ("messageStop", {}), text="Hi", stop=None),
    vector("an exception", START, *HI, exception("throttlingException", {"message": "busy", "p": "abc"}), text="Hi", stop=None, provider_error="busy", losses={"anthropic": {}, "bedrock": {}}),
    vector("an exception and nothing else", exception("validationException", {"message": "no such model"}), stop=None, provider_error="no such model"),
    vector("an exception inside a call", START, *tool(0, "t", "f", '{"x":')[:-1], exception("modelStreamErrorException", {"message": "gone", "originalStatusCode": 500}), calls=(Call("f", '{"x":', "truncated"),), stop=None, provider_error="gone"),
    vector("an error", START, *HI, error("InternalError", "gone"), text="Hi", stop=None, provider_error="gone", losses={"openai-chat": {}, "bedrock": {"error_detail": 1}}),
    vector("a wrong checksum of a message", START, *HI, event(*finish())[:-1] + b"!", text="Hi", stop=None, fault="BrokenFrame"),
    vector("a wrong checksum of the lengths", START, *HI, b"\0\0\0\x40\0\0\0\x10abcd", text="Hi", stop=None, fault="BrokenFrame"),
    vector("headers that break off", START, *HI, message(NO_OTHER[:-1], b"{}"), text="Hi", stop=None, fault="BrokenFrame"),
    vector("a payload that is no JSON", START, *HI, ("messageStop", b"{oops}"), text="Hi", stop=None, fault="BrokenFrame"),
    vector("events of another service", event("TranscriptEvent", {"x": 1}), stop=None, fault="NotThisDialect"),
    vector("an event stream of text", b'data: {"x":1}\n\n', stop=None, fault="NotThisDialect"),
    vector("an index of 2^63", START, delta(2**63, text="Hi"), stop=None, fault="IndexTooLarge"),
    native("native: no message_stop and no reason", am.START, *am.block(0, "Hi"), text="Hi", stop=None),
    native("native: an error", am.START, *am.block(0, "Hi"), {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}, text="Hi", stop=None, provider_error="busy"),
    vector("native: an exception", chunks(am.START, *am.block(0, "Hi")), exception("modelTimeoutException", {"message": "late"}), text="Hi", stop=None, provider_error="late"),
    native("native: events of another model", {"generation": "Hi"}, stop=None, fault="NotThisDialect"),
    vector("a chunk that is no base64", ("chunk", {"bytes": "%"}), stop=None, fault="BrokenFrame"),
]  # fmt: skip

VECTORS = [*HEALTHY, *REPAIRED, *BROKEN]
