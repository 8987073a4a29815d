"""How a network cuts a stream into reads. Boundaries mean nothing, but their number costs time."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from itertools import pairwise

from benchmarks.content import SEED
from benchmarks.inputs import Input

KIB = 1024
#: How many events a read brought, and how often: all 1,481 reads of the twelve recordings of 40 reads or more that kept the
#: network's boundaries (public test fixtures of req_llm, from Azure, xAI, Groq and Anthropic).
RECORDED_EVENTS = {1: 1293, 2: 116, 3: 24, 4: 18, 5: 10, 6: 4, 7: 6, 8: 7, 12: 2}
#: Of those reads, the share that ended inside an event.
RECORDED_INSIDE = 42 / 1481
#: What ends an event of SSE, or a line of NDJSON.
END = re.compile(rb"\r?\n(?:\r?\n)?")


def at(body: bytes, places: list[int]) -> list[bytes]:
    return [body[a:b] for a, b in pairwise([0, *places, len(body)])]


def by_size(size: int) -> Callable[[Input], list[bytes]]:
    return lambda stream: [stream.body[place : place + size] for place in range(0, len(stream.body), size)]


def by_event(stream: Input) -> list[bytes]:
    """One event a read, its end included."""
    return at(stream.body, _ends(stream))


def as_recorded(stream: Input) -> list[bytes]:
    """Reads with as many events, and as often cut inside one, as in the recordings; seeded."""
    dice = random.Random(SEED)  # noqa: S311 - reproducible, nothing secret
    ends = _ends(stream)
    sizes = dice.choices(list(RECORDED_EVENTS), list(RECORDED_EVENTS.values()), k=len(ends))
    places, event = [], 0
    for size in sizes:
        event += size
        if event >= len(ends):
            break
        inside = dice.randrange(1, ends[event] - ends[event - 1]) if dice.random() < RECORDED_INSIDE else 0
        places.append(ends[event - 1] + inside)
    return at(stream.body, places)


def _ends(stream: Input) -> list[int]:
    """The byte behind each event but the last: behind its payload and what ends its frame."""
    ends, place = [], 0
    for payload, following in pairwise(stream.payloads):
        place = stream.body.index(payload, place) + len(payload)
        gap = END.search(stream.body, place, stream.body.index(following, place))
        ends.append(gap.end() if gap else place)
    return ends


CUTS: Mapping[str, Callable[[Input], list[bytes]]] = {
    "64 KiB": by_size(64 * KIB),
    "4 KiB": by_size(4 * KIB),
    "as recorded": as_recorded,
    "per event": by_event,
    "per byte": by_size(1),
}
