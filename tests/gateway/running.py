"""A gateway on a loopback port, in front of upstreams that tests script."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import orjson
from attrs import define, field, frozen

from streamkit import collect
from streamkit.conversation.messages import Response
from streamkit.dialects import DIALECTS
from streamkit.events import ProviderFailed
from streamkit.gateway.app import gateway_app
from streamkit.gateway.config import Config, Resume, Server
from streamkit.gateway.metrics import Metrics, exposition
from streamkit.gateway.routing import Route, Target
from streamkit.http_errors import decode_error
from streamkit.testing import source_of
from streamkit.web.source import Timeouts
from streamkit.web.upstream import Upstream
from tests.web.evil import EvilUpstream, Play
from tests.web.raw_client import Answer, RawClient, ask
from tests.web.serving import eventually, serving

#: What the gateway asks of each dialect's upstreams, as users would write it.
BASES = {"openai-chat": "/v1", "openai-responses": "/v1", "mistral": "/v1"}
#: What the upstreams of a test are called, in their order.
NAMES = ("one", "two", "three")
#: Short, so that a test that waits for one is over soon, and no shorter, since a busy machine is slow.
TIMEOUTS = Timeouts(connect_s=1.0, first_byte_s=2.0, idle_s=2.0)


def upstream_at(evil: EvilUpstream, dialect: str, name: str = "one", **values: Any) -> Upstream:
    base = evil.url + BASES.get(dialect, "")
    return Upstream(
        **{"name": name, "dialect": dialect, "base_url": base, "auth": "none", "timeouts": TIMEOUTS, **values}
    )


def config_of(
    upstreams: Iterable[Upstream],
    *,
    server: Mapping[str, Any] | None = None,
    resume: Resume | None = None,
    **route: Any,
) -> Config:
    """Every model goes to these upstreams, in this order."""
    upstreams = list(upstreams)
    targets = tuple(Target(upstream=upstream) for upstream in upstreams)
    values = {"models": ("m", "*"), "targets": targets, "retries": 0, "backoff_s": 0.01, "backoff_max_s": 0.02, **route}
    settings = Server(**{"port": 0, "grace_s": 1.0, "linger_s": 0.1, **(server or {})})
    by_name = {upstream.name: upstream for upstream in upstreams}
    return Config(server=settings, upstreams=by_name, routes=(Route(**values),), resume=resume or Resume())


@define
class Running:
    url: str
    metrics: Metrics
    evils: list[EvilUpstream] = field(factory=list)  #: the upstreams, in their order: see ``in_turn``

    @property
    def evil(self) -> EvilUpstream:
        """The only upstream: see ``behind``."""
        [evil] = self.evils
        return evil

    @property
    def seen(self) -> list[int]:
        """How many requests each upstream got."""
        return [len(evil.requests) for evil in self.evils]

    async def ask(self, path: str, *, method: str = "POST", **how: Any) -> Answer:
        return await ask(self.url, path, method=method, **how)

    async def get(self, path: str, **how: Any) -> Answer:
        return await ask(self.url, path, method="GET", **how)

    async def asked(
        self,
        client: str = "openai-chat",
        body: Mapping[str, Any] | bytes | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        path: str | None = None,
        **how: Any,
    ) -> Answer:
        """Ask as a client of a dialect does; ``body`` is bytes, or members in addition to the usual ones."""
        usual_path, usual = asking(client, **how)
        sent = body if isinstance(body, bytes) else orjson.dumps({**usual, **(body or {})})
        return await ask(self.url, path or usual_path, body=sent, headers=headers)

    @asynccontextmanager
    async def client(
        self,
        client: str = "openai-chat",
        *,
        headers: Mapping[str, str] | None = None,
        receive_buffer_bytes: int | None = None,
        **how: Any,
    ) -> AsyncIterator[RawClient]:
        """A client that has asked, and reads no further than the test says."""
        path, body = asking(client, **how)
        async with RawClient(self.url, receive_buffer_bytes=receive_buffer_bytes) as asked:
            await asked.send("POST", path, headers=headers, body=orjson.dumps(body))
            yield asked

    def counted(self, name: str, **labels: str) -> float:
        """The sum of a counter's series that have these labels."""
        found = 0.0
        for line in exposition(self.metrics).decode().splitlines():
            series, _, value = line.rpartition(" ")
            if series.startswith(f"streamkit_{name}") and all(f'{k}="{v}"' in series for k, v in labels.items()):
                found += float(value)
        return found

    async def outcomes(self) -> dict[tuple[str, str], int]:
        """How often each upstream ended how, once nothing is under way."""
        await eventually(lambda: self.counted("streams_active") == 0)
        outcomes = {}
        for line in exposition(self.metrics).decode().splitlines():
            if line.startswith("streamkit_attempts_total{"):
                labels = dict(part.split("=", 1) for part in line[line.index("{") + 1 : line.index("}")].split(","))
                outcomes[labels["upstream"].strip('"'), labels["outcome"].strip('"')] = int(
                    float(line.rpartition(" ")[2])
                )
        return {attempt: count for attempt, count in outcomes.items() if count}  # series begin with 0


@asynccontextmanager
async def gateway(config: Config, *, telemetry: Any = None) -> AsyncIterator[Running]:
    metrics = Metrics()
    app = gateway_app(config, metrics, telemetry=telemetry)
    async with serving(app, handler_cancellation=True) as port:
        yield Running(f"http://127.0.0.1:{port}", metrics)


@frozen
class Leg:
    """An upstream that plays these scripts, and its values."""

    plays: tuple[Play, ...]
    dialect: str
    values: dict[str, Any]


def leg(*plays: Play, dialect: str = "openai-chat", **values: Any) -> Leg:
    return Leg(plays, dialect, values)


@asynccontextmanager
async def in_turn(*legs: Leg | Play | Upstream, telemetry: Any = None, **values: Any) -> AsyncIterator[Running]:
    """A gateway in front of upstreams; a script alone is an upstream of OpenAI's that plays it.

    ``server`` has values of the server, ``resume`` is where answers are kept, and what else is named is the route's.
    """
    async with AsyncExitStack() as stack:
        upstreams, evils = [], []
        for number, each in enumerate(legs):
            if isinstance(each, Upstream):  # of the test's own
                upstreams.append(each)
                continue
            play = each if isinstance(each, Leg) else leg(each)
            evils.append(await stack.enter_async_context(EvilUpstream(*play.plays)))
            upstreams.append(upstream_at(evils[-1], play.dialect, **{"name": NAMES[number], **play.values}))
        running = await stack.enter_async_context(gateway(config_of(upstreams, **values), telemetry=telemetry))
        running.evils = evils
        yield running


@asynccontextmanager
async def behind(
    *plays: Play, dialect: str = "openai-chat", upstream: Mapping[str, Any] | None = None, **values: Any
) -> AsyncIterator[Running]:
    """A gateway in front of one upstream with these values, which plays these scripts: ``running.evil``."""
    async with in_turn(leg(*plays, dialect=dialect, **(upstream or {})), **values) as running:
        yield running


def told(answer: Answer, client: str) -> ProviderFailed:
    """The failure in an answer, as a client of the dialect reads it."""
    return decode_error(answer.status, bytes(answer.body), client, answer.headers)


async def read(answer: Answer, client: str) -> Response:
    """The stream in an answer with status 200, as a client of the dialect reads it."""
    assert answer.status == 200, answer.body
    return await collect(source_of([bytes(answer.body)]), client)


def end_of(client: str, *, clean: bool) -> str:
    """How the body of a stream ends for a client of this dialect, as ``RawClient`` says it."""
    return "complete" if clean or DIALECTS[client].failed_end is None else "cut"


#: What a client of each dialect sends, and where to; ``{stream}`` is settled by ``asking``.
def asking(
    dialect: str, *, stream: bool = True, tools: bool = False, forced: bool = False, model: str = "m"
) -> tuple[str, dict[str, Any]]:
    """The path and the body of a request of a client of ``dialect``."""
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    function = {"name": "weather", "description": "how it is", "parameters": schema}
    body: dict[str, Any]
    if dialect == "gemini":
        body = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
        if tools:
            body["tools"] = [{"functionDeclarations": [function]}]
        if forced:
            body["toolConfig"] = {"functionCallingConfig": {"mode": "ANY"}}
        return f"/v1beta/models/{model}:{'streamGenerateContent?alt=sse' if stream else 'generateContent'}", body
    if dialect == "gemini-interactions":
        body = {"model": model, "stream": stream, "input": "hi"}
        if tools:
            body["tools"] = [{"type": "function", **function}]
        if forced:
            body["generation_config"] = {"tool_choice": "any"}
        return "/v1/interactions", body
    body = {"model": model, "stream": stream, "messages": [{"role": "user", "content": "hi"}]}
    if dialect == "openai-responses":
        body["input"] = body.pop("messages")
    if dialect == "anthropic":
        body["max_tokens"] = 100
    if tools and dialect == "anthropic":
        body["tools"] = [{"name": "weather", "description": "how it is", "input_schema": schema}]
    elif tools and dialect == "openai-responses":
        body["tools"] = [{"type": "function", "strict": False, **function}]
    elif tools:
        body["tools"] = [{"type": "function", "function": function}]
    if forced:
        body["tool_choice"] = {"type": "any"} if dialect == "anthropic" else "required"
    paths = {
        "openai-chat": "/v1/chat/completions",
        "openai-responses": "/v1/responses",
        "anthropic": "/v1/messages",
        "ollama": "/api/chat",
    }
    return paths[dialect], body
