"""Join the deltas of one block or call in one read into one delta: the normal form of law L1 (``streamkit.testing.joined``).

Text, refusal and reasoning are joined only with their neighbours, since the order of blocks is part of the stream. Fragments
of calls are joined at the place of the first one, as long as only fragments are between them. Fragments that together form an
empty object stay apart: readers drop an empty object that is one fragment before another object.

Source: design.md §1 (L1), §9 ("Joining").
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

from streamkit.events import Event, ReasoningDelta, RefusalDelta, TextDelta, ToolCallArguments

#: For each class of delta, the fields that must be equal to join two deltas.
KEYS: dict[type, Callable[[Any], Hashable]] = {
    TextDelta: attrgetter("choice", "block"),
    RefusalDelta: attrgetter("choice", "block"),
    ReasoningDelta: attrgetter("choice", "block", "kind"),
    ToolCallArguments: attrgetter("choice", "call"),
}


def join_deltas(events: Sequence[Event]) -> list[Event]:
    """Return ``events`` with their deltas joined. The given events are not changed."""
    out: list[Event] = []
    run: dict[Hashable, list[Any]] = {}  # deltas of one class, grouped by the fields that must be equal
    run_of: type | None = None
    for event in events:
        kind = type(event)
        key_of = KEYS.get(kind)
        key = None if key_of is None else key_of(event)
        if run and (kind is not run_of or (key not in run and kind is not ToolCallArguments)):
            out += chain.from_iterable(map(_joined, run.values()))
            run = {}
        if key is None:
            out.append(event)
        elif key in run:
            run[key].append(event)
        else:
            run_of, run[key] = kind, [event]
    out += chain.from_iterable(map(_joined, run.values()))
    return out


def _joined(deltas: list[Any]) -> list[Any]:
    first = deltas[0]
    if len(deltas) == 1:
        return deltas
    if type(first) is ToolCallArguments:
        text = "".join([delta.fragment for delta in deltas])
        return deltas if text.strip() == "{}" else [ToolCallArguments(first.call, text, first.choice)]
    text = "".join([delta.text for delta in deltas])
    if type(first) is ReasoningDelta:
        return [ReasoningDelta(text, first.choice, first.block, first.kind)]
    return [type(first)(text, first.choice, first.block)]
