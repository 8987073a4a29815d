"""Check AG-UI's events against the rules of ``verifyEvents`` in its client, in versions 0.0.59 and 1.0.

If only one of these versions refuses an event, the checker reports an error. It also reports a call without a result in a
failed run: no client refuses such a call, but CopilotKit runs it.

Source: ui-protocols.md §2.1 to §2.3, §2.5; @ag-ui/client 1.0.0 and 0.0.59.
"""

from __future__ import annotations

from typing import Any, ClassVar

from streamkit.dialects.ag_ui.wire import COUNTS, EVENTS, HIDDEN_CODE, RunEvent, wrong_members
from streamkit.dialects.linting import (
    COMMON_HINTS,
    COMMON_RULES,
    READS,
    TORN,
    CallInput,
    GrammarChecker,
    Hint,
    Hints,
    is_index,
    is_text,
    like,
    shown,
)
from streamkit.framing.frame import Frame

RULES: dict[str, str] = {
    **COMMON_RULES,
    "unterminated": (
        "Two line feeds end each event, including the last. Clients also read an event without them (§2.1)."
    ),
    "blank": (
        "Each `data:` line has a JSON payload: clients raise an error for an empty payload and for `[DONE]` (§2.1)."
    ),
    "event_type": (
        "Each event has a `type` that version 0.0.59 of the client knows: "
        "for other types, the client raises an error (§2.2)."
    ),
    "member": "Members have the types of AG-UI's schema, and no member is null (§2.2).",
    "run_started": "The first event is RUN_ERROR, or RUN_STARTED with a `threadId` and a `runId` (§2.3).",
    "after_finished": "Only RUN_STARTED or RUN_ERROR may follow RUN_FINISHED (§2.3).",
    "after_error": "Only RUN_STARTED may follow RUN_ERROR (§2.3).",
    "not_open": "A message or call starts before it continues or ends, and does not start again while it is open (§2.3).",
    "left_open": "At RUN_FINISHED, no message, call, reasoning, step or subagent is open (§2.3).",
    "chunks": (
        "No message or call is sent in `_CHUNK` events: "
        "in such events, clients take a truncated call for a finished call (§2.4)."
    ),
    "version_0": "A stream has no `THINKING_` events: version 0.0.59 of the client does not show them (§2.2).",
    "arguments": (
        "The arguments of a finished call are one JSON object. "
        "Other arguments are allowed only if the stream has a result for the call (§2.5)."
    ),
    "unanswered": (
        "Before RUN_ERROR, each call gets a result: "
        "clients run a call without a result, even if the call is truncated (§2.5)."
    ),
    "hidden_error": "The `code` of RUN_ERROR is not `abort`: CopilotKit does not show such an error (§2.5).",
    "outcome": (
        "`outcome` has the type `success` or `interrupt`: "
        "version 0.0.59 of the client raises an error for other types (§2.2)."
    ),
    "usage": "`usage` is a list of objects, and their counts are non-negative integers (§2.2).",
}
HINTS: Hints = {
    **COMMON_HINTS,
    "unterminated": (like("last_event_unterminated"), Hint(TORN, 106)),
    "blank": (like("foreign_terminator"), Hint(READS, 94)),
    **dict.fromkeys(("event_type", "run_started", "chunks", "hidden_error", "outcome", "arguments", "version_0"), ()),
    "member": (like("field_invalid"), like("index_missing")),
    "after_finished": (like("after_end"),),
    "after_error": (like("after_end"), like("after_error")),
    "not_open": (like("block_unopened"), like("block_reopened"), like("response_restarted")),
    "left_open": (like("block_unclosed"),),
    "unanswered": (like("calls_unanswered"),),
    "usage": (like("field_invalid"),),
}


class AgUiLinter(GrammarChecker):
    """Checks the events of one stream."""

    rules: ClassVar = RULES
    hints: ClassVar = HINTS

    def __init__(self) -> None:
        super().__init__()
        self._last = ""  # the latest of RUN_STARTED, RUN_FINISHED and RUN_ERROR
        self._open: dict[tuple[str, str], None] = {}
        self._inputs: dict[str, CallInput] = {}  # inputs of calls without a result
        self._answered: set[str] = set()
        self._broken_inputs: dict[str, str] = {}  # inputs of calls that ended

    def take(self, frame: Frame) -> None:
        if not frame.terminated:
            self.broken("unterminated", "no blank line after the last event", "note")
        if not frame.data.strip() or frame.data.strip() == b"[DONE]":
            self.broken("blank", f"the payload is {shown(frame.text)}")
        else:
            super().take(frame)

    def check(self, document: dict[str, Any]) -> None:
        kind = document.get("type")
        if not is_text(kind) or kind not in EVENTS:
            self.broken("event_type", f"type is {shown(kind)}")
            return
        for name in wrong_members(kind, document):
            rule = "run_started" if kind == "RUN_STARTED" else "member"
            self.broken(rule, f"{name} of {kind} is {shown(document.get(name))}")
        self._order(kind)
        if kind.endswith("_CHUNK"):
            self.broken("chunks", f"the event is {kind}", "note")
        elif kind.startswith("THINKING_"):
            self.broken("version_0", f"the event is {kind}", "note")
        self._part(EVENTS[kind], document)
        call_id = str(document.get("toolCallId"))
        match kind:
            case "TOOL_CALL_START":
                self._inputs.setdefault(call_id, CallInput())
            case "TOOL_CALL_ARGS" if call_id in self._inputs and is_text(document.get("delta")):
                self._inputs[call_id].append(document["delta"])
            case "TOOL_CALL_END":
                self._broken_inputs.pop(call_id, None)
                if call_id in self._inputs and (text := self._inputs[call_id].unparsable()) is not None:
                    self._broken_inputs[call_id] = text
            case "TOOL_CALL_RESULT":
                self._answered.add(call_id)
            case "RUN_FINISHED":
                self._finished(document)
            case "RUN_ERROR":
                self._failed(document)

    def close(self) -> None:
        if self._last not in {"RUN_FINISHED", "RUN_ERROR"}:
            self.broken("truncated", "the stream ends before RUN_FINISHED")

    def _usage(self, usage: object) -> None:
        if not isinstance(usage, list):
            self.broken("usage", f"usage is {shown(usage)}")
            return
        for entry in usage:
            if not isinstance(entry, dict):
                self.broken("usage", f"an entry is {shown(entry)}")
                continue
            for name in COUNTS.values():
                if name in entry and not is_index(entry[name]):
                    self.broken("usage", f"{name} is {shown(entry[name])}")

    def _order(self, kind: str) -> None:
        if not self._last and kind not in {"RUN_STARTED", "RUN_ERROR"}:
            self.broken("run_started", f"the first event is {kind}")
        elif self._last == "RUN_STARTED" and kind == "RUN_STARTED":
            self.broken("not_open", "RUN_STARTED while a run is open")
        elif self._last == "RUN_FINISHED" and kind not in {"RUN_STARTED", "RUN_ERROR"}:
            self.broken("after_finished", f"after RUN_FINISHED: {kind}")
        elif self._last == "RUN_ERROR" and kind != "RUN_STARTED":
            self.broken("after_error", f"after RUN_ERROR: {kind}")
        if kind in {"RUN_STARTED", "RUN_FINISHED", "RUN_ERROR"}:
            self._last = kind
        self._last = self._last or "RUN_STARTED"

    def _finished(self, document: dict[str, Any]) -> None:
        for what, name in self._open:
            self.broken("left_open", f"{what} {shown(name)} is open")
        self._open.clear()
        for call_id, text in self._broken_inputs.items():
            if call_id not in self._answered:
                self.broken("arguments", f"the arguments of {shown(call_id)} are {shown(text)}")
        outcome = document.get("outcome")
        kind = outcome.get("type") if isinstance(outcome, dict) else None
        if outcome is not None and kind not in ("success", "interrupt"):
            self.broken("outcome", f"outcome is {shown(outcome)}")
        if "usage" in document:
            self._usage(document["usage"])

    def _failed(self, document: dict[str, Any]) -> None:
        for call_id in self._inputs:
            if call_id not in self._answered:
                self.broken("unanswered", f"{shown(call_id)} has no result")
        if document.get("code") == HIDDEN_CODE:
            self.broken("hidden_error", "code is 'abort'")
        if is_text(document.get("message")) and not document["message"].strip():
            self.broken("member", "message of RUN_ERROR is blank", "note")
        if "usage" in document:
            self._usage(document["usage"])

    def _part(self, event: RunEvent, document: dict[str, Any]) -> None:
        """Check the message, call or other part of the run that the event opens, continues or ends."""
        what = event.opens or event.continues or event.ends
        if not what:
            return
        name = str(document.get(event.needs[0]))
        is_open = (what, name) in self._open
        if event.opens and is_open:
            self.broken("not_open", f"{what} {shown(name)} starts while it is open")
        elif not event.opens and not is_open:
            self.broken("not_open", f"{what} {shown(name)} is not open")
        if event.opens:
            self._open[what, name] = None
        elif event.ends:
            self._open.pop((what, name), None)
