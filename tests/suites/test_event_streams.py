"""The rules of two public suites for event streams, at the reads given and at every other cut."""

from __future__ import annotations

import pytest

from streamkit.framing.sse import SSEParser
from streamkit.report import StreamReport
from tests.framing.cuts import same_at_every_cut
from tests.suites.event_streams import Case, Event, cases

#: Above it, every cut would take minutes.
SHORT_BYTES = 2000


@pytest.mark.parametrize("case", list(cases()), ids=lambda case: case.rule.replace(" ", "-"))
def test_a_rule_holds_at_every_cut(case: Case):
    report = StreamReport()
    parser = SSEParser(report=report, last_event="drop")
    frames = [frame for read in case.reads for frame in parser.feed(read)] + parser.finish()
    assert [Event(frame.text, frame.event, frame.id) for frame in frames] == list(case.events)
    assert parser.retry == case.retry
    assert report.repairs.get("sse_field_unknown", 0) == case.unknown
    if len(body := b"".join(case.reads)) <= SHORT_BYTES:
        outcome = same_at_every_cut(lambda report: SSEParser(report=report, last_event="drop"), body)
        assert outcome.frames == frames
