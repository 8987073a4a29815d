r"""Join characters that were split between two deltas, before the deltas are decoded.

Servers that split text by UTF-16 units write an emoji as ``"\ud83d"`` at the end of one delta and ``"\ude00"`` at the
beginning of the next. Neither half is a character, UTF-8 cannot encode it, and a decoder can only turn it into U+FFFD. So a
frame with a string that ends with a first half is held until a frame has a string in the same *place*. The second half is
moved into the held frame, and then both frames are read.

A place is the path to a string, together with labels on the way (the index of a choice, a block, a call). Some frames may
come between the halves: one with a string at the same path under other labels, a ping, and a chunk of usage. Any other frame,
the end of the input, or too many frames mean that there is no second half; then the first half becomes U+FFFD.

Source: RFC 8259 §8.2; ECMA-262 ``JSON.stringify``, which writes half a character as an escape like these.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from attrs import define, evolve, field

from streamkit.framing.frame import Frame

Place: TypeAlias = tuple[Any, ...]
#: The most frames, and bytes, that may wait for a second half. It is normally in the next delta of the same place.
HELD_FRAMES: Final = 8
HELD_BYTES: Final = 64 * 1024
#: Members that distinguish strings at the same path.
LABELS: Final = (
    "index", "output_index", "content_index", "summary_index", "item_id", "contentBlockIndex", "jsonPath", "thought",
)  # fmt: skip
ESCAPE_BYTES: Final = 6
#: Members whose value, if it is an object, is never continued in another frame.
WHOLE: Final = frozenset({"arguments", "args", "input"})
_STRING: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)


class HalfCharacter(Exception):
    """Raised for a frame that ends in the middle of a character."""

    def __init__(self, held: Held) -> None:
        super().__init__()
        self.held = held


@define
class Held:
    """A held frame, which has strings that end with first halves, and the later frames that wait with it."""

    frames: list[Frame]
    waiting: dict[Place, int]  #: the byte position, in the first frame, of each first half
    #: Changes to make in the first frame: byte position, number of bytes to replace, replacement.
    edits: list[tuple[int, int, bytes]] = field(factory=list)
    joined: int = 0  #: number of joined characters

    def take(self, frame: Frame) -> list[Frame] | None:
        """Add a frame. Return all frames if they can be read now; None if more must follow."""
        own: list[tuple[int, int, bytes]] = []
        found = _read(frame)
        is_between = found is None and frame.data.lstrip()[:1] in (b"", b":")  # empty, or a comment
        if found is not None:
            document, strings = found
            is_between = self._may_precede(document, strings)
            for place in [place for place in self.waiting if place in strings]:
                if text := json.loads(frame.data[strings[place]]):
                    at, start = self.waiting.pop(place), strings[place].start + 1
                    if "\udc00" <= text[0] <= "\udfff":  # the text begins with the second half
                        self.edits.append((at + ESCAPE_BYTES, 0, frame.data[start : start + ESCAPE_BYTES]))
                        own.append((start, ESCAPE_BYTES, b""))
                        self.joined += 1
        self.frames.append(_edited(frame, own))
        size = sum(len(waiting.data) for waiting in self.frames)
        ends = not self.waiting or not is_between or len(self.frames) > HELD_FRAMES or size > HELD_BYTES
        return self.give_up() if ends else None

    def give_up(self) -> list[Frame]:
        """Return the held frames with the joined characters. A first half that found no second half is unchanged."""
        return [_edited(self.frames[0], self.edits), *self.frames[1:]]

    def _may_precede(self, document: Any, strings: dict[Place, slice]) -> bool:
        """Return whether the second half may follow this frame: a ping, a frame without choices, or one with the same path."""
        if document.get("type") == "ping" or document.get("choices") == []:
            return True
        shapes = {_shape(place) for place in self.waiting}
        return any(_shape(place) in shapes for place in strings)


def held_by(frame: Frame) -> Held | None:
    """Return the frame as held, if one of its strings ends with a first half; otherwise, or if that is undecidable, None."""
    found = _read(frame) if frame.terminated else None  # nothing follows an unterminated frame
    if found is None:
        return None
    waiting = {
        place: string.stop - 1 - ESCAPE_BYTES
        for place, string in found[1].items()
        if "\ud800" <= json.loads(frame.data[string])[-1:] <= "\udbff"
    }
    return Held([frame], waiting) if waiting else None


def _read(frame: Frame) -> tuple[dict[str, Any], dict[Place, slice]] | None:
    """Return the JSON object of a frame and the positions of its strings; None if it is not an object."""
    try:
        document = json.loads(frame.data)
        places = list(_places(document, ())) if type(document) is dict else []
    except (ValueError, RecursionError):
        return None
    tokens = list(_STRING.finditer(frame.data))
    if not places or len(places) != len(tokens):  # a member name is repeated, so the document lacks one of the strings
        return None
    return document, {
        place: slice(*token.span()) for place, token in zip(places, tokens, strict=True) if place is not None
    }


def _places(value: Any, place: Place | None) -> Iterator[Place | None]:
    """Yield the place of each string in byte order; None for the name of a member, and inside of a value that is whole."""
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
    """Return the member names on the path to a place."""
    return tuple(step for step in place if type(step) is str)


def _edited(frame: Frame, edits: list[tuple[int, int, bytes]]) -> Frame:
    if not edits:
        return frame
    data = frame.data
    for at, size, new in sorted(edits, reverse=True):
        data = data[:at] + new + data[at + size :]
    return evolve(frame, data=data)
