"""One budget of bytes for the bodies of all requests of an application, while they arrive and while they are held.

What a request holds is given back when it is over, and nearly all of it as soon as the model spoke: nobody else is asked then.
Where nothing is left a client is told 503 and when to ask again, before more of its body is read.

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
#: Of each request so much is not counted, so that small ones are served while large ones have used the budget up.
UNCOUNTED_BYTES: Final = 64 * 1024
#: Seconds after which a client may ask again.
FULL_S: Final = 1.0


@define(eq=False)
class Budget:
    """What all requests may hold, and what they hold now."""

    limit_bytes: int = BODIES_BYTES
    held_bytes: int = 0

    def refuse_beyond(self, size_bytes: int) -> None:
        """Raise Refused where so much more would not fit."""
        if self.held_bytes + size_bytes > self.limit_bytes:
            message = "the gateway holds as many bytes of requests as it may; ask again"
            failed = ProviderFailed("unavailable", message, retry_after_s=FULL_S)
            raise Refused(failed, {"Connection": "close"})


@define(eq=False)
class Hold:
    """What one request holds of a budget: nothing any more once the ``with`` around it is left."""

    budget: Budget = field(factory=Budget)
    _size_bytes: int = 0
    _taken_bytes: int = 0

    def resize(self, size_bytes: int) -> None:
        """Hold so much from now on. Raises Refused where it is more than is left; what was held stays held."""
        wanted = max(0, size_bytes - UNCOUNTED_BYTES)
        if wanted > self._taken_bytes:
            self.budget.refuse_beyond(wanted - self._taken_bytes)
        self.budget.held_bytes += wanted - self._taken_bytes
        self._size_bytes, self._taken_bytes = size_bytes, wanted

    def add(self, size_bytes: int) -> None:
        self.resize(self._size_bytes + size_bytes)

    def shrink(self, size_bytes: int) -> None:
        """Hold no more than that."""
        self.resize(min(self._size_bytes, size_bytes))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.resize(0)


#: The budget of an application. One that has none reads bodies without.
BUDGET: Final = web.AppKey("streamkit-budget", Budget)


def hold_in(request: web.Request) -> Hold:
    """A hold on the budget of the request's application."""
    budget = request.config_dict.get(BUDGET)
    return Hold() if budget is None else Hold(budget)
