"""Decode Mistral's chunks: like Chat's, except for content in lists, whole calls, and arguments that may be objects.

A missing index is 0 here, and several whole calls may have it: an entry with a new id and a name begins another call. For
entries that lack either, the next stage decides, and counts its repairs.

A ``signature`` closes its thinking. ``closed`` has no meaning in a stream. Another vendor's signature is sealed
(``vocabulary/sealed_reasoning.py``). ``p`` is padding.

Source: dialects.md §1.6, §1.7, §6.3.
"""

from __future__ import annotations

from collections import deque
from typing import Any, ClassVar

from attrs import define, field

from streamkit.dialects.members.values import text_of
from streamkit.dialects.mistral.wire import ASIDES, CONTENT, ERROR_TYPES, THINKING, THINKING_MEMBER, VENDOR
from streamkit.dialects.openai_chat.decode import CHUNK_FIELDS, TEXT_PART, THINKING_PART, ChatDecoder
from streamkit.dialects.openai_chat.response import ChatBodyDecoder
from streamkit.dialects.openai_chat.wire import read_image
from streamkit.dialects.streams.frame_decoder import FrameDecoder
from streamkit.dialects.vocabulary.sealed_reasoning import Sealed, unseal
from streamkit.errors import HeldTooLong, TooManyToolCalls
from streamkit.events import Aside, Opaque, ReasoningDelta, ReasoningOpaque, ReasoningSignature, ToolCallDelta
from streamkit.limits import Limits
from streamkit.report import StreamReport


@define
class _Calls:
    """The calls of a choice. They are numbered in the order in which they begin."""

    at: dict[int, int] = field(factory=dict)  #: the number of the latest call with each index
    ids: set[str] = field(factory=set)
    count: int = 0


class MistralDecoder(ChatDecoder):
    """Decodes the chunks of a stream."""

    dialect = "mistral"
    vendor = VENDOR
    idle = frozenset({"p", "obfuscation"})
    anyway: ClassVar = {**ChatDecoder.anyway, "p": None}
    reader = FrameDecoder.reader
    read_alone = FrameDecoder.read_alone
    is_varied: ClassVar = True
    in_fragments: ClassVar = False
    error_types: ClassVar = ERROR_TYPES
    chunk_fields: ClassVar = CHUNK_FIELDS | {"p"}

    _signature_chars = 0  # characters of all signatures of calls
    _empty_parts = 0  # number of text parts that have only a signature

    def __init__(self, limits: Limits, report: StreamReport) -> None:
        super().__init__(limits, report)
        self._calls: dict[int, _Calls] = {}
        self._call_signatures: dict[int, deque[Opaque]] = {}  # signatures that were read before their calls, by choice

    def is_bare_error(self, document: dict[str, Any]) -> bool:
        """Return whether a payload is an error: a flat one, the faults of a request, or a proxy's message."""
        is_message = document.keys().isdisjoint({"object", "choices"}) and text_of(document.get("message")) is not None
        return is_message or super().is_bare_error(document)

    def is_own_error(self, document: dict[str, Any], error: Any) -> bool:
        """Return whether an error is flat, Chat's, or an ``HTTPValidationError``. Clients ignore errors next to choices."""
        is_flat = document.get("object") == "error" or isinstance(document.get("detail") or None, list)
        return not document.get("choices") and (is_flat or super().is_own_error(document, error))

    def other_part(self, part: dict[str, Any], kind: Any, choice: int) -> None:
        if kind is None:
            self.keep_invalid(part)
            return
        aside = Aside(VENDOR, ASIDES.get(str(kind), "unknown_event"), f"{CONTENT}{kind}", part, choice)
        self.out.append(read_image(part, aside) or aside)

    def thinking(self, part: dict[str, Any], choice: int) -> None:
        block = self.next_block(choice)
        for each in self.contents(part.get("thinking")):
            inner = self.part_of(each)
            kind = inner.get("type")
            if kind == "text":
                if text := self.string(inner.get("text")):
                    self.out.append(ReasoningDelta(text, choice, block))
                self.keep_unread(inner, TEXT_PART, choice, block, where="content.thinking.")
            elif kind is None:
                if inner:
                    self.keep_invalid(inner)
            else:
                aside = ASIDES.get(str(kind), "unknown_event")
                self.out.append(Aside(VENDOR, aside, f"{THINKING}{kind}", inner, choice))
        if signature := self.string(part.get("signature")):
            self._signature(signature, choice, block)
        self.keep_others(part, THINKING_PART.names, THINKING_MEMBER, choice, block)

    def _signature(self, blob: str, choice: int, block: int) -> None:
        sealed = unseal(blob) or Sealed("reasoning", VENDOR, blob)
        kind, vendor, blob = sealed.kind, sealed.vendor, sealed.blob
        if kind == "call":
            signatures = self._call_signatures.setdefault(choice, deque())
            self._signature_chars += len(blob)
            if len(signatures) >= self.limits.tool_calls:  # more signatures than calls are possible
                raise TooManyToolCalls(self.limits.tool_calls, offset=self.frame.offset)
            if self._signature_chars > self.limits.held_chars:
                raise HeldTooLong(self.limits.held_chars, offset=self.frame.offset)
            signatures.append(sealed.opaque)
        elif kind == "text":
            self.out.append(ReasoningSignature(blob, vendor, choice, 0, "text"))
        elif kind == "part":
            self._empty_parts += 1
            self.bounded(choice, -self._empty_parts)  # negative, so that it differs from numbers of reasoning
            self.out.append(ReasoningSignature(blob, vendor, choice, self._empty_parts, "text"))
        else:
            event = ReasoningOpaque if kind == "opaque" else ReasoningSignature
            self.out.append(event(blob, vendor, choice, block))
            self._choices[choice].signed = block, vendor

    def tool_call(self, call: Any, choice: int, path: tuple[Any, ...]) -> None:
        """Read one entry, and put the number of its call in place of its index."""
        before = len(self.out)
        super().tool_call(call, choice, path)
        for event in self.out[before:]:
            if type(event) is ToolCallDelta:
                self._place(event)

    def _place(self, delta: ToolCallDelta) -> None:
        """Give the entry the number of its call. The next stage sees only this number."""
        calls = self._calls.setdefault(delta.choice, _Calls())
        index = delta.index or 0
        call_id = text_of(delta.id)
        begins = call_id is not None and call_id not in calls.ids and text_of(delta.name) is not None
        number = calls.at.get(index)
        if number is None or begins:
            number = calls.at[index] = calls.count
            calls.count += 1
            if signatures := self._call_signatures.get(delta.choice):
                delta.signature = signatures.popleft()
        if begins and call_id is not None:
            calls.ids.add(call_id)
        delta.index = number


class MistralBodyDecoder(ChatBodyDecoder, MistralDecoder):
    """Decodes a whole body."""

    def delta(self, delta: dict[str, Any], choice: int, where: tuple[int, str]) -> None:
        if delta.get("prefix") is False:  # every message has this member, which means nothing here
            delta = {name: value for name, value in delta.items() if name != "prefix"}
        super().delta(delta, choice, where)

    def thinking(self, part: dict[str, Any], choice: int) -> None:
        """Read a thinking as a separate block: in a body, one part has all of it; in a stream, each part has a piece."""
        block = self.next_block(choice)
        super().thinking(part, choice)
        if self._choices[choice].signed[0] != block:
            self._choices[choice].signed = block, VENDOR
