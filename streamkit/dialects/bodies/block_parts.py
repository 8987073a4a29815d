"""What the readers of requests share whose messages are content blocks: Anthropic and Bedrock.

Neither dialect signs calls or text. What another vendor made of them stands in a block of its own, sealed; here it goes back
to the part that it belongs to.

Source: dialects.md §3.3, §6.1; quirks.md R14.
"""

from __future__ import annotations

from streamkit.conversation.messages import Extras, Part, Reasoning, RedactedReasoning, Text, ToolCall
from streamkit.dialects.vocabulary.sealed_reasoning import unseal
from streamkit.events import Opaque


class BlockParts:
    """The parts of one message as its blocks are read, each labelled by its place."""

    def __init__(self, signer: str) -> None:
        self.parts: list[Part] = []
        self.last_text: Text | None = None
        self._signer = signer
        self._calls = 0
        self._signature: Opaque | None = None  # of the next call

    def signature(self, blob: str | None) -> Opaque | None:
        """The signature of a block of reasoning: the signer's, or another's that was sealed."""
        if not blob:
            return None
        sealed = unseal(blob)
        return Opaque(self._signer, blob) if sealed is None else Opaque(sealed.vendor, sealed.blob)

    def redacted(self, data: str, number: int, extras: Extras | None = None) -> None:
        """A block that only its vendor can read: the signer, or another whose text was sealed."""
        sealed = unseal(data)
        if sealed is None:
            self.parts.append(RedactedReasoning(Opaque(self._signer, data), extras, block=number))
            return
        opaque = Opaque(sealed.vendor, sealed.blob)
        if sealed.kind == "call":
            self._signature = opaque
        elif sealed.kind == "opaque":
            self.parts.append(RedactedReasoning(opaque, block=number))
        elif sealed.kind == "reasoning":
            self.parts.append(Reasoning("", signature=opaque, block=number))
        elif sealed.kind == "text" and self.last_text is not None:
            self.last_text.signature = opaque
        else:
            self.parts.append(Text("", opaque, block=number))

    def call(self, call: ToolCall) -> None:
        """Add a call, which gets its number here, and the signature that stood before it."""
        call.index = self._calls
        self._calls += 1
        call.signature, self._signature = self._signature, None
        self.parts.append(call)

    def finish(self) -> list[Part]:
        if self._signature is not None:  # the call that it signed is gone
            self.parts.append(RedactedReasoning(self._signature))
        return self.parts
