"""A stream judged by its dialect's grammar, and beside it what streamkit would make of it.

The checker judges each frame, the machines read the same frame beside it, and what they counted meanwhile explains what was
found there. So the parser is fed a line at a time: what it counts belongs to the frame that comes next.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from attrs import asdict, frozen

from streamkit.dialects import source_named
from streamkit.dialects.linting.explain import (
    CASES,
    CUT,
    KNOWN,
    READS,
    STOPPED,
    STOPS,
    TOLD,
    TORN,
    UNFINISHED,
    Explanation,
    explain,
    explain_repair,
)
from streamkit.dialects.linting.grammar import Violation
from streamkit.dialects.streams.frame_decoder import DONE
from streamkit.errors import NotThisDialect, SourceFailed, StreamError
from streamkit.framing.frame import Frame
from streamkit.limits import DEFAULT_LIMITS
from streamkit.machines import Chain
from streamkit.report import REPAIRS, Status, StreamReport
from streamkit.tool_calls.accumulate import ToolCallAccumulator

#: What a status is called that ``Check.finish`` gives; any other is ``broken``.
VERDICTS = {Status.DONE: "clean", Status.WOULD_BE_REPAIRED: "repairable"}
#: Lines with their ends, of CR, LF or CRLF; the last may lack it.
LINES = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


@frozen
class Found:
    """A broken rule with its explanation; ``violation`` is None for a repair where no rule is broken."""

    violation: Violation | None
    explanation: Explanation
    offset: int
    frame: int

    @property
    def kind(self) -> object:
        """What is the same where it is found again: the rule with its severity, and the explanation."""
        return self.violation and (self.violation.rule, self.violation.severity), self.explanation

    @property
    def what(self) -> str:
        """What is wrong, without its place."""
        violation = self.violation
        return f"{violation.severity} {violation.rule}: {violation.message}" if violation else "no rule is broken"


class Check:
    """A stream under the dialect's checker, and beside it the machines that would read it."""

    def __init__(self, dialect: str) -> None:
        self.dialect = source_named(dialect)[0]
        self.report = StreamReport()
        self.found: list[Found] = []
        self._parser = self.dialect.parser(DEFAULT_LIMITS, self.report)
        self._linter = self.dialect.linter()
        self._reader = Chain(self.dialect.decoder(DEFAULT_LIMITS, self.report), ToolCallAccumulator(report=self.report))
        self._counted: Counter[str] = Counter()  # the repairs that are explained
        self.fault: Exception | None = None  #: the first in the stream
        self._broken: SourceFailed | None = None  # what ended the source
        self._offset = 0  # of the latest frame, and its number
        self._frame = -1
        self._ended = False  # `[DONE]` came where it is the terminator; other terminators name their reason themselves

    @property
    def violations(self) -> list[Violation]:
        return [found.violation for found in self.found if found.violation is not None]

    def feed(self, chunk: bytes) -> None:
        for line in LINES.findall(chunk):
            for frame in self._parser.feed(line):
                self._take(frame)
        self.fault = self.fault or self._parser.fault

    def break_off(self, error: SourceFailed) -> None:
        """The source failed: nothing follows. Behind the completion point that takes nothing back."""
        self._broken = error

    def finish(self) -> Status:
        """The verdict on the whole stream."""
        for frame in self._parser.finish():
            self._take(frame)
        self.fault = self.fault or self._parser.fault
        violations = self._linter.finish()
        stopped = self._reader.fault is not None
        if not stopped:
            self._reader.finish()
            self.fault = self.fault or self._reader.fault or (None if self.report.clean else self._broken)
            violations += self._unreadable(self._reader.fault, self._frame)
        violations += self._unreadable(self._parser.fault, -1)
        if self.fault is not None:
            self.report.failed(self.fault)
        if self.report.status is Status.NOT_THIS_DIALECT:
            return Status.NOT_THIS_DIALECT
        self._explain(violations, STOPPED if stopped else self._end())
        errors = any(violation.severity == "error" for violation in self.violations)
        if not errors and not self.report.repairs and self.fault is None:
            return Status.DONE
        return Status.WOULD_BE_REPAIRED if self.report.clean else Status.FAILED

    def _take(self, frame: Frame) -> None:
        """One frame: judged, read, and explained by what the reading came to."""
        self._offset, self._frame = frame.offset, self._frame + 1
        self._ended = self._ended or (self.dialect.done_mark and frame.data.strip() == DONE)
        violations = self._linter.feed([frame])
        if self._reader.fault is not None:
            self._explain(violations, STOPPED)
            return
        earlier = self.report.provider_error
        self._reader.feed([frame])
        self.fault = self.fault or self._reader.fault
        violations += self._unreadable(self._reader.fault, self._frame)
        self._explain(violations, self._answer(earlier))

    def _answer(self, earlier: object) -> str:
        """What a frame came to; ``earlier`` is the provider's error before it."""
        if self._reader.fault is not None:
            return STOPS
        if self.report.broken_frame is not None:
            return TORN
        return READS if self.report.provider_error == earlier else TOLD

    def _end(self) -> str:
        """What the end of the input came to."""
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
        """Explain what was found by the repairs counted since, and note those that explain nothing."""
        counted = self.report.repairs - self._counted
        self._counted = self.report.repairs.copy()
        others = dict.fromkeys(counted)
        for violation in violations:
            known = KNOWN if answer == READS and violation.severity == "note" else answer
            reason = explain(self._linter.hints, violation.rule, violation.message, counted.keys(), known)
            self.found.append(Found(violation, reason, violation.offset, violation.frame))
            for kind in reason.repairs:
                others.pop(kind, None)
        for kind in others:
            reason = explain_repair(self._linter.hints, kind, answer)
            self.found.append(Found(None, reason, self._offset, max(self._frame, 0)))


# -- what was found, for who shows it ------------------------------------------------------------------------------------


def members_of(check: Check) -> dict[str, Any]:
    """What a finished check found, as the members ``violations``, ``repairs`` and ``other_repairs`` of ``lint --json``."""
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
    """What it looks like, and what streamkit does about it."""
    parts = []
    if explanation.case is not None:
        parts.append(f"looks like field failure {explanation.case}: {CASES[explanation.case]}")
    if explanation.repairs:
        repairs = "; ".join(f"{REPAIRS[kind]} ({kind})" for kind in explanation.repairs)
        parts.append(f"streamkit repairs it: {repairs}")
    else:
        parts.append(f"streamkit {explanation.answer}")
    return ". ".join(parts)
