"""What agents of Codex's kind demand of a Responses stream, read over loopback, and that what we write satisfies it.

They pass over `event: error` and know a failure by `response.failed`, act on items when they are done, refuse a delta without
an active item, and call a stream without `response.completed` broken. Source: clients.md §2, quirks.md 113, 131.
"""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import pytest
from attrs import define, field

from streamkit.dialects import DIALECTS
from tests.clients.recipes import converted, recordings, whole
from tests.clients.replay import PATHS, ReplayServer
from tests.clients.vectors import BEGUN, FAILURES, LOSSY, WHOLE
from tests.sampling import Part, part_of, parts

#: Events with text: the type of the item that must be active.
DELTAS = {
    "response.output_text.delta": "message",
    "response.reasoning_text.delta": "reasoning",
    "response.reasoning_summary_text.delta": "reasoning",
}


class Failed(Exception):
    """The turn failed, and why."""


@define
class Turn:
    items: list[dict[str, Any]] = field(factory=list)
    text: str = ""
    active: dict[str, Any] | None = None
    completed: bool = False

    def take(self, event: dict[str, Any]) -> None:
        kind = event.get("type")
        if kind == "response.output_item.added":
            self.active = item_of(event)
        elif kind == "response.output_item.done":
            self.items.append(item_of(event))
            self.active = None
        elif kind in DELTAS:
            if self.active is None or self.active["type"] != DELTAS[kind]:
                raise Failed(f"{kind} without active item")
            if kind == "response.output_text.delta":
                self.text += event["delta"]
        elif kind == "response.failed":
            raise Failed(f"{event['response']['error']['code']}: {event['response']['error']['message']}")
        elif kind == "response.incomplete":
            raise Failed(f"incomplete: {event['response']['incomplete_details']['reason']}")
        elif kind == "response.completed":
            response = event["response"]
            assert isinstance(response["id"], str)
            if (usage := response["usage"]) is not None:
                counts = [usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]]
                counts += [usage["input_tokens_details"]["cached_tokens"]]
                counts += [usage["output_tokens_details"]["reasoning_tokens"]]
                assert all(type(count) is int for count in counts)
            self.completed = True


def item_of(event: dict[str, Any]) -> dict[str, Any]:
    item = event["item"]
    members = {
        "message": {"id": str, "role": str, "content": list},
        "reasoning": {"id": str, "summary": list},
        "function_call": {"call_id": str, "name": str, "arguments": str},
        "custom_tool_call": {"call_id": str, "name": str, "input": str},
    }
    for name, kind in members.get(item["type"], {}).items():
        assert type(item[name]) is kind, (name, item)
    return dict(item)


def read(replay: ReplayServer, body: bytes) -> Turn:
    """One turn. Raises Failed."""
    asked = json.dumps({"model": replay.register(body)}).encode()
    request = urllib.request.Request(
        replay.url + PATHS["openai-responses"], asked, {"content-type": "application/json"}
    )
    turn = Turn()
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=10) as response:
        for line in response:
            if line.startswith(b"data:") and not turn.completed:
                turn.take(json.loads(line[5:]))
    if not turn.completed:
        raise Failed("stream closed before response.completed")
    return turn


@pytest.mark.parametrize("part", parts(3))
@pytest.mark.parametrize("source", DIALECTS)
def test_a_turn_of_every_recording_is_read(source: str, part: Part, replay: ReplayServer):
    for recording in part_of(recordings(source), part):
        response = whole(recording.body, source)
        output = converted(recording.body, source, "openai-responses").body
        if not response.clean or response.choices[0].stop_reason in {
            "length",
            "context_full",
            "content_filter",
            "pause",
        }:
            with pytest.raises(Failed):
                read(replay, output)
            continue
        turn = read(replay, output)
        assert turn.text == response.choices[0].text, recording.name
        calls = [item for item in turn.items if item["type"] in {"function_call", "custom_tool_call"}]
        assert [item["call_id"] for item in calls] == [call.id for call in response.choices[0].tool_calls], (
            recording.name
        )


@pytest.mark.parametrize(
    "body", [*(vector.body for vector in WHOLE if vector.stop != "length"), LOSSY["custom_tool_wrapped"]]
)
def test_our_vectors_are_read(body: bytes, replay: ReplayServer):
    turn = read(replay, converted(body, "openai-chat", "openai-responses").body)
    assert turn.items
    assert all(item["status"] == "completed" for item in turn.items)


@pytest.mark.parametrize("reencode", [True, False])
@pytest.mark.parametrize("source", sorted(BEGUN))
def test_a_failure_is_seen_with_its_message_and_no_call_is_done(source: str, reencode: bool, replay: ReplayServer):
    for body, message in ((BEGUN[source] + FAILURES[source], "all busy"), (BEGUN[source], "truncated")):
        if source == "openai-responses" and not reencode and message == "all busy":
            continue  # the provider's own words pass as they are
        output = converted(body, source, "openai-responses", reencode=reencode or source != "openai-responses").body
        assert b'"type":"function_call","status":"completed"' not in output
        with pytest.raises(Failed, match=message):
            read(replay, output)
