"""A gateway on a loopback port, in front of upstreams that tests script."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from attrs import define

from streamkit.dialects import DIALECTS
from streamkit.gateway.app import gateway_app
from streamkit.gateway.config import Config, Server
from streamkit.gateway.metrics import Metrics, exposition
from streamkit.gateway.routing import Route, Target
from streamkit.web.source import Timeouts
from streamkit.web.upstream import Upstream
from tests.web.evil import EvilUpstream
from tests.web.serving import eventually, serving

#: What the gateway asks of each dialect's upstreams, as users would write it.
BASES = {"openai-chat": "/v1", "openai-responses": "/v1", "mistral": "/v1"}
#: Short, so that a test that waits for one is over soon, and no shorter, since a busy machine is slow.
TIMEOUTS = Timeouts(connect_s=1.0, first_byte_s=2.0, idle_s=2.0)


def upstream_at(evil: EvilUpstream, dialect: str, name: str = "one", **values: Any) -> Upstream:
    base = evil.url + BASES.get(dialect, "")
    return Upstream(
        **{"name": name, "dialect": dialect, "base_url": base, "auth": "none", "timeouts": TIMEOUTS, **values}
    )


def config_of(upstreams: Iterable[Upstream], *, server: Mapping[str, Any] | None = None, **route: Any) -> Config:
    """Every model goes to these upstreams, in this order."""
    upstreams = list(upstreams)
    targets = tuple(Target(upstream=upstream) for upstream in upstreams)
    values = {"models": ("m", "*"), "targets": targets, "retries": 0, "backoff_s": 0.01, "backoff_max_s": 0.02, **route}
    settings = Server(**{"port": 0, "grace_s": 1.0, "linger_s": 0.1, **(server or {})})
    return Config(server=settings, upstreams={u.name: u for u in upstreams}, routes=(Route(**values),))


@define
class Running:
    url: str
    metrics: Metrics

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
async def gateway(
    config: Config, *, handler_cancellation: bool = True, telemetry: Any = None
) -> AsyncIterator[Running]:
    metrics = Metrics()
    app = gateway_app(config, metrics, telemetry=telemetry)
    async with serving(app, handler_cancellation=handler_cancellation) as port:
        yield Running(f"http://127.0.0.1:{port}", metrics)


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
