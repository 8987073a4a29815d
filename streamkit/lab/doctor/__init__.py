"""A server of a dialect examined from outside: a few small requests, and each answer judged by the dialect's grammar.

``probes`` are the requests, ``exchange`` sends one and keeps what came, read by read, as a recording, ``judging`` says what is
wrong with it, and ``reporting`` writes that down. ``examine`` puts them together.

Source: observe.md O33, O34, F52 to F55.
"""

from streamkit.lab.doctor.examination import Examination
from streamkit.lab.doctor.findings import Finding
from streamkit.lab.doctor.judging import Judged
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
