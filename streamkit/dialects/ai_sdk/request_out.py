"""The neutral conversation to the AI SDK's request, a list of ``UIMessage``.

A result stands in the part of its call, so the turns from a question to the next are one message of the assistant's, each a
step of it. The model, and the tools by name, are members beside the messages, as assistant-ui writes them: the server that is
asked may pass them over. It chooses its options by itself, and which tools may be called is said by offering no others.

Source: ui-protocols.md §1.4, §1.8; ai 7.0.173, ``validateUIMessages``.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from streamkit.conversation.messages import (
    Media,
    Part,
    Reasoning,
    RedactedReasoning,
    Refusal,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    Turn,
)
from streamkit.dialects.ai_sdk.provider_metadata import write_metadata
from streamkit.dialects.ai_sdk.wire import (
    ANSWER_ID,
    DENIED,
    DYNAMIC_TOOL,
    FILE,
    OPTIONS,
    RESPONDED,
    STEERING,
    STEP_START,
    SYSTEM,
    TOOL,
    VENDOR,
)
from streamkit.dialects.bodies.blocks_as_text import CONTENT
from streamkit.dialects.bodies.json_members import add_missing, without_none
from streamkit.dialects.bodies.media_types import media_type_of
from streamkit.dialects.bodies.request_writer import ERROR, RequestWriter
from streamkit.dialects.vocabulary.sealed_reasoning import Kind
from streamkit.events import Aside, Opaque
from streamkit.text.identifiers import random_id
from streamkit.tool_calls.check import check_arguments

Message = dict[str, Any]
#: What a client's own words for a call that nobody ran stand in.
_REFUSED: Final = frozenset({DENIED, RESPONDED})


class AISDKRequestWriter(RequestWriter):
    """Writes one request."""

    dialect = vendor = VENDOR
    text_files = True

    _message: Message | None = None  # the assistant's, which a further step may join
    _native: tuple[str, ...] = ()  # the id that its turns came with
    _number = 0  # of the messages that were given an id

    def request_body(self) -> dict[str, Any]:
        """The body. Raises BadRequest for more than one choice."""
        request = self.request
        self.one_choice("the AI SDK")
        self._messages: list[Message] = []
        self._calls: dict[str, dict[str, Any]] = {}  # the parts, by the ids of their calls
        for turn in request.turns:
            self._turn(turn)
        exchange = request.exchange if self.own else {}
        tools = {
            tool.name: self._tool(tool) for tool in self.callable_tools("a route of the AI SDK") if self._is_said(tool)
        }
        settings = self.options(OPTIONS if self.own else {})
        body = {
            "id": exchange.get("id") or random_id("chat_"),
            "messages": self._messages,
            "trigger": exchange.get("trigger") or "submit-message",
            **{name: value for name, value in exchange.items() if name not in {"id", "trigger", ANSWER_ID}},
            **without_none(model=request.model or None, tools=tools or None, callSettings=settings or None),
        }
        return add_missing(body, self.request_extras())

    def _is_said(self, tool: Tool) -> bool:
        """Whether a tool is the program's own; one that a provider runs is a loss."""
        return tool.kind != "server" or self.hosted(tool) is not None

    def _tool(self, tool: Tool) -> dict[str, Any]:
        tool, extras = self.plain_tool(tool, strict=False)
        return add_missing(without_none(description=tool.description, parameters=tool.parameters), extras)

    # -- messages --------------------------------------------------------------------------------------------------

    def _turn(self, turn: Turn) -> None:
        if turn.native_role == SYSTEM and self.own:
            return  # it is in a member of its own
        if turn.name is not None:
            self.lose("turn_name", turn.name)
        if turn.role == "assistant":
            self._spoken(turn)
            return
        results = [part for part in turn.parts if isinstance(part, ToolResult)]
        if any(not isinstance(part, ToolResult) for part in turn.parts[: len(results)]):
            self.report.repair("result_moved")
        for result in results:
            self._result(result)
        rest = [part for part in turn.parts if not isinstance(part, ToolResult)]
        if rest or not results:
            written = [said for part in rest if (said := self._part(part)) is not None]
            if turn.native_role == STEERING and self.own and self._message is not None:
                self._message["parts"].append({"type": STEERING, "id": turn.native_ids[-1], "parts": written})
            else:
                self._begin(turn, turn.role)["parts"] += written
                self._message = None

    def _begin(self, turn: Turn, role: str) -> Message:
        self._number += 1
        name = turn.native_ids[0] if self.own and turn.native_ids else f"message_{self._number}"
        message = add_missing({"id": name, "role": role, "parts": []}, self.extras(turn.extras))
        self._messages.append(message)
        return message

    def _spoken(self, turn: Turn) -> None:
        """A step of the assistant's message: of the one at hand, unless it came as another."""
        message = self._message
        if message is None or (self.own and turn.native_ids != self._native):
            message = self._message = self._begin(turn, "assistant")
            self._native = turn.native_ids
        else:
            self.extras(turn.extras)
        parts = [said for part in turn.parts if (said := self._part(part)) is not None]
        if parts:
            message["parts"] += [{"type": STEP_START}, *parts]

    def _part(self, part: Part) -> dict[str, Any] | None:
        """One part of a message; None for what can't be."""
        match part:
            case Text() | Refusal():
                if isinstance(part, Refusal):
                    self.lose("refusal_as_text")
                self.lose_cache(getattr(part, "cache", None))
                signature = part.signature if isinstance(part, Text) else None
                return self._marked({"type": "text", "text": part.text}, part, "text", signature)
            case Reasoning():
                return self._marked({"type": "reasoning", "text": part.text}, part, "reasoning", part.signature)
            case RedactedReasoning():
                return self._marked({"type": "reasoning", "text": ""}, part, "opaque", part.opaque)
            case Media():
                return self._media(part)
            case ToolCall():
                return self._call(part)
            case Aside():
                return dict(part.raw) if self.aside(part) and part.type.startswith(CONTENT) else None
            case _:
                raise TypeError(f"a message has no {type(part).__name__}")

    def _marked(
        self, written: dict[str, Any], part: Any, kind: Kind, opaque: Opaque | None, name: str = "providerMetadata"
    ) -> dict[str, Any]:
        """A part with what only a vendor can read, and with what only this dialect knows."""
        metadata = write_metadata(kind, opaque)
        return add_missing({**written, **({name: metadata} if metadata else {})}, self.extras(part.extras))

    def _media(self, media: Media) -> dict[str, Any] | None:
        if media.data is not None:
            url = f"data:{media_type_of(media)};base64,{media.data}"
        elif media.url is not None:
            url = media.url
        elif media.file_id is not None and self.own:
            url = ""
        else:  # of another provider's store
            self.lose("media", f"{media.kind}, by an id" if media.file_id is not None else media.kind)
            return None
        self.lose_cache(media.cache)
        self.lose_of_media(media, name=False)
        kind = media.media_type or (media.kind if media.kind != "file" and media.data is None else media_type_of(media))
        written = {"type": FILE, "mediaType": kind, **without_none(filename=media.name), "url": url}
        return add_missing(written, self.extras(media.extras))

    # -- calls and results -----------------------------------------------------------------------------------------

    def _call(self, call: ToolCall) -> dict[str, Any]:
        """The part of a call, which waits for its result."""
        self.lose_cache(call.cache)
        extras = self.extras(call.extras)
        kind = DYNAMIC_TOOL if extras.get("type") == DYNAMIC_TOOL else f"{TOOL}{call.name}"
        named = {"toolName": call.name} if kind == DYNAMIC_TOOL else {}
        part = {"type": kind, **named, "toolCallId": call.id, "state": _waiting(extras), "input": self._input(call)}
        metadata = write_metadata("call", call.signature)
        written = add_missing({**part, **({"callProviderMetadata": metadata} if metadata else {})}, extras)
        self._calls[call.id] = written
        return written

    def _input(self, call: ToolCall) -> Any:
        """The arguments: as an object where they are one, else as text."""
        kind = "custom" if call.kind == "custom" else check_arguments(call.arguments).kind
        if kind in {"complete", "empty"}:
            return self.object_arguments(call)
        return orjson.Fragment(call.arguments.strip().encode()) if kind == "not_an_object" else call.arguments

    def _result(self, result: ToolResult) -> None:
        """What the part of its call says of the end."""
        part = self._calls.get(result.call_id)
        self.lose_cache(result.cache)
        extras = self.extras(result.extras)
        if part is None:  # of a call that this dialect does not write
            self.lose("metadata", "result")
            return
        for media in result.parts:
            if isinstance(media, Media):
                self.lose("media", media.kind)
            elif isinstance(media, Aside):
                self.aside(media)
        if not result.is_error:
            part["state"] = "output-available"
            is_json = result.native == "output" and self.own
            part["output"] = orjson.Fragment(result.text.encode()) if is_json else result.text
        elif result.native in _REFUSED and self.own:
            part["state"] = result.native
        else:
            part["state"], part["errorText"] = "output-error", result.text or ERROR.rstrip(": ")
        add_missing(part, extras)


def _waiting(extras: Any) -> str:
    """The state of a call without a result."""
    if extras.get("preliminary") is True:
        return "output-available"
    approval = extras.get("approval")
    if not isinstance(approval, dict):
        return "input-available"
    return RESPONDED if isinstance(approval.get("approved"), bool) else "approval-requested"
