"""Deltas that one read brought of one block or call, as one delta.

The normal form of L1, which ``streamkit.testing.joined`` gives: text, refusal and reasoning are joined with their
neighbours only, since the order between blocks is part of the stream; fragments of calls are joined in the place of the first
as long as nothing but fragments comes between them. Fragments that are an empty object together stay apart: readers drop one
that comes as one fragment in front of another object.

Gain: every machine further on, and the client, has one delta for the many of a read.

Source: design.md §1 (L1), §9 ("Joining").
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

from streamkit.events import Event, ReasoningDelta, RefusalDelta, TextDelta, ToolCallArguments

#: What must agree for deltas to be joined.
KEYS: dict[type, Callable[[Any], Hashable]] = {
    TextDelta: attrgetter("choice", "block"),
    RefusalDelta: attrgetter("choice", "block"),
    ReasoningDelta: attrgetter("choice", "block", "kind"),
    ToolCallArguments: attrgetter("choice", "call"),
}


def join_deltas(events: Sequence[Event]) -> list[Event]:
    """``events`` with their deltas joined. The given events stay as they are."""
    out: list[Event] = []
    run: dict[Hashable, list[Any]] = {}  # deltas of one class: what is joined with what
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
