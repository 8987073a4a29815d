"""Write Chat requests: messages, options, tools and the tool choice.

What a request can't express here is dropped before it is written (``translation/lowering``): ``capabilities`` says what the
servers take, and this module has the passes that only Chat needs. What a server takes depends on the provider
(``providers.py``); if none is named, it is OpenAI.

Each turn is one message, and each result in it a ``tool`` message directly after the calls. A ``tool`` message is text only,
so a result's media go into a user message after all results. Reasoning is written where the provider takes it; for a Chat
request without a named provider, in the member in which it was read. A signature is sent only to its vendor. Where the dialect
has two members for one option, the same rule applies, as it does for cache marks: a pass chooses the member, the writer writes
it.

Source: dialects.md §1.3, §1.6, §7.3, §7.4; seeds.md S2, S3 (histories with tools).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from attrs import evolve

from streamkit.conversation.media import data_uri, media_type_of
from streamkit.conversation.messages import (
    Media,
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
from streamkit.dialects.bodies.claude import CACHE_CONTROLS, MOST_MARKS
from streamkit.dialects.bodies.openai import TOOLS, write_cache_mark
from streamkit.dialects.lowering import (
    ANYBODY,
    Capabilities,
    Lowering,
    OfParts,
    Place,
    model_for,
    of_parts,
    of_tools,
    of_turns,
)
from streamkit.dialects.members.fields import BLANK_LINE, add_missing, plain_or_list, without_none
from streamkit.dialects.openai_chat import wire
from streamkit.dialects.openai_chat.providers import provider_of
from streamkit.dialects.openai_chat.wire import BLOCKS, DELTA_IMAGES, IMAGES, PARTS, opaque_member
from streamkit.dialects.profiles import Provider, Target
from streamkit.events import Aside, Opaque
from streamkit.report import StreamReport
from streamkit.text.one_string import one_string

#: OpenAI's dialects. File ids and cache marks mean the same in both.
RELATIVES: Final = frozenset({"openai-chat", "openai-responses"})
#: The member that requests a web search, and the names of the models that accept it.
SEARCH: Final = "web_search_options"
SEARCH_MODELS: Final = re.compile(r"-search-(?:preview|api)")
#: A part of reasoning, or one of OpenRouter's details of another type.
Thought: TypeAlias = Reasoning | RedactedReasoning | Aside
DETAILS: Final = "reasoning_details"


# -- what the servers take ---------------------------------------------------------------------------------------------


def as_it_came(to: Lowering) -> bool:
    """Return whether members of single providers are written as they were read, because no provider is named."""
    return to.own and to.target.provider is None


def has_form(media: Media, to: Lowering) -> bool:
    """Return whether media can be a content part."""
    match media.kind:
        case "image":
            linked = media.url is not None and (to.own or media.url.startswith(("data:", "http:", "https:")))
            return media.data is not None or linked
        case "audio":
            known = media.media_type in wire.AUDIO_FORMATS or (to.own and media.media_type is not None)
            return media.data is not None and known
        case "file":
            return media.data is not None or (media.file_id is not None and to.source in RELATIVES)
    return False


def fit_media(media: Media, place: Place, to: Lowering) -> Media | None:
    """Return media of the user or a result. Give files a name and a type. Return None, and count a loss, for other media."""
    if place not in {"user", "result"} or not has_form(media, to):
        to.lose("media", media.kind)
        return None
    if media.kind != "file" or media.data is None:
        return media
    return openai.named_file(evolve(media, media_type=media_type_of(media)), to)


def own_media(media: Media, place: Place, to: Lowering) -> Media | None:
    """Return media unchanged; of the assistant's media, only those that a model made in this dialect."""
    native = media.native
    if native is not None and native.vendor == wire.VENDOR if place == "assistant" else native or has_form(media, to):
        return media
    to.lose("media", media.kind)
    return None


@of_turns
def media_behind_results(turn: Turn, to: Lowering) -> Turn:
    """Move media from results to the user's parts directly after them, since a ``tool`` message is text only."""
    if ToolResult not in map(type, turn.parts) or as_it_came(to):
        return turn
    parts: list[Part] = []
    moved: list[Part] = []
    for part in turn.parts:
        found = part.parts if isinstance(part, ToolResult) else ()
        media = [inner for inner in found if isinstance(inner, Media) and has_form(inner, to)]
        if isinstance(part, ToolResult) and media:
            for each in media:
                to.lose("media", f"{each.kind}, moved behind the result {part.call_id}")
            moved_ids = {*map(id, media)}
            parts.append(evolve(part, parts=[inner for inner in found if id(inner) not in moved_ids]))
            moved += media
        else:
            parts.append(part)
    place = next((place for place, part in enumerate(parts) if not isinstance(part, ToolResult)), len(parts))
    return evolve(turn, parts=[*parts[:place], *moved, *parts[place:]]) if moved else turn


@of_parts
def text_alone(part: Part, place: Place, to: Lowering) -> Part | None:
    """Drop all content except text, for a provider that takes content as one string."""
    native = part.native if isinstance(part, Media) else part
    if isinstance(native, Aside) and (place != "assistant" or native.type.startswith("content.")):
        kind = native.raw.get("type")
    elif isinstance(part, Media) and native is None:
        kind = {"image": "image_url", "audio": "input_audio"}.get(part.kind, part.kind)
    elif isinstance(part, Text | Refusal) and part.extras is not None:
        for name in part.extras:
            to.lose("metadata", name)
        return Text(part.text, getattr(part, "signature", None))
    else:
        return part
    to.lose("media", f"{kind}, which this provider does not accept")
    return None


def result_mark(part: Part, _place: Place, _to: Lowering) -> Part:
    """Move the cache mark of a result to the text at its end, for a provider that takes one there."""
    last = part.parts[-1] if isinstance(part, ToolResult) and part.parts else None
    if not isinstance(part, ToolResult) or part.cache is None or not isinstance(last, Text):
        return part
    return evolve(part, cache=None, parts=[*part.parts[:-1], evolve(last, cache=part.cache)])


@of_tools
def tools_unmarked(tool: Tool, to: Lowering) -> Tool:
    """Drop the cache marks of tool definitions, because Chat has no place for them."""
    if tool.cache is None:
        return tool
    to.lose("cache_mark", tool.name)
    return evolve(tool, cache=None)


def mark_in_words(part: Part, _place: Place, to: Lowering) -> Part:
    """Turn a part's cache mark into a member with the provider's name for it."""
    if not isinstance(part, (Text, Media, ToolCall, ToolResult)) or part.cache is None or getattr(part, "native", None):
        return part
    words = provider_of(to.target.provider).cache_marks if isinstance(part, Text | Media) else ""
    if to.own and words != "openai" and not to.target.cache:  # else streamkit itself marked the part
        to.lose("cache_mark", part.cache)
    mark = {"cache_control": dict(CACHE_CONTROLS[part.cache])} if words == "anthropic" else write_cache_mark(part.cache)
    return evolve(part, cache=None, extras={**mark, **(part.extras or {})} if words else part.extras)


def nameless(part: Part, _place: Place, to: Lowering) -> Part:
    """Drop the tool's name from a result, unless the client of this dialect wrote it."""
    if not isinstance(part, ToolResult) or part.name is None or (to.own and part.place):
        return part
    return evolve(part, name=None)


#: Write cache marks as the provider does, and drop the names of results.
MARKS_IN_WORDS: Final = OfParts(
    {**dict.fromkeys((Text, Media, ToolCall), (mark_in_words,)), ToolResult: (mark_in_words, nameless)}
)


@of_turns
def reasoning_placed(turn: Turn, to: Lowering) -> Turn:
    """Put reasoning into the member that the provider accepts, and drop what that member cannot contain."""
    if turn.role != "assistant":
        return turn
    provider = provider_of(to.target.provider)
    visible = [part for part in turn.parts if isinstance(part, Reasoning)]
    field = provider.reasoning_history
    if as_it_came(to):
        encrypted = any(isinstance(part, RedactedReasoning) for part in turn.parts)
        opaque = encrypted or any(part.signature is not None for part in visible)
        field = turn.native_reasoning or (DETAILS if opaque else "reasoning_content")
    signed = visible[-1:] if opaque_member(field, visible) else []
    texts = [part for part in turn.parts if isinstance(part, Text) and part.signature is not None]
    parts: list[Part] = []
    for part in turn.parts:
        match part:
            case Reasoning() | RedactedReasoning() | Aside():
                kept = _thought(part, field, signed, to)
                parts += [] if kept is None else [kept]
            case Text(signature=Opaque() as signature) if part is not texts[-1] or not _goes_back(signature, to):
                to.lose("reasoning_signature", signature.vendor)
                parts.append(evolve(part, signature=None))
            case ToolCall(signature=Opaque() as signature) if not (
                _goes_back(signature, to) or (field == DETAILS and _is_known(signature, to))
            ):
                to.lose("reasoning_signature", signature.vendor)
                parts.append(evolve(part, signature=None))
            case _:
                parts.append(part)
    if provider.reasoning_history_needed and any(isinstance(part, ToolCall) for part in parts):
        parts.insert(0, Reasoning(""))
    return evolve(turn, parts=parts, native_reasoning=field or None)


def _thought(part: Thought, field: str, signed: Sequence[Reasoning], to: Lowering) -> Thought | None:
    """Return a part in the form that the reasoning member takes, or None. ``signed``: parts whose signature has a member."""
    match part:
        case Aside():
            if field == DETAILS or not part.type.startswith(f"{DETAILS}."):
                return part
            to.lose(part.kind, part.type)
            return None
        case RedactedReasoning():
            if field in {BLOCKS, PARTS} or (field == DETAILS and _is_known(part.opaque, to)):
                return part
            to.lose("reasoning_opaque", part.opaque.vendor)
            return None
    signature = part.signature
    known = signature is None or field in {BLOCKS, PARTS} or (field == DETAILS and _is_known(signature, to))
    if signature is not None and not known and not any(part is each for each in signed):
        to.lose("reasoning_signature", signature.vendor)
        part = evolve(part, signature=None)
    if part.text and not field:
        to.lose("reasoning_history")
    has_content = part.text or part.signature is not None or field in {BLOCKS, PARTS}
    return part if field and has_content else None


def _is_known(opaque: Opaque, to: Lowering) -> bool:
    """Return whether OpenRouter knows the vendor that can read this value."""
    return to.own or opaque.vendor in wire.FORMATS


def _goes_back(signature: Opaque, to: Lowering) -> bool:
    """Return whether a signature may be sent in ``extra_content``."""
    return as_it_came(to) or provider_of(to.target.provider).signatures == signature.vendor


def drop_empty_turns(request: Request, to: Lowering) -> None:
    """Drop assistant turns without content, and count each as a repair."""
    turns = [turn for turn in request.turns if turn.role != "assistant" or any(map(_says, turn.parts))]
    for _ in range(len(request.turns) - len(turns)):
        to.report.repair("turn_empty")
    request.turns = turns


def _says(part: Part) -> bool:
    return not isinstance(part, (Text, Refusal)) or bool(part.text or part.extras or getattr(part, "signature", None))


def search(asked: WebSearch, _to: Lowering) -> dict[str, Any]:
    """Return the request's member that defines a web search."""
    location = None if asked.location is None else {"type": "approximate", "approximate": dict(asked.location)}
    return {SEARCH: without_none(user_location=location, search_context_size=asked.context)}


def _can_search(request: Request) -> bool:
    """Return whether the model is one that always searches the web."""
    choice = request.tool_choice
    return SEARCH_MODELS.search(request.model or "") is not None and (choice is None or choice.mode != "none")


def search_not_chosen(request: Request, to: Lowering) -> None:
    """Limit the choice to functions. The web search is not one, and a model that has it always searches."""
    choice, functions = request.tool_choice, {tool.name for tool in request.tools if tool.kind != "server"}
    if choice is None or to.search is None:
        return
    names = tuple(name for name in choice.names if name != to.search.name or name in functions)
    if not functions:
        choice = None
    elif names != choice.names:
        to.lose("tool_choice", "names")
        choice = evolve(choice, names=names, mode=choice.mode if names else "auto")
    request.tool_choice = choice


def options_in_fields(request: Request, to: Lowering) -> None:
    """Set the members for the token limit and the amount of thinking that this provider accepts."""
    options, provider = request.options, provider_of(to.target.provider)
    bound, field, thinking = provider.max_tokens_field, provider.thinking_field, options.thinking
    if as_it_came(to):
        bound = options.native_max_tokens or bound
        field = (thinking and thinking.native) or field
    if thinking is not None and field == "reasoning_effort":
        thinking = Thinking(openai.effort_alone(thinking, to, "budget_tokens", "summary"), native=field)
    elif thinking is not None:
        thinking = _in_object(thinking, field, to)
    options.native_max_tokens = bound
    options.thinking = thinking


def _in_object(thinking: Thinking, field: str, to: Lowering) -> Thinking:
    """Return the amount of thinking in the form of OpenRouter's object."""
    if thinking.summary not in {None, "none", "auto"}:
        to.lose_thinking(thinking, "summary")
    effort = to.fit_effort(thinking.effort)
    if effort is not None and thinking.budget_tokens is not None and not to.own:  # the server takes only one of the two
        to.lose_thinking(thinking, "effort")
        effort = None
    return evolve(thinking, effort=effort, native=field)


FOREIGN: Final = Capabilities(
    dialect="openai-chat",
    vendor=wire.VENDOR,
    title="Chat",
    ids=openai.IDS,
    names=TOOLS.names,
    users=openai.USERS,
    text_files=False,
    turn_names=True,
    result_errors=False,
    signs_reasoning=ANYBODY,
    signs_texts=ANYBODY,
    signs_calls=ANYBODY,
    unsigned_reasoning=True,
    refusals=True,
    media=fit_media,
    empty_turns=True,
    results="behind calls",
    parallel=True,
    some_tools=True,
    search_options=frozenset({"location", "context"}),
    can_search=_can_search,
    search=search,
    needs_properties=True,
    options=frozenset({*wire.OPTIONS, "max_tokens", "thinking", "output"}),
    service_tiers=wire.SERVICE_TIERS,
    first=(media_behind_results, tools_unmarked, reasoning_placed, search_not_chosen),
    said=(MARKS_IN_WORDS, drop_empty_turns),
    last=(openai.form_fits, options_in_fields),
)
#: What servers accept in a request that was read in Chat. OpenAI has no ``top_k``, but many other providers have.
OWN: Final = evolve(
    FOREIGN,
    ids=None,
    names=None,
    media=own_media,
    results="apart",
    custom_tools=True,
    options=FOREIGN.options | {"top_k"},
    service_tiers=None,
    first=(media_behind_results, tools_unmarked, reasoning_placed),
    said=(MARKS_IN_WORDS,),
    last=(options_in_fields,),
)


def capabilities(source: str, name: str | None, provider: Provider | None) -> Capabilities:
    """Return what the servers accept, for a request read in the dialect ``source`` and the model ``name``."""
    chat = provider_of(provider)
    words = chat.cache_marks
    marked = (Text, Media) if words else ()
    # the dialects whose marks mean the same: Anthropic's marks have two spans
    same_marks = frozenset({"anthropic", "bedrock"} if words == "anthropic" else {OWN.dialect})
    marks = (OfParts({ToolResult: (result_mark,)}),) if words == "anthropic" else ()
    arranged = (text_alone,) if chat.text_only else ()
    if source == OWN.dialect:
        return evolve(
            OWN,
            marked=marked,
            same_marks=same_marks,
            needs_marks=words == "anthropic",
            first=(*OWN.first, *marks),
            arranged=arranged,
        )
    model, is_openai = model_for(name, provider), chat.name in {"", "openai", "azure"}
    if is_openai and model.legacy_chat:
        model = evolve(model, efforts=tuple(effort for effort in model.efforts if effort != "max"))
    most_marks = MOST_MARKS if words == "anthropic" or openai.takes_marks(model, related=source in RELATIVES) else 0
    related = provider is not None and words == "openai" and source in RELATIVES
    return evolve(
        FOREIGN,
        model=model,
        marked=marked,
        same_marks=same_marks,
        most_marks=most_marks if words else None,
        needs_marks=words == "anthropic",
        custom_tools=words == "openai",
        excuses_unsigned=chat.signatures == "google",
        form_with_tools=model.signatures if chat.signatures == "google" else chat.form_with_tools,
        unthinking_tools=is_openai and model.legacy_chat,
        first=(*FOREIGN.first, *marks, *((openai.strict_fits,) if is_openai and source not in RELATIVES else ())),
        arranged=arranged,
        most_stops=4 if is_openai else None,
        request_extras=partial(openai.shared_members, verbosity_in_text=False) if related else None,
    )


# -- writing -----------------------------------------------------------------------------------------------------------


def write(request: Request, target: Target, report: StreamReport) -> dict[str, Any]:
    """Return the body of a lowered request (only what the dialect can express) as JSON values."""
    messages = Messages(report, one_text=provider_of(target.provider).text_only)
    return write_body(request, messages, wire.OPTIONS)


def write_body(request: Request, messages: Messages, names: Mapping[str, str]) -> dict[str, Any]:
    """Return the body of a request. ``names`` maps our names of single-member options to the dialect's."""
    options, thinking = request.options, request.options.thinking
    body = without_none(model=request.model)
    body["messages"] = [message for turn in request.turns for message in messages.of(turn)]
    body |= _tools(request.tools)
    body |= _choice(request.tool_choice, {tool.name for tool in request.tools if tool.kind == "custom"})
    values = {theirs: getattr(options, ours) for ours, theirs in names.items() if ours != "service_tier"}
    body |= {name: value for name, value in values.items() if value is not None and value != ()}
    if options.max_tokens is not None:
        body[options.native_max_tokens or "max_tokens"] = options.max_tokens
    body |= without_none(service_tier=options.service_tier)
    if thinking is not None:
        body |= _thinking(thinking)
    body |= without_none(
        response_format=openai.write_form(options.output, nested=True), stream=request.stream, top_k=options.top_k
    )
    if request.stream_usage is not None:
        body["stream_options"] = {"include_usage": request.stream_usage}
    return add_missing(body, request.extras)


def _thinking(thinking: Thinking) -> dict[str, Any]:
    effort, budget = thinking.effort, thinking.budget_tokens
    if thinking.native == "reasoning_effort":
        return without_none(reasoning_effort=effort)
    exclude = None if thinking.summary is None else thinking.summary == "none"
    amount = without_none(effort=effort, max_tokens=budget, enabled=thinking.enabled, exclude=exclude)
    return {thinking.native or "reasoning": amount}


def _tools(tools: Sequence[Tool]) -> dict[str, Any]:
    """Return the tools, and a web search as its own member of the request."""
    members: dict[str, Any] = {}
    written: list[dict[str, Any]] = []
    for tool in tools:
        if tool.raw is not None and SEARCH in tool.raw:
            members = dict(tool.raw)
        else:
            written.append(_tool(tool))
    return {"tools": written, **members} if written else members


def _tool(tool: Tool) -> dict[str, Any]:
    if tool.kind == "server":
        return dict(tool.raw or {})
    details = {"parameters": tool.parameters, "strict": tool.strict}
    if tool.kind == "custom":
        details = {"format": _format(tool.format)}
    written = without_none(name=tool.name, description=tool.description, **details)
    return add_missing({"type": tool.kind, tool.kind: written}, tool.extras)


def _format(form: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the format of a custom tool's input, with the object around the grammar."""
    if form is None or form.get("type") != "grammar":
        return None if form is None else dict(form)
    return {"type": "grammar", "grammar": {name: value for name, value in form.items() if name != "type"}}


def _choice(choice: ToolChoice | None, custom: set[str]) -> dict[str, Any]:
    """Return the members for the tool choice. The default ``auto`` is left out if only ``parallel`` is set."""
    if choice is None:
        return {}
    kinds = [("custom" if name in custom else "function", name) for name in choice.names]
    named = [{"type": kind, kind: {"name": name}} for kind, name in kinds]
    body: dict[str, Any] = without_none(parallel_tool_calls=choice.parallel)
    if choice.native is not None:
        body["tool_choice"] = choice.native
    elif choice.mode == "required" and len(named) == 1:
        body["tool_choice"] = named[0]
    elif named and choice.mode != "none":
        body["tool_choice"] = {"type": "allowed_tools", "allowed_tools": {"mode": choice.mode, "tools": named}}
    elif choice.mode != "auto" or choice.parallel is None:
        body["tool_choice"] = choice.mode
    return body


class Messages:
    """Writes the messages of one request."""

    def __init__(self, report: StreamReport, *, one_text: bool = False) -> None:
        self.report = report
        self._one_text = one_text  #: whether content must be one string

    def of(self, turn: Turn) -> list[dict[str, Any]]:
        """Return the messages of a turn. A turn has either only results, or none."""
        if turn.role == "assistant":
            return [self.assistant(turn)]
        results = [self._result(part) for part in turn.parts if isinstance(part, ToolResult)]
        role = "developer" if turn.native_role == "developer" else turn.role
        return results or [named({"role": role, "content": self.content(turn.parts)}, turn)]

    def _result(self, result: ToolResult) -> dict[str, Any]:
        message = {"role": "tool", "tool_call_id": result.call_id, "content": self.content(result.parts)}
        return add_missing(message | without_none(name=result.name), result.extras)

    # -- content ---------------------------------------------------------------------------------------------------

    def content(self, parts: Sequence[Part], joint: str = BLANK_LINE) -> str | list[dict[str, Any]]:
        """Return content: a string if it is one plain text, or joined with ``joint`` if it must be one; else a list."""
        if not self._one_text:
            return plain_or_list([self.part(part) for part in parts])
        return self._joined([part.text for part in parts if isinstance(part, Text | Refusal)], joint.join)

    def _joined(self, texts: list[str], join: Callable[[list[str]], str]) -> str:
        """Join texts. Count each boundary between two texts as lost."""
        if len(texts) > 1:
            self.report.lose("block_boundary", len(texts) - 1)
        return join(texts)

    def part(self, part: Part) -> dict[str, Any]:
        match part:
            case Text():
                written = {"type": "text", "text": part.text}
            case Refusal():
                written = {"type": "refusal", "refusal": part.text}
            case Media(native=Aside(raw=whole)):
                return dict(whole)
            case Media():
                written = self.media(part)
            case Aside():
                return dict(part.raw)
            case _:
                raise TypeError(f"content can't contain a {type(part).__name__}")
        return add_missing(written, part.extras)

    def media(self, media: Media) -> dict[str, Any]:
        match media.kind:
            case "image":
                url = data_uri(media) if media.data is not None else media.url
                return {"type": "image_url", "image_url": without_none(url=url, detail=media.detail)}
            case "audio":
                kind = media.media_type or ""
                form = wire.AUDIO_FORMATS.get(kind) or kind.removeprefix("audio/")
                return {"type": "input_audio", "input_audio": {"data": media.data, "format": form}}
        bare = media.data is None or media.media_type is None
        data = media.data if bare else data_uri(media)
        return {"type": "file", "file": without_none(file_data=data, file_id=media.file_id, filename=media.name)}

    # -- the assistant ---------------------------------------------------------------------------------------------

    def assistant(self, turn: Turn) -> dict[str, Any]:
        content: list[Part] = []
        thought: list[Thought] = []
        calls: list[ToolCall] = []
        members: dict[str, Any] = {}
        refused: list[str] = []
        late = False  # whether reasoning came after another part
        for each in turn.parts:
            part = each.native if isinstance(each, Media) else each
            match part:
                case Reasoning() | RedactedReasoning():
                    late = late or bool(content or calls)
                    thought.append(part)
                case ToolCall():
                    calls.append(part)
                case Aside():
                    self._aside(part, content, thought, members)
                case Text() | Refusal():
                    if calls:
                        self.report.lose("block_order")
                    if isinstance(part, Text) or part.extras is not None:
                        content.append(part)
                    else:
                        members.setdefault("refusal", "")
                        refused.append(part.text)
                case _:
                    raise TypeError(f"an assistant's turn can't contain a {type(each).__name__}")
        if refused:
            members["refusal"] = "".join(refused)
        empty = None if calls or members else ""
        message = {"role": "assistant", "content": self.content(content, "") if content else empty, **members}
        reasoning = self._reasoning(turn.native_reasoning, thought, calls)
        if late and reasoning:
            self.report.lose("block_order")
        written = [write_call(call, reasoning.get(DETAILS)) for call in calls]
        if (parts := reasoning.pop(PARTS, None)) is not None:
            text = message["content"]
            message["content"] = [*parts, *([{"type": "text", "text": text}] if isinstance(text, str) else text or [])]
        signed = [part.signature for part in content if isinstance(part, Text) and part.signature is not None]
        message |= reasoning | without_none(extra_content=wire.extra_content(signed[-1]) if signed else None)
        return named(message | without_none(tool_calls=written or None), turn)

    def _aside(self, part: Aside, content: list[Part], thought: list[Thought], members: dict[str, Any]) -> None:
        """Write an aside of this dialect: a part of the content, a part of the reasoning, or a member of the message."""
        if part.type.startswith("content."):
            content.append(part)
        elif part.type.startswith(f"{DETAILS}."):
            thought.append(part)
        elif part.kind == "citation":
            members.setdefault("annotations", []).append(part.raw)
        elif part.kind == "audio" and isinstance(part.raw, dict) and "id" in part.raw:
            members["audio"] = {"id": part.raw["id"]}  # only the id of audio is sent back (dialects.md §1.3)
        elif part.type == DELTA_IMAGES and isinstance(part.raw, list):
            members.setdefault(IMAGES, []).extend(part.raw)
        elif part.type.startswith("delta.") and part.kind != "logprobs":
            members[part.type.removeprefix("delta.")] = part.raw
        else:
            self.report.lose(part.kind, what=part.type)

    def _reasoning(self, field: str | None, parts: Sequence[Thought], calls: Sequence[ToolCall]) -> dict[str, Any]:
        if field == DETAILS:
            return _details(parts, calls)
        if field in {BLOCKS, PARTS}:
            return {field: [_block(part, field) for part in parts]}
        visible = [part for part in parts if isinstance(part, Reasoning)]
        members = opaque_member(field or "", visible)
        texts = [part.text for part in visible if part.text]
        if not field or not (texts or any(part.signature is None for part in visible)):
            return dict(members)
        return {field: self._joined(texts, one_string), **members}


def named(message: dict[str, Any], turn: Turn) -> dict[str, Any]:
    """Return a message, with the name and the extras of its turn added."""
    return add_missing(message | without_none(name=turn.name), turn.extras)


def _block(part: Thought, field: str) -> dict[str, Any]:
    """Return one of Anthropic's blocks for LiteLLM, or a content part for Databricks."""
    if isinstance(part, RedactedReasoning):
        return {"type": "redacted_thinking", "data": part.opaque.blob}
    if isinstance(part, Aside):
        raise TypeError(f"{field} has no asides")
    signed = {} if part.signature is None else {"signature": part.signature.blob}
    if field == BLOCKS:
        return {"type": "thinking", "thinking": part.text, **signed}
    summary = {"type": "summary_text", "text": part.text, **signed}
    return {"type": "reasoning", "summary": [summary], **(part.extras or {})}


def _details(parts: Sequence[Thought], calls: Sequence[ToolCall]) -> dict[str, Any]:
    """Return OpenRouter's details; an empty list if only calls are signed, whose signatures are added later."""
    details: list[dict[str, Any]] = []
    for part in parts:
        detail = dict(part.raw) if isinstance(part, Aside) else wire.reasoning_detail(part)
        if isinstance(part, Aside) or detail:
            detail.update({} if isinstance(part, Aside) else part.extras or {})
            detail.setdefault("index", len(details))
            details.append(detail)
    return {DETAILS: details} if details or any(call.signature is not None for call in calls) else {}


def write_call(call: ToolCall, details: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    """Return one call. Its signature is in it, or in the ``details`` of the message's reasoning if there are any."""
    written, signature = wire.tool_call(call), call.signature
    if signature is not None and details is not None:
        details.append({**wire.encrypted(signature), "id": call.id, "index": len(details)})
    elif signature is not None:
        written["extra_content"] = wire.extra_content(signature)
    return add_missing(written, call.extras)
