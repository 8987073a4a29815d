"""Which members of an event are read, so that all others are kept: none is passed over without a word (L5).

``Members`` describes an object: the names that a decoder reads or that mean nothing, and the objects in it that have
descriptions of their own. What it does not name is an aside of its dialect: encoders write what has a place, and count
the rest. ``Event`` is the row of one event in a dialect's table ``EVENTS``, which its decoder and its checker share.
"""

from __future__ import annotations

from typing import Any, Final

from attrs import frozen

from streamkit.dialects.members.values import has_value
from streamkit.events import Aside

#: What stands before the path of a member that nobody reads, as the type of an aside.
UNREAD: Final = "unread:"
#: The beginning of the type of an aside that is an unknown event. The wire's name follows, which may be any word: without
#: the beginning it could be a word that decoders make for encoders.
EVENT: Final = "event."


class Members:
    """The members of an object, or of each object of a list. ``inner`` are those with a description of their own."""

    __slots__ = ("inner", "names", "open")

    def __init__(self, *names: str, **inner: Members) -> None:
        self.names = frozenset((*names, *inner))
        self.inner = tuple(inner.items())
        self.open = False

    def also(self, *names: str, **inner: Members) -> Members:
        """The same with more names."""
        more = Members(*self.names, *names, **{**dict(self.inner), **inner})
        more.open = self.open
        return more

    def unread(self, value: Any) -> list[tuple[str, Any]]:
        """The path and the value of each member of ``value`` that is not named and says anything."""
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
    """Return the wire's name of the unknown event that an aside is, as it came; None for any other aside."""
    if aside.kind != "unknown_event" or not aside.type.startswith(EVENT):
        return None
    return aside.type.removeprefix(EVENT)


def kept(*names: str, **inner: Members) -> Members:
    """An object whose unknown members the decoder keeps itself, in extras or in asides that it names."""
    members = Members(*names, **inner)
    members.open = True
    return members


#: Such an object without any more to say of it.
KEPT: Final = kept()


@frozen
class Event:
    """An event of a dialect. Its decoder reads it by the ``method``, and its checker judges it by one of the same name."""

    method: str
    members: Members  #: what the decoder reads of it
    needs: tuple[str, ...] = ()  #: members without which readers refuse it: each is text
