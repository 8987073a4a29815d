"""Stream or body: told by the bytes, however they are cut, and nothing is lost by looking."""

import asyncio

import pytest

from streamkit.dialects import DIALECTS
from streamkit.errors import BodyTooLong, SourceFailed
from streamkit.translation.bodies import encode_response
from streamkit.web import forms
from streamkit.web.forms import Came, form_of
from streamkit.web.source import DEFAULT_TIMEOUTS, TimedSource, _Body
from tests.web.faults import said, speech
from tests.whole_answers import ANSWERING_WHOLE


class Bytes(_Body):
    """A response's body, without a response."""

    def __init__(self, *chunks, error=None):
        self.chunks = list(chunks)
        self.error = error
        self._rest = b""

    async def __anext__(self):
        rest, self._rest = self._rest, b""
        if rest:
            return rest
        if self.chunks:
            return self.chunks.pop(0)
        if self.error is not None:
            raise self.error
        raise StopAsyncIteration

    def arrived(self):
        return b""

    async def aclose(self):
        pass


async def looked(dialect, *chunks, **how):
    """The form, its body, and what can still be read; what is read twice was counted once."""
    source = TimedSource(Bytes(*chunks), DEFAULT_TIMEOUTS)
    came = await form_of(source, DIALECTS[dialect], **how)
    rest = b"".join([chunk async for chunk in source])
    assert source.read_bytes == sum(map(len, chunks))
    return came.form, came.body, rest


def cuts(data):
    yield [data]
    yield [data[at : at + 1] for at in range(len(data))]
    yield from ([data[:at], data[at:]] for at in range(1, min(len(data), 60)))


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_stream_is_one_however_it_is_cut_and_all_of_it_is_still_there(dialect):
    stream = b"".join(speech(dialect))
    for chunks in cuts(stream):
        assert await looked(dialect, *chunks) == ("stream", b"", stream)


@pytest.mark.parametrize("dialect", ANSWERING_WHOLE)
async def test_a_body_is_one_however_it_is_cut(dialect):
    body = encode_response(said(dialect), dialect)
    for chunks in cuts(body):
        form, read, rest = await looked(dialect, *chunks)
        assert (form, read + rest) == ("line" if dialect == "ollama" else "body", body)


@pytest.mark.parametrize(
    ("dialect", "data", "form"),
    [
        ("openai-chat", b"", "other"),
        ("openai-chat", b" \n", "other"),
        ("openai-chat", b"<!DOCTYPE html>", "other"),
        ("openai-chat", b"dat", "other"),
        ("openai-chat", b"error: {}", "other"),
        ("openai-chat", b": ping\n\n", "stream"),
        ("openai-chat", b"\xef\xbb\xbfdata: {}\n\n", "stream"),
        ("openai-chat", b'{"error":{}}\ndata: {}\n\n', "other"),
        ("openai-chat", b'{"half":', "other"),
        ("openai-chat", b'[{"error":{}}]', "body"),
        ("gemini", b'[{"candidates":[]}]', "stream"),
        ("ollama", b'{"message":{},"done":false}\n{"done":true}\n', "stream"),
        ("ollama", b'{"error":"no"}', "line"),
        ("ollama", b'{\n "done": true\n}', "body"),
        ("bedrock", b'{"message":"no"}', "body"),
    ],
)
async def test_the_first_bytes_tell(dialect, data, form):
    for chunks in cuts(data) if data else [[]]:
        found, body, rest = await looked(dialect, *chunks)
        assert (found, body + rest) == (form, data)


async def test_a_body_is_bounded():
    with pytest.raises(BodyTooLong):
        await looked("openai-chat", b'{"a":"', *[b"x" * 100] * 20, body_bytes=1000)


async def test_what_breaks_is_raised_in_its_place():
    broken = SourceFailed("it broke")
    with pytest.raises(SourceFailed):
        await form_of(TimedSource(Bytes(error=broken), DEFAULT_TIMEOUTS), DIALECTS["openai-chat"])
    with pytest.raises(SourceFailed):
        await form_of(TimedSource(Bytes(b'{"id":"x",', error=broken), DEFAULT_TIMEOUTS), DIALECTS["openai-chat"])
    source = TimedSource(Bytes(b"dat", error=broken), DEFAULT_TIMEOUTS)
    assert (await form_of(source, DIALECTS["openai-chat"])).form == "other"
    assert await anext(source) == b"dat"
    with pytest.raises(SourceFailed):
        await anext(source)


async def test_a_long_body_is_parsed_a_few_times_only(monkeypatch):
    parsed = []
    monkeypatch.setattr("streamkit.web.forms._json", lambda text: parsed.append(len(text)))
    await looked("openai-chat", b'{"a":[', *[b'{"b":1}'] * 10_000, b"{}")
    assert sum(parsed) < 4 * 70_008


async def test_a_long_body_sets_few_timers(monkeypatch):
    loop, timers = asyncio.get_running_loop(), []
    monkeypatch.setattr(loop, "call_at", lambda *given: timers.append(given) or type(loop).call_at(loop, *given))
    text = b'{"a":"' + b"a" * 5000 + b'"}'
    assert await looked("openai-chat", *(text[at : at + 1] for at in range(len(text)))) == ("body", text, b"")
    assert len(timers) <= 4


async def test_a_body_is_parsed_once_and_its_values_are_counted(monkeypatch):
    parsed, read = [], forms._json
    monkeypatch.setattr(forms, "_json", lambda text: parsed.append(text) or read(text))
    came = await form_of(TimedSource(Bytes(b'{"a":[1,2]}', b"\n"), DEFAULT_TIMEOUTS), DIALECTS["openai-chat"])
    assert (came.form, came.values, len(parsed)) == ("body", 3, 1)


async def test_blanks_behind_a_body_that_is_left_open_do_not_delay_its_end():
    class Open(Bytes):
        async def __anext__(self):
            if not self.chunks:
                await asyncio.sleep(60)
            return await super().__anext__()

    source = TimedSource(Open(b'{"id":"x"}', b"\r", b"\n"), DEFAULT_TIMEOUTS)
    async with asyncio.timeout(5):
        assert await form_of(source, DIALECTS["openai-chat"]) == Came("body", b'{"id":"x"}\r\n')


async def test_what_is_put_back_is_read_again_without_copying_the_rest():
    body = _Body.__new__(_Body)
    body._rest, body._error = b"", None
    size = 64 * 1024 * 1024
    body.unread(b"x" * size)
    read, rests = 0, {id(body._rest)}
    while read < size:
        read += len(await anext(body))
        rests.add(id(memoryview(body._rest).obj))
    assert read == size
    assert len(rests) == 1  # 256, one a read, where each copies what is left
