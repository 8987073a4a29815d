"""InvokeModelWithResponseStream: what passes through us, as boto3 reads it; and what botocore skips and refuses."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Any

import pytest

from streamkit import transcode
from streamkit.dialects import keep_alive
from streamkit.testing import source_of
from tests.clients.read_bedrock import fold_bedrock
from tests.framing.binary import chunks, event, exception
from tests.vectors import anthropic as am
from tests.vectors import bedrock

EVENTS = [am.START, *am.block(0, "Hi"), am.finish("end_turn"), am.STOP]


def invoked(client: Any, name: str) -> list[Any]:
    """The model's own events."""
    answer = client.invoke_model_with_response_stream(modelId=name, body=b"{}")
    with closing(answer["body"]) as stream:
        return [json.loads(part["chunk"]["bytes"]) for part in stream]


async def passed(body: bytes) -> bytes:
    async with transcode(source_of([body]), "bedrock", "bedrock") as stream:
        return b"".join([piece async for piece in stream])


async def test_the_models_own_events_pass(replay, client):
    body = chunks(*EVENTS)
    output = await passed(body)
    assert output == body
    assert invoked(client("boto3"), replay.register(output)) == EVENTS


@pytest.mark.parametrize("size", [0, 4, 5])
async def test_a_stream_of_the_models_own_events_that_is_cut_raises(size, replay, client):
    """Without ``message_stop`` and without a stop reason, and inside a message."""
    boto3 = client("boto3")
    from botocore.exceptions import EventStreamError  # noqa: PLC0415 - it may be missing

    output = await passed(chunks(*EVENTS[:4])[: -size or None])
    with pytest.raises(EventStreamError, match=r"modelStreamErrorException.*truncated"):
        invoked(boto3, replay.register(output))


async def test_a_torn_message_behind_the_end_does_not_pass(replay, client):
    whole = bedrock.vector("", bedrock.START, *bedrock.HI, bedrock.finish()).body
    output = await passed(whole + event(*bedrock.counts())[:-3])
    assert output == whole
    assert fold_bedrock(client("boto3"), replay.register(output)).choices[0].stop == "end_turn"


async def test_an_exception_passes_as_it_came(replay, client):
    body = chunks(*EVENTS[:3]) + exception("modelTimeoutException", {"message": "late"})
    assert await passed(body) == body


def test_the_reader_skips_a_keep_alive(replay, client):
    message = keep_alive("bedrock")
    body = bedrock.vector("", message, bedrock.START, message, *bedrock.HI, message, bedrock.finish(), message).body
    assert fold_bedrock(client("boto3"), replay.register(body)).choices[0].text == "Hi"
