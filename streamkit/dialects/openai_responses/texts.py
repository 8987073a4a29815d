"""Read the parts of items: text, refusals, reasoning, and other members of these parts.

Each text is repeated three or four times: in deltas, in the ``done`` events of the part and the item, and in the terminal
response. The first copy counts, and later copies only add what is missing: some servers send no deltas at all. A text that
contradicts the first copy is withheld (``streamkit/dialects/streams/running_text.py``; ``items.py`` finds the part of a copy).

**Starts with text.** If a part starts with text, its deltas repeat the text or continue it. Only the deltas show which, so
the text waits for them.

**Messages that repeat earlier ones.** Bedrock's Mantle repeats a long response in several messages, each with all
earlier text. A message that begins with a whole earlier one of at least ``REPEATED_CHARS`` characters only adds what follows
it.

Source: dialects.md §2.1, §2.2, §2.4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any, Final, Literal

from attrs import define, field

from streamkit.dialects.openai_responses.wire import OPAQUE_VENDOR, PLACES, SPEECHES, SUMMARY, TEXT, VENDOR, Speech
from streamkit.dialects.streams.frame_decoder import FrameDecoder
from streamkit.dialects.streams.running_text import RunningText
from streamkit.dialects.vocabulary.sealed_reasoning import Sealed, unseal
from streamkit.errors import TooManyBlocks
from streamkit.events import Aside, Opaque, ReasoningDelta, ReasoningOpaque, ReasoningSignature, WireEvent
from streamkit.limits import Limits
from streamkit.report import StreamReport
from streamkit.tool_calls.repeats import LOOKED_AT

DELTA_FIELDS: Final = frozenset({*PLACES, "delta", "logprobs"})
#: Members that may differ between two deltas of one text.
EACH_DELTA: Final = frozenset({"delta", "sequence_number", "obfuscation"})
#: The most open items and parts that are compared with a whole text, to find the part that it repeats.
OPEN_LOOKED_AT: Final = 4 * LOOKED_AT
REPEATED_CHARS: Final = 64  #: the shortest earlier message that a later message may repeat


class ItemPart:
    """A part of an item with text."""

    annotations = 0  #: number of annotations that were emitted
    logprobs = False  #: whether log probabilities were emitted
    differs = False  #: whether a contradicting text was already counted
    start = ""  #: text in the part's start, which waits until deltas show if they repeat it
    echo: ItemPart | None = None  #: an earlier message's part that this part may be repeating
    held_chars = 0

    def __init__(self, speech: Speech, block: int, number: int, *, is_other_role: bool) -> None:
        self.speech = speech
        self.block = block  #: the label of the part's events
        self.number = number  #: number of its text in the decoder's ``texts``
        self.is_other_role = is_other_role  #: whether its message has another role than the model's
        self.whole_in: set[str] = set()  #: kinds of events that had its whole text
        self.held: list[str] = []  #: deltas that may repeat the start, or the earlier message


class Item:
    """What is known of an output item from its events."""

    block: int | None = None  #: the label of the item's first part; None before any content
    open = True
    fields: frozenset[str] = frozenset()  #: names of unknown members that were emitted
    carried = False  #: whether frames of the item were kept as asides
    # for calls
    call = 0  #: the number of the call
    call_id = ""
    name = ""
    start = ""  #: arguments in the item's start, used if no event repeats them
    has_input = False  #: whether an event contained all arguments

    def __init__(self, kind: str, item_id: str, *, is_other_role: bool) -> None:
        self.kind, self.id = kind, item_id
        self.is_other_role = is_other_role  #: whether it is a message of another role than the model's
        self.parts: dict[tuple[str, int], ItemPart] = {}


def _event_of(part: ItemPart, speech: Speech) -> Callable[[str, int, int], WireEvent]:
    """Return a function that makes the event for a text: an aside if the message has another role than the model's."""
    return partial(Aside, VENDOR, "unknown_event", "message") if part.is_other_role else speech.event


@define(eq=False)
class LastDelta:
    """The last delta event, remembered so that a next delta of the same text can be read faster."""

    document: dict[str, Any]
    at: str  #: the member with the index of the part
    text: RunningText | None  #: the text that it continues; None for a call
    event: Callable[[str, int, int], WireEvent]  #: makes an event from a text, its choice, and its block or call
    label: int  #: the block or the call
    each: dict[str, Any] = field(init=False)  #: the members that may differ in the next event
    kind: Literal["raw", "summary"] | None = field(init=False, default=None)  #: of reasoning

    def __attrs_post_init__(self) -> None:
        self.each = {name: self.document[name] for name in EACH_DELTA if name in self.document}
        if self.event is ReasoningDelta or self.event is SUMMARY.event:
            self.kind = "raw" if self.event is ReasoningDelta else "summary"


class TextReader(FrameDecoder):
    """The part of the decoder that reads the parts of items."""

    next_index = 0  #: one more than the highest index of an item
    signature: Opaque | None = None  #: signature of the next call, from an item before that call
    _labels = 0
    _text = 0  # the block of the latest text
    _parts = 0
    _latest: ItemPart | None = None  # the latest text part

    def __init__(self, limits: Limits, report: StreamReport) -> None:
        super().__init__(limits, report)
        self.last_delta: LastDelta | None = None  #: the event that the next one may continue
        self.items_at: dict[int, Item] = {}  #: the last item at each index
        self._last_whole: tuple[ItemPart, str] | None = None  # the part whose whole text was last, if nothing followed

    def find(self, document: dict[str, Any], kind: str) -> Item:
        """Return the item that an event names. Begin one if there is none."""
        raise NotImplementedError

    def label(self) -> int:
        if self._labels >= self.limits.content_blocks:
            raise TooManyBlocks(self.limits.content_blocks, offset=self.frame.offset)
        self._labels += 1
        return self._labels - 1

    def block_of(self, item: Item) -> int:
        """Return the label of an item's first part."""
        if item.block is None:
            item.block = self.label()
        return item.block

    def _open_part(self, document: dict[str, Any], speech: Speech) -> ItemPart | None:
        """Return the part that an event names by its open item and place, which is the usual case; None otherwise."""
        index, place = document.get("output_index"), document.get(speech.place)
        if type(index) is int and type(place) is int and (item := self.items_at.get(index)) is not None:
            part = item.parts.get((speech.place, place))
            if part is not None and item.open and document.get("item_id") == item.id:
                return part
        return None

    def _part(self, document: dict[str, Any], speech: Speech) -> ItemPart:
        """Return the part that an event names. Open it and its item if necessary."""
        part = self._open_part(document, speech)
        if part is not None:
            return part
        place = document.get(speech.place)
        item = self.find(document, speech.item)
        if item.kind != speech.item:
            self.report.repair("block_mismatch")
        elif not item.open:
            self.report.repair("block_unopened")
        return self.part_at(item, speech, self.index(place) or 0)

    def part_at(self, item: Item, speech: Speech, place: int) -> ItemPart:
        """Return the part of an item at a place. Open it if necessary. Raises TooManyBlocks."""
        part = item.parts.get((speech.place, place))
        if part is None:
            block = self.label() if item.parts else self.block_of(item)
            part = ItemPart(speech, block, self._parts, is_other_role=item.is_other_role)
            self._parts += 1
            if speech is TEXT:
                self._text = block
                if not item.parts and self._latest is not None and self._chars(self._latest) >= REPEATED_CHARS:
                    part.echo = self._latest
                self._latest = part
            item.parts[speech.place, place] = part
        return part

    def _chars(self, part: ItemPart) -> int:
        text = self.texts.begun(part.number)
        return 0 if text is None else text.chars

    def part_added(self, document: dict[str, Any]) -> None:
        found = self.fields(document.get("part"))
        if (speech := SPEECHES.get(self.string(found.get("type")))) is None:
            self._carry_part(document, found)
        else:
            part = self._part(document, speech)
            if text := self.string(found.get(speech.name)):
                self.start_part(part, speech, text)

    def delta(self, document: dict[str, Any], speech: Speech) -> None:
        named = self._open_part(document, speech)
        part = named or self._part(document, speech)
        if logprobs := document.get("logprobs"):
            self._logprobs(part, logprobs)
        if text := self.string(document.get("delta")):
            self._emit_text(part, speech, text)
        if not document.keys() <= DELTA_FIELDS:
            self.keep_others(document, DELTA_FIELDS, "delta.", block=part.block)
        elif named is not None and text and not logprobs and not part.start and part.echo is None:
            event = _event_of(part, speech)
            self.last_delta = LastDelta(document, speech.place, self.texts.of(part.number), event, part.block)

    def annotation_added(self, document: dict[str, Any]) -> None:
        self._annotation(self._part(document, TEXT), document.get("annotation"))

    def text_done(self, document: dict[str, Any], speech: Speech) -> None:
        self._whole_event(document, speech, document, "text")

    def part_done(self, document: dict[str, Any]) -> None:
        found = self.fields(document.get("part"))
        if (speech := SPEECHES.get(self.string(found.get("type")))) is None:
            self._carry_part(document, found)
        else:
            self.emit_others(self._whole_event(document, speech, found, "part"), found)

    def _whole_event(self, document: dict[str, Any], speech: Speech, found: dict[str, Any], event: str) -> ItemPart:
        """Read an event with a whole text (in ``found``), and emit the part of it that is new. Return its part.

        Some servers use other numbers here than in deltas. Then the text belongs to the part of an open item whose text it
        begins with.
        """
        text, logprobs = self.string(found.get(speech.name)), found.get("logprobs")
        item = self.located(document)
        own = None
        if item is not None and item.kind == speech.item:
            own = item.parts.get((speech.place, self.index(document.get(speech.place)) or 0))
        if own is None or not text or not self.goes_on(own, speech, text, logprobs):
            other = self._another(event, speech, text, item, own) if text else None
            if other is not None:
                self.report.repair("whole_misplaced")
                self.adds(other, speech, text, logprobs)
                own = other
            else:
                own = own or self._part(document, speech)
                self.whole_text(own, speech, text, logprobs)
        own.whole_in.add(event)
        return own

    def _another(
        self, event: str, speech: Speech, text: str, first: Item | None, own: ItemPart | None
    ) -> ItemPart | None:
        """Return a part other than ``own`` whose text begins a whole text, and that had no such event. Compare only a few."""
        parts = (part for item in self.open_items(speech.item, first) for part in item.parts.values())
        for part in islice(parts, OPEN_LOOKED_AT):
            if event not in part.whole_in and part.speech is speech and part is not own and self.agrees(part, text):
                return part
        return None

    def open_items(self, kind: str, first: Item | None) -> Iterator[Item]:
        """Yield open items of a kind, ``first`` before a few others."""
        raise NotImplementedError

    def located(self, document: dict[str, Any]) -> Item | None:
        """Return the item that an event names; None if there is none."""
        raise NotImplementedError

    def _carry_part(self, document: dict[str, Any], found: dict[str, Any]) -> None:
        if not self.string(found.get("type")).strip():
            if found:
                self.keep_invalid(found)
            return
        item = self.find(document, "message")
        item.carried = True
        block = self.block_of(item)
        self.out.append(Aside(VENDOR, "unknown_event", str(document.get("type")), placeless(document), block=block))

    def emit_others(self, part: ItemPart, found: dict[str, Any]) -> None:
        """Emit log probabilities and annotations of a whole part that were not emitted before."""
        if not part.logprobs and (logprobs := found.get("logprobs")):
            self._logprobs(part, logprobs)
        if (annotations := found.get("annotations")) not in (None, []):
            for annotation in self.items(annotations)[part.annotations :]:
                self._annotation(part, annotation)

    def start_part(self, part: ItemPart, speech: Speech, text: str) -> None:
        """Read the text in the start of a part, or of its item."""
        if part.held or self._chars(part):
            self.whole_text(part, speech, text)
        elif text.startswith(part.start):
            part.speech, part.start = speech, text
        elif not part.start.startswith(text):
            self._differs(part)

    def _emit_text(self, part: ItemPart, speech: Speech, text: str) -> None:
        part.speech, self._last_whole = speech, None
        if part.start:
            self._after_start(part, text)
        elif part.echo is not None:
            self._after_message(part, part.echo, text)
        else:
            self.texts.of(part.number).append(text)
            self.out.append(_event_of(part, speech)(text, 0, part.block))

    def _after_start(self, part: ItemPart, text: str) -> None:
        """Read a delta of a part that started with text: it repeats that text, or continues it."""
        start, at = part.start, part.held_chars
        size = min(len(text), len(start) - at)
        repeats = start.startswith(text[:size], at)
        self._hold(part, text)
        if repeats and part.held_chars < len(start):
            return
        if repeats:
            self.report.repair("text_repeated")
            start = ""
        part.start = ""
        self._emit_text(part, part.speech, start + self._taken(part))

    def _after_message(self, part: ItemPart, echo: ItemPart, text: str) -> None:
        """Read the beginning of a message, which may repeat the whole message before it."""
        earlier, at = self.texts.of(echo.number), part.held_chars
        size = min(len(text), len(earlier.head) - at)
        repeats = size <= 0 or earlier.head.startswith(text[:size], at)
        self._hold(part, text)
        if repeats and part.held_chars < earlier.chars and part.held_chars <= self.limits.held_chars:
            return
        part.echo = None
        whole = self._taken(part)
        rest = earlier.rest_of(whole) if repeats else None
        if rest is None:
            self._emit_text(part, part.speech, whole)
            return
        self.report.repair("text_repeated")
        self.texts.of(part.number).append(whole)
        part.block = echo.block
        if rest:
            self.out.append(_event_of(part, part.speech)(rest, 0, part.block))

    def _hold(self, part: ItemPart, text: str) -> None:
        part.held.append(text)
        part.held_chars += len(text)

    def _taken(self, part: ItemPart) -> str:
        """Return the held deltas of a part as one text, and hold them no longer."""
        text = "".join(part.held)
        part.held, part.held_chars = [], 0
        return text

    def settle(self, part: ItemPart) -> None:
        """Emit the held text of a part, because no more deltas can show whether it is a repetition."""
        if part.start:
            if part.held:
                self.report.repair("text_repeated")
                self._taken(part)
            start, part.start = part.start, ""
            self._emit_text(part, part.speech, start)
        if part.echo is not None:
            part.echo = None
            if text := self._taken(part):
                self._emit_text(part, part.speech, text)

    def whole_text(self, part: ItemPart, speech: Speech, text: str, logprobs: Any = None) -> None:
        """Read the whole text of a part, and emit the part of it that is new. A text that contradicts the part is withheld."""
        if text and not self.adds(part, speech, text, logprobs):
            self._differs(part)

    def adds(self, part: ItemPart, speech: Speech, text: str, logprobs: Any = None) -> bool:
        """Emit what a whole text adds to its part. Return False, and emit nothing, if it contradicts the part."""
        if part.start and text.startswith(part.start):
            if self._taken(part):
                self.report.repair("text_repeated")
            part.start = ""
        if part.start:
            self.settle(part)
        if part.echo is not None:
            repeats = text.startswith("".join(part.held))
            if repeats:
                self._emit_text(part, speech, text[part.held_chars :])
            self.settle(part)
            if repeats:
                return True
        before = self.texts.begun(part.number)
        rest = text if before is None else before.rest_of(text)
        if rest:
            if logprobs and not part.logprobs:
                self._logprobs(part, logprobs)
            if before is not None:
                self.report.repair("fragments_missing")
            self._emit_text(part, speech, rest)
        if rest is not None:
            self._last_whole = part, text
        return rest is not None

    def goes_on(self, part: ItemPart, speech: Speech, text: str, logprobs: Any) -> bool:
        """Do the same as ``adds``, for a part that has text. If the same whole text was just read, do nothing."""
        if (whole := self._last_whole) is not None and whole[0] is part and whole[1] == text:
            return True
        return self.has_text(part) and self.adds(part, speech, text, logprobs)

    def has_text(self, part: ItemPart) -> bool:
        return bool(part.start or part.held or self.texts.begun(part.number))

    def agrees(self, part: ItemPart, text: str) -> bool:
        """Return whether a whole text begins with the text of a part."""
        if part.start:
            return bool(text) and text.startswith(part.start)
        if part.held:
            return len(text) >= part.held_chars and text.startswith("".join(part.held))
        before = self.texts.begun(part.number)
        return before is not None and before.rest_of(text) is not None

    def _differs(self, part: ItemPart) -> None:
        if not part.differs:
            part.differs = True
            self.report.repair("whole_differs")

    def _annotation(self, part: ItemPart, annotation: Any) -> None:
        if annotation := self.fields(annotation):
            part.annotations += 1
            self.out.append(Aside(VENDOR, "citation", "annotation", annotation, block=part.block))

    def _logprobs(self, part: ItemPart, logprobs: Any) -> None:
        if logprobs := self.items(logprobs):
            part.logprobs = True
            self.out.append(Aside(VENDOR, "logprobs", "logprobs", logprobs, block=part.block))

    def opaque(self, blob: str, item: Item) -> None:
        """Emit encrypted reasoning of this vendor, or another vendor's sealed value. It belongs to the item's text."""
        own = next((part.block for part in reversed(item.parts.values()) if self._chars(part)), None)
        sealed = unseal(blob) or Sealed("opaque" if own is None else "reasoning", OPAQUE_VENDOR, blob)
        if sealed.kind == "call":
            self.signature = sealed.opaque
            return
        block = self._text if sealed.kind == "text" else self.block_of(item) if own is None else own
        if sealed.kind == "opaque":
            self.out.append(ReasoningOpaque(sealed.blob, sealed.vendor, 0, block))
        else:
            on: Literal["reasoning", "text"] = "reasoning" if sealed.kind == "reasoning" else "text"
            self.out.append(ReasoningSignature(sealed.blob, sealed.vendor, 0, block, on))


def placeless(document: dict[str, Any]) -> dict[str, Any]:
    """Return an event without its numbers, because it gets new numbers when it is written."""
    return {name: value for name, value in document.items() if name not in {"sequence_number", "output_index"}}
