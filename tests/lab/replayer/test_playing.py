"""A replayed answer is what was recorded: bytes, boundaries, times, headers and end."""

from __future__ import annotations

import asyncio
import signal
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from statistics import median, quantiles

import aiohttp
import pytest
from attrs import evolve

from streamkit.lab.recording import Read, Recording
from streamkit.lab.replayer import app
from streamkit.lab.replayer.app import Replay, Schedule
from streamkit.testing.serving import served
from tests.cli import command
from tests.lab.replayer.recordings import EVENTS, PATH, body, recording, replay_of, write
from tests.web.raw_client import RawClient, ask


async def start(aiohttp_server, replay: Replay) -> str:
    """Where a replay is served, by the event loop of the test."""
    server = await aiohttp_server(replay.app())
    return f"http://{server.host}:{server.port}"


async def seen(url: str, *, path: str = PATH, method: str = "POST") -> tuple[aiohttp.ClientResponse, list[Read], str]:
    """What a recorder would note of an answer: its headers, what each read brought and when, and how it ended."""
    loop, reads, kind = asyncio.get_running_loop(), [], "whole"
    async with aiohttp.ClientSession() as session:
        sent = loop.time()
        async with session.request(method, f"{url}{path}", data=body() if method == "POST" else None) as response:
            try:
                while data := await response.content.readany():
                    reads.append(Read(loop.time() - sent, data))
            except aiohttp.ClientPayloadError:
                kind = "cut"
            except ConnectionError:
                kind = "reset"
    return response, reads, kind


@pytest.mark.parametrize("speed", [0, 1])
async def test_reads_stay_apart_where_they_were(aiohttp_server, monkeypatch, speed):
    monkeypatch.setattr(app, "APART_S", 0.02)  # enough for a busy machine
    made = recording([b"a", b"bc\n", *EVENTS, b"\xff"], gap_s=0)
    url = await start(aiohttp_server, replay_of(made, speed=speed))
    _, reads, kind = await seen(url)
    assert [read.data for read in reads] == [read.data for read in made.reads]
    assert kind == "whole"


async def test_nothing_comes_before_its_time(aiohttp_server):
    made = recording(gap_s=0.012)
    made = evolve(made, end=evolve(made.end, t=0.3))
    url = await start(aiohttp_server, replay_of(made, speed=2))
    async with RawClient(url) as client:
        await client.send("POST", PATH, body=body())
        answer = await client.read_to_end()
    assert answer.body == made.body
    assert 0.006 <= answer.headers_at - answer.sent_at < 1.0
    for (at, _), read in zip(answer.reads, made.reads, strict=True):
        assert read.t / 2 - 0.001 <= at - answer.sent_at < read.t / 2 + 1.0
    assert answer.ended_at - answer.sent_at >= made.end.t / 2 - 0.001


@pytest.mark.parametrize("speed", [1, 4])
async def test_a_read_that_is_late_makes_no_other_late(monkeypatch, speed):
    now, late_s = [100.0], 0.003

    async def sleep(seconds: float) -> None:
        now[0] += seconds + (late_s if seconds else 0.000_01)

    monkeypatch.setattr(app.asyncio, "sleep", sleep)
    schedule = Schedule(100.0, speed)
    schedule._time = lambda: now[0]
    for number in range(1, 1001):
        await schedule.until(number * 0.005 * speed)
        schedule.wrote()
    assert 5.0 <= now[0] - 100.0 <= 5.0 + late_s + 0.000_01


@contextmanager
def served_by_a_process(folder: Path, made: Recording, *options: str):
    """The URL of a replay in a process of its own, whose interpreter is nobody else's."""
    process = command.start("replay", str(write(folder / "a.stream.jsonl", made)), "--port", "0", *options)
    try:
        yield process.stdout.readline().decode().strip()
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate()


async def lateness(times: list[float]) -> list[float]:
    """By how much this machine's own timers are late at these times."""
    loop, late = asyncio.get_running_loop(), []
    start = loop.time()
    for t in times:
        await asyncio.sleep(start + t - loop.time())
        late.append(loop.time() - start - t)
    return late


@pytest.mark.exhaustive
@pytest.mark.timeout(180)
async def test_a_replay_of_a_minute_is_what_was_recorded(tmp_path):
    """Every byte; at p99 each read within 5 ms of its time, beside what this machine's timers are late; and no drift."""
    made = recording([b"%d\n" % number for number in range(2000)], gap_s=0.03)
    with served_by_a_process(tmp_path, made) as url:
        await seen(url, path="/warm")
        timers = asyncio.create_task(lateness([read.t for read in made.reads]))
        _, reads, kind = await seen(url)
    assert (kind, b"".join(read.data for read in reads)) == ("whole", made.body)
    came = dict(zip(accumulate(len(read.data) for read in reads), (read.t for read in reads), strict=True))
    due = zip(accumulate(len(read.data) for read in made.reads), (read.t for read in made.reads), strict=True)
    late = [came[end] - t for end, t in due if end in came]
    assert len(late) > 1900
    assert min(late) > -0.001
    assert p99(late) < 0.005 + p99(await timers)
    assert abs(median(late[-200:]) - median(late[:200])) < 0.002


def p99(values: list[float]) -> float:
    return quantiles(values, n=100)[-1]


@pytest.mark.exhaustive
async def test_most_boundaries_are_kept_at_full_speed(tmp_path):
    """On a machine that does nothing else all are; here as many as its load leaves."""
    made = recording(EVENTS * 40, gap_s=0)
    with served_by_a_process(tmp_path, made, "--speed", "0") as url:
        _, reads, _ = await seen(url)
    assert b"".join(read.data for read in reads) == made.body
    assert len(reads) > len(made.reads) / 2


async def test_what_a_thread_serves_is_seen_in_no_other_pieces():
    made = recording()
    with served(replay_of(made).app) as url:
        _, reads, _ = await seen(url)
    assert b"".join(read.data for read in reads) == made.body
    ends = set(accumulate(len(read.data) for read in made.reads))
    assert ends.issuperset(accumulate(len(read.data) for read in reads))


# -- headers -----------------------------------------------------------------------------------------------------------


async def test_the_headers_are_those_that_were_recorded(aiohttp_server):
    headers = {"x-request-id": "req_ü", "content-type": "text/plain", "connection": "upgrade", "te": "gzip"}
    url = await start(aiohttp_server, replay_of(recording(headers=headers, status=418)))
    response, _, _ = await seen(url)
    assert response.status == 418
    found = {name.lower(): value for name, value in response.headers.items()}
    assert found == {"x-request-id": "req_ü", "content-type": "text/plain", "transfer-encoding": "chunked"}


@pytest.mark.parametrize(
    ("kind", "length", "is_kept"),
    [("whole", 3, True), ("whole", 4, False), ("cut", 9, True), ("cut", 3, False), ("reset", 9, True)],
)
async def test_a_length_is_said_where_it_is_as_true_as_it_was(aiohttp_server, kind, length, is_kept):
    made = recording([b"ab", b"c"], kind=kind, headers={"content-length": str(length)})
    url = await start(aiohttp_server, replay_of(made))
    answer = await ask(url, PATH, body=body())
    assert answer.headers.get("content-length") == (str(length) if is_kept else None)
    assert answer.headers.get("transfer-encoding") == (None if is_kept else "chunked")
    assert answer.end == {"whole": "complete", "cut": "cut", "reset": "reset"}[kind]


@pytest.mark.parametrize(("method", "status"), [("POST", 204), ("GET", 200), ("HEAD", 200)])
async def test_an_answer_without_a_body_has_none(aiohttp_server, method, status):
    url = await start(aiohttp_server, replay_of(recording([], method=method, status=status, headers={})))
    response, reads, kind = await seen(url, method=method)
    assert (response.status, reads, kind) == (status, [], "whole")


# -- ends --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "end"),
    [
        ("whole", "complete"),
        ("cut", "cut"),
        (None, "cut"),
        ("reset", "reset"),
        ("client_left", "cut"),
        ("shut_down", "cut"),
        ("truncated_by_recorder", "cut"),
        ("timeout:idle", "cut"),
    ],
)
async def test_the_end_is_what_it_was(aiohttp_server, kind, end):
    url = await start(aiohttp_server, replay_of(recording(kind=kind), silence_s=0.02))
    answer = await ask(url, PATH, body=body())
    assert (answer.status, answer.end, bytes(answer.body)) == (200, end, b"".join(EVENTS))


@pytest.mark.parametrize(
    ("kind", "end"), [("unreachable", "cut"), ("cut", "cut"), ("reset", "reset"), ("timeout:headers", "cut")]
)
async def test_an_answer_that_never_began_does_not_begin(aiohttp_server, kind, end):
    url = await start(aiohttp_server, replay_of(recording([], kind=kind, status=None), silence_s=0.02))
    answer = await ask(url, PATH, body=body())
    assert (answer.headers_at, answer.end) == (None, end)


async def test_a_time_out_is_silent_until_the_client_leaves(aiohttp_server):
    made = recording([], kind="timeout:idle", gap_s=0)
    url = await start(aiohttp_server, replay_of(made, silence_s=60))
    async with RawClient(url) as client:
        await client.send("POST", PATH, body=body())
        await client.read_headers()  # which come by themselves
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await client.read_to_end()
        client.leave("fin")
        answer = await client.read_to_end()
    assert answer.end == "cut"


async def test_an_error_inside_a_stream_stays_one(aiohttp_server):
    error = b'data: {"error":{"message":"overloaded","type":"server_error"}}\n\n'
    made = recording([EVENTS[0], error], kind="whole")
    url = await start(aiohttp_server, replay_of(made))
    answer = await ask(url, PATH, body=body())
    assert (answer.end, bytes(answer.body)) == ("complete", EVENTS[0] + error)


async def test_the_connection_is_used_again_behind_a_whole_answer(aiohttp_server):
    url = await start(aiohttp_server, replay_of(recording()))
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=1)) as session:
        for _ in range(2):
            async with session.post(f"{url}{PATH}", data=body()) as response:
                assert await response.read() == b"".join(EVENTS)
                assert response.headers.get("connection") is None


async def test_a_client_that_leaves_while_a_read_is_written_is_no_fault(aiohttp_server, monkeypatch, caplog):
    async def until(self, t: float) -> None:
        if t > 0.004:
            requests.pop().transport.abort()

    requests = []
    monkeypatch.setattr(Schedule, "until", until)
    play = app.play
    monkeypatch.setattr(app, "play", lambda request, *more: requests.append(request) or play(request, *more))
    url = await start(aiohttp_server, replay_of(recording()))
    answer = await ask(url, PATH, body=body())
    assert answer.end in {"cut", "reset"}
    assert caplog.records == []


async def test_a_client_that_leaves_harms_nobody(aiohttp_server, caplog):
    made = recording([b"x" * 1_000_000] * 20, gap_s=0)
    url = await start(aiohttp_server, replay_of(made))
    for by in ("fin", "rst"):
        async with RawClient(url, receive_buffer_bytes=4096) as client:
            await client.send("POST", PATH, body=body())
            await client.read_headers()
            client.leave(by)
    answer = await ask(url, PATH, body=body())
    assert len(answer.body) == 20_000_000
    assert caplog.records == []
