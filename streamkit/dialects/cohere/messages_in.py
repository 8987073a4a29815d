"""Cohere's messages to turns.

Each message is one turn, but the answers of ``tool`` messages that stand together are one turn of the user. The tool plan is a
summary of reasoning in front of the content, as the decoder of streams reads it. A document that a tool gave is text: the
words of its data, or their JSON.

Source: dialects.md §6.2, §7.3.
"""

from __future__ import annotations

from typing import Any, cast

from streamkit.conversation.messages import Media, Part, Reasoning, Text, ToolCall, ToolResult, Turn
from streamkit.dialects.cohere.wire import CITATION, CONTENT, VENDOR
from streamkit.dialects.members.fields import Fields, is_data_uri, kind_of, media_of
from streamkit.events import Aside
from streamkit.text.quoting import quoted


class MessageReader:
    """The part of the reader of requests that reads messages."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self._results: Turn | None = None  #: the turn that further results join

    def message(self, message: Fields) -> None:
        role = message.needed("role")
        if role == "tool":
            if self._results is None:
                self._results = Turn("user")
                self.turns.append(self._results)
            self._results.parts.append(self._result(message))
            return
        self._results = None
        match role:
            case "system" | "user":
                turn = Turn(role, self._content(message))
            case "assistant":
                turn = self._assistant(message)
            case _:
                raise message.wrong(f"there is no role {quoted(role)}", "role")
        turn.extras = message.rest() or None
        self.turns.append(turn)

    # -- content ---------------------------------------------------------------------------------------------------

    def _content(self, message: Fields) -> list[Part]:
        content = message.text_or_each("content")
        if isinstance(content, str):
            return [Text(content)] if content else []
        return [self._part(part) for part in content]

    def _part(self, part: Fields) -> Part:
        match part.needed("type"):
            case "text":
                return Text(part.needed("text"), extras=part.rest() or None)
            case "image_url":
                return self._image(part)
            case kind:
                return Aside(VENDOR, "unknown_event", f"{CONTENT}{kind}", {"type": kind, **part.rest()})

    def _image(self, part: Fields) -> Media:
        image = part.needed_fields("image_url")
        url = image.needed("url")
        media = (
            Media("image", *media_of(url, image.at("url")))
            if is_data_uri(url)
            else Media("image", url=url, place=image.place)
        )
        media.detail = image.string("detail")
        media.extras = part.rest() or None
        return media

    # -- what the assistant said -----------------------------------------------------------------------------------

    def _assistant(self, message: Fields) -> Turn:
        parts: list[Part] = []
        if plan := message.string("tool_plan"):
            parts.append(Reasoning(plan, "summary"))
        content = message.text_or_each("content")
        if isinstance(content, str):
            parts += [Text(content)] if content else []
        else:
            parts += [self._said_or_thought(part) for part in content]
        parts += [self._call(call, number) for number, call in enumerate(message.each("tool_calls"))]
        parts += [Aside(VENDOR, "citation", CITATION, raw) for raw in message.listed("citations")]
        return Turn("assistant", parts)

    def _said_or_thought(self, part: Fields) -> Part:
        if part.peek("type") != "thinking":
            return self._part(part)
        part.take("type")
        return Reasoning(part.needed("thinking"), extras=part.rest() or None)

    # -- calls and results -----------------------------------------------------------------------------------------

    def _call(self, call: Fields, number: int) -> ToolCall:
        kind = call.string("type") or "function"
        if kind != "function":
            raise call.wrong(f"there is no call of type {quoted(kind)}", "type")
        function = call.needed_fields("function")
        read = ToolCall(
            number,
            call.string("id") or "",
            function.needed("name"),
            function.string("arguments") or "",
            place=call.place,
        )
        read.extras = call.rest() or None
        return read

    def _result(self, message: Fields) -> ToolResult:
        result = ToolResult(message.string("tool_call_id") or "", place=message.place)
        content = message.text_or_each("content")
        said = (Text(content) if content else None,) if isinstance(content, str) else map(self._given, content)
        result.parts = [part for part in said if part is not None]
        result.extras = message.rest() or None
        return result

    def _given(self, part: Fields) -> Text | Media | Aside:
        """What a tool gave. Of a document, the extras say whether its data were text or an object, which stands empty."""
        if part.peek("type") != "document":
            return cast("Text | Media | Aside", self._part(part))
        part.take("type")
        document = part.needed_fields("document")
        data = document.peek("data")
        empty: Any = "" if isinstance(data, str) else {}
        if isinstance(data, str):
            text = document.needed("data")
        elif isinstance(data, dict):
            text = document.text_of("data")
        else:
            raise document.wrong(f"an object or text is needed, not {kind_of(data)}", "data")
        return Text(text, extras={"document": {"data": empty, **document.rest()}, **part.rest()})
