"""What a recording keeps of a request's body: all of it, its shape, or nothing.

Source: observe.md O25.
"""

from __future__ import annotations

import json
from typing import Any, Final, Literal, TypeAlias

import orjson

#: All, the shape (``shape_of``), or nothing.
Bodies: TypeAlias = Literal["full", "shape", "none"]
#: Levels of a body whose shape is kept.
DEPTH: Final = 100


def kept_body(body: bytes, bodies: Bodies) -> bytes | None:
    """What is kept of a body; None: nothing, as of the shape of one that is no JSON, or has more than ``DEPTH`` levels."""
    if bodies == "full":
        return body
    try:
        return None if bodies == "none" else orjson.dumps(shape_of(json.loads(body)))
    except (ValueError, RecursionError):
        return None


def shape_of(value: Any, depth: int = DEPTH) -> Any:
    """A JSON value with the names of types in place of texts, numbers and booleans; members keep their names.

    Raises RecursionError for one of more levels than ``depth``.
    """
    if value is None:
        return None
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    if not depth:
        raise RecursionError
    if isinstance(value, list):
        return [shape_of(item, depth - 1) for item in value]
    return {name: shape_of(inner, depth - 1) for name, inner in value.items()}
