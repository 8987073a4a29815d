"""Connections of clients, and the errors for requests that aiohttp refuses before a handler sees them.

Requests that providers accept are accepted here: with a key or cookies of 20 KiB, or with two ``User-Agent`` lines. Other
faulty requests are refused in the dialect of their path. Header values may be keys, so no response and no log shows them.

Source: clients.md §10.10; limits.md T6, T7, T8; RFC 9112 §3, §6.3; RFC 6585 §5.
"""

from __future__ import annotations

import logging
import re
from typing import Any, Final, TypeAlias
from urllib.parse import unquote_to_bytes

from aiohttp import hdrs, web
from aiohttp.http import HttpRequestParser, RawRequestMessage
from aiohttp.http_exceptions import HttpProcessingError, InvalidHeader, InvalidURLError, LineTooLong
from aiohttp.streams import StreamReader
from multidict import CIMultiDict

from streamkit.text.redact import excerpt
from streamkit.web.client_dialect import dialect_of
from streamkit.web.refusals import error_response, with_status

log = logging.getLogger("streamkit.web")
#: What aiohttp's parser returns: requests, whether the connection changes its protocol, and the unparsed rest.
_Fed: TypeAlias = tuple[list[tuple[RawRequestMessage, StreamReader]], bool, bytes]

#: The longest line of a request's head.
LINE_BYTES: Final = 64 * 1024
#: The largest head of a request. Providers' networks allow 32 to 128 KiB.
HEAD_BYTES: Final = 128 * 1024
#: The most headers of a request.
HEADERS: Final = 256
#: If a request can't be parsed: how many bytes are searched for its path, which tells the client's dialect.
PATH_BYTES: Final = 2048
#: The value of the response header ``Server``.
SERVER: Final = "streamkit"
#: Headers that should occur once. A request that repeats one is accepted, since these headers affect neither where the request
#: ends nor which host it is for.
_HARMLESS: Final = frozenset({b"content-type", b"etag", b"max-forwards", b"server", b"user-agent"})
#: Matches a request line: method, and path without host and query.
_REQUEST_LINE: Final = re.compile(rb"([!-~]{1,20}) (?:https?://[^/?# ]*)?([^?# ]*)")
#: Matches the parser's constant error texts. A text with other characters may repeat bytes of the client's request.
_FAULT: Final = re.compile(r"[A-Za-z`' /-]{1,80}\.?")
#: Matches a response's id in a path. The log omits the id, because anyone with the id can read the response (resume.md §13.3).
_ID: Final = re.compile(r"(/streams/|/responses/).*", re.DOTALL)


class UnreadableRequest(HttpProcessingError):
    """A request that can't be parsed: its method, path, header names without values, and the reason."""

    def __init__(self, head: bytes, error: HttpProcessingError) -> None:
        first, _, rest = head.partition(b"\r\n")
        found = _REQUEST_LINE.match(first)
        self.method, path = (found[1].decode(), found[2]) if found else ("", b"/")
        self.path = unquote_to_bytes(path[:PATH_BYTES]).decode("utf-8", "replace")
        lines = rest.partition(b"\r\n\r\n")[0].split(b"\r\n")
        self.sent = CIMultiDict((line.partition(b":")[0].decode("latin-1"), "") for line in lines)
        status, self.reason = _why(len(first), error)
        super().__init__(code=status, message=f"the request can't be read: {self.reason}")


def _why(first_line_bytes: int, error: HttpProcessingError) -> tuple[int, str]:
    """Return the HTTP status and the reason for a parser's error. The reason contains no value from the request."""
    if isinstance(error, LineTooLong) and first_line_bytes > LINE_BYTES:
        return 414, f"its address has more than {LINE_BYTES:,} bytes"
    if isinstance(error, LineTooLong):
        return 431, f"a header has more than {LINE_BYTES:,} bytes, or all together have more than {HEAD_BYTES:,}"
    fault = error.message.partition("\n\n")[0].rpartition("\n")[2].strip().rstrip(":")
    if fault.startswith("Too many headers"):
        return 431, f"it has more than {HEADERS} headers"
    if isinstance(error, InvalidHeader):
        return 400, "a header has a name or a value that is invalid"
    if isinstance(error, InvalidURLError):
        return 400, "its address has an invalid character"
    return 400, fault.rstrip(".") if _FAULT.fullmatch(fault) else "it is not HTTP"


class _Parser(HttpRequestParser):
    """aiohttp's parser, except that it accepts repeated harmless headers and raises ``UnreadableRequest``."""

    def __init__(self, connection: ClientConnection, *settings: Any, **limits: Any) -> None:
        self._connection, self._settings, self._limits = connection, settings, limits
        self._head = bytearray()  #: the bytes of the arriving request's head
        self._body: StreamReader | None = None  #: the last request's body
        super().__init__(connection, *settings, **limits)

    def feed_data(self, data: bytes, *_: Any) -> _Fed:
        if self._body is not None and not self._body.is_eof():
            return self._feed_body(data, self._body)
        self._head += data
        try:
            try:
                found = super().feed_data(data)
            except HttpProcessingError:
                fixed = _without_repeats(bytes(self._head))
                if fixed is None:
                    raise
                self._head[:] = fixed
                super().__init__(self._connection, *self._settings, **self._limits)
                found = super().feed_data(fixed)
            end = self._head.find(b"\r\n\r\n")
            if (len(self._head) if end < 0 else end) > HEAD_BYTES:
                raise LineTooLong(b"", HEAD_BYTES)
        except HttpProcessingError as error:
            raise UnreadableRequest(bytes(self._head), error) from None
        if found[0]:
            self._head.clear()
            self._body = found[0][-1][1]
        return found

    def _feed_body(self, data: bytes, body: StreamReader) -> _Fed:
        """Parse a body's bytes. If they are broken, the handler gets the error; aiohttp would write a second response."""
        try:
            return super().feed_data(data)
        except HttpProcessingError as error:
            body.set_exception(web.RequestPayloadError(_why(0, error)[1]))
            self._connection.close()
            return [], False, b""


def _without_repeats(head: bytes) -> bytes | None:
    """Return the bytes of a request with one line for each harmless header; None if no such header is repeated."""
    first, *lines = head.partition(b"\r\n\r\n")[0].split(b"\r\n")
    rest = head[len(first) + sum(len(line) + 2 for line in lines) :]
    if not rest and lines:  # the last line is incomplete
        rest = b"\r\n" + lines.pop()
    kept, places = [first], dict[bytes, int]()
    for line in lines:
        name, _, value = line.partition(b":")
        name = name.lower()
        if name not in _HARMLESS or name not in places:
            places[name] = len(kept)
            kept.append(line)
        elif name == b"user-agent":
            kept[places[name]] += b" " + value.strip()
    return b"\r\n".join(kept) + rest if len(kept) <= len(lines) else None


class ClientConnection(web.RequestHandler):
    """A client connection with the limits of providers. It refuses an unreadable request in the dialect of its path."""

    __slots__ = ()

    def __init__(self, manager: web.Server, *, idle_s: float, decompress: bool) -> None:
        loop = manager._loop  # noqa: SLF001 - the server's connection factory reads it too
        # without aiohttp's log of requests: the gateway writes its log lines itself
        super().__init__(manager, loop=loop, keepalive_timeout=idle_s, access_log=None)  # type: ignore[arg-type]
        self._parser = _Parser(
            self,
            loop,
            self._read_bufsize,
            max_line_size=LINE_BYTES,
            max_field_size=LINE_BYTES,
            max_headers=HEADERS,
            payload_exception=web.RequestPayloadError,
            auto_decompress=decompress,
            max_msg_queue_size=self._max_msg_queue_size,
        )

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """Write an error as aiohttp does; for an unreadable request, write it in the dialect of the path."""
        if not isinstance(exc, UnreadableRequest):
            response = super().handle_error(request, status, exc, message)
        else:
            path = _ID.sub(r"\1…", excerpt(exc.path, PATH_BYTES))
            fields = {"method": exc.method, "path": path, "status": exc.code, "error": exc.reason}
            log.info("a request can't be read", extra={"fields": fields})
            dialect = dialect_of(exc.path, exc.sent)
            response = error_response(with_status("invalid_request", exc.message, exc.code, dialect), dialect)
            response.force_close()
        response.headers[hdrs.SERVER] = SERVER
        return response

    def log_exception(self, *args: Any, **kwargs: Any) -> None:
        """Log as aiohttp does, except broken bodies: their handlers get the error."""
        if not isinstance(kwargs.get("exc_info"), web.RequestPayloadError):
            super().log_exception(*args, **kwargs)
