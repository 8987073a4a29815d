"""Writing request bodies: what a dialect can't say is counted, and what is its own comes back as it was.

Theory: a request is written from the neutral conversation for one target. Members that only its own dialect knows
(``extras``, asides) are merged in again where the target speaks that dialect; elsewhere each is a counted loss that names it.
An option that a dialect has no field for is one, too: ``options`` goes through all of them, so none is forgotten.

``RequestWriter`` is what the writers of requests derive from, as encoders do from ``EventEncoder``.

Source: dialects.md §7.3, §7.4, §8.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Final, TypeGuard, TypeVar, cast

import orjson
from attrs import evolve, fields

from streamkit.conversation.messages import (
    CacheMark,
    Extras,
    Media,
    Options,
    OutputFormat,
    Part,
    Refusal,
    Request,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
    Turn,
    WebSearch,
)
from streamkit.dialects.bodies.blocks_as_text import text_of_block, text_of_file
from streamkit.dialects.bodies.json_members import add_missing, without_none
from streamkit.dialects.bodies.media_types import image_type, type_by_beginning
from streamkit.dialects.bodies.option_limits import LIMITED, Models, fitting
from streamkit.dialects.bodies.tool_choice import chosen_of, feasible
from streamkit.dialects.members.fields import whole_characters
from streamkit.dialects.members.values import has_value
from streamkit.dialects.profiles import Target
from streamkit.dialects.streams.event_encoder import wrapped_arguments, wrapped_input
from streamkit.dialects.vocabulary.models import UNKNOWN, Model, model_of
from streamkit.dialects.vocabulary.reasoning_effort import effort_of
from streamkit.errors import BadRequest
from streamkit.events import Aside, Opaque
from streamkit.report import StreamReport
from streamkit.text.identifiers import PORTABLE_IDS, hashed, portable_id, portable_name
from streamkit.text.quoting import quoted
from streamkit.tool_calls.check import check_arguments

#: What can be half of a surrogate pair as an escape.
_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]")
#: How closely an image can be looked at.
CLOSENESS: Final = frozenset({"auto", "low", "high"})
P = TypeVar("P", bound=Part)
#: How the names of ``Options`` are told apart from what stands beside them: these say how an option was written.
_NOT_OPTIONS: Final = frozenset({"native_max_tokens"})
#: What the user says in front of an assistant who speaks first, where a dialect wants the user to: something is demanded.
OPENING: Final = "(The assistant speaks first.)"
#: The user's turn after an assistant's text, for a model that does not continue that text.
CLOSING: Final = "(Go on from where your last message ends, without repeating it.)"
#: What stands before the text of a tool's result that is an error, where nothing else can say so.
ERROR: Final = "Error: "
#: The schema of a function that takes nothing, for a server that demands one with its properties.
NO_PROPERTIES: Final[Mapping[str, Any]] = {"type": "object", "properties": {}}
#: The one parameter of a function that stands for a custom tool (dialects.md §1.8).
INPUT_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
}


class RequestWriter:
    """What every writer of requests does alike. A dialect's own adds what it writes."""

    #: The dialect's name, and whose words its asides are.
    dialect: ClassVar[str]
    vendor: ClassVar[str]
    #: Ids of calls and names of tools that the dialect takes; None: any.
    ids: ClassVar[re.Pattern[str] | None] = None
    names: ClassVar[re.Pattern[str] | None] = None
    #: Names of users that the server takes; None: any.
    users: ClassVar[re.Pattern[str] | None] = None
    #: Whose models the servers run, and how many stop sequences they take; None: any number. See ``option_limits.py``.
    models: ClassVar[Models] = ""
    most_stops: ClassVar[int | None] = None
    #: What an unknown model takes, and the efforts that the dialect has words for; None: any.
    unknown: ClassVar[Model] = UNKNOWN
    efforts: ClassVar[frozenset[str] | None] = None
    #: Whether a file of plain text may be a part of the conversation.
    text_files: ClassVar[bool] = True
    #: Options of a search of the web that the dialect has a place for; None: its provider runs none.
    search_options: ClassVar[frozenset[str] | None] = None

    def __init__(self, request: Request, target: Target, report: StreamReport) -> None:
        self.target = target
        self.report = report
        #: Whether the request was read in this dialect, so that what only this dialect knows is written again.
        self.own = request.dialect == self.dialect
        self._rewritten: set[tuple[str, str]] = set()
        self.request = request
        provider = "" if target.provider is None else target.provider.name
        self.model = model_of(request.model, provider, self.unknown, self.efforts)  #: what it takes
        #: The names of the tools that the program runs, and of those among them that take free text.
        self.functions = {tool.name for tool in request.tools if tool.kind != "server"}
        self.custom = {tool.name for tool in request.tools if tool.kind == "custom"}
        self.search: Tool | None = None  #: another dialect's search of the web that is defined here
        self.request = self._with_own_media(request) if self.own else self._carried(request)

    @classmethod
    def encode_request(cls, request: Request, target: Target, report: StreamReport) -> dict[str, Any]:
        """A request body as JSON values. Raises BadRequest for what the dialect can't say."""
        return cls(request, target, report).request_body()

    def request_body(self) -> dict[str, Any]:
        """The whole body as JSON values. Raises BadRequest."""
        raise NotImplementedError

    def _with_own_media(self, request: Request) -> Request:
        """A request of this dialect with media that its models made as they came."""
        turns = [
            evolve(turn, parts=[self._as_it_came(part) for part in turn.parts])
            if turn.role == "assistant" and any(isinstance(part, Media) for part in turn.parts)
            else turn
            for turn in request.turns
        ]
        return evolve(request, turns=turns)

    def _as_it_came(self, part: Part) -> Part:
        native = part.native if isinstance(part, Media) else None
        return part if native is None or native.vendor != self.vendor else native

    def _carried(self, request: Request) -> Request:
        """A request of another dialect without what is written nowhere. Raises BadRequest for what it can't do without."""
        for name in dict.fromkeys(tool.namespace.name for tool in request.tools if tool.namespace is not None):
            self.lose("tool_namespace", name)
        self.search = next(filter(self.can_search, request.tools), None)
        turns = [turn for each in request.turns for turn in self._without_blanks(self._readable(each))]
        turns = self._answerable(self._saying_something(turns))
        if self.models == "claude":
            turns = self._continuable(turns)
        choice = feasible(request.tool_choice, request.tools, self.defines, self.dialect, self.report)
        provider = "" if self.target.provider is None else self.target.provider.name
        most_stops = self.most_stops if provider in LIMITED else None
        options = fitting(request.options, self.models, most_stops, self.model, self.lose)
        if options.user is not None and self.users is not None:
            user = options.user if self.users.fullmatch(options.user) else f"user_{hashed(options.user, 22)}"
            options = evolve(options, user=self._rewrite(options.user, user, "id_rewritten"))
        options = evolve(options, output=self._asked_form(options.output))
        tools = request.tools
        if options.output is not None and options.output.kind != "text" and not self.form_with_tools:
            if choice is not None and choice.mode == "none":
                self.lose("tool_choice", "none")
                tools, choice = [], None
            elif any(map(self.defines, tools)):
                self.lose("parameter", "output")
                options = evolve(options, output=None)
        return self._with_marks(evolve(request, turns=turns, tools=tools, tool_choice=choice, options=options))

    @property
    def form_with_tools(self) -> bool:
        """Return whether tools may be offered next to a response in JSON; where not, the form is left out."""
        return self.model.form_with_tools

    def _saying_something(self, turns: list[Turn]) -> list[Turn]:
        """Drop turns that would be no message: empty ones, and ones with parts of one dialect alone.

        Where no other turn but the system's is left, all stay: the writer decides what such a request is.
        """
        kept = [turn for turn in turns if not all(isinstance(part, Aside) for part in turn.parts)]
        if not any(turn.role != "system" for turn in kept):
            return turns
        for turn in (turn for turn in turns if all(isinstance(part, Aside) for part in turn.parts)):
            self.extras(turn.extras)
            for part in turn.parts:
                if isinstance(part, Aside):
                    self.lose(part.kind, part.type)
            if not turn.parts:
                self.report.repair("turn_empty")
        return kept

    def _asked_form(self, output: OutputFormat | None) -> OutputFormat | None:
        """The form of the answer: one of a schema that is not given is JSON of any kind, and its name is one that is taken."""
        if output is None or output.kind != "schema":
            return output
        if output.schema is None:
            self.lose_members(output, "output", "name", "description", "strict")
            return OutputFormat("json")
        if output.name is None or self.names is None:
            return output
        return evolve(
            output, name=self._rewrite(output.name, portable_name(output.name, PORTABLE_IDS), "name_rewritten")
        )

    def _continuable(self, turns: list[Turn]) -> list[Turn]:
        """The turns without white space at the end of an assistant's that Claude is to go on with: it refuses that."""
        last = turns[-1].parts[-1] if turns and turns[-1].parts else None
        if not isinstance(last, Text) or turns[-1].role != "assistant" or is_blank(last):
            return turns
        text = last.text.rstrip()
        if text == last.text:
            return turns
        self.report.repair("space_trimmed")
        return [*turns[:-1], evolve(turns[-1], parts=[*turns[-1].parts[:-1], evolve(last, text=text)])]

    def _readable(self, turn: Turn) -> Turn:
        """Return the turn with text for parts that only one dialect has a form for, though they have text.

        Raises BadRequest for an unknown part of the user or the system: without it the model would answer something else.
        """
        if turn.role == "assistant" or not any(isinstance(part, Aside | Media | ToolResult) for part in turn.parts):
            return turn
        parts = [self._as_text(part) for part in turn.parts]
        for part in parts:
            if isinstance(part, Aside) and part.kind == "unknown_event" and part.place:
                kind = quoted(part.raw.get("type") or ", ".join(part.raw))
                raise BadRequest(part.place, f"a part of type {kind} is not known, and {self.dialect} can't be sent it")
        return evolve(turn, parts=parts)

    def _as_text(self, part: Part) -> Part:
        match part:
            case ToolResult() if not all(isinstance(inner, Text) for inner in part.parts):
                parts = [self._as_text(inner) for inner in part.parts]
                return evolve(part, parts=cast("list[Text | Media | Aside]", parts))
            case Aside() if (text := text_of_block(part)) is not None:
                self.lose("metadata", part.type)
                return text
            case Media() if not self.text_files and (text := text_of_file(part)) is not None:
                self.lose("metadata", "media_type")
                return text
            case Media(kind="image", media_type=str(said_type)) if (kind := image_type(part)) != said_type:
                self.report.repair("media_type_mended")
                return evolve(part, media_type=kind)
            case Media(kind="audio", media_type=None):
                return evolve(part, media_type=type_by_beginning(part))
        return part

    def lose(self, kind: str, what: str = "") -> None:
        self.report.lose(kind, what=what)

    # -- what only one dialect knows -------------------------------------------------------------------------------

    def extras(self, extras: Extras | None, kind: str = "metadata") -> Mapping[str, Any]:
        """The members to write again: all of them within the dialect, none elsewhere, where each is a loss of that kind."""
        if not extras:
            return {}
        if self.own:
            return extras
        for name, value in extras.items():
            if has_value(value):
                self.lose(kind, name)
        return {}

    def request_extras(self) -> Mapping[str, Any]:
        """The members of the request itself to write again."""
        return self.extras(self.request.extras, "parameter")

    def aside(self, part: Aside) -> bool:
        """Whether a part that only one dialect knows is written again; else it is a loss."""
        known = self.own and part.vendor == self.vendor
        if not known:
            self.lose(part.kind, part.type)
        return known

    def options(self, names: Mapping[str, str], beside: Collection[str] = ()) -> dict[str, Any]:
        """The options that are one field each: ``names`` has the dialect's names by ours.

        Those ``beside`` are written elsewhere, and any other that was given is a loss.
        """
        written: dict[str, Any] = {}
        for option in fields(Options):
            name, value = option.name, getattr(self.request.options, option.name)
            if value is None or value == () or name in _NOT_OPTIONS or name in beside:
                continue
            if name in names:
                written[names[name]] = value
            else:
                self.lose("parameter", name)
        return written

    def lose_members(self, value: object, path: str, *names: str, kind: str = "parameter") -> None:
        """Count the members of a value that say anything and are not written."""
        for name in names:
            if getattr(value, name) is not None:
                self.lose(kind, f"{path}.{name}")

    def fit_effort(self, effort: str | None) -> str | None:
        """Return the nearest effort that the model knows; one that differs from the request is a counted loss."""
        fits = effort if self.own else self.model.fit(effort)
        if fits != effort:
            self.lose("parameter", "thinking.effort")
        return fits

    def lose_thinking(self, thinking: Thinking, *names: str) -> None:
        """Count what is not written of how much to think. That it shall think at all is said by an effort."""
        told = asked_effort(thinking) not in {None, "none"}
        for name in names:
            value = getattr(thinking, name)
            if value is not None and not (name == "enabled" and value and told):
                self.lose("parameter", f"thinking.{name}")

    # -- what a dialect has no place for ---------------------------------------------------------------------------

    def one_choice(self, name: str) -> None:
        """Raises BadRequest where several choices are asked for, and the API of that ``name`` gives one."""
        choices = self.request.options.choices
        if choices is not None and choices > 1:
            raise BadRequest("n", f"{name} gives one choice, and {choices} are asked for")

    def system_speaks(self, path: str, demanded: str, *, words: bool) -> None:
        """Count that the system's words become the user's, where nobody else speaks and a message of the user is demanded.

        Raises BadRequest where there are no ``words``, or where the target wants such a request refused.
        """
        if not self.target.emulate or not words:
            raise BadRequest(path, f"{demanded} of the user, beside what the system says")
        self.lose("system_place")

    def count_turn(self, turn: Turn) -> None:
        """Count what is not written of a turn: its name, and that it has no parts."""
        if turn.name is not None:
            self.lose("turn_name", turn.name)
        if not turn.parts:
            self.report.repair("turn_empty")

    def service_tier(self, tier: str | None, known: Collection[str]) -> str | None:
        """The tier, if the server knows it."""
        if tier is None or self.own or tier in known:
            return tier
        self.lose("parameter", "service_tier")
        return None

    def closeness(self, media: Media) -> str | None:
        """Return how closely to look at an image or a file, in a word that most servers know."""
        if media.detail is None or self.own or media.detail in CLOSENESS:
            return media.detail
        self.lose("metadata", "detail")
        return None

    def lose_output(self, output: OutputFormat, *names: str) -> None:
        """Count what is not written of the form of an answer, which always fits its schema here."""
        self.lose_members(output, "output", *names)
        if output.strict is False:
            self.lose("parameter", "output.strict")

    def lose_signature(self, signature: Opaque | None) -> None:
        """Count a signature that has no place."""
        if signature is not None:
            self.lose("reasoning_signature", signature.vendor)

    def callable_tools(self, asked: str) -> Sequence[Tool]:
        """The tools that may be called, where nothing else can say which. Raises BadRequest where one must be.

        ``asked`` is who is asked, in words.
        """
        tools, choice = self.request.tools, self.request.tool_choice
        if choice is None:
            return tools
        self.extras(choice.extras)
        if choice.mode == "none":
            return []
        if choice.mode == "required":
            if not self.target.emulate:
                raise BadRequest("tool_choice", f"{asked} can't be made to call a tool, only be offered fewer")
            self.lose("tool_choice", "required")
        if choice.parallel is False:
            self.lose("tool_choice", "parallel")
        return chosen_of(tools, choice) if choice.names else tools

    def lose_cache(self, mark: CacheMark | None, what: str | None = None) -> None:
        """Count a cache mark that has no place, by ``what`` has it or by itself."""
        if mark is not None:
            self.lose("cache_mark", what or mark)

    def most_marks(self) -> int | None:
        """Return how many marks on the prompt the server takes; None: the writer of each part decides."""
        return None

    def _with_marks(self, request: Request) -> Request:
        """Keep the latest marks on the prompt, as many as the server takes; each other mark is a counted loss."""
        most = self.most_marks()
        if most is None:
            return request
        turns = sorted(request.turns, key=lambda turn: turn.role != "system")
        parts = [each for turn in turns for part in turn.parts for each in _inner(part)]
        tools = [tool for tool in request.tools if tool.cache is not None]
        barred = [] if self.model.cached_tools else tools
        marked = [*([] if barred else tools), *(each for each in parts if getattr(each, "cache", None) is not None)]
        over = [*barred, *marked[: max(0, len(marked) - most)]]
        if not over:
            return request
        for each in over:
            self.lose_cache(getattr(each, "cache", None), each.name if isinstance(each, Tool) else None)
        dropped = {id(each) for each in over}
        tools = [evolve(tool, cache=None) if id(tool) in dropped else tool for tool in request.tools]
        turns = [evolve(turn, parts=[_unmarked(part, dropped) for part in turn.parts]) for turn in request.turns]
        return evolve(request, tools=tools, turns=turns)

    def lose_of_media(self, media: Media, *, name: bool) -> None:
        """Count what is not written of media: how closely to look, and their ``name`` if it is lost."""
        if media.detail not in {None, "auto"}:
            self.lose("metadata", "detail")
        if name and media.name is not None:
            self.lose("metadata", "name")

    # -- blank texts -----------------------------------------------------------------------------------------------

    def _without_blanks(self, turn: Turn) -> list[Turn]:
        """The turn without blank texts that say nothing beside its calls, its media, its results; none of a blank system's."""
        parts = [
            evolve(part, parts=self._telling(part.parts)) if isinstance(part, ToolResult) else part
            for part in turn.parts
        ]
        parts = self._telling(parts, all_blank=turn.role != "system")
        return [evolve(turn, parts=parts)] if parts or not turn.parts else []

    def _telling(self, parts: Sequence[P], *, all_blank: bool = True) -> list[P]:
        """The parts without blank texts, each of which is counted, where there is anything else; else all, if ``all_blank``.

        Beside other text one with white space stays: it may be the space between two words of a model.
        """
        words = any(isinstance(part, Text | Refusal) and part.text.strip() for part in parts)
        kept = [part for part in parts if not is_blank(part) or (words and part.text)]
        if not kept and all_blank:
            return list(parts)
        for part in parts:
            if is_blank(part) and not (words and part.text):
                self.report.repair("turn_empty")
                self.lose_cache(getattr(part, "cache", None))
        return kept

    # -- who speaks first ------------------------------------------------------------------------------------------

    def opening(self, first: str | None, path: str) -> str | None:
        """What the user shall say in front of an assistant who speaks ``first``, for a dialect that wants the user to.

        None where nothing is missing. Raises BadRequest if the target wants such a history refused.
        """
        if self.own or first not in {"assistant", "model"}:
            return None
        if self.target.assistant_first == "refuse":
            raise BadRequest(path, "the user must speak first; assistant_first = 'bridge' puts a turn in front")
        self.report.repair("turn_added")
        return OPENING

    def _answerable(self, turns: list[Turn]) -> list[Turn]:
        """Add a turn of the user after an assistant's text, for a model that does not continue that text.

        Raises BadRequest if the target refuses such a history.
        """
        last = next((turn for turn in reversed(turns) if turn.role != "system"), None)
        if self.model.prefill or last is None or last.role != "assistant":
            return turns
        if any(isinstance(part, ToolCall) for part in last.parts) or not any(map(_has_text, last.parts)):
            return turns
        if self.target.assistant_last == "refuse":
            raise BadRequest(
                "messages",
                f"{quoted(self.request.model or '')} does not go on with the assistant's text: the user must speak last; "
                "assistant_last = 'bridge' adds a turn",
            )
        self.report.repair("turn_added")
        return [*turns, Turn("user", [Text(CLOSING)])]

    # -- ids and names ---------------------------------------------------------------------------------------------

    @property
    def checks_ids(self) -> bool:
        """Whether the id of a call may be one that the server refuses."""
        return not self.own

    def call_id(self, call_id: str) -> str:
        """The id of a call as the dialect takes it: alike for the call and its result."""
        if self.ids is None or not self.checks_ids:
            return call_id
        return self._rewrite(call_id, portable_id(call_id, self.ids), "id_rewritten")

    def tool_name(self, name: str) -> str:
        """The name of a tool as the dialect takes it: alike in its definition, in calls and where it is chosen."""
        if self.own or self.names is None:
            return name
        return self._rewrite(name, portable_name(name, self.names), "name_rewritten")

    def _rewrite(self, before: str, after: str, repair: str) -> str:
        if after != before and (repair, before) not in self._rewritten:
            self._rewritten.add((repair, before))
            self.report.repair(repair)
        return after

    def lose_marks(self, part: Part) -> None:
        """Count the signature and the cache mark of a part, for a dialect without either, and that a refusal is text there."""
        if isinstance(part, Refusal):
            self.lose("refusal_as_text")
        self.lose_signature(getattr(part, "signature", None))
        self.lose_cache(getattr(part, "cache", None))

    # -- tools -----------------------------------------------------------------------------------------------------

    @property
    def calls(self) -> list[ToolCall]:
        """The calls of the history."""
        return [part for turn in self.request.turns for part in turn.parts if isinstance(part, ToolCall)]

    @cached_property
    def called(self) -> Mapping[str, str]:
        """The names of the tools that the history calls, by the ids of the calls."""
        return {call.id: call.name for call in self.calls}

    @cached_property
    def made_ids(self) -> Mapping[str, int]:
        """Ids that the dialect's own reader made for calls that came without one, and the places of these calls."""
        return {call.id: place for place, call in enumerate(self.calls) if call.id_made and self.own}

    def function_tool(self, tool: Tool, parameters: Callable[[Any], Any]) -> dict[str, Any] | None:
        """The definition of a tool as a function without a cache mark; None for one that another dialect's provider runs.

        ``parameters`` makes of the tool's schema what the dialect takes.
        """
        if tool.kind == "server":
            return self.hosted(tool)
        tool, extras = self.plain_tool(tool)
        function = without_none(
            name=self.tool_name(tool.name), description=tool.description, parameters=parameters(tool.parameters)
        )
        return add_missing({"type": "function", "function": function}, extras)

    def plain_tool(self, tool: Tool, *, strict: bool = True) -> tuple[Tool, Mapping[str, Any]]:
        """A tool as a function without a cache mark, and what the dialect adds to it; ``strict``: it can be so here."""
        extras = self.extras(tool.extras)
        self.lose_cache(tool.cache, tool.name)
        if tool.strict and not strict:
            self.lose("tool_strict", tool.name)
        return (self.as_function(tool) if tool.kind == "custom" else tool), extras

    def object_arguments(self, call: ToolCall) -> orjson.Fragment:
        """The arguments of a call for a dialect that carries an object: their own text (seeds.md S4).

        Half of a surrogate pair, which is a legal escape in a text and not in a body, is U+FFFD.
        """
        if call.kind == "custom":
            self.lose("custom_tool_wrapped", call.name)
            return orjson.Fragment(wrapped_input(call.arguments))
        verdict = check_arguments(call.arguments)
        if verdict.kind == "empty":
            return orjson.Fragment(b"{}")
        if verdict.kind != "complete":
            self.lose("arguments_wrapped", call.name)
            return orjson.Fragment(wrapped_arguments(call.arguments))
        arguments = call.arguments.encode()
        whole = whole_characters(arguments) if _HALF.search(call.arguments) else arguments
        if whole != arguments:
            self.report.repair("lone_surrogate")
        return orjson.Fragment(whole)

    def with_properties(self, schema: Any) -> Any:
        """The schema of a tool for a dialect that refuses one of an object without ``properties``."""
        if self.own or not isinstance(schema, Mapping) or schema.get("type") != "object":
            return schema
        if schema.get("properties") is not None:
            return schema
        self.report.repair("properties_added")
        return {**schema, "properties": {}}

    def defines(self, tool: Tool) -> bool:
        """Whether a tool has a definition here: of those that another dialect's provider runs, a search of the web may."""
        return self.own or tool.kind != "server" or tool is self.search

    def hosted(self, tool: Tool) -> dict[str, Any] | None:
        """The definition of a tool that the provider runs itself; None for one that only another dialect's does."""
        if self.own and tool.raw is not None:
            return dict(tool.raw)
        if tool.search is None or tool is not self.search:
            self.lose("tool_definition", tool.name)
            return None
        for option in fields(WebSearch):
            if getattr(tool.search, option.name) and option.name not in {*(self.search_options or ()), "extras"}:
                self.lose("parameter", f"web_search.{option.name}")
        for name in tool.search.extras or ():
            self.lose("parameter", f"web_search.{name}")
        return self.search_tool(tool.search)

    def can_search(self, tool: Tool) -> bool:
        """Whether a tool of another dialect is a search of the web that this one's provider runs, too."""
        return self.search_options is not None and tool.search is not None and not tool.search.stored_only

    def search_tool(self, search: WebSearch) -> dict[str, Any]:
        """The definition of a search. Overridden where there is one."""
        raise NotImplementedError

    def is_search(self, name: str) -> bool:
        """Whether the tool of that name is another dialect's search of the web, which is defined here, and no function."""
        return self.search is not None and self.search.name == name and name not in self.functions

    def as_function(self, tool: Tool) -> Tool:
        """A custom tool for a dialect without them: a function that takes its input as text."""
        self.lose("custom_tool_wrapped", tool.name)
        return Tool(tool.name, tool.description, INPUT_SCHEMA, cache=tool.cache)


def is_blank(part: Part) -> TypeGuard[Text | Refusal]:
    """Whether a part is a text of nothing but white space, if anything, that nobody signed."""
    return isinstance(part, Text | Refusal) and not part.text.strip() and getattr(part, "signature", None) is None


def _has_text(part: Part) -> bool:
    return isinstance(part, Text | Refusal) and bool(part.text.strip())


def _inner(part: Part) -> Sequence[Part]:
    """Return a part, and before it the parts inside it."""
    return (*part.parts, part) if isinstance(part, ToolResult) else (part,)


def _unmarked(part: Part, dropped: Collection[int]) -> Part:
    """Return a part without its mark and those inside it, for parts whose ``id()`` is among the ``dropped``."""
    drops = id(part) in dropped
    if isinstance(part, ToolResult):
        inner = [cast("Text | Media | Aside", _unmarked(each, dropped)) for each in part.parts]
        return evolve(part, parts=inner, cache=None if drops else part.cache)
    return evolve(part, cache=None) if drops and isinstance(part, Text | Media | ToolCall) else part


def asked_effort(thinking: Thinking | None) -> str | None:
    """The effort that was asked for, by the budget if it was said in tokens; None where nobody asked, or for no thinking."""
    if thinking is None or thinking.effort is not None:
        return None if thinking is None else thinking.effort
    return None if thinking.enabled is False else effort_of(thinking.budget_tokens)


def as_error(parts: Sequence[Part]) -> list[Part]:
    """What a tool said, its first text marked as an error."""
    for number, part in enumerate(parts):
        if isinstance(part, Text):
            return [*parts[:number], evolve(part, text=f"{ERROR}{part.text}"), *parts[number + 1 :]]
    return [Text(ERROR), *parts]
