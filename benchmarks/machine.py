"""On what a run was made: without it no figure means anything."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from subprocess import CalledProcessError, run
from typing import Any

PACKAGES = ("orjson", "attrs", "aiohttp")
ROOT = Path(__file__).resolve().parents[1]


def machine() -> dict[str, Any]:
    """The processor and its load, the versions that matter, the commit, and when."""
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "packages": {name: version(name) for name in PACKAGES},
        "commit": commit(),
        "load_1_min": round(os.getloadavg()[0], 2),
        "when": datetime.now(UTC).isoformat(timespec="minutes"),
    }


def processor() -> str:
    """As the kernel names it, or the architecture where it does not."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def commit() -> str:
    """The short hash of the commit, with a plus where the tree differs from it; empty without git."""
    try:
        found = run(
            ["git", "describe", "--always", "--dirty=+", "--abbrev=9"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, CalledProcessError):
        return ""
    return found.stdout.strip()
