"""What writers of whole responses share.

In some dialects each choice is one message with one place for each type of part, so the order of parts of different types is
lost. In the dialects of Claude a message is a list of content blocks in the order of the parts. The input of a call must be
an object there: a call with truncated arguments is withheld, since a client would run it. A signature on a call or a text,
and opaque reasoning of another vendor, is written as a separate sealed block: base64 with the vendor's name.

A block that only its vendor understands is stored as asides: either the events that a stream would have sent, or the whole
block in one aside whose type begins with ``CONTENT``. ``BlockList`` builds one block from such events. A citation belongs to
the text block with its label, and may come before that block. Losses are counted as in streams.

Source: dialects.md §3.1, §3.3, §6.1, §7.3; quirks.md R14 (opaque data must survive translation).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar, Final, Protocol

import orjson
from attrs import evolve

from streamkit.conversation.media import with_own_media
from streamkit.conversation.messages import (
    Choice,
    Part,
    Reasoning,
    RedactedReasoning,
    Refusal,
    Response,
    Text,
    ToolCall,
)
from streamkit.dialects.members.fields import CONTENT
from streamkit.dialects.members.values import Growing, name_of
from streamkit.dialects.profiles import Encoding
from streamkit.dialects.streams.event_encoder import failure_of, object_arguments, wrapped_arguments
from streamkit.dialects.vocabulary.sealed_reasoning import Kind, seal, signature_text
from streamkit.events import Aside, MediaGenerated, Opaque, ProviderFailed, StopReason
from streamkit.report import StreamReport
from streamkit.tool_calls.check import check_arguments

#: The place of each type of part in the messages of most dialects.
PLACES: Final[Mapping[type, int]] = {Reasoning: 0, Text: 1, Refusal: 1, ToolCall: 2}


class ResponseWriter:
    """Writes one response. A dialect's subclass defines the body."""

    vendor: ClassVar[str]  #: the vendor whose extras and asides are written unchanged

    def __init__(self, response: Response, encoding: Encoding, report: StreamReport) -> None:
        self.response = response
        self.encoding = encoding
        self.report = report
        #: Whether the response is of this dialect's vendor. Only then are data written that no other vendor understands.
        self.own = response.vendor == self.vendor
        #: Members of the body that asides contained (``members``), and members joined from several asides (``growing``).
        self.members: dict[str, Any] = {}
        self.growing = Growing()

    @classmethod
    def encode_response(cls, response: Response, encoding: Encoding, report: StreamReport) -> dict[str, Any]:
        """Return a whole body as JSON values: a response, or the error that the response ended with."""
        writer = cls(response, encoding, report)
        failure = failure_of(response, report)
        if failure is not None:
            return writer.error(failure)
        choices = [with_own_media(choice, cls.vendor, writer.media_form, report) for choice in response.choices]
        writer.response = evolve(response, choices=choices)
        return writer.answer()

    def answer(self) -> dict[str, Any]:
        raise NotImplementedError

    def error(self, failure: ProviderFailed) -> dict[str, Any]:
        """Return the body of the provider's error, instead of a response."""
        raise NotImplementedError

    def media_form(self, _media: MediaGenerated, /) -> Sequence[Aside]:
        """Return this dialect's asides for media of another vendor's model; empty if the dialect has no place for media."""
        return ()

    def own_extras(self, extras: Mapping[str, Any] | None, loss: str = "metadata") -> Mapping[str, Any]:
        """Return members that only the response's vendor knows: all for the same vendor; for another, none and one loss."""
        if extras and not self.own:
            self.report.lose(loss)
            return {}
        return extras or {}

    def withhold(self, call: ToolCall) -> None:
        """Count a call that no client may run. Its arguments are kept in the report."""
        self.report.withhold("call_withheld", call.id, call.name, call.arguments)

    def place_of(self, part: Part) -> int | None:
        """Return the place of a part in a message; None if it has none. Overridden in dialects with other places."""
        return PLACES.get(type(part))

    def lose_order(self, choice: Choice) -> None:
        """Count a loss for each part that moves before an earlier part, because the message has fixed places."""
        places = [place for part in choice.parts if (place := self.place_of(part)) is not None]
        for before, after in pairwise(places):
            if after < before:
                self.report.lose("block_order")

    def lose_sealed(self, choice: Choice) -> None:
        """Count opaque reasoning and signatures as lost. For dialects without a place for them."""
        for part in choice.parts:
            if isinstance(part, RedactedReasoning):
                self.report.lose("reasoning_opaque")
            elif isinstance(part, Text | Reasoning | ToolCall) and part.signature is not None:
                self.report.lose("reasoning_signature")


Block = dict[str, Any]


class GrowingBlock(Protocol):
    """A block that is built from its events. Each dialect with blocks has a class of this kind, in its ``asides.py``."""

    @property
    def block(self) -> Block:
        """The block in the form in which a whole message contains it."""

    def take(self, delta: Any) -> bool:
        """Add a delta; return False if the delta does not belong in this block."""

    def finish(self, report: StreamReport) -> None:
        """End the block: put the collected deltas into it."""


def joined_input(fragments: list[str], name: object, report: StreamReport) -> orjson.Fragment | None:
    """Return the input of a call from its fragments; None if it is blank. Text that is no object is wrapped, a loss."""
    text = "".join(fragments)
    verdict = check_arguments(text).kind
    if verdict not in {"empty", "complete"}:
        report.lose("arguments_wrapped", what=str(name))
        return orjson.Fragment(wrapped_arguments(text))
    return None if verdict == "empty" else orjson.Fragment(text)


class BlockList:
    """The blocks of one message, in the order in which they began."""

    #: The types of the asides that start, extend and end a block, and of a citation.
    start: ClassVar[str]
    delta: ClassVar[str]
    stop: ClassVar[str]
    citation: ClassVar[str]

    def __init__(self, report: StreamReport) -> None:
        self.report = report
        self.blocks: list[Block] = []
        self._texts: dict[int, Block] = {}
        self._growing: dict[int, GrowingBlock] = {}
        self._citations: dict[int, list[Any]] = {}  # citations that precede their text

    def growing(self, start: Any) -> GrowingBlock | None:
        """Return the block that a start event begins; None for an unknown kind of block."""
        raise NotImplementedError

    def cite(self, block: Block, citation: Any) -> None:
        raise NotImplementedError

    def add(self, block: Block) -> None:
        self.blocks.append(block)

    def add_text(self, block: Block, label: int) -> None:
        """Add a text block. Citations with the same label belong to it."""
        self.blocks.append(block)
        self._texts[label] = block
        for citation in self._citations.pop(label, ()):
            self.cite(block, citation)

    def aside(self, part: Aside) -> None:
        """Add the block, delta or citation that an aside contains, or count it as lost if there is no place for it."""
        if part.type == self.citation:
            text = self._texts.get(part.block)
            if text is not None:
                self.cite(text, part.raw)
            else:
                self._citations.setdefault(part.block, []).append(part.raw)
        elif part.type.startswith(CONTENT):
            self.blocks.append(part.raw)
        elif part.type == self.start and (growing := self.growing(part.raw)) is not None:
            self._growing[part.block] = growing
            self.blocks.append(growing.block)
        elif not self._belongs(part):
            self.report.lose(part.kind, what=part.type)

    def _belongs(self, part: Aside) -> bool:
        """Add an event to the block with the event's label. Return False if there is no such block or it refuses the event."""
        growing = self._growing.get(part.block)
        if growing is None:
            return False
        return part.type == self.stop or (part.type == self.delta and growing.take(part.raw.get("delta")))

    def finish(self) -> list[Block]:
        for growing in self._growing.values():
            growing.finish(self.report)
        for citations in self._citations.values():
            self.report.lose("citation", len(citations))
        return self.blocks


class BlockResponseWriter(ResponseWriter):
    """Writes a response whose message is a list of content blocks."""

    #: The dialect's own vendor. Its signatures are written unchanged; other vendors' are sealed.
    signer: ClassVar[str]
    inexact_stops: ClassVar[frozenset[str]]  #: stop reasons for which the dialect has only an inexact word
    block_list: ClassVar[type[BlockList]]  #: the dialect's subclass of ``BlockList``

    def __init__(self, response: Response, encoding: Encoding, report: StreamReport) -> None:
        super().__init__(response, encoding, report)
        self.blocks = self.block_list(report)
        self._calls = 0  # the number of calls written

    def text(self, text: str, label: int) -> None:
        """Add a text block with this label."""
        raise NotImplementedError

    def thinking(self, text: str, signature: str | None) -> Block:
        raise NotImplementedError

    def redacted(self, data: str) -> Block:
        """Return a block of reasoning that only its vendor can read."""
        raise NotImplementedError

    def use(self, call: ToolCall, arguments: bytes, extras: Mapping[str, Any]) -> Block:
        raise NotImplementedError

    def beside(self, part: Aside) -> bool:
        """Write an aside that belongs next to the list of blocks. Return False for an aside that belongs in the list."""
        raise NotImplementedError

    def stop(self, choice: Choice) -> StopReason:
        """Return the stop reason: ``length`` if every call was withheld, as the turn of a truncated call ends."""
        reason = choice.stop_reason or "other"
        unfounded = reason == "tool_calls" and not self._calls
        if unfounded or reason in self.inexact_stops:
            self.report.lose("stop_reason")
        return "length" if unfounded else reason

    def content(self, choice: Choice) -> list[Block]:
        """Return the blocks of a choice, and count its losses."""
        if choice.refusal:
            self.report.lose("refusal_as_text")
        for part in choice.parts:
            match part:
                case Text() | Refusal():
                    if part.text:
                        self.text(part.text, part.block)
                    if isinstance(part, Text) and part.signature is not None:
                        self._sealed("text" if part.text else "part", part.signature)
                case Reasoning():
                    self.blocks.add(self.thinking(part.text, signature_text(part.signature, self.signer)))
                case RedactedReasoning() if part.opaque.vendor == self.signer and self.takes(part.opaque.blob):
                    self.blocks.add(self.redacted(part.opaque.blob))
                case RedactedReasoning():
                    self._sealed("opaque", part.opaque)
                case ToolCall():
                    self._call(part)
                case Aside() if part.vendor != self.vendor:
                    self.report.lose(part.kind, what=name_of(part))
                case Aside():
                    if not self.beside(part):
                        self.blocks.aside(part)
                case _:
                    raise TypeError(f"a response can't contain a {type(part).__name__}")
        return self.blocks.finish()

    def _call(self, call: ToolCall) -> None:
        arguments = object_arguments(call, self.encoding.limits, self.report) if call.name else None
        if arguments is None:
            self.withhold(call)
            return
        if call.signature is not None and not self.carries(call.signature):  # seal it in a block before the call
            self._sealed("call", call.signature)
        self._calls += 1
        self.blocks.add(self.use(call, arguments, self.own_extras(call.extras)))

    def takes(self, _redacted: str) -> bool:
        """Return whether the dialect's own redacted reasoning may be written as it is. Subclasses may override this."""
        return True

    def carries(self, _signature: Opaque) -> bool:
        """Return whether the block of a call can hold this signature."""
        return False

    def _sealed(self, kind: Kind, opaque: Opaque) -> None:
        self.blocks.add(self.redacted(seal(kind, opaque.vendor, opaque.blob)))
