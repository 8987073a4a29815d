"""Every reference in code, tests, tools, benchmarks and pages leads to a document, a section or a label that is there."""

import pytest

from tools.references import references, unresolved

SPEC = """# Dialects

Cited as `dialects.md §1.7`.

## 1. Chat
Text.
### 1.7 Calls
2. The second item of them.

## 8. Losses
1. The first. 12. The twelfth.
"""
QUIRKS = """# Quirks

R2  A rule, which §1 needs (R2).

## 1. Cases
| # | ref |
|---|---|
| 42 | somebody/something#1 |
"""


@pytest.fixture
def repository(tmp_path):
    """A repository with two specifications, and a function that adds a file to it and says what does not resolve."""
    (tmp_path / "docs" / "spec").mkdir(parents=True)
    (tmp_path / "docs" / "spec" / "dialects.md").write_text(SPEC, "utf-8")
    (tmp_path / "docs" / "spec" / "quirks.md").write_text(QUIRKS, "utf-8")

    def add(text, name="streamkit/module.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return [(found.line, found.text) for found in unresolved(tmp_path)]

    return add


@pytest.fixture(scope="module")
def found():
    """All references of this repository: looking for them takes seconds."""
    return list(references())


def test_every_reference_leads_somewhere(found):
    assert [str(reference) for reference in found if reference.fault] == []


def test_references_are_found_at_all(found):
    assert len({reference.file for reference in found}) > 200
    assert sum("dialects.md §" in reference.text for reference in found) > 150
    assert sum("quirks.md R" in reference.text for reference in found) > 20


@pytest.mark.parametrize(
    "text",
    [
        "# dialects.md §1.7",
        "# dialects.md §1, §1.7 and §8.12; quirks.md R2, 42",
        "# quirks.md §1 case 42; the rest is §1's",
        '"""Calls. Source: dialects.md\n    §1.7.\n"""',
        "#: As dialects.md\n#: §1.7 says (§8).",
        "# RFC 8259 §99, §98 are somebody else's",
        "# docs/spec/dialects.md has it",
        'PAGE = ROOT / "page.md"',
        "# https://example.com/other.md has it",
    ],
)
def test_a_reference_that_resolves_is_no_find(repository, text):
    assert repository(text) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("\n# dialects.md §1.9", (2, "dialects.md §1.9")),
        ("# dialects.md §1.7, §3", (1, "dialects.md §3")),
        ("# dialects.md §8.13", (1, "dialects.md §8.13")),
        ("# dialects.md §1.7–§1.9", (1, "dialects.md §1.9")),
        ("# quirks.md R2 to R7", (1, "quirks.md R7")),
        ("# quirks.md 43", (1, "quirks.md 43")),
        ("# quirks.md §1 (cases 42 and 44)", (1, "quirks.md 44")),
        ("# quirks.md\n# R3", (1, "quirks.md R3")),
        ("# dialects.md §1.7; and then §9", (1, "§9")),
        ("# see §1.7", (1, "§1.7")),
        ("# limits.md T6", (1, "limits.md")),
        ("# docs/dialects.md", (1, "docs/dialects.md")),
        ("# Source: issue text 6 §2", (1, "issue text")),
        ("# as issue 6 says", (1, "issue 6")),
    ],
)
def test_a_reference_that_leads_nowhere_is_found(repository, text, found):
    assert found in repository(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[a page](nowhere.md)", (1, "nowhere.md")),
        ("[a heading](spec/dialects.md#chat)", (1, "spec/dialects.md#chat")),
        ("# Title\n[a heading](#titel)", (2, "#titel")),
    ],
)
def test_a_link_that_leads_nowhere_is_found(repository, text, found):
    assert found in repository(text, "docs/page.md")
    assert (
        repository(
            "[it](spec/dialects.md#17-calls), [it](#title)\n# Title\n[it](https://example.com/#x)", "docs/page.md"
        )
        == []
    )


def test_code_has_no_links(repository):
    assert repository("`f[it](it)`\n```python\nf[it](it)\n```\n", "docs/page.md") == []
    assert repository("```python\nf\n```\n[it](it)\n", "docs/page.md") == [(4, "it")]


def test_a_name_that_two_documents_have_is_found_without_a_place(repository):
    repository("# Other dialects", "docs/reference/dialects.md")
    assert repository("# dialects.md says so") == [(1, "dialects.md")]
    assert repository("# dialects.md §1.7 says so") == []


def test_a_page_of_sections_is_held_to_its_own(repository):
    assert repository(QUIRKS + "By §1, §2 and R9.\n", "docs/spec/quirks.md") == [(9, "§2"), (9, "R9")]
