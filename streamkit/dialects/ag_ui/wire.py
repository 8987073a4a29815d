"""Names, values and tables of AG-UI that decoder and encoder both need. Source: ui-protocols.md §2.2, §2.4, §2.6."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast, get_args

from attrs import frozen

from streamkit.conversation.checks import ToolRules
from streamkit.dialects.members.values import KEPT, Event, Members, count_of
from streamkit.dialects.vocabulary.sealed_reasoning import MADE
from streamkit.dialects.vocabulary.usage_counts import UI_COUNTS, has_more
from streamkit.events import ErrorType, ProviderFailed, StopReason, UsageReported
from streamkit.report import StreamReport
from streamkit.tool_calls.ending import FAILING

VENDOR: Final = "ag-ui"

NOT_RUN_ID: Final = f"{MADE}_not_run_"  # how the id of a tool message for a call that was not run begins
RUN_FAILED: Final = "Error: this tool call was not run, because the response of the model was interrupted"
WAS_REFUSED: Final = "Error: this tool call was not run, because the response was refused or filtered"
NO_OBJECT: Final = "Error: this tool call was not run, because its arguments are not a JSON object"

#: Events about the state of an application. Each is independent of others, and is written again unchanged.
ALONE: Final = frozenset(
    {"STATE_SNAPSHOT", "STATE_DELTA", "MESSAGES_SNAPSHOT", "ACTIVITY_SNAPSHOT", "ACTIVITY_DELTA", "RAW", "CUSTOM"}
)
PASSED_OVER: Final = frozenset({"type", "timestamp", "rawEvent"})  # clients ignore them


@frozen
class RunEvent(Event):
    """An event of a run. The first of its ``needs`` identifies what it opens, continues or ends."""

    opens: str = ""
    continues: str = ""
    ends: str = ""


def _event(method: str, *needs: str, also: tuple[str, ...] = (), **order: str) -> RunEvent:
    """Return an event of which only these members are read."""
    return RunEvent(method, Members(*PASSED_OVER, *needs, *also), needs, **order)


def _whole(method: str, *needs: str, **order: str) -> RunEvent:
    """Return an event whose reader keeps all its members."""
    return RunEvent(method, KEPT, needs, **order)


EVENTS: Final[Mapping[str, RunEvent]] = {
    "RUN_STARTED": _whole("_run_started", "threadId", "runId"),
    "RUN_FINISHED": _whole("_run_finished", "threadId", "runId"),
    "RUN_ERROR": _whole("_run_error", "message"),
    "TEXT_MESSAGE_START": _event("_message_start", "messageId", also=("role",), opens="message"),
    "TEXT_MESSAGE_CONTENT": _event("_message_content", "messageId", "delta", continues="message"),
    "TEXT_MESSAGE_END": _event("_message_end", "messageId", ends="message"),
    "TEXT_MESSAGE_CHUNK": _event("_message_chunk", also=("messageId", "role", "delta")),
    "TOOL_CALL_START": _event("_call_start", "toolCallId", "toolCallName", also=("parentMessageId",), opens="call"),
    "TOOL_CALL_ARGS": _event("_call_arguments", "toolCallId", "delta", continues="call"),
    "TOOL_CALL_END": _event("_call_end", "toolCallId", ends="call"),
    "TOOL_CALL_CHUNK": _event("_call_chunk", also=("toolCallId", "toolCallName", "parentMessageId", "delta")),
    "TOOL_CALL_RESULT": _whole("_call_result", "messageId", "toolCallId", "content"),
    # the decoder ignores spans: they only enclose reasoning messages
    "REASONING_START": _event("_span", "messageId", opens="span"),
    "REASONING_MESSAGE_START": _event("_message_start", "messageId", also=("role",), opens="reasoning"),
    "REASONING_MESSAGE_CONTENT": _event("_message_content", "messageId", "delta", continues="reasoning"),
    "REASONING_MESSAGE_END": _event("_message_end", "messageId", ends="reasoning"),
    "REASONING_MESSAGE_CHUNK": _event("_message_chunk", also=("messageId", "delta")),
    "REASONING_END": _event("_span", "messageId", ends="span"),
    "REASONING_ENCRYPTED_VALUE": _event("_encrypted_value", "subtype", "entityId", "encryptedValue"),
    **dict.fromkeys(("THINKING_START", "THINKING_END"), _event("_span")),
    "THINKING_TEXT_MESSAGE_START": _event("_message_start"),
    "THINKING_TEXT_MESSAGE_CONTENT": _event("_message_content", "delta"),
    "THINKING_TEXT_MESSAGE_END": _event("_message_end"),
    # the following events are about an application and its agents, not from the model
    "STEP_STARTED": _whole("_kept", "stepName", opens="step"),
    "STEP_FINISHED": _whole("_kept", "stepName", ends="step"),
    "SUBAGENT_STARTED": _whole("_kept", "subagentRunId", "name", opens="subagent"),
    **dict.fromkeys(("SUBAGENT_FINISHED", "SUBAGENT_ERROR"), _whole("_kept", "subagentRunId", ends="subagent")),
    **dict.fromkeys(("STATE_SNAPSHOT", "STATE_DELTA", "MESSAGES_SNAPSHOT", "RAW"), _whole("_kept")),
    **dict.fromkeys(("ACTIVITY_SNAPSHOT", "ACTIVITY_DELTA"), _whole("_kept", "messageId", "activityType")),
    "CUSTOM": _whole("_kept", "name"),
}
OPTIONAL: Final = ("code", "name", "parentRunId", "subagentRunId")  # in any event
RUN_FINISHED: Final = "RUN_FINISHED."  # how the types of asides for members of this event begin
ANSWERED_CALL: Final = "TOOL_CALL"  # the type of an aside for a call that the agent ran, with its result
#: The members of ``metadata`` in RUN_FINISHED for the stop reason. The protocol itself has no field for it.
FINISH_REASON: Final = "finishReason"
STOP_SEQUENCE: Final = "stopSequence"
#: The words of ``finishReason``: streamkit's own stop reasons, except those that mean a failure.
STOP_REASONS: Final[Mapping[str, StopReason]] = {
    reason: reason for reason in cast("tuple[StopReason, ...]", get_args(StopReason)) if reason not in FAILING
}
HIDDEN_CODE: Final = "abort"  # CopilotKit shows no error with this code
ERROR_CODES: Final[Mapping[str, ErrorType]] = {
    kind: kind for kind in cast("tuple[ErrorType, ...]", get_args(ErrorType))
}
#: By the field of ``UsageReported``: the count in ``usage``. In both, input includes the cache, and output the reasoning.
COUNTS: Final[Mapping[str, str]] = {**UI_COUNTS, "input_cache_write": "cacheWriteInputTokens"}
CONTEXT: Final = "context"
OUTCOME: Final = "outcome"  # the member of RUN_FINISHED that says whether the run waits for answers to interrupts
#: The member of a request with the answers to interrupts, and ``ToolResult.native`` of an answer.
RESUME: Final = "resume"
#: How the ids begin of the calls that other dialects get for interrupts that are about no call, and the name of the calls.
INTERRUPT_ID, INTERRUPT = f"{MADE}_interrupt_", "interrupt"
EXCHANGE: Final = ("threadId", "runId", "parentRunId", "protocolVersion", CONTEXT)
TOOLS: Final = ToolRules(names=re.compile(r"(?s).+"))  # no limits on names are documented


#: The id of an approval for other dialects: the length of the interrupt's id, that id, and the id of the call.
_APPROVAL_ID: Final = re.compile(r"i([0-9]{1,4})_(.*)", re.DOTALL)


def approval_id(interrupt: str, call: str) -> str:
    """Return the id that other dialects get for an interrupt about a call."""
    return f"i{len(interrupt)}_{interrupt}_{call}"


def approval_of_id(name: str) -> tuple[str, str] | None:
    """Return the ids of the interrupt and of the call, from an id of ``approval_id``; None for any other id."""
    if (found := _APPROVAL_ID.fullmatch(name)) is None:
        return None
    size, rest = int(found[1]), found[2]
    return (rest[:size], rest[size + 1 :]) if rest[size : size + 1] == "_" else None


def interrupts_in(outcome: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the interrupts that a run waits for; none if one of them has no id or reason, so that clients refuse the run."""
    found = outcome.get("interrupts")
    if outcome.get("type") != "interrupt" or not isinstance(found, list):
        return []
    sound = [
        each for each in found
        if isinstance(each, dict) and isinstance(each.get("id"), str) and isinstance(each.get("reason"), str)
    ]  # fmt: skip
    return sound if len(sound) == len(found) else []


def finish_reason(reason: StopReason) -> tuple[str, bool]:
    """Return the ``finishReason`` to write, and whether it is less exact than ``reason``."""
    return (reason, False) if reason in STOP_REASONS else ("other", True)


def decode_usage(entries: Sequence[Mapping[str, Any]]) -> UsageReported:
    """Return the sum of all entries. A run lists one entry for each model that it used."""
    usage = UsageReported(raw={"usage": list(entries)}, vendor=VENDOR)
    for ours, theirs in COUNTS.items():
        counts = [count for entry in entries if (count := count_of(entry, theirs)) is not None]
        setattr(usage, ours, sum(counts) if counts else None)
    return usage


def encode_usage(usage: UsageReported, model: str | None, report: StreamReport) -> list[dict[str, Any]]:
    """Return the entries of ``usage`` without unknown counts: clients refuse a run with a count that is not an integer."""
    if usage.vendor == VENDOR and usage.raw is not None:
        return [sound_entry(entry) for entry in usage.raw["usage"]]
    if has_more(usage, VENDOR):
        report.lose("usage_detail")
    entry: dict[str, Any] = {} if not model else {"model": model}
    entry |= {theirs: count for ours, theirs in COUNTS.items() if (count := getattr(usage, ours)) is not None}
    return [entry]


def sound_entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry of ``usage`` without the counts that clients refuse."""
    names = set(COUNTS.values())
    counts = {name: count_of(entry, name) for name in names & entry.keys()}
    return {name: counts.get(name, value) for name, value in entry.items() if counts.get(name, 0) is not None}


def error_code(failed: ProviderFailed, report: StreamReport) -> str:
    """Return the ``code`` of an error: AG-UI's own, unless clients would hide the error; else streamkit's type of error."""
    if failed.vendor == VENDOR:
        return failed.code if failed.code and failed.code != HIDDEN_CODE else failed.type
    if failed.native_type or failed.code or failed.http_status:
        report.lose("error_detail")
    return failed.type


def wrong_members(kind: str, document: Mapping[str, Any]) -> list[str]:
    """Return the members of an event because of which clients refuse it."""
    wrong = [name for name in EVENTS[kind].needs if not isinstance(document.get(name), str)]
    wrong += [name for name in OPTIONAL if name in document and not isinstance(document[name], str)]
    if "timestamp" in document and type(document["timestamp"]) is not int:
        wrong.append("timestamp")
    if "metadata" in document and not isinstance(document["metadata"], dict):
        wrong.append("metadata")
    if kind == "REASONING_MESSAGE_START" and document.get("role") != "reasoning":
        wrong.append("role")
    return list(dict.fromkeys(wrong))
