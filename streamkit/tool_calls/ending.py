"""Decide how a stream ended: whether it reached its completion point, and the stop reason of each choice.

Stop reasons are advisory while the stream continues: calls may follow a stop reason, and several may arrive. They are ranked
at the end (quirks.md R6). A stream without any stop reason is clean only in the cases of dialects.md §7.6. A reason in
``FAILING`` ends its response as a provider failure, so that no client reads success. A filter that stops a harmful response
(``SAFETY``, ``guardrail_intervened``) is no failure: dialects have stop reasons for it.

Source: dialects.md §5.2, §6.1, §6.2, §7.1; Google's ``FinishReason``, Bedrock's ``StopReason``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from streamkit.events import ErrorType, ProviderFailed, ResponseFinished, StopReason, StopReasonSeen, TerminatorSeen
from streamkit.policy import Policy
from streamkit.report import StreamReport
from streamkit.text.quoting import quoted
from streamkit.tool_calls.call import Call, ChoiceState

#: The rank of each stop reason: a failed turn > length, content filter > tool calls > stop (design.md §4).
RANK: dict[StopReason, int] = {
    "error": 9,
    "length": 8,
    "context_full": 8,
    "content_filter": 8,
    "refusal": 8,
    "malformed_tool": 9,
    "tool_calls": 5,
    "pause": 4,
    "compaction": 4,
    "stop_sequence": 3,
    "other": 2,
    "stop": 1,
}

#: Reasons that stop a model in the middle of its output.
CUTTING: Final[frozenset[StopReason]] = frozenset({"length", "context_full", "content_filter", "refusal"})

#: Reasons of a model that stopped by itself.
NATURAL: Final[frozenset[StopReason]] = frozenset({"tool_calls", "stop"})

#: Reasons after which clients run the calls. Other reasons show by themselves that the turn is not whole, or where it stopped.
RUNNING: Final[frozenset[StopReason]] = NATURAL | {"other"}


def missing_end(
    choices: Mapping[int, ChoiceState],
    terminator: TerminatorSeen | None,
    report: StreamReport,
    policy: Policy,
    depth: int,
) -> str | None:
    """Return why the completion point was not reached (dialects.md §7.6), or None if it was.

    A stop reason that the policy derives is added to its choice.
    """
    if not choices:
        return "the stream ended without any content"
    without = [number for number, choice in choices.items() if not choice.reasons]
    if not without:
        return None
    if derives(choices, terminator, policy, depth) and (terminator or report.broken_frame is None):
        report.repair("finish_derived")
        for number in without:
            reason: StopReason = "tool_calls" if choices[number].calls else "stop"
            choices[number].reasons.append(StopReasonSeen(reason, "", number))
        return None
    where = f" for choice {without[0]}" if len(choices) > 1 else ""
    return f"the stream ended without a stop reason{where}"


def derives(choices: Mapping[int, ChoiceState], terminator: TerminatorSeen | None, policy: Policy, depth: int) -> bool:
    """Return whether complete calls and the terminator may replace a stop reason, as the policy allows."""
    if policy.end_without_finish == "refuse" or any(choice.reasons for choice in choices.values()):
        return False
    accept = policy.end_without_finish == "accept"
    marked = terminator is not None and terminator.derives_calls
    calls = [call for choice in choices.values() for call in choice.calls if call.name or call.text.chars]
    if not calls:
        return accept and marked
    return (accept or marked) and all(call.ended or call.is_complete(depth) for call in calls)


def strongest(choice: ChoiceState) -> StopReasonSeen:
    """Return the stop reason with the highest rank."""
    reasons = choice.reasons
    return reasons[0] if len(reasons) == 1 else max(reasons, key=lambda seen: RANK[seen.reason])


def is_cut(choice: ChoiceState, call: Call) -> bool:
    """Return whether a call was truncated although its text does not show it: the model was stopped in it, or it stayed open.

    Empty text (which would mean ``{}``) and free text that the wire did not end show no truncation (law L3). Some servers end
    the block of a call in which the model was stopped. If the wire left a call open, not even a whole object is complete,
    unless the model stopped by itself.
    """
    if call.incomplete:
        return True
    reason = strongest(choice).reason
    if call.left_open and reason not in NATURAL:
        return True
    if not call.left_open and (call is not choice.last or reason not in CUTTING):
        return False
    return (call.kind == "custom" and not call.ended) or not call.text.whole().strip()


def has_truncated(choice: ChoiceState, depth: int) -> bool:
    """Return whether a call was truncated, so that a client might run half of its arguments, or only the calls next to it.

    A call in the text that ends before its arguments does not count next to other calls: clients get nothing of it.
    """
    truncated = [call for call in choice.calls if call.truncated or (call.left_open and not call.is_complete(depth))]
    return bool(truncated) and (
        len(truncated) == len(choice.calls)
        or any(call.is_ended_by_wire or call.text.whole().strip() for call in truncated)
    )


def calls_nobody(choice: ChoiceState) -> bool:
    """Return whether a choice has a call without a name, so that no client can run the call.

    Return False if the stop reason already means a truncated turn. An empty object next to named calls counts as no call, and
    so does an entry without text in a dialect that does not end calls: some servers send it without meaning a call.
    """
    for call in choice.calls:
        if not call.name:
            break
    else:
        return False
    if choice.reasons and strongest(choice).reason in CUTTING:
        return False
    none_named = not any(call.name for call in choice.calls)
    texts = [
        text
        for call in choice.calls
        if not call.name and ((text := call.text.whole().strip()) or call.is_ended_by_wire)
    ]
    return any(text not in {"", "{}"} or none_named for text in texts)


def _is_whole(call: Call, depth: int) -> bool:
    """Return whether a call is complete: it has a name, and one whole object or, if the wire ended it, free text or none."""
    if not call.name:
        return False
    return call.is_complete(depth) or (call.ended and (call.kind == "custom" or not call.text.whole().strip()))


def stop_reason(number: int, choice: ChoiceState, report: StreamReport, depth: int) -> ResponseFinished:
    """Return the one stop reason of a choice: the strongest, corrected by whether the choice has calls."""
    best = strongest(choice)
    reason = best.reason
    is_cut_off = reason in RUNNING and has_truncated(choice, depth)
    if is_cut_off or any(seen.reason != reason for seen in choice.reasons):
        report.repair("stop_conflict")
    if is_cut_off:
        return ResponseFinished("length", "incomplete", number)
    if choice.calls and reason == "stop":
        if not best.covers_calls:
            report.repair("stop_with_calls")
        reason = "tool_calls"
    elif reason == "other" and choice.calls and all(_is_whole(call, depth) for call in choice.calls):
        report.repair("stop_unknown_with_calls")
        reason = "tool_calls"
    elif not choice.calls and reason == "tool_calls" and not best.waits:
        report.repair("calls_without_call")
        reason = "stop"
    if reason == "stop" and choice.refused:
        reason = "refusal"  # the refusal is in the deltas; OpenAI sends `stop` (dialects.md §7.1)
    return ResponseFinished(reason, best.native or None, number, best.stop_sequence)


FAILING: Final[frozenset[StopReason]] = frozenset({"error", "malformed_tool"})
#: The provider's word in lower case, with the kind of error and the meaning.
FAILED_TURNS: Final[Mapping[str, tuple[ErrorType, str]]] = {
    # Google: the model's output could not be read, or broke a rule
    "malformed_function_call": ("server", "the model wrote a call that can't be read"),
    "unexpected_tool_call": ("server", "the model called a tool, but the request has none"),
    "too_many_tool_calls": ("server", "the model called tools too many times in a row"),
    "malformed_response": ("server", "the model wrote a response that can't be read"),
    # Google: the request is at fault, so a retry would fail again
    "missing_thought_signature": ("invalid_request", "the history lacks a thought signature"),
    "language": ("invalid_request", "the response would be in a language that the model does not support"),
    # Google: the policy on prohibited use blocks accounts without a special permission
    "pup_limited_disabled": ("permission", "the provider's policy on prohibited use disabled the response"),
    # Google: no usable output, and no sign of a filter
    "no_image": ("server", "the model did not make the requested image"),
    "image_other": ("server", "the image generation stopped"),
    "other": ("server", "the provider gave no reason"),
    # Bedrock
    "malformed_tool_use": ("server", "the model wrote a call that can't be read"),
    "malformed_model_output": ("server", "the model wrote a response that can't be read"),
    # Cohere, and servers that speak OpenAI Chat
    "timeout": ("timeout", "the model took too long"),
    "abort": ("server", "the server aborted the request"),
    "network_error": ("unavailable", "the provider lost the connection to the model"),
    "insufficient_system_resource": ("unavailable", "the provider has no capacity left"),
}


def failure_in(seen: StopReasonSeen) -> ProviderFailed:
    """Return the failure that a stop reason in ``FAILING`` means, quoting the provider's word."""
    kind, meaning = FAILED_TURNS.get(seen.native.lower(), ("server", ""))
    more = seen.message or meaning
    message = f"the provider gave the finish reason {quoted(seen.native)}" + (f": {more}" if more else "")
    return ProviderFailed(kind, message, code=seen.native)
