"""Load recordings from a file in any known format: streamkit's, the raw bytes of a stream, and those of two other tools.

The content decides the format. A recording from another format is marked as not exact, and has the times that its file has, if
any.

A cassette of reel-vcr has one JSON line for each exchange, and a time for each event. The format has the names and payloads of
events, as JSON values. It lacks comments, ids, the boundaries of the reads, the original spelling of values, and interrupted
streams. So each event is written anew as one read. Times count from the arrival of the response's headers.

Source: observe.md F45, F47, O30; reel-vcr 0.1.0, form 1.
"""

from __future__ import annotations

import base64
import json
import math
from pathlib import Path
from typing import Any, Final

from streamkit.detection import dialect_of
from streamkit.dialects import source_named
from streamkit.dialects.base import Dialect
from streamkit.errors import NotThisDialect, StreamError
from streamkit.framing.frame import BOM, NOTHING
from streamkit.lab.recording import (
    SUFFIX,
    BadRecording,
    End,
    Read,
    RecordedRequest,
    RecordedResponse,
    Recording,
    headers_in,
    is_recording,
    parse_recording,
    readable,
)
from streamkit.lab.recording.aimock import is_aimock, parse_aimock
from streamkit.sync import collect_sync
from streamkit.text.quoting import quoted
from streamkit.translation.bodies import decode_response

JSON: Final = "application/json"
NDJSON: Final = "application/x-ndjson"


def load(path: str | Path, *, dialect: str = "") -> list[Recording]:
    """Return the recordings in a file: one from streamkit's format or from raw bytes, all of another tool's file.

    ``dialect`` is the dialect of the responses, or a provider's name, if the file does not state it. The default detects the
    dialect of raw bytes. A fixture of aimock states no dialect, so ``dialect`` is required there: its responses are written in
    it. Raises BadRecording, UsageError if ``dialect`` is unknown or missing, and OSError if the file cannot be read.
    """
    path = Path(path)
    return parse_any(path.read_bytes(), name=str(path), dialect=dialect)


def parse_any(content: bytes, *, name: str = "the recording", dialect: str = "") -> list[Recording]:
    """Return the recordings in a file's content, as ``load`` does. ``name`` is the file's name in error messages."""
    if is_recording(content):
        return [parse_recording(content, name=name)]
    if is_reel(content):
        return parse_reel(content, name=name, dialect=dialect)
    if is_aimock(content):
        return parse_aimock(content, name=name, dialect=dialect)
    return [raw_recording(content, name=name, dialect=dialect)]


def raw_recording(body: bytes, *, name: str = "the recording", dialect: str = "") -> Recording:
    """Return the bytes of a response as a recording of one read at time 0.

    With ``dialect``, the bytes may also be a whole response. Raises BadRecording for bytes that are no response of the
    dialect, and without ``dialect`` if none is detected.
    """
    try:
        spoken = source_named(dialect or dialect_of(body))[0]
        media_type = _media_type_of(body, spoken) if dialect else spoken.media_type
    except NotThisDialect as error:
        raise BadRecording(name, None, f"neither a recording nor {error.expected}: found {error.found}") from error
    except StreamError as error:
        raise BadRecording(name, None, str(error)) from error
    headers = {"content-type": media_type}
    return Recording(
        id=Path(name).name.removesuffix(SUFFIX),
        dialect=spoken.name,
        exact=False,
        response=RecordedResponse(t=0.0, status=200, headers=headers),
        reads=(Read(0.0, body),),
        end=End.of([Read(0.0, body)]),
    )


def is_whole(body: bytes, dialect: Dialect) -> bool:
    """Return whether a body is a whole response: streams of the dialect begin with something other than an object."""
    return body.removeprefix(BOM).lstrip()[:1] == b"{" and dialect.media_type != NDJSON


def _media_type_of(body: bytes, dialect: Dialect) -> str:
    """Return the media type of a stream, or of a whole response. Raises StreamError if the bytes are neither."""
    if is_whole(body, dialect):
        decode_response(body, dialect.name)
        return JSON
    if not body.strip():
        raise NotThisDialect(f"a stream of {dialect.name}", NOTHING)
    error = collect_sync([body], dialect.name).report.error
    if isinstance(error, NotThisDialect):
        raise error
    return dialect.media_type


# -- cassettes of reel-vcr ---------------------------------------------------------------------------------------------


REEL_VERSION: Final = 1
_META: Final = "_meta"  #: the member that the optional first line has; this line contains settings for the whole file
_RAW: Final = "__reel_raw_base64__"  #: the member that holds a body in base64 if the body is not JSON
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
                recordings.append(_exchange(entry, dialect))
    return recordings


def _exchange(entry: dict[str, Any], dialect: str) -> Recording:
    if entry["schema_version"] != REEL_VERSION:
        raise ValueError(f"unknown version {quoted(entry['schema_version'])}; only {REEL_VERSION} is supported")
    request, response = entry["request"], entry["response"]
    events = response.get("stream_chunks")
    reads = tuple(map(_read, events)) if events is not None else (Read(0.0, _body(response.get("body")) or b""),)
    headers = {name: text for name, text in headers_in(response).items() if name in _HEADERS}
    return Recording(
        id=str(entry.get("id", "")),
        at=str(entry.get("ts", "")),
        dialect=dialect or ("" if events is None else _detected(b"".join(read.data for read in reads))),
        provider=str(entry.get("provider", "")),
        exact=False,
        removed=("request.headers",),
        request=RecordedRequest(
            method=str(request["method"]), path=str(request["path"]), body=_body(request.get("body"))
        ),
        response=RecordedResponse(t=0.0, status=int(response["status"]), headers=headers),
        reads=reads,
        end=End.of(reads),
    )


def _read(event: dict[str, Any]) -> Read:
    data, seconds = event["data"], event["t_offset_ms"] / 1000
    if not 0 <= seconds < math.inf:
        raise ValueError(f"a time must be a number of milliseconds, not {quoted(event['t_offset_ms'])}")
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


def _detected(body: bytes) -> str:
    try:
        return dialect_of(body)
    except NotThisDialect:
        return ""
