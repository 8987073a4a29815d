"""Keep the last streams for the inspector: their reads and writes with times, within limits.

This module decodes nothing. A read costs one list entry that refers to the bytes, and one check for watchers. The bytes are
decoded only when a watcher looks at them (``playback.py``). A capture never contains headers or request bodies.

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
from streamkit.web.observers import STALL_S

#: Most streams that are kept. When another one starts, the oldest ended stream is dropped.
CAPTURES: Final = 100
#: The most bytes kept of one stream. The further bytes of a longer stream are only counted.
CAPTURE_BYTES: Final = MIB
ALL_BYTES: Final = 32 * MIB  #: the most bytes kept of all streams together
STEP_BYTES: Final = 192  #: estimated memory of a read or write in addition to its bytes

StepKind: TypeAlias = Literal["attempt", "read", "write", "keep-alive"]


class CapturedStep(NamedTuple):
    """One step of a stream. ``at`` is in seconds since the stream's start."""

    kind: StepKind
    at: float
    data: bytes = b""


@frozen(kw_only=True)
class Attempt:
    """One request to an upstream, and how its response is read."""

    upstream: str
    dialect: str
    options: ReadOptions = DEFAULT_OPTIONS
    whole: bool = False  #: True: the response is one JSON document, not a stream


@define(eq=False, kw_only=True)
class Capture:
    """One kept stream. It implements ``Tap`` (``web/observers.py``), so the relay calls it at each read and write."""

    id: str
    #: Facts about the stream: ``model`` and ``route`` as in the log, or ``file``; ``asked`` is the request's method and path.
    about: Mapping[str, str] = field(factory=dict)
    client: str | None = None  #: the dialect in which the stream is written to the client
    #: Whether the steps have times. If the recording has none, positions in bytes replace them.
    timed: bool = True
    encodes: bool = False  #: whether the playback must encode the output itself, because nothing else wrote it
    stall_s: float = STALL_S  #: a longer pause between two outputs is a stall
    hide: Callable[[str], str] = field(default=str, repr=False)  #: removes keys from a text before the page shows it
    began: float = field(factory=time.time)  #: seconds since the epoch
    steps: list[CapturedStep] = field(factory=list, repr=False)
    attempts: list[Attempt] = field(factory=list)
    size: int = 0  #: estimated memory of the steps, in bytes
    read_bytes: int = 0  #: bytes read and kept
    left_out: int = 0  #: bytes not kept because of the limits
    ended: Mapping[str, Any] | None = None  #: how the stream ended; None while it is open
    seconds: float = 0.0  #: time of the last step
    version: int = 0  #: grows with each change
    is_kept: bool = True  #: False once the stream was dropped: further steps are ignored
    _store: Captures = field(repr=False)
    _clock: Callable[[], float] = field(repr=False)
    _started: float = field(repr=False)
    _unread: int = 0  # bytes that were put back and will be read a second time

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

    def leave_out(self, size: int) -> None:
        self.left_out += size
        self._changed()

    def end(self, how: Mapping[str, Any]) -> None:
        """Note the stream's end. ``how`` has the facts that the log also has."""
        self.ended = how
        self.seconds = self._now()
        self._changed()

    def _now(self) -> float:
        return self._clock() - self._started

    def _add(self, kind: StepKind, data: bytes) -> bool:
        """Keep a step if it fits into the limits. Return whether it was kept."""
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
    """The last streams of a process, and their watchers.

    ``captures`` limits the number of streams, ``capture_bytes`` and ``all_bytes`` their memory. ``clock`` returns seconds.
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
        self.url: str | None = None  #: the URL of the inspector's page, without the token
        self.watchers: set[asyncio.Event] = set()  #: each event is set after a change
        self.size = 0
        #: How many models of each upstream rest, by the upstream's name and the reason.
        self.resting: Mapping[tuple[str, str], int] = {}
        self._captures = captures
        self._all_bytes = all_bytes
        self._kept: dict[str, Capture] = {}  # by id, oldest first

    def __iter__(self) -> Iterator[Capture]:
        return iter(self._kept.values())

    def get(self, capture_id: str) -> Capture | None:
        return self._kept.get(capture_id)

    def open(self, capture_id: str, *, clock: Callable[[], float] | None = None, **facts: Any) -> Capture:
        """Begin a stream. ``facts`` are attributes of ``Capture``. ``clock`` returns seconds since the stream's start."""
        if (same := self._kept.get(capture_id)) is not None:
            self._drop(same)
        while len(self._kept) >= self._captures:
            self._drop(self._oldest())
        started = self.clock() if clock is None else 0.0
        clock = clock or self.clock
        capture = self._kept[capture_id] = Capture(id=capture_id, store=self, clock=clock, started=started, **facts)
        self.wake()
        return capture

    def grew(self, capture: Capture, size: int) -> None:
        """Count ``size`` more bytes for a stream. Drop other streams while all together exceed the limit."""
        self.size += size
        while self.size > self._all_bytes and len(self._kept) > 1:
            self._drop(self._oldest(but=capture))

    def show_resting(self, resting: Mapping[tuple[str, str], int]) -> None:
        if resting != self.resting:
            self.resting = resting
            self.wake()

    def wake(self) -> None:
        if self.watchers:
            for watcher in self.watchers:
                watcher.set()

    def _oldest(self, but: Capture | None = None) -> Capture:
        """Return the oldest stream that has ended; if no stream has ended, return the oldest stream. Never return ``but``."""
        others = [capture for capture in self if capture is not but]
        return next((capture for capture in others if capture.ended is not None), others[0])

    def _drop(self, capture: Capture) -> None:
        del self._kept[capture.id]
        self.size -= capture.size
        capture.is_kept = False
        capture.steps.clear()
