"""The files of docs/how-to/deploy-the-gateway.md do what the page says.

nginx runs with its file, in front of a server that can wait, cut and look; then in front of the gateway with the page's own
configuration. Of systemd, containers and Kubernetes there is none here: their files are held to their own checkers, where these
are installed, and to the gateway's own numbers, paths and options.
"""

from __future__ import annotations

import argparse
import asyncio
import configparser
import io
import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import ClientPayloadError, ClientSession, TCPConnector, web

from streamkit.cli import serve as serve_command
from streamkit.gateway import serve
from streamkit.gateway.app import gateway_app
from streamkit.gateway.config import Config, Server
from streamkit.gateway.config_file import parse_config
from streamkit.gateway.keys import KeyFile
from streamkit.gateway.metrics import Metrics
from tests.docs.pages import DEMO, ROOT, blocks
from tests.web.nginx import find_nginx
from tests.web.ports import free_port
from tests.web.serving import eventually

PAGE = ROOT / "docs" / "how-to" / "deploy-the-gateway.md"
FOLDER = ROOT / "docs" / "how-to" / "deploy"
NGINX, UNIT = FOLDER / "nginx.conf", FOLDER / "streamkit.service"
CONTAINER, KUBERNETES = FOLDER / "Containerfile", FOLDER / "kubernetes.yaml"
COMPOSE, HTTPROUTE = FOLDER / "compose.yaml", FOLDER / "httproute.yaml"
MIB = 1024 * 1024
WAIT_S = 20
#: Seconds from SIGTERM to the end, in the worst case: what whoever stops the gateway must wait for.
STOP_S = Server().grace_s + serve.CLOSE_S + serve.MARGIN_S
OPERATORS = {"/healthz", "/readyz"}


def page_config() -> str:
    return next(block.text for block in blocks(PAGE) if block.language == "toml")


def key_file(_name: str) -> KeyFile:
    return KeyFile(b"key", 0o400)


def config_of(text: str) -> tuple[Config, set[str]]:
    """A configuration, and the key files that it names."""
    asked: set[str] = set()

    def read_file(name: str) -> KeyFile:
        asked.add(name)
        return key_file(name)

    return parse_config(text, name="gateway.toml", env={}, read_file=read_file), asked


def options_of(command: list[str]) -> argparse.Namespace:
    """What the command line makes of ``streamkit serve …``."""
    parser = argparse.ArgumentParser(exit_on_error=False)
    serve_command.add_options(parser.add_subparsers().add_parser("serve"))
    return parser.parse_args(command)


def paths_of_gateway() -> list[tuple[str, str]]:
    """Method and an example path of each of the gateway's routes."""
    app = gateway_app(config_of(page_config())[0], Metrics())
    routes = ((route.method, route.resource) for route in app.router.routes() if route.resource is not None)
    return [
        (method, re.sub(r"\{[^}]*\}", "models/x", resource.canonical))
        for method, resource in routes
        if method != "HEAD"
    ]


# -- the page ----------------------------------------------------------------------------------------------------------


def test_the_configuration_of_the_page_is_right_and_its_keys_lie_beside_it():
    config, files = config_of(page_config())
    assert files == {"client.key", "openai.key"}
    assert config.warnings == ()


def test_the_numbers_of_the_page_are_the_gateways():
    page, server = PAGE.read_text("utf-8"), Server()
    assert f"{server.host}:{server.port}" in page
    assert server.private_address == ("127.0.0.1", server.port + 1)
    assert f"`grace_s` ({server.grace_s:g} s)" in page
    assert f"still runs {serve.CLOSE_S + serve.MARGIN_S:g} s later" in page
    assert f"`keep_alive_s` ({server.keep_alive_s:g} s)" in page
    assert f"`body_bytes` ({server.body_bytes // MIB} MiB)" in page
    assert f"{server.max_streams:,} × {server.unsent_bytes // MIB} MiB" in page


def test_what_the_page_says_of_nginx_stands_in_its_file():
    section = PAGE.read_text("utf-8").split("## Behind nginx")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(.+?)` \|", section, re.MULTILINE)
    named = [row.replace("\\|", "|") for row in rows]
    assert len(named) >= 7
    assert [row for row in named if row not in NGINX.read_text("utf-8")] == []


def test_who_stops_the_gateway_waits_for_longer_than_it_takes():
    page = PAGE.read_text("utf-8")
    stop_timeouts = {int(found) for found in re.findall(r"--stop-timeout (\d+)", page)}
    unit = int(unit_of("Service")["TimeoutStopSec"])
    pod = document("Deployment")["spec"]["template"]["spec"]
    assert stop_timeouts == {45}
    assert compose("gateway")["stop_grace_period"] == "45s"
    assert min(stop_timeouts) > STOP_S
    assert unit > STOP_S
    slept_s = pod["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert pod["terminationGracePeriodSeconds"] > slept_s + STOP_S
    assert f"`TimeoutStopSec={unit}`" in page
    assert f"`terminationGracePeriodSeconds: {pod['terminationGracePeriodSeconds']}`" in page


# -- nginx -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def nginx_program(tmp_path_factory) -> Path:
    return find_nginx(tmp_path_factory.mktemp("nginx"))


@asynccontextmanager
async def nginx(program: Path, folder: Path, upstream: int) -> AsyncIterator[str]:
    """nginx with the page's file, on ports and with a certificate of our own; gives its URL.

    Around it nginx compresses everything and keeps a log, as some distributions have it.
    """
    trustme = pytest.importorskip("trustme")
    trustme.CA().issue_cert("llm.example.com").private_key_and_cert_chain_pem.write_to_path(folder / "cert.pem")
    port = free_port()
    site = NGINX.read_text("utf-8")
    for ours, theirs in {
        "127.0.0.1:8080": f"127.0.0.1:{upstream}",
        "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
        "/etc/nginx/tls/llm.example.com.pem": f"{folder}/cert.pem",
        "/etc/nginx/tls/llm.example.com.key": f"{folder}/cert.pem",
    }.items():
        assert site.count(ours) == 1, ours
        site = site.replace(ours, theirs)
    (folder / "site.conf").write_text(site, "utf-8")
    temporary = "".join(
        f"{name}_temp_path {folder}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"daemon off; master_process off; pid {folder}/pid; error_log stderr; events {{ }} http {{ {temporary}"
        f"access_log {folder}/access.log; gzip on; gzip_types *; gzip_min_length 0; gzip_proxied any; include {folder}/site.conf; }}",
        "utf-8",
    )
    command = [program, "-p", folder, "-c", folder / "nginx.conf", "-e", "stderr"]
    checking = await asyncio.create_subprocess_exec(*command, "-t", stderr=subprocess.PIPE)
    _, said = await checking.communicate()
    assert checking.returncode == 0, said.decode()
    process = await asyncio.create_subprocess_exec(*command, stderr=subprocess.DEVNULL)
    try:
        await until_it_listens(port, process)
        yield f"https://127.0.0.1:{port}"
    finally:
        process.terminate()
        await process.wait()


async def until_it_listens(port: int, process: asyncio.subprocess.Process) -> None:
    """Wait for a server; where it ended instead, its own words are the error."""
    async with asyncio.timeout(WAIT_S):
        while True:
            if process.returncode is not None:
                _, words = await process.communicate()
                raise RuntimeError(
                    f"exit status {process.returncode}: {(words or b'').decode(errors='replace')[-2000:]}"
                )
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.02)
            else:
                writer.close()
                await writer.wait_closed()
                return


class Behind:
    """A server behind nginx: says a first event, and the second when it is told to."""

    def __init__(self) -> None:
        self.asked: list[web.Request] = []
        self.sizes: list[int] = []
        self.go, self.left = asyncio.Event(), asyncio.Event()
        self.app = web.Application(client_max_size=100 * MIB)
        self.app.router.add_route("*", "/{path:.*}", self.answer)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request)
        self.sizes.append(len(await request.read()))
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b"data: 1\n\n")
        try:
            await self.go.wait()
        except asyncio.CancelledError:  # aiohttp's test server cancels a handler when its client leaves
            self.left.set()
            raise
        await response.write(b"data: 2\n\n")
        return response


@pytest.fixture
async def behind(aiohttp_server) -> AsyncIterator[Behind]:
    made = Behind()
    made.server = await aiohttp_server(made.app)
    yield made
    made.go.set()


@pytest.fixture
async def front(behind, nginx_program, tmp_path) -> AsyncIterator[str]:
    async with nginx(nginx_program, tmp_path, behind.server.port) as url:
        yield url


@pytest.fixture
async def client() -> AsyncIterator[ClientSession]:
    async with ClientSession(connector=TCPConnector(ssl=False)) as session:
        yield session


async def test_an_event_passes_nginx_before_the_next_one_is_there(front, behind, client):
    async with (
        asyncio.timeout(WAIT_S),
        client.post(f"{front}/v1/messages", headers={"Accept-Encoding": "gzip"}) as answer,
    ):
        assert "Content-Encoding" not in answer.headers
        assert await answer.content.readany() == b"data: 1\n\n"
        behind.go.set()
        assert await answer.read() == b"data: 2\n\n"


async def test_every_path_of_clients_passes_nginx_and_no_other(front, behind, client):
    behind.go.set()
    routes = paths_of_gateway()
    assert {path for _, path in routes} >= OPERATORS
    passed = {}
    for method, path in [*routes, ("GET", "/metrics"), ("GET", "/"), ("GET", "/v2/chat")]:
        async with client.request(method, front + path) as answer:
            passed[path] = answer.status == 200
    unversioned = {path for _, path in routes if not path.lstrip("/").startswith(("v1/", "v1beta/", "api/"))}
    assert unversioned > OPERATORS  # beside these, base URLs that are written otherwise, and the page at /
    shut = unversioned | {"/metrics", "/", "/v2/chat"}
    assert {path for path, open_ in passed.items() if not open_} == shut


async def test_the_longest_body_of_the_gateway_passes_nginx(front, behind, client):
    behind.go.set()
    for size, status in ((Server().body_bytes, 200), (34 * MIB, 413)):
        async with client.post(f"{front}/v1/messages", data=io.BytesIO(bytes(size))) as answer:
            assert answer.status == status
    assert behind.sizes == [Server().body_bytes]


async def test_nginx_closes_its_connection_when_the_client_leaves(front, behind, client):
    async with asyncio.timeout(WAIT_S):
        async with client.post(f"{front}/v1/messages") as answer:
            await answer.content.readany()
            assert answer.connection is not None
            assert answer.connection.transport is not None
            answer.connection.transport.abort()
            await behind.left.wait()


async def test_nginx_asks_by_http_1_1_and_keeps_its_connections(front, behind, client):
    behind.go.set()
    peers = set()
    for _ in range(3):
        async with client.post(f"{front}/v1/messages") as answer:
            await answer.read()
        request = behind.asked[-1]
        assert (request.version.major, request.version.minor) == (1, 1)
        peers.add(request.headers.get("Connection", ""))
    assert peers == {""}
    assert len({request.protocol for request in behind.asked}) == 1


async def test_a_stream_that_was_cut_is_no_whole_one_behind_nginx(nginx_program, tmp_path, client):
    """The server speaks the version that it is asked in, and closes without an end, as one that was killed does."""

    async def killed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if head.split(b"\r\n")[0].endswith(b"1.1"):
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n")
        else:
            writer.write(b"HTTP/1.0 200 OK\r\n\r\ndata: 1\n\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(killed, "127.0.0.1", 0)
    async with (
        server,
        nginx(nginx_program, tmp_path, server.sockets[0].getsockname()[1]) as url,
        client.get(f"{url}/v1/models") as answer,
    ):
        with pytest.raises(ClientPayloadError):
            await answer.read()


async def test_no_key_in_a_query_reaches_nginx_log(front, behind, client, tmp_path):
    behind.go.set()
    async with client.post(f"{front}/v1beta/models/x:generateContent?key=canary") as answer:
        await answer.read()
    async with client.get(f"{front}/elsewhere") as answer:
        assert answer.status == 404
    log = tmp_path / "access.log"
    await eventually(lambda: "/elsewhere" in log.read_text("utf-8"))  # nginx writes it behind the answer
    assert "canary" not in log.read_text("utf-8")


# -- the gateway itself, with the page's configuration -----------------------------------------------------------------


@asynccontextmanager
async def gateway(folder: Path, base_url: str, port: int, *options: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """``streamkit serve`` with the page's configuration, but another upstream; stopped as everybody stops it."""
    text = page_config()
    assert text.count("https://api.openai.com/v1") == 1
    (folder / "gateway.toml").write_text(text.replace("https://api.openai.com/v1", base_url), "utf-8")
    for name in config_of(text)[1]:
        (folder / name).write_text(f"the-{name}\n", "utf-8")
    command = [
        sys.executable,
        "-m",
        "streamkit",
        "serve",
        "--config",
        str(folder / "gateway.toml"),
        "--port",
        str(port),
        *options,
    ]
    process = await asyncio.create_subprocess_exec(*command, stderr=subprocess.PIPE)
    try:
        await until_it_listens(port, process)
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def replay(request: web.Request) -> web.StreamResponse:
    assert request.headers["Authorization"] == "Bearer the-openai.key"
    return web.Response(body=DEMO.read_bytes(), content_type="text/event-stream")


async def test_the_configuration_of_the_page_serves_behind_nginx(nginx_program, tmp_path, aiohttp_server, client):
    app = web.Application()
    app.router.add_post("/v1/chat/completions", replay)
    upstream, port = await aiohttp_server(app), free_port()
    asked = {"model": "m", "max_tokens": 9, "stream": True, "messages": [{"role": "user", "content": "Hi"}]}
    (tmp_path / "etc").mkdir()
    (tmp_path / "nginx").mkdir()
    async with (
        gateway(tmp_path / "etc", str(upstream.make_url("/v1")), port) as process,
        nginx(nginx_program, tmp_path / "nginx", port) as url,
    ):
        async with client.post(f"{url}/v1/messages", json=asked) as answer:
            assert answer.status == 401
        async with client.post(f"{url}/v1/messages", json=asked, headers={"x-api-key": "the-client.key"}) as answer:
            body = await answer.read()
        assert answer.status == 200
        assert b"event: message_stop" in body
        health = healthcheck(port)
        assert await asyncio.to_thread(subprocess.call, health) == 0
        process.terminate()
        async with asyncio.timeout(WAIT_S):
            assert await process.wait() == 0
        assert await asyncio.to_thread(subprocess.call, health, stderr=subprocess.DEVNULL) == 1


def test_a_wrong_configuration_ends_with_the_status_that_systemd_does_not_try_again(tmp_path):
    (tmp_path / "gateway.toml").write_text(page_config(), "utf-8")  # no key files beside it
    command = [sys.executable, "-m", "streamkit", "serve", "--config", str(tmp_path / "gateway.toml"), "--check-config"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert str(done.returncode) == unit_of("Service")["RestartPreventExitStatus"] == "2"
    assert re.search(r"gateway\.toml:\d+", done.stderr)


# -- systemd -----------------------------------------------------------------------------------------------------------


def unit_of(section: str) -> dict[str, str]:
    """A section of the unit; of settings that stand several times, the values by lines."""

    class Several(dict[str, Any]):
        def __setitem__(self, key: str, value: Any) -> None:
            if isinstance(value, list) and key in self:
                self[key].extend(value)
            else:
                super().__setitem__(key, value)

    parser = configparser.RawConfigParser(dict_type=Several, strict=False, delimiters="=", comment_prefixes="#")
    parser.optionxform = str  # type: ignore[assignment,method-assign] # names are case-sensitive
    parser.read(UNIT, "utf-8")
    return {key: value.strip() for key, value in parser[section].items()}


def test_the_unit_brings_the_configuration_and_all_its_keys_into_one_folder():
    loaded = dict(line.split(":") for line in unit_of("Service")["LoadCredential"].split("\n"))
    assert set(loaded) == {"gateway.toml", *config_of(page_config())[1]}
    assert loaded == {name: f"/etc/streamkit/{name}" for name in loaded}


def test_the_unit_starts_what_there_is():
    program, *command = shlex.split(unit_of("Service")["ExecStart"])
    assert program == "/opt/streamkit/bin/streamkit"
    assert "streamkit" in project()["scripts"]
    assert options_of(command).config == "%d/gateway.toml"


def test_the_unit_has_sockets_for_all_streams_of_a_process():
    assert int(unit_of("Service")["LimitNOFILE"]) > 2 * Server().max_streams


def test_the_unit_stops_the_main_process_by_the_signal_that_it_knows():
    service = unit_of("Service")
    assert (service["KillMode"], service["KillSignal"]) == ("mixed", "SIGTERM")


def test_a_reload_by_systemd_is_told_for_both_ways_of_reading_files():
    page, unit = PAGE.read_text("utf-8"), UNIT.read_text("utf-8")
    copied, read = re.findall(r"  ```ini\n(.*?)  ```", page, re.DOTALL)
    for line in copied.split():
        assert line in unit
    settings = dict(line.strip().split("=", 1) for line in read.splitlines())
    assert settings["ExecReload"] == "/bin/kill -HUP $MAINPID"
    assert options_of(shlex.split(settings["ExecStart"])[1:]).config == "/etc/streamkit/gateway.toml"


@pytest.mark.parametrize(
    "check", [["verify"], ["security", "--offline=true", "--threshold=15"]], ids=lambda check: check[0]
)
def test_systemd_takes_the_unit(check, tmp_path):
    """``security`` counts what the service may do, from 0 to 100."""
    if not shutil.which("systemd-analyze"):
        pytest.skip("no systemd-analyze here")
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text("utf-8").replace("/opt/streamkit/bin/streamkit", "/bin/true"), "utf-8")
    done = subprocess.run(["systemd-analyze", *check, unit], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert UNIT.name not in done.stderr  # it warns of names that it does not know, and goes on


# -- containers --------------------------------------------------------------------------------------------------------


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def instructions() -> list[tuple[str, str]]:
    text = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", CONTAINER.read_text("utf-8"), flags=re.MULTILINE))
    return [(word, rest.strip()) for word, rest in re.findall(r"^([A-Z]+) (.+)$", text, re.MULTILINE)]


def last(word: str) -> str:
    return [rest for name, rest in instructions() if name == word][-1]


def healthcheck(port: int) -> list[str]:
    """The container's own command, with this interpreter and another port."""
    program, *arguments = json.loads(last("HEALTHCHECK").split("CMD ", 1)[1])
    assert program == "/opt/streamkit/bin/python"
    assert "127.0.0.1:8080/healthz" in arguments[1]
    return [sys.executable, *(argument.replace(":8080", f":{port}") for argument in arguments)]


@pytest.mark.parametrize("text", [CONTAINER.read_text("utf-8"), PAGE.read_text("utf-8")], ids=["Containerfile", "page"])
def test_what_is_installed_is_this_package_with_an_extra_that_it_has(text):
    name, extra = re.search(r'"([\w-]+)\[([\w${}]+)\]', text).groups()
    assert name == project()["name"]
    assert (last("ARG").partition("=")[2] if extra == "${EXTRAS}" else extra) in project()["optional-dependencies"]


def test_the_container_runs_what_there_is_as_nobody():
    program, *command = json.loads(last("ENTRYPOINT")) + json.loads(last("CMD"))
    options = options_of(command)
    assert program == "/opt/streamkit/bin/streamkit"
    assert (options.config, options.host, options.port) == (
        "/etc/streamkit/gateway.toml",
        "0.0.0.0",
        int(last("EXPOSE")),
    )
    assert last("STOPSIGNAL") == "SIGTERM"
    assert all(int(number) >= 10_000 for number in last("USER").split(":"))
    assert last("COPY") == "--from=build /opt/streamkit /opt/streamkit"
    bases = {rest.split()[0] for word, rest in instructions() if word == "FROM"}
    assert len(bases) == 1, "a virtual environment is bound to its interpreter"
    minor = int(re.search(r"python:3\.(\d+)", bases.pop())[1])
    assert minor >= int(project()["requires-python"].removeprefix(">=3."))


def test_hadolint_takes_the_containerfile():
    if not shutil.which("hadolint"):
        pytest.skip("no hadolint here")
    done = subprocess.run(["hadolint", CONTAINER], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


# -- Compose -----------------------------------------------------------------------------------------------------------


def compose(service: str) -> dict[str, Any]:
    return yaml.safe_load(COMPOSE.read_text("utf-8"))["services"][service]


def test_compose_builds_the_container_with_extras_that_there_are_and_asks_it_the_same():
    gateway, check = compose("gateway"), last("HEALTHCHECK")
    assert gateway["build"]["dockerfile"] == CONTAINER.name
    assert gateway["build"]["args"].keys() == {rest.partition("=")[0] for word, rest in instructions() if word == "ARG"}
    assert set(gateway["build"]["args"]["EXTRAS"].split(",")) <= project()["optional-dependencies"].keys()
    assert gateway["healthcheck"]["test"] == ["CMD", *json.loads(check.split("CMD ", 1)[1])]
    for option, setting in (("interval", "interval"), ("timeout", "timeout"), ("start-period", "start_period")):
        assert f"--{option}={gateway['healthcheck'][setting]}" in check
    assert gateway["user"] == last("USER")
    assert [port.rpartition(":")[2] for port in gateway["ports"]] == [last("EXPOSE")]


def test_compose_mounts_the_configuration_and_all_its_keys_where_the_container_looks_for_them():
    mounted = yaml.safe_load(COMPOSE.read_text("utf-8"))
    folder = Path(json.loads(last("CMD"))[1]).parent
    files = {name: {"file": name} for name in ("gateway.toml", *sorted(config_of(page_config())[1]))}
    assert mounted["configs"] | mounted["secrets"] == files
    assert mounted["secrets"].keys() == config_of(page_config())[1]
    mounts = [*compose("gateway")["configs"], *compose("gateway")["secrets"]]
    assert mounts == [{"source": name, "target": str(folder / name)} for name in files]


def test_what_compose_runs_may_write_nothing_but_memory_and_reach_nothing_that_it_needs_not():
    for service in ("gateway", "redis"):
        made = compose(service)
        assert (made["read_only"], made["cap_drop"], made["security_opt"]) == (
            True,
            ["ALL"],
            ["no-new-privileges:true"],
        )
        assert "volumes" not in made
        assert all(port.startswith("127.0.0.1:") for port in made.get("ports", ()))


def test_the_redis_of_compose_is_the_one_that_the_page_configures_and_need_not_run():
    [resume] = [block.text for block in blocks(PAGE) if block.text.startswith("[resume]")]
    gateway = compose("gateway")
    config = parse_config(page_config() + resume, name="gateway.toml", env=gateway["environment"], read_file=key_file)
    assert config.resume.url.reveal() == "redis://redis:6379/0"
    assert compose("redis")["profiles"] == ["redis"]
    assert gateway["depends_on"]["redis"]["required"] is False


# -- Kubernetes --------------------------------------------------------------------------------------------------------


def document(kind: str) -> dict[str, Any]:
    return next(one for one in yaml.safe_load_all(KUBERNETES.read_text("utf-8")) if one["kind"] == kind)


def container() -> dict[str, Any]:
    return document("Deployment")["spec"]["template"]["spec"]["containers"][0]


def test_the_configuration_on_kubernetes_is_the_pages_with_metrics_for_the_pod():
    text = document("ConfigMap")["data"]["gateway.toml"]
    theirs, ours = tomllib.loads(text), tomllib.loads(page_config())
    assert theirs["server"].pop("private") == "0.0.0.0:8081"
    named = document("Ingress")["spec"]["rules"][0]["host"]
    assert ours["server"].pop("hosts") == [named]  # pods listen on all interfaces, and need none
    assert theirs == ours
    config, _ = config_of(text)
    assert [warning.path for warning in config.warnings] == ["server.private"]


def test_the_pod_runs_what_the_container_does_and_follows_its_configuration():
    assert container()["args"] == [*json.loads(last("CMD")), "--watch"]
    assert options_of(["serve", *container()["args"]]).watch
    assert not any("subPath" in mount for mount in container()["volumeMounts"])


def test_configuration_and_keys_are_mounted_in_one_folder_where_the_container_looks_for_them():
    pod = document("Deployment")["spec"]["template"]["spec"]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    mounts = {mount["mountPath"]: volumes[mount["name"]] for mount in container()["volumeMounts"]}
    folder = mounts[str(Path(json.loads(last("CMD"))[1]).parent)]["projected"]
    assert folder["defaultMode"] & 0o007 == 0
    assert folder["sources"] == [
        {"configMap": {"name": document("ConfigMap")["metadata"]["name"]}},
        {"secret": {"name": "streamkit-keys"}},
    ]
    files = re.findall(r"--from-file=(\S+)", KUBERNETES.read_text("utf-8"))
    assert set(files) == config_of(page_config())[1]
    assert "emptyDir" in mounts["/tmp"]


def test_the_probes_ask_for_paths_that_there_are():
    paths = {path for _, path in paths_of_gateway()}
    assert container()["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "http"}
    assert container()["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "http"}
    assert {"/healthz", "/readyz"} <= paths


def test_clients_reach_the_public_port_only():
    ports = {port["name"]: port["containerPort"] for port in container()["ports"]}
    config, _ = config_of(document("ConfigMap")["data"]["gateway.toml"])
    assert ports == {"http": config.server.port, "metrics": config.server.private_address[1]}
    assert [port["targetPort"] for port in document("Service")["spec"]["ports"]] == ["http"]
    rules = document("NetworkPolicy")["spec"]["ingress"]
    assert [[port["port"] for port in rule["ports"]] for rule in rules] == [["http"], ["metrics"]]
    assert "from" not in rules[0]
    assert rules[1]["from"] == [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]


def test_all_parts_select_the_same_pods():
    labels = document("Deployment")["spec"]["template"]["metadata"]["labels"]
    assert labels == document("Deployment")["spec"]["selector"]["matchLabels"]
    assert labels == document("Service")["spec"]["selector"]
    assert labels == document("NetworkPolicy")["spec"]["podSelector"]["matchLabels"]


def test_the_pod_may_do_nothing_but_serve():
    pod = document("Deployment")["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert f"{pod['securityContext']['runAsUser']}:{pod['securityContext']['runAsGroup']}" == last("USER")
    assert pod["securityContext"]["fsGroup"] == pod["securityContext"]["runAsGroup"]
    assert not pod["automountServiceAccountToken"]
    assert container()["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_the_ingress_says_what_nginx_says():
    site = NGINX.read_text("utf-8")
    prefix = "nginx.ingress.kubernetes.io/"
    said = {name.removeprefix(prefix): value for name, value in document("Ingress")["metadata"]["annotations"].items()}
    assert f"proxy_buffering {said['proxy-buffering']};" in site
    assert f"proxy_read_timeout {said['proxy-read-timeout']}s;" in site
    assert f"client_max_body_size {said['proxy-body-size']};" in site
    page = PAGE.read_text("utf-8")
    assert [name for name, value in said.items() if f'`{name}: "{value}"`' not in page] == []
    paths = [path["path"] for rule in document("Ingress")["spec"]["rules"] for path in rule["http"]["paths"]]
    assert f"location ~ ^/({'|'.join(path.strip('/') for path in paths)})/" in site


def test_the_route_of_the_gateway_api_is_the_ingress_without_time_limits():
    route, rule = yaml.safe_load(HTTPROUTE.read_text("utf-8")), document("Ingress")["spec"]["rules"][0]
    assert route["spec"]["hostnames"] == [rule["host"]]
    [ours] = route["spec"]["rules"]
    assert [match["path"] for match in ours["matches"]] == [
        {"type": "PathPrefix", "value": path["path"]} for path in rule["http"]["paths"]
    ]
    service = document("Service")
    assert ours["backendRefs"] == [{"name": service["metadata"]["name"], "port": service["spec"]["ports"][0]["port"]}]
    assert ours["timeouts"] == {"request": "0s", "backendRequest": "0s"}
    assert "`timeouts: {request: 0s}`" in PAGE.read_text("utf-8")
