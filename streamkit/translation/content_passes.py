"""Passes over the parts and turns of a conversation: change what the dialect cannot express, and put turns in the order that
its servers demand. ``lowering.py`` lists the passes in order.

A pass over parts takes one part and returns it as the dialect accepts it, or None to drop it. Blocks that only one dialect
has and that contain text become plain text for other dialects, or the model would answer as if nothing had been said:
Anthropic's ``search_result``, ``document`` in text blocks and ``tool_reference``, Bedrock's ``searchResult``, ``document`` in
blocks and ``guardContent``, and plain text files.

Source: dialects.md §3.2, §5.3, §6.1, §7.3, §7.4 (content of each dialect, and the orders that servers demand); seeds.md S2,
S4; Anthropic, "Search results", "Tool search tool"; Bedrock, "GuardrailConverseContentBlock".
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, takewhile
from operator import attrgetter
from typing import Any, Final, TypeVar, cast

from attrs import evolve

from streamkit.conversation.media import decoded_text, image_type, type_by_beginning
from streamkit.conversation.messages import (
    Media,
    Part,
    Reasoning,
    RedactedReasoning,
    Refusal,
    Request,
    Text,
    ToolCall,
    ToolResult,
    Turn,
)
from streamkit.dialects.lowering import (
    ANYBODY,
    Capabilities,
    Lowering,
    Place,
    each_part,
    has_part,
    leading_of,
    of_turns,
    when,
)
from streamkit.dialects.members.fields import CONTENT, whole_characters
from streamkit.dialects.members.values import has_value, name_of, text_of
from streamkit.dialects.streams.event_encoder import wrapped_arguments, wrapped_input
from streamkit.dialects.vocabulary.models import NO_SIGNATURE
from streamkit.errors import BadRequest
from streamkit.events import Aside, Opaque
from streamkit.text.identifiers import portable_id, portable_name
from streamkit.text.quoting import quoted
from streamkit.tool_calls.check import check_arguments

P = TypeVar("P", bound=Part)
V = TypeVar("V")
#: Text before the output of a failed tool, for dialects without a member that marks an error.
ERROR: Final = "Error: "
#: The text in place of a document that may be cited and that the dialect does not accept.
UNSENT: Final = b"(This document could not be sent.)"
_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]")  #: an escape that may be one half of a surrogate pair
#: Classes of parts that may be in a form that only one dialect knows, or that may contain a part in such a form.
FORMED: Final = frozenset({Aside, Media, ToolResult})
_role, _extras = attrgetter("role"), attrgetter("extras")
#: The user turn before an assistant that speaks first, for a dialect in which the user must. It can't be empty.
OPENING: Final = "(The assistant speaks first.)"
#: The user turn after an assistant's text, for a model that does not continue that text.
CLOSING: Final = "(Go on from where your last message ends, without repeating it.)"


# -- parts -------------------------------------------------------------------------------------------------------------


def refusal_as_text(part: Part, _place: Place, to: Lowering) -> Part:
    """Turn a refusal into a text, if the dialect has no refusals; this is a loss."""
    if not isinstance(part, Refusal) or to.takes.refusals:
        return part
    to.lose("refusal_as_text")
    return Text(part.text, extras=part.extras, block=part.block)


def media(part: Part, place: Place, to: Lowering) -> Part | None:
    """Return media as the servers take them; None to drop them."""
    fit = to.takes.media
    if fit is None or not isinstance(part, Media):
        return part
    fitting = fit(part, place, to)
    if fitting is None and to.takes.cites and to.takes.text_files and has_value((part.extras or {}).get("citations")):
        # citations name documents by their numbers, so a dropped document would shift the numbers after it
        return evolve(part, media_type="text/plain", data=base64.b64encode(UNSENT).decode(), url=None, file_id=None)
    return fitting


def aside(part: Part, place: Place, to: Lowering) -> Part | None:
    """Drop an aside (a part that only one vendor knows), unless the dialect is that vendor's and takes it here."""
    if not isinstance(part, Aside):
        return part
    if part.vendor == to.takes.vendor:
        # a request of another dialect has asides of this vendor only where ``tool_searches.py`` made them
        is_ours = to.own or to.finder is not None
        if is_ours and (to.takes.asides is None or to.takes.asides(part, place)):
            return part
        if to.takes.cites and part.kind == "citation":  # of a document: ``documents_cited`` has translated it
            return part
    to.lose(part.kind, name_of(part))
    return None


def signature(part: Part, _place: Place, to: Lowering) -> Part | None:
    """Drop signatures that can't go back to their vendor, and reasoning that the servers refuse."""
    takes = to.takes
    match part:
        case RedactedReasoning(opaque=opaque) if not _goes_back(opaque, takes):
            to.lose("reasoning_opaque", opaque.vendor)
            return None
        case Reasoning(signature=None) if takes.unsigned_reasoning:
            return part
        case Reasoning() if part.signature is None or not _is_of(part.signature, takes.signs_reasoning):
            return _unsigned(part, to)
        case Text(signature=Opaque() as signed) if not _is_of(signed, takes.signs_texts):
            to.lose("reasoning_signature", signed.vendor)
            # an empty text existed only to carry the signature
            return evolve(part, signature=None) if part.text.strip() or takes.blank_texts == "all" else None
        case ToolCall(signature=Opaque() as signed) if not _is_of(signed, takes.signs_calls):
            to.lose("reasoning_signature", signed.vendor)
            return evolve(part, signature=None)
    return part


def _goes_back(opaque: Opaque, takes: Capabilities) -> bool:
    if not _is_of(opaque, takes.signs_reasoning):
        return opaque.vendor in takes.opaque_vendors
    return takes.takes_opaque is None or takes.takes_opaque(opaque.blob)


def _is_of(opaque: Opaque, vendor: str | None) -> bool:
    return vendor in {opaque.vendor, ANYBODY}


def _unsigned(part: Reasoning, to: Lowering) -> Reasoning | None:
    """Return reasoning without another vendor's signature; None if the dialect refuses reasoning without a signature."""
    if part.signature is not None:
        to.lose("reasoning_signature", part.signature.vendor)
    if part.signature is not None and to.takes.strips_signatures:
        return evolve(part, signature=None)
    if part.text:
        to.lose("reasoning_history")
    return None


def error_in_words(part: Part, _place: Place, to: Lowering) -> Part:
    """Mark a failed tool's result with ``ERROR`` in its text, if the dialect has no member for it; this is a loss."""
    if not isinstance(part, ToolResult) or not part.is_error or part.item is not None or to.takes.result_errors:
        return part
    to.lose("result_error", part.call_id)
    parts = list(part.parts)
    for number, inner in enumerate(parts):
        if isinstance(inner, Text):
            parts[number] = evolve(inner, text=f"{ERROR}{inner.text}")
            break
    else:
        parts.insert(0, Text(ERROR))
    return evolve(part, parts=parts, is_error=False)


def native_form(part: Part, _place: Place, _to: Lowering) -> Part:
    """Return a part without the native form that it had in another dialect."""
    match part:
        case Media() if part.native is not None:
            return evolve(part, native=None)
        case ToolCall() if part.item is not None or part.qualified is not None:
            return evolve(part, item=None, qualified=None)
        case ToolResult() if part.item is not None or part.native is not None or part.native_id is not None:
            return evolve(part, item=None, native=None, native_id=None)
    return part


def extras(part: Part, _place: Place, to: Lowering) -> Part:
    """Drop the members of a part that only another dialect knows; each is a loss."""
    if isinstance(part, Aside) or part.extras is None:
        return part
    fit = to.takes.part_extras
    if fit is None:
        return without_extras(part, to)
    kept, rest = fit(part, part.extras)
    return evolve(without_extras(evolve(part, extras=rest), to), extras=kept or None)


def without_extras(value: V, to: Lowering, kind: str = "metadata") -> V:
    """Return a part, turn, tool or choice without ``extras``; each member is a loss of that ``kind``."""
    found = getattr(value, "extras", None)
    if found is None:
        return value
    for name, member in found.items():
        if has_value(member):
            to.lose(kind, name)
    return cast("V", evolve(cast("Any", value), extras=None))


def arguments(part: Part, _place: Place, to: Lowering) -> Part:
    """Make the arguments of a call the text of a JSON object, if the dialect carries objects; wrap a custom call's text."""
    if not isinstance(part, ToolCall):
        return part
    if part.kind == "custom":
        if to.takes.custom_tools or to.takes.custom_calls:
            return part
        to.lose("custom_tool_wrapped", part.name)
        return evolve(part, kind="function", arguments=wrapped_input(part.arguments))
    text = part.arguments if to.takes.arguments == "text" else _object_text(part, to)
    return part if text is part.arguments else evolve(part, arguments=text)


def _object_text(call: ToolCall, to: Lowering) -> str:
    """Return arguments as the text of an object. Half a surrogate pair, an escape illegal in a body, becomes U+FFFD."""
    verdict = check_arguments(call.arguments).kind
    if verdict == "empty":
        return "{}"
    if verdict != "complete" and to.takes.arguments == "any":
        return call.arguments
    if verdict != "complete":
        to.lose("arguments_wrapped", call.name)
        return wrapped_arguments(call.arguments).decode()
    if not _HALF.search(call.arguments):
        return call.arguments
    given = call.arguments.encode()
    whole = whole_characters(given)
    if whole != given:
        to.report.repair("lone_surrogate")
    return whole.decode()


def cache_mark(part: Part, _place: Place, to: Lowering) -> Part:
    """Keep a part's cache mark if the dialect has a place for it. Count a loss if the mark is dropped or means less there."""
    kept: Part = with_mark(part, to)
    return kept


def with_mark(value: Any, to: Lowering, what: str | None = None) -> Any:
    """Return a part or tool, with its cache mark if the dialect has a place for it; ``what`` names it in the report."""
    mark = value.cache
    if mark is None:
        return value
    written = isinstance(value, to.takes.marked)
    if not (written and to.source in to.takes.same_marks):
        to.lose("cache_mark", what or mark)
    return value if written else evolve(value, cache=None)


def portable_words(part: Part, _place: Place, to: Lowering) -> Part:
    """Rewrite the ids of calls and the names of tools to what the dialect takes, in the same way everywhere."""
    if isinstance(part, (ToolCall, ToolResult)) and part.item is not None:
        return part
    if isinstance(part, ToolCall):
        made = portable_call_id(part.id, to), portable_tool_name(part.name, to)
        return part if made == (part.id, part.name) else evolve(part, id=made[0], name=made[1])
    if isinstance(part, ToolResult):
        call_id, name = portable_call_id(part.call_id, to), part.name and portable_tool_name(part.name, to)
        return part if (call_id, name) == (part.call_id, part.name) else evolve(part, call_id=call_id, name=name)
    return part


def portable_call_id(call_id: str, to: Lowering) -> str:
    """Return a call's id as the servers take it."""
    ids = to.takes.ids
    return call_id if ids is None else to.rewrite(call_id, portable_id(call_id, ids), "id_rewritten")


def portable_tool_name(name: str, to: Lowering) -> str:
    """Return a tool's name as the servers take it."""
    names = to.takes.names
    return name if names is None else to.rewrite(name, portable_name(name, names), "name_rewritten")


def is_blank(part: Part) -> bool:
    """Return whether a part is an unsigned text that is empty or only white space."""
    return isinstance(part, (Text, Refusal)) and not part.text.strip() and getattr(part, "signature", None) is None


def without_blank_texts(parts: Sequence[Part], to: Lowering) -> list[Part]:
    """Drop blank texts. If ``blank_texts`` is ``some``, keep white space next to a part that is not blank."""
    keeps_space = to.takes.blank_texts == "some" and not all(map(is_blank, parts))
    kept: list[Part] = []
    for part in parts:
        if isinstance(part, ToolResult) and any(map(is_blank, part.parts)):
            inner = without_blank_texts(cast("list[Part]", part.parts), to)
            kept.append(evolve(part, parts=cast("Any", inner)))
        elif (
            not isinstance(part, (Text, Refusal))
            or part.text.strip()
            or getattr(part, "item", None)
            or (part.text and keeps_space)
        ):
            kept.append(part)
        else:
            _drop_blank(part, to)
    return kept


def _drop_blank(part: Part, to: Lowering) -> None:
    """Count a blank text as dropped, and its cache mark as lost."""
    if (mark := getattr(part, "cache", None)) is not None:
        to.lose("cache_mark", mark)
    to.report.repair("turn_empty")


# -- blocks and files as text ------------------------------------------------------------------------------------------


def text_of_block(aside: Aside) -> Text | None:
    """Return the text in a block; None for other blocks and for a block without text."""
    kind, block = aside.type.removeprefix(CONTENT), aside.raw
    if kind == aside.type or not isinstance(block, dict):
        return None
    match kind:
        case "searchResult" | "guardContent" | "document" if isinstance(block.get(kind), dict):
            texts = list(_in_member(kind, block[kind]))
        case "search_result":
            heads = [text_of(block.get("title")), text_of(block.get("source"))]
            texts = ["\n".join(filter(None, heads)), *_texts(block.get("content"))]
        case "document":
            source = block.get("source")
            inside = source.get("content") if isinstance(source, dict) else None
            texts = [text_of(block.get("title")) or "", *_texts(inside)]
        case "tool_reference":
            name = text_of(block.get("tool_name"))
            texts = [] if name is None else [f"Found the tool {name}."]
        case _:
            return None
    written = "\n\n".join(filter(None, texts))
    return Text(written, block=aside.block) if written else None


def _in_member(kind: str, block: Mapping[str, Any]) -> Iterator[str | None]:
    """Yield the texts of a Bedrock block, which are in a member with the name of its kind and have no type."""
    if kind == "guardContent":
        guarded = block.get("text")
        yield text_of(guarded.get("text")) if isinstance(guarded, dict) else None
        return
    source = block.get("source")
    yield "\n".join(filter(None, (text_of(block.get("title" if kind == "searchResult" else "name")), text_of(source))))
    holder = block if kind == "searchResult" else source
    inside = holder.get("content") if isinstance(holder, dict) else None
    for inner in inside if isinstance(inside, list) else ():
        yield text_of(inner.get("text")) if isinstance(inner, dict) else None


def text_of_file(media: Media) -> Text | None:
    """Return the name and the text of a plain text file as one text; None for any other file."""
    if media.kind != "file" or media.data is None or not (media.media_type or "").startswith("text/"):
        return None
    text = decoded_text(media.data)
    return None if text is None else Text(f"{media.name}\n\n{text}" if media.name else text, cache=media.cache)


def _texts(content: Any) -> Iterator[str]:
    """Yield the texts of content, which is a string or a list of blocks."""
    if isinstance(content, str):
        yield content
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == "text" and (text := text_of(block.get("text"))) is not None:
            yield text


# -- turns -------------------------------------------------------------------------------------------------------------


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
            raise BadRequest(part.place, f"{to.takes.dialect} cannot express a part of the unknown type {kind}")
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
        case Media(kind="image", media_type=str(declared)) if (kind := image_type(part)) != declared:
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
    words = any(map(_has_text, parts))
    kept: list[P] = []
    blank: list[P] = []
    for part in parts:
        (blank if is_blank(part) and not (words and cast("Text", part).text) else kept).append(part)
    if not kept and all_blank:
        return blank
    for part in blank:
        _drop_blank(part, to)
    return kept


def no_silent_turns(request: Request, to: Lowering) -> None:
    """Drop turns that would be no message: empty turns, and turns with nothing but asides.

    If only system turns would be left, no turn is dropped: the writer of the dialect then decides about the request.
    """
    silent: list[Turn] = []
    kept: list[Turn] = []
    for turn in request.turns:
        (silent if {Aside}.issuperset(map(type, turn.parts)) else kept).append(turn)
    if not silent or {"system"}.issuperset(map(_role, kept)):
        return
    for turn in silent:
        without_extras(turn, to)
        for part in turn.parts:
            if isinstance(part, Aside):
                to.lose(part.kind, name_of(part))
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
        if isinstance(part, ToolCall) and part.id in made:
            return evolve(part, id="")
        return evolve(part, call_id="") if isinstance(part, ToolResult) and part.call_id in made else part

    each_part(request, to, unmade)


@when(lambda takes: takes.blank_texts != "all")
def no_blank_texts(request: Request, to: Lowering) -> None:
    """Drop the blank texts that the server refuses."""
    request.turns = [
        evolve(turn, parts=without_blank_texts(turn.parts, to)) if _has_blank(turn) else turn for turn in request.turns
    ]


def _has_blank(turn: Turn) -> bool:
    parts = turn.parts
    return any(map(is_blank, parts)) or any(
        any(map(is_blank, part.parts)) for part in parts if isinstance(part, ToolResult)
    )


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
            f"{quoted(request.model or '')} does not continue an assistant message: the last message must be a user "
            "message; assistant_last = 'bridge' adds one",
        )
    to.report.repair("turn_added")
    request.turns = [*turns, Turn("user", [Text(CLOSING)])]


def _has_text(part: Part) -> bool:
    return isinstance(part, (Text, Refusal)) and bool(part.text.strip())


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
        raise BadRequest(member, f"{title} requires a user {word} in addition to the system's")
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
        reason = "the first message must be a user message; assistant_first = 'bridge' adds one"
        raise BadRequest(to.takes.needs_user, reason)
    to.report.repair("turn_added")
    request.turns = [*turns[:number], Turn("user", [Text(OPENING)]), *turns[number:]]


@when(lambda takes: takes.excuses_unsigned and takes.model.signatures)
@of_turns
def calls_excused(turn: Turn, to: Lowering) -> Turn:
    """Add Google's placeholder signature to a turn's first call, if it has none (another model's call, or a lost signature).

    Since Gemini 3 the server refuses a history in which the first call of a turn has no signature, and accepts this
    placeholder as one (ai.google.dev, "Thought signatures", questions).
    """
    for place, call in enumerate(turn.parts):
        if isinstance(call, ToolCall):
            if call.signature is not None:
                return turn
            to.report.repair("signature_excused")
            excused = evolve(call, signature=Opaque("google", NO_SIGNATURE))
            return evolve(turn, parts=[*turn.parts[:place], excused, *turn.parts[place + 1 :]])
    return turn
