"""The metrics of calls and of requests, each recorded once at the end.

Recording a value takes 4 to 9 µs, as much as two or three events of a stream, so nothing is recorded per event. The gaps
between outputs are recorded only on request (``chunk``). The gateway's ``/metrics`` reports them without this cost.

Source: observe.md F12 to F14, F31 to F33, O14.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from streamkit.events import UsageReported
from streamkit.otel.api import AttributeValue, Meter
from streamkit.otel.conventions import ERROR_TYPE, Conventions, Metric

Attributes: TypeAlias = Mapping[str, AttributeValue]
_Record: TypeAlias = Callable[[float, Attributes], None]


class Instruments:
    """The instruments of one version of the conventions."""

    def __init__(self, meter: Meter, conventions: Conventions) -> None:
        self._conventions = conventions
        self._records: dict[str, _Record] = {}
        for metric in conventions.metrics:
            if metric.name not in self._records:
                self._records[metric.name] = _made(meter, metric)

    def call(
        self,
        attributes: Attributes,
        usage: UsageReported | None,
        *,
        seconds: float,
        error_type: str = "",
        first_output_s: float | None = None,
    ) -> None:
        """Record a call that is over. ``first_output_s`` is for streams. Unknown token counts are not recorded as 0."""
        names = self._conventions
        self._record(names.duration, seconds, _failed(attributes, error_type))
        if first_output_s is not None:
            self._record(names.first_chunk, first_output_s, attributes)
        for metric in names.tokens:
            tokens: int | None = getattr(usage, metric.count, None)
            if tokens is not None:
                self._record(metric, tokens, {**attributes, **metric.attributes})

    def chunk(self, attributes: Attributes, seconds: float) -> None:
        """Record the seconds between two outputs of a stream."""
        self._record(self._conventions.chunk_time, seconds, attributes)

    def request(
        self,
        attributes: Attributes,
        *,
        seconds: float,
        error_type: str = "",
        first_output_s: float | None = None,
        token_s: float | None = None,
    ) -> None:
        """Record a request to the gateway that is over; for a complete stream also its time to first output and per token."""
        names = self._conventions
        self._record(names.server_duration, seconds, _failed(attributes, error_type))
        if first_output_s is not None:
            self._record(names.server_first_token, first_output_s, attributes)
        if token_s is not None:
            self._record(names.server_token_time, token_s, attributes)

    def _record(self, metric: Metric, value: float, attributes: Attributes) -> None:
        self._records[metric.name](value, attributes)


def _made(meter: Meter, metric: Metric) -> _Record:
    if not metric.bounds:
        return meter.create_counter(metric.name, metric.unit, metric.description).add
    return meter.create_histogram(
        metric.name, metric.unit, metric.description, explicit_bucket_boundaries_advisory=metric.bounds
    ).record


def _failed(attributes: Attributes, error_type: str) -> Attributes:
    return {**attributes, ERROR_TYPE: error_type} if error_type else attributes
