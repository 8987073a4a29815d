"""Streaming middleware for LLM responses, built from composable async generators.

``transcode`` does the whole conversion in one call; ``pipe`` chains single stages. See README.md.

A public name is imported when it is first used, so that a program loads only what it names.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final
from warnings import warn

if TYPE_CHECKING:
    from streamkit.conversation.messages import (
        Choice,
        OutputFormat,
        Request,
        Response,
        Text,
        Tool,
        ToolCall,
        ToolResult,
        Turn,
    )
    from streamkit.conversation.response_events import response_events
    from streamkit.conversation.restore import restore_calls, restore_response_calls
    from streamkit.detection import detect
    from streamkit.dialects import decode, encode, keep_alive
    from streamkit.dialects.profiles import Profile
    from streamkit.dialects.vocabulary.model_names import model_info
    from streamkit.dialects.vocabulary.models import ModelInfo
    from streamkit.errors import BadRequest, SourceFailed, StreamError, StreamkitError, UsageError
    from streamkit.events import Verdict
    from streamkit.framing.eventstream import parse_eventstream
    from streamkit.framing.json_array import parse_json_array
    from streamkit.framing.ndjson import parse_ndjson
    from streamkit.framing.sse import parse_sse
    from streamkit.in_text.calls import find_text_calls
    from streamkit.in_text.thinking import split_thinking
    from streamkit.limits import Limits
    from streamkit.observer import Observer, Seen
    from streamkit.pipeline import Pipe, Stage, pipe, source_of
    from streamkit.policy import LENIENT, STRICT, TOLERANT, Policy
    from streamkit.read_options import ReadOptions
    from streamkit.recipes import collect, transcode
    from streamkit.report import Status, StreamReport
    from streamkit.rewrite.given import EventStage
    from streamkit.rewrite.guard import guard
    from streamkit.rewrite.redaction import redact
    from streamkit.rewrite.stage import map_text
    from streamkit.sync import SyncPipe, collect_sync, transcode_sync
    from streamkit.tool_calls.accumulate import accumulate_tool_calls
    from streamkit.tool_calls.check import check_json, parse_arguments
    from streamkit.tool_calls.early import check_schema_early
    from streamkit.tool_calls.output import check_output
    from streamkit.tool_calls.partial_arguments import PartialArguments, PartialJSON, partial_arguments, partial_output
    from streamkit.tool_calls.schema import ToolSchemas
    from streamkit.translation.bodies import (
        decode_request,
        decode_response,
        drop_unreadable,
        encode_request,
        encode_response,
    )
    from streamkit.translation.tool_loop import error_result, request_with_results

__all__ = [
    "LENIENT",
    "STRICT",
    "TOLERANT",
    "BadRequest",
    "Choice",
    "EventStage",
    "Limits",
    "ModelInfo",
    "Observer",
    "OutputFormat",
    "PartialArguments",
    "PartialJSON",
    "Pipe",
    "Policy",
    "Profile",
    "ReadOptions",
    "Request",
    "Response",
    "Seen",
    "SourceFailed",
    "Stage",
    "Status",
    "StreamError",
    "StreamReport",
    "StreamkitError",
    "SyncPipe",
    "Text",
    "Tool",
    "ToolCall",
    "ToolResult",
    "ToolSchemas",
    "Turn",
    "UsageError",
    "Verdict",
    "accumulate_tool_calls",
    "check_json",
    "check_output",
    "check_schema_early",
    "collect",
    "collect_sync",
    "decode",
    "decode_request",
    "decode_response",
    "detect",
    "drop_unreadable",
    "encode",
    "encode_request",
    "encode_response",
    "error_result",
    "find_text_calls",
    "guard",
    "keep_alive",
    "map_text",
    "model_info",
    "parse_arguments",
    "parse_eventstream",
    "parse_json_array",
    "parse_ndjson",
    "parse_sse",
    "partial_arguments",
    "partial_output",
    "pipe",
    "redact",
    "request_with_results",
    "response_events",
    "restore_calls",
    "restore_response_calls",
    "source_of",
    "split_thinking",
    "transcode",
    "transcode_sync",
]

__version__ = "0.1.0"

#: The public names by the module that has them.
_NAMES: Final = {
    "conversation.messages": "Choice OutputFormat Request Response Text Tool ToolCall ToolResult Turn",
    "conversation.response_events": "response_events",
    "conversation.restore": "restore_calls restore_response_calls",
    "detection": "detect",
    "dialects": "decode encode keep_alive",
    "dialects.profiles": "Profile",
    "dialects.vocabulary.model_names": "model_info",
    "dialects.vocabulary.models": "ModelInfo",
    "errors": "BadRequest SourceFailed StreamError StreamkitError UsageError",
    "events": "Verdict",
    "framing.eventstream": "parse_eventstream",
    "framing.json_array": "parse_json_array",
    "framing.ndjson": "parse_ndjson",
    "framing.sse": "parse_sse",
    "in_text.calls": "find_text_calls",
    "in_text.thinking": "split_thinking",
    "limits": "Limits",
    "observer": "Observer Seen",
    "pipeline": "Pipe Stage pipe source_of",
    "policy": "LENIENT STRICT TOLERANT Policy",
    "read_options": "ReadOptions",
    "recipes": "collect transcode",
    "report": "Status StreamReport",
    "rewrite.given": "EventStage",
    "rewrite.guard": "guard",
    "rewrite.redaction": "redact",
    "rewrite.stage": "map_text",
    "sync": "SyncPipe collect_sync transcode_sync",
    "tool_calls.accumulate": "accumulate_tool_calls",
    "tool_calls.check": "check_json parse_arguments",
    "tool_calls.early": "check_schema_early",
    "tool_calls.output": "check_output",
    "tool_calls.partial_arguments": "PartialArguments PartialJSON partial_arguments partial_output",
    "tool_calls.schema": "ToolSchemas",
    "translation.bodies": "decode_request decode_response drop_unreadable encode_request encode_response",
    "translation.tool_loop": "error_result request_with_results",
}
#: Old names, each with its new name, by the module that users import them from. They work for one release, with a warning.
_RENAMED: Final = {
    "streamkit": {
        "replay": "response_events",
        "restore_response": "restore_response_calls",
        "restore_tools": "restore_calls",
    },
    "streamkit.lab.mock": {"Status": "ErrorStatus", "Turn": "MockTurn"},
}
_MODULES: Final = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    """Import a public name from its module (PEP 562). Raises AttributeError for any other name."""
    if name not in _MODULES:
        return renamed(__name__, name)
    value = globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    return value


def renamed(module: str, name: str) -> object:
    """Return the value of an old name of ``module``, with a DeprecationWarning for the caller of its ``__getattr__``.

    Raises AttributeError for a name that is no old name.
    """
    new = _RENAMED[module].get(name)
    if new is None:
        raise AttributeError(f"module '{module}' has no attribute '{name}'")
    warn(f"{module}.{name} is now {new}; the next release drops the old name", DeprecationWarning, stacklevel=3)
    return getattr(import_module(module), new)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
