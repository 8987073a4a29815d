"""The events that stages between ``decode`` and ``encode`` take and yield. Each event belongs to the union
``WireEvent``, to the union ``Event``, or to both.

``decode`` yields *wire events*. A wire event has content from one frame. A wire event of a tool call has only the
fields that are in its frame. ``accumulate_tool_calls`` turns wire events into *events*, which report that a tool call
started, grew or finished. The two unions differ, so a type checker rejects a stage in the wrong place.

The classes have data and no behaviour. The classes are made with ``attrs.define`` and are not frozen, because a frozen
instance takes two and a half times as long to create (design.md §9). Nevertheless, treat events as immutable: use
``attrs.evolve`` to make a changed copy.

An event's ``choice`` is the number of the choice that the event belongs to. A response has several choices if the
request asked for more than one (``n``). ``block`` is the number of the content block within that choice. Both numbers
are labels, not positions in a list. Two adjacent deltas belong together only if both labels are the same. Token counts
are cumulative: replace the previous counts with the new counts, and never add them up.

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
    """The first event of every response. ``extras`` has the response's unknown or vendor-specific fields that are the
    same in all frames.
    """

    id: str | None = None
    model: str | None = None
    created: int | None = None  #: seconds since the epoch
    vendor: str = ""
    extras: Mapping[str, Any] | None = None
    #: The token counts in the first frame; a ``UsageReported`` event repeats these counts.
    usage: UsageReported | None = None


@define
class ChoiceStarted:
    """The first mention of a choice in the stream."""

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
    """A piece of visible reasoning. ``kind`` is ``raw``, or ``summary`` if the provider wrote a summary of the
    reasoning.
    """

    text: str
    choice: int = 0
    block: int = 0
    kind: Literal["raw", "summary"] = "raw"


@define
class ReasoningSignature:
    """A vendor's signature of a block of reasoning, or of a block of text (``on="text"``). Only the vendor can read the
    signature.
    """

    blob: str
    vendor: str
    choice: int = 0
    block: int = 0
    on: Literal["reasoning", "text"] = "reasoning"


@define
class ReasoningOpaque:
    """A redacted or encrypted block of reasoning, which only the ``vendor`` can read."""

    blob: str
    vendor: str
    choice: int = 0
    block: int = 0


@frozen
class Opaque:
    """Data of a tool call that only the ``vendor`` can read, such as Gemini's thought signature."""

    vendor: str
    blob: str


@frozen
class QualifiedName:
    """A tool's name within a namespace. Only OpenAI Responses has namespaces."""

    namespace: str
    name: str


@define
class ToolCallDelta:
    """The fields of a tool call in one frame. A field that is not in the frame is None. ``""`` means that the frame has
    an empty string.
    """

    index: int | None = None
    id: str | None = None
    name: str | None = None
    arguments: str | None = None
    choice: int = 0
    kind: ToolKind = "function"
    #: True if ``arguments`` is a whole value that replaces earlier arguments, False if ``arguments`` is a fragment.
    snapshot: bool = False
    #: True if calls have no id in this dialect: streamkit then makes an id without counting a repair.
    anonymous: bool = False
    extras: Mapping[str, Any] | None = None  #: vendor-specific fields of the call (Anthropic's ``caller``)
    signature: Opaque | None = None  #: data of the call that only one vendor can read
    #: True if a ``ToolCallEnded`` should report the end of this call. If the ``ToolCallEnded`` is missing, the call is
    #: complete only if its argument text is one JSON object.
    is_ended_by_wire: bool = False


@define
class ToolCallWhole:
    """The whole argument text of the call at ``index``. OpenAI Responses sends this text after the call's fragments or
    instead of fragments.
    """

    index: int
    arguments: str
    choice: int = 0


@define
class ToolCallsWhole:
    """All calls of a choice, repeated after their fragments (in the ``message`` at the end of an OpenAI Chat stream).

    Every call in ``calls`` has its whole argument text. The ``index`` of a call is its place in this list. The
    fragments of the same call may have had another ``index``.
    """

    calls: tuple[ToolCallDelta, ...]
    choice: int = 0


@define
class ToolCallEnded:
    """The wire reported the end of the call at ``index``, for example with Anthropic's ``content_block_stop`` or a
    whole Ollama line.

    If ``whole`` is False, the wire reported the call as incomplete. The argument text is then incomplete, even if the
    text looks like whole JSON.
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
    #: True if the model was stopped before the first character of the arguments. In this case, no fragment follows, and
    #: the ``ToolCallFinished`` has ``ended=False``.
    cut: bool = False


@define
class ToolCallArguments:
    """A fragment of the JSON text of a call's arguments. ``call`` is the number from the call's ``ToolCallStarted``."""

    call: int
    fragment: str
    choice: int = 0


@define
class ToolCallDoomed:
    """The arguments of an unfinished call can't become valid, whatever fragments follow (``check_schema_early``).

    ``path`` leads to the invalid value. The event is emitted at most once for each call, and the call continues.
    Encoders ignore the event.
    """

    call: int
    choice: int
    path: tuple[str | int, ...]
    reason: str


@define
class Verdict:
    """The result of checking the arguments of a finished call (``check_json``) or a response's text (``check_output``).

    * ``complete``: the text is one JSON value. If the text is arguments, the value is an object.
    * ``empty``: there are no arguments, which means ``{}``.
    * ``truncated``: the text ended too early.
    * ``malformed``: the text is not JSON.
    * ``not_an_object``: the arguments are a JSON value that is not an object.
    * ``schema_invalid``: the JSON does not match the schema, or the called tool is unknown (``reason`` is ``unknown_tool``).
    * ``unchecked``: the JSON was not checked against the schema, or the text was too long to be kept. Don't run such a call.

    ``position`` is the place of the fault in the text, in characters from the start of the text.
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
    """A finished call with its whole argument text as received. ``ended`` is False if the stream did not report the end
    of the call.
    """

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
    """The text of an unfinished choice can't become valid, whatever deltas follow (``check_schema_early``).

    ``path`` leads to the invalid value. The event is emitted at most once for each choice, and the choice continues.
    Encoders ignore the event.
    """

    choice: int
    path: tuple[str | int, ...]
    reason: str


@define
class OutputChecked:
    """The verdict on the text of a choice, if the request asked for JSON (``check_output``). Encoders ignore this
    event.
    """

    verdict: Verdict
    choice: int = 0


@define
class UsageReported:
    """Token counts so far. ``input_total`` includes cached tokens, and ``output_total`` includes reasoning tokens. None
    means that a count is unknown.
    """

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
        """True if any count is above 0. Every request has tokens, so if all counts are 0, the server does not know the
        counts yet.
        """
        return bool(self.input_total or self.output_total or self.total)


@define
class Aside:
    """Data that only one vendor's dialect has. In the output of any other dialect, the data count as lost. ``raw`` is
    decoded JSON.
    """

    vendor: str
    kind: AsideKind
    #: The place of the data on the wire. For an unknown event, this is ``event.`` followed by the event's name.
    type: str
    raw: Any
    choice: int = 0
    block: int = 0
    #: The path in the request, if the data is an unknown part of a message's content: ``messages[3].content[0]``.
    place: str = field(default="", eq=False, repr=False, kw_only=True)


@define
class MediaGenerated:
    """A whole image, video or file that the model made, as base64 text, a URL or the provider's file id.

    ``native`` is the part as it was received. If the output is a dialect of the same vendor, the encoder writes
    ``native`` and ignores all other fields. If you change another field, set ``native`` to None. Speech from the model
    is not a ``MediaGenerated``, but an ``Aside`` of the kind ``audio``.
    """

    kind: MediaKind
    media_type: str | None = None  #: the type of the data, such as ``image/png``; None if the provider sent no type
    data: str | None = None  #: base64, without ``data:``
    url: str | None = None
    file_id: str | None = None
    name: str | None = None
    choice: int = 0
    block: int = 0
    extras: Mapping[str, Any] | None = None  #: vendor-specific fields that came with the image, video or file
    native: Aside | None = None


@define
class StopReasonSeen:
    """A stop reason from the wire. Until the stream ends, the reason is not final."""

    reason: StopReason
    native: str
    choice: int = 0
    stop_sequence: str | None = None
    #: True if ``stop`` is also the stop reason of a response with tool calls in this dialect.
    covers_calls: bool = False
    #: The provider's explanation of the stop (Gemini's ``finishMessage``). If the response failed, this is the error
    #: message.
    message: str | None = None
    #: True if this stop reason means a failure, and every client of the dialect reads the stop reason as a failure.
    ends_failed: bool = False
    #: True if the client must run or approve something that only this dialect has. No tool call event reports this.
    waits: bool = False


@define
class TerminatorSeen:
    """The terminator of the stream. If ``derives_calls`` is True, complete calls may replace a missing stop reason
    (dialects.md §7.6).
    """

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
    """The provider reported a failure, in a stream or in place of a stream. ``native_type`` and ``code`` have the
    values from the wire.

    Some servers repeat whole requests in their errors, so ``message`` is truncated to 2,000 characters. ``native_type``
    and ``code`` are truncated to 100 characters. ``raw`` has the whole error, for clients of the provider's dialect.
    """

    type: ErrorType
    message: str = field(converter=_message)
    native_type: str | None = field(default=None, converter=_word)
    code: str | None = field(default=None, converter=_word)
    http_status: int | None = None
    raw: Any = None
    vendor: str = ""
    retry_after_s: float | None = None  #: the number of seconds that the provider asks the client to wait


@define
class ResponseFinished:
    """The reason why one choice ended. The event is emitted at the end of a stream that was not interrupted."""

    reason: StopReason
    native: str | None = None
    choice: int = 0
    stop_sequence: str | None = None


@define
class StreamEnded:
    """The last event. ``clean`` is False if the stream ended before its completion point, or if the provider reported a
    failure.
    """

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
