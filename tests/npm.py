"""Packages of npm that tests need: installed beside the ``package.json`` that pins them when they are first asked for, and kept.

Without Node, npm or a registry the tests that ask are skipped with the reason.
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest


@cache
def installed(folder: Path, what: str, *, within_s: float, building: tuple[str, ...] = ()) -> Path:
    """The ``node_modules`` of a folder, once the packages are there; skips the test that asks where they can't be.

    ``what`` is what they are called in a reason. No package runs scripts of its own, but those in ``building``.
    """
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip(f"{what} needs node and npm")
    modules, wanted = folder / "node_modules", (folder / "package.json").read_text("utf-8")
    modules.mkdir(exist_ok=True)
    with (modules / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run in several processes
        there = modules / ".installed"
        if not there.exists() or there.read_text("utf-8") != wanted:
            _npm(folder, what, ["install", "--no-package-lock", "--ignore-scripts", "--fetch-retries=0"], within_s)
            if building:
                _npm(folder, what, ["rebuild", *building], within_s)
            there.write_text(wanted, "utf-8")
    return modules


def _npm(folder: Path, what: str, arguments: Sequence[str], within_s: float) -> None:
    command = ["npm", *arguments, "--prefix", str(folder), "--no-audit", "--no-fund"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=within_s, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip(f"{what} could not be installed within {within_s} s")
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.startswith("npm error")]
        pytest.skip(f"{what} could not be installed: {(said or ['npm does not say why'])[0]}")
