"""Streams that deviate from their dialect in one place or a few, by seed: hostile values, foreign bytes, lost or moved lines."""

from __future__ import annotations

import random

from tests.dialects.test_hostile import mutated
from tests.laws.running import OURS, Stream

#: What servers, proxies and broken writers put between the bytes of a stream.
FOREIGN = [
    b"{", b"}", b"x", b"\n\n", b"\r\n", b"data: {\n\n", b"data: [DONE]\n\n", b"foo: bar\n", b": x\n", b"id: 3\n",
    b'{"error":{"message":"no"}}\n', b'error: {"message":"no"}\n\n', b"\xff", b"\\ud83d",
]  # fmt: skip


def deviating(chance: random.Random, stream: Stream) -> bytes:
    """The stream with a deviation; now and then with none."""
    body = stream.body
    for _ in range(chance.choice([0, 1, 1, 2, 3])):
        body = _changed(chance, body, stream.dialect)
    return body


def _changed(chance: random.Random, body: bytes, dialect: str) -> bytes:
    way = chance.randrange(8)
    if way < 4:
        return mutated(chance, body, dialect)
    place = chance.randrange(len(body) + 1)
    if way == 4:
        return body[:place] + chance.choice(FOREIGN) + body[place:]
    if way == 5:
        return body[:place]
    lines = body.split(b"\n")
    one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    if way == 6:
        lines.insert(one, lines[other])
    else:
        lines[one], lines[other] = lines[other], lines[one]
    return b"\n".join(lines)


def some_deviating(seed: int, count: int) -> list[Stream]:
    """So many streams, of all dialects."""
    chance = random.Random(seed)
    chosen = [chance.choice(OURS) for _ in range(count)]
    return [Stream(stream.name, stream.dialect, deviating(chance, stream)) for stream in chosen]
