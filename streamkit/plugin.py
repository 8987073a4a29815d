"""Everything that another package needs to write a dialect, importable from one module.

A package adds a dialect by an entry point of the group ``streamkit.dialects``; see the page "Add a dialect". Names in this
module are stable: they change only with an entry under "Changed" in the changelog, and after 1.0 only in a new major version.
Anything else below ``streamkit.dialects`` may change in any release.

A decoder derives from ``FrameDecoder`` and appends events to ``self.out``. An encoder derives from ``WholeCallEncoder`` (text
in pieces, calls as a whole), ``OneChoiceEncoder`` or ``EventEncoder``. A reader of requests derives from ``RequestReader``, or
from ``TurnReader`` where each result of a tool is a message. A writer of whole responses derives from ``ResponseWriter``.
``Changes`` makes quirks. A ``Dialect`` combines all of these. ``streamkit.testing.check_dialect`` checks the dialect against
streamkit's laws.
"""

from streamkit.conversation.messages import (
    Choice,
    Media,
    Options,
    OutputFormat,
    Part,
    Reasoning,
    RedactedReasoning,
    Refusal,
    Request,
    Response,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    Turn,
)
from streamkit.dialects.base import Bodies, Dialect, Errors, ModelPlace
from streamkit.dialects.bodies.json_members import add_missing, without_none
from streamkit.dialects.bodies.request_reader import (
    RequestReader,
    TurnReader,
    function_call,
    function_tool,
    read_options,
)
from streamkit.dialects.bodies.response_writer import ResponseWriter
from streamkit.dialects.http import HTTP, Endpoint, ModelCard, Models, Surface, TokenCount
from streamkit.dialects.linting.explain import COMMON_HINTS, Hint, Hints, like
from streamkit.dialects.linting.grammar import (
    COMMON_RULES,
    READING_RULES,
    GrammarChecker,
    PayloadChecker,
    is_filled,
    is_index,
    is_text,
    shown,
)
from streamkit.dialects.lowering import Capabilities, Lowering, Place, each_part
from streamkit.dialects.members.fields import Fields
from streamkit.dialects.members.values import count_of, details_of, has_value, text_of
from streamkit.dialects.profiles import Encoding, Profile, Provider, Target
from streamkit.dialects.quirks.calls import Fragments
from streamkit.dialects.quirks.changes import (
    Change,
    Changes,
    EventForm,
    LineForm,
    MessageForm,
    both,
    cut,
    every,
    first,
    insert,
    last,
    put,
    rename,
    reword,
    turn,
)
from streamkit.dialects.streams.event_encoder import (
    EventEncoder,
    OneChoiceEncoder,
    object_arguments,
    only_choice,
    stop_word,
    wrapped_arguments,
)
from streamkit.dialects.streams.frame_decoder import FrameDecoder
from streamkit.dialects.streams.whole_call_encoder import WholeCallEncoder
from streamkit.dialects.vocabulary.error_bodies import provider_failed
from streamkit.dialects.vocabulary.sealed_reasoning import seal, unseal
from streamkit.errors import BadRequest
from streamkit.events import (
    Aside,
    ChoiceStarted,
    ErrorType,
    Event,
    MediaGenerated,
    ProviderFailed,
    ReasoningDelta,
    ReasoningOpaque,
    ReasoningSignature,
    RefusalDelta,
    ResponseFinished,
    ResponseStarted,
    StopReason,
    StopReasonSeen,
    StreamEnded,
    TerminatorSeen,
    TextDelta,
    ToolCallArguments,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallFinished,
    ToolCallStarted,
    UsageReported,
    WireEvent,
)
from streamkit.framing.eventstream import EventStreamParser, serialize_eventstream
from streamkit.framing.frame import Frame
from streamkit.framing.json_array import JSONArrayParser
from streamkit.framing.ndjson import NDJSONParser, serialize_ndjson
from streamkit.framing.sse import KEEP_ALIVE, SSEParser, serialize_comment, serialize_sse
from streamkit.limits import DEFAULT_LIMITS, Limits
from streamkit.report import StreamReport
from streamkit.tool_calls.value_text import item_texts, lenient_text, value_text

__all__ = [
    "COMMON_HINTS",
    "COMMON_RULES",
    "DEFAULT_LIMITS",
    "HTTP",
    "KEEP_ALIVE",
    "READING_RULES",
    "Aside",
    "BadRequest",
    "Bodies",
    "Capabilities",
    "Change",
    "Changes",
    "Choice",
    "ChoiceStarted",
    "Dialect",
    "Encoding",
    "Endpoint",
    "ErrorType",
    "Errors",
    "Event",
    "EventEncoder",
    "EventForm",
    "EventStreamParser",
    "Fields",
    "Fragments",
    "Frame",
    "FrameDecoder",
    "GrammarChecker",
    "Hint",
    "Hints",
    "JSONArrayParser",
    "Limits",
    "LineForm",
    "Lowering",
    "Media",
    "MediaGenerated",
    "MessageForm",
    "ModelCard",
    "ModelPlace",
    "Models",
    "NDJSONParser",
    "OneChoiceEncoder",
    "Options",
    "OutputFormat",
    "Part",
    "PayloadChecker",
    "Place",
    "Profile",
    "Provider",
    "ProviderFailed",
    "Reasoning",
    "ReasoningDelta",
    "ReasoningOpaque",
    "ReasoningSignature",
    "RedactedReasoning",
    "Refusal",
    "RefusalDelta",
    "Request",
    "RequestReader",
    "Response",
    "ResponseFinished",
    "ResponseStarted",
    "ResponseWriter",
    "SSEParser",
    "StopReason",
    "StopReasonSeen",
    "StreamEnded",
    "StreamReport",
    "Surface",
    "Target",
    "TerminatorSeen",
    "Text",
    "TextDelta",
    "Thinking",
    "TokenCount",
    "Tool",
    "ToolCall",
    "ToolCallArguments",
    "ToolCallDelta",
    "ToolCallEnded",
    "ToolCallFinished",
    "ToolCallStarted",
    "ToolChoice",
    "ToolResult",
    "Turn",
    "TurnReader",
    "UsageReported",
    "WholeCallEncoder",
    "WireEvent",
    "add_missing",
    "both",
    "count_of",
    "cut",
    "details_of",
    "each_part",
    "every",
    "first",
    "function_call",
    "function_tool",
    "has_value",
    "insert",
    "is_filled",
    "is_index",
    "is_text",
    "item_texts",
    "last",
    "lenient_text",
    "like",
    "object_arguments",
    "only_choice",
    "provider_failed",
    "put",
    "read_options",
    "rename",
    "reword",
    "seal",
    "serialize_comment",
    "serialize_eventstream",
    "serialize_ndjson",
    "serialize_sse",
    "shown",
    "stop_word",
    "text_of",
    "turn",
    "unseal",
    "value_text",
    "without_none",
    "wrapped_arguments",
]
