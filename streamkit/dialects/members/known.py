"""Which members of an event a decoder reads. All other members are kept, so that none is dropped silently (law L5).

``Members`` describes an object: the names that a decoder reads or that have no meaning, and the inner objects with their own
descriptions. Other members become asides of the dialect: encoders write those that have a place, and count the rest as lost.
``Event`` is the row of one event in a dialect's table ``EVENTS``, which its decoder and its checker share.
"""

from __future__ import annotations

from typing import Any, Final

from attrs import frozen

from streamkit.dialects.members.values import has_value
from streamkit.events import Aside

UNREAD: Final = "unread:"  #: The beginning of the type of an aside for an unread member. The member's path follows.
#: The beginning of the type of an aside for an unknown event. The event's name follows. Without this prefix, the name could
#: equal a type that decoders use for encoders.
EVENT: Final = "event."


class Members:
    """The members of an object, or of each object of a list. ``inner`` are members with their own descriptions."""

    __slots__ = ("inner", "names", "open")

    def __init__(self, *names: str, **inner: Members) -> None:
        self.names = frozenset((*names, *inner))
        self.inner = tuple(inner.items())
        self.open = False

    def also(self, *names: str, **inner: Members) -> Members:
        """Return a copy of this description with additional names."""
        more = Members(*self.names, *names, **{**dict(self.inner), **inner})
        more.open = self.open
        return more

    def unread(self, value: Any) -> list[tuple[str, Any]]:
        """Return the path and value of each member of ``value`` that is not named here and is not empty."""
        if type(value) is list:
            return [found for each in value for found in self.unread(each)]
        unread: list[tuple[str, Any]] = []
        if type(value) is dict:
            if not self.open and not value.keys() <= self.names:
                unread += [each for each in value.items() if each[0] not in self.names and has_value(each[1])]
            for name, members in self.inner:
                if found := value.get(name):
                    unread += [(f"{name}.{path}", member) for path, member in members.unread(found)]
        return unread


def unknown_event(aside: Aside) -> str | None:
    """Return the original name of an unknown event, from its aside; None for any other aside."""
    if aside.kind != "unknown_event" or not aside.type.startswith(EVENT):
        return None
    return aside.type.removeprefix(EVENT)


def kept(*names: str, **inner: Members) -> Members:
    """Return a description of an object whose unknown members the decoder itself keeps, in extras or in its own asides."""
    members = Members(*names, **inner)
    members.open = True
    return members


KEPT: Final = kept()  #: Describes an object of which no member is known, and all members are kept.


@frozen
class Event:
    """An event of a dialect. ``method`` names the method of the decoder, and of the checker, that handles it."""

    method: str
    members: Members  #: the members that the decoder reads
    needs: tuple[str, ...] = ()  #: text members without which readers refuse the event
