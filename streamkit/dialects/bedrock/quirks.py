"""Faults of real servers that the mock server can put into Bedrock streams: one for each repair that the decoder makes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from attrs import evolve

from streamkit.dialects.quirks import (
    Change,
    Changes,
    Fragments,
    MessageForm,
    Where,
    both,
    call_quirks,
    cut,
    end_quirks,
    every,
    first,
    last,
    put,
    stop_quirks,
    text_quirks,
    turn,
)

MESSAGES: Final = Changes(MessageForm())
INDEX: Final = "contentBlockIndex"
TEXT: Final = "delta.text"
REASONING: Final = "delta.reasoningContent"
NAME: Final = "start.toolUse.name"
ID: Final = "start.toolUse.toolUseId"
INPUT: Final = "delta.toolUse.input"
REASON: Final = "stopReason"
FRAGMENTS: Final = Fragments(changes=MESSAGES, start=every(NAME), fragment=every(INPUT), key=INDEX, text=INPUT)
ERROR: Final = every("message")
FOREIGN: Final = {"tool_use": "tool_calls", "end_turn": "stop", "max_tokens": "length"}
START: Final = every("role")
#: Selects messages with an index and nothing else, which stop a block.
STOPS: Final = Where("", lambda payload: [*payload] == [INDEX])
FIRST_STOP, LAST_STOP = evolve(STOPS, part=slice(1)), evolve(STOPS, part=slice(-1, None))

edit, add = MESSAGES.edit, MESSAGES.add

QUIRKS: Final[Mapping[str, Change]] = {
    **text_quirks(MESSAGES, first(TEXT), TEXT),
    **end_quirks(MESSAGES, first(TEXT), put(INDEX, 99), end=every(REASON), error=ERROR),
    **call_quirks(FRAGMENTS, NAME, ID),
    **stop_quirks(MESSAGES, every(NAME), REASON, FOREIGN, called="tool_use", stopped="end_turn"),
    "payload_no_object": MESSAGES.each(START, lambda payload: (payload, None)),
    "field_invalid": add(first(TEXT), put("delta", 5)),
    "error_shape": MESSAGES.each(ERROR, lambda error: (error["message"].encode(),)),
    "index_invalid": edit(every(INDEX), turn(INDEX, str)),
    "list_unasked": edit(every(TEXT), turn("delta", lambda delta: [delta])),
    "arguments_not_text": FRAGMENTS.one(json.loads),
    "response_restarted": add(START),
    "index_missing": edit(every(INDEX), cut(INDEX)),
    "empty_object_prefix": add(first(INPUT), put(INPUT, "{}"), behind=False),
    "index_reused": edit(every(INDEX), put(INDEX, 0)),
    "block_unopened": add(FIRST_STOP),
    "block_unclosed": MESSAGES.when(every(REASON), MESSAGES.drop(LAST_STOP)),
    "block_mismatch": both(
        MESSAGES.when(every(REASONING), MESSAGES.drop(FIRST_STOP)), edit(every(REASONING), put(INDEX, 1))
    ),
    "arguments_late": MESSAGES.when(every(REASON), MESSAGES.move(last(INPUT), put(INPUT, "late"), behind=LAST_STOP)),
}
