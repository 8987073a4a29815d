"""The record of a request: what is left of it when it is over, as values for one line of the log."""

import json
from collections import Counter

import orjson
import pytest
from attrs import evolve

from streamkit.events import ProviderFailed
from streamkit.gateway.record import DETAIL_CHARS, Attempt, Record
from streamkit.report import StageTiming, StreamReport
from streamkit.web.observers import OutputTimes


def record(**values):
    return Record("req_1", "POST", "/v1/messages", **{"client": "anthropic", "model": "m", "status": 200, **values})


def attempt(outcome="success", *, detail="", asked=(), model="m", **counts):
    report = StreamReport()
    for name, found in counts.items():
        getattr(report, name).update(found)
    lost = StreamReport()
    lost.losses.update(asked)
    return Attempt("one", outcome, 0.12345, detail, report, lost, model=model)


def test_a_line_says_what_was_asked_and_what_became_of_it():
    line = record(route="claude", stream=True, ending="whole", seconds=1.23456, first_byte_s=0.98765, keep_alives=2)
    assert line.document() == {
        "request_id": "req_1",
        "method": "POST",
        "path": "/v1/messages",
        "client": "anthropic",
        "model": "m",
        "route": "claude",
        "stream": True,
        "status": 200,
        "ending": "whole",
        "seconds": 1.235,
        "first_byte_s": 0.988,
        "keep_alives": 2,
    }


def test_a_line_says_nothing_of_what_there_is_not():
    assert (
        not {"attempts", "error", "verdicts", "repairs", "losses", "first_byte_s", "model"}
        & record(model="").document().keys()
    )


def test_each_leg_stands_in_its_order_with_what_its_upstream_said():
    line = record(attempts=[attempt("http_429", detail="slow down"), attempt()]).document()
    assert line["attempts"] == [
        {"upstream": "one", "outcome": "http_429", "seconds": 0.123, "detail": "slow down"},
        {"upstream": "one", "outcome": "success", "seconds": 0.123},
    ]


def test_a_leg_has_the_upstreams_name_of_the_model_if_it_is_another():
    legs = record(attempts=[attempt(model="m-large"), attempt()]).document()["attempts"]
    assert [leg.get("model") for leg in legs] == ["m-large", None]


def test_what_the_client_was_told_does_not_stand_twice():
    line = record(
        error="no room", attempts=[attempt("http_429", detail="slow down"), attempt("http_503", detail="no room")]
    )
    assert [attempt.get("detail") for attempt in line.document()["attempts"]] == ["slow down", None]


def test_verdicts_repairs_and_losses_are_those_of_the_leg_that_answered():
    first = attempt("broken", verdicts={"truncated": 9}, repairs={"id_missing": 9})
    last = attempt(verdicts={"complete": 2}, repairs={"index_reused": 3}, losses={"call_id": 2}, asked={"parameter": 1})
    line = record(attempts=[first, last]).document()
    assert line["verdicts"] == {"complete": 2}
    assert line["repairs"] == {"index_reused": 3}
    assert line["losses"] == {"call_id": 2, "parameter": 1}


def test_timings_are_those_of_the_last_leg_and_rows_of_one_name_are_added():
    """An answer that another upstream went on with was read by one pipe and written by another."""
    first, last = attempt("broken"), attempt()
    first.report.timings = (StageTiming("source", 9.0, 9, 9),)
    last.report.timings = (
        StageTiming("source", 1.5, 0, 7),
        StageTiming("pipe", 0.00012341, 7, 6),
        StageTiming("encode anthropic", 0.002, 6, 5),
        StageTiming("pipe", 0.00100025, 6, 5),
    )
    assert record(attempts=[first, last]).document()["timings"] == {
        "source": {"ms": 1500.0, "items_in": 0, "items_out": 7},
        "pipe": {"ms": 1.124, "items_in": 13, "items_out": 11},
        "encode anthropic": {"ms": 2.0, "items_in": 6, "items_out": 5},
    }


def test_what_an_upstream_says_at_length_is_cut():
    line = record(error="e" * 100_000, attempts=[attempt("http_400", detail="d" * 100_000)]).document()
    assert line["error"] == "e" * (DETAIL_CHARS - 1) + "…"
    assert line["attempts"][0]["detail"] == "d" * (DETAIL_CHARS - 1) + "…"


def test_a_line_is_json_and_holds_none_of_the_reports_texts():
    report = StreamReport(broken_frame=b"torso", provider_error=("server", "their words"))
    report.failure = ProviderFailed("server", "their words")
    report.withhold("call_withheld", "call_1", "weather", '{"city":')
    line = record(attempts=[Attempt("one", "cut", 1.0, "", report, StreamReport())]).document()
    text = orjson.dumps(line).decode()
    assert json.loads(text) == line
    assert not any(word in text for word in ("torso", "their words", "weather", "city"))


@pytest.mark.parametrize("name", ["verdicts", "output_verdicts", "repairs", "losses"])
def test_counts_are_copies(name):
    found = attempt(**{name: {"x": 1}})
    record(attempts=[found]).document()[name]["x"] = 2
    assert getattr(found.report, name) == Counter({"x": 1})


def test_an_attempt_that_was_hedged_out_stands_before_the_one_that_responded_and_adds_no_overhead():
    """The slower one may end before or after the faster one."""
    times = OutputTimes()
    times.first_at = 6.0
    won = evolve(attempt(), started=1.0, output_times=times)
    lost = evolve(attempt("hedged_out"), started=3.0)
    for order in (won, lost), (lost, won):
        found = record(started=0.5, wrote_at=6.25)
        found.add(evolve(attempt("http_500"), started=1.0, reason="server_error"))
        for each in order:
            found.add(each)
        assert [each.outcome for each in found.attempts] == ["http_500", "hedged_out", "success"]
        assert found.overhead_s == 0.5 + 0.25
    hedged = record(attempts=[lost, won], started=0.5, wrote_at=6.25)
    assert hedged.overhead_s == 0.5 + 0.25
