"""Send spans and metrics to a collector by OTLP over HTTP, and stop in time.

OpenTelemetry's environment variables set the collector's address, its headers, the sampling and the service name
(``OTEL_EXPORTER_OTLP_ENDPOINT``, ``OTEL_TRACES_SAMPLER``, …). The SDK's threads send the data. If the collector is
unreachable, the SDK's shutdown takes 6 to 10 s for each provider, one after the other, and no argument shortens it. So both
are shut down at once, in threads that are not waited for after one deadline.

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

from streamkit.otel.conventions import is_sent

SERVICE: Final = "streamkit"  #: the service name, unless the environment sets another
SHUTDOWN_S: Final = 3.0  #: seconds that both providers together may take to send the remaining data


@frozen
class Providers:
    """OpenTelemetry's tracer provider and meter provider of one process."""

    traces: TracerProvider
    metrics: MeterProvider

    async def shut_down(self, within_s: float = SHUTDOWN_S) -> bool:
        """Send the remaining data of both providers at once. Return whether ``within_s`` was enough; unsent data are lost."""
        loop = asyncio.get_running_loop()
        stopped = [loop.create_future() for _ in range(2)]
        for stop, future in zip((self.traces.shutdown, self.metrics.shutdown), stopped, strict=True):
            Thread(target=_run, args=(stop, loop, future), name="telemetry-shutdown", daemon=True).start()
        _, late = await asyncio.wait(stopped, timeout=within_s)
        return not late


def otlp_providers() -> Providers:
    """Return providers that send to the environment's collector. Raises UsageError for settings that are not supported.

    ``OTEL_TRACES_EXPORTER=none`` and ``OTEL_METRICS_EXPORTER=none`` switch off traces and metrics.
    """
    resource = _resource()
    traces = TracerProvider(resource=resource, shutdown_on_exit=False)
    if is_sent("TRACES", os.environ):
        traces.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    readers = [PeriodicExportingMetricReader(OTLPMetricExporter())] if is_sent("METRICS", os.environ) else []
    return Providers(traces, MeterProvider(readers, resource=resource, shutdown_on_exit=False))


def _resource() -> Resource:
    """Return the resource of the environment, with the SDK's random ``service.instance.id``, which tells workers apart."""
    found = Resource.create()
    if str(found.attributes[SERVICE_NAME]).startswith("unknown_service"):
        return found.merge(Resource({SERVICE_NAME: SERVICE}))
    return found


def _run(stop: Callable[[], None], loop: asyncio.AbstractEventLoop, stopped: asyncio.Future[None]) -> None:
    try:
        stop()
    finally:
        with suppress(RuntimeError):  # the loop is closed: the deadline has passed
            loop.call_soon_threadsafe(stopped.set_result, None)
