"""Clients of others that come back by themselves, and official ones that only read: nothing of resuming disturbs them.

Source: resume.md §4; R17, R18.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import orjson
import pytest

from streamkit.dialects import DIALECTS, keep_alive
from streamkit.resume import EventIDs, closing
from streamkit.resume.event_ids import without_blank_line
from streamkit.web.resume.settings import ASKED_HEADER, takes_ids
from tests import npm
from tests.clients.conftest import WHY
from tests.clients.readers import READERS
from tests.clients.test_official_clients import raised_by
from tests.gateway.running import asking, config_of, gateway, upstream_at
from tests.laws.running import OURS, translate
from tests.resume.answers import CLIENTS, answers_of, frames_of
from tests.resume.reading import without_ids
from tests.sampling import few
from tests.web.evil import Delay, EvilUpstream, Script
from tests.web.faults import good
from tests.web.raw_client import ask

FOLDER: Final = Path(__file__).parent / "event_source"
INSTALL_S: Final = 90
RUN_S: Final = 30
ASKED: Final = {ASKED_HEADER: "1", "content-type": "application/json"}
LOG: Final = "st_" + "a" * 22
SAID: Final = [s for s in OURS if s.dialect == "openai-chat" and s.name in {"text", "reasoning", "two calls in turn"}]
BY_READER: Final = pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name.replace(" ", "-"))


# -- ids and keep-alives -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", few(SAID, 1, "ids"))
@BY_READER
def test_official_clients_read_past_ids_and_keep_alives(reader, stream, replay, client):
    """Gemini's have none, since google-genai fails at any line but ``data``; Mistral's read Chat's streams."""
    surface = DIALECTS[reader.dialect].http.surface
    if DIALECTS[reader.dialect].frame_end is None:
        pytest.skip("binary messages have no ids")
    if surface is None:
        frames = frames_of(reader.dialect, converted(stream, reader.dialect))
    else:
        frames = next(iter(answers_of(stream, reader.dialect))).frames
    has_ids = takes_ids(reader.dialect, is_array=False) if surface is not None else True
    assert has_ids is (reader.dialect not in {"gemini", "ollama"})
    ids, waiting = EventIDs(LOG), keep_alive(reader.dialect)
    if has_ids:
        waiting = without_blank_line(waiting)
    written = b"".join(waiting + (ids.feed(frame) if has_ids else frame) for frame in frames)
    assert (written.count(b"\nid: ") == len(frames)) is has_ids
    read = [reader.read(client(reader.package), replay.register(body)) for body in (b"".join(frames), written)]
    assert read[0] == read[1]


def converted(stream, dialect):
    """For clients of a dialect in which nobody is served."""
    return translate(stream.dialect, dialect, [stream.body], passing=False)[0]


@pytest.mark.parametrize("reader", [one for one in READERS if one.dialect in CLIENTS], ids=lambda reader: reader.name)
def test_official_clients_raise_behind_what_there_was(reader, replay, client):
    """Of whatever an answer was cut to: nothing, the beginning, all but its end."""
    answer = next(iter(answers_of(SAID[0], reader.dialect)))
    for count in {0, 1, len(answer.frames) // 2}:
        written = b"".join(answer.frames[:count])
        body = written + closing(answer.meta, written)
        with pytest.raises(raised_by(reader.package), match="process that produced this response died"):
            reader.read(client(reader.package), replay.register(body))


# -- coming back ---------------------------------------------------------------------------------------------------


class Cutter:
    """A proxy before a server that resets its first connections behind so many bytes of the answer."""

    def __init__(self, url: str, cuts: list[int]) -> None:
        parts = urlsplit(url)
        self._to = parts.hostname, parts.port
        self._cuts = cuts
        self._serving: set[asyncio.Task[None]] = set()
        self.connections = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[str]:
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        try:
            yield f"http://{host}:{port}"
        finally:
            server.close()
            for task in self._serving:
                task.cancel()
            await asyncio.gather(*self._serving, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        left = self._cuts[self.connections] if self.connections < len(self._cuts) else None
        self.connections += 1
        self._serving.add(asyncio.create_task(self._serve(reader, writer, left)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, left: int | None) -> None:
        other, sink = await asyncio.open_connection(*self._to)
        asking = asyncio.create_task(pass_on(reader, sink))
        try:
            while data := await other.read(4096):
                writer.write(data if left is None else data[:left])
                await writer.drain()
                if left is not None and (left := left - len(data)) <= 0:
                    break
        finally:
            asking.cancel()
            sink.transport.abort()
            writer.transport.abort() if left is not None else writer.close()


async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(4096):
            writer.write(data)


def slowly(script: Script) -> Script:
    """A pause before each piece, so that connections are cut while the answer is made."""
    steps: list[Any] = []
    for step in script.steps:
        steps += [Delay(0.02), step]
    return Script(tuple(steps))


def cuts_of(seed: int) -> list[int]:
    """Behind the headers, which have about 300 bytes."""
    rng = random.Random(seed)
    return [rng.randrange(600, 1100) for _ in range(3)]


def data_in(body: bytes) -> list[str]:
    """The data of each event, of one line each."""
    return [line[6:].decode() for line in without_ids(body).split(b"\n") if line.startswith(b"data: ")]


@asynccontextmanager
async def cut_gateway(client: str, seed: int) -> AsyncIterator[tuple[str, str, EvilUpstream, Cutter]]:
    upstream = EvilUpstream(slowly(good(client)))
    async with upstream, gateway(config_of([upstream_at(upstream, client)])) as running:
        cutter = Cutter(running.url, cuts_of(seed))
        async with cutter.running() as url:
            yield running.url, url, upstream, cutter


async def sse_of_langgraph(url: str, path: str, body: Any) -> list[str]:
    http = pytest.importorskip("langgraph_sdk._async.http", reason=WHY)
    httpx = pytest.importorskip("httpx")
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=10) as transport:
        stream = http.HttpClient(transport).stream(path, "POST", json=body, headers={ASKED_HEADER: "1"})
        return [orjson.dumps(part.data).decode() if part.data != "[DONE]" else "[DONE]" async for part in stream]


SEEDS = [pytest.param(0), *[pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(1, 20)]]


@pytest.mark.filterwarnings(
    "ignore:Reconnecting without a Last-Event-ID"
)  # cut before the first event: it gets all again
@pytest.mark.parametrize("seed", SEEDS)
async def test_langgraphs_client_comes_back_over_three_cuts(seed, monkeypatch):
    """Its pauses aside, which are a second and more, it is as it came from PyPI."""
    http = pytest.importorskip("langgraph_sdk._async.http", reason=WHY)
    monkeypatch.setattr(http, "_reconnect_delay", lambda *_args, **_named: 0.01)
    path, body = asking("anthropic")
    async with cut_gateway("anthropic", seed) as (url, cut_url, upstream, cutter):
        got = await sse_of_langgraph(cut_url, path, body)
        whole = await ask(url, path, headers=ASKED, body=orjson.dumps(body))
        assert cutter.connections == 4
        assert [json.loads(data) for data in got] == [json.loads(data) for data in data_in(bytes(whole.body))]
        assert len(upstream.requests) == 2  # the second one is for what is compared with


async def node(*arguments: str) -> Any:
    await asyncio.to_thread(npm.installed, FOLDER, "EventSource", within_s=INSTALL_S)
    process = await asyncio.create_subprocess_exec(
        "node", str(FOLDER / "read.mjs"), *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(RUN_S):
            told, complaints = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, complaints.decode()
    return json.loads(told)


@pytest.mark.parametrize("seed", SEEDS)
async def test_event_source_comes_back_over_three_cuts_and_stops_at_204(seed):
    path, body = asking("openai-chat")
    async with cut_gateway("openai-chat", seed) as (url, cut_url, upstream, cutter):
        answer = asyncio.create_task(ask(url, path, headers=ASKED, body=orjson.dumps(body)))
        request = await upstream.request(0)
        whole = await answer
        read = await node("event-source", cut_url + whole.headers["location"])
        assert [data for _, data in read["got"]] == data_in(bytes(whole.body))
        assert read["status"] == 204
        assert cutter.connections >= 4
        assert request.left_by is None
        assert len(upstream.requests) == 1


@pytest.mark.parametrize("seed", SEEDS)
async def test_fetch_event_source_posts_again_and_is_attached(seed):
    path, body = asking("openai-chat")
    async with cut_gateway("openai-chat", seed) as (url, cut_url, upstream, cutter):
        read = await node("fetch-event-source", cut_url + path, orjson.dumps(body).decode())
        log_id = read["got"][-1][0].rpartition(".")[0]
        whole = await ask(url, f"/v1/streams/{log_id}", method="GET")
        assert [data for _, data in read["got"]] == data_in(bytes(whole.body))
        assert cutter.connections == 4
        assert len(upstream.requests) == 1
