"""Read and write Ollama's chat requests.

Ids of calls are optional here, so an added id is no repair; ``Waiting`` (``bodies/request_reader.py``) finds the call for a
result without an id. A request without ``stream`` asks for a stream, which ends with token counts. Images have no place within
the text: the server puts them before it, and so does the reader.

Each turn is one message, and each tool result a separate ``tool`` message. The content is one text: texts of the assistant are
joined directly, since a model's text may be split anywhere, others with a blank line. Some templates refuse a second system
message (ollama#17774), so all system messages of another dialect's request are joined to one at the front. No request can make
Ollama call a tool: a choice that requires a call is refused, or, if the target emulates it, only the chosen tools are offered.

Source: dialects.md §4.1, §4.3, §7.3, §7.4; quirks.md 35 (calls without ids).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

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
    ToolResult,
    Turn,
)
from streamkit.dialects.lowering import (
    Capabilities,
    Lowering,
    Place,
    chosen_of,
    form_unnamed,
    leading_of,
    of_parts,
    of_turns,
    results_named,
    told_by,
)
from streamkit.dialects.members.fields import (
    BLANK_LINE,
    Fields,
    TurnReader,
    Waiting,
    add_missing,
    base64_of,
    function_tool,
    kind_of,
    members_of,
    read_options,
    server_tool,
    without_none,
)
from streamkit.dialects.members.values import DEPTH
from streamkit.dialects.ollama.wire import IMAGES, OPTIONS, THINK_LEVELS, TOOLS, VENDOR
from streamkit.dialects.profiles import Target
from streamkit.dialects.vocabulary.models import UNKNOWN
from streamkit.errors import BadRequest
from streamkit.events import Aside
from streamkit.report import StreamReport
from streamkit.text.one_string import one_string
from streamkit.text.quoting import STEP_CHARS, quoted, shortened

MESSAGE: Final = "message."  # the beginning of the types of asides that are members of a message


# -- reading -----------------------------------------------------------------------------------------------------------


class OllamaRequestReader(TurnReader):
    """Reads one request."""

    dialect = "ollama"

    def __init__(self, report: StreamReport) -> None:
        super().__init__(report)
        self._waiting = Waiting()  #: the calls of the latest turn

    def begun(self, fields: Fields) -> Request:
        if "messages" not in fields and "prompt" in fields:
            raise fields.wrong("requests to /api/generate are not supported; send messages to /api/chat", "prompt")
        stream = fields.boolean("stream") is not False
        return Request(self.dialect, fields.needed("model"), stream=stream)

    def options(self, fields: Fields) -> Options:
        others: dict[str, Any] = {
            "logprobs": fields.boolean("logprobs"),
            "top_logprobs": fields.integer("top_logprobs"),
            "thinking": self._thinking(fields),
            "output": self._output(fields),
        }
        model = fields.fields("options")
        if model is None:
            return Options(**others)
        bound = model.peek("num_predict")
        if isinstance(bound, int | float) and bound < 0:  # -1: no limit; -2: the rest of the context
            others["max_tokens"] = None
        return read_options(model, OPTIONS, **others)

    def _thinking(self, fields: Fields) -> Thinking | None:
        match fields.take("think"):
            case None:
                return None
            case True:
                return Thinking(enabled=True)
            case False:
                return Thinking("none")
            case str(level) if level in THINK_LEVELS:
                return Thinking(level)
            case think:
                shown = quoted(think) if isinstance(think, str) else kind_of(think)
                raise fields.wrong(f"must be true, false or one of {', '.join(THINK_LEVELS)}, not {shown}", "think")

    def _output(self, fields: Fields) -> OutputFormat | None:
        match fields.take("format"):
            case None | "":
                return None
            case "json":
                return OutputFormat("json")
            case dict(schema):
                return OutputFormat("schema", schema)
            case form:
                shown = quoted(form) if isinstance(form, str) else kind_of(form)
                raise fields.wrong(f"must be 'json' or a JSON schema, not {shown}", "format")

    def tool(self, tool: Fields) -> Tool:
        kind = tool.string("type") or "function"
        if kind != "function":
            return server_tool(kind, tool)
        return function_tool(tool.needed_fields("function"), tool)

    def role(self, message: Fields) -> str:
        """Return the role, which the server also takes in capitals."""
        return super().role(message).lower()

    def content(self, message: Fields) -> list[Text | Media]:
        """Return the images of a message, and its text after them."""
        images: list[Text | Media] = [
            Media("image", data=base64_of(image, f"{message.at('images')}[{number}]"))
            for number, image in enumerate(message.strings("images"))
        ]
        content = message.string("content")
        return [*images, Text(content)] if content else images

    def assistant(self, message: Fields) -> Turn:
        parts: list[Part] = []
        if thinking := message.string("thinking"):
            parts.append(Reasoning(thinking))
        parts += self.content(message)
        calls = [self._call(call, number, message) for number, call in enumerate(message.each("tool_calls"))]
        self._waiting = Waiting(calls)
        return Turn("assistant", [*parts, *calls])

    def _call(self, call: Fields, number: int, message: Fields) -> ToolCall:
        function = call.needed_fields("function")
        text = function.object_text("arguments") or ""
        read = ToolCall(number, call.string("id") or "", function.needed("name"), text, place=call.place)
        if not read.id:
            read.id, read.id_made = f"call_{message.path[-1]}_{number}", True
        if function.peek("index") == number:
            function.take("index")
        if call.peek("type") == "function":
            call.take("type")
        read.extras = call.rest() or None
        return read

    def result(self, message: Fields) -> ToolResult:
        """Read a result, with the id of the call that it answers."""
        call_id, name = message.string("tool_call_id") or "", message.string("tool_name")
        return ToolResult(self._waiting.answer(call_id, name), [*self.content(message)], name, place=message.place)


# -- what the servers take ---------------------------------------------------------------------------------------------


def fit_media(media: Media, _place: Place, to: Lowering) -> Media | None:
    """Return an image or audio with bytes; None, and a loss, for others."""
    if media.kind not in IMAGES or media.data is None:
        absent = "" if media.data is not None else ", not in the request itself"
        to.lose("media", f"{media.kind}{absent}")
        return None
    for name in ("detail", "name"):
        if getattr(media, name) is not None:
            to.lose("metadata", name)
    return media


def own_aside(aside: Aside, place: Place) -> bool:
    """Return whether an aside is a member of an assistant message."""
    return place == "assistant" and aside.type.startswith(MESSAGE)


def room_for_error(part: Part, _place: Place, _to: Lowering) -> Part:
    """Add an empty text after the images of a failed result without text: a later pass writes there that the tool failed."""
    if not isinstance(part, ToolResult) or not part.is_error or any(isinstance(inner, Text) for inner in part.parts):
        return part
    return evolve(part, parts=[*part.parts, Text("")])


def one_system(request: Request, to: Lowering) -> None:
    """Join all system turns to one at the front."""
    systems = [turn for turn in request.turns if turn.role == "system"]
    leading = leading_of(request.turns)
    for _ in systems[1:leading]:
        to.report.repair("turns_joined")
    for _ in systems[leading:]:
        to.lose("system_place")
    if len(systems) > 1:
        text = BLANK_LINE.join(_content(turn.parts, BLANK_LINE.join, to.report)["content"] for turn in systems)
        images = [part for turn in systems for part in turn.parts if isinstance(part, Media)]
        systems = [Turn("system", [*images, Text(text)])]
    request.turns = [*systems, *(turn for turn in request.turns if turn.role != "system")]


@of_turns
def silent_answers_empty(turn: Turn, _to: Lowering) -> Turn:
    """Remove empty parts from an assistant's turn that has nothing else."""
    silent = all(isinstance(part, Text | Reasoning) and not part.text for part in turn.parts)
    return evolve(turn, parts=[]) if turn.role == "assistant" and silent else turn


def thinking_in_levels(request: Request, to: Lowering) -> None:
    """Set whether to think, or a level that the server knows."""
    thinking = request.options.thinking
    if thinking is None:
        return
    to.lose_members(thinking, "thinking", "budget_tokens", "summary")
    effort = thinking.effort
    model = to.takes.model
    if not model.efforts and model.thinks == "asked" and effort != "none" and thinking.enabled is not False:
        to.lose("parameter", "thinking")  # the server refuses to let a model think that cannot
        thinking = None
    elif effort == "none" or thinking.enabled is False:
        thinking = Thinking(enabled=False)
    elif effort is None:
        thinking = Thinking(enabled=thinking.enabled or thinking.budget_tokens is not None or None)
    else:
        thinking = Thinking(to.fit_effort(effort), enabled=True)
    request.options.thinking = thinking


def schemas_fit(request: Request, to: Lowering) -> None:
    """Reduce the schemas of the offered functions to what the server takes."""
    choice = request.tool_choice
    barred = choice is not None and choice.mode == "none"
    offered = {tool.name for tool in (() if barred else chosen_of(request.tools, choice)) if tool.kind == "function"}
    request.tools = [
        evolve(tool, parameters=_schema(tool.parameters, f"tools[{number}].parameters", to))
        if tool.name in offered
        else tool
        for number, tool in enumerate(request.tools)
    ]


def _schema(schema: Any, path: str, to: Lowering) -> dict[str, Any]:
    schema = schema if isinstance(schema, Mapping) else {}
    kept = _kept(schema, path, TOOLS.root_keywords or frozenset(), to)
    if kept.get("type", "object") != "object":  # the server reads one type here, no list
        to.lose("schema_keyword", f"{path}.type")
    return {**kept, "type": "object", "properties": kept.get("properties", {})}


def _kept(
    schema: Mapping[str, Any], path: str, keywords: frozenset[str], to: Lowering, depth: int = 1
) -> dict[str, Any]:
    """Return the keywords of a schema that the server takes, and do the same with the schemas inside it."""
    if depth > DEPTH:
        raise BadRequest(path, f"must not be nested deeper than {DEPTH} levels")
    kept: dict[str, Any] = {}
    for keyword, value in schema.items():
        where = f"{path}.{shortened(keyword, STEP_CHARS)}"
        if keyword not in keywords:
            to.lose("schema_keyword", where)
        elif keyword == "properties" and isinstance(value, Mapping):
            kept[keyword] = {name: _inner(inner, f"{where}.{name}", to, depth + 1) for name, inner in value.items()}
        elif keyword == "anyOf" and isinstance(value, list):
            kept[keyword] = [_inner(inner, f"{where}[{n}]", to, depth + 1) for n, inner in enumerate(value)]
        else:
            kept[keyword] = value
    return kept


def _inner(schema: Any, path: str, to: Lowering, depth: int) -> dict[str, Any]:
    if isinstance(schema, Mapping):
        return _kept(schema, path, TOOLS.keywords or frozenset(), to, depth)
    to.lose("schema_keyword", path)  # ``true`` or ``false``, which the server refuses
    return {}


FOREIGN: Final = Capabilities(
    dialect="ollama",
    vendor=VENDOR,
    title="Ollama",
    model=evolve(UNKNOWN, efforts=THINK_LEVELS),
    text_files=False,
    result_errors=False,
    unsigned_reasoning=True,
    strips_signatures=True,
    arguments="object",
    asides=own_aside,
    media=fit_media,
    empty_turns=True,
    empty_answers=False,
    results="behind calls",
    offered_to="Ollama",
    strict_tools=False,
    options=frozenset({*OPTIONS, "logprobs", "top_logprobs", "thinking", "output"}),
    first=(partial(results_named, unnamed=False), of_parts(room_for_error), schemas_fit),
    said=(one_system, silent_answers_empty),
    last=(thinking_in_levels, form_unnamed),
)
#: What the servers take from Ollama's clients, whose calls may lack ids.
OWN: Final = evolve(FOREIGN, needs_ids=False, empty_answers=True, results="apart", first=FOREIGN.first[:2], said=())
capabilities: Final = told_by(OWN, FOREIGN, frozenset(THINK_LEVELS))


# -- writing -----------------------------------------------------------------------------------------------------------


def write(request: Request, _target: Target, report: StreamReport) -> dict[str, Any]:
    """Return the body of a lowered request (only what the dialect can express) as JSON values."""
    options, thinking = request.options, request.options.thinking
    body = without_none(
        model=request.model,
        messages=[message for turn in request.turns for message in _messages(turn, report)],
        tools=[_tool(tool) for tool in request.tools] or None,
        options=members_of(options, OPTIONS) or None,
        format=_form(options.output),
        think=None if thinking is None else thinking.effort or thinking.enabled,
        logprobs=options.logprobs,
        top_logprobs=options.top_logprobs,
    )
    body["stream"] = bool(request.stream)
    return add_missing(body, request.extras)


def _tool(tool: Tool) -> dict[str, Any]:
    if tool.kind == "server":
        return dict(tool.raw or {})
    function = without_none(name=tool.name, description=tool.description, parameters=tool.parameters)
    return add_missing({"type": "function", "function": function}, tool.extras)


def _form(output: OutputFormat | None) -> Any:
    if output is None or output.kind == "text":
        return None
    return "json" if output.kind == "json" or output.schema is None else output.schema


def _messages(turn: Turn, report: StreamReport) -> Iterator[dict[str, Any]]:
    """Yield the messages of a turn: one, or one for each tool result."""
    results = [part for part in turn.parts if isinstance(part, ToolResult)]
    for result in results:
        message = {"role": "tool", **_content(result.parts, BLANK_LINE.join, report)}
        message |= without_none(tool_name=result.name, tool_call_id=result.call_id or None)
        yield add_missing(message, result.extras)
    if turn.role == "assistant":
        yield _assistant(turn, report)
    elif not results:
        message = {"role": turn.role, **_content(turn.parts, BLANK_LINE.join, report)}
        yield add_missing(message, turn.extras)


def _assistant(turn: Turn, report: StreamReport) -> dict[str, Any]:
    thinking, content, calls = list[str](), list[Part](), list[dict[str, Any]]()
    members: dict[str, Any] = {}
    late = False  # whether a part is written before an earlier one
    for part in turn.parts:
        match part:
            case Reasoning():
                late = late or bool(content or calls)
                thinking.append(part.text)
            case ToolCall():
                calls.append(_call(part))
            case Aside(type=name, raw=raw):
                members[name.removeprefix(MESSAGE)] = raw
            case _:
                late = late or bool(calls)
                content.append(part)
    if late:
        report.lose("block_order")
    message = {"role": turn.role, **_content(content, "".join, report)}
    message = add_missing(message, turn.extras) | members
    return message | without_none(thinking=_joined(thinking, one_string, report) or None, tool_calls=calls or None)


def _call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": orjson.Fragment(call.arguments)}
    return add_missing(without_none(id=call.id or None, function=function), call.extras)


def _content(parts: Sequence[Part], join: Callable[[list[str]], str], report: StreamReport) -> dict[str, Any]:
    """Return ``content``, and ``images`` if there are any, which the server puts before the text."""
    texts, images, late = list[str](), list[str](), False
    for part in parts:
        match part:
            case Text():
                texts.append(part.text)
            case Media(data=str(data)):
                late = late or any(texts)
                images.append(data)
            case _:
                raise TypeError(f"content can't contain a {type(part).__name__}")
    if late:
        report.lose("block_order")
    return {"content": _joined(texts, join, report), **without_none(images=images or None)}


def _joined(texts: Sequence[str], join: Callable[[list[str]], str], report: StreamReport) -> str:
    """Join texts that are not empty; each boundary between them is a loss."""
    kept = [text for text in texts if text]
    if len(kept) > 1:
        report.lose("block_boundary", len(kept) - 1)
    return join(kept)
