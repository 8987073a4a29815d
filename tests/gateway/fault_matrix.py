"""What a client of each dialect gets for each thing that an upstream can do to the gateway: run, not written down."""

from __future__ import annotations

import asyncio

import orjson
from attrs import frozen

from streamkit import collect
from streamkit.http_errors import decode_error
from streamkit.testing import source_of
from streamkit.web.source import Timeouts
from tests.gateway.running import asking, config_of, gateway, upstream_at
from tests.web.evil import EvilUpstream
from tests.web.faults import FAULTS
from tests.web.raw_client import ask

CLIENTS = ("openai-chat", "openai-responses", "anthropic", "ollama", "gemini")
#: Faults that are a time-out, each with the clock that is to run out. Every other clock is longer than any machine is busy.
CLOCKS = {
    "never connects": {"connect_s": 1.0},
    "silence before headers": {"first_byte_s": 2.0},
    "silence mid-stream": {"idle_s": 2.0},
}
#: Faults that only a stream can have: a whole answer is one or is not.
STREAMED = {"error mid-stream"}


@frozen
class Result:
    """What a client got."""

    status: int
    kind: str  #: the neutral kind of error, read from the client's dialect
    message: str
    begun: bool  #: part of the answer came first
    clean: bool  #: it looks whole


async def suffered(fault: str, client: str, upstream: str = "openai-chat", *, stream: bool) -> Result:
    """Ask a gateway whose only upstream has this fault."""
    script = FAULTS[fault](upstream, whole=not stream)
    timeouts = Timeouts(**{"connect_s": 60.0, "first_byte_s": 60.0, "idle_s": 60.0, **CLOCKS.get(fault, {})})
    async with (
        EvilUpstream(script) as evil,
        gateway(config_of([upstream_at(evil, upstream, timeouts=timeouts)])) as running,
    ):
        path, body = asking(client, stream=stream)
        answer = await ask(running.url, path, body=orjson.dumps(body))
    assert answer.end == "complete", f"{fault}: {answer.end}"  # the connection itself ends well
    if answer.status != 200:
        failed = decode_error(answer.status, bytes(answer.body), client, answer.headers)
        return Result(answer.status, failed.type, failed.message, begun=False, clean=False)
    read = await collect(source_of([bytes(answer.body)]), client)
    kind, message = read.report.provider_error or ("", "")
    return Result(200, kind, message, begun=bool(read.text), clean=read.clean)


async def matrix() -> dict[str, dict[tuple[str, bool], Result]]:
    """Every fault for every client, streaming and whole."""
    found: dict[str, dict[tuple[str, bool], Result]] = {}
    for fault in FAULTS:
        cases = [(client, stream) for client in CLIENTS for stream in (True, False) if stream or fault not in STREAMED]
        results = await asyncio.gather(*(suffered(fault, client, stream=stream) for client, stream in cases))
        found[fault] = dict(zip(cases, results, strict=True))
    return found
