"""Bodies for a log, without the secrets in them.

What looks like a key is cut out: the value of a member whose name says so, what follows ``Bearer``, and keys by how
well-known vendors begin theirs. It looks at text, not at JSON, so that any body can be shown. Other secrets stay: this is a
help for logs, no promise. ``token`` alone is no such name, since log probabilities have it.

``without_secrets`` does the same to a value that was read from JSON, and ``excerpt`` to the beginning of a text of any
length. Whoever sends a text chooses how often a key seems to begin in it: so each pattern, once begun, matches or gives up
within a few characters, and the work is linear.

Source: seeds.md S1, limits.md T6.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

CUT: Final = "[removed]"
#: Levels of a value that are looked at; what lies deeper is cut out.
DEPTH: Final = 50
#: A name that says so, anywhere within it or as a whole. What is looked for ahead is read once: nothing is tried again.
_NAME: Final = (
    r"(?:(?=[\w.-]*?(?:api[_-]?key|secret|password|credential))[\w.-]*+|(?:access|auth|refresh|id|session)[_-]?token|"
    r"(?:proxy-)?authorization|(?:set-)?cookie)"
)
_SECRET_NAME: Final = re.compile(_NAME, re.IGNORECASE)
_MEMBER: Final = re.compile(rf'("{_NAME}"\s*+:\s*+")(?:[^"\\]|\\.)++', re.IGNORECASE)
#: Where a word begins: behind ``\n`` and its like as well, as they stand in JSON.
_START: Final = r"(?:\b|(?<=\\[bfnrt]))"
#: What follows a scheme, and keys by how they begin. A signed token (JWT) is one from its first eight characters on, since
#: the rest of it may be cut off.
_KEY: Final = re.compile(
    rf"(?P<scheme>{_START}(?i:Bearer|Basic)\s++)[\w.~+/=-]{{6,}}+|{_START}(?:"
    r"(?:sk|pk|rk|gsk|xai|hf|r8|nvapi|pplx|csk|fw|tgp|ghp|gho|github_pat|glpat|xox[abp])[-_][\w*-]{6,}+"
    r"|AIza[\w-]{20,}+|(?:AKIA|ASIA)[A-Z0-9]{12,}+|eyJ[\w-]{8,}+(?:\.[\w-]*+)*+)"
)
#: An escape of visible ASCII but for ``"`` and ``\``, in any case.
_ESCAPED: Final = re.compile(r"\\u00((?:2[0139a-f]|2[4-8]|[346][0-9a-f]|5[0-9abdef]|7[0-9a-e]))", re.IGNORECASE)
#: Behind the place where a text is cut, so much is looked at for the rest of a key: each begins within fewer characters.
MARGIN_CHARS: Final = 64


def redacted(body: bytes) -> str:
    """Return the text of a body without secrets, as far as they look like one; bytes that are not UTF-8 as U+FFFD.

    Letters, digits and signs of ASCII that JSON has escaped are shown plain: a key may hide in them.
    """
    text = unescaped(body.decode("utf-8", "replace"))
    text = _MEMBER.sub(rf"\1{CUT}", text)
    return _without_keys(text)


def unescaped(text: str) -> str:
    """Return a text with JSON's escapes of visible ASCII written plain, but for quotes and backslashes."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text) if "\\u00" in text else text


def without_secrets(value: Any, depth: int = DEPTH, hide: Callable[[str], str] = str) -> Any:
    """Return a copy of a JSON value without secrets in its strings and names, and under names of secrets.

    ``hide`` takes an application's own keys out of each string and name.
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
    """The beginning of a text in at most so many characters, without what looks like a secret; ``…`` ends one that is cut.

    The work is that of the beginning, however long the text is. A key that goes on behind the cut is cut out as a whole.
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
