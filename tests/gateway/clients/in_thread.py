"""A gateway and its upstream on loopback ports, in a thread of their own, since the official clients here are synchronous.

The one upstream speaks every dialect and plays, for each model's name, what was registered under it. So one gateway serves
any number of recordings, and any number of tests, by names that nobody else has. What the gateway counted of each request is
kept, and so is what it asked of the upstream.
"""

from __future__ import annotations

import asyncio
import re
import socket
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final, Self
from urllib.parse import unquote

import orjson

from streamkit.dialects import DIALECTS
from streamkit.gateway.app import gateway_app
from streamkit.gateway.config import Config, Responses, Server
from streamkit.gateway.metrics import Metrics
from streamkit.gateway.record import Record
from streamkit.gateway.routing import Route, Target
from streamkit.web.source import Timeouts
from streamkit.web.upstream import Secret
from tests.gateway.running import upstream_at
from tests.web.evil import EvilUpstream, Received, Script
from tests.web.serving import serving

CLIENTS: Final = ("openai-chat", "openai-responses", "anthropic", "ollama", "gemini", "gemini-interactions")
UPSTREAMS: Final = tuple(DIALECTS.built_in)
#: The upstream that takes no tools, of Chat.
NO_TOOLS: Final = "no-tools"
#: What clients send, and what the upstream is sent: neither may be where the other is.
CLIENT_KEY: Final = "5t2k-canary-client"
UPSTREAM_KEY: Final = "8w1q-canary-upstream"
PATIENCE_S: Final = 20.0
#: A busy machine is no slow upstream.
TIMEOUTS: Final = Timeouts(first_byte_s=PATIENCE_S, idle_s=PATIENCE_S)
#: Where the two dialects that name the model in the path have it.
IN_PATH: Final = re.compile(r"/models?/([^/:]+)")


class PromptUpstream(EvilUpstream):
    """Sends each piece when it is written. asyncio turns Nagle's algorithm off by itself, but not for sockets made like this."""

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        for listening in self._sockets:  # what is accepted inherits it
            listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self


class Records(Metrics):
    """The counts of the gateway, and what they were counted from, by model."""

    def __init__(self) -> None:
        super().__init__()
        self._records: dict[str, list[Record]] = defaultdict(list)
        self._news = threading.Condition()

    def observe(self, record: Record) -> None:
        super().observe(record)
        with self._news:
            self._records[record.model].append(record)
            self._news.notify_all()

    def last(self, model: str, number: int) -> Record:
        """The last of so many at least. A client may have read its answer before the request is over."""
        with self._news:
            there = self._news.wait_for(lambda: len(self._records[model]) >= number, PATIENCE_S)
            assert there, f"{len(self._records[model])} requests for {model} are over, not {number}"
            return self._records[model][-1]


class GatewayThread:
    """Entered with ``running``. ``url`` is the gateway's, ``upstream`` that of what it asks."""

    def __init__(self, responses: Responses) -> None:
        self.url = ""
        self._responses = responses
        self.upstream = ""
        self._scripts: dict[str, Sequence[Script]] = {}
        self._asked: dict[str, list[Received]] = defaultdict(list)
        self._records = Records()
        self._started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    def register(self, dialect: str, *scripts: Script) -> str:
        """The model's name under which an upstream of ``dialect`` plays ``scripts``, the last one again and again."""
        name = f"{dialect}.{len(self._scripts)}"
        self._scripts[name] = scripts
        return name

    def asked(self, model: str) -> list[Received]:
        """What the upstream was asked for a model."""
        return self._asked[model]

    def record(self, model: str) -> Record:
        """What the gateway counted of the last request for a model."""
        return self._records.last(model, len(self._asked[model]) or 1)

    # -- in the thread -------------------------------------------------------------------------------------------------

    async def serve(self) -> None:
        leave = asyncio.Event()
        try:
            async with (
                PromptUpstream(self._play) as evil,
                serving(gateway_app(self._config(evil), self._records), handler_cancellation=True) as port,
            ):
                self.url, self.upstream = f"http://127.0.0.1:{port}", evil.url
                self._started.set_result((asyncio.get_running_loop(), leave))
                await leave.wait()
        except BaseException as error:
            if not self._started.done():
                self._started.set_exception(error)
            raise

    def start(self) -> Callable[[], object]:
        """Wait until it serves; returns what ends it."""
        loop, leave = self._started.result(PATIENCE_S)
        return lambda: loop.call_soon_threadsafe(leave.set)

    def _play(self, request: Received) -> Script:
        model = model_in(request)
        scripts = self._scripts[model]
        self._asked[model].append(request)
        return scripts[min(len(self._asked[model]), len(scripts)) - 1]

    def _config(self, evil: EvilUpstream) -> Config:
        """A route to each dialect's upstream, for a model with a name that is listed and for any behind ``dialect.``"""
        how: dict[str, Any] = {"auth": "bearer", "key": Secret(UPSTREAM_KEY), "timeouts": TIMEOUTS}
        upstreams = [upstream_at(evil, dialect, dialect, **how) for dialect in UPSTREAMS]
        upstreams.append(upstream_at(evil, "openai-chat", NO_TOOLS, tools=False, **how))
        routes = tuple(
            Route(models=(listed(each.name), f"{each.name}.*"), targets=(Target(upstream=each),), retries=0)
            for each in upstreams
        )
        server = Server(port=0, grace_s=1.0, keys=(Secret(CLIENT_KEY),))
        named = {each.name: each for each in upstreams}
        return Config(server=server, responses=self._responses, upstreams=named, routes=routes)


def listed(upstream: str) -> str:
    """The model of an upstream that clients are told of."""
    return f"{upstream}-model"


def model_in(request: Received) -> str:
    found = IN_PATH.search(unquote(request.path))
    if found:
        return found[1]
    body = orjson.loads(request.body)
    return str(body.get("model") or body["forwardedProps"]["model"])


@contextmanager
def running(*, state: bool = False) -> Iterator[GatewayThread]:
    """A gateway and its upstream, which let clients in by ``CLIENT_KEY``. What goes wrong in them is raised on exit."""
    thread = GatewayThread(Responses(state=state))
    with ThreadPoolExecutor(1, "gateway") as pool:
        done = pool.submit(asyncio.run, thread.serve())
        stop = thread.start()
        try:
            yield thread
        finally:
            stop()
            done.result(PATIENCE_S)
