"""Runs the real command in a process of its own, as a user does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

DEMO = Path(__file__).parents[2] / "streamkit" / "cli" / "demo" / "two_calls.sse"
COMMAND = [sys.executable, "-m", "streamkit"]


def run(*arguments: str, stdin: bytes = b"", **variables: str) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "PYTHONWARNINGS": "error", **variables}
    return subprocess.run(
        [*COMMAND, *arguments], input=stdin, capture_output=True, timeout=60, check=False, env=environment
    )


def start(*arguments: str, **options) -> subprocess.Popen[bytes]:
    """A command that is still running: unbuffered pipes on both sides."""
    return subprocess.Popen(
        [*COMMAND, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        **options,
    )
