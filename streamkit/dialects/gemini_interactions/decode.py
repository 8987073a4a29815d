"""Decode Interactions events to wire events: the interaction, and its steps.

Steps are content blocks: ``model_output`` is text and media, ``thought`` is reasoning, ``function_call`` is a call whose
arguments are streamed as text. Only Google understands other steps, so their frames are asides.

``interaction.completed`` completes the stream if its status says that the interaction has ended. The official client never
raises an error at an early end, so nothing but this event counts as success. ``event_id`` is ignored: clients use it only to
resume a stream.

``interaction.completed`` may repeat the steps. A step or text that only it contains is read like that of a whole response.
The copies are compared by their whole text and by the number of media, because servers divide them into steps in other ways.

The ``steps`` of a whole interaction (``outputs`` before the revision of May 2026) are read as the end of a stream.

Source: dialects.md §5.5, ui-protocols.md §4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final

from attrs import define, field

from streamkit.conversation.media import KINDS
from streamkit.dialects.bodies import google
from streamkit.dialects.gemini_interactions import wire
from streamkit.dialects.gemini_interactions.asides import citation_of, read_media
from streamkit.dialects.members.values import (
    Members,
    decode_time,
    details_of,
    has_value,
    objects_in,
    others_of,
    text_of,
)
from streamkit.dialects.streams.alike import Said
from streamkit.dialects.streams.block_decoder import BlockDecoder, DecodedBlock, is_whole
from streamkit.dialects.streams.client_calls import WAITS
from streamkit.dialects.streams.running_text import StartText
from streamkit.dialects.vocabulary.error_bodies import error_in
from streamkit.dialects.vocabulary.sealed_reasoning import unseal
from streamkit.events import (
    Aside,
    AsideKind,
    Opaque,
    ReasoningDelta,
    ResponseStarted,
    StopReasonSeen,
    TerminatorSeen,
    TextDelta,
    ToolCallDelta,
    ToolCallWhole,
    WireEvent,
)
from streamkit.limits import Limits
from streamkit.report import StreamReport
from streamkit.text.one_string import OneString
from streamkit.tool_calls.repeats import paired

#: By the name of an event before revision 2026-05-20, when a step was called a content: its present name.
OLDER: Final[Mapping[str, str]] = {
    "interaction.start": "interaction.created",
    "content.start": "step.start",
    "content.delta": "step.delta",
    "content.stop": "step.stop",
    "interaction.complete": "interaction.completed",
}
STREAMED: Final = (wire.EVENTS.keys() - {"error"}) | OLDER.keys()
INTERACTION: Final = frozenset({"id", "status", "model", "object", "usage"})  # members that are read in every event
AT_END: Final = INTERACTION | {"steps", "outputs", "errors"}  # and in the last event
#: By the type of a delta: the type of the step that it belongs to.
STEPS: Final[Mapping[str, str]] = {
    **dict.fromkeys(KINDS, wire.TEXT),
    **{kind: step for kind, (_, _, step) in wire.DELTAS.items()},
}
#: Steps that may contain each other's deltas, as some servers write them, with the member for the contents of each.
CONTENTS: Final[Mapping[str, str]] = {wire.TEXT: "content", wire.THOUGHT: "summary"}
MEDIA, CITED, SIGNED = "media", "annotations", "signature"  # contents of steps that are counted
CALL_FIELDS: Final = frozenset({"type", "id", "name", "arguments", "signature"})
CONTENT: Final = Members("type", "text", "annotations")
#: The members of a call's start event. Unknown members of its ``step`` are kept with the call.
CALL_START: Final = Members("event_type", "event_id", "index", "step")


@define
class Block(DecodedBlock):
    """The state of a block."""

    #: The arguments in the call's start. They are emitted at the step's stop, or dropped if a delta with arguments follows.
    whole_input: str | None = None
    #: The text in the step's start. It is held until the deltas show whether they repeat it, or the step's stop.
    start: StartText | None = None
    in_start: list[WireEvent] = field(factory=list)  #: the events of the start's content, which deltas may repeat
    #: for a call
    id: str = ""
    name: str = ""


def recognises(event: str, document: Any) -> bool:
    """Return whether a payload may be an event of an interaction."""
    if not isinstance(document, dict):
        return False
    kind = document.get("event_type") or event
    return isinstance(kind, str) and kind in STREAMED


def is_call(document: dict[str, Any]) -> bool:
    """Return whether an event starts a step that is a function call."""
    return document.get("event_type") == "step.start" and details_of(document, "step").get("type") == wire.CALL


class InteractionsDecoder(BlockDecoder[Block]):
    """Decodes the events of a stream."""

    dialect = "gemini-interactions"
    vendor = wire.VENDOR
    error_types = wire.ERROR_TYPES
    envelope = frozenset({"event_type", "error"})
    signer = google.VENDOR
    call_kind = wire.CALL
    idle = frozenset({"event_id"})
    block_type = Block

    _id: str | None = None
    _status: str | None = None
    _called = False  # whether a function was called
    _step_error: Any = None  # the error of the last output that has one
    _step_path: tuple[str | int, ...] = ("step",)  # path of the current step in its frame

    def __init__(self, limits: Limits, report: StreamReport) -> None:
        super().__init__(limits, report)
        self._unanswered: dict[str, str] = {}  # by id: the step type of a Google tool's call without a result
        self._steps: list[Block] = []  # the blocks of all steps
        #: How many of each were read: media, annotations, signatures, and steps of a type that only Google understands.
        self._read: Counter[Hashable] = Counter()

    def decode(self, document: dict[str, Any]) -> None:
        kind = self.string(document.get("event_type"))
        if not kind and self.event in STREAMED:
            self.report.repair("event_type_missing")
            kind = self.event
        if kind in OLDER:
            self.recognised = True
            if not (document := self._renewed(kind, document)):
                return
            kind = document["event_type"]
        if kind in wire.EVENTS:
            self.recognised = True
        else:
            self.unknown_frame(kind or "event", document)
            return
        reader = getattr(self, wire.EVENTS[kind].method)
        if self._stopped:
            self.behind_end(reader, document)
        else:
            members = CALL_START if is_call(document) else wire.EVENTS[kind].members
            self.read_and_keep(reader, document, members, f"{kind}.")
        if kind != "error":
            self.read_error(document)
        self._step_path = ("step",)

    def _renewed(self, kind: str, document: dict[str, Any]) -> dict[str, Any]:
        """Return an event from before 2026-05-20 in the present form.

        In the old form a content may lack a start, and a call or tool is complete in one event. The start of a call without a
        name becomes empty, because the delta begins the call.
        """
        name, kind = "content" if kind == "content.start" else "delta", OLDER[kind]
        renewed = {**document, "event_type": kind}
        if kind not in {"step.start", "step.delta"} or not isinstance(renewed.get(name), dict):
            return renewed
        content = renewed.pop(name)
        content_type = self.string(content.get("type"))
        belongs = STEPS.get(content_type)
        if kind == "step.start" and belongs == wire.TEXT:
            has_more = content.keys() - {"type"}
            return {**renewed, "step": {"type": wire.TEXT, **({"content": [content]} if has_more else {})}}
        if kind == "step.start" and content_type == wire.CALL and not content.get("name"):
            return {}
        if kind == "step.start" or (belongs is None and document.get("index") not in self.blocks):
            self._step_path = (name,)
            return {**renewed, "event_type": "step.start", "step": content}
        if content_type == wire.CALL:
            content = {"type": "arguments_delta", "arguments": content.get("arguments")}
        elif content_type in {wire.THOUGHT, "thought_summary"} and not {"content", "signature"} & content.keys():
            text = content.get("text") or content.get(wire.THOUGHT)
            content = {"type": "thought_summary", "content": {"type": "text", "text": text}}
        elif content_type == wire.THOUGHT:
            content = {**content, "type": "thought_signature"}
        return {**renewed, "delta": content}

    def close(self) -> None:
        self.settle_starts()

    def settle_starts(self) -> None:
        """Emit the held content and arguments from the starts of open steps, because the stream is over."""
        for block in self.blocks.values():
            self._settle(block)
            self._whole_input(block)

    def noting(self, event: Said | None) -> Callable[[str], object] | None:
        if isinstance(event, TextDelta):
            return self.texts.of(wire.TEXT).append
        return self.texts.of(wire.THOUGHT).append if isinstance(event, ReasoningDelta) else super().noting(event)

    def open_block(self, index: int, kind: str) -> Block:
        block = super().open_block(index, kind)
        self._steps.append(block)
        return block

    def _created(self, document: dict[str, Any]) -> None:
        interaction = self.fields(document.get("interaction"))
        if self._started:
            self.restarted(self._id, interaction.get("id"))
            return
        self._begin(interaction, INTERACTION)
        self._count(interaction.get("usage"))

    def _begin(self, interaction: dict[str, Any], known: frozenset[str]) -> None:
        """Start the response. Members of the interaction that are not ``known`` are its extras."""
        self._id = text_of(interaction.get("id"))
        extras = others_of(interaction, known)
        created = decode_time(interaction.get("created"))
        model = text_of(interaction.get("model"))
        self.start(ResponseStarted(self._id, model, created, vendor=wire.VENDOR, extras=extras or None))

    def _status_update(self, document: dict[str, Any]) -> None:
        self.ensure_started()
        self._status = text_of(document.get("status"))
        self._count(document.get("usage"))

    def _completed(self, document: dict[str, Any]) -> None:
        interaction = self.fields(document.get("interaction"))
        if self._started:
            self.keep_others(interaction, AT_END, wire.INTERACTION_MEMBER)
        else:
            self._begin(interaction, AT_END)
        self.end_of(interaction, "interaction")

    def end_of(self, interaction: dict[str, Any], *path: str) -> None:
        """Read the end of an interaction, which is at ``path``."""
        for name in ("steps", "outputs"):
            if (steps := interaction.get(name)) is not None:
                self._whole_steps(steps, (*path, name))
        self._count(interaction.get("usage"))
        native = text_of(interaction.get("status")) or self._status
        errors = objects_in(interaction.get("errors"))
        if native is None or native in wire.RUNNING:
            for error in errors:
                self.out.append(Aside(wire.VENDOR, "unknown_event", "errors", error))
            return
        self.stop_message()
        reason = self.stop_reason(native, wire.STOP_REASONS)
        error = errors[0] if errors else (self._step_error or error_in(interaction))
        if error:
            if reason != "error":  # clients take these reasons for a normal end
                self.report.repair("error_shape")
            self.fail(error)
            errors = errors[1:]
        else:
            failed = native in wire.STOP_REASONS and reason == "error"
            waits = reason == "tool_calls" and not self._called and bool(self._unanswered)
            if waits:  # the server waits for the result of a tool that only clients of this dialect have
                self.out.append(Aside(wire.VENDOR, "client_tool", WAITS, sorted({*self._unanswered.values()})))
            self.out += (StopReasonSeen(reason, native, ends_failed=failed, waits=waits), TerminatorSeen())
        for more in errors:
            self.out.append(Aside(wire.VENDOR, "unknown_event", "errors", more))

    def _whole_steps(self, steps: object, path: tuple[str | int, ...]) -> None:
        """Read whole steps, each as a start with all content, except what events had before.

        A bare text or medium is read as an output step.
        """
        wholes = [self.fields(step) for step in self.items(steps)]
        for number, step in enumerate(wholes):
            if (kind := step.get("type")) == "text" or (isinstance(kind, str) and kind in KINDS):
                wholes[number] = {"type": wire.TEXT, "content": [step]}
        blocks: list[Block | None] = [None] * len(wholes)
        if streamed := bool(self._steps):
            self.settle_starts()
            blocks = paired(wholes, [block for block in self._steps if block.kind == wire.CALL], _is_named, _may_be)
            wholes = self._without_read(wholes)
        for number, (step, block) in enumerate(zip(wholes, blocks, strict=True)):
            self._step_path = (*path, number)
            if block is not None:
                self._call_again(step, block)
            elif step:
                if streamed:
                    self.report.repair("fragments_missing")
                start = {"event_type": "step.start", "index": self._next, "step": step}
                members = CALL_START if is_call(start) else wire.EVENTS["step.start"].members
                self.read_and_keep(self._step_start, start, members, "step.start.")
                self._step_stop({"event_type": "step.stop", "index": start["index"]})
        self._step_path = ("step",)

    def _call_again(self, step: dict[str, Any], block: Block) -> None:
        """Read the whole copy of a call that events had. It ends the call if no event did."""
        if text := self._input(step):
            self.out.append(ToolCallWhole(block.call, text))
        index = next((index for index, each in self.blocks.items() if each is block), None)
        if index is not None:
            self.report.repair("block_unclosed")
            self.close_block(index)

    def _without_read(self, wholes: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return copies of steps without the content that events had; a step without new content is empty.

        A text that contradicts the text of the events is withheld.
        """
        read = self._read.copy()
        steps = [self._with_contents(step) for step in wholes]
        for kind, member in CONTENTS.items():
            parts = [part for step in steps if _kind_of(step) == kind for part in step[member]]
            whole = "".join(part["text"] for part in parts if part["type"] == "text")
            if whole and (before := self.texts.begun(kind)) is not None:
                read[kind] = before.chars
                if before.rest_of(whole) is None:
                    self.report.repair("whole_differs")
                    read[kind] = len(whole)
        return [self._new_in(step, read) for step in steps]

    def _with_contents(self, step: dict[str, Any]) -> dict[str, Any]:
        """Return a step whose contents are objects with a type, and whose texts are texts."""
        if (kind := _kind_of(step)) not in CONTENTS:
            return step
        member, parts = CONTENTS[kind], []
        for value in self.contents(step.get(member)):
            part = {"type": "text", **self.part_of(value)}
            parts.append({**part, "text": self.string(part.get("text"))} if part["type"] == "text" else part)
        return {**step, member: parts}

    def _new_in(self, step: dict[str, Any], read: Counter[Hashable]) -> dict[str, Any]:
        """Return what is new in a step, and take the rest from ``read``. New text of a text that had begun continues it."""
        if (kind := _kind_of(step)) == wire.CALL:
            return step
        if kind not in CONTENTS:
            return {} if _take(read, kind, 1) else step
        self._step_error = step.get("error") or self._step_error
        member, new = CONTENTS[kind], []
        for part in step[member]:
            if part["type"] != "text":
                new += [] if _take(read, MEDIA, 1) else [part]
                continue
            cited = part.get("annotations")
            if type(cited) is list:
                cited = cited[_take(read, CITED, len(cited)) :]
            begun = _take(read, kind, len(part["text"]))
            rest = {**part, "text": part["text"][begun:], "annotations": cited}
            if begun and (rest["text"] or cited):
                self.report.repair("fragments_missing")
                last = next((block for block in reversed(self._steps) if block.kind == kind), self._steps[-1])
                self._content(rest, last, thought=kind == wire.THOUGHT)
            elif rest["text"] or cited:
                new.append(rest)
        signature = None if _take(read, SIGNED, bool(step.get("signature"))) else step.get("signature")
        return {**step, member: new, "signature": signature} if new or signature else {}

    def _count(self, usage: object) -> None:
        counts = self.fields(usage)
        if counts and (found := wire.USAGE.decode(counts)) is not None:
            self.tell_counts(found)
        for name, value in counts.items():
            if value is not None and wire.USAGE.is_bad(name, value):
                self.keep_invalid(value)

    def _step_start(self, document: dict[str, Any]) -> None:
        index = self.start_index(document.get("index"))
        step = self.fields(document.get("step"))
        block, before = self.open_block(index, self.string(step.get("type"))), len(self.out)
        match block.kind:
            case "model_output":
                self._text = block.number
                self._step_error = step.get("error") or self._step_error
                for content in self.contents(step.get("content")):
                    self._content(self.part_of(content), block)
                self._hold_start(block, before)
            case "thought":
                for content in self.contents(step.get("summary")):
                    self._content(self.part_of(content), block)
                if signature := self.string(step.get("signature")):
                    self._signed(signature, block)
                self._hold_start(block, before)
            case "function_call":
                self._call(step, block)
            case "":
                self.keep_invalid(document)
            case kind:
                if kind.endswith(("_call", "_request")):
                    self._unanswered[self.string(step.get("id"))] = kind
                else:
                    self._unanswered.pop(self.string(step.get("call_id")), None)
                self._read[kind] += 1
                self._aside(document, block)

    def _call(self, step: dict[str, Any], block: Block) -> None:
        self._called = True
        if signature := self.string(step.get("signature")):
            sealed = unseal(signature)
            self._signature = Opaque(google.VENDOR, signature) if sealed is None else sealed.opaque
        block.id, block.name = text_of(step.get("id")) or "", text_of(step.get("name")) or ""
        self.start_call(block, step.get("id"), step.get("name"), others_of(step, CALL_FIELDS))
        block.whole_input = self._input(step)

    def _input(self, step: dict[str, Any]) -> str | None:
        """Return the arguments in the current call's step; None if they are empty."""
        arguments = step.get("arguments")
        if isinstance(arguments, str):
            self.report.repair("arguments_not_object")
            return arguments or None
        return self.text_at(*self._step_path, "arguments") if has_value(arguments) else None

    def _step_delta(self, document: dict[str, Any]) -> None:
        if metadata := document.get("metadata"):
            self._count(self.fields(metadata).get("total_usage"))
        delta = self.fields(document.get("delta"))
        kind = self.string(delta.get("type"))
        belongs = STEPS.get(kind, "unknown")
        index = self.block_index(document.get("index"))
        block = self.blocks.get(index)
        if block is None and (closed := self._closed.get(index)) is not None and closed.kind == belongs == wire.CALL:
            block = closed  # a call that has ended: the accumulator reports the late delta
        if block is None:
            self.report.repair("block_unopened")
            block = self.open_block(index, belongs)
        if belongs != block.kind:
            if block.kind not in CONTENTS or belongs not in CONTENTS:
                self._aside(document, block)
                return
            self.report.repair("block_mismatch")
        match kind:
            case "thought_signature":
                if signature := self.string(delta.get("signature")):
                    self._signed(signature, block)
            case "arguments_delta":
                self._arguments(delta.get("arguments"), block)
            case "thought_summary":
                self._content(self.part_of(delta.get("content")), block, thought=True)
            case "text_annotation_delta":
                self._cited(delta.get("annotations"), block)
            case _:
                self._content(delta, block, thought=False if kind == "text" else None)
                return
        self.keep_others(delta, {"type", wire.DELTAS[kind][0]}, "delta.", 0, block.number)

    def _step_stop(self, document: dict[str, Any]) -> None:
        index = self.block_index(document.get("index"))
        self._count(document.get("usage"))
        block = self.blocks.get(index)
        if block is None:
            self.report.repair("block_unopened")
            return
        if block.kind not in {wire.TEXT, wire.THOUGHT, wire.CALL, ""}:
            self._aside(document, block)
        self.close_block(index)

    def close_block(self, index: int) -> None:
        block = self.blocks[index]
        self._settle(block)
        block.in_start = []
        self._whole_input(block)
        super().close_block(index)

    def _content(self, content: dict[str, Any], block: Block, *, thought: bool | None = None) -> None:
        """Read a content of an output or a thought: text, or media."""
        thought = block.kind == wire.THOUGHT if thought is None else thought
        kind = content.get("type", "text")
        if kind == "text":
            text = self.string(content.get("text"))
            if text and block.start is not None:
                text = self._after_start(text, block, thought=thought)
            if text:
                self.texts.of(wire.THOUGHT if thought else wire.TEXT).append(text)
                number = block.number
                self.out.append(ReasoningDelta(text, 0, number, "summary") if thought else TextDelta(text, 0, number))
            self._cited(content.get("annotations"), block)
            self.keep_unread(content, CONTENT, block=block.number, where="content.")
        elif thought:
            raw = {"type": "thought_summary", "content": content}
            self._emit(Aside(wire.VENDOR, "metadata", wire.THOUGHT_DELTA, raw, block=block.number), block, MEDIA)
        elif (media := read_media(content, 0, block.number)) is not None:
            self._emit(media, block, MEDIA)
        elif content:
            self._emit(Aside(wire.VENDOR, "unknown_event", wire.DELTA, content, block=block.number), block, MEDIA)

    def _cited(self, annotations: Any, block: Block) -> None:
        if has_value(annotations):
            count = len(annotations) if type(annotations) is list else 1
            self._emit(citation_of(annotations, 0, block.number), block, CITED, count)

    def _signed(self, signature: str, block: Block) -> None:
        before = len(self.out)
        self.opaque(signature, block, redacted=False)
        for event in self._taken(before):
            self._emit(event, block, SIGNED)

    def _taken(self, before: int) -> list[WireEvent]:
        events = self.out[before:]
        del self.out[before:]
        return events

    def _emit(self, event: WireEvent, block: Block, kind: str, count: int = 1) -> None:
        """Emit media, citations or a signature of a step, unless they repeat some in the step's start."""
        if event in block.in_start:
            block.in_start.remove(event)
            self.report.repair("text_repeated")
            return
        self._settle(block)
        self._read[kind] += count
        self.out.append(event)

    # -- content in the start of a step --------------------------------------------------------------------------------

    def _hold_start(self, block: Block, before: int) -> None:
        """Hold the events of the content in a step's start if they have text, because deltas may repeat it."""
        events, texts = self._taken(before), []
        one = OneString()  # all texts of a thought are one block here
        for event in events:
            if isinstance(event, TextDelta | ReasoningDelta):
                texts.append(event.text)
            if isinstance(event, ReasoningDelta):
                one.begin()
                event.text = one.before(event.text) + event.text
        if texts:
            block.start = StartText("".join(texts))
        else:
            self.out += events
        block.in_start = events

    def _after_start(self, text: str, block: Block, *, thought: bool) -> str:
        """Return the text to emit for a delta after the text in the step's start."""
        if block.start is None or thought != (block.kind == wire.THOUGHT):
            self._settle(block)
            return text
        start = block.start
        if (new := start.follow(text)) is None:
            return ""
        block.start = None
        self._emit_start(block)
        return self.new_text(new[0][len(start.text) :], new[1])

    def _settle(self, block: Block) -> None:
        """Emit the held content of the step's start, because no later delta can repeat it."""
        if block.start is not None:
            self.new_text(*block.start.settle())
            block.start = None
            self._emit_start(block)

    def _emit_start(self, block: Block) -> None:
        self.out += block.in_start
        block.in_start = [event for event in block.in_start if not isinstance(event, TextDelta | ReasoningDelta)]

    def _arguments(self, value: object, block: Block) -> None:
        if block.whole_input is not None:
            self.report.repair("arguments_replaced")
            block.whole_input = None
        if is_whole(value):
            self.report.repair("arguments_not_text")
            whole = self.text_at("delta", "arguments")
            self.out.append(ToolCallDelta(block.call, arguments=whole, snapshot=True))
        elif text := self.string(value):
            self.out.append(ToolCallDelta(block.call, arguments=text))

    def _whole_input(self, block: Block) -> None:
        if block.whole_input is not None:
            self.out.append(ToolCallDelta(block.call, arguments=block.whole_input, snapshot=True))
            block.whole_input = None

    def _aside(self, document: dict[str, Any], block: Block) -> None:
        """Emit a frame of a step that only Google understands as an aside, from which an encoder can write it again."""
        kind, name = aside_kind(block.kind), str(document.get("event_type"))
        self.out.append(Aside(wire.VENDOR, kind, name, document, block=block.number))


def _kind_of(step: dict[str, Any]) -> str:
    return text_of(step.get("type")) or ""


def _is_named(step: dict[str, Any], block: Block) -> bool:
    """Return whether a step is the call of a block by its id."""
    return step.get("type") == wire.CALL and bool(block.id) and step.get("id") == block.id


def _may_be(step: dict[str, Any], block: Block) -> bool:
    """Return whether a step may be the call of a block: neither the id nor the name contradicts that."""
    same_id = not block.id or not step.get("id") or step["id"] == block.id
    return step.get("type") == wire.CALL and same_id and (not block.name or step.get("name") in (None, "", block.name))


def _take(left: Counter[Hashable], kind: Hashable, most: int) -> int:
    """Take at most this many of a kind. Return how many there were."""
    taken = min(left[kind], most)
    left[kind] -= taken
    return taken


def aside_kind(step: str) -> AsideKind:
    """Return the kind of aside for a type of step that only Google understands."""
    if step == wire.INPUT:
        return "metadata"
    return "server_tool" if step.endswith(("_call", "_result")) else "unknown_event"


TELLING: Final = frozenset({"steps", "outputs", "status"})  # members that show that a body is an interaction


class InteractionsBodyDecoder(InteractionsDecoder):
    """Reads a whole body: an interaction or an error."""

    error_forms = (dict,)

    def decode(self, document: dict[str, Any]) -> None:
        is_error = document.get("steps") is None and self.read_error(document, alone=True)
        if not is_error and any(document.get(name) is not None for name in TELLING):
            self.recognised = True
            self._begin(document, AT_END)
            self.end_of(document)
        elif not is_error:
            self.foreign_frame()
