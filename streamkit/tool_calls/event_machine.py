"""What machines share that hand each event on at once: nothing is left to say at the end."""

from __future__ import annotations

from typing import Any


class EventMachine:
    """A machine that takes ``list[Event]``, gives what comes of it, and holds nothing back."""

    fault: Exception | None = None

    def finish(self) -> list[Any]:
        return []

    def abandon(self) -> list[Any]:
        return []
