"""Run a fast part of the tests under each version of Python that the classifiers name, in an environment of its own.

python tools/versions.py                  # those in pyproject.toml, but for this interpreter's own
python tools/versions.py 3.13             # one

A version that is not on this machine is told and passed over. It is looked for on the path, and among those of pyenv.
The environments are kept: .venv-3.12, .venv-3.13.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: What depends on the version most: asyncio's timers, cancellation and processes, regular expressions, JSON.
FAST = [
    "tests/framing", "tests/testing", "tests/test_pipeline.py", "tests/translation/test_bodies.py", "tests/test_detect.py",
    "tests/test_policy.py", "tests/text/test_printable.py", "tests/tool_calls/test_accumulate.py",
    "tests/tool_calls/test_check.py",
    "tests/tool_calls/test_schema.py", "tests/in_text/test_thinking.py", "tests/web/test_source.py", "tests/web/test_reply.py",
    "tests/web/test_relay.py", "tests/web/test_exchange.py", "tests/web/test_hosts.py", "tests/web/upstream",
    "tests/gateway/test_app.py", "tests/gateway/test_connections.py", "tests/gateway/test_cancel.py",
    "tests/gateway/test_serve.py",
]  # fmt: skip


def named() -> list[str]:
    """The versions that the classifiers name."""
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["classifiers"]
    found = (re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", line) for line in classifiers)
    return [match[1] for match in found if match]


def interpreter(version: str) -> str | None:
    """A program that is this version of Python."""
    return next((program for program in _candidates(version) if _is(program, version)), None)


def _candidates(version: str) -> Iterator[str]:
    yield f"python{version}"
    root = os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv"
    yield from map(str, sorted(Path(root, "versions").glob(f"{version}.*/bin/python")))


def _is(program: str, version: str) -> bool:
    said = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run([program, "-c", said], capture_output=True, check=False, text=True)
    except OSError:
        return False
    return done.stdout.strip() == version


def environment(version: str, program: str) -> Path:
    """Its interpreter with everything that the tests need; made where it is not there, or older than pyproject.toml."""
    folder = ROOT / f".venv-{version}"
    done = folder / ".done"
    if not done.exists() or done.stat().st_mtime < (ROOT / "pyproject.toml").stat().st_mtime:
        subprocess.run([program, "-m", "venv", folder], check=True)
        install = ["-m", "pip", "install", "--quiet", "--editable", ".[dev]"]
        subprocess.run([folder / "bin" / "python", *install], check=True, cwd=ROOT)
        done.touch()
    return folder / "bin" / "python"


def main(versions: list[str]) -> int:
    """0 if no version failed."""
    own = "{}.{}".format(*sys.version_info[:2])
    failed = []
    for version in versions or [version for version in named() if version != own]:
        program = interpreter(version)
        if program is None:
            print(f"Python {version}: not on this machine, not tried", flush=True)
            continue
        print(f"Python {version}", flush=True)
        tests = ["-m", "pytest", "-q", "-n", os.environ.get("WORKERS", "2"), "-m", "not exhaustive", *FAST]
        if subprocess.run([environment(version, program), *tests], check=False, cwd=ROOT).returncode:
            failed.append(version)
    if failed:
        print(f"failed under Python {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
