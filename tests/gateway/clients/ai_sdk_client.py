"""The AI SDK for JavaScript with its OpenAI and Anthropic providers, as a program that Node runs: ``ai_sdk/client.mjs``.

Its packages are installed beside the program when they are first asked for, at the versions that its ``package.json`` pins,
and stay there. Without Node, npm or a registry the tests that ask are skipped with the reason.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests import npm

FOLDER: Final = Path(__file__).parent / "ai_sdk"
#: Below the time that a test has.
INSTALL_S: Final = 90
RUN_S: Final = 60


def run(scenarios: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What came of each scenario: its ``steps`` and its ``errors``."""
    npm.installed(FOLDER, "the AI SDK", within_s=INSTALL_S)
    command = ["node", str(FOLDER / "client.mjs"), json.dumps(scenarios)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_S, check=False, env=environment())
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def environment() -> dict[str, str]:
    """Without proxies, since the gateway is on loopback."""
    return {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
