"""The grammar, as the official client and OpenAI's own streams have it. It shares no code with the decoder.

Source: ``openai.types.Completion`` of openai-python 3.54, and recorded streams of OpenAI and vLLM.
"""

from typing import Any, ClassVar

from streamkit.dialects.linting.explain import COMMON_LOOKS, CUT, KNOWN, READS, TORN, UNFINISHED, Look, Looks, like
from streamkit.dialects.linting.grammar import COMMON_RULES, GrammarChecker, is_filled, is_index, is_text, shown
from streamkit.framing.frame import Frame

RULES: dict[str, str] = {
    **COMMON_RULES,
    "unterminated": "A blank line ends each event, the last too: openai-python drops one that lacks it.",
    "empty_data": "No event has an empty payload: openai-python reads it as JSON and raises.",
    "object": 'A chunk says `"object": "text_completion"`.',
    "identity": "`id` and `model` are strings and the same in all chunks.",
    "choices": "`choices` is a list of objects, each with a non-negative integer `index`.",
    "text": "A choice has a string `text`.",
    "finish_reason": "`finish_reason` is a string or null, and not null once a choice.",
    "after_finish": "A choice says nothing more once it has its finish reason.",
    "usage": "`usage` is an object in a chunk of its own with `choices: []`, and null or absent elsewhere.",
    "error": "An error frame has an object `error` with a string `message`.",
    "after_error": "Nothing but `[DONE]` follows an error frame.",
    "done": "`[DONE]` ends a stream that no error frame ended.",
    "after_done": "Nothing follows `[DONE]`.",
}
#: What each rule looks like when it is broken: the repair or answer that goes with it, and a case of the field failures.
LOOKS: Looks = {
    **COMMON_LOOKS,
    "truncated": (Look(UNFINISHED, 61), Look(CUT, 114, "the stream has no choice"), Look(CUT, 65)),
    "unterminated": (like("last_event_unterminated"), Look(TORN, 106), Look(CUT, 106)),
    "empty_data": (Look(READS, 100),),
    "object": (Look(KNOWN, 70), like("error_shape")),
    "identity": (),
    "choices": (like("choice_index_missing"), like("index_invalid"), like("field_invalid")),
    "text": (like("field_invalid"),),
    "finish_reason": (
        like("field_invalid"),
        Look(READS, 57, "finish_reason is"),
        Look(READS, 58, "a second finish reason"),
    ),
    "after_finish": (Look(READS, 59),),
    "usage": (like("field_invalid"), Look(KNOWN, 73)),
    "error": (like("error_shape"),),
    "after_error": (like("after_error"),),
    "done": (),
    "after_done": (like("after_end"),),
}
DONE = b"[DONE]"


class CompletionsLinter(GrammarChecker):
    rules: ClassVar = RULES
    looks: ClassVar = LOOKS

    def __init__(self) -> None:
        super().__init__()
        self._identity: dict[str, object] = {}
        self._finished: dict[int, object] = {}  # each choice with its reason
        self._failed = False
        self._done = False

    def take(self, frame: Frame) -> None:
        ends = frame.data == DONE
        if not frame.terminated:
            self.broken("unterminated", "no blank line after the last event", "note" if ends else "error")
        if self._done:
            self.broken("after_done", f"after [DONE]: {shown(frame.text)}")
        elif ends:
            self._done = True
        elif self._failed:
            self.broken("after_error", f"after an error frame: {shown(frame.text)}")
        elif not frame.data.strip():
            self.broken("empty_data", "the payload is blank")
        else:
            super().take(frame)

    def check(self, document: dict[str, Any]) -> None:
        if document.get("error") or "error" in (self.frame.event, document.get("object")):
            self._failed = True
            error = document.get("error")
            if not isinstance(error, dict) or not is_text(error.get("message")):
                self.broken("error", f"the error is {shown(error or document)}")
            return
        choices = document.get("choices")
        if (kind := document.get("object")) != "text_completion":  # Azure's first chunk is blank, and harmless
            self.broken("object", f"object is {shown(kind)}", "error" if kind or choices else "note")
        for name in ("id", "model"):
            value = document.get(name)
            if not is_text(value):
                self.broken("identity", f"{name} is {shown(value)}")
            elif self._identity.setdefault(name, value) != value:
                self.broken("identity", f"{name} is {shown(value)} after {shown(self._identity[name])}", "note")
                self._identity[name] = value
        if not isinstance(choices, list):
            self.broken("choices", f"choices is {shown(choices)}")
            choices = []
        for choice in choices:
            if isinstance(choice, dict) and is_index(choice.get("index")):
                self._choice(choice["index"], choice)
            else:
                self.broken("choices", f"a choice without an index: {shown(choice)}")
        usage = document.get("usage")
        if not isinstance(usage, dict | None):
            self.broken("usage", f"usage is {shown(usage)}")
        elif usage and choices:
            self.broken("usage", "usage beside a choice", "note")

    def _choice(self, number: int, choice: dict[str, Any]) -> None:
        if not is_text(choice.get("text")):
            self.broken("text", f"text is {shown(choice.get('text'))}")
        before, reason = self._finished.get(number), choice.get("finish_reason")
        if before is not None and choice.get("text"):
            self.broken("after_finish", f"after the finish reason: {shown(choice['text'])}")
        if reason is not None and not is_filled(reason):
            self.broken("finish_reason", f"finish_reason is {shown(reason)}")
        elif reason is not None and before is not None:
            self.broken("finish_reason", f"a second finish reason: {shown(reason)}")
        self._finished[number] = before or reason

    def close(self) -> None:
        if self._failed:
            return
        unfinished = [number for number, reason in self._finished.items() if not is_filled(reason)]
        if unfinished:
            self.broken("truncated", f"choice {unfinished[0]} has no finish reason")
        elif not self._finished:
            self.broken("truncated", "the stream has no choice")
        elif not self._done:
            self.broken("done", "the stream ends without [DONE]", "note")
