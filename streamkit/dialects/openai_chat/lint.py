"""Check Chat chunks against the needs of openai-python and its ``.stream()`` helper.

The helper concatenates every string of a delta, and uses a call's index as its place in a list. So role, id and name may be
in one chunk only, and indices have no gaps from 0, in order of appearance. ``ChunkChecker`` is for Mistral too, whose chunks
contain choices in the same form.

Source: dialects.md §0.3, §0.4, §1.1, §1.2, §1.8, §6.3, §7.6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from attrs import define, field

from streamkit.dialects.linting import (
    COMMON_HINTS,
    COMMON_RULES,
    CUT,
    KNOWN,
    READS,
    TORN,
    UNFINISHED,
    GrammarChecker,
    Hint,
    Hints,
    Severity,
    is_filled,
    is_index,
    is_text,
    like,
    shown,
)
from streamkit.framing.frame import Frame

DONE = b"[DONE]"
#: Rules of both dialects. Each dialect's table has its own rules first, and then these.
CHUNK_RULES: Mapping[str, str] = {
    "after_finish": "A choice has no content after its finish reason (§1.1).",
    "after_error": "Only `[DONE]` may follow an error frame (§1.1).",
    "done": "A stream ends with `[DONE]`, unless an error frame ended it (§1.1).",
    "after_done": "Nothing follows `[DONE]` (§1.1).",
}
CHUNK_HINTS: Hints = {
    **COMMON_HINTS,
    "truncated": (
        like("finish_derived"),
        Hint(UNFINISHED, 61),
        Hint(CUT, 114, "the stream has no choice"),
        Hint(CUT, 65),
    ),
    "unterminated": (like("last_event_unterminated"), Hint(TORN, 106), Hint(CUT, 106)),
    "empty_data": (Hint(READS, 100),),
    "identity": (like("field_invalid"),),
    "delta": (like("delta_missing"), like("field_invalid")),
    "finish_reason": (
        like("field_invalid"),
        Hint(READS, 57, "finish_reason is"),
        Hint(READS, 58, "a second finish reason"),
    ),
    "after_finish": (Hint(READS, 59), like("after_error")),
    "error": (like("error_shape"),),
    "after_error": (like("after_error"),),
    "done": (),
    "after_done": (like("after_end"), like("after_error")),
}


class Finishing(Protocol):
    """A choice of a stream; ``finished`` is its finish reason, if it has one."""

    finished: object


C = TypeVar("C", bound=Finishing)


class ChunkChecker(GrammarChecker, Generic[C]):
    """Checks the chunks of one stream. Subclasses check the content of a chunk."""

    new_choice: Callable[[], C]  #: makes the record of a choice before its first chunk

    def __init__(self) -> None:
        super().__init__()
        self.failed = False  # whether an error frame was received
        self.choices: dict[int, C] = {}  #: choices of the stream so far, by index
        self._done = False

    def unterminated(self, frame: Frame) -> Severity:  # noqa: ARG002 - for those that override it
        """Return how serious a missing blank line after the last event is. Most clients read the event anyway."""
        return "note"

    def take(self, frame: Frame) -> None:
        if not frame.terminated:
            self.broken("unterminated", "no blank line after the last event", self.unterminated(frame))
        if self._done:
            self.broken("after_done", f"after [DONE]: {shown(frame.text)}")
        elif frame.data == DONE:
            self._done = True
        elif self.failed:
            self.broken("after_error", f"after an error frame: {shown(frame.text)}")
        elif not frame.data or frame.data.isspace():
            self.broken("empty_data", "the payload is blank")
        else:
            super().take(frame)

    def close(self) -> None:
        if self.failed:
            return
        open_ones = [number for number, choice in self.choices.items() if not choice.finished]
        if open_ones:
            self.broken("truncated", f"choice {open_ones[0]} has no finish reason")
        elif not self.choices:
            self.broken("truncated", "the stream has no choice")
        elif not self._done:
            self.broken("done", "the stream ends without [DONE]", "note")

    def same(self, document: dict[str, Any]) -> list[Any]:
        """Check the members that must be equal in all chunks. Return the choices."""
        self.identity(document, "id")
        self.identity(document, "model")
        choices = document.get("choices")
        if isinstance(choices, list):
            return choices
        self.broken("choices", f"choices is {shown(choices)}")
        return []

    def entry(self, entry: object) -> tuple[C, dict[str, Any], dict[str, Any]] | None:
        """Return the record, the entry and its delta for an entry of ``choices``; None if its index is invalid."""
        if not isinstance(entry, dict) or not is_index(entry.get("index")):
            self.broken("choices", f"a choice without an index: {shown(entry)}")
            return None
        choice = self.choices.get(entry["index"])
        if choice is None:
            choice = self.choices[entry["index"]] = self.new_choice()
        delta = entry.get("delta")
        if isinstance(delta, dict):
            return choice, entry, delta
        self.broken("delta", f"delta is {shown(delta)}")
        return choice, entry, {}

    def tool_calls(self, entries: object, *, bare: bool) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Yield each entry of ``tool_calls`` and its function. ``bare``: an entry may lack a function."""
        if not isinstance(entries, list | None):
            self.broken("tool_calls", f"tool_calls is {shown(entries)}")
            return
        for entry in entries or ():
            function = entry.get("function", {} if bare else None) if isinstance(entry, dict) else None
            if isinstance(function, dict):
                yield entry, function
            else:
                self.broken("tool_calls", f"an entry of tool_calls is {shown(entry)}")

    def finish_reason(self, choice: C, reason: object) -> None:
        """Check the finish reason of a choice, and keep it. A choice must have only one."""
        if reason is None:
            return
        if not is_filled(reason):
            self.broken("finish_reason", f"finish_reason is {shown(reason)}")
            return
        if choice.finished is not None:
            same = reason == choice.finished  # OpenRouter repeats the finish reason next to the usage
            self.broken("finish_reason", f"a second finish reason: {shown(reason)}", "note" if same else "error")
        choice.finished = reason


RULES: dict[str, str] = {
    **COMMON_RULES,
    "unterminated": (
        "A blank line ends each event, including the last: openai-python drops an event without this line (§0.4)."
    ),
    "empty_data": "No event has an empty payload: openai-python cannot parse it as JSON and raises an error (§0.4).",
    "object": 'Each chunk has `"object": "chat.completion.chunk"` (§1.2).',
    "identity": "`id` and `model` are strings, and the same in all chunks (§1.2).",
    "choices": "`choices` is a list of objects, each with a non-negative integer `index` (§1.2).",
    "delta": "Each choice has a `delta`, which is an object (§0.4, §1.2).",
    "text": "`content` and `refusal` are strings or null (§1.2).",
    "role": (
        "Only the first delta of a choice has a `role`: "
        "openai-python's `.stream()` joins repeated roles into one text (§0.4)."
    ),
    "finish_reason": "`finish_reason` is a string or null. Only one chunk of a choice has a string (§1.1).",
    "tool_calls": "`tool_calls` is a list of objects, and each `function` is an object (§1.2).",
    "call_index": (
        "Each fragment has an `index`. Calls have the `index` 0, 1, 2 … in the order in which they appear (§0.4)."
    ),
    "call_start": (
        "The first fragment of a call has the type `function`, and an `id` and a name that are not blank (§1.8)."
    ),
    "call_id": "No two calls of a choice have the same `id` (§1.8).",
    "call_repeat": (
        "Later fragments of a call do not repeat its `id` or its name, and their type is not null (§0.4, §1.8)."
    ),
    "arguments": "`arguments` is a string with a piece of JSON text (§1.2).",
    "usage": (
        "The object `usage` is in a separate chunk with `choices: []`. "
        "In other chunks, `usage` is null or absent (§1.1)."
    ),
    "after_usage": (
        "No chunk without usage follows the usage chunk: openai-python's `.stream()` would forget the usage (§0.4)."
    ),
    "error": "An error frame has an object `error` with a string `message` (§1.4).",
    **CHUNK_RULES,
}
HINTS: Hints = {
    **CHUNK_HINTS,
    "object": (Hint(KNOWN, 70), like("error_shape")),
    "choices": (
        like("error_shape"),
        like("choice_index_missing"),
        like("index_invalid"),
        like("field_invalid"),
        Hint(READS, 71, "choices is None"),
    ),
    "text": (like("content_as_list"), like("field_invalid")),
    **dict.fromkeys(("role", "after_usage"), ()),
    "tool_calls": (like("field_invalid"), like("arguments_not_text")),
    "call_index": (
        like("index_missing", says="index is"),
        like("index_invalid", says="index is"),
        like("index_reused", 14, "a new call"),
        like("index_changed", says="a new call"),
        Hint(READS, 14, "a new call"),
    ),
    "call_start": (
        like("id_repeated", 15),
        like("index_changed"),
        like("identity_blank", 33),
        like("call_ghost"),
        like("id_missing", says="the id"),
        like("call_nameless", says="the name"),
        like("call_shape", says="the name"),
        Hint(READS, 26, "the id"),
        Hint(READS, 40, "the name"),
    ),
    "call_id": (like("index_changed", 15), like("id_repeated", 15), like("name_repeated", 15), like("id_duplicate")),
    "call_repeat": (
        like("index_reused"),
        like("id_repeated", says="id"),
        like("id_changed", says="id"),
        like("id_late", says="id"),
        like("arguments_repeated", says="id"),
        like("name_repeated", says="name"),
        like("name_pieces", says="name"),
        like("name_changed", says="name"),
        like("identity_blank"),
        Hint(KNOWN, 25),
        Hint(READS, 40, "name"),
    ),
    "arguments": (like("arguments_not_text"), like("arguments_replaced"), Hint(KNOWN, 43)),
    "usage": (like("field_invalid"), Hint(KNOWN, 73)),
}


@define
class _CheckedChoice:
    role: bool = False
    finished: object = None
    calls: dict[int, tuple[object, object]] = field(factory=dict)  #: id and name of each call, from its first fragment
    call_ids: set[str] = field(factory=set)


class ChatLinter(ChunkChecker[_CheckedChoice]):
    """Checks the chunks of one stream."""

    rules: ClassVar = RULES
    hints: ClassVar = HINTS
    new_choice = _CheckedChoice

    _usage_seen = False

    def unterminated(self, frame: Frame) -> Severity:
        """Return how serious a missing blank line is: the client drops the event, but does not need that of ``[DONE]``."""
        return "note" if frame.data == DONE else "error"

    def check(self, document: dict[str, Any]) -> None:
        is_named = "error" in (self.frame.event, document.get("object"), document.get("type"))  # unknown to the client
        if document.get("error") or is_named:
            self.failed = True
            error = document.get("error")
            if not isinstance(error, dict) or not is_text(error.get("message")):
                self.broken("error", f"the error is {shown(error or document)}", "note" if error else "error")
            if "choices" not in document:
                return
        kind = document.get("object")
        if kind != "chat.completion.chunk":
            harmless = not kind and not document.get("choices")  # the helper ignores a chunk without an object
            self.broken("object", f"object is {shown(kind)}", "note" if harmless else "error")
        choices = self.same(document)
        for choice in choices:
            self._choice(choice)
        self._usage(document.get("usage"), alone=not choices)

    def _usage(self, usage: object, *, alone: bool) -> None:
        if usage is None:
            if self._usage_seen:
                self.broken("after_usage", "a chunk without usage follows the usage chunk")
            return
        if self.counts(usage) is not None and alone:
            self._usage_seen = True
        elif isinstance(usage, dict):
            self.broken("usage", "usage in a chunk with a choice", "note")

    def _choice(self, value: object) -> None:
        found = self.entry(value)
        if found is None:
            return
        choice, entry, delta = found
        if choice.finished:
            says = any(value for name, value in delta.items() if name != "role")
            self.broken("after_finish", f"a delta after the finish reason: {shown(delta)}", "error" if says else "note")
        self._role(choice, delta)
        for name in ("content", "refusal"):
            if not isinstance(delta.get(name), str | None):
                self.broken("text", f"{name} is {shown(delta[name])}")
        for call, function in self.tool_calls(delta.get("tool_calls"), bare=True):
            if is_index(call.get("index")):
                self._fragment(choice, call, function)
            else:
                self.broken("call_index", f"index is {shown(call.get('index'))}")
        self.finish_reason(choice, entry.get("finish_reason"))

    def _role(self, choice: _CheckedChoice, delta: dict[str, Any]) -> None:
        if delta.get("role"):
            if choice.role:
                self.broken("role", f"a later delta has the role again: {shown(delta['role'])}", "note")
            choice.role = True
        elif delta and not choice.role:
            self.broken("role", f"the first delta has no role: {shown(delta)}", "note")
            choice.role = True

    def _fragment(self, choice: _CheckedChoice, entry: dict[str, Any], function: dict[str, Any]) -> None:
        index = entry["index"]
        call = choice.calls.get(index)
        if call is None:
            self._first_fragment(choice, entry, function)
        else:
            self._same_call("id", call[0], entry)
            self._same_call("name", call[1], function)
            if entry.get("type", "function") != "function":
                self.broken("call_repeat", f"type is {shown(entry['type'])} in a later fragment of call {index}")
        arguments = function.get("arguments", "")
        if not isinstance(arguments, str):  # null has the same effect as ""
            empty = arguments is None
            self.broken("arguments", f"arguments of call {index} are {shown(arguments)}", "note" if empty else "error")

    def _first_fragment(self, choice: _CheckedChoice, entry: dict[str, Any], function: dict[str, Any]) -> None:
        index, call_id, name = entry["index"], entry.get("id"), function.get("name")
        if index != len(choice.calls):
            self.broken("call_index", f"a new call has index {index}, not {len(choice.calls)}")
        for what, value in (("id", call_id), ("name", name)):
            if not is_filled(value):
                self.broken("call_start", f"the {what} of call {index} is {shown(value)}")
        if entry.get("type") != "function":
            self.broken("call_start", f"the type of call {index} is {shown(entry.get('type'))}")
        if is_filled(call_id):
            if call_id in choice.call_ids:
                self.broken("call_id", f"call {index} has the same id as another call: {shown(call_id)}")
            choice.call_ids.add(call_id)
        choice.calls[index] = call_id, name

    def _same_call(self, what: str, first: object, fields: dict[str, Any]) -> None:
        """Check the ``id`` or ``name`` in a later fragment. Null and "" are harmless; the client appends other values."""
        if what not in fields:
            return
        value = fields[what]
        if value is None or value == "":
            self.broken("call_repeat", f"{what} is {shown(value)} in a later fragment", "note")
        else:
            again = "is repeated" if value == first else f"differs from {shown(first)}"
            self.broken("call_repeat", f"{what} {shown(value)} {again} in a later fragment")
