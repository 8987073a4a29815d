"""AG-UI's request, ``RunAgentInput``, to the neutral conversation.

No member names a model, so it is the one of ``forwardedProps``, or of the route. The answer is always a stream. What the
application says in ``context`` is read as a system message in front of the others; its state and its answers to interrupts are
for agents, and no model's.

A reasoning message is a part of the assistant's turn behind it. A message of an activity is what a user interface shows, and
no part of the conversation: it is dropped and counted.

Source: ui-protocols.md §2.6; @ag-ui/core 1.0.0, ``RunAgentInputSchema``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from streamkit.conversation.messages import (
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
from streamkit.dialects.ag_ui.wire import CONTEXT, EXCHANGE, NOT_RUN_ID, VENDOR
from streamkit.dialects.bodies.request_reader import TurnReader, content_of, function_call, function_tool, unknown_part
from streamkit.dialects.members.fields import Fields, base64_of, is_data_uri, media_of
from streamkit.dialects.vocabulary.sealed_reasoning import unseal, unsealed
from streamkit.events import Aside
from streamkit.report import StreamReport
from streamkit.text.quoting import quoted

#: The kinds of media, by the types of parts.
MEDIA: Final[Mapping[str, Literal["image", "audio", "video", "file"]]] = {
    "image": "image",
    "audio": "audio",
    "video": "video",
    "document": "file",
}


class AgUiRequestReader(TurnReader):
    """Reads one request."""

    dialect = VENDOR
    exchange = EXCHANGE

    def __init__(self, report: StreamReport) -> None:
        super().__init__(report)
        self._thoughts: list[Part] = []  # for the assistant's turn that comes next
        self._ids: list[str] = []  # of the messages that they came in

    def begun(self, fields: Fields) -> Request:
        props = fields.fields("forwardedProps") if isinstance(fields.peek("forwardedProps"), dict) else None
        return Request(self.dialect, props.string("model") if props is not None else None, stream=True)

    def options(self, _fields: Fields) -> Options:
        return Options()

    def tool(self, tool: Fields) -> Tool:
        return function_tool(tool, tool)

    # -- messages --------------------------------------------------------------------------------------------------

    def read_turns(self, fields: Fields) -> None:
        if context := [f"{entry.needed('description')}: {entry.needed('value')}" for entry in fields.each(CONTEXT)]:
            self.turns.append(Turn("system", [Text(text) for text in context], native_role=CONTEXT))
        for message in fields.needed_each("messages"):
            self._read(message, message.needed("role"))
        self._end_thoughts()

    def _read(self, message: Fields, role: str) -> None:
        message_id = message.string("id") or ""
        if role == "reasoning":
            self._results = None
            self._ids.append(message_id)
            self._thoughts.append(self._thought(message))
            return
        if role == "activity":
            self.report.lose("metadata", what=role)
            return
        if role != "assistant":
            self._end_thoughts()
        if role == "tool":
            result = self.result(message)
            # one that was made for a call that was not run
            result.is_error = result.is_error or message_id.startswith(NOT_RUN_ID)
            result.native_id, result.extras = message_id, message.rest() or None
            self.join(result)
            return
        self._results = None
        turn = self.turn(message, role)
        turn.parts[:0] = self._thoughts
        turn.native_ids = (*self._ids, message_id)
        turn.name, turn.extras = message.string("name"), message.rest() or None
        self.turns.append(turn)
        self._thoughts, self._ids = [], []

    def _end_thoughts(self) -> None:
        """Reasoning that no message of the assistant's follows is a turn of its own."""
        if self._thoughts:
            self.turns.append(Turn("assistant", self._thoughts, native_ids=tuple(self._ids)))
            self._thoughts, self._ids = [], []

    def _thought(self, message: Fields) -> Part:
        """A reasoning message: thinking, or what only a vendor can read."""
        text, value = message.string("content") or "", message.string("encryptedValue")
        extras = message.rest() or None
        if not value:
            return Reasoning(text, extras=extras)
        sealed, opaque = unseal(value), unsealed(value, VENDOR)
        if sealed is not None and not text and sealed.kind == "opaque":
            return RedactedReasoning(opaque, extras=extras)
        if sealed is not None and not text and sealed.kind in {"text", "part"}:
            return Text("", opaque, extras=extras)
        return Reasoning(text, signature=opaque, extras=extras)

    def turn(self, message: Fields, role: str) -> Turn:
        if role != "developer":
            return super().turn(message, role)
        return Turn("system", [*self.content(message)], native_role=role)

    def content(self, message: Fields) -> Sequence[Part]:
        return content_of(message, self._part)

    def _part(self, part: Fields) -> Text | Media | Aside:
        kind = part.needed("type")
        if kind == "text":
            return Text(part.needed("text"), extras=part.rest() or None)
        if kind == "binary" and "mimeType" in part:
            return self._binary(part)
        if kind not in MEDIA:
            return unknown_part(VENDOR, kind, part)
        source = part.needed_fields("source")
        media = Media(MEDIA[kind], source.string("mimeType"), place=part.place)
        value, at = source.needed("value"), source.at("value")
        match source.needed("type"):
            case "data":
                media.data = base64_of(value, at)
            case "url" if is_data_uri(value):
                media.media_type, media.data = media_of(value, at)
            case "url":
                media.url = value
            case "file":
                media.file_id = value
            case other:
                raise source.wrong(f"there is no source of type {quoted(other)}", "type")
        media.extras = part.rest() or None
        return media

    def _binary(self, part: Fields) -> Media:
        """Media of version 0, whose type says what they are."""
        media_type = part.needed("mimeType")
        kind = MEDIA.get(media_type.partition("/")[0], "file")
        media = Media(kind, media_type, part.string("data"), part.string("url"), part.string("id"), place=part.place)
        media.name, media.extras = part.string("filename"), part.rest() or None
        if media.data is not None:
            base64_of(media.data, part.at("data"))
        elif media.url is None and media.file_id is None:
            raise part.wrong("data, a url or an id is needed, and there is none")
        return media

    # -- calls and results -----------------------------------------------------------------------------------------

    def assistant(self, message: Fields) -> Turn:
        parts: list[Part] = []
        content, value = message.string("content"), message.string("encryptedValue")
        if content or value:
            parts.append(Text(content or "", unsealed(value, VENDOR) if value else None))
        parts += [self._call(call, number) for number, call in enumerate(message.each("toolCalls"))]
        return Turn("assistant", parts)

    def _call(self, call: Fields, number: int) -> ToolCall:
        read = function_call(call, number)
        if value := call.string("encryptedValue"):
            read.signature = unsealed(value, VENDOR)
        read.extras = call.rest() or None
        return read

    def result(self, message: Fields) -> ToolResult:
        """A result: what the tool said, or why it failed."""
        result = ToolResult(message.string("toolCallId") or "", place=message.place)
        result.parts = content_of(message, self._part)
        error = message.string("error")
        if error and error not in result.text:
            result.parts.append(Text(error))
        result.is_error = error is not None
        return result
