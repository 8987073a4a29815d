"""The paths of dialects' clients in an application, and how a request on them is processed: the part that all servers share.

A request is read, and its memory is held while ``answer`` responds to it; the same happens for each message of a WebSocket.
``setup.py`` responds from one upstream, ``gateway/app.py`` from the upstreams of a route.

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
from streamkit.errors import UsageError
from streamkit.events import ProviderFailed
from streamkit.text.quoting import quoted
from streamkit.web.client_dialect import expected, in_dialect, no_socket, wants_socket
from streamkit.web.refusals import Refused
from streamkit.web.reply import FAILED
from streamkit.web.socket import SOCKETS, Message, Socket, SocketLimits
from streamkit.web.surfaces import Ask, aliases, read_ask, surface_of

log: Final = logging.getLogger("streamkit.web")


class Service(ABC):
    """Responds to requests on the paths of dialects' clients."""

    failed: ProviderFailed = FAILED  #: the error that a client gets after an unexpected exception

    @abstractmethod
    async def answer(self, request: web.Request, ask: Ask, message: Message | None = None) -> web.StreamResponse:
        """Return the response to ``ask``. For a ``message`` of a WebSocket, the returned value is not sent. Raises Refused."""

    @abstractmethod
    async def read_on(self, request: web.Request) -> web.StreamResponse | None:
        """Return the rest of the response that the request resumes by event id; None: it is a new request. Raises Refused."""

    @abstractmethod
    def socket_limits(self, request: web.Request) -> SocketLimits:
        """Return the limits of a WebSocket. Raises Refused if none may be opened."""

    @abstractmethod
    def most_sockets(self, request: web.Request) -> int:
        """Return how many WebSockets may be open at once in the application."""

    @abstractmethod
    def check(self, request: web.Request) -> None:
        """Raise Refused if the request must not be read."""

    async def run_socket(self, request: web.Request, socket: Socket) -> web.StreamResponse:
        """Respond to the messages of a WebSocket until it is closed."""
        return await socket.run(partial(self.answer_message, request))

    async def answer_message(self, request: web.Request, message: Message) -> Refused | None:
        """Respond to a message of a WebSocket. Return the error that the client got instead of a response, or None."""
        refused = None
        with suppress(ConnectionError):
            try:
                self.check(request)
                await self.answer(request, await message.read(), message)
            except Refused as error:
                refused = error.with_traceback(None)  # its frames reference the message, and this one
            except Exception as error:  # noqa: BLE001 - the client gets any exception as its dialect's error
                self.log_fault(request, message, error)
                refused = Refused(self.failed)
            if refused is not None:
                await message.refuse(refused)
        return refused

    def log_fault(self, request: web.Request, _message: Message, error: Exception) -> None:
        """Log an unexpected exception during a message."""
        log.error("the response to a message on %s failed", quoted(request.path), exc_info=error)

    def add_to(self, app: web.Application, clients: Iterable[str], *, prefix: str = "", misspelt: bool = False) -> None:
        """Add the paths of these dialects' clients after ``prefix``. ``misspelt``: also the paths of mistyped base URLs.

        Raises UsageError for a dialect that is not served.
        """
        if isinstance(clients, str):
            raise UsageError(f"clients: must be a list of dialects; write [{quoted(clients)}]")
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
        """Respond to ``GET`` on a path for generations: open a WebSocket, or refuse one."""
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
