"""The state of a call, and of a choice's calls, while they stream.

``SettledCalls`` is a shortcut for calls in which a fragment can only be more argument text, as nearly all fragments are. A
call is settled once it is announced, its text is emitted as it arrives, and no other call waits for it. ``accumulate.py``
handles the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from attrs import define, field

from streamkit.events import Opaque, StopReasonSeen, ToolCallArguments, ToolCallDelta, ToolKind
from streamkit.limits import Limits
from streamkit.tool_calls.object_scanner import LazyScanner, TextBuffer
from streamkit.tool_calls.repeats import may_repeat

SHORT = 64  #: a text of at least this length is no empty object, even with white space around it
EXTRAS = 64  #: maximum number of vendor-specific fields of a call; no vendor sends a tenth of them


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
    is_ended_by_wire: bool = False  #: True if the wire reports the end of this call, which else stays open
    incomplete: bool = False  #: True if the wire reported the call as incomplete: it never counts as ended
    finished: bool = False
    truncated: bool = False  #: True if the call finished with the verdict ``truncated``
    differs: bool = False  #: True if a whole text sent later differed from the fragments; counted once
    cumulative: bool = False  #: True if fragments repeat all earlier text
    doubt: int | None = None  #: offset of the last fragment, if it may have repeated all text before it
    echo: Call | None = None  #: the earlier call with this id and name, while this call may still repeat it
    repeated: str = ""  #: the arguments so far when a later call began to repeat this call; one copy for all such calls
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
    def left_open(self) -> bool:
        """True if the wire reports the ends of calls, but has not reported the end of this one."""
        return self.is_ended_by_wire and not self.ended

    @property
    def holds(self) -> bool:
        """True if unsent text must wait: it is a whole value, a first ``{}``, or may be a repetition."""
        if self.snapshot or self.doubt is not None:
            return True
        return self.holds_empty_object

    @property
    def holds_empty_object(self) -> bool:
        """True if the whole text so far is an unsent ``{}``, which may only precede the real arguments. Free text is real."""
        if self.kind == "custom":
            return False
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


@define
class FragmentRun:
    """The fragments of calls in one read, each with the index of its call. Used between two machines; no stage yields it."""

    indices: list[int]
    texts: list[str]
    choice: int = 0


class SettledCalls:
    """The settled calls, keyed by index in ``calls``. The accumulator clears ``calls`` when a frame has other data of a call.

    ``careful``: every fragment needs the full check, so no call is ever settled.
    """

    def __init__(self, limits: Limits, *, careful: bool) -> None:
        self.chars = 0  #: number of characters of all arguments of the stream
        self._limits = limits
        self._careful = careful
        self.calls: dict[int | None, tuple[ChoiceState, Call]] = {}

    def settles(self, choice: ChoiceState, call: Call, size: int) -> bool:
        """Return whether a fragment of ``size`` characters, without an id or a name, only adds text to ``call``.

        Call ``may_repeat`` too: it tells whether the fragment may repeat earlier text.
        """
        chars, limits = call.text.chars, self._limits
        return (
            call.sent
            and not call.ended
            and not self._careful
            and not call.cumulative
            and call.doubt is None
            and not call.unsent.chars  # else this fragment would be emitted before the held text
            and choice.announced == len(choice.calls)  # no later call waits to be announced
            and chars + size <= limits.arguments_chars
            and self.chars + size <= limits.stream_arguments_chars
        )

    def add(self, choice: ChoiceState, delta: ToolCallDelta) -> int | None:
        """Do the same as ``grown`` for a call that is not yet known as settled. The fragment has no id and no name."""
        if not delta.arguments or delta.index is None:
            return None
        call = choice.by_index.get(delta.index)
        if call is None or not call.sent or not self.settles(choice, call, len(delta.arguments)):
            return None
        self.calls[delta.index] = choice, call
        return self.grown(delta)

    def grown(self, delta: ToolCallDelta) -> int | None:
        """Add a fragment to its settled call and return the call's ordinal; None if the fragment needs the full check."""
        if delta.id is not None or delta.name is not None or not delta.arguments or delta.snapshot:
            return None
        if delta.signature is not None or delta.extras is not None:
            return None
        return self.grow(delta.index, delta.arguments, delta.choice)

    def grow(self, index: int | None, fragment: str, number: int) -> int | None:
        """Add a fragment to the settled call at ``index`` of the choice ``number``. Return the call's ordinal, or None.

        None means that nothing was added. Only the conditions of ``settles`` that a fragment can change are checked, which
        saves three quarters of the time.
        """
        settled = self.calls.get(index)
        if settled is None:
            return None
        choice, call = settled
        size, chars, limits = len(fragment), call.text.chars, self._limits
        if (
            number != call.choice
            or (size >= chars and may_repeat(fragment, chars))
            or chars + size > limits.arguments_chars
            or self.chars + size > limits.stream_arguments_chars
        ):
            return None
        choice.last = call
        self.chars += size
        call.text.append(fragment)  # same as ``Call.grow``, inlined to save a call
        if call.scanner is not None:
            call.scanner.append(fragment)
        return call.ordinal

    def grown_together(self, choice: ChoiceState, run: FragmentRun) -> list[ToolCallArguments] | None:
        """Add many fragments and return one event for each call. If a fragment may be more than text, return None instead."""
        longest, total = max(map(len, run.texts)), sum(map(len, run.texts))
        by_index: dict[int, list[str]] = {index: [] for index in dict.fromkeys(run.indices)}
        if len(by_index) == 1:
            by_index[run.indices[0]] = run.texts
        else:
            append = {index: texts.append for index, texts in by_index.items()}
            for index, text in zip(run.indices, run.texts, strict=True):
                append[index](text)
        calls = {}
        for index in by_index:
            call = choice.by_index.get(index)
            # a fragment as long as all text before it may repeat that text; here every fragment is shorter
            if call is None or call.text.chars <= longest or not self.settles(choice, call, total):
                return None
            calls[index] = call
        if len({*map(id, calls.values())}) != len(calls):  # one call at two indices: keep its fragments in order
            return None
        self.chars += total
        choice.last = calls[run.indices[-1]]
        grown = []
        for index, call in calls.items():
            text = "".join(by_index[index])
            call.grow(text)
            grown.append(ToolCallArguments(cast("int", call.ordinal), text, call.choice))
        return grown
