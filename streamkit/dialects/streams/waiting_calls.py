"""A decoder for dialects in which a server also streams the calls that it ran itself, with their results.

Only the end of the stream shows that the client must run a call without a result. So a call waits for its result or the end.
Later events wait after it, in the order of the stream, up to ``held_chars`` bytes of frames.

Source: ui-protocols.md §1.3, §2.4; limits.md §1.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Generic, TypeVar

from attrs import define, field

from streamkit.dialects.streams.alike import Said
from streamkit.dialects.streams.frame_decoder import FrameDecoder
from streamkit.errors import ArgumentsTooLong, HeldTooLong, StreamArgumentsTooLong
from streamkit.events import Aside, WireEvent
from streamkit.limits import Limits
from streamkit.report import StreamReport, Withheld
from streamkit.tool_calls.object_scanner import TextBuffer


@define
class WaitingCall:
    """A call that waits for its result or for the end of the stream."""

    id: str
    name: str
    arguments: TextBuffer = field(factory=TextBuffer, kw_only=True)
    #: The call with its result, if the server ran the call.
    answered: Aside | None = field(default=None, kw_only=True)


C = TypeVar("C", bound=WaitingCall)


#: The queue before the first call. An empty deque for each decoder would take 760 bytes.
EMPTY: Final[deque[Any]] = deque()


class WaitingCallDecoder(FrameDecoder, Generic[C]):
    """Decodes a dialect whose streams contain results of calls."""

    handed_on = 0  #: number of calls that were emitted, because the client must run them
    waiting_bytes = 0  #: bytes of the frames that wait
    _argument_chars = 0  # characters of arguments of all calls
    _first_behind = 0  # position in ``out`` of the first event after the call that the current frame begins

    def __init__(self, limits: Limits, report: StreamReport) -> None:
        super().__init__(limits, report)
        self._waiting: deque[C | WireEvent] = EMPTY
        self._grown: C  # the call to which the last fragment belonged

    def hand_on(self, call: C) -> None:
        """Emit a call that the client must run."""
        raise NotImplementedError

    def begin_waiting(self, call: C) -> None:
        if self._waiting:
            self._waiting.append(call)
        else:
            self._first_behind, self._waiting = len(self.out), deque([call])

    def append_arguments(self, call: C, fragment: str, *, late: bool) -> None:
        """Add a fragment to the arguments of a call, unless it is too ``late``: then report it. Raises errors of two limits:
        ArgumentsTooLong and StreamArgumentsTooLong.
        """
        limits = self.limits
        if call.arguments.chars + len(fragment) > limits.arguments_chars:
            raise ArgumentsTooLong(limits.arguments_chars, offset=self.frame.offset)
        self._argument_chars += len(fragment)
        if self._argument_chars > limits.stream_arguments_chars:
            raise StreamArgumentsTooLong(limits.stream_arguments_chars, offset=self.frame.offset)
        if not late:
            call.arguments.append(fragment)
            self.unsaid, self._grown = fragment, call
        else:
            self.report.repair("arguments_late")
            self.report.keep(Withheld("arguments_late", call.id, call.name, fragment))

    def noting(self, event: Said | None) -> Callable[[str], object] | None:
        return partial(self._append_many, self._grown) if event is None else super().noting(event)

    def _append_many(self, call: C, text: str) -> bool:
        """Add many fragments to a call. Return False if that may exceed a limit."""
        limits = self.limits
        if call.arguments.chars + len(text) > limits.arguments_chars:
            return False
        if self._argument_chars + len(text) > limits.stream_arguments_chars:
            return False
        self.append_arguments(call, text, late=False)
        return True

    def before_frame(self) -> int | None:
        """Return the number of events before a frame, for ``after_frame``; None if no call waits. Called before each frame."""
        return len(self.out) if self._waiting else None

    def after_frame(self, before: int | None) -> None:
        """Queue the frame's events after the waiting calls, and emit those with no call before them. Raises HeldTooLong."""
        if not self._waiting:
            return
        begin, self._first_behind = self._first_behind if before is None else before, 0
        if len(self.out) > begin:
            self._waiting += self.out[begin:]
            del self.out[begin:]
            self.unsaid = ""  # the frame has other events that wait
            self.waiting_bytes += len(self.frame.data)
        while self._waiting:
            first = self._waiting[0]
            event = first.answered if isinstance(first, WaitingCall) else first
            if event is None:
                break
            self._waiting.popleft()
            self.out.append(event)
        if not self._waiting:
            self.waiting_bytes = 0
        elif self.waiting_bytes > self.limits.held_chars:
            raise HeldTooLong(self.limits.held_chars, offset=self.frame.offset)

    def release(self) -> None:
        """Emit all waiting events, because the stream ended. The client must run the calls without a result."""
        while self._waiting:
            first = self._waiting.popleft()
            if not isinstance(first, WaitingCall):
                self.out.append(first)
            elif first.answered is not None:
                self.out.append(first.answered)
            else:
                self.hand_on(first)

    def close(self) -> None:
        self.release()
