"""JSON values are counted without parsing, and one event has no more than its limit, in each dialect."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import orjson
import pytest

from streamkit import transcode
from streamkit.dialects import DIALECTS
from streamkit.dialects.streams import frame_decoder
from streamkit.errors import NotThisDialect, TooManyEventValues
from streamkit.framing import frame
from streamkit.framing.eventstream import serialize_eventstream
from streamkit.limits import Limits
from streamkit.read_options import ReadOptions
from streamkit.testing import source_of
from tests.web.faults import speech

MOST = 20_000
BOMBS = {
    "objects": b'{"zz":[%b{}]}' % (b"{}," * MOST),
    "numbers": b'{"zz":[%b0]}' % (b"0," * MOST),
    "keys": b'{%b"zz":0}' % b"".join(b'"%d":0,' % number for number in range(MOST)),
    "list": b"[%b{}]" % (b"{}," * MOST),
}
TEXTS = b'{"zz":"%b"}' % (b"[{," * MOST)


@pytest.mark.parametrize(
    "text", [b",[{" * 1000, b'\\"' * 999 + b"," * 2000, b"\\\\" * 3000 + b",", b'\\\\\\"{[,' * 500]
)
@pytest.mark.parametrize("size", [1, 2, 7, 4096])
def test_what_stands_in_texts_is_no_value_wherever_slices_cut(text, size, monkeypatch):
    monkeypatch.setattr(frame, "SLICE_BYTES", size)
    monkeypatch.setattr(frame, "FEW", 0)
    *_, found = frame.counted_values(b'{"a":"%b","b":[1,2,3]}' % text)
    assert found == 5


@pytest.mark.parametrize(("most", "more"), [(4, True), (5, False), (6, False)])
def test_a_bound_is_held_however_small_it_is(most, more):
    assert frame.has_more_values(b'{"a":"%b","b":[1,2,3]}' % (b",[{" * 100), most) == more


def framed(dialect: str, payload: bytes) -> bytes:
    """A frame of a dialect."""
    if dialect == "bedrock":
        headers = {":message-type": "event", ":event-type": "contentBlockDelta", ":content-type": "application/json"}
        return serialize_eventstream(headers, payload)
    return payload + b"\n" if dialect == "ollama" else b"data: " + payload + b"\n\n"


async def read(dialect: str, client: str, frame: bytes, at: int) -> tuple[bytes, Exception | None]:
    """What a client gets of a stream with that frame in it, and what broke it."""
    chunks = speech(dialect)
    stream = transcode(
        source_of([*chunks[:at], frame, *chunks[at:]]), dialect, client, ReadOptions(limits=Limits(event_values=MOST))
    )
    written = b""
    try:
        async with stream:
            async for part in stream:
                written += part
    except (NotThisDialect, TooManyEventValues):
        pass
    return written, stream.report.error


@pytest.mark.parametrize("client", ["own", "anthropic", "openai-chat"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_event_of_more_values_ends_the_stream_before_it_is_parsed(dialect, client, monkeypatch):
    parsed, json = [], SimpleNamespace(JSONDecodeError=orjson.JSONDecodeError)
    json.loads = lambda text: parsed.append(len(text)) or orjson.loads(text)
    monkeypatch.setattr(frame_decoder, "orjson", json)
    to = dialect if client == "own" else client
    for bomb in BOMBS.values():
        for at in (0, len(speech(dialect)) // 2):
            written, error = asyncio.run(read(dialect, to, framed(dialect, bomb), at))
            if type(error) is not NotThisDialect:  # as Ollama's are told of a list
                assert type(error) is TooManyEventValues
                assert (error.limit, error.allowed) == ("event_values", MOST)
            assert b"message_stop" not in written
            assert b"[DONE]" not in written
    assert max(parsed, default=0) < MOST


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_stands_in_the_texts_of_an_event_is_no_value(dialect):
    at = len(speech(dialect)) // 2
    _, error = asyncio.run(read(dialect, dialect, framed(dialect, TEXTS), at))
    assert error is None
