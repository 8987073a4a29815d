"""Providers that say all argument text so far in each fragment, or once more at the end, before the call is complete.

A fragment that begins with all text so far says it again where nothing that begins so could be JSON behind that text. Where it
could (``{"not":`` and then ``{"not":{``), it waits for what comes next.

Source: quirks.md §3; field failure 277.
"""

from __future__ import annotations

import re
from typing import Final

from streamkit.tool_calls.object_scanner import scanned

#: Strings, of which the last may be open, and what stands between them and white space.
_PIECES: Final = re.compile(r'"(?:[^"\\]|\\.)*+"?|[^\s"]++', re.DOTALL)


def may_repeat(fragment: str, chars: int) -> bool:
    """Whether a fragment is long enough to say ``chars`` characters again, and begins an object as all arguments do."""
    return len(fragment) >= chars > 0 and fragment.lstrip()[:1] == "{"


def rest_of(fragment: str, before: str, depth: int) -> str | None:
    """What ``fragment`` adds to ``said``, which it begins with; None where it does not. White space may differ in a whole."""
    if fragment.startswith(before):
        return fragment[len(before) :]
    if not is_object(fragment, depth):
        return None
    compact = "".join(_PIECES.findall(before))
    read = 0
    for piece in _PIECES.finditer(fragment):
        size = min(len(piece[0]), len(compact) - read)
        if piece[0][:size] != compact[read : read + size]:
            return None
        read += size
        if read == len(compact):
            return fragment[piece.start() + size :]
    return None


def may_follow(fragment: str, before: str, depth: int) -> bool:
    """Whether ``said`` and then ``fragment`` may be the beginning of one JSON value."""
    scanner = scanned(before, depth)
    scanner.feed(fragment)
    return not scanner.malformed


def is_object(text: str, depth: int) -> bool:
    """Whether a text is one complete JSON object, nested no deeper than ``depth``."""
    return scanned(text, depth).complete_object


def is_object_or_part(text: str, depth: int) -> bool:
    """Whether a text is a JSON object, or the beginning of one."""
    return not scanned(text, depth).malformed
