"""Faults of real agents that the mock server can put into AG-UI streams: one for each repair that the decoder makes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from streamkit.dialects.quirks import (
    EVENTS,
    Change,
    Fragments,
    bare_input,
    cut,
    end_quirks,
    event_quirks,
    every,
    first,
    last,
    put,
    stop_quirks,
    stray_errors,
    text_quirks,
    turn,
)

TEXT: Final = "TEXT_MESSAGE_CONTENT"
NAME: Final = "toolCallName"
FRAGMENTS: Final = Fragments(
    changes=EVENTS, start=every(NAME), fragment=every("type", "TOOL_CALL_ARGS"), key="toolCallId", text="delta"
)
ENDED: Final = every("type", "RUN_FINISHED")
ERROR: Final = every("type", "RUN_ERROR")
FOREIGN: Final = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}

edit, add = EVENTS.edit, EVENTS.add

QUIRKS: Final[Mapping[str, Change]] = {
    **event_quirks(done_mark=False),
    **stray_errors(ERROR),
    **text_quirks(EVENTS, first("type", TEXT), "delta"),
    **end_quirks(EVENTS, first("type", "TEXT_MESSAGE_START"), put("messageId", "msg_more"), end=ENDED, error=None),
    **stop_quirks(EVENTS, every(NAME), "metadata.finishReason", FOREIGN, called="tool_calls", stopped="stop"),
    "number_out_of_range": edit(first("type", TEXT), put("timestamp", 10**400)),
    "field_invalid": edit(every("usage"), put("usage.0.outputTokens", -1)),
    "error_shape": edit(ERROR, lambda error: put("error", {"message": error.pop("message")})(error), cut("type")),
    "list_missing": edit(every("usage"), turn("usage", lambda usage: usage[0])),
    "arguments_not_text": FRAGMENTS.one(json.loads),
    "calls_unanswered": EVENTS.when(ERROR, EVENTS.drop(every("type", "TOOL_CALL_RESULT"))),
    "block_unopened": EVENTS.drop(first("type", "TEXT_MESSAGE_START")),
    "block_unclosed": EVENTS.when(ENDED, EVENTS.drop(last("type", "TOOL_CALL_END"))),
    "block_reopened": add(first(NAME)),
    "response_restarted": add(first("type", "RUN_STARTED")),
    "index_missing": edit(every("type", TEXT), cut("messageId")),
    "call_nameless": edit(first(NAME), cut(NAME)),
    "custom_input_bare": FRAGMENTS.one(bare_input),
}
