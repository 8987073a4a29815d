"""Check a stream against its dialect's grammar, and report what streamkit would do with each fault.

The checker judges each frame that an ``Observer`` returns. The repairs counted for a frame explain the faults found in that
frame. A repair that the parser counts without a frame belongs to the next frame.
"""

from __future__ import annotations

from typing import Any

from attrs import asdict, frozen

from streamkit.dialects import source_named
from streamkit.dialects.linting import (
    CASES,
    CUT,
    GARBLES,
    KNOWN,
    READS,
    STOPPED,
    STOPS,
    TOLD,
    TORN,
    UNFINISHED,
    Explanation,
    Violation,
    explain,
    explain_repair,
    shown,
)
from streamkit.dialects.streams.frame_decoder import DONE
from streamkit.errors import NotThisDialect, SourceFailed, StreamError
from streamkit.events import ProviderFailed, ToolCallFinished
from streamkit.framing.frame import Frame
from streamkit.observer import Observer, Seen
from streamkit.report import REPAIRS, Status

#: Repairs that decide which fragments make up the arguments of a call. The decision may be wrong.
GUESSES = frozenset({
    "index_missing", "index_reused", "index_changed", "index_invalid", "id_changed", "objects_split", "arguments_repeated",
    "arguments_cumulative", "arguments_replaced", "empty_object_prefix",
})  # fmt: skip
VERDICTS = {Status.DONE: "clean", Status.WOULD_BE_REPAIRED: "repairable"}  #: any other status is ``broken``


@frozen
class Found:
    """A broken rule with its explanation. ``violation`` is None for a repair without a broken rule."""

    violation: Violation | None
    explanation: Explanation
    offset: int
    frame: int

    @property
    def kind(self) -> object:
        """The key by which equal findings are grouped: the rule with its severity, and the explanation."""
        return self.violation and (self.violation.rule, self.violation.severity), self.explanation

    @property
    def what(self) -> str:
        """A description of the fault, without its position."""
        violation = self.violation
        return f"{violation.severity} {violation.rule}: {violation.message}" if violation else "no rule is broken"


class Check:
    """Feeds a stream to an ``Observer`` and to the dialect's checker."""

    def __init__(self, dialect: str) -> None:
        self.dialect = source_named(dialect)[0]
        self._linter = self.dialect.linter()
        self._observer = Observer(self.dialect.name)
        self.report = self._observer.report
        self.found: list[Found] = []
        self.fault: Exception | None = None  #: the first error in the stream, set at its end
        self._broken: SourceFailed | None = None  # the error that ended the source
        self._unexplained: set[str] = set()  # kinds of repairs counted since the latest frame
        self._unparsed: list[Violation] = []  # the errors that stopped the parser
        self._stopped = False  # True once the decoder can read no more frames
        self._calls: list[ToolCallFinished] = []
        self._offset = 0  # byte offset of the latest frame
        self._frame = -1  # number of the latest frame
        self._ended = False  # True after a `[DONE]` that ends streams of the dialect

    @property
    def violations(self) -> list[Violation]:
        return [found.violation for found in self.found if found.violation is not None]

    def feed(self, chunk: bytes) -> None:
        for seen in self._observer.feed(chunk):
            self._take(seen)

    def break_off(self, error: SourceFailed) -> None:
        """Note that the source failed and nothing follows. A failure after the completion point is ignored."""
        self._broken = error

    def finish(self) -> Status:
        *others, end = self._observer.finish()
        for seen in others:
            self._take(seen)
        self._unexplained |= end.repairs.keys()
        self._calls += [event for event in end.events if isinstance(event, ToolCallFinished)]
        violations = [*self._linter.finish(), *self._unreadable(end.fault, self._frame), *self._unparsed]
        self.fault = self._observer.fault or (None if self.report.clean else self._broken)
        if self.fault is not None:
            self.report.failed(self.fault)
        if self.report.status is Status.NOT_THIS_DIALECT:
            return Status.NOT_THIS_DIALECT
        self._explain(violations, STOPPED if self._stopped else self._end())
        garbled = self._garbled()
        self._explain(garbled, GARBLES)
        errors = any(violation.severity == "error" for violation in self.violations)
        if not errors and not self.report.repairs and self.fault is None:
            return Status.DONE
        return Status.WOULD_BE_REPAIRED if self.report.clean and not garbled else Status.FAILED

    def _garbled(self) -> list[Violation]:
        """Return a violation for each call whose fragments were put together by a guess, and are no JSON object.

        The last call of a response may be truncated, since the model may reach its token limit there.
        """
        if GUESSES.isdisjoint(self.report.repairs):
            return []
        return [
            Violation(
                "garbled",
                f"the arguments of {shown(call.name)} are {call.verdict.kind}: {shown(call.arguments)}",
                self._offset,
                max(self._frame, 0),
            )
            for call in self._calls
            if call.verdict is not None
            and not call.verdict.ok
            and (call.verdict.kind != "truncated" or call is not self._calls[-1])
        ]

    def _take(self, seen: Seen) -> None:
        """Judge a frame, and explain its faults by the outcome of reading it."""
        self._unexplained |= seen.repairs.keys()
        self._calls += [event for event in seen.events if isinstance(event, ToolCallFinished)]
        frame = seen.frame
        if frame is None:
            self._unparsed += self._unreadable(seen.fault, -1)
            return
        self._offset, self._frame = frame.offset, self._frame + 1
        self._ended = self._ended or (self.dialect.done_mark and frame.data.strip() == DONE)
        violations = [*self._linter.feed([frame]), *self._unreadable(seen.fault, self._frame)]
        self._explain(violations, STOPPED if self._stopped else self._answer(seen, frame))
        self._stopped = self._stopped or seen.fault is not None

    def _answer(self, seen: Seen, frame: Frame) -> str:
        if seen.fault is not None:
            return STOPS
        if self.report.broken_frame is not None and not frame.terminated:
            return TORN
        return TOLD if any(isinstance(event, ProviderFailed) for event in seen.events) else READS

    def _end(self) -> str:
        if self.fault is not None:
            return STOPS
        if self.report.clean:
            return READS
        if self.report.provider_error is not None:
            return TOLD
        return UNFINISHED if self._ended else CUT

    def _unreadable(self, fault: Exception | None, frame: int) -> list[Violation]:
        if not isinstance(fault, StreamError) or isinstance(fault, NotThisDialect):
            return []
        return [Violation("unreadable", str(fault), fault.offset or 0, frame)]

    def _explain(self, violations: list[Violation], answer: str) -> None:
        """Explain the violations by the repairs counted since the last call, and record repairs that explain no violation."""
        counted = dict.fromkeys(kind for kind in self.report.repairs if kind in self._unexplained)
        self._unexplained.clear()
        others = counted.copy()
        for violation in violations:
            known = KNOWN if answer == READS and violation.severity == "note" else answer
            reason = explain(self._linter.hints, violation.rule, violation.message, counted.keys(), known)
            self.found.append(Found(violation, reason, violation.offset, violation.frame))
            for kind in reason.repairs:
                others.pop(kind, None)
        for kind in others:
            reason = explain_repair(self._linter.hints, kind, answer)
            self.found.append(Found(None, reason, self._offset, max(self._frame, 0)))


# -- the findings as JSON and as text ----------------------------------------------------------------------------------


def members_of(check: Check) -> dict[str, Any]:
    """Return a finished check's members ``violations``, ``repairs`` and ``other_repairs`` of ``lint --json``."""
    return {
        "violations": [
            {
                **asdict(found.violation),
                "case": found.explanation.case,
                "streamkit": found.explanation.repairs or found.explanation.answer,
            }
            for found in check.found
            if found.violation is not None
        ],
        "repairs": dict(check.report.repairs),
        "other_repairs": [
            {"repair": kind, "offset": found.offset, "frame": found.frame, "case": found.explanation.case}
            for found in check.found
            if found.violation is None
            for kind in found.explanation.repairs
        ],
    }


def sentence(explanation: Explanation) -> str:
    """Describe the known failure that a finding resembles, and what streamkit does about it."""
    parts = []
    if explanation.case is not None:
        parts.append(f"looks like field failure {explanation.case}: {CASES[explanation.case]}")
    if explanation.repairs:
        repairs = "; ".join(f"{REPAIRS[kind]} ({kind})" for kind in explanation.repairs)
        parts.append(f"streamkit repairs it: {repairs}")
    else:
        parts.append(f"streamkit {explanation.answer}")
    return ". ".join(parts)
