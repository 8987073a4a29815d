"""Servers for the doctor: of any dialect and well behaved, and such ones with one thing changed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web
from attrs import evolve

from streamkit.conversation.messages import Request
from streamkit.dialects import DIALECTS, encode
from streamkit.dialects.profiles import Profile
from streamkit.errors import BadRequest
from streamkit.events import ProviderFailed
from streamkit.http_errors import encode_error
from streamkit.lab.demo_model import answer
from streamkit.lab.doctor import Examination, Judged, plan
from streamkit.pipeline import pipe
from streamkit.recipes import collect
from streamkit.testing import source_of
from streamkit.tool_calls.accumulate import accumulate_tool_calls
from streamkit.translation.bodies import decode_request, encode_response
from streamkit.web.source import Timeouts
from streamkit.web.upstream import Upstream, client_session
from tests.web.serving import answering, serving

#: What an answer of the server is instead: of the request and what it would be.
Change = Callable[[Request, web.Response], Awaitable[web.StreamResponse] | web.StreamResponse]
#: Every dialect whose servers can be examined.
EXAMINED = [name for name, dialect in DIALECTS.built_in.items() if dialect.answers_whole]


def model_server(dialect: str, change: Change = lambda _asked, response: response) -> web.Application:
    """A server of the demo model that speaks ``dialect`` well, but for what ``change`` makes of its answers."""

    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            asked = decode_request(await request.read(), dialect)
        except BadRequest as error:
            refused = encode_error(ProviderFailed("invalid_request", str(error)), dialect)
            return web.Response(status=refused.status, headers=refused.headers, body=refused.body)
        streams = "stream" in request.path.lower() if asked.stream is None else asked.stream
        asked = evolve(asked, model=asked.model or "demo", stream=streams)
        changed = change(asked, await answered(asked, dialect))
        return (
            await changed if isinstance(changed, Awaitable) and not isinstance(changed, web.StreamResponse) else changed
        )

    return answering(handle)


async def answered(asked: Request, dialect: str) -> web.Response:
    profile = Profile(include_usage=bool(asked.stream_usage) or not asked.stream)
    events = source_of([[event] for event in answer(asked, reasons=False)])
    async with pipe(events, accumulate_tool_calls(), encode(dialect, profile=profile)) as stream:
        body = b"".join([chunk async for chunk in stream])
    if asked.stream:
        return web.Response(body=body, content_type=DIALECTS[dialect].media_type)
    body = encode_response(await collect(source_of([body]), dialect), dialect)
    return web.Response(body=body, content_type="application/json")


@asynccontextmanager
async def examination(app: web.Application, dialect: str, *, timeout_s: float = 5.0) -> AsyncIterator[Examination]:
    """An examination of an application on loopback."""
    base = "/v1" if "/v1" in served_at(dialect) else ""
    timeouts = Timeouts(connect_s=timeout_s, first_byte_s=timeout_s, idle_s=timeout_s, total_s=timeout_s)
    async with serving(app, handler_cancellation=True) as port, client_session() as session:
        upstream = Upstream(
            name="doctor", dialect=dialect, base_url=f"http://127.0.0.1:{port}{base}", auth="none", timeouts=timeouts
        )
        yield Examination(session=session, upstream=upstream, model="demo")


def served_at(dialect: str) -> str:
    surface = DIALECTS[dialect].http.surface
    return "" if surface is None else surface.generate[0]


async def examined(app: web.Application, dialect: str, *names: str, timeout_s: float = 5.0) -> dict[str, Judged]:
    """What is found of an application: by the probes of these names, by default all, up to one that ends it."""
    async with examination(app, dialect, timeout_s=timeout_s) as asked:
        for probe in plan(dialect, "demo").probes:
            if (not names or probe.name in names) and (await asked.examine(probe)).ends:
                break
        return asked.judged
