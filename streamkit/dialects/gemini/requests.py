"""Read and write Gemini's requests: contents, options, tools and the tool choice.

Each content becomes one turn, but neighbouring contents of the model become one turn together: the official client stores each
chunk of a stream as a separate content. Ids are optional; a call without one gets an id made from its place. An empty text is
dropped. Parts that only Google understands become asides, whole, as in streams (``decode.py``).

The response of a function is an object. If its only member is a text under one of the names in ``OUTPUTS``, this text is the
result, and the reader remembers the member's name. The result of any other object is its JSON text.

Google's client writes base64 in the URL alphabet: media are converted to the standard alphabet, signatures are not. streamkit
writes another vendor's signatures in a marked form ("sealed"). If a client sends this form back, the reader restores the
original signature and assigns it to all the text that it signs (``vocabulary/sealed_reasoning.py``).

The server takes each member under two names (``functionCall`` and ``function_call``), and so does the reader. The model, and
whether to stream, are in the URL. A schema has two forms; the older one (``parameters``, ``responseSchema``) is read as the
JSON schema with the same meaning, and the original is kept, too.

Before a request is written, everything that the servers do not take (``capabilities``) is dropped (``translation/lowering``).
All system messages are joined to one instruction.

A signature is written on the same part on which it was read. Signatures of other vendors are dropped, and so is reasoning of
other models. Where the server demands a signature, Google's placeholder for a missing one is written.

A schema is written as JSON schema, without the keywords that Gemini does not take, or in the older form if it was read so. The
mode ``VALIDATED`` applies to all tools at once: it requires arguments to match their schemas, and allows a choice among some
tools that does not require a call.

Source: dialects.md §5.1-§5.3, §7.3, §7.4; quirks.md R14, 35; seeds.md S2 (pairs of calls and results).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from operator import is_not
from typing import Any, Final, Literal, TypeAlias, TypeGuard

import orjson
from attrs import evolve

from streamkit.conversation.media import kind_of_type, media_type_of
from streamkit.conversation.messages import (
    Extras,
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
from streamkit.dialects.bodies import google
from streamkit.dialects.bodies.google import FILMS, LEVELS, SERVICE_TIERS, VENDOR, is_own_uri, standard_base64
from streamkit.dialects.gemini.decode import ASIDE_PARTS, KINDS, TEXT_FIELDS
from streamkit.dialects.gemini.schemas import cut_schema, json_schema
from streamkit.dialects.gemini.wire import DYNAMIC, JSON, MODES, OPTIONS, PLAIN, TOOLS, VALIDATED, camel_case
from streamkit.dialects.lowering import Capabilities, Lowering, OfParts, Place, of_turns, results_named, told_by
from streamkit.dialects.members.fields import (
    Fields,
    RequestReader,
    Waiting,
    add_missing,
    base64_of,
    kind_of,
    members_of,
    read_options,
    without_none,
)
from streamkit.dialects.members.values import has_member, has_value
from streamkit.dialects.profiles import Target
from streamkit.dialects.vocabulary.models import COMMON, UNKNOWN, budget_of
from streamkit.dialects.vocabulary.sealed_reasoning import Sealed, unseal
from streamkit.dialects.vocabulary.web_search import read_search
from streamkit.events import Aside, Opaque
from streamkit.report import StreamReport
from streamkit.text.quoting import quoted
from streamkit.tool_calls.check import check_arguments

#: By Gemini's role: streamkit's role. ``function`` is an older name, which the server now refuses.
ROLES: Final[Mapping[str, Literal["user", "assistant"]]] = {"user": "user", "model": "assistant", "function": "user"}
OUTPUTS: Final = frozenset({"output", "result", "error"})  # names of a tool's output, if it is the only member
CHOICES: Final[Mapping[str, Literal["auto", "none", "required"]]] = {
    "MODE_UNSPECIFIED": "auto",
    VALIDATED: "auto",
    **{word: ours for ours, word in MODES.items()},
}
SEARCHES: Final = frozenset({"googleSearch", "googleSearchRetrieval"})  # the second is the older name
NO_LEVEL: Final = "thinking_level_unspecified"
PartBody: TypeAlias = dict[str, Any]
MEDIA_TYPES: Final = re.compile(
    r"(?:image|audio|video|text)/.+|application/(?:pdf|json|rtf|(?:x-)?(?:java|type)script)"
)


# -- reading -----------------------------------------------------------------------------------------------------------


#: What only Google's servers can read.
STORES: Final[Mapping[str, Any]] = {
    "cachedContent": Unreadable("cached contents by their name", "send the cached contents in `contents`"),
    "tools": [
        {
            "fileSearch": {"fileSearchStoreNames": google.FILE_STORE},
            "retrieval": {"vertexAiSearch": google.DATA_STORE, "vertexRagStore": google.DATA_STORE},
        }
    ],
}


class GeminiRequestReader(RequestReader):
    """Reads one request, member by member."""

    dialect = "gemini"
    stores = STORES

    def __init__(self, report: StreamReport) -> None:
        super().__init__(report)
        self._calls = 0  #: the number of calls in the current model turn
        self._waiting = Waiting()
        self._signature: Opaque | None = None  #: a restored signature of the next call
        self._extras: dict[str, Any] = {}  #: unknown members of the current turn

    @classmethod
    def decode_request(cls, fields: Fields, report: StreamReport) -> Request:
        return super().decode_request(fields.spelled(camel_case), report)

    def begun(self, fields: Fields) -> Request:
        return Request(self.dialect, fields.string("model"))

    def read_turns(self, fields: Fields) -> None:
        """Read the system instruction, whose role has no meaning, and the contents."""
        instruction = fields.fields("systemInstruction")
        if instruction is not None:
            turn = Turn("system", native_role=instruction.string("role"))
            for part in instruction.each("parts"):
                self._part(part, turn)
            self.turns.append(turn)
        for content in fields.needed_each("contents"):
            self._content(content)
        self._end_turn()

    def _content(self, content: Fields) -> None:
        role = content.string("role") or "user"
        if role not in ROLES:
            raise content.wrong(f"must be 'user' or 'model', not {quoted(role)}", "role")
        turn = self._turn(ROLES[role])
        for part in content.each("parts"):
            self._part(part, turn)
        self._extras |= content.rest()
        turn.extras = self._extras or None

    def _end_turn(self) -> None:
        """End a turn. If a signature was read for a call that did not follow, keep the signature as opaque reasoning."""
        if self._signature is not None:  # the call that it signed is missing
            self.turns[-1].parts.append(RedactedReasoning(self._signature))
            self._signature = None

    def _turn(self, role: Literal["user", "assistant"]) -> Turn:
        """Return the turn for a content of this role: the last turn if both are the model's, else a new turn."""
        if self.turns and role == "assistant" == self.turns[-1].role:
            return self.turns[-1]
        self._end_turn()
        if role == "assistant":
            self._calls, self._waiting = 0, Waiting()
        self._extras = {}
        turn = Turn(role)
        self.turns.append(turn)
        return turn

    def _part(self, part: Fields, turn: Turn) -> None:
        kind = _kind(part)
        speaks = turn.role == "assistant"
        match kind:
            case "text" if speaks:
                self._spoken(part, turn.parts)
            case "text":
                self._text(part, turn)
            case "inlineData" | "fileData":
                turn.parts.append(_media_of(part))
            case "functionCall" if speaks:
                self._call(part, turn.parts)
            case "functionCall":
                raise part.wrong("must be in a content with the role 'model'", "functionCall")
            case "functionResponse" if turn.role == "user":
                self._result(part, turn.parts)
            case _:
                aside = ASIDE_PARTS.get(kind, "unknown_event")
                turn.parts.append(Aside(VENDOR, aside, "part", part.rest(), place=part.place))

    def _text(self, part: Fields, turn: Turn) -> None:
        """Read text that is not the model's: a signature on it has no meaning."""
        if part.boolean("thought"):
            raise part.wrong("must be in a content with the role 'model'", "thought")
        text = Text(part.string("text") or "")
        text.extras = part.rest() or None
        if text.text or text.extras:
            turn.parts.append(text)

    def _spoken(self, part: Fields, parts: list[Part]) -> None:
        text, thought, blob = part.string("text") or "", part.boolean("thought"), part.string("thoughtSignature")
        new: Text | Reasoning = Reasoning(text, "summary") if thought else Text(text)
        new.extras = part.rest() or None
        sealed = unseal(standard_base64(blob)) if blob else None
        if blob and sealed is None:
            new.signature = Opaque(VENDOR, blob)
        if text or new.signature or new.extras:
            parts.append(new)
        if sealed is not None:
            self._restore(sealed, parts)

    def _restore(self, sealed: Sealed, parts: list[Part]) -> None:
        """Restore another vendor's signature or opaque data. A signature covers all text of its kind before it."""
        opaque = sealed.opaque
        match sealed.kind:
            case "call":
                self._signature = opaque
            case "opaque":
                parts.append(RedactedReasoning(opaque))
            case "part":
                parts.append(Text("", opaque))
            case kind:
                signed: Text | Reasoning = Reasoning("", "summary") if kind == "reasoning" else Text("")
                texts: list[str] = []  # streams send a text in fragments and its signature last
                while parts and isinstance(last := parts[-1], type(signed)) and not (last.signature or last.extras):
                    texts.append(last.text)
                    parts.pop()
                signed.text, signed.signature = "".join(reversed(texts)), opaque
                parts.append(signed)

    def _call(self, part: Fields, parts: list[Part]) -> None:
        call, blob = part.needed_fields("functionCall"), part.string("thoughtSignature")
        text = call.object_text("args") or "{}"
        read = ToolCall(self._calls, call.string("id") or "", call.needed("name"), text, place=call.place)
        self._calls += 1
        if not read.id:
            _, content, _, number = part.path
            read.id, read.id_made = f"call_{content}_{number}", True
        self._waiting.add(read)
        read.extras = call.rest() or None
        if blob:
            sealed = unseal(standard_base64(blob))
            read.signature = Opaque(VENDOR, blob) if sealed is None else sealed.opaque
        else:
            read.signature, self._signature = self._signature, None
        parts.append(read)
        _keep_members(part, parts)

    def _result(self, part: Fields, parts: list[Part]) -> None:
        response = part.needed_fields("functionResponse")
        call_id, name = response.string("id") or "", response.needed("name")
        result = ToolResult(self._waiting.answer(call_id, name), name=name, place=response.place)
        self._response(response, result)
        for inner in response.each("parts"):
            kind = _kind(inner)
            media = kind in {"inlineData", "fileData"}
            result.parts.append(_media_of(inner) if media else Aside(VENDOR, "unknown_event", "part", inner.rest()))
        result.extras = response.rest() or None
        parts.append(result)
        _keep_members(part, parts)

    def _response(self, response: Fields, result: ToolResult) -> None:
        """Read the text of a function's response, which may be a list of several, or else the whole object as JSON."""
        members = response.peek("response")
        if not isinstance(members, dict | None):
            raise response.wrong(f"must be an object, not {kind_of(members)}", "response")
        if not members:
            response.take("response")
            return
        name, value = next(iter(members.items()))
        only = len(members) == 1 and name in OUTPUTS
        result.is_error = only and name == "error"
        texts = value if isinstance(value, list) and len(value) > 1 else [value]
        if only and all(isinstance(text, str) for text in texts):
            response.take("response")
            result.native = name
            result.parts += [Text(text) for text in texts if text or len(texts) > 1]
        else:
            result.parts.append(Text(response.text_of("response")))

    def options(self, fields: Fields) -> Options:
        options, config = Options(), fields.fields("generationConfig")
        if config is not None:
            options = read_options(config, OPTIONS, thinking=self._thinking(config), output=self._output(config))
        options.service_tier = fields.string("serviceTier")
        return options

    def _thinking(self, config: Fields) -> Thinking | None:
        thinking = config.fields("thinkingConfig")
        if thinking is None:
            return None
        word, budget = thinking.string("thinkingLevel") or "", thinking.integer("thinkingBudget")
        level = word.lower()
        if level not in {*LEVELS, "", NO_LEVEL}:
            words = ", ".join(sorted(LEVELS)).upper()
            raise thinking.wrong(f"must be one of {words}, not {quoted(word)}", "thinkingLevel")
        shown = thinking.boolean("includeThoughts")
        read = Thinking(level if level in LEVELS else None)
        if budget is not None and budget <= 0:
            read.enabled = budget == DYNAMIC
        else:
            read.budget_tokens = budget
        read.summary = None if shown is None else "auto" if shown else "none"
        return read if read != Thinking() else None

    def _output(self, config: Fields) -> OutputFormat | None:
        """Read the output format. A type that ``OutputFormat`` can't express, such as ``text/x.enum``, stays in the extras."""
        kind = config.peek("responseMimeType")
        if not isinstance(kind, str | None):
            kind = config.string("responseMimeType")  # raises the error
        older, newer = "responseSchema" in config, "responseJsonSchema" in config
        if kind not in {None, JSON, PLAIN} or (kind == PLAIN and (older or newer)) or not (kind or older or newer):
            return None
        config.take("responseMimeType")
        if newer:
            return OutputFormat("schema", config.take("responseJsonSchema"))
        if older:
            schema = config.mapping("responseSchema")
            return OutputFormat("schema", json_schema(schema), native_schema=schema)
        return OutputFormat("json", root="any") if kind == JSON else OutputFormat("text")

    def tools(self, fields: Fields) -> list[Tool]:
        return [tool for each in fields.each("tools") for tool in self._tools(each)]

    def _tools(self, tool: Fields) -> Iterator[Tool]:
        """Yield the functions of one ``tool``, and Google's tools next to them."""
        for declaration in tool.each("functionDeclarations"):
            yield self._function(declaration)
        for name, value in tool.rest().items():
            read = Tool(name, kind="server", raw={name: value})
            if name in SEARCHES:
                options = dict(value) if isinstance(value, Mapping) else {}
                excluded = options.pop("excludeDomains", None)
                read.search = read_search(options | without_none(blocked_domains=excluded))
            yield read

    def _function(self, declaration: Fields) -> Tool:
        tool = Tool(declaration.needed("name"), declaration.string("description"))
        if (older := declaration.mapping("parameters")) is not None:
            tool.parameters, tool.native_parameters = json_schema(older), older
        else:
            tool.parameters = declaration.mapping("parametersJsonSchema")
        tool.extras = declaration.rest() or None
        return tool

    def tool_choice(self, fields: Fields) -> ToolChoice | None:
        config = fields.fields("toolConfig")
        calling = config.fields("functionCallingConfig") if config else None
        if calling is None:
            return None
        mode, names = calling.string("mode"), calling.strings("allowedFunctionNames")
        if mode is None and not names:
            return None
        if mode is not None and mode not in CHOICES:
            raise calling.wrong(f"must be one of {', '.join(CHOICES)}, not {quoted(mode)}", "mode")
        extras = {"mode": VALIDATED} if mode == VALIDATED else None
        return ToolChoice(CHOICES[mode or "AUTO"], names, extras=extras)


def _media_of(part: Fields) -> Media:
    is_inline = "inlineData" in part
    data = part.needed_fields("inlineData" if is_inline else "fileData")
    kind = data.string("mimeType")
    media = Media(kind_of_type(kind), kind, name=data.string("displayName"), place=data.place)
    if is_inline:
        media.data = base64_of(standard_base64(data.needed("data")), data.at("data"))
    else:
        uri = data.needed("fileUri")
        if is_own_uri(uri):
            media.file_id = uri
        else:
            media.url = uri
        if uri.startswith(FILMS):
            media.kind = "video"
    media.extras = part.rest() or None
    return media


def _kind(part: Fields) -> str:
    """Return the member that says what a part is; ``""`` for an unknown kind. Raises BadRequest if there are several."""
    kinds = [name for name in part.names if name in KINDS]
    if len(kinds) > 1:
        raise part.wrong(f"a part must have only one of {' and '.join(kinds)}")
    if kinds:
        return kinds[0]
    return "text" if TEXT_FIELDS.issuperset(part.names) else ""


def _keep_members(part: Fields, parts: list[Part]) -> None:
    """Add as asides the members that a part has next to its call or result, so that they can be written again."""
    for name, value in part.rest().items():
        if has_value(value):
            parts.append(Aside(VENDOR, "metadata", f"part.{name}", value))


# -- what the servers take ---------------------------------------------------------------------------------------------


def fit_media(media: Media, place: Place, to: Lowering) -> Media | None:
    """Return media that Gemini takes; for others, count a loss and return None. Media of a result need bytes, not a URL."""
    uri = media.url or media.file_id
    if media.data is not None:
        kind: str | None = media_type_of(media)
        known = MEDIA_TYPES.fullmatch(kind or "") is not None
    else:
        kind = media.media_type
        known = place != "result" and uri is not None and (is_own_uri(uri) or uri.startswith(("http:", "https:")))
    if not known:
        to.lose("media", media.media_type or media.kind)
        if media.cache is not None:
            to.lose("cache_mark", media.cache)
        return None
    to.lose_look(media, "name")  # only one of Google's two servers takes a name
    return evolve(media, media_type=kind, name=None)


def no_empty_end(part: Part, _place: Place, to: Lowering) -> Part | None:
    """Drop an empty text that exists only for another vendor's signature."""
    signature = part.signature if isinstance(part, Text) and not part.text else None
    if signature is None or signature.vendor == VENDOR:
        return part
    to.lose("reasoning_signature", signature.vendor)
    return None


def no_empty_text(part: Part, place: Place, to: Lowering) -> Part | None:
    """Drop empty texts, except in tool results."""
    return part if place == "result" else google.telling_text(part, place, to)


def result_as_object(part: Part, _place: Place, to: Lowering) -> Part:
    """Keep a result that is a JSON object as it is; name the member for any other result (``output`` or ``error``).

    Gemini reads a ``$ref`` at any depth as the name of one of the result's ``parts``, and answers 400 if there is none. So an
    object with ``$ref``, such as a JSON schema, is written as text.
    """
    if not isinstance(part, ToolResult):
        return part
    only = None if part.is_error else _object_of(part)
    if only is not None and not has_member(only, "$ref"):
        return part
    if only is not None:
        to.report.repair("result_as_text")
    return evolve(part, native="error" if part.is_error else "output")


def _object_of(result: ToolResult) -> str | None:
    """Return the text of a result if it is one JSON object; else None."""
    texts = [part.text for part in result.parts if isinstance(part, Text)]
    is_object = len(texts) == 1 and texts[0].lstrip()[:1] == "{" and check_arguments(texts[0]).kind == "complete"
    return texts[0] if is_object else None


def results_by_call(request: Request, to: Lowering) -> None:
    """Sort results into the order of their calls, if calls have no ids: on the wire only names and order link the two."""
    calls = [part for turn in request.turns for part in turn.parts if isinstance(part, ToolCall)]
    made = {call.id: place for place, call in enumerate(calls) if call.id_made}

    def ordered(turn: Turn, to: Lowering) -> Turn:
        results = [part for part in turn.parts if isinstance(part, ToolResult)]
        if any(result.call_id not in made for result in results):
            return turn
        by_call = sorted(results, key=lambda result: made[result.call_id])
        for _ in filter(None, map(is_not, results, by_call)):
            to.report.repair("result_moved")
        rest = iter(by_call)
        return evolve(turn, parts=[next(rest) if isinstance(part, ToolResult) else part for part in turn.parts])

    of_turns(ordered)(request, to)


@of_turns
def members_kept(turn: Turn, _to: Lowering) -> Turn:
    """Move asides that are members of a result's part into the result: if the result is moved later, they move along."""
    made: list[Part] = []
    for part in turn.parts:
        before = made[-1] if made else None
        if isinstance(before, ToolResult) and _is_member(part):
            before.parts.append(part)
        else:
            made.append(evolve(part, parts=[*part.parts]) if isinstance(part, ToolResult) else part)
    return evolve(turn, parts=made)


def _is_member(part: Part) -> TypeGuard[Aside]:
    """Return whether a part is a member of the part before it."""
    return isinstance(part, Aside) and part.type.startswith("part.")


@of_turns
def no_roles(turn: Turn, _to: Lowering) -> Turn:
    """Drop another dialect's word for the role of an instruction."""
    return evolve(turn, native_role=None) if turn.native_role else turn


def can_search(request: Request) -> bool:
    """Return whether Google's search can be offered: if there are no functions, or the choice requires just the search."""
    choice = request.tool_choice
    functions = {tool.name for tool in request.tools if tool.kind != "server"}
    if not functions:
        return choice is None or choice.mode != "none"  # a choice ``none`` that is written would forbid only functions
    searches = {tool.name for tool in request.tools if tool.search is not None} - functions
    return choice is not None and choice.mode == "required" and len(choice.names) == 1 and choice.names[0] in searches


def search_alone(request: Request, to: Lowering) -> None:
    """Drop the functions if a search is offered: the server refuses both together, and the choice requires the search."""
    if to.search is None:
        return
    for tool in request.tools:
        if tool.kind != "server":
            to.lose("tool_definition", tool.name)
    choice = None if request.tool_choice is None else evolve(request.tool_choice, names=())
    request.tools = [tool for tool in request.tools if tool.kind == "server"]
    request.tool_choice = choice


def schemas_cut(request: Request, to: Lowering) -> None:
    """Drop the schema keywords that Gemini does not take; each is a loss."""

    def cut(schema: Any, *path: str | int) -> Any:
        return cut_schema(schema, path, lambda where: to.lose("schema_keyword", where))

    request.tools = [
        tool if tool.kind == "server" else evolve(tool, parameters=cut(tool.parameters, "tools", number, "parameters"))
        for number, tool in enumerate(request.tools)
    ]
    output = request.options.output
    if output is not None:
        request.options.output = evolve(output, schema=cut(output.schema, "output", "schema"))


def thinking_fits(request: Request, to: Lowering) -> None:
    """Fit the amount of thinking: a level or a number of tokens, where 0 is no thinking."""
    thinking, model = request.options.thinking, to.takes.model
    if thinking is None:
        return
    level, budget = thinking.effort, thinking.budget_tokens
    if not model.efforts:
        if thinking.enabled is not False:
            to.lose("parameter", "thinking")
        request.options.thinking = None
        return
    if level == "none" or (thinking.enabled is False and level is None):
        level, budget = None, 0
    elif thinking.enabled and level is None and budget is None:
        budget = DYNAMIC
    elif level is not None and budget is not None and not to.own:  # the server takes only one of the two
        to.lose("parameter", "thinking.budget_tokens")
        budget = None
    level, budget = _for_model(level, budget, to)
    if thinking.summary not in {None, "none", "auto"}:
        to.lose("parameter", "thinking.summary")
    fits = Thinking(to.fit_effort(level), budget, summary=thinking.summary)
    request.options.thinking = fits


def _for_model(level: str | None, budget: int | None, to: Lowering) -> tuple[str | None, int | None]:
    """Fit level and budget to the model: budgets within bounds up to Gemini 2.5; levels from 3 on, which always thinks."""
    model = to.takes.model
    if budget == 0 and model.words and "none" not in model.efforts:
        to.lose("parameter", "thinking.enabled")
        return model.efforts[0], None
    if level is not None and not model.words:
        to.lose("parameter", "thinking.effort")
        level, budget = None, budget_of(level)
    if budget is None or model.budget is None or budget == DYNAMIC or (budget == 0 and "none" in model.efforts):
        return level, budget
    least, most = model.budget
    fits = int(min(max(budget, least), most))
    if fits != budget:
        to.lose("parameter", "thinking.budget_tokens")
    return level, fits


FOREIGN: Final = Capabilities(
    dialect="gemini",
    vendor=VENDOR,
    title="Gemini",
    model=evolve(UNKNOWN, efforts=("none", *COMMON), form_with_tools=False, media_in_results=False),
    names=TOOLS.names,
    needs_ids=False,
    signs_reasoning=VENDOR,
    takes_opaque=lambda _blob: False,
    signs_texts=VENDOR,
    signs_calls=VENDOR,
    excuses_unsigned=True,
    arguments="object",
    media=fit_media,
    system="front",
    alternate=True,
    needs_user="contents",
    user_first=True,
    parallel=True,
    some_tools=True,
    can_search=can_search,
    search=lambda _asked, _to: {"googleSearch": {}},
    choice_extras="tool_choice",
    options=frozenset({*OPTIONS, "thinking", "output", "service_tier"}),
    most_stops=5,
    service_tiers=frozenset(SERVICE_TIERS),
    first=(OfParts({Text: (no_empty_end,)}), no_roles, search_alone, google.schemas_anew, schemas_cut),
    said=(
        results_named,
        google.media_behind_results,
        OfParts({Text: (no_empty_text,), ToolResult: (result_as_object,)}),
    ),
    last=(
        partial(google.choice_fits, validated=VALIDATED, names=True),
        thinking_fits,
        google.form_counted,
        google.tier_named,
    ),
)
#: What the servers take from Gemini's clients.
OWN: Final = evolve(
    FOREIGN,
    model=evolve(UNKNOWN, efforts=("none", *LEVELS), budget=None),
    names=None,
    unsigned_reasoning=True,
    media=google.own_media,
    joins_users=False,
    service_tiers=None,
    first=(OfParts({Text: (no_empty_end,)}), results_named, results_by_call, members_kept),
    said=(OfParts({Text: (no_empty_text,)}),),
    arranged=(),
    last=(partial(google.choice_fits, validated=VALIDATED), thinking_fits, google.form_counted),
)
capabilities: Final = told_by(OWN, FOREIGN, LEVELS | {"none"})


# -- writing -----------------------------------------------------------------------------------------------------------


def write(request: Request, _target: Target, report: StreamReport) -> dict[str, Any]:
    """Return the body of a lowered request (only what the dialect can express) as JSON values."""
    system = [turn for turn in request.turns if turn.role == "system"]
    words = [part for turn in system for part in _parts(turn.parts, report)]
    body = without_none(
        contents=[
            add_missing({"role": "model" if turn.role == "assistant" else "user", "parts": parts}, turn.extras)
            for turn in request.turns
            if turn.role != "system" and (parts := _parts(turn.parts, report))
        ],
        systemInstruction=without_none(parts=words, role=system[0].native_role) if words else None,
        tools=_tools(request.tools) or None,
        toolConfig=_tool_config(request.tool_choice),
        generationConfig=_generation_config(request.options) or None,
        serviceTier=request.options.service_tier,
    )
    return add_missing(body, request.extras)


def _parts(given: Sequence[Part], report: StreamReport) -> list[PartBody]:
    parts: list[PartBody] = []
    for part in given:
        match part:
            case Aside():
                _aside(part, parts, report)
            case Media(native=native) if native is not None and native.vendor == VENDOR:
                _aside(native, parts, report)
            case _:
                parts.append(_part(part, report))
    return parts


def _aside(part: Aside, parts: list[PartBody], report: StreamReport) -> None:
    """Write an aside of this dialect: a part, or a member of the part before it."""
    if part.type == "part" and isinstance(part.raw, Mapping):
        parts.append(dict(part.raw))
    elif _is_member(part) and parts:
        add_missing(parts[-1], {part.type.removeprefix("part."): part.raw})
    else:
        report.lose(part.kind, what=part.type)


def _part(part: Part, report: StreamReport) -> PartBody:
    match part:
        case Text():
            return add_missing({"text": part.text, **_signed(part.signature)}, part.extras)
        case Reasoning():
            return add_missing({"text": part.text, "thought": True, **_signed(part.signature)}, part.extras)
        case Media():
            return _media(part)
        case ToolCall():
            call = without_none(id=part.id or None, name=part.name, args=orjson.Fragment(part.arguments))
            return {"functionCall": add_missing(call, part.extras), **_signed(part.signature)}
        case ToolResult():
            return _result(part, report)
    raise TypeError(f"content can't contain a {type(part).__name__}")


def _signed(signature: Opaque | None) -> PartBody:
    return {} if signature is None else {"thoughtSignature": signature.blob}


def _media(media: Media) -> PartBody:
    member = without_none(
        mimeType=media.media_type,
        data=media.data,
        fileUri=None if media.data is not None else media.url or media.file_id,
        displayName=media.name,
    )
    return add_missing({"fileData" if media.data is None else "inlineData": member}, media.extras)


def _result(result: ToolResult, report: StreamReport) -> PartBody:
    inner = [part for part in result.parts if not isinstance(part, Text) and not _is_member(part)]
    member = without_none(
        id=result.call_id or None,
        name=result.name or "",
        response=_response(result),
        parts=_parts(inner, report) or None,
    )
    written = [{"functionResponse": add_missing(member, result.extras)}]
    for part in filter(_is_member, result.parts):
        _aside(part, written, report)
    return written[0]


def _response(result: ToolResult) -> Any:
    """Return a tool's output as an object. An output that is not an object is put into one member of a new object."""
    texts = [part.text for part in result.parts if isinstance(part, Text)]
    if result.native is None:
        only = _object_of(result)
        if only is not None or not texts:
            return orjson.Fragment(only or "{}")
    member = result.native or ("error" if result.is_error else "output")
    return {member: texts if len(texts) > 1 else "".join(texts)}


def _generation_config(options: Options) -> dict[str, Any]:
    config, output, thinking = members_of(options, OPTIONS), options.output, options.thinking or Thinking()
    if output is not None:
        config["responseMimeType"] = PLAIN if output.kind == "text" else JSON
        if output.kind == "schema":
            config |= _schema(output.schema, output.native_schema, "responseSchema", "responseJsonSchema")
    written = without_none(
        thinkingLevel=thinking.effort and thinking.effort.upper(),
        thinkingBudget=thinking.budget_tokens,
        includeThoughts=None if thinking.summary is None else thinking.summary != "none",
    )
    return config | without_none(thinkingConfig=written or None)


def _schema(schema: Any, native: Extras | None, older: str, newer: str) -> dict[str, Any]:
    """Return a schema under its member: the older (OpenAPI) form if it was read in this form and was not changed since."""
    is_older = native is not None and json_schema(native) == schema
    return without_none(**({older: native} if is_older else {newer: schema}))


def _tools(offered: Sequence[Tool]) -> list[dict[str, Any]]:
    """Return the functions, in one tool at the place of the first, and each of Google's tools in a separate one."""
    functions: list[dict[str, Any]] = []
    tools: list[dict[str, Any]] = []
    for tool in offered:
        if tool.kind == "server":
            tools.append(dict(tool.raw or {}))
            continue
        if not functions:
            tools.append({"functionDeclarations": functions})
        declaration = without_none(name=tool.name, description=tool.description)
        schema = _schema(tool.parameters, tool.native_parameters, "parameters", "parametersJsonSchema")
        functions.append(add_missing(declaration | schema, tool.extras))
    return tools


def _tool_config(choice: ToolChoice | None) -> dict[str, Any] | None:
    if choice is None:
        return None
    extras = choice.extras or {}
    calling = without_none(mode=extras.get("mode", MODES[choice.mode]), allowedFunctionNames=list(choice.names) or None)
    return {"functionCallingConfig": add_missing(calling, extras)}
