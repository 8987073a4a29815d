"""Anthropic events to wire events: the message around the content blocks (``content.py``).

Usage of ``message_delta`` replaces that of ``message_start`` where it has a value.

Source: dialects.md §3.1, §3.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import orjson

from streamkit.dialects.anthropic.asides import frames_of
from streamkit.dialects.anthropic.content import OWN_BLOCKS, ContentReader
from streamkit.dialects.anthropic.wire import (
    BESIDE_DELTA,
    ERROR_TYPES,
    MESSAGE_DELTA,
    STOP_REASONS,
    VENDOR,
    decode_usage,
)
from streamkit.dialects.members.known import KEPT, UNREAD, Members, kept
from streamkit.dialects.members.values import said, text_of
from streamkit.dialects.vocabulary.error_bodies import is_bare_error, provider_failed
from streamkit.events import (
    Aside,
    ChoiceStarted,
    ResponseStarted,
    StopReasonSeen,
    TerminatorSeen,
)
from streamkit.limits import Limits
from streamkit.report import StreamReport

EVENTS = frozenset(
    {
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "ping",
        "error",
    }
)
#: Those that an ``event:`` line may name alone: a bare ``ping`` or ``error`` is not only Anthropic's.
STREAMED = EVENTS - {"ping", "error"}
MESSAGE_FIELDS = frozenset(
    {"id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage", "stop_details"}
)


#: What is read of each event; blocks that only Anthropic understands are kept whole.
MEMBERS: Mapping[str, Members] = {
    "message_start": Members("type", "message"),
    "content_block_start": Members(
        "type", "index", content_block=Members("type", "text", "citations", "thinking", "signature", "data")
    ),
    "content_block_delta": Members("type", "index", "delta"),
    "content_block_stop": Members("type", "index"),
    "message_delta": kept("type", "delta", "usage"),
    "message_stop": Members("type"),
    "ping": Members("type"),
    "error": KEPT,
}
#: A call keeps its members itself.
CALL_START = Members("type", "index", "content_block")


#: Counts that a usage object may have; each frame repeats them all.
COUNTS = 64


def recognises(event: str, document: Any) -> bool:
    """Whether a payload can be an Anthropic event."""
    if not isinstance(document, dict):
        return False
    if document.get("type") == "error":  # an event that is counted is one of Responses
        return event == "error" and "sequence_number" not in document
    kind = document.get("type") or event
    return isinstance(kind, str) and kind in STREAMED


def _says(block: object) -> bool:
    """Whether a block in the message's start says more than that it begins."""
    return not isinstance(block, dict) or any(said(value) for name, value in block.items() if name != "type")


class AnthropicDecoder(ContentReader):
    members: ClassVar[Mapping[str, Members]] = MEMBERS

    def __init__(self, limits: Limits, report: StreamReport) -> None:
        super().__init__(limits, report)
        self._started = False
        self._id: str | None = None
        self._stopped = False
        self._usage: dict[str, Any] = {}
        self._by_type = {
            "message_start": self._message_start,
            "content_block_start": self.block_start,
            "content_block_delta": self.block_delta,
            "content_block_stop": self.block_stop,
            "message_delta": self._message_delta,
            "message_stop": self._message_stop,
            "error": self._error,
        }

    def decode(self, document: dict[str, Any]) -> None:
        kind = self.string(document.get("type"))
        if kind in EVENTS:
            self.recognised = True
            if self.frame.event == "message":
                self.report.repair("event_name_missing")
        elif (named := self.named_by_its_line(document, STREAMED)) is not None:
            self.decode(named)
            return
        elif document.get("error") or (not kind and self.frame.event == "error") or is_bare_error(document):
            self.recognised = True  # a bare {"error": …} of another envelope (quirks.md 112), or less than that
            self.report.repair("error_shape")
            self._error(document)
            return
        else:
            self.strange()
            if self._started:
                self.out.append(Aside(VENDOR, "unknown_event", kind or "event", document))
            return
        if kind == "ping":
            self.keep_unread(document, self.members[kind])
            return
        if self._stopped:
            self.behind_end(self._by_type[kind], document)
            return
        before = len(self.out)
        self._by_type[kind](document)
        members = self.members[kind]
        if not document.keys() <= members.names or kind == "content_block_start":
            self._unread(document, members, before)

    def _unread(self, document: dict[str, Any], members: Members, before: int) -> None:
        """Keep what was not read, unless the whole event was kept."""
        if any(type(event) is Aside and event.raw is document for event in self.out[before:]):
            return
        if document.get("type") == "content_block_start":
            block = document.get("content_block")
            if type(block) is dict and block.get("type") == "tool_use":
                members = CALL_START
        self.keep_unread(document, members, where=f"{document['type']}.")

    def _message_start(self, document: dict[str, Any]) -> None:
        message = self.fields(document.get("message"))
        if self._started:
            self.restarted(self._id, message.get("id"))
            return
        extras = {name: value for name, value in message.items() if name not in MESSAGE_FIELDS and said(value)}
        usage = None
        if counts := self.fields(message.get("usage")):
            self._usage.update(counts)
            usage = decode_usage(dict(self._usage))
        self._id = text_of(message.get("id"))
        model = text_of(message.get("model"))
        self._start(ResponseStarted(self._id, model, vendor=VENDOR, extras=extras or None, usage=usage))
        if usage is not None:
            self.out.append(usage)  # the answer's own counts come with its end
        if blocks := self.contents(message.get("content")):
            texts = self.texts_at(len(blocks), "message", "content")
            self.in_start = {number: text for number, text in enumerate(texts) if _says(orjson.loads(text))}
        if said(reason := message.get("stop_reason")):  # before its content an answer has not ended
            self.out.append(Aside(VENDOR, "unknown_event", f"{UNREAD}message.stop_reason", reason))

    def close(self) -> None:
        self._say_start(ended=False)
        super().close()

    def _say_start(self, *, ended: bool) -> None:
        """Read the blocks of the message's start that no event brought."""
        held, self.in_start = self.in_start, {}
        for number, text in held.items():
            self.whole_block(orjson.loads(text), number, text, ended=ended)

    def whole_block(self, value: Any, number: int, text: bytes, *, ended: bool = True) -> None:
        """One block, by the frames that a stream would have: a start with all of it is enough for those we know.

        ``text`` is the block's own JSON.
        """
        block = self.part_of(value)
        self.block_text = text
        kind, given = block.get("type"), block.get("input")
        streamed = isinstance(kind, str) and kind not in OWN_BLOCKS and isinstance(given, dict) and given
        start, *deltas, stop = frames_of(block, number, self.input_text() if streamed else None)
        if block:
            before = len(self.out)
            self.block_start(start)
            self._unread(start, self.members["content_block_start"], before)
            for delta in deltas:
                self.block_delta(delta)
            if ended:
                self.block_stop(stop)
        self.block_text = b""

    def _start(self, event: ResponseStarted) -> None:
        self._started = True
        self.out.append(event)
        self.out.append(ChoiceStarted())

    def ensure_started(self) -> None:
        if not self._started:
            self._start(ResponseStarted(vendor=VENDOR))

    # -- the message -----------------------------------------------------------------------------------------------

    def _message_delta(self, document: dict[str, Any]) -> None:
        self.ensure_started()
        delta = self.fields(document.get("delta"))
        if usage := self.fields(document.get("usage")):
            for name, value in usage.items():
                if value is not None and (name in self._usage or len(self._usage) < COUNTS):
                    self._usage[name] = value
            self.tell_counts(decode_usage(dict(self._usage)))
        if native := text_of(delta.get("stop_reason")):
            self._say_start(ended=True)
            reason = self.stop_reason(native, STOP_REASONS)
            self.out.append(StopReasonSeen(reason, native, 0, text_of(delta.get("stop_sequence"))))
        for name, value in delta.items():
            if name not in {"stop_reason", "stop_sequence"} and value is not None:
                self.out.append(Aside(VENDOR, "metadata", f"{MESSAGE_DELTA}{name}", value))
        if not document.keys() <= (members := self.members["message_delta"]).names:
            for name, value in document.items():
                if name not in members.names and said(value):  # context_management stands beside the delta
                    self.out.append(Aside(VENDOR, "metadata", f"{BESIDE_DELTA}{name}", value))

    def _message_stop(self, _document: dict[str, Any]) -> None:
        self.ensure_started()
        self._say_start(ended=True)
        first, self._stopped = not self._stopped, True
        for index in list(self.blocks) if first else ():  # calls stay open, and are not looked at again at each end
            self.report.repair("block_unclosed")
            if self.blocks[index].kind != "tool_use":
                self.close_block(index)
        self.out.append(TerminatorSeen())

    def _error(self, document: dict[str, Any]) -> None:
        self._say_start(ended=False)
        self.settle_starts()
        failed = provider_failed(document.get("error") or document, VENDOR, ERROR_TYPES)
        if isinstance(document.get("error"), dict) and document.keys() - {"type", "error"}:  # the request's id
            failed.raw = document
        self.out.append(failed)
