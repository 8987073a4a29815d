"""An ``id:`` in each event of an event stream: the cursor behind it, which a client that comes back says again.

It is the last line of its event, so that it counts where the event has another. An event without data gets none, and there is
never an event of an id alone: openai-python and others take every event for JSON (resume.md §4.1, measured).

Source: resume.md §4.1, §4.2, §5; WHATWG HTML §9.2.
"""

from __future__ import annotations

import re
from typing import Final

#: A line end, of which CRLF is one, and the blank line behind it.
_EVENT_END: Final = re.compile(rb"(?>\r\n|\n|\r)(\r\n|\n|\r)")
_ENDS_AN_EVENT: Final = re.compile(_EVENT_END.pattern + rb"\Z")
_DATA: Final = re.compile(rb"(?:\A|[\r\n])data(?=[:\r\n])")
_LINE_ENDS: Final = b"\r\n"


class EventIDs:
    """A machine from bytes of a log, cut anywhere, to the same bytes with ids; what is no whole event waits for its end.

    ``offset`` is where the bytes begin; ``inside``: within an event, which gets no id then.
    """

    def __init__(self, log_id: str, offset: int = 0, *, inside: bool = False) -> None:
        self.fault: Exception | None = None
        self._line = b"id: %b." % log_id.encode()  # as it begins
        self._offset = offset
        self._inside = inside
        self._held = bytearray()
        self._looked = 0  # bytes of what is held in which no event ends

    def feed(self, data: bytes, /) -> bytes:
        if not self._held and not self._inside:
            # One event as encoders write it, a line of data with its name before it or not, takes a fifth of what the search
            # does; a search for one byte takes a third of one for two.
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
                break  # which may be half of a line end
            event = bytes(self._held[begin : end.end()])
            self._offset += len(event)
            written += self._with_id(event, end[1])
            begin = end.end()
        del self._held[:begin]
        self._looked = max(0, len(self._held) - 3)
        return bytes(written)

    def finish(self) -> bytes:
        """What is held, as it is."""
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
    """Whether an event begins behind these bytes, of which the last four are enough."""
    return not before or _ENDS_AN_EVENT.search(before) is not None


def without_blank_line(comment: bytes) -> bytes:
    """A keep-alive that is a comment, as it may stand between events with ids: it ends no event (resume.md §4.2)."""
    return comment.rstrip(_LINE_ENDS) + b"\n" if comment.startswith(b":") else comment
