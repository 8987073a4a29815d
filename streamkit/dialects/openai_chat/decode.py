"""Chat chunks to wire events: what each chunk says, tolerant of what the clones do to it.

A chunk is read in a fixed order, because clones put everything into one: reasoning, content, refusal, tool calls, log
probabilities, stop reason, usage, error. The response starts with the first chunk that has a choice: Azure's first frame
has neither id nor model. Unknown fields that are there from the start ride in the response's extras; later ones are asides.

Source: dialects.md §1.2, §1.6, quirks.md §1-§9.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from streamkit.dialects.members.values import details_of, said, text_of
from streamkit.dialects.openai_chat.message import MessageReader
from streamkit.dialects.openai_chat.wire import ERROR_TYPES, STOP_REASONS, decode_usage
from streamkit.dialects.vocabulary.error_bodies import is_bare_error, provider_failed
from streamkit.errors import TooManyChoices
from streamkit.events import (
    Aside,
    ChoiceStarted,
    ErrorType,
    ResponseStarted,
    StopReasonSeen,
    TerminatorSeen,
    WireEvent,
)
from streamkit.framing.frame import Frame
from streamkit.limits import Limits
from streamkit.report import StreamReport

#: Fields that are read here, or mean nothing downstream (``obfuscation`` is padding).
CHUNK_FIELDS = frozenset(
    {"id", "object", "created", "model", "choices", "usage", "error", "obfuscation", "type", "message", "detail"}
)
CHOICE_FIELDS = frozenset(
    {"index", "delta", "message", "finish_reason", "logprobs", "usage", "stop_reason", "matched_stop"}
)


def recognises(_event: str, document: Any) -> bool:
    """Whether a payload can be a Chat chunk: not one of the older Completions, whose choices have text and no delta."""
    choices = document.get("choices") if isinstance(document, dict) else None
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        return not ("text" in choices[0] and choices[0].keys().isdisjoint({"delta", "message"}))
    if isinstance(choices, dict):  # in the place of a list
        choice = choices.get("0", choices)
        return isinstance(choice, dict) and ("delta" in choice or "message" in choice)
    return isinstance(document, dict) and (
        isinstance(choices, list)
        or document.get("object") == "chat.completion.chunk"
        or ("type" not in document and isinstance(document.get("error"), dict))
    )


class ChatDecoder(MessageReader):
    #: Fields of a chunk that are no extras.
    chunk_fields: ClassVar[frozenset[str]] = CHUNK_FIELDS
    #: Words for the type of an error.
    error_types: ClassVar[Mapping[str, ErrorType]] = ERROR_TYPES
    #: Whether an error may stand in a chunk of its own kind, flat, as well as in ``error``.
    has_flat_errors: ClassVar[bool] = False

    def __init__(self, limits: Limits, report: StreamReport) -> None:
        super().__init__(limits, report)
        self._started = False
        self._extras: dict[str, Any] = {}
        self._head: dict[str, Any] = {}
        self._choices: set[int] = set()
        self._spoke: set[int] = set()  # choices that had a delta or a message with anything in it
        self._done = False
        self._id: str | None = None
        self._is_steady = False  # chunks that go on have the id of the first: another id says another response

    def take(self, frame: Frame) -> None:
        if self._done and frame.data:
            self.behind_end(super().take, frame, counted=frame is self._unheld)
        else:
            super().take(frame)

    def usage(self, raw: dict[str, Any]) -> WireEvent:
        return decode_usage(raw, self.vendor)

    def done(self) -> None:
        self.recognised = self._done = True
        if not self.frame.terminated:
            self.unterminated()
        self._start()
        self.out.append(TerminatorSeen(derives_calls=True))

    def close(self) -> None:
        if self.recognised:
            self._start()

    def decode(self, document: dict[str, Any]) -> None:
        chunk = document
        error = chunk.get("error")
        choices = self.items(chunk.get("choices"))
        if not (choices or error or recognises("", chunk)):
            self.no_chunk(chunk)
            return
        self.recognised = True
        if choices:
            if not self._started:
                self._head = {**self._head, **{k: v for k, v in chunk.items() if v or k not in self._head}}
                self._start()
            elif chunk.get("id") != self._id or not self._is_steady:
                self._see_id(chunk.get("id"), choices)
            for position, choice in enumerate(choices):
                self._choice(choice, position)
        elif not self._started and not error:
            self._head.update(chunk)
        if not chunk.keys() <= self.chunk_fields:
            self._unknown(chunk)
        if usage := self.fields(chunk.get("usage")) or details_of(details_of(chunk, "x_groq"), "usage"):
            self._start()
            self.tell_counts(decode_usage(usage, self.vendor))
        if error or self.frame.event == "error":
            self.out.append(provider_failed(error or chunk, self.vendor, self.error_types))
            if not isinstance(error, dict):
                self.report.repair("error_shape")

    def no_chunk(self, chunk: dict[str, Any]) -> None:
        """No chunk: an error in a form that is not the dialect's (dialects.md §1.4), or something unknown."""
        flat = chunk.get("object") == "error" or chunk.get("type") == "error" or "detail" in chunk
        if flat or is_bare_error(chunk) or self.frame.event == "error":
            self.recognised = True
            if not (self.has_flat_errors and chunk.get("object") == "error"):
                self.report.repair("error_shape")
            self.out.append(provider_failed(chunk, self.vendor, self.error_types))
        elif "prompt_tokens" in details_of(chunk, "usage"):
            self.recognised = True
            self._start()
            self.tell_counts(decode_usage(chunk["usage"], self.vendor))
        else:
            self.strange()
            if self._started:
                self.out.append(Aside(self.vendor, "unknown_event", str(chunk.get("object") or "chunk"), chunk))

    def _start(self) -> None:
        """Say once that the response started: with the first choice, so that blank head frames do not count."""
        if self._started:
            return
        self._started = True
        head = self._head
        self._id = text_of(head.get("id"))
        created = head.get("created")
        self._extras = {name: value for name, value in head.items() if name not in self.chunk_fields and said(value)}
        self.out.append(
            ResponseStarted(
                self._id,
                text_of(head.get("model")),
                int(created) if isinstance(created, int | float) and 0 <= created < 1e11 else None,
                self.vendor,
                self._extras or None,
            )
        )
        self._head = {}

    def _see_id(self, value: Any, choices: list[Any]) -> None:
        """The id of a later chunk. Raises SecondResponse where a choice begins again under another one.

        Servers that make an id for each chunk, or say the role in each, are common: there an id tells nothing.
        """
        roles = [text_of(details_of(choice, "delta").get("role")) for choice in choices if type(choice) is dict]
        if value == self._id:
            self._is_steady = bool(roles) and not any(roles)
        elif self._is_steady and any(roles) and text_of(value) and len(choices) == 1:
            index = choices[0].get("index")
            if (index if type(index) is int else 0) in self._choices:  # not where each choice has an id of its own
                self.restarted(self._id, value)

    def _unknown(self, chunk: dict[str, Any]) -> None:
        """Fields beside the dialect's: constant ones are in the extras already."""
        if not self._started:
            return
        for name, value in chunk.items():
            if name not in self.chunk_fields and said(value) and self._extras.get(name) != value:
                self.out.append(Aside(self.vendor, "metadata", name, value))

    def _choice(self, choice: Any, position: int) -> None:
        choice = self.alone(choice)
        if type(choice) is not dict:
            self.odd(choice)
            return
        index = self.index(choice.get("index"))
        if index is None:
            self.report.repair("choice_index_missing")
            index = position
        delta, message = choice.get("delta"), choice.get("message")
        if type(delta) is not dict and delta is not None:
            delta = self.fields(delta) or None
        if type(message) is not dict and message is not None:
            message = self.fields(message) or None
        is_blank = delta is None or (not delta and index not in self._spoke)
        if is_blank and message is None and not choice.get("finish_reason"):
            self.report.repair("delta_missing")
        if delta or message:
            self._spoke.add(index)
        if index not in self._choices:
            if len(self._choices) >= self.limits.choices:
                raise TooManyChoices(self.limits.choices, offset=self.frame.offset)
            self._choices.add(index)
            self.out.append(ChoiceStarted(index, text_of((delta or message or {}).get("role")) or "assistant"))
        self.read_choice(delta or {}, message or {}, index, position, ends=bool(choice.get("finish_reason")))
        logprobs = choice.get("logprobs")
        if logprobs and (not isinstance(logprobs, dict) or logprobs.get("content") or logprobs.get("refusal")):
            self.out.append(Aside(self.vendor, "logprobs", "logprobs", logprobs, index))
        if not choice.keys() <= CHOICE_FIELDS:
            self.keep_others(choice, CHOICE_FIELDS, "choices.", index)
        if native := choice.get("finish_reason"):
            self._finish_reason(native, choice, index)
        if usage := details_of(choice, "usage"):
            self.tell_counts(decode_usage(usage, self.vendor))

    def _finish_reason(self, native: Any, choice: dict[str, Any], index: int) -> None:
        native = text_of(native)
        if native is None:
            return
        reason = self.stop_reason(native, STOP_REASONS)
        matched = choice.get("stop_reason") or choice.get("matched_stop")  # vLLM, SGLang: text, or a token's number
        if reason in {"stop", "stop_sequence"} and isinstance(matched, str):
            self.out.append(StopReasonSeen("stop_sequence", native, index, matched))
        else:
            self.out.append(StopReasonSeen(reason, native, index))
