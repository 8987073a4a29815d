"""Measure the house: how large each package is, and where its order is broken.

python tools/house.py                      # a table of this checkout
python tools/house.py --json FILE          # and the same as JSON
python tools/house.py --compare FILE       # each figure beside that of an earlier --json
python tools/house.py --root DIR           # of another checkout
python tools/house.py --list parts         # the places behind a figure: parts, said, names, lines, docstrings, references
python tools/house.py --write              # docs/explanation/house.md: now beside what docs/explanation/house.json kept

A room is a package: a folder below ``streamkit``, and the modules at the top level taken together.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import statistics
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from importlib import import_module
from itertools import combinations
from pathlib import Path
from typing import Any

import attrs

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

PAGE = ROOT / "docs" / "explanation" / "house.md"
#: The figures of commit 8756551, before the packages were laid out anew.
KEPT = PAGE.with_suffix(".json")
HEAD = """\
<!-- Written by tools/house.py --write. -->
# The house in figures

How large each package is, and where its order is broken, as `python tools/house.py` counts it.
"Before" is commit 8756551, before the packages were laid out anew.
`python tools/house.py --list parts` prints the places behind a figure; so do `said`, `names`, `lines`, `docstrings` and
`references`.

- A class stands in several files when a base of it is in another file of the same folder and has no other heir. Those that
  are left read whole bodies: they derive from the decoder of streams, and stand in `response.py` as in every dialect.
- A dialect is named outside of its folder when its name stands, in any spelling, in a file that is not in
  `streamkit/dialects/<name>/`. A docstring counts as a comment. `streamkit/dialects/__init__.py` is left out: it is the table
  in which the built-in dialects are registered, and a table names what is in it.
- Equal lines are runs of six or more lines that are code, the same but for white space, in two files or two places of one; a
  run that stands in more than eight places is passed over.
  Those that stay have a reason: the overloads of `pipe` are its types; a checker shares no code with the decoder that it
  judges; a parser counts its bytes and looks for the beginning without a call for each read; the parts of a response are a
  closed union, of which each writer says what it makes of each member; media in a conversation and media that a model made
  are two values whose members mean the same; checkers begin alike, since each names its rules.
- Public names are the functions and classes at the top of a module whose names begin with no underscore.

"""
#: A pair of equal runs has at least this many lines, and a run that stands in more places than this is a common idiom.
EQUAL_LINES, MOST_PLACES = 6, 8
#: Where the built-in dialects are registered, and so must be named.
TABLE = Path("streamkit", "dialects", "__init__.py")
#: The kinds of words in which a dialect may be named.
KINDS = ("strings", "identifiers", "comments")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

Figures = dict[str, Any]


@attrs.frozen
class Module:
    """One file of the package, parsed."""

    name: str  #: ``streamkit.web.reply``
    path: Path  #: below the root
    text: str

    @classmethod
    def read(cls, path: Path, root: Path) -> Module:
        below = path.relative_to(root)
        parts = [part for part in below.with_suffix("").parts if part != "__init__"]
        return cls(".".join(parts), below, path.read_text("utf-8"))

    @property
    def room(self) -> str:
        """The folder of the file below ``streamkit``; the modules at the top level are ``(top level)``."""
        return "/".join(self.path.parent.parts[1:]) or "(top level)"

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def imported(self) -> dict[str, str]:
        """The dotted name behind each name that the module imports."""
        found = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            elif isinstance(node, ast.Import):
                found |= {alias.asname or alias.name: alias.name for alias in node.names}
        return found

    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        return (node for node in ast.walk(self.tree) if isinstance(node, FUNCTIONS))


def modules(root: Path) -> list[Module]:
    return [Module.read(path, root) for path in sorted((root / "streamkit").rglob("*.py"))]


def sizes(house: list[Module]) -> dict[str, dict[str, int]]:
    """Files and lines of each room."""
    rooms: dict[str, dict[str, int]] = defaultdict(lambda: {"files": 0, "lines": 0})
    for module in house:
        rooms[module.room]["files"] += 1
        rooms[module.room]["lines"] += len(module.text.splitlines())
    return dict(sorted(rooms.items()))


def function_lines(house: list[Module]) -> dict[str, int]:
    """How many functions there are, and the median and the ninth decile of their lines."""
    lines = [(node.end_lineno or node.lineno) - node.lineno + 1 for module in house for node in module.functions()] or [
        0
    ]
    ninth = statistics.quantiles(lines, n=10, method="inclusive")[-1] if len(lines) > 1 else lines[0]
    return {"count": len(lines), "median": round(statistics.median(lines)), "p90": round(ninth)}


def bases(house: list[Module]) -> dict[str, list[str]]:
    """The bases of each class that are classes of the package, both by their dotted names."""
    defined = {f"{module.name}.{node.name}" for module in house for node in module.tree.body if is_class(node)}
    found = {}
    for module in house:
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef):
                names = [ast.unparse(base).partition("[")[0] for base in node.bases]
                full = [known(name, module, defined) for name in names]
                found[f"{module.name}.{node.name}"] = [name for name in full if name]
    return found


def is_class(node: ast.AST) -> bool:
    return isinstance(node, ast.ClassDef)


def known(name: str, module: Module, defined: set[str]) -> str | None:
    """The dotted name of a class as a module writes it, where it is one of the package."""
    first, _, rest = name.partition(".")
    full = module.imported.get(first, f"{module.name}.{first}") + (f".{rest}" if rest else "")
    return full if full in defined else None


def spread_classes(house: list[Module]) -> dict[str, list[str]]:
    """Classes that are written in several files, each with those files.

    A class is a part of another when that one alone has it as a base and stands in the same folder.
    """
    own, files = bases(house), class_files(house)
    heirs: dict[str, list[str]] = defaultdict(list)
    for name, names in own.items():
        for base in names:
            heirs[base].append(name)
    parts = {base for base, found in heirs.items() if len(found) == 1 and files[base].parent == files[found[0]].parent}
    wholes = {name: {files[name], *(files[part] for part in within(name, own, parts))} for name in own.keys() - parts}
    return {name: sorted(map(str, found)) for name, found in sorted(wholes.items()) if len(found) > 1}


def class_files(house: list[Module]) -> dict[str, Path]:
    return {
        f"{module.name}.{node.name}": module.path for module in house for node in module.tree.body if is_class(node)
    }


def within(name: str, own: dict[str, list[str]], parts: set[str]) -> set[str]:
    """The bases of a class that are parts, and theirs."""
    return {found for base in own[name] if base in parts for found in (base, *within(base, own, parts))}


def files_to_read(house: list[Module]) -> dict[str, int]:
    """For each class that is nobody's base: in how many files its methods and attributes stand, those of all its bases."""
    own, files = bases(house), class_files(house)
    used = {base for names in own.values() for base in names}
    everything = set(own)
    return {
        name: len({files[name], *(files[base] for base in within(name, own, everything))}) for name in everything - used
    }


def said_to_be_parts(house: list[Module]) -> list[str]:
    """Classes whose docstring begins by saying that they are the part of something."""
    return [
        f"{module.path}:{node.lineno} {node.name}"
        for module in house
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef) and re.match(r"the parts? of\b", ast.get_docstring(node) or "", re.IGNORECASE)
    ]


def uses_of_any(house: list[Module]) -> int:
    """How often an annotation, or an alias of one, says ``Any``."""
    return sum(isinstance(node, ast.Name) and node.id == "Any" for module in house for node in ast.walk(module.tree))


def dialect_folders(house: list[Module]) -> set[str]:
    """The folders of dialects: those below ``dialects`` whose package assigns ``DIALECT``."""
    return {
        module.path.parent.name
        for module in house
        if module.path.name == "__init__.py" and module.path.parent.parent.name == "dialects"
        if any("DIALECT" in targets(node) for node in module.tree.body)
    }


def targets(node: ast.AST) -> list[str]:
    found = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in found if isinstance(target, ast.Name)]


def dialect_names(house: list[Module]) -> Iterator[tuple[str, Module, int, str]]:
    """Where a dialect is named outside of the folders of dialects: in which kind of word, module, line, and the name."""
    folders = dialect_folders(house)
    if not folders:
        return
    # ``openai_chat`` is found as ``openai-chat`` and ``OpenAI Chat``, too
    pattern = re.compile("|".join(name.replace("_", "[-_ ]?") for name in sorted(folders)), re.IGNORECASE)
    for module in house:
        if (module.path.parent.name in folders and module.path.parent.parent == TABLE.parent) or module.path == TABLE:
            continue
        if not pattern.search(module.text):  # most: to cut a module into words takes far longer
            continue
        for kind, line, text in words(module):
            yield from ((kind, module, line, found) for found in pattern.findall(text))


def words(module: Module) -> Iterator[tuple[str, int, str]]:
    """Each identifier, string and comment of a module with its line; docstrings are comments."""
    docstrings = {
        node.value.lineno
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    }
    for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
        kind = tokenize.tok_name[token.type]
        if kind == "NAME":
            yield "identifiers", token.start[0], token.string
        elif kind in {"STRING", "FSTRING_MIDDLE"}:
            yield ("comments" if token.start[0] in docstrings else "strings"), token.start[0], token.string
        elif kind == "COMMENT":
            yield "comments", token.start[0], token.string


def counted_names(house: list[Module]) -> dict[str, dict[str, int]]:
    """Names of dialects outside of their folders, by room and kind of word, and in how many files of the room."""
    rooms: dict[str, Counter[str]] = defaultdict(Counter)
    files: dict[str, set[Path]] = defaultdict(set)
    for kind, module, _, _ in dialect_names(house):
        rooms[module.room][kind] += 1
        files[module.room].add(module.path)
    return {room: {"files": len(files[room]), **counts} for room, counts in sorted(rooms.items())}


def weighty_lines(module: Module) -> list[tuple[int, str]]:
    """The lines that count as code in a comparison, white space folded: no blanks, comments, imports, lone punctuation."""
    imports = {
        line
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines = ((number, " ".join(line.split())) for number, line in enumerate(module.text.splitlines(), 1))
    return [(n, line) for n, line in lines if n not in imports and re.search(r"\w", line) and not line.startswith("#")]


@attrs.frozen
class Pair:
    """Two places with equal lines: where each begins, and how many lines they share in all their runs."""

    one: str
    other: str
    lines: int


def equal_pairs(house: list[Module]) -> list[Pair]:
    """Pairs of places that share runs of at least six equal lines; a pair of files is one pair, whatever runs it has."""
    code = [weighty_lines(module) for module in house]
    places: dict[tuple[str, ...], list[tuple[int, int]]] = defaultdict(list)
    for index, lines in enumerate(code):
        for start in range(len(lines) - EQUAL_LINES + 1):
            places[tuple(line for _, line in lines[start : start + EQUAL_LINES])].append((index, start))
    shared: dict[tuple[int, int], set[tuple[int, int]]] = defaultdict(set)
    for found in places.values():
        if len(found) <= MOST_PLACES:
            for (one, at), (other, there) in combinations(found, 2):
                if one != other or there - at >= EQUAL_LINES:
                    shared[one, other].add((at, there))
    return sorted((pair(house, code, key, starts) for key, starts in shared.items()), key=lambda found: -found.lines)


def pair(
    house: list[Module], code: list[list[tuple[int, str]]], key: tuple[int, int], starts: set[tuple[int, int]]
) -> Pair:
    """What two files share, named by where the first shared run begins in each."""
    one, other = key
    at, there = min(starts)
    lines = {start + step for start, _ in starts for step in range(EQUAL_LINES)}
    places = (f"{house[one].path}:{code[one][at][0]}", f"{house[other].path}:{code[other][there][0]}")
    return Pair(*places, len(lines))


def bare_names(house: list[Module]) -> list[str]:
    """Public functions and classes of modules without a docstring; the one of an overloaded function speaks for all."""
    return [
        f"{module.path}:{node.lineno} {node.name}"
        for module, node in public(house)
        if not ast.get_docstring(node)
        if not any(ast.unparse(decorator) == "overload" for decorator in node.decorator_list)
    ]


def public(house: list[Module]) -> Iterator[tuple[Module, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]]:
    for module in house:
        for node in module.tree.body:
            if isinstance(node, (*FUNCTIONS, ast.ClassDef)) and not node.name.startswith("_"):
                yield module, node


def imports_between(house: list[Module]) -> dict[str, dict[str, int]]:
    """How many imports of modules run from one room to another."""
    rooms = {module.name: module.room for module in house}
    matrix: dict[str, Counter[str]] = defaultdict(Counter)
    for module in house:
        for name in {full if full in rooms else full.rpartition(".")[0] for full in module.imported.values()}:
            if name in rooms and rooms[name] != module.room:
                matrix[module.room][rooms[name]] += 1
    return {room: dict(sorted(counts.items())) for room, counts in sorted(matrix.items())}


def references(root: Path) -> list[str] | None:
    """References to documents or sections that are not there; None where no checker of references is in ``tools``."""
    try:
        unresolved: Callable[[Path], Iterable[object]] = import_module("tools.references").unresolved
    except ModuleNotFoundError:
        return None
    return [str(found) for found in unresolved(root)]


def measure(root: Path) -> Figures:
    """All figures of a checkout, as JSON can hold them."""
    house = modules(root)
    lines = sum(len(module.text.splitlines()) for module in house)
    spread, names, pairs = spread_classes(house), counted_names(house), equal_pairs(house)
    missing, matrix = references(root), imports_between(house)
    totals: dict[str, float | None] = {
        "files": len(house),
        "lines": lines,
        **{f"functions: {key}": value for key, value in function_lines(house).items()},
        "classes over several files": len(spread),
        "classes whose bases stand in four files or more": sum(count >= 4 for count in files_to_read(house).values()),
        'classes that say "the part of"': len(said_to_be_parts(house)),
        "Any per 1,000 lines": round(1000 * uses_of_any(house) / lines, 1),
        "references that do not resolve": None if missing is None else len(missing),
        "files that name a dialect": sum(counts["files"] for counts in names.values()),
        **{f"dialect names: {kind}": sum(counts.get(kind, 0) for counts in names.values()) for kind in KINDS},
        "pairs of equal lines": len(pairs),
        "lines in such pairs": sum(found.lines for found in pairs),
        "public names": sum(1 for _ in public(house)),
        "public names without docstring": len(bare_names(house)),
        "imports between rooms": sum(sum(counts.values()) for counts in matrix.values()),
        "pairs of rooms with imports": sum(map(len, matrix.values())),
    }
    return {"totals": totals, "rooms": sizes(house), "dialect names": names, "imports": matrix, "spread": spread}


#: What ``--list`` can print.
LISTS: dict[str, Callable[[list[Module], Path], Iterable[str]]] = {
    "parts": lambda house, _: (f"{name}: {', '.join(files)}" for name, files in spread_classes(house).items()),
    "said": lambda house, _: said_to_be_parts(house),
    "names": lambda house, _: (f"{m.path}:{line} {kind} {name}" for kind, m, line, name in dialect_names(house)),
    "lines": lambda house, _: (f"{found.lines} {found.one} {found.other}" for found in equal_pairs(house)),
    "docstrings": lambda house, _: bare_names(house),
    "references": lambda _, root: references(root) or [],
}


def table(now: Figures, before: Figures | None) -> Iterator[str]:
    """The figures as tables in Markdown; with earlier ones, each beside what it was."""
    head = "before | now" if before else "now"
    yield f"| of streamkit/ | {head} |\n|---|{'---:|' * (2 if before else 1)}"
    for name, value in now["totals"].items():
        yield row(f"{name}", [before["totals"].get(name)] if before else [], value)
    yield f"\n| room | files, lines: {head} |\n|---|{'---:|' * (2 if before else 1)}"
    for room in sorted(now["rooms"] | (before["rooms"] if before else {})):
        then = [size(before["rooms"].get(room))] if before else []
        yield row(f"`{room}`", then, size(now["rooms"].get(room)))
    yield "\n| names of dialects in | files | strings | identifiers | comments |\n|---|---:|---:|---:|---:|"
    for room, counts in now["dialect names"].items():
        yield row(
            f"`{room}`", [counts["files"], *(counts.get(kind, 0) for kind in KINDS[:-1])], counts.get(KINDS[-1], 0)
        )
    yield "\n| room | imports from |\n|---|---|"
    for room, counts in now["imports"].items():
        yield f"| `{room}` | {', '.join(f'`{other}` {count}' for other, count in counts.items())} |"


def size(counts: dict[str, int] | None) -> str:
    return f"{counts['files']}, {counts['lines']:,}" if counts else "-"


def row(name: str, others: list[object], value: object) -> str:
    return f"| {name} | {' | '.join(cell(found) for found in [*others, value])} |"


def cell(value: object) -> str:
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--root", type=Path, default=ROOT, help="the checkout to measure")
    options.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    options.add_argument("--compare", type=Path, metavar="FILE", help="a file of --json from an earlier day")
    options.add_argument("--write", action="store_true", help="write docs/explanation/house.md again")
    options.add_argument("--list", choices=sorted(LISTS), help="print the places behind a figure instead")
    chosen = options.parse_args()
    if chosen.list:
        print(*LISTS[chosen.list](modules(chosen.root), chosen.root), sep="\n")
        return 0
    now = measure(chosen.root)
    if chosen.json:
        chosen.json.write_text(json.dumps(now, indent=1, sort_keys=False) + "\n", "utf-8")
    earlier = KEPT if chosen.write else chosen.compare
    lines = list(table(now, json.loads(earlier.read_text("utf-8")) if earlier else None))
    if chosen.write:
        PAGE.write_text(HEAD + "\n".join(lines) + "\n", "utf-8")
    print(*lines, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
