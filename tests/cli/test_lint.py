from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from streamkit.cli.lint import Check
from streamkit.dialects import DIALECTS
from streamkit.dialects.linting.explain import (
    ANSWERS,
    CUT,
    KNOWN,
    NO_RULE,
    REPAIR_CASES,
    STOPPED,
    STOPS,
    TORN,
    UNFINISHED,
)
from streamkit.dialects.linting.explain import CASES as EXPLAINED
from streamkit.dialects.linting.grammar import READING_RULES, PayloadChecker
from streamkit.errors import SourceFailed
from streamkit.report import REPAIRS, STREAM_REPAIRS, Status
from streamkit.testing import cuts
from tests.cli.command import DEMO, run
from tests.vectors.field import CASES, ELSEWHERE
from tests.vectors.openai_chat import CALLED, DONE, ROLE, STOP, call, calls
from tests.vectors.vector import sse

DATA = DEMO.read_bytes()


def test_a_well_formed_stream_is_clean():
    done = run("lint", "--dialect", "openai-chat", str(DEMO))
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"clean" in done.stdout


def test_what_streamkit_reads_anyway_would_be_repaired():
    broken = DATA.replace(b'{"index": 1, "function"', b'{"function"')
    done = run("lint", "--dialect", "openai-chat", "--json", stdin=broken)
    assert done.returncode == 6
    (found,) = (json.loads(line) for line in done.stdout.splitlines())
    assert found["verdict"] == "repairable"
    first = found["violations"][0]
    at = broken.index(b'{"function"')
    assert broken.rindex(b"data:", 0, at) == first["offset"], "the byte is where the frame begins"


def test_a_cut_stream_is_broken():
    done = run("lint", "--dialect", "openai-chat", stdin=DATA[:1500])
    assert done.returncode == 1
    assert b"truncated" in done.stdout


def test_a_source_that_failed_breaks_a_stream_of_which_no_rule_is_known():
    check = Check("openai-chat")
    check._linter = PayloadChecker()  # that of a dialect without a grammar
    check.feed(sse(ROLE))
    check.break_off(SourceFailed("gone"))
    assert (check.finish(), check.violations) == (Status.FAILED, [])


def test_a_broken_frame_is_named_with_its_byte():
    at = DATA.index(b"data: ", 900)
    done = run("lint", "--dialect", "openai-chat", stdin=DATA[:at] + b"data: {nonsense}\n\n" + DATA[at:])
    assert done.returncode == 1
    assert f"byte {at}".encode() in done.stdout


def test_another_dialect_exits_5():
    assert run("lint", "--dialect", "anthropic", str(DEMO)).returncode == 5
    assert run("lint", stdin=b"<html>").returncode == 5


def test_the_worst_of_several_files_is_the_status(tmp_path):
    cut = tmp_path / "cut.sse"
    cut.write_bytes(DATA[:1500])
    assert run("lint", str(DEMO), str(cut)).returncode == 1


# -- explanations ------------------------------------------------------------------------------------------------------


def checked(dialect: str, body: bytes) -> Check:
    check = Check(dialect)
    check.feed(body)
    check.finish()
    return check


def cases_of(check: Check) -> set[int | None]:
    return {found.explanation.case for found in check.found}


def named(number: int) -> str:
    return next(case.cause for case in (*CASES, *ELSEWHERE) if case.number == number)


def linted(body: bytes, *arguments: str) -> dict[str, Any]:
    done = run("lint", "--dialect", "openai-chat", "--json", *arguments, stdin=body)
    return json.loads(done.stdout)


WITHOUT_INDEX = DATA.replace(b'"index": 1, "function"', b'"function"')
HEAD = sse(ROLE)
STOPPED_WITH_A_CALL = sse(ROLE, calls(call(0, "a", "f", "{}")), STOP, DONE)


def test_a_violation_says_its_case_and_its_repair():
    first, *rest = linted(WITHOUT_INDEX)["violations"]
    assert (first["rule"], first["case"], first["streamkit"]) == ("call_index", 6, ["index_missing"])
    assert len(rest) == 3


def test_the_answers_of_a_note_and_of_what_follows_a_fault():
    found = linted(HEAD + sse(b"{oops}", {**ROLE, "object": "odd"}, b"{}"))
    by_rule = {violation["rule"]: violation for violation in found["violations"]}
    assert (by_rule["not_json"]["case"], by_rule["not_json"]["streamkit"]) == (115, STOPS)
    assert by_rule["object"]["streamkit"] == STOPPED
    (done,) = linted(sse(ROLE, STOP))["violations"]
    assert (done["rule"], done["severity"], done["streamkit"]) == ("done", "note", KNOWN)


def test_a_cut_stream_and_one_with_its_terminator_are_told_apart():
    (cut,) = linted(HEAD)["violations"]
    assert (cut["rule"], cut["case"], cut["streamkit"]) == ("truncated", 65, CUT)
    (ended,) = linted(HEAD + sse(DONE))["violations"]
    assert (ended["rule"], ended["case"], ended["streamkit"]) == ("truncated", 61, UNFINISHED)
    torn = {violation["rule"]: violation["streamkit"] for violation in linted(HEAD + b'data: {"id":')["violations"]}
    assert torn == {"unterminated": TORN, "not_json": TORN, "truncated": CUT}


def test_a_repair_that_no_broken_rule_explains_is_told_with_its_place():
    found = linted(STOPPED_WITH_A_CALL)
    assert found["violations"] == []
    assert found["repairs"] == {"stop_with_calls": 1}
    (other,) = found["other_repairs"]
    assert (other["repair"], other["frame"], other["case"]) == ("stop_with_calls", 3, 52)
    assert STOPPED_WITH_A_CALL[other["offset"] :] == b"data: [DONE]\n\n"


def test_a_repair_stands_at_the_frame_where_it_was_counted():
    check = checked("openai-chat", WITHOUT_INDEX)
    assert [found.frame for found in check.found] == [violation.frame for violation in check.violations]
    assert check.report.repairs.total() == sum(len(found.explanation.repairs) for found in check.found)


def test_every_repair_that_was_counted_is_explained_once_or_more():
    for case in CASES:
        for form in case.forms:
            check = checked(form.dialect, form.body)
            explained = {kind for found in check.found for kind in found.explanation.repairs}
            if check.report.status is not Status.NOT_THIS_DIALECT:
                assert explained == set(check.report.repairs), (case.number, form.name)


def test_what_is_found_does_not_depend_on_the_cuts():
    for case in CASES[::2]:
        for form in (form for form in case.forms if len(form.body) < 2000):
            whole = checked(form.dialect, form.body)
            for chunks in cuts(form.body, seed=case.number, sample=2):
                check = Check(form.dialect)
                for chunk in chunks:
                    check.feed(chunk)
                check.finish()
                assert check.found == whole.found, (case.number, form.name)


def test_an_unreadable_frame_is_named_by_its_number():
    check = checked("openai-chat", HEAD + sse(b"{oops}"))
    found = next(violation for violation in check.violations if violation.rule == "unreadable")
    assert (found.frame, found.offset) == (1, len(HEAD))


def test_what_the_framing_repairs_belongs_to_the_next_frame():
    (found,) = (found for found in checked("openai-chat", HEAD + b"hello: x\n" + sse(STOP, DONE)).found)
    assert (found.frame, found.explanation.repairs) == (1, ("sse_field_unknown",))


#: Cases that lint names in one of their own streams. The others have nothing wrong, resemble a neighbour, or break no rule.
OWN = [
    6, 9, 14, 15, 24, 25, 26, 27, 30, 32, 33, 36, 37, 38, 40, 43, 45, 46, 50, 52, 53, 54, 57, 58, 59, 61, 65, 66, 68, 70, 71, 73,
    75, 76, 77, 78, 81, 82, 88, 94, 100, 102, 106, 111, 112, 114, 115, 133,
]  # fmt: skip


@pytest.mark.parametrize("number", OWN)
def test_the_streams_of_a_case_look_like_it(number):
    case = next(case for case in CASES if case.number == number)
    assert number in set().union(*(cases_of(checked(form.dialect, form.body)) for form in case.forms))


# -- the text ----------------------------------------------------------------------------------------------------------


def test_the_text_explains_each_violation_on_the_line_below():
    done = run("lint", "--dialect", "openai-chat", stdin=STOPPED_WITH_A_CALL)
    head, place, explanation, repairs = done.stdout.decode().splitlines()
    assert head.endswith("openai-chat, repairable")
    assert place.endswith("frame 3: no rule is broken")
    assert explanation == f"    looks like field failure 52: {named(52)}. streamkit repairs it: {REPAIRS['stop_with_calls']} (stop_with_calls)"  # fmt: skip
    assert repairs == "  repairs: stop_with_calls 1"


def test_the_same_explanation_is_not_told_again():
    body = sse(ROLE, calls(call(None, "a", "f", "")), *[calls(call(None, arguments=" "))] * 1000, CALLED, DONE)
    last = body.rindex(b"data:", 0, body.index(sse(CALLED)))
    told = run("lint", "--dialect", "openai-chat", stdin=body).stdout.decode()
    assert f"(and 1000 more, the last at byte {last}, frame 1001)" in told
    assert len(told.splitlines()) == 4


def test_another_explanation_of_one_rule_has_its_own_line():
    body = sse(ROLE, calls(call(0, "a", "f", "")), calls(call(0, "a")), calls(call(0, None, "f", "{}")), CALLED, DONE)
    told = run("lint", "--dialect", "openai-chat", stdin=body).stdout.decode()
    assert told.count("error call_repeat") == 2
    assert "field failure 30" in told
    assert "field failure 36" in told


# -- the table ---------------------------------------------------------------------------------------------------------

LINTERS = {name: dialect.linter() for name, dialect in DIALECTS.items()}


@pytest.mark.parametrize("dialect", LINTERS)
def test_every_rule_has_its_looks_and_no_other(dialect):
    linter: Any = LINTERS[dialect]
    assert set(linter.hints) - {NO_RULE} == {*linter.rules, *READING_RULES}


@pytest.mark.parametrize("dialect", LINTERS)
def test_every_look_names_an_answer_there_is_and_a_case_of_the_list(dialect):
    for rule, looks in LINTERS[dialect].hints.items():
        for look in looks:
            assert look.answer in {*REPAIRS, *ANSWERS}, (rule, look)
            assert look.case is None or look.case in EXPLAINED, (rule, look)


def test_every_case_that_is_named_is_in_the_catalogue_with_its_cause():
    assert {number: named(number) for number in EXPLAINED} == dict(EXPLAINED)


def test_no_case_is_listed_that_nothing_names():
    looks = [look for linter in LINTERS.values() for found in linter.hints.values() for look in found]
    assert set(EXPLAINED) == ({look.case for look in looks} | set(REPAIR_CASES.values())) - {None}


def test_every_repair_has_a_case_or_says_that_it_has_none():
    assert set(REPAIR_CASES) == set(STREAM_REPAIRS)
    assert {case for case in REPAIR_CASES.values() if case is not None} <= set(EXPLAINED)


# -- the how-to --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "status", "told"),
    [
        (DATA, 0, ""),
        (WITHOUT_INDEX, 1, "requests/one.json: not clean\n"),
        (DATA[:1500], 1, "requests/one.json: broken\n"),
    ],
)
def test_the_shell_job_of_the_how_to_tells_what_is_not_clean(tmp_path, answer, status, told):
    """The page's own script, with a ``curl`` that answers from a file."""
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "check-your-server.md").read_text("utf-8")
    (tmp_path / "job.sh").write_text(page.partition("```sh\n#!/bin/sh")[2].partition("```")[0], "utf-8")
    (tmp_path / "answer").write_bytes(answer)
    (tmp_path / "requests").mkdir()
    (tmp_path / "requests" / "one.json").write_text("{}")
    commands = tmp_path / "bin"
    commands.mkdir()
    for name, line in {"curl": "exec cat answer", "streamkit": f'exec "{sys.executable}" -m streamkit "$@"'}.items():
        (commands / name).write_text(f"#!/bin/sh\n{line}\n")
        (commands / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}", "SERVER": "http://localhost"}
    done = subprocess.run(["sh", "job.sh"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (status, told, "")
    assert json.loads((tmp_path / "requests" / "one.lint.json").read_text())["dialect"] == "openai-chat"


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_no_letter_of_the_wires_moves_a_terminal(form, tmp_path):
    frame = json.dumps({"type": "x\x1b[2J", "\x9b31m": "\u202eabc\x7f"}, ensure_ascii=False)
    recording = tmp_path / "a\x9b\u202eb.sse"
    recording.write_text(f"event: message_start\ndata: {{\x9b\u202e\n\nevent: \u202e\x9b31m\x7f\ndata: {frame}\n\n")
    done = run("lint", "--dialect", "anthropic", *form, str(recording))
    told = done.stdout.decode() + done.stderr.decode()
    assert len(told) > 100
    assert all(line.isprintable() for line in told.splitlines())
    if form:
        assert json.loads(done.stdout)["file"] == str(recording)
