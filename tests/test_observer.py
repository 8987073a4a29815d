"""An observer says what a stream says to who reads it, and each thing at its byte."""

import pytest

from streamkit import encode_response
from streamkit.conversation.messages import Choice, Response, Text
from streamkit.dialects import DIALECTS
from streamkit.errors import LineTooLong
from streamkit.events import TextDelta
from streamkit.limits import Limits
from streamkit.observer import Observer
from streamkit.read_options import DEFAULT_OPTIONS, ReadOptions
from streamkit.recipes import collect, events_of, transcode
from streamkit.report import Status
from streamkit.testing import joined
from tests.cli.command import DEMO
from tests.vectors import VECTORS
from tests.vectors.vector import sse

FIXED = ReadOptions(make_id=lambda prefix: f"{prefix}made")


async def in_reads(body, size=1000):
    for at in range(0, len(body), size):
        yield body[at : at + size]


def read(body, dialect, *, size=1000, options=FIXED, **more):
    """The observer, and all that it saw."""
    observer = Observer(dialect, options, **more)
    seen = [each for at in range(0, len(body), size) for each in observer.feed(body[at : at + size])]
    return observer, seen + observer.finish()


@pytest.mark.parametrize("dialect", DIALECTS.built_in)
async def test_the_events_are_those_of_the_recipe(dialect):
    for vector in (vector for vector in VECTORS if vector.dialect == dialect):
        await check(vector)


async def check(vector):
    expected = []
    async with events_of(in_reads(vector.body), vector.dialect, FIXED) as stream:
        try:
            async for batch in stream:
                expected += batch
        except Exception as error:  # noqa: BLE001 - whatever broke it
            stream.report.failed(error)
    observer, seen = read(vector.body, vector.dialect)
    assert [event for each in seen for event in each.events] == expected
    assert observer.report.repairs == stream.report.repairs
    assert type(observer.report.error) is type(stream.report.error)
    assert observer.report.status is stream.report.status
    assert sum(sum(each.repairs.values()) for each in seen) == stream.report.repairs.total()


@pytest.mark.parametrize("size", [1, 7, 4096])
async def test_an_event_has_the_byte_at_which_its_frame_begins(size):
    body = DEMO.read_bytes()
    _, seen = read(body, "openai-chat", size=size)
    offsets = {each.offset for each in seen if each.events and each.offset < len(body)}
    assert len(offsets) > 10
    assert all(body[offset:].startswith(b"data: ") for offset in offsets)


def test_a_repair_is_found_at_its_frame():
    odd = b'{"index": 1, "id": "call_other", "function"'
    body = DEMO.read_bytes().replace(b'{"index": 1, "function"', odd)
    _, seen = read(body, "openai-chat")
    [found] = {(each.offset, kind) for each in seen for kind in each.repairs if each.offset < body.index(odd)}
    assert found == (body.rindex(b"data: ", 0, body.index(odd)), "id_changed")


def test_a_loss_is_found_at_the_frame_that_the_client_does_not_get_whole():
    frame = {
        "choices": [{"index": 0, "delta": {"content": "a"}, "logprobs": {"content": [{"token": "a", "logprob": -1}]}}]
    }
    first = sse({"choices": [{"index": 0, "delta": {"role": "assistant"}}]})
    _, seen = read(first + sse(frame, b"[DONE]"), "openai-chat", client="anthropic")
    assert (len(first), {"logprobs": 1}) in [(each.offset, each.losses) for each in seen]


@pytest.mark.parametrize("client", ["anthropic", "ollama", "openai-responses"])
async def test_what_is_encoded_is_what_a_client_would_get(client):
    body = DEMO.read_bytes()
    options = ReadOptions(make_id=lambda prefix: f"{prefix}made")
    written = b""
    async with transcode(in_reads(body, len(body)), "openai-chat", client, options, join=False) as stream:
        async for chunk in stream:
            written += chunk
    _, seen = read(body, "openai-chat", client=client, options=options)
    assert len(b"".join(each.written for each in seen).splitlines()) == len(written.splitlines())


async def test_what_breaks_the_reading_is_told_and_ends_it():
    body = DEMO.read_bytes()[:1500]
    broken = body[: body.rindex(b"\n\n") + 2] + b"data: {nonsense\n\n" + DEMO.read_bytes()[1500:]
    observer, seen = read(broken, "openai-chat", client="anthropic")
    answer = await collect(in_reads(broken), "openai-chat", DEFAULT_OPTIONS)
    assert type(observer.report.error) is type(answer.report.error)
    assert observer.report.status is Status.FAILED
    assert b"event: error" in b"".join(each.written for each in seen)


def test_where_events_alone_are_wanted_a_read_is_seen_at_once():
    body = DEMO.read_bytes()
    observer, seen = read(body, "openai-chat", by_frame=False, size=1000)
    assert [(each.offset, each.frame) for each in seen[:-1]] == [(at, None) for at in range(0, len(body), 1000)]
    _, each_frame = read(body, "openai-chat")
    assert joined(event for each in seen for event in each.events) == joined(
        event for each in each_frame for event in each.events
    )
    assert observer.report.status is Status.DONE


def test_after_a_fault_frames_are_seen_and_not_read():
    observer, seen = read(sse({"choices": []}, b"{nonsense", {"choices": []}), "openai-chat")
    first, broken, behind, end = seen
    assert (first.fault, broken.fault, behind.fault, end.fault) == (None, observer.fault, None, None)
    assert (behind.frame.data, behind.events, end.frame) == (b'{"choices":[]}', [], None)


def test_what_stops_the_parser_is_seen_at_its_byte():
    body = DEMO.read_bytes()
    limits = Limits(line_bytes=600)
    observer, seen = read(body + b"data: " + bytes(700), "openai-chat", options=ReadOptions(limits=limits))
    stopped = next(each for each in seen if each.fault is not None)
    assert (stopped.offset, stopped.frame, stopped.fault) == (len(body), None, observer.fault)
    assert isinstance(observer.fault, LineTooLong)


def test_a_whole_response_is_seen_at_its_end():
    response = Response("openai-chat", choices=[Choice(parts=[Text("Hi")], stop_reason="stop")], clean=True)
    observer = Observer("openai-chat", client="anthropic", whole=True)
    assert observer.feed(encode_response(response, "openai-chat")) == []
    [seen] = observer.finish()
    assert [event.text for event in seen.events if isinstance(event, TextDelta)] == ["Hi"]
    assert b"message_stop" in seen.written


def test_a_body_that_is_no_response_is_a_fault():
    observer = Observer("openai-chat", whole=True)
    observer.feed(b"<html>")
    [seen] = observer.finish()
    assert seen.fault is observer.fault is observer.report.error
    assert observer.report.status is Status.NOT_THIS_DIALECT
