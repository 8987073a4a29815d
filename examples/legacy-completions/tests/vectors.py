"""Streams of the dialect, written by hand: a fact each, and what must come of it. One table, every driver."""

from collections.abc import Mapping
from typing import Any

import orjson
from attrs import field, frozen

HEAD = {"id": "cmpl-7", "object": "text_completion", "created": 1700000000, "model": "m-1"}
DONE = b"[DONE]"


@frozen(kw_only=True)
class Vector:
    name: str
    body: bytes
    text: str = "Hi"
    stop: str | None = "stop"  #: None for a stream without a clean end
    stop_sequence: str | None = None
    repairs: Mapping[str, int] = field(factory=dict)
    losses: Mapping[str, int] = field(factory=dict)  #: of a translation into openai-chat
    fault: str | None = None  #: the class of the error that breaks the reading
    provider_error: tuple[str, str] | None = None

    def __str__(self) -> str:
        return self.name.replace(" ", "-")


def sse(*payloads: Any) -> bytes:
    return b"".join(b"data: %b\n\n" % (one if isinstance(one, bytes) else orjson.dumps(one)) for one in payloads)


def chunk(text: str = "", finish: str | None = None, *, index: Any = 0, **fields: Any) -> dict[str, Any]:
    choice = {"text": text, "index": index, "logprobs": None, "finish_reason": finish}
    return {**HEAD, "choices": [{**choice, **fields}]}


def vector(name: str, *payloads: Any, **expected: Any) -> Vector:
    body = payloads[0] if len(payloads) == 1 and isinstance(payloads[0], bytes) else sse(*payloads)
    return Vector(name=name, body=body, **expected)


STOP = chunk(finish="stop")
USAGE = {**HEAD, "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}}
LOGPROBS = {"tokens": ["Hi"], "token_logprobs": [-0.5], "top_logprobs": None, "text_offset": [0]}

#: Blank but for the filter's results: nothing tells it from the first chunk of a Chat stream.
AZURE = "the first chunk of Azure"

HEALTHY = [
    vector("text", chunk("Hel"), chunk("lo \u2028"), STOP, DONE, text="Hello \u2028"),
    vector("usage", chunk("Hi"), STOP, USAGE, DONE),
    vector("usage null until the end", {**chunk("Hi"), "usage": None}, {**STOP, "usage": None}, USAGE, DONE),
    vector("the reason with the last text", chunk("H"), chunk("i", "length"), DONE, stop="length"),
    vector("content filter", chunk("Hi"), chunk(finish="content_filter"), DONE, stop="content_filter"),
    vector("CRLF and comments", b": hello\n\n" + sse(chunk("Hi"), STOP, DONE).replace(b"\n", b"\r\n")),
    vector("no [DONE]", chunk("Hi"), STOP),
    vector("two choices", chunk("Hi"), chunk("Ho", index=1), chunk(finish="length", index=1), STOP, DONE),
    vector(
        "the stop sequence of vLLM", chunk("Hi"), chunk(finish="stop", stop_reason="END"), DONE,
        stop="stop_sequence", stop_sequence="END", losses={"stop_sequence": 1, "stop_reason": 1},
    ),
    vector("the stop token of vLLM", chunk("Hi"), chunk(finish="stop", stop_reason=7), DONE, losses={"metadata": 1}),
    vector(
        "log probabilities and fields of servers", {**chunk("Hi", logprobs=LOGPROBS, token_ids=[7]), "system_fingerprint": "fp"},
        {**STOP, "timings": {"n": 1}}, DONE, losses={"logprobs": 1, "metadata": 2, "response_fields": 1},
    ),
    vector(
        AZURE, {**HEAD, "id": "", "object": "", "model": "", "choices": [], "prompt_filter_results": [1]},
        chunk("Hi"), STOP, DONE, losses={"response_fields": 1},
    ),
    vector(
        "an error", chunk("Hi"), {"error": {"message": "over", "type": "rate_limit_exceeded", "code": None}},
        stop=None, provider_error=("rate_limit", "over"),
    ),
]  # fmt: skip

BROKEN = [
    vector("cut between chunks", chunk("Hi"), stop=None),
    vector("cut in a chunk", sse(chunk("Hi"), chunk("there"))[:-40], stop=None),
    vector("[DONE] without a reason", chunk("Hi"), DONE, stop=None),
    vector("no blank line behind the last event", sse(chunk("Hi"), STOP)[:-2], repairs={"last_event_unterminated": 1}),
    vector("a choice without an index", {**HEAD, "choices": [{"text": "Hi"}]}, STOP, DONE, repairs={"choice_index_missing": 1}),
    vector("an index that is text", chunk("Hi", index="0"), STOP, DONE, repairs={"index_invalid": 1}),
    vector("text that is a number", chunk("Hi"), {**HEAD, "choices": [{"text": 7, "index": 0}]}, STOP, DONE, repairs={"field_invalid": 1}, losses={"unknown_event": 1}),
    vector("a choice that is null", {**HEAD, "choices": [{"text": "Hi", "index": 0}, None]}, STOP, DONE, repairs={"field_invalid": 1}, losses={"unknown_event": 1}),
    vector("an unknown object", chunk("Hi"), {**HEAD, "object": "odd"}, STOP, DONE, losses={"unknown_event": 1}),
    vector("more after [DONE]", chunk("Hi"), STOP, DONE, {**USAGE}, repairs={"after_end": 1}),
    vector("vLLM aborts", chunk("Hi"), chunk(finish="abort"), DONE, stop=None, provider_error=("server", "…")),
    vector(
        "an error that is text", chunk("Hi"), {"error": "overheated"}, stop=None,
        repairs={"error_shape": 1}, provider_error=("server", "overheated"),
    ),
    vector(
        "the flat error of vLLM", {"object": "error", "message": "too long", "type": "BadRequestError", "code": 400},
        text="", stop=None, repairs={"error_shape": 1}, provider_error=("invalid_request", "too long"),
    ),
    vector("a chunk that is no JSON", chunk("Hi"), b"{oops}", STOP, DONE, stop=None, fault="BrokenFrame"),
    vector("a stream of Chat", {**HEAD, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "Hi"}}]}, text="", stop=None, fault="NotThisDialect"),
    vector("a web page", b"<html>\n", text="", stop=None, repairs={"sse_field_unknown": 1}, fault="NotThisDialect"),
    vector("an absurd index", chunk("Hi", index=2**63), STOP, DONE, text="", stop=None, fault="IndexTooLarge"),
]  # fmt: skip

VECTORS = [*HEALTHY, *BROKEN]
