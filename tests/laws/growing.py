"""What L8 grows, by one table: hostile shapes of a value, of a run of frames, and of what stands between them.

A row of ``VALUES``, ``RUNS`` or ``BETWEEN`` is a shape, and adding one is adding a line: it is put into each place of each
kind of document there is (frames of every vector, a request, a whole answer and an error of every dialect) and goes through
everything that reads those. ``CHECKED`` has schemas with arguments that
are hard for them, ``ASKED`` what a client says before its body. How the work is counted and judged: ``judging.py``.
"""

from __future__ import annotations

import asyncio
import copy
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, Final, get_args
from urllib.parse import quote

import orjson
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from attrs import evolve, frozen

from streamkit import PartialJSON, decode_request, decode_response, encode_request, encode_response
from streamkit.conversation.collector import Collector
from streamkit.conversation.messages import (
    Choice,
    Media,
    Options,
    OutputFormat,
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
from streamkit.conversation.response_events import response_events
from streamkit.detection import Detector
from streamkit.dialects import DIALECTS, decode
from streamkit.dialects.profiles import Encoding
from streamkit.errors import StreamkitError
from streamkit.events import Aside, Opaque, ToolCallArguments, ToolCallStarted
from streamkit.framing.frame import Frame, counted_values
from streamkit.gateway.record import Record
from streamkit.http_errors import decode_error, encode_error
from streamkit.limits import DEFAULT_LIMITS
from streamkit.machines import Chain
from streamkit.policy import LENIENT, TOLERANT, TextCalls
from streamkit.recipes import PassThrough, parse
from streamkit.report import StreamReport
from streamkit.text.quoting import excerpt, redacted, without_secrets
from streamkit.tool_calls.accumulate import accumulate_tool_calls
from streamkit.tool_calls.check import check_json
from streamkit.tool_calls.early import EarlySchemaChecker, check_schema_early
from streamkit.tool_calls.output import check_output
from streamkit.tool_calls.partial_arguments import partial_arguments, partial_output
from streamkit.tool_calls.schema import ToolSchemas
from streamkit.web.client_dialect import client_dialect, no_socket, unrouted, wants_socket
from streamkit.web.forms import form_of
from streamkit.web.hosts import client_keys
from streamkit.web.refusals import Refused, with_status
from streamkit.web.source import DEFAULT_TIMEOUTS, TimedSource, _Body
from streamkit.web.token_counts import estimated
from tests.framing import binary
from tests.laws.judging import Case
from tests.laws.running import CLOCK, OURS, Stream, chain_of, maker, read, translate
from tests.vectors.vector import lines, sse
from tests.whole_answers import ANSWERING_WHOLE

#: Thinking and calls are looked for in the text, in every grammar.
LOOSEST: Final = evolve(LENIENT, text_calls=get_args(TextCalls), think_tags="on")

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
    "paths of models": "/v1/models/a:",
    "paths of responses": "/v1/responses/a",
    "paths of versions": "/v1beta/",
    "percent escapes": "%41",
    "tokens": "eyJhbGciOiJI",
    "dotted tokens": "eyJ.",
    "tokens with dashes": "eyJhbGciOi-",
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


def unquoted(value: Any) -> Any:
    """A value whose texts of JSON objects are the objects: arguments as some providers send them."""
    if isinstance(value, dict):
        return {key: unquoted(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [unquoted(inner) for inner in value]
    if type(value) is str and value.startswith("{"):
        try:
            return orjson.loads(value)
        except orjson.JSONDecodeError:
            return value
    return value


#: What an array becomes: its members again and again, or each with numbers and names of its own.
LISTS: Final[Mapping[str, Callable[[list[Any], int], list[Any]]]] = {
    "again": lambda items, size: items * size,
    "each with its own ids": lambda items, size: [identified(item, n) for n in range(size) for item in items],
    "each with its own words": lambda items, size: [counted(item, n) for n in range(size) for item in items],
    "each with its own numbers": lambda items, size: [counted(item, n, (int,)) for n in range(size) for item in items],
    "each with its own names": lambda items, size: [counted(item, n, (str,)) for n in range(size) for item in items],
    "each with its own ids and an object for its arguments": lambda items, size: [
        identified(unquoted(item), n) for n in range(size) for item in items
    ],
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
            for first, last in _within(value):
                few = "one of many" if last - first == 1 else "two of many"
                yield (
                    f"{few} {name}",
                    lambda size, change=change, first=first, last=last: [
                        *value[:first],
                        *change(value[first:last], size),
                        *value[last:],
                    ],
                )
    if isinstance(value, dict):
        for name, alter in OBJECTS.items():
            yield name, lambda size, alter=alter: alter(value, size)


def _within(value: list[Any]) -> Iterator[tuple[int, int]]:
    """Where in a list one member stands, and two that follow each other, if these are not all of it."""
    for count in (1, 2):
        if count < len(value):
            yield from ((first, first + count) for first in range(len(value) - count + 1))


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


def longer(value: Any, times: int, key: str = "", word: str = "") -> Any:
    """A value whose texts are longer, or a ``word`` many times, but for those that say what something is or which."""
    if isinstance(value, dict):
        return {inner: longer(member, times, inner, word) for inner, member in value.items()}
    if isinstance(value, list):
        return [longer(inner, times, key, word) for inner in value]
    kept = key in {"type", "role", "object", "event"} or key.lower().endswith(("id", "name", "reason"))
    return (word or value) * times if type(value) is str and not kept else value


def stretched(frame: Frame, word: str = "") -> Frame:
    try:
        return evolve(frame, data=orjson.dumps(longer(orjson.loads(frame.data), 1000, word=word)))
    except (orjson.JSONDecodeError, TypeError):
        return frame


def kind_of(frame: Frame) -> tuple[str, ...]:
    """What tells frames apart that are read in different ways: their event and their members."""
    try:
        return (frame.event, *sorted(_members_of(orjson.loads(frame.data))))
    except orjson.JSONDecodeError:
        return (frame.event,)


#: What a frame becomes.
RUNS: Final[Mapping[str, Callable[[Frame, int], list[Frame]]]] = {
    "again": lambda frame, size: [frame] * size,
    "each with its own words": lambda frame, size: [again(frame, n, (int, str)) for n in range(size)],
    "each with its own numbers": lambda frame, size: [again(frame, n, (int,)) for n in range(size)],
    "each with its own names": lambda frame, size: [again(frame, n, (str,)) for n in range(size)],
    "each with its own ids": lambda frame, size: [again(frame, n) for n in range(size)],
    "each with long words": lambda frame, size: [stretched(frame)] * (size // 8),
    "numbers that come back": lambda frame, size: [again(frame, n % 7, (int,)) for n in range(size)],
    "numbers from the last": lambda frame, size: [again(frame, size - n, (int,)) for n in range(size)],
}
#: What a frame becomes with another one.
TURNS: Final[Mapping[str, Callable[[Frame, Frame, int], list[Frame]]]] = {
    "by turns": lambda frame, other, size: [frame, other] * (size // 2),
    "by turns, each with its own numbers": lambda frame, other, size: [
        again(one, n, (int,)) for n in range(size // 2) for one in (frame, other)
    ],
    "by turns, each with its own ids": lambda frame, other, size: [
        again(one, n) for n in range(size // 2) for one in (frame, other)
    ],
    "all, and then all others": lambda frame, other, size: [
        again(one, n, (int, str)) for one in (frame, other) for n in range(size // 2)
    ],
    "all with their own ids, and then the other again": lambda frame, other, size: [
        *(again(frame, n) for n in range(size // 2)), *[other] * (size // 2),
    ],
    "all with long words, and then the other again": lambda frame, other, size: [
        *[stretched(frame)] * (size // 16), *[other] * (size // 2),
    ],
}  # fmt: skip
#: Which other one, of those before and those behind the frame.
OTHERS: Final[Mapping[str, Callable[[Sequence[Frame], Sequence[Frame]], Sequence[Frame]]]] = {
    "the next": lambda _, after: after[:1],
    "the one before": lambda before, _: before[-1:],
    "the last": lambda _, after: [frame for frame in after if frame.data.startswith(b"{")][-1:],
    "one of each kind": lambda before, after: [*{kind_of(each): each for each in (*before, *after)}.values()],
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
        case "gemini array":
            return [b"[", *(piece for frame in frames for piece in (frame.data, b",\r\n"))][: 2 * len(frames)] + [b"]"]
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


def _members_of(document: Any) -> set[str]:
    """Which members a document has, and of which type its objects say they are: what a frame is told by."""
    return {
        f"{path} {at(document, path) if path[-1:] == ('type',) else ''}"
        for path in (*places(document),)
        if not any(isinstance(step, int) and step for step in path)
    }


@cache
def frame_places(dialect: str) -> tuple[Place, ...]:
    """Each place of each kind of event, once; as a whole, a frame with other members is another."""
    found: dict[tuple[str, ...], Place] = {}
    for stream in OURS:
        if stream.dialect != dialect:
            continue
        for number, frame in enumerate(frames_of(stream)):
            try:
                document = orjson.loads(frame.data)
            except orjson.JSONDecodeError:
                continue
            kind = str(document.get("type", "")) if isinstance(document, dict) else ""
            for path in places(document):
                steps = ("[]" if isinstance(step, int) else step for step in path)
                key = (frame.event, kind, *steps) if path else (frame.event, *sorted(_members_of(document)))
                found.setdefault(key, Place(stream, number, path))
    return tuple(found.values())


# -- what is done with a shape -----------------------------------------------------------------------------------------


READS: Final[Mapping[str, Callable[[list[bytes]], list[bytes]]]] = {
    "one read": lambda pieces: [b"".join(pieces)],
    "an event a read": lambda pieces: pieces,
    "two bytes a read": lambda pieces: [data[n : n + 2] for data in [b"".join(pieces)] for n in range(0, len(data), 2)],
}


def _translated(
    dialect: str, target: str, *, passing: bool = False, join: bool = True
) -> Callable[[list[bytes]], object]:
    return lambda pieces: str(translate(dialect, target, pieces, passing=passing, join=join)[1])


def _fed(chain: Chain, report: StreamReport, pieces: list[bytes], take: Callable[[Any], object] = len) -> str:
    """Feed a chain up to its end or fault."""
    for piece in pieces:
        take(chain.feed(piece))
        if chain.fault is not None:
            report.failed(chain.fault)
            return str(report)
    take(chain.finish())
    return str(report)


def _collected(dialect: str, pieces: list[bytes]) -> object:
    """The events unjoined, and the whole answer of them."""
    report = StreamReport()
    collector = Collector(dialect, report)
    return _fed(chain_of(dialect, report), report, pieces, collector.feed), collector.finish()


def _leniently(dialect: str, pieces: list[bytes]) -> object:
    """With thinking and calls that stand in the text, in any grammar."""
    report = StreamReport()
    return _fed(chain_of(dialect, report, policy=LOOSEST, offered=[Tool("f", "d", SCHEMA)]), report, pieces)


@cache
def _tools_of(dialect: str) -> Mapping[str, Any]:
    """A schema for each tool that the vectors of a dialect call."""
    found = {call.name for stream in OURS if stream.dialect == dialect for call in read(dialect, [stream.body]).calls}
    return {name: {**SCHEMA, "required": [], "additionalProperties": {"enum": [1, "a"]}} for name in sorted(found)}


def _checked(dialect: str, pieces: list[bytes]) -> object:
    """Calls and texts against schemas, early and at the end, and shown while they are written."""
    report, tools = StreamReport(), _tools_of(dialect)
    output = OutputFormat("schema", {"type": ["object", "array"]})
    stages = [
        parse(dialect),
        decode(dialect),
        accumulate_tool_calls(),
        check_schema_early(tools, output=output),
        check_json(tools=tools),
        check_output(output),
        partial_arguments(),
        partial_output(),
    ]
    return _fed(Chain(*(stage.make(report) for stage in stages)), report, pieces)


def _linted(dialect: str, pieces: list[bytes]) -> object:
    report = StreamReport()
    parser, linter = DIALECTS[dialect].parser(DEFAULT_LIMITS, report), DIALECTS[dialect].linter()
    found = [violation for piece in pieces for violation in linter.feed(parser.feed(piece))]
    return found, linter.feed(parser.finish()), linter.finish()


def _detected(pieces: list[bytes]) -> object:
    detector = Detector()
    return next(filter(None, map(detector.feed, pieces)), None) or detector.finish()


class _Source(_Body):
    """Pieces as the body of an upstream's response."""

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces, self._rest, self._error = iter(pieces), b"", None

    async def __anext__(self) -> bytes:
        if not self._rest:
            self._rest = next(self._pieces, b"")
        if not self._rest:
            raise StopAsyncIteration
        return await super().__anext__()

    def arrived(self) -> bytes:
        return self._part()  # the other pieces have not arrived

    async def aclose(self) -> None:
        pass


def _told(dialect: str, pieces: list[bytes]) -> object:
    """What the gateway takes an upstream's answer for, and reads of it."""

    async def told() -> object:
        source = TimedSource(_Source(pieces), DEFAULT_TIMEOUTS)
        return await form_of(source, DIALECTS[dialect]), [piece async for piece in source]

    return asyncio.run(told())


@cache
def pairs(dialect: str) -> tuple[Pair, ...]:
    """Each kind of event with each that its stream has: many of the one, and then many of the other."""
    found: dict[tuple[object, object], Pair] = {}
    for place in frame_places(dialect):
        frames = frames_of(place.stream)
        others = [*frames[place.frame + 1 :], *frames[: place.frame + 1]]  # the nearest of a kind is of the same text
        for other in () if place.path else {kind_of(each): each for each in reversed(others)}.values():
            found.setdefault((kind_of(frames[place.frame]), kind_of(other)), Pair(place, other))
    return tuple(found.values())


@frozen
class Pair:
    """A kind of event of which a text grows, and another, of which each may be compared with that text."""

    place: Place
    other: Frame

    def __str__(self) -> str:
        first = frames_of(self.place.stream)[self.place.frame]
        return f"{self.place.stream.name}: {_told_short(first)}, and then {_told_short(self.other)}"

    def pieces(self, size: int) -> tuple[list[bytes], list[bytes]]:
        """So many of the first, with what stands before them, and so many of the other."""
        dialect, frames = self.place.stream.dialect, frames_of(self.place.stream)
        long = stretched(frames[self.place.frame], "a long word ")
        begun = [*frames[: self.place.frame + 1], *[long] * size]
        return bytes_of(dialect, begun), bytes_of(dialect, [self.other] * size)


def _told_short(frame: Frame) -> str:
    return f"{frame.event} {frame.data[:60].decode('utf-8', 'replace')}".strip()


#: What reads a pair of kinds: a checker, a machine that passes, or an encoder of that dialect.
PAIR_READERS: Final = ("linted", "passed", *DIALECTS)


def fed_to(reader: str, dialect: str) -> Callable[[bytes], object]:
    """What reads a stream of a dialect an event at a time."""
    report, encoding = StreamReport(), Encoding(limits=DEFAULT_LIMITS, make_id=maker(), clock=CLOCK)
    if reader == "passed":
        return PassThrough(DIALECTS[dialect], encoding, TOLERANT, report).feed
    if reader == "linted":
        parser, linter = DIALECTS[dialect].parser(DEFAULT_LIMITS, report), DIALECTS[dialect].linter()
        return lambda piece: linter.feed(parser.feed(piece))
    chain, encoder = chain_of(dialect, report, to=reader), DIALECTS[reader].encoder(encoding, report)
    return lambda piece: encoder.feed(chain.feed(piece))


def _stream_works(dialect: str) -> dict[str, Callable[[list[bytes]], object]]:
    return {
        "passed": _translated(dialect, dialect, passing=True),
        **{f"into {target}": _translated(dialect, target) for target in DIALECTS},
        **{f"unjoined into {target}": _translated(dialect, target, join=False) for target in DIALECTS},
        "collected": partial(_collected, dialect),
        "read leniently": partial(_leniently, dialect),
        "checked": partial(_checked, dialect),
        "linted": partial(_linted, dialect),
        "detected": _detected,
        "told": partial(_told, dialect),
    }


def _guarded(work: Callable[..., object], dialect: str, *arguments: object) -> Callable[[], object]:
    def run() -> object:
        try:
            return work(*arguments)
        except (StreamkitError, ValueError, RecursionError) as error:  # a shape may be refused, and that is told
            return refused(str(error), dialect)

    return run


def refused(message: str, dialect: str) -> object:
    """What a client is told of it, and what is logged."""
    told = with_status("invalid_request", message, 400, dialect) if DIALECTS[dialect].errors else None
    record = Record("r", "POST", "/v1", client=dialect, model=message, error=message)
    return told and Refused(told).response(dialect), record.document()


def stream_shapes(dialect: str, wire: str) -> Iterator[tuple[str, Callable[[int], list[bytes]]]]:
    """Each shape of a stream of the dialect, in each of its places, as bytes of a wire."""
    for place in frame_places(dialect):
        frames = frames_of(place.stream)
        before, frame, after = frames[: place.frame], frames[place.frame], frames[place.frame + 1 :]
        where = f"{place.stream.name} {frame.event}"
        if place.path:
            document = orjson.loads(frame.data)
            for name, shape in shapes_of(at(document, place.path)):
                path = ".".join(map(str, place.path))
                yield f"{where} {path}: {name}", lambda size, b=before, f=frame, d=document, p=place.path, a=after, s=shape: bytes_of(
                    wire, [*b, evolve(f, data=put(d, p, s(size))), *a]
                )  # fmt: skip
            continue
        for name, run in runs_of(before, frame, after):
            yield f"{where}: {name}", lambda size, b=before, r=run, a=after: bytes_of(wire, [*b, *r(size), *a])
            yield (
                f"{where}: behind the end {name}",
                lambda size, r=run, whole=frames: bytes_of(wire, [*whole, *r(size)]),
            )
        if wire in {"bedrock", "gemini array"}:  # where nothing stands between two frames
            continue
        for name, between in BETWEEN.items():
            yield (
                f"{where}: before it {name}",
                lambda size, b=before, f=frame, a=after, w=between: [
                    *bytes_of(wire, b),
                    w(size),
                    *bytes_of(wire, [f, *a]),
                ],
            )


def runs_of(
    before: Sequence[Frame], frame: Frame, after: Sequence[Frame]
) -> Iterator[tuple[str, Callable[[int], list[Frame]]]]:
    """What a frame becomes, by name."""
    for name, run in RUNS.items():
        yield name, lambda size, run=run: run(frame, size)
    for which, chosen in OTHERS.items():
        for other in chosen(before, after):
            for name, turns in TURNS.items():
                yield f"{name} with {which}", lambda size, turns=turns, other=other: turns(frame, other, size)


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
    "gemini-interactions": {"generation_config": {"stop_sequences": ["a"], "tool_choice": {"allowed_tools": {"mode": "any", "tools": ["f"]}}},
                            "response_format": {"type": "text", "mime_type": "application/json", "schema": SCHEMA},
                            "labels": {"a": "b"}},
    "ai-sdk": {"system": "s", "callSettings": {"temperature": 1}, "config": {"a": "b"}, "tools": {"f": {"parameters": SCHEMA}}},
    "ag-ui": {"state": {"a": "b"}, "context": [{"description": "d", "value": "v"}], "resume": [{"interruptId": "i"}]},
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


def _works(kind: str, dialect: str) -> dict[str, Callable[[bytes], object]]:
    """What is done with a document of a kind."""
    match kind:
        case "request":
            return {
                **{f"into {target}": partial(_request_into, dialect, target) for target in DIALECTS},
                "estimated": lambda body: estimated(decode_request(body, dialect)),
                "looked at": lambda body: (sum(counted_values(body)), redacted(body), excerpt(body.decode(), 2000)),
                "logged": lambda body: without_secrets(orjson.loads(body)),
            }
        case "answer":
            return {
                **{f"into {target}": partial(_answer_into, dialect, target) for target in ANSWERING_WHOLE},
                **{f"streamed into {target}": partial(_answer_streamed, dialect, target) for target in DIALECTS},
                "told": lambda body: _told(dialect, [body[at : at + 256] for at in range(0, len(body), 256)]),
            }
        case "error":
            targets = [target for target in DIALECTS if DIALECTS[target].errors]
            return {f"into {target}": partial(_error_into, dialect, target) for target in targets}
        case _:
            return {"checked": _schema_checked, "looked at early": _looked_at_early, "shown": _shown}


def _request_into(dialect: str, target: str, body: bytes) -> object:
    request = decode_request(body, dialect)
    schemas = ToolSchemas([{"name": tool.name, "input_schema": tool.parameters} for tool in request.tools])
    schemas.compile()
    return encode_request(request, target, emulate=True)


def _answer_into(dialect: str, target: str, body: bytes) -> object:
    return encode_response(decode_response(body, dialect), target)


def _answer_streamed(dialect: str, target: str, body: bytes) -> object:
    encoding = Encoding(limits=DEFAULT_LIMITS, make_id=maker(), clock=CLOCK)
    encoder = DIALECTS[target].encoder(encoding, StreamReport())
    return encoder.feed(response_events(decode_response(body, dialect))), encoder.finish()


def _error_into(dialect: str, target: str, body: bytes) -> object:
    failed = decode_error(400, body, dialect)
    return encode_error(failed, target), refused(failed.message, target)


def _schema_checked(body: bytes) -> object:
    given = orjson.loads(body)
    return ToolSchemas({"f": given["schema"]}).check("f", json.dumps(given["arguments"]))


def _looked_at_early(body: bytes) -> object:
    given = orjson.loads(body)
    text = json.dumps(given["arguments"])
    checker = EarlySchemaChecker(ToolSchemas({"f": given["schema"]}), {})
    checker.feed([ToolCallStarted(0, "i", "f")])
    return [checker.feed([ToolCallArguments(0, text[at : at + 3])]) for at in range(0, len(text), 3)]


def _shown(body: bytes) -> object:
    """Arguments while they are written."""
    text = json.dumps(orjson.loads(body)["arguments"])
    shown = PartialJSON()
    return [shown.feed(text[at : at + 3]) for at in range(0, len(text), 3)], shown.finish()


ERROR: Final = {
    "error": {"message": "m", "type": "invalid_request_error", "code": "c", "param": "p", "status": "s", "details": [{"a": "b"}]},
    "message": "m",
    "detail": [{"loc": ["body"], "msg": "m"}],
}  # fmt: skip

#: What is said whole.
DOCUMENTS: Final[Mapping[str, Callable[[str], Any]]] = {
    "request": request_document,
    "answer": answer_document,
    "error": lambda _: ERROR,
    "schema": lambda _: {"schema": SCHEMA, "arguments": {"a": "b", "n": 1, "l": [1, None]}},
}


def _doubled(levels: int, keyword: str) -> Any:
    """Definitions that each apply the next one twice to the value inside, and arguments of as many levels."""
    schema: dict[str, Any] = {f"d{levels}": {"type": "object"}}
    schema |= {f"d{n}": {"properties": {"a": {keyword: [{"$ref": f"#/$defs/d{n + 1}"}] * 2}}} for n in range(levels)}
    arguments = '{"a":' * levels + "{}" + "}" * levels
    return {"schema": {"$ref": "#/$defs/d0", "$defs": schema}, "arguments": _raw(arguments)}


def _of_members(number: int, schema: Any, value: Any, **definitions: Any) -> Any:
    """A schema for each of many members, and a value for each."""
    properties = {f"p{n}": schema(n) if callable(schema) else schema for n in range(number)}
    return {
        "schema": {"type": "object", "properties": properties, **definitions},
        "arguments": {f"p{n}": value for n in range(number)},
    }


def _of_one(schema: Any, value: Any) -> Any:
    return {"schema": {"type": "object", "properties": {"a": schema}}, "arguments": {"a": value}}


#: Schemas with arguments that are hard for them.
CHECKED: Final[Mapping[str, Callable[[int], Any]]] = {
    "references doubled along a path": lambda size: _doubled(size // 24, "allOf"),
    "alternatives doubled along a path": lambda size: _doubled(size // 24, "anyOf"),
    "choices doubled along a path": lambda size: _doubled(size // 24, "oneOf"),
    "an enum referred to by many": lambda size: _of_members(
        size, {"$ref": "#/$defs/e"}, "w1", **{"$defs": {"e": {"enum": [f"w{n}" for n in range(size)]}}}
    ),
    "an enum of many words, met by the last": lambda size: _of_one({"enum": [f"w{n}" for n in range(size)]}, f"w{size}"),
    "an enum of words that begin alike": lambda size: _of_one({"enum": ["a" * n for n in range(0, size, 16)]}, "a" * size),
    "a pattern that looks around": lambda size: _of_one({"pattern": "(?=a*b)c"}, "a" * 16 * size),
    "a pattern that looks back": lambda size: _of_one({"pattern": "(?<=b)a*c"}, "a" * 16 * size),
    "a pattern that goes back": lambda size: _of_one({"pattern": "a*a*c"}, "a" * size),
    "many patterns": lambda size: _of_members(size // 8, lambda n: {"pattern": f"^a{n}$"}, "a1"),
    "many required": lambda size: {"schema": {"type": "object", "required": [f"p{n}" for n in range(size)]}, "arguments": {}},
    "items that are all others": lambda size: _of_one({"uniqueItems": True}, list(range(size))),
    "a chain of references": lambda size: {
        "schema": {"$ref": "#/$defs/d0", "$defs": {**{f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(size)}, f"d{size}": {}}},
        "arguments": {},
    },
    "a list that refers to its own": lambda size: {
        "schema": {"properties": {"a": {"$ref": "#"}}, "type": "object"},
        "arguments": _raw('{"a":' * (size // 16) + "{}" + "}" * (size // 16)),
    },
}  # fmt: skip


def document_shapes(kind: str, dialect: str) -> Iterator[tuple[str, Callable[[int], bytes]]]:
    document = DOCUMENTS[kind](dialect)
    for path in places(document):
        if kind == "schema" and not path:  # that there are both is the reader's, not the sender's
            continue
        where = ".".join(map(str, path)) or "the whole"
        for name, shape in shapes_of(at(document, path)):
            yield f"{where}: {name}", lambda size, path=path, shape=shape: put(document, path, shape(size))
    for name, make in CHECKED.items() if kind == "schema" else ():
        yield f"the whole: {name}", lambda size, make=make: orjson.dumps(make(size))


# -- what a client says before its body ----------------------------------------------------------------------------------

#: Where in a path or in a header a client may say as much as it likes.
ASKED: Final[Mapping[str, tuple[str, str, str]]] = {
    "the path": ("/{}", "", ""),
    "a prefix": ("/{}/v1/chat/completions", "", ""),
    "a model": ("/v1/models/{}", "", ""),
    "a model with a method": ("/v1beta/models/{}:streamGenerateContent", "", ""),
    "a method": ("/v1beta/models/a:{}", "", ""),
    "a response": ("/v1/responses/{}", "", ""),
    "a message": ("/v1/messages/{}/x", "", ""),
    "Ollama's": ("/api/{}", "", ""),
    "what is upgraded": ("/v1/responses", "Upgrade", "{}"),
    "the version": ("/v1/models", "anthropic-version", "{}"),
    "a key": ("/v1/models", "Authorization", "Bearer {}"),
}


def _asked(where: str, unit: str, size: int) -> web.Request:
    path, header, value = ASKED[where]
    text = unit * (16 * size // len(unit) + 1)
    quoted = quote(text.encode("utf-8", "replace"), safe="/:.~-_")
    plain = "".join(filter(str.isprintable, text))
    headers = {header: value.format(plain)} if header else {}
    return make_mocked_request("GET", path.format(quoted), headers=headers)


def _answered(request: web.Request) -> object:
    known = [client_dialect(request), wants_socket(request), no_socket(request), client_keys(request)]
    return known, unrouted(request, web.HTTPNotFound()), unrouted(request, web.HTTPMethodNotAllowed("GET", ["POST"]))


# -- the cases -----------------------------------------------------------------------------------------------------------


@cache
def every_shape(group: str) -> tuple[tuple[str, Any], ...]:
    """The shapes of a group (``stream of ollama``, ``request of gemini``): name, and what makes it."""
    kind, dialect = group.split(" of ")
    if kind == "stream":
        return tuple(stream_shapes(dialect.split()[0], dialect))
    if kind == "head":
        names = [(where, name, unit) for where in ASKED for name, unit in UNITS.items()]
        return tuple((f"{where}: {name}", partial(_asked, where, unit)) for where, name, unit in names)
    return tuple(document_shapes(kind, dialect))


GROUPS: Final = (
    *(f"stream of {dialect}" for dialect in (*DIALECTS, "gemini array")),
    *(f"{kind} of {dialect}" for kind in ("request", "error") for dialect in DIALECTS),
    *(f"answer of {dialect}" for dialect in ANSWERING_WHOLE),
    "schema of arguments",
    "head of requests",
)


def cases_of(group: str, index: int) -> list[Case]:
    """What is done with a shape of a group."""
    name, make = every_shape(group)[index]
    kind, dialect = group.split(" of ")
    found: list[tuple[str, Callable[[int], Callable[[], object]]]] = []
    if kind == "stream":
        dialect = dialect.split()[0]
        for cut, split in READS.items():
            for work, function in _stream_works(dialect).items():
                found.append((f"{cut}, {work}", lambda size, f=function, s=split: _guarded(f, dialect, s(make(size)))))
    elif kind == "head":
        found.append(("answered", lambda size: partial(_answered, make(size))))
    else:
        client = dialect if dialect in DIALECTS else "openai-chat"
        for work, function in _works(kind, dialect).items():
            found.append((work, lambda size, f=function: _guarded(f, client, make(size))))
    return [
        Case(f"{group}: {name}, {work}", prepare, (group, index, number))
        for number, (work, prepare) in enumerate(found)
    ]


def sampled(group: str, many: int, seed: int = 0) -> list[Case]:
    """So many cases of a group: each label of a shape as often as the others, however many places there are for it."""
    draw = random.Random(f"{group} {seed}")
    by_label: dict[str, list[int]] = {}
    for index, (name, _) in enumerate(every_shape(group)):
        by_label.setdefault(name.rpartition(": ")[2], []).append(index)
    labels = draw.sample(sorted(by_label), len(by_label))
    chosen = [draw.choice(by_label[labels[number % len(labels)]]) for number in range(many)]
    return [draw.choice(cases_of(group, index)) for index in chosen]
