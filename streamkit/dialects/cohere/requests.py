"""Read and write Cohere's v2 chat requests.

The tool plan is read as a reasoning summary before the content, as in streams, and such a summary is written as the tool plan;
other reasoning is a ``thinking`` part. A document that a tool returned becomes text: its data if they are text, else their
JSON. Each turn is one message, but each tool result is a separate ``tool`` message.

The server refuses members that it does not know. A choice can't name a tool: instead, only that tool is offered and a call
required, which is a loss; in the same way, a choice of some tools offers only those. Streams end with token counts unasked.

Source: dialects.md §6.2, §7.3, §7.4; the request types of cohere 7.3.1, and the documentation in its client.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, cast

import orjson
from attrs import evolve

from streamkit.conversation.media import data_uri
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
from streamkit.dialects.cohere import wire
from streamkit.dialects.lowering import Capabilities, Lowering, Place, chosen_of, form_unnamed, of_parts, told_by
from streamkit.dialects.members.fields import (
    Fields,
    TurnReader,
    add_missing,
    content_of,
    function_call,
    function_tool,
    image_of,
    kind_of,
    members_of,
    plain_or_list,
    read_options,
    server_tool,
    unknown_part,
    without_none,
)
from streamkit.dialects.profiles import Target
from streamkit.dialects.streams import event_encoder
from streamkit.dialects.vocabulary.models import below, budget_of
from streamkit.events import Aside
from streamkit.report import StreamReport
from streamkit.text.one_string import one_string
from streamkit.text.quoting import quoted

THINKING: Final = {"enabled": True, "disabled": False}
OUTPUTS: Final = frozenset({"text", "json_object"})
CHOICES: Final[Mapping[str, Literal["required", "none"]]] = {"REQUIRED": "required", "NONE": "none"}


# -- reading -----------------------------------------------------------------------------------------------------------


class CohereRequestReader(TurnReader):
    """Reads one request."""

    dialect = "cohere"

    def options(self, fields: Fields) -> Options:
        return read_options(fields, wire.OPTIONS, thinking=self._thinking(fields), output=self._output(fields))

    def _thinking(self, fields: Fields) -> Thinking | None:
        thinking = fields.fields_of_type("thinking", THINKING)
        if thinking is None:
            return None
        return Thinking(enabled=THINKING[thinking.needed("type")], budget_tokens=thinking.integer("token_budget"))

    def _output(self, fields: Fields) -> OutputFormat | None:
        output = fields.fields_of_type("response_format", OUTPUTS)
        if output is None:
            return None
        if output.needed("type") == "text":
            return OutputFormat("text")
        schema = output.mapping("json_schema")
        return OutputFormat("json") if schema is None else OutputFormat("schema", schema)

    def tools(self, fields: Fields) -> list[Tool]:
        tools = super().tools(fields)
        if any(tool.kind == "function" for tool in tools):
            strict = fields.boolean("strict_tools")
            for tool in tools:
                tool.strict = strict
        return tools

    def tool(self, tool: Fields) -> Tool:
        kind = tool.string("type") or "function"
        if kind != "function":
            return server_tool(kind, tool, kind)
        return function_tool(tool.needed_fields("function"), tool)

    def tool_choice(self, fields: Fields) -> ToolChoice | None:
        choice = fields.string("tool_choice")
        if choice is None:
            return None
        if choice not in CHOICES:
            raise fields.wrong(f"must be 'REQUIRED' or 'NONE', not {quoted(choice)}", "tool_choice")
        return ToolChoice(CHOICES[choice])

    def content(self, message: Fields) -> list[Part]:
        return content_of(message, self._part)

    def _part(self, part: Fields) -> Part:
        match part.needed("type"):
            case "text":
                return Text(part.needed("text"), extras=part.rest() or None)
            case "image_url":
                media = image_of(part)
                media.extras = part.rest() or None
                return media
            case kind:
                return unknown_part(wire.VENDOR, kind, part)

    def assistant(self, message: Fields) -> Turn:
        parts: list[Part] = []
        if plan := message.string("tool_plan"):
            parts.append(Reasoning(plan, "summary"))
        parts += content_of(message, self._assistant_part)
        for number, fields in enumerate(message.each("tool_calls")):
            call = function_call(fields, number)
            call.extras = fields.rest() or None
            parts.append(call)
        parts += [Aside(wire.VENDOR, "citation", wire.CITATION, raw) for raw in message.listed("citations")]
        return Turn("assistant", parts)

    def _assistant_part(self, part: Fields) -> Part:
        if part.peek("type") != "thinking":
            return self._part(part)
        part.take("type")
        return Reasoning(part.needed("thinking"), extras=part.rest() or None)

    def result(self, message: Fields) -> ToolResult:
        """Read a tool result: text, documents and images."""
        call_id, parts = message.string("tool_call_id") or "", content_of(message, self._result_part)
        return ToolResult(call_id, parts, place=message.place)

    def _result_part(self, part: Fields) -> Text | Media | Aside:
        """Read a part of a result. A document's extras keep its data empty, as ``""`` or ``{}``, to show what it was."""
        if part.peek("type") != "document":
            return cast("Text | Media | Aside", self._part(part))
        part.take("type")
        document = part.needed_fields("document")
        data = document.peek("data")
        empty: Any = "" if isinstance(data, str) else {}
        if isinstance(data, str):
            text = document.needed("data")
        elif isinstance(data, dict):
            text = document.text_of("data")
        else:
            raise document.wrong(f"must be an object or a string, not {kind_of(data)}", "data")
        return Text(text, extras={"document": {"data": empty, **document.rest()}, **part.rest()})


# -- what the servers take ---------------------------------------------------------------------------------------------


def fit_media(media: Media, place: Place, to: Lowering) -> Media | None:
    """Return a user's image with bytes or at a web URL; None, and a loss, for other media."""
    fit = own_media(media, place, to)
    if fit is None:
        return None
    if media.data is None and not (media.url or "").startswith(("data:", "http:", "https:")):
        to.lose("media", "image, not at a URL of the web")
        return None
    return evolve(media, detail=to.closeness(media.detail))


def own_media(media: Media, place: Place, to: Lowering) -> Media | None:
    """Return a user's image; None, and a loss, for other media."""
    if place == "user" and media.kind == "image" and (media.data is not None or media.url is not None):
        return media
    to.lose("media", media.kind)
    return None


def own_aside(aside: Aside, place: Place) -> bool:
    """Return whether an aside is a content part, or a citation of the assistant."""
    return wire.content_of(aside) is not None or (aside.type == wire.CITATION and place == "assistant")


def chosen_offered(request: Request, _to: Lowering) -> None:
    """Offer only the tools that the choice names, since the choice itself can't name them."""
    request.tools = [*chosen_of(request.tools, request.tool_choice)]


def strict_together(request: Request, to: Lowering) -> None:
    """Require calls to match the schemas of all tools or of none. If only some tools require it, count a loss."""
    strict = {tool.strict for tool in request.tools if tool.kind == "function"}
    if strict == {True} or (strict == {False} and to.own):
        return
    for tool in request.tools:
        if tool.strict:
            to.lose("tool_strict", tool.name)
    request.tools = [evolve(tool, strict=None) for tool in request.tools]


@of_parts
def reasoning_fits(part: Part, _place: Place, to: Lowering) -> Part | None:
    """Drop empty reasoning and texts, and write another dialect's reasoning summary as thinking."""
    match part:
        case Reasoning(text=""):
            return None
        case Text(text="") if not to.own:
            return None
        case Reasoning(kind="summary") if not to.own:
            return evolve(part, kind="raw")
    return part


def choice_unnamed(request: Request, to: Lowering) -> None:
    """Drop the names in a tool choice, because Cohere has no member for them."""
    choice = request.tool_choice
    if choice is None:
        return
    if choice.mode == "required" and len(choice.names) == 1:
        to.lose("tool_choice", choice.names[0])
    request.tool_choice = ToolChoice(choice.mode)


def numbers_in_range(request: Request, to: Lowering) -> None:
    """Clamp options to the ranges that the server takes; each change is a loss."""
    changes: dict[str, Any] = {}
    for name, (least, most) in wire.RANGES.items():
        value = getattr(request.options, name)
        if value is not None and not least <= value <= most:
            to.lose("parameter", wire.OPTIONS[name])
            changes[name] = min(max(value, least), most)
    if changes:
        request.options = evolve(request.options, **changes)


def thinking_in_tokens(request: Request, to: Lowering) -> None:
    """Set whether to think and how many tokens; an effort becomes a number of tokens."""
    options, thinking = request.options, request.options.thinking
    if thinking is None:
        return
    if not to.takes.model.efforts:
        to.lose("parameter", "thinking")
        options.thinking = None
        return
    to.lose_members(thinking, "thinking", "summary")
    effort, budget, enabled = thinking.effort, thinking.budget_tokens, thinking.enabled
    if effort not in {None, "none"}:
        to.lose("parameter", "thinking.effort")
    if budget is not None and budget <= 0 and not to.own:  # Gemini's values: 0 is no thinking, -1 lets the model choose
        enabled = budget < 0 if enabled is None else enabled
        budget = None
    if budget is None and enabled is not False:
        budget = below(budget_of(effort) or 0, options.max_tokens) or None
    if enabled is None and (effort is not None or budget is not None):
        enabled = effort != "none"
    options.thinking = Thinking(enabled=enabled, budget_tokens=budget if enabled or to.own else None)


def documents_given(request: Request, to: Lowering) -> None:
    """Write the documents that another dialect had in its messages."""
    if to.documents:
        request.extras = {**request.extras, "documents": to.documents}


FOREIGN: Final = Capabilities(
    dialect="cohere",
    vendor=wire.VENDOR,
    title="Cohere",
    text_files=False,
    result_errors=False,
    unsigned_reasoning=True,
    strips_signatures=True,
    asides=own_aside,
    cites=True,
    media=fit_media,
    empty_turns=True,
    empty_answers=False,
    results="behind calls",
    some_tools=True,
    form_with_tools=False,
    options=frozenset({*wire.OPTIONS, "output", "thinking"}),
    most_stops=5,
    first=(chosen_offered, strict_together),
    said=(reasoning_fits,),
    last=(choice_unnamed, numbers_in_range, thinking_in_tokens, form_unnamed, documents_given),
)
#: What the servers take from Cohere's clients.
OWN: Final = evolve(
    FOREIGN,
    media=own_media,
    empty_answers=True,
    results="apart",
    last=(choice_unnamed, thinking_in_tokens, form_unnamed),
)
capabilities: Final = told_by(OWN, FOREIGN)


# -- writing -----------------------------------------------------------------------------------------------------------


def write(request: Request, _target: Target, report: StreamReport) -> dict[str, Any]:
    """Return the body of a lowered request (only what the dialect can express) as JSON values."""
    options, choice = request.options, request.tool_choice
    body = without_none(
        model=request.model,
        messages=[message for turn in request.turns for message in _messages(turn, report)],
        tools=[_tool(tool) for tool in request.tools] or None,
        strict_tools=next((tool.strict for tool in request.tools if tool.strict is not None), None),
        tool_choice=None if choice is None or choice.mode == "auto" else choice.mode.upper(),
        **members_of(options, wire.OPTIONS),
        thinking=_thinking(options.thinking),
        response_format=_output(options.output),
        stream=request.stream,
    )
    return add_missing(body, request.extras)


def _tool(tool: Tool) -> dict[str, Any]:
    if tool.kind == "server":
        return dict(tool.raw or {})
    function = without_none(name=tool.name, description=tool.description, parameters=tool.parameters or {})
    return add_missing({"type": "function", "function": function}, tool.extras)


def _thinking(thinking: Thinking | None) -> dict[str, Any] | None:
    if thinking is None or thinking.enabled is None:
        return None
    return without_none(type="enabled" if thinking.enabled else "disabled", token_budget=thinking.budget_tokens)


def _output(output: OutputFormat | None) -> dict[str, Any] | None:
    if output is None or output.kind == "text":
        return None if output is None else {"type": "text"}
    return without_none(type="json_object", json_schema=output.schema)


def _messages(turn: Turn, report: StreamReport) -> Iterator[dict[str, Any]]:
    """Yield the messages of a turn: one, or one for each tool result."""
    results = [part for part in turn.parts if isinstance(part, ToolResult)]
    for result in results:
        message = {"role": "tool", "tool_call_id": result.call_id, "content": _content(result.parts)}
        yield add_missing(message, result.extras)
    if not results:
        members = _assistant(turn.parts, report) if turn.role == "assistant" else {"content": _content(turn.parts)}
        yield add_missing({"role": turn.role, **members}, turn.extras)


def _assistant(parts: Sequence[Part], report: StreamReport) -> dict[str, Any]:
    """Return the members of an assistant message. Each part that is written before an earlier part is a loss."""
    plans, calls, content, citations = list[str](), list[dict[str, Any]](), list[dict[str, Any]](), list[Any]()
    for part in parts:
        late = False
        match part:
            case ToolCall():
                calls.append(add_missing(event_encoder.function_call(part, part.id, part.name), part.extras))
            case Aside(type=name, raw=raw) if name == wire.CITATION:
                citations.append(raw)
            case Reasoning(kind="summary", extras=None):
                late = bool(content or calls)
                plans.append(part.text)
            case Reasoning():
                late = bool(calls)
                content.append(add_missing({"type": "thinking", "thinking": part.text}, part.extras))
            case _:
                late = bool(calls)
                content.append(_part(part))
        if late:
            report.lose("block_order")
    if len(plans) > 1:
        report.lose("block_boundary", len(plans) - 1)
    members = without_none(tool_plan=one_string(plans) or None, tool_calls=calls or None)
    if content or not members:
        members["content"] = plain_or_list(content)
    return members | without_none(citations=citations or None)


def _content(parts: Sequence[Part]) -> str | list[dict[str, Any]]:
    """Return content as a string if it is one plain text, else as a list of parts."""
    return plain_or_list([_part(part) for part in parts])


def _part(part: Part) -> dict[str, Any]:
    match part:
        case Text():
            return _text(part)
        case Media():
            url = data_uri(part) if part.data is not None else part.url
            image = without_none(url=url, detail=part.detail)
            return add_missing({"type": "image_url", "image_url": image}, part.extras)
        case Aside() if (content := wire.content_of(part)) is not None:
            return content
    raise TypeError(f"content can't contain a {type(part).__name__}")


def _text(part: Text) -> dict[str, Any]:
    if part.item is not None:  # another dialect's document
        return dict(part.item)
    extras = part.extras or {}
    if isinstance(document := extras.get("document"), Mapping):
        data = orjson.Fragment(part.text) if document.get("data") == {} else part.text
        return {"type": "document", **extras, "document": {**document, "data": data}}
    return add_missing({"type": "text", "text": part.text}, extras)
