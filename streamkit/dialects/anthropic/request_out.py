"""The neutral conversation to Anthropic's requests: messages, options, tools, the choice among them.

What a request of another dialect can't say here is left out before it is written (``translation/lowering``): ``capabilities``
says what the servers take, and the passes below are Anthropic's own. Thinking goes back if Anthropic signed it. The bound on
the answer, which is demanded, is the target's where the request has none. Sampling parameters are refused since API version
2026-10-21: those of another dialect's request are written only for a provider that says it is older.

Compaction. The edit ``compact_20260112`` summarises once the input is long; a request with ``compaction`` is answered by the
summary alone, and refuses what only shapes a reply, other edits included. Each is a beta of its own, and so is a block of
such a summary in the history.

Source: dialects.md §3.0, §3.2, §7.3, §7.4; seeds.md S2; anthropic 2.12, ``BetaCompact20260112EditParam`` and its tool runner;
Anthropic, "Compaction", for the least trigger and the models.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from itertools import takewhile
from typing import Any, Final

import orjson
from attrs import evolve

from streamkit.conversation.messages import (
    Compaction,
    Media,
    Options,
    Part,
    Reasoning,
    RedactedReasoning,
    Request,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    WebSearch,
)
from streamkit.dialects.anthropic import wire
from streamkit.dialects.anthropic.asides import AnthropicBlocks
from streamkit.dialects.bodies import claude_requests as claude
from streamkit.dialects.bodies.block_list import Block
from streamkit.dialects.bodies.json_members import add_missing, plain_or_list, without_none
from streamkit.dialects.bodies.media_types import decoded_text, media_type_of
from streamkit.dialects.lowering import Capabilities, Lowering, Place, model_for
from streamkit.dialects.profiles import Provider, Target
from streamkit.dialects.vocabulary.web_search import location_out
from streamkit.events import Aside
from streamkit.report import StreamReport

#: The search of the web that every version of the server has.
SEARCH_TYPE: Final = f"{wire.WEB_SEARCH}20250305"
SEARCH_NAME: Final = "web_search"
#: The values of ``anthropic-beta`` without which the server refuses an edit, and a summary alone.
EDIT_BETA, SUMMARY_BETA = "compact-2026-01-12", "compact-2026-09-04"
#: A trigger may not be less.
LEAST_TRIGGER: Final = 50_000


def features_of(request: Request) -> dict[str, str]:
    """The headers without which the server refuses what a request of another dialect becomes."""
    compaction = request.options.compaction
    betas = [] if compaction is None else [SUMMARY_BETA if compaction.now else EDIT_BETA]
    parts = [part for turn in request.turns for part in turn.parts]
    summaries = [part.item for part in parts if isinstance(part, Text) and part.item is not None]
    betas += [SUMMARY_BETA if summary.get("signature") else EDIT_BETA for summary in summaries]
    return {"anthropic-beta": ",".join(dict.fromkeys(betas))} if betas else {}


# -- what the servers take ---------------------------------------------------------------------------------------------


def fit_media(media: Media, place: Place, to: Lowering) -> Media | None:
    """An image or a document of the user's or of a result; text as such, and nothing else in base64."""
    fit = _fit(media, to) if place in {"user", "result"} else None  # none of the assistant's (dialects.md §3.0)
    if fit is None:
        to.lose("media", media.media_type or media.kind)
        return None
    if media.detail not in {None, "auto"}:
        to.lose("metadata", "detail")
    if media.kind == "image" and media.name is not None:
        to.lose("metadata", "name")
        return evolve(fit, name=None)
    return fit


def own_media(media: Media, _place: Place, to: Lowering) -> Media | None:
    """An image or a document, wherever it stands."""
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


def search(asked: WebSearch, to: Lowering) -> dict[str, Any]:
    """The definition of a search of the web."""
    allowed, blocked = list(asked.allowed_domains), list(asked.blocked_domains)
    if allowed and blocked:  # the server takes one of them, and what is allowed is narrower
        to.lose("parameter", "web_search.blocked_domains")
        blocked = []
    return without_none(
        type=SEARCH_TYPE,
        name=SEARCH_NAME,
        max_uses=asked.max_uses,
        allowed_domains=allowed or None,
        blocked_domains=blocked or None,
        user_location=location_out(asked),
    )


def _can_search(request: Request) -> bool:
    """Whether a search can be defined: no function may have its name."""
    return all(tool.name != SEARCH_NAME for tool in request.tools if tool.kind != "server")


def compaction_fits(request: Request, to: Lowering) -> None:
    """A summary of the conversation where the model makes one, and beside it nothing that shapes a reply."""
    options, compaction = request.options, request.options.compaction
    if compaction is None:
        return
    if not to.takes.model.compacts:
        to.lose("parameter", "compaction")
        options.compaction = None
        request.options = options
        return
    forced = False
    if compaction.now:
        shaping = {
            "compaction.threshold": compaction.threshold is not None,
            "stop": bool(options.stop),
            "output": options.output is not None and options.output.kind != "text",
        }
        for name in (name for name, is_asked in shaping.items() if is_asked):
            to.lose("parameter", name)
        forced = request.tool_choice is not None and request.tool_choice.mode == "required"
        if forced:
            to.lose("tool_choice", "required")
        options = evolve(options, stop=(), output=None)
    elif compaction.threshold is not None and compaction.threshold < LEAST_TRIGGER:
        to.lose("parameter", "compaction.threshold")
    options = evolve(options, compaction=evolve(compaction, native=None))
    request.options = options
    request.tool_choice = None if forced else request.tool_choice


def bounded(request: Request, to: Lowering) -> None:
    """A bound on the answer; the target's is one on what is said, so what may be thought comes on top."""
    options = request.options
    if options.max_tokens is not None:
        return
    budget = (options.thinking and options.thinking.budget_tokens) or 0
    options.max_tokens = to.target.max_tokens + budget
    request.options = options


FOREIGN: Final = Capabilities(
    dialect="anthropic",
    vendor=wire.VENDOR,
    title="Anthropic",
    is_claude=True,
    ids=re.compile(r"[A-Za-z0-9_-]+"),
    names=wire.TOOLS.names,
    users=re.compile(r"[^@]{1,256}"),  # addresses are refused
    signs_reasoning=wire.VENDOR,
    blank_texts="some",
    arguments="object",
    media=fit_media,
    marked=(Text, Media, ToolCall, ToolResult, Tool),
    same_marks=frozenset({"anthropic"}),
    system="behind user",
    alternate=True,
    needs_user="messages",
    search_options=frozenset({"max_uses", "allowed_domains", "blocked_domains", "location"}),
    can_search=_can_search,
    search=search,
    choice_extras="tool_choice",
    declares_called=True,
    options=frozenset({"max_tokens", "stop", "thinking", "compaction", "output", "service_tier", "user"}),
    service_tiers=wire.SERVICE_TIERS,
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
#: Of requests of the dialect itself. Claude gets ids that it takes: a client that changed its model has those of another one.
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
    """What the servers take of a request of the dialect ``source`` for the model of that ``name``."""
    if source == FOREIGN.dialect:
        return evolve(OWN, ids=FOREIGN.ids) if "claude" in (name or "").lower() else OWN
    model = model_for(name, provider, claude.UNKNOWN_CLAUDE, claude.EFFORTS)
    sampling = wire.SAMPLING if wire.version_of(provider) < wire.WITHOUT_SAMPLING else ()
    return evolve(
        FOREIGN,
        model=model,
        most_marks=claude.MOST_MARKS if model.cache_marks else 0,
        options=FOREIGN.options.union(sampling),
    )


# -- writing -----------------------------------------------------------------------------------------------------------


def write(request: Request, target: Target, report: StreamReport) -> dict[str, Any]:
    """The body of a request that has nothing but what the dialect can say, as JSON values."""
    said = [(turn, blocks) for turn in request.turns if (blocks := _content(turn.parts, report))]
    leading = len([*takewhile(lambda each: each[0].role == "system", said)])
    options = request.options
    body = without_none(
        model=request.model,
        max_tokens=options.max_tokens,
        system=plain_or_list([block for _, blocks in said[:leading] for block in blocks]) or None,
        messages=[
            add_missing({"role": turn.role, "content": plain_or_list(blocks)}, turn.extras)
            for turn, blocks in said[leading:]
        ],
        tools=[_tool(tool) for tool in request.tools] or None,
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
            case Text(item=item) if item is not None:  # a compaction, whoever sent it back
                blocks.add(dict(item))
            case Text():
                blocks.add_text(_marked({"type": "text", "text": part.text}, part), part.block)
            case Aside():
                blocks.aside(part)
            case Media(native=native) if native is not None and native.vendor == wire.VENDOR:
                blocks.aside(native)
            case _:
                blocks.add(_block(part, report))
    return blocks.finish()


def _block(part: Part, report: StreamReport) -> Block:
    match part:
        case Media():
            kind = "image" if part.kind == "image" else "document"
            return _marked(without_none(type=kind, source=_source(part), title=part.name), part)
        case ToolCall():
            arguments = orjson.Fragment(part.arguments)
            return _marked({"type": "tool_use", "id": part.id, "name": part.name, "input": arguments}, part)
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
    raise TypeError(f"a message has no {type(part).__name__}")


def _marked(written: Block, value: Text | Media | ToolCall | ToolResult | Tool) -> Block:
    """A block or a tool with its cache mark and the members that only this dialect knows."""
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


def _tool(tool: Tool) -> dict[str, Any]:
    if tool.kind == "server":
        return dict(tool.raw or {})
    written = without_none(
        name=tool.name, description=tool.description, input_schema=tool.parameters, strict=tool.strict
    )
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
