"""Gemini Interactions: what its vectors do not say of streams, and where it is asked."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from streamkit.dialects import DIALECTS
from streamkit.dialects.vocabulary.sealed_reasoning import seal
from streamkit.events import MediaGenerated, ReasoningSignature, ToolCallStarted
from tests.laws.running import read, translate
from tests.vectors import anthropic as am
from tests.vectors import gemini as gm
from tests.vectors import gemini_interactions as gi
from tests.vectors.vector import named

NAME = "gemini-interactions"


def payloads(body: bytes) -> list[dict[str, Any]]:
    return [orjson.loads(line.removeprefix(b"data: ")) for line in body.split(b"\n") if line.startswith(b"data: ")]


def deltas(body: bytes) -> list[dict[str, Any]]:
    return [one["delta"] for one in payloads(body) if one["event_type"] == "step.delta"]


def test_steps_are_written_one_at_a_time_with_dense_indices():
    body = gi.named(
        gi.START, gi.begin(3, "model_output"), gi.call(7, "a", "f"), *gi.said(3, "Hi"), gi.piece(7, "{}"), gi.end(3), gi.end(7), gi.finish("requires_action"),
    )  # fmt: skip
    written, _ = translate(NAME, NAME, [body], passing=False)
    steps = [(one["event_type"], one["index"]) for one in payloads(written) if one["event_type"].startswith("step.")]
    assert steps == [
        ("step.start", 0), ("step.delta", 0), ("step.stop", 0), ("step.start", 1), ("step.delta", 1), ("step.stop", 1),
    ]  # fmt: skip


def test_googles_signature_of_a_call_stands_in_its_step_and_anothers_in_a_thought():
    google = gm.events(gm.chunk({"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "c2ln"}), gm.STOP)
    written, _ = translate("gemini", NAME, [google], passing=False)
    (step,) = [one["step"] for one in payloads(written) if one["event_type"] == "step.start"]
    assert (step["type"], step["signature"]) == ("function_call", "c2ln")
    (started,) = [event for event in read(NAME, [written]).events if isinstance(event, ToolCallStarted)]
    assert started.signature is not None
    assert (started.signature.vendor, started.signature.blob) == ("google", "c2ln")

    foreign = gi.named(gi.START, *gi.tool(0, "a", "f", "{}", signature=seal("call", "mistral", "s")), gi.finish())
    written, _ = translate(NAME, NAME, [foreign], passing=False)
    steps = [one["step"] for one in payloads(written) if one["event_type"] == "step.start"]
    assert steps[0] == {"type": "thought", "signature": seal("call", "mistral", "s")}
    assert "signature" not in steps[1]


def test_a_signature_stands_whole_right_before_the_stop():
    body = named(
        am.START, am.begin(0, "thinking", thinking="", signature=""), am.delta(0, "thinking_delta", thinking="hm"),
        am.delta(0, "signature_delta", signature="a"), am.delta(0, "signature_delta", signature="b"), am.stop(0), am.finish("end_turn"), am.STOP,
    )  # fmt: skip
    written, _ = translate("anthropic", NAME, [body], passing=False)
    assert [one["type"] for one in deltas(written)] == ["thought_summary", "thought_signature"]
    (signature,) = [event for event in read(NAME, [written]).events if isinstance(event, ReasoningSignature)]
    assert (signature.vendor, signature.blob) == ("anthropic", "ab")


def test_media_of_another_dialect_are_a_delta_of_an_output():
    image = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}
    written, report = translate("gemini", NAME, [gm.events(gm.chunk(image), gm.STOP)], passing=False)
    assert deltas(written) == [{"type": "image", "mime_type": "image/png", "data": "iVBORw0KGgo="}]
    (media,) = [event for event in read(NAME, [written]).events if isinstance(event, MediaGenerated)]
    assert (media.kind, media.data) == ("image", "iVBORw0KGgo=")
    assert not report.losses["media_output"]


def test_members_that_came_with_the_end_stand_there_again():
    body = gi.named(gi.START, *gi.text(0, "Hi"), gi.finish(service_tier="flex", updated="2026-05-15T18:52:09Z"))
    written, _ = translate(NAME, NAME, [body], passing=False)
    ended = payloads(written)[-1]["interaction"]
    assert (ended["service_tier"], ended["updated"]) == ("flex", "2026-05-15T18:52:09Z")
    torn = gi.named(gi.START, *gi.text(0, "Hi"), gi.finish(service_tier="flex"), gi.failed())
    written, report = translate(NAME, NAME, [torn], passing=False)
    assert payloads(written)[-1]["event_type"] == "error"
    assert report.losses == {"metadata": 1}


def test_errors_are_said_in_its_own_words():
    overloaded = named(am.START, {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}})
    written, report = translate("anthropic", NAME, [overloaded], passing=False)
    assert payloads(written)[-1] == gi.failed()
    assert report.losses == {"error_detail": 1}
    own = gi.named(gi.START, gi.failed("no", "quota_exceeded"))
    assert payloads(translate(NAME, NAME, [own], passing=False)[0])[-1] == gi.failed("no", "quota_exceeded")


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("https://generativelanguage.googleapis.com", "https://generativelanguage.googleapis.com/v1beta/interactions"),
        ("https://generativelanguage.googleapis.com/v1beta", "https://generativelanguage.googleapis.com/v1beta/interactions"),
        ("http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1/interactions"),
    ],
)  # fmt: skip
def test_where_it_is_asked(base, url):
    endpoint = DIALECTS[NAME].http.endpoint
    assert endpoint is not None
    assert (endpoint.url(base, "m", True), endpoint.auth) == (url, "x-goog-api-key")


@pytest.mark.parametrize(
    "beside", [{"type": "invalid_request_error"}, {"status": "NOT_FOUND"}, {"code": 404}, {"code": None}]
)
def test_errors_in_the_words_of_others_are_none_of_its_own(beside):
    errors = DIALECTS[NAME].errors
    assert errors is not None
    own = {"code": "not_found", "message": "no"}
    assert errors.decode({"error": own}, {}) is not None
    assert errors.decode({"error": {**own, **beside}}, {}) is None
