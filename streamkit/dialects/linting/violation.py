"""A rule of a dialect's grammar that a stream breaks."""

from __future__ import annotations

from attrs import frozen


@frozen
class Violation:
    """A rule of the dialect that a stream breaks."""

    rule: str  #: short name, stable
    message: str
    offset: int  #: byte of the stream where the frame begins
    frame: int  #: number of the frame, from 0
    #: ``note``: common and read by every client we know; no reason to call the stream broken.
    severity: str = "error"
