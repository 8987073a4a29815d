"""Reports to begin a test with."""

from __future__ import annotations

from streamkit.report import StreamReport


def refusing() -> StreamReport:
    """One by which the first repair raises."""
    report = StreamReport()
    report.refuse_repairs()
    return report
