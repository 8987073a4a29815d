"""Responses streams, healthy and broken. Facts: dialects.md §2, §9, quirks.md 80, 112, 113, 131, 132."""

from __future__ import annotations

from typing import Any

from tests.vectors.vector import Call, Vector, named, sse

RESPONSE = {
    "id": "resp_7",
    "object": "response",
    "created_at": 1,
    "model": "m-1",
    "status": "in_progress",
    "output": [],
}
USAGE = {
    "input_tokens": 9, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 2}, "total_tokens": 14,
}  # fmt: skip
START = {"type": "response.created", "response": RESPONSE}
GOING = {"type": "response.in_progress", "response": RESPONSE}


def event(kind: str, index: int | None = 0, item: str = "i0", **fields: Any) -> dict[str, Any]:
    """An event inside an item."""
    return {"type": f"response.{kind}", **({} if index is None else {"output_index": index}), "item_id": item, **fields}


def added(index: int, kind: str, id: str | None = None, **fields: Any) -> dict[str, Any]:
    item = {"id": id or f"i{index}", "type": kind, "status": "in_progress", **fields}
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def done(index: int, kind: str, id: str | None = None, status: str = "completed", **fields: Any) -> dict[str, Any]:
    item = {"id": id or f"i{index}", "type": kind, "status": status, **fields}
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def part(text: str, kind: str = "output_text", member: str = "text", **fields: Any) -> dict[str, Any]:
    return {"type": kind, member: text, **({"annotations": []} if kind == "output_text" else {}), **fields}


def spoken(
    index: int, *fragments: str, place: int = 0, fields: dict[str, Any] | None = None, **rest: Any
) -> tuple[Any, ...]:
    """A part of text, told in full."""
    at, whole = {"index": index, "item": f"i{index}", "content_index": place}, "".join(fragments)
    return (
        event("content_part.added", **at, part=part("", **rest)),
        *(event("output_text.delta", **at, delta=fragment, **(fields or {})) for fragment in fragments),
        event("output_text.done", **at, text=whole), event("content_part.done", **at, part=part(whole, **rest)),
    )  # fmt: skip


def message(index: int, *fragments: str, **rest: Any) -> tuple[Any, ...]:
    whole = "".join(fragments)
    return (
        added(index, "message", role="assistant", content=[], **rest), *spoken(index, *fragments),
        done(index, "message", role="assistant", content=[part(whole)], **rest),
    )  # fmt: skip


def thought(index: int, *texts: str, kind: str = "summary", **rest: Any) -> tuple[Any, ...]:
    """A reasoning item, one part for each text, all of it in one delta."""
    name, counted, of_part = {
        "summary": ("reasoning_summary_text", "summary_index", "reasoning_summary_part"),
        "raw": ("reasoning_text", "content_index", "content_part"),
    }[kind]
    type_ = {"summary": "summary_text", "raw": "reasoning_text"}[kind]
    parts = []
    for place, text in enumerate(texts):
        at = {"index": index, "item": f"i{index}", counted: place}
        parts += [
            event(f"{of_part}.added", **at, part=part("", type_)), event(f"{name}.delta", **at, delta=text),
            event(f"{name}.done", **at, text=text), event(f"{of_part}.done", **at, part=part(text, type_)),
        ]  # fmt: skip
    whole = [part(text, type_) for text in texts]
    final = {"summary": whole} if kind == "summary" else {"summary": [], "content": whole}
    return added(index, "reasoning", summary=[]), *parts, done(index, "reasoning", **final, **rest)


def call(index: int, id: str, name: str, *fragments: str, **rest: Any) -> tuple[Any, ...]:
    whole = "".join(fragments)
    return (
        added(index, "function_call", call_id=id, name=name, arguments="", **rest),
        *(event("function_call_arguments.delta", index, f"i{index}", delta=fragment) for fragment in fragments),
        event("function_call_arguments.done", index, f"i{index}", arguments=whole),
        done(index, "function_call", call_id=id, name=name, arguments=whole, **rest),
    )


def last(status: str = "completed", *output: Any, kind: str | None = None, **fields: Any) -> dict[str, Any]:
    """The terminal event; of its items only those that are given."""
    response = {**RESPONSE, "status": status, "output": [one["item"] for one in output], "usage": USAGE, **fields}
    return {"type": kind or f"response.{status}", "response": response}


def cut_off(reason: str, *output: Any) -> dict[str, Any]:
    return last("incomplete", *output, incomplete_details={"reason": reason})


def numbered(*payloads: Any) -> bytes:
    return named(*({**payload, "sequence_number": number} for number, payload in enumerate(payloads)))


def vector(name: str, *payloads: Any, **expected: Any) -> Vector:
    body = payloads[0] if len(payloads) == 1 and isinstance(payloads[0], bytes) else numbered(*payloads)
    return Vector(name=name, dialect="openai-responses", body=body, **expected)


def turn(name: str, *payloads: Any, end: Any = None, tools: Any = None, **expected: Any) -> Vector:
    """A stream with its start, which has ``tools``, and its end; the last response repeats what was done."""
    finished = [one for one in payloads if one["type"] == "response.output_item.done"]
    starts = [START, GOING]
    if tools is not None:
        starts = [{**start, "response": {**RESPONSE, "tools": [*tools]}} for start in starts]
    return vector(name, *starts, *payloads, end or last("completed", *finished), **expected)


HI = message(0, "Hel", "lo")
X = '{"x":1.0}'
ANNOTATION = {"type": "url_citation", "url": "u", "start_index": 0, "end_index": 2, "title": "t"}
LOGPROBS = [{"token": "Hi", "logprob": -0.5, "bytes": [72, 105], "top_logprobs": []}]
PICTURE = (
    added(1, "image_generation_call"), event("image_generation_call.generating", 1, "i1"),
    event("image_generation_call.partial_image", 1, "i1", partial_image_index=0, partial_image_b64="iVBO"),
    done(1, "image_generation_call", result="iVBORw0KGgo=", output_format="png", revised_prompt="a cat"),
)  # fmt: skip
OTHERS = ("openai-chat", "anthropic", "ollama")
RUN = {"call_id": "c1", "action": {"type": "exec", "command": ["ls"], "env": {}}}
SHELL = (added(1, "local_shell_call", **RUN), done(1, "local_shell_call", **RUN))
ANNOTATED = (
    added(0, "message", role="assistant", content=[]), event("content_part.added", content_index=0, part=part("")),
    event("output_text.delta", content_index=0, delta="Hi", logprobs=LOGPROBS),
    event("output_text.annotation.added", content_index=0, annotation_index=0, annotation=ANNOTATION),
    event("output_text.done", content_index=0, text="Hi", logprobs=LOGPROBS),
    event("content_part.done", content_index=0, part=part("Hi", annotations=[ANNOTATION], logprobs=LOGPROBS)),
    done(0, "message", role="assistant", content=[part("Hi", annotations=[ANNOTATION], logprobs=LOGPROBS)]),
)  # fmt: skip


def free(*pieces: str) -> tuple[Any, ...]:
    """A custom tool's call, whose text is said in pieces and as a whole."""
    return (
        added(0, "custom_tool_call", call_id="c1", name="sh", input=""),
        *(event("custom_tool_call_input.delta", delta=piece) for piece in pieces),
        event("custom_tool_call_input.done", input="".join(pieces)),
        done(0, "custom_tool_call", call_id="c1", name="sh", input="".join(pieces)),
    )


SEARCHED = (
    added(0, "web_search_call"), event("web_search_call.in_progress"), event("web_search_call.completed"),
    done(0, "web_search_call", action={"type": "search", "query": "q"}), *message(1, "Hi"),
)  # fmt: skip
CUSTOM = free("ls ", '"a"')
#: xAI's search of X: calls of custom tools that the request does not define, which xAI itself has run.
X_SEARCHED = (
    added(0, "custom_tool_call", call_id="xs_1", name="x_keyword_search", input=""), event("custom_tool_call_input.delta", delta='{"query":"q"}'),
    event("custom_tool_call_input.done", input='{"query":"q"}'), done(0, "custom_tool_call", call_id="xs_1", name="x_keyword_search", input='{"query":"q"}'),
)  # fmt: skip
XAI_TOOLS = [{"type": "x_search"}, {"type": "custom", "name": "sh"}]
REFUSED = (
    added(0, "message", role="assistant", content=[]), event("content_part.added", content_index=0, part=part("", "refusal", "refusal")),
    event("refusal.delta", content_index=0, delta="I "), event("refusal.delta", content_index=0, delta="won't"),
    event("refusal.done", content_index=0, refusal="I won't"), event("content_part.done", content_index=0, part=part("I won't", "refusal", "refusal")),
    done(0, "message", role="assistant", content=[part("I won't", "refusal", "refusal")]),
)  # fmt: skip
CUT_CALL = done(0, "function_call", call_id="c1", name="f", arguments='{"x":', status="incomplete")
FAILED = {
    "type": "response.failed",
    "response": {**RESPONSE, "status": "failed", "error": {"code": "server_error", "message": "gone"}},
}
NESTED = {
    "type": "error",
    "error": {"type": "server_error", "code": "rate_limit_exceeded", "message": "gone", "param": None},
}
FLAT = {"type": "error", "code": "rate_limit_exceeded", "message": "gone", "param": None}

HEALTHY = [
    turn("text", *HI, text="Hello"),
    vector("text with CRLF", numbered(START, GOING, *HI, last("completed", HI[-1])).replace(b"\n", b"\r\n"), text="Hello"),
    vector("no event lines", sse(START, *HI, last("completed", HI[-1])), text="Hello"),
    turn(
        "a full turn", *thought(0, "one", "two", encrypted_content="b3Bh"), *message(1, "Hi"), *call(2, "call_1", "f", '{"x"', ":1.0}"), *call(3, "call_2", "g"),
        reasoning="onetwo", text="Hi", calls=(Call("f", X, id="call_1"), Call("g", "", "empty", id="call_2")), stop="tool_calls",
        losses={"ollama": {"block_boundary": 1, "reasoning_signature": 1, "call_id": 2}},
    ),
    turn("raw reasoning", *thought(0, "hm", kind="raw"), *message(1, "Hi"), reasoning="hm", text="Hi"),
    turn("encrypted reasoning alone", *thought(0, encrypted_content="b3Bh"), *message(1, "Hi"), text="Hi", losses={"ollama": {"reasoning_opaque": 1}}),
    turn("two parts of text", added(0, "message", content=[]), *spoken(0, "one"), *spoken(0, "two", place=1), done(0, "message", content=[part("one"), part("two")]), text="onetwo", losses={d: {"block_boundary": 1} for d in ("openai-chat", "ollama")}),
    turn("messages of two phases", *message(0, "one", phase="commentary"), *message(1, "two", phase="final_answer"), text="onetwo", losses={d: {"metadata": 2} for d in OTHERS}),
    turn("a refusal", *REFUSED, refusal="I won't", stop="refusal", losses={"anthropic": {"refusal_as_text": 1}, "ollama": {"refusal_as_text": 1}}),
    turn("log probabilities and an annotation", *ANNOTATED, text="Hi", losses={d: {"logprobs": 1, "citation": int(d == "ollama")} for d in OTHERS}),
    turn("a tool of the server's", *SEARCHED, text="Hi", losses={d: {"server_tool": 4} for d in OTHERS}),
    turn("an image that the model made", *message(0, "Hi"), *PICTURE, text="Hi", losses={"openai-responses": {}, "anthropic": {"server_tool": 3, "media_output": 1}, "openai-chat": {"server_tool": 3, "metadata": 1}, "gemini": {"server_tool": 3, "metadata": 1, "media_output": 0}}),
    turn("a shell that the client runs", *message(0, "Hi"), *SHELL, text="Hi", stop="tool_calls", losses={d: {"client_tool": 1} for d in OTHERS}),
    *(
        turn(f"a custom tool with JSON twice: {first.strip()}", *free(first, '{"a":1}\n'), calls=(Call("sh", first + '{"a":1}\n', id="c1"),), stop="tool_calls", losses={d: {"custom_tool_wrapped": 1} for d in OTHERS})
        for first in ("{}", '{"a":1}\n')
    ),
    turn("calls of xAI's own", *X_SEARCHED, *message(1, "Hi"), tools=({"type": "x_search"},), text="Hi", losses={"openai-responses": {}, **{d: {"server_tool": 4} for d in OTHERS}}),
    turn(
        "calls of xAI's own, only in the last response, and one of the client's", end=last("completed", X_SEARCHED[-1], CUSTOM[-1], tools=XAI_TOOLS), tools=XAI_TOOLS,
        calls=(Call("sh", 'ls "a"', id="c1"),), stop="tool_calls", repairs={"block_unopened": 2}, losses={d: {"server_tool": 2, "custom_tool_wrapped": 1} for d in OTHERS},
    ),
    turn("a custom tool that the tools lack, next to no search of X", *CUSTOM, tools=({"type": "web_search"},), calls=(Call("sh", 'ls "a"', id="c1"),), stop="tool_calls"),
    turn("a custom tool", *CUSTOM, calls=(Call("sh", 'ls "a"', id="c1"),), stop="tool_calls", losses={d: {"custom_tool_wrapped": 1} for d in OTHERS}),
    turn("fields of a call that are the vendor's", *call(0, "c1", "f", X, namespace="n"), calls=(Call("f", X, id="c1"),), stop="tool_calls", losses={d: {"metadata": 1} for d in OTHERS}),
    turn("nothing but done events", added(0, "message", content=[]), done(0, "message", content=[part("Hi")]), added(1, "function_call", call_id="c1", name="f"), done(1, "function_call", call_id="c1", name="f", arguments=X), text="Hi", calls=(Call("f", X, id="c1"),), stop="tool_calls"),
    turn("arguments that came whole with the start", added(0, "function_call", call_id="c1", name="f", arguments=X), done(0, "function_call", call_id="c1", name="f"), calls=(Call("f", X, id="c1"),), stop="tool_calls"),
    turn("output null in the last response", *HI, end=last(output=None), text="Hello"),
    turn("an empty output in the last response", *HI, end=last(), text="Hello"),
    turn("cut by the length", *HI, end=cut_off("max_output_tokens", HI[-1]), text="Hello", stop="length"),
    turn("cut by a filter", *HI, end=cut_off("content_filter", HI[-1]), text="Hello", stop="content_filter", losses={"ollama": {"stop_reason": 1}}),
    turn("steered", *HI, end=cut_off("steered", HI[-1]), text="Hello", stop="pause", losses={d: {"stop_reason": 1} for d in ("openai-chat", "ollama")}),
    turn("a reason of the future", *HI, end=cut_off("max_messages", HI[-1]), text="Hello", stop="length", losses={d: {"stop_reason": 0} for d in OTHERS}),
    turn("an end by another name", *HI, end=last("completed", HI[-1], kind="response.done"), text="Hello", repairs={"terminal_renamed": 1}),
    turn("a call that is cut by the length", *call(0, "c1", "f", '{"x":')[:-2], CUT_CALL, end=cut_off("max_output_tokens", CUT_CALL), calls=(Call("f", '{"x":', "truncated", id="c1"),), stop="length", losses={"ollama": {"call_withheld": 1}}),
    turn("fields that change", *HI, end=last("completed", HI[-1], service_tier="flex"), text="Hello", losses={d: {"metadata": 1} for d in OTHERS}),
    turn("an event of the future", *HI, {"type": "response.novelty", "x": 1}, text="Hello", losses={d: {"unknown_event": 1} for d in OTHERS}),
    turn("deltas with padding, and a keep-alive comment", *message(0, "Hi")[:2], event("output_text.delta", content_index=0, delta="Hi", obfuscation="xyz"), *message(0, "Hi")[3:], text="Hi"),
]  # fmt: skip

ITEMS = (HI[-1], done(1, "function_call", call_id="c1", name="f", arguments=X))
REPAIRED = [
    vector("output in the last response alone", START, last("completed", *ITEMS), text="Hello", calls=(Call("f", X, id="c1"),), stop="tool_calls", repairs={"block_unopened": 2}),
    turn("items that are never added", *HI[1:-1], event("function_call_arguments.delta", 1, "i1", delta=X), ITEMS[1], text="Hello", calls=(Call("f", X, id="c1"),), stop="tool_calls", repairs={"block_unopened": 2, "block_unclosed": 1}),
    turn("a start without its item", {**HI[0], "item": None}, *HI[1:], text="Hello", repairs={"block_unopened": 1}),
    turn("items that are never done", *HI[:-1], *call(1, "c1", "f", X)[:-1], end=last("completed", *ITEMS), text="Hello", calls=(Call("f", X, id="c1"),), stop="tool_calls", repairs={"block_unclosed": 2}),
    turn("no item is done, and no output repeats them", *HI[:-1], *call(1, "c1", "f", X)[:-1], end=last(), text="Hello", calls=(Call("f", X, id="c1"),), stop="tool_calls", repairs={"block_unclosed": 2}),
    turn("every output_index is 0", *(({**one, "output_index": 0}) for one in (*HI, *call(1, "c1", "f", X))), text="Hello", calls=(Call("f", X, id="c1"),), stop="tool_calls", repairs={"index_reused": 1}),
    turn(
        "every output_index is 0, and calls interleave",
        *({**one, "output_index": 0} for pair in zip(call(0, "c1", "f", '{"x"', ":1.0}"), call(1, "c2", "g", '{"y"', ":2}"), strict=True) for one in pair),
        calls=(Call("f", X, id="c1"), Call("g", '{"y":2}', id="c2")), stop="tool_calls", repairs={"index_reused": 5},
    ),
    turn("no output_index at all", *({k: v for k, v in one.items() if k != "output_index"} for one in HI), text="Hello", repairs={"index_missing": 7}),
    turn("one start twice", HI[0], *HI, text="Hello", repairs={"block_reopened": 1}),
    turn("text in a call", *call(0, "c1", "f", X)[:-1], event("output_text.delta", content_index=0, delta="Hi"), call(0, "c1", "f", X)[-1], text="Hi", calls=(Call("f", X, id="c1"),), stop="tool_calls", repairs={"block_mismatch": 1}),
    turn("text behind its end", *HI, event("output_text.delta", content_index=0, delta="!"), text="Hello!", repairs={"block_unopened": 1, "whole_differs": 1}),
    turn("deltas that lack an end", *call(0, "c1", "f", '{"x"')[:-2], *call(0, "c1", "f", X)[-2:], calls=(Call("f", X, id="c1"),), stop="tool_calls", repairs={"fragments_missing": 1}),
    turn("arguments that differ from their deltas", *call(0, "c1", "f", '{"x":1}')[:-2], call(0, "c1", "f", X)[-1], calls=(Call("f", '{"x":1}', id="c1"),), stop="tool_calls", repairs={"whole_differs": 1}, withheld=(X,)),
    turn("a held delta that is replaced", *call(0, "c1", "f", "{}")[:-2], call(0, "c1", "f", X)[-1], calls=(Call("f", X, id="c1"),), stop="tool_calls", repairs={"arguments_replaced": 1}),
    turn("text that differs from its deltas", *HI[:4], event("output_text.done", content_index=0, text="Hullo"), *HI[5:], text="Hello", repairs={"whole_differs": 1}),
    turn("text of which the last delta never came", *HI[:3], *HI[4:], text="Hello", repairs={"fragments_missing": 1}),
    turn("a part that starts with its first delta", added(0, "message", content=[part("Hel")]), event("content_part.added", content_index=0, part=part("Hel")), *HI[2:], text="Hello", repairs={"text_repeated": 1}),
    turn("text that is numbered otherwise than its deltas", *HI[:4], event("output_text.done", content_index=3, text="Hello"), HI[-1], text="Hello", repairs={"whole_misplaced": 1}),
    turn("arguments as an object", added(0, "function_call", call_id="c1", name="f"), done(0, "function_call", call_id="c1", name="f", arguments={"x": 1.0}), calls=(Call("f", X, id="c1"),), stop="tool_calls", repairs={"arguments_not_text": 2}, end=last("completed", done(0, "function_call", call_id="c1", name="f", arguments={"x": 1.0}))),
    turn("a call without an id", added(0, "function_call", name="f"), done(0, "function_call", name="f", arguments=X), calls=(Call("f", X),), stop="tool_calls", repairs={"id_missing": 1}),
    turn("a name that comes with the end", added(0, "function_call", call_id="c1"), event("function_call_arguments.delta", delta=X), done(0, "function_call", call_id="c1", name="f", arguments=X), calls=(Call("f", X, id="c1"),), stop="tool_calls"),
    turn("another end than the response says", *HI, end=last("incomplete", kind="response.completed", incomplete_details={"reason": "max_output_tokens"}), text="Hello", stop="length", repairs={"stop_conflict": 1}),
    vector("another dialect's terminator", numbered(START, *HI, last("completed", HI[-1])) + b"data: [DONE]\n\n", text="Hello", repairs={"foreign_terminator": 1}),
    turn("a call without a name, in the last response too", *call(0, "c1", "", X), calls=(Call("", X, id="c1"),), stop=None, repairs={"call_nameless": 1}, provider_error="the model called a tool without a name"),
    vector("a message behind the end that starts with its text", START, *HI, last("completed", HI[-1]), added(1, "message", role="assistant", content=[part("!")]), text="Hello", repairs={"after_end": 1}),
    vector("more behind the end", START, *HI, last("completed", HI[-1]), *message(1, "!"), text="Hello", repairs={"after_end": 6}),
    vector("an event of a server's tool that says its type on its line alone", numbered(START, added(0, "web_search_call")) + b"event: response.web_search_call.completed\ndata: {}\n\n" + numbered(done(0, "web_search_call"), *message(1, "Hi"), last("completed", done(0, "web_search_call"), message(1, "Hi")[-1])), text="Hi", repairs={"event_type_missing": 1}),
    turn("an item of a server's tool whose type is a list", {**added(0, "web_search_call"), "item": {"id": "i0", "type": ["novelty"]}}, *message(1, "Hi"), end=last("completed", message(1, "Hi")[-1]), text="Hi", repairs={"text_as_object": 1}),
    turn("an item of an unknown type that the provider answered", added(0, "lamp_call", call_id="c1"), done(0, "lamp_call", call_id="c1"), added(1, "lamp_call_output", call_id="c1"), done(1, "lamp_call_output", call_id="c1"), losses={"openai-responses": {}}),
    turn("an item that the client runs, and again under another id", added(0, "local_shell_call", call_id="c1", action={"type": "exec", "command": ["ls"]}), done(0, "local_shell_call", call_id="c1", action={"type": "exec", "command": ["ls"]}), end=last("completed", done(0, "local_shell_call", "i9", call_id="c1", action={"type": "exec", "command": ["ls"]})), stop="tool_calls", repairs={"block_unopened": 1}),
    vector("a response in its last event, and types on lines alone", b"".join(b"event: %b\n%b" % (e["type"].encode(), sse({k: v for k, v in e.items() if k != "type"})) for e in (START, *HI, {"type": "response.completed", **last("completed", HI[-1])["response"]})), text="Hello", repairs={"response_bare": 1, "event_type_missing": 9}),
    turn("a second start", START, *HI, text="Hello", repairs={"response_restarted": 1}),
    vector("a bare error", START, *HI, {"type": "", "error": {"message": "gone"}}, text="Hello", stop=None, repairs={"error_shape": 1}, provider_error="gone"),
    vector("an error as text", START, *HI, {"type": "error", "error": "gone"}, text="Hello", stop=None, repairs={"error_shape": 1}, provider_error="gone"),
    turn("annotations that are no list", added(0, "message", content=[]), *spoken(0, "Hi"), done(0, "message", content=[part("Hi", annotations=5)]), text="Hi", repairs={"field_invalid": 1}),
]  # fmt: skip

BROKEN = [
    vector("text that is cut", numbered(START, *HI)[:-9], text="Hello", stop=None),
    vector("no last response", START, *HI, text="Hello", stop=None),
    vector("a call that is cut", START, *call(0, "c1", "f", "{}")[:-1], calls=(Call("f", "{}", "truncated", id="c1"),), stop=None, losses={"ollama": {"call_withheld": 1}}),
    vector("a call that ended before the cut", START, *call(0, "c1", "f", X), calls=(Call("f", X, id="c1"),), stop=None),
    vector("a call whose start had all of it, cut", START, added(0, "function_call", call_id="c1", name="f", arguments=X), calls=(Call("f", X, "truncated", id="c1"),), stop=None),
    vector("a nested error", START, *HI, NESTED, text="Hello", stop=None, provider_error="gone"),
    vector("a flat error", START, *HI, FLAT, text="Hello", stop=None, provider_error="gone"),
    vector("an error, and the response that failed", START, *HI, NESTED, FAILED, text="Hello", stop=None, provider_error="gone"),
    vector("a response that failed", START, *HI, FAILED, text="Hello", stop=None, provider_error="gone"),
    vector("an error behind a start with all of a call's arguments", START, added(0, "function_call", call_id="c1", name="f", arguments=X), NESTED, calls=(Call("f", X, "truncated", id="c1"),), stop=None, provider_error="gone"),
    vector("an error at once", NESTED, stop=None, provider_error="gone"),
    turn("cancelled", *HI, end=last("cancelled", kind="response.completed"), text="Hello", stop=None, repairs={"stop_conflict": 1}, provider_error="the provider gave the finish reason 'cancelled'"),
    vector("a frame that is no JSON", numbered(START, *HI) + b"event: response.completed\ndata: {oops}\n\n", text="Hello", stop=None, fault="BrokenFrame"),
    vector("frames of another dialect", b'data: {"x":1}\n\n', stop=None, fault="NotThisDialect"),
    vector("an index of 2^63", START, {**HI[0], "output_index": 2**63}, stop=None, fault="IndexTooLarge"),
]  # fmt: skip

VECTORS = [*HEALTHY, *REPAIRED, *BROKEN]
