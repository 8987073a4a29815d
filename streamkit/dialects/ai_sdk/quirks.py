"""Faults of real servers that the mock server can put into AI SDK streams: one for each repair that the decoder makes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from streamkit.dialects.quirks import (
    EVENTS,
    Change,
    both,
    cut,
    event_quirks,
    every,
    first,
    put,
    stop_quirks,
    stray_errors,
    text_quirks,
    unterminated,
)

TEXT: Final = "text-delta"
ENDED: Final = every("type", "finish")
ERROR: Final = every("type", "error")
FOREIGN: Final = {"stop": "end_turn", "tool-calls": "tool_use", "length": "max_tokens"}
MARK: Final = b"data: [DONE]\n\n"

#: A change that adds another part of text at the end of the stream.
AGAIN: Final = both(
    EVENTS.move(first("type", "text-start"), put("id", "t9")), EVENTS.move(first("type", TEXT), put("id", "t9"))
)

edit, add = EVENTS.edit, EVENTS.add

QUIRKS: Final[Mapping[str, Change]] = {
    **event_quirks(done_mark=True),
    **stray_errors(ERROR),
    **text_quirks(EVENTS, first("type", TEXT), "delta"),
    **stop_quirks(
        EVENTS,
        every("inputTextDelta"),
        "finishReason",
        FOREIGN,
        called="tool-calls",
        stopped="stop",
        unknown="done-calling",
    ),
    # a missing end of the mark would be no loss, because clients ignore the mark
    "last_event_unterminated": lambda frames: unterminated(tuple(frame for frame in frames if frame != MARK)),
    "after_end": EVENTS.when(ENDED, AGAIN),
    "after_error": EVENTS.when(ERROR, AGAIN),
    "error_shape": edit(ERROR, lambda error: put("error", {"message": error.pop("errorText")})(error), cut("type")),
    "block_unopened": EVENTS.drop(first("type", "text-start")),
    "block_reopened": add(first("type", "text-start")),
    "arguments_repeated": add(first("type", "tool-input-available")),
}
