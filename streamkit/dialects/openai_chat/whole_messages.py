"""The ``message`` of a choice within a stream: the first one, a fragment, or the whole answer once more.

Servers end with it beside or instead of the last delta, or with a whole ``chat.completion``. Beside a delta ``message`` may
also repeat that delta alone, and some servers write every fragment into ``message``. So behind deltas it is a whole, unless
it is what its own delta says. Where nothing but messages came, one that ends its choice is a whole if it begins with all
the text before it, and so is an earlier one where that is too long to be chance. Of a whole only what is missing is passed
on (``streams/running_text.py``).

Source: dialects.md §1.6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from attrs import evolve

from streamkit.dialects.streams.running_text import RunningText, Texts
from streamkit.events import (
    Aside,
    MediaGenerated,
    ReasoningDelta,
    ReasoningOpaque,
    ReasoningSignature,
    RefusalDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallsWhole,
    WireEvent,
)
from streamkit.report import StreamReport

TextEvent: TypeAlias = TextDelta | RefusalDelta | ReasoningDelta
TEXTS: Final = (ReasoningDelta, TextDelta, RefusalDelta)
#: What a message begins with by chance is shorter.
REPEATED_CHARS: Final = 16
#: Kinds of what stands beside a text; a whole message has all that came before.
LISTED: Final = frozenset({"citation", "audio", "media"})

#: Block and vendor of no signature at all.
UNSIGNED: Final = (-1, "")


class ChoiceSoFar:
    """What one choice had so far, and so what is new of a whole message. The texts are the decoder's."""

    # Of the class until they change: it is made in a fifth of the time.
    #: Where the text of deltas goes, and their reasoning, once one came.
    text: RunningText | None = None
    thought: RunningText | None = None
    _begun: bool = False  # by any event
    _by_delta: bool = False
    _with_calls: bool = False
    _differs: frozenset[str] = frozenset()  # kinds of texts whose whole contradicted them
    _listed: Mapping[str, int] = {}  # how many of a kind came
    spoke: bool = False  #: a delta or a message with anything in it
    speaks: bool = True  #: the last role was the model's, or none was said
    ended: bool = False  #: it had a stop reason
    in_thought: bool = False  #: its content is marked as a thought
    signed: tuple[int, str] = UNSIGNED  #: its last signed block and that one's vendor: a signature closes its block
    signature: str = ""  #: the last that came as a member
    signs: bool = False  #: it came in this delta
    signed_chars: int = 0  #: of reasoning, when it came
    block: int = -1  #: of its last reasoning
    detailed: bool = False  #: an entry of ``reasoning_details`` had text
    #: Two members say what is called. The name that came last in ``tool_calls``, and in ``function_call`` where that came
    #: first: the other member repeats it.
    called: str | None = None
    called_before: str | None = None

    def __init__(self, number: int, texts: Texts) -> None:
        self.number = number
        self._texts = texts

    @property
    def thought_chars(self) -> int:
        """Return the characters of reasoning in earlier deltas."""
        text = self._texts.begun((ReasoningDelta, self.number))
        return 0 if text is None else text.chars

    def has_thought(self, whole: str) -> bool:
        """Whether this is all reasoning of earlier deltas."""
        text = self._texts.begun((ReasoningDelta, self.number))
        return text is not None and text.rest_of(whole) == ""

    def begin(self, kind: type[TextEvent]) -> RunningText:
        """A first delta of a kind of text comes."""
        self._begun = self._by_delta = True
        return self._texts.of((kind, self.number))

    def remember(self, events: Sequence[WireEvent], *, by_delta: bool = False) -> None:
        """Note that these events came."""
        self._begun = True
        self._by_delta = self._by_delta or by_delta
        for event in events:
            if isinstance(event, TEXTS):
                self._texts.of((type(event), self.number)).append(event.text)
            elif isinstance(event, ToolCallDelta):
                self._with_calls = True
            elif (beside := _kind_of(event)) in LISTED:
                self._listed = {**self._listed, beside: self._listed.get(beside, 0) + 1}
        if self.signs:
            self.signs, self.signed_chars = False, self.thought_chars

    def news(
        self, found: list[WireEvent], from_delta: list[WireEvent], report: StreamReport, *, ends: bool, was_signed: bool
    ) -> list[WireEvent]:
        """The events of a message that are new, and remember them.

        ``found`` are all of the message, ``from_delta`` those of the delta beside it. ``ends``: the choice has a stop reason.
        """
        if self._begun and self._is_whole(found, ends=ends):
            if from_delta and _texts(found) == _texts(from_delta):
                found = [event for event in found if not isinstance(event, TEXTS)]
            found = self._missing(found, report, was_signed=was_signed)
        self.remember(found)
        return found

    def _is_whole(self, found: list[WireEvent], *, ends: bool) -> bool:
        """Whether a message behind others is all of it, and not a fragment."""
        if self._by_delta:
            return True
        chars = 0
        for kind, whole in _texts(found).items():
            text = self._texts.begun((kind, self.number))
            if text is not None and text.rest_of(whole) is None:
                return False
            chars += 0 if text is None else text.chars
        return chars >= (1 if ends else REPEATED_CHARS)

    def _missing(self, found: list[WireEvent], report: StreamReport, *, was_signed: bool) -> list[WireEvent]:
        """The events of a whole message that no earlier one had."""
        out: list[WireEvent] = []
        for kind, whole in _texts(found).items():
            first = next(event for event in found if type(event) is kind)
            text = self._texts.begun((kind, self.number))
            rest = whole if text is None else text.rest_of(whole)
            if rest is None and kind.__name__ not in self._differs:
                self._differs |= {kind.__name__}
                report.repair("whole_differs")
            elif rest:
                if text is not None:
                    report.repair("fragments_missing")
                out.append(evolve(first, text=rest))
        calls = tuple(event for event in found if isinstance(event, ToolCallDelta))
        if self._with_calls and calls:
            out.append(ToolCallsWhole(calls, self.number))
        else:
            out += calls
        listed = dict.fromkeys(LISTED, 0)
        for event in found:
            if beside := _kind_of(event):
                listed[beside] = listed.get(beside, 0) + 1
                if beside in LISTED and listed[beside] <= self._listed.get(beside, 0):
                    continue
                out.append(event)
            elif isinstance(event, ReasoningSignature | ReasoningOpaque) and not was_signed:
                out.append(event)
        return out


def _kind_of(event: WireEvent) -> str:
    """The kind of what stands beside a text; blank for an event that is no such."""
    if isinstance(event, MediaGenerated):
        return "media"
    return event.kind if isinstance(event, Aside) else ""


def _texts(events: list[WireEvent]) -> dict[type[TextEvent], str]:
    """The whole text of each kind that events say, in the order of the kinds."""
    texts = {kind: "".join([event.text for event in events if type(event) is kind]) for kind in TEXTS}
    return {kind: text for kind, text in texts.items() if text}
