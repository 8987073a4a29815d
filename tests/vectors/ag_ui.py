"""AG-UI streams, healthy and broken. Facts: ui-protocols.md §2."""

from __future__ import annotations

from typing import Any

from streamkit.dialects.vocabulary.sealed_reasoning import seal
from tests.vectors.vector import Call, Vector, sse

IDS = {"threadId": "t-1", "runId": "r-7"}
START = {"type": "RUN_STARTED", **IDS}
USAGE = [
    {"model": "m", "inputTokens": 9, "outputTokens": 4, "totalTokens": 13, "reasoningTokens": 1, "cachedInputTokens": 5}
]


#: What RUN_STARTED may repeat: the request.
INPUT = {**IDS, "state": {}, "messages": [], "tools": [], "context": [], "forwardedProps": {}}


def event(type: str, id: str | None = None, **members: Any) -> dict[str, Any]:
    name = "toolCallId" if type.startswith("TOOL_") else "messageId"
    return {"type": type, **({} if id is None else {name: id}), **members}


def begin(id: str, kind: str = "TEXT", **members: Any) -> dict[str, Any]:
    return event(f"{kind}_MESSAGE_START", id, role="assistant" if kind == "TEXT" else "reasoning", **members)


def delta(id: str | None, text: Any, kind: str = "TEXT") -> dict[str, Any]:
    return event(f"{kind}_MESSAGE_CONTENT", id, delta=text)


def end(id: str, kind: str = "TEXT") -> dict[str, Any]:
    return event(f"{kind}_MESSAGE_END", id)


def text(id: str, *pieces: str) -> tuple[Any, ...]:
    return begin(id), *(delta(id, piece) for piece in pieces), end(id)


def thinking(id: str, *pieces: str, signed: str | None = None) -> tuple[Any, ...]:
    said = [delta(id, piece, "REASONING") for piece in pieces]
    value = [] if signed is None else [encrypted(id, signed)]
    message = begin(id, "REASONING"), *said, end(id, "REASONING")
    return event("REASONING_START", id), *message, *value, event("REASONING_END", id)


def encrypted(entity: str, value: str, subtype: str = "message") -> dict[str, Any]:
    return event("REASONING_ENCRYPTED_VALUE", subtype=subtype, entityId=entity, encryptedValue=value)


def call(id: str | None, name: str | None, **members: Any) -> dict[str, Any]:
    return event("TOOL_CALL_START", id, toolCallName=name, **members)


def piece(id: str | None, arguments: Any) -> dict[str, Any]:
    return event("TOOL_CALL_ARGS", id, delta=arguments)


def over(id: str) -> dict[str, Any]:
    return event("TOOL_CALL_END", id)


def tool(id: str, name: str, *fragments: str, **members: Any) -> tuple[Any, ...]:
    return call(id, name, **members), *(piece(id, fragment) for fragment in fragments), over(id)


def result(id: str, content: str = "ok", message: str = "m-r") -> dict[str, Any]:
    return event("TOOL_CALL_RESULT", id, messageId=message, role="tool", content=content)


def finish(reason: str | None = None, **members: Any) -> dict[str, Any]:
    metadata = {} if reason is None else {"metadata": {"finishReason": reason}}
    return {"type": "RUN_FINISHED", **IDS, **metadata, **members}


def failed(message: Any = "busy", **members: Any) -> dict[str, Any]:
    return {"type": "RUN_ERROR", "message": message, **members}


def vector(name: str, *payloads: Any, **expected: Any) -> Vector:
    body = payloads[0] if len(payloads) == 1 and isinstance(payloads[0], bytes) else sse(*payloads)
    return Vector(name=name, dialect="ag-ui", body=body, **expected)


def run(name: str, *payloads: Any, reason: str | None = None, **expected: Any) -> Vector:
    return vector(name, START, *payloads, finish(reason, usage=USAGE), **expected)


NOT_RUN = "streamkit_not_run_1"
SUBAGENT = (
    {"type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "sub"},
    {"type": "SUBAGENT_FINISHED", "subagentRunId": "s"},
)

HEALTHY = [
    run("text", *text("m-1", "Hel", "lo"), text="Hello", losses={"ag-ui": {}, "anthropic": {}}),
    vector("an empty run", START, finish()),
    vector("members of the start", {**START, "parentRunId": "r-6", "input": INPUT, "timestamp": 1}, *text("m-1", "Hi"), finish(), text="Hi", losses={"ag-ui": {}, "ollama": {"response_fields": 1}}),
    run("thinking, then two texts", *thinking("m-1", "h", "m"), *text("m-2", "one"), *text("m-3", "two"), text="onetwo", reasoning="hm", losses={"openai-chat": {"block_boundary": 1}, "ag-ui": {}}),
    run("a message that goes on", *text("m-1", "one"), *thinking("m-2", "hm"), *text("m-1", "two"), text="onetwo", reasoning="hm", losses={"ag-ui": {}}),
    run("messages side by side", begin("m-1"), begin("m-2"), delta("m-1", "a"), delta("m-2", "b"), end("m-1"), end("m-2"), text="ab"),
    run("calls", *text("m-1", "Hi"), *tool("a", "f", '{"x":', "1.0}", parentMessageId="m-1"), *tool("b", "g", "{}"), text="Hi", calls=(Call("f", '{"x":1.0}', id="a"), Call("g", "{}", id="b")), stop="tool_calls", losses={"ag-ui": {}}),
    run("calls side by side", call("a", "f"), call("b", "g"), piece("b", '{"y":'), piece("a", '{"x":1}'), piece("b", "2}"), over("b"), over("a"), calls=(Call("f", '{"x":1}'), Call("g", '{"y":2}')), stop="tool_calls"),
    run("a call with a reason", *tool("a", "f", "{}"), reason="tool_calls", calls=(Call("f", "{}"),), stop="tool_calls"),
    run("a call without arguments", *tool("a", "f"), calls=(Call("f", "", "empty"),), stop="tool_calls", losses={"ag-ui": {}}),
    run("a call that nobody ran", call("a", "f"), piece("a", '{"x":1,}'), result("a", "not run", NOT_RUN), over("a"), calls=(Call("f", '{"x":1,}', "malformed"),), stop="tool_calls", losses={"ag-ui": {}, "ollama": {"arguments_wrapped": 1}}),
    run("a call that the agent ran", *tool("a", "f", '{"x":1}', parentMessageId="m-1"), encrypted("a", "blob", "tool-call"), result("a"), *text("m-2", "Hi"), text="Hi", losses={"ag-ui": {}, "anthropic": {"server_tool": 1}}),
    run("a call that the agent ran, and one that it did not", *tool("a", "f"), *tool("b", "g", "{}"), result("a"), calls=(Call("g", "{}", id="b"),), stop="tool_calls", losses={"ollama": {"server_tool": 1}}),
    run("a result of a call of the history", result("z"), *text("m-1", "Hi"), text="Hi", losses={"ag-ui": {"server_tool": 1}}),
    run("signed thinking and an opaque thought", *thinking("m-1", "hm", signed=seal("reasoning", "anthropic", "sig")), *thinking("m-2", signed=seal("opaque", "anthropic", "red")), *text("m-3", "Hi"), text="Hi", reasoning="hm", losses={"anthropic": {}, "ag-ui": {}, "ollama": {"reasoning_signature": 1, "reasoning_opaque": 1}}),
    run("thinking that an agent signed", *thinking("m-1", "hm", signed="blob"), *text("m-2", "Hi"), text="Hi", reasoning="hm", losses={"ag-ui": {}, "ollama": {"reasoning_signature": 1}}),
    run("a signed text and a signed call", *text("m-1", "Hi"), encrypted("m-1", seal("text", "google", "s1")), call("a", "f", parentMessageId="m-1"), encrypted("a", seal("call", "google", "s2"), "tool-call"), piece("a", "{}"), over("a"), text="Hi", calls=(Call("f", "{}"),), stop="tool_calls", losses={"gemini": {}, "ag-ui": {}}),
    run("a value of a message of the history", encrypted("m-0", "blob"), *text("m-1", "Hi"), text="Hi", losses={"ag-ui": {"metadata": 1}}),
    run("a stop sequence", *text("m-1", "Hi"), reason="stop_sequence", text="Hi", stop="stop_sequence"),
    vector("which stop sequence", START, *text("m-1", "Hi"), finish(metadata={"finishReason": "stop_sequence", "stopSequence": "##", "mine": {"a": 1}}), text="Hi", stop="stop_sequence", losses={"ag-ui": {}, "openai-chat": {"stop_sequence": 1, "metadata": 1}}),
    run("a length", *text("m-1", "Hi"), reason="length", text="Hi", stop="length"),
    vector("a success and a result", START, *text("m-1", "Hi"), finish(outcome={"type": "success"}, result={"a": 1}), text="Hi", losses={"ag-ui": {}, "cohere": {"metadata": 1}}),
    vector("an interrupt about a call", START, *text("m-1", "Hi"), *tool("a", "f", '{"x":1.0}'), finish(outcome={"type": "interrupt", "interrupts": [{"id": "i", "reason": "tool_call", "toolCallId": "a"}]}), text="Hi", stop="tool_calls", losses={"ag-ui": {}, "openai-responses": {}, "anthropic": {"client_tool": 1, "metadata": 1}}),
    vector("an interrupt", START, *text("m-1", "Hi"), finish(outcome={"type": "interrupt", "interrupts": [{"id": "i", "reason": "ask"}]}), text="Hi", stop="tool_calls", losses={"ag-ui": {}, "anthropic": {"client_tool": 1}}),
    vector("usage of two models", START, *text("m-1", "Hi"), finish(usage=[*USAGE, {"model": "n", "inputTokens": 1, "cacheWriteInputTokens": 1}]), text="Hi", losses={"ag-ui": {}}),
    vector("text in chunks", START, event("TEXT_MESSAGE_CHUNK", "m-1", role="assistant", delta="Hel"), event("TEXT_MESSAGE_CHUNK", delta="lo"), event("TEXT_MESSAGE_CHUNK", "m-2", delta="!"), finish(), text="Hello!"),
    vector("thinking and calls in chunks", START, event("REASONING_MESSAGE_CHUNK", "m-1", delta="hm"), event("TOOL_CALL_CHUNK", "a", toolCallName="f", delta='{"x":'), event("RAW", event={}), event("TOOL_CALL_CHUNK", delta="1}"), event("TOOL_CALL_CHUNK", "b", toolCallName="g", delta="{}"), finish(), reasoning="hm", calls=(Call("f", '{"x":1}'), Call("g", "{}")), stop="tool_calls", losses={"mistral": {"metadata": 1}}),
    vector("thinking of version 0", START, event("THINKING_START", title="t"), event("THINKING_TEXT_MESSAGE_START"), event("THINKING_TEXT_MESSAGE_CONTENT", delta="hm"), event("THINKING_TEXT_MESSAGE_END"), event("THINKING_END"), *text("m-1", "Hi"), finish(), reasoning="hm", text="Hi", losses={"anthropic": {"unknown_event": 1}}),
    run("the state of an application", event("STEP_STARTED", stepName="s"), event("STATE_SNAPSHOT", snapshot={"a": 1}), *text("m-1", "Hi"), event("STATE_DELTA", delta=[]), event("CUSTOM", name="n", value=1), event("STEP_FINISHED", stepName="s"), *SUBAGENT, text="Hi", losses={"ag-ui": {"metadata": 4}, "bedrock": {"metadata": 7}}),
    run("a message of the user", begin("m-1") | {"role": "user"}, delta("m-1", "Yo"), end("m-1"), *text("m-2", "Hi"), text="Hi", losses={"ag-ui": {"metadata": 3}}),
    vector("comments, names and CRLF", b": hi\r\n\r\nevent: a\r\n" + sse(START, *text("m-1", "Hi"), finish()).replace(b"\n", b"\r\n"), text="Hi"),
]  # fmt: skip

REPAIRED = [
    vector("no start", *text("m-1", "Hi"), finish(), text="Hi"),
    run("a second start", START, *text("m-1", "Hi"), text="Hi", repairs={"response_restarted": 1}),
    run("a delta for no message", delta("m-1", "Hi"), end("m-1"), text="Hi", repairs={"block_unopened": 1}),
    run("a delta behind the end of its message", *text("m-1", "Hi"), delta("m-1", "!"), end("m-1"), text="Hi!", repairs={"block_unopened": 1}),
    run("a delta without an id", begin("m-1"), delta(None, "Hi"), end("m-1"), text="Hi", repairs={"index_missing": 1}),
    run("a message that is started twice", begin("m-1"), *text("m-1", "Hi"), text="Hi", repairs={"block_reopened": 1}),
    run("an end for no message", *text("m-1", "Hi"), end("m-2"), text="Hi", repairs={"block_unopened": 1}),
    run("a message without its end", begin("m-1"), delta("m-1", "Hi"), text="Hi", repairs={"block_unclosed": 1}),
    run("a call without its end", call("a", "f"), piece("a", "{}"), calls=(Call("f", "{}"),), stop="tool_calls", repairs={"block_unclosed": 1}),
    run("a call that is started twice", call("a", "f"), *tool("a", "f", "{}"), calls=(Call("f", "{}"),), stop="tool_calls", repairs={"block_reopened": 1}),
    run("an end for no call", *text("m-1", "Hi"), over("a"), text="Hi", repairs={"block_unopened": 1}),
    run("arguments as an object", call("a", "f"), piece("a", {"x": 1}), over("a"), calls=(Call("f", '{"x":1}'),), stop="tool_calls", repairs={"arguments_not_text": 1}),
    run("arguments behind the result", *tool("a", "f", "{}"), result("a"), piece("a", '{"x":1}'), *text("m-1", "Hi"), text="Hi", repairs={"arguments_late": 1}, withheld=('{"x":1}',)),
    run("a call without an id", call(None, "f"), piece(None, "{}"), event("TOOL_CALL_END"), calls=(Call("f", "{}"),), stop="tool_calls", repairs={"index_missing": 3, "id_missing": 1}),
    run("a reason of another dialect", *text("m-1", "Hi"), reason="end_turn", text="Hi", repairs={"stop_reason_foreign": 1}),
    run("text as an object", begin("m-1"), delta("m-1", {"text": "Hi"}), end("m-1"), text="Hi", repairs={"text_as_object": 1}),
    vector("counts that are none", START, *text("m-1", "Hi"), finish(usage=[{"inputTokens": 9.5, "outputTokens": -1, "totalTokens": 13.0}]), text="Hi", repairs={"field_invalid": 1}, losses={"ag-ui": {"unknown_event": 1}}),
    vector("usage that is no list", START, *text("m-1", "Hi"), finish(usage=USAGE[0]), text="Hi", repairs={"list_missing": 1}),
    vector("a call behind the end", START, *text("m-1", "Hi"), finish(), {"type": "TOOL_CALL_START", "toolCallId": "a", "toolCallName": "f"}, {"type": "TOOL_CALL_ARGS", "toolCallId": "a", "delta": "{}"}, text="Hi", repairs={"after_end": 2}),
    vector("more behind the end", START, *text("m-1", "Hi"), finish(), *text("m-2", "!"), text="Hi", repairs={"after_end": 3}),
    vector("[DONE]", START, *text("m-1", "Hi"), finish(), b"[DONE]", text="Hi", repairs={"foreign_terminator": 1}),
    run("an event that nobody knows", *text("m-1", "Hi"), event("SOMETHING", a=1), text="Hi", losses={"ag-ui": {"unknown_event": 1}}),
]  # fmt: skip

BROKEN = [
    vector("text that is cut", START, *text("m-1", "Hi"), text="Hi", stop=None),
    vector("text that is cut inside a frame", sse(START, *text("m-1", "Hi"))[:-9], text="Hi", stop=None),
    vector("[DONE] without an end", START, *text("m-1", "Hi"), b"[DONE]", text="Hi", stop=None, repairs={"foreign_terminator": 1}),
    vector("a call that is cut", START, call("a", "f"), piece("a", '{"x":'), calls=(Call("f", '{"x":', "truncated"),), stop=None, losses={"ollama": {"call_withheld": 1}}),
    vector("a call that ended before the cut", START, *tool("a", "f", '{"x":1}'), calls=(Call("f", '{"x":1}'),), stop=None),
    vector("a call in chunks that is cut", START, event("TOOL_CALL_CHUNK", "a", toolCallName="f", delta="{}"), calls=(Call("f", "{}", "truncated"),), stop=None),
    vector("two calls that are cut", START, call("a", "f"), call("b", "g"), piece("a", '{"x":'), piece("b", '{"y":'), calls=(Call("f", '{"x":', "truncated"), Call("g", '{"y":', "truncated")), stop=None, losses={"cohere": {"cut_call": 1}}),
    vector("an error", START, *text("m-1", "Hi"), failed(code="rate_limit", usage=USAGE), text="Hi", stop=None, provider_error="busy"),
    vector("an error alone", failed(), stop=None, provider_error="busy"),
    vector("an error and a call", START, *tool("a", "f", "{}"), failed(), calls=(Call("f", "{}"),), stop=None, provider_error="busy", repairs={"calls_unanswered": 1}),
    vector("an error and a call that nobody ran", START, call("a", "f"), piece("a", '{"x":'), result("a", "not run", NOT_RUN), failed(code="abort"), calls=(Call("f", '{"x":', "truncated"),), stop=None, provider_error="busy"),
    vector("an error behind the end", START, *text("m-1", "Hi"), finish(), failed(), text="Hi", stop=None, provider_error="busy", repairs={"after_end": 1}),
    vector("text behind an error", START, failed(), *text("m-1", "Hi"), stop=None, provider_error="busy", repairs={"after_end": 3}),
    vector("an error of a proxy", START, *text("m-1", "Hi"), {"error": {"message": "gone"}}, text="Hi", stop=None, provider_error="gone", repairs={"error_shape": 1}),
    vector("a run that was cancelled", START, *text("m-1", "Hi"), finish(outcome={"type": "cancelled"}), text="Hi", stop=None),
    vector("a run that failed in a word", START, *text("m-1", "Hi"), finish("error"), text="Hi", stop=None, provider_error="the provider gave the finish reason 'error'", repairs={"stop_reason_foreign": 1}),
    vector("another run", START, *text("m-1", "Hi"), {**START, "runId": "r-8"}, text="Hi", stop=None, fault="SecondResponse"),
    vector("a frame that is no JSON", START, *text("m-1", "Hi"), b"{oops}", text="Hi", stop=None, fault="BrokenFrame"),
    vector("frames of another dialect", b'data: {"x":1}\n\n', stop=None, fault="NotThisDialect"),
]  # fmt: skip

VECTORS = [*HEALTHY, *REPAIRED, *BROKEN]
