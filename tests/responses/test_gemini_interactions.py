"""Whole interactions, in and out."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from attrs import evolve

from streamkit import collect
from streamkit.conversation.messages import Choice, Media, Reasoning, RedactedReasoning, Response, Text, ToolCall
from streamkit.errors import NotThisDialect
from streamkit.events import Aside, Opaque, Verdict
from streamkit.report import StreamReport
from streamkit.testing import source_of
from streamkit.translation.bodies import decode_response, encode_response
from tests.vectors.gemini_interactions import CITED, IMAGE, USAGE, VECTORS, interaction

NAME = "gemini-interactions"
pytestmark = pytest.mark.filterwarnings("error")


def read(*steps: Any, status: str = "completed", **members: Any) -> Response:
    return decode_response(orjson.dumps(interaction(status, steps=[*steps], **members)), NAME)


def write(response: Response, to: str = NAME) -> tuple[dict[str, Any], StreamReport]:
    report = StreamReport()
    return orjson.loads(encode_response(response, to, report=report)), report


def said(*texts: str, **members: Any) -> dict[str, Any]:
    return {"type": "model_output", "content": [{"type": "text", "text": text, **members} for text in texts]}


CALL = {"type": "function_call", "id": "a", "name": "f", "arguments": {"x": 1.0}}
THOUGHT = {"type": "thought", "summary": [{"type": "text", "text": "hm"}], "signature": "c2ln"}

SAME: dict[str, Any] = {
    "a text": interaction("completed", steps=[said("Hi")], usage=USAGE),
    "thinking, text and calls": interaction("requires_action", steps=[THOUGHT, said("Hi"), CALL, {**CALL, "id": "b", "signature": "c2ln"}], usage=USAGE),
    "an opaque thought": interaction("completed", steps=[{"type": "thought", "signature": "c2ln"}, said("Hi")]),
    "media": interaction("completed", steps=[{"type": "model_output", "content": [{"type": "text", "text": "Hi"}, {"type": "image", **IMAGE}]}]),
    "an image in a thought": interaction("completed", steps=[{"type": "thought", "summary": [{"type": "image", **IMAGE}]}, said("Hi")]),
    "citations": interaction("completed", steps=[said("Hi", annotations=CITED)]),
    "a search": interaction("completed", steps=[{"type": "google_search_call", "id": "s", "arguments": {"queries": ["q"]}}, {"type": "google_search_result", "call_id": "s", "result": []}, said("Hi")]),
    "a budget": interaction("budget_exceeded", steps=[said("Hi")]),
    "members of its own": interaction("completed", steps=[said("Hi")], service_tier="flex", tools=[{"type": "google_search"}], updated="2026-05-15T18:52:03Z"),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_an_answer_comes_back_as_it_was(name):
    report = StreamReport()
    found = decode_response(orjson.dumps(SAME[name]), NAME, report=report)
    written, lost = write(found)
    assert written == SAME[name]
    assert not lost.losses
    assert not report.repairs


def test_what_is_read():
    found = read(
        THOUGHT, said("Hi", "you"), CALL, status="requires_action", usage=USAGE, created="2026-05-15T18:52:03Z"
    )
    (choice,) = found.choices
    assert (found.id, found.model, found.created, found.clean) == ("v1_7", "m-1", 1778871123, True)
    assert (choice.stop_reason, choice.native_stop_reason) == ("tool_calls", "requires_action")
    assert choice.parts == [
        Reasoning("hm", "summary", Opaque("google", "c2ln")),
        Text("Hiyou"),
        ToolCall(0, "a", "f", '{"x":1.0}', verdict=Verdict("complete")),
    ]
    assert found.usage is not None
    assert (found.usage.input_total, found.usage.output_total, found.usage.output_reasoning) == (9, 4, 1)


def test_an_answer_of_before_the_steps_is_read():
    outputs = [{"type": "thought", "signature": "c2ln"}, {"type": "text", "text": "Hi"}, CALL]
    body = interaction("requires_action", outputs=outputs, role="model")
    found = decode_response(orjson.dumps(body), NAME)
    assert (found.text, [call.arguments for call in found.tool_calls]) == ("Hi", ['{"x":1.0}'])
    assert found.extras == {"role": "model"}


@pytest.mark.parametrize(
    ("body", "message", "kind"),
    [
        ({"error": {"code": "not_found", "message": "no"}}, "no", "not_found"),
        ({"error": {"code": 429, "message": "slow", "status": "RESOURCE_EXHAUSTED"}}, "slow", "rate_limit"),
        (interaction("failed", errors=[{"code": "api_error", "message": "gone"}]), "gone", "server"),
        (interaction("failed", steps=[{"type": "model_output", "error": {"code": 503, "message": "busy"}}]), "busy", "unavailable"),
        (interaction("cancelled"), "the provider gave the finish reason 'cancelled'", "server"),
    ],
)  # fmt: skip
def test_an_error_is_one(body, message, kind):
    found = decode_response(orjson.dumps(body), NAME)
    assert found.error is not None
    assert (found.clean, found.error.message, found.error.type) == (False, message, kind)
    written, _ = write(found)
    assert written.keys() == {"error"}
    assert written["error"]["message"] == message


@pytest.mark.parametrize("status", ["in_progress", "queued", "idle"])
def test_an_interaction_that_goes_on_is_no_answer(status):
    found = read(said("Hi"), status=status)
    assert (found.clean, found.choices[0].stop_reason) == (False, None)


def test_another_body_is_not_this_dialect():
    with pytest.raises(NotThisDialect):
        decode_response(b'{"choices":[]}', NAME)


def test_what_is_written_of_another_vendors_answer():
    parts = [
        Reasoning("hm", signature=Opaque("anthropic", "s")),
        RedactedReasoning(Opaque("anthropic", "r")),
        Text("Hi", block=1),
        Media("image", "image/png", data="AA==", block=1),
        ToolCall(0, "a", "f", '{"x":1.0}', verdict=Verdict("complete"), signature=Opaque("google", "c2ln")),
        ToolCall(1, "b", "g", '{"x":', verdict=Verdict("truncated"), ended=False),
        Aside("anthropic", "server_tool", "x", {}),
    ]
    choice = Choice(parts=parts, stop_reason="tool_calls", stop_sequence="##")
    written, report = write(Response("anthropic", vendor="anthropic", id="r", model="m", choices=[choice], clean=True))
    steps = written["steps"]
    assert [step["type"] for step in steps] == ["thought", "thought", "model_output", "function_call"]
    assert [content["type"] for content in steps[2]["content"]] == ["text", "image"]
    assert steps[3] == {"type": "function_call", "id": "a", "name": "f", "arguments": {"x": 1.0}, "signature": "c2ln"}
    assert written["status"] == "requires_action"
    assert report.losses == {"call_withheld": 1, "server_tool": 1, "stop_sequence": 1}
    again = decode_response(orjson.dumps(written), NAME)
    assert again.choices[0].parts[0] == Reasoning("hm", "summary", Opaque("anthropic", "s"))
    assert again.choices[0].parts[1] == RedactedReasoning(Opaque("anthropic", "r"))


@pytest.mark.parametrize("vector", [one for one in VECTORS if one.clean], ids=lambda one: one.name.replace(" ", "-"))
async def test_a_body_says_what_its_stream_says(vector):
    streamed = await collect(source_of([vector.body]), NAME)
    report = StreamReport()
    found = decode_response(encode_response(streamed, NAME, report=report), NAME)
    assert (found.text, found.choices[0].reasoning, found.clean) == (vector.text, vector.reasoning, True)
    assert [(call.name, call.id) for call in found.tool_calls] == [(call.name, call.id) for call in streamed.tool_calls]
    if not report.losses["stop_reason"]:
        assert found.choices[0].stop_reason == streamed.choices[0].stop_reason
    if streamed.usage is not None:
        assert found.usage == evolve(streamed.usage, raw=None if found.usage is None else found.usage.raw)
