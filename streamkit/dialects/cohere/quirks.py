"""Faults of real servers that the mock server can put into Cohere streams: one for each repair that the decoder makes."""

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
    cut,
    end_quirks,
    event_quirks,
    every,
    first,
    hoist,
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

CONTENT: Final = "delta.message.content"
TEXT: Final = "delta.message.content.text"
THINKING: Final = "delta.message.content.thinking"
KIND: Final = "delta.message.content.type"
FUNCTION: Final = "delta.message.tool_calls.function"
NAME: Final = f"{FUNCTION}.name"
ARGUMENTS: Final = f"{FUNCTION}.arguments"
ID: Final = "delta.message.tool_calls.id"
REASON: Final = "delta.finish_reason"
FRAGMENTS: Final = Fragments(changes=EVENTS, start=every(NAME), fragment=every(ARGUMENTS), key="index", text=ARGUMENTS)
#: Stop reasons of a successful end. An error is another stop reason, and ends the stream, too.
ENDED: Final = every(REASON, "COMPLETE", "TOOL_CALL", "MAX_TOKENS")
FOREIGN: Final = {"TOOL_CALL": "tool_use", "COMPLETE": "end_turn", "MAX_TOKENS": "length"}
ERROR: Final = every("delta.error")

edit, add = EVENTS.edit, EVENTS.add


def _thinking_as_text(payload: Payload) -> None:
    content = value_at(payload, CONTENT)
    kind = {"type": "text"} if "type" in content else {}
    put(CONTENT, {**kind, "text": content["thinking"]})(payload)


QUIRKS: Final[Mapping[str, Change]] = {
    **event_quirks(done_mark=True),
    **stray_errors(ERROR),
    **text_quirks(EVENTS, first(TEXT), TEXT),
    **end_quirks(EVENTS, first(KIND, "text"), put("index", 99), put(TEXT, "And more."), end=ENDED, error=None),
    **call_quirks(FRAGMENTS, NAME, ID),
    **stop_quirks(EVENTS, every(NAME), REASON, FOREIGN, called="TOOL_CALL", stopped="COMPLETE", unknown="DONE_CALLING"),
    "event_name_missing": without_event_lines,
    "event_type_missing": edit(every("type"), cut("type")),
    "field_invalid": add(first(TEXT), put("delta.message", 5)),
    "error_shape": edit(ERROR, turn("delta.error", lambda error: {"message": error})),
    "call_shape": edit(every(FUNCTION), hoist(FUNCTION)),
    "index_invalid": edit(every("index"), turn("index", str)),
    "thinking_in_text": both(
        surrounded(EVENTS, first(THINKING), last(THINKING), THINKING),
        edit(every(KIND, "thinking"), _thinking_as_text),
        edit(every(THINKING), _thinking_as_text),
    ),
    "list_unasked": edit(every(TEXT), turn(CONTENT, lambda content: [content])),
    "object_missing": edit(every(TEXT), turn(CONTENT, lambda content: content["text"])),
    "arguments_not_text": FRAGMENTS.whole(ARGUMENTS, json.loads),
    "block_unopened": EVENTS.drop(first(KIND, "text")),
    "block_unclosed": EVENTS.when(ENDED, EVENTS.drop(last("type", "content-end"))),
    "block_mismatch": edit(every(KIND, "thinking"), put(CONTENT, {"type": "text", "text": ""})),
    "block_reopened": add(first(KIND, "text")),
    "response_restarted": add(first("type", "message-start")),
    "index_missing": edit(every(TEXT), cut("index")),
    "index_reused": edit(every("type", "content-start", "content-delta", "content-end"), put("index", 0)),
    "empty_object_prefix": edit(every(NAME), put(ARGUMENTS, "{}")),
    "text_repeated": EVENTS.share(first(TEXT), TEXT, first(KIND, "text"), TEXT),
    "arguments_late": EVENTS.when(
        ENDED, EVENTS.move(last(ARGUMENTS), put(ARGUMENTS, "late"), behind=last("type", "tool-call-end"))
    ),
}
