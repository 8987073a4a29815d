"""How a log is written in a Redis stream: an entry's id is the offset of the answer behind the entry's bytes.

A server refuses an id that is not above the last one, and that alone makes a retried append no duplicate, an end the only one,
and a process that was taken for dead unable to write behind the end that others gave its log. No script and no lock is needed.

* ``0-1``: what is known of the answer before its first byte, and the process that writes it;
* ``{offset}-0``: the bytes that end at this offset;
* ``END``: how the log ended, where the bytes of this entry begin, and the last bytes; or, where a reader ended it, the
  dialect's error, which is no part of what was made.

What is read here may have been written by somebody else: it is checked before it is used.

Source: resume.md §1.3, §7.1, §7.2, §7.5, §7.11, §13.6.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, TypeAlias, cast

from attrs import frozen

from streamkit.dialects import client_named
from streamkit.errors import UsageError
from streamkit.resume.identity import BOOT, LARGEST_OFFSET
from streamkit.resume.log import ENDS, End, LogGap, Meta

#: A command for Redis.
Command: TypeAlias = tuple[Any, ...]

FIRST: Final = b"0-1"
#: Above every offset: nothing can be appended behind it.
END: Final = b"%d-0" % (LARGEST_OFFSET + 1)
_NUMBER: Final = re.compile(rb"[0-9]{1,16}")
_OFFSET: Final = re.compile(rb"([0-9]{1,16})-0")
#: Messages that a process gets from others, at most: more than it reads in a second.
INBOX_MESSAGES: Final = 1000


@frozen
class Keys:
    """The names of all that is stored; an operator may allow a user of Redis just ``~{prefix}:*``."""

    prefix: str

    def log(self, log_id: str) -> bytes:
        return f"{self.prefix}:log:{log_id}".encode()

    def node(self, boot: str) -> bytes:
        """The messages for a process, which are there for as long as it lives."""
        return f"{self.prefix}:node:{boot}".encode()

    def value(self, name: str) -> bytes:
        return f"{self.prefix}:value:{name}".encode()


@frozen(kw_only=True)
class Entry:
    """Bytes of a log, or its end."""

    id: int  #: the first number of its id, which grows along the log
    data: bytes = b""
    begin: int  #: where the bytes begin
    ended: End | None = None
    #: A reader wrote the end, since the process was dead: the bytes are an error for whoever reads this.
    is_seal: bool = False

    @property
    def end(self) -> int:
        return self.begin + len(self.data)


@frozen(kw_only=True)
class Append:
    """What is to be appended to a log, the same at each try."""

    begin: int
    data: bytes
    ended: End | None = None

    @property
    def end(self) -> int:
        return self.begin + len(self.data)

    def command(self, key: bytes) -> Command:
        """As it is sent to Redis, whose answer is nil where the log is gone."""
        if self.ended is None:
            return ("XADD", key, "NOMKSTREAM", b"%d-0" % self.end, "d", self.data)
        return ("XADD", key, "NOMKSTREAM", END, "e", self.ended, "at", self.begin, "d", self.data)


def seal(key: bytes, at: int, error: bytes) -> Command:
    """The end of a log whose process died, with what its readers are told."""
    return ("XADD", key, "NOMKSTREAM", END, "e", "aborted", "at", at, "f", error)


def message(key: bytes, word: str, log_id: str = "") -> Command:
    """A message to the process of ``key``. Redis's answer is nil where the process is dead."""
    return ("XADD", key, "NOMKSTREAM", "MAXLEN", "~", INBOX_MESSAGES, "*", "m", f"{word} {log_id}")


def creation(key: bytes, meta: Meta, boot: str) -> Command:
    """The first entry of a log, refused where there is a log of that name."""
    known = {
        "node": boot, "dialect": meta.dialect, "type": meta.media_type, "array": int(meta.is_array), "owner": meta.owner,
        "created": meta.created, "model": meta.model, "background": int(meta.background),
    }  # fmt: skip
    return ("XADD", key, FIRST, *(part for pair in known.items() for part in pair))


# -- reading -----------------------------------------------------------------------------------------------------------


def meta_in(entries: Sequence[Any]) -> tuple[Meta, str] | None:
    """The meta of a log and its process, of its first entry; None: there is no log that we can read."""
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
    except (KeyError, ValueError, UsageError):  # another program's, or a later version's
        return None
    return (meta, node) if BOOT.fullmatch(node) else None


def entry_of(raw: Any) -> Entry:
    """An entry behind the first. Raises LogGap for what is none of ours."""
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
    """The last entry of a log that is there: where its bytes end, and how it ended. Raises LogGap."""
    raw = newest_first[0]
    return Entry(id=0, begin=0) if raw[0] == FIRST else entry_of(raw)


def fields_of(raw: Any) -> dict[bytes, bytes]:
    """The fields of an entry as Redis lists them: names and values in turn."""
    flat = raw[1]
    return dict(zip(flat[::2], flat[1::2], strict=False))


def message_in(raw: Any) -> tuple[str, str]:
    """What a message says, and of which log."""
    word, _, log_id = fields_of(raw).get(b"m", b"").decode("latin-1").partition(" ")
    return word, log_id


def behind(position: int, entry: Entry) -> bytes:
    """The bytes of an entry that a reader at ``position`` has not got. Raises LogGap where others are missing before them.

    What a dead process's readers are told is for all of them, also for one that has bytes which never came to the store
    (resume.md §7.11).
    """
    if entry.is_seal and position > entry.begin:
        return entry.data
    if entry.begin > position:
        raise LogGap(f"the store lost the bytes from {position:,} to {entry.begin:,} of the answer")
    return entry.data[position - entry.begin :]
