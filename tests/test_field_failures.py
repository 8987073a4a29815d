"""The catalogue of field failures, case by case: whole, byte by byte and at seeded cuts, read and translated."""

from __future__ import annotations

import ast
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from streamkit.dialects import DIALECTS
from streamkit.dialects.profiles import Encoding
from streamkit.errors import StreamError
from streamkit.machines import Chain
from streamkit.report import LOSSES, REPAIRS, StreamReport
from streamkit.testing import cuts
from tests.laws.running import CLOCK, machines, maker, read
from tests.vectors.field import CASES, ELSEWHERE, FIRST_NUMBERS
from tests.vectors.field.case import Case, Form
from tests.vectors.field.outputs import SEE

ROOT = Path(__file__).resolve().parents[1]
#: Longer streams are cut at a few places, not at every byte.
SHORT = 32 * 1024
EACH = [(case, form) for case in CASES for form in case.forms]


def named(case: Case, form: Form) -> str:
    return f"case-{case.number}-{form.name or form.dialect}".replace(" ", "-")


def parameters(*, is_open: bool) -> list[Any]:
    return [pytest.param(form, id=named(case, form)) for case, form in EACH if (form.open is not None) == is_open]


def reads_of(form: Form) -> list[list[bytes]]:
    """Whole, byte by byte, seeded single cuts and pairs, random cuts."""
    found = list(cuts(form.body, seed=len(form.body), sample=4))
    return found if len(form.body) <= SHORT else found[:1] + found[2:]


def translated(form: Form, target: str, reads: list[bytes]) -> tuple[bytes, StreamReport]:
    """The recipe ``transcode`` with ``reencode``, without an event loop."""
    report, output, output_profile = StreamReport(), [], form.to[target].profile
    chain = Chain(*machines(form.provider or form.dialect, report, policy=form.policy, offered=form.offered))
    encoder = DIALECTS[target].encoder(Encoding(make_id=maker(), clock=CLOCK, profile=output_profile), report)
    try:
        for chunk in reads:
            output.append(encoder.feed(chain.feed(chunk)))
            if (fault := encoder.fault or chain.fault) is not None:
                raise fault
        output.append(encoder.feed(chain.finish()))
        if (fault := encoder.fault or chain.fault) is not None:
            raise fault
        output.append(encoder.finish())
    except StreamError as error:
        report.failed(error)
        output.append(encoder.fail(error))
    return b"".join(output), report


def check_events(form: Form, reads: list[bytes]) -> None:
    """What the stream means, and every tolerance that it took."""
    found = read(form.provider or form.dialect, reads, policy=form.policy, offered=form.offered)
    assert found.fault.partition(":")[0] == (form.fault or "")
    assert (found.text(), found.reasoning, found.refusal) == (form.text, form.reasoning, form.refusal)
    assert [(c.id, c.name, c.arguments, c.verdict.kind) for c in found.calls] == [
        (c.id, c.name, c.arguments, c.verdict) for c in form.calls
    ]
    assert found.stops.get(0) == form.stop
    assert (found.clean, bool(found.report.clean)) == (form.clean, form.clean)
    assert found.error == form.provider_error
    assert found.report.repairs == Counter(form.repairs)
    assert not found.report.losses
    assert tuple(held.arguments for held in found.report.withheld) == form.withheld


def check_output(form: Form, target: str, reads: list[bytes]) -> bytes:
    """What a client of another dialect sees, and every loss on the way."""
    expected = form.to[target]
    output, report = translated(form, target, reads)
    seen = SEE[target](output)
    assert tuple(seen.said) == expected.said
    assert (seen.stop, seen.error) == (expected.stop, expected.error)
    assert report.losses == Counter(expected.losses)
    assert tuple(held.arguments for held in report.withheld) == form.withheld + expected.withheld
    if expected.usage is not None:
        assert seen.usage == expected.usage
    assert [part for part in expected.holds if part not in output] == []
    assert [part for part in expected.lacks if part in output] == []
    return output


def check(form: Form, *, every: bool = False) -> None:
    """Whole in each dialect of the case; cut in each of them at ``every`` cut, or in one by turns."""
    targets = list(form.to)
    for number, reads in enumerate(reads_of(form)):
        check_events(form, reads)
        for target in targets if every or not number else [targets[(number + len(form.body)) % len(targets)]]:
            check_output(form, target, reads)
    for target, expected in form.to.items():
        if expected.body is not None:
            assert check_output(form, target, [form.body]) == expected.body


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("form", parameters(is_open=False))
def test_the_stream_of_a_case_means_what_it_says_and_is_written_right(form, every):
    check(form, every=every)


@pytest.mark.parametrize("form", parameters(is_open=True))
def test_an_open_case_still_fails(form):
    with pytest.raises(AssertionError):
        check(form)


# -- the catalogue itself ----------------------------------------------------------------------------------------------


def test_every_case_is_there_once():
    numbers = sorted(case.number for case in (*CASES, *ELSEWHERE))
    assert numbers[: len(FIRST_NUMBERS)] == list(FIRST_NUMBERS)
    assert [number for number, times in Counter(numbers).items() if times > 1] == []


def test_the_cases_of_a_section_stand_in_order():
    numbers = [case.number for case in CASES]
    assert numbers == sorted(numbers)
    assert [case.number for case in ELSEWHERE] == sorted(case.number for case in ELSEWHERE)


@cache
def functions_in(file: str) -> set[str]:
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


TESTS = [(case.number, case.covered_by) for case in ELSEWHERE if case.covered] + [
    (case.number, case.beside) for case in CASES if case.beside is not None
]


@pytest.mark.parametrize(("number", "test"), TESTS, ids=lambda value: f"case-{value}" if isinstance(value, int) else "")
def test_what_covers_a_case_elsewhere_exists(number, test):
    file, _, name = test.partition("::")
    assert name in functions_in(file)


@pytest.mark.parametrize("case", [*CASES, *ELSEWHERE], ids=lambda case: f"case-{case.number}")
def test_a_case_says_what_it_is_about(case):
    assert case.refs
    assert "#" in case.refs or case.number == 107 or case.number not in FIRST_NUMBERS
    assert case.cause[0].islower() or case.cause.startswith(("UTF-8", "`"))
    assert case.does.endswith(".")
    assert not case.cause.endswith(".")


def test_every_vector_shows_its_meaning_in_another_dialect():
    for case, form in EACH:
        assert form.to, named(case, form)
    for case in CASES:
        assert any(target != form.dialect for form in case.forms for target in form.to), case.number


def test_the_names_of_streams_differ():
    names = [named(case, form) for case, form in EACH]
    assert [name for name, times in Counter(names).items() if times > 1] == []


def test_repairs_and_losses_are_of_the_tables():
    for _, form in EACH:
        assert form.repairs.keys() <= REPAIRS.keys()
        for output in form.to.values():
            assert output.losses.keys() <= LOSSES.keys()


def test_the_streams_are_our_own_and_short():
    long = [named(case, form) for case, form in EACH if len(form.body) > 8192]
    assert long == ["case-105-a-line-of-600-KiB"]


def test_few_cases_are_open():
    """A count that may fall and must not grow without a word: each open one is named with its reason in the table."""
    assert len([case for case in CASES if case.open]) <= 8


def test_an_unexpected_difference_is_seen():
    """The checks fail where they must: another text, repair, loss or output."""
    case = CASES[0]
    form = case.forms[0]
    wrong: list[dict[str, Any]] = [{"text": "!"}, {"repairs": {}}, {"calls": ()}, {"stop": "stop"}]
    for change in wrong:
        with pytest.raises(AssertionError):
            check(evolve(form, **change))
    right = form.to["anthropic"]
    for change in (
        {"losses": {}},
        {"said": right.said[::-1]},
        {"stop": "end_turn"},
        {"holds": (b"nowhere",)},
        {"body": b""},
    ):
        with pytest.raises(AssertionError):
            check(evolve(form, to={"anthropic": evolve(right, **change)}))
