"""A decoder's values as bytes, so that they can be compared and put back (``frame_decoder.py``, ``fast_path/probe.py``)."""

from __future__ import annotations

import copyreg
from io import BytesIO
from pickle import HIGHEST_PROTOCOL, Pickler
from typing import Any
from weakref import WeakValueDictionary

from streamkit.report import StreamReport

#: A longer state (arguments that are held) is not looked at again and again.
STATE_BYTES = 16 * 1024


def pickled(values: dict[str, Any]) -> bytes | None:
    """``values`` as bytes; None if they have no such form, or a long one."""
    out = BytesIO()
    pickler = Pickler(out, HIGHEST_PROTOCOL)
    pickler.dispatch_table = BY_REFERENCE
    try:
        pickler.dump(values)
    except Exception:  # noqa: BLE001 - what pickle raises is up to the class that it can't write
        return None
    raw = out.getvalue()
    return raw if len(raw) <= STATE_BYTES else None


def _shared(key: int) -> StreamReport:
    return REPORTS[key]


def _reference(report: StreamReport) -> tuple[Any, ...]:
    REPORTS[id(report)] = report
    return _shared, (id(report),)


#: The report is the stream's: what is put back counts in it, and not in a copy.
REPORTS: WeakValueDictionary[int, StreamReport] = WeakValueDictionary()
BY_REFERENCE = {**copyreg.dispatch_table, StreamReport: _reference}
