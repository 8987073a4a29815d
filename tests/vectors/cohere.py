"""Cohere streams, healthy and broken. Facts: dialects.md §6.2."""

from __future__ import annotations

from typing import Any

from tests.vectors.vector import Call, Vector, named

START = {"type": "message-start", "id": "m-7", "delta": {"message": {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}}}  # fmt: skip
USAGE = {"billed_units": {"input_tokens": 3.0}, "tokens": {"input_tokens": 9.0, "output_tokens": 4}, "cached_tokens": 5}


def event(type: str, index: int | None = None, **message: Any) -> dict[str, Any]:
    placed = {} if index is None else {"index": index}
    return {"type": type, **placed, **({"delta": {"message": message}} if message else {})}


def begin(index: int, kind: str = "text", text: str = "") -> dict[str, Any]:
    return event("content-start", index, content={"type": kind, kind: text})


def delta(index: int, text: str, kind: str = "text") -> dict[str, Any]:
    return event("content-delta", index, content={kind: text})


def end(index: int) -> dict[str, Any]:
    return event("content-end", index)


def block(index: int, text: str, kind: str = "text") -> tuple[Any, ...]:
    return begin(index, kind), delta(index, text, kind), end(index)


def plan(text: str) -> dict[str, Any]:
    return event("tool-plan-delta", tool_plan=text)


def call(index: int, id: str | None, name: str | None, arguments: Any = "", **fields: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return event("tool-call-start", index, tool_calls={"id": id, "type": "function", "function": function, **fields})


def piece(index: int, arguments: Any) -> dict[str, Any]:
    return event("tool-call-delta", index, tool_calls={"function": {"arguments": arguments}})


def over(index: int) -> dict[str, Any]:
    return event("tool-call-end", index)


def tool(index: int, id: str, name: str, *fragments: str) -> tuple[Any, ...]:
    return call(index, id, name), *(piece(index, fragment) for fragment in fragments), over(index)


def finish(reason: str | None = "COMPLETE", **fields: Any) -> dict[str, Any]:
    return {"type": "message-end", "delta": {"finish_reason": reason, **fields}}


def vector(name: str, *payloads: Any, **expected: Any) -> Vector:
    body = payloads[0] if len(payloads) == 1 and isinstance(payloads[0], bytes) else named(*payloads)
    return Vector(name=name, dialect="cohere", body=body, **expected)


def message(name: str, *payloads: Any, reason: str = "COMPLETE", **expected: Any) -> Vector:
    return vector(name, START, *payloads, finish(reason, usage=USAGE), **expected)


CITATION = {"start": 0, "end": 2, "text": "Hi", "sources": [{"type": "document", "id": "d"}]}
LOGPROBS = {"text": "Hi", "token_ids": [1], "logprobs": [-0.5]}
OTHERS = ("openai-chat", "anthropic", "ollama")

HEALTHY = [
    message("text", begin(0), delta(0, "Hel"), delta(0, "lo"), end(0), text="Hello", losses={"cohere": {}, "anthropic": {}}),
    vector("text with CRLF and [DONE]", (named(START, *block(0, "Hi"), finish()) + b"data: [DONE]\n\n").replace(b"\n", b"\r\n"), text="Hi"),
    message("thinking, then two texts", *block(0, "hm", "thinking"), *block(1, "one"), *block(2, "two"), text="onetwo", reasoning="hm", losses={"openai-chat": {"block_boundary": 1}, "cohere": {}}),
    message("text that begins with its block", begin(0, text="Hi"), end(0), text="Hi"),
    message(
        "a plan and two calls", plan("I "), plan("look."), *tool(0, "f_1", "f", '{"x"', ":1.0}"), *tool(1, "g_2", "g"), reason="TOOL_CALL",
        reasoning="I look.", calls=(Call("f", '{"x":1.0}', id="f_1"), Call("g", "", "empty", id="g_2")), stop="tool_calls",
        losses={"cohere": {}, "ollama": {"call_id": 2}},
    ),
    message("arguments that come with the start", call(0, "a", "f", '{"x":1}'), over(0), reason="TOOL_CALL", calls=(Call("f", '{"x":1}', id="a"),), stop="tool_calls"),
    message("a call with a field of its own", call(0, "a", "f", "{}", flavour="x"), over(0), reason="TOOL_CALL", calls=(Call("f", "{}"),), stop="tool_calls", losses={"cohere": {}, "openai-chat": {"metadata": 1}}),
    message("text between calls", *tool(0, "a", "f", "{}"), *block(0, "then"), *tool(1, "b", "g", "{}"), reason="TOOL_CALL", text="then", calls=(Call("f", "{}"), Call("g", "{}")), stop="tool_calls", losses={"cohere": {"block_order": 1}}),
    message(
        "citations, log probabilities and asides", begin(0), {**delta(0, "Hi"), "logprobs": LOGPROBS}, event("citation-start", 0, citations=CITATION), event("citation-end", 0),
        end(0), {"type": "debug", "prompt": "p"}, {"type": "novelty", "x": 1}, text="Hi",
        losses={"cohere": {}, **{d: {"logprobs": 1, "citation": 1, "metadata": 1, "unknown_event": 1} for d in OTHERS}},
    ),
    message("a kind of content of the future", event("content-start", 0, content={"type": "picture"}), event("content-delta", 0, content={"picture": "x"}), end(0), *block(1, "Hi"), text="Hi", losses={d: {"unknown_event": 3} for d in ("cohere", *OTHERS)}),
    vector("fields of the future", {**START, "model": "m", "message": "?", "delta": {"message": {"role": "assistant", "mood": "x"}}}, *block(0, "Hi"), finish(novelty=1), text="Hi", losses={"cohere": {}, "openai-chat": {"response_fields": 1, "metadata": 1}}),
    vector("stop sequence without usage", START, *block(0, "Hi"), finish("STOP_SEQUENCE"), text="Hi", stop="stop_sequence", losses={"cohere": {}, "openai-chat": {"stop_reason": 1}, "anthropic": {"usage_unknown": 1}}),
    message("length", *block(0, "Hi"), reason="MAX_TOKENS", text="Hi", stop="length", losses={"cohere": {}}),
    message("a reason of the future", *block(0, "Hi"), reason="BORED", text="Hi", stop="other", losses={"cohere": {"stop_reason": 1}}),
]  # fmt: skip

REPAIRED = [
    vector("no event lines", b"".join(b"data: " + part.partition(b"data: ")[2] + b"\n\n" for part in named(START, *block(0, "Hi"), finish()).split(b"\n\n")[:-1]), text="Hi", repairs={"event_name_missing": 5}),
    message("a delta without its block", delta(0, "Hi"), end(0), text="Hi", repairs={"block_unopened": 1}),
    message("thinking inside a text block", begin(0), delta(0, "Hi"), delta(0, "hm", "thinking"), end(0), text="Hi", reasoning="hm", repairs={"block_mismatch": 1}),
    message("a start that says nothing", event("content-start", 0), delta(0, "hm", "thinking"), end(0), *block(1, "Hi"), text="Hi", reasoning="hm"),
    message("deltas without an index", begin(0), event("content-delta", content={"text": "Hi"}), event("content-end"), call(0, "a", "f"), event("tool-call-delta", tool_calls={"function": {"arguments": "{}"}}), event("tool-call-end"), reason="TOOL_CALL", text="Hi", calls=(Call("f", "{}"),), stop="tool_calls", repairs={"index_missing": 4}),
    message("one index for two blocks", *block(0, "a"), *block(0, "b"), text="ab", repairs={"index_reused": 1}),
    message("a block and a call that are opened twice", begin(0), delta(0, "a"), *block(0, "b"), call(0, "a", "f", "{}"), *tool(0, "b", "g", "{}"), reason="TOOL_CALL", text="ab", calls=(Call("f", "{}"), Call("g", "{}")), stop="tool_calls", repairs={"block_reopened": 2}),
    message("a block and a call that are never closed", begin(0), delta(0, "Hi"), call(0, "a", "f", "{}"), reason="TOOL_CALL", text="Hi", calls=(Call("f", "{}"),), stop="tool_calls", repairs={"block_unclosed": 2}),
    message("one index for two calls", *tool(0, "a", "f", "{}"), *tool(0, "b", "g", "{}"), reason="TOOL_CALL", calls=(Call("f", "{}"), Call("g", "{}")), stop="tool_calls", repairs={"index_reused": 1}),
    message("calls that interleave", call(0, "a", "f"), call(1, "b", "g"), piece(1, '{"y":'), piece(0, '{"x":1}'), piece(1, "2}"), over(1), over(0), reason="TOOL_CALL", calls=(Call("f", '{"x":1}'), Call("g", '{"y":2}')), stop="tool_calls"),
    message("text for a call that had ended", *tool(0, "a", "f", "{}"), piece(0, '{"x":1}'), over(0), reason="TOOL_CALL", calls=(Call("f", "{}"),), stop="tool_calls", repairs={"block_unopened": 1, "arguments_late": 1}, withheld=('{"x":1}',)),
    vector("arguments as an object", named(START, call(0, "a", "f", {"x": "?"}), over(0), finish("TOOL_CALL")).replace(b'"?"', b"1.0"), calls=(Call("f", '{"x":1.0}'),), stop="tool_calls", repairs={"arguments_not_text": 1}),
    message("a fragment for no call", piece(0, "{}"), over(0), *block(0, "Hi"), text="Hi", calls=(Call("", "{}"),), stop=None, provider_error="the model called a tool without a name", repairs={"block_unopened": 1, "id_missing": 1, "call_nameless": 1}),
    message("a second start", START, *block(0, "Hi"), text="Hi", repairs={"response_restarted": 1}),
    vector("no start", *block(0, "Hi"), finish(), text="Hi"),
    message("complete with calls", *tool(0, "a", "f", "{}"), calls=(Call("f", "{}"),), stop="tool_calls", repairs={"stop_with_calls": 1}),
    vector("a block behind message-end that starts with its text", START, *block(0, "Hi"), finish(), begin(1, "text", text="!"), text="Hi", repairs={"after_end": 1}),
    vector("more after message-end", START, *block(0, "Hi"), finish(), *block(1, "!"), text="Hi", repairs={"after_end": 3}),
    message("content as text", begin(0), event("content-delta", 0, content="Hi"), end(0), text="Hi", repairs={"object_missing": 1}),
    message("content in a list of one", begin(0), event("content-delta", 0, content=[{"text": "Hi"}]), end(0), text="Hi", repairs={"list_unasked": 1}),
    message("an end for no block", *block(0, "Hi"), end(5), text="Hi", repairs={"block_unopened": 1}),
]  # fmt: skip

BROKEN = [
    vector("text that is cut", named(START, *block(0, "Hi"))[:-9], text="Hi", stop=None),
    vector("[DONE] without message-end", named(START, *block(0, "Hi")) + b"data: [DONE]\n\n", text="Hi", stop=None, repairs={"foreign_terminator": 1}),
    vector("a call that is cut", START, *tool(0, "a", "f", "{}")[:-1], calls=(Call("f", "{}", "truncated"),), stop=None, losses={"ollama": {"call_withheld": 1}, "cohere": {}}),
    vector("a call that ended before the cut", START, *tool(0, "a", "f", '{"x":1}'), calls=(Call("f", '{"x":1}'),), stop=None),
    vector("two open calls that are cut", START, call(0, "a", "f", '{"x":'), call(1, "b", "g", '{"y":'), calls=(Call("f", '{"x":', "truncated"), Call("g", '{"y":', "truncated")), stop=None, losses={"cohere": {"cut_call": 1}}),
    vector("message-end without a reason", START, *block(0, "Hi"), finish(None), text="Hi", stop=None),
    vector("an error", START, *block(0, "Hi"), finish("ERROR", error="busy"), text="Hi", stop=None, provider_error="busy"),
    vector("an error with a reason of success", START, *block(0, "Hi"), finish("COMPLETE", error="busy"), text="Hi", stop=None, provider_error="busy"),
    vector("a timeout inside a block", START, begin(0), delta(0, "Hi"), finish("TIMEOUT"), text="Hi", stop=None, provider_error="the provider gave the finish reason 'TIMEOUT'"),
    vector("an error body in the stream", named(START, *block(0, "Hi")) + b'{"id":"e","message":"gone"}\n', text="Hi", stop=None, repairs={"sse_bare_json": 1, "error_shape": 1}, provider_error="gone"),
    vector("an error that is an object", START, finish("ERROR", error={"message": "gone"}), stop=None, repairs={"error_shape": 1}, provider_error="gone"),
    vector("a frame that is no JSON", named(START, *block(0, "Hi")) + b"event: message-end\ndata: {oops}\n\n", text="Hi", stop=None, fault="BrokenFrame"),
    vector("frames of another dialect", b'data: {"x":1}\n\n', stop=None, fault="NotThisDialect"),
    vector("an index of 2^63", START, {**begin(0), "index": 2**63}, stop=None, fault="IndexTooLarge"),
]  # fmt: skip

VECTORS = [*HEALTHY, *REPAIRED, *BROKEN]
