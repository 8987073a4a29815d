"""Connections to upstreams, and a second attempt on a new connection if the upstream had closed a kept one.

A server closes a connection that was idle for some seconds. A request may be on its way at that moment: it fails before any
byte of a response arrives, although the server works and never read the request. Such a request is sent once more, at once, on
a new connection (RFC 9112 §9.3.1). This applies only to connections that were used before: if a new connection closes without
a response, the request has failed.

Source: RFC 9112 §9.3.1, §9.5; clients.md §10.9.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from functools import partial
from typing import Final, TypeVar

from aiohttp import ClientConnectionError, ClientRequest, ClientTimeout, TCPConnector
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.tracing import Trace
from attrs import define

T = TypeVar("T")


class _Protocol(ResponseHandler):
    """A connection that counts its requests and notes whether any bytes arrived since the last one."""

    requests = 0
    has_response = False

    def data_received(self, data: bytes) -> None:
        self.has_response = True
        super().data_received(data)


def _protocol(loop: asyncio.AbstractEventLoop) -> ResponseHandler:
    return _Protocol(loop)


@define
class _Use:
    """The connection that a request uses."""

    is_new: bool = False  #: whether the connection must be new, not one that served an earlier request
    protocol: _Protocol | None = None

    @property
    def was_closed(self) -> bool:
        """Return whether the upstream may have closed the connection before it read the request."""
        used = self.protocol
        return used is not None and used.requests > 1 and not used.has_response


_USE: Final[ContextVar[_Use | None]] = ContextVar("streamkit-connection", default=None)


class Connector(TCPConnector):
    """A connector without a limit on connections, since each open stream holds one: limit streams instead."""

    def __init__(self) -> None:
        super().__init__(limit=0)
        self._factory = partial(_protocol, self._loop)

    async def connect(
        self,
        req: ClientRequest,
        traces: list[Trace],
        timeout: ClientTimeout,  # noqa: ASYNC109 - aiohttp's own name
    ) -> Connection:
        """Return a connection as aiohttp does. If the request needs a new one, skip connections that were used before."""
        use = _USE.get() or _Use()
        kept: list[Connection] = []
        try:
            while True:
                connection = await super().connect(req, traces, timeout)
                used = connection.protocol
                if not (use.is_new and isinstance(used, _Protocol) and used.requests):
                    break
                kept.append(connection)
        finally:
            for each in kept:
                each.release()
        if isinstance(used, _Protocol):
            used.requests, used.has_response, use.protocol = used.requests + 1, False, used
        return connection


async def sent_once_more(send: Callable[[], Awaitable[T]]) -> T:
    """Return the result of ``send``; call ``send`` again if the upstream had closed a kept connection of ``Connector``."""
    use = _Use()
    reset = _USE.set(use)
    try:
        try:
            return await send()
        except ClientConnectionError:
            if not use.was_closed:
                raise
        use.is_new = True
        return await send()
    finally:
        _USE.reset(reset)
