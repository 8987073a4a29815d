"""Gemini chunks to wire events: what each chunk says, in either framing.

There is no terminator: a stream is whole once every candidate has its ``finishReason``, or the prompt was blocked. Reading
goes on behind a reason, since some servers put ``STOP`` into every chunk. Usage is a snapshot that grows. Fields that are
unknown from the start ride in the response's extras; later ones are asides.

Source: dialects.md §5.1-§5.4, §7.6.
"""

from __future__ import annotations

from typing import Any

from streamkit.dialects.gemini.parts import Candidate, PartReader
from streamkit.dialects.gemini.wire import (
    ERROR_TYPES,
    STOP_REASONS,
    UNSPECIFIED,
    VENDOR,
    decode_usage,
    is_bad_count,
    is_error,
)
from streamkit.dialects.members.known import Members
from streamkit.dialects.members.values import decode_time, said, text_of
from streamkit.dialects.vocabulary.error_bodies import is_bare_error, provider_failed
from streamkit.errors import BrokenFrame, NotThisDialect, TooManyChoices
from streamkit.events import Aside, AsideKind, ChoiceStarted, ResponseStarted, StopReasonSeen
from streamkit.framing.frame import Frame
from streamkit.limits import Limits
from streamkit.report import StreamReport
from streamkit.text.quoting import quoted
from streamkit.tool_calls.failed_turns import FAILING

CHUNK_FIELDS = frozenset(
    {"candidates", "promptFeedback", "usageMetadata", "modelVersion", "responseId", "createTime", "error"}
)
CONTENT = Members("parts", "role")
#: Of a candidate: what the reason means, in a sentence. It is part of the failure that a reason tells.
MESSAGE = "finishMessage"
CANDIDATE_FIELDS = frozenset({"index", "content", "finishReason"})
#: Fields of a candidate that are more telling than metadata.
ASIDES: dict[str, AsideKind] = {
    "citationMetadata": "citation",
    "groundingMetadata": "citation",
    "groundingAttributions": "citation",
    "urlContextMetadata": "citation",
    "logprobsResult": "logprobs",
    "avgLogprobs": "logprobs",
}


def recognises(_event: str, document: Any) -> bool:
    """Whether a payload can be a Gemini chunk."""
    if not isinstance(document, dict):
        return False
    error = document.get("error")
    return (
        isinstance(document.get("candidates"), list | dict)
        or "usageMetadata" in document
        or isinstance(document.get("promptFeedback"), dict)
        or (isinstance(error, dict) and isinstance(error.get("status"), str) and "message" in error)
    )


class GeminiDecoder(PartReader):
    def __init__(self, limits: Limits, report: StreamReport) -> None:
        super().__init__(limits, report)
        self._started = False
        self._extras: dict[str, Any] = {}
        self._candidates: dict[int, Candidate] = {}
        self._usage: Any = None

    def load(self, frame: Frame) -> dict[str, Any] | None:
        try:
            return super().load(frame)
        except BrokenFrame as error:
            if not self.recognised:  # a list of something else, another event stream
                raise NotThisDialect("gemini", f"a frame that is {error.reason}: {quoted(frame.text)}") from error
            raise

    def close(self) -> None:
        for candidate in self._candidates.values():
            self._cut(candidate)

    def decode(self, document: dict[str, Any]) -> None:
        error = document.get("error")
        if not (error or recognises("", document) or said(document.get("candidates"))):
            if self.frame.event == "error" or is_bare_error(document):
                self.recognised = True
                self.report.repair("error_shape")
                self.out.append(provider_failed(document, VENDOR, ERROR_TYPES))
                return
            self.strange()
            if self._started:
                self.out.append(Aside(VENDOR, "unknown_event", "chunk", document))
            return
        self.recognised = True
        if not self._started and (not error or len(document) > 1):
            self._start(document)
        for position, candidate in enumerate(self.items(document.get("candidates"))):
            self._candidate(candidate, position)
        if feedback := self.fields(document.get("promptFeedback")):
            self._feedback(feedback)
        usage = document.get("usageMetadata")
        if usage and usage != self._usage:
            self._usage = usage
            self._count(self.fields(usage))
        if not document.keys() <= CHUNK_FIELDS:
            for name, value in document.items():
                if name not in CHUNK_FIELDS and said(value) and self._extras.get(name) != value:
                    self.out.append(Aside(VENDOR, "metadata", name, value))
        if error:
            if not is_error(error) or next(iter(document)) != "error":
                self.report.repair("error_shape")  # the official client passes over it
            self.out.append(provider_failed(error, VENDOR, ERROR_TYPES))

    def _start(self, document: dict[str, Any]) -> None:
        self._started = True
        self._extras = {name: value for name, value in document.items() if name not in CHUNK_FIELDS and said(value)}
        self.out.append(
            ResponseStarted(
                text_of(document.get("responseId")),
                text_of(document.get("modelVersion")),
                decode_time(document.get("createTime")),
                VENDOR,
                self._extras or None,
            )
        )

    def _choice(self, index: int) -> Candidate:
        candidate = self._candidates.get(index)
        if candidate is None:
            if len(self._candidates) >= self.limits.choices:
                raise TooManyChoices(self.limits.choices, offset=self.frame.offset)
            candidate = self._candidates[index] = Candidate(index)
            self.out.append(ChoiceStarted(index))
        return candidate

    def _candidate(self, candidate: Any, position: int) -> None:
        candidate = self.alone(candidate)
        if type(candidate) is not dict:
            self.odd(candidate)
            return
        index = self.index(candidate.get("index"))
        if index is None:  # Vertex leaves out 0
            if position:
                self.report.repair("choice_index_missing")
            index = position
        of = self._choice(index)
        content = self.fields(candidate.get("content"))
        self.parts(self.contents(content.get("parts")), of, position)
        if not content.keys() <= CONTENT.names:
            self.keep_unread(content, CONTENT, index, max(of.block, 0), where="content.")
        native = text_of(candidate.get("finishReason"))
        failed = native is not None and STOP_REASONS.get(native) in FAILING
        if not candidate.keys() <= CANDIDATE_FIELDS:
            for name, value in candidate.items():
                if name not in CANDIDATE_FIELDS and said(value) and not (name == MESSAGE and failed):
                    kind = ASIDES.get(name, "metadata")
                    self.out.append(Aside(VENDOR, kind, f"candidates.{name}", value, index, max(of.block, 0)))
        if native is not None and native not in UNSPECIFIED:
            reason = self.stop_reason(native, STOP_REASONS)
            message = text_of(candidate.get(MESSAGE)) if failed else None
            self.out.append(
                StopReasonSeen(reason, native, index, covers_calls=True, message=message, ends_failed=failed)
            )

    def _count(self, usage: dict[str, Any]) -> None:
        if counts := decode_usage(usage):
            self.out.append(counts)
        elif others := {name: value for name, value in usage.items() if not is_bad_count(name, value)}:
            # no count at all: Vertex says `trafficType` before it counts
            self.out.append(Aside(VENDOR, "metadata", "usageMetadata", others))
        for name, value in usage.items():
            if value is not None and is_bad_count(name, value):
                self.odd({name: value})

    def _feedback(self, feedback: dict[str, Any]) -> None:
        """What was thought of the prompt. If it was blocked there are no candidates, and nothing more comes."""
        if not isinstance(feedback.get("blockReason"), str | None):
            self.odd(feedback)
            return
        self.out.append(Aside(VENDOR, "metadata", "promptFeedback", feedback))
        native = text_of(feedback.get("blockReason"))
        if native is not None and native not in UNSPECIFIED:
            self._choice(0)
            self.out.append(StopReasonSeen("content_filter", native))
