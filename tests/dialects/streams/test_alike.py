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
from streamkit.dialects.streams.alike import Alike
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
from tests.laws.running import CLOCK, every_stream, maker, read
from tests.sampling import few


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


DEEP = json.loads("[" * 150 + "]" * 150)
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
