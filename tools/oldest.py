"""Run the fast tests with each dependency at the lower bound that pyproject.toml states: ``make test-oldest``.

The environment is .venv-oldest. uv (from PyPI) chooses the versions, with its resolution ``lowest-direct``: streamkit's own
dependencies at their lowest, their dependencies at their newest. The chosen versions are printed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from tools.versions import FAST

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / ".venv-oldest"
PYTHON = FOLDER / "bin" / "python"
NOT_IN_DEV = {"atheris", "mkdocs-material", "mkdocstrings", "mutmut", "streamkit-llm", "zensical"}


def bounds() -> dict[str, str]:
    """Return the lower bound of each dependency, by its name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = [*project["dependencies"], *(line for lines in project["optional-dependencies"].values() for line in lines)]
    found = (re.match(r"([\w.-]+)(?:\[[\w,]+\])?>=([\w.]+)", line) for line in named)
    return {match[1]: match[2] for match in found if match}


def install() -> None:
    """Make the environment where there is none, or where it is older than pyproject.toml."""
    done = FOLDER / ".done"
    if done.exists() and done.stat().st_mtime > (ROOT / "pyproject.toml").stat().st_mtime:
        return
    subprocess.run([sys.executable, "-m", "venv", "--clear", FOLDER], check=True)
    subprocess.run([PYTHON, "-m", "pip", "install", "--quiet", "uv"], check=True)
    command = [FOLDER / "bin" / "uv", "pip", "install", "--quiet", "--python", PYTHON, "--resolution", "lowest-direct"]
    subprocess.run([*command, "--editable", f"{ROOT}[dev]"], check=True)
    done.touch()


def main(tests: list[str]) -> int:
    """0 if no test failed."""
    install()
    code = "import sys; from importlib.metadata import version; print(*(version(n) for n in sys.argv[1:]))"
    wanted = {name: bound for name, bound in bounds().items() if name not in NOT_IN_DEV}
    shown = subprocess.run([PYTHON, "-c", code, *wanted], check=True, capture_output=True, text=True).stdout.split()
    for name, bound, version in zip(wanted, wanted.values(), shown, strict=True):
        higher = re.sub(r"(\.0)+$", "", version) != re.sub(r"(\.0)+$", "", bound)
        print(
            f"{name} {version}{f': the bound in pyproject.toml is {bound}, which cannot be tested' if higher else ''}"
        )
    command = [PYTHON, "-m", "pytest", "-q", "-n", os.environ.get("WORKERS", "2"), "-m", "not exhaustive"]
    return subprocess.run([*command, *(tests or FAST)], check=False, cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
