"""The grammar of Workers AI's stream, and what its servers do otherwise."""

import json
from typing import Any, ClassVar

from streamkit import plugin as sk


class WorkersChecker(sk.GrammarChecker):
    rules: ClassVar = {
        **sk.COMMON_RULES,  # not_utf8, not_json, not_object and truncated
        "chunk": "A chunk has a string `response`, a list `tool_calls` or a list `errors`.",
        "call": "A call has a string `name` that is not blank, and `arguments` that are an object.",
        "after_end": "Nothing follows `[DONE]` or an error.",
    }
    hints: ClassVar = {
        **sk.COMMON_HINTS,
        "call": (
            sk.like("arguments_not_object", says="arguments"),
            sk.like("call_nameless", says="name"),
        ),
        "after_end": (sk.like("after_end"), sk.like("after_error")),
    }
    _ended = False

    def take(self, frame: sk.Frame) -> None:
        if self._ended:
            self.broken("after_end", f"{sk.shown(frame.text)} follows the end")
        elif frame.data == b"[DONE]":
            self._ended = True
        else:
            super().take(frame)

    def check(self, document: dict[str, Any]) -> None:
        self._ended = "errors" in document
        calls = document.get("tool_calls", [])
        if not isinstance(calls, list) or not sk.is_text(document.get("response", "")):
            self.broken("chunk", f"the chunk is {sk.shown(document)}")
            return
        for call in calls:
            if not isinstance(call, dict):
                self.broken("chunk", f"a call is {sk.shown(call)}")
                continue
            self.member(call, "name", sk.is_filled, "call")
            self.member(
                call, "arguments", lambda value: isinstance(value, dict), "call"
            )

    def close(self) -> None:
        if not self._ended:
            self.broken("truncated", "the stream ends without `[DONE]` or an error")


EVENTS = sk.Changes(sk.EventForm())
CALLS, NAMES = sk.every("tool_calls", kind=list), sk.every("tool_calls.0.name")
QUIRKS = {
    "arguments_not_object": EVENTS.edit(
        NAMES, sk.turn("tool_calls.0.arguments", json.dumps)
    ),
    "list_missing": EVENTS.edit(CALLS, sk.turn("tool_calls", lambda calls: calls[0])),
    "payload_no_object": EVENTS.when(
        sk.every("response"), sk.insert(1, b"data: null\n\n")
    ),
}
