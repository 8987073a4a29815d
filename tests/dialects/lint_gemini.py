"""Small streams for Gemini's checker; see ``lint_vectors.py``."""

from __future__ import annotations

from typing import Any

from tests.vectors.gemini import BUSY, ERROR, STOP, array, call, chunk, events, partial, text, thought

SIGNED = {"thoughtSignature": "c2ln"}


def stream(*payloads: Any) -> bytes:
    return events(*payloads, STOP)


def candidate(**fields: Any) -> dict[str, Any]:
    return {"candidates": [{"index": 0, **fields}]}


# fmt: off
GEMINI: list[tuple[str, bytes, str]] = [
    ("text, a thought and two calls", stream(chunk(thought("a", **SIGNED)), chunk(text("b"), call("f", {"x": 1}, signature="_-8=")), chunk(call("g"))), ""),
    ("LF and no space", stream(chunk(text("a"))).replace(b"\r", b"").replace(b"data: ", b"data:"), ""),
    ("an array", array(chunk(text("a")), STOP), ""),
    ("a call in parts", stream(chunk(call("f", willContinue=True)), chunk(partial(("$.a", "b"))), chunk(call())), ""),
    ("a call in one part of its arguments", stream(chunk(partial(("$.a", 1), name="f", more=False))), ""),
    ("usage alone at the end", stream(chunk(text("a"))) + events({"usageMetadata": {"promptTokenCount": 1}}), ""),
    ("a prompt that was blocked", events({"promptFeedback": {"blockReason": "SAFETY"}}), ""),
    ("two candidates", events(chunk(text("a"), finish="STOP"), chunk(text("b"), finish="SAFETY", index=1)), ""),
    ("a part of the future", stream(chunk({"novel": {}}), {"modelStatus": {}}), ""),
    ("a chunk that keeps alive", stream({"candidates": [{"content": {"parts": [], "role": "model"}, "index": 0}]}), ""),
    ("an error at once", events(BUSY), ""),
    ("an error printed over many lines", events(chunk(text("a"))) + ERROR + b"\r\n", ""),
    ("an error in an array", array(chunk(text("a")), BUSY), ""),
    ("a byte that is no UTF-8", stream(b'{"modelVersion":"\xff"}'), "not_utf8"),
    ("no JSON", stream(b"{"), "not_json"),
    ("no object", stream(b"[]"), "not_object"),
    ("no reason", events(chunk(text("a"))), "truncated"),
    ("one candidate without a reason", events(chunk(text("a"), finish="STOP"), chunk(text("b"), index=1)), "truncated"),
    ("a prompt blocked and another candidate", events({"promptFeedback": {"blockReason": "SAFETY"}}, chunk(text("b"), index=1)), "truncated"),
    ("an array cut off", array(chunk(text("a")), STOP)[:-9], "unterminated* not_json truncated"),
    ("the last blank line cut off", stream(chunk(text("a")))[:-2], "unterminated*"),
    ("an event line", b"event: chunk\n" + stream(chunk(text("a"))), "event"),
    ("[DONE]", stream(chunk(text("a"))) + b"data: [DONE]\n\n", "done"),
    ("a chunk of something else", stream({"object": "chat.completion.chunk"}), "chunk"),
    ("candidates that are an object", stream({"candidates": {}}), "candidates"),
    ("an index that is text", stream(chunk(text("a"), index="0")), "candidates"),  # type: ignore[arg-type]
    ("a candidate that is text", stream({"candidates": ["a"]}), "candidates"),
    ("content that is text", stream(candidate(content="a")), "content"),
    ("content of the user", stream(candidate(content={"role": "user", "parts": []})), "content"),
    ("parts that are an object", stream(candidate(content={"parts": {}})), "content"),
    ("a part that is text", stream(chunk("a")), "content"),
    ("text that is a number", stream(chunk({"text": 1})), "text"),
    ("a thought that is text", stream(chunk({"text": "a", "thought": "yes"})), "text"),
    ("a signature that is no base64", stream(chunk(text("a", thoughtSignature="c2l"))), "signature"),
    ("a call that is null", stream(chunk({"functionCall": None})), "call"),
    ("a call without a name", stream(chunk(call(None, {"x": 1}))), "call"),
    ("a blank name", stream(chunk(call(" ", {}))), "call"),
    ("an id that is a number", stream(chunk(call("f", id=1))), "call"),
    ("the end of a call that is not open", stream(chunk(call("f")), chunk(call())), "call"),
    ("arguments that are text", stream(chunk(call("f", "{}"))), "args"),
    ("parts of arguments that are an object", stream(chunk(call("f", partialArgs={}))), "partial_args"),
    ("a part of arguments without a path", stream(chunk(call("f", partialArgs=[{"stringValue": "a"}]))), "partial_args"),
    ("a part of arguments with two values", stream(chunk(call("f", partialArgs=[{"jsonPath": "$.a", "stringValue": "a", "boolValue": True}]))), "partial_args"),
    ("a call open at the end", stream(chunk(partial(("$.a", "b"), name="f"))), "call_open"),
    ("a reason that is a number", stream(candidate(finishReason=1)), "finish_reason"),
    ("a blank reason", stream(candidate(finishReason="")), "finish_reason"),
    ("the reason again", stream(chunk(text("a"), finish="STOP")), "finish_reason*"),
    ("another reason", stream(chunk(text("a"), finish="SAFETY")), "finish_reason"),
    ("text behind the reason", stream() + events(chunk(text("a"))), "after_finish*"),
    ("feedback that is text", stream({"promptFeedback": "a"}), "prompt_feedback"),
    ("a block reason that is a number", stream({"promptFeedback": {"blockReason": 1}}), "prompt_feedback"),
    ("usage that is a number", stream({"usageMetadata": 1}), "usage"),
    ("half a token", stream({"usageMetadata": {"promptTokenCount": 1.5}}), "usage"),
    ("another response", stream({"responseId": "r-8"}), "identity*"),
    ("a model that is null", stream({"modelVersion": None}), "identity"),
    ("an error that is text", events({"error": "no"}), "error"),
    ("an error whose code is text", events({"error": {"code": "503", "message": "no"}}), "error"),
    ("an error behind another key", events({"responseId": "r-7", **BUSY}), "error"),
    ("text behind an error", events(BUSY, chunk(text("a"))), "after_error"),
]
# fmt: on
