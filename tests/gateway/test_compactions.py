"""``POST /v1/responses/compact``: passed on to upstreams of Responses, and refused with what to send instead elsewhere."""

from __future__ import annotations

import openai
import orjson
import pytest

from streamkit.conversation.messages import Request
from streamkit.dialects import DIALECTS
from streamkit.web.compactions import Compaction
from streamkit.web.surfaces import Ask
from streamkit.web.upstream import Upstream
from tests.gateway.running import asking, in_turn, leg, told
from tests.web.faults import FAULTS, answer, refuse, status

PATH, OWN = "/v1/responses/compact", "openai-responses"
#: As OpenAI's: the messages of the user, and an item that only OpenAI can read.
COMPACTED = {
    "id": "cmp_1", "object": "response.compaction", "created_at": 1_764_967_971,
    "output": [
        {"id": "msg_1", "type": "message", "status": "completed", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        {"id": "cmp_2", "type": "compaction", "encrypted_content": "E"},
    ],
    "usage": {
        "input_tokens": 139, "input_tokens_details": {"cached_tokens": 8}, "output_tokens": 438,
        "output_tokens_details": {"reasoning_tokens": 64}, "total_tokens": 577,
    },
}  # fmt: skip
BODY = orjson.dumps(COMPACTED).replace(b"139", b"139 ")  # whose bytes no rewriting would keep


def compacts(body=BODY, **headers):
    return answer(200, body, {"Content-Type": "application/json", **headers})


async def compacted(running, **members):
    _, body = asking(OWN, tools=True)
    body.pop("stream", None)
    return await running.ask(PATH, body=orjson.dumps({**body, **members}))


def sdk(running):
    return openai.AsyncOpenAI(
        base_url=f"{running.url}/v1",
        api_key="k",
        max_retries=0,
        http_client=openai.DefaultAsyncHttpxClient(trust_env=False),
    )


async def test_an_upstream_of_the_dialect_is_asked_and_its_response_is_passed_on():
    sent = {"instructions": "be brief", "prompt_cache_key": "p", "reasoning": {"effort": "low"}}
    async with in_turn(leg(compacts(**{"x-request-id": "up"}), dialect=OWN)) as running:
        found = await compacted(running, **sent, store=False, max_output_tokens=9)
        assert (found.status, bytes(found.body)) == (200, BODY)
        assert found.headers["x-upstream-request-id"] == "up"
        assert await running.outcomes() == {("one", "success"): 1}
        assert running.counted("tokens_total", type="output_reasoning") == 64
    [request] = running.evil.requests
    assert request.path == PATH
    asked = request.json()
    assert {name: asked[name] for name in sent} == sent
    assert asked.keys() == {"model", "input", "tools", *sent}


async def test_openai_python_reads_it_and_its_items_are_sent_back():
    history = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]
    async with in_turn(leg(compacts(), dialect=OWN)) as running, sdk(running) as client:
        found = await client.responses.compact(model="m", input=history)
        assert found.to_dict(warnings=False) == COMPACTED
        again = [item.to_dict(warnings=False) for item in found.output]
        await client.responses.compact(model="m", input=[*again, *history])
    message, compaction = running.evil.requests[-1].json()["input"][:2]
    assert message == {"id": "msg_1", "role": "user", "content": "hi"}
    assert compaction == again[1]


@pytest.mark.parametrize("upstream", [name for name in DIALECTS if name != OWN])
async def test_other_upstreams_are_not_asked_and_the_error_says_what_to_send(upstream):
    async with in_turn(leg(status(500), dialect=upstream)) as running:
        found = await compacted(running)
        failed = told(found, OWN)
        assert (found.status, failed.type, running.seen) == (404, "not_found", [0])
    assert failed.message.startswith(
        "no upstream of the model 'm' compacts at this path; send the input to /v1/responses"
    )


@pytest.mark.parametrize(
    ("upstream", "client", "asked"), [(OWN, OWN, True), ("openai-chat", OWN, False), (OWN, "openai-chat", False)]
)
def test_only_a_server_of_the_clients_dialect_is_asked(upstream, client, asked):
    ask = Ask(dialect=client, operation="compact", model="m", stream=False, request=Request(client))
    where = Upstream(name="one", dialect=upstream, base_url="http://127.0.0.1:1/v1", auth="none")
    assert Compaction(ask, where, None, {}).can_be_asked is asked


FAILURES = {
    "429": (status(429, OWN, message="slow down", headers={"Retry-After": "9"}), 429),
    "404": (status(404, OWN, message="no such path"), 404),
    "no list": (answer(200, b'{"object":"response.compaction"}'), 502),
    "text": (answer(200, b"compacted"), 502),
    "a page": (FAULTS["200 with HTML"](OWN), 502),
    "no": (refuse(), 502),
}


@pytest.mark.parametrize(("script", "code"), FAILURES.values(), ids=FAILURES)
async def test_a_compaction_that_fails_is_the_clients_error_and_another_upstream_may_compact(script, code):
    bad = leg(script, dialect=OWN)
    async with in_turn(bad) as running:
        found = await compacted(running)
        assert (found.status, told(found, OWN).message != "") == (code, True)
        assert found.headers.get("retry-after") == ("9" if code == 429 else None)
    async with in_turn(bad, leg(compacts(), dialect=OWN)) as running:
        assert (await compacted(running)).status == 200
        assert (await running.outcomes())["two", "success"] == 1
