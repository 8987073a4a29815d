"""The drivers of our own law tests, for stages and dialects of your own.

``check_stage`` checks a stage against laws L1 (chunk invariance), L3 (success is never invented) and L7 (prompt close), and
``check_dialect`` a dialect against L1, L3, L4 (a conforming stream is not repaired) and L5 (nothing is silent); the others are
their parts. Nothing here needs pytest; with it, the fixtures ``open_sources`` and ``stage_checker`` are there.

Source: design.md §1, §8.
"""

from streamkit.testing.check import check_stage
from streamkit.testing.check_dialect import check_dialect
from streamkit.testing.cuts import cut_at, cuts
from streamkit.testing.drive import adrive, drive, drive_machine, source_of
from streamkit.testing.normal import joined
from streamkit.testing.sources import FaultySource, PlannedFailure, open_sources

__all__ = [
    "FaultySource",
    "PlannedFailure",
    "adrive",
    "check_dialect",
    "check_stage",
    "cut_at",
    "cuts",
    "drive",
    "drive_machine",
    "joined",
    "open_sources",
    "source_of",
]
