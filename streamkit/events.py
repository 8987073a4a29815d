"""The events that stages between ``decode`` and ``encode`` take and yield, as two closed unions.

``decode`` yields *wire events*. A wire event has content of one frame. Tool-call deltas are as on the wire, so any field
may be absent. ``accumulate_tool_calls`` turns wire events into *events*, which report that a call started, grew or
finished. The two unions differ, so a type checker rejects a stage in the wrong place.

The classes hold data and no behaviour. The classes are made with ``attrs.define`` and are not frozen, because a frozen
instance takes two and a half times as long to create (design.md §9). Treat events as immutable, and use ``attrs.evolve``
for a changed copy.

An event's ``choice`` is the label of its choice (several if n > 1), and ``block`` is the label of the content block within
that choice. Neither label is a position. Two adjacent deltas belong together only if both labels agree. Token counts are
cumulative: replace the previous counts, and never add the new ones to them.

Source: design.md §3, dialects.md §0.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias, get_args

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
#: Provider-independent kinds of error (dialects.md §7.5).
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
#: Maximum characters kept of a provider's error message (``TOLD_CHARS``), and of its error type and code (``WORD_CHARS``).
TOLD_CHARS, WORD_CHARS = 2000, 100


@define
class ResponseStarted:
    """The first event of every response. ``extras`` holds its unknown or vendor-specific fields that stay constant."""

    id: str | None = None
    model: str | None = None
    created: int | None = None  #: seconds since the epoch
    vendor: str = ""
    extras: Mapping[str, Any] | None = None
    usage: UsageReported | None = None  #: token counts in the first frame; a ``UsageReported`` event repeats them


@define
class ChoiceStarted:
    """The first mention of a choice."""

    choice: int = 0
    role: str = "assistant"


@define
class TextDelta:
    """A piece of the response's text, in the content block with the label ``block``."""

    text: str
    choice: int = 0
    block: int = 0


@define
class RefusalDelta:
    """A piece of the text with which the model refuses to answer."""

    text: str
    choice: int = 0
    block: int = 0


@define
class ReasoningDelta:
    """A piece of visible reasoning: ``raw``, or a ``summary`` that the provider wrote."""

    text: str
    choice: int = 0
    block: int = 0
    kind: Literal["raw", "summary"] = "raw"


@define
class ReasoningSignature:
    """A vendor's signature of a block of reasoning or (with ``on="text"``) of text. Only the vendor can read the signature."""

    blob: str
    vendor: str
    choice: int = 0
    block: int = 0
    on: Literal["reasoning", "text"] = "reasoning"


@define
class ReasoningOpaque:
    """A block of reasoning that only its ``vendor`` can read (redacted or encrypted)."""

    blob: str
    vendor: str
    choice: int = 0
    block: int = 0


@frozen
class Opaque:
    """Data of a tool call that only its ``vendor`` can read (Gemini's thought signature)."""

    vendor: str
    blob: str


@frozen
class QualifiedName:
    """A tool's name within a namespace. Only OpenAI Responses has namespaces."""

    namespace: str
    name: str


@define
class ToolCallDelta:
    """The fields of a tool call in one frame. An absent field is None, and ``""`` is an empty string on the wire."""

    index: int | None = None
    id: str | None = None
    name: str | None = None
    arguments: str | None = None
    choice: int = 0
    kind: ToolKind = "function"
    #: True if ``arguments`` is a whole value that replaces earlier arguments, False if it is a fragment.
    snapshot: bool = False
    #: True if calls have no id in this dialect: streamkit then makes an id without counting a repair.
    anonymous: bool = False
    extras: Mapping[str, Any] | None = None  #: vendor-specific fields of the call (Anthropic's ``caller``)
    signature: Opaque | None = None  #: data of the call that only its vendor can read
    #: True if a ``ToolCallEnded`` should report the end of this call. If that event is missing, the call is complete only if
    #: its argument text is one JSON object.
    is_ended_by_wire: bool = False


@define
class ToolCallWhole:
    """The whole argument text of the call at ``index``, sent after its fragments or instead of them (OpenAI Responses)."""

    index: int
    arguments: str
    choice: int = 0


@define
class ToolCallsWhole:
    """All calls of a choice, repeated after their fragments (the ``message`` at the end of a Chat stream).

    Every call in the list has its whole argument text. Its ``index`` is its place in this list. The fragments of the same
    call may have another ``index``.
    """

    calls: tuple[ToolCallDelta, ...]
    choice: int = 0


@define
class ToolCallEnded:
    """The wire reported the end of the call at ``index`` (``content_block_stop``, or a whole Ollama line).

    If ``whole`` is False, the wire reported the call as incomplete. Its argument text is then incomplete even if it looks like
    whole JSON.
    """

    index: int
    choice: int = 0
    whole: bool = True


@define
class ToolCallStarted:
    """A call whose id and name are final. ``call`` is the number of the call within its choice, from 0."""

    call: int
    id: str
    name: str
    choice: int = 0
    kind: ToolKind = "function"
    extras: Mapping[str, Any] | None = None  #: vendor-specific fields that were known when the call started
    signature: Opaque | None = None
    id_made: bool = False  #: True if the wire had no id and streamkit made this id
    qualified: QualifiedName | None = None  #: the name that the client uses for the tool, if the tool is in a namespace
    #: True if the model was stopped before the first character of the arguments. Then no fragment follows, and the protocol
    #: did not end the call.
    cut: bool = False


@define
class ToolCallArguments:
    """A fragment of the JSON text of a call's arguments. ``call`` is the number from its ``ToolCallStarted``."""

    call: int
    fragment: str
    choice: int = 0


@define
class ToolCallDoomed:
    """The arguments of an unfinished call break the schema, and no later fragment can change that (``check_schema_early``).

    ``path`` leads to the invalid value. The event is emitted once for a call, and the call continues. Encoders ignore the
    event.
    """

    call: int
    choice: int
    path: tuple[str | int, ...]
    reason: str


@define
class Verdict:
    """The result of a check: of a finished call (``check_json``) or of a response's text (``check_output``).

    ``complete``: the text is one JSON value; arguments are one object. ``empty``: there are no arguments, which means ``{}``.
    ``truncated``: the text begins a JSON value and ends too early. ``malformed``: the text is not JSON. ``not_an_object``: the
    arguments are another JSON value. ``schema_invalid``: the text is complete but the schema rejects it, or the tool is
    unknown (``unknown_tool``). ``unchecked``: the text is complete but was not checked against the schema, or it was too long
    to be kept. Don't run an unchecked call. ``position`` is a character offset in the text.
    """

    kind: VerdictKind
    reason: str | None = None
    position: int | None = None

    @property
    def ok(self) -> bool:
        """True if the arguments or the text can be used: the verdict is ``complete``, or ``empty`` (no arguments)."""
        return self.kind in {"complete", "empty"}


@define
class ToolCallFinished:
    """A call and its whole argument text as received. If ``ended`` is True, the protocol ended the call."""

    call: int
    id: str
    name: str
    arguments: str
    choice: int = 0
    kind: ToolKind = "function"
    ended: bool = True
    verdict: Verdict | None = None


@define
class OutputDoomed:
    """The text of an unfinished choice is invalid, and no later delta can change that (``check_schema_early``).

    ``path`` leads to the invalid value. The event is emitted once for a choice, and the choice continues. Encoders ignore the
    event.
    """

    choice: int
    path: tuple[str | int, ...]
    reason: str


@define
class OutputChecked:
    """The verdict on the text of a choice whose request asked for JSON (``check_output``). Encoders ignore this event."""

    verdict: Verdict
    choice: int = 0


@define
class UsageReported:
    """Token counts so far. ``input_total`` includes cached tokens, ``output_total`` includes reasoning. None means unknown."""

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
        """True if any count is above 0. If all are 0, the server does not know them yet, because every request has tokens."""
        return bool(self.input_total or self.output_total or self.total)


@define
class Aside:
    """Data that only clients of the same vendor's dialect receive. For others, it counts as lost. ``raw`` is decoded JSON."""

    vendor: str
    kind: AsideKind
    type: str  #: names the place of the data on the wire; for an unknown event, ``event.`` and its name
    raw: Any
    choice: int = 0
    block: int = 0
    #: The path in the request, if the data is an unknown part of a message's content: ``messages[3].content[0]``.
    place: str = field(default="", eq=False, repr=False, kw_only=True)


@define
class MediaGenerated:
    """A whole image, video or file that the model made, as base64 text, a URL or the provider's file id.

    ``native`` is the part as it was received. If the output is a dialect of the same vendor, the encoder writes
    ``native`` and ignores all further fields. If you change one of those fields, set ``native`` to None. Audio that a
    model speaks is an ``Aside`` of the kind ``audio``.
    """

    kind: MediaKind
    media_type: str | None = None  #: ``image/png``; None if the provider did not state a type
    data: str | None = None  #: base64, without ``data:``
    url: str | None = None
    file_id: str | None = None
    name: str | None = None
    choice: int = 0
    block: int = 0
    extras: Mapping[str, Any] | None = None  #: vendor-specific fields next to the medium
    native: Aside | None = None


@define
class StopReasonSeen:
    """A stop reason from the wire. Until the stream ends, the reason is not final."""

    reason: StopReason
    native: str
    choice: int = 0
    stop_sequence: str | None = None
    covers_calls: bool = False  #: True if ``stop`` is also the stop reason of a turn with tool calls in this dialect
    #: The provider's sentence about the stop (Gemini's ``finishMessage``), for the error message of a failed turn.
    message: str | None = None
    #: True if this stop reason is the dialect's word for a failure that ends the stream, which clients don't take for
    #: success.
    ends_failed: bool = False
    #: True if the client must run or approve something for which no tool call event exists, since only this dialect has it.
    waits: bool = False


@define
class TerminatorSeen:
    """The wire's end mark. If ``derives_calls``, complete calls may replace a missing stop reason (dialects.md §7.6)."""

    derives_calls: bool = False


@define
class LastFrameBroken:
    """The input ended inside a frame; ``raw`` is the received part of the frame."""

    raw: bytes


def _message(text: str) -> str:
    return shortened(text, TOLD_CHARS)


def _word(text: str | None) -> str | None:
    return text and shortened(text, WORD_CHARS)


@define
class ProviderFailed:
    """The provider reported a failure, in a stream or in place of a stream. ``native_type`` and ``code`` are as on the wire.

    Some servers repeat whole requests in their errors, so a message is truncated to 2,000 characters, and ``native_type`` and
    ``code`` to 100. ``raw`` has the whole error, for clients of the provider's dialect.
    """

    type: ErrorType
    message: str = field(converter=_message)
    native_type: str | None = field(default=None, converter=_word)
    code: str | None = field(default=None, converter=_word)
    http_status: int | None = None
    raw: Any = None
    vendor: str = ""
    retry_after_s: float | None = None  #: seconds that the provider asked the client to wait


@define
class ResponseFinished:
    """The reason why one choice ended. The event is emitted at the end of a stream, unless the stream was interrupted."""

    reason: StopReason
    native: str | None = None
    choice: int = 0
    stop_sequence: str | None = None


@define
class StreamEnded:
    """The last event. ``clean`` is False if the stream ended before its completion point or the provider failed."""

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

#: Event types that show that the model has produced output.
OUTPUT: Final = frozenset(
    {TextDelta, RefusalDelta, ReasoningDelta, ReasoningSignature, ReasoningOpaque, MediaGenerated, ToolCallStarted}
)

Event: TypeAlias = (
    Carried
    | ToolCallStarted
    | ToolCallArguments
    | ToolCallDoomed
    | ToolCallFinished
    | OutputDoomed
    | OutputChecked
    | ResponseFinished
    | StreamEnded
)
"""The events that ``accumulate_tool_calls``, ``check_json`` and user-written stages yield."""
_EVENTS: Final = frozenset(get_args(Event))


def is_event(item: object) -> bool:
    """Return whether ``item`` is an ``Event``."""
    return type(item) in _EVENTS or isinstance(item, Event)
