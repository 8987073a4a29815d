"""Make ids and names, where there is none or where a dialect rejects the existing one.

A replaced id or name is a hash of the original alone. So a call, its result and every later request get the same replacement,
on any machine, without a table. A valid id or name stays unchanged, so a second pass changes nothing.

Source: dialects.md §7.3.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import string
from typing import Final

BASE62 = string.digits + string.ascii_letters
_OF_BYTES: Final = (5 * BASE62).encode()[:256]  #: one base-62 character for each byte value


def random_id(prefix: str) -> str:
    """Return a unique id: ``prefix`` and 22 base-62 characters. This is the default maker of ids.

    Ids must be unique across turns, or tool results match the wrong call (quirks.md 34). Each random byte gives one character;
    eight characters are a quarter more likely than the others. The id has at least 124 random bits, and takes a sixth of the
    time of converting a number to base 62.
    """
    return prefix + secrets.token_bytes(22).translate(_OF_BYTES).decode()


NINE = re.compile(r"[a-zA-Z0-9]{9}")  #: a call id of Mistral's API, in both directions (dialects.md §6.3)


def nine_characters(call_id: str) -> str:
    """Return ``call_id`` if it has nine letters and digits, else a nine-character hash. Hashes collide once in 10^16."""
    return call_id if NINE.fullmatch(call_id) else hashed(call_id, 9)


PORTABLE_IDS: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")  #: ids that every dialect but Mistral's accepts
PORTABLE_NAMES: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")  #: tool names that every dialect accepts
_NAME_CHARS: Final = 64  #: maximum length of a rewritten name, and the length of the hash at its end
_NAME_HASH: Final = 8


def portable_id(call_id: str, fits: re.Pattern[str] = PORTABLE_IDS) -> str:
    """Return ``call_id`` if it ``fits``, else ``call_`` and a hash of 22 base-62 characters.

    If that does not fit either, as in Mistral's dialect (``NINE``), return nine characters.
    """
    if fits.fullmatch(call_id):
        return call_id
    made = f"call_{hashed(call_id, 22)}"
    return made if fits.fullmatch(made) else nine_characters(call_id)


def portable_name(name: str, fits: re.Pattern[str] = PORTABLE_NAMES) -> str:
    """Return ``name`` if it ``fits``, else its valid part and a hash: ``files.read`` becomes ``files_read_`` and 8 characters.

    Different names stay different. To map a rewritten name back, apply this function to the names of the request's tools.
    """
    if fits.fullmatch(name):
        return name
    kept = re.sub(r"[^A-Za-z0-9_-]", "_", name)
    if not kept[:1].isalpha():
        kept = f"_{kept}"
    return f"{kept[: _NAME_CHARS - _NAME_HASH - 1]}_{hashed(name, _NAME_HASH)}"


def flat_name(namespace: str, name: str) -> str:
    """Return a tool's name with its namespace as a prefix: ``mcp__files`` and ``read`` give ``mcp__files__read``.

    Use it in dialects without namespaces. A namespace that ends in underscores (``mcp__files__``) gets no more of them, and a
    name that begins with the namespace gets no second prefix.
    """
    stem = namespace.removesuffix("__")
    return name if not stem or name.startswith(f"{stem}__") else f"{stem}__{name}"


def hashed(text: str, characters: int) -> str:
    """Return ``characters`` base-62 characters that depend on ``text`` alone; 22 hold all 128 bits of the hash."""
    number = int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16])
    digits = []  # the last ones, the least significant first
    for _ in range(characters):
        number, digit = divmod(number, len(BASE62))
        digits.append(BASE62[digit])
    return "".join(digits)
