"""What sends spans and metrics to a collector, by OTLP over HTTP, and how it is stopped in time.

Where the collector is, what headers it wants, how much is sampled and how the service is called stand in environment variables
of OpenTelemetry's own (``OTEL_EXPORTER_OTLP_ENDPOINT``, ``OTEL_TRACES_SAMPLER``, …). Threads of the SDK's send what there is.
A collector that is away holds the SDK's shutdown for 6 to 10 s for each provider, one behind the other, and no
argument shortens it: so both are shut down at once, in threads that nobody waits for beyond one deadline.

Source: observe.md F28 to F30, F35, O12, O13.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import Final

from attrs import frozen
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from streamkit.otel.environment import is_sent

#: How the service is called, unless the environment says otherwise.
SERVICE: Final = "streamkit"
#: How long both providers together may take to send what they have left, in seconds.
SHUTDOWN_S: Final = 3.0


@frozen
class Providers:
    """The providers of one process."""

    traces: TracerProvider
    metrics: MeterProvider

    async def shut_down(self, within_s: float = SHUTDOWN_S) -> bool:
        """Send what is left, both at once; whether they were done within so many seconds. What was not sent then is lost."""
        loop = asyncio.get_running_loop()
        stopped = [loop.create_future() for _ in range(2)]
        for stop, future in zip((self.traces.shutdown, self.metrics.shutdown), stopped, strict=True):
            Thread(target=_run, args=(stop, loop, future), name="telemetry-shutdown", daemon=True).start()
        _, late = await asyncio.wait(stopped, timeout=within_s)
        return not late


def otlp_providers() -> Providers:
    """Providers that send to the collector of the environment. Raises UsageError where that wants what is not there.

    ``OTEL_TRACES_EXPORTER=none`` and ``OTEL_METRICS_EXPORTER=none`` send none of theirs.
    """
    resource = _resource()
    traces = TracerProvider(resource=resource, shutdown_on_exit=False)
    if is_sent("TRACES", os.environ):
        traces.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    readers = [PeriodicExportingMetricReader(OTLPMetricExporter())] if is_sent("METRICS", os.environ) else []
    return Providers(traces, MeterProvider(readers, resource=resource, shutdown_on_exit=False))


def _resource() -> Resource:
    """Of the environment, with the SDK's random ``service.instance.id``, which keeps workers apart."""
    found = Resource.create()
    if str(found.attributes[SERVICE_NAME]).startswith("unknown_service"):
        return found.merge(Resource({SERVICE_NAME: SERVICE}))
    return found


def _run(stop: Callable[[], None], loop: asyncio.AbstractEventLoop, stopped: asyncio.Future[None]) -> None:
    try:
        stop()
    finally:
        with suppress(RuntimeError):  # the loop is closed: the deadline was over long ago
            loop.call_soon_threadsafe(stopped.set_result, None)
