"""The bytes of one value inside a JSON document, as text.

Theory: a parsed value has lost what its text said: ``1.0`` and ``1e21`` come back spelled otherwise, 2^64 as a float.
When a dialect sends arguments as an object, the text of that object must be passed on, so it is cut out of the frame.

A model reads that text, in the arguments of an earlier call or in a result, and an escape is six letters to it. So escapes of
the wire become characters, and all else keeps its bytes.

Rules. One walk over the document: containers on the path are entered, everything else is skipped by regular expression.
Of duplicate keys the last one counts, as it does for ``orjson`` and ``json``, even where an earlier one led further
along the path. Keys are compared decoded. Memory is the path, not the nesting of the document.

Refuses: to check. The document has been parsed before and is UTF-8 without a byte order mark; for anything else the
outcome is undefined.

Source: RFC 8259 §2-§7; design.md §4.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final, cast

import orjson

from streamkit.text.quoting import quoted
from streamkit.tool_calls.json_scanner import runs

_STRING: Final = rb'"(?:[^"\\]++|\\.)*+"'
_between: Final = runs(rb"[ \t\n\r,]*+")
_key: Final = runs(rb"(?s)(" + _STRING + rb")[ \t\n\r]*+:[ \t\n\r]*+")
_scalar: Final = runs(rb"(?s)" + _STRING + rb"|[^ \t\n\r,\]}]++")
_WHITE: Final = " \t\n\r"
_decode_value: Final = json.JSONDecoder().raw_decode
_landmarks: Final = re.compile(_STRING + rb"|[\[\]{}]", re.DOTALL).finditer
#: Escapes of whole characters in a row, a slash, or another escape; half of a surrogate pair, which is no character, is one.
_escapes: Final = re.compile(
    r"(?P<whole>(?:\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4}|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})++|\\/)|\\."
).sub

_OPENERS: Final = frozenset(b"[{")
_CLOSERS: Final = frozenset(b"]}")
#: Instead of the number of items so far: this container is an object.
_OBJECT: Final = -1


def value_text(document: bytes, *path: str | int) -> str:
    """Return the text of the value that ``path`` (keys and positions from 0) leads to, ill-formed bytes as U+FFFD.

    A step that leads nowhere raises ``KeyError`` (a key) or ``IndexError`` (a position) that names it.
    """
    found = slice(0)
    lacking = 0
    entered: list[int] = []
    at: int | None = _between(document, 0).end()
    while at is not None:
        # a value on the path, perhaps not the first there: what an earlier one with the same key led to is void
        found, lacking = slice(0), len(entered)
        if lacking == len(path):
            end = _skip(document, at)
            found, at = slice(at, end), end
        elif document[at] in _OPENERS:
            entered.append(_OBJECT if document[at] == ord("{") else 0)
            at += 1
        else:
            at = _skip(document, at)
        at = _next_on_path(document, at, entered, path)
    if found.stop:
        return document[found].decode("utf-8", "replace")
    step = path[lacking]
    message = f"no {quoted(step)} at {quoted(list(path[:lacking]))}"
    raise KeyError(message) if isinstance(step, str) else IndexError(message)


def plain_text(text: str) -> str:
    """Return the same JSON text with characters in the place of escapes, as ``orjson.dumps`` writes them; all else stays."""
    if "\\u" not in text and "\\/" not in text:  # nearly always
        return text
    return _escapes(lambda found: _written(found["whole"]) if found["whole"] else found[0], text)


def _written(escapes: str) -> str:
    """Return the characters of escapes, with an escape for those that need one."""
    return orjson.dumps(orjson.loads(f'"{escapes}"')).decode()[1:-1]


def lenient_text(document: bytes, *path: str | int) -> str:
    """Return the same as ``value_text``, escapes as characters; a list may be an object, as in ``ValueTexts``."""
    try:
        return plain_text(value_text(document, *path))
    except LookupError:
        return plain_text(ValueTexts(document).text(*path))


def member_texts(document: bytes, name: str, count: int) -> list[str] | None:
    """The texts of all members called ``name``, in order, which are ``count``; None if they can't be told without a walk.

    Their name is looked for as it is written: there is none that another string holds if it stands there as often as they are.
    Gain: nine tenths of the time of ``value_text`` where a chunk has a call of the usual length.
    """
    _, *behind = document.decode("utf-8", "replace").split(f'"{name}"')
    if len(behind) != count or (b"\\" in document and b"\\u" in document):  # a name may be written with escapes
        return None
    values = [text.lstrip(_WHITE).removeprefix(":").lstrip(_WHITE) for text in behind]
    try:
        return [plain_text(value[: _decode_value(value)[1]]) for value in values]
    except (ValueError, RecursionError):  # a number of thousands of digits
        return None


class ValueTexts:
    """The texts of many values of one document, as ``value_text`` gives them: each container on the way is walked once.

    A path leads through a list of one item as if the item stood there, and where an object stands in the place of a list, it
    is the first item, or has the items by number.
    """

    def __init__(self, document: bytes) -> None:
        self._document = document
        self._members: dict[tuple[str | int, ...], dict[str | int, slice]] = {}

    def text(self, *path: str | int) -> str:
        """The text of the value that ``path`` leads to. A step that leads nowhere raises ``KeyError``."""
        if not path:
            return value_text(self._document)
        return self._document[self._found(path)].decode("utf-8", "replace")

    def span(self, *path: str | int) -> slice:
        """Where that value stands; an empty path leads to the document's own. Raises as ``text`` does."""
        return self._found(path) if path else slice(_between(self._document, 0).end(), len(self._document))

    def _found(self, path: tuple[str | int, ...]) -> slice:
        *_, step = path
        around = path[:-1]
        if around not in self._members:
            start = self._found(around).start if around else _between(self._document, 0).end()
            self._members[around] = _member_spans(self._document, start)
        members = self._members[around]
        if step not in members and isinstance(step, str) and [*members] == [0]:
            return self._found((*around, 0, step))
        if step not in members and isinstance(step, int) and 0 not in members:
            if members and all(isinstance(name, str) and name.isdigit() for name in members):
                return [*members.values()][step]
            if around and not step:
                return self._found(around)
        return members[step]


def with_members(document: bytes, members: Mapping[str, bytes], *path: str | int) -> bytes:
    """The document with these texts as members of the object that ``path`` leads to: in their place, else at its beginning.

    All else of it stays as it is. A step that leads nowhere raises ``KeyError``.
    """
    start = ValueTexts(document).span(*path).start
    spans = _member_spans(document, start)
    added = [b"%b:%b" % (json.dumps(name).encode(), text) for name, text in members.items() if name not in spans]
    pieces = [document[: start + 1], b",".join(added), b"," if added and spans else b""]
    at = start + 1
    for name in sorted(spans.keys() & members.keys(), key=lambda name: spans[name].start):
        pieces += [document[at : spans[name].start], members[str(name)]]
        at = spans[name].stop
    return b"".join([*pieces, document[at:]])


def _member_spans(document: bytes, at: int) -> dict[str | int, slice]:
    """Where the values of the container at ``at`` stand, by key or position; a scalar has none."""
    spans: dict[str | int, slice] = {}
    if document[at] not in _OPENERS:
        return spans
    is_object = document[at] == ord("{")
    at = _between(document, at + 1).end()
    while document[at] not in _CLOSERS:
        step: str | int = len(spans)
        if is_object:
            key = _key(document, at)
            step, at = _decoded(key[1]), key.end()
        end = _skip(document, at)
        spans[step] = slice(at, end)
        at = _between(document, end).end()
    return spans


def item_texts(array: str) -> list[bytes]:
    """Return the text of each item of an array's text, in one walk: to look into many of them, cut it up first."""
    document = array.encode()
    return [document[span] for span in _member_spans(document, 0).values()]


def _next_on_path(document: bytes, at: int, entered: list[int], path: tuple[str | int, ...]) -> int | None:
    """Leave and skip what is not on the path. The index of the next value on it, or None at the document's end."""
    while entered:
        at = _between(document, at).end()
        if document[at] in _CLOSERS:
            entered.pop()
            at += 1
            continue
        step: str | int = entered[-1]
        if step == _OBJECT:
            key = _key(document, at)
            step, at = _decoded(key[1]), key.end()
        else:
            entered[-1] += 1
        if step == path[len(entered) - 1]:
            return at
        at = _skip(document, at)
    return None


def _decoded(key: bytes) -> str:
    text = key.decode("utf-8", "replace")
    return cast("str", json.loads(text, strict=False)) if "\\" in text else text[1:-1]


def _skip(document: bytes, at: int) -> int:
    """The end of the value that begins at ``at``."""
    if document[at] not in _OPENERS:
        return _scalar(document, at).end()
    depth = 0
    for landmark in _landmarks(document, at):
        first = document[landmark.start()]
        depth += (first in _OPENERS) - (first in _CLOSERS)
        if not depth:
            return landmark.end()
    return len(document)
