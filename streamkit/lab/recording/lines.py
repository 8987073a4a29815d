"""The lines of a recording, each with its line end. Every line is whole JSON by itself.

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

#: Ten microseconds: finer than any read.
TIME_DIGITS: Final = 5
_LINE_ENDS: Final = bytes.maketrans(b"\r\n", b"  ")


def head_line(recording: Recording) -> bytes:
    """Return the first line: what is known of an exchange before its request."""
    names = ("id", "at", "streamkit", "dialect", "provider", "side", "exact")
    members = {name: getattr(recording, name) for name in names}
    return _line({MARK: VERSION, **members, "removed": list(recording.removed)})


def request_line(request: RecordedRequest) -> bytes:
    """What was asked. A body that is JSON stands there as it is, but for line ends between its tokens."""
    members: dict[str, Any] = {"method": request.method, "path": request.path, "headers": dict(request.headers)}
    body = request.body
    if body is not None:
        members["body_sha256"] = request.body_sha256 or sha256_of(body)
        members |= _body(body)
    elif request.body_sha256 is not None:
        members["body_sha256"] = request.body_sha256
    return _line({"t": 0.0, "request": members})


def response_line(response: RecordedResponse, *, removed: Sequence[str] = ()) -> bytes:
    """The status and the headers of an answer; ``removed`` is what was left out of it, beside what the first line says."""
    members = {"status": response.status, "headers": dict(response.headers)}
    also = {"removed": list(removed)} if removed else {}
    return _line({"t": round(response.t, TIME_DIGITS), "response": members, **also})


def read_line(read: Read) -> bytes:
    """One read: as text where it is whole UTF-8, else as base64."""
    data: str | dict[str, str]
    try:
        data = read.data.decode()
    except UnicodeDecodeError:
        data = {"b64": base64.b64encode(read.data).decode()}
    return _line([round(read.t, TIME_DIGITS), data])


def end_line(end: End) -> bytes:
    """How it ended."""
    members: dict[str, Any] = {"t": round(end.t, TIME_DIGITS), "end": end.kind, "reads": end.reads, "bytes": end.bytes}
    if end.dropped:
        members["dropped"] = end.dropped
    return _line({**members, "sha256": end.sha256})


def lines_of(recording: Recording) -> list[bytes]:
    """All lines of a recording; ``parse_recording`` reads their join as it again."""
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
    """In hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def _body(body: bytes) -> Mapping[str, Any]:
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return {"body_b64": base64.b64encode(body).decode()}
    if not _is_json(body, text):
        return {"body_text": text}
    # no string of JSON holds a line end, so that those there are stand between tokens
    return {"body": orjson.Fragment(body.translate(_LINE_ENDS).strip())}


def _is_json(body: bytes, text: str) -> bool:
    """Whether a body is JSON. Who asks holds the interpreter: orjson for a fifth of the time, 2 ms for 1.4 MiB."""
    try:
        orjson.loads(body)
    except orjson.JSONDecodeError:  # half of a surrogate pair, too, which JSON allows
        try:
            json.loads(text, parse_constant=_refuse)
        except (ValueError, RecursionError):
            return False
    return True


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")


def _line(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
