"""Thousands of requests to a route of two upstreams, the first of which fails in each way once in twenty requests.

The second is "the wrong model": it may respond only if the first one failed for that request, or rests by the breaker's rules.
The log must explain each such request, and each request must end whole or with an error that its client can see.
"""

from __future__ import annotations

import asyncio
import logging
import random
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import orjson
import pytest
from aiohttp import ClientPayloadError, ClientSession
from attrs import field, frozen

from streamkit import collect
from streamkit.conversation.messages import Refusal, Text
from streamkit.gateway.attempts import Attempts
from streamkit.gateway.log import log as gateway_log
from streamkit.http_errors import decode_error
from streamkit.testing import source_of
from streamkit.translation.bodies import decode_response
from streamkit.web.source import Timeouts
from streamkit.web.upstream import Secret
from streamkit.web.upstream.value import Rest
from tests.gateway.fast_upstream import FastUpstream
from tests.gateway.running import asking, config_of, gateway, upstream_at
from tests.gateway.test_attempts import CLIENTS, PATIENT
from tests.gateway.test_next_on import coded, ends
from tests.web.evil import Delay, Fin, Hang, Received, Script
from tests.web.faults import FAULTS, asks_for_stream, status
from tests.web.serving import eventually

pytestmark = pytest.mark.usefixtures("no_leaks")
KEYS: Final = ("first-key-8f31", "second-key-77b0")
BUSY: Final = {"retry-after-ms": "20"}
#: How much longer than logged a rest may be: what was sent before it began may have prolonged it.
LONGER_S: Final = 0.1
TIMES: Final = Timeouts(connect_s=20, first_byte_s=0.3, idle_s=20)
AT_ONCE: Final = 12
DESCRIPTORS: Final = Path("/proc/self/fd")
ONE: Final = ends("stop", Text("one"))
#: What the first upstream does, and the outcomes of its attempts. A busy machine may make any request time out.
PLAYS: Final[Mapping[str, tuple[Any, str]]] = {
    "sound": (ONE, "success"),
    "slow": (lambda request: Script((Delay(0.15), *ONE(request).steps)), "success"),
    "hangs": (Script((Hang(),)), "first_byte_timeout"),
    "fails": (status(503), "http_503"),
    "asks_for_a_pause": (status(503, headers=BUSY), "http_503"),
    "closes": (Script((Fin(),)), "refused"),
    "limits_one_key": (ONE, "success http_429"),
    "limits_both_keys": (status(429, headers=BUSY), "http_429"),
    "full": (coded(400, "context_length_exceeded"), "http_400"),
    "refuses": (ends("refusal", Refusal("No.")), "refusal"),
    "filtered": (ends("content_filter"), "content_filter"),
    "silent": (ends("stop"), "no_output"),
    "wrong": (status(400), "http_400"),
    "cut": (lambda request: _cut(stream=asks_for_stream(request, "openai-chat")), "broken"),
}
#: Less frequent than the others: after each the first upstream rests, and most requests are to find it awake.
PAUSES: Final = {"asks_for_a_pause", "limits_both_keys"}
SLOW: Final = {"first_byte_timeout", "hedged_out"}


def _cut(*, stream: bool) -> Script:
    return FAULTS["reset mid-line"]("openai-chat", whole=not stream)


@cache
def script(fault: str, *, stream: bool, is_first_key: bool) -> Script:
    if fault == "limits_one_key" and is_first_key:
        return status(429, headers=BUSY)
    play = PLAYS[fault][0]
    example = Received("POST", "/", (), orjson.dumps({"stream": stream}), 0, 0, 0)
    return play if isinstance(play, Script) else play(example)


def first(request: Received) -> Script:
    found = re.search(rb"fault:(\w+)", request.body)
    assert found
    is_first_key = request.header("authorization") == f"Bearer {KEYS[0]}"
    return script(found[1].decode(), stream=b'"stream":true' in request.body, is_first_key=is_first_key)


@cache
def _two(*, stream: bool) -> Script:
    play = ends("stop", Text("two"), dialect="anthropic")
    return play(Received("POST", "/", (), orjson.dumps({"stream": stream}), 0, 0, 0))


def second(request: Received) -> Script:
    return _two(stream=b'"stream":true' in request.body)


@frozen
class Asked:
    """A request, and what its client saw."""

    fault: str
    id: str
    status: int
    text: str
    clean: bool
    error: str


async def asked(session: ClientSession, fault: str, client: str, *, stream: bool) -> Asked:
    path, body = asking(client, stream=stream)
    data = orjson.dumps(body).replace(b'"hi"', f'"fault:{fault}"'.encode())
    read = bytearray()
    async with session.post(path, data=data) as response:
        try:
            async for chunk in response.content.iter_any():
                read += chunk
        except ClientPayloadError:
            pass
        name = response.headers["x-request-id"]
        if response.status != 200:
            failed = decode_error(response.status, bytes(read), client, response.headers)
            return Asked(fault, name, response.status, "", clean=False, error=failed.message)
    if not stream:
        whole = decode_response(bytes(read), client)
        return Asked(fault, name, 200, whole.choices[0].text, clean=whole.clean, error="")
    found = await collect(source_of([bytes(read)]), client)
    error = found.report.provider_error
    return Asked(fault, name, 200, found.text, clean=found.clean, error=error[1] if error else "")


def drawn(requests: int) -> list[tuple[str, str, bool]]:
    """Faults, clients and whether they stream; in the middle is an outage."""
    chance = random.Random(11)
    shares = {fault: 0.01 if fault in PAUSES else 0.05 for fault in PLAYS}
    shares["sound"] = 1 - sum(shares.values()) + shares["sound"]
    faults = [*PLAYS, *chance.choices([*shares], [*shares.values()], k=requests - len(PLAYS))]
    outage = max(40, requests // 50)
    middle = requests // 2
    faults[middle : middle + outage] = ["fails"] * outage
    return [(fault, chance.choice(CLIENTS), chance.random() < 0.5) for fault in faults]


@frozen
class Log:
    """The lines of requests, and those at whose beginning the first upstream rested by the log."""

    lines: dict[str, Mapping[str, Any]] = field(factory=dict)
    rested: set[str] = field(factory=set)

    @classmethod
    def of(cls, records: list[logging.LogRecord]) -> Log:
        log, is_open, pause, keys = cls(), False, 0.0, [0.0, 0.0]
        for record in records:
            fields, at, event = getattr(record, "fields", {}), record.created, record.getMessage()
            match event:
                case "request":
                    log.lines[fields["request_id"]] = fields
                case "begins":
                    if is_open or at < max(pause, min(keys)):
                        log.rested.add(fields["request_id"])
                case "an upstream rests after failures" | "an upstream responds again":
                    is_open = "rests" in event
                case "an upstream rests as it asked":
                    pause = at + fields["rest_s"] + LONGER_S
                case "a key of an upstream rests":
                    keys[fields["key_number"] - 1] = at + fields["rest_s"] + LONGER_S
        return log


@pytest.fixture
def beginnings(monkeypatch):
    """The log has another line when the upstreams for a request are chosen."""
    order = Attempts._order

    def noted(attempts):
        gateway_log.info("begins", extra={"fields": {"request_id": attempts.record.id}})
        return order(attempts)

    monkeypatch.setattr(Attempts, "_order", noted)


@pytest.mark.usefixtures("beginnings")
@pytest.mark.parametrize("hedge_after_s", [None, 0.08], ids=["in turn", "hedged"])
@pytest.mark.parametrize("requests", [150, pytest.param(10_000, marks=pytest.mark.exhaustive)])
async def test_the_second_upstream_responds_only_if_the_first_failed_or_rests(requests, hedge_after_s, caplog):
    caplog.set_level(logging.INFO, "streamkit.gateway")
    plan = drawn(requests)
    waiting = iter(plan)
    found: list[Asked] = []
    descriptors = {*DESCRIPTORS.iterdir()}
    async with FastUpstream(first) as one, FastUpstream(second) as two:
        keyed = {"auth": "bearer", "keys": tuple(map(Secret, KEYS)), "timeouts": TIMES}
        upstreams = [
            upstream_at(one, "openai-chat", rest=Rest(first_s=0.1, max_s=0.2), **keyed),
            upstream_at(two, "anthropic", "two", timeouts=PATIENT),
        ]
        reasons = ("default", "context_length", "refusal", "content_filter", "no_output")
        async with gateway(config_of(upstreams, next_on=reasons, hedge_after_s=hedge_after_s)) as running:
            async with ClientSession(running.url) as session:

                async def work() -> None:
                    for fault, client, stream in waiting:
                        found.append(await asked(session, fault, client, stream=stream))

                await asyncio.gather(*(work() for _ in range(AT_ONCE)))
            await running.outcomes()
            await eventually(lambda: one.busy == two.busy == 0)
            assert not running.counted("streams_active")
        await eventually(lambda: not one.open and not two.open)
    assert {*DESCRIPTORS.iterdir()} == descriptors

    log = Log.of(caplog.records)
    assert len(found) == len(log.lines) == requests
    for each in found:
        check(each, log)
    assert {fault for fault, *_ in plan} == {*PLAYS}
    if requests > 1000:  # a check of the check: rests must occur, and not be so frequent that they explain any request
        assert any(record.getMessage() == "an upstream rests after failures" for record in caplog.records)
        awake = [each.id in log.rested for each in found if each.text == "one"]
        assert sum(awake) < 2 * len(awake) / 3


def check(each: Asked, log: Log) -> None:
    line = log.lines[each.id]
    attempts = [(one["upstream"], one["outcome"]) for one in line["attempts"]]
    of_first = {outcome for upstream, outcome in attempts if upstream == "one"}
    about = f"{each} {line}"
    assert of_first <= {*PLAYS[each.fault][1].split(), *SLOW}, about
    assert line["status"] == each.status, about
    last, outcome = attempts[-1]
    if each.clean:
        assert outcome == "success", about
        assert each.text == last, about
        assert not each.error, about
    else:  # nothing is silent: the client has an error, and the log, too
        assert each.fault in {"wrong", "cut"}, about
        assert each.error, about
        assert (last, outcome) == ("one", PLAYS[each.fault][1]), about
        assert line["ending"] in {"error", "broken"}, about
    if last == "two" and not of_first - {"success"}:
        assert each.id in log.rested, about
