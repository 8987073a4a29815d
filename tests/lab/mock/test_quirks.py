"""Quirks by name, and those of an answer's form and end, which no single stream's bytes can show."""

from __future__ import annotations

import pytest
from attrs import evolve

from streamkit.conversation.response_events import response_events
from streamkit.dialects import DIALECTS
from streamkit.errors import SourceFailed, UsageError
from streamkit.lab.mock.quirks import KINDS, quirks_of
from streamkit.lab.mock.writing import Answer
from streamkit.recipes import transcode
from streamkit.report import STREAM_REPAIRS, StreamReport
from streamkit.testing import FaultySource
from streamkit.translation.bodies import decode_response
from tests.laws.quirky import Said, conforming, conforming_body, said
from tests.whole_answers import ANSWERING_WHOLE


def test_the_table_describes_every_repair_in_their_order():
    assert list(KINDS) == list(STREAM_REPAIRS)


@pytest.mark.parametrize("dialect", DIALECTS.built_in)
def test_the_quirks_of_a_dialect_are_repairs_in_their_order(dialect):
    assert DIALECTS[dialect].quirks.keys() <= STREAM_REPAIRS.keys()
    assert [kind for kind in STREAM_REPAIRS if kind in quirks_of(dialect)] == list(quirks_of(dialect))


def test_a_quirk_that_no_repair_is_named_as_is_refused(monkeypatch):
    odd = evolve(DIALECTS["ollama"], quirks={"no_such": lambda frames: frames})
    monkeypatch.setattr("streamkit.lab.mock.quirks.dialect_named", lambda _name: odd)
    with pytest.raises(UsageError, match="ollama has quirks without a repair of the same name: 'no_such'"):
        quirks_of("ollama")


@pytest.mark.parametrize("dialect", [name for name in DIALECTS.built_in if "index_invalid" in DIALECTS[name].quirks])
def test_an_index_that_is_not_there_becomes_none(dialect):
    make = DIALECTS[dialect].quirks["index_invalid"]
    without = b'data: {"choices":[{"delta":{"tool_calls":[{"id":"c"}]}}],"candidates":[{"content":{}}]}\n\n'
    assert make((without,)) == (without,)


@pytest.mark.parametrize("dialect", [name for name in ANSWERING_WHOLE if "body_for_stream" in quirks_of(name)])
@pytest.mark.parametrize("name", ["calls", "text"])
def test_a_stream_becomes_the_body_that_says_the_same(dialect, name):
    streamed = conforming(dialect, name)
    body = quirks_of(dialect)["body_for_stream"].apply(streamed)
    assert (body.streamed, body.content_type, len(body.frames)) == (False, "application/json", 1)
    report = StreamReport()
    read = Said.of(response_events(decode_response(body.body, dialect, report=report)))
    assert report.repairs == {}
    assert evolve(read, clean=True) == said(streamed)[0]


@pytest.mark.parametrize("dialect", ANSWERING_WHOLE)
@pytest.mark.parametrize("name", ["calls", "text"])
def test_a_body_becomes_the_stream_that_says_the_same(dialect, name):
    body = conforming_body(dialect, name)
    streamed = quirks_of(dialect)["stream_for_body"].apply(body)
    assert (streamed.streamed, streamed.content_type) == (True, DIALECTS[dialect].media_type)
    assert len(streamed.frames) >= 2
    read, report = said(streamed)
    assert report.repairs == {}
    assert read == said(conforming(dialect, name))[0]


def test_a_body_of_one_line_is_a_stream_too():
    """In a dialect of lines nobody can tell the one from the other."""
    _, report = said(evolve(conforming_body("ollama", "calls"), streamed=True))
    assert report.repairs == {}
    assert report.clean
    assert "body_for_stream" not in quirks_of("ollama")


@pytest.mark.parametrize("kind", ["body_for_stream", "fault_after_end"])
def test_a_stream_that_failed_has_no_end_to_change(kind):
    failed = conforming("openai-chat", "error")
    assert quirks_of("openai-chat")[kind].apply(failed) == failed


def test_an_error_over_http_stays():
    refused = Answer(
        dialect="openai-chat", frames=(b"{}",), content_type="application/json", streamed=False, status=503
    )
    for quirk in quirks_of("openai-chat").values():
        assert quirk.apply(refused) == refused


@pytest.mark.parametrize("dialect", DIALECTS.built_in)
def test_the_connection_closes_behind_the_first_text(dialect):
    answer = conforming(dialect, "text")
    cut = quirks_of(dialect)["continued"].apply(answer)
    assert (cut.end, cut.frames) == ("cut", answer.frames[: len(cut.frames)])
    read, _ = said(cut)
    assert read.text
    assert not read.clean


@pytest.mark.parametrize("dialect", DIALECTS.built_in)
async def test_the_connection_is_reset_behind_the_end(dialect):
    answer = conforming(dialect, "calls")
    reset = quirks_of(dialect)["fault_after_end"].apply(answer)
    assert reset == evolve(answer, end="reset")
    report = StreamReport()
    source = FaultySource(reset.frames, fail_after=len(reset.frames), error=SourceFailed("reset"))
    async with transcode(source, dialect, "openai-chat", report=report) as output:
        async for _ in output:
            pass
    assert report.repairs == {"fault_after_end": 1}
    assert report.clean
