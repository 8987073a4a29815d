"""Choose upstreams for a request: which one is tried first, which one next, and when to stop.

The upstreams of a route are tried in their order. If one fails before the model has emitted anything, the next one is tried,
provided that it may succeed (``may_do_better``). If an upstream says that the request is wrong, no later upstream is tried,
and the client gets this error at once, with two exceptions. If an earlier upstream was only busy, the client gets that error
instead, because the request may be right. And a preferred upstream that was skipped because it was resting is tried first.

After a round without a response, another round begins if a failure may be temporary. The delay before it is the smallest
``Retry-After``, and at least the backoff. Upstreams that asked for a pause are skipped while others are available; so are, for
requests with tools, upstreams that said that they have no tools. Both are hints, kept per model: they refuse no request.

After the model has emitted something, the client gets the rest or an error (quirks.md 129: a retry would repeat text). With
``on_cut = "continue"``, a response that is interrupted inside text is continued: by the later upstreams, then the earlier
ones, then the interrupted one. Each is tried once per response, and only if it is known to continue text (``prefill_of``).

Source: seeds.md S3; limits.md §1; of token counts, clients.md §10.4 and dialects.md §3.2, §5.1.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar, cast

from aiohttp import ClientSession, web
from attrs import define, field
from tenacity import AsyncRetrying, RetryCallState, retry_if_result, stop_after_attempt, wait_exponential_jitter

from streamkit.conversation.messages import Response
from streamkit.dialects import prefill_of
from streamkit.errors import (
    ConnectTimeout,
    FirstByteTimeout,
    IdleTimeout,
    Interrupted,
    NotThisDialect,
    TotalTimeout,
    stage_of,
)
from streamkit.events import ProviderFailed
from streamkit.gateway.record import Attempt, Record
from streamkit.gateway.routing import Route, Target
from streamkit.http_errors import is_retryable
from streamkit.lab.recording.recorder import OpenRecording, Recorder
from streamkit.report import StreamReport
from streamkit.web.compactions import Compaction, first_compaction
from streamkit.web.continuing import Opened
from streamkit.web.exchange import UNFIT, Exchange
from streamkit.web.observers import CLIENT_LEFT, SHUT_DOWN, STALL_S, OutputTimes, end_of
from streamkit.web.reply import ClientLeftError, Reply
from streamkit.web.side_requests import SideRequest
from streamkit.web.surfaces import Ask
from streamkit.web.token_counts import ESTIMATED, Count, CountTokens, first_count
from streamkit.web.upstream import path_of
from streamkit.web.upstream.requests import NO_HEADERS, as_gateway_failure

if TYPE_CHECKING:  # OpenTelemetry is an optional extra
    from streamkit.gateway.telemetry import AttemptSpan

T = TypeVar("T")

#: The outcome of an attempt for each type of error.
OUTCOMES: Final = {
    ConnectTimeout: "connect_timeout",
    FirstByteTimeout: "first_byte_timeout",
    IdleTimeout: "idle_timeout",
    TotalTimeout: "total_timeout",
    NotThisDialect: "not_this_dialect",
    Interrupted: "shut_down",
}
#: After an upstream refuses a request because it supports no tools: seconds without further requests with tools to it.
NO_TOOLS_S: Final = 3600.0
#: The longest time in seconds that an upstream is not used after an error, even if its ``Retry-After`` is longer: the
#: operator may have raised the upstream's rate limit meanwhile.
REST_S: Final = 86_400.0
#: How many pairs of upstream and model are remembered. Limited, because clients choose the models' names.
REMEMBERED: Final = 1000
NAME_CHARS: Final = 200  #: the most characters of a remembered model's name
#: Types of errors that depend on the upstream (its key, credit or models) and not on the request.
ITS_OWN: Final = frozenset({"auth", "billing", "permission", "not_found"})
_TOOLS: Final = r"\b(?:tools?|tool (?:use|calls|calling)|functions?|function (?:calls|calling))\b"
#: Matches "No endpoints found that support tool use" (OpenRouter), "… does not support tools", "tools is unsupported".
_NO_TOOLS: Final = re.compile(
    rf"(?:\bno\b|\bnot\b|n't\b).{{0,40}}\bsupport\w*\W+(?:for\W+)?{_TOOLS}"
    rf"|{_TOOLS}\W+(?:is|are)\W+(?:not (?:supported|enabled|available)|unsupported|disabled)",
    re.IGNORECASE,
)


@define
class Memory:
    """What this process has learned of its upstreams: which are resting, and which support no tools.

    Each value is the event loop's time until which this applies.
    """

    #: by name of the upstream and the upstream's name for the model
    resting: dict[tuple[str, str], float] = field(factory=dict)
    without_tools: dict[tuple[str, str], float] = field(factory=dict)


def may_go_on(route: Route, ask: Ask) -> bool:
    """Return whether an interrupted response may be continued: the route says so, and it is a stream with one choice."""
    return route.on_cut == "continue" and ask.stream and (ask.request.options.choices or 1) == 1


def lacks_tools(failed: ProviderFailed) -> bool:
    """Return whether an upstream says that it, or this model of it, does not support tools."""
    return failed.type in {"not_found", "invalid_request"} and _NO_TOOLS.search(failed.message) is not None


def may_do_better(failed: ProviderFailed) -> bool:
    """Return whether another upstream may succeed after this failure."""
    redirected = failed.http_status is not None and 300 <= failed.http_status < 400
    its_own = failed.type in ITS_OWN or failed.code == UNFIT
    return is_retryable(failed) or its_own or lacks_tools(failed) or redirected


@define
class _Trying:
    target: Target
    exchange: Exchange
    started: float
    span: AttemptSpan | None = None


@define
class Attempts:
    """Writes one reply by trying a route's upstreams one after the other."""

    route: Route
    ask: Ask
    reply: Reply
    record: Record
    memory: Memory
    session: ClientSession
    stall_s: float = STALL_S  #: a longer gap between outputs is a stall
    recorder: Recorder | None = None  #: records each attempt; None: nothing is recorded
    #: A whole response that lacks the tool call that the request requires. It is sent if no other upstream does better.
    _kept: tuple[Exchange, Response] | None = field(default=None, repr=False)
    #: The failures of this round, each with the response headers of its upstream.
    _failures: list[tuple[ProviderFailed, Mapping[str, str]]] = field(factory=list)
    _upstream_headers: Mapping[str, str] = NO_HEADERS  #: headers of the failed response that the round returns
    _trying: _Trying | None = None
    _onwards: deque[Target] | None = None  #: upstreams that may still continue the response; None: not interrupted yet

    async def run(self) -> None:
        """Send a response to the client, or the reason why there is none."""
        failed = await self._round()
        if self._is_passing(failed):  # tenacity is used only then: it takes 4 % of a short request's CPU time
            failed = await self._more_rounds(failed)
        if failed is not None:
            self.reply.upstream_headers = self._upstream_headers
            upstreams = [target.upstream for target in self.route.targets]
            await self.reply.fail(as_gateway_failure(failed, upstreams, self.reply.client_headers))

    async def _more_rounds(self, first: ProviderFailed | None) -> ProviderFailed | None:
        """Run more rounds after one that ended with ``first``. Return the last round's failure; None if one succeeded."""
        done = [first]
        backoff = wait_exponential_jitter(self.route.backoff_s, self.route.backoff_max_s, jitter=self.route.backoff_s)
        retrying = AsyncRetrying(
            retry=retry_if_result(self._is_passing),
            stop=stop_after_attempt(self.route.retries + 1),
            wait=lambda state: max(backoff(state), _wait_of(_result(state))),
            retry_error_callback=_result,
            sleep=asyncio.sleep,
        )

        async def round_() -> ProviderFailed | None:
            return done.pop() if done else await self._round()

        return cast("ProviderFailed | None", await retrying(round_))

    def _is_passing(self, failed: ProviderFailed | None) -> bool:
        """Return whether the failure may be temporary and the wait before another round is allowed."""
        if failed is None or self.reply.interrupted is not None or not is_retryable(failed):
            return False
        return _wait_of(failed) <= self.route.retry_after_max_s

    async def _round(self) -> ProviderFailed | None:
        """Try each upstream once. Return None if one succeeded, else the failure for the client."""
        self._failures.clear()
        self._upstream_headers = NO_HEADERS
        targets = self._order()
        if isinstance(targets, ProviderFailed):
            return targets
        waiting = deque(targets)
        while waiting:
            target = waiting.popleft()
            failed = await self._try(target)
            if failed is None:
                return None
            self._failures.append((failed, self.reply.upstream_headers))
            self.reply.upstream_headers = NO_HEADERS  # the upstream that responds sets its headers
            if self.reply.interrupted is not None:
                break
            if not may_do_better(failed):
                waiting = deque(self._resting_before(target, targets))
                targets = [*targets, *waiting]
        if self._kept is not None:
            exchange, answer = self._kept
            await exchange.deliver(answer)
            return None
        failed, self._upstream_headers = self._telling()
        return failed

    def _telling(self) -> tuple[ProviderFailed, Mapping[str, str]]:
        """Return the failure that the client gets after a round without a response.

        A busy upstream's failure is preferred: the request may be right, and after a 400 a client does not retry.
        """
        if self.reply.interrupted is not None:
            return self._failures[-1]
        passing = [failure for failure in self._failures if is_retryable(failure[0])]
        refusals = [failure for failure in self._failures if not may_do_better(failure[0])]
        default = (refusals or self._failures)[0]
        return min(passing, key=lambda failure: _wait_of(failure[0]), default=default)

    def _order(self) -> list[Target] | ProviderFailed:
        """Return the upstreams to try in this round, or the reason why there are none."""
        able = [target for target in self.route.targets if target.upstream.tools or not self.ask.request.tools]
        if not able:
            return ProviderFailed("invalid_request", "no upstream of this model supports tools; leave `tools` out")
        now = asyncio.get_running_loop().time()
        if self.ask.request.tools:
            able = [target for target in able if self.memory.without_tools.get(self._key(target), 0.0) <= now] or able
        awake = [target for target in able if self._rests_until(target) <= now]
        return awake or [min(able, key=self._rests_until)]

    def _resting_before(self, refusing: Target, asked: list[Target]) -> list[Target]:
        """Return the upstreams that the route prefers to ``refusing`` and that were skipped because they were resting."""
        now = asyncio.get_running_loop().time()
        preferred = self.route.targets[: self.route.targets.index(refusing)]
        able = [target for target in preferred if target.upstream.tools or not self.ask.request.tools]
        return [target for target in able if target not in asked and self._rests_until(target) > now]

    async def _try(self, target: Target) -> ProviderFailed | None:
        exchange = self._begin(target)
        outcome, detail = "failed", ""
        try:
            if self.ask.stream:
                failed = await exchange.stream(self._go_on if may_go_on(self.route, self.ask) else None)
            else:
                failed = await self._whole(exchange, target)
            failure = None if failed is IGNORED else failed or self.reply.failure
            if self._trying is not None:
                outcome = outcome_of(self._trying.exchange, failure)
            detail = failure.message if failure is not None else ""
        except (asyncio.CancelledError, ClientLeftError):
            outcome = self._cut_short(exchange if self._trying is None else self._trying.exchange)
            raise
        except Exception as error:
            detail = type(error).__name__  # only the type: the error's message may repeat parts of the request
            if stage := stage_of(error):
                outcome, detail = "stage_failed", f"{stage}: {detail}"
            raise
        finally:
            self._end(outcome, detail)
        if failed is not None:
            self._remember(target, failed)
        return failed

    def _begin(self, target: Target, prefill: str = "") -> Exchange:
        trace = self.record.trace
        span = None if trace is None else trace.attempt(self.route, target, self.ask)
        times = OutputTimes(self.stall_s)
        if span is not None:
            times.record_gap = span.record_gap
        exchange = Exchange(
            self.ask,
            target.upstream,
            self.session,
            self.reply,
            target.model,
            output_times=times,
            prefill_text=prefill,
            trace_headers=NO_HEADERS if span is None else span.headers,
            copy_to=None if span is None else span.copy_to,
            stages=[each.stage for each in self.route.stages],
            recording=None if self.recorder is None else _recording(self.recorder, target),
        )
        self._trying = _Trying(target, exchange, asyncio.get_running_loop().time(), span)
        return exchange

    def _end(self, outcome: str, detail: str) -> None:
        """Record the attempt in progress, if there is one."""
        if self._trying is None:
            return
        tried, self._trying = self._trying, None
        exchange, name = tried.exchange, tried.target.upstream.name
        if exchange.recording is not None:
            exchange.recording.end(_end_unread(outcome, exchange.report))
        seconds = asyncio.get_running_loop().time() - tried.started
        exchange.output_times.settle(exchange.report)
        attempt = Attempt(
            name,
            outcome,
            seconds,
            detail,
            exchange.report,
            exchange.asked,
            exchange.path,
            started=tried.started,
            output_times=exchange.output_times,
        )
        self.record.attempts.append(attempt)
        if tried.span is not None:
            tried.span.end(attempt, exchange.answer)

    async def _go_on(self, failed: ProviderFailed, prefill: str) -> Opened | None:
        """Return the next upstream's continuation of ``prefill``, the text so far; None: no upstream can continue it."""
        if self._trying is not None:
            cut = self._trying
            self._end(failed_outcome(failed, cut.exchange.report, cut.exchange.status), failed.message)
            if self._onwards is None:
                self._onwards = deque(self._behind(cut.target))
        while self._onwards:
            target = self._onwards.popleft()
            exchange = self._begin(target, prefill)
            events = await exchange.go_on()
            if not isinstance(events, ProviderFailed):
                exchange.report.repair("continued")
                return Opened(exchange, events)
            self._end(failed_outcome(events, exchange.report, exchange.status), events.message)
            self._remember(target, events)
        return None

    def _behind(self, cut: Target) -> list[Target]:
        """Return the upstreams that may continue a response of ``cut``: the route's later ones, its earlier ones, ``cut``."""
        now, targets = asyncio.get_running_loop().time(), self.route.targets
        place = targets.index(cut) + 1
        able = [target for target in targets if target.upstream.tools or not self.ask.request.tools]
        return [
            target
            for target in (*targets[place:], *targets[:place])
            if target in able and self._rests_until(target) <= now and prefill_of(target.upstream.dialect) is not None
        ]

    def _cut_short(self, exchange: Exchange) -> str:
        """Return the outcome of an attempt that was cancelled."""
        if self.reply.ending in {"whole", "broken"}:  # the client has received everything
            return outcome_of(exchange, self.reply.failure)
        if self.reply.interrupted is not None:
            return "shut_down"
        return "client_stalled" if self.reply.ending == "client stalled" else "client_left"

    async def _whole(self, exchange: Exchange, target: Target) -> ProviderFailed | None:
        answer = await exchange.fetch()
        if isinstance(answer, ProviderFailed):
            return answer
        if (
            outcome_of(exchange, None) == "tool_choice_ignored"
            and self.route.on_tool_choice_ignored == "next"
            and self._kept is None
            and target is not self.route.targets[-1]
        ):
            self._kept = exchange, answer
            return IGNORED
        await exchange.deliver(answer)
        return None

    def _remember(self, target: Target, failed: ProviderFailed) -> None:
        now = asyncio.get_running_loop().time()
        if lacks_tools(failed):
            _note(self.memory.without_tools, self._key(target), now, NO_TOOLS_S)
        if failed.type in {"rate_limit", "unavailable"} and failed.retry_after_s:
            _note(self.memory.resting, self._key(target), now, min(failed.retry_after_s, REST_S))

    def _rests_until(self, target: Target) -> float:
        return self.memory.resting.get(self._key(target), 0.0)

    def _key(self, target: Target) -> tuple[str, str]:
        return target.upstream.name, (target.model or self.ask.model)[:NAME_CHARS]


def _recording(recorder: Recorder, target: Target) -> OpenRecording:
    upstream, provider = target.upstream, target.upstream.provider
    is_exact = upstream.transport == "http"  # messages of a WebSocket are recorded as a stream, not byte for byte
    return recorder.open(dialect=upstream.wire.name, provider="" if provider is None else provider.name, exact=is_exact)


def _end_unread(outcome: str, report: StreamReport) -> str:
    """Return the kind of end to record for an attempt without a response. The reader of a response records its end."""
    if outcome == "shut_down":
        return SHUT_DOWN
    return CLIENT_LEFT if report.error is None else end_of(report.error, answered=False)


#: The gateway's own error for a response that ignores ``tool_choice``. After it, the gateway tries the next upstream.
IGNORED: Final = ProviderFailed("unavailable", "the upstream ignored the request's `tool_choice`")


def _note(until: dict[tuple[str, str], float], key: tuple[str, str], now: float, seconds: float) -> None:
    """Remember ``key`` for some seconds. Clients may name any number of models, so expired keys are removed first."""
    if len(until) >= REMEMBERED:
        for old in [old for old, end in until.items() if end <= now] or list(until)[:1]:
            del until[old]
    until[key] = now + seconds


def _wait_of(failed: ProviderFailed | None) -> float:
    """Return the seconds of pause that the upstream asked for."""
    return (failed.retry_after_s if failed is not None else None) or 0.0


def _result(state: RetryCallState) -> ProviderFailed | None:
    return None if state.outcome is None else state.outcome.result()


def outcome_of(exchange: Exchange, failed: ProviderFailed | None) -> str:
    """Return how an attempt went, for the log and metrics. docs/how-to/run-the-gateway.md lists all outcomes.

    ``failed`` is the failure that the client gets, or that makes the next upstream be tried.
    """
    if failed is None:
        choice, calls = exchange.ask.request.tool_choice, exchange.report.verdicts.total()
        if choice is not None and choice.mode == "required" and not calls:
            return "tool_choice_ignored"
        return "answered" if exchange.ask.request.tools and not calls else "success"
    return failed_outcome(failed, exchange.report, exchange.status)


def failed_outcome(failed: ProviderFailed, report: StreamReport, status: int | None) -> str:
    """Return the outcome of a failed attempt. ``status`` is the upstream's, if it responded; ``report`` has the error."""
    error = report.error
    named = next((name for kind, name in OUTCOMES.items() if isinstance(error, kind)), None)
    if named is not None:
        return named
    if failed.code == "content_filter" and "blocked" in report.losses:
        return "blocked"
    if status is None:
        return "refused" if error is not None else UNFIT
    if status != 200:
        return f"http_{status}"
    if failed.type == "truncated":
        return "cut"
    return "broken" if error is not None else "error_event"


# -- token counts and compactions --------------------------------------------------------------------------------------


async def count(
    ask: Ask,
    route: Route,
    session: ClientSession,
    client_headers: Mapping[str, str],
    record: Record,
    stopping: Callable[[], bool],
    mode: CountTokens,
) -> web.Response:
    """Return the response of ``first_count`` for the route's upstreams.

    Each upstream that is asked becomes an attempt in ``record``. ``stopping`` returns whether the gateway is shutting down; it
    tells a shutdown from a client that disconnected if a count is cancelled.
    """
    counts = (Count(ask, target.upstream, session, client_headers, target.model) for target in route.targets)
    response = await first_count(ask, counts, mode, partial(_try, record, stopping))
    record.estimated = ESTIMATED in response.headers
    return response


async def compact(
    ask: Ask,
    route: Route,
    session: ClientSession,
    client_headers: Mapping[str, str],
    record: Record,
    stopping: Callable[[], bool],
) -> web.Response:
    """Return the response of ``first_compaction`` for the route's upstreams, with attempts as in ``count``."""
    made = (Compaction(ask, target.upstream, session, client_headers, target.model) for target in route.targets)
    return await first_compaction(ask, made, partial(_try, record, stopping))


async def _try(record: Record, stopping: Callable[[], bool], asking: SideRequest[T]) -> T | ProviderFailed:
    loop = asyncio.get_running_loop()
    started = loop.time()
    outcome, detail = "failed", ""
    try:
        found = await asking.fetch()
        outcome = "counted" if asking.ask.operation == "count" else "success"
        if isinstance(found, ProviderFailed):
            outcome, detail = failed_outcome(found, asking.report, asking.status), found.message
    except asyncio.CancelledError:
        outcome = "shut_down" if stopping() else "client_left"
        raise
    finally:
        seconds = loop.time() - started
        upstream, model = asking.upstream, asking.model or asking.ask.model
        path = path_of(upstream, model, stream=False, operation=asking.ask.operation)
        record.attempts.append(Attempt(upstream.name, outcome, seconds, detail, asking.report, asking.asked, path))
    return found
