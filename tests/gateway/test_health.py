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


def row(outcomes: str, start: float = 0.0, apart_s: float = 1.0) -> list[tuple[float, float, str]]:
    """Attempts one after another, by the first letters of their outcomes: failures and responses."""
    times = [start + number * apart_s for number in range(len(outcomes))]
    return [(at, at, {"f": BAD, "r": OK}[letter]) for at, letter in zip(times, outcomes, strict=True)]


FIVE = row("fffff")  # opens at 4 s
LIVES = {
    "four failures": Life(row("ffff"), serves=[4]),
    "five failures": Life(FIVE, rests=[4, 13.9], serves=[14.1]),
    "five failures, each after the last is forgotten": Life(row("fffff", apart_s=31), serves=[125]),
    "five within half a minute": Life(row("fffff", apart_s=7), rests=[29]),
    "five of ten attempts": Life(row("frfrfrfrf"), rests=[9]),
    "five of thirteen attempts": Life(row("frrfrrfrrfrrf"), serves=[13]),
    "one in ten, for a long time": Life(row("rrrrrrrrrf" * 20, apart_s=0.5), serves=[100]),
    "one in ten, long before the responses": Life(
        [(t, t + 60 * (t % 10 > 0), OK if t % 10 else BAD) for t in range(100)], serves=[100]
    ),
    "one in four, the last of them first": Life(
        [(t, 99 - t if t in {0, 4, 9, 14, 19} else 200, BAD if t in {0, 4, 9, 14, 19} else OK) for t in range(20)],
        serves=[100],
    ),
    "an outage after that": Life([*row("rrrrrrrrrf" * 20, apart_s=0.5), *row("fffff", 101)], rests=[106]),
    "sixteen failures at once": Life(row("f" * 16, apart_s=0.01), serves=[1]),
    "seventeen failures at once": Life(row("f" * 17, apart_s=0.01), rests=[1]),
    "one slow failure on an idle service": Life([(0, 60, SLOW)], serves=[61]),
    "two, one after the other": Life([(0, 60, SLOW), (100, 160, SLOW)], rests=[161]),
    "two, and an hour between": Life([(0, 60, SLOW), (3600, 3660, SLOW)], serves=[3661]),
    "two, and five responses between": Life([(0, 60, SLOW), *row("rrrrr", 61), (100, 160, SLOW)], serves=[161]),
    "three at once": Life([(0, 60 + t / 100, SLOW) for t in range(3)], serves=[61]),
    "four at once": Life([(0, 60 + t / 100, SLOW) for t in range(4)], rests=[61]),
    "a slow one and clients that left": Life([(0, 60, SLOW), *((t, t, LEFT) for t in range(60, 70))], serves=[70]),
    "a failed probe": Life([*FIVE, *row("f", 20)], rests=[20, 39.9], serves=[40.1]),
    "failed probes, up to the maximum": Life(
        [*FIVE, *((t, t, BAD) for t in (20, 50, 100, 200, 400))], rests=[499.9], serves=[500.1], rest={"max_s": 100}
    ),
    "a probe that succeeds, and four failures more": Life([*FIVE, *row("rffff", 20)], serves=[14, 25]),
    "a fifth one: the first rest again": Life([*FIVE, *row("rfffff", 20)], rests=[25.1, 34.9], serves=[35.1]),
    "a client that leaves a probe": Life([*FIVE, (20, 20, LEFT)], serves=[20.1]),
    "what began before says nothing": Life([*FIVE, (3, 5, OK), (3, 20, BAD)], rests=[5, 13], serves=[20.1]),
    "nor after the return": Life([(0, 30 + t, BAD) for t in range(9)] + [*FIVE, *row("r", 20)], serves=[40]),
    "what fails while it rests does not prolong it": Life([*FIVE, (6, 7, BAD)], serves=[14.1]),
    "what succeeds while it rests ends it": Life([*FIVE, (6, 7, OK)], serves=[7.1]),
    "turned off": Life(row("f" * 50), serves=[50], rest={"failures": 0}),
    "at the first failure, for a second": Life(row("f"), rests=[0.9], serves=[1.1], rest={"failures": 1, "first_s": 1}),
}  # fmt: skip


def lived(attempts: list[tuple[float, float, str]], one: Upstream) -> Health:
    """What is known after these attempts, which may overlap."""
    health, numbers, reports = Health(), {}, {}
    events = sorted(
        [(started, 0, index) for index, (started, _, _) in enumerate(attempts)]
        + [(now, 1, index) for index, (_, now, _) in enumerate(attempts)],
        key=lambda event: (event[0], event[2], event[1]),
    )
    for at, is_end, index in events:
        if is_end:
            health.end(KEY, one, Ended(attempts[index][2], None, reports[index], numbers[index], at))
            continue
        report = reports[index] = StreamReport()
        if attempts[index][2] == SLOW:
            report.failed(FirstByteTimeout(FIRST_BYTE_S))
        numbers[index] = health.begin(KEY, report, at)
    assert health.streams == {"one": 0}
    return health


@pytest.mark.parametrize("life", LIVES.values(), ids=LIVES)
def test_the_life_of_a_circuit(life):
    health = lived(life.attempts, upstream(**life.rest))
    assert [at for at in life.rests if health.rests_until(KEY, at) <= at] == []
    assert [at for at in life.serves if health.rests_until(KEY, at) > at] == []
    assert health.rests_until(("one", "other"), 5) == 0


def test_other_requests_go_past_a_probe_until_the_model_speaks():
    health, probe = lived(FIVE, upstream()), StreamReport()
    number = health.begin(KEY, probe, 20)
    health.begin(KEY, StreamReport(), 20)  # all others rest, too: this one does not take the probe's place
    assert health.rests_until(KEY, 20) > 20
    assert health.resting(20) == {("one", BAD): 1}
    probe.spoken = True
    health.begin(KEY, StreamReport(), 20)
    assert health.rests_until(KEY, 20) <= 20
    assert not health.resting(20)
    health.end(KEY, upstream(), Ended("cut", None, probe, number, 21))
    assert health.rests_until(KEY, 21) == 41


def test_a_response_to_another_request_ends_the_rest_while_the_probe_is_silent():
    health, other = lived(FIVE, upstream()), StreamReport()
    number = health.begin(KEY, other, 13)  # while all upstreams rest
    health.begin(KEY, StreamReport(), 20)
    health.end(KEY, upstream(), Ended("success", None, other, number, 21))
    assert health.rests_until(KEY, 21) <= 21


@pytest.mark.parametrize(
    ("outcome", "kind", "failures"),
    [
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
        *((outcome, None, 0) for outcome in ("failed", "request_unfit", "success", "answered", "tool_choice_ignored")),
    ],
)
def test_what_counts_as_a_failure(outcome, kind, failures):
    failed = None if kind is None else ProviderFailed(kind, "no")
    assert Ended(outcome, failed, StreamReport(), 1, 0).failures == failures


@pytest.mark.parametrize(("is_slow", "failures"), [(True, 1), (False, 0)])
def test_an_attempt_that_lost_a_race_counts_if_the_race_began_because_of_it(is_slow, failures):
    assert Ended("hedged_out", None, StreamReport(), 1, 0, is_slow=is_slow).failures == failures


@pytest.mark.parametrize(("error", "failures"), [(BrokenFrame("no JSON", b"{"), 1), (TooManyToolCalls(9), 0)])
def test_a_limit_of_the_gateway_is_no_failure_of_the_upstream(error, failures):
    report = StreamReport()
    report.failed(error)
    assert Ended("broken", None, report, 1, 0).failures == failures


# -- in the gateway ----------------------------------------------------------------------------------------------------


async def test_a_hanging_upstream_costs_two_requests_their_patience_and_no_more():
    silent = FAULTS["silence before headers"]("openai-chat")
    times = Timeouts(connect_s=20, first_byte_s=0.25, idle_s=20)
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


def test_a_pause_that_an_upstream_asks_for_is_logged_once(caplog):
    health, busy = Health(), ProviderFailed("unavailable", "busy", retry_after_s=60)
    numbers = [health.begin(KEY, StreamReport(), 0) for _ in range(3)]
    for number, at in zip(numbers, (1, 2, 70), strict=True):
        health.end(KEY, upstream(), Ended("http_503", busy, StreamReport(), number, at))
    about = {"upstream": "one", "model": "m", "outcome": "http_503", "rest_s": 60}
    assert [(line.message, line.fields) for line in caplog.records] == [("an upstream rests as it asked", about)] * 2


async def test_where_all_rest_the_one_due_first_is_asked():
    long, short = Rest(failures=1, first_s=100), Rest(failures=1, first_s=50)
    async with in_turn(leg(status(500), SOUND, rest=long), leg(status(500), SOUND, rest=short)) as running:
        assert [(await running.asked()).status for _ in range(3)] == [500, 200, 200]
        assert running.seen == [1, 3]
