"""A real nginx in front of a port, with its default time-outs and its default buffering.

Debian's package: the installed one, or downloaded and unpacked into a folder, which needs no root. Nothing of its
configuration is set but where it listens, where it passes to, and where it may write; so a silent upstream ends in 504 after
60 s, and an answer is buffered unless it says ``X-Accel-Buffering: no``. Before 1.29 it asks by HTTP/1.0, to which one answers
without chunks; chunks that come all the same it hands on as they are.

Source: limits.md §1 (nginx), C10; quirks.md 122 to 126.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.web.ports import free_port

#: How long nginx may take to listen, and apt to bring it.
START_S, DOWNLOAD_S = 10.0, 60.0
TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
CONFIGURATION = """
daemon off;
master_process off;  # one process: no user to change to, so no root needed
pid {folder}/pid;
error_log stderr;
events {{ }}
http {{
  access_log off;
  {temporary}
  server {{
    listen 127.0.0.1:{port};
    location / {{ proxy_pass http://127.0.0.1:{upstream}; {directives} }}
  }}
}}
"""


def find_nginx(folder: Path) -> Path:
    """The program: installed, or unpacked under ``folder``. Skips the test, with the reason, where it can't be had."""
    installed = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
    if installed:
        return Path(installed)
    if not shutil.which("apt-get") or not shutil.which("dpkg"):
        pytest.skip("no nginx, and no apt-get to bring it")
    unpacked = folder / "usr" / "sbin" / "nginx"
    problem = "" if unpacked.exists() else _bring(folder)
    problem = problem or _run(unpacked, "-v", folder=folder)  # a library that it needs may be missing here
    if problem:
        pytest.skip(f"no nginx: {problem}")
    return unpacked


def _bring(folder: Path) -> str:
    """With the system's lists of packages, or with lists of our own where it has none. What went wrong, if anything."""
    if _run("apt-get", "download", "nginx", folder=folder):
        own = [f"-oDir::State={folder}/state", f"-oDir::Cache={folder}/cache"]
        for name in ("state/lists/partial", "cache/archives/partial"):
            (folder / name).mkdir(parents=True)
        problem = _run("apt-get", *own, "update", folder=folder)
        problem = problem or _run("apt-get", *own, "download", "nginx", folder=folder)
        if problem:
            return problem
    return _run("dpkg", "-x", next(folder.glob("nginx_*.deb")), folder, folder=folder)


def _run(*command: str | Path, folder: Path) -> str:
    """What went wrong, if anything."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=DOWNLOAD_S,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return f"{command[0]} said {(done.stderr or done.stdout).strip()[-200:]!r}" if done.returncode else ""


@contextmanager
def nginx(program: Path, upstream: int, folder: Path, *, directives: str = "") -> Iterator[str]:
    """Run it in front of the port ``upstream`` of 127.0.0.1; gives its URL. ``directives`` go into the location.

    Raises RuntimeError with nginx's own words if it does not start.
    """
    port = free_port()
    temporary = "".join(f"{name}_temp_path {folder}/{name}; " for name in TEMPORARY)
    text = CONFIGURATION.format(folder=folder, temporary=temporary, port=port, upstream=upstream, directives=directives)
    (folder / "nginx.conf").write_text(text, "utf-8")
    said = folder / "said"
    with said.open("wb") as log:
        command: list[str | Path] = [program, "-p", folder, "-c", folder / "nginx.conf", "-e", "stderr"]
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        _wait_for(port, process, said)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes], said: Path) -> None:
    give_up = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < give_up:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise RuntimeError(f"nginx does not listen: {said.read_text('utf-8', 'replace')[-500:]}")
