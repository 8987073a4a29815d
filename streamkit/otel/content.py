"""Prompts and responses as attributes of a span: only on request, limited in length, without texts that look like secrets.

Each attribute is one JSON text in the form of the conventions' schemas, since back ends read messages from such texts and not
from structured attributes (observe.md F23). Of a conversation that is too long, the newest messages are kept. The texts in a
message that is too long by itself are truncated. The bytes of media are left out.

Source: observe.md F22, F23, O15.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final

import orjson
from attrs import frozen

from streamkit.conversation.collector import Collector
from streamkit.conversation.messages import (
    Choice,
    Media,
    Part,
    Reasoning,
    Refusal,
    Request,
    Response,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    Turn,
)
from streamkit.events import Aside, Event, ReasoningDelta, RefusalDelta, TextDelta
from streamkit.otel import conventions as names
from streamkit.otel.api import Span
from streamkit.otel.conventions import CONTENT_CHARS
from streamkit.otel.inference import attribute_text
from streamkit.report import StreamReport
from streamkit.text.quoting import MARGIN_CHARS, redacted, unescaped, without_secrets

#: Texts are never truncated to fewer characters than this, so that the fixed words of the schemas, which are shorter, stay.
LEAST_CHARS: Final = 64
_SPOKEN: Final = TextDelta | ReasoningDelta | RefusalDelta


@frozen
class Content:
    """Converts prompts and responses to attributes of at most ``chars`` characters. Texts pass through ``hide`` first."""

    chars: int = CONTENT_CHARS
    hide: Callable[[str], str] = str  #: removes an application's own keys from every text and member name

    def of_request(self, request: Request) -> dict[str, str | bool]:
        turns, first = request.turns, 0
        while first < len(turns) and turns[first].role == "system":
            first += 1
        instructions = [part for turn in turns[:first] for part in self._parts(turn.parts)]
        messages = (message for turn in reversed(turns[first:]) for message in reversed(list(self._messages(turn))))
        return self._attributes(
            {
                "gen_ai.input.messages": messages,
                "gen_ai.system_instructions": reversed(instructions),
                "gen_ai.tool.definitions": map(self._tool, reversed(request.tools)),
            }
        )

    def of_answer(self, answer: Response, *, is_cut: bool = False) -> dict[str, str | bool]:
        """Return the attributes of a response. ``is_cut``: its text was truncated before."""
        found = self._attributes({"gen_ai.output.messages": map(self._choice, reversed(answer.choices))})
        return {**found, names.CONTENT_TRUNCATED: True} if found and is_cut else found

    def _attributes(self, lists: dict[str, Iterator[dict[str, Any]]]) -> dict[str, str | bool]:
        found: dict[str, str | bool] = {}
        for name, newest_first in lists.items():
            text, is_whole = _bounded(newest_first, self.chars)
            if text != "[]":
                found[name] = text
            if not is_whole:
                found[names.CONTENT_TRUNCATED] = True
        return found

    def _messages(self, turn: Turn) -> Iterator[dict[str, Any]]:
        """Yield a turn as messages: tool results have a separate role."""
        for is_result, parts in groupby(turn.parts, lambda part: isinstance(part, ToolResult)):
            yield {"role": "tool" if is_result else turn.role, "parts": self._parts(parts)}

    def _choice(self, choice: Choice) -> dict[str, Any]:
        reason = {"tool_calls": "tool_call"}.get(choice.stop_reason or "", choice.stop_reason or names.NO_REASON)
        return {"role": "assistant", "parts": self._parts(choice.parts), "finish_reason": reason}

    def _parts(self, parts: Iterable[Part]) -> list[dict[str, Any]]:
        """Return the parts, except those that only their provider understands."""
        return [self._part(part) for part in parts if not isinstance(part, Aside)]

    def _part(self, part: Part) -> dict[str, Any]:
        match part:
            case Text() | Refusal():
                return {"type": "text", "content": self._text(part.text)}
            case Reasoning():
                return {"type": "reasoning", "content": self._text(part.text)}
            case ToolCall():
                return {
                    "type": "tool_call",
                    "id": self._text(part.id),
                    "name": self._text(part.name),
                    "arguments": self._arguments(part.arguments),
                }
            case ToolResult():
                return {"type": "tool_call_response", "id": self._text(part.call_id), "response": self._text(part.text)}
            case Media():
                return self._media(part)
            case _:  # encrypted or opaque content, which only the provider can read
                return {"type": "other"}

    def _media(self, media: Media) -> dict[str, Any]:
        media_type = None if media.media_type is None else self._text(media.media_type)
        kind = {"modality": media.kind, "mime_type": media_type}
        if media.file_id is not None:
            return {"type": "file", **kind, "file_id": self._text(media.file_id)}
        if media.url is not None:
            return {"type": "uri", **kind, "uri": self._text(media.url)}
        return {"type": media.kind, "mime_type": media_type}

    def _tool(self, tool: Tool) -> dict[str, Any]:
        if tool.kind == "server":
            return {"type": "server", "name": self._text(tool.name)}
        return {
            "type": "function",
            "name": self._text(tool.name),
            "description": None if tool.description is None else self._text(tool.description),
            "parameters": without_secrets(tool.parameters, hide=self.hide),
        }

    def _arguments(self, text: str) -> Any:
        """Return the JSON value of arguments, or their text if they are not JSON."""
        if len(text) <= self.chars:
            try:
                return without_secrets(orjson.loads(text), hide=self.hide)
            except orjson.JSONDecodeError:
                pass
        return self._text(text)

    def _text(self, text: str) -> str:
        """Return the text unchanged. If it contains keys, also in JSON escapes, return it unescaped and without them."""
        text = text[: self.chars + MARGIN_CHARS]
        plain = unescaped(text)
        clean = redacted(self.hide(plain).encode("utf-8", "replace"))
        return attribute_text(text if clean == plain else clean, self.chars)


def describe_content(span: Span, request: Request, content: Content) -> None:
    """Add the attributes of a request to a span, if the span is recorded."""
    if span.is_recording():
        span.set_attributes(content.of_request(request))


class AnswerContent:
    """Collects a response from its events as they pass, with only as much text as will be recorded."""

    def __init__(self, dialect: str, chars: int = CONTENT_CHARS) -> None:
        self._collector = Collector(dialect, StreamReport())
        self._room = chars
        self.is_cut = False  #: whether any text was left out

    def feed(self, events: Sequence[Event]) -> None:
        kept: list[Event] = []
        for event in events:
            if isinstance(event, _SPOKEN):
                self._room -= len(event.text)
                if self._room < 0:
                    self.is_cut = True
                    continue
            kept.append(event)
        self._collector.feed(kept)

    def finish(self) -> Response:
        return self._collector.finish()


def _bounded(newest_first: Iterator[dict[str, Any]], chars: int) -> tuple[str, bool]:
    """Return a JSON array of the newest values in their order, and whether all values are in it completely."""
    kept: list[str] = []
    room, is_whole = chars - 2, True
    for value in newest_first:
        text = _json(value)
        if len(text) + 1 > room:
            is_whole = False
            text = "" if kept else _shortened(value, room)
            if not text:
                break
        kept.append(text)
        room -= len(text) + 1
        if not is_whole:
            break
    return f"[{','.join(reversed(kept))}]", is_whole


def _shortened(value: Any, chars: int) -> str:
    """Return a value as JSON, with its texts truncated until it fits; empty: it does not fit."""
    each = chars
    while each > LEAST_CHARS:  # if texts of the least length are still too long together, the whole value is left out
        each //= 2
        if len(text := _json(_cut(value, each))) <= chars:
            return text
    return ""


def _cut(value: Any, chars: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= chars else value[:chars] + "…"
    if isinstance(value, dict):
        return {name: _cut(inner, chars) for name, inner in value.items()}
    if isinstance(value, list):
        return [_cut(inner, chars) for inner in value]
    return value


def _json(value: Any) -> str:
    # not orjson, which refuses large integers
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    return text.encode("utf-8", "replace").decode("utf-8")
