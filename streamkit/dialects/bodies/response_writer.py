"""The shared writer of whole responses, and helpers for dialects with one message in each choice.

Such a message has one place for each type of part, so the order of parts of different types is lost. Losses are counted as
in streams (``streams/event_encoder.py``).

Source: dialects.md §7.3 (calls in each dialect).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar, Final

from attrs import evolve

from streamkit.conversation.messages import (
    Choice,
    Part,
    Reasoning,
    RedactedReasoning,
    Refusal,
    Response,
    Text,
    ToolCall,
)
from streamkit.dialects.members.growing import Growing
from streamkit.dialects.profiles import Encoding
from streamkit.dialects.streams.event_encoder import failure_of
from streamkit.dialects.streams.media import with_own_media
from streamkit.events import Aside, MediaGenerated, ProviderFailed
from streamkit.report import StreamReport

#: The place of each type of part in the messages of most dialects.
PLACES: Final[Mapping[type, int]] = {Reasoning: 0, Text: 1, Refusal: 1, ToolCall: 2}


class ResponseWriter:
    """Writes one response. A dialect's subclass defines the body."""

    vendor: ClassVar[str]  #: the vendor whose extras and asides are written unchanged

    def __init__(self, response: Response, encoding: Encoding, report: StreamReport) -> None:
        self.response = response
        self.encoding = encoding
        self.report = report
        #: Whether the response is of this dialect's vendor. Only then are data written that no other vendor understands.
        self.own = response.vendor == self.vendor
        #: Members of the body that asides contained (``members``), and members joined from several asides (``growing``).
        self.members: dict[str, Any] = {}
        self.growing = Growing()

    @classmethod
    def encode_response(cls, response: Response, encoding: Encoding, report: StreamReport) -> dict[str, Any]:
        """Return a whole body as JSON values: a response, or the error that the response ended with."""
        writer = cls(response, encoding, report)
        failure = failure_of(response, report)
        if failure is not None:
            return writer.error(failure)
        choices = [with_own_media(choice, cls.vendor, writer.media_form, report) for choice in response.choices]
        writer.response = evolve(response, choices=choices)
        return writer.answer()

    def answer(self) -> dict[str, Any]:
        raise NotImplementedError

    def error(self, failure: ProviderFailed) -> dict[str, Any]:
        """Return the body of the provider's error, instead of a response."""
        raise NotImplementedError

    def media_form(self, _media: MediaGenerated, /) -> Sequence[Aside]:
        """Return this dialect's asides for media of another vendor's model; empty if the dialect has no place for media."""
        return ()

    def own_extras(self, extras: Mapping[str, Any] | None, loss: str = "metadata") -> Mapping[str, Any]:
        """Return members that only the response's vendor knows: all for the same vendor; for another, none and one loss."""
        if extras and not self.own:
            self.report.lose(loss)
            return {}
        return extras or {}

    def withhold(self, call: ToolCall) -> None:
        """Count a call that no client may run. Its arguments are kept in the report."""
        self.report.withhold("call_withheld", call.id, call.name, call.arguments)

    def place_of(self, part: Part) -> int | None:
        """Return the place of a part in a message; None if it has none. Overridden in dialects with other places."""
        return PLACES.get(type(part))

    def lose_order(self, choice: Choice) -> None:
        """Count a loss for each part that moves before an earlier part, because the message has fixed places."""
        places = [place for part in choice.parts if (place := self.place_of(part)) is not None]
        for before, after in pairwise(places):
            if after < before:
                self.report.lose("block_order")

    def lose_sealed(self, choice: Choice) -> None:
        """Count opaque reasoning and signatures as lost. For dialects without a place for them."""
        for part in choice.parts:
            if isinstance(part, RedactedReasoning):
                self.report.lose("reasoning_opaque")
            elif isinstance(part, Text | Reasoning | ToolCall) and part.signature is not None:
                self.report.lose("reasoning_signature")
