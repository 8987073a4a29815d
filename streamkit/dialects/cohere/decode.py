"""Decode Cohere events to wire events.

Blocks and calls have separate indices. The decoder uses an index only as a label and numbers blocks and calls itself, so two
blocks with the same index remain two blocks. The tool plan is a separate block, without a start and an end.

``message-end`` completes the stream. It also contains the usage, and the provider's error if there is one. A ``[DONE]`` after
it has no meaning. A whole body is split into the events of a stream.

Source: dialects.md §0.3, §6.2, §7.6.
"""

from __future__ import annotations

from typing import Any, Final

from attrs import define

from streamkit.dialects.cohere import wire
from streamkit.dialects.members.values import Members, has_value, others_of, text_of
from streamkit.dialects.streams.frame_decoder import FUNCTIONS, FrameDecoder
from streamkit.dialects.streams.running_text import StartText
from streamkit.dialects.vocabulary.error_bodies import error_in, provider_failed
from streamkit.errors import TooManyBlocks, TooManyToolCalls
from streamkit.events import (
    Aside,
    ProviderFailed,
    ReasoningDelta,
    ResponseStarted,
    StopReasonSeen,
    TerminatorSeen,
    TextDelta,
    ToolCallDelta,
    ToolCallEnded,
)
from streamkit.limits import Limits
from streamkit.report import StreamReport
from streamkit.text.quoting import quoted

# Members that the decoder reads: in the event of a delta, its content and its call, in ``message-start``, in the ``delta`` of
# ``message-end``, and in a whole body and its message. Other members are kept as Cohere's own data.
DELTA_FIELDS: Final = frozenset({"type", "index", "delta", "logprobs"})
CONTENT_FIELDS: Final = frozenset({"type", *wire.TEXT_KINDS})
CALL_FIELDS: Final = frozenset({"id", "type", "function"})
FUNCTION_ONLY: Final = Members("function")
CALL: Final = "delta.message.tool_calls."  # the path of a call, in the names of asides
START_FIELDS: Final = frozenset({"id", "type", "delta"})
END_FIELDS: Final = frozenset({"finish_reason", "usage", "error"})
BODY_FIELDS: Final = frozenset({"id", "finish_reason", "message", "usage", "logprobs", "error"})
MESSAGE_FIELDS: Final = frozenset({"role", "content", "tool_plan", "tool_calls", "citations"})
OWN: Final = wire.EVENTS.keys() - {wire.DEBUG}  # the events that no other dialect has


def recognises(event: str, document: Any) -> bool:
    """Return whether a payload may be a Cohere event."""
    if not isinstance(document, dict):
        return False
    kind = document.get("type") or event
    return isinstance(kind, str) and kind in OWN


@define
class Block:
    """A block of content that has started and not ended."""

    kind: str  #: ``text``, ``thinking`` or another type; empty until the block's start or first delta shows it
    number: int  #: the block's number in the response, which its events carry
    #: The text in the block's start. It is held until the first delta, which may repeat it, or the block's end.
    start: StartText | None = None


class CohereDecoder(FrameDecoder):
    """Decodes the events of a stream."""

    dialect = "cohere"
    vendor = wire.VENDOR
    idle = frozenset()
    call_path: tuple[str | int, ...] = ("delta", "message", "tool_calls")  #: the path of a call in the payload
    _id: str | None = None
    _block_index = 0  # the index in the latest delta or start
    _block_count = 0
    _plan: int | None = None  # number of the block with the tool plan
    _call_index = 0
    _next_call = 0  # one more than the highest index so far
    _call_count = 0

    def __init__(self, limits: Limits, report: StreamReport) -> None:
        super().__init__(limits, report)
        self._ended = False
        self._blocks: dict[int, Block] = {}  # open blocks, by index
        self._used: set[int] = set()  # indices of blocks that were closed
        self._calls: dict[int, int] = {}  # number of the latest call of each index
        self._open_calls: set[int] = set()  # indices of calls that have not ended

    def done(self) -> None:
        if not self._ended:
            super().done()

    def decode(self, document: dict[str, Any]) -> None:
        kind = self.string(document.get("type"))
        if kind not in wire.EVENTS:
            if (named := self.named_by_its_line(document, OWN)) is not None:
                self.decode(named)
            else:
                self.unknown_frame(kind or "event", document)
            return
        self.recognised = True
        if self.event == "message":
            self.report.repair("event_name_missing")
        event = wire.EVENTS[kind]
        reader = getattr(self, event.method)
        if self._ended:
            self.behind_end(reader, document)
        else:
            self.read_and_keep(reader, document, event.members, f"{kind}.")
        self.read_error(document)

    def is_bare_error(self, document: dict[str, Any]) -> bool:
        """Return whether a payload is an error. A message alone is one, as in the body of an HTTP error."""
        is_message = not has_value(document.get("type")) and text_of(document.get("message")) is not None
        return is_message or super().is_bare_error(document)

    def debug(self, document: dict[str, Any]) -> None:
        self.ensure_started()
        self.out.append(Aside(wire.VENDOR, "metadata", wire.DEBUG, document))

    # -- the message -----------------------------------------------------------------------------------------------

    def message_start(self, document: dict[str, Any]) -> None:
        """Read the start of the message. Members other than its id and role are kept as the vendor's."""
        if self._started:
            self.restarted(self._id, document.get("id"))
            return
        message = self.message(document)
        extras = others_of(document, START_FIELDS)
        if inner := others_of(message, {"role"}):
            extras["delta"] = inner
        self._id = text_of(document.get("id"))
        started = ResponseStarted(self._id, vendor=wire.VENDOR, extras=extras or None)
        self.start(started, text_of(message.get("role")) or "assistant")

    def message(self, document: dict[str, Any]) -> dict[str, Any]:
        """Return ``delta.message`` of an event; empty if there is none."""
        return self.fields(self.fields(document.get("delta")).get("message"))

    def _content(self, document: dict[str, Any]) -> dict[str, Any]:
        """Return the content of an event. Some servers write it as a list of one item, or as text."""
        content = self.message(document).get("content")
        if type(content) is list and len(content) == 1:
            self.report.repair("list_unasked")
            content = content[0]
        if type(content) is str and content:
            self.report.repair("object_missing")
            return {"text": content}
        return self.fields(content)

    def _index(self, document: dict[str, Any], default: int) -> int:
        index = self.index(document.get("index"))
        if index is None:
            self.report.repair("index_missing")
            return default
        return index

    # -- content ---------------------------------------------------------------------------------------------------

    def content_start(self, document: dict[str, Any]) -> None:
        content = self._content(document)
        index = self.index(document.get("index"))
        if index is None:
            self.report.repair("index_missing")
            index = max(self._blocks, default=-1) + 1
        block = self._begin(index, self.string(content.get("type")))
        if block.kind and block.kind not in wire.TEXT_KINDS:
            self.out.append(Aside(wire.VENDOR, "unknown_event", wire.CONTENT_START, document, block=block.number))
        else:
            self._start_with(content, block)

    def content_delta(self, document: dict[str, Any]) -> None:
        content = self._content(document)
        index = self._block_index = self._index(document, self._block_index)
        block = self._blocks.get(index)
        if block is None:
            self.report.repair("block_unopened")
            block = self._begin(index, "thinking" if content.get("thinking") else "text")
        if block.kind and block.kind not in wire.TEXT_KINDS:
            self.out.append(Aside(wire.VENDOR, "unknown_event", "content-delta", document, block=block.number))
            return
        self._add_text(content, block)
        if logprobs := document.get("logprobs"):
            self.out.append(Aside(wire.VENDOR, "logprobs", "logprobs", logprobs, block=block.number))
        if not document.keys() <= DELTA_FIELDS:
            self.keep_others(document, DELTA_FIELDS, "content-delta.", block=block.number)

    def content_end(self, document: dict[str, Any]) -> None:
        index = self._index(document, self._block_index)
        block = self._blocks.pop(index, None)
        if block is None:
            self.report.repair("block_unopened")
            return
        self._used.add(index)
        self._settle(block)
        if block.kind and block.kind not in wire.TEXT_KINDS:
            self.out.append(Aside(wire.VENDOR, "unknown_event", "content-end", document, block=block.number))

    def _start_with(self, content: dict[str, Any], block: Block) -> None:
        """Hold the text in a block's start, because the first delta may repeat it. Nearly always there is none."""
        for kind in ("text", "thinking"):
            if block.start is None and block.kind in (kind, "") and type(content.get(kind)) is str and content[kind]:
                self._belongs(block, kind)
                block.start = StartText(content[kind])
                content = {name: value for name, value in content.items() if name != kind}
        self._add_text(content, block)

    def _settle(self, block: Block) -> None:
        """Emit the held text of the block's start, because no later delta can repeat it."""
        if block.start is not None:
            start, block.start = block.start, None
            self._add_text({block.kind: self.new_text(*start.settle())}, block)

    def _add_text(self, content: dict[str, Any], block: Block) -> None:
        """Emit the text of a start or a delta. The member with the text decides the kind."""
        if block.start is not None and (fragment := self.string(content.get(block.kind))):
            text = ""
            if (new := block.start.follow(fragment)) is not None:
                block.start = None
                text = self.new_text(*new)
            content = {**content, block.kind: text}
        if text := self.string(content.get("text")):
            self._belongs(block, "text")
            self.out.append(TextDelta(text, 0, block.number))
        if thinking := self.string(content.get("thinking")):
            self._belongs(block, "thinking")
            self.out.append(ReasoningDelta(thinking, 0, block.number))
        if not content.keys() <= CONTENT_FIELDS:
            self.keep_others(content, CONTENT_FIELDS, "content.", block=block.number)

    def _belongs(self, block: Block, kind: str) -> None:
        if not block.kind:
            block.kind = kind
        elif block.kind != kind:
            self.report.repair("block_mismatch")

    def _begin(self, index: int, kind: str) -> Block:
        self.ensure_started()
        if index in self._blocks:
            self.report.repair("block_reopened")
        elif index in self._used:
            self.report.repair("index_reused")
        self._block_index = index
        block = self._blocks[index] = Block(kind, self._number())
        return block

    def _number(self) -> int:
        """Return the number of the next block. Raises TooManyBlocks."""
        if self._block_count >= self.limits.content_blocks:
            raise TooManyBlocks(self.limits.content_blocks, offset=self.frame.offset)
        self._block_count += 1
        return self._block_count - 1

    def tool_plan(self, document: dict[str, Any]) -> None:
        self.ensure_started()
        if text := self.string(self.message(document).get("tool_plan")):
            if self._plan is None:
                self._plan = self._number()
            self.out.append(ReasoningDelta(text, 0, self._plan, "summary"))

    def citation_start(self, document: dict[str, Any]) -> None:
        """Emit a citation. Its start contains all of it."""
        self.ensure_started()
        if citation := self.fields(self.message(document).get("citations")):
            self.out.append(Aside(wire.VENDOR, "citation", wire.CITATION, citation))

    def citation_end(self, document: dict[str, Any]) -> None:
        """Ignore the end of a citation, because its start contained all of it."""

    # -- tool calls ------------------------------------------------------------------------------------------------

    def call_start(self, document: dict[str, Any]) -> None:
        """Read the start of a call: its id, its name and perhaps its arguments."""
        call, function, path = self._call(document)
        index = self._index(document, self._next_call)
        self._begin_call(index)
        call_id, name = self.string(call.get("id")) or None, self.string(function.get("name")) or None
        delta = ToolCallDelta(self._calls[index], call_id, name, is_ended_by_wire=True)
        if not call.keys() <= CALL_FIELDS:
            delta.extras = others_of(call, CALL_FIELDS)
        self._arguments(function, delta, path, f"tool-call-start.{CALL}function.")

    def call_delta(self, document: dict[str, Any]) -> None:
        call, function, path = self._call(document)
        index = self._call_index = self._index(document, self._call_index)
        if index not in self._calls:
            self.report.repair("block_unopened")
            self._begin_call(index)
        self._arguments(function, ToolCallDelta(self._calls[index]), path, f"tool-call-delta.{CALL}function.")
        self.keep_unread(call, FUNCTION_ONLY, where=f"tool-call-delta.{CALL}")

    def call_end(self, document: dict[str, Any]) -> None:
        index = self._index(document, self._call_index)
        if index in self._open_calls:
            self._open_calls.remove(index)
            self.out.append(ToolCallEnded(self._calls[index]))
        else:
            self.report.repair("block_unopened")

    def _begin_call(self, index: int) -> None:
        self.ensure_started()
        if index in self._open_calls:
            self.report.repair("block_reopened")
            self.out.append(ToolCallEnded(self._calls[index]))
        elif index in self._calls:
            self.report.repair("index_reused")
        if self._call_count >= self.limits.content_blocks:  # higher than ``tool_calls``: the accumulator may join some
            raise TooManyToolCalls(self.limits.tool_calls, offset=self.frame.offset)
        self._call_index, self._next_call = index, max(self._next_call, index + 1)
        self._open_calls.add(index)
        self._calls[index] = self._call_count
        self._call_count += 1

    def _call(self, document: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], tuple[str | int, ...]]:
        """Return the call of an event, its function, and the path of that. Some servers write the call as a list of one."""
        call, path = self.message(document).get("tool_calls"), self.call_path
        if type(call) is list and len(call) == 1 and type(call[0]) is dict:
            self.report.repair("list_unasked")
            call, path = call[0], (*path, 0)
        call = self.fields(call)
        function = self.fields(call.get("function"))
        if bare := self.bare_function(call, function):
            return {name: call[name] for name in call if name not in bare}, {**function, **bare}, path
        return call, function, (*path, "function")

    def _arguments(
        self, function: dict[str, Any], delta: ToolCallDelta, path: tuple[str | int, ...], where: str
    ) -> None:
        name = self.member_of_arguments(function)
        arguments = function.get(name)
        if isinstance(arguments, str) or arguments is None:
            delta.arguments = arguments
        else:
            self.report.repair("arguments_not_text")
            delta.arguments = self.text_at(*path, name)
            delta.snapshot = True
        self.out.append(delta)
        self.keep_unread(function, FUNCTIONS[name], where=where)

    # -- the end ---------------------------------------------------------------------------------------------------

    def settle_starts(self) -> None:
        """Emit the held texts from the starts of open blocks, because the stream is over."""
        for block in self._blocks.values():
            self._settle(block)

    def message_end(self, document: dict[str, Any]) -> None:
        """Read the end of the message, which may be an error."""
        self.ensure_started()
        self._ended = True
        delta = self.fields(document.get("delta"))
        if usage := self.fields(delta.get("usage")):
            self.tell_counts(wire.decode_usage(usage))
            if (sound := wire.sound_usage(usage)) != usage:
                self.keep_invalid({name: value for name, value in usage.items() if sound.get(name) != value})
        self.keep_others(delta, END_FIELDS, "message-end.")
        native = text_of(delta.get("finish_reason"))
        error = error_in(delta)
        if error is not None or native in wire.FAILURES:
            self._failed(error, delta, native)
            return
        self.settle_starts()
        for _ in (*self._blocks, *self._open_calls):  # the message succeeded, and ended its blocks and calls
            self.report.repair("block_unclosed")
        self._blocks.clear()
        self._open_calls.clear()
        if native is not None:
            self.out.append(StopReasonSeen(self.stop_reason(native, wire.STOP_REASONS), native))
        self.out.append(TerminatorSeen())

    def _failed(self, error: Any, delta: dict[str, Any], native: str | None) -> None:
        self.settle_starts()
        error = error or f"the provider gave the finish reason {quoted(native)}"
        if not isinstance(error, str):
            self.report.repair("error_shape")
        failure = provider_failed(error, wire.VENDOR, {})
        kind = wire.FAILURES.get(native or "", failure.type)
        self.out.append(ProviderFailed(kind, failure.message, native, failure.code, raw=delta, vendor=wire.VENDOR))


class CohereBodyDecoder(CohereDecoder):
    """Decodes a whole body, as the events of a stream with the same content."""

    def decode(self, document: dict[str, Any]) -> None:
        message = self.alone(document.get("message")) if "finish_reason" in document else None
        if not isinstance(message, dict):
            self.unknown_frame("body", document)
            return
        self.recognised = True
        inner = {name: value for name, value in message.items() if name not in MESSAGE_FIELDS}
        start = {name: value for name, value in document.items() if name not in BODY_FIELDS}
        start |= {"id": document.get("id"), "delta": {"message": {"role": message.get("role"), **inner}}}
        self.message_start(start)
        self.tool_plan(_in_delta("tool_plan", message.get("tool_plan")))
        content = message.get("content")
        parts = [content] if type(content) is str else [part for _, part in self.listed(content)]
        for index, part in enumerate(parts):
            event = {"index": index, **_in_delta("content", part)}
            self.content_start(event)
            self.content_end(event)
        calls = self.listed(message.get("tool_calls"))
        if len(calls) > self.limits.content_blocks:  # far above the limit of calls
            raise TooManyToolCalls(self.limits.tool_calls, offset=self.frame.offset)
        for index, (step, call) in enumerate(calls):
            self.call_path = ("message", "tool_calls", *step)
            event = {"index": index, **_in_delta("tool_calls", call)}
            self.read_and_keep(self.call_start, event, wire.EVENTS["tool-call-start"].members, "tool-call-start.")
            self.call_end(event)
        for citation in self.items(message.get("citations")):
            self.citation_start(_in_delta("citations", citation))
        # no member names the part that the log probabilities belong to: they are emitted with the first text
        block = next((event.block for event in self.out if isinstance(event, TextDelta)), 0)
        for item in self.items(document.get("logprobs")):
            self.out.append(Aside(wire.VENDOR, "logprobs", "logprobs", item, block=block))
        end = {name: document.get(name) for name in ("finish_reason", "usage")}
        self.message_end({"delta": {**end, "error": error_in(document)}})

    def is_own_error(self, document: dict[str, Any], error: Any) -> bool:
        return error is document and text_of(document.get("message")) is not None


def _in_delta(name: str, value: Any) -> dict[str, Any]:
    """Return an event's ``delta`` that contains a member of a whole message."""
    return {"delta": {"message": {name: value}}}
