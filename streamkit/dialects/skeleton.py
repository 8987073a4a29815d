r"""Frames that differ in a few JSON strings only, read without parsing the rest of them again.

Most frames of a stream are alike but for the text they bring. A **skeleton** is the bytes around these **holes**, those of
the framing included::

    data: {"id":"c1","choices":[{"index":0,"delta":{"content":|" the"|},"finish_reason":null}]}\n\n

Bytes that are skeleton, JSON string, skeleton are the same document with another string in it: JSON is deterministic, so the
match proves it. The holes of a read are parsed together, as one array. A tab stands between its items: raw in a string it is
no JSON, so that no hole can reach into the next, and there must be as many items as holes.

What a document means is not said here: a skeleton is proved, and forgotten, where the decoder is (``run_reader.py``).

Source: design.md §9; RFC 8259 §2, §7.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import orjson

#: What stands in a hole: text of the delta; the index of a call; padding that means nothing, a string or a whole number.
Kind: TypeAlias = Literal["text", "index", "pad", "number"]
STRINGS: frozenset[Kind] = frozenset({"text", "pad"})
#: From so many events in a text on, the way of cutting that is made for many pays.
_MANY = 4
_QUOTE = b'"'


class Skeleton:
    """The bytes of one event around its holes: of ``parts`` there is one more than of ``kinds``, which name the holes.

    The last part has a line end.
    """

    __slots__ = ("_at", "_between", "_break", "_ends", "_head", "_hole", "_kinds", "_mids", "_size", "_steps", "_tail")

    def __init__(self, parts: list[bytes], kinds: list[Kind]) -> None:
        self._head, *self._mids, self._tail = parts
        self._kinds = kinds
        self._size = len(self._head)
        #: What ends each hole but the last, and what the hole is.
        self._steps = list(zip([*self._mids, b""], kinds, strict=True))
        self._between = self._tail + self._head
        #: The first line end behind the holes: an offset in the tail.
        self._break = self._tail.index(b"\n")
        # An event in lines: how many they are, which of them has the holes, and where.
        self._ends = self._between.count(b"\n")
        self._at = self._head.count(b"\n")
        self._hole = slice(len(self._head) - self._head.rfind(b"\n") - 1, -self._break)

    def begins(self, text: bytes) -> bool:
        """Whether ``text`` may be the beginning of such an event."""
        return text.startswith(self._head) or self._head.startswith(text)

    def read_one(self, text: bytes) -> list[Any] | None:
        """The values in the holes of ``text``, if it is one whole event and no more; else None. Raises ValueError for no JSON.

        Padding of nothing but letters and digits is not parsed.

        Gain: a fifth of the whole recipe at one event a read.
        """
        if not (text.startswith(self._head) and text.endswith(self._tail)):
            return None
        hole = text[self._size : -len(self._tail)]
        if not self._mids:  # as below, for text alone
            if hole[:1] != _QUOTE or hole[-1:] != _QUOTE or len(hole) < 3:
                return None
            return [orjson.loads(hole)]
        values: list[Any] = []
        for mid, kind in self._steps:
            if mid:
                item, _, hole = hole.partition(mid)
            else:
                item = hole
            if kind in STRINGS:  # a string that ends where its hole does has no line end about it
                if item[:1] != _QUOTE or item[-1:] != _QUOTE or len(item) < 3:
                    return None
                values.append("" if kind == "pad" and item[1:-1].isalnum() else orjson.loads(item))
            elif item.isdigit():
                values.append(orjson.loads(item))
            else:
                return None
        return values

    def read(self, text: bytes) -> tuple[list[list[Any]], int, bool] | None:
        """The whole events that ``text`` begins with: the values in their holes, a list for each hole; the size of all; and
        whether the next is like them but for what is in a hole: no JSON, or of another kind.

        None if it begins with none.
        """
        if not text.startswith(self._head):
            return None
        found = self._cut_many(text) if len(text) > _MANY * len(self._between) else None
        holes, size = found or self._cut(text)
        if (columns := self._columns(holes)) is not None:
            return columns, size, False
        good, bad = 0, len(holes)  # so many from the first are good, so many are not
        while bad - good > 1:
            middle = (good + bad) // 2
            if (some := self._columns(holes[:middle])) is None:
                bad = middle
            else:
                good, columns = middle, some
        size = sum(map(len, holes[:good])) + good * len(self._between)
        return columns or [[] for _ in self._kinds], size, bool(holes)

    def _columns(self, holes: list[bytes]) -> list[list[Any]] | None:
        """The values in each of the holes of these events; None if one of them has another kind of value, or none."""
        if not holes:
            return None
        columns = []
        try:
            for mid in self._mids:
                pairs = [hole.split(mid, 1) for hole in holes]
                columns.append([before for before, _ in pairs])
                holes = [after for _, after in pairs]
            columns.append(holes)
            return list(map(_values, columns, self._kinds))
        except (ValueError, TypeError):
            return None

    def _cut(self, text: bytes) -> tuple[list[bytes], int]:
        """What is in the holes of each event, and the size of all events: one after the other, up to what is none."""
        found: list[bytes] = []
        tail, head, width, ends = self._tail, self._head, self._break, 0
        begin = len(head)
        while (end := text.find(b"\n", begin) - width) >= begin and text.startswith(tail, end):
            found.append(text[begin:end])
            ends = end + len(tail)
            if not text.startswith(head, ends):
                break
            begin = ends + len(head)
        return found, ends

    def _cut_many(self, text: bytes) -> tuple[list[bytes], int] | None:
        """The same in two passes over the bytes, a third of the time; None if there is anything else between the events.

        Between two events stand all line ends of one. So if there are as many of these places as events but one, and no line
        end beyond theirs, there is none in a hole, and nothing else between.
        """
        size = text.rfind(self._tail) + len(self._tail)
        text = text[:size]
        lines = text.split(b"\n")
        count, more = divmod(len(lines) - 1, self._ends)
        if more or not count or text.count(self._between) != count - 1:
            return None
        return [line[self._hole] for line in lines[self._at : -1 : self._ends]], size


def _values(holes: list[bytes], kind: Kind) -> list[Any]:
    """The JSON values in ``holes``. Raises ValueError or TypeError if one is empty, or none of its kind."""
    joined = b",\t".join(holes)
    if b"\r" in joined:  # white space for JSON, and a line end for an event stream
        raise ValueError("a line end in a hole")
    values: list[Any] = orjson.loads(b"[%b]" % joined)
    if len(values) != len(holes):
        raise ValueError("another number of values than of holes")
    if kind in STRINGS:
        "".join(values)  # raises TypeError
        if "" in values:
            raise ValueError("an empty string, which decoders take for none")
    elif set(map(type, values)) != {int}:
        raise TypeError("a number that is no whole one")
    return values
