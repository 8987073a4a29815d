"""Read the ``message`` of a choice in a stream: the first one, a fragment, or the whole response again.

Some servers end with a ``message`` next to or instead of the last delta, or with a whole ``chat.completion``. A ``message``
next to a delta may also repeat only that delta, and some servers write every fragment into ``message``. So after deltas, a
``message`` is whole, unless it equals the delta next to it. If only messages came, one that ends its choice is whole if it
begins with all text before it; an earlier one is whole if that text is also too long to match by chance. Of a whole message,
only the missing text is passed on (``streams/running_text.py``).

Source: dialects.md §1.6 (servers that send messages in streams).
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
#: A match of at least this many characters is no chance.
REPEATED_CHARS: Final = 16
#: Kinds of events next to texts that are counted: a whole message repeats all that came before.
LISTED: Final = frozenset({"citation", "audio", "media"})

#: The values of ``ChoiceSoFar.signed`` if no block is signed.
UNSIGNED: Final = (-1, "")


class ChoiceSoFar:
    """What one choice contained so far, from which the new parts of a whole message follow. The decoder owns the texts."""

    # Defaults are attributes of the class: an instance is made in a fifth of the time.
    #: The texts to which deltas and their reasoning are appended, after the first one.
    text: RunningText | None = None
    thought: RunningText | None = None
    _begun: bool = False  # whether any event came
    _by_delta: bool = False
    _with_calls: bool = False
    _differs: frozenset[str] = frozenset()  # kinds of texts that a whole message contradicted
    _listed: Mapping[str, int] = {}  # the number of events of each kind
    spoke: bool = False  #: a delta or a message had content
    speaks: bool = True  #: the last role was the model's, or there was none
    ended: bool = False  #: the choice had a stop reason
    in_thought: bool = False  #: the content is marked as reasoning
    signed: tuple[int, str] = UNSIGNED  #: the last signed block and its vendor; a signature closes its block
    signature: str = ""  #: the last signature in a member
    signs: bool = False  #: the signature came in this delta
    signed_chars: int = 0  #: the characters of reasoning before the signature
    block: int = -1  #: the block of the last reasoning
    detailed: bool = False  #: an entry of ``reasoning_details`` had text
    #: Two members can name a called function, and the second repeats the first: the last name in ``tool_calls``, and the
    #: last in ``function_call`` if that member came first.
    #: first: the other member repeats it.
    called: str | None = None
    called_before: str | None = None

    def __init__(self, number: int, texts: Texts) -> None:
        self.number = number
        self._texts = texts

    @property
    def thought_chars(self) -> int:
        """The number of characters of reasoning in earlier deltas."""
        text = self._texts.begun((ReasoningDelta, self.number))
        return 0 if text is None else text.chars

    def has_thought(self, whole: str) -> bool:
        """Return whether ``whole`` is all reasoning of earlier deltas."""
        text = self._texts.begun((ReasoningDelta, self.number))
        return text is not None and text.rest_of(whole) == ""

    def begin(self, kind: type[TextEvent]) -> RunningText:
        """Note the first delta of a kind of text, and return its text."""
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
        """Return the new events of a message, and remember them.

        ``found``: all events of the message. ``from_delta``: those of the delta next to it. ``ends``: the choice has a stop
        reason.
        """
        if self._begun and self._is_whole(found, ends=ends):
            if from_delta and _texts(found) == _texts(from_delta):
                found = [event for event in found if not isinstance(event, TEXTS)]
            found = self._missing(found, report, was_signed=was_signed)
        self.remember(found)
        return found

    def _is_whole(self, found: list[WireEvent], *, ends: bool) -> bool:
        """Return whether a later message repeats the whole response, and is not a fragment."""
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
        """Return the events of a whole message that were not in earlier events."""
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
    """Return the kind of an aside or of media; an empty string for other events."""
    if isinstance(event, MediaGenerated):
        return "media"
    return event.kind if isinstance(event, Aside) else ""


def _texts(events: list[WireEvent]) -> dict[type[TextEvent], str]:
    """Return the joined text of each kind in these events, in the order of ``TEXTS``."""
    texts = {kind: "".join([event.text for event in events if type(event) is kind]) for kind in TEXTS}
    return {kind: text for kind, text in texts.items() if text}
