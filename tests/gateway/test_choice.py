"""The choice among equals: by weight, by open streams, by conversation; the same on every node, with the least movement."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import AsyncExitStack
from typing import Any

import orjson
import pytest
from aiohttp import ClientSession
from attrs import evolve

from streamkit.conversation.messages import Request, Text
from streamkit.gateway.choice import conversation_of, ordered
from streamkit.gateway.config import Config
from streamkit.gateway.routing import DEFAULT_AFFINITY, Route, Target
from streamkit.toml.findings import Refusal
from streamkit.translation.bodies import decode_request
from streamkit.web.surfaces import Ask, Stored
from streamkit.web.upstream import Upstream
from streamkit.web.upstream.value import DEFAULT_REST, Rest
from tests.gateway.configuring import GOOD, faults, parse, warnings
from tests.gateway.fast_upstream import FastUpstream
from tests.gateway.running import asking, config_of, gateway, upstream_at
from tests.gateway.test_attempts import NO_CALLS, SOUND
from tests.gateway.test_next_on import ends
from tests.web.evil import EvilUpstream, Script, Until
from tests.web.faults import good, status, whole
from tests.web.serving import eventually

ASK = Ask(dialect="openai-chat", operation="generate", model="m", stream=True, request=Request("openai-chat"))
WEIGHTS = {"a": 1.0, "b": 3.0, "c": 2.0}
SHARES = {name: weight / sum(WEIGHTS.values()) for name, weight in WEIGHTS.items()}
KEYS = [f"conversation-{number}" for number in range(1000)]


def target(name: str, weight: float = 1.0) -> Target:
    upstream = Upstream(name=name, dialect="openai-chat", base_url="http://127.0.0.1:9", auth="none")
    return Target(upstream=upstream, weight=weight)


def route(*names: str, balance: str = "affinity", last: str = "z") -> Route:
    """A route to a group of these upstreams, and then to another one."""
    group = [target(name, WEIGHTS[name]) for name in names or WEIGHTS]
    return Route(models=("m",), targets=(group, target(last)), balance=balance)


def names(targets) -> list[str]:
    return [target.upstream.name for target in targets]


def order(chosen: Route, key: str | None = None, **streams: int) -> list[str]:
    ask = ASK if key is None else evolve(ASK, request=Request("openai-chat", extras={"prompt_cache_key": key}))
    return names(ordered(chosen, ask, conversation_of(ask, chosen.affinity, {}), streams))


def shares(orders: list[list[str]]) -> dict[str, float]:
    firsts = Counter(each[0] for each in orders)
    return {name: firsts[name] / len(orders) for name in WEIGHTS}


# -- by conversation ---------------------------------------------------------------------------------------------------


def test_two_nodes_choose_the_same_upstreams_for_a_thousand_conversations():
    """Orders are the same whichever way the file names the group. The first ones are written here: no process differs."""
    one, other = route("a", "b", "c"), route("c", "b", "a")
    orders = [order(one, key) for key in KEYS]
    assert orders == [order(other, key) for key in KEYS]
    assert ["".join(each) for each in orders[::125]] == ["cbaz", "bcaz", "bacz", "bcaz", "cabz", "acbz", "bcaz", "bcaz"]


def test_conversations_are_spread_by_weight():
    orders = [order(route(), f"{key}-{number}") for key in KEYS for number in range(4)]
    assert shares(orders) == pytest.approx(SHARES, abs=0.02)


@pytest.mark.parametrize("gone", WEIGHTS)
def test_only_the_conversations_of_an_upstream_that_is_gone_move_each_to_the_next_in_its_order(gone):
    fewer = route(*(name for name in WEIGHTS if name != gone))
    for key in KEYS[:200]:
        assert order(fewer, key) == [name for name in order(route(), key) if name != gone]


def test_a_greater_weight_only_draws_conversations_to_its_upstream():
    more = Route(models=("m",), targets=([target("a", 2), target("b", 3), target("c", 2)],), balance="affinity")
    moved = [(order(route(), key)[0], order(more, key)[0]) for key in KEYS]
    assert {new for old, new in moved if old != new} == {"a"}


# what names a conversation: the client's dialect, members of its body, headers, and what counts
PLACES = {
    "Chat's cache key": ("openai-chat", {"prompt_cache_key": "K", "user": "U"}, {}, "K"),
    "Responses' cache key": ("openai-responses", {"prompt_cache_key": "K", "user": "U"}, {}, "K"),
    "Chat's user": ("openai-chat", {"user": "U"}, {}, "U"),
    "Responses' user": ("openai-responses", {"user": "U"}, {}, "U"),
    "Chat's metadata": ("openai-chat", {"metadata": {"user_id": "M"}}, {}, "M"),
    "Anthropic's metadata": ("anthropic", {"metadata": {"user_id": "M"}}, {}, "M"),
    "AG-UI's thread": ("ag-ui", {}, {}, "thread"),
    "the AI SDK's chat": ("ai-sdk", {}, {}, "chat"),
    "no name": ("openai-chat", {}, {}, None),
    "what is no string": ("openai-chat", {"prompt_cache_key": 7, "metadata": [1]}, {}, None),
    "a header that the route does not name": ("openai-chat", {}, {"session_id": "H"}, None),
    "Gemini": ("gemini", {}, {}, None),
    "Ollama": ("ollama", {}, {}, None),
}
#: A body of each dialect, and of a conversation that goes on.
SAID = [{"role": "user", "content": "first"}, {"role": "assistant", "content": "x"}, {"role": "user", "content": "y"}]
BODIES = {
    "openai-chat": {"messages": SAID},
    "openai-responses": {"input": SAID},
    "anthropic": {"messages": SAID, "max_tokens": 9},
    "ollama": {"messages": SAID},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "first"}]}]},
    "ag-ui": {
        "threadId": "thread", "runId": "r", "state": {}, "tools": [], "context": [], "forwardedProps": {},
        "messages": [{"id": "1", "role": "user", "content": "first"}],
    },
    "ai-sdk": {
        "id": "chat", "trigger": "submit-message",
        "messages": [{"id": "1", "role": "user", "parts": [{"type": "text", "text": "first"}]}],
    },
}  # fmt: skip


def asked(dialect: str, body: dict[str, object] | None = None, stored: Stored | None = None) -> Ask:
    model = {} if dialect == "gemini" else {"model": "m"}
    request = decode_request(orjson.dumps({**model, **BODIES[dialect], **(body or {})}), dialect)
    return evolve(ASK, dialect=dialect, request=request, stored=stored)


def named(text: str) -> bytes | None:
    """The digest of a conversation that is named so."""
    return conversation_of(evolve(ASK, request=Request("x", extras={"prompt_cache_key": text})), DEFAULT_AFFINITY, {})


@pytest.mark.parametrize(("dialect", "body", "headers", "name"), PLACES.values(), ids=PLACES)
def test_what_names_a_conversation(dialect, body, headers, name):
    found = conversation_of(asked(dialect, body), DEFAULT_AFFINITY, headers)
    assert found == (None if name is None else named(name))


@pytest.mark.parametrize("dialect", BODIES)
def test_a_route_may_name_a_header_or_the_first_message(dialect):
    places = ("header:session_id", "first_message")
    assert conversation_of(asked(dialect), places, {"session_id": "H"}) == named("H")
    assert conversation_of(asked(dialect), places, {}) == named("first")


def test_a_stored_conversation_is_named_by_its_beginning_since_each_response_has_another_id():
    first, second, new = (Stored(body=b"", previous_id=name) for name in ("resp_1", "resp_2", ""))
    found = [conversation_of(asked("openai-responses", {}, each), DEFAULT_AFFINITY, {}) for each in (first, second)]
    assert found == [named("first")] * 2
    assert conversation_of(asked("openai-responses", {}, new), DEFAULT_AFFINITY, {}) is None


def equals_of(*evils: Any, rest: Rest = DEFAULT_REST, **how: Any) -> Config:
    """A configuration whose route has these upstreams as equals: a, b, c."""
    upstreams = [upstream_at(evil, "openai-chat", name, rest=rest) for evil, name in zip(evils, WEIGHTS, strict=False)]
    equals = [Target(upstream=upstream, weight=WEIGHTS[upstream.name]) for upstream in upstreams]
    return config_of(upstreams, targets=(equals,), **how)


async def test_two_gateways_send_a_conversation_to_one_upstream_and_if_that_fails_to_the_next():
    async with EvilUpstream(SOUND) as one, EvilUpstream(status(500)) as two, EvilUpstream(SOUND) as three:
        config = equals_of(one, two, three, balance="affinity")
        async with gateway(config) as left, gateway(config) as right:
            for key in KEYS[:200:40]:
                for running in (left, right):
                    assert (await running.asked("openai-chat", {"prompt_cache_key": key})).status == 200
        answered = [request.json()["prompt_cache_key"] for request in one.requests]
        expected = [key for key in KEYS[:200:40] if next(name for name in order(route(), key) if name != "b") == "a"]
        assert sorted(answered) == sorted(expected * 2)
        assert len(one.requests) + len(three.requests) == 10
        assert 0 < len(two.requests) <= 10


@pytest.mark.parametrize("conversations", [30, pytest.param(1000, marks=pytest.mark.exhaustive)])
async def test_over_two_gateways_only_the_conversations_of_an_upstream_that_breaks_move_and_they_return(
    conversations, caplog
):
    """The gateways share nothing. The upstream in the middle, which has half of the conversations, fails for a while."""
    broken = set()

    def plays(name):
        sound, failing = ends("stop", Text(name)), status(503)
        return lambda request: failing if name in broken else sound(request)

    async with AsyncExitStack() as stack:
        evils = [await stack.enter_async_context(FastUpstream(plays(name))) for name in WEIGHTS]
        config = equals_of(*evils, balance="affinity", rest=Rest(failures=3, first_s=0.3, max_s=0.3))
        nodes = [await stack.enter_async_context(gateway(config)) for _ in range(2)]
        session = await stack.enter_async_context(ClientSession())

        async def said(node, key):
            path, body = asking("openai-chat", stream=False)
            async with session.post(node.url + path, json={**body, "prompt_cache_key": key}) as response:
                assert response.status == 200
                return (await response.json())["choices"][0]["message"]["content"]

        async def spread():
            at_once = asyncio.Semaphore(20)

            async def one(node, key):
                async with at_once:
                    return key, await said(node, key)

            return [dict(await asyncio.gather(*(one(node, key) for key in orders))) for node in nodes]

        orders = {key: [name for name in order(route(), key) if name in WEIGHTS] for key in KEYS[:conversations]}
        homes = {key: names[0] for key, names in orders.items()}
        assert await spread() == [homes, homes]
        broken.add("b")
        moved = {key: next(name for name in names if name != "b") for key, names in orders.items()}
        assert await spread() == [moved, moved]
        broken.clear()
        await asyncio.sleep(0.31)
        probe = next(key for key, name in homes.items() if name == "b")
        assert [await said(node, probe) for node in nodes] == ["b", "b"]
        assert await spread() == [homes, homes]
    events = Counter(record.getMessage() for record in caplog.records if "upstream" in record.getMessage())
    assert events == {"an upstream rests after failures": 2, "an upstream responds again": 2}


async def test_all_others_of_a_group_are_tried_if_a_required_call_is_missing():
    """The last one that is tried is the last of the order, not of the file."""
    missing = whole("openai-chat", NO_CALLS)
    async with EvilUpstream(missing) as one, EvilUpstream(missing) as two:
        config = equals_of(one, two, balance="affinity", next_on=("default", "tool_choice_ignored"))
        first = {order(config.routes[0], key)[0]: key for key in KEYS[:20]}
        async with gateway(config) as running:
            for key in (first["a"], first["b"]):
                answer = await running.asked(body={"prompt_cache_key": key}, stream=False, tools=True, forced=True)
                assert answer.status == 200
        assert (len(one.requests), len(two.requests)) == (2, 2)


# -- by weight and by open streams -------------------------------------------------------------------------------------


@pytest.mark.parametrize("balance", ["weighted", "affinity", "fewest_open"])
def test_without_a_conversation_equals_take_turns_by_weight(balance):
    random.seed(5)
    orders = [order(route(balance=balance)) for _ in range(3000)]
    assert shares(orders) == pytest.approx(SHARES, abs=0.02)
    assert {each[-1] for each in orders} == {"z"}
    assert {len(set(each)) for each in orders} == {4}


@pytest.mark.parametrize(
    ("streams", "firsts"),
    [
        ({}, {"a", "b", "c"}),
        ({"a": 1, "b": 1, "c": 1}, {"b"}),  # a third of a stream for its weight
        ({"a": 1, "b": 3, "c": 1}, {"c"}),
        ({"a": 1, "b": 9, "c": 2}, {"a", "c"}),
    ],
)
def test_the_fewest_open_streams_for_the_weight_come_first(streams, firsts):
    assert {order(route(balance="fewest_open"), **streams)[0] for _ in range(50)} == firsts


async def test_eight_requests_at_once_are_divided_by_weight():
    go = asyncio.Event()
    held = Script((Until(go), *good("openai-chat").steps))
    async with (
        EvilUpstream(held) as one,
        EvilUpstream(held) as two,
        gateway(equals_of(one, two, balance="fewest_open")) as running,
    ):
        asking = [asyncio.create_task(running.asked()) for _ in range(8)]
        await eventually(lambda: [len(one.requests), len(two.requests)] == [2, 6])
        go.set()
        await asyncio.gather(*asking)


# -- configuration -----------------------------------------------------------------------------------------------------


def with_route(lines: str) -> str:
    return GOOD.replace('to = ["a"]', lines) + '[upstreams.b]\ndialect = "ollama"\nbase_url = "http://127.0.0.1"\n'


def test_a_group_is_an_array_in_to():
    (found,) = parse(with_route('to = [["a", { upstream = "b", weight = 2.5 }], "a"]\nbalance = "affinity"')).routes
    assert [(each.upstream.name, each.weight, each.place) for each in found.targets] == [
        ("a", 1.0, 0), ("b", 2.5, 0), ("a", 1.0, 1),
    ]  # fmt: skip
    assert (found.balance, found.affinity) == ("affinity", DEFAULT_AFFINITY)


def test_a_star_in_a_group_is_filled_in_and_stays_in_its_group():
    lines = 'to = [["a", { upstream = "b", model = "x/*" }], "a"]'
    found = parse(with_route(lines).replace('["m"]', '["or/*"]')).routes[0].renamed("or/*", "or/y")
    assert [(each.model, each.place) for each in found.targets] == [(None, 0), ("x/y", 0), (None, 1)]


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        ('to = [["a", "c"]]', 'to[0][1]: unknown upstream "c"; known: "a", "b"'),
        ('to = [["a", ["b"]]]', "to[0][1]: must be a table, not an array"),
        ('to = [["a", 3]]', "to[0][1]: must be a table, not an integer"),
        ("to = [[]]", "to[0]: must name at least one upstream"),
        ('to = [["a", { upstream = "b", weight = 0 }]]', "to[0][1].weight: must be > 0: 0.0"),
        (
            'to = [["a", { upstream = "b", place = 7 }]]',
            'to[0][1].place: unknown key; known: "upstream", "model", "weight"',
        ),
        ('to = ["a"]\nbalance = "x"', 'balance: must be one of weighted, fewest_open, affinity, not "x"'),
        ('to = ["a"]\naffinity = ["users"]', "affinity[0]: must be one of prompt_cache_key, conversation, previous"),
        ('to = ["a"]\naffinity = ["user", "header: "]', "affinity[1]: must be one of"),
    ],
)
def test_what_is_no_choice_is_told(lines, fault):
    (told,) = faults(with_route(lines))
    assert f": routes[0].{fault}" in told


@pytest.mark.parametrize(
    ("lines", "warning"),
    [
        ('to = [{ upstream = "a", weight = 2 }, "b"]', "to[0]: its weight has no effect; write equals as an array"),
        ('to = ["a", "b"]\nbalance = "affinity"', "balance: has no effect; write equals as an array"),
        ('to = [["a", "b"]]\naffinity = ["user"]', 'affinity: has no effect; write balance = "affinity", too'),
    ],
)
def test_a_choice_without_effect_is_a_warning(lines, warning):
    assert [each for each in warnings(with_route(lines)) if f": routes[0].{warning}" in each]


def test_a_group_of_none_is_refused():
    with pytest.raises(Refusal, match="must name at least one upstream"):
        Route(models=("m",), targets=([],))
