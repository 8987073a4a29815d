"""Faults of real servers that the mock server can put into Ollama streams: one for each repair that the decoder makes.

Faults inside a call's fragments are missing, because Ollama sends each call whole in one line.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from streamkit.dialects.ollama.decode import REPEATED_CHARS
from streamkit.dialects.quirks import (
    ANY,
    Change,
    Changes,
    Frames,
    LineForm,
    Payload,
    both,
    call_text,
    compact,
    cut,
    end_quirks,
    every,
    first,
    hoist,
    insert,
    last,
    put,
    rename,
    reword,
    surrounded,
    text_quirks,
    turn,
    value_at,
)

LINES: Final = Changes(LineForm())
CONTENT: Final = "message.content"
THINKING: Final = "message.thinking"
CALLS: Final = "message.tool_calls"
FUNCTION: Final = "message.tool_calls.0.function"
NAME: Final = "message.tool_calls.0.function.name"
DONE: Final = every("done", True)
FOREIGN: Final = {"stop": "end_turn", "length": "max_tokens"}
ERROR: Final = every("error")

edit, add = LINES.edit, LINES.add


def _call_as_text(line: Payload) -> None:
    function = value_at(line, FUNCTION)
    line["message"] = {"role": "assistant", "content": call_text(function["name"], function["arguments"])}


def _repeated_at_end(path: str, *, least: int = 1) -> Change:
    """Return a change that repeats all texts or lists at a path in the last line, if they are not shorter than ``least``."""

    def change(frames: Frames) -> Frames:
        values = [value_at(line, path) for line in LINES.having(every(path), frames)]
        whole = values[0] if values else None
        for more in values[1:]:
            whole = whole + more
        return edit(DONE, put(path, whole))(frames) if whole and len(whole) >= least else frames

    return change


QUIRKS: Final[Mapping[str, Change]] = {
    **text_quirks(LINES, first(CONTENT), CONTENT),
    **end_quirks(LINES, first(CONTENT), end=DONE, error=ERROR),
    "payload_no_object": LINES.when(ANY, insert(1, b"null\n")),
    "payload_in_list": LINES.each(DONE, lambda line: ([line],)),
    "field_invalid": edit(DONE, put("eval_count", "many")),
    "error_shape": edit(ERROR, turn("error", lambda error: {"message": error})),
    "boolean_invalid": edit(every("done", True, False), turn("done", lambda done: str(done).lower())),
    "thinking_in_text": both(
        surrounded(LINES, first(THINKING), last(THINKING), THINKING), edit(every(THINKING), rename(THINKING, "content"))
    ),
    "call_in_text": edit(every(NAME), _call_as_text),
    "list_missing": edit(every(CALLS), turn(CALLS, lambda calls: calls[0])),
    "call_shape": edit(every(FUNCTION), hoist(FUNCTION)),
    "list_unasked": edit(every(FUNCTION), turn(FUNCTION, lambda function: [function])),
    "object_missing": edit(every(CONTENT), turn("message", lambda message: message["content"])),
    "said_twice": edit(every(CONTENT), lambda line: put("response", value_at(line, CONTENT))(line)),
    "arguments_not_object": edit(every(NAME), turn("message.tool_calls.0.function.arguments", compact)),
    "identity_blank": edit(every(NAME), put("message.tool_calls.0.id", " ")),
    "id_duplicate": LINES.when(first(NAME, at=1), edit(every(NAME), put("message.tool_calls.0.id", "call_one"))),
    "call_nameless": edit(first(NAME), cut(NAME)),
    "arguments_repeated": _repeated_at_end(CALLS),
    "text_repeated": _repeated_at_end(CONTENT, least=REPEATED_CHARS),
    "stop_reason_foreign": edit(DONE, reword("done_reason", FOREIGN)),
}
