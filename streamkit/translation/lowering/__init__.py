"""From what one dialect says in a request to what another can say.

A request is read into the neutral conversation and lowered for the dialect that it goes to: ``FOREIGN`` is what happens to it,
pass by pass, in order. Each pass is a function from a request to a request; what it leaves out is a counted loss, what it
mends a repair. What the servers take is data: ``Capabilities``, which each dialect has for a model and a provider. Within one
dialect only ``OWN`` runs: what a server refuses from its own clients, too.

Source: dialects.md §7.3, §7.4.
"""

from __future__ import annotations

from typing import Final

from streamkit.conversation.messages import Request
from streamkit.dialects.lowering import Capabilities, Lowering, PartPass, Pass, each_part
from streamkit.dialects.profiles import Target
from streamkit.report import StreamReport
from streamkit.translation.lowering import options, parts, tools, turns

KNOWN: Final[tuple[PartPass, ...]] = (
    parts.refusal_as_text,
    parts.media,
    parts.aside,
    parts.signature,
    parts.error_in_words,
)
WORDS: Final[tuple[PartPass, ...]] = (parts.extras, parts.arguments, parts.cache_mark, parts.portable_words)
OWN_PARTS: Final[tuple[PartPass, ...]] = (
    parts.refusal_as_text,
    parts.media,
    parts.aside,
    parts.signature,
    parts.error_in_words,
    parts.arguments,
    parts.portable_words,
)


def native_forms_lost(request: Request, to: Lowering) -> Request:
    """Parts without the forms that they had in another dialect."""
    return each_part(request, to, parts.native_form)


def known_parts(request: Request, to: Lowering) -> Request:
    """Parts that the dialect has, with signatures that go back to their vendors."""
    return each_part(request, to, *KNOWN)


def known_words(request: Request, to: Lowering) -> Request:
    """Parts without members, marks, ids and names that the servers don't take."""
    return each_part(request, to, *WORDS)


def own_parts(request: Request, to: Lowering) -> Request:
    """Parts of which the servers would refuse something from the dialect's own clients, too."""
    return each_part(request, to, *OWN_PARTS)


def first(request: Request, to: Lowering) -> Request:
    return _all(to.takes.first, request, to)


def said(request: Request, to: Lowering) -> Request:
    return _all(to.takes.said, request, to)


def arranged(request: Request, to: Lowering) -> Request:
    return _all(to.takes.arranged, request, to)


def last(request: Request, to: Lowering) -> Request:
    return _all(to.takes.last, request, to)


OWN: Final[tuple[Pass, ...]] = (
    options.one_choice,
    options.marks_counted,
    tools.only_callable_offered,
    tools.no_strict_tools,
    tools.no_custom_tools,
    first,
    tools.choice_narrowed,
    turns.turns_counted,
    own_parts,
    turns.no_made_ids,
    turns.no_blank_texts,
    said,
    turns.no_empty_turns,
    turns.neighbours_joined,
    turns.results_placed,
    arranged,
    tools.called_tools_defined,
    options.options_with_place,
    last,
)
FOREIGN: Final[tuple[Pass, ...]] = (
    tools.namespaces_lost,
    tools.search_found,
    # what is said
    turns.readable,
    turns.telling,
    turns.no_silent_turns,
    turns.answerable,
    turns.continuable,
    tools.choice_feasible,
    options.options_fit,
    options.form_or_tools,
    options.marks_counted,
    native_forms_lost,
    first,
    options.one_choice,
    tools.only_callable_offered,
    tools.no_strict_tools,
    tools.choice_narrowed,
    turns.turns_counted,
    known_parts,
    turns.no_blank_texts,
    turns.no_extras,
    turns.no_native_roles,
    known_words,
    said,
    # in which order
    turns.no_empty_answers,
    turns.no_empty_turns,
    turns.system_in_place,
    turns.user_speaks,
    turns.neighbours_joined,
    turns.results_placed,
    turns.user_speaks_first,
    arranged,
    # with which tools and options
    tools.tools_fit,
    tools.called_tools_defined,
    tools.schemas_with_properties,
    tools.no_choice_among_none,
    options.options_with_place,
    options.no_members_of_others,
    last,
)


def lower(request: Request, takes: Capabilities, target: Target, report: StreamReport) -> Request:
    """The request with nothing but what the dialect can say. Raises BadRequest for what it can't do without."""
    to = Lowering(takes, target, report, request.dialect)
    return _all(OWN if to.own else FOREIGN, request, to)


def _all(passes: tuple[Pass, ...], request: Request, to: Lowering) -> Request:
    for each in passes:
        request = each(request, to)
    return request
