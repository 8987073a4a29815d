"""The directory of recordings. It makes the files, enforces the limits on their number and size, and counts failures.

Only this user can read the files. A file's name consists of the time, random digits and the dialect, and never contains text
from a client. Several processes may write into one directory, so its files are counted again every ``COUNT_S`` seconds.

Source: observe.md O25.
"""

from __future__ import annotations

import os
import secrets
import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Final, Literal, TypeAlias

from attrs import field, frozen
from attrs.validators import ge

from streamkit.errors import UsageError
from streamkit.lab.recording.recording import SUFFIX
from streamkit.limits import MIB
from streamkit.text.quoting import quoted

#: The reasons why an exchange, or the rest of one, was not written.
Unrecorded: TypeAlias = Literal["directory_full", "disk_error", "slow_disk", "fault"]
#: The interval at which the files in the directory are counted, in seconds.
COUNT_S: Final = 10.0


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
    "directory_full": "it has {0.files:,} files or {0.all_bytes:,} bytes of recordings, which is all that it may",
    "slow_disk": "the disk is too slow, and {0.queue_bytes:,} bytes wait for it",
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
