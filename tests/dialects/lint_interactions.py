"""Small streams for the checker of Gemini Interactions; see ``lint_vectors.py``."""

from __future__ import annotations

from typing import Any

from tests.vectors.gemini_interactions import (
    GOES_ON,
    START,
    begin,
    call,
    delta,
    end,
    event,
    failed,
    finish,
    interaction,
    named,
    piece,
    said,
    summary,
    text,
    thinking,
    tool,
)


def stream(*payloads: Any, status: str = "completed", **members: Any) -> bytes:
    return named(START, GOES_ON, *payloads, finish(status, **members))


# fmt: off
INTERACTIONS: list[tuple[str, bytes, str]] = [
    ("thinking, text and calls", stream(*thinking(0, "hm", signed="c2ln"), *text(1, "Hi"), *tool(2, "a", "f", '{"x":', "1}"), *tool(3, "b", "g"), status="requires_action"), ""),
    ("steps side by side", stream(begin(0, "model_output"), call(1, "a", "f"), *said(0, "a"), piece(1, "{}"), end(1), end(0)), ""),
    ("an end that says it all", named(finish(steps=[])), ""),
    ("an error at once", named(failed()), ""),
    ("an error without a code", named(START, event("error", error={"message": "busy"})), ""),
    ("steps and deltas that nobody knows", stream(begin(0, "novelty"), delta(0, "novelty"), delta(0, "text", text="a"), end(0)), ""),
    ("events that nobody knows", stream(event("novelty")), ""),
    ("[DONE] behind the end", stream() + b"data: [DONE]\n\n", "after_completed*"),
    ("no event lines", stream(*text(0, "Hi")).replace(b"event: step.stop\n", b""), "event*"),
    ("no blank line at the end", stream()[:-1], "unterminated*"),
    ("no event type", named(START) + b'event: step.stop\ndata: {"index":0}\n\n' + named(finish()), "event"),
    ("no start", named(*text(0, "Hi"), finish()), "created"),
    ("two starts", named(START, START, finish()), "created"),
    ("an interaction without its id", named(event("interaction.created", interaction={"status": "in_progress"}), finish()), "interaction"),
    ("no interaction", named(event("interaction.created"), finish()), "interaction"),
    ("a step at an index of its own", stream(*text(1, "Hi")), "step_index"),
    ("an index for two steps", stream(*text(0, "a"), *text(0, "b")), "step_index"),
    ("a delta without its step", stream(*said(0, "Hi")), "step_order"),
    ("a stop without its step", stream(*text(0, "Hi"), end(1)), "step_order"),
    ("a step that is open at the end", stream(begin(0, "model_output"), *said(0, "Hi")), "step_order"),
    ("a step that is no object", stream(event("step.start", index=0, step=[]), end(0)), "step"),
    ("a call without its name", stream(*tool(0, "a", "")), "step"),
    ("a call whose arguments are text", stream(call(0, "a", "f", "{}"), end(0)), "step"),
    ("arguments that came with the start", stream(call(0, "a", "f", {"x": 1}), end(0)), "step*"),
    ("text that came with the start", stream(begin(0, "model_output", content=[{"type": "text", "text": "Hi"}]), end(0)), "step*"),
    ("steps that came with the end", named(START, finish(steps=[{"type": "model_output"}])), "step*"),
    ("one id for two calls", stream(*tool(0, "a", "f"), *tool(1, "a", "g")), "call_id"),
    ("a delta without a type", stream(begin(0, "model_output"), event("step.delta", index=0, delta={}), end(0)), "delta"),
    ("a delta of another step", stream(begin(0, "model_output"), summary(0, "hm"), end(0)), "delta"),
    ("text that is none", stream(begin(0, "model_output"), delta(0, "text", text=7), end(0)), "delta"),
    ("arguments that are an object", stream(call(0, "a", "f"), piece(0, {}), end(0)), "delta"),
    ("arguments that break off", stream(*tool(0, "a", "f", '{"x":')), "input_unparsable*"),
    ("counts that are none", named(START, event("interaction.completed", interaction=interaction("completed", usage={"total_tokens": "7"}))), "usage"),
    ("usage that is no object", named(START, event("interaction.status_update", usage=[]), finish()), "usage"),
    ("an end that goes on", named(START, finish("in_progress"), finish()), "status"),
    ("text behind the end", stream() + named(*said(0, "Hi")), "after_completed"),
    ("an error without its message", named(START, event("error", error={"code": 7})), "error"),
    ("text behind an error", named(START, failed(), *said(0, "Hi")), "after_error"),
    ("bytes that are no UTF-8", named(START) + b'data: {"event_type":"a\xff"}\n\n' + named(finish()), "not_utf8"),
    ("a payload that is no JSON", named(START) + b"data: {oops}\n\n" + named(finish()), "not_json"),
    ("a payload that is a list", named(START) + b"data: []\n\n" + named(finish()), "not_object"),
    ("a stream that is cut", named(START, *text(0, "Hi")), "truncated"),
]
