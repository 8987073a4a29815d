"""One answer of several upstreams: where one breaks off in plain text, the next goes on from there.

The client gets one stream. Its start, its id and its model are the first upstream's; the text goes on in the block in which it
broke off; its end is the last one's, and its usage the sum of what each told. White space at the end of the text is not sent
back, since prompts lose it and Claude refuses it: what of it the continuation says again at its beginning is left out, and
nothing else is, as providers that can go on with a text answer with the rest alone.

Only text is gone on with. An answer with a call, with reasoning, with a second choice or with anything else that a text can't
say of it ends as it broke off: half a call can't be told to a provider, and one that would think anew says something else.

Source: quirks.md 129; dialects.md §7.4.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable
from contextlib import suppress
from typing import Any, Final, Protocol, TypeAlias

from attrs import evolve, frozen

from streamkit.dialects.streams.event_encoder import failure_from
from streamkit.errors import IdleTimeout, Interrupted, SourceFailed, StreamError, TimedOut
from streamkit.events import (
    Aside,
    ChoiceStarted,
    Event,
    ProviderFailed,
    ResponseStarted,
    StreamEnded,
    TextDelta,
    UsageReported,
)
from streamkit.limits import MIB
from streamkit.pipeline import Pipe
from streamkit.report import StreamReport

#: Of a text that is longer, nothing is kept to go on with.
SAID_CHARS: Final = MIB
#: Asides that say nothing of what the model said.
QUIET_ASIDES: Final = frozenset({"logprobs", "metadata", "unknown_event"})
#: What a provider says in its stream where it was cut itself.
CUT_TYPES: Final = frozenset({"truncated", "timeout"})
#: The comment where another part goes on. It ends no event: behind an ``id`` clients read an empty one (resume.md §4.2).
SEAM: Final = b": streamkit continued\n"
#: Counts of a usage that are added up.
COUNTS: Final = ("input_total", "input_cached", "input_cache_write", "output_total", "output_reasoning", "total")


class Part(Protocol):
    """One upstream's part of the answer: an ``Exchange`` that was opened."""

    @property
    def report(self) -> StreamReport: ...

    def interrupt(self, error: Exception, /) -> None:
        """Make its reader's next or present read raise ``error``."""

    def hide(self, text: str, /) -> str:
        """Take the keys that were sent out of what comes back."""


@frozen
class Opened:
    """A part, and its events."""

    part: Part
    events: Pipe[list[Event]]


class Onward(Protocol):
    """Asks the next upstream to go on with ``text``. None: nobody can."""

    async def __call__(self, failed: ProviderFailed, text: str, /) -> Opened | None: ...


Ending: TypeAlias = tuple[StreamReport, list[Event], StreamError | None]


class TextSoFar:
    """What the client has of an answer, and whether text alone says it."""

    def __init__(self) -> None:
        self.block = 0  #: of the text that came last
        self.blocks = 0  #: labels of blocks are below this
        self._is_text = True
        self._texts: list[str] = []
        self._chars = 0

    def take(self, events: list[Event]) -> None:
        for event in events:
            if isinstance(event, TextDelta) and event.choice == 0:
                self.block = event.block
                self._chars += len(event.text)
                self._texts.append(event.text)
            elif not _says_nothing(event):
                self._is_text = False
            self.blocks = max(self.blocks, getattr(event, "block", 0) + 1)
        if self._chars > SAID_CHARS:
            self._is_text = False
        if not self._is_text:
            self._texts.clear()

    @property
    def text(self) -> str:
        """What is to be gone on with, as it is; blank: nothing can be."""
        return "".join(self._texts)


def _says_nothing(event: Event) -> bool:
    if isinstance(event, Aside):
        return event.kind in QUIET_ASIDES and event.choice == 0
    if isinstance(event, ChoiceStarted):
        return event.choice == 0
    return isinstance(event, (ResponseStarted, UsageReported))


class Joint:
    """Makes the events of a continuation those of the answer that it goes on with."""

    def __init__(self, so_far: TextSoFar, usage: UsageReported | None) -> None:
        text = so_far.text
        self._said_again = text[len(text.rstrip()) :]  # which the continuation may begin with
        self._block, self._offset = so_far.block, so_far.blocks
        self._text_block: int | None = None  # what the continuation calls that block
        self._usage = usage
        self.has_begun = False  #: it said something

    def feed(self, events: list[Event]) -> list[Event]:
        return [joined for event in events if (joined := self._joined(event)) is not None]

    def _joined(self, event: Event) -> Event | None:
        if isinstance(event, ResponseStarted) or (isinstance(event, ChoiceStarted) and event.choice == 0):
            return None
        if isinstance(event, UsageReported):
            return event if self._usage is None else added(self._usage, event)
        if not isinstance(event, (ProviderFailed, StreamEnded)) and not _says_nothing(event):
            self.has_begun = True
        if isinstance(event, TextDelta) and event.choice == 0:
            if self._text_block is None:
                self._text_block = event.block
            event = evolve(event, text=self._rest(event.text))
            if not event.text:
                return None
        block: int | None = getattr(event, "block", None)
        if block is None:
            return event
        changes: dict[str, Any] = {"block": self._block if block == self._text_block else self._offset + block}
        return evolve(event, **changes)

    def _rest(self, text: str) -> str:
        """The text without the white space that the client has."""
        while self._said_again and text:
            if text[0] != self._said_again[0]:
                self._said_again = ""
                break
            text, self._said_again = text[1:], self._said_again[1:]
        return text


def added(one: UsageReported, other: UsageReported) -> UsageReported:
    """Both usages. What one of them does not tell is what the other tells."""
    found = {}
    for name in COUNTS:
        known = [count for count in (getattr(one, name), getattr(other, name)) if count is not None]
        found[name] = sum(known) if known else None
    return UsageReported(**found, vendor=other.vendor)


class Continuing:
    """The events of an answer whose first part is open, with ``report`` for what is written of them.

    As the source of a pipe it is what ``Reply.interrupt`` ends.
    """

    def __init__(self, first: Opened, onward: Onward, report: StreamReport) -> None:
        self.report: StreamReport | None = report
        self.seams = 0  #: so often another part went on
        self._written = report
        self._opened: Opened | None = first
        self._parts = [first.part]
        self._onward = onward
        self._so_far = TextSoFar()
        self._usage: UsageReported | None = None  # of the parts that are over
        self._last_usage: UsageReported | None = None
        self._joint: Joint | None = None
        self._interrupted: Exception | None = None
        self._opening: asyncio.Timeout | None = None

    @property
    def part(self) -> Part:
        """The last part."""
        return self._parts[-1]

    def fail(self, error: Exception) -> None:
        self._interrupted = self._interrupted or error
        if self._opening is not None:
            self._opening.reschedule(asyncio.get_running_loop().time())
        else:
            self.part.interrupt(error)

    def hide(self, text: str) -> str:
        """``text`` without the keys that any part was asked with."""
        for part in self._parts:
            text = part.hide(text)
        return text

    def settle(self) -> None:
        """Count what was repaired and lost of what was written with the last part, and what that took."""
        report, written = self.part.report, self._written
        report.repairs += written.repairs
        report.losses += written.losses
        report.lost += written.lost
        report.withheld += written.withheld
        report.completed = written.completed
        report.timings += written.timings[1:]  # what the writing waited for is the parts' own time

    async def mark_seams(self, chunks: AsyncIterable[bytes]) -> AsyncGenerator[bytes, None]:
        """The stream with a comment in the first event of each further part."""
        marked = 0
        async for chunk in chunks:
            yield SEAM + chunk if self.seams > marked else chunk
            marked = self.seams

    async def batches(self) -> AsyncGenerator[list[Event], None]:
        """Raises what broke the reading of the last part."""
        ending: Ending | None = None
        while self._opened is not None:
            opened, self._opened = self._opened, None
            rest: list[Event] = []  # from the failure on
            error: StreamError | None = None
            try:
                await opened.events.__aenter__()
                async for batch in opened.events:
                    events, failed = _divided(batch, is_failed=bool(rest))
                    rest += failed
                    if events and (joined := self._join(events)):
                        self._tell(opened.part.report, failed=bool(rest))
                        yield joined
            except StreamError as broken:
                error = broken
            finally:
                await opened.events.__aexit__()
            report = opened.part.report
            if report.clean:
                if error is not None:
                    raise error
                return
            if error is not None:
                report.failed(error)
            if ending is None or self._joint is None or self._joint.has_begun:
                ending = report, rest, error  # else it is told how the part before ended
            await self._go_on(report, rest, error)
        if ending is not None:
            report, rest, error = ending
            self._tell(report, failed=False)
            if rest:
                yield rest
            if error is not None:
                raise error

    def _join(self, events: list[Event]) -> list[Event]:
        self._last_usage = next((e for e in reversed(events) if isinstance(e, UsageReported)), self._last_usage)
        joined = events if self._joint is None else self._joint.feed(events)
        self._so_far.take(joined)
        return joined

    def _tell(self, report: StreamReport, *, failed: bool) -> None:
        """Copy the state of the read report to the written one; not its failure if ``failed``: the stream may continue."""
        written = self._written
        written.spoken = written.spoken or report.spoken
        if failed:
            return
        written.clean, written.terminated = report.clean, report.terminated
        written.failure, written.provider_error = report.failure, report.provider_error

    async def _go_on(self, report: StreamReport, rest: list[Event], error: StreamError | None) -> None:
        """Open the next part, if the answer broke off where it can be gone on with."""
        text = self._so_far.text.rstrip()
        unsaid = self._joint is not None and not self._joint.has_begun
        if not text or self._interrupted is not None or not (unsaid or _is_cut(rest, error)):
            return
        failed = report.failure if error is None else failure_from(error)
        failed = failed or ProviderFailed("truncated", "the upstream's answer ended before its completion point")
        with suppress(TimeoutError):
            async with asyncio.timeout(None) as self._opening:
                self._opened = await self._onward(failed, text)
        self._opening = None
        if self._opened is not None:
            if self._last_usage is not None:
                self._usage = self._last_usage if self._usage is None else added(self._usage, self._last_usage)
            self._last_usage = None
            self._joint = Joint(self._so_far, self._usage)
            self._parts.append(self._opened.part)
            self.seams += 1


def _divided(batch: list[Event], *, is_failed: bool) -> tuple[list[Event], list[Event]]:
    """The events, and those from a failure on."""
    if is_failed:
        return [], batch
    for at, event in enumerate(batch):
        if isinstance(event, ProviderFailed) or (isinstance(event, StreamEnded) and not event.clean):
            return batch[:at], batch[at:]
    return batch, []


def _is_cut(rest: list[Event], error: StreamError | None) -> bool:
    """Whether the connection broke off, or was silent for too long; not that somebody said no."""
    if error is not None:
        timed_out = isinstance(error, TimedOut) and not isinstance(error, IdleTimeout)
        return isinstance(error, SourceFailed) and not isinstance(error, Interrupted) and not timed_out
    told = next((event for event in rest if isinstance(event, ProviderFailed)), None)
    return told is None or told.type in CUT_TYPES
