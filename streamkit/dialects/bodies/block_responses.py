"""The shared writer of whole responses for the dialects of Claude, in which a message is a list of content blocks.

Blocks are in the order of the parts. The input of a call must be an object: a call with truncated arguments is withheld,
since a client would run it. These dialects have no signatures on calls or texts. Such a signature, and opaque reasoning of
another vendor, is written as a separate sealed block: base64 with the vendor's name. Losses are counted as in streams
(``streams/block_encoder.py``).

Source: dialects.md §3.3, §6.1; quirks.md R14 (opaque data must survive translation).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from streamkit.conversation.messages import Choice, Reasoning, RedactedReasoning, Refusal, Response, Text, ToolCall
from streamkit.dialects.bodies.block_list import Block, BlockList
from streamkit.dialects.bodies.response_writer import ResponseWriter
from streamkit.dialects.profiles import Encoding
from streamkit.dialects.streams.event_encoder import object_arguments
from streamkit.dialects.vocabulary.sealed_reasoning import Kind, seal, signature_text
from streamkit.events import Aside, Opaque, StopReason
from streamkit.report import StreamReport


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
        """Return the stop reason: ``stop`` if every call was withheld, so that the client does not wait for a call."""
        reason = choice.stop_reason or "other"
        unfounded = reason == "tool_calls" and not self._calls
        if unfounded or reason in self.inexact_stops:
            self.report.lose("stop_reason")
        return "stop" if unfounded else reason

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
                    self.report.lose(part.kind, what=part.type)
                case Aside():
                    if not self.beside(part):
                        self.blocks.aside(part)
                case _:
                    raise TypeError(f"a response has no {type(part).__name__}")
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
