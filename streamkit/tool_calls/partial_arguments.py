"""Build the value of a JSON text, of the arguments of each call, and of a text in JSON, while they arrive in fragments.

``JSONScanner`` checks each fragment against the grammar, so the builder gets only valid text. It puts each value into the
innermost open container as soon as a part of the value is known: a container at its bracket, a string as far as it is
received, a literal when it is complete, a key with the first part of its value. A number appears at the delimiter after it (12
may become 123) or, at the top level, at ``finish``; with ``numbers="growing"``, as the longest number that its text begins
with. Of equal keys the last wins, as in ``json``. A whole number beyond the digits that the interpreter converts (4,300 by
default) is an exact ``Decimal``; any other number is a ``float``, and 1E400 is infinite. After a fault the value stays as it
was. Nothing is guessed: no bracket, word or digit is supplied.

The time of ``feed`` is linear in its fragment; each change also costs the depth of its path. The containers are live and not
copied. Reading a string that is being received costs up to its length each time; read ``changes`` if you need only new text.
The memory is that of the value, a truncated escape (11 characters) and an unfinished number.

The stage ``partial_arguments`` emits one ``PartialArguments`` for each call that grew in a batch, after the last event of the
batch. If the call finished in the same batch, ``PartialArguments`` comes before its ``ToolCallFinished``, so that
``StreamEnded`` stays last. Every other event passes unchanged. Calls of custom tools are free text and have no value.
``encode`` does not accept ``PartialArguments``. The stage ``partial_output`` does the same for the text of each choice.

Source: RFC 8259 §2-§8; design.md §4.
"""

from __future__ import annotations

import json
import re
from collections import UserString
from decimal import Decimal
from enum import Enum
from typing import Any, Final, Literal, TypeAlias

from attrs import define

from streamkit.events import (
    Event,
    OutputChecked,
    ProviderFailed,
    ResponseFinished,
    StreamEnded,
    TextDelta,
    ToolCallArguments,
    ToolCallFinished,
    ToolCallStarted,
)
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.machines import Link
from streamkit.pipeline import Stage
from streamkit.tool_calls.json_scanner import JSONScanner, State, runs
from streamkit.tool_calls.object_scanner import TextBuffer

Path: TypeAlias = tuple[str | int, ...]

_between: Final = runs(r"[ \t\n\r,:]*+")
_scalar: Final = runs(r"[^ \t\n\r,\]}]*+")
#: The characters of a string that can be decoded now: without a truncated escape, or a high surrogate at the end.
_characters: Final = runs(
    r'(?s)(?:[^"\\]++|\\[^u]|\\u(?:(?![dD][89abAB]).{4}|[dD][89abAB]..(?=[^\\]|\\(?:[^u]|u.{4}))))*+'
)
_decode: Final = json.JSONDecoder().raw_decode
_number: Final = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?")
_WORDS: Final = {"true": True, "false": False, "null": None}
GROWING_CHARS: Final = 4300  #: a longer number appears once it has ended: each update converts all digits


class Missing(Enum):
    """The type of ``MISSING``, which is the value before there is any; JSON's ``null`` is None."""

    MISSING = "missing"

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__


MISSING: Final = Missing.MISSING


class GrowingText(UserString):
    """A string that is still being received: it has ``str``'s methods, equals a ``str``, and converts by ``str(text)``.

    At the closing quote a plain ``str`` replaces it in its container; until then ``json.dumps`` needs ``default=str``. ``len``
    takes constant time. Reading joins the text received since the last reading to the text read then. CPython does this in
    place, in time for the new part alone, if no other code keeps the text read before. Only CPython does so, without a
    guarantee.
    """

    _text: str
    _tail: TextBuffer
    __hash__ = None  # type: ignore[assignment] # the text grows

    @property  # UserString's methods read an attribute of this name
    def data(self) -> str:
        if self._tail.chars:
            text, self._text = self._text, ""
            text += self._tail.take()  # in place while only the local name holds it: 1 MB, 75,000 readings, 0.1 s
            self._text = text
        return self._text

    @data.setter
    def data(self, text: str) -> None:
        self._text = text
        self._tail = TextBuffer()

    def __len__(self) -> int:
        return len(self._text) + self._tail.chars

    def append(self, fragment: str) -> None:
        self._tail.append(fragment)


@define
class Change:
    """One change that a fragment made to the value at ``path``.

    ``begun``: a container, or a string that did not end in its first fragment; ``value`` is the live object.
    ``grown``: ``value`` is the text added to a string, or the whole growing number so far.
    ``ended``: ``value`` is final. A string, number or literal that began and ended in one fragment has only this change.
    """

    kind: Literal["begun", "grown", "ended"]
    path: Path
    value: Any


class PartialJSON:
    """Builds the value of one JSON text from its fragments.

    ``changes`` are the changes that the last fragment made, in order. ``state`` says whether the text is incomplete,
    complete or malformed so far. For a malformed text, ``reason`` describes the fault, and ``position`` is the index of
    the invalid character.
    """

    def __init__(self, *, depth: int = 128, numbers: Literal["ended", "growing"] = "ended") -> None:
        self.changes: list[Change] = []
        self._scanner = JSONScanner(depth=depth)
        self._growing = numbers == "growing"
        self._top: list[Any] = []  # holds the whole value, so that the value has a container like any other
        self._open: list[Any] = [self._top]
        self._steps: list[Any] = [0]  # the current index or key of each open container; None: a key follows
        self._quoted = False  # inside a string or a key
        self._writing = False  # inside a string, a number or a literal
        self._cut = ""  # the end of a string that can't be decoded yet
        self._text: GrowingText | None = None  # the string or key that began in an earlier fragment
        self._raw = TextBuffer()  # the number or literal that began in an earlier fragment

    @property
    def state(self) -> State:
        return self._scanner.state

    @property
    def reason(self) -> str | None:
        return self._scanner.reason

    @property
    def position(self) -> int:
        return self._scanner.position

    @property
    def value(self) -> Any:
        """The value so far, or ``MISSING``. It is live: it grows with the text, and you must not change it."""
        return self._top[0] if self._top else MISSING

    def snapshot(self) -> Any:
        """Return a copy of the value so far, made of plain ``dict``, ``list`` and ``str``. Takes time for the whole value."""
        whole = self._top.copy()
        copies: list[Any] = [whole]
        while copies:
            container = copies.pop()
            for step, value in list(container.items() if type(container) is dict else enumerate(container)):
                if type(value) is dict or type(value) is list:
                    container[step] = value.copy()
                    copies.append(container[step])
                elif type(value) is GrowingText:
                    container[step] = str(value)
        return whole[0] if whole else MISSING

    @property
    def path(self) -> Path:
        """The keys and indices of the innermost value that has begun and not ended; empty at the top level.

        A number or a literal is included from its first character, before it appears in ``value``.
        """
        return tuple(self._steps[1:] if self._writing else self._steps[1:-1])

    def is_final(self, path: Path) -> bool:
        """Return whether the value at ``path`` has ended. Such a value changes only if its key is repeated."""
        written = len(self._steps) - 1 if self._writing else len(self._steps) - 2
        if len(path) <= written and all(step == self._steps[at] for at, step in enumerate(path, 1)):
            return False
        value: Any = self._top
        for step in (0, *path):
            if type(value) is dict:
                there = step in value
            else:
                there = type(value) is list and isinstance(step, int) and 0 <= step < len(value)
            if not there:
                return False
            value = value[step]
        return True

    def feed(self, fragment: str) -> State:
        """Take one more fragment. After a fault, text is ignored."""
        self.changes = []
        walked = self._scanner.position
        state = self._scanner.feed(fragment)
        text, self._cut = self._cut + fragment[: self._scanner.position - walked], ""
        i = 0
        while i < len(text):
            if self._quoted:
                i = self._string(text, i)
            elif self._writing:
                i = self._bare(text, i)
            else:
                i = self._token(text, i)
        return state

    def finish(self) -> State:
        """End the text: a number at the top level ends here, and no other value does."""
        self.changes = []
        state = self._scanner.finish()
        if state == "complete" and self._writing:
            self._end(_converted(self._raw.take()))
        return state

    # Each of these methods takes a text and an index, and returns the index to continue at.

    def _token(self, text: str, i: int) -> int:
        i = _between(text, i).end()
        c = text[i : i + 1]
        if c == '"':
            self._quoted = True
            self._writing = self._steps[-1] is not None
            return self._string(text, i + 1)
        if c in ("{", "["):
            container: Any = {} if c == "{" else []
            self._show(container)
            self._note("begun", container)
            self._open.append(container)
            self._steps.append(None if c == "{" else 0)
        elif c in ("}", "]"):
            self._steps.pop()
            self._end(self._open.pop())
        elif c:
            self._writing = True
            return self._bare(text, i)
        return i + 1

    def _string(self, text: str, i: int) -> int:
        end = _characters(text, i).end()
        part = text[i:end]
        if "\\" in part:
            part = _decode(f'"{part}"')[0]
        if text[end : end + 1] == '"':
            self._end_string(part)
            return end + 1
        if self._text is None:
            self._text = GrowingText("")
            if self._writing:
                self._show(self._text)
                self._note("begun", self._text)
        self._grow(self._text, part)
        self._cut = text[end:]
        return len(text)

    def _grow(self, text: GrowingText, part: str) -> None:
        if part:
            text.append(part)
            if self._writing:
                self._note("grown", part)

    def _end_string(self, part: str) -> None:
        self._quoted = False
        if self._text is not None:
            self._grow(self._text, part)
            part, self._text = self._text.data, None
        if self._writing:
            self._end(part)
        else:
            self._steps[-1] = part

    def _bare(self, text: str, i: int) -> int:
        end = _scalar(text, i).end()
        before = self._raw.chars
        if not before and end < len(text):
            self._end(_converted(text[i:end]))
            return end
        self._raw.append(text[i:end])
        if end < len(text):
            self._end(_converted(self._raw.take()))
        elif before < (GROWING_CHARS if self._growing else 5):
            self._unended(self._raw.whole()[:GROWING_CHARS])
        return end

    def _unended(self, raw: str) -> None:
        if raw in _WORDS:
            self._end(_WORDS[self._raw.take()])
        elif self._growing and (number := _number.match(raw)):
            value = _converted(number[0])
            self._show(value)
            self._note("grown", value)

    def _show(self, value: Any) -> None:
        container, step = self._open[-1], self._steps[-1]
        if type(container) is list and step == len(container):
            container.append(value)
        else:
            container[step] = value

    def _end(self, value: Any) -> None:
        self._show(value)
        self._note("ended", value)
        self._writing = False
        self._steps[-1] = None if type(self._open[-1]) is dict else self._steps[-1] + 1

    def _note(self, kind: Literal["begun", "grown", "ended"], value: Any) -> None:
        self.changes.append(Change(kind, tuple(self._steps[1:]), value))


def _converted(raw: str) -> int | float | Decimal | None:
    if raw in _WORDS:
        return _WORDS[raw]
    if "." in raw or "e" in raw or "E" in raw:
        return float(raw)
    try:
        return int(raw)
    except ValueError:  # the interpreter converts no more digits, because the conversion takes quadratic time
        return Decimal(raw)


@define
class PartialArguments:
    """The arguments of a call so far.

    ``value`` and ``partial`` always contain everything that was received so far, so they keep growing after the event
    was created. ``value`` is ``MISSING`` until the value begins. ``path`` is the path of the value that was being
    received when the event was created. ``partial`` is a ``PartialJSON``. Its ``changes`` are the changes that the latest
    fragment made. ``partial.is_final(path)`` returns whether the value at ``path`` has ended, and ``partial.snapshot()``
    returns a copy of the value.
    """

    call: int
    choice: int
    value: Any
    path: Path
    partial: PartialJSON


@define
class PartialOutput:
    """The value of a choice's text so far, if the text is JSON. The members are as in ``PartialArguments``."""

    choice: int
    value: Any
    path: Path
    partial: PartialJSON


WatchedEvent: TypeAlias = Event | PartialArguments
"""The events that ``partial_arguments`` yields."""
SeenOutput: TypeAlias = Event | PartialOutput
"""The events that ``partial_output`` yields."""


class _Watcher(Link):
    """Passes events, and adds one for each JSON text that grew in a read. A text has a key: its choice and its call."""

    waits = True

    def __init__(self, *, limits: Limits = DEFAULT_LIMITS, numbers: Literal["ended", "growing"] = "ended") -> None:
        self._depth = limits.json_depth
        self._numbers: Literal["ended", "growing"] = numbers
        self._open: dict[tuple[int, int], PartialJSON] = {}
        self._grown: dict[tuple[int, int], list[str]] = {}  # the fragments in the current read

    def _begin(self, key: tuple[int, int]) -> None:
        self._open[key] = PartialJSON(depth=self._depth, numbers=self._numbers)

    def _grow(self, key: tuple[int, int], fragment: str) -> None:
        self._grown.setdefault(key, []).append(fragment)
        self.holds = True

    def _flush(self, key: tuple[int, int]) -> None:
        if key in self._grown:
            partial = self._open[key]
            partial.feed("".join(self._grown.pop(key)))
            self.emit(self._seen(key, partial))

    def end_read(self) -> None:
        for key in [*self._grown]:
            self._flush(key)
        self.holds = False

    def _seen(self, key: tuple[int, int], partial: PartialJSON) -> PartialArguments | PartialOutput:
        raise NotImplementedError


class ArgumentsWatcher(_Watcher):
    """The machine of ``partial_arguments``."""

    def push(self, event: Event, /) -> None:
        if isinstance(event, ToolCallStarted) and event.kind == "function":
            self._begin((event.choice, event.call))
        elif isinstance(event, ToolCallArguments) and (event.choice, event.call) in self._open:
            self._grow((event.choice, event.call), event.fragment)
        elif isinstance(event, ToolCallFinished):
            self._flush((event.choice, event.call))
            self._open.pop((event.choice, event.call), None)
        self.emit(event)

    def _seen(self, key: tuple[int, int], partial: PartialJSON) -> PartialArguments:
        choice, call = key
        return PartialArguments(call, choice, partial.value, partial.path, partial)


class OutputWatcher(_Watcher):
    """The machine of ``partial_output``."""

    def push(self, event: Event, /) -> None:
        if isinstance(event, TextDelta):
            key = event.choice, 0
            if key not in self._open:
                self._begin(key)
            self._grow(key, event.text)
        elif isinstance(event, OutputChecked | ResponseFinished):
            self._flush((event.choice, 0))
        elif isinstance(event, ProviderFailed | StreamEnded):
            self.end_read()
        self.emit(event)

    def _seen(self, key: tuple[int, int], partial: PartialJSON) -> PartialOutput:
        return PartialOutput(key[0], partial.value, partial.path, partial)


def partial_arguments(
    *, limits: Limits = DEFAULT_LIMITS, numbers: Literal["ended", "growing"] = "ended"
) -> Stage[list[Event], list[WatchedEvent]]:
    """Create a stage that reports the arguments of calls while the arguments are being received.

    Put the stage after ``accumulate_tool_calls`` or ``check_json``. The stage adds one ``PartialArguments`` to a batch
    for each call whose arguments grew in that batch. ``numbers`` says when a number appears in the value. ``ended``:
    after the character that follows the number has been received, because until then another digit could follow.
    ``growing``: while the digits of the number are still arriving.
    """
    return Stage("partial_arguments", lambda _report: ArgumentsWatcher(limits=limits, numbers=numbers), takes="events")


def partial_output(
    *, limits: Limits = DEFAULT_LIMITS, numbers: Literal["ended", "growing"] = "ended"
) -> Stage[list[Event], list[SeenOutput]]:
    """Create a stage that reports JSON text while the text is being received.

    Put the stage after ``accumulate_tool_calls`` or ``check_output``. The stage adds one ``PartialOutput`` to a batch
    for each choice whose text grew in that batch. The deltas of a choice are joined in the order in which they arrive.
    If the text does not begin like JSON, ``value`` is ``MISSING``. ``numbers`` means the same as in
    ``partial_arguments``.
    """
    return Stage("partial_output", lambda _report: OutputWatcher(limits=limits, numbers=numbers), takes="events")
