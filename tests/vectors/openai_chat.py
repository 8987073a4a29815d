"""Chat streams, healthy and broken. Facts: dialects.md §1, quirks.md §1-§9."""

from __future__ import annotations

from typing import Any

from tests.vectors.vector import Call, Vector, sse

HEAD = {"id": "chatcmpl-7", "object": "chat.completion.chunk", "created": 1700000000, "model": "m-1"}
DONE = b"[DONE]"


def chunk(delta: Any = None, finish: str | None = None, *, index: Any = 0, **fields: Any) -> dict[str, Any]:
    choice = {"index": index, "delta": {} if delta is None else delta, "finish_reason": finish}
    return {**HEAD, "choices": [choice], **fields}


def said(text: str) -> dict[str, Any]:
    return chunk({"content": text})


def calls(*fragments: Any, finish: str | None = None, choice: int = 0) -> dict[str, Any]:
    return chunk({"tool_calls": list(fragments)}, finish, index=choice)


def call(index: Any = 0, id: Any = None, name: Any = None, arguments: Any = None) -> dict[str, Any]:
    fragment: dict[str, Any] = {} if index is None else {"index": index}
    function = {}
    if id is not None:
        fragment |= {"id": id, "type": "function"}
    if name is not None:
        function["name"] = name
    if arguments is not None:
        function["arguments"] = arguments
    return {**fragment, "function": function} if function else fragment


def older(text: str, finish: str | None = None) -> dict[str, Any]:
    """A chunk of the older Completions API."""
    choice = {"text": text, "index": 0, "logprobs": None, "finish_reason": finish}
    return {**HEAD, "object": "text_completion", "choices": [choice]}


OLDER_USAGE = {
    **HEAD,
    "object": "text_completion",
    "choices": [],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1},
}
ROLE = chunk({"role": "assistant", "content": ""})
STOP = chunk(finish="stop")
CALLED = chunk(finish="tool_calls")
USAGE = {**HEAD, "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}}


def vector(name: str, *payloads: Any, **expected: Any) -> Vector:
    body = payloads[0] if len(payloads) == 1 and isinstance(payloads[0], bytes) else sse(*payloads)
    return Vector(name=name, dialect="openai-chat", body=body, **expected)


def called(name: str, *payloads: Any, **expected: Any) -> Vector:
    """A stream of calls: role first, ``tool_calls`` and ``[DONE]`` last."""
    return vector(name, ROLE, *payloads, CALLED, DONE, **{"stop": "tool_calls", **expected})


#: An image that a model made.
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}

HEALTHY = [
    vector("text", ROLE, said("Hel"), said("lo \u2028 \N{GRINNING FACE}"), STOP, USAGE, DONE, text="Hello \u2028 \N{GRINNING FACE}"),
    vector("text with CRLF", sse(ROLE, said("Hi"), STOP, DONE).replace(b"\n", b"\r\n"), text="Hi"),
    vector("text with CR", sse(ROLE, said("Hi"), STOP, DONE).replace(b"\n", b"\r"), text="Hi"),
    vector("byte order mark and comments", b"\xef\xbb\xbf: hello\n\n" + sse(ROLE, said("Hi")) + b": ping\n" + sse(STOP, DONE), text="Hi"),
    vector("data over two lines", sse(ROLE) + sse(said("Hi")).replace(b',"created"', b',\ndata: "created"') + sse(STOP, DONE), text="Hi"),
    vector(
        "images that the model made", ROLE, said("Hi"), chunk({"images": [PICTURE]}), chunk({"images": [{**PICTURE, "index": 1}]}), STOP, DONE, text="Hi",
        losses={**{d: {"media_output": 2} for d in ("anthropic", "cohere", "ollama")}, **{d: {"media_output": 0, "metadata": 0} for d in ("gemini", "openai-responses", "mistral", "bedrock")}},
    ),
    vector("a list of images with one that is none", ROLE, said("Hi"), chunk({"images": [PICTURE, {"type": "film"}]}), STOP, DONE, text="Hi", losses={"anthropic": {"metadata": 1}}),
    vector("no [DONE]", ROLE, said("Hi"), STOP, text="Hi", losses={"anthropic": {"usage_unknown": 1}}),
    called(
        "two calls in turn",
        calls(call(0, "a", "f", "")), calls(call(0, arguments='{"x"')), calls(call(0, arguments=":1.0}")),
        calls(call(1, "b", "g", "")), calls(call(1, arguments="{}")),
        calls=(Call("f", '{"x":1.0}', id="a"), Call("g", "{}", id="b")), losses={"ollama": {"call_id": 2}},
    ),
    called(
        "two calls that interleave",
        calls(call(0, "a", "f", "")), calls(call(1, "b", "g", "")),
        calls(call(0, arguments='{"x":'), call(1, arguments='{"y":')), calls(call(1, arguments="2}"), call(0, arguments="1}")),
        calls=(Call("f", '{"x":1}'), Call("g", '{"y":2}')),
    ),
    called(
        "indices are labels",
        calls(call(7, "a", "f", '{"x":1}')), calls(call(3, "b", "g", '{"y":2}')),
        calls=(Call("f", '{"x":1}'), Call("g", '{"y":2}')),
    ),
    called(
        "numbers, key order and escapes stay what they are",
        calls(call(0, "a", "f", '{"z":1.0,"a":1e21,"big":18446744073709551616,"n":' + "7" * 100)),
        calls(call(0, arguments=',"s":"\\u00e9\\/ \\ud83d\\ude00","a":-0.0}')),
        calls=(Call("f", '{"z":1.0,"a":1e21,"big":18446744073709551616,"n":' + "7" * 100 + ',"s":"\\u00e9\\/ \\ud83d\\ude00","a":-0.0}'),),
    ),
    called("pretty-printed arguments", calls(call(0, "a", "f", '{\r\n  "x": "\u2028"\n}')), calls=(Call("f", '{\r\n  "x": "\u2028"\n}'),)),
    called("no arguments at all", calls(call(0, "a", "f", "")), calls=(Call("f", "", "empty"),)),
    vector(
        "two choices",
        ROLE, chunk({"role": "assistant", "content": "one"}, index=1), said("zero"), chunk(finish="length", index=1), STOP, DONE,
        text="zero", losses={"anthropic": {"extra_choice": 1}, "ollama": {"extra_choice": 1}},
    ),
    vector("reasoning", ROLE, chunk({"reasoning_content": "hm"}), said("Hi"), STOP, DONE, reasoning="hm", text="Hi"),
    vector(
        "refusal", ROLE, chunk({"refusal": "No"}), chunk({"refusal": "pe"}), STOP, DONE, refusal="Nope", stop="refusal",
        losses={"anthropic": {"refusal_as_text": 1}, "ollama": {"refusal_as_text": 1, "stop_reason": 1}},
    ),
    vector("length", ROLE, said("Hi"), chunk(finish="length"), DONE, text="Hi", stop="length"),
    vector(
        "content filter", ROLE, chunk(finish="content_filter"), DONE, stop="content_filter",
        losses={"anthropic": {"stop_reason": 1}, "ollama": {"stop_reason": 1}},
    ),
    vector(
        "stop sequence of vLLM", ROLE, said("Hi"), {**HEAD, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "stop_reason": "END"}]}, DONE,
        text="Hi", stop="stop_sequence",
        losses={"ollama": {"stop_reason": 1, "stop_sequence": 1}},
    ),
    vector(
        "things that only Chat has",
        chunk({"role": "assistant", "content": ""}, system_fingerprint="fp"),
        {**HEAD, "choices": [{"index": 0, "delta": {"content": "Hi"}, "logprobs": {"content": [{"token": "Hi"}]}, "content_filter_results": {"hate": 1}, "finish_reason": None}]},
        chunk({"audio": {"id": "au"}}), chunk({"annotations": [{"type": "url_citation"}]}),
        {"object": "chat.odd", "x": 1}, STOP,
        {**USAGE, "usage": {**USAGE["usage"], "prompt_tokens_details": {"cached_tokens": 3}}}, DONE,
        text="Hi",
        losses={
            "anthropic": {"response_fields": 1, "logprobs": 1, "metadata": 1, "audio": 1, "citation": 1, "unknown_event": 1},
            "ollama": {"response_fields": 1, "logprobs": 1, "metadata": 1, "audio": 1, "citation": 1, "unknown_event": 1, "usage_detail": 1},
        },
    ),
    called(
        "custom tool", calls({"index": 0, "id": "a", "type": "custom", "custom": {"name": "sh", "input": "ls "}}), calls({"index": 0, "custom": {"input": "-l"}}),
        calls=(Call("sh", "ls -l"),),
        losses={dialect: {"custom_tool_wrapped": 1} for dialect in ("anthropic", "ollama")},
    ),
    called(
        "a call without function", calls({"index": 0, "id": "a", "type": "function", "name": "f", "arguments": "{}"}), calls=(Call("f", "{}"),), repairs={"call_shape": 1},
    ),
    *(
        called(
            f"free text that is JSON twice: {first.strip()}",
            *(calls({"index": 0, **({} if at else {"id": "a", "type": "custom"}), "custom": {"input": piece, **({} if at else {"name": "sh"})}}) for at, piece in enumerate((first, '{"a":1}\n'))),
            calls=(Call("sh", first + '{"a":1}\n'),), losses={dialect: {"custom_tool_wrapped": 1} for dialect in ("anthropic", "ollama")},
        )
        for first in ("{}", '{"a":1}\n', '{"a":')
    ),
    called("arguments of one word", calls(call(0, "a", "f", "tru")), calls=(Call("f", "tru", "truncated"),), stop="length", repairs={"stop_conflict": 1}, losses={"ollama": {"call_withheld": 1}}),
    called("malformed arguments", calls(call(0, "a", "f", "{x}")), calls=(Call("f", "{x}", "malformed"),), losses={"ollama": {"arguments_wrapped": 1}}),
    called("arguments that are a list", calls(call(0, "a", "f", "[1]")), calls=(Call("f", "[1]", "not_an_object"),), losses={"ollama": {"arguments_wrapped": 1}}),
    vector(
        "opaque and signed reasoning of OpenRouter",
        ROLE, chunk({"reasoning_details": [{"type": "reasoning.text", "text": "hm", "signature": "sig", "format": "google-v1", "index": 0}, {"type": "reasoning.encrypted", "data": "xx", "index": 1}]}), said("Hi"), STOP, DONE,
        reasoning="hm", text="Hi",
        losses={"ollama": {"reasoning_signature": 1, "reasoning_opaque": 1}},
    ),
]  # fmt: skip

REPAIRED = [
    vector("a field that the standard does not know", b"hello: there\n" + sse(ROLE, said("Hi"), STOP, DONE), text="Hi", repairs={"sse_field_unknown": 1}),
    vector("an unfinished frame behind the reason", sse(ROLE, said("Hi"), STOP) + b'data: {"a"', text="Hi", repairs={"fault_after_end": 1}),
    vector(
        "an error field", sse(ROLE, said("Hi")) + b'error: {"code":500,"message":"out of slots"}\n\n', text="Hi", stop=None,
        repairs={"sse_error_field": 1, "error_shape": 1}, provider_error="out of slots",
    ),
    vector("a comment as data", ROLE, b": OPENROUTER PROCESSING", said("Hi"), STOP, DONE, text="Hi", repairs={"comment_as_data": 1}),
    vector("a last event without its blank line", sse(ROLE, said("Hi"), STOP)[:-2], text="Hi", repairs={"last_event_unterminated": 1}),
    vector("bytes that are not UTF-8", sse(ROLE, said("a\xffb"), STOP, DONE).replace("a\xffb".encode(), b"a\xffb"), text="a\ufffdb", repairs={"invalid_utf8": 1}),
    vector("half a surrogate pair", ROLE, sse(said("a?b"))[6:-2].replace(b"?", b"\\ud83d"), STOP, DONE, text="a\ufffdb", repairs={"lone_surrogate": 1}),
    vector("a character in two deltas", sse(ROLE, said("a?"), said("!b"), STOP, DONE).replace(b"?", b"\\ud83d").replace(b"!", b"\\ude00"), text="a\N{GRINNING FACE}b", repairs={"character_cut": 1}),
    vector("a number beyond doubles", ROLE, sse(said("Hi"))[6:-2].replace(b"1700000000", b"1E400"), STOP, DONE, text="Hi", repairs={"number_out_of_range": 1}),
    vector("an error that is text", ROLE, said("Hi"), {"error": "overheated"}, text="Hi", stop=None, repairs={"error_shape": 1}, provider_error="overheated"),
    vector(
        "an error, then more", ROLE, said("Hi"), {"error": {"message": "over", "type": "overloaded", "code": "x"}}, said("!"), calls(call(0, "a", "f", "{}")), DONE,
        text="Hi", stop=None, repairs={"after_error": 2}, provider_error="over", losses={"anthropic": {"error_detail": 1}, "ollama": {"error_detail": 1}},
    ),
    vector("payloads that are no objects", ROLE, b"null", b'"ping"', [said("Hi")], STOP, DONE, text="Hi", repairs={"payload_no_object": 2, "payload_in_list": 1}),
    called(
        "an object in the place of a list, and of a text", chunk({"reasoning_content": {"text": "hm"}}), chunk({"tool_calls": call(0, "a", "f", "{}")}), reasoning="hm", calls=(Call("f", "{}"),),
        repairs={"text_as_object": 1, "list_missing": 1},
    ),
    vector("a choice without an index", {**HEAD, "choices": [{"delta": {"content": "Hi"}}]}, STOP, DONE, text="Hi", repairs={"choice_index_missing": 1}),
    vector("an index that is text", chunk({"content": "Hi"}, index="0"), STOP, DONE, text="Hi", repairs={"index_invalid": 1}),
    vector("a choice without a delta", ROLE, {**HEAD, "choices": [{"index": 0}, None]}, said("Hi"), STOP, DONE, text="Hi", repairs={"delta_missing": 1, "field_invalid": 1}),
    vector(
        "content as a list", chunk({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "Hi"}]}), STOP, DONE,
        text="Hi", reasoning="hm", repairs={"content_as_list": 1},
    ),
    called("arguments as an object", sse(calls(call(0, "a", "f", {"x": 1})))[6:-2].replace(b'{"x":1}', b'{"x": 1.0}'), calls=(Call("f", '{"x": 1.0}'),), repairs={"arguments_not_text": 1}),
    called("arguments as an object, twice", calls(call(0, "a", "f", {"x": 1})), calls(call(0, arguments={"x": 2})), calls=(Call("f", '{"x":2}'),), repairs={"arguments_not_text": 2, "arguments_replaced": 1}),
    called("blank ids and names", calls(call(0, "a", "f", '{"x"')), calls(call(0, "", "", ":1}")), calls(call(0, "null")), calls=(Call("f", '{"x":1}', id="a"),), repairs={"identity_blank": 3}),
    called("no index", calls(call(None, "a", "f", '{"x":')), calls(call(None, arguments="1}")), calls(call(None, "b", "f", "{}")), calls=(Call("f", '{"x":1}', id="a"), Call("f", "{}", id="b")), repairs={"index_missing": 3}),
    called("a start without the index that its text has", calls(call(None, "a", "f")), calls(call(1, "b", "g", "{}")), calls(call(0, arguments='{"x":1}')), calls=(Call("f", '{"x":1}', id="a"), Call("g", "{}", id="b")), repairs={"index_missing": 2}),
    called("one index for two calls", calls(call(0, "a", "f", '{"x":1}')), calls(call(0, "b", "g", '{"y":2}')), calls=(Call("f", '{"x":1}', id="a"), Call("g", '{"y":2}', id="b")), repairs={"index_reused": 1}),
    called("one call at two indices", calls(call(0, "a", "f", '{"x":')), calls(call(1, "a", None, "1}")), calls=(Call("f", '{"x":1}', id="a"),), repairs={"index_changed": 1, "id_repeated": 1}),
    called("no id", calls(call(0, None, "f", "{}")), calls=(Call("f", "{}"),), repairs={"id_missing": 1}),
    called("an id that comes late", calls(call(0, None, "f", '{"x":')), calls(call(0, "a", None, "1}")), calls=(Call("f", '{"x":1}'),), repairs={"id_missing": 1, "id_late": 1}),
    called("id and name in each fragment", calls(call(0, "a", "f", '{"x":')), calls(call(0, "a", "f", "1}")), calls=(Call("f", '{"x":1}', id="a"),), repairs={"id_repeated": 1, "name_repeated": 1}),
    called("another id in each fragment", calls(call(0, "a", "f", '{"x":')), calls(call(0, "b", None, "1}")), calls=(Call("f", '{"x":1}', id="a"),), repairs={"id_changed": 1}),
    called("the function's name as id", calls(call(0, "f", "f", '{"x":1}')), calls(call(1, "f", "f", '{"x":2}')), calls=(Call("f", '{"x":1}', id="f"), Call("f", '{"x":2}')), repairs={"id_duplicate": 1}),
    called("a name in pieces", calls(call(0, "a", "edit_ex")), calls(call(0, None, "isting_file")), calls(call(0, arguments="{}")), calls=(Call("edit_existing_file", "{}"),), repairs={"name_pieces": 1}),
    called("another name after arguments", calls(call(0, "a", "f", '{"x":')), calls(call(0, None, "g", "1}")), calls=(Call("f", '{"x":1}'),), repairs={"name_changed": 1}),
    vector("a call without anything", ROLE, said("Hi"), calls({"index": 0, "id": "", "type": "function"}), STOP, DONE, text="Hi", repairs={"identity_blank": 1, "call_ghost": 1}),
    called("a call without a name", calls(call(0, "a", None, '{"x":1}')), calls=(Call("", '{"x":1}', "truncated"),), repairs={"call_nameless": 1}, stop=None, provider_error="the model called a tool without a name"),
    called("the whole arguments again", calls(call(0, "a", "f", '{"x":')), calls(call(0, arguments="1}")), calls(call(0, arguments='{"x":1}')), calls=(Call("f", '{"x":1}'),), repairs={"arguments_repeated": 1}),
    called("all arguments so far in each fragment", calls(call(0, "a", "f", '{"x')), calls(call(0, arguments='{"x":')), calls(call(0, arguments='{"x":1}')), calls=(Call("f", '{"x":1}'),), repairs={"arguments_cumulative": 2}),
    called("an empty object in front", calls(call(0, "a", "f", "{}")), calls(call(0, arguments='{"x"')), calls(call(0, arguments=":1}")), calls=(Call("f", '{"x":1}'),), repairs={"empty_object_prefix": 1}),
    vector("an unknown reason with calls", ROLE, calls(call(0, "a", "f", "{}")), chunk(finish="bored"), DONE, calls=(Call("f", "{}"),), stop="tool_calls", repairs={"stop_unknown_with_calls": 1}),
    vector("stop with calls", ROLE, calls(call(0, "a", "f", "{}")), STOP, DONE, calls=(Call("f", "{}"),), stop="tool_calls", repairs={"stop_with_calls": 1}),
    called("tool_calls without calls", said("Hi"), text="Hi", stop="stop", repairs={"calls_without_call": 1}),
    called(
        "a call in two members", chunk({"function_call": {"name": "f", "arguments": '{"x"'}, "tool_calls": [call(0, "a", "f", '{"x"')]}),
        chunk({"function_call": {"arguments": ":1}"}, "tool_calls": [call(0, arguments=":1}")]}), calls=(Call("f", '{"x":1}', id="a"),), repairs={"said_twice": 2},
    ),
    vector("a stop reason of Anthropic's", ROLE, said("Hi"), chunk(finish="max_tokens"), DONE, text="Hi", stop="length", repairs={"stop_reason_foreign": 1}),
    vector("two stop reasons", ROLE, said("Hi"), STOP, chunk(finish="length"), DONE, text="Hi", stop="length", repairs={"stop_conflict": 1}),
    vector("one stop reason twice", ROLE, said("Hi"), STOP, STOP, DONE, text="Hi"),
    vector("no stop reason but complete calls", ROLE, calls(call(0, "a", "f", '{"x":1}')), DONE, calls=(Call("f", '{"x":1}'),), stop="tool_calls", repairs={"finish_derived": 1}),
    vector("more after [DONE]", ROLE, said("Hi"), STOP, DONE, said("!"), text="Hi", repairs={"after_end": 1}),
]  # fmt: skip

BROKEN = [
    vector("text that is cut", sse(ROLE, said("Hi"), said("there"))[:-12], text="Hi", stop=None),
    vector("text without a finish reason", ROLE, said("Hi"), DONE, text="Hi", stop=None),
    vector(
        "interleaved calls that are cut", ROLE, calls(call(0, "a", "f", '{"x":')), calls(call(1, "b", "g", '{"y":')),
        calls=(Call("f", '{"x":', "truncated"), Call("g", '{"y":', "truncated")), stop=None,
        losses={"anthropic": {"cut_call": 1}, "ollama": {"call_withheld": 2}},
    ),
    vector("a complete call that is cut", ROLE, calls(call(0, "a", "f", '{"x":1}')), calls=(Call("f", '{"x":1}', "truncated"),), stop=None, losses={"ollama": {"call_withheld": 1}}),
    vector(
        "a call that goes on after a complete object", ROLE, calls(call(0, "a", "f", '{"x":1}')), calls(call(1, "b", "g", '{"y":2}')), calls(call(0, arguments="}")), CALLED, DONE,
        calls=(Call("f", '{"x":1}}', "malformed"), Call("g", '{"y":2}')), stop="tool_calls", losses={"anthropic": {"late_arguments": 1}, "ollama": {"arguments_wrapped": 1}},
    ),
    vector("a frame that is no JSON", ROLE, said("Hi"), b"{oops}", STOP, DONE, text="Hi", stop=None, fault="BrokenFrame"),
    vector(
        "a frame that is no JSON inside a call", ROLE, calls(call(0, "a", "f", '{"x":1}')), b"{oops}", CALLED, DONE,
        calls=(Call("f", '{"x":1}', "truncated"),), stop=None, fault="BrokenFrame", losses={"ollama": {"call_withheld": 1}},
    ),
    vector("an index of 2^63", ROLE, said("Hi"), calls(call(2**63, "a", "f", "{}")), CALLED, DONE, text="Hi", stop=None, fault="IndexTooLarge"),
    vector("a web page", b"<!DOCTYPE html><html><title>502 Bad Gateway</title></html>\n", stop=None, fault="NotThisDialect", repairs={"sse_field_unknown": 1}),
    vector("the older Completions API", older("Hi"), older("", "stop"), OLDER_USAGE, DONE, stop=None, fault="NotThisDialect"),
    vector("the older Completions API, next to Azure's filter results", {"id": "", "object": "", "choices": []}, older("Hi", "stop"), DONE, stop=None, fault="NotThisDialect"),
    vector("nothing", b"", stop=None),
    vector("aborted by the server", ROLE, said("Hi"), chunk(finish="abort"), DONE, text="Hi", stop=None, provider_error="the provider gave the finish reason 'abort': the server aborted the request"),
]  # fmt: skip

VECTORS = [*HEALTHY, *REPAIRED, *BROKEN]
