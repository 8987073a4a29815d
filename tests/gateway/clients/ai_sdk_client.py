"""The AI SDK for JavaScript with its OpenAI and Anthropic providers, as a program that Node runs: ``ai_sdk/client.mjs``.

Its packages are installed beside the program when they are first asked for, at the versions that its ``package.json`` pins,
and stay there. Without Node, npm or a registry the tests that ask are skipped with the reason.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

FOLDER: Final = Path(__file__).parent / "ai_sdk"
#: Below the time that a test has.
INSTALL_S: Final = 90
RUN_S: Final = 60


def run(scenarios: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What came of each scenario: its ``steps`` and its ``errors``."""
    command = [installed(), str(FOLDER / "client.mjs"), json.dumps(scenarios)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_S, check=False, env=environment())
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


@cache
def installed() -> str:
    """Where Node is, once the packages are there; skips the test that asks where they can't be."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("the AI SDK needs node and npm")
    modules, wanted = FOLDER / "node_modules", (FOLDER / "package.json").read_text("utf-8")
    modules.mkdir(exist_ok=True)
    with (modules / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run in several processes
        there = modules / ".installed"
        if not there.exists() or there.read_text("utf-8") != wanted:
            install(npm)
            there.write_text(wanted, "utf-8")
    return node


def install(npm: str) -> None:
    command = [npm, "install", "--prefix", str(FOLDER), "--no-package-lock", "--ignore-scripts", "--fetch-retries=0"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_S, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip(f"the AI SDK could not be installed within {INSTALL_S} s")
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.startswith("npm error")]
        pytest.skip(f"the AI SDK could not be installed: {(said or ['npm does not say why'])[0]}")


def environment() -> dict[str, str]:
    """Without proxies, since the gateway is on loopback."""
    return {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
