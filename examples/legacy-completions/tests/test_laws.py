"""The laws of streamkit, over every vector: see its page on the laws for what each one promises."""

import asyncio
import json
import re

import pytest
from machines import broken_rules, read, write
from vectors import DONE, HEALTHY, VECTORS, chunk, sse

import streamkit
from legacy_completions import DIALECT
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.report import Status, StreamReport
from streamkit.testing import check_stage, cuts

EACH = pytest.mark.parametrize("vector", VECTORS, ids=str)
READABLE = pytest.mark.parametrize("vector", [vector for vector in VECTORS if not vector.fault], ids=str)


@EACH
def test_l1_the_events_are_the_same_however_the_bytes_are_cut(vector):
    whole = read([vector.body])
    for reads in cuts(vector.body, exhaustive=True, pairs_up_to=0):
        found = read(reads)
        assert (found.events, str(found.fault)) == (whole.events, str(whole.fault))
        if whole.fault is None:
            assert found.report.repairs == whole.report.repairs


def complete_after(body: bytes) -> list[tuple[int, bool]]:
    """The completion point, told without the decoder: after each payload, whether every choice so far has its reason."""
    found, reasons, failed = [], {}, False
    for match in re.finditer(rb"^data: (\{.*\})", body, re.MULTILINE):
        try:
            document = json.loads(match[1])
        except ValueError:
            break
        for choice in filter(None, document.get("choices", [])):
            number = choice["index"] if type(choice.get("index")) is int else 0
            reasons[number] = reasons.get(number) or choice.get("finish_reason")
        failed = failed or "error" in document or document.get("object") == "error" or "abort" in reasons.values()
        found.append((match.end(), bool(reasons) and all(reasons.values()) and not failed))
    return found


@READABLE
def test_l3_a_stream_that_was_cut_is_no_success(vector):
    marks = complete_after(vector.body)
    assert (marks[-1][1] if marks else False) == (vector.stop is not None)
    for end in range(len(vector.body) + 1):
        complete = next((done for place, done in reversed(marks) if place <= end), False)
        found = read([vector.body[:end]])
        assert found.clean == complete, f"cut after {end} bytes"
        for target in (DIALECT.name, "anthropic"):
            output, _ = write(found, target)
            assert (b"[DONE]" in output or b"message_stop" in output) == complete, (end, target)


@pytest.mark.parametrize("vector", HEALTHY, ids=str)
def test_l4_and_l5_what_conforms_is_not_repaired(vector):
    assert broken_rules(vector.body, notes=False) == []
    assert read([vector.body]).report.repairs == {}


@EACH
def test_l5_what_is_repaired_breaks_a_rule(vector):
    if vector.repairs and vector.fault is None:
        assert broken_rules(vector.body) != []


@pytest.mark.parametrize("size", [399, 400, 401])
def test_l6_an_endless_event_meets_its_limit(size):
    body = b"data: " + b"x" * (size - 6)
    fault = read([body, b"\n\n"], limits=Limits(line_bytes=400, event_bytes=400)).fault
    assert (type(fault).__name__ == "LineTooLong") == (size > 400)


def test_l6_more_choices_than_the_limit_are_refused():
    body = sse(*[chunk("Hi", index=number) for number in range(5)])
    assert read([body], limits=Limits(choices=5)).fault is None
    assert type(read([body], limits=Limits(choices=4)).fault).__name__ == "TooManyChoices"


def says_done(flow) -> bool:
    return b"[DONE]" in flow if isinstance(flow, bytes) else any(getattr(event, "clean", False) for event in flow)


@READABLE
def test_l7_the_stages_close_at_once(vector):
    frames = DIALECT.parser(DEFAULT_LIMITS, StreamReport()).feed(vector.body)
    if frames:
        asyncio.run(check_stage(streamkit.decode(DIALECT.name), [frames]))
    encode = streamkit.encode(DIALECT.name, make_id=lambda prefix: f"{prefix}1", clock=lambda: 0)
    asyncio.run(check_stage(encode, [read([vector.body]).events], equal=same_text, succeeds=says_done))


def same_text(one: bytes, other: bytes) -> bool:
    return read([one or b""]).events == read([other or b""]).events


def test_a_stream_without_a_reason_is_cut_and_only_the_lenient_take_its_mark_for_an_end():
    body = sse(chunk("Hi"), DONE)
    for policy, status in ((streamkit.TOLERANT, Status.CUT), (streamkit.LENIENT, Status.DONE)):
        response = asyncio.run(streamkit.collect(streamkit.testing.source_of([body]), DIALECT.name, policy=policy))
        assert response.report.status is status
