"""What the parts of an item say: text, refusals, reasoning, and what stands beside the text.

Everything is said three or four times: by deltas, by the ``done`` events of its part and of its item, and in the terminal
response. What came first counts, and of a later copy only what is missing is taken: some servers send no deltas at all. What
contradicts is withheld (``streamkit/dialects/streams/running_text.py``; which copy belongs to which part: ``items.py``).

**Starts with text.** A part that starts with text says it once more in its deltas, or goes on from there; deltas tell which,
so that the text waits for them.

**Messages that begin anew.** Bedrock's Mantle begins a long answer again in one message after another, each with all that came
before. A message that begins with a whole earlier one of ``REPEATED_CHARS`` characters and more only adds what is behind it.

Source: dialects.md §2.1, §2.2, §2.4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final, Literal

from streamkit.dialects.openai_responses.wire import OPAQUE_VENDOR, PLACES, SPEECHES, SUMMARY, TEXT, VENDOR, Speech
from streamkit.dialects.streams.frame_decoder import FrameDecoder
from streamkit.dialects.streams.running_text import RunningText
from streamkit.dialects.vocabulary.sealed_reasoning import Sealed, unseal
from streamkit.errors import TooManyBlocks
from streamkit.events import Aside, Opaque, ReasoningDelta, ReasoningOpaque, ReasoningSignature, WireEvent
from streamkit.limits import Limits
from streamkit.report import StreamReport
from streamkit.tool_calls.pairs import LOOKED_AT

DELTA_FIELDS: Final = frozenset({*PLACES, "delta", "logprobs"})
#: What of it each delta has of its own.
EACH_DELTA: Final = frozenset({"delta", "sequence_number", "obfuscation"})
#: So many open items, and parts of them, are looked at for one that a whole text repeats: each may be another's copy.
OPEN_LOOKED_AT: Final = 4 * LOOKED_AT
#: A message that begins with all of one that is so long repeats it.
REPEATED_CHARS: Final = 64


class Part:
    """A part of an item that has a text."""

    annotations = 0  #: how many came
    logprobs = False  #: some came
    differs = False  #: counted once
    start = ""  #: what it started with, until its deltas tell whether they repeat it
    echo: Part | None = None  #: an earlier message's, until it is clear whether this one repeats it
    held_chars = 0

    def __init__(self, speech: Speech, block: int, number: int, *, is_other_role: bool) -> None:
        self.speech = speech
        self.block = block  #: the label of its events
        self.number = number  #: of its text among the decoder's ``texts``
        self.is_other_role = is_other_role  #: of a message of another role than the model's
        self.whole_in: set[str] = set()  #: the kinds of events that had its whole text
        self.held: list[str] = []  #: deltas that may repeat the start, or the earlier message


class Item:
    """An output item, as far as events have told of it."""

    block: int | None = None  #: the label of its events, and of its first part; None as long as it said nothing
    open = True
    fields: frozenset[str] = frozenset()  #: names of those that are the vendor's and were said
    carried = False  #: a part of it, or all of it, was carried as asides
    # of a call
    call = 0  #: its place among the calls
    call_id = ""
    name = ""
    start = ""  #: arguments that came with the start, until anything else settles whether they count
    has_input = False  #: one event had all arguments

    def __init__(self, kind: str, item_id: str, *, is_other_role: bool) -> None:
        self.kind, self.id = kind, item_id
        self.is_other_role = is_other_role  #: a message of another role than the model's
        self.parts: dict[tuple[str, int], Part] = {}


def _other_role_text(text: str, choice: int, block: int) -> WireEvent:
    return Aside(VENDOR, "unknown_event", "message", text, choice, block)


def _event_of(part: Part, speech: Speech) -> Callable[[str, int, int], WireEvent]:
    """Return the event of a text in a part: an unknown event where the message has another role than the model's."""
    return _other_role_text if part.is_other_role else speech.event


class LastDelta:
    """What the last event was, if it was a delta that named its part, or its call, and was said as it came.

    ``each`` are the members of the event that the next one may have otherwise; ``at`` is that with the index of its part.
    ``text`` is that which it goes on, None of a call; ``event`` makes one of a text, its choice, and its block or call,
    ``label``. Reasoning has a ``kind``.
    """

    __slots__ = ("at", "document", "each", "event", "kind", "label", "text")

    def __init__(
        self,
        document: dict[str, Any],
        at: str,
        text: RunningText | None,
        event: Callable[[str, int, int], WireEvent],
        label: int,
    ) -> None:
        self.document, self.at = document, at
        self.each = {name: document[name] for name in EACH_DELTA if name in document}
        self.text, self.event, self.label = text, event, label
        self.kind: Literal["raw", "summary"] | None = None
        if event is ReasoningDelta or event is SUMMARY.event:
            self.kind = "raw" if event is ReasoningDelta else "summary"


class TextReader(FrameDecoder):
    """The part of the decoder that reads the parts of items."""

    next_index = 0  #: one more than the highest index of an item
    signature: Opaque | None = None  #: of the next call: it stands before it
    _labels = 0
    _text = 0  # the block of the latest text
    _parts = 0
    _latest: Part | None = None  # the latest part of text

    def __init__(self, limits: Limits, report: StreamReport) -> None:
        super().__init__(limits, report)
        self.last_delta: LastDelta | None = None  #: the next may go on there
        self.items_at: dict[int, Item] = {}  #: what was last at an index
        self._said_whole: tuple[Part, str] | None = None  # the part whose whole text came last, if nothing came since

    def find(self, document: dict[str, Any], kind: str) -> Item:
        """The item that an event names; one is opened if there is none."""
        raise NotImplementedError

    def label(self) -> int:
        if self._labels >= self.limits.content_blocks:
            raise TooManyBlocks(self.limits.content_blocks, offset=self.frame.offset)
        self._labels += 1
        return self._labels - 1

    def block_of(self, item: Item) -> int:
        """The label of an item's first part."""
        if item.block is None:
            item.block = self.label()
        return item.block

    def _open_part(self, document: dict[str, Any], speech: Speech) -> Part | None:
        """The part of an open item that an event names with all that names one, as nearly always; None otherwise."""
        index, place = document.get("output_index"), document.get(speech.place)
        if type(index) is int and type(place) is int and (item := self.items_at.get(index)) is not None:
            part = item.parts.get((speech.place, place))
            if part is not None and item.open and document.get("item_id") == item.id:
                return part
        return None

    def _part(self, document: dict[str, Any], speech: Speech) -> Part:
        """The part that an event names; it, and its item, are opened if they were not."""
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

    def part_at(self, item: Item, speech: Speech, place: int) -> Part:
        """The part of an item at a place, opened if it was not. Raises TooManyBlocks."""
        part = item.parts.get((speech.place, place))
        if part is None:
            block = self.label() if item.parts else self.block_of(item)
            part = Part(speech, block, self._parts, is_other_role=item.is_other_role)
            self._parts += 1
            if speech is TEXT:
                self._text = block
                if not item.parts and self._latest is not None and self._chars(self._latest) >= REPEATED_CHARS:
                    part.echo = self._latest
                self._latest = part
            item.parts[speech.place, place] = part
        return part

    def _chars(self, part: Part) -> int:
        """How long the text of a part is so far."""
        text = self.texts.begun(part.number)
        return 0 if text is None else text.chars

    # -- events ----------------------------------------------------------------------------------------------------

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
            self._say(part, speech, text)
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
            self.beside(self._whole_event(document, speech, found, "part"), found)

    def _whole_event(self, document: dict[str, Any], speech: Speech, found: dict[str, Any], event: str) -> Part:
        """The part whose whole text an event has, in ``found``: what of it was not said yet, is.

        Some servers number it otherwise than its deltas: then the part is one of an open item, whose text it begins with.
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

    def _another(self, event: str, speech: Speech, text: str, first: Item | None, own: Part | None) -> Part | None:
        """A part that is not ``own``, with whose text a whole one begins that no such event had. A few are looked at."""
        parts = (part for item in self.open_items(speech.item, first) for part in item.parts.values())
        for part in islice(parts, OPEN_LOOKED_AT):
            if event not in part.whole_in and part.speech is speech and part is not own and self.agrees(part, text):
                return part
        return None

    def open_items(self, kind: str, first: Item | None) -> Iterator[Item]:
        """Open items of a kind, ``first`` before the others, of which a few are looked at."""
        raise NotImplementedError

    def located(self, document: dict[str, Any]) -> Item | None:
        """The item that an event names, if there is one."""
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

    # -- what they say ---------------------------------------------------------------------------------------------

    def beside(self, part: Part, found: dict[str, Any]) -> None:
        """What a whole part has beside its text, as far as it was not said."""
        if not part.logprobs and (logprobs := found.get("logprobs")):
            self._logprobs(part, logprobs)
        if (annotations := found.get("annotations")) not in (None, []):
            for annotation in self.items(annotations)[part.annotations :]:
                self._annotation(part, annotation)

    def start_part(self, part: Part, speech: Speech, text: str) -> None:
        """The text that the start of a part, or of its item, had already."""
        if part.held or self._chars(part):
            self.whole_text(part, speech, text)
        elif text.startswith(part.start):
            part.speech, part.start = speech, text
        elif not part.start.startswith(text):
            self._differs(part)

    def _say(self, part: Part, speech: Speech, text: str) -> None:
        part.speech, self._said_whole = speech, None
        if part.start:
            self._behind_start(part, text)
        elif part.echo is not None:
            self._behind_message(part, part.echo, text)
        else:
            self.texts.of(part.number).append(text)
            self.out.append(_event_of(part, speech)(text, 0, part.block))

    def _behind_start(self, part: Part, text: str) -> None:
        """Text of a part that started with some: the same again, or what follows it."""
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
        self._say(part, part.speech, start + self._taken(part))

    def _behind_message(self, part: Part, echo: Part, text: str) -> None:
        """The beginning of a message behind another, which may be all of that one again."""
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
            self._say(part, part.speech, whole)
            return
        self.report.repair("text_repeated")
        self.texts.of(part.number).append(whole)
        part.block = echo.block
        if rest:
            self.out.append(_event_of(part, part.speech)(rest, 0, part.block))

    def _hold(self, part: Part, text: str) -> None:
        part.held.append(text)
        part.held_chars += len(text)

    def _taken(self, part: Part) -> str:
        """What was held of a part, which is held no longer."""
        text = "".join(part.held)
        part.held, part.held_chars = [], 0
        return text

    def settle(self, part: Part) -> None:
        """Say what waits: no delta tells any more whether it was said before."""
        if part.start:
            if part.held:
                self.report.repair("text_repeated")
                self._taken(part)
            start, part.start = part.start, ""
            self._say(part, part.speech, start)
        if part.echo is not None:
            part.echo = None
            if text := self._taken(part):
                self._say(part, part.speech, text)

    def whole_text(self, part: Part, speech: Speech, text: str, logprobs: Any = None) -> None:
        """The whole text of a part: what was not said of it yet. What contradicts is withheld."""
        if text and not self.adds(part, speech, text, logprobs):
            self._differs(part)

    def adds(self, part: Part, speech: Speech, text: str, logprobs: Any = None) -> bool:
        """Say what a whole text has beyond what was said of its part; False, and nothing is said, if it contradicts.

        ``logprobs`` are those of the whole text.
        """
        if part.start and text.startswith(part.start):
            if self._taken(part):
                self.report.repair("text_repeated")
            part.start = ""
        if part.start:
            self.settle(part)
        if part.echo is not None:
            repeats = text.startswith("".join(part.held))
            if repeats:
                self._say(part, speech, text[part.held_chars :])
            self.settle(part)
            if repeats:
                return True
        said = self.texts.begun(part.number)
        rest = text if said is None else said.rest_of(text)
        if rest:
            if logprobs and not part.logprobs:
                self._logprobs(part, logprobs)
            if said is not None:
                self.report.repair("fragments_missing")
            self._say(part, speech, rest)
        if rest is not None:
            self._said_whole = part, text
        return rest is not None

    def goes_on(self, part: Part, speech: Speech, text: str, logprobs: Any) -> bool:
        """As ``adds``, for a part of which anything came; nothing is left to do where its whole text came last."""
        if (whole := self._said_whole) is not None and whole[0] is part and whole[1] == text:
            return True
        return self.has_text(part) and self.adds(part, speech, text, logprobs)

    def has_text(self, part: Part) -> bool:
        """Whether anything of a part came."""
        return bool(part.start or part.held or self.texts.begun(part.number))

    def agrees(self, part: Part, text: str) -> bool:
        """Whether a whole text begins with what was said of a part."""
        if part.start:
            return bool(text) and text.startswith(part.start)
        if part.held:
            return len(text) >= part.held_chars and text.startswith("".join(part.held))
        before = self.texts.begun(part.number)
        return before is not None and before.rest_of(text) is not None

    def _differs(self, part: Part) -> None:
        if not part.differs:
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
    """An event without its place in the stream: where it is written again, it has another."""
    return {name: value for name, value in document.items() if name not in {"sequence_number", "output_index"}}
