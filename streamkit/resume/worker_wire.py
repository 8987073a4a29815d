"""The protocol between the workers of one host, over a unix socket: one question per connection, and its answer.

A frame is a kind (one byte), a length (four bytes, big-endian) and as many bytes. A question is one frame. The answer to
``open`` is ``OPENED``, then the log from its first byte as ``DATA``, then ``END`` with the word for its end. The answer to
``load`` is ``DATA`` and ``END``, to other questions ``END``. Any answer may be ``ERROR`` at any point. A connection that ends
without ``END`` or ``ERROR`` means that the worker died. Both sides check sizes and words.

Source: resume.md §12.1, §13.6.
"""

from __future__ import annotations

import asyncio
import struct
import sys
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeAlias, cast, get_args

import attrs
import orjson
from attrs import field, frozen

from streamkit.dialects import client_named
from streamkit.errors import UsageError
from streamkit.resume.identity import LARGEST_OFFSET
from streamkit.resume.log import ENDS, BadCursor, End, LogError, LogGap, LogGone, Meta, StoreDown

QUESTION, OPENED, DATA, END, ERROR = b"Q", b"O", b"D", b"E", b"X"
_HEADER: Final = struct.Struct(">cI")
#: The largest frame. Logs are sent in pieces of this size; questions and messages are shorter.
FRAME_BYTES: Final = 64 * 1024
#: Seconds to wait for another worker's answer. Its event loop may be busy.
CALL_S: Final = 1.0
#: The longest path of a socket (``sun_path`` of unix(7) and of BSD's unix(4), without its zero byte).
PATH_BYTES: Final = (108 if sys.platform == "linux" else 104) - 1

Operation: TypeAlias = Literal["open", "stop", "delete", "load"]
_OPERATIONS: Final = frozenset(get_args(Operation))
_ERRORS: Final[dict[str, type[LogError]]] = {
    "gone": LogGone, "cursor": BadCursor, "gap": LogGap, "down": StoreDown
}  # fmt: skip
_WORDS: Final = {kind: word for word, kind in _ERRORS.items()}
UNREADABLE: Final = "another worker said what can't be read"


def socket_path(directory: Path, boot: str) -> Path:
    """Return the path of the socket of the worker ``boot``."""
    return directory / f"{boot}.sock"


def frame(kind: bytes, payload: bytes = b"") -> bytes:
    """Return the bytes of a frame."""
    return _HEADER.pack(kind, len(payload)) + payload


@frozen
class Question:
    """A question from one worker to another."""

    operation: Operation
    name: str  #: the id of a log, or the name of a value
    owner: str = field(default="", repr=False)
    after: int = 0

    def frame(self) -> bytes:
        """Return the question as a frame. Raises LogGone if the name is too long."""
        payload = orjson.dumps([self.operation, self.name, self.owner, self.after])
        if len(payload) > FRAME_BYTES:
            raise LogGone  # the name is too long for any kept log or value
        return frame(QUESTION, payload)

    @classmethod
    def read(cls, kind: bytes, payload: bytes) -> Self:
        """Return the question in a frame. Raises StoreDown if the frame is no question."""
        try:
            operation, name, owner, after = orjson.loads(payload)
        except ValueError:
            raise StoreDown(UNREADABLE) from None
        is_text = isinstance(name, str) and isinstance(owner, str)
        is_known = kind == QUESTION and isinstance(operation, str) and operation in _OPERATIONS
        if not is_known or not is_text or type(after) is not int or not 0 <= after <= LARGEST_OFFSET:
            raise StoreDown(UNREADABLE)
        return cls(cast("Operation", operation), name, owner, after)


def opened_frame(meta: Meta, ended: End | None) -> bytes:
    """Return the first frame of an answer to ``open``. ``ended``: how the log ended, if the reader already has all of it."""
    return frame(OPENED, orjson.dumps([attrs.asdict(meta), ended]))


def opened_in(payload: bytes) -> tuple[Meta, End | None]:
    """Return the content of ``opened_frame``. Raises StoreDown if it is invalid."""
    try:
        document, ended = orjson.loads(payload)
        meta = Meta(**document)
        client_named(meta.dialect)
    except (ValueError, TypeError, UsageError):
        raise StoreDown(UNREADABLE) from None
    if any(type(getattr(meta, name)) is not kind for name, kind in _META_TYPES.items()):
        raise StoreDown(UNREADABLE)
    return meta, None if ended is None else end_in(ended)


def end_in(word: Any) -> End:
    """Return the kind of end that ``word`` names. Raises StoreDown if it names none."""
    if not isinstance(word, str) or word not in ENDS:
        raise StoreDown(UNREADABLE)
    return cast("End", word)


_META_TYPES: Final = {
    attribute.name: str if attribute.default is attrs.NOTHING else type(attribute.default)
    for attribute in attrs.fields(Meta)
}


def error_frame(error: LogError) -> bytes:
    """Return an error as a frame. An error whose class has no word in the protocol is sent as ``down``."""
    return frame(ERROR, orjson.dumps([_WORDS.get(type(error), "down"), str(error)[: FRAME_BYTES // 8]]))


def error_in(payload: bytes) -> LogError:
    """Return the error in a frame."""
    try:
        word, message = orjson.loads(payload)
        return _ERRORS[word](str(message))
    except (ValueError, TypeError, KeyError):
        return StoreDown(UNREADABLE)


class Frames:
    """Reads the frames of a connection one by one. A cancelled read loses no bytes."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._header = b""

    async def read(self) -> tuple[bytes, bytes]:
        """Return the next frame. Raises EOFError or OSError if the connection ended, and StoreDown for an invalid frame."""
        self._header = self._header or await self._reader.readexactly(_HEADER.size)
        kind, size = _HEADER.unpack(self._header)
        if size > FRAME_BYTES:
            raise StoreDown(UNREADABLE)
        payload = await self._reader.readexactly(size)
        self._header = b""
        return kind, payload
