"""Check a UI message stream against the rules of the SDK's readers, and against what clients do wrong.

Source: ui-protocols.md §1.1, §1.2, §1.6, §1.7.
"""

from __future__ import annotations

from typing import Any, ClassVar

from streamkit.dialects.ai_sdk.wire import FINISH_REASONS, NEWEST, TEXTS, is_refused, wrong_members
from streamkit.dialects.linting import (
    COMMON_HINTS,
    COMMON_RULES,
    MESSAGE_HINTS,
    GrammarChecker,
    Hints,
    Severity,
    is_text,
    like,
    shown,
)
from streamkit.framing.frame import Frame

RULES: dict[str, str] = {
    **COMMON_RULES,
    "unterminated": (
        "A blank line ends each event, including the last: the client drops an event without this line (§1.1)."
    ),
    "empty_data": (
        "Each event has data: otherwise the client ends the stream with an error. "
        "A keep-alive must be a comment (§1.1)."
    ),
    "chunk_type": (
        "Each chunk has a `type` that readers know: at an unknown type, a reader ends the stream with an error (§1.2)."
    ),
    "member": "Members have the type that readers require, and no member is null (§1.2, §1.7).",
    "part": "Each delta or end of a part has the id of an open part of the same kind (§1.7).",
    "part_again": (
        "The id of an open part is not used for another part: otherwise the first part would never end (§1.7)."
    ),
    "part_open": "Parts end before `finish`: clients show an open part as still streaming (§1.7).",
    "call": "Each delta or output of a call has the id of a call that started (§1.7).",
    "call_twice": (
        "Each call has only one `tool-input-available` chunk: clients run the call at each such chunk (§1.7)."
    ),
    "finish_reason": "`finishReason` is a word that readers know (§1.2).",
    "proto_key": (
        "No key is `__proto__`, and no key `constructor` contains a key `prototype`: "
        "readers refuse such a chunk (§1.3)."
    ),
    "step": (
        "A step starts before its parts: "
        "otherwise a client that sent a tool result may repeat its request endlessly (§1.6)."
    ),
    "empty_step": (
        "Each step has a part: otherwise a client that sent a tool result repeats its request endlessly (§1.6)."
    ),
    "run_and_failed": (
        "A stream that fails has no `tool-input-available` chunk of a call that the client runs: "
        "clients would run the call and not show the error (§1.6)."
    ),
    "failed_success": (
        "A failure is sent as an `error` chunk: "
        "clients take `abort`, or the `finishReason` `error`, for a success (§1.6)."
    ),
    "after_end": "Only `[DONE]` may follow `finish` or `error` (§1.6).",
}
HINTS: Hints = {
    **{rule: hints for rule, hints in MESSAGE_HINTS.items() if rule in RULES or rule in COMMON_HINTS},
    **dict.fromkeys(RULES.keys() - MESSAGE_HINTS.keys(), ()),
    "member": (like("field_invalid"),),
    "part": (like("block_unopened"),),
    "part_again": (like("block_reopened"),),
    "call": (like("id_missing"),),
    "call_twice": (like("id_duplicate"),),
    "after_end": (like("after_end"), like("after_error")),
}
OUTSIDE = frozenset({"start", "start-step", "finish-step", "finish", "abort", "error", "message-metadata"})


class AISDKLinter(GrammarChecker):
    """Checks the chunks of one stream."""

    rules: ClassVar = RULES
    hints: ClassVar = HINTS

    def __init__(self) -> None:
        super().__init__()
        self._open: set[tuple[str, str]] = set()
        self._calls: set[str] = set()
        self._available: set[str] = set()
        self._in_step = False
        self._drawn = False  # whether the step has content
        self._ended = False
        self._runs = False  # whether the client runs a call

    def take(self, frame: Frame) -> None:
        done = frame.data == b"[DONE]"
        if not frame.terminated and not done:
            self.broken("unterminated", "no blank line after the last event")
        if not frame.data.strip():
            self.broken("empty_data", "an event without data")
        elif not done:
            if is_refused(frame.data):
                self.broken("proto_key", f"clients refuse a key of {shown(frame.text)}")
            super().take(frame)

    def check(self, document: dict[str, Any]) -> None:
        kind = document.get("type")
        if not isinstance(kind, str) or not (kind in TEXTS or kind.startswith("data-")):
            severity: Severity = "note" if isinstance(kind, str) and kind in NEWEST else "error"
            self.broken("chunk_type", f"type is {shown(kind)}", severity)
            return
        if self._ended:
            self.broken("after_end", f"{kind} after the end")
        self._members(kind, document)
        if kind not in OUTSIDE:
            if not self._in_step:
                self.broken("step", f"{kind} before start-step", "note")
                self._in_step = True
            self._drawn = True
        if kind.startswith(("text-", "reasoning-")):
            self._part(kind, document.get("id"))
        elif kind.startswith("tool-"):
            self._call(kind, document)
        elif kind == "start-step":
            self._in_step, self._drawn = True, False
        elif kind in {"finish-step", "finish"}:
            if self._in_step and not self._drawn:
                self.broken("empty_step", "the step is empty")
            self._drawn = True
        if kind in {"finish", "error", "abort"}:
            self._end(kind, document)

    def close(self) -> None:
        if not self._ended:
            self.broken("truncated", "the stream ends before finish")

    def _members(self, kind: str, document: dict[str, Any]) -> None:
        for name in wrong_members(kind, document):
            self.broken("member", f"{name} of {kind} is {shown(document.get(name))}")

    def _part(self, kind: str, name: object) -> None:
        if not is_text(name):
            return
        key = kind.partition("-")[0], name
        if kind.endswith("-start"):
            if key in self._open:
                self.broken("part_again", f"{key[0]} {shown(name)} is open")
            self._open.add(key)
        elif key not in self._open:
            self.broken("part", f"{kind} of {shown(name)}, which is not open")
        elif kind.endswith("-end"):
            self._open.remove(key)

    def _call(self, kind: str, document: dict[str, Any]) -> None:
        call = document.get("toolCallId")
        if not is_text(call):
            return
        if kind in {"tool-input-start", "tool-input-available", "tool-input-error"}:
            self._calls.add(call)
        elif call not in self._calls:
            self.broken("call", f"{kind} of {shown(call)}, which was not started")
        if kind == "tool-input-available":
            if call in self._available:
                self.broken("call_twice", f"{shown(call)} again")
            self._available.add(call)
            self._runs = self._runs or not document.get("providerExecuted")

    def _end(self, kind: str, document: dict[str, Any]) -> None:
        self._ended = True
        reason = document.get("finishReason", "other")
        if kind == "finish":
            if not is_text(reason) or reason not in FINISH_REASONS:
                self.broken("finish_reason", f"finishReason is {shown(reason)}")
            for part, name in sorted(self._open):
                self.broken("part_open", f"{part} {shown(name)} does not end", "note")
        if kind == "abort" or (kind == "finish" and reason == "error"):
            self.broken("failed_success", f"the failure is in {kind}", "note")
        if kind == "error" and self._runs:
            self.broken("run_and_failed", "an error after available calls")
