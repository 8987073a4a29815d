"""Changes to an input: bytes, JSON tokens of any place, and what each reader of JSON takes differently."""

from __future__ import annotations

import random
import re

from streamkit.framing.eventstream import EventStreamParser, serialize_eventstream

ODD: list[bytes] = [
    b"null", b"true", b"0", b"-1", b"1.5", b"-0", b"-0.0", b"1e400", b"-1e400", b"1e9999999999999999999", b"1e-99999999999999999999",
    b"1" + b"0" * 400, b"9" * 5000, b"0." + b"1" * 5000, b"1" + b"0" * 5000 + b".5e5", b"18446744073709551616", b"9223372036854775808",
    b"4294967296", b"NaN", b"Infinity", b"01", b"1.", b'""', b'"x"', b'"\\ud800"', b'"\\udc00x"', b'"\\ud83d\\ude00"', b'"\\u0000"',
    b'"\xe2\x80\xa8"', b'"\xff"', b'"\xed\xa0\x80"', b'"' + b"9" * 5000 + b'"', b'"1e999"', b'"null"', b"[]", b"{}", b"[{}]", b"[null]", b'{"a":1}',
    b'{"type":"text"}', b"[" * 150, b"[" * 3000 + b"]" * 3000, b'{"a":' * 200 + b"1" + b"}" * 200, b'{"a":1,"a":2}', b'"[DONE]"', b"\x00",
    b'"\x7f\x1b[31m"', b'"' + b"x" * 300 + b'"', b'"data:,x"', b'"https://x"', b'"sk-ant-0123456789abcdef0123456789"',
]  # fmt: skip
LINES: list[bytes] = [
    b"\n", b"\r", b"\r\n\r\n", b"data:", b"data: [DONE]\n\n", b"event: error\n", b"event: \x00\n", b"id: 1\n", b": c\n", b"retry: 9\n",
    b"\xef\xbb\xbf", b"\xff", b"\xc3", b"\xed\xa0\x80", b"{", b"}", b"]", b"[", b'"', b"\\", b",", b":", b"<think>", b"</think>",
    b"<tool_call>", b"</tool_call>", b"```json", b'<tool_call>{"name":"get_time","arguments":{}}</tool_call>', b"<function=get_time>",
    b"<parameter=zone>", b"</function>", b"[TOOL_CALLS]", b"<|python_tag|>", b"\xe2\x80\xa8",
]  # fmt: skip
_token = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null|\{\}|\[\]').finditer
_line = re.compile(rb"[^\n]*\n?").findall


def mutated(chance: random.Random, data: bytes, most: int = 1 << 16) -> bytes:
    """The input with a few changes; its first line, which names source and target, changes seldom."""
    line, end, body = data.partition(b"\n")
    if chance.randrange(4) == 0:
        words = line.split(b" ")
        words[-1] = b"%d" % chance.randrange(1 << 16)
        line = b" ".join(words)
    if line.startswith((b"bedrock", b"binary")) and chance.randrange(5):
        body = _in_messages(chance, body)
    else:
        for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 5))):
            body = chance.choice(CHANGES)(chance, body)
    return (line + (end or b"\n") + body)[:most]


def _in_messages(chance: random.Random, body: bytes) -> bytes:
    """A change inside a binary message, with the checksums right again: with wrong ones nothing else is looked at."""
    parser = EventStreamParser()
    frames = parser.feed(body)
    messages = [(dict(frame.headers), frame.data) for frame in frames]
    if not messages:
        return _replace_token(chance, body)
    at = chance.randrange(len(messages))
    headers, payload = messages[at]
    if chance.randrange(5) == 0:
        headers[chance.choice([*headers, "x"])] = chance.choice(
            ["", "x", "chunk", "error", "exception", True, -1, b"\xff"]
        )
    else:
        payload = chance.choice(CHANGES)(chance, payload)
    messages[at] = headers, payload
    if chance.randrange(6) == 0:
        messages.insert(chance.randrange(len(messages)), chance.choice(messages))
    return b"".join(serialize_eventstream(headers, payload) for headers, payload in messages)


def _replace_token(chance: random.Random, body: bytes) -> bytes:
    found = list(_token(body))
    if not found:
        return _insert(chance, body)
    token = chance.choice(found)
    new = chance.choice(ODD) if chance.randrange(3) else chance.choice(found)[0]
    return body[: token.start()] + new + body[token.end() :]


def _inside_string(chance: random.Random, body: bytes) -> bytes:
    """Something inside a string, escaped as such: text of an argument, an id, a name."""
    found = [token for token in _token(body) if token[0][:1] == b'"']
    if not found:
        return _insert(chance, body)
    token = chance.choice(found)
    at = chance.randrange(token.start() + 1, token.end())
    new = (
        chance.choice(ODD + LINES)
        .replace(b"\\", b"\\\\")
        .replace(b'"', b'\\"')
        .replace(b"\n", b"\\n")
        .replace(b"\r", b"\\r")
    )
    return body[:at] + new + body[at:]


def _insert(chance: random.Random, body: bytes) -> bytes:
    at = chance.randrange(len(body) + 1)
    return body[:at] + chance.choice(LINES + ODD) + body[at:]


def _remove(chance: random.Random, body: bytes) -> bytes:
    at = chance.randrange(len(body) + 1)
    return body[:at] + body[at + chance.choice((1, 1, 2, 5, 20, 100)) :]


def _flip(chance: random.Random, body: bytes) -> bytes:
    if not body:
        return body
    at = chance.randrange(len(body))
    return body[:at] + bytes([chance.randrange(256)]) + body[at + 1 :]


def _truncate(chance: random.Random, body: bytes) -> bytes:
    return body[: chance.randrange(len(body) + 1)]


def _shuffle_lines(chance: random.Random, body: bytes) -> bytes:
    """A line or an event twice, elsewhere, or gone."""
    pieces = body.split(b"\n\n") if chance.randrange(2) else _line(body)
    joint = b"\n\n" if len(pieces) and pieces == body.split(b"\n\n") else b""
    at, to = chance.randrange(len(pieces)), chance.randrange(len(pieces))
    piece = pieces[at]
    if chance.randrange(3):
        del pieces[at]
    if chance.randrange(3):
        pieces.insert(to, piece)
    return joint.join(pieces)


def _join_keys(chance: random.Random, body: bytes) -> bytes:
    """One token also where another stands: a key under another's name, one id for two calls."""
    return _replace_token(chance, _replace_token(chance, body)) if chance.randrange(2) else _shuffle_lines(chance, body)


CHANGES = (
    _replace_token, _replace_token, _replace_token, _inside_string, _insert, _remove, _flip, _truncate, _shuffle_lines, _join_keys,
)  # fmt: skip
