"""Read and write Gemini's whole responses: ``generateContent``, a streamed array as one body, and error bodies.

A whole response has the shape of a chunk, so the stream decoder reads it; an array is read as a stream of chunks. Parts are
written in their order, signed as in a stream (``encode.py``). A member next to a part is written on that part again, and
pieces of a candidate's member are joined. Losses are counted as in streams.

Source: dialects.md §5.1-§5.4, §7.2, §7.5 (responses, stop reasons and usage).
"""

from __future__ import annotations

from typing import Any

import orjson

from streamkit.conversation.messages import Choice, Part, Reasoning, RedactedReasoning, Refusal, Text, ToolCall
from streamkit.dialects.bodies.json_members import add_missing, without_none
from streamkit.dialects.bodies.response_writer import ResponseWriter
from streamkit.dialects.gemini.asides import write_media
from streamkit.dialects.gemini.decode import GeminiDecoder
from streamkit.dialects.gemini.wire import USAGE, finish_reason
from streamkit.dialects.streams.event_encoder import encode_time, object_arguments, stop_word
from streamkit.dialects.vocabulary.google import VENDOR, encode_error, is_base64, signature_blob
from streamkit.dialects.vocabulary.sealed_reasoning import Kind, seal
from streamkit.events import Aside, Opaque, ProviderFailed, WireEvent
from streamkit.framing.frame import Frame
from streamkit.framing.json_array import JSONArrayParser
from streamkit.limits import Limits
from streamkit.report import StreamReport
from streamkit.text.one_string import one_string


class GeminiBodyDecoder(GeminiDecoder):
    """Reads a whole body: a response, a streamed array of responses, or an error."""

    @classmethod
    def decode_response(cls, body: bytes, limits: Limits, report: StreamReport) -> list[WireEvent]:
        if body.lstrip()[:1] != b"[":
            return super().decode_response(body, limits, report)
        return cls(limits, report).read_whole(_elements(body, limits, report))


def _elements(body: bytes, limits: Limits, report: StreamReport) -> list[Frame]:
    """Return the chunks of a streamed array. Its bytes are already counted as one body: only repairs go into ``report``."""
    parser = JSONArrayParser(limits=limits, report=(counted := StreamReport()))
    frames = [*parser.feed(body), *parser.finish()]
    if parser.fault is not None:
        raise parser.fault
    for repair in counted.repairs:
        report.repair(repair)
    return frames


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
            self.report.lose(aside.kind, what=name)
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
                raise TypeError(f"a response has no {type(part).__name__}")

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
        if aside.type == "part":
            self._parts.append(dict(aside.raw))
            self._kind = None
        elif aside.type.startswith("part."):
            if not self._parts:
                self._parts.append({"text": ""})
            add_missing(self._parts[-1], {aside.type.removeprefix("part."): aside.raw})


def _are_lists(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(items, list) for items in value.values())
