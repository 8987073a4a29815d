"""What a reader is told of an answer that nobody will end: its dialect's own error, behind what there is of it.

The error goes on from what the client has: in Responses its number is above theirs and its id theirs, since openai-python
drops an error event with a lower number in silence, and an answer that broke off would look like one that is quiet.

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

#: What readers are told of an answer whose process died.
DIED: Final = "the process that made this answer is gone; ask again"


class Closer:
    """Follow a log as it is read, to end it as ``closing`` does; hold the state of the stream and none of its text."""

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
        """Return the bytes that must follow those that were fed; ``error`` None: the process died."""
        failed = error or SourceFailed(DIED)
        surface = self._dialect.http.surface
        if self._is_empty and self._is_array and surface is not None and surface.array is not None:
            return surface.array.error(failure_from(failed))
        return self._passing.closing(failed)


def closing(meta: Meta, written: bytes, error: StreamError | None = None) -> bytes:
    """What is to follow ``written``, all that there is of a log, so that clients see an answer that failed; never a success.

    ``error`` is what is told; None: that the process died. Nothing follows an error that is there, or an answer that is whole.
    """
    closer = Closer(meta)
    closer.feed(written)
    return closer.close(error)
