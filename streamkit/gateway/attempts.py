"""Choose upstreams for a request: which one is tried first, which one next, and when to stop.

The upstreams of a route are tried in their order. If one fails before the model has emitted anything, the next one is tried,
provided that the route lists the reason (``next_on``). If it does not, no later upstream is tried, and the client gets this
error at once, with two exceptions. If an earlier upstream was only busy, the client gets that error instead, because the
request may be right. And a preferred upstream that was skipped because it was resting is tried first.

A complete response may be a reason, too (a refusal, no output). It is kept, and sent if no other upstream does better. With
``hedge_after_s``, the next upstream gets the request as well if one is slow (``hedging.py``).

After a round without a response, another round begins if a failure may be temporary. The delay before it is the smallest
``Retry-After``, and at least the backoff. Upstreams that rest are skipped while others are available; so are, for requests
with tools, upstreams that reported that they have no tools (``health.py``). An upstream whose context is too small for the
request is not tried again.

After the model has emitted something, the client gets the rest or an error (quirks.md 129: a retry would repeat text). With
``on_cut = "continue"``, another upstream continues a response that is interrupted inside text: a later one, else an earlier
one, else the interrupted one again. Each is tried once per response, and only if it is known to continue text
(``prefill_of``).

Source: seeds.md S3; limits.md §1.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, cast

from aiohttp import ClientSession
from attrs import define, evolve, field
from tenacity import AsyncRetrying, RetryCallState, retry_if_result, stop_after_attempt, wait_exponential, wait_random

from streamkit.dialects import prefill_of
from streamkit.errors import stage_of
from streamkit.events import ProviderFailed
from streamkit.gateway.choice import conversation_of, ordered
from streamkit.gateway.health import Ended, Health, key_rest_s, known_of
from streamkit.gateway.hedging import Failure, HeldTap, Race
from streamkit.gateway.reasons import (
    DEFAULT_REASONS,
    HEDGED_OUT,
    Reason,
    failed_outcome,
    is_refusal,
    is_silent,
    outcome_of,
    reasons_in,
    reasons_of,
)
from streamkit.gateway.record import AND, Attempt, Record
from streamkit.gateway.routing import Route, Target
from streamkit.http_errors import is_retryable
from streamkit.lab.recording.recorder import OpenRecording, Recorder
from streamkit.report import StreamReport
from streamkit.web.answered_by import ATTEMPTS, SHOULD_RETRY, is_final, names_of
from streamkit.web.continuing import Opened
from streamkit.web.exchange import Exchange
from streamkit.web.observers import CLIENT_LEFT, SHUT_DOWN, STALL_S, OutputTimes, end_of
from streamkit.web.opening import UNFIT
from streamkit.web.reply import ClientLeftError, Reply
from streamkit.web.surfaces import Ask
from streamkit.web.upstream.hiding import Cut
from streamkit.web.upstream.requests import NO_HEADERS, as_gateway_failure

if TYPE_CHECKING:  # OpenTelemetry is an optional extra
    from streamkit.gateway.telemetry import AttemptSpan


def may_go_on(route: Route, ask: Ask) -> bool:
    """Return whether an interrupted response may be continued: the route says so, and it is a stream with one choice."""
    return route.on_cut == "continue" and ask.stream and (ask.request.options.choices or 1) == 1


@define(eq=False)
class _Trying:
    """An attempt in progress. It is the gate of its response (``Gate``)."""

    attempts: Attempts
    target: Target
    exchange: Exchange
    started: float
    number: int  #: what ``Health.begin`` returned
    key: int  #: the index of the upstream's key that is used, if it has several
    span: AttemptSpan | None = None
    tap: HeldTap | None = None  #: the tap of the exchange, if attempts race
    reasons: tuple[Reason, ...] = ()  #: why another upstream may do better
    #: The upstreams that may still continue the response; None: it is not interrupted yet.
    to_continue: deque[Target] | None = None
    recorded: Attempt | None = None  #: the record of the attempt; None: it is in progress

    def holds(self) -> bool:
        return self.exchange.report.refused and self.attempts.reason_to_keep(self, ("refusal",)) is not None

    def keeps(self, body: bytes, report: StreamReport, cut: Cut) -> ProviderFailed | None:
        attempted = self.exchange.report
        is_silent = is_refusal(attempted) or not (attempted.spoken or attempted.verdicts)
        return self.attempts.keep(self, is_silent, partial(self.attempts.reply.write_kept, body, report, cut))

    def opens(self) -> None:
        self.attempts.open(self)


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
    _begun: int = 0  #: how many attempts have begun
    #: The attempt with the first complete response that another upstream may improve on, and what writes the response.
    _kept: tuple[_Trying, Callable[[], Awaitable[None]]] | None = field(default=None, repr=False)
    _failures: list[Failure] = field(factory=list)  #: of this round
    _too_small: list[Target] = field(factory=list)  #: upstreams whose context is too small for the request
    _waiting: deque[Target] = field(factory=deque)  #: upstreams that this round has not tried yet
    _race: Race | None = None  #: the attempts of this round, if the route hedges
    _upstream_headers: Mapping[str, str] = NO_HEADERS  #: headers of the failed response that the round returns

    async def run(self) -> None:
        """Send a response to the client, or the reason why there is none."""
        if self.route.balance == "affinity":
            self._conversation = conversation_of(self.ask, self.route.affinity, self.reply.client_headers)
        self._targets = ordered(self.route, self.ask, self._conversation, self.health.streams)
        failed = await self._round()
        if self._is_temporary(failed):  # tenacity is used only then: it takes 4 % of a short request's CPU time
            failed = await self._more_rounds(failed)
        if failed is not None:
            self.reply.upstream_headers = self._upstream_headers
            self._set_error_headers(failed)
            upstreams = [target.upstream for target in self.route.targets]
            await self.reply.fail(as_gateway_failure(failed, upstreams, self.reply.client_headers))

    def _set_error_headers(self, failed: ProviderFailed) -> None:
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
        longest = self.route.backoff_max_s
        backoff = wait_exponential(self.route.backoff_s, longest) + wait_random(0, self.route.backoff_s)
        retrying = AsyncRetrying(
            retry=retry_if_result(self._is_temporary),
            stop=stop_after_attempt(self.route.retries + 1),
            wait=lambda state: max(min(backoff(state), longest), _wait_of(_result(state))),
            retry_error_callback=_result,
            sleep=asyncio.sleep,
        )

        async def round_() -> ProviderFailed | None:
            return done.pop() if done else await self._round()

        return cast("ProviderFailed | None", await retrying(round_))

    def _is_temporary(self, failed: ProviderFailed | None) -> bool:
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
        # an upstream with several keys is there once for each key: the next key is tried if a failure was because of the key
        waiting = self._waiting = deque(target for target in targets for _ in target.upstream.keys or (None,))
        resting = list[Target]()  # upstreams that are tried although they rest
        race = self._race = None
        if self.route.hedge_after_s is not None:
            race = self._race = Race(self._try, waiting, self.route.hedge_after_s)
        try:
            while waiting or (race is not None and race.runs):
                failure = await (self._try(waiting.popleft()) if race is None else race.ended())
                if failure is None:
                    return None
                self._failures.append(failure)
                self.reply.upstream_headers = NO_HEADERS  # the upstream that responds sets its headers
                if self.reply.interrupted is not None:
                    break
                reason = self.route.next_for(failure.reasons)
                if reason is None:
                    waiting.clear()
                    if race is not None:
                        race.drop_later()
                self._skip(failure, resting)
                # an upstream that was skipped because it rests may accept the request
                if reason not in DEFAULT_REASONS:
                    skipped = self._resting([*targets, *resting], None if reason else failure.target)
                    waiting.extend(skipped)
                    resting += skipped
        finally:
            if race is not None:
                await race.close()
        if self._kept is not None:
            trying, write = self._kept
            self.reply.upstream_headers, self.record.kept = self._headers_of(trying), trying.recorded
            await write()
            return None
        failed, self._upstream_headers = self._failure_for_client()
        return failed

    def _failure_for_client(self) -> tuple[ProviderFailed, Mapping[str, str]]:
        """Return the failure that the client gets after a round without a response, and the headers of its response.

        A busy upstream's failure is preferred: the request may be right, and after a 400 a client does not retry.
        """
        if self.reply.interrupted is not None:
            chosen = self._failures[-1]
        else:
            temporary = [failure for failure in self._failures if is_retryable(failure.failed)]
            refusals = [failure for failure in self._failures if DEFAULT_REASONS.isdisjoint(failure.reasons)]
            default = (refusals or self._failures)[0]
            chosen = min(temporary, key=lambda failure: _wait_of(failure.failed), default=default)
        named = {failure.target.upstream.name: failure.failed for failure in (chosen, *self._failures)}
        named[chosen.target.upstream.name] = chosen.failed
        if self.reply.interrupted is not None or not _is_named(chosen.target.upstream.name, chosen.failed):
            return chosen.failed, chosen.upstream_headers
        messages = [each.message if _is_named(name, each) else _status(name, each) for name, each in named.items()]
        return evolve(chosen.failed, message=AND.join(messages)), chosen.upstream_headers

    # -- which response is written: called by the attempts in progress ------------------------------------------------

    def reason_to_keep(self, trying: _Trying, reasons: tuple[Reason, ...]) -> Reason | None:
        """Return the first of ``reasons`` for which a complete response is kept, as another upstream may do better."""
        others = [target for target in self._waiting if target is not trying.target]  # without its own further keys
        is_last = not others and (self._race is None or self._race.is_alone)
        return None if is_last and self._kept is None else self.route.next_for(reasons)

    def keep(self, trying: _Trying, is_silent: bool, write: Callable[[], Awaitable[None]]) -> ProviderFailed | None:
        """Keep a complete response that ``write`` writes, if another upstream may do better; else return None."""
        found = reasons_in(self.ask.request, trying.exchange.report, is_silent=is_silent)
        reason = self.reason_to_keep(trying, found)
        if reason is None:
            return None
        trying.reasons = (reason,)
        if self._kept is None:
            self._kept = trying, write
        return KEPT

    def open(self, trying: _Trying) -> None:
        """Let an attempt write its response: no other upstream is tried from now on."""
        self.reply.upstream_headers = self._headers_of(trying)
        if self._race is not None:
            self._race.claim()
        if trying.tap is not None:
            trying.tap.release()

    def _headers_of(self, trying: _Trying) -> Mapping[str, str]:
        """Return the upstream's headers for the client. Other attempts may have begun since this one did."""
        headers = trying.exchange.upstream_headers
        return {**headers, ATTEMPTS: str(self._begun)} if ATTEMPTS in headers else headers

    # -- which upstreams are tried -------------------------------------------------------------------------------------

    def _order(self) -> list[Target] | ProviderFailed:
        """Return the upstreams to try in this round, or the reason why there are none."""
        able = self._able(self._targets)
        if not able:
            return ProviderFailed("invalid_request", "no upstream of this model supports tools; leave `tools` out")
        able = [target for target in able if target not in self._too_small] or able
        if len(able) == 1:
            return able
        now = asyncio.get_running_loop().time()
        if self.ask.request.tools:
            able = [target for target in able if not self.health.is_without_tools(self._key(target), now)] or able
        awake = [target for target in able if self._rests_until(target, now) <= now]
        return awake or [min(able, key=lambda target: self._rests_until(target, now))]

    def _skip(self, failure: Failure, resting: Sequence[Target]) -> None:
        """Remove from the waiting upstreams those that have begun to rest, or whose key is not the reason of the failure."""
        now, waiting = asyncio.get_running_loop().time(), self._waiting
        other_key = key_rest_s(failure.failed) is not None
        left = [
            target
            for target in waiting
            if target in resting
            or (self._rests_until(target, now) <= now and (other_key or target is not failure.target))
        ]
        waiting.clear()
        waiting.extend(left)

    def _resting(self, asked: Sequence[Target], before: Target | None) -> list[Target]:
        """Return the upstreams that were skipped because they rest; with ``before``, those that the route prefers to it."""
        now, targets = asyncio.get_running_loop().time(), self._targets
        preferred = targets if before is None else targets[: targets.index(before)]
        return [
            target for target in self._able(preferred) if target not in asked and self._rests_until(target, now) > now
        ]

    def _able(self, targets: Sequence[Target]) -> list[Target]:
        """Return the upstreams that support tools, if the request has tools; else all."""
        return [target for target in targets if target.upstream.tools or not self.ask.request.tools]

    # -- one attempt ---------------------------------------------------------------------------------------------------

    async def _try(self, target: Target) -> Failure | None:
        """Try one upstream. Return None if its response was written to the client, to its end."""
        trying = self._begin(target)
        outcome, detail, failure = "failed", "", None
        try:
            if self.ask.stream:
                onward = partial(self._go_on, trying) if may_go_on(self.route, self.ask) else None
                failed = await trying.exchange.stream(onward)
            else:
                failed = await self._whole(trying)
            if failed is KEPT:
                (outcome,) = trying.reasons
            else:
                if failed is not None:
                    trying.reasons = reasons_of(failed, trying.exchange.report)
                failure = failed or self.reply.failure
                outcome = outcome_of(trying.exchange, failure)
                detail = failure.message if failure is not None else ""
        except (asyncio.CancelledError, ClientLeftError):
            outcome = self._cut_short(trying.exchange)
            raise
        except Exception as error:
            detail = type(error).__name__  # only the type: the error's message may repeat parts of the request
            if stage := stage_of(error):
                outcome, detail = "stage_failed", f"{stage}: {detail}"
            if self._is_dropped:  # while it was closed
                outcome = HEDGED_OUT
            raise
        finally:
            self._end(trying, outcome, detail, failure)
        if failed is None:
            return None
        if "context_length" in trying.reasons:
            self._too_small.append(target)
        return Failure(target, failed, trying.reasons, trying.exchange.upstream_headers)

    def _begin(self, target: Target, prefill: str = "", trying: _Trying | None = None) -> _Trying:
        """Begin an attempt, or the part of an attempt that continues the text ``prefill`` of ``trying``."""
        trace = self.record.trace
        span = None if trace is None else trace.attempt(self.route, target, self.ask)
        times = OutputTimes(self.stall_s)
        if span is not None:
            times.record_gap = span.record_gap
        now = asyncio.get_running_loop().time()
        upstream, key = self.health.account(self._key(target), target.upstream, self._conversation, now)
        tap = None if self._race is None or self.reply.tap is None or trying is not None else HeldTap(self.reply.tap)
        self._begun += 1
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
            races=self._race is not None,
            tap=tap or self.reply.tap,
        )
        number = self.health.begin(self._key(target), exchange.report, now)
        if trying is None:
            trying = _Trying(self, target, exchange, now, number, key, span, tap)
            if self._race is not None or self.route.next_on != ("default",):
                exchange.gate = trying
        else:
            trying.target, trying.exchange, trying.started, trying.span = target, exchange, now, span
            trying.number, trying.key, trying.recorded = number, key, None
        return trying

    def _names_of(self, target: Target) -> dict[str, str]:
        return names_of(target.upstream.name, target.model or self.ask.model, self._begun)

    def _end(self, trying: _Trying, outcome: str, detail: str, failed: ProviderFailed | None) -> None:
        """Record an attempt, unless it was recorded."""
        if trying.recorded is not None:
            return
        exchange = trying.exchange
        if exchange.recording is not None:
            exchange.recording.end(_end_unread(outcome, exchange.report))
        now = asyncio.get_running_loop().time()
        is_slow = outcome == HEDGED_OUT and now - trying.started >= (self.route.hedge_after_s or 0.0)
        how = Ended(outcome, failed, exchange.report, trying.number, now, trying.key, is_slow)
        self.health.end(self._key(trying.target), trying.target.upstream, how)
        if trying.tap is not None and outcome != HEDGED_OUT:
            trying.tap.release()
        exchange.output_times.settle(exchange.report)
        attempt = trying.recorded = Attempt(
            trying.target.upstream.name,
            outcome,
            now - trying.started,
            detail,
            exchange.report,
            exchange.asked,
            exchange.path,
            reason=trying.reasons[0] if trying.reasons else "",
            started=trying.started,
            output_times=exchange.output_times,
            model=trying.target.model or self.ask.model,
        )
        self.record.add(attempt, is_decided=self._race is not None and not self._race.is_won)
        if trying.span is not None:
            trying.span.end(attempt, exchange.answer)

    async def _go_on(self, trying: _Trying, failed: ProviderFailed, prefill: str) -> Opened | None:
        """Return the next upstream's continuation of ``prefill``, the text so far; None: no upstream can continue it."""
        outcome = failed_outcome(failed, trying.exchange.report, trying.exchange.status)
        self._end(trying, outcome, failed.message, failed)
        if trying.to_continue is None:
            trying.to_continue = deque(self._may_continue(trying.target))
        while trying.to_continue:
            target = trying.to_continue.popleft()
            exchange = self._begin(target, prefill, trying).exchange
            events = await exchange.go_on()
            if not isinstance(events, ProviderFailed):
                exchange.report.repair("continued")
                return Opened(exchange, events)
            self._end(trying, failed_outcome(events, exchange.report, exchange.status), events.message, events)
        return None

    def _may_continue(self, cut: Target) -> list[Target]:
        """Return the upstreams that may continue a response of ``cut``: the route's later ones, its earlier ones, ``cut``."""
        now, targets = asyncio.get_running_loop().time(), self._targets
        place = targets.index(cut) + 1
        return [
            target
            for target in self._able((*targets[place:], *targets[:place]))
            if self._rests_until(target, now) <= now and prefill_of(target.upstream.dialect) is not None
        ]

    @property
    def _is_dropped(self) -> bool:
        """Whether the attempt of the running task was dropped for another one."""
        return self._race is not None and self._race.is_dropped

    def _cut_short(self, exchange: Exchange) -> str:
        """Return the outcome of an attempt that was cancelled."""
        if self._is_dropped:
            return HEDGED_OUT
        if self.reply.ending in {"whole", "broken"}:  # the client has received everything
            return outcome_of(exchange, self.reply.failure)
        if self.reply.interrupted is not None:
            return "shut_down"
        return "client_stalled" if self.reply.ending == "client stalled" else "client_left"

    async def _whole(self, trying: _Trying) -> ProviderFailed | None:
        exchange = trying.exchange
        answer = await exchange.fetch()
        if isinstance(answer, ProviderFailed):
            return answer
        if kept := self.keep(trying, is_silent(exchange.answer or answer), partial(exchange.deliver, answer)):
            return kept
        trying.opens()
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


#: Stands for a complete response that is kept while another upstream is tried. No client gets this error.
KEPT: Final = ProviderFailed("unavailable", "the upstream's response is kept")


def _is_named(upstream: str, failed: ProviderFailed) -> bool:
    """Return whether a message names its upstream: the connection failed, and it is no message of the provider."""
    return failed.message.startswith(f"{upstream}: ")


def _status(upstream: str, failed: ProviderFailed) -> str:
    return f"{upstream}: {failed.type if failed.http_status is None else f'status {failed.http_status}'}"


def _wait_of(failed: ProviderFailed | None) -> float:
    """Return the seconds of pause that the upstream asked for."""
    return (failed.retry_after_s if failed is not None else None) or 0.0


def _result(state: RetryCallState) -> ProviderFailed | None:
    return None if state.outcome is None else state.outcome.result()
