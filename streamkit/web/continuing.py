"""One response from several upstreams: if one is interrupted inside plain text, the next one continues the text.

The client gets one stream. Its start, id and model are the first upstream's. The text continues in the same block. The end is
the last upstream's, and the usage is the sum of all reported usages. White space at the end of the text is not sent to the
next upstream, because prompts lose it and Claude refuses it. If the continuation begins with that white space, the repeated
part is removed. Nothing else is removed: providers that can continue a text respond with the rest only.

Only plain text is continued. A response with a tool call, with reasoning, with a second choice or with anything else that text
can't express ends at the interruption: half a call can't be sent to a provider, and new reasoning leads to another text.

Source: quirks.md 129 (text sent twice after a retry); dialects.md §7.4.
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

SAID_CHARS: Final = MIB  #: A response with longer text is not continued, and its text is not kept
#: Events other than text and calls (``Aside``) that do not change what the model has said.
QUIET_ASIDES: Final = frozenset({"logprobs", "metadata", "unknown_event"})
#: Types of provider errors that mean that the provider's stream was interrupted.
CUT_TYPES: Final = frozenset({"truncated", "timeout"})
#: The SSE comment written before each continuation. No blank line follows, since a blank line after an ``id:`` line would end
#: an empty event (resume.md §4.2).
SEAM: Final = b": streamkit continued\n"
#: The members of ``UsageReported`` that are added up over the parts of a response.
COUNTS: Final = ("input_total", "input_cached", "input_cache_write", "output_total", "output_reasoning", "total")


class ResponsePart(Protocol):
    """One upstream's part of the response: an ``Exchange`` with an open stream."""

    @property
    def report(self) -> StreamReport: ...

    def interrupt(self, error: Exception, /) -> None:
        """Make the present or next read raise ``error``."""

    def hide(self, text: str, /) -> str:
        """Return ``text`` without the keys that were sent."""


@frozen
class Opened:
    """One upstream's part of a response, and the events of its stream."""

    part: ResponsePart
    events: Pipe[list[Event]]


class Onward(Protocol):
    """Asks the next upstream to continue ``text``. Returns None if no upstream can."""

    async def __call__(self, failed: ProviderFailed, text: str, /) -> Opened | None: ...


Ending: TypeAlias = tuple[StreamReport, list[Event], StreamError | None]


class TextSoFar:
    """The text that the client has received, and whether the response consists of text only."""

    def __init__(self) -> None:
        self.block = 0  #: the block of the last text
        self.blocks = 0  #: one more than the largest block label so far
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
        """The text to continue, unchanged. If it is blank, the response can't be continued."""
        return "".join(self._texts)


def _says_nothing(event: Event) -> bool:
    if isinstance(event, Aside):
        return event.kind in QUIET_ASIDES and event.choice == 0
    if isinstance(event, ChoiceStarted):
        return event.choice == 0
    return isinstance(event, (ResponseStarted, UsageReported))


class Joint:
    """Changes the events of a continuing upstream so that they continue the response of the upstream before it."""

    def __init__(self, so_far: TextSoFar, usage: UsageReported | None) -> None:
        text = so_far.text
        self._repeatable = text[len(text.rstrip()) :]  # white space that the continuation may repeat
        self._block, self._offset = so_far.block, so_far.blocks
        # the label that the continuing upstream uses for the block that it continues
        self._text_block: int | None = None
        self._usage = usage
        self.has_begun = False  #: whether the continuing upstream has emitted something

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
        """Return the text without the white space that the client already has."""
        while self._repeatable and text:
            if text[0] != self._repeatable[0]:
                self._repeatable = ""
                break
            text, self._repeatable = text[1:], self._repeatable[1:]
        return text


def added(one: UsageReported, other: UsageReported) -> UsageReported:
    """Return the sum of two usages. A count that only one of them reports is taken as it is."""
    found = {}
    for name in COUNTS:
        known = [count for count in (getattr(one, name), getattr(other, name)) if count is not None]
        found[name] = sum(known) if known else None
    return UsageReported(**found, vendor=other.vendor)


class Continuing:
    """The events of a response whose first part is open. ``report`` describes what is written of them.

    It is the source of a pipe, so ``Reply.interrupt`` can end it.
    """

    def __init__(self, first: Opened, onward: Onward, report: StreamReport, *, takes_comments: bool = True) -> None:
        self.report: StreamReport | None = report
        self.seams = 0  #: how many continuations have begun
        self._written = report
        self._seam = SEAM if takes_comments else b""
        self._opened: Opened | None = first
        self._parts = [first.part]
        self._onward = onward
        self._so_far = TextSoFar()
        self._usage: UsageReported | None = None  # the usage of the finished parts
        self._last_usage: UsageReported | None = None
        self._joint: Joint | None = None
        self._interrupted: Exception | None = None
        self._opening: asyncio.Timeout | None = None

    @property
    def part(self) -> ResponsePart:
        """The part that is being read."""
        return self._parts[-1]

    def fail(self, error: Exception) -> None:
        self._interrupted = self._interrupted or error
        if self._opening is not None:
            self._opening.reschedule(asyncio.get_running_loop().time())
        else:
            self.part.interrupt(error)

    def hide(self, text: str) -> str:
        """Return ``text`` without the keys that were sent to any upstream."""
        for part in self._parts:
            text = part.hide(text)
        return text

    def settle(self) -> None:
        """Add the repairs, losses, verdicts and times of writing the response to the report of the last part."""
        report, written = self.part.report, self._written
        report.repairs += written.repairs
        report.losses += written.losses
        report.verdicts += written.verdicts  # of the calls that the stages changed, less their verdicts before
        report.lost += written.lost
        report.withheld += written.withheld
        report.output_verdicts = written.output_verdicts  # on the text of all parts together
        report.completed = written.completed
        # without the first, which is the source: the report of each part counts the time of its source
        report.timings += written.timings[1:]

    async def mark_seams(self, chunks: AsyncIterable[bytes]) -> AsyncGenerator[bytes, None]:
        """Yield the written stream, with a comment before the first event of a continuation if the client takes comments."""
        marked = 0
        async for chunk in chunks:
            yield self._seam + chunk if self.seams > marked else chunk
            marked = self.seams

    async def batches(self) -> AsyncGenerator[list[Event], None]:
        """Yield the events of all parts. Raises the error that ended the last part."""
        ending: Ending | None = None
        while self._opened is not None:
            opened, self._opened = self._opened, None
            rest: list[Event] = []  # the events from the failure on
            error: StreamError | None = None
            try:
                await opened.events.__aenter__()
                async for batch in opened.events:
                    events, failed = ([], batch) if rest else _divided(batch)
                    rest += failed
                    if events and (joined := self._join(events)):
                        self._copy_state(opened.part.report, failed=bool(rest))
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
                ending = report, rest, error  # otherwise the ending of the part before it is reported
            await self._go_on(report, rest, error)
        if ending is not None:
            report, rest, error = ending
            self._copy_state(report, failed=False)
            if rest:
                yield rest
            if error is not None:
                raise error

    def _join(self, events: list[Event]) -> list[Event]:
        self._last_usage = next((e for e in reversed(events) if isinstance(e, UsageReported)), self._last_usage)
        joined = events if self._joint is None else self._joint.feed(events)
        self._so_far.take(joined)
        return joined

    def _copy_state(self, report: StreamReport, *, failed: bool) -> None:
        """Copy the state of ``report`` to the written report. With ``failed``, leave out its end: the stream may continue."""
        written = self._written
        written.spoken = written.spoken or report.spoken
        if failed:
            return
        written.clean, written.terminated = report.clean, report.terminated
        written.failure, written.provider_error = report.failure, report.provider_error

    async def _go_on(self, report: StreamReport, rest: list[Event], error: StreamError | None) -> None:
        """Open the next part, if the response was interrupted and can be continued."""
        text = self._so_far.text.rstrip()
        unsaid = self._joint is not None and not self._joint.has_begun
        if not text or self._interrupted is not None or not (unsaid or _is_cut(rest, error)):
            return
        failed = report.failure if error is None else failure_from(error)
        failed = failed or ProviderFailed("truncated", "the upstream's response ended before its completion point")
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


def _divided(batch: list[Event]) -> tuple[list[Event], list[Event]]:
    """Return the events before a failure, and those from the failure on."""
    for at, event in enumerate(batch):
        if isinstance(event, ProviderFailed) or (isinstance(event, StreamEnded) and not event.clean):
            return batch[:at], batch[at:]
    return batch, []


def _is_cut(rest: list[Event], error: StreamError | None) -> bool:
    """Return whether the connection broke or was silent for too long, as opposed to a refusal."""
    if error is not None:
        timed_out = isinstance(error, TimedOut) and not isinstance(error, IdleTimeout)
        return isinstance(error, SourceFailed) and not isinstance(error, Interrupted) and not timed_out
    told = next((event for event in rest if isinstance(event, ProviderFailed)), None)
    return told is None or told.type in CUT_TYPES
