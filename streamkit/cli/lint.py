"""``streamkit lint``: is a stream well formed, and where not, what is it like and what would streamkit do?

The checker judges each frame, the machines read the same frame beside it, and what they counted meanwhile explains what was
found there. So the parser is fed a line at a time: what it counts belongs to the frame that comes next.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from attrs import asdict, frozen

from streamkit.cli.inputs import open_input
from streamkit.cli.options import AUTO, dialect_or_auto
from streamkit.cli.streams import STDIN, name_of, say, visible, write, write_json
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
from streamkit.framing.frame import NOTHING, Frame
from streamkit.limits import DEFAULT_LIMITS
from streamkit.pipeline import Chain
from streamkit.report import REPAIRS, Status, StreamReport, describe
from streamkit.tool_calls.accumulate import ToolCallAccumulator

HELP = "check a stream against its dialect's grammar"
DETAIL = """\
Says which rule of the dialect a stream breaks, at which byte and in which frame, which reported failure of other software
it looks like, and what streamkit would do. An error breaks a client or the grammar; a note is common and read by every client,
and leaves the stream clean. What is found again and again is printed once. With several files the highest status wins.

exit status: 0 clean, 1 broken, 6 not clean but streamkit would read it to a clean end, 5 not this dialect.

--json prints one object a file on one line:
  {"file", "dialect", "verdict": "clean" | "repairable" | "broken", "violations": [{"rule", "message", "offset", "frame",
   "severity", "case": number | null, "streamkit": [repair] | text}], "repairs": {kind: count},
   "other_repairs": [{"repair", "offset", "frame", "case"}]}
where "case" is a number of the page of field failures, "streamkit" the kinds of repair that the frame took, or else what would
become of it, and "other_repairs" are those that no broken rule explains.

A recording (*.stream.jsonl) has its dialect. A stream that broke off when it was recorded is broken; an answer with another
status than 200 is no stream, and the exit status is 4.

examples:
  curl -N … | streamkit lint --dialect DIALECT
  streamkit lint answer.stream.jsonl
"""
VERDICTS = {Status.DONE: "clean", Status.WOULD_BE_REPAIRED: "repairable"}
#: Lines with their ends, of CR, LF or CRLF; the last may lack it.
LINES = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


def add_to(commands: Any) -> None:
    """Add ``streamkit lint`` and its options to the parser's commands."""
    command = commands.add_parser("lint", help=HELP, description=DETAIL, epilog=None)
    command.add_argument(
        "--dialect",
        default=AUTO,
        type=dialect_or_auto,
        metavar="DIALECT",
        help="the dialect (default: a recording's own, else auto)",
    )
    command.add_argument("--json", action="store_true", help="one JSON object a file")
    command.add_argument(
        "files", nargs="*", default=[STDIN], metavar="FILE", help="recordings; standard input by default"
    )
    command.set_defaults(run=run)


async def run(options: argparse.Namespace) -> Status:
    """Check each file; the status is the worst of theirs."""
    statuses = [await lint(path, options.dialect, as_json=options.json) for path in options.files]
    return max(statuses)


async def lint(path: str, dialect: str, *, as_json: bool) -> Status:
    """Check one file and tell; returns its status."""
    try:
        opened, dialect = await open_input(path, dialect)
    except NotThisDialect as error:
        say(f"{name_of(path)}: {error}")
        return Status.FAILED if error.found == NOTHING else Status.NOT_THIS_DIALECT
    except SourceFailed as error:
        say(str(error))
        return Status.FAILED
    failed = opened.refusal(dialect)
    if failed is not None:
        what = f"the provider answered with status {failed.http_status}, {failed.type}: {failed.message}"
        say(f"{name_of(path)}: no stream: {what}")
        return Status.PROVIDER_ERROR
    check = Check(dialect)
    source = opened.source(check.report)
    try:
        async for chunk in source:
            check.feed(chunk)
    except SourceFailed as error:
        check.break_off(error)
    finally:
        await source.aclose()
    status = check.finish()
    if isinstance(check.fault, SourceFailed):
        say(f"{name_of(path)}: {check.fault}")
        if not check.report.bytes_in:
            return Status.FAILED
    if status is Status.NOT_THIS_DIALECT:
        say(f"{name_of(path)}: {describe(check.fault)}" if check.fault else "")
    elif as_json:
        write_json(_as_object(path, check, status))
    else:
        _tell(path, check, status)
    return status


# -- the check ---------------------------------------------------------------------------------------------------------


@frozen
class Found:
    """A broken rule with its explanation; ``violation`` is None for a repair where no rule is broken."""

    violation: Violation | None
    explanation: Explanation
    offset: int
    frame: int


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


# -- what is printed ------------------------------------------------------------------------------------------------------


def _as_object(path: str, check: Check, status: Status) -> dict[str, Any]:
    return {
        "file": path,
        "dialect": check.dialect.name,
        "verdict": VERDICTS.get(status, "broken"),
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


def _tell(path: str, check: Check, status: Status) -> None:
    groups: dict[object, list[Found]] = {}  # by what is the same of them
    for found in check.found:
        violation = found.violation
        key = (violation and (violation.rule, violation.severity), found.explanation)
        groups.setdefault(key, []).append(found)
    lines = [f"{name_of(path)}: {check.dialect.name}, {VERDICTS.get(status, 'broken')}"]
    for group in groups.values():
        lines += _lines(group)
    if check.report.repairs:
        lines.append(f"  repairs: {', '.join(f'{kind} {times}' for kind, times in check.report.repairs.items())}")
    write("".join(visible(line) + "\n" for line in lines).encode())


def _lines(group: list[Found]) -> Iterator[str]:
    first, *others = group
    violation = first.violation
    what = f"{violation.severity} {violation.rule}: {violation.message}" if violation else "no rule is broken"
    more = f" (and {len(others)} more, the last at {_where(others[-1])})" if others else ""
    yield f"  {_where(first)}: {what}{more}"
    explanation = first.explanation
    parts = []
    if explanation.case is not None:
        parts.append(f"looks like field failure {explanation.case}: {CASES[explanation.case]}")
    if explanation.repairs:
        repairs = "; ".join(f"{REPAIRS[kind]} ({kind})" for kind in explanation.repairs)
        parts.append(f"streamkit repairs it: {repairs}")
    else:
        parts.append(f"streamkit {explanation.answer}")
    yield f"    {'. '.join(parts)}"


def _where(found: Found) -> str:
    return f"byte {found.offset}" + (f", frame {found.frame}" if found.frame >= 0 else "")
