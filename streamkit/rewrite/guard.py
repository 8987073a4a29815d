"""``guard``: end a response before text that is not allowed is sent."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from types import CoroutineType
from typing import Any, Final, Literal, TypeAlias, get_args

from streamkit.errors import UsageError, blame, check_words
from streamkit.events import (
    Event,
    ProviderFailed,
    RefusalDelta,
    ResponseFinished,
    StreamEnded,
    ToolCallFinished,
    ToolCallStarted,
    Verdict,
)
from streamkit.machines import Chain
from streamkit.pipeline import Stage, discard, drive
from streamkit.profiler import Profiler
from streamkit.report import StreamReport
from streamkit.rewrite.stage import Part, TextChanger, checked_parts
from streamkit.rewrite.window import Window
from streamkit.text.quoting import name_of, quoted

#: Returns something true for text that must not be sent. A str is the message for the client.
Check: TypeAlias = Callable[[str], object]
Reply: TypeAlias = Literal["refusal", "error"]
MESSAGE: Final = "The response was ended because its text is not allowed."
RETURNS: Final = "a check must return a message (str) or True for text that must not be sent, else False or None"
#: The label of the block with the message.
BLOCK: Final = -1


class GuardWindow(Window):
    """A window that changes nothing. It is blocked once ``check`` rejects the last ``hold`` characters."""

    def __init__(self, check: Check, hold: int) -> None:
        super().__init__(str, hold)
        self._check = check

    def feed(self, text: str) -> Iterator[object]:
        place = len(self._text)
        whole = self._text + text
        try:
            found = self._check(whole[max(place - self._hold, 0) :])
            if not found:
                return super().feed(text)
            if isinstance(found, CoroutineType | bytes):
                discard(found)
                raise UsageError(f"guard: {name_of(self._check)} returned {type(found).__qualname__}; {RETURNS}")
            # the first end of a text that is rejected; a text is rejected with more text around it, too
            start, ends = max(place - self._hold, 0), range(place + 1, len(whole))
            end = place + 1 + bisect_left(ends, True, key=lambda end: bool(self._check(whole[start:end])))
            found = self._check(whole[start:end])
            self.blocked = found if isinstance(found, str) else MESSAGE
            self._text = whole[:end]
            return self._release(end - 1 - self._hold)
        except Exception as error:
            blame(error, f"guard({name_of(self._check)})")
            raise


class Guard(TextChanger):
    """The machine of ``guard``. Once it is ``over``, it has ended the response and emits nothing."""

    def __init__(
        self, window: Callable[[], Window], parts: Iterable[Part], report: StreamReport, reply: Reply, choices: int = 1
    ) -> None:
        super().__init__(window, parts, report)
        self.over = False
        self._reply = reply
        self._choices = choices
        self._seen: set[int] = set()  # choices
        self._done: set[int] = set()  # choices that are finished or blocked
        self._blocked: set[int] = set()  # choices whose further events are dropped
        self._refusals: dict[int, ResponseFinished] = {}  # by choice
        self._started: dict[tuple[int, int], ToolCallStarted] = {}  # calls that have not finished
        # the fragments of such calls, if ``check`` gets no arguments
        self._unchecked: dict[tuple[int, int], list[str]] = {}

    def push(self, event: Event, /) -> None:
        choice = getattr(event, "choice", None)
        if self.over or (choice is not None and not self._goes_on(choice)):
            return
        if isinstance(event, StreamEnded):  # the stages before have reported how the provider ended each choice
            self._tell_stops()
        super().push(event)
        if isinstance(event, ToolCallStarted):
            if not self.is_ended(event.choice):
                self._started[event.choice, event.call] = event
        elif isinstance(event, ToolCallFinished):
            self._started.pop((event.choice, event.call), None)
            self._unchecked.pop((event.choice, event.call), None)
        elif isinstance(event, ResponseFinished):
            self._done.add(event.choice)

    def push_text(self, text: str, choice: int, block: int, /) -> None:
        if self._goes_on(choice):
            super().push_text(text, choice, block)

    def push_reasoning(self, text: str, choice: int, block: int, kind: Literal["raw", "summary"], /) -> None:
        if self._goes_on(choice):
            super().push_reasoning(text, choice, block, kind)

    def push_arguments(self, call: int, text: str, choice: int, /) -> None:
        if self._goes_on(choice):
            super().push_arguments(call, text, choice)
            if "arguments" not in self._parts and not self.is_ended(choice):
                self._unchecked.setdefault((choice, call), []).append(text)

    def _goes_on(self, choice: int) -> bool:
        """Return whether the choice has not ended, after noting that it has begun."""
        if self.is_ended(choice):
            return False
        self._seen.add(choice)
        return True

    def is_ended(self, choice: int) -> bool:
        return self.over or choice in self._blocked

    def block(self, why: str, choice: int) -> None:
        """End a choice with a refusal, or the response with an error. End the calls in progress too."""
        report = self._report
        report.lose("blocked")
        ended = {choice} if self._reply == "refusal" else (self._seen - self._done) | {choice}
        for key in [key for key in self._started if key[0] in ended]:
            call, strings = self._started.pop(key), self._calls.pop(key, None)
            text = "".join(self._unchecked.pop(key, ()) if strings is None else strings.sent)
            verdict = Verdict("truncated", "the response was ended", len(text))
            self.emit(
                ToolCallFinished(
                    call.call, call.id, call.name, text, call.choice, call.kind, ended=False, verdict=verdict
                )
            )
        for each in ended:
            self._runs.pop(each, None)
            self._piecewise.pop(each, None)
        self._blocked |= ended
        self._done |= ended
        if self._reply == "error":
            failed = ProviderFailed("invalid_request", why, code="content_filter")
            report.failure, report.provider_error = failed, (failed.type, failed.message)
            self.emit(failed)
        else:
            finished = ResponseFinished("refusal", choice=choice)
            report.stops += (finished,)
            self._refusals[choice] = finished
            self._tell_stops()
            self.emit(RefusalDelta(why, choice, BLOCK))
            self.emit(finished)
        if self._reply == "error" or (len(self._seen) >= self._choices and self._seen <= self._done):
            self.over, report.clean = True, self._reply == "refusal"
            self.emit(StreamEnded(clean=report.clean))

    def _tell_stops(self) -> None:
        """Report one end of each choice: the refusal, if there is one."""
        stops = {stop.choice: self._refusals.get(stop.choice, stop) for stop in self._report.stops}
        self._report.stops = tuple(stops.values())


class _GuardStage(Stage[list[Event], list[Event]]):
    """A stage that reads no further once its machine has ended the response."""

    def over(
        self,
        source: AsyncIterable[Any],
        report: StreamReport,
        before: Sequence[Stage[Any, Any]] = (),
        profiler: Profiler | None = None,
    ) -> AsyncGenerator[list[Event], None]:
        guard = self.make(report)
        stages = [*before, self]
        links: Sequence[Any] = [*(stage.make(report) for stage in before), guard]
        if profiler is not None:
            links = profiler.machines(stages, links)
        return _until_over(guard, drive(Chain(*links), source, stages[0]))


async def _until_over(guard: Any, batches: AsyncGenerator[list[Event], None]) -> AsyncGenerator[list[Event], None]:
    async with aclosing(batches):
        async for batch in batches:
            yield batch
            if guard.over:
                return


def guard(
    check: Check,
    *,
    hold: int,
    parts: Iterable[Part] | Part = ("text", "reasoning", "refusal", "arguments"),
    reply: Reply = "refusal",
    choices: int = 1,
) -> Stage[list[Event], list[Event]]:
    """Create a stage that ends the response before a text that ``check`` rejects, even if the text is spread over
    several deltas.

    ``check`` gets at least the last ``hold`` characters of a text. If these characters must not be sent, ``check``
    returns a message for the client, or True for a default message. Otherwise ``check`` returns False or None. The
    stage holds back at most ``hold`` characters of each text. If ``check`` rejects the text, the client gets only the
    text before these characters, and then a refusal in the client's dialect. With ``reply="error"``, the client gets an
    error instead of a refusal. A call in progress is reported as truncated. The rest of the response is not read. If
    other choices continue after a refusal, the stage drops only the rest of the refused choice (loss ``blocked``).
    ``choices`` is the number of choices that the request asked for: the stage needs this number to wait for choices
    that have not begun. Raises UsageError for wrong arguments.
    """
    if not callable(check):
        raise UsageError(f"guard: the first argument must be a function that gets a text, not {quoted(check)}")
    check_words("guard: reply", [reply], get_args(Reply))
    chosen = checked_parts("guard", parts, hold)
    if not hold:
        raise UsageError("guard: hold must be 1 or more: check gets the last hold characters")
    if type(choices) is not int or choices < 1:
        raise UsageError(f"guard: choices must be a number of choices, 1 or more, not {quoted(choices)}")
    return _GuardStage(
        "guard",
        lambda report: Guard(lambda: GuardWindow(check, hold), chosen, report, reply, choices),
        takes="events",
        gives="events",
    )
