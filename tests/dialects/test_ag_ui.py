"""AG-UI: messages that share an id, and members for which readers refuse a run."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from streamkit import Response, collect
from streamkit.conversation.messages import Reasoning, Text
from streamkit.testing import source_of
from tests.laws.running import translate
from tests.vectors import gemini_interactions as gi


def run(*documents: dict[str, Any], started: dict[str, Any] | None = None, **finished: Any) -> bytes:
    """A run with these events between its start and its end."""
    ids = {"threadId": "t", "runId": "r"}
    all_of_it = [
        {"type": "RUN_STARTED", **ids, **(started or {})},
        *documents,
        {"type": "RUN_FINISHED", **ids, **finished},
    ]
    return b"".join(b"data: %b\n\n" % json.dumps(document).encode() for document in all_of_it)


def message(kind: str, message_id: str, text: str) -> list[dict[str, Any]]:
    role = "assistant" if kind == "TEXT" else "reasoning"
    return [
        {"type": f"{kind}_MESSAGE_START", "messageId": message_id, "role": role},
        {"type": f"{kind}_MESSAGE_CONTENT", "messageId": message_id, "delta": text},
        {"type": f"{kind}_MESSAGE_END", "messageId": message_id},
    ]


def collected(body: bytes) -> Response:
    return asyncio.run(collect(source_of([body]), "ag-ui"))


def test_reasoning_and_text_with_one_id_are_two_messages():
    found = collected(run(*message("REASONING", "m", "hm"), *message("TEXT", "m", "Hi")))
    assert [(type(part), part.text) for part in found.choices[0].parts if isinstance(part, Text | Reasoning)] == [
        (Reasoning, "hm"),
        (Text, "Hi"),
    ]
    assert not found.report.repairs


def test_chunks_of_reasoning_and_text_with_one_id_are_two_messages():
    chunks = [{"type": f"{kind}_MESSAGE_CHUNK", "messageId": "m", "delta": kind} for kind in ("REASONING", "TEXT")]
    parts = collected(run(*chunks)).choices[0].parts
    assert [(type(part), part.text) for part in parts if isinstance(part, Text | Reasoning)] == [
        (Reasoning, "REASONING"),
        (Text, "TEXT"),
    ]


@pytest.mark.parametrize(
    "kinds", [("REASONING_MESSAGE", "TOOL_CALL"), ("TEXT_MESSAGE", "TOOL_CALL"), ("TOOL_CALL", "TEXT_MESSAGE")]
)
def test_a_chunk_behind_the_end_that_names_nothing_is_counted(kinds):
    first, second = ({"type": f"{kind}_CHUNK", "delta": "x"} for kind in kinds)
    first |= {"messageId": "m", "toolCallId": "c", "toolCallName": "f"}
    late = [first, {**second, "toolCallName": "f"}]
    body = run() + b"".join(b"data: %b\n\n" % json.dumps(document).encode() for document in late)
    assert collected(body).report.repairs["after_end"] == 2


@pytest.mark.parametrize(
    ("outcome", "losses"),
    [({"type": "x"}, {"metadata": 1}), ({}, {}), ("success", {"unknown_event": 1}), (7, {"unknown_event": 1})],
)
def test_an_outcome_at_which_readers_fail_is_lost(outcome, losses):
    output, report = translate("ag-ui", "ag-ui", [run(outcome=outcome)], passing=False)
    assert b'"outcome"' not in output
    assert report.losses == losses


def test_an_interrupt_comes_back():
    output, report = translate("ag-ui", "ag-ui", [run(outcome={"type": "interrupt", "interrupts": []})], passing=False)
    assert b'"outcome":{"type":"interrupt"' in output
    assert not report.losses


def test_a_thread_whose_name_is_no_text_gets_another():
    output, report = translate("ag-ui", "ag-ui", [run(started={"threadId": 7, "parentRunId": 8})], passing=False)
    start = json.loads(output.split(b"\n")[0].removeprefix(b"data: "))
    assert isinstance(start["threadId"], str)
    assert "parentRunId" not in start
    assert report.losses == {"response_fields": 2}


def test_white_space_that_json_does_not_know_is_no_arguments():
    """Written already, it can't be taken back for an empty object: no reader could parse both."""
    body = gi.named(gi.START, gi.call(0, "a", "f"), gi.piece(0, "\u2028"), gi.end(0), gi.finish("requires_action"))
    written, _ = translate("gemini-interactions", "ag-ui", [body], passing=False)
    assert b'"delta":"{}"' not in written
    assert b"not run, because its arguments are not a JSON object" in written
