"""What flows between ``decode`` and ``encode``: two closed unions of facts.

``decode`` yields *wire events*: what a frame said, with tool-call deltas as the wire had them (each field may be absent).
``accumulate_tool_calls`` turns them into *events*: calls that were started, grew and finished. The unions differ so that a
stage in the wrong place does not type-check.

The classes hold data and no behaviour. They are ``attrs.define`` with slots and not frozen (a frozen one takes two and a half
times as long to make: design.md §9): treat them as values and make a new one (``attrs.evolve``) to change one.

``choice`` labels the choice (n > 1) and ``block`` the content block within the choice: labels, never positions. Two
adjacent deltas belong together only if both agree. Usage is a cumulative snapshot: replace, never add.

Source: design.md §3, dialects.md §0.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

from attrs import define, field, frozen

from streamkit.text.quoting import shortened

StopReason: TypeAlias = Literal[
    "stop",
    "stop_sequence",
    "length",
    "context_full",
    "tool_calls",
    "content_filter",
    "refusal",
    "pause",
    "compaction",
    "malformed_tool",
    "error",
    "other",
]
#: Neutral kinds of a provider's error (dialects.md §7.5).
ErrorType: TypeAlias = Literal[
    "invalid_request",
    "auth",
    "billing",
    "permission",
    "not_found",
    "too_large",
    "rate_limit",
    "server",
    "unavailable",
    "timeout",
    "truncated",
]
ToolKind: TypeAlias = Literal["function", "custom"]
AsideKind: TypeAlias = Literal[
    "logprobs", "citation", "server_tool", "client_tool", "audio", "metadata", "unknown_event"
]
MediaKind: TypeAlias = Literal["image", "audio", "video", "file"]
VerdictKind: TypeAlias = Literal[
    "complete", "empty", "truncated", "malformed", "not_an_object", "schema_invalid", "unchecked"
]
#: What a provider says of its failure is cut here, in characters, and a word for its kind or a code there.
TOLD_CHARS, WORD_CHARS = 2000, 100


@define
class ResponseStarted:
    """The first event of every response. ``extras`` are the unknown or vendor's fields that stay constant."""

    id: str | None = None
    model: str | None = None
    created: int | None = None  #: seconds since the epoch
    vendor: str = ""
    extras: Mapping[str, Any] | None = None
    usage: UsageReported | None = None  #: counts that came with the start; an event of their own follows


@define
class ChoiceStarted:
    """A choice was seen for the first time."""

    choice: int = 0
    role: str = "assistant"


@define
class TextDelta:
    """An increment of the answer's text, in the block with the label ``block``."""

    text: str
    choice: int = 0
    block: int = 0


@define
class RefusalDelta:
    """An increment of the text with which the model refuses to answer."""

    text: str
    choice: int = 0
    block: int = 0


@define
class ReasoningDelta:
    """Visible thinking: ``raw``, or a ``summary`` that the provider wrote of it."""

    text: str
    choice: int = 0
    block: int = 0
    kind: Literal["raw", "summary"] = "raw"


@define
class ReasoningSignature:
    """An opaque proof of the block it names, reasoning or ``on`` text; means something to its ``vendor`` alone."""

    blob: str
    vendor: str
    choice: int = 0
    block: int = 0
    on: Literal["reasoning", "text"] = "reasoning"


@define
class ReasoningOpaque:
    """Reasoning that only its ``vendor`` can read (redacted, encrypted), as a block of its own."""

    blob: str
    vendor: str
    choice: int = 0
    block: int = 0


@frozen
class Opaque:
    """What only its ``vendor`` can read, bound to a tool call (Gemini's thought signature)."""

    vendor: str
    blob: str


@frozen
class QualifiedName:
    """What a tool is called inside of a namespace, which only OpenAI Responses has."""

    namespace: str
    name: str


@define
class ToolCallDelta:
    """What one frame said of a call. Absent is None; ``""`` is what the wire said."""

    index: int | None = None
    id: str | None = None
    name: str | None = None
    arguments: str | None = None
    choice: int = 0
    kind: ToolKind = "function"
    #: ``arguments`` is one whole value, which replaces what came before, not a fragment.
    snapshot: bool = False
    #: The dialect gives calls no id here, so making one is no repair.
    anonymous: bool = False
    #: Fields of the call that are the vendor's own (Anthropic's caller).
    extras: Mapping[str, Any] | None = None
    signature: Opaque | None = None
    #: The wire ends such calls (``ToolCallEnded``): one that is left open is whole only if its text is one object.
    is_ended_by_wire: bool = False


@define
class ToolCallWhole:
    """The wire said the whole argument text of the call at ``index``, after its fragments or instead of them (Responses)."""

    index: int
    arguments: str
    choice: int = 0


@define
class ToolCallsWhole:
    """The wire said all calls of a choice once more, behind their fragments (the ``message`` at the end of a Chat stream).

    Each has its whole argument text; an index is its place in the list, and may be another than that of its fragments.
    """

    calls: tuple[ToolCallDelta, ...]
    choice: int = 0


@define
class ToolCallEnded:
    """The wire ended the call at ``index`` (``content_block_stop``, a whole Ollama line).

    Not ``whole``: it said that the call is incomplete, so its text is not all there should be, whatever it looks like.
    """

    index: int
    choice: int = 0
    whole: bool = True


@define
class ToolCallStarted:
    """A call with its identity settled. ``call`` is its ordinal within the choice, dense from 0, as first mentioned."""

    call: int
    id: str
    name: str
    choice: int = 0
    kind: ToolKind = "function"
    extras: Mapping[str, Any] | None = None  #: the vendor's own fields, as known when the call was announced
    signature: Opaque | None = None
    id_made: bool = False  #: the wire gave no id
    qualified: QualifiedName | None = None  #: how the client knows ``name``, if its tool is in a namespace
    #: The model was stopped before the first character of its arguments: none come, and the call is not ended.
    cut: bool = False


@define
class ToolCallArguments:
    """A fragment of the JSON text of a call's arguments; ``call`` is the label of its ``ToolCallStarted``."""

    call: int
    fragment: str
    choice: int = 0


@define
class ToolCallDoomed:
    """The arguments of a call that still streams can't become valid any more (``check_schema_early``), whatever follows.

    ``path`` leads to the value at fault. Sent once for a call, which goes on; no dialect writes it.
    """

    call: int
    choice: int
    path: tuple[str | int, ...]
    reason: str


@define
class Verdict:
    """What ``check_json`` says of one finished call. ``position`` is a character of the argument text.

    ``schema_invalid``: a complete object that its tool's schema refuses, or a call of an unknown tool (``unknown_tool``).
    ``unchecked``: a complete object that checking against the schema would take too long for; it is not to be run on.
    """

    kind: VerdictKind
    reason: str | None = None
    position: int | None = None


@define
class ToolCallFinished:
    """A call and its whole argument text as received. ``ended``: the protocol ended it, so its text is all there is."""

    call: int
    id: str
    name: str
    arguments: str
    choice: int = 0
    kind: ToolKind = "function"
    ended: bool = True
    verdict: Verdict | None = None


@define
class UsageReported:
    """Tokens so far. ``input_total`` includes the cache, ``output_total`` the reasoning; None is unknown, not 0."""

    input_total: int | None = None
    input_cached: int | None = None
    input_cache_write: int | None = None
    output_total: int | None = None
    output_reasoning: int | None = None
    total: int | None = None
    raw: Mapping[str, Any] | None = None
    vendor: str = ""

    @property
    def counts(self) -> bool:
        """Whether tokens were counted. No request has none: servers that do not know yet write 0 and 0."""
        return bool(self.input_total or self.output_total or self.total)


@define
class Aside:
    """Something carried for the same vendor's dialect and a loss elsewhere. ``raw`` is the decoded JSON value."""

    vendor: str
    kind: AsideKind
    type: str  #: its place, in the wire's names; for an unknown event ``event.`` and its name
    raw: Any
    choice: int = 0
    block: int = 0
    #: Of an unknown part of a content, its path in the request: ``messages[3].content[0]``.
    place: str = field(default="", eq=False, repr=False, kw_only=True)


@define
class MediaGenerated:
    """An image, a film or a file that the model made, whole: as base64 text, at a URL, or by the provider's own id.

    ``native`` is all of it as it came, which the same vendor's dialect writes instead of the other fields: who changes one of
    those leaves it out. Audio that a model speaks is an ``Aside`` of its own kind.
    """

    kind: MediaKind
    media_type: str | None = None  #: ``image/png``; None where nobody said
    data: str | None = None  #: base64, without ``data:``
    url: str | None = None
    file_id: str | None = None
    name: str | None = None
    choice: int = 0
    block: int = 0
    extras: Mapping[str, Any] | None = None  #: what came beside it, in the vendor's own fields
    native: Aside | None = None


@define
class StopReasonSeen:
    """A frame gave a stop reason; it is advisory until the stream ends."""

    reason: StopReason
    native: str
    choice: int = 0
    stop_sequence: str | None = None
    #: In this dialect ``stop`` also stands for a turn that calls tools.
    covers_calls: bool = False
    #: What the provider said of it in a sentence (Gemini's ``finishMessage``); it is read where the turn failed.
    message: str | None = None
    #: It says a failure in the dialect's own word and ends the stream: no reader takes it for a success.
    ends_failed: bool = False
    #: The client has something to run or to approve in a form that only the dialect has, so that no call is seen.
    waits: bool = False


@define
class TerminatorSeen:
    """The wire's own end mark. ``derives_calls``: complete calls may then stand for a missing stop reason (§7.6)."""

    derives_calls: bool = False


@define
class LastFrameBroken:
    """The input ended inside a frame; ``raw`` is what there was of it."""

    raw: bytes


def _message(text: str) -> str:
    return shortened(text, TOLD_CHARS)


def _word(text: str | None) -> str | None:
    return text and shortened(text, WORD_CHARS)


@define
class ProviderFailed:
    """The provider failed, in a stream or instead of one. ``type`` is neutral; ``native_type`` and ``code`` are the wire's.

    Servers repeat whole requests in what they say, so a message is cut at 2,000 characters, and the two words at 100.
    ``raw`` has all of it, for clients of the provider's own dialect.
    """

    type: ErrorType
    message: str = field(converter=_message)
    native_type: str | None = field(default=None, converter=_word)
    code: str | None = field(default=None, converter=_word)
    http_status: int | None = None
    raw: Any = None
    vendor: str = ""
    retry_after_s: float | None = None  #: how long the provider asked to be left alone


@define
class ResponseFinished:
    """Why generation of one choice ended, decided at the end of the stream. Never sent for a stream that was cut."""

    reason: StopReason
    native: str | None = None
    choice: int = 0
    stop_sequence: str | None = None


@define
class StreamEnded:
    """The last event. Not ``clean``: the stream ended before its completion point, or the provider failed."""

    clean: bool
    reason: str | None = None


Carried: TypeAlias = (
    ResponseStarted
    | ChoiceStarted
    | TextDelta
    | RefusalDelta
    | ReasoningDelta
    | ReasoningSignature
    | ReasoningOpaque
    | UsageReported
    | Aside
    | MediaGenerated
    | ProviderFailed
)
"""Events that mean the same before and after accumulation."""

WireEvent: TypeAlias = (
    Carried
    | ToolCallDelta
    | ToolCallWhole
    | ToolCallsWhole
    | ToolCallEnded
    | StopReasonSeen
    | TerminatorSeen
    | LastFrameBroken
)
"""What ``decode`` yields."""

#: Events with which something of the output begins.
OUTPUT: Final = frozenset(
    {TextDelta, RefusalDelta, ReasoningDelta, ReasoningSignature, ReasoningOpaque, MediaGenerated, ToolCallStarted}
)

Event: TypeAlias = (
    Carried | ToolCallStarted | ToolCallArguments | ToolCallDoomed | ToolCallFinished | ResponseFinished | StreamEnded
)
"""What ``accumulate_tool_calls``, ``check_json`` and stages of a user's own yield."""
