"""What the parts of an item say: text, refusals, reasoning, and what stands beside the text.

Everything is said three or four times: by deltas, by the ``done`` events of its part and of its item, and in the terminal
response. What came first counts, and what never came is taken from the next copy: some servers send no deltas at all. Of
a text only the length is kept, to see whether a later copy differs.

Source: dialects.md §2.1, §2.2, §2.4.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias

from attrs import define, field, frozen

from streamkit.dialects.decoding import FrameDecoder, said
from streamkit.dialects.opaque import unseal
from streamkit.dialects.openai_responses.wire import OPAQUE_VENDOR, VENDOR
from streamkit.errors import TooManyBlocks
from streamkit.events import (
    Aside,
    Opaque,
    ReasoningDelta,
    ReasoningOpaque,
    ReasoningSignature,
    RefusalDelta,
    TextDelta,
)
from streamkit.limits import Limits
from streamkit.report import StreamReport

Said: TypeAlias = TextDelta | RefusalDelta | ReasoningDelta


@frozen
class Speech:
    """A kind of part that holds text."""

    item: str  #: the kind of item it stands in
    place: Literal["content_index", "summary_index"]  #: what tells the parts of an item apart
    name: str  #: of the member with the whole text
    event: Callable[[str, int], Said]  #: of a text and its block


TEXT: Final = Speech("message", "content_index", "text", lambda text, block: TextDelta(text, 0, block))
REFUSAL: Final = Speech("message", "content_index", "refusal", lambda text, block: RefusalDelta(text, 0, block))
THOUGHT: Final = Speech("reasoning", "content_index", "text", lambda text, block: ReasoningDelta(text, 0, block))
SUMMARY: Final = Speech(
    "reasoning", "summary_index", "text", lambda text, block: ReasoningDelta(text, 0, block, "summary")
)
#: By the ``type`` of a part.
SPEECHES: Mapping[str, Speech] = {
    "output_text": TEXT,
    "refusal": REFUSAL,
    "reasoning_text": THOUGHT,
    "summary_text": SUMMARY,
}
DELTA_FIELDS: Final = frozenset(
    {
        "type",
        "sequence_number",
        "output_index",
        "item_id",
        "content_index",
        "summary_index",
        "delta",
        "logprobs",
        "obfuscation",
        "stream_id",
    }
)


@define(eq=False)
class Part:
    block: int
    annotations: int = 0  #: how many came
    logprobs: bool = False  #: some came
    differs: bool = False  #: counted once


@define(eq=False)
class Item:
    kind: str
    id: str = ""
    block: int | None = None  #: the label of its events, and of its first part; None as long as it said nothing
    open: bool = True
    parts: dict[tuple[str, int], Part] = field(factory=dict)
    fields: set[str] = field(factory=set)  #: names of those that are the vendor's and were said
    carried: bool = False  #: a part of it, or all of it, was carried as asides
    # of a call
    call: int = 0  #: its place among the calls
    call_id: str = ""
    name: str = ""
    start: str = ""  #: arguments that came with the start, until anything else settles whether they count


#: Where deltas differ (``skeleton.py``); their number says nothing, and ``obfuscation`` is padding.
HOLES: Final = re.compile(
    rb'"delta"\s*:\s*(?P<text>"(?:[^"\\]|\\.)++")|"obfuscation"\s*:\s*(?P<pad>"(?:[^"\\]|\\.)*+")'
    rb'|"sequence_number"\s*:\s*(?P<number>\d+)'
)


class TextReader(FrameDecoder):
    """The part of the decoder that reads the parts of items."""

    holes = HOLES

    def __init__(self, limits: Limits, report: StreamReport) -> None:
        super().__init__(limits, report)
        self.items_at: dict[int, Item] = {}  #: what was last at an index
        self._labels = 0
        self._text = 0  # the block of the latest text
        self.signature: Opaque | None = None  #: of the next call: it stands before it
        self._chars: dict[int, int] = {}  # of the text so far, by block

    def snapshot(self) -> dict[str, Any]:
        """How long the texts are decides nothing about a delta."""
        return {name: value for name, value in super().snapshot().items() if name != "_chars"}

    def ran(self, model: Any, chars: int) -> None:
        if isinstance(model, TextDelta | ReasoningDelta | RefusalDelta):
            self._chars[model.block] = self._chars.get(model.block, 0) + chars

    def find(self, document: dict[str, Any], kind: str) -> Item:
        """The item that an event names; one is opened if there is none."""
        raise NotImplementedError

    def label(self) -> int:
        """A label for a new block."""
        if self._labels >= self.limits.content_blocks:
            raise TooManyBlocks(self.limits.content_blocks, offset=self.frame.offset)
        self._labels += 1
        return self._labels - 1

    def block_of(self, item: Item) -> int:
        if item.block is None:
            item.block = self.label()
        return item.block

    def _part(self, document: dict[str, Any], speech: Speech) -> Part:
        """The part that an event names; it, and its item, are opened if they were not."""
        index, place = document.get("output_index"), document.get(speech.place)
        if type(index) is int and type(place) is int and (item := self.items_at.get(index)) is not None:
            part = item.parts.get((speech.place, place))
            if part is not None and item.open and document.get("item_id") == item.id:
                return part  # nearly always
        item = self.find(document, speech.item)
        if item.kind != speech.item:
            self.report.repair("block_mismatch")
        elif not item.open:
            self.report.repair("block_unopened")
        return self._part_at(item, speech, self.index(place) or 0)

    def _part_at(self, item: Item, speech: Speech, place: int) -> Part:
        part = item.parts.get((speech.place, place))
        if part is None:
            part = item.parts[speech.place, place] = Part(self.label() if item.parts else self.block_of(item))
            if speech is TEXT:
                self._text = part.block
        return part

    # -- events ----------------------------------------------------------------------------------------------------

    def part_added(self, document: dict[str, Any]) -> None:
        found = self.fields(document.get("part"))
        if (speech := SPEECHES.get(self.string(found.get("type")))) is None:
            self._carry_part(document, found)
        else:
            part = self._part(document, speech)
            if text := self.string(found.get(speech.name)):
                self._say(part, speech, text)

    def delta(self, document: dict[str, Any], speech: Speech) -> None:
        part = self._part(document, speech)
        if logprobs := document.get("logprobs"):
            self._logprobs(part, logprobs)
        if text := self.string(document.get("delta")):
            self._say(part, speech, text)
        if not document.keys() <= DELTA_FIELDS:
            for name, value in document.items():
                if name not in DELTA_FIELDS and said(value):
                    self.out.append(Aside(VENDOR, "metadata", f"delta.{name}", value, block=part.block))

    def annotation_added(self, document: dict[str, Any]) -> None:
        self._annotation(self._part(document, TEXT), document.get("annotation"))

    def text_done(self, document: dict[str, Any], speech: Speech) -> None:
        self._whole_text(self._part(document, speech), speech, self.string(document.get(speech.name)))

    def part_done(self, document: dict[str, Any]) -> None:
        found = self.fields(document.get("part"))
        if (speech := SPEECHES.get(self.string(found.get("type")))) is None:
            self._carry_part(document, found)
        else:
            self._rest(self._part(document, speech), speech, found)

    def _carry_part(self, document: dict[str, Any], found: dict[str, Any]) -> None:
        if not self.string(found.get("type")).strip():
            if found:
                self.odd(found)
            return
        item = self.find(document, "message")
        item.carried = True
        block = self.block_of(item)
        self.out.append(Aside(VENDOR, "unknown_event", str(document.get("type")), placeless(document), block=block))

    # -- what they say ---------------------------------------------------------------------------------------------

    def whole_part(self, item: Item, place: int, found: dict[str, Any]) -> None:
        """A part as the item has it when it is done: what of it was not said yet."""
        kind = self.string(found.get("type"))
        if (speech := SPEECHES.get(kind)) is not None:
            self._rest(self._part_at(item, speech, place), speech, found)
        elif not item.carried:
            block = self.block_of(item)
            self.out.append(Aside(VENDOR, "unknown_event", f"content.{kind}", found, block=block))

    def _say(self, part: Part, speech: Speech, text: str) -> None:
        self._chars[part.block] = self._chars.get(part.block, 0) + len(text)
        self.out.append(speech.event(text, part.block))

    def _rest(self, part: Part, speech: Speech, found: dict[str, Any]) -> None:
        if not part.logprobs and (logprobs := found.get("logprobs")):
            self._logprobs(part, logprobs)
        self._whole_text(part, speech, self.string(found.get(speech.name)))
        for annotation in self.items(found.get("annotations"))[part.annotations :]:
            self._annotation(part, annotation)

    def _whole_text(self, part: Part, speech: Speech, text: str) -> None:
        """The whole text of a part: said if nothing of it was; else it can only be compared."""
        came = self._chars.get(part.block, 0)
        if text and not came:
            self._say(part, speech, text)
        elif text and len(text) != came and not part.differs:
            part.differs = True
            self.report.repair("whole_differs")

    def _annotation(self, part: Part, annotation: Any) -> None:
        if annotation := self.fields(annotation):
            part.annotations += 1
            self.out.append(Aside(VENDOR, "citation", "annotation", annotation, block=part.block))

    def _logprobs(self, part: Part, logprobs: Any) -> None:
        if logprobs := self.items(logprobs):
            part.logprobs = True
            self.out.append(Aside(VENDOR, "logprobs", "logprobs", logprobs, block=part.block))

    def opaque(self, blob: str, item: Item) -> None:
        """Encrypted reasoning: this vendor's, or another's that was sealed. It is the item's text that it belongs to."""
        sealed = unseal(blob)
        if sealed is not None and sealed.kind == "call":
            self.signature = Opaque(sealed.vendor, sealed.blob)
            return
        if sealed is not None and sealed.kind == "text":
            self.out.append(ReasoningSignature(sealed.blob, sealed.vendor, 0, self._text, "text"))
            return
        own = next((part.block for part in reversed(item.parts.values()) if self._chars.get(part.block)), None)
        block = self.block_of(item) if own is None else own
        if sealed is None:
            kind = ReasoningOpaque if own is None else ReasoningSignature
            self.out.append(kind(blob, OPAQUE_VENDOR, 0, block))
        elif sealed.kind == "opaque":
            self.out.append(ReasoningOpaque(sealed.blob, sealed.vendor, 0, block))
        elif sealed.kind == "reasoning":
            self.out.append(ReasoningSignature(sealed.blob, sealed.vendor, 0, block))
        else:
            self.out.append(ReasoningSignature(sealed.blob, sealed.vendor, 0, block, "text"))


def placeless(document: dict[str, Any]) -> dict[str, Any]:
    """An event without its place in the stream: where it is written again, it has another."""
    return {name: value for name, value in document.items() if name not in {"sequence_number", "output_index"}}
