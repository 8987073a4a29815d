"""Calls that are written whole keep the order in which they were mentioned."""

from __future__ import annotations

from streamkit.dialects.streams.whole_call_encoder import CallOrder
from streamkit.events import ToolCallFinished, ToolCallStarted


def started(*calls: int) -> CallOrder:
    order = CallOrder()
    for call in calls:
        order.start(ToolCallStarted(call, f"id_{call}", "look"))
    return order


def finished(order: CallOrder, call: int) -> list[int]:
    event = ToolCallFinished(call, f"id_{call}", "look", "{}", None)
    return [start.call for start, end in order.finish(event) if start.call == end.call]


def test_a_call_waits_for_the_calls_in_front_of_it():
    order = started(0, 1, 2)
    assert finished(order, 2) == []
    assert finished(order, 1) == []
    assert order
    assert finished(order, 0) == [0, 1, 2]
    assert not order


def test_calls_that_end_in_order_wait_for_nothing():
    order = started(4, 7)
    assert [finished(order, 4), finished(order, 7)] == [[4], [7]]


def test_an_end_of_a_call_that_never_started_is_not_written():
    order = started(0)
    assert finished(order, 9) == []
    assert finished(order, 0) == [0]
