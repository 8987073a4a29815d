"""The neutral conversation to AG-UI's request, ``RunAgentInput``.

The ids of the exchange and of its messages are the client's own, or made. Reasoning is a message of its own in front of the
assistant's, and opaque reasoning one without text; each call and each message has room for what only a vendor can read. The
agent chooses its options by itself: no member says any, and which tools may be called is said by offering no others. A model
is named in ``forwardedProps``, which an agent may pass over.

Source: ui-protocols.md §2.6; @ag-ui/core 1.0.0, ``RunAgentInputSchema``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

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
from streamkit.dialects.ag_ui.wire import CONTEXT, VENDOR
from streamkit.dialects.bodies.blocks_as_text import CONTENT
from streamkit.dialects.bodies.json_members import add_missing, plain_or_list, without_none
from streamkit.dialects.bodies.media_types import media_type_of
from streamkit.dialects.bodies.message_writer import BLANK_LINE, Message, MessageWriter
from streamkit.dialects.bodies.request_writer import ERROR
from streamkit.dialects.profiles import Target
from streamkit.dialects.streams.event_encoder import wrapped_input
from streamkit.dialects.vocabulary.sealed_reasoning import Kind, seal
from streamkit.events import Aside, Opaque
from streamkit.report import StreamReport
from streamkit.text.identifiers import random_id

#: The types of parts, by the kinds of media.
TYPES: Final = {"image": "image", "audio": "audio", "video": "video", "file": "document"}


class AgUiRequestWriter(MessageWriter):
    """Writes one request."""

    dialect = vendor = VENDOR
    text_files = False

    def __init__(self, request: Any, target: Target, report: StreamReport) -> None:
        super().__init__(request, target, report)
        self._number = 0  # of the messages that were given an id

    def request_body(self) -> dict[str, Any]:
        """The body. Raises BadRequest for more than one choice."""
        request = self.request
        self.one_choice("AG-UI")
        self.options({})
        tools = [self._tool(tool) for tool in self.callable_tools("an AG-UI agent")]
        exchange = request.exchange if self.own else {}
        body = {
            "threadId": exchange.get("threadId") or random_id("thread_"),
            "runId": exchange.get("runId") or random_id("run_"),
            **{name: value for name, value in exchange.items() if name not in {"threadId", "runId"}},
            "state": {},
            "messages": list(self.messages()),
            "tools": [tool for tool in tools if tool is not None],
            CONTEXT: exchange.get(CONTEXT) or [],
            "forwardedProps": without_none(model=request.model or None),
        }
        extras = dict(self.request_extras())
        if "state" in extras:
            body["state"] = extras.pop("state")
        return add_missing(body, extras)

    def _tool(self, tool: Tool) -> dict[str, Any] | None:
        if tool.kind == "server":
            return self.hosted(tool)
        tool, extras = self.plain_tool(tool, strict=False)
        definition = without_none(name=tool.name, description=tool.description or "", parameters=tool.parameters)
        return add_missing(definition, extras)

    # -- messages --------------------------------------------------------------------------------------------------

    def _id(self, given: str | None) -> str:
        """The client's own id of a message, or one by its number."""
        if self.own and given:
            return given
        self._number += 1
        return f"message_{self._number}"

    def turn_as_messages(self, turn: Turn) -> Iterator[Message]:
        if turn.native_role == CONTEXT and self.own:
            return  # it is in a member of its own
        if turn.role == "assistant":
            yield from self._spoken(turn)
        else:
            yield from super().turn_as_messages(turn)

    def message_of(self, turn: Turn, parts: Sequence[Part]) -> Message:
        role = turn.native_role if self.own and turn.native_role else turn.role
        written = [content for part in parts if (content := self._part(part, turn.role)) is not None]
        said: Any = plain_or_list(written)
        if turn.role == "system" and not isinstance(said, str):  # which can only be text
            said = self.joined([str(part.get("text", "")) for part in written], BLANK_LINE.join)
        message = {"id": self._id(turn.native_ids[-1] if turn.native_ids else None), "role": role, "content": said}
        return self.named(message, turn)

    def named(self, message: Message, turn: Turn) -> Message:
        return add_missing(message | without_none(name=turn.name), self.extras(turn.extras))

    def _part(self, part: Part, role: str) -> dict[str, Any] | None:
        """One part of the content of a message of ``role``; None for what can't be."""
        match part:
            case Text() | Refusal():
                if isinstance(part, Refusal):
                    self.lose("refusal_as_text")
                self.lose_marks(part)
                return add_missing({"type": "text", "text": part.text}, self.extras(part.extras))
            case Media():
                return self._media(part, role)
            case Aside():
                if not self.aside(part) or not part.type.startswith(CONTENT):
                    return None
                return dict(part.raw)
            case _:
                raise TypeError(f"content has no {type(part).__name__}")

    def _media(self, media: Media, role: str) -> dict[str, Any] | None:
        if role == "system" or (role == "tool" and not self.own) or (media.data or media.url or media.file_id) is None:
            self.lose("media", media.kind)
            return None
        if media.file_id is not None and not self.own:  # of another provider's store
            self.lose("media", f"{media.kind}, by an id")
            return None
        self.lose_cache(media.cache)
        self.lose_of_media(media, name=True)
        if media.data is not None:
            source = {"type": "data", "value": media.data, "mimeType": media_type_of(media)}
        elif media.url is not None:
            source = {"type": "url", "value": media.url, **without_none(mimeType=media.media_type)}
        else:
            source = {"type": "file", "value": media.file_id or "", **without_none(mimeType=media.media_type)}
        return add_missing({"type": TYPES[media.kind], "source": source}, self.extras(media.extras))

    # -- the assistant's messages ----------------------------------------------------------------------------------

    def _spoken(self, turn: Turn) -> Iterator[Message]:
        """Messages of reasoning, and the assistant's own behind them."""
        ids = iter(turn.native_ids)
        rest: list[Part] = []
        for part in turn.parts:
            if isinstance(part, Reasoning | RedactedReasoning) or _is_bare(part):
                if rest:
                    self.lose("block_order")
                yield self._thought(part, self._id(next(ids, None)))
            else:
                rest.append(part)
        if rest or not turn.parts:
            message = self._assistant(turn, rest, self._id(next(ids, None)))
            if message is not None:
                yield message

    def _thought(self, part: Part, message_id: str) -> Message:
        match part:
            case Reasoning():
                text, value = part.text, self._value("reasoning", part.signature)
            case RedactedReasoning():
                text, value = "", self._value("opaque", part.opaque)
            case Text():
                text, value = "", self._value("text", part.signature)
            case _:
                raise TypeError(f"no thought is a {type(part).__name__}")
        message = {"id": message_id, "role": "reasoning", "content": text, **without_none(encryptedValue=value)}
        return add_missing(message, self.extras(part.extras))

    def _value(self, kind: Kind, opaque: Opaque | None) -> str | None:
        if opaque is None or opaque.vendor == VENDOR:
            return None if opaque is None else opaque.blob
        return seal(kind, opaque.vendor, opaque.blob)

    def _assistant(self, turn: Turn, parts: Sequence[Part], message_id: str) -> Message | None:
        texts: list[str] = []
        calls: list[dict[str, Any]] = []
        signature: Opaque | None = None
        for part in parts:
            match part:
                case ToolCall():
                    calls.append(self._call(part))
                case Text() | Refusal():
                    if calls:
                        self.lose("block_order")
                    if isinstance(part, Refusal):
                        self.lose("refusal_as_text")
                    elif part.signature is not None:
                        self.lose_signature(signature)
                        signature = part.signature
                    self.lose_cache(getattr(part, "cache", None))
                    self.extras(part.extras)
                    texts.append(part.text)
                case Media():
                    self.lose("media", part.kind)
                case Aside():
                    self.lose(part.kind, part.type)
                case _:
                    raise TypeError(f"an assistant says no {type(part).__name__}")
        content = self.joined(texts)
        if not (content or calls or signature or self.own):
            self.report.repair("turn_empty")
            return None
        message = {
            "id": message_id,
            "role": "assistant",
            **without_none(content=content or None, toolCalls=calls or None),
        }
        return self.named(message | without_none(encryptedValue=self._value("text", signature)), turn)

    # -- calls and results -----------------------------------------------------------------------------------------

    def _call(self, call: ToolCall) -> dict[str, Any]:
        arguments = call.arguments if call.arguments.strip() or self.own else "{}"
        if call.kind == "custom":
            self.lose("custom_tool_wrapped", call.name)
            arguments = wrapped_input(call.arguments)
        self.lose_cache(call.cache)
        written = {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}
        written |= without_none(encryptedValue=self._value("call", call.signature))
        return add_missing(written, self.extras(call.extras))

    def result(self, result: ToolResult, _moved: list[Media]) -> Message:
        """A ``tool`` message. Its content is text alone for agents of version 0, so media of other dialects are lost in it."""
        written = [content for part in result.parts if (content := self._part(part, "tool")) is not None]
        said: Any = plain_or_list(written)
        if not (self.own or isinstance(said, str)):
            said = self.joined([str(part["text"]) for part in written])
        self.lose_cache(result.cache)
        message = {"id": self._id(result.native_id), "role": "tool", "toolCallId": result.call_id, "content": said}
        if result.is_error:
            message["error"] = result.text or ERROR.rstrip(": ")
        return add_missing(message, self.extras(result.extras))


def _is_bare(part: Part) -> bool:
    """Whether a text has nothing but a signature: no message of the assistant's is made of it."""
    return isinstance(part, Text) and not part.text and part.signature is not None
