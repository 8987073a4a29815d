"""Colours on a terminal."""

from __future__ import annotations

import os
from typing import TextIO


def takes_colour(output: TextIO) -> bool:
    """Return whether to write colours: ``output`` is a terminal, and the user's environment has no ``NO_COLOR``."""
    return output.isatty() and not os.environ.get("NO_COLOR")


def painted(text: str, code: str) -> str:
    """Return ``text`` in the colour of an ANSI code (SGR); without a code or a text, return it unchanged."""
    return f"\x1b[{code}m{text}\x1b[0m" if code and text else text
