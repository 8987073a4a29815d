"""About how many tokens: whatever a model reads is counted, by the vocabulary or by bytes, in linear time."""

import base64

import orjson
import pytest

from streamkit.translation.bodies import decode_request
from streamkit.web import token_counts as module
from streamkit.web.token_counts import (
    FILE_TOKENS,
    IMAGE_TOKENS,
    MOST_CHARS,
    PIECE_CHARS,
    TOKEN_BYTES,
    TOOL_TOKENS,
    TURN_TOKENS,
    VOCABULARY,
    estimate,
    estimated,
)

PNG = base64.b64encode(b"\x89PNG" + b"\x00" * 300_000).decode()
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}


def request_of(*contents, dialect="anthropic", **members):
    messages = [{"role": "user", "content": content} for content in contents]
    body = {"model": "m", "max_tokens": 9, "messages": messages, **members}
    return decode_request(orjson.dumps(body), dialect)


@pytest.fixture(params=["bytes", VOCABULARY])
def method(request, monkeypatch):
    """Both ways; by bytes as if the extra were not installed."""
    if request.param == "bytes":
        monkeypatch.setattr(module, "_vocabulary", lambda: None)
    else:
        pytest.importorskip("bpe_openai", reason="the extra tokens is not installed")
    return request.param


def tokens(request, method):
    found = estimated(request)
    assert found.method == method
    assert found.headers == {"x-streamkit-count": f"estimate; method={method}"}
    return found.tokens


def test_text_is_about_as_long_as_it_is(method):
    text = "The quick brown fox jumps over the lazy dog. " * 100
    found = tokens(request_of(text), method) - 2 * TURN_TOKENS
    assert 1000 <= found <= 1300
    if method == "bytes":
        assert found == -(-len(text) // TOKEN_BYTES)


@pytest.mark.parametrize(
    "text",
    ["今天天气很好，我们去公园散步吧。", "Привет, как дела?", '{"city": "Oslo", "days": 3}', "def f(x): return x"],
)
def test_both_ways_are_of_one_size(text, monkeypatch):
    pytest.importorskip("bpe_openai", reason="the extra tokens is not installed")
    by_vocabulary = estimated(request_of(text * 50)).tokens
    monkeypatch.setattr(module, "_vocabulary", lambda: None)
    assert 0.5 < estimated(request_of(text * 50)).tokens / by_vocabulary < 2.5


USED = {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Oslo" * 50}}
GIVEN = {"type": "tool_result", "tool_use_id": "t1", "content": "It is cold. " * 50}
CALLED = [
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": [USED]},
    {"role": "user", "content": [GIVEN]},
]
MORE = {
    "the system's words": {"system": "Be brief. " * 50},
    "a tool": {"tools": [{"name": "weather", "description": "how it is " * 20, "input_schema": SCHEMA}]},
    "a call and its result": {"messages": CALLED},
}


@pytest.mark.parametrize("members", MORE.values(), ids=MORE)
def test_whatever_the_model_reads_is_counted(members, method):
    assert tokens(request_of("hi", **members), method) > tokens(request_of("hi"), method) + 40


def test_a_tool_of_each_dialect_is_counted_with_its_schema(method):
    wide = {"type": "object", "properties": {f"member_{n}": {"type": "string"} for n in range(50)}}
    function = {"name": "f", "description": "d", "parameters": wide}
    chat = request_of("hi", dialect="openai-chat", tools=[{"type": "function", "function": function}])
    contents = [{"role": "user", "parts": [{"text": "hi"}]}]
    gemini = decode_request(
        orjson.dumps({"contents": contents, "tools": [{"functionDeclarations": [function]}]}), "gemini"
    )
    for request in (chat, gemini):
        assert tokens(request, method) > 300 + TOOL_TOKENS


def test_an_image_is_a_flat_number_however_many_bytes_it_has(method):
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    found = tokens(request_of([image, {"type": "text", "text": "what?"}]), method)
    assert IMAGE_TOKENS < found < IMAGE_TOKENS + 50
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [image]}
    assert (
        tokens(request_of("hi", messages=[*CALLED[:2], {"role": "user", "content": [result]}]), method) > IMAGE_TOKENS
    )


def test_a_file_is_a_flat_number_unless_it_is_text(method):
    def with_file(media_type, data):
        source = {"type": "base64", "media_type": media_type, "data": base64.b64encode(data).decode()}
        return request_of([{"type": "document", "source": source}])

    assert FILE_TOKENS < tokens(with_file("application/pdf", b"%PDF" * 9), method) < FILE_TOKENS + 50


def test_an_empty_request_has_a_few_tokens(method):
    assert 0 < tokens(request_of(""), method) < 20


def test_what_is_very_long_is_counted_by_bytes():
    assert estimated(request_of("x" * (MOST_CHARS + 1))).method == "bytes"


@pytest.mark.parametrize("text", ["a" * 800_000, " " * 800_000, "<|endoftext|>" * 60_000, "\u4f60" * 400_000])
def test_no_text_takes_long_or_fails(text, method, monkeypatch):
    encode, pieces = module._vocabulary(), []

    def counting(piece):
        pieces.append(len(piece))
        return encode(piece)

    monkeypatch.setattr(module, "_vocabulary", lambda: counting if encode else None)
    assert estimated(request_of(text)).tokens > 5_000
    assert sum(pieces) in ({0} if method == "bytes" else range(len(text), len(text) + 100))
    assert max(pieces, default=0) <= PIECE_CHARS  # so the work grows with their number, whatever a piece takes


async def test_it_is_done_beside_the_event_loop():
    assert (await estimate(request_of("hi"))).tokens == estimated(request_of("hi")).tokens
