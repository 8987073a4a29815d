"""What a client has of a stream with ids."""

from __future__ import annotations

import re
from typing import Final

from streamkit.resume import cursor_in

_ID: Final = re.compile(rb"(?<=[\r\n])id: (st_[A-Za-z0-9]{22}\.[0-9]+)(?:\r\n|\n|\r)")
_EVENT: Final = re.compile(rb"(?<=[\r\n])id: (st_[A-Za-z0-9]{22}\.[0-9]+)(?>\r\n|\n|\r)(?:\r\n|\n|\r(?!\Z))")


def without_ids(body: bytes) -> bytes:
    """The bytes of the log."""
    return _ID.sub(b"", body)


def cursors(body: bytes) -> list[tuple[int, int]]:
    """Of each event that is there whole: where it ends, and the number of bytes of the log that its id says.

    What ends with CR may be cut in the middle of CRLF, and counts as not whole.
    """
    return [(match.end(), cursor_in(match[1].decode()).offset) for match in _EVENT.finditer(body)]


def resumed_from(body: bytes) -> tuple[bytes, int]:
    """What a client keeps of ``body``, of which the last event may be cut, and from where it reads on."""
    end, offset = (cursors(body) or [(0, 0)])[-1]
    return without_ids(body[:end]), offset
