"""Several workers and their processes: a client comes back to any of them; one that dies, and all that stop, end answers well.

Which worker a connection comes to is the kernel's choice. Which has an answer is seen in /proc, by the socket it listens at.
"""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import orjson
import pytest
from attrs import define

from streamkit import collect
from streamkit.testing import source_of
from tests.gateway.processes import START_S, Gateway, in_front_of
from tests.gateway.running import asking, end_of
from tests.web.evil import Delay, Hang, Script, Until
from tests.web.faults import TEXT, good
from tests.web.raw_client import Answer, RawClient, ask
from tests.web.serving import eventually

pytestmark = pytest.mark.skipif(not Path("/proc/net/unix").exists(), reason="sockets are looked at in /proc")
UPSTREAM = "openai-chat"
CLIENTS = ("anthropic", "openai-chat", "openai-responses", "gemini", "ollama")
#: So many connections that it is as good as sure that several workers have some of them.
CONNECTIONS = 12
#: How soon readers have to hear of a worker that died (resume.md R19).
HEARD_S = 1.0


def by_model(go: asyncio.Event):
    """What the upstream does is what the model is called: it waits in the middle for ``go``, hangs there, or is slow."""
    steps = good(UPSTREAM).steps
    half = len(steps) // 2
    slow = [part for step in steps for part in (step, Delay(0.02))]
    scripts = {
        "waits": Script((*steps[:half], Until(go), *steps[half:])),
        "hangs": Script((*steps[:half], Hang())),
        "slow": Script(tuple(slow)),
    }
    return lambda request: scripts[request.json()["model"]]


async def left_behind(url: str, model: str, client: str = "anthropic", *, sent: int = 1) -> tuple[str, bytes]:
    """Where an answer is read on whose client has left in its middle, and what it had."""
    path, body = asking(client, model=model)
    async with RawClient(url) as asked:
        await asked.send("POST", path, body=orjson.dumps(body), headers={"x-streamkit-resumable": "1"})
        while len(asked.answer.body) < sent:
            await asked.read_headers() if asked.answer.headers_at is None else await asked._read(4096)
        asked.leave("rst")
    return asked.answer.headers["location"], bytes(asked.answer.body)


def owner(gateway: Gateway, place: str) -> int:
    """The process of the worker that has an answer."""
    name = f"/{place.rpartition('.')[2]}.sock"
    for line in Path("/proc/net/unix").read_text("ascii").splitlines():
        words = line.split()
        if words[-1].endswith(name) and words[3] == "00010000":  # it accepts connections (__SO_ACCEPTCON)
            wanted = f"socket:[{words[6]}]"
            found = [pid for pid in gateway.workers() if wanted in descriptors(pid)]
            return found[0]
    raise AssertionError(f"no worker listens at {name}")


def answering(place: str) -> int:
    """How many workers have begun to serve: each listens at its socket first."""
    lines = Path("/proc/net/unix").read_text("ascii").splitlines()
    [own] = [
        line.split()[-1]
        for line in lines
        if line.endswith(f"/{place.rpartition('.')[2]}.sock") and " 00010000 " in line
    ]
    folder = own.rpartition("/")[0]
    return sum(f" {folder}/" in line and " 00010000 " in line for line in lines)


def descriptors(pid: int) -> set[str]:
    found = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found.add(str(entry.readlink()))
        except FileNotFoundError:  # closed since
            continue
    return found


@define
class Heard:
    """A reader, and when it heard of the end."""

    answer: Answer
    at: float


async def heard(url: str, place: str) -> Heard:
    answer = await ask(url, place, method="GET")
    return Heard(answer, asyncio.get_running_loop().time())


async def reading(url: str, place: str, number: int, wanted: bytes) -> list[asyncio.Task[Heard]]:
    """So many clients that read an answer, all of which have its beginning."""
    begun: list[bytes] = []

    async def read() -> Heard:
        async with RawClient(url) as client:
            await client.send("GET", place)
            await client.read_until(wanted)
            begun.append(wanted)
            answer = await client.read_to_end()
        return Heard(answer, asyncio.get_running_loop().time())

    tasks = [asyncio.create_task(read()) for _ in range(number)]
    await eventually(lambda: len(begun) == number, within_s=START_S)
    return tasks


def without_ids(body: bytes) -> bytes:
    return b"\n".join(line for line in body.split(b"\n") if not line.startswith(b"id: "))


async def test_any_worker_reads_on_what_one_has_hears_of_one_that_dies_and_ends_it_when_they_all_stop(tmp_path):
    go = asyncio.Event()
    async with in_front_of(tmp_path, by_model(go), workers=3, grace_s=2.0) as (gateway, upstream):
        url = gateway.url
        # any worker gives the rest, and the same bytes
        for client in CLIENTS:
            place, had = await left_behind(url, "waits", client)
            rest = [asyncio.create_task(ask(url, place, method="GET")) for _ in range(CONNECTIONS)]
            await asyncio.sleep(0.05)
            go.set()
            bodies = {without_ids(bytes((await task).body)) for task in rest}
            go.clear()
            assert len(bodies) == 1, client
            [body] = bodies
            read = await collect(source_of([body]), client)
            assert (read.clean, read.text) == (True, TEXT), client
            assert body.startswith(without_ids(had)[:-20]), client
        # and stops an answer
        place, _ = await left_behind(url, "hangs")
        stopped = [await ask(url, place, method="DELETE") for _ in range(CONNECTIONS)]
        assert {answer.status for answer in stopped} == {204}
        last = upstream.requests[-1]
        await eventually(lambda: last.left_at is not None)
        # one that dies is heard of, with an error
        await lose_a_worker(gateway, "openai-responses")
        await eventually(lambda: len(gateway.workers()) == 3, within_s=START_S)
        # what goes on as all of them stop is ended, for whoever reads it anywhere
        place, had = await left_behind(url, "hangs")
        readers = await reading(url, place, CONNECTIONS, b"text_delta")
        alone, _ = await left_behind(url, "hangs")
        assert (await ask(url, "/readyz", method="GET")).status == 200
        live = await counted(gateway, "logs_live", 2)
        gateway.signal(signal.SIGTERM)
        ended = [await task for task in readers]
        assert await gateway.ended() == 0, gateway.said
        lines = gateway.events("request")
        said = gateway.said
    told = {bytes(found.answer.body) for found in ended}
    assert live == 2
    assert len(told) == 1
    assert {found.answer.end for found in ended} == {"complete"}
    read = await collect(source_of([told.pop()]), "anthropic")
    assert (read.clean, "shutting down" in (read.report.provider_error or ("", ""))[1]) == (False, True)
    assert all(request.left_at is not None for request in upstream.requests[-2:])
    assert sum(line.get("went_on_s", 0) > 0.1 and line["ending"] == "broken" for line in lines) >= 2
    for id_ in (place, alone):
        assert id_.partition("_")[2] not in said
    assert "Traceback" not in said


async def counted(gateway: Gateway, name: str, value: float) -> float:
    """A gauge of all workers, once it has that value."""
    async with asyncio.timeout(START_S):
        while (found := await gateway.counted(name)) != value:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.1)
    return found


async def lose_a_worker(gateway: Gateway, client: str) -> None:
    """Kill the worker that has an answer while others read it."""
    place, _ = await left_behind(gateway.url, "hangs", client)
    readers = await reading(gateway.url, place, CONNECTIONS, TEXT.split()[0].encode())
    killed = owner(gateway, place)
    began = asyncio.get_running_loop().time()
    os.kill(killed, signal.SIGKILL)
    found = [await task for task in readers]
    reads = [(one.answer, await collect(source_of([bytes(one.answer.body)]), client)) for one in found]
    elsewhere = [answer for answer, read in reads if read.report.provider_error is not None]
    assert max(one.at for one in found) - began < HEARD_S
    assert elsewhere, client
    assert len({bytes(answer.body) for answer in elsewhere}) == 1
    assert {answer.end for answer in elsewhere} == {end_of(client, clean=False)}, client
    for answer, read in reads:
        assert (read.clean, TEXT.startswith(read.text)) == (False, True), client
        assert answer in elsewhere or answer.end != "complete", client
    assert (await ask(gateway.url, place, method="GET")).status == 404


@pytest.mark.exhaustive
@pytest.mark.timeout(900)
async def test_readers_elsewhere_of_a_worker_that_is_killed_hear_of_it_within_a_second(tmp_path):
    async with in_front_of(tmp_path, by_model(asyncio.Event()), workers=4, grace_s=1.0) as (gateway, _upstream):
        for trial in range(30):
            await lose_a_worker(gateway, CLIENTS[trial % len(CLIENTS)])
            place, _ = await left_behind(gateway.url, "hangs")
            await eventually(lambda place=place: answering(place) == 4, within_s=START_S)
            await asyncio.sleep(0.3)  # until the newest listens for clients, too
        gateway.signal(signal.SIGTERM)
        assert await gateway.ended() == 0
