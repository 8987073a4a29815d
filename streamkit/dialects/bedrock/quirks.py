"""What servers of Bedrock's messages do otherwise, one change for each repair."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from attrs import evolve

from streamkit.dialects.quirks.calls import Fragments
from streamkit.dialects.quirks.changes import (
    Change,
    Changes,
    MessageForm,
    Where,
    both,
    cut,
    every,
    first,
    last,
    put,
    reword,
    turn,
)
from streamkit.dialects.quirks.common import bare_input, end_quirks, text_quirks

MESSAGES: Final = Changes(MessageForm())
INDEX: Final = "contentBlockIndex"
TEXT: Final = "delta.text"
REASONING: Final = "delta.reasoningContent"
NAME: Final = "start.toolUse.name"
ID: Final = "start.toolUse.toolUseId"
INPUT: Final = "delta.toolUse.input"
REASON: Final = "stopReason"
FRAGMENTS: Final = Fragments(changes=MESSAGES, start=every(NAME), fragment=every(INPUT), key=INDEX, text=INPUT)
CALLED, STOPPED = every(REASON, "tool_use"), every(REASON, "end_turn")
ERROR: Final = every("message")
FOREIGN: Final = {"tool_use": "tool_calls", "end_turn": "stop", "max_tokens": "length"}
START: Final = every("role")
#: A message with an index and nothing else stops a block.
STOPS: Final = Where("", lambda payload: [*payload] == [INDEX])
FIRST_STOP, LAST_STOP = evolve(STOPS, part=slice(1)), evolve(STOPS, part=slice(-1, None))

edit, add = MESSAGES.edit, MESSAGES.add

QUIRKS: Final[Mapping[str, Change]] = {
    **text_quirks(MESSAGES, first(TEXT), TEXT),
    **end_quirks(MESSAGES, first(TEXT), put(INDEX, 99), end=every(REASON), error=ERROR),
    "number_out_of_range": edit(first(TEXT), put("elapsed", 10**400)),
    "payload_no_object": MESSAGES.each(START, lambda payload: (payload, None)),
    "payload_in_list": MESSAGES.each(first(TEXT), lambda payload: ([payload],)),
    "field_invalid": add(first(TEXT), put("delta", 5)),
    "error_shape": MESSAGES.each(ERROR, lambda error: (error["message"].encode(),)),
    "index_invalid": edit(every(INDEX), turn(INDEX, str)),
    "text_as_object": edit(every(TEXT), turn(TEXT, lambda text: {"text": text})),
    "list_unasked": edit(every(TEXT), turn("delta", lambda delta: [delta])),
    "arguments_not_text": FRAGMENTS.one(json.loads),
    "response_restarted": add(START),
    "index_missing": edit(every(INDEX), cut(INDEX)),
    "id_missing": edit(every(NAME), cut(ID)),
    "id_duplicate": MESSAGES.share(first(NAME), ID, every(NAME), ID),
    "call_nameless": edit(first(NAME), cut(NAME)),
    "arguments_repeated": FRAGMENTS.again(),
    "arguments_cumulative": both(MESSAGES.halve(first(INPUT), INPUT), FRAGMENTS.cumulative()),
    "empty_object_prefix": add(first(INPUT), put(INPUT, "{}"), behind=False),
    "index_reused": edit(every(INDEX), put(INDEX, 0)),
    "block_unopened": add(FIRST_STOP),
    "block_unclosed": MESSAGES.when(every(REASON), MESSAGES.drop(LAST_STOP)),
    "block_mismatch": both(
        MESSAGES.when(every(REASONING), MESSAGES.drop(FIRST_STOP)), edit(every(REASONING), put(INDEX, 1))
    ),
    "arguments_late": MESSAGES.when(every(REASON), MESSAGES.move(last(INPUT), put(INPUT, "late"), behind=LAST_STOP)),
    "custom_input_bare": FRAGMENTS.one(bare_input),
    "stop_with_calls": edit(CALLED, put(REASON, "end_turn")),
    "stop_unknown_with_calls": edit(CALLED, put(REASON, "done_calling")),
    "calls_without_call": MESSAGES.unless(every(NAME), edit(STOPPED, put(REASON, "tool_use"))),
    "stop_reason_foreign": edit(every(REASON), reword(REASON, FOREIGN)),
}
