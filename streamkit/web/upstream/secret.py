"""A key that is not shown by accident. ``reveal`` returns it; ``repr``, ``str`` and formatting return ``[secret]``.

It is not a ``str``, so no join, slice, serialiser or f-string can write it by accident.

Source: limits.md T6.
"""

from __future__ import annotations

import hmac
from typing import Final

SHOWN: Final = "[secret]"


class Secret:
    """A text that is shown as ``[secret]``. Comparison takes the same time wherever two texts differ."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return SHOWN

    def __format__(self, spec: str) -> str:
        return format(SHOWN, spec)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._text.encode(), other._text.encode())

    def __hash__(self) -> int:
        return hash((Secret, self._text))
