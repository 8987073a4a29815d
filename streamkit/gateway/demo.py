"""The demo upstream: a server on loopback that speaks one dialect, for a gateway without a configuration.

The gateway reaches it over TCP like any provider. It sends what ``demo_model`` says, as slowly as a model, and some of its
models fail as providers do. It checks no key, and listens only on loopback.

Source: dialects.md §1; clients.md §10.8.
"""

from __future__ import annotations

import random
from asyncio import sleep
from collections.abc import AsyncIterator, Mapping
from typing import Final

from aiohttp import web
from attrs import define

from streamkit.dialects import encode
from streamkit.dialects.profiles import Profile
from streamkit.errors import BadRequest, UsageError
from streamkit.events import ProviderFailed, WireEvent
from streamkit.gateway.config import Config, Server
from streamkit.gateway.routing import Route, Target
from streamkit.http_errors import encode_error
from streamkit.lab.demo_model import DELTAS, answer, dialect, recording, settings
from streamkit.pipeline import Pipe, pipe
from streamkit.recipes import collect
from streamkit.tool_calls.accumulate import accumulate_tool_calls
from streamkit.translation.bodies import decode_request, encode_response
from streamkit.web.upstream import Upstream

#: The models, and what each demonstrates. A model with another name responds like ``demo``, or like ``demo-reasoning`` if its
#: name ends with ``-reasoning``.
MODELS: Final[Mapping[str, str]] = {
    "demo": "responds, and calls the offered tools",
    "demo-reasoning": "reasons first",
    "demo-slow": "is silent for a minute, then responds: shows the keep-alives",
    "demo-cut": "is interrupted in the middle of its response",
    "demo-error": "fails with status 500",
}
REASONS: Final = "-reasoning"
FIRST_TOKEN_S: Final = 0.4
SILENCE_S: Final = 60.0
TOKENS_PER_S: Final = (30.0, 60.0)
CHUNKS_BEFORE_CUT: Final = 5  #: the chunks that ``demo-cut`` writes of a stream before it stops inside the next one
#: The largest request body. The gateway has the same limit.
REQUEST_BYTES: Final = 32 * 1024 * 1024
#: Seconds to wait for open connections at shutdown. Only the gateway connects to this server, and the gateway stops first.
SHUTDOWN_S: Final = 1.0


async def start_demo(*, speed: float = 1.0) -> tuple[web.AppRunner, str]:
    """Serve ``demo_app`` on a free loopback port. Return the runner, whose ``cleanup`` ends it, and the base URL.

    Raises UsageError for a speed below 0, and OSError if it can't listen on loopback.
    """
    app = demo_app(speed=speed)
    runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=SHUTDOWN_S)
    try:
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
    except BaseException:
        await runner.cleanup()
        raise
    host, port = runner.addresses[0]
    return runner, f"http://{host}:{port}/v1"


def demo_app(*, speed: float = 1.0, seed: int = 0) -> web.Application:
    """Return the demo upstream as an application that answers ``POST /v1/chat/completions``, streamed and whole.

    ``speed`` multiplies the pace of a model (the first token after 0.4 s, then 30 to 60 a second); 0 is as fast as possible.
    ``seed`` makes the jitter repeatable. Raises UsageError for a speed below 0.
    """
    if speed < 0:
        raise UsageError(f"the demo's speed must be a factor above 0, or 0 for no waiting, not {speed:g}")
    for name in "text", "calls", "results":
        recording(name)  # read from the disk now, not during a request
    app = web.Application(client_max_size=REQUEST_BYTES)
    app.router.add_post("/v1/chat/completions", _Demo(speed, random.Random(seed)).chat)  # noqa: S311 - jitter, no secret
    return app


def demo_config(base_url: str, server: Server | None = None) -> Config:
    """Return the configuration of a gateway whose only upstream is the demo at ``base_url``, which ``start_demo`` returns.

    The upstream serves every model name. Nothing is retried, so that users can see the failures.
    """
    upstream = Upstream(name="demo", dialect=dialect(), base_url=base_url, auth="none")
    route = Route(models=(*MODELS, "*"), targets=(Target(upstream=upstream),), retries=0)
    return Config(server=server or Server(), upstreams={upstream.name: upstream}, routes=(route,))


@define
class _Demo:
    speed: float
    jitter: random.Random

    async def chat(self, request: web.Request) -> web.StreamResponse:
        try:
            asked = decode_request(await request.read(), dialect())
            events = answer(asked, reasons=(asked.model or "").endswith(REASONS))
        except BadRequest as error:
            return _refusal(ProviderFailed("invalid_request", str(error)))
        if asked.model == "demo-error":
            return _refusal(ProviderFailed("server", "the model demo-error always fails, so that you can see an error"))
        spoken = self.spoken(events, SILENCE_S if asked.model == "demo-slow" else FIRST_TOKEN_S)
        counted = bool(asked.stream_usage) or not asked.stream
        stream = pipe(spoken, accumulate_tool_calls(), encode(dialect(), profile=Profile(include_usage=counted)))
        write = _streamed if asked.stream else _whole
        return await write(request, stream, cut=asked.model == "demo-cut")

    async def spoken(self, events: list[WireEvent], first_token_s: float) -> AsyncIterator[list[WireEvent]]:
        """Yield the events one at a time, with the delays of a model."""
        wait_s = first_token_s
        for event in events:
            if self.speed and isinstance(event, DELTAS):
                await sleep(wait_s / self.speed)
                wait_s = 1 / self.jitter.uniform(*TOKENS_PER_S)
            yield [event]


def _refusal(failed: ProviderFailed) -> web.Response:
    written = encode_error(failed, dialect())
    return web.Response(status=written.status, headers=written.headers, body=written.body)


async def _streamed(request: web.Request, stream: Pipe[bytes], *, cut: bool) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
    await response.prepare(request)
    chunks = 0
    async with stream:
        async for chunk in stream:
            if cut and chunks == CHUNKS_BEFORE_CUT:
                await _break_off(request, response, chunk)
                break
            await response.write(chunk)
            chunks += 1
    return response


async def _whole(request: web.Request, stream: Pipe[bytes], *, cut: bool) -> web.StreamResponse:
    """Send a whole response, made from the stream, so that both forms have the same content and take the same time."""
    async with stream:
        body = encode_response(await collect(stream, dialect()), dialect())
    if not cut:
        return web.Response(body=body, content_type="application/json")
    response = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": str(len(body))})
    await response.prepare(request)
    await _break_off(request, response, body)
    return response


async def _break_off(request: web.Request, response: web.StreamResponse, rest: bytes) -> None:
    """Write half of ``rest``, then close the connection inside the response, as a failing proxy does."""
    await response.write(rest[: len(rest) // 2])
    if request.transport is not None:
        request.transport.close()


def commands(url: str) -> dict[str, str]:
    """Return shell commands that send requests to the gateway at ``url``, by what each one shows."""
    return {
        each["title"]: f"curl -sSN {url}{each['path']} \\\n  -H 'content-type: application/json' -d '{each['body']}'"
        for each in settings()["commands"]
    }


def welcome(url: str) -> str:
    """Return the text that a gateway at ``url`` (``http://127.0.0.1:8080``) prints if it starts without a configuration."""
    asked = "\n\n".join(f"# {title}\n{command}" for title, command in commands(url).items())
    models = "\n".join(f"  {name:<15} {what}" for name, what in MODELS.items())
    return f"""\
streamkit serves {url} without a configuration: a built-in demo model responds. It needs no key and no network.
Its models:
{models}

In another terminal:

{asked}
"""
