"""One like event alone, as nearly every read brings it: from its bytes to what it says without anything between.

It says what ``Template.read`` and ``LearnedTemplate.run`` say of many, in the shapes that most streams have; another shape, or
anything unusual in a hole, is left to them. The quotes of a string belong to what surrounds it: no line end can stand there.

Gain: a sixth of the whole recipe at one event a read.

Source: design.md §9.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, TypeAlias

import orjson

from streamkit.dialects.fast_path.template import Kind
from streamkit.events import ReasoningDelta, TextDelta, ToolCallDelta
from streamkit.tool_calls.delta_run import Delta

#: What an event says: a delta, and its usage if there is a hole with token counts. None if it is not one like event and no
#: more. Raises ValueError where a hole has no JSON.
Reader: TypeAlias = Callable[[bytes], list[Any] | None]
#: A delta of its text, and the index of its call if there is a hole with it.
Maker: TypeAlias = Callable[[str, int | None], Any]
#: A greater index is left to others.
MOST_INDEX: Final = 31
_QUOTE: Final = ord('"')
_ZERO: Final = ord("0")
loads = orjson.loads


def single_reader(
    parts: list[bytes], kinds: list[Kind], like: Delta, most: int, usage: Callable[[dict[str, Any]], Any]
) -> Reader:
    """The reader of events with these ``parts`` around their holes, which mean deltas like ``like``.

    ``most`` is the greatest index that is read, ``usage`` says what token counts mean.
    """
    if not isinstance(like, TextDelta | ReasoningDelta | ToolCallDelta) or kinds.count("text") != 1:
        return lambda _event: None
    if kinds == ["text"]:
        return _text(parts, _maker(like))
    if kinds == ["index", "text"] and isinstance(like, ToolCallDelta):
        return _fragment(parts, like, most)
    return _text_among_others(parts, kinds, _maker(like), most, usage)


def _maker(like: TextDelta | ReasoningDelta | ToolCallDelta) -> Maker:
    choice = like.choice
    if isinstance(like, TextDelta):
        block = like.block
        return lambda text, _index: TextDelta(text, choice, block)
    if isinstance(like, ReasoningDelta):
        return lambda text, _index: ReasoningDelta(text, choice, like.block, like.kind)
    kind, label = like.kind, like.index
    return lambda text, index: ToolCallDelta(label if index is None else index, None, None, text, choice, kind)


def _text(parts: list[bytes], make: Maker) -> Reader:
    head, tail = parts
    around = len(head) + len(tail)

    def read(event: bytes) -> list[Any] | None:
        hole = event.removeprefix(head).removesuffix(tail)  # half of the time of asking and cutting
        size = len(hole)
        if size > 2 and size == len(event) - around and hole[0] == _QUOTE == hole[-1]:
            return [make(loads(hole), None)]
        return None

    return read


def _fragment(parts: list[bytes], like: ToolCallDelta, most: int) -> Reader:
    head, middle, tail = parts
    around, choice, kind, indices = len(head) + len(tail), like.choice, like.kind, _indices(most)

    def read(event: bytes) -> list[Any] | None:
        holes = event.removeprefix(head).removesuffix(tail)
        if len(holes) != len(event) - around:
            return None
        label, _, text = holes.partition(middle)
        index = indices.get(label)
        if index is not None and len(text) > 2 and text[0] == _QUOTE == text[-1]:
            return [ToolCallDelta(index, None, None, loads(text), choice, kind)]
        return None

    return read


def _text_among_others(
    parts: list[bytes], kinds: list[Kind], make: Maker, most: int, usage: Callable[[dict[str, Any]], Any]
) -> Reader:
    """Beside an index, token counts and padding: strings of letters and digits, and numbers. Other padding would have to be
    parsed.
    """
    parts = list(parts)
    for number, kind in enumerate(kinds):
        if kind == "pad":  # its quotes belong to what surrounds it
            parts[number] += b'"'
            parts[number + 1] = b'"' + parts[number + 1]
    head, *behind = parts
    holes = list(zip(behind, kinds, strict=True))
    has_counts = "usage" in kinds
    indices = _indices(most)

    def read(event: bytes) -> list[Any] | None:
        rest = event.removeprefix(head)
        if len(rest) == len(event):
            return None
        text = counts = found = b""
        index = None
        for part, kind in holes:
            item, found, rest = rest.partition(part)
            if kind == "text":
                text = item
            elif kind == "usage":
                counts = item
            elif kind == "index":
                if (index := indices.get(item)) is None:
                    return None
            elif (item and not item.isalnum()) or (kind == "number" and (not item.isdigit() or item[0] == _ZERO)):
                return None
        if not found or rest or len(text) < 3 or not text[0] == _QUOTE == text[-1]:
            return None
        delta = make(loads(text), index)
        if not has_counts:
            return [delta]
        if b"\n" in counts or b"\r" in counts:  # white space for JSON, and a line end for an event stream
            return None
        raw = loads(counts)
        return [delta, usage(raw)] if type(raw) is dict and raw else None

    return read


@lru_cache(maxsize=8)  # one for all streams: it takes 3 KiB
def _indices(most: int) -> Mapping[bytes, int]:
    return {b"%d" % index: index for index in range(min(most, MOST_INDEX) + 1)}
