"""The writer of whole responses that the dialects of Claude share, whose messages are content blocks.

Blocks stand in the order of the parts. An input is an object: a call whose text is cut off is withheld, since a client would
run it. None of its dialects signs calls or text: what is another's, or belongs to a part, stands in a block of its own,
sealed. What is lost is counted as the encoder of streams does (``streams/block_encoder.py``).

Source: dialects.md §3.3, §6.1; quirks.md R14.
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

    #: Whose signatures are written as they are.
    signer: ClassVar[str]
    #: Stop reasons that the dialect has no word of its own for.
    inexact_stops: ClassVar[frozenset[str]]
    #: The dialect's list of blocks.
    block_list: ClassVar[type[BlockList]]

    def __init__(self, response: Response, encoding: Encoding, report: StreamReport) -> None:
        super().__init__(response, encoding, report)
        self.blocks = self.block_list(report)
        self._calls = 0  # that were written

    def text(self, text: str, label: int) -> None:
        """Add a block of text."""
        raise NotImplementedError

    def thinking(self, text: str, signature: str | None) -> Block:
        """A block of reasoning."""
        raise NotImplementedError

    def redacted(self, data: str) -> Block:
        """A block of reasoning that only its vendor can read."""
        raise NotImplementedError

    def use(self, call: ToolCall, arguments: bytes, extras: Mapping[str, Any]) -> Block:
        """A block that is a call."""
        raise NotImplementedError

    def beside(self, part: Aside) -> bool:
        """Whether an aside of this vendor stands beside the content, where it was put."""
        raise NotImplementedError

    def stop(self, choice: Choice) -> StopReason:
        """The stop reason. Where every call was withheld, the client must not wait for one."""
        reason = choice.stop_reason or "other"
        unfounded = reason == "tool_calls" and not self._calls
        if unfounded or reason in self.inexact_stops:
            self.report.lose("stop_reason")
        return "stop" if unfounded else reason

    def content(self, choice: Choice) -> list[Block]:
        """The blocks of a choice, and what of it is lost."""
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
        if call.signature is not None and not self.carries(call.signature):  # it stands before the call
            self._sealed("call", call.signature)
        self._calls += 1
        self.blocks.add(self.use(call, arguments, self.own_extras(call.extras)))

    def takes(self, _redacted: str) -> bool:
        """Whether redacted reasoning of the signer's can be written as it is."""
        return True

    def carries(self, _signature: Opaque) -> bool:
        """Whether the block of a call has its signature itself."""
        return False

    def _sealed(self, kind: Kind, opaque: Opaque) -> None:
        self.blocks.add(self.redacted(seal(kind, opaque.vendor, opaque.blob)))
