"""The neutral conversation to requests for interactions: turns to steps, options, tools and the choice among them.

What a request of another dialect can't say here is left out before it is written (``translation/lowering``): ``capabilities``
says what the servers take, and the passes below are the dialect's own. A user's turn is a ``user_input``, with a step for
each result in front. What the model said is a ``model_output`` for each label of its texts and media. All messages of the
system are one ``system_instruction``.

Thoughts, and calls, go back with Google's signature; what other vendors signed is left out, and so are their models'
thoughts. Arguments are objects, and so is a result that came as one. A request of another dialect says ``store: false``,
since Google keeps each interaction otherwise, and its clients send the whole conversation each time.

Source: dialects.md §5.5, §7.3, §7.4; seeds.md S2; the types of google-genai 3.4.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final, TypeAlias

import orjson
from attrs import evolve

from streamkit.conversation.messages import (
    Media,
    Options,
    OutputFormat,
    Part,
    Reasoning,
    Request,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    Turn,
)
from streamkit.dialects.bodies import google_requests as google
from streamkit.dialects.bodies.json_members import PLAIN_TEXT, add_missing, plain_or_list, without_none
from streamkit.dialects.bodies.media_types import media_type_of
from streamkit.dialects.gemini_interactions import wire
from streamkit.dialects.lowering import Capabilities, Lowering, Place, of_parts, of_turns, results_named, told_by
from streamkit.dialects.profiles import Target
from streamkit.dialects.vocabulary.google import LEVELS, SERVICE_TIERS, is_own_uri
from streamkit.dialects.vocabulary.google import VENDOR as SIGNER
from streamkit.dialects.vocabulary.models import UNKNOWN
from streamkit.dialects.vocabulary.reasoning_effort import effort_of
from streamkit.events import Aside
from streamkit.report import StreamReport

Step: TypeAlias = dict[str, Any]


# -- what the servers take ---------------------------------------------------------------------------------------------


def fit_media(media: Media, place: Place, to: Lowering) -> Media | None:
    """Media of a type that is taken, in the request or at an address, but none of the system's."""
    uri = media.url or media.file_id or ""
    kind = media.media_type if media.data is None else media_type_of(media)
    there = (
        media.data is not None or is_own_uri(uri) or uri.startswith("http")
    )  # another provider's ids mean nothing here
    if place != "system":
        if media.detail not in {None, "auto"}:
            to.lose("metadata", "detail")
        if media.name is not None:
            to.lose("metadata", "name")
        if there and (kind is None or kind in wire.MEDIA_TYPES[media.kind]):
            return evolve(media, media_type=kind, name=None)
        if media.cache is not None:
            to.lose("cache_mark", media.cache)
    to.lose("media", media.media_type or media.kind)
    return None


@of_turns
def steps_apart(turn: Turn, _to: Lowering) -> Turn:
    """Texts that follow one another as one step, and each thought as its own.

    The signature of a call goes to a thought in front of it: the client's types have no place for one in a call.
    """
    made: list[Part] = []
    for number, part in enumerate(turn.parts):
        match part:
            case Text() | Media():
                made.append(evolve(part, block=0))
            case Reasoning():
                made.append(evolve(part, block=number))
            case ToolCall(signature=signature) if signature is not None:
                made += [Reasoning("", signature=signature, block=number), evolve(part, signature=None)]
            case _:
                made.append(part)
    return evolve(turn, parts=made)


def instruction_joined(request: Request, _to: Lowering) -> None:
    """The system's words as one text where nobody else speaks."""
    if any(turn.role != "system" for turn in request.turns):
        return
    text = _instruction(request)
    request.turns = [Turn("system", [Text(text)])] if text else []


def not_stored(request: Request, _to: Lowering) -> None:
    """The request with the word that Google shall not keep it."""
    request.exchange = {"store": False}


def thinking_fits(request: Request, to: Lowering) -> None:
    """How much to think, as a level."""
    thinking = request.options.thinking
    if thinking is None:
        return
    level = thinking.effort
    if level == "none" or (thinking.enabled is False and level is None):  # no word says that
        to.lose("parameter", "thinking.enabled")
        level = next(iter(to.takes.model.efforts), None)
    elif thinking.budget_tokens is not None:
        to.lose("parameter", "thinking.budget_tokens")
        level = effort_of(thinking.budget_tokens) if level is None else level
    fits = Thinking(to.fit_effort(level), summary=thinking.summary)
    request.options.thinking = fits


def summary_fits(request: Request, to: Lowering) -> None:
    """Whether thoughts are shown, and not how."""
    thinking = request.options.thinking
    if thinking is None or thinking.summary in {None, "none", "auto"}:
        return
    to.lose("parameter", "thinking.summary")
    request.options.thinking = evolve(thinking, summary="auto")


FOREIGN: Final = Capabilities(
    dialect="gemini-interactions",
    vendor=wire.VENDOR,
    title="Gemini Interactions",
    model=evolve(UNKNOWN, form_with_tools=False, media_in_results=False),
    names=wire.TOOLS.names,
    signs_reasoning=SIGNER,
    takes_opaque=lambda _blob: False,
    signs_calls=SIGNER,
    arguments="object",
    media=fit_media,
    system="front",
    results="anywhere",
    needs_user="input",
    needs_word="step",
    some_tools=True,
    choice_extras="tool_choice",
    options=frozenset({*wire.OPTIONS, "thinking", "output", "service_tier"}),
    most_stops=5,
    service_tiers=frozenset(SERVICE_TIERS),
    first=(google.schemas_anew, results_named, partial(google.media_behind_results, kinds=True)),
    said=(of_parts(google.telling_text), steps_apart, instruction_joined),
    last=(
        partial(google.choice_fits, validated=wire.VALIDATED),
        thinking_fits,
        summary_fits,
        google.form_counted,
        google.tier_named,
        not_stored,
    ),
)
#: Of requests of the dialect itself.
OWN: Final = evolve(
    FOREIGN,
    model=evolve(UNKNOWN, efforts=tuple(LEVELS)),
    names=None,
    unsigned_reasoning=True,
    empty_turns=True,
    media=google.own_media,
    service_tiers=None,
    first=(results_named,),
    said=(),
    last=(partial(google.choice_fits, validated=wire.VALIDATED), thinking_fits, google.form_counted),
)
capabilities: Final = told_by(OWN, FOREIGN, frozenset(LEVELS))


# -- writing -----------------------------------------------------------------------------------------------------------


def write(request: Request, _target: Target, _report: StreamReport) -> dict[str, Any]:
    """The body of a request that has nothing but what the dialect can say, as JSON values."""
    steps = [step for turn in request.turns if turn.role != "system" for step in _steps(turn)]
    body = without_none(
        model=request.model,
        input=_short(steps) if steps else None,
        system_instruction=_instruction(request) or None,
        tools=[*map(_tool, request.tools)] or None,
        generation_config=_generation_config(request.options, request.tool_choice) or None,
        service_tier=request.options.service_tier,
        store=request.exchange.get("store"),
        stream=request.stream,
        **_format(request.options.output),
    )
    return add_missing(body, request.extras)


def _instruction(request: Request) -> str:
    parts = [part for turn in request.turns if turn.role == "system" for part in turn.parts]
    return "\n\n".join(part.text for part in parts if isinstance(part, Text))


def _steps(turn: Turn) -> list[Step]:
    return _of_user(turn) if turn.role == "user" else _of_model(turn)


def _of_user(turn: Turn) -> list[Step]:
    """The results of a turn, each a step, and what the user says."""
    steps: list[Step] = []
    content: list[dict[str, Any]] = []
    for part in turn.parts:
        if isinstance(part, ToolResult):
            steps.append(_result(part))
        elif isinstance(part, Aside) and part.type == wire.STEP:
            steps.append(dict(part.raw))
        else:
            content += _contents([part])
    if content or turn.extras or not steps:
        steps.append(add_missing(without_none(type=wire.INPUT, content=content or None), turn.extras))
    return steps


def _of_model(turn: Turn) -> list[Step]:
    """What the model said, thought and called, in its order."""
    steps: list[Step] = []
    last: tuple[str, int] | None = None  # the kind and the label of the step that may go on
    for part in turn.parts:
        kind = _kind_of(part)
        label = (kind, getattr(part, "block", 0))
        match part:
            case Aside() if part.type == wire.OF_STEP and steps:
                add_missing(steps[-1], part.raw)
                continue
            case ToolCall():
                steps.append(_call(part))
            case _ if kind == wire.TEXT:
                if label != last:
                    steps.append({"type": wire.TEXT})
                if contents := _contents([part]):
                    steps[-1].setdefault("content", []).extend(contents)
            case Reasoning() | Aside() if kind == wire.THOUGHT:
                _think(part, steps, goes_on=label == last)
            case Aside():
                steps.append(dict(part.raw))
        last = label if kind else None
    return steps


def _kind_of(part: Part) -> str:
    """The type of the step that a part of the model's belongs into; "" for a step of its own."""
    match part:
        case Text() | Media():
            return wire.TEXT
        case Reasoning():
            return wire.THOUGHT
        case Aside() if part.type == wire.THOUGHT_DELTA:
            return wire.THOUGHT
        case Aside() if part.type not in {wire.STEP, wire.OF_STEP}:
            return wire.TEXT
    return ""


def _think(part: Reasoning | Aside, steps: list[Step], *, goes_on: bool) -> None:
    """Write a piece of a thought into the step that goes on, or a new one."""
    summary, signature = None, None
    if isinstance(part, Aside):
        summary = [dict(part.raw)]
    else:
        signature = part.signature and part.signature.blob
        if part.text or part.extras:
            summary = [add_missing({"type": "text", "text": part.text}, part.extras)]
    written = without_none(type=wire.THOUGHT, summary=summary, signature=signature)
    if goes_on and summary is not None:
        steps[-1].setdefault("summary", []).extend(summary)
        add_missing(steps[-1], written)
    else:
        steps.append(written)


def _contents(parts: Sequence[Part]) -> list[dict[str, Any]]:
    """The contents, without texts that say nothing."""
    contents: list[dict[str, Any]] = []
    for part in parts:
        match part:
            case Text() if part.text or part.extras:
                contents.append(add_missing({"type": "text", "text": part.text}, part.extras))
            case Media(native=native) if native is not None and native.vendor == wire.VENDOR:
                contents.append(dict(native.raw))
            case Media():
                uri = None if part.data is not None else part.url or part.file_id
                written = without_none(
                    type=wire.CONTENTS[part.kind], mime_type=part.media_type, data=part.data, uri=uri
                )
                contents.append(add_missing(written, part.extras))
            case Aside():
                contents.append(dict(part.raw))
    return contents


def _call(call: ToolCall) -> Step:
    written = without_none(
        type=wire.CALL,
        id=call.id,
        name=call.name,
        arguments=orjson.Fragment(call.arguments),
        signature=call.signature and call.signature.blob,
    )
    return add_missing(written, call.extras)


def _result(result: ToolResult) -> Step:
    written = without_none(
        type=wire.RESULT,
        call_id=result.call_id,
        name=result.name,
        result=_said(result),
        is_error=result.is_error or None,
    )
    return add_missing(written, result.extras)


def _said(result: ToolResult) -> Any:
    """What a tool said: an object as it came, text, or a list of contents."""
    only = result.parts[0] if len(result.parts) == 1 else None
    if result.native == wire.OBJECT and isinstance(only, Text):
        return orjson.Fragment(only.text)
    return plain_or_list(_contents(result.parts))


def _short(steps: list[Step]) -> str | list[Step]:
    """An input of one plain text as that text."""
    if len(steps) == 1 and steps[0].keys() == {"type", "content"} and steps[0]["type"] == wire.INPUT:
        content = steps[0]["content"]
        if len(content) == 1 and content[0].keys() == PLAIN_TEXT:
            return str(content[0]["text"])
    return steps


# -- options and tools -------------------------------------------------------------------------------------------------


def _generation_config(options: Options, choice: ToolChoice | None) -> dict[str, Any]:
    said = {name: getattr(options, name) for name in wire.OPTIONS}
    config = {wire.OPTIONS[name]: value for name, value in said.items() if value is not None and value != ()}
    thinking = options.thinking or Thinking()
    return config | without_none(
        thinking_level=thinking.effort, thinking_summaries=thinking.summary, tool_choice=_choice(choice)
    )


def _choice(choice: ToolChoice | None) -> Any:
    if choice is None:
        return None
    left = dict(choice.extras or {})
    mode = left.pop("mode", wire.MODES[choice.mode])
    if not choice.names:
        return mode
    return add_missing({"allowed_tools": {"mode": mode, "tools": [*choice.names]}}, left)


def _format(output: OutputFormat | None) -> dict[str, Any]:
    if output is None:
        return {}
    if output.kind != "schema":
        mime_type = wire.JSON if output.kind == "json" else wire.PLAIN
        return {"response_format": {"type": "text", "mime_type": mime_type}}
    if output.native_schema is not None and output.native_schema == output.schema:
        return {"response_format": output.native_schema, "response_mime_type": wire.JSON}
    return {"response_format": {"type": "text", "mime_type": wire.JSON, "schema": output.schema}}


def _tool(tool: Tool) -> dict[str, Any]:
    if tool.kind == "server":
        return dict(tool.raw or {})
    function = without_none(type="function", name=tool.name, description=tool.description, parameters=tool.parameters)
    return add_missing(function, tool.extras)
