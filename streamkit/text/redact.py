"""Remove secrets from bodies that are written to a log.

Text that looks like a key is removed: the value of a member with a telling name, the text after ``Bearer``, and keys with the
prefix of a well-known vendor. Other secrets stay: this helps, but guarantees nothing. ``token`` alone is no telling name,
since log probabilities use it. The sender of a text controls how often a key seems to begin in it. So each pattern, once
begun, matches or fails within a few characters, and the time is linear.

Source: seeds.md S1, limits.md T6.
"""

from __future__ import annotations

import re
from collections.abc import Callable
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
