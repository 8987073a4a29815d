"""What many payloads that differ in a text alone say together is what each says by itself: events, repairs and reports."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest
from attrs import evolve

from streamkit.dialects import DIALECTS
from streamkit.dialects.profiles import Encoding
from streamkit.dialects.streams import frame_decoder
from streamkit.dialects.streams.alike import Alike, finding
from streamkit.dialects.streams.frame_decoder import FrameDecoder
from streamkit.events import (
    ChoiceStarted,
    ReasoningDelta,
    ResponseFinished,
    ResponseStarted,
    StreamEnded,
    TextDelta,
    ToolCallArguments,
    ToolCallFinished,
    ToolCallStarted,
    Verdict,
)
from streamkit.framing.eventstream import serialize_eventstream
from streamkit.framing.frame import Frame
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.policy import STRICT, TOLERANT
from streamkit.report import StreamReport
from tests.laws.running import CLOCK, chain_of, every_stream, maker, read
from tests.sampling import few
from tests.vectors.vector import sse


def idle_of(dialect: str) -> Any:
    return getattr(DIALECTS[dialect].decoder(DEFAULT_LIMITS, StreamReport()), "idle", None)


ALIKE = [name for name in DIALECTS.built_in if idle_of(name) is not None]
COUNT = 30
NUMBERS = ("sequence_number", "timestamp")
#: Of a call; each of these payloads says one more character.
ARGUMENTS = json.dumps({"a": "x" * COUNT})


def spoken() -> Iterator[Any]:
    yield ResponseStarted("r", "m", 1, "v")
    yield ChoiceStarted()
    yield from (ReasoningDelta(f"thought {number}. ", 0, 0, "summary") for number in range(COUNT))
    yield from (TextDelta(f"word {number}. ", 0, 1) for number in range(COUNT))
    yield ToolCallStarted(0, "c0", "f")
    yield from (ToolCallArguments(0, char) for char in ARGUMENTS)
    yield ToolCallFinished(0, "c0", "f", ARGUMENTS, verdict=Verdict("complete"))
    yield ResponseFinished("tool_calls")
    yield StreamEnded(clean=True)


def frames_of(dialect: str, *, vary: bool) -> list[Frame]:
    """An answer in a dialect, of which each delta is a frame; ``vary``: idle members are other in each."""
    encoder = DIALECTS[dialect].encoder(Encoding(make_id=maker(), clock=CLOCK), StreamReport())
    parser = DIALECTS[dialect].parser(DEFAULT_LIMITS, StreamReport())
    frames = parser.feed(b"".join([*(encoder.feed([event]) for event in spoken()), encoder.finish()]))
    for number, frame in enumerate(frames if vary else ()):
        if frame.data.startswith(b"{"):
            numbers = {name: number if name in NUMBERS else str(number) for name in idle_of(dialect)}
            frame.data = json.dumps(json.loads(frame.data) | numbers).encode()
    return frames


def written(dialect: str, frames: list[Frame]) -> bytes:
    if dialect == "bedrock":
        return b"".join(serialize_eventstream(dict(frame.headers), frame.data) for frame in frames)
    if dialect == "ollama":
        return b"".join(frame.data + b"\n" for frame in frames)
    named = [b"" if frame.event == "message" else b"event: %b\n" % frame.event.encode() for frame in frames]
    return b"".join(b"%bdata: %b\n\n" % (name, frame.data) for name, frame in zip(named, frames, strict=True))


def check(dialect: str, body: bytes, patch: pytest.MonkeyPatch, limits: Limits = DEFAULT_LIMITS) -> None:
    """Read a stream in one read, as it is read and payload by payload."""
    for policy in (TOLERANT, STRICT):
        found = read(dialect, [body], limits, policy=policy, join=True).facts()
        with patch.context() as alone:
            alone.setattr(Alike, "read", lambda *_: 0)
            assert read(dialect, [body], limits, policy=policy, join=True).facts() == found


@pytest.mark.parametrize(
    "stream", [one for one in every_stream("alike") if one.values[0] is None or one.values[0].dialect in ALIKE]
)
def test_every_stream_says_the_same(stream, monkeypatch):
    monkeypatch.setattr(frame_decoder, "WINDOW", 2)
    check(stream.dialect, stream.body, monkeypatch)


def read_unjoined(dialect: str, body: bytes) -> list[Any]:
    """The events as they leave."""
    chain = chain_of(dialect, StreamReport(), join=True)
    return [*chain.feed(body), *chain.finish()]


DEEP = json.loads("[" * 300 + "]" * 300)
#: In the place of a value.
ODD = [True, False, 0, 1.0, 0.0, None, "", "x", "x" * 600, "\u2028", ["x"], [], {"text": "x"}, DEEP]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something stands in a document."""
    for step, member in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        yield (*path, step)
        yield from places(member, (*path, step))


def others(payload: bytes) -> Iterator[bytes]:
    """Payloads that are nearly this one."""
    document = json.loads(payload)
    for *steps, name in places(document):
        changed = json.loads(payload)
        owner = changed
        for step in steps:
            owner = owner[step]
        for value in ODD:
            owner[name] = value
            yield json.dumps(changed, separators=(",", ":")).encode()
        del owner[name]
        yield json.dumps(changed).encode()
        if isinstance(owner, dict):
            for more in ("new", "p", "text", "usage", "error"):
                yield json.dumps(changed | {more: "x"} if owner is changed else changed).encode()
                owner[more] = "x"
    yield json.dumps(dict(reversed(document.items()))).encode()
    yield from (
        payload[:-1],
        payload[:-1] + b" }",
        payload + b"}",
        payload + payload,
        payload[:-1] + b',"type":"x"}',
        b"[%b]" % payload,
    )
    yield from (payload.replace(b'"', b"'"), payload.replace(b":", b": "), b"", b"null")


@pytest.mark.parametrize("seed", few(range(10), 1, "alike", kind=lambda _: 0))
@pytest.mark.parametrize("vary", [False, True])
@pytest.mark.parametrize("dialect", ALIKE)
def test_what_is_nearly_alike_is_read_as_it_is(dialect, vary, seed, monkeypatch):
    frames, rng = frames_of(dialect, vary=vary), random.Random(f"{dialect} {seed}")
    kinds = [
        [number for number, frame in enumerate(frames) if re.search(text, frame.data)][10:-5]
        for text in (rb"thought \d+", rb"word \d+", rb"\"x\"")
    ]
    for numbers in filter(None, kinds):
        number = rng.choice(numbers)
        for data in rng.sample([*others(frames[number].data)], 25):
            odd = evolve(frames[number], data=data)
            check(dialect, written(dialect, [*frames[:number], odd, *frames[number + 1 :]]), monkeypatch)


@pytest.mark.parametrize("values", [("x", "x"), ("x", "y"), ("", "x"), (1, True), ([], DEEP)])
@pytest.mark.parametrize(
    "name", ["new", "text", "delta", "p", "obfuscation", "timestamp", "created_at", "sequence_number"]
)
@pytest.mark.parametrize("dialect", ALIKE)
def test_so_is_what_has_a_member_more_each_time(dialect, name, values, monkeypatch):
    """Also where that is another at last."""
    frames = frames_of(dialect, vary=False)
    for number, frame in enumerate(frames):
        if frame.data.startswith(b"{"):
            value = values[number % 60 > 40 or number % 60 < 5]  # of each text the later ones have the other
            frame.data = json.dumps(json.loads(frame.data) | {name: value}, separators=(",", ":")).encode()
    check(dialect, written(dialect, frames), monkeypatch)


def ag_ui(kind: str, name: str, *pairs: tuple[str, str]) -> list[dict[str, str]]:
    """Events of messages or calls, and what they say."""
    return [{"type": kind, name: each, **({"delta": delta} if delta else {})} for each, delta in pairs]


IDS = [f"c{number}" for number in range(20)]
MESSAGES = ag_ui("TEXT_MESSAGE_START", "messageId", *[(each, "") for each in IDS])
CALLS = ag_ui("TOOL_CALL_START", "toolCallId", *[(each, "") for each in IDS])
PARTS = [f"part {number} of it. " for number in range(12)]
WHOLES = [
    {"id": "r", "choices": [{"index": 0, "message": {"content": text}}]} for text in [*PARTS, *["".join(PARTS)] * 9]
]
SAME: dict[str, tuple[str, list[Any]]] = {
    "a text that is an id": ("ag-ui", [*MESSAGES, *ag_ui("TEXT_MESSAGE_CONTENT", "messageId", *[(each, "c0") for each in IDS])]),
    "an id like the last arguments": (
        "ag-ui", [*CALLS, *ag_ui("TOOL_CALL_ARGS", "toolCallId", ("c0", "c0")), *ag_ui("TOOL_CALL_END", "toolCallId", *[(each, "") for each in ["c1", *IDS]])],
    ),
    "calls by turns": ("ag-ui", [*CALLS, *ag_ui("TOOL_CALL_ARGS", "toolCallId", *[(each, "{") for each in IDS * 3])]),
    "nothing behind a text": ("gemini", [{"candidates": [{"content": {"parts": [{"text": text}]}}]} for text in ["a", *[""] * 40, "b", "c"]]),
    "whole messages": ("mistral", WHOLES),
}  # fmt: skip


@pytest.mark.parametrize(("dialect", "documents"), SAME.values(), ids=SAME)
def test_what_stands_in_two_places_or_says_nothing_is_read_as_it_is(dialect, documents, monkeypatch):
    body = sse(*documents)
    found = [event for event in read_unjoined(dialect, body) if type(event) is TextDelta]
    assert all(event.text for event in found)
    check(dialect, body, monkeypatch)


def test_an_empty_text_ends_what_is_read_together():
    payloads = [b'{"t":"%b"}' % text for text in (b"a", b"b", b"", b"c")]
    out: list[Any] = []
    assert Alike(TextDelta("a"), finding(payloads[0], payloads[1], "a", ()), len).read(payloads, out) == 2
    assert out == [TextDelta("ab")]


@pytest.mark.parametrize("dialect", ALIKE)
def test_limits_are_met_where_they_are(dialect, monkeypatch):
    body = written(dialect, frames_of(dialect, vary=False))
    for limits in (
        Limits(arguments_chars=20),
        Limits(stream_arguments_chars=20),
        Limits(event_values=100),
        Limits(held_chars=900),
    ):
        check(dialect, body, monkeypatch, limits)


@pytest.mark.parametrize("vary", [False, True])
@pytest.mark.parametrize("dialect", ALIKE)
def test_few_payloads_are_read_alone(dialect, vary, monkeypatch):
    """Else the others here would show nothing."""
    alone: list[Frame] = []
    read_alone = FrameDecoder._read_frame
    monkeypatch.setattr(
        FrameDecoder, "_read_frame", lambda self, way, frame: alone.append(frame) or read_alone(self, way, frame)
    )
    read(dialect, [written(dialect, frames_of(dialect, vary=vary))], join=True)
    assert len(alone) < 30
