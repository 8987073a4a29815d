"""Other flows of events that say the same: the text cut elsewhere, other events within it, a second choice.

A provider may cut its text anywhere, report usage between two halves of a word, and send two choices in turn. What a stage
makes of the text must not depend on that.

Source: design.md §1.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

from attrs import evolve

from streamkit.events import (
    Aside,
    ReasoningDelta,
    RefusalDelta,
    ResponseStarted,
    StreamEnded,
    TextDelta,
    ToolCallArguments,
    UsageReported,
)

#: The member of each event with text that a provider may cut.
TEXTS: Final = {TextDelta: "text", ReasoningDelta: "text", RefusalDelta: "text", ToolCallArguments: "fragment"}
#: Marks the events that ``between`` inserts.
MARK: Final = "streamkit.testing"
#: Up to this many characters in all texts, one way cuts all of them apart.
ALL_APART = 4000
#: How many ways with seeded cuts there are, of each kind.
WAYS = 4


def is_inserted(event: object) -> bool:
    """Return whether ``between`` inserted the event."""
    return isinstance(event, Aside | UsageReported) and event.vendor == MARK


def recut(events: Sequence[Any], seed: int = 0) -> Iterator[tuple[str, list[Any]]]:
    """Yield what was done and the flow: texts apart, in a few pieces, and the same with events between the pieces."""
    rng = random.Random(seed)  # noqa: S311 - reproducible, not secret
    sizes = sum(len(getattr(event, TEXTS[type(event)])) for event in events if type(event) in TEXTS)
    if not sizes:
        return
    some: list[Callable[[int], list[int]]] = [
        lambda size: sorted(rng.randrange(1, size) for _ in range(rng.randint(0, 3))) if size > 1 else []
        for _ in range(WAYS)
    ]
    ways = [lambda size: [*range(1, size)], *some] if sizes <= ALL_APART else some
    for places in ways:
        yield "the text is cut elsewhere", _cut(events, places, between=False)
        yield "the text is cut elsewhere, with usage and an aside in it", _cut(events, places, between=True)


def _cut(events: Sequence[Any], places: Callable[[int], list[int]], *, between: bool) -> list[Any]:
    out: list[Any] = []
    for event in events:
        member = TEXTS.get(type(event))
        text = getattr(event, member) if member else ""
        if not member or text.strip() in {"", "{}"}:  # an empty object in two fragments is not the same as in one
            out.append(event)
            continue
        for number, (start, end) in enumerate(pairwise([0, *places(len(text)), len(text)])):
            if between and number:
                out.append(UsageReported(vendor=MARK))
                out.append(Aside(MARK, "metadata", "inserted", None, event.choice, getattr(event, "block", 0)))
            out.append(evolve(event, **{member: text[start:end]}))
    return out


def twice(events: Sequence[Any]) -> list[Any] | None:
    """Return a flow with the choice 0 and its copy as choice 1 in turn; None if there are more choices already."""
    if any(getattr(event, "choice", 0) for event in events):
        return None
    out: list[Any] = []
    for event in events:
        out.append(event)
        if hasattr(event, "choice") and not isinstance(event, ResponseStarted | StreamEnded):
            out.append(evolve(event, choice=1))
    return out


def of_choice(events: Sequence[Any], choice: int) -> list[Any]:
    """Return the events of one choice, as choice 0."""
    return [evolve(each, choice=0) for each in events if getattr(each, "choice", None) == choice]
