"""The normal form in which law L1 compares events.

How a network cut the bytes must not be seen in the events, but it may be seen in how much text one event carries: what
one read brought of one block may leave as one delta. So two lists of events say the same if they are equal once deltas
are joined.

Source: design.md §1 (L1), §9 ("Joining").
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from streamkit.tool_calls.joining import join_deltas


def joined(events: Iterable[Any]) -> list[Any]:
    """``events`` with adjacent deltas joined: equal lists mean equal streams, however they were cut into reads.

    Text, refusal and reasoning: neighbours become one if they are of one class and agree in choice, block and kind; another
    block or choice in between separates them, because order between blocks is part of the stream. Argument fragments: in
    a run with nothing but fragments between them, those of one call become one, in the place of the first; inside a
    read they may be regrouped, so their order across calls says nothing. Every other event, and each event of a class
    that is not streamkit's, stays where it is and ends every run: starts, ends and usage keep their order.

    The given events are not changed.
    """
    return join_deltas([*events])
