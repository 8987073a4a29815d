"""The gateway as processes: it starts, stops, loses a worker and its parent, and says so (limits.md C16).

Nothing here is timed: what has to happen is waited for, with patience.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import socket
import subprocess
from contextlib import suppress
from pathlib import Path

import orjson
import pytest

from streamkit import collect
from streamkit.dialects import DIALECTS
from streamkit.gateway.reload import NEEDS_RESTART
from streamkit.gateway.serve import MARGIN_S
from streamkit.gateway.signals import PARENT_QUIT_S, SAME_S
from streamkit.http_errors import decode_error
from streamkit.testing import source_of
from streamkit.web.listening import CLOSE_S
from tests.gateway.fault_matrix import CLIENTS
from tests.gateway.processes import START_S, Gateway, config_file, in_front_of, is_alive, serving, started
from tests.gateway.running import asking
from tests.web.evil import EvilUpstream, Script, Until
from tests.web.faults import TEXT, as_asked, good, silence_before_headers, silence_midstream
from tests.web.raw_client import Answer, RawClient, ask
from tests.web.serving import eventually

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked at in /proc")
UPSTREAM = "openai-chat"
GRACE_S = 3.0
#: What an operator has to wait for, by docs/how-to/deploy-the-gateway.md.
STOP_S = GRACE_S + CLOSE_S + MARGIN_S


@pytest.fixture(autouse=True)
def hangups_are_heard():
    """Processes inherit it where SIGHUP is ignored, as under nohup: the tests may run there."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


def by_model(go: asyncio.Event):
    """What the upstream does is what the model is called: it ends when ``go`` is set, hangs, or says nothing at all."""
    steps = good(UPSTREAM).steps
    half = len(steps) // 2
    scripts = {
        "ends": Script((*steps[:half], Until(go), *steps[half:])),
        "hangs": silence_midstream(UPSTREAM),
        "silent": silence_before_headers(),
    }
    return lambda request: scripts[request.json()["model"]]


def request(client: str, model: str, *, stream: bool = True):
    path, body = asking(client, model=model, stream=stream)
    return path, orjson.dumps(body)


async def ask_model(gateway: Gateway, model: str) -> Answer:
    path, body = request("anthropic", model)
    return await ask(gateway.url, path, body=body)


def refuses(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except ConnectionError:  # a reset: it stopped while this one waited to be accepted
        return True
    return False


async def begun(upstream: EvilUpstream, number: int, sent: int = 1) -> None:
    """Wait until the upstream has answered so many requests, each with so many pieces at least."""

    def answered() -> bool:
        return sum(len(request.sent) >= sent for request in upstream.requests) >= number

    await eventually(answered, within_s=START_S)


# -- starting ----------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not shutil.which("curl"), reason="the commands are curl's")
@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.exhaustive)])
async def test_without_a_configuration_it_prints_three_commands_and_each_works(tmp_path, workers):
    async with serving(tmp_path, "--port", "0", "--workers", workers) as gateway:
        commands = re.findall(r"^curl .*?(?=\n\n)", gateway.printed, re.DOTALL | re.MULTILINE)
        assert len(commands) == 3
        answers = [
            await asyncio.to_thread(
                subprocess.run, ["sh", "-c", f"{command} --noproxy '*' -f -m 60"], capture_output=True, check=False
            )
            for command in commands
        ]
        gateway.signal(signal.SIGHUP)  # there is no file to load again
        assert await gateway.ended() == 0
    assert [(answer.returncode, answer.stderr) for answer in answers] == [(0, b"")] * 3
    messages, chat, ollama = (answer.stdout for answer in answers)
    called = await collect(source_of([messages]), "anthropic")
    assert (called.clean, [call.name for call in called.tool_calls]) == (True, ["get_weather"])
    thought = await collect(source_of([chat]), "openai-chat")
    assert (thought.clean, bool(thought.text), b"reasoning" in chat) == (True, True, True)
    assert json.loads(ollama)["done"] is True


async def test_a_terminals_interrupt_while_workers_start_ends_all_of_them_well(tmp_path):
    async with EvilUpstream(good(UPSTREAM)) as upstream:
        path = config_file(tmp_path, upstream.url, private="off", workers=2)
        async with started(tmp_path, "--config", str(path)) as gateway:
            await eventually(lambda: len(gateway.workers()) == 2, within_s=START_S)
            workers = gateway.workers()
            os.killpg(gateway.process.pid, signal.SIGINT)  # as Ctrl-C does: to the parent, and to those who import yet
            assert await gateway.ended() == 0
            await eventually(lambda: not any(map(is_alive, workers)))
            assert "Traceback" not in gateway.said
            assert gateway.events("a worker died; another is started") == []


# -- stopping ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("signals", "workers"),
    [
        ([signal.SIGTERM], 1),
        ([signal.SIGINT, signal.SIGINT], 2),  # as `npm run` does: it passes on what the terminal has sent
        pytest.param([signal.SIGINT], 1, marks=pytest.mark.exhaustive),
        pytest.param([signal.SIGTERM], 2, marks=pytest.mark.exhaustive),
    ],
    ids=lambda value: "+".join(number.name for number in value) if isinstance(value, list) else f"{value} workers",
)
async def test_live_streams_end_whole_within_the_grace_time_or_with_their_dialects_error(tmp_path, signals, workers):
    go = asyncio.Event()
    async with in_front_of(tmp_path, by_model(go), grace_s=GRACE_S, workers=workers) as (gateway, upstream):
        asked = [request(client, model) for model in ("ends", "hangs") for client in CLIENTS]
        asked += [request("anthropic", "silent"), request("anthropic", "silent", stream=False)]
        asking = [asyncio.create_task(ask(gateway.url, path, body=body)) for path, body in asked]
        await begun(upstream, 10, sent=4)
        await upstream.request(11)
        for number in signals:
            gateway.signal(number)
            await asyncio.sleep(0.05)  # or the second one may be no other
        await eventually(lambda: refuses(gateway.port))
        go.set()
        answers = await asyncio.gather(*asking)
        assert await gateway.ended(within_s=STOP_S) == 0
        await eventually(lambda: not gateway.workers())
        log = gateway.events("request")
    whole, broken, silent = answers[:5], answers[5:10], answers[10:]
    for client, answer in zip(CLIENTS, whole, strict=True):
        read = await collect(source_of([bytes(answer.body)]), client)
        assert (read.clean, read.text, answer.end) == (True, TEXT, "complete"), client
    for client, answer in zip(CLIENTS, broken, strict=True):
        read = await collect(source_of([bytes(answer.body)]), client)
        end = "complete" if DIALECTS[client].failed_end is None else "cut"
        assert (read.clean, TEXT.startswith(read.text), answer.end) == (False, True, end), client
        assert "shutting down" in (read.report.provider_error or ("", ""))[1], client
    for answer in silent:
        failed = decode_error(answer.status, bytes(answer.body), "anthropic", answer.headers)
        assert (answer.status, "shutting down" in failed.message) == (529, True)
    assert sorted(line["ending"] for line in log) == ["broken"] * 5 + ["error"] * 2 + ["whole"] * 5


@pytest.mark.parametrize("workers", [1, 2])
async def test_a_gateway_that_was_started_to_survive_its_terminal_does(tmp_path, workers):
    async with EvilUpstream(good(UPSTREAM)) as upstream:
        path = config_file(tmp_path, upstream.url, workers=workers, grace_s=1.0)
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
        try:
            serving_on = serving(tmp_path, "--config", str(path))
            gateway = await serving_on.__aenter__()
        finally:
            signal.signal(signal.SIGHUP, before)
        try:
            for pid in {gateway.process.pid, *gateway.workers()}:
                os.kill(pid, signal.SIGHUP)  # as a terminal that closes
            await eventually(lambda: gateway.events("the configuration is loaded again"))  # and nothing else
            where, body = request("anthropic", "m")
            assert b"message_stop" in (await ask(gateway.url, where, body=body)).body
            gateway.signal(signal.SIGTERM)
            assert await gateway.ended() == 0
            assert gateway.events("a worker died; another is started") == []
        finally:
            await serving_on.__aexit__(None, None, None)


async def test_a_signal_to_load_the_file_again_does_not_end_a_gateway_that_starts(tmp_path):
    async with EvilUpstream(good(UPSTREAM)) as upstream:
        path = config_file(tmp_path, upstream.url, private="off")
        async with started(tmp_path, "--config", str(path)) as gateway:
            status = Path(f"/proc/{gateway.process.pid}/status")

            def waits() -> bool:
                blocked = int(re.search(r"SigBlk:\s*(\w+)", status.read_text("utf-8"))[1], 16)
                return bool(blocked & 1 << (signal.SIGHUP - 1))

            await eventually(waits, within_s=START_S)
            gateway.signal(signal.SIGHUP)
            await eventually(lambda: gateway.events("the configuration is loaded again"), within_s=START_S)
            gateway.signal(signal.SIGTERM)
            assert await gateway.ended() == 0


async def test_a_gateway_whose_terminal_closes_ends(tmp_path):
    async with EvilUpstream(silence_midstream(UPSTREAM)) as upstream:
        path = config_file(tmp_path, upstream.url, workers=2, grace_s=1.0, log_format="json")
        terminal, standard_error = os.openpty()
        try:
            async with started(tmp_path, "--config", str(path), stderr=standard_error) as gateway:
                os.close(standard_error)
                log = b""
                while b'"serving"' not in log:
                    log += await asyncio.to_thread(os.read, terminal, 4096)
                url = re.search(rb'"url":"(.+?)"', log)[1].decode()
                where, body = request("anthropic", "m")
                asking = asyncio.create_task(ask(url, where, body=body))
                await begun(upstream, 1, sent=4)
                os.close(terminal)
                os.killpg(gateway.process.pid, signal.SIGHUP)  # as the kernel and the shell do
                assert (await asking).body.count(b"event: error\n") == 1
                assert await gateway.ended() == 0
        finally:
            with suppress(OSError):
                os.close(terminal)


@pytest.mark.parametrize(
    ("number", "workers"),
    [
        (signal.SIGINT, 2),
        *(pytest.param(*row, marks=pytest.mark.exhaustive) for row in [(signal.SIGINT, 1), (signal.SIGTERM, 2)]),
    ],
    ids=str,
)
async def test_a_second_signal_ends_the_gateway_at_once(tmp_path, number, workers):
    hang = silence_midstream(UPSTREAM)
    async with in_front_of(tmp_path, hang, grace_s=60.0, workers=workers) as (gateway, upstream):
        asking = []
        for count in range(3):
            asking.append(asyncio.create_task(ask_model(gateway, "m")))
            await begun(upstream, count + 1, sent=4)
        os.killpg(gateway.process.pid, number)  # as a terminal does
        await eventually(lambda: gateway.events("stopping"))
        [stopping] = gateway.events("stopping")
        assert (stopping["streams"], stopping["grace_s"]) == (3, 60.0)
        waits = "waiting for 3 streams, at most 60 s; press Ctrl-C again to quit\n"
        assert gateway.printed == (waits if number == signal.SIGINT else "")
        await asyncio.sleep(SAME_S + 0.2)
        os.killpg(gateway.process.pid, number)
        answers = await asyncio.gather(*asking)
        assert await gateway.ended(within_s=2 * PARENT_QUIT_S) == 128 + number
        await eventually(lambda: not gateway.workers())
        assert [answer.body.count(b"event: error\n") for answer in answers] == [1, 1, 1]
        assert "Traceback" not in gateway.said
        assert gateway.events("a worker did not end in time and is killed") == []


# -- another configuration -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "how", [pytest.param((), id="SIGHUP"), pytest.param(("--watch",), id="--watch", marks=pytest.mark.exhaustive)]
)
async def test_all_workers_switch_to_another_configuration_and_a_later_one_starts_with_it(tmp_path, how):
    go = asyncio.Event()
    async with EvilUpstream(by_model(go)) as upstream:
        path = config_file(tmp_path, upstream.url, workers=2, grace_s=1.0)
        text = path.read_text("utf-8")

        async def listed() -> set[bytes]:
            """What so many connections are told that both workers are among them."""
            answers = await asyncio.gather(*(ask(gateway.url, "/v1/models", method="GET") for _ in range(24)))
            return {bytes(re.search(rb'"id":"(.*?)"', answer.body)[1]) for answer in answers}

        async def reload(new: str, event: str, times: int) -> None:
            path.write_text(new, "utf-8")
            if not how:
                gateway.signal(signal.SIGHUP)
            await eventually(lambda: len(gateway.events(event)) == times, within_s=START_S)

        async with serving(tmp_path, "--config", str(path), *how) as gateway:
            asking = [asyncio.create_task(ask_model(gateway, "ends")) for _ in range(12)]
            await begun(upstream, 12, sent=4)
            loaded, kept = (
                "the configuration is loaded again",
                "the configuration can't be loaded again; the old one stays in use",
            )
            await reload(text.replace('"m"', '"new"'), loaded, 1)
            assert await listed() == {b"new"}
            await reload(text.replace('"m"', '"wrong"') + "wrong = 1\n", kept, 1)
            assert re.fullmatch(rf"{path}:\d+:1: routes\[0\]\.wrong: unknown key.*", gateway.log[-1]["event"])
            await reload(text.replace('"m"', '"fixed"').replace("workers = 2", "workers = 3"), kept, 2)
            assert gateway.log[-1]["event"] == f"{path}: server.workers: {NEEDS_RESTART}"
            assert await listed() == {b"new"}
            go.set()
            answers = await asyncio.gather(*asking)
            assert all(b"message_stop" in answer.body for answer in answers)
            killed = gateway.workers()
            for pid in killed:
                os.kill(pid, signal.SIGKILL)
            await eventually(lambda: len(gateway.workers() - killed) == 2, within_s=START_S)
            await eventually(lambda: not refuses(gateway.port), within_s=START_S)
            assert await listed() == {b"new"}
            gateway.signal(signal.SIGTERM)
            assert await gateway.ended() == 0


async def test_a_folder_of_counts_that_is_gone_ends_no_worker(tmp_path, tmp_path_factory, monkeypatch):
    short = tmp_path_factory.mktemp("t")  # the names of sockets are bounded
    monkeypatch.setenv("TMPDIR", str(short))
    async with in_front_of(tmp_path, as_asked(UPSTREAM), workers=2, grace_s=1.0) as (gateway, _upstream):
        [folder] = short.glob("streamkit-*")
        shutil.rmtree(folder)
        killed = min(gateway.workers())
        os.kill(killed, signal.SIGKILL)
        await eventually(lambda: len(gateway.workers() - {killed}) == 2, within_s=START_S)
        for client in CLIENTS * 3:
            where, body = request(client, "m", stream=False)
            assert (await ask(gateway.url, where, body=body)).status == 200, client
        gateway.signal(signal.SIGTERM)
        assert await gateway.ended() == 0
        assert len(gateway.events("a worker died; another is started")) == 1
        assert gateway.events("no room for metrics, so /metrics is incomplete")


async def test_an_idle_connection_does_not_hold_it_and_an_interrupt_is_not_talked_about(tmp_path):
    async with EvilUpstream(good(UPSTREAM)) as upstream:
        path = config_file(tmp_path, upstream.url, grace_s=60.0)
        async with serving(tmp_path, "--config", str(path)) as gateway, RawClient(gateway.url) as client:
            where, body = request("anthropic", "m")
            await client.send("POST", where, body=body)
            assert (await client.read_to_end()).end == "complete"
            gateway.signal(signal.SIGINT)
            assert await gateway.ended() == 0  # START_S is less than the grace time
            assert (gateway.printed, gateway.events("stopping")[0].get("streams")) == ("", None)


# -- workers -----------------------------------------------------------------------------------------------------------


async def test_a_worker_that_is_killed_takes_only_its_own_streams_and_another_is_started(tmp_path):
    hanging, whole = 24, 20
    script = as_asked(UPSTREAM)
    hang = silence_midstream(UPSTREAM)
    async with in_front_of(
        tmp_path,
        lambda asked: hang if asked.json()["model"] == "hangs" else script(asked),
        grace_s=1.0,
        workers=2,
        keep_alive_s=0.5,
    ) as (gateway, upstream):
        where, body = request("anthropic", "m")
        for _ in range(whole):
            assert b"message_stop" in (await ask(gateway.url, where, body=body)).body
        where, body = request("anthropic", "hangs")
        asking = [asyncio.create_task(ask(gateway.url, where, body=body)) for _ in range(hanging)]
        await begun(upstream, hanging + whole, sent=4)
        workers = gateway.workers()
        assert len(workers) == 2
        assert await gateway.counted("streams_active") == hanging
        assert await gateway.counted("requests_total", ending="whole") == whole

        killed = min(workers)
        os.kill(killed, signal.SIGKILL)
        await eventually(lambda: len(gateway.workers() - {killed}) == 2, within_s=START_S)
        [died] = gateway.events("a worker died; another is started")
        assert (died["pid"], died["exit"]) == (killed, -signal.SIGKILL)
        lost = [task for task in asking if task.done()]
        assert 0 < len(lost) < hanging  # both had some
        assert {task.result().end for task in lost} <= {"cut", "reset"}
        assert await gateway.counted("streams_active") == hanging - len(lost)
        assert await gateway.counted("requests_total", ending="whole") == whole  # the dead one's too

        where, body = request("ollama", "m")
        answers = await asyncio.gather(*(ask(gateway.url, where, body=body) for _ in range(whole)))
        assert all(b'"done":true' in answer.body for answer in answers)
        gateway.signal(signal.SIGTERM)
        assert await gateway.ended() == 0
        kept = [task.result() for task in asking if task not in lost]
        assert all(answer.body.count(b"event: error\n") == 1 for answer in kept)


async def test_a_worker_that_is_stopped_is_replaced_in_time_and_a_pause_of_all_ends_none(tmp_path):
    async with in_front_of(tmp_path, as_asked(UPSTREAM), workers=2, worker_silent_s=1.0) as (gateway, _upstream):
        workers = gateway.workers()
        os.killpg(gateway.process.pid, signal.SIGSTOP)  # as Ctrl-Z does
        await asyncio.sleep(1.2)
        gateway.signal(signal.SIGCONT)
        await asyncio.sleep(0.4)  # the parent looks at workers that could give no sign yet
        os.killpg(gateway.process.pid, signal.SIGCONT)
        where, body = request("anthropic", "m")
        for _ in range(20):
            assert b"message_stop" in (await ask(gateway.url, where, body=body)).body
        assert gateway.workers() == workers

        silent = min(workers)
        os.kill(silent, signal.SIGSTOP)
        answers = await asyncio.gather(*(ask(gateway.url, where, body=body) for _ in range(20)))
        assert "complete" in {answer.end for answer in answers} <= {"complete", "reset"}  # none waits forever
        await eventually(lambda: len(gateway.workers() - {silent}) == 2, within_s=START_S)
        [killed] = gateway.events("a worker is stopped or hangs, and is killed")
        [died] = gateway.events("a worker died; another is started")
        assert (killed["pid"], died["pid"], died["exit"]) == (silent, silent, -signal.SIGKILL)
        gateway.signal(signal.SIGTERM)
        assert await gateway.ended() == 0


async def test_nobody_is_left_behind_by_a_parent_that_was_killed(tmp_path):
    async with in_front_of(tmp_path, silence_midstream(UPSTREAM), grace_s=2.0, workers=2) as (gateway, upstream):
        where, body = request("anthropic", "m")
        asking = asyncio.create_task(ask(gateway.url, where, body=body))
        await begun(upstream, 1, sent=4)
        workers = gateway.workers()
        gateway.signal(signal.SIGKILL)
        answer = await asking
        assert answer.body.count(b"event: error\n") == 1  # they end as they do when they are told to
        await eventually(lambda: not any(map(is_alive, workers)))
        assert len(gateway.events("the parent is gone; its worker stops")) == 2


# -- what it says ------------------------------------------------------------------------------------------------------

FORGED = 'm\n{"event":"request","forged":true}\x1b[2J\u2028'


async def test_the_log_is_one_line_of_json_for_each_request_whoever_answers_it(tmp_path):
    async with in_front_of(tmp_path, as_asked(UPSTREAM), workers=2) as (gateway, _upstream):
        asked = [request(client, "m", stream=stream) for client in CLIENTS for stream in (True, False)]
        asked += [("/v1/chat/completions", b"{not json"), ("/v1/chat/completions", b""), ("/nowhere", b"")]
        asked += [request("openai-chat", FORGED), request("openai-chat", "long" * 50)]
        answers = await asyncio.gather(*(ask(gateway.url, path, body=body) for path, body in asked * 3))
        for probe in ("/healthz", "/readyz"):  # asked every few seconds, and no requests
            for url in (gateway.url, gateway.private):
                assert (await ask(url, probe, method="GET")).status == 200
        gateway.signal(signal.SIGTERM)
        assert await gateway.ended() == 0
        log = gateway.log  # every line is an object
    lines = [line for line in log if line["event"] == "request"]
    assert sorted(line["request_id"] for line in lines) == sorted(a.headers["x-request-id"] for a in answers)
    assert {"time", "level", "method", "path", "client", "status", "ending", "seconds"} <= lines[0].keys()
    assert not any("forged" in line for line in lines)
    assert sum(line.get("model") == FORGED for line in lines) == 3
    assert {line["event"] for line in log} == {"serving", "request", "stopping"}
