"""Record the exchanges of a process: the event loop puts them into a queue, and one thread writes them.

On the event loop, recording a read costs one comparison and one queue item. While an exchange is open, the thread empties the
queue fifty times a second and writes the lines of each file at once, so that a file is readable even if the process is killed.
The event loop never waits for the thread, and an error in the thread never reaches the loop. If the disk is so slow that the
queue is full, reads are dropped, and the file's last line has their number. If nothing can be written, the recorder warns once
for each reason and counts the exchanges.

Source: observe.md O24, O26, F49.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

from streamkit.lab.recording.headers import Bodies, Headers
from streamkit.lab.recording.writer import (
    Answered,
    Asked,
    Directory,
    Ended,
    RecordedStep,
    RecorderLimits,
    RecordingWriter,
    Unrecorded,
)
from streamkit.text.known_keys import KnownKeys

WRITE_S: Final = 0.02  #: the interval at which the thread writes, in seconds
#: The longest turn of the thread, in seconds. The event loop waits while the thread holds the interpreter.
TURN_S: Final = 0.0003
PAUSE_S: Final = 0.0002  #: the thread's pause after each such turn, in seconds
ITEM_BYTES: Final = 200  #: estimated size of a queue item without its data, in bytes
CLOSE_S: Final = 5.0  #: how long closing a recorder waits for unwritten data, in seconds
#: Called in the writing thread with the file (None: not recorded) and the end that is written in the file.
Saved: TypeAlias = Callable[[Path | None, str], object]


class Recorder:
    """Record the exchanges of a process into a directory. Close it at the end. Use it from one thread only.

    ``keys`` are never written to disk, except keys under 8 characters, which may be ordinary words. ``warn`` is called in the
    writing thread with each reason why something cannot be written, once. Raises UsageError for an unusable directory.
    """

    def __init__(
        self,
        directory: str | Path,
        *,
        keys: Iterable[str] = (),
        bodies: Bodies = "full",
        limits: RecorderLimits | None = None,
        warn: Callable[[str], None],
    ) -> None:
        self.limits = limits or RecorderLimits()
        self.dropped = 0  #: reads that were not recorded because the disk was too slow
        self.queue: deque[tuple[OpenRecording, float, RecordedStep]] = deque()
        self.queued_bytes = 0  #: bytes of all items that were ever queued
        self.taken_bytes = 0  #: bytes of the items that the thread has taken
        self.directory = Directory(directory, self.limits, warn)
        self._keys, self._bodies = KnownKeys(keys), bodies
        self._open = 0  # exchanges whose end the thread has not reached
        self._wake = threading.Event()
        self._is_idle = self._is_closing = False
        self._thread = threading.Thread(target=self._run, name="streamkit-recorder", daemon=True)
        self._thread.start()

    def hide(self, keys: Iterable[str]) -> None:
        """Never write these keys to disk, instead of the earlier ones, in exchanges that begin from now on."""
        self._keys = KnownKeys(keys)

    @property
    def files(self) -> int:
        return self.directory.files

    @property
    def bytes(self) -> int:
        return self.directory.bytes

    @property
    def unrecorded(self) -> Counter[Unrecorded]:
        """Number of exchanges without a file or without their end, by reason."""
        return self.directory.unrecorded

    def open(
        self, *, dialect: str | None = "", provider: str = "", exact: bool = True, saved: Saved | None = None
    ) -> OpenRecording:
        """Begin an exchange. ``dialect`` is that of its response; "": unknown; None: detect it from the response's bytes.

        ``saved`` is called with the file's path and end once the file is closed.
        """
        writer = RecordingWriter(self.directory, self._keys, self._bodies, dialect, provider, exact)
        again = partial(self.open, dialect=dialect, provider=provider, exact=exact, saved=saved)
        return OpenRecording(self, writer, again, saved)

    def put(self, recording: OpenRecording, at: float, step: RecordedStep, size: int = 0) -> None:
        """Queue ``step``, which happened ``at`` seconds after the request. ``size`` is the number of bytes of its data."""
        self.queued_bytes += size + ITEM_BYTES
        self.queue.append((recording, at, step))
        if self._is_idle:
            self._wake.set()

    def has_room(self, size: int) -> bool:
        """Return whether the queue has room for ``size`` more bytes."""
        return self.queued_bytes - self.taken_bytes + size <= self.limits.queue_bytes

    def close(self, within_s: float = CLOSE_S) -> bool:
        """Write what is queued and end the thread. Block for up to ``within_s`` seconds; return whether the thread ended."""
        self._is_closing = True
        self._wake.set()
        self._thread.join(within_s)
        return not self._thread.is_alive()

    # -- in the thread -------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while self.queue or not self._is_closing:
            self._write()
            if self._is_closing:
                continue
            if self._open or self.queue:
                time.sleep(WRITE_S)
                continue
            self._wake.clear()
            self._is_idle = True  # from here on, `put` wakes the thread
            if not self.queue and not self._is_closing:
                self._wake.wait()
            self._is_idle = False

    def _write(self) -> None:
        """Write all queued steps of each exchange."""
        written: dict[OpenRecording, None] = {}
        turn_ends = time.monotonic() + TURN_S
        for _ in range(len(self.queue)):
            if time.monotonic() > turn_ends:
                time.sleep(PAUSE_S)
                turn_ends = time.monotonic() + TURN_S
            recording, at, step = self.queue.popleft()
            size = len(step) if isinstance(step, bytes) else len(step.body or b"") if isinstance(step, Asked) else 0
            writer = recording.writer
            writer.dropped, writer.dropped_bytes = recording.dropped, recording.dropped_bytes
            self._open += isinstance(step, Asked)
            writer.take(at, step)
            if writer.is_over:
                recording.is_over = True
            self.taken_bytes += size + ITEM_BYTES
            written[recording] = None
            if isinstance(step, Ended):
                self._open -= 1
                if recording.saved is not None:
                    recording.saved(writer.path, writer.ending)
        for recording in written:
            recording.writer.flush()


class OpenRecording:
    """The recording of one exchange: its request, perhaps a response with its reads, and its end."""

    __slots__ = (
        *("_again", "_recorder", "_started", "again", "dropped", "dropped_bytes", "ending", "is_over", "saved"),
        "writer",
    )

    def __init__(
        self,
        recorder: Recorder,
        writer: RecordingWriter,
        again: Callable[[], OpenRecording],
        saved: Saved | None = None,
    ) -> None:
        self.again = again  #: returns the recording of another exchange with the same server
        self.writer, self.saved = writer, saved  #: used by the writing thread
        self.ending = ""  #: how the exchange ended, as a value of ``End.kind``; empty: still open
        self.dropped = self.dropped_bytes = 0
        self.is_over = False  #: True: further reads are ignored
        self._recorder = recorder
        self._started: float | None = None
        self._again = 0  # bytes that were put back and will be read a second time

    def request(self, method: str, target: str, headers: Headers, body: bytes | None) -> None:
        """Record that a request is sent. Times count from now. ``target`` is path and query, percent-encoded as sent."""
        size = len(body or b"")
        if not self._recorder.has_room(size):
            self._recorder.directory.failed("slow_disk")
            return
        self._started = time.monotonic()
        self._recorder.put(self, 0.0, Asked(method, target, tuple(headers), body), size)

    def response(self, status: int, headers: Headers) -> None:
        if self._started is not None and not self.is_over:
            self._recorder.put(self, time.monotonic() - self._started, Answered(status, tuple(headers)))

    def read(self, data: bytes) -> None:
        if self._again:
            again, self._again = self._again, max(0, self._again - len(data))
            data = data[again:]
        if self.is_over or self._started is None or not data:
            return
        recorder, size = self._recorder, len(data) + ITEM_BYTES
        if recorder.queued_bytes - recorder.taken_bytes + size > recorder.limits.queue_bytes:
            self.dropped += 1
            self.dropped_bytes += len(data)
            recorder.dropped += 1
            return
        recorder.queued_bytes += size
        # no wake-up is needed: while an exchange is open, the thread checks the queue by itself
        recorder.queue.append((self, time.monotonic() - self._started, data))

    def unread(self, data: bytes) -> None:
        """Note that these bytes were put back, so that they are not recorded twice when they are read again."""
        self._again += len(data)

    def end(self, kind: str) -> None:
        """Record the end. ``kind`` is a value of ``End.kind``. Only the first call counts."""
        if self.ending:
            return
        self.ending, self.is_over = kind, True
        if self._started is not None:
            self._recorder.put(self, time.monotonic() - self._started, Ended(kind))
        elif self.saved is not None:
            self.saved(None, "")
