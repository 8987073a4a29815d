"""The ``message`` of a choice within a stream: the first one, a fragment, or the whole response again.

Servers end a stream with a message in addition to the last delta, or instead of it, or with a whole ``chat.completion``. A
``message`` next to a delta may also repeat only that delta, and some servers write every fragment into ``message``. So after
deltas a message is whole, unless it equals its own delta. If there were only messages, the message at the end of its choice
is whole if it begins with all the text before it; so is an earlier one, if that text is too long to match by chance. Only the
missing part of a whole message is emitted (``streams/running_text.py``).

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
#: The shortest text that counts as a repetition. A shorter text may be equal by chance.
REPEATED_CHARS: Final = 16
#: Kinds of content other than text. A whole message repeats all content of these kinds.
LISTED: Final = frozenset({"citation", "audio", "media"})

UNSIGNED: Final = (-1, "")  #: the block and the vendor of the last signature, if there was none


class ChoiceSoFar:
    """The state of one choice, which shows what is new in a whole message. The texts are in the decoder."""

    # These are class attributes until an instance sets them, so that a state is made in a fifth of the time.
    text: RunningText | None = None  #: the text of deltas, after the first one
    thought: RunningText | None = None  #: the same of their reasoning
    _begun: bool = False  # whether there was any event
    _by_delta: bool = False
    _with_calls: bool = False
    _differs: frozenset[str] = frozenset()  # kinds of texts that a whole text contradicted
    _listed: Mapping[str, int] = {}  # number of events so far of each kind in ``LISTED``
    spoke: bool = False  #: whether there was a delta or message with content
    speaks: bool = True  #: whether the last role was the model's, or there was none
    ended: bool = False  #: whether there was a stop reason
    in_thought: bool = False  #: whether its content is marked as a thought
    signed: tuple[int, str] = UNSIGNED  #: its last signed block and the vendor of the signature, which closes the block
    signature: str = ""  #: the last signature in a member
    signs: bool = False  #: whether the current delta had that signature
    signed_chars: int = 0  #: characters of reasoning at that time
    block: int = -1  #: block of its last reasoning
    detailed: bool = False  #: whether an entry of ``reasoning_details`` had text
    #: Two members have calls. These are the last name in ``tool_calls``, and in ``function_call`` if that was first: then the
    #: other member repeats it.
    called: str | None = None
    called_before: str | None = None

    def __init__(self, number: int, texts: Texts) -> None:
        self.number = number
        self._texts = texts

    @property
    def thought_chars(self) -> int:
        text = self._texts.begun((ReasoningDelta, self.number))
        return 0 if text is None else text.chars

    def has_thought(self, whole: str) -> bool:
        """Return whether ``whole`` is exactly the reasoning of all earlier deltas."""
        text = self._texts.begun((ReasoningDelta, self.number))
        return text is not None and text.rest_of(whole) == ""

    def begin(self, kind: type[TextEvent]) -> RunningText:
        self._begun = self._by_delta = True
        return self._texts.of((kind, self.number))

    def remember(self, events: Sequence[WireEvent], *, by_delta: bool = False) -> None:
        """Remember these events, to compare a later whole message with them."""
        self._begun = True
        self._by_delta = self._by_delta or by_delta
        for event in events:
            if isinstance(event, TEXTS):
                self._texts.of((type(event), self.number)).append(event.text)
            elif isinstance(event, ToolCallDelta):
                self._with_calls = True
            elif (listed_kind := _kind_of(event)) in LISTED:
                self._listed = {**self._listed, listed_kind: self._listed.get(listed_kind, 0) + 1}
        if self.signs:
            self.signs, self.signed_chars = False, self.thought_chars

    def news(
        self, found: list[WireEvent], from_delta: list[WireEvent], report: StreamReport, *, ends: bool, was_signed: bool
    ) -> list[WireEvent]:
        """Return the new events of a message, of all events ``found`` in it, and remember them.

        ``from_delta`` are the events of the delta next to it. ``ends``: the choice has a stop reason.
        """
        if self._begun and self._is_whole(found, ends=ends):
            if from_delta and _texts(found) == _texts(from_delta):
                found = [event for event in found if not isinstance(event, TEXTS)]
            found = self._missing(found, report, was_signed=was_signed)
        self.remember(found)
        return found

    def _is_whole(self, found: list[WireEvent], *, ends: bool) -> bool:
        """Return whether a message after other messages is whole, and not a fragment."""
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
        """Return those events of a whole message that no earlier delta or message had."""
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
            if listed_kind := _kind_of(event):
                listed[listed_kind] = listed.get(listed_kind, 0) + 1
                if listed_kind in LISTED and listed[listed_kind] <= self._listed.get(listed_kind, 0):
                    continue
                out.append(event)
            elif isinstance(event, ReasoningSignature | ReasoningOpaque) and not was_signed:
                out.append(event)
        return out


def _kind_of(event: WireEvent) -> str:
    """Return the kind of content, for content other than text; blank for any other event."""
    if isinstance(event, MediaGenerated):
        return "media"
    return event.kind if isinstance(event, Aside) else ""


def _texts(events: list[WireEvent]) -> dict[type[TextEvent], str]:
    """Return the whole text of each kind in these events, in the order of the kinds."""
    texts = {kind: "".join([event.text for event in events if type(event) is kind]) for kind in TEXTS}
    return {kind: text for kind, text in texts.items() if text}
