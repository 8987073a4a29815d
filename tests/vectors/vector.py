"""What a vector is: a stream that we wrote, and what must come of it. One table, every driver."""

from __future__ import annotations

from collections.abc import Mapping

import orjson
from attrs import field, frozen


@frozen
class Call:
    name: str
    arguments: str
    verdict: str = "complete"
    id: str | None = None  #: None: any


@frozen(kw_only=True)
class Vector:
    """``stop`` is None for a stream without a clean end. ``losses`` are those of a translation into each dialect named."""

    name: str
    dialect: str
    body: bytes
    text: str = ""
    reasoning: str = ""
    refusal: str = ""
    calls: tuple[Call, ...] = ()
    stop: str | None = "stop"
    repairs: Mapping[str, int] = field(factory=dict)
    losses: Mapping[str, Mapping[str, int]] = field(factory=dict)
    fault: str | None = None  #: the class of the error that breaks the reading
    provider_error: str | None = None
    withheld: tuple[str, ...] = ()  #: argument texts that the report keeps when reading

    @property
    def clean(self) -> bool:
        return self.stop is not None


def sse(*payloads: object) -> bytes:
    """Each payload as a ``data:`` event: bytes as they are, other values as JSON."""
    return b"".join(b"data: %b\n\n" % (p if isinstance(p, bytes) else orjson.dumps(p)) for p in payloads)


def named(*payloads: Mapping[str, object]) -> bytes:
    """Each payload as an event named as its ``type``."""
    return b"".join(b"event: %b\ndata: %b\n\n" % (str(p["type"]).encode(), orjson.dumps(p)) for p in payloads)


def lines(*payloads: object) -> bytes:
    return b"".join((p if isinstance(p, bytes) else orjson.dumps(p)) + b"\n" for p in payloads)
