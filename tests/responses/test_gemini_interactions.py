"""Whole interactions, in and out."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from streamkit import collect
from streamkit.conversation.messages import Choice, Media, Reasoning, RedactedReasoning, Response, Text, ToolCall
from streamkit.errors import NotThisDialect
from streamkit.events import Aside, Opaque, Verdict
from streamkit.report import StreamReport
from streamkit.testing import source_of
from streamkit.translation.bodies import decode_response, encode_response
from tests.responses.rows import Dialect, Row, rows
from tests.vectors.gemini_interactions import CITED, IMAGE, USAGE, VECTORS, interaction

NAME = "gemini-interactions"
pytestmark = pytest.mark.filterwarnings("error")


INTERACTIONS = Dialect(NAME, Response("anthropic", vendor="anthropic", id="r", model="m", clean=True))


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


ERRORS: list[tuple[Any, str, str]] = [
    ({"error": {"code": "not_found", "message": "no"}}, "not_found", "no"),
    ({"error": {"code": 429, "message": "slow", "status": "RESOURCE_EXHAUSTED"}}, "rate_limit", "slow"),
    (interaction("failed", errors=[{"code": "api_error", "message": "gone"}]), "server", "gone"),
    (
        interaction("failed", steps=[{"type": "model_output", "error": {"code": 503, "message": "busy"}}]),
        "unavailable",
        "busy",
    ),
    (interaction("cancelled"), "server", "the provider gave the finish reason 'cancelled'"),
]
OTHERS = [
    Reasoning("hm", signature=Opaque("anthropic", "s")), RedactedReasoning(Opaque("anthropic", "r")), Text("Hi", block=1),
    Media("image", "image/png", data="AA==", block=1),
    ToolCall(0, "a", "f", '{"x":1.0}', verdict=Verdict("complete"), signature=Opaque("google", "c2ln")),
    ToolCall(1, "b", "g", '{"x":', verdict=Verdict("truncated"), ended=False), Aside("anthropic", "server_tool", "x", {}),
]  # fmt: skip
OF_ANOTHER = evolve(INTERACTIONS.foreign, choices=[Choice(parts=OTHERS, stop_reason="tool_calls", stop_sequence="##")])
BEFORE = interaction(
    "requires_action", outputs=[{"type": "thought", "signature": "c2ln"}, {"type": "text", "text": "Hi"}, CALL], role="model"
)  # fmt: skip

ROWS = {
    **rows("same", SAME, lambda body: INTERACTIONS.kept(body, None)),
    "what is read": Row(
        interaction("requires_action", steps=[THOUGHT, said("Hi", "you"), CALL], usage=USAGE, created="2026-05-15T18:52:03Z"),
        [
            Reasoning("hm", "summary", Opaque("google", "c2ln")), Text("Hiyou"),
            ToolCall(0, "a", "f", '{"x": 1.0}', verdict=Verdict("complete")),
        ],
        {
            "id": "v1_7", "model": "m-1", "created": 1778871123, "clean": True, "choices[0].stop_reason": "tool_calls",
            "choices[0].native_stop_reason": "requires_action", "usage.input_total": 9, "usage.output_total": 4, "usage.output_reasoning": 1,
            "choices[1]": ...,
        },
    ),
    "before the steps": Row(
        BEFORE, None, {"text": "Hi", "tool_calls[0].arguments": '{"x": 1.0}', "tool_calls[1]": ..., "extras": {"role": "model"}}, None
    ),
    **rows("errors", ERRORS, lambda body, kind, message: INTERACTIONS.failed(
        body, kind, message, None, at={"error.message": message, "steps": ..., "status": ...}
    )),
    **rows("goes on", ["in_progress", "queued", "idle"], lambda status: Row(
        interaction(status, steps=[said("Hi")]), None, {"clean": False, "choices[0].stop_reason": None}, None
    )),
    "another body": INTERACTIONS.refused(b'{"choices":[]}', NotThisDialect),
    "another vendor's": INTERACTIONS.of_another(
        OF_ANOTHER, None, {"call_withheld": 1, "server_tool": 1, "stop_sequence": 1}, at={
            "steps[0].type": "thought", "steps[1].type": "thought", "steps[2].content[0].type": "text", "steps[2].content[1].type": "image",
            "steps[3]": {"type": "function_call", "id": "a", "name": "f", "arguments": {"x": 1.0}, "signature": "c2ln"},
            "status": "requires_action",
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_a_response(name):
    INTERACTIONS.check(ROWS[name])


def test_what_another_vendor_signed_comes_back():
    again = decode_response(encode_response(OF_ANOTHER, NAME), NAME)
    assert again.choices[0].parts[:2] == [
        Reasoning("hm", "summary", Opaque("anthropic", "s")),
        RedactedReasoning(Opaque("anthropic", "r")),
    ]


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
