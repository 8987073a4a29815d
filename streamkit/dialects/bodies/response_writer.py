"""Writing whole responses: what all writers do alike, and those of dialects with one message a choice.

Such a message has one place for each kind of part, so that the order among kinds is lost. What is lost is counted as the
encoder of streams does (``streams/event_encoder.py``).

Source: dialects.md §7.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

#: Where kinds of parts stand in most messages: reasoning, then text, then calls.
PLACES: Final[Mapping[type, int]] = {Reasoning: 0, Text: 1, Refusal: 1, ToolCall: 2}


class ResponseWriter:
    """Writes one response. A dialect's own says what its body is."""

    #: Whose extras and asides are written as they came.
    vendor: ClassVar[str]

    def __init__(self, response: Response, encoding: Encoding, report: StreamReport) -> None:
        self.response = response
        self.encoding = encoding
        self.report = report
        #: Whether the response is this vendor's, so that what only this vendor knows is written again.
        self.own = response.vendor == self.vendor
        #: Members of the body that were asides, and what grows by several of them.
        self.members: dict[str, Any] = {}
        self.growing = Growing()

    @classmethod
    def encode_response(cls, response: Response, encoding: Encoding, report: StreamReport) -> dict[str, Any]:
        """A whole body as JSON values: an answer, or the error that the response ended with."""
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
        """The body of the error that took the place of an answer."""
        raise NotImplementedError

    def media_form(self, _media: MediaGenerated) -> Sequence[Aside]:
        """The dialect's own asides that say another vendor's media; none where it has no place for them."""
        return ()

    def own_extras(self, extras: Mapping[str, Any] | None, loss: str = "metadata") -> Mapping[str, Any]:
        """Members that only the vendor of the response knows: all for a client of that vendor, else none and a loss."""
        if extras and not self.own:
            self.report.lose(loss)
            return {}
        return extras or {}

    def withhold(self, call: ToolCall) -> None:
        """Count a call that no client may run, and keep its text in the report."""
        self.report.withhold("call_withheld", call.id, call.name, call.arguments)

    def place_of(self, part: Part) -> int | None:
        """The place of a part in a message; None for one that has no place among others. Overridden where it is not usual."""
        return PLACES.get(type(part))

    def lose_order(self, choice: Choice) -> None:
        """Count the parts that are written in front of one that came before them."""
        order = 0
        for part in choice.parts:
            place = self.place_of(part)
            if place is None:
                continue
            if place < order:
                self.report.lose("block_order")
            order = place

    def lose_sealed(self, choice: Choice) -> None:
        """Count what only its vendor can read, for a dialect that has a place neither for it nor for signatures."""
        for part in choice.parts:
            if isinstance(part, RedactedReasoning):
                self.report.lose("reasoning_opaque")
            elif isinstance(part, Text | Reasoning | ToolCall) and part.signature is not None:
                self.report.lose("reasoning_signature")
