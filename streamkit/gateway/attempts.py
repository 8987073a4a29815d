"""Choose upstreams for a request: which one is tried first, which one next, and when to stop.

The upstreams of a route are tried in their order. If one fails before the model has emitted anything, the next one is tried,
provided that it may succeed (``may_do_better``). If an upstream says that the request is wrong, no later upstream is tried,
and the client gets this error at once, with two exceptions. If an earlier upstream was only busy, the client gets that error
instead, because the request may be right. And a preferred upstream that was skipped because it was resting is tried first.

After a round without a response, another round begins if a failure may be temporary. The delay before it is the smallest
``Retry-After``, and at least the backoff. Upstreams that rest are skipped while others are available; so are, for requests
with tools, upstreams that said that they have no tools (``health.py``).

After the model has emitted something, the client gets the rest or an error (quirks.md 129: a retry would repeat text). With
``on_cut = "continue"``, a response that is interrupted inside text is continued: by the later upstreams, then the earlier
ones, then the interrupted one. Each is tried once per response, and only if it is known to continue text (``prefill_of``).

Source: seeds.md S3; limits.md §1; of token counts, clients.md §10.4 and dialects.md §3.2, §5.1.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, cast

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
from streamkit.gateway.choice import conversation_of, ordered
from streamkit.gateway.config import Server
from streamkit.gateway.health import Ended, Health, key_rest_s, known_of, lacks_tools
from streamkit.gateway.record import Attempt, Record
from streamkit.gateway.routing import Route, Target
from streamkit.http_errors import is_retryable
from streamkit.lab.recording.recorder import OpenRecording, Recorder
from streamkit.report import StreamReport
from streamkit.web.answered_by import ATTEMPTS, SHOULD_RETRY, is_final, names_of
from streamkit.web.continuing import Opened
from streamkit.web.exchange import UNFIT, Exchange
from streamkit.web.observers import CLIENT_LEFT, SHUT_DOWN, STALL_S, OutputTimes, end_of
from streamkit.web.refusals import Refused
from streamkit.web.reply import ClientLeftError, Reply
from streamkit.web.surfaces import Ask
from streamkit.web.token_counts import ESTIMATED, Count, first_count
from streamkit.web.upstream import path_of
from streamkit.web.upstream.requests import NO_HEADERS, as_gateway_failure

if TYPE_CHECKING:  # OpenTelemetry is an optional extra
    from streamkit.gateway.telemetry import AttemptSpan

#: The outcome of an attempt for each type of error.
OUTCOMES: Final = {
    ConnectTimeout: "connect_timeout",
    FirstByteTimeout: "first_byte_timeout",
    IdleTimeout: "idle_timeout",
    TotalTimeout: "total_timeout",
    NotThisDialect: "not_this_dialect",
    Interrupted: "shut_down",
}
#: Types of errors that depend on the upstream (its key, credit or models) and not on the request.
ITS_OWN: Final = frozenset({"auth", "billing", "permission", "not_found"})


def may_go_on(route: Route, ask: Ask) -> bool:
    """Return whether an interrupted response may be continued: the route says so, and it is a stream with one choice."""
    return route.on_cut == "continue" and ask.stream and (ask.request.options.choices or 1) == 1


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
    number: int  #: what ``Health.begin`` returned
    key: int  #: the index of the upstream's key that is used, if it has several
    span: AttemptSpan | None = None


@define
class Attempts:
    """Writes one reply by trying a route's upstreams one after the other."""

    route: Route
    ask: Ask
    reply: Reply
    record: Record
    health: Health
    session: ClientSession
    stall_s: float = STALL_S  #: a longer gap between outputs is a stall
    recorder: Recorder | None = None  #: records each attempt; None: nothing is recorded
    names: bool = False  #: whether the response names its upstream
    _conversation: bytes | None = field(default=None, repr=False)  #: a digest that ``affinity`` chooses by
    _targets: Sequence[Target] = ()  #: the route's targets in the order for this request
    #: A whole response that lacks the tool call that the request requires. It is sent if no other upstream does better.
    _kept: tuple[Exchange, Response] | None = field(default=None, repr=False)
    #: The failures of this round, each with the response headers of its upstream.
    _failures: list[tuple[ProviderFailed, Mapping[str, str]]] = field(factory=list)
    _upstream_headers: Mapping[str, str] = NO_HEADERS  #: headers of the failed response that the round returns
    _trying: _Trying | None = None
    _onwards: deque[Target] | None = None  #: upstreams that may still continue the response; None: not interrupted yet

    async def run(self) -> None:
        """Send a response to the client, or the reason why there is none."""
        if self.route.balance == "affinity":
            self._conversation = conversation_of(self.ask, self.route.affinity, self.reply.client_headers)
        self._targets = ordered(self.route, self.ask, self._conversation, self.health.streams)
        failed = await self._round()
        if self._is_passing(failed):  # tenacity is used only then: it takes 4 % of a short request's CPU time
            failed = await self._more_rounds(failed)
        if failed is not None:
            self.reply.upstream_headers = self._upstream_headers
            self._tell_attempts(failed)
            upstreams = [target.upstream for target in self.route.targets]
            await self.reply.fail(as_gateway_failure(failed, upstreams, self.reply.client_headers))

    def _tell_attempts(self, failed: ProviderFailed) -> None:
        """Set the headers of an error that say how many attempts were made, and that the client's retry is pointless."""
        was_tried = any(each.outcome != UNFIT for each in self.record.attempts)
        if self.names:
            self.reply.headers[ATTEMPTS] = str(len(self.record.attempts))
        if (
            was_tried
            and self.reply.interrupted is None
            and is_final(failed, self._upstream_headers, self.route.retries)
        ):
            self.reply.headers[SHOULD_RETRY] = "false"

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
        # an upstream with several keys is tried with one after the other, as long as the keys are the reason of its failures
        waiting = deque(target for target in targets for _ in target.upstream.keys or (None,))
        tried: Target | None = None
        failed: ProviderFailed | None = None
        refused = False
        while waiting:
            target = waiting.popleft()
            if failed is not None and not refused:
                now = asyncio.get_running_loop().time()
                if self._rests_until(target, now) > now or (target is tried and key_rest_s(failed) is None):
                    continue  # it has begun to rest meanwhile, or another request probes it, or its key is not the reason
            tried, failed = target, await self._try(target)
            if failed is None:
                return None
            self._failures.append((failed, self.reply.upstream_headers))
            self.reply.upstream_headers = NO_HEADERS  # the upstream that responds sets its headers
            if self.reply.interrupted is not None:
                break
            if not may_do_better(failed):
                refused = True
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
        able = [target for target in self._targets if target.upstream.tools or not self.ask.request.tools]
        if not able:
            return ProviderFailed("invalid_request", "no upstream of this model supports tools; leave `tools` out")
        if len(able) == 1:
            return able
        now = asyncio.get_running_loop().time()
        if self.ask.request.tools:
            able = [target for target in able if not self.health.is_without_tools(self._key(target), now)] or able
        awake = [target for target in able if self._rests_until(target, now) <= now]
        return awake or [min(able, key=lambda target: self._rests_until(target, now))]

    def _resting_before(self, refusing: Target, asked: list[Target]) -> list[Target]:
        """Return the upstreams that the route prefers to ``refusing`` and that were skipped because they were resting."""
        now = asyncio.get_running_loop().time()
        preferred = self._targets[: self._targets.index(refusing)]
        able = [target for target in preferred if target.upstream.tools or not self.ask.request.tools]
        return [target for target in able if target not in asked and self._rests_until(target, now) > now]

    async def _try(self, target: Target) -> ProviderFailed | None:
        exchange = self._begin(target)
        outcome, detail, failure = "failed", "", None
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
            self._end(outcome, detail, failure)
        return failed

    def _begin(self, target: Target, prefill: str = "") -> Exchange:
        trace = self.record.trace
        span = None if trace is None else trace.attempt(self.route, target, self.ask)
        times = OutputTimes(self.stall_s)
        if span is not None:
            times.record_gap = span.record_gap
        now = asyncio.get_running_loop().time()
        upstream, key = self.health.account(self._key(target), target.upstream, self._conversation, now)
        exchange = Exchange(
            self.ask,
            upstream,
            self.session,
            self.reply,
            target.model,
            output_times=times,
            prefill_text=prefill,
            trace_headers=NO_HEADERS if span is None else span.headers,
            copy_to=None if span is None else span.copy_to,
            stages=[each.stage for each in self.route.stages],
            recording=None if self.recorder is None else _recording(self.recorder, target),
            names=self._names_of(target) if self.names else NO_HEADERS,
        )
        number = self.health.begin(self._key(target), exchange.report, now)
        self._trying = _Trying(target, exchange, now, number, key, span)
        return exchange

    def _names_of(self, target: Target) -> dict[str, str]:
        return names_of(target.upstream.name, target.model or self.ask.model, len(self.record.attempts) + 1)

    def _end(self, outcome: str, detail: str, failed: ProviderFailed | None) -> None:
        """Record the attempt in progress, if there is one."""
        if self._trying is None:
            return
        tried, self._trying = self._trying, None
        exchange, name = tried.exchange, tried.target.upstream.name
        if exchange.recording is not None:
            exchange.recording.end(_end_unread(outcome, exchange.report))
        now = asyncio.get_running_loop().time()
        how = Ended(outcome, failed, exchange.report, tried.number, now, tried.key)
        self.health.end(self._key(tried.target), tried.target.upstream, how)
        exchange.output_times.settle(exchange.report)
        attempt = Attempt(
            name,
            outcome,
            now - tried.started,
            detail,
            exchange.report,
            exchange.asked,
            exchange.path,
            started=tried.started,
            output_times=exchange.output_times,
            model=tried.target.model or self.ask.model,
        )
        self.record.attempts.append(attempt)
        if tried.span is not None:
            tried.span.end(attempt, exchange.answer)

    async def _go_on(self, failed: ProviderFailed, prefill: str) -> Opened | None:
        """Return the next upstream's continuation of ``prefill``, the text so far; None: no upstream can continue it."""
        if self._trying is not None:
            cut = self._trying
            self._end(failed_outcome(failed, cut.exchange.report, cut.exchange.status), failed.message, failed)
            if self._onwards is None:
                self._onwards = deque(self._behind(cut.target))
        while self._onwards:
            target = self._onwards.popleft()
            exchange = self._begin(target, prefill)
            events = await exchange.go_on()
            if not isinstance(events, ProviderFailed):
                exchange.report.repair("continued")
                return Opened(exchange, events)
            self._end(failed_outcome(events, exchange.report, exchange.status), events.message, events)
        return None

    def _behind(self, cut: Target) -> list[Target]:
        """Return the upstreams that may continue a response of ``cut``: the route's later ones, its earlier ones, ``cut``."""
        now, targets = asyncio.get_running_loop().time(), self._targets
        place = targets.index(cut) + 1
        able = [target for target in targets if target.upstream.tools or not self.ask.request.tools]
        return [
            target
            for target in (*targets[place:], *targets[:place])
            if target in able
            and self._rests_until(target, now) <= now
            and prefill_of(target.upstream.dialect) is not None
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
            and target is not self._targets[-1]
        ):
            self._kept = exchange, answer
            return IGNORED
        await exchange.deliver(answer)
        return None

    def _rests_until(self, target: Target, now: float) -> float:
        return self.health.rests_until(self._key(target), now)

    def _key(self, target: Target) -> tuple[str, str]:
        return known_of(target, self.ask.model)


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


# -- token counts ------------------------------------------------------------------------------------------------------


async def count(
    ask: Ask,
    route: Route,
    session: ClientSession,
    client_headers: Mapping[str, str],
    record: Record,
    health: Health,
    stopping: Callable[[], bool],
    server: Server,
) -> web.Response:
    """Return the response of ``first_count`` for the route's upstreams.

    Upstreams that rest are asked last, and not at all if an estimate can replace their count. A count does not change an
    upstream's ``health``, because it has an endpoint of its own. Each upstream that is asked becomes an attempt in ``record``.
    ``server`` says what happens if there is no count, and whether the response names the upstream. ``stopping`` returns
    whether the gateway is shutting down; it tells a shutdown from a client that disconnected if a count is cancelled.
    """
    now = asyncio.get_running_loop().time()
    targets = ordered(route, ask, None, health.streams)
    resting = [target for target in targets if health.rests_until(known_of(target, ask.model), now) > now]
    rest = resting if server.count_tokens != "estimate" else ()
    counts = (
        Count(
            ask,
            health.account(known_of(target, ask.model), target.upstream, None, now)[0],
            session,
            client_headers,
            target.model,
        )
        for target in (*(target for target in targets if target not in resting), *rest)
    )
    try:
        response = await first_count(ask, counts, server.count_tokens, partial(_try, record, stopping))
    except Refused as refused:
        refused.headers |= _names_of_last(record, server)
        raise
    record.estimated = ESTIMATED in response.headers
    if not record.estimated:
        response.headers.update(_names_of_last(record, server))
    return response


def _names_of_last(record: Record, server: Server) -> dict[str, str]:
    if not server.name_upstreams or not record.attempts:
        return {}
    last = record.attempts[-1]
    return names_of(last.upstream, last.model, len(record.attempts))


async def _try(record: Record, stopping: Callable[[], bool], counting: Count) -> int | ProviderFailed:
    loop = asyncio.get_running_loop()
    started = loop.time()
    outcome, detail = "failed", ""
    try:
        tokens = await counting.fetch()
        outcome = "counted"
        if isinstance(tokens, ProviderFailed):
            outcome, detail = failed_outcome(tokens, counting.report, counting.status), tokens.message
    except asyncio.CancelledError:
        outcome = "shut_down" if stopping() else "client_left"
        raise
    finally:
        seconds = loop.time() - started
        upstream, model = counting.upstream, counting.model or counting.ask.model
        path = path_of(upstream, model, stream=False, operation="count")
        record.attempts.append(
            Attempt(upstream.name, outcome, seconds, detail, counting.report, counting.asked, path, model=model)
        )
    return tokens
