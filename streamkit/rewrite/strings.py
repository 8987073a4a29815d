r"""Change the strings within a JSON text that arrives in fragments. Everything else stays as it is.

Strings that are values are changed; names of members are not. A string is decoded, given to a window, and encoded again: an
escape that JSON does not need (``\u0041``) becomes its character. Text that is not JSON does not become JSON: from the first
fault on, it is changed as plain text.

Source: RFC 8259 §7.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Final

from streamkit.rewrite.window import Window

#: What may be outside strings. A number may continue in the next fragment. Some models write ``NaN``.
_OUTSIDE: Final = re.compile(r"[ \t\n\r]+|[\[\]{}:,]|-?[0-9][-+.0-9eE]*|true|false|null|NaN|-?Infinity")
_NUMBER_REST: Final = re.compile(r"[-+.0-9eE]+")
#: Beginnings of literals and numbers, at the end of a fragment.
_CUT_OUTSIDE: Final = re.compile(r"(?:-|t(?:ru?)?|f(?:a(?:ls?)?)?|n(?:ul?)?|Na?|-?I(?:n(?:f(?:i(?:n(?:it?)?)?)?)?)?)\Z")
#: Characters and escapes of a string. A first half of a surrogate pair waits for what follows.
_CHARACTERS: Final = re.compile(
    r'(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u(?![dD][89abAB])[0-9A-Fa-f]{4})'
    r"|\\u[dD][89abAB][0-9A-Fa-f]{2}(?!(?:\\(?:u(?:[dD](?:[c-fC-F][0-9A-Fa-f]?)?)?)?)?\Z))+"
)
#: Escapes that may continue in the next fragment.
_CUT_ESCAPE: Final = re.compile(r"(?:\\u[dD][89abAB][0-9A-Fa-f]{2})?(?:\\(?:u[0-9A-Fa-f]{0,3})?)?\Z")
_HALVES: Final = re.compile("[\ud800-\udfff]")


def _encoded(text: str) -> str:
    """Return the text as it is written within a JSON string. Halves of surrogate pairs are escaped."""
    text = json.dumps(text, ensure_ascii=False)[1:-1]
    return _HALVES.sub(lambda half: f"\\u{ord(half[0]):04x}", text)


class JSONStrings:
    """The strings of one JSON text. ``window`` makes the window for each string; ``plain``: the text is not JSON."""

    def __init__(self, window: Callable[[], Window], *, plain: bool = False) -> None:
        self._make = window
        self._window: Window | None = window() if plain else None  # of the string or the plain text
        self._plain = plain
        self._in_name = False
        self._open: list[str] = []  # the brackets that are not closed yet
        self._last = ""  # the last token outside strings; "" for a string
        self._kept = ""  # the beginning of a token that was cut
        self.sent: list[str] = []  #: all released text
        self.fed = False  #: whether a fragment has arrived
        self.changed = False  #: whether a string was changed

    @property
    def blocked(self) -> str | None:
        """``Window.blocked`` of the open string."""
        return None if self._window is None else self._window.blocked

    def feed(self, fragment: str) -> str:
        """Take a fragment and return the text that is released."""
        self.fed = True
        text, self._kept = self._kept + fragment, ""
        out: list[str] = []
        place = 0
        while place < len(text) and self.blocked is None:
            place = self._step(text, place, out)
        return self._released(out)

    def end(self) -> str:
        """End the text and return the rest of it."""
        out: list[str] = []
        if self._kept and self.blocked is None:
            self._break(self._kept, out)
        if self.blocked is None:
            self._close(out)
        return self._released(out)

    def _released(self, out: list[str]) -> str:
        text = "".join(out)
        if text:
            self.sent.append(text)
        return text

    def _step(self, text: str, place: int, out: list[str]) -> int:
        """Read on from ``place``. Return the place after what was read."""
        if self._plain and self._window is not None:
            out += map(str, self._window.feed(text[place:]))
            return len(text)
        if self._window is not None or self._in_name:
            return self._in_string(text, place, out)
        if text[place] == '"':
            out.append('"')
            self._in_name = self._open[-1:] == ["{"] and self._last in {"{", ","}
            self._window = None if self._in_name else self._make()
            return place + 1
        number = _NUMBER_REST.match(text, place) if self._last == "0" else None
        found = number or _OUTSIDE.match(text, place)
        if found is None:
            return self._kept_or_broken(_CUT_OUTSIDE.match(text, place), text, place, out)
        token = found[0]
        out.append(token)
        if token in {"{", "["}:
            self._open.append(token)
        elif token in {"}", "]"} and self._open:
            self._open.pop()
        if not token.isspace():
            self._last = "0" if number or token[0] in "-0123456789" else token
        elif self._last == "0":
            self._last = " "  # the number has ended
        return found.end()

    def _in_string(self, text: str, place: int, out: list[str]) -> int:
        if text[place] == '"':
            self._close(out)
            self._in_name, self._last = False, ""
            out.append('"')
            return place + 1
        found = _CHARACTERS.match(text, place)
        if found is None:
            return self._kept_or_broken(_CUT_ESCAPE.match(text, place), text, place, out)
        if self._window is None:
            out.append(found[0])
        else:
            out += map(_encoded, map(str, self._window.feed(json.loads(f'"{found[0]}"'))))
        return found.end()

    def _kept_or_broken(self, cut: re.Match[str] | None, text: str, place: int, out: list[str]) -> int:
        if cut is not None:
            self._kept = text[place:]
        else:
            self._break(text[place:], out)
        return len(text)

    def _break(self, text: str, out: list[str]) -> None:
        """Read the rest, which is not JSON, as plain text."""
        self._close(out)
        self._plain, self._window = True, self._make()
        out += map(str, self._window.feed(text))

    def _close(self, out: list[str]) -> None:
        if self._window is not None:
            rest = map(str, self._window.end())
            out += rest if self._plain else map(_encoded, rest)
            self.changed |= self._window.changed
            self._window = None
