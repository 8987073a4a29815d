"""Add an ``id:`` to each event of an event stream: the cursor after the event, which a client sends back to resume.

The id is the last line of its event, so it wins if the event already has one. An event without data gets no id, and no event
consists of an id only: openai-python and others parse every event as JSON (resume.md §4.1, measured).

Source: resume.md §4.1, §4.2, §5; WHATWG HTML §9.2.
"""

from __future__ import annotations

import re
from typing import Final

#: Matches the end of an event: a line end (LF, CR or CRLF) and the blank line after it.
_EVENT_END: Final = re.compile(rb"(?>\r\n|\n|\r)(\r\n|\n|\r)")
_ENDS_AN_EVENT: Final = re.compile(_EVENT_END.pattern + rb"\Z")
_DATA: Final = re.compile(rb"(?:\A|[\r\n])data(?=[:\r\n])")
_LINE_ENDS: Final = b"\r\n"


class EventIDs:
    """Adds event ids to the bytes of a log, in pieces of any size. It holds an incomplete event until the event ends.

    ``offset`` is the position of the first byte. ``inside``: this byte is inside an event, which then gets no id.
    """

    def __init__(self, log_id: str, offset: int = 0, *, inside: bool = False) -> None:
        self.fault: Exception | None = None
        self._line = b"id: %b." % log_id.encode()  # the `id:` line of an event, without the offset and line end
        self._offset = offset
        self._inside = inside
        self._held = bytearray()
        self._looked = 0  # how many of the held bytes were already searched for the end of an event

    def feed(self, data: bytes, /) -> bytes:
        if not self._held and not self._inside:
            # A fast path for one event as encoders write it: a data line, perhaps after an event line. It takes a fifth of the
            # time of the search below. Searching for one byte takes a third of the time of searching for two.
            size = len(data)
            begin = data.find(b"\n") + 1 if data.startswith(b"event: ") else 0
            is_a_line = data.startswith(b"data: ", begin) and data.find(b"\n", begin) == size - 2
            if is_a_line and data.endswith(b"\n") and data.find(b"\r") < 0:
                self._offset += size
                return b"%b%b%d\n\n" % (data[:-1], self._line, self._offset)
        self._held += data
        written = bytearray()
        begin = 0
        while (end := _EVENT_END.search(self._held, max(begin, self._looked))) is not None:
            if end.end() == len(self._held) and self._held.endswith(b"\r"):
                break  # a CR at the end of the held bytes may be half of a CRLF
            event = bytes(self._held[begin : end.end()])
            self._offset += len(event)
            written += self._with_id(event, end[1])
            begin = end.end()
        del self._held[:begin]
        self._looked = max(0, len(self._held) - 3)
        return bytes(written)

    def finish(self) -> bytes:
        """Return the held bytes unchanged."""
        rest = bytes(self._held)
        self._held.clear()
        self._offset += len(rest)
        return rest

    def abandon(self) -> bytes:
        return self.finish()

    def _with_id(self, event: bytes, line_end: bytes) -> bytes:
        if self._inside or _DATA.search(event) is None:
            self._inside = False
            return event
        return b"%b%b%d%b%b" % (event[: -len(line_end)], self._line, self._offset, line_end, line_end)


def ends_an_event(before: bytes) -> bool:
    """Return whether an event begins after ``before``. Its last four bytes are enough."""
    return not before or _ENDS_AN_EVENT.search(before) is not None


def without_blank_line(comment: bytes) -> bytes:
    """Return a keep-alive comment without its blank line, which would end an event with only an id (resume.md §4.2)."""
    return comment.rstrip(_LINE_ENDS) + b"\n" if comment.startswith(b":") else comment
