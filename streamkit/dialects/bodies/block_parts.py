"""What the readers of requests to Claude share, whose messages are content blocks.

None of its dialects signs calls or text. What another vendor made of them stands in a block of its own, sealed; here it goes
back to the part that it belongs to.

Source: dialects.md §3.3, §6.1; quirks.md R14.
"""

from __future__ import annotations

from typing import Literal, cast

from streamkit.conversation.messages import Extras, Part, Reasoning, RedactedReasoning, Text, ToolCall
from streamkit.dialects.members.fields import Fields, kind_of
from streamkit.dialects.vocabulary.sealed_reasoning import unseal, unsealed
from streamkit.events import Opaque
from streamkit.text.quoting import quoted


def role_of(message: Fields) -> Literal["system", "user", "assistant"]:
    """The role of a message. Raises BadRequest for an unknown one."""
    role = message.needed("role")
    if role not in {"system", "user", "assistant"}:
        raise message.wrong(f"there is no role {quoted(role)}", "role")
    return cast("Literal['system', 'user', 'assistant']", role)


def call_of(use: Fields, id_member: str) -> ToolCall:
    """A call, whose input must be an object. Raises BadRequest."""
    call_id, name = use.needed(id_member), use.needed("name")
    if not isinstance(use.peek("input"), dict):
        raise use.wrong(f"an object is needed, not {kind_of(use.peek('input'))}", "input")
    return ToolCall(0, call_id, name, use.text_of("input"), place=use.place)


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
        return unsealed(blob, self._signer) if blob else None

    def redacted(self, data: str, number: int, extras: Extras | None = None) -> None:
        """A block that only its vendor can read: the signer, or another whose text was sealed."""
        sealed = unseal(data)
        if sealed is None:
            self.parts.append(RedactedReasoning(Opaque(self._signer, data), extras, block=number))
            return
        opaque = sealed.opaque
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
