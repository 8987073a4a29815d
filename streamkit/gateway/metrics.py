"""The metrics for ``/metrics`` in Prometheus' format: outcomes of attempts, calls by verdict, repairs, losses, and times.

Labels have few values: dialects, the configuration's upstreams and routes, and words of fixed lists. A model's name is not a
label, since clients choose it (limits.md T13). Several workers each write files in ``PROMETHEUS_MULTIPROC_DIR``, and the
process that serves ``/metrics`` adds them up.

prometheus-client maps a file before its disk space exists: in a full folder, the first write raises SIGBUS and kills the
worker. Here the space is written first, and a full disk raises an exception. A series without a file is kept in the process,
the log says once that ``/metrics`` is incomplete, and each new series tries again.

Source: clients.md §3; seeds.md S3; prometheus-client 0.21 to 0.25, ``values.py`` and ``mmap_dict.py``; mmap(2) on SIGBUS.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections import Counter as Totals
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal, get_args

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
    multiprocess,
    values,
)
from prometheus_client.mmap_dict import MmapedDict, mmap_key

from streamkit.events import VerdictKind
from streamkit.gateway.config import Config
from streamkit.gateway.log import log
from streamkit.gateway.reasons import HEDGED_OUT, OUTCOMES
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
#: The counters by name, each with the names of its labels and its meaning.
COUNTERS: Final[Mapping[str, tuple[str, str]]] = {
    "requests": ("client route status ending", "Requests, by the status and the ending that the client saw"),
    "attempts": ("upstream outcome", "Attempts with an upstream, by outcome"),
    "failed_attempts": ("upstream reason", "Attempts after which another upstream might do better, by reason"),
    "tool_calls": ("upstream verdict", "Finished tool calls, by verdict"),
    "outputs": ("upstream verdict", "Texts of responses whose request asked for JSON, by verdict"),
    "repairs": ("upstream kind", "Repairs of an upstream's responses"),
    "request_repairs": ("client kind", "Repairs of requests, by the client's dialect"),
    "losses": ("upstream client kind way", "Losses: content that a dialect cannot express, by direction"),
    "keep_alives": ("client", "Keep-alives written"),
    "tokens": (
        "upstream route type",
        "Tokens that upstreams reported; input includes cached, output includes reasoning",
    ),
    "tool_searches": ("upstream route", "Searches of deferred tools that the gateway answered"),
    "tool_search_tokens_saved": ("upstream route", "Input tokens of deferred tools that were not sent, estimated"),
    "usage_unknown": ("upstream ending", "Responses without token counts, by the ending that the client saw"),
    "stalls": ("upstream", "Gaps between two outputs above stall_report_s"),
    "upstream_rests": ("upstream", "How often a model of an upstream began to rest after failures"),
    "stops": ("upstream reason", "Responses by stop reason; none: they were interrupted without one"),
    "resumes": ("result", "Requests for the rest of a response, by result"),
    "not_resumable": ("why", "Responses that should have been kept and were not, by reason"),
    "logs_lost": ("why", "Kept responses that were dropped early, by reason"),
    "store_errors": ("kind", "Failed calls to the store of responses, by kind"),
    "recorder_files": ("", "Exchanges that are recorded"),
    "recorder_bytes": ("", "Bytes of recordings written"),
    "recorder_dropped": ("", "Reads that are in no file because the disk was too slow"),
    "recorder_unrecorded": ("why", "Exchanges in no file, or not to their end, by reason"),
}
#: The histograms by name, each with the names of its labels, its meaning, and its bounds.
HISTOGRAMS: Final[Mapping[str, tuple[str, str, tuple[float, ...]]]] = {
    "request_seconds": ("client route ending", "From a request to the end of its response, by ending", BUCKETS),
    "first_byte_seconds": ("client route", "From a request to the first byte of its response", BUCKETS),
    "attempt_seconds": ("upstream outcome", "From the start of an attempt with an upstream to its end", BUCKETS),
    "first_output_seconds": ("upstream route", "From the start of an attempt to a stream's first output", BUCKETS),
    "request_first_output_seconds": ("client route", "From a request to a stream's first output", BUCKETS),
    "output_gap_seconds": ("upstream", "Between two outputs of a stream", GAP_BOUNDS),
    "output_tokens_per_second": ("upstream route", "Tokens per second after a stream's first output", RATE_BUCKETS),
    "overhead_seconds": ("client route", "Seconds that the gateway itself adds to a stream", OVERHEAD_BUCKETS),
}
#: The gauges by name, each with the names of its labels, its meaning, and how to combine the values of several worker
#: processes.
GAUGES: Final[Mapping[str, tuple[str, str, Literal["livesum", "livemax"]]]] = {
    "streams_active": ("", "Responses in progress", "livesum"),
    "sockets_open": ("", "WebSockets open", "livesum"),
    "upstreams_resting": ("upstream why", "Models of an upstream that rest, by reason", "livesum"),
    "logs_live": ("", "Kept responses in progress", "livesum"),
    "logs_kept": ("", "Responses that ended and are kept in the gateway's memory", "livesum"),
    "log_bytes": ("", "Bytes of responses that are kept in the gateway's memory", "livesum"),
    "log_behind_bytes": ("", "Bytes of responses that wait for the store", "livesum"),
    "log_behind_seconds": ("", "How long bytes have been waiting for the store", "livemax"),
}
#: The gauge for each attribute that a store of responses may have.
STORE_GAUGES: Final = {
    "live": "logs_live",
    "kept": "logs_kept",
    "held_bytes": "log_bytes",
    "behind_bytes": "log_behind_bytes",
    "behind_s": "log_behind_seconds",
}
#: Outcomes of attempts whose time series exist from the start, with the value 0. Outcomes ``http_STATUS`` are not here,
#: because the statuses are not known in advance.
BEGUN_OUTCOMES: Final = ("success", "answered", "refused", "cut", "broken", "error_event", "failed", *OUTCOMES.values())
#: The same for the upstreams of routes with stages.
STAGE_OUTCOMES: Final = ("stage_failed", "blocked")
ENDINGS: Final = ("whole", "error", "broken", "client left", "client stalled")  #: how a request ends for its client
#: Reasons why keeping a response was refused at its start. ``Lost`` lists the reasons for dropping a kept response later.
UNKEPT: Final = ("slow", "down", "too_long")


disable_created_metrics()  # type: ignore[no-untyped-call]  # no types in the library; creation times are of no use and double the series


class Metrics:
    """The metrics of one process."""

    def __init__(self) -> None:
        use_count_files()
        self.registry = CollectorRegistry()
        self._counters = {
            name: Counter(f"streamkit_{name}", meaning, labels.split(), registry=self.registry)
            for name, (labels, meaning) in COUNTERS.items()
        }
        self._histograms = {
            name: Histogram(f"streamkit_{name}", meaning, labels.split(), buckets=bounds, registry=self.registry)
            for name, (labels, meaning, bounds) in HISTOGRAMS.items()
        }
        self._gauges = {
            name: Gauge(f"streamkit_{name}", meaning, labels.split(), registry=self.registry, multiprocess_mode=mode)
            for name, (labels, meaning, mode) in GAUGES.items()
        }
        # the series of each name and its labels that were used
        self._series: dict[tuple[str, ...], Counter] = {}
        self._measured: dict[tuple[str, ...], Histogram] = {}
        # for each of our counters: how much of another object's counter is already included
        self._copied: Totals[tuple[str, str]] = Totals()
        self._resting: set[tuple[str, str]] = set()  # the series of resting upstreams

    def begin(self, config: Config) -> None:
        """Create the series that the configuration implies, with value 0.

        A rate would miss the first event of a series that begins with this event. There are few series per upstream. Statuses,
        and which clients use which routes, are not known in advance.
        """
        routed = {(target.upstream.name, route.name) for route in config.routes for target in route.targets}
        for upstream in {name for name, _ in routed}:
            self._begin("stalls", [(upstream,)])
            self._begin("upstream_rests", [(upstream,)])
            self._begin("attempts", [(upstream, outcome) for outcome in BEGUN_OUTCOMES])
            for name in ("tool_calls", "outputs"):
                self._begin(name, [(upstream, verdict) for verdict in get_args(VerdictKind)])
            self._begin("usage_unknown", [(upstream, ending) for ending in ENDINGS])
        staged = {target.upstream.name for route in config.routes if route.stages for target in route.targets}
        self._begin("attempts", [(upstream, outcome) for upstream in staged for outcome in STAGE_OUTCOMES])
        hedged = {target.upstream.name for route in config.routes if route.hedge_after_s for target in route.targets}
        self._begin("attempts", [(upstream, HEDGED_OUT) for upstream in hedged])
        self._begin("tokens", [(*pair, kind) for pair in routed for kind in ("input", "output")])
        if config.resume.store != "off":
            self._begin("not_resumable", [(why,) for why in UNKEPT])
            self._begin("logs_lost", [(why,) for why in get_args(Lost)])

    def _begin(self, name: str, series: Iterable[tuple[str, ...]]) -> None:
        for labels in series:
            self._counters[name].labels(*labels)

    def active(self, change: int) -> None:
        """Count a response that begins (1) or ends (-1)."""
        self._gauges["streams_active"].inc(change)

    def sockets(self, change: int) -> None:
        """Count a WebSocket that opens (1) or closes (-1)."""
        self._gauges["sockets_open"].inc(change)

    def answers_kept(self, counts: ResumeCounts, store: object) -> None:
        """Copy the present values of ``counts`` and of a store of responses. A value that the store does not have is 0."""
        self._copy("resumes", counts.resumes)
        self._copy("not_resumable", counts.not_resumable)
        self._copy("logs_lost", getattr(store, "lost", {}))
        self._copy("store_errors", getattr(store, "errors", {}))
        for attribute, name in STORE_GAUGES.items():
            self._gauges[name].set(getattr(store, attribute, 0))

    def upstreams_rest(self, resting: Mapping[tuple[str, str], int], opened: Mapping[str, int]) -> None:
        """Copy how many models of each upstream rest, by the upstream's name and the reason, and how often they began to."""
        self._resting.update(resting)
        for series in self._resting:
            self._gauges["upstreams_resting"].labels(*series).set(resting.get(series, 0))
        self._copy("upstream_rests", opened)

    def recorded(self, recorder: Recorder) -> None:
        self._copy("recorder_files", {"": recorder.files})
        self._copy("recorder_bytes", {"": recorder.bytes})
        self._copy("recorder_dropped", {"": recorder.dropped})
        self._copy("recorder_unrecorded", {str(why): times for why, times in recorder.unrecorded.items()})

    def _copy(self, name: str, totals: Mapping[str, int]) -> None:
        for word, total in totals.items():
            if more := total - self._copied[name, word]:
                counter = self._counters[name]
                (counter.labels(word) if word else counter).inc(more)
                self._copied[name, word] = total

    def _count(self, name: str, *labels: str, times: int = 1) -> None:
        series = self._series.get((name, *labels))
        if series is None:  # kept here, because the library's look-up takes a lock and checks the labels again
            series = self._series[(name, *labels)] = self._counters[name].labels(*labels)
        series.inc(times)

    def _measure(self, name: str, value: float | None, *labels: str) -> None:
        """Add a value to a histogram, unless it is unknown."""
        if value is not None:
            series = self._histogram(name, *labels)
            series._buckets[bisect_left(series._upper_bounds, value)].inc(1)  # noqa: SLF001 - as in ``_add``
            series._sum.inc(value)  # noqa: SLF001

    def _histogram(self, *name: str) -> Histogram:
        """Return the histogram of a name and its labels."""
        series = self._measured.get(name)
        if series is None:
            series = self._measured[name] = self._histograms[name[0]].labels(*name[1:])
        return series

    def observe(self, record: Record) -> None:
        client, route = record.client or "_none", record.route
        self._count("requests", client, route, str(record.status), record.ending)
        self._measure("request_seconds", record.seconds, client, route, record.ending)
        self._measure("request_first_output_seconds", record.first_output_s, client, route)
        self._measure("overhead_seconds", record.overhead_s, client, route)
        self._measure("first_byte_seconds", record.first_byte_s, client, route)
        if record.keep_alives:
            self._count("keep_alives", client, times=record.keep_alives)
        for kind, times in record.asked.repairs.items():
            self._count("request_repairs", client, kind, times=times)
        for attempt in record.attempts:
            upstream, outcome, report, asked = attempt.upstream, attempt.outcome, attempt.report, attempt.asked
            self._count("attempts", upstream, outcome)
            if attempt.reason:
                self._count("failed_attempts", upstream, attempt.reason)
            self._measure("attempt_seconds", attempt.seconds, upstream, outcome)
            self._observe_answer(attempt, record)
            for verdict, times in report.verdicts.items():
                self._count("tool_calls", upstream, verdict, times=times)
            for verdict, times in report.output_verdicts.items():
                self._count("outputs", upstream, verdict, times=times)
            for repairs in (report.repairs, asked.repairs):
                for kind, times in repairs.items():
                    self._count("repairs", upstream, kind, times=times)
            for way, losses in (("answer", report.losses), ("request", asked.losses)):
                for kind, times in losses.items():
                    self._count("losses", upstream, client, kind, way, times=times)

    def _observe_answer(self, attempt: Attempt, record: Record) -> None:
        upstream, route, times = attempt.upstream, record.route, attempt.output_times
        for kind, tokens in attempt.usage.items():
            self._count("tokens", upstream, route, kind, times=tokens)
        if attempt.report.tool_searches:
            self._count("tool_searches", upstream, route, times=attempt.report.tool_searches)
        if attempt.report.tokens_saved:
            self._count("tool_search_tokens_saved", upstream, route, times=attempt.report.tokens_saved)
        if attempt.begun:
            if not attempt.usage:
                self._count("usage_unknown", upstream, record.ending)
            stops: list[str] = [stop.reason for stop in attempt.report.stops]
            for reason in stops or ["none"]:
                self._count("stops", upstream, reason)
        self._measure("first_output_seconds", attempt.first_output_s, upstream, route)
        if attempt.first_output_s is not None:
            _add(self._histogram("output_gap_seconds", upstream), times.gaps, times.gap_total_s)
        self._measure("output_tokens_per_second", attempt.output_tokens_per_s, upstream, route)
        if times.stalls:
            self._count("stalls", upstream, times=times.stalls)


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
        log.error("the metrics of a dead worker can't be removed", extra={"fields": {"reason": str(error)}})


def exposition(metrics: Metrics | None) -> bytes:
    """Return the text of ``/metrics``: of all workers if there are several, else of this process."""
    return generate_latest(_registry(metrics))


def resting(metrics: Metrics | None) -> list[str]:
    """Return a line for each upstream that rests: of all workers if there are several, else of this process."""
    found = (family for family in _registry(metrics).collect() if family.name == "streamkit_upstreams_resting")
    series = [(sample.labels, sample.value) for family in found for sample in family.samples if sample.value]
    return sorted(f"{labels['upstream']} rests: {labels['why']} ({value:g})" for labels, value in series)


def _registry(metrics: Metrics | None) -> CollectorRegistry:
    if MULTIPROCESS_DIR not in os.environ:
        return CollectorRegistry() if metrics is None else metrics.registry
    registry = CollectorRegistry()
    if Path(os.environ[MULTIPROCESS_DIR]).is_dir():  # otherwise it was removed; the workers' logs say so
        multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]  # the library has no types here
    return registry


# -- files of several workers ------------------------------------------------------------------------------------------


MULTIPROCESS_DIR: Final = "PROMETHEUS_MULTIPROC_DIR"
FILE_BYTES: Final = 64 * 1024  #: the initial size of a metrics file, the same as in prometheus_client
ENTRY_BYTES: Final = 4 + 8 + 16  #: the size of an entry without its key: its length, padding to 8 bytes, two numbers


def use_count_files() -> None:
    """Make every metric that is created from now on write to these files, if there are several workers."""
    if MULTIPROCESS_DIR in os.environ:
        values.ValueClass = CountValue  # prometheus_client documents this assignment


class CountFile(MmapedDict):
    """A file of metrics whose mapped space is already on the disk. Raises OSError if the disk is full."""

    def __init__(self, path: str) -> None:
        try:
            take_room(path, 0, FILE_BYTES)
        except OSError:
            with suppress(OSError):
                # an incomplete file would make prometheus_client fail to read all files
                Path(path).unlink(missing_ok=True)
            raise
        self._path = path
        super().__init__(path)  # type: ignore[no-untyped-call]  # the library has no types here

    def _init_value(self, key: str) -> None:
        needed, capacity = self._used + len(key.encode()) + ENTRY_BYTES, self._capacity
        while capacity < needed:
            capacity *= 2
        if capacity > self._capacity:
            take_room(self._path, self._capacity, capacity)
        super()._init_value(key)  # type: ignore[no-untyped-call]  # the library has no types here


def take_room(path: str, start: int, end: int) -> None:
    """Write zeros from ``start`` to ``end``. Raises OSError if the disk is full."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        while start < end:
            start += os.pwrite(descriptor, bytes(end - start), start)
    finally:
        os.close(descriptor)


class CountValue:
    """The value of one series: in a file, or in the process if there is no file."""

    _multiprocess = True  # prometheus_client reads this attribute

    def __init__(
        self,
        typ: str,
        metric_name: str,
        name: str,
        labelnames: Any,
        labelvalues: Any,
        help_text: str,
        multiprocess_mode: str = "",
        **_more: Any,
    ) -> None:
        self._value = 0.0
        self._key = mmap_key(metric_name, name, labelnames, labelvalues, help_text)
        self._file: CountFile | None = None
        try:
            file = _file(f"{typ}_{multiprocess_mode}" if typ == "gauge" else typ)
            file.read_value(self._key)  # type: ignore[no-untyped-call]  # the library has no types here
            self._file = file
        except OSError as error:
            _warn_once(error)

    def inc(self, amount: float) -> None:
        self.set(self._value + amount)

    def set(self, value: float, timestamp: float | None = None) -> None:
        self._value = value
        if self._file is not None:
            self._file.write_value(self._key, value, timestamp or 0.0)  # type: ignore[no-untyped-call]  # the library has no types here

    def get(self) -> float:
        return self._value

    def set_exemplar(self, exemplar: Any) -> None:
        """Do nothing: metrics files contain no exemplars, as in prometheus_client."""

    def get_exemplar(self) -> None:
        return None


_files: dict[str, CountFile] = {}
_warned = False


def _file(kind: str) -> CountFile:
    path = str(Path(os.environ[MULTIPROCESS_DIR], f"{kind}_{os.getpid()}.db"))
    if path not in _files:
        _files[path] = CountFile(path)
    return _files[path]


def _warn_once(error: OSError) -> None:
    global _warned  # noqa: PLW0603 - one line per process, however many series have no file
    if not _warned:
        _warned = True
        log.error("no room for metrics, so /metrics is incomplete", extra={"fields": {"reason": str(error)}})
