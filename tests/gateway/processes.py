"""The gateway in processes of its own, as operators run it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from aiohttp import ClientSession
from attrs import define

from tests.cli.command import COMMAND
from tests.web.evil import EvilUpstream, Play
from tests.web.serving import eventually

#: How long a process may take to import, start and serve where eight others want the same core.
START_S = 40.0


def config_file(folder: Path, upstream: str, **server: Any) -> Path:
    """A configuration that sends every model to one upstream of Chat Completions. JSON's scalars are TOML's."""
    settings = {"port": 0, "log_level": "info", **server}
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    path = folder / "gateway.toml"
    path.write_text(
        "\n".join(["[server]", *lines])
        + f'\n[upstreams.one]\ndialect = "openai-chat"\nbase_url = "{upstream}/v1"\nauth = "none"\n'
        + '[[routes]]\nmodels = ["m", "*"]\nto = ["one"]\nretries = 0\n',
        "utf-8",
    )
    return path


@define
class Gateway:
    """A gateway that runs; what it prints is in files."""

    process: subprocess.Popen[bytes]
    folder: Path

    @property
    def printed(self) -> str:
        return (self.folder / "stdout").read_text("utf-8")

    @property
    def said(self) -> str:
        return (self.folder / "stderr").read_text("utf-8")

    @property
    def log(self) -> list[dict[str, Any]]:
        """The lines of its log, each of which has to be a JSON object; the last one may still be on its way."""
        return [json.loads(line) for line in self.said.split("\n")[:-1]]

    def events(self, name: str) -> list[dict[str, Any]]:
        return [line for line in self.log if line["event"] == name]

    @property
    def url(self) -> str:
        if found := re.search(r"^streamkit serves (\S+)", self.printed):
            return found[1]
        return str(self.events("serving")[0]["url"])

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    @property
    def private(self) -> str:
        return str(self.events("serving")[0]["private"])

    @property
    def serves(self) -> bool:
        return self.process.poll() is None and ('"serving"' in self.said or " serving " in self.said)

    def workers(self) -> set[int]:
        """The processes of its workers. Linux only."""
        return {pid for pid in children(self.process.pid) if b"spawn_main" in _read(pid, "cmdline")}

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    async def ended(self, within_s: float = START_S) -> int:
        """Wait until it ends; its exit status."""
        await eventually(lambda: self.process.poll() is not None, within_s=within_s)
        return self.process.returncode

    async def counted(self, name: str, **labels: str) -> float:
        """The sum of those of a metric's series that have these labels."""
        async with ClientSession() as session, session.get(f"{self.private}/metrics") as response:
            lines = (await response.text()).splitlines()
        found = [line.rpartition(" ") for line in lines if line.startswith(f"streamkit_{name}")]
        wanted = [f'{label}="{value}"' for label, value in labels.items()]
        return sum(float(value) for series, _, value in found if all(pair in series for pair in wanted))


@asynccontextmanager
async def started(
    folder: Path, *arguments: str, environment: Mapping[str, str] | None = None, stderr: int | None = None
) -> AsyncIterator[Gateway]:
    """``streamkit serve`` with these arguments, in a session of its own; all that is left of it is killed at the end.

    ``stderr`` is where it logs to, if not a file.
    """
    process = _start(folder, arguments, environment or {}, stderr)
    try:
        yield Gateway(process, folder)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _start(
    folder: Path, arguments: tuple[str, ...], environment: Mapping[str, str], log: int | None
) -> subprocess.Popen[bytes]:
    with (folder / "stdout").open("wb") as stdout, (folder / "stderr").open("wb") as stderr:
        return subprocess.Popen(
            [*COMMAND, "serve", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr if log is None else log,
            start_new_session=True,
            # prometheus-client leaves files open at exit
            env={**os.environ, "PYTHONWARNINGS": "error,ignore::ResourceWarning", **environment},
        )


@asynccontextmanager
async def serving(
    folder: Path, *arguments: str, environment: Mapping[str, str] | None = None
) -> AsyncIterator[Gateway]:
    """The same, once it says that it serves."""
    async with started(folder, *arguments, environment=environment) as gateway:
        await eventually(lambda: gateway.serves or gateway.process.poll() is not None, within_s=START_S)
        assert gateway.process.poll() is None, gateway.said
        yield gateway


@asynccontextmanager
async def in_front_of(folder: Path, *plays: Play, **server: Any) -> AsyncIterator[tuple[Gateway, EvilUpstream]]:
    """A gateway that serves, with these values of its server, and its upstream, which plays these scripts."""
    async with EvilUpstream(*plays) as upstream:
        path = config_file(folder, upstream.url, **server)
        async with serving(folder, "--config", str(path)) as gateway:
            yield gateway, upstream


def children(pid: int) -> set[int]:
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (stat := _read(int(entry.name), "stat")):
            state, parent = stat.rpartition(b")")[2].split()[:2]
            if int(parent) == pid and state != b"Z":
                found.add(int(entry.name))
    return found


def is_alive(pid: int) -> bool:
    stat = _read(pid, "stat")
    return bool(stat) and stat.rpartition(b")")[2].split()[0] != b"Z"


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""
