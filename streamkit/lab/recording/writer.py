"""Write the file of one exchange, step by step: remove keys, and end the file at the limits of its directory.

Headers are written only if they are in an allow-list (``headers.py``). Known keys, including those of the request itself, are
removed from the paths and bodies of requests. Bytes of a response are never changed: if a known key occurs in them, the
recording ends before the key (``withheld``). If a read ends with the possible beginning of a key, it is held until the next
read. A key that is split by other bytes, as in the deltas of a stream, is not found.

Only this user can read the files. A file's name consists of the time, random digits and the dialect, and never contains text
from a client. Several processes may write into one directory, so its files are counted again every ``COUNT_S`` seconds.

Only the writing thread may use this module, except ``Directory.failed``.

Source: observe.md O25.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final, Literal, TypeAlias

from attrs import define, evolve, field, frozen
from attrs.validators import ge

from streamkit import __version__
from streamkit.detection import Detector
from streamkit.errors import NotThisDialect, UsageError
from streamkit.lab.recording import (
    SUFFIX,
    End,
    Read,
    RecordedRequest,
    RecordedResponse,
    Recording,
    end_line,
    head_line,
    read_line,
    request_line,
    response_line,
    sha256_of,
)
from streamkit.lab.recording.headers import (
    Bodies,
    Headers,
    kept_body,
    kept_request_headers,
    kept_response_headers,
    kept_target,
    keys_in,
)
from streamkit.limits import MIB
from streamkit.text.identifiers import random_id
from streamkit.text.known_keys import KnownKeys
from streamkit.text.quoting import quoted

#: The reasons why an exchange, or the rest of one, was not written.
Unrecorded: TypeAlias = Literal["directory_full", "disk_error", "slow_disk", "fault"]
COUNT_S: Final = 10.0  #: the interval at which the files in the directory are counted, in seconds


@frozen(kw_only=True)
class RecorderLimits:
    """The limits of recordings on disk and in memory."""

    #: Largest file, in bytes; then its recording ends. A response of 10,000 events has 2 MiB; a request may have 32 MiB.
    file_bytes: int = field(default=64 * MIB, validator=ge(4096))
    #: Most recordings in the directory, of all processes. At this number no new recording begins.
    files: int = field(default=10_000, validator=ge(1))
    #: Most bytes of all recordings in the directory. At this size no recording begins, and open ones end.
    all_bytes: int = field(default=4096 * MIB, validator=ge(1))
    #: Most bytes that wait to be written. Reads beyond it are dropped, and requests beyond it are not recorded.
    queue_bytes: int = field(default=64 * MIB, validator=ge(1))


class DirectoryFullError(Exception):
    """The directory has reached its limit of files or bytes."""


class Directory:
    """One directory, made if it does not exist. Raises UsageError if it cannot be made or written.

    ``warn`` is called with a message the first time that each reason stops a recording. Only one thread may use this
    class; ``failed`` alone may be called by any thread.
    """

    def __init__(self, path: str | Path, limits: RecorderLimits, warn: Callable[[str], None]) -> None:
        self.limits = limits
        self.files = 0  #: files that this object made
        self.bytes = 0  #: bytes that this process wrote
        self.unrecorded: Counter[Unrecorded] = Counter()
        self._path = usable_directory(path)
        self._warn = warn
        self._warned: set[str] = set()
        self._all_files = self._all_bytes = 0
        self._counted_at: float | None = None

    def make(self, began: datetime, dialect: str) -> tuple[Path, int]:
        """Make a file and return its path and descriptor. Names sort by ``began``, the UTC time when the exchange began.

        Raises OSError if the file cannot be made, and DirectoryFullError if the directory is full.
        """
        self._count()
        if self._all_files >= self.limits.files or not self.has_room(0):
            raise DirectoryFullError
        name = "-".join(filter(None, [f"{began:%Y%m%dT%H%M%S.%f}Z", secrets.token_hex(8), dialect]))
        path = self._path / f"{name}{SUFFIX}"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self.files += 1
        self._all_files += 1
        return path, descriptor

    def has_room(self, size: int) -> bool:
        """Return whether ``size`` more bytes fit into the directory's limit."""
        return self._all_bytes + size < self.limits.all_bytes

    def wrote(self, size: int) -> None:
        self.bytes += size
        self._all_bytes += size

    def failed(self, why: Unrecorded, error: Exception | None = None) -> None:
        """Count an exchange that is not recorded, or not to its end. Warn with a system error's text, or the error's type."""
        self.unrecorded[why] += 1
        if error is None:
            reason = _REASONS[why].format(self.limits)
        else:
            reason = getattr(error, "strerror", None) or type(error).__name__
        if reason not in self._warned:
            self._warned.add(reason)
            self._warn(f"exchanges are not recorded in {quoted(str(self._path))}: {reason}")

    def _count(self) -> None:
        now = time.monotonic()
        if self._counted_at is not None and now < self._counted_at + COUNT_S:
            return
        self._counted_at = now
        sizes = list(_sizes(self._path))
        self._all_files, self._all_bytes = len(sizes), sum(sizes)


_REASONS: Final = {
    "directory_full": "it has reached its limit of {0.files:,} files or {0.all_bytes:,} bytes of recordings",
    "slow_disk": "the disk is too slow: {0.queue_bytes:,} bytes wait to be written",
}


def _sizes(path: Path) -> list[int]:
    """Return the size of each recording in a directory. Leave out files that were deleted meanwhile."""
    sizes = []
    with os.scandir(path) as entries:
        for entry in entries:
            if entry.name.endswith(SUFFIX):
                try:
                    sizes.append(entry.stat(follow_symlinks=False).st_size)
                except FileNotFoundError:
                    continue
    return sizes


def usable_directory(name: str | Path) -> Path:
    """Return a directory for recordings. If it does not exist, make it readable by this user alone.

    Raises UsageError if it cannot be made or written.
    """
    path = Path(name)
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, ValueError) as error:  # ValueError: the directory's name contains U+0000
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise UsageError(f"the directory {quoted(str(path))} for recordings can't be made: {reason}") from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise UsageError(f"the directory {quoted(str(path))} for recordings can't be written: permission denied")
    return path


# -- the file of one exchange ------------------------------------------------------------------------------------------


HEAD_BYTES: Final = 512  #: bytes reserved in a file for its first line
END_BYTES: Final = 512  #: bytes reserved in a file for its last line
PENDING_BYTES: Final = MIB  #: if more bytes than this wait to be written, they are written immediately
_VERSION: Final = __version__


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
            self._detect(partial(self._detector.feed, data))

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

    def _detect(self, find: Callable[[], str | None]) -> None:
        """Make the file if ``find`` returns the dialect, or raises because there is none."""
        try:
            dialect = find()
        except NotThisDialect:
            dialect = ""
        if dialect is not None:
            self._open(dialect)

    def _end(self, at: float, kind: str) -> None:
        if self._detector is not None and self._reads:
            self._detect(self._detector.finish)
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
