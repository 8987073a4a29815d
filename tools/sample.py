"""Print a random sample of the docstrings and comments of ``streamkit`` with the code under each, for a reader to judge.

python tools/sample.py --seed 7 --count 60
"""

from __future__ import annotations

import argparse
import ast
import io
import random
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: Lines of code that are printed under each.
BELOW = 6


def docstrings(tree: ast.Module) -> Iterator[tuple[int, int]]:
    """The first and last line of each docstring of a module and of its public classes and functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            public = isinstance(node, ast.Module) or not node.name.startswith("_")
            if public and ast.get_docstring(node):
                head = 1 if isinstance(node, ast.Module) else node.lineno
                yield head, node.body[0].end_lineno or head


def comments(text: str) -> Iterator[list[int]]:
    """The first and last line of each comment; comments on lines of their own that follow one another are one."""
    spans: list[list[int]] = []
    own = 0  # the last line that was nothing but a comment
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            line, alone = token.start[0], token.line.lstrip().startswith("#")
            if alone and own == line - 1:
                spans[-1][1] = line
            else:
                spans.append([line, line])
            own = line if alone else 0
    yield from spans


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=60)
    options = parser.parse_args()
    texts = {path: path.read_text("utf-8") for path in sorted((ROOT / "streamkit").rglob("*.py"))}
    places = [(path, *span) for path, text in texts.items() for span in (*docstrings(ast.parse(text)), *comments(text))]
    random.seed(options.seed)
    for path, first, last in random.sample(places, min(options.count, len(places))):
        print(f"\n{path.relative_to(ROOT)}:{first}", *texts[path].splitlines()[first - 1 : last + BELOW], sep="\n")


if __name__ == "__main__":
    main()
