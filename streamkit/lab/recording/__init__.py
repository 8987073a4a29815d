"""Recordings of exchanges with a provider: the request, each read of the response with its time, and how it ended.

This module has the recording as a value, and the reader and the writer of its file ``*.stream.jsonl``. ``load``
(``loading.py``) also reads the formats of other tools.

The first line marks the file as a recording. The request, the response's headers, its reads in order, and the end follow. If
the recorder was killed, the last line may be incomplete: that line is dropped, and the recording has no end. Unknown members
are ignored, so that later versions may add members. A JSON request body is in the file byte for byte, except that its line
ends are blanks, so numbers such as ``1.0`` and 2^64 keep their spelling.

Raises BadRecording for a file that is not a recording, for one whose reads are not those that its last line describes, and,
with its number, for a line in the middle that cannot be read.

Source: observe.md §D, O25, O29.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import orjson
from attrs import Attribute, evolve, field, frozen
from attrs.validators import deep_iterable, optional

from streamkit.errors import SourceFailed
from streamkit.text.quoting import quoted
from streamkit.tool_calls.value_text import value_text

SUFFIX: Final = ".stream.jsonl"  #: the suffix of a recording's file name
VERSION: Final = 1  #: the only version of the format that is read and written
#: The name of the first member of a recording's first line, which identifies the format.
MARK: Final = "streamkit_recording"
_BEGINNING: Final = b'{"streamkit_recording"'

#: Errors that reading code raises for a value of an unexpected type, size or depth.
_UNREADABLE: Final = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)

#: The ends of recordings that lack the last reads of the response.
_INCOMPLETE: Final = ("truncated_by_recorder", "withheld")
Side = Literal["upstream", "client"]
_NO_HEADERS: Final[Mapping[str, str]] = {}


class BadRecording(SourceFailed):
    """The file is not a recording, or one of its lines cannot be read."""

    def __init__(self, name: str, line: int | None, reason: str) -> None:
        place = name if line is None else f"{name}:{line}"
        super().__init__(f"{place}: {reason}")


class _UnfitError(ValueError):
    """A value in the file has a type that the format does not allow."""


@contextmanager
def readable(name: str, line: int | None, what: str) -> Iterator[None]:
    """Raise errors about a value in the file as BadRecording. ``what`` is the place or problem named in the message."""
    try:
        yield
    except _UNREADABLE as error:
        reason = "a value has an unexpected type"  # the message of such an error is about Python, not about the file
        if isinstance(error, KeyError):
            reason = f"{quoted(error.args[0])} is missing"
        elif isinstance(error, ValueError):
            reason = str(error)
        raise BadRecording(name, line, f"{what}: {reason}") from error


def _is_text(_recording: Any, attribute: Attribute[str], value: str) -> None:
    """Refuse half of a surrogate pair. JSON can contain it, but a file, a header or a terminal cannot."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{attribute.name} has half of a surrogate pair: {quoted(value)}") from None


def _are_headers(_recording: Any, _attribute: Attribute[Mapping[str, str]], headers: Mapping[str, str]) -> None:
    """Refuse line ends and other control characters: a server that replays them would write an additional header."""
    for name, value in headers.items():
        if not (name + value).isprintable():
            raise ValueError(f"the header {quoted(name)} has a character that headers must not have: {quoted(value)}")


def _in(allowed: Container[Any], what: str) -> Callable[[Any, Attribute[Any], Any], None]:
    """Return a validator for the values of ``allowed``, which ``what`` describes."""

    def check(_recording: Any, attribute: Attribute[Any], value: Any) -> None:
        if value not in allowed:
            raise ValueError(f"{attribute.name} must be {what}, not {quoted(value)}")

    return check


_COUNT: Final = _in(range(1 << 53), "a count")  #: counts below 2^53, which every JSON reader represents exactly


class Read(NamedTuple):
    """The bytes of a response that one read returned."""

    t: float  #: seconds since the request was sent
    data: bytes


@frozen(kw_only=True)
class RecordedRequest:
    """The request of an exchange."""

    method: str = field(default="POST", validator=_is_text)
    path: str = field(validator=_is_text)  #: with its query, without keys
    #: Only headers of the allow-list (``headers.py``).
    headers: Mapping[str, str] = field(default=_NO_HEADERS, validator=_are_headers)
    body: bytes | None = field(default=None, repr=False)  #: None: not kept
    #: Hash of the body as sent, in hexadecimal; None if unknown.
    body_sha256: str | None = field(default=None, validator=optional(_is_text))


@frozen(kw_only=True)
class RecordedResponse:
    """The status and headers of a response."""

    t: float  #: seconds since the request was sent
    status: int = field(validator=_in(range(200, 1000), "200 to 999"))
    #: Only headers of the allow-list (``headers.py``).
    headers: Mapping[str, str] = field(default=_NO_HEADERS, validator=_are_headers)


@frozen(kw_only=True)
class End:
    """How an exchange ended."""

    t: float  #: seconds since the request was sent
    #: ``whole`` (complete according to HTTP), ``cut`` (closed inside the body), ``reset``, ``client_left``, ``timeout:`` and
    #: which one, ``shut_down``, ``unreachable`` (no response), ``truncated_by_recorder`` (the file would be too large),
    #: ``withheld`` (a key that the recorder knows came next). For the last two the response went on.
    kind: str = field(validator=_is_text)
    reads: int = field(default=0, validator=_COUNT)  #: number of reads up to the end, including those not in the file
    bytes: int = field(default=0, validator=_COUNT)  #: number of bytes up to the end, including those not in the file
    #: Hash of all these bytes, in hexadecimal; empty if reads were dropped. A file whose reads have another hash is refused.
    sha256: str = field(default="", validator=_is_text)
    dropped: int = field(default=0, validator=_COUNT)  #: reads that are not in the file because the disk was too slow

    @classmethod
    def of(cls, reads: Sequence[Read], *, kind: str = "whole", t: float | None = None) -> End:
        """Return the end of an exchange with these reads, by default at the time of the last read."""
        body = b"".join(read.data for read in reads)
        last_s = reads[-1].t if reads else 0.0
        return cls(t=last_s if t is None else t, kind=kind, reads=len(reads), bytes=len(body), sha256=sha256_of(body))


@frozen(kw_only=True)
class Recording:
    """One recorded exchange."""

    id: str = field(validator=_is_text)
    at: str = field(default="", validator=_is_text)  #: when the exchange began, in ISO 8601 and UTC
    streamkit: str = field(default="", validator=_is_text)  #: the streamkit version that recorded the exchange
    dialect: str = field(default="", validator=_is_text)  #: the dialect of the response; empty: unknown
    provider: str = field(default="", validator=_is_text)
    #: ``upstream``: the bytes are those of the provider. ``client``: the bytes are those that the gateway sent to its client.
    side: Side = field(default="upstream", validator=_in(("upstream", "client"), "upstream or client"))
    exact: bool = True  #: whether the reads have the received bytes and times, unchanged and complete
    #: Names of the parts that were left out, such as ``request.headers``.
    removed: Sequence[str] = field(default=(), validator=deep_iterable(_is_text))
    request: RecordedRequest | None = None
    response: RecordedResponse | None = None
    reads: Sequence[Read] = field(default=(), repr=False)
    end: End | None = None  #: None: the recorder was killed

    @property
    def body(self) -> bytes:
        return b"".join(read.data for read in self.reads)

    @property
    def ending(self) -> str:
        """How the exchange ended, as a value of ``End.kind``. A recording without an end counts as ``cut``."""
        return "cut" if self.end is None else self.end.kind


def is_recording(beginning: bytes) -> bool:
    """Return whether a file with this beginning is a recording. ``beginning`` needs at least 22 bytes."""
    return beginning.startswith(_BEGINNING)


def may_be_recording(beginning: bytes) -> bool:
    """Return whether ``beginning`` is too short to decide, but could be the start of a recording."""
    return len(beginning) < len(_BEGINNING) and _BEGINNING.startswith(beginning)


def read_recording(path: str | Path) -> Recording:
    """Return the recording in a file. Raises BadRecording, and OSError if the file cannot be read."""
    return parse_recording(Path(path).read_bytes(), name=str(path))


def parse_recording(content: bytes, *, name: str = "the recording") -> Recording:
    """Return the recording in a file's bytes. ``name`` is the file's name in error messages. Raises BadRecording."""
    if not is_recording(content):
        raise BadRecording(name, None, "this is not a recording, according to its first line")
    lines = content.split(b"\n")
    last = lines.pop()  # the text after the last line end: empty, or an incomplete line
    parsed = _Parsed()
    for number, line in enumerate(lines, 1):
        with readable(name, number, "the line can't be read"):
            parsed.take(line)
    if last and parsed.head is None:
        raise BadRecording(name, 1, "the line is incomplete")
    recording = parsed.recording()
    if (change := _change(recording)) is not None:
        advice = "if this was on purpose, remove the member sha256 from the file's last line"
        raise BadRecording(name, None, f"the response in the file was changed: {change}; {advice}")
    return recording


def _change(recording: Recording) -> str | None:
    """Return how the reads differ from those that the end line describes; None if they do not, or if it has no hash."""
    stated = recording.end
    if stated is None or not stated.sha256 or stated.dropped or stated.kind in _INCOMPLETE:
        return None
    found = End.of(recording.reads)
    for name in ("reads", "bytes", "sha256"):
        has, had = getattr(found, name), getattr(stated, name)
        if has != had:
            return f"it has {has:,} {name}, but had {had:,}" if name != "sha256" else "its hash differs"
    return None


class _Parsed:
    def __init__(self) -> None:
        self.head: Recording | None = None
        self._request: RecordedRequest | None = None
        self._response: RecordedResponse | None = None
        self._removed: list[str] = []
        self._reads: list[Read] = []
        self._end: End | None = None

    def take(self, line: bytes) -> None:
        if not line.strip():
            return
        value = json.loads(line)
        if isinstance(value, list):
            self._reads.append(_read(value))
        elif not isinstance(value, dict):
            raise _UnfitError(f"must be an object or a list, not {quoted(value)}")
        elif MARK in value:
            if value[MARK] != VERSION:
                raise ValueError(f"unknown version {quoted(value[MARK])}; only {VERSION} is supported")
            names = ("id", "at", "streamkit", "dialect", "provider")
            texts: dict[str, Any] = {name: str(value.get(name, "")) for name in names}
            self.head = Recording(
                **texts,
                side=value.get("side", "upstream"),
                exact=bool(value.get("exact", True)),
                removed=_texts(value, "removed"),
            )
        elif "request" in value:
            self._request = _request(_object(value, "request"), line)
        elif "response" in value:
            response = _object(value, "response")
            self._removed += _texts(value, "removed")
            self._response = RecordedResponse(
                t=_seconds(value["t"]), status=_whole(response, "status"), headers=headers_in(response)
            )
        elif "end" in value:
            counts = {name: _whole({name: 0, **value}, name) for name in ("reads", "bytes", "dropped")}
            self._end = End(
                t=_seconds(value["t"]), kind=str(value["end"]), sha256=str(value.get("sha256", "")), **counts
            )

    def recording(self) -> Recording:
        head, end = self.head or Recording(id=""), self._end
        return evolve(
            head,
            exact=head.exact and (end is None or not end.dropped),
            removed=(*head.removed, *self._removed),
            request=self._request,
            response=self._response,
            reads=tuple(self._reads),
            end=end,
        )


def _object(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    if not isinstance(found := value[name], dict):
        raise _UnfitError(f"{name} must be an object, not {quoted(found)}")
    return found


def _texts(value: Mapping[str, Any], name: str) -> tuple[str, ...]:
    if not isinstance(found := value.get(name, []), list):
        raise _UnfitError(f"{name} must be a list, not {quoted(found)}")
    return tuple(map(str, found))


def _whole(value: Mapping[str, Any], name: str) -> int:
    try:
        return int(value[name])
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} must be a whole number, not {quoted(value[name])}") from None


def _read(value: list[Any]) -> Read:
    if len(value) != 2 or not (isinstance(value[1], str) or (isinstance(value[1], dict) and "b64" in value[1])):
        raise ValueError(f'a read must be [seconds, "text"] or [seconds, {{"b64": "base64"}}], not {quoted(value)}')
    t, data = value
    if isinstance(data, str):
        return Read(_seconds(t), data.encode())
    return Read(_seconds(t), base64.b64decode(data["b64"], validate=True))


def _request(value: dict[str, Any], line: bytes) -> RecordedRequest:
    body: bytes | None = None
    if "body" in value:
        body = value_text(line, "request", "body").encode()
    elif "body_text" in value:
        body = str(value["body_text"]).encode()
    elif "body_b64" in value:
        body = base64.b64decode(value["body_b64"], validate=True)
    digest = value.get("body_sha256")
    return RecordedRequest(
        method=str(value.get("method", "POST")),
        path=str(value["path"]),
        headers=headers_in(value),
        body=body,
        body_sha256=None if digest is None else str(digest),
    )


def headers_in(value: Mapping[str, Any]) -> dict[str, str]:
    """Return the ``headers`` of a request or response in a file, names in lower case."""
    return {str(name).lower(): str(text) for name, text in dict(value.get("headers") or {}).items()}


def _seconds(value: Any) -> float:
    try:
        seconds = float(value)
    except (TypeError, ValueError, OverflowError):
        seconds = math.nan
    if not math.isfinite(seconds) or seconds < 0:
        raise ValueError(f"a time must be a number of seconds, not {quoted(value)}")
    return seconds


# -- writing the lines -------------------------------------------------------------------------------------------------


#: Digits after the point of a time in seconds: ten microseconds are finer than the times of reads need.
TIME_DIGITS: Final = 5
_LINE_ENDS: Final = bytes.maketrans(b"\r\n", b"  ")  #: replaces line ends with blanks


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
