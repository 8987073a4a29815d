"""Encode events as Mistral's chunks: Chat's, but with whole calls, reasoning in the content, usage on the last chunk.

The client's types have no place for a fragment of a call, so a call is held until it ended; a truncated call is withheld. Its
id has nine letters and digits: any other id is hashed, which is a counted loss (``text/identifiers.py``). A signature is
written as a whole after its thinking, because clients take it for the end of the thinking. Another vendor's is sealed.

Source: dialects.md §0.4, §6.3.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import orjson
from attrs import define, field

from streamkit.conversation.messages import ToolCall
from streamkit.dialects.members.fields import add_missing, plain_or_list
from streamkit.dialects.mistral import wire
from streamkit.dialects.openai_chat.encode import ChatEncoder
from streamkit.dialects.openai_chat.wire import IMAGE, url_of
from streamkit.dialects.profiles import Encoding
from streamkit.dialects.streams.event_encoder import function_call, stop_word
from streamkit.dialects.streams.whole_call_encoder import CallOrder
from streamkit.dialects.vocabulary.sealed_reasoning import Kind, seal
from streamkit.errors import HeldTooLong
from streamkit.events import (
    Aside,
    MediaGenerated,
    ProviderFailed,
    ReasoningDelta,
    ReasoningOpaque,
    ReasoningSignature,
    RefusalDelta,
    ResponseFinished,
    TextDelta,
    ToolCallFinished,
    ToolCallStarted,
)
from streamkit.limits import Limits
from streamkit.machines import Link
from streamkit.report import StreamReport
from streamkit.text.identifiers import nine_characters
from streamkit.tool_calls.check import check_arguments

dumps = orjson.dumps


@define
class _Signature:
    """A signature, which may arrive in pieces."""

    kind: Kind
    block: int
    vendor: str
    pieces: list[str] = field(factory=list)

    @property
    def text(self) -> str:
        blob = "".join(self.pieces)
        return blob if (self.kind, self.vendor) == ("reasoning", wire.VENDOR) else seal(self.kind, self.vendor, blob)


class MistralEncoder(ChatEncoder):
    """Encodes the choices of a response as Mistral's chunks."""

    vendor: ClassVar = wire.VENDOR
    push_text, push_reasoning = Link.push_text, Link.push_reasoning

    def __init__(self, encoding: Encoding, report: StreamReport) -> None:
        super().__init__(encoding, report)
        self._calls: defaultdict[int, CallOrder] = defaultdict(CallOrder)  # by choice
        self._written: Counter[int] = Counter()  # number of calls, by choice
        self._signatures: dict[int, _Signature] = {}  # the unwritten signature of each choice
        self._signature_chars = 0
        self._finished: list[ResponseFinished] = []

    def _choice_chunk(self, number: int, delta: bytes, first: bytes | None = None) -> None:
        if number in self._signatures:
            self._settle(number)
        super()._choice_chunk(number, delta, first)

    def _thinking(self, choice: int, thinking: bytes) -> None:
        self._delta(choice, b'{"content":[{"type":"thinking",%b}]}' % thinking)

    def _write_signature(self, choice: int, text: str) -> None:
        self._thinking(choice, b'"thinking":[],"signature":%b' % dumps(text))

    def _place(self, event: TextDelta | RefusalDelta | ReasoningDelta, _order: int) -> None:
        """Keep the position of a part. The content can express any order of its parts, except text after a call."""
        super()._place(event, 1)

    def refusal(self, event: RefusalDelta) -> None:
        choice = self._choices[event.choice]
        if not choice.refused:
            self.lose("refusal_as_text")
        choice.refused = True
        self.text(TextDelta(event.text, event.choice, event.block))

    def reasoning(self, event: ReasoningDelta) -> None:
        self._place(event, 1)
        choice = self._choices[event.choice]
        missing = choice.thought.before(event.text)  # after a signature, no boundary is needed
        text = missing + event.text if choice.unsigned > 1 else event.text
        self._thinking(event.choice, b'"thinking":[{"type":"text","text":%b}]' % dumps(text))

    def signature(self, event: ReasoningSignature) -> None:
        choice = self._choices[event.choice]
        if event.on == "text":
            kind: Kind = "text" if choice.blocks.get(TextDelta) == event.block else "part"
        elif choice.unsigned > 1 or (choice.unsigned and choice.blocks[ReasoningDelta] != event.block):
            self.lose("reasoning_signature")  # the last text is not the text that was signed
            return
        else:
            kind, choice.unsigned = "reasoning", 0
        held = self._signatures.get(event.choice)
        if held is None or (held.kind, held.block, held.vendor) != (kind, event.block, event.vendor):
            self._settle(event.choice)
            held = self._signatures[event.choice] = _Signature(kind, event.block, event.vendor)
        self._signature_chars += len(event.blob)
        if self._signature_chars > self.encoding.limits.held_chars:
            raise HeldTooLong(self.encoding.limits.held_chars)
        held.pieces.append(event.blob)

    def _settle(self, number: int) -> None:
        """Write the held signature of a choice."""
        held = self._signatures.pop(number, None)
        if held is not None:
            self._signature_chars -= sum(map(len, held.pieces))
            self._write_signature(number, held.text)

    def opaque(self, event: ReasoningOpaque) -> None:
        self._settle(event.choice)
        choice = self._choices[event.choice]
        if choice.order > 1:  # an earlier call is written later, when it is complete
            self.lose("block_order")
        self._write_signature(event.choice, seal("opaque", event.vendor, event.blob))
        choice.unsigned = 0

    def call_started(self, event: ToolCallStarted) -> None:
        self._choices[event.choice].order = 2
        self._calls[event.choice].start(event)

    def push_arguments(self, call: int, text: str, choice: int, /) -> None:
        pass  # a call is written when it is complete

    def call_finished(self, event: ToolCallFinished) -> None:
        """Write this call as soon as all calls that started before it are written."""
        for start, finished in self._calls[event.choice].finish(event):
            call = whole_call(finished, self.encoding.limits, self.report)
            if call is None:
                continue
            entry = {"index": self._written[start.choice], **call, **self.own_extras(start.extras)}
            if start.signature is not None:
                self._write_signature(start.choice, seal("call", start.signature.vendor, start.signature.blob))
            self._written[start.choice] += 1
            self._delta(start.choice, b'{"tool_calls":[%b]}' % dumps(entry))

    def media_form(self, media: MediaGenerated) -> Sequence[Aside]:
        return image_chunk(media)

    def aside(self, event: Aside) -> None:
        chunks = Chunks()
        if not is_content(event):
            super().aside(event)
        elif chunks.aside(event):
            self._delta(event.choice, b'{"content":%b}' % dumps(chunks.written))
        else:  # the client could not read a message with this part
            self.lose(event.kind)

    def finished(self, event: ResponseFinished) -> None:
        self._settle(event.choice)
        self._finished.append(event)

    def terminate(self) -> None:
        usage = b"" if self._usage is None else b',"usage":' + dumps(wire.encode_usage(self._usage, self.report))
        last = b'"choices":[{"index":%d,"delta":{%b"content":""},"finish_reason":"%b"}]%b'
        for event in self._finished:
            choice = self._choices[event.choice]
            found = wire.finish_reason(event.reason, event.native, called=self._written[event.choice] > 0)
            reason = stop_word(found, event.stop_sequence, self.report).encode()
            role = b"" if choice.role_written else b'"role":"assistant",'
            choice.role_written = True
            self._chunk(last % (event.choice, role, reason, usage if event is self._finished[-1] else b""))
        self.write(b"data: [DONE]\n\n")

    def flush(self) -> None:
        """Count the held signatures as lost after a failure, because a part of a signature is useless."""
        for _ in self._signatures:
            self.lose("reasoning_signature")
        self._signatures.clear()

    def error(self, event: ProviderFailed) -> None:
        """Write an error in place of a chunk: the client raises an error with its body.

        LangChain's client ignores a chunk without ``choices``, and would run the calls before it.
        """
        self.write(b"data: %b\n\n" % dumps({**wire.encode_error(event, self.report), "choices": None}))


def whole_call(call: ToolCallFinished | ToolCall, limits: Limits, report: StreamReport) -> dict[str, Any] | None:
    """Return an item of ``tool_calls`` without its index. Withhold a truncated or nameless call, and return None."""
    is_truncated = not call.ended
    if call.ended and call.kind == "custom":
        report.lose("custom_tool_wrapped")
    elif call.ended:
        is_truncated = (call.verdict or check_arguments(call.arguments, depth=limits.json_depth)).kind == "truncated"
    if is_truncated or not call.name:
        report.withhold("call_withheld", call.id, call.name, call.arguments)
        return None
    call_id = nine_characters(call.id)
    if call_id != call.id:
        report.lose("call_id")
    return function_call(call, call_id, call.name)


def image_chunk(media: MediaGenerated) -> Sequence[Aside]:
    """Return the part of the content for another vendor's image; empty without an image that a client can fetch."""
    url = url_of(media)
    chunk = {"type": IMAGE, IMAGE: url}
    return [] if url is None else [Aside(wire.VENDOR, "unknown_event", f"{wire.CONTENT}{IMAGE}", chunk, media.choice)]


def is_content(aside: Aside) -> bool:
    """Return whether an aside is a part of the content."""
    return aside.vendor == wire.VENDOR and aside.type.startswith((wire.CONTENT, wire.THINKING, wire.THINKING_MEMBER))


class Chunks:
    """Builds the content of a message, for requests and whole responses: text and thinking in one list, in order.

    A thinking is a list: its text is reasoning in neutral terms, and its other parts are asides, which join the thinking
    before them. A signature closes a thinking.
    """

    def __init__(self) -> None:
        self.written: list[dict[str, Any]] = []
        self._thinking: dict[str, Any] | None = None  #: the last part, if it is a thinking that is not closed
        self._joins = False  #: whether more text belongs to that part

    @property
    def content(self) -> str | list[dict[str, Any]]:
        """The content: a string for no text or one plain text, otherwise the list."""
        return plain_or_list(self.written)

    def add(self, part: dict[str, Any]) -> None:
        """Add a part. A thinking part before it is then complete."""
        self.written.append(part)
        self._thinking = None

    def think(self, text: str, signature: str | None = None, members: Mapping[str, Any] | None = None) -> None:
        """Add the text of a thinking, and its signature. It begins a new thinking, except after an aside of one."""
        thinking = self._thinking if self._joins else None
        if thinking is None:
            thinking = self._open()
        if text:
            thinking["thinking"].append({"type": "text", "text": text})
        add_missing(thinking, members or {})
        if signature is not None:
            thinking["signature"] = signature
            self._thinking = None
        self._joins = False

    def aside(self, aside: Aside) -> bool:
        """Write a part of the content, or a part or member of a thinking. Return False for any other aside."""
        raw, name = aside.raw, aside.type
        is_part = isinstance(raw, dict) and isinstance(raw.get("type"), str)
        if name.startswith(wire.THINKING_MEMBER):
            thinking = self._thinking or self._open()
            return bool(thinking.setdefault(name.removeprefix(wire.THINKING_MEMBER), raw) == raw)
        if name.startswith(wire.THINKING) and is_part:
            thinking = self._thinking or self._open()
            thinking["thinking"].append(raw)
            self._joins = True
            return True
        if name.startswith(wire.CONTENT) and is_part:
            self.add(raw)
            return True
        return False

    def _open(self) -> dict[str, Any]:
        thinking: dict[str, Any] = {"type": "thinking", "thinking": []}
        self.add(thinking)
        self._thinking = thinking
        self._joins = False
        return thinking
