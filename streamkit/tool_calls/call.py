"""What is known of a call, and of the calls of a choice, while the stream goes on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import define, field

from streamkit.events import Opaque, StopReasonSeen, ToolKind
from streamkit.tool_calls.text_buffer import LazyScanner, TextBuffer

#: An empty object with white space about it is shorter.
SHORT = 64
#: The most members of a vendor's own that a call is announced with: no vendor has a tenth of them.
EXTRAS = 64


class Call:
    """One call as it grows. ``out_of_order``: its first index was not its place among the calls."""

    # Of the class until they change: a call is made in a third of the time.
    id: str | None = None
    id_made: bool = False  #: the id is ours: the call was announced before the wire gave one
    name: str | None = None
    extras: dict[str, Any] | None = None  #: fields of the call that are the vendor's own
    signature: Opaque | None = None  #: what came with the call and only its vendor can read
    sent: bool = False  #: argument text was handed on
    ordinal: int | None = None  #: set when announced
    snapshot: bool = False  #: the text is one whole value, held until the call ends
    ended: bool = False
    #: The wire ends such calls: one that it did not end is open, whatever ends the stream.
    is_ended_by_wire: bool = False
    incomplete: bool = False  #: the wire said that it is: not ended, whatever its text looks like
    finished: bool = False
    differs: bool = False  #: a whole text that came later did, which is counted once
    cumulative: bool = False  #: a fragment said all text so far again
    doubt: int | None = None  #: where the last fragment begins, if it may have said all text before it again
    echo: Call | None = None  #: an earlier call with this id and name, until it is clear whether this one repeats it
    said: str = ""  #: its own arguments when such a call began: one copy for all of them
    scanner: LazyScanner | None = None  #: made by the first question

    def __init__(
        self, choice: int, kind: ToolKind, index: int | None, *, anonymous: bool = False, out_of_order: bool = False
    ) -> None:
        self.choice = choice
        self.kind: ToolKind = kind
        self.index = index
        self.anonymous = anonymous
        self.out_of_order = out_of_order
        self.text = TextBuffer()  #: everything received
        self.unsent = TextBuffer()  #: received, not yet handed on

    def add_extras(self, extras: Mapping[str, Any]) -> None:
        """Add members that are not there yet, as many as a call can have."""
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
        """Add text that is handed on at once."""
        self.text.append(fragment)
        if self.scanner is not None:
            self.scanner.append(fragment)

    def replace(self, text: str) -> None:
        self.text, self.unsent, self.scanner, self.doubt = TextBuffer(text), TextBuffer(text), None, None

    def become(self, text: str) -> None:
        """Take ``text``, which begins with all that was handed on, for all that came."""
        sent = self.text.chars - self.unsent.chars
        self.text, self.unsent, self.scanner = TextBuffer(text), TextBuffer(text[sent:]), None

    def is_complete(self, depth: int) -> bool:
        """Whether the text so far is one complete JSON object."""
        if self.scanner is None:
            self.scanner = LazyScanner(depth, self.text.whole())
        return self.scanner.complete_object

    @property
    def holds(self) -> bool:
        """Whether what is unsent waits for more, or the call's end: a whole value, a first ``{}``, what may be said again."""
        if self.snapshot or self.doubt is not None:
            return True
        return not self.sent and 0 < self.unsent.chars < SHORT and self.holds_empty_object

    @property
    def holds_empty_object(self) -> bool:
        """Whether ``{}`` is all that came so far, and was not handed on: it may be a prefix."""
        return not self.sent and 0 < self.unsent.chars < SHORT and self.unsent.whole().strip() == "{}"


@define(eq=False)
class Choice:
    """The calls of one choice, and what was said of its end."""

    calls: list[Call] = field(factory=list)  #: in the order of first mention
    by_index: dict[int, Call] = field(factory=dict)
    by_id: dict[str, Call] = field(factory=dict)
    last: Call | None = None
    announced: int = 0  #: how many of ``calls`` were announced: they are the first ones
    reasons: list[StopReasonSeen] = field(factory=list)
    refused: bool = False
