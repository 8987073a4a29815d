"""The example that tests an agent on recordings: its tests pass without a network, and see an agent that asks otherwise."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from streamkit.lab.recording import SUFFIX, read_recording

PROJECT = Path(__file__).parents[2] / "examples" / "agent-tests"
#: Connections to anything but loopback fail.
OFFLINE = """
import socket

connect = socket.socket.connect


def only_loopback(self, address):
    assert address[0] == "127.0.0.1", address
    return connect(self, address)


socket.socket.connect = only_loopback
"""


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    left_out = [f"-pno:{name}" for name in ("cacheprovider", "xdist", "langsmith_plugin")]
    command = [sys.executable, "-m", "pytest", "-q", *left_out, *options]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=110, check=False
    )


@pytest.fixture
def copy(tmp_path):
    folder = tmp_path / "agent-tests"
    shutil.copytree(PROJECT, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "conftest.py").write_text(OFFLINE, "utf-8")
    return folder


def test_its_tests_pass_without_a_network(copy):
    done = run(copy)
    assert (done.returncode, done.stdout.splitlines()[-1][:8]) == (0, "2 passed"), done.stdout


@pytest.mark.exhaustive  # the SDK alone takes a second to import
def test_its_tests_see_an_agent_that_asks_otherwise(copy):
    agent = copy / "agent.py"
    agent.write_text(
        agent.read_text("utf-8").replace('{TEMPERATURES[city]} °C"', '{TEMPERATURES[city]} degrees"'), "utf-8"
    )
    done = run(copy)
    assert done.returncode == 1, done.stdout
    assert "messages[2].content: '-3 degrees' in the request, '-3 °C' in the recording (recordings/oslo/" in done.stdout


def test_its_recordings_are_of_the_demo_model_and_hold_no_key():
    files = sorted(PROJECT.rglob(f"*{SUFFIX}"))
    assert len(files) == 3
    for file in files:
        found = read_recording(file)
        assert found.request is not None
        assert found.ending == "whole"
        assert b'"model":"demo' in (found.request.body or b"").replace(b'": "', b'":"')
        assert "authorization" not in file.read_text("utf-8").lower()
