"""Decide how much of a request's body a recording keeps: all, its shape, or nothing.

Source: observe.md O25.
"""

from __future__ import annotations

import json
from typing import Any, Final, Literal, TypeAlias

import orjson

#: ``full``: the whole body. ``shape``: only member names and types (``shape_of``). ``none``: nothing.
Bodies: TypeAlias = Literal["full", "shape", "none"]
#: The deepest nesting of a body whose shape is kept.
DEPTH: Final = 100


def kept_body(body: bytes, bodies: Bodies) -> bytes | None:
    """Return the body or its shape. Return None if ``bodies`` is none, or the shape needs JSON of ``DEPTH`` levels at most."""
    if bodies == "full":
        return body
    try:
        return None if bodies == "none" else orjson.dumps(shape_of(json.loads(body)))
    except (ValueError, RecursionError):
        return None


def shape_of(value: Any, depth: int = DEPTH) -> Any:
    """Return a JSON value with each text, number and boolean replaced by the name of its type. Keep member names.

    Raises RecursionError for a value with more than ``depth`` levels.
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
