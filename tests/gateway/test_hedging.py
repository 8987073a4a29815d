"""``hedge_after_s``: the next upstream is asked while one is silent; the first that says something responds, the other is left."""

from __future__ import annotations

import asyncio
import logging
import tracemalloc
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import orjson
import pytest

from streamkit.conversation.messages import Refusal, Text
from streamkit.gateway.app import gateway_app
from streamkit.gateway.hedging import HeldTap, Race
from streamkit.gateway.metrics import Metrics
from streamkit.gateway.routing import RouteStage
from streamkit.lab.inspector.captures import CAPTURE_BYTES, Captures
from streamkit.web.source import Timeouts
from streamkit.web.upstream import Secret
from streamkit.web.upstream.value import Rest
from tests.gateway.running import NAMES, Leg, asking, config_of, in_turn, leg, upstream_at
from tests.gateway.test_app import passed, tells
from tests.gateway.test_next_on import CLIENTS, ends, heard
from tests.web.evil import Delay, EvilUpstream, Fin, Hang, Play, Received, Script, Send, Until
from tests.web.faults import asks_for_stream, chunk, head, status
from tests.web.leaks import in_use
from tests.web.raw_client import ask
from tests.web.serving import eventually, serving
from tests.web.socket_upstream import saying, socket_upstream

pytestmark = pytest.mark.usefixtures("no_leaks")
AFTER_S: Final = 0.02
PATIENT: Final = Timeouts(connect_s=20, first_byte_s=20, idle_s=20)
ROLE: Final = b'data: {"id":"r","choices":[{"index":0,"delta":{"role":"assistant"},"finish_reason":null}]}\n\n'
STREAM: Final = {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"}
Outcomes: TypeAlias = Mapping[tuple[str, str], int]


def says(text: str, *before: Delay | Until, **how: Any) -> Callable[[Received], Script]:
    """A complete response with this text, after some time."""
    play = ends("stop", Text(text), **how)
    return lambda request: Script((*before, *play(request).steps))


def then(*steps: Delay | Until | Hang, play: Script = Script()) -> Script:  # noqa: B008 - scripts are values
    return Script((*steps, *play.steps))


def keeps_alive(request: Received) -> Script:
    """A response that has begun, and a model that says nothing: headers, a comment, a first chunk without output."""
    if not asks_for_stream(request, "openai-chat"):
        return Script((Send(head(200, {"Content-Type": "application/json", "Content-Length": "900"}) + b" "), Hang()))
    return Script((Send(head(200, STREAM)), Send(chunk(b": ping\n\n")), Send(chunk(ROLE)), Hang()))


SILENT: Final = then(Hang())
KEYED: Final[Mapping[str, Any]] = {"auth": "bearer", "keys": (Secret("first-key"), Secret("second-key"))}
ONE, TWO = says("one"), says("two")
LOST, WON = "hedged_out", "success"
#: What the upstreams do, given an event for when the second is asked, and one for when the first script was played to its end;
#: the text or the status that the client gets, how many requests each upstream got, and their outcomes.
RACES: Final[Mapping[str, tuple[Callable[..., Sequence[Leg | Play]], str | int, list[int], Outcomes]]] = {
    "no hedge where the first is quick": (lambda *_: [ONE, TWO], "one", [1, 0], {("one", WON): 1}),
    "the first hangs": (lambda *_: [SILENT, TWO], "two", [1, 1], {("one", LOST): 1, ("two", WON): 1}),
    "the first hangs, and has a second key": (
        lambda *_: [leg(SILENT, timeouts=PATIENT, **KEYED), TWO], "two", [1, 1], {("one", LOST): 1, ("two", WON): 1},
    ),
    "the first only keeps alive": (
        lambda *_: [keeps_alive, TWO], "two", [1, 1], {("one", LOST): 1, ("two", WON): 1},
    ),
    "the first is slow, and yet the first to speak": (
        lambda asked, _: [says("one", Until(asked)), SILENT], "one", [1, 1], {("one", WON): 1, ("two", LOST): 1},
    ),
    "at most two at once": (
        lambda asked, _: [says("one", Until(asked), Delay(2 * AFTER_S)), SILENT, ONE], "one", [1, 1, 0],
        {("one", WON): 1, ("two", LOST): 1},
    ),
    "the first fails at once": (
        lambda *_: [status(500), TWO], "two", [1, 1], {("one", "http_500"): 1, ("two", WON): 1},
    ),
    "the first fails while the next is pending": (
        lambda asked, played: [then(Until(asked), play=status(500)), says("two", Until(played))], "two", [1, 1],
        {("one", "http_500"): 1, ("two", WON): 1},
    ),
    "the next fails while the first is pending": (
        lambda _, played: [says("one", Until(played)), status(500)], "one", [1, 1],
        {("one", WON): 1, ("two", "http_500"): 1},
    ),
    "the next fails, and the one after it is asked": (
        lambda *_: [SILENT, status(500), says("three")], "three", [1, 1, 1],
        {("one", LOST): 1, ("two", "http_500"): 1, ("three", WON): 1},
    ),
    "both fail": (
        lambda _, played: [then(Until(played), play=status(500)), status(503)], 503, [1, 1],
        {("one", "http_500"): 1, ("two", "http_503"): 1},
    ),
    "both can't be reached": (
        lambda *_: [leg(SILENT, base_url="http://127.0.0.1:9")] * 2, 502, [0, 0],
        {("one", "refused"): 1, ("two", "refused"): 1},
    ),
    "what the first refuses is refused, whatever the next would say": (
        lambda asked, _: [then(Until(asked), play=status(400)), SILENT], 400, [1, 1],
        {("one", "http_400"): 1, ("two", LOST): 1},
    ),
    "what the next refuses does not end the first": (
        lambda _, played: [says("one", Until(played)), status(400), ONE], "one", [1, 1, 0],
        {("one", WON): 1, ("two", "http_400"): 1},
    ),
}  # fmt: skip


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(("legs", "got", "seen", "outcomes"), RACES.values(), ids=RACES)
async def test_who_responds(
    legs: Callable[..., Sequence[Leg | Play]],
    got: str | int,
    seen: list[int],
    outcomes: Outcomes,
    client: str,
    *,
    stream: bool,
):
    asked, played = asyncio.Event(), asyncio.Event()
    upstreams = [each if isinstance(each, Leg) else leg(each, timeouts=PATIENT) for each in legs(asked, played)]
    after_s = 5.0 if seen[1:] == [0] and len(outcomes) == 1 else AFTER_S
    async with in_turn(*upstreams, hedge_after_s=after_s) as running:
        answer = asyncio.create_task(running.asked(client, stream=stream))
        if seen[1]:
            await running.evils[1].request()
            asked.set()
            requests = [evil.requests[0] for evil in running.evils[:2]]
            await eventually(lambda: any(request.played_at for request in requests))
            await asyncio.sleep(0.01)  # until the gateway has read it
            played.set()
        found = await heard(await answer, client, stream=stream)
        assert await running.outcomes() == outcomes
        assert running.seen == seen
        for name, evil in zip(NAMES, running.evils, strict=False):
            if (name, LOST) in outcomes:
                await (await evil.request()).left()
        if isinstance(got, str):
            assert (found.status, found.text) == (200, got)
        else:
            assert found.status in {got, {503: 529}.get(got)}


async def test_an_upstream_that_hangs_soon_rests_and_the_one_that_was_asked_because_of_it_does_not():
    rest = Rest(failures=1)
    async with in_turn(*patient(SILENT, ONE, rest=rest), hedge_after_s=AFTER_S) as running:
        for _ in range(3):
            assert (await heard(await running.asked(), "openai-chat", stream=True)).text == "one"
        assert running.seen == [1, 3]
    async with in_turn(*patient(says("one", Delay(2 * AFTER_S)), SILENT, rest=rest), hedge_after_s=AFTER_S) as running:
        for _ in range(2):
            assert (await heard(await running.asked(), "openai-chat", stream=True)).text == "one"
        assert running.seen[0] == 2


def patient(*plays: Play, **values: Any) -> list[Leg]:
    return [leg(play, timeouts=PATIENT, **values) for play in plays]


@pytest.mark.parametrize("how", ["fin", "rst"])
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("second", [SILENT, keeps_alive, None], ids=["hangs", "keeps alive", "is not asked yet"])
async def test_a_client_that_leaves_during_the_race_ends_both(second: Play | None, how: Any, *, stream: bool):
    async with in_turn(*patient(keeps_alive, second or ONE), hedge_after_s=AFTER_S if second else 20) as running:
        before = await in_use()
        for number in range(2):
            async with running.client("anthropic", stream=stream) as client:
                requests = [await evil.request(number) for evil in running.evils[: 2 if second else 1]]
                await asyncio.sleep(0.01)  # until the gateway has read what the upstreams wrote
                client.leave(how)
                for request in requests:
                    await request.left()
        left = {("one", "client_left"): 2, ("two", "client_left"): 2}
        assert await running.outcomes() == (left if second else {("one", "client_left"): 2})
        assert not await in_use() - before


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("first", [SILENT, keeps_alive], ids=["hangs", "keeps alive"])
async def test_a_gateway_that_stops_during_the_race_says_so(first: Play, *, stream: bool):
    async with in_turn(*patient(first, SILENT), hedge_after_s=AFTER_S, server={"grace_s": 0.1}) as running:
        answer = asyncio.create_task(running.asked(stream=stream))
        await running.evils[1].request()
        await asyncio.sleep(0.01)
    assert b"shutting down" in (await answer).body
    assert await running.outcomes() == {("one", "shut_down"): 1, ("two", "shut_down"): 1}


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_the_headers_and_the_log_are_of_the_one_that_responds(caplog: pytest.LogCaptureFixture, *, stream: bool):
    caplog.set_level(logging.INFO)
    slow = says("one", Delay(0.06), headers=tells("one"))
    for plays, winner in ((slow, SILENT), "one"), ((keeps_alive, says("two", headers=tells("two"))), "two"):
        async with in_turn(*patient(*plays), hedge_after_s=AFTER_S) as running:
            answer = await running.asked(
                stream=stream, body={"stream_options": {"include_usage": True}} if stream else {}
            )
            await running.outcomes()
        assert passed(answer) == [winner] * 3
        line = [record.fields for record in caplog.records if record.name == "streamkit.gateway"][-1]  # type: ignore[attr-defined]
        assert [each["outcome"] for each in line["attempts"]] == [LOST, WON]
        assert "path" not in line["attempts"][0]
        assert (line["attempts"][1]["upstream"], line["usage"]["output"], line["stop"]) == (winner, 1, "stop")


async def test_the_last_attempt_of_the_log_is_the_one_whose_error_the_client_gets(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO)
    asked = asyncio.Event()
    async with in_turn(*patient(then(Until(asked), play=status(400)), SILENT), hedge_after_s=AFTER_S) as running:
        answer = asyncio.create_task(running.asked())
        await running.evils[1].request()
        asked.set()
        assert (await answer).status == 400
        await running.outcomes()
    [line] = [record.fields for record in caplog.records if record.name == "streamkit.gateway"]  # type: ignore[attr-defined]
    assert [(each["upstream"], each["outcome"]) for each in line["attempts"]] == [("two", LOST), ("one", "http_400")]


async def test_keep_alives_before_the_race_is_decided_have_the_headers_of_no_upstream():
    begun = Script((Send(head(200, {**STREAM, **tells("one")})), Hang()))
    second = says("two", Delay(0.08), headers=tells("two"))
    async with in_turn(*patient(begun, second), hedge_after_s=AFTER_S, server={"keep_alive_s": 0.03}) as running:
        answer = await running.asked()
    assert answer.body.startswith(b": ")
    assert passed(answer) == ["", "", ""]
    assert b"two" in answer.body


async def test_a_refusal_of_one_is_kept_while_the_other_is_pending():
    refuses = ends("refusal", Refusal("No."))
    for slow, got in (says("two", Delay(0.06)), "two"), (then(Delay(0.06), play=status(500)), ""):
        for plays in (refuses, slow), (slow, refuses):
            async with in_turn(*patient(*plays), hedge_after_s=AFTER_S, next_on=["default", "refusal"]) as running:
                answer = await running.asked("anthropic")
                found = await heard(answer, "anthropic", stream=True)
                assert (found.status, found.text) == (200, got or "No.")
                assert running.seen == [1, 1]


async def test_what_won_and_breaks_off_is_continued_by_the_other():
    def goes_on(request: Received) -> Script:
        begun = request.json()["messages"][-1]
        return SILENT if begun["role"] == "user" else says(" and on", dialect="ollama")(request)

    first, second = ends("stop", Text("on"), dialect="ollama"), goes_on

    def cut(request: Received) -> Script:
        steps = first(request).steps
        return Script((Delay(0.04), *steps[:2], Fin()))

    async with in_turn(*patient(cut, second, dialect="ollama"), hedge_after_s=AFTER_S, on_cut="continue") as running:
        found = await heard(await running.asked(), "openai-chat", stream=True)
        assert found.text == "on and on"
        assert await running.outcomes() == {("one", "broken"): 1, ("two", LOST): 1, ("two", WON): 1}


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_a_websocket_of_the_slower_one_is_closed(*, stream: bool):
    async with socket_upstream(saying([])) as sockets:
        slow = upstream_at(sockets, "openai-responses", transport="websocket", timeouts=PATIENT)
        async with in_turn(slow, leg(TWO, name="two"), hedge_after_s=AFTER_S) as running:
            assert b"two" in (await running.asked(stream=stream)).body
            await sockets.gone()
            assert await running.outcomes() == {("one", LOST): 1, ("two", WON): 1}


async def test_a_stage_that_raises_ends_the_race():
    stages = (RouteStage("tests.web.test_stages:raises_at_once"),)
    second = asyncio.Event()
    async with in_turn(*patient(says("one", Until(second)), SILENT), hedge_after_s=AFTER_S, stages=stages) as running:
        answer = asyncio.create_task(running.asked())
        request = await running.evils[1].request()
        second.set()
        assert (await answer).status == 500
        assert await running.outcomes() == {("one", "stage_failed"): 1, ("two", LOST): 1}
        await request.left()


async def test_a_stage_of_the_slower_one_that_fails_to_close_changes_nothing(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO)
    stages = (RouteStage("tests.web.test_stages:fails_to_close"),)
    async with in_turn(*patient(keeps_alive, TWO), hedge_after_s=AFTER_S, stages=stages) as running:
        answer = await running.asked()
        assert (answer.end, answer.body.count(b"error")) == ("complete", 0)
        assert await running.outcomes() == {("one", LOST): 1, ("two", WON): 1}
    [line] = [record.fields for record in caplog.records if record.message == "request"]  # type: ignore[attr-defined]
    assert (line["ending"], line["attempts"][0]["detail"]) == ("whole", "fails_to_close: ValueError")


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_many_close_races_each_have_one_winner_and_leave_nothing(*, stream: bool):
    async with in_turn(*patient(says("one", Delay(0.004)), TWO), hedge_after_s=0.003) as running:
        for _ in range(4):
            answers = await asyncio.gather(*(running.asked("anthropic", stream=stream) for _ in range(5)))
            found = [await heard(answer, "anthropic", stream=stream) for answer in answers]
            assert {each.text for each in found} <= {"one", "two"}
        outcomes = await running.outcomes()
        assert outcomes.get(("one", WON), 0) + outcomes.get(("two", WON), 0) == 20
        assert {outcome for _, outcome in outcomes} <= {WON, LOST}
        assert not [name for name in await in_use() if "Attempts" in name]


async def test_the_inspector_has_the_bytes_of_the_one_that_responds():
    captures = Captures()
    async with EvilUpstream(keeps_alive) as first, EvilUpstream(TWO) as second:
        upstreams = [
            upstream_at(evil, "openai-chat", name, timeouts=PATIENT) for evil, name in ((first, "one"), (second, "two"))
        ]
        app = gateway_app(config_of(upstreams, hedge_after_s=AFTER_S), Metrics(), captures=captures)
        async with serving(app, handler_cancellation=True) as port:
            path, body = asking("openai-chat")
            answer = await ask(f"http://127.0.0.1:{port}", path, body=orjson.dumps(body))
    [capture] = captures
    assert [attempt.upstream for attempt in capture.attempts] == ["two"]
    read = b"".join(step.data for step in capture.steps if step.kind == "read")
    assert (read.count(b"two"), read.count(b"ping"), answer.body.count(b"two")) == (1, 0, 1)
    kinds = [step.kind for step in capture.steps]
    assert kinds[:2] == ["attempt", "read"], "what is read is seen before what is written of it"


def test_what_an_attempt_reads_while_it_waits_is_held_up_to_what_a_capture_keeps_and_then_counted():
    captures = Captures()
    capture = captures.open("one")
    tap = HeldTap(capture)
    tracemalloc.start()
    for _ in range(100_000):
        tap.read(bytes(8))
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 3 * CAPTURE_BYTES
    tap.unread(b"\n")
    tap.release()
    assert capture.read_bytes + capture.left_out == 800_000 - 1
    assert capture.left_out
    tap.read(b"more")
    assert capture.left_out == 800_003 - capture.read_bytes


async def test_a_second_cancellation_leaves_no_attempt_behind():
    over = []

    async def attempt(name: Any) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            over.append(name)

    async def work() -> None:
        race = Race(attempt, deque(["one", "two"]), 0.001)
        try:
            await race.ended()
        finally:
            await race.close()

    working = asyncio.create_task(work())
    await asyncio.sleep(0.02)
    for _ in range(2):
        working.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await working
    assert over == ["one", "two"]
