"""Compactions on request: an upstream of the client's dialect replaces a conversation with a shorter one.

Only its maker can read a compaction, so the upstream's response is passed on byte for byte, and upstreams of other dialects
are not asked. Clients that can do without this path get a compaction from more upstreams, as an item of a response.

Source: dialects.md §2.3; openai 3.57 ``CompactedResponse``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from aiohttp import web
from attrs import define

from streamkit.events import ProviderFailed
from streamkit.web.refusals import Refused, shown
from streamkit.web.side_requests import SideRequest
from streamkit.web.source import ANSWER_BYTES
from streamkit.web.surfaces import Ask, surface_of
from streamkit.web.upstream.requests import NO_HEADERS, as_gateway_failure, compact_at


@define
class Compaction(SideRequest[bytes]):
    """One compaction by an upstream that has a path for it."""

    body_bytes = ANSWER_BYTES

    @property
    def can_be_asked(self) -> bool:
        return self.upstream.compacting is not None and self.upstream.wire.name == self.ask.dialect

    def read(self, body: bytes) -> bytes:
        self.report.usage = compact_at(self.upstream).usage(body)
        return body


async def first_compaction(
    ask: Ask,
    compactions: Iterable[Compaction],
    fetch: Callable[[Compaction], Awaitable[bytes | ProviderFailed]] = Compaction.fetch,
) -> web.Response:
    """Return the first compaction that an upstream in ``compactions`` makes, as a response to the client.

    Raises Refused with the last failure; with 404 and what to send instead if no upstream has a path for compactions.
    """
    instead = surface_of(ask.dialect).compact_instead
    message = f"no upstream of the model {shown(ask.model)} compacts at this path; {instead}"
    failed, headers = ProviderFailed("not_found", message, code="not_found"), NO_HEADERS
    for compaction in compactions:
        if not compaction.can_be_asked:
            continue
        body = await fetch(compaction)
        if isinstance(body, bytes):
            return web.Response(body=body, content_type="application/json", headers=compaction.upstream_headers)
        failed = as_gateway_failure(body, [compaction.upstream], compaction.client_headers)
        headers = compaction.upstream_headers
    raise Refused(failed, headers)
