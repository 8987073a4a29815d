"""The metrics of one worker in files, in the format of prometheus-client, but safe if the disk is full.

The library maps a file before its disk space exists: in a full folder, the first write raises SIGBUS and kills the worker.
Here the space is written first, and a full disk raises an exception. A series without a file is kept in the process, the log
says once that ``/metrics`` is incomplete, and each new series tries again.

Source: prometheus-client 0.21 to 0.25, ``values.py`` and ``mmap_dict.py``; mmap(2) on SIGBUS.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from prometheus_client import values
from prometheus_client.mmap_dict import MmapedDict, mmap_key

from streamkit.gateway.log import log

MULTIPROCESS_DIR: Final = "PROMETHEUS_MULTIPROC_DIR"
#: The initial size of a metrics file, the same as in prometheus_client.
FILE_BYTES: Final = 64 * 1024
#: The size of an entry without its key: its length, padding to 8 bytes, two numbers.
ENTRY_BYTES: Final = 4 + 8 + 16


def use_count_files() -> None:
    """Make every metric that is created from now on write to these files, if there are several workers."""
    if MULTIPROCESS_DIR in os.environ:
        values.ValueClass = CountValue  # prometheus_client documents this assignment


class CountFile(MmapedDict):
    """A file of metrics whose mapped space is already on the disk. Raises OSError if the disk is full."""

    def __init__(self, path: str) -> None:
        try:
            take_room(path, 0, FILE_BYTES)
        except OSError:
            with suppress(OSError):
                # an incomplete file would make prometheus_client fail to read all files
                Path(path).unlink(missing_ok=True)
            raise
        self._path = path
        super().__init__(path)  # type: ignore[no-untyped-call]  # the library has no types here

    def _init_value(self, key: str) -> None:
        needed, capacity = self._used + len(key.encode()) + ENTRY_BYTES, self._capacity
        while capacity < needed:
            capacity *= 2
        if capacity > self._capacity:
            take_room(self._path, self._capacity, capacity)
        super()._init_value(key)  # type: ignore[no-untyped-call]  # the library has no types here


def take_room(path: str, start: int, end: int) -> None:
    """Write zeros from ``start`` to ``end``. Raises OSError if the disk is full."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        while start < end:
            start += os.pwrite(descriptor, bytes(end - start), start)
    finally:
        os.close(descriptor)


class CountValue:
    """The value of one series: in a file, or in the process if there is no file."""

    _multiprocess = True  # prometheus_client reads this attribute

    def __init__(
        self,
        typ: str,
        metric_name: str,
        name: str,
        labelnames: Any,
        labelvalues: Any,
        help_text: str,
        multiprocess_mode: str = "",
        **_more: Any,
    ) -> None:
        self._value = 0.0
        self._key = mmap_key(metric_name, name, labelnames, labelvalues, help_text)
        self._file: CountFile | None = None
        try:
            file = _file(f"{typ}_{multiprocess_mode}" if typ == "gauge" else typ)
            file.read_value(self._key)  # type: ignore[no-untyped-call]  # the library has no types here
            self._file = file
        except OSError as error:
            _warn_once(error)

    def inc(self, amount: float) -> None:
        self.set(self._value + amount)

    def set(self, value: float, timestamp: float | None = None) -> None:
        self._value = value
        if self._file is not None:
            self._file.write_value(self._key, value, timestamp or 0.0)  # type: ignore[no-untyped-call]  # the library has no types here

    def get(self) -> float:
        return self._value

    def set_exemplar(self, exemplar: Any) -> None:
        """Do nothing: metrics files contain no exemplars, as in prometheus_client."""

    def get_exemplar(self) -> None:
        return None


_files: dict[str, CountFile] = {}
_warned = False


def _file(kind: str) -> CountFile:
    path = str(Path(os.environ[MULTIPROCESS_DIR], f"{kind}_{os.getpid()}.db"))
    if path not in _files:
        _files[path] = CountFile(path)
    return _files[path]


def _warn_once(error: OSError) -> None:
    global _warned  # noqa: PLW0603 - one line per process, however many series have no file
    if not _warned:
        _warned = True
        log.error("counts find no place in their folder; /metrics lacks them", extra={"fields": {"reason": str(error)}})
