"""Requests and whole responses of Cloudflare Workers AI's own API. The URL names the model.

    {"messages": [{"role": "user", "content": "Weather in Oslo?"}], "tools": […], "max_tokens": 256, "stream": false}
    {"result": {"response": "Let me look.", "tool_calls": […], "usage": {…}}, "success": true, "errors": [], "messages": []}

Source: https://developers.cloudflare.com/workers-ai/ and its provider for the AI SDK, whose form of a history this is.
"""

from collections.abc import Iterator
from typing import Any

import orjson

from streamkit import plugin as sk
from workers_ai.streams import NAME, WorkersDecoder, write_error, write_usage

#: Our names of options, and the dialect's.
OPTIONS = {
    name: name
    for name in (
        "max_tokens",
        "temperature",
        "top_p",
        "top_k",
        "seed",
        "presence_penalty",
        "frequency_penalty",
    )
}
#: The dialect's words for a choice among tools, and ours.
CHOICES: dict[str, sk.ToolChoice] = {
    "auto": sk.ToolChoice("auto"),
    "none": sk.ToolChoice("none"),
    "any": sk.ToolChoice("required"),
}
WORDS = {choice.mode: word for word, choice in CHOICES.items()}
RESULT = frozenset({"result", "success", "errors", "messages"})


class WorkersRequestReader(sk.TurnReader):
    dialect = NAME

    def begun(self, fields: sk.Fields) -> sk.Request:
        return sk.Request(NAME, stream=fields.boolean("stream"))

    def content(self, message: sk.Fields) -> list[sk.Part]:
        text = message.string("content")
        return [sk.Text(text)] if text else []

    def assistant(self, message: sk.Fields) -> sk.Turn:
        parts = self.content(message)
        for number, fields in enumerate(message.each("tool_calls")):
            call = sk.function_call(fields, number)
            call.extras = fields.rest() or None
            parts.append(call)
        return sk.Turn("assistant", parts)

    def result(self, message: sk.Fields) -> sk.ToolResult:
        call_id, text = message.needed("tool_call_id"), message.string("content") or ""
        return sk.ToolResult(
            call_id, [sk.Text(text)], message.string("name"), place=message.place
        )

    def tool(self, tool: sk.Fields) -> sk.Tool:
        tool.string("type")
        return sk.function_tool(tool.needed_fields("function"), tool)

    def tool_choice(self, fields: sk.Fields) -> sk.ToolChoice | None:
        word = fields.string("tool_choice")
        if word is not None and word not in CHOICES:
            raise fields.wrong(f"one of {', '.join(CHOICES)} is needed", "tool_choice")
        return None if word is None else CHOICES[word]

    def options(self, fields: sk.Fields) -> sk.Options:
        return sk.read_options(fields, OPTIONS)


def no_media(media: sk.Media, _place: sk.Place, to: sk.Lowering) -> None:
    to.lose("media", media.kind)


def named_tool_offered(request: sk.Request, to: sk.Lowering) -> None:
    """The only tool that may be called as the only one that is offered, since a choice names none."""
    choice = request.tool_choice
    if choice is not None and choice.names and choice.mode == "required":
        to.lose("tool_choice", "names")
        request.tools = [tool for tool in request.tools if tool.name in choice.names]
        request.tool_choice = sk.ToolChoice("required")


CAPABILITIES = sk.Capabilities(
    dialect=NAME,
    vendor=NAME,
    title="Workers AI",
    text_files=False,
    result_errors=False,
    strict_tools=False,
    media=no_media,
    results="behind calls",
    options=frozenset(OPTIONS),
    last=(named_tool_offered,),
)


def write(
    request: sk.Request, _target: sk.Target, _report: sk.StreamReport
) -> dict[str, Any]:
    """Return the body of a request that ``CAPABILITIES`` allow."""
    choice, options = request.tool_choice, request.options
    body = sk.without_none(
        messages=[message for turn in request.turns for message in _messages(turn)],
        tools=[_tool(tool) for tool in request.tools] or None,
        tool_choice=WORDS.get(choice.mode) if choice else None,
        **{name: getattr(options, name) for name in OPTIONS},
        stream=request.stream,
    )
    return sk.add_missing(body, request.extras)  # members that the reader left over


def _tool(tool: sk.Tool) -> dict[str, Any]:
    function = sk.without_none(
        name=tool.name, description=tool.description, parameters=tool.parameters
    )
    return sk.add_missing({"type": "function", "function": function}, tool.extras)


def _messages(turn: sk.Turn) -> Iterator[dict[str, Any]]:
    """One message for each result, and one for the turn of anybody else."""
    results = [part for part in turn.parts if isinstance(part, sk.ToolResult)]
    for result in results:
        message = sk.without_none(
            role="tool",
            content=result.text,
            tool_call_id=result.call_id,
            name=result.name,
        )
        yield sk.add_missing(message, result.extras)
    if not results:
        # the texts of a model are joined without a change
        join = "" if turn.role == "assistant" else "\n\n"
        text = join.join(part.text for part in turn.parts if isinstance(part, sk.Text))
        calls = [_call(part) for part in turn.parts if isinstance(part, sk.ToolCall)]
        message = sk.without_none(
            role=turn.role, content=text, tool_calls=calls or None
        )
        yield sk.add_missing(message, turn.extras)


def _call(call: sk.ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return sk.add_missing(
        {"id": call.id, "type": "function", "function": function}, call.extras
    )


class WorkersBodyDecoder(WorkersDecoder):
    """A whole response: its only frame, with a chunk in it that says all."""

    within = ("result",)

    def decode(self, document: dict[str, Any]) -> None:
        if "success" not in document:
            self.foreign_frame()
            return
        result = self.fields(document.get("result"))
        self._chunk({**result, "errors": document.get("errors")})
        self.keep_others(document, RESULT, "body.")
        if document["success"] is True:
            self.done()


class WorkersResponseWriter(sk.ResponseWriter):
    vendor = NAME

    def answer(self) -> dict[str, Any]:
        choice = sk.only_choice(self.response, self.report)
        self.lose_order(choice)
        self.lose_sealed(choice)
        texts, calls = list[str](), list[dict[str, Any]]()
        members: dict[str, Any] = {}
        for part in choice.parts:
            match part:
                case sk.Text() | sk.Refusal():
                    texts.append(part.text)
                    if isinstance(part, sk.Refusal):
                        self.report.lose("refusal_as_text")
                case sk.ToolCall():
                    calls += self._calls(part)
                case sk.Aside(vendor=vendor, kind="metadata") if vendor == NAME:
                    members[part.type] = part.raw
                case sk.Aside():
                    self.report.lose(part.kind)
                case sk.Reasoning():
                    self.report.lose("reasoning")
        if len(texts) > 1:
            self.report.lose("block_boundary", len(texts) - 1)
        if choice.stop_reason not in {"stop", "tool_calls"}:
            self.report.lose("stop_reason")
        self.own_extras(self.response.extras, "response_fields")
        usage = self.response.usage
        result = sk.without_none(
            response="".join(texts),
            tool_calls=calls or None,
            usage=None if usage is None else write_usage(usage),
        )
        around: dict[str, Any] = {"success": True, "errors": [], "messages": []}
        for name, value in members.items():
            if name.startswith("body."):
                around[name.removeprefix("body.")] = value
            else:
                result[name] = value
        return {"result": result, **around}

    def _calls(self, call: sk.ToolCall) -> list[dict[str, Any]]:
        """The call, in a list; none where no client may run it."""
        arguments = sk.object_arguments(call, self.encoding.limits, self.report)
        if arguments is None or not call.name:
            self.withhold(call)
            return []
        if not call.id_made:
            self.report.lose("call_id")
        own = self.own_extras(call.extras)
        return [{"name": call.name, "arguments": orjson.Fragment(arguments), **own}]

    def error(self, failure: sk.ProviderFailed) -> dict[str, Any]:
        return {
            "result": None,
            "success": False,
            "errors": [write_error(failure)],
            "messages": [],
        }


BODIES = sk.Bodies.of(
    WorkersRequestReader,
    write,
    WorkersBodyDecoder,
    WorkersResponseWriter,
    capabilities=lambda _source, _model, _provider: CAPABILITIES,
)
