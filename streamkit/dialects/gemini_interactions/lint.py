"""Check Interactions events against what Google's servers write and the types of its client.

The client itself checks nothing of a stream: it yields everything with a JSON payload. So the rules here are about the order
and shape of events, on which programs rely that collect steps by their index. Unknown types of events, steps and deltas are
accepted.

Source: dialects.md §5.5, ui-protocols.md §4; google-genai 3.4.0.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from attrs import define, field

from streamkit.dialects.gemini_interactions.wire import CALL, DELTAS, EVENTS, RUNNING, TEXT, THOUGHT, is_error
from streamkit.dialects.linting import (
    COMMON_RULES,
    KNOWN,
    MESSAGE_HINTS,
    NO_RULE,
    READS,
    CallInput,
    GrammarChecker,
    Hint,
    Hints,
    is_filled,
    is_index,
    is_text,
    like,
    shown,
)
from streamkit.framing.frame import Frame

RULES: dict[str, str] = {
    **COMMON_RULES,
    "unterminated": (
        "A blank line ends each event, including the last. The client also reads an event without this line (§5.5)."
    ),
    "event": "Each event has an `event_type`, and an `event:` line with the same value (§5.5).",
    "created": (
        "`interaction.created` is sent once. Only an error or `interaction.completed` may be sent without it (§5.5)."
    ),
    "interaction": "An interaction has the strings `id` and `status`: the client's types require both (§5.5).",
    "step_index": "Steps have the `index` 0, 1, 2 … in the order in which they start (§5.5).",
    "step_order": (
        "Each delta and each stop has the index of an open step. No step is open when the interaction ends (§5.5)."
    ),
    "step": (
        "A step has a `type`. A call also has an `id` and a `name` that are not blank. "
        "Deltas have the content of a step (§5.5)."
    ),
    "call_id": "No two calls have the same `id`: otherwise a tool result could belong to either call (§5.5).",
    "delta": (
        "Each delta is an object. Its `type` fits the step, and the delta has the member that belongs to the "
        "type (§5.5)."
    ),
    "input_unparsable": (
        "The joined fragments of a call are empty or one JSON object. Other text may be the model's mistake (§5.5)."
    ),
    "usage": "`usage` is an object, and its counts are non-negative integers (§5.5).",
    "status": "In `interaction.completed`, the status does not say that the interaction is still running (§5.5).",
    "after_completed": "Nothing follows `interaction.completed` (§5.5).",
    "error": (
        "An error event has an object `error` with a string `message`. "
        "If `error` has a `code`, that is a string (§5.5)."
    ),
    "after_error": "Nothing follows an error event (§5.5).",
}
HINTS: Hints = {
    **{name: looks for name, looks in MESSAGE_HINTS.items() if name not in {"message_start", "message"}},
    "created": (like("response_restarted"),),
    "interaction": (like("field_invalid"),),
    "step_index": (like("block_reopened"), like("index_reused"), like("index_invalid"), like("index_missing")),
    "step_order": (like("block_unopened"), like("block_unclosed"), Hint(READS, 75, "a stop")),
    "step": (like("id_missing"), like("arguments_not_object"), like("call_nameless"), like("field_invalid")),
    "call_id": (like("id_duplicate"),),
    "delta": (like("block_mismatch"), like("arguments_not_text"), like("text_as_object"), like("field_invalid")),
    "input_unparsable": (Hint(KNOWN, 50),),
    "status": (),
    "after_completed": (like("foreign_terminator"), like("after_end")),
    "after_error": (like("after_error"), like("after_end")),
    NO_RULE: (Hint("stop_with_calls", 52), Hint("finish_derived", None)),
}
KNOWN_STEPS: Final = frozenset({TEXT, THOUGHT, CALL})  # deltas in other steps are not checked


@define
class _CheckedStep:
    type: str
    input: CallInput = field(factory=CallInput)


class InteractionsLinter(GrammarChecker):
    """Checks the frames of one stream against ``RULES``."""

    rules: ClassVar = RULES
    hints: ClassVar = HINTS

    def __init__(self) -> None:
        super().__init__()
        self._started = False
        self._ended = False
        self._failed = False
        self._open: dict[Any, _CheckedStep] = {}
        self._next_index = 0

    def take(self, frame: Frame) -> None:
        if not frame.terminated:
            self.broken("unterminated", "no blank line after the last event", "note")
        harmless = frame.data.strip() == b"[DONE]"  # the client stops at [DONE]
        if self._failed and not harmless:
            self.broken("after_error", f"after the error: {shown(frame.text)}")
        elif self._ended or harmless:
            self.broken("after_completed", f"after the end: {shown(frame.text)}", "note" if harmless else "error")
        else:
            super().take(frame)

    def check(self, document: dict[str, Any]) -> None:
        kind = self.event_type(document, "note", name="event_type")  # the client only reads the data
        if kind is None:
            return
        if not self._started and kind not in {"interaction.created", "interaction.completed", "error"}:
            self.broken("created", f"{shown(kind)} before interaction.created")
            self._started = True
        self.judge(EVENTS.get(kind), document)

    def close(self) -> None:
        if not self._ended and not self._failed:
            self.broken("truncated", "the stream ends before interaction.completed")

    def _created(self, document: dict[str, Any]) -> None:
        if self._started:
            self.broken("created", "interaction.created again")
        self._started = True
        self._interaction(document)

    def _interaction(self, document: dict[str, Any]) -> dict[str, Any]:
        interaction = document.get("interaction")
        if not isinstance(interaction, dict):
            self.broken("interaction", f"interaction is {shown(interaction)}")
            return {}
        for name in ("id", "status"):
            self.member(interaction, name, is_text, "interaction")
        self._usage(interaction.get("usage"))
        return interaction

    def _completed(self, document: dict[str, Any]) -> None:
        self._started = self._ended = True
        interaction = self._interaction(document)
        status = interaction.get("status")
        steps = interaction.get("steps")
        if isinstance(steps, list) and len(steps) > self._next_index:
            self.broken("step", f"only {self._next_index} of the {len(steps)} steps have events", "note")
        if is_text(status) and status in RUNNING:
            self.broken("status", f"status is {shown(status)}")
            self._ended = False
        for index in self._open:
            self.broken("step_order", f"step {shown(index)} is open at the end")
        self._open.clear()

    def _status_update(self, document: dict[str, Any]) -> None:
        self._usage(document.get("usage"))

    def _error(self, document: dict[str, Any]) -> None:
        self._failed = True
        error = document.get("error")
        if not is_error(error):
            self.broken("error", f"error is {shown(error)}")

    def _usage(self, usage: object) -> None:
        for name, count in (self.counts(usage) or {}).items():
            if name.endswith("_tokens") and not is_index(count):
                self.broken("usage", f"{name} is {shown(count)}")

    def _step_start(self, document: dict[str, Any]) -> None:
        index = document.get("index")
        if index != self._next_index or not is_index(index):
            self.broken("step_index", f"index is {shown(index)}, not {self._next_index}")
        self._next_index += 1
        step = self.typed(document, "step", "step") or {"type": ""}
        self._open[shown(index)] = _CheckedStep(step["type"])
        if step["type"] == CALL:
            self._call(step)
        for name in ("content", "summary"):
            if step["type"] in KNOWN_STEPS and step.get(name):
                self.broken("step", f"{name} is {shown(step[name])}", "note")

    def _call(self, step: dict[str, Any]) -> None:
        call_id, name, arguments = step.get("id"), step.get("name"), step.get("arguments")
        if not is_filled(call_id) or not is_filled(name):
            self.broken("step", f"id is {shown(call_id)}, name {shown(name)}")
        else:
            self.identify("call_id", "id", call_id)
        if arguments != {}:
            self.broken("step", f"arguments is {shown(arguments)}", "note" if isinstance(arguments, dict) else "error")

    def _step_delta(self, document: dict[str, Any]) -> None:
        step = self._open.get(shown(document.get("index")))
        if step is None:
            self.broken("step_order", f"a delta for step {shown(document.get('index'))}, which is not open")
        elif (delta := self.typed(document, "delta", "delta")) is not None:
            self._delta(step, delta)

    def _delta(self, step: _CheckedStep, delta: dict[str, Any]) -> None:
        kind = delta["type"]
        if kind not in DELTAS:
            return
        member, wanted, belongs = DELTAS[kind]
        value = delta.get(member)
        if step.type in KNOWN_STEPS and step.type != belongs:
            self.broken("delta", f"{kind} in a step of type {shown(step.type)}")
        elif not isinstance(value, wanted):
            self.broken("delta", f"{member} is {shown(value)}")
        elif isinstance(value, str) and kind == "arguments_delta":
            step.input.append(value)

    def _step_stop(self, document: dict[str, Any]) -> None:
        self._usage(document.get("usage"))
        step = self._open.pop(shown(document.get("index")), None)
        if step is None:
            self.broken("step_order", f"a stop of step {shown(document.get('index'))}, which is not open")
        elif (text := step.input.unparsable()) is not None:
            self.broken("input_unparsable", f"the arguments are {shown(text)}", "note")
