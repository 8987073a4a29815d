"""Responses of HTTP libraries as sources, and the words for a connection that fails.

``iter_httpx`` is for httpx, and for the SDKs that are built on it; aiohttp's responses have ``streamkit.web.iter_upstream``.
No HTTP library is imported. A source yields bytes as the network delivered them. Closing the source closes the response. An
error of the transport becomes ``SourceFailed``, so that encoders can report it in the client's dialect. Its message has the
operating system's text (``Connection refused``). The cause is chained, but not shown to clients, since it may name hosts.
"""

from __future__ import annotations

import os
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

from streamkit.errors import SourceFailed, UsageError

BROKE = "the connection to the upstream broke"


def iter_httpx(response: Any) -> HTTPXSource:
    """Return the body of a streamed response from httpx or httpx2 as a source of bytes.

    For a ``response`` from ``AsyncClient.stream``, iterate over the source with ``async for``, or pass the source to
    ``transcode`` or another pipe. For a ``response`` from ``Client.stream``, iterate over the source with ``for``, or
    pass the source to ``transcode_sync``. A response from an SDK that is built on httpx works too, such as one from
    ``with_streaming_response`` in ``openai`` and ``anthropic``. Raises UsageError for any other object.

    Reading raises SourceFailed if httpx raises RequestError, for example because the connection broke, a time-out
    expired, or the body can't be decompressed. Closing the source closes the response and its connection.
    ``iter_httpx`` does not check the response's HTTP status.
    """
    return HTTPXSource(response)


class HTTPXSource:
    """The source that ``iter_httpx`` makes."""

    def __init__(self, response: Any) -> None:
        self._response = getattr(response, "http_response", response)  # an SDK's response has httpx's own
        self._failures = _failures(self._response)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with self._failing():
            async for chunk in self._response.aiter_bytes():
                yield chunk

    def __iter__(self) -> Iterator[bytes]:
        with self._failing():
            yield from self._response.iter_bytes()

    async def aclose(self) -> None:
        await self._response.aclose()

    def close(self) -> None:
        self._response.close()

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except self._failures as error:
            raise broken(error) from error


def _failures(response: object) -> type[Exception]:
    """Return the class of the errors that reading ``response`` raises."""
    for kind in type(response).__mro__:
        library = sys.modules.get(kind.__module__.partition(".")[0])
        if kind.__name__ == "Response" and hasattr(library, "RequestError"):
            failures: type[Exception] = library.RequestError  # type: ignore[union-attr]
            return failures
    raise UsageError(
        f"iter_httpx takes a streamed response of httpx, not {type(response).__name__}; "
        "for a response of aiohttp, use streamkit.web.iter_upstream"
    )


def broken(error: BaseException | None) -> SourceFailed:
    """Return the failure of a source whose connection broke with ``error``."""
    failed = SourceFailed(because(BROKE, error))
    failed.is_reset = is_reset(error)
    return failed


def because(words: str, error: BaseException | None) -> str:
    """Return ``words`` and the reason that the operating system or TLS gives for ``error``.

    The reason contains no host, no path and nothing that was received.
    """
    reason = next(filter(None, map(_reason, causes(error))), "")
    return f"{words}: {reason}" if reason else words


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and the errors that caused it."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        wrapped = getattr(error, "certificate_error", None) or getattr(error, "os_error", None)
        error = wrapped or error.__cause__ or error.__context__


def _reason(error: BaseException) -> str:
    if isinstance(error, ssl.SSLError):
        # the name of an OpenSSL error, because its number is not an errno
        return str(getattr(error, "reason", None) or "")
    if isinstance(error, socket.gaierror):
        return error.strerror or ""
    number = error.errno if isinstance(error, OSError) else None
    return os.strerror(number) if isinstance(number, int) and number > 0 else ""


def is_reset(error: BaseException | None) -> bool:
    """Return whether the other side reset the connection, according to ``error`` or an error that caused it."""
    return any(isinstance(each, ConnectionResetError | BrokenPipeError) for each in causes(error))
