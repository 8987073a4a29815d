"""Small streams for AG-UI's checker; see ``lint_vectors.py``."""

from __future__ import annotations

from typing import Any

from tests.vectors.ag_ui import (
    START,
    USAGE,
    begin,
    call,
    delta,
    encrypted,
    end,
    event,
    failed,
    finish,
    over,
    piece,
    result,
    text,
    thinking,
    tool,
)
from tests.vectors.vector import sse


def stream(*payloads: Any, **members: Any) -> bytes:
    return sse(START, *payloads, finish(**members))


# fmt: off
AG_UI: list[tuple[str, bytes, str]] = [
    ("thinking, text and calls", stream(*thinking("m-1", "hm", signed="s"), *text("m-2", "Hi"), *tool("a", "f", '{"x":', "1}"), *tool("b", "g"), encrypted("a", "s", "tool-call"), reason="tool_calls", usage=USAGE), ""),
    ("messages side by side, and one that goes on", stream(begin("m-1"), begin("m-2"), delta("m-1", "a"), end("m-1"), end("m-2"), *text("m-1", "b")), ""),
    ("steps, a subagent and state", stream(event("STEP_STARTED", stepName="s"), event("SUBAGENT_STARTED", subagentRunId="u", name="n"), event("STATE_SNAPSHOT", snapshot={}), event("CUSTOM", name="n", value=1), event("SUBAGENT_FINISHED", subagentRunId="u"), event("STEP_FINISHED", stepName="s")), ""),
    ("an error at once", sse(failed(code="server", usage=USAGE)), ""),
    ("an error, and calls with results", sse(START, begin("m"), call("a", "f"), piece("a", '{"x'), result("a"), failed()), ""),
    ("two runs", stream(*text("m-1", "a")) + stream(*text("m-1", "b")), ""),
    ("an error behind the end", stream() + sse(failed()), ""),
    ("an interrupt", stream(outcome={"type": "interrupt", "interrupts": [{"id": "i", "reason": "r"}]}), ""),
    ("a call that was not run", stream(call("a", "f"), piece("a", "{"), result("a"), over("a")), ""),
    ("a byte that is no UTF-8", sse(START) + b'data: {"x":"\xff"}\n\n' + sse(finish()), "not_utf8"),
    ("half an object", sse(START, b'{"x":', finish()), "not_json"),
    ("a list", sse(START, b"[]", finish()), "not_object"),
    ("no end", sse(START, *text("m-1", "a")), "truncated"),
    ("the last event without its blank line", stream()[:-1], "unterminated*"),
    ("[DONE]", stream() + sse(b"[DONE]"), "blank"),
    ("an empty payload", sse(START) + b"data:\n\n" + sse(finish()), "blank"),
    ("no type", sse(START, {}, finish()), "event_type"),
    ("a type that nobody knows", stream(event("SOMETHING")), "event_type"),
    ("a delta that is no text", stream(begin("m"), delta("m", None), end("m")), "member"),
    ("a name that is null", stream(begin("m", name=None), end("m")), "member"),
    ("a time with a fraction", stream(event("RAW", event=1, timestamp=1.5)), "member"),
    ("metadata that are null", stream(event("RAW", event=1, metadata=None)), "member"),
    ("reasoning of the assistant's", stream({**begin("m", "REASONING"), "role": "assistant"}, end("m", "REASONING")), "member"),
    ("a code that is a number", sse(START, failed(code=5)), "member"),
    ("an error that says nothing", sse(START, failed("")), "member*"),
    ("no start", sse(*text("m", "a"), finish()), "run_started"),
    ("a start without ids", sse({"type": "RUN_STARTED"}, finish()), "run_started run_started"),
    ("more behind the end", stream() + sse(*text("m", "a")), "after_finished after_finished after_finished"),
    ("more behind an error", sse(START, failed(), finish()), "after_error"),
    ("two starts", sse(START, START, finish()), "not_open"),
    ("a delta for no message", stream(delta("m", "a")), "not_open"),
    ("a message that is started twice", stream(begin("m"), *text("m", "a")), "not_open"),
    ("an end for no call", stream(over("a")), "not_open"),
    ("a message that is open at the end", stream(begin("m")), "left_open"),
    ("a step that is open at the end", stream(event("STEP_STARTED", stepName="s")), "left_open"),
    ("text in chunks", stream(event("TEXT_MESSAGE_CHUNK", "m", delta="a"), event("TOOL_CALL_CHUNK", "a", toolCallName="f", delta="{}")), "chunks* chunks*"),
    ("thinking of version 0", stream(event("THINKING_TEXT_MESSAGE_START"), event("THINKING_TEXT_MESSAGE_CONTENT", delta="a")), "version_0* version_0*"),
    ("arguments that are no object", stream(*tool("a", "f", "[1]")), "arguments"),
    ("a call without a result", sse(START, *tool("a", "f", "{}"), failed()), "unanswered"),
    ("an error that nobody sees", sse(START, failed(code="abort")), "hidden_error"),
    ("a run that was cancelled", stream(outcome={"type": "cancelled"}), "outcome"),
    ("an outcome in a word", stream(outcome="success"), "outcome"),
    ("usage that is an object", stream(usage={}), "usage"),
    ("an entry that is no object", stream(usage=[1]), "usage"),
    ("counts that are none", sse(START, failed(usage=[{"inputTokens": 9.5, "outputTokens": None}])), "usage usage"),
]
# fmt: on
