"""Decode AG-UI events to wire events.

The decoder finds messages and calls by their ids. If a message or call has ended and starts again, it continues, as it does
for clients.

A call that gets a result within the run was run by the agent, and is not for the client. So a call, and every event after it,
is held until the result or the end of the run.

RUN_FINISHED completes the stream, unless it says that the run was cancelled. If a run ends with RUN_ERROR, clients run its
calls without a result even if they are incomplete, so the decoder counts such a call as a repair.

Three members are ignored: the time of an event (``timestamp``), the framework's original event (``rawEvent``), and the
request that RUN_STARTED may repeat (``input``).

Source: ui-protocols.md §2.2, §2.3, §2.5, §2.6, §7.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, Literal, TypeAlias

from attrs import define
from orjson import dumps

from streamkit.dialects.ag_ui import wire
from streamkit.dialects.members.fields import without_none
from streamkit.dialects.members.values import Members, has_value, text_of
from streamkit.dialects.streams.approvals import Approval, asked, is_approval
from streamkit.dialects.streams.client_calls import WAITS
from streamkit.dialects.streams.waiting_calls import WaitingCall, WaitingCallDecoder
from streamkit.dialects.vocabulary.sealed_reasoning import Sealed, unseal, unsealed
from streamkit.errors import TooManyBlocks, TooManyToolCalls
from streamkit.events import (
    Aside,
    ReasoningDelta,
    ReasoningOpaque,
    ReasoningSignature,
    ResponseStarted,
    StopReasonSeen,
    TerminatorSeen,
    TextDelta,
    ToolCallDelta,
    ToolCallEnded,
)
from streamkit.limits import Limits
from streamkit.report import StreamReport
from streamkit.tool_calls.check import check_arguments

STARTED_FIELDS: Final = wire.PASSED_OVER | {"runId", "input"}  # members of RUN_STARTED that are no extras
FAILED: Final = frozenset({"error", "failed", "failure"})  # outcomes of agents that do not send RUN_ERROR
#: Members of TOOL_CALL_RESULT that the decoder reads or ignores if this result says that the call was not run.
RESULT: Final = Members(*wire.PASSED_OVER, "messageId", "toolCallId", "content", "role")
THINKING: Final = "THINKING"  # how some events of version 0 begin, whose messages have no ids
#: A message or call can be sent as chunks, without an event for its end. Any other event ends it, except these.
PASSING_CHUNKS: Final = frozenset(
    {"RAW", "ACTIVITY_SNAPSHOT", "ACTIVITY_DELTA", "REASONING_ENCRYPTED_VALUE", "SUBAGENT_STARTED", "RUN_ERROR"}
)
Key: TypeAlias = tuple[bool, str]  # whether a message is text (not reasoning), and its id


def recognises(_event: str, document: Any) -> bool:
    """Return whether a payload may be an AG-UI event."""
    return isinstance(document, dict) and isinstance(kind := document.get("type"), str) and kind in wire.EVENTS


@define
class Message:
    """A message of the run."""

    is_reasoning: bool
    block: int
    is_open: bool = True
    #: Whether the model wrote the message. Events of any other message are kept whole as asides.
    is_from_model: bool = True


@define
class ReadCall(WaitingCall):
    """A call that is held until its result or the end of the run arrives."""

    parent: str | None
    is_open: bool = True
    encrypted: str = ""
    is_refused: bool = False  # whether its result says that the call was not run
    interrupt: dict[str, Any] | None = None  # the interrupt that asks whether the agent may run the call


class AgUiDecoder(WaitingCallDecoder[ReadCall]):
    """Decodes the events of a stream."""

    dialect = wire.VENDOR
    vendor = wire.VENDOR
    idle = frozenset({"timestamp"})
    error_types = wire.ERROR_CODES
    _run: str | None = None
    _blocks = 0

    def __init__(self, limits: Limits, report: StreamReport) -> None:
        super().__init__(limits, report)
        self._over = False
        self._chunked: Message | ReadCall | None = None  # that of the latest chunks, whose end has no event
        self._messages: dict[Key, Message] = {}
        self._calls: dict[str, ReadCall] = {}
        self._latest: dict[str, str] = {}  # for the first word of an event: the id of the latest message or call

    @property
    def begun(self) -> Collection[str]:
        return [call.id for call in self._calls.values() if call.answered is None and not call.is_refused]

    def decode(self, document: dict[str, Any]) -> None:
        kind = self.string(document.get("type"))
        if kind not in wire.EVENTS:
            self.unknown_frame(kind or "event", document)
            return
        self.recognised = True
        event = wire.EVENTS[kind]
        reader = getattr(self, event.method)
        if document["type"] is not kind:  # a faulty server wrote the type as an object around the text
            document = {**document, "type": kind}
        if self._over:
            self.behind_end(reader, document)
            return
        if self._chunked is not None and kind not in PASSING_CHUNKS:
            self._end_chunks(self._chunked, document, kind)
        before = self.before_frame()
        reader(document)
        self.keep_unread(document, event.members, where=f"{kind}.")
        self.after_frame(before)

    def _run_started(self, document: dict[str, Any]) -> None:
        run = text_of(document.get("runId"))
        if self._started:
            self.restarted(self._run, run)
            return
        self._run = run
        others = {name: value for name, value in document.items() if name not in STARTED_FIELDS and has_value(value)}
        self.start(ResponseStarted(run, vendor=wire.VENDOR, extras=others or None))

    def _span(self, _document: dict[str, Any]) -> None:
        self.ensure_started()

    def _kept(self, document: dict[str, Any]) -> None:
        self.ensure_started()
        self.out.append(Aside(wire.VENDOR, "metadata", document["type"], document))

    def _id(self, document: dict[str, Any], name: str) -> str:
        """Return the id of an event's message or call. If the event has no id, return that of the latest message or call."""
        kind, _, step = document["type"].partition("_")
        if kind == THINKING:
            if step == "TEXT_MESSAGE_START":
                self._latest[kind] = f"{THINKING}{len(self._messages)}"
            return self._latest.get(kind, THINKING)
        found = text_of(document.get(name))
        if found is None:
            if self._chunked is None or kind not in self._latest or not step.endswith("CHUNK"):
                self.report.repair("index_missing")  # only chunks after the first may leave it out
            found = self._latest.get(kind, "")
        self._latest[kind] = found
        return found

    def _key(self, document: dict[str, Any]) -> Key:
        """Return the key of an event's message. Reasoning and text may have one id, so the event's type is part of the key."""
        return document["type"].startswith("TEXT_"), self._id(document, "messageId")

    def _message_start(self, document: dict[str, Any]) -> None:
        key = self._key(document)
        message = self._messages.get(key)
        if message is None:
            message = self._begin(key, document)
        elif message.is_open:
            self.report.repair("block_reopened")
        elif message.block != self._blocks - 1:  # another message came between, so the rest needs a new block
            message.block = self._new_block()
        message.is_open = True
        if not message.is_from_model:
            self._kept(document)

    def _begin(self, key: Key, document: dict[str, Any]) -> Message:
        self.ensure_started()
        is_text = key[0]
        message = self._messages[key] = Message(not is_text, self._new_block())
        message.is_from_model = not is_text or self.string(document.get("role")) in {"", "assistant"}
        return message

    def _new_block(self) -> int:
        if self._blocks >= self.limits.content_blocks:
            raise TooManyBlocks(self.limits.content_blocks, offset=self.frame.offset)
        self._blocks += 1
        return self._blocks - 1

    def _message_content(self, document: dict[str, Any]) -> None:
        key = self._key(document)
        message = self._messages.get(key)
        if message is None or not message.is_open:
            self.report.repair("block_unopened")
            message = message or self._begin(key, document)
            message.is_open = True
        self._say(message, document)

    def _say(self, message: Message, document: dict[str, Any]) -> None:
        if not message.is_from_model:
            self._kept(document)
        elif text := self.string(document.get("delta")):
            make = ReasoningDelta if message.is_reasoning else TextDelta
            self.out.append(make(text, 0, message.block))

    def _message_end(self, document: dict[str, Any]) -> None:
        message = self._messages.get(self._key(document))
        if message is None or not message.is_open:
            self.report.repair("block_unopened")
            return
        message.is_open = False
        if not message.is_from_model:
            self._kept(document)

    def _message_chunk(self, document: dict[str, Any]) -> None:
        """Read a piece of a message without start and end. The first piece has its id."""
        key = self._key(document)
        message = self._chunked = self._messages.get(key) or self._begin(key, document)
        message.is_open = True
        self._say(message, document)

    def _end_chunks(self, chunked: Message | ReadCall, document: dict[str, Any], kind: str) -> None:
        """End the message or call that was sent as chunks, unless this event is its next chunk."""
        name = "toolCallId" if kind == "TOOL_CALL_CHUNK" else "messageId"
        word = kind.partition("_")[0]
        named = text_of(document.get(name)) or self._latest.get(word, "")
        meant = self._calls.get(named) if word == "TOOL" else self._messages.get((word == "TEXT", named))
        if not kind.endswith("_CHUNK") or meant is not chunked:
            chunked.is_open = False
            self._chunked = None

    def _encrypted_value(self, document: dict[str, Any]) -> None:
        entity, value = self.string(document.get("entityId")), self.string(document.get("encryptedValue"))
        is_call = document.get("subtype") == "tool-call"
        if is_call and entity in self._calls:
            self._calls[entity].encrypted = value
        elif not is_call and (message := self._messages.get((False, entity)) or self._messages.get((True, entity))):
            self._sign(message, value)
        else:  # the value belongs to a message of the history, or to none
            self._kept(document)

    def _sign(self, message: Message, value: str) -> None:
        sealed = unseal(value) or Sealed("reasoning" if message.is_reasoning else "text", wire.VENDOR, value)
        if sealed.kind == "opaque":
            self.out.append(ReasoningOpaque(sealed.blob, sealed.vendor, 0, message.block))
        else:
            on: Literal["reasoning", "text"] = "reasoning" if sealed.kind == "reasoning" else "text"
            self.out.append(ReasoningSignature(sealed.blob, sealed.vendor, 0, message.block, on))

    def _call_start(self, document: dict[str, Any]) -> None:
        call_id = self._id(document, "toolCallId")
        call = self._calls.get(call_id)
        if call is not None and call.is_open:
            self.report.repair("block_reopened")
        call = call or self._begin_call(call_id, document)
        call.is_open = call.answered is None

    def _begin_call(self, call_id: str, document: dict[str, Any]) -> ReadCall:
        self.ensure_started()
        # not ``limits.tool_calls``, since calls with results do not count there
        if len(self._calls) >= self.limits.content_blocks:
            raise TooManyToolCalls(self.limits.tool_calls, offset=self.frame.offset)
        name, parent = self.string(document.get("toolCallName")), text_of(document.get("parentMessageId"))
        call = self._calls[call_id] = ReadCall(call_id, name, parent)
        self.begin_waiting(call)
        return call

    def _call_arguments(self, document: dict[str, Any]) -> None:
        call_id = self._id(document, "toolCallId")
        call = self._calls.get(call_id)
        if call is None or not (call.is_open or call.answered is not None):
            self.report.repair("block_unopened")
            call = call or self._begin_call(call_id, document)
            call.is_open = True
        self.append_arguments(call, self._fragment(document), late=call.answered is not None)

    def _fragment(self, document: dict[str, Any]) -> str:
        delta = document.get("delta")
        if type(delta) not in {dict, list}:
            return self.string(delta)
        self.report.repair("arguments_not_text")
        return self.text_at("delta")

    def _call_end(self, document: dict[str, Any]) -> None:
        call_id = self._id(document, "toolCallId")
        call = self._calls.get(call_id)
        if call is not None and call.is_open:
            call.is_open = False
        elif call is None or call.answered is None:
            self.report.repair("block_unopened")

    def _call_chunk(self, document: dict[str, Any]) -> None:
        """Read a piece of a call without start and end. The first piece has its id."""
        call_id = self._id(document, "toolCallId")
        call = self._chunked = self._calls.get(call_id) or self._begin_call(call_id, document)
        call.is_open = call.answered is None
        self.append_arguments(call, self._fragment(document), late=call.answered is not None)

    def _call_result(self, document: dict[str, Any]) -> None:
        """Read a result within the run: the agent ran the call itself, unless the result says that it was not run."""
        call_id = self._id(document, "toolCallId")
        call = self._calls.get(call_id)
        if call is None or call.answered is not None:  # a result for a call of the history, or a second result
            self.ensure_started()
            self.out.append(Aside(wire.VENDOR, "server_tool", document["type"], document))
        elif self.string(document.get("messageId")).startswith(wire.NOT_RUN_ID):
            call.is_refused = True
            self.keep_unread(document, RESULT, where="TOOL_CALL_RESULT.")
        else:
            call.is_open = False
            raw = {"toolCallId": call.id, "toolCallName": call.name, "arguments": call.arguments.whole()}
            raw |= without_none(parentMessageId=call.parent, encryptedValue=call.encrypted or None)
            call.answered = Aside(wire.VENDOR, "server_tool", wire.ANSWERED_CALL, {**raw, "result": document})

    def hand_on(self, call: ReadCall) -> None:
        if call.interrupt is not None:
            self.out.append(self._asked(call, call.interrupt))
            return
        delta = ToolCallDelta(self.handed_on, call.id or None, call.name or None, call.arguments.whole())
        delta.is_ended_by_wire = True
        if call.encrypted:
            delta.signature = unsealed(call.encrypted, wire.VENDOR)
        self.out.append(delta)
        if not call.is_open:
            self.out.append(ToolCallEnded(self.handed_on))
        self.handed_on += 1

    def _asked(self, call: ReadCall, interrupt: dict[str, Any]) -> Aside:
        """Return what the user is to approve: a call that the agent wants to run."""
        text = call.arguments.whole()
        about = {"id": call.id, "name": call.name, "arguments": text, "encryptedValue": call.encrypted}
        name = wire.approval_id(interrupt["id"], call.id)
        more = {name: value for name, value in interrupt.items() if name not in {"id", "toolCallId"}}
        approval = Approval(name, wire.VENDOR, call.name, text.strip() or "{}")
        return asked(wire.VENDOR, {"interrupt": interrupt, "call": about}, approval, **more)

    def _interrupted(self, interrupts: list[dict[str, Any]]) -> list[Aside]:
        """Note which calls the interrupts are about, and return the other interrupts: each is a call for other dialects."""
        others = []
        for interrupt in interrupts:
            call = self._calls.get(self.string(interrupt.get("toolCallId")))
            is_whole = call is not None and check_arguments(call.arguments.whole()).kind in {"complete", "empty"}
            if call is None or call.answered is not None or call.interrupt is not None or not is_whole:
                others.append(interrupt)
            elif not is_approval(call.id, call.name):  # else the call says itself what it is about
                call.interrupt = interrupt
        return [
            asked(
                wire.VENDOR, {"interrupt": each, "call": None}, None,
                id=f"{wire.INTERRUPT_ID}{each['id']}", name=wire.INTERRUPT,
                arguments=dumps({name: value for name, value in each.items() if name != "id"}).decode(),
            )
            for each in others
        ]  # fmt: skip

    def _run_finished(self, document: dict[str, Any]) -> None:
        self.ensure_started()
        outcome, metadata = self.fields(document.get("outcome")), self.fields(document.get("metadata"))
        kind = self.string(outcome.get("type"))
        if (found := outcome.get("interrupts")) is not None:
            outcome = {**outcome, "interrupts": [self.alone(each) for each in self.items(found)]}
        interrupts = wire.interrupts_in(outcome)
        if interrupts:
            self.keep_others(outcome, {"type", "interrupts"}, f"{wire.RUN_FINISHED}outcome.")
        elif outcome != {"type": "success"}:
            self.keep_others({"outcome": outcome}, (), wire.RUN_FINISHED)
        known = wire.PASSED_OVER | {"threadId", "runId", "usage", "metadata", "outcome"}
        self.keep_others(document, known, wire.RUN_FINISHED)
        self.keep_others(metadata, {wire.FINISH_REASON, wire.STOP_SEQUENCE}, f"{wire.RUN_FINISHED}metadata.")
        self._over = True
        self._usage(document)
        if kind in FAILED:
            self.report.repair("error_shape")
            self.fail(outcome)
            return
        if self.read_error(document):
            return
        if kind == "cancelled":
            self.release()
            return
        parts: list[Message | ReadCall] = [*self._messages.values(), *self._calls.values()]
        for part in parts:
            if part.is_open:
                self.report.repair("block_unclosed")
                part.is_open = isinstance(part, ReadCall)  # the run ended its messages, but a call may lack arguments
        others = self._interrupted(interrupts)
        self.release()
        self.out += others
        if kind == "interrupt" and not interrupts:  # no client could answer
            self.out.append(Aside(wire.VENDOR, "client_tool", WAITS, [kind]))
        self.out += (self._reason(kind, metadata), TerminatorSeen())

    def _reason(self, outcome: str, metadata: dict[str, Any]) -> StopReasonSeen:
        """Return the stop reason, which is in ``metadata``. After an interrupt, the run waits for the client's answer."""
        native = text_of(metadata.get(wire.FINISH_REASON))
        if outcome == "interrupt":
            return StopReasonSeen("tool_calls", outcome, waits=True)
        if native is None:
            return StopReasonSeen("stop", outcome or "success", covers_calls=True)
        stop_sequence = self.string(metadata.get(wire.STOP_SEQUENCE)) or None
        return StopReasonSeen(self.stop_reason(native, wire.STOP_REASONS), native, stop_sequence=stop_sequence)

    def _usage(self, document: dict[str, Any]) -> None:
        entries = [self.fields(entry) for entry in self.items(document.get("usage"))]
        if not entries:
            return
        self.tell_counts(wire.decode_usage(entries))
        for entry in entries:
            if (sound := wire.sound_entry(entry)) != entry:
                self.keep_invalid({name: value for name, value in entry.items() if sound.get(name) != value})

    def _run_error(self, document: dict[str, Any]) -> None:
        self._usage(document)
        if self.begun:
            self.report.repair("calls_unanswered")
        self.fail({name: value for name, value in document.items() if name not in wire.PASSED_OVER})

    def settle_starts(self) -> None:
        """End the run, and emit the held calls."""
        self._over = True
        self.release()
