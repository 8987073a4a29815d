"""A recording without times is shown frame by frame, and says how it ended."""

import pytest

from streamkit.dialects import DIALECTS
from streamkit.errors import SourceFailed
from streamkit.lab.inspector.captures import Captures
from streamkit.lab.inspector.playback import follow, frames
from streamkit.read_options import DEFAULT_OPTIONS
from tests.cli.command import DEMO
from tests.vectors import VECTORS


async def in_reads(body, size=64 * 1024):
    for at in range(0, len(body), size):
        yield body[at : at + size]


@pytest.mark.parametrize("dialect", DIALECTS.built_in)
async def test_the_frames_of_a_stream_are_all_of_its_bytes(dialect):
    for body in (vector.body for vector in VECTORS if vector.dialect == dialect):
        for size in 5, 64 * 1024:
            assert b"".join([part async for part in frames(in_reads(body, size), dialect)]) == body


async def test_each_frame_is_a_step():
    capture = Captures().open("one", timed=False, about={"file": "demo.sse"})
    await follow(in_reads(DEMO.read_bytes()), capture, "openai-chat", DEFAULT_OPTIONS)
    reads = [step.data for step in capture.steps if step.kind == "read"]
    assert len(reads) == DEMO.read_bytes().count(b"\n\n")
    assert all(data.startswith((b": demo", b"data: ")) for data in reads)


@pytest.mark.parametrize(
    ("body", "ending"),
    [
        (DEMO.read_bytes(), "whole"),
        (DEMO.read_bytes()[:2000], "cut"),
        (b'data: {"error":{"message":"no","type":"server_error"}}\n\n', "error"),
        (b"<html>", "other dialect"),
        (b'data: {"choices":[]}\n\ndata: {x\n\ndata: {"choices":[]}\n\n', "failed"),
    ],
)
async def test_it_says_how_it_ended(body, ending):
    capture = Captures().open("one")
    await follow(in_reads(body), capture, "openai-chat", DEFAULT_OPTIONS)
    assert capture.ended == {"ending": ending}


async def failing(body):
    yield body
    raise SourceFailed("the connection to the upstream broke")


@pytest.mark.parametrize("timed", [True, False])
async def test_one_whose_source_fails_has_all_that_came_before_and_says_why(timed):
    capture = Captures().open("one", timed=timed)
    with pytest.raises(SourceFailed):
        await follow(failing(DEMO.read_bytes()[:2000]), capture, "openai-chat", DEFAULT_OPTIONS)
    assert b"".join(step.data for step in capture.steps) == DEMO.read_bytes()[:2000]
    assert capture.ended == {"ending": "failed", "error": "the connection to the upstream broke"}


async def test_what_breaks_behind_the_terminator_takes_nothing_back():
    capture = Captures().open("one")
    await follow(failing(DEMO.read_bytes()), capture, "openai-chat", DEFAULT_OPTIONS)
    assert capture.ended == {"ending": "whole"}
