"""What the upstream plays: recordings as the network cut them, and our own vectors."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from functools import cache
from itertools import islice
from typing import Final

from attrs import frozen

from streamkit.dialects import DIALECTS
from streamkit.testing import cut_at
from tests import corpora
from tests.vectors import VECTORS
from tests.vectors.vector import Vector
from tests.web.evil import Delay, Script, Send, Step
from tests.web.faults import END_OF_CHUNKS, chunk, head

SEED: Final = 20_261_121
#: Where a recording did not keep the reads of the network: so many cuts at most.
CUTS: Final = 8
SHORT_BYTES: Final = 32 * 1024
#: What a stream with calls has in it, whatever its dialect.
CALLS: Final = re.compile(rb"tool_?(?:call|use)|functionCall|function_call", re.IGNORECASE)
#: Long enough for the gateway, in the same loop, to have read what was sent.
NEXT_TURN: Final = Delay(1e-6)


@frozen
class Stream:
    name: str
    dialect: str
    reads: tuple[bytes, ...]

    @property
    def body(self) -> bytes:
        return b"".join(self.reads)


def script(stream: Stream) -> Script:
    """Each read of the recording in a chunk of its own, so that it is one read of the gateway."""
    media_type = DIALECTS[stream.dialect].media_type
    steps: list[Step] = [Send(head(200, {"Content-Type": media_type, "Transfer-Encoding": "chunked"}))]
    for data in stream.reads:
        steps += [Send(chunk(data)), NEXT_TURN]
    return Script((*steps, Send(END_OF_CHUNKS)))


@cache
def recordings(dialect: str) -> tuple[Stream, ...]:
    """Those of a dialect; none where there are no corpora."""
    found = [] if corpora.CORPORA is None else [each for each in corpora.recordings(dialect) if each.body]
    return tuple(Stream(each.name, dialect, reads_of(each.name, each.chunks)) for each in found)


#: Vectors of which ``expected`` can't say what every client sees of them, and why.
UNJUDGED: Final = {
    "two choices": "choice 1 is written before choice 0, at which openai-python's helper fails",
    "thoughts are counted beside the candidates": "one count is lost, and the table then expects the loss of all",
}


def is_sound(vector: Vector) -> bool:
    """It ends well, needs no repair, and its calls are whole."""
    verdicts = {call.verdict for call in vector.calls}
    plain = vector.clean and not vector.repairs
    return plain and verdicts <= {"complete", "empty"} and vector.name not in UNJUDGED


@cache
def vectors(dialect: str) -> tuple[Stream, ...]:
    """Our own that are sound."""
    found = [each for each in VECTORS if each.dialect == dialect and is_sound(each)]
    return tuple(Stream(each.name, dialect, reads_of(each.name, (each.body,))) for each in found)


def reads_of(name: str, chunks: Sequence[bytes]) -> tuple[bytes, ...]:
    """The reads that were recorded; where all of it is one chunk, cuts that depend on the name alone."""
    if len(chunks) > 1:
        return tuple(data for data in chunks if data)
    rng, data = random.Random(f"{SEED} {name}"), chunks[0]
    places = {rng.randrange(1, len(data)) for _ in range(rng.randint(0, CUTS))} if len(data) > 1 else ()
    return tuple(cut_at(data, sorted(places)))


def sampled(
    streams: Sequence[Stream], count: int, fit: Callable[[Stream], bool] = lambda _stream: True
) -> list[Stream]:
    """So many of the short ones that are fit, the same every time; half of them with calls, if there are so many."""
    short = [each for each in streams if len(each.body) <= SHORT_BYTES]
    shuffled = random.Random(SEED).sample(short, len(short))
    calling = list(islice((each for each in shuffled if CALLS.search(each.body) and fit(each)), count // 2))
    others = (each for each in shuffled if each not in calling and fit(each))
    return [*calling, *islice(others, count - len(calling))]
