"""L5 for members that nobody knows: put into any object of any event of any dialect, none vanishes without a count.

Each object of each frame of each vector gets one member more, in streams and in whole bodies. It must be found in an event
(an aside, extras, the raw usage, the text of arguments) or be counted; and each dialect's encoder must write it or count a
loss. What is passed over on purpose stands in ``PASSED_OVER`` with its reason.
"""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

import orjson
import pytest
from attrs import evolve, frozen

from streamkit import Response
from streamkit.conversation.collector import Collector
from streamkit.dialects import DIALECTS
from streamkit.dialects.profiles import Encoding
from streamkit.dialects.vocabulary.usage_counts import NO_TOKENS
from streamkit.events import (
    Aside,
    MediaGenerated,
    ProviderFailed,
    ResponseStarted,
    StreamEnded,
    ToolCallStarted,
    UsageReported,
)
from streamkit.framing.frame import Frame
from streamkit.limits import DEFAULT_LIMITS
from streamkit.report import StreamReport
from streamkit.tool_calls.accumulate import ToolCallAccumulator
from streamkit.tool_calls.check import JSONChecker
from streamkit.translation.bodies import encode_response
from tests.laws.running import CLOCK, Stream, maker, recorded
from tests.vectors import VECTORS
from tests.vectors.vector import Vector
from tests.whole_answers import ANSWERING_WHOLE

#: A name and a count that nothing else has.
NAME: Final = "zz_unread"
VALUE: Final = 987_654_321_012
#: Objects whose unknown members may vanish, by dialect, event and path: why.
PASSED_OVER: Final[Mapping[tuple[str, str, str], str]] = {
    ("anthropic", "message_start", "message"): "a second start of the same message is passed over whole: `response_restarted`",
    ("anthropic", "message_start", "message.usage"): "a second start of the same message",
    ("bedrock", "messageStart", ""): "a second start of the same message",
    ("cohere", "message-start", ""): "a second start of the same message",
    ("cohere", "message-start", "delta.message"): "a second start of the same message",
    ("openai-responses", "response.output_item.added", "item"): "a second start of the same item: `block_reopened`",
    ("openai-responses", "response.failed", "response.error"): "an `error` event told of the same failure before",
    ("openai-responses", "response.completed", "response.output.[]"): "an item that only OpenAI understands came whole before",
    ("openai-responses", "response.completed", "response.output.[].action"): "as the item that it stands in",
    ("openai-responses", "response.completed", "response.output.[].action.env"): "as the item that it stands in",
    ("openai-responses", "response.completed", "response.output.[].arguments"): "an object of arguments is compared with the fragments",
    ("openai-chat", "message", "choices.[].delta.function_call"): "a call that stands in `tool_calls` as well: `said_twice`",
    ("openai-chat", "message", "choices.[].delta.tool_calls.[]"): "an entry with neither a name nor arguments: `call_ghost`, `said_twice`",
    ("openai-chat", "message", "choices.[].delta.tool_calls.[].function.arguments"): "the same arguments again: `arguments_repeated`",
    ("ai-sdk", "tool-input-available", "input"): "the deltas of the call said it before",
    ("gemini-interactions", "step.start", "step.arguments"): "arguments that a delta replaced: `arguments_replaced`",
    ("gemini-interactions", "interaction.created", "interaction"): "a second start of the same interaction: `response_restarted`",
    ("gemini-interactions", "interaction.completed", "interaction.steps.[]"): "a step that came by events of its own before",
    ("gemini-interactions", "interaction.completed", "interaction.steps.[].content.[]"): "as the step that it stands in",
    ("ag-ui", "RUN_STARTED", ""): "a second start of the same run: `response_restarted`",
    ("ag-ui", "RUN_STARTED", "input"): "the request again",
    ("ag-ui", "RUN_STARTED", "input.state"): "the request again",
    ("ag-ui", "RUN_STARTED", "input.forwardedProps"): "the request again",
    ("gemini", "message", "candidates.[].content.parts.[].functionCall"): "the end of a call that never began: `call_ghost`",
}  # fmt: skip
#: Said before by an event of its own: what is in them is not compared again.
REPEATED: Final = ("annotations.[]", "logprobs.[]")


@frozen
class Sentinel:
    """A frame of a stream with one member more in one of its objects."""

    stream: Stream
    frame: int
    path: tuple[str | int, ...]

    @property
    def place(self) -> str:
        return ".".join("[]" if isinstance(step, int) else step for step in self.path)

    def __str__(self) -> str:
        return f"{self.stream}-{self.frame}-{self.place}"


@cache
def frames_of(stream: Stream) -> tuple[Frame, ...]:
    parser = DIALECTS[stream.dialect].parser(DEFAULT_LIMITS, StreamReport())
    return (*parser.feed(stream.body), *parser.finish())


def document_of(frame: Frame) -> Any:
    """The payload, of InvokeModel the one within."""
    try:
        document = orjson.loads(frame.data)
        if frame.event == "chunk" and isinstance(document, dict):
            return orjson.loads(base64.b64decode(document["bytes"]))
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        return None
    return document


def written(frame: Frame, document: Any) -> Frame:
    data = orjson.dumps(document)
    if frame.event == "chunk":
        data = orjson.dumps({"bytes": base64.b64encode(data).decode()})
    return evolve(frame, data=data)


def objects(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The path of each object in a value."""
    if isinstance(value, dict):
        yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, member in inner:
        yield from objects(member, (*path, step))


def with_sentinel(document: Any, path: tuple[str | int, ...]) -> Any:
    return replaced(document, (*path, NAME), VALUE)


def replaced(document: Any, path: tuple[str | int, ...], value: Any) -> Any:
    copy = at = orjson.loads(orjson.dumps(document))
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return copy


def read(dialect: str, frames: list[Frame]) -> tuple[list[Any], StreamReport, Any]:
    """The events, the report, and what broke the reading."""
    report = StreamReport()
    decoder = DIALECTS[dialect].decoder(DEFAULT_LIMITS, report)
    return settle(decoder.feed(frames), report, decoder)


def settle(wire: list[Any], report: StreamReport, decoder: Any) -> tuple[list[Any], StreamReport, Any]:
    accumulator = ToolCallAccumulator(report=report, make_id=maker())
    checker = JSONChecker(report=report)
    events = checker.feed(accumulator.feed(wire))
    fault = decoder.fault or accumulator.fault
    if fault is None:
        events += checker.feed(accumulator.feed(decoder.finish()))
        events += checker.feed(accumulator.finish())
    return events, report, fault or decoder.fault or accumulator.fault


def encoded(events: list[Any], target: str) -> tuple[bytes, StreamReport]:
    report = StreamReport()
    encoder = DIALECTS[target].encoder(Encoding(make_id=maker(), clock=CLOCK), report)
    return encoder.feed(events) + encoder.finish(), report


@cache
def unchanged(stream: Stream, target: str | None) -> tuple[Any, ...]:
    """What is counted without a sentinel, of the reading or of writing it for ``target``."""
    events, report, _ = read(stream.dialect, list(frames_of(stream)))
    if target is None:
        return report.repairs, report.losses
    lost = encoded(events, target)[1]
    return lost.repairs, lost.losses


def check(sentinel: Sentinel) -> None:
    stream, frames = sentinel.stream, list(frames_of(sentinel.stream))
    frame = frames[sentinel.frame]
    document = document_of(frame)
    frames[sentinel.frame] = written(frame, with_sentinel(document, sentinel.path))
    kind = document.get("type") or frame.event
    if (stream.dialect, kind, sentinel.place) in PASSED_OVER or sentinel.place.endswith(REPEATED):
        return
    events, report, fault = read(stream.dialect, frames)
    counted = fault is not None or (report.repairs, report.losses) != unchanged(stream, None)
    assert counted or str(VALUE) in repr(events), str(sentinel)
    if counted:
        return
    for target in DIALECTS:
        output, lost = encoded(events, target)
        told = (lost.repairs, lost.losses) != unchanged(stream, target) or is_lost_anyway(events, lost)
        assert told or str(VALUE).encode() in output, f"{sentinel} to {target}"


def is_lost_anyway(events: list[Any], report: StreamReport) -> bool:
    """Whether what holds the sentinel is counted as a whole: one member more is no second loss."""
    events = [
        evolve(event, usage=None) if isinstance(event, ResponseStarted) else event for event in events
    ]  # said again
    place, holder = next((n, event) for n, event in enumerate(events) if str(VALUE) in repr(event))
    whole = any(isinstance(event, StreamEnded) and event.clean for event in events)
    if isinstance(holder, ProviderFailed):
        return True  # the failure is told
    if isinstance(holder, ResponseStarted):
        return not whole or report.losses["response_fields"] > 0
    if getattr(holder, "choice", 0) and report.losses["extra_choice"]:
        return True
    if isinstance(holder, UsageReported):
        if not whole or any(isinstance(event, UsageReported) for event in events[place + 1 :]):
            return True  # an error has no counts, and later counts replace these
        return report.losses["usage_detail"] > 0 or any(
            NAME in repr((holder.raw or {}).get(name)) for name in NO_TOKENS
        )
    if any(str(VALUE) in held.arguments for held in report.withheld):
        return True
    if isinstance(holder, ToolCallStarted):
        return bool(report.losses["metadata"] or report.withheld or report.error)
    if isinstance(holder, MediaGenerated):  # lost, or so is what stands beside it
        return report.losses["media_output"] > 0 or report.losses["metadata"] > 0
    if not isinstance(holder, Aside):
        return False
    replaced = any(isinstance(event, Aside) and event.type == holder.type for event in events[place + 1 :])
    return report.losses[holder.kind] > 0 or (replaced and holder.type.startswith("response."))


def sentinels(streams: list[Stream], *, most: int | None, seed: str) -> list[Sentinel]:
    """Each object of each frame of each stream that is read without a fault, or ``most`` of them."""
    found = [
        Sentinel(stream, number, path)
        for stream in streams
        for number, frame in enumerate(frames_of(stream))
        if isinstance(document := document_of(frame), dict)
        for path in objects(document)
    ]
    return found if most is None or len(found) <= most else random.Random(seed).sample(found, most)


def of_vectors(dialect: str) -> list[Stream]:
    """Those that are read to their end; what comes behind it is counted as a whole."""
    found = [v for v in VECTORS if v.dialect == dialect and v.fault is None and not v.withheld]
    return [Stream(v.name, v.dialect, v.body) for v in found if "after_end" not in v.repairs]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_member_that_nobody_knows_is_kept_or_counted(dialect):
    for sentinel in sentinels(of_vectors(dialect), most=200, seed=dialect):
        check(sentinel)


@pytest.mark.exhaustive
@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_member_that_nobody_knows_is_kept_or_counted(dialect):
    for sentinel in sentinels(of_vectors(dialect), most=None, seed=dialect):
        check(sentinel)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_so_it_is_in_recorded_streams(dialect):
    streams = [stream for stream in recorded() if stream.dialect == dialect and len(stream.body) < 64 * 1024]
    streams = [stream for stream in streams if "after_end" not in unchanged(stream, None)[0]]
    if not streams:
        pytest.skip("no recordings of this dialect")
    for sentinel in sentinels(streams[:20], most=60, seed=dialect):
        check(sentinel)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_so_it_is_in_an_event_that_nobody_knows_before_the_start(dialect):
    frames = frames_of(next(stream for stream in of_vectors(dialect) if frames_of(stream)))
    named = {"event": NAME} if frames[0].event != "message" else {}
    unknown = evolve(frames[0], data=orjson.dumps({"type": NAME, "event_type": NAME, NAME: VALUE}), **named)
    events, report, fault = read(dialect, [unknown, *frames])
    assert fault is None
    assert (
        NAME in repr(events)
        or report.losses["unknown_event"] == read(dialect, [*frames])[1].losses["unknown_event"] + 1
    )


#: Texts of the events of applications and their agents that change nothing in any vector: why.
REPEATING: Final[Mapping[tuple[str, str], str]] = {
    ("tool-input-error", "toolName"): "the start of the call said it",
    **dict.fromkeys((("RUN_FINISHED", "threadId"), ("RUN_FINISHED", "runId")), "the start of the run said it"),
    **dict.fromkeys((("RUN_STARTED", "input.threadId"), ("RUN_STARTED", "input.runId")), "the request again"),
    **dict.fromkeys((("REASONING_START", "messageId"), ("REASONING_END", "messageId")), "a span around messages"),
    **dict.fromkeys((("TEXT_MESSAGE_CHUNK", "messageId"), ("REASONING_MESSAGE_CHUNK", "messageId")), "any id will do"),
    ("REASONING_MESSAGE_START", "role"): "the type says it",
}


def texts(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The path of each text in a value."""
    if isinstance(value, str):
        yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, member in inner:
        yield from texts(member, (*path, step))


@pytest.mark.parametrize("dialect", ["ai-sdk", "ag-ui"])
def test_each_text_of_an_event_is_read_in_a_vector(dialect):
    """A member that a table lists as read, and that nothing reads, is no unknown member."""
    silent, heard = set(), set()
    for stream in of_vectors(dialect):
        frames = [*frames_of(stream)]
        before = repr(read(dialect, frames))
        for number, frame in enumerate(frames):
            document = document_of(frame)
            for path in texts(document) if isinstance(document, dict) else ():
                changed = [*frames]
                changed[number] = written(frame, replaced(document, path, NAME))
                place = document.get("type"), ".".join("[]" if isinstance(step, int) else step for step in path)
                (silent if repr(read(dialect, changed)) == before else heard).add(place)
    assert silent - heard - REPEATING.keys() == set()


# -- whole bodies ------------------------------------------------------------------------------------------------------


@cache
def body_of(vector_name: str, dialect: str) -> bytes | None:
    """The answer of a vector as a whole body of its dialect; None if it has none."""
    vector = next(v for v in VECTORS if (v.name, v.dialect) == (vector_name, dialect))
    stream = Stream(vector.name, vector.dialect, vector.body)
    events, report, fault = read(dialect, list(frames_of(stream)))
    if fault is not None or not report.clean:
        return None
    collector = Collector(dialect, report)
    collector.feed(events)
    return encode_response(collector.finish(), dialect, make_id=maker(), clock=CLOCK)


def read_body(dialect: str, body: bytes) -> tuple[list[Any], StreamReport]:
    report = StreamReport()
    bodies = DIALECTS[dialect].bodies
    assert bodies is not None
    accumulator = ToolCallAccumulator(report=report, make_id=maker())
    events = accumulator.feed(bodies.decode_response(body, DEFAULT_LIMITS, report)) + accumulator.finish()
    return JSONChecker(report=report).feed(events), report


@cache
def report_of(dialect: str, body: bytes) -> StreamReport:
    return read_body(dialect, body)[1]


def check_body(dialect: str, body: bytes, path: tuple[str | int, ...]) -> None:
    place = ".".join("[]" if isinstance(step, int) else step for step in path)
    before = report_of(dialect, body)
    changed = orjson.dumps(with_sentinel(orjson.loads(body), path))
    events, report = read_body(dialect, changed)
    counted = (report.repairs, report.losses) != (before.repairs, before.losses)
    assert counted or str(VALUE) in repr(events), f"{dialect} {place}"
    for target in ANSWERING_WHOLE if not counted else ():
        lost_before = written_body(dialect, body, target)[1]
        output, lost = written_body(dialect, changed, target)
        told = (lost_before.losses, lost_before.repairs) != (lost.losses, lost.repairs)
        told = told or is_lost_anyway(events, lost)
        assert told or str(VALUE).encode() in output, f"{dialect} {place} to {target}"


def written_body(dialect: str, body: bytes, target: str) -> tuple[bytes, StreamReport]:
    report = StreamReport()
    return encode_response(response_of(dialect, body), target, report=report, make_id=maker(), clock=CLOCK), report


@cache
def response_of(dialect: str, body: bytes) -> Response:
    collector = Collector(dialect, StreamReport())
    collector.feed(read_body(dialect, body)[0])
    return collector.finish()


def every_body(dialect: str) -> list[tuple[bytes, tuple[str | int, ...]]]:
    vectors: list[Vector] = [vector for vector in VECTORS if vector.dialect == dialect and vector.clean]
    bodies = {body for vector in vectors if (body := body_of(vector.name, dialect)) is not None}
    return [
        (body, path) for body in sorted(bodies) if (document := document_of(Frame(body))) for path in objects(document)
    ]


@pytest.mark.parametrize("dialect", ANSWERING_WHOLE)
def test_so_it_is_in_whole_bodies(dialect):
    found = every_body(dialect)
    for body, path in random.Random(dialect).sample(found, min(len(found), 150)):
        check_body(dialect, body, path)


@pytest.mark.exhaustive
@pytest.mark.parametrize("dialect", ANSWERING_WHOLE)
def test_so_it_is_in_every_whole_body(dialect):
    for body, path in every_body(dialect):
        check_body(dialect, body, path)
