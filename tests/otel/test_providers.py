"""Sending by OTLP, and stopping within one deadline whatever the collector does (observe.md F35, O12)."""

import asyncio
import socket
import threading

import pytest

from streamkit.otel.providers import otlp_providers
from tests.otel.collector import collecting


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


async def greatest_gap(over, gaps):
    loop = asyncio.get_running_loop()
    last = loop.time()
    while not over.is_set():
        await asyncio.sleep(0.001)
        gaps.append(loop.time() - last)
        last = loop.time()


@pytest.mark.parametrize("mood", ["refuses", "hangs", "503"])
async def test_a_collector_that_is_away_holds_nobody_beyond_the_deadline(environment, mood):
    with socket.socket() as closed, collecting("takes" if mood == "refuses" else mood) as collector:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}" if mood == "refuses" else collector.url
        environment(url, OTEL_EXPORTER_OTLP_TIMEOUT="2")  # for what goes on behind the deadline
        providers, loop, gaps, over = filled(), asyncio.get_running_loop(), [], asyncio.Event()
        watching = asyncio.create_task(greatest_gap(over, gaps))
        started = loop.time()
        assert not await providers.shut_down(within_s=0.2)
        assert loop.time() - started < 1.5
        over.set()
        await watching
    for thread in threading.enumerate():
        if thread.name == "telemetry-shutdown":
            await asyncio.to_thread(thread.join, 20)
    assert max(gaps) < 0.5  # of a loop on a busy machine; the SDK's shutdown took 6 to 10 s


async def test_what_a_collector_refuses_is_lost_and_told_in_the_log(environment, caplog):
    with collecting("500") as collector:
        environment(collector.url)
        assert await filled().shut_down()
    assert "Failed to export" in caplog.text
