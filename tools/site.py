"""After the site is built: take the specification out of the search, check the links of the HTML, and write `llms.txt`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parents[1]
#: The anchor of a field or a method of a class.
MEMBER = re.compile(r"\.[A-Z]\w*\.[a-z_]\w*$")
BUILT = ROOT / "build" / "site"


def drop_from_search(search: Path) -> tuple[int, int]:
    """Remove from the search index what would hide a better page: spec/, members of classes, and names that a page explains.

    Return how many sections of spec/ and of the API were removed.
    """
    index = json.loads(search.read_text("utf-8"))
    explained = {item["title"] for item in index["items"] if item["location"].startswith(("reference/", "how-to/"))}
    specified = [item for item in index["items"] if item["location"].startswith("spec/")]
    named = [item for item in index["items"] if item["location"].startswith("api/#")]
    doubled = [item for item in named if item["title"] in explained or MEMBER.search(item["location"])]
    kept = [item for item in index["items"] if item not in specified and item not in doubled]
    search.write_text(json.dumps(index | {"items": kept}, ensure_ascii=False), "utf-8")
    return len(specified), len(doubled)


def sentence_of(page: str) -> tuple[str, str]:
    """The title of a page in Markdown, and the first sentence of its first paragraph of prose, without links."""
    lines = page.split("\n\n")
    title = next(line for line in page.splitlines() if line.startswith("# "))[2:]
    prose = next((part for part in lines if re.match(r"[A-Za-z`\[]", part)), title)
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(prose.split()))
    return title, re.split(r"(?<=[.])\s", plain)[0].rstrip(":")


def lines_of_llms() -> Iterator[str]:
    """The lines of llms.txt, in the order and groups of the navigation."""
    yield "# streamkit"
    yield ""
    nav = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
    for line in nav.splitlines():
        entry = line.strip().removeprefix("- ")
        if entry.endswith(".md"):
            title, sentence = sentence_of((ROOT / "docs" / entry).read_text("utf-8"))
            path = entry.removesuffix("README.md") if entry.endswith("README.md") else entry.removesuffix(".md") + "/"
            yield f"- [{title}]({path or './'}): {sentence}"
        elif entry.endswith(":"):
            yield from ("", f"## {entry.rstrip(':')}", "")


def mend_links_of_docstrings(page: Path) -> int:
    """Shorten the links of docstrings, which are written for docs/reference/, by one step: the API is a folder higher."""
    text, count = re.subn(r'href="\.\./(\.\./[^"]+)"', r'href="\1"', page.read_text("utf-8"))
    page.write_text(text, "utf-8")
    return count


def dead_links(built: Path) -> list[str]:
    """Return each relative link of a page that leads to no file of the site, with its page."""
    dead = []
    for page in sorted(built.rglob("*.html")):
        if page.name == "404.html":  # its links begin at the address where it is shown
            continue
        for link in re.findall(r'(?:href|src)=["\']?([^"\'\s>#?]+)', page.read_text("utf-8")):
            if not re.match(r"[a-z]+:|//|/", link):
                target = (page.parent / unquote(link)).resolve()
                if not (target / "index.html" if target.is_dir() else target).exists() or built not in (
                    target,
                    *target.parents,
                ):
                    dead.append(f"{page.relative_to(built)}: {link}")
    return dead


if __name__ == "__main__":
    if not all(drop_from_search(BUILT / "search.json")):
        raise SystemExit(
            "build/site/search.json has no section of spec/ or of the API: has the form of the index changed?"
        )
    mend_links_of_docstrings(BUILT / "api" / "index.html")
    if dead := dead_links(BUILT):
        raise SystemExit("\n".join(["these links lead nowhere:", *dead]))
    (BUILT / "llms.txt").write_text("\n".join(lines_of_llms()) + "\n", "utf-8")
