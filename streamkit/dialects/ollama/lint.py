"""Check Ollama's lines, of `/api/chat` and `/api/generate`, against the needs of ollama-python and strict clients.

Lines are independent: each has the model and the time, and its calls are complete. The parser drops blank lines, so they are
not checked.

Source: dialects.md §0.4, §4.1, §4.2, §7.6.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any, ClassVar

from streamkit.dialects.linting import (
    COMMON_HINTS,
    COMMON_RULES,
    READS,
    TORN,
    GrammarChecker,
    Hint,
    Hints,
    is_filled,
    is_index,
    is_text,
    like,
    shown,
)
from streamkit.dialects.ollama.wire import COUNTS
from streamkit.framing.frame import Frame

RULES: dict[str, str] = {
    **COMMON_RULES,
    "unterminated": (
        "A line feed ends each line, including the last. Clients also read a last line without a line feed (§0.3)."
    ),
    "separator": (
        "No line contains a raw U+0085, U+2028, U+2029 or CR: "
        "ollama-python would split the line at this character (§0.4)."
    ),
    "head": "Each line has a string `model`, a time `created_at` in the form of RFC 3339, and a boolean `done` (§4.1).",
    "kind": (
        "Either all lines have a `message` (`/api/chat`), or all lines have a `response` (`/api/generate`) "
        "(§4.1, §4.2)."
    ),
    "message": "`message` is an object with a string `role` and a string `content` (§4.1).",
    "response": "`response` is a string (§4.2).",
    "thinking": "If a line has `thinking`, it is a string (§4.1, §4.2).",
    "tool_calls": "`tool_calls` is a list of objects. The only member of each is an object `function` (§0.4, §4.1).",
    "call_id": (
        "A call has no `id`: Ollama itself writes an `id`, but strict clients of late 2025 refuse the `id` (§4.1)."
    ),
    "call_name": "A call has a name that is not blank (§4.1).",
    "arguments": "`arguments` is an object, not a string: some clients raise an error for a string (§0.4).",
    "counts": "Counts and durations are non-negative integers (§4.1).",
    "done_reason": "The line with `done: true` has a `done_reason` that is not blank (§4.1, §7.6).",
    "after_done": "No line follows the line with `done: true` (§4.1).",
    "error": "An error line has a string `error` that is not blank: clients do not recognize other errors (§4.1).",
    "after_error": "No line follows an error line (§4.1).",
}
HINTS: Hints = {
    **COMMON_HINTS,
    "unterminated": (like("last_event_unterminated"), Hint(TORN, 106)),
    "separator": (Hint(READS, 94),),
    **dict.fromkeys(("kind", "call_id", "done_reason"), ()),
    **dict.fromkeys(("head", "message", "response", "thinking", "counts"), (like("field_invalid"),)),
    "tool_calls": (like("field_invalid"), like("call_shape")),
    "call_name": (like("call_nameless"), like("identity_blank", 33)),
    "arguments": (like("arguments_not_object"), like("field_invalid")),
    "after_done": (like("after_end"),),
    "error": (like("error_shape"),),
    "after_error": (like("after_error"), like("after_end")),
}
SEPARATORS = re.compile(rb"\xc2\x85|\xe2\x80[\xa8\xa9]|\r")
#: RFC 3339 §5.6 as Go writes and reads it. ``datetime`` decides whether the numbers are a date.
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)


class OllamaLinter(GrammarChecker):
    """Checks the lines of one stream."""

    rules: ClassVar = RULES
    hints: ClassVar = HINTS

    _kind: str | None = None  # the member with the content, in the lines of this stream
    _done = False
    _failed = False

    def take(self, frame: Frame) -> None:
        if not frame.terminated:
            self.broken("unterminated", "no line end after the last line", "note")
        if found := SEPARATORS.search(frame.data):
            self.broken("separator", f"{found[0].hex(' ')} at byte {found.start()} of the line")
        if self._failed:
            self.broken("after_error", f"line after the error: {shown(frame.text)}")
        elif self._done:
            self.broken("after_done", f"line after the one with done: {shown(frame.text)}")
        else:
            super().take(frame)

    def check(self, document: dict[str, Any]) -> None:
        if "error" in document:
            self._failed = True
            self.member(document, "error", is_filled, "error")
            return
        self.member(document, "model", is_text, "head")
        self.member(document, "created_at", is_time, "head")
        if not isinstance(document.get("done"), bool):
            self.broken("head", f"done is {shown(document.get('done'))}")
        self._content(document)
        for name in COUNTS:
            if name in document:
                self.member(document, name, is_index, "counts")
        if document.get("done") is True:
            self._done = True
            self.member(document, "done_reason", is_filled, "done_reason")

    def close(self) -> None:
        if not self._done and not self._failed:
            self.broken("truncated", "the stream ends before a line with `done: true`")

    def _content(self, document: dict[str, Any]) -> None:
        kinds = [name for name in ("message", "response") if name in document]
        self._kind = self._kind or next(iter(kinds), None)
        if kinds != [self._kind]:
            found, needed = " and ".join(kinds) or "neither", self._kind or "a message or a response"
            self.broken("kind", f"the line has {found}, not {needed}")
        holder = document
        if "response" in document and not is_text(document["response"]):
            self.broken("response", f"response is {shown(document['response'])}")
        if "message" in document:
            holder = document["message"]
            if not isinstance(holder, dict) or not is_text(holder.get("role")) or not is_text(holder.get("content")):
                self.broken("message", f"message is {shown(holder)}")
            if not isinstance(holder, dict):
                return
        if not is_text(holder.get("thinking", "")):
            self.broken("thinking", f"thinking is {shown(holder['thinking'])}")
        self._tool_calls(holder.get("tool_calls", []))

    def _tool_calls(self, calls: object) -> None:
        if not isinstance(calls, list):
            self.broken("tool_calls", f"tool_calls is {shown(calls)}")
            return
        for call in calls:
            if not isinstance(call, dict) or not isinstance(call.get("function"), dict):
                self.broken("tool_calls", f"an entry of tool_calls is {shown(call)}")
                continue
            if others := call.keys() - {"function", "id"}:
                self.broken("tool_calls", f"a call has other members than function: {shown(sorted(others))}")
            if "id" in call:
                self.broken("call_id", f"id is {shown(call['id'])}", "note")
            function = call["function"]
            self.member(function, "name", is_filled, "call_name")
            if not isinstance(function.get("arguments"), dict):
                self.broken("arguments", f"arguments are {shown(function.get('arguments'))}")


def is_time(value: object) -> bool:
    """Whether a value is the text of an RFC 3339 time."""
    if not isinstance(value, str) or not TIME.fullmatch(value):
        return False
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True
