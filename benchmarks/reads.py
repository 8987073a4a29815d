"""How a network cuts a stream into reads. Boundaries mean nothing, but their number costs time."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import pairwise

from benchmarks.inputs import Input

KIB = 1024
#: What ends an event of SSE, or a line of NDJSON.
END = re.compile(rb"\r?\n(?:\r?\n)?")


def by_size(size: int) -> Callable[[Input], list[bytes]]:
    return lambda stream: [stream.body[place : place + size] for place in range(0, len(stream.body), size)]


def by_event(stream: Input) -> list[bytes]:
    """One event a read, its end included: so most reads of recordings are that kept the network's boundaries."""
    ends, place = [0], 0
    for payload, following in pairwise(stream.payloads):
        place = stream.body.index(payload, place) + len(payload)
        gap = END.search(stream.body, place, stream.body.index(following, place))
        ends.append(gap.end() if gap else place)
    return [stream.body[start:end] for start, end in pairwise([*ends, len(stream.body)])]


CUTS: Mapping[str, Callable[[Input], list[bytes]]] = {"64 KiB": by_size(64 * KIB), "per event": by_event}
