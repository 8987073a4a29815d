"""Bedrock's messages to wire events: those of ConverseStream, or those of the model itself.

The first message decides. ``chunk`` is InvokeModelWithResponseStream, which carries the model's own events as base64; those
of Anthropic's models are read by Anthropic's decoder, and stay Anthropic's. Everything else is ConverseStream.
Exceptions come as messages of a type of their own, anywhere, and end either kind.

The padding member ``p`` says nothing. The response's id and its model are not in the stream: a client knows them from the
head of the answer and from its request.

Source: dialects.md §6.1, §7.6.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any, ClassVar

import orjson

from streamkit.dialects.anthropic.decode import MEMBERS, AnthropicDecoder
from streamkit.dialects.bedrock.content import ContentReader
from streamkit.dialects.bedrock.wire import (
    CHUNK,
    ERROR,
    EVENTS,
    EXCEPTION,
    EXCEPTIONS,
    EXTRA_FIELDS,
    KEEP_ALIVE,
    METADATA,
    METRICS,
    PADDING,
    STOP_REASONS,
    UNKNOWN,
    UNKNOWN_EXCEPTION,
    VENDOR,
    decode_usage,
)
from streamkit.dialects.members.known import KEPT, Members, kept
from streamkit.dialects.members.values import said, text_of
from streamkit.errors import BrokenFrame, SecondResponse
from streamkit.events import (
    Aside,
    ChoiceStarted,
    LastFrameBroken,
    ProviderFailed,
    ResponseStarted,
    StopReasonSeen,
    TerminatorSeen,
)
from streamkit.framing.frame import Frame
from streamkit.limits import Limits
from streamkit.report import StreamReport
from streamkit.tool_calls.failed_turns import FAILING

#: What is read of each message; blocks that only Bedrock understands are kept whole.
OF_EVENTS: Mapping[str, Members] = {
    "messageStart": KEPT,
    "contentBlockStart": Members("contentBlockIndex", PADDING, start=Members("toolUse")),
    "contentBlockDelta": Members("contentBlockIndex", PADDING, delta=kept(toolUse=Members("input"))),
    "contentBlockStop": Members("contentBlockIndex", PADDING),
    "messageStop": Members("stopReason", "additionalModelResponseFields", PADDING),
    "metadata": KEPT,
    KEEP_ALIVE: Members(PADDING),
}
#: Those of which an inner object is looked into.
NESTED = frozenset({"contentBlockStart", "contentBlockDelta"})
#: ``message_stop`` in base64, at each of its three places in a group: the characters that depend on nothing else.
STOPS = tuple(
    b64encode(b"-" * place + b"message_stop")[(4 * place + 2) // 3 : (4 * (place + 12)) // 3] for place in range(3)
)


def recognises(event: str, document: Any) -> bool:
    """Whether a payload can be Bedrock's."""
    if not isinstance(document, dict):
        return False
    if event == CHUNK:
        return isinstance(document.get("bytes"), str)
    return event in EVENTS or event.startswith((EXCEPTION, ERROR))


def terminates(frame: Frame) -> bool:
    """Whether a message may end the response: ``messageStop``, a chunk that may hold ``message_stop``, an exception."""
    event = frame.event
    if event == CHUNK:
        return any(stop in frame.data for stop in STOPS)
    return event == "messageStop" or event.startswith((EXCEPTION, ERROR))


class NativeDecoder(AnthropicDecoder):
    """Anthropic's decoder for events that come through InvokeModel."""

    dialect = "bedrock"
    members: ClassVar = {kind: members.also(METRICS) for kind, members in MEMBERS.items()}

    def decode(self, document: dict[str, Any]) -> None:
        super().decode(document)
        if said(metrics := document.get(METRICS)):
            self.out.append(Aside(VENDOR, "metadata", METRICS, metrics))


class BedrockDecoder(ContentReader):
    def __init__(self, limits: Limits, report: StreamReport) -> None:
        super().__init__(limits, report)
        self._started = False
        self._stopped = False
        self._native: NativeDecoder | None = None
        self._by_event = {
            "messageStart": self._message_start,
            "contentBlockStart": self.block_start,
            "contentBlockDelta": self.block_delta,
            "contentBlockStop": self.block_stop,
            "messageStop": self._message_stop,
            "metadata": self._metadata,
        }

    def take(self, frame: Frame) -> None:
        """One message. An unknown one may come at any time, and a torn one was not checked."""
        event = frame.event
        if not frame.terminated:
            self.out.append(LastFrameBroken(frame.data))
        elif event in self._by_event and self._native is None:
            document = self.load(frame)
            if document is not None:
                self.recognised = True
                if self._stopped and event != "metadata":
                    self.behind_end(self._by_event[event], document)
                    return
                before = len(self.out)
                self._by_event[event](document)
                self._unread(event, document, before)
        elif event == CHUNK and not self._started:
            self._chunk(frame)
        elif event.startswith((EXCEPTION, ERROR)):
            self._failed(frame)
        elif event == KEEP_ALIVE:
            if self._started and (document := self.load(frame)) is not None:
                self.keep_unread(document, OF_EVENTS[KEEP_ALIVE], where=f"{KEEP_ALIVE}.")
        else:
            self.strange()
            if self.recognised and (document := self.load(frame)) is not None:
                self.out.append(Aside(VENDOR, "unknown_event", UNKNOWN + event, document))

    def _unread(self, event: str, document: dict[str, Any], before: int) -> None:
        """Keep what was not read, unless the whole message was kept."""
        members = OF_EVENTS[event]
        if document.keys() <= members.names and event not in NESTED:
            return
        if not any(type(one) is Aside and one.raw is document for one in self.out[before:]):
            self.keep_unread(document, members, where=f"{event}.")

    def close(self) -> None:
        if self._native is not None:
            self.out += self._native.rest()

    # -- ConverseStream --------------------------------------------------------------------------------------------

    def _message_start(self, document: dict[str, Any]) -> None:
        if self._started:
            if self._seen:  # it has no id, and no server says its start again behind content
                raise SecondResponse(offset=self.frame.offset)
            self.report.repair("response_restarted")
            return
        extras = {name: value for name, value in document.items() if name not in {"role", PADDING} and said(value)}
        self._start(ResponseStarted(vendor=VENDOR, extras=extras or None))

    def _start(self, event: ResponseStarted) -> None:
        self._started = True
        self.out.append(event)
        self.out.append(ChoiceStarted())

    def ensure_started(self) -> None:
        if not self._started:
            self._start(ResponseStarted(vendor=VENDOR))

    def _message_stop(self, document: dict[str, Any]) -> None:
        self.ensure_started()
        first, self._stopped = not self._stopped, True
        for index in list(self.blocks) if first else ():  # calls stay open, and are not looked at again at each end
            self.report.repair("block_unclosed")
            if self.blocks[index].kind != "toolUse":
                self.close_block(index)
        fields = self.fields(document.get("additionalModelResponseFields"))
        delta = fields.get("delta")
        sequence = text_of(delta.get("stop_sequence")) if type(delta) is dict else None
        if native := text_of(document.get("stopReason")):
            reason = self.stop_reason(native, STOP_REASONS)
            known = STOP_REASONS.get(native) in FAILING
            self.out.append(StopReasonSeen(reason, native, 0, sequence, ends_failed=known))
        if fields and not (fields.keys() == {"delta"} and type(delta) is dict and delta.keys() <= {"stop_sequence"}):
            self.out.append(Aside(VENDOR, "metadata", EXTRA_FIELDS, fields))
        self.out.append(TerminatorSeen())

    def _metadata(self, document: dict[str, Any]) -> None:
        """Counts, and whatever else came: latency, the traces of guardrails, the service tier."""
        self.ensure_started()
        if usage := self.fields(document.get("usage")):
            self.tell_counts(decode_usage(usage))
        for name, value in document.items():
            if name not in {"usage", PADDING} and said(value) and (name != "metrics" or self.fields(value)):
                self.out.append(Aside(VENDOR, "metadata", METADATA + name, value))

    # -- InvokeModelWithResponseStream -----------------------------------------------------------------------------

    def _chunk(self, frame: Frame) -> None:
        document = self.load(frame)
        if document is None:
            return
        try:
            data = b64decode(document["bytes"], validate=True)
        except (KeyError, TypeError, ValueError) as error:
            raise BrokenFrame("a chunk without bytes in base64", frame.data, offset=frame.offset) from error
        if self._native is None:
            self._native = NativeDecoder(self.limits, self.report)
        self.out += self._native.feed([Frame(data, frame.offset, CHUNK)])
        if self._native.fault is not None:
            raise self._native.fault
        self.recognised = self._native.recognised
        if not self.recognised:
            self.strange()

    # -- errors ----------------------------------------------------------------------------------------------------

    def _failed(self, frame: Frame) -> None:
        """An exception, named in its header, or an error, all of which is in headers."""
        self.recognised = True
        kind, _, name = frame.event.partition(":")
        raw: dict[str, Any] = {}
        if frame.data and not frame.data.isspace():
            try:
                raw = self.load(frame) or {}
            except BrokenFrame:
                self.report.repair("error_shape")
                raw = {"message": frame.text}
        message = text_of(frame.headers.get(":error-message")) or text_of(raw.get("message"))
        error, status = EXCEPTIONS.get(name[:1].lower() + name[1:], UNKNOWN_EXCEPTION)
        code = text_of(name) if kind + ":" == ERROR else None
        native = text_of(name) if code is None else None
        shown = message or "an error without a message: " + (text_of(name) or orjson.dumps(raw).decode())
        self.out.append(ProviderFailed(error, shown, native, code, status, raw or None, VENDOR))
