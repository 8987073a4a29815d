"""What is kept of streams to be looked at: when which bytes were read and written, within bounds.

Nothing is decoded here. A read costs a list entry that refers to the bytes, and a check whether somebody watches; what stands
in them is found out when somebody looks (``playback.py``). Headers, and bodies of requests, are never given to a capture.

Source: observe.md O39, O40.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from attrs import define, field, frozen

from streamkit.limits import MIB
from streamkit.read_options import DEFAULT_OPTIONS, ReadOptions
from streamkit.web.output_times import STALL_S

#: Streams that are kept; beyond them the one that ended first goes.
CAPTURES: Final = 100
#: Bytes that are kept of one stream, and of all. What follows in a longer stream is counted alone.
CAPTURE_BYTES: Final = MIB
ALL_BYTES: Final = 32 * MIB
#: What each read or write counts beside its bytes: the objects that hold it.
STEP_BYTES: Final = 192

StepKind: TypeAlias = Literal["attempt", "read", "write", "keep-alive"]


class CapturedStep(NamedTuple):
    """Something that happened to a stream. ``at`` is in seconds since its start."""

    kind: StepKind
    at: float
    data: bytes = b""


@frozen(kw_only=True)
class Attempt:
    """An upstream that was asked, and how its answer is read."""

    upstream: str
    dialect: str
    options: ReadOptions = DEFAULT_OPTIONS
    whole: bool = False  #: the answer is a whole response, not a stream


@define(eq=False, kw_only=True)
class Capture:
    """One stream. It is a ``Tap`` (``web/tap.py``), and so is told of each read and write."""

    id: str
    #: What is known of it: ``model`` and ``route`` as the log has them, or ``file``, and what was ``asked``.
    about: Mapping[str, str] = field(factory=dict)
    client: str | None = None  #: the dialect that is written
    #: Whether its times say something; of a recording that has none they are bytes instead.
    timed: bool = True
    #: Whether what is written has to be made from what was read: nothing else wrote it.
    encodes: bool = False
    stall_s: float = STALL_S  #: a longer pause between two outputs is a stall
    #: Takes keys out of a text, wherever it is shown.
    hide: Callable[[str], str] = field(default=str, repr=False)
    began: float = field(factory=time.time)  #: seconds since the epoch
    steps: list[CapturedStep] = field(factory=list, repr=False)
    attempts: list[Attempt] = field(factory=list)
    size: int = 0  #: what it counts
    read_bytes: int = 0  #: that are kept of what was read
    left_out: int = 0  #: bytes that were too many
    ended: Mapping[str, Any] | None = None  #: what became of it; None while it lives
    seconds: float = 0.0  #: of its last step
    version: int = 0  #: grows with each change
    is_kept: bool = True  #: False once others took its place: nothing is added then
    _store: Captures = field(repr=False)
    _clock: Callable[[], float] = field(repr=False)
    _started: float = field(repr=False)
    _unread: int = 0  # bytes that will be read again

    def attempt(self, upstream: str, dialect: str, options: ReadOptions, *, whole: bool = False) -> None:
        self.attempts.append(Attempt(upstream=upstream, dialect=dialect, options=options, whole=whole))
        self._unread = 0
        self._add("attempt", b"")

    def read(self, chunk: bytes) -> None:
        if self._unread:
            again, self._unread = self._unread, max(0, self._unread - len(chunk))
            chunk = chunk[again:]
        if chunk and self._add("read", chunk):
            self.read_bytes += len(chunk)

    def unread(self, data: bytes) -> None:
        self._unread += len(data)

    def wrote(self, data: bytes, *, keep_alive: bool = False) -> None:
        self._add("keep-alive" if keep_alive else "write", data)

    def end(self, how: Mapping[str, Any]) -> None:
        """It is over; ``how`` are the facts that a log has of it."""
        self.ended = how
        self.seconds = self._now()
        self._changed()

    def _now(self) -> float:
        return self._clock() - self._started

    def _add(self, kind: StepKind, data: bytes) -> bool:
        """Keep a step, unless it is one too many; whether it is kept."""
        if not self.is_kept:
            return False
        self.seconds = self._now()
        cost = len(data) + STEP_BYTES
        fits = not self.left_out and self.size + cost <= self._store.capture_bytes
        if fits:
            self.steps.append(CapturedStep(kind, self.seconds, data))
            self.size += cost
            self._store.grew(self, cost)
        else:
            self.left_out += len(data)
        self._changed()
        return fits

    def _changed(self) -> None:
        self.version += 1
        self._store.wake()


class Captures:
    """The last streams of a process, and who watches them.

    ``captures``, ``capture_bytes`` and ``all_bytes`` bound what is kept; ``clock`` gives seconds.
    """

    def __init__(
        self,
        *,
        captures: int = CAPTURES,
        capture_bytes: int = CAPTURE_BYTES,
        all_bytes: int = ALL_BYTES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.capture_bytes = capture_bytes
        self.clock = clock
        self.url: str | None = None  #: of the page that shows them, without its token
        self.watchers: set[asyncio.Event] = set()  #: each is set when something changed
        self.size = 0
        self._captures = captures
        self._all_bytes = all_bytes
        self._kept: dict[str, Capture] = {}  # by id, the oldest first

    def __iter__(self) -> Iterator[Capture]:
        return iter(self._kept.values())

    def get(self, capture_id: str) -> Capture | None:
        """The stream with that id, if it is still kept."""
        return self._kept.get(capture_id)

    def open(self, capture_id: str, *, clock: Callable[[], float] | None = None, **facts: Any) -> Capture:
        """A new stream; ``facts`` are members of ``Capture``. ``clock`` gives the seconds since it began, if not now."""
        if (same := self._kept.get(capture_id)) is not None:
            self._drop(same)
        while len(self._kept) >= self._captures:
            self._drop(self._oldest())
        started = self.clock() if clock is None else 0.0
        capture = self._kept[capture_id] = Capture(
            id=capture_id, store=self, clock=clock or self.clock, started=started, **facts
        )
        self.wake()
        return capture

    def grew(self, capture: Capture, size: int) -> None:
        """A stream takes so many bytes more; where all take too many, others go."""
        self.size += size
        while self.size > self._all_bytes and len(self._kept) > 1:
            self._drop(self._oldest(but=capture))

    def wake(self) -> None:
        """Tell those who watch that something changed."""
        if self.watchers:
            for watcher in self.watchers:
                watcher.set()

    def _oldest(self, but: Capture | None = None) -> Capture:
        """The oldest stream that ended, or else the oldest."""
        others = [capture for capture in self if capture is not but]
        return next((capture for capture in others if capture.ended is not None), others[0])

    def _drop(self, capture: Capture) -> None:
        del self._kept[capture.id]
        self.size -= capture.size
        capture.is_kept = False
        capture.steps.clear()
