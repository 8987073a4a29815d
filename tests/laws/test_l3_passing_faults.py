"""L1 and L3 behind a fault, where frames pass within one dialect: nothing of the frame at fault or behind it goes out.

Whole streams are broken in each way that a stream can break, and read whole, frame by frame, in single bytes, in pairs of
them and at seeded cuts. What the client gets, and the report, must be the same each time; an answer that is not whole has no
success terminator; and decoding and encoding the same stream must come to the same end.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from streamkit.dialects import DIALECTS
from streamkit.dialects.profiles import Profile
from streamkit.limits import Limits
from streamkit.read_options import ReadOptions
from streamkit.recipes import transcode
from streamkit.report import StreamReport
from streamkit.testing import cut_at, source_of
from tests.framing.binary import exception, message, string
from tests.laws.oracle import ORACLES, facts, says_success
from tests.laws.running import CLOCK, OURS, Stream, maker, recorded
from tests.sampling import Part, part_of

LIMITS = Limits(event_bytes=64 * 1024, line_bytes=64 * 1024)
ERRORS = {
    "openai-chat": b'data: {"error":{"message":"gone","type":"server_error"}}\n\n',
    "mistral": b'data: {"object":"error","message":"gone","type":"internal_server_error","code":"1000"}\n\n',
    "anthropic": b'event: error\ndata: {"type":"error","error":{"type":"api_error","message":"gone"}}\n\n',
    "ollama": b'{"error":"gone"}\n',
    "gemini": b'data: {"error":{"code":500,"message":"gone","status":"INTERNAL"}}\r\n\r\n',
    "bedrock": exception("internalServerException", {"message": "gone"}),
    "cohere": b'event: message-end\ndata: {"type":"message-end","delta":{"finish_reason":"ERROR","error":"gone"}}\n\n',
    "gemini-interactions": b'event: error\ndata: {"event_type":"error","error":{"code":"api_error","message":"gone"}}\n\n',
    "ag-ui": b'data: {"type":"RUN_ERROR","message":"gone"}\n\n',
    "ai-sdk": b'data: {"type":"error","errorText":"gone"}\n\n',
    "openai-responses": b'event: error\ndata: {"type":"error","message":"gone","code":"server_error","sequence_number":1}\n\n',
}
FOREIGN_ERRORS = {name: b'data: {"detail":"gone"}\n\n' for name in DIALECTS if name not in {"ollama", "bedrock"}}


def is_array(stream: Stream) -> bool:
    return stream.dialect == "gemini" and stream.body.lstrip().startswith(b"[")


def frames_of(stream: Stream) -> list[bytes]:
    """The bytes of each frame, with what stands before the next one."""
    parser = DIALECTS[stream.dialect].parser(Limits(), StreamReport())
    starts = [frame.offset for frame in parser.feed(stream.body)]
    return cut_at(stream.body, starts[1:]) if len(starts) > 1 else [stream.body]


def broken(dialect: str) -> bytes:
    """A frame whose payload is no JSON."""
    if dialect == "bedrock":
        return message(string(":message-type", "event") + string(":event-type", "contentBlockDelta"), b'{"delta":{]')
    return b'{"x":]}\n' if dialect == "ollama" else b'data: {"choices":[{"delta":}]}\n\n'


def too_long(dialect: str) -> bytes:
    size = LIMITS.event_bytes
    if dialect == "bedrock":
        return message(string(":message-type", "event") + string(":event-type", "x"), b'{"x":"%b"}' % (b"x" * size))
    return b'{"x":"%b"}\n' % (b"x" * size) if dialect == "ollama" else b'data: {"x":"%b"}\n\n' % (b"x" * size)


def put(frames: list[bytes], at: int, what: bytes) -> bytes:
    return b"".join([*frames[:at], what, *frames[at:]])


def flip(frame: bytes, rng: random.Random) -> bytes:
    place = rng.randrange(len(frame))
    return frame[:place] + bytes([rng.randrange(256)]) + frame[place + 1 :]


def element(dialect: str, event: bytes, *, array: bool) -> bytes:
    """An event of its own line as the element of an array, with its comma."""
    return event.removeprefix(b"data: ").rstrip() + b",\r\n" if array and dialect == "gemini" else event


Break = Callable[[Stream, list[bytes], int, random.Random], bytes]
#: Name of a fault: frames, the number of one, and what is left of the stream.
FAULTS: dict[str, Break] = {
    "no JSON": lambda s, frames, at, _: put(frames, at, element(s.dialect, broken(s.dialect), array=is_array(s))),
    "cut frame": lambda _, frames, at, rng: b"".join(
        [*frames[:at], frames[at][: rng.randrange(len(frames[at]))], *frames[at + 1 :]]
    ),
    "second response": lambda s, frames, at, _: put(
        frames, at, s.body.removeprefix(b"[").replace(b'"id":"', b'"id":"2').replace(b'"responseId":"', b'"responseId":"2')
    ),
    "error": lambda s, frames, at, _: put(frames, at, element(s.dialect, ERRORS[s.dialect], array=is_array(s))),
    "foreign error": lambda s, frames, at, _: put(
        frames, at, element(s.dialect, FOREIGN_ERRORS.get(s.dialect, ERRORS[s.dialect]), array=is_array(s))
    ),
    "too long": lambda s, frames, at, _: put(frames, at, element(s.dialect, too_long(s.dialect), array=is_array(s))),
    "no UTF-8": lambda _, frames, at, rng: b"".join(
        [*frames[:at], frames[at].replace(b'":"', b'":"' + rng.choice([b"\xff", b"\xc3", b"\xed\xa0\x80"])), *frames[at + 1 :]]
    ),
    "again behind the end": lambda s, frames, at, _: s.body + b"".join(frames[at:]),
    "wrong order": lambda _, frames, at, rng: b"".join(
        [*frames[:at], *rng.sample(frames[at:], len(frames[at:]))]
    ),
    "cut end": lambda s, _frames, _at, rng: s.body[: rng.randrange(len(s.body))],
    "a byte": lambda _, frames, at, rng: b"".join([*frames[:at], flip(frames[at], rng), *frames[at + 1 :]]),
    "half a character": lambda s, frames, at, _: b"".join(
        [*frames[:at], frames[at].replace(b'"}', b'\\ud83d"}'), broken(s.dialect), *frames[at + 1 :]]
    ),
    "error at the end": lambda s, _frames, _at, _rng: s.body + ERRORS[s.dialect],
    "garbage at the end": lambda s, _frames, _at, _rng: s.body + broken(s.dialect),
}  # fmt: skip
#: A message's checksum finds these first.
BINARY = {"no UTF-8", "half a character"}


def sources(per_dialect: int) -> list[Stream]:
    """For each dialect the shortest recordings and vectors of ours, arrays of Gemini's too, by a seed."""
    rng = random.Random(14)
    found: list[Stream] = []
    for dialect in DIALECTS:
        for array in (False, True):
            for all_ in (OURS, recorded()):
                some = [s for s in all_ if s.dialect == dialect and is_array(s) == array and 100 < len(s.body) < 6000]
                found += rng.sample(some, min(per_dialect, len(some)))
    return found


def ways(body: bytes, frames: list[bytes], rng: random.Random) -> Iterator[tuple[str, list[bytes]]]:
    size = len(body)
    yield "two bytes a read", cut_at(body, list(range(2, size, 2)))
    if size < 8000:
        yield "a byte a read", cut_at(body, list(range(1, size)))
    places, at = [], 0
    for frame in frames:
        at += len(frame)
        places.append(min(at, size))
    yield "a frame a read", cut_at(body, places)
    for _ in range(4):
        yield "seeded", cut_at(body, sorted(rng.sample(range(1, size), min(6, size - 1))))
    place = rng.randrange(1, size)
    yield f"cut at {place}", cut_at(body, [place])


def told(report: StreamReport) -> tuple[object, ...]:
    return (
        report.status,
        report.clean,
        str(report.error),
        report.provider_error,
        report.completed,
        report.broken_frame,
    )


async def passed(dialect: str, reads: list[bytes], **options: Any) -> tuple[bytes, StreamReport]:
    report = StreamReport()
    how = ReadOptions(limits=LIMITS, make_id=maker())
    async with transcode(source_of(reads), dialect, dialect, how, report=report, clock=CLOCK, **options) as stream:
        return b"".join([piece async for piece in stream]), report


async def check(dialect: str, body: bytes, frames: list[bytes], rng: random.Random) -> None:
    profile = rng.choice([None, Profile(include_usage=False, model="asked")])
    output, report = await passed(dialect, [body], profile=profile)
    for name, reads in ways(body, frames, rng):
        other, again = await passed(dialect, reads, profile=profile)
        assert other == output, name
        assert told(again) == told(report), name
    if not report.clean:
        # Gemini has no terminator: a reason may have passed before the error that is the last element
        assert dialect == "gemini" or not says_success(dialect, output)
        assert not (marks := facts(dialect, output)) or not marks[-1].complete
    at = getattr(report.error, "offset", None)
    if at is not None and not report.clean and profile is None:
        behind = [payload for end, payload in ORACLES[dialect][1](output) if end > at]
        assert all(b"error" in payload.lower() or b"exception" in payload.lower() for payload in behind)
    encoded, by_encoding = await passed(dialect, [body], reencode=True)
    assert (report.status, report.clean) == (by_encoding.status, by_encoding.clean)
    if dialect != "gemini" and says_success(dialect, output):
        assert says_success(dialect, encoded)


@pytest.mark.parametrize(
    ("part", "draws"),
    [pytest.param(Part(0, 2), 1, id="half"), pytest.param(Part(0, 1), 6, id="all", marks=pytest.mark.exhaustive)],
)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_nothing_behind_a_fault_passes_however_it_is_cut(dialect, fault, part, draws):
    """`make test` breaks every other stream of a dialect in one way, and the others in the next."""
    streams = [stream for stream in sources(2) if stream.dialect == dialect]
    for stream in part_of(streams, part, turn=list(FAULTS).index(fault)):
        if dialect == "bedrock" and fault in BINARY:
            continue
        rng = random.Random(f"{stream.name} {fault}")
        frames = frames_of(stream)
        for _ in range(draws):
            body = FAULTS[fault](stream, frames, rng.randrange(len(frames)), rng)
            if len(body) > 1:
                await check(dialect, body, frames, rng)
