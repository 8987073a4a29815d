"""One response from several requests to one upstream, between which the gateway searches the client's deferred tools.

If the model calls the function that searches tools (``translation/deferred_tools.py``), the client gets its vendor's own items
of a search in place of the call. Once the model has ended its turn with nothing but searches, it is asked again, with the
tools found, and what it says then continues the response. If it also called a tool of the client, the turn ends: the client
sends the items back with its results, and the tools found are defined in that request.

The start, the id and the model are those of the first part. The end is that of the last part, and the usage is the sum.

Source: design.md §6; dialects.md §2.2, §3.1.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from attrs import define, evolve, field

from streamkit.conversation.collector import Collector
from streamkit.conversation.messages import Tool, ToolsFound
from streamkit.dialects.base import ToolSearchForm
from streamkit.errors import StreamError
from streamkit.events import (
    OUTPUT,
    Aside,
    ChoiceStarted,
    Event,
    ProviderFailed,
    ResponseFinished,
    ResponseStarted,
    StreamEnded,
    ToolCallArguments,
    ToolCallDoomed,
    ToolCallFinished,
    ToolCallStarted,
    UsageReported,
)
from streamkit.report import StreamReport
from streamkit.translation.deferred_tools import DeferredTools
from streamkit.translation.tool_loop import said_parts
from streamkit.web.continuing import Opened, ResponsePart, added

MOST_ROUNDS: Final = 8  #: how often a model is asked again in one response
UNENDED: Final = "tool_search_unended"  #: the code of a failure: the model did nothing but search
_OF_CALLS: Final = (ToolCallStarted, ToolCallArguments, ToolCallDoomed, ToolCallFinished)


@define
class _Round:
    """What the model said in one part of the response."""

    collector: Collector
    base: int  #: is added to the labels of this part's blocks
    numbers: dict[tuple[int, int], int] = field(factory=dict)  #: of the calls for the client
    open: set[tuple[int, int]] = field(factory=set)  #: calls of the search that have not ended
    searches: dict[str, ToolsFound] = field(factory=dict)  #: by the id of the call
    held: list[Event] = field(factory=list)  #: the end of this part
    waits: bool = False  #: whether the client has to answer an item that is no call

    @property
    def goes_on(self) -> bool:
        """Whether the model has only searched, so that it must be asked again."""
        ends = [event.reason for event in self.held if isinstance(event, ResponseFinished)]
        return bool(self.searches) and not (self.numbers or self.open or self.waits) and ends == ["tool_calls"]

    def end(self) -> list[Event]:
        """Return the end of the response. If no call but truncated searches is left, the turn is truncated."""
        if self.numbers or self.waits:
            return self.held
        return [
            evolve(event, reason="length", native="incomplete")
            if isinstance(event, ResponseFinished) and event.reason == "tool_calls"
            else event
            for event in self.held
        ]


class Searching:
    """The events of a response whose first part is open. ``written`` describes what is written of them.

    It is the source of a pipe, so ``Reply.interrupt`` can end it. ``again`` sends ``tools.visible()``.
    """

    def __init__(
        self,
        first: Opened,
        again: Callable[[], Awaitable[Opened | ProviderFailed]],
        tools: DeferredTools,
        *,
        dialect: str,
        form: ToolSearchForm | None,
        offered: Sequence[Tool],
        written: StreamReport,
    ) -> None:
        self.report: StreamReport | None = written
        self._first, self._again, self._tools = first, again, tools
        self._dialect, self._form, self._offered = dialect, form, offered
        self._name = "" if tools.search is None else tools.search.name
        self.written = self._written = written
        self._parts: list[ResponsePart] = [first.part]
        self._searched = 0
        self._calls = self._blocks = 0  # one more than the largest number of a call, and label of a block, so far
        self._usage: UsageReported | None = None  # of the parts before
        self._last_usage: UsageReported | None = None
        self._interrupted: Exception | None = None
        self._asking: asyncio.Timeout | None = None

    def fail(self, error: Exception) -> None:
        self._interrupted = self._interrupted or error
        if self._asking is not None:
            self._asking.reschedule(asyncio.get_running_loop().time())
        else:
            self._parts[-1].interrupt(error)

    def hide(self, text: str) -> str:
        """Return ``text`` without the keys that were sent."""
        for part in self._parts:
            text = part.hide(text)
        return text

    async def batches(self) -> AsyncGenerator[list[Event], None]:
        """Yield the events of all parts. Raises the error that ended the last part."""
        opened = self._first
        while True:
            part = _Round(Collector(self._dialect, StreamReport()), self._blocks)
            error: StreamError | None = None
            try:
                await opened.events.__aenter__()
                async for batch in opened.events:
                    part.collector.feed(batch)
                    events = [made for event in batch for made in await self._made(event, part)]
                    if events:
                        self._written.spoken = self._written.spoken or any(type(event) in OUTPUT for event in events)
                        yield events
            except StreamError as broken:
                error = broken
            finally:
                await opened.events.__aexit__()
            report = opened.part.report
            if error is not None or not report.clean or not part.goes_on:
                self._copy_end(report)
                if part.held:
                    yield part.end()
                if error is not None:
                    raise error
                return
            next_part = await self._next(part)
            if isinstance(next_part, ProviderFailed):
                self._written.clean, self._written.failure = False, next_part
                self._written.provider_error = next_part.type, next_part.message
                yield [next_part, StreamEnded(clean=False)]
                return
            opened = next_part

    async def _next(self, part: _Round) -> Opened | ProviderFailed:
        """Ask the model again, after it has only searched. Return the next part of the response, or why there is none."""
        if len(self._parts) > MOST_ROUNDS:
            words = f"the model searched for tools in {len(self._parts)} turns, and did nothing else"
            return ProviderFailed("server", words, code=UNENDED)
        said = said_parts(part.collector.finish().choices[0], lambda call: call.id in part.searches)
        self._tools.go_on(said, part.searches)
        if self._last_usage is not None:
            self._usage, self._last_usage = self._last_usage, None
        next_part: Opened | ProviderFailed | None = None
        with suppress(TimeoutError):
            async with asyncio.timeout(None) as self._asking:
                if self._interrupted is None:
                    next_part = await self._again()
        self._asking = None
        if self._interrupted is not None:
            if isinstance(next_part, Opened):
                await next_part.events.__aenter__()
                await next_part.events.__aexit__()
            raise self._interrupted
        if isinstance(next_part, Opened):
            self._parts.append(next_part.part)
        return next_part or ProviderFailed("timeout", "the model could not be asked again")

    # -- one event -----------------------------------------------------------------------------------------------------

    async def _made(self, event: Event, part: _Round) -> Sequence[Event]:
        """Return the events for the client in place of an event of a part."""
        if isinstance(event, _OF_CALLS):
            return await self._of_call(event, part)
        if isinstance(event, ResponseStarted | ChoiceStarted):
            return [event] if len(self._parts) == 1 else []
        if isinstance(event, UsageReported):
            self._last_usage = event if self._usage is None else added(self._usage, event)
            return [self._last_usage]
        if isinstance(event, ResponseFinished | ProviderFailed | StreamEnded):
            part.held.append(event)
            return []
        part.waits = part.waits or (isinstance(event, Aside) and event.kind == "client_tool")
        block: int | None = getattr(event, "block", None)
        if block is None or block < 0:
            return [event]
        self._blocks = max(self._blocks, part.base + block + 1)
        changes: dict[str, Any] = {"block": part.base + block}
        return [evolve(event, **changes) if part.base else event]

    async def _of_call(
        self, event: ToolCallStarted | ToolCallArguments | ToolCallDoomed | ToolCallFinished, part: _Round
    ) -> Sequence[Event]:
        key = event.choice, event.call
        if isinstance(event, ToolCallStarted) and event.name == self._name:
            part.open.add(key)
            return []
        if key in part.open:
            if not isinstance(event, ToolCallFinished):
                return []
            if not event.ended or _is_cut(event):
                self._written.withhold("call_withheld", event.id, event.name, event.arguments)
                return []
            part.open.discard(key)
            return await self._search(event, part)
        if event.call < 0:
            part.numbers.setdefault(key, event.call)
            return [event]
        if key not in part.numbers:
            part.numbers[key] = self._calls
            self._calls += 1
        number = part.numbers[key]
        return [event if number == event.call else evolve(event, call=number)]

    async def _search(self, call: ToolCallFinished, part: _Round) -> Sequence[Event]:
        """Search the tools for a call, and return the asides that tell the client."""
        found = part.searches[call.id] = await asyncio.to_thread(self._tools.find, call.arguments)
        self._searched += 1
        if self._form is None:
            self._written.lose("server_tool", what=self._name)
            return []
        # the client sends the items back, so no two of a conversation may have one id
        return self._form.write(found, self._tools.searches + self._searched, call.choice, self._offered)

    # -- the report ------------------------------------------------------------------------------------------------------

    def _copy_end(self, report: StreamReport) -> None:
        """Copy how the last part ended to the written report."""
        written = self._written
        written.clean, written.terminated = report.clean, report.terminated
        written.failure, written.provider_error = report.failure, report.provider_error

    def settle(self) -> None:
        """Add the reports of the later parts, and of writing the response, to that of the first part, which is the whole's."""
        report, *others = [part.report for part in self._parts]
        for each in (*others, self._written):
            report.repairs += each.repairs
            report.losses += each.losses
            report.verdicts += each.verdicts
            report.lost += each.lost
            report.withheld += each.withheld
        for each in others:
            report.bytes_in += each.bytes_in
            report.frames += each.frames
            report.stops, report.error = each.stops, each.error
        written = self._written
        report.usage = self._last_usage or self._usage or report.usage
        report.tool_searches += self._searched
        report.clean, report.terminated = written.clean, written.terminated
        report.failure, report.provider_error = written.failure, written.provider_error
        report.output_verdicts = written.output_verdicts
        report.completed = written.completed
        report.timings += written.timings[1:]


def _is_cut(call: ToolCallFinished) -> bool:
    """Return whether the model was stopped inside the arguments, so that it may not be answered."""
    return call.verdict is not None and call.verdict.kind == "truncated"
