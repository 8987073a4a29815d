"""Check Responses events against what openai-python's client and its accumulating helper need.

The helper needs ``response.created`` first, each item added before its deltas, each part before its text, one response id,
and a ``response.completed`` whose ``output``, if it is a list, is complete. Unknown types of events, items and parts are
accepted.

Source: dialects.md §0.4, §2.1, §2.2, §7.6.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

from attrs import define, field

from streamkit.dialects.linting import (
    COMMON_HINTS,
    COMMON_RULES,
    CUT,
    INPUT_CHARS,
    KNOWN,
    NO_RULE,
    READS,
    TORN,
    CallInput,
    GrammarChecker,
    Hint,
    Hints,
    Severity,
    is_filled,
    is_index,
    is_object,
    is_text,
    like,
    shown,
)
from streamkit.dialects.openai_responses.wire import CALL_EVENTS, CALL_INPUTS, OWN_ITEMS, SPEECHES
from streamkit.framing.frame import Frame

RULES: dict[str, str] = {
    **COMMON_RULES,
    "unterminated": (
        "A blank line ends each event, including the last: "
        "the client drops an event without this line (§0.3)."
    ),
    "event": "Each event has a `type`. If the event has an `event:` line, this line has the same value (§0.3).",
    "event_line": (
        "Each event has an `event:` line, as in OpenAI's own streams; current clients ignore this line "
        "(§0.3)."
    ),
    "sequence": "`sequence_number` counts the events from 0: clients use the number to resume a stream (§2.1, §2.2).",
    "created": (
        "`response.created` is sent once, and only an error may precede it: "
        "otherwise openai-python raises an error (§0.4, §2.2)."
    ),
    "response": (
        'A `response` has an `id`, a `model`, `"object": '
        '"response"`, a list `output`, and the status that fits its event (§2.2).'
    ),
    "identity": "The `id` of the response does not change: otherwise openai-python raises an error (§0.4).",
    "usage": "A completed response has token counts, or `usage: null` (§2.2).",
    "output_index": "Items have the `output_index` 0, 1, 2 … in the order in which they are added (§2.2).",
    "item": "Each item is an object with a `type`. Messages, reasoning items and calls also have an `id` (§2.2).",
    "item_order": (
        "The first event of an item says that the item is added. "
        "The last event says that the item is done (§0.4, §2.2)."
    ),
    "interleaved": "Only one item is open at a time, as in OpenAI's own streams (§2.2).",
    "item_id": "The `item_id` of an event is the id of the item at the event's `output_index` (§2.2).",
    "part_order": "A part is added at the next free index, before its text is sent (§0.4, §2.2).",
    "part": "Each part is an object, and its `type` fits the type of its item (§2.1).",
    "delta": "Each delta is a string, and its event fits the type of its item (§2.1).",
    "whole": "If a part or a call has deltas, its `done` events repeat the whole text of the deltas (§2.1, §2.4).",
    "call": "Each call has a `call_id` and a name that are not blank. Its input is a string (§2.2).",
    "call_id": "No two calls have the same `call_id`: otherwise a tool result could belong to either call (§2.2).",
    "arguments_unparsable": (
        "The arguments of a call are empty or one JSON object. "
        "Other text may be the model's mistake (§2.2)."
    ),
    "output": (
        "The `output` of the last response has all finished items, because clients read the items there "
        "(§0.4, §2.2)."
    ),
    "unfinished": "Each item is done before the response is completed: otherwise openai-python raises an error (§0.4).",
    "incomplete": "An incomplete response has the reason in `incomplete_details` (§2.2).",
    "error": (
        "An error has a string `message` and an object `error`: "
        "clients raise the error only if `error` is present (§0.4, §2.1)."
    ),
    "after_end": "Nothing follows the event that ends the response (§2.2).",
    "after_error": "Only `response.failed` may follow an error (§2.2).",
}  # fmt: skip
HINTS: Hints = {
    **COMMON_HINTS,
    "truncated": (Hint(CUT, 65),),
    "unterminated": (like("last_event_unterminated"), Hint(TORN, 106), Hint(CUT, 106)),
    "event": (like("error_shape"), like("event_type_missing")),
    **dict.fromkeys(("event_line", "sequence", "identity", "incomplete", NO_RULE), ()),
    "created": (like("response_restarted"),),
    "response": (like("stop_conflict", 116), like("field_invalid"), like("response_bare")),
    **dict.fromkeys(("usage", "part"), (like("field_invalid"),)),
    "output_index": (like("index_reused"), like("index_missing"), like("index_invalid"), like("block_reopened")),
    "item": (like("field_invalid"), Hint(READS, 80, "item is None")),
    "item_order": (like("block_unopened", 80), like("arguments_late")),
    "interleaved": (Hint(READS, 17),),
    "item_id": (like("index_reused", 11), Hint(READS, 132)),
    "part_order": (Hint(READS, 131),),
    "delta": (like("block_mismatch"), like("field_invalid")),
    "whole": (like("fragments_missing"), like("whole_differs"), like("arguments_replaced")),
    "call": (like("id_missing"), like("call_nameless"), like("arguments_not_text"), like("field_invalid")),
    "call_id": (like("id_duplicate"),),
    "arguments_unparsable": (Hint(KNOWN, 50),),
    "output": (like("block_unopened", 131), Hint(READS, 131)),
    "unfinished": (like("block_unclosed", 131),),
    "error": (like("error_shape"), Hint(READS, 112)),
    "after_end": (like("foreign_terminator"), like("after_end")),
    "after_error": (like("after_error"), like("foreign_terminator")),
}  # fmt: skip
#: The ``status`` that the response in each event must have.
STATUSES: Mapping[str, str] = {
    "response.created": "in_progress",
    "response.in_progress": "in_progress",
    "response.queued": "queued",
    "response.completed": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
}
SHOWN = 60  #: for messages: the most fragments that are joined, and the most characters of each
#: The names of the delta and done events, without the last word, and the type of part or call to which each belongs.
EVENTS: Mapping[str, str] = {**{speech.events: kind for kind, speech in SPEECHES.items()}, **CALL_EVENTS}


@define
class _Text(CallInput):
    """The fragments of a part's text or of a call's input."""

    kind: str = field(kw_only=True)

    def differs(self, whole: str) -> bool:
        """Return whether a whole text differs from the joined deltas. Not checked if there were none or they are too long."""
        if not 0 < self.chars <= INPUT_CHARS:
            return False
        return self.chars != len(whole) or "".join(self.fragments) != whole


@define
class _Item:
    kind: str
    id: object
    done: bool = False
    parts: dict[tuple[str, int], _Text] = field(factory=dict)
    counts: Counter[str] = field(factory=Counter)  #: numbers of parts, by the member that numbers them
    text: _Text | None = None  #: the input of a call


class ResponsesLinter(GrammarChecker):
    """Checks one stream."""

    rules: ClassVar = RULES
    hints: ClassVar = HINTS

    def __init__(self) -> None:
        super().__init__()
        self._items: dict[int, _Item] = {}
        self._open: int | None = None  # the index of the last added item, unless it is done
        self._next_number: int | None = 0
        self._id: object = None
        self._started = False
        self._created = False
        self._ended = False
        self._failed = False
        self._handlers: Mapping[str, Callable[[dict[str, Any]], None]] = {
            **dict.fromkeys(("response.completed", "response.incomplete", "response.failed"), self._terminal),
            "error": self._error,
            "response.output_item.added": self._item_added,
            "response.output_item.done": self._item_done,
            "response.content_part.added": self._part_added,
            "response.reasoning_summary_part.added": self._part_added,
            "response.content_part.done": self._part_done,
            "response.reasoning_summary_part.done": self._part_done,
            **{f"{event}.delta": partial(self._delta, kind=kind) for event, kind in EVENTS.items()},
            **{f"{event}.done": partial(self._done, kind=kind) for event, kind in EVENTS.items()},
        }

    def _item_added(self, document: dict[str, Any]) -> None:
        index, item = document.get("output_index"), self.typed(document, "item", "item") or {"type": ""}
        kind, item_id = item["type"], item.get("id")
        if kind in OWN_ITEMS and not is_filled(item_id):
            self.broken("item", f"the id of a {kind} is {shown(item_id)}")
        if type(index) is not int or not is_index(index) or index in self._items:
            self.broken("output_index", f"output_index is {shown(index)}, not {len(self._items)}")
            index = -1 - len(self._items)
        elif index != len(self._items):
            self.broken("output_index", f"output_index is {index}, not {len(self._items)}", "note")
        if self._open is not None:
            self.broken("interleaved", f"item {index} is added while item {self._open} is open", "note")
        self._items[index] = _Item(kind, item_id, text=_Text(kind=kind) if kind in CALL_INPUTS else None)
        self._open = index
        if kind in CALL_INPUTS:
            self._call(item, first=True)

    def _call(self, item: dict[str, Any], *, first: bool) -> None:
        call_id, name, text = item.get("call_id"), item.get("name"), item.get(CALL_INPUTS[item["type"]])
        if not is_filled(call_id) or not is_filled(name) or not (is_text(text) or (first and text is None)):
            self.broken("call", f"call_id is {shown(call_id)}, name {shown(name)}, input {shown(text)}")
        elif first and call_id in self._call_ids:
            self.broken("call_id", f"another call has the same call_id: {shown(call_id)}")
        if is_filled(call_id):
            self._call_ids.add(call_id)

    def _find(self, document: dict[str, Any], item_id: object) -> _Item | None:
        """Return the open item that an event names. If there is no such item, report a violation and return None."""
        index = document.get("output_index")
        item = self._items.get(index) if type(index) is int else None
        if item is None or item.done:
            self.broken("item_order", f"{document['type']} for item {shown(index)}, which is not open")
            return None
        if item.kind in OWN_ITEMS and item_id != item.id:
            self.broken("item_id", f"item_id is {shown(item_id)}, not {shown(item.id)}")
        return item

    def _item_done(self, document: dict[str, Any]) -> None:
        found = self.typed(document, "item", "item") or {"type": ""}
        item = self._find(document, found.get("id"))
        if item is None:
            return
        item.done = True
        if self._open == document["output_index"]:
            self._open = None
        if found["type"] and found["type"] != item.kind:
            self.broken("item", f"the type is {shown(found['type'])}, not {shown(item.kind)}")
        elif item.text is not None and found["type"]:
            self._call(found, first=False)
            self._whole(item.text, found.get(CALL_INPUTS[item.kind]))
            text = found.get("arguments")
            is_whole = item.kind == "function_call" and found.get("status") != "incomplete"
            if is_whole and is_filled(text) and not is_object(text):
                self.broken("arguments_unparsable", f"the arguments are {shown(text)}", "note")
        else:
            for name in ("content", "summary"):
                parts = found.get(name)
                if not isinstance(parts, list | None):
                    self.broken("part", f"{name} of the item is {shown(parts)}")
                for place, part in enumerate(parts if isinstance(parts, list) else ()):
                    speech = SPEECHES.get(str(part.get("type"))) if isinstance(part, dict) else None
                    if speech is not None:
                        self._whole(item.parts.get((speech.place, place)), part.get(speech.name))

    def check_output(self, output: object, *, completed: bool) -> None:
        ids = [item.id for item in self._items.values() if item.done]
        if completed and len(ids) < len(self._items):
            self.broken("unfinished", f"{len(self._items) - len(ids)} items are not done")
        if isinstance(output, list):
            repeated = [item.get("id") if isinstance(item, dict) else item for item in output]
            if sorted(map(repr, repeated)) != sorted(map(repr, ids)):
                self.broken("output", f"output has the ids {shown(repeated)}, but the finished items have {shown(ids)}")

    def _part_added(self, document: dict[str, Any]) -> None:
        item = self._find(document, document.get("item_id"))
        part = None if item is None else self.typed(document, "part", "part")
        if item is None or part is None:
            return
        speech = SPEECHES.get(part["type"])
        counted = "content_index" if speech is None else speech.place
        place = document.get(counted)
        if speech is not None and speech.item != item.kind:
            self.broken("part", f"{shown(part['type'])} in an item of type {shown(item.kind)}")
        elif place != item.counts[counted]:
            self.broken("part_order", f"{counted} is {shown(place)}")
        if type(place) is int:
            item.counts[counted] += (counted, place) not in item.parts
            text = item.parts[counted, place] = _Text(kind=part["type"])
            if speech is not None and is_text(part.get(speech.name)):
                text.append(part[speech.name])

    def _text(self, document: dict[str, Any], kind: str) -> _Text | None:
        """Return the open part or call that an event names. If there is no such part, report a violation and return None."""
        item = self._find(document, document.get("item_id"))
        if item is None:
            return None
        if kind in CALL_INPUTS:
            if item.kind != kind:
                self.broken("delta", f"{document['type']} in an item of type {shown(item.kind)}")
            return item.text
        speech = SPEECHES[kind]
        place = document.get(speech.place)
        text = item.parts.get((speech.place, place)) if type(place) is int else None
        if speech.item != item.kind:
            self.broken("delta", f"{document['type']} in an item of type {shown(item.kind)}")
        elif text is None:
            self.broken("part_order", f"{document['type']} for part {shown(place)}, which was not added")
        elif text.kind != kind:
            self.broken("delta", f"{document['type']} in a part of type {shown(text.kind)}")
        return text

    def _delta(self, document: dict[str, Any], kind: str) -> None:
        text = self._text(document, kind)
        if self.member(document, "delta", is_text, "delta") and text is not None:
            text.append(document["delta"])

    def _done(self, document: dict[str, Any], kind: str) -> None:
        member = CALL_INPUTS[kind] if kind in CALL_INPUTS else SPEECHES[kind].name
        self._whole(self._text(document, kind), document.get(member))

    def _part_done(self, document: dict[str, Any]) -> None:
        part = self.typed(document, "part", "part")
        if part is not None and part["type"] in SPEECHES:
            self._whole(self._text(document, part["type"]), part.get(SPEECHES[part["type"]].name))

    def _whole(self, text: _Text | None, whole: object) -> None:
        if text is None:
            return
        if not is_text(whole):
            self.broken("whole", f"the whole text is {shown(whole)}")
        elif text.differs(whole):
            beginning = "".join([fragment[:SHOWN] for fragment in text.fragments[:SHOWN]])
            self.broken("whole", f"the whole text is {shown(whole)}, but the deltas have {shown(beginning)}")

    def take(self, frame: Frame) -> None:
        if not frame.terminated:
            self.broken("unterminated", "no blank line after the last event")
        done = frame.data == b"[DONE]"  # another dialect's terminator, at which the client stops reading
        if self._ended:
            self.broken(
                "after_end", f"an event after the last response: {shown(frame.text)}", "note" if done else "error"
            )
        elif self._failed and done:
            self.broken("after_error", "an event after the error: [DONE]", "note")
        else:
            super().take(frame)

    def check(self, document: dict[str, Any]) -> None:
        kind = document.get("type")
        if not is_filled(kind):
            self.broken("event", f"type is {shown(kind)}")
            self._failed = self._failed or "error" in document
            return
        if self.frame.event == "message":
            self.broken("event_line", f"the event {shown(kind)} has no event: line", "note")
        elif self.frame.event != kind:
            self.broken("event", f"the event: line has {shown(self.frame.event)}, but the type is {shown(kind)}")
        if self._failed and kind != "response.failed":
            self.broken("after_error", f"an event after the error: {shown(kind)}")
            return
        number = document.get("sequence_number")
        if not is_index(number) or number != self._next_number:
            self.broken("sequence", f"sequence_number is {shown(number)}, not {self._next_number}", "note")
        self._next_number = number + 1 if isinstance(number, int) and is_index(number) else None
        if not self._started and kind not in {"response.created", "error"} and not self._failed:
            self.broken("created", f"{shown(kind)} before response.created")
        self._started = self._started or kind != "error"
        if kind in STATUSES:
            self._response(kind, document.get("response"))
        if kind == "response.created":
            if self._created:
                self.broken("created", "a second response.created")
            self._created = True
        if kind in self._handlers:
            self._handlers[kind](document)

    def close(self) -> None:
        if not self._ended and not self._failed:
            self.broken("truncated", "the stream ends before the last response")

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
        self.counts(response.get("usage"), "input_tokens", "output_tokens", "total_tokens")
        if kind == "response.incomplete":
            details = response.get("incomplete_details")
            if not isinstance(details, dict) or not is_filled(details.get("reason")):
                severity: Severity = "note" if details is None else "error"  # OpenAI's schema allows null
                self.broken("incomplete", f"incomplete_details is {shown(details)}", severity)
        self.check_output(response.get("output"), completed=kind == "response.completed")

    def _error(self, document: dict[str, Any]) -> None:
        self._failed = True
        error = document.get("error")
        if error is None and is_text(document.get("message")):
            self.broken("error", "there is no member error: openai-python emits the event and does not raise", "note")
        elif not isinstance(error, dict) or not is_text(error.get("message")):
            self.broken("error", f"error is {shown(error)}")
