"""Stages in the mock: every response has passed them, and one that raises or waits is an error that the log names."""

from __future__ import annotations

import asyncio
import json
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from streamkit import UsageError, guard, redact
from streamkit.lab.mock import Call, Cut, Mock, MockTurn, Say, Script, served_mock

SCRIPT = Script([MockTurn([Say("It is ACME-"), Say("4711, look"), Call("f", {"a": "ACME-4711"})])], repeat=True)
CUT = Script([MockTurn([Say("It is ACME-"), Cut("body")])])


async def raises(batches):
    async for batch in batches:
        yield batch
        raise ValueError("private")


async def waits(batches):
    async for batch in batches:
        await asyncio.sleep(0)
        yield batch


def asked(script, stage, *, stream):
    body = {"model": "m", "max_tokens": 9, "stream": stream, "messages": [{"role": "user", "content": "Hi"}]}
    with served_mock(script, dialect="anthropic", stages=[stage]) as mock:
        request = Request(f"{mock.url}/v1/messages", json.dumps(body).encode(), {"Content-Type": "application/json"})
        try:
            with urlopen(request) as response:
                return response.status, response.read().decode()
        except HTTPError as error:
            return error.code, error.read().decode()


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_a_response_has_passed_the_stages(stream):
    status, body = asked(SCRIPT, redact("ACME-4711", replacement="#"), stream=stream)
    assert (status, "4711" in body, body.count("#")) == (200, False, 2)
    status, body = asked(SCRIPT, guard(lambda text: "4711" in text, hold=9), stream=stream)
    assert (status, "4711" in body, '"refusal"' in body) == (200, False, True)


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("stage", [raises, waits])
def test_a_stage_that_raises_or_waits_is_an_error_and_is_named(stage, stream, caplog):
    status, body = asked(SCRIPT, stage, stream=stream)
    assert (status, json.loads(body)["error"]["type"]) == (500, "api_error")
    assert "private" not in body
    assert f"request 1: the response failed in the stage {stage.__name__}" in caplog.text


def test_a_script_that_breaks_off_ends_nothing_that_a_stage_holds():
    status, body = asked(CUT, redact("ACME-4711"), stream=True)
    assert (status, '" is"' in body, "ACME" in body, "message_stop" in body) == (200, True, False, False)


def test_what_is_no_stage_is_refused():
    with pytest.raises(UsageError, match="mock: stages must be a list of stages"):
        Mock(SCRIPT, stages=redact("a"))
