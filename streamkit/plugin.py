"""Everything that another package needs to write a dialect, importable from one module.

A package adds a dialect by an entry point of the group ``streamkit.dialects``; see the page "Add a dialect". Names in this
module are stable: they change only with an entry under "Changed" in the changelog, and after 1.0 only in a new major version.
Anything else below ``streamkit.dialects`` may change in any release.

A decoder derives from ``FrameDecoder`` and appends events to ``self.out``. An encoder derives from ``WholeCallEncoder`` (text
in pieces, calls as a whole), ``OneChoiceEncoder`` or ``EventEncoder``. A ``Dialect`` combines decoder and encoder.
``streamkit.testing.check_dialect`` checks the dialect against streamkit's laws.
"""

from streamkit.dialects.base import Bodies, Dialect, Errors, ModelPlace
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
from streamkit.dialects.members.values import count_of, details_of, has_value, text_of
from streamkit.dialects.profiles import Encoding, Profile, Provider
from streamkit.dialects.streams.event_encoder import EventEncoder, OneChoiceEncoder, stop_word, wrapped_arguments
from streamkit.dialects.streams.frame_decoder import FrameDecoder
from streamkit.dialects.streams.whole_call_encoder import WholeCallEncoder
from streamkit.dialects.vocabulary.error_bodies import provider_failed
from streamkit.dialects.vocabulary.sealed_reasoning import seal, unseal
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
    "Bodies",
    "ChoiceStarted",
    "Dialect",
    "Encoding",
    "Endpoint",
    "ErrorType",
    "Errors",
    "Event",
    "EventEncoder",
    "EventStreamParser",
    "Frame",
    "FrameDecoder",
    "GrammarChecker",
    "Hint",
    "Hints",
    "JSONArrayParser",
    "Limits",
    "MediaGenerated",
    "ModelCard",
    "ModelPlace",
    "Models",
    "NDJSONParser",
    "OneChoiceEncoder",
    "PayloadChecker",
    "Profile",
    "Provider",
    "ProviderFailed",
    "ReasoningDelta",
    "ReasoningOpaque",
    "ReasoningSignature",
    "RefusalDelta",
    "ResponseFinished",
    "ResponseStarted",
    "SSEParser",
    "StopReason",
    "StopReasonSeen",
    "StreamEnded",
    "StreamReport",
    "Surface",
    "TerminatorSeen",
    "TextDelta",
    "TokenCount",
    "ToolCallArguments",
    "ToolCallDelta",
    "ToolCallEnded",
    "ToolCallFinished",
    "ToolCallStarted",
    "UsageReported",
    "WholeCallEncoder",
    "WireEvent",
    "count_of",
    "details_of",
    "has_value",
    "is_filled",
    "is_index",
    "is_text",
    "item_texts",
    "lenient_text",
    "like",
    "provider_failed",
    "seal",
    "serialize_comment",
    "serialize_eventstream",
    "serialize_ndjson",
    "serialize_sse",
    "shown",
    "stop_word",
    "text_of",
    "unseal",
    "value_text",
    "wrapped_arguments",
]
