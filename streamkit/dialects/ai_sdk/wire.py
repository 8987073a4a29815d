"""Names and values of the AI SDK's stream: reasons, token counts, types of chunks, and JSON that its client refuses.

Vendors' opaque values are in ``providerMetadata``: as the SDK's own providers write them, or in streamkit's entry. Clients
return them unchanged in the parts of the next request. A value belongs to the part that contains it.

Source: ui-protocols.md §1.2, §1.3, §1.4; dialects.md §7.4.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from attrs import define, field, frozen

from streamkit.conversation.checks import ToolRules
from streamkit.dialects.members.values import Event, Members, count_of
from streamkit.dialects.profiles import Profile
from streamkit.dialects.vocabulary.sealed_reasoning import MADE, Kind, seal, unseal
from streamkit.dialects.vocabulary.usage_counts import UI_COUNTS, has_more
from streamkit.events import AsideKind, Opaque, StopReason, UsageReported
from streamkit.report import StreamReport

VENDOR: Final = "ai-sdk"
FILE: Final = "file"  # the type of the chunk and of the part for media
ASKS: Final = "tool-approval-request"  # the type of the chunk that requests the user's approval of a call
ANSWERS: Final = "tool-approval-response"
#: How names of tools of an MCP server begin, and the member of streamkit's ``providerMetadata`` with the server's label.
MCP, SERVER = "mcp.", "server_label"
#: The stop reasons that have a word of their own. For any other, a loss is counted.
EXACT: Final[Mapping[StopReason, str]] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool-calls",
    "content_filter": "content-filter",
}
#: Stop reasons to write. ``error`` is not written, because clients show it as a success.
WORDS: Final[Mapping[StopReason, str]] = {
    **EXACT,
    "stop_sequence": "stop",
    "context_full": "length",
    "refusal": "content-filter",
}
STOP_REASONS: Final[Mapping[str, StopReason]] = {
    **{word: reason for reason, word in EXACT.items()},
    **dict.fromkeys(("error", "interrupted"), "error"),
    **dict.fromkeys(("other", "unknown"), "other"),  # only version 5 writes ``unknown``
}
#: All words that clients accept. Another word ends the stream with an error.
FINISH_REASONS: Final = frozenset({*EXACT.values(), "error", "other"})
ERROR_TEXT: Final = "errorText"  # the member that says why a call, or the response, failed
SHOWN: Final = ("dynamic", "title", "toolMetadata")  # members that say how to display a call
_METADATA: Final = "providerMetadata"
_CALL: Final = ("inputEncoding", _METADATA, "providerExecuted", *SHOWN)


def _chunk(method: str, *needs: str, also: tuple[str, ...] = ()) -> Event:
    """Return a chunk of which these members are read."""
    return Event(method, Members("type", *needs, *also), needs)


#: The chunks whose content other dialects can express, too.
CHUNKS: Final[Mapping[str, Event]] = {
    "start": _chunk("_message_start", also=("messageId", "messageMetadata")),
    "start-step": _chunk("_nothing"),
    **dict.fromkeys(("text-start", "reasoning-start"), _chunk("_part_start", "id", also=(_METADATA,))),
    **dict.fromkeys(("text-delta", "reasoning-delta"), _chunk("_part_delta", "id", "delta", also=(_METADATA,))),
    **dict.fromkeys(("text-end", "reasoning-end"), _chunk("_part_end", "id", also=(_METADATA,))),
    "tool-input-start": _chunk("_call_start", "toolCallId", "toolName", also=_CALL),
    "tool-input-delta": _chunk("_call_delta", "toolCallId", "inputTextDelta"),
    "tool-input-available": _chunk("_call_end", "toolCallId", "toolName", also=("input", *_CALL)),
    "tool-input-error": _chunk("_call_end", "toolCallId", "toolName", ERROR_TEXT, also=("input", *_CALL)),
    "error": _chunk("_error", "errorText"),
    "abort": _chunk("_abort", also=("reason",)),
    "finish-step": _chunk("_nothing"),
    "finish": _chunk("_finish", also=("finishReason", "messageMetadata")),
}
#: Chunks of this dialect alone, in addition to ``data-NAME``: the kind of aside, and the members that must be strings.
#: Clients stop at an unknown type, so no other chunk is written again.
ASIDES: Final[Mapping[str, tuple[AsideKind, tuple[str, ...]]]] = {
    "source-url": ("citation", ("sourceId", "url")),
    "source-document": ("citation", ("sourceId", "mediaType", "title")),
    "tool-output-available": ("server_tool", ("toolCallId",)),
    "tool-output-error": ("server_tool", ("toolCallId", "errorText")),
    "tool-output-denied": ("server_tool", ("toolCallId",)),
    ASKS: ("client_tool", ("approvalId", "toolCallId")),
    FILE: ("metadata", ("url", "mediaType")),
    "message-metadata": ("metadata", ()),
}
#: The members that each chunk must have. All are strings.
TEXTS: Final[Mapping[str, tuple[str, ...]]] = {
    **{kind: chunk.needs for kind, chunk in CHUNKS.items()},
    **{kind: needs for kind, (_, needs) in ASIDES.items()},
}
OPTIONAL: Final = ("messageId", "title", "filename", "reason")  # must be strings, too
ANSWERED_CALL: Final = "tool"  # the type of the aside for a call that the server ran, with its output
#: Chunks that only clients of version 7 know. They are read, but not written.
NEWEST: Final = frozenset({"custom", "reasoning-file", "steering-message", "reset-step", ANSWERS})


#: The id of an approval for other dialects: whether the provider runs the call, whether it is dynamic, and the two ids.
_APPROVAL_ID: Final = re.compile(r"([cp])([sd])([0-9]+)_(.*)", re.DOTALL)


def approval_id(request: str, call: str, executed: bool, shown: Mapping[str, Any]) -> str:
    """Return the id that other dialects get for the approval ``request`` of a call."""
    how = f"{'p' if executed else 'c'}{'d' if shown.get('dynamic') is True else 's'}"
    return f"{how}{len(request)}_{request}_{call}"


def approval_of_id(name: str) -> tuple[str, str, bool, bool] | None:
    """Return the ids of the request and of the call, and whether it is the provider's and dynamic; None for any other id."""
    found = _APPROVAL_ID.fullmatch(name)
    if found is None or len(found[3]) > 4:
        return None
    size = int(found[3])
    request, mark, call = found[4][:size], found[4][size : size + 1], found[4][size + 1 :]
    return (request, call, found[1] == "p", found[2] == "d") if mark == "_" else None


def _key(name: str) -> str:
    r"""Return a pattern for a member's name in JSON text. Each character may be written as an escape (``\u005f``)."""
    letters = "".join(rf"(?:{each}|\\u{ord(each):04x})" for each in name)
    return rf'"{letters}"\s*+:'


_PROTO: Final = re.compile(_key("__proto__").encode(), re.IGNORECASE)
_CONSTRUCTOR: Final = re.compile(_key("constructor").encode(), re.IGNORECASE)
_PROTOTYPE: Final = re.compile(_key("prototype").encode(), re.IGNORECASE)


def is_refused(json: bytes) -> bool:
    """Return whether the client's JSON reader (``secure-json-parse``) may refuse a chunk with this text as a value.

    The reader refuses a key ``__proto__``, and a ``constructor`` that contains a ``prototype``. Here, both names anywhere
    suffice.
    """
    return bool(_PROTO.search(json) or (_CONSTRUCTOR.search(json) and _PROTOTYPE.search(json)))


def wrong_members(kind: str, document: Mapping[str, Any]) -> list[str]:
    """Return the members of a chunk because of which clients refuse it."""
    wrong = [name for name in TEXTS.get(kind, ()) if not isinstance(document.get(name), str)]
    wrong += [name for name in OPTIONAL if name in document and not isinstance(document[name], str)]
    metadata = document.get("providerMetadata", {})
    if not isinstance(metadata, dict) or not all(isinstance(each, dict) for each in metadata.values()):
        wrong.append("providerMetadata")
    if kind in {"tool-input-available", "tool-input-error"} and "input" not in document:
        wrong.append("input")
    if kind.startswith("data-") and "data" not in document:
        wrong.append("data")
    return list(dict.fromkeys(wrong))


def finish_reason(reason: StopReason, *, called: bool) -> tuple[str, bool]:
    """Return the word for a reason, and whether it is less exact than the reason."""
    if reason == "tool_calls" and not called:
        return "stop", True  # the dialect can't express a tool call that the client did not get
    return WORDS.get(reason, "other"), reason not in EXACT


def encode_usage(usage: UsageReported, report: StreamReport) -> dict[str, Any]:
    """Return the known counts, or all counts of this dialect's own usage. Clients do not accept null."""
    if usage.vendor == VENDOR and usage.raw:
        return {name: count for name, count in usage.raw.items() if count is not None}
    if usage.input_cache_write is not None or has_more(usage, VENDOR):
        report.lose("usage_detail")
    known = {theirs: getattr(usage, ours) for ours, theirs in UI_COUNTS.items()}
    return {name: count for name, count in known.items() if count is not None}


def decode_usage(counts: dict[str, Any]) -> UsageReported:
    """Return the counts of ``messageMetadata.usage``, where this dialect's encoder and many applications write them."""
    found = {ours: count_of(counts, theirs) for ours, theirs in UI_COUNTS.items()}
    return UsageReported(**found, raw=counts, vendor=VENDOR)


TOOLS: Final = ToolRules(names=re.compile(r"(?s).+"))  # no limits on names are documented
SYSTEM: Final = "system"
EXCHANGE: Final = ("id", "messageId", "trigger", SYSTEM)
ANSWER_ID: Final = "answerId"  # the key in ``Request.exchange`` for the response's id, which the application chose
#: By the field of streamkit's ``Options``: the setting that assistant-ui adds to a request (in ``callSettings``).
OPTIONS: Final[Mapping[str, str]] = {
    "max_tokens": "maxTokens",
    "temperature": "temperature",
    "top_p": "topP",
    "presence_penalty": "presencePenalty",
    "frequency_penalty": "frequencyPenalty",
    "seed": "seed",
}
TOOL: Final = "tool-"  # how the type of a call's part begins, before the tool's name
DYNAMIC_TOOL: Final = "dynamic-tool"  # the type of a call's part with the tool's name in a separate member
STEP_START: Final = "step-start"
STEERING: Final = "steering-message"  # a message of the user between two steps, and the native role of its turn
DENIED: Final = "output-denied"  # the user did not allow the call: its result is an error
RESPONDED: Final = "approval-responded"  # the user answered; if the answer is no, the result is an error
NOT_ALLOWED: Final = "Tool call execution denied."  # the result if the user gave no reason


@frozen(kw_only=True)
class UIClient(Profile):
    """What streamkit must know of a client of this dialect to write for it."""

    #: Whether the client refuses members that its version does not know: the finish reason, and the encoding of an input.
    strict: bool = False


#: A request does not show the client's version, so an application must name the client.
CLIENTS: Final = (UIClient(name="ai-sdk-5", title="AI SDK 5 before 5.0.217, and AI SDK 6 before 6.0.231", strict=True),)


def is_strict(profile: Profile) -> bool:
    """Return whether the client refuses members of later versions."""
    return isinstance(profile, UIClient) and profile.strict


#: For each provider, which has its vendor's name: its member for a signature, or for encrypted reasoning.
SIGNATURES: Final[Mapping[str, str]] = {
    "anthropic": "signature",
    "bedrock": "signature",
    "google": "thoughtSignature",
    "openai": "reasoningEncryptedContent",
}
REDACTED: Final[Mapping[str, str]] = {
    "anthropic": "redactedData",
    "bedrock": "redactedData",
    "openai": "reasoningEncryptedContent",
}
SEALED: Final = "sealed"  # the member of streamkit's entry, for vendors without an SDK provider


@define
class Read:
    """The contents of one ``providerMetadata``."""

    signatures: list[Opaque] = field(factory=list)  # values that a vendor bound to the part or the call
    redacted: list[Opaque] = field(factory=list)  # encrypted reasoning that is a part itself
    others: dict[str, Any] = field(factory=dict)  # other members, by provider


def read_metadata(metadata: Mapping[str, Any], *, is_empty: bool) -> Read:
    """Return the metadata of a part or call. ``is_empty``: it has no text, only OpenAI's encrypted reasoning."""
    read = Read()
    for provider, members in metadata.items():
        if not isinstance(members, dict):
            read.others[provider] = members
            continue
        left = {name: value for name, value in members.items() if not _take(read, provider, name, value, is_empty)}
        if left:
            read.others[provider] = left
    return read


def _take(read: Read, provider: str, name: str, value: Any, is_empty: bool) -> bool:
    """Add a member with a known meaning to ``read``. Return False if the member must be kept among the others."""
    if value is None:
        return True
    if not isinstance(value, str) or not value:
        return False
    if provider == MADE and name == SEALED:
        sealed = unseal(value)
        if sealed is None:
            return False
        (read.redacted if sealed.kind == "opaque" else read.signatures).append(sealed.opaque)
        return True
    if REDACTED.get(provider) == name and (is_empty or SIGNATURES[provider] != name):
        read.redacted.append(Opaque(provider, value))
        return True
    if SIGNATURES.get(provider) == name:
        read.signatures.append(Opaque(provider, value))
        return True
    return False


def phase_of(phase: str | None) -> dict[str, Any]:
    """Return the member with the phase of a text (commentary or final answer), as the SDK's provider for OpenAI writes it."""
    return {} if phase is None else {_METADATA: {"openai": {"phase": phase}}}


def metadata_of(kind: Kind, opaque: Opaque | None, name: str = "providerMetadata") -> dict[str, Any]:
    """Return the member called ``name`` with the opaque value of a part of that kind; an empty object if there is none."""
    if opaque is None:
        return {}
    member = (REDACTED if kind == "opaque" else SIGNATURES).get(opaque.vendor)
    if member is None:
        return {name: {MADE: {SEALED: seal(kind, opaque.vendor, opaque.blob)}}}
    return {name: {opaque.vendor: {member: opaque.blob}}}
