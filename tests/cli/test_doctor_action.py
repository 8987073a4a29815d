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

ACTION = ROOT / "action" / "doctor"
CASES = {
    "clean": (None, "clean", 0, 0, "clean", "brightgreen"),
    "a repair, not accepted": ("index_missing", "clean", 6, 6, "repairable", "yellow"),
    "a repair, accepted": ("index_missing", "repairable", 0, 6, "repairable", "yellow"),
}


@pytest.mark.parametrize(("quirk", "accept", "exit_status", "status", "verdict", "colour"), CASES.values(), ids=CASES)
def test_the_script_gates_a_server(quirk, accept, exit_status, status, verdict, colour, tmp_path):
    with served_mock(dialect="openai-chat", quirk=quirk or ()) as mock:
        done = subprocess.run(
            ["bash", str(ACTION / "check.sh")], cwd=tmp_path, capture_output=True, text=True, check=False,
            env=os.environ | {
                "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "DOCTOR_URL": mock.url,
                "DOCTOR_DIALECT": "openai-chat", "DOCTOR_MODEL": "demo", "DOCTOR_ACCEPT": accept,
                "GITHUB_OUTPUT": str(tmp_path / "output"), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
            },
        )  # fmt: skip
    assert done.returncode == exit_status, done.stderr
    assert (tmp_path / "output").read_text() == f"status={status}\n"
    assert f": {verdict}" in (tmp_path / "summary").read_text()
    badge = json.loads((tmp_path / "doctor-badge.json").read_text())
    assert badge == {"schemaVersion": 1, "label": "streamkit doctor", "message": verdict, "color": colour}


def test_the_action_passes_each_input_on():
    action = yaml.safe_load((ACTION / "action.yml").read_text())
    passed = action["runs"]["steps"][-1]["env"]
    assert {f"DOCTOR_{name.upper().replace('-', '_')}" for name in action["inputs"]} - set(passed) == {"DOCTOR_VERSION"}
    script = (ACTION / "check.sh").read_text()
    assert all(name in script for name in passed)
