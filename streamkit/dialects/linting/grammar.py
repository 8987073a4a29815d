"""What the checkers of all dialects share: the loop over frames, the parsing of JSON, and the list of violations.

A checker judges a stream by its dialect's grammar and by the official clients, not by what streamkit's decoders tolerate. So
it uses none of their code, only the tables in ``wire.py``. An ``error`` violates the grammar or breaks a client; a ``note``
is common in the field and accepted by every known client. A checker never stops: it checks each frame, even after a violation.

Source: dialects.md §0.3, §0.4.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, TypeAlias, TypeGuard

import orjson
from attrs import define, field, frozen

from streamkit.dialects.linting.explain import COMMON_HINTS, Hints
from streamkit.dialects.members.known import Event
from streamkit.framing.frame import Frame
from streamkit.limits import DEFAULT_LIMITS
from streamkit.text.quoting import shortened
from streamkit.tool_calls.check import refuse_constant

Severity: TypeAlias = Literal["error", "note"]

INPUT_CHARS = DEFAULT_LIMITS.arguments_chars  #: the most characters of a call's input that are kept for parsing

#: Rules of every dialect. Each dialect includes them in its own table.
COMMON_RULES: Mapping[str, str] = {
    "not_utf8": "A payload is UTF-8: strict clients raise at the first other byte (§0.4).",
    "not_json": "A payload is one whole JSON text, without `NaN` or `Infinity` (§0.3).",
    "not_object": "A payload is a JSON object, not a list or a bare value (§0.3).",
    "truncated": "The stream reaches its completion point, or an error frame reports why it does not (§7.6).",
}

#: Rules that a checker cannot test, because only the decoder shows that it cannot read a stream.
READING_RULES: Mapping[str, str] = {
    "unreadable": "streamkit can read the stream to its end: no frame is invalid, and no limit is exceeded (§0.3)."
}


@frozen
class Violation:
    """A violation of one rule by one frame of a stream."""

    rule: str  #: short, stable name
    message: str
    offset: int  #: byte of the stream at which the frame begins
    frame: int  #: number of the frame, from 0
    #: ``error``, or ``note`` if it is common and every known client accepts it: then the stream is not called broken.
    severity: str = "error"


class GrammarChecker:
    """The loop of a checker. It turns frames into JSON objects for ``check``, which reports violations with ``broken``."""

    #: Each rule of the dialect and its description. ``broken`` accepts no other rule.
    rules: ClassVar[Mapping[str, str]]
    hints: ClassVar[Hints] = COMMON_HINTS  #: Hints for violations of each rule. See ``explain.py``.

    def __init__(self) -> None:
        self.frame = Frame(b"")
        self._number = -1
        self._found: list[Violation] = []
        self._identity: dict[str, str] = {}
        self._call_ids: set[str] = set()

    def feed(self, frames: list[Frame], /) -> list[Violation]:
        for frame in frames:
            self.frame = frame
            self._number += 1
            self.take(frame)
        return self._take_found()

    def finish(self) -> list[Violation]:
        self.close()
        return self._take_found()

    def take(self, frame: Frame) -> None:
        """Check one frame. Overridden in dialects with payloads that are not JSON, or with rules about framing."""
        document = self.load(frame)
        if document is not None:
            self.check(document)

    def check(self, document: dict[str, Any]) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Report violations that only the end of the input shows. Subclasses may override this."""

    def broken(self, rule: str, message: str, severity: Severity = "error") -> None:
        """Report that a frame breaks ``rule``: the current frame or, at the end of the input, the last one."""
        if rule not in self.rules:
            raise LookupError(f"{type(self).__name__} has no rule {rule!r}")
        self._found.append(Violation(rule, message, self.frame.offset, max(self._number, 0), severity))

    def event_type(self, document: dict[str, Any], severity: Severity, *, name: str = "type") -> str | None:
        """Return the type of an event; None if it has none. A different ``event:`` line is reported with ``severity``."""
        kind = document.get(name)
        if not is_filled(kind):
            self.broken("event", f"{name} is {shown(kind)}")
            return None
        if self.frame.event != kind:
            self.broken("event", f"the event line says {shown(self.frame.event)}, the data {shown(kind)}", severity)
        return kind

    def judge(self, event: Event | None, document: dict[str, Any]) -> None:
        """Check an event with the method that its row in ``EVENTS`` names. Without a method, it is not checked."""
        judge = None if event is None else getattr(self, event.method, None)
        if judge is not None:
            judge(document)

    def member(self, document: Mapping[str, Any], name: str, is_right: Callable[[object], bool], rule: str) -> bool:
        """Return whether the member ``name`` passes ``is_right``. If not, report that ``rule`` is broken."""
        value = document.get(name)
        if not is_right(value):
            self.broken(rule, f"{name} is {shown(value)}")
            return False
        return True

    def counts(self, usage: object, *needed: str, may_lack: bool = True) -> dict[str, Any] | None:
        """Return the object of token counts; None if it is missing or not an object. Another type breaks the rule ``usage``.

        A ``needed`` count that is not an integer also breaks it, and so does a missing object unless it ``may_lack``.
        """
        if isinstance(usage, dict):
            for name in needed:
                self.member(usage, name, is_index, "usage")
            return usage
        if usage is not None or not may_lack:
            self.broken("usage", f"usage is {shown(usage)}")
        return None

    def identity(self, document: dict[str, Any], name: str) -> None:
        """Check a member that must have the same value in every payload. Otherwise the rule ``identity`` is broken."""
        value = document.get(name)
        if not is_text(value):
            self.broken("identity", f"{name} is {shown(value)}")
        elif (before := self._identity.setdefault(name, value)) != value:
            self.broken("identity", f"{name} changes from {shown(before)} to {shown(value)}", "note")
            self._identity[name] = value

    def typed(self, document: dict[str, Any], name: str, rule: str) -> dict[str, Any] | None:
        """Return the member ``name`` if it is an object with a ``type``. Otherwise report that ``rule`` is broken."""
        value = document.get(name)
        if isinstance(value, dict) and is_filled(value.get("type")):
            return value
        self.broken(rule, f"{name} is {shown(value)}")
        return None

    def identify(self, rule: str, name: str, call_id: str) -> None:
        """Check the id of a new call, which is in the member ``name``. If an earlier call had this id, ``rule`` is broken."""
        if call_id in self._call_ids:
            self.broken(rule, f"two calls have the {name} {shown(call_id)}")
        self._call_ids.add(call_id)

    def load(self, frame: Frame) -> dict[str, Any] | None:
        """Return the payload. If it is not a JSON object, report this and return None."""
        try:
            document = load_json(frame.data)
        except UnicodeDecodeError as error:
            self.broken("not_utf8", f"byte {error.start} of the payload is not UTF-8")
        except ValueError as error:
            self.broken("not_json", f"{error}: {shown(frame.text)}")
        else:
            if isinstance(document, dict):
                return document
            self.broken("not_object", f"the payload is {shown(document)}")
        return None

    def _take_found(self) -> list[Violation]:
        found, self._found = self._found, []
        return found


class PayloadChecker(GrammarChecker):
    """Checks that each payload is a JSON object or ``[DONE]``, for a dialect that has no checker."""

    rules: ClassVar = COMMON_RULES

    def take(self, frame: Frame) -> None:
        if frame.data.strip() not in {b"", b"[DONE]"}:
            self.load(frame)


@define
class CallInput:
    """The input of a call, whose fragments must form one JSON object or nothing. A very long input is not checked."""

    fragments: list[str] = field(factory=list)
    chars: int = 0
    _judged: tuple[int, str | None] = (-1, None)  # the number of characters at the last check, and its result

    def append(self, fragment: str) -> None:
        """Add a fragment. An empty one changes nothing."""
        self.chars += len(fragment)
        if fragment and self.chars <= INPUT_CHARS:
            self.fragments.append(fragment)

    def unparsable(self) -> str | None:
        """Return the text if it is neither empty nor one JSON object; otherwise None."""
        chars, found = self._judged
        if chars != self.chars:  # the result is kept, because a call may end twice
            text = "".join(self.fragments)
            found = None if self.chars > INPUT_CHARS or is_object(text) else text
            self._judged = self.chars, found
        return found


def load_json(text: bytes | str) -> Any:
    """Return the value of a JSON text. Raises ValueError if it is not JSON, or UnicodeDecodeError if it is not UTF-8."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        # the grammar allows two things that orjson refuses: an escaped half of a surrogate pair, and 1E400
        text = text.decode("utf-8") if isinstance(text, bytes) else text
        try:
            return json.loads(text, parse_constant=refuse_constant)
        except RecursionError:
            raise ValueError("nested too deeply to be checked") from None


def is_object(text: str) -> bool:
    """Return whether a text of arguments is empty or one JSON object."""
    try:
        return not text or isinstance(load_json(text), dict)
    except ValueError:
        return False


def shown(value: object) -> str:
    """Return a value in at most 60 characters, for messages."""
    return shortened(ascii(value[:60] if isinstance(value, str) else value), 60)


def is_index(value: object) -> bool:
    """Return whether a value is an integer from 0 on. A boolean is not."""
    return type(value) is int and value >= 0


def is_text(value: object) -> TypeGuard[str]:
    """Whether a value is a string."""
    return isinstance(value, str)


def is_filled(value: object) -> TypeGuard[str]:
    """Return whether a value is a string that is not blank."""
    return isinstance(value, str) and bool(value.strip())
