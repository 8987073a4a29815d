"""Find references to documents and sections that are not there.

A comment, a docstring, a test or a page cites a document of the project by its name and a place in it: ``dialects.md §1.7``,
a rule ``quirks.md R2``, a case ``quirks.md 42``, a threat ``limits.md T6``. Several places of one document follow one another
with a comma, ``and``, ``to`` or a dash. A section sign without a name belongs to the document that the file named last, on a
page whose sections have numbers to the page itself. RFCs and other standards are left alone.

Also found: links of Markdown pages whose file or heading is missing, names that two documents have, and references to the
numbers of issues, which a reader of the repository can't open.

Usage:
python tools/references.py           # a line for each reference that does not resolve; exit status 1 if there is one
python tools/references.py --count   # how many references there are, and how many do not resolve
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from attrs import frozen

ROOT = Path(__file__).resolve().parents[1]

#: What is read: these folders, and files of the root with one of these endings.
FOLDERS = ("streamkit", "tests", "tools", "benchmarks", "examples", "docs", ".ci")
SUFFIXES = {".md", ".py", ".toml", ".mjs", ".js", ".sh", ".yml", ".yaml", ".conf"}
FILES = ("Makefile", ".ci/run")
LEFT_OUT = {"__pycache__", "node_modules", ".peers"}
#: The tests of this module hold references that must not resolve.
SKIPPED = ("tests/docs/test_references.py",)

#: The letters of the labels that a document has: rules, threats, claims, scenarios, laws, gaps, behaviours.
LETTERS: Mapping[str, str] = {
    "quirks.md": "R",
    "limits.md": "TC",
    "seeds.md": "S",
    "design.md": "L",
    "laws.md": "L",
    "observe.md": "OG",
    "resume.md": "R",
}
#: Documents whose rows or paragraphs have plain numbers.
NUMBERED = {"quirks.md", "observe.md", "field-failures.md"}

PLACE = r"§§?[ ]?(?:\d+(?:\.\d+)*|[A-H]\b)|\b[RTCSLOG]\d{1,2}\b|\b\d{1,3}\b(?![.\w])"
BETWEEN = r"(?:\s*,\s*|\s*[-\u2013]\s*|\s*\(|\)?\s*,\s*|\s+(?:and|to|or)\s+|\s+)(?:\(?(?:cases?|rules?)\s+)?"
ASIDE = r"(?:\s\([a-z][a-z' ]*\)(?=,))?"
DOCUMENT = re.compile(
    rf"(?<![\w./-])(?P<name>[\w./-]*[\w-]\.md)(?![\w-])(?P<anchor>#[\w-]+)?(?P<places>(?:[`'s]*{BETWEEN}(?:{PLACE}){ASIDE})*)"
)
BARE = re.compile(r"§§?[ ]?(?P<place>\d+(?:\.\d+)*)")
STANDARD = re.compile(
    r"RFC \d+|\b(?:HTML|ECMA-\d+|JSON Schema|CommonMark|Content Security Policy|Fetch Standard|draft-07|Unicode \d+)\b"
)
#: Within so many characters behind the name of a standard a section of a page's own is one of the standard.
NEAR = 60
ISSUE = re.compile(r"\bissue(?:'s)? texts?\b|(?<![#\w-])\bissues? \d+\b|\bthe house issue\b", re.IGNORECASE)
#: Every reference of a file that is no page has one of these: to look for whole references takes far longer.
SIGN = re.compile(r"\.md|§|issue", re.IGNORECASE)
LINK = re.compile(r"\]\((?P<target>[^()\s]+(?:\([^()\s]*\))?)\)")
URL = re.compile(r"\w+://[^\s)>\]`\"']+")
HEADING = re.compile(r"^(#{1,6}) (.*)$", re.MULTILINE)
BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)  #: a block of code
COMMENT = re.compile(r"(?<=\n)[ \t]*(?:#:?|//)[ \t]?")


@frozen
class Reference:
    """A reference that a file makes, and why it does not resolve: an empty ``fault`` where it does."""

    file: str
    line: int
    text: str
    fault: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}: {self.fault or 'resolves'}"


@frozen
class Document:
    """A page that is cited by numbers."""

    name: str
    text: str

    def has(self, place: str) -> bool:
        """Whether the place is there: a section with its sign, a label such as ``R2``, or a number."""
        place = place.lstrip("§ ")
        if place[0].isdigit() and self.name in NUMBERED and "." not in place and self._row(place):
            return True
        return self._label(place) if re.fullmatch(r"[RTCSLOG]\d+", place) else self.section(place)

    def section(self, number: str) -> bool:
        """Whether a heading, or a numbered item of its section, has this number."""
        if re.search(rf"^#+ {re.escape(number)}[. ]", self.text, re.MULTILINE):
            return True
        above, _, item = number.rpartition(".")
        body = re.search(rf"^(#+) {re.escape(above)}[. ](?P<body>.*?)(?=^## |\Z)", self.text, re.MULTILINE | re.DOTALL)
        if not above or not body:
            return False
        return bool(re.search(rf"(?:^|\s)(?:{item}\.|{re.escape(number)})\s", body["body"]))

    def _label(self, label: str) -> bool:
        return bool(re.search(rf"^(?:[*|#\s]|\d+\.\s)*{label}(?![\w.]*\w)", self.text, re.MULTILINE))

    def _row(self, number: str) -> bool:
        return bool(re.search(rf"^\| {number} \||(?:^|\s){number}\. ", self.text, re.MULTILINE))


@frozen(eq=False)
class Library:
    """The documents of a repository."""

    root: Path
    pages: Mapping[str, tuple[Path, ...]]  #: every Markdown page by its last name

    @cache  # noqa: B019  # one library a run
    def cited(self, name: str) -> Document | None:
        """The document that is meant where a place follows the bare name: a specification, the design, the laws."""
        for folder in ("docs/spec", "docs/explanation", "docs/reference"):
            path = self.root / folder / name
            if path.is_file():
                return Document(name, path.read_text("utf-8"))
        return None

    @cache  # noqa: B019
    def anchors(self, page: Path) -> set[str]:
        """The anchors of a page's headings, as GitHub makes them."""
        found: set[str] = set()
        for heading in HEADING.finditer(BLOCK.sub("", page.read_text("utf-8"))):
            plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[2]).lower()
            anchor = re.sub(r"[^\w\- ]", "", plain).strip().replace(" ", "-")
            copies = 1
            unique = anchor
            while unique in found:
                unique, copies = f"{anchor}-{copies}", copies + 1
            found.add(unique)
        return found

    def place_of(self, name: str, file: Path) -> str:
        """Why a document without a place in it can't be found; empty if it can."""
        if "/" in name:
            bases = (self.root, self.root / "docs", file.parent)
            return "" if any((base / name).is_file() for base in bases) else "there is no such document"
        found = self.pages.get(name, ())
        if len(found) == 1 or (self.root / name).is_file() or (file.parent / name) in found:
            return ""
        return "several documents have this name" if found else "there is no such document"


def library(root: Path, paths: Iterable[Path]) -> Library:
    pages: dict[str, tuple[Path, ...]] = {}
    for path in paths:
        if path.suffix == ".md":
            pages[path.name] = (*pages.get(path.name, ()), path)
    return Library(root, pages)


def files(root: Path) -> Iterator[Path]:
    """Every file whose references are read."""
    for folder in FOLDERS:
        found = (path for path in (root / folder).rglob("*") if path.suffix in SUFFIXES)
        for path in sorted(path for path in found if not LEFT_OUT & set(path.parts)):
            if path.is_file() and "egg-info" not in str(path):
                yield path
    yield from sorted(path for path in root.iterdir() if path.suffix in SUFFIXES)
    yield from (root / name for name in FILES if (root / name).is_file())


def blank(found: re.Match[str]) -> str:
    """As many spaces as the match has characters, with its ends of lines."""
    return re.sub(r"[^\n]", " ", found[0])


def references(root: Path = ROOT) -> Iterator[Reference]:
    """Every reference in the repository at ``root``, with its fault where it does not resolve."""
    paths = list(files(root))
    shelf = library(root, paths)
    for path in paths:
        name = path.relative_to(root).as_posix()
        if name in SKIPPED:
            continue
        text = path.read_text("utf-8")
        if path.suffix != ".md" and not SIGN.search(text):
            continue
        starts = line_starts(text)

        def reference(
            at: int, cited: str, fault: str, name: str = name, starts: Callable[[int], int] = starts
        ) -> Reference:
            return Reference(name, starts(at), " ".join(cited.split()), fault)

        if path.suffix == ".md":
            for at, target, fault in links(text, path, shelf):
                yield reference(at, target, fault)
            text = LINK.sub(blank, text)
        text = URL.sub(blank, text)
        if path.suffix != ".md":
            text = COMMENT.sub(blank, text)
        for found in ISSUE.finditer(text) if "issue" in text.lower() else ():
            yield reference(found.start(), found[0], "a reader of the repository can't open an issue")
        for at, cited, fault in citations(text, path, shelf):
            yield reference(at, cited, fault)


def line_starts(text: str) -> Callable[[int], int]:
    """From a position in the text to the number of its line."""
    return lambda at: text.count("\n", 0, at) + 1


def links(text: str, page: Path, shelf: Library) -> Iterator[tuple[int, str, str]]:
    """Links of a page to files and headings: where, to what, and the fault."""
    for found in LINK.finditer(re.sub(r"`[^`\n]*`", blank, BLOCK.sub(blank, text))):
        target = found["target"]
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        fault = "" if path.exists() else "there is no such file"
        if not fault and anchor and path.suffix == ".md" and anchor not in shelf.anchors(path):
            fault = "the page has no such heading"
        yield found.start(), target, fault


def citations(text: str, path: Path, shelf: Library) -> Iterator[tuple[int, str, str]]:
    """Documents and places that are cited by name, and section signs that follow from one."""
    own = path.name if path.suffix == ".md" and path.parent.name in {"spec", "explanation"} else None
    named: list[tuple[int, int, str | None]] = []  #: where it begins and ends; None for a standard
    for found in DOCUMENT.finditer(text):
        name, places = found["name"], re.findall(PLACE, found["places"])
        last = Path(name).name
        if last not in NUMBERED:
            places = [place for place in places if not place.isdigit()]
        document = shelf.cited(last)
        if places and document:
            named.append((found.start(), found.end(), last))
            for place in places:
                fault = "" if document.has(place) else "the document has no such place"
                yield found.start(), f"{name} {place}", fault
            continue
        if document is not None:
            named.append((found.start(), found.start("places"), last))
        if path.suffix == ".md" or not quoted(text, found):
            foreign = path.parent.name == "spec" and not places  # the specifications name their sources
            yield found.start(), name, "" if foreign else shelf.place_of(name, path)
    if own or "§" in text:
        named += [(found.start(), found.end(), None) for found in STANDARD.finditer(text)]
    yield from bare_places(text, own, sorted(named), shelf)


def quoted(text: str, found: re.Match[str]) -> bool:
    """Whether code holds the name as a string, to open the file or to write a link into another page."""
    before = text[: found.start("name")][-3:]
    return before[-1:] in {'"', "'", "("} and before != '"""'


def bare_places(
    text: str, own: str | None, named: list[tuple[int, int, str | None]], shelf: Library
) -> Iterator[tuple[int, str, str]]:
    """Section signs without a document's name, and the labels that a document cites of itself."""
    for found in BARE.finditer(text):
        at = found.start()
        if any(start <= at < end for start, end, _ in named):
            continue
        before, name = next(((start, name) for start, _, name in reversed(named) if start < at), (0, ""))
        if name is None and (own is None or at - before < NEAR):
            continue  # a section of a standard
        document = shelf.cited(own or name or "")
        fault = "no document is named before it" if document is None else ""
        if document is not None and not document.has(found["place"]):
            fault = f"{document.name} has no such place"
        yield at, found[0], fault
    document = shelf.cited(own) if own in LETTERS else None
    if own and document:
        for found in re.finditer(rf"(?<![\w.-])[{LETTERS[own]}]\d{{1,2}}(?![\w-])", text):
            if not any(start <= found.start() < end for start, end, _ in named):
                yield found.start(), found[0], "" if document.has(found[0]) else "the document has no such place"


def unresolved(root: Path = ROOT) -> list[Reference]:
    """The references of the repository at ``root`` that lead nowhere, in the order of its files."""
    return [reference for reference in references(root) if reference.fault]


def main() -> int:
    found = list(references())
    lost = [reference for reference in found if reference.fault]
    if "--count" in sys.argv[1:]:
        print(f"{len(found)} references, {len(lost)} do not resolve")
    else:
        print(*lost, sep="\n")
    return bool(lost)


if __name__ == "__main__":
    sys.exit(main())
