"""Passes over the parts of a conversation: change or drop what the dialect can't express. See ``lowering/__init__.py``.

Each pass takes one part and returns it as the dialect takes it, or None to drop it.

Source: dialects.md §7.3, §7.4 (tools and content of each dialect); seeds.md S2, S4.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, TypeVar, cast

from attrs import evolve

from streamkit.conversation.messages import (
    Media,
    Part,
    Reasoning,
    RedactedReasoning,
    Refusal,
    Text,
    ToolCall,
    ToolResult,
)
from streamkit.dialects.lowering import ANYBODY, Capabilities, Lowering, Place
from streamkit.dialects.members.fields import whole_characters
from streamkit.dialects.members.values import has_value
from streamkit.dialects.streams.event_encoder import wrapped_arguments, wrapped_input
from streamkit.events import Aside, Opaque
from streamkit.text.identifiers import portable_id, portable_name
from streamkit.tool_calls.check import check_arguments

V = TypeVar("V")
#: Text before the output of a failed tool, for dialects without a member that marks an error.
ERROR: Final = "Error: "
#: An escape that may be one half of a surrogate pair.
_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]")


def refusal_as_text(part: Part, _place: Place, to: Lowering) -> Part:
    """Turn a refusal into a text, if the dialect has no refusals; this is a loss."""
    if not isinstance(part, Refusal) or to.takes.refusals:
        return part
    to.lose("refusal_as_text")
    return Text(part.text, extras=part.extras, block=part.block)


def media(part: Part, place: Place, to: Lowering) -> Part | None:
    """Return media as the servers take them; None to drop them."""
    fit = to.takes.media
    return fit(part, place, to) if fit is not None and isinstance(part, Media) else part


def aside(part: Part, place: Place, to: Lowering) -> Part | None:
    """Drop an aside (a part that only one vendor knows), unless the dialect is that vendor's and takes it here."""
    if not isinstance(part, Aside):
        return part
    if to.own and part.vendor == to.takes.vendor and (to.takes.asides is None or to.takes.asides(part, place)):
        return part
    to.lose(part.kind, part.type)
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
    said = list(part.parts)
    first = next((number for number, inner in enumerate(said) if isinstance(inner, Text)), None)
    if first is None:
        said.insert(0, Text(ERROR))
    else:
        text = cast("Text", said[first])
        said[first] = evolve(text, text=f"{ERROR}{text.text}")
    return evolve(part, parts=said, is_error=False)


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
    if isinstance(part, Aside):
        return part
    fit = to.takes.part_extras
    if fit is None or part.extras is None:
        return without_extras(part, to)
    kept, rest = fit(part, part.extras)
    return evolve(without_extras(evolve(part, extras=rest), to), extras=kept or None)


def without_extras(value: V, to: Lowering, kind: str = "metadata") -> V:
    """Return a part, turn, tool or choice without ``extras``; each member is a loss of that ``kind``."""
    found = getattr(value, "extras", None)
    if found is None:
        return value
    for name, said in found.items():
        if has_value(said):
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
        return evolve(part, kind="function", arguments=_as_text(wrapped_input(part.arguments)))
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
        return _as_text(wrapped_arguments(call.arguments))
    if not _HALF.search(call.arguments):
        return call.arguments
    given = call.arguments.encode()
    whole = whole_characters(given)
    if whole != given:
        to.report.repair("lone_surrogate")
    return whole.decode()


def _as_text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode()


def cache_mark(part: Part, _place: Place, to: Lowering) -> Part:
    """Keep a part's cache mark if the dialect has a place for it. Count a loss if the mark is dropped or means less there."""
    made: Part = part if getattr(part, "cache", None) is None else with_mark(part, to)
    return made


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
    if isinstance(part, ToolCall | ToolResult) and part.item is not None:
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
    return isinstance(part, Text | Refusal) and not part.text.strip() and getattr(part, "signature", None) is None


def without_blank_texts(parts: Sequence[Part], to: Lowering) -> list[Part]:
    """Drop blank texts. If ``blank_texts`` is ``some``, keep white space next to a part that is not blank."""
    some = to.takes.blank_texts == "some"
    alone, kept = all(map(is_blank, parts)), list[Part]()
    for part in parts:
        if isinstance(part, ToolResult) and any(map(is_blank, part.parts)):
            inner = without_blank_texts(cast("list[Part]", part.parts), to)
            kept.append(evolve(part, parts=cast("Any", inner)))
        elif not isinstance(part, Text | Refusal) or _stays(part, beside=some and not alone):
            kept.append(part)
        else:
            if (mark := getattr(part, "cache", None)) is not None:
                to.lose("cache_mark", mark)
            to.report.repair("turn_empty")
    return kept


def _stays(part: Text | Refusal, *, beside: bool) -> bool:
    """Return whether a text is kept: it is not blank, or it is white space and may stay next to another part (``beside``)."""
    return bool(part.text.strip() or getattr(part, "item", None) or (beside and part.text))
