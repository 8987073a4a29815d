r"""Frames that differ in a few JSON strings only, read without parsing the rest of them again.

Most frames of a stream are alike but for the text they bring. A **template** is the bytes around these **holes**, those of
the framing included::

    data: {"id":"c1","choices":[{"index":0,"delta":{"content":|" the"|},"finish_reason":null}]}\n\n

Bytes that are template, JSON string, template are the same document with another string in it: JSON is deterministic, so the
match proves it. The holes of a read are parsed together, as one array. A **mark** of white space stands between its items, and
another in the place of each part between two holes of an event: raw in a string it is no JSON, so that no hole can reach into
the next. The marks must be there in the order of the parts, and as many items as holes, each a string or a number.

What a document means is not said here: a template is learned, and forgotten, where the decoder is (``probe.py``).

Source: design.md §9; RFC 8259 §2, §7.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

import orjson

#: What stands in a hole: text of the delta; the index of a call; padding that means nothing, a string or a whole number; an
#: object of token counts, which is read one by one (``single_event.py``).
Kind: TypeAlias = Literal["text", "index", "pad", "number", "usage"]
STRINGS: frozenset[Kind] = frozenset({"text", "pad"})
#: From so many events in a text on, the way of cutting that is made for many pays.
_MANY = 4
#: The mark between two events. Those between holes end with CR; none of them begins another.
_MARK = b"\t"
_NO_MARKS = bytes(set(range(256)) - set(b"\t\r\n"))


class Template:
    """The bytes of one event around its holes: of ``parts`` there is one more than of ``kinds``, which name the holes.

    Only if the last part has a line end, events can be cut out of text.
    """

    __slots__ = (
        "_at", "_between", "_break", "_ends", "_head", "_hole", "_kinds", "_last", "_marked", "_marks", "_mids", "_tail",
        "size",
    )  # fmt: skip

    def __init__(self, parts: list[bytes], kinds: list[Kind]) -> None:
        self._head, *self._mids, self._tail = parts
        self._kinds = kinds
        self._between = self._tail + self._head
        #: Bytes of an event without what is in its holes.
        self.size = sum(map(len, parts))
        #: The mark of each part between holes, and all marks of an event in their order.
        self._marked = [(mid, b"," + b"\n" * number + b"\r") for number, mid in enumerate(self._mids)]
        self._marks = b"".join(mark[1:] for _, mark in self._marked) + _MARK
        #: The first line end behind the holes: an offset in the tail.
        self._break = self._tail.find(b"\n")
        self._last = len(self._tail) - self._break  # bytes from there to the end
        # An event in lines: how many they are, which of them has the holes, and where.
        self._ends = self._between.count(b"\n")
        self._at = self._head.count(b"\n")
        self._hole = slice(len(self._head) - self._head.rfind(b"\n") - 1, -self._break)

    def begins(self, text: bytes) -> bool:
        """Whether ``text`` may be the beginning of such an event."""
        return text.startswith(self._head) or self._head.startswith(text)

    def end(self, text: bytes, start: int) -> int:
        """Where an event that begins at ``start`` would end; nothing of it is looked at but its line end. 0 if it has none."""
        line_end = text.find(b"\n", start + len(self._head))
        return line_end + self._last if line_end >= 0 else 0

    def read(self, text: bytes) -> tuple[list[list[Any]], int]:
        """The whole events that ``text`` begins with: the values in their holes, a list for each hole, and the size of all.

        The size is 0 if it begins with none.
        """
        if not text.startswith(self._head):
            return [], 0
        found = self._cut_many(text) if len(text) > _MANY * len(self._between) else None
        return self._values(*(found or self._cut(text)))

    def read_payloads(self, payloads: Iterable[bytes]) -> tuple[list[list[Any]], int]:
        """The same of the payloads of frames. None is taken behind the first that is another."""
        head, tail, least = self._head, self._tail, len(self._between)
        holes = []
        for payload in payloads:
            if len(payload) < least or not (payload.startswith(head) and payload.endswith(tail)):
                break
            holes.append(payload[len(head) : len(payload) - len(tail)])
        return self._values(holes, sum(map(len, holes)) + len(holes) * least)

    def _values(self, holes: list[bytes], size: int) -> tuple[list[list[Any]], int]:
        """What is in ``holes``, as far as it is good; events of so many bytes have them."""
        if (columns := self._columns(holes)) is not None:
            return columns, size
        good, bad = 0, len(holes)  # so many from the first are good, so many are not
        while bad - good > 1:
            middle = (good + bad) // 2
            if (some := self._columns(holes[:middle])) is None:
                bad = middle
            else:
                good, columns = middle, some
        return columns or [], sum(map(len, holes[:good])) + good * len(self._between)

    def _columns(self, holes: list[bytes]) -> list[list[Any]] | None:
        """The values in each of the holes of these events; None if one of them has another kind of value, or none."""
        if not holes:
            return None
        flat = (b"," + _MARK).join(holes)
        if b"\r" in flat or b"\n" in flat:  # white space for JSON; here a mark, and for an event stream a line end
            return None
        if self._marked:  # all at once: a sixth of the time of cutting one hole after the other
            for mid, mark in self._marked:
                flat = flat.replace(mid, mark)
            if flat.translate(None, _NO_MARKS) + _MARK != self._marks * len(holes):
                return None
        try:
            values = orjson.loads(b"[%b]" % flat)
            width = len(self._kinds)
            if len(values) != width * len(holes):
                return None
            columns = [values[number::width] for number in range(width)]
            return columns if all(map(_are, columns, self._kinds)) else None
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
        """The same in a few passes over the bytes, a quarter of the time; None if there is anything else between the events.

        Lines are cut as if all were well, and put together again: if that gives the text, all was well.
        """
        size = text.rfind(self._tail) + len(self._tail)
        text = text[:size]
        lines = text.split(b"\n")
        holes = [line[self._hole] for line in lines[self._at : -1 : self._ends]]
        whole = self._head + self._between.join(holes) + self._tail
        return (holes, size) if whole == text else None


def _are(values: list[Any], kind: Kind) -> bool:
    """Whether all ``values`` are of this kind. Raises TypeError for some that are not."""
    if kind in STRINGS:
        "".join(values)
        return kind == "pad" or "" not in values  # decoders take empty text for none
    return set(map(type, values)) == {int}
