"""A recording as a value, and its file read.

Theory: the file is what its lines are (observe.md §D), and each is whole when it is written: of a recorder that was killed
the last line may be half, which is passed over, and the recording has no end.

Rules. The first line says that it is a recording; then come the request, the headers of the answer, its reads in order, and
the end. Members that are not known are passed over, so that later versions may add some. The body of a request that is JSON is
in the file as it was, but for its line ends, which are blanks there: ``1.0`` and 2^64 stay what they were.

Refuses: what is no recording, and a line in the middle that can't be read, with its number.

Source: observe.md §D, O25, O29.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, cast

from attrs import field, frozen

from streamkit.errors import SourceFailed
from streamkit.text.quoting import quoted
from streamkit.tool_calls.value_text import value_text

#: What files of recordings are called.
SUFFIX: Final = ".stream.jsonl"
#: The version of the form that is read and written.
VERSION: Final = 1
#: The member that the first line begins with.
MARK: Final = "streamkit_recording"
_BEGINNING: Final = b'{"streamkit_recording"'

Side = Literal["upstream", "client"]
_NO_HEADERS: Final[Mapping[str, str]] = {}


class BadRecording(SourceFailed):
    """A file is no recording, or a line of it can't be read."""

    def __init__(self, name: str, line: int | None, reason: str) -> None:
        place = name if line is None else f"{name}:{line}"
        super().__init__(f"{place}: {reason}")


class Read(NamedTuple):
    """One read of an answer: what came at once."""

    t: float  #: seconds since the request was sent
    data: bytes


@frozen(kw_only=True)
class RecordedRequest:
    """What was asked."""

    method: str = "POST"
    path: str  #: with its query, of which keys were taken out
    headers: Mapping[str, str] = _NO_HEADERS  #: those of the allow-list (``headers.py``)
    body: bytes | None = field(default=None, repr=False)  #: None: not kept
    #: Of the body as it was sent, hexadecimal; None where nobody counted it.
    body_sha256: str | None = None


@frozen(kw_only=True)
class RecordedResponse:
    """The beginning of an answer."""

    t: float  #: seconds since the request was sent
    status: int
    headers: Mapping[str, str] = _NO_HEADERS  #: those of the allow-list (``headers.py``)


@frozen(kw_only=True)
class End:
    """How an exchange ended."""

    t: float  #: seconds since the request was sent
    #: ``whole`` (as HTTP says), ``cut`` (closed inside the body), ``reset``, ``client_left``, ``timeout:`` and which one,
    #: ``shut_down``, ``unreachable`` (there was no answer), ``truncated_by_recorder`` (the file would have been too large),
    #: ``withheld`` (a key that the recorder knows came next). The last two are the recorder's own: the answer went on.
    kind: str
    reads: int = 0  #: that came until then, kept or not
    bytes: int = 0  #: that came until then, kept or not
    sha256: str = ""  #: of all these bytes, hexadecimal; empty where reads were dropped
    dropped: int = 0  #: reads that are not in the file, since the disk was too slow


@frozen(kw_only=True)
class Recording:
    """One exchange."""

    id: str
    at: str = ""  #: when it began: ISO 8601, UTC
    streamkit: str = ""  #: the version that recorded it
    dialect: str = ""  #: of the answer; empty: not known
    provider: str = ""
    side: Side = "upstream"  #: whether the provider's bytes are recorded, or those that the gateway's client got
    #: Whether the reads are what came, byte for byte at its time.
    exact: bool = True
    removed: Sequence[str] = ()  #: what was left out: ``request.headers``
    request: RecordedRequest | None = None
    response: RecordedResponse | None = None
    reads: Sequence[Read] = field(default=(), repr=False)
    end: End | None = None  #: None: the recorder died

    @property
    def body(self) -> bytes:
        """All bytes of the answer."""
        return b"".join(read.data for read in self.reads)

    @property
    def ending(self) -> str:
        """How it ended, in a word of ``End.kind``; one without an end counts as cut."""
        return "cut" if self.end is None else self.end.kind


def is_recording(beginning: bytes) -> bool:
    """Whether a file that begins so is a recording: at least 22 bytes of it are needed."""
    return beginning.startswith(_BEGINNING)


def may_be_recording(beginning: bytes) -> bool:
    """Whether more bytes behind these, of which ``is_recording`` is not true, could make it so."""
    return len(beginning) < len(_BEGINNING) and _BEGINNING.startswith(beginning)


def read_recording(path: str | Path) -> Recording:
    """The recording in a file. Raises BadRecording, and OSError where it can't be read."""
    return parse_recording(Path(path).read_bytes(), name=str(path))


def parse_recording(content: bytes, *, name: str = "the recording") -> Recording:
    """The recording that a file's bytes are; ``name`` is what messages call it. Raises BadRecording."""
    if not is_recording(content):
        raise BadRecording(name, None, "this is no recording: its first line does not say so")
    lines = content.split(b"\n")
    last = lines.pop()  # behind the last line end: nothing, or a line that was not written to its end
    parsed = _Parsed(name)
    for number, line in enumerate(lines, 1):
        parsed.take(number, line)
    if last and not parsed.head:
        raise BadRecording(name, 1, "the line is not whole")
    return parsed.recording()


class _Parsed:
    """The lines so far."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.head: dict[str, Any] = {}
        self._request: RecordedRequest | None = None
        self._response: RecordedResponse | None = None
        self._removed: list[str] = []
        self._reads: list[Read] = []
        self._end: End | None = None

    def take(self, number: int, line: bytes) -> None:
        try:
            self._take(line)
        except (ValueError, TypeError, KeyError, RecursionError, binascii.Error) as error:
            raise BadRecording(self._name, number, f"the line can't be read: {_reason(error)}") from error

    def _take(self, line: bytes) -> None:
        if not line.strip():
            return
        value = json.loads(line)
        if isinstance(value, list):
            self._reads.append(_read(value))
        elif not isinstance(value, dict):
            raise TypeError(f"an object or a list is needed, not {quoted(value)}")
        elif MARK in value:
            if value[MARK] != VERSION:
                raise ValueError(f"version {quoted(value[MARK])} of the form is not known, only {VERSION}")
            self.head = value
        elif "request" in value:
            self._request = _request(value["request"], line)
        elif "response" in value:
            response = value["response"]
            self._removed += map(str, value.get("removed", ()))
            self._response = RecordedResponse(
                t=_seconds(value["t"]), status=int(response["status"]), headers=_headers(response)
            )
        elif "end" in value:
            self._end = End(
                t=_seconds(value["t"]),
                kind=str(value["end"]),
                reads=int(value.get("reads", 0)),
                bytes=int(value.get("bytes", 0)),
                sha256=str(value.get("sha256", "")),
                dropped=int(value.get("dropped", 0)),
            )

    def recording(self) -> Recording:
        head, end = self.head, self._end
        return Recording(
            id=str(head.get("id", "")),
            at=str(head.get("at", "")),
            streamkit=str(head.get("streamkit", "")),
            dialect=str(head.get("dialect", "")),
            provider=str(head.get("provider", "")),
            side=cast("Side", head.get("side", "upstream")),
            exact=bool(head.get("exact", True)) and (end is None or not end.dropped),
            removed=(*map(str, head.get("removed", ())), *self._removed),
            request=self._request,
            response=self._response,
            reads=tuple(self._reads),
            end=end,
        )


def _read(value: list[Any]) -> Read:
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
    return RecordedRequest(
        method=str(value.get("method", "POST")),
        path=str(value["path"]),
        headers=_headers(value),
        body=body,
        body_sha256=value.get("body_sha256"),
    )


def _headers(value: dict[str, Any]) -> dict[str, str]:
    return {str(name).lower(): str(text) for name, text in dict(value.get("headers", {})).items()}


def _seconds(value: Any) -> float:
    seconds = float(value)
    if not math.isfinite(seconds) or seconds < 0:
        raise ValueError(f"a time is a number of seconds, not {quoted(value)}")
    return seconds


def _reason(error: Exception) -> str:
    return f"{quoted(error.args[0])} is missing" if isinstance(error, KeyError) else str(error)
