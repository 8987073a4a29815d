"""Check Cohere's events against the official client's types, and the needs of programs that use the client.

The client itself checks nothing: it skips a payload of another shape with a warning, and ends silently if a stream ends
early. So the rules come from its types, and from programs that keep one pending call and find a block by its index. Unknown
types of events and contents are accepted.

Source: dialects.md §0.3, §0.4, §6.2, §7.6.
"""

from __future__ import annotations

from typing import Any, ClassVar

from streamkit.dialects.cohere.wire import EVENTS, FAILURES, TEXT_KINDS, is_count, message_of
from streamkit.dialects.linting import (
    COMMON_RULES,
    MESSAGE_HINTS,
    NO_RULE,
    READS,
    GrammarChecker,
    Hint,
    Hints,
    is_filled,
    is_index,
    is_text,
    like,
    like_each,
    shown,
)
from streamkit.framing.frame import Frame

RULES: dict[str, str] = {
    **COMMON_RULES,
    "unterminated": "A blank line ends each event, including the last: clients drop an event without this line (§0.3).",
    "event": (
        "Each event has a `type`, and an `event:` line with the same value; clients read only the type (§0.4, §6.2)."
    ),
    "message_start": "`message-start` is sent once. Only a `message-end` with an error may be sent without it (§6.2).",
    "message": "At its start, the message has an `id` and the role `assistant` (§6.2).",
    "block_index": "Blocks of content have the `index` 0, 1, 2 … in the order in which they start (§6.2).",
    "call_index": (
        "Calls have the `index` 0, 1, 2 … in the order in which they start. Blocks are numbered separately (§6.2)."
    ),
    "block_order": (
        "Only one block or call is open at a time, and its deltas and its end have its index. "
        "No block or call is open when the message ends (§6.2)."
    ),
    "content": (
        "`content` is an object, and its text or thinking is a string. "
        "In the start of a block, it also has a `type` (§6.2)."
    ),
    "content_kind": "A delta has only the member that fits its block: `text` or `thinking` (§6.2).",
    "tool_plan": "In a delta, `tool_plan` is a string (§6.2).",
    "tool_call": "`tool_calls` is an object with an object `function`. It is not a list (§6.2).",
    "call_start": "At its start, a call has the type `function`, and an `id` and a name that are not blank (§6.2).",
    "call_id": "Each call has a different `id`: otherwise a tool result could belong to two calls (§6.2).",
    "arguments": "`arguments` is a string with a piece of JSON text (§6.2).",
    "citation": "A citation is an object. Its start and its end have the same `index` (§6.2).",
    "message_end": "`message-end` has an object `delta` with a `finish_reason` that is not blank (§6.2, §7.6).",
    "usage": "`usage` is an object, and its counts are numbers (§6.2).",
    "error": "If `message-end` has an `error`, it is a string, and the finish reason is `ERROR` or `TIMEOUT` (§6.2).",
    "after_end": "Only `[DONE]` may follow `message-end` (§0.3).",
}
HINTS: Hints = {
    **MESSAGE_HINTS,
    "block_index": (like("block_reopened"), like("index_reused"), like("index_invalid"), Hint(READS, 82)),
    "call_index": (like("block_reopened"), like("index_reused"), like("index_missing"), like("index_invalid")),
    "block_order": (like("block_unopened"), like("block_reopened"), like("block_unclosed"), like("arguments_late")),
    **dict.fromkeys(("content", "tool_plan", "citation", "message_end"), (like("field_invalid"),)),
    "tool_call": like_each("field_invalid", "call_shape"),
    "content_kind": (like("block_mismatch"),),
    "call_start": (
        like("id_missing"),
        like("identity_blank", 33),
        like("call_nameless"),
        like("call_shape"),
        like("field_invalid"),
    ),
    "call_id": (like("id_duplicate"),),
    "arguments": (like("arguments_not_text"), like("field_invalid")),
    "after_end": (like("after_end"), like("after_error")),
    NO_RULE: (Hint("finish_derived", None),),
}
#: The kind and the index of the open block or call.
Open = tuple[str, object]


class CohereLinter(GrammarChecker):
    """Checks the events of one stream."""

    rules: ClassVar = RULES
    hints: ClassVar = HINTS

    def __init__(self) -> None:
        super().__init__()
        self._started = False
        self._ended = False
        self._open: Open | None = None
        self._kind: object = None  # the type of the open block of content
        self._next = {"content": 0, "call": 0}
        self._citation: object = None

    def take(self, frame: Frame) -> None:
        done = frame.data == b"[DONE]"
        if not frame.terminated and not done:
            self.broken("unterminated", "no blank line after the last event")
        if self._ended:
            if not done:
                self.broken("after_end", f"frame after message-end: {shown(frame.text)}")
        elif not done:  # the client stops at [DONE]; if the end is missing, `truncated` reports it
            super().take(frame)

    def check(self, document: dict[str, Any]) -> None:
        kind = self.event_type(document, "note")
        if kind is None:
            return
        if not self._started and kind not in {"message-start", "message-end"}:
            self.broken("message_start", f"{shown(kind)} before message-start")
            self._started = True
        self.judge(EVENTS.get(kind), document)

    def close(self) -> None:
        if not self._ended:
            self.broken("truncated", "the stream ends before message-end")

    def message_start(self, document: dict[str, Any]) -> None:
        if self._started:
            self.broken("message_start", "a second message-start")
        self._started = True
        role = message_of(document).get("role")
        if not is_filled(document.get("id")) or role != "assistant":
            self.broken("message", f"id is {shown(document.get('id'))}, role {shown(role)}")

    def message_end(self, document: dict[str, Any]) -> None:
        self._ended = True
        delta = document.get("delta")
        if not isinstance(delta, dict) or not is_filled(delta.get("finish_reason")):
            self.broken("message_end", f"delta is {shown(delta)}")
            return
        failed = delta["finish_reason"] in FAILURES
        error = delta.get("error")
        if error is not None and not (is_text(error) and failed):
            self.broken("error", f"error is {shown(error)}, finish_reason {shown(delta['finish_reason'])}")
        self._usage(delta.get("usage"))
        if failed:
            return
        if not self._started:
            self.broken("message_start", "message-end before message-start")
        self._none_open("message-end")

    def _usage(self, value: object) -> None:
        usage = self.counts(value)
        if usage is None:
            return
        groups = [usage.get(name) for name in ("tokens", "billed_units")]
        counts = [count for group in groups if isinstance(group, dict) for count in group.values()]
        wrong = [group for group in groups if not isinstance(group, dict | None)]
        wrong += [count for count in [*counts, usage.get("cached_tokens")] if not is_count(count)]
        if wrong:
            self.broken("usage", f"usage contains {shown(wrong[0])}")

    def _none_open(self, kind: str) -> None:
        if self._open is not None:
            self.broken("block_order", f"{kind} while {self._open[0]} {shown(self._open[1])} is open")
            self._open = None

    def _start(self, document: dict[str, Any], what: str, rule: str) -> None:
        self._none_open(f"{what} start")
        index = document.get("index")
        if type(index) is not int or index != self._next[what]:
            self.broken(rule, f"index is {shown(index)}, not {self._next[what]}")
        self._next[what] += 1
        self._open = what, index

    def _is_open(self, document: dict[str, Any], what: str) -> bool:
        if self._open == (what, document.get("index")):
            return True
        self.broken("block_order", f"{what} {shown(document.get('index'))} is not open")
        return False

    def _stop(self, document: dict[str, Any], what: str) -> None:
        if self._is_open(document, what):
            self._open = None

    def content_start(self, document: dict[str, Any]) -> None:
        self._start(document, "content", "block_index")
        content = message_of(document).get("content")
        self._kind = None
        if not isinstance(content, dict) or not is_filled(content.get("type")):
            self.broken("content", f"content is {shown(content)}")
            return
        self._kind = content["type"]
        if self._kind in TEXT_KINDS and not is_text(content.get(self._kind)):
            self.broken("content", f"{self._kind} is {shown(content.get(self._kind))}")

    def content_delta(self, document: dict[str, Any]) -> None:
        if not self._is_open(document, "content"):
            return
        content = message_of(document).get("content")
        if not isinstance(content, dict):
            self.broken("content", f"content is {shown(content)}")
            return
        if self._kind not in TEXT_KINDS:
            return
        found = [name for name in TEXT_KINDS if name in content]
        if found != [self._kind]:
            self.broken(
                "content_kind", f"{' and '.join(found) or 'neither text nor thinking'} in a block of {self._kind}"
            )
        for name in found:
            self.member(content, name, is_text, "content")

    def content_end(self, document: dict[str, Any]) -> None:
        self._stop(document, "content")

    def tool_plan(self, document: dict[str, Any]) -> None:
        if self._open is not None:
            self.broken("block_order", f"tool-plan-delta while {self._open[0]} {shown(self._open[1])} is open")
        self.member(message_of(document), "tool_plan", is_text, "tool_plan")

    def _call(self, document: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]] | None:
        call = message_of(document).get("tool_calls")
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(call, dict) or not isinstance(function, dict):
            self.broken("tool_call", f"tool_calls is {shown(call)}")
            return None
        if not is_text(function.get("arguments")):
            self.broken("arguments", f"arguments are {shown(function.get('arguments'))}")
        return call, function

    def call_start(self, document: dict[str, Any]) -> None:
        self._start(document, "call", "call_index")
        found = self._call(document)
        if found is None:
            return
        call, function = found
        call_id = call.get("id")
        if not is_filled(call_id) or not is_filled(function.get("name")) or call.get("type") != "function":
            self.broken("call_start", f"the call is {shown(call)}")
        else:
            self.identify("call_id", "id", call_id)

    def call_delta(self, document: dict[str, Any]) -> None:
        if self._is_open(document, "call"):
            self._call(document)

    def call_end(self, document: dict[str, Any]) -> None:
        self._stop(document, "call")

    def citation_start(self, document: dict[str, Any]) -> None:
        citation = message_of(document).get("citations")
        self._citation = document.get("index")
        if not isinstance(citation, dict) or not is_index(self._citation):
            self.broken("citation", f"citation {shown(self._citation)} is {shown(citation)}")

    def citation_end(self, document: dict[str, Any]) -> None:
        index, self._citation = self._citation, None
        if index is None or document.get("index") != index:
            self.broken("citation", f"citation-end for citation {shown(document.get('index'))}, which is not open")
