"""What L8 grows, by one table: hostile shapes of a value, of a run of frames, and of what stands between them.

A row of ``VALUES``, ``RUNS`` or ``BETWEEN`` is a shape, and adding one is adding a line: it is put into each place of each
kind of document there is (frames of every vector, a request, a whole answer and an error of every dialect) and goes through
everything that reads those. Work is counted, never timed: bytecode instructions (``steps``), and where valgrind is
installed those of the processor (``instructions``), which see what C does within one call as well: a pattern that goes
back, a list that is searched, bytes that are copied.
"""

from __future__ import annotations

import copy
import gc
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import orjson
from attrs import evolve, frozen

from benchmarks.check import totals
from streamkit import decode_request, decode_response, encode_request, encode_response
from streamkit.collector import Collector
from streamkit.dialects import DIALECTS
from streamkit.errors import StreamkitError
from streamkit.events import Aside, Opaque
from streamkit.framing.frame import Frame
from streamkit.http_errors import decode_error, encode_error
from streamkit.limits import DEFAULT_LIMITS
from streamkit.messages import (
    Choice,
    Media,
    Options,
    Reasoning,
    Request,
    Response,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    Turn,
)
from streamkit.redact import redacted
from streamkit.report import StreamReport
from streamkit.tool_calls.schema import ToolSchemas
from tests.framing import binary
from tests.laws.running import OURS, Stream, chain_of, translate
from tests.vectors.vector import lines, sse

#: By which factor the work may grow when the input doubles.
FACTOR: Final = 2.3

# -- shapes of a value -------------------------------------------------------------------------------------------------


def _raw(text: str) -> Any:
    """JSON text that goes into the document as it is."""
    return orjson.Fragment(text.encode())


#: What a text in a document may be filled with: the unit is said again until the text has 16 characters for each of size.
UNITS: Final = {
    "a long word": "a",
    "many words": "ab ",
    "blanks": " ",
    "blank lines": "\n\n",
    "CRs": "\r",
    "CRLFs": "\r\n",
    "line separators": "\u2028\x85",
    "NULs": "\0",
    "quotes": '"',
    "backslashes": "\\",
    "escaped escapes": "\\u00e9",
    "characters outside the BMP": "\U0001f600",
    "byte order marks": "\ufeff",
    "combining characters": "e\u0301",
    "open braces": "{",
    "open brackets": "[",
    "open members": '{"a":',
    "closed braces": "}",
    "objects": "{}",
    "objects said again": '{"a":1}',
    "minus signs": "-",
    "digits": "9",
    "open thinking": "<think>",
    "closed thinking": "</think>",
    "thinking": "<think>a</think>",
    "half a tag": "<thin",
    "less-than signs": "<",
    "open calls": "<tool_call>",
    "closed calls": "</tool_call>",
    "calls": '<tool_call>{"name":"f","arguments":{}}</tool_call>',
    "function tags": "<function=f>",
    "Mistral's calls": "[TOOL_CALLS]",
    "DeepSeek's markers": "<\uff5ctool\u2581calls\u2581begin\uff5c>",
    "pipes": "<|",
    "fences": "```json\n",
    "paths": "a/",
    "climbing paths": "../",
    "percent escapes": "%41",
    "tokens": "eyJhbGciOiJI",
    "dotted tokens": "eyJ.",
    "keys": "sk-",
    "bearers": "Bearer ",
    "secrets' names": "secret_",
    "members with secrets' names": '"api_key":',
    "data URLs": "data:image/png;base64,",
    "base64": "AAAA",
    "open tags": "<title>",
    "comments of HTML": "<!--",
    "headers": "x-a: b\r\n",
    "citations": "\u301012\u2020source\u3011",
    "marks of citations": "[1]",
    "links": "[a](https://x.example)",
    "dollars": "$ref#/",
    "look-arounds": "(?=a)",
    "groups": "(a*)*",
    "commas": ",",
    "ids": "call_1|",
    "dots": "a.",
    "surrogates": "\ud83d",
}


def _members(size: int, value: str = "1") -> str:
    return "{" + ",".join(f'"zz{number}":{value}' for number in range(size)) + "}"


#: What may stand in any place instead of a value.
VALUES: Final[Mapping[str, Callable[[int], Any]]] = {
    "many digits": lambda size: _raw("9" * size * 4),
    "many decimals": lambda size: _raw("0." + "1" * size * 4),
    "a deep list": lambda size: _raw("[" * size + "]" * size),
    "a deep object": lambda size: _raw('{"a":' * size + "1" + "}" * size),
    "the same key": lambda size: _raw("{" + ",".join(['"a":1'] * size) + "}"),
    "many keys": lambda size: _raw(_members(size)),
    "many empty objects": lambda size: _raw("[" + ",".join(["{}"] * size) + "]"),
    "many numbers": lambda size: _raw("[" + ",".join(str(number) for number in range(size)) + "]"),
    "many words apart": lambda size: _raw("[" + ",".join(f'"w{number}"' for number in range(size)) + "]"),
    "many ids": lambda size: _raw("[" + ",".join(f'{{"id":"i{n}","index":{n}}}' for n in range(size)) + "]"),
}


def filled(unit: str, size: int) -> Any:
    return _raw(json.dumps(unit * (16 * size // len(unit) + 1)))


def counted(value: Any, number: int, kinds: tuple[type, ...] = (int, str)) -> Any:
    """A value whose numbers and ids are others: the ``number``-th of its like."""
    if isinstance(value, dict):
        return {
            key: inner
            if key in {"type", "role", "object", "arguments", "event", "finish_reason"}
            else counted(inner, number, kinds)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [counted(inner, number, kinds) for inner in value]
    if type(value) is int and int in kinds:
        return value + number
    if type(value) is str and str in kinds:
        return f"{value}{number}"
    return value


def identified(value: Any, number: int) -> Any:
    """A value of which only what identifies it is another: ids, indices and names."""
    if isinstance(value, dict):
        return {
            key: counted(inner, number) if key.lower().endswith(("id", "index", "name")) else identified(inner, number)
            for key, inner in value.items()
        }
    return [identified(inner, number) for inner in value] if isinstance(value, list) else value


#: What an array becomes: its members again and again, or each with numbers and names of its own.
LISTS: Final[Mapping[str, Callable[[list[Any], int], list[Any]]]] = {
    "again": lambda items, size: items * size,
    "each with its own ids": lambda items, size: [identified(item, n) for n in range(size) for item in items],
    "each with its own words": lambda items, size: [counted(item, n) for n in range(size) for item in items],
    "each with its own numbers": lambda items, size: [counted(item, n, (int,)) for n in range(size) for item in items],
    "each with its own names": lambda items, size: [counted(item, n, (str,)) for n in range(size) for item in items],
}
#: What an object becomes.
OBJECTS: Final[Mapping[str, Callable[[dict[str, Any], int], Any]]] = {
    "members that nobody knows": lambda value, size: {**value, **{f"zz{number}": number for number in range(size)}},
    "objects that nobody knows": lambda value, size: {**value, **{f"zz{n}": {"a": [n]} for n in range(size)}},
    "within itself": lambda value, size: _nested(value, size // 2),
    "its members by other names": lambda value, size: {**value, **{f"{key}{n}": v for n in range(size) for key, v in [*value.items()][:1]}},
}  # fmt: skip


def _nested(value: dict[str, Any], size: int) -> Any:
    text = json.dumps(value)[1:-1]
    return _raw(
        "{"
        + text
        + ("," if text else "")
        + ('"zz":{' + text + ("," if text else "")) * size
        + '"y":1'
        + "}" * (size + 1)
    )


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The path of each member of a document, and of the document."""
    yield path
    for step, member in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        yield from places(member, (*path, step))


def shapes_of(value: Any) -> Iterator[tuple[str, Callable[[int], Any]]]:
    """Each shape that a value may get, by name."""
    for name, make in VALUES.items():
        yield name, make
    if isinstance(value, str):
        for name, unit in UNITS.items():
            yield name, lambda size, unit=unit: filled(unit, size)
    if isinstance(value, list):
        for name, change in LISTS.items():
            yield name, lambda size, change=change: change(value, size)
    if isinstance(value, dict):
        for name, alter in OBJECTS.items():
            yield name, lambda size, alter=alter: alter(value, size)


def at(value: Any, path: Sequence[Any]) -> Any:
    for step in path:
        value = value[step]
    return value


def put(document: Any, path: tuple[Any, ...], value: Any) -> bytes:
    """The document with another value in one place, as JSON."""
    if not path:
        return orjson.dumps(value)
    made = copy.deepcopy(document)
    at(made, path[:-1])[path[-1]] = value
    return orjson.dumps(made)


# -- shapes of a stream ------------------------------------------------------------------------------------------------


def again(frame: Frame, number: int, kinds: tuple[type, ...] | None = None) -> Frame:
    """A frame whose values of these types are others; without types, its ids, indices and names."""
    try:
        document = orjson.loads(frame.data)
        other = identified(document, number) if kinds is None else counted(document, number, kinds)
        return evolve(frame, data=orjson.dumps(other))
    except (orjson.JSONDecodeError, TypeError):
        return frame


#: What a frame becomes, with the one behind it.
RUNS: Final[Mapping[str, Callable[[Frame, Frame, int], list[Frame]]]] = {
    "again": lambda frame, _, size: [frame] * size,
    "each with its own words": lambda frame, _, size: [again(frame, n, (int, str)) for n in range(size)],
    "each with its own numbers": lambda frame, _, size: [again(frame, n, (int,)) for n in range(size)],
    "each with its own names": lambda frame, _, size: [again(frame, n, (str,)) for n in range(size)],
    "each with its own ids": lambda frame, _, size: [again(frame, n) for n in range(size)],
    "by turns with the next": lambda frame, other, size: [frame, other] * (size // 2),
    "by turns, each with its own numbers": lambda frame, other, size: [
        again(one, n, (int,)) for n in range(size // 2) for one in (frame, other)
    ],
    "by turns, each with its own ids": lambda frame, other, size: [
        again(one, n) for n in range(size // 2) for one in (frame, other)
    ],
    "all, and then all that follow": lambda frame, other, size: [
        again(one, n, (int, str)) for one in (frame, other) for n in range(size // 2)
    ],
    "numbers that come back": lambda frame, _, size: [again(frame, n % 7, (int,)) for n in range(size)],
    "numbers from the last": lambda frame, _, size: [again(frame, size - n, (int,)) for n in range(size)],
}
#: What stands before a frame of a text framing.
BETWEEN: Final[Mapping[str, Callable[[int], bytes]]] = {
    "comments": lambda size: b": ping\n" * size,
    "events of comments": lambda size: b": ping\n\n" * size,
    "a long comment": lambda size: b":" + b"a" * 16 * size + b"\n",
    "blank lines": lambda size: b"\n" * 16 * size,
    "CRs": lambda size: b"\r" * 16 * size,
    "CRLFs": lambda size: b"\r\n" * 8 * size,
    "byte order marks": lambda size: b"\xef\xbb\xbf" * size,
    "blanks": lambda size: b" " * 16 * size,
    "fields that nobody knows": lambda size: b"zz: 1\n" * size,
    "ids of events": lambda size: b"id: 7\n" * size,
    "retries": lambda size: b"retry: 7\n" * size,
    "events without data": lambda size: b"event: a\n\n" * size,
    "empty data": lambda size: b"data:\n" * size,
    "data of blanks": lambda size: b"data: \n\n" * size,
    "ill-formed UTF-8": lambda size: b"\xff" * 16 * size,
    "no JSON": lambda size: b"data: {\n\n" * size,
    "ends": lambda size: b"data: [DONE]\n\n" * size,
    "NULs": lambda size: b"\0" * 16 * size,
    "commas": lambda size: b"," * 16 * size,
}


def bytes_of(dialect: str, frames: Sequence[Frame]) -> list[bytes]:
    """Frames as the dialect's wire has them."""
    match dialect:
        case "bedrock":
            return [binary.event(frame.event, frame.data) for frame in frames]
        case "ollama":
            return [lines(frame.data) for frame in frames]
        case "anthropic" | "openai-responses" | "cohere":
            return [b"event: %b\ndata: %b\n\n" % (frame.event.encode(), frame.data) for frame in frames]
        case _:
            return [sse(frame.data) for frame in frames]


@cache
def frames_of(stream: Stream) -> tuple[Frame, ...]:
    parser = DIALECTS[stream.dialect].parser(DEFAULT_LIMITS, StreamReport())
    return (*parser.feed(stream.body), *parser.finish())


@frozen
class Place:
    """A frame of a stream, and in it a member."""

    stream: Stream
    frame: int
    path: tuple[str | int, ...]


@cache
def frame_places(dialect: str) -> tuple[Place, ...]:
    """Each place of each kind of event, once."""
    found: dict[tuple[str, ...], Place] = {}
    for stream in OURS:
        if stream.dialect != dialect:
            continue
        for number, frame in enumerate(frames_of(stream)):
            try:
                document = orjson.loads(frame.data)
            except orjson.JSONDecodeError:
                continue
            for path in places(document):
                kind = str(document.get("type", "")) if isinstance(document, dict) else ""
                steps = ("[]" if isinstance(step, int) else step for step in path)
                found.setdefault((frame.event, kind, *steps), Place(stream, number, path))
    return tuple(found.values())


# -- what is done with a shape -----------------------------------------------------------------------------------------


@frozen
class Case:
    """A shape in its place, and what reads it: ``prepare`` makes the work for a size."""

    name: str
    prepare: Callable[[int], Callable[[], object]]

    def __str__(self) -> str:
        return self.name


READS: Final[Mapping[str, Callable[[list[bytes]], list[bytes]]]] = {
    "one read": lambda pieces: [b"".join(pieces)],
    "an event a read": lambda pieces: pieces,
    "two bytes a read": lambda pieces: [data[n : n + 2] for data in [b"".join(pieces)] for n in range(0, len(data), 2)],
}


def _translated(dialect: str, target: str, passing: bool) -> Callable[[list[bytes]], object]:
    return lambda pieces: str(translate(dialect, target, pieces, passing=passing)[1])


def _collected(dialect: str, pieces: list[bytes]) -> object:
    """The events unjoined, and the whole answer of them."""
    report = StreamReport()
    chain, collector = chain_of(dialect, report), Collector(dialect, report)
    for piece in pieces:
        collector.feed(chain.feed(piece))
        if chain.fault is not None:
            report.failed(chain.fault)
            return report
    collector.feed(chain.finish())
    return collector.finish(), str(report)


def _linted(dialect: str, pieces: list[bytes]) -> object:
    report = StreamReport()
    parser, linter = DIALECTS[dialect].parser(DEFAULT_LIMITS, report), DIALECTS[dialect].linter()
    found = [violation for piece in pieces for violation in linter.feed(parser.feed(piece))]
    return found, linter.feed(parser.finish()), linter.finish()


def _stream_works(dialect: str) -> dict[str, Callable[[list[bytes]], object]]:
    return {
        **{f"into {target}": _translated(dialect, target, passing=target == dialect) for target in DIALECTS},
        f"anew into {dialect}": _translated(dialect, dialect, passing=False),
        "collected": lambda pieces: _collected(dialect, pieces),
        "linted": lambda pieces: _linted(dialect, pieces),
    }


def _guarded(work: Callable[..., object], *arguments: object) -> Callable[[], object]:
    def run() -> object:
        try:
            return work(*arguments)
        except StreamkitError as error:  # a shape may be refused
            return str(error)

    return run


def _of_stream(name: str, dialect: str, make: Callable[[int], list[bytes]]) -> Iterator[Case]:
    for cut, split in READS.items():
        for work, function in _stream_works(dialect).items():
            yield Case(
                f"{dialect}: {name}, {cut}, {work}",
                lambda size, split=split, function=function: _guarded(function, split(make(size))),
            )


def stream_shapes(dialect: str) -> Iterator[tuple[str, Callable[[int], list[bytes]]]]:
    """Each shape of a stream of the dialect, in each of its places."""
    for place in frame_places(dialect):
        frames = frames_of(place.stream)
        before, frame, after = frames[: place.frame], frames[place.frame], frames[place.frame + 1 :]
        where = f"{place.stream.name} {frame.event}"
        if place.path:
            document = orjson.loads(frame.data)
            for name, shape in shapes_of(at(document, place.path)):
                path = ".".join(map(str, place.path))
                yield f"{where} {path}: {name}", lambda size, b=before, f=frame, d=document, p=place.path, a=after, s=shape: bytes_of(
                    dialect, [*b, evolve(f, data=put(d, p, s(size))), *a]
                )  # fmt: skip
            continue
        for name, run in RUNS.items():
            yield (
                f"{where}: {name}",
                lambda size, b=before, f=frame, a=after, r=run: bytes_of(
                    dialect, [*b, *r(f, a[0] if a else f, size), *a]
                ),
            )
        if dialect == "bedrock":
            continue
        for name, between in BETWEEN.items():
            yield (
                f"{where}: before it {name}",
                lambda size, b=before, f=frame, a=after, w=between: [
                    *bytes_of(dialect, b),
                    w(size),
                    *bytes_of(dialect, [f, *a]),
                ],
            )


SCHEMA: Final = {
    "type": "object",
    "title": "A",
    "description": "d",
    "properties": {
        "a": {"type": "string", "enum": ["b", "c"], "pattern": "^a+$", "description": "d"},
        "n": {"$ref": "#/$defs/n"},
        "l": {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "null"}]}},
    },
    "required": ["a"],
    "$defs": {"n": {"allOf": [{"type": "number"}]}},
}


def _request(dialect: str) -> Request:
    """One of everything."""
    tools = [Tool("f", "d", SCHEMA), Tool("g", "e", SCHEMA)]
    said = [
        Reasoning(
            "x", "raw", Opaque(DIALECTS[dialect].vendor if hasattr(DIALECTS[dialect], "vendor") else dialect, "c2ln")
        ),
        Text("y"),
        ToolCall(0, "call_1", "f", '{"a":1.50}'),
        ToolCall(1, "call_2", "g", "{}"),
    ]
    return Request(
        dialect,
        "m",
        [
            Turn("system", [Text("be brief")]),
            Turn("user", [Text("hi"), Media("image", "image/png", data="iVBORw0=", detail="low")]),
            Turn("assistant", said),
            Turn("user", [ToolResult("call_1", [Text("ok")]), ToolResult("call_2", [Text("no")], is_error=True)]),
            Turn("user", [Text("more")]),
        ],
        tools=tools,
        tool_choice=ToolChoice("auto"),
        options=Options(max_tokens=9, temperature=0.5, stop=["STOP"]),
    )  # fmt: skip


#: Members of requests that a decoder reads and an encoder seldom writes, by dialect.
MEMBERS: Final[Mapping[str, Mapping[str, Any]]] = {
    "openai-chat": {"stop": ["a"], "tool_choice": {"type": "function", "function": {"name": "f"}}, "metadata": {"a": "b"},
                    "response_format": {"type": "json_schema", "json_schema": {"name": "r", "schema": SCHEMA}},
                    "logit_bias": {"1": 1}, "user": "u", "modalities": ["text"], "reasoning_effort": "low"},
    "openai-responses": {"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]},
                         "include": ["a"], "metadata": {"a": "b"}, "text": {"format": {"type": "json_schema", "name": "r", "schema": SCHEMA}},
                         "reasoning": {"effort": "low", "summary": "auto"}},
    "anthropic": {"stop_sequences": ["a"], "tool_choice": {"type": "auto"}, "metadata": {"user_id": "u"},
                  "thinking": {"type": "enabled", "budget_tokens": 2000}},
    "ollama": {"options": {"stop": ["a"], "num_ctx": 9}, "format": SCHEMA, "think": "low", "keep_alive": "5m"},
    "cohere": {"stop_sequences": ["a"], "tool_choice": "REQUIRED", "documents": [{"id": "d", "data": {"text": "t"}}],
               "response_format": {"type": "json_object", "json_schema": SCHEMA}},
    "bedrock": {"inferenceConfig": {"stopSequences": ["a"], "maxTokens": 9}, "requestMetadata": {"a": "b"}},
    "gemini": {"generationConfig": {"stopSequences": ["a"], "responseMimeType": "application/json", "responseSchema": SCHEMA},
               "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}},
               "safetySettings": [{"category": "a", "threshold": "b"}]},
    "mistral": {"stop": ["a"], "tool_choice": "any", "metadata": {"a": "b"}},
}  # fmt: skip


@cache
def request_document(dialect: str) -> Any:
    return {**orjson.loads(encode_request(_request(dialect), dialect)), **MEMBERS[dialect]}


@cache
def answer_document(dialect: str) -> Any:
    cited = {"type": "url_citation", "url": "https://x.example", "title": "t", "start_index": 0, "end_index": 1}
    parts = [
        Reasoning("x"),
        Text("yes"),
        Aside("openai", "citation", "annotation", cited),
        ToolCall(0, "call_1", "f", '{"a":1.50}'),
        ToolCall(1, "call_2", "g", "{}"),
    ]
    answer = Response(
        dialect, id="r", model="m", choices=[Choice(0, parts=parts, stop_reason="tool_calls")], clean=True
    )
    return orjson.loads(encode_response(answer, dialect))


def _request_read(dialect: str, target: str) -> Callable[[bytes], object]:
    def work(body: bytes) -> object:
        request = decode_request(body, dialect)
        schemas = ToolSchemas([{"name": tool.name, "input_schema": tool.parameters} for tool in request.tools])
        return schemas, encode_request(request, target, emulate=True)

    return work


def _answer_read(dialect: str, target: str) -> Callable[[bytes], object]:
    return lambda body: encode_response(decode_response(body, dialect), target)


def _error_read(dialect: str, target: str) -> Callable[[bytes], object]:
    return lambda body: (
        encode_error(decode_error(400, body, dialect), target) if DIALECTS[target].errors else redacted(body)
    )


ERROR: Final = {
    "error": {"message": "m", "type": "invalid_request_error", "code": "c", "param": "p", "status": "s", "details": [{"a": "b"}]},
    "message": "m",
    "detail": [{"loc": ["body"], "msg": "m"}],
}  # fmt: skip

#: What is said whole, and what reads it.
DOCUMENTS: Final[Mapping[str, tuple[Callable[[str], Any], Callable[[str, str], Callable[[bytes], object]]]]] = {
    "request": (request_document, _request_read),
    "answer": (answer_document, _answer_read),
    "error": (lambda _: ERROR, _error_read),
    "logged": (request_document, lambda *_: redacted),
}


def _of_document(kind: str, dialect: str, name: str, make: Callable[[int], bytes]) -> Iterator[Case]:
    read = DOCUMENTS[kind][1]
    for target in DIALECTS if kind != "logged" else (dialect,):
        work = read(dialect, target)
        yield Case(f"{kind} of {dialect}: {name}, into {target}", lambda size, work=work: _guarded(work, make(size)))


def document_shapes(kind: str, dialect: str) -> Iterator[tuple[str, Callable[[int], bytes]]]:
    document = DOCUMENTS[kind][0](dialect)
    for path in places(document):
        where = ".".join(map(str, path)) or "the whole"
        for name, shape in shapes_of(at(document, path)):
            yield f"{where}: {name}", lambda size, path=path, shape=shape: put(document, path, shape(size))


@cache
def every_shape(group: str) -> tuple[tuple[str, str, Any], ...]:
    """The shapes of a group (``stream of ollama``, ``request of gemini``): kind, name, and what makes it."""
    kind, dialect = group.split(" of ")
    found = stream_shapes(dialect) if kind == "stream" else document_shapes(kind, dialect)
    return tuple((kind, name, make) for name, make in found)


GROUPS: Final = tuple(f"{kind} of {dialect}" for kind in ("stream", *DOCUMENTS) for dialect in DIALECTS)


def cases_of(group: str, index: int) -> list[Case]:
    """What is done with a shape of a group."""
    kind, name, make = every_shape(group)[index]
    dialect = group.split(" of ")[1]
    return list(_of_stream(name, dialect, make) if kind == "stream" else _of_document(kind, dialect, name, make))


# -- counting ----------------------------------------------------------------------------------------------------------


def steps(work: Callable[[], object]) -> int:
    """How many bytecode instructions a piece of work takes. What C does within one of them is not seen."""
    count = 0

    def step(frame: Any, event: str, _arg: object) -> Any:
        nonlocal count
        if event == "opcode":
            count += 1
        else:
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return step

    before = sys.gettrace()
    sys.settrace(step)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def grows(case: Case, size: int, count: Callable[[Callable[[], object]], int] = steps) -> float:
    """By which factor the work grows when the input doubles.

    The least of five doublings, where the first ones look like a find: a limit that is met between two sizes is one step, and
    a look at the last 256 of something grows until there are so many.
    """
    case.prepare(8)()  # what is compiled and kept once
    before, factor = count(case.prepare(size)), 0.0
    for doublings in (1, 2, 3, 4, 5):
        now = count(case.prepare(2**doublings * size))
        factor = min(factor or now, now / max(1, before))
        if factor <= FACTOR:
            break
        before = now
    return factor


def sampled(group: str, many: int, seed: int = 0) -> list[Case]:
    """So many cases of a group: each label of a shape as often as the others, however many places there are for it."""
    draw = random.Random(f"{group} {seed}")
    by_label: dict[str, list[int]] = {}
    for index, (_, name, _) in enumerate(every_shape(group)):
        by_label.setdefault(name.rpartition(": ")[2], []).append(index)
    labels = draw.sample(sorted(by_label), len(by_label))
    chosen = [draw.choice(by_label[labels[number % len(labels)]]) for number in range(many)]
    return [draw.choice(cases_of(group, index)) for index in chosen]


# -- instructions, of which valgrind must tell -------------------------------------------------------------------------

#: So large that what C does with the square of it outweighs the rest.
INSTRUCTIONS_SIZE: Final = 1000
NO_VALGRIND: Final = "valgrind counts instructions, and is not installed (Debian: apt-get install valgrind)"


def marked(groups: Sequence[str], many: int, seed: int) -> None:
    """Run so many cases of each group at a size, twice and four times of it, with a mark before and behind each; callgrind dumps at marks."""
    gc.disable()
    for case in (case for group in groups for case in sampled(group, many, seed)):
        case.prepare(8)()
        for factor in (1, 2, 4):
            work = case.prepare(factor * INSTRUCTIONS_SIZE)
            os.getppid()
            work()
            os.getppid()


def instructions(groups: Sequence[str], many: int, seed: int = 0) -> Iterator[tuple[Case, float]]:
    """By which factor each case grows, counted under callgrind: the smaller one of two doublings."""
    valgrind = shutil.which("valgrind")
    assert valgrind is not None, NO_VALGRIND
    code = f"from tests.laws.growing import marked; marked({groups!r}, {many}, {seed})"
    with tempfile.TemporaryDirectory(prefix="streamkit-growth-") as folder:
        out = Path(folder) / "out"
        tool = [valgrind, "--tool=callgrind", "--dump-before=getppid", f"--callgrind-out-file={out}"]
        environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        subprocess.run([*tool, sys.executable, "-c", code], env=environment, check=True, capture_output=True)
        counts = totals(out)
    for number, case in enumerate(case for group in groups for case in sampled(group, many, seed)):
        one, two, four = counts[3 * number : 3 * number + 3]
        yield case, min(two / one, four / two)
