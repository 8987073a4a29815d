"""A recording as a value, and its file read.

Each line is whole when it is written: of a recorder that was killed the last may be half, which is dropped, and the recording
has no end. The first line says that it is a recording; then come the request, the headers of the answer, its reads in order,
and the end. Unknown members are passed over, so that later versions may add some. The body of a request that is JSON is in
the file as it was, but for its line ends, which are blanks there: ``1.0`` and 2^64 stay what they were.

What is no recording is refused, and so is a line in the middle that can't be read, with its number.

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

#: What files of recordings are called.
SUFFIX: Final = ".stream.jsonl"
#: The version of the form that is read and written.
VERSION: Final = 1
#: The member that the first line begins with.
MARK: Final = "streamkit_recording"
_BEGINNING: Final = b'{"streamkit_recording"'

#: Errors that a value of another type, size or depth raises in the code that reads it.
_UNREADABLE: Final = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)

Side = Literal["upstream", "client"]
_NO_HEADERS: Final[Mapping[str, str]] = {}


class BadRecording(SourceFailed):
    """A file is no recording, or a line of it can't be read."""

    def __init__(self, name: str, line: int | None, reason: str) -> None:
        place = name if line is None else f"{name}:{line}"
        super().__init__(f"{place}: {reason}")


@contextmanager
def readable(name: str, line: int | None, what: str) -> Iterator[None]:
    """Read ``what`` of a file: any fault of a value in it is raised as BadRecording, with its reason."""
    try:
        yield
    except _UNREADABLE as error:
        reason = f"{quoted(error.args[0])} is missing" if isinstance(error, KeyError) else str(error)
        raise BadRecording(name, line, f"{what}: {reason}") from error


def _is_text(_recording: Any, attribute: Attribute[str], value: str) -> None:
    """Refuse half of a surrogate pair, which JSON can name and no file, header or terminal can hold."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{attribute.name} has half of a surrogate pair: {quoted(value)}") from None


def _are_headers(_recording: Any, _attribute: Attribute[Mapping[str, str]], headers: Mapping[str, str]) -> None:
    """Refuse a line end or another control character: a server that replays it would write another header."""
    for name, value in headers.items():
        if not (name + value).isprintable():
            raise ValueError(f"the header {quoted(name)} has a character that no header may have: {quoted(value)}")


def _in(allowed: Container[Any], what: str) -> Callable[[Any, Attribute[Any], Any], None]:
    """Return a validator for the values of ``allowed``, which ``what`` describes."""

    def check(_recording: Any, attribute: Attribute[Any], value: Any) -> None:
        if value not in allowed:
            raise ValueError(f"{attribute.name} must be {what}, not {quoted(value)}")

    return check


#: Whole numbers that every reader of JSON has exactly.
_COUNT: Final = _in(range(1 << 53), "a count")


class Read(NamedTuple):
    """One read of an answer: what came at once."""

    t: float  #: seconds since the request was sent
    data: bytes


@frozen(kw_only=True)
class RecordedRequest:
    """What was asked."""

    method: str = field(default="POST", validator=_is_text)
    path: str = field(validator=_is_text)  #: with its query, of which keys were taken out
    #: Those of the allow-list (``headers.py``).
    headers: Mapping[str, str] = field(default=_NO_HEADERS, validator=_are_headers)
    body: bytes | None = field(default=None, repr=False)  #: None: not kept
    #: Of the body as it was sent, hexadecimal; None where nobody counted it.
    body_sha256: str | None = field(default=None, validator=optional(_is_text))


@frozen(kw_only=True)
class RecordedResponse:
    """The beginning of an answer."""

    t: float  #: seconds since the request was sent
    status: int = field(validator=_in(range(200, 1000), "200 to 999"))
    #: Those of the allow-list (``headers.py``).
    headers: Mapping[str, str] = field(default=_NO_HEADERS, validator=_are_headers)


@frozen(kw_only=True)
class End:
    """How an exchange ended."""

    t: float  #: seconds since the request was sent
    #: ``whole`` (as HTTP says), ``cut`` (closed inside the body), ``reset``, ``client_left``, ``timeout:`` and which one,
    #: ``shut_down``, ``unreachable`` (there was no answer), ``truncated_by_recorder`` (the file would have been too large),
    #: ``withheld`` (a key that the recorder knows came next). The last two are the recorder's own: the answer went on.
    kind: str = field(validator=_is_text)
    reads: int = field(default=0, validator=_COUNT)  #: that came until then, kept or not
    bytes: int = field(default=0, validator=_COUNT)  #: that came until then, kept or not
    #: Of all these bytes, hexadecimal; empty where reads were dropped.
    sha256: str = field(default="", validator=_is_text)
    dropped: int = field(default=0, validator=_COUNT)  #: reads that are not in the file, since the disk was too slow


@frozen(kw_only=True)
class Recording:
    """One exchange."""

    id: str = field(validator=_is_text)
    at: str = field(default="", validator=_is_text)  #: when it began: ISO 8601, UTC
    streamkit: str = field(default="", validator=_is_text)  #: the version that recorded it
    dialect: str = field(default="", validator=_is_text)  #: of the answer; empty: not known
    provider: str = field(default="", validator=_is_text)
    #: Whether the provider's bytes are recorded, or those that the gateway's client got.
    side: Side = field(default="upstream", validator=_in(("upstream", "client"), "upstream or client"))
    #: Whether the reads are what came, byte for byte at its time.
    exact: bool = True
    #: What was left out: ``request.headers``.
    removed: Sequence[str] = field(default=(), validator=deep_iterable(_is_text))
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
    parsed = _Parsed()
    for number, line in enumerate(lines, 1):
        with readable(name, number, "the line can't be read"):
            parsed.take(line)
    if last and parsed.head is None:
        raise BadRecording(name, 1, "the line is not whole")
    return parsed.recording()


class _Parsed:
    """The lines so far."""

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
