"""The neutral conversation to Bedrock's Converse requests: messages, options, tools, the choice among them.

What a request of another dialect can't say here is left out before it is written (``translation/lowering``): ``capabilities``
says what the servers take, and the passes below are Bedrock's own. Documents must have names, each its own, of few characters.
Media at a URL are taken from S3 alone. Reasoning goes back if Claude signed it, here or elsewhere, and the model may be one.

What only Claude takes (how to think, no parallel calls) stands in ``additionalModelRequestFields`` where the model's id says
Claude, and is a loss for other models. The model and whether to stream are in the URL. For the choice ``none`` no tools are
offered, except those that the history calls: the server demands their definitions.

Source: dialects.md §6.1, §7.3, §7.4; seeds.md S2; botocore's model of ``DocumentBlock``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, TypeAlias, cast

import orjson
from attrs import evolve

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
)
from streamkit.dialects.bedrock import wire
from streamkit.dialects.bedrock.asides import BedrockBlocks, text_block
from streamkit.dialects.bodies import claude_requests as claude
from streamkit.dialects.bodies.json_members import add_missing, without_none
from streamkit.dialects.bodies.media_types import media_type_of
from streamkit.dialects.lowering import Capabilities, Lowering, Place, asked_effort, leading_of, model_for
from streamkit.dialects.members.values import is_base64
from streamkit.dialects.profiles import Provider, Target
from streamkit.errors import BadRequest
from streamkit.events import Aside
from streamkit.report import StreamReport

Block: TypeAlias = dict[str, Any]
#: Media that may stand in a tool's result.
IN_RESULTS: Final = frozenset({"image", "document", "video"})
#: What a document's name may not have, and how long it may be.
UNFIT: Final = re.compile(r"[^A-Za-z0-9 ()\[\]-]+")
NAME_CHARS: Final = 200
#: Room in a name for a number that makes it unique: `` (100000)``.
NUMBER_CHARS: Final = 10
#: What the id of a resource has that may be any model.
NAMELESS: Final = re.compile(
    r":(?:application-inference-profile|provisioned-model|default-prompt-router|prompt-router)/"
)
#: An address that the server takes.
IN_S3: Final = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/.*)?")
EXTENSION: Final = re.compile(r"\.[A-Za-z0-9]{1,5}$")
#: The text of the user where a document is alone: the server demands a text next to it.
ATTACHED: Final = "(A document is attached.)"


# -- what the servers take ---------------------------------------------------------------------------------------------


def fit_media(media: Media, place: Place, to: Lowering) -> Media | None:
    """Media of the user's, and of results those that they may have, each of a format that the server knows."""
    member = wire.MEMBERS[media.kind]
    allowed = place == "user" or (place == "result" and member in IN_RESULTS)
    known = media.data is not None or (media.url is not None and IN_S3.fullmatch(media.url) is not None)
    form = _format_by_address(media, member) if media.media_type is None and media.url else _format(media, member)
    if not allowed or not known or form is None:
        to.lose("media", media.media_type or media.kind)
        return None
    if media.detail not in {None, "auto"}:
        to.lose("metadata", "detail")
    if member != "document" and media.name is not None:
        to.lose("metadata", "name")
    return evolve(media, media_type=wire.MEDIA_TYPES[member][form])


def own_media(media: Media, _place: Place, to: Lowering) -> Media | None:
    """Media that have a source, and a format where the server demands one."""
    member = wire.MEMBERS[media.kind]
    known = media.data is not None or (media.url or "").startswith("s3://")
    if known and (member == "document" or _own_format(media, member) is not None):
        return media
    to.lose("media", media.media_type or media.kind)
    return None


def _format_by_address(media: Media, member: str) -> str | None:
    """The format of media at an address, by its end."""
    ending = (media.url or "").rpartition(".")[2].lower()
    return ending if ending in wire.FORMATS[member].values() else {"jpg": "jpeg"}.get(ending)


def _format(media: Media, member: str) -> str | None:
    """The server's word for a media type; None where it has none."""
    kind = media_type_of(media).partition(";")[0].strip().lower()
    return wire.FORMATS[member].get(wire.SAME_TYPES.get(kind, kind))


def _own_format(media: Media, member: str) -> str | None:
    if member == "document" and media.media_type is None:
        return None
    return _format(media, member) or media_type_of(media).partition(";")[0].strip().lower().partition("/")[2]


def documents_named(request: Request, to: Lowering) -> None:
    """Documents with names as the server takes them, no two alike: the same at every request."""
    names = DocumentNames(to)
    turns = []
    for turn in request.turns:
        named: dict[int, Part] = {}
        for part in sorted(turn.parts, key=lambda part: not isinstance(part, ToolResult)):  # results are written first
            named[id(part)] = names.named(part)
        turns.append(evolve(turn, parts=[named[id(part)] for part in turn.parts]))
    request.turns = turns


class DocumentNames:
    """Gives the documents of one request their names."""

    def __init__(self, to: Lowering) -> None:
        self._to = to
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}  # the last number behind each beginning of a name

    def named(self, part: Part) -> Part:
        match part:
            case ToolResult():
                return evolve(part, parts=cast("Any", [self.named(inner) for inner in part.parts]))
            case Media() if wire.MEMBERS[part.kind] == "document" and not (self._to.own and part.name is not None):
                return evolve(part, name=self._name(part.name))
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
    """Marks for a span of time that the model has; a result has none in it."""
    shorter = to.takes.model.cache_marks == "short" and not to.own

    def fit(value: Any, what: str) -> Any:
        if isinstance(value, ToolResult):
            inner = [_unmarked(part, to) for part in value.parts]
            value = value if inner == value.parts else evolve(value, parts=inner)
        if getattr(value, "cache", None) != "long" or not shorter:
            return value
        if to.source in to.takes.same_marks:  # else each is a loss already
            to.lose("cache_mark", what)
        return evolve(value, cache="short")

    turns = [evolve(turn, parts=[fit(part, "long") for part in turn.parts]) for turn in request.turns]
    request.turns = turns
    request.tools = [fit(tool, tool.name) for tool in request.tools]


def _unmarked(part: Text | Media | Aside, to: Lowering) -> Text | Media | Aside:
    if isinstance(part, Aside) or part.cache is None:
        return part
    if to.source in to.takes.same_marks:
        to.lose("cache_mark", part.cache)
    return evolve(part, cache=None)


def documents_told(request: Request, to: Lowering) -> None:
    """A text next to a document that is alone, which the server would refuse."""
    turns = []
    for turn in request.turns:
        parts = [part for part in turn.parts if not isinstance(part, ToolResult)]
        documents = any(isinstance(part, Media) and wire.MEMBERS[part.kind] == "document" for part in parts)
        if documents and not any(isinstance(part, Text) for part in parts):
            to.report.repair("text_added")
            turns.append(evolve(turn, parts=[*turn.parts, Text(ATTACHED)]))
        else:
            turns.append(turn)
    request.turns = turns


def thinking_of_model(request: Request, to: Lowering) -> None:
    """How much to think: Claude's own members, or an effort for any other model."""
    thinking = request.options.thinking
    if thinking is None or _is_claude(to.source, request.model):
        claude.thinking_fits(request, to)
        return
    to.lose_thinking(thinking, "budget_tokens", "enabled", "summary")
    effort = to.fit_effort(asked_effort(thinking))
    if effort == "none":
        to.lose("parameter", "thinking.effort")  # the server has no word for it
        effort = None
    request.options.thinking = Thinking(effort)


def none_offered(request: Request, to: Lowering) -> None:
    """No tools for a choice of none."""
    choice = request.tool_choice
    if choice is None or choice.mode != "none":
        return
    if request.tools:
        to.lose("tool_choice", "none")
    request.tools = []
    request.tool_choice = None


def choice_has_tools(request: Request, _to: Lowering) -> None:
    """Raises BadRequest where a tool must be called and there is none."""
    choice = request.tool_choice
    if choice is not None and choice.mode == "required" and not request.tools:
        raise BadRequest("tool_choice", "a tool must be called, and there is none")


def parallel_of_claude(request: Request, to: Lowering) -> None:
    """Whether several calls may come, which only Claude can be told."""
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
    declares_called=True,
    options=frozenset({*wire.INFERENCE, "thinking", "output", "service_tier", "stop"}),
    service_tiers=wire.SERVICE_TIERS,
    form_members=frozenset({"name", "description"}),
    first=(none_offered,),
    said=(documents_named, marks_fit),
    arranged=(documents_told, claude.schemas_held, thinking_of_model),
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


#: Of requests of the dialect itself: neighbours are joined in these, too, and the history's tools defined.
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
    """What the servers take of a request of the dialect ``source`` for the model of that ``name``."""
    if source == FOREIGN.dialect:
        return OWN
    model = model_for(name, provider, claude.UNKNOWN_CLAUDE, claude.EFFORTS)
    nameless = name is not None and NAMELESS.search(name) is not None
    unknown = name is not None and not nameless and model is claude.UNKNOWN_CLAUDE
    is_claude = _is_claude(source, name)
    return evolve(
        FOREIGN,
        model=model,
        signs_reasoning=wire.SIGNER if is_claude or name is None or nameless else None,
        most_marks=0 if unknown or not model.cache_marks else claude.MOST_MARKS,
        options=FOREIGN.options | {"top_k"} if is_claude else FOREIGN.options,
    )


def _is_claude(source: str, name: str | None) -> bool:
    """Whether the model's own fields are Claude's, or those that the client wrote."""
    return source == FOREIGN.dialect or (name is not None and ("anthropic" in name or "claude" in name))


# -- writing -----------------------------------------------------------------------------------------------------------


def write(request: Request, _target: Target, report: StreamReport) -> dict[str, Any]:
    """The body of a request that has nothing but what the dialect can say, as JSON values."""
    turns, options, choice = request.turns, request.options, request.tool_choice
    leading = leading_of(turns)
    tools = [block for tool in request.tools for block in _tool(tool)]
    model = without_none(
        thinking=claude.write_thinking(options.thinking),
        top_k=options.top_k,
        tool_choice=_parallel(choice) if tools else None,
    )
    body = without_none(
        messages=[
            add_missing({"role": turn.role, "content": _blocks(turn.parts, report)}, turn.extras)
            for turn in turns[leading:]
        ],
        system=[block for turn in turns[:leading] for block in _blocks(turn.parts, report)] or None,
        inferenceConfig=_inference(options) or None,
        toolConfig=without_none(tools=tools, toolChoice=_choice(choice, model)) if tools else None,
        additionalModelRequestFields=model or None,
        outputConfig=_output_config(options) or None,
        serviceTier=options.service_tier and {"type": options.service_tier},
    )
    return add_missing(body, request.extras)


def _inference(options: Options) -> dict[str, Any]:
    said = {word: getattr(options, name) for name, word in wire.INFERENCE.items()}
    return {word: value for word, value in said.items() if value is not None and value != ()}


def _output_config(options: Options) -> dict[str, Any]:
    effort = None if options.thinking is None else options.thinking.effort
    return without_none(effort=effort, textFormat=_format_of(options.output))


def _format_of(output: OutputFormat | None) -> dict[str, Any] | None:
    if output is None:
        return None
    definition = without_none(
        schema=orjson.dumps(output.schema).decode(), name=output.name, description=output.description
    )
    return {"type": "json_schema", "structure": {"jsonSchema": definition}}


# -- blocks ------------------------------------------------------------------------------------------------------------


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
    """The block that marks what is in front of it."""
    return {"cachePoint": dict(wire.CACHE_POINTS[mark])}


def _text(part: Text, blocks: BedrockBlocks, *, in_result: bool) -> None:
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
            return {
                "toolResult": add_missing(
                    without_none(toolUseId=part.call_id, content=content, status=status), part.extras
                )
            }
        case Reasoning():
            thought = without_none(text=part.text, signature=part.signature.blob if part.signature else None)
            return {"reasoningContent": {"reasoningText": add_missing(thought, part.extras)}}
        case RedactedReasoning():
            return {"reasoningContent": {"redactedContent": part.opaque.blob}}
    raise TypeError(f"a message has no {type(part).__name__}")


# -- tools -------------------------------------------------------------------------------------------------------------


def _tool(tool: Tool) -> list[Block]:
    """A definition, and its mark."""
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
    """``toolChoice``; ``auto``, the default, is left out where Claude's own ``tool_choice`` has it."""
    if choice is None or choice.mode == "none":
        return None
    if choice.mode == "required":
        return {"tool": {"name": choice.names[0]}} if choice.names else {"any": {}}
    return None if "tool_choice" in model else {"auto": {}}


def _parallel(choice: ToolChoice | None) -> dict[str, Any] | None:
    """Claude's own ``tool_choice``, which has its type only where ``toolChoice`` does not say it: else it is refused."""
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
