"""What Claude signed passes between Anthropic's servers and Bedrock as it is: streamed, whole and in history, both ways."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import orjson
import pytest

from streamkit.dialects import DIALECTS
from streamkit.dialects.profiles import Encoding
from streamkit.dialects.vocabulary.sealed_reasoning import seal, unseal
from streamkit.events import (
    ReasoningDelta,
    ReasoningOpaque,
    ReasoningSignature,
    ResponseFinished,
    ResponseStarted,
    StreamEnded,
    TextDelta,
)
from streamkit.report import StreamReport
from streamkit.translation.bodies import decode_request, decode_response, encode_request, encode_response
from tests.laws.running import CLOCK, maker, read

SIGNATURE, REDACTED = "RXNpZ25lZA==", "RXJlZGFjdGVk"
CLAUDE = "us.anthropic.claude-opus-4-7"
PROFILE = "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc123"

THINKING = {"type": "thinking", "thinking": "hm", "signature": SIGNATURE}
ANTHROPIC = [THINKING, {"type": "redacted_thinking", "data": REDACTED}, {"type": "text", "text": "so"}]
BEDROCK = [
    {"reasoningContent": {"reasoningText": {"text": "hm", "signature": SIGNATURE}}},
    {"reasoningContent": {"redactedContent": REDACTED}},
    {"text": "so"},
]
CONTENT = {"anthropic": ANTHROPIC, "bedrock": BEDROCK}
PAIRS = list(permutations(CONTENT, 2))


def streamed(dialect: str, *events: Any) -> tuple[bytes, StreamReport]:
    report = StreamReport()
    encoder = DIALECTS[dialect].encoder(Encoding(make_id=maker(), clock=CLOCK), report)
    body = encoder.feed([ResponseStarted("m", "m", 1, ""), *events, ResponseFinished("stop"), StreamEnded(clean=True)])
    return body + encoder.finish(), report


def opaque_in(dialect: str, body: bytes) -> list[tuple[type, str, str]]:
    found = [event for event in read(dialect, [body]).events if isinstance(event, ReasoningSignature | ReasoningOpaque)]
    return [(type(event), event.vendor, event.blob) for event in found]


@pytest.mark.parametrize("dialect", CONTENT)
def test_a_stream_has_them_as_they_are(dialect):
    body, report = streamed(
        dialect,
        ReasoningDelta("hm", 0, 0),
        ReasoningSignature(SIGNATURE, "anthropic", 0, 0),
        ReasoningOpaque(REDACTED, "anthropic", 0, 1),
        TextDelta("so", 0, 2),
    )
    assert SIGNATURE.encode() in body
    assert REDACTED.encode() in body
    assert opaque_in(dialect, body) == [
        (ReasoningSignature, "anthropic", SIGNATURE),
        (ReasoningOpaque, "anthropic", REDACTED),
    ]
    assert not report.losses["reasoning_signature"]


def answer(dialect: str) -> bytes:
    if dialect == "anthropic":
        usage = {"input_tokens": 1, "output_tokens": 1}
        message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": ANTHROPIC}
        return orjson.dumps({**message, "stop_reason": "end_turn", "stop_sequence": None, "usage": usage})
    usage = {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}
    output = {"message": {"role": "assistant", "content": BEDROCK}}
    return orjson.dumps({"output": output, "stopReason": "end_turn", "usage": usage, "metrics": {"latencyMs": 1}})


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_a_whole_answer_has_them_as_they_are(source, target):
    response = decode_response(answer(source), source)
    out = orjson.loads(encode_response(response, target))
    content = out["content"] if target == "anthropic" else out["output"]["message"]["content"]
    for block in content:
        assert block.pop("citations", []) == []  # of Anthropic's text
    assert content == CONTENT[target]


def asked(dialect: str) -> bytes:
    key = "type" if dialect == "anthropic" else ""
    said = [{"text": "go", **({key: "text"} if key else {})}]
    messages = [
        {"role": "user", "content": said},
        {"role": "assistant", "content": CONTENT[dialect]},
        {"role": "user", "content": said},
    ]
    return orjson.dumps({"messages": messages, **({"model": "m", "max_tokens": 9} if key else {})})


def asked_in(source: str, target: str, model: str) -> tuple[Any, StreamReport]:
    request, report = decode_request(asked(source), source), StreamReport()
    request.model = model
    return orjson.loads(encode_request(request, target, report=report))["messages"][1]["content"], report


@pytest.mark.parametrize("model", [CLAUDE, PROFILE])
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_a_history_has_them_as_they_are(source, target, model):
    content, report = asked_in(source, target, model)
    assert content == CONTENT[target]
    assert not report.losses


def test_another_model_of_bedrock_gets_none_of_them():
    content, report = asked_in("anthropic", "bedrock", "us.amazon.nova-2-lite-v1:0")
    assert content == [{"text": "so"}]
    assert report.losses == {"reasoning_signature": 1, "reasoning_history": 1, "reasoning_opaque": 1}


def test_redacted_thinking_that_is_no_base64_has_no_place_in_bedrock_and_is_sealed_for_its_clients():
    body = asked("anthropic").replace(REDACTED.encode(), b"no base64!")
    request, report = decode_request(body, "anthropic"), StreamReport()
    request.model = CLAUDE
    out = orjson.loads(encode_request(request, "bedrock", report=report))
    assert out["messages"][1]["content"] == [BEDROCK[0], BEDROCK[2]]
    assert report.losses == {"reasoning_opaque": 1}
    stream, _ = streamed("bedrock", ReasoningOpaque("no base64!", "anthropic", 0, 0), TextDelta("so", 0, 1))
    assert opaque_in("bedrock", stream) == [(ReasoningOpaque, "anthropic", "no base64!")]


def test_openrouter_is_told_whose_they_are():
    request = decode_request(asked("bedrock"), "bedrock")
    message = orjson.loads(encode_request(request, "openrouter"))["messages"][1]
    assert {detail["format"] for detail in message["reasoning_details"]} == {"anthropic-claude-v1"}


def test_what_an_older_version_sealed_for_bedrock_goes_to_either():
    sealed = unseal(seal("reasoning", "bedrock", SIGNATURE))
    assert sealed is not None
    assert (sealed.vendor, sealed.blob) == ("anthropic", SIGNATURE)
