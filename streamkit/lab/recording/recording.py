"""The recording as a value, and the parser of its file.

The first line marks the file as a recording. The request, the response's headers, its reads in order, and the end follow. If
the recorder was killed, the last line may be incomplete: that line is dropped, and the recording has no end. Unknown members
are ignored, so that later versions may add members. A JSON request body is in the file byte for byte, except that its line
ends are blanks, so numbers such as ``1.0`` and 2^64 keep their spelling.

Raises BadRecording for a file that is not a recording, and, with its number, for a line in the middle that cannot be read.

Source: observe.md §D, O25, O29.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from attrs import Attribute, evolve, field, frozen
from attrs.validators import deep_iterable, optional

from streamkit.errors import SourceFailed
from streamkit.text.quoting import quoted
from streamkit.tool_calls.value_text import value_text

#: The suffix of a recording's file name.
SUFFIX: Final = ".stream.jsonl"
#: The only version of the format that is read and written.
VERSION: Final = 1
#: The name of the first member of a recording's first line, which identifies the format.
MARK: Final = "streamkit_recording"
_BEGINNING: Final = b'{"streamkit_recording"'

#: Errors that reading code raises for a value of an unexpected type, size or depth.
_UNREADABLE: Final = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)

Side = Literal["upstream", "client"]
_NO_HEADERS: Final[Mapping[str, str]] = {}


class BadRecording(SourceFailed):
    """The file is not a recording, or one of its lines cannot be read."""

    def __init__(self, name: str, line: int | None, reason: str) -> None:
        place = name if line is None else f"{name}:{line}"
        super().__init__(f"{place}: {reason}")


@contextmanager
def readable(name: str, line: int | None, what: str) -> Iterator[None]:
    """Raise errors about a value in the file as BadRecording. ``what`` is the place or problem named in the message."""
    try:
        yield
    except _UNREADABLE as error:
        reason = f"{quoted(error.args[0])} is missing" if isinstance(error, KeyError) else str(error)
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
            raise ValueError(f"the header {quoted(name)} has a character that no header may have: {quoted(value)}")


def _in(allowed: Container[Any], what: str) -> Callable[[Any, Attribute[Any], Any], None]:
    """Return a validator for the values of ``allowed``, which ``what`` describes."""

    def check(_recording: Any, attribute: Attribute[Any], value: Any) -> None:
        if value not in allowed:
            raise ValueError(f"{attribute.name} must be {what}, not {quoted(value)}")

    return check


#: Counts below 2^53, which every JSON reader represents exactly.
_COUNT: Final = _in(range(1 << 53), "a count")


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
    #: Hash of all these bytes, in hexadecimal; empty if reads were dropped.
    sha256: str = field(default="", validator=_is_text)
    dropped: int = field(default=0, validator=_COUNT)  #: reads that are not in the file because the disk was too slow


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
    #: Whether the reads have the received bytes and times, unchanged and complete.
    exact: bool = True
    #: Names of the parts that were left out, such as ``request.headers``.
    removed: Sequence[str] = field(default=(), validator=deep_iterable(_is_text))
    request: RecordedRequest | None = None
    response: RecordedResponse | None = None
    reads: Sequence[Read] = field(default=(), repr=False)
    end: End | None = None  #: None: the recorder was killed

    @property
    def body(self) -> bytes:
        """All recorded bytes of the response body."""
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
        raise BadRecording(name, None, "this is no recording: its first line does not say so")
    lines = content.split(b"\n")
    last = lines.pop()  # the text after the last line end: empty, or an incomplete line
    parsed = _Parsed()
    for number, line in enumerate(lines, 1):
        with readable(name, number, "the line can't be read"):
            parsed.take(line)
    if last and parsed.head is None:
        raise BadRecording(name, 1, "the line is not whole")
    return parsed.recording()


class _Parsed:
    """The content of the lines that were parsed so far."""

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
            raise TypeError(f"an object or a list is needed, not {quoted(value)}")
        elif MARK in value:
            if value[MARK] != VERSION:
                raise ValueError(f"version {quoted(value[MARK])} of the form is not known, only {VERSION}")
            self.head = Recording(
                id=str(value.get("id", "")),
                at=str(value.get("at", "")),
                streamkit=str(value.get("streamkit", "")),
                dialect=str(value.get("dialect", "")),
                provider=str(value.get("provider", "")),
                side=value.get("side", "upstream"),
                exact=bool(value.get("exact", True)),
                removed=tuple(map(str, value.get("removed", ()))),
            )
        elif "request" in value:
            self._request = _request(value["request"], line)
        elif "response" in value:
            response = value["response"]
            self._removed += map(str, value.get("removed", ()))
            self._response = RecordedResponse(
                t=_seconds(value["t"]), status=int(response["status"]), headers=headers_in(response)
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
    seconds = float(value)
    if not math.isfinite(seconds) or seconds < 0:
        raise ValueError(f"a time is a number of seconds, not {quoted(value)}")
    return seconds
