"""Answers that a gateway keeps: how many there may be, what is counted and logged of them, and what nobody is told."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import re
import time

import pytest

from streamkit import collect
from streamkit.gateway.config import Resume
from streamkit.gateway.log import JSONLines, Text
from streamkit.gateway.metrics import exposition
from streamkit.resume import LogGone, LogLimits, MemoryStore, Meta
from streamkit.resume.memory import LOG_OVERHEAD
from streamkit.testing import source_of
from streamkit.web.upstream import Secret
from tests.gateway.running import behind, config_of, gateway, upstream_at
from tests.web.evil import EvilUpstream, Script, Until
from tests.web.faults import TEXT, good
from tests.web.serving import eventually

ASKED = {"x-streamkit-resumable": "1"}
META = Meta(dialect="openai-chat")
UPSTREAM = "openai-chat"


def halved(go):
    """An upstream that waits for ``go`` in the middle of its answer."""
    steps = good(UPSTREAM).steps
    half = len(steps) // 2
    return Script((*steps[:half], Until(go), *steps[half:]))


async def left_behind(running, headers=ASKED):
    """Where an answer is read on whose client has left in its middle."""
    async with running.client("anthropic", headers=headers) as client:
        await client.read_until(b"text_delta")
        place = client.answer.headers["location"]
        client.leave("rst")
    return place


# -- while answers go on without their clients -------------------------------------------------------------------------


async def test_an_answer_without_its_client_is_one_of_those_that_may_be_under_way():
    go = asyncio.Event()
    async with behind(halved(go), dialect=UPSTREAM, server={"max_streams": 1}) as running:
        place = await left_behind(running)
        await asyncio.sleep(0.25)  # more than it takes to see that a client left
        full = await running.asked("anthropic")
        assert (full.status, full.headers["retry-after"]) == (529, "1")
        assert (await running.get("/readyz")).status == 200
        rest = asyncio.create_task(running.get(place))  # reading on asks no model
        go.set()
        read = await collect(source_of([bytes((await rest).body)]), "anthropic")
        assert (read.clean, read.text) == (True, TEXT)
        assert (await running.asked("anthropic")).status == 200


async def test_a_gateway_that_stops_ends_answers_that_go_on_and_tells_whoever_reads_them():
    async with EvilUpstream(halved(asyncio.Event())) as upstream:
        async with gateway(config_of([upstream_at(upstream, UPSTREAM)], server={"grace_s": 0.0})) as running:
            places = [await left_behind(running) for _ in range(3)]
            reading = [asyncio.create_task(running.get(place)) for place in places[:2]]
            await eventually(lambda: running.counted("streams_active") == 5)
        answers = await asyncio.gather(*reading)
        await eventually(lambda: all(request.left_at is not None for request in upstream.requests))
    for answer in answers:
        read = await collect(source_of([bytes(answer.body)]), "anthropic")
        assert (answer.end, read.clean, TEXT.startswith(read.text)) == ("complete", False, True)
        assert "shutting down" in (read.report.provider_error or ("", ""))[1]


# -- what is counted and logged ----------------------------------------------------------------------------------------


async def test_what_becomes_of_answers_that_are_kept_is_counted_and_logged(caplog):
    caplog.set_level(logging.INFO, "streamkit.gateway")
    go = asyncio.Event()
    async with behind(halved(go), dialect=UPSTREAM) as running:
        place = await left_behind(running)
        await eventually(lambda: running.counted("logs_live") == 1)
        await asyncio.sleep(0.15)
        reading = asyncio.create_task(running.get(place))
        await asyncio.sleep(0.05)
        go.set()
        whole = await reading
        await running.get(place, headers={"last-event-id": last_id(whole.body)})
        await running.get(place[:-1] + ("A" if place[-1] != "A" else "B"))
        await running.get(f"{place}?after=-1")
        await running.ask(place, method="DELETE")
        await eventually(lambda: running.counted("resumes_total") == 5)
        results = {"resumed", "nothing_left", "not_found", "bad_cursor", "stopped"}
        assert {result: running.counted("resumes_total", result=result) for result in results} == dict.fromkeys(
            results, 1
        )
        assert (running.counted("logs_live"), running.counted("logs_kept")) == (0, 1)
        assert running.counted("log_bytes") > len(TEXT)
    lines = [line for line in logged(caplog) if line["event"] == "request"]
    [asked] = [line for line in lines if line["method"] == "POST"]
    assert (asked["status"], asked["ending"], asked["went_on_s"] >= 0.1, "resumed" in asked) == (
        200,
        "whole",
        True,
        False,
    )
    others = [line for line in lines if line["method"] != "POST"]
    assert [line["status"] for line in others] == [200, 204, 404, 400, 204]
    assert [line.get("resumed", False) for line in others] == [True, False, False, False, False]
    assert {line["path"] for line in others} == {"/v1/streams/{stream_id}"}
    assert "went_on_s" not in others[0]


def last_id(body):
    return re.findall(rb"^id: (.*)$", body, re.MULTILINE)[-1].decode()


def logged(caplog):
    return [json.loads(JSONLines().format(record)) for record in caplog.records]


# -- what nobody is told -----------------------------------------------------------------------------------------------


async def test_no_id_of_an_answer_is_in_logs_metrics_and_errors(caplog):
    caplog.set_level(logging.DEBUG)
    seen = []
    keys = {"server": {"keys": (Secret("one-key"), Secret("another"))}}
    mine, other = ({"authorization": f"Bearer {key}"} for key in ("one-key", "another"))
    go = asyncio.Event()
    async with behind(halved(go), dialect=UPSTREAM, **keys) as running:
        place = await left_behind(running, {**ASKED, **mine})
        cursors = [{"last-event-id": f"{place.rpartition('/')[2]}.99999"}, {"last-event-id": f"{place[-27:]}.x"}, {}]
        for cursor in cursors:
            for headers in (mine, other, {}):
                seen.append(await running.get(place, headers={**headers, **cursor}))
                if cursor:
                    seen.append(await running.ask("/v1/messages", body=b"{}", headers={**headers, **cursor}))
                if not cursor and headers is mine:
                    break
            else:
                continue
        seen.append(await running.ask(place, method="DELETE", headers=other))
        await running.get(f"{place}/more", headers=mine)  # who asks is told what is not there
        seen.append(await running.ask(place, method="DELETE", headers=mine))
        go.set()
        await eventually(lambda: running.counted("logs_kept") == 1)
        told = exposition(running.metrics)
    secret = place.rpartition("_")[2]
    left = [told, *(form.format(record).encode() for record in caplog.records for form in (JSONLines(), Text()))]
    left += [bytes(answer.body) for answer in seen if answer.status >= 400]
    assert len([answer for answer in seen if answer.status >= 400]) > 10
    assert not [data for data in left if secret.encode() in data or b"one-key" in data]


async def test_anothers_answer_an_unknown_one_and_an_expired_one_are_told_the_same_in_the_same_time():
    keys = {"server": {"keys": (Secret("one-key"), Secret("another"))}}
    mine, other = ({"authorization": f"Bearer {key}"} for key in ("one-key", "another"))
    async with behind(good(UPSTREAM), resume=Resume(ttl_s=0.3), **keys) as running:

        async def place():
            answer = await running.asked("anthropic", headers={**ASKED, **mine})
            return answer.headers["location"]

        expired = await place()
        await asyncio.sleep(0.4)
        kept = await place()
        unknown = f"{kept[:-22]}{'a' * 22}"
        cases = {"foreign": (kept, other), "unknown": (unknown, mine), "expired": (expired, mine)}
        told, times = {}, {name: [] for name in cases}
        for _ in range(20):
            for name, (where, headers) in cases.items():
                began = time.perf_counter()
                answer = await running.get(where, headers=headers)
                times[name].append(time.perf_counter() - began)
                answer.headers.pop("x-request-id")
                answer.headers.pop("date")
                told[name] = answer.status, bytes(answer.body), answer.headers
    assert told["foreign"] == told["unknown"] == told["expired"]
    assert told["foreign"][0] == 404
    usual = {name: min(measured) for name, measured in times.items()}
    assert max(usual.values()) < min(usual.values()) * 2, usual


# -- bounds ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [2000, pytest.param(10_000, marks=pytest.mark.exhaustive)])
async def test_however_many_answers_come_memory_stays_below_its_bound(number):
    limits = LogLimits(all_bytes=200_000, ttl_s=1000)
    store, draw = MemoryStore(limits), random.Random(20)
    most = 0
    for _ in range(number):
        log = await store.create(store.new_id(), META)
        for _ in range(draw.randint(1, 5)):
            log.append(draw.randbytes(draw.randint(1, 2000)))
        log.end(draw.choice(["done", "failed"]), b"the end")
        most = max(most, store.held_bytes)
    assert limits.all_bytes * 0.9 < most <= limits.all_bytes
    assert len(store._logs) == store.kept == len(store._timers) <= limits.all_bytes // LOG_OVERHEAD
    await store.close()
    assert (store.held_bytes, store.kept, store._timers) == (0, 0, {})


@pytest.mark.parametrize("more", [-1, 0, 1])
async def test_the_bytes_of_all_answers_are_bounded_to_the_byte(more):
    limits = LogLimits(all_bytes=2 * LOG_OVERHEAD + 1000)
    store = MemoryStore(limits)
    old, new = await store.create(store.new_id(), META), await store.create(store.new_id(), META)
    old.end("done", b"x" * 500)
    new.append(b"x" * (500 + more))
    if more <= 0:
        assert store.held_bytes == limits.all_bytes + more
        await (await store.open(old.id)).aclose()
    else:  # the one that ended goes
        assert store.held_bytes == LOG_OVERHEAD + 500 + more
        with pytest.raises(LogGone):
            await store.open(old.id)
    assert new.lost is None
    await store.close()


async def test_a_thousand_clients_that_read_on_and_leave_anywhere_leave_nothing_behind(no_leaks):
    store, draw = MemoryStore(LogLimits(readers=1000)), random.Random(21)
    logs = [await store.create(store.new_id(), META) for _ in range(50)]

    async def read(log):
        reading = await log.open()
        try:
            async for _ in reading:
                pass
        finally:
            await reading.aclose()

    tasks = [asyncio.create_task(read(draw.choice(logs))) for _ in range(1000)]
    for _ in range(20):
        draw.choice(logs).append(b"x" * draw.randint(1, 100_000))
        await asyncio.sleep(0)
        for task in draw.sample(tasks, 50):
            task.cancel()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert not any(log.readers or log._waiting for log in logs)
    await store.close()
