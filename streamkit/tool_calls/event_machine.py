"""What the stages between ``decode`` and ``encode`` share: they take and give one kind of events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from streamkit.pipeline import Flow, Machine, Stage
from streamkit.report import StreamReport

E = TypeVar("E")


class EventMachine:
    """A machine from ``list[Event]`` to ``list[Event]`` that holds nothing back."""

    fault: Exception | None = None

    def finish(self) -> list[Any]:
        return []

    def abandon(self) -> list[Any]:
        return []


def stage_within(
    flow: Flow, name: str, make: Callable[[StreamReport], Machine[list[E], list[E]]]
) -> Stage[list[E], list[E]]:
    """The stage of machines that take and give the same ``flow``."""
    return Stage(name, make, takes=flow, gives=flow)
