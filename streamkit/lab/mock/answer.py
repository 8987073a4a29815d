"""The mock's response to one request, as a value. Quirks change the value before the server sends it.

Source: observe.md O31.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from attrs import field, frozen

#: How the connection ends after the frames. ``whole``: the body ends as HTTP requires. ``cut``: the connection closes inside
#: the body. ``reset``: it is reset (RST) inside the body. ``stalled``: it stays open and silent until the client leaves.
AnswerEnd: TypeAlias = Literal["whole", "cut", "reset", "stalled"]


@frozen(kw_only=True)
class Answer:
    """The mock's response to one request, in ``dialect``.

    ``frames`` are the bytes of each frame of a stream in order, each with its terminator: an SSE event with its blank line, a
    comment, an NDJSON line, a binary message. They may be malformed. If the response is not ``streamed``, there is one frame,
    the whole body.
    """

    dialect: str
    frames: tuple[bytes, ...]
    content_type: str
    streamed: bool = True
    end: AnswerEnd = "whole"
    status: int = 200
    #: Headers in addition to Content-Type and those of HTTP's own framing.
    headers: Mapping[str, str] = field(factory=dict)
    #: Seconds of silence before the frame with this number; ``len(frames)`` means before the end. Larger numbers are ignored,
    #: so that code which removes frames need not renumber the waits.
    waits_s: Mapping[int, float] = field(factory=dict)

    @property
    def body(self) -> bytes:
        return b"".join(self.frames)
