"""Anthropic's requests to the neutral conversation: messages, options, tools, the choice among them.

A message is one turn, and so is the text of ``system``, in front. Blocks that only this vendor understands are asides: the
assistant's as the frames of a stream (``asides.py``), others whole. What another vendor signed or encrypted and was carried
here sealed is that vendor's again (``vocabulary/sealed_reasoning.py``).

``thinking`` and ``output_config`` say together how much to think; what has no word of ours stays a member that only this
dialect knows. A tool of a versioned type is the server's definition, whoever runs it. A summary in place of the conversation
is asked for as an edit of the context, or alone (``compaction``).

Source: dialects.md §3.0, §3.2, §3.3, §7.3, §7.4, quirks.md R14; anthropic 2.12, ``BetaCompact20260112EditParam`` and
``BetaCompactionConfigParam``.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias, cast

from attrs import evolve

from streamkit.conversation.messages import (
    CacheMark,
    Compaction,
    Media,
    Options,
    OutputFormat,
    Part,
    Reasoning,
    RedactedReasoning,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    Turn,
)
from streamkit.dialects.anthropic.asides import aside_of, frames_of, is_foreign, is_made, is_server_tool
from streamkit.dialects.anthropic.wire import EDIT, OPTIONS, SUMMARIZE, VENDOR, WEB_SEARCH, without_defaults
from streamkit.dialects.bodies.claude_requests import CACHE_SPANS, BlockParts, call_of, read_thinking, role_of
from streamkit.dialects.bodies.request_reader import CONTENT, RequestReader, read_options, server_tool, unknown_part
from streamkit.dialects.members.fields import Fields
from streamkit.dialects.streams.compactions import INSTEAD, OPENAIS, openais_in
from streamkit.dialects.vocabulary.sealed_reasoning import MADE
from streamkit.dialects.vocabulary.web_search import read_search
from streamkit.events import Aside, Opaque
from streamkit.text.quoting import quoted

#: Where blocks stand: in a message of that role, or in a tool's result.
Place: TypeAlias = Literal["system", "user", "assistant", "tool_result"]
#: Blocks that may stand in one place only.
ONLY: Final = {**dict.fromkeys(("thinking", "redacted_thinking", "tool_use"), "assistant"), "tool_result": "user"}
#: Kinds of ``source`` that have a form of ours, by the block's type; the others are asides.
SOURCES: Final = {
    "image": frozenset({"base64", "url", "file"}),
    "document": frozenset({"base64", "url", "file", "text"}),
}
#: The ``service_tier`` that other vendors have, too; any other stays this dialect's own.
SERVICE_TIERS: Final = ("auto",)
#: Members of the edit that have a word of ours.
READ: Final = frozenset({"type", "trigger", "pause_after_compaction", "instructions"})


class AnthropicRequestReader(RequestReader):
    """Reads one request, member by member."""

    dialect = "anthropic"

    # -- messages --------------------------------------------------------------------------------------------------

    def read_turns(self, fields: Fields) -> None:
        """The member ``system``, text or text blocks, and the messages."""
        if parts := BlockReader("system").read(fields.text_or_each("system")):
            self.turns.append(Turn("system", parts))
        for message in fields.needed_each("messages"):
            self._message(message)

    def _message(self, message: Fields) -> None:
        role = role_of(message)
        if "content" not in message:
            raise message.wrong("text or a list of blocks is needed", "content")
        reader = BlockReader(role)
        parts = reader.read(message.text_or_each("content"))
        self.unreadable += reader.unreadable
        self.turns.append(Turn(role, parts, extras=message.rest() or None))

    # -- options ---------------------------------------------------------------------------------------------------

    def options(self, fields: Fields) -> Options:
        config = fields.fields("output_config")
        metadata = fields.fields("metadata")
        return read_options(
            fields,
            OPTIONS,
            thinking=read_thinking(fields, config.string("effort") if config else None),
            compaction=read_compaction(fields),
            output=self._output(config, "format") or self._output(fields, "output_format"),
            service_tier=fields.string("service_tier") if fields.peek("service_tier") in SERVICE_TIERS else None,
            user=metadata.string("user_id") if metadata else None,
        )

    def _output(self, fields: Fields | None, name: str) -> OutputFormat | None:
        """The form of the answer: in ``output_config``, or where the beta had it."""
        form = None if fields is None else fields.fields(name)
        if form is None or form.peek("type") != "json_schema":
            return None
        form.take("type")
        if "schema" not in form:
            raise form.wrong("a schema is needed, and there is none", "schema")
        return OutputFormat("schema", form.take("schema"))

    # -- tools -----------------------------------------------------------------------------------------------------

    def tool(self, tool: Fields) -> Tool:
        kind = tool.string("type")
        if kind is not None and kind != "custom":
            read = server_tool(kind, tool)
            if kind.startswith(WEB_SEARCH):
                options = {key: value for key, value in (read.raw or {}).items() if key not in {"type", "name"}}
                read.search = read_search(options)
            return read
        return Tool(
            tool.needed("name"),
            tool.string("description"),
            tool.mapping("input_schema"),
            tool.boolean("strict"),
            cache=cache_mark(tool),
            extras=tool.rest() or None,
        )

    def tool_choice(self, fields: Fields) -> ToolChoice | None:
        choice = fields.fields("tool_choice")
        if choice is None:
            return None
        serial = choice.boolean("disable_parallel_tool_use")
        parallel = None if serial is None else not serial
        match choice.needed("type"):
            case "auto":
                return ToolChoice("auto", parallel=parallel)
            case "none":
                return ToolChoice("none", parallel=parallel)
            case "any":
                return ToolChoice("required", parallel=parallel)
            case "tool":
                return ToolChoice("required", (choice.needed("name"),), parallel)
            case kind:
                raise choice.wrong(f"'auto', 'any', 'tool' or 'none' is needed, not {quoted(kind)}", "type")


class BlockReader(BlockParts):
    """Content blocks to parts."""

    def __init__(self, place: Place) -> None:
        super().__init__(VENDOR)
        self._place = place
        self.unreadable: list[tuple[str, str, str]] = []  # see ``Request.unreadable``

    def read(self, content: str | list[Fields]) -> list[Part]:
        """The parts of one content: a text, or blocks. Raises BadRequest."""
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
                text, signature = block.string("thinking") or "", self.signature(block.string("signature"))
                self.parts.append(Reasoning(text, "summary", signature, block.rest() or None, number))
            case "redacted_thinking":
                data = block.needed("data")
                self.redacted(data, number, block.rest() or None)
            case "compaction" if (blob := openais_in(block.peek("encrypted_content"))) is not None:
                self.unreadable.append((block.place, INSTEAD, "openai-responses"))
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

    # -- the assistant's blocks -----------------------------------------------------------------------------------

    def _call(self, block: Fields) -> ToolCall:
        call = call_of(block, "id")
        call.cache = cache_mark(block)
        call.extras = without_defaults(block.rest()) or None
        return call

    def _aside(self, block: Fields, kind: str, number: int) -> None:
        if self._place != "assistant":
            part = unknown_part(VENDOR, kind, block, number)
            self.parts.append(evolve(part, kind="server_tool", place="") if is_server_tool(kind) else part)
            return
        arguments = block.peek("input")
        text = block.text_of("input") if isinstance(arguments, dict) and arguments else None
        raw = {"type": kind, **block.rest()}
        if is_made(raw):  # the server would refuse what it did not run
            self.parts.append(Aside(MADE, "server_tool", f"{CONTENT}{kind}", raw, block=number))
            return
        self.parts += [aside_of(frame, kind, number) for frame in frames_of(raw, number, text)]

    # -- results ---------------------------------------------------------------------------------------------------

    def _result(self, block: Fields) -> ToolResult:
        result = ToolResult(block.needed("tool_use_id"), place=block.place)
        parts = BlockReader("tool_result").read(block.text_or_each("content"))
        result.parts = cast("list[Text | Media | Aside]", parts)
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


# -- compaction --------------------------------------------------------------------------------------------------------


def read_compaction(fields: Fields) -> Compaction | None:
    """What ``compaction`` or an edit in ``context_management`` asks for. Other edits stay where they are."""
    raw = fields.peek("compaction")
    summary = fields.fields_of_type("compaction", {SUMMARIZE})
    if summary is not None:
        summary.needed("type")
        words = _instructions(summary.string("instructions"))
        return Compaction(now=True, instructions=words, native={"compaction": raw})
    management = fields.peek("context_management")
    listed = management.get("edits") if isinstance(management, dict) else None
    edits: list[Any] = listed if isinstance(listed, list) else []
    edit = next((edit for edit in edits if isinstance(edit, dict) and edit.get("type") == EDIT), None)
    if edit is None:
        return None
    trigger, pause = edit.get("trigger"), edit.get("pause_after_compaction")
    tokens = _tokens(trigger)
    left = {name: value for name, value in edit.items() if name not in READ}
    if tokens is None and trigger is not None:  # it counts something else
        left["trigger"] = trigger
    others = [other for other in edits if other is not edit] + ([{"type": EDIT, **left}] if left else [])
    rest = {name: value for name, value in management.items() if name != "edits"}
    fields.replace("context_management", rest | ({"edits": others} if others else {}) or None)
    return Compaction(
        threshold=tokens,
        pause=pause if isinstance(pause, bool) else None,
        instructions=_instructions(edit.get("instructions")),
        native={"context_management": management},
    )


def _tokens(trigger: Any) -> int | None:
    if not isinstance(trigger, Mapping) or trigger.get("type") != "input_tokens":
        return None
    value = trigger.get("value")
    return value if type(value) is int else None


def _instructions(text: Any) -> str | None:
    """Instructions; blank ones count as none."""
    return text if isinstance(text, str) and text.strip() else None
