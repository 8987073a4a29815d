"""What the servers of a dialect accept in a request, and the state of a request that is being lowered for them.

A request of another dialect is lowered before it is written: passes (``streamkit/translation/lowering``) remove or rephrase
what the dialect cannot express, and count each loss once. The dialects' writers then write the lowered request as it is. A
pass that only one dialect needs is in that dialect's folder and has the same form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from operator import attrgetter, is_
from typing import Any, Final, Literal, TypeAlias, cast, get_args

from attrs import define, evolve, field, frozen

from streamkit.conversation.messages import (
    Extras,
    Media,
    Part,
    Request,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    Turn,
    WebSearch,
)
from streamkit.dialects.profiles import Provider, Target
from streamkit.dialects.vocabulary.model_names import model_of
from streamkit.dialects.vocabulary.models import UNKNOWN, ModelInfo, effort_of
from streamkit.events import Aside
from streamkit.report import StreamReport

CLOSENESS: Final = frozenset({"auto", "low", "high"})  #: the words for how closely a model must look at an image
PART_TYPES: Final = get_args(Part)  #: the types of message parts
#: Where a part is: in a message of that role, or in a tool's result.
Place: TypeAlias = Literal["system", "user", "assistant", "result"]
#: A value of the ``signs_…`` fields below: signatures of all vendors may be written.
ANYBODY: Final = "anybody"
_parts = attrgetter("parts")


@frozen(kw_only=True)
class Capabilities:
    """What the servers of a dialect accept in a request. The values may depend on the model and the provider."""

    dialect: str
    vendor: str  #: the vendor whose asides and signatures belong to the dialect
    title: str  #: the name of the API in error messages
    model: ModelInfo = UNKNOWN
    is_claude: bool = False  #: whether every model of the dialect is a Claude model

    # parts
    ids: re.Pattern[str] | None = None  #: The pattern that call ids must match. None: any text is allowed.
    names: re.Pattern[str] | None = None  #: The pattern that tool names must match. None: any text is allowed.
    users: re.Pattern[str] | None = None  #: The pattern that user names must match. None: any text is allowed.
    needs_ids: bool = True  #: whether a call must have an id
    text_files: bool = True  #: whether a part may be a plain-text file
    turn_names: bool = False
    native_roles: bool = True  #: whether the dialect knows other dialects' words for a role (``developer``)
    result_errors: bool = True  #: whether the dialect has a member that marks a tool result as an error
    #: The vendor whose reasoning signatures a request may contain. None: no vendor. ``ANYBODY``: every vendor.
    signs_reasoning: str | None = None
    #: Returns whether a request may contain the given redacted or encrypted reasoning of the vendor in
    #: ``signs_reasoning``. None: a request may contain all such reasoning.
    takes_opaque: Callable[[str], bool] | None = None
    #: The vendors, in addition to the one in ``signs_reasoning``, whose redacted or encrypted reasoning a request may contain.
    opaque_vendors: frozenset[str] = frozenset()
    signs_texts: str | None = None  #: the vendor whose text signatures a request may contain, as in ``signs_reasoning``
    signs_calls: str | None = None  #: the vendor whose call signatures a request may contain, as in ``signs_reasoning``
    #: Whether the first call of a turn gets a placeholder signature if this call has no signature.
    excuses_unsigned: bool = False
    unsigned_reasoning: bool = False  #: whether a request may contain reasoning without a signature
    #: Whether reasoning with another vendor's signature is written without the signature. False: such reasoning is
    #: dropped.
    strips_signatures: bool = False
    refusals: bool = False  #: whether the dialect has a type of part for refusals; if not, a refusal is written as text
    #: Which blank texts are accepted. ``some``: a text of white space is accepted if another part of the turn is not
    #: blank.
    blank_texts: Literal["all", "some", "none"] = "all"
    #: The JSON type of a call's arguments. ``text``: a string. ``object``: an object. ``any``: any JSON value; arguments that
    #: are not JSON are written as a string.
    arguments: Literal["text", "object", "any"] = "text"
    #: Whether calls of custom tools keep their arguments as text, although custom tools are defined as functions.
    custom_calls: bool = False
    #: Returns whether an aside of the dialect's vendor may be written at a place. None: always.
    asides: Callable[[Aside, Place], bool] | None = None
    #: Returns media in a form that servers accept at a place. Returns None for media that servers do not accept there, and
    #: counts the loss.
    media: Callable[[Media, Place, Lowering], Media | None] | None = None
    same_marks: frozenset[str] = frozenset()  #: the dialects with the same form of cache marks
    most_marks: int | None = None  #: The largest number of cache marks in a request. None: any number.
    marked: tuple[type, ...] = ()  #: the types of part or tool that may have a cache mark
    needs_marks: bool = False  #: whether the server caches only prompts with cache marks

    #: Whether documents may be cited. True: documents are written in the dialect's form (``translation/documents.py``).
    cites: bool = False

    #: For a part of a message that was decoded from another dialect: splits its extra members into two mappings. The first
    #: mapping has the members that this dialect also has, under this dialect's names. The second has all other members.
    part_extras: Callable[[Part, Extras], tuple[Extras, Extras]] | None = None
    #: For a request that was decoded from another dialect: splits its extra members in the same way as ``part_extras``.
    request_extras: Callable[[Extras], tuple[Extras, Extras]] | None = None

    # the order of turns
    empty_turns: bool = False  #: whether a turn without parts may be a message
    #: Whether an assistant's turn without parts may be a message too, if ``empty_turns`` is True.
    empty_answers: bool = True
    #: Where system messages may be: anywhere, only at the front, or (``behind user``) also after user messages.
    system: Literal["anywhere", "front", "behind user"] = "anywhere"
    alternate: bool = False  #: whether adjacent messages of one role are joined
    joins_users: bool = True  #: whether user messages are joined too, if ``alternate`` is True
    #: Where tool results must be. ``first``: at the beginning of the turn after their calls. ``behind calls``: in separate
    #: turns directly after the calls. ``apart``: in separate turns before all other parts of their turn.
    results: Literal["first", "behind calls", "apart", "anywhere"] = "first"
    #: The member that must contain a user message, such as ``messages``. Empty: a user message is not required.
    needs_user: str = ""
    #: The word for a user message in error messages (``step``). Empty: the name in ``needs_user`` without its final
    #: ``s``.
    needs_word: str = ""
    user_first: bool = False  #: whether the first message must be the user's

    # tools
    custom_tools: bool = False
    some_tools: bool = False  #: whether a tool choice may list several tools
    #: Whether a request may forbid parallel calls. Also True if one of the dialect's own passes handles a request that
    #: forbids parallel calls.
    parallel: bool = False
    #: For a dialect without a tool choice: the reader of requests, as named in error messages (``an AG-UI agent``). A
    #: request then has only the tools that may be called.
    offered_to: str = ""
    strict_tools: bool = True  #: whether the definition of a tool may have ``strict``
    search_options: frozenset[str] = frozenset()  #: the options of a web search that the dialect has
    #: Returns whether the provider can run a web search for a request.
    can_search: Callable[[Request], bool] | None = None
    #: Returns the definition of a web search, as JSON values.
    search: Callable[[WebSearch, Lowering], dict[str, Any]] | None = None
    #: The definition of the provider's search of deferred tools, if the dialect has such a search and can report each
    #: search.
    finder: Mapping[str, Any] | None = None
    choice_extras: str = "metadata"  #: the kind of loss for a member that only another dialect's tool choice has
    #: Whether the server refuses an object schema without ``properties``. If so, an empty ``properties`` is added.
    needs_properties: bool = False
    declares_called: bool = False  #: whether a request without tools must define the tools that its earlier turns call
    #: Whether a request may have both tools and a JSON response format. None: this depends on the model.
    form_with_tools: bool | None = None
    unthinking_tools: bool = False  #: whether the model accepts no tools while it thinks

    # options
    #: The fields of ``Options`` that the dialect has.
    options: frozenset[str] = frozenset()
    most_stops: int | None = None
    service_tiers: frozenset[str] | None = None  #: The service tiers that the server knows. None: any tier.
    #: The accepted members of a response schema: ``name``, ``description``.
    form_members: frozenset[str] = frozenset()

    #: The dialect's own passes that run before the passes that change parts.
    first: tuple[Pass, ...] = ()
    said: tuple[Pass, ...] = ()  #: The dialect's own passes that run after the passes that change parts.
    arranged: tuple[Pass, ...] = ()  #: The dialect's own passes that run after the passes that order turns.
    last: tuple[Pass, ...] = ()  #: The dialect's own passes that run last.


#: Returns what the servers accept, from the request's original dialect, the model's name, and the provider.
TellsCapabilities: TypeAlias = Callable[[str, "str | None", "Provider | None"], Capabilities]


@define
class Lowering:
    """The state of one request that is being lowered for a server."""

    takes: Capabilities
    target: Target
    report: StreamReport
    source: str  #: the dialect that the request was read in
    search: Tool | None = None  #: another dialect's web search, which is defined in this dialect's form
    documents: list[dict[str, Any]] = field(factory=list)  #: documents that a dialect has next to the messages
    finder: Tool | None = None  #: another dialect's search of deferred tools, which is defined in this dialect's form
    _rewritten: set[tuple[str, str]] = field(factory=set)

    @property
    def own(self) -> bool:
        """Whether the request was read in the same dialect as it is written in."""
        return self.source == self.takes.dialect

    def lose(self, kind: str, what: str = "") -> None:
        self.report.lose(kind, what=what)

    def lose_members(self, value: object, path: str, *names: str, kind: str = "parameter") -> None:
        """Count as lost those of the named members of ``value`` that are not None."""
        for name in names:
            if getattr(value, name) is not None:
                self.lose(kind, f"{path}.{name}")

    def lose_look(self, media: Media, *names: str) -> None:
        """Count as lost the detail with which to look at media, and the members ``names``, if the media have them."""
        for name in ("detail", *names):
            value = getattr(media, name)
            if value is not None and (name, value) != ("detail", "auto"):
                self.lose("metadata", name)

    def fit_effort(self, effort: str | None) -> str | None:
        """Return the nearest effort that the model knows. Count a loss if it differs from the request's."""
        fits = effort if self.own else self.takes.model.fit(effort)
        if fits != effort:
            self.lose("parameter", "thinking.effort")
        return fits

    def closeness(self, detail: str | None) -> str | None:
        """Return how closely to look at an image or file, in a word that most servers know. Count any other word as lost."""
        if detail is None or detail in CLOSENESS:
            return detail
        self.lose("metadata", "detail")
        return None

    def lose_thinking(self, thinking: Thinking, *names: str) -> None:
        """Count as lost the named members of ``thinking``. ``enabled`` is no loss if an effort also enables thinking."""
        told = asked_effort(thinking) not in {None, "none"}
        for name in names:
            value = getattr(thinking, name)
            if value is not None and not (name == "enabled" and value and told):
                self.lose("parameter", f"thinking.{name}")

    def rewrite(self, before: str, after: str, repair: str) -> str:
        """Return ``after``, and count the repair once for each different text ``before``."""
        if after != before and (repair, before) not in self._rewritten:
            self._rewritten.add((repair, before))
            self.report.repair(repair)
        return after


#: A step of lowering. It may set members of the request, which is a copy, but must not change the objects in them.
Pass: TypeAlias = Callable[[Request, Lowering], None]
#: Returns the part, its replacement, or None to drop it.
PartPass: TypeAlias = Callable[[Part, Place, Lowering], "Part | None"]


@frozen
class When:
    """A pass that runs only if the server's capabilities need it. Requests to other servers are not changed."""

    needed: Callable[[Capabilities], object]
    run: Pass

    def __call__(self, request: Request, to: Lowering) -> None:
        if self.needed(to.takes):
            self.run(request, to)


def when(needed: Callable[[Capabilities], object]) -> Callable[[Pass], Pass]:
    """Return a decorator for a pass that only certain capabilities need."""
    return lambda run: When(needed, run)


@frozen
class OfParts:
    """A pass that applies, to each part, the steps for the part's type, in order. Parts in a tool result are changed first."""

    steps: Mapping[type, Sequence[PartPass]]
    #: The types of parts that may change; a result may contain one of the others.
    _types: frozenset[type] = field(init=False)

    @_types.default
    def _types_in_steps(self) -> frozenset[type]:
        return frozenset({ToolResult, *self.steps})

    def __call__(self, request: Request, to: Lowering) -> None:
        changed: list[Turn] | None = None
        for number, turn in enumerate(request.turns):
            if self._types.isdisjoint(map(type, turn.parts)):
                continue
            parts = _stepped(turn.parts, turn.role, to, self.steps)
            if parts is not None:
                changed = changed or [*request.turns]
                changed[number] = evolve(turn, parts=parts)
        request.turns = changed or request.turns

    def then(self, other: OfParts) -> OfParts:
        """Return one pass that does both. If a step changes a part's type, the original type's steps are still applied."""
        return OfParts({kind: (*self.steps.get(kind, ()), *other.steps.get(kind, ())) for kind in PART_TYPES})


def of_parts(*steps: PartPass) -> OfParts:
    """Return a pass that applies all steps to each part, in order."""
    return OfParts(dict.fromkeys(PART_TYPES, steps))


def needed_by(takes: Capabilities, passes: Sequence[Pass]) -> Sequence[Pass]:
    """Return the passes that these capabilities need. Adjacent passes over parts are joined."""
    needed = list[Pass]()
    for each in passes:
        if isinstance(each, When):
            needed += [each.run] if each.needed(takes) else []
        elif isinstance(each, OfParts) and needed and isinstance(before := needed[-1], OfParts):
            needed[-1] = before.then(each)
        else:
            needed.append(each)
    return needed


def each_part(request: Request, to: Lowering, *steps: PartPass) -> None:
    """Apply all steps to each part, in order. Parts inside a tool result are changed before the result."""
    of_parts(*steps)(request, to)


def of_turns(step: Callable[[Turn, Lowering], Turn]) -> Pass:
    """Return a pass that replaces each turn."""

    def run(request: Request, to: Lowering) -> None:
        request.turns = [step(turn, to) for turn in request.turns]

    return run


def of_tools(step: Callable[[Tool, Lowering], Tool]) -> Pass:
    """Return a pass that replaces each tool."""

    def run(request: Request, to: Lowering) -> None:
        request.tools = [step(tool, to) for tool in request.tools]

    return run


def _stepped(
    parts: Sequence[Part], place: Place, to: Lowering, steps: Mapping[type, Sequence[PartPass]]
) -> list[Part] | None:
    """Return the parts after these steps; None if the steps changed nothing."""
    made: list[Part] = []
    for part in parts:
        new: Part = part
        if isinstance(part, ToolResult) and (inner := _stepped(part.parts, "result", to, steps)) is not None:
            new = evolve(part, parts=cast("Any", inner))
        for step in steps.get(type(part), ()):
            changed = step(new, place, to)
            if changed is None:
                break
            new = changed
        else:
            made.append(new)
    return None if len(made) == len(parts) and all(map(is_, made, parts)) else made


def results_named(request: Request, to: Lowering, *, unnamed: bool = True) -> None:
    """Write into each result the name of its call. A result that has a name from the same dialect keeps it.

    ``unnamed``: whether a call without a name also counts, so that its results get an empty name.
    """
    parts = [part for turn in request.turns for part in turn.parts]
    called = {part.id: part.name for part in parts if isinstance(part, ToolCall) and (part.name or unnamed)}

    def named(part: Part, _place: Place, to: Lowering) -> Part:
        if not isinstance(part, ToolResult) or part.call_id not in called or (to.own and part.name):
            return part
        return evolve(part, name=called[part.call_id])

    if called:
        OfParts({ToolResult: (named,)})(request, to)


def form_unnamed(request: Request, to: Lowering) -> None:
    """Count the name and description of the output format as lost, for a dialect without members for them."""
    output = request.options.output
    if output is not None:
        to.lose_members(output, "output", "name", "description", kind="metadata")


def leading_of(turns: Sequence[Turn]) -> int:
    """Return the number of system turns before all other turns."""
    for number, turn in enumerate(turns):
        if turn.role != "system":
            return number
    return len(turns)


def has_part(turns: Sequence[Turn], kind: type) -> bool:
    """Return whether some turn has a part of that type."""
    return kind in map(type, chain.from_iterable(map(_parts, turns)))


def chosen_of(tools: Sequence[Tool], choice: ToolChoice | None) -> Sequence[Tool]:
    """Return the tools that a choice names, in their order; all tools if it names none or forbids calls."""
    if choice is None or not choice.names or choice.mode == "none":
        return tools
    names = {*choice.names}
    return [tool for tool in tools if tool.name in names]


def asked_effort(thinking: Thinking | None) -> str | None:
    """Return the requested effort, or the effort that corresponds to a budget in tokens; None if thinking is not requested."""
    if thinking is None or thinking.effort is not None:
        return None if thinking is None else thinking.effort
    return None if thinking.enabled is False else effort_of(thinking.budget_tokens)


def told_by(own: Capabilities, foreign: Capabilities, efforts: frozenset[str] | None = None) -> TellsCapabilities:
    """Return a function that returns ``own`` for a request of the same dialect, else ``foreign`` with the model's facts.

    The limit of stop sequences applies only if no provider is named.
    """

    def tell(source: str, name: str | None, provider: Provider | None) -> Capabilities:
        if source == foreign.dialect:
            return own
        model = model_for(name, provider, foreign.model, efforts)
        return evolve(foreign, model=model, most_stops=foreign.most_stops if provider is None else None)

    return tell


def model_for(
    model: str | None, provider: Provider | None, unknown: ModelInfo = UNKNOWN, efforts: frozenset[str] | None = None
) -> ModelInfo:
    """Return what a model of this provider accepts."""
    return model_of(model, "" if provider is None else provider.name, unknown, efforts)
