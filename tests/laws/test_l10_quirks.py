"""L10: a quirk makes of a conforming answer one that needs just its repair, and what the answer means stays.

A quirk is what the mock does otherwise than its dialect (``streamkit/lab/mock/quirks.py``). Here our readers read it; for the
gateway the same is asked by ``tests/gateway/test_quirks.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import pytest
from attrs import evolve, frozen

from streamkit.cli.lint import Check
from streamkit.dialects import DIALECTS
from streamkit.lab.mock.quirks import KINDS, quirks_of
from streamkit.policy import TOLERANT, Policy
from streamkit.report import STREAM_REPAIRS, Status
from tests.laws.quirky import ANSWERS, Said, conforming, said
from tests.sampling import few

#: What a reader is to be set to, where its defaults repair nothing.
POLICIES: Final[Mapping[str, Policy]] = {
    "thinking_in_text": evolve(TOLERANT, think_tags="on"),
    "call_in_text": evolve(TOLERANT, text_calls=("hermes",)),
    "objects_split": evolve(TOLERANT, two_objects="split"),
}
#: Not in the bytes of a stream: tests/lab/mock/test_quirks.py.
OF_THE_CONNECTION: Final = frozenset({"body_for_stream", "stream_for_body", "continued", "fault_after_end"})


@frozen
class Case:
    dialect: str
    kind: str

    def __str__(self) -> str:
        return f"{self.dialect}-{self.kind}"


CASES: Final = [
    Case(dialect, kind) for dialect in DIALECTS.built_in for kind in quirks_of(dialect) if kind not in OF_THE_CONNECTION
]


def adds_to_text(mark: str) -> Callable[[Said, Said], bool]:
    return lambda before, after: (
        after.text != before.text and evolve(after, text=after.text.replace(mark, "")) == before
    )


def adds_to_arguments(before: Said, after: Said) -> bool:
    (name, arguments), *others = before.calls
    (_, longer), *_ = after.calls
    return longer.startswith(arguments[:-1]) and evolve(after, calls=((name, arguments), *others)) == before


def leaves_a_call_open(before: Said, after: Said) -> bool:
    """The end of the message closes a block, but not the braces of a call that comes in parts."""
    (name, arguments), *others = after.calls
    return evolve(after, calls=((name, f"{arguments}}}"), *others)) == before


def names_no_call(before: Said, after: Said) -> bool:
    """Nobody can run a call without a name, so that the answer has failed."""
    names = tuple(name for name, _ in after.calls)
    failed = "the model called a tool without a name" if before.clean else before.error
    same = evolve(before, calls=after.calls, stop=None, clean=False, error=failed) == after
    return same and names == ("", *(name for name, _ in before.calls[1:]))


def says_one_text_more(before: Said, after: Said) -> bool:
    return before.text in after.text and evolve(after, text=before.text) == before


#: How the meaning differs, for kinds whose repair can't bring all of it back, or which add what they need.
DIFFERENT: Final[Mapping[str, Callable[[Said, Said], bool]]] = {
    "invalid_utf8": adds_to_text("\ufffd"),
    "lone_surrogate": adds_to_text("\ufffd"),
    "character_cut": adds_to_text("\N{GRINNING FACE}"),
    "field_invalid": lambda before, after: evolve(after, tokens=before.tokens) == before,
    "call_in_text": lambda before, after: evolve(after, text=after.text.rstrip("\n")) == before,
    "block_unclosed": lambda before, after: before == after or leaves_a_call_open(before, after),
    "block_mismatch": says_one_text_more,
    "arguments_gap": adds_to_arguments,
    "arguments_out_of_order": adds_to_arguments,
    "objects_split": lambda before, after: (
        after == evolve(before, calls=(before.calls[0], (before.calls[0][0], before.calls[1][1])))
    ),
    "call_nameless": names_no_call,
}


@pytest.mark.parametrize("case", few(CASES, 5, "l10", kind=lambda case: case.dialect))
def test_a_reader_makes_just_that_repair(case):
    quirk = quirks_of(case.dialect)[case.kind]
    policy = POLICIES.get(case.kind, TOLERANT)
    changed = 0
    for name in ANSWERS:
        answer = conforming(case.dialect, name)
        meant, report = said(answer)
        assert report.repairs == {}
        quirky = quirk.apply(answer)
        assert quirk.apply(answer) == quirky
        if quirky == answer:
            assert not meant.holds >= set(quirk.needs), name
            continue
        changed += 1
        read, report = said(quirky, policy)
        assert report.repairs.keys() == {case.kind, *quirk.also}, name
        assert DIFFERENT.get(case.kind, Said.__eq__)(meant, read), (name, meant, read)
    assert changed


@pytest.mark.parametrize(
    "case",
    few(
        [case for case in CASES if not KINDS[case.kind].reader], 2, "l10 lint", kind=lambda case: case.dialect
    ),
)  # fmt: skip
def test_lint_names_the_repair(case):
    """But for what no reader repairs unless it is set to."""
    quirk = quirks_of(case.dialect)[case.kind]
    for name in ANSWERS:
        answer = conforming(case.dialect, name)
        quirky = quirk.apply(answer)
        if quirky == answer:
            continue
        check = Check(case.dialect)
        for frame in quirky.frames:
            check.feed(frame)
        assert check.finish() is not Status.DONE
        assert check.report.repairs.keys() == {case.kind, *quirk.also}
        assert case.kind in {kind for found in check.found for kind in found.explanation.repairs}


def test_there_is_a_quirk_for_every_repair():
    found = {kind for dialect in DIALECTS.built_in for kind in quirks_of(dialect)}
    assert [kind for kind in STREAM_REPAIRS if kind not in found] == []
