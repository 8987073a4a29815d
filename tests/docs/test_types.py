"""The examples of README.md and docs/ type-check: mypy and pyright each read all of them at once, as strictly as users may.

pyright reads ``tests/typing``, too, where a needless ``type: ignore`` is an error: it reports the wrong uses that mypy reports.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, blocks, environment

#: mypy follows no import into these: they take a minute where there is no cache, and pyright reads them in seconds.
SKIPPED = "anthropic.*,openai.*,httpx.*,httpx2.*,opentelemetry.*,urllib3.*"
CACHE = ROOT / ".mypy_cache" / "examples"  # of its own: each set of options spoils the cache of another
MYPY = f"""\
[mypy]
strict = True
disable_error_code = no-redef
[mypy-streamkit.*]
follow_imports = silent
[mypy-{SKIPPED}]
follow_imports = skip
"""
PYRIGHT = {
    "typeCheckingMode": "standard",
    "enableTypeIgnoreComments": True,
    "reportUnnecessaryTypeIgnoreComment": "error",
    "extraPaths": [str(ROOT)],
}


@pytest.fixture(scope="module")
def examples(tmp_path_factory) -> Path:
    """A folder with a module for each page and for each file that a page writes; lines have the numbers of the page."""
    folder = tmp_path_factory.mktemp("examples")
    modules: dict[str, str] = {}
    for page in PAGES:
        for block in blocks(page):
            if block.language == "python" and not block.fragment and not block.source:
                usual = "_".join(page.relative_to(ROOT).with_suffix("").parts).replace("-", "_") + "_page.py"
                name = block.file or usual
                before = "" if block.file else modules.get(name, "")  # the last version of a file counts
                modules[name] = before + "\n" * (block.line - before.count("\n")) + block.text
    for name, text in modules.items():
        (folder / name).write_text(text, "utf-8")
    return folder


def check(folder: Path, *command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, env=environment(folder) | {"MYPY_CACHE_DIR": str(CACHE)},
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_examples_type_check_with_mypy(examples):
    (examples / "mypy.ini").write_text(MYPY, "utf-8")
    check(examples, "mypy", "--config-file", "mypy.ini", *(path.name for path in sorted(examples.glob("*.py"))))


def test_the_examples_type_check_with_pyright(examples):
    settings = PYRIGHT | {"include": [str(examples), str(ROOT / "tests" / "typing")]}
    (examples / "pyrightconfig.json").write_text(json.dumps(settings), "utf-8")
    check(examples, "basedpyright", "--pythonpath", sys.executable, "--level", "error")
