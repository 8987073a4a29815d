"""Bedrock's requests to the neutral conversation: messages, options, tools, the choice among them.

A message is one turn, and so are the blocks of ``system``, in front. A block has one member, which names its kind; a
``cachePoint`` marks the part in front. Blocks that only this vendor understands are asides: the assistant's as the messages
of a stream (``asides.py``), others whole. What another vendor signed or encrypted and was carried here sealed is that
vendor's again (``vocabulary/sealed_reasoning.py``).

What only some models know is in ``additionalModelRequestFields``, in the words of their vendors, of which Claude's are read.
The model and whether to stream are in the URL; a client's ``modelId`` in the body is read. A body with ``anthropic_version``
is InvokeModel's, for Anthropic's models, and is Anthropic's request from then on.

Source: dialects.md §6.1, §7.3, §7.4, quirks.md R14.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Final, Literal, TypeAlias, cast

import orjson

from streamkit.conversation.messages import (
    CacheMark,
    Media,
    Options,
    OutputFormat,
    Part,
    Reasoning,
    Request,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    Turn,
)
from streamkit.dialects.anthropic.request_in import AnthropicRequestReader
from streamkit.dialects.bedrock.asides import STREAMED, asides_of, is_server
from streamkit.dialects.bedrock.wire import INFERENCE, MEDIA_TYPES, MEMBERS, SIGNER, VENDOR
from streamkit.dialects.bodies.claude_requests import CACHE_SPANS, BlockParts, call_of, read_thinking, role_of
from streamkit.dialects.bodies.request_reader import CONTENT, RequestReader, read_options
from streamkit.dialects.members.fields import Fields, base64_of, kind_of
from streamkit.events import Aside, AsideKind
from streamkit.report import StreamReport
from streamkit.text.quoting import quoted, quoted_all

#: Where blocks stand: in a message of that role, or in a tool's result.
Place: TypeAlias = Literal["system", "user", "assistant", "toolResult"]
#: Blocks that may stand in one place only.
ONLY: Final = {"toolUse": "assistant", "reasoningContent": "assistant", "toolResult": "user"}
MEDIA: Final = {member: kind for kind, member in MEMBERS.items()}
#: Members of ``source`` that have a form of ours; a block with another is an aside. Text is one in a document alone.
SOURCES: Final = frozenset({"bytes", "s3Location"})
#: Blocks without anything that a model must read: marks, and pictures for a guardrail. They are dropped for other dialects.
MARKS: Final = frozenset({"cachePoint", "guardContent"})
#: The headers of Anthropic's own API, which are members here.
VERSION, BETA = "anthropic_version", "anthropic_beta"


class BedrockRequestReader(RequestReader):
    """Reads one request, member by member."""

    dialect = "bedrock"

    #: The members that are the model's own, and those about tools.
    _model: Fields | None = None
    _config: Fields | None = None

    @classmethod
    def decode_request(cls, fields: Fields, report: StreamReport) -> Request:
        if VERSION not in fields:
            return super().decode_request(fields, report)
        fields.take(VERSION)
        if fields.take(BETA):
            report.lose("parameter", what=BETA)
        return AnthropicRequestReader.decode_request(fields, report)

    def begun(self, fields: Fields) -> Request:
        return Request(self.dialect, fields.string("modelId"))

    def read_turns(self, fields: Fields) -> None:
        """The member ``system``, blocks of text, and the messages."""
        if parts := BlockReader("system").read(fields.each("system")):
            self.turns.append(Turn("system", parts))
        for message in fields.needed_each("messages"):
            role = role_of(message)
            parts = BlockReader(role).read(message.needed_each("content"))
            self.turns.append(Turn(role, parts, extras=message.rest() or None))

    # -- options ---------------------------------------------------------------------------------------------------

    def options(self, fields: Fields) -> Options:
        model = self._model
        inference = fields.fields("inferenceConfig")
        options = read_options(inference, INFERENCE) if inference else Options()
        options.top_k = model.integer("top_k") if model else None
        output = fields.fields("outputConfig")
        options.thinking = read_thinking(model, output.string("effort") if output else None)
        options.output = self._output(output) if output else None
        if tier := fields.fields("serviceTier"):
            options.service_tier = tier.needed("type")
        return options

    def _output(self, output: Fields) -> OutputFormat | None:
        """A schema, which stands here as text."""
        form = output.fields_of_type("textFormat", {"json_schema"})
        if form is None:
            return None
        form.needed("type")
        definition = form.needed_fields("structure").needed_fields("jsonSchema")
        text = definition.needed("schema")
        try:
            schema = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            raise definition.wrong(f"the schema is no JSON: {error}", "schema") from error
        return OutputFormat("schema", schema, definition.string("name"), definition.string("description"))

    # -- tools -----------------------------------------------------------------------------------------------------

    def tools(self, fields: Fields) -> list[Tool]:
        tools: list[Tool] = []
        self._model = fields.fields("additionalModelRequestFields")
        self._config = fields.fields("toolConfig")
        for tool in self._config.needed_each("tools") if self._config else ():
            member = _only_member(tool)
            last = tools[-1] if tools else None
            mark = _cache_mark(tool) if member == "cachePoint" else None
            if mark is not None and last is not None and last.cache is None:
                last.cache = mark
            elif member == "toolSpec":
                tools.append(self.tool(tool.needed_fields("toolSpec")))
            else:
                raw = tool.rest()
                named = raw[member].get("name") if isinstance(raw[member], dict) else None
                tools.append(Tool(named if isinstance(named, str) else member, kind="server", raw=raw))
        return tools

    def tool(self, spec: Fields) -> Tool:
        schema = spec.needed_fields("inputSchema")
        read = Tool(spec.needed("name"), spec.string("description"), schema.mapping("json"), spec.boolean("strict"))
        if read.parameters is None:
            raise schema.wrong("a schema is needed, and there is none", "json")
        read.extras = spec.rest() or None
        return read

    def tool_choice(self, _fields: Fields) -> ToolChoice | None:
        """The choice; whether calls may be parallel stands in Claude's own ``tool_choice``."""
        model = self._model
        choice = self._choice(self._config) if self._config else None
        native = model.peek("tool_choice") if model else None
        if model and isinstance(native, dict) and native.get("type") in (None, "auto"):
            claude = model.needed_fields("tool_choice")
            if (serial := claude.boolean("disable_parallel_tool_use")) is not None:
                claude.take("type")
                choice = choice or ToolChoice()
                choice.parallel = not serial
        return choice

    def _choice(self, config: Fields) -> ToolChoice | None:
        choice = config.fields("toolChoice")
        if choice is None:
            return None
        modes: dict[str, Literal["auto", "required"]] = {"auto": "auto", "any": "required", "tool": "required"}
        member = _only_member(choice)
        if member not in modes:
            raise choice.wrong(f"'auto', 'any' or 'tool' is needed, not {quoted(member)}")
        chosen = choice.needed_fields(member)
        return ToolChoice(modes[member], (chosen.needed("name"),) if member == "tool" else ())


class BlockReader(BlockParts):
    """Content blocks to parts."""

    def __init__(self, place: Place) -> None:
        super().__init__(SIGNER)
        self._place = place

    def read(self, blocks: Iterable[Fields]) -> list[Part]:
        """The parts of one content. Raises BadRequest."""
        for number, block in enumerate(blocks):
            self._block(block, number)
        return self.finish()

    def _block(self, block: Fields, number: int) -> None:
        member = _only_member(block)
        if is_server(member, block.peek(member)):
            self._aside(block, member, number)
            return
        if ONLY.get(member, self._place) != self._place:
            raise block.wrong(f"it may only stand in a message of the {ONLY[member]}", member)
        match member:
            case "text":
                self.parts.append(self._text_part(block.needed("text"), number))
            case "document" if _source_kind(block, member) == "text":
                self.parts.append(_media(block.needed_fields(member), member))
            case "image" | "document" | "video" | "audio" if _source_kind(block, member) in SOURCES:
                self.parts.append(_media(block.needed_fields(member), member))
            case "toolUse":
                use = block.needed_fields("toolUse")
                call = call_of(use, "toolUseId")
                call.extras = use.rest() or None
                self.call(call)
            case "toolResult":
                self.parts.append(_result(block.needed_fields("toolResult")))
            case "reasoningContent":
                self._reasoning(block.needed_fields("reasoningContent"), number)
            case "citationsContent":
                self._cited(block.needed_fields("citationsContent"), number)
            case "json" if self._place == "toolResult":
                self.parts.append(Text(block.text_of("json"), extras={"json": True}, block=number))
            case "cachePoint" if self._mark(_cache_mark(block)):
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
            if _only_member(piece) != "text":
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

    # -- the assistant's blocks -----------------------------------------------------------------------------------

    def _reasoning(self, content: Fields, number: int) -> None:
        if _only_member(content) == "redactedContent":
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
            kind: AsideKind = "server_tool" if is_server(member, value) else "unknown_event"
            place = "" if member in MARKS else block.place
            self.parts.append(Aside(VENDOR, kind, CONTENT + member, raw, block=number, place=place))
            return
        fields = block.needed_fields(member)
        arguments = fields.peek("input")
        text = fields.text_of("input") if isinstance(arguments, dict) and arguments else ""
        self.parts += asides_of(member, fields.rest(), number, text)


def _result(fields: Fields) -> ToolResult:
    result = ToolResult(fields.needed("toolUseId"), place=fields.place)
    parts = BlockReader("toolResult").read(fields.needed_each("content"))
    result.parts = cast("list[Text | Media | Aside]", parts)
    status = fields.string("status")
    if status not in {None, "success", "error"}:
        raise fields.wrong(f"'success' or 'error' is needed, not {quoted(status)}", "status")
    result.is_error = status == "error"
    result.extras = fields.rest() or None
    return result


def _media(fields: Fields, member: str) -> Media:
    media = Media(MEDIA[member], place=fields.place)
    form = fields.string("format")
    if form is not None:
        media.media_type = MEDIA_TYPES[member].get(form, f"{'application' if member == 'document' else member}/{form}")
    source = fields.needed_fields("source")
    match _only_member(source):
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


def _only_member(union: Fields) -> str:
    """The one member of a union. Raises BadRequest where there are none or several."""
    match union.names:
        case [member]:
            return member
        case names:
            raise union.wrong(f"one member is needed, not {quoted_all(names) or 'none'}")


def _cache_mark(block: Fields) -> CacheMark | None:
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
