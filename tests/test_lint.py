from __future__ import annotations

from typing import Any

import pytest

from streamkit.dialects import DIALECTS
from streamkit.dialects.linting import ANSWERS, NO_RULE, READING_RULES, REPAIR_CASES, PayloadChecker
from streamkit.dialects.linting import CASES as EXPLAINED
from streamkit.errors import SourceFailed
from streamkit.lint import Check
from streamkit.report import REPAIRS, STREAM_REPAIRS, Status
from streamkit.testing import cuts
from tests.cli.command import DEMO
from tests.sampling import part_of, parts
from tests.vectors.field import CASES, ELSEWHERE
from tests.vectors.openai_chat import DONE, ROLE, STOP
from tests.vectors.vector import sse

DATA = DEMO.read_bytes()
WITHOUT_INDEX = DATA.replace(b'"index": 1, "function"', b'"function"')
HEAD = sse(ROLE)


def checked(dialect: str, body: bytes) -> Check:
    check = Check(dialect)
    check.feed(body)
    check.finish()
    return check


def cases_of(check: Check) -> set[int | None]:
    return {found.explanation.case for found in check.found}


def named(number: int) -> str:
    return next(case.cause for case in (*CASES, *ELSEWHERE) if case.number == number)


def test_a_source_that_failed_breaks_a_stream_of_which_no_rule_is_known():
    check = Check("openai-chat")
    check._linter = PayloadChecker()  # that of a dialect without a grammar
    check.feed(sse(ROLE))
    check.break_off(SourceFailed("gone"))
    assert (check.finish(), check.violations) == (Status.FAILED, [])


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


@pytest.mark.parametrize("part", parts(8))
def test_what_is_found_does_not_depend_on_the_cuts(part):
    for case in part_of(CASES, part):
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
