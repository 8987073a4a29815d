"""Small streams for Cohere's checker; see ``lint_vectors.py``."""

from __future__ import annotations

from typing import Any

from tests.vectors.cohere import START, begin, block, call, delta, end, event, finish, over, piece, plan, tool
from tests.vectors.vector import named

USAGE = {
    "billed_units": {"input_tokens": 3.0},
    "tokens": {"input_tokens": 9, "output_tokens": None},
    "cached_tokens": 1,
}
CITED = event("citation-start", 0, citations={"text": "a"}), event("citation-end", 0)
DONE = b"data: [DONE]\n\n"


def stream(*payloads: Any, reason: Any = "COMPLETE", **end: Any) -> bytes:
    return named(START, *payloads, finish(reason, **end))


# fmt: off
COHERE: list[tuple[str, bytes, str]] = [
    ("thinking, text and citations", stream(*block(0, "a", "thinking"), begin(1), delta(1, "a"), *CITED, end(1), usage=USAGE) + DONE, ""),
    ("a plan and two calls", stream(plan("a"), *tool(0, "a", "f", '{"x":', "1}"), *tool(1, "b", "g"), reason="TOOL_CALL"), ""),
    ("an error at once", named(finish("ERROR", error="no")), ""),
    ("a timeout inside a block", stream(begin(0), reason="TIMEOUT"), ""),
    ("events and content of the future", stream({"type": "debug"}, event("content-start", 0, content={"type": "x"}), event("content-delta", 0, content={"x": 1}), end(0)), ""),
    ("a byte that is no UTF-8", named(START) + b'data: {"x":"\xff"}\n\n' + named(finish()), "not_utf8"),
    ("half an object", named(START) + b'data: {"x":\n\n' + named(finish()), "not_json"),
    ("a list", named(START) + b"data: []\n\n" + named(finish()), "not_object"),
    ("no end", named(START, *block(0, "a")), "truncated"),
    ("no end but [DONE]", named(START) + DONE, "truncated"),
    ("the last event cut off", stream(*block(0, "a"))[:-1], "unterminated"),
    ("[DONE] cut off", stream() + DONE[:-1], ""),
    ("no type", named(START) + b"data: {}\n\n" + named(finish()), "event"),
    ("no event line", named(START).partition(b"\n")[2] + named(finish()), "event*"),
    ("another event line", named(START).replace(b"event: message-start", b"event: start") + named(finish()), "event*"),
    ("no start", named(*block(0, "a"), finish()), "message_start"),
    ("nothing but an end", named(finish()), "message_start"),
    ("two starts", stream(START), "message_start"),
    ("a start without an id", named({**START, "id": None}, finish()), "message"),
    ("a start without a role", named({**START, "delta": {"message": {}}}, finish()), "message"),
    ("blocks from 1", stream(*block(1, "a")), "block_index"),
    ("a block without an index", named(START, event("content-start", content={"type": "text", "text": ""}), event("content-end"), finish()), "block_index"),
    ("one index for two calls", stream(*tool(0, "a", "f"), *tool(0, "b", "g")), "call_index"),
    ("calls in the row of the blocks", stream(*block(0, "a"), *tool(1, "a", "f")), "call_index"),
    ("two open blocks", stream(begin(0), begin(1), end(1)), "block_order"),
    ("calls that interleave", stream(call(0, "a", "f"), call(1, "b", "g"), piece(0, "{}"), over(0), over(1)), "block_order block_order block_order"),
    ("a delta and an end without a block", stream(delta(0, "a"), end(0)), "block_order block_order"),
    ("an end inside a block", stream(begin(0)), "block_order"),
    ("a plan inside a block", stream(begin(0), plan("a"), end(0)), "block_order"),
    ("a start that says nothing", stream(event("content-start", 0), end(0)), "content"),
    ("text that is none", stream(begin(0), event("content-delta", 0, content={"text": 1}), end(0)), "content"),
    ("a start with thinking that is none", stream(event("content-start", 0, content={"type": "thinking", "thinking": None}), end(0)), "content"),
    ("content as text", stream(begin(0), event("content-delta", 0, content="a"), end(0)), "content"),
    ("thinking in a block of text", stream(begin(0), delta(0, "a", "thinking"), end(0)), "content_kind"),
    ("a plan that is no text", stream(event("tool-plan-delta", tool_plan=1)), "tool_plan"),
    ("calls as a list", stream(event("tool-call-start", 0, tool_calls=[]), over(0)), "tool_call"),
    ("a call without a function", stream(call(0, "a", "f"), event("tool-call-delta", 0, tool_calls={"x": 1}), over(0)), "tool_call"),
    ("a call without an id", stream(call(0, None, "f"), over(0)), "call_start"),
    ("a blank name", stream(call(0, "a", " "), over(0)), "call_start"),
    ("a call of another type", stream(event("tool-call-start", 0, tool_calls={"id": "a", "type": "x", "function": {"name": "f", "arguments": ""}}), over(0)), "call_start"),
    ("one id for two calls", stream(*tool(0, "a", "f"), *tool(1, "a", "f")), "call_id"),
    ("arguments as an object", stream(call(0, "a", "f"), piece(0, {}), over(0)), "arguments"),
    ("a citation as a list", stream(event("citation-start", 0, citations=[{}]), event("citation-end", 0)), "citation"),
    ("a citation without an end of its own", stream(event("citation-start", 0, citations={"text": "a"}), event("citation-end", 1)), "citation"),
    ("an end without a reason", stream(reason=None), "message_end"),
    ("an end without a delta", named(START, {"type": "message-end"}), "message_end"),
    ("usage as text", stream(usage="a"), "usage"),
    ("a count as text", stream(usage={"tokens": {"input_tokens": "9"}}), "usage"),
    ("counts as a list", stream(usage={"tokens": []}), "usage"),
    ("an error with a reason of success", stream(error="no"), "error"),
    ("an error that is an object", stream(reason="ERROR", error={"message": "no"}), "error"),
    ("more after the end", stream() + named(*block(0, "a")), "after_end after_end after_end"),
]
