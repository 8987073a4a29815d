"""Which dialect a stream speaks: the first frame that one recognises decides, whatever follows it."""

from __future__ import annotations

import pytest

from streamkit import detect
from streamkit.detection import DETECT_BYTES
from streamkit.dialects import DIALECTS
from streamkit.errors import NotThisDialect
from streamkit.testing import FaultySource, cut_at, open_sources
from tests.corpora import recordings
from tests.framing.binary import error
from tests.vectors import LOOKS_LIKE, VECTORS
from tests.vectors.vector import sse

TEXTS = {vector.dialect: vector.body for vector in VECTORS if vector.name == "text"}


async def found(*reads: bytes) -> str:
    name, source = await detect(FaultySource(list(reads)))
    await source.aclose()
    assert open_sources() == 0
    return name


@pytest.mark.parametrize("dialect", TEXTS)
async def test_a_stream_is_recognised_in_one_read_and_byte_by_byte(dialect):
    body, name = TEXTS[dialect], LOOKS_LIKE.get(dialect, dialect)
    assert await found(body) == name
    assert await found(*cut_at(body, list(range(1, len(body))))) == name


async def test_a_foreign_terminator_in_the_same_read_decides_nothing():
    assert await found(TEXTS["anthropic"] + sse(b"[DONE]")) == "anthropic"
    assert await found(sse(b"[DONE]")) == "openai-chat"


async def test_an_end_mark_behind_a_foreign_stream_is_nobodys():
    ui = sse({"op": "start"}, {"op": "delta", "id": "t", "delta": "Hi"}, {"op": "finish"}, b"[DONE]")
    for cuts in ((), range(1, len(ui))):
        with pytest.raises(NotThisDialect):
            await found(*cut_at(ui, list(cuts)))


@pytest.mark.parametrize("payload", [b'"hello"', b"7", b"true"])
async def test_an_end_mark_behind_texts_that_are_no_objects_is_nobodys(payload):
    with pytest.raises(NotThisDialect):
        await found(sse(payload, payload, b"[DONE]"))


async def test_an_end_mark_tells_where_nothing_foreign_came():
    bare = {"object": "error", "message": "no such model", "type": "NotFoundError", "code": 404}
    for before in (b": ping\n\n", sse({}), sse(b"null"), sse(bare)):
        assert await found(before + sse(b"[DONE]")) == "openai-chat"


async def test_an_error_alone_is_recognised_though_it_has_no_payload():
    assert await found(error("InternalFailure", "gone")) == "bedrock"
    with pytest.raises(NotThisDialect):
        await found(b"data:\n\n")


async def test_a_choice_with_text_and_no_delta_is_no_chunk_of_chat():
    chunk = {"id": "c", "object": "text_completion", "choices": [{"index": 0, "text": "Hi", "finish_reason": None}]}
    usage = {**chunk, "choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}
    for payloads in ([chunk], [chunk, usage, b"[DONE]"]):
        with pytest.raises(NotThisDialect, match=r"older Completions API.*call /v1/chat/completions"):
            await found(sse(*payloads))
    chunk["choices"] = [{"index": 0, "delta": {"content": "Hi"}}]  # an old server writes that object over Chat's deltas
    assert await found(sse(chunk)) == "openai-chat"


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_recordings_are_recognised(dialect):
    for stream in recordings(dialect):
        assert await found(stream.body) == dialect, stream.name


async def test_a_first_event_that_repeats_a_long_prompt_is_recognised():
    created = {"type": "response.created", "response": {"id": "r", "instructions": "x" * 900_000}}
    assert await found(*cut_at(sse(created), list(range(65_536, 900_000, 65_536)))) == "openai-responses"


@pytest.mark.parametrize("size", [1000, 65_536, 2 * DETECT_BYTES])
@pytest.mark.parametrize("more", [0, 1])
async def test_how_much_is_searched_does_not_depend_on_the_reads(size, more):
    event = b'data: {"type":"response.created","response":{"id":"'
    body = event.ljust(DETECT_BYTES - 5 + more, b"x") + b'"}}\n\n' + sse({"choices": []})
    reads = cut_at(body, list(range(size, len(body), size)))
    if more:
        reason = r"found text \(.*\) without an event that ends within 1,048,576 bytes"
        with pytest.raises(NotThisDialect, match=reason):
            await found(*reads)
    else:
        assert await found(*reads) == "openai-responses"
