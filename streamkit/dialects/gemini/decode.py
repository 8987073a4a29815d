"""Decode Gemini chunks to wire events, in either framing, and whole bodies: a response has the shape of a chunk.

There is no terminator: a stream is complete when every candidate has its ``finishReason``, or when the prompt was blocked.
Reading continues after a reason, because some servers write ``STOP`` in every chunk. Usage is a growing total. Unknown fields
of the first chunk are the response's extras; later ones are asides.

Adjacent unsigned parts of one kind are one streamed block. A signature is bound to its part (dialects.md §5.3), so a signed
part is a separate block, and never merged. streamkit writes another vendor's signature in a marked form ("sealed") on an empty
part; such a part signs and ends the block before it.

A call is complete in one part, which also ends it, unless it has ``willContinue``. Then parts without a name continue it, and
the first of them without ``willContinue`` ends it. If a call is open when the candidate stops by itself, it ends there if its
values are complete; otherwise it was truncated. So was a call of which a part can't be read. Calls are numbered in order.
Ids are optional, so a made id is not a repair.

Source: dialects.md §5.1-§5.4, §7.6, quirks.md R14, 22, 89.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from attrs import define, field

from streamkit.dialects.bodies.google import ERROR_TYPES, MOST_TOKENS, VENDOR, is_error
from streamkit.dialects.gemini.asides import MEDIA, read_media
from streamkit.dialects.gemini.partial_args import PartialArgs
from streamkit.dialects.gemini.wire import CHUNK_FIELDS, STOP_REASONS, UNSPECIFIED, USAGE
from streamkit.dialects.members.values import UNREAD, Members, decode_time, has_value, others_of, text_of
from streamkit.dialects.streams.frame_decoder import FrameDecoder
from streamkit.dialects.vocabulary.roles import is_other_role
from streamkit.dialects.vocabulary.sealed_reasoning import unseal, unsealed
from streamkit.errors import TooManyBlocks, TooManyChoices, TooManyToolCalls
from streamkit.events import (
    Aside,
    AsideKind,
    ChoiceStarted,
    Opaque,
    ReasoningDelta,
    ReasoningOpaque,
    ReasoningSignature,
    ResponseStarted,
    StopReasonSeen,
    TextDelta,
    ToolCallDelta,
    ToolCallEnded,
    WireEvent,
)
from streamkit.framing.json_array import JSONArrayParser
from streamkit.limits import Limits
from streamkit.report import StreamReport
from streamkit.tool_calls.ending import FAILING
from streamkit.tool_calls.value_text import lenient_text, member_texts

CONTENT = Members("parts", "role")
MESSAGE = "finishMessage"  # explains the finish reason, or is the error message if the reason means a failure
CANDIDATE_FIELDS = frozenset({"index", "content", "finishReason"})
#: The kind of aside for each known field of a candidate. Any other field becomes an aside of the kind ``metadata``.
ASIDES: dict[str, AsideKind] = {
    **dict.fromkeys(
        ("citationMetadata", "groundingMetadata", "groundingAttributions", "urlContextMetadata"), "citation"
    ),
    **dict.fromkeys(("logprobsResult", "avgLogprobs"), "logprobs"),
}
TEXT_FIELDS = frozenset({"text", "thought", "thoughtSignature"})
READ_FIELDS = TEXT_FIELDS | {"functionCall"}  # others become asides
CALL_FIELDS = frozenset({"id", "name", "args", "partialArgs", "willContinue"})
CALL = Members(*CALL_FIELDS)
PARTIAL = Members("jsonPath", "stringValue", "numberValue", "boolValue", "nullValue", "willContinue")
PLACES = ("part", "candidates.")  # how the types of asides for parts, their members, and members of candidates begin
#: Members that make a part one which the decoder keeps unchanged as an aside, with the kind of aside.
ASIDE_PARTS: dict[str, AsideKind] = {
    **dict.fromkeys(MEDIA, "metadata"),
    **dict.fromkeys(("executableCode", "codeExecutionResult", "toolCall", "toolResponse"), "server_tool"),
    "functionResponse": "server_tool",
}
KINDS = frozenset({"text", "functionCall", *ASIDE_PARTS})  # the members that say what a part is
Place: TypeAlias = tuple[int, int, list[Any]]  # positions of the candidate and the part, and all parts


@define
class OpenCall:
    """A call whose arguments arrive in parts."""

    index: int
    id: str
    name: str
    arguments: PartialArgs


@define
class Candidate:
    """What the decoder knows of a candidate after each part."""

    choice: int
    block: int = -1  #: the number of the latest block
    kind: type | None = None  #: the kind of that block, as long as it may continue
    calls: int = 0
    open: OpenCall | None = None
    left: list[OpenCall] = field(factory=list)  #: calls that were open when another call began
    stopped: bool | None = None  #: whether the model stopped by itself (not at a limit); None before a finish reason
    sealed: Opaque | None = None  #: another vendor's signature for the next call


def recognises(_event: str, document: Any) -> bool:
    """Return whether a payload may be a Gemini chunk."""
    if not isinstance(document, dict):
        return False
    error = document.get("error")
    return (
        isinstance(document.get("candidates"), list | dict)
        or "usageMetadata" in document
        or isinstance(document.get("promptFeedback"), dict)
        or (isinstance(error, dict) and isinstance(error.get("status"), str) and "message" in error)
    )


class GeminiDecoder(FrameDecoder):
    """Decodes chunks. A whole response is one chunk."""

    dialect = "gemini"
    vendor = VENDOR
    error_types = ERROR_TYPES
    idle = frozenset()
    frame_name = "frame"  # what error messages call a frame that is no chunk

    _extras: Mapping[str, Any] = {}
    _usage: Any = None
    _blocks = 0
    _calls = 0
    #: The JSON texts of the arguments of the candidate's calls, by the position of the part. None until a call needs them.
    _arguments_of: dict[int, str] | None = None
    #: The JSON texts of the candidate's parts. None unless the arguments could not be found in the frame without them.
    _texts: list[bytes] | None = None

    def __init__(self, limits: Limits, report: StreamReport) -> None:
        super().__init__(limits, report)
        self._candidates: dict[int, Candidate] = {}

    @classmethod
    def decode_response(cls, body: bytes, limits: Limits, report: StreamReport) -> list[WireEvent]:
        """Read a whole body: a response, a streamed array of responses, or an error."""
        if body.lstrip()[:1] != b"[":
            return super().decode_response(body, limits, report)
        # the bytes are already counted as one body: only repairs of the array go into ``report``
        parser = JSONArrayParser(limits=limits, report=(counted := StreamReport()))
        frames = [*parser.feed(body), *parser.finish()]
        if parser.fault is not None:
            raise parser.fault
        for repair in counted.repairs:
            report.repair(repair)
        return cls(limits, report).read_whole(frames)

    def close(self) -> None:
        """Emit the held arguments of open calls. If the model stopped by itself, end the calls whose values are complete."""
        for of in self._candidates.values():
            if of.open is not None:
                if of.stopped:
                    self.report.repair("block_unclosed")
                of.left.append(of.open)
            for call in of.left:
                ends = bool(of.stopped) and call.arguments.are_whole
                self._grown(call, call.arguments.close() if ends else call.arguments.cut(), of)
                if ends:
                    self.out.append(ToolCallEnded(call.index, of.choice))
            of.left, of.open = [], None

    def decode(self, document: dict[str, Any]) -> None:
        error, candidates = document.get("error"), document.get("candidates")
        if type(candidates) is not list and not (error or recognises("", document) or has_value(candidates)):
            self.unknown_frame("chunk", document)
            return
        self.recognised = True
        if not self._started and (not error or len(document) > 1):
            self._start(document)
        for position, candidate in enumerate(candidates if type(candidates) is list else self.items(candidates)):
            self._candidate(candidate, position)
        if "promptFeedback" in document and (feedback := self.fields(document["promptFeedback"])):
            self._feedback(feedback)
        usage = document.get("usageMetadata")
        if usage and usage != self._usage:
            self._usage = usage
            self._count(self.fields(usage))
        if not document.keys() <= CHUNK_FIELDS:
            for name, value in others_of(document, CHUNK_FIELDS).items():
                if name.startswith(PLACES):  # streamkit uses such names for asides of parts and candidates
                    self.out.append(Aside(VENDOR, "unknown_event", f"{UNREAD}{name}", value))
                elif self._extras.get(name) != value:
                    self.out.append(Aside(VENDOR, "metadata", name, value))
            self.read_error(document)
        elif error:
            self.read_error(document)

    def is_own_error(self, document: dict[str, Any], error: Any) -> bool:
        """Return whether the official client recognises the error: ``error`` must be the payload's first member."""
        return is_error(error) and next(iter(document)) == "error"

    def _start(self, document: dict[str, Any]) -> None:
        self._started = True
        self._extras = others_of(document, CHUNK_FIELDS)
        response_id, model = text_of(document.get("responseId")), text_of(document.get("modelVersion"))
        created = decode_time(document.get("createTime"))
        self.out.append(ResponseStarted(response_id, model, created, VENDOR, self._extras or None))

    def _choice(self, index: int) -> Candidate:
        """Return a new candidate for a choice that was not seen before. Raises TooManyChoices."""
        if len(self._candidates) >= self.limits.choices:
            raise TooManyChoices(self.limits.choices, offset=self.frame.offset)
        candidate = self._candidates[index] = Candidate(index)
        self.out.append(ChoiceStarted(index))
        return candidate

    def _candidate(self, candidate: Any, position: int) -> None:
        if type(candidate) is not dict and type(candidate := self.alone(candidate)) is not dict:
            self.keep_invalid(candidate)
            return
        index = candidate.get("index")
        if index is not None and (type(index) is not int or index not in self._candidates):
            index = self.index(index)
        if index is None:  # Vertex leaves 0 out
            if position:
                self.report.repair("choice_index_missing")
            index = position
        of = self._candidates.get(index) or self._choice(index)
        if type(content := candidate.get("content")) is not dict:
            content = self.fields(content)
        self._texts = self._arguments_of = None
        if type(parts := content.get("parts")) is not list:
            parts = self.contents(parts)
            self._arguments_of = {}  # the order of these parts may differ from the text
        if parts and content.get("role", "model") != "model" and is_other_role(content["role"]):
            self.keep_other_role(content, index)
            content, parts = {}, []
        for number, part in enumerate(parts):
            if type(part) is dict and len(part) == 1 and type(text := part.get("text")) is str:  # ``_text`` inlined
                if text:
                    if of.kind is not TextDelta:
                        self._begin(of, TextDelta)
                    self.out.append(TextDelta(text, index, of.block))
            else:
                self._part(part, of, (position, number, parts))
        if not content.keys() <= CONTENT.names:
            self.keep_unread(content, CONTENT, index, max(of.block, 0), where="content.")
        native, failed = candidate.get("finishReason"), False
        if native is not None and (native := text_of(native)) is not None:
            failed = STOP_REASONS.get(native) in FAILING
        if not candidate.keys() <= CANDIDATE_FIELDS:
            self._others(candidate, of, failed=failed)
        if native is not None and native not in UNSPECIFIED:
            reason = STOP_REASONS.get(native) or self.stop_reason(native, STOP_REASONS)
            of.stopped = reason == "stop" and of.stopped is not False
            seen = StopReasonSeen(reason, native, index, covers_calls=True, ends_failed=failed)
            seen.message = text_of(candidate.get(MESSAGE)) if failed else None
            self.out.append(seen)

    def _others(self, candidate: dict[str, Any], of: Candidate, *, failed: bool) -> None:
        for name, value in others_of(candidate, CANDIDATE_FIELDS).items():
            if not (name == MESSAGE and failed):
                kind = ASIDES.get(name, "metadata")
                self.out.append(Aside(VENDOR, kind, f"candidates.{name}", value, of.choice, max(of.block, 0)))

    def _count(self, usage: dict[str, Any]) -> None:
        if counts := USAGE.decode(usage):
            self.out += [counts] if self.counts_anew(counts) else []
        elif others := {name: value for name, value in usage.items() if not USAGE.is_bad(name, value)}:
            # without any count: Vertex sends `trafficType` before it counts
            self.out.append(Aside(VENDOR, "metadata", "usageMetadata", others))
        ending = USAGE.ending
        for name, value in usage.items():
            if (type(value) is not int or not 0 <= value < MOST_TOKENS) and value is not None and name.endswith(ending):
                self.keep_invalid({name: value})

    def _feedback(self, feedback: dict[str, Any]) -> None:
        """Read the feedback to the prompt. If the prompt was blocked there are no candidates, and nothing follows."""
        if not isinstance(feedback.get("blockReason"), str | None):
            self.keep_invalid(feedback)
            return
        self.out.append(Aside(VENDOR, "metadata", "promptFeedback", feedback))
        native = text_of(feedback.get("blockReason"))
        if native is not None and native not in UNSPECIFIED:
            if 0 not in self._candidates:
                self._choice(0)
            self.out.append(StopReasonSeen("content_filter", native))

    # -- parts ---------------------------------------------------------------------------------------------------------

    def _part(self, part: Any, of: Candidate, place: Place) -> None:
        if type(part) is not dict:
            part = self.part_of(part, None)
        if part.keys() <= TEXT_FIELDS:
            self._text(part, of)
            return
        kinds = [name for name in part if name in KINDS and part[name] is not None]
        if len(kinds) > 1:
            part = self._split(part, kinds, of, place)
        if part.get("functionCall") is not None:
            self._call_part(part, of, place)
        elif name := next((name for name in ASIDE_PARTS if part.get(name) is not None), None):
            self._aside(name, part, of)
        else:
            self._text(part, of)
            self.keep_others(part, READ_FIELDS, "part.", of.choice, max(of.block, 0))

    def _split(self, part: dict[str, Any], kinds: list[str], of: Candidate, place: Place) -> dict[str, Any]:
        """Read a part of several kinds as one part for each, text first. Return the last, which has all other members."""
        *first, last = sorted(kinds, key="text".__ne__)
        for name in first:
            alone = {name: part[name]}
            self._part({**alone, "thought": part["thought"]} if "thought" in part else alone, of, place)
        return {name: value for name, value in part.items() if name == last or name not in kinds}

    def _aside(self, name: str, part: dict[str, Any], of: Candidate) -> None:
        """Keep a part that only Google's dialect understands as an aside, with its signature."""
        kind, data = ASIDE_PARTS[name], part[name]
        if name == "inlineData" and isinstance(data, dict) and str(data.get("mimeType")).startswith("audio/"):
            kind = "audio"
        of.kind = None
        aside = Aside(VENDOR, kind, "part", part, of.choice, max(of.block, 0))
        # media in a thought are a draft, not part of the response
        is_media = kind == "metadata" and isinstance(data, dict) and not part.get("thought")
        media = read_media(name, data, aside) if is_media else None
        if media is not None:
            self._begin(of, None)
            media.block = aside.block = of.block
        self.out.append(media or aside)

    # -- text and thoughts -----------------------------------------------------------------------------------------

    def _text(self, part: dict[str, Any], of: Candidate) -> None:
        text, thought = self.string(part.get("text")), part.get("thought")
        kind = TextDelta if thought is None or not self.truth(thought) else ReasoningDelta
        signature = self.string(part.get("thoughtSignature"))
        if not (text or signature):
            return
        sealed = unseal(signature) if signature else None
        signed = bool(signature) and sealed is None
        if signed or (of.kind is not kind and (text or sealed is None or sealed.kind in {"reasoning", "text"})):
            self._begin(of, kind)
        if text and kind is TextDelta:
            self.out.append(TextDelta(text, of.choice, of.block))
        elif text:
            self.out.append(ReasoningDelta(text, of.choice, of.block, "summary"))
        if sealed is not None:
            self._unsealed(sealed.kind, sealed.opaque, of)
        elif signed:
            self._signature(Opaque(VENDOR, signature), of, text=kind is TextDelta)
            of.kind = None

    def _unsealed(self, kind: str, opaque: Opaque, of: Candidate) -> None:
        """Emit a signature or opaque value of another vendor, which streamkit had written in its marked form ("sealed")."""
        if kind == "call":
            of.sealed = opaque
            return
        if kind == "opaque":
            self._begin(of, None)
            self.out.append(ReasoningOpaque(opaque.blob, opaque.vendor, of.choice, of.block))
        else:
            self._signature(opaque, of, text=kind == "text")
        of.kind = None

    def _signature(self, opaque: Opaque, of: Candidate, *, text: bool) -> None:
        on: Literal["text", "reasoning"] = "text" if text else "reasoning"
        self.out.append(ReasoningSignature(opaque.blob, opaque.vendor, of.choice, of.block, on))

    def _begin(self, of: Candidate, kind: type | None) -> None:
        """Begin a new block. Raises TooManyBlocks."""
        if self._blocks >= self.limits.content_blocks:
            raise TooManyBlocks(self.limits.content_blocks, offset=self.frame.offset)
        self._blocks += 1
        of.block += 1
        of.kind = kind

    # -- calls -----------------------------------------------------------------------------------------------------

    def _call_part(self, part: dict[str, Any], of: Candidate, place: Place) -> None:
        call = self.fields(part["functionCall"])
        if not call and part["functionCall"] != {} and of.open is not None:
            of.open.arguments.lack = True  # the part could not be read
        of.kind = None
        blob = self.string(part.get("thoughtSignature"))
        signature = unsealed(blob, VENDOR) if blob else None
        call_id, name = self.string(call.get("id")), self.string(call.get("name"))
        if of.open is not None and self._goes_on(of.open, call, call_id, name):
            self.keep_unread(call, CALL, of.choice, max(of.block, 0), where="functionCall.")
            if name:
                self.out.append(ToolCallDelta(of.open.index, name=name, choice=of.choice, anonymous=True))
            self._add(of.open, call.get("partialArgs"), of, more=self.truth(call.get("willContinue")))
        elif name or call_id or call.get("args") or call.get("partialArgs"):
            self._start_call(call, call_id, name, signature, of, place)
        else:
            self.report.repair("call_ghost")  # the part ends a call, but no call is open
        self.keep_others(part, READ_FIELDS, "part.", of.choice, max(of.block, 0))

    def _goes_on(self, open_call: OpenCall, call: dict[str, Any], call_id: str, name: str) -> bool:
        """Return whether a part continues the open call: it has no name, or it has the call's name and more arguments."""
        if not name:
            return not call.get("args")
        return name == open_call.name and call_id in ("", open_call.id) and bool(call.get("partialArgs"))

    def _start_call(
        self, call: dict[str, Any], call_id: str, name: str, signature: Opaque | None, of: Candidate, place: Place
    ) -> None:
        if self._calls >= self.limits.tool_calls:
            raise TooManyToolCalls(self.limits.tool_calls, offset=self.frame.offset)
        if of.open is not None:  # the end of the earlier call is missing
            self.report.repair("block_unclosed")
            of.left.append(of.open)
            of.open = None
        self._calls += 1
        index, of.calls = of.calls, of.calls + 1
        delta = ToolCallDelta(
            index, call_id or None, name or None, choice=of.choice, anonymous=True, signature=signature or of.sealed
        )
        of.sealed = None
        if not call.keys() <= CALL_FIELDS:
            delta.extras = others_of(call, CALL_FIELDS)
        self.out.append(delta)
        partial, more = call.get("partialArgs"), self.truth(call.get("willContinue"))
        if not call.get("args") and (partial or more):
            delta.is_ended_by_wire = True
            of.open = OpenCall(index, call_id, name, PartialArgs(self.limits))
            self._add(of.open, partial, of, more=more)
            return
        delta.snapshot = True
        if partial:
            self.keep_invalid(partial)  # the arguments are complete already
        delta.arguments = self._arguments(call.get("args"), place)
        self.out.append(ToolCallEnded(index, of.choice))

    def _arguments(self, arguments: object, place: Place) -> str:
        """Return the JSON text of the arguments in the frame. Missing arguments are ``{}``."""
        if arguments is None:
            return "{}"
        if isinstance(arguments, str):
            self.report.repair("arguments_not_object")
            return arguments
        position, number, parts = place
        if self._arguments_of is None:
            calls = [
                at
                for at, part in enumerate(parts)
                if type(part) is dict and type(call := part.get("functionCall")) is dict and "args" in call
            ]
            self._arguments_of = dict(zip(calls, member_texts(self.frame.data, "args", len(calls)) or (), strict=False))
        if (text := self._arguments_of.get(number)) is not None:
            return text
        if self._texts is None:
            self._texts = self.texts_at(len(parts), "candidates", position, "content", "parts")
        return lenient_text(self._texts[number], "functionCall", "args")

    def _add(self, open_call: OpenCall, partial: Any, of: Candidate, *, more: bool) -> None:
        """Add arguments to the open call, and end it unless ``more`` follow."""
        texts = []
        entries = self.items(partial)
        if partial and not entries:
            open_call.arguments.lack = True
        for each in entries:
            entry = self.alone(each)
            self.keep_unread(entry, PARTIAL, of.choice, max(of.block, 0), where="partialArgs.")
            text = open_call.arguments.add(entry, self.report)
            if text is None:
                self.keep_invalid(entry)
            else:
                texts.append(text)
        if not more:
            texts.append(open_call.arguments.close())
            of.open = None
        self._grown(open_call, "".join(texts), of)
        if not more:
            self.out.append(ToolCallEnded(open_call.index, of.choice, whole=not open_call.arguments.lack))

    def _grown(self, open_call: OpenCall, text: str, of: Candidate) -> None:
        if text:
            self.out.append(ToolCallDelta(open_call.index, arguments=text, choice=of.choice, anonymous=True))
