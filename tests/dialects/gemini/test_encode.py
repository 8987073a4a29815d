"""What the encoder alone decides: signatures stand on their parts, calls in order, a blocked prompt and an error as one chunk."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamkit.dialects.gemini import DIALECT
from streamkit.dialects.profiles import Encoding
from streamkit.events import (
    ChoiceStarted,
    Opaque,
    ProviderFailed,
    ReasoningDelta,
    ReasoningOpaque,
    ReasoningSignature,
    ResponseFinished,
    ResponseStarted,
    StreamEnded,
    TextDelta,
    ToolCallFinished,
    ToolCallStarted,
)
from streamkit.report import StreamReport
from tests.laws.running import read, translate
from tests.vectors.gemini import BUSY, STOP, call, chunk, events, text, thought


def through(body: bytes) -> bytes:
    return translate("gemini", "gemini", [body], passing=False)[0]


@pytest.mark.parametrize(
    "parts",
    [
        [text("a"), text("b", thoughtSignature="YQ=="), text("c")],
        [thought("a", thoughtSignature="YQ=="), thought("b", thoughtSignature="Yg==")],
        [thought("a"), thought("", thoughtSignature="YQ=="), text("b")],
        [call("f", {"x": 1}, id="a", signature="YQ=="), call("g", {}, id="b"), text("", thoughtSignature="Yg==")],
    ],
    ids=["texts", "thoughts", "an empty thought", "calls"],
)
def test_each_signature_goes_back_on_the_part_that_it_came_with(parts):
    body = events(*(chunk(part) for part in parts), STOP)
    written_parts = [
        part
        for line in through(body).split(b"\r\n\r\n")[:-1]
        for part in json.loads(line[6:])["candidates"][0]["content"]["parts"]
        if part != {"text": ""}
    ]
    assert written_parts == parts


def encoded(*batches: list[Any]) -> tuple[bytes, StreamReport]:
    report = StreamReport()
    encoder = DIALECT.encoder(Encoding(), report)
    return b"".join([*(encoder.feed(batch) for batch in batches), encoder.finish()]), report


END = [ResponseFinished("stop"), StreamEnded(clean=True)]


def test_a_signature_that_comes_with_a_later_read_stands_on_an_empty_part():
    start, signature = ResponseStarted(vendor="google"), ReasoningSignature("YQ==", "google", on="text")
    together, report = encoded([start, ChoiceStarted(), TextDelta("a"), signature, *END])
    apart, _ = encoded([start, ChoiceStarted(), TextDelta("a")], [signature, *END])
    assert b'"text":"a","thoughtSignature":"YQ=="' in together
    assert not report.losses
    assert b'"text":"a"}' in apart
    assert b'"text":"","thoughtSignature":"YQ=="' in apart


def test_one_of_another_dialects_stream_stands_on_an_empty_part_with_whatever_read_it_comes():
    start, signature = ResponseStarted(vendor="ai-sdk"), ReasoningSignature("YQ==", "google", on="text")
    together, report = encoded([start, ChoiceStarted(), TextDelta("a"), signature, *END])
    assert encoded([start, ChoiceStarted(), TextDelta("a")], [signature, *END])[0] == together
    assert b'"text":"","thoughtSignature":"YQ=="' in together
    assert report.losses == {"block_boundary": 1}


def test_what_the_client_could_not_decode_is_sealed():
    output, report = encoded(
        [
            ChoiceStarted(),
            ReasoningDelta("a"),
            ReasoningSignature("no base64", "google"),
            ReasoningOpaque("eA==", "google"),
            *END,
        ]
    )
    assert b"no base64" not in output
    assert report.losses == {}
    again = read("gemini", [output]).events
    assert ReasoningSignature("no base64", "google", 0, 0) in again
    assert ReasoningOpaque("eA==", "google", 0, 1) in again


def test_a_signature_sealed_apart_goes_to_the_next_call():
    found = read(
        "gemini",
        [events(chunk(text("", thoughtSignature="c3RyZWFta2l0OmNhbGw6YWNtZTpi")), chunk(call("f"), call("g")), STOP)],
    )
    assert [e.signature for e in found.events if type(e) is ToolCallStarted] == [Opaque("acme", "b"), None]


def test_calls_are_written_in_the_order_of_mention():
    started = [ToolCallStarted(n, f"i{n}", f"f{n}") for n in range(2)]
    finished = [ToolCallFinished(n, f"i{n}", f"f{n}", "{}") for n in range(2)]
    output, report = encoded(
        [
            ChoiceStarted(),
            *started,
            finished[1],
            TextDelta("a"),
            finished[0],
            ResponseFinished("tool_calls"),
            StreamEnded(clean=True),
        ]
    )
    assert output.index(b'"f0"') < output.index(b'"f1"')
    assert report.losses == {"block_order": 1}


def test_a_blocked_prompt_is_written_as_one():
    body = events({"promptFeedback": {"blockReason": "JAILBREAK"}, "usageMetadata": {"promptTokenCount": 9}})
    assert through(body) == body
    torn = translate("gemini", "gemini", [events({"promptFeedback": {"blockReason": "SAFETY"}}, BUSY)], passing=False)
    assert b"promptFeedback" not in torn[0]
    assert torn[1].losses == {"metadata": 1}


def test_an_error_is_the_first_key_and_keeps_what_google_said_of_it():
    said = {"error": {"code": 429, "message": "no", "status": "RESOURCE_EXHAUSTED", "details": [{"retryDelay": "1s"}]}}
    assert through(events(chunk(text("a")), said)).endswith(events(said))
    output, report = encoded(
        [ResponseStarted(model="m"), ProviderFailed("auth", "no", "authentication_error", vendor="anthropic")]
    )
    assert output == events({"error": {"code": 401, "message": "no", "status": "UNAUTHENTICATED"}})
    assert report.losses == {"error_detail": 1}
