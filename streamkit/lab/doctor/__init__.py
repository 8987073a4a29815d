"""Examine a server of a dialect from outside: send a few small requests, and check each response with the dialect's grammar.

``probes`` has the requests. ``exchange`` sends one and keeps the reads of its response as a recording. ``judging`` finds its
faults, and ``reporting`` writes the report. ``Examination.examine`` combines these.

Source: observe.md O33, O34, F52 to F55.
"""

from streamkit.lab.doctor.findings import Finding
from streamkit.lab.doctor.judging import Examination, Judged
from streamkit.lab.doctor.probes import MAX_REQUESTS, MAX_TOKENS, Plan, Probe, plan
from streamkit.lab.doctor.reporting import as_markdown, as_object

__all__ = [
    "MAX_REQUESTS",
    "MAX_TOKENS",
    "Examination",
    "Finding",
    "Judged",
    "Plan",
    "Probe",
    "as_markdown",
    "as_object",
    "plan",
]
