"""Our own vectors: what each must give, by every driver; and each kind of repair and of loss in at least one (L5)."""

from __future__ import annotations

import pytest
from attrs import asdict

from streamkit.read_options import ReadOptions
from streamkit.recipes import collect, transcode
from streamkit.report import LOSSES, REPAIRS, STREAM_LOSSES, STREAM_REPAIRS, Status, StreamReport
from streamkit.testing import FaultySource, cut_at, open_sources
from tests.laws.running import CLOCK, Outcome, maker, read, translate
from tests.sampling import few_pairs
from tests.vectors import VECTORS

EACH = pytest.mark.parametrize(
    "vector", [pytest.param(v, id=f"{v.dialect}-{v.name}".replace(" ", "-")) for v in VECTORS]
)


def check(vector, found: Outcome):
    assert found.fault.partition(":")[0] == (vector.fault or "")
    assert (found.text(), found.reasoning, found.refusal) == (vector.text, vector.reasoning, vector.refusal)
    calls = [call for call in found.calls if call.choice == 0]
    assert [(c.name, c.arguments, c.verdict.kind) for c in calls] == [
        (c.name, c.arguments, c.verdict) for c in vector.calls
    ]
    for call, expected in zip(calls, vector.calls, strict=True):
        assert expected.id in (None, call.id)
    assert found.stops.get(0) == vector.stop
    assert (found.clean, bool(found.report.clean)) == (vector.clean, vector.clean)
    assert found.error == vector.provider_error
    assert dict(found.report.repairs) == dict(vector.repairs)
    # a frame of another dialect is an event that this one does not know
    assert set(found.report.losses) <= ({"unknown_event"} if vector.fault == "NotThisDialect" else set())
    assert tuple(held.arguments for held in found.report.withheld) == vector.withheld


def told(report: StreamReport) -> dict[str, object]:
    return asdict(report) | {"error": str(report.error)}


@EACH
def test_a_vector_gives_what_it_says_whole_and_byte_by_byte(vector):
    check(vector, read(vector.dialect, [vector.body]))
    check(vector, read(vector.dialect, cut_at(vector.body, list(range(1, len(vector.body))))))


@EACH
async def test_the_stages_collect_the_same(vector):
    response = await collect(FaultySource([vector.body]), vector.dialect, ReadOptions(make_id=maker()))
    assert open_sources() == 0
    assert response.text == vector.text
    assert [(c.name, c.arguments, c.verdict.kind) for c in response.tool_calls] == [
        (c.name, c.arguments, c.verdict) for c in vector.calls
    ]
    assert response.clean == vector.clean
    report = response.report
    assert report.usage == response.usage
    assert (
        (report.started.id, report.started.model) == (response.id, response.model)
        if report.started
        else not response.id
    )
    assert {stop.choice: stop.reason for stop in report.stops} == {
        choice.index: choice.stop_reason for choice in response.choices if choice.stop_reason is not None
    }
    assert dict(response.report.repairs) == dict(vector.repairs)
    assert (response.report.status is Status.DONE) == vector.clean


#: Dialects that have a place for refusals; in all others they are text.
REFUSING = {"openai-chat", "openai-responses"}


@pytest.mark.parametrize(
    ("vector", "target"), few_pairs(VECTORS, "transcode", always=lambda v, target: target in v.losses)
)
async def test_transcode_counts_the_losses_and_says_all_the_same(vector, target):
    report = StreamReport()
    async with transcode(
        FaultySource([vector.body]),
        vector.dialect,
        target,
        ReadOptions(make_id=maker()),
        report=report,
        reencode=True,
        clock=CLOCK,
    ) as stream:
        output = b"".join([piece async for piece in stream])
    assert open_sources() == 0
    expected_output, expected_report = translate(vector.dialect, target, [vector.body], passing=False)
    assert output == expected_output
    assert told(report) == told(expected_report)
    if target in vector.losses:
        expected = vector.losses[target]
        assert {kind: report.losses[kind] for kind in expected} == expected
    again = read(target, [output])
    assert again.clean == vector.clean
    assert again.fault == ""
    text = vector.text if target in REFUSING else vector.text + vector.refusal
    if (
        b'"phase"' in vector.body
    ):  # a blank line is between a commentary and the answer, where a dialect has no place for it
        assert again.text().replace("\n\n", "") == text
    else:
        assert again.text() == text
    if report.losses["block_boundary"]:  # a blank line stands between two blocks in one string
        assert again.reasoning.replace("\n\n", "") == vector.reasoning.replace("\n\n", "")
    else:
        assert again.reasoning == vector.reasoning
    numbers = {"number_out_of_range"} & vector.repairs.keys()  # argument text keeps its numbers, here too
    # a stop that says "run the calls" over a call that broke off is written as it came, and read as a response cut by its length
    cut = {"stop_conflict"} if any(call.verdict == "truncated" for call in vector.calls) else set()
    assert again.report.repairs.keys() <= numbers | cut  # what the encoders write needs no other tolerance


#: Not in the bytes alone: tests/translation/test_pass_through.py, tests/test_policy.py, tests/conversation/test_restore.py, tests/web/test_exchange.py,
#: tests/in_text.
NOT_OF_THE_WIRE = {
    "body_for_stream",
    "continued",
    "stream_for_body",
    "objects_split",
    "custom_input_bare",
    "thinking_in_text",
    "call_in_text",
}


@pytest.mark.parametrize("kind", sorted(STREAM_REPAIRS.keys() - NOT_OF_THE_WIRE))
def test_each_kind_of_repair_is_seen(kind):
    assert any(vector.repairs.get(kind) for vector in VECTORS)


#: No built-in dialect is without a place for reasoning: examples/workers-ai. The other: tests/conversation/test_restore.py.
NOT_OF_OURS = {"reasoning", "custom_tool_members"}
#: Where frames pass within a dialect: tests/translation/test_pass_through.py; where a guard ends a response: tests/rewrite/test_guard.py.
OF_PASSING = {"unclean_call", "blocked"}


@pytest.mark.parametrize("kind", sorted(STREAM_LOSSES.keys() - NOT_OF_OURS - OF_PASSING))
def test_each_kind_of_loss_is_seen(kind):
    assert any(losses.get(kind) for vector in VECTORS for losses in vector.losses.values())


def test_no_kind_is_expected_that_the_tables_do_not_name():
    for vector in VECTORS:
        assert vector.repairs.keys() <= REPAIRS.keys()
        for losses in vector.losses.values():
            assert losses.keys() <= LOSSES.keys()
