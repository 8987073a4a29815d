"""Read the parts of items: text, refusals, reasoning, and annotations and log probabilities next to the text.

Each text is sent three or four times: in deltas, in the ``done`` events of its part and of its item, and in the terminal
response. The first copy counts, and a later copy only adds what is missing: some servers send no deltas at all. A copy that
contradicts is withheld (``streamkit/dialects/streams/running_text.py``; ``items.py`` finds the part of each copy).

**Starts with text.** The deltas of a part that starts with text either repeat that text or continue it. So the text is held
until a delta shows which.

**Repeated messages.** Bedrock's Mantle repeats a long response in one message after another, each with all text so far. If a
message begins with a whole earlier message of at least ``REPEATED_CHARS`` characters, only the text after it is emitted.

Source: dialects.md §2.1, §2.2, §2.4 (events of texts).
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
#: Members that differ in each delta.
EACH_DELTA: Final = frozenset({"delta", "sequence_number", "obfuscation"})
#: The most open items, and the most parts, that are searched for one that a whole text repeats.
OPEN_LOOKED_AT: Final = 4 * LOOKED_AT
#: The least length of an earlier message for a repetition to count as one.
REPEATED_CHARS: Final = 64


class Part:
    """A part of an item that has a text."""

    annotations = 0  #: the number of annotations so far
    logprobs = False  #: whether log probabilities came
    differs = False  #: whether a contradiction was counted
    start = ""  #: the text of its start, until deltas show whether they repeat it
    echo: Part | None = None  #: an earlier message, until it is clear whether this one repeats it
    held_chars = 0

    def __init__(self, speech: Speech, block: int, number: int, *, is_other_role: bool) -> None:
        self.speech = speech
        self.block = block  #: the block label of its events
        self.number = number  #: the number of its text in the decoder's ``texts``
        self.is_other_role = is_other_role  #: whether its message has another role than the model's
        self.whole_in: set[str] = set()  #: the kinds of events that had its whole text
        self.held: list[str] = []  #: deltas that may repeat the start or the earlier message


class Item:
    """An output item, as far as its events have come."""

    block: int | None = None  #: the block label of its events and its first part; None before its first output
    open = True
    fields: frozenset[str] = frozenset()  #: names of the vendor's members that were emitted
    carried = False  #: whether it was emitted as asides, at least in part
    # for calls
    call = 0  #: its number among the calls
    call_id = ""
    name = ""
    start = ""  #: the arguments in its start, until another event shows whether they count
    has_input = False  #: whether one event had all arguments

    def __init__(self, kind: str, item_id: str, *, is_other_role: bool) -> None:
        self.kind, self.id = kind, item_id
        self.is_other_role = is_other_role  #: whether it is a message of another role than the model's
        self.parts: dict[tuple[str, int], Part] = {}


def _other_role_text(text: str, choice: int, block: int) -> WireEvent:
    return Aside(VENDOR, "unknown_event", "message", text, choice, block)


def _event_of(part: Part, speech: Speech) -> Callable[[str, int, int], WireEvent]:
    """Return the event class for a part's text: an unknown event if the message has another role than the model's."""
    return _other_role_text if part.is_other_role else speech.event


class LastDelta:
    """The last event, if it was a delta that named its part or call and was emitted unchanged.

    ``each`` has the members that may differ in the next delta; ``at`` is the name of the member with the index of its part.
    ``text`` is the text that it continues (None for a call). ``event`` makes an event from a text, its choice, and its block
    or call, which is ``label``. Reasoning has a ``kind``.
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

    next_index = 0  #: one more than the highest index so far
    signature: Opaque | None = None  #: of the next call, before which it is sent
    _labels = 0
    _text = 0  # the block of the last text
    _parts = 0
    _latest: Part | None = None  # the last text part

    def __init__(self, limits: Limits, report: StreamReport) -> None:
        super().__init__(limits, report)
        self.last_delta: LastDelta | None = None  #: the next delta may continue it
        self.items_at: dict[int, Item] = {}  #: the last item at each index
        self._said_whole: tuple[Part, str] | None = None  # the part and text of a whole copy, if it came last

    def find(self, document: dict[str, Any], kind: str) -> Item:
        """Return the item that an event names; begin one if there is none."""
        raise NotImplementedError

    def label(self) -> int:
        if self._labels >= self.limits.content_blocks:
            raise TooManyBlocks(self.limits.content_blocks, offset=self.frame.offset)
        self._labels += 1
        return self._labels - 1

    def block_of(self, item: Item) -> int:
        """Return the block label of an item's first part."""
        if item.block is None:
            item.block = self.label()
        return item.block

    def _open_part(self, document: dict[str, Any], speech: Speech) -> Part | None:
        """Return the part of an open item if the event names it completely, as nearly always; else None."""
        index, place = document.get("output_index"), document.get(speech.place)
        if type(index) is int and type(place) is int and (item := self.items_at.get(index)) is not None:
            part = item.parts.get((speech.place, place))
            if part is not None and item.open and document.get("item_id") == item.id:
                return part
        return None

    def _part(self, document: dict[str, Any], speech: Speech) -> Part:
        """Return the part that an event names; begin the part and its item if needed."""
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
        """Return the part at a place of an item; begin it if needed. Raises TooManyBlocks."""
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
        """Return the length of a part's text so far, in characters."""
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
        """Emit what is new in the whole text in ``found``, and return its part.

        Some servers number the event differently than its deltas: then the part is the one in an open item that the text
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

    def _another(self, event: str, speech: Speech, text: str, first: Item | None, own: Part | None) -> Part | None:
        """Return another part than ``own`` that the whole text begins with and that had no such event. A few are searched."""
        parts = (part for item in self.open_items(speech.item, first) for part in item.parts.values())
        for part in islice(parts, OPEN_LOOKED_AT):
            if event not in part.whole_in and part.speech is speech and part is not own and self.agrees(part, text):
                return part
        return None

    def open_items(self, kind: str, first: Item | None) -> Iterator[Item]:
        """Yield a few open items of a kind, ``first`` before the others."""
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

    # -- their text ------------------------------------------------------------------------------------------------

    def beside(self, part: Part, found: dict[str, Any]) -> None:
        """Emit the annotations and log probabilities of a whole part that were not emitted before."""
        if not part.logprobs and (logprobs := found.get("logprobs")):
            self._logprobs(part, logprobs)
        if (annotations := found.get("annotations")) not in (None, []):
            for annotation in self.items(annotations)[part.annotations :]:
                self._annotation(part, annotation)

    def start_part(self, part: Part, speech: Speech, text: str) -> None:
        """Hold the text in the start of a part or of its item."""
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
        """Read a delta of a part that started with text: it repeats the text or continues it."""
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
        """Read the first deltas of a message after another, which may repeat that one."""
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
        """Return the deltas that were held for a part, and empty its list."""
        text = "".join(part.held)
        part.held, part.held_chars = [], 0
        return text

    def settle(self, part: Part) -> None:
        """Emit the text that is held for a part: no more deltas can show whether it is a repetition."""
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
        """Emit what is new in the whole text of a part; count a contradiction."""
        if text and not self.adds(part, speech, text, logprobs):
            self._differs(part)

    def adds(self, part: Part, speech: Speech, text: str, logprobs: Any = None) -> bool:
        """Emit what a whole text adds to its part; return False, and emit nothing, if it contradicts the part's text.

        ``logprobs``: those of the whole text.
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
        """Do the same as ``adds`` for a part that has text; do nothing if this whole text came directly before."""
        if (whole := self._said_whole) is not None and whole[0] is part and whole[1] == text:
            return True
        return self.has_text(part) and self.adds(part, speech, text, logprobs)

    def has_text(self, part: Part) -> bool:
        """Return whether a part has any text, emitted or held."""
        return bool(part.start or part.held or self.texts.begun(part.number))

    def agrees(self, part: Part, text: str) -> bool:
        """Return whether a whole text begins with the part's text so far."""
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
        """Emit encrypted reasoning: this vendor's, for the item's text if it has any, or another's that was sealed."""
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
    """Return an event without its place in the stream, since it gets another place when it is written again."""
    return {name: value for name, value in document.items() if name not in {"sequence_number", "output_index"}}
