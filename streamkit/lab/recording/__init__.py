"""Recordings of exchanges with a provider: what was asked, what came of it, read by read at its time, and how it ended.

A file ``*.stream.jsonl`` has one exchange, as lines of JSON. ``read_recording`` reads one, ``lines`` has what writes one;
``load`` (``loading.py``) reads other forms, too.

Source: observe.md §D, "Proposed form".
"""

from streamkit.lab.recording.recording import (
    SUFFIX,
    BadRecording,
    End,
    Read,
    RecordedRequest,
    RecordedResponse,
    Recording,
    is_recording,
    may_be_recording,
    parse_recording,
    read_recording,
)

__all__ = [
    "SUFFIX",
    "BadRecording",
    "End",
    "Read",
    "RecordedRequest",
    "RecordedResponse",
    "Recording",
    "is_recording",
    "may_be_recording",
    "parse_recording",
    "read_recording",
]
