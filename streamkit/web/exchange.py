"""One request to one upstream, and how its response reaches the client.

``opening.py`` sends the request. A streamed response is translated while it arrives. A whole response is read first, so that
code that chooses upstreams can inspect it before the client gets it. If both sides speak the same dialect, a valid response is
passed on byte for byte in both forms (L4: the law that says so).

A failure is returned as a value, since the next upstream may succeed. Only a client that disconnects raises an exception.

Source: design.md §6; seeds.md S1, S3.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Final, TypeVar

from aiohttp import ClientSession
from attrs import define, evolve, field

from streamkit.conversation.collector import Collector
from streamkit.conversation.messages import Response, Text, Turn
from streamkit.conversation.response_events import response_events
from streamkit.conversation.restore import restore_response_calls
from streamkit.dialects import client_named, encode, prefill_of
from streamkit.dialects.profiles import Profile
from streamkit.dialects.streams.event_encoder import failure_from
from streamkit.errors import StreamError, TooManyValues
from streamkit.events import Event, ProviderFailed, ReasoningDelta, RefusalDelta, TextDelta, ToolCallArguments
from streamkit.limits import ANSWER_VALUES, DEFAULT_LIMITS
from streamkit.pipeline import Pipe, StageFunction, pipe
from streamkit.read_options import ReadOptions
from streamkit.recipes import client_events, collect, collect_events, options_before, own_stages, transcode
from streamkit.report import StreamReport
from streamkit.rewrite.given import EventStage
from streamkit.tool_calls.output import OutputCheck, output_stage, served_check
from streamkit.translation.bodies import decode_response, encode_response
from streamkit.translation.citations import carry_citations_of, carry_searches_of
from streamkit.translation.deferred_tools import DeferredTools
from streamkit.translation.documents import has_documents
from streamkit.translation.tool_searches import carry_tool_searches_of
from streamkit.web.continuing import Continuing, Onward, Opened
from streamkit.web.forms import Came, form_of
from streamkit.web.heavy import count_values, in_thread, is_heavy
from streamkit.web.observers import ExchangeRecording, OutputTimes, Tap
from streamkit.web.opening import Sending
from streamkit.web.reply import Gate, Reply, failure_in
from streamkit.web.resume.settings import takes_ids
from streamkit.web.searching import Searching
from streamkit.web.source import TimedSource, whole_body
from streamkit.web.surfaces import Ask
from streamkit.web.token_counts import estimated_tools
from streamkit.web.upstream import Upstream, hidden, path_of
from streamkit.web.upstream.hiding import Cut
from streamkit.web.upstream.requests import NO_HEADERS

T = TypeVar("T")
EVENTS_AT_ONCE: Final = 100  #: events of a whole response that are written in one turn of the event loop
TEXT_AT_ONCE: Final = 64 * 1024  #: characters of its text that pass the stages in one turn


@define
class Exchange:
    """One request to one upstream. Call ``stream`` or ``fetch`` once; after that, the reports say what happened."""

    ask: Ask
    upstream: Upstream
    session: ClientSession
    reply: Reply
    model: str | None = None  #: the upstream's name for the model; None: the client's name
    #: What was lost when the request was translated for the upstream.
    asked: StreamReport = field(factory=StreamReport, repr=False)
    #: The repairs and losses of the response. It includes the upstream's error.
    report: StreamReport = field(factory=StreamReport, repr=False)
    status: int | None = None  #: the upstream's HTTP status, if it responded
    output_times: OutputTimes = field(factory=OutputTimes, repr=False)  #: the times of the outputs of a stream
    #: The text that the response to the client already has; this upstream must continue it.
    prefill_text: str = field(default="", repr=False)
    path: str = ""  #: the path of the request to the upstream, for logs
    trace_headers: Mapping[str, str] = NO_HEADERS  #: request headers that tell the upstream the trace (``traceparent``)
    names: Mapping[str, str] = NO_HEADERS  #: response headers that tell the client which upstream this is
    copy_to: Callable[[bytes], None] | None = None  #: called with each chunk of a stream
    recording: ExchangeRecording | None = field(default=None, repr=False)  #: records the bytes of an exchange over HTTP
    answer: Response | None = field(default=None, repr=False)  #: the response, if it is not streamed
    #: The stages that each response passes before it is written. ``answer`` is the response before them.
    stages: Sequence[EventStage] = field(default=(), repr=False)
    #: Decides when the response is written, if another upstream may still respond instead.
    gate: Gate | None = field(default=None, repr=False)
    #: Whether another exchange may write to the same reply meanwhile: then the reply gets no headers before ``gate`` opens.
    races: bool = False
    tap: Tap | None = field(default=None, repr=False)  #: receives the bytes that are read
    upstream_headers: Mapping[str, str] = field(
        default=NO_HEADERS, repr=False
    )  #: the upstream's headers for the client
    #: The bytes of a whole response, if they can be passed on unchanged.
    raw: bytes | None = field(default=None, repr=False)

    def __attrs_post_init__(self) -> None:
        if not self.prefill_text:
            self._tools = self.upstream.deferred_tools(self.ask.request, self.asked)

    async def stream(self, onward: Onward | None = None) -> ProviderFailed | None:
        """Request a stream and write it to the client. Return the failure if it failed before the model emitted anything.

        If the stream is interrupted later, ``onward`` asks another upstream to continue it; so no such stream passes unparsed.
        """
        if self._searches:
            return await self._searched()
        arrived = await self._arrived(stream=True)
        if isinstance(arrived, ProviderFailed):
            return arrived
        source, came = arrived
        if came.form == "body":
            try:
                return await self._replayed(came.body, came.values)
            except StreamError as error:
                return self._failed(error)
        if onward is not None:
            return await self._continued(self._events(source), onward)
        translated = transcode(
            source,
            self.upstream.dialect,
            self.reply.client,
            self._options,
            stages=self.stages,
            report=self.report,
            profile=self._passing() if self._within and not self.stages else self._profile(),
            timings=self.reply.delivery.timings,
        )
        return await self.reply.send(translated, source, cut=self._cut, gate=self.gate)

    def _failed(self, error: StreamError) -> ProviderFailed:
        self.report.failed(error)
        return hidden(failure_from(error), self._cut)

    async def _arrived(self, *, stream: bool) -> tuple[TimedSource, Came] | ProviderFailed:
        """Send the request. Return the response and its form (stream or body), or the failure.

        The source is closed if there is nothing more to read.
        """
        source = await self._open(stream=stream)
        if isinstance(source, ProviderFailed):
            return source
        went_on = False
        try:
            came = await form_of(source, self.upstream.wire)
            went_on = came.form != "body"
        except StreamError as error:
            return self._failed(error)
        finally:
            if not went_on:
                await source.aclose()
        # set before the response is read: the bytes that were read to detect its form were put back and are read again
        source.copy_to = self.copy_to
        return source, came

    async def _replayed(self, body: bytes, values: int) -> ProviderFailed | None:
        """Write a whole response as the stream that was requested. Raises StreamError."""
        answer = await self._read(body, values)
        if not answer.clean:
            return hidden(answer.error or failure_in(self.report), self._cut)
        self.report.repair("body_for_stream")
        if not self._within:
            await self._translated(partial(self._restore, answer))
        events = await self._translated(partial(response_events, answer))
        own, writing = own_stages(self.stages, self._options), encode(self.reply.client, profile=self._profile())
        source = _pieces(events) if own else _slices(events)
        written: Pipe[bytes] = Pipe(source, (*own, writing), self.report, timings=self.reply.delivery.timings)
        return await self.reply.send(written, cut=self._cut, gate=self.gate)

    async def go_on(self, *, stream: bool = True) -> Pipe[list[Event]] | ProviderFailed:
        """Request a part of a response: after ``prefill_text``, or between searches. Return it as events, or the failure."""
        arrived = await self._arrived(stream=stream)
        if isinstance(arrived, ProviderFailed):
            return arrived
        source, came = arrived
        if came.form != "body":
            if not stream and self.upstream.transport == "http":
                self.report.repair("stream_for_body")
            return self._events(source)
        try:
            answer = await self._read(came.body, came.values)
        except StreamError as error:
            return self._failed(error)
        if not answer.clean:
            return hidden(answer.error or failure_in(self.report), self._cut)
        if stream:
            self.report.repair("body_for_stream")
        if self._searches and not self._within:
            await self._translated(partial(self._restore, answer))
        return pipe(_slices(response_events(answer)), report=self.report)

    def _events(self, source: TimedSource) -> Pipe[list[Event]]:
        self._source = source
        source.report = self.report
        return client_events(
            source,
            self.upstream.dialect,
            self.reply.client,
            evolve(self._options, output=None),  # the text of all upstreams is checked together, in ``_continued``
            report=self.report,
            timings=self.reply.delivery.timings,
        )

    async def _continued(self, events: Pipe[list[Event]], onward: Onward) -> ProviderFailed | None:
        written = StreamReport()
        takes_comments = takes_ids(self.reply.client, is_array=self.ask.as_array)
        answer = Continuing(Opened(self, events), onward, written, takes_comments=takes_comments)
        writing = encode(self.reply.client, profile=self._profile())
        pieces: Pipe[bytes] = Pipe(
            answer.batches(),
            (*self._after_parts(), writing, answer.mark_seams),
            written,
            timings=self.reply.delivery.timings,
        )
        try:
            return await self.reply.send(pieces, answer, cut=answer.hide, gate=self.gate)
        finally:
            answer.settle()

    async def _searched(self) -> ProviderFailed | None:
        """Write a stream between whose parts the gateway searches the client's deferred tools."""
        answer = await self._searching(stream=True)
        if isinstance(answer, ProviderFailed):
            return answer
        written = answer.written
        writing = encode(self.reply.client, profile=self._profile())
        timings = self.reply.delivery.timings
        pieces: Pipe[bytes] = Pipe(answer.batches(), (*self._after_parts(), writing), written, timings=timings)
        try:
            return await self.reply.send(pieces, answer, cut=answer.hide, gate=self.gate)
        finally:
            answer.settle()

    async def _fetch_searched(self) -> Response | ProviderFailed:
        """Return a whole response between whose parts the gateway searched the client's deferred tools."""
        answer = await self._searching(stream=False)
        if isinstance(answer, ProviderFailed):
            return answer
        events: Pipe[list[Event]] = Pipe(answer.batches(), self._after_parts(), answer.written)
        collector = Collector(self.upstream.wire.name, answer.written)
        try:
            async with events:
                async for batch in events:
                    collector.feed(batch)
        except StreamError as error:
            answer.written.failed(error)
            return hidden(failure_from(error), answer.hide)
        finally:
            answer.settle()
        whole = self.answer = collector.finish()
        return whole if whole.clean else hidden(whole.error or failure_in(answer.written), answer.hide)

    async def _searching(self, *, stream: bool) -> Searching | ProviderFailed:
        """Ask for the first part of a response. Return it, or the failure."""
        first, tools = await self.go_on(stream=stream), self._tools
        if isinstance(first, ProviderFailed) or tools is None:
            return first if isinstance(first, ProviderFailed) else failure_in(self.report)

        async def again() -> Opened | ProviderFailed:
            part = evolve(self, report=StreamReport(), asked=StreamReport(), recording=None, copy_to=None)
            part._tools = tools  # noqa: SLF001 - another exchange with the same tools
            events = await part.go_on(stream=stream)
            return events if isinstance(events, ProviderFailed) else Opened(part, events)

        return Searching(
            Opened(self, first),
            again,
            tools,
            dialect=self.upstream.wire.name,
            form=client_named(self.reply.client)[0].tool_searches,
            offered=self.ask.request.tools,
            written=StreamReport(),
        )

    def _after_parts(self) -> tuple[StageFunction[Any, Any], ...]:
        """Return the stages for the events of all parts of a response together: the user's, and the check of its text."""
        own, check = own_stages(self.stages, self._options), self._output_check
        return tuple(own) if own or check is None else (output_stage(check, DEFAULT_LIMITS),)  # ``own`` checks it, too

    def interrupt(self, error: Exception) -> None:
        if self._source is not None:
            self._source.fail(error)

    def hide(self, text: str) -> str:
        """Return ``text`` without the keys that were sent."""
        return self._cut(text)

    async def fetch(self) -> Response | ProviderFailed:
        """Request a whole response and read it. Return it as the stages change it."""
        if self._searches:
            return await self._fetch_searched()
        arrived = await self._arrived(stream=False)
        if isinstance(arrived, ProviderFailed):
            return arrived
        source, came = arrived
        body = b""
        try:
            if came.form == "stream":
                answer = await self._collected(source)
            else:
                body = came.body or await whole_body(source)
                answer = await self._read(body, came.values)
        except StreamError as error:
            return self._failed(error)
        if not answer.clean:
            return hidden(answer.error or failure_in(self.report), self._cut)
        # in some dialects a response need not name its model
        named = answer.model or self.upstream.wire.model_place is None
        if self._within and named and body and not self.report.repairs and not self.stages:
            self.raw = body
        elif not self._within:
            await self._translated(partial(self._restore, answer))
        return await self._staged(answer) if self.stages else answer

    async def _staged(self, answer: Response) -> Response | ProviderFailed:
        """Return a whole response as the stages change it; the failure if they end it with an error."""
        events = _pieces(await self._translated(partial(response_events, answer)))
        try:
            changed = await collect_events(events, answer.dialect, self.stages, self._options, report=self.report)
        except StreamError as error:
            return self._failed(error)
        return changed if changed.clean else hidden(changed.error or failure_in(self.report), self._cut)

    async def _read(self, body: bytes, values: int) -> Response:
        """Parse the upstream's whole response body. ``values`` is the number of its JSON values; 0: not counted yet.

        Raises StreamError.
        """
        values = values or await count_values(body, ANSWER_VALUES)
        if values > ANSWER_VALUES:
            raise TooManyValues(ANSWER_VALUES)
        self._heavy = is_heavy(len(body), values)
        self.answer = await self._translated(
            partial(decode_response, body, self.upstream.dialect, self._reading, report=self.report)
        )
        return self.answer

    async def _translated(self, work: Callable[[], T]) -> T:
        """Return the result of ``work``, which runs in a thread if the response is large."""
        return await in_thread(work) if self._heavy else work()

    async def _collected(self, source: TimedSource) -> Response:
        """Collect a stream into the whole response that was requested, before its stages. Raises StreamError."""
        source.report = self.report
        answer = self.answer = await collect(source, self.upstream.dialect, self._reading, report=self.report)
        if self.report.error is not None:
            raise self.report.error
        self._heavy = is_heavy(source.read_bytes, 0)
        if answer.clean and self.upstream.transport == "http":  # over a WebSocket, every response is a stream
            self.report.repair("stream_for_body")
        return answer

    async def deliver(self, answer: Response) -> None:
        """Write a whole response to the client."""
        if self.raw is not None:
            await self.reply.whole(self.raw)
            return
        write = partial(encode_response, answer, self.reply.client, profile=self._profile(), report=self.report)
        await self.reply.whole(await self._translated(write))

    def _restore(self, answer: Response) -> None:
        """Adapt a whole response of another dialect: use the client's tool names, and cite as the client expects."""
        tools, client = self.ask.request.tools, client_named(self.reply.client)[0].name
        restore_response_calls(answer, tools)
        carry_searches_of(answer, client, tools)
        carry_tool_searches_of(answer, client, tools)
        carry_citations_of(answer, client)

    # -- sending the request ---------------------------------------------------------------------------------------

    @cached_property
    def _within(self) -> bool:
        """Whether client and upstream speak the same dialect."""
        return self.upstream.wire is client_named(self.reply.client)[0]

    @cached_property
    def _searches(self) -> bool:
        """Whether the gateway searches deferred tools between the parts of the response."""
        return self._tools is not None and self._tools.search is not None

    @property
    def _options(self) -> ReadOptions:
        """The options for reading this upstream's responses."""
        policy = self.reply.delivery.policy
        think_tags = policy.think_tags if self.upstream.think_tags == "auto" else self.upstream.think_tags
        if think_tags == "auto" and self._within:
            # same dialect: the client gets the text with its thinking tags, as the upstream sends it, streamed or whole
            think_tags = "off"
        tools = any(tool.kind != "server" for tool in self.ask.request.tools)
        text_calls = (self.upstream.text_calls or policy.text_calls) if tools else ()
        if (think_tags, text_calls) != (policy.think_tags, policy.text_calls):
            policy = evolve(policy, think_tags=think_tags, text_calls=text_calls)
        request = self.ask.request
        cited = not self._within and has_documents(request)
        offered = request.tools
        if self._tools is not None and self._tools.search is not None:
            offered = [*offered, self._tools.search]
        return ReadOptions(policy=policy, offered=offered, output=self._output_check, documents=cited)

    @property
    def _reading(self) -> ReadOptions:
        """The options for reading a whole response before it passes the stages."""
        return options_before(self.stages, self._options)

    @property
    def _output_check(self) -> OutputCheck | None:
        """The check of the response's text, if the client asked for JSON."""
        turns = self.ask.request.turns
        if turns and turns[-1].role == "assistant":
            return None  # the response is only the rest of the text
        return served_check(self.ask.request.options.output, DEFAULT_LIMITS, schema=self.reply.delivery.check_schemas)

    def _profile(self) -> Profile:
        """Return how to write the client's dialect: with token usage if the client asked for it.

        The User-Agent shows some clients' peculiarities. Those that have no way to ask get the usage where they read it.
        """
        dialect, profile = client_named(self.reply.client)
        asked = self.ask.request.stream_usage
        agent = self.reply.client_headers.get("User-Agent", "").lower()
        profile = next((each for each in dialect.clients if each.user_agent and each.user_agent in agent), profile)
        counted = profile.usage_unasked if asked is None else asked
        return evolve(
            profile,
            include_usage=counted,
            model=self.ask.model,
            settings=dialect.settings(self.ask.request),
            asked_at=self._asked_at,
        )

    def _passing(self) -> Profile:
        """Return what the frames of a stream must match to be passed on unchanged in the client's dialect."""
        profile = client_named(self.reply.client)[1]
        return evolve(profile, include_usage=self.ask.request.stream_usage is True, model=self.ask.model)

    async def _open(self, *, stream: bool) -> TimedSource | ProviderFailed:
        """Return the upstream's response with status 200 and an unread body; else the failure."""
        self._asked_at = time.time()
        model = self.model or self.ask.model
        self.path = path_of(self.upstream, model, stream=stream)
        request = self.ask.request.copy() if self._tools is None else self._tools.visible()
        if self._tools is not None:
            offered = [] if self._tools.search is None else [self._tools.search]
            saved = estimated_tools(self._tools.hidden) - estimated_tools(offered)
            self.report.tokens_saved += max(saved, 0)
        request.model, request.stream = model, stream
        if self.prefill_text:
            request.turns = with_prefill(request.turns, self.prefill_text)
        if self.tap is not None:
            self.tap.attempt(self.upstream.name, self.upstream.dialect, ReadOptions(policy=self._options.policy))
        if stream and not self._within:
            request.stream_usage = True  # other dialects always include the token usage
        opened = await Sending(
            self.session,
            self.upstream,
            request,
            self.ask,
            self.reply.client_headers,
            self.asked,
            self.report,
            prefill=prefill_of(self.upstream.dialect) if self.prefill_text else None,
            trace_headers=self.trace_headers,
            recording=self.recording,
        ).open()
        self.status, self._cut = opened.status, opened.cut
        self.upstream_headers = {**opened.upstream_headers, **self.names}
        if not self.races:
            self.reply.upstream_headers = self.upstream_headers
        if stream and isinstance(opened.answer, TimedSource):
            opened.answer.output_times = self.output_times
        if isinstance(opened.answer, TimedSource):
            opened.answer.tap = self.tap
        return opened.answer

    #: The deferred tools that the gateway searches. None: it searches none for this request.
    _tools: DeferredTools | None = field(init=False, default=None, repr=False)
    _source: TimedSource | None = field(init=False, default=None, repr=False)
    _asked_at: float | None = field(init=False, default=None)
    _heavy: bool = field(init=False, default=False)  #: a whole response is so large that it is translated in a thread
    #: Removes the keys that were sent to the upstream from a text.
    _cut: Cut = field(init=False, default=str, repr=False)


def with_prefill(turns: list[Turn], text: str) -> list[Turn]:
    """Return ``turns`` with ``text``, the beginning of the model's response, as assistant text at the end.

    If the client's own conversation ends with assistant text, ``text`` is placed after that.
    """
    last = turns[-1] if turns else None
    if last is None or last.role != "assistant":
        return [*turns, Turn("assistant", [Text(text)])]
    begun = "".join(part.text for part in last.parts if isinstance(part, Text))
    others = [part for part in last.parts if not isinstance(part, Text)]
    return [*turns[:-1], evolve(last, parts=[*others, Text(begun + text)])]


async def _slices(events: list[Event]) -> AsyncIterator[list[Event]]:
    """Yield the events in small batches, so that other tasks of the event loop run between two batches."""
    for at in range(0, len(events), EVENTS_AT_ONCE):
        yield events[at : at + EVENTS_AT_ONCE]
        await asyncio.sleep(0)


async def _pieces(events: list[Event]) -> AsyncIterator[list[Event]]:
    """Yield the events as ``_slices`` does, but a long text in pieces: a stage takes up to 5 ms for 100,000 characters."""
    async for batch in _slices(events):
        if all(len(_text_of(event)[1]) <= TEXT_AT_ONCE for event in batch):
            yield batch
            continue
        for event in batch:
            member, text = _text_of(event)
            for at in range(0, len(text) or 1, TEXT_AT_ONCE):
                changes: dict[str, Any] = {member: text[at : at + TEXT_AT_ONCE]} if text else {}
                yield [evolve(event, **changes)]
                await asyncio.sleep(0)


def _text_of(event: Event) -> tuple[str, str]:
    """Return the member of a delta that has its text, and the text."""
    if isinstance(event, ToolCallArguments):
        return "fragment", event.fragment
    return "text", event.text if isinstance(event, TextDelta | ReasoningDelta | RefusalDelta) else ""
