"""The parts of a message's content, as requests and whole responses write them.

Text and thinking stand in one list, in order. A thinking is a list itself: our reasoning is the text in it, and what else is
in it are asides, which join the thinking they follow. A signature closes a thinking.

Source: dialects.md §6.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamkit.dialects.bodies.request_writer import merged
from streamkit.dialects.mistral.wire import CONTENT, THINKING, THINKING_MEMBER
from streamkit.events import Aside

PLAIN = {"type", "text"}


class Chunks:
    def __init__(self) -> None:
        self.written: list[dict[str, Any]] = []
        self._thinking: dict[str, Any] | None = None  #: the last part, if it is a thinking that is not closed
        self._joins = False  #: whether further text belongs to it

    @property
    def content(self) -> str | list[dict[str, Any]]:
        """A string for no text or one plain text, else the list."""
        if not self.written:
            return ""
        if len(self.written) == 1 and self.written[0].keys() == PLAIN:
            return str(self.written[0]["text"])
        return self.written

    def add(self, part: dict[str, Any]) -> None:
        self.written.append(part)
        self._thinking = None

    def think(self, text: str, signature: str | None = None, members: Mapping[str, Any] | None = None) -> None:
        """Text of a thinking, and what closes it. Each is a thinking of its own, but behind an aside of one."""
        thinking = self._thinking if self._joins else None
        if thinking is None:
            thinking = self._open()
        if text:
            thinking["thinking"].append({"type": "text", "text": text})
        merged(thinking, members or {})
        if signature is not None:
            thinking["signature"] = signature
            self._thinking = None
        self._joins = False

    def aside(self, aside: Aside) -> bool:
        """Write a part of the content, a part of a thinking, or a member of one; False for what is none of these."""
        raw, name = aside.raw, aside.type
        is_part = isinstance(raw, dict) and isinstance(raw.get("type"), str)
        if name.startswith(THINKING_MEMBER):
            thinking = self._thinking or self._open()
            return bool(thinking.setdefault(name.removeprefix(THINKING_MEMBER), raw) == raw)
        if name.startswith(THINKING) and is_part:
            thinking = self._thinking or self._open()
            thinking["thinking"].append(raw)
            self._joins = True
            return True
        if name.startswith(CONTENT) and is_part:
            self.add(raw)
            return True
        return False

    def _open(self) -> dict[str, Any]:
        thinking: dict[str, Any] = {"type": "thinking", "thinking": []}
        self.add(thinking)
        self._thinking = thinking
        self._joins = False
        return thinking
