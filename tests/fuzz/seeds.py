"""What fuzzing begins with: our vectors, requests and answers made from them, schemas, and recordings where there are some."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

from streamkit import decode_request, decode_response, encode_request, encode_response
from streamkit.conversation.collector import Collector
from streamkit.dialects import DIALECTS
from streamkit.errors import StreamkitError
from streamkit.lab.recording import End, Read, RecordedRequest, RecordedResponse, Recording, lines_of
from streamkit.machines import Chain
from streamkit.report import StreamReport
from tests.corpora import CORPORA, requests
from tests.fuzz.targets import NAMES, WITH_BODIES
from tests.lab.recording.cassettes import cassette, entry
from tests.laws.running import machines, recorded
from tests.vectors import VECTORS
from tests.whole_answers import ANSWERING_WHOLE

#: A longer recording is one more of the same frames.
SEED_BYTES = 20_000
FRAMINGS = {"sse": b"data: x\r\n\r\n: c\nid: 1\nevent: e\ndata\ndata: y\n\nretry: 5\n\n", "ndjson": b'{"a":1}\n\n[2]\r\n3',
            "array": b'[{"a":"}"},\n{"b":[1]}]', "binary": b""}  # fmt: skip
SCHEMAS: list[tuple[Any, str]] = [
    ({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}, '{"a":"x"}'),
    ({"properties": {"a": {"enum": ["x", 1, None, 1e300]}}, "additionalProperties": False}, '{"a":1.0}'),
    ({"properties": {"a": {"multipleOf": 0.1, "minimum": 1, "exclusiveMaximum": 1e9}}}, '{"a":1e400}'),
    ({"properties": {"a": {"pattern": "^(?=a)b", "maxLength": 3}}, "patternProperties": {"^x": {"format": "uri"}}}, '{"x":"ä"}'),
    ({"anyOf": [{"required": ["a"]}, {"not": {"type": "object"}}], "$defs": {"e": {"$ref": "#"}}}, '{"a":[]}'),
    ({"properties": {"a": {"$ref": "#/$defs/e"}}, "$defs": {"e": {"items": {"$ref": "#/$defs/e"}}}}, '{"a":[[[]]]}'),
    ({"properties": {"a": {"prefixItems": [{}, False], "uniqueItems": True, "contains": {"const": 1}}}}, '{"a":[1]}'),
    ({"if": {"required": ["a"]}, "then": {"dependentSchemas": {"a": {"unevaluatedProperties": False}}}}, '{"a":1}'),
    ({"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"a": {"$id": "#x"}}, "items": [{}]}, "{}"),
    ({"$dynamicAnchor": "n", "properties": {"a": {"$dynamicRef": "#n"}}, "propertyNames": {"maxLength": 1}}, '{"a":{}}'),
]  # fmt: skip
CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1.0, "b": [1e21, "ü"]}'}}
REQUEST = {
    "model": "m",
    "stream": True,
    "temperature": 0.5,
    "max_tokens": 100,
    "stop": ["x"],
    "messages": [
        {"role": "system", "content": "s"},
        {"role": "user", "content": [{"type": "text", "text": "t"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call_1", "content": "r"},
        {"role": "user", "content": "go on"},
    ],
    "tools": [{"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMAS[0][0], "strict": True}}],
    "tool_choice": {"type": "function", "function": {"name": "f"}},
    "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}},
}  # fmt: skip


def _streams() -> Iterator[tuple[str, bytes]]:
    yield from ((vector.dialect, vector.body) for vector in VECTORS)
    yield from ((stream.dialect, stream.body) for stream in recorded() if len(stream.body) <= SEED_BYTES)


def _requests() -> Iterator[tuple[str, bytes]]:
    neutral = decode_request(json.dumps(REQUEST).encode(), "openai-chat")
    for name in WITH_BODIES:
        yield name, encode_request(neutral, name, repair=True, emulate=True)
    for name in WITH_BODIES if CORPORA is not None else ():
        for request in requests(name)[:200]:
            body = json.dumps(request.body).encode()
            if len(body) <= SEED_BYTES:
                yield name, body


def _responses() -> Iterator[tuple[str, bytes]]:
    for vector in VECTORS:
        report = StreamReport()
        chain = Chain(*machines(vector.dialect, report))
        collector = Collector(vector.dialect, report)
        events = chain.feed(vector.body)
        if chain.fault is not None:
            continue
        collector.feed(events + chain.finish())
        if not report.clean:
            continue
        for name in ANSWERING_WHOLE:
            try:
                body = encode_response(collector.finish(), name)
                decode_response(body, name)
            except StreamkitError:
                continue
            yield name, body


def _errors() -> Iterator[tuple[str, bytes]]:
    for name in WITH_BODIES:
        yield name, b'{"error":{"message":"m","type":"overloaded_error","code":"rate_limit_exceeded","param":null}}'
        yield name, b"<html><title>502 Bad Gateway</title>"


def _socket_messages() -> Iterator[tuple[str, bytes]]:
    for name, body in _requests():
        yield name, b'{"type":"response.create",' + body.lstrip()[1:]
    yield "anthropic", b'{"type":"error","status":429,"error":{"message":"m","headers":{"a":"b"}},"headers":{"a":1}}'
    yield "anthropic", b'{"type":"response.done","response":{"status":"completed"}}'


def _recordings() -> Iterator[tuple[str, bytes]]:
    """Our own form, a cassette of reel-vcr and fixtures of aimock."""
    reads = (Read(0.5, b"data: {}\n\n"), Read(1.0, b"\xff"))
    recording = Recording(
        id="r1",
        at="2026-11-27T00:00:00Z",
        dialect="openai-chat",
        removed=("request.headers",),
        request=RecordedRequest(
            path="/v1/chat/completions?a=b", headers={"a": "b"}, body=b'{"a":[1.0]}', body_sha256="0"
        ),
        response=RecordedResponse(t=0.5, status=429, headers={"content-type": "text/event-stream"}),
        reads=reads,
        end=End.of(reads, kind="timeout:idle", t=1.5),
    )
    yield "openai-chat", b"".join(lines_of(recording))
    yield (
        "openai-chat",
        cassette(entry(), entry({"body": {"__reel_raw_base64__": "AAAA"}}, {"body": {"a": 1}, "stream_chunks": None})),
    )
    call = {"type": "toolCall", "name": "f", "arguments": {"a": 1.0}, "id": "c9"}
    usage = {"prompt_tokens": 7, "completion_tokens": 3}
    said = [
        {"content": "Hi", "reasoning": "Hm", "toolCalls": [call], "finishReason": "stop", "usage": usage, "created": 5, "id": "a"},
        {"blocks": [call, {"type": "text", "text": "Let me see."}], "model": "m"},
        {"error": {"message": "m", "type": "rate_limit_error"}, "status": 429, "retryAfter": 3},
    ]  # fmt: skip
    pace = [
        {"streamingProfile": {"ttft": 5, "tps": 10}, "chunkSize": 2},
        {"recordedTimings": {"ttftMs": 5, "interChunkDelaysMs": [1, 2]}, "truncateAfterChunks": 2},
        {"latency": 5, "disconnectAfterMs": 3},
    ]
    for name in WITH_BODIES:
        fixtures = [
            {"match": {"userMessage": "hello"}, "response": response, **more}
            for response, more in zip(said, pace, strict=True)
        ]
        yield name, json.dumps({"fixtures": fixtures}).encode()


def _texts() -> Iterator[str]:
    yield from (text for _, text in SCHEMAS)
    yield '{"a":"\\ud83d\\ude00\\n","b":[-0.0,1E+5,{"":null}],"a":true} '
    yield from (call.arguments for vector in VECTORS for call in vector.calls)


@cache
def seeds(target: str) -> tuple[bytes, ...]:
    """The inputs that fuzzing of a target begins with, each once."""
    if target == "framing":
        bodies = [(NAMES_OF_FRAMING[dialect], body) for dialect, body in _streams()] + list(FRAMINGS.items())
    elif target == "requests":
        bodies = list(_requests())
    elif target == "responses":
        bodies = list(_responses())
    elif target == "errors":
        bodies = list(_errors())
    elif target == "sockets":
        bodies = [*_socket_messages()]
    elif target == "recordings":
        bodies = list(_recordings())
    elif target == "partial_json":
        bodies = [("any", text.encode()) for text in _texts()]
    elif target == "schema":
        bodies = [("any", f"{json.dumps(document)}\n{text}".encode()) for document, text in SCHEMAS]
    else:
        bodies = list(_streams())
    found = [f"{name} {NAMES[at % len(NAMES)]} {at * 7919}\n".encode() + body for at, (name, body) in enumerate(bodies)]
    return tuple(dict.fromkeys(found))


NAMES_OF_FRAMING = {
    name: {"ollama": "ndjson", "gemini": "array", "bedrock": "binary"}.get(name, "sse") for name in DIALECTS
}
