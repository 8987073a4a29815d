"""The normal form in which law L1 compares events.

The events must not show how a network split the bytes, except in how much text one event has: the text of one read and block
may be one delta. So two lists of events are the same if they are equal after joining deltas.

Source: design.md §1 (L1), §9 ("Joining").
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from streamkit.tool_calls.joining import join_deltas


def joined(events: Iterable[Any]) -> list[Any]:
    """Return ``events`` with adjacent deltas joined. Equal lists mean equal streams, however they were split into reads.

    Text, refusal and reasoning: neighbours are joined if they have the same class, choice, block and kind. Another block or
    choice between them separates them, because the order between blocks is part of the stream. Argument fragments: in a run of
    nothing but fragments, those of one call are joined at the place of the first; inside a read they may be regrouped, so
    their order across calls has no meaning. All other events, and events of classes that are not streamkit's, keep their place
    and end every run: starts, ends and usage keep their order.

    The given events are not changed.
    """
    return join_deltas([*events])
