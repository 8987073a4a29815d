"""Anthropic's messages to turns.

A message is one turn, and so is the text of ``system``, in front. Blocks that only this vendor understands are asides: those
of the assistant as the frames that a stream would have sent (``asides.py``), others whole. What another vendor signed or
encrypted and was carried here sealed is that vendor's again (``vocabulary/sealed_reasoning.py``).

Source: dialects.md §3.2, §3.3, §7.3, §7.4, quirks.md R14.
"""

from __future__ import annotations

import base64
from typing import Final, Literal, TypeAlias, cast

from streamkit.conversation.messages import (
    CacheMark,
    Media,
    Part,
    Reasoning,
    RedactedReasoning,
    Text,
    ToolCall,
    ToolResult,
    Turn,
)
from streamkit.dialects.anthropic.asides import CONTENT, aside_of, frames_of
from streamkit.dialects.anthropic.citations import is_foreign
from streamkit.dialects.anthropic.searches import is_made
from streamkit.dialects.anthropic.wire import CACHE_SPANS, VENDOR, without_defaults
from streamkit.dialects.bodies.block_parts import BlockParts
from streamkit.dialects.members.fields import Fields, kind_of
from streamkit.dialects.streams.client_calls import RESPONSES
from streamkit.dialects.streams.compactions import INSTEAD, OPENAIS, openais_in
from streamkit.dialects.vocabulary.sealed_reasoning import MADE
from streamkit.events import Aside, Opaque
from streamkit.text.quoting import quoted

#: Where blocks stand: in a message of that role, or in what a tool said.
Place: TypeAlias = Literal["system", "user", "assistant", "tool_result"]
#: Blocks that may stand in one place only.
ONLY: Final = {
    "thinking": "assistant",
    "redacted_thinking": "assistant",
    "tool_use": "assistant",
    "tool_result": "user",
}
#: Kinds of ``source`` that have a form of ours, by the block's type; the others are asides.
SOURCES: Final = {
    "image": frozenset({"base64", "url", "file"}),
    "document": frozenset({"base64", "url", "file", "text"}),
}


class MessageReader:
    """The part of the reader of requests that reads messages."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.unreadable: list[tuple[str, str, str]] = []  # see ``Request.unreadable``

    def system(self, fields: Fields) -> None:
        """The member ``system``: text, or text blocks."""
        if parts := BlockReader("system").read(fields.text_or_each("system")):
            self.turns.append(Turn("system", parts))

    def message(self, message: Fields) -> None:
        role = message.needed("role")
        if role not in {"system", "user", "assistant"}:
            raise message.wrong(f"there is no role {quoted(role)}", "role")
        if "content" not in message:
            raise message.wrong("text or a list of blocks is needed", "content")
        place = cast("Literal['system', 'user', 'assistant']", role)
        reader = BlockReader(place)
        turn = Turn(place, reader.read(message.text_or_each("content")))
        self.unreadable += reader.unreadable
        turn.extras = message.rest() or None
        self.turns.append(turn)


class BlockReader(BlockParts):
    """Content blocks to parts."""

    def __init__(self, place: Place) -> None:
        super().__init__(VENDOR)
        self._place = place
        self.unreadable: list[tuple[str, str, str]] = []  # see ``Request.unreadable``

    def read(self, content: str | list[Fields]) -> list[Part]:
        if isinstance(content, str):
            return [Text(content)] if content else []
        for number, block in enumerate(content):
            self._block(block, number)
        return self.finish()

    def _block(self, block: Fields, number: int) -> None:
        kind = block.needed("type")
        if self._place == "system" and kind != "text":
            raise block.wrong(f"text is needed in a message of the system, not {quoted(kind)}", "type")
        if ONLY.get(kind, self._place) != self._place:
            raise block.wrong(f"{quoted(kind)} may only stand in a message of the {ONLY[kind]}", "type")
        match kind:
            case "text":
                self._text_block(block, number)
            case "image" | "document" if _source_kind(block) in SOURCES[kind]:
                self.parts.append(self._media(block, kind))
            case "thinking":
                self._thinking(block, number)
            case "redacted_thinking":
                data = block.needed("data")
                self.redacted(data, number, block.rest() or None)
            case "compaction" if (blob := openais_in(block.peek("encrypted_content"))) is not None:
                self.unreadable.append((block.place, INSTEAD, RESPONSES))
                block.rest()
                self.parts.append(RedactedReasoning(Opaque(OPENAIS, blob), block=number))
            case "compaction" if isinstance(block.peek("content"), str):
                summary = block.peek("content")
                self.parts.append(Text(summary, block=number, item={"type": kind, **block.rest()}))
            case "tool_use":
                self.call(self._call(block))
            case "tool_result":
                self.parts.append(self._result(block))
            case _:
                self._aside(block, kind, number)

    # -- text and media --------------------------------------------------------------------------------------------

    def _text_block(self, block: Fields, number: int) -> None:
        text = self.last_text = Text(block.needed("text"), cache=cache_mark(block), block=number)
        citations = block.listed("citations")
        text.extras = block.rest() or None
        self.parts.append(text)
        for citation in citations:
            vendor = MADE if is_foreign(citation) else VENDOR
            self.parts.append(Aside(vendor, "citation", "citations_delta", citation, block=number))

    def _media(self, block: Fields, kind: str) -> Media:
        source = block.needed_fields("source")
        media = Media("image" if kind == "image" else "file", place=block.place)
        match source.needed("type"):
            case "base64":
                media.media_type, media.data = source.needed("media_type"), source.needed("data")
            case "text":
                media.media_type = source.string("media_type") or "text/plain"
                media.data = base64.b64encode(source.needed("data").encode()).decode()
            case "url":
                media.url = source.needed("url")
            case _:
                media.file_id = source.needed("file_id")
        if kind == "document":
            media.name = block.string("title")
        media.cache = cache_mark(block)
        media.extras = block.rest() or None
        return media

    # -- what the assistant said -----------------------------------------------------------------------------------

    def _thinking(self, block: Fields, number: int) -> None:
        part = Reasoning(block.string("thinking") or "", "summary", block=number)
        part.signature = self.signature(block.string("signature"))
        part.extras = block.rest() or None
        self.parts.append(part)

    def _call(self, block: Fields) -> ToolCall:
        call_id, name = block.needed("id"), block.needed("name")
        if not isinstance(block.peek("input"), dict):
            raise block.wrong(f"an object is needed, not {kind_of(block.peek('input'))}", "input")
        call = ToolCall(0, call_id, name, block.text_of("input"), cache=cache_mark(block), place=block.place)
        call.extras = without_defaults(block.rest()) or None
        return call

    def _aside(self, block: Fields, kind: str, number: int) -> None:
        if self._place != "assistant":
            raw = {"type": kind, **block.rest()}
            self.parts.append(Aside(VENDOR, "unknown_event", f"{CONTENT}{kind}", raw, block=number))
            return
        given = block.peek("input")
        text = block.text_of("input") if isinstance(given, dict) and given else None
        raw = {"type": kind, **block.rest()}
        if is_made(raw):  # the server would refuse what it did not run
            self.parts.append(Aside(MADE, "server_tool", f"{CONTENT}{kind}", raw, block=number))
            return
        self.parts += [aside_of(frame, kind, number) for frame in frames_of(raw, number, text)]

    # -- results ---------------------------------------------------------------------------------------------------

    def _result(self, block: Fields) -> ToolResult:
        result = ToolResult(block.needed("tool_use_id"), place=block.place)
        said = BlockReader("tool_result").read(block.text_or_each("content"))
        result.parts = cast("list[Text | Media | Aside]", said)
        result.is_error = block.boolean("is_error") or False
        result.cache = cache_mark(block)
        result.extras = block.rest() or None
        return result


def cache_mark(fields: Fields) -> CacheMark | None:
    """The ``cache_control`` of a block or a tool."""
    control = fields.fields("cache_control")
    if control is None:
        return None
    kind, ttl = control.needed("type"), control.string("ttl")
    if kind != "ephemeral":
        raise control.wrong(f"'ephemeral' is needed, not {quoted(kind)}", "type")
    if ttl not in CACHE_SPANS:
        raise control.wrong(f"'5m' or '1h' is needed, not {quoted(ttl)}", "ttl")
    return CACHE_SPANS[ttl]


def _source_kind(block: Fields) -> str | None:
    """What kind of ``source`` a block has; a missing one is an error of the block's reader, not an unknown one."""
    source = block.peek("source")
    kind = source.get("type") if isinstance(source, dict) else "base64"
    return kind if isinstance(kind, str) else "base64"
