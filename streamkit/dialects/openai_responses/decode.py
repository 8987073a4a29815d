"""Decode Responses events to wire events: everything except the output items (``items.py``).

A completed response has no stop reason: its content shows it. An ``error`` event and ``response.failed`` may both be sent,
and are one failure. Unknown events and fields are asides.

Source: dialects.md §2.1, §2.2, §2.4, §7.6.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import compress, filterfalse
from operator import ne
from typing import Any, ClassVar, Final

from attrs import evolve

from streamkit.dialects.members.values import UNREAD, Members, has_value, kept, others_of, text_of
from streamkit.dialects.openai_responses import wire
from streamkit.dialects.openai_responses.asides import as_it_came
from streamkit.dialects.openai_responses.items import ITEM_FIELDS, ItemReader
from streamkit.dialects.openai_responses.texts import placeless
from streamkit.dialects.openai_responses.tools import custom_names
from streamkit.dialects.streams.alike import Said
from streamkit.dialects.streams.client_calls import WAITS
from streamkit.dialects.streams.running_text import FOLD_EVERY, LONG_CHARS
from streamkit.dialects.vocabulary.client_tools import ADDED, DONE
from streamkit.dialects.vocabulary.error_bodies import error_in
from streamkit.dialects.vocabulary.stop_reasons import meaning
from streamkit.events import (
    Aside,
    ChoiceStarted,
    ReasoningOpaque,
    ResponseStarted,
    StopReason,
    StopReasonSeen,
    TerminatorSeen,
    TextDelta,
)
from streamkit.limits import Limits
from streamkit.report import StreamReport

#: Members of a response that the decoder reads. Others are extras; if they appear or change later, they are asides.
RESPONSE_FIELDS: Final = frozenset({
    "id", "object", "created_at", "status", "error", "incomplete_details", "model", "output", "usage", "status_details",
})  # fmt: skip
#: Names of the events of parts, without the last word. Only vLLM sends the last.
PART_EVENTS: Final = ("response.content_part", "response.reasoning_summary_part", "response.reasoning_part")
#: Final statuses, from best to worst. If an event's name and its response disagree, the worse status counts.
STATUSES: Final = ("completed", "incomplete", "cancelled", "failed")
TERMINALS: Final[Mapping[str, str]] = {f"response.{status}": status for status in STATUSES}
CREATED: Final = "response.created"
#: The last event on servers that follow OpenAI's Realtime API. Only its response shows how the response ended.
OTHER_TERMINAL: Final = "response.done"
#: The final status that another dialect's stop reason means. Any other reason means ``incomplete``.
STATUS_OF: Final[Mapping[StopReason, str]] = {
    **dict.fromkeys(("stop", "stop_sequence", "tool_calls"), "completed"),
    "error": "cancelled",
}
COMMON: Final = (*wire.PLACES, "call_id")
#: The members of a response that are read. The decoder itself keeps all other members.
RESPONSE: Final = kept("output", "error", incomplete_details=Members("reason"))
#: The members of each event that are read.
EVENTS: Final[Mapping[str, Members]] = {
    name: members.also(*COMMON)
    for name, members in {
        **dict.fromkeys((CREATED, "response.queued", "response.in_progress"), Members("response")),
        **dict.fromkeys((*TERMINALS, OTHER_TERMINAL), Members(response=RESPONSE)),
        **dict.fromkeys((ADDED, DONE), Members("item")),
        **{f"{name}.{end}": Members("part") for name in PART_EVENTS[:2] for end in ("added", "done")},
        **{f"{speech.events}.done": Members(speech.name) for speech in wire.SPEECHES.values()},
        "response.output_text.done": Members("text", "logprobs"),
        **{f"{event}.delta": Members("delta") for event in wire.CALL_EVENTS},
        **{f"{event}.done": Members(wire.CALL_INPUTS[kind], "name") for event, kind in wire.CALL_EVENTS.items()},
        "response.output_text.annotation.added": Members("annotation", "annotation_index"),
        "error": Members("error", "code", "message", "param"),
    }.items()
}
PART_FIELDS: Final = frozenset({"type", "text", "refusal", "annotations", "logprobs"})
#: The most members that are remembered. Members beyond this number are emitted each time.
FEW: Final = 1000


class EmittedMembers:
    """Members of items and parts that were already emitted, by the item's id or, without an id, its place.

    Events repeat each item three or four times. A member that an earlier event of the item had is not emitted again.
    """

    def __init__(self) -> None:
        self._reported: set[tuple[Any, ...]] = set()

    def _is_new(self, *key: Any) -> bool:
        if key in self._reported:
            return False
        if len(self._reported) < FEW:
            self._reported.add(key)
        return True

    def of_item(self, item: Any, place: Any, event: str = "") -> list[tuple[str, Any]]:
        """Return the members of an item that were not emitted before; empty if the reader of items keeps them itself."""
        new: list[tuple[str, Any]] = []
        kind = item.get("type") if type(item) is dict else None
        if type(kind) is not str or (fields := ITEM_FIELDS.get(kind)) is None:  # kept whole
            return new
        if not item.keys() <= fields:
            whose = item.get("id") if isinstance(item.get("id"), str) and item["id"] else _number(place)
            kept = bool(event) and (kind not in wire.CALL_INPUTS or event.endswith("added"))
            for name, value in item.items():
                if name not in fields and has_value(value) and self._is_new(whose, name) and not kept:
                    new.append((f"item.{name}", value))
        for group in ("content", "summary") if kind not in wire.CALL_INPUTS else ():
            if type(parts := item.get(group)) is list:
                for number, part in enumerate(parts):
                    if type(part) is dict and not part.keys() <= PART_FIELDS:
                        new += self.of_part(part, place, group, number)
        return new

    def of_part(self, part: Any, place: Any, group: str, number: Any) -> list[tuple[str, Any]]:
        if type(kind := part.get("type")) is not str or kind not in wire.SPEECHES:
            return []
        where = _number(place), group, _number(number)
        return [
            (f"part.{name}", value)
            for name, value in part.items()
            if name not in PART_FIELDS and has_value(value) and self._is_new(*where, name)
        ]

    def of_event(self, document: dict[str, Any]) -> list[tuple[str, Any]]:
        if "item" in document:
            return self.of_item(document["item"], document.get("output_index"), document["type"])
        new: list[tuple[str, Any]] = []
        if (part := document.get("part")) is not None:
            if type(part) is dict and not part.keys() <= PART_FIELDS:
                group = "summary" if "summary" in document["type"] else "content"
                new = self.of_part(part, document.get("output_index"), group, document.get(f"{group}_index"))
        elif type(response := document.get("response")) is dict and type(output := response.get("output")) is list:
            for number, item in enumerate(output):
                new += self.of_item(item, number)
        return new


def _number(place: Any) -> int | None:
    return place if type(place) is int else None


def recognises(event: str, document: Any) -> bool:
    """Return whether a payload may be a Responses event."""
    if not isinstance(document, dict):
        return False
    kind = document.get("type") or event
    if isinstance(kind, str) and kind.startswith("response."):
        return True
    return document.get("type") == "error" and (
        "sequence_number" in document or (event != "error" and "error" in document)
    )


def known_status(word: object) -> str | None:
    """Return the final status of a response, from a word of any dialect; None for other words (``queued``)."""
    if not isinstance(word, str):
        return None
    if word in STATUSES:
        return word
    reason = meaning(word)
    return None if reason is None else STATUS_OF.get(reason, "incomplete")


class ResponsesDecoder(ItemReader):
    """Decodes the events of a stream."""

    error_types = wire.ERROR_TYPES
    _id: str | None = None
    _failures: frozenset[str] = frozenset()  # names of the events that reported a failure
    _extras: Mapping[str, Any] = {}
    _before: Mapping[str, Any] | None = None  # the ``response`` of the last event, unless it had an error

    def __init__(self, limits: Limits, report: StreamReport) -> None:
        super().__init__(limits, report)
        self._terminal = False
        self._emitted = EmittedMembers()

    def decode(self, document: dict[str, Any]) -> None:
        last = self.last_delta
        if (
            last is not None
            and type(text := document.get("delta")) is str
            and document | last.each == last.document
            and type(document["output_index"]) is type(document[last.at]) is int  # True equals 1
        ):  # nearly all events: a delta that differs from the last one only in its text
            if not text:
                return
            if (running := last.text) is not None:  # ``append`` inlined to save a call
                recent = running.recent
                recent.append(text)
                if len(recent) >= FOLD_EVERY or len(text) > LONG_CHARS:
                    running.fold()
            if self._frame is None and last.event is TextDelta:  # passed on without making an event object
                self.next.push_text(text, 0, last.label)
            elif self._frame is None and running is None:
                self.next.push_fragment(last.label, text, 0)
            elif self._frame is None and last.kind is not None:
                self.next.push_reasoning(text, 0, last.label, last.kind)
            else:
                self.out.append(last.event(text, 0, last.label))
            return
        self.last_delta = None
        kind: Any = document.get("type")
        read = self._read_by.get(kind) if type(kind) is str else None
        if read is None:
            if (named := self.named_by_its_line(document, self._read_by)) is not None:
                self.decode(named)
            else:
                self._other(document)
            return
        self.recognised = True
        if self._terminal:
            self.behind_end(partial(read, self), document)
            self.last_delta = None
            return
        before = len(self.out)
        read(self, document)
        if (members := EVENTS.get(kind)) is None:
            return  # the event was kept whole, or by the reader of texts
        for path, value in self._emitted.of_event(document):
            self.out.append(Aside(wire.VENDOR, "unknown_event", f"{UNREAD}{path}", value))
        if (members.inner or not document.keys() <= members.names) and members.unread(document):
            out = map(as_it_came, self.out[before:])
            if not any(type(event) is Aside and event.type == kind for event in out):  # the event was not kept whole
                self.keep_unread(document, members, where=f"{kind}.")

    def noting(self, event: Said | None) -> Callable[[str], object] | None:
        last = self.last_delta
        if last is None:
            return None
        return super().noting(event) if last.text is None else last.text.append

    def _other(self, document: dict[str, Any]) -> None:
        """Read an unknown event, or an error in another envelope (quirks.md 112)."""
        kind = self.string(document.get("type"))
        if self.read_error(document, alone=not kind.startswith("response.")):
            return
        if kind.startswith("response."):
            self.recognised = True
            self.ensure_started()
        else:
            self.foreign_frame()
        self.keep_event(kind or "event", placeless(document))

    def _response(self, document: dict[str, Any]) -> dict[str, Any]:
        """Return the ``response`` of an event. Members of a response that are in the event itself are moved into it."""
        if "response" not in document:
            inner = {name: document.pop(name) for name in [*document] if name not in COMMON}
            if inner:
                self.report.repair("response_bare")
                data = b'{"response":%b}' % self.frame.data  # later searches for argument texts use these bytes
                self.frame = evolve(self.frame, data=data)
            document["response"] = inner
        response = document["response"]
        return response if type(response) is dict else self.fields(response)

    def _begun(self, document: dict[str, Any]) -> None:
        response = self._response(document)
        if self._started:
            if document["type"] == CREATED:
                self.restarted(self._id, response.get("id"))
            if response == self._before:  # the usual case
                return
            self._before = response
            for name, value in self._new_members(response):
                if len(self._extras) < FEW:
                    self._extras = {**self._extras, name: value}
                self.out.append(Aside(wire.VENDOR, "metadata", f"response.{name}", value))
        else:
            self._start(response)
            for place, item in enumerate(self.items(response.get("output"))):  # nearly always empty
                added = {"type": ADDED, "output_index": place, "item": item}
                self.item_added(added, ("response", "output", place))
        if (error := error_in(response)) is not None:
            self._before = None
            self.report.repair("error_shape")
            self.fail(error)

    def _new_members(self, response: dict[str, Any]) -> list[tuple[str, Any]]:
        """Return the unknown members of the response that are new or have changed since the last event."""
        names = [*filterfalse(RESPONSE_FIELDS.__contains__, response)]
        others = compress(names, map(ne, map(response.get, names), map(self._extras.get, names)))
        return [(name, response[name]) for name in others if response[name] or response[name] == 0]

    def ensure_started(self) -> None:
        if not self._started:
            self._start({})

    def _start(self, response: dict[str, Any]) -> None:
        self._started = True
        self._before = response
        self._id = text_of(response.get("id"))
        created = response.get("created_at")
        seconds = int(created) if isinstance(created, int | float) and 0 <= created < 1e11 else None
        self.customs = custom_names(response.get("tools"))
        self._extras = others_of(response, RESPONSE_FIELDS)
        model, extras = text_of(response.get("model")), self._extras or None
        self.out += [ResponseStarted(self._id, model, seconds, wire.VENDOR, extras), ChoiceStarted()]

    def _done(self, document: dict[str, Any]) -> None:
        """Read ``response.done``. After a terminal event, it is a repetition and is ignored."""
        if self._terminal:
            return
        self.report.repair("terminal_renamed")
        response = self._response(document)
        kind = f"response.{known_status(response.get('status')) or 'completed'}"
        details = self.fields(response.get("status_details"))  # the Realtime API's name for ``incomplete_details``
        if details and "incomplete_details" not in response:
            response = {**response, "incomplete_details": {"reason": details.get("reason")}}
        self._ended({"type": kind, "response": response})

    def _ended(self, document: dict[str, Any]) -> None:
        response = self._response(document)
        if not self._started:
            self._start(response)
        if (error := error_in(response)) is None and (error := error_in(document)) is not None:
            self.report.repair("error_shape")  # some gateways write the error next to the response
            document.pop("error", None)
        status = TERMINALS[document["type"]]
        if error is not None or response.get("status") != status:
            status = self._status(status, response, fails=error is not None)
        if not self._terminal:  # after the end, only failures and counts are emitted
            self.whole_output(self.items(response.get("output")), ended=status in {"completed", "incomplete"})
        if self.signature is not None:  # no call followed the signature
            self.out.append(ReasoningOpaque(self.signature.blob, self.signature.vendor, 0, self.label()))
            self.signature = None
        if usage := self.fields(response.get("usage")):
            self.tell_counts(wire.decode_usage(usage))
        for name, value in self._new_members(response):
            self.out.append(Aside(wire.VENDOR, "metadata", f"response.{name}", value))
        if status == "failed":
            self.fail({"message": "the response failed"} if error is None else error, told_by="response")
            return
        self._terminal = True
        if status == "cancelled":
            self.out.append(StopReasonSeen("error", status))
        else:
            self._stopped(status, response)
        self.out.append(TerminatorSeen())

    def _stopped(self, status: str, response: dict[str, Any]) -> None:
        """Emit why a response ended that did not fail. Its status may wrongly be ``completed`` although it was truncated.

        An incomplete response without a known reason gets the reason ``length``.
        """
        if status == "completed":
            waits = bool(self.waiting or self.unknown)
            if self.unknown:
                self.out.append(Aside(wire.VENDOR, "client_tool", WAITS, sorted({*self.unknown.values()})))
            reason: StopReason = "tool_calls" if waits else "stop"
            self.out.append(StopReasonSeen(reason, status, covers_calls=not waits, waits=waits))
        details = response.get("incomplete_details")
        if details is None and status == "completed":
            return
        if type(details) is str and details:
            self.report.repair("object_missing")
            details = {"reason": details}
        if native := text_of(self.fields(details).get("reason")):
            reason = self.stop_reason(native, wire.INCOMPLETE_REASONS)
            if reason == "other" and status == "incomplete":
                reason = "length"
            self.out.append(StopReasonSeen(reason, native))
        elif status == "incomplete":
            word = response.get("status")
            native = word if isinstance(word, str) and word not in STATUSES else ""
            known = meaning(native)
            self.out.append(StopReasonSeen(known or "length", native if known else status))

    def _status(self, of_event: str, response: dict[str, Any], *, fails: bool) -> str:
        word = response.get("status")
        of_response = known_status(word)
        if of_response is not None and of_response != word:
            self.report.repair("stop_reason_foreign")
        if fails:
            of_response = "failed"
        if of_response is None or of_response == of_event:
            return of_event
        self.report.repair("stop_conflict")
        return max(of_event, of_response, key=STATUSES.index)

    def _keep_alive(self, document: dict[str, Any]) -> None:
        """Ignore ``keepalive``, which only says that the model is still working."""

    def _error(self, document: dict[str, Any]) -> None:
        """Read an error: nested, as OpenAI sends it, or flat, as it is documented. Both belong to the dialect."""
        error = document.get("error")
        if error is not None and not isinstance(error, dict):
            self.report.repair("error_shape")
        flat = {name: value for name, value in document.items() if name not in {"type", "sequence_number"}}
        self.fail(error or flat)

    def fail(self, error: Any, document: dict[str, Any] | None = None, told_by: str = "error") -> None:
        """Report a failure, unless an event of another name (``told_by``) already reported it."""
        if not self._failures or told_by in self._failures:
            super().fail(error, document)
        self._failures |= {told_by}

    #: By the type of an event, the method that reads the event.
    _read_by: ClassVar[Mapping[str, Callable[[Any, dict[str, Any]], None]]] = {
        **{f"{speech.events}.delta": partial(ItemReader.delta, speech=speech) for speech in wire.SPEECHES.values()},
        **{f"{speech.events}.done": partial(ItemReader.text_done, speech=speech) for speech in wire.SPEECHES.values()},
        **{f"{name}.delta": partial(ItemReader.call_delta, kind=kind) for name, kind in wire.CALL_EVENTS.items()},
        **{f"{name}.done": partial(ItemReader.call_done, kind=kind) for name, kind in wire.CALL_EVENTS.items()},
        **{f"{name}.added": ItemReader.part_added for name in PART_EVENTS},
        **{f"{name}.done": ItemReader.part_done for name in PART_EVENTS},
        "response.output_text.annotation.added": ItemReader.annotation_added,
        ADDED: ItemReader.item_added,
        DONE: ItemReader.item_done,
        **dict.fromkeys((CREATED, "response.queued", "response.in_progress"), _begun),
        **dict.fromkeys(TERMINALS, _ended),
        OTHER_TERMINAL: _done,
        **{name: partial(ItemReader.carry_event, kind=kind) for name, kind in wire.ASIDES.items()},
        "keepalive": _keep_alive,
        "error": _error,
    }
