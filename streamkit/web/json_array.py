"""A stream as one JSON array, for clients that request this form. The dialect defines the array (``Surface.array``)."""

from __future__ import annotations

from streamkit.dialects.http import ArrayForm
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.pipeline import Pipe, Stage, pipe


def events_to_array(form: ArrayForm, *, limits: Limits = DEFAULT_LIMITS) -> Stage[bytes, bytes]:
    """Return a stage that converts the dialect's stream, in whole frames, to one JSON array.

    Raises BrokenFrame for a frame that the stream's end truncated, and LimitExceeded.
    """
    return Stage("events to array", lambda _report: form.writer(limits), takes="bytes", gives="bytes")


def as_array(stream: Pipe[bytes], form: ArrayForm) -> Pipe[bytes]:
    """Return a pipe that yields ``stream`` as an array. Enter it instead of ``stream``; it has the same report."""
    return pipe(Entered(stream), events_to_array(form), report=stream.report)


class Entered:
    """Makes a pipe the source of another pipe. It enters the pipe at the first read, and leaves it when it is closed."""

    def __init__(self, stream: Pipe[bytes]) -> None:
        self._stream = stream
        self._entered = False

    def __aiter__(self) -> Entered:
        return self

    async def __anext__(self) -> bytes:
        if not self._entered:
            self._entered = True
            await self._stream.__aenter__()
        return await anext(self._stream)

    async def aclose(self) -> None:
        await self._stream.__aexit__()
