"""Check Gemini's chunks, in either framing, against what google-genai reads.

Chunks are independent, except for what is open between them: candidates without a reason, and a call whose arguments arrive
in parts. The parser checks the framing: an array and events follow the same rules here.

Source: dialects.md §0.4, §5.1-§5.3, §7.6.
"""

from __future__ import annotations

from typing import Any, ClassVar

from attrs import define

from streamkit.dialects.gemini.wire import CHUNK_FIELDS, wrong_members
from streamkit.dialects.linting import (
    COMMON_HINTS,
    COMMON_RULES,
    KNOWN,
    READS,
    TORN,
    UNFINISHED,
    GrammarChecker,
    Hint,
    Hints,
    is_filled,
    is_index,
    is_text,
    like,
    shown,
)
from streamkit.framing.frame import Frame

RULES: dict[str, str] = {
    **COMMON_RULES,
    "unterminated": (
        "A blank line ends each event, including the last. "
        "The client also reads an event without this line (§0.3)."
    ),
    "event": "Events have no name: the client reads an `event:` line as invalid JSON (§0.4).",
    "done": "A stream does not end with `[DONE]`: the client reads this text as invalid JSON (§0.4).",
    "chunk": "A chunk has `candidates`, `promptFeedback`, `usageMetadata` or other fields of a response (§5.2).",
    "candidates": (
        "`candidates` is a list of objects. "
        "If an object has an `index`, it is a non-negative integer (§5.2)."
    ),
    "content": "`content` is an object with the role `model`. If it has `parts`, they are a list of objects (§5.2).",
    "text": "`text` is a string, and `thought` is a boolean (§5.2).",
    "signature": "`thoughtSignature` is base64 text: the client decodes it (§5.2).",
    "call": "A `functionCall` is an object. It has a name that is not blank, unless it continues an open call (§5.3).",
    "args": "If a call has `args`, they are an object (§5.3).",
    "partial_args": "Each entry of `partialArgs` has a `jsonPath` and at most one value (§5.3).",
    "call_open": "A call with `willContinue` ends before the candidate's `finishReason` (§5.3).",
    "finish_reason": "Each candidate has one `finishReason`, a string that is not blank (§5.2).",
    "after_finish": "No content follows the `finishReason` of a candidate (§5.1).",
    "prompt_feedback": "`promptFeedback` is an object. If it has a `blockReason`, that is a string (§5.2).",
    "usage": "`usageMetadata` is an object, and its counts are non-negative integers (§5.2).",
    "identity": "`responseId` and `modelVersion` are strings, and the same in every chunk (§5.2).",
    "error": (
        "The first key of an error chunk is `error`, with an integer `code` and a `message`: "
        "clients do not notice other errors (§0.4)."
    ),
    "after_error": "Nothing follows an error (§5.1).",
}  # fmt: skip
HINTS: Hints = {
    **COMMON_HINTS,
    "unterminated": (like("last_event_unterminated"), Hint(TORN, 106)),
    **dict.fromkeys(("event", "chunk", "identity"), ()),
    **dict.fromkeys(("content", "text", "partial_args", "prompt_feedback", "usage"), (like("field_invalid"),)),
    "done": (like("foreign_terminator"),),
    "candidates": (like("field_invalid"), like("index_invalid"), like("choice_index_missing")),
    "signature": (like("field_invalid"), Hint(READS, 88)),
    "call": (like("call_nameless"), like("call_ghost"), like("identity_blank", 33), like("field_invalid")),
    "args": (like("arguments_not_object"), like("field_invalid")),
    "call_open": (like("block_unclosed", 50), Hint(UNFINISHED, None), Hint(READS, 50)),
    "finish_reason": (like("stop_conflict"), Hint(KNOWN, 57)),
    "after_finish": (Hint(KNOWN, 59),),
    "error": (like("error_shape"),),
    "after_error": (like("after_error"),),
}
FIELDS = (CHUNK_FIELDS - {"error"}) | {"modelStatus"}
VALUES = frozenset({"stringValue", "numberValue", "boolValue", "nullValue"})


@define
class _Candidate:
    reason: object = None
    call_open: bool = False


class GeminiLinter(GrammarChecker):
    """Checks the chunks of one stream against ``RULES``."""

    rules: ClassVar = RULES
    hints: ClassVar = HINTS

    def __init__(self) -> None:
        super().__init__()
        self._candidates: dict[int, _Candidate] = {}
        self._blocked = False
        self._failed = False

    def take(self, frame: Frame) -> None:
        if not frame.terminated:
            self.broken("unterminated", "the last event or element is not terminated", "note")
        if frame.event != "message":
            self.broken("event", f"the event name is {shown(frame.event)}")
        if frame.data.strip() == b"[DONE]":
            self.broken("done", "[DONE]")
        elif self._failed:
            self.broken("after_error", f"after an error: {shown(frame.text)}")
        else:
            super().take(frame)

    def check(self, document: dict[str, Any]) -> None:
        if document.get("error"):
            self._error(document)
            return
        if document.keys().isdisjoint(FIELDS):
            self.broken("chunk", f"the chunk has none of these fields: {shown(document)}")
        for name in ("responseId", "modelVersion"):
            if name in document:
                self.identity(document, name)
        candidates = document.get("candidates", [])
        if isinstance(candidates, list):
            for position, candidate in enumerate(candidates):
                self._candidate(candidate, position)
        else:
            self.broken("candidates", f"candidates is {shown(candidates)}")
        self._feedback(document.get("promptFeedback", {}))
        self._usage(document.get("usageMetadata", {}))

    def close(self) -> None:
        without = [number for number, candidate in self._candidates.items() if candidate.reason is None]
        if self._failed or (self._blocked and without in ([], [0])):
            return
        if without:
            self.broken("truncated", f"candidate {without[0]} has no finishReason")
        elif not self._candidates:
            self.broken("truncated", "the stream has no candidate")

    def _error(self, document: dict[str, Any]) -> None:
        self._failed = True
        error = document["error"]
        if not isinstance(error, dict) or not is_index(error.get("code")) or not is_text(error.get("message")):
            self.broken("error", f"the error is {shown(error)}")
        elif next(iter(document)) != "error":
            self.broken("error", f"the first key is {shown(next(iter(document)))}")

    def _feedback(self, feedback: object) -> None:
        if not isinstance(feedback, dict) or not is_text(feedback.get("blockReason", "")):
            self.broken("prompt_feedback", f"promptFeedback is {shown(feedback)}")
        elif feedback.get("blockReason"):
            self._blocked = True

    def _usage(self, usage: object) -> None:
        if not isinstance(usage, dict):
            self.broken("usage", f"usageMetadata is {shown(usage)}")
            return
        for name, count in usage.items():
            if name.endswith("TokenCount") and not is_index(count):
                self.broken("usage", f"{name} is {shown(count)}")

    def _candidate(self, entry: object, position: int) -> None:
        if not isinstance(entry, dict) or not is_index(entry.get("index", position)):
            self.broken("candidates", f"an entry is {shown(entry)}")
            return
        candidate = self._candidates.setdefault(entry.get("index", position), _Candidate())
        content = entry.get("content", {})
        parts = content.get("parts", []) if isinstance(content, dict) else None
        if not isinstance(content, dict) or not isinstance(parts, list) or content.get("role", "model") != "model":
            self.broken("content", f"content is {shown(content)}")
            parts = []
        for part in parts:
            if isinstance(part, dict):
                self._part(part, candidate)
            else:
                self.broken("content", f"a part is {shown(part)}")
        if candidate.reason is not None and any(part != {"text": ""} for part in parts):
            self.broken("after_finish", f"content after finishReason: {shown(parts)}", "note")
        if (reason := entry.get("finishReason")) is not None:
            self._finish_reason(reason, candidate)

    def _finish_reason(self, reason: object, candidate: _Candidate) -> None:
        if not is_filled(reason):
            self.broken("finish_reason", f"finishReason is {shown(reason)}")
            return
        if candidate.reason is not None:
            same = reason == candidate.reason  # some servers write it in every chunk
            self.broken("finish_reason", f"a second finishReason: {shown(reason)}", "note" if same else "error")
        if candidate.call_open:
            self.broken("call_open", f"{shown(reason)} while a call is open")
        candidate.reason = reason

    def _part(self, part: dict[str, Any], candidate: _Candidate) -> None:
        for name in wrong_members(part):
            self.broken("signature" if name == "thoughtSignature" else "text", f"{name} is {shown(part[name])}")
        if "functionCall" in part:
            self._call(part["functionCall"], candidate)

    def _call(self, call: object, candidate: _Candidate) -> None:
        if not isinstance(call, dict) or ("id" in call and not is_text(call["id"])):
            self.broken("call", f"functionCall is {shown(call)}")
            return
        if not candidate.call_open if not call.get("name") else not is_filled(call["name"]):
            self.broken("call", f"name is {shown(call.get('name'))}, and no call is open")
        if not isinstance(call.get("args", {}), dict):
            self.broken("args", f"args is {shown(call['args'])}")
        partial = call.get("partialArgs", [])
        if not isinstance(partial, list):
            self.broken("partial_args", f"partialArgs is {shown(partial)}")
            partial = []
        for entry in partial:
            path = entry.get("jsonPath") if isinstance(entry, dict) else None
            if not is_text(path) or not path.startswith("$") or len(entry.keys() & VALUES) > 1:
                self.broken("partial_args", f"an entry is {shown(entry)}")
        candidate.call_open = call.get("willContinue") is True
