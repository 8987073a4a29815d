"""``docs/reference/drift.md`` says what the installed SDKs define and streamkit does not know; none of it is lost silently."""

from __future__ import annotations

from functools import partial
from typing import Final

import pytest

from tests import npm
from tools import docs, drift
from tools.drift_sdks import SDKS, TESTS

FOLDERS: Final = {"ai_sdk": TESTS / "gateway" / "clients" / "ai_sdk", "ag_ui": TESTS / "clients" / "ag_ui"}
PAGE: Final = docs.FOLDER / "drift.md"
#: Names that are lost without a count, by dialect and place: why.
SILENT: Final = {
    ("ag-ui", "request", name): "activity messages are for the user interface and never sent on"
    for name in ("activity.activityType", "activity.metadata", "activity.subagentRunId")
}  # fmt: skip


def sections_of(text: str) -> dict[str, str]:
    """The sections of a page, by their titles."""
    return {part.partition("\n")[0]: f"## {part.rstrip()}\n" for part in text.split("\n## ")[1:]}


def silently(unknown: drift.Entry) -> list[str]:
    """The dialects into which the name is lost without an error or a counted loss; its own dialect must carry it.

    Streams and whole responses of the same dialect are passed on as bytes, so that only requests can lose it there.
    """
    dialect, schemas, document, found = unknown.dialect, unknown.schemas, unknown.pairs[0][0], []
    if schemas.place == "request":
        text, _ = drift.translate(dialect, schemas, document, dialect)
        if unknown.own not in text and not text.startswith(drift.ERROR):
            found.append(dialect)
    for target in drift.targets(dialect, schemas):
        text, report = drift.translate(dialect, schemas, document, target)
        # what is lost is the name, or the whole that it is in; the fields of a response are counted once
        without, least = unknown.without or document, schemas.minimal(schemas.root)
        others = (drift.translate(dialect, schemas, each, target)[1].losses for each in (without, least))
        is_counted = any(report.losses - losses for losses in others) or "response_fields" in report.losses
        if not (text.startswith(drift.ERROR) or is_counted or report.repairs["turn_empty"]):
            found.append(target)
    return found


@pytest.mark.parametrize("make", SDKS, ids=lambda make: make.__name__)
def test_the_page_says_what_is_unknown_and_none_of_it_is_lost_silently(make):
    """Within the dialect an unknown name is carried; in every other it is a counted loss or an error."""
    if (folder := FOLDERS.get(make.__name__)) is not None:
        npm.installed(folder, "the types of a package of npm", within_s=90)
    compared, sections = make(), sections_of(PAGE.read_text("utf-8"))
    if compared.title not in sections:
        pytest.skip(f"the page compares another version than {compared.title}")
    counts, unknown = drift.compare(compared)
    # a document that is refused for another reason than its unknown name measures nothing
    assert [each.name for each in unknown if each.fate == "unreadable"] == []
    assert drift.section(compared, counts, unknown) == sections[compared.title]
    silent = {(each.dialect, each.schemas.place, each.name): silently(each) for each in unknown}
    assert {key: dialects for key, dialects in silent.items() if dialects and key not in SILENT} == {}
    assert {key for key in SILENT if key[0] == compared.dialect} <= {key for key in silent if silent[key]}


def test_the_page_is_whole():
    text = PAGE.read_text("utf-8")
    assert drift.page(list(sections_of(text).values())) == text
    assert len(sections_of(text)) == len(SDKS)


def test_a_lag_is_told(tmp_path, monkeypatch, capsys):
    small = next(make for make in SDKS if make.__name__ == "ollama")
    monkeypatch.setattr(drift, "SDKS", [small])
    main = partial(docs.main, folder=tmp_path, pages={"drift.md": drift.whole_page}, command="make drift")
    assert main(["--check"]) == 1
    assert main([]) == 0
    assert main(["--check"]) == 0
    assert "drift.md lags behind the code: run `make drift`" in capsys.readouterr().err


def test_an_invented_event_is_unknown():
    """The measure finds a type that no dialect has, next to one that is known."""
    (schemas, *_) = next(make for make in SDKS if make.__name__ == "anthropic")().schemas
    known = {"type": "ping"}
    invented = {"type": drift.PROBE}
    for name, fate in (("ping", "known"), ("brand_new", "kept")):
        entry = drift.Entry("anthropic", schemas, "event", name, "stream", [({**known, "type": name}, invented)])
        assert drift.judged(entry).fate == fate
