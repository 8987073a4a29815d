"""Read cassettes of reel-vcr as recordings. A cassette has one JSON line for each exchange, and a time for each event.

The format has the names and payloads of events, as JSON values. It lacks comments, ids, the boundaries of the reads, the
original spelling of values, and interrupted streams. So this module writes each event anew as one read, and the recording is
marked as not exact. Times count from the arrival of the response's headers.

Source: observe.md F45, F47, O30; reel-vcr 0.1.0, form 1.
"""

from __future__ import annotations

import base64
import json
import math
from typing import Any, Final

from streamkit.detection import dialect_of
from streamkit.dialects import source_named
from streamkit.errors import NotThisDialect
from streamkit.lab.recording.lines import sha256_of
from streamkit.lab.recording.recording import (
    End,
    Read,
    RecordedRequest,
    RecordedResponse,
    Recording,
    headers_in,
    readable,
)
from streamkit.text.quoting import quoted

VERSION: Final = 1
#: The member that the optional first line has; this line contains settings for the whole file.
_META: Final = "_meta"
#: The member that holds a body in base64 if the body is not JSON.
_RAW: Final = "__reel_raw_base64__"
#: The response headers that are kept. They describe the response and do not identify an account.
_HEADERS: Final = frozenset({"content-type", "retry-after", "retry-after-ms"})
_MEMBERS: Final = frozenset({"schema_version", "request", "response"})


def is_reel(content: bytes) -> bool:
    """Return whether the first line of a file is that of a cassette."""
    try:
        first = json.loads(content.lstrip().partition(b"\n")[0])
    except (ValueError, RecursionError):
        return False
    return isinstance(first, dict) and (_META in first or first.keys() >= _MEMBERS)


def parse_reel(content: bytes, *, name: str, dialect: str = "") -> list[Recording]:
    """Return the exchanges of a cassette. ``name`` is the file's name in error messages.

    ``dialect`` is the dialect of all responses. By default the dialect of each stream is detected, and that of a response that
    is not a stream is unknown. Raises BadRecording with the line's number, and UsageError for an unknown dialect.
    """
    dialect = source_named(dialect)[0].name if dialect else ""
    recordings = []
    for number, line in enumerate(content.split(b"\n"), 1):
        with readable(name, number, "the line can't be read"):
            entry = json.loads(line) if line.strip() else {_META: None}
            if _META not in entry:
                recordings.append(_recording(entry, dialect))
    return recordings


def _recording(entry: dict[str, Any], dialect: str) -> Recording:
    if entry["schema_version"] != VERSION:
        raise ValueError(f"version {quoted(entry['schema_version'])} of the form is not known, only {VERSION}")
    request, response = entry["request"], entry["response"]
    events = response.get("stream_chunks")
    reads = tuple(map(_read, events)) if events is not None else (Read(0.0, _body(response.get("body")) or b""),)
    body = b"".join(read.data for read in reads)
    end_s = reads[-1].t if reads else 0.0
    headers = headers_in(response)
    return Recording(
        id=str(entry.get("id", "")),
        at=str(entry.get("ts", "")),
        dialect=dialect or ("" if events is None else _dialect_of(body)),
        provider=str(entry.get("provider", "")),
        exact=False,
        removed=("request.headers",),
        request=RecordedRequest(
            method=str(request["method"]), path=str(request["path"]), body=_body(request.get("body"))
        ),
        response=RecordedResponse(
            t=0.0,
            status=int(response["status"]),
            headers={name: text for name, text in headers.items() if name in _HEADERS},
        ),
        reads=reads,
        end=End(t=end_s, kind="whole", reads=len(reads), bytes=len(body), sha256=sha256_of(body)),
    )


def _read(event: dict[str, Any]) -> Read:
    data, seconds = event["data"], event["t_offset_ms"] / 1000
    if not 0 <= seconds < math.inf:
        raise ValueError(f"a time is a number of milliseconds, not {quoted(event['t_offset_ms'])}")
    lines = (data if isinstance(data, str) else _text(data)).split("\n")
    name = f"event: {event['event']}\n" if event.get("event") else ""
    return Read(seconds, (name + "".join(f"data: {line}\n" for line in lines) + "\n").encode())


def _body(stored: Any) -> bytes | None:
    if stored is None:
        return None
    if isinstance(stored, dict) and _RAW in stored:
        return base64.b64decode(stored[_RAW], validate=True)
    return _text(stored).encode()


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _dialect_of(body: bytes) -> str:
    """Return the dialect of a stream; empty if unknown."""
    try:
        return dialect_of(body)
    except NotThisDialect:
        return ""
