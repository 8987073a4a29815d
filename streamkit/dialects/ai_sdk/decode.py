"""Decode chunks of a UI message stream to wire events.

Parts of text and reasoning have ids, and so do calls. A call's arguments are its streamed fragments, or the JSON text of its
``input`` if that has another value: clients run the input, to which a server may have added defaults. Only ``finish`` without
an error completes a response: ``[DONE]`` has no meaning, and a stream that stops earlier was interrupted.

A call that gets an output within the stream was run by the server, and is not for the client. So a call, and every chunk after
it, is held until the call's output or the end of the stream.

Source: ui-protocols.md §1.1, §1.2, §1.8, §8.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, Literal

from attrs import define, field

from streamkit.dialects.ai_sdk import wire
from streamkit.dialects.ai_sdk.asides import read_file
from streamkit.dialects.members.values import has_value, text_of
from streamkit.dialects.streams.approvals import Approval, asked
from streamkit.dialects.streams.event_encoder import wrapped_input
from streamkit.dialects.streams.waiting_calls import WaitingCall, WaitingCallDecoder
from streamkit.errors import HeldTooLong, TooManyBlocks, TooManyToolCalls
from streamkit.events import (
    Aside,
    AsideKind,
    Opaque,
    ProviderFailed,
    ReasoningDelta,
    ReasoningOpaque,
    ReasoningSignature,
    ResponseStarted,
    StopReasonSeen,
    TerminatorSeen,
    TextDelta,
    ToolCallDelta,
    ToolCallEnded,
    ToolKind,
)
from streamkit.limits import Limits
from streamkit.report import StreamReport
from streamkit.tool_calls.check import check_arguments
from streamkit.tool_calls.value_text import lenient_text

OUTPUTS = frozenset({"tool-output-available", "tool-output-error", "tool-output-denied"})
#: By the type of a chunk that answers a request for approval: the member that names the call or the request.
SETTLED: Final = {**dict.fromkeys(OUTPUTS, "toolCallId"), wire.ANSWERS: "approvalId"}
OF_RESPONSE = frozenset({"start", "start-step", "finish-step", "finish"})  # in these, an error is not of a tool
OWN = wire.CHUNKS.keys() - {"start", "error", "abort", "finish"}  # chunks that no other dialect has


@define
class ReadPart:
    """A part of text or reasoning that is open."""

    kind: str
    block: int
    is_empty: bool = True
    #: The latest ``providerMetadata`` of its chunks (clients keep only this one), and the size of that frame in bytes.
    metadata: Mapping[str, Any] | None = None
    held_bytes: int = 0


@define
class ReadCall(WaitingCall):
    """A call that is held until its output or the end of the stream arrives."""

    kind: ToolKind = "function"
    executed: bool = False  #: whether the provider runs this call; then all its chunks are kept as asides
    shown: dict[str, Any] = field(factory=dict)  #: members for ``ToolCallDelta.extras``: the latest of each
    ended: bool = False
    available: bool = False  #: whether its input is complete, so that clients run it
    signature: Opaque | None = None
    is_too_long: bool = False  #: whether the input of a call that the provider runs was not kept
    request: dict[str, Any] | None = None  #: the chunk that requests the user's approval, until an output arrives


def recognises(_event: str, document: Any) -> bool:
    """Return whether a payload may be a chunk. A ``start`` may only have members of this dialect."""
    if not isinstance(document, dict):
        return False
    kind = document.get("type")
    if kind == "start":
        return document.keys() <= {"type", "messageId", "messageMetadata"}
    if kind == "error":
        return isinstance(document.get("errorText"), str)
    return isinstance(kind, str) and kind in OWN and "event_id" not in document


def _is_same(streamed: str, text: str) -> bool:
    """Return whether two JSON texts have one value. Numbers are compared as doubles, as servers in JavaScript write them."""
    values = []
    for each in (streamed, text):
        try:
            values.append(json.dumps(json.loads(each.strip() or "{}", parse_int=float), sort_keys=True))
        except (ValueError, RecursionError):
            values.append(each)
    return values[0] == values[1]


class AISDKDecoder(WaitingCallDecoder[ReadCall]):
    """Decodes the chunks of a UI message stream."""

    dialect = "ai-sdk"
    vendor = wire.VENDOR
    idle = frozenset()

    _id: str | None = None
    _finished = False
    _labels = 0  # blocks so far
    _count = 0  # calls so far
    _available = 0  # available calls without an output
    _kept_chars = 0  # of the inputs of calls that the provider runs

    def __init__(self, limits: Limits, report: StreamReport) -> None:
        super().__init__(limits, report)
        self._parts: dict[tuple[str, str], ReadPart] = {}  # open parts, by kind and id
        self._held_bytes = 0  # the size of frames with metadata that are held until the end of a part
        self._calls: dict[str, ReadCall] = {}
        self._requested: dict[str, ReadCall] = {}  # calls with a request for approval, by the request's id

    def done(self) -> None:
        """Ignore ``[DONE]``, as clients do."""

    def decode(self, document: dict[str, Any]) -> None:
        before = self.before_frame()
        kind = self.string(document.get("type"))
        if kind in wire.CHUNKS:
            self.recognised = True
            if self._finished:
                self.behind_end(self._read, document)
            else:
                self._read(document)
        elif kind in wire.ASIDES or kind in wire.NEWEST or kind.startswith("data-"):
            self.recognised = True
            if self._finished:
                self.report.repair("after_end")
            elif kind not in OUTPUTS or not self._is_answer(document):
                self._aside(kind, document)
        else:
            self.unknown_frame(kind or "chunk", document)
        self.after_frame(before)

    def _aside(self, kind: str, document: dict[str, Any], means: AsideKind | None = None) -> None:
        self.ensure_started()
        if kind == wire.ASKS and self._is_requested(document):
            return
        settled: Mapping[str, ReadCall] = (
            self._calls if kind in OUTPUTS else self._requested if kind == wire.ANSWERS else {}
        )
        if settled and (call := settled.get(self.string(document.get(SETTLED[kind])))) is not None:
            self._settle(call)
        if kind == wire.FILE and (media := read_file(document)) is not None:
            self.out.append(media)
            return
        if means is None and kind in wire.ASIDES:
            means = wire.ASIDES[kind][0]
        other: AsideKind = "unknown_event" if kind in wire.NEWEST else "metadata"
        self.out.append(Aside(wire.VENDOR, means or other, kind, document))

    def _is_requested(self, document: dict[str, Any]) -> bool:
        """Return whether a request for approval belongs to a call that still waits for an output. Hold it for the end."""
        call = self._calls.get(self.string(document.get("toolCallId")))
        name = document.get("approvalId")
        if call is None or call.answered is not None or call.request is not None or not isinstance(name, str):
            return False
        self._held_bytes += len(self.frame.data)
        if self._held_bytes > self.limits.held_chars or call.is_too_long:
            raise HeldTooLong(self.limits.held_chars, offset=self.frame.offset)
        call.request = document
        self._requested[name] = call
        return True

    def _settle(self, call: ReadCall) -> None:
        """Forget the request of a call that got an answer in the stream. If the provider runs the call, emit the request."""
        if call.request is not None and call.executed:
            self.out.append(Aside(wire.VENDOR, "client_tool", wire.ASKS, call.request))
        call.request = None

    def _asked(self, call: ReadCall) -> Aside | None:
        """Return what the user is to approve; None for a call without a request, or without whole arguments."""
        if call.request is None or call.answered is not None or not call.ended:
            return None
        text = call.arguments.whole()
        if call.kind == "custom":
            text = wrapped_input(text)
        elif check_arguments(text, depth=self.limits.json_depth).kind not in {"complete", "empty"}:
            return None
        request = {
            name: value for name, value in call.request.items() if name not in {"type", "approvalId", "toolCallId"}
        }
        native = {"toolCallId": call.id, "toolName": call.name, **call.shown, "arguments": call.arguments.whole()}
        native |= {"kind": call.kind, "executed": call.executed, "request": call.request}
        native["metadata"] = wire.metadata_of("call", call.signature)
        name = wire.approval_id(self.string(call.request.get("approvalId")), call.id, call.executed, call.shown)
        return asked(wire.VENDOR, native, Approval(name, wire.VENDOR, call.name, text.strip() or "{}"), **request)

    def _read(self, document: dict[str, Any]) -> None:
        kind = document["type"]
        if kind not in {"start", "error"}:
            self.ensure_started()
        chunk = wire.CHUNKS[kind]
        self.read_and_keep(getattr(self, chunk.method), document, chunk.members, f"{kind}.")
        if kind in OF_RESPONSE:
            self.read_error(document)

    def _nothing(self, document: dict[str, Any]) -> None:
        """Ignore the start or end of a step: all content of a step is in the chunks of its parts and calls."""

    def _message_start(self, document: dict[str, Any]) -> None:
        name = text_of(document.get("messageId"))
        if self._started:
            self.restarted(self._id, name)
            return
        self._id = name
        metadata = self.fields(document.get("messageMetadata"))
        self.start(
            ResponseStarted(name, vendor=wire.VENDOR, extras={"messageMetadata": metadata} if metadata else None)
        )

    def _opened(self, document: dict[str, Any], *, starts: bool = False) -> ReadPart:
        """Return the part that a chunk belongs to; open a new one if none is open. Raises TooManyBlocks."""
        kind = document["type"].partition("-")[0]
        key = kind, self.string(document.get("id"))
        part = self._parts.get(key)
        if starts and part is not None:
            self.report.repair("block_reopened")
            self._end_part(part)
            part = None
        if part is None:
            if not starts:
                self.report.repair("block_unopened")
            if self._labels >= self.limits.content_blocks:
                raise TooManyBlocks(self.limits.content_blocks, offset=self.frame.offset)
            part = self._parts[key] = ReadPart(kind, self._labels)
            self._labels += 1
        return part

    def _part_start(self, document: dict[str, Any]) -> None:
        self._keep_metadata(self._opened(document, starts=True), document)

    def _part_delta(self, document: dict[str, Any]) -> None:
        part = self._opened(document)
        if text := self.string(document.get("delta")):
            part.is_empty = False
            make = TextDelta if part.kind == "text" else ReasoningDelta
            self.out.append(make(text, 0, part.block))
        self._keep_metadata(part, document)

    def _part_end(self, document: dict[str, Any]) -> None:
        part = self._opened(document)
        self._keep_metadata(part, document)
        self._end_part(part)
        del self._parts[part.kind, self.string(document.get("id"))]

    def _keep_metadata(self, part: ReadPart, document: dict[str, Any]) -> None:
        """Keep metadata, which replace earlier metadata of the part. Raises HeldTooLong."""
        if document.get("providerMetadata") is None:
            return
        self._held_bytes += len(self.frame.data) - part.held_bytes
        part.metadata, part.held_bytes = self.fields(document["providerMetadata"]), len(self.frame.data)
        if self._held_bytes > self.limits.held_chars:
            raise HeldTooLong(self.limits.held_chars, offset=self.frame.offset)

    def _end_part(self, part: ReadPart) -> None:
        """Emit the opaque values of a part, after its end, when nothing can replace them."""
        self._held_bytes -= part.held_bytes
        if part.metadata is None:
            return
        read = wire.read_metadata(part.metadata, is_empty=part.is_empty and part.kind == "reasoning")
        on: Literal["text", "reasoning"] = "text" if part.kind == "text" else "reasoning"
        self.out += [ReasoningSignature(each.blob, each.vendor, 0, part.block, on) for each in read.signatures]
        self.out += [ReasoningOpaque(each.blob, each.vendor, 0, part.block) for each in read.redacted]
        self._keep_metadata_of_others(read, part.kind)

    def _keep_metadata_of_others(self, read: wire.Read, of: str) -> None:
        if read.others:
            self.out.append(Aside(wire.VENDOR, "metadata", f"{of}.providerMetadata", read.others))

    def _call(self, document: dict[str, Any]) -> ReadCall | None:
        """Return the call that a chunk names: a new one for a new id, or if its call has ended and starts again.

        Return None, and keep the chunk as an aside, if the provider runs the call. Raises TooManyToolCalls.
        """
        name = self.string(document.get("toolCallId"))
        call = self._calls.get(name)
        if call is None or (call.ended and document["type"] == "tool-input-start"):
            if self._count >= self.limits.content_blocks:
                raise TooManyToolCalls(self.limits.tool_calls, offset=self.frame.offset)
            self._count += 1
            call = self._calls[name] = ReadCall(name, self.string(document.get("toolName")))
            call.kind = "custom" if document.get("inputEncoding") == "text" else "function"
            call.executed = self.truth(document.get("providerExecuted"))
            if not call.executed:
                self.begin_waiting(call)
                self.waiting_bytes += len(self.frame.data)
        elif not call.executed and call.answered is None and self.truth(document.get("providerExecuted")):
            call.executed = True  # the start did not say so; clients do not run the call
            start = {"type": "tool-input-start", "toolCallId": name, "toolName": call.name, "providerExecuted": True}
            call.answered = Aside(wire.VENDOR, "server_tool", "tool-input-start", {**start, **call.shown})
        if document["type"] != "tool-input-delta":
            call.shown |= {name: value for name in wire.SHOWN if has_value(value := document.get(name))}
        if call.executed:
            self._aside(document["type"], document, "server_tool")
            return None
        return call

    def _call_start(self, document: dict[str, Any]) -> None:
        if (call := self._call(document)) is not None:
            self._sign(call, document)

    def _call_delta(self, document: dict[str, Any]) -> None:
        if (call := self._call(document)) is not None:
            self._append(call, self.string(document.get("inputTextDelta")))

    def _append(self, call: ReadCall, fragment: str) -> None:
        if fragment or not call.ended:
            self.append_arguments(call, fragment, late=call.ended)

    def _sign(self, call: ReadCall, document: dict[str, Any]) -> None:
        """Read the opaque values in a call's chunk. They replace earlier ones, because clients keep only the last."""
        if document.get("providerMetadata") is None:
            return
        read = wire.read_metadata(self.fields(document["providerMetadata"]), is_empty=False)
        for signature in (*read.signatures, *read.redacted):
            call.signature = signature
        self._keep_metadata_of_others(read, "tool")

    def _call_end(self, document: dict[str, Any]) -> None:
        call = self._call(document)
        if call is None:
            self._keep_input(document)
            return
        self._sign(call, document)
        if error := self.string(document.get(wire.ERROR_TEXT)):
            call.shown[wire.ERROR_TEXT] = error
        if "input" in document:
            value = document["input"]
            is_text = isinstance(value, str) and (call.kind == "custom" or document["type"] == "tool-input-error")
            text = str(value) if is_text else lenient_text(self.frame.data, "input")
            if call.ended and call.arguments.equals(text):
                self.report.repair("arguments_repeated")
            elif call.ended:
                self._append(call, text)
            elif not call.arguments.chars or (
                (isinstance(value, dict) or (is_text and text)) and not _is_same(call.arguments.whole(), text)
            ):
                call.arguments.clear()
                self._append(call, text)
                self.inputs_at_once = [*self.inputs_at_once, (call.id, call.name, text)]
        call.ended = True
        if not call.available:
            call.available = True
            self._available += 1
            self.runs_calls = True

    def _keep_input(self, document: dict[str, Any]) -> None:
        """Keep the input of a call that the provider runs, if there is room: the user may have to approve it."""
        call = self._calls[self.string(document.get("toolCallId"))]
        value, call.ended = document.get("input"), True
        text = value if isinstance(value, str) else lenient_text(self.frame.data, "input") if value is not None else ""
        call.is_too_long = self._kept_chars + len(text) > self.limits.held_chars
        if not call.is_too_long:
            self._kept_chars += len(text)
            call.arguments.clear()
            call.arguments.append(text)

    def _is_answer(self, document: dict[str, Any]) -> bool:
        """Return whether this is the first output for a waiting call, and attach it: the server ran the call itself."""
        call = self._calls.get(self.string(document.get("toolCallId")))
        if call is None or call.executed or call.answered is not None:
            return False
        call.ended = True
        self._available -= call.available
        self.runs_calls = self._available > 0
        raw = {"toolCallId": call.id, "toolName": call.name, **call.shown, "arguments": call.arguments.whole()}
        raw |= {"output": document} if call.request is None else {"request": call.request, "output": document}
        call.answered = Aside(wire.VENDOR, "server_tool", wire.ANSWERED_CALL, raw)
        return True

    def hand_on(self, call: ReadCall) -> None:
        if (aside := self._asked(call)) is not None:
            self.out.append(aside)
            return
        delta = ToolCallDelta(
            self.handed_on, call.id or None, call.name or None, call.arguments.whole(), kind=call.kind
        )
        delta.extras, delta.signature, delta.is_ended_by_wire = call.shown or None, call.signature, True
        self.out.append(delta)
        self.out.append(ToolCallEnded(self.handed_on, whole=call.ended))  # no client runs a call that is not available
        if call.request is not None and call.answered is None:  # nobody can approve arguments that are not whole
            self.out.append(Aside(wire.VENDOR, "client_tool", wire.ASKS, call.request))
        self.handed_on += 1

    def release(self) -> None:
        """Emit the held calls, chunks and requests for approval, and end the open parts."""
        super().release()
        for call in self._requested.values():
            if call.executed and (aside := self._asked(call)) is not None:
                self.out.append(aside)
            elif call.executed:
                self._settle(call)
        self._requested.clear()
        for part in self._parts.values():
            self._end_part(part)
        self._parts.clear()

    def _finish(self, document: dict[str, Any]) -> None:
        self._finished = True
        waits = any(self._asked(call) is not None for call in self._requested.values())
        self.release()
        metadata = self.fields(document.get("messageMetadata"))
        if usage := self.fields(metadata.get("usage")):
            self.tell_counts(wire.decode_usage(usage))
        self.keep_others(metadata, {"usage"}, "finish.messageMetadata.")
        native = self.string(document.get("finishReason"))
        reason = self.stop_reason(native, wire.STOP_REASONS) if native else "stop"
        waits = waits and reason in {"stop", "tool_calls", "other"}
        seen = StopReasonSeen(
            "tool_calls" if waits else reason, native or "finish", covers_calls=not native, waits=waits
        )
        self.out += (seen, TerminatorSeen())

    def _error(self, document: dict[str, Any]) -> None:
        self.release()
        if text := text_of(document.get("errorText")):
            self.out.append(ProviderFailed("server", text, raw=document, vendor=wire.VENDOR))
        else:
            self.report.repair("error_shape")
            self.fail(document)

    def _abort(self, document: dict[str, Any]) -> None:
        """Read an abort by the server as a failure, although the SDK's client takes the response so far for a success."""
        self.release()
        reason = self.string(document.get("reason")) or "the server aborted the response"
        self.out.append(ProviderFailed("truncated", reason, raw=document, vendor=wire.VENDOR))
