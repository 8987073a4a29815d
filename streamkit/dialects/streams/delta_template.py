"""Templates: the bytes around the text of a payload. In similar payloads, only the text between these bytes is parsed.

Most payloads of a stream differ only in their text, and the text is a tenth of their bytes. The bytes around it are learned
from one payload by an exact check: the same bytes around a mark must parse to the same document with the mark in place of the
text. JSON is deterministic, so a payload that begins and ends with these bytes, and has one JSON value between them, is the
same document with another text. OpenAI's padding (``obfuscation``) may differ, too: it consists of letters and digits, and
ends at a quote. A text may occur twice in a payload.

Source: design.md §9; RFC 8259 §2.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import orjson
from attrs import define, field

from streamkit.dialects.members.values import DEPTH

#: Written in place of a delta, to find the bytes around it (``MARKED`` is the same value, parsed).
MARK: Final = b'{"\\u0000":0}'
MARKED: Final = {"\0": 0}
#: A delta of at most this size cannot be nested too deeply: each level takes two bytes, and a few levels are around it.
FLAT_BYTES: Final = 2 * (DEPTH - 8)
PAD: Final = b'"obfuscation":"'  #: the bytes before the characters of a payload's padding
loads, dumps = orjson.loads, orjson.dumps
_decode_value = json.JSONDecoder().raw_decode


@define
class DeltaTemplate:
    """The bytes ``before`` and ``behind`` (after) a delta. If the delta occurs twice, ``middle`` has the bytes between."""

    before: bytes
    behind: bytes
    kind: type
    middle: bytes = field(default=b"", kw_only=True)
    padded: bool = field(default=False, kw_only=True)

    def texts(self, payloads: Sequence[bytes]) -> list[bytes]:
        """Return the JSON of the deltas of the first payloads, up to the first payload that does not match the template."""
        before, behind = self.before, self.behind
        if self.padded:
            payloads = all_unpadded(payloads)
        begin, end = len(before), -len(behind)
        texts = [payload[begin:end] for payload in payloads]
        if before + (behind + before).join(texts) + behind == b"".join(payloads):  # all at once: a third of the time
            return texts
        alike = [payload.startswith(before) and payload.endswith(behind) for payload in payloads]
        return texts[: alike.index(False)] if False in alike else texts

    def deltas(self, payloads: Sequence[bytes]) -> list[Any]:
        """Return the parsed deltas of the first payloads, up to the first delta of another type or above ``FLAT_BYTES``."""
        return _parsed(self.texts(payloads), self.kind)


def unpadded(payload: bytes) -> bytes:
    """Return a payload without the characters of its padding; the whole payload if it has no padding."""
    at = payload.rfind(PAD)
    begin = at + len(PAD)
    end = payload.find(b'"', begin)
    return payload[:begin] + payload[end:] if at > 0 and payload[begin:end].isalnum() else payload


def once(text: bytes, middle: bytes) -> bytes:
    """Return the delta that occurs before and after ``middle`` in a text; empty if the two differ."""
    half = text[: (len(text) - len(middle)) // 2]
    return half if text == half + middle + half else b""


def all_unpadded(payloads: Sequence[bytes]) -> Sequence[bytes]:
    """Return several payloads without their padding. This takes three quarters of the time of single calls."""
    cut = [payload.rpartition(PAD) for payload in payloads]
    ends = [tail.partition(b'"') for _, _, tail in cut]
    letters = b"".join([letters for letters, _, _ in ends])
    if letters and not letters.isalnum():  # the padding is not plain letters, or a payload has none
        return [*map(unpadded, payloads)]
    return [head + pad + quote + rest for (head, pad, _), (_, quote, rest) in zip(cut, ends, strict=True)]


def learned(payload: bytes, document: dict[str, Any], *paths: Sequence[str | int]) -> DeltaTemplate | None:
    """Return the bytes around the value at a path of a payload, or around two equal values at two paths.

    Return None if the payload cannot be rebuilt from these bytes. ``document`` is the parsed payload, and is changed.
    """
    body = unpadded(payload)
    padded, payload = body != payload, body
    if padded:
        document["obfuscation"] = ""
    places: list[tuple[int, int]] = []
    kind: type = str
    for *steps, name in paths:
        owner: Any = document
        for step in steps:
            owner = owner[step]
        place = _place_of(payload, name, owner[name], places[0][1] if places else 0)
        if place is None:
            return None
        places.append(place)
        kind, owner[name] = type(owner[name]), MARKED
    places.sort()
    before, behind = payload[: places[0][0]], payload[places[-1][1] :]
    middle = payload[places[0][1] : places[-1][0]]
    try:
        marked = loads(before + (MARK + middle + MARK if middle else MARK) + behind)
    except ValueError:
        return None
    return DeltaTemplate(before, behind, kind, middle=middle, padded=padded) if marked == document else None


def _place_of(payload: bytes, name: str | int, value: Any, after: int) -> tuple[int, int] | None:
    """Return where the value of the first such member ``after`` a byte begins and ends, or of the first in the payload."""
    member, text = dumps(name) + b":", dumps(value)
    begin = payload.find(member, after)
    begin = (payload.find(member) if begin < 0 else begin) + len(member)
    if payload.startswith(text, begin):  # nearly always: the bytes are as orjson would write them
        end = begin + len(text)
    else:
        begin += payload.startswith(b" ", begin)
        end = begin + _value_bytes(payload[begin:])
    return None if begin < len(member) or end < begin else (begin, end)


def _parsed(texts: list[bytes], kind: type) -> list[Any]:
    """Return the parsed values of the first texts, up to one of another type or one that is too long."""
    deltas: list[Any] = []
    if texts and max(map(len, texts)) <= FLAT_BYTES:
        try:
            deltas = list(map(loads, texts))
        except ValueError:
            pass
        else:
            if {*map(type, deltas)} == {kind}:
                return deltas
            deltas.clear()
    for text in texts:
        try:
            delta = loads(text) if len(text) <= FLAT_BYTES else None
        except ValueError:
            break
        if type(delta) is not kind:
            break
        deltas.append(delta)
    return deltas


def _value_bytes(text: bytes) -> int:
    """Return the number of bytes of the JSON value at the start of ``text``; -1 if there is no value."""
    read = text.decode("utf-8", "surrogateescape")
    try:
        _, end = _decode_value(read)
    except ValueError:
        return -1
    return len(read[:end].encode("utf-8", "surrogateescape"))
