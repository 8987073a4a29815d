"""Name how an attempt with an upstream ended: one outcome for the log and metrics, and the reasons to try the next upstream.

An outcome says what happened (``http_400``). A reason says why (``context_length``), and is what a route's ``next_on`` lists.
A failure has a general reason, and may have an exact one: ``unsupported_tools`` is also ``not_found`` or ``invalid_request``.
If the route lists one of them, the next upstream is tried.

A complete response may have a reason, too: a refusal, a filter, or no output. In a stream, reasoning counts as output, because
the client has received it. In a whole response, reasoning alone is no output.

Source: docs/how-to/choose-upstreams.md has the meaning of each reason; dialects.md §7.5.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias, get_args

from streamkit.conversation.messages import Part, Reasoning, RedactedReasoning, Refusal, Request, Response, Text
from streamkit.dialects.vocabulary.content_filters import is_filtered
from streamkit.dialects.vocabulary.context_overflow import is_overflow
from streamkit.errors import (
    ConnectTimeout,
    FirstByteTimeout,
    IdleTimeout,
    Interrupted,
    NotThisDialect,
    SourceFailed,
    TimedOut,
    TotalTimeout,
)
from streamkit.events import Aside, ErrorType, ProviderFailed, StopReason
from streamkit.report import StreamReport
from streamkit.tool_calls.accumulate import SPOKEN_ASIDES
from streamkit.web.exchange import Exchange
from streamkit.web.opening import UNFIT

#: The reasons for which the next upstream is tried, unless the route says otherwise: what depends on the upstream.
DefaultReason: TypeAlias = Literal[
    "overloaded",
    "rate_limit",
    "timeout",
    "connection",
    "server_error",
    "auth",
    "billing",
    "permission",
    "not_found",
    "unsupported_tools",
    "unsupported_request",
]
#: The reasons that are in complete responses.
EndReason: TypeAlias = Literal["context_length", "content_filter", "refusal", "no_output", "tool_choice_ignored"]
Reason: TypeAlias = Literal[DefaultReason, EndReason, "too_large", "invalid_request"]
DEFAULT_REASONS: Final[frozenset[Reason]] = frozenset(get_args(DefaultReason))
END_REASONS: Final[frozenset[Reason]] = frozenset(get_args(EndReason))

_BY_TYPE: Final[Mapping[ErrorType, Reason]] = {
    "invalid_request": "invalid_request",
    "auth": "auth",
    "billing": "billing",
    "permission": "permission",
    "not_found": "not_found",
    "too_large": "too_large",
    "rate_limit": "rate_limit",
    "server": "server_error",
    "unavailable": "overloaded",
    "timeout": "timeout",
    "truncated": "connection",
}
#: Statuses that say more than the type of error: a server that is busy (409 for some seconds, as openai-python assumes), and a
#: request that no server of this kind implements.
_BY_STATUS: Final[Mapping[int, Reason]] = {
    408: "timeout",
    409: "overloaded",
    425: "overloaded",
    501: "invalid_request",
    505: "invalid_request",
}
_BY_STOP: Final[Mapping[StopReason, EndReason]] = {
    "content_filter": "content_filter",
    "refusal": "refusal",
    "context_full": "context_length",
}
#: Types of errors that depend on the upstream (its key, credit or models), whatever the status.
_OF_UPSTREAM: Final = frozenset({"auth", "billing", "permission", "not_found"})

_TOOLS: Final = r"\b(?:tools?|tool (?:use|calls|calling)|functions?|function (?:calls|calling))\b"
#: Matches "No endpoints found that support tool use" (OpenRouter), "… does not support tools", "tools is unsupported".
_NO_TOOLS: Final = re.compile(
    rf"(?:\bno\b|\bnot\b|n't\b).{{0,40}}\bsupport\w*\W+(?:for\W+)?{_TOOLS}"
    rf"|{_TOOLS}\W+(?:is|are)\W+(?:not (?:supported|enabled|available)|unsupported|disabled)",
    re.IGNORECASE,
)


def lacks_tools(failed: ProviderFailed) -> bool:
    """Return whether an upstream says that it, or this model of it, does not support tools."""
    return failed.type in {"not_found", "invalid_request"} and _NO_TOOLS.search(failed.message) is not None


def reasons_of(failed: ProviderFailed, report: StreamReport | None = None) -> tuple[Reason, ...]:
    """Return why an attempt failed: the exact reason, if there is one, then the general one. ``report`` has the error."""
    general = _general(failed, None if report is None else report.error)
    if failed.code == UNFIT:
        return "unsupported_request", general
    if lacks_tools(failed):
        return "unsupported_tools", general
    if is_overflow(failed):
        return "context_length", general
    is_our_guard = report is not None and "blocked" in report.losses
    return ("content_filter", general) if is_filtered(failed) and not is_our_guard else (general,)


def _general(failed: ProviderFailed, error: Exception | None) -> Reason:
    if isinstance(error, SourceFailed) and failed.type in {"server", "timeout"}:
        return "timeout" if isinstance(error, TimedOut) and not isinstance(error, ConnectTimeout) else "connection"
    status = failed.http_status
    if status is not None and 300 <= status < 400:
        return "server_error"
    if status is not None and failed.type not in _OF_UPSTREAM and (known := _BY_STATUS.get(status)) is not None:
        return known
    return _BY_TYPE[failed.type]


def reasons_in(request: Request, report: StreamReport, *, is_silent: bool) -> tuple[Reason, ...]:
    """Return the reasons in a complete response why another upstream may do better. ``is_silent``: it has no output."""
    found: list[Reason] = ["tool_choice_ignored"] if _ignores_choice(request, report) else []
    if is_silent:
        stops = {stop.reason for stop in report.stops}
        found.append(next((reason for stop, reason in _BY_STOP.items() if stop in stops), "no_output"))
    return tuple(found)


def is_silent(answer: Response) -> bool:
    """Return whether a whole response has no text, no call and no medium: at most reasoning and a refusal."""
    return all(_is_no_output(part) for choice in answer.choices for part in choice.parts)


def is_refusal(report: StreamReport) -> bool:
    """Return whether a stream that is over began with a refusal, and each choice ended so."""
    return report.refused and all(stop.reason in {"refusal", "content_filter"} for stop in report.stops)


def _is_no_output(part: Part) -> bool:
    if isinstance(part, Aside):
        return part.kind not in SPOKEN_ASIDES
    return isinstance(part, Reasoning | RedactedReasoning | Refusal) or (isinstance(part, Text) and not part.text)


def _ignores_choice(request: Request, report: StreamReport) -> bool:
    choice = request.tool_choice
    return choice is not None and choice.mode == "required" and not report.verdicts.total()


# -- outcomes ----------------------------------------------------------------------------------------------------------

#: The outcome of an attempt for each type of error.
OUTCOMES: Final = {
    ConnectTimeout: "connect_timeout",
    FirstByteTimeout: "first_byte_timeout",
    IdleTimeout: "idle_timeout",
    TotalTimeout: "total_timeout",
    NotThisDialect: "not_this_dialect",
    Interrupted: "shut_down",
}
HEDGED_OUT: Final = "hedged_out"  #: the outcome of an attempt that was stopped because another one was faster


def outcome_of(exchange: Exchange, failed: ProviderFailed | None) -> str:
    """Return how an attempt went, for the log and metrics. docs/how-to/run-the-gateway.md lists all outcomes.

    ``failed`` is the failure that the client gets, or that makes the next upstream be tried.
    """
    if failed is None:
        request, report = exchange.ask.request, exchange.report
        if _ignores_choice(request, report):
            return "tool_choice_ignored"
        return "answered" if request.tools and not report.verdicts.total() else "success"
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
