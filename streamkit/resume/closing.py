"""The error for readers of a response that its process can't end: an error in the client's dialect after the existing bytes.

The error must fit the bytes that the client has. In Responses it has the same response id and a higher sequence number:
openai-python silently drops an error event with a lower number, and an interrupted response would look like a silent one.

Source: resume.md §4.6, §6.4, §7.5.
"""

from __future__ import annotations

from typing import Final

from streamkit.dialects import client_named
from streamkit.dialects.profiles import Encoding
from streamkit.dialects.streams.event_encoder import failure_from
from streamkit.errors import SourceFailed, StreamError
from streamkit.policy import TOLERANT
from streamkit.report import StreamReport
from streamkit.resume.log import Meta
from streamkit.translation.pass_through import PassThrough

#: The error message for clients that read a response after the process that was producing it died.
DIED: Final = "the process that produced this response died; retry the request"


class Closer:
    """Follows a log while it is read, to end it as ``closing`` does. It holds the stream's state, but not its text."""

    def __init__(self, meta: Meta) -> None:
        self._dialect, profile = client_named(meta.dialect)
        self._is_array = meta.is_array
        self._is_empty = True
        self._passing = PassThrough(self._dialect, Encoding(profile=profile), TOLERANT, StreamReport())

    def feed(self, data: bytes) -> None:
        """Follow the next bytes of the log."""
        if data:
            self._is_empty = False
            self._passing.feed(data)

    def close(self, error: StreamError | None = None) -> bytes:
        """Return the bytes of an error that continues the fed bytes. ``error`` None: the process that wrote the log died."""
        failed = error or SourceFailed(DIED)
        surface = self._dialect.http.surface
        if self._is_empty and self._is_array and surface is not None and surface.array is not None:
            return surface.array.error(failure_from(failed))
        return self._passing.closing(failed)


def closing(meta: Meta, written: bytes, error: StreamError | None = None) -> bytes:
    """Return the bytes that end a failed response, so that clients do not take it for a success.

    ``written`` are all bytes of the log so far. ``error`` is reported to clients; None: the process died. The result is
    empty if ``written`` already has an error, or is a complete response.
    """
    closer = Closer(meta)
    closer.feed(written)
    return closer.close(error)
