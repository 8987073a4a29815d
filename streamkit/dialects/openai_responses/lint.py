"""The grammar of Responses events, as openai-python's client and its accumulating helper need it.

The helper wants ``response.created`` first, each item added before its deltas, each part before its text, one response id,
and a ``response.completed`` whose ``output`` is the whole truth if it is a list. Types of events, items and parts that are
not known here are let through.

Source: dialects.md §0.4, §2.1, §2.2, §7.6.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from streamkit.dialects.linting.explain import (
    COMMON_LOOKS,
    CUT,
    KNOWN,
    NO_RULE,
    READS,
    TORN,
    Look,
    Looks,
    like,
)
from streamkit.dialects.linting.grammar import COMMON_RULES, Severity, is_filled, is_index, is_text, shown
from streamkit.dialects.openai_responses.lint_items import ItemChecker
from streamkit.framing.frame import Frame

RULES: dict[str, str] = {
    **COMMON_RULES,
    "unterminated": "A blank line ends each event, the last too: the client drops one that lacks it (§0.3).",
    "event": "An event has a `type`, and an `event:` line, where there is one, says the same (§0.3).",
    "event_line": "An event has an `event:` line: OpenAI writes it, clients of today read none (§0.3).",
    "sequence": "`sequence_number` counts the events from 0: clients resume by it (§2.1, §2.2).",
    "created": "`response.created` comes first, but for an error, and once: the helper raises (§0.4, §2.2).",
    "response": "A response has its `id`, `model` and `object`, a list `output`, and the status of its event (§2.2).",
    "identity": "The `id` of the response stays the same: the helper raises (§0.4).",
    "usage": "A completed response counts its tokens, or has `usage: null` (§2.2).",
    "output_index": "Items have the `output_index` 0, 1, 2 … in the order they are added (§2.2).",
    "item": "An item is an object with a `type`; a message, a reasoning item and a call have an `id` (§2.2).",
    "item_order": "An item is added before its events, and done after them (§0.4, §2.2).",
    "interleaved": "One item is open at a time: OpenAI sends them so (§2.2).",
    "item_id": "`item_id` is the id of the item at that `output_index` (§2.2).",
    "part_order": "A part is added before its text, at the next free place (§0.4, §2.2).",
    "part": "A part is an object with a `type` that fits its item (§2.1).",
    "delta": "A delta is a string, and fits its item (§2.1).",
    "whole": "What ends a part or a call repeats its deltas, if there were any (§2.1, §2.4).",
    "call": "A call has a `call_id` and a name, not blank, and its input as a string (§2.2).",
    "call_id": "No two calls have the same `call_id`: a result could not name its call (§2.2).",
    "arguments_unparsable": "The arguments of a call are nothing or one JSON object; a model may fail at it (§2.2).",
    "output": "`output` of the last response repeats the items that were done: it wins over them (§0.4, §2.2).",
    "unfinished": "Each item that was added is done before a response is completed: the helper raises (§0.4).",
    "incomplete": "An incomplete response says why in `incomplete_details` (§2.2).",
    "error": "An error is told by a string `message`, and by an `error` object that clients raise (§0.4, §2.1).",
    "after_end": "Nothing follows the last response (§2.2).",
    "after_error": "Nothing follows an error but `response.failed` (§2.2).",
}  # fmt: skip
LOOKS: Looks = {
    **COMMON_LOOKS,
    "truncated": (Look(CUT, 65),),
    "unterminated": (like("last_event_unterminated"), Look(TORN, 106), Look(CUT, 106)),
    "event": (like("error_shape"), like("event_type_missing")),
    "event_line": (),
    "sequence": (),
    "created": (like("response_restarted"),),
    "response": (like("stop_conflict", 116), like("field_invalid"), like("response_bare")),
    "identity": (),
    "usage": (like("field_invalid"),),
    "output_index": (like("index_reused"), like("index_missing"), like("index_invalid"), like("block_reopened")),
    "item": (like("field_invalid"), Look(READS, 80, "item is None")),
    "item_order": (like("block_unopened", 80), like("arguments_late")),
    "interleaved": (Look(READS, 17),),
    "item_id": (like("index_reused", 11), Look(READS, 132)),
    "part_order": (Look(READS, 131),),
    "part": (like("field_invalid"),),
    "delta": (like("block_mismatch"), like("field_invalid")),
    "whole": (like("fragments_missing"), like("whole_differs"), like("arguments_replaced")),
    "call": (like("id_missing"), like("call_nameless"), like("arguments_not_text"), like("field_invalid")),
    "call_id": (like("id_duplicate"),),
    "arguments_unparsable": (Look(KNOWN, 50),),
    "output": (like("block_unopened", 131), Look(READS, 131)),
    "unfinished": (like("block_unclosed", 131),),
    "incomplete": (),
    "error": (like("error_shape"), Look(READS, 112)),
    "after_end": (like("foreign_terminator"), like("after_end")),
    "after_error": (like("after_error"), like("foreign_terminator")),
    NO_RULE: (),
}  # fmt: skip
#: The status that the response of each event has.
STATUSES: Mapping[str, str] = {
    "response.created": "in_progress",
    "response.in_progress": "in_progress",
    "response.queued": "queued",
    "response.completed": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
}


class ResponsesLinter(ItemChecker):
    rules: ClassVar = RULES
    looks: ClassVar = LOOKS

    def __init__(self) -> None:
        super().__init__()
        self._next_number: int | None = 0
        self._id: object = None
        self._started = False
        self._created = False
        self._ended = False
        self._failed = False
        self._handlers: Mapping[str, Callable[[dict[str, Any]], None]] = {
            "response.created": self._begin,
            "response.completed": self._terminal,
            "response.incomplete": self._terminal,
            "response.failed": self._terminal,
            "error": self._error,
            **self.item_handlers,
        }

    def take(self, frame: Frame) -> None:
        if not frame.terminated:
            self.broken("unterminated", "no blank line after the last event")
        done = frame.data == b"[DONE]"  # of the other dialect: the client ends there
        if self._ended:
            self.broken("after_end", f"after the last response: {shown(frame.text)}", "note" if done else "error")
        elif self._failed and done:
            self.broken("after_error", "after the error: [DONE]", "note")
        else:
            super().take(frame)

    def check(self, document: dict[str, Any]) -> None:
        kind = document.get("type")
        if not is_filled(kind):
            self.broken("event", f"type is {shown(kind)}")
            self._failed = self._failed or "error" in document
            return
        if self.frame.event == "message":
            self.broken("event_line", f"no event line beside {shown(kind)}", "note")
        elif self.frame.event != kind:
            self.broken("event", f"the event line says {shown(self.frame.event)}, the data {shown(kind)}")
        if self._failed and kind != "response.failed":
            self.broken("after_error", f"after the error: {shown(kind)}")
            return
        self._sequence(document.get("sequence_number"))
        if not self._started and kind not in {"response.created", "error"} and not self._failed:
            self.broken("created", f"{shown(kind)} before response.created")
        self._started = self._started or kind != "error"
        if kind in STATUSES:
            self._response(kind, document.get("response"))
        handler = self._handlers.get(kind)
        if handler is not None:
            handler(document)

    def close(self) -> None:
        if not self._ended and not self._failed:
            self.broken("truncated", "the stream ends before the last response")

    def _sequence(self, number: object) -> None:
        if not is_index(number) or number != self._next_number:
            self.broken("sequence", f"sequence_number is {shown(number)}, not {self._next_number}", "note")
        self._next_number = number + 1 if isinstance(number, int) and is_index(number) else None

    def _begin(self, _document: dict[str, Any]) -> None:
        if self._created:
            self.broken("created", "response.created again")
        self._created = True

    def _response(self, kind: str, response: object) -> None:
        if not isinstance(response, dict):
            self.broken("response", f"response is {shown(response)}")
            return
        found = response.get("id"), response.get("model"), response.get("object")
        if not is_filled(found[0]) or not is_text(found[1]) or found[2] != "response":
            self.broken("response", f"id is {shown(found[0])}, model {shown(found[1])}, object {shown(found[2])}")
        if response.get("status") != STATUSES[kind]:
            self.broken("response", f"the status of {kind} is {shown(response.get('status'))}")
        if not isinstance(response.get("output"), list):
            severity: Severity = "note" if response.get("output") is None else "error"
            self.broken("response", f"output is {shown(response.get('output'))}", severity)
        if self._id is None:
            self._id = found[0]
        elif self._id != found[0]:
            self.broken("identity", f"id is {shown(found[0])}, not {shown(self._id)}")

    def _terminal(self, document: dict[str, Any]) -> None:
        self._ended = True
        kind, response = document["type"], document.get("response")
        if not isinstance(response, dict):
            return
        if kind == "response.failed":
            error = response.get("error")
            if not isinstance(error, dict) or not is_text(error.get("message")):
                self.broken("error", f"error of the response is {shown(error)}")
            return
        self._usage(response.get("usage"))
        if kind == "response.incomplete":
            details = response.get("incomplete_details")
            if not isinstance(details, dict) or not is_filled(details.get("reason")):
                severity: Severity = "note" if details is None else "error"  # OpenAI's schema has null
                self.broken("incomplete", f"incomplete_details is {shown(details)}", severity)
        self.check_output(response.get("output"), completed=kind == "response.completed")

    def _usage(self, value: object) -> None:
        usage = self.counts(value)
        if usage is None:
            return
        for name in ("input_tokens", "output_tokens", "total_tokens"):
            if not is_index(usage.get(name)):
                self.broken("usage", f"{name} is {shown(usage.get(name))}")

    def _error(self, document: dict[str, Any]) -> None:
        self._failed = True
        error = document.get("error")
        if error is None and is_text(document.get("message")):
            self.broken("error", "flat alone: openai-python hands it on and raises nothing", "note")
        elif not isinstance(error, dict) or not is_text(error.get("message")):
            self.broken("error", f"error is {shown(error)}")
