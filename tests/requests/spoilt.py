"""Bodies with something odd in each of their places: what a reader must read or refuse, and never stumble over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

#: What may stand where something else should.
ODD = [
    None,
    0,
    -1,
    1.5,
    True,
    "",
    "x",
    [],
    {},
    [1],
    ["x"],
    [[]],
    [{"type": "text"}],
    {"type": "x"},
    {"type": 1},
    {"a": []},
]


def spoilt(value: Any) -> Iterator[Any]:
    """The value with something odd in each of its places, one after the other."""
    yield from ODD
    if isinstance(value, dict):
        yield from ({**value, name: odd} for name in value for odd in spoilt(value[name]))
    elif isinstance(value, list):
        yield from ([*value[:n], odd, *value[n + 1 :]] for n in range(len(value)) for odd in spoilt(value[n]))
