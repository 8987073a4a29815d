"""What a process has learned of its upstreams: which of them rest, which keys rest, and which models have no tools.

All of it is kept for each model of an upstream, in this process only. It changes the order in which upstreams are tried, and
refuses no request: if all upstreams of a route rest, the one whose rest ends first is tried.

An upstream rests for one of three reasons:

* It asked for a pause (``Retry-After``).
* All its keys rest: the provider refused each of them, or limits its rate.
* It failed too often. This is a circuit breaker. While the circuit is *closed*, five failures open it, or two time-outs, since
  each of these has cost a client a minute or more; but only if at least half of the attempts since the first one failed.
  Attempts are counted when they begin, because most failures come sooner than the responses to other attempts. So neither one
  slow failure on an idle service opens it, nor a few failures among many responses. Failures are forgotten after 30 s, or
  after ten times as long as a time-out took, since requests that wait for it follow one another slowly. While the circuit is
  *open*, the upstream rests. After that it is *half-open*: one request probes the upstream, and others skip it until the
  model has emitted something. A failure makes the next rest twice as long, up to a maximum; a response closes the circuit.

The outcome of an attempt that began before the circuit opened is not counted, because the upstream's state has changed since.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container
from typing import Final, TypeAlias

from attrs import define, field, frozen

from streamkit.errors import LimitExceeded, TimedOut
from streamkit.events import ProviderFailed
from streamkit.gateway.choice import key_order
from streamkit.gateway.log import log
from streamkit.gateway.reasons import END_REASONS, lacks_tools
from streamkit.gateway.routing import Target
from streamkit.http_errors import is_retryable
from streamkit.report import StreamReport
from streamkit.web.upstream import Upstream
from streamkit.web.upstream.requests import refuses_key
from streamkit.web.upstream.value import Rest

#: An upstream's name and its name for a model.
Known: TypeAlias = tuple[str, str]

WINDOW_S: Final = 30.0  #: seconds after the first of several failures until they are forgotten
#: A time-out is remembered for this many times the seconds that it took, because requests that wait for it follow slowly.
TIMEOUT_WINDOWS: Final = 10.0
TIMEOUT_POINTS: Final = 3  #: a time-out counts as this many failures, so two time-outs open a circuit
#: A failure within this many seconds of the one before counts as this share of one, because both may have one cause.
BURST_S, BURST_SHARE = 0.2, 0.25
#: The count starts again if fewer than one in this many attempts failed, so that an outage that begins then opens the circuit.
FEW: Final = 4
#: Assumed seconds until a probe has a result. It is used only to compare upstreams that all rest.
PROBE_S: Final = 1.0
#: Seconds for which requests with tools skip an upstream that supports no tools.
NO_TOOLS_S: Final = 3600.0
#: The longest time in seconds that an upstream is not used after an error, even if its ``Retry-After`` is longer: the
#: operator may have raised the upstream's rate limit meanwhile.
REST_S: Final = 86_400.0
#: Seconds that one of several keys rests without a ``Retry-After``: after the provider limited its rate, and after it refused
#: the key, or said that the account has no credit.
LIMITED_S, REFUSED_S = 10.0, 300.0
#: How many pairs of upstream and model are remembered. Limited, because clients choose the models' names.
REMEMBERED: Final = 1000
NAME_CHARS: Final = 200  #: the most characters of a remembered model's name

RESPONSES: Final = frozenset({"success", "answered", *END_REASONS})
_TIMEOUTS: Final = frozenset({"connect_timeout", "first_byte_timeout", "idle_timeout"})
#: Failures of the upstream whatever the request is. An error event or a status counts only if its type says so.
_FAILURES: Final = frozenset({"refused", "total_timeout", "cut", "broken", "not_this_dialect"})


def known_of(target: Target, model: str) -> Known:
    """Return the key under which the results of requests for ``model`` to ``target`` are remembered."""
    return target.upstream.name, (target.model or model)[:NAME_CHARS]


def key_rest_s(failed: ProviderFailed) -> float | None:
    """Return how long a key rests after this failure. None: another key would fail in the same way."""
    if failed.type == "rate_limit":
        return min(failed.retry_after_s or LIMITED_S, REST_S)
    if failed.type == "billing" or refuses_key(failed):
        return min(failed.retry_after_s or REFUSED_S, REST_S)
    return None


@frozen
class Ended:
    """How an attempt ended."""

    outcome: str  #: as in the log
    failed: ProviderFailed | None
    report: StreamReport = field(repr=False)  #: of the response, with the error that ended it
    number: int  #: what ``Health.begin`` returned
    now: float
    key: int = 0  #: the index of the key that was used, if the upstream has several
    is_slow: bool = False  #: whether it was so slow that the next upstream was asked as well, and was faster

    @property
    def failures(self) -> int:
        """The number of failures that the attempt counts as; 0 if the upstream did not fail.

        A wrong request, a client that left, a content filter, and the gateway's own faults and limits count as 0.
        """
        if self.outcome in _TIMEOUTS:
            return TIMEOUT_POINTS
        if self.is_slow:
            return 1
        if self.outcome in _FAILURES:
            return 0 if isinstance(self.report.error, LimitExceeded) else 1
        failed = self.failed
        if failed is None or not (self.outcome == "error_event" or self.outcome.startswith("http_5")):
            return 0
        return 1 if failed.type != "rate_limit" and is_retryable(failed) else 0

    @property
    def remembered_s(self) -> float:
        """Seconds for which the failure counts."""
        error = self.report.error
        return max(WINDOW_S, TIMEOUT_WINDOWS * error.allowed_s) if isinstance(error, TimedOut) else WINDOW_S


@define
class _Standing:
    """What is known of one model of an upstream. Times are the event loop's; 0.0 is in the past."""

    without_tools_until: float = 0.0
    pause_until: float = 0.0  #: the pause that the upstream asked for
    keys_until: list[float] = field(factory=list)  #: of each key, if there are several: until when it rests
    begun: int = 0  #: how many attempts have begun
    earlier: int = 0  #: how many of them began before the upstream was changed: they say nothing of it
    #: Of the failures that are counted: how many attempts, and what they count as; the first and the last attempt; until when.
    failed: int = 0
    failures: float = 0.0
    first: int = 0
    last: int = 0
    counted_until: float = 0.0
    failed_at: float = -BURST_S  #: when the last one failed
    why: str = ""  #: the outcome that opened the circuit; empty: the circuit is closed
    opened: int = 0  #: the last attempt that had begun when the circuit was opened
    rest_s: float = 0.0  #: the length of the last rest
    rest_until: float = 0.0
    probe: StreamReport | None = None  #: the report of the attempt that probes the upstream

    def count(self, how: Ended) -> None:
        """Count a failure while the circuit is closed."""
        begun = max(self.last, how.number) - min(self.first, how.number) + 1
        if how.now >= self.counted_until or FEW * (self.failed + 1) < begun:
            self.failed, self.failures = 0, 0.0
            self.first = self.last = how.number
            self.counted_until = how.now + WINDOW_S
        self.failed += 1
        self.failures += how.failures * (BURST_SHARE if how.now < self.failed_at + BURST_S else 1)
        self.failed_at = how.now
        self.first, self.last = min(self.first, how.number), max(self.last, how.number)
        if how.remembered_s > WINDOW_S:
            self.counted_until = max(self.counted_until, how.now + how.remembered_s)

    def fails(self, failures: int) -> bool:
        """Return whether the counted failures are enough to open the circuit."""
        return self.failures >= failures and 2 * self.failed >= self.last - self.first + 1

    def open(self, how: Ended, rest_s: float) -> None:
        """Open the circuit for ``rest_s`` seconds."""
        self.why, self.opened = how.outcome, self.begun
        self.rest_s, self.rest_until = rest_s, how.now + rest_s

    def close(self) -> None:
        self.why, self.rest_until, self.counted_until, self.probe = "", 0.0, 0.0, None

    def rests_until(self, now: float) -> float:
        until = max(self.pause_until, self.rest_until, min(self.keys_until, default=0.0))
        if until <= now and self.probe is not None and not self.probe.spoken:
            return now + PROBE_S
        return until

    def reason(self, now: float) -> str:
        """Return why it rests."""
        if self.pause_until > now:
            return "retry_after"
        return "keys" if min(self.keys_until, default=0.0) > now else self.why

    def is_over(self, now: float) -> bool:
        """Return whether nothing of interest is known any more."""
        latest = max(self.without_tools_until, self.pause_until, self.counted_until, *self.keys_until)
        return not self.why and latest <= now


@define
class Health:
    """What this process has learned of its upstreams. Times are the event loop's."""

    logged: Callable[[str], str] = field(default=str, repr=False)  #: removes keys from a model's name for the log
    known: dict[Known, _Standing] = field(factory=dict)
    streams: Counter[str] = field(factory=Counter)  #: attempts in progress with each upstream, by name
    opened: Counter[str] = field(factory=Counter)  #: how often circuits of each upstream were opened

    def rests_until(self, key: Known, now: float) -> float:
        """Return the time at which the rest of an upstream's model ends: not later than ``now`` if it does not rest."""
        standing = self.known.get(key)
        return 0.0 if standing is None else standing.rests_until(now)

    def is_without_tools(self, key: Known, now: float) -> bool:
        standing = self.known.get(key)
        return standing is not None and standing.without_tools_until > now

    def forget(self, upstreams: Container[str]) -> None:
        """Forget these upstreams, because they were changed or removed. Attempts in progress are numbered as before."""
        for key, standing in self.known.items():
            if key[0] in upstreams:
                self.known[key] = _Standing(begun=standing.begun, earlier=standing.begun)

    def resting(self, now: float) -> Counter[tuple[str, str]]:
        """Return how many models of each upstream rest, by the upstream's name and the reason."""
        return Counter(
            (name, standing.reason(now))
            for (name, _), standing in self.known.items()
            if standing.rests_until(now) > now
        )

    def begin(self, key: Known, report: StreamReport, now: float) -> int:
        """Note that an attempt begins, whose response is described by ``report``. Return its number.

        If the circuit is half-open, the attempt may become the probe.
        """
        self.streams[key[0]] += 1
        standing = self.known.get(key)
        if standing is None:
            standing = self._remember(key, now)
        standing.begun += 1
        if standing.why and standing.rests_until(now) <= now and standing.probe is None:
            standing.probe = report
        return standing.begun

    def end(self, key: Known, upstream: Upstream, how: Ended) -> None:
        """Note how an attempt ended. ``begin`` was called for it before."""
        self.streams[key[0]] -= 1
        standing = self.known.get(key)
        if standing is None or how.number <= standing.earlier:  # None: too many others were remembered since
            return
        if standing.probe is how.report:
            standing.probe = None
        if how.outcome in RESPONSES:
            if standing.why and how.number > standing.opened:
                self._log("an upstream responds again", key, outcome=standing.why)
                standing.close()
            return
        if how.failures and upstream.rest.failures and how.number > standing.opened:
            self._count(key, standing, upstream.rest, how)
        failed = how.failed
        if failed is None:
            return
        if lacks_tools(failed):
            standing.without_tools_until = how.now + NO_TOOLS_S
        if upstream.keys and (rest_s := key_rest_s(failed)) is not None:
            self._rest_key(key, standing, len(upstream.keys), how, rest_s)
        elif failed.retry_after_s and failed.type in {"rate_limit", "unavailable"}:
            rest_s = min(failed.retry_after_s, REST_S)
            if standing.pause_until <= how.now:
                self._log("an upstream rests as it asked", key, outcome=how.outcome, rest_s=rest_s)
            standing.pause_until = how.now + rest_s

    def account(self, key: Known, upstream: Upstream, conversation: bytes | None, now: float) -> tuple[Upstream, int]:
        """Return the upstream with the key to use, and the index of this key.

        It is the first key that does not rest; if all rest, the one whose rest ends first.
        """
        if not upstream.keys:
            return upstream, 0
        standing, order = self.known.get(key), key_order(upstream, conversation)
        rests = standing.keys_until if standing is not None else []
        if len(rests) == len(order):
            order.sort(key=lambda index: max(rests[index], now))
        return upstream.accounts[order[0]], order[0]

    def _rest_key(self, key: Known, standing: _Standing, keys: int, how: Ended, rest_s: float) -> None:
        if len(standing.keys_until) != keys:
            standing.keys_until = [0.0] * keys
        if standing.keys_until[how.key] <= how.now:
            self._log("a key of an upstream rests", key, key_number=how.key + 1, outcome=how.outcome, rest_s=rest_s)
        standing.keys_until[how.key] = how.now + rest_s

    def _count(self, key: Known, standing: _Standing, rest: Rest, how: Ended) -> None:
        if standing.why:
            if how.now >= standing.rest_until:
                standing.open(how, min(2 * standing.rest_s, rest.max_s))
            return
        standing.count(how)
        if standing.fails(rest.failures):
            standing.open(how, rest.first_s)
            self.opened[key[0]] += 1
            self._log("an upstream rests after failures", key, outcome=how.outcome, rest_s=rest.first_s)

    def _log(self, event: str, key: Known, **fields: object) -> None:
        log.warning(event, extra={"fields": {"upstream": key[0], "model": self.logged(key[1]), **fields}})

    def _remember(self, key: Known, now: float) -> _Standing:
        """Remember a pair. If there are too many, forget one of which nothing of interest is known, or else the oldest."""
        if len(self.known) >= REMEMBERED:
            del self.known[next((old for old, each in self.known.items() if each.is_over(now)), next(iter(self.known)))]
        standing = self.known[key] = _Standing()
        return standing
