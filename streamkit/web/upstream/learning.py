"""Remember which members of requests an upstream refuses, by model, so that later requests leave them out.

``streamkit.translation.refused_members`` reads the refusals, and lists the members that may be left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from streamkit.report import StreamReport
from streamkit.translation.changes import Change

#: Seconds after which a member is sent again: the server, or the model of that name, may accept it by then.
REMEMBERED_S: Final = 3600.0
#: How many models of an upstream are remembered, and the longest name. Limited, because clients choose the models' names.
MODELS, NAME_CHARS = 256, 200
MOST_REFUSED: Final = 2  #: the most members that are left out of one request
REFUSALS: Final = frozenset({400, 422})  #: the statuses of a response that refuses the request itself


class Learnt:
    """The changes that requests to one upstream need. Each is remembered for an hour. ``now`` is the event loop's time."""

    def __init__(self) -> None:
        self._until: dict[str, dict[Change, float]] = {}

    def changes(self, model: str, now: float) -> tuple[Change, ...]:
        """Return the changes for a request to this model."""
        if not self._until:
            return ()
        return tuple(change for change, until in self._until.get(model[:NAME_CHARS], {}).items() if until > now)

    def add(self, model: str, changes: Sequence[Change], now: float) -> None:
        if not changes:
            return
        known = self._until.pop(model[:NAME_CHARS], {})
        if len(self._until) >= MODELS:
            del self._until[next(iter(self._until))]
        new = dict.fromkeys(changes, now + REMEMBERED_S)
        self._until[model[:NAME_CHARS]] = {**{old: until for old, until in known.items() if until > now}, **new}


def left_out(asked: StreamReport) -> list[str]:
    """Return the paths of the members that were left out of a request, because its upstream refuses them."""
    return [path for kind, path in asked.lost if kind == "parameter_refused"]
