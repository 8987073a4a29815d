"""Split the bytes of a recorded response into different reads than the recorded ones. A piece has the time of its last byte.

If a response has no dialect, such as a list of models, it cannot be split into events, and its reads stay as recorded.

Source: observe.md O27.
"""

from __future__ import annotations

import random
import re
from bisect import bisect_left
from itertools import accumulate
from typing import Final, Literal, TypeAlias

from attrs import frozen

from streamkit.detection import dialect_of
from streamkit.dialects import source_named
from streamkit.errors import NotThisDialect, UsageError
from streamkit.lab.recording import Read, Recording
from streamkit.limits import DEFAULT_LIMITS
from streamkit.report import StreamReport
from streamkit.testing.cuts import cut_at
from streamkit.text.quoting import quoted

Kind: TypeAlias = Literal["reads", "events", "bytes", "random"]
#: The longest piece of a random split, in bytes.
RANDOM_BYTES: Final = 64
_NUMBERED: Final = re.compile(r"(bytes|random)=([0-9]{1,9})")
_LINE: Final = re.compile(rb"[^\r\n]*+(?:\r\n|\r|\n|\Z)")


@frozen
class Cut:
    """How to split a response: into its recorded reads, after each event, into pieces of some bytes, or at random."""

    kind: Kind = "reads"
    number: int = 0  #: the size of each piece in bytes, or the seed of a random split


def cut_in(text: str) -> Cut:
    """Parse ``reads``, ``events``, ``bytes=N`` or ``random=SEED``. Raises UsageError for other text."""
    if text in {"reads", "events"}:
        return Cut("events" if text == "events" else "reads")
    found = _NUMBERED.fullmatch(text)
    if found is None or found[0] == "bytes=0":
        raise UsageError(f"an answer is cut by reads, events, bytes=N or random=SEED, not by {quoted(text)}")
    return Cut("bytes" if found[1] == "bytes" else "random", int(found[2]))


def cut_reads(recording: Recording, cut: Cut) -> list[Read]:
    """Return the reads of a recording, or its bytes split as ``cut`` says. Omit empty reads."""
    reads = [read for read in recording.reads if read.data]
    if cut.kind == "reads" or not reads:
        return reads
    body = recording.body
    ends = list(accumulate(len(read.data) for read in reads))
    if cut.kind == "events":
        try:
            dialect = recording.dialect or dialect_of(body)
        except NotThisDialect:
            return reads
        places = _event_ends(body, dialect)
    else:
        places = _places(len(body), cut)
    pieces = cut_at(body, places)
    return [
        Read(reads[bisect_left(ends, end)].t, piece)
        for piece, end in zip(pieces, accumulate(map(len, pieces)), strict=True)
    ]


def _places(size: int, cut: Cut) -> list[int]:
    if cut.kind == "bytes":
        return list(range(cut.number, size, cut.number))
    chosen = random.Random(cut.number)  # noqa: S311 - reproducible, nothing secret
    places, at = [], chosen.randint(1, RANDOM_BYTES)
    while at < size:
        places.append(at)
        at += chosen.randint(1, RANDOM_BYTES)
    return places


def _event_ends(body: bytes, dialect: str) -> list[int]:
    """Return the offsets after each frame and comment with its blank lines. Do not split after a parser's fault."""
    parser = source_named(dialect)[0].parser(DEFAULT_LIMITS, StreamReport())
    places: set[int] = set()
    for line in _LINE.findall(body):
        places.update(frame.offset for frame in parser.feed(line))
        places.add(parser.boundary)
        if parser.fault is not None:
            break
    return sorted(place for place in places if 0 < place < len(body) and body[place] not in b"\r\n")
