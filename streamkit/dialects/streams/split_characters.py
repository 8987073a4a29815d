r"""Characters that were cut into two deltas are put together before anybody reads them.

Servers that cut text by its UTF-16 units write an emoji as ``"\ud83d"`` at the end of one delta and ``"\ude00"`` at the
beginning of the next. Neither half is a character, UTF-8 can't hold it, and a decoder can only make U+FFFD of it. So a frame
in which a string ends with a first half is held until a frame has a string in the same *place*: the second half moves into
the held frame, and both are read as if they had been sent so.

A place is the path to a string, with what says on the way whose it is (the index of a choice, a block, a call). A frame that
speaks in such a place of somebody else, a ping, and a chunk of usage may stand between; any other, the end of the input or
too many frames say that the second half does not come, and the first is U+FFFD.

Source: RFC 8259 §8.2; ECMA-262 ``JSON.stringify``, which writes lone halves so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from attrs import define, evolve, field

from streamkit.framing.frame import Frame

Place: TypeAlias = tuple[Any, ...]
#: Frames that may wait for the second half, and their bytes: it comes with the next delta of its place.
HELD_FRAMES: Final = 8
HELD_BYTES: Final = 64 * 1024
#: Members that say whose a string is.
LABELS: Final = (
    "index",
    "output_index",
    "content_index",
    "summary_index",
    "item_id",
    "contentBlockIndex",
    "jsonPath",
    "thought",
)
ESCAPE_BYTES: Final = 6
#: Members whose value, where it is an object, is whole: nothing of it goes on in another frame.
WHOLE: Final = frozenset({"arguments", "args", "input"})
_STRING: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)


class HalfCharacter(Exception):
    """A frame ends in the middle of a character."""

    def __init__(self, held: Held) -> None:
        super().__init__()
        self.held = held


@define
class Held:
    """A frame whose strings end with first halves, and the frames behind it that wait with it."""

    frames: list[Frame]
    #: Where in the first frame each half stands that waits for another.
    waiting: dict[Place, int]
    #: What is to be written in the first frame and in the last: byte, length of what is replaced, replacement.
    edits: list[tuple[int, int, bytes]] = field(factory=list)
    joined: int = 0  #: halves that found each other

    def take(self, frame: Frame) -> list[Frame] | None:
        """The frames that are now to be read; None as long as something is to come."""
        own: list[tuple[int, int, bytes]] = []
        found = _read(frame)
        is_beside = found is None and frame.data.lstrip()[:1] in (b"", b":")  # nothing, or a comment
        if found is not None:
            document, strings = found
            is_beside = self._is_beside(document, strings)
            for place in [place for place in self.waiting if place in strings]:
                if text := json.loads(frame.data[strings[place]]):
                    at, start = self.waiting.pop(place), strings[place].start + 1
                    if "\udc00" <= text[0] <= "\udfff":  # it begins with the half that was waited for
                        self.edits.append((at + ESCAPE_BYTES, 0, frame.data[start : start + ESCAPE_BYTES]))
                        own.append((start, ESCAPE_BYTES, b""))
                        self.joined += 1
        self.frames.append(_edited(frame, own))
        size = sum(len(waiting.data) for waiting in self.frames)
        ends = not self.waiting or not is_beside or len(self.frames) > HELD_FRAMES or size > HELD_BYTES
        return self.give_up() if ends else None

    def give_up(self) -> list[Frame]:
        """The frames as they are now: what still waits stays half."""
        return [_edited(self.frames[0], self.edits), *self.frames[1:]]

    def _is_beside(self, document: Any, strings: dict[Place, slice]) -> bool:
        """Whether a frame says nothing that decides what comes in a place that waits."""
        if document.get("type") == "ping" or document.get("choices") == []:
            return True
        shapes = {_shape(place) for place in self.waiting}
        return any(_shape(place) in shapes for place in strings)


def held_by(frame: Frame) -> Held | None:
    """What is to be held of a frame; None if none of its strings ends with a first half, or if there is no telling."""
    found = _read(frame) if frame.terminated else None  # nothing follows one that is not
    if found is None:
        return None
    waiting = {
        place: string.stop - 1 - ESCAPE_BYTES
        for place, string in found[1].items()
        if "\ud800" <= json.loads(frame.data[string])[-1:] <= "\udbff"
    }
    return Held([frame], waiting) if waiting else None


def _read(frame: Frame) -> tuple[dict[str, Any], dict[Place, slice]] | None:
    """The JSON object of a frame, and where its strings stand; None if it is none."""
    try:
        document = json.loads(frame.data)
        places = list(_places(document, ())) if type(document) is dict else []
    except (ValueError, RecursionError):
        return None
    tokens = list(_STRING.finditer(frame.data))
    if not places or len(places) != len(tokens):  # of a name that came twice, one value is not in the document
        return None
    return document, {
        place: slice(*token.span()) for place, token in zip(places, tokens, strict=True) if place is not None
    }


def _places(value: Any, place: Place | None) -> Iterator[Place | None]:
    """The place of each string in the order of their bytes; None for the name of a member, and inside of a whole value."""
    if type(value) is str:
        yield place
    elif type(value) is dict:
        whose = tuple((name, value[name]) for name in LABELS if type(value.get(name)) in {int, str, bool})
        if place == () and type(value.get("type")) is str:
            whose += (value["type"],)
        for name, item in value.items():
            yield None
            is_whole = place is None or (name in WHOLE and type(item) is dict)
            yield from _places(item, None if is_whole else (*(place or ()), whose, name))
    elif type(value) is list:
        for position, item in enumerate(value):
            has_index = type(item) is dict and type(item.get("index")) is int
            yield from _places(item, None if place is None else (*place, None if has_index else position))


def _shape(place: Place) -> Place:
    """The names on the way to a place."""
    return tuple(step for step in place if type(step) is str)


def _edited(frame: Frame, edits: list[tuple[int, int, bytes]]) -> Frame:
    if not edits:
        return frame
    data = frame.data
    for at, size, new in sorted(edits, reverse=True):
        data = data[:at] + new + data[at + size :]
    return evolve(frame, data=data)
