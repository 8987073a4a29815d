"""What a reader of ``outputs.py`` makes of a translation."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, field

from tests.vectors.field.case import Said, Text, Thinking


@define
class Seen:
    said: list[Said] = field(factory=list)
    stop: str | None = None
    error: str | None = None
    usage: Mapping[str, object] | None = None


def flat(thinking: str, text: str, signature: str = "") -> list[Said]:
    return [*([Thinking(thinking, signature)] if thinking else []), *([Text(text)] if text else [])]
