"""Hostile payloads: any value of any type in any place of a stream. Only the documented errors may escape (limits.md T4).

``transcode`` turns those into error frames, so here nothing may escape at all, and what comes out is still the dialect's.
"""

from __future__ import annotations

import json
import random

import pytest

from streamkit import Limits, StreamReport, collect, transcode
from streamkit.dialects import DIALECTS
from streamkit.framing.eventstream import EventStreamParser, serialize_eventstream
from streamkit.testing import source_of
from tests.vectors import VECTORS

ODD = [
    None, True, False, 0, -1, 1.5, 2**70, 10**400, -(2**63), 1e308, "", "x", "null", "\u2028", "\ud800", [], {}, [1], {"a": 1},
    [{}], {"type": "text"}, {"text": 5}, ["x"], [None], {"error": {}}, [[[]]],
]  # fmt: skip
GONE = object()


def places(value, path=()):
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in inner:
        yield from places(member, (*path, key))


def put(document, path, new):
    if not path:
        return {} if new is GONE else new
    document = json.loads(json.dumps(document))
    at = document
    for key in path[:-1]:
        at = at[key]
    if new is GONE:
        del at[path[-1]]
    else:
        at[path[-1]] = new
    return document


def mutated(chance, body, dialect):
    """The stream with one value of one payload replaced or removed."""
    end = DIALECTS[dialect].frame_end
    if end is None:
        return mutated_message(chance, body)
    frames = body.split(end)
    number = chance.randrange(len(frames))
    head, brace, payload = frames[number].partition(b"{")
    try:
        document = json.loads(brace + payload)
    except ValueError:
        return body
    document = put(document, chance.choice(list(places(document))), chance.choice([*ODD, GONE]))
    frames[number] = head + json.dumps(document).encode()
    return end.join(frames)


def mutated_message(chance, body):
    """The same where frames are messages with checksums, which must be right for anything else to be looked at."""
    parser = EventStreamParser()
    frames = parser.feed(body)
    number = chance.randrange(len(frames)) if frames else 0
    messages = [(frame.headers, frame.data) for frame in frames]
    try:
        headers, document = messages[number][0], json.loads(messages[number][1])
    except (ValueError, IndexError):
        return body
    place = chance.choice([("headers",), *places(document)])
    if place == ("headers",):
        headers = {
            **headers,
            chance.choice([*headers, "x"]): chance.choice(["", "x", "chunk", "error", True, -1, b"\xff"]),
        }
    else:
        document = put(document, place, chance.choice([*ODD, GONE]))
    messages[number] = headers, json.dumps(document).encode()
    return b"".join(serialize_eventstream(*message) for message in messages) + body[parser.boundary :]


async def once(body):
    yield body


async def written(body, dialect, to):
    """Which rules the stream breaks in another dialect, its bytes, and what was lost.

    An output without its call may belong to a call of the history, which only the client knows.
    """
    report = StreamReport()
    async with transcode(once(body), dialect, to, reencode=True, report=report) as stream:
        output = b"".join([chunk async for chunk in stream])
    linter = DIALECTS[to].linter()
    parser = DIALECTS[to].parser(Limits(), StreamReport())
    found = linter.feed(parser.feed(output) + parser.finish()) + linter.finish()
    broken = [violation for violation in found if violation.severity == "error" and violation.rule != "truncated"]
    return [each for each in broken if not each.message.startswith("tool-output-")], output, report.losses


async def nothing_escapes(seed, times):
    chance = random.Random(seed)
    for _ in range(times):
        vector = chance.choice(VECTORS)
        body = vector.body
        for _ in range(chance.randrange(1, 4)):
            body = mutated(chance, body, vector.dialect)
        to = chance.choice(list(DIALECTS))
        broken, output, _ = await written(body, vector.dialect, to)
        assert not broken, (broken, body, output)


@pytest.mark.parametrize("seed", range(4))
async def test_nothing_but_the_dialect_comes_of_any_payload(seed):
    await nothing_escapes(seed, 400)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(100, 150))
async def test_nothing_but_the_dialect_comes_of_any_payload_at_length(seed):
    await nothing_escapes(seed, 2000)


@pytest.mark.parametrize(
    ("dialect", "vector", "said", "wrong", "loss"),
    [
        ("ag-ui", "a call that the agent ran", b'"messageId":"m-r"', b'"messageId":-1', "server_tool"),
        ("ai-sdk", "a call that the user is to approve", b'"it writes"', b"[]", "client_tool"),
        ("ai-sdk", "a call of the provider that the user is to approve", b'"toolName":"f"', b'"toolName":1', "client_tool"),
        ("ai-sdk", "a call that is shown otherwise", b'"title":"F"', b'"title":1', "metadata"),
        ("gemini", "what Google's own tools did", b'{"executableCode"', b'{"thought":[null],"executableCode"', "server_tool"),
        ("gemini-interactions", "a delta without its step", b'"type":"text"', b'"type":[{}]', "unknown_event"),
        ("gemini-interactions", "a search that Google ran", b'"type":"google_search_call"', b'"type":" "', "unknown_event"),
    ],
)  # fmt: skip
async def test_what_clients_of_its_own_dialect_refuse_is_lost_with_a_count(dialect, vector, said, wrong, loss):
    (body,) = (each.body for each in VECTORS if (each.dialect, each.name) == (dialect, vector))
    assert said in body, body
    broken, output, losses = await written(body.replace(said, wrong), dialect, dialect)
    assert (broken, losses[loss] > 0) == ([], True), (output, losses)


@pytest.mark.parametrize(
    "content", [rb'[{"type":"text","text":"a\ud83d"}]', rb'[{"type":"text","text":"a","n":1E400}]']
)
async def test_what_orjson_refuses_in_a_block_of_the_start_of_a_message_is_read_as_anywhere(content):
    start = (
        rb'{"type":"message_start","message":{"id":"m","model":"c","role":"assistant","content":%b,"usage":{}}}'
        % content
    )
    stop = b'{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}'
    body = b"".join(
        b"event: %b\ndata: %b\n\n" % (json.loads(one, strict=False)["type"].encode(), one) for one in (start, stop)
    )
    body += b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
    answer = await collect(source_of([body]), "anthropic")
    assert answer.clean
    assert answer.text.rstrip("\ufffd") == "a"
    assert set(answer.report.repairs) & {"lone_surrogate", "number_out_of_range"}
