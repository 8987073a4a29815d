"""The ``message`` of a choice within a stream: the first one, a fragment, or the whole answer once more.

Servers end with it beside or instead of the last delta, or with a whole ``chat.completion``. Beside a delta ``message`` may
also repeat that delta alone, and some servers write every fragment into ``message``. So behind deltas it is a whole, unless
it is what its own delta says. Where nothing but messages came, one that ends its choice is a whole if it begins with all
the text before it, and so is an earlier one where that is too long to be chance. Of a whole only what is missing is passed
on (``streams/running_text.py``).

Source: dialects.md §1.6.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from attrs import define, evolve, field

from streamkit.dialects.streams.running_text import Texts
from streamkit.events import (
    Aside,
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
#: Kinds of asides that stand beside a text; a whole message has all that came before.
LISTED: Final = frozenset({"citation", "audio"})


@define(eq=False)
class WholeMessages:
    """Tells fragments from whole messages, by what each choice had before.

    The texts and the report are the decoder's.
    """

    _begun: set[int] = field(factory=set)  # choices that had any event
    _by_delta: set[int] = field(factory=set)  # those that had one in a delta
    _with_calls: set[int] = field(factory=set)
    _differs: set[tuple[str, int]] = field(factory=set)  # texts whose whole contradicted them
    _listed: dict[tuple[int, str], int] = field(factory=dict)  # how many asides of a kind a choice had

    def remember(self, events: Sequence[WireEvent], choice: int, texts: Texts, *, by_delta: bool = False) -> None:
        """Note that a choice had these events."""
        self._begun.add(choice)
        if by_delta:
            self._by_delta.add(choice)
        for event in events:
            if isinstance(event, TEXTS):
                texts.of((type(event), choice)).append(event.text)
            elif isinstance(event, ToolCallDelta):
                self._with_calls.add(choice)
            elif isinstance(event, Aside) and event.kind in LISTED:
                self._listed[choice, event.kind] = self._listed.get((choice, event.kind), 0) + 1

    def news(
        self,
        found: list[WireEvent],
        from_delta: list[WireEvent],
        choice: int,
        texts: Texts,
        report: StreamReport,
        *,
        ends: bool,
        was_signed: bool,
    ) -> list[WireEvent]:
        """The events of a message that are new, and remember them.

        ``found`` are all of the message, ``from_delta`` those of the delta beside it. ``ends``: the choice has a stop reason.
        """
        is_first = choice not in self._begun
        if not is_first and self._is_whole(found, choice, texts, ends=ends):
            if from_delta and _texts(found) == _texts(from_delta):
                found = [event for event in found if not isinstance(event, TEXTS)]
            found = self._missing(found, choice, texts, report, was_signed=was_signed)
        self.remember(found, choice, texts)
        return found

    def _is_whole(self, found: list[WireEvent], choice: int, texts: Texts, *, ends: bool) -> bool:
        """Whether a message behind others is all of it, and not a fragment."""
        if choice in self._by_delta:
            return True
        chars = 0
        for kind, whole in _texts(found).items():
            text = texts.begun((kind, choice))
            if text is not None and text.rest_of(whole) is None:
                return False
            chars += 0 if text is None else text.chars
        return chars >= (1 if ends else REPEATED_CHARS)

    def _missing(
        self, found: list[WireEvent], choice: int, texts: Texts, report: StreamReport, *, was_signed: bool
    ) -> list[WireEvent]:
        """The events of a whole message that no earlier one had."""
        out: list[WireEvent] = []
        for kind, whole in _texts(found).items():
            first = next(event for event in found if type(event) is kind)
            text = texts.begun((kind, choice))
            rest = whole if text is None else text.rest_of(whole)
            if rest is None and (kind.__name__, choice) not in self._differs:
                self._differs.add((kind.__name__, choice))
                report.repair("whole_differs")
            elif rest:
                if text is not None:
                    report.repair("fragments_missing")
                out.append(evolve(first, text=rest))
        calls = tuple(event for event in found if isinstance(event, ToolCallDelta))
        if choice in self._with_calls and calls:
            out.append(ToolCallsWhole(calls, choice))
        else:
            out += calls
        listed = dict.fromkeys(LISTED, 0)
        for event in found:
            if isinstance(event, Aside):
                listed[event.kind] = listed.get(event.kind, 0) + 1
                if event.kind in LISTED and listed[event.kind] <= self._listed.get((choice, event.kind), 0):
                    continue
                out.append(event)
            elif isinstance(event, ReasoningSignature | ReasoningOpaque) and not was_signed:
                out.append(event)
        return out


def _texts(events: list[WireEvent]) -> dict[type[TextEvent], str]:
    """The whole text of each kind that events say, in the order of the kinds."""
    texts = {kind: "".join([event.text for event in events if type(event) is kind]) for kind in TEXTS}
    return {kind: text for kind, text in texts.items() if text}
