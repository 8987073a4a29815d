"""Recording the exchanges of a process: told of on the event loop, written by one thread.

On the loop a read is a comparison and an item of a queue. The thread takes what is there fifty times a second, while an
exchange is open, and writes the lines of each file at once, so that a file can be read however its process ends. Nothing waits
for it, and nothing that fails there reaches the loop: where the disk is so slow that the queue is full, reads are left out,
which the file's last line says; where nothing can be written, that is said once, and counted.

Source: observe.md O24, O26, F49.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, TypeAlias

from streamkit.lab.recording.directory import Directory, RecorderLimits, Unrecorded
from streamkit.lab.recording.headers import Headers
from streamkit.lab.recording.request_bodies import Bodies
from streamkit.lab.recording.writer import Answered, Asked, Ended, RecordedStep, RecordingWriter
from streamkit.text.known_keys import KnownKeys

#: How often what came is written, in seconds.
WRITE_S: Final = 0.02
#: How long is written in one turn, and the pause behind it, in seconds: the loop waits for as long as the interpreter is held.
TURN_S: Final = 0.0003
PAUSE_S: Final = 0.0002
#: What an item of the queue takes beside its bytes.
ITEM_BYTES: Final = 200
#: How long the end of a recorder waits for what is still to be written, in seconds.
CLOSE_S: Final = 5.0
#: Is told where an exchange was recorded, None: nowhere, and the end that stands in the file; in the thread that writes.
Saved: TypeAlias = Callable[[Path | None, str], None]


class Recorder:
    """What records the exchanges of a process into a directory; to be closed. Its methods are for one thread.

    ``keys`` are kept off the disk; those under 8 characters can't be. ``warn`` is told, in the thread that writes, of what
    can't be written, once for each reason. Raises UsageError for a directory that can't be made or written.
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
        self.dropped = 0  #: reads that are in no file, since the disk was too slow
        self.queue: deque[tuple[OpenRecording, float, RecordedStep]] = deque()
        self.queued_bytes = 0  #: of all items ever
        self.taken_bytes = 0  #: of those that were taken
        self._directory = Directory(directory, self.limits, warn)
        self._keys, self._bodies = KnownKeys(keys), bodies
        self._open = 0  # exchanges of which the thread has not seen the end
        self._wake = threading.Event()
        self._is_idle = self._is_closing = False
        self._thread = threading.Thread(target=self._run, name="streamkit-recorder", daemon=True)
        self._thread.start()

    @property
    def files(self) -> int:
        """Files that were begun."""
        return self._directory.files

    @property
    def bytes(self) -> int:
        """Bytes that were written."""
        return self._directory.bytes

    @property
    def unrecorded(self) -> Counter[Unrecorded]:
        """How many exchanges are in no file, or not to their end, by reason."""
        return self._directory.unrecorded

    def open(
        self, *, dialect: str | None = "", provider: str = "", exact: bool = True, saved: Saved | None = None
    ) -> OpenRecording:
        """Begin an exchange. ``dialect`` is that of its answer; "": nobody knows it; None: the answer's bytes are to tell.

        ``saved`` is told, once the file is closed, where the exchange was recorded.
        """
        writer = RecordingWriter(self._directory, self._keys, self._bodies, dialect, provider, exact)
        return OpenRecording(self, writer, saved)

    def put(self, recording: OpenRecording, at: float, step: RecordedStep, size: int = 0) -> None:
        """Hand over what happened, ``at`` seconds behind the request; ``size`` is what it takes beside the item."""
        self.queued_bytes += size + ITEM_BYTES
        self.queue.append((recording, at, step))
        if self._is_idle:
            self._wake.set()

    def has_room(self, size: int) -> bool:
        """Whether the queue takes so many bytes more."""
        return self.queued_bytes - self.taken_bytes + size <= self.limits.queue_bytes

    def refused(self) -> None:
        """An exchange is not recorded, since the queue is full."""
        self._directory.failed("slow_disk")

    def close(self, within_s: float = CLOSE_S) -> bool:
        """Write what is left and end the thread, within so many seconds; whether it could. It blocks meanwhile."""
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
            self._is_idle = True  # who hands something over behind this wakes the thread
            if not self.queue and not self._is_closing:
                self._wake.wait()
            self._is_idle = False

    def _write(self) -> None:
        """Write what there is of each exchange."""
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
    """One exchange, for who takes part in it: its request, perhaps an answer with its reads, and its end."""

    __slots__ = ("_again", "_recorder", "_started", "dropped", "dropped_bytes", "ending", "is_over", "saved", "writer")

    def __init__(self, recorder: Recorder, writer: RecordingWriter, saved: Saved | None = None) -> None:
        self.writer, self.saved = writer, saved  #: for the thread
        self.ending = ""  #: how it ended, in a word of ``End.kind``
        self.dropped = self.dropped_bytes = 0
        self.is_over = False  #: no read is taken any more
        self._recorder = recorder
        self._started: float | None = None
        self._again = 0  # bytes that will be read again

    def request(self, method: str, target: str, headers: Headers, body: bytes | None) -> None:
        """The request is sent: times count from here. ``target`` is its path and query, percent-encoded as they are sent."""
        size = len(body or b"")
        if not self._recorder.has_room(size):
            self._recorder.refused()
            return
        self._started = time.monotonic()
        self._recorder.put(self, 0.0, Asked(method, target, tuple(headers), body), size)

    def response(self, status: int, headers: Headers) -> None:
        """The headers of the answer are there."""
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
        # the thread looks by itself as long as an exchange is open
        recorder.queue.append((self, time.monotonic() - self._started, data))

    def unread(self, data: bytes) -> None:
        """These bytes were put back, and will be read again."""
        self._again += len(data)

    def end(self, kind: str) -> None:
        """It is over: ``kind`` is a word of ``End.kind``. The first one counts."""
        if self.ending:
            return
        self.ending, self.is_over = kind, True
        if self._started is not None:
            self._recorder.put(self, time.monotonic() - self._started, Ended(kind))
        elif self.saved is not None:
            self.saved(None, "")
