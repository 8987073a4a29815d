"""The headers that say which upstream answered, and that a client need not retry."""

from __future__ import annotations

import anthropic
import openai
import pytest

from streamkit.conversation.messages import Refusal
from streamkit.events import ProviderFailed
from streamkit.web.answered_by import ATTEMPTS, MODEL, MODEL_CHARS, NAMES, SHOULD_RETRY, UPSTREAM, is_final, names_of
from tests.gateway.running import behind, in_turn
from tests.gateway.test_hedging import AFTER_S, SILENT, says
from tests.gateway.test_next_on import ends
from tests.web.evil import Delay, Script
from tests.web.faults import FAULTS, as_asked, good, refuse, status

SOUND = as_asked("openai-chat")
NAMED = {"name_upstreams": True}
FORGED = {UPSTREAM: "evil", MODEL: "evil", ATTEMPTS: "99", "x-request-id": "evil", "x-ratelimit-limit": "7"}


def named(answer) -> tuple[str | None, ...]:
    return tuple(answer.headers.get(name) for name in (UPSTREAM, MODEL, ATTEMPTS))


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize(
    ("legs", "expected", "code"),
    [
        ([SOUND], ("one", "m", "1"), 200),
        ([status(503), SOUND], ("two", "m", "2"), 200),
        ([refuse(), SOUND], ("two", "m", "2"), 200),
        ([status(400)], ("one", "m", "1"), 400),
        ([refuse()], ("one", "m", "1"), 502),
        ([status(503), status(400)], ("one", "m", "2"), 503),  # the error is that of the busy one
    ],
)
async def test_a_response_names_the_upstream_that_it_is_from(legs, expected, code, stream):
    async with in_turn(*legs, server=NAMED) as running:
        answer = await running.asked(stream=stream)
    assert (named(answer), answer.status) == (expected, code)
    assert answer.headers["x-request-id"].startswith("req_")


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize(
    ("legs", "route"),
    [
        ([ends("refusal", Refusal("No.")), status(500)], {"next_on": ["default", "refusal"]}),
        ([says("one", Delay(0.06)), SILENT], {"hedge_after_s": AFTER_S}),
    ],
    ids=["kept", "the first of a race"],
)
async def test_attempts_that_began_later_than_the_one_that_responds_are_counted(legs, route, stream):
    async with in_turn(*legs, server=NAMED, **route) as running:
        assert named(await running.asked(stream=stream)) == ("one", "m", "2")


async def test_by_default_no_upstream_is_named_and_none_can_name_itself():
    async with behind(good("openai-chat", headers=FORGED), status(429, headers=FORGED)) as running:
        for _ in range(2):
            answer = await running.asked()
            assert named(answer) == (None, None, None)
            assert answer.headers["x-ratelimit-limit"] == "7"
            assert answer.headers["x-request-id"].startswith("req_")
    async with behind(good("openai-chat", headers=FORGED), server=NAMED) as running:
        assert named(await running.asked()) == ("one", "m", "1")


async def test_a_models_name_is_one_word_of_ascii():
    async with behind(SOUND, server=NAMED, models=("or/*",)) as running:
        answer = await running.asked(body={"model": "or/ä b"}, stream=False)
        assert named(answer) == ("one", "or/%C3%A4%20b", "1")
    assert names_of("one", "x" * 500, 1)[MODEL] == "x" * MODEL_CHARS
    assert names_of("one", "\ud800\n%", 3) == {UPSTREAM: "one", MODEL: "?%0A%25", ATTEMPTS: "3"}


async def test_headers_that_a_keep_alive_sends_name_no_upstream():
    """Another one may still answer."""
    slow = Script((*good("openai-chat").steps[:1], Delay(0.2), *good("openai-chat").steps[1:]))
    async with behind(slow, server={**NAMED, "keep_alive_s": 0.05}) as running:
        answer = await running.asked()
        assert (answer.status, NAMES & answer.headers.keys()) == (200, set())


async def test_counts_of_tokens_are_named_and_estimates_are_not():
    for play, expected in [(status(500), (None, None, None)), (status(400, "anthropic"), ("one", "m", "1"))]:
        async with behind(play, dialect="anthropic", server=NAMED) as running:
            answer = await running.asked("anthropic", path="/v1/messages/count_tokens", stream=False)
            assert named(answer) == expected


# -- retries -----------------------------------------------------------------------------------------------------------

BUSY = ProviderFailed("unavailable", "busy", http_status=503)
WRONG = ProviderFailed("invalid_request", "wrong", http_status=400)


@pytest.mark.parametrize(
    ("failed", "headers", "retries", "final"),
    [
        (BUSY, {}, 0, False),  # the clients do the retries
        (BUSY, {}, 1, True),
        (BUSY, {"retry-after-ms": "5"}, 1, False),
        (ProviderFailed("rate_limit", "slow down", retry_after_s=3.0), {}, 1, False),
        (WRONG, {}, 0, True),
        (WRONG, {}, 1, True),
    ],
)
def test_a_retry_is_pointless_if_the_gateway_does_the_retries_or_the_request_would_fail_again(
    failed, headers, retries, final
):
    assert is_final(failed, headers, retries) is final


@pytest.mark.parametrize(
    ("play", "route", "value"),
    [
        (status(503), {"retries": 1}, "false"),
        (status(503), {"retries": 0}, None),
        (status(401), {"retries": 0}, "false"),  # 502 for the client: its SDK would retry
        (status(429, headers={"retry-after": "1000"}), {"retries": 1}, None),
        (status(503, headers={SHOULD_RETRY: "true"}), {"retries": 1}, "false"),
        (status(503, headers={SHOULD_RETRY: "false"}), {"retries": 0}, "false"),  # the upstream's own
        (FAULTS["silence mid-stream"]("openai-chat"), {"retries": 1}, None),
    ],
)
async def test_an_error_says_when_a_retry_is_pointless(play, route, value):
    async with behind(play, **route) as running:
        answer = await running.asked()
        assert answer.headers.get(SHOULD_RETRY) == value


async def test_an_error_of_the_gateway_itself_says_nothing_of_retries():
    async with behind(SOUND, upstream={"tools": False}) as running:
        answer = await running.asked(tools=True)
        assert (answer.status, answer.headers.get(SHOULD_RETRY)) == (400, None)


@pytest.mark.parametrize("client", ["openai-chat", "anthropic"])
async def test_the_sdks_do_not_retry_what_the_gateway_has_retried(client):
    async with behind(status(503), retries=1) as running:
        with pytest.raises((openai.APIStatusError, anthropic.APIStatusError)):
            if client == "openai-chat":
                async with openai.AsyncOpenAI(base_url=f"{running.url}/v1", api_key="k", max_retries=3) as sdk:
                    await sdk.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])
            else:
                async with anthropic.AsyncAnthropic(base_url=running.url, api_key="k", max_retries=3) as sdk:
                    await sdk.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}])
        assert running.seen == [2]
