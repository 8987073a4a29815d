"""Send one request and keep its response as a recording: each read with its time, and the end.

Redirects are not followed and proxies from the environment are not used, so that no other host gets the request
(``sending.py``). No request is repeated. The time of a read is the time when the bytes arrived, since nothing else runs
between two reads.

Source: observe.md O33, O34.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Final

from aiohttp import ClientResponse, ClientSession
from attrs import frozen
from yarl import URL

from streamkit.errors import ConnectTimeout, FirstByteTimeout, IdleTimeout, SourceFailed, TotalTimeout
from streamkit.lab.recording import End, Read, RecordedRequest, RecordedResponse, Recording
from streamkit.lab.recording.headers import kept_response_headers, kept_target
from streamkit.lab.recording.lines import sha256_of
from streamkit.limits import DEFAULT_LIMITS
from streamkit.report import StreamReport
from streamkit.text.identifiers import random_id
from streamkit.web.source import iter_upstream
from streamkit.web.upstream import Upstream, send
from streamkit.web.upstream.requests import address

#: Limits of a response, in case a server ignores the requested bound: events for each token, additional events for the start
#: and end of a stream, and bytes. A longer response is abandoned. A token has about four characters, an event at least one.
TOKEN_EVENTS, MORE_EVENTS, ANSWER_BYTES = 4, 64, 512 * 1024
#: The value of ``End.kind`` for each timeout.
_TIMEOUTS: Final[Mapping[type[SourceFailed], str]] = {
    ConnectTimeout: "timeout:connect",
    FirstByteTimeout: "timeout:first_byte",
    IdleTimeout: "timeout:idle",
    TotalTimeout: "timeout:total",
}


@frozen(kw_only=True)
class Exchange:
    """The result of a request. ``failed`` and ``headers`` go into the report only, and are not kept on disk."""

    recording: Recording
    headers: Mapping[str, str]  #: all headers of the response, with names in lower case
    failed: SourceFailed | None = None  #: why the response is missing or incomplete; None: it is complete


async def ask(
    session: ClientSession,
    upstream: Upstream,
    body: bytes,
    *,
    model: str,
    stream: bool,
    bound: int,
    leave: bool = False,
) -> Exchange:
    """Send one request and read its response. Stop reading when the response is too long for ``bound`` tokens.

    With ``leave``, close the connection after the first read.

    Raises BadRequest for a model name that cannot be part of a path, and SourceFailed if credentials are missing.
    """
    loop = asyncio.get_running_loop()
    at, started = datetime.now(UTC), loop.time()
    taken = _Taken()
    headers: dict[str, str] = {}
    removed = ["request.headers"]
    response_line: RecordedResponse | None = None
    failed: SourceFailed | None = None
    try:
        response = await send(session, upstream, body, model=model, stream=stream)
        headers = {name.lower(): value for name, value in response.headers.items()}
        kept, some_left_out = kept_response_headers(response.headers.items())
        removed += ["response.headers"] if some_left_out else []
        response_line = RecordedResponse(t=loop.time() - started, status=response.status, headers=kept)
        kind = await _read(response, upstream, started, taken, 0 if leave else bound)
    except SourceFailed as error:
        failed, kind = error, _kind_of(error, answered=response_line is not None)
    path, _ = kept_target(URL(address(upstream, model, stream=stream), encoded=True).raw_path_qs)
    recording = Recording(
        id=random_id("doctor_"),
        at=at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        streamkit=version("streamkit-llm"),
        dialect=upstream.wire.name,
        provider="" if upstream.provider is None else upstream.provider.name,
        removed=tuple(removed),
        request=RecordedRequest(path=path, body=body, body_sha256=sha256_of(body)),
        response=response_line,
        reads=tuple(taken.reads),
        end=taken.end(loop.time() - started, kind),
    )
    return Exchange(recording=recording, headers=headers, failed=failed)


async def _read(response: ClientResponse, upstream: Upstream, started: float, taken: _Taken, bound: int) -> str:
    """Read the response and return its ``End.kind``, unless an error is raised. With bound 0, stop after the first read."""
    loop = asyncio.get_running_loop()
    parser, events = upstream.wire.parser(DEFAULT_LIMITS, StreamReport()), 0
    source = iter_upstream(response, timeouts=upstream.timeouts, started=started)
    try:
        async for chunk in source:
            taken.add(loop.time() - started, chunk)
            events += len(parser.feed(chunk))
            if not bound or events > bound * TOKEN_EVENTS + MORE_EVENTS or taken.bytes > ANSWER_BYTES:
                return "client_left"
    finally:
        await source.aclose()
    return "whole"


class _Taken:
    """The reads of a response so far."""

    def __init__(self) -> None:
        self.reads: list[Read] = []
        self.bytes = 0
        self._sha256 = hashlib.sha256()

    def add(self, t: float, chunk: bytes) -> None:
        self.reads.append(Read(t, chunk))
        self.bytes += len(chunk)
        self._sha256.update(chunk)

    def end(self, t: float, kind: str) -> End:
        return End(t=t, kind=kind, reads=len(self.reads), bytes=self.bytes, sha256=self._sha256.hexdigest())


def _kind_of(failed: SourceFailed, *, answered: bool) -> str:
    if type(failed) in _TIMEOUTS:
        return _TIMEOUTS[type(failed)]
    if not answered:
        return "unreachable"
    causes, error = [], failed.__cause__
    while error is not None and error not in causes:
        causes.append(error)
        error = error.__cause__
    return "reset" if any(isinstance(cause, ConnectionResetError) for cause in causes) else "cut"
