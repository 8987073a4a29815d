"""The number of tokens in a request: ask one upstream for it, and return it to a client.

``web/upstream/token_counts.py`` builds the request to an upstream and parses its response.

Source: clients.md §10.4.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final

import orjson
from aiohttp import ClientSession, web
from attrs import define, evolve, field

from streamkit.dialects import client_named
from streamkit.dialects.streams.event_encoder import failure_from
from streamkit.errors import StreamError, UsageError
from streamkit.events import ProviderFailed
from streamkit.report import StreamReport
from streamkit.web.refusals import Refused, no_count
from streamkit.web.source import whole_body
from streamkit.web.surfaces import Ask, surfaces
from streamkit.web.token_estimate import CountTokens, estimate
from streamkit.web.upstream import Upstream, count_of, hidden
from streamkit.web.upstream.auth import as_gateway_failure
from streamkit.web.upstream.headers import NO_HEADERS
from streamkit.web.upstream_request import UNFIT, open_answer

#: Failures that the request itself causes; they are never replaced with an estimate.
_OF_THE_REQUEST: Final = frozenset({"invalid_request", "too_large"})
#: The largest response to a count, which is one number in a small object.
COUNT_BYTES: Final = 64 * 1024


@define
class Count:
    """One count by an upstream that can count. Call ``fetch`` once; after that, the other fields say what happened."""

    ask: Ask
    upstream: Upstream
    session: ClientSession
    client_headers: Mapping[str, str] = field(repr=False)  # includes the client's key
    model: str | None = None  #: the upstream's name for the model; None: the client's name
    asked: StreamReport = field(factory=StreamReport, repr=False)  #: the losses of the request
    report: StreamReport = field(factory=StreamReport, repr=False)  #: the upstream's errors
    status: int | None = None  #: the upstream's HTTP status, if it responded
    upstream_headers: Mapping[str, str] = field(default=NO_HEADERS, repr=False)  #: headers for the client

    async def fetch(self) -> int | ProviderFailed:
        """Return the count, or the failure as a value."""
        request = evolve(self.ask.request, model=self.model or self.ask.model, stream=None, stream_usage=None)
        opened = await open_answer(
            self.session, self.upstream, request, self.ask, self.client_headers, asked=self.asked, report=self.report
        )
        self.status, self.upstream_headers = opened.status, opened.upstream_headers
        if isinstance(opened.answer, ProviderFailed):
            return opened.answer
        try:
            return count_of(self.upstream, await whole_body(opened.answer, body_bytes=COUNT_BYTES))
        except StreamError as error:
            self.report.failed(error)
            return hidden(failure_from(error), opened.cut)


async def first_count(
    ask: Ask,
    counts: Iterable[Count],
    mode: CountTokens,
    fetch: Callable[[Count], Awaitable[int | ProviderFailed]] = Count.fetch,
) -> web.Response:
    """Return the first count that an upstream in ``counts`` gives, else an estimate, as a response to the client.

    Raises Refused if there is no count and ``mode`` allows no estimate: with ``not_found`` if no upstream can count, else with
    the last failure. Also raises Refused if an upstream says that the request itself is wrong.
    """
    failed, headers = no_count(ask.model), NO_HEADERS
    for count in counts:
        if mode == "off" or count.upstream.token_count is None:
            continue
        tokens = await fetch(count)
        if isinstance(tokens, int):
            return count_response(ask.dialect, tokens, count.upstream_headers)
        failed = as_gateway_failure(tokens, [count.upstream], count.client_headers)
        headers = count.upstream_headers
    if mode != "estimate" or (failed.type in _OF_THE_REQUEST and failed.code != UNFIT):
        raise Refused(failed, headers)
    found = await estimate(ask.request)
    return count_response(ask.dialect, found.tokens, found.headers)


def count_response(dialect: str, tokens: int, headers: Mapping[str, str] = NO_HEADERS) -> web.Response:
    """Return the response with a count for a client of ``dialect``. Raises UsageError for a dialect without token counts."""
    name = client_named(dialect)[0].name
    surface = surfaces().get(name)
    if surface is None or not surface.count:
        ask = ", ".join(name for name, surface in surfaces().items() if surface.count)
        raise UsageError(f"nobody asks for a count in {name}; {ask} have a path for it")
    body = orjson.dumps(surface.count_answer(tokens))
    return web.Response(body=body, content_type="application/json", headers=headers)
