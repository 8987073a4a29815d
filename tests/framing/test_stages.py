"""The stages of framing: each has the name of its function, and hands its machine the limits and the pipe's report."""

from __future__ import annotations

import pytest

from streamkit.errors import LimitExceeded
from streamkit.framing.eventstream import parse_eventstream
from streamkit.framing.frame import BEGINNING_BYTES, describe_beginning
from streamkit.framing.json_array import parse_json_array
from streamkit.framing.ndjson import NDJSONParser, parse_ndjson
from streamkit.framing.sse import parse_sse
from streamkit.limits import Limits
from streamkit.report import StreamReport
from tests.framing.binary import event

LONG = b"x" * 100


@pytest.mark.parametrize(
    ("make", "data"),
    [
        (parse_sse, b"data: " + LONG + b"\n\n"),
        (parse_ndjson, b'{"a":"' + LONG + b'"}\n'),
        (parse_json_array, b'[{"a":"' + LONG + b'"}]'),
        (parse_eventstream, event("chunk", LONG)),
    ],
)
def test_a_stage_has_its_functions_name_its_limits_and_the_pipes_report(make, data):
    report = StreamReport()
    bounded = make(limits=Limits(line_bytes=32, event_bytes=32)).make(report)
    bounded.feed(data)
    assert isinstance(bounded.fault, LimitExceeded)
    assert (make().name, make().takes, make().gives) == (make.__name__, "bytes", "frames")
    make().make(report).feed(data)
    assert report.frames == 1


@pytest.mark.parametrize("page", ["<!DOCTYPE html>", "<html lang='en'>", "<HEAD>", "<body class='a'>"])
def test_a_page_is_told_by_its_first_tag(page):
    assert describe_beginning(page.encode()).startswith("an HTML page (")


def test_white_space_in_front_of_what_is_no_object_changes_nothing_of_what_is_said():
    said = []
    for data in [b"nonsense\n", b" " * BEGINNING_BYTES + b"nonsense\n", b"\t \r" + b"nonsense\n"]:
        parser = NDJSONParser()
        parser.feed(data)
        said.append(str(parser.fault))
    assert len(set(said)) == 1


def test_the_place_of_the_first_line_that_is_no_object_is_told():
    parser = NDJSONParser()
    parser.feed(b"\n \nnonsense\n")
    assert parser.fault.offset == 3
