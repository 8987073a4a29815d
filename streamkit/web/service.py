"""The paths of dialects' clients in an application, and the way of a request over them: what all servers have in common.

A request is read, and held while ``answer`` answers it; so is each message of a WebSocket. ``setup.py`` answers from one
upstream, ``gateway/app.py`` from the upstreams of a route.

Source: design.md §6, §8; clients.md §5.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import Final

from aiohttp import web

from streamkit.dialects.http import Operation, SocketForm
from streamkit.events import ProviderFailed
from streamkit.text.quoting import quoted
from streamkit.web.client_dialect import expected, in_dialect, no_socket, wants_socket
from streamkit.web.refusals import Refused
from streamkit.web.reply import FAILED
from streamkit.web.socket import SOCKETS, Message, Socket, SocketLimits
from streamkit.web.surfaces import Ask, aliases, read_ask, surface_of

log: Final = logging.getLogger("streamkit.web")


class Service(ABC):
    """Answers requests at the paths of dialects' clients."""

    #: What a client is told of a fault that nobody foresaw.
    failed: ProviderFailed = FAILED

    @abstractmethod
    async def answer(self, request: web.Request, ask: Ask, message: Message | None = None) -> web.StreamResponse:
        """Answer what is asked; by a ``message`` of a WebSocket, what is returned is not sent. Raises Refused."""

    @abstractmethod
    async def read_on(self, request: web.Request) -> web.StreamResponse | None:
        """The rest of the answer that a request names by an event's id; None: it asks for one. Raises Refused."""

    @abstractmethod
    def socket_limits(self, request: web.Request) -> SocketLimits:
        """The bounds of a WebSocket. Raises Refused where none is opened."""

    @abstractmethod
    def most_sockets(self, request: web.Request) -> int:
        """How many WebSockets may be open at once in the application."""

    @abstractmethod
    def check(self, request: web.Request) -> None:
        """Raise Refused for a request that is not to be read."""

    async def run_socket(self, request: web.Request, socket: Socket) -> web.StreamResponse:
        """Answer the messages of a WebSocket until it is closed."""
        return await socket.run(partial(self.answer_message, request))

    async def answer_message(self, request: web.Request, message: Message) -> Refused | None:
        """Answer a message of a WebSocket. Returns what it got in place of an answer."""
        refused = None
        with suppress(ConnectionError):
            try:
                self.check(request)
                await self.answer(request, await message.read(), message)
            except Refused as error:
                refused = error
            except Exception as error:  # noqa: BLE001 - whatever it is, the client gets its dialect's error
                self.log_fault(request, message, error)
                refused = Refused(self.failed)
            if refused is not None:
                await message.refuse(refused)
        return refused

    def log_fault(self, request: web.Request, _message: Message, error: Exception) -> None:
        """Log what nobody foresaw while a message was answered."""
        log.error("the answer to a message of %s failed", quoted(request.path), exc_info=error)

    def add_to(self, app: web.Application, clients: Iterable[str], *, prefix: str = "", misspelt: bool = False) -> None:
        """Add the paths of these dialects' clients, behind a prefix; ``misspelt``: also with a version too few or too many.

        Raises UsageError for a dialect that is not served.
        """
        for client in clients:
            surface = surface_of(client)
            for path, operation in {**surface.paths, **(aliases(surface) if misspelt else {})}.items():
                handle = in_dialect(partial(self._handle, client, operation))
                app.router.add_post(prefix + path, handle, expect_handler=expected)
                if surface.socket is not None and operation == "generate":
                    serve = in_dialect(partial(self._serve_socket, client, surface.socket))
                    app.router.add_get(prefix + path, serve, allow_head=False, expect_handler=expected)

    async def _handle(self, client: str, operation: Operation, request: web.Request) -> web.StreamResponse:
        self.check(request)
        if operation == "generate" and (rest := await self.read_on(request)) is not None:
            return rest
        ask = await read_ask(request, client, operation)
        with ask.hold:
            return await self.answer(request, ask)

    async def _serve_socket(self, client: str, form: SocketForm, request: web.Request) -> web.StreamResponse:
        """Answer ``GET`` at a path of answers: a WebSocket, or that there is none."""
        sockets = request.config_dict[SOCKETS]
        if not wants_socket(request):
            raise web.HTTPMethodNotAllowed(request.method, ["POST"])
        if len(sockets) >= self.most_sockets(request):
            raise no_socket(request)
        limits = self.socket_limits(request)
        socket = Socket(request, client, form, limits)
        sockets.add(socket)
        try:
            return await self.run_socket(request, socket)
        finally:
            sockets.discard(socket)
