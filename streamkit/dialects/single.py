"""One like event alone, as nearly every read brings it: from its bytes to its delta without anything between.

It says what ``Skeleton.read`` and ``Proved.run`` say of many, in the shapes that most streams have; another shape, or anything
odd in a hole, is left to them. The quotes of a string belong to what surrounds it: nothing of a line end can stand about it.

Gain: a sixth of the whole recipe at one event a read.

Source: design.md §9.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import orjson

from streamkit.dialects.skeleton import Kind
from streamkit.events import ReasoningDelta, TextDelta, ToolCallDelta
from streamkit.tool_calls.delta_run import Delta

#: The delta of an event; None if it is not one like event and no more. Raises ValueError where a hole has no JSON.
Reader: TypeAlias = Callable[[bytes], Any]
#: A greater index is left to others.
MOST_INDEX: Final = 31
_QUOTE: Final = ord('"')
loads = orjson.loads


def single_reader(parts: list[bytes], kinds: list[Kind], like: Delta, most: int) -> Reader | None:
    """The reader of events with these ``parts`` around their holes, which mean deltas like ``like``; None for other shapes.

    ``most`` is the greatest index that is read.
    """
    if isinstance(like, ToolCallDelta):
        return _fragment(parts, like, most) if kinds == ["index", "text"] else None
    if kinds == ["text"] and isinstance(like, TextDelta | ReasoningDelta):
        return _text(parts, like)
    if kinds == ["text", "pad"] and isinstance(like, TextDelta | ReasoningDelta):
        return _padded_text(parts, like)
    return None


def _maker(like: TextDelta | ReasoningDelta) -> Callable[[str, int, int], Any]:
    if isinstance(like, TextDelta):
        return TextDelta
    kind = like.kind
    return lambda text, choice, block: ReasoningDelta(text, choice, block, kind)


def _text(parts: list[bytes], like: TextDelta | ReasoningDelta) -> Reader:
    head, tail = parts
    around, make, choice, block = len(head) + len(tail), _maker(like), like.choice, like.block

    def read(event: bytes) -> Any:
        hole = event.removeprefix(head).removesuffix(tail)  # half of the time of asking and cutting
        size = len(hole)
        if size > 2 and size == len(event) - around and hole[0] == _QUOTE == hole[-1]:
            return make(loads(hole), choice, block)
        return None

    return read


def _padded_text(parts: list[bytes], like: TextDelta | ReasoningDelta) -> Reader:
    head, middle, tail = parts[0], b'"' + parts[1] + b'"', b'"' + parts[2]
    around, make, choice, block = len(head) + len(tail), _maker(like), like.choice, like.block

    def read(event: bytes) -> Any:
        holes = event.removeprefix(head).removesuffix(tail)
        if len(holes) != len(event) - around:
            return None
        text, _, padding = holes.partition(middle)
        if padding.isalnum() and len(text) > 1 and text[0] == _QUOTE:  # other padding would have to be parsed
            return make(loads(text + b'"'), choice, block)
        return None

    return read


def _fragment(parts: list[bytes], like: ToolCallDelta, most: int) -> Reader:
    head, middle, tail = parts
    around, choice, kind = len(head) + len(tail), like.choice, like.kind
    indices = {b"%d" % index: index for index in range(min(most, MOST_INDEX) + 1)}

    def read(event: bytes) -> Any:
        holes = event.removeprefix(head).removesuffix(tail)
        if len(holes) != len(event) - around:
            return None
        label, _, text = holes.partition(middle)
        index = indices.get(label)
        if index is not None and len(text) > 2 and text[0] == _QUOTE == text[-1]:
            return ToolCallDelta(index, None, None, loads(text), choice, kind)
        return None

    return read
