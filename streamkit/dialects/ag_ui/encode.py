"""Encode events as AG-UI events: messages and calls have ids, and may interleave.

When a run is over, for any reason, a client runs every call without a result, even if its arguments are incomplete. So no
call is ended before the successful end is known. A call whose arguments are not a JSON object then gets a result that says
so. If the stream fails, each started call gets such a result before RUN_ERROR.

If a message continues after another one, it is opened again under its id, and clients append to it. Reasoning is a separate
message, and the next call after it belongs to another assistant message, so that clients keep the order of the response.

Source: ui-protocols.md §2.1 to §2.5, §7.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, Literal, TypeAlias

import orjson
from attrs import define

from streamkit.conversation.messages import Request, ToolResult
from streamkit.dialects.ag_ui import wire
from streamkit.dialects.members.fields import without_none
from streamkit.dialects.profiles import Encoding
from streamkit.dialects.streams.approvals import ASKED, approval_in
from streamkit.dialects.streams.client_calls import WAITS
from streamkit.dialects.streams.event_encoder import OneChoiceEncoder, wrapped_input
from streamkit.dialects.vocabulary.sealed_reasoning import Kind, signature_text, unsealed
from streamkit.dialects.vocabulary.stop_reasons import REFUSED
from streamkit.events import (
    Aside,
    Opaque,
    ProviderFailed,
    ReasoningDelta,
    ReasoningOpaque,
    ReasoningSignature,
    RefusalDelta,
    ResponseFinished,
    ResponseStarted,
    StopReason,
    TextDelta,
    ToolCallArguments,
    ToolCallFinished,
    ToolCallStarted,
)
from streamkit.framing.frame import Frame
from streamkit.limits import Limits
from streamkit.report import StreamReport
from streamkit.tool_calls.check import check_arguments

dumps = orjson.dumps
MessageKind: TypeAlias = Literal["TEXT", "REASONING"]  # each has its own types of events
#: Events that open, continue and close a message of each kind, with ``%b`` for its id as JSON.
OPENINGS: Final[dict[MessageKind, bytes]] = {
    "TEXT": b'data: {"type":"TEXT_MESSAGE_START","messageId":%b,"role":"assistant"}\n\n',
    "REASONING": (
        b'data: {"type":"REASONING_START","messageId":%b}\n\n'
        b'data: {"type":"REASONING_MESSAGE_START","messageId":%b,"role":"reasoning"}\n\n'
    ),
}
CONTENTS: Final[dict[MessageKind, bytes]] = {
    "TEXT": b'data: {"type":"TEXT_MESSAGE_CONTENT","messageId":%b,"delta":',
    "REASONING": b'data: {"type":"REASONING_MESSAGE_CONTENT","messageId":%b,"delta":',
}
CLOSINGS: Final[dict[MessageKind, bytes]] = {
    "TEXT": b'data: {"type":"TEXT_MESSAGE_END","messageId":%b}\n\n',
    "REASONING": (
        b'data: {"type":"REASONING_MESSAGE_END","messageId":%b}\n\ndata: {"type":"REASONING_END","messageId":%b}\n\n'
    ),
}
FEW: Final = 64  # the most extra members of RUN_FINISHED that are kept
METADATA: Final = f"{wire.RUN_FINISHED}metadata."  # how the types of asides for members of ``metadata`` begin
OUTCOMES: Final = ("success", "interrupt")  # the types that clients know


#: The key in ``Profile.settings`` for the client's answers to interrupts about calls: their texts, by the ids of the calls.
ANSWERS: Final = "answers"
#: The schema of an answer to a request for approval.
APPROVES: Final = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "reason": {"type": "string"}},
    "required": ["approved"],
}


def settings_of(request: Request) -> dict[str, Any]:
    """Return the settings of a request that its response repeats (``Profile.settings``).

    A client sends its answers to interrupts once, and they are no messages. So the response repeats them as results of calls.
    """
    names = ("threadId", "runId", "parentRunId")
    settings = {name: value for name in names if isinstance(value := request.exchange.get(name), str)}
    answers = {
        part.call_id: part.text
        for turn in request.turns for part in turn.parts if isinstance(part, ToolResult) and part.native == wire.RESUME
    }  # fmt: skip
    return settings | ({ANSWERS: answers} if answers else {})


@define
class Message:
    """A message that was begun. Its id is JSON text."""

    kind: MessageKind
    id: bytes

    def written(self, templates: dict[MessageKind, bytes]) -> bytes:
        """Return the events of a template with the id of this message."""
        template = templates[self.kind]
        return template % ((self.id,) * template.count(b"%b"))


@define
class WrittenCall:
    """A call that was begun. Its id is JSON text."""

    id: bytes
    is_custom: bool
    end: ToolCallFinished | None = None

    def can_run(self, limits: Limits) -> bool:
        """Return whether a client can run this call: it ended, and its arguments are a complete JSON object."""
        call = self.end
        if call is None or self.is_custom or not call.ended:
            return call is not None and call.ended
        verdict = call.verdict or check_arguments(call.arguments, depth=limits.json_depth)
        if verdict.kind == "empty":
            return not call.arguments.strip(" \t\r\n")  # nothing but white space of JSON (RFC 8259 §2)
        return verdict.kind not in {"truncated", "malformed", "not_an_object"}


class AgUiEncoder(OneChoiceEncoder):
    """Encodes one choice of a response as the events of a run."""

    vendor = native = wire.VENDOR
    _ids = b""  # JSON members with the ids of the run; empty before its start
    _model: str | None = None
    _open: Message | None = None
    _parent: bytes | None = None  # the id, as JSON, of the message that the next call belongs to
    _stop: ResponseFinished | None = None
    _refused = False

    def __init__(self, encoding: Encoding, report: StreamReport) -> None:
        super().__init__(encoding, report)
        self._messages: dict[tuple[str, int], Message] = {}  # by kind of text and block
        self._signed: set[bytes] = set()  # ids, as JSON, of messages that have an encrypted value
        self._calls: dict[int, WrittenCall] = {}
        self._passed: Collection[str] = ()  # ids of calls without a result in events that were forwarded unchanged
        self._last: dict[str, Any] = {}  # members of RUN_FINISHED
        self._metadata: dict[str, Any] = {}
        self._interrupts: list[dict[str, Any]] = []

    def response_started(self, event: ResponseStarted) -> None:
        """Start the run, with the ids of the request."""
        settings, extras = dict(self.encoding.profile.settings), dict(self.response_extras(event))
        answers = settings.pop(ANSWERS, {})
        thread, make_id = extras.pop("threadId", None), self.encoding.make_id
        for name in wire.wrong_members("RUN_STARTED", {"threadId": thread or "", "runId": "", **extras}):
            self.lose("response_fields")
            thread = None if name == "threadId" else thread
            extras.pop(name, None)
        ids = {
            "threadId": settings.get("threadId") or thread or make_id("thread_"),
            "runId": settings.get("runId") or event.id or make_id("run_"),
        }
        self._ids = dumps(ids)[1:-1]
        self._model = event.model
        self._event("RUN_STARTED", {**extras, **settings, **ids})
        for call_id, text in answers.items():
            message = make_id("msg_")
            self._of_call("TOOL_CALL_RESULT", dumps(call_id), messageId=message, role="tool", content=text)

    def _ensure_started(self) -> None:
        if not self._ids:
            self.response_started(ResponseStarted())

    def _event(self, kind: str, members: dict[str, Any]) -> None:
        self.write(b"data: %b\n\n" % dumps({"type": kind, **members}))

    def follow(self, start: ResponseStarted | None, last: Frame, begun: Collection[str]) -> None:  # noqa: ARG002 - see base
        """Continue a stream whose first events were forwarded unchanged. ``begun`` has the ids of calls without a result."""
        self._passed = begun

    def text(self, event: TextDelta) -> None:
        self._say("TEXT", "text", event)

    def refusal(self, event: RefusalDelta) -> None:
        if not self._refused:
            self._refused = True
            self.lose("refusal_as_text")
        self._say("TEXT", "refusal", event)

    def reasoning(self, event: ReasoningDelta) -> None:
        self._say("REASONING", "reasoning", event)

    def _say(self, kind: MessageKind, what: str, event: TextDelta | RefusalDelta | ReasoningDelta) -> None:
        if event.text:
            message = self._message(kind, (what, event.block))
            self.write(b"%b%b}\n\n" % (message.written(CONTENTS), dumps(event.text)))

    def _message(self, kind: MessageKind, key: tuple[str, int]) -> Message:
        """Return the open message of a block: a new one, or its earlier message, which is opened again."""
        message = self._messages.get(key)
        if message is not None and message is self._open:
            return message
        self._ensure_started()
        self._close()
        if message is None:
            message = self._messages[key] = Message(kind, dumps(self.encoding.make_id("msg_")))
        self._open = message
        self._parent = message.id if kind == "TEXT" else None
        self.write(message.written(OPENINGS))
        return message

    def _close(self) -> None:
        if self._open is not None:
            self.write(self._open.written(CLOSINGS))
            self._open = None

    def signature(self, event: ReasoningSignature) -> None:
        """Write the signature of a message; without a message, write it in a reasoning message without text."""
        message = self._messages.get((event.on, event.block)) or self._message("REASONING", ("signed", event.block))
        self._sign(message, event.on, Opaque(event.vendor, event.blob))

    def opaque(self, event: ReasoningOpaque) -> None:
        """Write opaque reasoning in a reasoning message without text: clients drop a value that has no message."""
        self._sign(self._message("REASONING", ("opaque", event.block)), "opaque", Opaque(event.vendor, event.blob))

    def _sign(self, message: Message, kind: Kind, value: Opaque) -> None:
        if message.id in self._signed:  # clients keep only the last value of a message
            self.lose("reasoning_signature" if kind != "opaque" else "reasoning_opaque")
        self._signed.add(message.id)
        self._encrypted("message", message.id, kind, value)

    def _encrypted(self, subtype: str, entity: bytes, kind: Kind, value: Opaque) -> None:
        text = signature_text(value, wire.VENDOR, kind)
        members = {"subtype": subtype, "entityId": orjson.Fragment(entity), "encryptedValue": text}
        self._event("REASONING_ENCRYPTED_VALUE", members)

    def call_started(self, event: ToolCallStarted) -> None:
        self._ensure_started()
        self.own_extras(event.extras)
        if not event.name:
            return  # a call without a name is withheld when it ends
        self._close()
        if self._parent is None:
            self._parent = dumps(self.encoding.make_id("msg_"))
        call = self._calls[event.call] = WrittenCall(dumps(event.id), event.kind == "custom")
        parent = orjson.Fragment(self._parent)
        self._of_call("TOOL_CALL_START", call.id, toolCallName=event.name, parentMessageId=parent)
        if event.signature is not None:
            self._encrypted("tool-call", call.id, "call", event.signature)

    def _of_call(self, kind: str, call_id: bytes, **members: Any) -> None:
        self._event(kind, {"toolCallId": orjson.Fragment(call_id), **members})

    def call_arguments(self, event: ToolCallArguments) -> None:
        call = self._calls.get(event.call)
        if call is not None and not call.is_custom and event.fragment:
            self._of_call("TOOL_CALL_ARGS", call.id, delta=event.fragment)

    def call_finished(self, event: ToolCallFinished) -> None:
        """Remember that a call finished. Its end is written only at the successful end of the run."""
        call = self._calls.get(event.call)
        if call is None:
            self.withhold(event)
            return
        call.end = event
        if call.is_custom and event.ended:
            self.lose("custom_tool_wrapped")
            self._of_call("TOOL_CALL_ARGS", call.id, delta=wrapped_input(event.arguments))

    def _end_calls(self, reason: StopReason) -> None:
        """Write the end of each call. If clients must not run a call, first write a result that says that it was not run."""
        is_refused = reason in REFUSED
        for call in self._calls.values():
            if is_refused or not call.can_run(self.encoding.limits):
                self._not_run(call.id, wire.WAS_REFUSED if is_refused else wire.NO_OBJECT)
            elif not call.is_custom and call.end is not None and not call.end.arguments.strip():
                self._of_call("TOOL_CALL_ARGS", call.id, delta="{}")
            self._of_call("TOOL_CALL_END", call.id)

    def _not_run(self, call_id: bytes, why: str) -> None:
        message = self.encoding.make_id(wire.NOT_RUN_ID)
        self._of_call("TOOL_CALL_RESULT", call_id, messageId=message, role="tool", content=why)

    def aside(self, event: Aside) -> None:
        name, raw = event.type, event.raw
        is_event = name in wire.ALONE and isinstance(raw, dict) and raw.get("type") == name
        if name == WAITS:
            return  # the outcome says this
        if name == f"{wire.RUN_FINISHED}outcome" and (not isinstance(raw, dict) or raw.get("type") not in OUTCOMES):
            self.lose(event.kind)  # clients refuse an unknown outcome
        elif name.startswith(wire.RUN_FINISHED) and len(self._last) + len(self._metadata) < FEW:
            place = self._metadata if name.startswith(METADATA) else self._last
            place[name.removeprefix(METADATA).removeprefix(wire.RUN_FINISHED)] = raw
        elif name == ASKED:
            self._interrupted(raw["native"]["interrupt"], raw["native"]["call"])
        elif name == wire.ANSWERED_CALL and not wire.wrong_members("TOOL_CALL_RESULT", raw["result"]):
            self._ensure_started()
            self._answered(dumps(raw["toolCallId"]), raw)
        elif is_event and not wire.wrong_members(name, raw):
            self._ensure_started()
            self._event(name, raw)
        else:
            self.lose(event.kind)

    def _interrupted(self, interrupt: dict[str, Any], call: dict[str, Any] | None) -> None:
        """Write the call that an interrupt is about, and keep the interrupt for the end of the run."""
        self._interrupts.append(interrupt)
        if call is not None:
            number, call_id, name, text = -1 - len(self._calls), call["id"], call["name"], call["arguments"]
            signed = unsealed(call["encryptedValue"], wire.VENDOR) if call["encryptedValue"] else None
            self.call_started(ToolCallStarted(number, call_id, name, signature=signed))
            self.call_arguments(ToolCallArguments(number, text))
            self.call_finished(ToolCallFinished(number, call_id, name, text))

    def _outcome(self, reason: StopReason) -> dict[str, Any]:
        """Return the outcome of a run that waits for the user, because of interrupts or calls for approval; else nothing."""
        interrupts = [*self._interrupts]
        for call in self._calls.values() if reason not in REFUSED else ():
            end = call.end
            if end is not None and (approval := approval_in(end.id, end.name, end.arguments)) is not None:
                message = f"Allow {approval.tool} of {approval.server}?"
                about = {"id": end.id, "reason": "tool_call", "message": message, "toolCallId": end.id}
                interrupts.append({**about, "responseSchema": APPROVES})
        return {wire.OUTCOME: {"type": "interrupt", "interrupts": interrupts}} if interrupts else {}

    def _answered(self, call_id: bytes, call: dict[str, Any]) -> None:
        """Write a call with its result. The agent ran it, so no client does."""
        start = {name: value for name, value in call.items() if name in {"toolCallName", "parentMessageId"}}
        self._of_call("TOOL_CALL_START", call_id, **start)
        if "encryptedValue" in call:
            self._encrypted("tool-call", call_id, "call", Opaque(wire.VENDOR, call["encryptedValue"]))
        if call["arguments"]:
            self._of_call("TOOL_CALL_ARGS", call_id, delta=call["arguments"])
        self._of_call("TOOL_CALL_END", call_id)
        self._event("TOOL_CALL_RESULT", call["result"])

    def finished(self, event: ResponseFinished) -> None:
        self._stop = event

    def terminate(self) -> None:
        self._ensure_started()
        self._close()
        stop = self._stop or ResponseFinished("stop")
        self._end_calls(stop.reason)
        word, is_less = wire.finish_reason(stop.reason)
        if is_less:
            self.lose("stop_reason")
        metadata = self._metadata | without_none(**{wire.FINISH_REASON: word, wire.STOP_SEQUENCE: stop.stop_sequence})
        members = {**self._last, **self._outcome(stop.reason), **self._usage_member(), "metadata": metadata}
        self.write(b'data: {"type":"RUN_FINISHED",%b,%b}\n\n' % (self._ids, dumps(members)[1:-1]))

    def _usage_member(self) -> dict[str, Any]:
        if self._usage is None:
            return {}
        return {"usage": wire.encode_usage(self._usage, self._model or self.encoding.profile.model, self.report)}

    def error(self, event: ProviderFailed) -> None:
        """Write a result for each call, because a client would otherwise run it, and then the error, even without a start."""
        for call_id in *(dumps(passed) for passed in self._passed), *(call.id for call in self._calls.values()):
            self._not_run(call_id, wire.RUN_FAILED)
        for _ in (*self._last, *self._metadata):
            self.lose("metadata")
        code = wire.error_code(event, self.report)
        self._event("RUN_ERROR", {"message": event.message, "code": code, **self._usage_member()})
