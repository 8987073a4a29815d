"""The tests that `make check` runs: those of what changed since a base, nearest first, and a core that every change passes.

    python tools/changed.py            # since the branch left main, with what is not committed
    python tools/changed.py v0.1.0     # since a tag, a branch or a commit

It prints arguments of pytest. Nearest to a module are the test files named after it (`tests/framing/test_sse.py`), then
those that import it: the ones that import least come first, since they are about little else. A module of a dialect brings
the files and the cases that bear the dialect's name.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: Every change passes these: what the vectors say, how the laws hold, how the layout holds.
CORE = (
    "tests/test_vectors.py",
    "tests/test_house.py",
    "tests/test_pipeline.py",
    "tests/laws/test_l1_chunk_invariance.py",
    "tests/laws/test_l3_no_invented_success.py",
    "tests/laws/test_l4_no_repair.py",
    "tests/laws/test_l7_prompt_close.py",
    "tests/docs/test_references.py",
    "tests/docs/test_reference.py",
)
#: No test of these is of one module; `make test` runs them.
WHOLE = ("tests/benchmarks/", "tests/clients/", "tests/gateway/agents/", "tests/gateway/clients/", "tests/suites/")
#: Test files at most, the nearest of all that are found.
MOST = 40
#: Seeded cases of a test at most, but for those that bear the name of a dialect that changed.
CASES = 10


def git(*arguments: str) -> list[str]:
    found = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S607
    return found.stdout.splitlines() if found.returncode == 0 else []


def changed_since(base: str | None) -> list[str]:
    """Files that differ from where the branch left ``base``, and files that git does not know yet."""
    for name in [base] if base else ["origin/main", "main", "HEAD~1"]:
        if start := git("merge-base", name, "HEAD"):
            return sorted({*git("diff", "--name-only", start[0]), *git("ls-files", "--others", "--exclude-standard")})
    if base:
        sys.exit(f"git knows no {base}")
    return []


@cache
def imports_of(path: Path) -> frozenset[str]:
    """The modules that a file names in its imports; of ``from a import b`` both ``a`` and ``a.b``."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(names)


@cache
def test_files() -> tuple[Path, ...]:
    found = (path for path in (ROOT / "tests").rglob("test_*.py"))
    return tuple(path for path in sorted(found) if not str(path.relative_to(ROOT)).startswith(WHOLE))


def width(path: Path) -> int:
    """How many modules of ours a test file imports."""
    return sum(name.startswith(("streamkit", "tests")) for name in imports_of(path))


def dialect_of(path: Path) -> str:
    """The folder's name of the dialect that a module belongs to; other folders there are rooms that dialects share."""
    parts = path.parts
    if parts[:2] != ("streamkit", "dialects") or len(parts) < 4:
        return ""
    package = ROOT.joinpath(*parts[:3], "__init__.py")
    return parts[2] if package.exists() and "DIALECT" in package.read_text("utf-8") else ""


def near(path: Path) -> Iterable[tuple[int, int, Path]]:
    """Test files that are about a file, with how far they are from it and how much else they are about."""
    if path.name.startswith("test_") and path.suffix == ".py":
        yield (0, 0, ROOT / path)
        return
    if path.suffix != ".py":
        return
    name = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
    folder, stem = path.parent.parts[1:], path.parent.name if path.stem == "__init__" else path.stem
    dialect = dialect_of(path)
    for test in test_files():
        about = test.relative_to(ROOT / "tests")
        is_named_after = about.stem == f"test_{stem}" and about.parent.parts in {folder, (*folder, stem)}
        if is_named_after or (dialect and dialect in test.stem):
            yield (0, width(test), test)
        elif name in imports_of(test):
            yield (1, width(test), test)


def chosen(changed: list[str]) -> tuple[list[Path], int]:
    """The nearest test files of what changed, and how many there are beyond them."""
    found: dict[Path, tuple[int, int]] = {}
    for each in changed:
        for distance, wide, test in near(Path(each)):
            if test.exists() and not str(test.relative_to(ROOT)).startswith(WHOLE):
                found[test] = min(found.get(test, (9, 0)), (distance, wide))
    ordered = sorted(found, key=lambda test: (found[test], test))
    return ordered[:MOST], len(ordered[MOST:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", nargs="?", help="a tag, a branch or a commit; main where none is named")
    changed = changed_since(parser.parse_args().base)
    tests, left_out = chosen(changed)
    print(
        f"{len(changed)} files changed: {len(tests)} test files beside the core, {left_out} left to `make test`",
        file=sys.stderr,
    )
    dialects = sorted({name.replace("_", "-") for each in changed if (name := dialect_of(Path(each)))})
    names = dict.fromkeys([*(str(test.relative_to(ROOT)) for test in tests), *CORE])
    print(f"--cases={CASES}", *(f"--about={name}" for name in dialects), *names)


if __name__ == "__main__":
    main()
