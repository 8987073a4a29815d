"""Write the file of one exchange, step by step: remove keys, and end the file at its limits.

Headers are written only if they are in an allow-list (``headers.py``). Known keys, including those of the request itself, are
removed from the paths and bodies of requests. Bytes of a response are never changed: if a known key occurs in them, the
recording ends before the key (``withheld``). If a read ends with the possible beginning of a key, it is held until the next
read. A key that is split by other bytes, as in the deltas of a stream, is not found.

Only the writing thread may use this module.

Source: observe.md O25.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final, TypeAlias

from attrs import define, evolve, field, frozen

from streamkit.detection import Detector
from streamkit.errors import NotThisDialect
from streamkit.lab.recording.directory import Directory, DirectoryFullError
from streamkit.lab.recording.headers import Headers, kept_request_headers, kept_response_headers, kept_target, keys_in
from streamkit.lab.recording.lines import end_line, head_line, read_line, request_line, response_line, sha256_of
from streamkit.lab.recording.recording import End, Read, RecordedRequest, RecordedResponse, Recording
from streamkit.lab.recording.request_bodies import Bodies, kept_body
from streamkit.limits import MIB
from streamkit.text.identifiers import random_id
from streamkit.text.known_keys import KnownKeys

#: Bytes reserved in a file for its first line.
HEAD_BYTES: Final = 512
#: Bytes reserved in a file for its last line.
END_BYTES: Final = 512
#: If more bytes than this wait to be written, they are written immediately.
PENDING_BYTES: Final = MIB
_VERSION: Final = version("streamkit-llm")


@frozen
class Asked:
    """A request was sent."""

    method: str
    target: str  #: path and query as sent
    headers: Headers = field(repr=False)
    body: bytes | None = field(repr=False)


@frozen
class Answered:
    """The headers of the response arrived."""

    status: int
    headers: Headers = field(repr=False)


@frozen
class Ended:
    """The exchange ended."""

    kind: str


#: One step of an exchange. Bytes are one read.
RecordedStep: TypeAlias = bytes | Asked | Answered | Ended


@define(eq=False)
class RecordingWriter:
    """Write one exchange into a new file. Errors are counted by ``directory`` and never raised."""

    directory: Directory
    keys: KnownKeys = field(repr=False)
    bodies: Bodies
    dialect: str | None  #: "": unknown; None: detect it from the bytes of the response
    provider: str
    is_exact: bool
    dropped: int = 0  #: number of reads so far that were dropped
    dropped_bytes: int = 0
    is_over: bool = False  #: True: nothing more is written
    path: Path | None = None  #: the file's path; None until the file exists
    ending: str = ""  #: the kind of end that is written in the file
    _began: datetime = field(init=False, factory=lambda: datetime.now(UTC))
    _id: str = field(init=False, factory=lambda: random_id("rec_"))
    _request: bytes | None = field(init=False, default=None)  # the request's line, until the file exists
    _removed: list[str] = field(init=False, factory=list)
    _descriptor: int | None = field(init=False, default=None)
    _detector: Detector | None = field(init=False, default=None)
    _lines: list[bytes] = field(init=False, factory=list)  # lines that are not written yet
    _pending: int = field(init=False, default=0)  # bytes of ``_lines``
    _size: int = field(init=False, default=0)  # bytes of the file, including pending lines
    _written: int = field(init=False, default=0)  # bytes of the file that are written
    _held: list[Read] = field(init=False, factory=list)  # reads that may end with the beginning of a key
    _tail: bytes = field(init=False, default=b"")  # the last bytes before ``_held``
    _reads: int = field(init=False, default=0)
    _bytes: int = field(init=False, default=0)
    _sha256: hashlib._Hash = field(init=False, factory=hashlib.sha256)

    def take(self, at: float, step: RecordedStep) -> None:
        """Record a step that happened ``at`` seconds after the request."""
        if self.is_over:
            return
        try:
            self._take(at, step)
        except Exception as error:  # noqa: BLE001 - a fault in one exchange is counted, and the others are recorded
            self.directory.failed("fault", error)
            self.flush()
            self._close()

    def _take(self, at: float, step: RecordedStep) -> None:
        if isinstance(step, bytes):
            self._read(at, step)
        elif isinstance(step, Asked):
            self._begin(step)
        elif isinstance(step, Answered):
            self._answered(at, step)
        else:
            self._end(at, step.kind)
        if self._pending > PENDING_BYTES:
            self.flush()

    def flush(self) -> None:
        if self._descriptor is None or not self._lines:
            return
        size = self._pending
        data = memoryview(b"".join(self._lines))
        self._lines.clear()
        self._pending = 0
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError as error:
            self.directory.failed("disk_error", error)
            self._take_back(self._descriptor)
            self._close()
            return
        self._written += size
        self.directory.wrote(size)

    def _take_back(self, descriptor: int) -> None:
        """Remove an incomplete line from the file, and delete the file if it has no line."""
        with suppress(OSError):  # the disk error is already counted; readers drop an incomplete last line
            os.ftruncate(descriptor, self._written)
            if not self._written and self.path is not None:
                self.path.unlink()
                self.path = None

    # -- the steps of an exchange --------------------------------------------------------------------------------------

    def _begin(self, asked: Asked) -> None:
        self.keys = self.keys.with_more(keys_in(asked.headers, asked.target))
        headers, has_others = kept_request_headers(asked.headers)
        shown = self._without_keys(headers)
        path, had_keys = kept_target(asked.target)
        cut_path = self._cut(path)
        body = None if asked.body is None else kept_body(asked.body, self.bodies)
        body = body and self.keys.cut(body)
        request = RecordedRequest(
            method=asked.method,
            path=cut_path,
            headers=shown,
            body=body,
            body_sha256=None if asked.body is None else sha256_of(asked.body),
        )
        removed = {
            "request.headers": has_others or shown != headers,
            "request.path": had_keys or cut_path != path,
            "request.body": body != asked.body,
        }
        self._request = request_line(request)
        if body and HEAD_BYTES + len(self._request) + END_BYTES > self.directory.limits.file_bytes:
            self._request = request_line(evolve(request, body=None))
            removed["request.body"] = True
        self._size = HEAD_BYTES + len(self._request)
        self._removed = [what for what, is_removed in removed.items() if is_removed]
        if self.dialect is None:
            self._detector = Detector()
        else:
            self._open(self.dialect)

    def _open(self, dialect: str) -> None:
        """Make the file once the dialect is known. Put its first two lines before the lines that wait to be written."""
        self._detector = None
        if self._request is None:
            return
        about = Recording(
            id=self._id,
            at=f"{self._began:%Y-%m-%dT%H:%M:%S.%f}Z",
            streamkit=_VERSION,
            dialect=dialect,
            provider=self.provider,
            exact=self.is_exact,
            removed=tuple(self._removed),
        )
        request, self._request = self._request, None
        try:
            self.path, self._descriptor = self.directory.make(self._began, dialect)
        except DirectoryFullError:
            self.directory.failed("directory_full")
        except OSError as error:
            self.directory.failed("disk_error", error)
        if self._descriptor is None:
            self.is_over = True
            return
        head = head_line(about)
        self._lines[:0] = [head, request]
        self._pending += len(head) + len(request)

    def _answered(self, at: float, answered: Answered) -> None:
        headers, has_others = kept_response_headers(answered.headers)
        shown = self._without_keys(headers)
        removed = ["response.headers"] if has_others or shown != headers else []
        response = RecordedResponse(t=at, status=answered.status, headers=shown)
        self._add(at, response_line(response, removed=removed))

    def _read(self, at: float, data: bytes) -> None:
        self._reads += 1
        self._bytes += len(data)
        self._sha256.update(data)
        self._held.append(Read(at, data))
        if self.keys.keys:
            came = self._tail + b"".join(read.data for read in self._held)
            if self.keys.are_in(came):
                self._held.clear()
                self._finish(at, "withheld")
                return
            self._release(self.keys.begins_at(came) - len(self._tail))
        else:
            self._release(len(data))
        if self._detector is not None:
            self._detect(self._detector, data)

    def _release(self, until: int) -> None:
        """Add lines for the held reads that end at or before byte ``until`` of all held bytes."""
        end = 0
        while self._held and not self.is_over:
            end += len(self._held[0].data)
            if end > until:
                return
            read = self._held.pop(0)
            if self.keys.keys:
                self._tail = (self._tail + read.data)[-self.keys.longest_bytes :]
            self._add(read.t, read_line(read))

    def _detect(self, detector: Detector, data: bytes) -> None:
        try:
            dialect = detector.feed(data)
        except NotThisDialect:
            dialect = ""
        if dialect is not None:
            self._open(dialect)

    def _end(self, at: float, kind: str) -> None:
        if self._detector is not None:
            try:
                dialect = self._detector.finish()
            except NotThisDialect:
                dialect = ""
            self._open(dialect if self._reads else "")
        self._release(sum(len(read.data) for read in self._held))
        self._finish(at, kind)

    def _finish(self, at: float, kind: str) -> None:
        """Write the last line, unless the recording is over."""
        if self._request is not None:
            self._open("")
        if self.is_over:
            return
        sha256 = "" if self.dropped else self._sha256.hexdigest()
        reads, size = self._reads + self.dropped, self._bytes + self.dropped_bytes
        end = End(t=at, kind=kind, reads=reads, bytes=size, sha256=sha256, dropped=self.dropped)
        line = end_line(end)
        self._lines.append(line)
        self._pending += len(line)
        self.ending = kind
        self.flush()
        self._close()

    # -- lines and bytes -----------------------------------------------------------------------------------------------

    def _add(self, at: float, line: bytes) -> None:
        if self.is_over:
            return
        fits = self._size + len(line) <= self.directory.limits.file_bytes - END_BYTES
        if not fits or not self.directory.has_room(self._pending + len(line)):
            self._held.clear()
            self._finish(at, "truncated_by_recorder")
            return
        self._lines.append(line)
        self._size += len(line)
        self._pending += len(line)

    def _close(self) -> None:
        self.is_over = True
        self._lines.clear()
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            try:
                os.close(descriptor)
            except OSError as error:  # a network file system may report a full disk only here
                self.directory.failed("disk_error", error)

    def _without_keys(self, headers: dict[str, str]) -> dict[str, str]:
        return {name: value for name, value in headers.items() if self._cut(value) == value}

    def _cut(self, text: str) -> str:
        return self.keys.cut(text.encode("utf-8", "surrogateescape")).decode("utf-8", "replace")
