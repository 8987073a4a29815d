"""A configuration that is loaded again while requests are in progress: all of it or nothing. With processes: test_processes.py."""

from __future__ import annotations

import asyncio
import gc
import logging
from contextlib import asynccontextmanager
from itertools import count
from multiprocessing import Pipe

import orjson
import pytest
from aiohttp import ClientSession
from attrs import evolve, fields

from streamkit.events import ProviderFailed
from streamkit.gateway import orders, reload, serve
from streamkit.gateway.config import Config, Responses, Resume, Server, Telemetry
from streamkit.gateway.config_file import ConfigFile
from streamkit.gateway.health import Ended, Health
from streamkit.gateway.metrics import Metrics, exposition
from streamkit.gateway.orders import obey, switch_workers
from streamkit.gateway.reload import APPLIED, NEEDS_RESTART, TABLES, Reloader, fixed
from streamkit.gateway.rules import RETIRED, Rules, rules_of
from streamkit.gateway.signals import Signals
from streamkit.report import StreamReport
from streamkit.toml.findings import ConfigError
from streamkit.web.upstream import Secret, Upstream
from tests.gateway.running import Running, asking
from tests.web.evil import EvilUpstream, Fin, Script, Send, Until
from tests.web.faults import as_asked, chunk, good, status
from tests.web.leaks import in_use
from tests.web.raw_client import RawClient
from tests.web.serving import eventually

DIALECT = "openai-chat"
LOADED = "the configuration is loaded again"
KEPT = "the configuration can't be loaded again; the old one stays in use"


def toml(*upstreams: str, models: str = '"m", "*"', server: str = "", first: str = "") -> str:
    """A configuration with these upstreams, by their URLs."""
    tables = [f'[server]\nport = 0\nprivate = "off"\ngrace_s = 1\n{server}\n']
    for name, url in zip(("one", "two", "three"), upstreams, strict=False):
        auth = first if first and name == "one" else 'auth = "none"'
        tables.append(f'[upstreams.{name}]\ndialect = "{DIALECT}"\nbase_url = "{url}/v1"\n{auth}\n')
    names = ", ".join(f'"{name}"' for name, _ in zip(("one", "two", "three"), upstreams, strict=False))
    return "\n".join([*tables, f"[[routes]]\nmodels = [{models}]\nto = [{names}]\nretries = 0\n"])


class Live(Running):
    """A gateway with a configuration file, which the test changes."""

    signals: Signals
    file: ConfigFile
    caplog: pytest.LogCaptureFixture

    @property
    def messages(self) -> list[str]:
        """What it has logged."""
        return self.caplog.messages

    async def reload(self, text: str | None = None) -> str:
        """Load the file again, changed or not. Return the message that says how it went."""
        if text is not None:
            self.file.path.write_text(text, "utf-8")
        before = len(self.messages)
        self.signals.reload.set()
        await eventually(lambda: {LOADED, KEPT} & set(self.messages[before:]))
        return next(each for each in self.messages[before:] if each in {LOADED, KEPT})


@pytest.fixture
async def started(tmp_path, monkeypatch, caplog):
    """Start gateways as ``streamkit serve --config`` does, in this process."""
    caplog.set_level(logging.INFO, "streamkit.gateway")
    monkeypatch.setattr(serve, "configure", lambda *_: None)  # the log is pytest's
    thresholds = gc.get_threshold()

    @asynccontextmanager
    async def start(text: str):
        path = tmp_path / "gateway.toml"
        path.write_text(text, "utf-8")
        file, signals, metrics, urls = ConfigFile(path), Signals(), Metrics(), []
        monkeypatch.setattr(serve, "signals_of_gateway", lambda **_: signals)
        monkeypatch.setattr(serve, "Metrics", lambda: metrics)
        running = asyncio.create_task(serve._alone(file.load(), urls.append, file=file, tell=urls.append))
        try:
            await eventually(lambda: urls or running.done())
            live = Live(urls[0], metrics)
            live.signals, live.file, live.caplog = signals, file, caplog
            yield live
        finally:
            signals.stop.set()
            await running
            gc.unfreeze()
            gc.set_threshold(*thresholds)

    return start


def held(go: asyncio.Event, *rest: bytes) -> Script:
    """A stream that waits in its middle, and then ends as usual, or with other bytes."""
    steps = good(DIALECT).steps
    half = len(steps) // 2
    ending = [Send(chunk(each)) for each in rest] if rest else steps[half:]
    return Script((*steps[:half], Until(go), *ending))


def rules_alive() -> int:
    return sum(isinstance(each, Rules) for each in gc.get_objects())


# -- streams in progress -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("streams", "reloads"), [(40, 10), pytest.param(200, 50, marks=pytest.mark.exhaustive)], ids=lambda each: f"{each}"
)
async def test_reloads_interrupt_no_stream_and_leave_nothing(started, streams, reloads):
    go = asyncio.Event()
    bodies = set()

    async def stream(live, told: asyncio.Semaphore) -> None:
        path, body = asking(DIALECT)
        async with RawClient(live.url) as client:
            await client.send("POST", path, body=orjson.dumps(body))
            await client.read_headers()
            told.release()
            answer = await client.read_to_end()
            assert answer.end == "complete"
            bodies.add(bytes(answer.body))

    def play(asked):
        steps = held(go).steps if asked.json()["model"] == "m" else as_asked(DIALECT)(asked).steps
        return Script((*steps, Fin()))  # no connection is kept

    async with EvilUpstream(play) as one, started(toml(one.url)) as live:
        await live.reload()  # the first one starts a thread
        assert (await live.asked(body={"model": "short"}, stream=False)).status == 200
        before, told, rules = await in_use(), asyncio.Semaphore(0), rules_alive()
        asked = [asyncio.create_task(stream(live, told)) for _ in range(streams)]
        for _ in range(streams):
            await told.acquire()
        for number in range(reloads):
            text = toml(one.url, models=f'"m", "*", "new-{number}"', server=f"keep_alive_s = {number + 10}")
            assert await live.reload(text) == LOADED
            assert f"new-{number}" in (await live.get("/v1/models")).body.decode()
            assert (await live.asked(body={"model": "short"}, stream=False)).status == 200
        assert not any(task.done() for task in asked)
        go.set()
        await asyncio.gather(*asked)
        assert len(bodies) == 1
        await eventually(lambda: live.counted("streams_active") == 0)
        assert live.counted("requests_total", ending="whole") == streams + 2 * reloads + 1
        left = await in_use() - before
        assert not left, sorted(left)
        assert rules_alive() <= rules


async def test_new_requests_get_the_new_configuration_and_a_stream_in_progress_keeps_its_own(started):
    go = asyncio.Event()
    async with EvilUpstream(held(go)) as one, EvilUpstream(as_asked(DIALECT)) as two, started(toml(one.url)) as live:
        async with live.client() as client:
            await client.read_headers()
            text = toml(one.url, two.url, models='"other"').replace('"one", "two"', '"two"')
            assert await live.reload(text) == LOADED
            assert (await live.asked(stream=False)).status == 404
            assert (await live.asked(body={"model": "other"}, stream=False)).status == 200
            listed = (await live.get("/v1/models")).json()["data"]
            go.set()
            assert (await client.read_to_end()).end == "complete"
        assert [card["id"] for card in listed] == ["other"]
        assert (len(one.requests), len(two.requests)) == (1, 1)
        series = exposition(live.metrics).decode()
        assert 'streamkit_stalls_total{upstream="two"} 0.0' in series  # a rate needs the series from the start
        assert await live.reload(text.replace('"other"', '"third"')) == LOADED
        assert two.connections == 1
        assert (await live.asked(body={"model": "third"}, stream=False)).status == 200
        assert two.connections == 1  # the connection was kept


OLD, NEW = "old-upstream-key", "new-upstream-key"


async def test_keys_in_files_are_read_again_and_the_old_ones_stay_hidden(started, tmp_path, caplog):
    go = asyncio.Event()
    error = b'data: {"error": {"message": "the key %s was revoked", "type": "server_error"}}\n\n' % OLD.encode()
    (tmp_path / "client.key").write_text("old-client-key")
    (tmp_path / "one.key").write_text(OLD)
    plays = [held(go, error), as_asked(DIALECT), as_asked(DIALECT)]
    server = 'keys = [{ file = "client.key" }]'
    async with EvilUpstream(*plays) as one:
        text = toml(one.url, server=server, first='key = { file = "one.key" }')
        async with started(text) as live:
            as_old, as_new = ({"x-api-key": f"{age}-client-key"} for age in ("old", "new"))
            async with live.client(headers=as_old) as client:
                await client.read_headers()
                (tmp_path / "client.key").write_text("new-client-key")
                (tmp_path / "one.key").write_text(NEW)
                assert (await live.asked(headers=as_new, stream=False)).status == 401
                assert await live.reload() == LOADED
                assert (await live.asked(headers=as_old, stream=False)).status == 401
                assert (await live.asked(headers=as_new, stream=False)).status == 200
                await live.ask(f"/v1/{OLD}", headers=as_new)
                go.set()
                answer = await client.read_to_end()
            assert b"was revoked" in answer.body
            assert OLD.encode() not in answer.body
            sent = [request.header("authorization") for request in one.requests]
            assert sent == [f"Bearer {OLD}", f"Bearer {NEW}"]
            await eventually(lambda: live.counted("streams_active") == 0)
            logged = repr([getattr(record, "fields", record) for record in caplog.records])
            assert OLD not in logged
            assert "client-key" not in logged


async def test_a_socket_whose_key_was_removed_gets_no_more_responses(started, tmp_path):
    (tmp_path / "client.key").write_text("old-client-key")
    message = {"type": "response.create", "model": "m", "input": "hi"}
    async with EvilUpstream(good("openai-chat")) as one:
        text = toml(one.url, server='keys = [{ file = "client.key" }]')
        headers = {"Authorization": "Bearer old-client-key"}
        async with (
            started(text) as live,
            ClientSession() as session,
            session.ws_connect(f"{live.url}/v1/responses", headers=headers) as socket,
        ):
            await socket.send_json(message)
            while (await socket.receive_json())["type"] != "response.completed":
                pass
            (tmp_path / "client.key").write_text("new-client-key")
            assert await live.reload() == LOADED
            await socket.send_json(message)
            assert (await socket.receive_json())["status"] == 401
            assert len(one.requests) == 1


async def test_what_was_learned_of_an_upstream_survives_unless_the_upstream_is_changed(started):
    busy = status(429, DIALECT, headers={"Retry-After": "60"})
    plays = busy, as_asked(DIALECT)
    async with EvilUpstream(*plays) as one, EvilUpstream(plays[1]) as two, started(toml(one.url, two.url)) as live:

        async def asked() -> tuple[int, int]:
            assert (await live.asked(stream=False)).status == 200
            return len(one.requests), len(two.requests)

        assert await asked() == (1, 1)
        assert await live.reload(toml(one.url, two.url, server="keep_alive_s = 10")) == LOADED
        assert await asked() == (1, 2)  # it rests still
        assert await live.reload(toml(one.url, two.url, first='auth = "none"\nmax_tokens = 99')) == LOADED
        assert await asked() == (2, 2)


def test_what_is_known_of_the_named_upstreams_alone_is_forgotten_and_attempts_of_before_say_nothing():
    health, busy = Health(), ProviderFailed("rate_limit", "busy", retry_after_s=60)
    one = Upstream(name="a", dialect=DIALECT, base_url="http://127.0.0.1:9", auth="none")
    keys = ("a", "m"), ("b", "m"), ("a", "n")

    def begun() -> list[int]:
        return [health.begin(key, StreamReport(), 1.0) for key in keys]

    def resting(numbers: list[int]) -> list[tuple[str, str]]:
        for key, number in zip(keys, numbers, strict=True):
            health.end(key, one, Ended("http_429", busy, StreamReport(), number, 2.0))
        return [key for key in keys if health.rests_until(key, 2.0) > 2.0]

    before, last = begun(), begun()
    assert resting(before) == [*keys]
    health.forget({"a"})
    after = begun()
    assert resting(last) == [("b", "m")]
    assert resting(after) == [*keys]
    assert health.streams == {"a": 0, "b": 0}


def test_the_keys_of_some_earlier_configurations_stay_hidden():
    rules = None
    for number in range(RETIRED + 10):
        key = Secret(f"{number:08}-key")
        rules = rules_of(Config(server=Server(keys=(key,)), upstreams={}, routes=()), rules)
    assert rules is not None
    kept = [number for number in range(RETIRED + 10) if rules.hide(f"{number:08}-key") == "[removed]"]
    assert kept == list(range(9, RETIRED + 10))


# -- what is refused ---------------------------------------------------------------------------------------------------


async def test_a_wrong_file_keeps_the_old_configuration_and_its_faults_are_logged(started, monkeypatch):
    async with EvilUpstream(as_asked(DIALECT)) as one, started(toml(one.url)) as live:
        wrong = toml(one.url, models='"new"', server='keep_alive_s = "ten"\nkyes = []')
        assert await live.reload(wrong) == KEPT
        with pytest.raises(ConfigError) as checked:  # as --check-config does
            live.file.load()
        findings = list(map(str, checked.value.findings))
        assert len(findings) == 2
        assert [message for message in live.messages if "gateway.toml" in message] == findings
        assert (await live.asked(stream=False)).status == 200
        live.file.path.unlink()
        assert await live.reload() == KEPT
        assert any("can't be read" in message for message in live.messages)
        assert await live.reload(toml(one.url, models='"new"', server="port = 1\n").replace("port = 0\n", "")) == KEPT
        assert f"{live.file.path}: server.port: {NEEDS_RESTART}" in live.messages
        assert "new" not in (await live.get("/v1/models")).body.decode()
        with monkeypatch.context() as patched:
            patched.setattr(ConfigFile, "load", lambda _self: 1 / 0)
            live.signals.reload.set()
            await eventually(lambda: "loading the configuration again failed" in live.messages[-1])
        assert await live.reload(toml(one.url)) == LOADED


#: Another value for each setting that a table of the configuration has.
OTHERS = {
    "server": {
        "host": "::1", "hosts": ("x.example",), "cors": ("https://x.example",), "port": 1, "private": "off", "workers": 2, "worker_silent_s": 5.0,
        "grace_s": 1.0, "body_bytes": 1, "bodies_bytes": 1, "max_streams": 1, "max_sockets": 1, "sockets_bytes": 1,
        "socket_idle_s": 1.0, "log_level": "error", "log_format": "text", "timings": True, "check_schemas": True,
        "keys": (Secret("key"),), "keyless_listing": True, "count_tokens": "off", "keep_alive_s": 1.0, "keep_alive": "comment",
        "whole_keep_alive": True, "unsent_bytes": 1, "stall_s": 1.0, "linger_s": 1.0, "stall_report_s": 1.0,
        "idle_connection_s": 1.0, "name_upstreams": True, "record": "x", "record_bodies": "none", "policy": "strict",
    },
    "resume": {
        "ttl_s": 1.0, "unattended_s": 1.0, "log_bytes": 1, "all_bytes": 1, "readers": 1, "prefix": "x", "lease_s": 1.0,
        "flush_ms": 1, "retry_s": 1.0, "behind_bytes": 1, "all_behind_bytes": 1, "wait_replicas": 1, "store": "off",
    },
    "responses": {"state": True, "ttl_s": 1.0, "response_bytes": 1},
    "telemetry": {
        "otlp": True, "semconv": "genai", "content": "on", "content_chars": 1000, "time_per_output_chunk": True,
        "shutdown_s": 1.0,
    },
}  # fmt: skip
FIXED_OF_SERVER = {
    "host", "port", "private", "workers", "worker_silent_s", "grace_s", "body_bytes", "idle_connection_s", "record", "record_bodies",
}  # fmt: skip


def test_each_setting_is_applied_or_refused():
    config = Config(upstreams={}, routes=())
    named = {table: {each.name for each in fields(type(getattr(config, table)))} for table in TABLES}
    assert named == {table: set(values) | ({"url"} if table == "resume" else set()) for table, values in OTHERS.items()}
    assert named["server"] - APPLIED == FIXED_OF_SERVER
    for table, values in OTHERS.items():
        for name, value in values.items():
            other = evolve(config, **{table: evolve(getattr(config, table), **{name: value})})
            expected = [] if table == "server" and name not in FIXED_OF_SERVER else [f"{table}.{name}"]
            assert list(fixed(config, other)) == expected, name
    urls = [Resume(store="redis", url=Secret(f"redis://{host}")) for host in ("a", "b")]
    assert list(fixed(*(evolve(config, resume=each) for each in urls))) == ["resume.url"]
    assert {type(getattr(config, table)) for table in TABLES} == {Server, Resume, Responses, Telemetry}


# -- watching ----------------------------------------------------------------------------------------------------------


async def test_a_change_is_noticed_once_the_files_stay_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(reload, "WATCH_S", 0.0)
    file, asked, looks = ConfigFile(tmp_path / "gateway.toml", watched=True), asyncio.Event(), []
    before, seen = {tmp_path: None}, [{tmp_path: (number, 0, 0)} for number in (0, 1, 2, 3, 3, 3)]
    file.stamps = before

    def present(_file):
        looks.append(asked.is_set())
        return ([before, before, *seen])[min(len(looks), 8) - 1]

    monkeypatch.setattr(ConfigFile, "present_stamps", present)
    async with reload.meanwhile(Reloader(Config(upstreams={}, routes=()), file).watch(asked)):
        await asyncio.wait_for(asked.wait(), 5)
    assert looks.count(False) == 7  # the last of these is the first look that finds the same change again


async def test_the_file_and_its_key_files_are_watched_until_they_are_read_again(tmp_path, monkeypatch):
    monkeypatch.setattr(reload, "WATCH_S", 0.01)
    path, key = tmp_path / "gateway.toml", tmp_path / "one.key"
    path.write_text(toml("http://x.example", first='key = { file = "one.key" }'), "utf-8")
    file, asked = ConfigFile(path, watched=True), asyncio.Event()
    with pytest.raises(ConfigError):
        file.load()
    assert file.stamps.keys() == {path, key}  # one that is missing is watched, too
    async with reload.meanwhile(Reloader(Config(upstreams={}, routes=()), file).watch(asked)):
        await asyncio.sleep(0.05)
        assert not asked.is_set()
        key.write_text("a-key")
        await asyncio.wait_for(asked.wait(), 5)
        file.load()
        asked.clear()
        await asyncio.sleep(0.05)
        assert not asked.is_set()
        other = tmp_path / "other"
        other.write_text("b-key")
        other.replace(key)  # as Kubernetes and editors do
        await asyncio.wait_for(asked.wait(), 5)


# -- workers -----------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def workers(*bad: int, number: int = 3):
    """Workers as tasks of this process. Those in ``bad`` can't use a configuration; yields their pipes and what they apply."""
    pipes, applied, tasks = {}, [], []
    rules = rules_of(Config(upstreams={}, routes=()))
    for each in range(number):
        pipes[each], theirs = Pipe()
        present = (lambda: 1 / 0) if each in bad else lambda: rules
        tasks.append(asyncio.create_task(obey(theirs, present, lambda new: applied.append(new.config), lambda: None)))
    try:
        yield pipes, applied
    finally:
        for pipe in pipes.values():
            pipe.close()
        await asyncio.gather(*tasks)


NEXT = Config(server=Server(keep_alive_s=7.0), upstreams={}, routes=())


async def test_all_workers_switch_or_none(monkeypatch):
    stop = asyncio.Event()
    async with workers() as (pipes, applied):
        assert await switch_workers(pipes, NEXT, stop) == ""
        await eventually(lambda: applied == [NEXT] * 3)
    async with workers(1) as (pipes, applied):
        assert "a worker can't use it: division by zero" in await switch_workers(pipes, NEXT, stop)
        await asyncio.sleep(0.05)
        assert applied == []
    async with workers() as (pipes, applied):
        dead, theirs = Pipe()
        theirs.close()  # as the end of a worker does
        assert await switch_workers({**pipes, 3: dead}, NEXT, stop) == ""
        await eventually(lambda: applied == [NEXT] * 3)
    monkeypatch.setattr(orders, "_NUMBERS", count(7))
    async with workers() as (pipes, applied):
        dead, theirs = Pipe()
        theirs.send(orders.Ready(7, ""))
        theirs.close()  # right after its reply
        assert await switch_workers({**pipes, 3: dead}, NEXT, stop) == ""
        await eventually(lambda: applied == [NEXT] * 3)
    monkeypatch.setattr(orders, "READY_S", 0.1)
    async with workers() as (pipes, applied):
        stopped, theirs = Pipe()
        theirs.send(orders.Ready(0, ""))  # of an earlier time
        assert "a worker was not ready" in await switch_workers({**pipes, 3: stopped}, NEXT, stop)
        stop.set()
        assert await switch_workers({**pipes, 3: stopped}, NEXT, stop) == "the gateway stops"
        await asyncio.sleep(0.05)
        assert applied == []
