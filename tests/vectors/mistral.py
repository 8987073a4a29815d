"""Mistral streams, healthy and broken. Facts: dialects.md §1.6, §1.7, §6.3."""

from __future__ import annotations

from typing import Any

from streamkit.dialects.vocabulary.sealed_reasoning import seal
from tests.vectors.vector import Call, Vector, sse

HEAD = {"id": "c-7", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "m-1"}
DONE = b"[DONE]"
USAGE = {"prompt_tokens": 9, "total_tokens": 13, "completion_tokens": 4}


def chunk(delta: dict[str, Any], finish: str | None = None, index: int = 0, **fields: Any) -> dict[str, Any]:
    return {**HEAD, "choices": [{"index": index, "delta": delta, "finish_reason": finish}], **fields}


ROLE = chunk({"role": "assistant", "content": ""})


def said(content: Any) -> dict[str, Any]:
    return chunk({"content": content})


def text(content: str) -> dict[str, Any]:
    return {"type": "text", "text": content}


def thinking(*texts: str, **fields: Any) -> dict[str, Any]:
    return {"type": "thinking", "thinking": [text(content) for content in texts], **fields}


def call(id: str | None, name: str | None, arguments: Any, **fields: Any) -> dict[str, Any]:
    identity = {} if id is None else {"id": id}
    function = {"arguments": arguments} if name is None else {"name": name, "arguments": arguments}
    return {**identity, "function": function, **fields}


def calls(*entries: dict[str, Any]) -> dict[str, Any]:
    return chunk({"tool_calls": list(entries)})


def finish(reason: str | None = "stop", **fields: Any) -> dict[str, Any]:
    return chunk({"content": ""}, reason, usage=USAGE, **fields)


def vector(name: str, *payloads: Any, **expected: Any) -> Vector:
    body = payloads[0] if len(payloads) == 1 and isinstance(payloads[0], bytes) else sse(*payloads)
    return Vector(name=name, dialect="mistral", body=body, **expected)


def whole(name: str, *payloads: Any, reason: str | None = "stop", **expected: Any) -> Vector:
    return vector(name, ROLE, *payloads, finish(reason), DONE, **expected)


A, B = Call("f", '{"x":1}', id="aaaaaaaa1"), Call("g", '{"y":2}', id="bbbbbbbb2")
OTHERS = ("openai-chat", "anthropic", "ollama")

HEALTHY = [
    whole("text", said("Hel"), said("lo"), text="Hello", losses={"mistral": {}, "anthropic": {}}),
    vector("text with CRLF and padding", sse(ROLE, {**said("Hi"), "p": "abc"}, {**finish(), "p": "abcdef"}, DONE).replace(b"\n", b"\r\n"), text="Hi", losses={"openai-chat": {}}),
    whole("content as a list", said([text("one "), text("two")]), text="one two", losses={"mistral": {}}),
    whole("thinking, then text", said([thinking("h", "m")]), said([thinking("!"), text("H")]), said("i"), text="Hi", reasoning="hm!", losses={"mistral": {}}),
    whole("thinking that is signed and closed", said([thinking("one")]), said([thinking(signature="c2ln", closed=True)]), said([thinking("two", signature="c2ln"), text("Hi")]), text="Hi", reasoning="onetwo", losses={"mistral": {}, "ollama": {"reasoning_signature": 2, "block_boundary": 1}}),
    whole(
        "opaque reasoning of other vendors", said([thinking("hm", signature=seal("reasoning", "anthropic", "c2ln")), thinking(signature=seal("opaque", "anthropic", "eHg=")), text("Hi"), thinking(signature=seal("text", "google", "dHh0"))]),
        said([thinking(signature=seal("call", "google", "Y2Fs"))]), calls(call("aaaaaaaa1", "f", '{"x":1}')), reason="tool_calls",
        text="Hi", reasoning="hm", calls=(A,), stop="tool_calls", losses={"mistral": {}, "ollama": {"reasoning_signature": 3, "reasoning_opaque": 1}},
    ),
    whole("a signature of a part without text", said([thinking(signature=seal("part", "google", "cHJ0"))]), calls(call("aaaaaaaa1", "f", '{"x":1}')), reason="tool_calls", calls=(A,), stop="tool_calls", losses={"mistral": {}}),
    whole("a call", calls(call("aaaaaaaa1", "f", '{"x":1}', index=0)), reason="tool_calls", calls=(A,), stop="tool_calls", losses={"mistral": {}, "openai-chat": {}}),
    whole("two calls without an index in one chunk", calls(call("aaaaaaaa1", "f", '{"x":1}'), call("bbbbbbbb2", "g", '{"y":2}')), reason="tool_calls", calls=(A, B), stop="tool_calls", losses={"mistral": {}}),
    whole("two calls at index 0", calls(call("aaaaaaaa1", "f", '{"x":1}', index=0)), calls(call("bbbbbbbb2", "g", '{"y":2}', index=0)), reason="tool_calls", calls=(A, B), stop="tool_calls"),
    whole("two calls to one function", calls(call("aaaaaaaa1", "f", "{}"), call("bbbbbbbb2", "f", "{}")), reason="tool_calls", calls=(Call("f", "{}"), Call("f", "{}")), stop="tool_calls"),
    vector("arguments as an object", sse(ROLE, calls(call("aaaaaaaa1", "f", {"x": "?"}), call("bbbbbbbb2", "g", {})), finish("tool_calls"), DONE).replace(b'"?"', b"1.0"), calls=(Call("f", '{"x":1.0}'), Call("g", "{}")), stop="tool_calls"),
    whole("a call without arguments", calls(call("aaaaaaaa1", "f", "")), reason="tool_calls", calls=(Call("f", "", "empty"),), stop="tool_calls"),
    whole("a call with a field of its own", calls(call("aaaaaaaa1", "f", '{"x":1}', flavour="x")), reason="tool_calls", calls=(A,), stop="tool_calls", losses={"mistral": {}, "openai-chat": {"metadata": 1}}),
    whole("arguments that are no object", calls(call("aaaaaaaa1", "f", "[1]"), call("bbbbbbbb2", "g", '{"y" 2}')), reason="tool_calls", calls=(Call("f", "[1]", "not_an_object"), Call("g", '{"y" 2}', "malformed")), stop="tool_calls", losses={"mistral": {}, "ollama": {"arguments_wrapped": 2}}),
    whole(
        "other parts", said([text("Hi"), {"type": "reference", "reference_ids": [1]}, {"type": "image_url", "image_url": "https://x/y.png"}, {"type": "thinking", "thinking": [{"type": "tool_reference", "tool": "t", "title": "x"}], "mood": 1}]), text="Hi",
        losses={"mistral": {}, "openai-chat": {"citation": 2, "media_output": 0, "metadata": 1}, "anthropic": {"citation": 2, "media_output": 1, "metadata": 1}, "ollama": {"citation": 2, "media_output": 1, "metadata": 1}},
    ),
    vector("two choices", ROLE, chunk({"role": "assistant", "content": "Ho"}, index=1), said("Hi"), chunk({}, "length", 1), finish(), DONE, text="Hi", losses={"mistral": {}, "anthropic": {"extra_choice": 1}}),
    whole("the model's length", said("Hi"), reason="model_length", text="Hi", stop="context_full", losses={"mistral": {}, "openai-chat": {"stop_reason": 1}}),
    vector("no [DONE]", ROLE, said("Hi"), finish(), text="Hi"),
]  # fmt: skip

REPAIRED = [
    whole("fragments", calls(call("aaaaaaaa1", "f", '{"x"', index=0)), calls(call(None, None, ":1}", index=0)), calls(call("bbbbbbbb2", "g", '{"y"', index=1)), calls(call(None, None, ":2}", index=1)), reason="tool_calls", calls=(A, B), stop="tool_calls"),
    whole("fragments that repeat id and name", calls(call("aaaaaaaa1", "f", '{"x"')), calls(call("aaaaaaaa1", "f", ":1}")), reason="tool_calls", calls=(A,), stop="tool_calls", repairs={"id_repeated": 1, "name_repeated": 1}),
    whole("fragments of two calls at index 0", calls(call("aaaaaaaa1", "f", '{"x"')), calls(call(None, None, ":1}")), calls(call("bbbbbbbb2", "g", '{"y":2}')), reason="tool_calls", calls=(A, B), stop="tool_calls"),
    whole("the client's word for no id", calls(call("null", "f", '{"x":1}')), reason="tool_calls", calls=(Call("f", '{"x":1}'),), stop="tool_calls", repairs={"identity_blank": 1, "id_missing": 1}),
    whole("two whole calls without an id", calls(call(None, "f", '{"x":1}'), call(None, "g", '{"y":2}')), reason="tool_calls", calls=(Call("f", '{"x":1}'), Call("g", '{"y":2}')), stop="tool_calls", repairs={"id_missing": 2, "index_reused": 1}),
    whole("one id for two calls", calls(call("aaaaaaaa1", "f", '{"x":1}', index=0), call("aaaaaaaa1", "g", '{"y":2}', index=1)), reason="tool_calls", calls=(A, Call("g", '{"y":2}')), stop="tool_calls", repairs={"id_duplicate": 1}),
    whole("content that is no list", said({"text": "x"}), said([5, text("Hi"), thinking("hm"), {"type": "thinking", "thinking": ["x"]}]), text="Hi", reasoning="hmx", repairs={"field_invalid": 2, "list_missing": 1, "object_missing": 1}),
    whole("stop with calls", calls(call("aaaaaaaa1", "f", '{"x":1}')), calls=(A,), stop="tool_calls", repairs={"stop_with_calls": 1}),
    vector("no reason but [DONE] and a whole call", ROLE, calls(call("aaaaaaaa1", "f", '{"x":1}')), DONE, calls=(A,), stop="tool_calls", repairs={"finish_derived": 1}),
    vector("an error as text", ROLE, said("Hi"), {"error": "gone"}, text="Hi", stop=None, repairs={"error_shape": 1}, provider_error="gone"),
    vector("an error that says nothing", ROLE, said("Hi"), {"detail": []}, text="Hi", stop=None, repairs={"error_shape": 1}, provider_error='an error without a message: {"detail":[]}'),
    vector("an error without the word", ROLE, said("Hi"), {"detail": "gone"}, text="Hi", stop=None, repairs={"error_shape": 1}, provider_error="gone"),
]  # fmt: skip

BROKEN = [
    vector("text that is cut", sse(ROLE, said("Hi"), said("there"))[:-20], text="Hi", stop=None),
    vector("a call that is cut", ROLE, calls(call("aaaaaaaa1", "f", '{"x":1}')), calls=(Call("f", '{"x":1}', "truncated"),), stop=None, losses={"mistral": {"call_withheld": 1}}),
    whole("arguments that break off", calls(call("aaaaaaaa1", "f", '{"x":')), reason="tool_calls", calls=(Call("f", '{"x":', "truncated"),), stop="length", repairs={"stop_conflict": 1}, losses={"mistral": {"call_withheld": 1}}),
    vector("no reason but [DONE]", ROLE, said("Hi"), DONE, text="Hi", stop=None),
    vector("an error", ROLE, said("Hi"), {"object": "error", "message": "busy", "type": "rate_limit_error", "param": None, "code": "1300"}, text="Hi", stop=None, provider_error="busy"),
    vector("an error in an envelope", ROLE, {"error": {"message": "busy"}}, stop=None, provider_error="busy"),
    vector("an error as a reason", ROLE, said("Hi"), finish("error"), DONE, text="Hi", stop=None, provider_error="the provider gave the finish reason 'error'"),
    vector("a cut signature", ROLE, said([thinking("hm", signature="c2ln")]), reasoning="hm", stop=None, losses={"mistral": {"reasoning_signature": 1}}),
    vector("a frame that is no JSON", ROLE, said("Hi"), b"{oops}", DONE, text="Hi", stop=None, fault="BrokenFrame"),
    vector("frames of another dialect", {"x": 1}, stop=None, fault="NotThisDialect"),
    vector("the older Completions API", {"object": "text_completion", "choices": [{"index": 0, "text": "Hi"}]}, DONE, stop=None, fault="NotThisDialect"),
    vector("an index of 2^63", ROLE, calls(call("aaaaaaaa1", "f", "{}", index=2**63)), stop=None, fault="IndexTooLarge"),
]  # fmt: skip

VECTORS = [*HEALTHY, *REPAIRED, *BROKEN]
