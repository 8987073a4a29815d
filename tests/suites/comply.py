"""llm-comply, a tester of the APIs of language models, and a gateway in front of the demo model, for each dialect both know."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any, Final

import pytest
from attrs import frozen

from tests.gateway import processes

VERSION: Final = "0.5.0"
FOLDER: Final = Path(__file__).resolve().parents[2] / ".venvs" / "llm-comply"
INSTALL_S: Final = 300
RUN_S: Final = 300
#: It does not know ``response.reasoning_text.delta``, an event of OpenAI's: Responses is asked of a model that does not think.
#: Its formats that are dialects of clients here: the dialect, the model, by whose name it chooses tests, how its base URL ends.
FORMATS: Final = {
    "openai-chat": ("openai-chat", "gpt-5", "/v1"),
    "open-responses": ("openai-responses", "gpt-5-nano", "/v1"),
    "anthropic": ("anthropic", "claude-opus-4-5", "/v1"),
    "google-genai": ("gemini", "gemini-2.5-pro", ""),
    "google-interactions": ("gemini-interactions", "gemini-2.5-pro", ""),
}
CONFIG: Final = """\
[server]
port = 0
private = "off"
[upstreams.demo]
dialect = "openai-chat"
base_url = "%s/v1"
auth = "none"
[[routes]]
models = ["gpt-5-nano"]
to = [{ upstream = "demo", model = "demo" }]
[[routes]]
models = ["*"]
to = [{ upstream = "demo", model = "demo-reasoning" }]
"""


@frozen
class Verdict:
    dialect: str
    passed: int
    failed: dict[str, list[str]]  #: what it complains of, by test
    warned: dict[str, list[str]]


async def run(folder: Path, *formats: str) -> list[Verdict]:
    """Its verdict on each of these formats, by default on all. ``folder`` is for configurations and logs."""
    program = installed()
    demo, front = folder / "demo", folder / "front"
    for each in (demo, front):
        each.mkdir()
    config = front / "gateway.toml"
    async with processes.serving(demo, "--port", "0") as upstream:
        config.write_text(CONFIG % upstream.url, "utf-8")
        async with processes.serving(front, "--config", str(config)) as gateway:
            return [await asyncio.to_thread(judged, program, gateway.url, name) for name in formats or FORMATS]


def judged(program: Path, url: str, name: str) -> Verdict:
    dialect, model, version = FORMATS[name]
    command = [program, "--format", name, "-u", url + version, "-k", "some-key", "-m", model, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_S, check=False)
    results: list[dict[str, Any]] = json.loads(done.stdout)["results"]
    failed = {each["id"]: each["errors"] for each in results if each["status"] == "failed"}
    warned = {each["id"]: each["warnings"] for each in results if each.get("warnings")}
    return Verdict(dialect, sum(each["status"] == "passed" for each in results), failed, warned)


def installed() -> Path:
    """Its program, in an environment of its own; skips the test that asks where PyPI can't be reached."""
    program = FOLDER / "bin" / "llm-comply"
    if not program.exists():
        venv.create(FOLDER, with_pip=True, symlinks=sys.platform != "win32")
        command = [FOLDER / "bin" / "python", "-m", "pip", "install", "--quiet", f"llm-comply=={VERSION}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_S, check=False)
        if done.returncode:
            pytest.skip(f"llm-comply could not be installed: {done.stderr.strip().splitlines()[-1:]}")
    return program
