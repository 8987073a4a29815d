"""Decode Anthropic events, and whole bodies, to wire events. A whole message is split into the frames of a stream.

The decoder remembers the kind of each block from its start: an ``input_json_delta`` in a block of a server tool becomes an
aside (an event with content of one vendor), but in a ``tool_use`` block it is a call's argument. The decoder ignores
``input: {}`` in a start; an ``input`` with members there is the whole input if no delta follows. Blocks and calls are numbered
in order of arrival, because a server may use an index twice. Token counts in ``message_delta`` replace those in
``message_start``.

Source: dialects.md §3.1, §3.3, quirks.md §8.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from attrs import define

from streamkit.dialects.anthropic import wire
from streamkit.dialects.anthropic.asides import aside_of, frames_of
from streamkit.dialects.members.values import UNREAD, Members, has_value, others_of, text_in, text_of
from streamkit.dialects.streams.block_decoder import BlockDecoder, DecodedBlock, is_whole
from streamkit.dialects.streams.running_text import StartText
from streamkit.dialects.vocabulary.error_bodies import ERROR_MEMBERS
from streamkit.events import (
    Aside,
    ReasoningDelta,
    ResponseStarted,
    StopReasonSeen,
    TerminatorSeen,
    TextDelta,
    ToolCallDelta,
    WireEvent,
)
from streamkit.tool_calls.value_text import lenient_text

#: Names in an ``event:`` line that identify Anthropic's dialect. Other dialects have a ``ping`` and an ``error``, too.
STREAMED = wire.EVENTS.keys() - {"error", "ping"}
MESSAGE_FIELDS = frozenset(
    {"id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage", "stop_details"}
)
#: Members of a message that a stream sends inside the ``delta`` of ``message_delta``, and next to it.
LAST: Final = ("stop_reason", "stop_sequence", "stop_details", "container")
LAST_EVENT_MEMBERS: Final = ("context_management",)
#: The members of a call's start event. Unknown members of its ``content_block`` are kept with the call.
CALL_START = Members("type", "index", "content_block")
#: The counts that add up to all input tokens. If all of them are 0 in ``message_delta``, a gateway did not know the numbers
#: there, and the counts of ``message_start`` remain.
INPUT_COUNTS = frozenset({"input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"})
ENDINGS = frozenset({"stop_reason", "stop_sequence"})  # the members of a message_delta's ``delta`` that are read
COUNTS = 64  # the most counts kept from usage objects, since each ``message_delta`` may add some
#: For each kind of block: the type of delta that has its text, and the member with the text.
BLOCK_TEXTS = {
    "text": ("text_delta", "text"),
    "thinking": ("thinking_delta", "thinking"),
    "tool_use": ("input_json_delta", "partial_json"),
}
TEXTUAL = frozenset({"text", "thinking"})
OWN_BLOCKS = frozenset({"text", "thinking", "tool_use", "redacted_thinking"})
CALL_FIELDS = frozenset({"type", "id", "name", "input"})
IDS: Final = ("id", "tool_use_id", "data")  # the members that tell a block from another of the same kind
NONE_HELD: Final[Mapping[str, Any]] = {}


@define
class Block(DecodedBlock):
    """A content block that is being read."""

    #: The ``input`` in the block's start. It is emitted at the block's stop, or dropped if a delta with input follows.
    whole_input: str | None = None
    #: The text in the block's start. It is held until the first delta, which may repeat it, or the block's stop.
    start: StartText | None = None
    #: The signature and the citations that ``message_start`` has for the block. They are read at its stop, unless deltas
    #: send them again.
    held: Mapping[str, Any] = NONE_HELD


def recognises(event: str, document: Any) -> bool:
    """Return whether a payload may be an Anthropic event."""
    if not isinstance(document, dict):
        return False
    if document.get("type") == "error":  # an error with a sequence number belongs to Responses
        return event == "error" and "sequence_number" not in document
    kind = document.get("type") or event
    return isinstance(kind, str) and kind in STREAMED


class AnthropicDecoder(BlockDecoder[Block]):
    """Decodes the events of a stream, and the frames that a whole block or message is split into."""

    dialect = "anthropic"
    vendor = wire.VENDOR
    error_types = wire.ERROR_TYPES
    envelope = frozenset({"type", "error"})
    signer = wire.VENDOR
    call_kind = "tool_use"
    idle = frozenset()
    learns_alone = False
    block_type = Block
    members: ClassVar[Mapping[str, Members]] = {kind: event.members for kind, event in wire.EVENTS.items()}

    _id: str | None = None
    # A pattern of the last delta, by which ``decode`` recognises the next delta of the same block quickly:
    _like: dict[str, Any] | None = None  # the expected event; its text may differ. None: check all events
    _like_delta: dict[str, Any]
    _member, _index, _block = "", 0, Block("", 0)
    block_text = b""  #: the JSON of the block that ``whole_block`` reads at the moment
    _usage: Mapping[str, Any] = {}  # the token counts so far
    #: Blocks that ``message_start`` contains, with their JSON, by index. A block is removed when an event begins it, too.
    in_start: dict[int, tuple[dict[str, Any], bytes]] = {}  # noqa: RUF012 - replaced, never changed
    _same: Mapping[tuple[Any, str], dict[int, None]] = {}  # the indices of these blocks, by what identifies a block

    def decode(self, document: dict[str, Any]) -> None:
        """Read one event. Nearly always it is a delta that differs from the last one only in its text."""
        if self._like is not None and self.event == "content_block_delta":
            try:
                text = self._like_delta[self._member] = document["delta"][self._member]
            except (KeyError, TypeError):  # a member is missing or of another type
                text = None
            if document == self._like and type(text) is str and document["index"] is self._index:  # True equals 1
                if not text:
                    return
                if self._frame is not None:
                    self.out.append(self._more(text))
                    return
                self._push_more(text, self._block)
                if self._payload[-2:] == b"}}" and self.may_learn():  # the API may pad each payload differently
                    self.learn_text(document, AnthropicDecoder._push_more, self._block, ("delta", self._member))
                return
        kind = self.event
        if (
            document.get("type") == kind
            and (members := self.members.get(kind)) is not None
            and document.keys() <= members.names
            and (not members.inner or _is_read(document.get("content_block")))
            and not self._stopped
        ):  # nearly all other events: no checks are needed
            self.recognised = True
            getattr(self, wire.EVENTS[kind].method)(document)
            return
        self._event(document)

    def _push_more(self, text: str, block: Block) -> None:
        """Give more text of a block to the next stage without making an event object."""
        if block.kind == "text":
            self.next.push_text(text, 0, block.number)
        elif block.kind == "tool_use":
            self.next.push_fragment(block.call, text, 0)
        else:
            self.next.push_reasoning(text, 0, block.number, "summary")

    def _more(self, text: str) -> WireEvent:
        """Return the event for more text of a block."""
        block = self._block
        if block.kind == "tool_use":
            return ToolCallDelta(block.call, None, None, text)
        if block.kind == "text":
            return TextDelta(text, 0, block.number)
        return ReasoningDelta(text, 0, block.number, "summary")

    def _expect_more(self, index: int, block: Block) -> None:
        """Remember what the block's next delta will look like, unless text or input of the block's start is still held."""
        if block.kind not in BLOCK_TEXTS or block.start is not None or block.whole_input is not None or self._stopped:
            self._like, self._templates = None, ()
            return
        kind, member = BLOCK_TEXTS[block.kind]
        self._templates = ()
        self._member, self._index, self._block = member, index, block
        self._like_delta = {"type": kind, member: ""}
        self._like = {"type": "content_block_delta", "index": index, "delta": self._like_delta}

    def _event(self, document: dict[str, Any]) -> None:
        """Read an event of any kind, and check its shape and its order."""
        if type(kind := document.get("type")) is not str:
            kind = self.string(kind)
        if kind in wire.EVENTS:
            self.recognised = True
            if self.event == "message":
                self.report.repair("event_name_missing")
        elif (named := self.named_by_its_line(document, STREAMED)) is not None:
            self._event(named)
            return
        else:  # a bare {"error": …} of another envelope (quirks.md 112), or an unknown payload
            self.unknown_frame(kind or "event", document)
            return
        if kind == "ping":
            self.keep_unread(document, self.members[kind])
        elif self._stopped:
            self.behind_end(getattr(self, wire.EVENTS[kind].method), document)
        else:
            self._read(document, kind)
        if kind != "error" and not ERROR_MEMBERS.isdisjoint(document):
            self.read_error(document)

    def _read(self, document: dict[str, Any], kind: str) -> None:
        """Read an event of the message, and keep its unread members."""
        read, members = getattr(self, wire.EVENTS[kind].method), self.members[kind]
        block = document.get("content_block")
        if members.open or (document.keys() <= members.names and (not members.inner or _is_read(block))):
            read(document)
            return
        if members.inner and type(block) is dict and block.get("type") == "tool_use":
            members = CALL_START
        self.read_and_keep(read, document, members, f"{document['type']}.")

    def _message_start(self, document: dict[str, Any]) -> None:
        message = self.fields(document.get("message"))
        if self._started:
            self.restarted(self._id, message.get("id"))
            return
        extras = others_of(message, MESSAGE_FIELDS)
        usage = None
        if counts := self.fields(message.get("usage")):
            self._usage, usage = counts, wire.decode_usage(counts)
        self._id = text_of(message.get("id"))
        self.start(ResponseStarted(self._id, text_of(message.get("model")), None, wire.VENDOR, extras or None, usage))
        if usage is not None:
            self.out.append(usage)  # the final counts are at the end of the response
        if (content := message.get("content")) != [] and (blocks := self.contents(content)):
            found = zip(map(self.part_of, blocks), self.texts_at(len(blocks), "message", "content"), strict=True)
            self.in_start = {number: pair for number, pair in enumerate(found) if others_of(pair[0], {"type"})}
            same: dict[tuple[Any, str], dict[int, None]] = {}
            for number, (block, _) in self.in_start.items():
                same.setdefault(_identity(block), {})[number] = None
            self._same = same
        if has_value(reason := message.get("stop_reason")):  # a response cannot end before its content
            self.out.append(Aside(wire.VENDOR, "unknown_event", f"{UNREAD}message.stop_reason", reason))

    def _ping(self, _document: dict[str, Any]) -> None:
        """Ignore a ping."""

    def _read_start(self, *, ended: bool) -> None:
        """Read the blocks of the message's start that no event began."""
        blocks, self.in_start = self.in_start, {}
        for number, (block, text) in blocks.items():
            self.whole_block(block, max(number, self._next), text, ended=ended)

    def _copy_of(self, start: dict[str, Any], index: int) -> int | None:
        """Return the number of the block in ``message_start`` that a block's start begins, too; None if there is none.

        A block of another kind, with another id or another text is not the same, and is left for the end of the message.
        """
        if not self.in_start:
            return None
        kind, name = _identity(start)
        number = next(iter(self._same.get((kind, name), ())), index)
        copy = self.in_start.get(number, ({}, b""))[0]
        copied_kind, copied_name = _identity(copy)
        if not copy or copied_kind != kind or (name and copied_name and name != copied_name):
            return None
        first, second = (text_in(each.get(kind)) if kind in TEXTUAL else "" for each in (copy, start))
        return number if first.startswith(second) or second.startswith(first) else None

    def _with_copy(self, start: dict[str, Any], number: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return a block's start with the content that ``message_start`` has for it, and what only deltas may send again.

        Servers repeat that content or continue it, as the anthropic package does: it adds deltas to that content.
        """
        copy, text = self.in_start.pop(number)
        del self._same[_identity(copy)][number]
        kind = copy.get("type")
        if kind not in OWN_BLOCKS:  # deltas may complete the event's own block, so the copy cannot
            self.report.repair("text_repeated")
            return start, {}
        said = {member: value for member, value in start.items() if has_value(value)}
        if kind in TEXTUAL:
            said[kind] = max(self.string(copy.get(kind)), self.string(start.get(kind)), key=len)
            self.keep_unread({"content_block": copy}, self.members["content_block_start"], where="message_start.")
        elif said.keys() & copy.keys() & {"input", "data"}:
            self.report.repair("text_repeated")
        else:
            self.block_text = text
        held: dict[str, Any] = {name: copy[name] for name in ("signature", "citations") if name in copy.keys() - said}
        return {member: value for member, value in copy.items() if member not in held} | said, held

    # -- the message -----------------------------------------------------------------------------------------------

    def _message_delta(self, document: dict[str, Any]) -> None:
        self.ensure_started()
        delta = self.fields(document.get("delta"))
        if usage := self.fields(document.get("usage")):
            knows_input = any(map(usage.get, INPUT_COUNTS))
            counts = self._usage = {**self._usage}
            for name, value in usage.items():
                is_new = name not in counts and len(counts) < COUNTS
                is_newer = name in counts and (knows_input or name not in INPUT_COUNTS)
                if value is not None and (is_new or is_newer):
                    counts[name] = value
            self.tell_counts(wire.decode_usage(counts))
        if native := text_of(delta.get("stop_reason")):
            self._read_start(ended=True)
            reason = self.stop_reason(native, wire.STOP_REASONS)
            self.out.append(StopReasonSeen(reason, native, 0, text_of(delta.get("stop_sequence"))))
        if not delta.keys() <= ENDINGS:
            for name, value in delta.items():
                if name not in ENDINGS and value is not None:
                    self.out.append(Aside(wire.VENDOR, "metadata", f"{wire.MESSAGE_DELTA}{name}", value))
        self.keep_others(document, self.members["message_delta"].names, wire.DELTA_SIBLING)  # context_management

    def _message_stop(self, _document: dict[str, Any]) -> None:
        self.ensure_started()
        self._read_start(ended=True)
        self._like, self._templates = None, ()
        self.stop_message()
        self.out.append(TerminatorSeen())

    # -- content blocks --------------------------------------------------------------------------------------------

    def whole_block(self, value: Any, number: int, text: bytes, *, ended: bool = True) -> None:
        """Read a whole block as if its frames arrived in a stream. Kinds that streamkit knows need only a start frame.

        ``text`` is the JSON of the block.
        """
        block = self.part_of(value)
        self.block_text = text
        kind, arguments = block.get("type"), block.get("input")
        streamed = isinstance(kind, str) and kind not in OWN_BLOCKS and isinstance(arguments, dict) and arguments
        start, *deltas, stop = frames_of(block, number, self._input_text() if streamed else None)
        if block:
            self._read(start, "content_block_start")
            for delta in deltas:
                self._block_delta(delta)
            if ended:
                self._block_stop(stop)
        self.block_text = b""

    def settle_starts(self) -> None:
        """Emit the held content of ``message_start`` and of the starts of open blocks, because the stream is over."""
        self._read_start(ended=False)
        for block in self.blocks.values():
            self._settle(block)
            self._say_held(block)
            self._whole_input(block)

    def _block_start(self, document: dict[str, Any]) -> None:
        index = self.start_index(document.get("index"))
        start, held = self.fields(document.get("content_block")), NONE_HELD
        if (number := self._copy_of(start, index)) is not None:
            start, held = self._with_copy(start, number)
        block = self.open_block(index, self.string(start.get("type")))
        if block.kind == "text":
            self._text = block.number
            if (text := start.get("text")) != "" and (text := self.string(text)):
                block.start = StartText(text)
            for citation in self.items(start["citations"]) if "citations" in start else ():
                self._settle(block)
                self._citation(self.fields(citation), block)
        elif block.kind == "thinking":
            if (text := start.get("thinking")) != "" and (text := self.string(text)):
                block.start = StartText(text)
            if (signature := start.get("signature")) != "" and (signature := self.string(signature)):
                self._settle(block)
                self.opaque(signature, block, redacted=False)
        elif block.kind == "redacted_thinking":
            self.opaque(self.string(start.get("data")), block, redacted=True)
        elif block.kind == "tool_use":
            self._call(start, block)
        elif block.kind:
            self.out.append(aside_of(document, block.kind, block.number))
        else:
            self.keep_invalid(document)
        if number is not None:
            block.held, self.block_text = held, b""
        self._expect_more(index, block)

    def _block_delta(self, document: dict[str, Any]) -> None:
        delta = self.fields(document.get("delta"))
        kind = self.string(delta.get("type"))
        belongs, name = wire.DELTAS.get(kind, ("unknown", ""))
        index = self.block_index(document.get("index"))
        block = self.blocks.get(index)
        if block is None and (closed := self._closed.get(index)) is not None and closed.kind == belongs == "tool_use":
            block = closed  # arguments for a call that has ended: the accumulator reports them
        elif block is None:
            self.report.repair("block_unopened")
            start = {"type": belongs}
            if belongs in OWN_BLOCKS and self._copy_of(start, index) is not None:
                self._block_start({"index": index, "content_block": start})
                block = self.blocks[index]
            else:
                block = self.open_block(index, belongs)
        if name and (belongs == block.kind or (belongs in TEXTUAL and block.kind in TEXTUAL)):
            if belongs != block.kind:
                self.report.repair("block_mismatch")
            self._delta(kind, delta, block)
            if len(delta) > 2:
                self.keep_others(delta, ("type", name), "delta.")
            if self._like is None or self._index != index:
                self._expect_more(index, block)
        elif not kind or (name and not (delta.get("type") == "input_json_delta" and isinstance(delta.get(name), str))):
            self.keep_invalid(document)
        else:  # a delta of a server tool, or of an unknown block
            self.out.append(aside_of(document, block.kind, block.number))

    def _block_stop(self, document: dict[str, Any]) -> None:
        index = self.block_index(document.get("index"))
        block = self.blocks.get(index)
        if block is None:
            self.report.repair("block_unopened")
        elif block.kind in OWN_BLOCKS:
            self.close_block(index)
        else:
            self.out.append(aside_of(document, block.kind, block.number))
            self._closed[index] = self.blocks.pop(index)

    def close_block(self, index: int) -> None:
        block, self._like, self._templates = self.blocks[index], None, ()
        if block.start is not None:
            self._settle(block)
        self._say_held(block)
        self._whole_input(block)
        super().close_block(index)

    def _whole_input(self, block: Block) -> None:
        """Emit the held ``input`` of a call's start as the call's whole arguments."""
        if block.whole_input is not None:
            self.out.append(ToolCallDelta(block.call, arguments=block.whole_input, snapshot=True))
            block.whole_input = None

    def _call(self, start: dict[str, Any], block: Block) -> None:
        extras = wire.without_defaults(others_of(start, CALL_FIELDS))
        self.start_call(block, start.get("id"), start.get("name"), extras)
        if arguments := start.get("input"):
            if isinstance(arguments, str):
                self.report.repair("arguments_not_object")
            block.whole_input = arguments if isinstance(arguments, str) else self._input_text()

    def _input_text(self) -> str:
        """Return the JSON text of the ``input`` in a block's start, as the server wrote it."""
        if self.block_text:
            return lenient_text(self.block_text, "input")
        return self.text_at("content_block", "input")

    def _delta(self, kind: str, delta: dict[str, Any], block: Block) -> None:
        """Read a delta whose kind fits its block. Empty deltas are ignored."""
        if kind == "citations_delta":
            self._settle(block)
            block.held = NONE_HELD
            self._citation(self.fields(delta.get("citation")), block)
            return
        value = delta.get(wire.DELTAS[kind][1])
        if kind == "input_json_delta" and is_whole(value):
            self.report.repair("arguments_not_text")
            block.whole_input = None
            whole = self.text_at("delta", "partial_json")
            self.out.append(ToolCallDelta(block.call, arguments=whole, snapshot=True))
            return
        text = self.string(value)
        if not text:
            return
        if block.start is not None and kind != "input_json_delta":
            if kind == "signature_delta":
                self._settle(block)
            elif (new := block.start.follow(text)) is None:
                return
            else:
                block.start = None
                text = self.new_text(*new)
        if kind == "text_delta":
            self.out.append(TextDelta(text, 0, block.number))
        elif kind == "input_json_delta":
            if block.whole_input is not None:  # the start had the whole input, and fragments follow
                self.report.repair("arguments_replaced")
                block.whole_input = None
            self.out.append(ToolCallDelta(block.call, arguments=text))
        elif kind == "thinking_delta":
            self.out.append(ReasoningDelta(text, 0, block.number, "summary"))
        else:
            block.held = NONE_HELD
            self.opaque(text, block, redacted=block.kind != "thinking")

    def _say_held(self, block: Block) -> None:
        """Emit what ``message_start`` has for a block and no delta sent again, because the block is over."""
        held, block.held = block.held, NONE_HELD
        for citation in self.items(held.get("citations")):
            self._citation(self.fields(citation), block)
        if signature := self.string(held.get("signature")):
            self.opaque(signature, block, redacted=False)

    def _settle(self, block: Block) -> None:
        """Emit the held text of the block's start, because no later delta can repeat it."""
        if block.start is not None:
            start, block.start = block.start, None
            text = self.new_text(*start.settle())
            plain = TextDelta(text, 0, block.number)
            self.out.append(plain if block.kind == "text" else ReasoningDelta(text, 0, block.number, "summary"))

    def _citation(self, citation: dict[str, Any], block: Block) -> None:
        if citation:
            self.out.append(Aside(wire.VENDOR, "citation", "citations_delta", citation, block=block.number))


def _identity(block: Mapping[str, Any]) -> tuple[Any, str]:
    """Return the kind of a block and its id, which may be blank."""
    kind = block.get("type")
    return kind if isinstance(kind, str) else None, next(filter(None, map(text_of, map(block.get, IDS))), "")


def _is_read(block: Any) -> bool:
    """Return whether no member of a block's start is lost: all are known, or it is a call, which keeps unknown members."""
    return type(block) is dict and (block.get("type") == "tool_use" or block.keys() <= wire.BLOCK.names)


class AnthropicBodyDecoder(AnthropicDecoder):
    """Reads a whole body: a message or an error."""

    def decode(self, document: dict[str, Any]) -> None:
        kind = document.get("type")
        if kind == "message":
            self.recognised = True
            self._message(document)
            self.read_error(document)
        elif kind == "error":
            self.recognised = True
            self._error(document)
        else:
            self.unknown_frame("body", document)

    def _message(self, document: dict[str, Any]) -> None:
        first = {name: value for name, value in document.items() if name not in (*LAST, *LAST_EVENT_MEMBERS, "content")}
        last = {name: document.get(name) for name in LAST}
        self._message_start({"message": first})
        if blocks := self.contents(document.get("content")):
            texts = self.texts_at(len(blocks), "content")
            for number, (value, text) in enumerate(zip(blocks, texts, strict=True)):
                self.whole_block(value, number, text)
        siblings = {name: document[name] for name in LAST_EVENT_MEMBERS if name in document}
        self._message_delta({"delta": last, "usage": document.get("usage"), **siblings})
        self._message_stop({})
