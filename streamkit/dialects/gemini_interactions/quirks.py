"""Faults of real servers that the mock server can put into Interactions streams: one for each repair of the decoder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from streamkit.dialects.quirks import (
    EVENTS,
    Change,
    Fragments,
    both,
    call_quirks,
    cut,
    end_quirks,
    event_quirks,
    every,
    first,
    last,
    put,
    reword,
    stop_quirks,
    stray_errors,
    text_quirks,
    turn,
)

KIND: Final = "event_type"
STEP_TYPE: Final = "step.type"
TEXT: Final = "delta.text"
THOUGHT: Final = "delta.content.text"
NAME: Final = "step.name"
WHOLE: Final = "step.arguments"
ARGUMENTS: Final = "delta.arguments"
STATUS: Final = "interaction.status"
FRAGMENTS: Final = Fragments(changes=EVENTS, start=every(NAME), fragment=every(ARGUMENTS), key="index", text=ARGUMENTS)
ENDED: Final = every(KIND, "interaction.completed")
OUTPUT: Final = first(STEP_TYPE, "model_output")
FOREIGN: Final = {"completed": "end_turn", "requires_action": "tool_calls", "incomplete": "length"}
ERROR: Final = every(KIND, "error")
#: Changes that turn a copy of a step's start into the start of another step, with another index and text.
MORE: Final = put("index", 99), put("step.content", [{"type": "text", "text": "And more."}])

edit, add = EVENTS.edit, EVENTS.add


def _contents(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text}]


QUIRKS: Final[Mapping[str, Change]] = {
    **event_quirks(done_mark=False),
    **stray_errors(ERROR),
    **text_quirks(EVENTS, first(TEXT), TEXT),
    **end_quirks(EVENTS, OUTPUT, *MORE, end=ENDED, error=ERROR),
    **call_quirks(FRAGMENTS, NAME, "step.id"),
    **stop_quirks(EVENTS, every(NAME), STATUS, FOREIGN, called="requires_action", stopped="completed"),
    "event_type_missing": EVENTS.unless(ERROR, edit(every(KIND), cut(KIND))),
    "field_invalid": edit(every("interaction.usage"), put("interaction.usage.total_output_tokens", -1)),
    "error_shape": edit(ERROR, cut(KIND)),
    "index_invalid": edit(every("index"), turn("index", str)),
    "list_unasked": edit(every(TEXT), turn("delta", lambda delta: [delta])),
    "object_missing": edit(every(THOUGHT), turn("delta.content", lambda content: content["text"])),
    "arguments_not_text": FRAGMENTS.one(json.loads),
    "arguments_not_object": FRAGMENTS.whole(WHOLE, str),
    "block_unopened": EVENTS.drop(OUTPUT),
    "block_unclosed": EVENTS.when(ENDED, EVENTS.drop(last(KIND, "step.stop"))),
    "block_mismatch": edit(every(STEP_TYPE, "thought"), put(STEP_TYPE, "model_output")),
    "block_reopened": add(OUTPUT),
    "response_restarted": add(first(KIND, "interaction.created")),
    "text_repeated": both(
        EVENTS.share(first(TEXT), TEXT, OUTPUT, "step.content"), edit(OUTPUT, turn("step.content", _contents))
    ),
    "whole_differs": EVENTS.when(
        first(TEXT), edit(ENDED, put("interaction.steps", [{"type": "model_output", "content": _contents("Else.")}]))
    ),
    "index_missing": edit(every("index"), cut("index")),
    "index_reused": edit(every("index"), put("index", 0)),
    "arguments_replaced": edit(every(NAME), put(WHOLE, {"draft": True})),
    "empty_object_prefix": add(first(ARGUMENTS), put(ARGUMENTS, "{}"), behind=False),
    "arguments_late": EVENTS.when(
        ENDED, EVENTS.move(last(ARGUMENTS), put(ARGUMENTS, "late"), behind=last(KIND, "step.stop"))
    ),
    "stop_reason_foreign": edit(ENDED, reword(STATUS, FOREIGN)),
}
