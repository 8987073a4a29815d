"""Extract one value of a JSON document as text: parsing would change ``1.0``, ``1e21`` and 2^64.

A dialect that sends arguments as an object needs this, since the original text must be passed on. Unicode escapes become
characters (a model reads the text in later turns, and an escape costs it six characters); everything else keeps its bytes.

The document is walked once: containers on the path are entered, and regular expressions skip everything else. Of equal keys
the last one counts, as in ``orjson`` and ``json``, even if an earlier one led further along the path. Keys are compared after
decoding. The memory is the length of the path. Nothing is validated: the document must be valid JSON in UTF-8 without a byte
order mark.

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
#: Either consecutive escapes of whole characters or a slash (``whole``), or any other escape. Half of a surrogate pair is no
#: character, so it counts as another escape.
_escapes: Final = re.compile(
    r"(?P<whole>(?:\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4}|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})++|\\/)|\\."
).sub

_OPENERS: Final = frozenset(b"[{")
_CLOSERS: Final = frozenset(b"]}")
_OBJECT: Final = -1  #: in ``entered``, the mark for an object; an array has the number of its items so far instead


def value_text(document: bytes, *path: str | int) -> str:
    """Return the text of the value at ``path`` (keys and indices from 0). Invalid bytes become U+FFFD.

    Raise ``KeyError`` for a missing key and ``IndexError`` for a missing index; the message names the step.
    """
    found = slice(0)
    lacking = 0
    entered: list[int] = []
    at: int | None = _between(document, 0).end()
    while at is not None:
        found, lacking = slice(0), len(entered)  # a value on the path; discard the result from an earlier, equal key
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
    """Return a JSON text with its escapes replaced by characters, as ``orjson.dumps`` writes them; the rest is unchanged."""
    if "\\u" not in text and "\\/" not in text:  # nearly always true
        return text
    return _escapes(lambda found: _written(found["whole"]) if found["whole"] else found[0], text)


def _written(escapes: str) -> str:
    return orjson.dumps(orjson.loads(f'"{escapes}"')).decode()[1:-1]


def lenient_text(document: bytes, *path: str | int) -> str:
    """Same as ``value_text``, with escapes as characters; an object may replace a list, as in ``ValueTexts``."""
    try:
        return plain_text(value_text(document, *path))
    except LookupError:
        return plain_text(ValueTexts(document).text(*path))


def member_texts(document: bytes, name: str, count: int) -> list[str] | None:
    """Return the texts of all ``count`` members called ``name``, in order; None if that needs a walk over the document.

    The name is searched for as plain text. If it occurs exactly ``count`` times, no other string contains it. For a chunk with
    a call of the usual length this saves nine tenths of the time of ``value_text``.
    """
    _, *rests = document.decode("utf-8", "replace").split(f'"{name}"')
    if len(rests) != count or (b"\\" in document and b"\\u" in document):  # a name may be written with escapes
        return None
    values = [text.lstrip(_WHITE).removeprefix(":").lstrip(_WHITE) for text in rests]
    try:
        return [plain_text(value[: _decode_value(value)[1]]) for value in values]
    except (ValueError, RecursionError):  # a value has thousands of digits or levels
        return None


class ValueTexts:
    """The texts of many values of one document, as ``value_text`` returns them. Each container on a path is walked once.

    A path may skip the index of a list with one item. If an object replaces a list, the object is the first item, or its
    numeric keys are the indices.
    """

    def __init__(self, document: bytes) -> None:
        self._document = document
        self._members: dict[tuple[str | int, ...], dict[str | int, slice]] = {}

    def text(self, *path: str | int) -> str:
        """Return the text of the value at ``path``. Raise ``KeyError`` for a missing step."""
        if not path:
            return value_text(self._document)
        return self._document[self._found(path)].decode("utf-8", "replace")

    def span(self, *path: str | int) -> slice:
        """Return the position of the value at ``path``; an empty path means the whole document. Raise as ``text`` does."""
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
    """Return the document with ``members`` set in the object at ``path``: replaced in place, or added at its beginning.

    Everything else is unchanged. Raise ``KeyError`` for a missing step.
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
    """Return the positions of the values in the container at ``at``, keyed by key or index; empty for a scalar."""
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
    """Return the text of each item of an array's text, in one walk. Use this before searching in many items."""
    document = array.encode()
    return [document[span] for span in _member_spans(document, 0).values()]


def _next_on_path(document: bytes, at: int, entered: list[int], path: tuple[str | int, ...]) -> int | None:
    """Skip values off the path. Return the index of the next value on the path, or None at the end of the document."""
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
    if document[at] not in _OPENERS:
        return _scalar(document, at).end()
    depth = 0
    for landmark in _landmarks(document, at):
        first = document[landmark.start()]
        depth += (first in _OPENERS) - (first in _CLOSERS)
        if not depth:
            return landmark.end()
    return len(document)
