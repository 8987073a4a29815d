"""The functions of streamkit's law tests, for stages and dialects of other packages.

``check_stage`` checks a stage against laws L1 (chunk invariance), L3 (success is never invented) and L7 (prompt close).
``check_dialect`` checks a dialect against L1, L3, L4 (a conforming stream is not repaired) and L5 (nothing is silent). The
other functions are parts of these two. pytest is optional; its fixtures are ``open_sources`` and ``stage_checker``.

Source: design.md §1, §8.
"""

from streamkit.pipeline import source_of
from streamkit.testing.check import check_stage
from streamkit.testing.check_dialect import check_dialect
from streamkit.testing.cuts import cut_at, cuts
from streamkit.testing.drive import adrive, drive, drive_machine, joined
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
