"""The processes that are measured: started, asked what they cost, and ended. Linux only."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from attrs import frozen

ROOT: Final = Path(__file__).resolve().parents[2]
START_S: Final = 60.0
END_S: Final = 10.0
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


@frozen
class Server:
    """One that listens."""

    pid: int
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def cpu_ns(pid: int) -> int:
    """What a process has had of the CPUs, all its threads, in nanoseconds.

    This is clock_getcpuclockid(3), as Linux makes its number; ``/proc/PID/stat`` counts in hundredths of a second.
    """
    return time.clock_gettime_ns((~pid << 3) | 2)


def rss_bytes(pid: int) -> int:
    """What a process holds of the memory."""
    return int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]) * _PAGE_BYTES


@contextmanager
def running(
    command: list[str],
    folder: Path,
    name: str,
    *,
    port: Callable[[str], int | None],
    environment: Mapping[str, str] | None = None,
    within_s: float = START_S,
) -> Iterator[Server]:
    """A server for as long as the ``with`` lasts. ``port`` finds its port in what it has printed."""
    path = folder / f"{name}.log"
    with path.open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, **(environment or {})},
        )
    try:
        yield Server(process.pid, _listening(process, path, port, within_s))
    finally:
        process.terminate()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _listening(process: subprocess.Popen[bytes], path: Path, port: Callable[[str], int | None], within_s: float) -> int:
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        found = port(path.read_text("utf-8", "replace"))
        if found is not None:
            return found
        if process.poll() is not None:
            break
        time.sleep(0.05)
    said = path.read_text("utf-8", "replace").strip()[-2000:]
    raise RuntimeError(f"{path.stem} does not serve: {said}")


def first_line(printed: str) -> int | None:
    """The port of one of our own, which is all that it prints."""
    return int(printed) if printed.endswith("\n") else None


@contextmanager
def upstream(folder: Path, name: str = "upstream") -> Iterator[Server]:
    command = [sys.executable, "-m", "benchmarks.gateway.upstream"]
    with running(command, folder, name, port=first_line) as server:
        yield server


@contextmanager
def collector(folder: Path) -> Iterator[Server]:
    """Where traces and metrics are sent."""
    command = [sys.executable, "-m", "benchmarks.gateway.collector"]
    with running(command, folder, "collector", port=first_line) as server:
        yield server


@contextmanager
def relay(folder: Path, model: Server, *, warm: bool = False) -> Iterator[Server]:
    command = [sys.executable, "-m", "benchmarks.gateway.relay", model.url, *(["warm"] if warm else [])]
    with running(command, folder, "warm-relay" if warm else "relay", port=first_line) as server:
        yield server


@contextmanager
def gateway(
    folder: Path,
    model: Server,
    *,
    tables: str = "",
    options: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> Iterator[Server]:
    """``streamkit serve``, as an operator runs it: its own configuration, log and counts on.

    ``tables`` are further ones of the configuration, ``options`` further ones of the command.
    """
    path = folder / "gateway.toml"
    path.write_text(
        f'[server]\nport = 0\n[upstreams.bench]\ndialect = "openai-chat"\nbase_url = "{model.url}/v1"\nauth = "none"\n'
        + tables
        + '[[routes]]\nmodels = ["*"]\nto = ["bench"]\nretries = 0\n',
        "utf-8",
    )
    command = [sys.executable, "-m", "streamkit", "serve", "--config", str(path), *options]
    with running(command, folder, "gateway", port=_served, environment=environment) as server:
        yield server


def _served(printed: str) -> int | None:
    found = re.search(r'"url": ?"http://127\.0\.0\.1:(\d+)"', printed)
    return int(found[1]) if found else None
