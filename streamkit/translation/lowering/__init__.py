"""Lower a request: change what one dialect can say into what another dialect can say.

A request is read into the neutral conversation, then lowered for the dialect that it is written in. ``foreign`` lists the
passes for a request of another dialect, in order; each pass changes the request, counts what it leaves out as a loss and what
it repairs as a repair. ``Capabilities`` is data: what the servers of a dialect accept for one model and provider. A pass that
the capabilities make needless (``when``) is skipped. Within one dialect only the passes of ``own`` run: they remove what
servers refuse even from clients of their dialect.

Source: dialects.md §7.3, §7.4 (how each dialect writes tools and content).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Final

from attrs import fields

from streamkit.conversation.messages import (
    Media,
    Options,
    Reasoning,
    RedactedReasoning,
    Refusal,
    Request,
    Text,
    ToolCall,
    ToolResult,
)
from streamkit.dialects.lowering import Capabilities, Lowering, OfParts, Pass, TellsCapabilities, needed_by
from streamkit.dialects.profiles import Provider, Target
from streamkit.events import Aside
from streamkit.report import StreamReport
from streamkit.translation.lowering import options, parts, tools, turns

#: Getters of all members of a request and of its options, in the order of their constructors: they make the lowered copy.
_members, _options = (attrgetter(*(member.name for member in fields(kind))) for kind in (Request, Options))
#: Drop the native forms that parts had in another dialect.
NATIVE_FORMS_LOST: Final = OfParts(dict.fromkeys((Media, ToolCall, ToolResult), (parts.native_form,)))
#: Drop parts that the dialect lacks, and signatures that this dialect can't send back to their vendors.
KNOWN_PARTS: Final = OfParts(
    {
        **dict.fromkeys((Text, Reasoning, RedactedReasoning, ToolCall), (parts.signature,)),
        Refusal: (parts.refusal_as_text,),
        Media: (parts.media,),
        ToolResult: (parts.error_in_words,),
        Aside: (parts.aside,),
    }
)
#: Drop extra members and cache marks of parts, if the target's servers refuse them. Rewrite call ids and tool names to a
#: form that these servers accept.
KNOWN_WORDS: Final = OfParts(
    {
        **dict.fromkeys((Refusal, Reasoning, RedactedReasoning), (parts.extras,)),
        **dict.fromkeys((Text, Media), (parts.extras, parts.cache_mark)),
        ToolCall: (parts.extras, parts.arguments, parts.cache_mark, parts.portable_words),
        ToolResult: (parts.extras, parts.cache_mark, parts.portable_words),
    }
)
#: The steps of ``KNOWN_WORDS`` for a request of the same dialect: its servers refuse these forms from every client.
OWN_WORDS: Final = OfParts({ToolCall: (parts.arguments, parts.portable_words), ToolResult: (parts.portable_words,)})


def own(takes: Capabilities) -> Sequence[Pass]:
    """Return the passes for a request of the same dialect, in order."""
    return (
        options.one_choice,
        options.marks_counted,
        tools.only_callable_offered,
        tools.no_strict_tools,
        tools.no_custom_tools,
        *takes.first,
        tools.choice_narrowed,
        tools.parallel_counted,
        turns.turns_counted,
        KNOWN_PARTS,
        OWN_WORDS,
        turns.no_made_ids,
        turns.no_blank_texts,
        *takes.said,
        turns.no_empty_turns,
        turns.neighbours_joined,
        turns.results_placed,
        *takes.arranged,
        tools.called_tools_defined,
        options.options_with_place,
        *takes.last,
    )


def foreign(takes: Capabilities) -> Sequence[Pass]:
    """Return the passes for a request of another dialect, in order."""
    return (
        tools.namespaces_lost,
        tools.search_found,
        # content
        turns.readable,
        turns.telling,
        turns.no_silent_turns,
        turns.answerable,
        turns.continuable,
        tools.choice_feasible,
        options.options_fit,
        options.form_or_tools,
        options.marks_counted,
        NATIVE_FORMS_LOST,
        *takes.first,
        options.one_choice,
        tools.only_callable_offered,
        tools.no_strict_tools,
        tools.choice_narrowed,
        tools.parallel_counted,
        turns.turns_counted,
        turns.no_extras,
        turns.no_native_roles,
        KNOWN_PARTS,
        turns.no_blank_texts,
        KNOWN_WORDS,
        *takes.said,
        # order
        turns.no_empty_answers,
        turns.no_empty_turns,
        turns.system_in_place,
        turns.user_speaks,
        turns.neighbours_joined,
        turns.results_placed,
        turns.user_speaks_first,
        turns.calls_excused,
        *takes.arranged,
        # tools and options
        tools.tools_fit,
        tools.called_tools_defined,
        tools.schemas_with_properties,
        tools.no_choice_among_none,
        options.options_with_place,
        options.no_members_of_others,
        *takes.last,
    )


def lower(request: Request, tell: TellsCapabilities, target: Target, report: StreamReport) -> Request:
    """Return a copy of the request with only what the dialect can say. Raises BadRequest if something needed has no form."""
    takes, passes = _planned(tell, request.dialect, request.model, target.provider)
    to = Lowering(takes, target, report, request.dialect)
    lowered = Request(*_members(request))
    lowered.options = Options(*_options(request.options))
    for each in passes:
        each(lowered, to)
    return lowered


@lru_cache(1024)
def _planned(
    tell: TellsCapabilities, source: str, model: str | None, provider: Provider | None
) -> tuple[Capabilities, Sequence[Pass]]:
    """Return the capabilities for a ``source`` dialect, model and provider, and the passes that a request then needs."""
    takes = tell(source, model, provider)
    return takes, needed_by(takes, own(takes) if source == takes.dialect else foreign(takes))
