"""Faults of real servers that the mock server can put into Anthropic streams: one for each repair that the decoder makes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from streamkit.dialects.quirks import (
    EVENTS,
    Change,
    Fragments,
    Payload,
    both,
    call_quirks,
    call_text,
    cut,
    end_quirks,
    event_quirks,
    every,
    first,
    last,
    put,
    stop_quirks,
    stray_errors,
    surrounded,
    text_quirks,
    turn,
    value_at,
    without_event_lines,
)

TEXT: Final = "delta.text"
THINKING: Final = "delta.thinking"
JSON: Final = "delta.partial_json"
BLOCK: Final = "content_block"
BLOCK_TYPE: Final = "content_block.type"
INPUT: Final = "content_block.input"
ID: Final = "content_block.id"
NAME: Final = "content_block.name"
REASON: Final = "delta.stop_reason"
FRAGMENTS: Final = Fragments(changes=EVENTS, start=every(NAME), fragment=every(JSON), key="index", text=JSON)
FOREIGN: Final = {"tool_use": "tool_calls", "end_turn": "stop", "max_tokens": "length"}
ENDED: Final = every("type", "message_stop")
BLOCK_STOP: Final = "content_block_stop"
#: Changes that turn a copy of a block's start into the start of another block, with another index and text.
MORE: Final = put("index", 99), put(BLOCK, {"type": "text", "text": "And more."})

edit, add = EVENTS.edit, EVENTS.add


def _thinking_as_text(payload: Payload) -> None:
    """Turn a start or a delta of thinking into one of text."""
    if BLOCK in payload:
        payload[BLOCK] = {"type": "text", "text": ""}
    else:
        payload["delta"] = {"type": "text_delta", "text": value_at(payload, THINKING)}


def _call_as_text(payload: Payload) -> None:
    block = payload[BLOCK]
    payload[BLOCK] = {"type": "text", "text": call_text(block["name"], block["input"])}


QUIRKS: Final[Mapping[str, Change]] = {
    **event_quirks(done_mark=False),
    **stray_errors(every("type", "error")),
    **text_quirks(EVENTS, first(TEXT), TEXT),
    **end_quirks(EVENTS, first(BLOCK_TYPE, "text"), *MORE, end=ENDED, error=every("type", "error")),
    **call_quirks(FRAGMENTS, NAME, ID),
    **stop_quirks(EVENTS, every(NAME), REASON, FOREIGN, called="tool_use", stopped="end_turn"),
    "event_name_missing": without_event_lines,
    "event_type_missing": EVENTS.unless(every("type", "error"), edit(every("type"), cut("type"))),
    "field_invalid": add(first(TEXT), put("delta.type", 5)),
    "error_shape": edit(every("type", "error"), cut("type")),
    "index_invalid": edit(every("index"), turn("index", str)),
    "thinking_in_text": both(
        surrounded(EVENTS, first(THINKING), last(THINKING), THINKING),
        edit(every(BLOCK_TYPE, "thinking"), _thinking_as_text),
        edit(every(THINKING), _thinking_as_text),
    ),
    "call_in_text": both(FRAGMENTS.whole(INPUT, json.loads), edit(every(NAME), _call_as_text)),
    "list_unasked": edit(every(TEXT), turn("delta", lambda delta: [delta])),
    "arguments_not_text": FRAGMENTS.one(json.loads),
    "arguments_not_object": FRAGMENTS.whole(INPUT, str),
    "block_unopened": EVENTS.drop(first(BLOCK_TYPE, "text")),
    "block_unclosed": EVENTS.when(ENDED, EVENTS.drop(last("type", BLOCK_STOP))),
    "block_mismatch": edit(every(BLOCK_TYPE, "thinking"), put(BLOCK, {"type": "text", "text": ""})),
    "block_reopened": add(first(BLOCK_TYPE, "text")),
    "response_restarted": add(first("message")),
    "index_missing": edit(every("index"), cut("index")),
    "index_reused": edit(every("index"), put("index", 0)),
    "arguments_replaced": edit(every(NAME), put(INPUT, {"draft": True})),
    "empty_object_prefix": add(first(JSON), put(JSON, "{}"), behind=False),
    "text_repeated": EVENTS.share(first(TEXT), TEXT, first(BLOCK_TYPE, "text"), "content_block.text"),
    "arguments_late": EVENTS.when(ENDED, EVENTS.move(last(JSON), put(JSON, "late"), behind=last("type", BLOCK_STOP))),
    "stop_conflict": add(every(REASON, "tool_use", "max_tokens"), put(REASON, "end_turn"), behind=False),
}
