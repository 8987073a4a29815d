"""Encode events as Gemini chunks, and whole responses.

Chunks are events with only ``data`` and CRLF, since the official client accepts no other line. Parts of a candidate may be in
any order, so text and thoughts are written at once. A call is complete in one part, so it is held until its arguments are
complete, and calls are written in the order in which they began. Google's own signature is written on its original part.
Another vendor's signature is written in streamkit's marked form ("sealed") on an empty part after its block. The last chunk
has the finish reasons and the usage. A failed stream gets an object whose first key is ``error``, and no finish reason.

A whole response has its parts in their order, signed as in a stream. A member next to a part is written on that part again,
and pieces of a candidate's member are joined. Losses are counted as in streams.

Source: dialects.md §5.1-§5.4, §0.4, §7.2, §7.5.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import orjson
from attrs import define, field

from streamkit.conversation.messages import Choice, Part, Reasoning, RedactedReasoning, Refusal, Text, ToolCall
from streamkit.dialects.bodies.google import VENDOR, encode_error, is_base64, signature_blob
from streamkit.dialects.bodies.responses import ResponseWriter
from streamkit.dialects.gemini.asides import write_media
from streamkit.dialects.gemini.wire import USAGE, finish_reason, wrong_members
from streamkit.dialects.members.fields import add_missing, without_none
from streamkit.dialects.members.values import name_of
from streamkit.dialects.profiles import Encoding
from streamkit.dialects.streams.event_encoder import EventEncoder, encode_time, object_arguments, stop_word
from streamkit.dialects.streams.whole_call_encoder import CallOrder
from streamkit.dialects.vocabulary.sealed_reasoning import Kind, seal
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
    ToolCallFinished,
    ToolCallStarted,
)
from streamkit.report import StreamReport
from streamkit.text.one_string import OneString, one_string

dumps = orjson.dumps
THOUGHT, SIGNATURE = b',"thought":true', b',"thoughtSignature":'


@define
class _OpenChoice:
    """What a client knows of a candidate so far, and the calls that are not written yet."""

    kind: type | None = None  #: kind of the block that the next unsigned part would continue
    block: int = 0
    thought: OneString = field(factory=OneString)
    calls: CallOrder = field(factory=CallOrder)
    behind_call: bool = False  #: whether the next part follows a call
    called: bool = False  #: whether a call was written
    refused: bool = False


class GeminiEncoder(EventEncoder):
    """Encodes the chunks of a stream. Each choice is a candidate."""

    vendor = VENDOR
    waits = True
    one_text = True
    media_form = staticmethod(write_media)

    def __init__(self, encoding: Encoding, report: StreamReport) -> None:
        super().__init__(encoding, report)
        self._tail = b',"modelVersion":%b' % dumps(encoding.profile.model) if encoding.profile.model else b""
        self._choices: defaultdict[int, _OpenChoice] = defaultdict(_OpenChoice)
        self._text: TextDelta | ReasoningDelta | None = None  #: held until the next event: it may sign the text
        self._blocked: Any = None  #: the feedback to a blocked prompt
        self._stops: list[ResponseFinished] = []

    def end_read(self) -> None:
        if self._text is not None:
            self._write_text()  # a held text must not wait until the server sends more
        self.holds = False

    def response_started(self, event: ResponseStarted) -> None:
        tail = without_none(
            modelVersion=event.model or self.encoding.profile.model or None,
            createTime=None if event.created is None else encode_time(event.created),
            responseId=event.id,
        )
        tail.update(self.response_extras(event))
        self._tail = b"," + dumps(tail)[1:-1] if tail else b""

    def _chunk(self, fields: bytes) -> None:
        if self._text is not None:
            self._write_text()
        self.write(b"data: {%b%b}\r\n\r\n" % (fields, self._tail))

    def _part(self, choice: int, part: bytes) -> None:
        self._chunk(b'"candidates":[{"content":{"parts":[{%b}],"role":"model"},"index":%d}]' % (part, choice))

    def text(self, event: TextDelta | ReasoningDelta) -> None:
        if self._text is not None:
            self._write_text()
        self._keep_order(event.choice)
        self._text, self.holds = event, True

    reasoning = text

    def refusal(self, event: RefusalDelta) -> None:
        choice = self._choices[event.choice]
        if not choice.refused:
            choice.refused = True
            self.lose("refusal_as_text")
        self.text(TextDelta(event.text, event.choice, event.block))

    def _keep_order(self, number: int) -> None:
        choice = self._choices[number]
        if choice.calls and choice.behind_call:  # a call began before this part, and is written after it
            choice.behind_call = False
            self.lose("block_order")

    def _write_text(self, signature: bytes = b"") -> None:
        event, self._text = self._text, None
        if event is None:
            return
        choice = self._choices[event.choice]
        kind = type(event)
        if choice.kind is kind and choice.block != event.block and not signature:
            self.lose("block_boundary")  # clients join adjacent unsigned parts of one kind
            if kind is ReasoningDelta:
                choice.thought.begin()
        choice.kind, choice.block = None if signature else kind, event.block
        text, thought = event.text, b""
        if kind is ReasoningDelta:
            text, thought = choice.thought.before(text) + text, THOUGHT
        self._part(event.choice, b'"text":%b%b%b' % (dumps(text), thought, signature))

    def signature(self, event: ReasoningSignature) -> None:
        blob = signature_blob(event.on, event.vendor, event.blob)
        field = SIGNATURE + dumps(blob)
        is_own = event.vendor == VENDOR and blob == event.blob
        text, kind = self._text, TextDelta if event.on == "text" else ReasoningDelta
        # only for Gemini's streams: in others, text and signature may arrive in separate reads, and the output must not differ
        is_alone = type(text) is kind and (text.choice, text.block) == (event.choice, event.block)
        if is_own and self._vendor == VENDOR and is_alone and not self._goes_on(kind, event):
            self._write_text(field)
            return
        if text is not None:
            self._write_text()
        if is_own and self._goes_on(kind, event):
            self.lose("block_boundary")  # clients take the signed part as a separate block
        self._sign(event.choice, field, thought=event.on == "reasoning")

    def _goes_on(self, kind: type, event: ReasoningSignature) -> bool:
        """Return whether the text that was written last belongs to the signed block."""
        choice = self._choices[event.choice]
        return choice.kind is kind and choice.block == event.block

    def opaque(self, event: ReasoningOpaque) -> None:
        """Write opaque reasoning in streamkit's marked form ("sealed"), even Google's, because Gemini has no block for it."""
        self._sign(event.choice, SIGNATURE + dumps(seal("opaque", event.vendor, event.blob)), thought=True)

    def _sign(self, number: int, signature: bytes, *, thought: bool) -> None:
        self._keep_order(number)
        self._part(number, b'"text":""%b%b' % (THOUGHT if thought else b"", signature))
        self._choices[number].kind = None

    def call_started(self, event: ToolCallStarted) -> None:
        choice = self._choices[event.choice]
        choice.calls.start(event)
        choice.behind_call = True
        if event.extras and self._vendor != VENDOR:
            self.lose("metadata")

    def call_finished(self, event: ToolCallFinished) -> None:
        """Write a finished call, but hold it while a call that began earlier is not finished."""
        choice = self._choices[event.choice]
        for start, finished in choice.calls.finish(event):
            self._write_call(choice, start, finished)

    def _write_call(self, choice: _OpenChoice, started: ToolCallStarted, event: ToolCallFinished) -> None:
        arguments = object_arguments(event, self.encoding.limits, self.report)
        if arguments is None or not event.name:
            self.withhold(event)
            return
        extras = b"," + dumps(started.extras)[1:-1] if started.extras and self._vendor == VENDOR else b""
        opaque, signature = started.signature, b""
        if opaque is not None:
            signature = SIGNATURE + dumps(signature_blob("call", opaque.vendor, opaque.blob))
        call = dumps(event.name), arguments, dumps(event.id), extras, signature
        self._part(event.choice, b'"functionCall":{"name":%b,"args":%b,"id":%b%b}%b' % call)
        choice.called, choice.kind = True, None

    def aside(self, event: Aside) -> None:
        name, value = event.type, event.raw
        if event.kind == "unknown_event" or (name == "part" and wrong_members(value)):
            self.lose(event.kind)
        elif name == "part":
            self._part(event.choice, dumps(value)[1:-1])
            self._choices[event.choice].kind = None
        elif name.startswith("part."):
            self._part(event.choice, b'"text":"",' + dumps({name.removeprefix("part."): value})[1:-1])
        elif name.startswith("candidates."):
            known = dumps({"index": event.choice, name.removeprefix("candidates."): value})
            self._chunk(b'"candidates":[%b]' % known)
        elif name == "promptFeedback" and isinstance(value, dict) and value.get("blockReason"):
            self._blocked = value  # the feedback ends the stream, so it is written last
        else:
            self._chunk(dumps({name: value})[1:-1])

    def finished(self, event: ResponseFinished) -> None:
        self._stops.append(event)

    def flush(self) -> None:
        if self._blocked is not None:
            self.lose("metadata")

    def terminate(self) -> None:
        usage = b""
        if self._usage is not None:
            usage = b',"usageMetadata":' + dumps(USAGE.encode(self._usage, self.report))
        stops = self._stops or [ResponseFinished("stop")]
        fields = []
        if self._blocked is not None:  # a blocked prompt is the reason why the first candidate has none
            fields.append(b'"promptFeedback":' + dumps(self._blocked))
            stops = [stop for stop in stops if stop.choice]
        if stops:
            fields.append(b'"candidates":[%b]' % b",".join(self._last(stop) for stop in stops))
        self._chunk(b",".join(fields) + usage)

    def _last(self, stop: ResponseFinished) -> bytes:
        """Return a candidate with its reason and an empty text, which is how Google ends one."""
        native = stop.native if self._vendor == VENDOR else None
        found = finish_reason(stop.reason, native, called=self._choices[stop.choice].called)
        reason = stop_word(found, stop.stop_sequence, self.report)
        ended = b'{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":%b,"index":%d}'
        return ended % (dumps(reason), stop.choice)

    def error(self, event: ProviderFailed) -> None:
        body = encode_error(event, self.report)
        self._write_text()
        self.write(b'data: {"error":%b}\r\n\r\n' % dumps(body))  # clients recognise an error only by the first key


class GeminiResponseWriter(ResponseWriter):
    """Writes a response as one body."""

    vendor = VENDOR
    media_form = staticmethod(write_media)
    # The next three are reset for each candidate:
    _parts: list[dict[str, Any]]  # the parts written so far
    _called: bool  # whether a call was written
    _kind: type | None  # the kind of the last part, if unsigned: a reader joins the next part of this kind to it

    def error(self, failure: ProviderFailed) -> dict[str, Any]:
        return {"error": encode_error(failure, self.report)}

    def answer(self) -> dict[str, Any]:
        response = self.response
        written = [self.candidate(choice) for choice in response.choices or [Choice(stop_reason="stop")]]
        usage = response.usage
        body = without_none(
            candidates=[candidate for candidate in written if candidate] or None,
            usageMetadata=None if usage is None else USAGE.encode(usage, self.report),
            modelVersion=response.model or self.encoding.profile.model or None,
            createTime=None if response.created is None else encode_time(response.created),
            responseId=response.id,
        )
        return add_missing(add_missing(body, self.members), self.own_extras(response.extras, "response_fields"))

    def candidate(self, choice: Choice) -> dict[str, Any]:
        """Return one candidate; an empty object if the prompt was blocked, because ``promptFeedback`` then has the reason."""
        self._parts, self._called, self._kind = [], False, None
        if choice.refusal:
            self.report.lose("refusal_as_text")
        for part in choice.parts:
            self._part(part)
        written: dict[str, Any] = {"content": {"parts": self._parts or [{"text": ""}], "role": "model"}}
        for aside in choice.asides:
            self._candidate_aside(aside, written)
        feedback = self.members.get("promptFeedback")
        is_blocked = choice.index == 0 and isinstance(feedback, dict) and bool(feedback.get("blockReason"))
        if is_blocked and not self._parts:
            return {}
        if not is_blocked:
            native = choice.native_stop_reason if self.own else None
            found = finish_reason(choice.stop_reason or "other", native, called=self._called)
            written["finishReason"] = stop_word(found, choice.stop_sequence, self.report)
        elif choice.stop_sequence is not None:
            self.report.lose("stop_sequence")
        return {**written, "index": choice.index}

    def _candidate_aside(self, aside: Aside, candidate: dict[str, Any]) -> None:
        """Write an aside of this dialect as a member of the candidate or of the response; count any other as lost."""
        name = aside.type
        if aside.vendor != VENDOR or aside.kind == "unknown_event":
            self.report.lose(aside.kind, what=name_of(aside))
        elif name.startswith("candidates."):
            self._put(candidate, name.removeprefix("candidates."), aside)
        elif name != "part" and not name.startswith("part."):
            self._put(self.members, name, aside)

    def _put(self, place: dict[str, Any], name: str, aside: Aside) -> None:
        """Write a member. If the member arrived several times, lists are joined, and of other values the last is kept."""
        before, value = place.get(name), aside.raw
        if _are_lists(value) and (self.growing.owns(before) or _are_lists(before)):
            joined = self.growing.inner(place, name)
            for key, items in value.items():
                self.growing.extend(joined, key, items)
            return
        if before is not None and before != value:
            self.report.lose(aside.kind, what=aside.type)
        place[name] = value

    def _part(self, part: Part) -> None:
        match part:
            case Text() | Refusal():
                self._text({"text": part.text}, Text, "text", part.signature if isinstance(part, Text) else None)
            case Reasoning():
                self._text({"text": part.text, "thought": True}, Reasoning, "reasoning", part.signature)
            case RedactedReasoning():
                self._sealed("opaque", part.opaque)
            case ToolCall():
                self._call(part)
            case Aside():
                self._aside(part)
            case _:
                raise TypeError(f"a response can't contain a {type(part).__name__}")

    def _text(self, part: dict[str, Any], kind: type, place: Kind, signature: Opaque | None) -> None:
        if signature is not None and signature.vendor == VENDOR and is_base64(signature.blob):
            self._parts.append({**part, "thoughtSignature": signature.blob})
            self._kind = None
            return
        if part["text"]:
            if self._kind is kind:
                self.report.lose("block_boundary")  # a reader joins neighbouring unsigned parts of one kind
                if kind is Reasoning:
                    before = self._parts[-1]["text"]
                    part["text"] = one_string([before, part["text"]])[len(before) :]
            self._parts.append(part)
            self._kind = kind
        if signature is not None:
            self._sealed(place, signature)

    def _sealed(self, kind: Kind, opaque: Opaque) -> None:
        """Write another vendor's signature or data in streamkit's marked form ("sealed") on a part without text."""
        thought = {} if kind == "text" else {"thought": True}
        blob = seal(kind, opaque.vendor, opaque.blob)
        self._parts.append({"text": "", **thought, "thoughtSignature": blob})
        self._kind = None

    def _call(self, call: ToolCall) -> None:
        text = object_arguments(call, self.encoding.limits, self.report) if call.name else None
        if text is None:
            self.withhold(call)
            return
        body: dict[str, Any] = {"name": call.name, "args": orjson.Fragment(text), "id": call.id}
        part: dict[str, Any] = {"functionCall": add_missing(body, self.own_extras(call.extras))}
        if call.signature is not None:
            part["thoughtSignature"] = signature_blob("call", call.signature.vendor, call.signature.blob)
        self._parts.append(part)
        self._called, self._kind = True, None

    def _aside(self, aside: Aside) -> None:
        """Write an aside that is a whole part, or a member of the part before it."""
        if aside.vendor != VENDOR or aside.kind == "unknown_event":
            return  # counted in ``_candidate_aside``
        if aside.type == "part" and wrong_members(aside.raw):
            self.report.lose(aside.kind, what=name_of(aside))
        elif aside.type == "part":
            self._parts.append(dict(aside.raw))
            self._kind = None
        elif aside.type.startswith("part."):
            if not self._parts:
                self._parts.append({"text": ""})
            add_missing(self._parts[-1], {aside.type.removeprefix("part."): aside.raw})


def _are_lists(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(items, list) for items in value.values())
