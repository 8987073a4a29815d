"""Two gateways in processes of their own, with one Redis: one is killed or paused while official clients read its answers.

Whatever happens, nobody takes a part of an answer for all of it: a client of the node that is hit has the whole answer or an
error, and everybody who reads a log, at either node and at any time, has the same bytes, which end with the answer or with the
dialect's error.

Source: resume.md R1, R3, R4, R5, §1.3.
"""

from __future__ import annotations

import asyncio
import logging
import random
import signal
from collections import Counter
from collections.abc import Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import orjson
import pytest
from aiohttp import ClientError, ClientSession, ClientTimeout
from attrs import Factory, define, field

from streamkit import collect
from streamkit.resume.redis_client import Keys, fields_of
from streamkit.resume.redis_store import RedisSettings, RedisStore
from streamkit.testing import source_of
from streamkit.web.resume.settings import ASKED_HEADER
from tests.gateway.processes import Gateway, config_file, serving
from tests.gateway.resume.proxy import Proxy, proxy
from tests.gateway.resume.test_killed import ends_of
from tests.gateway.running import asking
from tests.resume.reading import without_ids
from tests.resume.servers import free_port
from tests.web.evil import EvilUpstream
from tests.web.faults import TEXT, good
from tests.web.serving import eventually

openai = pytest.importorskip("openai")
anthropic = pytest.importorskip("anthropic")
langgraph = pytest.importorskip("langgraph_sdk._async.http")
httpx = pytest.importorskip("httpx")

LOG: Final = logging.getLogger(__name__)
#: How often a node is hit, of each kind and with each store; so many times one pair of nodes is.
TRIALS: Final = 100
OF_A_PAIR: Final = 10
LEASE_S: Final = 1.0
#: The lease of the log, what is left of its process's, and what a busy machine adds.
TOLD_S: Final = 2 * LEASE_S + 3.0
#: Silence before each piece of the upstream, so that an answer takes about a second.
PACE_S: Final = 0.05
#: Where a dialect says what comes in pieces.
PIECES: Final = ("content", "text", "partial_json", "arguments")
PATIENCE_S: Final = 30.0
ASKED: Final = {ASKED_HEADER: "1"}
#: How an error begins that readers are told behind what there was.
ERROR: Final = {"openai-chat": b'data: {"error"', "anthropic": b"event: error\n"}


# -- nodes -------------------------------------------------------------------------------------------------------------


@define(eq=False)
class Nodes:
    """A gateway that is hit again and again, and one beside it."""

    folder: Path
    upstream: EvilUpstream
    redis: str
    stack: AsyncExitStack
    hit: Gateway = field(init=False)
    other: Gateway = field(init=False)
    port: int = Factory(free_port)
    started: int = 0

    async def node(self, port: int) -> Gateway:
        self.started += 1
        folder = self.folder / str(self.started)
        folder.mkdir()
        path = config_file(folder, self.upstream.url, port=port, private="off")
        with path.open("a", encoding="utf-8") as config:
            config.write(f'[resume]\nstore = "redis"\nurl = {{ env = "STORE" }}\nlease_s = {LEASE_S}\n')
        return await self.stack.enter_async_context(
            serving(folder, "--config", str(path), environment={"STORE": self.redis})
        )

    async def start(self) -> None:
        self.hit = await self.node(self.port)


@asynccontextmanager
async def two_nodes(folder, server):
    async with EvilUpstream(good("openai-chat", delay_s=PACE_S)) as upstream, AsyncExitStack() as stack:
        nodes = Nodes(folder, upstream, server.url, stack)
        await nodes.start()
        nodes.other = await nodes.node(free_port())
        async with proxy(nodes.port, nodes.other.port) as balancer:
            yield nodes, balancer


# -- clients -----------------------------------------------------------------------------------------------------------


@define(eq=False)
class Asked:
    """A client of the node that is hit: what it has, and where the log of its answer is."""

    client: str
    dialect: str
    is_begun: bool = False  #: it had headers
    where: str | None = None  #: None: it can't be resumed
    text: str = ""  #: what a client shows that knows its dialect
    events: list[object] = Factory(list)  #: of one that resumes by itself
    body: bytes = b""  #: of one that reads bytes
    is_ended: bool = False  #: it saw the end that its dialect has
    error: Exception | None = None
    reader: asyncio.Task[Got] | None = None
    elsewhere: str = ""  #: the node at which others read its log

    def located(self, headers) -> None:
        """Its answer has begun: from now on somebody reads its log at the other node.

        A node that was paused at a call to the store takes the store for lost, and answers all the same.
        """
        assert not self.is_begun
        self.is_begun = True
        self.where = headers.get("location")
        if self.where is not None:
            self.reader = asyncio.create_task(read(self.elsewhere + self.where))


@define(eq=False)
class Got:
    """What a reader of bytes has, whether that is whole by HTTP, and when it knew."""

    body: bytes
    is_whole: bool
    at: float


async def received(response) -> Got:
    """Read to the end, or until the connection breaks."""
    body, is_whole = bytearray(), True
    try:
        async for data in response.content.iter_any():
            body += data
    except ClientError:
        is_whole = False
    return Got(without_ids(bytes(body)), is_whole, asyncio.get_running_loop().time())


async def read(url: str) -> Got:
    async with ClientSession(timeout=ClientTimeout(PATIENCE_S)) as session, session.get(url) as response:
        assert response.status == 200, (response.status, await response.text())
        return await received(response)


async def ask_with_openai(asked: Asked, url: str) -> None:
    transport = openai.DefaultAsyncHttpxClient(trust_env=False, timeout=PATIENCE_S)
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, http_client=transport) as client:
        _, body = asking(asked.dialect)
        async with await client.chat.completions.create(**body, extra_headers=ASKED) as stream:
            asked.located(stream.response.headers)
            async for chunk in stream:
                for choice in chunk.choices:
                    asked.text += choice.delta.content or ""
                    asked.is_ended |= choice.finish_reason is not None


async def ask_with_anthropic(asked: Asked, url: str) -> None:
    transport = anthropic.DefaultAsyncHttpxClient(trust_env=False, timeout=PATIENCE_S)
    async with anthropic.AsyncAnthropic(base_url=url, api_key="none", max_retries=0, http_client=transport) as client:
        _, body = asking(asked.dialect)
        async with await client.messages.create(**body, extra_headers=ASKED) as stream:
            asked.located(stream.response.headers)
            async for event in stream:
                if event.type == "content_block_delta" and event.delta.type == "text_delta":
                    asked.text += event.delta.text
                asked.is_ended |= event.type == "message_stop"


async def ask_with_langgraph(asked: Asked, url: str, patience_s: float) -> None:
    """Its pauses are as it came from PyPI."""
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=patience_s) as transport:
        path, body = asking(asked.dialect)
        client = langgraph.HttpClient(transport)

        def begun(response) -> None:
            asked.located(response.headers)

        async for part in client.stream(path, "POST", json=body, headers=ASKED, on_response=begun):
            asked.events.append(part.data)


async def ask_for_bytes(asked: Asked, url: str) -> None:
    path, body = asking(asked.dialect)
    async with (
        ClientSession(timeout=ClientTimeout(PATIENCE_S)) as session,
        session.post(url + path, json=body, headers=ASKED) as response,
    ):
        assert response.status == 200
        asked.located(response.headers)
        got = await received(response)
        asked.body, asked.is_ended = got.body, got.is_whole


async def noting(asked: Asked, asking_it) -> Asked:
    """What a client raises belongs to what it has; it is the client's own error, or its transport's."""
    try:
        await asking_it
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in {"openai", "anthropic", "httpx", "httpx2", "aiohttp"}:
            raise
        asked.error = error
    return asked


# -- a trial -----------------------------------------------------------------------------------------------------------


async def trial(nodes: Nodes, balancer: Proxy, store: RedisStore, hit, draw: random.Random, whole: dict[str, bytes]):
    """One hit while each client reads an answer of its own; how the logs ended, and the clients."""
    url, elsewhere = nodes.hit.url, nodes.other.url
    # langgraph's reads JSON only: no [DONE]
    dialects = {"openai": "openai-chat", "anthropic": "anthropic", "langgraph": "anthropic"}
    names = ["openai", "anthropic", "langgraph", "bytes"]
    clients = [Asked(n, dialects.get(n) or draw.choice(list(ERROR)), elsewhere=elsewhere) for n in names]
    by_openai, by_anthropic, by_langgraph, raw = clients
    begun = [
        ask_with_openai(by_openai, url),
        ask_with_anthropic(by_anthropic, url),
        ask_with_langgraph(by_langgraph, f"http://127.0.0.1:{balancer.port}", PATIENCE_S if hit is kill else 1.2),
        ask_for_bytes(raw, url),
    ]
    tasks = [asyncio.create_task(noting(asked, each)) for asked, each in zip(clients, begun, strict=True)]
    if draw.random() < 0.8:  # else also before there is anything to read
        await eventually(lambda: all(asked.is_begun for asked in clients), within_s=PATIENCE_S)
    await asyncio.sleep(draw.uniform(0, 1.1) * len(good("openai-chat").steps) * PACE_S)
    at = asyncio.get_running_loop().time()
    await hit(nodes, balancer, draw)
    await asyncio.gather(*tasks)
    outcomes: Counter[str] = Counter()
    for asked in clients:
        outcomes[judge_client(asked, whole[asked.dialect])] += 1
        if asked.is_begun and asked.where is None:
            assert hit is pause, asked
            outcomes["no log"] += 1
        if asked.reader is not None:
            ended = await judge_log(asked, await asked.reader, at, nodes, store, draw, whole[asked.dialect])
            outcomes[f"log {ended}"] += 1
    return outcomes


def atoms(parts: Iterable[Any]) -> list[Any]:
    """An event for each character of what is said in pieces, since pieces that come at once are written as one."""
    found: list[Any] = []
    for part in parts:
        delta = (part.get("delta") or ((part.get("choices") or [{}])[0]).get("delta") or {}) if part != "[DONE]" else {}
        places = [delta, *(call["function"] for call in delta.get("tool_calls") or [])]
        pieces = [(place, name) for place in places for name in PIECES if place.get(name)]
        if not pieces:
            found.append(part)
        for place, name in pieces:
            for letter in place[name]:
                place[name] = letter
                found.append(orjson.dumps(part))
    return found


def atoms_of(body: bytes) -> list[Any]:
    """Of the events that are there whole."""
    events = body[: body.rfind(b"\n\n") + 1].split(b"\n")
    data = [line[6:] for line in events if line.startswith(b"data: ")]
    return atoms("[DONE]" if each == b"[DONE]" else orjson.loads(each) for each in data)


def is_part(body: bytes, whole: bytes) -> bool:
    """Whether it is a beginning of the answer, without a gap and with nothing twice."""
    found = atoms_of(body)
    return found == atoms_of(whole)[: len(found)]


def judge_client(asked: Asked, whole: bytes) -> str:
    """Nobody takes a part for the whole, has a gap or has anything twice. What it came to."""
    if asked.client == "langgraph":
        return judge_resumed(asked, whole)
    assert TEXT.startswith(asked.text), asked
    if asked.client == "bytes":
        answered, error, _ = asked.body.partition(ERROR[asked.dialect])
        assert is_part(answered, whole), asked
        is_whole = atoms_of(asked.body) == atoms_of(whole)
        assert is_whole or error or not asked.is_ended, asked
    else:
        is_whole = asked.is_ended and asked.text == TEXT
        assert is_whole or asked.error is not None, asked
    return f"{asked.client} {'whole' if is_whole and asked.error is None else 'error'}"


def judge_resumed(asked: Asked, whole: bytes) -> str:
    """It comes back until it has the whole answer or an error, and fails by itself only where nobody told it where to."""
    wanted = atoms_of(whole)
    if asked.error is not None:
        assert asked.where is None, asked
        found = atoms(asked.events)
        assert found == wanted[: len(found)], asked
        return "langgraph had no place to come back to"
    *answered, last = asked.events
    if is_error := isinstance(last, dict) and "error" in last:
        found = atoms(answered)
        assert found == wanted[: len(found)], asked
    else:  # to say that the message stops says nothing that is not said before it
        assert wanted[-1] == {"type": "message_stop"}
        assert atoms(asked.events) in (wanted, wanted[:-1]), asked
    return f"langgraph {'error' if is_error else 'whole'}"


async def judge_log(asked: Asked, first: Got, at: float, nodes: Nodes, store: RedisStore, draw, whole: bytes) -> str:
    """All who read the log have the same of it, then and later, anywhere and from any byte; Redis has that, and one end."""
    assert first.is_whole, asked
    ended = "whole" if atoms_of(first.body) == atoms_of(whole) else "error"
    after = draw.randrange(len(first.body))
    answered, error, told = first.body.partition(ERROR[asked.dialect])
    assert is_part(answered, whole), (asked, first)
    if ended == "error" and not error:  # nothing is told behind an answer that is whole but for bytes that say nothing
        said = await collect(source_of([first.body]), asked.dialect)
        everything = await collect(source_of([whole]), asked.dialect)
        assert said.clean, (asked, first)
        assert said.choices == everything.choices, (asked, first)
        ended = "whole without its last words"
    elif ended == "error":
        assert told.endswith(b"}\n\n"), (asked, first)
        assert b"[DONE]" not in told, (asked, first)
        assert first.at - at < TOLD_S, (asked, first.at - at)
        after = draw.randint(0, len(answered))
    for node in (nodes.hit, nodes.other):
        assert (await read(node.url + asked.where)).body == first.body, asked
        assert (await read(f"{node.url}{asked.where}?after={after}")).body == first.body[after:], asked
    entries = await store.calls.call("XRANGE", Keys("sk").log(asked.where.rpartition("/")[2]), "-", "+")
    end = ends_of(entries)
    assert end[b"e"] == (b"done" if ended == "whole" else b"aborted")
    assert (b"f" in end) is (ended != "whole")
    fields = [fields_of(entry) for entry in entries]
    assert b"".join(each.get(b"f", each.get(b"d", b"")) for each in fields) == first.body
    return ended


async def kill(nodes: Nodes, _balancer: Proxy, _draw: random.Random) -> None:
    """Another takes its place at once."""
    nodes.hit.process.kill()
    nodes.hit.process.wait()
    await nodes.start()


async def pause(nodes: Nodes, balancer: Proxy, draw: random.Random) -> None:
    """For longer than a lease, so that others may take it for dead; some balancers notice, and some don't."""
    nodes.hit.signal(signal.SIGSTOP)
    if draw.random() < 0.5:
        balancer.targets.reverse()
    await asyncio.sleep(draw.choice([1.3, 2.6, 3.4]) * LEASE_S)
    nodes.hit.signal(signal.SIGCONT)
    balancer.targets[:] = [nodes.port, nodes.other.port]


async def trials(folder, server, hit, seeds):
    """What came of them, counted."""
    outcomes: Counter[str] = Counter()
    store = RedisStore(server.url, settings=RedisSettings(lease_s=LEASE_S))
    try:
        async with two_nodes(folder, server) as (nodes, balancer):
            whole = {}
            for dialect in ERROR:
                control = Asked("bytes", dialect, elsewhere=nodes.other.url)
                await ask_for_bytes(control, nodes.hit.url)
                whole[dialect] = control.body
                assert (await control.reader).body == control.body
            for seed in seeds:
                try:
                    outcomes += await trial(nodes, balancer, store, hit, random.Random(seed), whole)
                except BaseException as error:
                    error.add_note(f"seed {seed}")
                    raise
            for number in range(1, nodes.started + 1):
                assert "Traceback" not in (folder / str(number) / "stderr").read_text("utf-8")
    finally:
        await store.close()
    return outcomes


PAIRS: Final = pytest.mark.parametrize("first", range(0, TRIALS, OF_A_PAIR))


@pytest.mark.exhaustive
@pytest.mark.timeout(60 + 30 * OF_A_PAIR)
@pytest.mark.filterwarnings("ignore:Reconnecting without a Last-Event-ID")  # of one that was cut before the first event
@pytest.mark.parametrize("hit", [kill, pause])
@PAIRS
async def test_whoever_reads_answers_of_a_gateway_that_is_hit_has_all_of_them_or_an_error(server, tmp_path, hit, first):
    outcomes = await trials(tmp_path, server, hit, range(first, first + OF_A_PAIR))
    LOG.info("%s", dict(sorted(outcomes.items())))
    assert outcomes["log error"], "no answer was hit in its middle"
