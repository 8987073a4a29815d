"""Workers that send by OTLP, and a gateway that stops though its collector does not answer (observe.md O12, O13)."""

import signal
from pathlib import Path

import orjson
import pytest

from streamkit.web.listening import CLOSE_S
from tests.gateway.processes import config_file, serving
from tests.gateway.running import asking
from tests.otel.collector import collecting
from tests.web.evil import EvilUpstream
from tests.web.faults import as_asked
from tests.web.raw_client import ask

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked at in /proc")
UPSTREAM = "openai-chat"


def telling(folder, evil, **server):
    path = config_file(folder, evil.url, **server)
    path.write_text(path.read_text("utf-8") + "\n[telemetry]\notlp = true\nshutdown_s = 1.5\n", "utf-8")
    return "--config", str(path)


async def asked(gateway, times):
    path, body = asking(UPSTREAM)
    for _ in range(times):
        assert (await ask(gateway.url, path, body=orjson.dumps(body))).status == 200


@pytest.mark.exhaustive
async def test_what_two_workers_tell_adds_up(tmp_path):
    with collecting() as collector:
        environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_SERVICE_NAME": "mine"}
        async with (
            EvilUpstream(as_asked(UPSTREAM)) as evil,
            serving(tmp_path, *telling(tmp_path, evil, workers=2), environment=environment) as gateway,
        ):
            await asked(gateway, 20)
            gateway.signal(signal.SIGTERM)
            assert await gateway.ended() == 0, gateway.said
    names = [span.name for _, span in collector.spans]
    assert (names.count("POST /v1/chat/completions"), names.count("chat m")) == (20, 20)
    assert {resource["service.name"] for resource, _ in collector.spans} == {"mine"}
    assert collector.count("gen_ai.client.operation.duration") == 20
    assert collector.count("gen_ai.server.request.duration") == 20
    workers = {resource["service.instance.id"] for resource, _ in collector.spans}
    assert 1 <= len(workers) <= 2  # the kernel deals connections out


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.exhaustive)])
async def test_a_collector_that_hangs_does_not_keep_the_gateway_from_stopping(tmp_path, workers):
    with collecting("hangs") as collector:
        environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
        async with EvilUpstream(as_asked(UPSTREAM)) as evil:
            arguments = telling(tmp_path, evil, workers=workers, grace_s=0.5)
            async with serving(tmp_path, *arguments, environment=environment) as gateway:
                await asked(gateway, 3)
                gateway.signal(signal.SIGTERM)
                assert await gateway.ended(0.5 + CLOSE_S + 3 + 10) == 0, (
                    gateway.said
                )  # a busy machine; the SDK alone takes 20 s
                assert gateway.events("the last traces and metrics could not be sent in time")
