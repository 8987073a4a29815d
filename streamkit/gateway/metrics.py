"""The metrics for ``/metrics`` in Prometheus' format: outcomes of attempts, calls by verdict, repairs, losses, and times.

Labels have few values: dialects, the configuration's upstreams and routes, and words of fixed lists. A model's name is not a
label, since clients choose it (limits.md T13). Several workers each write files in ``PROMETHEUS_MULTIPROC_DIR``, and the
process that serves ``/metrics`` adds them up.

Source: clients.md §3; seeds.md S3.
"""

from __future__ import annotations

import os
from collections import Counter as Totals
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, get_args

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
    multiprocess,
)

from streamkit.events import VerdictKind
from streamkit.gateway.attempts import OUTCOMES
from streamkit.gateway.config import Config
from streamkit.gateway.log import log
from streamkit.gateway.metric_files import MULTIPROCESS_DIR, use_count_files
from streamkit.gateway.record import Attempt, Record
from streamkit.lab.recording.recorder import Recorder
from streamkit.resume.log import Lost
from streamkit.web.observers import GAP_BOUNDS
from streamkit.web.resume.settings import ResumeCounts

#: Histogram bounds for durations, in seconds: from the time of one token to the time of a long response.
BUCKETS: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
#: Histogram bounds in seconds for the time that the gateway itself adds to a request.
OVERHEAD_BUCKETS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1)
#: Histogram bounds for tokens per second.
RATE_BUCKETS: Final = (1, 2, 5, 10, 20, 30, 50, 75, 100, 150, 200, 300, 500, 1000, 2000)
#: For each attribute that a store of responses may have: the metric's name and description, and how to combine the values
#: of several worker processes.
STORE_GAUGES: Final = {
    "live": ("logs_live", "Answers that are kept and under way", "livesum"),
    "kept": ("logs_kept", "Answers that ended and are kept in the gateway's memory", "livesum"),
    "held_bytes": ("log_bytes", "Bytes of answers that are kept in the gateway's memory", "livesum"),
    "behind_bytes": ("log_behind_bytes", "Bytes of answers that wait for the store", "livesum"),
    "behind_s": ("log_behind_seconds", "For how long bytes have been waiting for the store", "livemax"),
}
#: Outcomes of attempts whose time series exist from the start, with the value 0. Outcomes ``http_STATUS`` are not here,
#: because the statuses are not known in advance.
BEGUN_OUTCOMES: Final = ("success", "answered", "refused", "cut", "broken", "error_event", "failed", *OUTCOMES.values())
#: How a request ends for its client.
ENDINGS: Final = ("whole", "error", "broken", "client left", "client stalled")
#: Reasons why keeping a response was refused at its start. ``Lost`` lists the reasons for dropping a kept response later.
UNKEPT: Final = ("slow", "down", "too_long")


disable_created_metrics()  # type: ignore[no-untyped-call]  # no types in the library; creation times are of no use and double the series


class Metrics:
    """The metrics of one process."""

    def __init__(self) -> None:
        use_count_files()
        self.registry = CollectorRegistry()
        self._requests = self._counter(
            "requests",
            "Requests answered, by the status and the ending that the client saw",
            "client route status ending",
        )
        self._attempts = self._counter("attempts", "Tries with an upstream, by how they went", "upstream outcome")
        self._calls = self._counter("tool_calls", "Finished tool calls, by verdict", "upstream verdict")
        self._repairs = self._counter("repairs", "Tolerances used for an upstream's answers", "upstream kind")
        self._request_repairs = self._counter(
            "request_repairs", "Tolerances used for requests, by the client's dialect", "client kind"
        )
        self._losses = self._counter("losses", "What a dialect could not carry, by way", "upstream client kind way")
        self._keep_alives = self._counter("keep_alives", "Keep-alives written", "client")
        self._seconds = self._histogram(
            "request_seconds",
            "From a request to the end of its answer, by the ending that the client saw",
            "client route ending",
        )
        self._first = self._histogram("first_byte_seconds", "From a request to the answer's first byte", "client route")
        self._active = Gauge(
            "streamkit_streams_active", "Answers under way", registry=self.registry, multiprocess_mode="livesum"
        )

        self._sockets = Gauge(
            "streamkit_sockets_open", "WebSockets open", registry=self.registry, multiprocess_mode="livesum"
        )
        self._add_answers()
        self._add_kept_answers()
        self._add_recordings()

    def begin(self, config: Config) -> None:
        """Create the series that the configuration implies, with value 0.

        A rate would miss the first event of a series that begins with this event. There are few series per upstream. Statuses,
        and which clients use which routes, are not known in advance.
        """
        routed = {(target.upstream.name, route.name) for route in config.routes for target in route.targets}
        for upstream in {name for name, _ in routed}:
            self._stalls.labels(upstream)
            _begin(self._attempts, [(upstream, outcome) for outcome in BEGUN_OUTCOMES])
            _begin(self._calls, [(upstream, verdict) for verdict in get_args(VerdictKind)])
            _begin(self._usage_unknown, [(upstream, ending) for ending in ENDINGS])
        _begin(self._tokens, [(*pair, kind) for pair in routed for kind in ("input", "output")])
        if config.resume.store != "off":
            _begin(self._unkept, [(why,) for why in UNKEPT])
            _begin(self._lost, [(why,) for why in get_args(Lost)])

    def _add_answers(self) -> None:
        self._attempt_seconds = self._histogram(
            "attempt_seconds", "From the beginning of a try with an upstream to its end", "upstream outcome"
        )
        self._first_output = self._histogram(
            "first_output_seconds",
            "From the beginning of a try with an upstream to the first text, reasoning or call of a stream",
            "upstream route",
        )
        self._request_first_output = self._histogram(
            "request_first_output_seconds",
            "From a request to the first text, reasoning or call of a stream, whoever answered",
            "client route",
        )
        self._gaps = self._histogram(
            "output_gap_seconds", "Between two outputs of a stream", "upstream", buckets=GAP_BOUNDS
        )
        self._rate = self._histogram(
            "output_tokens_per_second",
            "Tokens of a stream behind its first output, by the time from that to the last one",
            "upstream route",
            buckets=RATE_BUCKETS,
        )
        self._overhead = self._histogram(
            "overhead_seconds",
            "The gateway's own time before a stream: until it asked, and from the first output to the answer's first byte",
            "client route",
            buckets=OVERHEAD_BUCKETS,
        )
        self._tokens = self._counter(
            "tokens",
            "Tokens that upstreams told of; those of the cache are input, too, and those of reasoning output",
            "upstream route type",
        )
        self._usage_unknown = self._counter(
            "usage_unknown",
            "Answers of which no tokens were told, by the ending that the client saw",
            "upstream ending",
        )
        self._stalls = self._counter("stalls", "Gaps between two outputs above stall_report_s", "upstream")
        self._stops = self._counter(
            "stops", "Answers by the reason to stop; none: they broke off without", "upstream reason"
        )

    def _add_kept_answers(self) -> None:
        self._resumes = self._counter("resumes", "Requests for the rest of an answer, by result", "result")
        self._unkept = self._counter("not_resumable", "Answers that were to be kept and are not, by reason", "why")
        self._lost = self._counter("logs_lost", "Answers that could be kept no longer, by reason", "why")
        self._store_errors = self._counter("store_errors", "Calls to the store of answers that failed, by kind", "kind")
        self._store_gauges = {
            attribute: Gauge(f"streamkit_{name}", meaning, registry=self.registry, multiprocess_mode=mode)  # type: ignore[arg-type]  # a word of the library's
            for attribute, (name, meaning, mode) in STORE_GAUGES.items()
        }
        # for each of our counters: how much of another object's counter is already included
        self._told: Totals[tuple[Counter, str]] = Totals()

    def _add_recordings(self) -> None:
        self._recorder_files = self._counter("recorder_files", "Exchanges that are recorded")
        self._recorder_bytes = self._counter("recorder_bytes", "Bytes of recordings written")
        self._recorder_dropped = self._counter(
            "recorder_dropped", "Reads that are in no file, since the disk was too slow"
        )
        self._unrecorded = self._counter(
            "recorder_unrecorded", "Exchanges in no file, or not to their end, by reason", "why"
        )

    def _counter(self, name: str, meaning: str, labels: str = "") -> Counter:
        """Return a counter. ``labels`` are names separated by spaces."""
        return Counter(f"streamkit_{name}", meaning, labels.split(), registry=self.registry)

    def _histogram(self, name: str, meaning: str, labels: str, *, buckets: tuple[float, ...] = BUCKETS) -> Histogram:
        return Histogram(f"streamkit_{name}", meaning, labels.split(), buckets=buckets, registry=self.registry)

    def active(self, change: int) -> None:
        """Count a response that begins (1) or ends (-1)."""
        self._active.inc(change)

    def sockets(self, change: int) -> None:
        """Count a WebSocket that opens (1) or closes (-1)."""
        self._sockets.inc(change)

    def answers_kept(self, counts: ResumeCounts, store: object) -> None:
        """Copy the present values of ``counts`` and of a store of responses. A value that the store does not have is 0."""
        self._tell(self._resumes, counts.resumes)
        self._tell(self._unkept, counts.not_resumable)
        self._tell(self._lost, getattr(store, "lost", {}))
        self._tell(self._store_errors, getattr(store, "errors", {}))
        for attribute, gauge in self._store_gauges.items():
            gauge.set(getattr(store, attribute, 0))

    def recorded(self, recorder: Recorder) -> None:
        """Copy the present counts of a recorder."""
        self._tell(self._recorder_files, {"": recorder.files})
        self._tell(self._recorder_bytes, {"": recorder.bytes})
        self._tell(self._recorder_dropped, {"": recorder.dropped})
        self._tell(self._unrecorded, {str(why): times for why, times in recorder.unrecorded.items()})

    def _tell(self, counter: Counter, totals: Mapping[str, int]) -> None:
        for word, total in totals.items():
            if more := total - self._told[counter, word]:
                (counter.labels(word) if word else counter).inc(more)
                self._told[counter, word] = total

    def observe(self, record: Record) -> None:
        client = record.client or "_none"
        self._requests.labels(client, record.route, str(record.status), record.ending).inc()
        self._seconds.labels(client, record.route, record.ending).observe(record.seconds)
        if record.first_output_s is not None:
            self._request_first_output.labels(client, record.route).observe(record.first_output_s)
        if record.overhead_s is not None:
            self._overhead.labels(client, record.route).observe(record.overhead_s)
        if record.first_byte_s is not None:
            self._first.labels(client, record.route).observe(record.first_byte_s)
        if record.keep_alives:
            self._keep_alives.labels(client).inc(record.keep_alives)
        for kind, times in record.asked.repairs.items():
            self._request_repairs.labels(client, kind).inc(times)
        for attempt in record.attempts:
            self._attempts.labels(attempt.upstream, attempt.outcome).inc()
            self._attempt_seconds.labels(attempt.upstream, attempt.outcome).observe(attempt.seconds)
            self._observe_answer(attempt, record)
            for verdict, times in attempt.report.verdicts.items():
                self._calls.labels(attempt.upstream, verdict).inc(times)
            for kind, times in (attempt.report.repairs + attempt.asked.repairs).items():
                self._repairs.labels(attempt.upstream, kind).inc(times)
            for way, losses in (("answer", attempt.report.losses), ("request", attempt.asked.losses)):
                for kind, times in losses.items():
                    self._losses.labels(attempt.upstream, client, kind, way).inc(times)

    def _observe_answer(self, attempt: Attempt, record: Record) -> None:
        upstream, route, times = attempt.upstream, record.route, attempt.output_times
        if attempt.begun:
            for kind, tokens in attempt.usage.items():
                self._tokens.labels(upstream, route, kind).inc(tokens)
            if not attempt.usage:
                self._usage_unknown.labels(upstream, record.ending).inc()
            for reason in [stop.reason for stop in attempt.report.stops] or ["none"]:
                self._stops.labels(upstream, reason).inc()
        if attempt.first_output_s is not None:
            self._first_output.labels(upstream, route).observe(attempt.first_output_s)
            _add(self._gaps.labels(upstream), times.gaps, times.gap_total_s)
        if attempt.output_tokens_per_s is not None:
            self._rate.labels(upstream, route).observe(attempt.output_tokens_per_s)
        if times.stalls:
            self._stalls.labels(upstream).inc(times.stalls)


def _begin(counter: Counter, series: Iterable[tuple[str, ...]]) -> None:
    for labels in series:
        counter.labels(*labels)


def _add(histogram: Histogram, counts: list[int], total: float) -> None:
    """Add observations that are already counted by bucket to a histogram, for which prometheus_client has no method."""
    for bucket, count in zip(histogram._buckets, counts, strict=True):  # noqa: SLF001
        if count:
            bucket.inc(count)
    histogram._sum.inc(total)  # noqa: SLF001


def forget_live(pid: int | None) -> None:
    """Called when a worker died: remove its counts of work in progress, and keep its totals."""
    try:
        multiprocess.mark_process_dead(pid)  # type: ignore[no-untyped-call]  # the library has no types here
    except OSError as error:
        log.error("the counts of a dead worker can't be removed", extra={"fields": {"reason": str(error)}})


def exposition(metrics: Metrics | None) -> bytes:
    """Return the text of ``/metrics``: of all workers if there are several, else of this process."""
    if MULTIPROCESS_DIR in os.environ:
        registry = CollectorRegistry()
        if not Path(os.environ[MULTIPROCESS_DIR]).is_dir():
            return b""  # the directory was removed; the workers' logs say so
        multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]  # the library has no types here
        return generate_latest(registry)
    return b"" if metrics is None else generate_latest(metrics.registry)
