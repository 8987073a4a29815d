"""How long an answer took, in a dialect whose servers say so: measured since the request was sent."""

import orjson
import pytest

from tests.gateway.running import asking, behind
from tests.web.evil import Delay, Script
from tests.web.faults import good, whole

COUNTS = ["total_duration", "load_duration", "prompt_eval_count", "prompt_eval_duration", "eval_count", "eval_duration"]
NS = 1_000_000_000


def late(script, seconds):
    return Script((Delay(seconds), *script.steps))


async def answered(path, body, upstream):
    async with behind(upstream) as running:
        return await running.ask(path, body=orjson.dumps(body))


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_ollamas_last_line_has_all_its_counts_in_nanoseconds(stream):
    script = good("openai-chat", delay_s=0.02) if stream else whole("openai-chat")
    answer = await answered(*asking("ollama", stream=stream), late(script, 0.3))
    last = orjson.loads(answer.body.splitlines()[-1])
    assert [name for name in last if name in COUNTS] == COUNTS
    assert 0.3 * NS <= last["total_duration"] < 20 * NS
    assert last["load_duration"] == 0
    assert last["prompt_eval_duration"] + last["eval_duration"] <= last["total_duration"] + 1
    assert last["eval_duration"] > (0.1 * NS if stream else 0.3 * NS - 2)
    if stream:
        assert last["prompt_eval_duration"] >= 0.3 * NS
