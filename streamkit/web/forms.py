"""Find out whether a response is a stream or one body, whatever was requested and whatever its headers say.

Servers stream without being asked, or respond to ``stream: true`` with a body, and proxies change the content type. The first
bytes decide: a body begins with a bracket, an event with a field name or a comment, a binary message with its length. In a
dialect of lines the first line decides: in pretty-printed JSON no line is a JSON value by itself.

Bytes that were read are put back, unless they are the body. If a body breaks, the error of its source is raised. Some servers
leave the connection open after a body: the body counts as whole one second after it could be. Reading is bounded and takes
linear time: a text is parsed again only when its length has doubled.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any, Final, Literal, TypeAlias

import orjson
from attrs import field, frozen

from streamkit.dialects.base import Dialect
from streamkit.errors import BodyTooLong, TooManyValues
from streamkit.limits import ANSWER_VALUES
from streamkit.web.heavy import count_values, in_thread, is_heavy
from streamkit.web.source import ANSWER_BYTES, TimedSource

#: The form of a response: frames of a stream; one JSON body; one JSON line, which in a dialect of JSON lines may be a stream
#: or
#: a body; none of these.
Form: TypeAlias = Literal["stream", "body", "line", "other"]

_LINES: Final = "application/x-ndjson"
_BINARY: Final = "application/vnd.amazon.eventstream"
_FIELD: Final = re.compile(rb"(?:data|event|id|retry)?:")
_FIELD_NAMES: Final = (b"data", b"event", b"id", b"retry")
_BLANK: Final = (
    b" \t\r\n\xef\xbb\xbf"  #: bytes that may precede the response: white space and the UTF-8 byte order mark
)
_CLOSING: Final = frozenset({b"}", b"]"})  #: the last byte of a JSON object or array
LINE_BYTES: Final = 1024 * 1024  #: the most bytes of the first line to read before the form is decided


@frozen
class Came:
    """The form of a response. ``body`` is the whole body if the form is a body."""

    form: Form
    body: bytes = b""
    values: int = field(default=0, eq=False)  #: how many JSON values the body has


async def form_of(source: TimedSource, dialect: Dialect, *, body_bytes: int = ANSWER_BYTES) -> Came:
    """Read ``source`` until its form is known. A body is read to its end; in the other forms, what was read is put back.

    Raises the source's error if it fails before the first byte or inside a body, and BodyTooLong and TooManyValues. If a
    stream breaks later, reading on raises the error.
    """
    looked = _Look(dialect)
    parts: list[bytes] = []
    size = tried = 0
    # the number of values if the bytes so far may be the whole body, which nothing but time can tell
    ends: int | None = None
    form: Form | None = None
    try:
        async for chunk in source:
            parts.append(chunk)
            size += len(chunk)
            form = looked.at(chunk)
            if form not in {None, "body"}:
                break
            if size > body_bytes:
                raise BodyTooLong(body_bytes)
            if ends is not None and not chunk.strip(_BLANK):
                continue  # only white space came after the possible end: do not restart the wait
            whole = form == "body" and size >= 2 * tried and chunk.rstrip()[-1:] in _CLOSING
            tried = size if whole else tried
            ends = await _values_of(b"".join(parts)) if whole else None
            source.expect_end(soon=ends is not None)
    except (BodyTooLong, TooManyValues):
        raise
    except Exception:
        if not parts or form == "body":
            raise
        source.unread(b"".join(parts))  # the next read of the source raises the same error again
        return Came(form or "other")
    read = b"".join(parts)
    form = form or looked.at_end()
    if form == "body" and ends is None:
        ends = await _values_of(read)
    if form == "body" and ends is not None:
        return Came("body", read, ends)
    source.unread(read)
    return Came("other" if form == "body" else form)


class _Look:
    """Finds the form of a response from its first bytes. The form is None while it is unknown."""

    def __init__(self, dialect: Dialect) -> None:
        self._media_type = dialect.media_type
        endpoint = dialect.http.endpoint
        self._takes_arrays = endpoint is not None and endpoint.streams_arrays
        self._begun = b""  # from the first byte that is not white space to the end of its line
        self._form: Form | None = None

    def at(self, chunk: bytes) -> Form | None:
        if self._form is None:
            self._begun = (self._begun + chunk).lstrip(_BLANK) if not self._begun else self._begun + chunk
            self._form = self._known()
        return self._form

    def at_end(self) -> Form:
        """Return the form of a response that ended before its first line ended."""
        if not self._begun:
            return "other"
        return self._of_line(self._begun) if self._media_type == _LINES else "other"

    def _known(self) -> Form | None:
        begun = self._begun
        if not begun:
            return None
        if begun[:1] not in {b"{", b"["}:
            return self._no_json(begun)
        if begun[:1] == b"[" and self._takes_arrays:
            return "stream"
        if self._media_type != _LINES:
            return "body"
        line, end, _ = begun.partition(b"\n")
        if not end and len(begun) < LINE_BYTES:
            return "body" if begun.rstrip() == b"[" else None
        return self._of_line(line)

    def _of_line(self, line: bytes) -> Form:
        value = _json(line)
        if not isinstance(value, dict):
            return "body"
        return "stream" if value.get("done") is False else "line"

    def _no_json(self, begun: bytes) -> Form | None:
        if self._media_type == _BINARY:
            return "stream" if begun[:1] == b"\x00" else "other"
        if _FIELD.match(begun):
            return "stream" if self._media_type != _LINES else "other"
        return None if any(name.startswith(begun) for name in _FIELD_NAMES) else "other"


async def _values_of(text: bytes) -> int | None:
    """Return the number of values in a body; None if it is no JSON value, or null. Other tasks continue meanwhile.

    Raises TooManyValues, before the body is parsed.
    """
    values = await count_values(text, ANSWER_VALUES)
    if values > ANSWER_VALUES:
        raise TooManyValues(ANSWER_VALUES)
    found = await in_thread(partial(_json, text)) if is_heavy(len(text), values) else _json(text)
    return None if found is None else values


def _json(text: bytes) -> Any:
    """Return the JSON value of a text; None if it is not JSON, or ``null``, which is no body."""
    try:
        return orjson.loads(text.strip(_BLANK))
    except orjson.JSONDecodeError:
        return None
