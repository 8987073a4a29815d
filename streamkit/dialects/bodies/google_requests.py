"""The parts of requests that both Google APIs accept alike: results, tools, the tool choice, and the output format.

Source: dialects.md §5.3, §5.5, §7.3, §7.4 (requests of both APIs).
"""

from __future__ import annotations

from attrs import evolve

from streamkit.conversation.messages import Media, Part, Request, Text, ToolChoice, ToolResult, Turn
from streamkit.dialects.lowering import Lowering, Place, has_part, of_turns
from streamkit.dialects.vocabulary.google import SERVICE_TIERS


def own_media(media: Media, _place: Place, to: Lowering) -> Media | None:
    """Return media with bytes, a URL or a file id, from this dialect; otherwise count a loss and return None."""
    if media.data is not None or media.url or media.file_id:
        return media
    to.lose("media", media.media_type or media.kind)
    return None


def media_behind_results(request: Request, to: Lowering, *, kinds: bool = False) -> None:
    """Move media from tool results to after the turn's last result, for a model that accepts no media in results.

    With ``kinds``, the report names the kind of each moved media.
    """

    def apart(turn: Turn, to: Lowering) -> Turn:
        made, moved, last = list[Part](), list[Part](), 0
        for part in turn.parts:
            made.append(part)
            if isinstance(part, ToolResult):
                media = [inner for inner in part.parts if isinstance(inner, Media)]
                for each in media:
                    to.lose("media", f"{f'{each.kind}, ' if kinds else ''}moved after the result {part.call_id}")
                made[-1] = evolve(part, parts=[inner for inner in part.parts if not isinstance(inner, Media)])
                moved += media
                last = len(made)
        return evolve(turn, parts=[*made[:last], *moved, *made[last:]])

    if not to.takes.model.media_in_results and has_part(request.turns, ToolResult):
        of_turns(apart)(request, to)


def telling_text(part: Part, _place: Place, to: Lowering) -> Part | None:
    """Drop an empty text part, unless it has a signature or extras."""
    if not isinstance(part, Text) or part.text or part.signature is not None or part.extras:
        return part
    to.report.repair("turn_empty")
    return None


def schemas_anew(request: Request, _to: Lowering) -> None:
    """Drop schemas in the older form, which only the other Google API has, and empty schemas of functions."""
    output = request.options.output
    if output is not None:
        request.options.output = evolve(output, native_schema=None)
    request.tools = [
        tool if tool.kind == "server" else evolve(tool, parameters=tool.parameters or None, native_parameters=None)
        for tool in request.tools
    ]


def choice_fits(request: Request, to: Lowering, *, validated: str, names: bool = False) -> None:
    """Adapt the tool choice: drop the setting for parallel calls, and the whole choice if there are no functions.

    If the arguments of a tool must match its schema, the mode ``validated`` requests this for all tools. With ``names``, a
    choice that limits the model to some tools without requiring a call is written with that mode, too.
    """
    choice = request.tool_choice
    functions = [tool for tool in request.tools if tool.kind != "server"]
    strict = any(tool.strict for tool in functions)
    if choice is None:
        if strict:
            request.tool_choice = ToolChoice(extras={"mode": validated})
        return
    if choice.parallel is False:
        to.lose("tool_choice", "parallel")
    if not functions and not to.own:  # the server refuses a choice without functions
        if choice.mode == "required":
            to.lose("tool_choice", "required")
        request.tool_choice = None
        return
    if choice.mode == "auto" and not to.own and (strict or (names and choice.names)):
        choice = evolve(choice, extras={"mode": validated})
    request.tool_choice = choice


def form_counted(request: Request, to: Lowering) -> None:
    """Count the members of the output format that are not written; the output always matches its schema."""
    output = request.options.output
    if output is not None and output.kind == "schema":
        to.lose_members(output, "output", "name", "description")
        if output.strict is False:
            to.lose("parameter", "output.strict")


def tier_named(request: Request, _to: Lowering) -> None:
    """Replace the neutral name of the service tier with Google's name."""
    tier = request.options.service_tier
    if tier is not None:
        request.options.service_tier = SERVICE_TIERS[tier]
