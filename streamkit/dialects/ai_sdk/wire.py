"""Words of the AI SDK's UI message stream: reasons, token counts, chunk types, and JSON that its reader refuses.

Source: ui-protocols.md §1.2, §1.3, §1.4.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from attrs import frozen

from streamkit.conversation.tool_definitions import ToolRules
from streamkit.dialects.members.known import Event, Members
from streamkit.dialects.members.values import count_of
from streamkit.dialects.profiles import Profile
from streamkit.dialects.vocabulary.usage_counts import UI_COUNTS, has_more
from streamkit.events import AsideKind, StopReason, UsageReported
from streamkit.report import StreamReport

VENDOR: Final = "ai-sdk"
#: The chunk and the part that is media.
FILE: Final = "file"
#: Every word that a reader takes; another ends its stream with an error.
FINISH_REASONS: Final = frozenset({"stop", "length", "content-filter", "tool-calls", "error", "other"})
#: ``error`` is not written: a client shows it as a success.
WORDS: Final[Mapping[StopReason, str]] = {
    "stop": "stop",
    "stop_sequence": "stop",
    "length": "length",
    "context_full": "length",
    "tool_calls": "tool-calls",
    "content_filter": "content-filter",
    "refusal": "content-filter",
}
#: Of them, those that say all of their reason.
EXACT: Final = frozenset({"stop", "length", "tool_calls", "content_filter"})
STOP_REASONS: Final[Mapping[str, StopReason]] = {
    "stop": "stop",
    "length": "length",
    "tool-calls": "tool_calls",
    "content-filter": "content_filter",
    "error": "error",
    "interrupted": "error",
    "other": "other",
    "unknown": "other",  # of version 5
}
#: What a call says of itself beside its name and its input: how it is shown.
SHOWN: Final = ("dynamic", "title", "toolMetadata")
_METADATA: Final = "providerMetadata"
_CALL: Final = ("inputEncoding", "input", _METADATA, "providerExecuted", *SHOWN)


def _chunk(method: str, *needs: str, also: tuple[str, ...] = ()) -> Event:
    """A chunk of which these members are read."""
    return Event(method, Members("type", *needs, *also), needs)


#: The chunks of an answer that other dialects can say too.
CHUNKS: Final[Mapping[str, Event]] = {
    "start": _chunk("_message_start", also=("messageId", "messageMetadata")),
    "start-step": _chunk("_nothing"),
    **dict.fromkeys(("text-start", "reasoning-start"), _chunk("_part_start", "id", also=(_METADATA,))),
    **dict.fromkeys(("text-delta", "reasoning-delta"), _chunk("_part_delta", "id", "delta", also=(_METADATA,))),
    **dict.fromkeys(("text-end", "reasoning-end"), _chunk("_part_end", "id", also=(_METADATA,))),
    "tool-input-start": _chunk("_call_start", "toolCallId", "toolName", also=_CALL),
    "tool-input-delta": _chunk("_call_delta", "toolCallId", "inputTextDelta"),
    "tool-input-available": _chunk("_call_end", "toolCallId", "toolName", also=_CALL),
    "tool-input-error": _chunk("_call_end", "toolCallId", "toolName", "errorText", also=_CALL),
    "error": _chunk("_error", "errorText"),
    "abort": _chunk("_abort", also=("reason",)),
    "finish-step": _chunk("_nothing"),
    "finish": _chunk("_finish", also=("finishReason", "messageMetadata")),
}
#: Chunks that this dialect alone has: what each is for others, and the strings that it must have. Those of ``data-NAME`` join
#: them. The reader ends at a type that it does not know, so no other chunk of an answer is written again.
ASIDES: Final[Mapping[str, tuple[AsideKind, tuple[str, ...]]]] = {
    "source-url": ("citation", ("sourceId", "url")),
    "source-document": ("citation", ("sourceId", "mediaType", "title")),
    "tool-output-available": ("server_tool", ("toolCallId",)),
    "tool-output-error": ("server_tool", ("toolCallId", "errorText")),
    "tool-output-denied": ("server_tool", ("toolCallId",)),
    "tool-approval-request": ("client_tool", ("approvalId", "toolCallId")),
    FILE: ("metadata", ("url", "mediaType")),
    "message-metadata": ("metadata", ()),
}
#: The aside of a call that the server ran itself, with its output.
ANSWERED_CALL: Final = "tool"
#: Further ones, which only readers of version 7 know: they are read, and not written.
NEWEST: Final = frozenset({"custom", "reasoning-file", "steering-message", "reset-step", "tool-approval-response"})


def _key(name: str) -> str:
    r"""A pattern of a member's name in JSON text, any character of which may be an escape (``\u005f``)."""
    letters = "".join(rf"(?:{each}|\\u{ord(each):04x})" for each in name)
    return rf'"{letters}"\s*+:'


_PROTO: Final = re.compile(_key("__proto__").encode(), re.IGNORECASE)
_CONSTRUCTOR: Final = re.compile(_key("constructor").encode(), re.IGNORECASE)
_PROTOTYPE: Final = re.compile(_key("prototype").encode(), re.IGNORECASE)


def is_refused(json: bytes) -> bool:
    """Whether the client's JSON reader may refuse a chunk that has this text in it as a value (``secure-json-parse``).

    It refuses a key ``__proto__``, and a ``constructor`` that holds a ``prototype``; here both of these anywhere will do.
    """
    return bool(_PROTO.search(json) or (_CONSTRUCTOR.search(json) and _PROTOTYPE.search(json)))


def finish_reason(reason: StopReason, *, called: bool) -> tuple[str, bool]:
    """The word for a reason, and whether it says less than the reason."""
    if reason == "tool_calls" and not called:
        return "stop", True  # what the client is to answer has no form here
    return WORDS.get(reason, "other"), reason not in EXACT


def encode_usage(usage: UsageReported, report: StreamReport) -> dict[str, Any]:
    """The counts that are known, or all that this dialect itself said: a reader takes no null."""
    if usage.vendor == VENDOR and usage.raw:
        return {name: count for name, count in usage.raw.items() if count is not None}
    if usage.input_cache_write is not None or has_more(usage, VENDOR):
        report.lose("usage_detail")
    known = {theirs: getattr(usage, ours) for ours, theirs in UI_COUNTS.items()}
    return {name: count for name, count in known.items() if count is not None}


def decode_usage(counts: dict[str, Any]) -> UsageReported:
    """The counts of ``messageMetadata.usage``, where this dialect's own encoder and many applications write them."""
    found = {ours: count_of(counts, theirs) for ours, theirs in UI_COUNTS.items()}
    return UsageReported(**found, raw=counts, vendor=VENDOR)


#: No limits on tools are documented.
TOOLS: Final = ToolRules(names=re.compile(r"(?s).+"))
#: Members of a request that name the exchange, or that are read as a part of the conversation: written again as they came.
SYSTEM: Final = "system"
EXCHANGE: Final = ("id", "messageId", "trigger", SYSTEM)
#: What an application calls the answer, among these. It is no member of a request.
ANSWER_ID: Final = "answerId"
#: The settings that assistant-ui adds to a request (``callSettings``), by ours.
OPTIONS: Final[Mapping[str, str]] = {
    "max_tokens": "maxTokens",
    "temperature": "temperature",
    "top_p": "topP",
    "presence_penalty": "presencePenalty",
    "frequency_penalty": "frequencyPenalty",
    "seed": "seed",
}
#: The type of a part that is a call of a tool: this with the tool's name, or the second with the name in a member.
TOOL: Final = "tool-"
DYNAMIC_TOOL: Final = "dynamic-tool"
STEP_START: Final = "step-start"
#: A message of the user between two steps, and the native role of its turn.
STEERING: Final = "steering-message"
#: The states of a call with a result that is an error, where they are others than ``output-error``.
DENIED: Final = "output-denied"
RESPONDED: Final = "approval-responded"
#: What the model is told of a call that the user did not allow, where no reason was given.
NOT_ALLOWED: Final = "Tool call execution denied."


@frozen(kw_only=True)
class UIClient(Profile):
    """A client of this dialect, as data."""

    #: It refuses each member of a chunk that its version does not know: no reason of the end, and no encoding of an input.
    strict: bool = False


#: Nothing in a request tells the version, so an application names the client.
CLIENTS: Final = (UIClient(name="ai-sdk-5", title="the AI SDK 5 before 5.0.217, and 6 before 6.0.231", strict=True),)


def is_strict(profile: Profile) -> bool:
    """Whether the client refuses members that came later."""
    return isinstance(profile, UIClient) and profile.strict
