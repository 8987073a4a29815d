"""Whole responses, in neutral words: what a stream added up to.

Source: dialects.md §0.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import define, field

from streamkit.events import (
    Aside,
    ProviderFailed,
    ReasoningOpaque,
    ReasoningSignature,
    StopReason,
    ToolKind,
    UsageReported,
    Verdict,
)
from streamkit.report import StreamReport


@define
class ToolCall:
    """One call. ``arguments`` is the text as received; act on it only if ``verdict`` allows and the end was clean."""

    index: int
    id: str
    name: str
    arguments: str
    kind: ToolKind = "function"
    verdict: Verdict | None = None


@define
class Choice:
    """What the model said in one choice."""

    index: int = 0
    role: str = "assistant"
    text: str = ""
    reasoning: str = ""
    refusal: str = ""
    tool_calls: list[ToolCall] = field(factory=list)
    stop_reason: StopReason | None = None  #: None unless the stream ended cleanly
    native_stop_reason: str | None = None
    stop_sequence: str | None = None
    signatures: list[ReasoningSignature] = field(factory=list)
    opaque: list[ReasoningOpaque] = field(factory=list)
    asides: list[Aside] = field(factory=list)


@define
class Response:
    """A whole response, read to its end. ``clean`` is False for a stream that was cut or that reported an error."""

    dialect: str
    report: StreamReport
    id: str | None = None
    model: str | None = None
    created: int | None = None
    extras: Mapping[str, Any] = field(factory=dict)  #: constant fields of the response that are the vendor's own
    choices: list[Choice] = field(factory=list)
    usage: UsageReported | None = None
    clean: bool = False
    error: ProviderFailed | None = None

    @property
    def text(self) -> str:
        """The text of the first choice."""
        return self.choices[0].text if self.choices else ""

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The calls of the first choice."""
        return self.choices[0].tool_calls if self.choices else []
