"""Spans end once where an answer is stalled, gone on with by others, or fails inside the gateway (observe.md O2, O5, O6)."""

import logging

import pytest
from opentelemetry.trace import StatusCode

from streamkit.events import TextDelta
from tests.gateway.running import leg
from tests.gateway.test_continuing import SAID, WORDS, answer, broken, is_whole, rest
from tests.gateway.test_slow_readers import LONG, ROOM_BYTES, UNSENT_BYTES
from tests.gateway.test_telemetry import PARENT, PATIENT, by_kind, hexadecimal, traced
from tests.otel.spans import Spans
from tests.web.faults import as_asked, status
from tests.web.serving import eventually


@pytest.fixture
def spans():
    return Spans()


async def test_a_client_that_takes_nothing_is_no_error(spans):
    server = {"stall_s": 0.3, "unsent_bytes": UNSENT_BYTES}
    async with (
        traced(spans, leg(LONG, timeouts=PATIENT), server=server) as running,
        running.client(receive_buffer_bytes=ROOM_BYTES) as reader,
    ):
        await reader.read_headers()
        await eventually(lambda: spans.counts.ended == 2, within_s=20)
        assert await running.outcomes() == {("one", "client_stalled"): 1}
    server, (call,) = by_kind(spans)
    for span in (server, call):
        assert (span.status.status_code, span.attributes.get("error.type")) == (StatusCode.UNSET, None)
        assert span.attributes["streamkit.ending"] == "client_stalled"
    assert call.attributes["gen_ai.response.finish_reasons"] == ("error",)
    assert spans.counts.started == spans.counts.ended == 2


def cut(dialect):
    """An answer that breaks off in the middle of its text."""
    events = answer(SAID, WORDS)
    middle = [place for place, event in enumerate(events) if isinstance(event, TextDelta)][3]
    return broken(dialect, events[:middle])


async def test_an_answer_that_others_go_on_with_is_a_span_for_each(spans):
    """The first breaks off, the second can't go on, the third does."""
    legs = [
        leg(play, dialect=dialect, timeouts=PATIENT)
        for dialect, play in (
            ("anthropic", cut("anthropic")),
            ("ollama", status(500, "ollama")),
            ("anthropic", rest("anthropic")),
        )
    ]
    async with traced(spans, *legs, on_cut="continue") as running:
        is_whole("openai-chat", await running.asked(headers=PARENT))
        await running.outcomes()
    sent = [evil.requests[0].header("traceparent") for evil in running.evils]
    server, calls = by_kind(spans)
    assert spans.counts.started == spans.counts.ended == 4
    assert [call.attributes.get("error.type") for call in calls] == ["broken", "http_500", None]
    assert [call.status.status_code for call in calls] == [StatusCode.ERROR, StatusCode.ERROR, StatusCode.UNSET]
    assert {call.parent.span_id for call in calls} == {server.context.span_id}
    assert sent == ["00-{}-{}-03".format(*hexadecimal(call)) for call in calls]
    assert [call.attributes["gen_ai.response.finish_reasons"] for call in calls] == [("error",), ("error",), ("stop",)]
    assert ["gen_ai.usage.output_tokens" in call.attributes for call in calls] == [False, False, True]
    assert (server.status.status_code, "error.type" in server.attributes) == (StatusCode.UNSET, False)


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_a_stage_that_raises_ends_its_spans(spans, monkeypatch, caplog, stream):
    """A fault of the gateway's own, behind the upstream's first bytes."""
    caplog.set_level(logging.CRITICAL, "streamkit.gateway")
    monkeypatch.setattr("streamkit.tool_calls.accumulate.ToolCallAccumulator.push", lambda *_: 1 / 0)
    async with traced(spans, leg(as_asked("anthropic"), dialect="anthropic", timeouts=PATIENT)) as running:
        await running.asked(stream=stream)
        await running.outcomes()
    server, (call,) = by_kind(spans)
    for span in (server, call):
        assert (span.status.status_code, span.attributes["error.type"]) == (StatusCode.ERROR, "failed")
    assert spans.counts.started == spans.counts.ended == 2
