"""All ways to split a stream into reads.

Read boundaries have no meaning, so a result that depends on them is wrong. Most such errors need one cut at one particular
byte, some need two. Sampled cuts are often near line ends, where line parsers fail.

Source: design.md §1.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import combinations, pairwise

KIB = 1024
ALL_CUTS_UP_TO = 32 * KIB  #: for data of up to this many bytes, the exhaustive form tries every single cut
#: For larger data, the exhaustive form tries every cut in the first and in the last ``EDGE`` bytes, and random cuts with a
#: fixed seed between them.
EDGE = 8 * KIB
SEEDED_CUTS = 2000  #: how many such cuts with a fixed seed are tried between the edges
PAIRS_UP_TO = 120  #: for data of up to this many bytes, the exhaustive form tries every pair of cuts
SEEDED_PAIRS = 200  #: how many pairs of cuts are tried for larger data, chosen with a fixed seed
RANDOM_CUTS = 30  #: how many splits at several random places are tried by the exhaustive form


def cut_at(data: bytes, places: list[int]) -> list[bytes]:
    """Split ``data`` at the sorted ``places``. Equal places give an empty piece."""
    return [data[a:b] for a, b in pairwise([0, *places, len(data)])]


def cuts(
    data: bytes, *, exhaustive: bool = False, seed: int = 0, sample: int = 20, pairs_up_to: int = PAIRS_UP_TO
) -> Iterator[list[bytes]]:
    """Yield ways to split ``data`` into reads: whole, byte by byte, at single places, at pairs of places, at random.

    With ``exhaustive``, data up to 32 KiB are cut at every single place. Longer data are cut at every place in the first and
    last 8 KiB, and at 2,000 random places. Data up to ``pairs_up_to`` bytes are also cut at every pair of places, longer
    data at 200 random pairs. Without ``exhaustive``, there are ``sample`` random cuts, half of them near line ends, and as
    many pairs. Random cuts may repeat a place, which gives empty reads. The same arguments, with the same ``seed``, give the
    same cuts.
    """
    rng = random.Random(seed)  # noqa: S311 - reproducible, not secret
    size = len(data)
    yield [data]
    yield cut_at(data, list(range(1, size)))
    singles = single_cuts(size, seed=seed) if exhaustive else sampled_cuts(data, rng, sample)
    for place in singles:
        yield cut_at(data, [place])
    if exhaustive and size <= pairs_up_to:
        for pair in combinations(range(1, size), 2):
            yield cut_at(data, list(pair))
    else:
        for _ in range(SEEDED_PAIRS if exhaustive else sample):
            yield cut_at(data, sorted(sampled_cuts(data, rng, 2)))
    for _ in range(RANDOM_CUTS if exhaustive else 5):
        yield cut_at(data, sorted(rng.choices(range(size + 1), k=rng.randint(1, 40))))


def single_cuts(
    size: int, *, seed: int = 0, all_up_to: int = ALL_CUTS_UP_TO, edge: int = EDGE, seeded: int = SEEDED_CUTS
) -> list[int]:
    """Return every place to cut ``size`` bytes once; for more than ``all_up_to`` bytes the edges and some seeded places."""
    if size <= max(all_up_to, 2 * edge):
        return list(range(1, size))
    rng = random.Random(seed)  # noqa: S311 - reproducible, not secret
    inside = range(edge, size - edge)
    return [*range(1, edge), *sorted(rng.sample(inside, min(seeded, len(inside)))), *range(size - edge, size)]


def sampled_cuts(data: bytes, rng: random.Random, count: int) -> list[int]:
    """Return ``count`` places in ``data``, half of them within two bytes of a line end."""
    size = len(data)
    if size < 2:
        return []
    found = []
    for number in range(count):
        place = rng.randrange(1, size)
        if number % 2:
            end = data.find(b"\n", place)
            if end >= 0:
                place = min(max(end + rng.randint(-1, 2), 1), size - 1)
        found.append(place)
    return found
