"""Recordings of exchanges with a provider: the request, each read of the response with its time, and how it ended.

A file ``*.stream.jsonl`` has one exchange, as lines of JSON. ``read_recording`` reads such a file, ``lines`` has the functions
that write one, and ``load`` (``loading.py``) also reads the formats of other tools.

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
