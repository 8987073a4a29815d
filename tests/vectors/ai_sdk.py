"""UI message streams of the AI SDK, healthy and broken. Facts: ui-protocols.md §1."""

from __future__ import annotations

from typing import Any

from streamkit.dialects import DIALECTS
from streamkit.dialects.vocabulary.sealed_reasoning import seal
from tests.vectors.vector import Call, Vector, sse

START = {"type": "start"}
STEP = {"type": "start-step"}
STEP_END = {"type": "finish-step"}
DONE = b"[DONE]"


def text(*pieces: str, name: str = "t0", kind: str = "text", **end: Any) -> list[dict[str, Any]]:
    """A part: its start, a delta a piece, its end."""
    return [
        {"type": f"{kind}-start", "id": name},
        *({"type": f"{kind}-delta", "id": name, "delta": piece} for piece in pieces),
        {"type": f"{kind}-end", "id": name, **end},
    ]


def reasoning(*pieces: str, name: str = "r0", **end: Any) -> list[dict[str, Any]]:
    return text(*pieces, name=name, kind="reasoning", **end)


def call_start(call: str, tool: str = "f", **fields: Any) -> dict[str, Any]:
    return {"type": "tool-input-start", "toolCallId": call, "toolName": tool, **fields}


def piece(call: str, fragment: str) -> dict[str, Any]:
    return {"type": "tool-input-delta", "toolCallId": call, "inputTextDelta": fragment}


def available(call: str, value: Any, tool: str = "f", **fields: Any) -> dict[str, Any]:
    return {"type": "tool-input-available", "toolCallId": call, "toolName": tool, "input": value, **fields}


def call_error(call: str, value: Any, error: str) -> dict[str, Any]:
    return {**available(call, value), "type": "tool-input-error", "errorText": error}


def output(call: str, value: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "tool-output-available", "toolCallId": call, "output": value, **fields}


def finish(reason: str | None = "stop", **fields: Any) -> dict[str, Any]:
    return {"type": "finish", **({} if reason is None else {"finishReason": reason}), **fields}


FAILED = {"type": "error", "errorText": "gone"}


def answer(*chunks: dict[str, Any] | list[dict[str, Any]], end: dict[str, Any] | None = None) -> bytes:
    """A whole answer of one step."""
    flat = [each for chunk in chunks for each in (chunk if isinstance(chunk, list) else [chunk])]
    return sse(START, STEP, *flat, STEP_END, finish() if end is None else end, DONE)


def vector(name: str, body: bytes, **expected: Any) -> Vector:
    return Vector(name=name, dialect="ai-sdk", body=body, **expected)


USAGE = {"inputTokens": 9, "outputTokens": 4, "totalTokens": 13}
SIGNED = {"providerMetadata": {"anthropic": {"signature": "c2ln"}}}
REDACTED = {"providerMetadata": {"anthropic": {"redactedData": "cmVk"}}}
ENCRYPTED = {"providerMetadata": {"openai": {"itemId": "rs_1", "reasoningEncryptedContent": "ZW5j"}}}
THOUGHT = {"providerMetadata": {"google": {"thoughtSignature": "dGhvdWdodA=="}}}
HELLO = answer(text("Hel", "lo"))

VECTORS = [
    vector("text", answer(text("Hel", "lo"), end=finish(messageMetadata={"usage": USAGE})), text="Hello"),
    vector("text with CRLF, comments and spaces", b": hi\n\n" + HELLO.replace(b"\n", b"\r\n"), text="Hello"),
    vector("no mark at the end", HELLO.removesuffix(b"data: [DONE]\n\n"), text="Hello"),
    vector("two parts", answer(text("a"), text("b", name="t1")), text="ab", losses={"openai-chat": {"block_boundary": 1}}),
    vector("two steps", sse(START, STEP, *text("a"), STEP_END, STEP, *text("b"), STEP_END, finish(), DONE), text="ab"),
    vector("reasoning", answer(reasoning("hm"), text("Hi")), text="Hi", reasoning="hm"),
    vector(
        "signed reasoning", answer(reasoning("hm", **SIGNED), text("Hi")), text="Hi", reasoning="hm",
        losses={"ollama": {"reasoning_signature": 1}, "ai-sdk": {}},
    ),
    vector(
        "reasoning that only its vendor can read", answer(reasoning(**REDACTED), text("Hi")), text="Hi",
        losses={"ollama": {"reasoning_opaque": 1}, "ai-sdk": {}},
    ),
    vector(
        "reasoning that OpenAI encrypted, and what else it says of it", answer(reasoning("hm", **ENCRYPTED), reasoning(name="r1", **ENCRYPTED), text("Hi")),
        text="Hi", reasoning="hm", losses={"openai-responses": {"metadata": 2}, "ollama": {"reasoning_opaque": 1, "reasoning_signature": 1}},
    ),
    vector(
        "a text and a call that Google signed", answer(text("Hi", **THOUGHT), call_start("a"), available("a", {"x": 1}, **THOUGHT), end=finish("tool-calls")),
        text="Hi", calls=(Call("f", '{"x":1}', id="a"),), stop="tool_calls", losses={"gemini": {}, "ollama": {"reasoning_signature": 2}, "ai-sdk": {}},
    ),
    vector(
        "reasoning of a vendor without a name in the SDK", answer(reasoning("hm", providerMetadata={"streamkit": {"sealed": seal("reasoning", "mistral", "c2ln")}}), text("Hi")),
        text="Hi", reasoning="hm", losses={"mistral": {}, "ai-sdk": {}},
    ),
    vector(
        "metadata of a part, of which the last count", answer([text(**SIGNED)[0], *reasoning("hm", **SIGNED), {**reasoning()[0], "id": "t0", "type": "text-delta", "delta": "Hi"}, {**text()[1], **THOUGHT}]),
        text="Hi", reasoning="hm", losses={"gemini": {}},
    ),
    vector("a part that is begun again", answer([text()[0], *text("Hi")]), text="Hi", repairs={"block_reopened": 1}),
    vector("a part without an end", answer([*reasoning("hm")[:2], {"type": "text-start", "id": "t0", **THOUGHT}, text("Hi")[1]]), text="Hi", reasoning="hm"),
    vector("length", answer(text("Hi"), end=finish("length")), text="Hi", stop="length"),
    vector("filtered", answer(text("Hi"), end=finish("content-filter")), text="Hi", stop="content_filter"),
    vector("no finish reason", answer(text("Hi"), end=finish(None)), text="Hi"),
    vector(
        "two calls", answer(text("Let me."), call_start("a"), piece("a", '{"x":'), piece("a", "1}"), call_start("b"), piece("b", "{}"), available("a", {"x": 1}), available("b", {}), end=finish("tool-calls")),
        text="Let me.", calls=(Call("f", '{"x":1}', id="a"), Call("f", "{}", id="b")), stop="tool_calls",
    ),
    vector(
        "an input with a default that the deltas lack", answer(call_start("a"), piece("a", '{"x":1}'), available("a", {"x": 1, "y": True}), end=finish("tool-calls")),
        calls=(Call("f", '{"x":1,"y":true}', id="a"),), stop="tool_calls",
    ),
    vector(
        "an input with the numbers of JavaScript", answer(call_start("a"), piece("a", '{"x": 1.0, "big": 9007199254740993}'), available("a", {"big": 9007199254740992, "x": 1}), end=finish("tool-calls")),
        calls=(Call("f", '{"x": 1.0, "big": 9007199254740993}', id="a"),), stop="tool_calls",
    ),
    vector(
        "a call without deltas", answer(available("a", "?"), end=finish("tool-calls")).replace(b'"?"', b'{"x":1.0, "big": 18446744073709551616}'),
        calls=(Call("f", '{"x":1.0, "big": 18446744073709551616}', id="a"),), stop="tool_calls",
    ),
    vector(
        "a number beyond doubles", answer(available("a", "?"), end=finish("tool-calls")).replace(b'"?"', b'{"x":1E400}'),
        calls=(Call("f", '{"x":1E400}', id="a"),), stop="tool_calls", repairs={"number_out_of_range": 1},
    ),
    vector(
        "a call with a text as its input", answer(call_start("a", inputEncoding="text"), piece("a", "*** x"), available("a", "*** x"), end=finish("tool-calls")),
        calls=(Call("f", "*** x", "complete", id="a"),), stop="tool_calls", losses={"anthropic": {"custom_tool_wrapped": 1}, "ai-sdk": {}},
    ),
    vector(
        "an input that is no JSON", answer(call_start("a"), piece("a", "{x"), call_error("a", "{x", "no JSON"), end=finish("tool-calls")),
        calls=(Call("f", "{x", "malformed", id="a"),), stop="tool_calls", losses={name: {"metadata": int(name != "ai-sdk")} for name in DIALECTS.built_in},
    ),
    vector(
        "an input that the server refused and answered", answer(call_start("a"), piece("a", '{"x":1}'), call_error("a", {"x": 1}, "x is too small"), {"type": "tool-output-error", "toolCallId": "a", "errorText": "not run"}, text("Hi")),
        text="Hi", losses={"openai-chat": {"server_tool": 1}, "ai-sdk": {}},
    ),
    vector(
        "a text as an input that its deltas said otherwise", answer(call_start("a", inputEncoding="text"), piece("a", "*** x"), available("a", "*** y"), end=finish("tool-calls")),
        calls=(Call("f", "*** y", "complete", id="a"),), stop="tool_calls", losses={"anthropic": {"custom_tool_wrapped": 1}, "ai-sdk": {}},
    ),
    vector(
        "a call that gets a title with its input", answer(call_start("a"), available("a", {"x": 1}, title="F"), end=finish("tool-calls")),
        calls=(Call("f", '{"x":1}', id="a"),), stop="tool_calls", losses={"openai-chat": {"metadata": 1}, "ai-sdk": {}},
    ),
    vector(
        "a call that the provider ran", answer(call_start("s", "search", providerExecuted=True), available("s", {"q": "x"}, "search", providerExecuted=True), {"type": "tool-output-available", "toolCallId": "s", "output": [1], "providerExecuted": True}, text("Hi")),
        text="Hi", losses={"openai-chat": {"server_tool": 3}, "ai-sdk": {}},
    ),
    vector(
        "a call whose input says that the provider runs it", answer(call_start("s", "search"), piece("s", '{"q":'), piece("s", '"x"}'), available("s", {"q": "x"}, "search", providerExecuted=True), text("Hi")),
        text="Hi", losses={"openai-chat": {"server_tool": 2}, "ai-sdk": {"server_tool": 0}},
    ),
    vector(
        "a call that the server ran, and text behind it", answer(call_start("a", "look", dynamic=True), piece("a", '{"x":1}'), available("a", {"x": 1}, "look", dynamic=True), output("a", [1]), STEP_END, STEP, text("Hi")),
        text="Hi", losses={"openai-chat": {"server_tool": 1}, "ai-sdk": {}},
    ),
    vector(
        "a call that the server ran without a delta, and one of the client's", answer(available("a", {"x": 1}), available("b", {"y": 2}), output("a", "ok"), end=finish("tool-calls")),
        calls=(Call("f", '{"y":2}', id="b"),), stop="tool_calls", losses={"openai-chat": {"server_tool": 1}},
    ),
    vector(
        "a call that the user is to approve",
        answer(text("Hi"), call_start("a"), piece("a", '{"x":1.0}'), available("a", {"x": 1.0}), {"type": "tool-approval-request", "approvalId": "p", "toolCallId": "a", "reason": "it writes"}, end=finish("tool-calls")),
        text="Hi", stop="tool_calls", losses={"ai-sdk": {}, "openai-responses": {}, "anthropic": {"client_tool": 1, "metadata": 1}},
    ),
    vector(
        "a call of the provider that the user is to approve",
        answer(call_start("a", providerExecuted=True, dynamic=True), available("a", {"x": 1}, providerExecuted=True, dynamic=True), {"type": "tool-approval-request", "approvalId": "p", "toolCallId": "a"}),
        stop="tool_calls", losses={"anthropic": {"client_tool": 1, "server_tool": 2}},
    ),
    vector(
        "a call that was approved in the stream",
        answer(call_start("a"), available("a", {}), {"type": "tool-approval-request", "approvalId": "p", "toolCallId": "a", "isAutomatic": True}, output("a", 1)),
        losses={"ai-sdk": {}, "anthropic": {"server_tool": 1}},
    ),
    vector("text behind a call that waits", answer(call_start("a"), available("a", {}), text("Hi"), end=finish("tool-calls")), text="Hi", calls=(Call("f", "{}", id="a"),), stop="tool_calls"),
    vector("a call that says its input again", answer(available("a", {"x": 1}), available("a", {"x": 1}), available("a", {"x": 2}), end=finish("tool-calls")), calls=(Call("f", '{"x":1}', id="a"),), stop="tool_calls", repairs={"arguments_repeated": 1, "arguments_late": 1}, withheld=('{"x":2}',)),
    vector("a call that is shown otherwise", answer(available("a", {"x": 1}, dynamic=True, title="F"), end=finish("tool-calls")), calls=(Call("f", '{"x":1}', id="a"),), stop="tool_calls", losses={"openai-chat": {"metadata": 1}, "ai-sdk": {}}),
    vector(
        "sources, files and data", answer(text("Hi"), {"type": "source-url", "sourceId": "1", "url": "https://a.example"}, {"type": "file", "url": "data:image/png;base64,AA==", "mediaType": "image/png"}, {"type": "data-weather", "data": {"t": 9}}),
        text="Hi", losses={"openai-chat": {"citation": 1, "metadata": 1}, "anthropic": {"media_output": 1}, "ai-sdk": {}},
    ),
    vector("an error", sse(START, STEP, *text("Hi")[:2], {"type": "error", "errorText": "out of memory"}), text="Hi", stop=None, provider_error="out of memory"),
    vector("an error alone", sse(FAILED), stop=None, provider_error="gone"),
    vector("an aborted answer", sse(START, STEP, *text("Hi")[:2], {"type": "abort", "reason": "the user left"}, DONE), text="Hi", stop=None, provider_error="the user left"),
    vector("cut in a text", sse(START, STEP, *text("Hi")[:2]), text="Hi", stop=None),
    vector("the mark without an end", sse(START, STEP, *text("Hi"), STEP_END, DONE), text="Hi", stop=None),
    vector("cut behind a call", sse(START, STEP, call_start("a"), piece("a", "{}"), available("a", {})), calls=(Call("f", "{}", id="a"),), stop=None),
    vector("cut in a call", sse(START, STEP, call_start("a"), piece("a", '{"x"')), calls=(Call("f", '{"x"', "truncated", id="a"),), stop=None),
    vector("an end in an error", answer(text("Hi"), end=finish("error")), text="Hi", stop=None, provider_error="the provider gave the finish reason 'error'"),
    vector("more behind the end", HELLO + sse(*text("!", name="t9")), text="Hello", repairs={"after_end": 3}),
    vector("a call behind the end", HELLO + sse(call_start("a"), piece("a", "{}")), text="Hello", repairs={"after_end": 2}),
    vector("a delta of a part that never began", answer({"type": "text-delta", "id": "t0", "delta": "Hi"}), text="Hi", repairs={"block_unopened": 1}),
    vector("no type that anyone knows", sse(START, STEP, {"type": "text-end", "id": "t0"}, b"{oops}"), stop=None, repairs={"block_unopened": 1}, fault="BrokenFrame"),
]  # fmt: skip
