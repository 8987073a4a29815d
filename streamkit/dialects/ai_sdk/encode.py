"""Encode events as chunks of a UI message stream, in the form for clients of versions 5.0.217, 6 and 7.

A client runs a call as soon as its input is *available*, whatever follows, and sends a new request after all calls have
results. So calls and their arguments are streamed at once, but the chunk that makes them available waits for the successful
end. A truncated call is never ended: it stays ``input-streaming``, and no client runs it. A failure is one chunk ``error``,
the last one, because clients show a stream without it, or with a ``finish``, as a success. There is always a step, and it is
never empty: otherwise a client that sent a tool's result repeats its request endlessly.

Source: ui-protocols.md §1.2 to §1.6.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import orjson
from attrs import define, field

from streamkit.conversation.messages import Request
from streamkit.dialects.ai_sdk import wire
from streamkit.dialects.ai_sdk.asides import MADE_SOURCE, write_file
from streamkit.dialects.profiles import Encoding
from streamkit.dialects.streams.approvals import ASKED, Approval, approval_in, is_approval
from streamkit.dialects.streams.carrier import PHASE
from streamkit.dialects.streams.event_encoder import OneChoiceEncoder, stop_word
from streamkit.dialects.vocabulary.error_bodies import has_detail
from streamkit.dialects.vocabulary.sealed_reasoning import MADE
from streamkit.dialects.vocabulary.stop_reasons import REFUSED
from streamkit.errors import HeldTooLong
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
    TextDelta,
    ToolCallArguments,
    ToolCallFinished,
    ToolCallStarted,
)
from streamkit.report import StreamReport
from streamkit.tool_calls.check import check_arguments

dumps = orjson.dumps
START_STEP: Final = b'data: {"type":"start-step"}\n\n'
#: Content for a step without parts: a client shows nothing for an empty step, and repeats its request endlessly.
EMPTY_TEXT: Final = b'data: {"type":"text-start","id":"t0"}\n\ndata: {"type":"text-end","id":"t0"}\n\n'
FINISH_STEP: Final = b'data: {"type":"finish-step"}\n\n'
#: Members of the aside for a call that the server ran that are not members of the call's first chunk.
ANSWERED: Final = frozenset({"arguments", "output", "request", wire.ERROR_TEXT})
#: Members of the aside for a request for approval that are not members of the call's chunks.
REQUESTED: Final = frozenset({"arguments", "kind", "executed", "request", "metadata"})
DONE: Final = b"data: [DONE]\n\n"


def settings_of(request: Request) -> dict[str, Any]:
    """Return the members for the ``start`` of a response (``Profile.settings``): the id that the application chose."""
    return {"messageId": request.exchange[wire.ANSWER_ID]} if wire.ANSWER_ID in request.exchange else {}


@define
class WrittenPart:
    """The open part of text or reasoning."""

    kind: Literal["text", "reasoning"]
    block: int
    id: bytes
    signer: str = ""
    signature: list[str] = field(factory=list)  #: pieces of the signature


@define
class WrittenCall:
    """A call that was started, and its end after it finished."""

    start: ToolCallStarted
    shown: dict[str, Any]  #: the members about its presentation, which its last chunk repeats
    error: str  #: why the input is wrong, if this dialect's server said so
    finished: ToolCallFinished | None = None
    approval: Approval | None = None  #: what the user is to approve, if that is what the call is about


def _is_sound(*written: Mapping[str, Any]) -> bool:
    """Return whether clients accept each of the chunks, and the members of chunks, that an aside has."""
    return not any(wire.is_refused(dumps(each)) or wire.wrong_members(each.get("type", ""), each) for each in written)


def one_line(text: str) -> str:
    """Return JSON text without line ends, which are only between tokens."""
    return text.strip().replace("\r", " ").replace("\n", " ")


class AISDKEncoder(OneChoiceEncoder):
    """Encodes one choice of a response as a UI message stream."""

    native = wire.VENDOR
    vendor = wire.VENDOR
    media_form = staticmethod(write_file)

    _begun = False
    _drawn = False  # whether the step has content
    _part: WrittenPart | None = None
    _phase: tuple[int, str] | None = None  # the block of the latest text that has a phase, and the phase
    _parts_begun = 0
    _refused = False
    _held_chars = 0
    _stop: ResponseFinished | None = None

    def __init__(self, encoding: Encoding, report: StreamReport) -> None:
        super().__init__(encoding, report)
        self._strict = wire.is_strict(encoding.profile)
        self._calls: dict[int, WrittenCall] = {}
        self._asides: list[Mapping[str, Any]] = []  # calls of this dialect that the user is to approve
        self._known: set[str] = set()  # ids of calls that were started: clients refuse a request about any other
        self._sources: set[str] = set()  # ids of cited pages
        self._parts_seen: set[tuple[str, int]] = set()  # kinds and blocks of the parts that were begun

    def _chunk(self, kind: str, **members: Any) -> None:
        if kind == "tool-input-start":
            self._known.add(members["toolCallId"])
        self._payload(dumps({"type": kind, **members}))

    def _payload(self, payload: bytes) -> None:
        if not self._begun:
            self.response_started(ResponseStarted())
        self._drawn = True
        self.write(b"data: %b\n\n" % payload)

    def response_started(self, event: ResponseStarted) -> None:
        """Begin the message with the application's id, and without the provider's.

        In a continuation, another id than the message's own would duplicate the message (ui-protocols.md §1.7).
        """
        self._begun = True
        self._vendor = event.vendor
        start: dict[str, Any] = {"type": "start", **self.encoding.profile.settings}
        if event.vendor == wire.VENDOR and event.id:
            start["messageId"] = event.id
        extras = dict(self.response_extras(event))
        if wire.is_refused(dumps(extras)):
            self.lose("response_fields")
        else:
            start |= extras
        self.write(b"data: %b\n\n" % dumps(start) + START_STEP)

    def _open(self, kind: Literal["text", "reasoning"], block: int) -> WrittenPart:
        """Return the part for a delta: the open one, or a new one with a new id."""
        part = self._part
        if part is not None and part.kind == kind and part.block == block:
            return part
        self._close_part()
        if (kind, block) in self._parts_seen:  # clients do not accept deltas for a part that has ended
            self.lose("block_boundary")
        self._parts_seen.add((kind, block))
        part = self._part = WrittenPart(kind, block, b"%b%d" % (kind[:1].encode(), self._parts_begun))
        self._parts_begun += 1
        phase = self._phase[1] if kind == "text" and self._phase is not None and self._phase[0] == block else None
        self._chunk(f"{kind}-start", id=part.id.decode(), **wire.phase_of(phase))
        return part

    def _close_part(self) -> None:
        part, self._part = self._part, None
        if part is not None:
            opaque = Opaque(part.signer, "".join(part.signature)) if part.signature else None
            self._chunk(f"{part.kind}-end", id=part.id.decode(), **wire.metadata_of(part.kind, opaque))

    def _delta(self, part: WrittenPart, text: str) -> bytes:
        return b'data: {"type":"%b-delta","id":"%b","delta":%b}\n\n' % (part.kind.encode(), part.id, dumps(text))

    def text(self, event: TextDelta) -> None:
        self.write(self._delta(self._open("text", event.block), event.text))

    def refusal(self, event: RefusalDelta) -> None:
        if not self._refused:
            self._refused = True
            self.lose("refusal_as_text")
        self.write(self._delta(self._open("text", event.block), event.text))

    def reasoning(self, event: ReasoningDelta) -> None:
        self.write(self._delta(self._open("reasoning", event.block), event.text))

    def signature(self, event: ReasoningSignature) -> None:
        """Keep a signature for the end of its part, because clients keep the last metadata. Begin a part if there is none."""
        kind: Literal["text", "reasoning"] = "text" if event.on == "text" else "reasoning"
        part = self._part if (kind, event.block) in self._parts_seen else self._open(kind, event.block)
        is_open = part is not None and (part.kind, part.block) == (kind, event.block)
        if part is None or not is_open or (part.signature and part.signer != event.vendor):
            self.lose("reasoning_signature")
            return
        self._hold(len(event.blob))
        part.signer = event.vendor
        part.signature.append(event.blob)

    def opaque(self, event: ReasoningOpaque) -> None:
        """Write opaque reasoning as the metadata of a reasoning part without text."""
        self._close_part()
        name = f"r{self._parts_begun}"
        self._parts_begun += 1
        self._chunk("reasoning-start", id=name, **wire.metadata_of("opaque", Opaque(event.vendor, event.blob)))
        self._chunk("reasoning-end", id=name)

    def call_started(self, event: ToolCallStarted) -> None:
        if not event.name:
            return  # a call without a name is withheld when it ends
        self._close_part()
        shown = dict(self.own_extras(event.extras))
        if wire.wrong_members("", shown):
            self.lose("metadata")
            shown = {}
        call = self._calls[event.call] = WrittenCall(event, shown, shown.pop(wire.ERROR_TEXT, ""))
        if not self._asks(event):
            self._start_call(call)

    def _asks(self, event: ToolCallStarted | ToolCallFinished) -> bool:
        """Return whether a call is written as a request for the user's approval. Clients of version 5 know no such request."""
        return not self._strict and is_approval(event.id, event.name)

    def _start_call(self, call: WrittenCall) -> None:
        event = call.start
        encoding = {"inputEncoding": "text"} if event.kind == "custom" and not self._strict else {}
        self._chunk("tool-input-start", toolCallId=event.id, toolName=event.name, **encoding, **call.shown)

    def call_arguments(self, event: ToolCallArguments) -> None:
        call = self._calls.get(event.call)
        if call is not None and event.fragment and not self._asks(call.start):
            self._chunk("tool-input-delta", toolCallId=call.start.id, inputTextDelta=event.fragment)

    def call_finished(self, event: ToolCallFinished) -> None:
        call = self._calls.get(event.call)
        if call is None:
            self.withhold(event)
            return
        self._hold(len(event.arguments))
        call.finished = event
        if not self._asks(event):
            return
        call.approval = approval_in(event.id, event.name, event.arguments)
        if call.approval is None:
            self._start_call(call)
            if event.arguments:
                self._chunk("tool-input-delta", toolCallId=event.id, inputTextDelta=event.arguments)

    def _hold(self, chars: int) -> None:
        self._held_chars += chars
        if self._held_chars > self.encoding.limits.held_chars:
            raise HeldTooLong(self.encoding.limits.held_chars)

    def _end_call(self, begun: WrittenCall, call: ToolCallFinished) -> None:
        """Make a call available after the response is complete. If it cannot be run, write an error for the model instead."""
        verdict = call.verdict or check_arguments(call.arguments, depth=self.encoding.limits.json_depth)
        if not call.ended or verdict.kind == "truncated":
            return  # a client shows the call as still streaming, and does not run it
        text, error = call.arguments.strip(), begun.error
        kind, members = "tool-input-available", dict[str, Any](input=call.arguments)
        if not text and call.kind != "custom":
            members["input"] = {}
        elif call.kind != "custom" and (
            verdict.kind in {"malformed", "not_an_object"} or wire.is_refused(text.encode())
        ):
            error = error or verdict.reason or "the arguments cannot be read"
        elif call.kind != "custom":
            members["input"] = orjson.Fragment(one_line(text).encode())
        if error:
            kind, members[wire.ERROR_TEXT] = "tool-input-error", error
        members |= {**begun.shown, **wire.metadata_of("call", begun.start.signature)}
        self._chunk(kind, toolCallId=call.id, toolName=call.name, **members)

    def _ask(self, approval: Approval) -> None:
        """Request the user's approval, as the AI SDK's own providers do: for a call that the provider will run."""
        call: dict[str, Any] = {"toolCallId": approval.call_id, "toolName": f"{wire.MCP}{approval.tool}"}
        call |= {"dynamic": True, "providerExecuted": True}
        is_json = check_arguments(approval.arguments).kind == "complete" and not wire.is_refused(
            approval.arguments.encode()
        )
        given = orjson.Fragment(one_line(approval.arguments).encode()) if is_json else approval.arguments
        server = {"providerMetadata": {MADE: {wire.SERVER: approval.server}}}
        self._chunk("tool-input-start", **call)
        self._chunk("tool-input-available", **call, input=given, **server)
        self._chunk(wire.ASKS, approvalId=approval.id, toolCallId=approval.call_id)

    def any_aside(self, event: Aside) -> None:
        if event.type == PHASE and isinstance(event.raw, str) and ("text", event.block) not in self._parts_seen:
            self._phase = event.block, event.raw  # written where the text begins
        else:
            super().any_aside(event)

    def aside(self, event: Aside) -> None:
        raw = event.raw
        is_chunk = isinstance(raw, dict) and raw.get("type") == event.type and not wire.wrong_members(event.type, raw)
        if is_chunk and (event.type in wire.ASIDES or event.type.startswith(("data-", "tool-input-"))):
            source, written = raw.get("sourceId"), dumps(raw)
            if isinstance(source, str) and source.startswith(MADE_SOURCE):  # an id that streamkit made from a URL
                if source in self._sources:
                    return
                self._sources.add(source)
            if not wire.is_refused(written) and (event.type != wire.ASKS or raw["toolCallId"] in self._known):
                if event.type.startswith("tool-input-"):
                    self._known.add(raw["toolCallId"])
                self._payload(written)
                return
        elif event.type == ASKED and _is_sound(raw["native"], raw["native"]["request"]):
            self._asides.append(raw["native"])
            return
        elif event.type == wire.ANSWERED_CALL and _is_sound(raw, raw["output"], raw.get("request", {})):
            self._answered(raw)
            return
        self.lose(event.kind)

    def _answered(self, raw: Mapping[str, Any]) -> None:
        """Write a call that the server ran. Its input never becomes available, because a client would run the call, too."""
        named = {name: value for name, value in raw.items() if name not in ANSWERED}
        self._chunk("tool-input-start", **named)
        if raw["arguments"]:
            self._chunk("tool-input-delta", toolCallId=raw["toolCallId"], inputTextDelta=raw["arguments"])
        if wire.ERROR_TEXT in raw:
            self._chunk("tool-input-error", **named, input=raw["arguments"], errorText=raw[wire.ERROR_TEXT])
        if "request" in raw:
            self.write(b"data: %b\n\n" % dumps(raw["request"]))
        self.write(b"data: %b\n\n" % dumps(raw["output"]))

    def _requested(self, native: Mapping[str, Any]) -> None:
        """Write a call that the user is to approve. If the provider runs the call, its own chunks are written already."""
        if not native["executed"]:
            named = {name: value for name, value in native.items() if name not in REQUESTED}
            is_custom = native["kind"] == "custom"
            encoding = {"inputEncoding": "text"} if is_custom and not self._strict else {}
            self._chunk("tool-input-start", **named, **encoding)
            text = native["arguments"]
            given = text if is_custom else orjson.Fragment((one_line(text) or "{}").encode())
            self._chunk("tool-input-available", **named, input=given, **native["metadata"])
        self._payload(dumps(native["request"]))

    def finished(self, event: ResponseFinished) -> None:
        self._stop = event

    def terminate(self) -> None:
        if not self._begun:
            self.response_started(ResponseStarted())
        self._close_part()
        stop = self._stop or ResponseFinished("stop")
        for call in self._calls.values():
            if call.finished is None:
                continue
            if stop.reason in REFUSED:  # a client runs each available call, whatever the reason
                self.withhold(call.finished)
            elif call.approval is not None:
                self._ask(call.approval)
            else:
                self._end_call(call, call.finished)
        for native in self._asides:
            if stop.reason in REFUSED or (native["executed"] and native["toolCallId"] not in self._known):
                self.lose("client_tool")
            else:
                self._requested(native)
        if not self._drawn:
            self.write(EMPTY_TEXT)
        called = bool(self._calls or self._asides)
        word = stop_word(wire.finish_reason(stop.reason, called=called), stop.stop_sequence, self.report)
        finish: dict[str, Any] = {"type": "finish"}
        if self._strict:
            self.lose("stop_reason")
        else:
            finish["finishReason"] = word
        if self._usage is not None and (usage := wire.encode_usage(self._usage, self.report)):
            if wire.is_refused(dumps(usage)):
                self.lose("usage_detail")
            else:
                finish["messageMetadata"] = {"usage": usage}
        self.write(FINISH_STEP + b"data: %b\n\n" % dumps(finish) + DONE)

    def error(self, event: ProviderFailed) -> None:
        """Write the last chunk of a failed response. Open parts are not ended, because they would look complete."""
        if has_detail(event, wire.VENDOR):
            self.lose("error_detail")
        for _ in self._asides:
            self.lose("client_tool")
        self.write(b"data: %b\n\n" % dumps({"type": "error", "errorText": event.message}))
