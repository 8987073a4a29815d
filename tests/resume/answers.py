"""What stands in the logs of answers: every stream there is, as clients of each dialect get it, and where its frames end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from attrs import frozen

from streamkit.dialects import DIALECTS
from streamkit.limits import DEFAULT_LIMITS
from streamkit.resume import Meta
from streamkit.web.surfaces import surfaces
from tests.laws.running import Stream, translate

CLIENTS: Final = list(surfaces())
ARRAY: Final = surfaces()["gemini"].array
EVENT_END: Final = re.compile(rb"(?>\r\n|\n|\r)(?:\r\n|\n|\r)")


@frozen
class Answer:
    """The bytes that a client got, in frames."""

    meta: Meta
    frames: list[bytes]

    @property
    def client(self) -> str:
        return self.meta.dialect

    @property
    def body(self) -> bytes:
        return b"".join(self.frames)

    @property
    def ends(self) -> list[int]:
        """Where a frame ends, and the beginning."""
        ends = [0]
        for frame in self.frames:
            ends.append(ends[-1] + len(frame))
        return ends

    def __str__(self) -> str:
        return f"{self.client}{', an array' if self.meta.is_array else ''}"


def answers_of(stream: Stream, client: str) -> Iterator[Answer]:
    """A stream as a client gets it: written in its dialect, as it came where it is its own, and as an array."""
    for passing in (False, True) if client == stream.dialect else (False,):
        body, _ = translate(stream.dialect, client, [stream.body], passing=passing)
        frames = frames_of(client, body)
        yield Answer(Meta(dialect=client, media_type=DIALECTS[client].media_type), frames)
        if client == "gemini":
            yield Answer(Meta(dialect=client, media_type="application/json", is_array=True), elements_of(frames))


def frames_of(client: str, body: bytes) -> list[bytes]:
    line_end = EVENT_END if DIALECTS[client].media_type == "text/event-stream" else re.compile(rb"\n")
    ends = [match.end() for match in line_end.finditer(body)]
    return [piece for begin, end in zip([0, *ends], [*ends, len(body)], strict=True) if (piece := body[begin:end])]


def elements_of(frames: list[bytes]) -> list[bytes]:
    assert ARRAY is not None
    writer = ARRAY.writer(DEFAULT_LIMITS)
    return [piece for piece in [*map(writer.feed, frames), writer.finish()] if piece]
