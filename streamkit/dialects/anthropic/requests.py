"""Read and write Anthropic's requests: messages, options, tools and the tool choice.

Each message becomes one turn; the text of ``system`` becomes a turn before them. Blocks that only this vendor understands
become asides (parts with content of one vendor): the assistant's as the frames of a stream (``asides.py``), others whole.
Blocks that add or withdraw tools (``tool_addition``, ``tool_removal``) are asides and also change the tools of the request,
because other dialects have no such blocks.
Another vendor's signatures and opaque reasoning are written in a marked form ("sealed"), from which the reader restores them
(``vocabulary/sealed_reasoning.py``). Members that have no neutral form stay in the request's extras.

``max_tokens`` is mandatory: it is the target's if the request has none. Sampling parameters are refused since API version
2026-10-21: for another dialect's request they are written only if the provider's version is older.

Compaction: the edit ``compact_20260112`` makes a summary once the input is long. A request with ``compaction`` returns only
the summary, and refuses members that shape a reply, including other edits. Each of the two needs a beta header, and so does a
block of such a summary in the history.

Source: dialects.md §3.0, §3.2, §3.3, §7.3, §7.4; seeds.md S2; quirks.md R14; anthropic 2.12, ``BetaCompactionConfigParam``,
``BetaCompact20260112EditParam`` and its tool runner; Anthropic, "Compaction", for the least trigger and the models.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from typing import Any, Final, cast

import orjson
from attrs import evolve

from streamkit.conversation.media import decoded_text, media_type_of
from streamkit.conversation.messages import (
    CacheMark,
    Compaction,
    Media,
    Options,
    OutputFormat,
    Part,
    Reasoning,
    RedactedReasoning,
    Request,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    Turn,
    Unreadable,
    WebSearch,
)
from streamkit.dialects.anthropic import wire
from streamkit.dialects.anthropic.asides import (
    FINDER_NAMES,
    AnthropicBlocks,
    aside_of,
    frames_of,
    is_foreign,
    is_made,
    is_server_tool,
)
from streamkit.dialects.bodies import claude
from streamkit.dialects.bodies.responses import Block
from streamkit.dialects.lowering import Capabilities, Lowering, Place, leading_of, model_for
from streamkit.dialects.members.fields import (
    CONTENT,
    Fields,
    RequestReader,
    add_missing,
    is_deferred,
    plain_or_list,
    read_options,
    server_tool,
    unknown_part,
    without_none,
)
from streamkit.dialects.members.values import text_of
from streamkit.dialects.profiles import Provider, Target
from streamkit.dialects.streams.compactions import OPENAIS, SUMMARY, openais_in
from streamkit.dialects.vocabulary.client_tools import ANTHROPIC, TOOLSETS, toolset
from streamkit.dialects.vocabulary.sealed_reasoning import MADE
from streamkit.dialects.vocabulary.web_search import location_out, read_search
from streamkit.events import Aside, Opaque
from streamkit.report import StreamReport
from streamkit.text.identifiers import flat_name
from streamkit.text.quoting import quoted

#: Blocks that are allowed in messages of one role only.
ONLY: Final = {**dict.fromkeys(("thinking", "redacted_thinking", "tool_use"), "assistant"), "tool_result": "user"}
#: The blocks that a system message may have.
IN_SYSTEM: Final = frozenset({"text", wire.ADDITION, wire.REMOVAL})
#: The member of a system message with the effort from there on, and the type of its aside if the message has no content.
CONFIG: Final = "output_config"
#: By the block's type: types of ``source`` that a streamkit ``Media`` can hold. A block with another source becomes an aside.
SOURCES: Final = {
    "image": frozenset({"base64", "url", "file"}),
    "document": frozenset({"base64", "url", "file", "text"}),
}
_CONTAINER: Final = Unreadable("a container by its id", "send its files in the messages")
#: What only Anthropic's servers can read.
STORES: Final = {
    "container": {
        "": _CONTAINER,
        "id": _CONTAINER,
        "skills": [{"skill_id": Unreadable("a skill by its id", "send the text of the skill as `system`")}],
    }
}
#: Members of the compaction edit that a streamkit ``Compaction`` can hold.
READ: Final = frozenset({"type", "trigger", "pause_after_compaction", "instructions"})
#: The version of the web search tool that every version of the server has.
SEARCH_TYPE: Final = f"{wire.WEB_SEARCH}20250305"
SEARCH_NAME: Final = "web_search"
#: The type of the search of tools that is defined for another dialect's. Its queries are words, not regular expressions.
FINDER_TYPE: Final = f"{FINDER_NAMES[0]}_20251119"
#: The ``anthropic-beta`` values that the server demands for a compaction edit, and for a request that returns a summary.
EDIT_BETA, SUMMARY_BETA = "compact-2026-01-12", "compact-2026-09-04"
LEAST_TRIGGER: Final = 50_000  # the smallest trigger of a compaction that the server takes, in tokens


# -- reading -----------------------------------------------------------------------------------------------------------


class AnthropicRequestReader(RequestReader):
    """Reads one request, member by member."""

    dialect = "anthropic"
    stores = STORES

    def __init__(self, report: StreamReport) -> None:
        super().__init__(report)
        self._changes: list[Fields] = []  # blocks that add or withdraw tools
        self._effort: str | None = None  # the effort for the current turn of the user, if a system message set one

    def read_turns(self, fields: Fields) -> None:
        """Read the member ``system``, which is a string or text blocks, and the messages."""
        if parts := BlockReader("system").read(fields.text_or_each("system")):
            self.turns.append(Turn("system", parts))
        for message in fields.needed_each("messages"):
            self._message(message)

    def _message(self, message: Fields) -> None:
        role = claude.role_of(message)
        config = message.fields(CONFIG) if role == "system" else None
        if config is not None:
            self._effort = text_of(config.peek("effort")) or self._effort
        if "content" not in message and config is not None:
            self.turns.append(
                Turn(role, [Aside(wire.VENDOR, "metadata", CONFIG, config.rest())], extras=message.rest() or None)
            )
            return
        if "content" not in message:
            raise message.wrong("is missing; must be a string or a list of blocks", "content")
        reader = BlockReader(role)
        parts = reader.read(message.text_or_each("content"))
        self.unreadable += reader.unreadable
        self._changes += reader.changes
        if role == "user" and not all(isinstance(part, ToolResult) for part in parts):
            self._effort = None
        self.turns.append(Turn(role, parts, extras=message.rest() or None))

    def request(self, fields: Fields) -> Request:
        request = super().request(fields)
        if self._effort is not None:
            request.updates = {"thinking": evolve(request.options.thinking or Thinking(), effort=self._effort)}
        return request

    def options(self, fields: Fields) -> Options:
        config = fields.fields("output_config")
        metadata = fields.fields("metadata")
        return read_options(
            fields,
            wire.OPTIONS,
            thinking=claude.read_thinking(fields, config.string("effort") if config else None),
            compaction=read_compaction(fields),
            output=self._output(config, "format") or self._output(fields, "output_format"),
            # other vendors have this tier, too; other values stay in the request's extras
            service_tier=fields.string("service_tier") if fields.peek("service_tier") == "auto" else None,
            user=metadata.string("user_id") if metadata else None,
        )

    def _output(self, fields: Fields | None, name: str) -> OutputFormat | None:
        """Read the output format from ``output_config``, or from its place in the beta version."""
        form = None if fields is None else fields.fields(name)
        if form is None or form.peek("type") != "json_schema":
            return None
        form.take("type")
        if "schema" not in form:
            raise form.wrong("is missing; must be a JSON schema", "schema")
        return OutputFormat("schema", form.take("schema"))

    def tools(self, fields: Fields) -> list[Tool]:
        """Return the tools of the request, and the tools that blocks of its messages define."""
        tools = [read for tool in fields.each("tools") for read in self._tools(tool)]
        for change in self._changes:
            tool = change.needed_fields("tool")
            added = self.tool(tool.needed_fields("definition")) if tool.peek("type") == wire.DEFINITION else None
            name = tool.peek("name") if added is None else added.name
            for known in tools:
                if known.name == name:
                    known.withdrawn = added is not None or change.peek("type") == wire.REMOVAL
            tools += [] if added is None else [evolve(added, loaded=True)]
        return tools

    def _tools(self, tool: Fields) -> list[Tool]:
        """Return a tool, or the functions of a toolset."""
        kind = str(tool.peek("type"))
        if (row := ANTHROPIC.get(kind)) is None and kind not in TOOLSETS:
            return [self.tool(tool)]
        raw, cache = dict(tool.peek_all()), cache_mark(tool)
        tool.mapping("configs")  # raises an error for anything but an object
        tool.rest()
        return toolset(raw, cache) if row is None else [row.tool(raw, cache)]

    def tool(self, tool: Fields) -> Tool:
        kind = tool.string("type")
        if kind is not None and kind != "custom":
            raw, finds_tools = {**tool.peek_all(), "type": kind}, kind.startswith(FINDER_NAMES)
            mark = cache_mark(tool) if finds_tools else None
            read = evolve(server_tool(kind, tool), raw=raw, cache=mark, finds_tools=finds_tools)
            if kind.startswith(wire.WEB_SEARCH):
                options = {key: value for key, value in (read.raw or {}).items() if key not in {"type", "name"}}
                read.search = read_search(options)
            return read
        return Tool(
            tool.needed("name"),
            tool.string("description"),
            tool.mapping("input_schema"),
            tool.boolean("strict"),
            cache=cache_mark(tool),
            deferred=is_deferred(tool),
            extras=tool.rest() or None,
        )

    def tool_choice(self, fields: Fields) -> ToolChoice | None:
        choice = fields.fields("tool_choice")
        if choice is None:
            return None
        serial = choice.boolean("disable_parallel_tool_use")
        parallel = None if serial is None else not serial
        kind = choice.needed("type")
        if kind not in claude.CHOICES:
            raise choice.wrong(f"must be 'auto', 'any', 'tool' or 'none', not {quoted(kind)}", "type")
        return ToolChoice(claude.CHOICES[kind], (choice.needed("name"),) if kind == "tool" else (), parallel)


class BlockReader(claude.BlockParts):
    """Reads content blocks as parts."""

    signer = wire.VENDOR

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.changes: list[Fields] = []  #: blocks that add or withdraw tools

    def block(self, block: Fields, number: int) -> None:
        kind = block.needed("type")
        if self.place == "system" and kind not in IN_SYSTEM:
            raise block.wrong(f"must be 'text' in a system message, not {quoted(kind)}", "type")
        if ONLY.get(kind, self.place) != self.place:
            raise block.wrong(f"{quoted(kind)} is only allowed in {ONLY[kind]} messages", "type")
        match kind:
            case "text":
                self._text_block(block, number)
            case "image" | "document" if _source_kind(block) in SOURCES[kind]:
                self.parts.append(self._media(block, kind))
            case "container_upload" if self.place != "assistant":
                self.parts.append(self._upload(block, kind))
            case "thinking":
                text, signature = block.string("thinking") or "", self.signature(block.string("signature"))
                self.parts.append(Reasoning(text, "summary", signature, block.rest() or None, number))
            case "redacted_thinking":
                data = block.needed("data")
                self.redacted(data, number, block.rest() or None)
            case "compaction" if (blob := openais_in(block.peek("encrypted_content"))) is not None:
                self.unreadable.append(evolve(SUMMARY, path=block.place, reader="openai-responses"))
                block.rest()
                self.parts.append(RedactedReasoning(Opaque(OPENAIS, blob), block=number))
            case "compaction" if isinstance(block.peek("content"), str):
                summary = block.peek("content")
                item = {"type": kind, **block.rest()}
                self.changes += Fields(item, block.path, block.body).each("tool_changes")
                self.parts.append(Text(summary, block=number, item=item))
            case wire.ADDITION | wire.REMOVAL:
                aside = unknown_part(wire.VENDOR, kind, block, number)
                self.changes.append(Fields(aside.raw, block.path, block.body))
                self.parts.append(evolve(aside, kind="metadata", place=""))
            case "container_upload" if self.place == "user":
                native = unknown_part(wire.VENDOR, kind, block, number)
                file_id = native.raw.get("file_id")
                self.parts.append(Media("file", file_id=file_id, place=block.place, native=native))
            case "tool_use":
                self.call(self._call(block))
            case "tool_result":
                self.parts.append(self._result(block))
            case _:
                self._aside(block, kind, number)

    def _text_block(self, block: Fields, number: int) -> None:
        text = self.last_text = Text(block.needed("text"), cache=cache_mark(block), block=number)
        citations = block.listed("citations")
        text.extras = block.rest() or None
        self.parts.append(text)
        for citation in citations:
            vendor = MADE if is_foreign(citation) else wire.VENDOR
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

    def _upload(self, block: Fields, kind: str) -> Media:
        file_id = block.needed("file_id")
        block.replace("file_id", file_id)  # the same dialect writes the whole block
        return Media("file", file_id=file_id, place=block.place, native=unknown_part(wire.VENDOR, kind, block))

    def _call(self, block: Fields) -> ToolCall:
        call = claude.call_of(block, "id")
        if isinstance(block.peek("toolset_name"), str):
            call.name = flat_name(block.peek("toolset_name"), call.name)
        call.cache = cache_mark(block)
        call.extras = wire.without_defaults(block.rest()) or None
        return call

    def _aside(self, block: Fields, kind: str, number: int) -> None:
        if self.place != "assistant":
            part = unknown_part(wire.VENDOR, kind, block, number)
            self.parts.append(evolve(part, kind="server_tool", place="") if is_server_tool(kind) else part)
            return
        arguments = block.peek("input")
        text = block.text_of("input") if isinstance(arguments, dict) and arguments else None
        raw = {"type": kind, **block.rest()}
        if is_made(raw):  # another provider ran this search, so Anthropic's server would refuse it
            self.parts.append(Aside(MADE, "server_tool", f"{CONTENT}{kind}", raw, block=number))
            return
        self.parts += [aside_of(frame, kind, number) for frame in frames_of(raw, number, text)]

    def _result(self, block: Fields) -> ToolResult:
        call_id = block.needed("tool_use_id")
        parts = cast("list[Text | Media | Aside]", BlockReader("result").read(block.text_or_each("content")))
        result = ToolResult(call_id, parts, place=block.place)
        result.is_error = block.boolean("is_error") or False
        result.cache = cache_mark(block)
        result.extras = block.rest() or None
        return result


def cache_mark(fields: Fields) -> CacheMark | None:
    """Read the ``cache_control`` of a block or a tool. Raises BadRequest for an unknown value."""
    control = fields.fields("cache_control")
    if control is None:
        return None
    kind, ttl = control.needed("type"), control.string("ttl")
    if kind != "ephemeral":
        raise control.wrong(f"must be 'ephemeral', not {quoted(kind)}", "type")
    if ttl not in claude.CACHE_SPANS:
        raise control.wrong(f"must be '5m' or '1h', not {quoted(ttl)}", "ttl")
    return claude.CACHE_SPANS[ttl]


def _source_kind(block: Fields) -> str | None:
    """Return the type of a block's ``source``. A missing source counts as base64, so that its reader raises the error."""
    source = block.peek("source")
    kind = source.get("type") if isinstance(source, dict) else "base64"
    return kind if isinstance(kind, str) else "base64"


def read_compaction(fields: Fields) -> Compaction | None:
    """Read what ``compaction`` or an edit in ``context_management`` requests. Other edits stay in ``context_management``."""
    raw = fields.peek("compaction")
    summary = fields.fields_of_type("compaction", {wire.SUMMARIZE})
    if summary is not None:
        summary.needed("type")
        words = _instructions(summary.string("instructions"))
        return Compaction(now=True, instructions=words, native={"compaction": raw})
    management = fields.peek("context_management")
    listed = management.get("edits") if isinstance(management, dict) else None
    edits: list[Any] = listed if isinstance(listed, list) else []
    edit = next((edit for edit in edits if isinstance(edit, dict) and edit.get("type") == wire.EDIT), None)
    if edit is None:
        return None
    trigger, pause = edit.get("trigger"), edit.get("pause_after_compaction")
    value = trigger.get("value") if isinstance(trigger, dict) and trigger.get("type") == "input_tokens" else None
    tokens = value if type(value) is int else None
    left = {name: value for name, value in edit.items() if name not in READ}
    if tokens is None and trigger is not None:  # the trigger counts something other than tokens
        left["trigger"] = trigger
    others = [other for other in edits if other is not edit] + ([{"type": wire.EDIT, **left}] if left else [])
    rest = {name: value for name, value in management.items() if name != "edits"}
    fields.replace("context_management", rest | ({"edits": others} if others else {}) or None)
    return Compaction(
        threshold=tokens,
        pause=pause if isinstance(pause, bool) else None,
        instructions=_instructions(edit.get("instructions")),
        native={"context_management": management},
    )


def _instructions(text: Any) -> str | None:
    """Return instructions; None if they are blank."""
    return text if isinstance(text, str) and text.strip() else None


def features_of(request: Request) -> dict[str, str]:
    """Return the beta headers that the server demands for a request that was translated from another dialect."""
    compaction = request.options.compaction
    betas = [] if compaction is None else [SUMMARY_BETA if compaction.now else EDIT_BETA]
    parts = [part for turn in request.turns for part in turn.parts]
    summaries = [part.item for part in parts if isinstance(part, Text) and part.item is not None]
    betas += [SUMMARY_BETA if summary.get("signature") else EDIT_BETA for summary in summaries]
    return {"anthropic-beta": ",".join(dict.fromkeys(betas))} if betas else {}


# -- what the servers take ---------------------------------------------------------------------------------------------


def fit_media(media: Media, place: Place, to: Lowering) -> Media | None:
    """Return an image or a document of the user or of a result as the server takes it; None, and a loss, for other media."""
    fit = _fit(media, to) if place in {"user", "result"} else None  # the assistant can't have media (dialects.md §3.0)
    if fit is None:
        to.lose("media", media.media_type or media.kind)
        return None
    to.lose_look(media, *(("name",) if media.kind == "image" else ()))
    return evolve(fit, name=None) if media.kind == "image" else fit


def own_media(media: Media, _place: Place, to: Lowering) -> Media | None:
    """Return an image or a document wherever it is; None, and a loss, for other media."""
    if media.kind in {"image", "file"}:
        return media
    to.lose("media", media.media_type or media.kind)
    return None


def _fit(media: Media, to: Lowering) -> Media | None:
    if media.kind not in {"image", "file"}:
        return None
    if media.data is None:
        known = media.url is not None and (media.kind == "image" or media.media_type in {None, "application/pdf"})
        return media if known else None
    kind = media_type_of(media)
    if kind in (wire.IMAGE_TYPES if media.kind == "image" else {"application/pdf"}):
        return media
    if media.kind == "image" or not kind.startswith("text/") or decoded_text(media.data) is None:
        return None
    if kind != "text/plain":
        to.lose("metadata", kind)
    return evolve(media, media_type="text/plain")


def search(wanted: WebSearch, to: Lowering) -> dict[str, Any]:
    """Return Anthropic's definition of a web search tool with the requested settings."""
    allowed, blocked = list(wanted.allowed_domains), list(wanted.blocked_domains)
    if allowed and blocked:  # the server takes only one of them, and the allowed domains restrict more
        to.lose("parameter", "web_search.blocked_domains")
        blocked = []
    return without_none(
        type=SEARCH_TYPE,
        name=SEARCH_NAME,
        max_uses=wanted.max_uses,
        allowed_domains=allowed or None,
        blocked_domains=blocked or None,
        user_location=location_out(wanted),
    )


def compaction_fits(request: Request, to: Lowering) -> None:
    """Drop a compaction if the model can't make it. If only a summary is requested, drop the options that shape a reply."""
    options, compaction = request.options, request.options.compaction
    if compaction is None:
        return
    if not to.takes.model.compacts:
        to.lose("parameter", "compaction")
        options.compaction = None
        return
    options.compaction = evolve(compaction, native=None)
    if not compaction.now:
        if compaction.threshold is not None and compaction.threshold < LEAST_TRIGGER:
            to.lose("parameter", "compaction.threshold")
        return
    if compaction.threshold is not None:
        to.lose("parameter", "compaction.threshold")
    if options.stop:
        to.lose("parameter", "stop")
    if options.output is not None and options.output.kind != "text":
        to.lose("parameter", "output")
    options.stop, options.output = (), None
    if request.tool_choice is not None and request.tool_choice.mode == "required":
        to.lose("tool_choice", "required")
        request.tool_choice = None


def bounded(request: Request, to: Lowering) -> None:
    """Set ``max_tokens`` if the request has none: the target's bound, plus the thinking budget, which counts towards it."""
    options, most = request.options, to.takes.model.output
    if options.max_tokens is None:
        bound = to.target.max_tokens + ((options.thinking and options.thinking.budget_tokens) or 0)
        options.max_tokens = bound if most is None else min(bound, most)


FOREIGN: Final = Capabilities(
    dialect="anthropic",
    vendor=wire.VENDOR,
    title="Anthropic",
    is_claude=True,
    cites=True,
    part_extras=claude.document_extras,
    ids=re.compile(r"[A-Za-z0-9_-]+"),
    names=wire.TOOLS.names,
    users=re.compile(r"[^@]{1,256}"),  # addresses with @ are refused
    signs_reasoning=wire.VENDOR,
    blank_texts="some",
    arguments="object",
    media=fit_media,
    marked=(Text, Media, ToolCall, ToolResult, Tool),
    same_marks=frozenset({"anthropic"}),
    needs_marks=True,
    system="behind user",
    alternate=True,
    needs_user="messages",
    parallel=True,
    search_options=frozenset({"max_uses", "allowed_domains", "blocked_domains", "location"}),
    can_search=lambda request: all(tool.name != SEARCH_NAME for tool in request.tools if tool.kind != "server"),
    search=search,
    finder={"type": FINDER_TYPE, "name": FINDER_NAMES[0]},
    choice_extras="tool_choice",
    declares_called=True,
    options=frozenset({"max_tokens", "stop", "thinking", "compaction", "output", "service_tier", "user"}),
    service_tiers=frozenset({"auto", "standard_only"}),
    first=(compaction_fits,),
    arranged=(claude.schemas_held, claude.thinking_fits),
    last=(
        claude.sampling_fits,
        claude.parallel_if_forbidden,
        claude.choice_fits_thinking,
        claude.form_has_schema,
        claude.schemas_given,
        bounded,
    ),
)
#: What the servers take from Anthropic's clients. For Claude, ``capabilities`` adds the rules for call ids, because a client
#: that changed its model may still have the former model's ids in its history.
OWN: Final = evolve(
    FOREIGN,
    ids=None,
    names=None,
    media=own_media,
    alternate=False,
    declares_called=False,
    options=FOREIGN.options | {*wire.SAMPLING},
    service_tiers=None,
    first=(),
    arranged=(),
    last=(claude.choice_fits_thinking, claude.form_has_schema, claude.schemas_given, bounded),
)


def capabilities(source: str, name: str | None, provider: Provider | None) -> Capabilities:
    """Return what the servers take of a request of the dialect ``source`` for the model called ``name``."""
    if source == FOREIGN.dialect:
        own = evolve(OWN, model=claude.own_model(name, provider))
        return evolve(own, ids=FOREIGN.ids) if "claude" in (name or "").lower() else own
    model = model_for(name, provider, claude.UNKNOWN_CLAUDE, claude.EFFORTS)
    sampling = wire.SAMPLING if wire.version_of(provider) < wire.WITHOUT_SAMPLING else ()
    return evolve(
        FOREIGN,
        model=model,
        most_marks=claude.MOST_MARKS if model.cache_marks else 0,
        needs_marks=bool(model.cache_marks),
        options=FOREIGN.options.union(sampling),
    )


# -- writing -----------------------------------------------------------------------------------------------------------


def write(request: Request, target: Target, report: StreamReport) -> dict[str, Any]:
    """Return the body of a lowered request (only what the dialect can express) as JSON values."""
    turns = [(turn, blocks) for turn in request.turns if (blocks := _content(turn.parts, report))]
    leading = leading_of([turn for turn, _ in turns])
    # a system message with members of its own stays a message: the body's `system` has no place for them
    leading = next((number for number, (turn, _) in enumerate(turns[:leading]) if turn.extras), leading)
    options = request.options
    body = without_none(
        model=request.model,
        max_tokens=options.max_tokens,
        system=plain_or_list([block for _, blocks in turns[:leading] for block in blocks]) or None,
        messages=[
            add_missing({"role": turn.role, **_content_member(blocks)}, turn.extras) for turn, blocks in turns[leading:]
        ],
        tools=_tools([tool for tool in request.tools if not tool.loaded]) or None,
        tool_choice=_choice(request.tool_choice),
        thinking=claude.write_thinking(options.thinking),
        output_config=_output_config(options) or None,
        stop_sequences=list(options.stop) or None,
        metadata=None if options.user is None else {"user_id": options.user},
        service_tier=options.service_tier,
        stream=request.stream,
    )
    compaction = options.compaction
    body |= {} if compaction is None else dict(compaction.native or _compaction_members(compaction))
    body |= without_none(**{name: getattr(options, name) for name in wire.SAMPLING})
    body = add_missing(body, request.extras)
    provider = target.provider
    if isinstance(provider, wire.AnthropicProvider) and provider.model_in_path:
        body.pop("model", None)
        body["anthropic_version"] = provider.api_version
    return body


def _content(parts: Sequence[Part], report: StreamReport) -> list[Block]:
    blocks = AnthropicBlocks(report)
    for part in parts:
        match part:
            case Text(item=item) if (
                item is not None
            ):  # a document, or a compaction that a client of any dialect sent back
                blocks.add(_marked(dict(item), part))
            case Text():
                blocks.add_text(_marked({"type": "text", "text": part.text}, part), part.block)
            case Aside(type=str(name)) if name == CONFIG:
                blocks.add({CONFIG: part.raw})
            case Aside():
                blocks.aside(part)
            case Media(native=native) if native is not None and native.vendor == wire.VENDOR:
                blocks.aside(native)
            case _:
                blocks.add(_block(part, report))
    return blocks.finish()


def _content_member(blocks: list[Block]) -> dict[str, Any]:
    """Return the content of a message, or the ``output_config`` of a system message without content."""
    return blocks[0] if blocks[0].keys() == {CONFIG} else {"content": plain_or_list(blocks)}


def _block(part: Part, report: StreamReport) -> Block:
    match part:
        case Media():
            kind = "image" if part.kind == "image" else "document"
            return _marked(without_none(type=kind, source=_source(part), title=part.name), part)
        case ToolCall():
            arguments = orjson.Fragment(part.arguments)
            toolset = (part.extras or {}).get("toolset_name")  # the name of a call in a toolset has no prefix
            name = part.name.removeprefix(f"{toolset}__") if isinstance(toolset, str) else part.name
            return _marked({"type": "tool_use", "id": part.id, "name": name, "input": arguments}, part)
        case ToolResult():
            blocks = _content(part.parts, report)
            written = without_none(
                type="tool_result",
                tool_use_id=part.call_id,
                content=plain_or_list(blocks) if blocks else None,
                is_error=part.is_error or None,
            )
            return _marked(written, part)
        case Reasoning(signature=signature) if signature is not None:
            return add_missing({"type": "thinking", "thinking": part.text, "signature": signature.blob}, part.extras)
        case RedactedReasoning():
            return add_missing({"type": "redacted_thinking", "data": part.opaque.blob}, part.extras)
    raise TypeError(f"a message can't contain a {type(part).__name__}")


def _marked(written: Block, value: Text | Media | ToolCall | ToolResult | Tool) -> Block:
    """Add to a block or a tool its cache mark and the members that only this dialect knows."""
    if value.cache is not None:
        written["cache_control"] = dict(claude.CACHE_CONTROLS[value.cache])
    return add_missing(written, value.extras)


def _source(media: Media) -> dict[str, Any]:
    if media.data is None:
        return (
            {"type": "url", "url": media.url} if media.url is not None else {"type": "file", "file_id": media.file_id}
        )
    kind = media_type_of(media)
    if kind == "text/plain":
        return {"type": "text", "media_type": kind, "data": base64.b64decode(media.data).decode()}
    return {"type": "base64", "media_type": kind, "data": media.data}


def _output_config(options: Options) -> dict[str, Any]:
    output, thinking = options.output, options.thinking
    return without_none(
        effort=None if thinking is None else thinking.effort,
        format=None if output is None else {"type": "json_schema", "schema": output.schema},
    )


def _tools(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """Return the definitions. Functions of one toolset have one."""
    before = [None, *(tool.raw for tool in tools)]
    return [_tool(tool) for tool, raw in zip(tools, before, strict=False) if tool.raw is None or tool.raw is not raw]


def _tool(tool: Tool) -> dict[str, Any]:
    if tool.raw is not None:
        return dict(tool.raw)
    written = without_none(
        name=tool.name, description=tool.description, input_schema=tool.parameters, strict=tool.strict
    )
    if tool.deferred:
        written["defer_loading"] = True
    return _marked(written, tool)


def _choice(choice: ToolChoice | None) -> dict[str, Any] | None:
    if choice is None:
        return None
    name = choice.names[0] if choice.mode == "required" and choice.names else None
    kind = "tool" if name is not None else "any" if choice.mode == "required" else choice.mode
    serial = None if choice.parallel is None else not choice.parallel
    return without_none(type=kind, name=name, disable_parallel_tool_use=serial)


def _compaction_members(compaction: Compaction) -> dict[str, Any]:
    if compaction.now:
        return {"compaction": without_none(type=wire.SUMMARIZE, instructions=compaction.instructions)}
    tokens = compaction.threshold
    edit = without_none(
        type=wire.EDIT,
        trigger=None if tokens is None else {"type": "input_tokens", "value": max(tokens, LEAST_TRIGGER)},
        pause_after_compaction=compaction.pause or None,
        instructions=compaction.instructions,
    )
    return {"context_management": {"edits": [edit]}}
