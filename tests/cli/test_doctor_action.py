"""The script of the action runs the doctor, writes a summary, a badge and the status, and fails unless the result is accepted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from streamkit.lab.mock import served_mock
from tests.docs.pages import ROOT
from tests.web.ports import free_port

ACTION = ROOT / "action" / "doctor"
CASES = {
    "clean": (None, "clean", 0, 0, "clean", "brightgreen"),
    "a repair, not accepted": ("id_repeated", "clean", 6, 6, "repairable", "yellow"),
    "a repair, accepted": ("id_repeated", "repairable", 0, 6, "repairable", "yellow"),
    "calls that cannot be told apart": ("index_missing", "repairable", 1, 1, "broken", "red"),
}


def checked(folder, **inputs):
    environment = os.environ | inputs | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "DOCTOR_DIALECT": "openai-chat", "DOCTOR_MODEL": "demo",
        "GITHUB_OUTPUT": str(folder / "output"), "GITHUB_STEP_SUMMARY": str(folder / "summary"),
    }  # fmt: skip
    command = ["bash", str(ACTION / "check.sh")]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("quirk", "accept", "exit_status", "status", "verdict", "colour"), CASES.values(), ids=CASES)
def test_the_script_gates_a_server(quirk, accept, exit_status, status, verdict, colour, tmp_path):
    with served_mock(dialect="openai-chat", quirk=quirk or ()) as mock:
        done = checked(tmp_path, DOCTOR_URL=mock.url, DOCTOR_ACCEPT=accept)
    assert done.returncode == exit_status, done.stderr
    assert (tmp_path / "output").read_text() == f"status={status}\n"
    assert f": {verdict}" in (tmp_path / "summary").read_text()
    badge = json.loads((tmp_path / "doctor-badge.json").read_text())
    assert badge == {"schemaVersion": 1, "label": "streamkit doctor", "message": verdict, "color": colour}


def test_the_script_waits_for_a_server_that_is_starting(tmp_path):
    port = free_port()
    mock = f"sleep 1; exec {sys.executable} -m streamkit mock --port {port} --dialect openai-chat --tokens-per-s 0"
    with subprocess.Popen(["bash", "-c", mock], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        done = checked(tmp_path, DOCTOR_URL=f"http://127.0.0.1:{port}/v1", DOCTOR_WAIT_SECONDS="60")
        server.terminate()
    assert done.returncode == 0, done.stderr


def test_the_action_passes_each_input_on():
    action = yaml.safe_load((ACTION / "action.yml").read_text())
    passed = action["runs"]["steps"][-1]["env"]
    assert {f"DOCTOR_{name.upper().replace('-', '_')}" for name in action["inputs"]} - set(passed) == {"DOCTOR_VERSION"}
    script = (ACTION / "check.sh").read_text()
    assert all(name in script for name in passed)
