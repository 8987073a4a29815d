"""Write the lines of a recording. Each is a complete JSON value with a line end.

Source: observe.md §D, O25.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from streamkit.lab.recording.recording import MARK, VERSION, End, Read, RecordedRequest, RecordedResponse, Recording

#: Digits after the point of a time in seconds: ten microseconds are finer than the times of reads need.
TIME_DIGITS: Final = 5
#: Replaces line ends with blanks.
_LINE_ENDS: Final = bytes.maketrans(b"\r\n", b"  ")


def head_line(recording: Recording) -> bytes:
    """Return the first line: the facts about an exchange that are known before its request."""
    names = ("id", "at", "streamkit", "dialect", "provider", "side", "exact")
    members = {name: getattr(recording, name) for name in names}
    return _line({MARK: VERSION, **members, "removed": list(recording.removed)})


def request_line(request: RecordedRequest) -> bytes:
    """Return the request's line. A JSON body is written unchanged, except that line ends between tokens become blanks."""
    members: dict[str, Any] = {"method": request.method, "path": request.path, "headers": dict(request.headers)}
    body = request.body
    if body is not None:
        members["body_sha256"] = request.body_sha256 or sha256_of(body)
        members |= _body(body)
    elif request.body_sha256 is not None:
        members["body_sha256"] = request.body_sha256
    return _line({"t": 0.0, "request": members})


def response_line(response: RecordedResponse, *, removed: Sequence[str] = ()) -> bytes:
    """Return the line of a response's status and headers. ``removed`` adds to the omissions that the first line lists."""
    members = {"status": response.status, "headers": dict(response.headers)}
    also = {"removed": list(removed)} if removed else {}
    return _line({"t": round(response.t, TIME_DIGITS), "response": members, **also})


def read_line(read: Read) -> bytes:
    """Return the line of one read: as text if its bytes are whole UTF-8, else as base64."""
    data: str | dict[str, str]
    try:
        data = read.data.decode()
    except UnicodeDecodeError:
        data = {"b64": base64.b64encode(read.data).decode()}
    return _line([round(read.t, TIME_DIGITS), data])


def end_line(end: End) -> bytes:
    """Return the last line: how the exchange ended."""
    members: dict[str, Any] = {"t": round(end.t, TIME_DIGITS), "end": end.kind, "reads": end.reads, "bytes": end.bytes}
    if end.dropped:
        members["dropped"] = end.dropped
    return _line({**members, "sha256": end.sha256})


def lines_of(recording: Recording) -> list[bytes]:
    """Return all lines of a recording. ``parse_recording`` reads their concatenation as an equal recording."""
    lines = [head_line(recording)]
    if recording.request is not None:
        lines.append(request_line(recording.request))
    if recording.response is not None:
        lines.append(response_line(recording.response))
    lines += map(read_line, recording.reads)
    if recording.end is not None:
        lines.append(end_line(recording.end))
    return lines


def sha256_of(data: bytes) -> str:
    """Return the SHA-256 hash in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def _body(body: bytes) -> Mapping[str, Any]:
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return {"body_b64": base64.b64encode(body).decode()}
    if not _is_json(body, text):
        return {"body_text": text}
    # a JSON string cannot contain a line end, so every line end in the body is between two tokens
    return {"body": orjson.Fragment(body.translate(_LINE_ENDS).strip())}


def _is_json(body: bytes, text: str) -> bool:
    """Return whether a body is JSON. orjson holds the interpreter a fifth as long as ``json``: 2 ms for 1.4 MiB."""
    try:
        orjson.loads(body)
    except orjson.JSONDecodeError:  # orjson refuses half of a surrogate pair, which JSON allows: try `json`
        try:
            json.loads(text, parse_constant=_refuse)
        except (ValueError, RecursionError):
            return False
    return True


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")


def _line(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
