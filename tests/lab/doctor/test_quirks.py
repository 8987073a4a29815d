"""O33 with O31: the doctor names the repair that a server needs, for each quirk of the mock that its requests bring out."""

from __future__ import annotations

import pytest

from streamkit.lab.mock import Mock
from streamkit.lab.mock.quirks import quirks_of
from streamkit.report import Status
from tests.lab.doctor.servers import EXAMINED, examined
from tests.sampling import few

#: What no request of an examination brings out: a model that thinks, a custom tool, a failure.
BEYOND = {"reasoning", "custom call", "error"}
#: What a reader does only if it is told to, and what it is named without that.
OTHERWISE = {"continued": "end", "objects_split": "arguments"}
QUIRKS = [(dialect, quirk) for dialect in EXAMINED for quirk in quirks_of(dialect).values()]
SHOWN = [case for case in QUIRKS if not BEYOND & set(case[1].needs)]


def name(case):
    dialect, quirk = case
    return f"{dialect}-{quirk.kind}"


def names(judged):
    """Every kind of repair, and every rule of a finding."""
    repairs = {kind for each in judged.values() if each.check is not None for kind in each.check.report.repairs}
    return repairs | {finding.rule for each in judged.values() for finding in each.findings}


@pytest.mark.parametrize("case", few(SHOWN, 2, "the doctor and quirks", kind=lambda case: case[0], name=name))
async def test_the_repair_of_each_quirk_is_named(case):
    dialect, quirk = case
    judged = await examined(Mock(dialect=dialect, quirks=[quirk.kind]).app(), dialect)
    assert OTHERWISE.get(quirk.kind, quirk.kind) in names(judged)
    assert any(each.status is not Status.DONE for each in judged.values())


@pytest.mark.parametrize("dialect", EXAMINED)
async def test_the_mock_without_a_quirk_is_clean(dialect):
    judged = await examined(Mock(dialect=dialect).app(), dialect)
    assert {each.status for each in judged.values()} == {Status.DONE}
    assert names(judged) <= {"buffered"}


def test_most_quirks_are_brought_out():
    assert len(SHOWN) > 300
    assert {quirk.kind for _, quirk in SHOWN} >= {"index_missing", "stop_with_calls", "body_for_stream", "call_in_text"}
