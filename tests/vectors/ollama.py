"""Ollama streams, healthy and broken. Facts: dialects.md §4."""

from __future__ import annotations

from typing import Any

from tests.vectors.vector import Call, Vector, lines


def line(content: str = "", *, done: bool = False, **message: Any) -> dict[str, Any]:
    return {
        "model": "m-1", "created_at": "2025-01-01T00:00:00.000000Z",
        "message": {"role": "assistant", "content": content, **message}, "done": done,
    }  # fmt: skip


def call(name: str, arguments: Any, **fields: Any) -> dict[str, Any]:
    return {**fields, "function": {"name": name, "arguments": arguments}}


def end(reason: str | None = "stop", **fields: Any) -> dict[str, Any]:
    return {**line(done=True), **({} if reason is None else {"done_reason": reason}), **fields}


COUNTS = {"prompt_eval_count": 9, "eval_count": 4, "total_duration": 5}


def vector(name: str, *payloads: Any, **expected: Any) -> Vector:
    body = payloads[0] if len(payloads) == 1 and isinstance(payloads[0], bytes) else lines(*payloads)
    return Vector(name=name, dialect="ollama", body=body, **expected)


VECTORS = [
    vector("an unfinished line behind the end", lines(line("Hi"), end()) + b'{"model"', text="Hi", repairs={"fault_after_end": 1}),
    vector("text", line("Hel"), line("lo"), end(**COUNTS), text="Hello"),
    vector("text with CRLF and blank lines", lines(line("Hi"), b"", end()).replace(b"\n", b"\r\n"), text="Hi"),
    vector("no line end behind the last line", lines(line("Hi"), end())[:-1], text="Hi"),
    vector("raw separators", line("a\u2028b\x85c"), end(), text="a\u2028b\x85c"),
    vector("thinking", line(thinking="hm"), line("Hi"), end(), text="Hi", reasoning="hm"),
    vector("truth values as text", {**line("Hel"), "done": "false"}, {**line("lo"), "done": "False"}, end(done="true"), text="Hello", repairs={"boolean_invalid": 3}),
    vector("truth values as numbers", {**line("Hel"), "done": 0}, line("lo"), end(done=1), text="Hello", repairs={"boolean_invalid": 2}),
    vector("length", line("Hi"), end("length"), text="Hi", stop="length"),
    vector("text of /api/generate", {"model": "m-1", "created_at": "", "response": "Hi", "done": False}, {"model": "m-1", "response": "", "done": True, "done_reason": "stop"}, text="Hi"),
    vector(
        "two calls to one function", line(tool_calls=[call("f", {"x": 1}, id="a")]), line(tool_calls=[call("f", {"x": 2}), call("g", {})]), end(),
        calls=(Call("f", '{"x":1}', id="a"), Call("f", '{"x":2}'), Call("g", "{}")), stop="tool_calls",
    ),
    vector(
        "arguments as they stand in the line", lines(line(tool_calls=[call("f", {"x": "?"})]), end()).replace(b'"?"', b'1.0, "big": 18446744073709551616,"x" :1e21'),
        calls=(Call("f", '{"x":1.0, "big": 18446744073709551616,"x" :1e21}'),), stop="tool_calls",
    ),
    vector(
        "a number beyond doubles", lines(line(tool_calls=[call("f", {"x": "?"})]), end()).replace(b'"?"', b"1E400"),
        calls=(Call("f", '{"x":1E400}'),), stop="tool_calls", repairs={"number_out_of_range": 1},
    ),
    vector("arguments as text", line(tool_calls=[call("f", '{"x":1}')]), end(), calls=(Call("f", '{"x":1}'),), stop="tool_calls", repairs={"arguments_not_object": 1}),
    vector("log probabilities", {**line("Hi"), "logprobs": [{"token": "Hi"}]}, end(), text="Hi", losses={"openai-chat": {"logprobs": 1}, "anthropic": {"logprobs": 1}}),
    vector("an error", line("Hi"), {"error": "out of memory"}, text="Hi", stop=None, provider_error="out of memory"),
    vector("an error that is an object", line("Hi"), {"error": {"message": "out"}}, text="Hi", stop=None, provider_error="out", repairs={"error_shape": 1}),
    vector("more after the end", line("Hi"), end(), line("!"), text="Hi", repairs={"after_end": 1}),
    vector("images that the model made", line("Hi"), line(images=["iVBORw0KGgo="]), end(), text="Hi", losses={"ollama": {}, "anthropic": {"media_output": 1}, "openai-chat": {"media_output": 0}}),
    vector("done without a reason", line("Hi"), end(None), text="Hi", stop=None),
    vector("cut in a line", lines(line("Hi"), line("there"))[:-20], text="Hi", stop=None),
    vector("cut behind a call", line(tool_calls=[call("f", {"x": 1})]), calls=(Call("f", '{"x":1}'),), stop=None),
    vector("a line that is no JSON", line("Hi"), b"{oops}", end(), text="Hi", stop=None, fault="BrokenFrame"),
    vector("a web page", b"<html>\n", stop=None, fault="NotThisDialect"),
]  # fmt: skip
