"""Adapt frames that pass within one dialect to what the client asked for: name the model, and drop unrequested usage.

A rule takes a frame's payload and returns the same payload, a payload to write instead, or ``b""`` if the frame is dropped.
The report counts no repair and no loss for this: no fault of the provider is repaired, and the report has the usage anyway.
"""

from __future__ import annotations

import re
from typing import Final

import orjson

from streamkit.dialects.base import Dialect, ModelPlace
from streamkit.dialects.members.values import json_object
from streamkit.dialects.profiles import Profile

_NAMED: Final = re.compile(rb'"model"\s*:\s*"[^"\s]')
_BLANK: Final = re.compile(rb'("model"\s*:\s*)(?:null|"\s*")')
_DELTA: Final = b'"delta"'
#: The end of an object after its last array: only members whose values are no arrays or objects. The match begins with the
#: ``]`` that ends the array, and the members follow, so that no part of it can be inside a string.
_LAST_MEMBERS: Final = re.compile(rb'\](?:,\s?"[^"\\]*":\s?(?:"[^"\\]*"|[\w.+-]+))+\}')
#: Maximum number of beginnings of frames, and of ends, that are remembered: enough for as many choices.
KNOWN: Final = 8
#: Maximum length in bytes of a remembered beginning or end.
KNOWN_BYTES: Final = 1024


def rule_for(dialect: Dialect, profile: Profile) -> Rule | None:
    """Return the rule for a stream of ``dialect`` to a client of ``profile``; None where every frame passes unchanged."""
    place = dialect.model_place if profile.model else None
    drops = dialect.usage_on_request and not profile.include_usage
    return Rule(place, profile.model, drops=drops) if place is not None or drops else None


class Rule:
    """The rule for one stream. ``place`` is where frames name ``model``; ``drops``: chunks with only usage are dropped."""

    def __init__(self, place: ModelPlace | None, model: str, *, drops: bool) -> None:
        #: A frame that begins with one of these passes unchanged: the rest of it can't matter to the rule.
        self.known: tuple[bytes, ...] = ()
        self._ends: tuple[bytes, ...] = ()  # a frame that ends with one of these names a model
        self._place = place
        self._model = model
        self._drops = drops
        self._needs = b'"%b"' % (place.within or place.beside).encode() if place is not None else b""

    def __call__(self, payload: bytes) -> bytes:
        if self._drops and _is_bare_usage(payload):
            return b""
        if self._place is not None:
            return self._name(payload, self._place)
        self._know(payload, 0)
        return payload

    def _name(self, payload: bytes, place: ModelPlace) -> bytes:
        if self._needs not in payload or payload.endswith(self._ends):
            return payload
        found = _NAMED.search(payload)
        # the count of braces shows that no other object begins before the name, so the name is the frame's
        if found is not None and payload.count(b"{", 0, found.start()) == (2 if place.within else 1):
            self._know(payload, found.end())
            return payload
        instead = _named(payload, place, self._model)
        if instead is payload and not place.within and found is not None:
            self._know_end(payload)
        return instead

    def _know(self, payload: bytes, end: int) -> None:
        """Remember the first ``end`` bytes of a frame, after which nothing matters to the rule except a delta."""
        if self._drops:
            delta = payload.find(_DELTA)
            if delta < 0:
                return
            end = max(end, delta + len(_DELTA))
        if end <= KNOWN_BYTES:
            self.known = (payload[:end], *self.known[: KNOWN - 1])

    def _know_end(self, payload: bytes) -> None:
        """Remember the end of a frame that names its model after other objects (Azure): later frames may end the same way."""
        end = payload[payload.rfind(b"]") :]
        if (
            len(end) <= KNOWN_BYTES
            and end.count(b'"model"') == 1
            and _NAMED.search(end)
            and _LAST_MEMBERS.fullmatch(end)
        ):
            self._ends = (end, *self._ends[: KNOWN - 1])


def _is_bare_usage(payload: bytes) -> bool:
    """Return whether a Chat chunk has usage and no choices."""
    if b'"usage"' not in payload or _DELTA in payload:
        return False
    chunk = json_object(payload)
    return chunk is not None and not chunk.get("choices") and bool(chunk.get("usage")) and not chunk.get("error")


def _named(payload: bytes, place: ModelPlace, model: str) -> bytes:
    """Return the payload with ``model`` where it names none. Other bytes stay the same, unless a member occurs twice."""
    frame = json_object(payload)
    holder = frame if frame is None or not place.within else frame.get(place.within)
    if not isinstance(holder, dict) or place.beside not in holder:
        return payload
    known = holder.get("model")
    if isinstance(known, str) and known.strip():
        return payload
    missing = "model" not in holder
    holder["model"] = model
    text = orjson.dumps(model)
    if missing:
        begin = re.search(rb'"%b"\s*:\s*\{' % place.within.encode() if place.within else rb"\{", payload)
        edited = payload if begin is None else payload[: begin.end()] + b'"model":%b,' % text + payload[begin.end() :]
    else:
        edited = _BLANK.sub(lambda found: found[1] + text, payload, count=1)
    return edited if json_object(edited) == frame else orjson.dumps(frame)
