"""What people and models said, as attributes of a span: opt-in, bounded, without what looks like a secret.

Each attribute is one JSON text in the form of the conventions' schemas, since back ends read messages from those and not from
structured attributes (observe.md F23). Of a conversation that is too long the newest messages stay; a message that is too long
by itself has its texts cut. The bytes of media are left out.

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
from streamkit.text.redact import MARGIN_CHARS, redacted, unescaped, without_secrets

#: Texts are cut to no fewer: the words of the schemas are shorter.
LEAST_CHARS: Final = 64
_SPOKEN: Final = TextDelta | ReasoningDelta | RefusalDelta


@frozen
class Content:
    """How what was said is told: in at most ``chars`` characters each, with the texts that ``hide`` lets through."""

    chars: int = CONTENT_CHARS
    hide: Callable[[str], str] = str  #: takes an application's own keys out, of every text and every name of a member

    def of_request(self, request: Request) -> dict[str, str | bool]:
        """The attributes of what was asked."""
        turns, first = request.turns, 0
        while first < len(turns) and turns[first].role == "system":
            first += 1
        instructions = [part for turn in turns[:first] for part in self._parts(turn.parts)]
        messages = (message for turn in reversed(turns[first:]) for message in reversed(list(self._messages(turn))))
        return self._attributes(
            {
                names.INPUT_MESSAGES: messages,
                names.SYSTEM_INSTRUCTIONS: reversed(instructions),
                names.TOOL_DEFINITIONS: map(self._tool, reversed(request.tools)),
            }
        )

    def of_answer(self, answer: Response, *, is_cut: bool = False) -> dict[str, str | bool]:
        """The attributes of what was answered; ``is_cut``: there was more."""
        found = self._attributes({names.OUTPUT_MESSAGES: map(self._choice, reversed(answer.choices))})
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
        """A turn as messages: results of tools have a role of their own."""
        for is_result, parts in groupby(turn.parts, lambda part: isinstance(part, ToolResult)):
            yield {"role": "tool" if is_result else turn.role, "parts": self._parts(parts)}

    def _choice(self, choice: Choice) -> dict[str, Any]:
        reason = {"tool_calls": "tool_call"}.get(choice.stop_reason or "", choice.stop_reason or names.NO_REASON)
        return {"role": "assistant", "parts": self._parts(choice.parts), "finish_reason": reason}

    def _parts(self, parts: Iterable[Part]) -> list[dict[str, Any]]:
        """Without what is the vendor's own."""
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
            case _:  # what only its vendor can read
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
        """A JSON value where it is one, else its text."""
        if len(text) <= self.chars:
            try:
                return without_secrets(orjson.loads(text), hide=self.hide)
            except orjson.JSONDecodeError:
                pass
        return self._text(text)

    def _text(self, text: str) -> str:
        """Return the text as it is; if it has keys, also in JSON escapes, unescaped and without them."""
        text = text[: self.chars + MARGIN_CHARS]
        plain = unescaped(text)
        clean = redacted(self.hide(plain).encode("utf-8", "replace"))
        return attribute_text(text if clean == plain else clean, self.chars)


def describe_content(span: Span, request: Request, content: Content) -> None:
    """Set what was asked, if the span is recorded."""
    if span.is_recording():
        span.set_attributes(content.of_request(request))


class AnswerContent:
    """What an answer says, folded from its events as they pass; of its texts only so much as is told."""

    def __init__(self, dialect: str, chars: int = CONTENT_CHARS) -> None:
        self._collector = Collector(dialect, StreamReport())
        self._room = chars
        self.is_cut = False  #: texts were left out

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
        """The answer as far as it came."""
        return self._collector.finish()


def _bounded(newest_first: Iterator[dict[str, Any]], chars: int) -> tuple[str, bool]:
    """A JSON array of the newest values in their order, and whether it has all of all."""
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
    """The JSON text of a value whose own texts are cut until it fits; empty: it does not."""
    each = chars
    while each > LEAST_CHARS:  # a value of more parts than fit is left out
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
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)  # integers of any size
    return text.encode("utf-8", "replace").decode("utf-8")
