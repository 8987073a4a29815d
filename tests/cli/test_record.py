"""``streamkit record`` as a process: it says where it listens and what it recorded, and ends with its files closed."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import socket
import subprocess
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest
from attrs import evolve

from streamkit.cli.commands import parser
from streamkit.cli.record import line_of
from streamkit.errors import UsageError
from streamkit.lab.recorder import Exchanged
from streamkit.lab.recording import read_recording
from tests.cli.command import COMMAND

EXCHANGED = Exchanged(
    method="POST",
    path="/v1/x",
    status=200,
    reads=3,
    bytes=40,
    seconds=1.2345,
    end="whole",
    file=Path("/a/b.stream.jsonl"),
    file_end="whole",
)


def test_a_line_says_what_became_of_an_exchange():
    assert line_of(EXCHANGED) == "200 POST /v1/x: 3 reads, 40 bytes, 1234 ms, whole; b.stream.jsonl"
    lost = Exchanged(
        method="GET", path="/", status=None, reads=0, bytes=0, seconds=0, end="unreachable", file=None, file_end=""
    )
    assert line_of(evolve(EXCHANGED, file_end="withheld")).endswith("whole; b.stream.jsonl (withheld)")
    assert line_of(lost) == "--- GET /: 0 reads, 0 bytes, 0 ms, unreachable; not recorded"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--to", "api.example.com", "--dir", "x"], "is not a provider's address"),
        (["--to", "https://a.example", "--dir", "/proc/nowhere"], "can't be made"),
        (["--to", "https://a.example", "--dir", "x", "--max-file-bytes", "1"], "at least 4096"),
    ],
)
def test_what_can_not_be_is_refused(tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    options = parser().parse_args(["record", *arguments])
    with pytest.raises(UsageError, match=words):
        asyncio.run(options.run(options))
    assert list(tmp_path.iterdir()) == []


@contextmanager
def provider(go: threading.Event):
    """Answers one request with two pieces of a stream, and with the rest once it may."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 27\r\n\r\n")
                connection.sendall(b"data: 1\n\n")
                go.wait(30)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        go.set()
        thread.join(30)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("number", "ending"), [(signal.SIGTERM, "shut_down"), (signal.SIGINT, "shut_down"), (signal.SIGKILL, "cut")]
)
def test_a_file_can_be_read_however_the_process_ends(tmp_path, number, ending):
    kept, go = tmp_path / "kept", threading.Event()
    with provider(go) as url:
        arguments = [*COMMAND, "record", "--to", url, "--dir", str(kept), "--port", "0"]
        with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            said = process.stdout.readline().decode()
            host, port = re.search(r"use http://([\d.]+):(\d+) ", said).groups()
            with socket.create_connection((host, int(port))) as client:
                client.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\n{}")
                came = b""
                while b"data: 1" not in came:
                    came += client.recv(65536)
                while not any(b"data: 1" in path.read_bytes() for path in kept.iterdir()):
                    threading.Event().wait(0.01)
                process.send_signal(number)
                process.wait(30)
                printed, warned = process.stdout.read().decode(), process.stderr.read().decode()
    (path,) = kept.iterdir()
    found = read_recording(path)
    assert (found.ending, [read.data for read in found.reads]) == (ending, [b"data: 1\n\n"])
    assert json.loads(found.request.body) == {}
    assert warned == ""
    if number is not signal.SIGKILL:
        assert process.returncode == 0
        assert "1 reads, 9 bytes" in printed
        assert printed.endswith(f"shut_down; {path.name}\n")
