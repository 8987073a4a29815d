"""Sending by OTLP, and stopping within one deadline whatever the collector does (observe.md F35, O12)."""

import asyncio
import socket
import threading
from collections import defaultdict

import pytest
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider

from streamkit.otel.providers import otlp_providers
from tests.otel.collector import collecting
from tests.web.serving import eventually


@pytest.fixture
def environment(monkeypatch):
    """An environment that says nothing yet."""

    def at(url, **values):
        for name, value in {"OTEL_EXPORTER_OTLP_ENDPOINT": url, **values}.items():
            monkeypatch.setenv(name, value)

    return at


def filled():
    """Providers that have something to send."""
    providers = otlp_providers()
    providers.traces.get_tracer("t").start_span("a").end()
    providers.metrics.get_meter("t").create_counter("c").add(1)
    return providers


async def test_what_is_left_is_sent_at_the_end(environment):
    with collecting() as collector:
        environment(collector.url)
        assert await filled().shut_down()
    ((resource, span),) = collector.spans
    assert (span.name, resource["service.name"]) == ("a", "streamkit")
    assert next(iter(collector.metrics.values())).keys() == {"c"}


async def test_the_service_is_called_as_the_environment_says(environment):
    with collecting() as collector:
        environment(collector.url, OTEL_SERVICE_NAME="mine", OTEL_METRICS_EXPORTER="none")
        assert await filled().shut_down()
    assert collector.spans[0][0]["service.name"] == "mine"
    assert collector.metrics == {}


@pytest.fixture
def threads(monkeypatch):
    """The threads in which anything is sent, or waits to be: by the call."""
    found = defaultdict(set)
    waiting = {
        OTLPSpanExporter: ("export", "shutdown"),
        OTLPMetricExporter: ("export", "shutdown"),
        TracerProvider: ("shutdown", "force_flush"),
        MeterProvider: ("shutdown", "force_flush"),
    }

    def watched(owner, name):
        method = getattr(owner, name)

        def call(*arguments, **values):
            found[f"{owner.__name__}.{name}"].add(threading.get_ident())
            return method(*arguments, **values)

        monkeypatch.setattr(owner, name, call)

    for owner, names in waiting.items():
        for name in names:
            watched(owner, name)
    return found


@pytest.mark.parametrize("mood", ["refuses", "hangs", "503"])
async def test_a_collector_that_is_away_holds_no_loop_and_nobody_beyond_the_deadline(environment, threads, mood):
    with socket.socket() as closed, collecting("takes" if mood == "refuses" else mood) as collector:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}" if mood == "refuses" else collector.url
        often = {"OTEL_BSP_SCHEDULE_DELAY": "5", "OTEL_METRIC_EXPORT_INTERVAL": "5"}
        environment(url, OTEL_EXPORTER_OTLP_TIMEOUT="1", **often)  # for what goes on behind the deadline
        providers, loop = filled(), asyncio.get_running_loop()
        await eventually(lambda: {"OTLPSpanExporter.export", "OTLPMetricExporter.export"} <= threads.keys())
        started = loop.time()
        all_sent = await providers.shut_down(within_s=0.2)
        assert loop.time() - started < 1.5  # the SDK's shutdown alone takes 6 to 10 s
    for thread in threading.enumerate():
        if thread.name == "telemetry-shutdown":
            await asyncio.to_thread(thread.join, 20)
    assert not (all_sent and mood == "hangs")  # the others may be given up within the deadline
    assert {"TracerProvider.shutdown", "MeterProvider.shutdown", "OTLPSpanExporter.shutdown"} <= threads.keys()
    assert threading.get_ident() not in set().union(*threads.values())


async def test_what_a_collector_refuses_is_lost_and_told_in_the_log(environment, caplog):
    with collecting("500") as collector:
        environment(collector.url)
        assert await filled().shut_down()
    assert "Failed to export" in caplog.text
