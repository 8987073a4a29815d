"""Faults of servers that send Chat chunks: for each repair of the decoder, a change of a stream that needs the repair."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from streamkit.dialects.quirks import (
    EVENTS,
    Change,
    ChangeStep,
    Fragments,
    Frames,
    Payload,
    both,
    call_quirks,
    call_text,
    cut,
    end_quirks,
    event_quirks,
    every,
    first,
    hoist,
    last,
    put,
    rename,
    stop_quirks,
    stray_errors,
    surrounded,
    text_quirks,
    turn,
    value_at,
)

DELTA, FINISH = "choices.0.delta", "choices.0.finish_reason"
CONTENT, REASONING = f"{DELTA}.content", f"{DELTA}.reasoning_content"
CALLS, CALL = f"{DELTA}.tool_calls", f"{DELTA}.tool_calls.0"
ID, INDEX, FUNCTION = f"{CALL}.id", f"{CALL}.index", f"{CALL}.function"
NAME, ARGUMENTS = f"{FUNCTION}.name", f"{FUNCTION}.arguments"
FRAGMENTS: Final = Fragments(changes=EVENTS, start=every(NAME), fragment=every(ARGUMENTS), key=INDEX, text=ARGUMENTS)
#: Select the chunk that ends a choice with calls (``CALLED``), or a choice without calls (``STOPPED``).
CALLED, STOPPED = every(FINISH, "tool_calls"), every(FINISH, "stop")
FOREIGN: Final = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}
GHOST: Final = {"index": 9, "id": "call_ghost", "type": "function", "function": {"arguments": ""}}

edit, add = EVENTS.edit, EVENTS.add


def _call_as_text(payload: Payload) -> None:
    function = value_at(payload, FUNCTION)
    put(DELTA, {"content": call_text(function["name"], function["arguments"])})(payload)


def _message_at_end(text: str) -> ChangeStep:
    """Return a step that puts a whole message in place of the delta in the last chunk."""

    def step(finish: Payload) -> None:
        put("choices.0.message", {"role": "assistant", "content": text})(finish)
        cut(DELTA)(finish)

    return step


def _last_delta_missing(frames: Frames) -> Frames:
    """Put the whole text in the last chunk, and drop the last delta."""
    text = "".join(value_at(payload, CONTENT) for payload in EVENTS.having(every(CONTENT, kind=str), frames))
    cut_short = both(EVENTS.halve(last(CONTENT), CONTENT), EVENTS.drop(last(CONTENT)))
    return both(edit(STOPPED, _message_at_end(text)), cut_short)(frames)


QUIRKS: Final[Mapping[str, Change]] = {
    **event_quirks(done_mark=True),
    **stray_errors(every("error")),
    **text_quirks(EVENTS, first(CONTENT), CONTENT),
    **end_quirks(EVENTS, first(CONTENT), end=every(FINISH), error=every("error")),
    **call_quirks(FRAGMENTS, NAME, ID),
    **stop_quirks(EVENTS, every(CALL), FINISH, FOREIGN, called="tool_calls", stopped="stop"),
    "number_out_of_range": edit(first(CONTENT), put("created", 10**400)),
    "field_invalid": edit(first(CONTENT), turn("choices", lambda choices: [*choices, None])),
    "error_shape": edit(every("error"), turn("error", lambda error: error["message"])),
    "call_shape": edit(every(FUNCTION), hoist(FUNCTION)),
    "choice_index_missing": edit(every("choices.0"), cut("choices.0.index")),
    "index_invalid": edit(every(INDEX), turn(INDEX, str)),
    "delta_missing": add(first(CONTENT), cut(DELTA), behind=False),
    "thinking_in_text": both(
        surrounded(EVENTS, first(REASONING), last(REASONING), REASONING),
        edit(every(REASONING), rename(REASONING, "content")),
    ),
    "call_in_text": both(FRAGMENTS.whole(ARGUMENTS, json.loads), edit(every(NAME), _call_as_text)),
    "text_as_object": edit(every(REASONING), turn(REASONING, lambda text: {"text": text})),
    "list_missing": edit(every(CALLS), turn(CALLS, lambda calls: calls[0])),
    "list_unasked": edit(every(FUNCTION), turn(FUNCTION, lambda function: [function])),
    "content_as_list": edit(every(CONTENT), turn(CONTENT, lambda text: [{"type": "text", "text": text}])),
    "said_twice": edit(
        every(FUNCTION), lambda payload: put("choices.0.delta.function_call", value_at(payload, FUNCTION))(payload)
    ),
    "arguments_not_text": FRAGMENTS.whole(ARGUMENTS, json.loads),
    "identity_blank": edit(every(ARGUMENTS), put(ID, "")),
    "index_missing": edit(every(CALL), cut(INDEX)),
    "index_reused": edit(every(CALL), put(INDEX, 0)),
    "index_changed": edit(every(NAME), turn(INDEX, lambda index: index + 7)),
    "id_repeated": FRAGMENTS.carry(ID),
    "id_changed": edit(first(ARGUMENTS), put(ID, "call_other")),
    "id_late": both(edit(every(NAME), cut(ID)), EVENTS.halve(last(ARGUMENTS), ARGUMENTS, then=[put(ID, "call_late")])),
    "name_repeated": FRAGMENTS.carry(NAME),
    "name_pieces": EVENTS.halve(first(NAME), NAME, then=[cut(ID)]),
    "name_changed": EVENTS.halve(first(ARGUMENTS), ARGUMENTS, then=[put(NAME, "other")]),
    "objects_split": both(EVENTS.drop(first(NAME, at=1)), edit(every(INDEX, 1), put(INDEX, 0))),
    "call_ghost": add(last(ARGUMENTS), put(CALL, GHOST)),
    "empty_object_prefix": edit(every(NAME), put(ARGUMENTS, "{}")),
    "fragments_missing": _last_delta_missing,
    "whole_differs": edit(STOPPED, _message_at_end("Something else.")),
    "stop_conflict": add(every(FINISH, "tool_calls", "length"), put(FINISH, "stop"), behind=False),
    "finish_derived": edit(CALLED, put(FINISH, None)),
}
