"""Gemini's requests to the neutral conversation and back: contents, options, tools, the choice among them.

A content is one turn, but neighbours of the model are one turn: the official client keeps each chunk of a stream as a content
of its own. Ids are optional; a call without one is given one made of its place. An empty text says nothing and is no part.
What only Google understands is an aside, whole, as in its streams (``decode.py``).

A response of a function is an object. Where its one member is text that a tool gave, that is the result, and the member is
remembered; any other object is a result of JSON text.

Google's client writes base64 in the alphabet for URLs: media are read into the other one, and signatures stay as they are.
What another vendor signed and was carried here sealed is that vendor's again (``vocabulary/sealed_reasoning.py``), with
all the text that it signs.

The wire takes each member by two names, its own (``functionCall``) and the protocol's (``function_call``), and so does the
reader. The model, and whether the answer streams, stand in the URL. A schema has two forms, and the older one (``parameters``,
``responseSchema``) is read as the JSON schema that it means and kept beside it.

What a request of another dialect can't say here is left out before it is written (``translation/lowering``): ``capabilities``
says what the servers take, and the passes below are Gemini's own. All messages of the system are one instruction.

A signature stands on the very part that it came with; one that is not Google's is left out, and so are thoughts of other
models. Where the server demands one, a word of its own says that there is none.

The model, and whether the answer streams, stand in the URL and not here. A schema is written as JSON schema, without the
keywords that Gemini does not take, or in the older form if it came so. Arguments that must match their schemas are asked for
once for all tools (``VALIDATED``), and so is a choice among some of them that leaves it to the model whether to call.

Source: dialects.md §5.1-§5.3, §7.3, §7.4; quirks.md R14, 35; seeds.md S2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import takewhile
from operator import is_not
from typing import Any, Final, Literal, TypeAlias, TypeGuard

import orjson
from attrs import evolve

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
    WebSearch,
)
from streamkit.dialects.bodies import google_requests as google
from streamkit.dialects.bodies.json_members import add_missing, members_of, without_none
from streamkit.dialects.bodies.media_types import media_type_of
from streamkit.dialects.bodies.request_reader import RequestReader, Waiting, read_options
from streamkit.dialects.gemini.decode import ASIDE_PARTS, TEXT_FIELDS
from streamkit.dialects.gemini.schemas import cut_schema, json_schema
from streamkit.dialects.gemini.wire import DYNAMIC, JSON, MODES, OPTIONS, PLAIN, TOOLS, VALIDATED, camel_case
from streamkit.dialects.lowering import Capabilities, Lowering, OfParts, Place, of_turns, results_named, told_by
from streamkit.dialects.members.fields import Fields, base64_of, kind_of
from streamkit.dialects.members.values import has_member, has_value
from streamkit.dialects.profiles import Target
from streamkit.dialects.vocabulary.google import (
    FILMS,
    LEVELS,
    OWN_URIS,
    SERVICE_TIERS,
    VENDOR,
    is_own_uri,
    standard_base64,
)
from streamkit.dialects.vocabulary.models import UNKNOWN
from streamkit.dialects.vocabulary.reasoning_effort import COMMON, budget_of
from streamkit.dialects.vocabulary.sealed_reasoning import Sealed, unseal
from streamkit.dialects.vocabulary.web_search import read_search
from streamkit.events import Aside, Opaque
from streamkit.report import StreamReport
from streamkit.text.quoting import quoted
from streamkit.tool_calls.check import check_arguments

#: What a part can be: one of these.
KINDS: Final = frozenset({"text", "functionCall", *ASIDE_PARTS})
#: Roles, and ours. The third is an older name, which the server does not take any more.
ROLES: Final[Mapping[str, Literal["user", "assistant"]]] = {"user": "user", "model": "assistant", "function": "user"}
#: Members of a response that hold a tool's output where they are its only one.
OUTPUTS: Final = frozenset({"output", "result", "error"})
#: ``mode``, and ours.
CHOICES: Final[Mapping[str, Literal["auto", "none", "required"]]] = {
    "MODE_UNSPECIFIED": "auto",
    VALIDATED: "auto",
    **{word: ours for ours, word in MODES.items()},
}
#: Members of a tool that let the model search the web, the older one last.
SEARCHES: Final = frozenset({"googleSearch", "googleSearchRetrieval"})
NO_LEVEL: Final = "thinking_level_unspecified"
PartBody: TypeAlias = dict[str, Any]
#: Types of media that are taken.
MEDIA_TYPES: Final = re.compile(
    r"(?:image|audio|video|text)/.+|application/(?:pdf|json|rtf|(?:x-)?(?:java|type)script)"
)
#: The members for a schema, the older form first.
PARAMETER_FORMS: Final = ("parameters", "parametersJsonSchema")
RESPONSE_FORMS: Final = ("responseSchema", "responseJsonSchema")


# -- reading -----------------------------------------------------------------------------------------------------------


class GeminiRequestReader(RequestReader):
    """Reads one request, member by member."""

    dialect = "gemini"

    def __init__(self, report: StreamReport) -> None:
        super().__init__(report)
        self._calls = 0  #: of the model's turn
        self._waiting = Waiting()
        self._signature: Opaque | None = None  #: of the next call
        self._extras: dict[str, Any] = {}  #: of the turn that is being read

    @classmethod
    def decode_request(cls, fields: Fields, report: StreamReport) -> Request:
        return super().decode_request(fields.spelled(camel_case), report)

    def begun(self, fields: Fields) -> Request:
        if "cachedContent" in fields:
            self.references.append(("cachedContent", "send the contents themselves"))
        return Request(self.dialect, fields.string("model"))

    # -- contents ------------------------------------------------------------------------------------------------------

    def read_turns(self, fields: Fields) -> None:
        """The instruction of the system, whose role says nothing, and the contents."""
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
            raise content.wrong(f"'user' or 'model' is needed, not {quoted(role)}", "role")
        turn = self._turn(ROLES[role])
        for part in content.each("parts"):
            self._part(part, turn)
        self._extras |= content.rest()
        turn.extras = self._extras or None

    def _end_turn(self) -> None:
        """No more parts of the model's turn come."""
        if self._signature is not None:  # the call that it signed is gone
            self.turns[-1].parts.append(RedactedReasoning(self._signature))
            self._signature = None

    def _turn(self, role: Literal["user", "assistant"]) -> Turn:
        """The turn that a content of the role belongs to."""
        if self.turns and role == "assistant" == self.turns[-1].role:
            return self.turns[-1]
        self._end_turn()
        if role == "assistant":
            self._calls, self._waiting = 0, Waiting()
        self._extras = {}
        turn = Turn(role)
        self.turns.append(turn)
        return turn

    # -- parts -----------------------------------------------------------------------------------------------------

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
                raise part.wrong("a call may only stand in a content of the model", "functionCall")
            case "functionResponse" if turn.role == "user":
                self._result(part, turn.parts)
            case _:
                aside = ASIDE_PARTS.get(kind, "unknown_event")
                turn.parts.append(Aside(VENDOR, aside, "part", part.rest(), place=part.place))

    def _text(self, part: Fields, turn: Turn) -> None:
        """Text that is not the model's: a signature of it means nothing."""
        if part.boolean("thought"):
            raise part.wrong("a thought may only stand in a content of the model", "thought")
        text = Text(part.string("text") or "")
        text.extras = part.rest() or None
        if text.text or text.extras:
            turn.parts.append(text)

    def _spoken(self, part: Fields, parts: list[Part]) -> None:
        """Text or a thought of the model."""
        text, thought, blob = part.string("text") or "", part.boolean("thought"), part.string("thoughtSignature")
        new: Text | Reasoning = Reasoning(text, "summary") if thought else Text(text)
        new.extras = part.rest() or None
        sealed = _unsealed(blob)
        if blob and sealed is None:
            new.signature = Opaque(VENDOR, blob)
        if text or new.signature or new.extras:
            parts.append(new)
        if sealed is not None:
            self._foreign(sealed, parts)

    def _foreign(self, sealed: Sealed, parts: list[Part]) -> None:
        """What another vendor signed or encrypted. A signature is of all the text of its kind in front of it."""
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
                run = [*takewhile(lambda part: _may_be_signed(part, type(signed)), reversed(parts))]
                del parts[len(parts) - len(run) :]
                signed.text = "".join(part.text for part in reversed(run) if isinstance(part, Text | Reasoning))
                signed.signature = opaque
                parts.append(signed)

    # -- calls and results -----------------------------------------------------------------------------------------

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
            sealed = _unsealed(blob)
            read.signature = Opaque(VENDOR, blob) if sealed is None else sealed.opaque
        else:
            read.signature, self._signature = self._signature, None
        parts.append(read)
        _beside(part, parts)

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
        _beside(part, parts)

    def _response(self, response: Fields, result: ToolResult) -> None:
        """The text of a response, which may be a list of several, or all of the object."""
        members = response.peek("response")
        if not isinstance(members, dict | None):
            raise response.wrong(f"an object is needed, not {kind_of(members)}", "response")
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

    # -- options ---------------------------------------------------------------------------------------------------

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
            raise thinking.wrong(
                f"one of {', '.join(sorted(LEVELS)).upper()} is needed, not {quoted(word)}", "thinkingLevel"
            )
        shown = thinking.boolean("includeThoughts")
        read = Thinking(level if level in LEVELS else None)
        if budget is not None and budget <= 0:
            read.enabled = budget == DYNAMIC
        else:
            read.budget_tokens = budget
        read.summary = None if shown is None else "auto" if shown else "none"
        return read if read != Thinking() else None

    def _output(self, config: Fields) -> OutputFormat | None:
        """How the answer is to be written. One of another type, an enumeration as bare text, is the dialect's own."""
        kind = config.peek("responseMimeType")
        if not isinstance(kind, str | None):
            kind = config.string("responseMimeType")  # which says what is wrong
        older, newer = "responseSchema" in config, "responseJsonSchema" in config
        if kind not in {None, JSON, PLAIN} or not (kind or older or newer):
            return None
        if kind == PLAIN and (older or newer):
            return None
        config.take("responseMimeType")
        if newer:
            return OutputFormat("schema", config.take("responseJsonSchema"))
        if older:
            schema = config.mapping("responseSchema")
            return OutputFormat("schema", json_schema(schema), native_schema=schema)
        return OutputFormat("json" if kind == JSON else "text")

    # -- tools -----------------------------------------------------------------------------------------------------

    def tools(self, fields: Fields) -> list[Tool]:
        return [tool for each in fields.each("tools") for tool in self._tools(each)]

    def _tools(self, tool: Fields) -> Iterator[Tool]:
        """The functions of one ``tool``, and the tools of Google's beside them."""
        for declaration in tool.each("functionDeclarations"):
            yield self._function(declaration)
        for name, value in tool.rest().items():
            search = _search(value) if name in SEARCHES else None
            yield Tool(name, kind="server", raw={name: value}, search=search)

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
            raise calling.wrong(f"one of {', '.join(CHOICES)} is needed, not {quoted(mode)}", "mode")
        extras = {"mode": VALIDATED} if mode == VALIDATED else None
        return ToolChoice(CHOICES[mode or "AUTO"], names, extras=extras)


def _media_of(part: Fields) -> Media:
    """``inlineData`` or ``fileData``."""
    if "inlineData" in part:
        data = part.needed_fields("inlineData")
        media = _read_media(data)
        media.data = base64_of(standard_base64(data.needed("data")), data.at("data"))
    else:
        data = part.needed_fields("fileData")
        media, uri = _read_media(data), data.needed("fileUri")
        if uri.startswith(OWN_URIS):
            media.file_id = uri
        else:
            media.url = uri
        if uri.startswith(FILMS):
            media.kind = "video"
    media.extras = part.rest() or None
    return media


def _read_media(data: Fields) -> Media:
    kind = data.string("mimeType")
    media = Media("file", kind, name=data.string("displayName"), place=data.place)
    match (kind or "").partition("/")[0].lower():
        case "image" | "audio" | "video" as known:
            media.kind = known
    return media


def _kind(part: Fields) -> str:
    """What a part is; "" for one of an unknown kind."""
    kinds = [name for name in part.names if name in KINDS]
    if len(kinds) > 1:
        raise part.wrong(f"a part is one thing, and here are {' and '.join(kinds)}")
    if kinds:
        return kinds[0]
    return "text" if TEXT_FIELDS.issuperset(part.names) else ""


def _beside(part: Fields, parts: list[Part]) -> None:
    """What stands in a part beside its call or result: asides, as in a stream."""
    for name, value in part.rest().items():
        if has_value(value):
            parts.append(Aside(VENDOR, "metadata", f"part.{name}", value))


def _unsealed(blob: str | None) -> Sealed | None:
    return unseal(standard_base64(blob)) if blob else None


def _may_be_signed(part: Any, kind: type[Text | Reasoning]) -> bool:
    """Whether a part can be a piece of a signed text: the streams of this dialect bring it in pieces, and its end behind."""
    return type(part) is kind and part.signature is None and part.extras is None


def _search(options: Any) -> WebSearch:
    """Google's search, whose options are its own."""
    options = dict(options) if isinstance(options, Mapping) else {}
    excluded = options.pop("excludeDomains", None)
    return read_search(options | without_none(blocked_domains=excluded))


# -- what the servers take: parts --------------------------------------------------------------------------------------


def fit_media(media: Media, place: Place, to: Lowering) -> Media | None:
    """Media of a type that is taken; those of a result must be in the request itself."""
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
    """No empty text that is there for another vendor's signature alone."""
    signature = part.signature if isinstance(part, Text) and not part.text else None
    if signature is None or signature.vendor == VENDOR:
        return part
    to.lose("reasoning_signature", signature.vendor)
    return None


def no_empty_text(part: Part, place: Place, to: Lowering) -> Part | None:
    """No empty text, except in a result."""
    return part if place == "result" else google.telling_text(part, place, to)


def result_as_object(part: Part, _place: Place, to: Lowering) -> Part:
    """A result that is an object as it is, and the member that says what any other is.

    Gemini takes a ``$ref`` at any depth for the name of one of the result's ``parts``, and answers 400 where there is none:
    such an object, which may be a JSON schema, is text.
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
    """The text of a result that is an object and nothing else."""
    texts = [part.text for part in result.parts if isinstance(part, Text)]
    is_object = len(texts) == 1 and texts[0].lstrip()[:1] == "{" and check_arguments(texts[0]).kind == "complete"
    return texts[0] if is_object else None


# -- what the servers take: turns --------------------------------------------------------------------------------------


def results_by_call(request: Request, to: Lowering) -> None:
    """Results in the order of their calls, where the wire's only other word for them is the name."""
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
    """What stands in a part beside a result, which may be moved, as an aside in the result."""
    made: list[Part] = []
    for part in turn.parts:
        before = made[-1] if made else None
        if isinstance(before, ToolResult) and _is_member(part):
            before.parts.append(part)
        else:
            made.append(evolve(part, parts=[*part.parts]) if isinstance(part, ToolResult) else part)
    return evolve(turn, parts=made)


def _is_member(part: Part) -> TypeGuard[Aside]:
    """Whether a part is a member of the one in front of it."""
    return isinstance(part, Aside) and part.type.startswith("part.")


@of_turns
def no_roles(turn: Turn, _to: Lowering) -> Turn:
    """An instruction without another dialect's word for its role."""
    return evolve(turn, native_role=None) if turn.native_role else turn


# -- what the servers take: tools and options --------------------------------------------------------------------------


def can_search(request: Request) -> bool:
    """Whether Google's search is offered: beside functions it is refused, so one of both must do without."""
    choice = request.tool_choice
    functions = {tool.name for tool in request.tools if tool.kind != "server"}
    if not functions:
        return choice is None or choice.mode != "none"  # which is no word about searches here
    searches = {tool.name for tool in request.tools if tool.search is not None} - functions
    return choice is not None and choice.mode == "required" and len(choice.names) == 1 and choice.names[0] in searches


def search_alone(request: Request, to: Lowering) -> None:
    """No functions beside a search, which is there beside functions only if it must be called."""
    if to.search is None:
        return
    for tool in request.tools:
        if tool.kind != "server":
            to.lose("tool_definition", tool.name)
    choice = None if request.tool_choice is None else evolve(request.tool_choice, names=())
    request.tools = [tool for tool in request.tools if tool.kind == "server"]
    request.tool_choice = choice


def schemas_cut(request: Request, to: Lowering) -> None:
    """Schemas with the keywords that Gemini takes."""

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
    """How much to think, as a level or as a number of tokens, which is 0 for no thinking."""
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
    elif level is not None and budget is not None and not to.own:  # the server takes one of them
        to.lose("parameter", "thinking.budget_tokens")
        budget = None
    level, budget = _for_model(level, budget, to)
    if thinking.summary not in {None, "none", "auto"}:
        to.lose("parameter", "thinking.summary")
    fits = Thinking(to.fit_effort(level), budget, summary=thinking.summary)
    request.options.thinking = fits


def _for_model(level: str | None, budget: int | None, to: Lowering) -> tuple[str | None, int | None]:
    """The two as the model takes them: budgets within its bounds up to 2.5, levels from 3 on, which is never without."""
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
#: Of requests of the dialect itself.
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
    """The body of a request that has nothing but what the dialect can say, as JSON values."""
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
    """What only this dialect knows: a part, or a member of the part in front of it."""
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
    raise TypeError(f"a content has no {type(part).__name__}")


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
    """A tool's output as an object: its own if it is one, else under the member that says what it is."""
    texts = [part.text for part in result.parts if isinstance(part, Text)]
    if result.native is None:
        only = _object_of(result)
        if only is not None or not texts:
            return orjson.Fragment(only or "{}")
    member = result.native or ("error" if result.is_error else "output")
    return {member: texts if len(texts) > 1 else "".join(texts)}


# -- options and tools -------------------------------------------------------------------------------------------------


def _generation_config(options: Options) -> dict[str, Any]:
    config = members_of(options, OPTIONS) | _output(options.output)
    return config | without_none(thinkingConfig=_thinking(options.thinking) or None)


def _thinking(thinking: Thinking | None) -> dict[str, Any]:
    if thinking is None:
        return {}
    shown = None if thinking.summary is None else thinking.summary != "none"
    level = thinking.effort and thinking.effort.upper()
    return without_none(thinkingLevel=level, thinkingBudget=thinking.budget_tokens, includeThoughts=shown)


def _output(output: OutputFormat | None) -> dict[str, Any]:
    if output is None:
        return {}
    if output.kind != "schema":
        return {"responseMimeType": JSON if output.kind == "json" else PLAIN}
    return {"responseMimeType": JSON, **_schema(output.schema, output.native_schema, RESPONSE_FORMS)}


def _schema(schema: Any, came: Extras | None, forms: tuple[str, str]) -> dict[str, Any]:
    """A schema under the name of its form: the older as it came, unless the schema is another by now."""
    older, newer = forms
    is_older = came is not None and json_schema(came) == schema
    return without_none(**({older: came} if is_older else {newer: schema}))


def _tools(offered: Sequence[Tool]) -> list[dict[str, Any]]:
    """The functions, in one tool at the place of the first, and Google's own tools, each in one."""
    functions: list[dict[str, Any]] = []
    tools: list[dict[str, Any]] = []
    for tool in offered:
        if tool.kind == "server":
            tools.append(dict(tool.raw or {}))
            continue
        if not functions:
            tools.append({"functionDeclarations": functions})
        declaration = without_none(name=tool.name, description=tool.description)
        schema = _schema(tool.parameters, tool.native_parameters, PARAMETER_FORMS)
        functions.append(add_missing(declaration | schema, tool.extras))
    return tools


def _tool_config(choice: ToolChoice | None) -> dict[str, Any] | None:
    if choice is None:
        return None
    extras = choice.extras or {}
    calling = without_none(mode=extras.get("mode", MODES[choice.mode]), allowedFunctionNames=list(choice.names) or None)
    return {"functionCallingConfig": add_missing(calling, extras)}
