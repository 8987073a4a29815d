"""Stages of one's own in ``transcode`` and ``collect``."""

from __future__ import annotations

import pytest

from streamkit import ReadOptions, StreamReport, ToolSchemas, collect, redact, transcode
from streamkit.dialects import DIALECTS
from streamkit.events import UsageReported
from streamkit.testing import source_of
from tests.cli.command import DEMO
from tests.laws.running import read

TOOLS = ToolSchemas({"get_weather": {"properties": {"city": {"enum": ["Oslo", "Reykjavík"]}}}, "get_time": {}})


async def no_usage(batches):
    async for batch in batches:
        if kept := [event for event in batch if not isinstance(event, UsageReported)]:
            yield kept


@pytest.mark.parametrize("target", DIALECTS)
async def test_what_a_client_gets_has_passed_the_stages(target):
    report = StreamReport()
    stages = [redact("Reykjavík", replacement="there"), no_usage]
    async with transcode(source_of([DEMO.read_bytes()]), "openai-chat", target, stages=stages, report=report) as stream:
        output = b"".join([chunk async for chunk in stream])
    assert "Reykjavík".encode() not in output
    outcome = read(target, [output])
    assert [call.verdict.kind for call in outcome.calls] == ["complete", "complete"]
    assert "there" in outcome.calls[0].arguments
    assert not any(event.counts for event in outcome.events if isinstance(event, UsageReported))
    assert report.verdicts == {"complete": 2}
    assert report.status == 0


@pytest.mark.parametrize(("replacement", "verdict"), [("Oslo", "complete"), ("nowhere", "schema_invalid")])
async def test_the_verdict_is_about_the_changed_arguments(replacement, verdict):
    options = ReadOptions(tools=TOOLS)
    stages = [redact("Reykjavík", replacement=replacement)]
    response = await collect(source_of([DEMO.read_bytes()]), "openai-chat", options, stages=stages)
    assert response.choices[0].tool_calls[0].verdict.kind == verdict
    assert +response.report.verdicts == ({"complete": 2} if verdict == "complete" else {"complete": 1, verdict: 1})


async def test_without_stages_frames_pass():
    body = DEMO.read_bytes()
    async with transcode(source_of([body]), "openai-chat", "openai-chat") as stream:
        assert b"".join([chunk async for chunk in stream]) == body
