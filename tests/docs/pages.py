"""Run the examples of a documentation page, in the order in which a reader meets them.

A ```python block is executed; the blocks of a page share one namespace. A block whose first line is ``# name.py`` is also
written to that file, for the blocks and commands after it. A block behind ``<!-- fragment -->`` is only compiled. In a
```console block each ``$`` line of a program in ``PROGRAMS`` is run; the lines below it are what it must print, where a line
``…`` stands for any lines, and ``# exit status 3`` behind the command says how it must end.

A block behind ``<!-- from FILE -->`` shows parts of a file of this repository and is not run: they stand in the file as they are
and in that order; a line ``…`` stands for what is left out.

A page runs in a folder of its own, which has the bundled recording as ``recording.sse`` and copies of ``examples/``.
``pip install --editable`` of one does what its entry points need, and asks no network.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from attrs import frozen

from tests.distributions import install

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "streamkit" / "cli" / "demo" / "two_calls.sse"
EXAMPLES = sorted(path for path in (ROOT / "examples").iterdir() if path.is_dir())
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(
    r"^(?:<!-- (?:(fragment)|from (\S+)) -->\n+)?```(python|console|toml)\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
FILE = re.compile(r"# (\w+\.py)\n")
PROGRAMS = {"streamkit", "python", "pytest", "mypy", "head"}
INSTALL = "pip install --editable "


@frozen
class Block:
    page: Path
    line: int
    language: str
    text: str
    fragment: bool
    source: str | None  #: the file of this repository that it shows

    @property
    def file(self) -> str | None:
        found = FILE.match(self.text)
        return found[1] if found else None

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path) -> list[Block]:
    text = page.read_text("utf-8")
    return [
        Block(page, text.count("\n", 0, found.start(4)), found[3], found[4], bool(found[1]), found[2])
        for found in BLOCK.finditer(text)
    ]


def write_files(page: Path, folder: Path) -> None:
    """The recording, and the last version of each file that the page writes."""
    (folder / "recording.sse").write_bytes(DEMO.read_bytes())
    for block in blocks(page):
        if block.file and not block.fragment and not block.source:
            (folder / block.file).write_text(block.text, "utf-8")


def run(page: Path, folder: Path, *, console: bool = True) -> dict[str, Any]:
    """Run a page in ``folder``, the current one, with or without its commands; returns what its blocks defined."""
    (folder / "recording.sse").write_bytes(DEMO.read_bytes())
    for project in EXAMPLES:
        shutil.copytree(project, folder / project.name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    namespace: dict[str, Any] = {"__name__": "example"}
    for block in blocks(page):
        if block.language == "console":
            if console:
                run_console(block, folder)
        elif block.source:
            check_parts(block, (ROOT / block.source).read_text("utf-8"))
        elif block.language == "toml":
            tomllib.loads(block.text)
        elif block.fragment:
            compile(block.text, str(block), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        else:
            if block.file:
                (folder / block.file).write_text(block.text, "utf-8")
                sys.modules.pop(Path(block.file).stem, None)  # an earlier version of it
            exec(compile(block.text, str(block), "exec"), namespace)
    return namespace


def check_parts(block: Block, source: str) -> None:
    """What a block shows of a file is there, part by part."""
    at = 0
    for part in re.split(r"^ *(?:# )?…\n", block.text, flags=re.MULTILINE):
        found = source.find(part.strip("\n"), at)
        assert found >= 0, f"{block}: {block.source} has no\n{part}"
        at = found + len(part.strip("\n"))


def commands(block: Block) -> list[tuple[str, str]]:
    """The commands of a console block that can be run here, with what they must print."""
    found = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block.text, re.MULTILINE)
    return [
        (command, output)
        for command, output in found
        if (command.split()[0] in PROGRAMS or command.startswith(INSTALL))
        and "…" not in command
        and not command.endswith("&")
    ]


def run_console(block: Block, folder: Path) -> None:
    for command, output in commands(block):
        if command.startswith(INSTALL):
            install(folder / command.removeprefix(INSTALL), folder / "site")
            continue
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command], cwd=folder, env=environment(folder), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8", timeout=100, check=False,
        )  # fmt: skip
        status = re.search(r"# exit status (\d+)$", command)
        assert done.returncode == (int(status[1]) if status else 0), f"{block}: $ {command}\n{done.stdout}"
        if output.strip():
            assert re.search(pattern(output), done.stdout, re.MULTILINE), f"{block}: $ {command}\n{done.stdout}"


def pattern(output: str) -> str:
    """What a command must print: a line `…` is any lines, and `…` at the end of a line any rest of it."""
    lines = [r"(?:.*\n)*?" if line.strip() == "…" else one_line(line) for line in output.strip("\n").split("\n")]
    return r"\A\s*" + "".join(lines) + r"\s*\Z"


def one_line(line: str) -> str:
    line = line.rstrip()
    return (re.escape(line[:-1]) + ".*" if line.endswith("…") else re.escape(line)) + r"[ \t]*\n"


def environment(folder: Path) -> dict[str, str]:
    """A plain terminal of 80 columns, with the commands that this interpreter has and what was installed in ``folder``.

    Without ``CI`` and ``BUILD_NUMBER``: where they are set, pytest does not shorten its summary.
    """
    foreign = ("PYTEST", "COV_", "COVERAGE", "CI", "BUILD_NUMBER")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    if (site := folder / "site").exists():
        kept["PYTHONPATH"] = os.pathsep.join(map(str, [site, *(folder / project.name for project in EXAMPLES)]))
    return kept | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
        "COLUMNS": "80",
        "NO_COLOR": "1",
        "PYTHONUTF8": "1",
        "PYTHONDONTWRITEBYTECODE": "1",  # files are written twice within a second
        "MYPYPATH": str(ROOT),  # mypy does not follow an editable installation
        "MYPY_CACHE_DIR": str(ROOT / ".mypy_cache" / "docs"),
    }
