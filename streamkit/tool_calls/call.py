"""The state of a call, and of a choice's calls, while they stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import define, field

from streamkit.events import Opaque, StopReasonSeen, ToolKind
from streamkit.tool_calls.text_buffer import LazyScanner, TextBuffer

#: A text of at least this length is no empty object, even with white space around it.
SHORT = 64
#: Maximum number of vendor-specific fields that a call is announced with. No vendor sends a tenth of this number.
EXTRAS = 64


class Call:
    """A tool call while it streams. ``out_of_order``: the call's first index differs from its place among the calls."""

    # These defaults are on the class, not set for each instance: creating a call then takes a third of the time.
    id: str | None = None
    id_made: bool = False  #: True if streamkit made the id, because the wire had sent none when the call was announced
    name: str | None = None
    extras: dict[str, Any] | None = None  #: vendor-specific fields of the call
    signature: Opaque | None = None  #: data of the call that only its vendor can read
    sent: bool = False  #: True if argument text was emitted
    ordinal: int | None = None  #: the call's number, set when the call is announced
    snapshot: bool = False  #: True if the text is one whole value, held until the call ends
    ended: bool = False
    #: True if the wire reports the end of this call. Without that report the call stays open, however the stream ends.
    is_ended_by_wire: bool = False
    #: True if the wire reported the call as incomplete: the call then never counts as ended, even if its text is whole JSON
    incomplete: bool = False
    finished: bool = False
    differs: bool = False  #: True if a whole text sent later differed from the fragments; counted once
    cumulative: bool = False  #: True if fragments repeat all earlier text
    doubt: int | None = None  #: offset of the last fragment, if it may have repeated all text before it
    echo: Call | None = None  #: the earlier call with this id and name, while this call may still repeat it
    said: str = ""  #: the arguments so far when a later call began to repeat this call; one copy for all such calls
    scanner: LazyScanner | None = None  #: created when completeness is first checked

    def __init__(
        self, choice: int, kind: ToolKind, index: int | None, *, anonymous: bool = False, out_of_order: bool = False
    ) -> None:
        self.choice = choice
        self.kind: ToolKind = kind
        self.index = index
        self.anonymous = anonymous
        self.out_of_order = out_of_order
        self.text = TextBuffer()  #: all text received
        self.unsent = TextBuffer()  #: text received but not yet emitted

    def add_extras(self, extras: Mapping[str, Any]) -> None:
        """Add the fields that the call does not have yet, up to ``EXTRAS`` fields in all."""
        if self.extras is None:
            self.extras = {}
        for name, value in extras.items():
            if len(self.extras) < EXTRAS:
                self.extras.setdefault(name, value)

    def append(self, fragment: str) -> None:
        self.text.append(fragment)
        self.unsent.append(fragment)
        if self.scanner is not None:
            self.scanner.append(fragment)

    def grow(self, fragment: str) -> None:
        """Add text that the caller emits at once."""
        self.text.append(fragment)
        if self.scanner is not None:
            self.scanner.append(fragment)

    def replace(self, text: str) -> None:
        self.text, self.unsent, self.scanner, self.doubt = TextBuffer(text), TextBuffer(text), None, None

    def become(self, text: str) -> None:
        """Replace the received text by ``text``, which must begin with the text already emitted."""
        sent = self.text.chars - self.unsent.chars
        self.text, self.unsent, self.scanner = TextBuffer(text), TextBuffer(text[sent:]), None

    def is_complete(self, depth: int) -> bool:
        """Return whether the text so far is one complete JSON object."""
        if self.scanner is None:
            self.scanner = LazyScanner(depth, self.text.whole())
        return self.scanner.complete_object

    @property
    def holds(self) -> bool:
        """True if unsent text must wait: it is a whole value, a first ``{}``, or may be a repetition."""
        if self.snapshot or self.doubt is not None:
            return True
        return not self.sent and 0 < self.unsent.chars < SHORT and self.holds_empty_object

    @property
    def holds_empty_object(self) -> bool:
        """True if the whole text so far is an unsent ``{}``, which may only precede the real arguments."""
        return not self.sent and 0 < self.unsent.chars < SHORT and self.unsent.whole().strip() == "{}"


@define(eq=False)
class ChoiceState:
    """The calls of one choice, and its stop reasons."""

    calls: list[Call] = field(factory=list)  #: in order of first mention
    by_index: dict[int, Call] = field(factory=dict)
    by_id: dict[str, Call] = field(factory=dict)
    last: Call | None = None
    announced: int = 0  #: number of announced calls, which come first in ``calls``
    reasons: list[StopReasonSeen] = field(factory=list)
    refused: bool = False
