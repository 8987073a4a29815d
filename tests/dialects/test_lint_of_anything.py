"""Lint tells what is wrong with a stream, whatever stands in it: only the errors of this library come out of a reading.

In each kind of frame of the checkers' vectors, each member is replaced by a value of each type, left out, or comes in a frame
that is sent twice; and so are whole answers.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from streamkit import encode_response
from streamkit.conversation.messages import Choice, Reasoning, Response, Text, ToolCall
from streamkit.dialects import DIALECTS
from streamkit.limits import DEFAULT_LIMITS
from streamkit.lint import Check
from streamkit.report import Status, StreamReport
from tests.dialects.lint_vectors import VECTORS
from tests.framing.binary import event
from tests.requests.spoilt import spoilt
from tests.whole_answers import ANSWERING_WHOLE

Frames = list[tuple[str, Any]]
#: Of the odd documents that `make test` draws; the documents themselves are all read.
SHARE = 0.1


def lint(dialect: str, body: bytes) -> Status:
    check = Check(dialect)
    check.feed(body)
    return check.finish()


def frames(dialect: str, body: bytes) -> Frames:
    """The event and the document of each frame."""
    parser = DIALECTS[dialect].parser(DEFAULT_LIMITS, StreamReport())
    found = [*parser.feed(body), *parser.finish()]
    return [(frame.event, json.loads(frame.data)) for frame in found if frame.data[:1] == b"{"]


def framed(dialect: str, documents: Frames) -> bytes:
    match dialect:
        case "bedrock":
            return b"".join(event(kind, document) for kind, document in documents)
        case "ollama":
            return b"".join(json.dumps(document).encode() + b"\n" for _, document in documents)
        case _:
            pieces = ((kind, json.dumps(document)) for kind, document in documents)
            return "".join(f"event: {kind}\ndata: {text}\n\n" for kind, text in pieces).encode()


def left_out(value: Any) -> Iterator[Any]:
    """The value without each of its members, one after the other."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield {other: kept for other, kept in value.items() if other != name}
            yield from ({**value, name: less} for less in left_out(inner))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from ([*value[:number], less, *value[number + 1 :]] for less in left_out(inner))


def kind_of(value: Any) -> Any:
    """What a document is made of: its members, and what they are."""
    if isinstance(value, dict):
        return tuple((name, inner if name == "type" else kind_of(inner)) for name, inner in sorted(value.items()))
    return tuple(map(kind_of, value)) if isinstance(value, list) else type(value)


def streams(dialect: str) -> Iterator[tuple[Frames, int]]:
    """Streams that break no rule, and the number of a frame of a kind that none before had."""
    seen = set()
    for _, body, broken in VECTORS[dialect]:
        documents = [] if broken else frames(dialect, body)
        for number, (kind, document) in enumerate(documents):
            if (kind, kind_of(document)) not in seen:
                seen.add((kind, kind_of(document)))
                yield documents, number


@pytest.mark.parametrize("share", [SHARE, pytest.param(1.0, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_whatever_stands_in_a_frame_lint_tells_a_status(dialect, share):
    chance, count = random.Random(dialect), 0
    for documents, number in streams(dialect):
        kind, document = documents[number]
        for odd in (document, *spoilt(document), *left_out(document)):
            if odd is not document and chance.random() > share:
                continue
            twice = [(kind, odd)] * (2 if odd is document else 1)
            lint(dialect, framed(dialect, [*documents[:number], *twice, *documents[number + 1 :]]))
            count += 1
    assert count > 200 * share


@pytest.mark.parametrize("dialect", ANSWERING_WHOLE)
def test_whatever_stands_in_a_whole_answer_lint_tells_a_status(dialect):
    parts = [Reasoning("why"), Text("so"), ToolCall(0, "call_0", "f", '{"a":1}')]
    response = Response("", id="x", model="m", choices=[Choice(parts=parts, stop_reason="tool_calls")], clean=True)
    body = orjson.loads(encode_response(response, dialect))
    for odd in (body, *spoilt(body), *left_out(body)):
        lint(dialect, json.dumps(odd).encode())
