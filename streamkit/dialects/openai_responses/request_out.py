"""Write Responses requests: input items, options, tools and the tool choice.

What a request of another dialect can't express here is dropped before it is written (``translation/lowering``):
``capabilities`` says what the servers take, and this module has the passes that only this dialect needs.

A turn of the user or the system is a message, and each result in it a separate item. If the system has one text, before all
other turns, and it was not read from an item, it is written as ``instructions``. Content of one plain text is a string
(seeds.md S2).

Each text of the assistant is a separate message: the parts of one message share an id, which only the server can give.
Reasoning is sent back if this vendor encrypted it, with its id if it had one: the encrypted text is bound to the id. Reasoning
that is not encrypted is only sent back for a request that was read in this dialect.

``strict`` of a function is always written, since its default is not the same as in Chat. If it is not set, it is false for a
request of another dialect, and null (the server decides) for one of this dialect. The API gives one choice, and has neither
stop sequences nor a seed. A token limit below the server's least is raised, and counted.

Source: dialects.md §2.2, §2.3, §7.3, §7.4, §8.12 (requests).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby, takewhile
from typing import Any, Final

from attrs import evolve

from streamkit.conversation.media import data_uri, media_type_of
from streamkit.conversation.messages import (
    Compaction,
    Extras,
    Media,
    Namespace,
    Part,
    Reasoning,
    RedactedReasoning,
    Refusal,
    Request,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    Turn,
    WebSearch,
)
from streamkit.dialects.bodies import openai
from streamkit.dialects.bodies.claude import MOST_MARKS
from streamkit.dialects.bodies.openai import AUDIO_FORMATS, TOOLS, write_cache_mark
from streamkit.dialects.lowering import Capabilities, Lowering, Place, model_for, of_parts, of_tools, of_turns
from streamkit.dialects.members.fields import add_missing, members_of, plain_or_list, without_none
from streamkit.dialects.openai_responses import wire
from streamkit.dialects.openai_responses.client_items import with_items_again
from streamkit.dialects.openai_responses.output import Item, OutputList, call_item, of_item, reasoning_item, thoughts
from streamkit.dialects.openai_responses.tools import FINDER
from streamkit.dialects.profiles import Provider, Target
from streamkit.dialects.streams.compactions import COMPACTION, OPENAIS
from streamkit.dialects.vocabulary.models import UNKNOWN
from streamkit.dialects.vocabulary.web_search import location_out
from streamkit.events import Aside, Opaque
from streamkit.report import StreamReport

#: OpenAI's dialects. File ids and cache marks mean the same in both.
RELATIVES: Final = frozenset({"openai-chat", "openai-responses"})
SEARCH: Final = "web_search"
SOURCES: Final = "web_search_call.action.sources"


# -- what the servers take: parts --------------------------------------------------------------------------------------


def fit_media(media: Media, place: Place, to: Lowering) -> Media | None:
    """Return media that are allowed at this place, else None and a loss. Another dialect's file gets a name and a type."""
    fit = _taken(media, place, to)
    if fit is None:
        to.lose("media", media.kind)
    elif media.kind == "file" and not to.own:
        kind = None if media.data is None else media_type_of(media)
        fit = evolve(fit, media_type=kind, name=openai.named_file(media, to).name, detail=to.closeness(media.detail))
    return fit


def _taken(media: Media, place: Place, to: Lowering) -> Media | None:
    """Return an image or a file with bytes, a web URL or a file id of OpenAI; None for other media (§7.4).

    In a request of this dialect, audio is also accepted, and media that the assistant made, which are items.
    """
    if place == "assistant":
        return media if to.own and media.native is not None and media.native.vendor == wire.VENDOR else None
    if media.kind == "audio" and to.own:
        return None if media.data is None else media
    fit = media
    if not to.own:
        url = media.url if (media.url or "").startswith(("http:", "https:")) else None
        fit = evolve(media, url=url, file_id=media.file_id if to.source in RELATIVES else None)
    there = (fit.data, fit.url, fit.file_id) != (None, None, None)
    return fit if there and media.kind in {"image", "file"} else None


def same_extras(part: Part, extras: Extras) -> tuple[Extras, Extras]:
    """Split the extras of a part from Chat into extras that this dialect also has, and the rest.

    The id of encrypted ``reasoning_details`` is the id of the item that they were here. A compaction has no extras.
    """
    if isinstance(part, RedactedReasoning) and part.opaque.vendor == OPENAIS:
        return {}, {}
    if isinstance(part, RedactedReasoning) and str(extras.get("id")).startswith("rs_"):
        return {"item": {"id": extras["id"]}}, {}
    return {}, extras


def phase_extras(part: Part, extras: Extras) -> tuple[Extras, Extras]:
    """Split the extras of a part from the AI SDK into the phase of a text and the rest."""
    metadata = extras.get("providerMetadata")
    openais = metadata.get("openai") if isinstance(metadata, Mapping) else None
    phase = openais.get("phase") if isinstance(openais, Mapping) else None
    if (
        not isinstance(part, Text)
        or phase not in {"commentary", "final_answer"}
        or metadata != {"openai": {"phase": phase}}
    ):
        return {}, extras
    return {"item": {"phase": phase}}, {name: value for name, value in extras.items() if name != "providerMetadata"}


@of_parts
def placed(part: Part, place: Place, to: Lowering) -> Part:
    """Drop cache marks of assistant parts and of results. Turn a refusal into text unless it is the assistant's."""
    match part:
        case Refusal() if place != "assistant":
            to.lose("refusal_as_text")
            return Text(part.text, extras=part.extras, block=part.block)
        case Text(cache=str()) if place != "assistant":
            return part
        case Text(cache=str(mark)) | ToolCall(cache=str(mark)) | ToolResult(cache=str(mark)):
            to.lose("cache_mark", mark)
            return evolve(part, cache=None)
    return part


def drop_unsendable(request: Request, to: Lowering) -> None:
    """Drop reasoning that another vendor signed. From other dialects, also drop unsigned reasoning and empty texts."""
    turns = []
    for turn in request.turns:
        parts: list[Part] = []
        for part in thoughts(turn.parts):
            run = part if isinstance(part, list) else [part]
            if turn.role != "assistant" or _goes_back(run, to):
                parts += run
            else:
                _lose(run, to)
        if parts or not turn.parts:
            turns.append(turn if len(parts) == len(turn.parts) else evolve(turn, parts=parts))
            continue
        for kind, name in ("turn_name", turn.name), *(("metadata", name) for name in turn.extras or ()):
            if name is not None:
                to.lose(kind, name)
    request.turns = turns


def _goes_back(run: Sequence[Part], to: Lowering) -> bool:
    """Return whether a part is written, or the parts of one reasoning item, of which the last part decides."""
    match run[-1]:
        case Reasoning(signature=None):
            has_text = any(isinstance(part, Reasoning) and part.kind == "raw" and part.text for part in run)
            return to.own and (has_text or of_item(run[0]) is not None)
        case Reasoning(signature=Opaque(vendor=vendor)):
            return vendor == wire.OPAQUE_VENDOR
        case Text(text="", signature=signature):  # an empty text with a signature has no other content
            return to.own and signature is None
    return True


def _lose(run: Sequence[Part], to: Lowering) -> None:
    if (signature := getattr(run[-1], "signature", None)) is not None:
        to.lose("reasoning_signature", signature.vendor)
    elif isinstance(run[-1], Text):
        to.report.repair("turn_empty")
    for part in run:
        if isinstance(part, Reasoning) and part.text:
            to.lose("reasoning_history")


def messages_kept(request: Request, to: Lowering) -> None:
    """Add an empty text to each user or system message that has no parts or loses all its parts."""

    def is_lost(part: Part) -> bool:
        if isinstance(part, Aside):
            return not to.own or part.vendor != wire.VENDOR
        return isinstance(part, Media) and _taken(part, "user", to) is None

    turns = []
    for turn in request.turns:
        content = [part for part in turn.parts if _is_content(part)]
        is_message = turn.role != "assistant" and (content or not turn.parts)
        unsaid = is_message and all(map(is_lost, content))
        turns.append(evolve(turn, parts=[*turn.parts, Text("")]) if unsaid else turn)
    request.turns = turns


# -- what the servers take: turns, tools and options -------------------------------------------------------------------


def instructions_found(request: Request, _to: Lowering) -> None:
    """Leave only a single leading system turn of one plain text, the ``instructions``, without a role: others are items."""
    leading = [*takewhile(lambda turn: turn.role == "system", request.turns)]
    is_plain = len(leading) == 1 and leading[0].name is None and _plain_text(leading[0]) is not None

    def with_role(turn: Turn) -> Turn:
        if turn.role != "system":
            return turn
        role = "developer" if turn.native_role == "developer" else "system"
        return evolve(turn, native_role=None if is_plain and turn is leading[0] else role)

    request.turns = [*map(with_role, request.turns)]


def reasoning_followed(request: Request, to: Lowering) -> None:
    """Drop reasoning after which no other item of the assistant follows, because the server refuses it."""
    turns: list[Turn] = []
    follows = False
    for turn in reversed(request.turns):
        if turn.role != "assistant":
            follows = False
            turns.append(turn)
            continue
        parts: list[Part] = []
        for part in reversed([*thoughts(turn.parts)]):
            run = part if isinstance(part, list) else [part]
            encrypted = isinstance(part, RedactedReasoning) and part.opaque.vendor != OPENAIS
            follows = follows or not (isinstance(part, list) or encrypted)
            if follows:
                parts += reversed(run)
            else:
                to.lose("reasoning_history", "reasoning")
        turns.append(evolve(turn, parts=parts[::-1]))
    request.turns = turns[::-1]


@of_turns
def phases_labelled(turn: Turn, _to: Lowering) -> Turn:
    """Label the assistant's texts as the model itself would: a text before a call is commentary, any other a final answer."""
    if turn.role != "assistant":
        return turn
    calls = [number for number, part in enumerate(turn.parts) if isinstance(part, ToolCall)]
    last = calls[-1] if calls else -1

    def labelled(part: Part, number: int) -> Part:
        extras = getattr(part, "extras", None) or {}
        if (
            not isinstance(part, Text | Refusal)
            or "item" in extras
            or (isinstance(part, Text) and part.item is not None)
        ):
            return part
        phase = "commentary" if number < last else "final_answer"
        return evolve(part, extras={**extras, "item": {"phase": phase}})

    return evolve(turn, parts=[labelled(part, number) for number, part in enumerate(turn.parts)])


@of_tools
def complete_tools(tool: Tool, to: Lowering) -> Tool:
    """Give functions a schema and ``strict``. Drop members of tools that only other dialects have."""
    if tool.kind == "server":
        if tool.cache is not None:
            to.lose("cache_mark", tool.name)
        return tool
    tool = evolve(tool, namespace=None, qualified=None, strict=bool(tool.strict))
    if tool.kind == "function" and not tool.parameters:  # other dialects need no schema, this server requires one
        return evolve(tool, parameters={"type": "object", "properties": {}})
    return tool


def search(asked: WebSearch, _to: Lowering) -> dict[str, Any]:
    """Return the definition of a web search tool."""
    return without_none(
        type=SEARCH,
        filters={"allowed_domains": [*asked.allowed_domains]} if asked.allowed_domains else None,
        user_location=location_out(asked),
        search_context_size=asked.context,
    )


def thinking_fits(request: Request, to: Lowering) -> None:
    """Replace the request for thinking by an effort, which is all that this dialect has."""
    thinking = request.options.thinking
    if thinking is None:
        return
    effort = openai.effort_alone(thinking, to, "budget_tokens")
    request.options.thinking = Thinking(effort, summary=thinking.summary)


def compaction_fits(request: Request, to: Lowering) -> None:
    """Keep only the threshold of a compaction, because this dialect has no other options for it."""
    asked = request.options.compaction
    if asked is None or (to.own and asked.native is not None):
        return
    for name in ("pause", "instructions"):
        if getattr(asked, name):
            to.lose("parameter", f"compaction.{name}")
    request.options.compaction = Compaction(asked.now, asked.threshold)


def bound_fits(request: Request, to: Lowering) -> None:
    """Raise a token limit that is below the server's minimum."""
    bound = request.options.max_tokens
    if bound is not None and 0 < bound < wire.LEAST_TOKENS:
        to.lose("parameter", "max_tokens")
        request.options.max_tokens = wire.LEAST_TOKENS


def input_and_sources(request: Request, to: Lowering) -> None:
    """Write ``input`` even if it is empty. Request the pages that a web search finds."""
    include = [wire.LOGPROBS, SOURCES] if request.options.logprobs else [SOURCES]
    request.extras = {"input": [], **request.extras, **({} if to.search is None else {"include": include})}


FOREIGN: Final = Capabilities(
    dialect="openai-responses",
    vendor=wire.VENDOR,
    title="Responses",
    ids=openai.IDS,
    names=TOOLS.names,
    users=openai.USERS,
    result_errors=False,
    signs_reasoning=wire.OPAQUE_VENDOR,
    opaque_vendors=frozenset({OPENAIS}),
    unsigned_reasoning=True,  # its text may be next to an encrypted part: see ``drop_unsendable``
    refusals=True,
    media=fit_media,
    marked=(Text, Media),
    same_marks=RELATIVES,
    results="anywhere",
    parallel=True,
    custom_tools=True,
    some_tools=True,
    search_options=frozenset({"allowed_domains", "location", "context"}),
    can_search=lambda _request: True,
    search=search,
    finder={"type": FINDER},
    choice_extras="tool_choice",
    needs_properties=True,
    options=frozenset({*wire.OPTIONS, "compaction", "logprobs", "max_tokens", "output", "service_tier", "thinking"}),
    service_tiers=wire.SERVICE_TIERS,
    first=(instructions_found, with_items_again, placed, drop_unsendable, messages_kept, compaction_fits),
    arranged=(reasoning_followed, complete_tools),
    last=(openai.form_fits, thinking_fits, bound_fits, input_and_sources),
)
#: What the servers accept in a request that was read in this dialect.
OWN: Final = evolve(
    FOREIGN,
    ids=None,
    names=None,
    service_tiers=None,
    first=(placed, drop_unsendable, messages_kept, compaction_fits),
    arranged=(),
    last=(thinking_fits,),
)


def capabilities(source: str, name: str | None, provider: Provider | None) -> Capabilities:
    """Return what the servers accept, for a request read in the dialect ``source`` and the model ``name``."""
    if source == FOREIGN.dialect:
        return OWN
    model, related = model_for(name, provider, UNKNOWN, None), source in RELATIVES
    takes = evolve(FOREIGN, model=model, most_marks=MOST_MARKS if openai.takes_marks(model, related=related) else 0)
    takes = evolve(takes, last=(*takes.last, phases_labelled)) if model.phases else takes
    if source == "ai-sdk":
        takes = evolve(takes, part_extras=phase_extras)
    if not related:
        return evolve(takes, first=(*FOREIGN.first, openai.strict_fits))
    return evolve(takes, part_extras=same_extras, request_extras=partial(openai.shared_members, verbosity_in_text=True))


# -- writing -----------------------------------------------------------------------------------------------------------


def write(request: Request, _target: Target, report: StreamReport) -> dict[str, Any]:
    """Return the body of a lowered request (only what the dialect can express) as JSON values."""
    options, compaction = request.options, request.options.compaction
    instructions = _instructions(request.turns)
    items: list[Item] = []
    for turn in request.turns[instructions is not None :]:
        items += _answer(turn, report) if turn.role == "assistant" else _messages(turn, report)
    if compaction is not None and compaction.now:
        items.append((compaction.native or {}).get("input") or {"type": wire.TRIGGER})
    extras = dict(request.extras)
    include = list(extras.pop("include", ()))
    include += [wire.LOGPROBS] if options.logprobs and wire.LOGPROBS not in include else []
    body = without_none(
        model=request.model,
        instructions=instructions,
        input=items or extras.get("input"),
        tools=write_tools(request.tools) or None,
        **_choice(request.tool_choice, request.tools),
        max_output_tokens=options.max_tokens,
        reasoning=_reasoning(options.thinking),
        text=without_none(format=openai.write_form(options.output, nested=False)) or None,
        service_tier=options.service_tier,
        stream=request.stream,
    )
    body |= {} if compaction is None else _management(compaction)
    body |= members_of(options, wire.OPTIONS)
    return add_missing(body, extras | without_none(include=include or None))


def _reasoning(thinking: Thinking | None) -> dict[str, Any] | None:
    if thinking is None:
        return None
    summary = None if thinking.summary == "none" else thinking.summary
    return without_none(effort=thinking.effort, summary=summary) or None


def _management(compaction: Compaction) -> dict[str, Any]:
    """Return the member that requests a compaction when the conversation reaches a length."""
    if compaction.native is not None:
        return {name: value for name, value in compaction.native.items() if name == wire.MANAGEMENT}
    if compaction.now and compaction.threshold is None:
        return {}
    return {wire.MANAGEMENT: [without_none(type=COMPACTION, compact_threshold=compaction.threshold)]}


def write_tools(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """Return the definitions of tools. Adjacent tools of one namespace are written as one namespace."""
    written: list[dict[str, Any]] = []
    last: Namespace | None = None
    for tool in tools:
        if tool.loaded:
            continue  # an input item already defines this tool
        definition, namespace = _tool(tool), tool.namespace
        if namespace is None:
            written.append(definition)
        elif namespace == last:
            written[-1]["tools"].append(definition)
        else:
            head = without_none(type="namespace", name=namespace.name, description=namespace.description)
            written.append({**head, **(namespace.extras or {}), "tools": [definition]})
        last = namespace
    return written


def _tool(tool: Tool) -> dict[str, Any]:
    if tool.raw is not None and tool.kind != "custom":
        return dict(tool.raw)
    name = tool.name if tool.qualified is None else tool.qualified.name
    written = without_none(type=tool.kind, name=name, description=tool.description)
    if tool.kind == "custom":
        written |= without_none(format=tool.format)
    else:
        written |= {"parameters": tool.parameters, "strict": tool.strict}
    if tool.deferred:
        written["defer_loading"] = True
    return add_missing(written, tool.extras)


def _choice(choice: ToolChoice | None, tools: Sequence[Tool]) -> dict[str, Any]:
    """Return the members for the tool choice. The default ``auto`` is left out if only ``parallel`` is set."""
    if choice is None:
        return {}
    body = without_none(parallel_tool_calls=choice.parallel)
    # a tool of the provider has no name, and a tool of the client wins over it
    members = {tool.name: {"type": (tool.raw or {}).get("type")} for tool in tools if tool.kind == "server"}
    members |= {tool.name: {"type": tool.kind, "name": tool.name} for tool in tools if tool.kind != "server"}
    named = [members.get(name, {"type": "function", "name": name}) for name in choice.names]
    if choice.native is not None:
        body["tool_choice"] = choice.native
    elif choice.mode == "required" and len(named) == 1 and "name" in named[0]:
        body["tool_choice"] = named[0]
    elif choice.mode == "required" and named and len(tools) == 1:
        body["tool_choice"] = "required"
    elif named and choice.mode != "none":
        body["tool_choice"] = {"type": "allowed_tools", "mode": choice.mode, "tools": named}
    elif choice.mode != "auto" or choice.parallel is None:
        body["tool_choice"] = choice.mode
    return body


# -- the items of the user, the system and tools -----------------------------------------------------------------------


def _instructions(turns: Sequence[Turn]) -> str | None:
    first = turns[0] if turns and turns[0].role == "system" and turns[0].native_role is None else None
    return None if first is None else _plain_text(first)


def _plain_text(turn: Turn) -> str | None:
    """Return the text of a turn that is only one plain text; None for any other turn."""
    text = turn.parts[0] if len(turn.parts) == 1 and not turn.extras else None
    plain = isinstance(text, Text) and text.cache is None and text.signature is None and not text.extras
    return text.text if isinstance(text, Text) and plain else None


def _messages(turn: Turn, report: StreamReport) -> list[Item]:
    """Return the items of a turn: messages, and other items between them. The first message gets the turn's extras."""
    role = "developer" if turn.native_role == "developer" else turn.role
    output, extras = OutputList(report, _begun), turn.extras
    for is_content, parts in groupby(turn.parts, key=_is_content):
        if is_content:
            output.add(add_missing({"role": role, "content": _contents([*parts])}, extras))
            extras = None
            continue
        for part in parts:
            if isinstance(part, ToolResult):
                output.add(_result(part))
            elif isinstance(part, Aside):
                output.aside(part)
    for name in extras or ():  # the turn has no message to contain them
        report.lose("metadata", what=name)
    return output.finish()


def _is_content(part: Part) -> bool:
    return not isinstance(part, ToolResult) and not (isinstance(part, Aside) and not part.type.startswith(wire.CONTENT))


def _result(result: ToolResult) -> Item:
    if result.item is not None:
        return dict(result.item)
    item = {"type": wire.OUTPUTS[result.kind], "call_id": result.call_id, "output": _contents(result.parts)}
    return add_missing(item | without_none(name=result.name), result.extras)


def _contents(parts: Sequence[Part]) -> str | list[Item]:
    return plain_or_list([_content(part) for part in parts])


def _content(part: Part) -> Item:
    match part:
        case Text():
            written: Item = {"type": "input_text", "text": part.text}
        case Media():
            written = _media(part)
        case Aside():
            return dict(part.raw)
        case _:
            raise TypeError(f"content can't contain a {type(part).__name__}")
    mark = {} if part.cache is None else write_cache_mark(part.cache)
    return add_missing(written | mark, part.extras)


def _media(media: Media) -> Item:
    if media.kind == "image":
        shown = media.url if media.data is None else data_uri(media)
        return without_none(type="input_image", image_url=shown, file_id=media.file_id, detail=media.detail or "auto")
    if media.kind == "audio":
        kind = media.media_type or ""
        form = AUDIO_FORMATS.get(kind, kind.removeprefix("audio/"))
        return {"type": "input_audio", "input_audio": {"data": media.data, "format": form}}
    bare = media.data is None or media.media_type is None
    data, others = media.data if bare else data_uri(media), {"filename": media.name, "detail": media.detail}
    return without_none(type="input_file", file_data=data, file_url=media.url, file_id=media.file_id, **others)


# -- the assistant's items ---------------------------------------------------------------------------------------------


def _answer(turn: Turn, report: StreamReport) -> list[Item]:
    output = OutputList(report, _begun)
    for part in thoughts(turn.parts):
        match part:
            case list():
                output.add(_thought(part), [thought.block for thought in part])
            case RedactedReasoning(opaque=opaque) if opaque.vendor == OPENAIS:
                output.add({"type": COMPACTION, "encrypted_content": opaque.blob})
            case RedactedReasoning(opaque=opaque):
                item = {"type": "reasoning", **(of_item(part) or {}), "summary": [], "encrypted_content": opaque.blob}
                output.add(item, [part.block])
            case Text():
                _add_part({"type": "output_text", "text": part.text, "annotations": []}, part, output)
            case Refusal():
                _add_part({"type": "refusal", "refusal": part.text}, part, output)
            case ToolCall(item=None):
                output.add(add_missing(call_item(part), part.extras))
            case ToolCall():
                output.add(dict(part.item or {}))
            case Media(native=native) if native is not None:
                output.aside(native)
            case Aside():
                output.aside(part)
            case _:
                raise TypeError(f"an assistant's turn can't contain a {type(part).__name__}")
    for name in turn.extras or ():
        report.lose("metadata", what=name)
    return [_plain(item) for item in output.finish()]


def _add_part(written: Item, part: Text | Refusal, output: OutputList) -> None:
    extras = dict(part.extras or {})
    item = extras.pop("item", None)
    output.add_part(add_missing(written, extras), part.block, item, apart=True)


def _thought(run: list[Reasoning]) -> Item:
    signature = run[-1].signature
    encrypted = {} if signature is None else {"encrypted_content": signature.blob}
    return {**reasoning_item(run), **(of_item(run[0]) or {}), **encrypted}


def _begun(members: Extras) -> Item:
    return {"type": "message", "role": "assistant", **members, "content": []}


def _plain(item: Item) -> Item:
    """Shorten a message of one plain text, unless it has an id: with an id, the server requires the full form."""
    if item.get("type") != "message" or "content" not in item:
        return item
    if "id" in item:
        return {"status": "completed", **item}
    content = item["content"]
    if len(content) == 1 and content[0].get("type") == "output_text":
        text = {name: value for name, value in content[0].items() if (name, value) != ("annotations", [])}
        if text.keys() == {"type", "text"}:
            return {**{name: value for name, value in item.items() if name != "type"}, "content": text["text"]}
    return item
