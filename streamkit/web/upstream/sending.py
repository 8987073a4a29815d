"""Send a request to an upstream, and read the responses that are errors.

Redirects are not followed, since the key would be sent there too. Proxies and ``.netrc`` of the environment are not used, and
cookies are not kept (limits.md T5, T6). An error of the transport becomes ``SourceFailed``, whose message names no host and no
key. Its cause is chained for logs, except if its ``repr`` shows the request's headers (``ClientResponseError``).

Nothing is retried here, except after an upstream had closed a kept connection (``connections.py``).

Source: design.md §6; limits.md §1, T5, T6, T9; seeds.md S3.
"""

from __future__ import annotations

import asyncio
import io
import math
from collections.abc import Mapping
from typing import Final

from aiohttp import (
    BaseConnector,
    ClientConnectorCertificateError,
    ClientConnectorDNSError,
    ClientConnectorError,
    ClientError,
    ClientResponse,
    ClientResponseError,
    ClientSession,
    ClientSSLError,
    ClientTimeout,
    ConnectionTimeoutError,
    DummyCookieJar,
    ServerDisconnectedError,
    WSServerHandshakeError,
)
from attrs import evolve
from yarl import URL

from streamkit.dialects.http import Operation
from streamkit.dialects.vocabulary.error_bodies import REDIRECTED
from streamkit.errors import ConnectTimeout, FirstByteTimeout, SourceFailed, TotalTimeout
from streamkit.events import ProviderFailed
from streamkit.http_errors import BODY_BYTES, decode_error
from streamkit.web.observers import CLIENT_LEFT, TIMEOUT, WHOLE, ExchangeRecording
from streamkit.web.source import READ_BYTES, Timeouts, because, is_reset
from streamkit.web.upstream.connections import Connector, sent_once_more
from streamkit.web.upstream.hiding import redactor
from streamkit.web.upstream.requests import NO_HEADERS, address, authorised, request_headers
from streamkit.web.upstream.value import Upstream

#: Limits on an upstream's headers: bytes of one line, and number of lines. Cookies may take 10 KiB and more.
HEADER_BYTES, HEADERS = 64 * 1024, 256
#: Seconds to wait for the body of an error. It has a few hundred bytes and arrives with its headers.
ERROR_BODY_S: Final = 10.0
#: Encodings that aiohttp decodes in bounded steps; the last two only if their libraries are installed.
_DECODED: Final = frozenset({"", "identity", "gzip", "deflate", "br", "zstd"})
#: The words for each type of connection error in a message that must not show the upstream's host. The first matching type
#: counts.
_BROKE: Final[tuple[tuple[type[Exception], str], ...]] = (
    (ClientConnectorCertificateError, "the upstream's certificate was not accepted"),
    (ClientSSLError, "no TLS connection to the upstream could be made"),
    (ClientConnectorDNSError, "the upstream's name could not be resolved"),
    (ClientConnectorError, "no connection to the upstream could be made"),
    (ServerDisconnectedError, "the upstream closed the connection before it answered"),
    (WSServerHandshakeError, "the upstream's answer opens no WebSocket as its protocol wants it"),
    (ClientResponseError, "the upstream's answer is no HTTP that can be read"),
)


def client_session(*, connector: BaseConnector | None = None, decompress: bool = True) -> ClientSession:
    """Return a session for ``send``; the caller closes it. Call this in the event loop that will use the session.

    Without ``decompress``, response bodies are read as they were sent.
    """
    return ClientSession(
        connector=connector if connector is not None else Connector(),
        cookie_jar=DummyCookieJar(),
        timeout=ClientTimeout(total=None),
        trust_env=False,
        auto_decompress=decompress,
        raise_for_status=False,
        read_bufsize=READ_BYTES,
        max_line_size=HEADER_BYTES,
        max_field_size=HEADER_BYTES,
        max_headers=HEADERS,
    )


async def send(
    session: ClientSession,
    upstream: Upstream,
    body: bytes,
    *,
    model: str,
    stream: bool,
    operation: Operation = "generate",
    client_dialect: str = "",
    client_headers: Mapping[str, str] = NO_HEADERS,
    features: Mapping[str, str] = NO_HEADERS,
    trace_headers: Mapping[str, str] = NO_HEADERS,
    recording: ExchangeRecording | None = None,
) -> ClientResponse:
    """Post ``body`` and return the response, whatever its status, with its body unread. The caller closes it.

    ``model`` is the upstream's name for the model. ``features`` and ``trace_headers`` are those of ``request_headers``.
    ``recording`` records the request and the response's headers; it records the end only if the response is refused here.
    Raises SourceFailed, ConnectTimeout, FirstByteTimeout (no headers within ``first_byte_s``) and TotalTimeout. Raises
    BadRequest if the model's name or a client's header can't be sent, and UsageError for a count that the dialect does not
    have. Cancelling the call closes the connection.
    """
    url = address(upstream, model, stream=stream, operation=operation)
    asks_stream = stream and operation == "generate"
    headers = request_headers(
        upstream, client_dialect, client_headers, stream=asks_stream, features=features, trace_headers=trace_headers
    )
    headers = await authorised(upstream, "POST", url, headers, body)
    if recording is not None:
        recording.request("POST", URL(url, encoded=True).raw_path_qs, headers.items(), body)
    response = await _post(session, upstream, url, headers, body)
    encoding = response.headers.get("content-encoding", "").lower()
    if recording is not None:
        recording.response(response.status, _of_decoded(response, encoding))
    if response.status == 200 and encoding not in _DECODED:
        response.close()
        if recording is not None:
            recording.end(CLIENT_LEFT)
        raise SourceFailed("the upstream's answer is compressed in a way that nobody asked for")
    return response


def _of_decoded(response: ClientResponse, encoding: str) -> list[tuple[str, str]]:
    """Return the response's headers, without those that describe the compression if aiohttp has decoded the body."""
    undone = {"content-encoding", "content-length"} if encoding in _DECODED - {"", "identity"} else set()
    return [(name, value) for name, value in response.headers.items() if name.lower() not in undone]


def not_answered(error: ClientError | OSError, times: Timeouts) -> SourceFailed:
    """Return why a request got no response: a timer that ran out, or an error of the transport."""
    if not isinstance(error, TimeoutError):
        return failed_transport(error)
    late: SourceFailed
    if isinstance(error, ConnectionTimeoutError):
        late = ConnectTimeout(times.connect_s)
    elif times.total_s is None or times.first_byte_s <= times.total_s:
        late = FirstByteTimeout(times.first_byte_s)
    else:
        late = TotalTimeout(times.total_s)
    late.__cause__ = error
    return late


async def _post(
    session: ClientSession, upstream: Upstream, url: str, headers: Mapping[str, str], body: bytes
) -> ClientResponse:
    times = upstream.timeouts
    total_s = math.inf if times.total_s is None else times.total_s

    async def post() -> ClientResponse:
        return await session.post(
            URL(url, encoded=True),  # yarl must not decode what it thinks needs no encoding: `%3A` in an ARN
            # as a file, which aiohttp sends in pieces: sending more than 1 MiB as bytes blocks the event loop
            data=io.BytesIO(body),
            headers=headers,
            allow_redirects=False,
            timeout=ClientTimeout(total=None, connect=times.connect_s),
        )

    try:
        async with asyncio.timeout(min(times.first_byte_s, total_s)):
            return await sent_once_more(post)
    except (ClientError, OSError) as error:
        failed = not_answered(error, times)
    raise failed  # outside of ``except``: the error's context would show the request's headers


def failed_transport(error: Exception) -> SourceFailed:
    """Return an error of the transport without host and key. Its cause is chained if the cause shows no key either."""
    found = (words for kind, words in _BROKE if isinstance(error, kind))
    failed = SourceFailed(because(next(found, "the connection to the upstream broke"), error))
    failed.__cause__ = error.__cause__ if isinstance(error, ClientResponseError) else error
    return failed


async def error_of(
    response: ClientResponse, source: Upstream | str, *, recording: ExchangeRecording | None = None
) -> ProviderFailed:
    """Return the error in a response whose status is not 200, and close the response.

    At most 64 KiB of the body are read, for at most 10 seconds. ``source`` is the upstream, whose keys are then removed from
    the error, or the name of its dialect. ``recording`` records the body. Raises UsageError for an unknown name.
    """
    body, whole = await _beginning(response, recording)
    if isinstance(source, Upstream):
        hidden = redactor([source], response.request_info.headers)(body.decode("utf-8", "surrogateescape"))
        body, source = hidden.encode("utf-8", "surrogateescape"), source.dialect
    failed = decode_error(response.status, body, source, response.headers)
    if 300 <= response.status < 400:
        # The message omits the location: it may have secrets, and clients may not know hosts. The operator can look it up.
        message = (
            f"the upstream answered with a redirect (status {response.status}), and redirects are not followed; "
            "the gateway's base_url for it has to be corrected: https for http, another host or path"
        )
        return evolve(failed, type="server", message=message, code=REDIRECTED, vendor="", raw=None)
    return failed if whole else evolve(failed, message=f"{failed.message} (the rest of its body did not arrive)")


async def _beginning(response: ClientResponse, recording: ExchangeRecording | None) -> tuple[bytes, bool]:
    """Return at most 64 KiB of a body and one byte, which shows that it is longer; and whether no error occurred."""
    body = bytearray()
    whole, end = True, CLIENT_LEFT
    try:
        async with asyncio.timeout(ERROR_BODY_S):
            async for chunk in response.content.iter_any():
                body += chunk
                if recording is not None:
                    recording.read(chunk)
                if len(body) > BODY_BYTES:
                    break
            else:
                end = WHOLE
    except (ClientError, OSError) as error:
        # or a timeout; the body is incomplete, but the status, which says most, has arrived
        whole = False
        end = f"{TIMEOUT}idle" if isinstance(error, TimeoutError) else "reset" if is_reset(error) else "cut"
    finally:
        response.close()
        if recording is not None:
            recording.end(end)
    return bytes(body[: BODY_BYTES + 1]), whole
