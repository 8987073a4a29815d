"""The directory of recordings: new files in it, within what all of them may take, and what could not be written.

Files are this user's alone. A name is made of the time, random digits and the dialect, and nothing of it is a client's word.
Several processes may write into one directory: what the others wrote is counted from time to time.

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

#: Why an exchange, or the rest of one, is in no file.
Unrecorded: TypeAlias = Literal["directory_full", "disk_error", "slow_disk", "fault"]
#: How often it is counted what is in the directory, in seconds.
COUNT_S: Final = 10.0


@frozen(kw_only=True)
class RecorderLimits:
    """What recordings may take."""

    #: Bytes of one file, beyond which its recording ends. An answer of 10,000 events has 2 MiB; a request may have 32 MiB.
    file_bytes: int = field(default=64 * MIB, validator=ge(4096))
    #: Recordings in the directory, whoever wrote them, beyond which no other is begun.
    files: int = field(default=10_000, validator=ge(1))
    #: Bytes of all recordings in the directory, beyond which none is begun, and those under way end.
    all_bytes: int = field(default=4096 * MIB, validator=ge(1))
    #: Bytes that wait for the disk, beyond which reads are dropped. A request that does not fit in is not recorded.
    queue_bytes: int = field(default=64 * MIB, validator=ge(1))


class DirectoryFullError(Exception):
    """The directory has as much as it may."""


class Directory:
    """One directory, which is made if it is not there. Raises UsageError where it can't be, or can't be written.

    ``warn`` is told of what can't be written, once for each reason. It is for one thread, but for
    ``failed``.
    """

    def __init__(self, path: str | Path, limits: RecorderLimits, warn: Callable[[str], None]) -> None:
        self.limits = limits
        self.files = 0  #: begun here
        self.bytes = 0  #: written here
        self.unrecorded: Counter[Unrecorded] = Counter()
        self._path = usable_directory(path)
        self._warn = warn
        self._warned: set[str] = set()
        self._all_files = self._all_bytes = 0
        self._counted_at: float | None = None

    def make(self, began: datetime, dialect: str) -> tuple[Path, int]:
        """A new file and its descriptor; names are in the order in which exchanges began, which is told in UTC.

        Raises OSError, and DirectoryFullError.
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
        """Whether so many bytes more may be written."""
        return self._all_bytes + size < self.limits.all_bytes

    def wrote(self, size: int) -> None:
        self.bytes += size
        self._all_bytes += size

    def failed(self, why: Unrecorded, error: Exception | None = None) -> None:
        """An exchange is not recorded, or not to its end. Of an error that is none of the system's only the kind is told."""
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
    """Of every recording in a directory; of one that is gone meanwhile, or can't be looked at, nothing."""
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
    """A directory for recordings, which is made for this user alone if it is not there.

    Raises UsageError where it can't be made, or can't be written.
    """
    path = Path(name)
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, ValueError) as error:  # a name with U+0000
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise UsageError(f"the directory {quoted(str(path))} for recordings can't be made: {reason}") from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise UsageError(f"the directory {quoted(str(path))} for recordings can't be written: permission denied")
    return path
