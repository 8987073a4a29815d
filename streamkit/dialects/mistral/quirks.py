"""Faults of servers that send Mistral's chunks: for each repair of the decoder, a change of a stream that needs the repair."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from streamkit.dialects.openai_chat import quirks as chat
from streamkit.dialects.quirks import (
    EVENTS,
    Change,
    both,
    cut,
    end_quirks,
    every,
    first,
    last,
    put,
    rename,
    stray_errors,
    surrounded,
    text_quirks,
    turn,
    value_at,
)

#: Selects a content that is text. Thinking is a list of parts.
TEXT: Final = first(chat.CONTENT, kind=str)
ERROR: Final = every("object", "error")
THOUGHT: Final = f"{chat.CONTENT}.0.thinking.0.text"
#: The quirks of Chat that have the same meaning for Mistral's clients.
SHARED: Final = (
    "sse_field_unknown", "comment_as_data", "last_event_unterminated", "payload_no_object", "number_out_of_range",
    "field_invalid", "call_shape", "choice_index_missing", "index_invalid", "call_in_text", "list_missing", "list_unasked",
    "said_twice", "id_missing", "id_duplicate", "call_ghost", "call_nameless", "custom_input_bare", "stop_with_calls",
    "stop_unknown_with_calls", "calls_without_call", "stop_reason_foreign", "stop_conflict", "finish_derived",
)  # fmt: skip

edit = EVENTS.edit

QUIRKS: Final[Mapping[str, Change]] = {
    **stray_errors(ERROR),
    **text_quirks(EVENTS, TEXT, chat.CONTENT),
    **end_quirks(EVENTS, TEXT, end=every(chat.FINISH), error=ERROR),
    **{kind: chat.QUIRKS[kind] for kind in SHARED},
    "error_shape": edit(ERROR, rename("message", "error"), cut("object")),
    "thinking_in_text": both(
        surrounded(EVENTS, first(THOUGHT), last(THOUGHT), THOUGHT),
        edit(every(THOUGHT), lambda payload: put(chat.CONTENT, value_at(payload, THOUGHT))(payload)),
    ),
    "text_as_object": edit(every(THOUGHT), turn(THOUGHT, lambda text: {"text": text})),
    "object_missing": edit(every(THOUGHT), turn(f"{chat.CONTENT}.0.thinking.0", lambda part: part["text"])),
}
