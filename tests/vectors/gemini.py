"""Gemini streams in both framings, healthy and broken. Facts: dialects.md §5, quirks.md 22, 62, 68, 89."""

from __future__ import annotations

import json
from typing import Any

import orjson

from streamkit.dialects.vocabulary.sealed_reasoning import seal
from tests.vectors.vector import Call, Vector

HEAD = {"modelVersion": "m-1", "responseId": "r-7"}
USAGE = {"promptTokenCount": 9, "candidatesTokenCount": 3, "thoughtsTokenCount": 1, "totalTokenCount": 13}


def chunk(*parts: Any, finish: str | None = None, index: int | None = 0, **fields: Any) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"parts": list(parts), "role": "model"}}
    if finish is not None:
        candidate["finishReason"] = finish
    if index is not None:
        candidate["index"] = index
    return {"candidates": [candidate], **HEAD, **fields}


def text(said: str, **flags: Any) -> dict[str, Any]:
    return {"text": said, **flags}


def thought(said: str, **flags: Any) -> dict[str, Any]:
    return {"text": said, "thought": True, **flags}


def call(name: str | None = None, args: Any = None, *, signature: str | None = None, **fields: Any) -> dict[str, Any]:
    function = {**({} if name is None else {"name": name}), **({} if args is None else {"args": args}), **fields}
    return {"functionCall": function, **({} if signature is None else {"thoughtSignature": signature})}


def partial(*entries: tuple[str, Any], name: str | None = None, more: bool = True, **fields: Any) -> dict[str, Any]:
    """A part with values for paths."""
    kinds = {str: "stringValue", bool: "boolValue", int: "numberValue", float: "numberValue"}
    values: list[dict[str, Any]] = [
        {"jsonPath": path, **({"nullValue": "NULL_VALUE"} if value is None else {kinds[type(value)]: value})}
        for path, value in entries
    ]
    more_of_it = {"willContinue": True} if more else {}
    return call(name, **({"partialArgs": values} if values else {}), **more_of_it, **fields)


def events(*payloads: Any) -> bytes:
    """Each payload as an event with CRLF: bytes as they are, other values as JSON."""
    return b"".join(b"data: %b\r\n\r\n" % (p if isinstance(p, bytes) else orjson.dumps(p)) for p in payloads)


def array(*payloads: Any) -> bytes:
    """The payloads as Google prints an array."""
    return b"[" + b"\n,\r\n".join(json.dumps(payload, indent=2).encode() for payload in payloads) + b"\n]"


STOP = chunk(text(""), finish="STOP", usageMetadata=USAGE)
BUSY = {"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}}
ERROR = json.dumps(BUSY, indent=2).encode()


def vector(name: str, *payloads: Any, **expected: Any) -> Vector:
    body = payloads[0] if len(payloads) == 1 and isinstance(payloads[0], bytes) else events(*payloads)
    return Vector(name=name, dialect="gemini", body=body, **expected)


def called(name: str, *payloads: Any, **expected: Any) -> Vector:
    return vector(name, *payloads, STOP, **{"stop": "tool_calls", **expected})


def to_all(**losses: int) -> dict[str, dict[str, int]]:
    return dict.fromkeys(("openai-chat", "anthropic", "ollama"), losses)


ALL_KEPT: dict[str, dict[str, int]] = {"gemini": {}, "openai-chat": {}, "ollama": {}}
X, Y = call("f", {"x": 1}), call("f", {"x": 2})

HEALTHY = [
    vector("text", chunk(text("Hel")), chunk(text("lo \u2028 \N{GRINNING FACE}"), usageMetadata=USAGE), STOP, text="Hello \u2028 \N{GRINNING FACE}"),
    vector("text with LF", events(chunk(text("Hi")), STOP).replace(b"\r", b""), text="Hi"),
    vector("text in an array", array(chunk(text("Hel")), chunk(text('lo"]}')), STOP), text='Hello"]}'),
    vector("an array on one line behind a byte order mark", b"\xef\xbb\xbf \n" + orjson.dumps([chunk(text("Hi")), STOP]), text="Hi"),
    vector("the reason beside the text, without an index", chunk(text("Hi"), finish="STOP", index=None), text="Hi"),
    vector("a reason without content", chunk(text("Hi")), {"candidates": [{"finishReason": "MAX_TOKENS", "index": 0}]}, text="Hi", stop="length"),
    vector("the reason in every chunk", chunk(text("H"), finish="STOP"), chunk(text(""), finish="STOP"), chunk(text("i"), finish="STOP"), text="Hi"),
    called("two calls in one chunk", chunk(X, Y), calls=(Call("f", '{"x":1}'), Call("f", '{"x":2}'))),
    called("two calls in two chunks", chunk(call("f", {"x": 1}, id="a")), chunk(call("g", id="b")), calls=(Call("f", '{"x":1}', id="a"), Call("g", "{}", id="b"))),
    vector("a call and its reason in an array", array(chunk(call("f", {"x": 1}), finish="STOP")), calls=(Call("f", '{\n                "x": 1\n              }'),), stop="tool_calls"),
    vector(
        "arguments as they stand in the frame", events(chunk(call("f", {"x": "?"})), STOP).replace(b'"?"', b'1.0, "big": 18446744073709551616,"x" :1e21'),
        calls=(Call("f", '{"x":1.0, "big": 18446744073709551616,"x" :1e21}'),), stop="tool_calls",
    ),
    called(
        "text between calls", chunk(X), chunk(text("then")), chunk(Y), text="then", calls=(Call("f", '{"x":1}'), Call("f", '{"x":2}')), losses={"openai-chat": {"block_order": 1}},
    ),
    vector("thoughts", chunk(thought("h")), chunk(thought("m"), text("Hi")), STOP, text="Hi", reasoning="hm"),
    called("a text and a call in one part", chunk({**call("f", {"x": 1}, signature="c2ln"), "text": "Hi"}), text="Hi", calls=(Call("f", '{"x":1}'),), losses=ALL_KEPT),
    called("a thought and a call in one part", chunk({"text": "hm", "thought": True, **call("f", {"x": 1})}), chunk({"text": "", **call("f", {"x": 2})}), reasoning="hm", calls=(Call("f", '{"x":1}'), Call("f", '{"x":2}')), losses=ALL_KEPT),
    vector(
        "a text in a part with something else", chunk({"inlineData": {"mimeType": "image/png", "data": "AA=="}, "text": "H"}), chunk({"text": "i", "executableCode": {"language": "PYTHON", "code": "1"}}),
        chunk({"codeExecutionResult": {"outcome": "OUTCOME_OK"}, "text": "!"}), STOP, text="Hi!", losses={"gemini": {}, "openai-chat": {"server_tool": 2}},
    ),
    called(
        "a call, an image and code in one part", chunk({"executableCode": {"language": "PYTHON", "code": "1"}, **call("f", {"x": 1}), "inlineData": {"mimeType": "image/png", "data": "AA=="}}),
        calls=(Call("f", '{"x":1}'),), losses={"gemini": {}, "openai-chat": {"server_tool": 1}},
    ),
    vector("truth values as text and numbers", chunk({"text": "h", "thought": "true"}), chunk({"text": "m", "thought": 1}, {"text": "Hi", "thought": "false"}), STOP, text="Hi", reasoning="hm", repairs={"boolean_invalid": 3}),
    vector(
        "a signed thought and signed texts", chunk(text("H")), chunk(text("i", thoughtSignature="YQ==")), chunk(thought("hm", thoughtSignature="Yg==")), chunk(text("", thoughtSignature="Yw=="), finish="STOP"),
        text="Hi", reasoning="hm", losses={"ollama": {"reasoning_signature": 3, "block_boundary": 1}},
    ),
    called("a signed call beside one that is not", chunk(call("f", {"x": 1}, signature="c2ln"), Y), calls=(Call("f", '{"x":1}'), Call("f", '{"x":2}'))),
    vector(
        "what other dialects left sealed", chunk(thought("hm")), chunk(thought("", thoughtSignature=seal("reasoning", "anthropic", "c2ln"))), chunk(thought("", thoughtSignature=seal("opaque", "anthropic", "eHg="))),
        chunk(text("Hi")), chunk(text("", thoughtSignature=seal("text", "acme", "eg=="))), chunk(text("", thoughtSignature=seal("call", "acme", "eg==")), X), STOP,
        text="Hi", reasoning="hm", calls=(Call("f", '{"x":1}'),), stop="tool_calls",
    ),
    called(
        "arguments in parts", chunk(call("f", id="a", willContinue=True)), chunk(partial(("$.place.name", 'Par"'))), chunk(partial(("$.place.name", "is"), ("$.place.at[0]", 48.85))),
        chunk(partial(("$.place.at[1]", 2), ("$['it\\'s']", None))), chunk(call()),
        calls=(Call("f", '{"place":{"name":"Par\\"is","at":[48.85,2]},"it\'s":null}', id="a"),),
    ),
    called("a call in parts without arguments", chunk(call("f", willContinue=True)), chunk(call(willContinue=False)), calls=(Call("f", "{}"),)),
    called("a call in parts behind another", chunk(X, partial(("$.y", True), name="g")), chunk(partial(("$.z", "s"), more=False)), calls=(Call("f", '{"x":1}'), Call("g", '{"y":true,"z":"s"}'))),
    vector("a prompt that was blocked", {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 9}}, stop="content_filter", losses=to_all(metadata=1, stop_reason=1) | {"openai-chat": {"metadata": 1}}),
    vector("a filter", chunk(text("Hi")), {"candidates": [{"finishReason": "RECITATION", "index": 0, "citationMetadata": {"citationSources": [{"uri": "x"}]}}]}, text="Hi", stop="content_filter", losses={"openai-chat": {"citation": 1}}),
    vector("a reason of the future", chunk(text("Hi"), finish="BORED"), text="Hi", stop="other", losses={"openai-chat": {"stop_reason": 1}}),
    vector("more to come", chunk(text("Hi"), finish="CONTINUATION"), text="Hi", stop="pause"),
    vector("a call that the model got wrong", chunk(finish="MALFORMED_FUNCTION_CALL"), stop=None, provider_error="the provider gave the finish reason 'MALFORMED_FUNCTION_CALL': the model wrote a call that can't be read"),
    vector(
        "what Google's own tools did", chunk({"executableCode": {"language": "PYTHON", "code": "1"}}, {"codeExecutionResult": {"outcome": "OUTCOME_OK"}}), chunk({"inlineData": {"mimeType": "audio/L16", "data": "AA=="}}),
        chunk({"inlineData": {"mimeType": "image/png", "data": "AA=="}}, text("Hi", videoMetadata={"fps": 1}), {"novel": 1}), {**STOP, "novel": 2}, text="Hi",
        losses={"openai-chat": {"server_tool": 2, "audio": 1, "metadata": 3, "media_output": 0}, "anthropic": {"media_output": 1}},
    ),
    vector(
        "an image that the model made, and one that it tried", chunk(text("Hi")), chunk({"inlineData": {"mimeType": "image/png", "data": "iVBO"}, "thought": True}),
        chunk({"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}, "thoughtSignature": "QUJD"}, {"fileData": {"mimeType": "image/png", "fileUri": "https://x/y.png"}}), STOP, text="Hi",
        losses={"gemini": {}, "openai-chat": {"metadata": 2, "media_output": 0}, "ollama": {"metadata": 1, "media_output": 2}, "anthropic": {"metadata": 1, "media_output": 2}},
    ),
    vector(
        "candidates", {"candidates": [{"content": {"parts": [text("a")]}, "index": 0}, {"content": {"parts": [text("b")]}, "index": 1}]}, chunk(finish="STOP"), chunk(finish="MAX_TOKENS", index=1),
        text="a", losses={"anthropic": {"extra_choice": 1}, "ollama": {"extra_choice": 1}},
    ),
    vector("thoughts are counted beside the candidates", chunk(text("Hi"), finish="STOP", usageMetadata={**USAGE, "cachedContentTokenCount": 2, "toolUsePromptTokenCount": 1}), text="Hi", losses={"ollama": {"usage_detail": 1}}),
]  # fmt: skip

REPAIRED = [
    vector("usage whose only count is negative", chunk(text("Hi"), finish="STOP", usageMetadata={"promptTokenCount": -1, "trafficType": "ON_DEMAND"}), text="Hi", repairs={"field_invalid": 1}),
    called("arguments as text", chunk(call("f", '{"x":1}')), calls=(Call("f", '{"x":1}'),), repairs={"arguments_not_object": 1}),
    called("a call without a name", chunk(call(None, {"x": 1})), calls=(Call("", '{"x":1}'),), repairs={"call_nameless": 1}, stop=None, provider_error="the model called a tool without a name"),
    called("the end of a call that never began", chunk(call()), stop="stop", repairs={"call_ghost": 1}),
    called("the same id twice for two calls", chunk(call("f", {"x": 1}, id="a"), call("g", id="a")), calls=(Call("f", '{"x":1}', id="a"), Call("g", "{}")), repairs={"id_duplicate": 1}),
    called("a call sent again with its id", chunk(call("f", {"x": 1}, id="a")), chunk(call("f", {"x": 1}, id="a")), calls=(Call("f", '{"x":1}', id="a"),), repairs={"arguments_repeated": 1}),
    called(
        "parts of arguments that go back", chunk(partial(("$.a", "x"), ("$.b", 1), name="f")), chunk(partial(("$.a", "y"), ("$.c.d", 2))), chunk(call()),
        calls=(Call("f", '{"a":"x","b":1,"a":"xy","c":{"d":2}}'),), repairs={"arguments_out_of_order": 1},
    ),
    called(
        "the first parts of arguments beside text", chunk(text("Hm"), partial(("$.a", "x"), ("$.b", 1), name="f")), chunk(call()),
        text="Hm", calls=(Call("f", '{"a":"x","b":1}'),),
    ),
    called("an array with gaps", chunk(partial(("$.a[2]", 1), name="f", more=False)), calls=(Call("f", '{"a":[null,null,1]}'),), repairs={"arguments_gap": 1}),
    called(
        "parts of arguments that lead nowhere", chunk(partial(("$", 1), ("a", 2), ("$.a[", 3), ("$.a[99999]", 4), ("$.b", 5), ("$.b.c", 6), name="f", more=False)),
        calls=(Call("f", '{"b":5', "truncated"),), stop="length", repairs={"field_invalid": 5, "stop_conflict": 1},
    ),
    called("the name in each part of a call", chunk(partial(("$.a", "x"), name="f")), chunk(partial(("$.a", "y"), name="f")), chunk(call()), calls=(Call("f", '{"a":"xy"}'),), repairs={"name_repeated": 1}),
    called(
        "a call that never ended before another", chunk(partial(("$.a", "x"), name="f")), chunk(call("g")), calls=(Call("f", '{"a":"x"}'), Call("g", "{}")), repairs={"block_unclosed": 1},
    ),
    vector("candidates without an index", {"candidates": [{"content": {"parts": [text("a")]}, "finishReason": "STOP"}, {"finishReason": "STOP"}]}, text="a", repairs={"choice_index_missing": 1}),
    vector("reasons that differ", chunk(text("Hi"), finish="STOP"), chunk(finish="MAX_TOKENS"), text="Hi", stop="length", repairs={"stop_conflict": 1}),
    vector("another dialect's terminator", events(chunk(text("Hi")), STOP) + b"data: [DONE]\n\n", text="Hi", repairs={"foreign_terminator": 1}),
    vector("no blank line behind the last event", events(chunk(text("Hi")), STOP)[:-2], text="Hi", repairs={"last_event_unterminated": 1}),
    vector("an unfinished frame behind the end", events(chunk(text("Hi")), STOP) + b'data: {"a"', text="Hi", repairs={"fault_after_end": 1}),
    vector("an unfinished element behind the end", array(chunk(text("Hi")), STOP)[:-1] + b',{"a"', text="Hi", repairs={"fault_after_end": 1}),
    vector("an unfinished comment behind the end", events(chunk(text("Hi")), STOP) + b": pi", text="Hi"),
    vector("no bracket behind the last element", array(chunk(text("Hi")), STOP)[:-1], text="Hi", repairs={"array_unclosed": 1}),
    vector("odd values", chunk(text("Hi"), 7, {"text": 5}, {"text": "", "thought": "yes"}), STOP, text="Hi", repairs={"field_invalid": 2, "boolean_invalid": 1}, losses={"openai-chat": {"unknown_event": 3}}),
]  # fmt: skip

BROKEN = [
    vector("an error", chunk(text("Hi")), BUSY, text="Hi", stop=None, provider_error="busy"),
    vector("an error in an array", array(chunk(text("Hi")), BUSY), text="Hi", stop=None, provider_error="busy"),
    vector("an error printed over many lines", events(chunk(text("Hi"))) + ERROR + b"\n", text="Hi", stop=None, repairs={"sse_bare_json": 1}, provider_error="busy"),
    vector("an error that is all there is", ERROR, stop=None, repairs={"sse_bare_json": 1, "last_event_unterminated": 1}, provider_error="busy"),
    vector("an error that is not the first key", chunk(text("Hi")), {**HEAD, **BUSY}, text="Hi", stop=None, repairs={"error_shape": 1}, provider_error="busy"),
    vector("an error that is text", chunk(text("Hi")), {"error": "busy"}, text="Hi", stop=None, repairs={"error_shape": 1}, provider_error="busy"),
    vector("more after an error", chunk(text("Hi")), BUSY, chunk(text("!")), text="Hi", stop=None, repairs={"after_error": 1}, provider_error="busy"),
    vector("a response that the model got wrong", chunk(text("Hi"), finish="MALFORMED_RESPONSE"), text="Hi", stop=None, provider_error="the provider gave the finish reason 'MALFORMED_RESPONSE': the model wrote a response that can't be read"),
    vector("text that is cut", events(chunk(text("Hi"))), text="Hi", stop=None),
    vector("an array that is cut", array(chunk(text("Hi")), STOP)[:-60], text="Hi", stop=None),
    vector("an array that is cut behind an element", array(chunk(text("Hi")), STOP)[: len(array(chunk(text("Hi"))))], text="Hi", stop=None, repairs={"array_unclosed": 1}),
    vector("an array without a reason", array(chunk(text("Hi"))), text="Hi", stop=None),
    vector("an empty array", b"[]", stop=None),
    vector("a candidate without a reason", {"candidates": [{"content": {"parts": [text("a")]}, "index": 0}, {"content": {"parts": [text("b")]}, "index": 1}]}, chunk(finish="STOP"), text="a", stop=None),
    vector("cut behind a call", chunk(X), calls=(Call("f", '{"x":1}'),), stop=None),
    vector(
        "cut inside a call", chunk(partial(("$.a", "x"), ("$.b", 1), ("$.a", "y"), name="f")), calls=(Call("f", '{"a":"x","b":1,"a":"xy"', "truncated"),), stop=None,
        repairs={"arguments_out_of_order": 1}, losses={"ollama": {"call_withheld": 1}},
    ),
    vector("a frame that is no JSON", chunk(text("Hi")), b"{oops}", STOP, text="Hi", stop=None, fault="BrokenFrame"),
    vector("text behind an array", array(chunk(text("Hi"))) + b"x", text="Hi", stop=None, fault="BrokenFrame"),
    vector("a whole body of something else", b'{"x":1}', stop=None, repairs={"sse_bare_json": 1, "last_event_unterminated": 1}, fault="NotThisDialect"),
    vector("a list of something else", b"[1,2]", stop=None, fault="NotThisDialect"),
    vector("a web page", b"<html>\n", stop=None, repairs={"sse_field_unknown": 1}, fault="NotThisDialect"),
    vector("an index of 2^63", chunk(text("Hi"), index=2**63), stop=None, fault="IndexTooLarge"),
]  # fmt: skip

VECTORS = [*HEALTHY, *REPAIRED, *BROKEN]
