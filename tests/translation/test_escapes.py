"""Escapes of the wire are characters in arguments and results; numbers keep their digits (design.md §4)."""

from __future__ import annotations

import re

import orjson
import pytest

from streamkit import transcode
from streamkit.dialects import DIALECTS
from streamkit.testing import source_of
from streamkit.tool_calls.value_text import plain_text
from streamkit.translation.bodies import decode_request, decode_response, encode_request, encode_response
from tests.whole_answers import ANSWERING_WHOLE

#: The text of an object: characters of one, two and four bytes, escapes that must stay, and numbers that no float holds.
OBJECT = r'{"ort":"Zürich 😀 </b> \"q\" \\u00fc \n\u0001","n":12345678901234567890123,"x":1.0,"e":4e21}'
CALL = {"id": "call_00000001", "type": "function", "function": {"name": "f", "arguments": OBJECT}}
STREAM = (
    b'data: {"id":"c","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[%b]}}]}\n\n'
    b'data: {"id":"c","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}\n\ndata: [DONE]\n\n'
) % orjson.dumps({"index": 0, **CALL})
RESPONSE = orjson.dumps({
    "id": "c", "object": "chat.completion", "created": 1, "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": None, "tool_calls": [CALL]}, "finish_reason": "tool_calls"}],
})  # fmt: skip
REQUEST = orjson.dumps({
    "model": "m",
    "messages": [
        {"role": "user", "content": "Hi"}, {"role": "assistant", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call_00000001", "content": OBJECT},
    ],
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
})  # fmt: skip
#: Dialects whose frames have a length and a checksum: they are written escaped otherwise (``tests/responses``).
BINARY = "bedrock"


def escaped(body: bytes) -> bytes:
    """The same JSON as Go and Python write it: ASCII alone, and no character that HTML knows."""

    def escape(found: re.Match[str]) -> str:
        units = found[0].encode("utf-16-be")
        return "".join(rf"\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))

    return re.sub(r"[^\x00-\x7f]|[<>]", escape, body.decode()).replace("/", r"\/").encode()


async def converted(body: bytes, source: str, to: str) -> bytes:
    async with transcode(source_of([body]), source, to) as pipe:
        return b"".join([piece async for piece in pipe])


@pytest.mark.parametrize("dialect", sorted(DIALECTS.keys() - {"openai-chat", BINARY}))
async def test_in_a_stream(dialect):
    wire = escaped(await converted(STREAM, "openai-chat", dialect))
    chunks = [orjson.loads(line[6:]) for line in (await converted(wire, dialect, "openai-chat")).split(b"\n\n")[:-2]]
    calls = [call for chunk in chunks for each in chunk["choices"] for call in each["delta"].get("tool_calls", ())]
    assert "".join(call["function"].get("arguments", "") for call in calls) == OBJECT


@pytest.mark.parametrize("dialect", sorted({*ANSWERING_WHOLE} - {"openai-chat"}))
def test_in_a_whole_response(dialect):
    wire = escaped(encode_response(decode_response(RESPONSE, "openai-chat"), dialect))
    back = orjson.loads(encode_response(decode_response(wire, dialect), "openai-chat"))
    assert back["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] == OBJECT


@pytest.mark.parametrize("dialect", sorted(DIALECTS.keys() - {"openai-chat"}))
def test_in_a_request(dialect):
    wire = escaped(encode_request(decode_request(REQUEST, "openai-chat"), dialect))
    back = orjson.loads(encode_request(decode_request(wire, dialect), "openai-chat"))
    assert [call["function"]["arguments"] for call in back["messages"][1]["tool_calls"]] == [OBJECT]
    assert back["messages"][2]["content"] == OBJECT


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        (r'{"a":"\u00fc\u0026\/"}', '{"a":"ü&/"}'),
        (r'"\ud83d\ude00\u00e9"', '"😀é"'),
        (r'"\u0022\u005c\u000a\u0001\\u00fc"', r'"\"\\\n\u0001\\u00fc"'),
        (r'"\ud83d \ude00 \ud83d\ud83d\ude00"', r'"\ud83d \ude00 \ud83d😀"'),  # halves of pairs are no characters
        (r'{"\u006eame" : 1.0}', '{"name" : 1.0}'),
    ],
)
def test_escapes_of_characters_that_need_none_are_characters(text, plain):
    assert plain_text(text) == plain


@pytest.mark.parametrize("user", ["", "4e2b", "1234567890123456"])
def test_what_else_a_request_has_decides_nothing(user):
    body = b'{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{"a": "\\u00fc"}}]}],"x":"%b"}'
    [call] = decode_request(body % user.encode(), "anthropic").turns[0].parts
    assert call.arguments == '{"a":"ü"}'
