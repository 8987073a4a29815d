"""Translate asides of the source dialect to events with the same meaning, before the target dialect's encoder writes them.

Covers compactions (``compactions.py``), Responses items that the client runs (``client_calls.py``), the reason of a refusal in
Claude's stop details, and a blank line between messages that have a phase (commentary, final answer), for dialects whose
clients join all text. Within the same dialect, these asides are written unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from attrs import evolve

from streamkit.conversation.messages import Choice, Part, RedactedReasoning, Refusal, Response, Text, ToolCall
from streamkit.dialects.members.values import has_value
from streamkit.dialects.streams.approvals import ASKED
from streamkit.dialects.streams.client_calls import WAITS, ClientCallReader, waiting_message
from streamkit.dialects.streams.compactions import FORMS, PROGRESS, CompactionReader
from streamkit.dialects.streams.spoken import TRANSCRIPT, code_of, transcript_of
from streamkit.dialects.vocabulary.client_tools import ADDED, DONE, RESPONSES_VENDOR
from streamkit.events import (
    Aside,
    Event,
    Opaque,
    ProviderFailed,
    ReasoningOpaque,
    RefusalDelta,
    ResponseFinished,
    StopReason,
    TextDelta,
    ToolCallFinished,
)
from streamkit.limits import Limits
from streamkit.report import StreamReport

#: The type of the aside with the reason of a Claude refusal, and the label that its explanation gets as a text block. No
#: real block has that label.
STOP_DETAILS: Final = "message_delta.stop_details"
EXPLANATION: Final = -1
#: The type of the aside that begins a message with a phase, and what separates it from the message before it.
PHASE: Final = "message.phase"
APART: Final = "\n\n"
#: Types of asides that may need a translation. Before the first of them, the encoder makes no ``Carrier``.
FIRST: Final = frozenset({ADDED, DONE, PROGRESS, "content_block_start", STOP_DETAILS, TRANSCRIPT, PHASE})
WHOLE: Final[frozenset[StopReason]] = frozenset({"stop", "tool_calls"})  #: stop reasons of complete responses


class Carrier:
    """Translates the asides of one response for a target dialect.

    ``native``: the vendor of the target dialect's asides. ``one_text``: clients of that dialect join all text of a response.
    """

    def __init__(
        self, native: str, limits: Limits, report: StreamReport, *, speaks: bool = True, one_text: bool = False
    ) -> None:
        self._native = native
        self._one_text = one_text
        self._phased: set[int] = set()  # the choices that have a message with a phase
        self._speaks = speaks
        self._code: list[TextDelta] = []  # executed code, which is written only if the response has no other text
        self._room = limits.held_chars
        self._report = report
        self._asked = 0  # the number of asides that ask the client for something
        self._has_items = FORMS.get(native) == "item"  # whether the target dialect has items itself
        self._calls = ClientCallReader(limits, report)
        self._compactions = CompactionReader(native, report)

    def take(self, aside: Aside) -> Sequence[Event]:
        if aside.type == ASKED and aside.vendor != self._native:
            return self._ask(aside)
        if aside.type == STOP_DETAILS and aside.vendor != self._native and (refusal := _explained(aside)):
            return refusal
        if aside.type == PHASE and self._one_text:
            is_first = aside.choice not in self._phased
            self._phased.add(aside.choice)
            return [aside] if is_first else [aside, TextDelta(APART, aside.choice, aside.block)]
        if self._speaks and (words := transcript_of(aside)):
            rest = {name: value for name, value in aside.raw.items() if name != "transcript"}
            rest = {} if aside.type == TRANSCRIPT else rest
            return [TextDelta(words, aside.choice), *([evolve(aside, raw=rest)] if rest else [])]
        if self._speaks and (code := code_of(aside)) and len(code) <= self._room:
            self._room -= len(code)
            self._code.append(TextDelta(code, aside.choice, aside.block))
        found = None if self._has_items or FORMS.get(aside.vendor) != "item" else self._calls.take(aside)
        return self._compactions.take(aside) if found is None else found

    def _ask(self, aside: Aside) -> list[Event]:
        """Return what the client has to answer in another dialect's form: an item of Responses, or a call."""
        item, self._asked = aside.raw["item"], self._asked + 1
        if "type" not in item:
            self._report.lose("client_tool", what=item["name"])
            return self._calls.call_of(item["id"], item["name"], item["arguments"], aside.choice)
        frames = [
            Aside(RESPONSES_VENDOR, "client_tool", kind, {"type": kind, "item": item}, aside.choice, -self._asked)
            for kind in (ADDED, DONE)
        ]
        if self._has_items:
            return [*frames]
        return [event for each in frames for event in self._calls.take(each) or ()]

    def finish(self, *, spoke: bool = False) -> Sequence[Event]:
        """Return the events that waited for the end, and the executed code if the response had no text or call (``spoke``)."""
        self._compactions.finish()
        code, self._code = [] if spoke else self._code, []
        return [*code, *self._calls.finish()]

    def abandon(self) -> None:
        """Report the calls that wait, because the response was interrupted or failed."""
        self._calls.abandon()

    def finished(self, event: ResponseFinished) -> ResponseFinished:
        """Return the end of a choice. If it claims to be complete but a call was cut, change its reason to "length"."""
        if not self._calls.cut or event.reason not in WHOLE:
            return event
        return evolve(event, reason="length", native="incomplete")


def _explained(aside: Aside) -> list[Event]:
    """Return a refusal's explanation as text events, and an aside with its other details; empty if it has no explanation."""
    details = aside.raw if isinstance(aside.raw, Mapping) else {}
    explanation = details.get("explanation")
    if not isinstance(explanation, str) or not explanation:
        return []
    others = {
        name: value for name, value in details.items() if name not in {"type", "explanation"} and has_value(value)
    }
    text = RefusalDelta(explanation, aside.choice, EXPLANATION)
    return [text, evolve(aside, raw=others)] if others else [text]


def carried(
    response: Response, native: str, limits: Limits, report: StreamReport, *, one_text: bool = False
) -> Response:
    """Return a whole response in which the asides are translated for the dialect whose asides are ``native``'s.

    The result is a failure if the response waits for a client's action that the dialect cannot express.
    """
    asides = [aside for choice in response.choices for aside in choice.asides]
    if not asides:
        return response
    if response.dialect != native and (waits := next((aside for aside in asides if aside.type == WAITS), None)):
        report.clean = False
        return evolve(response, clean=False, error=ProviderFailed("server", waiting_message(waits.raw)))
    speaks = response.dialect != native
    carriers = [Carrier(native, limits, report, speaks=speaks, one_text=one_text and speaks) for _ in response.choices]
    return evolve(response, choices=list(map(_carried, response.choices, carriers)))


def _carried(choice: Choice, carrier: Carrier) -> Choice:
    taken: list[Part | Event] = []
    for part in choice.parts:
        taken += carrier.take(part) if isinstance(part, Aside) else [part]
    spoke = any(
        isinstance(part, ToolCall) or (isinstance(part, Text | Refusal) and part.text.strip()) for part in choice.parts
    )
    parts = _parts_of([*taken, *carrier.finish(spoke=spoke)])
    end = carrier.finished(ResponseFinished(choice.stop_reason or "other", choice.native_stop_reason))
    if choice.stop_reason is None or end.reason == choice.stop_reason:
        return evolve(choice, parts=parts)
    return evolve(choice, parts=parts, stop_reason=end.reason, native_stop_reason=end.native)


def _parts_of(taken: Sequence[Part | Event]) -> list[Part]:
    """Return the parts of a choice, in which the events of a carrier are replaced by parts."""
    parts: list[Part] = []
    index = 0  # the index for the next call
    apart = ""  # the blank line before the next text
    for found in taken:
        match found:
            case ToolCall():
                index = max(index, found.index + 1)
                parts.append(found)
            case TextDelta(text=text) if text == APART:
                apart = text
            case Text() if apart:
                parts.append(evolve(found, text=apart + found.text))
                apart = ""
            case TextDelta():
                parts.append(Text(found.text, block=found.block))
            case RefusalDelta():
                parts.append(Refusal(found.text, block=found.block))
            case ReasoningOpaque():
                parts.append(RedactedReasoning(Opaque(found.vendor, found.blob), block=found.block))
            case ToolCallFinished():
                parts.append(ToolCall(index, found.id, found.name, found.arguments, verdict=found.verdict))
                index += 1
            case _ if isinstance(found, Part):
                parts.append(found)
    return parts
