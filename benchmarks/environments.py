"""A virtual environment for each peer, pinned, under ``benchmarks/.peers``: ``python -m benchmarks.environments`` makes them.

A peer that can't be installed is named with its error and left out; the others are measured. Nothing here is needed for
streamkit's own figures.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from attrs import frozen

from benchmarks.machine import ROOT
from benchmarks.progress import bar

FOLDER = ROOT / "benchmarks" / ".peers"
#: In every environment: the floor, and the framing of peers that have none of their own.
ORJSON = "orjson==3.13.0"
INSTALL_SECONDS = 900


@frozen
class Environment:
    """``requirements`` are pip's, or npm's where ``node``; ``version`` is that of the first."""

    name: str
    requirements: tuple[str, ...]
    node: bool = False

    @property
    def folder(self) -> Path:
        return FOLDER / self.name

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def done(self) -> Path:
        """There once the environment is whole; holds what is in it."""
        return self.folder / "installed.json"

    @property
    def ready(self) -> bool:
        return self.done.exists() and json.loads(self.done.read_text("utf-8")) == list(self.requirements)


ENVIRONMENTS = (
    Environment("openai", ("openai==3.54.0", ORJSON)),
    Environment("anthropic", ("anthropic==2.12.0", ORJSON)),
    Environment("httpx-sse", ("httpx-sse==0.4.3", "httpx==0.28.1", ORJSON)),
    Environment("pydantic-ai", ("pydantic-ai-slim[openai]==2.68.0", ORJSON)),
    # Newer ones ask for a certifi that was not to be had when this was written.
    Environment("langchain", ("langchain-openai==1.7.3", "langchain-core==1.7.2", ORJSON)),
    # Newer ones ask for the same certifi; without mcp its completions fail at the first import.
    Environment("litellm", ("litellm==1.106.2", "mcp==2.3.0", ORJSON)),
    Environment("any-llm", ("any-llm-sdk[openai]==1.40.2", ORJSON)),
    Environment("llm-rosetta", ("llm-rosetta==0.13.0", ORJSON)),
    Environment("llm-babel", ("llm-babel==0.3.0", ORJSON)),
    Environment("martian-linguafranca", ("martian-linguafranca==0.3.15", ORJSON)),
    Environment("partial-json", ("partial-json-parser==0.2.1.1.post7", "jiter==0.19.0", ORJSON)),
    Environment("node", ("ai@7.0.173", "@ai-sdk/openai@4.0.118", "eventsource-parser@4.1.3"), node=True),
)
BY_NAME = {environment.name: environment for environment in ENVIRONMENTS}


class CannotInstall(Exception):
    """With the installer's last word."""


def install(environment: Environment) -> None:
    """Make an environment anew, unless it is there as it should be. Raises CannotInstall."""
    if environment.ready:
        return
    shutil.rmtree(environment.folder, ignore_errors=True)
    environment.folder.mkdir(parents=True)
    if environment.node:
        npm = shutil.which("npm")
        if npm is None:
            raise CannotInstall("npm is not installed")
        (environment.folder / "package.json").write_text('{"private": true, "type": "module"}\n', "utf-8")
        run([npm, "install", "--no-audit", "--no-fund", "--save-exact", *environment.requirements], environment.folder)
    else:
        run([sys.executable, "-m", "venv", str(environment.folder)], FOLDER)
        pip = [str(environment.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        run([*pip, *environment.requirements], FOLDER)
    environment.done.write_text(json.dumps(environment.requirements), "utf-8")


def run(command: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise CannotInstall(f"not installed within {INSTALL_SECONDS} s") from error
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith(("ERROR", "npm error"))] or lines
        raise CannotInstall(errors[-1] if errors else f"exit status {done.returncode}")


def main(names: Iterable[str]) -> int:
    wanted = [environment for environment in ENVIRONMENTS if not names or environment.name in set(names)]
    failed = 0
    with bar("installing peers", len(wanted)) as progress:
        for environment in wanted:
            try:
                install(environment)
            except CannotInstall as error:
                failed += 1
                progress.write(f"{environment.name}: {error}")
            progress.update()
    print(f"{len(wanted) - failed} of {len(wanted)} peers are ready in {FOLDER.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
