"""What the servers of a dialect take of a request, and a request that is on its way to them.

A request of another dialect is lowered before it is written: passes (``streamkit/translation/lowering``) leave out or say
otherwise what the dialect can't say, and count each loss once. The writers of dialects then write what they are given.
Passes that only one dialect needs are its own, beside its writer; they are of the same form.
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
from streamkit.dialects.vocabulary.models import UNKNOWN, Model, model_of
from streamkit.dialects.vocabulary.reasoning_effort import effort_of
from streamkit.events import Aside
from streamkit.report import StreamReport

#: How closely an image can be looked at.
CLOSENESS: Final = frozenset({"auto", "low", "high"})
#: The types of parts.
PART_TYPES: Final = get_args(Part)
#: Where a part stands: in a message of that role, or in a tool's result.
Place: TypeAlias = Literal["system", "user", "assistant", "result"]
#: Whose signatures go back, where a dialect has a place for any vendor's, or a pass of its own that decides.
ANYBODY: Final = "anybody"
_parts = attrgetter("parts")


@frozen(kw_only=True)
class Capabilities:
    """What the servers of a dialect take of a request, for one model and provider."""

    dialect: str
    vendor: str  #: whose asides and signatures are the dialect's own
    title: str  #: of the API, for messages
    model: Model = UNKNOWN
    is_claude: bool = False  #: whether all models behind the dialect are Claude

    # parts
    #: Ids of calls, names of tools and names of users; None: any.
    ids: re.Pattern[str] | None = None
    names: re.Pattern[str] | None = None
    users: re.Pattern[str] | None = None
    needs_ids: bool = True  #: a call must have an id
    text_files: bool = True  #: a file of plain text may be a part
    turn_names: bool = False
    native_roles: bool = True  #: another dialect's word for a role is known (``developer``)
    result_errors: bool = True  #: a member says that a result is an error
    #: Whose signatures go back on reasoning, on texts and on calls; None: nobody's. Or ``ANYBODY``.
    signs_reasoning: str | None = None
    takes_opaque: Callable[[str], bool] | None = None  #: which of that vendor's opaque reasoning goes back; None: all
    opaque_vendors: frozenset[str] = frozenset()  #: other vendors whose opaque reasoning goes back
    signs_texts: str | None = None
    signs_calls: str | None = None
    excuses_unsigned: bool = False  #: the first call of a turn needs a word that says that it has no signature
    unsigned_reasoning: bool = False  #: reasoning that nobody signed goes back
    strips_signatures: bool = False  #: reasoning with another vendor's signature goes back without it
    refusals: bool = False  #: a refusal is another part than a text
    #: Which blank texts are taken: all, none, or some: those of white space next to another part.
    blank_texts: Literal["all", "some", "none"] = "all"
    #: Arguments are a text, an object, or any JSON value and otherwise a text.
    arguments: Literal["text", "object", "any"] = "text"
    custom_calls: bool = False  #: calls of custom tools have their text, though the tools are functions
    #: Which of the vendor's own asides are written at that place; None: all.
    asides: Callable[[Aside, Place], bool] | None = None
    #: Media as the servers take them at that place; None for what they don't take, which the function counts.
    media: Callable[[Media, Place, Lowering], Media | None] | None = None
    #: Dialects whose cache marks mean the same, the most marks that a request may have (None: any number), and who has them.
    same_marks: frozenset[str] = frozenset()
    most_marks: int | None = None
    marked: tuple[type, ...] = ()

    #: Members of another dialect's part, or of its request: those that the dialect has, in its words, and the rest.
    part_extras: Callable[[Part, Extras], tuple[Extras, Extras]] | None = None
    request_extras: Callable[[Extras], tuple[Extras, Extras]] | None = None

    # the order of turns
    empty_turns: bool = False  #: a turn without parts is a message
    empty_answers: bool = True  #: where it is, one of the assistant's is a message, too
    #: Where the system's words may stand: anywhere, in front, or in front and behind the user's.
    system: Literal["anywhere", "front", "behind user"] = "anywhere"
    alternate: bool = False  #: neighbours of one role are one message
    joins_users: bool = True  #: so are those of the user
    #: Results of tools: first in the turn behind their calls, in turns of their own right behind the calls, in turns of
    #: their own in front of the rest of their turn, or anywhere.
    results: Literal["first", "behind calls", "apart", "anywhere"] = "first"
    needs_user: str = ""  #: the member that needs a message of the user: ``messages``
    needs_word: str = ""  #: what that message is called, where the member does not say it: ``step``
    user_first: bool = False  #: the user must speak first

    # tools
    custom_tools: bool = False
    some_tools: bool = False  #: a choice may name several tools
    #: Who is told which tools may be called by offering no others, for no member says it: ``an AG-UI agent``.
    offered_to: str = ""
    strict_tools: bool = True  #: a tool may be strict
    #: Options of a search of the web that the dialect has a place for; its provider runs one if ``can_search`` says so.
    search_options: frozenset[str] = frozenset()
    can_search: Callable[[Request], bool] | None = None
    #: The definition of such a search, as JSON values.
    search: Callable[[WebSearch, Lowering], dict[str, Any]] | None = None
    choice_extras: str = "metadata"  #: the loss that a member of another dialect's choice is
    needs_properties: bool = False  #: the schema of an object without ``properties`` is refused
    declares_called: bool = False  #: tools that the history calls must be defined
    form_with_tools: bool | None = None  #: tools may be offered next to an answer in JSON; None: as the model says

    # options
    #: Our options that have a place.
    options: frozenset[str] = frozenset()
    most_stops: int | None = None
    service_tiers: frozenset[str] | None = None  #: that the server knows; None: any
    #: What may be said of a schema for the answer: ``name``, ``description``.
    form_members: frozenset[str] = frozenset()

    #: Passes of the dialect's own, in front of those over parts, behind these, behind the order of turns, and at the end.
    first: tuple[Pass, ...] = ()
    said: tuple[Pass, ...] = ()
    arranged: tuple[Pass, ...] = ()
    last: tuple[Pass, ...] = ()


#: What the servers take of a request, by the dialect that it was read in, the name of its model, and the provider.
TellsCapabilities: TypeAlias = Callable[[str, "str | None", "Provider | None"], Capabilities]


@define
class Lowering:
    """One request on its way to a server."""

    takes: Capabilities
    target: Target
    report: StreamReport
    source: str  #: the dialect that it was read in
    search: Tool | None = None  #: another dialect's search of the web that is defined here
    _rewritten: set[tuple[str, str]] = field(factory=set)

    @property
    def own(self) -> bool:
        """Whether the request was read in the dialect that it is written in."""
        return self.source == self.takes.dialect

    def lose(self, kind: str, what: str = "") -> None:
        self.report.lose(kind, what=what)

    def lose_members(self, value: object, path: str, *names: str, kind: str = "parameter") -> None:
        """Count the members of a value that say anything and are not written."""
        for name in names:
            if getattr(value, name) is not None:
                self.lose(kind, f"{path}.{name}")

    def lose_look(self, media: Media, *names: str) -> None:
        """Count how closely to look at media, and the members called ``names``, where they say it."""
        for name in ("detail", *names):
            value = getattr(media, name)
            if value is not None and (name, value) != ("detail", "auto"):
                self.lose("metadata", name)

    def fit_effort(self, effort: str | None) -> str | None:
        """The nearest effort that the model knows; one that differs from the request is a counted loss."""
        fits = effort if self.own else self.takes.model.fit(effort)
        if fits != effort:
            self.lose("parameter", "thinking.effort")
        return fits

    def closeness(self, detail: str | None) -> str | None:
        """How closely to look at an image or a file, in a word that most servers know; any other is a counted loss."""
        if detail is None or detail in CLOSENESS:
            return detail
        self.lose("metadata", "detail")
        return None

    def lose_thinking(self, thinking: Thinking, *names: str) -> None:
        """Count what is not written of how much to think. That it shall think at all is said by an effort."""
        told = asked_effort(thinking) not in {None, "none"}
        for name in names:
            value = getattr(thinking, name)
            if value is not None and not (name == "enabled" and value and told):
                self.lose("parameter", f"thinking.{name}")

    def rewrite(self, before: str, after: str, repair: str) -> str:
        """``after``, counted once for each text before."""
        if after != before and (repair, before) not in self._rewritten:
            self._rewritten.add((repair, before))
            self.report.repair(repair)
        return after


#: A step of lowering: it sets members of the request, which is the lowering's own, and changes nothing that they hold.
Pass: TypeAlias = Callable[[Request, Lowering], None]
#: What it does to a part: the part or another, or None for one that is left out.
PartPass: TypeAlias = Callable[[Part, Place, Lowering], "Part | None"]


@frozen
class When:
    """A pass that does nothing but where the capabilities need it: a request to other servers is not given to it."""

    needed: Callable[[Capabilities], object]
    run: Pass

    def __call__(self, request: Request, to: Lowering) -> None:
        if self.needed(to.takes):
            self.run(request, to)


def when(needed: Callable[[Capabilities], object]) -> Callable[[Pass], Pass]:
    """Decorate a pass that only some capabilities need."""
    return lambda run: When(needed, run)


@frozen
class OfParts:
    """The pass that changes each part by the steps for its type, in turn; those of a result before the result itself."""

    steps: Mapping[type, Sequence[PartPass]]

    def __call__(self, request: Request, to: Lowering) -> None:
        changed: list[Turn] | None = None
        for number, turn in enumerate(request.turns):
            parts = _stepped(turn.parts, turn.role, to, self.steps)
            if parts is not None:
                changed = changed or [*request.turns]
                changed[number] = evolve(turn, parts=parts)
        request.turns = changed or request.turns

    def then(self, other: OfParts) -> OfParts:
        """Both in one walk. A part of which a step makes another type goes on by the steps for the type that it had."""
        return OfParts({kind: (*self.steps.get(kind, ()), *other.steps.get(kind, ())) for kind in PART_TYPES})


def of_parts(*steps: PartPass) -> OfParts:
    """The pass that changes each part by all steps in turn."""
    return OfParts(dict.fromkeys(PART_TYPES, steps))


def needed_by(takes: Capabilities, passes: Sequence[Pass]) -> Sequence[Pass]:
    """The passes that these capabilities need; neighbours over parts as one."""
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
    """Change each part by all steps in turn; those of a result before the result itself."""
    of_parts(*steps)(request, to)


def of_turns(step: Callable[[Turn, Lowering], Turn]) -> Pass:
    """The pass that changes each turn."""

    def run(request: Request, to: Lowering) -> None:
        request.turns = [step(turn, to) for turn in request.turns]

    return run


def of_tools(step: Callable[[Tool, Lowering], Tool]) -> Pass:
    """The pass that changes each tool."""

    def run(request: Request, to: Lowering) -> None:
        request.tools = [step(tool, to) for tool in request.tools]

    return run


def _stepped(
    parts: Sequence[Part], place: Place, to: Lowering, steps: Mapping[type, Sequence[PartPass]]
) -> list[Part] | None:
    """What the steps make of parts; None where they leave all as they are."""
    made = list[Part]()
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
    """Results with the names of their calls, ``unnamed`` ones included; the dialect's own clients may name another."""
    parts = [part for turn in request.turns for part in turn.parts]
    called = {part.id: part.name for part in parts if isinstance(part, ToolCall) and (part.name or unnamed)}

    def named(part: Part, _place: Place, to: Lowering) -> Part:
        if not isinstance(part, ToolResult) or part.call_id not in called or (to.own and part.name):
            return part
        return evolve(part, name=called[part.call_id])

    if called:
        OfParts({ToolResult: (named,)})(request, to)


def leading_of(turns: Sequence[Turn]) -> int:
    """How many turns of the system are in front of all others."""
    for number, turn in enumerate(turns):
        if turn.role != "system":
            return number
    return len(turns)


def has_part(turns: Sequence[Turn], kind: type) -> bool:
    """Whether a turn has a part of that type."""
    return kind in map(type, chain.from_iterable(map(_parts, turns)))


def chosen_of(tools: Sequence[Tool], choice: ToolChoice | None) -> Sequence[Tool]:
    """The tools that a choice names, in their order; all where it names none, or none may be called."""
    if choice is None or not choice.names or choice.mode == "none":
        return tools
    names = {*choice.names}
    return [tool for tool in tools if tool.name in names]


def asked_effort(thinking: Thinking | None) -> str | None:
    """The effort that was asked for, by the budget if it was said in tokens; None where nobody asked, or for no thinking."""
    if thinking is None or thinking.effort is not None:
        return None if thinking is None else thinking.effort
    return None if thinking.enabled is False else effort_of(thinking.budget_tokens)


def told_by(own: Capabilities, foreign: Capabilities, efforts: frozenset[str] | None = None) -> TellsCapabilities:
    """Capabilities by the source and the model alone; the bound on stops is that of the dialect's own servers."""

    def tell(source: str, name: str | None, provider: Provider | None) -> Capabilities:
        if source == foreign.dialect:
            return own
        model = model_for(name, provider, foreign.model, efforts)
        return evolve(foreign, model=model, most_stops=foreign.most_stops if provider is None else None)

    return tell


def model_for(
    model: str | None, provider: Provider | None, unknown: Model = UNKNOWN, efforts: frozenset[str] | None = None
) -> Model:
    """What a model takes behind a provider."""
    return model_of(model, "" if provider is None else provider.name, unknown, efforts)
