"""The ``message`` of a choice within a stream: the first that is said, a fragment, or the whole answer once more.

Servers end with it beside or instead of the last delta, or with a whole ``chat.completion``. Beside a delta ``message`` may
also repeat that delta alone, and some servers write every fragment into ``message``. So behind deltas it is a whole, unless
it is what its own delta says. Where nothing but messages came, one that ends its choice is a whole if it begins with all
that was said, and so is an earlier one where that is too long to be chance. Of a whole only what is missing is said
(``streams/running_text.py``).

Source: dialects.md §1.6.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from attrs import evolve

from streamkit.dialects.openai_chat.delta import DeltaReader
from streamkit.dialects.streams.running_text import RunningText
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
from streamkit.limits import Limits
from streamkit.report import StreamReport

Said: TypeAlias = TextDelta | RefusalDelta | ReasoningDelta
TEXTS: Final = (ReasoningDelta, TextDelta, RefusalDelta)
#: What a message begins with by chance is shorter.
REPEATED_CHARS: Final = 16
#: What stands beside a text, of which a whole message has all that came before.
LISTED: Final = frozenset({"citation", "audio"})


class MessageReader(DeltaReader):
    """The part of the decoder that tells deltas from whole messages."""

    def __init__(self, limits: Limits, report: StreamReport) -> None:
        super().__init__(limits, report)
        self._said: set[int] = set()  # choices that said anything
        self._by_delta: set[int] = set()  # those that did in a delta
        self._with_calls: set[int] = set()
        self._differs: set[tuple[str, int]] = set()  # texts whose whole contradicted them
        self._listed: dict[tuple[int, str], int] = {}  # how many asides of a kind a choice had
        self._compared = 0  # messages that were compared with what was said: each changes the state, and is read alone

    def text_of_run(self, model: Any) -> RunningText | None:
        return self.texts.of((type(model), model.choice)) if isinstance(model, TEXTS) else None

    def read_choice(
        self, delta: dict[str, Any], message: dict[str, Any], choice: int, position: int, *, ends: bool
    ) -> None:
        """What the delta and the message of one choice say; ``ends`` if it has a stop reason, too."""
        before = len(self.out)
        if delta:
            self.delta(delta, choice, (position, "delta"))
            if len(self.out) > before:
                self._remember(before, choice)
                self._by_delta.add(choice)
        if message and message != delta:
            self._message(message, choice, position, self.out[before:], ends=ends)

    def _message(
        self, message: dict[str, Any], choice: int, position: int, of_delta: list[WireEvent], *, ends: bool
    ) -> None:
        """A message; ``of_delta`` is what the delta beside it said."""
        is_first, was_signed = choice not in self._said, choice in self._signed
        before = len(self.out)
        self.delta(message, choice, (position, "message"))
        found = self.out[before:]
        self._compared += not is_first
        if is_first or not self._is_whole(found, choice, ends=ends):
            self._remember(before, choice)
            return
        del self.out[before:]
        if of_delta and _texts(found) == _texts(of_delta):
            found = [event for event in found if not isinstance(event, TEXTS)]
        self._add_missing(found, choice, was_signed=was_signed)

    def _is_whole(self, found: list[WireEvent], choice: int, *, ends: bool) -> bool:
        """Whether a message behind others is all of it, and not a fragment."""
        if choice in self._by_delta:
            return True
        chars = 0
        for kind, whole in _texts(found).items():
            text = self.texts.begun((kind, choice))
            if text is not None and text.rest_of(whole) is None:
                return False
            chars += 0 if text is None else text.chars
        return chars >= (1 if ends else REPEATED_CHARS)

    def _remember(self, before: int, choice: int) -> None:
        """Note what was said from event number ``before`` on."""
        self._said.add(choice)
        for event in self.out[before:]:
            if isinstance(event, TEXTS):
                self.texts.of((type(event), choice)).append(event.text)
            elif isinstance(event, ToolCallDelta):
                self._with_calls.add(choice)
            elif isinstance(event, Aside) and event.kind in LISTED:
                self._listed[choice, event.kind] = self._listed.get((choice, event.kind), 0) + 1

    def _add_missing(self, found: list[WireEvent], choice: int, *, was_signed: bool) -> None:
        """Of what a whole message says, what was not said before."""
        before = len(self.out)
        for kind, whole in _texts(found).items():
            first = next(event for event in found if type(event) is kind)
            text = self.texts.begun((kind, choice))
            rest = whole if text is None else text.rest_of(whole)
            if rest is None and (kind.__name__, choice) not in self._differs:
                self._differs.add((kind.__name__, choice))
                self.report.repair("whole_differs")
            elif rest:
                if text is not None:
                    self.report.repair("fragments_missing")
                self.out.append(evolve(first, text=rest))
        calls = tuple(event for event in found if isinstance(event, ToolCallDelta))
        if choice in self._with_calls and calls:
            self.out.append(ToolCallsWhole(calls, choice))
        else:
            self.out += calls
        listed = dict.fromkeys(LISTED, 0)
        for event in found:
            if isinstance(event, Aside):
                listed[event.kind] = listed.get(event.kind, 0) + 1
                if event.kind in LISTED and listed[event.kind] <= self._listed.get((choice, event.kind), 0):
                    continue
                self.out.append(event)
            elif isinstance(event, ReasoningSignature | ReasoningOpaque) and not was_signed:
                self.out.append(event)
        self._remember(before, choice)


def _texts(events: list[WireEvent]) -> dict[type[Said], str]:
    """The whole text of each kind that events say, in the order of the kinds."""
    texts = {kind: "".join([event.text for event in events if type(event) is kind]) for kind in TEXTS}
    return {kind: text for kind, text in texts.items() if text}
