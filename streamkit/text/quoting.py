"""Make text of a client or a provider safe to show: quoted in a message, escaped, and without secrets.

A value in an error may be megabytes long and look like a secret, so messages contain it only as ``quoted(value)`` or
``quoted_all(values)``; a test checks this (``tests/text/test_quoting.py``). Error classes also limit their whole message
(``shortened``).

Text that looks like a key is removed: the value of a member with a telling name, the text after ``Bearer``, and keys with the
prefix of a well-known vendor. Other secrets stay: this helps, but guarantees nothing. ``token`` alone is no telling name,
since log probabilities use it. The sender of a text controls how often a key seems to begin in it. So each pattern, once
begun, matches or fails within a few characters, and the time is linear.

``printable`` is for text that must not control a terminal, break a line or change the reading direction. All characters that
Unicode calls unprintable are escaped. The escapes are JSON's, so a JSON text keeps its meaning.

Source: seeds.md S1; limits.md T6, T12; Unicode 15 §23.2 (C1), UAX #9 (direction marks); RFC 8259 §7.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable
from itertools import islice
from reprlib import Repr
from typing import Any, Final

CUT: Final = "[removed]"
DEPTH: Final = 50  #: maximum depth that is searched in a value; deeper values are removed
#: Names of members that hold secrets: any name with a word of the first line in it, or exactly a name of the rest. The
#: look-ahead reads each character once, without backtracking.
_NAME: Final = (
    r"(?:(?=[\w.-]*?(?:api[_-]?key|secret|password|credential))[\w.-]*+|(?:access|auth|refresh|id|session)[_-]?token|"
    r"(?:proxy-)?authorization|(?:set-)?cookie)"
)
_SECRET_NAME: Final = re.compile(_NAME, re.IGNORECASE)
_MEMBER: Final = re.compile(rf'("{_NAME}"\s*+:\s*+")(?:[^"\\]|\\.)++', re.IGNORECASE)
_START: Final = r"(?:\b|(?<=\\[bfnrt]))"  #: the beginning of a word, also after a JSON escape such as ``\n``
#: The text after an authorization scheme, and keys by their prefix. A signed token (JWT) counts from its first eight
#: characters, since its rest may be truncated.
_KEY: Final = re.compile(
    rf"(?P<scheme>{_START}(?i:Bearer|Basic)\s++)[\w.~+/=-]{{6,}}+|{_START}(?:"
    r"(?:sk|pk|rk|gsk|xai|hf|r8|nvapi|pplx|csk|fw|tgp|ghp|gho|github_pat|glpat|xox[abp])[-_][\w*-]{6,}+"
    r"|AIza[\w-]{20,}+|(?:AKIA|ASIA)[A-Z0-9]{12,}+|eyJ[\w-]{8,}+(?:\.[\w-]*+)*+)"
)
#: A JSON escape of a visible ASCII character except ``"`` and ``\``, in upper or lower case.
_ESCAPED: Final = re.compile(r"\\u00((?:2[0139a-f]|2[4-8]|[346][0-9a-f]|5[0-9abdef]|7[0-9a-e]))", re.IGNORECASE)
MARGIN_CHARS: Final = 64  #: searched after the truncation point for the rest of a key; longer than any prefix


def redacted(body: bytes) -> str:
    """Return the text of a body without text that looks like a secret. Bytes that are not UTF-8 become U+FFFD.

    ASCII characters that are escaped in JSON are shown unescaped, since a key may hide in them.
    """
    text = unescaped(body.decode("utf-8", "replace"))
    text = _MEMBER.sub(rf"\1{CUT}", text)
    return _without_keys(text)


def unescaped(text: str) -> str:
    """Return a text with JSON's escapes of visible ASCII replaced by characters, except quotes and backslashes."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text) if "\\u00" in text else text


def without_secrets(value: Any, depth: int = DEPTH, hide: Callable[[str], str] = str) -> Any:
    """Return a copy of a JSON value without secrets in its strings and names, or under the names of secrets.

    ``hide`` removes an application's known keys from each string and name.
    """
    if isinstance(value, str):
        return _without_keys(hide(value))
    if isinstance(value, list | dict) and not depth:
        return CUT
    if isinstance(value, list):
        return [without_secrets(item, depth - 1, hide) for item in value]
    if isinstance(value, dict):
        return {
            _without_keys(hide(name)): CUT
            if isinstance(inner, str) and _SECRET_NAME.fullmatch(name)
            else without_secrets(inner, depth - 1, hide)
            for name, inner in value.items()
        }
    return value


def excerpt(text: str, chars: int) -> str:
    """Return the beginning of a text, at most ``chars`` characters without secrets, with ``…`` at the end if truncated.

    The time depends on ``chars``, not on the length of the text. A key that crosses the truncation point is removed whole.
    """
    if len(text) <= chars:
        return _without_keys(text)[:chars]
    pieces: list[str] = []
    at = 0
    for found in _KEY.finditer(text[: chars + MARGIN_CHARS]):
        if found.start() >= chars:
            break
        pieces += text[at : found.start()], found["scheme"] or "", CUT
        at = found.end()
    return "".join([*pieces, text[at:chars]])[: chars - 1] + "…"


def _without_keys(text: str) -> str:
    return _KEY.sub(lambda found: (found["scheme"] or "") + CUT, text)


QUOTED_CHARS: Final = 80  #: maximum length of a quoted word: enough to recognise it
STEP_CHARS: Final = 60  #: maximum length of a member's name in a path
QUOTED_WORDS: Final = 8  #: maximum number of quoted words in a list


class _Brief(Repr):
    """Makes the short ``repr`` of a value that is no text. No address: it differs from run to run."""

    def repr_instance(self, x: Any, level: int) -> str:
        shown = super().repr_instance(x, level)
        return name_of(x) if " at 0x" in shown or callable(x) else shown


_BRIEF: Final = _Brief()
_BRIEF.maxlevel, _BRIEF.maxstring, _BRIEF.maxother = 2, 40, 40


def quoted(value: object, chars: int = QUOTED_CHARS) -> str:
    """Quote a value for a message: a text in quotes with at most ``chars`` characters; any other value as a short ``repr``."""
    if isinstance(value, str):
        return repr(excerpt(value, chars))
    if isinstance(value, bytes | bytearray):
        return repr(excerpt(value[: 4 * chars].decode("utf-8", "backslashreplace"), chars))
    return excerpt(_BRIEF.repr(value), chars)


def quoted_all(values: Collection[object]) -> str:
    """Quote the first few of several values, and add how many more there are."""
    more = [f"{len(values) - QUOTED_WORDS:,} more"] if len(values) > QUOTED_WORDS else []
    return ", ".join([*map(quoted, islice(values, QUOTED_WORDS)), *more])


def name_of(thing: object) -> str:
    """Return the name of a function, a class, a generator or a stage; for any other object, the name of its class."""
    name = getattr(thing, "name", None) or getattr(getattr(thing, "func", thing), "__qualname__", None)
    return str(name or type(thing).__qualname__).rpartition("<locals>.")[2]


MEANT_CHARS: Final = 80  #: longest word that is compared with known words; the time grows with the square of the length


def meant(word: object, known: Iterable[str], quote: Callable[[str], str] = quoted) -> str:
    """Return ``; did you mean 'anthropic'?`` if ``word`` resembles a known word; "" if it resembles none."""
    from difflib import get_close_matches  # noqa: PLC0415 - 2 ms, and only mistakes need it

    near = get_close_matches(word, known, n=1) if isinstance(word, str) and len(word) <= MEANT_CHARS else []
    return f"; did you mean {quote(near[0])}?" if near else ""


def steps(path: Iterable[str | int]) -> str:
    """Return a path as ``.messages[0].content``, with long names shortened."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{shortened(step, STEP_CHARS)}" for step in path)


def shortened(text: str, chars: int) -> str:
    """Return a text shortened to at most ``chars`` characters, with ``…`` at the end if truncated. Secrets are not removed."""
    return text if len(text) <= chars else text[: chars - 1] + "…"


_HALVES: Final = re.compile("[\ud800-\udfff]")


def printable(text: str) -> str:
    r"""Return ``text`` with ``\uXXXX`` for each unprintable character; two escapes for one beyond U+FFFF."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else json.dumps(letter)[1:-1] for letter in text)


def writable(text: str) -> str:
    """Return ``text`` with U+FFFD for each half of a surrogate pair, which JSON can escape and UTF-8 can't encode."""
    return _HALVES.sub("\ufffd", text)


def printable_json(value: Any) -> str:
    """Return a value as JSON on one line with readable text. Raise TypeError for a value that JSON can't represent."""
    return printable(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
