"""What the encoders of Chat and Anthropic remember between events: orders, parts, held counts, and how much they hold."""

from __future__ import annotations

import json
from typing import Any

from streamkit.dialects import DIALECTS
from streamkit.dialects.anthropic.wire import DELTA_SIBLING, MESSAGE_DELTA
from streamkit.dialects.profiles import Encoding
from streamkit.events import (
    Aside,
    Event,
    ReasoningDelta,
    ReasoningOpaque,
    ReasoningSignature,
    RefusalDelta,
    ResponseFinished,
    StreamEnded,
    TextDelta,
    ToolCallArguments,
    ToolCallFinished,
    ToolCallStarted,
    UsageReported,
)
from streamkit.report import StreamReport

END = [ResponseFinished("stop"), StreamEnded(clean=True)]


def encoded(dialect: str, *events: Event) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """The payloads that are JSON, and the losses."""
    report = StreamReport()
    encoder = DIALECTS[dialect].encoder(Encoding(), report)
    text = b"".join([*(encoder.feed([event]) for event in (*events, *END)), encoder.finish()]).decode()
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: {")]
    losses = {kind: times for kind, times in report.losses.items() if kind != "usage_unknown"}  # no test says any usage
    return [json.loads(line) for line in lines], losses


def chat_deltas(payloads: list[dict[str, Any]], name: str) -> list[Any]:
    deltas = [payload["choices"][0]["delta"] for payload in payloads if payload["choices"]]
    return [delta[name] for delta in deltas if name in delta]


# -- Chat --------------------------------------------------------------------------------------------------------------


def test_a_refusal_behind_a_call_has_lost_its_place():
    call = [ToolCallStarted(0, "a", "f"), ToolCallArguments(0, "{}"), ToolCallFinished(0, "a", "f", "{}")]
    assert encoded("openai-chat", *call, RefusalDelta("No."))[1] == {"block_order": 1}
    assert encoded("openai-chat", RefusalDelta("No."), *call)[1] == {}


def test_each_encrypted_part_is_a_detail_of_its_own():
    part = ReasoningOpaque("blob", "openai")
    payloads, losses = encoded("openai-chat", part, part)
    details = [detail for each in chat_deltas(payloads, "reasoning_details") for detail in each]
    assert ([detail["index"] for detail in details], losses) == ([0, 1], {})


def test_encrypted_reasoning_in_front_of_a_block_parts_nothing():
    signed = [ReasoningDelta("so", block=1), ReasoningSignature("sig", "anthropic", block=1)]
    payloads, losses = encoded("openai-chat", ReasoningOpaque("blob", "anthropic"), *signed)
    details = [detail for each in chat_deltas(payloads, "reasoning_details") for detail in each]
    assert ([detail["type"] for detail in details], losses) == (["reasoning.encrypted", "reasoning.text"], {})


def test_the_signature_of_a_text_that_does_not_come_is_in_no_other_part():
    assert encoded("openai-chat", ReasoningSignature("sig", "google", block=3, on="text"))[1] == {}


def test_a_signed_part_and_its_text_are_one_part():
    signed = ReasoningSignature("sig", "google", block=1, on="text")
    assert encoded("openai-chat", TextDelta("a"), signed, TextDelta("b", block=1))[1] == {"block_boundary": 1}


def test_text_behind_another_part_of_its_block_is_a_part_again():
    signed = ReasoningSignature("sig", "google", block=1, on="text")
    assert encoded("openai-chat", TextDelta("a"), signed, TextDelta("b"))[1] == {"block_boundary": 2}


def test_a_signed_block_that_goes_on_behind_encrypted_reasoning_is_still_by_itself():
    signed = [ReasoningDelta("so", block=1), ReasoningSignature("sig", "anthropic", block=1)]
    opaque = ReasoningOpaque("blob", "anthropic", block=2)
    assert "reasoning_signature" not in encoded("openai-chat", *signed, opaque, *signed)[1]


def test_a_refusal_has_its_own_stop_reason_in_its_choice_alone():
    both = [RefusalDelta("No.", 1), ResponseFinished("refusal", choice=1), ResponseFinished("refusal")]
    report = StreamReport()
    encoder = DIALECTS["openai-chat"].encoder(Encoding(), report)
    text = b"".join([*(encoder.feed([event]) for event in (*both, StreamEnded(clean=True))), encoder.finish()]).decode()
    lines = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
    choices = [payload["choices"][0] for payload in lines if payload["choices"]]
    reasons = {choice["index"]: choice["finish_reason"] for choice in choices if choice["finish_reason"]}
    assert reasons == {1: "stop", 0: "content_filter"}


def test_counts_of_its_own_vendor_are_written_as_they_came():
    raw = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3, "extra": 4}
    payloads, losses = encoded("openai-chat", UsageReported(1, 2, raw=raw, vendor="openai"))
    assert ([payload["usage"] for payload in payloads if "usage" in payload], losses) == ([raw], {})


# -- Anthropic ---------------------------------------------------------------------------------------------------------


def aside(kind: str, name: str) -> Aside:
    return Aside("anthropic", kind, name, 1)  # type: ignore[arg-type]


def test_a_member_of_the_message_may_have_a_dot_in_its_name():
    payloads, losses = encoded("anthropic", aside("metadata", "message_delta.a.b"))
    [delta] = [payload for payload in payloads if payload["type"] == "message_delta"]
    assert (delta["delta"]["a.b"], losses) == (1, {})


def test_members_beyond_64_of_both_places_are_lost_and_counted():
    both = [f"{place}m{n}" for place in (MESSAGE_DELTA, DELTA_SIBLING) for n in range(40)]
    payloads, losses = encoded("anthropic", *(aside("metadata", name) for name in both))
    [delta] = [payload for payload in payloads if payload["type"] == "message_delta"]
    written = [name for place in (delta, delta["delta"]) for name in place if name[0] == "m" and name[1:].isdigit()]
    assert (len(written), losses) == (64, {"metadata": 16})


def test_citations_of_a_text_that_does_not_come_are_each_counted():
    cited = Aside("anthropic", "citation", "citations_delta", {"type": "char_location"})
    assert encoded("anthropic", cited, cited)[1] == {"citation": 2}
