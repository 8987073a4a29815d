"""Options that several commands have: what they refuse."""

from __future__ import annotations

import pytest

from tests.cli.command import DEMO, run

SERVING = [
    ("mock",),
    ("serve",),
    ("inspect", "--web", str(DEMO)),
    ("replay", str(DEMO)),
    ("record", "--to", "http://127.0.0.1:1", "--dir", "recordings"),
]


@pytest.mark.parametrize("command", SERVING, ids=lambda command: command[0])
@pytest.mark.parametrize("port", ["70000", "-1", "x", "9" * 5000])
def test_a_port_that_does_not_exist_is_refused(command, port):
    done = run(*command, f"--port={port}")
    assert done.returncode == 2
    assert b"argument --port: must be 0 to 65535, not " in done.stderr


@pytest.mark.parametrize("command", SERVING[3:], ids=lambda command: command[0])
def test_a_host_that_cannot_be_a_name_is_refused(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run(*command, "--host", "a..b", "--port", "0")
    assert done.returncode == 2
    assert done.stderr.startswith(b"streamkit: cannot listen on http://a..b:0 for ")
    assert done.stderr.endswith(b": the host is not a valid name\n")
