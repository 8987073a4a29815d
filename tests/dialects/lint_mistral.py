"""Small streams for Mistral's checker; see ``lint_vectors.py``."""

from __future__ import annotations

from typing import Any

from tests.vectors.mistral import DONE, HEAD, ROLE, call, calls, chunk, finish, said, text, thinking
from tests.vectors.vector import sse


def stream(*payloads: Any, reason: Any = "stop", **fields: Any) -> bytes:
    return sse(ROLE, *payloads, finish(reason, **fields), DONE)


def one(id: Any = "aaaaaaaa1", name: Any = "f", arguments: Any = "{}", index: Any = 0) -> dict[str, Any]:
    return calls({"id": id, "index": index, "function": {"name": name, "arguments": arguments}})


FAILED = {"object": "error", "message": "no", "type": "x", "param": None, "code": None}

# fmt: off
MISTRAL: list[tuple[str, bytes, str]] = [
    ("text", stream(said("a")), ""),
    ("a comment, CRLF, padding", b": hi\r\n\r\n" + stream(said("a"), p="abc").replace(b"\n", b"\r\n"), ""),
    ("parts of all kinds", stream(said([thinking("a", signature="s"), text("a"), {"type": "reference", "reference_ids": [1]}, {"type": "thinking", "thinking": [{"type": "tool_reference"}]}])), ""),
    ("two calls", stream(one(), one("bbbbbbbb2", index=1, arguments={"x": 1}), reason="tool_calls"), ""),
    ("two calls at index 0", stream(one(), one("bbbbbbbb2")), "call_index*"),
    ("a call without an index", stream(calls(call("aaaaaaaa1", "f", "{}"))), "call_index*"),
    ("calls from 1", stream(one(index=1)), "call_index"),
    ("an error", sse(ROLE, FAILED), ""),
    ("an error in an envelope", sse(ROLE, {"error": {"message": "no"}}), ""),
    ("an error without a message", sse(ROLE, {"error": "no"}), "error*"),
    ("an error beside choices", sse(ROLE, {**ROLE, "error": {"message": "no"}}), "error"),
    ("a line after an error", sse(ROLE, FAILED, ROLE), "after_error"),
    ("a byte that is no UTF-8", sse(ROLE, b'{"x":"\xff"}', finish(), DONE), "not_utf8"),
    ("half an object", sse(ROLE, b'{"x":', finish(), DONE), "not_json"),
    ("a list", sse(ROLE, [], finish(), DONE), "not_object"),
    ("no finish reason", sse(ROLE, said("a"), DONE), "truncated"),
    ("nothing but [DONE]", sse(DONE), "truncated"),
    ("no [DONE]", sse(ROLE, finish()), "done*"),
    ("the last event cut off", sse(ROLE, finish())[:-1], "unterminated* done*"),
    ("empty data", sse(ROLE, b"", finish(), DONE), "empty_data"),
    ("no id", stream({"model": "m-1", "choices": []}), "identity"),
    ("an id that changes", stream({**ROLE, "id": "other"}), "identity* identity*"),
    ("no choices", stream(HEAD), "choices"),
    ("a choice without an index", stream({**HEAD, "choices": [{"delta": {}, "finish_reason": None}]}), "choices"),
    ("a choice without a delta", stream({**HEAD, "choices": [{"index": 0, "finish_reason": None}]}), "delta"),
    ("content as a number", stream(said(1)), "content"),
    ("content as an object", stream(said(text("a"))), "content"),
    ("a part without a type", stream(said([{"text": "a"}])), "content"),
    ("text that is none", stream(said([{"type": "text"}])), "part"),
    ("thinking as text", stream(said([{"type": "thinking", "thinking": "a"}])), "part"),
    ("a thought that is none", stream(said([{"type": "thinking", "thinking": ["a"]}])), "part"),
    ("a signature that is none", stream(said([thinking("a", signature=1)])), "part"),
    ("no key finish_reason", stream({**HEAD, "choices": [{"index": 0, "delta": {}}]}), "finish_reason"),
    ("a blank reason", stream(chunk({}, "")), "finish_reason"),
    ("two reasons", stream(chunk({}, "length")), "finish_reason"),
    ("one reason twice", stream(chunk({}, "stop")), "finish_reason*"),
    ("text after the reason", sse(ROLE, finish(), said("a"), DONE), "after_finish"),
    ("calls as an object", stream(chunk({"tool_calls": {}})), "tool_calls"),
    ("a call without a function", stream(calls({"id": "aaaaaaaa1"})), "tool_calls"),
    ("an id of another form", stream(one("call_1")), "call_id"),
    ("no id of a call", stream(one(None)), "call_id"),
    ("one id for two calls", stream(one(), one(index=1)), "call_id"),
    ("a fragment", stream(one(arguments='{"x":'), calls(call(None, None, "1}"))), "arguments_unparsable* call_index* call_id call_name arguments_unparsable*"),
    ("arguments that are none", stream(one(arguments=None)), "arguments"),
    ("arguments as a list", stream(one(arguments=[])), "arguments"),
    ("usage as text", sse(ROLE, chunk({}, "stop", usage="a"), DONE), "usage"),
    ("a count as text", sse(ROLE, chunk({}, "stop", usage={"prompt_tokens": "9"}), DONE), "usage"),
    ("more after [DONE]", stream() + sse(ROLE), "after_done"),
]
