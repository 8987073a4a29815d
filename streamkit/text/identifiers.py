"""Ids and names: made for what came without one, and made again for a dialect that refuses what came.

What is made again is a hash of what it was and of nothing else: a call, its result and every later request get the same one
without a table being kept, on any machine. What already fits stays as it is, so a second pass changes nothing.

Source: dialects.md §7.3.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import string
from typing import Final

BASE62 = string.digits + string.ascii_letters
#: One of them for each byte.
_OF_BYTES: Final = (5 * BASE62).encode()[:256]


def random_id(prefix: str) -> str:
    """An id nobody else has: ``prefix`` and 22 base-62 characters. The default maker of ids.

    Ids must be unique across turns, or results find the wrong call (quirks.md 34). Each byte stands for a character, eight of
    which are a quarter more likely than the others: 124 bits at least, in a sixth of the time of an even number's digits.
    """
    return prefix + secrets.token_bytes(22).translate(_OF_BYTES).decode()


#: What Mistral's API accepts as the id of a call, in a response and when it comes back (dialects.md §6.3).
NINE = re.compile(r"[a-zA-Z0-9]{9}")


def nine_characters(call_id: str) -> str:
    """An id of nine letters and digits: ``call_id`` itself if it is one, else a hash, which two ids share once in 10^16."""
    return call_id if NINE.fullmatch(call_id) else hashed(call_id, 9)


#: Ids that every dialect but Mistral's takes.
PORTABLE_IDS: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
#: Names of tools that every dialect takes.
PORTABLE_NAMES: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_NAME_CHARS: Final = 64
_NAME_HASH: Final = 8


def portable_id(call_id: str, fits: re.Pattern[str] = PORTABLE_IDS) -> str:
    """``call_id`` itself if it ``fits``, else ``call_`` and a hash of it: 22 base-62 characters.

    Nine such characters where that does not fit either, as in Mistral's dialect (``NINE``).
    """
    if fits.fullmatch(call_id):
        return call_id
    made = f"call_{hashed(call_id, 22)}"
    return made if fits.fullmatch(made) else nine_characters(call_id)


def portable_name(name: str, fits: re.Pattern[str] = PORTABLE_NAMES) -> str:
    """``name`` itself if it ``fits``, else what can be kept of it and a hash: ``files.read`` is ``files_read_`` and 8 more.

    Two names that differ stay two. Who rewrites the names of a request reads them back from its tools, by the same function.
    """
    if fits.fullmatch(name):
        return name
    kept = re.sub(r"[^A-Za-z0-9_-]", "_", name)
    if not kept[:1].isalpha():
        kept = f"_{kept}"
    return f"{kept[: _NAME_CHARS - _NAME_HASH - 1]}_{hashed(name, _NAME_HASH)}"


def flat_name(namespace: str, name: str) -> str:
    """The name of a tool of a namespace where there are none: ``mcp__files`` and ``read`` are ``mcp__files__read``.

    Underscores at the seam are not doubled (``mcp__files__``), nor is a namespace that the name has in front already.
    """
    stem = namespace.removesuffix("__")
    return name if not stem or name.startswith(f"{stem}__") else f"{stem}__{name}"


def hashed(text: str, characters: int) -> str:
    """So many base-62 characters that depend on ``text`` alone; 22 hold all 128 bits there are."""
    number = int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16])
    return _base62(number, characters)


def _base62(number: int, characters: int) -> str:
    """The last digits of a number, the least first."""
    digits = []
    for _ in range(characters):
        number, digit = divmod(number, len(BASE62))
        digits.append(BASE62[digit])
    return "".join(digits)
