"""How an attempt went, in one of a few words, for the log and for metrics; docs/how-to/run-the-gateway.md has them all."""

from __future__ import annotations

from typing import Final

from streamkit.errors import ConnectTimeout, FirstByteTimeout, IdleTimeout, Interrupted, NotThisDialect, TotalTimeout
from streamkit.events import ProviderFailed
from streamkit.report import StreamReport
from streamkit.web.exchange import Exchange
from streamkit.web.upstream_request import UNFIT

#: What broke the reading, as an outcome.
OUTCOMES: Final = {
    ConnectTimeout: "connect_timeout",
    FirstByteTimeout: "first_byte_timeout",
    IdleTimeout: "idle_timeout",
    TotalTimeout: "total_timeout",
    NotThisDialect: "not_this_dialect",
    Interrupted: "shut_down",
}


def outcome_of(exchange: Exchange, failed: ProviderFailed | None) -> str:
    """How it went. ``failed`` is what the client, or the next upstream, was told of it."""
    if failed is None:
        choice, calls = exchange.ask.request.tool_choice, exchange.report.verdicts.total()
        if choice is not None and choice.mode == "required" and not calls:
            return "tool_choice_ignored"
        return "answered" if exchange.ask.request.tools and not calls else "success"
    return failed_outcome(failed, exchange.report, exchange.status)


def failed_outcome(failed: ProviderFailed, report: StreamReport, status: int | None) -> str:
    """One word for how an attempt failed: ``status`` is the upstream's, if it answered, and ``report`` has what broke."""
    error = report.error
    named = next((name for kind, name in OUTCOMES.items() if isinstance(error, kind)), None)
    if named is not None:
        return named
    if status is None:
        return "refused" if error is not None else UNFIT
    if status != 200:
        return f"http_{status}"
    if failed.type == "truncated":
        return "cut"
    return "broken" if error is not None else "error_event"
