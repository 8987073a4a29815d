"""What the mock sends to one request, before a byte of it is sent: a value, which quirks change and the server writes.

Source: observe.md O31.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from attrs import field, frozen

#: How the connection ends behind the frames. ``whole``: the body ends as HTTP says. ``cut``: the connection closes inside the
#: body. ``reset``: it is reset (RST) there. ``stalled``: it stays open and silent until the client leaves.
AnswerEnd: TypeAlias = Literal["whole", "cut", "reset", "stalled"]


@frozen(kw_only=True)
class Answer:
    """One answer of ``dialect``.

    ``frames`` are the bytes of each frame of a stream in order, each with what ends it: an SSE event with its blank line, a
    comment, an NDJSON line, a binary message. They need not be well formed. Where the answer is not ``streamed`` there is one
    frame, the whole body.
    """

    dialect: str
    frames: tuple[bytes, ...]
    content_type: str
    streamed: bool = True
    end: AnswerEnd = "whole"
    status: int = 200
    #: Headers beside Content-Type and those of HTTP's own framing.
    headers: Mapping[str, str] = field(factory=dict)
    #: Seconds of silence before the frame of that number; at ``len(frames)``, before the end. Numbers beyond it mean nothing,
    #: so that who leaves frames out need not renumber them.
    waits_s: Mapping[int, float] = field(factory=dict)

    @property
    def body(self) -> bytes:
        return b"".join(self.frames)
