"""Measure a tree of streamkit, so that two trees can be compared: ``python tools/house.py [PATH] > after.txt``.

For each package: lines, files, functions, their cyclomatic complexity (by radon), lines in runs of six or more equal lines and
the packages that it imports. Below: the names of classes and functions that several modules define, and the references of
the pages, comments and docstrings. A package is a folder below ``streamkit``; the modules at the top are ``(top level)``.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from pathlib import Path
from statistics import mean

from attrs import field, frozen
from radon.complexity import cc_visit_ast
from radon.visitors import Function

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

#: So many equal lines in a row count as duplicated.
EQUAL_LINES = 6
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@frozen(slots=False)
class Module:
    """One file of the package."""

    name: str  #: ``streamkit.web.reply``
    package: str  #: ``web``
    text: str = field(repr=False)

    @classmethod
    def read(cls, path: Path, root: Path) -> Module:
        below = path.relative_to(root)
        name = ".".join(part for part in below.with_suffix("").parts if part != "__init__")
        return cls(name, "/".join(below.parent.parts[1:]) or "(top level)", path.read_text("utf-8"))

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def complexities(self) -> list[int]:
        """The complexity of each function and method."""
        return [block.complexity for block in cc_visit_ast(self.tree) if isinstance(block, Function)]

    def imports(self) -> Iterator[str]:
        """The dotted names that the module imports: of ``from a import b`` both ``a.b`` and ``a``."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                yield node.module
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
            elif isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)

    def code(self) -> list[str]:
        """The lines that are compared, without indentation: no blank lines, comments, imports or lone punctuation."""
        imported = {
            line
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
        }
        lines = ((number, line.strip()) for number, line in enumerate(self.text.splitlines(), 1))
        return [line for n, line in lines if n not in imported and re.search(r"\w", line) and not line.startswith("#")]


def duplicated(modules: list[Module]) -> Counter[str]:
    """Count the lines of each package that are part of a run which the tree has twice or more."""
    places: dict[tuple[str, ...], list[tuple[Module, int]]] = defaultdict(list)
    for module in modules:
        code = module.code()
        for start in range(len(code) - EQUAL_LINES + 1):
            places[tuple(code[start : start + EQUAL_LINES])].append((module, start))
    lines = {
        (module.name, module.package, start + step)
        for found in places.values()
        if len(found) > 1
        for module, start in found
        for step in range(EQUAL_LINES)
    }
    return Counter(package for _, package, _ in lines)


def imported_packages(modules: list[Module]) -> dict[str, Counter[str]]:
    """Count for each package how many imports of its modules lead into each other package."""
    packages = {module.name: module.package for module in modules}
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for module in modules:
        for name in {name for name in module.imports() if name in packages}:
            if packages[name] != module.package:
                found[module.package][packages[name]] += 1
    return found


def shared_names(modules: list[Module]) -> Counter[str]:
    """Count for each name of a class or function at the top of a module how many modules define it; two at least."""
    names = Counter(
        name for module in modules for name in {node.name for node in module.tree.body if isinstance(node, DEFINITIONS)}
    )
    return Counter({name: count for name, count in names.items() if count > 1})


def report(root: Path, most: int) -> Iterator[str]:
    """Yield the lines of the table and of what stands below it."""
    modules = [Module.read(path, root) for path in sorted((root / "streamkit").rglob("*.py"))]
    equal, imports, names = duplicated(modules), imported_packages(modules), shared_names(modules)
    groups: dict[str, list[Module]] = defaultdict(list)
    for module in modules:
        groups[module.package].append(module)
        groups["all"].append(module)
    yield f"{'package':34} {'lines':>7} {'files':>6} {'functions':>9} {'mean':>6} {'max':>5} {'equal':>6}  imports from"
    for package in sorted(groups, key=lambda name: (name == "all", name)):
        found = groups[package]
        complexities = [value for module in found for value in module.complexities] or [0]
        lines = sum(len(module.text.splitlines()) for module in found)
        same = equal.total() if package == "all" else equal[package]
        others = ", ".join(f"{other} {count}" for other, count in sorted(imports[package].items()))
        yield (
            f"{package:34} {lines:7,} {len(found):6} {len(complexities):9,} {mean(complexities):6.2f} "
            f"{max(complexities):5} {same:6}  {others}"
        ).rstrip()
    yield f"\nnames that several modules define: {len(names)}; most: " + ", ".join(
        f"{name} {count}" for name, count in names.most_common(most)
    )
    cited = list(import_module("tools.references").references(root))
    lost = [str(reference) for reference in cited if reference.fault]
    of_docs = sum(reference.file.startswith("docs/") for reference in cited)
    yield f"references: {len(cited):,}, of the docs {of_docs:,}; lead nowhere: {len(lost)}"
    yield from lost


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("path", nargs="?", type=Path, default=ROOT, help="the checkout to measure; this one without it")
    parser.add_argument("--names", type=int, default=20, help="how many shared names to print")
    options = parser.parse_args()
    print(*report(options.path.resolve(), options.names), sep="\n")


if __name__ == "__main__":
    main()
