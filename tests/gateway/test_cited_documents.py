"""A request with documents through the gateway: the upstream of another vendor gets them, and the client what it cites."""

from __future__ import annotations

import orjson
import pytest

from streamkit.translation.bodies import decode_response, encode_response
from tests.gateway.running import behind, read
from tests.requests.test_cited_documents import conversation
from tests.requests.test_cited_documents import search as search_result
from tests.translation.test_citations import stream
from tests.translation.test_cited_documents import body, cohere_events, said
from tests.web.faults import whole

LIKE = {"bedrock": {"model_like": "claude-sonnet-4-5"}}  # of Bedrock's models, Claude cites
STREAMS = {"bedrock": "application/vnd.amazon.eventstream"}


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("upstream", ["bedrock", "cohere"])
async def test_what_the_upstream_cites_is_cited_for_the_client(upstream, streamed):
    client = "anthropic"
    answer = orjson.dumps(body(upstream, "search"))
    if streamed:
        kind = STREAMS.get(upstream, "text/event-stream")
        data = cohere_events("search") if upstream == "cohere" else stream(decode_response(answer, upstream))
        script = whole(upstream, data, headers={"Content-Type": kind})
    else:
        script = whole(upstream, answer)
    sent = {name: value for name, value in conversation(client).items() if name not in {"model", "modelId"}}
    async with behind(script, dialect=upstream, upstream=LIKE.get(upstream)) as running:
        got = await running.asked(client, sent, stream=streamed)
        (asked,) = running.evil.requests
    assert search_result(0)["source"].encode() in asked.body
    assert got.status == 200, got.body
    written = bytes(got.body)
    if streamed:
        written = encode_response(await read(got, client), client)
    assert said(client, orjson.loads(written)) == said(client, body(client, "search", to_client=True))
