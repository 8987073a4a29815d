"""The format of a log in a Redis stream: an entry's id is the offset of the response after the entry's bytes.

Redis refuses an entry whose id is not above the last one. This alone ensures three things, without scripts or locks: a
repeated append creates no duplicate; a log has only one end; and a process that others considered dead can't write after the
end that they gave its log. The ids are:

* ``0-1``: what is known of the response before its first byte, and the process that writes it;
* ``{offset}-0``: the bytes that end at this offset;
* ``END``: how the log ended, where this entry's bytes begin, and the last bytes. If a reader ended the log, the bytes are the
  dialect's error, which is not part of the response.

Other programs may have written what is read here, so it is checked before it is used.

Source: resume.md §1.3, §7.1, §7.2, §7.5, §7.11, §13.6.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, TypeAlias, cast

from attrs import frozen

from streamkit.dialects import client_named
from streamkit.errors import UsageError
from streamkit.resume.log import BOOT, ENDS, LARGEST_OFFSET, End, LogGap, Meta

Command: TypeAlias = tuple[Any, ...]  #: A Redis command: its name and its arguments

FIRST: Final = b"0-1"
#: The entry id of a log's end. It is larger than that of every offset, so Redis refuses to append anything after the end.
END: Final = b"%d-0" % (LARGEST_OFFSET + 1)
_NUMBER: Final = re.compile(rb"[0-9]{1,16}")
_OFFSET: Final = re.compile(rb"([0-9]{1,16})-0")
#: The most messages from other processes that Redis keeps for one process: more than a process receives in a second.
INBOX_MESSAGES: Final = 1000


@frozen
class Keys:
    """The names of all stored keys. An operator may limit a Redis user to ``~{prefix}:*``."""

    prefix: str

    def log(self, log_id: str) -> bytes:
        return f"{self.prefix}:log:{log_id}".encode()

    def node(self, boot: str) -> bytes:
        """Return the key with the messages for a process. It exists while the process lives."""
        return f"{self.prefix}:node:{boot}".encode()

    def value(self, name: str) -> bytes:
        return f"{self.prefix}:value:{name}".encode()


@frozen(kw_only=True)
class Entry:
    """Bytes of a log, or its end."""

    id: int  #: the first number of the entry's Redis id; it grows from entry to entry
    data: bytes = b""
    begin: int  #: the offset in the log of the first byte of ``data``
    ended: End | None = None
    #: Whether a reader wrote the end because the process was dead. The bytes are then an error for all readers.
    is_seal: bool = False

    @property
    def end(self) -> int:
        return self.begin + len(self.data)


@frozen(kw_only=True)
class Append:
    """An append to a log. Repeated attempts use the same object, so that Redis recognises a duplicate."""

    begin: int
    data: bytes
    ended: End | None = None

    @property
    def end(self) -> int:
        return self.begin + len(self.data)

    def command(self, key: bytes) -> Command:
        """Return the Redis command for this append. Redis answers nil if the log no longer exists."""
        if self.ended is None:
            return ("XADD", key, "NOMKSTREAM", b"%d-0" % self.end, "d", self.data)
        return ("XADD", key, "NOMKSTREAM", END, "e", self.ended, "at", self.begin, "d", self.data)


def seal(key: bytes, at: int, error: bytes) -> Command:
    """Return the command that ends the log of a dead process with an error for its readers."""
    return ("XADD", key, "NOMKSTREAM", END, "e", "aborted", "at", at, "f", error)


def message(key: bytes, word: str, log_id: str = "") -> Command:
    """Return the command that sends a message to a process. Its answer is nil if the process is dead."""
    return ("XADD", key, "NOMKSTREAM", "MAXLEN", "~", INBOX_MESSAGES, "*", "m", f"{word} {log_id}")


def creation(key: bytes, meta: Meta, boot: str) -> Command:
    """Return the command for the first entry of a log. Redis refuses it if the log exists already."""
    known = {
        "node": boot, "dialect": meta.dialect, "type": meta.media_type, "array": int(meta.is_array), "owner": meta.owner,
        "created": meta.created, "model": meta.model, "background": int(meta.background),
    }  # fmt: skip
    return ("XADD", key, FIRST, *(part for pair in known.items() for part in pair))


# -- reading -----------------------------------------------------------------------------------------------------------


def meta_in(entries: Sequence[Any]) -> tuple[Meta, str] | None:
    """Return what is known of a log and its process, from its first entry; None: there is no valid log."""
    fields = fields_of(entries[0]) if entries else {}
    try:
        dialect, node = fields[b"dialect"].decode(), fields[b"node"].decode()
        client_named(dialect)
        meta = Meta(
            dialect=dialect,
            media_type=fields[b"type"].decode("ascii"),
            is_array=fields[b"array"] == b"1",
            owner=fields[b"owner"].decode("ascii"),
            created=float(fields[b"created"]),
            model=fields[b"model"].decode(),
            background=fields[b"background"] == b"1",
        )
        if not meta.media_type.isprintable() or not 0 <= meta.created < LARGEST_OFFSET:
            return None
    except (KeyError, ValueError, UsageError):  # another program or a later version of streamkit wrote the entry
        return None
    return (meta, node) if BOOT.fullmatch(node) else None


def entry_of(raw: Any) -> Entry:
    """Return an entry after the first one. Raises LogGap if it is invalid."""
    fields = fields_of(raw)
    if raw[0] == END:
        ended, at = fields.get(b"e", b"").decode("latin-1"), fields.get(b"at", b"")
        if ended not in ENDS or _NUMBER.fullmatch(at) is None:
            raise LogGap("the answer's end in the store is none of ours")
        told = fields.get(b"f")
        data = fields.get(b"d", b"") if told is None else told
        return Entry(
            id=LARGEST_OFFSET + 1, data=data, begin=int(at), ended=cast("End", ended), is_seal=told is not None
        )
    found = _OFFSET.fullmatch(raw[0])
    data = fields.get(b"d", b"")
    if found is None or int(found[1]) < len(data):
        raise LogGap("an entry in the store is none of ours")
    return Entry(id=int(found[1]), data=data, begin=int(found[1]) - len(data))


def newest_in(newest_first: Sequence[Any]) -> Entry:
    """Return the last entry of a log: where its bytes end, and how it ended. Raises LogGap."""
    raw = newest_first[0]
    return Entry(id=0, begin=0) if raw[0] == FIRST else entry_of(raw)


def fields_of(raw: Any) -> dict[bytes, bytes]:
    """Return the fields of an entry, which Redis lists as alternating names and values."""
    flat = raw[1]
    return dict(zip(flat[::2], flat[1::2], strict=False))


def message_in(raw: Any) -> tuple[str, str]:
    """Return the word of a message, and the log's id."""
    word, _, log_id = fields_of(raw).get(b"m", b"").decode("latin-1").partition(" ")
    return word, log_id


def behind(position: int, entry: Entry) -> bytes:
    """Return the bytes of an entry that a reader at ``position`` does not have. Raises LogGap if earlier bytes are missing.

    All readers get the error of a dead process's log, even one with bytes that never reached the store (resume.md §7.11).
    """
    if entry.is_seal and position > entry.begin:
        return entry.data
    if entry.begin > position:
        raise LogGap(f"the store lost the bytes from {position:,} to {entry.begin:,} of the answer")
    return entry.data[position - entry.begin :]
