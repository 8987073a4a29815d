"""Change a text that arrives in pieces, as if it were changed whole.

A window holds back the end of the text, because a change there may depend on text that has not arrived. If a change depends on
at most ``hold`` characters, the text before the last ``hold`` characters can be released, up to a place where the text can be
split: where ``change(before) + change(after)`` is the change of all text so far. So the released text is ``change`` of the
whole text, wherever the pieces were cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from streamkit.errors import UsageError, blame
from streamkit.pipeline import discard
from streamkit.text.quoting import name_of

#: Returns the changed text.
Change: TypeAlias = Callable[[str], str]
#: The released text is kept up to this many times ``hold``, since a change may look at the text before it.
CONTEXT = 2


class Window:
    """The end of one text, and the items that arrived within it. At most ``hold`` characters wait after each piece."""

    blocked: str | None = None  #: why the text may not continue (``GuardWindow``)

    def __init__(self, change: Change, hold: int) -> None:
        self._change = change
        self._hold = hold
        self._text = ""  # the released text that is kept, then the waiting text
        self._released = 0  # characters of ``_text`` that are released
        self._sent = 0  # characters of its change that were yielded
        self._marks: list[tuple[int, object]] = []  # items, each with its place in ``_text``
        self.changed = False  #: whether a released text differs from the received one

    def feed(self, text: str) -> Iterator[object]:
        """Take a piece of the text. Yield the released texts and items in their order."""
        self._text += text
        return self._release(len(self._text) - self._hold)

    def mark(self, item: object) -> bool:
        """Keep an item in its place within the waiting text. Return False if no text waits."""
        if len(self._text) > self._released:
            self._marks.append((len(self._text), item))
            return True
        return False

    def end(self) -> Iterator[object]:
        """End the text: yield the rest of it."""
        return self._release(len(self._text))

    def take(self) -> str:
        """Remove the waiting text, and return it as it was received."""
        waiting, self._text = self._text[self._released :], self._text[: self._released]
        return waiting

    def _release(self, place: int) -> Iterator[object]:
        """Yield the change of the text up to the first place from ``place`` on where it is final."""
        if place <= self._released:
            return
        whole = self._changed(self._text)
        while self._marks and self._marks[0][0] <= place:
            yield from self._up_to(self._marks[0][0], whole)
            yield self._marks.pop(0)[1]
        yield from self._up_to(place, whole)
        while self._marks and self._marks[0][0] <= self._released:
            yield self._marks.pop(0)[1]
        if self._released > CONTEXT * self._hold:
            self._forget(whole)

    def _up_to(self, place: int, whole: str) -> Iterator[str]:
        if place <= self._released:
            return
        text = self._text
        unchanged = whole == text and self._changed(text[place:]) == text[place:]  # the usual case
        before = text[:place] if unchanged else self._changed(text[:place])
        while place < len(text) and before + self._changed(text[place:]) != whole:
            place += 1
            before = self._changed(text[:place])
        after = before[self._sent :]
        self.changed |= after != text[self._released : place]
        self._released, self._sent = place, len(before)
        if after:
            yield after

    def _forget(self, whole: str) -> None:
        """Forget released text where it may be split without another change, except the last ``hold`` characters of it.

        A change that depends on more text (all of a run of spaces) may allow no such place. It then sees only these.
        """
        last = self._released - self._hold
        for place in range(last, max(last - self._hold, 1) - 1, -1):
            before = self._changed(self._text[:place])
            if before + self._changed(self._text[place:]) == whole:
                self._sent -= len(before)
                self._drop(place)
                return
        self._drop(last)
        self._sent = len(self._changed(self._text[: self._released]))

    def _drop(self, place: int) -> None:
        """Drop the released text before ``place``."""
        self._text = self._text[place:]
        self._released -= place
        self._marks = [(at - place, item) for at, item in self._marks]

    def _changed(self, text: str) -> str:
        """Return the changed text. Raises UsageError if the function returns something else."""
        try:
            after: Any = self._change(text) if text else ""
        except Exception as error:
            blame(error, f"map_text({name_of(self._change)})")
            raise
        if not isinstance(after, str):
            raise self._no_text(after)
        return after

    def _no_text(self, after: object) -> UsageError:
        discard(after)
        name = name_of(self._change)
        error = UsageError(f"{name} returned {type(after).__name__}; a function that changes text must return a str")
        blame(error, f"map_text({name})")
        return error
