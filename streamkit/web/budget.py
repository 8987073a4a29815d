"""One memory budget for the bodies of all requests in an application, while they arrive and while they are held.

A request's memory is returned when the request is over. Nearly all of it is returned once the model emits something, since no
other upstream is tried after that. If the budget is full, a client gets 503 with a retry delay before more of its body is
read.

Source: limits.md T8.
"""

from __future__ import annotations

from typing import Final, Self

from aiohttp import web
from attrs import define, field

from streamkit.events import ProviderFailed
from streamkit.limits import MIB
from streamkit.web.refusals import Refused

BODIES_BYTES: Final = 256 * MIB
#: Bytes of each request that are not counted, so that small requests are served even if large ones use up the budget.
UNCOUNTED_BYTES: Final = 64 * 1024
FULL_S: Final = 1.0  #: seconds after which a client may retry (``Retry-After``) if the budget is full


@define(eq=False)
class Budget:
    """The bytes that all requests may hold, and the bytes that they hold now."""

    limit_bytes: int = BODIES_BYTES
    held_bytes: int = 0

    def refuse_beyond(self, size_bytes: int) -> None:
        """Raise Refused if the budget has less than ``size_bytes`` left."""
        if self.held_bytes + size_bytes > self.limit_bytes:
            message = "the gateway has no memory left for more requests; retry later"
            failed = ProviderFailed("unavailable", message, retry_after_s=FULL_S)
            raise Refused(failed, {"Connection": "close"})


@define(eq=False)
class Hold:
    """The bytes that one request holds of a budget. Leaving the ``with`` block returns all of them."""

    budget: Budget = field(factory=Budget)
    _size_bytes: int = 0
    _taken_bytes: int = 0

    def resize(self, size_bytes: int) -> None:
        """Hold ``size_bytes`` from now on. Raises Refused, and changes nothing, if the budget has not enough left."""
        wanted = max(0, size_bytes - UNCOUNTED_BYTES)
        if wanted > self._taken_bytes:
            self.budget.refuse_beyond(wanted - self._taken_bytes)
        self.budget.held_bytes += wanted - self._taken_bytes
        self._size_bytes, self._taken_bytes = size_bytes, wanted

    def add(self, size_bytes: int) -> None:
        self.resize(self._size_bytes + size_bytes)

    def shrink(self, size_bytes: int) -> None:
        """Return memory to the budget until this request holds at most ``size_bytes``."""
        self.resize(min(self._size_bytes, size_bytes))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.resize(0)


#: The key of the budget in an application. Without a budget, the memory for request bodies has no common limit.
BUDGET: Final = web.AppKey("streamkit-budget", Budget)


def hold_in(request: web.Request) -> Hold:
    """Return an empty hold on the budget of the request's application."""
    budget = request.config_dict.get(BUDGET)
    return Hold() if budget is None else Hold(budget)
