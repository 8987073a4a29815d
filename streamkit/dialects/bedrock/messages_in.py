"""Bedrock's messages to turns.

A message is one turn, and so is what ``system`` says, in front. A block is a union: it has one member, which names its kind.
A ``cachePoint`` stands behind what it marks, and is a mark of that part. Blocks that only this vendor understands are asides:
those of the assistant as the messages that a stream would have sent (``asides.py``), others whole. What another vendor signed
or encrypted and was carried here sealed is that vendor's again (``vocabulary/sealed_reasoning.py``).

Source: dialects.md §6.1, §7.3, §7.4, quirks.md R14.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Final, Literal, TypeAlias, cast

from streamkit.conversation.messages import (
    CacheMark,
    Media,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Turn,
)
from streamkit.dialects.bedrock.asides import CONTENT, STREAMED, asides_of, is_server
from streamkit.dialects.bedrock.wire import CACHE_SPANS, MEDIA_TYPES, SIGNER, VENDOR
from streamkit.dialects.bodies.block_parts import BlockParts
from streamkit.dialects.members.fields import Fields, base64_of, kind_of
from streamkit.events import Aside
from streamkit.text.quoting import quoted, quoted_all

#: Where blocks stand: in a message of that role, or in what a tool said.
Place: TypeAlias = Literal["system", "user", "assistant", "toolResult"]
#: Blocks that may stand in one place only.
ONLY: Final = {"toolUse": "assistant", "reasoningContent": "assistant", "toolResult": "user"}
MEDIA: Final[Mapping[str, Literal["image", "audio", "video", "file"]]] = {
    "image": "image",
    "document": "file",
    "video": "video",
    "audio": "audio",
}
#: Members of ``source`` that have a form of ours; a block with another is an aside.
SOURCES: Final = {
    "image": frozenset({"bytes", "s3Location"}),
    "document": frozenset({"bytes", "s3Location", "text"}),
    "video": frozenset({"bytes", "s3Location"}),
    "audio": frozenset({"bytes", "s3Location"}),
}


class MessageReader:
    """The part of the reader of requests that reads messages."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []

    def system(self, fields: Fields) -> None:
        """The member ``system``: blocks of text."""
        if parts := BlockReader("system").read(fields.each("system")):
            self.turns.append(Turn("system", parts))

    def message(self, message: Fields) -> None:
        role = message.needed("role")
        if role not in {"system", "user", "assistant"}:
            raise message.wrong(f"there is no role {quoted(role)}", "role")
        place = cast("Literal['system', 'user', 'assistant']", role)
        turn = Turn(place, BlockReader(place).read(message.needed_each("content")))
        turn.extras = message.rest() or None
        self.turns.append(turn)


class BlockReader(BlockParts):
    """Content blocks to parts."""

    def __init__(self, place: Place) -> None:
        super().__init__(SIGNER)
        self._place = place

    def read(self, blocks: Iterable[Fields]) -> list[Part]:
        for number, block in enumerate(blocks):
            self._block(block, number)
        return self.finish()

    def _block(self, block: Fields, number: int) -> None:
        member = only_member(block)
        if is_server(member, block.peek(member)):
            self._aside(block, member, number)
            return
        if ONLY.get(member, self._place) != self._place:
            raise block.wrong(f"it may only stand in a message of the {ONLY[member]}", member)
        match member:
            case "text":
                self.parts.append(self._text_part(block.needed("text"), number))
            case "image" | "document" | "video" | "audio" if _source_kind(block, member) in SOURCES[member]:
                self.parts.append(_media(block.needed_fields(member), member))
            case "toolUse":
                self.call(self._call(block.needed_fields("toolUse")))
            case "toolResult":
                self.parts.append(_result(block.needed_fields("toolResult")))
            case "reasoningContent":
                self._reasoning(block.needed_fields("reasoningContent"), number)
            case "citationsContent":
                self._cited(block.needed_fields("citationsContent"), number)
            case "json" if self._place == "toolResult":
                self.parts.append(Text(block.text_of("json"), extras={"json": True}, block=number))
            case "cachePoint" if self._mark(cache_mark(block)):
                block.take("cachePoint")
            case _:
                self._aside(block, member, number)

    def _text_part(self, text: str, number: int) -> Text:
        self.last_text = Text(text, block=number)
        return self.last_text

    def _cited(self, cited: Fields, number: int) -> None:
        """Text with citations; text that came in pieces is one."""
        pieces = []
        for piece in cited.each("content"):
            if only_member(piece) != "text":
                raise piece.wrong("text is needed")
            pieces.append(piece.needed("text"))
        text = self._text_part("".join(pieces), number)
        self.parts.append(text)
        for citation in cited.listed("citations"):
            self.parts.append(Aside(VENDOR, "citation", "citation", citation, block=number))
        text.extras = cited.rest() or None

    def _mark(self, mark: CacheMark | None) -> bool:
        """Mark the part in front; False where none can be marked."""
        last = self.parts[-1] if self.parts else None
        if mark is None or not isinstance(last, Text | Media | ToolCall | ToolResult) or last.cache is not None:
            return False
        last.cache = mark
        return True

    # -- what the assistant said -----------------------------------------------------------------------------------

    def _call(self, use: Fields) -> ToolCall:
        call_id, name = use.needed("toolUseId"), use.needed("name")
        if not isinstance(use.peek("input"), dict):
            raise use.wrong(f"an object is needed, not {kind_of(use.peek('input'))}", "input")
        call = ToolCall(0, call_id, name, use.text_of("input"), place=use.place)
        call.extras = use.rest() or None
        return call

    def _reasoning(self, content: Fields, number: int) -> None:
        if only_member(content) == "redactedContent":
            data = base64_of(content.needed("redactedContent"), content.at("redactedContent"))
            self.redacted(data, number)
            return
        thought = content.needed_fields("reasoningText")
        part = Reasoning(thought.string("text") or "", block=number)
        part.signature = self.signature(thought.string("signature"))
        part.extras = thought.rest() or None
        self.parts.append(part)

    def _aside(self, block: Fields, member: str, number: int) -> None:
        value = block.peek(member)
        if self._place != "assistant" or member not in STREAMED:
            raw = {member: block.take(member)}
            kind: Literal["server_tool", "unknown_event"] = (
                "server_tool" if is_server(member, value) else "unknown_event"
            )
            self.parts.append(Aside(VENDOR, kind, CONTENT + member, raw, block=number))
            return
        fields = block.needed_fields(member)
        given = fields.peek("input")
        text = fields.text_of("input") if isinstance(given, dict) and given else ""
        self.parts += asides_of(member, fields.rest(), number, text)


def _result(fields: Fields) -> ToolResult:
    result = ToolResult(fields.needed("toolUseId"), place=fields.place)
    said = BlockReader("toolResult").read(fields.needed_each("content"))
    result.parts = cast("list[Text | Media | Aside]", said)
    match fields.string("status"):
        case "error":
            result.is_error = True
        case None | "success":
            pass
        case status:
            raise fields.wrong(f"'success' or 'error' is needed, not {quoted(status)}", "status")
    result.extras = fields.rest() or None
    return result


def _media(fields: Fields, member: str) -> Media:
    media = Media(MEDIA[member])
    form = fields.string("format")
    if form is not None:
        media.media_type = MEDIA_TYPES[member].get(form, f"{'application' if member == 'document' else member}/{form}")
    source = fields.needed_fields("source")
    match only_member(source):
        case "bytes":
            media.data = base64_of(source.needed("bytes"), source.at("bytes"))
        case "text":
            media.media_type = media.media_type or "text/plain"
            media.data = base64.b64encode(source.needed("text").encode()).decode()
        case _:
            media.url = source.needed_fields("s3Location").needed("uri")
    if member == "document":
        media.name = fields.needed("name")
    media.extras = fields.rest() or None
    return media


def only_member(union: Fields) -> str:
    """The one member of a union. Raises BadRequest where there are none or several."""
    match union.names:
        case [member]:
            return member
        case names:
            raise union.wrong(f"one member is needed, not {quoted_all(names) or 'none'}")


def cache_mark(block: Fields) -> CacheMark | None:
    """The mark that a ``cachePoint`` is; None for one of a kind that has no word of ours. It is not taken."""
    point = block.peek("cachePoint")
    if not isinstance(point, dict):
        raise block.wrong(f"an object is needed, not {kind_of(point)}", "cachePoint")
    kind, ttl = point.get("type"), point.get("ttl")
    known = kind == "default" and isinstance(ttl, str | None) and not point.keys() - {"type", "ttl"}
    return CACHE_SPANS.get(ttl) if known else None


def _source_kind(block: Fields, member: str) -> str:
    """The member of a media's ``source``; a missing one is an error of its reader, not an unknown one."""
    value = block.peek(member)
    source = value.get("source") if isinstance(value, dict) else None
    return next(iter(source)) if isinstance(source, dict) and len(source) == 1 else "bytes"
