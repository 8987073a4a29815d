"""Read and write Bedrock's Converse requests: messages, options, tools and the tool choice.

Each message becomes one turn, and the blocks of ``system`` a turn before them. A block has one member, which names its kind; a
``cachePoint`` marks the part before it. Blocks that only this vendor understands become asides (parts with content of one
vendor): the assistant's as the messages of a stream (``asides.py``), others whole. Another vendor's signatures and opaque
reasoning are sealed, as in Anthropic's requests.

``additionalModelRequestFields`` has members of one model's vendor; those of Claude are read, and are written if the model's id
names Claude. The model and whether to stream are in the URL; a client may put ``modelId`` into the body, which is read. A body
with ``anthropic_version`` is InvokeModel's form for Anthropic's models, and is read as a request of Anthropic's dialect.

Media at a URL are taken from S3 only. Reasoning is sent back if Claude signed it, here or elsewhere, and the model may be
Claude. For the choice ``none`` no tools are offered, except those that the history calls: the server demands these.

Source: dialects.md §6.1, §7.3, §7.4; seeds.md S2; quirks.md R14; botocore's model of ``DocumentBlock``.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from typing import Any, Final, TypeAlias, cast

import orjson
from attrs import evolve

from streamkit.conversation.media import media_type_of
from streamkit.conversation.messages import (
    CacheMark,
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
)
from streamkit.dialects.anthropic.requests import AnthropicRequestReader
from streamkit.dialects.bedrock import wire
from streamkit.dialects.bedrock.asides import STREAMED, BedrockBlocks, asides_of, is_server, text_block
from streamkit.dialects.bodies import claude
from streamkit.dialects.lowering import Capabilities, Lowering, Place, asked_effort, leading_of, model_for, of_turns
from streamkit.dialects.members.fields import (
    CONTENT,
    Fields,
    RequestReader,
    add_missing,
    base64_of,
    kind_of,
    members_of,
    read_options,
    without_none,
)
from streamkit.dialects.members.values import is_base64
from streamkit.dialects.profiles import Provider, Target
from streamkit.errors import BadRequest
from streamkit.events import Aside, AsideKind
from streamkit.report import StreamReport
from streamkit.text.quoting import quoted, quoted_all

#: Blocks that are allowed in messages of one role only.
ONLY: Final = {"toolUse": "assistant", "reasoningContent": "assistant", "toolResult": "user"}
MEDIA: Final = {member: kind for kind, member in wire.MEMBERS.items()}
#: Members of ``source`` that a streamkit ``Media`` can hold. A block with another source becomes an aside.
SOURCES: Final = frozenset({"bytes", "s3Location"})
#: Blocks without text for the model: cache points, and pictures for a guardrail. Other dialects drop them.
MARKS: Final = frozenset({"cachePoint", "guardContent"})
VERSION, BETA = "anthropic_version", "anthropic_beta"  # in InvokeModel's body; headers in Anthropic's API
Block: TypeAlias = dict[str, Any]
#: The characters that a document's name may not have, and the most characters of a name.
UNFIT: Final = re.compile(r"[^A-Za-z0-9 ()\[\]-]+")
NAME_CHARS: Final = 200
NUMBER_CHARS: Final = 10  # room in a name for the number that makes it unique: `` (100000)``
#: A part of an ARN (the id of an AWS resource) that does not say which model is used.
NAMELESS: Final = re.compile(
    r":(?:application-inference-profile|provisioned-model|default-prompt-router|prompt-router)/"
)
IN_S3: Final = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/.*)?")
EXTENSION: Final = re.compile(r"\.[A-Za-z0-9]{1,5}$")


# -- reading -----------------------------------------------------------------------------------------------------------


#: What only Bedrock can read. The prompt itself is named by the model's ARN.
STORES: Final = {
    "promptVariables": Unreadable("a prompt by its ARN", "send the text of the prompt in `system` and `messages`")
}


class BedrockRequestReader(RequestReader):
    """Reads one request, member by member."""

    dialect = "bedrock"
    stores = STORES

    _model: Fields | None = None  # the member ``additionalModelRequestFields``
    _config: Fields | None = None  # the member ``toolConfig``

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
        """Read the member ``system``, which is text blocks, and the messages."""
        if parts := BlockReader("system").read(fields.each("system")):
            self.turns.append(Turn("system", parts))
        for message in fields.needed_each("messages"):
            role = claude.role_of(message)
            parts = BlockReader(role).read(message.needed_each("content"))
            self.turns.append(Turn(role, parts, extras=message.rest() or None))

    def options(self, fields: Fields) -> Options:
        model = self._model
        inference = fields.fields("inferenceConfig")
        options = read_options(inference, wire.INFERENCE) if inference else Options()
        options.top_k = model.integer("top_k") if model else None
        output = fields.fields("outputConfig")
        options.thinking = claude.read_thinking(model, output.string("effort") if output else None)
        options.output = self._output(output) if output else None
        if tier := fields.fields("serviceTier"):
            options.service_tier = tier.needed("type")
        return options

    def _output(self, output: Fields) -> OutputFormat | None:
        """Read a schema, which is JSON text here."""
        form = output.fields_of_type("textFormat", {"json_schema"})
        if form is None:
            return None
        form.needed("type")
        definition = form.needed_fields("structure").needed_fields("jsonSchema")
        text = definition.needed("schema")
        try:
            schema = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            raise definition.wrong(f"must be JSON: {error}", "schema") from error
        return OutputFormat("schema", schema, definition.string("name"), definition.string("description"))

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
            raise schema.wrong("is missing; must be a JSON schema", "json")
        read.extras = spec.rest() or None
        return read

    def tool_choice(self, _fields: Fields) -> ToolChoice | None:
        """Read the choice. Whether calls may be parallel is in Claude's member ``tool_choice``."""
        model = self._model
        choice = self._choice(self._config) if self._config else None
        native = model.peek("tool_choice") if model else None
        if model and isinstance(native, dict) and native.get("type") in (None, "auto"):
            fields = model.needed_fields("tool_choice")
            if (serial := fields.boolean("disable_parallel_tool_use")) is not None:
                fields.take("type")
                choice = choice or ToolChoice()
                choice.parallel = not serial
        return choice

    def _choice(self, config: Fields) -> ToolChoice | None:
        choice = config.fields("toolChoice")
        if choice is None:
            return None
        member = _only_member(choice)
        if member not in {"auto", "any", "tool"}:
            raise choice.wrong(f"must be 'auto', 'any' or 'tool', not {quoted(member)}")
        chosen = choice.needed_fields(member)
        return ToolChoice(claude.CHOICES[member], (chosen.needed("name"),) if member == "tool" else ())


class BlockReader(claude.BlockParts):
    """Reads content blocks as parts."""

    signer = wire.SIGNER

    def block(self, block: Fields, number: int) -> None:
        member = _only_member(block)
        if is_server(member, block.peek(member)):
            self._aside(block, member, number)
            return
        if ONLY.get(member, self.place) != self.place:
            raise block.wrong(f"is only allowed in {ONLY[member]} messages", member)
        match member:
            case "text":
                self.parts.append(self._text_part(block.needed("text"), number))
            case "document" if _source_kind(block, member) == "text":
                self.parts.append(_media(block.needed_fields(member), member))
            case "image" | "document" | "video" | "audio" if _source_kind(block, member) in SOURCES:
                self.parts.append(_media(block.needed_fields(member), member))
            case "toolUse":
                use = block.needed_fields("toolUse")
                call = claude.call_of(use, "toolUseId")
                call.extras = use.rest() or None
                self.call(call)
            case "toolResult":
                self.parts.append(_result(block.needed_fields("toolResult")))
            case "reasoningContent":
                self._reasoning(block.needed_fields("reasoningContent"), number)
            case "citationsContent":
                self._cited(block.needed_fields("citationsContent"), number)
            case "json" if self.place == "result":
                self.parts.append(Text(block.text_of("json"), extras={"json": True}, block=number))
            case "cachePoint" if self._mark(_cache_mark(block)):
                block.take("cachePoint")
            case _:
                self._aside(block, member, number)

    def _text_part(self, text: str, number: int) -> Text:
        self.last_text = Text(text, block=number)
        return self.last_text

    def _cited(self, cited: Fields, number: int) -> None:
        """Read text with citations; text in several pieces is joined."""
        pieces = []
        for piece in cited.each("content"):
            if _only_member(piece) != "text":
                raise piece.wrong("must have the member 'text'")
            pieces.append(piece.needed("text"))
        text = self._text_part("".join(pieces), number)
        self.parts.append(text)
        for citation in cited.listed("citations"):
            self.parts.append(Aside(wire.VENDOR, "citation", "citation", citation, block=number))
        text.extras = cited.rest() or None

    def _mark(self, mark: CacheMark | None) -> bool:
        """Mark the part before a cache point; return False if it can't be marked."""
        last = self.parts[-1] if self.parts else None
        if mark is None or not isinstance(last, Text | Media | ToolCall | ToolResult) or last.cache is not None:
            return False
        last.cache = mark
        return True

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
        if self.place != "assistant" or member not in STREAMED:
            raw = {member: block.take(member)}
            kind: AsideKind = "server_tool" if is_server(member, value) else "unknown_event"
            place = "" if member in MARKS else block.place
            self.parts.append(Aside(wire.VENDOR, kind, CONTENT + member, raw, block=number, place=place))
            return
        fields = block.needed_fields(member)
        arguments = fields.peek("input")
        text = fields.text_of("input") if isinstance(arguments, dict) and arguments else ""
        self.parts += asides_of(member, fields.rest(), number, text)


def _result(fields: Fields) -> ToolResult:
    call_id = fields.needed("toolUseId")
    parts = cast("list[Text | Media | Aside]", BlockReader("result").read(fields.needed_each("content")))
    result = ToolResult(call_id, parts, place=fields.place)
    status = fields.string("status")
    if status not in {None, "success", "error"}:
        raise fields.wrong(f"must be 'success' or 'error', not {quoted(status)}", "status")
    result.is_error = status == "error"
    result.extras = fields.rest() or None
    return result


def _media(fields: Fields, member: str) -> Media:
    media = Media(MEDIA[member], place=fields.place)
    form = fields.string("format")
    if form is not None:
        family = "application" if member == "document" else member
        media.media_type = wire.MEDIA_TYPES[member].get(form, f"{family}/{form}")
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
    """Return the one member of a union. Raises BadRequest if there are none or several."""
    match union.names:
        case [member]:
            return member
        case names:
            raise union.wrong(f"must have exactly one member, not {quoted_all(names) or 'none'}")


def _cache_mark(block: Fields) -> CacheMark | None:
    """Return the mark in a ``cachePoint`` without taking the member; None if it has no neutral form."""
    point = block.peek("cachePoint")
    if not isinstance(point, dict):
        raise block.wrong(f"must be an object, not {kind_of(point)}", "cachePoint")
    kind, ttl = point.get("type"), point.get("ttl")
    known = kind == "default" and isinstance(ttl, str | None) and not point.keys() - {"type", "ttl"}
    return claude.CACHE_SPANS.get(ttl) if known else None


def _source_kind(block: Fields, member: str) -> str:
    """Return the member of a media's ``source``. A missing source counts as ``bytes``, so that its reader raises the error."""
    value = block.peek(member)
    source = value.get("source") if isinstance(value, dict) else None
    return next(iter(source)) if isinstance(source, dict) and len(source) == 1 else "bytes"


# -- what the servers take ---------------------------------------------------------------------------------------------


def fit_media(media: Media, place: Place, to: Lowering) -> Media | None:
    """Return media that the server accepts in this place and format. For other media, count a loss and return None."""
    member = wire.MEMBERS[media.kind]
    allowed = place == "user" or (place == "result" and member != "audio")
    known = media.data is not None or (media.url is not None and IN_S3.fullmatch(media.url) is not None)
    form = _format_by_address(media, member) if media.media_type is None and media.url else _format(media, member)
    if not allowed or not known or form is None:
        to.lose("media", media.media_type or media.kind)
        return None
    to.lose_look(media, *(() if member == "document" else ("name",)))
    return evolve(media, media_type=wire.MEDIA_TYPES[member][form])


def own_media(media: Media, _place: Place, to: Lowering) -> Media | None:
    """Return media with a source, and with a format if the server demands one. Else count a loss and return None."""
    member = wire.MEMBERS[media.kind]
    known = media.data is not None or (media.url or "").startswith("s3://")
    if known and (member == "document" or _own_format(media, member) is not None):
        return media
    to.lose("media", media.media_type or media.kind)
    return None


def _format_by_address(media: Media, member: str) -> str | None:
    """Return the media format that the ending of a URL names; None if Bedrock does not know the ending."""
    ending = (media.url or "").rpartition(".")[2].lower()
    return ending if ending in wire.FORMATS[member].values() else {"jpg": "jpeg"}.get(ending)


def _format(media: Media, member: str) -> str | None:
    """Return the server's format name for a media's type; None if the server has no name for this type."""
    kind = media_type_of(media).partition(";")[0].strip().lower()
    return wire.FORMATS[member].get(wire.SAME_TYPES.get(kind, kind))


def _own_format(media: Media, member: str) -> str | None:
    if member == "document" and media.media_type is None:
        return None
    return _format(media, member) or media_type_of(media).partition(";")[0].strip().lower().partition("/")[2]


def documents_named(request: Request, to: Lowering) -> None:
    """Give documents unique names that the server takes. Their names are the same in each request."""
    names = DocumentNames(to)
    turns = []
    for turn in request.turns:
        named: dict[int, Part] = {}
        for part in sorted(turn.parts, key=lambda part: not isinstance(part, ToolResult)):  # results are written first
            named[id(part)] = names.named(part)
        turns.append(evolve(turn, parts=[named[id(part)] for part in turn.parts]))
    request.turns = turns


class DocumentNames:
    """Names the documents of one request."""

    def __init__(self, to: Lowering) -> None:
        self._to = to
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}  # the last number used after each beginning of a name

    def named(self, part: Part) -> Part:
        match part:
            case ToolResult():
                return evolve(part, parts=cast("Any", [self.named(inner) for inner in part.parts]))
            case Media() if wire.MEMBERS[part.kind] == "document" and not (self._to.own and part.name is not None):
                return evolve(part, name=self._name(part.name))
            case Text(item={"document": document}):
                return evolve(part, item={"document": {**document, "name": self._name(document["name"])}})
        return part

    def _name(self, name: str | None) -> str:
        plain = EXTENSION.sub("", name or "")
        kept = " ".join(UNFIT.sub(" ", plain).split())[:NAME_CHARS].strip()
        if kept != plain:
            self._to.lose("metadata", f"name {name}")
        kept = kept or "document"
        fit, beginning = kept, kept[: NAME_CHARS - NUMBER_CHARS]
        while fit in self._taken:
            number = self._numbers[beginning] = self._numbers.get(beginning, 1) + 1
            ordinal = f" ({number})"
            fit = kept[: NAME_CHARS - len(ordinal)] + ordinal
        self._taken.add(fit)
        return fit


def marks_fit(request: Request, to: Lowering) -> None:
    """Shorten cache marks to the span that the model has, and drop those inside results, which have no place."""
    shorter = to.takes.model.cache_marks == "short" and not to.own

    def fit(value: Any, what: str) -> Any:
        if isinstance(value, ToolResult):
            inner = [_unmarked(part, to) for part in value.parts]
            value = value if inner == value.parts else evolve(value, parts=inner)
        if getattr(value, "cache", None) != "long" or not shorter:
            return value
        if to.source in to.takes.same_marks:  # for other sources each mark is already counted as a loss
            to.lose("cache_mark", what)
        return evolve(value, cache="short")

    request.turns = [evolve(turn, parts=[fit(part, "long") for part in turn.parts]) for turn in request.turns]
    request.tools = [fit(tool, tool.name) for tool in request.tools]


def _unmarked(part: Text | Media | Aside, to: Lowering) -> Text | Media | Aside:
    if isinstance(part, Aside) or part.cache is None:
        return part
    if to.source in to.takes.same_marks:
        to.lose("cache_mark", part.cache)
    return evolve(part, cache=None)


@of_turns
def documents_have_text(turn: Turn, to: Lowering) -> Turn:
    """Add a text to a turn with a document and no text, because the server refuses such a turn."""
    parts = [part for part in turn.parts if not isinstance(part, ToolResult)]
    documents = any(
        wire.MEMBERS[part.kind] == "document" if isinstance(part, Media) else isinstance(part, Text) and part.item
        for part in parts
    )
    if not documents or any(isinstance(part, Text) and part.item is None for part in parts):
        return turn
    to.report.repair("text_added")
    return evolve(turn, parts=[*turn.parts, Text("(A document is attached.)")])


def thinking_of_model(request: Request, to: Lowering) -> None:
    """Fit the amount of thinking: Claude's members for Claude, an effort for other models."""
    thinking = request.options.thinking
    if thinking is None or _is_claude(to.source, request.model):
        claude.thinking_fits(request, to)
        return
    to.lose_thinking(thinking, "budget_tokens", "enabled", "summary")
    request.options.thinking = Thinking(to.fit_effort(asked_effort(thinking)))


def none_offered(request: Request, to: Lowering) -> None:
    """Offer no tools if the choice is ``none``, which the server can't express."""
    if request.tool_choice is None or request.tool_choice.mode != "none":
        return
    if request.tools:
        to.lose("tool_choice", "none")
    request.tools, request.tool_choice = [], None


def choice_has_tools(request: Request, _to: Lowering) -> None:
    """Raise BadRequest if a tool must be called and there is none."""
    choice = request.tool_choice
    if choice is not None and choice.mode == "required" and not request.tools:
        raise BadRequest("tool_choice", "requires a tool call, but the request has no tools")


def parallel_of_claude(request: Request, to: Lowering) -> None:
    """Drop the setting for parallel calls, unless the model is Claude: no other model has it."""
    choice = request.tool_choice
    if choice is None or choice.parallel is None or _is_claude(to.source, request.model) or not request.tools:
        return
    to.lose("tool_choice", "parallel")
    request.tool_choice = evolve(choice, parallel=None)


FOREIGN: Final = Capabilities(
    dialect="bedrock",
    vendor=wire.VENDOR,
    title="Bedrock",
    is_claude=True,
    ids=re.compile(r"[a-zA-Z0-9_.:-]{1,64}"),
    names=wire.TOOLS.names,
    blank_texts="none",
    arguments="object",
    media=fit_media,
    marked=(Text, Media, ToolCall, ToolResult, Tool),
    same_marks=frozenset({"bedrock", "anthropic"}),
    takes_opaque=is_base64,
    system="front",
    alternate=True,
    needs_user="messages",
    user_first=True,
    choice_extras="tool_choice",
    parallel=True,
    declares_called=True,
    options=frozenset({*wire.INFERENCE, "thinking", "output", "service_tier", "stop"}),
    service_tiers=frozenset({"priority", "default", "flex", "reserved"}),
    form_members=frozenset({"name", "description"}),
    first=(none_offered,),
    said=(documents_named, marks_fit),
    arranged=(documents_have_text, claude.schemas_held, thinking_of_model),
    last=(
        claude.sampling_fits,
        claude.parallel_if_forbidden,
        parallel_of_claude,
        claude.choice_fits_thinking,
        choice_has_tools,
        claude.form_has_schema,
        claude.schemas_given,
    ),
)


#: What the servers take from Bedrock's clients. As for other clients, neighbouring turns of one role are joined, and tools
#: that the history calls are defined.
OWN: Final = evolve(
    FOREIGN,
    ids=None,
    names=None,
    media=own_media,
    signs_reasoning=wire.SIGNER,
    unsigned_reasoning=True,
    options=FOREIGN.options | {"top_k"},
    service_tiers=None,
    arranged=(),
    last=(claude.choice_fits_thinking, choice_has_tools, claude.form_has_schema, claude.schemas_given),
)


def capabilities(source: str, name: str | None, provider: Provider | None) -> Capabilities:
    """Return what the servers take of a request of the dialect ``source`` for the model called ``name``."""
    is_claude = _is_claude(source, name)
    words = claude.EFFORTS if is_claude else claude.EFFORTS - {"none"}  # only Claude can be told not to think
    model = model_for(name, provider, claude.UNKNOWN_CLAUDE, words)
    nameless = name is not None and NAMELESS.search(name) is not None
    unknown = name is not None and not nameless and not model.names
    most_marks = 0 if unknown or not model.cache_marks else claude.MOST_MARKS
    if source == FOREIGN.dialect:
        own = claude.own_model(name, provider)
        return evolve(OWN, model=own, needs_marks=most_marks > 0 and model.cached_tools)
    return evolve(
        FOREIGN,
        model=model,
        signs_reasoning=wire.SIGNER if is_claude or name is None or nameless else None,
        cites=is_claude or name is None or nameless,
        part_extras=claude.document_extras if is_claude or name is None or nameless else None,
        most_marks=most_marks,
        needs_marks=most_marks > 0,
        options=FOREIGN.options | {"top_k"} if is_claude else FOREIGN.options,
    )


def _is_claude(source: str, name: str | None) -> bool:
    """Return whether members for Claude may be written: the model is Claude, or a Bedrock client sent the request."""
    return source == FOREIGN.dialect or (name is not None and ("anthropic" in name or "claude" in name))


# -- writing -----------------------------------------------------------------------------------------------------------


def write(request: Request, _target: Target, report: StreamReport) -> dict[str, Any]:
    """Return the body of a lowered request (only what the dialect can express) as JSON values."""
    turns, options, choice = request.turns, request.options, request.tool_choice
    leading = leading_of(turns)
    tools = [block for tool in request.tools for block in _tool(tool)]
    model = without_none(
        thinking=claude.write_thinking(options.thinking),
        top_k=options.top_k,
        tool_choice=_parallel(choice) if tools else None,
    )
    effort = None if options.thinking is None else options.thinking.effort
    body = without_none(
        messages=[
            add_missing({"role": turn.role, "content": _blocks(turn.parts, report)}, turn.extras)
            for turn in turns[leading:]
        ],
        system=[block for turn in turns[:leading] for block in _blocks(turn.parts, report)] or None,
        inferenceConfig=members_of(options, wire.INFERENCE) or None,
        toolConfig=without_none(tools=tools, toolChoice=_choice(choice, model)) if tools else None,
        additionalModelRequestFields=model or None,
        outputConfig=without_none(effort=effort, textFormat=_format_of(options.output)) or None,
        serviceTier=options.service_tier and {"type": options.service_tier},
    )
    return add_missing(body, request.extras)


def _format_of(output: OutputFormat | None) -> dict[str, Any] | None:
    if output is None:
        return None
    schema = orjson.dumps(output.schema).decode()
    definition = without_none(schema=schema, name=output.name, description=output.description)
    return {"type": "json_schema", "structure": {"jsonSchema": definition}}


def _blocks(parts: Sequence[Part], report: StreamReport, *, in_result: bool = False) -> list[Block]:
    blocks = BedrockBlocks(report)
    for part in parts:
        match part:
            case Text():
                _text(part, blocks, in_result=in_result)
            case Aside():
                blocks.aside(part)
            case Media(native=native) if native is not None and native.vendor == wire.VENDOR:
                blocks.aside(native)
            case _:
                blocks.add(_block(part, report))
        if isinstance(part, Text | Media | ToolCall | ToolResult) and part.cache is not None:
            blocks.add(_cache_point(part.cache))
    return blocks.finish()


def _cache_point(mark: CacheMark) -> Block:
    return {"cachePoint": dict(wire.CACHE_POINTS[mark])}


def _text(part: Text, blocks: BedrockBlocks, *, in_result: bool) -> None:
    if part.item is not None:  # a document
        blocks.add(dict(part.item))
        return
    extras = dict(part.extras or {})
    if extras.pop("json", False) and in_result and _is_json(part.text):
        blocks.add({"json": orjson.Fragment(part.text)})
    else:
        blocks.add_text(text_block(part.text, extras), part.block)


def _block(part: Part, report: StreamReport) -> Block:
    match part:
        case Media():
            member = wire.MEMBERS[part.kind]
            source = {"bytes": part.data} if part.data is not None else {"s3Location": {"uri": part.url}}
            name = part.name if member == "document" else None
            written = without_none(format=_own_format(part, member), name=name, source=source)
            return {member: add_missing(written, part.extras)}
        case ToolCall():
            use = {"toolUseId": part.id, "name": part.name, "input": orjson.Fragment(part.arguments)}
            return {"toolUse": add_missing(use, part.extras)}
        case ToolResult():
            content = _blocks(part.parts, report, in_result=True)
            status = "error" if part.is_error else None
            result = without_none(toolUseId=part.call_id, content=content, status=status)
            return {"toolResult": add_missing(result, part.extras)}
        case Reasoning():
            thought = without_none(text=part.text, signature=part.signature.blob if part.signature else None)
            return {"reasoningContent": {"reasoningText": add_missing(thought, part.extras)}}
        case RedactedReasoning():
            return {"reasoningContent": {"redactedContent": part.opaque.blob}}
    raise TypeError(f"a message can't contain a {type(part).__name__}")


def _tool(tool: Tool) -> list[Block]:
    """Return a tool's definition, followed by a cache point if the tool has a cache mark."""
    if tool.kind == "server":
        written = dict(tool.raw or {})
    else:
        spec = without_none(
            name=tool.name,
            description=tool.description or None,
            inputSchema={"json": tool.parameters},
            strict=tool.strict,
        )
        written = {"toolSpec": add_missing(spec, tool.extras)}
    return [written] if tool.cache is None else [written, _cache_point(tool.cache)]


def _choice(choice: ToolChoice | None, model: dict[str, Any]) -> dict[str, Any] | None:
    """Return ``toolChoice``; the default ``auto`` is left out if Claude's ``tool_choice`` has it."""
    if choice is None or choice.mode == "none":
        return None
    if choice.mode == "required":
        return {"tool": {"name": choice.names[0]}} if choice.names else {"any": {}}
    return None if "tool_choice" in model else {"auto": {}}


def _parallel(choice: ToolChoice | None) -> dict[str, Any] | None:
    """Return Claude's ``tool_choice``. It gets a type only if ``toolChoice`` is not written: the server refuses both."""
    if choice is None or choice.parallel is None:
        return None
    kind = "auto" if choice.mode == "auto" else None
    return without_none(type=kind, disable_parallel_tool_use=not choice.parallel)


def _is_json(text: str) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True
