"""Passes over turns: change what the dialect can't express, and arrange turns as its servers want. See ``__init__.py``.

Source: dialects.md §3.2, §5.3, §7.3, §7.4 (the orders that servers demand); seeds.md S2.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, takewhile
from operator import attrgetter
from typing import Any, Final, TypeVar, cast

from attrs import evolve

from streamkit.conversation.messages import Media, Part, Refusal, Request, Text, ToolCall, ToolResult, Turn
from streamkit.dialects.bodies.media_types import image_type, type_by_beginning
from streamkit.dialects.lowering import Lowering, Place, each_part, has_part, leading_of, of_turns, when
from streamkit.dialects.vocabulary.reasoning_effort import NO_SIGNATURE
from streamkit.errors import BadRequest
from streamkit.events import Aside, Opaque
from streamkit.text.quoting import quoted
from streamkit.translation.lowering.blocks_as_text import text_of_block, text_of_file
from streamkit.translation.lowering.parts import is_blank, without_blank_texts, without_extras

P = TypeVar("P", bound=Part)
#: Classes of parts that may be in a form that only one dialect knows, or that may contain a part in such a form.
FORMED: Final = frozenset({Aside, Media, ToolResult})
_role, _extras = attrgetter("role"), attrgetter("extras")
#: The user turn before an assistant that speaks first, for a dialect in which the user must. It can't be empty.
OPENING: Final = "(The assistant speaks first.)"
#: The user turn after an assistant's text, for a model that does not continue that text.
CLOSING: Final = "(Go on from where your last message ends, without repeating it.)"


# -- content -----------------------------------------------------------------------------------------------------------


@of_turns
def readable(turn: Turn, to: Lowering) -> Turn:
    """Replace parts of user and system turns that only one dialect knows with the text in these parts.

    Raises BadRequest for an unknown part without text, since the model would answer another question without it.
    """
    if turn.role == "assistant" or FORMED.isdisjoint(map(type, turn.parts)):
        return turn
    parts = [_as_text(part, to) for part in turn.parts]
    for part in parts:
        if isinstance(part, Aside) and part.kind == "unknown_event" and part.place:
            kind = quoted(part.raw.get("type") or ", ".join(part.raw))
            raise BadRequest(part.place, f"a part of type {kind} is not known, and {to.takes.dialect} can't be sent it")
    return evolve(turn, parts=parts)


def _as_text(part: Part, to: Lowering) -> Part:
    match part:
        case ToolResult() if not all(isinstance(inner, Text) for inner in part.parts):
            return evolve(part, parts=cast("Any", [_as_text(inner, to) for inner in part.parts]))
        case Aside() if (text := text_of_block(part)) is not None:
            to.lose("metadata", part.type)
            return text
        case Media() if not to.takes.text_files and (text := text_of_file(part)) is not None:
            to.lose("metadata", "media_type")
            return text
        case Media(kind="image", media_type=str(said_type)) if (kind := image_type(part)) != said_type:
            to.report.repair("media_type_mended")
            return evolve(part, media_type=kind)
        case Media(kind="audio", media_type=None):
            return evolve(part, media_type=type_by_beginning(part))
    return part


def telling(request: Request, to: Lowering) -> None:
    """Drop blank texts next to other parts of a turn, and system turns that are blank."""
    turns = []
    for turn in request.turns:
        if not _has_blank(turn):
            turns.append(turn)
            continue
        parts = [
            evolve(part, parts=_telling(part.parts, to)) if isinstance(part, ToolResult) else part
            for part in turn.parts
        ]
        parts = _telling(parts, to, all_blank=turn.role != "system")
        if parts or not turn.parts:
            turns.append(evolve(turn, parts=parts))
    request.turns = turns


def _telling(parts: Sequence[P], to: Lowering, *, all_blank: bool = True) -> list[P]:
    """Drop blank texts and count each as a repair. If all parts are blank, keep them all if ``all_blank`` is set.

    White space next to other text is kept: it may be the space between two words of a model.
    """
    words = any(isinstance(part, Text | Refusal) and part.text.strip() for part in parts)
    kept = [part for part in parts if not is_blank(part) or (words and cast("Text", part).text)]
    if not kept and all_blank:
        return list(parts)
    for part in parts:
        if is_blank(part) and not (words and cast("Text", part).text):
            to.report.repair("turn_empty")
            if (mark := getattr(part, "cache", None)) is not None:
                to.lose("cache_mark", mark)
    return kept


def no_silent_turns(request: Request, to: Lowering) -> None:
    """Drop turns that would be no message: empty turns, and turns with nothing but asides.

    If only system turns would be left, no turn is dropped: the writer of the dialect then decides about the request.
    """
    silent, kept = list[Turn](), list[Turn]()
    for turn in request.turns:
        (silent if {Aside}.issuperset(map(type, turn.parts)) else kept).append(turn)
    if not silent or {"system"}.issuperset(map(_role, kept)):
        return
    for turn in silent:
        without_extras(turn, to)
        for part in turn.parts:
            if isinstance(part, Aside):
                to.lose(part.kind, part.type)
        if not turn.parts:
            to.report.repair("turn_empty")
    request.turns = kept


def turns_counted(request: Request, to: Lowering) -> None:
    """Count empty turns as repairs if the dialect has none. Drop names of turns, as losses, if the dialect has none."""
    for turn in request.turns:
        if not turn.parts and not to.takes.empty_turns:
            to.report.repair("turn_empty")
        if turn.name is not None and not to.takes.turn_names:
            to.lose("turn_name", turn.name)
    if not to.takes.turn_names:
        request.turns = [turn if turn.name is None else evolve(turn, name=None) for turn in request.turns]


@when(lambda takes: not takes.needs_ids)
def no_made_ids(request: Request, to: Lowering) -> None:
    """Remove the ids that the dialect's reader made up from calls and their results, where calls need no ids."""
    calls = [part for turn in request.turns for part in turn.parts if isinstance(part, ToolCall)]
    made = {call.id for call in calls if call.id_made}
    if not made:
        return

    def unmade(part: Part, _place: Place, _to: Lowering) -> Part:
        match part:
            case ToolCall() if part.id in made:
                return evolve(part, id="")
            case ToolResult() if part.call_id in made:
                return evolve(part, call_id="")
        return part

    each_part(request, to, unmade)


@when(lambda takes: takes.blank_texts != "all")
def no_blank_texts(request: Request, to: Lowering) -> None:
    """Drop the blank texts that the server refuses."""
    request.turns = [
        evolve(turn, parts=without_blank_texts(turn.parts, to)) if _has_blank(turn) else turn for turn in request.turns
    ]


def _has_blank(turn: Turn) -> bool:
    for part in turn.parts:
        for each in (part, *getattr(part, "parts", ())):
            if is_blank(each):
                return True
    return False


@when(lambda takes: not takes.model.prefill)
def answerable(request: Request, to: Lowering) -> None:
    """Add a user turn after an assistant's text, for a model that does not continue that text.

    Raises BadRequest if the target refuses such a history.
    """
    turns = request.turns
    last = next((turn for turn in reversed(turns) if turn.role != "system"), None)
    if last is None or last.role != "assistant":
        return
    if any(isinstance(part, ToolCall) for part in last.parts) or not any(map(_has_text, last.parts)):
        return
    if to.target.assistant_last == "refuse":
        raise BadRequest(
            "messages",
            f"{quoted(request.model or '')} does not go on with the assistant's text: the user must speak last; "
            "assistant_last = 'bridge' adds a turn",
        )
    to.report.repair("turn_added")
    request.turns = [*turns, Turn("user", [Text(CLOSING)])]


def _has_text(part: Part) -> bool:
    return isinstance(part, Text | Refusal) and bool(part.text.strip())


@when(lambda takes: takes.is_claude)
def continuable(request: Request, to: Lowering) -> None:
    """Trim the white space at the end of an assistant's text that Claude must continue, since Claude refuses it."""
    turns = request.turns
    last = turns[-1].parts[-1] if turns and turns[-1].parts else None
    if not isinstance(last, Text) or turns[-1].role != "assistant" or is_blank(last):
        return
    text = last.text.rstrip()
    if text == last.text:
        return
    to.report.repair("space_trimmed")
    request.turns = [*turns[:-1], evolve(turns[-1], parts=[*turns[-1].parts[:-1], evolve(last, text=text)])]


def no_extras(request: Request, to: Lowering) -> None:
    """Drop the members of turns that only another dialect knows."""
    if any(map(_extras, request.turns)):
        request.turns = [without_extras(turn, to) for turn in request.turns]


@when(lambda takes: not takes.native_roles)
@of_turns
def no_native_roles(turn: Turn, _to: Lowering) -> Turn:
    """Drop another dialect's words for roles and ids of messages: this dialect would write them as its words and ids."""
    return evolve(turn, native_role=None, native_ids=())


# -- order -------------------------------------------------------------------------------------------------------------


def is_result(part: Part) -> bool:
    """Return whether a part is the result of a tool."""
    return isinstance(part, ToolResult)


@when(lambda takes: not takes.empty_answers)
def no_empty_answers(request: Request, to: Lowering) -> None:
    """Drop empty turns of the assistant, for a dialect where empty turns of other roles are messages."""
    kept = [turn for turn in request.turns if turn.parts or turn.role != "assistant"]
    for _ in range(len(request.turns) - len(kept)):
        to.report.repair("turn_empty")
    request.turns = kept


@when(lambda takes: not takes.empty_turns)
def no_empty_turns(request: Request, _to: Lowering) -> None:
    """Drop turns without parts."""
    request.turns = [turn for turn in request.turns if turn.parts]


@when(lambda takes: takes.system != "anywhere")
def system_in_place(request: Request, to: Lowering) -> None:
    """Move the system's turns to where the server takes them, by default to the front; each moved turn is a loss."""
    first = leading_of(request.turns)
    leading, rest = request.turns[:first], request.turns[first:]
    if "system" not in map(_role, rest):
        return
    placed: list[Turn] = []
    for _, run in groupby(rest, key=lambda turn: turn.role == "assistant"):
        turns = [*run]
        others = [turn for turn in turns if turn.role != "system"]
        behind: list[Turn] = []
        if others and to.takes.system == "behind user":
            behind = [*takewhile(lambda turn: turn.role == "system", reversed(turns))][::-1]
        for turn in turns[: len(turns) - len(behind)]:
            if turn.role == "system":
                to.lose("system_place")
                leading.append(turn)
        placed += [*others, *behind]
    request.turns = [*leading, *placed]


@when(lambda takes: takes.alternate)
def neighbours_joined(request: Request, to: Lowering) -> None:
    """Join neighbouring turns of one role. Joining turns of results alone is no repair: some dialects split results off."""
    first = leading_of(request.turns)
    turns = request.turns[:first]
    for _, run in groupby(request.turns[first:], key=_role):
        same = [*run]
        if len(same) == 1 or (same[0].role == "user" and not to.takes.joins_users):
            turns += same
            continue
        for _ in range(sum(not all(map(is_result, turn.parts)) for turn in same) - 1):
            to.report.repair("turns_joined")
        members = {name: value for turn in same for name, value in (turn.extras or {}).items()}
        parts = [part for turn in same for part in turn.parts]
        turns.append(evolve(same[0], parts=parts, extras=members or None))
    request.turns = turns


@when(lambda takes: takes.results != "anywhere")
def results_placed(request: Request, to: Lowering) -> None:
    """Move the results of tools to where the server wants them."""
    if not has_part(request.turns, ToolResult):
        return
    match to.takes.results:
        case "first":
            _results_first(request, to)
        case "apart":
            request.turns = [apart for turn in request.turns for apart in _results_apart(turn, to)]
        case _:
            _results_behind_calls(request, to)


def _results_first(request: Request, to: Lowering) -> None:
    """Move all results between two assistant turns to the start of the first user turn there."""
    turns: list[Turn] = []
    for is_answer, run in groupby(request.turns, key=lambda turn: turn.role == "assistant"):
        between = [*run]
        first = None if is_answer else next((n for n, turn in enumerate(between) if turn.role == "user"), None)
        results = [part for turn in between for part in turn.parts if is_result(part)]
        if first is None or not results:
            turns += between
            continue
        in_place = len([*takewhile(is_result, between[first].parts)])
        for _ in results[in_place:]:
            to.report.repair("result_moved")
        if in_place < len(results):
            between = [evolve(turn, parts=[part for part in turn.parts if not is_result(part)]) for turn in between]
            between[first] = evolve(between[first], parts=[*results, *between[first].parts])
        turns += [turn for turn in between if turn.parts]
    request.turns = turns


def _results_apart(turn: Turn, to: Lowering) -> list[Turn]:
    """Split a turn into its results and the rest; return it unsplit if one of them would be empty."""
    results = [part for part in turn.parts if is_result(part)]
    if not results or len(results) == len(turn.parts):
        return [turn]
    if any(not is_result(part) for part in turn.parts[: len(results)]):
        to.report.repair("result_moved")
    return [Turn("user", results), evolve(turn, parts=[part for part in turn.parts if not is_result(part)])]


def _results_behind_calls(request: Request, to: Lowering) -> None:
    """Move the turns with results directly after the assistant turn with the calls."""
    placed: list[Turn] = []
    others: list[Turn] = []
    for turn in [apart for whole in request.turns for apart in _results_apart(whole, to)]:
        if turn.parts and is_result(turn.parts[0]):
            for _ in turn.parts if others else ():
                to.report.repair("result_moved")
            placed.append(turn)
            continue
        others.append(turn)
        if turn.role == "assistant":
            placed += others
            others = []
    request.turns = placed + others


@when(lambda takes: takes.needs_user)
def user_speaks(request: Request, to: Lowering) -> None:
    """Make the system's turns a user turn if there is no other turn, for a server that needs a user turn.

    Raises BadRequest if there is no turn at all, or if the target does not emulate what the dialect lacks.
    """
    member, title = to.takes.needs_user, to.takes.title
    if not {"system"}.issuperset(map(_role, request.turns)):
        return
    if not to.target.emulate or not request.turns:
        word = to.takes.needs_word or member.removesuffix("s")
        raise BadRequest(member, f"{title} needs a {word} of the user, beside what the system says")
    to.lose("system_place")
    request.turns = [Turn("user", [part for turn in request.turns for part in turn.parts])]


@when(lambda takes: takes.user_first)
def user_speaks_first(request: Request, to: Lowering) -> None:
    """Add a short user turn before an assistant that speaks first, for a dialect in which the user must speak first.

    Raises BadRequest if the target refuses such a history.
    """
    turns, number = request.turns, leading_of(request.turns)
    if number == len(turns) or turns[number].role != "assistant":
        return
    if to.target.assistant_first == "refuse":
        raise BadRequest(
            to.takes.needs_user, "the user must speak first; assistant_first = 'bridge' puts a turn in front"
        )
    to.report.repair("turn_added")
    request.turns = [*turns[:number], Turn("user", [Text(OPENING)]), *turns[number:]]


@when(lambda takes: takes.excuses_unsigned and takes.model.signatures)
@of_turns
def calls_excused(turn: Turn, to: Lowering) -> Turn:
    """Add Google's placeholder signature to a turn's first call, if it has none (another model's call, or a lost signature).

    Since Gemini 3 the server refuses a history in which the first call of a turn has no signature, and accepts this
    placeholder as one (ai.google.dev, "Thought signatures", questions).
    """
    place = next((place for place, part in enumerate(turn.parts) if isinstance(part, ToolCall)), None)
    call = None if place is None else turn.parts[place]
    if place is None or not isinstance(call, ToolCall) or call.signature is not None:
        return turn
    to.report.repair("signature_excused")
    excused = evolve(call, signature=Opaque("google", NO_SIGNATURE))
    return evolve(turn, parts=[*turn.parts[:place], excused, *turn.parts[place + 1 :]])
