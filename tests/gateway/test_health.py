"""What a process learns of its upstreams: when a circuit opens, who probes it, when it closes, and who is asked meanwhile."""

from __future__ import annotations

import asyncio

import pytest
from attrs import field, frozen

from streamkit.errors import BrokenFrame, FirstByteTimeout, TooManyToolCalls
from streamkit.events import ProviderFailed
from streamkit.gateway.health import Ended, Health
from streamkit.report import StreamReport
from streamkit.web.source import Timeouts
from streamkit.web.upstream import Upstream
from streamkit.web.upstream.value import Rest
from tests.gateway.running import in_turn, leg
from tests.gateway.test_attempts import PATIENT, SOUND
from tests.web.evil import Script, Until
from tests.web.faults import FAULTS, good, status
from tests.web.serving import eventually

KEY = ("one", "m")
OK, BAD, SLOW, LEFT = "success", "refused", "first_byte_timeout", "client_left"
FIRST_BYTE_S = 60.0


def upstream(**rest: float) -> Upstream:
    return Upstream(name="one", dialect="openai-chat", base_url="http://127.0.0.1:9", auth="none", rest=Rest(**rest))


@frozen
class Life:
    """Attempts, each with its start, its end and its outcome, and the times at which the upstream rests or does not."""

    attempts: list[tuple[float, float, str]]
    rests: list[float] = field(factory=list)
    serves: list[float] = field(factory=list)
    rest: dict[str, float] = field(factory=dict)


def row(outcome: str, times: int, start: float = 0.0) -> list[tuple[float, float, str]]:
    return [(start + number, start + number, outcome) for number in range(times)]


FIVE = row(BAD, 5)  # opens at 4 s
LIVES = {
    "four failures": Life(row(BAD, 4), serves=[4]),
    "five failures": Life(FIVE, rests=[4, 13.9], serves=[14.1]),
    "five failures on a slow day": Life([(t, t, BAD) for t in range(0, 200, 31)], serves=[200]),
    "one failure in ten responses": Life([*row(OK, 9), (9, 9, BAD)] * 20, serves=[10]),
    "a response after four failures": Life([*row(BAD, 4), (4, 4, OK), (5, 5, BAD)], serves=[6]),
    "two failures more after it": Life([*row(BAD, 4), (4, 4, OK), *row(BAD, 2, 5)], rests=[6]),
    "one slow failure on an idle service": Life([(0, 60, SLOW)], serves=[61]),
    "two, one after the other": Life([(0, 60, SLOW), (100, 160, SLOW)], rests=[161]),
    "two, and an hour between": Life([(0, 60, SLOW), (3600, 3660, SLOW)], serves=[3661]),
    "a slow one and clients that left": Life([(0, 60, SLOW), *row(LEFT, 9, 60)], serves=[70]),
    "a failed probe": Life([*FIVE, (20, 20, BAD)], rests=[20, 39.9], serves=[40.1]),
    "failed probes, up to the maximum": Life(
        [*FIVE, *((t, t, BAD) for t in (20, 50, 100, 200, 400))], rests=[499.9], serves=[500.1], rest={"max_s": 100}
    ),
    "a probe that succeeds, and four failures more": Life([*FIVE, (20, 20, OK), *row(BAD, 4, 21)], serves=[14, 25]),
    "a fifth one: the first rest again": Life([*FIVE, (20, 20, OK), *row(BAD, 5, 21)], rests=[34.9], serves=[35.1]),
    "a client that leaves a probe": Life([*FIVE, (20, 20, LEFT)], serves=[20.1]),
    "what began before says nothing": Life([*FIVE, (3, 5, OK), (3, 20, BAD)], rests=[5, 13], serves=[20.1]),
    "what fails while it rests does not prolong it": Life([*FIVE, (6, 7, BAD)], serves=[14.1]),
    "what succeeds while it rests ends it": Life([*FIVE, (6, 7, OK)], serves=[7.1]),
    "turned off": Life(row(BAD, 50), serves=[50], rest={"failures": 0}),
    "at the first failure, for a second": Life(row(BAD, 1), rests=[0.9], serves=[1.1], rest={"failures": 1, "first_s": 1}),
}  # fmt: skip


@pytest.mark.parametrize("life", LIVES.values(), ids=LIVES)
def test_the_life_of_a_circuit(life):
    health, one = Health(), upstream(**life.rest)
    for started, now, outcome in life.attempts:
        report = StreamReport()
        if outcome == SLOW:
            report.failed(FirstByteTimeout(FIRST_BYTE_S))
        health.begin(KEY, report, started)
        assert health.streams == {"one": 1}
        health.end(KEY, one, Ended(outcome, None, report, started, now))
    assert [at for at in life.rests if health.rests_until(KEY, at) <= at] == []
    assert [at for at in life.serves if health.rests_until(KEY, at) > at] == []
    assert health.rests_until(("one", "other"), 5) == 0


def test_other_requests_go_past_a_probe_until_the_model_speaks():
    health, probe = Health(), StreamReport()
    for started, now, outcome in FIVE:
        health.end(KEY, upstream(), Ended(outcome, None, StreamReport(), started, now))
    health.begin(KEY, probe, 20)
    health.begin(KEY, StreamReport(), 20)  # all others rest, too: this one does not take the probe's place
    assert health.rests_until(KEY, 20) > 20
    assert health.resting(20) == {("one", BAD): 1}
    probe.spoken = True
    health.begin(KEY, StreamReport(), 20)
    assert health.rests_until(KEY, 20) <= 20
    assert not health.resting(20)
    health.end(KEY, upstream(), Ended("cut", None, probe, 20, 21))
    assert health.rests_until(KEY, 21) == 41


@pytest.mark.parametrize(
    ("outcome", "kind", "points"),
    [
        ("success", None, -1),
        ("answered", None, -1),
        ("tool_choice_ignored", None, -1),
        *((outcome, None, 3) for outcome in ("connect_timeout", "first_byte_timeout", "idle_timeout")),
        *((outcome, None, 1) for outcome in ("refused", "total_timeout", "cut", "broken", "not_this_dialect")),
        *((f"http_{code}", "server", 1) for code in (500, 502, 529)),
        ("http_503", "unavailable", 1),
        ("error_event", "unavailable", 1),
        ("error_event", "server", 1),
        # says nothing of the upstream
        ("http_500", "invalid_request", 0),
        ("http_503", "rate_limit", 0),
        ("error_event", "rate_limit", 0),
        ("error_event", "content_filter", 0),
        *((f"http_{code}", "invalid_request", 0) for code in (307, 400, 413, 422)),
        *(("http_429", kind, 0) for kind in ("rate_limit", "billing")),
        *((outcome, None, 0) for outcome in ("client_left", "client_stalled", "shut_down", "stage_failed", "blocked")),
        *((outcome, None, 0) for outcome in ("failed", "request_unfit")),
    ],
)
def test_what_counts_as_a_failure(outcome, kind, points):
    failed = None if kind is None else ProviderFailed(kind, "no")
    assert Ended(outcome, failed, StreamReport(), 0, 0).points == points


@pytest.mark.parametrize(("error", "points"), [(BrokenFrame("no JSON", b"{"), 1), (TooManyToolCalls(9), 0)])
def test_a_limit_of_the_gateway_is_no_failure_of_the_upstream(error, points):
    report = StreamReport()
    report.failed(error)
    assert Ended("broken", None, report, 0, 0).points == points


# -- in the gateway ----------------------------------------------------------------------------------------------------


async def test_a_hanging_upstream_costs_two_requests_their_patience_and_no_more():
    silent = FAULTS["silence before headers"]("openai-chat")
    times = Timeouts(connect_s=20, first_byte_s=0.1, idle_s=20)
    async with in_turn(leg(silent, timeouts=times), leg(SOUND, timeouts=PATIENT)) as running:
        for _ in range(6):
            assert (await running.asked("anthropic", stream=False)).status == 200
        assert running.seen == [2, 6]


async def test_of_fifty_requests_at_once_one_probes_and_the_others_go_past_it(caplog):
    """The upstream before it always fails: each request asks whether it may be asked only then."""
    go = asyncio.Event()
    probed = Script((Until(go), *good("openai-chat").steps))
    one = leg(status(500), rest=Rest(failures=0), timeouts=PATIENT)
    two = leg(status(500), probed, SOUND, rest=Rest(failures=1, first_s=0.05), timeouts=PATIENT)
    async with in_turn(one, two, leg(SOUND, timeouts=PATIENT)) as running:
        await running.asked()
        await asyncio.sleep(0.06)
        asking = [asyncio.create_task(running.asked()) for _ in range(50)]
        await eventually(lambda: running.seen == [51, 2, 50])
        go.set()
        assert {answer.status for answer in await asyncio.gather(*asking)} == {200}
        assert (await running.asked()).status == 200
        assert running.seen == [52, 3, 50]
    lines = [(line.message, line.fields) for line in caplog.records if line.message.startswith("an upstream")]
    about = {"upstream": "two", "model": "m", "outcome": "http_500"}
    assert lines == [
        ("an upstream rests after failures", {**about, "rest_s": 0.05}),
        ("an upstream responds again", about),
    ]


async def test_where_all_rest_the_one_due_first_is_asked():
    long, short = Rest(failures=1, first_s=100), Rest(failures=1, first_s=50)
    async with in_turn(leg(status(500), SOUND, rest=long), leg(status(500), SOUND, rest=short)) as running:
        assert [(await running.asked()).status for _ in range(3)] == [500, 200, 200]
        assert running.seen == [1, 3]
