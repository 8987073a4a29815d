"""docs/how-to/mock-a-provider.md names every step, its fields and every fault, and its script is one."""

from __future__ import annotations

import re
from collections.abc import Iterator

import attrs

from streamkit.lab.mock.script import STEPS, Match
from streamkit.lab.mock.script_file import parse_script
from streamkit.lab.mock.verdict import FAULTS, LEAVE_S, NOTES, READ_TIMEOUT_S
from tests.docs.pages import ROOT, blocks

PAGE = ROOT / "docs" / "how-to" / "mock-a-provider.md"
TEXT = PAGE.read_text("utf-8")


def rows(heading: str) -> Iterator[list[str]]:
    """The cells of a table's rows: the first table behind a heading of its own."""
    _, _, rest = TEXT.partition(heading)
    for line in rest.splitlines():
        if line.startswith("|--") or not line:
            continue
        if not line.startswith("|"):
            return
        yield [cell.strip() for cell in line.strip("|").split(" | ")]


def names(cell: str) -> list[str]:
    return re.findall(r"`(\w+)`", cell)


def test_the_steps_and_their_fields_are_those_there_are():
    said = {names(cells[0])[0]: names(cells[1]) for cells in rows("| step | fields | what the mock does |\n")}
    assert said == {name: [field.name for field in attrs.fields(kind)] for name, kind in STEPS.items()}


def test_the_faults_and_notes_are_those_there_are():
    assert [names(cells[0])[0] for cells in rows("| fault | found if |\n")] == list(FAULTS)
    assert all(f"`{note}`" in TEXT for note in NOTES)
    assert f"{READ_TIMEOUT_S:g} s, or `bound_s`" in TEXT
    assert f"{LEAVE_S:g} s, or `bound_s`" in TEXT


def test_the_match_is_the_one_there_is():
    assert [names(cells[0])[0] for cells in rows("| `match` | the turn fits if |\n")] == [
        field.name for field in attrs.fields(Match)
    ]


def test_its_script_is_one():
    (text,) = [block.text for block in blocks(PAGE) if block.language == "toml"]
    assert len(parse_script(text).turns) == 4
