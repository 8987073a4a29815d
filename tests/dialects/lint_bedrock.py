"""Small Bedrock streams for the checker. See ``lint_vectors.py``."""

from __future__ import annotations

from typing import Any

from tests.framing.binary import chunks, error, event, exception, message, string

Vector = tuple[str, bytes, str]


def begins(index: Any = 0, **start: Any) -> bytes:
    return event("contentBlockStart", {"contentBlockIndex": index, "start": start})


def adds(index: Any = 0, **delta: Any) -> bytes:
    return event("contentBlockDelta", {"contentBlockIndex": index, "delta": delta or {"text": "a"}})


def thinks(index: Any = 0, **fields: Any) -> bytes:
    return adds(index, reasoningContent=fields)


def closes(index: Any = 0) -> bytes:
    return event("contentBlockStop", {"contentBlockIndex": index})


def text(index: Any = 0) -> bytes:
    return adds(index) + closes(index)


def uses(*fragments: Any, index: Any = 0, id: Any = "t", name: Any = "f") -> bytes:
    inputs = b"".join(adds(index, toolUse={"input": fragment}) for fragment in fragments or ("{}",))
    return begins(index, toolUse={"toolUseId": id, "name": name}) + inputs + closes(index)


def stops(reason: Any = "end_turn") -> bytes:
    return event("messageStop", {"stopReason": reason})


def counts(usage: Any = ..., metrics: Any = ...) -> bytes:
    usage = {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2} if usage is ... else usage
    return event("metadata", {"usage": usage, "metrics": {"latencyMs": 1} if metrics is ... else metrics})


START = event("messageStart", {"role": "assistant", "p": "abc"})
END = stops() + counts()
THROTTLED = exception("throttlingException", {"message": "no"})
NATIVE_START = {
    "type": "message_start",
    "message": {
        "id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": {"input_tokens": 1, "output_tokens": 1},
    },
}  # fmt: skip
NATIVE_END = (
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
    {"type": "message_stop"},
)


def other(*headers: bytes) -> bytes:
    """An event of a kind that nobody knows, with other headers."""
    return message(b"".join(headers), b"{}")


TYPE, KIND, JSON = (
    string(":event-type", "x"),
    string(":message-type", "event"),
    string(":content-type", "application/json"),
)

# fmt: off
BEDROCK: list[Vector] = [
    ("text", START + text() + END, ""),
    ("a text without a delta", START + closes() + text(1) + END, ""),
    ("calls", START + uses() + uses('{"a"', ":1}", index=1, id="u") + END, ""),
    ("a call without input", START + uses("") + END, ""),
    ("reasoning", START + thinks(text="a") + thinks(signature="s") + closes() + thinks(1, redactedContent="eA==") + closes(1) + END, ""),
    ("a citation first", START + adds(citation={}) + text() + END, ""),
    ("a tool of the provider's", START + begins(toolUse={"toolUseId": "t", "name": "f", "type": "server_tool_use"}) + adds(toolUse={"input": "{"}) + closes() + END, ""),
    ("a block of the future", START + begins(video={}) + adds(video={}) + closes() + END, ""),
    ("a delta of the future", START + adds() + adds(colour="red") + closes() + END, ""),
    ("an event of the future", START + event("ping", {}) + text() + END, ""),
    ("no metadata", START + text() + stops(), ""),
    ("an exception", START + adds() + THROTTLED, ""),
    ("an error", START + error("E", "no"), ""),
    ("the model's own events", chunks(NATIVE_START, *NATIVE_END), ""),
    ("the model's own events, then an exception", chunks(NATIVE_START) + THROTTLED, ""),
    ("a byte that is no UTF-8", START + event("messageStop", b'{"stopReason":"\xff"}') + END, "not_utf8"),
    ("no JSON", START + event("contentBlockDelta", b"{") + END, "not_json"),
    ("no object", START + event("contentBlockDelta", []) + END, "not_object"),
    ("no messageStop", START + text(), "truncated"),
    ("a torn message", START + text() + END[:-1], "torn"),
    ("no :message-type", START + other(TYPE, JSON) + END, "headers"),
    ("a :message-type of the future", START + other(string(":message-type", "news"), TYPE, JSON) + END, "headers"),
    ("no :event-type", START + other(KIND, JSON) + END, "headers"),
    ("a blank :exception-type", START + exception("", {"message": "no"}), "headers"),
    ("no :content-type", START + other(TYPE, KIND) + END, "content_type*"),
    ("a chunk among events", START + chunks(NATIVE_START) + END, "kind"),
    ("an event among chunks", chunks(NATIVE_START) + START + chunks(*NATIVE_END), "kind"),
    ("no messageStart", text() + END, "message_start*"),
    ("messageStart twice", START + START + END, "message_start"),
    ("messageStart behind a block", text() + START + END, "message_start* message_start"),
    ("a message of the user", event("messageStart", {"role": "user"}) + END, "message_start"),
    ("the first block has index 1", START + text(1) + END, "block_index*"),
    ("an index twice", START + text() + text() + END, "block_index"),
    ("an index that is a text", START + text("0") + END, "block_index"),
    ("a text that is not stopped", START + adds() + text(1) + END, "block_order*"),
    ("a text open at the end", START + adds() + END, "block_order*"),
    ("a call open at the end", START + uses()[: -len(closes())] + END, "block_order"),
    ("a stop of a stopped block", START + text() + closes() + END, "block_order"),
    ("input for a block that is not open", START + adds(toolUse={"input": "{}"}) + END, "block_order"),
    ("a start without a member", START + begins() + closes() + END, "start"),
    ("a start that is null", START + event("contentBlockStart", {"contentBlockIndex": 0, "start": None}) + closes() + END, "start"),
    ("a start with two members", START + begins(image={"format": "png"}, video={}) + closes() + END, "start"),
    ("a call without id", START + uses(id="") + END, "start"),
    ("a call without name", START + uses(name=None) + END, "start"),
    ("a call that is a text", START + begins(toolUse="f") + closes() + END, "start"),
    ("one id for two calls", START + uses() + uses(index=1) + END, "tool_id"),
    ("a delta without a member", START + event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {}}) + END, "delta"),
    ("a delta with two members", START + adds(text="a", citation={}) + END, "delta"),
    ("text that is a number", START + adds(text=1) + closes() + END, "delta"),
    ("text in a call", START + begins(toolUse={"toolUseId": "t", "name": "f"}) + adds() + closes() + END, "delta"),
    ("reasoning in a text", START + adds() + thinks(text="a") + closes() + END, "delta"),
    ("reasoning with two members", START + thinks(text="a", signature="s") + closes() + END, "delta"),
    ("a citation that is text", START + adds(citation="x") + closes() + END, "delta"),
    ("input that is an object", START + uses({"a": 1}) + END, "delta"),
    ("redacted content that is no base64", START + thinks(redactedContent="%") + closes() + END, "redacted"),
    ("a signature in two pieces", START + thinks(signature="s") + thinks(signature="s") + closes() + END, "signature"),
    ("reasoning after its signature", START + thinks(signature="s") + thinks(text="a") + closes() + END, "signature"),
    ("input cut off", START + uses('{"a":') + END, "input_unparsable*"),
    ("no stop reason", START + stops(None), "message_stop"),
    ("text behind messageStop", START + stops() + text() + counts(), "after_stop after_stop"),
    ("messageStop twice", START + stops() + stops() + counts(), "after_stop"),
    ("metadata twice", START + END + counts(), "after_stop"),
    ("metadata before messageStop", START + text() + counts() + stops(), "metadata*"),
    ("no usage", START + stops() + counts(None), "usage"),
    ("no total", START + stops() + counts({"inputTokens": 1, "outputTokens": 1}), "usage"),
    ("no latency", START + stops() + counts(metrics={}), "metrics*"),
    ("an exception without a message", START + exception("throttlingException", {"Message": "no"}), "error"),
    ("an error without a message", START + error("E", ""), "error"),
    ("messageStop behind an exception", START + THROTTLED + stops(), "after_error"),
    ("a chunk without bytes", chunks(NATIVE_START) + event("chunk", {"p": ""}) + chunks(*NATIVE_END), "chunk"),
    ("a chunk that is no base64", chunks(NATIVE_START) + event("chunk", {"bytes": "%"}) + chunks(*NATIVE_END), "chunk"),
    ("a chunk that is no JSON", chunks(NATIVE_START, b"{", *NATIVE_END), "chunk"),
    ("a chunk that is no object", chunks(NATIVE_START, [], *NATIVE_END), "native"),
    ("the model's own events without a start", chunks(*NATIVE_END), "native"),
    ("the model's own events without a stop", chunks(NATIVE_START, NATIVE_END[0]), "native*"),
    ("the model's own events cut short", chunks(NATIVE_START), "truncated"),
]
# fmt: on
