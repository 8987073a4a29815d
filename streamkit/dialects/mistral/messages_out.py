"""Turns to Mistral's messages: Chat's, but results have media and the tool's name, and the assistant thinks in its content.

The server holds messages to an order: behind a result come results or the assistant, the system speaks in front or behind
the user, the assistant says something each time, and last only in words to be continued (``prefix``). A request of another
dialect is brought into that order: results move to their calls, the system to the front, and between results and the user's
words a turn of the assistant is put. One of this dialect is written as it came.

Thinking is taken back, Mistral's own signatures with it, and those of no other vendor.

Source: dialects.md §6.3, §7.3, §7.4; the order: mistral-common, ``protocol/instruct/validator.py``, code 3230.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, Final

from attrs import evolve

from streamkit.conversation.messages import (
    CacheMark,
    Media,
    Part,
    Reasoning,
    RedactedReasoning,
    Refusal,
    Request,
    Text,
    ToolCall,
    ToolResult,
    Turn,
)
from streamkit.dialects.bodies.request_writer import data_uri, given
from streamkit.dialects.mistral.chunks import Chunks
from streamkit.dialects.mistral.wire import DETAILS, VENDOR
from streamkit.dialects.openai_chat.messages_out import MessageWriter
from streamkit.dialects.profiles import Target
from streamkit.dialects.streams.event_encoder import wrapped_input
from streamkit.events import Aside, Opaque
from streamkit.report import StreamReport
from streamkit.text.identifiers import NINE

#: What the assistant says between results and the words of the user: something is demanded.
BRIDGE: Final = "OK."


class MistralMessageWriter(MessageWriter):
    """The part of the writer of requests that writes messages."""

    dialect = "mistral"
    vendor = VENDOR
    ids = NINE
    users = None  # there is no such member
    text_files: ClassVar[bool] = True
    relatives: ClassVar[frozenset[str]] = frozenset({"mistral"})
    media_in_results: ClassVar[bool] = True

    def __init__(self, request: Request, target: Target, report: StreamReport) -> None:
        super().__init__(request, target, report)
        calls = (part for turn in request.turns for part in turn.parts if isinstance(part, ToolCall))
        self._names = {call.id: call.name for call in calls}

    # -- the order of messages -------------------------------------------------------------------------------------

    def messages(self) -> Iterable[dict[str, Any]]:
        messages = super().messages()
        return messages if self.own else self._in_order(messages)

    def _in_order(self, messages: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        front: list[dict[str, Any]] = []  # what the system says
        placed: list[dict[str, Any]] = []
        for message in messages:
            before = placed[-1]["role"] if placed else ""
            match message["role"]:
                case "system" if not placed:
                    front.append(message)
                    continue
                case "system" if before in {"assistant", "tool"}:
                    self.lose("system_place")
                    front.append(message)
                    continue
                case "assistant" if not message["content"] and "tool_calls" not in message:
                    self.report.repair("turn_empty")
                    continue
                case "user" if before == "tool":
                    self.report.repair("turn_added")
                    placed.append({"role": "assistant", "content": BRIDGE})
            placed.append(message)
        if placed and placed[-1]["role"] == "assistant" and "tool_calls" not in placed[-1]:
            placed[-1]["prefix"] = True
        yield from front
        yield from placed

    def said(self, turn: Turn, parts: Sequence[Part]) -> dict[str, Any]:
        if turn.role == "system" and not self.own:
            parts = [part for part in parts if not self._is_lost(part)]
        return {**super().said(turn, parts), "role": turn.role}

    def _is_lost(self, part: Part) -> bool:
        """Whether a part of what the system says has no place: media."""
        if isinstance(part, Media):
            self.lose("media", part.kind)
        return isinstance(part, Media)

    def named(self, message: dict[str, Any], turn: Turn) -> dict[str, Any]:
        if turn.name is not None and not self.own:
            self.lose("turn_name", turn.name)
            turn = evolve(turn, name=None)
        return super().named(message, turn)

    # -- content ---------------------------------------------------------------------------------------------------

    def part(self, part: Part) -> dict[str, Any] | None:
        if isinstance(part, Refusal):
            self.lose("refusal_as_text")
            part = Text(part.text, extras=part.extras)
        if isinstance(part, Text) and part.signature is not None:
            self.lose("reasoning_signature", part.signature.vendor)
        if isinstance(part, Text) and not part.text and not self.own:
            return None
        return super().part(part)

    def media(self, media: Media) -> dict[str, Any] | None:
        url = data_uri(media) if media.data is not None else media.url
        if not self.own and url is not None and not url.startswith(("data:", "http:", "https:")):
            return None
        match media.kind:
            case "image" if url is not None:
                return {"type": "image_url", "image_url": given(url=url, detail=self._closeness(media.detail))}
            case "audio" if url is not None:
                bare = media.data is not None and (media.media_type is None or not self.own)
                return {"type": "input_audio", "input_audio": media.data if bare else url}
            case "file" if url is not None:
                return given(type="document_url", document_url=url, document_name=media.name)
            case "file" if media.file_id is not None and self.own:
                return {"type": "file", "file_id": media.file_id}
        return None

    def _closeness(self, detail: str | None) -> str | None:
        if detail is None or self.own or detail in DETAILS:
            return detail
        self.lose("metadata", "detail")
        return None

    def cache_mark(self, cache: CacheMark) -> dict[str, Any]:
        self.lose("cache_mark", cache)
        return {}

    # -- what the assistant said -----------------------------------------------------------------------------------

    def assistant(self, turn: Turn) -> dict[str, Any]:
        chunks = Chunks()
        calls: list[dict[str, Any]] = []
        beside: dict[str, Any] = {}
        for part in turn.parts:
            match part:
                case ToolCall():
                    calls.append(self.call(part, None))
                    continue
                case Aside():
                    self._only_ours(part, chunks, beside)
                    continue
                case RedactedReasoning():
                    self.lose("reasoning_opaque", part.opaque.vendor)
                    continue
                case Reasoning():
                    said = self._think(part, chunks)
                case Media() if not self.own:
                    self.lose("media", part.kind)
                    continue
                case _:
                    written = self.part(part)
                    said = written is not None
                    if written is not None:
                        chunks.add(written)
            if said and calls:
                self.lose("block_order")
        message = {"role": "assistant", "content": chunks.content or (None if calls else ""), **beside}
        if calls:
            message["tool_calls"] = calls
        return self.named(message, turn)

    def _think(self, part: Reasoning, chunks: Chunks) -> bool:
        """Write reasoning; False where nothing is left of it."""
        signature = part.signature
        if signature is not None and signature.vendor != VENDOR:
            self.lose("reasoning_signature", signature.vendor)
            signature = None
        members = self.extras(part.extras)
        if not part.text and signature is None and not self.own:
            return False
        chunks.think(part.text, None if signature is None else signature.blob, members)
        return True

    def _only_ours(self, part: Aside, chunks: Chunks, beside: dict[str, Any]) -> None:
        """What only this dialect knows: a part of the content or of a thinking, or a member of the message."""
        if not self.own or part.vendor != VENDOR:
            self.lose(part.kind, part.type)
        elif part.type.startswith("delta."):
            beside[part.type.removeprefix("delta.")] = part.raw
        elif not chunks.aside(part):
            self.lose(part.kind, part.type)

    def goes_back(self, _signature: Opaque) -> bool:
        return False

    # -- calls and results -----------------------------------------------------------------------------------------

    def call(self, call: ToolCall, details: list[dict[str, Any]] | None) -> dict[str, Any]:
        if call.kind == "custom":
            self.lose("custom_tool_wrapped", call.name)
            call = evolve(call, kind="function", arguments=wrapped_input(call.arguments))
        return super().call(call, details)

    def result(self, result: ToolResult, moved: list[Media]) -> dict[str, Any]:
        message = super().result(result, moved)
        name = result.name if self.own else self._names.get(result.call_id, result.name)
        return message if name is None else {**message, "name": self.tool_name(name)}
