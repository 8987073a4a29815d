"""Gemini Interactions streams, healthy and broken. Facts: dialects.md §5.5, ui-protocols.md §4."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from streamkit.dialects.vocabulary.sealed_reasoning import seal
from tests.vectors.vector import Call, Vector

ID = "v1_7"
USAGE = {
    "total_tokens": 13, "total_input_tokens": 9, "total_cached_tokens": 5, "total_output_tokens": 3, "total_thought_tokens": 1,
    "total_tool_use_tokens": 0, "input_tokens_by_modality": [{"modality": "text", "tokens": 9}],
}  # fmt: skip


def event(name: str, **members: Any) -> dict[str, Any]:
    return {"event_type": name, **members}


def interaction(status: str, **members: Any) -> dict[str, Any]:
    return {"id": ID, "status": status, "object": "interaction", "model": "m-1", **members}


START = event("interaction.created", interaction=interaction("in_progress"))
GOES_ON = event("interaction.status_update", interaction_id=ID, status="in_progress")


def begin(index: Any, kind: Any, **members: Any) -> dict[str, Any]:
    return event("step.start", index=index, step={"type": kind, **members})


def delta(index: Any, kind: str, **members: Any) -> dict[str, Any]:
    return event("step.delta", index=index, delta={"type": kind, **members})


def end(index: Any, **members: Any) -> dict[str, Any]:
    return event("step.stop", index=index, **members)


def said(index: int, *pieces: str) -> tuple[Any, ...]:
    return tuple(delta(index, "text", text=piece) for piece in pieces)


def text(index: int, *pieces: str) -> tuple[Any, ...]:
    return begin(index, "model_output"), *said(index, *pieces), end(index)


def summary(index: int, piece: str) -> dict[str, Any]:
    return delta(index, "thought_summary", content={"type": "text", "text": piece})


def signature(index: int, blob: Any) -> dict[str, Any]:
    return delta(index, "thought_signature", signature=blob)


def thinking(index: int, *pieces: str, signed: str | None = None) -> tuple[Any, ...]:
    proof = [] if signed is None else [signature(index, signed)]
    return begin(index, "thought"), *(summary(index, piece) for piece in pieces), *proof, end(index)


def call(index: int, id: Any, name: Any, arguments: Any = None, **members: Any) -> dict[str, Any]:
    return begin(index, "function_call", id=id, name=name, arguments={} if arguments is None else arguments, **members)


def piece(index: int, arguments: Any) -> dict[str, Any]:
    return delta(index, "arguments_delta", arguments=arguments)


def tool(index: int, id: str, name: str, *fragments: str, **members: Any) -> tuple[Any, ...]:
    return call(index, id, name, **members), *(piece(index, fragment) for fragment in fragments), end(index)


def finish(status: str = "completed", **members: Any) -> dict[str, Any]:
    return event("interaction.completed", interaction=interaction(status, usage=USAGE, **members))


def failed(message: Any = "busy", code: Any = "service_unavailable") -> dict[str, Any]:
    return event("error", error={"code": code, "message": message})


def named(*payloads: Any) -> bytes:
    """Each payload as an event named as its ``event_type``."""
    return b"".join(
        b"event: %b\ndata: %b\n\n" % (str(p["event_type"]).encode(), orjson.dumps(p))
        if isinstance(p, Mapping)
        else b"data: %b\n\n" % p
        for p in payloads
    )


def vector(name: str, *payloads: Any, **expected: Any) -> Vector:
    body = payloads[0] if len(payloads) == 1 and isinstance(payloads[0], bytes) else named(*payloads)
    return Vector(name=name, dialect="gemini-interactions", body=body, **expected)


def run(name: str, *payloads: Any, status: str = "completed", **expected: Any) -> Vector:
    return vector(name, START, GOES_ON, *payloads, finish(status), **expected)


ACTION = {"status": "requires_action", "stop": "tool_calls"}
IMAGE = {"mime_type": "image/png", "data": "iVBORw0KGgo="}
CITED = [{"type": "url_citation", "url": "https://a.example/", "title": "A", "start_index": 0, "end_index": 2}]
OWN = "gemini-interactions"

HEALTHY = [
    run("text", *text(0, "Hel", "lo"), text="Hello", losses={OWN: {}}),
    vector("an answer of nothing", START, finish()),
    run("thinking, then two texts", *thinking(0, "hm", signed="c2ln"), *text(1, "one"), *text(2, "two"), text="onetwo", reasoning="hm", losses={OWN: {}, "openai-chat": {"block_boundary": 1}}),
    run("thinking in pieces", *thinking(0, "h", "m"), *text(1, "Hi"), text="Hi", reasoning="hm", losses={OWN: {}}),
    run("calls", *thinking(0, signed="c2ln"), *tool(1, "a", "f", '{"x":', "1.0}", signature=""), *tool(2, "b", "g", "{}"), calls=(Call("f", '{"x":1.0}', id="a"), Call("g", "{}", id="b")), **ACTION, losses={OWN: {}}),
    run("text, then calls", *text(0, "Hi"), *tool(1, "a", "f", '{"x":1}'), text="Hi", calls=(Call("f", '{"x":1}', id="a"),), **ACTION, losses={OWN: {}}),
    run("a signed call", *tool(0, "a", "f", "{}", signature="c2ln"), calls=(Call("f", "{}"),), **ACTION, losses={OWN: {}, "gemini": {}}),
    run("a call that another vendor signed", *tool(0, "a", "f", "{}", signature=seal("call", "mistral", "s")), calls=(Call("f", "{}"),), **ACTION, losses={OWN: {}}),
    run("a call without arguments", *tool(0, "a", "f"), calls=(Call("f", "", "empty"),), **ACTION, losses={OWN: {}}),
    run("arguments that came whole with the start", call(0, "a", "f", {"x": 1}), end(0), calls=(Call("f", '{"x":1}'),), **ACTION, losses={OWN: {}}),
    run("a call with members of its own", *tool(0, "a", "f", "{}", caller="me"), calls=(Call("f", "{}"),), **ACTION, losses={OWN: {}, "mistral": {"metadata": 1}}),
    run("steps side by side", begin(0, "model_output"), call(1, "a", "f"), *said(0, "Hi"), piece(1, "{}"), end(0), end(1), text="Hi", calls=(Call("f", "{}"),), **ACTION),
    run("text and signature that came with the start", begin(0, "thought", summary=[{"type": "text", "text": "hm"}], signature="c2ln"), end(0), begin(1, "model_output", content=[{"type": "text", "text": "Hi"}]), end(1), text="Hi", reasoning="hm", losses={OWN: {}}),
    run("signed thinking and an opaque thought of another vendor", *thinking(0, "hm", signed=seal("reasoning", "anthropic", "sig")), *thinking(1, signed=seal("opaque", "anthropic", "red")), *text(2, "Hi"), text="Hi", reasoning="hm", losses={OWN: {}, "anthropic": {}, "ollama": {"reasoning_signature": 1, "reasoning_opaque": 1}}),
    run("a text that another vendor signed", *text(0, "Hi"), *thinking(1, signed=seal("text", "mistral", "s")), text="Hi", losses={OWN: {}}),
    run("an image that the model made", begin(0, "model_output"), *said(0, "Hi"), delta(0, "image", **IMAGE), end(0), text="Hi", losses={OWN: {}, "gemini": {}, "cohere": {"media_output": 1}}),
    run("a document and a film, at URIs", begin(0, "model_output"), delta(0, "document", uri="gs://b/d", mime_type="application/pdf"), delta(0, "video", uri="https://a.example/f", resolution="low"), end(0), losses={OWN: {}, "openai-chat": {"media_output": 2}}),
    run("an image in a thought", begin(0, "thought"), delta(0, "thought_summary", content={"type": "image", **IMAGE}), end(0), *text(1, "Hi"), text="Hi", losses={OWN: {}, "gemini": {"metadata": 1}}),
    run("citations", begin(0, "model_output"), *said(0, "Hi"), delta(0, "text_annotation_delta", annotations=CITED), end(0), text="Hi", losses={OWN: {}, "anthropic": {"citation": 0}}),
    run("a text with its citations", begin(0, "model_output", content=[{"type": "text", "text": "Hi", "annotations": CITED}]), end(0), text="Hi", losses={OWN: {}}),
    run("a search that Google ran", begin(0, "google_search_call", id="s", signature=""), delta(0, "google_search_call", arguments={"queries": ["q"]}), end(0), begin(1, "google_search_result", call_id="s"), delta(1, "google_search_result", result=[{"search_suggestions": "<b>"}]), end(1), *text(2, "Hi"), text="Hi", losses={OWN: {}, "anthropic": {"server_tool": 6}}),
    run("a step of the user", begin(0, "user_input", content=[{"type": "text", "text": "Yo"}]), end(0), *text(1, "Hi"), text="Hi", losses={OWN: {}, "cohere": {"metadata": 2}}),
    run("a step that nobody knows", begin(0, "novelty", a=1), delta(0, "novelty", b=2), end(0), *text(1, "Hi"), text="Hi", losses={OWN: {}, "bedrock": {"unknown_event": 3}}),
    vector("members of the interaction", event("interaction.created", interaction=interaction("in_progress", created="2026-05-15T18:52:03Z", service_tier="standard")), *text(0, "Hi"), finish(created="2026-05-15T18:52:03Z", updated="2026-05-15T18:52:09Z", service_tier="flex"), text="Hi", losses={OWN: {}, "openai-chat": {"response_fields": 1, "metadata": 3}}),
    vector("counts on the way", START, begin(0, "model_output"), event("step.delta", index=0, delta={"type": "text", "text": "Hi"}, metadata={"total_usage": {"total_tokens": 1}}), end(0, usage=USAGE), event("interaction.completed", interaction=interaction("completed")), text="Hi", losses={OWN: {}}),
    vector("a status that came before the end", START, *tool(0, "a", "f", "{}"), event("interaction.status_update", interaction_id=ID, status="requires_action"), event("interaction.completed", interaction={"id": ID}), calls=(Call("f", "{}"),), stop="tool_calls", losses={OWN: {}}),
    vector("all steps at the end", START, finish("requires_action", steps=[{"type": "thought", "signature": "c2ln"}, {"type": "model_output", "content": [{"type": "text", "text": "Hi"}]}, {"type": "function_call", "id": "a", "name": "f", "arguments": {"x": 1.0}}]), text="Hi", calls=(Call("f", '{"x":1.0}', id="a"),), stop="tool_calls", losses={OWN: {}}),
    vector("steps that the end says again", START, *text(0, "Hi"), finish(steps=[{"type": "model_output", "content": [{"type": "text", "text": "Hi"}]}]), text="Hi", losses={OWN: {}}),
    vector("an end that says it all", finish("requires_action", steps=[{"type": "function_call", "id": "a", "name": "f", "arguments": {}}]), calls=(Call("f", "", "empty"),), stop="tool_calls"),
    run("a length", *text(0, "Hi"), status="incomplete", text="Hi", stop="length", losses={OWN: {}}),
    run("a budget", *text(0, "Hi"), status="budget_exceeded", text="Hi", stop="length", losses={OWN: {}}),
    run("a pause", *text(0, "Hi"), status="requires_continuation", text="Hi", stop="pause", losses={OWN: {}, "ollama": {"stop_reason": 1}}),
    run("a status of the future", *text(0, "Hi"), status="bored", text="Hi", stop="other", losses={"openai-chat": {"stop_reason": 1}}),
    vector("comments, ids of events and CRLF", b": hi\r\n\r\n" + named(START, {**GOES_ON, "event_id": "e1"}, *text(0, "Hi"), finish()).replace(b"\n", b"\r\n"), text="Hi", losses={OWN: {}}),
]  # fmt: skip

REPAIRED = [
    vector("no start", *text(0, "Hi"), finish(), text="Hi"),
    run("a second start", START, *text(0, "Hi"), text="Hi", repairs={"response_restarted": 1}),
    vector("an event without its type", named(START, *text(0, "Hi")) + b'event: interaction.completed\ndata: {"interaction":{"id":"v1_7","status":"completed"}}\n\n', text="Hi", repairs={"event_type_missing": 1}),
    run("a delta without its step", *said(0, "Hi"), end(0), text="Hi", repairs={"block_unopened": 1}),
    run("a thought inside an output", begin(0, "model_output"), *said(0, "Hi"), summary(0, "hm"), end(0), text="Hi", reasoning="hm", repairs={"block_mismatch": 1}),
    run("a stop without its step", *text(0, "Hi"), end(5), text="Hi", repairs={"block_unopened": 1}),
    run("a step that is never stopped", begin(0, "model_output"), *said(0, "Hi"), text="Hi", repairs={"block_unclosed": 1}),
    run("a call that is never stopped", call(0, "a", "f"), piece(0, "{}"), calls=(Call("f", "{}"),), **ACTION, repairs={"block_unclosed": 1}),
    run("a step that is started twice", begin(0, "model_output"), *said(0, "a"), *text(0, "b"), text="ab", repairs={"block_reopened": 1}),
    run("one index for two calls", *tool(0, "a", "f", "{}"), *tool(0, "b", "g", "{}"), calls=(Call("f", "{}"), Call("g", "{}")), **ACTION, repairs={"index_reused": 1}),
    run("steps without an index", begin(None, "model_output"), delta(None, "text", text="Hi"), end(None), text="Hi", repairs={"index_missing": 3}),
    run("arguments as an object", call(0, "a", "f"), piece(0, {"x": 1}), end(0), calls=(Call("f", '{"x":1}'),), **ACTION, repairs={"arguments_not_text": 1}),
    run("arguments with the start as text", call(0, "a", "f", '{"x":1}'), end(0), calls=(Call("f", '{"x":1}'),), **ACTION, repairs={"arguments_not_object": 1}),
    run("arguments with the start and behind it", call(0, "a", "f", {"x": 1}), piece(0, '{"x":2}'), end(0), calls=(Call("f", '{"x":2}'),), **ACTION, repairs={"arguments_replaced": 1}),
    run("arguments for a call that had ended", *tool(0, "a", "f", "{}"), piece(0, '{"x":1}'), calls=(Call("f", "{}"),), **ACTION, repairs={"arguments_late": 1}, withheld=('{"x":1}',)),
    run("a call without an id", call(0, None, "f"), piece(0, "{}"), end(0), calls=(Call("f", "{}"),), **ACTION, repairs={"id_missing": 1}),
    run("completed, with calls", *tool(0, "a", "f", "{}"), calls=(Call("f", "{}"),), stop="tool_calls", repairs={"stop_with_calls": 1}),
    run("a reason of another dialect", *text(0, "Hi"), status="end_turn", text="Hi", repairs={"stop_reason_foreign": 1}),
    run("text as an object", begin(0, "model_output"), delta(0, "text", text={"text": "Hi"}), end(0), text="Hi", repairs={"text_as_object": 1}),
    run("a content that is text", begin(0, "model_output", content="Hi"), end(0), text="Hi", repairs={"object_missing": 1}),
    vector("counts that are none", START, *text(0, "Hi"), event("interaction.completed", interaction=interaction("completed", usage={"total_input_tokens": 9.5, "total_output_tokens": -1, "total_tokens": 13})), text="Hi", repairs={"field_invalid": 2}),
    vector("a call behind the end that starts with its arguments", START, *text(0, "Hi"), finish(), call(1, "a", "f", {"x": 1}), text="Hi", repairs={"after_end": 1}),
    vector("more behind the end", START, *text(0, "Hi"), finish(), *text(1, "!"), text="Hi", repairs={"after_end": 3}),
    vector("[DONE]", START, *text(0, "Hi"), finish(), b"[DONE]", text="Hi", repairs={"foreign_terminator": 1}),
    run("an event that nobody knows", *text(0, "Hi"), event("novelty", a=1), text="Hi", losses={OWN: {"unknown_event": 1}}),
    run("members that nobody knows", begin(0, "model_output", mine=1), delta(0, "text", text="Hi", mine=2), {**end(0), "step_usage": USAGE}, text="Hi", losses={OWN: {"unknown_event": 3}}),
]  # fmt: skip

BROKEN = [
    vector("text that is cut", START, *text(0, "Hi"), text="Hi", stop=None),
    vector("text that is cut inside a frame", named(START, *text(0, "Hi"))[:-9], text="Hi", stop=None),
    vector("[DONE] without an end", START, *text(0, "Hi"), b"[DONE]", text="Hi", stop=None, repairs={"foreign_terminator": 1}),
    vector("a call that is cut", START, call(0, "a", "f"), piece(0, '{"x":'), calls=(Call("f", '{"x":', "truncated"),), stop=None, losses={"ollama": {"call_withheld": 1}}),
    vector("a call that is cut, whose arguments came with its start", START, call(0, "a", "f", {"x": 1}), calls=(Call("f", '{"x":1}', "truncated"),), stop=None),
    vector("a call that ended before the cut", START, *tool(0, "a", "f", '{"x":1}'), calls=(Call("f", '{"x":1}'),), stop=None),
    vector("two calls that are cut", START, call(0, "a", "f"), call(1, "b", "g"), piece(0, '{"x":'), piece(1, '{"y":'), calls=(Call("f", '{"x":', "truncated"), Call("g", '{"y":', "truncated")), stop=None, losses={OWN: {"cut_call": 1}}),
    vector("a status without the end", START, *text(0, "Hi"), event("interaction.status_update", interaction_id=ID, status="completed"), text="Hi", stop=None),
    vector("an end that goes on", START, *text(0, "Hi"), finish("in_progress"), text="Hi", stop=None),
    vector("an error", START, *text(0, "Hi"), failed(), text="Hi", stop=None, provider_error="busy"),
    vector("an error alone", failed(), stop=None, provider_error="busy"),
    vector("an error and a call", START, *tool(0, "a", "f", "{}"), failed(), calls=(Call("f", "{}"),), stop=None, provider_error="busy"),
    vector("an error behind a start with all of a call's arguments", START, call(0, "a", "f", {"x": 1}), failed(), calls=(Call("f", '{"x":1}', "truncated"),), stop=None, provider_error="busy"),
    vector("a failed end behind a start with all of a call's arguments", START, call(0, "a", "f", {"x": 1}), finish("failed", errors=[{"code": "api_error", "message": "gone"}]), calls=(Call("f", '{"x":1}', "truncated"),), stop=None, provider_error="gone", repairs={"block_unclosed": 1}),
    vector("an error behind the end", START, *text(0, "Hi"), finish(), failed(), text="Hi", stop=None, provider_error="busy", repairs={"after_end": 1}),
    vector("text behind an error", START, failed(), *text(0, "Hi"), stop=None, provider_error="busy", repairs={"after_error": 1}),
    vector("an error of a proxy", START, *text(0, "Hi"), b'{"error":{"message":"gone"}}', text="Hi", stop=None, provider_error="gone", repairs={"error_shape": 1}),
    vector("an error raw in the stream", named(START, GOES_ON) + b'{"error":{"code":"prohibited_content","message":"blocked"}}\n', stop=None, provider_error="blocked", repairs={"sse_bare_json": 1, "error_shape": 1}),
    vector("an interaction that failed", START, *text(0, "Hi"), finish("failed", errors=[{"code": "api_error", "message": "gone"}]), text="Hi", stop=None, provider_error="gone"),
    vector("an output that failed", START, begin(0, "model_output", error={"code": 13, "message": "gone"}), end(0), finish("failed"), stop=None, provider_error="gone"),
    vector("an interaction that failed in a word", START, *text(0, "Hi"), finish("failed"), text="Hi", stop=None, provider_error="the provider gave the finish reason 'failed'"),
    vector("an interaction that was cancelled", START, *text(0, "Hi"), finish("cancelled"), text="Hi", stop=None, provider_error="the provider gave the finish reason 'cancelled'"),
    vector("another interaction", START, *text(0, "Hi"), event("interaction.created", interaction={**interaction("in_progress"), "id": "v1_8"}), text="Hi", stop=None, fault="SecondResponse"),
    vector("a frame that is no JSON", START, *text(0, "Hi"), b"{oops}", text="Hi", stop=None, fault="BrokenFrame"),
    vector("frames of another dialect", b'data: {"x":1}\n\n', stop=None, fault="NotThisDialect"),
    vector("an index of 2^63", START, begin(2**63, "model_output"), stop=None, fault="IndexTooLarge"),
]  # fmt: skip

VECTORS = [*HEALTHY, *REPAIRED, *BROKEN]
