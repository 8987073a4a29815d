"""What workers say to one another, as bytes."""

from __future__ import annotations

import asyncio
import socket
import struct

import pytest

from streamkit.resume import BadCursor, LogError, LogGap, LogGone, Meta, StoreDown
from streamkit.resume.worker_store import (
    DATA,
    END,
    ERROR,
    FRAME_BYTES,
    OPENED,
    PATH_BYTES,
    Frames,
    Question,
    error_frame,
    error_in,
    frame,
    opened_frame,
    opened_in,
)
from tests.resume.contract import META


def header(kind, size):
    return struct.pack(">cI", kind, size)


async def frames_of(data):
    reader = asyncio.StreamReader()
    reader.feed_data(data)
    reader.feed_eof()
    frames, found = Frames(reader), []
    while not reader.at_eof():
        found.append(await frames.read())
    return found


@pytest.mark.parametrize("ended", [None, "done", "shut_down"])
@pytest.mark.parametrize(
    "meta", [META, Meta(dialect="gemini", is_array=True, created=7.25, model="\u20ac", background=True)]
)
async def test_what_is_known_of_a_log_arrives_as_it_was(meta, ended):
    [(kind, payload)] = await frames_of(opened_frame(meta, ended))
    assert (kind, *opened_in(payload)) == (OPENED, meta, ended)


@pytest.mark.parametrize("error", [LogGone("a"), BadCursor("b"), LogGap("c"), StoreDown("d" * FRAME_BYTES)])
async def test_errors_arrive_as_they_were_raised(error):
    [(kind, payload)] = await frames_of(error_frame(error))
    told = error_in(payload)
    assert (kind, type(told)) == (ERROR, type(error))
    assert str(error).startswith(str(told))
    assert type(error_in((await frames_of(error_frame(LogError("e"))))[0][1])) is StoreDown


async def test_a_question_arrives_as_it_was_asked_unless_its_name_is_too_long():
    question = Question("load", "a\n\0\u20ac", "me", 7)
    assert Question.read(*(await frames_of(question.frame()))[0]) == question
    with pytest.raises(LogGone):
        Question("load", "a" * FRAME_BYTES).frame()


async def test_a_read_that_is_cancelled_loses_nothing():
    sent = frame(DATA, b"x" * 100) + frame(END, b"done")
    reader = asyncio.StreamReader()
    frames, found = Frames(reader), []
    for byte in sent:
        reading = asyncio.create_task(frames.read())
        await asyncio.sleep(0)
        reader.feed_data(bytes([byte]))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        if reading.done():
            found.append(reading.result())
        reading.cancel()
        await asyncio.wait({reading})
    assert found == [(DATA, b"x" * 100), (END, b"done")]


def test_the_longest_name_of_a_socket_is_one_that_the_system_takes(directory):
    name = str(directory / "x")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(name.ljust(PATH_BYTES, "x"))
    with socket.socket(socket.AF_UNIX) as listener, pytest.raises(OSError, match="path too long"):
        listener.bind(name.ljust(PATH_BYTES + 1, "x"))
