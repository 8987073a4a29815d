"""Several keys of one upstream: which one is used, when the next one is, and that none is shown."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise

import orjson
import pytest
from aiohttp import ClientSession
from attrs import frozen

from streamkit.conversation.messages import Refusal
from streamkit.events import ProviderFailed
from streamkit.gateway.config import describe
from streamkit.gateway.health import Ended, Health
from streamkit.gateway.record import Record
from streamkit.report import StreamReport
from streamkit.web.upstream import Secret
from streamkit.web.upstream.hiding import redactor
from tests.gateway.configuring import CANARY, GOOD, faults, parse, warnings
from tests.gateway.fast_upstream import FastUpstream
from tests.gateway.running import Running, asking, config_of, gateway, in_turn, leg, upstream_at
from tests.gateway.test_attempts import PATIENT, SOUND
from tests.gateway.test_next_on import ends
from tests.web.evil import Delay, Hang, Received, Script
from tests.web.faults import answer, good, status

FIRST, SECOND, THIRD = KEYS = ["first-canary-8f31", "second-canary-77b0", "third-canary-c4d2"]
KEYED = {"auth": "bearer", "keys": tuple(map(Secret, KEYS)), "timeouts": PATIENT}
BUSY, BAD = status(429, headers={"Retry-After": "60"}), status(401)
MODERATED = status(403, message="the input was flagged by moderation")


def by_key(*plays: Script | None) -> Callable[[Received], Script]:
    """What the upstream does with each key; None: it responds."""

    def play(request: Received) -> Script:
        return plays[KEYS.index(key_of(request))] or SOUND(request)

    return play


def key_of(request: Received) -> str:
    return str(request.header("authorization")).removeprefix("Bearer ")


def used(running: Running) -> list[str]:
    """The first letter of each key that the upstream was shown."""
    return [key_of(request)[0] for request in running.evils[0].requests]


@frozen
class Use:
    """What the first upstream does with each key, and what is seen: statuses, keys, and requests to the next upstream."""

    plays: Sequence[Script | None]
    statuses: Sequence[int]
    keys: str
    seen: int = 0
    outcomes: dict[str, int] | None = None


USES = {
    "the first is used as long as it works": Use([None, BUSY, BUSY], [200] * 3, "fff"),
    "a limited one rests, and the next is used at once": Use(
        [BUSY, None, None], [200] * 3, "fsss", outcomes={"http_429": 1, "success": 3}
    ),
    "a bad one, too": Use([BAD, None, None], [200] * 2, "fss"),
    "and one without credit": Use([status(402), status(403), None], [200] * 2, "fstt"),
    "where all rest the next upstream is used": Use([BUSY, BAD, BUSY], [200] * 3, "fst", seen=3),
    "what is no fault of the key moves on to the next upstream": Use(
        [status(500), None, None], [200] * 2, "ff", seen=2
    ),
    "nor is a request that is refused for what it says": Use([MODERATED, None, None], [200] * 2, "ff", seen=2),
    "a request that is wrong is wrong with each key": Use([status(400), None, None], [400] * 2, "ff"),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
async def test_which_key_is_used(use):
    async with in_turn(leg(by_key(*use.plays), **KEYED), leg(SOUND, timeouts=PATIENT)) as running:
        assert [(await running.asked()).status for _ in use.statuses] == use.statuses
        assert ("".join(used(running)), running.seen[1]) == (use.keys, use.seen)
        if use.outcomes is not None:
            assert await running.outcomes() == {("one", outcome): times for outcome, times in use.outcomes.items()}


async def test_where_all_keys_of_the_only_upstream_rest_the_one_due_first_is_used_and_the_shortest_wait_is_told():
    waits = [status(429, headers={"Retry-After": str(seconds)}) for seconds in (900, 300, 600)]
    async with in_turn(leg(by_key(*waits), **KEYED)) as running:
        told = [(await running.asked()).headers["retry-after"] for _ in range(2)]
        assert (told, used(running)) == (["300", "300"], ["f", "s", "t", "s"])


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_a_refusal_of_the_last_upstream_is_not_kept_for_its_further_keys(stream):
    refuses = ends("refusal", Refusal("No."))
    async with in_turn(leg(refuses, **KEYED), next_on=["default", "refusal"]) as running:
        assert (await running.asked(stream=stream)).status == 200
        assert (used(running), await running.outcomes()) == (["f"], {("one", "success"): 1})


def test_a_key_that_has_rested_is_used_again():
    (upstream,) = parse(keys('[{ env = "KEY" }, { file = "key" }]')).upstreams.values()
    health, busy = Health(), ProviderFailed("rate_limit", "busy", retry_after_s=60)
    number = health.begin(("a", "m"), StreamReport(), 0)
    health.end(("a", "m"), upstream, Ended("http_429", busy, StreamReport(), number, 1, 0))
    for at, number in (2, 1), (60, 1), (61, 0):
        assert health.account(("a", "m"), upstream, None, at) == (upstream.accounts[number], number)


async def test_of_two_hundred_requests_at_once_none_fails_and_the_limited_key_is_used_when_it_is_due(caplog):
    rest_s = 1.5
    limited = status(429, headers={"retry-after-ms": str(round(1000 * rest_s))})
    async with (
        FastUpstream(by_key(limited, None, None)) as one,
        gateway(config_of([upstream_at(one, "openai-chat", **KEYED)])) as running,
        ClientSession(running.url) as session,
    ):
        path, body = asking("openai-chat", stream=False)

        async def asked() -> int:
            async with session.post(path, json=body) as response:
                await response.read()
                return response.status

        for times in 200, 20:
            assert {*await asyncio.gather(*(asked() for _ in range(times)))} == {200}
        counts = Counter(map(key_of, one.requests))
        assert (counts[SECOND], counts[THIRD]) == (220, 0)
        await asyncio.sleep(rest_s)
        assert await asked() == 200
        assert [key_of(request) for request in one.requests[-2:]] == [FIRST, SECOND]
        uses = [request.received_at for request in one.requests if key_of(request) == FIRST]
        waits = [use - before for before, use in pairwise(uses)]
        assert not [wait for wait in waits if 0.5 < wait < rest_s], (
            "only what was sent before the first 429 may follow it"
        )
    rested = [line.fields["key_number"] for line in caplog.records if "key of" in line.message]
    assert len(rested) > 1
    assert set(rested) == {1}


async def test_a_hedge_asks_the_next_upstream_and_not_the_next_key():
    async with in_turn(leg(Script((Hang(),)), **KEYED), leg(SOUND, timeouts=PATIENT), hedge_after_s=0.02) as running:
        assert (await running.asked()).status == 200
        assert running.seen == [1, 1]
        assert await running.outcomes() == {("one", "hedged_out"): 1, ("two", "success"): 1}


async def test_a_hedge_of_the_only_upstream_asks_nobody():
    slow = Script((Delay(0.1), *good("openai-chat").steps))
    async with in_turn(leg(slow, **KEYED), hedge_after_s=0.02) as running:
        assert (await running.asked()).status == 200
        assert running.seen == [1]


async def test_a_conversation_keeps_its_key_and_moves_only_if_that_rests():
    limited: set[str] = set()

    def play(request: Received) -> Script:
        return BUSY if key_of(request) in limited else SOUND(request)

    async def keys() -> list[str]:
        del running.evil.requests[:]
        for number in range(12):
            assert (await running.asked("openai-chat", {"prompt_cache_key": f"c-{number}"}, stream=False)).status == 200
        found = {request.json()["prompt_cache_key"]: key_of(request) for request in running.evil.requests}
        return [found[f"c-{number}"] for number in range(12)]

    async with in_turn(leg(play, **KEYED), balance="affinity") as running:
        before = await keys()
        assert set(before) == set(KEYS)
        assert await keys() == before
        limited.add(FIRST)
        after = await keys()
        assert FIRST not in after
        assert [new for old, new in zip(before, after, strict=True) if old != FIRST] == [
            k for k in before if k != FIRST
        ]


async def test_no_key_is_in_the_log_the_metrics_the_errors_or_the_recordings(tmp_path, caplog):
    """The upstream repeats the key that it refuses."""
    caplog.set_level(logging.DEBUG)

    def play(request: Received) -> Script:
        told = {"error": {"message": f"no such key: {key_of(request)}", "type": "x", "code": "x"}}
        return answer(429, orjson.dumps(told), {"Content-Type": "application/json"})

    async with in_turn(leg(play, **KEYED), server={"record": str(tmp_path)}) as running:
        found = await running.asked()
        assert (found.status, used(running)) == (429, ["f", "s", "t"])
        shown = [bytes(found.body).decode(), str(found.headers), (await running.get("/")).body.decode()]
    rests = [line.fields for line in caplog.records if line.message == "a key of an upstream rests"]
    about = {"upstream": "one", "model": "m", "outcome": "http_429", "rest_s": 10.0}
    assert rests == [{**about, "key_number": number} for number in (1, 2, 3)]
    shown += [line.getMessage() + str(getattr(line, "fields", "")) for line in caplog.records]
    recorded = [path.read_bytes().decode() for path in tmp_path.iterdir() if path.is_file()]
    assert len(recorded) == 3
    assert [key for key in KEYS for text in (*shown, *recorded) if key in text] == []


def test_keys_are_hidden_in_every_text_of_the_gateway():
    (upstream,) = parse(keys('[{ env = "KEY" }, { file = "key" }]')).upstreams.values()
    text = " ".join(key.reveal() for key in upstream.keys)
    assert redactor([upstream])(f"refused: {text}") == "refused: [removed] [removed]"
    assert CANARY not in repr(upstream) + repr(upstream.accounts) + repr(Health()) + repr(Record("", "", ""))


# -- configuration -----------------------------------------------------------------------------------------------------


def keys(value: str, text: str = GOOD) -> str:
    return text.replace('key = { env = "KEY" }', f"keys = {value}")


def test_keys_are_counted_in_the_description():
    config = parse(keys('[{ env = "KEY" }, { file = "key" }]'))
    assert "  a  openai-chat, https://a.example/v1, bearer, 2 keys\n" in describe(config)
    assert CANARY not in describe(config) + repr(config)


SIGV4 = 'dialect = "bedrock"\nbase_url = "https://h.example"\nregion = "eu-west-1"\nkeys = [{ env = "KEY" }]'
GOOGLE = 'dialect = "vertex-gemini"\nbase_url = "https://h.example"\nkeys = [{ env = "KEY" }]'
BOTH = 'dialect = "openai-chat"\nbase_url = "https://h.example"\nkey = { env = "KEY" }\nkeys = [{ file = "key" }]'
TWICE = 'dialect = "openai-chat"\nbase_url = "https://h.example"\nkeys = [{ env = "KEY" }, { env = "KEY" }]'


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        (SIGV4, 'keys: auth = "sigv4" sends no key; remove `keys`'),
        (GOOGLE, 'keys: auth = "google" sends no key; remove `keys`'),
        (BOTH, "keys: write `key` or `keys`, not both"),
        (TWICE, "keys: two of them are the same key; write each once"),
        (BOTH.replace('file = "key"', 'env = "NOPE"'), "keys[0].env: the environment variable NOPE is not set"),
        (BOTH.replace('{ file = "key" }', f'"{CANARY}"'), "keys[0]: must not be a key itself"),
    ],
)
def test_keys_that_cannot_be_used_are_told(lines, fault):
    text = GOOD.replace(GOOD[GOOD.index("dialect") : GOOD.index("\n\n")], lines)
    (told,) = faults(text)
    assert f": upstreams.a.{fault}" in told


def test_a_warning_about_clear_text_counts_all_keys():
    text = keys('[{ env = "KEY" }]', GOOD.replace("https://a", "http://a"))
    assert any("the key is sent in clear text" in each for each in warnings(text))
