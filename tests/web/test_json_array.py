"""An array reads as the events do that it was made of: every vector of Gemini's, every dialect into Gemini's, cut anyhow."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import orjson
import pytest
from attrs import asdict

from streamkit import collect, parse_json_array, pipe, transcode
from streamkit.dialects.gemini.framing import ARRAY, ArrayWriter
from streamkit.errors import BrokenFrame, EventTooLong, SourceFailed
from streamkit.events import ProviderFailed
from streamkit.limits import Limits
from streamkit.read_options import ReadOptions
from streamkit.report import StreamReport
from streamkit.web.reply import as_array, events_to_array
from tests.vectors import VECTORS
from tests.vectors.gemini import STOP, array, chunk, events, text
from tests.vectors.vector import Vector

ONE, TWO = chunk(text("Hel")), chunk(text("lo"))


async def source_of(*chunks: bytes) -> AsyncIterator[bytes]:
    for piece in chunks:
        yield piece


def written(*chunks: bytes) -> bytes:
    writer = ArrayWriter()
    output = b"".join([writer.feed(piece) for piece in chunks]) + writer.finish()
    assert writer.fault is None
    return output


def cuts(body: bytes) -> Iterator[tuple[bytes, ...]]:
    yield (body,)
    yield tuple(bytes([byte]) for byte in body)
    for place in range(1, len(body)):
        yield body[:place], body[place:]


async def elements_of(body: bytes) -> list[Any]:
    async with pipe(source_of(body), parse_json_array()) as frames:
        return [orjson.loads(frame.data) async for batch in frames for frame in batch]


async def transcoded(vector: Vector, *, wrapped: bool) -> tuple[bytes, StreamReport]:
    stream = transcode(
        source_of(vector.body), vector.dialect, "gemini", ReadOptions(make_id=lambda kind: f"{kind}1"), clock=lambda: 0
    )
    report = stream.report
    async with as_array(stream, ARRAY) if wrapped else stream as output:
        body = b"".join([piece async for piece in output])
        assert output.report is report
    return body, report


def said(report: StreamReport) -> dict[str, Any]:
    """A report, in which an exception is its words."""
    return {**asdict(report, recurse=False), "error": repr(report.error)}


# -- what is written ---------------------------------------------------------------------------------------------------


def test_events_are_elements():
    one, two = orjson.dumps(ONE), orjson.dumps(TWO)
    assert written(events(ONE, TWO)) == b"[" + one + b",\r\n" + two + b"\r\n]"
    assert written(events(ONE)) == b"[" + one + b"\r\n]"
    assert written() == b"[]"


def test_an_element_goes_out_with_its_event():
    writer = ArrayWriter()
    assert writer.feed(events(ONE)) == b"[" + orjson.dumps(ONE)
    assert writer.feed(b"") == b""
    assert writer.feed(events(TWO)) == b",\r\n" + orjson.dumps(TWO)


def test_the_cuts_do_not_matter():
    body = events(ONE, STOP)
    assert {written(*chunks) for chunks in cuts(body)} == {written(body)}


@pytest.mark.parametrize(
    "body",
    [
        events(ONE, TWO).replace(b"\r", b""),
        b"\xef\xbb\xbf: hello\r\n\r\n" + events(ONE, TWO),
        events(ONE, TWO, b"[DONE]"),
        events(ONE, b"", TWO),
        array(ONE, TWO),
        json.dumps([ONE, TWO], indent=4).encode(),
        b"".join(b"data:%b\n" % line for line in json.dumps(ONE, indent=1).encode().split(b"\n")) + b"\n" + events(TWO),
    ],
    ids=["LF", "comment", "[DONE]", "blank", "array", "printed array", "lines of data"],
)
async def test_what_passed_unchanged_is_read_however_it_was_written(body):
    assert await elements_of(written(body)) == [ONE, TWO]


# -- how it ends -------------------------------------------------------------------------------------------------------


def test_an_error_alone_is_an_array_of_one():
    body = ARRAY.error(ProviderFailed("unavailable", "busy"))
    assert json.loads(body) == [{"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}}]
    assert json.loads(b"  " + body)


async def test_a_bug_in_front_of_it_leaves_the_array_open():
    async def broken() -> AsyncIterator[bytes]:
        yield events(ONE)
        raise ZeroDivisionError

    got = b""
    with pytest.raises(ZeroDivisionError):
        async with pipe(broken(), events_to_array(ARRAY)) as output:
            async for piece in output:
                got += piece
    assert got == b"[" + orjson.dumps(ONE)


async def test_what_precedes_a_fault_is_handed_over():
    got = b""
    source = source_of(events(ONE) + b"data: " + b"x" * 999)
    with pytest.raises(EventTooLong):
        async with pipe(source, events_to_array(ARRAY, limits=Limits(event_bytes=200))) as output:
            async for piece in output:
                got += piece
    assert got == b"[" + orjson.dumps(ONE)


def test_a_frame_that_its_end_broke_off_is_a_fault_and_no_element():
    writer = ArrayWriter()
    output = writer.feed(events(ONE) + b'data: {"candi') + writer.finish()
    assert output == b"[" + orjson.dumps(ONE)
    assert isinstance(writer.fault, BrokenFrame)


# -- the whole way -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: f"{vector.dialect}: {vector.name}")
async def test_an_array_reads_as_the_events(vector):
    sse, told = await transcoded(vector, wrapped=False)
    body, report = await transcoded(vector, wrapped=True)
    assert said(report) == said(told)
    json.loads(body)
    expected = await collect(source_of(sse), "gemini", ReadOptions(make_id=lambda kind: f"{kind}1"))
    for chunks in ((body,), tuple(body[at : at + 7] for at in range(0, len(body), 7))):
        assert await collect(source_of(*chunks), "gemini", ReadOptions(make_id=lambda kind: f"{kind}1")) == expected


@pytest.mark.parametrize("vector", [v for v in VECTORS if v.dialect == "gemini"][:12], ids=lambda vector: vector.name)
async def test_a_cut_stream_ends_as_one_that_passed_through(vector):
    """The array is whole JSON, and whether it was a whole response is said by its elements."""
    for place in range(0, len(vector.body), 11):
        cut = Vector(name="cut", dialect="gemini", body=vector.body[:place])
        sse, told = await transcoded(cut, wrapped=False)
        body, report = await transcoded(cut, wrapped=True)
        json.loads(body)
        assert said(report) == said(told)
        expected, got = await collect(source_of(sse), "gemini"), await collect(source_of(body), "gemini")
        assert (got.clean, got.text, got.error) == (expected.clean, expected.text, expected.error)


async def test_the_inner_pipe_is_closed_with_the_outer():
    closed: list[str] = []

    async def open_source() -> AsyncIterator[bytes]:
        try:
            yield events(ONE)
            yield events(TWO)
        finally:
            closed.append("source")

    async with as_array(transcode(open_source(), "gemini", "gemini"), ARRAY) as output:
        async for _piece in output:
            break
    assert closed == ["source"]


async def test_a_pipe_that_was_never_read_is_closed_too():
    class Source:
        closed = 0

        def __aiter__(self) -> Source:
            return self

        async def __anext__(self) -> bytes:
            raise AssertionError

        async def aclose(self) -> None:
            Source.closed += 1

    async with as_array(transcode(Source(), "openai-chat", "gemini"), ARRAY):
        pass
    assert Source.closed


async def test_a_source_that_fails_is_told_in_the_array():
    async def failing() -> AsyncIterator[bytes]:
        yield events(ONE)
        raise SourceFailed("the connection to the upstream broke")

    async with as_array(transcode(failing(), "gemini", "gemini"), ARRAY) as output:
        body = b"".join([piece async for piece in output])
    *rest, last = json.loads(body)
    assert rest == [ONE]
    assert "the connection to the upstream broke" in last["error"]["message"]
