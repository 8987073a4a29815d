"""What is known of one request when it is over. The log has it as one line, the metrics as counts.

Users sometimes paste keys into the wrong place, as a model's name or into a path. So every text of a client or an upstream
passes through ``logged`` before it is in the line, and none is a label of a metric.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property, lru_cache
from logging import INFO, WARNING
from typing import TYPE_CHECKING, Any, Final

from attrs import define, field

from streamkit.gateway.log import BEGUN, OVER, begun_log, log
from streamkit.gateway.reasons import END_REASONS, HEDGED_OUT
from streamkit.report import StageTiming, StreamReport
from streamkit.resume.log import LOG_ID
from streamkit.text.known_keys import KEY_CHARS
from streamkit.text.quoting import excerpt
from streamkit.web.observers import OutputTimes
from streamkit.web.upstream.hiding import Cut
from streamkit.web.upstream.learning import left_out

if TYPE_CHECKING:  # OpenTelemetry is an optional extra
    from streamkit.gateway.telemetry import RequestTrace

#: The most characters of an upstream's error that are logged, since some errors repeat whole requests.
DETAIL_CHARS = 500
AND: Final = "; "  #: separates the errors of several upstreams in one message
#: The most characters that are logged of a path or model that a client sent, and of an HTTP method (it may be any word).
ASKED_CHARS, METHOD_CHARS = 200, 20
#: Characters after a truncated text that are also searched for the gateway's keys, in case a key continues there.
_MARGIN_CHARS = 2 * KEY_CHARS
#: The id of a response. The log hides it, because it allows reading the response (resume.md §13.3).
_ANSWER_ID: Final = re.compile(rf"(?<![A-Za-z0-9])(?:{LOG_ID.pattern})(?![A-Za-z0-9])")
#: For each type of tokens in the log: the member of ``UsageReported`` with its count.
TOKENS: Final = {
    "input": "input_total",
    "input_cached": "input_cached",
    "input_cache_write": "input_cache_write",
    "output": "output_total",
    "output_reasoning": "output_reasoning",
}
#: Outcomes of an attempt that are no failure of the upstream.
ANSWERS = END_REASONS | {"success", "answered", "counted", "client_left", "client_stalled", HEDGED_OUT}


@define
class Attempt:
    """One attempt with one upstream."""

    upstream: str
    #: A word of a fixed list, or ``http_`` and a status. docs/how-to/run-the-gateway.md explains them.
    outcome: str
    seconds: float
    detail: str  #: the upstream's error without secrets; not logged if the client got the same
    report: StreamReport = field(repr=False)  #: repairs and losses of the response, and the upstream's error
    asked: StreamReport = field(repr=False)  #: repairs and losses of the request
    path: str = ""  #: the path of the request, without host and query; logged only after failures
    reason: str = ""  #: why another upstream may do better: a word of ``next_on``
    started: float = 0.0  #: the event loop's time at the start
    output_times: OutputTimes = field(factory=OutputTimes, repr=False)  #: the times of a stream's outputs
    model: str = field(default="", repr=False)  #: the upstream's name for the model

    @property
    def begun(self) -> bool:
        """Whether the model responded: it emitted something, or ended without any output."""
        return self.report.spoken or self.report.clean is True

    @cached_property
    def usage(self) -> dict[str, int]:
        """The tokens that the upstream reported, by type. Cached tokens are also in input, and reasoning tokens in output."""
        counted = self.report.usage
        found = {name: getattr(counted, member, None) for name, member in TOKENS.items()}
        return {name: tokens for name, tokens in found.items() if tokens is not None}

    @property
    def first_output_s(self) -> float | None:
        """Seconds from the start of the attempt to the first text, reasoning or call."""
        return None if self.output_times.first_at is None else self.output_times.first_at - self.started

    @property
    def output_tokens_per_s(self) -> float | None:
        """Tokens per second after the first output; None if unknown."""
        first_at, counted = self.output_times.first_at, self.report.usage
        if first_at is None or counted is None:
            return None
        span, output = self.output_times.last_at - first_at, counted.output_total or 0
        return (output - 1) / span if output > 1 and span > 0 else None


@define
class Record:
    """The record of a request, filled in while the request is processed."""

    id: str
    method: str
    path: str = field(repr=False)
    client: str = ""  #: the client's dialect
    model: str = field(default="", repr=False)  #: the client's name for the model
    #: The route's name for metrics. There are few, in contrast to the models that clients may name (limits.md T13).
    route: str = "_other"
    socket: str = ""  #: the id of the request that opened the WebSocket of this message
    stream: bool = False
    status: int = 0  #: the HTTP status that the client got; 499: it disconnected before
    ending: str = ""  #: ``whole``, ``error``, ``broken``, ``client left``, ``client stalled``
    error: str = field(default="", repr=False)  #: the error that the client got
    asked: StreamReport = field(factory=StreamReport, repr=False)  #: the repairs made while the request was read
    attempts: list[Attempt] = field(factory=list)
    #: The attempt whose response the client got, if later ones did no better; None: it is the last one.
    kept: Attempt | None = None
    started: float = 0.0  #: the event loop's time when the request arrived
    seconds: float = 0.0
    wrote_at: float | None = None  #: the event loop's time at the response's first byte, not counting keep-alives
    first_byte_s: float | None = None  #: seconds to the response's first byte, not counting keep-alives
    keep_alives: int = 0
    resumed: bool = False  #: the response is the rest of an earlier one, for a client that resumed
    went_on_s: float = 0.0  #: seconds that the response continued without its client
    estimated: bool = False  #: a token count that was estimated
    trace: RequestTrace | None = field(default=None, repr=False, eq=False)  #: the request's spans, if traces are sent
    #: Removes the gateway's own keys from a text. Keys may look like ordinary text, so only a search for each key finds them.
    hide: Cut = field(default=str, repr=False, eq=False)

    def add(self, attempt: Attempt, *, is_decided: bool = False) -> None:
        """Add an attempt that is over. The last one decided the response or the error, so one that was stopped is before it.

        ``is_decided``: the client gets the error of the attempt that was added last.
        """
        place = len(self.attempts)
        if attempt.outcome == HEDGED_OUT and self.attempts and (is_decided or not self.attempts[-1].reason):
            place -= 1
        self.attempts.insert(place, attempt)

    @property
    def first_output_s(self) -> float | None:
        """Seconds from the request to the first text, reasoning or call of any upstream."""
        return None if self._first_output_at is None else self._first_output_at - self.started

    @property
    def _first_output_at(self) -> float | None:
        times = (each.output_times.first_at for each in self.attempts)
        return next((at for at in times if at is not None), None)

    @property
    def overhead_s(self) -> float | None:
        """Seconds that the gateway added to a stream: before the first attempt, and from the first output to its first byte.

        None if nothing was streamed. The time of failed attempts before is not counted.
        """
        first = self._first_output_at
        if first is None or self.wrote_at is None:
            return None
        return min(each.started for each in self.attempts) - self.started + max(0.0, self.wrote_at - first)

    def document(self) -> dict[str, Any]:
        """Return the record as JSON values for one log line. It includes no body, header or key, and no empty member."""
        line: dict[str, Any] = {"request_id": self.id}
        if self.trace is not None:
            line |= self.trace.ids
        line["method"], line["path"] = self.logged(self.method, METHOD_CHARS), self.logged(self.path)
        if self.client:
            line["client"] = self.client
        if self.model:
            line["model"] = self.logged(self.model)
        line["route"] = self.route
        if self.socket:
            line["socket"] = self.socket
        if self.stream:
            line["stream"] = True
        line["status"] = self.status
        if self.ending:
            line["ending"] = self.ending
        line["seconds"] = round(self.seconds, 3)
        if self.first_byte_s:
            line["first_byte_s"] = round(self.first_byte_s, 3)
        if self.keep_alives:
            line["keep_alives"] = self.keep_alives
        if self.resumed:
            line["resumed"] = True
        if self.went_on_s:
            line["went_on_s"] = round(self.went_on_s, 3)
        if self.estimated:
            line["estimated"] = True
        if self.error:  # shortened: the error may quote invalid parts of the client's body
            line["error"] = self.logged(self.error, DETAIL_CHARS)
        if self.attempts:
            line["attempts"] = [self._attempt_line(attempt) for attempt in self.attempts]
        if self.asked.repairs:
            line["request_repairs"] = dict(self.asked.repairs)
        if self.attempts:
            line |= _answer_line(self.kept or self.attempts[-1])
        return line

    def _attempt_line(self, attempt: Attempt) -> dict[str, Any]:
        line = {"upstream": attempt.upstream, "outcome": attempt.outcome, "seconds": round(attempt.seconds, 3)}
        if attempt.model not in {"", self.model}:
            line["model"] = self.logged(attempt.model)
        if attempt.reason not in {"", attempt.outcome}:
            line["reason"] = attempt.reason
        if attempt.path and attempt.outcome not in ANSWERS:
            line["path"] = self.logged(attempt.path, ASKED_CHARS)
        if attempt.detail not in {"", self.error, *self.error.split(AND)}:
            line["detail"] = self.logged(attempt.detail, DETAIL_CHARS)
        return line

    def logged(self, text: str, chars: int = ASKED_CHARS) -> str:
        """Return the beginning of another party's text, without the gateway's keys and without what looks like a key."""
        return _logged(text[: chars + _MARGIN_CHARS], self.hide, chars)


@lru_cache(maxsize=512)  # most requests have the same few paths and models
def _logged(text: str, hide: Cut, chars: int) -> str:
    return excerpt(_ANSWER_ID.sub("[answer]", hide(text)), chars)


def log_record(record: Record) -> None:
    """Log one line for a request that is over."""
    level = WARNING if record.status >= 500 or record.ending == "broken" else INFO
    log.log(level, OVER, extra={"fields": record.document()})


def log_begun(record: Record) -> None:
    """Log that a request to a model has been read, if the log is text for people."""
    if begun_log.isEnabledFor(INFO):
        document = record.document()
        fields = {name: document[name] for name in ("request_id", "method", "path", "model") if name in document}
        begun_log.info(BEGUN, extra={"fields": fields})


def _answer_line(attempt: Attempt) -> dict[str, Any]:
    """Return what the log says of the last attempt's response, without empty members.

    The median gap is the bound of ``GAP_BOUNDS`` for half of the gaps.
    """
    report, times = attempt.report, attempt.output_times
    line: dict[str, Any] = {}
    for name, counts in (
        ("verdicts", report.verdicts),
        ("repairs", report.repairs),
        ("output_verdicts", report.output_verdicts),
        ("losses", attempt.asked.losses + report.losses if attempt.asked.losses else report.losses),
    ):
        if counts:
            line[name] = dict(counts)
    if names := left_out(attempt.asked):
        line["left_out"] = names
    if report.tool_searches:
        line["tool_searches"] = report.tool_searches
    if report.tokens_saved:
        line["tokens_saved"] = report.tokens_saved
    if report.stops:
        line["stop"] = ", ".join([stop.reason for stop in report.stops])
    if usage := attempt.usage:
        line["usage"] = usage
    if times.first_at is not None:
        for name, figure in (
            ("first_output_s", attempt.first_output_s),
            ("greatest_gap_s", times.greatest_gap_s),
            ("median_gap_s", times.median_gap_s),
            ("stalls", times.stalls),
            ("output_tokens_per_s", attempt.output_tokens_per_s),
        ):
            if figure and (rounded := round(figure, 4)):
                line[name] = rounded
    if report.timings:
        line["timings"] = _times_of_stages(report.timings)
    return line


def _times_of_stages(timings: Iterable[StageTiming]) -> dict[str, dict[str, float]]:
    """Return the times of each stage, by the stage's name. If two pipes of a response have a stage with one name, add both."""
    rows: dict[str, list[StageTiming]] = {}
    for row in timings:
        rows.setdefault(row.name, []).append(row)
    return {
        name: {
            "ms": round(1000 * sum(row.seconds for row in same), 3),
            "items_in": sum(row.items_in for row in same),
            "items_out": sum(row.items_out for row in same),
        }
        for name, same in rows.items()
    }
