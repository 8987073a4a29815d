"""Every dialect into every other: what is written is the dialect, and what is lost is in the table of the pair.

That the official clients read it, and read the same, is ``tests/clients``.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from streamkit import parse_arguments
from streamkit.dialects import DIALECTS
from streamkit.dialects.streams.carrier import APART, PHASE
from streamkit.events import Aside
from streamkit.limits import DEFAULT_LIMITS
from streamkit.report import STREAM_LOSSES, StreamReport
from tests.corpora import CORPORA
from tests.laws.running import OURS, Outcome, read, recorded, translate
from tests.pairs import LOSSES

ROOT = Path(__file__).resolve().parents[1]
PAIRS = list(product(DIALECTS, DIALECTS))
#: What the model itself wrote as no JSON stays what it is, where argument text is text.
THE_MODELS_OWN = {"arguments_json", "input_unparsable"}


@cache
def said_in(stream: Any) -> Outcome:
    return read(stream.dialect, [stream.body])


@cache
def streams(source: str) -> list[Any]:
    return [stream for stream in (*OURS, *recorded()) if stream.dialect == source]


def allowed(source: str, target: str) -> set[str]:
    return set(LOSSES[source][target].split())


def test_the_table_has_every_pair_and_no_other():
    assert list(LOSSES) == list(DIALECTS)
    assert all(list(row) == list(DIALECTS) for row in LOSSES.values())
    assert all(allowed(source, target) <= STREAM_LOSSES.keys() for source, target in PAIRS)


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_what_is_written_is_the_dialect_and_what_is_lost_is_in_the_table(source, target):
    lost: dict[str, list[str]] = defaultdict(list)
    complaints = []
    for stream in streams(source):
        output, report = translate(source, target, [stream.body], passing=False)
        for kind in report.losses:
            lost[kind].append(stream.name)
        if report.clean:
            complaints += [f"{stream.name}: {found}" for found in broken(target, output)]
            complaints += [f"{stream.name}: {what}" for what in missing(said_in(stream), target, output)]
    assert not complaints, "\n".join(complaints[:20])
    beyond = {kind: names[0] for kind, names in lost.items() if kind not in allowed(source, target)}
    assert not beyond, f"{source} into {target} loses what its cell does not allow"
    if CORPORA is not None:
        assert lost.keys() == allowed(source, target)


def broken(dialect: str, output: bytes) -> list[Any]:
    named = DIALECTS[dialect]
    parser, linter = named.parser(DEFAULT_LIMITS, StreamReport()), named.linter()
    found = [*linter.feed(parser.feed(output)), *linter.feed(parser.finish()), *linter.finish()]
    assert parser.fault is None
    return [one for one in found if one.severity == "error" and one.rule not in THE_MODELS_OWN]


def missing(said: Outcome, target: str, output: bytes) -> list[str]:
    """Text, and calls whose arguments are complete: of the first choice, which every dialect has."""
    seen = read(target, [output])
    first = next(
        iter(dict.fromkeys(getattr(event, "choice", None) for event in said.events if hasattr(event, "choice"))), 0
    )
    found = []
    expected, text = said.text(choice=first) + said_refusal(said, first), seen.text() + seen.refusal
    if any(isinstance(event, Aside) and event.type == PHASE for event in said.events):
        text = text.replace(APART, "", 1)  # commentary is apart from the answer
    if expected != text:
        found.append("not the same text")
    names = [call.name for call in seen.calls]
    values = [(call.name, parse_arguments(call.arguments)) for call in seen.calls if is_object(call)]
    for call in said.calls:
        if call.choice != first or not call.name or not good(call):
            continue
        if call.name not in names or (is_object(call) and (call.name, parse_arguments(call.arguments)) not in values):
            found.append(f"the call {call.name} is not there")
    return found


def said_refusal(said: Outcome, choice: int) -> str:
    return "".join(
        event.text for event in said.events if type(event).__name__ == "RefusalDelta" and event.choice == choice
    )


def good(call: Any) -> bool:
    return call.verdict.kind in {"complete", "empty"}


def is_object(call: Any) -> bool:
    """Arguments by value; the input of a custom tool is free text."""
    return good(call) and call.kind != "custom"
