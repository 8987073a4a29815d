"""Check Mistral's chunks against the types of the official client.

The client validates each chunk and raises at the first invalid one, so an error frame needs no particular form. It does not
know fragments: each entry of ``tool_calls`` is a whole call. Unknown parts of the content are accepted.

Source: dialects.md §0.4, §1.1, §6.3, §7.6.
"""

from __future__ import annotations

from typing import Any, ClassVar

from attrs import define, field

from streamkit.dialects.linting import (
    COMMON_RULES,
    KNOWN,
    READS,
    Hint,
    Hints,
    is_filled,
    is_index,
    is_object,
    is_text,
    like,
    like_each,
    shown,
)
from streamkit.dialects.mistral.wire import COUNTS
from streamkit.dialects.openai_chat.lint import CHUNK_HINTS, CHUNK_RULES, ChunkChecker
from streamkit.text.identifiers import NINE

RULES: dict[str, str] = {
    **COMMON_RULES,
    "unterminated": (
        "A blank line ends each event, including the last. The client also reads an event without this line (§0.3)."
    ),
    "empty_data": "No event has an empty payload: the client cannot parse it and raises an error (§0.4).",
    "identity": "`id` and `model` are strings, and the same in all chunks (§1.2, §6.3).",
    "choices": "`choices` is a list of objects, each with a non-negative integer `index` (§6.3).",
    "delta": "Each choice has a `delta`, which is an object (§6.3).",
    "content": "`content` is a string, null, or a list of objects that each have a `type` (§6.3).",
    "part": "A part of type `text` has a string `text`. A part of type `thinking` has a list of text parts (§6.3).",
    "finish_reason": "Each chunk of a choice has a `finish_reason`. It is null in all chunks except one (§0.4, §6.3).",
    "tool_calls": "`tool_calls` is a list of objects, each with an object `function` (§6.3).",
    "call_index": (
        "Calls have the `index` 0, 1, 2 … in the order in which they appear. A missing index counts as 0 (§0.4, §6.3)."
    ),
    "call_id": "A call has an `id` of nine letters and digits, and no other call has the same `id` (§6.3).",
    "call_name": (
        "Each entry of `tool_calls` has a name that is not blank: an entry is a whole call, not a fragment (§0.4)."
    ),
    "arguments": "`arguments` is an object or a string (§6.3).",
    "arguments_unparsable": (
        "If `arguments` is a string, it is empty or one JSON object. Other text may be the model's mistake (§6.3)."
    ),
    "usage": "`usage` is an object, and its counts are integers or null (§6.3).",
    "error": (
        "An error frame has the member `object: error` or a member `error`: the client raises an error for both (§1.4)."
    ),
    **CHUNK_RULES,
}
HINTS: Hints = {
    **CHUNK_HINTS,
    "choices": (
        like("choice_index_missing"),
        like("index_invalid"),
        like("field_invalid"),
        Hint(READS, 71, "choices is None"),
    ),
    **dict.fromkeys(("content", "part", "arguments", "usage"), (like("field_invalid"),)),
    "tool_calls": like_each("field_invalid", "call_shape"),
    "call_index": (Hint(KNOWN, 6, "index is None"), Hint(KNOWN, 9), like("index_invalid")),
    "call_id": (
        like("id_missing"),
        like("identity_blank"),
        like("id_repeated", 30),
        like("id_duplicate"),
        Hint(READS, 26),
    ),
    "call_name": (like("call_nameless"), like("identity_blank", 24), Hint(READS, 40)),
    "arguments_unparsable": (Hint(KNOWN, 50),),
}


@define
class _CheckedChoice:
    finished: object = None
    calls: int = 0
    call_ids: set[str] = field(factory=set)


class MistralLinter(ChunkChecker[_CheckedChoice]):
    """Checks the chunks of one stream."""

    rules: ClassVar = RULES
    hints: ClassVar = HINTS
    new_choice = _CheckedChoice

    def check(self, document: dict[str, Any]) -> None:
        error = document.get("error")
        if error or document.get("object") == "error":
            self.failed = True
            error = document if error is None else error
            message = error.get("message") if isinstance(error, dict) else ""
            is_chunk = document.get("choices") is not None  # for null, clients raise, as they must
            if not is_filled(message) or is_chunk:
                self.broken("error", f"the error is {shown(document)}", "error" if is_chunk else "note")
            return
        for choice in self.same(document):
            self._choice(choice)
        self._usage(document.get("usage"))

    def _usage(self, usage: object) -> None:
        if usage is None:
            return
        counts = usage if isinstance(usage, dict) else {"": usage}
        wrong = [
            value for name, value in counts.items() if name in {*COUNTS, ""} and not (value is None or is_index(value))
        ]
        if wrong:
            self.broken("usage", f"usage has the count {shown(wrong[0])}")

    def _choice(self, value: object) -> None:
        found = self.entry(value)
        if found is None:
            return
        choice, entry, delta = found
        if choice.finished and any(value for name, value in delta.items() if name != "role"):
            self.broken("after_finish", f"a delta after the finish reason: {shown(delta)}")
        self._content(delta.get("content"))
        for call, function in self.tool_calls(delta.get("tool_calls"), bare=False):
            self._call(choice, call, function)
        if "finish_reason" not in entry:
            self.broken("finish_reason", "the choice has no finish_reason")
        self.finish_reason(choice, entry.get("finish_reason"))

    def _content(self, content: object) -> None:
        if content is None or is_text(content):
            return
        parts = content if isinstance(content, list) else [content]
        for part in parts:
            if not isinstance(content, list) or not isinstance(part, dict) or not is_text(part.get("type")):
                self.broken("content", f"content is {shown(content)}")
            elif part["type"] == "text":
                self._text(part)
            elif part["type"] == "thinking":
                self._thinking(part)

    def _thinking(self, part: dict[str, Any]) -> None:
        parts, signature = part.get("thinking"), part.get("signature")
        if not isinstance(parts, list) or not (signature is None or is_text(signature)):
            self.broken("part", f"the thinking is {shown(part)}")
            return
        for inner in parts:
            if not isinstance(inner, dict) or inner.get("type", "text") == "text":
                self._text(inner)

    def _text(self, part: object) -> None:
        if not isinstance(part, dict) or not is_text(part.get("text")):
            self.broken("part", f"the text is {shown(part)}")

    def _call(self, choice: _CheckedChoice, entry: dict[str, Any], function: dict[str, Any]) -> None:
        index, call_id, arguments = entry.get("index"), entry.get("id"), function.get("arguments")
        if index != choice.calls or type(index) is not int:  # many servers send whole calls with 0, or without an index
            harmless = index is None or index == 0
            self.broken("call_index", f"index is {shown(index)}, not {choice.calls}", "note" if harmless else "error")
        choice.calls += 1
        if not is_text(call_id) or not NINE.fullmatch(call_id):
            self.broken("call_id", f"id is {shown(call_id)}")
        elif call_id in choice.call_ids:
            self.broken("call_id", f"another call has the same id: {shown(call_id)}")
        else:
            choice.call_ids.add(call_id)
        self.member(function, "name", is_filled, "call_name")
        if is_text(arguments):
            if not is_object(arguments):
                self.broken("arguments_unparsable", f"arguments are {shown(arguments)}", "note")
        elif not isinstance(arguments, dict):
            self.broken("arguments", f"arguments are {shown(arguments)}")
