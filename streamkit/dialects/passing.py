"""What a client asked for, held against frames that pass within one dialect: a name of the model, and a usage chunk or none.

A rule takes a frame's payload and returns it, the payload to write in its place, or nothing where the frame is not to pass.
Nothing is counted, as between dialects: no fault of the provider is mended, and its usage stands in the report all the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import orjson

from streamkit.dialects.base import Dialect, ModelPlace, Profile

Rule: TypeAlias = Callable[[bytes], bytes]
_NAMED: Final = re.compile(rb'"model"\s*:\s*"[^"\s]')
_BLANK: Final = re.compile(rb'("model"\s*:\s*)(?:null|"\s*")')


def rule_for(dialect: Dialect, profile: Profile) -> Rule | None:
    """What a stream of ``dialect`` needs for a client of ``profile``; None where every frame may pass as it is."""
    place = dialect.model_place if profile.model else None
    drops = dialect.usage_on_request and not profile.include_usage
    if place is None:
        return _without_usage if drops else None
    named = _naming(place, profile.model)
    if not drops:
        return named
    return lambda payload: named(payload) if _without_usage(payload) else b""


def _without_usage(payload: bytes) -> bytes:
    """Nothing for a Chat chunk that has usage and no choices."""
    if b'"usage"' not in payload or b'"delta"' in payload:
        return payload
    chunk = _object(payload)
    bare = chunk is not None and not chunk.get("choices") and chunk.get("usage") and not chunk.get("error")
    return b"" if bare else payload


def _naming(place: ModelPlace, model: str) -> Rule:
    within = b'"%b"' % place.within.encode()
    beside = b'"%b"' % place.beside.encode()

    def name(payload: bytes) -> bytes:
        if within not in payload if place.within else beside not in payload:
            return payload
        found = _NAMED.search(payload)
        # no other object begins before it, so that it is the frame's own
        if found is not None and payload.count(b"{", 0, found.start()) == (2 if place.within else 1):
            return payload
        return _named(payload, place, model)

    return name


def _named(payload: bytes, place: ModelPlace, model: str) -> bytes:
    """The payload with ``model`` where it names none; every other byte of it stays, unless a name stands twice."""
    frame = _object(payload)
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
    return edited if _object(edited) == frame else orjson.dumps(frame)


def _object(payload: bytes) -> dict[str, Any] | None:
    try:
        value = orjson.loads(payload)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None
