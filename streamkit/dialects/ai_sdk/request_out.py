"""The neutral conversation to the AI SDK's request, a list of ``UIMessage``.

What a request of another dialect can't say here is left out before it is written (``translation/lowering``): ``capabilities``
says what a route of the AI SDK takes. A result is in the part of its call, so the turns from a question to the next are one
message of the assistant's, each a step of it. The model, and the tools by name, are members of the body next to the messages,
as assistant-ui writes them, and a route may ignore them. The route chooses its options by itself, and which tools it may call
is said by offering no others.

Source: ui-protocols.md §1.4, §1.8; ai 7.0.173, ``validateUIMessages``.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import orjson
from attrs import evolve

from streamkit.conversation.messages import (
    Extras,
    Media,
    Options,
    Part,
    Reasoning,
    RedactedReasoning,
    Request,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    Turn,
)
from streamkit.dialects.ai_sdk import wire
from streamkit.dialects.ai_sdk.provider_metadata import write_metadata
from streamkit.dialects.bodies.json_members import add_missing, without_none
from streamkit.dialects.bodies.media_types import media_type_of
from streamkit.dialects.bodies.request_reader import CONTENT
from streamkit.dialects.lowering import ANYBODY, Capabilities, Lowering, Place, told_by
from streamkit.dialects.profiles import Target
from streamkit.dialects.vocabulary.sealed_reasoning import Kind
from streamkit.events import Aside, Opaque
from streamkit.report import StreamReport
from streamkit.text.identifiers import random_id
from streamkit.tool_calls.check import check_arguments

Message: TypeAlias = dict[str, Any]
#: What a client's own words for a call that nobody ran stand in.
_REFUSED: Final = frozenset({wire.DENIED, wire.RESPONDED})
#: The ``errorText`` of a tool that failed without a word.
FAILED: Final = "Error"


# -- what a route takes ------------------------------------------------------------------------------------------------


def fit_media(media: Media, place: Place, to: Lowering) -> Media | None:
    """Media that the route can reach."""
    elsewhere = media.data is None and media.url is None and media.file_id is not None  # at another provider
    if elsewhere and place != "result":
        to.lose("media", f"{media.kind}, by an id")
        return None
    return own_media(media, place, to)


def own_media(media: Media, place: Place, to: Lowering) -> Media | None:
    """Media that are parts of a message: a result is text alone."""
    nowhere = media.data is None and media.url is None and media.file_id is None
    if nowhere or place == "result":
        to.lose("media", media.kind)
        return None
    if media.detail not in {None, "auto"}:
        to.lose("metadata", "detail")
    return media


def own_aside(aside: Aside, place: Place) -> bool:
    """Whether an aside was read from a message. Others were chunks of a stream."""
    return place != "result" and aside.type.startswith(CONTENT)


FOREIGN: Final = Capabilities(
    dialect=wire.VENDOR,
    vendor=wire.VENDOR,
    title="the AI SDK",
    native_roles=False,
    signs_reasoning=ANYBODY,
    signs_texts=ANYBODY,
    signs_calls=ANYBODY,
    unsigned_reasoning=True,
    arguments="any",
    custom_calls=True,
    asides=own_aside,
    media=fit_media,
    empty_turns=True,
    results="apart",
    some_tools=True,
    offered_to="a route of the AI SDK",
    strict_tools=False,
)
OWN: Final = evolve(FOREIGN, media=own_media, most_marks=0, options=frozenset(wire.OPTIONS))
capabilities: Final = told_by(OWN, FOREIGN)


# -- writing -----------------------------------------------------------------------------------------------------------


def write(request: Request, _target: Target, report: StreamReport) -> dict[str, Any]:
    """The body of a request that has nothing but what the dialect can say, as JSON values."""
    exchange, messages = request.exchange, Messages(report)
    for turn in request.turns:
        messages.add(turn)
    tools = {tool.name: _tool(tool) for tool in request.tools}
    body = {
        "id": exchange.get("id") or random_id("chat_"),
        "messages": messages.written,
        "trigger": exchange.get("trigger") or "submit-message",
        **{name: value for name, value in exchange.items() if name not in {"id", "trigger", wire.ANSWER_ID}},
        **without_none(model=request.model or None, tools=tools or None, callSettings=_settings(request.options)),
    }
    return add_missing(body, request.extras)


def _settings(options: Options) -> dict[str, Any] | None:
    return without_none(**{theirs: getattr(options, ours) for ours, theirs in wire.OPTIONS.items()}) or None


def _tool(tool: Tool) -> dict[str, Any]:
    return add_missing(without_none(description=tool.description, parameters=tool.parameters), tool.extras)


class Messages:
    """Writes the messages of one request, and numbers those that came without an id."""

    def __init__(self, report: StreamReport) -> None:
        self.written: list[Message] = []
        self._report = report
        self._calls: dict[str, dict[str, Any]] = {}  # the parts, by the ids of their calls
        self._message: Message | None = None  # the assistant's, which a further step may join
        self._ids: tuple[str, ...] = ()  # that its turns came with

    def add(self, turn: Turn) -> None:
        """Write a turn: nothing for what the application says, which has a member of its own."""
        if turn.role == "assistant":
            self._add_step(turn)
        elif turn.parts and isinstance(turn.parts[0], ToolResult):
            for part in turn.parts:
                self._end_call(part)
        elif turn.native_role == wire.STEERING and self._message is not None:
            parts = [_part(part) for part in turn.parts]
            self._message["parts"].append({"type": wire.STEERING, "id": turn.native_ids[-1], "parts": parts})
        elif turn.native_role != wire.SYSTEM:
            self._begin(turn)["parts"] += [_part(part) for part in turn.parts]
            self._message = None

    def _begin(self, turn: Turn) -> Message:
        name = turn.native_ids[0] if turn.native_ids else f"message_{len(self.written) + 1}"
        message = add_missing({"id": name, "role": turn.role, "parts": []}, turn.extras)
        self.written.append(message)
        return message

    def _add_step(self, turn: Turn) -> None:
        """A step of the assistant's message: of the one at hand, unless it came as another."""
        if self._message is None or turn.native_ids != self._ids:
            self._message, self._ids = self._begin(turn), turn.native_ids
        parts = []
        for part in turn.parts:
            written = _part(part)
            if isinstance(part, ToolCall):
                self._calls[part.id] = written
            parts.append(written)
        if parts:
            self._message["parts"] += [{"type": wire.STEP_START}, *parts]

    def _end_call(self, result: Part) -> None:
        """Write a result into the part of its call."""
        if not isinstance(result, ToolResult):
            raise TypeError(f"no result is a {type(result).__name__}")
        part = self._calls.get(result.call_id)
        if part is None:  # of a call that this dialect does not write
            self._report.lose("metadata", what="result")
        else:
            part.update(_outcome(result))
            add_missing(part, result.extras)


def _part(part: Part) -> dict[str, Any]:
    """One part of a message."""
    match part:
        case Text():
            written = {"type": "text", "text": part.text, **_metadata("text", part.signature)}
        case Reasoning():
            written = {"type": "reasoning", "text": part.text, **_metadata("reasoning", part.signature)}
        case RedactedReasoning():
            written = {"type": "reasoning", "text": "", **_metadata("opaque", part.opaque)}
        case Media():
            written = _file(part)
        case ToolCall():
            written = _call(part)
        case Aside():
            return dict(part.raw)
        case _:
            raise TypeError(f"a message has no {type(part).__name__}")
    return add_missing(written, part.extras)


def _metadata(kind: Kind, opaque: Opaque | None, name: str = "providerMetadata") -> dict[str, Any]:
    """The member of that name for what only a vendor can read; none where there is nothing."""
    metadata = write_metadata(kind, opaque)
    return {name: metadata} if metadata else {}


def _file(media: Media) -> dict[str, Any]:
    """A file at a URL, which may hold it. One by its id at a provider has a member of its own for that."""
    url = media.url or ""
    if media.data is not None:
        url = f"data:{media_type_of(media)};base64,{media.data}"
    kind = media.media_type or (media.kind if media.kind != "file" and media.data is None else media_type_of(media))
    return {"type": wire.FILE, "mediaType": kind, **without_none(filename=media.name), "url": url}


def _call(call: ToolCall) -> dict[str, Any]:
    """The part of a call, which waits for its result."""
    extras = call.extras or {}
    named: dict[str, Any] = {"type": f"{wire.TOOL}{call.name}"}
    if extras.get("type") == wire.DYNAMIC_TOOL:
        named = {"type": wire.DYNAMIC_TOOL, "toolName": call.name}
    part = {**named, "toolCallId": call.id, "state": _waiting(extras), "input": _input(call)}
    return part | _metadata("call", call.signature, "callProviderMetadata")


def _waiting(extras: Extras) -> str:
    """The state of a call without a result."""
    if extras.get("preliminary") is True:
        return "output-available"
    approval = extras.get("approval")
    if not isinstance(approval, dict):
        return "input-available"
    return wire.RESPONDED if isinstance(approval.get("approved"), bool) else "approval-requested"


def _input(call: ToolCall) -> Any:
    """The arguments: as the JSON that they are, else as text."""
    is_json = call.kind != "custom" and check_arguments(call.arguments).kind in {"complete", "not_an_object"}
    return orjson.Fragment(call.arguments.strip().encode()) if is_json else call.arguments


def _outcome(result: ToolResult) -> dict[str, Any]:
    """What a result changes in the part of its call."""
    if not result.is_error:
        is_json = result.native == "output"
        return {
            "state": "output-available",
            "output": orjson.Fragment(result.text.encode()) if is_json else result.text,
        }
    if result.native in _REFUSED:
        return {"state": result.native}
    return {"state": "output-error", "errorText": result.text or FAILED}
