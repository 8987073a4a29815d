"""What is known of one request when it is over: the log has it as one line, the metrics as counts.

Keys are pasted where they do not belong: as a model, into a path. So no word of a client or of an upstream stands in the line
as it came, each goes through ``logged``; and none is a label of a metric.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from logging import INFO, WARNING
from typing import Any, Final, Protocol

from attrs import define, field

from streamkit.conversation.messages import Response
from streamkit.gateway.log import log
from streamkit.gateway.routing import Route, Target
from streamkit.report import StageTiming, StreamReport
from streamkit.resume.identity import LOG_ID
from streamkit.text.known_keys import KEY_CHARS
from streamkit.text.redact import excerpt
from streamkit.web.output_times import OutputTimes
from streamkit.web.surfaces import Ask
from streamkit.web.upstream.hiding import Cut

#: Of what went wrong, as upstreams tell it, so much stands in a log: some repeat whole requests.
DETAIL_CHARS = 500
#: Of what a client wrote, so much: its path, its model. Of a method, which may be any word.
ASKED_CHARS, METHOD_CHARS = 200, 20
#: Behind a cut, so much is looked at for a key of the gateway's own that goes on there.
_MARGIN_CHARS = 2 * KEY_CHARS
#: The id of an answer, with which it can be read (resume.md §13.3).
_ANSWER_ID: Final = re.compile(rf"(?<![A-Za-z0-9])(?:{LOG_ID.pattern})(?![A-Za-z0-9])")
#: Members that a line has though they are 0; others that say nothing are left out.
ALWAYS = frozenset({"status", "seconds"})
#: Types of tokens, and where they stand in what an upstream reports.
TOKENS: Final = {
    "input": "input_total",
    "input_cached": "input_cached",
    "input_cache_write": "input_cache_write",
    "output": "output_total",
    "output_reasoning": "output_reasoning",
}
#: Outcomes that nobody has to look into.
ANSWERS = frozenset({"success", "answered", "tool_choice_ignored", "counted", "client_left", "client_stalled"})


@define
class Attempt:
    """One try with one upstream."""

    upstream: str
    #: A word of a fixed list, or ``http_`` and a status. They are explained in docs/how-to/run-the-gateway.md.
    outcome: str
    seconds: float
    detail: str  #: the upstream's words, without secrets; left out of a log where the client was told the same
    report: StreamReport = field(repr=False)  #: of the answer, with the upstream's own words in it
    asked: StreamReport = field(repr=False)  #: of the request
    path: str = ""  #: where it was asked, without host and query; left out of a log where it answered
    started: float = 0.0  #: the loop's time at which it began
    output_times: OutputTimes = field(factory=OutputTimes, repr=False)  #: when the outputs of a stream came

    @property
    def begun(self) -> bool:
        """Whether the model answered: said something, or nothing, to an end."""
        return self.report.spoken or self.report.clean is True

    @property
    def usage(self) -> dict[str, int]:
        """The tokens that the upstream told of, by type; those of the cache are input, too, and those of reasoning output."""
        counted = self.report.usage
        found = {name: getattr(counted, member, None) for name, member in TOKENS.items()}
        return {name: tokens for name, tokens in found.items() if tokens is not None}

    @property
    def first_output_s(self) -> float | None:
        """From its beginning to the first text, reasoning or call."""
        return None if self.output_times.first_at is None else self.output_times.first_at - self.started

    @property
    def output_tokens_per_s(self) -> float | None:
        """Tokens behind the first output, by the time from that to the last one; None where that can't be known."""
        first_at, counted = self.output_times.first_at, self.report.usage
        if first_at is None or counted is None:
            return None
        span, output = self.output_times.last_at - first_at, counted.output_total or 0
        return (output - 1) / span if output > 1 and span > 0 else None


class AttemptTrace(Protocol):
    """What tells OpenTelemetry of one attempt (``gateway/telemetry.py``)."""

    @property
    def copy_to(self) -> Callable[[bytes], None] | None:
        """Is handed the reads of a stream."""

    @property
    def record_gap(self) -> Callable[[float], None] | None:
        """Is handed the gaps between the outputs of a stream."""

    @property
    def headers(self) -> Mapping[str, str]:
        """For the upstream."""

    def end(self, attempt: Attempt, answer: Response | None) -> None:
        """The attempt is over; ``answer`` is there where it came whole."""


class Trace(Protocol):
    """What tells OpenTelemetry of one request (``gateway/telemetry.py``)."""

    @property
    def ids(self) -> dict[str, str]:
        """For the log."""

    @property
    def headers(self) -> dict[str, str]:
        """For the client."""

    def attempt(self, route: Route, target: Target, ask: Ask) -> AttemptTrace:
        """An attempt with an upstream begins."""

    def end(self, record: Record) -> None:
        """The request is over, and ``record`` whole."""


@define
class Record:
    """Filled in while a request is answered."""

    id: str
    method: str
    path: str = field(repr=False)
    client: str = ""  #: the client's dialect
    model: str = field(default="", repr=False)  #: as the client called it
    #: The route's name for metrics: bounded, unlike the models that clients may name (limits.md T13).
    route: str = "_other"
    socket: str = ""  #: the id of the request that opened the WebSocket on which it was asked
    stream: bool = False
    status: int = 0  #: the HTTP status that the client got; 499: it left before there was one
    ending: str = ""  #: ``whole``, ``error``, ``broken``, ``client left``, ``client stalled``
    error: str = field(default="", repr=False)  #: what the client was told
    asked: StreamReport = field(factory=StreamReport, repr=False)  #: what was repaired of the request as it was read
    attempts: list[Attempt] = field(factory=list)
    started: float = 0.0  #: the loop's time at which it came
    seconds: float = 0.0
    wrote_at: float | None = None  #: the loop's time of the first byte of an answer, keep-alives aside
    first_byte_s: float | None = None  #: until the first byte of an answer, keep-alives aside
    keep_alives: int = 0
    resumed: bool = False  #: the rest of an answer, for a client that came back
    went_on_s: float = 0.0  #: for so long the answer went on without its client
    estimated: bool = False  #: a count of tokens that is none of an upstream's
    trace: Trace | None = field(default=None, repr=False, eq=False)  #: its spans, where traces are sent
    #: Takes the keys that the gateway itself has out of a text: they may look like nothing.
    hide: Cut = field(default=str, repr=False, eq=False)

    @property
    def first_output_s(self) -> float | None:
        """From the request to the first text, reasoning or call that an upstream said."""
        first = next(
            (each.output_times.first_at for each in self.attempts if each.output_times.first_at is not None), None
        )
        return None if first is None else first - self.started

    @property
    def overhead_s(self) -> float | None:
        """The gateway's own time before a stream: until it asked an upstream, and from the first output to its first byte.

        None where nothing was streamed. What an upstream took that was given up for another is no time of the gateway's.
        """
        first = next(
            (each.output_times.first_at for each in self.attempts if each.output_times.first_at is not None), None
        )
        if first is None or self.wrote_at is None:
            return None
        return self.attempts[0].started - self.started + max(0.0, self.wrote_at - first)

    def document(self) -> dict[str, Any]:
        """The record as JSON values, for one line of a log. No body, no header, no key is in it."""
        last = self.attempts[-1] if self.attempts else None
        line: dict[str, Any] = {
            "request_id": self.id,
            **({} if self.trace is None else self.trace.ids),
            "method": self.logged(self.method, METHOD_CHARS),
            "path": self.logged(self.path, ASKED_CHARS),
            "client": self.client,
            "model": self.logged(self.model, ASKED_CHARS),
            "route": self.route,
            "socket": self.socket,
            "stream": self.stream,
            "status": self.status,
            "ending": self.ending,
            "seconds": round(self.seconds, 3),
            "first_byte_s": None if self.first_byte_s is None else round(self.first_byte_s, 3),
            "keep_alives": self.keep_alives,
            "resumed": self.resumed,
            "went_on_s": round(self.went_on_s, 3),
            "estimated": self.estimated,
            "error": self.logged(self.error, DETAIL_CHARS),  # of a client's body, the part that can't be
            "attempts": [self._attempt_line(attempt) for attempt in self.attempts],
            "request_repairs": dict(self.asked.repairs),
        }
        if last is not None:
            line["verdicts"], line["repairs"] = dict(last.report.verdicts), dict(last.report.repairs)
            line["losses"] = dict(last.asked.losses + last.report.losses)
            line["stop"] = ", ".join(stop.reason for stop in last.report.stops)
            line["usage"] = last.usage
            line |= _times_line(last)
            line["profile"] = _profile(last.report.timings)
        return {name: value for name, value in line.items() if name in ALWAYS or value not in (None, "", 0, [], {})}

    def _attempt_line(self, attempt: Attempt) -> dict[str, Any]:
        line = {"upstream": attempt.upstream, "outcome": attempt.outcome, "seconds": round(attempt.seconds, 3)}
        if attempt.path and attempt.outcome not in ANSWERS:
            line["path"] = self.logged(attempt.path, ASKED_CHARS)
        if attempt.detail not in {"", self.error}:
            line["detail"] = self.logged(attempt.detail, DETAIL_CHARS)
        return line

    def logged(self, text: str, chars: int = ASKED_CHARS) -> str:
        """The beginning of what somebody else wrote, without keys: those that the gateway has, and what looks like one."""
        return excerpt(_ANSWER_ID.sub("[answer]", self.hide(text[: chars + _MARGIN_CHARS])), chars)


def log_record(record: Record) -> None:
    """Log one line for a request that is over."""
    level = WARNING if record.status >= 500 or record.ending == "broken" else INFO
    log.log(level, "request", extra={"fields": record.document()})


def _times_line(attempt: Attempt) -> dict[str, float | None]:
    """How the outputs of a stream came; the median gap is the bound of ``GAP_BOUNDS`` that half of the gaps do not pass."""
    times = attempt.output_times
    figures = {
        "first_output_s": attempt.first_output_s,
        "greatest_gap_s": times.greatest_gap_s,
        "median_gap_s": times.median_gap_s,
        "stalls": times.stalls,
        "output_tokens_per_s": attempt.output_tokens_per_s,
    }
    return {name: None if figure is None else round(figure, 4) for name, figure in figures.items()}


def _profile(timings: Iterable[StageTiming]) -> dict[str, dict[str, float]]:
    """What each stage took, by its name; rows of one name, as two pipes of one answer have, are added."""
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
