"""Chunks to wire events: what each says, in a fixed order, tolerant of what servers do to it."""

from typing import Any

from legacy_completions.wire import ERROR_TYPES, STOP_REASONS, VENDOR, decode_usage
from streamkit.dialects.members.values import said, text_of
from streamkit.dialects.streams.frame_decoder import FrameDecoder
from streamkit.dialects.vocabulary.error_bodies import provider_failed
from streamkit.errors import TooManyChoices
from streamkit.events import Aside, ChoiceStarted, ResponseStarted, StopReasonSeen, TerminatorSeen, TextDelta
from streamkit.framing.frame import Frame
from streamkit.limits import Limits
from streamkit.report import StreamReport

CHUNK_FIELDS = frozenset({"id", "object", "created", "model", "choices", "usage"})
#: ``stop_reason`` is vLLM's: the stop sequence that was met, or the number of a token.
CHOICE_FIELDS = frozenset({"text", "index", "logprobs", "finish_reason", "stop_reason"})


def recognises(_event: str, document: Any) -> bool:
    """Whether a payload can be a chunk of this dialect: its choices have text, where those of Chat have a delta."""
    if not isinstance(document, dict):
        return False
    choices = document.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        return "text" in choices[0]
    return document.get("object") == "text_completion"


class CompletionsDecoder(FrameDecoder):
    dialect = "openai-completions"
    vendor = VENDOR

    def __init__(self, limits: Limits, report: StreamReport) -> None:
        super().__init__(limits, report)
        self._head: dict[str, Any] = {}  # what the chunks before the first choice said, and it
        self._started = False
        self._choices: set[int] = set()
        self._done = False

    def take(self, frame: Frame) -> None:
        if self._done and frame.data:
            self.report.repair("after_end")
        super().take(frame)

    def done(self) -> None:
        self.recognised = self._done = True
        if not self.frame.terminated:
            self.unterminated()
        self.out.append(TerminatorSeen(derives_calls=True))  # so that `lenient` may take it for an end

    def close(self) -> None:
        if self._head:
            self._start()

    def decode(self, document: dict[str, Any]) -> None:
        error = document.get("error")
        if error or "error" in (document.get("object"), self.frame.event):
            self.recognised = True
            if not isinstance(error, dict):
                self.report.repair("error_shape")
            self.out.append(provider_failed(error or document, VENDOR, ERROR_TYPES))
        elif recognises("", document):
            self.recognised = True
            self._chunk(document)
        elif document.get("choices") == []:  # Azure's first chunk is blank but for the filter's results
            self._chunk(document)
        else:
            self.strange()
            if self._started:
                self.out.append(Aside(VENDOR, "unknown_event", str(document.get("object") or "chunk"), document))

    def _chunk(self, chunk: dict[str, Any]) -> None:
        choices, usage = self.items(chunk.get("choices")), self.fields(chunk.get("usage"))
        if not self._started:
            self._head |= {name: value for name, value in chunk.items() if said(value)}
            if choices:
                self._start()
        elif not chunk.keys() <= CHUNK_FIELDS:
            for name, value in chunk.items():  # what stays as it was is in the response's extras
                if name not in CHUNK_FIELDS and said(value) and self._head.get(name) != value:
                    self.out.append(Aside(VENDOR, "metadata", name, value))
        for choice in choices:
            self._choice(choice)
        if usage:
            self._start()
            self.out.append(decode_usage(usage))

    def _start(self) -> None:
        if self._started:
            return
        self._started = True
        head = self._head
        created = head.get("created")
        self.out.append(
            ResponseStarted(
                text_of(head.get("id")),
                text_of(head.get("model")),
                int(created) if isinstance(created, int | float) and 0 <= created < 1e11 else None,
                VENDOR,
                {name: value for name, value in head.items() if name not in CHUNK_FIELDS} or None,
            )
        )

    def _choice(self, choice: Any) -> None:
        if type(choice) is not dict:
            self.odd(choice)
            return
        number = self.index(choice.get("index"))
        if number is None:
            self.report.repair("choice_index_missing")
            number = 0
        if number not in self._choices:
            if len(self._choices) >= self.limits.choices:
                raise TooManyChoices(self.limits.choices, offset=self.frame.offset)
            self._choices.add(number)
            self.out.append(ChoiceStarted(number))
        if text := self.string(choice.get("text")):
            self.out.append(TextDelta(text, number))
        if logprobs := choice.get("logprobs"):
            self.out.append(Aside(VENDOR, "logprobs", "logprobs", logprobs, number))
        if not choice.keys() <= CHOICE_FIELDS:
            for name, value in choice.items():
                if name not in CHOICE_FIELDS and said(value):
                    self.out.append(Aside(VENDOR, "metadata", f"choices.{name}", value, number))
        matched = choice.get("stop_reason")
        if matched is not None and not isinstance(matched, str):
            self.out.append(Aside(VENDOR, "metadata", "choices.stop_reason", matched, number))
        if native := text_of(self.string(choice.get("finish_reason"))):
            reason = STOP_REASONS.get(native, "other")
            if reason == "stop" and isinstance(matched, str):
                self.out.append(StopReasonSeen("stop_sequence", native, number, matched))
            else:
                self.out.append(StopReasonSeen(reason, native, number))
