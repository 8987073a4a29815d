"""Encode events as Chat chunks: constant id and model, the role once, indices without gaps, call ids only in first fragments.

Chat has one stream of text, of refusal and of reasoning in a choice, and any number of calls that may interleave. So nothing
is held back, except the input of custom tools. Null or blank ids, an empty ``data:``, and ``[DONE]`` after an error are never
written.

Source: dialects.md §1.8, §0.4.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from typing import Any, ClassVar, Final, Literal

import orjson

from streamkit.dialects.bodies.openai import identity
from streamkit.dialects.openai_chat import wire
from streamkit.dialects.openai_chat.providers import client_of
from streamkit.dialects.profiles import Encoding
from streamkit.dialects.streams.event_encoder import EventEncoder, stop_word, wrapped_input
from streamkit.events import (
    Aside,
    ChoiceStarted,
    MediaGenerated,
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
from streamkit.text.one_string import OneString

dumps = orjson.dumps
#: The bytes before and after the delta of a chunk. The first is a template for the head and the choice.
BEFORE: Final = b'%b"choices":[{"index":%d,"delta":'
AFTER: Final = b',"finish_reason":null}]}\n\n'
CHUNK: Final = BEFORE + b"%b" + AFTER
TEXT_DELTA: Final = b'{"content":%b}'
#: The template of two chunks: the first has the role, and the second is ``CHUNK``.
FIRST_CHUNKS: Final = BEFORE + b'{"role":"assistant","content":%b}' + AFTER + CHUNK
#: The template of a chunk with a fragment of a call's arguments.
ARGUMENTS: Final = BEFORE + b'{"tool_calls":[{"index":%d,"function":{"arguments":%b}}]}' + AFTER


class _OpenChoice:
    role_written = False
    custom: frozenset[int] = frozenset()  #: the calls of custom tools
    refused = False
    details = 0  #: number of written entries of ``reasoning_details``
    signed: tuple[str, int, str] | None = None  #: the last written entry with a signature, which may arrive in pieces
    unsigned = 0  #: blocks of reasoning since that entry
    parted = False  #: whether something of another block was written within the last block of reasoning
    order = 0  #: 0 reasoning, 1 text, 2 calls; a lower one after a higher one is a loss

    def __init__(self) -> None:
        self.calls: dict[int, int] = {}  #: the written index of each call, without gaps in a choice
        self.blocks: dict[type, int] = {}  #: the last block of each kind of delta
        self.lists: dict[str, int] = {}  #: the number of entries written of each list that grows: images, annotations
        self.thought = OneString()  #: the reasoning of the choice


@cache
def _members(names: tuple[str, ...]) -> bytes:
    """Return a template of an object with these members."""
    return b"{%b}" % b",".join([b'"%b":%%b' % name.encode() for name in names])


class ChatEncoder(EventEncoder):
    """Encodes the chunks of a stream."""

    one_text = True
    vendor: ClassVar[str] = wire.VENDOR  #: the vendor whose extras, asides, counts and errors are written unchanged
    #: Set if more text may be written without checks: its choice, its block and, for reasoning, its kind.
    _goes_on: tuple[Any, ...] | None = None
    _more: bytes  # a template of the chunks for that text
    _running: OneString  # the reasoning

    def __init__(self, encoding: Encoding, report: StreamReport) -> None:
        super().__init__(encoding, report)
        self._client = client_of(encoding.profile)
        self._head = b""
        self._choices: defaultdict[int, _OpenChoice] = defaultdict(_OpenChoice)
        self._stop = b""  #: the last chunk with a stop reason, if the usage must be in it

    def response_started(self, event: ResponseStarted) -> None:
        """Keep the members at the beginning of each chunk."""
        head = identity(event, self.encoding, "chatcmpl-", "chat.completion.chunk")
        self._head = b"data: " + dumps({**head, **self.response_extras(event)})[:-1] + b","
        self._goes_on = None

    def _started(self) -> bytes:
        """Return the head if no event started the response."""
        self.response_started(ResponseStarted())
        return self._head

    def _chunk(self, fields: bytes) -> None:
        self.write(b"%b%b}\n\n" % (self._head or self._started(), fields))

    def choice_started(self, event: ChoiceStarted) -> None:
        """Begin a choice. The role is written with its first delta."""
        self._choices[event.choice], self._goes_on = _OpenChoice(), None

    def _delta(self, number: int, delta: bytes, *, content: bytes = b"null") -> None:
        choice = self._choices[number]
        if choice.role_written:
            self._choice_chunk(number, delta)
        else:
            choice.role_written = True
            self._choice_chunk(number, delta, content)

    def _choice_chunk(self, number: int, delta: bytes, first: bytes | None = None) -> None:
        """Write a chunk. ``first`` is the content of a chunk with the role, which is written before it."""
        head = self._head or self._started()
        if first is None:
            self.write(CHUNK % (head, number, delta))
        else:
            self.write(FIRST_CHUNKS % (head, number, first, head, number, delta))

    def push_text(self, text: str, choice: int, block: int, /) -> None:
        if (choice, block) == self._goes_on:  # the usual case
            self.parts.append(self._more % dumps(text))
        else:
            self.push(TextDelta(text, choice, block))
            if self._spoke and not self.ended:
                self._goes_on, self._more = (choice, block), self._chunks(choice, TEXT_DELTA)

    def push_reasoning(self, text: str, choice: int, block: int, kind: Literal["raw", "summary"], /) -> None:
        if (choice, block, kind) == self._goes_on:
            if text[-1:] == "\n" or self._running.ends:
                self._running.before(text)
            self.parts.append(self._more % ((dumps(text),) * len(self._client.reasoning_fields)))
        else:
            self.push(ReasoningDelta(text, choice, block, kind))
            self._running = self._choices[choice].thought
            if not (self.ended or self._running.is_due):
                more = self._chunks(choice, _members(self._client.reasoning_fields))
                self._goes_on, self._more = (choice, block, kind), more

    def _chunks(self, choice: int, delta: bytes) -> bytes:
        """Return the template of chunks of a choice with a delta. The delta is also a template."""
        return CHUNK % (self._head.replace(b"%", b"%%"), choice, delta)

    def text(self, event: TextDelta) -> None:
        self._place(event, 1)
        self._delta(event.choice, TEXT_DELTA % dumps(event.text), content=b'""')

    def refusal(self, event: RefusalDelta) -> None:
        self._place(event, 1)
        self._choices[event.choice].refused = True
        self._delta(event.choice, b'{"refusal":%b}' % dumps(event.text))

    def reasoning(self, event: ReasoningDelta) -> None:
        self._place(event, 0)
        if missing := self._choices[event.choice].thought.before(event.text):
            self._thought(event.choice, missing)
        self._thought(event.choice, event.text)

    def _thought(self, choice: int, text: str) -> None:
        """Write a piece of reasoning. A boundary between blocks is written alone, so that the decoder can recognise it."""
        names = self._client.reasoning_fields
        self._delta(choice, _members(names) % ((dumps(text),) * len(names)))

    def _place(self, event: TextDelta | RefusalDelta | ReasoningDelta, order: int) -> None:
        """Count what Chat cannot express: block boundaries, and text after calls or before reasoning."""
        choice = self._choices[event.choice]
        kind, self._goes_on = type(event), None
        block = choice.blocks.get(kind)
        if block != event.block:
            choice.blocks[kind] = event.block
            if kind is ReasoningDelta:
                choice.unsigned += 1
                choice.parted = False
                choice.thought.begin()
            if block is not None and (kind is not ReasoningDelta or choice.unsigned > 1):
                self.lose("block_boundary")
        if order < choice.order:
            self.lose("block_order")
        choice.order = order

    def signature(self, event: ReasoningSignature) -> None:
        """Write a signature: of a text as ``extra_content``, of reasoning as a detail."""
        choice, self._goes_on = self._choices[event.choice], None
        if not self._client.reasoning_details:
            self.lose("reasoning_signature")
            return
        if event.on == "text":
            if choice.blocks.setdefault(TextDelta, event.block) != event.block:  # a separate part (Gemini)
                choice.blocks[TextDelta] = event.block
                self.lose("block_boundary")
            extra = wire.extra_content(Opaque(event.vendor, event.blob))
            self._delta(event.choice, b'{"extra_content":%b}' % dumps(extra))
            return
        of_last = choice.blocks.get(ReasoningDelta) == event.block
        if of_last and (choice.unsigned > 1 or choice.parted):
            self.lose("reasoning_signature")  # the signed text was joined with other text
            return
        if choice.unsigned and not of_last:  # the signature of a block without text gets a new label
            choice.details += 1
            choice.parted = True
        self._detail(choice, event, "reasoning.text", "signature")

    def opaque(self, event: ReasoningOpaque) -> None:
        if self._client.reasoning_details:
            choice = self._choices[event.choice]
            choice.parted = choice.parted or choice.unsigned > 0
            self._detail(choice, event, "reasoning.encrypted", "data")
        else:
            self.lose("reasoning_opaque")

    def _detail(self, choice: _OpenChoice, event: ReasoningSignature | ReasoningOpaque, kind: str, name: str) -> None:
        """Write an opaque value in OpenRouter's form, which the decoder takes as the end of a block."""
        this = (name, event.block, event.vendor)
        detail: dict[str, Any] = {"index": choice.details - 1, "type": kind, name: event.blob}
        if name == "data" or this != choice.signed:
            detail |= {"index": choice.details, "format": wire.format_of(event.vendor)}
            choice.details += 1
        choice.signed = this
        choice.unsigned = 0
        self._delta(event.choice, b'{"reasoning_details":[%b]}' % dumps(detail))

    def call_started(self, event: ToolCallStarted) -> None:
        choice = self._choices[event.choice]
        choice.order, self._goes_on = 2, None
        if not event.name or event.cut:
            return  # a call without a name is withheld when it ends
        index = choice.calls[event.call] = len(choice.calls)
        if event.kind == "custom":
            choice.custom |= {event.call}
        function = {"name": event.name, "arguments": ""}
        start = {"index": index, "id": event.id, "type": "function", "function": function}
        start |= self.own_extras(event.extras)
        if event.signature is not None:
            start["extra_content"] = wire.extra_content(event.signature)
        self._delta(event.choice, b'{"tool_calls":[%b]}' % dumps(start))

    def call_arguments(self, event: ToolCallArguments, /) -> None:
        self.push_arguments(event.call, event.fragment, event.choice)

    def push_arguments(self, call: int, text: str, choice: int, /) -> None:
        of = self._choices[choice]
        index = of.calls.get(call)
        if index is not None and call not in of.custom and not self.ended:
            self.parts.append(ARGUMENTS % (self._head, choice, index, dumps(text)))

    def _arguments(self, choice: int, index: int, fragment: str) -> None:
        self.write(ARGUMENTS % (self._head, choice, index, dumps(fragment)))  # of a call that has started

    def call_finished(self, event: ToolCallFinished) -> None:
        """Write the missing part of a call that has ended, or withhold the call."""
        index = self._choices[event.choice].calls.get(event.call)
        if index is None or (event.kind == "custom" and not event.ended):
            self.withhold(event)
        elif event.kind == "custom":  # openai-python's stream helper fails on custom deltas (dialects.md §0.4)
            self.lose("custom_tool_wrapped")
            self._arguments(event.choice, index, wrapped_input(event.arguments))
        elif event.ended and not event.arguments.strip():  # clients parse the text, and "" is not JSON (quirks.md 42)
            self._arguments(event.choice, index, "{}")

    def _entries(self, choice: int, name: str, entries: list[Any]) -> None:
        """Write entries of a list that grows over several deltas. openai's helpers fail at a later one without its index."""
        lists = self._choices[choice].lists
        before = lists.get(name, 0)
        lists[name] = before + len(entries)
        numbered = [
            {"index": before + number, **entry} if before + number and isinstance(entry, dict) else entry
            for number, entry in enumerate(entries)
        ]
        self._delta(choice, b"{%b:%b}" % (dumps(name), dumps(numbered)))

    def media_form(self, media: MediaGenerated) -> Sequence[Aside]:
        return wire.write_images(media, self.vendor)

    def aside(self, event: Aside) -> None:
        name, value = event.type, event.raw
        if event.kind == "logprobs" or name.startswith("choices."):
            member = dumps({name.removeprefix("choices."): value})[1:-1]
            delta = self._role(event.choice) or b"{}"
            self._chunk(b'"choices":[{"index":%d,"delta":%b,%b,"finish_reason":null}]' % (event.choice, delta, member))
        elif event.kind == "audio":
            self._delta(event.choice, b'{"audio":%b}' % dumps(value))
        elif event.kind == "citation":
            self._entries(event.choice, "annotations", [value])
        elif name == wire.DELTA_IMAGES and isinstance(value, list):
            self._entries(event.choice, wire.IMAGES, value)
        elif name.startswith("delta."):
            self._delta(event.choice, dumps({name.removeprefix("delta."): value}))
        elif event.kind == "metadata":
            self._chunk(b'"choices":[],' + dumps({name: value})[1:-1])
        else:
            self.lose(event.kind)

    def finished(self, event: ResponseFinished) -> None:
        choice = self._choices[event.choice]
        found = wire.finish_reason(event.reason, event.native, refused=choice.refused, called=bool(choice.calls))
        reason = stop_word(found, event.stop_sequence, self.report)
        if role := self._role(event.choice):
            self._choice_chunk(event.choice, role)
        stop = b'"choices":[{"index":%d,"delta":{},"finish_reason":"%b"}]' % (event.choice, reason.encode())
        if self._client.usage_with_stop:
            self._write_stop()
            self._stop = stop
        else:
            self._chunk(stop)

    def _role(self, number: int) -> bytes:
        """Return a delta that has only the role of a choice, if nothing was written of the choice yet; otherwise nothing."""
        choice = self._choices[number]
        if choice.role_written:
            return b""
        choice.role_written = True
        return b'{"role":"assistant","content":""}'

    def _write_stop(self, rest: bytes = b"") -> None:
        """Write the held chunk with a stop reason. ``rest`` are members that follow its choices, such as the usage."""
        if self._stop:
            self._chunk(self._stop + rest)
            self._stop = b""

    def terminate(self) -> None:
        """Write token counts, if the client requested them, and ``[DONE]``."""
        self._goes_on = None
        usage = b""
        if self._usage is not None and self.encoding.profile.include_usage:
            usage = b'"usage":' + dumps(wire.encode_usage(self._usage, self.report, self.vendor))
        if self._stop:
            self._write_stop(b"," + usage if usage else b"")
        elif usage:
            self._chunk(b'"choices":[],' + usage)
        self.write(b"data: [DONE]\n\n")

    def error(self, event: ProviderFailed) -> None:
        self._goes_on = None
        self.write(b'data: {"error":%b}\n\n' % dumps(wire.encode_error(event, self.vendor)))
